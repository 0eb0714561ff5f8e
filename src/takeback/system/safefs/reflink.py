"""Copies that share blocks, where the file system can."""

from __future__ import annotations

import sys


def reflink(source: int, target: int) -> bool:
    """Makes `target` share all of `source`'s blocks; False where that is not possible."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, 0x40049409, source)  # FICLONE
    except OSError:
        return False
    return True
