"""How calls ended of which hooks tell nothing, and when they began: read from what the real Codex, Gemini CLI and
Copilot CLI wrote into their files of a session. For Claude Code see test_claude_transcript.py."""

from __future__ import annotations

import json
import os
import socket
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback import agents
from takeback.agents.dialect import by_content
from takeback.journal.brackets import End

SAMPLES = Path(__file__).parent / "samples" / "transcripts"
OTHERS = ("codex", "gemini", "copilot")
CALL = "call_0_0"


def _sample(agent: str, case: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((SAMPLES / f"{agent}.json").read_text())["transcripts"][case]
    return found


class Written:
    """The file of a session, as the agent left it."""

    def __init__(self, folder: Path, agent: str, case: str) -> None:
        self.agent = agents.load(agent)
        self.lines = _sample(agent, case)
        self.path = folder / "session.jsonl"
        self.path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        self.key = self._key(agent)

    def _key(self, agent: str) -> str:
        if agent == "codex":
            return CALL
        tool, given = "", {}
        for line in self.lines:
            if agent == "gemini" and line.get("toolCalls"):
                tool, given = line["toolCalls"][0]["name"], line["toolCalls"][0]["args"]
            if agent == "copilot" and line["type"] == "tool.execution_start" and not tool:
                tool, given = line["data"]["toolName"], line["data"]["arguments"]
        return by_content(tool, given)

    def end(self, prompted: bool = False, since: float = 0.0) -> End | None:
        return self.agent.end_of(str(self.path), self.key, prompted, since)

    def began(self, since: float = 0.0) -> float:
        return self.agent.began(str(self.path), self.key, since)


def _at(stamp: str) -> float:
    return datetime.fromisoformat(f"2026-11-16T{stamp}Z").timestamp()


@pytest.mark.parametrize(
    ("agent", "case", "at"),
    [
        ("codex", "no at the prompt", "09:46:45.650"),
        ("gemini", "no at the prompt", "09:53:38.884"),
        ("copilot", "Esc at the prompt", "09:53:38.495"),
        ("copilot", "headless, its own prompt", "09:56:19.228"),
    ],
)
def test_a_call_that_was_refused_at_a_prompt_never_ran(tmp_path: Path, agent: str, case: str, at: str):
    end = Written(tmp_path, agent, case).end(prompted=True)
    assert end == End(_at(at), refused=True, unless_at_work=agent == "codex")


@pytest.mark.parametrize(("agent", "at"), [("codex", "09:46:36.982"), ("copilot", "09:55:54.185")])
def test_a_call_that_a_hook_denied_never_ran(tmp_path: Path, agent: str, at: str):
    assert Written(tmp_path, agent, "a hook denies").end() == End(_at(at), refused=True)


def test_a_call_that_was_stopped_ran_until_then(tmp_path: Path):
    assert Written(tmp_path, "gemini", "Esc while it runs").end() == End(_at("09:54:29.917"))
    assert Written(tmp_path, "copilot", "Ctrl-C while it runs").end() == End(_at("09:54:48.401"), untold=True)


def test_what_codex_stops_may_go_on(tmp_path: Path):
    stopped = Written(tmp_path, "codex", "Esc while it runs")
    assert stopped.end() == End(_at("09:47:09.525"), goes_on=True, awaited=True)
    ended = Written(tmp_path, "codex", "Esc while it runs, and it goes on to its end")
    end = ended.end()
    assert end is not None and (end.at, end.goes_on, end.awaited) == (_at("09:50:01.270"), True, False)
    assert end.over > end.at and end.began == pytest.approx(_at("09:50:00.452"), abs=0.3)


def test_what_codex_waits_for_no_longer_is_at_work_until_it_is_over(tmp_path: Path):
    waited = Written(tmp_path, "codex", "it takes longer than the model waits")
    ended = waited.end()
    assert ended is not None and (ended.at, ended.done) == (_at("09:46:42.922"), False), "when Codex went on without it"
    assert (ended.over, ended.awaited) == (pytest.approx(_at("09:46:44.961"), abs=0.05), False)
    waited.path.write_text("".join(json.dumps(line) + "\n" for line in waited.lines[:-1]))
    assert waited.end() == End(_at("09:46:42.922"), goes_on=True, awaited=True)


@pytest.mark.parametrize(
    ("agent", "at", "began"),
    [("codex", "09:47:01.232", "09:47:00.570"), ("copilot", "09:54:05.245", "09:54:04.141"), ("gemini", "", "")],
)
def test_the_time_at_the_prompt_is_not_the_calls(tmp_path: Path, agent: str, at: str, began: str):
    allowed = Written(tmp_path, agent, "approved at the prompt")
    end = allowed.end(prompted=True)
    assert end is not None and end.done and not end.refused
    if not began:
        assert (allowed.began(), end.began) == (0, 0), "it does not say when it was allowed"
        return
    assert end.at == pytest.approx(_at(at), abs=0.001)
    assert allowed.began() == end.began == pytest.approx(_at(began), abs=0.001)


@pytest.mark.parametrize("agent", OTHERS)
def test_a_command_that_failed_is_over(tmp_path: Path, agent: str):
    failed = Written(tmp_path, agent, "a command that fails").end()
    assert failed is not None and failed.at > 0 and not failed.refused and not failed.goes_on


@pytest.mark.parametrize("agent", ["codex", "copilot"])
def test_one_whose_agent_was_killed_has_no_end(tmp_path: Path, agent: str):
    assert Written(tmp_path, agent, "SIGKILL").end() is None


def test_of_calls_alike_it_is_the_last_one(tmp_path: Path):
    refused = Written(tmp_path, "gemini", "no at the prompt")
    assert refused.end(since=_at("09:53:38.000")) is not None
    assert refused.end(since=_at("09:53:39.000")) is None, "that was another one, before"
    again = Written(tmp_path, "copilot", "Esc at the prompt")
    again.path.write_text("".join(json.dumps(line) + "\n" for line in [*again.lines, again.lines[0]]))
    assert again.end(prompted=True) is None, "it was called once more, and is at work"
    first = Written(tmp_path, "copilot", "Esc at the prompt")
    assert first.end(since=_at("09:53:38.000")) == End(_at("09:53:38.495"), refused=True)
    assert first.end(since=_at("09:53:39.000")) is None, "it was called once more, which is not written down yet"
    allowed = Written(tmp_path, "copilot", "approved at the prompt")
    assert allowed.began(since=_at("09:54:04.000")) == pytest.approx(_at("09:54:04.141"), abs=0.001)
    assert allowed.began(since=_at("09:54:06.000")) == 0, "that one was allowed, not this one"
    numbered = Written(tmp_path, "gemini", "no at the prompt")
    numbered.key += ".1"
    assert numbered.end() == End(_at("09:53:38.884"), refused=True)


def test_where_copilots_file_lies():
    copilot = agents.load("copilot")
    assert copilot.transcript_of("s", {"HOME": "/home/ada"}) == "/home/ada/.copilot/session-state/s/events.jsonl"
    assert copilot.transcript_of("s", {"COPILOT_HOME": "/c", "HOME": "/h"}) == "/c/session-state/s/events.jsonl"
    assert copilot.transcript_of("s", {}) == copilot.transcript_of("", {"HOME": "/h"}) == ""


_NAMES = [
    "type",
    "payload",
    "item",
    "id",
    "duration",
    "secs",
    "nanos",
    "exit_code",
    "completed_at_ms",
    "call_id",
    "output",
    "timestamp",
    "toolCalls",
    "name",
    "args",
    "status",
    "result",
    "data",
    "toolCallId",
    "toolName",
    "arguments",
    "permissionRequest",
    "kind",
    "error",
    "code",
    "success",
]
_WORDS = (
    "item_completed", "CommandExecution", CALL, "function_call_output", "aborted by user", "cancelled", "approved",
    "tool.execution_start", "tool.execution_complete", "permission.completed", "permission.requested", "abort", "bash",
)  # fmt: skip
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=6),
    max_leaves=12,
)


