"""What happens, as it happens: server-sent events that say that there is more to see, and how far a take-back is.

event: changed    data: {"head": 1234}                       something was journaled: load the page again
event: progress   data: {"done": 3, "of": 12}                 a plan is being applied; `done` equals `of` at its end
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from threading import Lock

import anyio
from anyio import to_thread

from ...errors import TakebackError
from ...timeline import Timeline

_EVERY = 0.4  # seconds
_BEAT = 15.0  # seconds after which something is sent, so that who has gone is noticed


class Doing:
    """How far the take-back is that somebody has begun here; written by the thread that does it."""

    def __init__(self) -> None:
        self.of = 0
        self.done = 0
        self._under_way = 0  # two tabs may have begun one each
        self._lock = Lock()

    def begin(self, steps: int) -> None:
        with self._lock:
            self.of, self.done = (steps, 0) if not self._under_way else (self.of + steps, self.done)
            self._under_way += 1

    def told(self, steps: object, results: object) -> None:
        """As a workspace tells it: without results before the steps are done, with them after."""
        if results:
            self.done = min(self.of, self.done + len(results))  # type: ignore[arg-type]

    def end(self) -> None:
        with self._lock:
            self._under_way -= 1
            self.done = self.done if self._under_way else self.of

    @property
    def is_under_way(self) -> bool:
        return self._under_way > 0

    @property
    def state(self) -> tuple[int, int]:
        return self.done, self.of


async def events(timeline: Timeline, seen: int, doing: Doing, is_ending: Callable[[], bool]) -> AsyncIterator[str]:
    """Endless, until the browser goes or we do."""
    yield "retry: 2000\n\n"
    told, quiet = doing.state, 0.0
    while not is_ending():
        try:
            head = await to_thread.run_sync(timeline.head)
        except TakebackError:
            return  # closed, or damaged: the page itself will say so
        if head != seen:
            seen, quiet = head, 0.0
            yield _event("changed", {"head": head})
        if doing.state != told:
            told, quiet = doing.state, 0.0
            yield _event("progress", {"done": told[0], "of": told[1]})
        await anyio.sleep(_EVERY)
        quiet += _EVERY
        if quiet >= _BEAT:
            quiet = 0.0
            yield ": still here\n\n"


def _event(name: str, data: dict[str, int]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
