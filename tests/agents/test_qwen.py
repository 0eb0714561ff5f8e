"""Qwen Code's events, as it sent them, and its answers."""

from __future__ import annotations

from takeback.agents.events import ASK, DENY, Answer

from .payloads import answered, read, sent, told

SESSION = {"session_id": "s", "cwd": "/project"}


def test_every_sample_is_read():
    write = ("write_file", "writes", "/project/a.txt", False)
    edit = ("edit", "writes", "/project/a.txt", False)
    shell = ("run_shell_command", "shell", "echo hi > b.txt; cat b.txt", False)
    assert told("qwen") == [
        ("start", "", "", "", False),
        ("prompt", "", "", "", False),
        ("before", *write),
        ("after", *write),
        ("before", *edit),
        ("after", *edit),
        ("before", *shell),
        ("after", *shell),
        ("after", "run_shell_command", "shell", "echo oops >&2; exit 3", True),
        ("before", "mcp__echo__echo", "unknown", "", False),
        ("after", "mcp__echo__echo", "unknown", "", False),
        ("before", "mcp__echo__fail", "unknown", "", False),
        ("after", "mcp__echo__fail", "unknown", "", True),
        ("rest", "", "", "", False),
    ]


def test_calls_pair_by_their_name():
    keys = [event.key for event in (read("qwen", each.payload) for each in sent("qwen")) if event.tool]
    assert keys[0] == keys[1] == "toolu_1794725414566_iuzvcw77w"


def test_an_empty_prompt_begins_no_turn():
    asked = {**SESSION, "hook_event_name": "UserPromptSubmit"}
    assert read("qwen", {**asked, "prompt": "go"}).kind == "prompt"
    assert read("qwen", {**asked, "prompt": ""}).kind == "other"
    assert read("qwen", asked).kind == "other"


def test_answers():
    shell = {"tool_name": "run_shell_command", "tool_input": {"command": "git push"}, "tool_use_id": "1"}
    event = read("qwen", {**SESSION, "hook_event_name": "PreToolUse", **shell})
    for decision in (ASK, DENY):
        body = answered("qwen", event, Answer(decision, "because"))
        assert body["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert body["hookSpecificOutput"]["permissionDecisionReason"] == "because"
    prompt = read("qwen", {**SESSION, "hook_event_name": "UserPromptSubmit", "prompt": "go"})
    body = answered("qwen", prompt, Answer(context="takeback took back"))
    assert body["hookSpecificOutput"]["additionalContext"] == "takeback took back"
