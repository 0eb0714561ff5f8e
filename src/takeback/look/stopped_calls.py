"""Calls that end without an event, as where a person stops one: looked at once their agents have written that down.

    written down ─► all of it is done ─► look ─► closed        asked for again and again, by a process that stays

So what a person does next to the same files is told from what the call did. Where nobody looks, the next look finds a
mixture of both, which is uncertain.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from takeback.journal import brackets
from takeback.journal.brackets import Bracket, End

if TYPE_CHECKING:
    from takeback.workspace_locks import Guarded

PAUSE = 0.2  # seconds between two times that somebody asks: a person who stops a call takes longer to save a file


def written_down(ws: Guarded) -> list[Bracket]:
    """The calls at work whose agents write down how they end."""
    found = brackets.at_work(ws.store.journal)
    return [bracket for bracket in found if bracket.call.transcript and not bracket.caller.is_gone]


class Stops:
    """Those of one workspace, whose caller holds its lock."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[int, int]] = {}  # by the call, how its agent's file was when it said nothing

    def over(self, ws: Guarded) -> dict[str, End]:
        """How calls ended of which no event tells, by the ids of their brackets, once all that they did is done."""
        before, self._read = self._read, {}
        found: dict[str, End] = {}
        for bracket in written_down(ws):
            stamp = _stamp(bracket.call.transcript)
            if stamp != before.get(bracket.id):
                end = ws.observer.end_of(bracket)
                if end is not None and end.untold:
                    if ws.clock() > max(end.at, end.over):
                        found[bracket.id] = end
                    continue
            self._read[bracket.id] = stamp
        return found


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
