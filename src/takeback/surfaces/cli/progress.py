"""One line on standard error while something takes long: a bar, how much, how fast, and how long it may still take.

    ████████░░░░░░░░░░░░ captured 41,210 of 98,400 paths · 9,800/s · 6s left

Only on a terminal, drawn at most ten times a second, not at all for what is done at once, and wiped at the end.
"""

from __future__ import annotations

import os
from mmap import mmap
from struct import Struct
from time import monotonic
from typing import TYPE_CHECKING

from takeback.model.effects import STATES
from takeback.surfaces.wording.text import clip, safe
from takeback.text.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.model.effects import Result, Step

    from .terminal import Terminal

_BAR = 20
_PATIENCE = 0.3  # seconds before the first line
_OFTEN = 0.1  # and between two
_KNOWN = 1.0  # after which how long it takes can be told
_COUNT = Struct("<Q")
_LOOKING = "looking at"  # the tree, before a take-back: how many paths that are is not known


class Progress:
    """Counts what is done. A second process of ours counts through `elsewhere`, and draws nothing."""

    def __init__(self, terminal: Terminal, doing: str, total: int = 0, unit: str = "") -> None:
        self._terminal = terminal
        self._total, self._fixed = total, bool(total)
        self._next = monotonic() + _PATIENCE
        self._process = os.getpid()
        self._theirs = mmap(-1, _COUNT.size)  # shared with whoever is forked
        self._drawn = self._applies = False
        self._counts = True  # not while a step is under way that is counted when it has ended
        self._begin(doing, unit)
        self._runs = False  # until something is counted: it may wait for others first, which is not its speed

    def _begin(self, doing: str, unit: str) -> None:
        self._doing, self._unit = doing, unit
        self._count = self._done = 0
        self._theirs[:] = _COUNT.pack(0)
        self._run()

    def _run(self) -> None:
        """From here on its speed is measured."""
        self._runs, self._began, self._before = True, monotonic(), self._counted()

    def __call__(self, count: int) -> None:
        if os.getpid() != self._process:
            self.elsewhere(count)
            return
        if self._counts:
            self._count += count
        if not self._runs:
            self._run()
        if monotonic() >= self._next:
            self._draw()

    def elsewhere(self, count: int) -> None:
        """Counts in a forked process, of which there is one at a time."""
        (known,) = _COUNT.unpack(self._theirs[:])
        self._theirs[:] = _COUNT.pack(known + count)

    def told(self, steps: Sequence[Step], results: Sequence[Result] | None) -> None:
        """Steps of a take-back begin, or have ended. Those of files are counted one by one, too; looks at the tree
        after a step that may have changed it are not."""
        if results is not None:
            self._counts = False
            self._done += len(steps)
            self._count = self._done
            self._theirs[:] = _COUNT.pack(0)
            return
        if not self._applies:  # until now the tree was looked at
            self._applies = True
            self._begin("taking back", "steps")
        if not self._fixed:
            self._total += len(steps)
        self._counts = bool(steps) and steps[0].domain == "files"
        if steps and steps[0].domain not in STATES:
            self._doing = f"taking back ({safe(steps[0].domain)})"
            self._draw()  # it may take long to answer
        else:
            self._doing = "taking back"

    def wipe(self) -> None:
        """Takes the line away, until something more is counted."""
        if self._drawn and os.getpid() == self._process:
            self._terminal.err.write("\r\x1b[K")
            self._terminal.err.flush()
            self._drawn = False

    # -- drawing -------------------------------------------------------------

    def _draw(self) -> None:
        self._next = monotonic() + _OFTEN
        self._drawn = True  # before it is so: Ctrl-C may come in between
        self._terminal.err.write(f"\r\x1b[K{clip(self.line(monotonic()), self._terminal.err_width - 1)}")
        self._terminal.err.flush()

    def line(self, now: float) -> str:
        count = self._counted()
        total = 0 if self._fixed and not self._applies and self._doing == _LOOKING else self._total
        if count > total:  # more than anybody knew of: how much is left, nobody knows
            total = 0
        bar = ""
        if total:
            filled = _BAR * count // total
            bar = f"{'█' * filled}{'░' * (_BAR - filled)} "
        of = f" of {self._amount(total)}" if total else ""
        parts = [f"{bar}{self._doing} {self._amount(count)}{of}{self._of_what(total or count)}"]
        elapsed, since = now - self._began, count - self._before
        if elapsed >= _KNOWN and since > 0:
            rate = since / elapsed
            parts.append(f"{f'{rate:.1f}' if rate < 10 and self._unit != 'bytes' else self._amount(round(rate))}/s")
            if total > count:
                parts.append(f"{format_duration(max(1, round((total - count) / rate)))} left")
        return " · ".join(parts)

    def _counted(self) -> int:
        return self._count + int(_COUNT.unpack(self._theirs[:])[0])

    def _amount(self, count: int) -> str:
        return format_size(count) if self._unit == "bytes" else f"{count:,}"

    def _of_what(self, count: int) -> str:
        if self._unit in ("", "bytes"):
            return ""
        return f" {self._unit.removesuffix('s') if count == 1 else self._unit}"
