"""The best watcher that this system has: the kernel tells it, or it polls."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from takeback.look.watch.watcher import Ignored, Polling, Seen, Unwatchable, Watcher

from .inotify import TreeWatcher


def kernel(root: str, ignored: Ignored, cookies: Path | None, portable: bool, times: bool = False) -> Watcher | None:
    """A watcher that the kernel tells; none on systems where we do not know how. Raises where its limits are reached.
    With `times` it also tells of folders in which nothing but what is left out came or went."""
    if portable or sys.platform != "linux" or not os.path.isdir("/proc/self/fd"):
        return None
    return TreeWatcher(root, ignored, cookies, times)


class Following:
    """The best watcher this system has. Where the kernel's limits are reached it goes on by polling, and says so."""

    def __init__(self, root: str, ignored: Ignored, cookies: Path | None, portable: bool) -> None:
        self.limited = ""
        self._watcher: Watcher
        self._root, self._ignored, self._portable = root, ignored, portable
        try:
            self._watcher = kernel(root, ignored, cookies, portable) or Polling(root, ignored, portable)
        except Unwatchable as why:
            self._fall_back(why)

    @property
    def how(self) -> str:
        return self._watcher.how

    def wait(self, timeout: float, wake: int = -1) -> bool:
        try:
            return self._watcher.wait(timeout, wake)
        except Unwatchable as why:
            self._fall_back(why)
            return True

    def changed(self) -> Seen:
        try:
            return self._watcher.changed()
        except Unwatchable as why:
            self._fall_back(why)
            return Seen(True, frozenset())

    def close(self) -> None:
        self._watcher.close()

    def _fall_back(self, why: Unwatchable) -> None:
        if hasattr(self, "_watcher"):
            self._watcher.close()
        self.limited = str(why)
        self._watcher = Polling(self._root, self._ignored, self._portable)
