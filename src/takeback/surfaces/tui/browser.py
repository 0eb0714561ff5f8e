"""The screen that the timeline and the picker share: a list on the left, one item of it on the right, a filter.

The journal is looked at every second, by a workspace of its own, so that what others do appears while a take-back
runs. Whatever reads or writes runs in a thread; the screen is only ever drawn. What is listed, what is told of an item
and what can be done about it are a child's, and so are the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical
from textual.events import DescendantFocus
from textual.filter import NoColor
from textual.widgets import Footer, Input, Static
from textual.worker import get_current_worker

from takeback.errors import Locked, TakebackError
from takeback.show.timeline import Now, Timeline
from takeback.show.timeline_items import Item
from takeback.surfaces.wording import failures
from takeback.surfaces.wording.checkpoints import captured_said
from takeback.surfaces.wording.text import counted, listed, safe
from takeback.workspace import Workspace

from .asking import Ask
from .filter_box import FilterBox
from .item_pane import Detail, ItemPane
from .later import HasThreads
from .listing import Row, TimelineList
from .planning import Planning
from .rows import Rows
from .style import CSS
from .top import top_line

_LOOK = 1.0  # seconds between looks at the journal
_AGES = 15.0  # and between two drawings of how old things are
_COUNTED = 200  # turns whose lines are counted

FILTER = Binding("slash", "filter", "Filter", key_display="/", priority=True)  # what is typed right after is its own
END_TYPING = Binding("enter", "end_typing", "To the list", priority=True)  # so is what comes after it
OTHER_PANE = Binding("tab", "other_pane", "Other pane", show=False, priority=True)
ZOOM = Binding("z", "zoom", "Zoom", show=False)
CHECKPOINT = Binding("c", "checkpoint", "Checkpoint", show=False)
KEYS = Binding("question_mark", "keys", "Help", key_display="?")


class Said(NamedTuple):
    """What came of something, in a line."""

    line: str
    is_bad: bool = False


class Browser(HasThreads, App[int]):
    TITLE = "takeback"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 (Textual declares it as no ClassVar)
    CSS = CSS
    COUNTS = ""  # what the list is of

    def __init__(
        self, looking: Workspace, acting: Workspace, agent: str = "", filter: str = "", plain: bool = False
    ) -> None:
        super().__init__(ansi_color=True if plain else None)
        if plain:  # not even shades: the terminal's own foreground and background, bold, dim and reverse
            self._filters = [NoColor()]
        self.looking = looking
        self.acting = acting
        self.agent = agent  # at work above this terminal: secrets are masked, and what is a person's is refused
        self.timeline = Timeline(looking)
        self.filter_text = filter
        self.now: Now | None = None
        self._total = 0
        self._looks = False
        self._rests_until = 0.0
        self._loads = 0  # how often the list was asked for: an answer to an older question is none
        self._is_loading = False
        self._is_unread = False  # and the notice says why
        self._is_typing = False  # what was typed may still be on its way into the box
        self._afterwards: Callable[[], None] | None = None  # what was asked for while the list was being read

    # -- for child classes ---------------------------------------------------

    def make_list(self) -> TimelineList:
        raise NotImplementedError

    def make_pane(self) -> ItemPane:
        raise NotImplementedError

    def read_rows(self, filter: str, counted: int) -> tuple[list[Row], int]:
        """In a thread: what the filter leaves, the lines of the first `counted` ones counted; and how many there are
        without it."""
        raise NotImplementedError

    def first(self, now: Now) -> str:
        """The item that the cursor begins on, if not the newest."""
        return ""

    def nothing(self) -> str:
        """What stands on the right where the list is empty."""
        raise NotImplementedError

    def moved(self) -> None:
        """The cursor may be on another item, or its item another one."""

    # -- the screen ----------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static("", id="top", markup=False)
        with Container(id="panes"):
            with Vertical(id="left"):
                yield FilterBox(self.filter_text)
                yield self.make_list()
            yield self.make_pane()
        yield Static("", id="notice", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.screen.set_focus(self.rows)
        self._write_top()
        self.load()
        self.set_interval(_LOOK, self.look)
        self.set_interval(_AGES, self.rows.refresh)

    @property
    def is_there(self) -> bool:
        return bool(self.screen_stack and self.screen_stack[0].query("#list"))

    @property
    def rows(self) -> TimelineList:
        return self.screen_stack[0].query_one("#list", TimelineList)

    @property
    def pane(self) -> ItemPane:
        return self.screen_stack[0].query_one(ItemPane)

    @property
    def detail(self) -> Detail:
        return self.pane.detail

    @property
    def box(self) -> FilterBox:
        return self.screen_stack[0].query_one(FilterBox)

    @property
    def item(self) -> Item | None:
        return self.rows.item if self.is_there else None

    def _write_top(self) -> None:
        shown = sum(row.depth == 0 for row in self.rows.rows_shown)
        of = f"{shown:,} of " if self.filter_text else ""
        told = top_line(self.looking.root.name, self._stopped(), self.now, f"{of}{counted(self._total, self.COUNTS)}")
        self.screen_stack[0].query_one("#top", Static).update(told)

    def _stopped(self) -> str:
        settings = self.looking.settings
        if self.now is None and self._is_unread:
            return "it cannot be read"
        if self.looking.store.is_read_only:
            return "the store can only be read, nothing is recorded or taken back"
        return "" if settings.enabled else f"off, nothing is recorded or taken back ({settings.off_source})"

    def say(self, line: str, bad: bool = False) -> None:
        """A line above the keys, until the next one."""
        notice = self.screen_stack[0].query_one("#notice", Static)
        notice.update(Text(line, "bold red" if bad else "bold green"))
        notice.set_class(bool(line), "shown")
        self._is_unread = False

    def fail(self, error: TakebackError) -> None:
        hint = f" → {safe(error.hint)}" if error.hint else ""
        self.say(f"{safe(error.message)}{hint}", bad=True)

    def _fail_to_read(self, error: TakebackError) -> None:
        """Until it can be read again."""
        self.fail(error)
        self._is_unread = True
        self._write_top()

    # -- reading -------------------------------------------------------------

    def look(self) -> None:
        """Reads the list anew if anybody has journaled anything, or if it could not be read."""
        if self._looks or self._is_loading or monotonic() < self._rests_until:
            return
        if self.now is None or self._is_unread:
            self.load()
        else:
            self._looks = True
            self._look_in_thread(self.now.head)

    @work(thread=True, group="look", exit_on_error=False)
    def _look_in_thread(self, head: int) -> None:
        try:
            if self.timeline.changed_since(head):
                self.later(self.load)
        except Locked:
            pass  # another look will do
        except Exception as error:  # as in `telling`
            self.later(self._fail_to_read, failures.told(error, "ui"))
        finally:
            self._looks = False

    def load(self, keep: str = "") -> None:
        """Reads the list anew; the cursor stays where it is, or goes to `keep`."""
        self._is_loading = True
        self._loads += 1
        self._load(self._loads, self.filter_text, keep)

    @work(thread=True, exclusive=True, group="load", exit_on_error=False)
    def _load(self, load: int, filter: str, keep: str) -> None:
        worker = get_current_worker()
        try:
            began = monotonic()
            now = self.timeline.now()
            known = self.now is not None and now.head == self.now.head
            for count in (_COUNTED,) if known else (0, _COUNTED):  # the list first, then its lines
                rows, total = self.read_rows(filter, count)
                if worker.is_cancelled:
                    return
                self.later(self._loaded, load, now, rows, total, keep)
                keep = ""  # whoever has moved on by then stays there
            self._rests_until = monotonic() + 3 * (monotonic() - began)  # a long journal is not read without a pause
        except Exception as error:
            self.later(self._not_loaded, load, failures.told(error, "ui"))

    def _loaded(self, load: int, now: Now, rows: list[Row], total: int, keep: str) -> None:
        if load != self._loads:
            return
        is_stale = self.now is None or now.head != self.now.head
        is_first = self.now is None
        self._is_loading = False
        self.now, self._total = now, total
        self.rows.show_rows(rows, keep or (self.first(now) if is_first else ""))
        self._follow(is_stale)
        self._write_top()
        self._catch_up()
        if self._is_unread:
            self.say("")
        if keep and self.item is not None and self.item.id != keep:
            self.say("the filter leaves it out; esc ends the filter", bad=True)

    def _not_loaded(self, load: int, error: TakebackError) -> None:
        if load == self._loads:
            self._is_loading, self._afterwards = False, None
            self.rows.settle()
            self._fail_to_read(error)

    @on(Rows.Moved, "#list")
    def _moved_in_list(self) -> None:
        if self.is_there:  # the program may have ended meanwhile
            self._follow()

    def _follow(self, is_stale: bool = False) -> None:
        nothing = self.nothing() if self.now is not None else ""  # who has read nothing cannot say what there is
        self.pane.follow(self.item, nothing, is_stale)
        self.moved()

    def _catch_up(self) -> None:
        if self._afterwards is not None and not self.is_early:
            self.call_later(self._afterwards)
            self._afterwards = None

    def waits(self, action: Callable[[], None]) -> bool:
        """What is meant is what the filter leaves, which may not be there yet: it is done as soon as it is."""
        if self.is_early:
            self._afterwards = action
        return self.is_early

    @property
    def is_early(self) -> bool:
        return self._is_loading or self._is_typing

    # -- checkpoints, and whatever is quick ----------------------------------

    def action_checkpoint(self) -> None:
        def take(label: str | None) -> None:
            if label is not None:
                self.say("taking a checkpoint …")
                self.do(lambda: self._captured(label.strip()))

        self.push_screen(Ask("Label of the checkpoint; it may be empty", "before the refactor"), take)

    def _captured(self, label: str) -> Said:
        taken = self.acting.checkpoint(label)
        said = captured_said(taken)
        for found, what in ((taken.too_large, "not captured:"), (taken.partial, "it is partial, without")):
            if found:
                said += f"; {what} {listed([path or '.' for path, _ in found])} ({safe(found[0][1])})"
        return Said(said, is_bad=bool(taken.partial))

    @work(thread=True, group="act", exit_on_error=False)
    def do(self, work: Callable[[], Said]) -> None:
        """Something quick that writes; what came of it is said."""
        with self.telling():
            self.later(self.say, *work())
            self.later(self.look)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """In a thread: whatever fails inside is said. What ends a thread unseen leaves the screen waiting for ever."""
        try:
            yield
        except Exception as error:
            self.later(self.fail, failures.told(error, "ui"))

    # -- the filter ----------------------------------------------------------

    def action_filter(self) -> None:
        self.box.display = True
        self.screen.set_focus(self.box)  # at once: the next key is for it

    @on(FilterBox.Meant)
    def _filter_meant(self, event: FilterBox.Meant) -> None:
        self._set_filter(event.text)

    def _set_filter(self, text: str) -> None:
        if self.is_there and text != self.filter_text:
            self.filter_text = text
            self.say("")
            self.load()

    @on(Input.Submitted, "#filter")
    def action_end_typing(self) -> None:
        """The next key is for the list; what was typed before may still be on its way into the box."""
        self._is_typing = True
        self.screen.set_focus(self.rows)
        self.box.call_later(self._typed_all)

    def _typed_all(self) -> None:
        self._is_typing = False
        self.box.hide_if_empty()
        self._set_filter(self.box.value)
        self._catch_up()

    def action_leave_filter(self) -> None:
        self.box.value = ""
        self.box.display = False
        self._set_filter("")
        self.screen.set_focus(self.rows)

    # -- the panes -----------------------------------------------------------

    @on(DescendantFocus, "#detail")
    def _reads(self) -> None:
        """Whoever reads an item has chosen it: the cursor does not go on to newer ones."""
        self.rows.is_touched = True

    def action_other_pane(self) -> None:
        if len(self.screen_stack) > 1:
            self.screen.focus_next()
            return
        to_detail = not self.detail.has_focus
        if self.query(".zoomed"):
            self._zoom(to_detail)
        (self.detail if to_detail else self.rows).focus()

    def action_zoom(self) -> None:
        if self.query(".zoomed"):
            for pane in self.query(".zoomed"):
                pane.remove_class("zoomed")
        else:
            self._zoom(self.detail.has_focus)

    def _zoom(self, detail: bool) -> None:
        self.query_one("#left").set_class(detail, "zoomed")
        self.query_one("#right").set_class(not detail, "zoomed")

    # -- keys, and the end ---------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "command_palette":
            return len(self.screen_stack) == 1
        if action == "end_typing":
            return isinstance(self.focused, FilterBox)
        if action == "filter":
            return len(self.screen_stack) == 1 and not isinstance(self.focused, Input)
        return True

    async def action_quit(self) -> None:
        """Not in the middle of a take-back: it would go on unseen, and nobody would be told what came of it."""
        if not any(isinstance(screen, Planning) and screen.is_applying for screen in self.screen_stack):
            await super().action_quit()

    def finish(self) -> int:
        """Runs to the end and returns the exit code. A bug is raised, to be told as everywhere: the traceback that
        would be printed instead shows the values at hand, and secrets may be among them."""
        code = self.run()
        if self._exception is not None:
            raise self._exception
        return code or 0

    def _print_error_renderables(self) -> None:
        if self._exception is not None:
            self._exit_renderables.clear()
        super()._print_error_renderables()
