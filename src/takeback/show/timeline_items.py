"""One head of the journal, grouped for the timeline: every row of the log in what set it in motion.

TurnItem        what somebody set in motion: an agent's turn, a stretch by hand, a run, a take-back, a checkpoint
  CallItem      one call of an agent in it
    EffectItem  one entry of the log that was found
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.journal import names
from takeback.journal.brackets import AgentTurn, Bracket
from takeback.journal.history import History
from takeback.model.effects import (
    DRIFTED,
    FOLDER,
    IRREVERSIBLE,
    RUN,
    STATES,
    UNCERTAIN,
    UNCOVERED,
    UNKNOWN,
    WATCH,
    Change,
    Effect,
    Takeback,
    Turn,
    Unit,
)

from . import turns, views
from .views import LogRow

if TYPE_CHECKING:
    from takeback.workspace import Workspace

AGENT, HAND, TAKEBACK, CHECKPOINT = "agent", "hand", "takeback", "checkpoint"  # with RUN and WATCH: kinds of a turn
CALL, EFFECT = "call", "effect"  # kinds of what is in one
WHOLE, PART, NONE = "whole", "part", "none"  # how much of an item still stands
_WORST_FIRST = (
    UNKNOWN,
    "sending",
    "failed",
    IRREVERSIBLE,
    UNCOVERED,
    UNCERTAIN,
    DRIFTED,
    "held",
    "compensating",
    "merged",
    "exact",
)
_MOST_JUDGED = 5_000  # paths of one item: of more, only its plan tells how well each goes back
_ORDER = {badge: at for at, badge in enumerate(_WORST_FIRST)}


class Mark(NamedTuple):
    """A checkpoint, where it stands in the timeline."""

    id: str
    number: int
    label: str
    named: bool
    pinned: bool
    at: float


class TurnItem(NamedTuple):
    """One line of the timeline."""

    id: str
    kind: str  # agent, hand, run, watch, takeback, checkpoint
    title: str  # the prompt, the command, the label, what a take-back did; may be empty
    agent: str  # who, if somebody is known
    at: float  # when it began
    until: float  # when the newest part of it was found
    totals: Mapping[str, int]  # domain → paths that changed there, or effects outside the files
    lines: tuple[int, int] | None  # added and removed in files; None where they were not counted
    badges: Mapping[str, int]  # how well it can be taken back, or what became of it: word → paths, effects outside
    stands: str  # whole, part or none of it
    undone_by: tuple[str, ...]  # ids of the take-backs in force that took some of it
    took: tuple[str, ...]  # of a take-back: ids of the items it took from
    marks: tuple[Mark, ...]  # checkpoints taken in it; of a checkpoint, itself
    calls: int
    effects: int
    is_open: bool  # a call of it is under way
    revert: tuple[str, ...]  # plan("revert", *these) takes back exactly this; empty where nothing can be
    rollback: str  # plan("rollback", this) goes back to just before it; to a checkpoint itself
    number: int = 0  # of a checkpoint
    shared: int = 0  # paths that other turns had a part in


class CallItem(NamedTuple):
    """One call of an agent."""

    id: str
    kind: str  # call
    title: str
    agent: str
    lane: str  # the subagent; empty for the agent itself
    tool: str
    at: float
    state: str  # open, done, failed, refused, cut off
    totals: Mapping[str, int]
    badges: Mapping[str, int]
    stands: str
    undone_by: tuple[str, ...]
    effects: tuple[str, ...]  # ids, oldest first
    revert: tuple[str, ...]
    rollback: str
    shared: int = 0  # paths that other turns had a part in


class EffectItem(NamedTuple):
    """One effect of the log."""

    id: str
    kind: str  # effect
    title: str
    agent: str
    at: float
    domain: str
    badge: str  # how well it can be taken back; of one outside the files that is in another state, that
    stands: str
    undone_by: tuple[str, ...]
    paths: tuple[str, ...]  # or the target of what was done outside the files
    shared: bool  # by several turns
    revert: tuple[str, ...]
    rollback: str
    row: LogRow  # as `log` has it


Item = TurnItem | CallItem | EffectItem


class Group:
    """The rows of one turn."""

    def __init__(self, kind: str, id: str, asked: AgentTurn | None = None, agent: str = "") -> None:
        self.kind = kind
        self.id = id
        self.asked = asked
        self.agent = agent
        self.rows: list[LogRow] = []  # newest first, once all are there
        self.effects: list[Effect] = []  # oldest first
        self.brackets: list[Bracket] = []  # oldest first
        self.last = asked.seq if asked else 0  # its newest row
        self.item: TurnItem | None = None

    @property
    def matched(self) -> list[LogRow]:
        """What a filter looks at: its rows, or, where it did nothing, what was asked."""
        if self.rows or self.asked is None:
            return self.rows
        told = self.asked
        row = LogRow(told.id, "turn", 0, "", told.at, told.caller.agent, told.prompt, True, (), state="live")
        return [row._replace(turns=(told.id,), sessions=(told.caller.session,))]


class Board:
    """All rows of the log, grouped into turns: made once for each head of the journal."""

    def __init__(self, ws: Workspace, history: History) -> None:
        self.history = history
        self._planner = ws.planner()
        rows = views.log(ws, history=history)  # others may have gone on since
        self.rows = {row.id: row for row in rows}
        self.acts = {act.id: act for act in history.ledger()} if history.acts else {}
        self.effects = {e.id: e for e in history.all_effects if not e.takeback and e.id in self.rows}  # oldest first
        self._failed = {e.id for e in history.did_not_happen}
        self.by = _taken_by(history)  # row → take-backs in force that took some of it
        self.of_call: dict[str, list[str]] = {}
        for effect in self.effects.values():
            for call in effect.calls:
                self.of_call.setdefault(call, []).append(effect.id)
        self.parents: dict[str, str] = {}  # call, effect or checkpoint → its turn
        self.by_id: dict[str, Group] = {}
        self._group(rows)
        for group in self.by_id.values():
            group.rows.reverse()
            self.parents.update((row.id, group.id) for row in group.rows if row.id != group.id)
            self.parents.update((bracket.id, group.id) for bracket in group.brackets)
        self.groups = sorted(self.by_id.values(), key=lambda group: -group.last)
        self._sending = [act for act in self.acts.values() if act.is_being_sent]

    @property
    def is_stale(self) -> bool:
        """Whether a mail was being sent when this was made, and whoever sent it is gone without a word."""
        return not all(act.is_being_sent for act in self._sending)

    def _group(self, rows: Sequence[LogRow]) -> None:
        history = self.history
        keyed: dict[Any, Group] = {}
        for turn, asked in history.agent_turns.items():
            keyed[turn] = self.by_id[asked.id] = Group(AGENT, asked.id, asked, asked.caller.agent)
        checkpoints = {each.id: each for each in history.checkpoints}
        runs = {Turn(RUN, turn.number) for e in self.effects.values() for turn in e.turns if turn.actor == RUN}
        newest_run: Any = None
        nobodys: Group | None = None  # what nobody known did, and nothing came between
        for row in reversed(rows):
            if row.kind == "effect" and len(row.turns) > 1:
                self._share(row)
                nobodys = None
                continue
            key: Any = None
            kind, agent, seq = row.kind, row.actor, 0
            if row.kind == "checkpoint":
                taken = checkpoints[row.id]
                seq = taken.seq
                key = Turn(taken.agent, taken.turn) if row.turns else None
                if Turn(RUN, row.id) in runs:
                    key = newest_run = Turn(RUN, row.id)
                elif taken.actor == RUN and not taken.named and newest_run is not None:
                    key = newest_run
                kind, agent = (RUN, RUN) if key is newest_run and key is not None else (CHECKPOINT, row.actor)
            elif row.kind == "takeback":
                seq = history.takebacks[row.id].seq
            else:
                effect = self.effects[row.id]
                seq = effect.seq
                kind, agent, key = self._whose(effect)
            group = keyed.get(key) if key is not None else None
            if key is None and row.kind == "effect":
                group = nobodys
            if group is None:
                id = row.id if row.kind != "effect" and key is None else f"{kind}-{row.id}"
                group = self.by_id[id] = Group(kind, id, agent=agent)
                if key is not None:
                    keyed[key] = group
            group.rows.append(row)
            group.last = max(group.last, seq)
            if row.kind == "effect":
                group.effects.append(self.effects[row.id])
            nobodys = group if key is None and row.kind == "effect" else None
        for bracket in history.brackets.values():
            if (group := keyed.get(bracket.turn)) is None:
                group = keyed[bracket.turn] = Group(AGENT, f"{AGENT}-{bracket.id}", agent=bracket.caller.agent)
                self.by_id[group.id] = group
            group.brackets.append(bracket)
            group.last = max(group.last, bracket.closed or bracket.seq)

    def _share(self, row: LogRow) -> None:
        """What several agents' turns did at once is part of each."""
        effect = self.effects[row.id]
        for id in row.turns:
            group = self.by_id[id]
            group.rows.append(row)
            group.effects.append(effect)
            group.last = max(group.last, effect.seq)

    def _whose(self, effect: Effect) -> tuple[str, str, Any]:
        """Kind, who, and what groups an effect with others; no key where nobody is known."""
        known = [turn for turn in effect.turns if turn in self.history.agent_turns]
        whose = frozenset(known) or self.history.turns_of_effect(effect)
        if len(whose) > 1:
            return AGENT, ", ".join(sorted({turn.actor for turn in whose})), whose
        for turn in whose:
            kind = HAND if not turn.actor else turn.actor if turn.actor in (RUN, WATCH) else AGENT
            return kind, turn.actor, turn
        return HAND, "", None

    # -- items ---------------------------------------------------------------

    def turn(self, group: Group) -> TurnItem:
        if group.item is None:
            group.item = self._turn(group)
        return group.item

    def _turn(self, group: Group) -> TurnItem:
        rows = group.rows
        marks = tuple(mark_of(row) for row in reversed(rows) if row.kind == "checkpoint")
        oldest = group.effects[0].id if group.effects else group.id
        first, last = (rows[-1].at, rows[0].at) if rows else (0.0, 0.0)
        if group.asked is not None:
            first, last = group.asked.at, max(group.asked.at, last)
        elif group.brackets and not rows:
            first = last = group.brackets[0].at
        stands, undone_by = self._standing(group.effects)
        took: tuple[str, ...] = ()
        revert = tuple(effect.id for effect in self._happened(group.effects))
        if group.asked is not None:
            oldest, revert = group.id, (group.id,) if revert else ()
        if group.kind == TAKEBACK:
            takeback = self.history.takebacks[group.id]
            stands, took = WHOLE if rows[0].live else NONE, tuple(self._took(takeback))
            stands = PART if rows[0].redone == views.IN_PART else stands
            undone_by = () if stands == WHOLE else tuple(self._redone_by(takeback))
            revert = (group.id,) if takeback.verb != "redo" and rows[0].live and took else ()
        badges = self._badges(group.effects, group.asked.turn if group.asked is not None else None)
        return TurnItem(
            group.id, group.kind, self._title(group), group.agent, first, last, self._totals(group.effects), None,
            badges, stands, undone_by, took, marks, len(group.brackets), len(group.effects),
            any(bracket.is_open for bracket in group.brackets), revert,
            oldest, rows[0].number if group.kind == CHECKPOINT else 0,
            len(turns.shared_paths(self.history, group.effects)),
        )  # fmt: skip

    def _title(self, group: Group) -> str:
        if group.asked is not None:
            return group.asked.prompt
        rows = [row for row in group.rows if row.kind == "effect"]
        if group.kind == CHECKPOINT:
            return group.rows[0].label
        if group.kind == TAKEBACK:
            return " · ".join(filter(None, (group.rows[0].summary, self._taken_from(group.id))))
        if group.kind == RUN and rows:
            return rows[0].summary.removeprefix("run: ").partition(" · ")[0]
        if len(rows) == 1:
            return rows[0].summary
        paths = list(dict.fromkeys(path for row in reversed(rows) for path in row.paths))
        return ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")

    def _taken_from(self, takeback: str) -> str:
        """The turn whose work alone a take-back took that was not asked for turns."""
        found = self.history.takebacks[takeback]
        if turns.meant(self.history, found.request):
            return ""
        took = [self.by_id.get(id) for id in self._took(found, already=True)]
        asked = [each.asked.turn for each in took if each is not None and each.asked is not None]
        return turns.called(self.history, asked) if len(asked) == len(took) == 1 else ""

    def call(self, id: str) -> CallItem:
        bracket = self.history.brackets[id]
        effects = [self.effects[each] for each in self.of_call.get(id, ())]
        stands, undone_by = self._standing(effects)
        seen = turns.state_of(bracket)
        return CallItem(
            id, CALL, bracket.call.summary, bracket.caller.agent, bracket.caller.lane, bracket.call.tool, bracket.at,
            seen, self._totals(effects), self._badges(effects, bracket.turn), stands, undone_by,
            tuple(effect.id for effect in effects), (id,) if self._happened(effects) else (), id,
            len(turns.shared_paths(self.history, effects)),
        )  # fmt: skip

    def effect(self, id: str) -> EffectItem:
        row, effect = self.rows[id], self.effects[id]
        stands, undone_by = self._standing([effect])
        return EffectItem(
            id, EFFECT, row.summary, row.actor, row.at, row.domain, self._badge(effect), stands, undone_by, row.paths,
            len(row.turns) > 1, () if id in self._failed else (id,), id, row,
        )  # fmt: skip

    def children(self, group: Group, matching: set[str]) -> list[CallItem | EffectItem]:
        """Calls, and what was found outside of any, newest first."""
        found: list[tuple[float, int, CallItem | EffectItem]] = []
        mine = {bracket.id for bracket in group.brackets}
        for at, bracket in enumerate(group.brackets):
            if not matching or matching.intersection(self.of_call.get(bracket.id, ())):
                found.append((bracket.at, at, self.call(bracket.id)))
        for at, effect in enumerate(group.effects):
            if not mine.intersection(effect.calls) and (not matching or effect.id in matching):
                found.append((effect.at, at, self.effect(effect.id)))
        return [item for *_, item in sorted(found, key=lambda each: each[:2], reverse=True)]

    def effects_of(self, item: Item) -> Sequence[Effect]:
        """What was found in it, oldest first; of a take-back, what it did."""
        if item.id in self.effects:
            return [self.effects[item.id]]
        if item.id in self.history.brackets:
            return [self.effects[id] for id in self.of_call.get(item.id, ())]
        if item.id in self.history.takebacks:
            return [self.history.by_seq[seq] for seq in self.history.takebacks[item.id].rows]
        return self.by_id[item.id].effects

    def named(self, item: Item) -> names.Named | None:
        """As `show` calls it; None for a turn that has no row of its own."""
        if item.kind in (CALL, EFFECT):
            return names.Named(item.id, item.kind, 0, "")
        kind = {AGENT: "turn", TAKEBACK: "takeback", CHECKPOINT: "checkpoint"}.get(item.kind)
        return names.Named(item.id, kind, 0, "") if kind and "-" not in item.id else None

    # -- what is told of effects ---------------------------------------------

    def _happened(self, effects: Iterable[Effect]) -> list[Effect]:
        """Those of which something can stand: what failed is shown, and has nothing to take back."""
        return [effect for effect in effects if effect.id not in self._failed]

    def _standing(self, effects: Iterable[Effect]) -> tuple[str, tuple[str, ...]]:
        """How much of them stands, and the take-backs that took the rest."""
        live = dead = 0
        by: dict[str, None] = {}
        for effect in self._happened(effects):
            gone = sum((effect.seq, path) not in self.history.live for path in effect.changes)
            live, dead = live + len(effect.changes) - gone, dead + gone
            by.update(dict.fromkeys(self.by.get(effect.seq, ()) if gone else ()))
        return (WHOLE if not dead else PART if live else NONE), tuple(by)

    def _totals(self, effects: Sequence[Effect]) -> dict[str, int]:
        """Of files those that are others than before, as the log counts them."""
        paths: dict[str, set[bytes]] = {}
        if changed := {d.path: d for d in turns.net(effects)}:
            files = {path for path, d in changed.items() if not is_folder(Change(*d))}
            paths["files"] = files or set(changed)
        for effect in effects:
            mine = [path for path, change in effect.changes.items() if not is_folder(change)]
            if effect.domain != "files":
                paths.setdefault(effect.domain, set()).update(mine or effect.changes)
        return {domain: len(found) for domain, found in sorted(paths.items(), key=_states_first)}

    def _badges(self, effects: Iterable[Effect], turn: Turn | None = None) -> dict[str, int]:
        """What the plan that takes them back, as part of a turn, would say of each path; of what is taken back already,
        how well it was."""
        found: dict[str, int] = {}
        inside: list[Effect] = []
        for effect in effects:
            if (act := self.acts.get(effect.id)) is None:
                inside.append(effect)
                continue
            badge = act.verdict if act.shown_state in ("live", "undone") else act.shown_state
            found[badge] = found.get(badge, 0) + 1
        for badge in self._verdicts(inside, turn):
            found[badge] = found.get(badge, 0) + 1
        return dict(sorted(found.items(), key=lambda each: _ORDER.get(each[0], 9)))

    def _verdicts(self, effects: Sequence[Effect], turn: Turn | None) -> list[str]:
        """What may be somebody else's has no other verdict: the plan keeps it, and asks. What it leaves since others
        had a part in it has none, and is called shared."""
        found = [UNCERTAIN] * len(turns.uncertain_paths(self.history, effects))
        sure = [effect for effect in effects if not turns.is_uncertain(effect)]
        if sum(len(effect.changes) for effect in sure) > _MOST_JUDGED:
            return found
        units = {Unit(effect.seq, path) for effect in sure for path in effect.changes}
        live = [unit for unit in units if unit in self.history.live]
        shared = self._planner.shared(live, (turn,)) if turn is not None else set()
        found += [step.verdict for step in self._planner.judged(units - shared)]
        if shared:
            return found
        return found or [UNCERTAIN if turns.is_uncertain(effect) else effect.verdict for effect in effects]

    def _badge(self, effect: Effect) -> str:
        """The worst of what is in it."""
        return next(iter(self._badges([effect])), effect.verdict)

    def _took(self, takeback: Takeback, already: bool = False) -> Iterable[str]:
        """The items that a take-back took from; of a redo, those that it brought back. If so asked, also those of
        which all was as it should be already."""
        found: dict[str, None] = {}
        for seq in takeback.rows:
            for change in self.history.by_seq[seq].changes.values():
                for taken in change.took if change.does or already else ():
                    effect = self.history.by_seq.get(taken)
                    if effect is not None:
                        shared = self.rows[effect.id].turns if effect.id in self.rows else ()
                        of = shared if len(shared) > 1 else (self.parents.get(effect.id, effect.id),)
                        found.update(dict.fromkeys((effect.takeback,) if effect.takeback else of))
        return found

    def _redone_by(self, takeback: Takeback) -> Iterable[str]:
        return dict.fromkeys(id for seq in takeback.rows for id in self.by.get(seq, ()))


def _taken_by(history: History) -> dict[int, list[str]]:
    by: dict[int, dict[str, None]] = {}
    for effect in history.effects:
        if effect.takeback:
            for path, change in effect.changes.items():
                if (effect.seq, path) in history.live:
                    for seq in change.took:
                        by.setdefault(seq, {})[effect.takeback] = None
    return {seq: list(found) for seq, found in by.items()}


def mark_of(row: LogRow) -> Mark:
    return Mark(row.id, row.number, row.label, row.named, row.pinned, row.at)


def is_folder(change: Change) -> bool:
    state = change.after or change.before
    return state is not None and state.kind == FOLDER


def _states_first(found: tuple[str, set[bytes]]) -> tuple[bool, str]:
    return found[0] not in STATES, found[0]
