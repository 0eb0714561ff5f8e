"""What is known of the threads, and looking at them again. Loaded only where there are any.

    //main  //planner  …

Each is a path with a state, as a file is: an Entry whose content is the hash of a short document, which says what state
each namespace of the thread is in, and is stored as a blob where it is journaled. What is known lies in the store, and
is only a cache: what the journal's rows say of a path counts.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.journal.history import moves
from takeback.journal.journal import Journal, Row
from takeback.model.effects import Change, State, Turn, path_of_thread, same, state_of_thread, thread_of
from takeback.store.blobs import Blobs

if TYPE_CHECKING:
    from takeback.threads.threads import Threads

KINDS = ("state", "thread")  # rows that move a thread
_VERSION = 1
_MARSHAL = 4  # readable by every Python we support
_NAMED = 3  # threads that a summary names


class Moved(NamedTuple):
    """How far a thread has come since the last look."""

    by: int = 0  # state checkpoints
    agent: str = ""  # who saved the newest; empty if nobody said
    seq: int = 0  # the row of the newest
    at: float = 0.0
    turn: Turn | None = None  # in which the newest was saved, where its row says so
    parts: tuple[tuple[Change, Moved], ...] = ()  # what each who saved it did to it, one after the other


class Saved(NamedTuple):
    """A row that moved a thread."""

    seq: int
    at: float
    agent: str  # who saved it; empty if nobody said, and where something was removed
    turn: Turn | None = None
    is_state: bool = True


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

    def by_saver(self, paths: Iterable[bytes]) -> Iterator[Seen]:
        """What was found of these threads, one after the other, so that in each of them a thread has one saver."""
        moved = {path: self.moved[path] for path in paths}
        for number in range(max((len(each.parts) for each in moved.values()), default=0)):
            some = {path: each.parts[number] for path, each in moved.items() if number < len(each.parts)}
            changes = tuple(change for change, _ in some.values())
            yield Seen(self.known, changes, {path: part for path, (_, part) in some.items()})


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
        saved = self._saved(known.seq)
        for thread in sorted(threads.moved(known.seq) | saved.keys()):
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
            changes.append(whole := Change(path, was, now))
            parts = self._parts(thread, whole, saved.get(thread, []), dry)
            last = parts[-1][1] if parts else Moved()
            last = last._replace(by=threads.ahead(thread, known.seq) if document else 0)
            moved[path] = last._replace(parts=tuple(parts) if len(parts) > 1 else ((whole, last),))
        return Seen(Known(head, states), tuple(changes), moved)

    def _saved(self, after: int) -> dict[str, list[Saved]]:
        """What moved each thread after a row, in order. A removal is told here alone, where its rows were pruned."""
        found: dict[str, list[Saved]] = {}
        for row in self.journal.rows(after, KINDS):
            body = row.body or {}
            if row.kind == "state" and "thread" in body:
                found.setdefault(body["thread"], []).append(_saved(row, body))
            elif body.get("what") == "removal":
                found.setdefault(body["thread"], []).append(Saved(row.seq, row.at, "", is_state=False))
        return found

    def _parts(self, thread: str, whole: Change, saved: list[Saved], dry: bool) -> list[tuple[Change, Moved]]:
        """What each who saved a thread did to it. What came before it was last as it is known to have been is none of
        it: a take-back did that, or it was made good."""
        by_saver = [list(some) for _, some in groupby(saved, lambda each: (each.agent, each.turn))]
        found: list[tuple[Change, Moved]] = []
        before = whole.before
        for some in by_saver:
            last, after = some[-1], whole.after
            if some is not by_saver[-1]:
                document = self.threads().document(thread, last.seq)
                after = state_of_thread(document)
                if not dry:
                    self._store(document)
            if same(after, whole.before):
                found.clear()
            elif not same(after, before):
                by = sum(each.is_state for each in some) if after is not None else 0
                moved = Moved(by, last.agent, last.seq, last.at, last.turn)
                found.append((Change(whole.path, before, after), moved))
            before = after
        return found

    def _store(self, document: bytes) -> None:
        if document:
            self.blobs.put(document)

    def _store_again(self, thread: str, was: State, seq: int) -> None:
        """A prune drops a document with the last row that leads to it. The row to be written leads to it again."""
        if was is not None and not self.blobs.has(was.content):
            document = self.threads().document(thread, seq or self._horizon())
            if same(state_of_thread(document), was):
                self._store(document)

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


def _saved(row: Row, body: Mapping[str, Any]) -> Saved:
    return Saved(row.seq, row.at, body.get("agent", ""), Turn(*body["turn"]) if "turn" in body else None)


def _entry(content: bytes, size: int) -> State:
    found = state_of_thread(b"?")
    return None if found is None else found._replace(content=content, size=size)
