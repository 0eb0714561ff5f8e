"""The head of the journal, kept beside it: a table that is longer than the head says is fine, a shorter one has lost
its tail. The file has two places, used in turn, so that a torn write leaves the one before.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

START = bytes(32)  # what the first row follows
_HEAD = struct.Struct("<Q32s")
_PLACE = _HEAD.size + 4  # a head and its checksum
_FLAGS = os.O_RDWR | getattr(os, "O_BINARY", 0)


class Head(NamedTuple):
    seq: int
    hash: bytes


class HeadFile:
    """It stays open between two uses: a put reads and writes it each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self) -> Head | None:
        """The newest head that it holds; None if it is missing or holds none."""
        try:
            self._open(_FLAGS)
        except OSError:  # missing, or not to be written to
            return kept_head(self.path)
        return _newest(_read(self._fd, 2 * _PLACE))

    def write(self, head: Head, sync: bool = False, place: int | None = None) -> None:
        """Puts a head where the one before the last lies, or into the place of another row's."""
        packed = _HEAD.pack(*head)
        self._open(_FLAGS | os.O_CREAT)
        at = _PLACE * ((head.seq if place is None else place) % 2)
        _write(self._fd, packed + zlib.crc32(packed).to_bytes(4, "little"), at)
        if sync:
            os.fsync(self._fd)

    def _open(self, flags: int) -> None:
        if self._fd >= 0 and not self._is_there():  # somebody deleted, moved or replaced it
            self.close()
        if self._fd < 0:
            self._fd = os.open(self.path, flags, 0o600)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._fd))
        except FileNotFoundError:
            return False


class SeenHead(HeadFile):
    """The head as it was at one moment, beside a copy of the journal that was made then."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._seen = kept_head(path)

    def read(self) -> Head | None:
        return self._seen


# A forked process shares the place in the file, so that nobody relies on where it is.
if hasattr(os, "pread"):

    def _read(fd: int, size: int) -> bytes:
        return os.pread(fd, size, 0)

    def _write(fd: int, data: bytes, at: int) -> None:
        os.pwrite(fd, data, at)

else:

    def _read(fd: int, size: int) -> bytes:
        os.lseek(fd, 0, os.SEEK_SET)
        return os.read(fd, size)

    def _write(fd: int, data: bytes, at: int) -> None:
        os.lseek(fd, at, os.SEEK_SET)
        os.write(fd, data)


def kept_head(path: Path) -> Head | None:
    """As `HeadFile.read`, of a file that nothing is written to."""
    try:
        return _newest(path.read_bytes())
    except FileNotFoundError:
        return None


def _newest(data: bytes) -> Head | None:
    found = []
    for place in (data[:_PLACE], data[_PLACE : 2 * _PLACE]):
        packed, checksum = place[: _HEAD.size], place[_HEAD.size :]
        if len(place) == _PLACE and zlib.crc32(packed).to_bytes(4, "little") == checksum:
            found.append(Head(*_HEAD.unpack(packed)))
    return max(found, default=None)
