"""What is known of the tree, and looking at it again.

The known tree is the index, brought up to the journal's head; a look compares it with the world, and what differs is
journaled and becomes known. The order on disk: blobs synced, journal committed, index renamed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.config.settings import Settings
from takeback.domains.git.look import GitState
from takeback.domains.git.repository import amount
from takeback.domains.threads.look import ThreadState
from takeback.errors import Damaged, UsageError
from takeback.journal import brackets
from takeback.journal.brackets import Bracket, End, Owners, Ownership, Span
from takeback.journal.history import History, pack_list, pack_snapshot, unpack_list, unpack_snapshot
from takeback.journal.journal import New, Row
from takeback.model.effects import FOLDER, RUN, UNSEEN, Change, Entry, State, Turn, raw, same, text
from takeback.model.ids import new_id
from takeback.store import folder_objects
from takeback.store.layout import Store
from takeback.system.forking import DamagedThere
from takeback.system.safefs import TEMPORARY, linux
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs.mounts import mounts_below

from . import runs_at_work, steps_at_work
from .change_times import ChangeTimes
from .coverage import Rules, load_rules
from .known_tree import Index, Record
from .known_tree_file import IndexFile
from .scan import Limits, Look, Scan
from .steps_at_work import StepAtWork

if TYPE_CHECKING:
    from takeback.apply.executor import Told
    from takeback.domains.git.look import GitState
    from takeback.domains.threads.look import Moved, Seen, ThreadState
    from takeback.look.watch.suspects import Suspects
    from takeback.threads.threads import Threads

Progress = Callable[[int], None]
_FOLDERS = 256  # decoded ones kept by whoever asks for many states
MANY = 10_000  # changes: from here on the memory they took is worth giving back
_BEHIND = 32  # rows that an index which needs no change may lie behind the journal: they are replayed each time
_GIT = {"domain": "git"}
_STATE = {"domain": "state"}
_TREE_ROWS = ("change", "note", "outcome")  # rows that move the known tree
_NONE_OVER: Mapping[str, End] = {}
STOPPED = "stopped"  # the note that a person stopped a take-back


class Unfinished(NamedTuple):
    """A take-back that was interrupted."""

    takeback: str
    verb: str
    temporaries: tuple[bytes, ...]  # how the names of its temporary files begin
    stopped: bool  # by a person; else it was cut off


class _Steps(NamedTuple):
    """Harnesses' steps at work, as owners of what a look finds."""

    turns: tuple[Turn, ...] = ()
    died: frozenset[Turn] = frozenset()  # of them those whose process died, nobody knows when
    around: frozenset[str] = frozenset()  # the turns and steps that they are inside of
    marks: Sequence[StepAtWork] = ()  # of all that are open, or died

    def is_around(self, bracket: Bracket) -> bool:
        return bracket.call.scans and bracket.turn.number in self.around


_NO_STEPS = _Steps()


