"""Stat keys: what a scan compares to see, without reading, that nothing changed."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from itertools import chain
from operator import attrgetter

# On Windows ctime is the time of creation, so the time of writing has to do.
_WHEN = "st_mtime_ns" if os.name == "nt" else "st_ctime_ns"
key_of = attrgetter(_WHEN, "st_size", "st_ino", "st_mode")
WIDTH = 4 * 8
ZERO = bytes(WIDTH)  # equals no real key: the entry is read again at the next look

_FINE, _COARSE = 20_000_000, 2_000_000_000


def pack(stats: Iterable[os.stat_result]) -> bytes:
    keys = list(map(key_of, stats))
    try:
        return array("q", chain.from_iterable(keys)).tobytes()
    except OverflowError:  # inode numbers above 2**63 exist
        return array("Q", (n & 0xFFFF_FFFF_FFFF_FFFF for key in keys for n in key)).tobytes()


def settled(st: os.stat_result, now_ns: int) -> bool:
    """Whether a change made after this look must show in the key: the last change is older than the clock's grain."""
    when: int = getattr(st, _WHEN)
    window = _COARSE if when % 1_000_000_000 == 0 else _FINE
    return when < now_ns - window
