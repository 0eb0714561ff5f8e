"""The index on disk: a step with all of it, then a step for what each look changed.

    "tbi4" · step · step · …        step: frames of some folders each, the last one with all else that differs
                                    frame: length, folder objects · length, crc32, marshal of what is known of them

Writing a whole index costs as much as looking at the tree, so what a look changed is appended, until that makes up
half of the file. Nothing is synced: a step that a crash tore is dropped with all after it, the journal knows what
came since, and the next save writes the file anew.

Folder objects are most of the file, and a look that finds nothing new wants none of them. So each is read when it is
asked for, and is believed when its bytes have the hash that it is known by; one that has not ends the whole file.
"""

from __future__ import annotations

import marshal
import os
import struct
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import accumulate, chain, count, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takeback.errors import Damaged, TakebackError
from takeback.model.effects import Entry
from takeback.store.folder_objects import Gap

from .known_tree import Index, Objects, Record

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")
    Read = Callable[[int, int], bytes | memoryview]  # offset, size
    Spare = Callable[[bytes], bytes]  # stored id → folder object

_MAGIC = b"tbi4"
_LENGTH = struct.Struct("<Q")
_HEAD = struct.Struct("<II")
_MARSHAL = 2  # readable by every Python we support; later ones look for what occurs twice, and nothing here does
_ROOM = 64 << 10  # of appended steps, however small the index is
_FOLDERS = 512  # of a frame: what it is read into is soon used again, and new memory costs more than reading
_MUCH = 32  # once so small a part of a frame's objects was asked for, all are read: one by one costs far more
_CAN_WAIT = hasattr(os, "pread")  # elsewhere, an open file also could not be replaced


