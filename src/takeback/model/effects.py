"""The nouns of takeback as frozen values: what was done, what would be done about it, and by whom.

    look ──► Change (path, before, after) ──► Effect (a journal row, with its turns)
                                                  │
    Request (every name resolved) ──► Plan of Steps ──► Takeback, whose rows are Effects again

Nothing here reads the world, the clock or the environment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

# -- paths -------------------------------------------------------------------


def text(path: bytes) -> str:
    """A path for JSON and messages: bytes that are no UTF-8 survive as surrogate escapes."""
    return path.decode("utf-8", "surrogateescape")


def raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


# -- states ------------------------------------------------------------------

FILE, FOLDER, LINK, UNSEEN = 1, 2, 3, 9
KIND_NAMES = {FILE: "file", FOLDER: "folder", LINK: "symlink", UNSEEN: "unobserved"}


class Entry(NamedTuple):
    """What a path is. The first six fields are its identity; the times (and owner) never count as a change."""

    kind: int
    mode: int  # permission bits
    size: int
    content: bytes  # sha256 of a file's bytes or a link's target; empty for folders
    xattrs: bytes  # sha256 of the extended attributes; empty when there are none
    group: bytes  # hard links: the path of the group's first member; empty for a file of one name
    mtime_ns: int
    uid: int
    gid: int


# An entry of its nine values, without a look at how many they are: change lists and folders have very many.
entry_of: Callable[[tuple[Any, ...]], Entry] = partial(tuple.__new__, Entry)

STATES = frozenset({"files", "git", "state"})  # domains whose paths have states that come back; others act outside
_THREAD = b"//"  # before a thread's name: no file has such a path


def domain_of(path: bytes) -> str:
    """Which of those a path is in: no file below .git is ever captured, so that they never clash."""
    if path.startswith(_THREAD):
        return "state"
    return "git" if path.startswith(b".git/") else "files"


def path_of_thread(thread: str) -> bytes:
    return _THREAD + raw(thread)


def thread_of(path: bytes) -> str:
    """The thread that a path of the domain `state` stands for."""
    return text(path.removeprefix(_THREAD))


def short_id(id: str) -> str:
    """The id of a state checkpoint as people read it: ours by its first letters, others' whole."""
    return id[:8] if len(id) == 32 and "-" not in id else id


def state_of_thread(document: bytes) -> State:
    """A thread whose state is told by this document; without one it is not there."""
    return Entry(FILE, 0, len(document), sha256(document).digest(), b"", b"", 0, 0, 0) if document else None


UNOBSERVED = Entry(UNSEEN, 0, 0, b"", b"", b"", 0, 0, 0)
State = Entry | None  # None: observed to be absent


def same(a: State, b: State) -> bool:
    """Equal in identity, whatever the times say."""
    if a is None or b is None:
        return a is b
    return a[:6] == b[:6]


def is_within(path: bytes, named: Iterable[bytes]) -> bool:
    """Whether it is one of these paths, or lies below one; b"" is the root, with all in it."""
    return any(not each or path == each or path.startswith(each + b"/") for each in named)


class Change(NamedTuple):
    path: bytes
    before: State
    after: State
    took: tuple[int, ...] = ()  # rows whose change of this path a take-back took

    @property
    def does(self) -> bool:
        """Whether anything is different after it. A take-back goes over what was already so, too."""
        return not same(self.before, self.after)


# -- who ---------------------------------------------------------------------

RUN, WATCH = "run", "watch"  # a command that a person ran, a tree that a person follows: both are that person's
PERSONS = frozenset({"", RUN, WATCH})  # actors that are no agents; nobody known is a person, too
PEOPLE = "people"  # work of persons: a kind that a rollback asks about before it takes it
UNCERTAIN = "uncertain"  # work that may be an agent's or somebody else's: every take-back asks about it


class Turn(NamedTuple):
    """What undo steps over. An empty actor is a stretch by hand."""

    actor: str
    number: str


class Unit(NamedTuple):
    """What is live or taken back: one path of one journal row."""

    seq: int
    path: bytes


# -- journal entries, folded -------------------------------------------------


