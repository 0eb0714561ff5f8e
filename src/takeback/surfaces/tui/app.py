"""`takeback ui`: the timeline, and every way to act on the item at the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from textual import on, work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from takeback.errors import ApprovalNeeded, TakebackError
from takeback.model.effects import Outcome
from takeback.model.outside import HAPPENED, Act
from takeback.show.timeline_items import CallItem, EffectItem, Item, Mark, TurnItem
from takeback.surfaces.wording.effects_outside import meaning
from takeback.surfaces.wording.mail import release_question, write_mail
from takeback.surfaces.wording.take_backs import Asked
from takeback.surfaces.wording.text import age, clip, safe
from takeback.surfaces.wording.typed_json import parsed_json
from takeback.workspace import Workspace

from . import comparing, detail, help
from .asking import Ask, Choice, Choose, Read, TypeYes
from .browser import CHECKPOINT, END_TYPING, FILTER, KEYS, OTHER_PANE, ZOOM, Browser, Said
from .detail import VIEWS, Line
from .item_pane import ItemPane
from .listing import Row, TimelineList
from .paper import Paper
from .planning import Planning
from .rows import Rows

_BY = {"surface": "ui"}


class TimelineApp(Browser):
    COUNTS = "turn"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "take_back", "Take back"),
        Binding("b", "back_to", "Back to here"),
        Binding("u", "undo", "Undo"),
        Binding("r", "redo", "Redo"),
        FILTER,
        Binding("s", "send", "Send"),
        Binding("v", "resolve", "Resolve"),
        Binding("f", "restore", "File", show=False),
        CHECKPOINT,
        Binding("p", "pin", "Pin", show=False),
        Binding("n", "label", "Label", show=False),
        Binding("equals_sign", "compare", "Compare", show=False, key_display="="),
        Binding("t", "tie", "Tie", show=False),
        ZOOM,
        Binding("1", "view('changes')", "Changes", show=False),
        Binding("2", "view('about')", "About", show=False),
        Binding("3", "view('json')", "JSON", show=False),
        OTHER_PANE,
        END_TYPING,
        KEYS,
        Binding("escape", "leave_filter", "End the filter", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(
        self, looking: Workspace, acting: Workspace, agent: str = "", filter: str = "", plain: bool = False
    ) -> None:
        super().__init__(looking, acting, agent, filter, plain)
        self.opened: set[str] = set()
        self._came_from: dict[str, str] = {}  # by a tie: item → the one before
        self._useful = (False, False)  # whether there is something to send, or to resolve

    # -- what is listed, and what is told of it ------------------------------

    def make_list(self) -> TimelineList:
        return TimelineList(self.looking.clock, id="list")

    def make_pane(self) -> ItemPane:
        return ItemPane(self.read_item)

    def read_rows(self, filter: str, counted: int) -> tuple[list[Row], int]:
        items, opened = self.timeline.turns(filter, counted=counted), frozenset(self.opened)
        total = len(items) if not filter else len(self.timeline.turns(counted=0))
        return [row for item in items for row in self._rows_of(item, 0, opened, filter)], total

    def _rows_of(self, item: Item, depth: int, opened: frozenset[str], filter: str) -> Iterator[Row]:
        opens = bool(item.calls or item.effects) if isinstance(item, TurnItem) else _opens(item)
        is_open = opens and item.id in opened
        yield Row(item, depth, opens, is_open)
        if is_open:
            for child in self.timeline.children(item.id, filter):
                yield from self._rows_of(child, depth + 1, opened, filter)

    def nothing(self) -> str:
        return "nothing matches; esc ends the filter" if self.filter_text else "nothing has happened yet"

    def read_item(self, item: Item, view: str, width: int) -> list[Line]:
        found = self.timeline.detail(item.id, masked=bool(self.agent))
        called = {id: self._called(id) for id in _ties(item)}
        return detail.lines(found, view, width, self.looking.clock(), called)

    def _called(self, id: str) -> str:
        try:
            return clip(safe(self.timeline.item(id).title), 60)
        except TakebackError:
            return ""

    def moved(self) -> None:
        """The keys below are drawn anew only where others are of use: that costs more than all else."""
        useful = self._act("held") is not None, self._act("unknown") is not None
        if useful != self._useful:
            self._useful = useful
            self.refresh_bindings()

    # -- looking about -------------------------------------------------------

    @on(Rows.Chosen, "#list")
    def _open_or_close(self, event: Rows.Chosen) -> None:
        row = self.rows.rows_shown[event.at] if event.at < self.rows.count else None
        if row is None:
            return
        if not row.opens:
            self.detail.focus()
            return
        self.opened ^= {row.item.id}
        self.load(keep=row.item.id)

    def action_view(self, view: str) -> None:
        if view in VIEWS:
            self.pane.show_view(view)

    def action_tie(self) -> None:
        item = self.item
        if item is None or self.waits(self.action_tie):
            return
        to = _ties(item)[-1] if _ties(item) else self._came_from.get(item.id, "")
        if not to:
            self.say("nothing has taken this back, and it took nothing")
            return
        self._came_from[to] = item.id
        self._go_to(to)

    @work(thread=True, exclusive=True, group="go", exit_on_error=False)
    def _go_to(self, id: str) -> None:
        with self.telling():
            if parent := self.timeline.parent(id):
                self.opened.add(parent)
            self.later(self.load, id)

    def action_keys(self) -> None:
        self.push_screen(Read("Keys", list(help.lines(min(self.size.width, 140) - 10))))

    def action_leave_filter(self) -> None:
        """Or what is being compared, which comes first."""
        if not self.rows.compared:
            super().action_leave_filter()
            return
        self.rows.compared = ""
        self.rows.refresh()
        self.say("")

    # -- taking back ---------------------------------------------------------

    def plan(self, verb: str, *words: str | int) -> None:
        self.say("")
        self.push_screen(Planning(self.acting, Asked(verb, words), self.agent), self._after)

    def _after(self, outcome: Outcome | None) -> None:
        self.look()

    def action_take_back(self) -> None:
        if self.waits(self.action_take_back):
            return
        path, item = self.detail.path, self.item
        if item is None:
            return
        if path and item.kind == "takeback":
            self.say("a take-back comes back whole, by x on the left; f brings one file back as it was before it")
        elif path and item.revert and item.stands != "none":
            self.plan("revert", *item.revert, f"./{path}")  # what this did to it, whoever changed it since
        elif item.revert and item.stands != "none":
            self.plan("revert", *item.revert)
        elif isinstance(item, TurnItem) and item.kind == "checkpoint":
            self.say("a checkpoint changes nothing; b goes back to it")
        elif item.undone_by:
            self.say(f"{item.undone_by[-1][:8]} has taken it back already; t goes there, x there brings it back")
        else:
            self.say("there is nothing to take back in it")

    def action_back_to(self) -> None:
        if self.item is not None and not self.waits(self.action_back_to):
            self.plan("rollback", self.item.rollback)

    def action_undo(self) -> None:
        self.plan("undo")

    def action_redo(self) -> None:
        self.plan("redo")

    def action_restore(self) -> None:
        if self.item is not None and not self.waits(self.action_restore):
            self._offer_files(self.item, self.detail.path)

    @work(thread=True, exclusive=True, group="choose", exit_on_error=False)
    def _offer_files(self, item: Item, path: str) -> None:
        """One file as it was at a checkpoint, or just before a turn."""
        with self.telling():
            mark = self.timeline.checkpoint_at(item.id)
            if mark is None:
                self.later(self.say, "there is no checkpoint from before this", True)
                return
            tree = [found for found, kind, *_ in self.timeline.tree(mark.id) if kind != "folder"]
            mine = set(item.paths) if isinstance(item, EffectItem) else set()
            if path and path in tree:
                self.later(self.plan, "restore", mark.id, path)
            elif tree:
                self.later(self._choose_file, mark, sorted(tree, key=lambda each: (each not in mine, each)))
            else:
                self.later(self.say, f"there was no file at {mark.id[:8]}", True)

    def _choose_file(self, mark: Mark, tree: list[str]) -> None:
        def chosen(found: str | None) -> None:
            if found:
                self.plan("restore", mark.id, found)

        label = f" “{clip(safe(mark.label), 40)}”" if mark.label else ""
        question = f"Which file, as it was at {mark.id[:8]}{label}, {age(self.looking.clock() - mark.at)}?"
        self.push_screen(Choose(question, [Choice(found, found) for found in tree]), chosen)

    # -- checkpoints ---------------------------------------------------------

    def action_pin(self) -> None:
        if self.waits(self.action_pin):
            return
        if (mark := self._mark) is None:
            self.say("only a checkpoint can be pinned", bad=True)
        else:
            self.do(lambda: self._pinned(mark))

    @property
    def _mark(self) -> Mark | None:
        """The checkpoint at the cursor."""
        item = self.item
        return item.marks[0] if isinstance(item, TurnItem) and item.marks else None

    def _pinned(self, mark: Mark) -> Said:
        found = self.acting.pin(mark.id, keep=not mark.pinned)
        kept = "kept for ever" if found.pinned else "kept no longer"
        return Said(f"checkpoint {mark.number} {found.id[:8]} is {kept}")

    def action_label(self) -> None:
        if self.waits(self.action_label) or self._is_refused("calling a checkpoint something else"):
            return
        if (mark := self._mark) is None:
            self.say("only a checkpoint has a label", bad=True)
            return

        def label(typed: str | None) -> None:
            if typed is not None:
                self.do(lambda: self._labelled(mark, typed.strip()))

        self.push_screen(Ask(f"What to call checkpoint {mark.number}; empty: nothing", text=mark.label), label)

    def _labelled(self, mark: Mark, typed: str) -> Said:
        label = self.acting.label(mark.id, typed).label
        called = f"is called “{safe(label)}” now" if label else "has no label now"
        return Said(f"checkpoint {mark.number} {mark.id[:8]} {called}")

    def action_compare(self) -> None:
        item, rows = self.item, self.rows
        if item is None or self.waits(self.action_compare):
            return
        one, rows.compared = rows.compared, "" if rows.compared else item.id
        rows.refresh()
        if one:
            self.say("")
            self._compare(one, item.id)
        else:
            self.say("compare: choose the other point, then = again (here: with now; esc ends it)")

    @work(thread=True, exclusive=True, group="choose", exit_on_error=False)
    def _compare(self, one: str, other: str) -> None:
        with self.telling():
            found = comparing.compared(self.looking, self.timeline, one, other, self.size.width - 8, bool(self.agent))
            if found is None:
                self.later(self.say, "there is no checkpoint from before this", True)
            else:
                self.later(self.push_screen, Read(*found))

    # -- outside the files ---------------------------------------------------

    def _act(self, state: str) -> EffectItem | None:
        """The effect outside the files that the cursor is on, if it is in this state."""
        item = self.item
        return item if isinstance(item, EffectItem) and item.row.state == state else None

    def _is_refused(self, what: str) -> bool:
        if self.agent:
            self.fail(ApprovalNeeded(f"{what} is for a person, and {self.agent}", "run it in a terminal of your own"))
        return bool(self.agent)

    def action_resolve(self) -> None:
        item = self._act("unknown")
        if item is not None and not self._is_refused("saying what came of an effect"):
            self._offer_sayings(item.id)

    @work(thread=True, exclusive=True, group="choose", exit_on_error=False)
    def _offer_sayings(self, id: str) -> None:
        def settle(said: str | None) -> None:
            if said == HAPPENED and act.waits_for_result:
                self.push_screen(Ask("What did it answer, as JSON? Its undo is made from it (empty: not known)"), noted)
            elif said:
                self.do(lambda: self._resolved(act, said))

        def noted(result: str | None) -> None:
            if result is not None:
                self.do(lambda: self._resolved(act, HAPPENED, result))

        with self.telling():
            act = self.acting.find_effect(id)
            choices = [Choice("", "not known yet; leave it as it is")]  # the first: no stray Enter says what is not so
            choices += [Choice(said, meaning(act, said)) for said in act.sayings]
            self.later(self.push_screen, Choose(f"What came of “{clip(safe(act.summary), 60)}”?", choices), settle)

    def _resolved(self, doubted: Act, said: str, result: str = "") -> Said:
        given = parsed_json(result, "the result", '{"id": "ch_3P"}') if result.strip() else None
        self.acting.resolve(doubted.id, said, given)
        return Said(f"noted: {meaning(doubted, said)}")

    def action_send(self) -> None:
        item = self._act("held")
        if item is not None and not self._is_refused("releasing mail"):
            self._offer_mail(item.id)

    @work(thread=True, exclusive=True, group="choose", exit_on_error=False)
    def _offer_mail(self, id: str) -> None:
        def send(yes: bool | None) -> None:
            if yes:
                self.say("sending …")
                self.do(lambda: self._sent(act.id))
            else:
                self.say(f"{act.id[:8]} stays held; x drops it")

        paper = Paper(self.size.width - 8)
        with self.telling():
            act = self.acting.find_email(id)
            write_mail(paper, self.acting, act)
            self.later(self.push_screen, TypeYes("Send mail", paper.read(), release_question(act)), send)

    def _sent(self, id: str) -> Said:
        act = self.acting.release_email(id, approved=True, by=_BY)
        return Said(f"{act.id[:8]} {safe(str(act.did.get('left_to_do', 'sent')))}")

    # -- keys and commands ---------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "send":
            return self._act("held") is not None
        if action == "resolve":
            return self._act("unknown") is not None
        return super().check_action(action, parameters)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand("Take back this", "the turn, call or effect at the cursor (x)", self.action_take_back)
        yield SystemCommand(
            "Back to here", "roll back to this checkpoint, or to just before this (b)", self.action_back_to
        )
        yield SystemCommand("Undo", "take back the last turn (u)", self.action_undo)
        yield SystemCommand("Redo", "bring back what the last take-back took (r)", self.action_redo)
        yield SystemCommand("Restore a file", "bring one file back as it was here (f)", self.action_restore)
        yield SystemCommand("Checkpoint", "capture the whole tree, with a label (c)", self.action_checkpoint)
        yield SystemCommand("Pin", "keep this checkpoint for ever, or no longer (p)", self.action_pin)
        yield SystemCommand("Label", "call this checkpoint something else (n)", self.action_label)
        yield SystemCommand("Compare", "two points, or one with now (=)", self.action_compare)
        yield SystemCommand("Filter", "by words, path, actor, domain, verdict, time (/)", self.action_filter)
        yield SystemCommand("Send mail", "release the held mail at the cursor (s)", self.action_send)
        yield SystemCommand(
            "Resolve", "say what came of an effect, or its undo, that is unknown (v)", self.action_resolve
        )
        yield SystemCommand("Raw JSON", "of the item at the cursor (3)", lambda: self.action_view("json"))
        yield SystemCommand("Theme", "other colours", self.action_change_theme)
        yield SystemCommand("Keys", "every key (?)", self.action_keys)
        yield SystemCommand("Quit", "leave (q)", self.action_quit)


def _opens(item: CallItem | EffectItem) -> bool:
    """A call with one effect says all of it itself."""
    return isinstance(item, CallItem) and len(item.effects) > 1


def _ties(item: Item) -> list[str]:
    """What took this back, and what it took."""
    return [*item.undone_by, *(item.took if isinstance(item, TurnItem) else ())]
