"""Codex's rollout of a session: when a command really ran, and how a call ended of which its hooks tell nothing.

    {"type": "event_msg", "payload": {"type": "item_completed",
     "item": {"type": "CommandExecution", "id": …, "duration": {"secs": …, "nanos": …}}, "completed_at_ms": …}}
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": …, "output": "… aborted by user"}}

A command that a person stops by Esc goes on in the background, and so does one that takes longer than its model wanted
to wait: the second line says that Codex has turned to something else, the first that the command is over. One that was
refused has the second line alone, and so has one that was allowed and then stopped, until it is over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from takeback.agents.dialect import table, text
from takeback.journal.brackets import End

from . import transcripts

_ABORTED = "aborted by user"
_BLOCKED = "blocked by PreToolUse hook"
_LARGEST = 1e15
_UNMEASURED = 0.15  # seconds at most that a command has run when Codex begins to measure, in case it ends at once
_GOES_ON = re.compile(r"(^|\n)Process running with session ID ")


def end_of(path: str, key: str, prompted: bool) -> End | None:
    """How the call of that key ended; None if nothing is said of its end. A person may have been asked about it."""
    left: End | None = None
    run: End | None = None
    turned_away = 0.0  # when Codex went on without it
    for line in transcripts.told(path, key):
        payload = table(line, "payload")
        if _is_of(payload, key):
            run = _run(payload)
        elif text(payload, "call_id") == key and text(payload, "type").endswith("_output"):
            at = transcripts.moment(line.get("timestamp"))
            left = _left(payload.get("output"), at, prompted)
            turned_away = at if left.goes_on or _is_aborted(payload.get("output")) else 0.0
    if run is not None and turned_away and turned_away < run.at:  # it went on in the background
        return run._replace(at=turned_away, goes_on=True, over=run.at, untold=True)
    return run or left


def failure(path: str, key: str) -> str:
    """The code with which the command of that key ended, if it is another one than 0, and what it said."""
    for line in transcripts.told(path, key):
        item = table(payload := table(line, "payload"), "item")
        if _is_of(payload, key) and isinstance(code := item.get("exit_code"), int) and code != 0:
            return f"Exit code {code}\n{text(item, 'aggregated_output')}"
    return ""


def began(path: str, key: str) -> float:
    """When a command that is over began to run, after whatever a person was asked; 0 if nothing is said of that."""
    found = (payload for line in transcripts.told(path, key) if _is_of(payload := table(line, "payload"), key))
    return max((_run(payload).began for payload in found), default=0.0)


def _is_of(payload: Mapping[str, Any], key: str) -> bool:
    item = table(payload, "item")
    ended = text(payload, "type") == "item_completed" and text(item, "type") == "CommandExecution"
    return ended and text(item, "id") == key


def _run(payload: Mapping[str, Any]) -> End:
    item = table(payload, "item")
    lasted = table(item, "duration")
    at = _number(payload.get("completed_at_ms")) / 1000
    ran = _number(lasted.get("secs")) + _number(lasted.get("nanos")) / 1e9 + _UNMEASURED
    return End(at, done=item.get("exit_code") == 0, began=max(0.0, at - ran) if lasted else 0.0)


def _left(output: object, at: float, prompted: bool) -> End:
    said = output if isinstance(output, str) else ""
    if _BLOCKED in said:
        return End(at, refused=True)
    if _is_aborted(said):
        return End(at, refused=True, unless_at_work=True) if prompted else End(at, goes_on=True, awaited=True)
    goes_on = _GOES_ON.search(said) is not None
    return End(at, goes_on=goes_on, awaited=goes_on)


def _is_aborted(output: object) -> bool:
    return isinstance(output, str) and output.rstrip().endswith(_ABORTED)


def _number(value: object) -> float:
    """0 where it is none, or none that a time could be."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return float(value) if is_one else 0.0  # type: ignore[arg-type]
