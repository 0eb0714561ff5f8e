"""Which prompt of a session a turn is, and what is said where its program cannot help."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from takeback.agents.sessions.conversation import WAYS
from takeback.agents.sessions.forgetting import CAN, Asked, Prompt, forget, place_of
from takeback.errors import TakebackError


def asked(agent: str = "claude", prompt: str = "add a login", at: float = 1000.0) -> Asked:
    return Asked(agent, "0123abcd-0000-4000-8000-000000000000", prompt, at)


@pytest.mark.parametrize(
    ("prompts", "meant"),
    [
        ([("a", "add a login", 1000.2)], 0),
        ([("a", "add a login", 900.5), ("b", "add a login", 1000.1)], 1),
        ([("a", "add a login\nwith a form", 1003.0), ("b", "go on", 1000.0)], 0),
        ([("a", "go on", 1001.0), ("b", "other", 1090.0)], 0),
    ],
)
def test_the_prompt_is_found_by_its_words_and_its_time(prompts: list[tuple[str, str, float]], meant: int) -> None:
    assert place_of([Prompt(*each) for each in prompts], asked()) == meant


def test_a_prompt_of_another_time_is_not_taken_for_it() -> None:
    with pytest.raises(TakebackError, match="not found"):
        place_of([Prompt("a", "add a login", 5000.0)], asked())


@pytest.mark.parametrize("agent", sorted(set(WAYS) - set(CAN)))
def test_where_only_the_person_can_that_is_said_with_how(agent: str, tmp_path: Path) -> None:
    found = forget(asked(agent), os.environ, tmp_path)
    assert found.why and not found.new_session and found.by_hand.startswith("in ")


@pytest.mark.parametrize("agent", CAN)
def test_a_program_that_is_not_there_is_named(agent: str, tmp_path: Path) -> None:
    found = forget(asked(agent), {"PATH": str(tmp_path)}, tmp_path)
    assert found.why == f"{agent} is not on PATH" and found.by_hand


@pytest.mark.parametrize("agent", CAN)
def test_a_program_that_answers_nonsense_changes_nothing_and_is_told(agent: str, tmp_path: Path) -> None:
    program = tmp_path / agent
    program.write_text("#!/bin/sh\necho '[1, 2]'\n")
    program.chmod(0o755)
    session = asked().session
    transcript = tmp_path / "home/.claude/projects/p" / f"{session}.jsonl"
    transcript.parent.mkdir(parents=True)
    entry = {"type": "user", "message": {"content": "add a login"}, "parentUuid": "u", "uuid": "v"}
    transcript.write_text(json.dumps({**entry, "timestamp": "1970-01-01T00:16:40Z"}) + "\n")
    environ = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path / "home")}
    found = forget(asked(agent), environ, tmp_path)
    assert found.why and not found.new_session and not found.command


@pytest.mark.parametrize("message", ["add a login", {"content": ["add a login"]}, [1]])
def test_a_transcript_of_another_shape_is_told_and_raises_nothing(tmp_path: Path, message: object) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    transcript = tmp_path / ".claude/projects/p" / f"{asked().session}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps({"type": "user", "message": message, "timestamp": "1970-01-01T00:16:40Z"}) + "\n")
    found = forget(asked(), {"PATH": str(tmp_path), "HOME": str(tmp_path)}, tmp_path)
    assert found.why == "claude answered otherwise than it should" and found.by_hand and not found.new_session


def test_a_session_that_is_no_id_is_no_path(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = forget(Asked("claude", "../../etc/x", "p", 1.0), {"PATH": str(tmp_path), "HOME": str(tmp_path)}, tmp_path)
    assert "is no session" in found.why
