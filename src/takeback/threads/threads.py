"""Threads: what an agent remembers, as chains of state checkpoints in the one journal.

    put ─► values not held yet (rows, or packs) ─► state row: thread, namespace, id, parent, references

Nothing is ever rewritten. Going back appends the old state as a new head, forking appends it to another thread, and
deleting appends a removal, after which the next prune takes the bytes. A state row's number is its place among the
changes of files and the effects outside: that ties the two together.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Any

from takeback.care import budget
from takeback.errors import Damaged, Moved, UsageError
from takeback.journal.head_file import Head
from takeback.journal.journal import New, as_kept
from takeback.look import turns_and_calls
from takeback.model.ids import new_id
from takeback.model.thread_states import (
    Checked,
    Found,
    Handoff,
    NewState,
    StateCheckpoint,
    StateDifference,
    Write,
    again,
    identity_of,
    quoted,
    state_of,
    uuid6,
)
from takeback.privacy import redact

from . import compare, handoffs, plain_data, restored_from, value_codec
from . import prune as thread_prune
from .awaited import ThreadTwins
from .reads import States, ThreadReads
from .value_store import Fresh, Upload

if TYPE_CHECKING:
    from takeback.workspace_locks import Guarded

    from .prune import ThreadsPruned
    from .stores import StateStore

_NAME = 500  # characters of a thread's or a namespace's name
_SUMMARY = 300
_TENDED = 64  # puts after which it is looked whether the thread is over its budget
News = list[NewState]  # by these names, since `list` is a verb of Threads
Rows = list[int]
Append = Callable[[Sequence[New], float], list[int]]


class Threads(ThreadReads, ThreadTwins):
    """Of one workspace. Takes its locks itself; safe across threads and processes."""

    def __init__(self, ws: Guarded, store: StateStore | None = None) -> None:
        super().__init__(ws, store)
        self._together_in = 0  # the thread of the program that puts several as one
        self._as_of: Head | None = None  # the journal's head after the last put here
        self._checkpoint = ""  # the newest checkpoint of the files by then
        self._puts = 0

    # -- putting -------------------------------------------------------------------

    def save(
        self,
        thread: str,
        state: Mapping[str, Any],
        *,
        id: str = "",
        parent: str | None = None,
        summary: str = "",
        agent: str = "",
        source: str = "save",
        meta: Mapping[str, Any] | None = None,
        capture: bool = False,
        actor: str = "",
    ) -> StateCheckpoint:
        """Saves plain data as a thread's new head. `parent` is the head that the caller went on from: if another one
        was saved meanwhile, this one is not, and says so. `capture` and `actor` are those of `put`."""
        packed = {
            name: plain_data.encoded(value, f"state.{name}") for name, value in plain_data.named(state, "state").items()
        }
        plain_data.encoded(plain_data.named(meta or {}, "meta"), "meta")
        new = NewState(thread, "", id, parent or "", packed, meta or {}, "json", source, summary, agent)
        return self.put(new._replace(expect_head=parent), capture=capture, actor=actor)

    def put(self, new: NewState, *, capture: bool = False, actor: str = "") -> StateCheckpoint:
        """Journals one state checkpoint; without a parent it follows the head. With `capture` it looks at the files
        first, so that they are known as they were at this moment; what changed there is the actor's, unless a call is
        at work that may have done it. The actor saves it too, unless an agent is named that does."""
        found = self._put(new, capture, actor)
        if self._puts % _TENDED == 0 and self._together_in != get_ident():
            budget.tend(self.ws, new.thread)
        self._puts += 1
        return found

    def _put(self, new: NewState, capture: bool, actor: str) -> StateCheckpoint:
        self.ws.must_be_on()
        checked_name(new.thread, "thread")
        checked_name(new.ns, "namespace", empty=True)
        checked_name(new.id, "state checkpoint", empty=True)
        refs, fresh = self.held.referred(new)
        upload = self._uploaded(fresh) if self.held.goes_elsewhere else None
        with self._writing():
            if new.expect_head is not None or new.codec == "json" or self.held.goes_elsewhere or self.index.lags:
                self.index.follow()  # else a put asks nothing that it must know
            new = self._following(new._replace(agent=new.agent or actor))
            if not capture:
                return self._append([new], [refs], fresh, upload)[0]
            with self.ws.open_tree() as tree:
                self.ws.must_not_be_interrupted()
                observer = self.ws.observer
                look = observer.scan(tree, observer.known(), threads=False)  # one row a step would say little
                found = observer.rows_of(look, "" if look.changes and observer.is_called else actor)
                found = [*observer.rows_of_threads(look), *found] if actor else found
                if any(row.kind == "change" for row in found):
                    found.append(observer.checkpoint_row(look, "", named=False, actor=actor))
                return self._append(
                    [new], [refs], fresh, upload, found, lambda rows, at: observer.journal_look(look, rows, at)
                )[0]

    def _uploaded(self, fresh: Sequence[Fresh]) -> Upload | None:
        """What is not held yet, put beyond this machine: nobody waits for that."""
        with self.ws.alone():
            self.held.outlived()
            self.index.follow()
            lacking = [each for each in fresh if not self.held.has(each.id)]
        return self.held.upload(lacking) if lacking else None

    def _following(self, new: NewState) -> NewState:
        """With its parent, unless the head is not the one that the caller saw."""
        if new.expect_head is None and (new.parent or new.codec == "typed"):
            return new
        head = self._head(new.thread, new.ns, surely=new.expect_head is None)  # who names it knows what it is
        now = head.id if head and not head.absent else ""
        if new.expect_head is not None and now != new.expect_head:
            found = f"its head is {now}" if now else "it has no state"
            raise Moved(
                f"thread {new.thread} has moved on: {found}, not {new.expect_head or 'empty'}; nothing was saved",
                f"look at it with takeback thread show {quoted(new.thread)}, then save again from there",
            )
        return new._replace(parent=now)

    def _append(
        self,
        news: Sequence[NewState],
        refs: Sequence[Mapping[str, str]],
        fresh: Sequence[Fresh] = (),
        upload: Upload | None = None,
        before: Sequence[New] = (),
        append: Append | None = None,
    ) -> States:
        """The caller holds the store lock. Values, then the states that refer to them, in one synced transaction."""
        if self.journal.head() != self._as_of:
            if not self.held.outlived():
                self.index.follow()
            self._checkpoint = self.journal.newest_id("checkpoint")
        grew = bool(news[0].parent) and not self.held.knows(news[0], fresh)
        parent = self._found(news[0].thread, news[0].ns, news[0].parent) if grew else None
        try:
            rows = [*before, *self.held.rows_for(news[0], fresh, upload, parent.refs if parent else {})]
            checkpoint = next((r.id for r in reversed(before) if r.kind == "checkpoint"), self._checkpoint)
            made = [self._body(new, ref, checkpoint, self._blob(new, ref, upload)) for new, ref in zip(news, refs)]
            rows += [New("state", new_id(), body) for body in made]
            at = self.ws.clock()
            seqs = append(rows, at) if append is not None else self.journal.append(rows, at)
        except BaseException:
            self.held.forget()  # what is at hand may be in no row
            raise
        self._as_of, self._checkpoint = self.journal.left, checkpoint
        self.index.tell(rows, seqs)
        states = [state_of(seq, as_kept(at), body) for seq, body in zip(seqs[-len(made) :], made)]
        self._known.update((state.seq, state) for state in states)
        return states

    def _blob(self, new: NewState, refs: Mapping[str, str], upload: Upload | None) -> str | None:
        """The blob that holds its values beyond this machine, empty where none does; None where they stay here."""
        if upload is not None:
            return upload.blob
        return self.held.blob(refs) if self.held.goes_elsewhere or new.blob is not None else None

    def _body(self, new: NewState, refs: Mapping[str, str], checkpoint: str, blob: str | None) -> dict[str, Any]:
        body: dict[str, Any] = {
            "thread": new.thread, "ns": new.ns, "id": new.id or self._new_id(new), "parent": new.parent,
            "codec": new.codec, "source": new.source, "refs": dict(refs), "identity": identity_of(new, refs).hex(),
        }  # fmt: skip
        also = {
            "summary": new.summary if new.source == "langgraph" else _one_line(new.summary),  # a number, no words
            "agent": new.agent, "run": new.run, "meta": new.meta, "more": new.part_of_identity,
            "checkpoint": checkpoint, "restored_from": new.restored_from, "forked_from": new.forked_from,
            "absent": new.absent, "blobs": self.held.packs(refs), "began": new.began, "turn": self._turn(new),
        }  # fmt: skip
        body |= {name: value for name, value in also.items() if value}
        return body if blob is None else {**body, "blob": blob}

    def _turn(self, new: NewState) -> Sequence[str]:
        """Of what an agent saves over MCP, the turn it does so in: its client's name is not what its hooks call it."""
        if not self.ws.client or new.restored_from:
            return ()
        asked = turns_and_calls.asker(self.ws)
        return [asked["actor"], asked["turn"]] if "turn" in asked else ()

    def _new_id(self, new: NewState) -> str:
        """Of a framework's state: one that sorts after all before it, as its own do."""
        if new.codec == "json":
            return new_id()
        head = self._head(new.thread, new.ns)
        return uuid6(head.id if head else "")

    # -- writes --------------------------------------------------------------------

    def put_writes(
        self, thread: str, ns: str, checkpoint: str, task: str, task_path: str, writes: Sequence[Write]
    ) -> None:
        """What a task wrote after a checkpoint. It may come before the checkpoint itself."""
        self.ws.must_be_on()
        body = {
            "thread": checked_name(thread, "thread"), "ns": checked_name(ns, "namespace", empty=True),
            "id": checked_name(checkpoint, "state checkpoint"), "task": task, "path": task_path,
            "writes": [[w.idx, w.channel, b2a_base64(w.data, newline=False).decode()] for w in writes],
        }  # fmt: skip
        row = New("writes", new_id(), body)
        with self._writing():
            self.index.tell([row], self.journal.append([row], self.ws.clock()))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread of the program puts inside, without `capture`, is one synced transaction. What is asked
        inside is answered as of its beginning, so that what is put has to name its parent."""
        self.ws.must_be_on()
        with self.ws.writing():
            self.index.follow()
            self._together_in = get_ident()
            try:
                with self.journal.together():
                    yield
            except BaseException:
                self.held.forget()
                self._known.clear()
                self.index.untell()
                raise
            finally:
                self._together_in = 0

    def _writing(self) -> AbstractContextManager[None]:
        return nullcontext() if self._together_in == get_ident() else self.ws.writing()

    # -- forking, copying ------------------------------------------------------------

    def fork(self, thread: str, id: str, new_thread: str, *, agent: str = "", source: str = "fork") -> StateCheckpoint:
        """A new thread that begins with a state of this one, which stays as it is: of a subgraph's checkpoint too, it
        is all of the thread as it was at that moment."""
        self.ws.must_be_on()
        target = self.get(thread, id)
        checked_name(new_thread, "thread")
        with self._writing():
            self.index.follow()
            self._must_be_free(new_thread)
            states = self.moment_of(target)
            news = [
                again(
                    s,
                    thread=new_thread,
                    source=source,
                    agent=agent,
                    forked_from=(thread, s.id),
                    id="",
                    parent="",
                    run="",
                )
                for s in states
            ]
            return self._append(news, [s.refs for s in states])[-1]

    def copy(self, source: str, target: str) -> int:
        """All of a thread under another name, its ids and writes included: how many state checkpoints."""
        self.ws.must_be_on()
        checked_name(target, "thread")
        with self.ws.writing():
            self.index.follow()
            self._must_be_free(target)
            found = self._many([each.seq for each in reversed(self.index.listed(source, None, None, None))])
            if not found:
                return 0
            news = [again(s, thread=target, forked_from=s.forked_from or (source, s.id)) for s in found]
            writes = [New("writes", new_id(), {**body, "thread": target}) for *_, body in self._written(found)]
            self._append(news, [s.refs for s in found], before=writes)
            return len(found)

    def _must_be_free(self, thread: str) -> None:
        if self.index.has(thread):
            raise UsageError(f"there is a thread {thread} already; nothing was changed", "choose another name")

    # -- going back ------------------------------------------------------------------

    def restore(self, thread: str, document: bytes, *, up_to: int | None = None) -> States:
        """Appends heads, so that a thread's state is what a document says: nothing before them is touched. The caller
        holds the store lock. Of several checkpoints with the same state the newest up to a row is meant."""
        self.index.follow()
        wanted = json.loads(document)["heads"] if document else {}
        now = {ns: self.at(seq) for ns, seq in self.index.heads(thread, None).items()}
        states: States = []
        news: News = []
        for ns in sorted({*wanted, *now}, reverse=True):  # the root last: at its row, all of them are back
            head, identity = now.get(ns), wanted.get(ns, "")
            is_there = head is not None and not head.absent
            if identity == (head.identity.hex() if head is not None and is_there else ""):
                continue
            if not identity:
                assert head is not None
                gone = NewState(thread, ns, "", head.id, {}, codec=head.codec, source="rollback", absent=True)
                states.append(head._replace(refs={}))
                news.append(gone)
                continue
            target = self._meant(thread, ns, bytes.fromhex(identity), up_to)
            states.append(target)
            parent = head.id if head is not None else ""
            news.append(again(target, id="", parent=parent, source="rollback", restored_from=target.id, run=""))
        return self._append(news, [s.refs for s in states]) if news else []

    # -- removing --------------------------------------------------------------------

    def remove(self, thread: str, ids: Iterable[tuple[str, str]] | None = None) -> int:
        """Removes a thread, or some of its checkpoints by namespace and id, with their writes. It is journaled; the
        bytes go at the next prune, but for those that a fork is read from. How many there were."""
        self.ws.must_be_on()
        with self.ws.writing():
            return self.removed(thread, ids)

    def removed(self, thread: str, ids: Iterable[tuple[str, str]] | None = None) -> int:
        """The same, where the caller holds the store lock."""
        self.index.follow()
        found = {(each.ns, each.id) for each in self.index.listed(thread, None, None, None)}
        chosen = None if ids is None else sorted(found & set(ids))
        if not found or chosen == []:
            return 0
        body: dict[str, Any] = {"what": "removal", "thread": thread}
        if chosen is not None:
            body["checkpoints"] = [list(each) for each in chosen]
        self.journal.append([New("thread", new_id(), body)], self.ws.clock())
        self.index.follow()
        self.held.forget()
        return len(found) if chosen is None else len(chosen)

    def remove_runs(self, runs: Iterable[str]) -> int:
        """Removes the state checkpoints of these runs, in whatever thread."""
        self.ws.must_be_on()
        with self.ws.writing():
            self.index.follow()
            of: dict[str, list[tuple[str, str]]] = {}
            for each in (each for run in runs for each in self.index.runs(run)):
                of.setdefault(each.thread, []).append((each.ns, each.id))
            return sum(self.removed(thread, ids) for thread, ids in of.items())

    def forgettable(self, going: Iterable[StateCheckpoint] = ()) -> Rows:
        """Rows that lost their use by removals, or would by the removal of what is going: of checkpoints, writes, and
        values that nothing refers to any more. The caller holds the store lock."""
        self.index.follow()
        gone = {*self.index.removed(), *self.index.rows_of((state.thread, state.ns, state.id) for state in going)}
        if not gone or not (gone := gone - self._read_through(gone)):
            return []
        needed: set[bytes] = set()
        for row in self.journal.rows(kinds=("state",)):
            if row.seq not in gone and row.body is not None:
                needed.update(bytes.fromhex(ref) for ref in row.body["refs"].values() if ref[0] != "=")
            elif row.damaged:
                return []  # what it needs is not known, so nothing goes
        try:
            bodies = {id: (seq, self.held.row(id)) for id, seq in self.index.held()}
        except Damaged:
            return []  # nor is what this value stands on
        waiting = list(needed)
        while waiting:
            value = waiting.pop()
            base = value_codec.base_of(bodies[value][1]) if value in bodies else None
            if base is not None and base not in needed:
                needed.add(base)
                waiting.append(base)
        return sorted(gone | {seq for id, (seq, _) in bodies.items() if id not in needed})

    def _read_through(self, gone: Set[int]) -> set[int]:
        """Rows of what was removed that what is left is read from: a fork outlives the thread that it came from."""
        found: set[int] = set()
        for state in (state for state in self.list() if state.seq not in gone):
            with suppress(Damaged):  # it cannot be read as it is
                found.update(each.seq for each in restored_from.below(self, state) if each.seq in gone)
        return found | {seq for seq, *_ in self.index.writes(found)}

    # -- pruning, seeing, handing over: each in a file of its own ---------------------

    def prune(
        self,
        threads: Iterable[str] = (),
        keep: int | None = None,
        older_than: float | None = None,
        *,
        delete: bool = False,
        dry_run: bool = False,
        heads: bool = False,
        missing_ok: bool = False,
    ) -> ThreadsPruned:
        """Removes old state checkpoints of these threads, or of all of them; with `heads` all but the newest of each
        namespace, with `delete` the named ones whole. What heads, forks, handoffs and a redo need stays. The bytes go
        at the next prune of the workspace. With `missing_ok` a thread that is not there is no error."""
        return thread_prune.prune(self, threads, keep, older_than, delete, dry_run, heads, missing_ok)

    def diff(self, thread: str, a: str, b: str = "") -> Sequence[StateDifference]:
        """What differs between two state checkpoints; `b` is the head if it is left out."""
        return compare.diff(self, thread, a, b)

    def search(
        self, query: str, thread: str = "", limit: int = 20, *, mask: Callable[..., str] | None = None
    ) -> Sequence[Found]:
        """State checkpoints whose summary or state has all these words, newest first. `mask(text, path=…)` says what
        may be shown of the text around them."""
        return compare.search(self, query, thread, limit, mask)

    def verify(self, thread: str = "") -> Sequence[Checked]:
        """Every state checkpoint, oldest first: whether its row and its values are as they were stored."""
        return compare.verify(self, thread)

    def handoff(self, thread: str, id: str = "", *, to_agent: str, note: str = "", agent: str = "") -> Handoff:
        """Passes a state checkpoint to another agent, who adopts it."""
        return handoffs.hand_over(self, thread, id, to_agent, note, agent)

    def handed_over(self) -> Sequence[Handoff]:
        """Every handoff, newest first."""
        return handoffs.made(self)

    def adopt(self, handoff_id: str, *, agent: str = "", new_thread: str = "") -> StateCheckpoint:
        """Takes over what was handed over: a new thread that begins with it. Once."""
        return handoffs.adopt(self, handoff_id, agent, new_thread)

    def forget(self) -> None:
        """Nothing is at hand any more: all is read from the journal again."""
        self.held.forget()
        self._known.clear()

    def close(self) -> None:
        self.index.close()


@lru_cache(512)
def _one_line(summary: str) -> str:
    return summary and redact.text(" ".join(summary.split()))[:_SUMMARY]


def checked_name(name: str, what: str, empty: bool = False) -> str:
    is_one = isinstance(name, str) and (name or empty) and len(name) <= _NAME and "\0" not in name and "\n" not in name
    if not is_one or not _is_text(name):
        said = repr(name) if len(repr(name)) <= 60 else f"{repr(name)[:60]}…"
        raise UsageError(f"{said} cannot be the name of a {what}", f"a name is one line of 1 to {_NAME} characters")
    return name


def _is_text(name: str) -> bool:
    """Whether it can be written as UTF-8: what came as other bytes, or as half of a pair, cannot."""
    try:
        return name.isascii() or bool(name.encode())
    except UnicodeEncodeError:
        return False
