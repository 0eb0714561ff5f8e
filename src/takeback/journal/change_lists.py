"""Change lists (`tbc1`): many (path, before, after, took) as columns, small enough to journal whole scans."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence

from takeback.errors import Damaged
from takeback.model.effects import FILE, FOLDER, LINK, Change, Entry, State, entry_of

_MAGIC = b"tbc1"
_HEAD = struct.Struct("<4sIQ")  # magic, changes, bytes of paths
_ABSENT = Entry(0, 0, 0, b"", b"", b"", 0, 0, 0)
_NONE = bytes(32)
_SWAP = sys.byteorder == "big"


def encode(changes: Sequence[Change]) -> bytes:
    paths = b"\0".join(c.path for c in changes)
    took = array("Q", (seq for c in changes for seq in c.took))
    counts = array("I", (len(c.took) for c in changes))
    return b"".join(
        (
            _HEAD.pack(_MAGIC, len(changes), len(paths)),
            paths,
            _states([c.before for c in changes]),
            _states([c.after for c in changes]),
            _little(counts),
            _little(took),
        )
    )


def _little(column: array[int]) -> bytes:
    if _SWAP:
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _states(states: list[State]) -> bytes:
    entries = [_ABSENT if s is None else s for s in states]
    kinds, modes, sizes, contents, xattrs, groups, mtimes, uids, gids = zip(*entries) if entries else [()] * 9
    joined = b"\0".join(groups) if any(groups) else b""
    return b"".join(
        (
            bytes(kinds),
            _little(array("H", modes)),
            _little(array("Q", sizes)),
            b"".join(x or _NONE for x in contents),
            bytes([any(xattrs)]),
            b"".join(x or _NONE for x in xattrs) if any(xattrs) else b"",
            struct.pack("<Q", len(joined)),
            joined,
            _little(array("q", mtimes)),
            _little(array("I", uids)),
            _little(array("I", gids)),
        )
    )


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        if len(part) != size:
            raise ValueError("cut short")
        self.at += size
        return part

    def column(self, code: str, count: int) -> array[int]:
        values = array(code)
        values.frombytes(self.take(values.itemsize * count))
        if _SWAP:
            values.byteswap()
        return values

    def ids(self, count: int) -> list[bytes]:
        blob = self.take(32 * count)
        return [b"" if x == _NONE else x for x in (blob[i : i + 32] for i in range(0, len(blob), 32))]


def decode(data: bytes) -> list[Change]:
    try:
        return _decode(data)
    except (ValueError, struct.error) as error:
        raise Damaged(f"a change list does not parse ({error})", "run takeback verify") from error


def _decode(data: bytes) -> list[Change]:
    magic, count, size = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError("not a change list")
    reader = _Reader(data)
    reader.at = _HEAD.size
    joined = reader.take(size)
    paths = joined.split(b"\0") if count else []
    before, after = _read_states(reader, count), _read_states(reader, count)
    counts = reader.column("I", count)
    took = reader.column("Q", sum(counts))
    if len(paths) != count or reader.at != len(data):
        raise ValueError("parts do not add up")
    if not took:
        return [Change(p, b, a) for p, b, a in zip(paths, before, after)]
    changes, at = [], 0
    for path, was, now, n in zip(paths, before, after, counts):
        changes.append(Change(path, was, now, tuple(took[at : at + n])))
        at += n
    return changes


def _read_states(reader: _Reader, count: int) -> list[State]:
    kinds, modes, sizes, contents = (
        reader.take(count),
        reader.column("H", count),
        reader.column("Q", count),
        reader.ids(count),
    )
    xattrs = reader.ids(count) if reader.take(1) == b"\1" else [b""] * count
    (length,) = struct.unpack("<Q", reader.take(8))
    joined = reader.take(length)
    groups = joined.split(b"\0") if length else [b""] * count
    times = reader.column("q", count), reader.column("I", count), reader.column("I", count)
    entries = map(entry_of, zip(kinds, modes, sizes, contents, xattrs, groups, *times))
    return [e if e.kind else None for e in entries]


def references(changes: Iterable[Change]) -> Iterable[bytes]:
    """Every blob a change list needs."""
    for change in changes:
        for state in (change.before, change.after):
            if state is not None and state.kind in (FILE, LINK, FOLDER):
                if state.content:
                    yield state.content
                if state.xattrs:
                    yield state.xattrs
