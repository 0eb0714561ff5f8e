"""The picker of `takeback rollback` without a target: checkpoints on the left, what would change on the right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rich.text import Text
from textual import on, work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import get_current_worker

from ...effects import Outcome, Plan
from ...filters import parse
from ...masking import mask_file
from ...timeline import CHECKPOINT, WHOLE, Item, Mark, Now, TurnItem
from ...views import LogRow
from ...workspace import Workspace
from ..cli import diffs, plans, takebacks
from ..cli.takebacks import Asked
from .app import TimelineApp, unread
from .detail import Line
from .listing import Row, TimelineList
from .paper import Paper, styled, wrapped
from .planning import Planning
from .rows import Rows

_MOST = 2_000  # lines of a diff


class CheckpointList(TimelineList):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Go back to it")]


class Picker(TimelineApp):
    """Ends after one rollback; its code is the exit code: 4 if nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "nothing", "", show=False),
        Binding("u", "nothing", "", show=False),
        Binding("r", "nothing", "", show=False),
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
        self.counts = "checkpoint"

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#tabs").display = False

    def make_list(self) -> TimelineList:
        return CheckpointList(self.looking.clock, id="list", numbered=True)

    def first(self, now: Now) -> str:
        return now.checkpoint.id if now.checkpoint is not None else ""

    def read_rows(self, filter: str, opened: frozenset[str], counted: int) -> tuple[list[Row], int]:
        marks, wanted, now = self.timeline.checkpoints(), parse(filter), self.looking.clock()
        shown = [mark for mark in marks if wanted.matches(_as_row(mark), now)]
        return [Row(_as_item(mark), 0, False, False) for mark in shown], len(marks)

    def nothing(self) -> str:
        return "no checkpoint matches; esc ends the filter"

    @work(thread=True, exclusive=True, group="detail", exit_on_error=False)
    def read_detail(self, item: Item) -> None:
        """The plan, and below it every line that it would change."""
        worker = get_current_worker()
        width = self.detail_width
        try:
            asked = self.asked
            plan = self.acting.plan("rollback", item.id, **asked.options)
            lines = self._plan_lines(plan, width)
        except Exception as error:
            lines = unread(error)
        if not worker.is_cancelled:
            self.later(self._tell_detail, item.id, lines)

    def _plan_lines(self, plan: Plan, width: int) -> list[Line]:
        paper = Paper(width, self.acting.environ)
        takebacks.write_plan(paper, self.acting, plan)
        files = plans.diff_of(self.acting, plan)
        if self.agent:
            files = [mask_file(file) for file in files]
        told = [part for line in paper.read() for part in wrapped(line, width, 13)]
        lines = [*told, Text(""), *(styled(line) for line in diffs.lines(paper, files))]
        return [Line(line) for line in lines[:_MOST]]

    @on(Rows.Chosen, "#list")
    def _open_or_close(self, event: Rows.Chosen) -> None:
        self.rows.cursor = event.at
        self.action_back_to()

    def action_back_to(self) -> None:
        if self.item is not None and not self._waits(self.action_back_to):
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

    def action_nothing(self) -> None:
        """Keys of the timeline that have no meaning here."""

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand("Go back to it", "the checkpoint at the cursor", self.action_back_to)
        yield SystemCommand("Filter", "by label, id or time", self.action_filter)
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