@pytest.mark.parametrize("agent", OTHERS)
@given(lines=st.lists(_json, max_size=6), prompted=st.booleans())
def test_no_content_is_too_odd(tmp_path_factory: pytest.TempPathFactory, agent: str, lines: list[Any], prompted: bool):
    session = tmp_path_factory.mktemp("odd") / "session.jsonl"
    session.write_text("\n".join(map(json.dumps, lines)))
    reader = agents.load(agent)
    for key in (CALL, by_content("bash", {})):
        end = reader.end_of(str(session), key, prompted, 0.0)
        assert end is None or isinstance(end, End)
        assert isinstance(reader.began(str(session), key, 0.0), float)


def test_codex_says_in_its_rollout_that_a_command_failed(tmp_path: Path) -> None:
    rollout = tmp_path / "rollout.jsonl"
    for code in (0, 2):
        item = {"type": "CommandExecution", "id": "call_1", "exit_code": code, "duration": {"secs": 1, "nanos": 0}}
        line = {"type": "event_msg", "payload": {"type": "item_completed", "item": item, "completed_at_ms": 5000}}
        rollout.write_text(json.dumps(line) + "\n")
        said = {"hook_event_name": "PostToolUse", "tool_use_id": "call_1", "transcript_path": str(rollout)}
        assert agents.load("codex").has_failed({**said, "tool_response": ""}) is (code != 0)


@pytest.mark.parametrize("agent", ["claude", *OTHERS])
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
def test_only_regular_files_are_read_and_nobody_waits_for_another(tmp_path: Path, agent: str, kind: str) -> None:
    path = tmp_path / "session.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    reader = agents.load(agent)
    assert reader.end_of(str(path), CALL, False, 0.0) is None
    assert reader.began(str(path), CALL, 0.0) == 0.0