class Effect(NamedTuple):
    """One row of changes: what one look found for one owner, one act, or one segment of a take-back."""

    seq: int
    id: str
    at: float
    turns: frozenset[Turn]  # none: unattributed; several: shared
    changes: Mapping[bytes, Change]
    takeback: str = ""  # the take-back this row is part of
    domain: str = "files"
    verdict: str = "exact"  # how well it can be taken back
    summary: str = ""
    calls: tuple[str, ...] = ()  # brackets it was found in
    uncertain: bool = False  # its call was over at some moment that nobody knows: it may be somebody else's
    between: tuple[float, float] = (0.0, 0.0)  # when it was done, where it was found while a person was asked
    unsure: tuple[str, ...] = ()  # of its calls, those for which it is uncertain
    first: float = 0.0  # when the first of it was last changed, where it was found while a person was asked

    @property
    def actors(self) -> frozenset[str]:
        return frozenset(turn.actor for turn in self.turns)

    @property
    def has_agent(self) -> bool:
        """Whether an agent had a part in it."""
        return any(turn.actor not in PERSONS for turn in self.turns)

    @property
    def is_agents(self) -> bool:
        """Whether agents did it, and no person."""
        return bool(self.turns) and all(turn.actor not in PERSONS for turn in self.turns)


class Checkpoint(NamedTuple):
    """A place in the journal with the file tree of that moment."""

    seq: int
    id: str
    at: float
    label: str
    named: bool
    snapshot: Snapshot
    partial: tuple[tuple[str, str], ...] = ()  # (path, why) of what should be covered and is not
    actor: str = ""
    number: int = 0
    pinned: bool = False
    too_large: tuple[tuple[str, str], ...] = ()  # (path, why): named as not captured, which is no lack
    over_budget: str = ""  # why the store does not fit its budget, where it was measured
    agent: str = ""  # whose turn or call it was taken for
    turn: str = ""  # the id of that turn


class Snapshot(NamedTuple):
    identity: bytes  # of the tree without times: equal means no change
    stored: bytes  # the folder object of the root
    root: Entry
    files: int = 0


class Track(NamedTuple):
    """A point of these paths alone: what they were then is told by what changed them since."""

    seq: int
    id: str
    at: float
    paths: tuple[bytes, ...]

    def has(self, path: bytes) -> bool:
        return is_within(path, self.paths)


class Takeback(NamedTuple):
    """One undo, redo, rollback, revert or restore: what it took is in its rows, what it kept is here."""

    seq: int
    id: str
    at: float
    verb: str
    request: Request
    rows: tuple[int, ...]
    kept: frozenset[Unit]
    interrupted: bool = False
    label: str = ""
    failed: bool = False  # some of it did not come about, and may be tried again
    missed: tuple[Result, ...] = ()  # what it was to do, and did not: kept, failed or in doubt, and why
    by: Mapping[str, str] = {}  # which agent asked for it: actor, and turn and call where they are known


class Abandoned(NamedTuple):
    """A take-back that was interrupted, and gone back from: what of it had begun is as it was before."""

    takeback: Takeback
    at: float  # when it was gone back from
    paths: tuple[bytes, ...]  # that were begun; outside the files the ids of acts
    left: tuple[tuple[bytes, str], ...]  # those among them that were not put back, each with why


# -- plans -------------------------------------------------------------------

EXACT, MERGED, DRIFTED, UNCOVERED = "exact", "merged", "drifted", "uncovered"
COMPENSATING, HELD, IRREVERSIBLE, UNKNOWN = "compensating", "held", "irreversible", "unknown"
REFUSED = "refused"  # by policy
VERDICTS = (EXACT, COMPENSATING, HELD, IRREVERSIBLE, UNKNOWN)  # of an effect outside the files that policy decides on
ACT_VERDICTS = (*VERDICTS, UNCOVERED)  # that one may have
TAKEN = frozenset({EXACT, MERGED, COMPENSATING, HELD})  # steps with another verdict are kept


