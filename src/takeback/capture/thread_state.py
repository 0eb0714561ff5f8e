"""What is known of the threads, and looking at them again. Loaded only where there are any.

    //main  //planner  …

Each is a path with a state, as a file is: an Entry whose content is the hash of a short document, which says what state
each namespace of the thread is in, and is stored as a blob where it is journaled. What is known lies in the store, and
is only a cache: what the journal's rows say of a path counts.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..blobs import Blobs
from ..effects import Change, State, path_of_thread, same, state_of_thread, thread_of
from ..history import moves
from ..journal import Journal
from ..typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..threads import Threads

KINDS = ("state", "thread")  # rows that move a thread
_VERSION = 1
_MARSHAL = 4  # readable by every Python we support
_NAMED = 3  # threads that a summary names


class Moved(NamedTuple):
    """How far a thread has come since the last look."""

    by: int  # state checkpoints
    agent: str  # who saved the newest; empty if nobody said
    seq: int = 0  # the row of the newest
    at: float = 0.0


class Known(NamedTuple):
    """Threads as last observed, up to a row of the journal."""

    seq: int
    states: Mapping[bytes, State]


class Seen(NamedTuple):
    """What a look found."""

    known: Known  # with what it found
    changes: tuple[Change, ...] = ()
    moved: Mapping[bytes, Moved] = {}

    def told(self, paths: Iterable[bytes]) -> str:
        """'thread main · 3 state checkpoints · planner'"""
        found = sorted(paths)
        names = ", ".join(thread_of(path) for path in found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
        count = sum(self.moved[path].by for path in found)
        parts = [f"thread{'s' * (len(found) != 1)} {names}"]
        parts += [f"{count:,} state checkpoint{'s' * (count != 1)}"] if count else ["gone"]
        agents = dict.fromkeys(self.moved[path].agent for path in found if self.moved[path].agent)
        return " · ".join([*parts, *([", ".join(agents)] if agents else [])])


class ThreadState:
    """The caller holds the store lock wherever something is written."""

    def __init__(self, folder: Path | None, journal: Journal, blobs: Blobs, threads: Callable[[], Threads]) -> None:
        self.journal = journal
        self.blobs = blobs
        self.threads = threads
        self._path = folder and folder / "threads"
        self._held: Known | None = None
        self._stamp: object = None

    def look(self, dry: bool = False) -> Seen:
        """Compares what the journal last said of each thread that has moved since with where it is."""
        newest = self.journal.newest(*KINDS)
        known = self._loaded()
        if newest <= known.seq <= self.journal.head().seq:
            return Seen(known)
        known = self.known()
        head = self.journal.head().seq
        threads, states = self.threads(), dict(known.states)
        changes: list[Change] = []
        moved: dict[bytes, Moved] = {}
        for thread in sorted(threads.moved(known.seq) | self._removed(known.seq)):
            path = path_of_thread(thread)
            document = threads.document(thread)
            was, now = known.states.get(path), state_of_thread(document)
            if was == now:
                continue
            if not dry:
                self._store(document)
                self._store_again(thread, was, known.seq)
            if now is None:
                states.pop(path, None)
            else:
                states[path] = now
            changes.append(Change(path, was, now))
            by, state = threads.ahead(thread, known.seq) if document else 0, threads.find(thread)
            moved[path] = Moved(by, state.agent, state.seq, state.at) if state is not None else Moved(by, "")
        return Seen(Known(head, states), tuple(changes), moved)

    def _store(self, document: bytes) -> None:
        if document:
            self.blobs.put(document)

    def _store_again(self, thread: str, was: State, seq: int) -> None:
        """A prune drops a document with the last row that leads to it. The row to be written leads to it again."""
        if was is not None and not self.blobs.has(was.content):
            document = self.threads().document(thread, seq or self._horizon())
            if same(state_of_thread(document), was):
                self._store(document)

    def _removed(self, after: int) -> set[str]:
        """Threads that lost something after a row: a prune since then has left no other trace of it."""
        told = (row.body or {} for row in self.journal.rows(after, ("thread",)))
        return {body["thread"] for body in told if body.get("what") == "removal"}

    @property
    def is_behind(self) -> bool:
        """Whether a turn was ended since it looked: what was saved in it must not be taken for the next one's."""
        return self.journal.newest("checkpoint") > self._loaded().seq

    def journaled(self, seen: Seen) -> None:
        """What was found is in the journal: from now on it is known, up to where the look began."""
        if seen.known.seq != self._loaded().seq:
            self._save(seen.known)

    # -- what is known -----------------------------------------------------------

    def known(self) -> Known:
        """The cache, brought up to the journal's head."""
        head = self.journal.head().seq
        known = self._loaded()
        if known.seq > head:  # of another journal: one put back from a backup, or cut
            known = Known(0, {})
        states = dict(known.states) if known.seq else self._at_horizon()
        for change in moves(self.journal, self.blobs.get, "state", known.seq):
            if change.after is None:
                states.pop(change.path, None)
            else:
                states[change.path] = change.after
        return Known(known.seq, states)

    def _at_horizon(self) -> dict[bytes, State]:
        """Without a cache, and where rows were pruned: what they said is what was there then."""
        horizon = self._horizon()
        if not horizon:
            return {}
        threads = self.threads()
        found = {path_of_thread(t): state_of_thread(threads.document(t, horizon)) for t in threads.moved(0)}
        return {path: state for path, state in found.items() if state is not None}

    def _horizon(self) -> int:
        """The row before which the last prune took what it could."""
        last = self.journal.last("prune")
        return (last.body or {}).get("horizon", 0) if last is not None else 0

    # -- on disk -----------------------------------------------------------------

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
        known = Known(0, {})
        self._stamp = self._stamped()
        try:
            if self._path is not None:
                version, seq, documents = marshal.loads(self._path.read_bytes())
                if version == _VERSION:
                    known = Known(seq, {path: _entry(*found) for path, found in documents.items()})
        except (OSError, ValueError, EOFError, TypeError):
            known = Known(0, {})
        self._held = known
        return known

    def _save(self, known: Known) -> None:
        self._held = known
        if self._path is None:
            return
        documents = {path: (s.content, s.size) for path, s in known.states.items() if s is not None}
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(fd, "wb") as file:
                file.write(marshal.dumps((_VERSION, known.seq, documents), _MARSHAL))
            os.replace(beside, self._path)
            self._stamp = self._stamped()
        except OSError:
            self._path.unlink(missing_ok=True)  # only a cache

    def _stamped(self) -> object:
        try:
            st = os.stat(self._path) if self._path is not None else None
        except OSError:
            return None
        return st and (st.st_ino, st.st_mtime_ns, st.st_size)


def _entry(content: bytes, size: int) -> State:
    found = state_of_thread(b"?")
    return None if found is None else found._replace(content=content, size=size)
