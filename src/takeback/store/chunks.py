"""The identity of large files: the hash of their chunks, of which those that are all zeros are left out.

So a hole is never read, and nobody has to know whether zeros lie on the disk: the same bytes have the same identity, as
holes or written out. It is a hash of the bytes and of nothing else, like the plain sha256 that smaller files have. By
its first bytes the two are told apart, as large files that were stored before there was this one keep their plain one.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from hashlib import sha256

FROM = 64 << 20  # size of a file from which on this is its identity
GRAIN = 64 << 10  # bytes in a chunk: so much is read and stored around a byte that lies alone in a hole
_PIECE = 1 << 20  # bytes that are read at a time
_MARK = b"chunks"
_NUMBER = struct.Struct("<Q")
ZEROS = bytes(GRAIN)


def is_chunked(id: bytes) -> bool:
    return id.startswith(_MARK)


class ChunkedHash:
    """Fed with bytes one after the other, or with chunks by their number; both give the same."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._rest = b""  # bytes that make no whole chunk yet
        self._size = 0

    def update(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        whole = len(data) - len(data) % GRAIN
        for number, chunk in grains(data[:whole], self._size // GRAIN):
            self.add(number, chunk)
        self._size += whole
        self._rest = data[whole:]

    def add(self, number: int, chunk: bytes) -> None:
        self._hash.update(_NUMBER.pack(number) + sha256(chunk).digest())

    def digest(self, size: int | None = None) -> bytes:
        """Of a content of this size; else of what was given."""
        for number, chunk in grains(self._rest, self._size // GRAIN):
            self.add(number, chunk)
        self._hash.update(_NUMBER.pack(self._size + len(self._rest) if size is None else size))
        return _MARK + self._hash.digest()[len(_MARK) :]


def grains(data: bytes, first: int) -> Iterator[tuple[int, bytes]]:
    """The chunks of bytes that begin at chunk `first`, without those of zeros."""
    for at in range(0, len(data), GRAIN):
        chunk = data[at : at + GRAIN]
        if chunk != (ZEROS if len(chunk) == GRAIN else ZEROS[: len(chunk)]):
            yield first + at // GRAIN, chunk


def read(fd: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The chunks of an open file that are not all zeros, by their number. Holes are not read."""
    at = 0
    while at < size and (start := _next_data(fd, at, size)) < size:
        at = start - start % GRAIN
        end = min(-(-_next_hole(fd, start, size) // GRAIN) * GRAIN, size)
        while at < end:
            os.lseek(fd, at, os.SEEK_SET)
            piece = _read_all(fd, min(_PIECE, end - at))
            if not piece:
                return  # cut meanwhile, which its stat tells
            yield from grains(piece, at // GRAIN)
            at += len(piece)


def identity(fd: int, size: int) -> bytes:
    found = ChunkedHash()
    for number, chunk in read(fd, size):
        found.add(number, chunk)
    return found.digest(size)


def _read_all(fd: int, size: int) -> bytes:
    data = os.read(fd, size)
    while 0 < len(data) < size and (more := os.read(fd, size - len(data))):
        data += more
    return data


def _next_data(fd: int, at: int, size: int) -> int:
    """Where the next byte lies that is in no hole; where nobody tells of holes, at once."""
    if not hasattr(os, "SEEK_DATA"):
        return at
    try:
        return os.lseek(fd, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size  # nothing but a hole is left
        if error.errno in (errno.EINVAL, errno.ENOTSUP):
            return at
        raise


def _next_hole(fd: int, at: int, size: int) -> int:
    if not hasattr(os, "SEEK_HOLE"):
        return size
    try:
        return os.lseek(fd, at, os.SEEK_HOLE)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOTSUP, errno.ENXIO):
            return size
        raise
