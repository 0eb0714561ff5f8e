"""Agents' processes that have called: the moment that one of them ends is the end of what it left at work."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from takeback.config.settings import Settings
from takeback.system import processes
from takeback.system.processes import Process

_MOST = 200  # processes at a time: select watches no descriptor above 1023


class Called(NamedTuple):
    """A workspace that a process called in, as it is opened again."""

    root: Path
    settings: Settings
    environ: Mapping[str, str]


class Deaths:
    """Each process is held by a descriptor that the system makes readable when it ends, so that a later process of the
    same number is never taken for it. Where there is no such thing, nothing is watched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Process, int] = {}
        self._called: dict[int, dict[Path, Called]] = {}  # descriptor → by root

    def watch(self, process: Process, called: Called) -> bool:
        """Whether this process is a new one."""
        with self._lock:
            held = self._held.get(process)
            is_new = held is None
            if held is None:
                held = _held(process) if len(self._held) < _MOST else None
                if held is None:
                    return False
                self._held[process] = held
            self._called.setdefault(held, {})[called.root] = called
            return is_new

    @property
    def descriptors(self) -> list[int]:
        with self._lock:
            return list(self._called)

    def ended(self, ready: Sequence[object]) -> list[tuple[Process, Called]]:
        """Those that have ended, by their descriptors, and where each of them called."""
        with self._lock:
            over = {process: held for process, held in self._held.items() if held in ready}
            found = [(process, called) for process, held in over.items() for called in self._called.pop(held).values()]
            self._held = {process: held for process, held in self._held.items() if process not in over}
        for held in over.values():
            os.close(held)
        return found

    @property
    def places(self) -> list[Called]:
        """Where processes called that are still there."""
        with self._lock:
            return list({called.root: called for group in self._called.values() for called in group.values()}.values())


def _held(process: Process) -> int | None:
    if not process.pid or not process.started or not hasattr(os, "pidfd_open"):
        return None
    try:
        held = os.pidfd_open(process.pid)
    except OSError:
        return None
    if processes.started(process.pid) != process.started:
        os.close(held)
        return None
    return held
