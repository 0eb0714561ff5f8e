"""Threads, read: state checkpoints by name and by row, their values, and what tasks wrote after them.

name ─► index (which row) ─► journal (the row, checked) ─► values (by reference, checked)
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takeback.errors import Damaged, NotFound, TakebackError, UsageError
from takeback.journal.journal import Row
from takeback.model.thread_states import StateCheckpoint, ThreadSeen, Write, quoted, state_of, write_order

from . import plain_data, stores
from .index import ThreadIndex
from .value_store import HeldValues

if TYPE_CHECKING:
    from takeback.workspace_locks import Guarded

    from .stores import StateStore

_STATES = 512  # rows that were read and stay at hand
States = list[StateCheckpoint]  # by this name, since `list` is a verb of threads
Body = Mapping[str, Any]


class ThreadReads:
    """What Threads is asked. Takes the workspace's locks itself."""

    def __init__(self, ws: Guarded, store: StateStore | None = None) -> None:
        self.ws = ws
        self.journal = ws.store.journal
        folder = None if ws.store.is_read_only else ws.store.folder
        self.index = ThreadIndex(folder and folder / "threads.db", self.journal)
        if (set_up := getattr(store, "set_up", None)) is not None and store is not None:
            set_up(ws.settings, ws.environ, self._key(store.name))
        self.held = HeldValues(
            self.index, self.journal, ws.store.blobs, store, self._configured, ws.settings.threads_store
        )
        self._known: OrderedDict[int, StateCheckpoint] = OrderedDict()  # rows that were read
        self._is_reading = False  # the one thread that may be inside

    def _configured(self, name: str) -> StateStore:
        return stores.from_settings(name, self.ws.settings, self.ws.environ, self._key(name))

    def _key(self, name: str) -> Path:
        return self.ws.settings.config.with_name(f"{name}.key")  # an agent's environment does not say where that is

    @contextmanager
    def reading(self) -> Iterator[None]:
        """With the index as far as the journal goes; what is asked inside is answered as of then."""
        with self.ws.alone():
            if self._is_reading:
                yield
                return
            self.index.follow()
            self._is_reading = True
            try:
                yield
            finally:
                self._is_reading = False

    # -- state checkpoints --------------------------------------------------------

    def value(self, ref: str) -> bytes:
        """The bytes that a reference stands for, checked by their hash."""
        with self.reading():
            return self.held.read(ref)

    def values(self, checkpoint: StateCheckpoint) -> dict[str, bytes]:
        with self.reading():
            return {name: self.held.read(ref) for name, ref in checkpoint.refs.items()}

    def load(self, checkpoint: StateCheckpoint) -> dict[str, Any]:
        """The state as plain data. Nothing is imported by a name that stands in it."""
        return {name: plain_data.decoded(data, checkpoint.codec) for name, data in self.values(checkpoint).items()}

    def find(self, thread: str, id: str = "", ns: str = "") -> StateCheckpoint | None:
        """A state checkpoint by its whole id, or the head; None if there is none."""
        with self.reading():
            if id:
                return self._found(thread, ns, id)
            head = self._head(thread, ns)
            return None if head is None or head.absent else head

    def get(self, thread: str, id: str = "", ns: str | None = None) -> StateCheckpoint:
        """The head, or a checkpoint of this thread by its id or the beginning of it."""
        with self.reading():
            if not self.index.has(thread):
                raise NotFound(f"there is no thread called {thread!r}", self.names_hint())
            if not id:
                head = self._head(thread, ns or "")
                if head is None or head.absent:
                    raise NotFound(f"thread {thread} has no state there", f"takeback thread list {quoted(thread)}")
                return head
            found = self.index.beginning(thread, id, ns)
            exact = [each for each in found if each.id == id]
            found = exact or found
            root = [each for each in found if each.ns == ""]
            found = root or found
            if len({(each.ns, each.id) for each in found}) > 1:
                said = ", ".join(each.id for each in found[:4])
                raise UsageError(f"{id!r} is the beginning of several state checkpoints: {said}", "give more of it")
            if not found:
                raise self._not_here(thread, id)
            return self._of(thread, found[0].ns, found[0].seq, found[0].id)

    def _not_here(self, thread: str, id: str) -> NotFound:
        others = sorted({each.thread for each in self.index.elsewhere(id)} - {thread})
        if others:
            return NotFound(
                f"state checkpoint {id} is of thread {others[0]}, not of {thread}",
                f"name that thread, or take it over with takeback thread fork {quoted(others[0])} {id} NEW",
            )
        hint = f"see them with takeback thread list {quoted(thread)}"
        return NotFound(f"thread {thread} has no state checkpoint {id}", hint)

    def names_hint(self) -> str:
        names = [name for name, *_ in self.index.threads()][:5]
        return f"there are: {', '.join(names)}" if names else "none was saved yet: takeback thread save THREAD"

    def list(
        self,
        thread: str = "",
        ns: str | None = None,
        before: str = "",
        limit: int | None = None,
        *,
        below: int | None = None,
        absent: bool = False,
    ) -> States:
        """State checkpoints, newest first; without a thread of all of them. `before` names one of them, `below` a row;
        `absent` lists those too that say a namespace is not there any more."""
        with self.reading():
            below = self._below(thread, before) if before else below
            found = self.index.listed(thread or None, ns, below, limit)
            return [state for state in self._many([each.seq for each in found]) if absent or not state.absent]

    def _below(self, thread: str, before: str) -> int:
        found = self.index.beginning(thread, before) if thread else self.index.elsewhere(before)
        return min((each.seq for each in found if each.id == before), default=0)

    def names(self) -> Sequence[str]:
        """Every thread, the one that moved last first."""
        with self.reading():
            return [name for name, *_ in self.index.threads()]

    def saved(self, thread: str) -> Sequence[float]:
        """When each state checkpoint of a thread was saved, those of namespaces left out; newest first."""
        with self.reading():
            return self.journal.times(
                sorted((each.seq for each in self.index.listed(thread, "", None, None)), reverse=True)
            )

    def all(self) -> Sequence[ThreadSeen]:
        """Every thread, the one that moved last first."""
        out = []
        with self.reading():
            for thread, count, first, _ in self.index.threads():
                rows = self.index.heads(thread, None)  # as far as is known: who goes on from one is told if it is not
                states = zip(rows, self._many(list(rows.values())))
                heads = {ns: state for ns, state in states if not state.absent}
                if not heads:
                    continue
                head = heads.get("") or max(heads.values(), key=lambda state: state.seq)
                oldest = self.at(first)
                out.append(ThreadSeen(thread, head, count, tuple(sorted(heads)), oldest.forked_from, oldest.at))
        return out

    def heads_at(self, thread: str, seq: int | None = None) -> dict[str, StateCheckpoint]:
        """The state of each namespace, as of a row of the journal; now, without one."""
        with self.reading():
            found = self.index.heads(thread, seq)
            if seq is None and found:
                self._must_be_newest(thread, max(found.values()))
            states = zip(found, self._many(list(found.values())))
            return {ns: state for ns, state in states if not state.absent}

    def document(self, thread: str, seq: int | None = None) -> bytes:
        """What a thread's state is, in short: the identity of each namespace's. Empty, if it has none."""
        heads = self.heads_at(thread, seq)
        if not heads:
            return b""
        told = {ns: state.identity.hex() for ns, state in sorted(heads.items())}
        return json.dumps({"thread": thread, "heads": told}, separators=(",", ":")).encode()

    def moved(self, after: int) -> set[str]:
        """Threads that have rows after this one."""
        with self.reading():
            return self.index.moved(after)

    def ahead(self, thread: str, seq: int) -> int:
        """How many state checkpoints a thread has after a row."""
        with self.reading():
            return self.index.count(thread, seq)

    def told_by(self, thread: str, document: bytes, up_to: int | None = None) -> dict[str, StateCheckpoint] | None:
        """The state checkpoints, by namespace, that a document stands for; None if one of them was pruned."""
        with self.reading():
            wanted = json.loads(document)["heads"] if document else {}
            try:
                return {ns: self._meant(thread, ns, bytes.fromhex(id), up_to) for ns, id in wanted.items()}
            except Damaged:
                return None

    def unreadable(self, states: Iterable[StateCheckpoint]) -> str:
        """Why one of these cannot be read as it was stored; empty if all can."""
        with self.ws.alone():
            for ref in dict.fromkeys(ref for state in states for ref in state.refs.values()):
                try:
                    self.held.read(ref)
                except TakebackError as error:
                    return f"its earlier state cannot be read: {error.message}"
        return ""

    def parent_of(self, state: StateCheckpoint) -> StateCheckpoint | None:
        """The checkpoint that one followed, as it was then: whatever was removed since, as long as it is kept."""
        with self.reading():
            seq = self.index.as_of(state.seq, state.thread, state.ns, state.parent)
            return None if seq is None else self.at(seq)

    def restored_by(self, state: StateCheckpoint, thread: str, id: str) -> StateCheckpoint | None:
        """The checkpoint of this id whose state another one took over, removed or not, as long as it is kept."""
        with self.reading():
            rows = sorted(self.index.alike(thread, state.ns, state.identity), key=lambda seq: seq >= state.seq)
            return next((each for each in self._many(rows) if each.id == id and each.seq != state.seq), None)

    def forks_of(self, thread: str) -> States:
        """State checkpoints of other threads that began as this one's."""
        with self.reading():
            return self._many([each.seq for each in self.index.forks(thread)])

    def moment_of(self, target: StateCheckpoint) -> States:
        """A thread as it was when this state was saved, its root last: at that row, all of it is there."""
        with self.reading():
            then = self._many(list(self.index.heads(target.thread, target.seq).values()))
        found = [state for state in then if state.ns and not state.absent]
        root = [state for state in then if not state.ns and not state.absent]
        if not root:
            raise UsageError(
                f"{target.id} is of {target.ns}, and thread {target.thread} has no state of its own of "
                "that moment to go on from; nothing was changed",
                f"choose one of the thread itself: takeback thread list {quoted(target.thread)}",
            )
        return [*found, *root]

    # -- what tasks wrote ----------------------------------------------------------

    def writes(self, checkpoint: StateCheckpoint) -> Sequence[Write]:
        """In the order in which a step applies them: by the task's path, the task, and its own order."""
        return self.many_writes([checkpoint]).get((checkpoint.thread, checkpoint.ns, checkpoint.id), ())

    def many_writes(self, checkpoints: Iterable[StateCheckpoint]) -> dict[tuple[str, str, str], Sequence[Write]]:
        """The writes of many checkpoints, by thread, namespace and id."""
        with self.reading():
            rows = self._written(list(checkpoints))
        found: dict[tuple[str, str, str], dict[tuple[str, int], Write]] = {}
        for thread, ns, id, body in rows:
            here = found.setdefault((thread, ns, id), {})
            task = body["task"]
            for idx, channel, data in body["writes"]:
                if idx < 0 or (task, idx) not in here:  # a step that runs again repeats what it wrote
                    here[(task, idx)] = Write(idx, channel, a2b_base64(data), task, body["path"])
        return {key: sorted(here.values(), key=write_order) for key, here in found.items()}

    def _written(self, checkpoints: Sequence[StateCheckpoint]) -> Sequence[tuple[str, str, str, Body]]:
        """(thread, namespace, checkpoint, body) of their rows of writes, in order. One that is lost, or that may have
        been one of theirs, is said: what a task did must not be done again because nobody knows of it."""
        if (doubted := self.index.doubted_writes(checkpoints)) is not None:
            state, seq = doubted
            raise Damaged(
                f"row {seq} was altered: whether it was what a task wrote after {state.id} of thread {state.thread} "
                "is not known",
                f"takeback thread verify names what is lost; to go on without it, takeback thread fork "
                f"{quoted(state.thread)} {state.id} NEW",
            )
        rows = self.index.writes(state.seq for state in checkpoints)
        read = self.journal.at([seq for seq, *_ in rows])
        out = []
        for seq, thread, ns, id in rows:
            row = read.get(seq)
            if row is None or row.damaged or row.body is None:
                raise Damaged(
                    f"the writes after {id} of thread {thread} (row {seq}) are not as they were stored",
                    "takeback thread verify says what is lost",
                )
            out.append((thread, ns, id, row.body))
        return out

    # -- by rows -------------------------------------------------------------------

    def _head(self, thread: str, ns: str, surely: bool = True) -> StateCheckpoint | None:
        seq = self.index.head(thread, ns)
        if seq is not None and surely:
            self._must_be_newest(thread, seq)
        return None if seq is None else self._of(thread, ns, seq)

    def _must_be_newest(self, thread: str, seq: int) -> None:
        if (cut := self.journal.cut()) is not None:
            raise Damaged(
                f"the journal's tail is cut, rows {cut[0]} to {cut[1]} are lost: whether thread {thread}'s newest "
                "state was among them is not known",
                "run takeback repair to go on without them; it is recorded",
            )
        if (altered := self.index.altered_after(seq)) is not None:
            raise Damaged(
                f"row {altered} was altered: whether it was thread {thread}'s newest state is not known",
                "takeback thread verify names what is lost; go on from a checkpoint by naming it as the parent",
            )

    def _found(self, thread: str, ns: str, id: str) -> StateCheckpoint | None:
        seq = self.index.find(thread, ns, id)
        state = None if seq is None else self._of(thread, ns, seq, id)
        return None if state is None or state.absent else state

    def _of(self, thread: str, ns: str, seq: int, id: str = "") -> StateCheckpoint:
        """The state in a row that the index gives for a thread: the row says whose it is."""
        state = self.at(seq)
        if (state.thread, state.ns, id or state.id) != (thread, ns, state.id):
            raise Damaged(
                f"threads.db names row {seq} for thread {thread}, which is {state.id} of thread {state.thread}",
                "takeback thread verify makes it anew; nothing is lost",
            )
        return state

    def at(self, seq: int) -> StateCheckpoint:
        return self._many([seq])[0]

    def _many(self, seqs: Sequence[int]) -> States:
        """The state checkpoints in these rows, each row read and checked."""
        wanted = [seq for seq in seqs if seq not in self._known]
        read = self.journal.at(wanted)
        for seq in wanted:
            self._known[seq] = _of_row(seq, read.get(seq))
        found = [self._known[seq] for seq in seqs]
        while len(self._known) > _STATES:
            self._known.popitem(last=False)
        return found

    def _meant(self, thread: str, ns: str, identity: bytes, up_to: int | None) -> StateCheckpoint:
        """The checkpoint with this state: one that was saved rather than one that was gone back to."""
        rows = self.index.alike(thread, ns, identity)
        rows = [seq for seq in rows if up_to is None or seq <= up_to] or rows
        found = self._many(rows)
        if not found:
            raise Damaged(
                f"thread {thread} has no state {identity.hex()[:12]} any more: it was pruned",
                "see what is left with takeback thread list",
            )
        return next((state for state in found if not state.restored_from), found[0])


def _of_row(seq: int, row: Row | None) -> StateCheckpoint:
    if row is None or row.body is None or row.kind != "state":
        raise Damaged(f"the state in row {seq} is not as it was stored", "takeback thread verify says what is lost")
    return state_of(seq, row.at, row.body)
