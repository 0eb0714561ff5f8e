"""The index on disk: one frame with all of it, then a frame for what each look changed.

    "tbi3" · frame · frame · …        frame: length, crc32, marshal of (folders, gaps, incomplete, root, …)

Writing a whole index costs as much as looking at the tree, so what a look changed is appended, until that makes up
half of the file. Nothing is synced: a frame that a crash tore is dropped with all after it, the journal knows what
came since, and the next save writes the file anew.
"""

from __future__ import annotations

import marshal
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from .effects import Entry
from .index import Index, Record
from .trees import Gap
from .typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

_MAGIC = b"tbi3"
_FRAME = struct.Struct("<II")
_MARSHAL = 4  # readable by every Python we support
_ROOM = 64 << 10  # of appended frames, however small the index is


class IndexFile:
    """Holds what the file says, so that only one that others have written is read again. Without a path it is memory
    alone. Who saves holds the store lock."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._held: Index | None = None
        self._stamp: object = None  # of the file that says what is held
        self._whole = 0  # bytes of its first frame; zero: it must be written anew

    @property
    def seq(self) -> int:
        """The journal row that what is held reflects."""
        return self._held.seq if self._held is not None else 0

    def forget(self) -> None:
        self._held = None
        self._whole = 0

    def remove(self) -> None:
        self.forget()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def load(self) -> Index | None:
        """One that the caller may change; None where there is none, or none that can be trusted."""
        if self._path is not None and (self._held is None or self._stamp != self._stamped()):
            self.forget()
            self._stamp = self._stamped()  # first: what is appended meanwhile is read next time
            try:
                self._held, self._whole = parse(self._path.read_bytes())
            except OSError:
                return None
        return None if self._held is None else self._held.copy()

    def save(self, index: Index) -> None:
        if self._path is not None:
            try:
                self._write(self._path, index)
                self._stamp = self._stamped()
            except OSError:
                self.remove()  # only a cache: the journal has it all
                return
        self._held = index
        index.origin, index.touched = object(), set()

    def _write(self, path: Path, index: Index) -> None:
        held, first = self._held, self._whole
        self._whole = 0  # until it is written
        is_ours = first and self._stamp == self._stamped() is not None
        if held is not None and is_ours and (first < _ROOM or not _is_mostly_new(held, index)):
            head, body = frame(held, index)
            if path.stat().st_size + len(head) + len(body) < first * 3 // 2 + _ROOM:
                with open(path, "ab") as file:
                    file.write(head + body)
                self._whole = first
                return
        held = self._held = None  # room for all of the new one
        staging = path.with_name("index.new")  # under the store lock, so one is enough, and a killed one is reused
        fd = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(fd, "wb") as file:
            size = sum(map(file.write, (_MAGIC, *frame(Index(), index))))
        os.replace(staging, path)
        self._whole = size

    def _stamped(self) -> object:
        assert self._path is not None
        try:
            st = self._path.stat()
        except FileNotFoundError:
            return None
        return st.st_ino, st.st_mtime_ns, st.st_size


# -- frames --------------------------------------------------------------------


def frame(was: Index, now: Index) -> tuple[bytes, bytes]:
    """What leads from one index to another: the head of a frame, and its body apart, since joining them would copy
    the largest thing there is."""
    touched = now.touched if now.origin is was.origin else None
    folders = {path: record and tuple(record) for path, record in _differing(was.folders, now.folders, touched)}
    gaps = {path: rows and [tuple(gap) for gap in rows] for path, rows in _differing(was.gaps, now.gaps)}
    absent = {p: names and sorted(names) for p, names in _differing(was.incomplete, now.incomplete)}
    links = None if was.links == now.links else now.links
    step: Any = (folders, gaps, absent, tuple(now.root), now.root_key, links, now.seq, now.rules)
    body = marshal.dumps(step, _MARSHAL)
    return _FRAME.pack(len(body), zlib.crc32(body)), body


def _is_mostly_new(was: Index, now: Index) -> bool:
    """Whether most folders differ: then what leads there is too long to append, and not worth making."""
    if now.origin is was.origin:
        differing = len(now.touched)
    else:
        differing = sum(was.folders.get(path) is not record for path, record in now.folders.items())
    return differing > len(now.folders) // 2


def packed(index: Index) -> bytes:
    """All of an index, for another process."""
    return b"".join((_MAGIC, *frame(Index(), index)))


def _differing(
    was: dict[bytes, T], now: dict[bytes, T], touched: set[bytes] | None = None
) -> Iterator[tuple[bytes, T | None]]:
    """Copies of an index share its values, so what differs is another object; None is gone. Of one made from the other
    it is known which may."""
    if touched is not None:
        yield from ((path, now.get(path)) for path in sorted(touched) if was.get(path) is not now.get(path))
        return
    yield from ((path, value) for path, value in now.items() if was.get(path) is not value)
    yield from ((path, None) for path in was if path not in now)


def parse(data: bytes) -> tuple[Index | None, int]:
    """The index that all whole frames lead to, and the size of the first; zero if something torn follows them."""
    view = memoryview(data)
    index, at, first = None, len(_MAGIC), 0
    while data[:4] == _MAGIC and at + _FRAME.size <= len(data):
        size, crc = _FRAME.unpack_from(data, at)
        body = view[at + _FRAME.size : at + _FRAME.size + size]
        if len(body) != size or zlib.crc32(body) != crc:
            break
        index = index or Index()
        try:
            _follow(index, marshal.loads(body))
        except (ValueError, TypeError, EOFError):
            return None, 0
        at += _FRAME.size + size
        first = first or at
    return index, first if at == len(data) else 0


def _follow(index: Index, step: tuple[Any, ...]) -> None:
    folders, gaps, absent, root, root_key, links, seq, rules = step
    is_new = bool(index.folders) and any(path not in index.folders for path in folders)
    _take(index.folders, folders, Record._make)
    _take(index.gaps, gaps, lambda rows: tuple(Gap(*row) for row in rows))
    _take(index.incomplete, absent, frozenset)
    index.root, index.root_key, index.seq, index.rules = Entry(*root), root_key, seq, rules
    if links is not None:
        index.links = links
    if is_new:
        index.in_order()


def _take(table: dict[bytes, T], packed: dict[bytes, Any], make: Callable[[Any], T]) -> None:
    for path, value in packed.items():
        if value is None:
            table.pop(path, None)
        else:
            table[path] = make(value)
