"""Folder objects (`tbt1`): one folder's entries in columns, and the Merkle tree they form.

    identity part   names · kinds · modes · sizes · ids · xattr ids · link groups
    times part      mtimes · uids · gids · stored ids of subfolders · gaps

The identity is the sha256 of the first part: equal means no change. The object is stored under the sha256 of
both, and the parent holds both hashes, so that times travel along without ever counting as a change.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from takeback.errors import Damaged
from takeback.model.effects import FOLDER, UNOBSERVED, Entry, Snapshot, State, entry_of, raw, same, text

_MAGIC = b"tbt1"
_HEAD = struct.Struct("<4sIIIBI")  # magic, entries, bytes of names, bytes of the identity part, flags, bytes of groups
_XATTRS, _GROUPS = 1, 2
_NONE = bytes(32)
_SWAP = sys.byteorder == "big"


class Gap(NamedTuple):
    """A name that is there, or may be, and is not covered. Where a look at it failed, what was known of it stays: its
    entry, or that it was absent."""

    name: bytes
    reason: str


NOT_LOOKED_AT = "not looked at yet"
LATE = "not looked at within the deadline"
_UNREAD = ("cannot be read", "kept changing")
_LACKING = (*_UNREAD, "not looked at")  # should be covered: makes a checkpoint partial
_MAY_PASS = (*_LACKING, "larger than")  # may end without the folder changing: looked at again every time


def is_lacking(reason: str) -> bool:
    return reason.startswith(_LACKING)


def is_unread(reason: str) -> bool:
    """Whether it was looked at, and the look failed."""
    return reason.startswith(_UNREAD)


def may_pass(reason: str) -> bool:
    return reason.startswith(_MAY_PASS)


class Ids(NamedTuple):
    identity: bytes
    stored: bytes


class Folder(NamedTuple):
    """One folder as captured: its entries, the ids of its subfolders, and what is not covered in it."""

    names: list[bytes]
    entries: list[Entry]
    subtrees: dict[bytes, Ids]
    gaps: tuple[Gap, ...] = ()
    complete: bool = True  # every name was seen; else what is not here is unobserved
    absent: frozenset[bytes] = frozenset()  # in an incomplete folder, and among the gaps: names seen to be absent

    def state(self, name: bytes) -> State:
        """What is known of a name here."""
        at = bisect_left(self.names, name)
        if at < len(self.names) and self.names[at] == name:
            return self.entries[at]
        if name in self.absent:
            return None
        if any(gap.name == name for gap in self.gaps):
            return UNOBSERVED
        return None if self.complete else UNOBSERVED

    def as_seen(self) -> Folder:
        """Only what was seen at that moment, without what was known from before of what could not be read then."""
        if not self.gaps:
            return self
        unread = {gap.name for gap in self.gaps}
        kept = [(n, e) for n, e in zip(self.names, self.entries) if n not in unread or e.kind == FOLDER]
        return self._replace(
            names=[name for name, _ in kept],
            entries=[entry for _, entry in kept],
            subtrees={name: ids for name, ids in self.subtrees.items() if name not in unread},
            absent=self.absent - unread,
        )


def _column(code: str, values: object) -> bytes:
    column = array(code, values)  # type: ignore[call-overload]
    if _SWAP:
        column.byteswap()
    return column.tobytes()  # type: ignore[no-any-return]


def encode(folder: Folder) -> tuple[bytes, Ids]:
    """The object's bytes, and its two hashes."""
    names, entries, subtrees = folder.names, folder.entries, folder.subtrees
    if entries:
        kinds, modes, sizes, contents, xattrs, groups, mtimes, uids, gids = zip(*entries)
    else:
        kinds = modes = sizes = contents = xattrs = groups = mtimes = uids = gids = ()
    none = Ids(_NONE, _NONE)
    ids = [
        subtrees.get(name, none).identity if kind == FOLDER else content
        for name, kind, content in zip(names, kinds, contents)
    ]
    joined = b"\0".join(names)
    flags = (_XATTRS if any(xattrs) else 0) | (_GROUPS if any(groups) else 0)
    group_names = b"\0".join(groups) if flags & _GROUPS else b""
    body = b"".join(
        (
            joined,
            bytes(kinds),
            _column("H", modes),
            _column("Q", sizes),
            b"".join(ids),
            b"".join(x or _NONE for x in xattrs) if flags & _XATTRS else b"",
            group_names,
        )
    )
    gaps = _encode_gaps(folder)
    head = _HEAD.pack(_MAGIC, len(names), len(joined), len(body), flags, len(group_names))
    identity = head + body
    times = b"".join(
        (
            _column("q", mtimes),
            _column("I", uids),
            _column("I", gids),
            b"".join(subtrees.get(name, none).stored for name, kind in zip(names, kinds) if kind == FOLDER),
            gaps,
        )
    )
    whole = identity + times
    return whole, Ids(sha256(identity).digest(), sha256(whole).digest())


