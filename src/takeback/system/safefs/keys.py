"""Stat keys: what a scan compares to see, without reading, that nothing changed."""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Callable
from itertools import chain
from operator import attrgetter

# On Windows ctime is the time of creation, so the time of writing has to do.
_WHEN = "st_mtime_ns" if os.name == "nt" else "st_ctime_ns"
key_of = attrgetter(_WHEN, "st_size", "st_ino", "st_mode")
WIDTH = 4 * 8
ZERO = bytes(WIDTH)  # equals no real key: the entry is read again at the next look

_FINE, _COARSE = 20_000_000, 2_000_000_000


def pack(st: os.stat_result) -> bytes:
    when, size, inode, mode = key_of(st)
    return struct.pack("=qqQq", when, size, inode, mode)


def pack_all(stat: Callable[[bytes], os.stat_result], names: list[bytes]) -> bytes:
    """The keys of many names as one run of bytes, in C iterators throughout: every look runs through here."""
    try:
        return array("q", chain.from_iterable(map(key_of, map(stat, names)))).tobytes()
    except OverflowError:  # inode numbers above 2**63 exist
        return b"".join(pack(stat(name)) for name in names)


def split(packed: bytes) -> list[bytes]:
    """The keys of one run of bytes, each by itself."""
    return [packed[at : at + WIDTH] for at in range(0, len(packed), WIDTH)]


def settled(st: os.stat_result, now_ns: int) -> bool:
    """Whether a change made after this look must show in the key: the last change is older than the clock's grain."""
    when: int = getattr(st, _WHEN)
    window = _COARSE if when % 1_000_000_000 == 0 else _FINE
    return when < now_ns - window
