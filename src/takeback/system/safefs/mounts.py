"""Where other file systems are mounted inside the tree: they are named, never entered."""

from __future__ import annotations

import os
import sys

# File systems that nobody but this kernel writes to.
_LOCAL = frozenset(b"ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs tmpfs ramfs overlay".split())


def mounts_below(root: str) -> frozenset[bytes]:
    """Root-relative mount points, bind mounts included (those share their device number)."""
    if sys.platform != "linux":
        return frozenset()
    prefix = os.fsencode(os.path.realpath(root)).rstrip(b"/") + b"/"
    points = (_unescaped(line.split(b" ")[4]) for line in _mounted())
    return frozenset(p[len(prefix) :] for p in points if p.startswith(prefix))


def is_local(root: str) -> bool:
    """Whether only this machine writes to the file system that a folder is on; False where that cannot be told."""
    real = os.fsencode(os.path.realpath(root)).rstrip(b"/") + b"/"
    longest, kind = b"", b""
    for line in _mounted():
        words = line.split(b" ")
        point = _unescaped(words[4]).rstrip(b"/") + b"/"
        if real.startswith(point) and len(point) >= len(longest):  # of several in one place the last is seen
            longest, kind = point, words[words.index(b"-") + 1]
    return kind in _LOCAL


def _mounted() -> list[bytes]:
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _unescaped(point: bytes) -> bytes:
    return point.decode("unicode_escape").encode("latin-1") if b"\\" in point else point
