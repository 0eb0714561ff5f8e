"""What the gate stopped, and what a person said to that: in the log, in show and in reports; what waits for a yes."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
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
    assert "⊘" in line and refused[:4] in line and "refused by autopilot: " in line and "claude" in line
    (row,) = cli.ok("log", "kind:gate", "--json").json["rows"]
    assert (row["kind"], row["state"], row["session"], row["prompt"]) == ("gate", "refused", "s1", "push it")
    assert not cli.ok("log", "kind:gate", "state:approved", "--json").json["rows"]
    shown = cli.ok("show", refused).out
    assert "git push origin main" in shown and f"takeback approve {refused}" in shown and "push:" in shown
    assert cli.ok("show", refused, "--json").json["stopped"]["state"] == "refused"
    for words in (["report"], ["report", "--format", "html"]):
        told = cli.ok(*words).out
        assert (
            "What was asked about or refused" in told
            and "git push origin main" in told
            and "refused by autopilot" in told
        )
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
    unknown = "approved, and tried in turn "
    (row,) = gate_rows(cli)
    assert (
        row["state"] == "tried" and unknown in row["summary"] and "whether it was made is not known" in row["summary"]
    )
    asked(cli, "2", "git push origin main", "PostToolUse")
    (row,) = gate_rows(cli)
    (turn,) = row["turns"]
    assert row["state"] == "passed" and f"approved, and made in turn {turn[:8]}: " in row["summary"]
    assert f"in turn {turn[:8]}" in next(line for line in cli.ok("show", refused).out.splitlines() if "passed " in line)
    assert "approved for once" in cli.ok("report").out and f", and made in turn {turn[:8]}, " in cli.ok("report").out


@pytest.mark.parametrize("is_closed", [False, True], ids=["as written", "closed"])
@pytest.mark.parametrize("key", ["no", ""], ids=["by name", "by content"])
def test_a_call_that_was_approved_and_then_refused_at_the_prompt_was_not_made(
    cli: Any, refused: str, is_closed: bool, key: str
) -> None:
    assert cli.typing("approve", refused, answers=[(YES, "yes\n")]).code == 0
    where = {"transcript_path": transcript(cli, key)} if key else {}
    asked_by_claude(cli, "", "", "UserPromptSubmit", prompt="push two", **where)
    assert not asked_by_claude(cli, key, "git push origin main", **where).get("hookSpecificOutput"), "it passes once"
    asked_by_claude(cli, key, "git push origin main", "PermissionRequest", **where)
    if is_closed:
        asked_by_claude(cli, "", "", "Stop", **where)
    state, said = ("declined", "refused by a person at claude's prompt") if key else ("tried", "made is not known")
    (row,) = gate_rows(cli)
    assert row["state"] == state and gate_rows(cli, f"state:{state}") and not gate_rows(cli, "state:passed")
    (told,) = cli.ok("report", "--json").json["gate"]
    assert told["state"] == state and not told["passed"] and told["tried"]
    assert cli.ok("show", row["id"], "--json").json["stopped"]["passed"] is None
    for words in (["log", "kind:gate"], ["show", row["id"]], ["report"], ["report", "--format", "html"]):
        shown = cli.ok(*words).out.replace("&#x27;", "'").replace("&#39;", "'")
        assert said in shown and "and made" not in shown and "takeback approve" not in shown
    assert "nothing waits" in cli.ok("approve").out
    assert cli.typing("approve", refused, answers=[(YES, "yes\n")]).code == 0
    assert gate_rows(cli)[0]["state"] == "approved", "once more"
    asked_by_claude(cli, "yes", "git push origin main")
    asked_by_claude(cli, "yes", "git push origin main", "PostToolUse", tool_response={"stdout": ""})
    assert [row["state"] for row in gate_rows(cli)] == ["passed"]


@pytest.mark.parametrize("is_closed", [False, True], ids=["as written", "closed"])
def test_a_call_that_was_approved_and_that_nobody_could_be_asked_about_was_not_made(
    cli: Any, refused: str, is_closed: bool, monkeypatch: Any
) -> None:
    assert cli.typing("approve", refused, answers=[(YES, "yes\n")]).code == 0
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    written = transcript(cli, "2", permissionDecision={"decision": "reject", "source": "config"}, entrypoint="sdk-cli")
    assert not asked_by_claude(cli, "2", "git push origin main", transcript_path=written).get("hookSpecificOutput")
    if is_closed:
        asked_by_claude(cli, "", "", "Stop", transcript_path=written)
    (row,) = gate_rows(cli)
    assert row["state"] == "refused" and "approved, and then refused because nobody was there" in row["summary"]
    assert "takeback approve" not in cli.ok("show", refused).out and "nothing waits" in cli.ok("approve").out


def test_a_call_that_is_refused_again_is_told_again_and_waits_once(cli: Any, refused: str) -> None:
    told = asked(cli, "2", "git push origin main")["hookSpecificOutput"]
    again = told["permissionDecisionReason"].rpartition("takeback approve ")[2].split()[0]
    assert again != refused and len(gate_rows(cli)) == 2
    asked(cli, "2", "git push origin main")
    assert len(gate_rows(cli)) == 2, "announced twice, it is one call"
    listed = cli.ok("approve").out
    assert f"call {again}" in listed and refused not in listed
    assert cli.typing("approve", refused, answers=[(YES, "yes\n")]).code == 0
    assert "nothing waits" in cli.ok("approve").out, "the same call is approved"
    assert not asked(cli, "3", "git push origin main").get("hookSpecificOutput")
    assert asked(cli, "4", "git push origin main").get("hookSpecificOutput"), "once"


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
    assert "asks you about: Bash: git push origin main" in cli.ok("approve").out.replace("  ", " ")
    event = "PostToolUseFailure" if failed else "PostToolUse"
    asked_by_claude(cli, "1", "git push origin main", event, tool_response={"stdout": ""}, error="no remote")
    assert "nothing waits" in cli.ok("approve").out
    assert cli.ok("approve", "--json").json["calls"] == []
    (row,) = gate_rows(cli)
    assert row["state"] == "allowed" and not gate_rows(cli, "state:asked") and gate_rows(cli, "state:allowed")
    assert cli.ok("show", row["id"], "--json").json["stopped"]["answered"], "it is still on record"
    said = "asked about, and allowed by a person at claude's prompt"
    for words in (["log", "kind:gate"], ["show", row["id"]], ["report"]):
        told = cli.ok(*words).out
        assert said in told and "takeback approve" not in told
    asked_by_claude(cli, "2", "git push origin main")
    assert "git push origin main" in cli.ok("approve").out, "asked about again, it waits again"
    assert [row["state"] for row in gate_rows(cli)] == ["asked", "allowed"]


@pytest.mark.parametrize("closed", [False, True])
def test_a_call_that_was_allowed_and_then_stopped_was_allowed(cli: Any, tmp_path: Path, closed: bool) -> None:
    where = {"transcript_path": str(tmp_path / "t.jsonl")}
    asked_by_claude(cli, "", "", "UserPromptSubmit", **where)
    asked_by_claude(cli, "1", "git push origin main", **where)
    stamp = datetime.fromtimestamp(time.time(), UTC).isoformat()
    said = {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": "no"}
    stop = {"type": "text", "text": "[Request interrupted by user for tool use]"}
    common = {"type": "user", "promptId": "p", "timestamp": stamp, "entrypoint": "cli"}
    lines = (
        {**common, "toolDenialKind": "user-rejected", "message": {"role": "user", "content": [said]}},
        {**common, "interruptedMessageId": "m", "message": {"role": "user", "content": [stop]}},
    )
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if closed:
        asked_by_claude(cli, "", "", "UserPromptSubmit", **where)
        (tmp_path / "t.jsonl").unlink()
    (row,) = gate_rows(cli)
    assert row["state"] == "allowed"
    for words in (["log", "kind:gate"], ["show", row["id"]], ["report"]):
        assert "asked about, and allowed by a person at claude's prompt" in cli.ok(*words).out


def gate_rows(cli: Any, *terms: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cli.ok("log", "kind:gate", *terms, "--json").json["rows"]
    return found


def transcript(cli: Any, key: str, **more: Any) -> str:
    """What Claude Code wrote down of a call that did not run."""
    result = {"type": "tool_result", "is_error": True, "tool_use_id": key, "content": "The user doesn't want …"}
    line = {
        "type": "user", "promptId": "p", "message": {"role": "user", "content": [result]},
        "timestamp": "2026-11-16T09:39:35.896Z", "toolDenialKind": "user-rejected", "entrypoint": "cli", **more,
    }  # fmt: skip
    file = cli.project.parent / f"{key}.jsonl"
    file.write_text(json.dumps(line) + "\n")
    return str(file)


@pytest.mark.parametrize("is_closed", [False, True], ids=["as written", "closed"])
def test_a_no_at_the_agents_own_prompt_is_told_as_the_persons(cli: Any, is_closed: bool) -> None:
    asked_by_claude(cli, "", "", "UserPromptSubmit")
    asked_by_claude(cli, "no", "git push origin main", transcript_path=transcript(cli, "no"))
    if is_closed:
        asked_by_claude(cli, "", "", "Stop")
    (row,) = gate_rows(cli)
    assert row["state"] == "declined"
    assert "nothing waits" in cli.ok("approve").out
    for words in (["log", "kind:gate"], ["show", row["id"]], ["report"]):
        assert "asked about, and refused by a person at claude's prompt" in cli.ok(*words).out
    asked_by_claude(cli, "yes", "git push origin main")
    asked_by_claude(cli, "yes", "git push origin main", "PostToolUse", tool_response={"stdout": ""})
    assert [row["state"] for row in gate_rows(cli)] == ["allowed", "declined"], "each call is told for itself"


@pytest.mark.parametrize("is_closed", [False, True], ids=["as written", "closed"])
def test_where_nobody_is_there_to_be_asked_it_is_refused_and_waits(cli: Any, is_closed: bool, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    asked_by_claude(cli, "", "", "UserPromptSubmit")
    written = transcript(cli, "1", permissionDecision={"decision": "reject", "source": "config"}, entrypoint="sdk-cli")
    told = asked_by_claude(cli, "1", "git push origin main", transcript_path=written)
    assert told["hookSpecificOutput"]["permissionDecision"] == "ask", "a program may answer in the person's place"
    if is_closed:
        asked_by_claude(cli, "", "", "Stop")
    (row,) = gate_rows(cli)
    assert row["state"] == "refused"
    for words in (["log", "kind:gate"], ["show", row["id"]], ["report"]):
        told = cli.ok(*words).out
        assert "refused because nobody was there to be asked" in told and f"takeback approve {row['id'][:8]}" in told
    assert f"call {row['id'][:8]}" in cli.ok("approve").out
    assert cli.typing("approve", row["id"], answers=[(YES, "yes\n")]).code == 0
    assert not asked_by_claude(cli, "2", "git push origin main").get("hookSpecificOutput"), "it passes once"


def test_where_hooks_can_ask_nobody_it_is_refused(cli: Any) -> None:
    payload = {
        "session_id": "c1", "cwd": str(cli.project), "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "git push origin main"}, "tool_use_id": "1",
    }  # fmt: skip
    for key in ("1", "2"):
        payload["tool_use_id"] = key
        answer(Asked("codex", "PreToolUse", json.dumps(payload).encode(), str(cli.project), dict(os.environ)))
    assert [row["state"] for row in gate_rows(cli)] == ["refused", "refused"]
    assert "refused because its hooks can ask nobody: " in cli.ok("log", "kind:gate").out
    assert cli.ok("approve").out.count("codex was refused") == 1


@pytest.mark.parametrize("command", ["TAKEBACK=off make", "takeback unprotect", "takeback approve kxvr"])
def test_what_an_agent_may_never_do_is_on_record_and_cannot_be_approved(cli: Any, command: str) -> None:
    told = asked_by_claude(cli, "1", command)["hookSpecificOutput"]
    assert (
        told["permissionDecision"] == "deny"
        and "takeback approve " not in told["permissionDecisionReason"].split(":")[-1]
    )
    (row,) = gate_rows(cli)
    assert row["state"] == "refused" and command in row["summary"]
    for words in (["log", "kind:gate"], ["show", row["id"]], ["report"]):
        said = cli.ok(*words).out
        assert "for an agent may never do this to its own undo" in said and f"approve {row['id'][:8]}" not in said
    assert "nothing waits" in cli.ok("approve").out
    ran = cli.typing("approve", row["id"], answers=[])
    assert ran.code == 4 and "do it yourself" in ran.out


def test_listing_what_waits_plans_nothing_anew(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    id = cli.ok("record", "command", "--did", "made it", "--json", "--", "true").json["effect"]["id"]
    first = cli.ok("plan", "revert", id, "--json").json["plan"]["id"]
    plan = cli.ok("plan", "revert", id, "--json").json["plan"]["id"]
    monkeypatch.setattr("takeback.apply.takebacks.Takebacks.plan", None)
    assert [each["id"] for each in cli.ok("approve", "--json").json["plans"]] == [plan], first
