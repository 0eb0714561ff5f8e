"""The blob store on disk: append-only packs of records, and large files beside them.

    packs/<n>.pack   records, one after another      packs/<n>.idx   sorted ids with offsets (sealed packs)
                                                     packs/<n>.toc   the same in order of writing (the open pack)

A record describes itself, so that idx and toc are only caches. Writers hold the store lock; a torn tail is cut by the
next of them. Readers need no lock and look once more on a miss.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from takeback.errors import Damaged
from takeback.system.safefs import linux

from .blobs import BIG
from .large_blobs import LargeFiles
from .records import (
    CLOEXEC,
    CRC,
    HEAD,
    MAGIC,
    NOT_THOSE,
    RECORD,
    Bad,
    compress,
    damaged,
    datasync,
    decompress,
    header,
    is_whole,
    missing,
    pread,
    private,
    read_head,
    sync_folder,
    write_all,
)

_TOC = struct.Struct("<32sQ")
_TOC_ROW = struct.Struct("<32sQI")  # in a toc each row has its own checksum
_SEAL = 64 << 20
_LONG = 4096  # blobs: a longer table of contents is sorted and sealed, since a toc is read row by row
_BUFFER = 4 << 20
_OFTEN = 1000  # searches: from here on hints pay
_BITS = 18  # of an id, for a hint: they take a megabyte
_SHORT = 4096  # bytes of a record that are read with its header: of most files, all


class _Found(NamedTuple):
    pack: str
    offset: int


class _Table:
    """The sorted rows of a sealed pack. The first eight bytes of each id stand apart as numbers, among which C code
    searches: a blob that is new is looked for in every table."""

    __slots__ = ("rows", "starts")

    def __init__(self, rows: bytes) -> None:
        self.rows = rows
        self.starts = array("Q", rows)[:: _TOC.size // 8]
        if sys.byteorder == "little":
            self.starts.byteswap()

    def offset(self, id: bytes) -> int | None:
        """Where the pack has this blob; None if it has not."""
        first = id[:8]
        at = bisect_left(self.starts, int.from_bytes(first, "big")) * _TOC.size
        while self.rows[at : at + 8] == first:
            if self.rows[at : at + 32] == id:
                return int(_TOC.unpack_from(self.rows, at)[1])
            at += _TOC.size
        return None


class _Hints:
    """Which table may have a blob, by the first bits of its id. A blob that is new need not be looked for in any, and
    any other is mostly found in the first: a store has a table more for each large look."""

    def __init__(self, tables: dict[str, _Table]) -> None:
        self._names = [""]
        self._slots = array("I", bytes(4 << _BITS))
        for name, table in tables.items():
            self.add(name, table)

    def add(self, name: str, table: _Table) -> None:
        number, slots = len(self._names), self._slots
        self._names.append(name)
        for start in table.starts:
            slots[start >> (64 - _BITS)] = number

    def first(self, id: bytes) -> str:
        """The pack to look into first; empty if none has it."""
        return self._names[self._slots[int.from_bytes(id[:8], "big") >> (64 - _BITS)]]


class Packs:
    """The blob store on disk. `worker` keeps a forked process's packs apart from all others."""

    def __init__(self, folder: Path, sync: bool = True, portable: bool = False, worker: str = "") -> None:
        self.folder = folder
        self.packs = folder / "packs"
        self.large = LargeFiles(folder / "big", sync, portable)
        self._sync = sync
        self._portable = portable
        self._worker = worker
        self._fds: dict[str, int] = {}
        self._forget()

    def _forget(self) -> None:
        self._sealed: dict[str, _Table] = {}
        self._last = ""  # the sealed pack that had what was asked for last
        self._searched = 0  # times that tables were searched
        self._hints: _Hints | None = None  # once that was often
        self._open: dict[bytes, _Found] | None = None
        self._stamped: object = None
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._toc: list[bytes] = []
        self._fresh: dict[bytes, bytes] = {}  # written to the buffer, not yet to the file
        self._loose: dict[str, list[bytes]] = {}  # toc rows of records that a killed writer did not get to list
        self._trusted: dict[str, int] = {}  # how far a toc holds that does not hold to its end
        self._ends: dict[str, int] = {}  # where the last whole record of an unsealed pack ends
        self._name = ""
        self._fd = -1
        self._end = 0

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
        if self._fd >= 0:
            os.close(self._fd)
        self._forget()

    def worker(self, name: str) -> Packs:
        """The same store for a forked process, which writes packs of its own and seals them."""
        return Packs(self.folder, self._sync, self._portable, name)

    def reload(self, surely: bool = False) -> None:
        """Sees what other processes have written, if any did (`surely`: a worker of ours has)."""
        if self._open is not None and (surely or self._stamp() != self._stamped):
            self._open = None
            self._loose.clear()
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _stamp(self) -> object:
        """Changes whenever a pack is added, sealed, removed or appended to."""
        try:
            folder = self.packs.stat().st_mtime_ns
            return folder, tuple(
                sorted((e.name, e.stat().st_size) for e in os.scandir(self.packs) if e.name.endswith(".toc"))
            )
        except FileNotFoundError:
            return None

    # -- finding -------------------------------------------------------------

    def _load(self) -> None:
        """Reads the tables of contents that are there now."""
        self._stamped = self._stamp()
        names = {p.name for p in os.scandir(self.packs)} if self.packs.is_dir() else set()
        for name in names:
            if name.endswith(".idx") and name[:-4] not in self._sealed:
                try:
                    data = (self.packs / name).read_bytes()
                except FileNotFoundError:
                    continue
                if len(data) % _TOC.size == 4 and zlib.crc32(data[:-4]) == CRC.unpack(data[-4:])[0]:
                    self._add(name[:-4], _Table(data[:-4]))
        gone = [name for name in self._sealed if name + ".pack" not in names]
        for name in gone:
            del self._sealed[name]
            if name in self._fds:
                os.close(self._fds.pop(name))
        self._open = {}
        self._loose.clear()
        for name in sorted(names, key=lambda n: ("-" not in n, n)):  # the open pack has the last word
            if name.endswith(".pack") and name[:-5] not in self._sealed:
                try:
                    self._open.update(self._read_toc(name[:-5]))
                except FileNotFoundError:
                    continue  # repacked by another process in this moment

    def _read_toc(self, name: str) -> dict[bytes, _Found]:
        """The open pack's contents: from its toc as far as that goes, then by walking the records."""
        found: dict[bytes, _Found] = {}
        end = 0
        path = self.packs / f"{name}.pack"
        size = path.stat().st_size
        try:
            toc = (self.packs / f"{name}.toc").read_bytes()
        except FileNotFoundError:
            toc = b""
        self._trusted.pop(name, None)
        view, at = memoryview(toc), 0
        for id, offset, crc in _TOC_ROW.iter_unpack(view[: len(toc) // _TOC_ROW.size * _TOC_ROW.size]):
            if zlib.crc32(view[at : at + _TOC.size]) != crc:
                self._trusted[name] = at  # what a power cut or a bad disk left: from here on the records tell
                break
            if offset < size:
                found[id] = _Found(name, offset)
                end = offset if offset > end else end
            at += _TOC_ROW.size
        with open(path, "rb") as file:
            if found:  # the last one listed tells where the walk goes on, if it is whole
                if (record := read_head(file, end)) is None or end + HEAD + record[4] > size:
                    self._ends[name] = end
                    return {id: f for id, f in found.items() if f.offset < end}
                end += HEAD + record[4]
            while (record := read_head(file, end)) is not None and end + HEAD + record[4] <= size:
                after = end + HEAD + record[4]
                if is_whole(file, end, record):
                    found[record[5]] = _Found(name, end)
                    self._loose.setdefault(name, []).append(_toc_row(record[5], end))
                elif read_head(file, after) is None:
                    break  # the torn tail of a power cut
                end = after
        self._ends[name] = end
        return found

    def _find(self, id: bytes) -> _Found | None:
        if self._open is None:
            self._load()
        assert self._open is not None
        if (found := self._open.get(id)) is not None:
            return found
        self._searched += 1
        if self._hints is None and self._searched > _OFTEN:
            self._hints = _Hints(self._sealed)
        first = self._last  # neighbours were stored one after another
        if self._hints is not None and not (first := self._hints.first(id)):
            return None
        tried = self._sealed.get(first)
        if tried is not None and (offset := tried.offset(id)) is not None:
            return _Found(first, offset)
        for name, table in self._sealed.items():
            if table is not tried and (offset := table.offset(id)) is not None:
                self._last = name
                return _Found(name, offset)
        return None

    def _add(self, name: str, table: _Table) -> None:
        self._sealed[name] = table
        if self._hints is not None:
            self._hints.add(name, table)

    def has(self, id: bytes) -> bool:
        return id in self._fresh or self._find(id) is not None or self.large.has(id)

    def lacking(self, ids: set[bytes]) -> set[bytes]:
        """Which of many are not there: cheaper than asking for each, since whole tables are looked through."""
        if self._open is None:
            self._load()
        left = ids - (self._open or {}).keys() - self._fresh.keys()
        for rows in (table.rows for table in self._sealed.values()):
            if left:
                left.difference_update(rows[at : at + 32] for at in range(0, len(rows), _TOC.size))
        return {id for id in left if not self.large.has(id)}

    # -- reading -------------------------------------------------------------

    def get(self, id: bytes) -> bytes:
        """The bytes, checked against their hash before anybody sees them."""
        if (data := self._fresh.get(id)) is not None:
            if sha256(data).digest() != id:
                raise damaged(id, "memory", NOT_THOSE)
            return data
        found = self._find(id)
        if found is None and not self.large.has(id):
            self._open = None  # another process may have sealed, repacked or written meanwhile
            found = self._find(id)
        if found is None:
            return b"".join(self.stream(id))
        try:
            return self._get_packed(id, found)
        except FileNotFoundError:
            self._open = None
            if (found := self._find(id)) is None:
                raise missing(id) from None
            return self._get_packed(id, found)

    def _get_packed(self, id: bytes, found: _Found) -> bytes:
        fd = self._fds.get(found.pack)
        if fd is None:
            fd = self._fds[found.pack] = os.open(self.packs / f"{found.pack}.pack", os.O_RDONLY | CLOEXEC)
        first = pread(fd, HEAD + _SHORT, found.offset)
        if len(first) < HEAD or first[:4] != MAGIC:
            raise _wrong(id, found, "no record there")
        _, codec, _, _, raw, stored, record_id = RECORD.unpack_from(first)
        if record_id != id or raw > BIG * 64 or stored > raw + 64:
            raise _wrong(id, found, "the record's header is not this blob's")
        data = first[HEAD : HEAD + stored] if stored <= _SHORT else pread(fd, stored, found.offset + HEAD)
        try:
            content = decompress(codec, data, raw)
        except ValueError as error:
            raise _wrong(id, found, f"does not decompress ({error})") from None
        if len(content) != raw or sha256(content).digest() != id:
            raise _wrong(id, found, NOT_THOSE)
        return content

    def stream(self, id: bytes) -> Iterator[bytes]:
        """The bytes in chunks, however many; checked as a whole before the first is handed out."""
        if id in self._fresh or self._find(id) is not None:
            yield self.get(id)
        else:
            yield from self.large.stream(id)

    def extents(self, id: bytes) -> Iterator[tuple[int, bytes]]:
        """The same with where each chunk lies; between them are zeros."""
        if id in self._fresh or self._find(id) is not None:
            yield 0, self.get(id)
        else:
            yield from self.large.extents(id)

    def is_sparse(self, id: bytes) -> bool:
        return self.large.is_sparse(id)

    # -- writing (under the store lock) ---------------------------------------

    def put(self, data: bytes, id: bytes | None = None) -> bytes:
        """Stores bytes once; they are durable after `flush`."""
        id = id or sha256(data).digest()
        if id in self._fresh or self._find(id) is not None:
            return id
        if len(data) >= BIG:
            return self.large.put(iter((data,)))
        codec, stored = compress(data)
        if self._fd < 0:
            self._open_pack()
        head = header(codec, 0, len(data), len(stored), id, (stored,))
        self._toc.append(_toc_row(id, self._end))
        assert self._open is not None
        self._open[id] = _Found(self._name, self._end)
        self._fresh[id] = data
        self._buffer += (head, stored)
        self._buffered += HEAD + len(stored)
        self._end += HEAD + len(stored)
        if self._buffered > _BUFFER:
            self._write_buffer()
            if self._end > _SEAL:
                self._seal()
        return id

    def put_stream(self, source: int, size: int, sparse: bool) -> bytes:
        """Stores an open file of any size without holding it in memory, sharing its blocks where possible."""
        return self.large.put_open(source, sparse)

    def _open_pack(self) -> None:
        """Takes up the open pack where its last whole record ends, or begins a new one."""
        if self._open is None:
            self._load()
        self.packs.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = sorted(p.name[:-5] for p in os.scandir(self.packs) if p.name.endswith(".pack"))
        unsealed = [n for n in names if n not in self._sealed and not self._worker and "-" not in n]
        if unsealed:
            self._name = unsealed[-1]
            self._end = self._ends.get(self._name, 0)
        else:
            highest = max((int(n.split("-")[0], 16) for n in names), default=0)
            self._name = f"{highest + 1:08x}{self._worker}"
            self._end = 0
        self._fd = os.open(self.packs / f"{self._name}.pack", os.O_RDWR | os.O_CREAT | CLOEXEC, 0o600)
        os.ftruncate(self._fd, self._end)  # cuts a torn tail
        if not unsealed and self._sync:
            sync_folder(self.packs)

    def _write_buffer(self) -> None:
        if not self._buffer:
            return
        data = b"".join(self._buffer)
        start = self._end - len(data)
        os.lseek(self._fd, start, os.SEEK_SET)
        write_all(self._fd, data)
        if self._sync and len(data) > _BUFFER:
            linux.start_writing(self._fd, start, len(data))
        self._buffer.clear()
        self._buffered = 0
        self._fresh.clear()

    def flush(self) -> None:
        """Everything put so far is on disk when this returns."""
        self._list_loose()
        if self._fd >= 0:
            self._write_buffer()
            if self._toc:
                if self._sync:
                    datasync(self._fd)
                self._append_toc(self._name, self._toc)
                self._toc.clear()
            if self._end > _SEAL or self._worker or len(self._open or ()) > _LONG:
                self._seal()
        if self._open is not None:
            self._stamped = self._stamp()
        self.large.flush()

    def _list_loose(self) -> None:
        """Records that a killed writer left are synced and listed before any row may rely on them."""
        for name, rows in self._loose.items():
            if self._sync:
                fd = os.open(self.packs / f"{name}.pack", os.O_RDWR | CLOEXEC)
                try:
                    datasync(fd)
                finally:
                    os.close(fd)
            self._append_toc(name, rows)
        self._loose.clear()

    def _append_toc(self, name: str, rows: list[bytes]) -> None:
        with open(self.packs / f"{name}.toc", "ab", opener=private) as toc:
            end = toc.tell() - toc.tell() % _TOC_ROW.size
            toc.truncate(min(end, self._trusted.pop(name, end)))
            toc.write(b"".join(rows))

    def _seal(self) -> None:
        """Closes the open pack with a sorted index."""
        self._write_buffer()
        self._loose.pop(self._name, None)
        if self._sync:
            datasync(self._fd)
        listed = self._open or {}
        mine = {id: f.offset for id, f in listed.items() if f.pack == self._name}
        data = b"".join(sorted(map(_TOC.pack, mine, mine.values())))
        _write_idx(self.packs / f"{self._name}.idx", data, self._sync)
        (self.packs / f"{self._name}.toc").unlink(missing_ok=True)
        os.close(self._fd)
        self._add(self._name, _Table(data))
        self._open = {id: f for id, f in listed.items() if id not in mine}
        self._toc.clear()
        self._fd = -1

    def discard(self) -> None:
        """Forgets what was put and not flushed: after a failure nothing half-written is taken up again."""
        self.close()

    # -- care ----------------------------------------------------------------

    def ids(self) -> Iterator[bytes]:
        self._open = None
        self._load()
        yield from list(self._open or ())
        for table in list(self._sealed.values()):
            for id, _ in _TOC.iter_unpack(table.rows):
                yield id
        for path in self.large.files():
            yield bytes.fromhex(path.name)

    def sizes(self) -> dict[bytes, int]:
        """What each blob takes up on disk."""
        found = {bytes.fromhex(path.name): path.stat().st_size for path in self.large.files()}
        for path in self.packs.glob("*.pack") if self.packs.is_dir() else ():
            offsets = sorted((f.offset, id) for id, f in self._contents(path.stem).items())
            ends = [offset for offset, _ in offsets[1:]] + [path.stat().st_size]
            found.update((id, end - offset) for (offset, id), end in zip(offsets, ends))
        return found

    def size(self) -> int:
        total = 0
        for folder in (self.packs, self.large.folder):
            if folder.is_dir():
                for entry in os.scandir(folder):
                    try:
                        st = entry.stat()
                    except FileNotFoundError:
                        continue  # renamed or collected meanwhile
                    total += getattr(st, "st_blocks", 0) * 512 or st.st_size
        return total

    def check(self, data: bool, progress: Callable[[int], None] | None = None) -> Iterator[Bad]:
        """Walks every record, or every byte. A torn tail of the open pack is no damage: it was never acknowledged."""
        for path in sorted(self.packs.glob("*.pack")) if self.packs.is_dir() else ():
            yield from self._check_pack(path, data, progress)
        yield from self.large.check(data, progress)

    def _check_pack(self, path: Path, data: bool, progress: Callable[[int], None] | None) -> Iterator[Bad]:
        known = {f.offset: id for id, f in self._contents(path.stem).items()}
        end, at, size = 0, 0, path.stat().st_size
        with open(path, "rb") as file:
            offsets = sorted(known)
            while at < size:
                record = read_head(file, at)
                where = f"packs/{path.name} at {at}"
                if record is None or at + HEAD + record[4] > size:
                    if at in known:
                        yield Bad(known[at], where, "the record's header is damaged")
                    after = [o for o in offsets if o > at]
                    if not after:
                        break
                    at = after[0]
                    continue
                head = record[0]
                file.seek(at + HEAD)
                stored = file.read(record[4])
                crc = zlib.crc32(stored, zlib.crc32(head[: RECORD.size]))
                if crc != CRC.unpack(head[RECORD.size :])[0]:
                    if at not in known and read_head(file, at + HEAD + record[4]) is None:
                        break  # a torn tail
                    yield Bad(known.get(at, record[5]), where, "the record's bytes are damaged")
                elif data:
                    try:
                        if sha256(decompress(record[1], stored, record[3])).digest() != record[5]:
                            raise ValueError("not the bytes of its hash")
                    except ValueError as error:
                        yield Bad(record[5], where, str(error))
                if progress:
                    progress(HEAD + len(stored))
                at += HEAD + record[4]
                end = at
        for offset, id in known.items():
            if offset >= end and offset >= size:
                yield Bad(id, f"packs/{path.name} at {offset}", "cut off")

    def _contents(self, name: str) -> dict[bytes, _Found]:
        self._load()
        if name in self._sealed:
            return {id: _Found(name, offset) for id, offset in _TOC.iter_unpack(self._sealed[name].rows)}
        return {id: f for id, f in (self._open or {}).items() if f.pack == name}

    def collect(
        self, live: set[bytes], purge: frozenset[bytes] = frozenset(), progress: Callable[[int], None] | None = None
    ) -> int:
        """Drops what is not live: rewrites packs that are mostly dead or hold what must go, removes dead large
        files. Returns the bytes freed."""
        self.flush()
        self._open = None
        self._load()
        freed = self.large.collect(live)
        for leftover in self.packs.glob("*.new"):
            leftover.unlink(missing_ok=True)
        for path in sorted(self.packs.glob("*.pack")) if self.packs.is_dir() else ():
            size = path.stat().st_size
            freed += self._repack(path.stem, live, purge)
            if progress:
                progress(size)
        return freed

    def collectable(self, live: set[bytes], purge: frozenset[bytes] = frozenset()) -> int:
        """What `collect` would free, as far as nothing is damaged."""
        self.flush()
        self._open = None
        self._load()
        names = [path.stem for path in self.packs.glob("*.pack")] if self.packs.is_dir() else []
        repacked = sum(self._to_repack(name, live, purge)[1] for name in names)
        return sum(size for _, size in self.large.dead(live)) + repacked

    def _to_repack(self, name: str, live: set[bytes], purge: frozenset[bytes]) -> tuple[dict[bytes, _Found], int]:
        """What of a pack is to be kept, and how many bytes go without the rest; 0: it stays as it is."""
        contents = self._contents(name)
        kept = {id: found for id, found in contents.items() if id in live}
        size = (self.packs / f"{name}.pack").stat().st_size
        weight = sum(map(self._record_size, kept.values()))
        if purge.isdisjoint(contents) and (len(kept) == len(contents) or weight > size / 2):
            return kept, 0
        return kept, size - weight

    def _repack(self, name: str, live: set[bytes], purge: frozenset[bytes]) -> int:
        kept, freed = self._to_repack(name, live, purge)
        if not freed:
            return 0
        if self._rewrite(name, kept):
            return 0  # something in it is damaged: it stays, as evidence and for what can still be read
        for suffix in (".idx", ".toc", ".pack"):
            (self.packs / f"{name}{suffix}").unlink(missing_ok=True)
        self._load()
        return freed

    def _record_size(self, found: _Found) -> int:
        with open(self.packs / f"{found.pack}.pack", "rb") as file:
            record = read_head(file, found.offset)
        return HEAD + (record[4] if record else 0)

    def quarantine(self, bad: Iterable[Bad]) -> int:
        """Sets damaged blobs aside in quarantine/, so that they are stored anew when seen again; deletes nothing."""
        aside = self.folder / "quarantine"
        packed: dict[str, set[bytes]] = {}
        large = []
        for blob in bad:
            aside.mkdir(mode=0o700, exist_ok=True)
            if blob.where.startswith("big/"):
                large.append(blob)
            else:
                packed.setdefault(blob.where.split("/")[1].split(".pack")[0], set()).add(blob.id)
        moved = self.large.quarantine(large, aside)
        for name, ids in packed.items():
            contents = {**self._contents(name), **self._walked(name)}  # a cache may lack what is there
            moved += len(ids) + self._rewrite(name, {id: f for id, f in contents.items() if id not in ids})
            os.replace(self.packs / f"{name}.pack", aside / f"{name}-{os.urandom(4).hex()}.pack")
            for suffix in (".idx", ".toc"):
                (self.packs / f"{name}{suffix}").unlink(missing_ok=True)
        self.close()
        return moved

    def _walked(self, name: str) -> dict[bytes, _Found]:
        """The whole records of a pack, as they say themselves."""
        found: dict[bytes, _Found] = {}
        at, path = 0, self.packs / f"{name}.pack"
        size = path.stat().st_size
        with open(path, "rb") as file:
            while (record := read_head(file, at)) is not None and at + HEAD + record[4] <= size:
                if is_whole(file, at, record):
                    found[record[5]] = _Found(name, at)
                at += HEAD + record[4]
        return found

    def _rewrite(self, name: str, wanted: dict[bytes, _Found]) -> int:
        """Copies blobs of a pack into a new one, synced, before the old one may go; returns how many of them turned
        out damaged."""
        damaged_too = 0
        apart = Packs(self.folder, self._sync, self._portable, worker=f"-r{os.urandom(3).hex()}")
        apart._load()
        apart._sealed.pop(name, None)
        assert apart._open is not None
        for id in wanted:
            apart._open.pop(id, None)
        for id, found in wanted.items():
            try:
                apart.put(self._get_packed(id, found), id)
            except Damaged:
                damaged_too += 1
        apart.flush()
        apart.close()
        self._let_go(name)
        return damaged_too

    def _let_go(self, name: str) -> None:
        """Closes a pack that is about to be removed."""
        if self._fd >= 0 and self._name == name:
            os.close(self._fd)
            self._fd = -1
        if name in self._fds:
            os.close(self._fds.pop(name))
        self._sealed.pop(name, None)
        self._open = None


def _wrong(id: bytes, found: _Found, why: str) -> Damaged:
    return damaged(id, f"packs/{found.pack}.pack at {found.offset}", why)


def _toc_row(id: bytes, offset: int) -> bytes:
    row = _TOC.pack(id, offset)
    return row + CRC.pack(zlib.crc32(row))


def _write_idx(path: Path, data: bytes, sync: bool) -> None:
    staging = path.with_suffix(".new")
    with open(staging, "wb", opener=private) as file:
        file.write(data + CRC.pack(zlib.crc32(data)))
        file.flush()
        if sync:
            os.fsync(file.fileno())
    os.replace(staging, path)
    if sync:
        sync_folder(path.parent)
