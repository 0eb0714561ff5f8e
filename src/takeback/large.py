"""Large blobs: a file each, sharing blocks with the original where the file system can.

big/<sha256>     the stored bytes, then one record header as a footer
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .digests import stream
from .errors import Damaged
from .records import (
    CLOEXEC,
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
from .safefs.reflink import reflink
from .workers import is_running

_SAMPLE = 1 << 16  # bytes that decide whether the rest is worth compressing


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
        for _ in self._read(id):
            pass
        yield from self._read(id)

    def _read(self, id: bytes) -> Iterator[bytes]:
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
            _, codec, _, _, raw, stored, _ = record
            file.seek(0)
            digest, length = stream(), 0
            try:
                for chunk in decoded(file, codec, stored):
                    digest.update(chunk)
                    length += len(chunk)
                    if length > raw:
                        break
                    yield chunk
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
        return self.put(sparse_chunks(source) if sparse else chunks(source), sparse, source)

    def put(self, content: Iterator[bytes], sparse: bool = False, source: int | None = None) -> bytes:
        self._reap()
        staging = self.folder / f"tmp-{os.getpid()}-{os.urandom(4).hex()}"
        fd = os.open(staging, os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "w+b", buffering=0) as file:
                digest, raw, chunk = stream(), 0, next(content, b"")
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
                id = digest.digest()
                file.write(header(codec, SPARSE if sparse else 0, raw, stored, id, ()))
                if self._sync:
                    os.fsync(fd)
            os.replace(staging, self._path(id))
        except BaseException:
            staging.unlink(missing_ok=True)
            raise
        self._unsynced = True
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
                    for chunk in self._read(id):
                        if progress:
                            progress(len(chunk))
                except Damaged as error:
                    yield Bad(id, f"big/{path.name}", error.message)

    def collect(self, live: set[bytes]) -> int:
        freed = 0
        for path in self.files():
            if bytes.fromhex(path.name) not in live:
                freed += path.stat().st_size
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