def _encode_gaps(folder: Folder) -> bytes:
    if folder.complete and not folder.gaps:
        return b""
    gaps = [[text(g.name), g.reason] for g in folder.gaps]
    absent = [text(name) for name in sorted(folder.absent)]
    return json.dumps({"gaps": gaps, "complete": folder.complete, "absent": absent}).encode()


def decode(data: bytes) -> Folder:
    """Reads an object back; anything that does not add up is damage, named as such."""
    try:
        return _decode(data)
    except (ValueError, IndexError, KeyError, struct.error, UnicodeError) as error:
        raise Damaged(f"a folder object does not parse ({error})", "run takeback verify") from error


def _decode(data: bytes) -> Folder:
    magic, count, names_size, body_size, flags, groups_size = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError("not a folder object")
    at = _HEAD.size

    def take(size: int) -> bytes:
        nonlocal at
        part = data[at : at + size]
        if len(part) != size:
            raise ValueError("cut short")
        at += size
        return part

    def column(code: str, width: int) -> array[int]:
        values = array(code, take(width * count))
        if _SWAP:
            values.byteswap()
        return values

    joined = take(names_size)
    names = joined.split(b"\0") if count else []
    kinds = take(count)
    modes, sizes = column("H", 2), column("Q", 8)
    blob = take(32 * count)
    ids = [blob[i : i + 32] for i in range(0, len(blob), 32)]
    xattrs = [b""] * count
    if flags & _XATTRS:
        blob = take(32 * count)
        xattrs = [b"" if x == _NONE else x for x in (blob[i : i + 32] for i in range(0, len(blob), 32))]
    groups = take(groups_size).split(b"\0") if flags & _GROUPS else [b""] * count
    if at != _HEAD.size + body_size or len(names) != count or len(groups) != count:
        raise ValueError("parts do not add up")
    mtimes, uids, gids = column("q", 8), column("I", 4), column("I", 4)
    folders = [i for i in range(count) if kinds[i] == FOLDER]
    blob = take(32 * len(folders))
    subtrees = {names[i]: Ids(ids[i], blob[32 * n : 32 * n + 32]) for n, i in enumerate(folders) if ids[i] != _NONE}
    for i in folders:
        ids[i] = b""
    entries = list(map(entry_of, zip(kinds, modes, sizes, ids, xattrs, groups, mtimes, uids, gids)))
    if at == len(data):
        return Folder(names, entries, subtrees)
    rest = json.loads(data[at:])
    gaps = tuple(Gap(raw(name), reason) for name, reason in rest["gaps"])
    absent = frozenset(raw(name) for name in rest["absent"])
    return Folder(names, entries, subtrees, gaps, rest["complete"], absent)


def subfolders(data: bytes) -> list[bytes]:
    """The names of the subfolders in an object of ours, without decoding the rest of it."""
    _, count, names_size, *_ = _HEAD.unpack_from(data)
    at = _HEAD.size + names_size
    kinds = data[at : at + count]
    if FOLDER not in kinds:
        return []
    names = data[_HEAD.size : at].split(b"\0")
    return [name for name, kind in zip(names, kinds) if kind == FOLDER]


# -- snapshots ---------------------------------------------------------------

Load = Callable[[bytes], bytes]  # stored id → object


def join(path: bytes, name: bytes) -> bytes:
    return path + b"/" + name if path else name


def parent(path: bytes) -> bytes:
    """The folder a path is in; of a name right below the root, the root itself."""
    return path.rpartition(b"/")[0]


