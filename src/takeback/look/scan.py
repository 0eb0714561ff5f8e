"""Looking at the tree: what differs from the known tree, and its bytes into the store.

    suspects   lstat every known name, folder by folder; equal keys mean nothing happened there
    refresh    list the folders that differ, read what is new in them, go down where a folder is new
    settle     hard-link groups, then changes (path, before, after), then new hashes up to the root

A scan never writes to the tree and never runs anything. Without a store (`put` is None) it only hashes, which is
how status and diff look without leaving a trace.
"""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.model.effects import FILE, FOLDER, UNOBSERVED, Change, Entry, State, same
from takeback.store import folder_objects
from takeback.store.blobs import BIG, Blobs
from takeback.store.folder_objects import Folder, Gap, join
from takeback.system import forking
from takeback.system.safefs import ABSENT, components, keys
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs.descent import Descent

from . import known_tree_file
from .coverage import Rules
from .known_tree import Index
from .read_path import Reader

if TYPE_CHECKING:
    from takeback.domains.git.look import Seen
    from takeback.domains.threads.look import Seen as SeenThreads
    from takeback.journal.brackets import Owners


class Limits(NamedTuple):
    """What a look is allowed to do, decided by its caller."""

    max_file: int = 1_000_000_000
    room: Callable[[], int] | None = None  # bytes left of the store's budget just now; larger files are named only
    deadline: float | None = None  # of time.monotonic
    own_store: bytes | None = None  # where our store lies inside the root, if it does
    temporary: tuple[bytes, ...] = ()  # name prefixes of a running take-back's files
    mounts: frozenset[bytes] = frozenset()
    confirmed_rules: str = ""  # fingerprint of the project's rules that a person accepted
    progress: Callable[[int], None] | None = None
    fork: bool = True


class Look:
    """What a look found: the new known tree, the changes, and what should be covered but is not."""

    def __init__(
        self,
        index: Index,
        changes: list[Change],
        dirty: set[bytes],  # folders whose objects are new
        lacking: list[tuple[bytes, str]],
        first: bool = False,  # nothing was known before
        held_back: Sequence[bytes] = (),  # covered still, though the project's rules exclude them
        whole: bool = False,  # every path was looked at
        tree: OpenFolder | None = None,  # what was looked at, while it is open
    ) -> None:
        self.index = index
        self.changes = changes
        self.dirty = dirty
        self.lacking = lacking
        self.first = first
        self.held_back = held_back
        self.whole = whole
        self.tree = tree
        self.git: Seen | None = None  # what the same look found of the project's git repository
        self.threads: SeenThreads | None = None  # and of the threads, where there are any
        self.whose: Mapping[bytes, Owners] = {}  # the changes, if they were journaled now; of a mere glance


_FRONTIER = 32  # folders to be captured, each with all below it: so many are enough to share out
_WORTH_LOOKING = 600  # folders to look at
_WORTH_SHARING = 200  # folders to read: below that a second process costs more than it saves


class _Fresh:
    """A folder listed anew, beside what was known of it."""

    __slots__ = ("absent", "complete", "entries", "gaps", "keys", "missing", "names", "old")

    def __init__(
        self,
        old: Folder | None,
        missing: State,  # what a name was that is not in `old`: absent, or unobserved
        names: list[bytes] | None = None,
        keys: list[bytes] | None = None,
        entries: list[Entry] | None = None,
        gaps: list[Gap] | None = None,
        absent: Iterable[bytes] = (),
        complete: bool = True,
    ) -> None:
        self.old = old
        self.missing = missing
        self.names = names or []
        self.keys = keys or []
        self.entries = entries or []
        self.gaps = gaps or []
        self.absent = set(
            absent
        )  # names that were absent when they were last seen, among gaps or where not all is known
        self.complete = complete

    def was(self, name: bytes) -> State:
        return self.old.state(name) if self.old is not None else self.missing

    def keep(self, name: bytes, known: Entry | None, why: str) -> None:
        """A look that fails on a name leaves what was known of it, absence included, and is tried again next time."""
        if known is not None:
            self.add(name, keys.ZERO, known)
        elif self.was(name) is None:
            self.absent.add(name)
        self.gaps.append(Gap(name, why))

    def add(self, name: bytes, key: bytes, entry: Entry) -> None:
        self.names.append(name)
        self.keys.append(key)
        self.entries.append(entry)

    def close(self, name: bytes, why: str) -> None:
        """The same of a folder that was listed here, but could not be entered."""
        self.gaps = [*(gap for gap in self.gaps if gap.name != name), Gap(name, why)]
        if name in self.names:
            self.keys[self.names.index(name)] = keys.ZERO


