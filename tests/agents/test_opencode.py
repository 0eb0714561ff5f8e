"""opencode's events, as its plugin passes them on, and its answers."""

from __future__ import annotations

from takeback.agents.events import ASK, DENY, Answer

from .payloads import answered, read, sent, told


def test_every_sample_is_read():
    write = ("write", "writes", "/project/a.txt", False)
    edit = ("edit", "writes", "/project/a.txt", False)
    shell = ("bash", "shell", "echo hi > b.txt; cat b.txt", False)
    found = [each for each in told("opencode") if each[0] not in ("start", "rest")]
    assert found == [
        ("prompt", "", "", "", False),
        ("before", *write),
        ("after", *write),
        ("before", *edit),
        ("after", *edit),
        ("before", *shell),
        ("after", *shell),
        ("before", "echo_echo", "unknown", "", False),
        ("before", "echo_fail", "unknown", "", False),
        ("after", "echo_echo", "unknown", "", False),
    ]


def test_no_sample_is_strange():
    assert {read("opencode", each.payload, each.event).kind for each in sent("opencode")}.isdisjoint({"strange"})


def test_session_prompt_and_call():
    events = [read("opencode", each.payload, each.event) for each in sent("opencode")]
    asked = next(event for event in events if event.kind == "prompt")
    assert (asked.prompt, asked.caller.session) == ("go", "ses_e22079c77ffehWur5X40O3938o")
    keys = [event.key for event in events if event.tool]
    assert keys[:2] == ["call_0000_00"] * 2


def test_the_bus_says_when_a_session_rests():
    idle = {"input": {"type": "session.idle", "properties": {"sessionID": "s"}}, "directory": "/project"}
    event = read("opencode", idle, "event")
    assert (event.kind, event.caller.session, event.cwd) == ("rest", "s", "/project")
    assert read("opencode", {"input": {"type": "lsp.updated"}}, "event").kind == "other"


def test_a_subagent_is_a_lane_of_its_parent():
    call = {"tool": "bash", "sessionID": "child", "callID": "1"}
    event = read(
        "opencode", {"input": call, "output": {"args": {"command": "make"}}, "parentID": "s"}, "tool.execute.before"
    )
    assert (event.caller.session, event.caller.lane) == ("s", "child")
    asked = {"input": {"sessionID": "child"}, "output": {"parts": []}, "parentID": "s"}
    assert read("opencode", asked, "chat.message").kind == "other"


def test_our_own_tools_read_and_a_failed_command_has_failed():
    call = {"input": {"tool": "takeback_takeback_undo", "sessionID": "s", "callID": "1"}, "output": {"args": {}}}
    assert read("opencode", call, "tool.execute.before").does == "reads"
    failed = {"input": {"tool": "bash", "callID": "1"}, "output": {"metadata": {"exit": 3}}}
    assert read("opencode", failed, "tool.execute.after").failed


def test_answers():
    call = {"input": {"tool": "bash", "sessionID": "s", "callID": "1"}, "output": {"args": {"command": "git push"}}}
    event = read("opencode", call, "tool.execute.before")
    for decision in (ASK, DENY):
        assert answered("opencode", event, Answer(decision, "because")) == {"decision": "deny", "reason": "because"}
    prompt = read("opencode", {"input": {"sessionID": "s"}, "output": {"parts": []}}, "chat.message")
    assert answered("opencode", prompt, Answer(context="takeback took back")) == {"context": "takeback took back"}
