"""Large blobs: a file each, sharing blocks with the original where the file system can.

big/<id>     the stored bytes, then one record header as a footer

Of a sparse file from chunked.FROM on, the stored bytes are its chunks that are not all zeros, one after the other, then
which chunks these are (first, count) …, then how many such runs there are.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takeback.errors import Damaged
from takeback.system.forking import is_running
from takeback.system.safefs.reflink import reflink

from . import chunks as chunked
from .records import (
    CHUNK,
    CLOEXEC,
    EXTENTS,
    RAW,
    SPARSE,
    ZSTD,
    Bad,
    chunks,
    compress,
    damaged,
    decoded,
    header,
    missing,
    read_footer,
    sparse_chunks,
    sync_folder,
    zstd,
    zstd_error,
)

if TYPE_CHECKING:
    from typing import BinaryIO

_SAMPLE = 1 << 16  # bytes that decide whether the rest is worth compressing
_RUN, _COUNT = struct.Struct("<QQ"), struct.Struct("<Q")


def _zeros(count: int) -> Iterator[bytes]:
    while count > 0:
        yield bytes(min(count, CHUNK))
        count -= CHUNK


def _stored_chunks(file: BinaryIO, codec: int, raw: int, stored: int) -> Iterator[tuple[int, bytes]]:
    """The chunks of a blob of extents with their numbers; ValueError where its parts do not add up."""
    file.seek(max(stored - _COUNT.size, 0))
    (count,) = _COUNT.unpack(_exactly(file, _COUNT.size))
    payload = stored - _COUNT.size - count * _RUN.size
    if payload < 0:
        raise ValueError("its parts do not add up")
    file.seek(payload)
    runs = list(_RUN.iter_unpack(_exactly(file, count * _RUN.size)))
    file.seek(0)
    pieces, data, last = decoded(file, codec, payload), b"", -1
    for first, length in runs:
        if first <= last or (first + length - 1) * chunked.GRAIN >= raw:
            raise ValueError("its chunks lie beyond its end, or not in order")
        last = first + length - 1
        for number in range(first, first + length):
            size = min(chunked.GRAIN, raw - number * chunked.GRAIN)
            while len(data) < size and (piece := next(pieces, b"")):
                data += piece
            if len(data) < size:
                raise ValueError("it is cut short")
            yield number, data[:size]
            data = data[size:]
    if data or next(pieces, b""):
        raise ValueError("it holds more than it says")


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError("it is cut short")
    return data


class LargeFiles:
    def __init__(self, folder: Path, sync: bool, portable: bool) -> None:
        self.folder = folder
        self._sync = sync
        self._portable = portable
        self._unsynced = False  # names that are new in the folder

    def _path(self, id: bytes) -> Path:
        return self.folder / id.hex()

    def has(self, id: bytes) -> bool:
        return self._path(id).exists()

    def files(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [p for p in sorted(self.folder.iterdir()) if len(p.name) == 64]

    # -- reading -------------------------------------------------------------

    def stream(self, id: bytes) -> Iterator[bytes]:
        """In chunks. The whole is checked first, so that nothing bad is ever handed out."""
        end = 0
        for at, chunk in self.extents(id):
            yield from _zeros(at - end)
            yield chunk
            end = at + len(chunk)
        yield from _zeros(self._size(id) - end)

    def extents(self, id: bytes) -> Iterator[tuple[int, bytes]]:
        """The same with where each chunk lies; between them are zeros."""
        for _ in self._read(id):
            pass
        yield from self._read(id)

    def _size(self, id: bytes) -> int:
        with open(self._path(id), "rb") as file:
            record = read_footer(file)
        return record[4] if record is not None else 0

    def _read(self, id: bytes) -> Iterator[tuple[int, bytes]]:
        path = self._path(id)
        where = f"big/{path.name}"
        try:
            file = open(path, "rb")
        except FileNotFoundError:
            raise missing(id) from None
        with file:
            record = read_footer(file)
            if record is None or record[6] != id:
                raise damaged(id, where, "its footer is not readable")
            _, codec, flags, _, raw, stored, _ = record
            digest: Any = chunked.ChunkedHash() if chunked.is_chunked(id) else sha256()
            length = 0
            try:
                if flags & EXTENTS:
                    for number, chunk in _stored_chunks(file, codec, raw, stored):
                        digest.add(number, chunk)
                        yield number * chunked.GRAIN, chunk
                    if digest.digest(raw) != id:
                        raise damaged(id, where, "the bytes are not those of its hash")
                    return
                file.seek(0)
                for chunk in decoded(file, codec, stored):
                    digest.update(chunk)
                    length += len(chunk)
                    if length > raw:
                        break
                    yield length - len(chunk), chunk
            except (ValueError, OSError, zstd_error()) as error:
                raise damaged(id, where, f"does not decompress ({error})") from None
            if length != raw or digest.digest() != id:
                raise damaged(id, where, "the bytes are not those of its hash")

    def is_sparse(self, id: bytes) -> bool:
        try:
            with open(self._path(id), "rb") as file:
                record = read_footer(file)
        except FileNotFoundError:
            return False
        return record is not None and bool(record[2] & SPARSE)

    # -- writing -------------------------------------------------------------

    def put_open(self, source: int, sparse: bool) -> bytes:
        """An open file of any size, without holding it in memory."""
        os.lseek(source, 0, os.SEEK_SET)
        if sparse and os.fstat(source).st_size >= chunked.FROM:
            return self._put_extents(source, os.fstat(source).st_size)
        return self.put(sparse_chunks(source) if sparse else chunks(source), sparse, source)

    def _put_extents(self, source: int, size: int) -> bytes:
        """Of a sparse file only what is not zeros: time and room follow what it takes up."""
        digest, runs = chunked.ChunkedHash(), list[tuple[int, int]]()
        with self._staged() as (file, name):
            packer = zstd().compressobj()
            for number, chunk in chunked.read(source, size):
                digest.add(number, chunk)
                if runs and sum(runs[-1]) == number:
                    runs[-1] = (runs[-1][0], runs[-1][1] + 1)
                else:
                    runs.append((number, 1))
                file.write(packer.compress(chunk))
            file.write(packer.flush())
            file.write(b"".join(_RUN.pack(*run) for run in runs) + _COUNT.pack(len(runs)))
            id = digest.digest(size)
            stored = file.seek(0, os.SEEK_END)
            file.write(header(ZSTD, SPARSE | EXTENTS, size, stored, id, ()))
            name.append(id)
        os.lseek(source, size, os.SEEK_SET)  # as if it had been read, which tells the caller its size
        return id

    @contextmanager
    def _staged(self) -> Iterator[tuple[BinaryIO, list[bytes]]]:
        """A file that gets its name once it is whole: the id that its writer appends."""
        self._reap()
        staging = self.folder / f"tmp-{os.getpid()}-{os.urandom(4).hex()}"
        fd = os.open(staging, os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o600)
        ids: list[bytes] = []
        try:
            with os.fdopen(fd, "w+b", buffering=0) as file:
                yield file, ids
                if self._sync:
                    os.fsync(fd)
            os.replace(staging, self._path(ids[0]))
        except BaseException:
            staging.unlink(missing_ok=True)
            raise
        self._unsynced = True

    def put(self, content: Iterator[bytes], sparse: bool = False, source: int | None = None) -> bytes:
        with self._staged() as (file, name):
            fd = file.fileno()
            large = source is not None and os.fstat(source).st_size >= chunked.FROM
            digest: Any = chunked.ChunkedHash() if large else sha256()
            raw, chunk = 0, next(content, b"")
            codec = RAW if not sparse and compress(chunk[:_SAMPLE])[0] == RAW else ZSTD
            shared = codec == RAW and source is not None and not self._portable and reflink(source, fd)
            if shared:  # hash what was cloned, not what the source has become since
                os.lseek(fd, 0, os.SEEK_SET)
                content = chunks(fd)
                chunk = next(content, b"")
            packer = zstd().compressobj() if codec == ZSTD else None
            while chunk:
                digest.update(chunk)
                raw += len(chunk)
                if not shared:
                    file.write(packer.compress(chunk) if packer else chunk)
                chunk = next(content, b"")
            if packer:
                file.write(packer.flush())
            elif shared and source is not None:
                os.ftruncate(fd, raw)
                os.lseek(source, raw, os.SEEK_SET)  # as if it had been read, which tells the caller its size
            stored = file.seek(0, os.SEEK_END)
            id: bytes = digest.digest()
            file.write(header(codec, SPARSE if sparse else 0, raw, stored, id, ()))
            name.append(id)
        return id

    def _reap(self) -> None:
        """Removes what writers that died have left."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for leftover in self.folder.glob("tmp-*"):
            if not is_running(leftover.name.split("-")[1]):
                leftover.unlink(missing_ok=True)

    def flush(self) -> None:
        if self._unsynced and self._sync:
            sync_folder(self.folder)
        self._unsynced = False

    # -- care ----------------------------------------------------------------

    def check(self, data: bool, progress: Callable[[int], None] | None) -> Iterator[Bad]:
        for path in self.files():
            id = bytes.fromhex(path.name)
            with open(path, "rb") as file:
                record = read_footer(file)
            if record is None or record[6] != id:
                yield Bad(id, f"big/{path.name}", "its footer is not readable")
                continue
            if data:
                try:
                    for _, chunk in self._read(id):
                        if progress:
                            progress(len(chunk))
                except Damaged as error:
                    yield Bad(id, f"big/{path.name}", error.message)

    def dead(self, live: set[bytes]) -> list[tuple[Path, int]]:
        """Files that are not live, with their sizes."""
        return [(path, path.stat().st_size) for path in self.files() if bytes.fromhex(path.name) not in live]

    def collect(self, live: set[bytes]) -> int:
        freed = 0
        for path, size in self.dead(live):
            freed += size
            path.unlink()
        for leftover in self.folder.glob("tmp-*"):
            leftover.unlink(missing_ok=True)
        return freed

    def quarantine(self, bad: Iterable[Bad], aside: Path) -> int:
        moved = 0
        for blob in bad:
            path = self._path(blob.id)
            if path.exists():
                os.replace(path, aside / path.name)
                moved += 1
        return moved
