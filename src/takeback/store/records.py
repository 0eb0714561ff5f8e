"""Records: how a blob lies on disk, with everything needed to check it.

magic "tbr1" · codec · flags · raw length · stored length · sha256 of the raw bytes · crc32 · the stored bytes
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.errors import Damaged

if TYPE_CHECKING:
    from typing import BinaryIO

MAGIC = b"tbr1"
RECORD = struct.Struct("<4sBBHQQ32s")  # magic, codec, flags, -, raw length, stored length, sha256
CRC = struct.Struct("<I")
HEAD = RECORD.size + CRC.size
RAW, ZLIB, ZSTD = 0, 1, 2
SPARSE = 1  # a flag: zeros are written as holes again
EXTENTS = 2  # a flag: only the chunks that are not zeros are stored, followed by which ones they are
CHUNK = 1 << 20
NOT_THOSE = "the bytes are not those of its hash"
WORTH = 0.9  # compress only where it saves a tenth
_LITTLE = 128 << 10  # to pack no more than this, zlib is done before zstandard is loaded
CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Bad(NamedTuple):
    """A blob whose bytes are not what its record says."""

    id: bytes
    where: str
    why: str


# -- codecs ------------------------------------------------------------------


def compress(data: bytes) -> tuple[int, bytes]:
    if len(data) < 128:
        return RAW, data
    codec, packed = (ZLIB, zlib.compress(data, 1)) if _is_little(data) else (ZSTD, zstd().compress(data))
    return (codec, packed) if len(packed) < len(data) * WORTH else (RAW, data)


_total = 0


def _is_little(data: bytes) -> bool:
    """Whether this process has packed little so far, with this."""
    global _total
    _total += len(data)
    return _compressor is None and _total <= _LITTLE


_compressor: Any = None


def zstd() -> Any:
    global _compressor
    if _compressor is None:
        import zstandard

        # A first checkpoint waits for this, not for the disk: an eighth faster than level 1, a seventh more bytes.
        _compressor = zstandard.ZstdCompressor(level=-1, write_content_size=True)
    return _compressor


_decompressor: Any = None


def unzstd() -> Any:
    global _decompressor
    if _decompressor is None:
        import zstandard

        _decompressor = zstandard.ZstdDecompressor()
    return _decompressor


def decompress(codec: int, data: bytes, size: int) -> bytes:
    """The raw bytes, or ValueError; a record that would unpack to more than it says is refused before it does."""
    try:
        return _unpacked(codec, data, size)
    except (zlib.error, zstd_error()) as error:
        raise ValueError(str(error)) from error


def _unpacked(codec: int, data: bytes, size: int) -> bytes:
    if codec == RAW:
        return data
    if codec == ZLIB:
        unpacker = zlib.decompressobj()
        return unpacker.decompress(data, size + 1)
    if codec == ZSTD:
        import zstandard

        if zstandard.frame_content_size(data) != size:
            raise ValueError("it is not as long as its record says")
        content: bytes = unzstd().decompress(data, max_output_size=size)
        return content
    raise ValueError(f"unknown codec {codec}")


def decoded(file: BinaryIO, codec: int, stored: int) -> Iterator[bytes]:
    """The raw bytes in chunks of bounded size, however well they were packed."""
    if codec == ZSTD:
        import zstandard

        part: Any = _Part(file, stored)
        with zstandard.ZstdDecompressor().stream_reader(part, closefd=False) as reader:
            while chunk := reader.read(CHUNK):
                yield chunk
        return
    left = stored
    while left and (chunk := file.read(min(CHUNK, left))):
        left -= len(chunk)
        yield chunk


class _Part:
    """The first bytes of a file, as a file of their own."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file = file
        self._left = left

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= len(data)
        return data


def zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError


# -- headers and footers -----------------------------------------------------


def header(codec: int, flags: int, raw: int, stored: int, id: bytes, crc_of: Iterable[bytes]) -> bytes:
    head = RECORD.pack(MAGIC, codec, flags, 0, raw, stored, id)
    crc = zlib.crc32(head)
    for part in crc_of:
        crc = zlib.crc32(part, crc)
    return head + CRC.pack(crc)


def read_head(file: BinaryIO, offset: int) -> tuple[bytes, int, int, int, int, bytes] | None:
    """(header, codec, flags, raw length, stored length, id) of the record at an offset; None if there is none."""
    file.seek(offset)
    head = file.read(HEAD)
    if len(head) < HEAD or head[:4] != MAGIC:
        return None
    _, codec, flags, _, raw, stored, id = RECORD.unpack_from(head)
    return head, codec, flags, raw, stored, id


def is_whole(file: BinaryIO, offset: int, record: tuple[bytes, int, int, int, int, bytes]) -> bool:
    """Whether a record's bytes are those its header was written for."""
    file.seek(offset + HEAD)
    head = record[0]
    return zlib.crc32(file.read(record[4]), zlib.crc32(head[: RECORD.size])) == int(CRC.unpack(head[RECORD.size :])[0])


def read_footer(file: BinaryIO) -> tuple[bytes, int, int, int, int, int, bytes] | None:
    end = file.seek(0, os.SEEK_END)
    if end < HEAD:
        return None
    file.seek(end - HEAD)
    foot = file.read(HEAD)
    record = RECORD.unpack_from(foot)
    if record[0] != MAGIC or zlib.crc32(foot[: RECORD.size]) != CRC.unpack(foot[RECORD.size :])[0]:
        return None
    if record[5] != end - HEAD:
        return None
    return record


# -- files of ours -----------------------------------------------------------


def private(path: str, flags: int) -> int:
    return os.open(path, flags | CLOEXEC, 0o600)


def pread(fd: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, size, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


def chunks(fd: int) -> Iterator[bytes]:
    while chunk := os.read(fd, CHUNK):
        yield chunk


def sparse_chunks(fd: int) -> Iterator[bytes]:
    """The same of a file with holes, which are not read: the system would make up every page of them."""
    if not hasattr(os, "SEEK_DATA"):
        yield from chunks(fd)
        return
    size, at, zeros = os.fstat(fd).st_size, 0, bytes(CHUNK)
    while at < size:
        try:
            data = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            data = size  # nothing but a hole is left
        while at < data:
            length = min(CHUNK, data - at)
            yield zeros[:length]
            at += length
        hole = os.lseek(fd, at, os.SEEK_HOLE) if at < size else at
        os.lseek(fd, at, os.SEEK_SET)
        while at < hole and (chunk := os.read(fd, min(CHUNK, hole - at))):
            yield chunk
            at += len(chunk)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[: 64 << 20]) :]


def datasync(fd: int) -> None:
    os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)


def sync_folder(path: Path) -> None:
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# -- what is wrong -----------------------------------------------------------


def missing(id: bytes) -> Damaged:
    return Damaged(f"the store lacks blob {id.hex()[:12]}", "run takeback verify to see what is lost")


def damaged(id: bytes, where: str, why: str) -> Damaged:
    return Damaged(f"blob {id.hex()[:12]} in {where} is damaged: {why}", "run takeback verify to see what is lost")