class Request(NamedTuple):
    """What was asked, every name resolved, so that it means the same when it is planned again."""

    verb: str
    turns: tuple[Turn, ...] = ()  # undo; revert of whole turns; of a thread, with files: whose work goes with it
    takebacks: tuple[str, ...] = ()  # redo
    since: int = 0  # rollback: rows after this one
    label: str = ""  # what the target is called, for people
    rows: tuple[str, ...] = ()  # revert: effect ids
    paths: tuple[bytes, ...] = ()  # revert PATH, restore
    checkpoint: str = ""  # restore; of a thread, its state checkpoint
    actors: tuple[str, ...] | None = None
    everything: bool = False
    merge: bool = False
    markers: bool = False
    force: bool = False
    only: tuple[str, ...] = ()  # domains; none: all of them
    without: tuple[str, ...] = ()  # domains
    leave: tuple[str, ...] = ()  # ids of effects that stay
    state: bool = False  # undo, rollback: threads too, which they leave alone unless asked
    threads: tuple[str, ...] = ()  # of the threads only these, none: all of them; undo: back to before those turns
    also: tuple[str, ...] = ()  # kinds of work that are asked about, and to be taken: a person said so
    own: bool = False  # of a thread, with files: what was done in its own turns, and nothing else
    bound: bool = False  # threads go back only where all else that is taken back did
    calls: tuple[str, ...] = ()  # revert: ids of the calls that were named
    by_agent: bool = False  # an agent asks: what is not known to be an agent's work is people's

    def to_json(self) -> dict[str, Any]:
        """Only what was asked: defaults are left out, so that old plans read the same in newer programs."""
        out: dict[str, Any] = {"verb": self.verb}
        if self.turns:
            out["turns"] = [list(t) for t in self.turns]
        if self.takebacks:
            out["takebacks"] = list(self.takebacks)
        if self.rows:
            out["rows"] = list(self.rows)
        if self.paths:
            out["paths"] = [text(p) for p in self.paths]
        if self.actors is not None:
            out["actors"] = list(self.actors)
        if self.only:
            out["only"] = list(self.only)
        if self.without:
            out["without"] = list(self.without)
        if self.leave:
            out["leave"] = list(self.leave)
        if self.threads:
            out["threads"] = list(self.threads)
        if self.also:
            out["also"] = list(self.also)
        if self.calls:
            out["calls"] = list(self.calls)
        plain = ("since", "label", "checkpoint", "everything", "merge", "markers", "force", "state", "own", "bound")
        for name in (*plain, "by_agent"):
            if getattr(self, name):
                out[name] = getattr(self, name)
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Request:
        known = dict(data)
        known["turns"] = tuple(Turn(*t) for t in data.get("turns", ()))
        known["takebacks"] = tuple(data.get("takebacks", ()))
        known["rows"] = tuple(data.get("rows", ()))
        known["paths"] = tuple(raw(p) for p in data.get("paths", ()))
        known["actors"] = None if data.get("actors") is None else tuple(data["actors"])
        known["only"] = tuple(data.get("only", ()))
        known["without"] = tuple(data.get("without", ()))
        known["leave"] = tuple(data.get("leave", ()))
        known["threads"] = tuple(data.get("threads", ()))
        known["also"] = tuple(data.get("also", ()))
        known["calls"] = tuple(data.get("calls", ()))
        return cls(**known)


class Step(NamedTuple):
    """One path brought from the state the plan expects to the state it aims at; or kept, and why."""

    domain: str
    path: bytes
    expected: State
    goal: State
    verdict: str
    units: tuple[Unit, ...]
    segment: int = 0  # file steps join within a segment; an outside act ends it
    note: str = ""  # why it is kept, or what else happens
    merges: bool = False  # drifted, and --merge would take it back cleanly

    @property
    def taken(self) -> bool:
        return self.verdict in TAKEN

    @property
    def is_so(self) -> bool:
        """Whether there is nothing to do: all is as it should be already."""
        return self.taken and same(self.expected, self.goal)

    def kept(self, verdict: str, why: str) -> Step:
        """The same path left as it is, with the verdict and the reason that the plan shows."""
        return self._replace(goal=self.expected, verdict=verdict, segment=-1, note=why)

    def reversed(self) -> Step:
        return Step(self.domain, self.path, self.goal, self.expected, self.verdict, self.units)


class Ahead(NamedTuple):
    """A thread that a take-back leaves where it is."""

    thread: str
    ahead: int  # state checkpoints since the target
    command: str  # what takes it back too


class Distance(NamedTuple):
    """What a take-back of files or of threads alone leaves behind of the other."""

    state: tuple[Ahead, ...] = ()
    files: int = 0  # that changed since the target, as far as is known
    command: str = ""  # what takes them back too
    outside: int = 0  # effects outside the files that stand since then
    names: tuple[str, ...] = ()  # the first of both


_NO_TIMES: Mapping[bytes, Entry] = {}
_NO_UNITS: Mapping[str, frozenset[Unit]] = {}
_NO_MARKS: Mapping[str, str] = {}