class IndexFile:
    """Holds what the file says, so that only one that others have written is read again. Without a path it is memory
    alone. Who saves holds the store lock. `spare` is asked for folder objects that the file has lost."""

    def __init__(self, path: Path | None, spare: Spare | None = None) -> None:
        self._path = path
        self._spare = spare or _nowhere
        self._held: Index | None = None
        self._stamp: object = None  # of the file that says what is held
        self._whole = 0  # bytes of its first step; zero: it must be written anew

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
            with suppress(OSError):  # what lies there is no file of ours
                self._path.unlink(missing_ok=True)

    def load(self) -> Index | None:
        """One that the caller may change; None where there is none, or none that can be trusted."""
        if self._path is not None and (self._held is None or self._stamp != self._stamped()):
            self.forget()
            self._stamp = self._stamped()  # first: what is appended meanwhile is read next time
            try:
                self._held, self._whole = self._read(self._path)
            except OSError:
                return None
        return None if self._held is None else self._held.copy()

    def save(self, index: Index) -> None:
        if self._path is not None:
            try:
                self._write(self._path, index)
                self._stamp = self._stamped()
            except (OSError, TakebackError):
                self.remove()  # only a cache: the journal has it all
                return
        self._held = index
        index.origin, index.touched = object(), set()

    def _read(self, path: Path) -> tuple[Index | None, int]:
        if not _CAN_WAIT:
            return parse(path.read_bytes())
        file = _OnDisk(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        return _parsed(file, file.size(), partial(_Waiting, file, spare=self._lost(path)))

    def _lost(self, path: Path) -> Spare:
        return partial(_lost, path, self._spare, os.getpid())

    def _write(self, path: Path, index: Index) -> None:
        held, first = self._held, self._whole
        self._whole = 0  # until it is written
        is_ours = first and self._stamp == self._stamped() is not None
        if held is not None and is_ours and (first < _ROOM or not _is_mostly_new(held, index)):
            step = b"".join(Step(held, index).parts())
            if path.stat().st_size + len(step) < first * 3 // 2 + _ROOM:
                with open(path, "r+b") as file:  # never a new one: it would begin in the middle
                    file.seek(0, os.SEEK_END)
                    file.write(step)
                self._whole = first
                return
        held = self._held = None  # room for all of the new one
        staging = path.with_name("index.new")  # under the store lock, so one is enough, and a killed one is reused
        fd = os.open(staging, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(fd, "wb") as file:
            whole = Step(Index(), index)
            size = sum(map(file.write, chain((_MAGIC,), whole.parts())))
            kept = _OnDisk(os.dup(fd)) if _CAN_WAIT else None
        os.replace(staging, path)
        self._whole = size
        if kept is not None:  # what is on disk need not be in memory too
            index.folders = whole.lying_in(kept, len(_MAGIC), self._lost(path))

    def _stamped(self) -> object:
        assert self._path is not None
        try:
            st = self._path.stat()
        except FileNotFoundError:
            return None
        return st.st_ino, st.st_mtime_ns, st.st_size


def _lost(path: Path, spare: Spare, owner: int, stored: bytes) -> bytes:
    """For an object that does not lie where the file says: nobody shall believe that file any more."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
    return spare(stored) if os.getpid() == owner else _nowhere(stored)  # a forked process has no journal to ask


def _nowhere(stored: bytes) -> bytes:
    raise Damaged(f"the index has lost folder {stored.hex()[:12]} and was dropped", "run it again: it is made anew")


# -- folder objects ------------------------------------------------------------


class _OnDisk:
    """A file by offset, open for as long as a record lies in it: also when another was put in its place."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.recent = -1, b""  # the last region that was read at once, by its offset: who wants many goes through them

    def __call__(self, at: int, size: int) -> bytes:
        return os.pread(self._fd, size, at)  # no offset of its own, which forked processes would share

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self._fd)


class _Waiting:
    """The folder objects of one frame, in a file at an offset. Few are read one by one, many all at once."""

    def __init__(self, file: _OnDisk, at: int, ends: bytes, crc: int, spare: Spare) -> None:
        self._file = file
        self._at = at
        self._ends = array("Q", ends)
        self._crc = crc
        self._spare = spare
        self._left = self._few = self._ends[-1] // _MUCH if ends else 0  # bytes to be read one by one

    def get(self, number: int, stored: bytes) -> bytes:
        begin, end = self._ends[number - 1] if number else 0, self._ends[number]
        at, data = self._file.recent
        if at == self._at:
            return data[begin:end]
        try:
            if self._left < end - begin and (data := self._all()):
                return data[begin:end]
            self._left -= end - begin
            data = self._file(self._at + begin, end - begin)
        except OSError:
            data = b""
        return data if sha256(data).digest() == stored else self._spare(stored)

    def _all(self) -> bytes:
        """All of them, or nothing if they do not hold."""
        size = self._ends[-1]
        data = self._file(self._at, size)
        if len(data) != size or zlib.crc32(data) != self._crc:
            self._left = size
            return b""
        self._file.recent, self._left = (self._at, data), self._few
        return data


class _AtHand:
    """The folder objects of one frame, in memory."""

    def __init__(self, data: bytes, ends: bytes) -> None:
        self._data = data
        self._ends = array("Q", ends)

    def get(self, number: int, stored: bytes) -> bytes:
        return self._data[self._ends[number - 1] if number else 0 : self._ends[number]]


# -- steps ---------------------------------------------------------------------


class Step:
    """What leads from one index to another. It is given part by part: it is the largest thing there is."""

    def __init__(self, was: Index, now: Index) -> None:
        touched = now.touched if now.origin is was.origin else None
        there, gone = [], []
        for path, record in _differing(was.folders, now.folders, touched):
            if record is not None:
                there.append((path, record))
            else:
                gone.append(path)
        self._frames = [_Frame(there[at : at + _FOLDERS]) for at in range(0, len(there) or 1, _FOLDERS)]
        gaps = {path: rows and [tuple(gap) for gap in rows] for path, rows in _differing(was.gaps, now.gaps)}
        absent = {p: names and sorted(names) for p, names in _differing(was.incomplete, now.incomplete)}
        links = None if was.links == now.links else now.links
        self._rest = gone, gaps, absent, tuple(now.root), now.root_key, links, now.seq, now.rules

    def parts(self) -> Iterator[bytes]:
        for frame in self._frames:
            yield from frame.parts(self._rest if frame is self._frames[-1] else None)

    def lying_in(self, file: _OnDisk, at: int, spare: Spare) -> dict[bytes, Record]:
        """Its folders once it was written there."""
        found: dict[bytes, Record] = {}
        for frame in self._frames:
            found.update(frame.lying_in(file, at, spare))
            at += frame.size
        return found


class _Frame:
    def __init__(self, folders: list[tuple[bytes, Record]]) -> None:
        self._paths = tuple(path for path, _ in folders)
        self._records = [record for _, record in folders]
        self._columns: list[tuple[Any, ...]] = [*zip(*self._records)][:4] or [()] * 4  # names, keys, identity, stored
        self._ends, self._crc, self.size = b"", 0, 0  # once it was given

    def parts(self, rest: tuple[Any, ...] | None) -> tuple[bytes, bytes, bytes, bytes]:
        apart = [record.object for record in self._records]
        objects = b"".join(apart)
        self._ends, self._crc = array("Q", accumulate(map(len, apart))).tobytes(), zlib.crc32(objects)
        known: Any = (self._paths, *self._columns, self._ends, self._crc, rest)
        body = marshal.dumps(known, _MARSHAL)
        self.size = _LENGTH.size + len(objects) + _HEAD.size + len(body)
        return _LENGTH.pack(len(objects)), objects, _HEAD.pack(len(body), zlib.crc32(body)), body

    def lying_in(self, file: _OnDisk, at: int, spare: Spare) -> Iterator[tuple[bytes, Record]]:
        return _folders(self._paths, self._columns, _Waiting(file, at + _LENGTH.size, self._ends, self._crc, spare))


def _folders(
    paths: tuple[bytes, ...], columns: list[tuple[Any, ...]], objects: Objects
) -> Iterator[tuple[bytes, Record]]:
    """Made in C throughout: every command that starts runs through here."""
    rows = zip(*columns, repeat(objects), count())
    return zip(paths, map(tuple.__new__, repeat(Record), rows))


def _is_mostly_new(was: Index, now: Index) -> bool:
    """Whether most folders differ: then what leads there is too long to append, and not worth making."""
    if now.origin is was.origin:
        differing = len(now.touched)
    else:
        differing = sum(was.folders.get(path) is not record for path, record in now.folders.items())
    return differing > len(now.folders) // 2


def packed(index: Index) -> bytes:
    """All of an index, for another process."""
    return b"".join((_MAGIC, *Step(Index(), index).parts()))


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
    """The index that all whole steps lead to, and the size of the first; zero if something torn follows them."""
    view = memoryview(data)

    def at_hand(at: int, ends: bytes, crc: int) -> Objects | None:
        objects = bytes(view[at : at + array("Q", ends)[-1]]) if ends else b""
        return _AtHand(objects, ends) if zlib.crc32(objects) == crc else None

    return _parsed(lambda at, size: view[at : at + size], len(data), at_hand)


def _parsed(read: Read, size: int, objects_at: Callable[[int, bytes, int], Objects | None]) -> tuple[Index | None, int]:
    if read(0, len(_MAGIC)) != _MAGIC:
        return None, 0
    index, at, first, added = None, len(_MAGIC), 0, False
    step: dict[bytes, Record] = {}
    while at < size and (found := _known(read, at, size)) is not None:
        end, body = found
        try:
            paths, *columns, ends, crc, rest = marshal.loads(body)
            if (objects := objects_at(at + _LENGTH.size, ends, crc)) is None:
                break
            step.update(_folders(paths, columns, objects))
            at = end
            if rest is None:
                continue  # the step goes on
            if index is None:
                index, first = Index(step), at
            else:
                added = added or not step.keys() <= index.folders.keys()
                index.folders |= step
            _follow(index, rest)
            step = {}
        except (ValueError, TypeError, EOFError):
            return None, 0
    if added and index is not None:
        index.in_order()
    return index, first if at == size and not step else 0


def _known(read: Read, at: int, size: int) -> tuple[int, bytes | memoryview] | None:
    """All but the objects of the frame at an offset, and where it ends; None if it does not hold."""
    start = at + _LENGTH.size
    if start > size:
        return None
    objects = read(at, _LENGTH.size)
    if len(objects) < _LENGTH.size:
        return None  # somebody has cut it meanwhile
    start += _LENGTH.unpack(objects)[0] + _HEAD.size
    head = read(start - _HEAD.size, _HEAD.size) if start <= size else b""
    if len(head) < _HEAD.size:
        return None
    length, crc = _HEAD.unpack(head)
    if start + length > size:
        return None
    body = read(start, length)
    return (start + length, body) if len(body) == length and zlib.crc32(body) == crc else None


def _follow(index: Index, rest: tuple[Any, ...]) -> None:
    gone, gaps, absent, root, index.root_key, links, index.seq, index.rules = rest
    for path in gone:
        index.folders.pop(path, None)
    _take(index.gaps, gaps, lambda rows: tuple(Gap(*row) for row in rows))
    _take(index.incomplete, absent, frozenset)
    index.root = Entry(*root)
    if links is not None:
        index.links = links


def _take(table: dict[bytes, T], packed: dict[bytes, Any], make: Callable[[Any], T]) -> None:
    for path, value in packed.items():
        if value is None:
            table.pop(path, None)
        else:
            table[path] = make(value)
