"""The timeline: what happened, as values to be shown to a person. The terminal, the web page and the report share it.

    TurnItem        what somebody set in motion: an agent's turn, a stretch by hand, a run, a take-back, a checkpoint
      CallItem      one call of an agent in it
        EffectItem  one entry of the log that was found

Every item has an id: `children` and `detail` take it, and so do the verbs, as its words `revert` and `rollback` say.
Nothing here writes to the journal, prints, or words an age; each surface escapes what it shows (control characters,
HTML). The journal is folded once for each head; what is asked of one item reads that item alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from . import filters, masking, names, redact, turns, views
from .acts import Act
from .brackets import AgentTurn, Bracket
from .capture.runs import ACTOR as RUN
from .effects import FOLDER, IRREVERSIBLE, STATES, UNKNOWN, WATCH, Change, Effect, Plan, Takeback, Turn
from .errors import NotFound, TakebackError
from .executor import steps_of
from .history import History
from .trees import Difference
from .turns import CallSeen
from .typed import TYPE_CHECKING, Any, NamedTuple
from .views import LogRow, Shown

if TYPE_CHECKING:
    from .states import StateDifference
    from .workspace import Workspace

AGENT, HAND, TAKEBACK, CHECKPOINT = "agent", "hand", "takeback", "checkpoint"  # with RUN and WATCH: kinds of a turn
CALL, EFFECT = "call", "effect"  # kinds of what is in one
WHOLE, PART, NONE = "whole", "part", "none"  # how much of an item still stands

_COUNTED = 50  # turns of one answer whose lines are counted
_COMPARED = 300  # paths of one item that are compared line by line


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
    badges: Mapping[str, int]  # how well it can be taken back, or what became of it: word → effects
    stands: str  # whole, part or none of it
    undone_by: tuple[str, ...]  # ids of the take-backs in force that took some of it
    took: tuple[str, ...]  # of a take-back: ids of the items it took from
    marks: tuple[Mark, ...]  # checkpoints taken in it; of a checkpoint, itself
    calls: int
    effects: int
    is_open: bool  # a call of it is under way
    revert: tuple[str, ...]  # plan("revert", *these) takes back exactly this; empty where nothing can be
    rollback: str  # plan("rollback", this) goes back to just before it; to a checkpoint itself
    number: int = 0  # in the log, of a take-back or checkpoint


class CallItem(NamedTuple):
    """One call of an agent."""

    id: str
    kind: str  # call
    title: str
    agent: str
    lane: str  # the subagent; empty for the agent itself
    tool: str
    at: float
    state: str  # open, done, failed, cut off
    totals: Mapping[str, int]
    badges: Mapping[str, int]
    stands: str
    undone_by: tuple[str, ...]
    effects: tuple[str, ...]  # ids, oldest first
    revert: tuple[str, ...]
    rollback: str


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


class Moved(NamedTuple):
    """A thread of state that an item moved: from which state checkpoint to which, and what differs."""

    thread: str
    before: str
    after: str
    differences: tuple[StateDifference, ...]


class Detail(NamedTuple):
    """One item in full. What was recorded is free of secrets; what files hold is masked unless their owner looks."""

    item: Item
    shown: Shown  # as `show` has it: diffs per file, who and when, turn and calls, what took it and what it took
    masked: tuple[str, ...]  # paths of which something is held back
    exchange: tuple[tuple[str, str], ...]  # (name, text): the request and response, the command, the mail
    moved: tuple[Moved, ...]
    act: Act | None  # what was done outside the files


class Now(NamedTuple):
    """What a person should know before looking at anything."""

    head: int  # the newest row: pass it to `changed_since`
    at: float
    at_work: tuple[CallSeen, ...]  # calls that nobody has said are over
    held: int  # mails that wait
    unknown: int  # effects of which nobody knows what became
    interrupted: str  # a sentence, if a take-back was
    checkpoint: Mark | None  # the newest named one
    effects: int
    damaged: str = ""  # a sentence, if rows of the journal were altered or lost


class Timeline:
    """Looks at one workspace, from any thread; an answer is as of the journal's head when it was asked."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self._board: _Board | None = None
        self._lines: dict[str, tuple[int, tuple[int, int] | None]] = {}  # turn → effects it had, and its lines

    def changed_since(self, head: int) -> bool:
        """Whether anybody has journaled anything since; cheap enough to ask every second."""
        return self.head() != head

    def head(self) -> int:
        with self.ws.alone():
            return self.ws.store.journal.head().seq

    def now(self) -> Now:
        with self.ws.alone():
            board = self._folded()
            history = board.history
            states = [act.shown_state for act in board.acts.values()]
            newest = history.newest_named()
            return Now(
                history.head, self.ws.clock(), tuple(turns.at_work(history)), states.count("held"),
                states.count("unknown"), self.ws.interrupted(),
                None if newest is None else _mark(board.rows[newest.id]), len(board.effects), self._damage(history),
            )  # fmt: skip

    def unfinished(self, abort: bool = False) -> Plan | None:
        """What an interrupted take-back has still to do, or, to go back from it, what it has begun; None if there is
        none. Of an act outside the files going back only asks what came of it."""
        with self.ws.alone():
            found = self._folded().history.interrupted if self.ws.interrupted() else None
            if found is None:
                return None
            takeback, segments = found
            left = [each for each in segments if not each.ended and (each.intent or not abort)]
            steps = [step for each in left for step in steps_of(each)[0]]
            turned = [step.reversed() if abort and step.domain in STATES else step for step in steps]
            return Plan(self.ws.id, takeback.request, tuple(turned))

    def turns(
        self, filter: str = "", limit: int | None = None, before: str = "", counted: int = _COUNTED
    ) -> list[TurnItem]:
        """Newest first: those of which some row matches the filter of `log`, after the item `before`. Of the first
        `counted` ones the lines are counted. A filter that makes no sense is a UsageError."""
        wanted = filters.parse(filter)
        with self.ws.alone():
            board, now = self._folded(), self.ws.clock()
            found: list[_Group] = []
            skipping = bool(before)
            for group in board.groups:
                if skipping:
                    skipping = group.id != before
                    continue
                if not wanted.terms or any(wanted.matches(row, now) for row in group.matched):
                    found.append(group)
                    if limit is not None and len(found) == limit:
                        break
            return [self._item(board, group, at < counted) for at, group in enumerate(found)]

    def item(self, id: str) -> Item:
        """Any item by its id, as `turns` or `children` had it; NotFound if it is gone."""
        with self.ws.alone():
            board = self._folded()
            if (group := board.by_id.get(id)) is not None:
                return self._item(board, group, lines=True)
            if id in board.history.brackets:
                return board.call(id)
            if id in board.effects:
                return board.effect(id)
            raise NotFound(f"{id[:12]} is not in the timeline any more", "look at it again: takeback log")

    def children(self, id: str, filter: str = "") -> list[CallItem | EffectItem]:
        """What is in a turn or call, newest first; of a filter's matches only those, unless none of them matches."""
        wanted = filters.parse(filter)
        with self.ws.alone():
            board, now = self._folded(), self.ws.clock()
            if id in board.history.brackets:
                effects = [board.rows[each] for each in reversed(board.of_call.get(id, ())) if each in board.rows]
                matching = {row.id for row in effects if wanted.matches(row, now)} or {row.id for row in effects}
                return [board.effect(row.id) for row in effects if row.id in matching]
            group = board.by_id.get(id)
            if group is None:
                return []
            rows = [row for row in group.rows if row.kind == "effect"]
            matching = {row.id for row in rows if wanted.matches(row, now)} if wanted.terms else set()
            return board.children(group, matching)

    def parent(self, id: str) -> str:
        """The id of the turn that a call, effect or checkpoint is listed in; empty if it is in none."""
        with self.ws.alone():
            return self._folded().parents.get(id, "")

    def effects(self, filter: str = "") -> list[EffectItem]:
        """Every effect that matches, newest first: for searches and for pictures of activity over time."""
        wanted = filters.parse(filter)
        with self.ws.alone():
            board, now = self._folded(), self.ws.clock()
            rows = reversed(board.effects)
            return [board.effect(id) for id in rows if wanted.matches(board.rows[id], now)]

    def checkpoints(self) -> list[Mark]:
        """Newest first."""
        with self.ws.alone():
            board = self._folded()
            return [_mark(board.rows[each.id]) for each in reversed(board.history.checkpoints) if each.id in board.rows]

    def checkpoint_at(self, id: str) -> Mark | None:
        """A checkpoint itself; of another item the newest one from before it began, or that it began with."""
        with self.ws.alone():
            board = self._folded()
            item, history = self.item(id), board.history
            if isinstance(item, TurnItem) and item.marks:
                return item.marks[0]
            if isinstance(item, TurnItem):
                group = board.by_id[id]
                seqs = [*(e.seq for e in group.effects), *(b.seq for b in group.brackets)]
                seq = history.takebacks[id].seq if id in history.takebacks else min(seqs, default=group.last)
            else:
                seq = history.brackets[id].seq if id in history.brackets else board.effects[id].seq
            older = (each for each in reversed(history.checkpoints) if each.seq < seq and each.id in board.rows)
            return next((_mark(board.rows[each.id]) for each in older), None)

    def tree(self, checkpoint: str) -> list[tuple[str, str, int, int]]:
        """(path, kind, mode, size) of all that a checkpoint holds."""
        with self.ws.alone():
            return list(views.tree_of(self.ws, checkpoint))

    def detail(self, id: str, masked: bool = True, most: int = _COMPARED) -> Detail:
        """An item in full; `masked` holds back what secret files hold, and secrets in others and in threads. Of its
        paths the first `most` are compared, and `shown.more` says how many there are besides."""
        with self.ws.alone():
            board = self._folded()
            item = self.item(id)
            named = board.named(item)
            shown = views.show_named(self.ws, named, board.rows, most) if named else self._grouped(board, item, most)
            files, held = shown.files, []
            if masked:
                files = tuple(masking.mask_file(file) for file in shown.files)
                held = [was.path for was, file in zip(shown.files, files) if was != file]
            act = shown.act
            return Detail(
                item, shown._replace(files=files), tuple(held), tuple(self._exchange(act, masked)) if act else (),
                tuple(self._moved(board, item, masked)), act,
            )  # fmt: skip

    # -- inside --------------------------------------------------------------

    def _folded(self) -> _Board:
        history = self.ws.history()
        if self._board is None or self._board.history is not history:
            self._board = _Board(self.ws, history)
        return self._board

    def _damage(self, history: History) -> str:
        """What was found when the journal was read, which takes no second reading."""
        if (cut := self.ws.store.journal.cut()) is not None:
            return f"the journal's tail is cut: rows {cut[0]} to {cut[1]} are lost"
        if not history.damaged:
            return ""
        more = f" ({len(history.damaged) - 1} more are, too)" if len(history.damaged) > 1 else ""
        return f"journal row {min(history.damaged)} was altered or lost{more}: take-backs across it are refused"

    def _item(self, board: _Board, group: _Group, lines: bool) -> TurnItem:
        item = board.turn(group)
        if "files" not in item.totals:
            return item
        known = self._lines.get(item.id)
        if known is None or known[0] != item.effects:
            if not lines:
                return item
            added, removed = turns.lines_of(turns.net(group.effects), self.ws.store.blobs.get)
            known = item.effects, None if added is None or removed is None else (added, removed)
            self._lines[item.id] = known
        return item._replace(lines=known[1])

    def _grouped(self, board: _Board, item: Item, most: int) -> Shown:
        """A turn that has no row of its own, such as a stretch by hand, as `show` has those of agents."""
        group = board.by_id[item.id]
        rows = tuple(row for row in reversed(group.rows) if row.kind == "effect")
        live = item.stands != NONE
        paths = tuple(sorted({path for row in rows for path in row.paths}))
        state = "live" if live else "undone"
        row = LogRow(item.id, "turn", 0, "", item.at, item.agent, item.title, live, paths, state=state)
        found = turns.net(group.effects, "files", "git")
        diffs = tuple(views.file_diffs(found[:most], self.ws.store.blobs.get, self.ws.store.blobs.get))
        return Shown(row, diffs, undone_by=item.undone_by, effects=rows, more=len(found) - len(found[:most]))

    def _moved(self, board: _Board, item: Item, masked: bool) -> Iterable[Moved]:
        """What it did to threads of state; of a turn or call, each effect of it by itself."""
        changes = [c for e in board.effects_of(item) if e.domain == "state" for c in e.changes.values()]
        ends = views.moved_threads(self.ws, [Difference(c.path, c.before, c.after) for c in changes])
        for change, (thread, before, after) in zip(changes, ends):
            is_known = (change.before is None or before) and (change.after is None or after)  # else it was pruned
            found = self._differences(thread, before, after) if is_known else ()
            yield Moved(thread, before, after, tuple(map(masking.mask_difference, found) if masked else found))

    def _differences(self, thread: str, before: str, after: str) -> Sequence[StateDifference]:
        """Between two state checkpoints; without one of them, all that the other holds."""
        from . import plain
        from .states import StateDifference

        threads = self.ws.threads
        try:
            if before and after:
                return threads.diff(thread, before, after)
            was, now = (threads.load(threads.get(thread, id)) if id else {} for id in (before, after))
        except TakebackError:  # pruned since
            return ()
        return [StateDifference(*found) for found in plain.differences(was, now)]

    def _exchange(self, act: Act, masked: bool) -> Iterable[tuple[str, str]]:
        """What was sent and answered, or run; recorded without secrets. The text of a mail is kept as it is."""
        for name, value in act.did.items():
            if value not in (None, "", {}, []) and name not in ("blobs", "left_to_do"):
                yield name, _written(value)
        if act.domain == "email" and act.did.get("blobs"):
            try:
                said = self.ws.read_email(act)
                yield "text", redact.text(said) if masked else said
            except TakebackError as error:
                yield "text", error.message


