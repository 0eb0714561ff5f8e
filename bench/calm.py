"""Waits until nothing else uses the machine: what others do must not be charged to either side."""

from __future__ import annotations

import os
import time
from pathlib import Path

_SETTLE = 0.05  # no time stamp may be so fresh that either side must look again
_PATIENCE = 60.0  # for the whole run
_BUSY = 0.1  # of all cores
_NICE, _IDLE = 1, 3  # columns of /proc/stat

waited = 0.0  # seconds in vain so far


def settle(synced: bool = False) -> None:
    """With `synced`, nothing of an earlier step is still being written either."""
    global waited
    if synced:
        os.sync()
    time.sleep(_SETTLE)
    started = time.monotonic()
    while waited < _PATIENCE and _busy() > _BUSY:
        waited += time.monotonic() - started
        started = time.monotonic()


def gave_up() -> bool:
    """Whether the machine was never idle for long, so that the numbers are to be doubted."""
    return waited >= _PATIENCE


def _busy() -> float:
    """The part of all cores in use over the next moment; nothing where that cannot be told."""
    before = _ticks()
    if before is None:
        return 0.0
    time.sleep(0.1)
    after = _ticks() or before
    total = sum(after) - sum(before)
    free = sum(after[i] - before[i] for i in (_NICE, _IDLE))  # waiting for the disk counts as busy
    return 1 - free / total if total else 0.0


def _ticks() -> list[int] | None:
    try:
        return [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return None
