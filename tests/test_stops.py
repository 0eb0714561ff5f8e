"""Calls of whose end no event tells: what a person does next to the same files is never told as theirs alone."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime

import pytest

import takeback
from takeback.agents.sessions import claude
from takeback.journal.brackets import Call, Caller

CLAUDE = Caller("claude", "s1")
START = "one\ntwo\nthree\n"


@pytest.fixture(autouse=True)
def dead_at_once(monkeypatch):
    """Commands that are stopped end without delay, so that the tests need not wait for that."""
    monkeypatch.setattr(claude, "_LATE", 0.0)


@pytest.fixture
def ws(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "kept.txt").write_text(START)
    with takeback.open(root, create=True) as opened:
        yield opened


@pytest.fixture
def call(ws, tmp_path):
    """A command that has changed a file and made one, and is still at work."""
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(json.dumps({"type": "assistant", "message": {"content": [{"id": "toolu_1"}]}}) + "\n")
    call = Call("toolu_1", "Bash", "Bash: make", transcript=str(transcript))
    ws.begin_turn(CLAUDE, "build")
    ws.begin_call(CLAUDE, call)
    (ws.root / "kept.txt").write_text(START.replace("one", "ONE"))
    (ws.root / "made.txt").write_text("made\n")
    a_tick()
    return call


def a_tick() -> None:
    time.sleep(0.02)  # files have the time of the kernel's last tick


def is_stopped(call: Call) -> None:
    """As Claude Code writes it down."""
    at = datetime.now(UTC).isoformat()
    result = {"type": "tool_result", "tool_use_id": call.key, "is_error": True}
    lines = (
        {"toolDenialKind": "user-rejected", "message": {"content": [result]}},
        {
            "interruptedMessageId": "m",
            "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]},
        },
    )
    with open(call.transcript, "a") as file:
        file.writelines(json.dumps({"type": "user", "timestamp": at, "promptId": "1", **line}) + "\n" for line in lines)
    a_tick()


def a_person_goes_on(ws) -> None:
    kept = ws.root / "kept.txt"
    kept.write_text(kept.read_text().replace("three", "THREE"))
    (ws.root / "mine.txt").write_text("mine\n")


def whose(ws):
    """(path, who), oldest first, with "?" where it is uncertain."""
    found = ((e, path) for e in ws.history().effects if not e.takeback for path in sorted(e.changes))
    return [(path.decode(), ", ".join(sorted(e.actors)) + "?" * e.uncertain) for e, path in found]


def test_a_file_that_a_person_changes_after_a_stopped_call_is_not_theirs_alone_where_nobody_looked(ws, call):
    is_stopped(call)
    a_person_goes_on(ws)
    ws.checkpoint()
    assert dict(whose(ws)) == {"made.txt": "claude", "kept.txt": "claude?", "mine.txt": "claude?"}
    result = ws.undo()
    assert not result.whole and not (ws.root / "made.txt").exists()
    assert (ws.root / "kept.txt").read_text() == "ONE\ntwo\nTHREE\n" and (ws.root / "mine.txt").exists()


def test_where_a_process_that_stays_looks_once_it_is_written_down_the_two_are_apart(ws, call):
    assert ws.close_stopped() and ws.is_written_down, "it is at work"
    is_stopped(call)
    assert not ws.close_stopped() and not ws.is_written_down
    a_person_goes_on(ws)
    ws.checkpoint()
    assert whose(ws) == [("kept.txt", "claude"), ("made.txt", "claude"), ("kept.txt", ""), ("mine.txt", "")]
    (bracket,) = ws.history().brackets.values()
    assert bracket.closed and bracket.cut
    ws.undo(merge=True)
    assert (ws.root / "kept.txt").read_text() == "one\ntwo\nTHREE\n"


def test_it_looks_only_once_the_command_is_dead(ws, call, monkeypatch):
    monkeypatch.setattr(claude, "_LATE", 60.0)
    is_stopped(call)
    assert ws.close_stopped(), "it may still write"
    monkeypatch.setattr(claude, "_LATE", 0.0)
    assert not ws.close_stopped()


def test_an_end_that_an_event_tells_of_is_left_to_that(ws, call):
    said = {"type": "tool_result", "tool_use_id": call.key, "is_error": True, "content": "Exit code 1"}
    line = {"type": "user", "timestamp": datetime.now(UTC).isoformat(), "message": {"content": [said]}}
    with open(call.transcript, "a") as file:
        file.write(json.dumps(line) + "\n")
    a_tick()
    assert ws.close_stopped(), "its event is on the way"
    ws.end_call(CLAUDE, call, failed=True)
    (bracket,) = ws.history().brackets.values()
    assert bracket.failed and not bracket.cut and not ws.close_stopped()


@pytest.mark.parametrize("has_written", [True, False])
def test_a_call_in_which_its_session_ended_owns_what_it_did_until_then(ws, call, has_written):
    """As where Claude Code is ended by SIGTERM, and writes down nothing but the end of the session."""
    if not has_written:
        os.unlink(call.transcript)
    at = time.time()
    a_tick()
    a_person_goes_on(ws)
    ws.end_turn(CLAUDE, whole_session=True, at=at)
    found = {"made.txt": "claude" if has_written else "claude?", "kept.txt": "claude?", "mine.txt": "claude?"}
    assert dict(whose(ws)) == found
