"""How long the gate may think: a hook that answers too late is not heard, and the call goes on unjudged."""

from __future__ import annotations

import time

SECONDS = 2.0


class TooLate(Exception):
    """There is no time left to read the rest."""


class Deadline:
    def __init__(self, seconds: float = SECONDS) -> None:
        self._end = time.monotonic() + seconds

    def part(self, seconds: float) -> Deadline:
        """One for a part of the work, which ends no later than the whole."""
        made = Deadline(seconds)
        made._end = min(made._end, self._end)
        return made

    def check(self) -> None:
        if time.monotonic() > self._end:
            raise TooLate
