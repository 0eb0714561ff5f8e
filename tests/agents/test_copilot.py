"""Copilot CLI's events, as it sent them, in its own words and in Claude Code's; and its answers."""

from __future__ import annotations

from takeback.agents.copilot import has_own_hooks
from takeback.agents.events import ASK, DENY, Answer

from .payloads import answered, read, sent, told

SESSION = {"sessionId": "s", "cwd": "/project", "timestamp": 1794725410476}


def test_every_sample_is_read():
    write = ("create", "writes", "/project/a.txt", False)
    edit = ("edit", "writes", "/project/a.txt", False)
    shell = ("bash", "shell", "echo hi > b.txt; cat b.txt", False)
    assert told("copilot") == [
        ("start", "", "", "", False),
        ("prompt", "", "", "", False),
        ("before", *write),
        ("after", *write),
        ("before", *edit),
        ("after", *edit),
        ("before", *shell),
        ("after", *shell),
        ("before", "echo-echo", "unknown", "", False),
        ("before", "echo-fail", "unknown", "", False),
        ("after", "echo-echo", "unknown", "", False),
        ("after", "echo-fail", "unknown", "", True),
        ("rest", "", "", "", False),
        ("end", "", "", "", False),
    ]


def test_a_call_is_named_by_what_is_called_in_both_spellings():
    events = [read("copilot", each.payload, each.event) for each in sent("copilot")]
    keys = [event.key for event in events if event.tool]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    given = {"path": "/project/a.txt", "file_text": "one\n"}
    snake = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": given}
    event = read("copilot", {**snake, "cwd": "/project", "timestamp": "2026"})
    assert (event.kind, event.does, event.paths, event.caller.session) == ("before", "writes", ("/project/a.txt",), "s")
    assert event.caller.agent == "copilot"


def test_arguments_may_be_a_text():
    asked = {**SESSION, "toolName": "bash", "toolArgs": '{"command": "make"}'}
    assert read("copilot", asked, "preToolUse").command == "make"


def test_servers():
    assert read("copilot", {**SESSION, "toolName": "echo-echo", "toolArgs": {}}, "preToolUse").server == "echo"
    ours = {**SESSION, "toolName": "takeback-takeback_undo", "toolArgs": {}}
    assert read("copilot", ours, "preToolUse").does == "reads"


def test_the_reason_is_in_json_and_it_never_fails():
    event = read("copilot", {**SESSION, "toolName": "bash", "toolArgs": {"command": "git push"}}, "preToolUse")
    for decision in (ASK, DENY):
        assert answered("copilot", event, Answer(decision, "because")) == {
            "permissionDecision": "deny",
            "permissionDecisionReason": "because",
        }
    prompt = read("copilot", {**SESSION, "prompt": "go"}, "userPromptSubmitted")
    assert answered("copilot", prompt, Answer(context="takeback took back")) == {
        "additionalContext": "takeback took back"
    }


def test_its_own_hooks_are_found_in_the_project_and_for_the_user(tmp_path):
    deep = tmp_path / "project" / "src"
    deep.mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "home")}
    assert not has_own_hooks(str(deep), environ)
    own = tmp_path / "home" / ".copilot" / "hooks" / "takeback.json"
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    assert has_own_hooks(str(deep), environ)
    assert not has_own_hooks(str(deep), {})
    project = tmp_path / "project" / ".github" / "hooks" / "takeback.json"
    project.parent.mkdir(parents=True)
    project.write_text("{}")
    assert has_own_hooks(str(deep), {})
