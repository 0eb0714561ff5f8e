"""git's index file: what is staged, read and written without git. Versions 2 to 4, SHA-1 and SHA-256.

    header · entries (stat data, mode, object, flags, name), by name and stage · extensions · checksum

A path's state is a short run of bytes per stage (mode, object, flags), so that two indexes of many entries are compared
by comparing dicts; the text of a state is made only for what differs.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

_ENTRY = 40  # bytes before the object's name; the last 16 of them begin with the mode
_VALID, _EXTENDED, _STAGE, _NAME = 0x8000, 0x4000, 0x3000, 0x0FFF  # flags of an entry
_SKIP, _LATER = 0x4000, 0x2000  # those that only an extended entry has
_WORDS = (("assume-unchanged", 4), ("skip-worktree", 8), ("intent-to-add", 16))  # bits of a state's last byte
INTENT = 16
_KEPT = (b"REUC",)  # extensions that hold more than a cache


class Unreadable(ValueError):
    """It is no index that can be read, and why."""


class NotCovered(ValueError):
    """It is an index of a kind that is not recorded, and why."""


class Item(NamedTuple):
    """One entry in full: with what git remembers of the file, which is no part of its state."""

    name: bytes
    state: bytes  # mode, object, and a byte of stage and flags
    stat: bytes = bytes(_ENTRY)

    @property
    def stage(self) -> int:
        return self.state[-1] & 3


class Parsed(NamedTuple):
    states: dict[bytes, bytes]  # by name; of a conflict, those of its stages joined
    items: list[Item]  # only where they were asked for
    extensions: bytes  # those worth keeping
    version: int


def width_of(format: str) -> int:
    return 32 if format == "sha256" else 20


def parse(data: bytes, width: int, in_full: bool = False) -> Parsed:
    """All entries. Raises Unreadable, or NotCovered where part of the index lies elsewhere."""
    try:
        return _parse(data, width, in_full)
    except (struct.error, IndexError) as error:
        raise Unreadable("it ends in the middle") from error


def _parse(data: bytes, width: int, in_full: bool) -> Parsed:
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise Unreadable("it does not begin as an index does")
    end = len(data) - width
    if data[end:] != bytes(width) and _hash(width, data[:end]) != data[end:]:  # zeros: index.skipHash
        raise Unreadable("its checksum does not fit")
    states: dict[bytes, bytes] = {}
    items: list[Item] = []
    at, name, flags_at = 12, b"", _ENTRY + width
    for _ in range(count):
        high, low = data[at + flags_at], data[at + flags_at + 1]
        start = at + flags_at + 2
        bits = (high >> 4) & 3 | (4 if high & 0x80 else 0)
        if high & 0x40:
            bits |= (8 if data[start] & 0x40 else 0) | (16 if data[start] & 0x20 else 0)
            start += 2
        if version == 4:
            drop, start = _number(data, start)
            stop = data.find(b"\0", start, end)
            if drop > len(name) or stop < 0:
                raise Unreadable("a name makes no sense")
            name = name[: len(name) - drop] + data[start:stop]
            following = stop + 1
        else:
            length = (high & 0x0F) << 8 | low
            stop = start + length if length < _NAME else data.find(b"\0", start, end)
            if stop < 0:
                raise Unreadable("a name does not end")
            name = data[start:stop]
            following = at + ((stop - at + 8) & ~7)
        if following > end:
            raise Unreadable("it ends in the middle")
        state = b"%b%b%c" % (data[at + 24 : at + 28], data[at + _ENTRY : at + flags_at], bits)
        states[name] = states[name] + state if bits & 3 and name in states else state
        if in_full:
            items.append(Item(name, state, data[at : at + _ENTRY]))
        at = following
    return Parsed(states, items, _extensions(data, at, end), version)


def _extensions(data: bytes, at: int, end: int) -> bytes:
    kept = []
    while at + 8 <= end:
        name, length = struct.unpack_from(">4sI", data, at)
        if name == b"link":
            raise NotCovered("a split index is not recorded; git update-index --no-split-index makes it a plain one")
        if name == b"sdir":
            mend = "git sparse-checkout reapply --no-sparse-index"
            raise NotCovered(f"a sparse index is not recorded; {mend} makes it a plain one")
        if name[:1].islower():
            raise NotCovered(f"an index with the extension {name.decode('ascii', 'replace')} is not recorded")
        if name in _KEPT:
            kept.append(data[at : at + 8 + length])
        at += 8 + length
    if at != end:
        raise Unreadable("its extensions make no sense")
    return b"".join(kept)


def _number(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 127)
    return value, at + 1


def _numbered(value: int) -> bytes:
    """The way back from `_number`."""
    found = [value & 127]
    while value := value >> 7:
        value -= 1
        found.append(128 | (value & 127))
    return bytes(reversed(found))


def pack(items: list[Item], extensions: bytes, width: int, version: int = 2) -> bytes:
    """An index of version 4 where it was one, and else 2, or 3 where entries need it. What git only caches in one is
    left out."""
    items = sorted(items, key=lambda item: (item.name, item.stage))
    if version != 4:
        version = 3 if any(item.state[-1] & 24 for item in items) else 2
    before = b""
    parts = [struct.pack(">4sII", b"DIRC", version, len(items))]
    for name, state, stat in items:
        bits = state[-1]
        flags = (bits & 3) << 12 | min(len(name), _NAME) | (_VALID if bits & 4 else 0)
        more = b""
        if bits & 24:
            flags |= _EXTENDED
            more = struct.pack(">H", (_SKIP if bits & 8 else 0) | (_LATER if bits & 16 else 0))
        entry = stat[:24] + state[:4] + stat[28:_ENTRY] + state[4:-1] + struct.pack(">H", flags) + more
        if version == 4:  # a name without what it shares with the one before it
            shared = next((at for at, (a, b) in enumerate(zip(before, name)) if a != b), min(len(before), len(name)))
            parts.append(entry + _numbered(len(before) - shared) + name[shared:] + b"\0")
            before = name
        else:
            entry += name
            parts.append(entry + bytes(8 - len(entry) % 8))
    data = b"".join(parts) + extensions
    return data + _hash(width, data)


def _hash(width: int, data: bytes) -> bytes:
    return (hashlib.sha256(data) if width == 32 else hashlib.sha1(data, usedforsecurity=False)).digest()


def object_name(width: int, kind: bytes, data: bytes) -> bytes:
    """What git would call an object of these bytes."""
    return _hash(width, b"%b %d\0%b" % (kind, len(data), data))


# -- states as text ----------------------------------------------------------


def split(state: bytes, width: int) -> list[bytes]:
    """The stages of a state, each by itself."""
    size = 5 + width
    return [state[at : at + size] for at in range(0, len(state), size)]


def text_of(state: bytes, width: int) -> bytes:
    """One line per stage: mode, object, stage, and its flags in words."""
    lines = []
    for one in split(state, width):
        words = [word for word, bit in _WORDS if one[-1] & bit]
        mode = int.from_bytes(one[:4], "big")
        lines.append(" ".join([f"{mode:06o}", one[4:-1].hex(), str(one[-1] & 3), *words]))
    return "".join(f"{line}\n" for line in lines).encode()


def state_of(text: bytes) -> bytes:
    """The way back from `text_of`; Unreadable if it is none of ours."""
    bit = dict(_WORDS)
    found = []
    for line in text.decode("ascii", "replace").splitlines():
        try:
            mode, name, stage, *words = line.split(" ")
            bits = int(stage) | sum(bit[word] for word in words)
            found.append(int(mode, 8).to_bytes(4, "big") + bytes.fromhex(name) + bytes([bits]))
        except (ValueError, KeyError, OverflowError) as error:
            raise Unreadable("it is no entry of an index") from error
    return b"".join(found)