def walk(load: Load, stored: bytes, as_seen: bool = False) -> Iterator[tuple[bytes, Folder]]:
    """Every folder of a snapshot, parents first. No recursion: trees may be deeper than Python's stack."""
    waiting = [(b"", stored)]
    while waiting:
        here, id = waiting.pop()
        folder = decode(load(id))
        if as_seen:
            folder = folder.as_seen()
        yield here, folder
        waiting += [
            (join(here, name), folder.subtrees[name].stored)
            for name in reversed(folder.names)
            if name in folder.subtrees
        ]


def entries(load: Load, snapshot: Snapshot) -> Iterator[tuple[bytes, Entry]]:
    """All that a snapshot holds, as seen at its moment."""
    for path, folder in walk(load, snapshot.stored, as_seen=True):
        for name, entry in zip(folder.names, folder.entries):
            yield join(path, name), entry


def lookup(load: Load, snapshot: Snapshot, path: bytes) -> tuple[State, Ids | None]:
    """One path's state as a snapshot saw it and, of a folder, its subtree."""
    if not path:
        return snapshot.root, Ids(snapshot.identity, snapshot.stored)
    folder = decode(load(snapshot.stored)).as_seen()
    *parents, last = path.split(b"/")
    for name in parents:
        state = folder.state(name)
        if name not in folder.subtrees:
            unknown = state is not None and state.kind in (FOLDER, UNOBSERVED.kind)
            return (UNOBSERVED if unknown else None), None
        folder = decode(load(folder.subtrees[name].stored)).as_seen()
    return folder.state(last), folder.subtrees.get(last)


class Difference(NamedTuple):
    path: bytes
    before: State
    after: State


def compare(load: Load, a: Ids | None, b: Ids | None, load_b: Load | None = None) -> Iterator[Difference]:
    """What was seen to differ between two trees, skipping subtrees of equal identity."""
    waiting: list[tuple[bytes, Ids | None, Ids | None]] = [(b"", a, b)]
    while waiting:
        path, was_at, now_at = waiting.pop()
        if was_at is not None and now_at is not None and was_at.identity == now_at.identity:
            continue
        old = decode(load(was_at.stored)).as_seen() if was_at else _EMPTY
        new = decode((load_b or load)(now_at.stored)).as_seen() if now_at else _EMPTY
        unread = {gap.name for gap in (*old.gaps, *new.gaps)}
        before, after = dict(zip(old.names, old.entries)), dict(zip(new.names, new.entries))
        for name in sorted({*before, *after}):
            was = before[name] if name in before else old.state(name)
            now = after[name] if name in after else new.state(name)
            if not same(was, now):
                yield Difference(join(path, name), was, now)
            unseen = any(state is not None and state.kind == UNOBSERVED.kind for state in (was, now))
            if not unseen and name not in unread and (name in old.subtrees or name in new.subtrees):
                waiting.append((join(path, name), old.subtrees.get(name), new.subtrees.get(name)))


def times_apart(load: Load, snapshot: Snapshot, now: Ids, load_now: Load) -> Iterator[tuple[bytes, Entry]]:
    """Paths as a snapshot saw them whose entries differ from those of another tree, if only by their times."""
    waiting = [(b"", snapshot.stored, now.stored)]
    while waiting:
        path, then_at, now_at = waiting.pop()
        if then_at == now_at:
            continue
        then, there = decode(load(then_at)).as_seen(), decode(load_now(now_at))
        for name, entry in zip(then.names, then.entries):
            if entry != there.state(name):
                yield join(path, name), entry
            if name in then.subtrees and name in there.subtrees:
                waiting.append((join(path, name), then.subtrees[name].stored, there.subtrees[name].stored))


_EMPTY = Folder([], [], {})


def encode_xattrs(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(struct.pack("<II", len(n), len(v)) + n + v for n, v in pairs)


def decode_xattrs(data: bytes) -> Mapping[bytes, bytes]:
    found, at = {}, 0
    while at < len(data):
        names, values = struct.unpack_from("<II", data, at)
        at += 8
        found[data[at : at + names]] = data[at + names : at + names + values]
        at += names + values
    return found
