"""Reading one path of the tree into an Entry: a real version of it, or the reason why not.

With a store the bytes go into it as they are read; without one they are only hashed.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from hashlib import sha256

from takeback.errors import TakebackError
from takeback.model.effects import FILE, FOLDER, LINK, Entry, State
from takeback.store import chunks, folder_objects
from takeback.store.blobs import BIG, Blobs
from takeback.store.records import sparse_chunks
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import keys

_TRIES = 4
_SPARSE_FROM = 1 << 16


class StoreFailed(TakebackError):
    """The store could not take what was read: no checkpoint, and nothing is pretended."""


class Reader:
    def __init__(self, put: Blobs | None) -> None:
        self.put = put
        self.plain: set[tuple[int, bytes]] = set()  # sizes and plain identities of large files that may be met again

    def read(
        self, here: OpenFolder, name: bytes, st: os.stat_result, known: State = None
    ) -> tuple[Entry | str, os.stat_result]:
        """An entry with its bytes stored, or why that failed (empty: it is gone). As `known`, it keeps its identity."""
        try:
            if stat.S_ISREG(st.st_mode):
                return self.read_file(here, name, known)
            if stat.S_ISLNK(st.st_mode):
                target = here.readlink(name)
                id = self._store(target)
                return Entry(LINK, 0o777, len(target), id, b"", b"", st.st_mtime_ns, st.st_uid, st.st_gid), st
            try:
                with here.child(name) as below:
                    xattrs = self.store_xattrs(below.self_xattrs())
            except PermissionError:
                xattrs = b""  # listing it will say what is missing
            mode = stat.S_IMODE(st.st_mode)
            return Entry(FOLDER, mode, 0, b"", xattrs, b"", st.st_mtime_ns, st.st_uid, st.st_gid), st
        except FileNotFoundError:
            return "", st
        except StoreFailed:
            raise
        except OSError as error:
            return f"cannot be read: {error.strerror}", st

    def read_file(self, here: OpenFolder, name: bytes, known: State = None) -> tuple[Entry | str, os.stat_result]:
        """Bytes and stat of one version: both are taken again if the file changed in between."""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(0.002 * 2**attempt)
            fd = here.open_read(name)
            try:
                st = os.fstat(fd)
                if not stat.S_ISREG(st.st_mode):
                    return "cannot be read: it is no regular file any more", st
                blocks = getattr(st, "st_blocks", None)
                sparse = blocks is not None and blocks * 512 < st.st_size and st.st_size >= _SPARSE_FROM
                if id := self._as_before(fd, st.st_size, known):
                    size = st.st_size
                elif st.st_size >= min(BIG, chunks.FROM) or sparse:
                    id, size = self._store_stream(fd, st.st_size, sparse)
                else:
                    data = _read_up_to(fd, st.st_size)
                    size = len(data)
                xattrs = here.xattrs(fd)
                if size == st.st_size and keys.key_of(os.fstat(fd)) == keys.key_of(st):
                    id = id or self._store(data)
                    mode = stat.S_IMODE(st.st_mode)
                    found = self.store_xattrs(xattrs)
                    return Entry(FILE, mode, size, id, found, b"", st.st_mtime_ns, st.st_uid, st.st_gid), st
            finally:
                os.close(fd)
        return "kept changing while it was read", st

    def _as_before(self, fd: int, size: int, known: State) -> bytes:
        """The plain identity of a large file that was stored before those had one by chunks; else nothing."""
        if size < chunks.FROM:
            return b""
        plain = {id for length, id in self.plain if length == size}
        if known is not None and known.kind == FILE and known.size == size and not chunks.is_chunked(known.content):
            plain.add(known.content)
        if not plain:
            return b""
        digest = sha256()
        for chunk in sparse_chunks(fd):
            digest.update(chunk)
        id = digest.digest()
        os.lseek(fd, 0, os.SEEK_SET)
        return id if id in plain and (self.put is None or self.put.has(id)) else b""

    def _store(self, data: bytes) -> bytes:
        id = sha256(data).digest()
        if self.put is not None:
            try:
                self.put.put(data, id)
            except OSError as error:
                raise _store_failed(error) from error
        return id

    def store_xattrs(self, pairs: list[tuple[bytes, bytes]]) -> bytes:
        return self._store(folder_objects.encode_xattrs(pairs)) if pairs else b""

    def _store_stream(self, fd: int, size: int, sparse: bool) -> tuple[bytes, int]:
        if self.put is not None:
            try:
                return self.put.put_stream(fd, size, sparse), os.lseek(fd, 0, os.SEEK_CUR)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG):
                    raise _store_failed(error) from error
                raise
        if size >= chunks.FROM:
            return chunks.identity(fd, size), size
        digest, size = sha256(), 0
        while chunk := os.read(fd, 1 << 20):
            digest.update(chunk)
            size += len(chunk)
        return digest.digest(), size


def _read_up_to(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) in (size, size + 1) or not data:
        return data
    parts = [data]
    while chunk := os.read(fd, 1 << 20):
        parts.append(chunk)
    return b"".join(parts)


def _store_failed(error: OSError) -> StoreFailed:
    why = error.strerror or str(error)
    return StoreFailed(
        f"the store cannot be written ({why}); no checkpoint was taken",
        "free space or mend the store, then run it again: takeback doctor",
    )
