"""Codex's events, as it sent them, and its answers."""

from __future__ import annotations

import pytest

from takeback.agents.events import ASK, DENY, Answer

from .payloads import answered, read, told

SESSION = {"session_id": "s", "turn_id": "t", "cwd": "/project"}


def before(tool: str, **given: object) -> dict[str, object]:
    return {**SESSION, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given, "tool_use_id": "1"}


def test_every_sample_is_read():
    patch = ("apply_patch", "writes", "a.txt", False)
    shell = ("Bash", "shell", "echo hi > b.txt; cat b.txt", False)
    assert told("codex") == [
        ("start", "", "", "", False),
        ("prompt", "", "", "", False),
        ("before", *patch),
        ("after", *patch),
        ("before", *shell),
        ("after", *shell),
        ("before", "mcp__echo__echo", "unknown", "", False),
        ("after", "mcp__echo__echo", "unknown", "", False),
        ("before", "mcp__echo__fail", "unknown", "", False),
        ("rest", "", "", "", False),
        ("end", "", "", "", False),
    ]


def test_a_patch_names_every_path_that_it_touches():
    patch = """*** Begin Patch
*** Add File: new/a.txt
+one
+*** Add File: no.txt
*** Update File: b.txt
*** Move to: moved/b.txt
@@
-x
+y
*** Delete File: c d.txt
*** End Patch
"""
    assert read("codex", before("apply_patch", command=patch)).paths == ("new/a.txt", "b.txt", "moved/b.txt", "c d.txt")
    assert read("codex", before("apply_patch", command="no patch")).does == "unknown"


@pytest.mark.parametrize(
    ("tool", "given", "does", "command"),
    [
        ("shell", {"command": ["bash", "-lc", "make all"]}, "shell", "make all"),
        ("shell", {"command": ["rm", "a b"]}, "shell", "rm 'a b'"),
        ("exec_command", {"cmd": "make"}, "shell", "make"),
        ("exec", {"input": "await tools.shell('x')"}, "unknown", ""),
        ("write_stdin", {"chars": "y"}, "unknown", ""),
        ("update_plan", {"plan": []}, "reads", ""),
    ],
)
def test_tools(tool, given, does, command):
    event = read("codex", before(tool, **given))
    assert (event.does, event.command) == (does, command)


def test_a_missing_after_event_is_made_up_for_by_the_next_call():
    assert read("codex", before("Bash", command="x")).caller.one_at_a_time


def test_a_subagent_is_a_lane_of_its_session_and_asked_by_its_agent():
    inside = {**before("Bash", command="make"), "agent_id": "a1", "agent_type": "worker"}
    assert (read("codex", inside).caller.session, read("codex", inside).caller.lane) == ("s", "a1")
    asked = {**SESSION, "hook_event_name": "UserPromptSubmit", "prompt": "write a file", "agent_id": "a1"}
    assert read("codex", asked).kind == "other"
    assert read("codex", before("spawn_agent", message="write a file")).does == "reads"


def test_a_failed_patch_has_failed():
    after = {**before("apply_patch", command="*** Add File: a"), "hook_event_name": "PostToolUse"}
    assert read("codex", {**after, "tool_response": "Exit code: 1\n"}).failed
    assert not read("codex", {**after, "tool_response": "Exit code: 0\n"}).failed


def test_it_is_never_asked_and_its_context_stands_alone():
    event = read("codex", before("Bash", command="git push"))
    for decision in (ASK, DENY):
        body = answered("codex", event, Answer(decision, "because"))
        assert body["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert body["hookSpecificOutput"]["permissionDecisionReason"] == "because"
    prompt = read("codex", {**SESSION, "hook_event_name": "UserPromptSubmit", "prompt": "go"})
    assert answered("codex", prompt, Answer(context="takeback took back", message="x")) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "takeback took back"}
    }
