"""Three-way merge of path states: mode, attributes and text each by itself, and only where it is clean."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from takeback.model.effects import FILE, Entry, State, same
from takeback.text.linediff import Conflict, merge3

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

_LARGEST = 4 << 20


class Merger:
    """Merges states and keeps the merged bytes until somebody stores them."""

    def __init__(self, get: Callable[[bytes], bytes]) -> None:
        self._get = get
        self.made: dict[bytes, bytes] = {}

    def __call__(self, base: State, ours: State, theirs: State, markers: bool) -> State:
        if same(ours, base) or same(ours, theirs):
            return theirs
        if same(theirs, base):
            return ours
        if base is None or ours is None or theirs is None:
            raise Conflict
        if not base.kind == ours.kind == theirs.kind == FILE:
            raise Conflict
        mode = _one(base.mode, ours.mode, theirs.mode)
        xattrs = _one(base.xattrs, ours.xattrs, theirs.xattrs)
        size, content = self._content(base, ours, theirs, markers)
        return Entry(FILE, mode, size, content, xattrs, b"", ours.mtime_ns, ours.uid, ours.gid)

    def _content(self, base: Entry, ours: Entry, theirs: Entry, markers: bool) -> tuple[int, bytes]:
        if ours.content == theirs.content or theirs.content == base.content:
            return ours.size, ours.content
        if ours.content == base.content:
            return theirs.size, theirs.content
        if max(base.size, ours.size, theirs.size) > _LARGEST:
            raise Conflict
        merged = merge3(self._read(base.content), self._read(ours.content), self._read(theirs.content), markers)
        id = sha256(merged).digest()
        self.made[id] = merged
        return len(merged), id

    def _read(self, id: bytes) -> bytes:
        return self.made[id] if id in self.made else self._get(id)


def _one(base: T, ours: T, theirs: T) -> T:
    if ours in (theirs, base):
        return theirs
    if theirs == base:
        return ours
    raise Conflict