# -- one head of the journal, grouped ----------------------------------------


class _Group:
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


class _Board:
    """All rows of the log, grouped into turns: made once for each head of the journal."""

    def __init__(self, ws: Workspace, history: History) -> None:
        self.history = history
        rows = views.log(ws)
        self.rows = {row.id: row for row in rows}
        self.acts = {act.id: act for act in history.ledger()} if history.acts else {}
        self.effects = {e.id: e for e in history.effects if not e.takeback and e.id in self.rows}  # oldest first
        self.by = _taken_by(history)  # row → take-backs in force that took some of it
        self.of_call: dict[str, list[str]] = {}
        for effect in self.effects.values():
            for call in effect.calls:
                self.of_call.setdefault(call, []).append(effect.id)
        self.parents: dict[str, str] = {}  # call, effect or checkpoint → its turn
        self.by_id: dict[str, _Group] = {}
        self._group(rows)
        for group in self.by_id.values():
            group.rows.reverse()
            self.parents.update((row.id, group.id) for row in group.rows if row.id != group.id)
            self.parents.update((bracket.id, group.id) for bracket in group.brackets)
        self.groups = sorted(self.by_id.values(), key=lambda group: -group.last)

    def _group(self, rows: Sequence[LogRow]) -> None:
        history = self.history
        keyed: dict[Any, _Group] = {}
        for turn, asked in history.agent_turns.items():
            keyed[turn] = self.by_id[asked.id] = _Group(AGENT, asked.id, asked, asked.caller.agent)
        checkpoints = {each.id: each for each in history.checkpoints}
        runs = {Turn(RUN, turn.number) for e in self.effects.values() for turn in e.turns if turn.actor == RUN}
        newest_run: Any = None
        nobodys: _Group | None = None  # what nobody known did, and nothing came between
        for row in reversed(rows):
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
                group = self.by_id[id] = _Group(kind, id, agent=agent)
                if key is not None:
                    keyed[key] = group
            group.rows.append(row)
            group.last = max(group.last, seq)
            if row.kind == "effect":
                group.effects.append(self.effects[row.id])
            nobodys = group if key is None and row.kind == "effect" else None
        for bracket in history.brackets.values():
            if (group := keyed.get(bracket.turn)) is None:
                group = keyed[bracket.turn] = _Group(AGENT, f"{AGENT}-{bracket.id}", agent=bracket.caller.agent)
                self.by_id[group.id] = group
            group.brackets.append(bracket)
            group.last = max(group.last, bracket.closed or bracket.seq)

    def _whose(self, effect: Effect) -> tuple[str, str, Any]:
        """Kind, who, and what groups an effect with others; no key where nobody is known."""
        known = [turn for turn in effect.turns if turn in self.history.agent_turns]
        whose = frozenset(known) or self.history.turns(effect.seq)
        if len(whose) > 1:
            return AGENT, ", ".join(sorted({turn.actor for turn in whose})), whose
        for turn in whose:
            kind = HAND if not turn.actor else turn.actor if turn.actor in (RUN, WATCH) else AGENT
            return kind, turn.actor, turn
        return HAND, "", None

    # -- items ---------------------------------------------------------------

    def turn(self, group: _Group) -> TurnItem:
        if group.item is None:
            group.item = self._turn(group)
        return group.item

    def _turn(self, group: _Group) -> TurnItem:
        rows = group.rows
        marks = tuple(_mark(row) for row in reversed(rows) if row.kind == "checkpoint")
        oldest = group.effects[0].id if group.effects else group.id
        first, last = (rows[-1].at, rows[0].at) if rows else (0.0, 0.0)
        if group.asked is not None:
            first, last = group.asked.at, max(group.asked.at, last)
        elif group.brackets and not rows:
            first = last = group.brackets[0].at
        stands, undone_by = self._standing(group.effects)
        took: tuple[str, ...] = ()
        revert = tuple(effect.id for effect in group.effects)
        if group.asked is not None:
            oldest, revert = group.id, (group.id,) if group.effects else ()
        if group.kind == TAKEBACK:
            takeback = self.history.takebacks[group.id]
            stands, took = WHOLE if rows[0].live else NONE, tuple(self._took(takeback))
            undone_by = () if rows[0].live else tuple(self._redone_by(takeback))
            revert = (group.id,) if takeback.verb != "redo" and rows[0].live and took else ()
        return TurnItem(
            group.id, group.kind, self._title(group), group.agent, first, last, self._totals(group.effects), None,
            self._badges(group.effects), stands, undone_by, took, marks, len(group.brackets), len(group.effects),
            any(not bracket.closed for bracket in group.brackets), revert,
            oldest, rows[0].number if group.kind in (TAKEBACK, CHECKPOINT) else 0,
        )  # fmt: skip

    def _title(self, group: _Group) -> str:
        if group.asked is not None:
            return group.asked.prompt
        rows = [row for row in group.rows if row.kind == "effect"]
        if group.kind == CHECKPOINT:
            return group.rows[0].label
        if group.kind == TAKEBACK:
            took = [self.by_id.get(id) for id in self._took(self.history.takebacks[group.id])]
            asked = [each.asked for each in took if each is not None and each.asked is not None]
            whose = [f"{each.caller.agent} “{each.prompt}”" for each in asked if each.prompt]
            return " · ".join([group.rows[0].summary, *whose[:1]])
        if group.kind == RUN and rows:
            return rows[0].summary.removeprefix("run: ").partition(" · ")[0]
        if len(rows) == 1:
            return rows[0].summary
        paths = list(dict.fromkeys(path for row in reversed(rows) for path in row.paths))
        return ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")

    def call(self, id: str) -> CallItem:
        bracket = self.history.brackets[id]
        effects = [self.effects[each] for each in self.of_call.get(id, ())]
        stands, undone_by = self._standing(effects)
        seen = turns.state_of(bracket)
        return CallItem(
            id, CALL, bracket.call.summary, bracket.caller.agent, bracket.caller.lane, bracket.call.tool, bracket.at,
            seen, self._totals(effects), self._badges(effects), stands, undone_by,
            tuple(effect.id for effect in effects), (id,) if effects else (), id,
        )  # fmt: skip

    def effect(self, id: str) -> EffectItem:
        row, effect = self.rows[id], self.effects[id]
        stands, undone_by = self._standing([effect])
        return EffectItem(
            id, EFFECT, row.summary, row.actor, row.at, row.domain, self._badge(effect), stands, undone_by, row.paths,
            len(row.turns) > 1, (id,), id, row,
        )  # fmt: skip

    def children(self, group: _Group, matching: set[str]) -> list[CallItem | EffectItem]:
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

    def _standing(self, effects: Iterable[Effect]) -> tuple[str, tuple[str, ...]]:
        """How much of them stands, and the take-backs that took the rest."""
        live = dead = 0
        by: dict[str, None] = {}
        for effect in effects:
            gone = sum((effect.seq, path) not in self.history.live for path in effect.changes)
            live, dead = live + len(effect.changes) - gone, dead + gone
            by.update(dict.fromkeys(self.by.get(effect.seq, ()) if gone else ()))
        return (WHOLE if not dead else PART if live else NONE), tuple(by)

    def _totals(self, effects: Sequence[Effect]) -> dict[str, int]:
        paths: dict[str, set[bytes]] = {}
        for effect in effects:
            mine = [path for path, change in effect.changes.items() if not is_folder(change)]
            paths.setdefault(effect.domain, set()).update(mine or effect.changes)
        return {domain: len(found) for domain, found in sorted(paths.items(), key=_states_first)}

    def _badges(self, effects: Iterable[Effect]) -> dict[str, int]:
        found: dict[str, int] = {}
        for effect in effects:
            badge = self._badge(effect)
            found[badge] = found.get(badge, 0) + 1
        return dict(sorted(found.items(), key=lambda each: _ORDER.get(each[0], 9)))

    def _badge(self, effect: Effect) -> str:
        act = self.acts.get(effect.id)
        if act is None:
            return effect.verdict
        state = act.shown_state
        return act.verdict if state in ("live", "undone") else state

    def _took(self, takeback: Takeback) -> Iterable[str]:
        """The items that a take-back took from; of a redo, those that it brought back."""
        found: dict[str, None] = {}
        for seq in takeback.rows:
            for change in self.history.by_seq[seq].changes.values():
                for taken in change.took:
                    effect = self.history.by_seq.get(taken)
                    if effect is not None:
                        found[effect.takeback or self.parents.get(effect.id, effect.id)] = None
        return found

    def _redone_by(self, takeback: Takeback) -> Iterable[str]:
        return dict.fromkeys(id for seq in takeback.rows for id in self.by.get(seq, ()))


_ORDER = {UNKNOWN: 0, "failed": 1, IRREVERSIBLE: 2, "held": 3, "compensating": 4, "exact": 5}  # the worst first


def _taken_by(history: History) -> dict[int, list[str]]:
    by: dict[int, dict[str, None]] = {}
    for effect in history.effects:
        if effect.takeback:
            for path, change in effect.changes.items():
                if (effect.seq, path) in history.live:
                    for seq in change.took:
                        by.setdefault(seq, {})[effect.takeback] = None
    return {seq: list(found) for seq, found in by.items()}


def _mark(row: LogRow) -> Mark:
    return Mark(row.id, row.number, row.label, row.named, row.pinned, row.at)


def is_folder(change: Change) -> bool:
    state = change.after or change.before
    return state is not None and state.kind == FOLDER


def _states_first(found: tuple[str, set[bytes]]) -> tuple[bool, str]:
    return found[0] not in STATES, found[0]


def _written(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