class Plan(NamedTuple):
    """The ordered steps that lead back, newest first, then those kept. Its hash is what a person approves."""

    workspace: str
    request: Request
    steps: tuple[Step, ...]
    left: frozenset[Unit] = frozenset()  # in range, but others' work
    id: str = ""
    folder_times: Mapping[bytes, Entry] = _NO_TIMES
    own: frozenset[bytes] = frozenset()  # left too, as they are an agent's own: taken back only by name
    distance: Distance = Distance()
    asks: Mapping[str, frozenset[Unit]] = _NO_UNITS  # of what is left, by kind: a person may say that it goes too
    new: tuple[bytes, ...] = ()  # restore: what is in the named folders now and was not then, its top; it stays
    marks: Mapping[str, str] = _NO_MARKS  # of the values of variables that its outside steps use (marks.py)
    forced: frozenset[Unit] = frozenset()  # others' work that goes by force, above what was asked for

    @property
    def taken(self) -> list[Step]:
        return [s for s in self.steps if s.taken]

    @property
    def kept(self) -> list[Step]:
        return [s for s in self.steps if not s.taken]

    @property
    def outside(self) -> list[Step]:
        """The steps that would act on the world beyond the files and their repository."""
        return [s for s in self.steps if s.taken and s.domain not in STATES]

    @property
    def others_work(self) -> frozenset[Unit]:
        """What it leaves because others did it, or had a part in it; what it asks about stands apart."""
        asked = frozenset().union(*self.asks.values())
        return frozenset(unit for unit in self.left - asked if unit.path not in self.own)

    @property
    def idle(self) -> bool:
        """Whether all is as it should be already. An undo or redo still moves past work that others undid."""
        return self.request.verb not in ("undo", "redo") and all(s.is_so for s in self.steps)

    @property
    def hash(self) -> str:
        """Covers what would be done; of a kept step only that it is kept, of one that changes nothing not even that. No
        times, ids or journal head."""
        seen = hashlib.sha256(f"{self.workspace}\0{json.dumps(self.request.to_json(), sort_keys=True)}".encode())
        for step in self.steps:
            domain, path, expected, goal, verdict = step[:5]
            states = b""
            if verdict in TAKEN:
                was, aim = expected and expected[:6], goal and goal[:6]
                if was == aim:
                    continue
                states = repr((was, aim)).encode()
            seen.update(b"\0%b\0%b\0%b\0%b" % (domain.encode(), path, verdict.encode(), states))
        return seen.hexdigest()


# -- results -----------------------------------------------------------------

DONE, KEPT, FAILED = "done", "kept", "failed"


class Result(NamedTuple):
    """What came of one step: done, kept or failed (and why); of an outside step perhaps nobody knows."""

    path: bytes
    verdict: str
    result: str
    note: str = ""


class Outcome(NamedTuple):
    """What came of a plan. `id` names the take-back, empty when there was nothing to take back."""

    plan: Plan
    id: str
    results: tuple[Result, ...]
    left: tuple[bytes, ...] = ()  # others' work in range, kept; of a restore, what was not there then, and stays
    finished_earlier: bool = False  # an interrupted take-back was finished instead of starting this one

    @property
    def counts(self) -> dict[str, int]:
        out = {DONE: 0, KEPT: 0, FAILED: 0}
        for r in self.results:
            out[r.result] = out.get(r.result, 0) + 1
        return out

    @property
    def whole(self) -> bool:
        """Whether every step was done, and nothing was left that may be of those whose work it was about. What was
        written beyond the workspace is named, and was never to be done."""
        beyond = {s.path for s in self.plan.steps if s.verdict == UNCOVERED and s.domain not in STATES}
        return UNCERTAIN not in self.plan.asks and all(r.result == DONE or r.path in beyond for r in self.results)

    @property
    def already(self) -> set[bytes]:
        """What was gone over and not touched, since it was already as it should be."""
        touched = {s.path for s in self.plan.steps if s.taken and not s.is_so}
        return {s.path for s in self.plan.steps if s.is_so} - touched

    @property
    def is_refused(self) -> bool:
        """Whether there were steps, and none of them was done."""
        return bool(self.results) and not self.whole and all(r.result != DONE for r in self.results)

    @property
    def is_there(self) -> bool:
        """Of a rollback: whether all that it was asked for is as it was at the target, and nothing was left out."""
        narrowed = self.plan.request.only or self.plan.request.without or self.plan.request.leave
        return self.whole and not self.left and not narrowed


# -- the seam for parts of the world -----------------------------------------


class Domain(Protocol):
    """Knows one part of the world. Files are one; an outside act is a step of its own."""

    name: str
    joins: bool  # whether neighbouring steps go as one segment

    def present(self, path: bytes) -> State:
        """What is there now."""

    def apply(
        self, steps: Sequence[Step], key: str, times: Mapping[bytes, Entry], again: bool = False
    ) -> Iterable[Result]:
        """Brings each step from expected to goal, verified. `again` is a second run with the same key: a goal
        that is already there is done, a state that is neither is kept."""

    def sweep(self, steps: Sequence[Step], key: str) -> None:
        """Removes what an interrupted `apply` left behind: with this key, or with this key and "-a", where the steps
        were applied in reverse."""
