"""Where other file systems are mounted inside the tree: they are named, never entered."""

from __future__ import annotations

import os
import sys


def mounts_below(root: str) -> frozenset[bytes]:
    """Root-relative mount points, bind mounts included (those share their device number)."""
    if sys.platform != "linux":
        return frozenset()
    prefix = os.fsencode(os.path.realpath(root)).rstrip(b"/") + b"/"
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return frozenset()
    points = (_unescaped(line.split(b" ")[4]) for line in lines)
    return frozenset(p[len(prefix) :] for p in points if p.startswith(prefix))


def _unescaped(point: bytes) -> bytes:
    return point.decode("unicode_escape").encode("latin-1") if b"\\" in point else point
