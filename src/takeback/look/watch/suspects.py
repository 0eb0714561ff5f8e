"""Which folders may differ from the known tree: what lets a process that stays look at a few of them instead of all.

    watcher tells a path  ─► its folder, and the one above, whose entry of it has a new time
    the index was changed by anyone but our last whole look  ─► those folders
    an entry was too fresh to trust, or a file has several names  ─► their folders

A folder is let go only by a whole look of this process that was journaled. Whoever is not sure says so: then all of
them are looked at, as they are every few minutes and at each prompt, since a write through a memory map that is still
open, or through a name outside the tree, tells nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from takeback.look.coverage import Rules
from takeback.look.known_tree import Index
from takeback.store.folder_objects import parent
from takeback.system.safefs import keys

from .watcher import Unwatchable, Watcher

if TYPE_CHECKING:
    from takeback.look.scan import Limits

THOROUGH = 300.0  # seconds: so often all of it is looked at, whatever the watcher tells
_AGAIN = 600.0  # seconds until a watcher that was not to be had is asked for again


class Suspects:
    """Its caller holds the lock of the workspace. `follow` makes a watcher that the kernel tells, or none."""

    def __init__(self, follow: Callable[[], Watcher | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._follow = follow
        self._clock = clock
        self._watcher: Watcher | None = None
        self._asked = -_AGAIN  # when a watcher was asked for in vain
        self._covered: object = None  # what is covered, as the watcher was told
        self._paths: set[bytes] = set()  # told, and not looked at since
        self._is_told = False  # something, that is not among these paths yet
        self._everything = True
        self._thorough = 0.0  # when all of it was looked at last
        self._origin: object = None  # of the index that our last look left, or that we made from it
        self._touched: set[bytes] = set()  # its folders that were changed since
        self._fresh: set[bytes] = set()  # folders that hold an entry without a key
        self.is_partial = False  # whether the last answer named folders

    def close(self) -> None:
        watcher, self._watcher = self._watcher, None
        self._everything = True
        if watcher is not None:
            watcher.close()

    def tend(self) -> None:
        """Empties the kernel's queue between two looks, so that it does not overflow."""
        try:
            if self._watcher is not None and self._watcher.wait(0):
                self._is_told = True
                self._watcher.wait(0)  # news that were read before come first
        except Unwatchable:
            self._give_up()

    def is_quiet(self, index: Index) -> bool:
        """Whether the tree is as this index says, as far as the watcher was told."""
        self.tend()
        knows = self._watcher is not None and not self._everything and index.origin is self._origin
        return knows and not self._is_told and not self._paths and not self._touched and not index.touched

    @property
    def how(self) -> str:
        return "" if self._watcher is None else self._watcher.how

    def ask(self, index: Index, rules: Rules, limits: Limits, thorough: bool = False) -> set[bytes] | None:
        """The folders that may differ from this index, before anything that happens from now on; None: any may."""
        self.is_partial = False
        if not self._watches(rules, limits):
            return None
        assert self._watcher is not None
        try:
            seen = self._watcher.changed()
        except Unwatchable:
            self._give_up()
            return None
        self._everything = self._everything or seen.everything
        self._is_told = False
        self._paths |= seen.paths
        if thorough or self._everything or not index.folders or self._clock() - self._thorough > THOROUGH:
            return None
        if index.origin is not self._origin:  # somebody else wrote it
            return None
        found = self._touched | index.touched | self._fresh
        for path in self._paths:
            above = parent(path)
            found |= {path, above, parent(above)}
        for names in index.links.values():
            found |= set(map(parent, names))
        self.is_partial = True
        return found

    def saved(self, origin: object, touched: set[bytes], now: object) -> None:
        """An index was written by us: it is another one from now on."""
        if origin is self._origin:
            self._origin = now
            self._touched |= touched

    def looked(self, index: Index, differing: Iterable[bytes] = ()) -> None:
        """All of it, or all that was named, was looked at: the tree is as this index says, but for some folders."""
        if index.origin is self._origin:
            changed = self._touched | index.touched
        else:
            changed, self._fresh = set(index.folders), set()
        for path in changed:
            record = index.folders.get(path)
            (self._fresh.add if record is not None and keys.ZERO in record.keys else self._fresh.discard)(path)
        self._origin, self._touched = index.origin, set()
        self._paths = set(differing)
        if not self.is_partial:
            self._thorough = self._clock()
        self._everything = False

    def _watches(self, rules: Rules, limits: Limits) -> bool:
        """Whether a watcher is at work on what is covered just now."""
        if rules.has_project_patterns and limits.confirmed_rules != rules.project_fingerprint:
            self.close()  # what such rules leave out is captured still, path by path
            return False
        covered = rules.fingerprint, limits.confirmed_rules, limits.mounts, limits.own_store, limits.max_file
        if self._watcher is not None and covered != self._covered:
            self.close()
        if self._watcher is None:
            if self._clock() - self._asked < _AGAIN:
                return False
            self._everything = True  # of what happened before, nobody tells
            try:
                self._watcher, self._covered = self._follow(), covered
            except Unwatchable:
                pass
            if self._watcher is None:
                self._give_up()
        return self._watcher is not None

    def _give_up(self) -> None:
        self.close()
        self._asked = self._clock()
