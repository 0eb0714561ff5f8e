"""Cursor's events, as its documentation has them, and its answers."""

from __future__ import annotations

import pytest

from takeback.agents.events import ASK, DENY, Answer

from .payloads import answered, read

SESSION = {"conversation_id": "c", "generation_id": "g", "workspace_roots": ["/project"], "cursor_version": "2"}


def sent(name: str, **more: object) -> dict[str, object]:
    return {**SESSION, "hook_event_name": name, **more}


@pytest.mark.parametrize(
    ("payload", "kind", "does", "named"),
    [
        (sent("beforeSubmitPrompt", prompt="go"), "prompt", "unknown", ""),
        (sent("preToolUse", tool_name="Shell", tool_input={"command": "make"}), "before", "shell", "make"),
        (
            sent("preToolUse", tool_name="Write", tool_input={"file_path": "/project/a"}),
            "before",
            "writes",
            "/project/a",
        ),
        (sent("preToolUse", tool_name="Read", tool_input={"path": "/project/a"}), "before", "reads", ""),
        (sent("preToolUse", tool_name="MCP:drop", tool_input={}), "before", "unknown", ""),
        (sent("postToolUse", tool_name="Shell", tool_input={"command": "make"}), "after", "shell", "make"),
        (sent("beforeShellExecution", command="make", cwd="/project"), "before", "shell", "make"),
        (sent("afterFileEdit", file_path="/project/a", edits=[]), "after", "writes", "/project/a"),
        (sent("beforeMCPExecution", tool_name="drop", tool_input="{}", url="https://x"), "before", "unknown", ""),
        (sent("stop", status="completed"), "rest", "unknown", ""),
    ],
)
def test_events(payload, kind, does, named):
    event = read("cursor", payload)
    assert (event.kind, event.does, event.command or " ".join(event.paths)) == (kind, does, named)
    assert event.caller.session == "c"
    assert event.cwd == "/project"


def test_each_call_is_told_of_by_one_event():
    """Its events for shells, servers and edits come beside the general ones: with both, a call would be two."""
    from takeback.agents import load
    from takeback.agents.setup.cursor import EVENTS

    kinds = [load("cursor").events[event] for event in EVENTS]
    assert kinds.count("before") == 1
    assert [event for event in EVENTS if load("cursor").events[event] == "after"] == [
        "postToolUse",
        "postToolUseFailure",
    ]


def test_a_shell_pairs_by_its_command():
    before = read("cursor", sent("beforeShellExecution", command="make", cwd="/project"))
    after = read("cursor", sent("afterShellExecution", command="make", cwd="/project", output="x", duration=3))
    assert before.key == after.key


def test_answers():
    event = read("cursor", sent("preToolUse", tool_name="Shell", tool_input={"command": "git push"}))
    for decision in (ASK, DENY):
        assert answered("cursor", event, Answer(decision, "because")) == {
            "permission": "deny",
            "user_message": "because",
            "agent_message": "because",
        }
    assert answered("cursor", event, Answer(message="⚙ checkpoint")) == {}
