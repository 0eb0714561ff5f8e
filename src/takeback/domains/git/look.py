"""What is known of the project's git repository, and looking at it again. No git process is run for it.

    .git/HEAD  .git/refs/heads/main  .git/refs/tags/v1  .git/index/src/a.py  .git/stash/<object>  .git/MERGE_HEAD …

Each is a path with a state, as a file is: an Entry whose content is the hash of a short text, which is stored as a
blob where it is journaled. What is known lies in the store beside the tree's index, and is only a cache: what the
journal says of a path counts, and of the rest what is there when it is seen first.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from takeback.errors import TakebackError
from takeback.journal.history import moves
from takeback.journal.journal import Journal
from takeback.model.effects import Change, State
from takeback.model.ids import new_id
from takeback.store.blobs import Blobs
from takeback.system.safefs import Folder as OpenFolder

from . import index_file
from .repository import HEAD, INDEX, PARTS, STASH, Repository, Unusable, entry, part_of

_VERSION = 1
_MARSHAL = 4  # readable by every Python we support
_BEHIND = 16  # rows that a cache which needs no change may lie behind the journal


class Known:
    """A repository as last observed. The index, which may be large, is read from its own file when it is asked for."""

    def __init__(self) -> None:
        self.seq = 0
        self.width = 20
        self.is_there = False
        self.is_first = True  # nothing was known before
        self.stamps: dict[str, bytes] = {}
        self.small: dict[bytes, bytes] = {}  # all but the index, by path
        self.index_id = ""
        self.load: Callable[[str], dict[bytes, bytes] | None] = lambda id: None
        self.is_index_lost = False  # its file is gone: what is there is seen for the first time
        self._index: dict[bytes, bytes] | None = None

    @property
    def index(self) -> dict[bytes, bytes]:
        if self._index is None:
            found = self.load(self.index_id) if self.index_id else {}
            self.is_index_lost = found is None
            self._index = found or {}
        return self._index

    @index.setter
    def index(self, states: dict[bytes, bytes]) -> None:
        self._index = states
        self.index_id, self.is_index_lost = "", False

    @property
    def has_unsaved_index(self) -> bool:
        return self._index is not None and not self.index_id

    def copy(self) -> Known:
        other = Known()
        other.__dict__.update(self.__dict__)
        other.stamps, other.small = dict(self.stamps), dict(self.small)
        return other

    def value(self, path: bytes) -> bytes | None:
        if path.startswith(INDEX):
            state = self.index.get(path[len(INDEX) :])
            return None if state is None else index_file.text_of(state, self.width)
        return self.small.get(path)

    def move(self, values: Iterable[tuple[bytes, bytes | None]]) -> None:
        states: dict[bytes, bytes] | None = None
        for path, value in values:
            if not path.startswith(INDEX):
                here, name = self.small, path
            else:
                states = dict(self.index) if states is None else states
                here, name = states, path[len(INDEX) :]
                value = None if value is None else index_file.state_of(value)
            if value is None:
                here.pop(name, None)
            else:
                here[name] = value
        if states is not None:
            self.index = states


class Seen(NamedTuple):
    """What a look found."""

    known: Known
    changes: tuple[Change, ...] = ()
    lacking: tuple[tuple[bytes, str], ...] = ()  # what should be recorded and could not be read
    not_covered: tuple[str, ...] = ()  # what is of a kind that is not recorded, in words
    unread: Mapping[str, str] = {}  # parts that are as they were known, and why
    is_dirty: bool = False  # whether the cache has to be written


class GitState:
    """The caller holds the store lock wherever something is written."""

    def __init__(self, root: Path, folder: Path | None, journal: Journal, blobs: Blobs) -> None:
        self.root = root
        self.journal = journal
        self.blobs = blobs
        self._path = folder and folder / "git"
        self._index_path = folder and folder / "git-index"
        self._held: Known | None = None
        self._is_dry = False  # nothing is stored: for those who only glance
        self._stamp: object = None

    # -- looking ---------------------------------------------------------------

    def look(self, tree: OpenFolder, dry: bool = False) -> Seen:
        """Compares what is known with what is there. A repository that cannot be read is named, and left as known."""
        self._is_dry = dry
        known = self.known()
        try:
            repository = Repository.at(tree, str(self.root))
        except (Unusable, OSError) as error:
            return Seen(known, not_covered=(str(error),))
        if repository is None:
            return self._gone(known)
        with repository:
            return self._compared(known, repository)

    def _gone(self, known: Known) -> Seen:
        """Without a repository only HEAD is told to be gone: nobody can bring the rest back."""
        was = known.small.get(HEAD)
        if not known.is_there and not known.is_first:
            return Seen(known)
        fresh = Known()
        fresh.seq, fresh.is_first = known.seq, False
        changes = (Change(HEAD, self._put(was), None),) if was is not None else ()
        return Seen(fresh, changes, is_dirty=True)

    def _compared(self, known: Known, repository: Repository) -> Seen:
        changes: list[Change] = []
        lacking: list[tuple[bytes, str]] = []
        not_covered = [busy] if (busy := repository.under_way()) else []
        unread: dict[str, str] = {}
        now = known.copy()
        now.width, now.is_there, now.is_first = repository.width, True, False
        is_dirty = not known.is_there
        for name in PARTS:
            stamp = b"" if name == "index" and self._is_index_gone(known) else known.stamps.get(name, b"")
            part = repository.part(name, stamp)
            if part.why_not:
                unread[name] = part.why_not
                if part.is_covered:
                    lacking.append((b".git", part.why_not))
                else:
                    not_covered.append(part.why_not)
                now.stamps.pop(name, None)
                continue
            if part.states is not None:
                states = dict(part.states)
                if name == "index":
                    old = known.index
                    changes += [] if known.is_first or known.is_index_lost else self._index_changes(known, now, states)
                    if known.is_first or known.is_index_lost or states != old:
                        now.index = states
                else:
                    before = {p: v for p, v in known.small.items() if part_of(p) == name}
                    changes += [] if known.is_first else self._small_changes(known, before, states)
                    now.small = {p: v for p, v in now.small.items() if p not in before} | states
            if now.stamps.get(name) != part.stamp or not part.stamp:
                now.stamps[name] = part.stamp
                is_dirty = True
        if known.is_first:
            changes += self._since_journaled(now)
        is_dirty = is_dirty or bool(changes)
        return Seen(now, tuple(sorted(changes)), tuple(lacking), tuple(not_covered), unread, is_dirty)

    def _small_changes(self, known: Known, before: dict[bytes, bytes], after: dict[bytes, bytes]) -> Iterator[Change]:
        order = {path: at for at, path in enumerate(after)}
        was_order = {path: at for at, path in enumerate(before)}
        for path in sorted(before.keys() | after.keys()):
            was, now = before.get(path), after.get(path)
            if was == now or (path == HEAD and was is None):  # the HEAD of a new repository is seen, not changed
                continue
            yield Change(path, self._put(was, was_order.get(path, 0)), self._put(now, order.get(path, 0)))

    def _index_changes(self, known: Known, now: Known, states: dict[bytes, bytes]) -> Iterator[Change]:
        old = known.index
        for name in sorted({name for name, _ in old.items() ^ states.items()}):
            was, is_now = old.get(name), states.get(name)
            yield Change(
                INDEX + name,
                self._put(None if was is None else index_file.text_of(was, known.width)),
                self._put(None if is_now is None else index_file.text_of(is_now, now.width)),
            )

    def _since_journaled(self, now: Known) -> Iterator[Change]:
        """Without a cache: what the journal says of a path is what was known of it."""
        last: dict[bytes, State] = {}
        for change in moves(self.journal, self.blobs.get, "git"):
            last[change.path] = change.after
        for path, state in sorted(last.items()):
            value = now.value(path)
            is_now = None if value is None else entry(value, 0)
            if _content(state) != _content(is_now) and not (path == HEAD and state is None):
                yield Change(path, state, self._put(value))

    def _is_index_gone(self, known: Known) -> bool:
        path = self._index_path
        return bool(known.index_id) and (path is None or not path.exists())

    def _put(self, value: bytes | None, order: int = 0) -> State:
        if value is None:
            return None
        if not self._is_dry:
            self.blobs.put(value)
        return entry(value, order)

    def journaled(self, seen: Seen, seq: int) -> None:
        """What was found is in the journal, up to a row: from now on it is known."""
        known = seen.known
        if seen.is_dirty or seq - known.seq > _BEHIND:
            known.seq = seq
            self._save(known)

    # -- what is known -----------------------------------------------------------

    def state(self, path: bytes) -> State:
        """The last observed state of a path of this domain."""
        value = self.known().value(path)
        return None if value is None else entry(value, self._order(path))

    def _order(self, path: bytes) -> int:
        if not path.startswith(STASH) or self._held is None:
            return 0
        stashed = [p for p in self._held.small if p.startswith(STASH)]
        return stashed.index(path) if path in stashed else 0

    def states(self) -> Callable[[bytes], State]:
        """The same for many paths at once."""
        known = self.known()
        order = {p: at for at, p in enumerate(p for p in known.small if p.startswith(STASH))}

        def state(path: bytes) -> State:
            value = known.value(path)
            return None if value is None else entry(value, order.get(path, 0))

        return state

    def read(self, content: bytes) -> bytes:
        """A value by its hash: what never changed is known, but in no row, and so not stored."""
        values = {entry(value).content: value for value in self.known().small.values()}
        return values[content] if content in values else self.blobs.get(content)

    def known(self) -> Known:
        """The cache, brought up to the journal's head. Nobody changes what is handed out."""
        head = self.journal.head().seq
        known = self._loaded()
        if known.seq > head:  # of another journal: one put back from a backup, or cut
            known = Known()
        if not known.is_first and known.seq < head:
            moved = list(moves(self.journal, self.blobs.get, "git", known.seq))
            if moved:
                known = known.copy()
                known.move(self._values(known, moved))
                known.seq = head
                self._held = known
        return known

    def _values(self, known: Known, moved: Iterable[Change]) -> Iterator[tuple[bytes, bytes | None]]:
        for change in moved:
            known.stamps.pop(part_of(change.path), None)
            try:
                value = None if change.after is None else self.blobs.get(change.after.content)
                if value is not None and change.path.startswith(INDEX):
                    index_file.state_of(value)
            except (TakebackError, index_file.Unreadable):
                continue  # lost: the next look finds what is there
            yield change.path, value

    # -- on disk ---------------------------------------------------------------

    def forget(self) -> None:
        self._held = None

    def remove(self) -> None:
        """Knows nothing any more."""
        self.forget()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _loaded(self) -> Known:
        if self._held is not None and (self._path is None or self._stamp == self._stamped()):
            return self._held
        known = Known()
        self._stamp = self._stamped()
        try:
            if self._path is not None:
                version, *fields = marshal.loads(self._path.read_bytes())
                if version == _VERSION:
                    known.seq, known.width, known.is_there, known.stamps, known.small, known.index_id = fields
                    known.is_first = False
                    known.load = self._load_index
        except (OSError, ValueError, EOFError, TypeError):
            known = Known()
        self._held = known
        return known

    def _load_index(self, id: str) -> dict[bytes, bytes] | None:
        if self._index_path is None:
            return None
        try:
            found, states = marshal.loads(self._index_path.read_bytes())
        except (OSError, ValueError, EOFError, TypeError):
            return None
        return states if found == id and isinstance(states, dict) else None

    def _save(self, known: Known) -> None:
        self._held = known
        if self._path is None or self._index_path is None:
            return
        known.load = self._load_index
        try:
            if known.has_unsaved_index:
                known.index_id = new_id()
                _write(self._index_path, marshal.dumps((known.index_id, known.index), _MARSHAL))
            fields = (known.seq, known.width, known.is_there, known.stamps, known.small, known.index_id)
            _write(self._path, marshal.dumps((_VERSION, *fields), _MARSHAL))
            self._stamp = self._stamped()
        except OSError:
            self._path.unlink(missing_ok=True)  # only a cache

    def _stamped(self) -> object:
        try:
            st = os.stat(self._path) if self._path is not None else None
        except OSError:
            return None
        return st and (st.st_ino, st.st_mtime_ns, st.st_size)


def _content(state: State) -> bytes | None:
    return None if state is None else state.content


def _write(path: Path, data: bytes) -> None:
    """Replaced in one step, readable by its owner alone; not synced, for it is a cache."""
    beside = path.with_name(f"{path.name}.new")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
    os.replace(beside, path)
