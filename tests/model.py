"""What takeback means, executable: a small in-memory model of docs/design.md.

No bytes, hashes, locks or crashes: only who did what, what is live, what has
drifted, and where each take-back leads. Verbs return a Plan; `apply` carries
it out. A property test drives the real workspace and this one alike.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

Lines = tuple[str, ...]
State = Lines | None  # None is absent

EXACT, MERGED, DRIFTED = "exact", "merged", "drifted"
COMPENSATING, IRREVERSIBLE, UNKNOWN = "compensating", "irreversible", "unknown"
TAKEN = {EXACT, MERGED, COMPENSATING}  # steps with another verdict are kept
DONE: Lines = ("done",)  # the state of an outside act; None before it
PERSONS = {"run", "watch"}  # actors that are no agents: what a person typed, and what was seen of a person's tree


class Conflict(Exception):
    """A merge that is not clean."""


class Stale(Exception):
    """The plan is no longer what the same request would do."""


class Turn(NamedTuple):
    actor: str
    number: int


class Unit(NamedTuple):
    """What is live or taken back: one path of one journal row."""

    seq: int
    path: str


@dataclass(frozen=True)
class Change:
    before: State
    after: State
    took: frozenset[Unit] = frozenset()  # only in the rows of a take-back


@dataclass(frozen=True)
class Effect:
    """A row of changes: what one look found for one owner, one act, or one segment of a take-back."""

    turns: frozenset[Turn]  # none: unattributed; several: shared
    changes: dict[str, Change]
    verdict: str = EXACT  # how well it can be taken back
    by_takeback: bool = False
    uncertain: bool = False  # nobody knows whether the turn did it

    @property
    def has_agent(self) -> bool:
        return any(turn.actor not in PERSONS for turn in self.turns)

    @property
    def is_agents(self) -> bool:
        return bool(self.turns) and all(turn.actor not in PERSONS for turn in self.turns)


@dataclass(frozen=True)
class Checkpoint:
    label: str  # empty: automatic
    tree: dict[str, State]


@dataclass(frozen=True)
class Takeback:
    verb: str
    turns: frozenset[Turn]  # those an undo addressed
    redid: frozenset[int]  # the take-backs a redo addressed
    rows: tuple[int, ...]
    kept: frozenset[Unit]


@dataclass(frozen=True)
class Request:
    """What was asked, every name resolved: turns, take-backs, a row or a path."""

    verb: str
    target: tuple
    actors: frozenset[str] | None = None
    everything: bool = False
    merge: bool = False
    force: bool = False
    also: tuple[str, ...] = ()  # kinds of work that a rollback asks about, and that are to be taken


@dataclass(frozen=True)
class Step:
    path: str
    expected: State
    target: State
    verdict: str
    units: frozenset[Unit]
    segment: int = 0  # file steps join within a segment; an outside act ends it


@dataclass(frozen=True)
class Plan:
    request: Request
    steps: tuple[Step, ...]  # newest first, then those kept
    left: frozenset[Unit] = frozenset()  # named, but others' work
    asks: frozenset[Unit] = frozenset()  # of these, what a person may say goes too

    @property
    def hash(self) -> str:
        """Covers what would be done; of a kept step only that it is kept."""
        seen = [
            (s.path, s.verdict, s.expected, s.target) if s.verdict in TAKEN else (s.path, s.verdict) for s in self.steps
        ]
        return hashlib.sha256(repr((self.request, seen)).encode()).hexdigest()


@dataclass(eq=False)
class Bracket:
    turn: Turn
    paths: frozenset[str] | None  # None: a shell or unknown tool, which scans


def merge_lines(base: State, ours: State, theirs: State) -> State:
    """Three-way merge, line by line; any clean three-way merge will do."""
    if ours == base or ours == theirs:
        return theirs
    if theirs == base:
        return ours
    if base is None or ours is None or theirs is None or not len(base) == len(ours) == len(theirs):
        raise Conflict
    if any(b != o != t != b for b, o, t in zip(base, ours, theirs)):
        raise Conflict
    return tuple(t if o == b else o for b, o, t in zip(base, ours, theirs))


@dataclass
class Workspace:
    world: dict[str, State]
    merge: Callable[[State, State, State], State] = merge_lines
    unobserved: set[str] = field(default_factory=set)  # beyond the first scan: too large, too late, unreadable
    known: dict[str, State] = field(default_factory=dict)
    journal: list[Effect | Checkpoint | Takeback | None] = field(default_factory=list)
    brackets: list[Bracket] = field(default_factory=list)
    acts: list[str] = field(default_factory=list)  # everything ever done outside, in order
    tracked: dict[str, int] = field(default_factory=dict)  # path → the last row before it was last tracked

    def __post_init__(self) -> None:
        self.known = {path: state for path, state in self.world.items() if path not in self.unobserved}
        self.checkpoint("init")

    # -- looking at the world ------------------------------------------------

    def look(self, paths: Iterable[str] | None = None, vouched: Turn | None = None) -> None:
        """Journals what differs from the known tree, one row per owner; a turn vouches for what no call owns."""
        if paths is None:
            paths = {*self.world, *self.known} - self.unobserved
        found: dict[frozenset[Turn], dict[str, Change]] = {}
        for path in sorted(path for path in paths if not path.startswith("act:")):
            before, after = self.known.get(path), self.world.get(path)
            if before != after and path not in self.unobserved:  # first sight is no change
                owner = self.owner(path) or frozenset({vouched} if vouched else ())
                found.setdefault(owner, {})[path] = Change(before, after)
            self.known[path] = after
            self.unobserved.discard(path)
        for turns, changes in found.items():
            self.journal.append(Effect(turns, changes))

    def owner(self, path: str) -> frozenset[Turn]:
        """The turns that named the path, else those with a scanning call open, else nobody."""
        naming = frozenset(b.turn for b in self.brackets if b.paths and path in b.paths)
        return naming or frozenset(b.turn for b in self.brackets if b.paths is None)

    def open(self, turn: Turn, paths: Iterable[str] | None = None) -> Bracket:
        bracket = Bracket(turn, None if paths is None else frozenset(paths))
        self.look(bracket.paths)  # what came before is not this call's
        self.brackets.append(bracket)
        return bracket

    def close(self, bracket: Bracket) -> None:
        self.look(bracket.paths)
        self.brackets.remove(bracket)

    def record(self, turn: Turn, verdict: str) -> int:
        """An act outside the files: a target of its own, that nobody else changes."""
        self.look()
        seq = len(self.journal)
        self.journal.append(Effect(frozenset({turn}), {f"act:{seq}": Change(None, DONE)}, verdict))
        self.known[f"act:{seq}"] = DONE
        self.acts.append(f"do act:{seq}")
        return seq

    def track(self, paths: Iterable[str], turn: Turn) -> None:
        self.look(paths, turn)
        self.tracked.update(dict.fromkeys(paths, len(self.journal) - 1))

    def checkpoint(self, label: str = "", vouched: Turn | None = None) -> int:
        self.look(vouched=vouched)
        self.journal.append(Checkpoint(label, {p: s for p, s in self.known.items() if s is not None}))
        return len(self.journal) - 1

    def moment(self) -> None:
        """What is seen of a tree that a person follows: a turn, until an agent acts."""
        named = max((i for i, e in enumerate(self.journal) if isinstance(e, Checkpoint) and e.label), default=0)
        acted = any(isinstance(e, Effect) and e.has_agent for e in self.journal[named:])
        self.look(vouched=None if acted else Turn("watch", len(self.journal)))

    def prune(self, keep: int) -> None:
        """Everything before the oldest checkpoint that stays is forgotten; the numbers of rows never move."""
        found = [i for i, e in enumerate(self.journal) if isinstance(e, Checkpoint)]
        for seq in range(found[-keep] if keep <= len(found) else found[0]):
            self.journal[seq] = None

    # -- what is live --------------------------------------------------------

    def rows(self, since: int = 0) -> list[tuple[int, Effect]]:
        return [(seq, row) for seq, row in enumerate(self.journal) if seq >= since and isinstance(row, Effect)]

    def live(self) -> set[Unit]:
        """A unit is live unless a live unit of a take-back took it."""
        live, dead = set(), set()
        for seq, row in reversed(self.rows()):
            for path, change in row.changes.items():
                if Unit(seq, path) not in dead:
                    live.add(Unit(seq, path))
                    dead |= change.took
        return live

    def standing(self) -> dict[int, Takeback]:
        """Take-backs, newest first, still in force: no standing redo addressed them, and not all they did was taken back."""
        live, redone, standing = self.live(), set(), {}
        for seq, entry in reversed(list(enumerate(self.journal))):
            if isinstance(entry, Takeback) and seq not in redone:
                units = self.units(entry.rows)
                if not units or units & live:
                    standing[seq] = entry
                    redone |= entry.redid
        return standing

    def passed(self) -> set[tuple[Turn, Unit]]:
        """What standing undos addressed and had to keep."""
        return {(turn, unit) for t in self.standing().values() for turn in t.turns for unit in t.kept}

    def units(self, rows: Iterable[int]) -> set[Unit]:
        return {Unit(seq, path) for seq in rows if self.journal[seq] for path in self.journal[seq].changes}

    def turns(self, seq: int) -> frozenset[Turn]:
        """Whose row it is. A stretch by hand is a turn only where no agent acted between the named checkpoints around it."""
        row = self.journal[seq]
        if row.turns or row.by_takeback:
            return row.turns
        named = [i for i, e in enumerate(self.journal) if isinstance(e, Checkpoint) and e.label] + [len(self.journal)]
        start, end = max((i for i in named if i < seq), default=0), min(i for i in named if i > seq)
        if any(isinstance(e, Effect) and e.has_agent for e in self.journal[start:end]):
            return frozenset()
        ends = (i for i, e in enumerate(self.journal[:seq]) if isinstance(e, Checkpoint) or self.is_moment(e))
        return frozenset({Turn("hand", max(ends))})

    def is_moment(self, entry: object) -> bool:
        return isinstance(entry, Effect) and any(turn.actor == "watch" for turn in entry.turns)

    def actors(self, unit: Unit) -> frozenset[str]:
        """Who changed it; for a take-back, those whose work it took. "" is nobody known."""
        row = self.journal[unit.seq]
        if row.by_takeback:
            return frozenset().union(*(self.actors(u) for u in row.changes[unit.path].took if self.journal[u.seq]))
        return frozenset(turn.actor for turn in row.turns) or frozenset({""})

    def layers(self, path: str, since: int) -> list[Unit]:
        """The path's changes that still show, oldest first.

        A live take-back that put the path exactly back cancels with what it
        took, so neither shows; one that merged shows, as a change of its own:
            a1 a2 undo(a2)            shows  a1
            a1 b1 undo(a1) by merge   shows  a1 b1 undo   (a1 is not live)
        """
        shown, live = [], self.live()
        for seq, row in self.rows(since):
            if path not in row.changes:
                continue
            change, below = row.changes[path], len(shown)
            while below and shown[below - 1] in change.took:
                below -= 1
            cancels = (
                Unit(seq, path) in live
                and below < len(shown)
                and not change.took & set(shown[:below])
                and min(change.took).seq >= since
                and self.change(shown[below]).before == change.after
            )
            shown[below if cancels else len(shown) :] = [] if cancels else [Unit(seq, path)]
        return shown

    def change(self, unit: Unit) -> Change:
        return self.journal[unit.seq].changes[unit.path]

    def shown(self, since: int) -> set[Unit]:
        paths = {path for _, row in self.rows(since) for path in row.changes}
        return {unit for path in paths for unit in self.layers(path, since)}

    # -- the verbs: each resolves its names and returns a plan ---------------

    def undo(self, n: int = 1, actors: Iterable[str] | None = None, **options: bool) -> Plan:
        """The newest n turns with a live unit that no standing undo of that turn has kept."""
        self.look()
        only = None if actors is None else frozenset(actors)
        kept = self.passed()
        newest: dict[Turn, int] = {}
        for unit in sorted(self.live()):
            for turn in self.turns(unit.seq):
                if (turn, unit) not in kept and (only is None or turn.actor in only):
                    newest[turn] = unit.seq
        return self.plan(Request("undo", tuple(sorted(newest, key=lambda t: (-newest[t], t))[:n]), only, **options))

    def redo(self, n: int = 1, **options: bool) -> Plan:
        """The newest n take-backs standing, not counting those that took nothing."""
        self.look()
        target, taking = [], 0
        for seq, entry in self.standing().items():
            if entry.verb != "redo" and taking < n:
                target.append(seq)
                taking += bool(entry.rows)
        return self.plan(Request("redo", tuple(target) if taking else (), **options))

    def rollback(self, to: int | None = None, actors: Iterable[str] | None = None, **options: bool) -> Plan:
        """To a checkpoint (the newest named one), or to just before an effect."""
        if to is None:
            to = max(i for i, e in enumerate(self.journal) if isinstance(e, Checkpoint) and e.label)
        return self.plan(Request("rollback", (to,), None if actors is None else frozenset(actors), **options))

    def revert(self, what: int | str, **options: bool) -> Plan:
        """One effect, or what agents did to one path of late; of a take-back, the redo of just that one."""
        if isinstance(what, str):
            return self.plan(Request("revert", (what,), **options))
        entry = self.journal[what]
        if getattr(entry, "by_takeback", False) or getattr(entry, "verb", "") == "redo":
            raise ValueError("a redo is taken back by undo, or by reverting the effects")
        return self.plan(Request("redo" if isinstance(entry, Takeback) else "revert", (what,), **options))

    # -- planning ------------------------------------------------------------

    def select(self, request: Request) -> tuple[set[Unit], set[Unit]]:
        """The units to take back, and those in range that are left because they are others' work."""
        live = self.live()
        if request.verb == "undo":
            touched = {u for u in live if self.turns(u.seq) & set(request.target)}
            if request.everything and touched:
                return self.shown(min(touched).seq), set()
            # With what earlier undos kept: it may be free by now. Shared work goes with the last who share it.
            kept = {(t, u) for t, u in self.passed() if not request.actors or t.actor in request.actors}
            asked = lambda turn, unit: turn in request.target or (turn, unit) in kept
            ours = {u for u in live if self.turns(u.seq) and all(asked(turn, u) for turn in self.turns(u.seq))}
            return (ours & touched if request.force else ours, touched - ours) if request.target else (set(), set())
        if request.verb == "redo":
            return {u for seq in request.target for u in self.units(self.journal[seq].rows)} & live, set()
        (target,) = request.target
        if request.verb == "revert":
            return self.select_revert(target, live)
        shown = self.shown(target)
        if request.everything or not (self.has_agent_since(target) or request.actors):
            return shown, set()
        # Work since the target; and take-backs since of work before it, with all they took.
        across = {u for u in shown & live if any(taken.seq < target for taken in self.change(u).took)}
        since = across.union(*(self.change(u).took & shown for u in across))
        since |= {u for u in shown & live if not self.journal[u.seq].by_takeback}
        if request.actors:
            ours = {u for u in since if self.actors(u) <= request.actors}
        else:
            ours = {u for u in since if not (kind := self.asked_about(u)) or kind in request.also}
            if since <= ours:  # the world of the target, and nothing less
                return {u for u in shown if u.path in {each.path for each in since}}, set()
        return ours, (since - ours) & live

    def has_agent_since(self, target: int) -> bool:
        return any(row.has_agent for _, row in self.rows(target))  # live or not

    def asked_about(self, unit: Unit) -> str:
        """The kind of work that a rollback takes only if a person says so; empty for what it takes by itself."""
        row = self.journal[unit.seq]
        if row.uncertain:
            return "uncertain"
        return "" if row.by_takeback or row.is_agents else "people"

    def without_uncertain(self, ours: set[Unit], left: set[Unit], request: Request) -> tuple[set[Unit], set[Unit]]:
        """Whether a turn did it nobody knows: it stays unless a person says so, and is asked about once."""
        named = request.verb == "revert" and isinstance(request.target[0], int)
        if request.everything or request.verb == "redo" or named:
            return ours, left
        uncertain = {u for u in ours if self.journal[u.seq].uncertain}
        asked = {u for u in uncertain if request.verb != "undo" or self.turns(u.seq) & set(request.target)}
        ours = ours - (uncertain - asked)
        return (ours, left) if "uncertain" in request.also else (ours - asked, left | asked)

    def select_revert(self, what: int | str, live: set[Unit]) -> tuple[set[Unit], set[Unit]]:
        if isinstance(what, int):
            return self.units([what]) & live, set()
        newest = max([*(i for i, e in enumerate(self.journal) if isinstance(e, Checkpoint)), self.tracked.get(what, 0)])
        layers = self.layers(what, 0)
        if not any(row.has_agent for _, row in self.rows() if what in row.changes):
            return set(self.layers(what, newest)) or set(layers[-1:]), set()
        shown = [u for u in layers if u in live and not self.journal[u.seq].by_takeback]
        mine = [u for u in shown if self.journal[u.seq].is_agents]
        ours = [u for u in mine if u.seq > newest] or mine[-1:]
        lowest = min((u.seq for u in ours), default=newest)
        return set(ours), {u for u in shown if u.seq > lowest and u not in ours}

    def plan(self, request: Request) -> Plan:
        self.look()
        ours, left = self.without_uncertain(*self.select(request), request)
        by_path = {path: {u for u in ours if u.path == path} for path in {u.path for u in ours}}
        if request.force:  # everything above ours goes too, and is listed as taken
            by_path = {path: self.forced(path, units) for path, units in by_path.items()}
        acts = sorted(u.seq for u in ours if u.path.startswith("act:") and self.act_verdict(u) in TAKEN)
        steps = [step for path, units in by_path.items() for step in self.path_steps(path, units, request, acts)]
        if (
            request.verb == "undo" and not request.everything
        ):  # what earlier ones kept, and is still not free, is theirs
            asked = lambda s: any(self.turns(u.seq) & set(request.target) for u in s.units)
            steps = [s for s in steps if s.verdict in TAKEN or asked(s)]
        if request.verb == "rollback":  # of what is as it was then there is nothing to say
            moved = {s.path for s in steps if s.verdict in TAKEN and s.expected != s.target}
            says = lambda path: path in moved or path.startswith("act:") or not self.is_as_at(path, request.target[0])
            steps = [s for s in steps if s.verdict != DRIFTED or says(s.path)]
            left = {u for u in left if says(u.path)}
        steps.sort(key=lambda s: (s.verdict not in TAKEN, -s.segment, not s.path.startswith("act:"), s.path))
        asked = {"uncertain", "people"} if request.verb == "rollback" and not request.actors else {"uncertain"}
        asks = frozenset(u for u in left if self.asked_about(u) in asked)
        return Plan(request, tuple(steps), frozenset(left), asks)

    def is_as_at(self, path: str, target: int) -> bool:
        changes = (row.changes[path] for _, row in self.rows(target) if path in row.changes)
        return next((change.before for change in changes), self.known[path]) == self.known[path]

    def forced(self, path: str, ours: set[Unit]) -> set[Unit]:
        """Ours and all above, but no take-back without what it took: that would be live again."""
        live, found = self.live(), set(self.layers(path, min(ours).seq))
        others = {u for u in (found - ours) & live if self.journal[u.seq].by_takeback}
        reviving = {u for u in others if not self.change(u).took <= found}
        if not reviving:
            return found
        taken = frozenset().union(*(self.change(u).took for u in reviving))
        deeper = set(self.layers(path, min(taken).seq))
        return deeper if taken <= deeper and not (deeper - found) & live else found - reviving

    def brought_back(self, unit: Unit) -> frozenset[Unit]:
        """The work itself; of a take-back, the live work that it made live again."""
        if not self.journal[unit.seq].by_takeback:
            return frozenset({unit})
        undone = (self.change(u).took for u in self.change(unit).took if self.journal[u.seq].by_takeback)
        again = frozenset().union(*undone) & self.live()
        return frozenset().union(*(self.brought_back(u) for u in again))

    def path_steps(self, path: str, ours: set[Unit], request: Request, acts: list[int]) -> list[Step]:
        """Walks the path's layers newest first: exact while all are ours, then by merge, else kept."""
        state, above, kept, steps, live = self.known[path], [], set(), {}, self.live()
        layers = reversed(self.layers(path, min(ours).seq))
        for (mine, segment), group in groupby(layers, key=lambda u: (u in ours, bisect_left(acts, u.seq))):
            run = list(group)  # newest first
            if not mine:
                above += run
                continue
            # Only live work of others asks for consent, and what take-backs brought back; our own merges do not.
            foreign = bool(frozenset().union(*(self.brought_back(u) for u in above if u in live)) - ours)
            before, after = self.change(run[-1]).before, self.change(run[0]).after
            is_back = bool(above) and state == before  # others have undone it already
            try:
                if foreign and not request.merge and not is_back:
                    raise Conflict
                target = self.merge(after, state, before) if above and not is_back else before
            except Conflict:
                kept |= set(run)
                above += run
                continue
            verdict = (
                MERGED if above and not is_back else EXACT if not path.startswith("act:") else self.act_verdict(run[0])
            )
            first = steps.get(segment)
            expected, units = (first.expected, first.units | set(run)) if first else (state, frozenset(run))
            steps[segment] = Step(path, expected, target, verdict, units, segment)
            state = target
        if kept:
            steps[-1] = Step(path, state, state, DRIFTED, frozenset(kept))
        return list(steps.values())

    def act_verdict(self, unit: Unit) -> str:
        """An act's own verdict; what was only compensated cannot be done again by redo."""
        row = self.journal[unit.seq]
        return IRREVERSIBLE if row.by_takeback and row.verdict == COMPENSATING else row.verdict

    # -- applying ------------------------------------------------------------

    def apply(self, plan: Plan) -> Plan:
        if self.plan(plan.request).hash != plan.hash:
            raise Stale
        rows = []
        taken = [s for s in plan.steps if s.verdict in TAKEN]
        moves_on = self.moves_on(plan.request)
        if not moves_on and all(s in taken and s.expected == s.target for s in plan.steps):
            return plan  # all is as it should be already
        for (_, outside), group in groupby(taken, key=lambda s: (s.segment, s.path.startswith("act:"))):
            steps = list(group)
            for step in steps:
                self.known[step.path] = step.target
                if outside:
                    self.acts.append(f"{'do' if step.target else 'undo'} {step.path}")
                else:
                    self.world[step.path] = step.target
            changes = {s.path: Change(s.expected, s.target, s.units) for s in steps}
            rows.append(len(self.journal))
            self.journal.append(Effect(frozenset(), changes, steps[0].verdict, by_takeback=True))
        kept = plan.left.union(*(s.units for s in plan.steps if s.verdict not in TAKEN))
        request = plan.request
        if rows or moves_on:
            turns = frozenset(request.target if request.verb == "undo" else ())
            redid = frozenset(request.target if request.verb == "redo" else ())
            self.journal.append(Takeback(request.verb, turns, redid, tuple(rows), kept))
        return plan

    def moves_on(self, request: Request) -> bool:
        """Undo and redo do, even when all was kept; a take-back that stands no more is redone already."""
        if request.verb == "redo":
            return not self.standing().keys().isdisjoint(request.target)
        return request.verb == "undo" and bool(request.target)

    def tree(self) -> dict[str, Lines]:
        return {path: state for path, state in self.world.items() if state is not None}
