"""Claude Code's events, as it sent them, and its answers."""

from __future__ import annotations

import pytest

from takeback.agents.claude import is_another
from takeback.agents.events import ASK, DENY, Answer
from takeback.model.calls import Caller

from .payloads import answered, read, sent, told

SESSION = {"session_id": "s", "transcript_path": "/t", "cwd": "/project"}


def before(tool: str, **given: object) -> dict[str, object]:
    return {**SESSION, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given, "tool_use_id": "1"}


def test_every_sample_is_read():
    write = ("Write", "writes", "/project/a.txt", False)
    edit = ("Edit", "writes", "/project/a.txt", False)
    shell = ("Bash", "shell", "echo hi > b.txt; cat b.txt", False)
    assert told("claude") == [
        ("start", "", "", "", False),
        ("prompt", "", "", "", False),
        ("before", *write),
        ("after", *write),
        ("before", "Read", "reads", "", False),
        ("after", "Read", "reads", "", False),
        ("before", *edit),
        ("after", *edit),
        ("before", *shell),
        ("after", *shell),
        ("after", "Bash", "shell", "echo oops >&2; exit 3", True),
        ("before", "mcp__echo__echo", "unknown", "", False),
        ("after", "mcp__echo__echo", "unknown", "", False),
        ("before", "mcp__echo__fail", "unknown", "", False),
        ("after", "mcp__echo__fail", "unknown", "", True),
        ("rest", "", "", "", False),
        ("end", "", "", "", False),
    ]


def test_a_call_has_the_same_name_before_and_after():
    keys = [read("claude", each.payload).key for each in sent("claude") if "tool_use_id" in each.payload]
    assert keys[:4] == ["toolu_0000_00"] * 2 + ["toolu_0001_00"] * 2


@pytest.mark.parametrize(
    "prompt, kind",
    [
        ("<task-notification>\n<task-id>b1</task-id>\n</task-notification>", "other"),
        ("\n<task-notification><status>failed</status></task-notification>\nRead the output file", "other"),
        ("<system-reminder>\nA task ended.\n</system-reminder>\n", "other"),
        ("<local-command-stdout>ok</local-command-stdout>", "other"),
        ("<system-reminder>\nThe date changed.\n</system-reminder>\nfix the login", "prompt"),
        ("<system-reminder> is a tag: what does it do?", "prompt"),
        ("<command-name>/review</command-name>", "prompt"),
        ("/review the last commit", "prompt"),
        ("what is a <task-notification>?", "prompt"),
        ("", "prompt"),
    ],
)
def test_only_a_person_begins_a_turn(prompt: str, kind: str):
    assert read("claude", {**SESSION, "hook_event_name": "UserPromptSubmit", "prompt": prompt}).kind == kind


def test_session_prompt_process_and_subagent():
    event = read("claude", sent("claude")[1].payload)
    assert (event.prompt, event.cwd) == ("go", "/project")
    assert event.caller == Caller("claude", "00000000-0000-4000-8000-000000000000", "", 7, 9)
    inside = read("claude", {**before("Write", file_path="/project/x"), "agent_id": "a1", "agent_type": "Explore"})
    assert inside.caller.lane == "a1"
    assert read("claude", {**SESSION, "hook_event_name": "SubagentStop", "agent_id": "a1"}).kind == "rest"
    assert read("claude", {**SESSION, "hook_event_name": "SubagentStop"}).kind == "other"


@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob", "WebFetch", "WebSearch", "TodoWrite", "Task", "Agent"])
def test_what_reads_is_left_alone(tool):
    assert read("claude", before(tool, file_path="/project/x", prompt="do it")).does == "reads"


@pytest.mark.parametrize("tool", ["Skill", "NewTool", "mcp__db__drop"])
def test_what_is_unknown_may_do_anything(tool):
    assert read("claude", before(tool, path="x")).does == "unknown"


def test_a_write_that_names_nothing_and_a_shell_without_a_command_may_do_anything():
    assert read("claude", before("Write", content="x")).does == "unknown"
    assert read("claude", before("Bash")).does == "unknown"


def test_an_annotated_mcp_tool_reads_and_so_do_our_own():
    annotated = {**before("mcp__db__list"), "mcp_server": {"name": "db", "annotations": {"readOnlyHint": True}}}
    assert read("claude", annotated).does == "reads"
    assert read("claude", before("mcp__takeback__takeback_undo")).does == "reads"
    assert read("claude", before("mcp__plugin_takeback_takeback__takeback_undo")).does == "reads"
    assert read("claude", before("mcp__takeback__delete_everything")).does == "unknown"
    assert read("claude", before("mcp__takeback_evil__takeback_undo")).does == "unknown"


def test_a_session_that_was_compacted_goes_on():
    assert read("claude", {**SESSION, "hook_event_name": "SessionStart", "source": "compact"}).kind == "other"
    assert read("claude", {**SESSION, "hook_event_name": "SessionStart", "source": "resume"}).kind == "start"


def test_answers():
    event = read("claude", before("Bash", command="git push"))
    assert answered("claude", event, Answer()) == {}
    assert answered("claude", event, Answer(message="⚙ checkpoint")) == {"systemMessage": "⚙ checkpoint"}
    for decision in (DENY, ASK):
        assert answered("claude", event, Answer(decision, "because")) == {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": decision,
                "permissionDecisionReason": "because",
            }
        }
    prompt = read("claude", {**SESSION, "hook_event_name": "UserPromptSubmit", "prompt": "go"})
    assert answered("claude", prompt, Answer(context="takeback took back")) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "takeback took back"}
    }


def test_other_programs_that_run_its_hooks_are_told_from_it():
    assert not any(is_another(each.payload) for each in sent("claude"))
    assert all(is_another(each.payload) for each in sent("copilot"))
    assert is_another({"session_id": "s", "timestamp": "2026", "tool_name": "Write", "transcript_path": "/t"})