class Observer:
    """The caller holds the store lock wherever something is written."""

    def __init__(self, root: Path, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self.root = root
        self.store = store
        self.settings = settings
        self.clock = clock
        self.progress: Progress | None = None
        self.told: Told | None = None
        self.end_of: Callable[[Bracket], End | None] = _gone  # what became of a call that is open; None: it is at work
        self.waits: Callable[[Bracket], bool] = lambda bracket: False  # whether it surely waits for a person's answer
        self.stopped: Callable[[], bool] = lambda: False  # of a take-back: whether whoever asked for it has cancelled
        self.suspects: Suspects | None = None  # of a process that stays: which folders a look has to visit
        self.seen_at = 0.0  # of a process that stays: when the tree was last seen to be as it is known (prompts.py)
        self.broken_rules = ""  # why the project's own rules do not count
        self._index = IndexFile(store.folder and store.folder / "index", self._lost)
        self._spares: tuple[int, dict[bytes, Record]] | None = None  # of a head, for an index that has lost some
        self.threads: Callable[[], Threads] | None = None  # those of the workspace
        self._thread_state: ThreadState | None = None
        self._history: tuple[int, History] | None = None
        self._settled: tuple[object, History] | None = None  # the same, with what is over as if it were closed
        self._confirmed = (0, "")  # the newest row that counts for it, and the project's rules that a person accepted

    @cached_property
    def git(self) -> GitState:
        """What is known of the project's repository; loaded when it is asked for."""
        return GitState(self.root, self.store.folder, self.store.journal, self.store.blobs)

    @property
    def thread_state(self) -> ThreadState:
        """What is known of the threads; loaded where there are any."""
        if self._thread_state is None:
            assert self.threads is not None
            self._thread_state = ThreadState(self.store.folder, self.store.journal, self.store.blobs, self.threads)
        return self._thread_state

    @property
    def has_threads(self) -> bool:
        return self.threads is not None and self.store.journal.newest("state") > 0

    def forget(self) -> None:
        """Drops what is cached in memory: after a failure the files say what is true."""
        self._index.forget()
        self._spares = None
        self.git.forget()
        if self._thread_state is not None:
            self._thread_state.forget()

    def close(self) -> None:
        if self.suspects is not None:
            self.suspects.close()
        self._index.forget()  # it keeps its file open

    def forget_history(self) -> None:
        self._history = self._settled = None

    def start_anew(self) -> None:
        """Knows nothing any more: the next checkpoint is a first one."""
        self._index.remove()
        self.git.remove()
        if self.has_threads:
            self.thread_state.remove()

    # -- the known tree ------------------------------------------------------

    def history(self) -> History:
        """The journal, folded; kept while nothing is appended."""
        head = self.store.journal.head().seq
        if self._history is None or self._history[0] != head:
            folded = self._folded(head)
            self._history = head, folded
            if any(len(effect.changes) >= MANY for effect in folded.effects):
                give_back_memory()
        return self._history[1]

    def as_closed(self) -> History:
        """The same as it would be if a look closed now what is over: who only reads writes nothing."""
        history = self.history()
        known = ((bracket, self.end_of(bracket)) for bracket in history.in_question)
        over = [brackets.as_closed(bracket, end) for bracket, end in known if end is not None and not end.awaited]
        if not over:
            return history
        key = history.head, tuple(over)
        if self._settled is None or self._settled[0] != key:
            self._settled = key, history.settled_by(over)
        return self._settled[1]

    def _folded(self, head: int) -> History:
        """The whole journal, or what was appended to it onto what is folded already."""
        journal, load = self.store.journal, self.store.blobs.get
        if self._history is not None and self._history[0] < head:
            known = self._history[1]
            rows = list(journal.rows(self._history[0]))
            if known.can_go_on(rows):
                return History(rows, load, known)
        return History(journal.rows(), load)

    def known(self, until: int | None = None) -> Index:
        """The last observed state of every path, as the journal's rows up to its head, or up to an earlier one, say:
        the index, with the rows after it."""
        index = self._index.load() or self._snapshot()
        head = self.store.journal.head().seq if until is None else until
        if index.seq > head:  # of another journal: one put back from a backup, or cut
            self._index.forget()
            return self._rebuilt(head)
        if index.seq < head and not self._replay(index, head):
            return self._rebuilt(head)
        return index

    def _snapshot(self) -> Index:
        """The known tree of the last checkpoint: what the index is rebuilt from."""
        last = self.store.journal.last("checkpoint")
        if last is not None and last.damaged:
            good = [row for row in self.store.journal.rows(kinds=("checkpoint",)) if row.body is not None]
            last = good[-1] if good else None
        if last is None or last.body is None:
            return Index(seq=self.store.journal.head().seq)
        return Index.from_snapshot(self.store.blobs.get, unpack_snapshot(last.body["snapshot"]), last.seq)

    def _lost(self, stored: bytes) -> bytes:
        """A folder object that the index has lost: as a checkpoint stored it, or as the journal's rows lead to it."""
        if self.store.blobs.has(stored):
            return self.store.blobs.get(stored)
        head = self.store.journal.head().seq
        if self._spares is None or self._spares[0] != head:  # a crash may have cost many
            self._spares = head, {record.stored: record for record in self._rebuilt(head).folders.values()}
        found = self._spares[1].get(stored)
        if found is None:
            raise Damaged("the index was damaged, and is dropped", "run it again: it is made anew from the journal")
        return found.object

    def _rebuilt(self, head: int) -> Index:
        index = self._snapshot()
        self._replay(index, head)
        return index

    def _replay(self, index: Index, head: int) -> bool:
        """Brings an index up to a row, or to before the first row that is altered or lost: then what follows is
        not known, and the next look finds it in the tree. Whether all of it could be followed."""
        whole, joined = True, Joined(index)
        for row in self.store.journal.rows(index.seq):
            if row.seq > head:
                break
            if row.damaged or (row.body is None and row.kind in _TREE_ROWS):
                whole = False
                break
            if row.kind in _TREE_ROWS:
                try:
                    joined.add(self._moved(row))
                except Damaged:
                    whole = False
                    break
        try:
            joined.settle()
        except Damaged:
            whole = False
        index.seq = head
        return whole

    def save(self, index: Index) -> None:
        origin, touched = index.origin, index.touched
        self._index.save(index)
        self._spares = None
        if self.suspects is not None:
            self.suspects.saved(origin, touched, index.origin)

    def _moved(self, row: Row) -> list[Change]:
        """How one row moved the known tree."""
        body = row.body or {}
        if body.get("domain", "files") != "files":
            return []
        if row.kind != "outcome":
            return unpack_list(body["list"], self.store.blobs.get) if "list" in body else []
        if body.get("aborted"):
            return []
        begun = self.store.journal.get(body["takeback"])
        if begun is None or begun.body is None:
            return []
        segment = begun.body["segments"][body["segment"]]
        undone = {raw(path) for path, *_ in body["not_done"]}
        if segment["domain"] != "files":
            return []
        return [c for c in unpack_list(segment["list"], self.store.blobs.get) if c.path not in undone]

    # -- an interrupted take-back ----------------------------------------------

    def open_intents(self) -> Unfinished | None:
        """An interrupted take-back. Only the newest can be one."""
        journal = self.store.journal
        newest = journal.last("takeback")
        if newest is None or newest.body is None:
            return None
        ended, begun, damaged = 0, [], False
        for row in journal.rows(newest.seq, ("intent", "outcome")):
            damaged = damaged or row.damaged
            if row.body is None or row.body.get("takeback") != newest.id:
                continue  # of a later one that prune has forgotten, which it does only to those that ended
            if row.kind == "intent":
                begun.append(TEMPORARY + row.id.encode() + b"-")
            else:
                ended += 1
                if row.body.get("aborted"):
                    return None
        if damaged or ended == len(newest.body["segments"]):
            return None  # a damaged row may have been its outcome: nothing is finished on a guess
        notes = [row.body or {} for row in journal.rows(newest.seq, ("note",))]
        stopped = any(note.get("what") == STOPPED and note.get("takeback") == newest.id for note in notes)
        return Unfinished(newest.id, newest.body["request"]["verb"], tuple(begun), stopped)

    def note_stopped(self) -> None:
        """A person has stopped the take-back that was under way, if it has begun and not ended."""
        if (found := self.open_intents()) is not None:
            body = {"what": STOPPED, "takeback": found.takeback}
            self.store.journal.append([New("note", new_id(), body)], self.clock())

    # -- looking -------------------------------------------------------------

    def rules(self, tree: OpenFolder) -> Rules:
        """What is covered. A .takebackignore that cannot be used counts as none: it must not stop an undo."""
        ignore: bytes | None = None
        self.broken_rules = ""
        try:
            fd = tree.open_read(b".takebackignore")
        except OSError:
            return load_rules(self.settings, None)
        try:
            ignore = os.read(fd, 1 << 20) if stat.S_ISREG(os.fstat(fd).st_mode) else None
        finally:
            os.close(fd)
        try:
            return load_rules(self.settings, ignore)
        except UsageError as error:
            self.broken_rules = f"{error.message}; nothing in that file counts until it is mended"
            return load_rules(self.settings._replace(project_exclude=()), None)

    def limits(self, deadline: float | None = None, temporary: tuple[bytes, ...] = ()) -> Limits:
        own = None
        if self.store.folder is not None:
            home = os.path.realpath(self.settings.home)
            if home.startswith(str(self.root).rstrip("/") + os.sep):
                own = os.fsencode(os.path.relpath(home, self.root)).replace(os.sep.encode(), b"/")
        seconds = deadline if deadline is not None else self.settings.scan_deadline
        return Limits(
            max_file=self.settings.max_file,
            room=lambda: self.settings.max_bytes - self.store.blobs.size(),
            deadline=None if seconds is None else time.monotonic() + seconds,
            own_store=own,
            temporary=temporary,
            mounts=mounts_below(str(self.root)),
            confirmed_rules=self._confirmed_rules(),
            progress=self.progress,
            fork=self.store.folder is not None,
        )

    def _confirmed_rules(self) -> str:
        journal = self.store.journal
        as_of = journal.newest("approval", "prune")
        if as_of != self._confirmed[0]:
            found = ""
            for row in journal.rows(kinds=("approval",)):  # those of plans are approvals too
                found = (row.body or {}).get("rules", found)
            self._confirmed = as_of, found
        return self._confirmed[1]

    def scan(
        self,
        tree: OpenFolder,
        index: Index,
        dry: bool = False,
        deadline: float | None = None,
        thorough: bool = False,  # every folder is visited, whatever a watcher tells
        git: bool = True,  # the project's repository too, unless the settings leave it alone
        threads: bool = True,  # those too, unless a take-back is under way, whose own work they may show
    ) -> Look:
        running = self.open_intents()
        limits, rules = self.limits(deadline, running.temporaries if running else ()), self.rules(tree)
        among = None if self.suspects is None else self.suspects.ask(index, rules, limits, thorough)
        blobs = None if dry else self.store.blobs
        try:
            look = Scan(tree, index, rules, blobs, limits).whole(among)
        except DamagedThere:
            look = Scan(tree, index, rules, blobs, limits._replace(fork=False)).whole(among)
        if git and self.settings.git:
            try:
                look.git = self.git.look(tree, dry)
                look.lacking += look.git.lacking
            except Exception as error:  # a repository, or our cache of it, must not make a look at the files fail
                look.lacking.append((b".git", f"it cannot be read ({type(error).__name__}: {error})"))
        if threads and not running and self.has_threads:
            try:
                look.threads = self.thread_state.look(dry)
            except Exception as error:  # nor must a damaged cache of theirs
                look.lacking.append((b"//", f"the threads cannot be read ({type(error).__name__}: {error})"))
        return look

    @property
    def is_called(self) -> bool:
        """Whether a call is at work that may write anywhere."""
        return any(bracket.call.scans for bracket in brackets.at_work(self.store.journal))

    def look_at_threads(self) -> None:
        """Looks at the threads alone and journals what differs: the tree is not touched."""
        if not self.has_threads:
            return
        seen = self.thread_state.look()
        rows = self._rows_of_threads(seen, *self._at_work())
        self.store.blobs.flush()
        if rows:
            self.store.journal.append(rows, self.clock())
        self.thread_state.journaled(seen)

    def _rows_of_threads(self, seen: Seen, at_work: Sequence[Bracket], running: Sequence[Turn]) -> list[New]:
        """What was found of the threads alone."""
        ends = self._ends(at_work, {})
        spans, times = self._spans(at_work, ends), ChangeTimes(None, seen)
        rows: list[New] = []
        for owners, changes, found in self._by_owner(seen.changes, at_work, running, ends, spans, times, seen):
            told = owners.calls[0].call.summary if len(owners.calls) == 1 else ""
            rows += self._row_of(changes, owners, told, _STATE, found)
        return rows

    def rows_of(
        self,
        look: Look,
        actor: str = "",
        takeback: str = "",
        turns: Sequence[Turn] = (),
        summary: str = "",
        over: Mapping[str, End] = _NONE_OVER,
        ending: str = "",
        began: float = 0.0,
        running: Sequence[Turn] = (),
        at_work: Sequence[Bracket] | None = None,  # the brackets that are open, where they have just been read
    ) -> list[New]:
        """What a look found as journal rows: changes that count in one per owner, mere sights and touches in a note.
        They are those of turns that are named, or what an outside act of a take-back did by itself; else of the calls
        and runs at work. An actor vouches for what no call owns. Of calls it is said, by the ids of their brackets,
        which are taken to be over, and which one ends just now, as its agent told, with when it began to work where
        that is known. A summary is told with the number of changes. After a whole look, brackets of calls that are
        over, as anybody can tell, are closed, but for that one. What is found while a person is asked about a call says
        between which moments it was done."""
        if look.first and look.threads is None:
            return []
        vouched = Owners((Turn(actor, self.history().current_turn(actor)),)) if actor and not turns else None
        git = look.git.changes if look.git is not None and not look.first else ()
        seen = look.threads
        moved = seen.changes if seen is not None else ()
        found_files: Sequence[Change] = () if look.first else look.changes
        if turns or takeback:
            also = {"takeback": takeback} if takeback else {}
            owners = Owners(tuple(turns)) if vouched is None else vouched
            rows = []
            for found_there, domain in ((found_files, {}), (git, _GIT)):
                rows += self._row_of(found_there, owners, summary, also | domain)
            if seen is None or takeback:
                return rows + self._row_of(moved, owners, summary, also | _STATE, seen)
            apart = self._by_saver(moved, seen, owners)
            return rows + [row for o, some, of in apart for row in self._row_of(some, o, summary, _STATE, of)]
        found = brackets.open_ones(self.store.journal) if at_work is None else at_work
        if not running and vouched is None:
            running = [Turn(RUN, id) for id in runs_at_work.at_work(self.store.folder)]
        steps = self._steps(found) if vouched is None else _NO_STEPS
        ends, times = self._ends((b for b in found if b.id != ending), over), ChangeTimes(look.tree, seen)
        spans = self._spans(found, ends, {ending: began})
        asking = {b.id for b in found if b.prompted and b.id not in ends and b.id != ending}
        ran = [b for b in found if b.id not in asking or not self.waits(b)]
        rows = self._rows_of_saved(seen) if seen is not None and vouched is not None else []
        by_domain: list[tuple[Sequence[Change], dict[str, Any]]] = [(found_files, {}), (git, _GIT)]
        by_domain += [(moved, _STATE)] if vouched is None else []
        for all_of_it, domain in by_domain:
            beside = steps if all_of_it is not moved else _NO_STEPS  # threads are of whoever saved them
            at_hand = [b for b in ran if not beside.is_around(b)]
            for owners, changes, of in self._by_owner(
                all_of_it, at_hand, (*running, *beside.turns), ends, spans, times, seen
            ):
                if beside.died & set(owners.turns):
                    owners = owners._replace(uncertain=True)
                if vouched is not None and (owners.uncertain or not owners.turns):
                    owners = vouched
                told = owners.calls[0].call.summary if len(owners.calls) == 1 else summary
                between: dict[str, Any] = {}
                if asked := [b for b in owners.calls if b.id in asking and owners.uncertain]:
                    moments = [moment.at if moment else self.clock() for moment in map(times.of, changes)]
                    between["between"] = [
                        max(self.seen_at, min(0.0 if b.unseen else b.at for b in asked)),
                        max(moments),
                    ]
                    between["first"] = min(moments)
                rows += self._row_of(changes, owners, told, {**domain, **between}, of)
        if look.whole:
            steps_at_work.forget(self.store.folder, steps.marks)
        return rows + self._closing(found, ends if look.whole else over, over)

    def _steps(self, found: Sequence[Bracket]) -> _Steps:
        """Steps at work that name whose they are, and others beside them: what is found is shared by all of these. A
        step in which a call is at work leaves it to that; what is found in a step is not of the turn around it."""
        marks = steps_at_work.at_work(self.store.folder)
        scanning = [b for b in found if b.call.scans]
        open_ones = [s for s in steps_at_work.closest(marks) if not any(map(s.has_inside, scanning))]
        if not any(step.actor for step in open_ones):
            return _NO_STEPS._replace(marks=marks)
        current = self.history().current_turn
        turns = {step.id: Turn(step.actor, current(step.actor) if step.actor else step.id) for step in open_ones}
        around = frozenset(id for step in open_ones if step.actor for id in step.around)
        died = frozenset(turns[step.id] for step in open_ones if step.died)
        return _Steps(tuple(sorted(set(turns.values()))), died, around, marks)

    def whose(self, look: Look) -> dict[bytes, Owners]:
        """Whose the changes of files would be that a look found, if it were journaled now; while its tree is open."""
        found, running = self._at_work()
        times, ends = ChangeTimes(look.tree, None), self._ends(found, {})
        spans, steps = self._spans(found, ends), self._steps(found)
        found, running = [b for b in found if not steps.is_around(b)], [*running, *steps.turns]
        apart = self._by_owner(look.changes, found, running, ends, spans, times, None) if found or running else ()
        return {change.path: owners for owners, some, _ in apart for change in some}

    def _at_work(self) -> tuple[list[Bracket], list[Turn]]:
        """The calls and the runs that are open."""
        return brackets.open_ones(self.store.journal), [Turn(RUN, id) for id in runs_at_work.at_work(self.store.folder)]

    def _ends(self, found: Iterable[Bracket], over: Mapping[str, End]) -> dict[str, End]:
        """Calls that are over, by what is said of them or by what anybody can tell."""
        known = ((bracket.id, over.get(bracket.id) or self.end_of(bracket)) for bracket in found)
        return {id: end for id, end in known if end is not None}

    def _spans(
        self,
        found: Iterable[Bracket],
        ends: Mapping[str, End],
        began: Mapping[str, float] = {},
    ) -> dict[str, Span]:
        """When calls were at work that were not so all the time. One ends just now, for which it is said when it
        began."""
        told = ((b, ends.get(b.id), began.get(b.id, 0.0), b.id not in ends and b.id not in began) for b in found)
        known = {b.id: brackets.span_of(b, end, at, self.seen_at, asks) for b, end, at, asks in told}
        return {id: span for id, span in known.items() if span != Span()}

    def _by_owner(
        self,
        changes: Sequence[Change],
        found: Sequence[Bracket],
        running: Sequence[Turn],
        ends: Mapping[str, End],
        spans: Mapping[str, Span],
        times: ChangeTimes,
        seen: Seen | None,
    ) -> Iterable[tuple[Owners, Sequence[Change], Seen | None]]:
        """Changes apart by whose they are. Of threads that nobody is at work on it is who saved them."""
        ran = [bracket for bracket in found if bracket.id not in ends or not ends[bracket.id].refused]
        for owners, some in _by_owner(changes, Ownership(ran, running, spans, times.of)):
            if seen is not None and changes is seen.changes and not owners.turns and not owners.calls:
                yield from self._by_saver(some, seen, owners)
            else:
                yield owners, some, seen

    def _by_saver(
        self, changes: Sequence[Change], seen: Seen, owners: Owners
    ) -> Iterable[tuple[Owners, Sequence[Change], Seen]]:
        """Threads apart by the turn in which each who saved them did so; what nobody is known to have saved is the
        owners'."""
        for some in seen.by_saver(change.path for change in changes):
            apart: dict[Owners, list[Change]] = {}
            for change in some.changes:
                turn = self._turn_of(some.moved[change.path])
                apart.setdefault(Owners((turn,)) if turn is not None else owners, []).append(change)
            yield from ((whose, found, some) for whose, found in apart.items())

    def _turn_of(self, saved: Moved) -> Turn | None:
        """The turn of whoever saved a state: what was saved goes with the checkpoint of its own moment, which ended
        that turn. Of an agent whose turns are told it is the newest, and none where they are turns of threads: what is
        saved between these is nobody's."""
        if saved.turn is not None or not (actor := saved.agent):
            return saved.turn
        history = self.history()
        told = [(turn, asked) for turn, asked in history.agent_turns.items() if turn.actor == actor]
        if told:
            newest = next((turn for turn, asked in reversed(told) if asked.seq < saved.seq), None)
            return newest if newest is not None and not history.thread_of(newest) else None
        ends = [c.seq for c in history.checkpoints if c.actor == actor and (c.seq > saved.seq or c.at == saved.at)]
        if not ends:
            return Turn(actor, history.current_turn(actor))
        own = ((effect.seq, turn) for effect in reversed(history.effects) for turn in effect.turns)
        begun = (turn for seq, turn in own if turn.actor == actor and seq < min(ends))
        return next(begun, Turn(actor, str(saved.seq)))

    def rows_of_threads(self, look: Look) -> list[New]:
        """What was saved in threads since the last look at them, if a turn has ended meanwhile: it is that turn's."""
        if not self.has_threads or not self.thread_state.is_behind:
            return []
        look.threads = self.thread_state.look()
        return self._rows_of_saved(look.threads)

    def _rows_of_saved(self, seen: Seen) -> list[New]:
        """What was found of the threads where somebody vouches for the files: they are whose call named them, else of
        whoever saved them, and never of who happens to look."""
        return self._rows_of_threads(seen, [b for b in brackets.open_ones(self.store.journal) if b.call.paths], ())

    def _row_of(
        self,
        changes: Sequence[Change],
        owners: Owners,
        summary: str,
        also: Mapping[str, Any],
        threads: Seen | None = None,
    ) -> list[New]:
        if not changes:
            return []
        packed = {"list": pack_list(list(changes), self.store.blobs.put)}
        if not any(map(is_work, changes)):
            whose = {"turns": [list(turn) for turn in owners.turns]} if owners.turns else {}
            return [New("note", new_id(), {"what": "sight", **whose, **packed})]
        body: dict[str, Any] = {"turns": [list(turn) for turn in owners.turns], **also}
        if owners.calls:
            body["calls"] = [bracket.id for bracket in owners.calls]
        if owners.uncertain:
            body["uncertain"] = True
        if owners.unsure and len(owners.calls) > 1:
            body["unsure"] = list(owners.unsure)
        if threads is not None and also.get("domain") == "state":  # told always: nobody can count it later
            body["summary"] = " · ".join(filter(None, (summary, threads.told(c.path for c in changes))))
        elif summary:
            body["summary"] = f"{summary} · {_amount(changes, also.get('domain') == 'git')}"
        return [New("change", new_id(), {**body, **packed})]

    def _closing(self, found: Sequence[Bracket], ends: Mapping[str, End], left: Mapping[str, End]) -> list[New]:
        """Brackets of calls that are over: what they did has just been found. Those of calls that go on in the
        background stay open; once their session has left them, what they do outside the files is in doubt."""
        behind = {b.id for b in found if b.id in ends and ends[b.id].awaited}
        oldest = min((b.seq for b in found if b.id not in ends or b.id in behind), default=0)
        rows: list[New] = []
        for bracket in (brackets.unrecorded(self.store.journal, b, found) for b in found if b.id in ends):
            if bracket.id not in behind:
                rows += brackets.cut_rows(bracket, ends[bracket.id], oldest)
            elif bracket.id in left:
                rows += brackets.act_rows(bracket, in_doubt=True)
        return rows

    def look(self, tree: OpenFolder, actor: str = "", takeback: str = "") -> Look:
        """Looks at the whole tree and journals what differs."""
        look = self.scan(tree, self.known())
        self.journal_look(look, self.rows_of(look, actor, takeback))
        let_go(look.changes)  # they are in the journal now, and large trees have many
        return look

    def journal_look(self, look: Look, rows: Sequence[New], at: float | None = None) -> list[int]:
        self.store.blobs.flush()
        seqs = self.store.journal.append(rows, self.clock() if at is None else at) if rows else []
        look.index.seq = seqs[-1] if seqs else look.index.seq
        if look.dirty or look.changes or look.index.seq - self._index.seq > _BEHIND:
            self.save(look.index)
        if look.whole and self.suspects is not None:
            self.suspects.looked(look.index)
        if look.git is not None:
            self.git.journaled(look.git, look.index.seq)
        if look.threads is not None:
            self.thread_state.journaled(look.threads)
        return seqs

    def checkpoint_row(self, look: Look, label: str, named: bool, **also: str) -> New:
        """A checkpoint of what a whole look found; its folder objects are stored."""
        self.store_tree(look.index)
        body: dict[str, Any] = {"label": label, "named": named, "snapshot": pack_snapshot(look.index.snapshot())}
        body |= {name: value for name, value in also.items() if value}
        if look.lacking:
            body["partial"] = [[text(path), why] for path, why in look.lacking]
        return New("checkpoint", new_id(), body)

    def store_tree(self, index: Index) -> None:
        """Stores the folder objects of a snapshot that are not stored yet; below one that is, all are."""
        blobs = self.store.blobs
        waiting = [b""]
        while waiting:
            path = waiting.pop()
            record = index.folders.get(path)
            if record is None or blobs.has(record.stored):
                continue
            data = record.object
            blobs.put(data, record.stored)
            waiting += [folder_objects.join(path, name) for name in folder_objects.subfolders(data)]


class Joined:
    """Changes of many rows, taken up by an index at once: a folder that thousands of rows touched is made anew once.
    Rows that make or remove folders are taken up as they come, as what lies below depends on their order."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._newest: dict[bytes, Change] = {}

    def add(self, changes: list[Change]) -> None:
        if all(map(self._is_alone, changes)):
            self._newest.update((change.path, change) for change in changes)
        else:
            self.settle()
            self._index.apply(changes)

    def settle(self) -> None:
        newest, self._newest = self._newest, {}
        if newest:
            self._index.apply(newest.values())

    def _is_alone(self, change: Change) -> bool:
        """Whether it leads to the same known tree wherever it stands among others: an entry of a known folder that is
        no folder itself, or stays the folder that it is."""
        path, folders = change.path, self._index.folders
        kinds = {state.kind for state in (change.before, change.after) if state is not None}
        if UNSEEN in kinds or (path and folder_objects.parent(path) not in folders):
            return False
        if FOLDER not in kinds:
            return path not in folders
        return change.after is not None and kinds == {FOLDER} and path in folders


def let_go(changes: list[Change]) -> None:
    many = len(changes) >= MANY
    changes.clear()
    if many:
        give_back_memory()


def give_back_memory() -> None:
    """What was freed goes back to the system, between the stages of work on a large tree."""
    linux.trim_memory()


def is_work(change: Change) -> bool:
    """Whether something was done: neither a first sight nor a mere touch."""
    sighted = change.before is not None and change.before.kind == UNSEEN
    return not sighted and not same(change.before, change.after)


def _gone(bracket: Bracket) -> End | None:
    return bracket.told or (End() if bracket.caller.is_gone else None)


def _by_owner(changes: Sequence[Change], ownership: Ownership) -> Iterable[tuple[Owners, Sequence[Change]]]:
    """Changes apart by whose they are."""
    if (everybody := ownership.of_all) is not None:
        return [(everybody, changes)] if changes else []
    apart: dict[tuple[object, ...], tuple[Owners, list[Change]]] = {}
    for change in sorted(changes, key=lambda c: (not is_work(c), c.path)):
        whose = ownership.of(change)
        by = whose.turns, whose.unsure, *(bracket.id for bracket in whose.calls)  # acts of calls have no hash
        apart.setdefault(by, (whose, []))[1].append(change)
    return list(apart.values())


def _amount(changes: Sequence[Change], of_git: bool) -> str:
    """'3 files'; of folders alone, these."""
    if of_git:
        return amount(c.path for c in changes)
    work = [c.after or c.before for c in changes if is_work(c)]
    files = sum(state is not None and state.kind != FOLDER for state in work)
    count, word = (files, "file") if files else (len(work), "folder")
    return f"{count:,} {word}{'s' * (count != 1)}"


def states(index: Index) -> Callable[[bytes], State]:
    """Known states. The last folders asked about stay decoded: who asks goes from neighbour to neighbour."""
    folders: dict[bytes, dict[bytes, Entry]] = {}
    elsewhere: dict[bytes, State] = {}  # what any name is in a folder that is not there

    def state(path: bytes) -> State:
        parent, _, name = path.rpartition(b"/")
        if parent in elsewhere:
            return elsewhere[parent]
        if parent not in folders:
            folder = index.folder(parent)
            if folder is None:
                return elsewhere.setdefault(parent, index.state(path))
            if len(folders) >= _FOLDERS:
                folders.clear()
            folders[parent] = dict(zip(folder.names, folder.entries))
        found = folders[parent].get(name) if path else None
        return found if found is not None else index.state(path)

    return state


def children_of(index: Index) -> Callable[[bytes], list[bytes]]:
    """The paths in a folder as last observed, those not covered among them."""

    def children(path: bytes) -> list[bytes]:
        folder = index.folder(path)
        if folder is None:
            return []
        return [
            folder_objects.join(path, name) for name in dict.fromkeys((*folder.names, *(g.name for g in folder.gaps)))
        ]

    return children


def links_of(index: Index) -> Callable[[bytes], tuple[bytes, ...]]:
    """All names of a file that has several, as a whole look found them."""
    found = {path: paths for paths in index.links.values() if len(paths) > 1 for path in paths}
    return lambda path: found.get(path, ())