class Scan:
    def __init__(self, root: OpenFolder, index: Index, rules: Rules, put: Blobs | None, limits: Limits) -> None:
        self.root = root
        self.index = index
        self.rules = rules
        self.put = put
        self.reader = Reader(put)
        self.limits = limits
        self.now_ns = time.time_ns()
        self.device = root.stat_self().st_dev
        self.fresh: dict[bytes, _Fresh] = {}
        self.linked: dict[bytes, int] = {}  # path → inode, of files with several names
        self.held_back: list[bytes] = []
        self.closed: dict[bytes, str] = {}  # folders that cannot be entered, and why
        self.late: set[bytes] = set()
        self.settled = Index()  # new folders that the process which captured them has settled and stored already
        self.relist = index.rules != rules.fingerprint + limits.confirmed_rules

    # -- the whole tree ------------------------------------------------------

    def whole(self, among: set[bytes] | None = None) -> Look:
        """Everything; or only these folders, where a watcher vouches for all others. Both find the same."""
        first = not self.index.folders
        if first:
            self._capture_all()
        else:
            todo = set(self.index.folders) if self.relist else self._suspects(among)
            if len(todo) >= _WORTH_SHARING and forking.allowed(self.limits.fork):
                order = sorted(todo, key=_path_order)
                self._by_two(order, lambda mine, descent, paths: mine._refresh(todo, paths))
            else:
                self._refresh(todo, todo)
            if among is not None and not self.index.links.keys() >= set(self.linked.values()):
                more = self._suspects(None)  # a file has a name more, and nobody tells where its others are
                self._refresh(more, more)
        if self.put is None and self.rules.has_patterns:
            self._name_held_back()
        look = self._settle(first)
        look.whole = not self.late
        look.index.rules = self.rules.fingerprint + self.limits.confirmed_rules
        return look

    def _suspects(self, among: set[bytes] | None) -> set[bytes]:
        """Folders in which some key differs, with those that hold a gap which may have passed."""
        known = self.index.folders
        if among is None:
            items = list(known.items())
        else:
            items = [(path, known[path]) for path in sorted(among & known.keys(), key=_path_order)]

        def part(ranges: Iterator[range], _: bool) -> list[bytes]:
            found = []
            with Descent(self.root) as descent:
                for numbers in ranges:
                    for path, record in items[numbers.start : numbers.stop]:
                        try:
                            if self._is_late():
                                found.append(b"\0late" + path)
                                continue
                            here = descent.to(path)
                            if record.names and here.keys(record.names.split(b"\0")) != record.keys:
                                found.append(path)
                        except OSError:
                            found.append(path)
            return found

        found = forking.split(part, len(items), worth=_WORTH_LOOKING, wanted=self.limits.fork)
        self.late |= {path[5:] for path in found if path.startswith(b"\0late")}
        suspects = {path for path in found if not path.startswith(b"\0late")}
        if keys.pack(self.root.stat_self()) != self.index.root_key:
            suspects.add(b"")
        suspects.update(
            p for p, gaps in self.index.gaps.items() if any(folder_objects.may_pass(g.reason) for g in gaps)
        )
        suspects.update(self.index.incomplete)
        return suspects

    def _is_late(self) -> bool:
        return self.limits.deadline is not None and time.monotonic() > self.limits.deadline

    def _refresh(self, todo: set[bytes], part: Iterable[bytes]) -> None:
        """Lists the suspects, or a part of them; a subfolder with a new key is a suspect too."""
        waiting = sorted(part, key=_path_order, reverse=True)
        with Descent(self.root) as descent:
            while waiting:
                path = waiting.pop()
                if path in self.fresh:
                    continue
                old = self.index.folder(path)
                if old is None:
                    continue
                if self._is_late():
                    self.late.add(path)
                    continue
                try:
                    below = self._list(descent.to(path), _Fresh(old, None if old.complete else UNOBSERVED))
                except OSError as error:
                    self.fresh.pop(path, None)
                    self._unreachable(path, error, todo, waiting)
                    continue
                new = [p for p, known in below if not known]
                waiting += sorted((p for p, known in below if known and p not in todo), key=_path_order, reverse=True)
                self._capture(descent, new)

    def _unreachable(self, path: bytes, error: OSError, todo: set[bytes], waiting: list[bytes]) -> None:
        """A folder that is gone is seen by listing its parent; one that cannot be entered is named, and what was known
        of all in it stays."""
        if not isinstance(error, ABSENT):
            if not path:
                raise error
            self.closed[path] = f"cannot be read: {error.strerror}"
            return
        parent = folder_objects.parent(path)
        if path and parent not in self.fresh and parent not in todo:
            todo.add(parent)
            waiting.append(parent)

    def _capture(self, descent: Descent, paths: Iterable[bytes]) -> None:
        """Everything in folders that were not known."""
        waiting = list(paths)
        while waiting:
            path = waiting.pop()
            above, _, name = path.rpartition(b"/")
            parent = self.fresh.get(above)
            before: State = UNOBSERVED
            if parent is not None:
                before = parent.old.state(name) if parent.old else parent.missing
                if before is not None and before.kind != FOLDER and before is not UNOBSERVED:
                    before = None  # a file or link became this folder: nothing was in it
                elif before is not None:
                    before = UNOBSERVED
            if self._is_late():
                self.late.add(path)
                continue
            try:
                here = descent.to(path)
                waiting += [p for p, _ in self._list(here, _Fresh(None, before))]
            except OSError as error:
                self._cannot_enter(path, error, before)

    def _cannot_enter(self, path: bytes, error: OSError, before: State = UNOBSERVED) -> None:
        if isinstance(error, ABSENT):
            return  # gone again since its parent was listed; the next look sees it
        self.fresh.pop(path, None)
        if before is None:
            self.fresh[path] = _Fresh(None, None)  # all in it was absent when it was last seen
        self.closed[path] = f"cannot be read: {error.strerror}"

    def _capture_all(self) -> None:
        """The first look: a few folders here, the rest by two processes where that pays."""
        with Descent(self.root) as descent:
            frontier = [p for p, _ in self._list(self.root, _Fresh(None, UNOBSERVED))]
            if self.put is None or not forking.allowed(self.limits.fork):
                self._capture(descent, frontier)
                return
            listed = 0
            while frontier and len(frontier) < _FRONTIER and listed < 400:
                path = frontier.pop(0)
                listed += 1
                if self._is_late():
                    self.late.add(path)
                    continue
                try:
                    frontier += [p for p, _ in self._list(descent.to(path), _Fresh(None, UNOBSERVED))]
                except OSError as error:
                    self._cannot_enter(path, error)
        if frontier:
            self._by_two(frontier, lambda mine, descent, paths: mine._capture(descent, paths), new=True)

    def _by_two(
        self, paths: list[bytes], work: Callable[[Scan, Descent, list[bytes]], None], new: bool = False
    ) -> None:
        """Shares folders out between this process and a second one, which seals a pack of its own. Where they are
        `new`, with all that is below them, each process also settles what it captured."""
        put = self.put
        if put is not None:
            put.flush()
        groups = min(len(paths), 1024)

        def job(numbers: Iterator[int], name: str) -> Any:
            store = put.worker(name) if put is not None and name else put
            elsewhere = getattr(self.limits.progress, "elsewhere", None)  # whoever can be told by a second process
            limits = self.limits._replace(progress=elsewhere) if name else self.limits
            mine = Scan(self.root, self.index, self.rules, store, limits)
            mine.now_ns = self.now_ns
            with Descent(self.root) as descent:
                for number in numbers:
                    work(mine, descent, paths[number::groups])
            if new and store is not None:
                mine._settle_new(store)
            if store is not None and name:
                store.flush()
            return mine._packed() if name else mine

        here, *there = forking.share(job, groups)
        self._take_up(here)
        for packed in there:
            self._unpack(packed)
        if put is not None:
            put.flush()
            put.reload(True)

    def _settle_new(self, store: Blobs) -> None:
        """Folder objects of whole subtrees that nothing was known of, made and stored by whom captured them."""
        self._name_closed(self.settled)
        self.settled.settle(_pending(self.fresh))
        self.fresh.clear()
        for record in self.settled.folders.values():
            store.put(record.object, record.stored)

    def _packed(self) -> tuple[Any, ...]:
        rows = [
            (
                p,
                f.missing is None,
                f.names,
                b"".join(f.keys),
                [tuple(e) for e in f.entries],
                [tuple(g) for g in f.gaps],
                list(f.absent),
                f.complete,
            )
            for p, f in self.fresh.items()
        ]
        return rows, known_tree_file.packed(self.settled), self.linked, list(self.late), self.held_back, self.closed

    def _unpack(self, packed: tuple[Any, ...]) -> None:
        rows, settled, linked, late, held_back, closed = packed
        other = Scan(self.root, self.index, self.rules, None, self.limits)
        other.settled = known_tree_file.parse(settled)[0] or Index()
        while rows:  # each is let go once it is unpacked: large trees have many
            path, was_absent, names, packed_keys, entries, gaps, *rest = rows.pop()
            other.fresh[path] = _Fresh(
                self.index.folder(path),
                None if was_absent else UNOBSERVED,
                names,
                keys.split(packed_keys),
                list(map(Entry._make, entries)),
                [Gap(*g) for g in gaps],
                *rest,
            )
        other.linked, other.late, other.held_back, other.closed = linked, set(late), held_back, closed
        self._take_up(other)

    def _take_up(self, other: Scan) -> None:
        """What another scan of the same tree found, in this process or in a second one."""
        self.fresh.update(other.fresh)
        self.settled.add(other.settled)
        self.closed.update(other.closed)
        self.linked.update(other.linked)
        self.late.update(other.late)
        self.held_back += other.held_back

    # -- named paths only ----------------------------------------------------

    def named(self, paths: Iterable[bytes]) -> Look:
        """Just these paths, and the folders above them where they were not known yet."""
        wanted: set[bytes] = set()
        paths = set(paths)
        for path in paths:
            names = components(path)
            wanted.update(b"/".join(names[:n]) for n in range(1, len(names) + 1))
        changes: list[Change] = []
        stats: dict[bytes, os.stat_result] = {}
        index = self.index.copy()
        lacking: list[tuple[bytes, str]] = []
        deep: list[bytes] = []
        with Descent(self.root) as descent:
            for path in sorted(wanted, key=_path_order):
                parent, _, name = path.rpartition(b"/")
                before = index.state(path)
                named = path in paths
                try:
                    here = descent.to(parent)
                    st = here.stat(name)
                except ABSENT:
                    if before is not None and named:
                        changes += [Change(p, s, None) for p, s in _known_below(index, path)] or [
                            Change(path, before, None)
                        ]
                    continue
                except OSError as error:
                    if named:
                        lacking.append((path, f"cannot be read: {error.strerror}"))
                    continue
                if not named and before is not None and before is not UNOBSERVED:
                    continue
                if reason := self._why_not(path, st) or self._excluded_above(path):
                    if named:
                        lacking.append((path, reason))
                    continue
                entry, key_stat = self.reader.read(here, name, st, before)
                if isinstance(entry, str):
                    lacking.append((path, entry))
                    continue
                stats[path] = key_stat
                if before is not None and before.kind == entry.kind == FILE and key_stat.st_nlink > 1:
                    entry = entry._replace(group=before.group)  # one name alone does not show the others
                if before is None or before[:] != entry[:]:
                    if before is not None and before.kind == FOLDER and entry.kind != FOLDER:
                        changes += [Change(p, s, None) for p, s in _known_below(index, path) if p != path]
                    changes.append(Change(path, before, entry))
                if named and entry.kind == FOLDER:
                    deep.append(path)
        groups = {c.before.group for c in changes if c.before is not None and c.before.group}
        linked = {p for p, st in stats.items() if st.st_nlink > 1 and stat.S_ISREG(st.st_mode)}
        linked |= {c.path for c in changes if c.before is not None and c.before.group}
        settled = {p: st for p, st in stats.items() if p not in linked and keys.settled(st, self.now_ns)}
        dirty = index.apply(changes, settled)
        if deep:  # a folder was named: everything in it
            below = Scan(self.root, index, self.rules, self.put, self.limits)
            with Descent(self.root) as descent:
                known = {p for d in deep for p in index.below(d)}
                for path in sorted(deep, key=_path_order):
                    if path in below.fresh:
                        continue
                    old = index.folder(path)
                    try:
                        new = below._list(descent.to(path), _Fresh(old, None if old and old.complete else UNOBSERVED))
                    except OSError as error:
                        below.fresh.pop(path, None)
                        below._cannot_enter(path, error)
                    else:
                        below._capture(descent, [p for p, is_known in new if not is_known])
                below._refresh(known, known)
            look = below._settle(False)
            changes += look.changes
            index, dirty, lacking = look.index, dirty | look.dirty, lacking + look.lacking
            linked |= set(below.linked)
            groups |= {c.before.group for c in look.changes if c.before is not None and c.before.group}
        if (linked or groups) and (more := self._other_names(index, linked, groups)):
            dirty |= index.apply(more)
            found = {c.path: c for c in changes}
            for change in more:
                found[change.path] = change._replace(before=found.get(change.path, change).before)
            changes = sorted(c for c in found.values() if c.before != c.after)
        return Look(index, changes, dirty, lacking, tree=self.root)

    def _other_names(self, index: Index, named: set[bytes], groups: set[bytes]) -> list[Change]:
        """Hard links of named files, and of the groups they were in: each is one file, so its names change as one."""
        places = {path: st for path in named if (st := self._file_at(path)) is not None}
        named_as = {st.st_ino: path for path, st in places.items()}
        inodes = {keys.pack(st)[16:24] for st in places.values()}
        contents = {state.content for path in places if (state := index.state(path)) is not None and state.content}
        needles = contents | groups
        for folder, record in index.folders.items():
            data = record.object if needles else b""
            if not (any(n in data for n in needles) or any(i in record.keys for i in inodes)):
                continue
            known = index.folder(folder)
            assert known is not None
            for name, entry, key in zip(known.names, known.entries, keys.split(record.keys)):
                path = join(folder, name)
                if entry.kind != FILE or path in places:
                    continue
                if entry.content in contents or entry.group in groups or key[16:24] in inodes:
                    st = self._file_at(path)
                    if st is not None and (st.st_ino in named_as or entry.group in groups):
                        places[path] = st
        members: dict[int, list[bytes]] = {}
        for path, st in places.items():
            members.setdefault(st.st_ino, []).append(path)
        changes = []
        for inode, paths in members.items():
            for path in paths:
                was = index.state(path)
                now = index.state(named_as.get(inode, path))
                if was is not None and now is not None and was.kind == now.kind == FILE:
                    now = now._replace(group=min(paths) if len(paths) > 1 else b"")
                    if was != now:
                        changes.append(Change(path, was, now))
        return changes

    def _file_at(self, path: bytes) -> os.stat_result | None:
        *above, name = components(path)
        try:
            with self.root.descend(above) as here:
                st = here.stat(name)
                return st if stat.S_ISREG(st.st_mode) else None
        except OSError:
            return None

    # -- one folder ----------------------------------------------------------

    def _list(self, here: OpenFolder, fresh: _Fresh) -> list[tuple[bytes, bool]]:
        """Lists a folder into `fresh`; returns its subfolders that want a visit, and whether they were known."""
        path, old = here.path, fresh.old
        known: dict[bytes, tuple[bytes, Entry]] = {}
        if old is not None:
            split = keys.split(self.index.folders[path].keys)
            known = {n: (key, e) for n, key, e in zip(old.names, split, old.entries)}
        self.fresh[path] = fresh
        visit: list[tuple[bytes, bool]] = []
        for name, st in here.listing():
            if name.startswith(self.limits.temporary) and self.limits.temporary:
                continue
            at = join(path, name)
            if reason := self._why_not(at, st, name in known):
                fresh.gaps.append(Gap(name, reason))
                continue
            was = known.get(name)
            if was is not None and was[0] == (key := keys.pack(st)):
                entry = was[1]
            else:
                if reason := self._no_room(st):
                    fresh.gaps.append(Gap(name, reason))
                    continue
                found, st = self.reader.read(here, name, st, was[1] if was is not None else None)
                if isinstance(found, str):
                    if found:
                        fresh.keep(name, was[1] if was is not None else None, found)
                        if stat.S_ISREG(st.st_mode) and st.st_nlink > 1 and was is not None and was[1].kind == FILE:
                            self.linked[at] = st.st_ino
                    continue
                entry = found
                key = keys.pack(st) if keys.settled(st, self.now_ns) else keys.ZERO
            if entry.kind == FOLDER:
                is_known = at in self.index.folders
                if not is_known or was is None or was[0] != key or key == keys.ZERO:
                    visit.append((at, is_known))
            elif entry.kind == FILE and st.st_nlink > 1:
                self.linked[at] = st.st_ino
            fresh.add(name, key, entry)
        if self.limits.progress:
            self.limits.progress(len(fresh.names))
        return visit

    def _excluded_above(self, path: bytes) -> str:
        """Why a folder above a named path is not covered; empty if all are."""
        *above, _ = components(path)
        for depth in range(1, len(above) + 1):
            if reason := self.rules.excluded(b"/".join(above[:depth]), True):
                return reason
        return ""

    def _why_not(self, path: bytes, st: os.stat_result, known: bool = False) -> str:
        """Why a path is not covered; empty if it is."""
        mode = st.st_mode
        folder = stat.S_ISDIR(mode)
        if not (folder or stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            return _SPECIAL.get(stat.S_IFMT(mode), "special file")
        if reason := self.rules.excluded(path, folder):
            if self.rules.by_project(path, folder) and self.limits.confirmed_rules != self.rules.project_fingerprint:
                if known or (self.index.folders and _was_seen(self.index.state(path))):
                    self.held_back.append(path)
                    return ""
            return reason
        if path == self.limits.own_store:
            return "takeback's own store"
        if path in self.limits.mounts or (folder and st.st_dev != self.device):
            return "another file system is mounted there"
        if stat.S_ISREG(mode):
            if st.st_size > self.limits.max_file and _allocated(st) > self.limits.max_file:
                return f"larger than max_file ({_allocated(st)} bytes)"
        return ""

    def _no_room(self, st: os.stat_result) -> str:
        """A large file goes uncaptured, and is named, rather than evict young history. What this very look has stored
        already counts: several that would each fit may not fit together."""
        if st.st_size < BIG or self.limits.room is None or not stat.S_ISREG(st.st_mode):
            return ""
        size = _allocated(st)
        return f"larger than the store's budget has room for ({size} bytes)" if BIG <= size > self.limits.room() else ""

    # -- what it comes to ----------------------------------------------------

    def _settle(self, first: bool) -> Look:
        index = self.index.copy()
        index.add(self.settled)
        self._name_closed(index)
        self._group_links(index)
        changes: list[Change] = []
        gone: list[bytes] = []
        for path, fresh in self.fresh.items():
            if fresh.old is not None:
                now = {n for n, e in zip(fresh.names, fresh.entries) if e.kind == FOLDER}
                gone += [join(path, name) for name in fresh.old.subtrees if name not in now]
        if gone:
            dropped = set(gone)
            self.fresh = {p: f for p, f in self.fresh.items() if not _is_in(p, dropped)}
        for path, fresh in self.fresh.items():
            if not first:
                changes += _compare(path, fresh)
        for path in gone:
            unseen = _is_gap(self.fresh.get(folder_objects.parent(path)), path)
            for at, state in _known_below(index, path):
                if at != path:
                    changes.append(Change(at, state, UNOBSERVED if unseen else None))
            for at in list(index.below(path)):
                index.drop_folder(at)
        pending = _pending(self.fresh)
        for path in self.late - set(self.fresh):
            if path not in index.folders:
                pending[path] = Folder([], [], {}, complete=False), b""
        added = any(path not in index.folders for path in pending)
        dirty = index.settle(pending)
        self._look_at_root(index, changes)
        if added:
            index.in_order()
        changes.sort(key=lambda c: c.path)
        lacking = [
            (join(p, g.name), g.reason)
            for p, gaps in index.gaps.items()
            for g in gaps
            if folder_objects.is_lacking(g.reason)
        ]
        lacking += [(path or b".", folder_objects.LATE) for path in self.late]
        return Look(index, changes, dirty, sorted(lacking), first, sorted(set(self.held_back)), tree=self.root)

    def _name_closed(self, index: Index) -> None:
        """Folders that cannot be entered, named where they are: the topmost ones, whoever listed their parents."""
        for path in [p for p in self.closed if not _is_in(folder_objects.parent(p), self.closed.keys())]:
            parent, _, name = path.rpartition(b"/")
            if parent not in self.fresh:
                old = index.folder(parent)
                if old is None:
                    continue  # listed by another process, which names it
                self.fresh[parent] = _reuse(index, parent, old)
            self.fresh[parent].close(name, self.closed[path])

    def _look_at_root(self, index: Index, changes: list[Change]) -> None:
        st = self.root.stat_self()
        key = keys.pack(st)
        if key != index.root_key:
            xattrs = self.reader.store_xattrs(self.root.self_xattrs())
            now = Entry(FOLDER, stat.S_IMODE(st.st_mode), 0, b"", xattrs, b"", st.st_mtime_ns, st.st_uid, st.st_gid)
            if index.root is not UNOBSERVED and now != index.root:
                changes.append(Change(b"", index.root, now))
            index.root = now
            index.root_key = key if keys.settled(st, self.now_ns) and b"" not in self.late else keys.ZERO

    def _group_links(self, index: Index) -> None:
        """Gives every file with several names the path of its first one as group, across all folders."""
        if not self.linked and not index.links:
            return
        members: dict[int, set[bytes]] = {}
        for inode, paths in index.links.items():
            kept = {
                p for p in paths if (folder := folder_objects.parent(p)) not in self.fresh and not self._is_gone(folder)
            }
            if kept:
                members.setdefault(inode, set()).update(p for p in kept if _was_seen(index.state(p)))
        for path, inode in self.linked.items():
            members.setdefault(inode, set()).add(path)
        index.links = {inode: tuple(sorted(paths)) for inode, paths in members.items() if paths}
        for paths in index.links.values():
            group = paths[0] if len(paths) > 1 else b""
            for path in paths:
                parent, _, name = path.rpartition(b"/")
                if parent not in self.fresh:
                    old = index.folder(parent)
                    if old is None or old.state(name) is None or old.entries[old.names.index(name)].group == group:
                        continue
                    self.fresh[parent] = _reuse(index, parent, old)
                fresh = self.fresh[parent]
                at = bisect_left(fresh.names, name)
                fresh.entries[at] = fresh.entries[at]._replace(group=group)

    def _name_held_back(self) -> None:
        """Those in folders that were not listed just now; a listing names its own."""
        if self.limits.confirmed_rules == self.rules.project_fingerprint:
            return
        for path in self.index.folders:
            if path not in self.fresh and (folder := self.index.folder(path)) is not None:
                for name, entry in zip(folder.names, folder.entries):
                    if self.rules.by_project(join(path, name), entry.kind == FOLDER):
                        self.held_back.append(join(path, name))

    def _is_gone(self, folder: bytes) -> bool:
        """Whether a folder went with one above it, as the listings of this look say."""
        while folder:
            above, _, name = folder.rpartition(b"/")
            fresh = self.fresh.get(above)
            if fresh is not None and (name not in fresh.names or fresh.entries[fresh.names.index(name)].kind != FOLDER):
                return True
            folder = above
        return False


def _allocated(st: os.stat_result) -> int:
    """What a file takes up on disk: of a sparse one far less than its size."""
    return min(getattr(st, "st_blocks", 1 << 60) * 512, st.st_size)


def _pending(fresh: dict[bytes, _Fresh]) -> dict[bytes, tuple[Folder, bytes]]:
    return {
        path: (Folder(f.names, f.entries, {}, tuple(f.gaps), f.complete, frozenset(f.absent)), b"".join(f.keys))
        for path, f in fresh.items()
    }


def _reuse(index: Index, path: bytes, old: Folder) -> _Fresh:
    split = keys.split(index.folders[path].keys)
    return _Fresh(old, None, list(old.names), split, list(old.entries), list(old.gaps), old.absent, old.complete)


def _compare(path: bytes, fresh: _Fresh) -> Iterator[Change]:
    """One folder before and after; a difference of times alone is recorded too."""
    old = dict(zip(fresh.old.names, fresh.old.entries)) if fresh.old is not None else {}
    unseen_now = {g.name for g in fresh.gaps}
    for name, entry in zip(fresh.names, fresh.entries):
        was = old.pop(name, None)
        if was is None:
            yield Change(join(path, name), fresh.was(name), entry)
        elif was != entry:
            yield Change(join(path, name), was, entry)
    for name, was in old.items():
        yield Change(join(path, name), was, UNOBSERVED if name in unseen_now else None)


def _is_in(path: bytes, folders: Collection[bytes]) -> bool:
    while path:
        if path in folders:
            return True
        path = folder_objects.parent(path)
    return False


def _is_gap(fresh: _Fresh | None, path: bytes) -> bool:
    name = path.rpartition(b"/")[2]
    return fresh is not None and any(g.name == name for g in fresh.gaps)


def _known_below(index: Index, path: bytes) -> list[tuple[bytes, Entry]]:
    """A path's known entry and all below it."""
    state = index.state(path)
    found = [(path, state)] if state is not None and state is not UNOBSERVED else []
    for here in index.below(path):
        folder = index.folder(here)
        assert folder is not None
        found += [(join(here, n), e) for n, e in zip(folder.names, folder.entries)]
    return found


def _was_seen(state: State) -> bool:
    return state is not None and not same(state, UNOBSERVED)


def _path_order(path: bytes) -> bytes:
    return path.replace(b"/", b"\0")


_SPECIAL = {stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
