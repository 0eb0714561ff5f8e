"""What the gate stopped, and what a person said to that: in the log, in show and in reports; what waits for a yes."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from takeback.surfaces.hook import Asked, answer

YES = "Type yes to let exactly this pass once"


def asked(cli: Any, key: str, command: str, event: str = "PreToolUse", session: str = "s1") -> dict[str, Any]:
    """What the hook answers to a call of Claude Code, which is not this process: a person can approve here."""
    payload = {
        "session_id": session, "transcript_path": "/t", "cwd": str(cli.project), "hook_event_name": event,
        "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": key, "prompt": "push it",
    }  # fmt: skip
    environ = {**os.environ, "TAKEBACK_AUTOPILOT": "1"}
    reply = answer(Asked("claude", event, json.dumps(payload).encode(), str(cli.project), environ))
    found: dict[str, Any] = json.loads(reply.out) if reply.out else {}
    return found


@pytest.fixture
def refused(cli: Any) -> str:
    """A push of an agent that autopilot refused; its id."""
    asked(cli, "", "", "UserPromptSubmit")
    told = asked(cli, "1", "git push origin main")
    reason = told["hookSpecificOutput"]["permissionDecisionReason"]
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
    return str(reason.rpartition("takeback approve ")[2].split()[0])


def test_a_refusal_is_in_the_log_in_show_and_in_the_report(cli: Any, refused: str) -> None:
    line = next(line for line in cli.ok("log").out.splitlines() if "git push" in line)
    assert "⊘" in line and refused[:4] in line and "refused: " in line and "claude" in line
    (row,) = cli.ok("log", "kind:gate", "--json").json["rows"]
    assert (row["kind"], row["state"], row["session"], row["prompt"]) == ("gate", "refused", "s1", "push it")
    assert not cli.ok("log", "kind:gate", "state:approved", "--json").json["rows"]
    shown = cli.ok("show", refused).out
    assert "git push origin main" in shown and f"takeback approve {refused}" in shown and "push:" in shown
    assert cli.ok("show", refused, "--json").json["stopped"]["state"] == "refused"
    for words in (["report"], ["report", "--format", "html"]):
        told = cli.ok(*words).out
        assert "What was stopped" in told and "git push origin main" in told and "refused" in told
    (told,) = cli.ok("report", "--json").json["gate"]
    assert (told["state"], told["agent"], told["approved"]) == ("refused", "claude", 0)
    asked(cli, "", "", "UserPromptSubmit", session="s2")
    assert len(cli.ok("report", "--session", "s1", "--json").json["gate"]) == 1
    assert not cli.ok("report", "--session", "s2", "--json").json["gate"]


def test_an_approval_and_its_use_are_told_too(cli: Any, refused: str) -> None:
    listed = cli.ok("approve").out
    assert f"call {refused}" in listed and "claude was refused" in listed and "git push origin main" in listed
    assert cli.typing("approve", refused, answers=[(YES, "yes\n")]).code == 0
    assert "nothing waits" in cli.ok("approve").out
    assert cli.ok("log", "kind:gate", "--json").json["rows"][0]["state"] == "approved"
    assert "approved" in cli.ok("show", refused).out and "takeback approve" not in cli.ok("show", refused).out
    assert not asked(cli, "2", "git push origin main").get("hookSpecificOutput"), "it passes once"
    assert cli.ok("log", "kind:gate", "--json").json["rows"][0]["state"] == "passed"
    assert "approved for once" in cli.ok("report").out and ", and made " in cli.ok("report").out


def test_approve_without_an_id_lists_saved_plans_that_wait(cli: Any) -> None:
    assert "nothing waits for an approval" in cli.ok("approve").out
    id = cli.ok("record", "command", "--did", "made it", "--json", "--", "true").json["effect"]["id"]
    plan = cli.ok("plan", "revert", id, "--json").json["plan"]["id"]
    assert f"plan {plan[:8]}" in cli.ok("approve").out and "1 step outside the files" in cli.ok("approve").out
    assert [each["id"] for each in cli.ok("approve", "--json").json["plans"]] == [plan]
    cli.typing("approve", plan, answers=[("Type yes to do", "yes\n")])
    assert "nothing waits" in cli.ok("approve").out, "it is approved"
    cli.ok("apply", plan)
    assert "nothing waits" in cli.ok("approve").out, "it is done"


def asked_by_claude(cli: Any, key: str, command: str, event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    """The same where no autopilot refuses: Claude Code asks its person."""
    payload = {
        "session_id": "s1", "transcript_path": "/t", "cwd": str(cli.project), "hook_event_name": event,
        "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": key, "prompt": "push it", **more,
    }  # fmt: skip
    reply = answer(Asked("claude", event, json.dumps(payload).encode(), str(cli.project), dict(os.environ)))
    found: dict[str, Any] = json.loads(reply.out) if reply.out else {}
    return found


@pytest.mark.parametrize("failed", [False, True])
def test_a_call_that_was_answered_in_the_agent_itself_waits_no_longer(cli: Any, failed: bool) -> None:
    asked_by_claude(cli, "", "", "UserPromptSubmit")
    told = asked_by_claude(cli, "1", "git push origin main")
    assert told["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert "was asked about: Bash: git push origin main" in cli.ok("approve").out.replace("  ", " ")
    event = "PostToolUseFailure" if failed else "PostToolUse"
    asked_by_claude(cli, "1", "git push origin main", event, tool_response={"stdout": ""}, error="no remote")
    assert "nothing waits" in cli.ok("approve").out
    assert cli.ok("approve", "--json").json["calls"] == []
    (row,) = cli.ok("log", "kind:gate", "--json").json["rows"]
    assert cli.ok("show", row["id"], "--json").json["stopped"]["answered"], "it is still on record"
    asked_by_claude(cli, "2", "git push origin main")
    assert "git push origin main" in cli.ok("approve").out, "asked about again, it waits again"


def test_listing_what_waits_plans_nothing_anew(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    id = cli.ok("record", "command", "--did", "made it", "--json", "--", "true").json["effect"]["id"]
    first = cli.ok("plan", "revert", id, "--json").json["plan"]["id"]
    plan = cli.ok("plan", "revert", id, "--json").json["plan"]["id"]
    monkeypatch.setattr("takeback.takebacks.Takebacks.plan", None)
    assert [each["id"] for each in cli.ok("approve", "--json").json["plans"]] == [plan], first
