"""Peak memory of our process and the child it forks, watched from outside in a run that is not timed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from . import rounds
from .library import Library


def peak(master: Path, home: Path) -> dict[str, int]:
    """The most bytes resident at once while each operation ran, pages that both share counted once."""
    tree = home / "tree"
    ours = Library(tree, home)
    subprocess.run(["cp", "-a", str(master), str(tree)], check=True)
    try:
        found = {"first checkpoint": _watched(ours.pid, ours.first)}
        found["nothing changed"] = _watched(ours.pid, ours.checkpoint)
        rounds.empty(tree)
        found["full restore"] = _watched(ours.pid, ours.rollback)
    finally:
        ours.close()
    return found


def _watched(pid: int, act: Callable[[], float]) -> int:
    with _Watch(pid) as watch:
        act()
    return watch.most


class _Watch:
    """Polls a process and its children."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self.most = 0

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._done.is_set():
            children = _children(self._pid)
            now = _resident(self._pid) + sum(map(_resident, children))
            if children == _children(self._pid):  # what was shared halfway through would count one and a half times
                self.most = max(self.most, now)
            time.sleep(0.005)


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _resident(pid: int) -> int:
    """Proportional set size: a page that two processes share counts half in each."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # it has ended
    return 0
