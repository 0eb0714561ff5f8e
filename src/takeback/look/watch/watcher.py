"""Following a tree: who tells which paths changed since the last time one asked.

    inotify   told by the kernel (capture/inotify.py)
    polling   every stat compared, again and again: any system

What a watcher tells is a hint where to look and when; only a look says what changed. A write through a memory map
raises no event, so whoever follows a tree still looks at all of it at the end.
"""

from __future__ import annotations

import select
import stat
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from takeback.store.folder_objects import join
from takeback.system.safefs import keys, open_root
from takeback.system.safefs.descent import Descent

MANY = 50_000  # paths: from here on "everything" is the shorter answer
_INTERVAL = 2.0  # seconds between two looks of the polling watcher, where the tree is small
_SHARE = 10  # a look may take one in so many seconds

Ignored = Callable[[bytes, bool], bool]  # (path, whether it is a folder): not covered, so not followed


class Unwatchable(Exception):
    """The system does not watch, or not that much; says why."""


class Seen(NamedTuple):
    """What may have changed: these paths, with all below those that are folders; or everything."""

    everything: bool
    paths: frozenset[bytes]


class Watcher(Protocol):
    @property
    def how(self) -> str: ...

    @property
    def limited(self) -> str:
        """Why it is not the kernel that tells, where it could have been."""

    def wait(self, timeout: float, wake: int = -1) -> bool:
        """Whether something changed since the last call: as soon as it does, or False after the timeout. A byte to
        read from `wake` ends it early."""

    def changed(self) -> Seen:
        """All that happened since the last call and before this one."""

    def close(self) -> None: ...


class Polling:
    """Compares every stat key. Never more often than the size of the tree allows."""

    how = "polling"
    limited = ""

    def __init__(self, root: str, ignored: Ignored, portable: bool) -> None:
        self._root = root
        self._ignored = ignored
        self._portable = portable
        self._pause = _INTERVAL
        self._paths: set[bytes] = set()
        self._gone = False
        self._known: dict[bytes, bytes] = {}
        self._recent: set[bytes] = set()  # changed just before the last look: may change again without a new key
        self._look()
        self._paths.clear()

    def wait(self, timeout: float, wake: int = -1) -> bool:
        until = time.monotonic() + timeout
        while True:
            left = until - time.monotonic()
            woken = _sleep(min(max(0.0, left), self._pause), wake)
            if self._look():
                return True
            if woken or left <= self._pause:
                return False

    def changed(self) -> Seen:
        self._look()
        seen = Seen(self._gone or len(self._paths) >= MANY, frozenset(self._paths))
        self._paths, self._gone = set(), False
        return seen

    def close(self) -> None:
        pass

    def _look(self) -> bool:
        """Whether anything differs from the look before."""
        began, recent = time.monotonic(), self._recent
        try:
            found = self._keys(time.time_ns())
        except OSError:
            self._gone = True  # the root: the next look at it says why
            return True
        known, self._known = self._known, found
        differing = {path for path, key in found.items() if known.get(path) != key}
        differing.update(path for path in known if path not in found)
        differing |= recent & found.keys()
        self._paths |= differing
        self._pause = max(_INTERVAL, _SHARE * (time.monotonic() - began))
        return bool(differing)

    def _keys(self, now: int) -> dict[bytes, bytes]:
        self._recent = set()
        with open_root(self._root, self._portable) as tree, Descent(tree) as descent:
            top = tree.stat_self()
            found = {b"": keys.pack(top)}
            waiting = [b""]
            while waiting:
                here = waiting.pop()
                try:
                    listing = descent.to(here).listing()
                except OSError:
                    if not here:
                        raise
                    continue  # gone again, or closed to us: a scan names it
                below = []
                for name, st in listing:
                    at, is_folder = join(here, name), stat.S_ISDIR(st.st_mode)
                    if self._ignored(at, is_folder):
                        continue
                    found[at] = keys.pack(st)
                    if not keys.settled(st, now):
                        self._recent.add(at)
                    if is_folder and st.st_dev == top.st_dev:
                        below.append(at)
                waiting += reversed(below)
            return found


def _sleep(seconds: float, wake: int) -> bool:
    """Whether it was woken."""
    if wake < 0:
        time.sleep(seconds)
        return False
    return bool(select.select([wake], [], [], seconds)[0])
