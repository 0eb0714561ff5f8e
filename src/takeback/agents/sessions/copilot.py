"""Copilot CLI's file of a session's events: when a person has answered its question about a call, and how one ended of
which its hooks tell nothing.

    {"type": "tool.execution_start", "data": {"toolCallId": …, "toolName": …, "arguments": …}}
    {"type": "permission.completed", "data": {"toolCallId": …, "result": {"kind": "approved"}}}
    {"type": "tool.execution_complete", "data": {"toolCallId": …, "success": …}}
    {"type": "abort"}                                                                      a person stopped all of it

Calls have names there that its hooks never tell, so that tool and input have to say which it is; of several alike it is
the last one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from takeback.agents.dialect import is_by_content, table, text
from takeback.journal.brackets import End

from . import transcripts

_START, _ANSWER, _OVER, _STOP = "tool.execution_start", "permission.completed", "tool.execution_complete", "abort"
_ASKED = "permission.requested"


def file_of(session: str, environ: Mapping[str, str]) -> str:
    home = environ.get("COPILOT_HOME") or (f"{environ['HOME']}/.copilot" if environ.get("HOME") else "")
    return os.path.join(home, "session-state", session, "events.jsonl") if home and session else ""


def end_of(path: str, key: str, since: float) -> End | None:
    """How the call ended that was announced under that key at some moment; None if nothing is said of its end."""
    end = _last(path, key)[0]
    return end if end is not None and end.at >= since else None  # an earlier one was of another call, just like it


def began(path: str, key: str, since: float) -> float:
    """When a person allowed the call that was announced at some moment; 0 if nobody was asked about it."""
    allowed = _last(path, key)[1]
    return allowed if allowed >= since else 0.0


def _last(path: str, key: str) -> tuple[End | None, float]:
    end: End | None = None
    name, allowed, waits = "", 0.0, False
    for line in transcripts.told(path, _START, _ASKED, _ANSWER, _OVER, f'"{_STOP}"'):
        kind, data, at = text(line, "type"), table(line, "data"), transcripts.moment(line.get("timestamp"))
        if kind == _START and is_by_content(key, text(data, "toolName"), table(data, "arguments")):
            end, name, allowed, waits = None, text(data, "toolCallId"), 0.0, False
        elif not name or end is not None:
            continue
        elif kind == _STOP:
            end = End(at, refused=waits, began=allowed, untold=True)
        elif name not in (text(data, "toolCallId"), text(table(data, "permissionRequest"), "toolCallId")):
            continue
        elif kind == _ASKED:
            waits = True
        elif kind == _ANSWER and text(table(data, "result"), "kind").startswith("approved"):
            allowed, waits = at, False
        elif kind == _ANSWER:
            end = End(at, refused=True)
        elif kind == _OVER:
            end = _over(data, at, allowed)
    return end, allowed


def _over(data: Mapping[str, Any], at: float, allowed: float) -> End:
    if text(table(data, "error"), "code") == "denied":
        return End(at, refused=True)
    return End(at, done=data.get("success") is True, began=allowed)
