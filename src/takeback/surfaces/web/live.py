"""What happens, as it happens: server-sent events that say that there is more to see, and how far a take-back is.

event: changed    data: {"head": 1234}                       something was journaled: load the page again
event: progress   data: {"done": 3, "of": 12}                 a plan is being applied; `done` equals `of` at its end
event: failed     data: {"message": "the journal is …"}       it cannot be read: nothing more comes
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

import anyio
from anyio import to_thread

from takeback.errors import Locked, TakebackError
from takeback.show.timeline import Timeline

_EVERY = 0.4  # seconds
_BEAT = 15.0  # seconds after which something is sent, so that who has gone is noticed


class Doing:
    """What somebody has confirmed here and is being done, and how far; written by the threads that do it."""

    def __init__(self) -> None:
        self.of = 0
        self.done = 0
        self._under_way: list[str] = []  # two tabs may have begun one each
        self._lock = Lock()

    @contextmanager
    def begun(self, what: str, steps: int) -> Iterator[None]:
        with self._lock:
            self.of, self.done = (steps, 0) if not self._under_way else (self.of + steps, self.done)
            self._under_way.append(what)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.remove(what)
                self.done = self.done if self._under_way else self.of

    def told(self, steps: Sequence[object], results: Sequence[object] | None) -> None:
        """As a workspace tells it: without results before the steps are done, with them after."""
        if results:
            with self._lock:
                self.done = min(self.of, self.done + len(results))

    @property
    def under_way(self) -> str:
        """What it is, as "a take-back"; empty if nothing is."""
        return next(iter(self._under_way), "")

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
        except Locked:
            head = seen  # another look will do
        except TakebackError as error:
            yield _event("failed", {"message": f"{error.message} → {error.hint}"})
            return
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


def _event(name: str, data: Mapping[str, int | str]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
