"""The known tree, cached: for every folder its names, stat keys and folder object, as last observed.

The truth is in the journal (a checkpoint's snapshot plus all later changes); the index only saves reading it all.
A missing, old or damaged index is rebuilt, and its zero keys make the next look read every file again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple, Protocol

from takeback.model.effects import FOLDER, UNOBSERVED, UNSEEN, Change, Entry, Snapshot, State
from takeback.store import folder_objects
from takeback.store.folder_objects import Folder, Gap, Ids, join
from takeback.system.safefs import keys

_DECODED = 2048  # folders kept decoded: enough for what a day's work touches, and no more memory than that


class Objects(Protocol):
    """Where folder objects lie that are not in memory. What it gives is what the id names, or it raises."""

    def get(self, number: int, stored: bytes) -> bytes: ...


class Record(NamedTuple):
    """One folder, packed: its object waits, maybe on disk, until something in it has changed."""

    names: bytes  # joined by NUL, as in the object
    keys: bytes
    identity: bytes
    stored: bytes
    held: bytes | Objects  # the folder object, or where it lies
    number: int = 0  # as which one there

    @property
    def object(self) -> bytes:
        held = self.held
        return held if isinstance(held, bytes) else held.get(self.number, self.stored)

    @property
    def ids(self) -> Ids:
        return Ids(self.identity, self.stored)


_keys_of = attrgetter("keys")


class Index:
    def __init__(
        self,
        folders: dict[bytes, Record] | None = None,
        root: Entry = UNOBSERVED,
        root_key: bytes = keys.ZERO,
        gaps: dict[bytes, tuple[Gap, ...]] | None = None,
        incomplete: dict[bytes, frozenset[bytes]] | None = None,
        links: dict[int, tuple[bytes, ...]] | None = None,
        seq: int = 0,
        rules: str = "",
    ) -> None:
        self.folders = folders if folders is not None else {}  # parents before children
        self.root = root
        self.root_key = root_key
        self.gaps = gaps if gaps is not None else {}  # folders with names not covered
        self.incomplete = incomplete if incomplete is not None else {}  # not listed whole; names seen absent
        self.links = links if links is not None else {}  # inode → paths, of files with several names
        self.seq = seq  # the journal row this reflects
        self.rules = rules  # fingerprint of the rules the folders were listed under
        self.origin = object()  # the same in all copies of what was read or saved at one time
        self.touched: set[bytes] = set()  # folders that may differ from those of the origin
        self._decoded: dict[bytes, Folder] = {}  # by stored id

    # -- reading -------------------------------------------------------------

    def folder(self, path: bytes) -> Folder | None:
        record = self.folders.get(path)
        if record is None:
            return None
        known = self._decoded.get(record.stored)
        if known is None:
            known = folder_objects.decode(record.object)
            self._remember(record.stored, known)
        return known

    def _remember(self, stored: bytes, folder: Folder) -> None:
        if len(self._decoded) >= _DECODED:
            self._decoded.clear()
        self._decoded[stored] = folder

    def state(self, path: bytes) -> State:
        """The last observed state of a path."""
        if not path:
            return self.root
        parent, _, name = path.rpartition(b"/")
        if (folder := self.folder(parent)) is not None:
            return folder.state(name)
        while parent:  # the nearest listed ancestor tells whether anything can be below it
            here, _, name = parent.rpartition(b"/")
            if (folder := self.folder(here)) is not None:
                state = folder.state(name)
                below_unseen = state is not None and state.kind in (FOLDER, UNSEEN)
                return UNOBSERVED if below_unseen else None
            parent = here
        return UNOBSERVED

    def snapshot(self) -> Snapshot:
        record = self.folders[b""]
        names = sum(map(len, map(_keys_of, self.folders.values()))) // keys.WIDTH  # each has one
        return Snapshot(record.identity, record.stored, self.root, names - len(self.folders) + 1)

    def below(self, path: bytes) -> Iterator[bytes]:
        """The folders of a subtree, itself first."""
        waiting = [path]
        while waiting:
            here = waiting.pop()
            if (folder := self.folder(here)) is not None:
                yield here
                waiting += [join(here, name) for name in folder.subtrees]

    def uncovered(self) -> Iterator[tuple[bytes, str]]:
        for path, gaps in sorted(self.gaps.items()):
            for gap in gaps:
                yield join(path, gap.name), gap.reason
        for path in sorted(self.incomplete):
            yield path, folder_objects.NOT_LOOKED_AT

    # -- changing ------------------------------------------------------------

    def put_folder(self, path: bytes, folder: Folder, packed_keys: bytes) -> Ids:
        data, ids = folder_objects.encode(folder)
        self.folders[path] = Record(b"\0".join(folder.names), packed_keys, *ids, data)
        self.touched.add(path)
        self._remember(ids.stored, folder)
        self.gaps.pop(path, None)
        self.incomplete.pop(path, None)
        if folder.gaps:
            self.gaps[path] = folder.gaps
        if not folder.complete:
            self.incomplete[path] = folder.absent
        return ids

    def add(self, other: Index) -> None:
        """Takes up folders that were settled apart."""
        self.folders.update(other.folders)
        self.touched.update(other.folders)
        self.gaps.update(other.gaps)
        self.incomplete.update(other.incomplete)

    def put_keys(self, path: bytes, packed_keys: bytes) -> None:
        self.folders[path] = self.folders[path]._replace(keys=packed_keys)
        self.touched.add(path)

    def drop_folder(self, path: bytes) -> None:
        self.touched.add(path)
        for table in (self.folders, self.gaps, self.incomplete):
            table.pop(path, None)

    def in_order(self) -> None:
        """Restores the order parents-then-children, in which a scan walks with few reopenings."""
        self.folders = dict(sorted(self.folders.items(), key=lambda item: item[0].replace(b"/", b"\0")))

    def apply(self, changes: Iterable[Change], stats: dict[bytes, os.stat_result] | None = None) -> set[bytes]:
        """Brings the known tree to where these changes lead; returns the folders whose objects are new.

        With the stat of what was just written its key is known; otherwise the next look reads it again."""
        edits: dict[bytes, dict[bytes, State]] = {}
        sighted: set[bytes] = set()  # seen for the first time: what is in such a folder was not
        for change in changes:
            if change.before is not None and change.before.kind == UNSEEN:
                sighted.add(change.path)
            if not change.path:
                self.root = change.after or self.root
                self.root_key = keys.ZERO
                continue
            parent, _, name = change.path.rpartition(b"/")
            edits.setdefault(parent, {})[name] = change.after
        pending: dict[bytes, tuple[Folder, bytes]] = {}
        for parent in sorted(edits, key=lambda p: p.count(b"/") if p else -1):
            self._edit(parent, edits[parent], stats or {}, sighted, pending)
        return self.settle(pending)

    def _edit(
        self,
        parent: bytes,
        edits: dict[bytes, State],
        stats: dict[bytes, os.stat_result],
        sighted: set[bytes],
        pending: dict[bytes, tuple[Folder, bytes]],
    ) -> None:
        if parent in pending:
            folder, packed = pending[parent]
        else:
            record = self.folders.get(parent)
            known_folder = self.folder(parent)
            if known_folder is None or record is None:
                if all(state is None for state in edits.values()):
                    return  # the folder is gone with all that was in it
                folder, packed = Folder([], [], {}, complete=bool(parent) and self.state(parent) is None), b""
            else:
                folder, packed = known_folder, record.keys
        entries = dict(zip(folder.names, folder.entries))
        known = dict(zip(folder.names, keys.split(packed)))
        absent, gaps = set(folder.absent), {g.name: g for g in folder.gaps}
        for name, state in edits.items():
            path = join(parent, name)
            gaps.pop(name, None)
            absent.discard(name)
            if path in self.folders and (state is None or state.kind != FOLDER):
                for below in list(self.below(path)):
                    self.drop_folder(below)
                    pending.pop(below, None)
            if state is None or state.kind == UNSEEN:
                entries.pop(name, None)
                if state is None:
                    absent.add(name)
                else:
                    gaps[name] = Gap(name, folder_objects.NOT_LOOKED_AT)
                continue
            entries[name] = state
            known[name] = keys.pack(stats[path]) if path in stats else keys.ZERO
            if state.kind == FOLDER and path not in self.folders and path not in pending:
                pending[path] = Folder([], [], {}, complete=path not in sighted), b""
        names = sorted(entries)
        pending[parent] = (
            Folder(
                names,
                [entries[n] for n in names],
                folder.subtrees,
                tuple(gaps.values()),
                folder.complete,
                frozenset(absent & gaps.keys() if folder.complete else absent),
            ),
            b"".join(known[n] for n in names),
        )

    def settle(self, pending: dict[bytes, tuple[Folder, bytes]]) -> set[bytes]:
        """Takes up new folders, deepest first, with new hashes for all above them; returns every folder looked at."""
        todo = set()
        for path in pending:
            while path not in todo:
                todo.add(path)
                if not path:
                    break
                path = folder_objects.parent(path)
        for path in sorted(todo, key=lambda p: -(p.count(b"/") + 1) if p else 0):
            if path in pending:
                folder, packed = pending[path]
            else:
                record, known = self.folders.get(path), self.folder(path)
                if known is None or record is None:
                    continue
                folder, packed = known, record.keys
            subtrees = {}
            for name, entry in zip(folder.names, folder.entries):
                if entry.kind == FOLDER and (below := self.folders.get(join(path, name))) is not None:
                    subtrees[name] = below.ids
            if path in pending or subtrees != folder.subtrees:
                self.put_folder(path, folder._replace(subtrees=subtrees), packed)
        return {path for path in todo if path in self.folders}

    # -- made elsewhere ------------------------------------------------------

    @classmethod
    def from_snapshot(cls, load: folder_objects.Load, snapshot: Snapshot, seq: int) -> Index:
        """The known tree of a checkpoint, with keys that make the next look read everything."""
        index = cls(root=snapshot.root, seq=seq)
        for path, folder in folder_objects.walk(load, snapshot.stored):
            index.put_folder(path, folder, keys.ZERO * len(folder.names))
        return index

    def copy(self) -> Index:
        """One that can be changed apart; what is decoded is shared, since it never changes."""
        other = Index(
            dict(self.folders),
            self.root,
            self.root_key,
            dict(self.gaps),
            dict(self.incomplete),
            dict(self.links),
            self.seq,
            self.rules,
        )
        other.origin, other.touched = self.origin, set(self.touched)
        other._decoded = self._decoded
        return other
