"""Waits until nothing else uses the machine: what others do must not be charged to either side."""

from __future__ import annotations

import os
import time
from pathlib import Path

_SETTLE = 0.05  # no time stamp may be so fresh that either side must look again
_PATIENCE = 15.0
_BUSY = 0.1  # of all cores

given_up = 0  # how often it went on although the machine was busy


def settle(synced: bool = False) -> None:
    """With `synced`, nothing of an earlier step is still being written either."""
    global given_up
    if synced:
        os.sync()
    time.sleep(_SETTLE)
    deadline = time.monotonic() + _PATIENCE
    while _busy() > _BUSY:
        if time.monotonic() > deadline:
            given_up += 1
            return


def _busy() -> float:
    """The part of all cores in use over the next moment; nothing where that cannot be told."""
    before = _ticks()
    if before is None:
        return 0.0
    time.sleep(0.1)
    after = _ticks() or before
    total = sum(after) - sum(before)
    idle = after[3] - before[3]  # waiting for the disk counts as busy
    return 1 - idle / total if total else 0.0


def _ticks() -> list[int] | None:
    try:
        return [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return None
