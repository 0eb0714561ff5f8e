"""Content-addressed bytes: what the rest needs of a blob store, and the one that lives in memory.

The store on disk is packs.py, with large.py for large files. A new one passes tests/conformance/blobs.py.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Protocol

from . import chunks as chunked
from .records import NOT_THOSE, Bad, chunks, damaged, missing

BIG = 4 << 20  # from here on a blob is a file of its own


class Blobs(Protocol):
    """What the rest needs of a blob store; a new one passes tests/conformance/blobs.py. `get` and `stream` check the
    bytes against their hash before anybody sees them."""

    def put(self, data: bytes, id: bytes | None = None) -> bytes: ...
    def put_stream(self, source: int, size: int, sparse: bool) -> bytes: ...
    def get(self, id: bytes) -> bytes: ...
    def stream(self, id: bytes) -> Iterator[bytes]: ...
    def extents(self, id: bytes) -> Iterator[tuple[int, bytes]]: ...
    def is_sparse(self, id: bytes) -> bool: ...
    def has(self, id: bytes) -> bool: ...
    def lacking(self, ids: set[bytes]) -> set[bytes]: ...
    def flush(self) -> None: ...
    def discard(self) -> None: ...
    def ids(self) -> Iterator[bytes]: ...
    def size(self) -> int: ...
    def sizes(self) -> dict[bytes, int]: ...
    def check(self, data: bool, progress: Callable[[int], None] | None = None) -> Iterator[Bad]: ...
    def collect(
        self, live: set[bytes], purge: frozenset[bytes] = frozenset(), progress: Callable[[int], None] | None = None
    ) -> int: ...
    def collectable(self, live: set[bytes], purge: frozenset[bytes] = frozenset()) -> int: ...
    def quarantine(self, bad: Iterable[Bad]) -> int: ...
    def worker(self, name: str) -> Blobs: ...
    def reload(self, surely: bool = False) -> None: ...
    def close(self) -> None: ...


class MemoryBlobs:
    """Blobs of a workspace that lives no longer than its process."""

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._sparse: set[bytes] = set()
        self._large: dict[bytes, int] = {}  # sizes of files whose chunks alone are held

    def put(self, data: bytes, id: bytes | None = None) -> bytes:
        id = id or sha256(data).digest()
        self._data.setdefault(id, bytes(data))
        return id

    def put_stream(self, source: int, size: int, sparse: bool) -> bytes:
        os.lseek(source, 0, os.SEEK_SET)
        if size >= chunked.FROM:
            found = [(number * chunked.GRAIN, chunk) for number, chunk in chunked.read(source, size)]
            id = _identity(found, size)
            self._large[id] = size
            self._data.setdefault(id, marshal.dumps(found))
            os.lseek(source, size, os.SEEK_SET)  # as if it had been read, which tells the caller its size
        else:
            id = self.put(b"".join(chunks(source)))
        if sparse:
            self._sparse.add(id)
        return id

    def get(self, id: bytes) -> bytes:
        if id in self._large:
            whole = bytearray(self._large[id])
            for at, chunk in self.extents(id):
                whole[at : at + len(chunk)] = chunk
            return bytes(whole)
        data = self._data.get(id)
        if data is None:
            raise missing(id)
        if not self._is_good(id):
            raise damaged(id, "memory", NOT_THOSE)
        return data

    def stream(self, id: bytes) -> Iterator[bytes]:
        yield self.get(id)

    def extents(self, id: bytes) -> Iterator[tuple[int, bytes]]:
        if id not in self._large:
            yield 0, self.get(id)
            return
        if not self._is_good(id):
            raise damaged(id, "memory", NOT_THOSE)
        yield from marshal.loads(self._data[id])

    def _is_good(self, id: bytes) -> bool:
        data = self._data[id]
        if id in self._large:
            return _identity(marshal.loads(data), self._large[id]) == id
        return sha256(data).digest() == id

    def is_sparse(self, id: bytes) -> bool:
        return id in self._sparse

    def has(self, id: bytes) -> bool:
        return id in self._data

    def lacking(self, ids: set[bytes]) -> set[bytes]:
        return ids - self._data.keys()

    def flush(self) -> None:
        pass

    def discard(self) -> None:
        pass

    def worker(self, name: str) -> MemoryBlobs:
        return self

    def reload(self, surely: bool = False) -> None:
        pass

    def close(self) -> None:
        pass

    def ids(self) -> Iterator[bytes]:
        yield from list(self._data)

    def sizes(self) -> dict[bytes, int]:
        return {id: len(data) for id, data in self._data.items()}

    def size(self) -> int:
        return sum(self.sizes().values())

    def check(self, data: bool, progress: Callable[[int], None] | None = None) -> Iterator[Bad]:
        for id in self._data:
            if not self._is_good(id):
                yield Bad(id, "memory", NOT_THOSE)

    def collect(
        self, live: set[bytes], purge: frozenset[bytes] = frozenset(), progress: Callable[[int], None] | None = None
    ) -> int:
        dead = [id for id in self._data if id not in live]
        return sum(len(self._data.pop(id)) for id in dead)

    def collectable(self, live: set[bytes], purge: frozenset[bytes] = frozenset()) -> int:
        return sum(len(data) for id, data in self._data.items() if id not in live)

    def quarantine(self, bad: Iterable[Bad]) -> int:
        return sum(self._data.pop(blob.id, None) is not None for blob in bad)


def _identity(found: Iterable[tuple[int, bytes]], size: int) -> bytes:
    digest = chunked.ChunkedHash()
    for at, chunk in found:
        digest.add(at // chunked.GRAIN, chunk)
    return digest.digest(size)
