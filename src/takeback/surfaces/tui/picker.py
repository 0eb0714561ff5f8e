"""The picker of `takeback rollback` without a target: checkpoints on the left, what would change on the right."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import Screen

from takeback.journal.filters import parse
from takeback.model.effects import Outcome
from takeback.show.timeline import Now
from takeback.show.timeline_items import CHECKPOINT, WHOLE, Item, Mark, TurnItem
from takeback.show.views import LogRow
from takeback.surfaces.wording import take_backs
from takeback.surfaces.wording.take_backs import Asked
from takeback.workspace import Workspace

from . import help
from .asking import Read
from .browser import END_TYPING, FILTER, KEYS, OTHER_PANE, ZOOM, Browser
from .detail import Line
from .item_pane import ItemPane
from .listing import Row, TimelineList
from .paper import Paper, wrapped
from .planning import Planning, diff_lines
from .rows import Rows

_TOGETHER = 1.5  # seconds: digits typed within this of each other are one number


class CheckpointList(TimelineList):
    """A number that is typed goes to the checkpoint of that number."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Go back to it")]
    _typed, _typed_at = "", 0.0

    def on_key(self, event: Key | None = None) -> None:
        super().on_key()
        digit = event.character if event is not None else None
        if digit is None or not (digit.isdecimal() and digit.isascii()):
            self._typed = ""
            return
        now = monotonic()
        self._typed = (self._typed if now - self._typed_at < _TOGETHER else "") + digit
        self._typed_at = now
        for at, row in enumerate(self.rows_shown):
            if isinstance(row.item, TurnItem) and str(row.item.number) == self._typed:
                self.cursor = at


class Picker(Browser):
    """Ends after one rollback; its code is the exit code: 4 if nothing was chosen."""

    COUNTS = "checkpoint"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "checkpoint", "Take one now"),
        FILTER,
        ZOOM,
        OTHER_PANE,
        END_TYPING,
        KEYS,
        Binding("b", "back_to", "Back to it", show=False),
        Binding("escape", "leave", "Leave all as it is"),
        Binding("q", "leave", "Leave", show=False),
    ]

    def __init__(
        self, looking: Workspace, acting: Workspace, asked: Asked, agent: str = "", plain: bool = False
    ) -> None:
        super().__init__(looking, acting, agent, "", plain)
        self.asked = asked
        self.said: list[str] = []

    # -- what is listed, and what is told of it ------------------------------

    def make_list(self) -> TimelineList:
        return CheckpointList(self.looking.clock, id="list", numbered=True)

    def make_pane(self) -> ItemPane:
        return ItemPane(self.read_plan, tabs=False)

    def first(self, now: Now) -> str:
        return now.checkpoint.id if now.checkpoint is not None else ""

    def read_rows(self, filter: str, counted: int) -> tuple[list[Row], int]:
        marks, wanted, now = self.timeline.checkpoints(), parse(filter), self.looking.clock()
        shown = [mark for mark in marks if wanted.matches(_as_row(mark), now)]
        return [Row(_as_item(mark), 0, False, False) for mark in shown], len(marks)

    def nothing(self) -> str:
        return "no checkpoint matches; esc ends the filter" if self.filter_text else "there is no checkpoint yet"

    def read_plan(self, item: Item, view: str, width: int) -> list[Line]:
        """The plan, and below it every line that it would change."""
        plan = self.acting.plan("rollback", item.id, **self.asked.options)
        paper = Paper(width)
        take_backs.write_plan(paper, self.acting, plan)
        told = [part for line in paper.read() for part in wrapped(line, width, 13)]
        return list(map(Line, [*told, Text(""), *diff_lines(self.acting, plan, width, masked=bool(self.agent))]))

    # -- choosing ------------------------------------------------------------

    @on(Rows.Chosen, "#list")
    def _choose(self, event: Rows.Chosen) -> None:
        self.rows.cursor = event.at
        self.action_back_to()

    def action_back_to(self) -> None:
        if self.item is not None and not self.waits(self.action_back_to):
            asked = self.asked._replace(words=(self.item.id,))
            screen = Planning(self.acting, asked, self.agent)
            self.push_screen(screen, lambda outcome: self._over(outcome, screen.said))

    def _over(self, outcome: Outcome | None, said: list[str]) -> None:
        if outcome is not None:
            self.said = said
            self.exit(0 if outcome.whole else 3)

    def action_leave(self) -> None:
        if self.filter_text:
            self.action_leave_filter()
        else:
            self.exit(4)

    def action_keys(self) -> None:
        self.push_screen(Read("Keys", list(help.picker_lines(min(self.size.width, 140) - 10))))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand("Go back to it", "the checkpoint at the cursor", self.action_back_to)
        yield SystemCommand("Checkpoint", "capture the tree as it is now, with a label (c)", self.action_checkpoint)
        yield SystemCommand("Filter", "by label, id or time", self.action_filter)
        yield SystemCommand("Keys", "every key (?)", self.action_keys)
        yield SystemCommand("Leave", "all as it is", self.action_leave)


def _as_item(mark: Mark) -> TurnItem:
    return TurnItem(
        mark.id, CHECKPOINT, mark.label, "", mark.at, mark.at, {}, None, {}, WHOLE, (), (), (mark,), 0, 0, False, (),
        mark.id, mark.number,
    )  # fmt: skip


def _as_row(mark: Mark) -> LogRow:
    return LogRow(
        mark.id, "checkpoint", mark.number, mark.label, mark.at, "", f"{mark.number}", True, (), named=mark.named
    )
