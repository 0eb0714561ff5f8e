"""The timeline: what happened, as values to be shown to a person. The terminal, the web page and the report share it.

    turns ─► children ─► detail     items of the board (board.py), and all that one of them holds

Every item has an id: `children` and `detail` take it, and so do the verbs, as its words `revert` and `rollback` say.
Nothing here writes to the journal, prints, or words an age; each surface escapes what it shows (control characters,
HTML). The journal is folded once for each head; what is asked of one item reads that item alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.apply.executor import steps_of
from takeback.errors import NotFound, TakebackError
from takeback.journal import filters
from takeback.journal.history import History
from takeback.model.effects import STATES, Plan
from takeback.model.outside import Act
from takeback.model.thread_states import StateDifference
from takeback.privacy import masking, redact
from takeback.store.folder_objects import Difference
from takeback.threads import plain_data

from . import turns, views
from .timeline_items import NONE, Board, CallItem, EffectItem, Group, Item, Mark, TurnItem, mark_of
from .turns import CallSeen
from .views import LogRow, Shown

if TYPE_CHECKING:
    from takeback.model.thread_states import StateDifference
    from takeback.workspace import Workspace

_COUNTED = 50  # turns of one answer whose lines are counted
_COMPARED = 300  # paths of one item that are compared line by line


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
    under_way: str = ""  # a sentence, while another process is at a take-back


class Timeline:
    """Looks at one workspace, from any thread; an answer is as of the journal's head when it was asked."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self._board: Board | None = None
        self._lines: dict[str, tuple[int, tuple[int, int] | None]] = {}  # turn → effects it had, and its lines

    def changed_since(self, head: int) -> bool:
        """Whether anybody has journaled anything since; cheap enough to ask every second."""
        return self.head() != head or (self._board is not None and self._board.is_stale)

    def head(self) -> int:
        with self.ws.alone():
            return self.ws.store.journal.head().seq

    def now(self) -> Now:
        with self.ws.alone():
            board = self._folded()
            history = board.history
            states = [act.shown_state for act in board.acts.values()]
            newest = history.here
            under_way = self.ws.under_way()
            return Now(
                history.head, self.ws.clock(), tuple(turns.at_work(history, self.ws.observer.end_of)),
                states.count("held"), states.count("unknown"), self.ws.interrupted(),
                None if newest is None else mark_of(board.rows[newest.id]), len(board.effects), self._damage(history),
                under_way,
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
            found: list[Group] = []
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
            return [
                mark_of(board.rows[each.id]) for each in reversed(board.history.checkpoints) if each.id in board.rows
            ]

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
            return next((mark_of(board.rows[each.id]) for each in older), None)

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

    def _folded(self) -> Board:
        history = self.ws.history()
        if self._board is None or self._board.history is not history or self._board.is_stale:
            self._board = Board(self.ws, history)
        return self._board

    def _damage(self, history: History) -> str:
        """What was found when the journal was read, which takes no second reading."""
        if (cut := self.ws.store.journal.cut()) is not None:
            return f"the journal's tail is cut: rows {cut[0]} to {cut[1]} are lost"
        if not history.damaged:
            return ""
        more = f" ({len(history.damaged) - 1} more are, too)" if len(history.damaged) > 1 else ""
        return f"journal row {min(history.damaged)} was altered or lost{more}: take-backs across it are refused"

    def _item(self, board: Board, group: Group, lines: bool) -> TurnItem:
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

    def _grouped(self, board: Board, item: Item, most: int) -> Shown:
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

    def _moved(self, board: Board, item: Item, masked: bool) -> Iterable[Moved]:
        """What it did to threads of state; of a turn or call, each effect of it by itself."""
        changes = [c for e in board.effects_of(item) if e.domain == "state" for c in e.changes.values()]
        ends = views.moved_threads(self.ws, [Difference(c.path, c.before, c.after) for c in changes])
        for change, (thread, before, after) in zip(changes, ends):
            is_known = (change.before is None or before) and (change.after is None or after)  # else it was pruned
            found = self._differences(thread, before, after) if is_known else ()
            yield Moved(thread, before, after, tuple(map(masking.mask_difference, found) if masked else found))

    def _differences(self, thread: str, before: str, after: str) -> Sequence[StateDifference]:
        """Between two state checkpoints; without one of them, all that the other holds."""
        threads = self.ws.threads
        try:
            if before and after:
                return threads.diff(thread, before, after)
            was, now = (threads.load(threads.get(thread, id)) if id else {} for id in (before, after))
        except TakebackError:  # pruned since
            return ()
        return [StateDifference(*found) for found in plain_data.differences(was, now)]

    def _exchange(self, act: Act, masked: bool) -> Iterable[tuple[str, str]]:
        """What was sent and answered, or run; recorded without secrets. The text of a mail is kept as it is."""
        for name, value in act.did.items():
            if value not in (None, "", {}, []) and name not in ("blobs", "left_to_do", "made"):  # the target says it
                yield name, _written(value)
        if act.domain == "email" and act.did.get("blobs"):
            try:
                said = self.ws.read_email(act)
                yield "text", redact.text(said) if masked else said
            except TakebackError as error:
                yield "text", error.message


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
