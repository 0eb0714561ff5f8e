"""Files that somebody else names: only regular ones are read, and nobody waits for a pipe, a socket or a device."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def read(path: str | Path, most: int, last: bool = False) -> bytes:
    """So many bytes at most, from the beginning or the last ones; OSError where it is no regular file."""
    _must_be_regular(os.stat(path), path)  # first: to open a device may already act on it
    fd = os.open(path, _FLAGS)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        _must_be_regular(found, path)
        if last:
            file.seek(max(0, found.st_size - most))
        return file.read(most) or b""


def _must_be_regular(found: os.stat_result, path: str | Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
