"""Gemini CLI's events, as it sent them, and its answers."""

from __future__ import annotations

from takeback.agents.events import ASK, DENY, Answer

from .payloads import answered, read, sent, told

SESSION = {"session_id": "s", "cwd": "/project", "timestamp": "2026-11-15T06:49:55.040Z"}


def test_every_sample_is_read():
    write = ("write_file", "writes", "/project/a.txt", False)
    edit = ("replace", "writes", "/project/a.txt", False)
    shell = ("run_shell_command", "shell", "echo hi > b.txt; cat b.txt", False)
    assert told("gemini") == [
        ("start", "", "", "", False),
        ("prompt", "", "", "", False),
        ("before", *write),
        ("after", *write),
        ("before", *edit),
        ("after", *edit),
        ("before", *shell),
        ("after", *shell),
        ("before", "mcp_echo_echo", "unknown", "", False),
        ("before", "mcp_echo_fail", "unknown", "", False),
        ("after", "mcp_echo_echo", "unknown", "", False),
        ("after", "mcp_echo_fail", "unknown", "", True),
        ("rest", "", "", "", False),
        ("end", "", "", "", False),
    ]


def test_what_is_not_about_calls_is_no_strange_event():
    assert {read("gemini", s.payload).kind for s in sent("gemini") if "Model" in s.event} == {"other"}


def test_a_call_is_named_by_what_is_called():
    events = [read("gemini", each.payload) for each in sent("gemini")]
    keys = [event.key for event in events if event.tool]
    assert keys[0] == keys[1] != keys[2] == keys[3] != keys[4] == keys[5]
    assert keys[6] == keys[8] and keys[7] == keys[9] != keys[6]


def test_mcp_tools_and_ours():
    events = {event.tool: event for event in (read("gemini", each.payload) for each in sent("gemini"))}
    assert events["mcp_echo_echo"].server == "echo"
    ours = {"tool_name": "mcp_takeback_takeback_undo", "mcp_context": {"server_name": "takeback"}}
    assert read("gemini", {**SESSION, "hook_event_name": "BeforeTool", **ours}).does == "reads"


def test_answers():
    shell = {"tool_name": "run_shell_command", "tool_input": {"command": "git push"}}
    event = read("gemini", {**SESSION, "hook_event_name": "BeforeTool", **shell})
    assert answered("gemini", event, Answer()) == {}
    for decision in (ASK, DENY):
        assert answered("gemini", event, Answer(decision, "because")) == {"decision": "deny", "reason": "because"}
    assert answered("gemini", event, Answer(message="⚙ checkpoint")) == {"systemMessage": "⚙ checkpoint"}
    prompt = read("gemini", {**SESSION, "hook_event_name": "BeforeAgent", "prompt": "go"})
    assert answered("gemini", prompt, Answer(context="takeback took back")) == {
        "hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "takeback took back"}
    }
