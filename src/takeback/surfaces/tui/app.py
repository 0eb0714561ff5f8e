"""The timeline as a program: the list on the left, one item on the right, and every way to act on it.

The journal is looked at every second, by a workspace of its own, so that what others do appears while a take-back
runs. Whatever reads or writes runs in a thread; the screen is only ever drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, ClassVar

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.filter import NoColor
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Input, Static
from textual.worker import get_current_worker

from ...effects import Outcome
from ...errors import ApprovalNeeded, Locked, TakebackError
from ...masking import mask_file
from ...timeline import CallItem, EffectItem, Item, Now, Timeline, TurnItem
from ...workspace import Workspace
from ..cli import diffs, failures
from ..cli.capturing import captured_said
from ..cli.takebacks import Asked
from ..cli.terminal import age, clip, clip_path, counted, listed, safe
from . import help
from .asking import Ask, Choice, Choose, Read, TypeYes
from .detail import VIEWS, Line
from .detail import lines as detail_lines
from .later import Later
from .listing import Row, TimelineList
from .paper import Paper, styled
from .planning import Planning
from .rows import Lines, Rows

_LOOK = 1.0  # seconds between looks at the journal
_COUNTED = 200  # turns whose lines are counted
_SOON = 0.08  # seconds a cursor has to rest before its item is read
_BY = {"surface": "ui"}


class Detail(Lines):
    """The right pane: lines that know which file they are about."""

    def __init__(self) -> None:
        super().__init__(id="detail", cursor=True)
        self.told: list[Line] = []

    def tell(self, lines: list[Line], keep: bool) -> None:
        self.told = lines
        self.show_lines([line.text for line in lines], keep)

    @property
    def path(self) -> str:
        return self.told[self.cursor].path if self.has_focus and self.cursor < len(self.told) else ""


class FilterBox(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "To the list"),
        Binding("escape", "app.leave_filter", "End the filter"),
        Binding("down", "submit", "To the list", show=False),
    ]


class TimelineApp(App[int]):
    """`takeback ui`."""

    TITLE = "takeback"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    CSS = """
    Screen { background: $background; }
    #top { height: 1; background: $panel; padding: 0 1; }
    #panes { layout: vertical; height: 1fr; }
    #left { height: 1fr; width: 1fr; }
    #right { height: 1fr; width: 1fr; border-top: solid $panel-lighten-2; }
    Screen.-wide #panes { layout: horizontal; }
    Screen.-wide #left { width: 11fr; }
    Screen.-wide #right { width: 9fr; border-top: none; border-left: solid $panel-lighten-2; }
    .zoomed { display: none; }
    #tabs { height: 1; padding: 0 1; color: $text-muted; link-style: none; link-color: $text-muted; }
    #detail { padding: 0 1; height: 1fr; }
    #list { height: 1fr; }
    #filter { height: 1; border: none; padding: 0 1; background: $boost; display: none; }
    #notice { height: auto; max-height: 3; padding: 0 1; display: none; }
    #notice.shown { display: block; }
    ModalScreen { align: center middle; background: $background 60%; }
    .dialog { width: 100%; max-width: 140; height: 90%; margin: 1 2; border: round $primary; background: $surface; padding: 0 1; }
    .dialog.fitting { height: auto; }
    .dialog.small { height: auto; max-width: 70; }
    .dialog Lines, .dialog Rows { height: 1fr; }
    .dialog Input { border: none; height: 1; background: $boost; margin: 0 0 1 0; padding: 0 1; }
    .dialog .title { text-style: bold; height: auto; width: 100%; margin: 0 0 1 0; }
    .dialog .question { text-style: bold; height: auto; width: 100%; margin: 1 0 0 0; color: $text-warning; }
    .dialog Footer { background: $surface; }
    """  # noqa: E501
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "take_back", "Take back"),
        Binding("b", "back_to", "Back to here"),
        Binding("u", "undo", "Undo"),
        Binding("r", "redo", "Redo"),
        Binding("slash", "filter", "Filter", key_display="/", priority=True),  # what is typed right after is its own
        Binding("s", "send", "Send"),
        Binding("v", "resolve", "Resolve"),
        Binding("f", "restore", "File", show=False),
        Binding("c", "checkpoint", "Checkpoint", show=False),
        Binding("p", "pin", "Pin", show=False),
        Binding("equals_sign", "compare", "Compare", show=False, key_display="="),
        Binding("t", "tie", "Tie", show=False),
        Binding("z", "zoom", "Zoom", show=False),
        Binding("1", "view('changes')", "Changes", show=False),
        Binding("2", "view('about')", "About", show=False),
        Binding("3", "view('json')", "JSON", show=False),
        Binding("tab", "other_pane", "Other pane", show=False, priority=True),
        Binding("enter", "end_typing", "To the list", priority=True),  # so is what comes after it
        Binding("question_mark", "keys", "Help", key_display="?"),
        Binding("escape", "leave_filter", "End the filter", show=False),
        Binding("q", "quit", "Quit"),
    ]

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
        self.opened: set[str] = set()
        self.now: Now | None = None
        self.shown_view = "changes"
        self._shown = ""  # the item on the right
        self._looks = False
        self._rests_until = 0.0
        self._soon: Timer | None = None
        self._typing: Timer | None = None
        self._total = 0
        self._came_from = ""  # by a tie
        self._is_loading = False
        self._afterwards: Callable[[], None] | None = None  # what was asked for while the list was being read
        self._useful = (False, False)  # whether there is something to send, or to resolve
        self.counts = "turn"

    # -- the screen ----------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static("", id="top", markup=False)
        with Container(id="panes"):
            with Vertical(id="left"):
                yield FilterBox(placeholder="words, path:src/ actor:claude since:2h verdict:exact …", id="filter")
                yield self.make_list()
            with Vertical(id="right"):
                yield Static("", id="tabs")
                yield Detail()
        yield Static("", id="notice", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    def make_list(self) -> TimelineList:
        return TimelineList(self.looking.clock, id="list")

    def on_mount(self) -> None:
        self.screen.set_focus(self.rows)
        self._write_top()
        if self.filter_text:
            self.query_one("#filter", Input).value = self.filter_text
            self.query_one("#filter").display = True
        self._draw_tabs()
        self.load()
        self.set_interval(_LOOK, self._look)
        self.set_interval(15, self.rows.refresh)  # ages

    @property
    def rows(self) -> TimelineList:
        return self.screen_stack[0].query_one("#list", TimelineList)

    @property
    def detail(self) -> Detail:
        return self.screen_stack[0].query_one(Detail)

    @property
    def item(self) -> Item | None:
        return self.rows.item if self._is_there else None

    def _write_top(self) -> None:
        text = Text.assemble(("takeback ", "bold"), (clip(safe(self.looking.root.name), 24), "cyan"), no_wrap=True)
        now = self.now
        if now is None:
            text.append(" · reading …", "dim")
        else:
            shown = self.rows.count and sum(row.depth == 0 for row in self.rows.rows_shown)
            of = f"{shown:,} of " if self.filter_text else ""
            if now.interrupted:
                text.append(f" · {now.interrupted}; any take-back finishes it first", "bold red")
            text.append(f" · {of}{counted(self._total, self.counts)}, {counted(now.effects, 'effect')}", "dim")
            for call in now.at_work[:1]:
                text.append(f" · {safe(call.agent)} at work: {clip(safe(call.summary), 30)}", "green")
            if now.held:
                text.append(f" · {counted(now.held, 'mail')} held", "green")
            if now.unknown:
                text.append(f" · {now.unknown} unknown", "magenta")
        self.query_one("#top", Static).update(text)

    def _draw_tabs(self) -> None:
        names = {"changes": "1 Changes", "about": "2 About", "json": "3 JSON"}
        parts = [
            f"[@click=app.view('{view}')]{f'[b reverse] {name} [/]' if view == self.shown_view else f' {name} '}[/]"
            for view, name in names.items()
        ]
        path = self.detail.path
        if path:
            shown = clip_path(safe(path), 30).replace("[", "\\[")
            parts.append(f" [dim]x f: only[/] {shown}")
        self.query_one("#tabs", Static).update("".join(parts))

    def later(self, call: Callable[..., Any], *args: Any) -> None:
        """From a thread: done when the screen has time for it, and not at all once the program has ended. The thread
        never waits, as it may be in the middle of a take-back."""
        self.post_message(Later(call, args))

    @on(Later)
    def _now_is_later(self, message: Later) -> None:
        if self._is_there:
            message.call(*message.args)

    def say(self, line: str, bad: bool = False) -> None:
        """A line above the keys, until the next one."""
        notice = self.screen_stack[0].query_one("#notice", Static)
        notice.update(Text(line, "bold red" if bad else "bold green"))
        notice.set_class(bool(line), "shown")
        notice.set_class(bad, "error")

    # -- reading -------------------------------------------------------------

    def _look(self) -> None:
        if not self._looks and self.now is not None and monotonic() >= self._rests_until:
            self._looks = True
            self._look_in_thread(self.now.head)

    @work(thread=True, group="look", exit_on_error=False)
    def _look_in_thread(self, head: int) -> None:
        try:
            if self.timeline.changed_since(head):
                self.later(self.load)
        except Locked:
            pass  # another look will do
        except Exception as error:  # here and below: what ends a thread unseen leaves the screen waiting for ever
            self.later(self.fail, failures.told(error, "ui"))
        finally:
            self._looks = False

    def load(self, keep: str = "") -> None:
        """Reads the timeline anew; the cursor stays where it is, or goes to `keep`."""
        self._is_loading = True
        self._load(self.filter_text, frozenset(self.opened), keep)

    @work(thread=True, exclusive=True, group="load", exit_on_error=False)
    def _load(self, filter: str, opened: frozenset[str], keep: str) -> None:
        worker = get_current_worker()
        try:
            began = monotonic()
            now = self.timeline.now()
            known = self.now is not None and now.head == self.now.head
            for count in (_COUNTED,) if known else (0, _COUNTED):  # the list first, then its lines
                rows, total = self.read_rows(filter, opened, count)
                if worker.is_cancelled:
                    return
                self.later(self._loaded, now, rows, total, keep)
            self._rests_until = monotonic() + 3 * (monotonic() - began)  # a long journal is not read without a pause
        except Exception as error:
            if not worker.is_cancelled:
                self.later(self._not_loaded, failures.told(error, "ui"))

    def _not_loaded(self, error: TakebackError) -> None:
        self._is_loading, self._afterwards = False, None
        self.rows.settle()
        self.fail(error)

    def read_rows(self, filter: str, opened: frozenset[str], counted: int) -> tuple[list[Row], int]:
        """In a thread."""
        items = self.timeline.turns(filter, counted=counted)
        total = len(items) if not filter else len(self.timeline.turns(counted=0))
        return [row for item in items for row in self._rows_of(item, 0, opened, filter)], total

    def _rows_of(self, item: Item, depth: int, opened: frozenset[str], filter: str) -> Iterator[Row]:
        opens = bool(item.calls or item.effects) if isinstance(item, TurnItem) else _opens(item)
        is_open = opens and item.id in opened
        yield Row(item, depth, opens, is_open)
        if is_open:
            for child in self.timeline.children(item.id, filter):
                yield from self._rows_of(child, depth + 1, opened, filter)

    def _loaded(self, now: Now, rows: list[Row], total: int, keep: str) -> None:
        stale = self.now is None or now.head != self.now.head
        self._is_loading = False
        keep = keep or (self.first(now) if self.now is None else "")
        self.now, self._total = now, total
        if stale:
            self._shown = ""  # what is known of the item may have changed
        self.rows.show_rows(rows, keep)
        self._write_top()
        self._catch_up()
        notice = self.screen_stack[0].query_one("#notice", Static)
        if notice.has_class("error"):
            self.say("")
        self._refresh_keys()

    def _refresh_keys(self) -> None:
        """The keys below are drawn anew only where others are of use: that costs more than all else."""
        useful = self._act("held") is not None, self._act("unknown") is not None
        if useful != self._useful:
            self._useful = useful
            self.refresh_bindings()

    def first(self, now: Now) -> str:
        """The item that the cursor begins on, if not the newest."""
        return ""

    @on(Rows.Moved, "#list")
    def _moved(self) -> None:
        self._refresh_keys()
        if self._soon is not None:
            self._soon.stop()
        self._soon = self.set_timer(_SOON, self._read_item)

    def _read_item(self, again: bool = False) -> None:
        item = self.item
        if not self._is_there:
            return  # it has ended meanwhile
        if item is None:
            self._shown = ""
            self.detail.tell([Line(Text(self.nothing(), "dim"))], keep=False)
        elif again or self._shown != item.id:
            self.read_detail(item)

    @property
    def detail_width(self) -> int:
        """Cells of a line on the right, beside a scroll bar."""
        return max(40, self.detail.content_region.width - 2)

    def on_resize(self) -> None:
        if self._is_there and self._shown:
            self._shown = ""
            self._moved()

    def nothing(self) -> str:
        return "nothing matches; esc ends the filter" if self.filter_text else "nothing has happened yet"

    @work(thread=True, exclusive=True, group="detail", exit_on_error=False)
    def read_detail(self, item: Item) -> None:
        worker = get_current_worker()
        width = self.detail_width
        try:
            found = self.timeline.detail(item.id, masked=bool(self.agent))
            tied = [*item.undone_by, *(item.took if isinstance(item, TurnItem) else ())]
            called = {id: self._called(id) for id in tied}
            lines = detail_lines(found, self.shown_view, width, self.looking.clock(), called)
        except Exception as error:
            lines = unread(error)
        if not worker.is_cancelled:
            self.later(self._tell_detail, item.id, lines)

    def _called(self, id: str) -> str:
        try:
            item = self.timeline.item(id)
        except TakebackError:
            return ""
        return clip(safe(item.title), 60)

    def _tell_detail(self, id: str, lines: list[Line]) -> None:
        if self.item is not None and self.item.id == id:
            self.detail.tell(lines, keep=self._shown == id)
            self._shown = id
            self._draw_tabs()

    @on(Rows.Moved, "#detail")
    def _moved_in_detail(self) -> None:
        self._draw_tabs()

    # -- looking about -------------------------------------------------------

    @on(Rows.Chosen, "#list")
    def _open_or_close(self, event: Rows.Chosen) -> None:
        rows = self.rows
        row = rows.rows_shown[event.at] if event.at < rows.count else None
        if row is None:
            return
        if not row.opens:
            self.detail.focus()
            return
        self.opened ^= {row.item.id}
        self.load(keep=row.item.id)

    def action_other_pane(self) -> None:
        if len(self.screen_stack) > 1:
            self.screen.focus_next()
            return
        to_detail = not self.detail.has_focus
        if self.query(".zoomed"):
            self._zoom(to_detail)
        (self.detail if to_detail else self.rows).focus()
        self._draw_tabs()

    def action_zoom(self) -> None:
        if self.query(".zoomed"):
            for pane in self.query(".zoomed"):
                pane.remove_class("zoomed")
        else:
            self._zoom(self.detail.has_focus)

    def _zoom(self, detail: bool) -> None:
        self.query_one("#left").set_class(detail, "zoomed")
        self.query_one("#right").set_class(not detail, "zoomed")

    def action_view(self, view: str) -> None:
        if view in VIEWS:
            self.shown_view = view
            self._draw_tabs()
            self._shown = ""
            self._read_item(again=True)

    def action_tie(self) -> None:
        item = self.item
        if item is None:
            return
        ends = [*item.undone_by, *(item.took if isinstance(item, TurnItem) else ())]
        to = ends[-1] if ends else self._came_from
        if not to:
            self.say("nothing has taken this back, and it took nothing")
            return
        self._came_from = item.id
        self._go_to(to)

    @work(thread=True, group="go", exit_on_error=False)
    def _go_to(self, id: str) -> None:
        parent = self.timeline.parent(id)
        if parent:
            self.opened.add(parent)
        self.later(self.load, id)

    def action_keys(self) -> None:
        self.push_screen(Read("Keys", list(help.lines(min(self.size.width, 140) - 10))))

    async def action_quit(self) -> None:
        """Not in the middle of a take-back: it would go on unseen, and nobody would be told what came of it."""
        if not any(isinstance(screen, Planning) and screen.is_applying for screen in self.screen_stack):
            await super().action_quit()

    # -- the filter ----------------------------------------------------------

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = True
        self.screen.set_focus(box)  # at once: the next key is for it

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(0.12, lambda: self._set_filter(event.value))

    def _set_filter(self, text: str) -> None:
        if self._is_there and text != self.filter_text:
            self.filter_text = text
            self.say("")
            self.load()

    @on(Input.Submitted, "#filter")
    def action_end_typing(self) -> None:
        """The next key is for the list; what was typed before may still be on its way into the box."""
        self._is_loading = True
        self.screen.set_focus(self.rows)
        self.query_one("#filter", Input).call_later(self._typed_all)

    def _typed_all(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = bool(box.value)
        if box.value != self.filter_text:
            self._set_filter(box.value)
        else:
            self._is_loading = False
            self._catch_up()

    def action_leave_filter(self) -> None:
        if self.rows.compared:
            self.rows.compared = ""
            self.rows.refresh()
            self.say("")
            return
        box = self.query_one("#filter", Input)
        box.value = ""
        box.display = False
        self._set_filter("")
        self.screen.set_focus(self.rows)

    # -- taking back ---------------------------------------------------------

    def plan(self, verb: str, *words: str | int) -> None:
        self.take_back(Asked(verb, words))

    def take_back(self, asked: Asked) -> None:
        self.say("")
        self.push_screen(Planning(self.acting, asked, self.agent), self.after)

    def after(self, outcome: Outcome | None) -> None:
        self._look()

    def _catch_up(self) -> None:
        afterwards, self._afterwards = self._afterwards, None
        if afterwards is not None:
            self.call_later(afterwards)

    def _waits(self, action: Callable[[], None]) -> bool:
        """What is meant is what the filter leaves, which may not be there yet: it is done as soon as it is."""
        if self._is_loading:
            self._afterwards = action
        return self._is_loading

    def action_take_back(self) -> None:
        if self._waits(self.action_take_back):
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
        if self.item is not None and not self._waits(self.action_back_to):
            self.plan("rollback", self.item.rollback)

    def action_undo(self) -> None:
        self.plan("undo")

    def action_redo(self) -> None:
        self.plan("redo")

    def action_restore(self) -> None:
        if self.item is not None and not self._waits(self.action_restore):
            self._offer_files(self.item, self.detail.path)

    @work(thread=True, exclusive=True, group="choose", exit_on_error=False)
    def _offer_files(self, item: Item, path: str) -> None:
        """One file as it was at a checkpoint, or just before a turn."""
        try:
            mark = self.timeline.checkpoint_at(item.id)
            if mark is None:
                self.later(self.say, "there is no checkpoint from before this", True)
                return
            tree = [found for found, kind, *_ in self.timeline.tree(mark.id) if kind != "folder"]
        except Exception as error:
            self.later(self.fail, failures.told(error, "ui"))
            return
        if path and path in tree:
            self.later(self.plan, "restore", mark.id, path)
            return
        if not tree:
            self.later(self.say, f"there was no file at {mark.id[:8]}", True)
            return
        mine = set(item.paths) if isinstance(item, EffectItem) else set()
        label = f" “{clip(safe(mark.label), 40)}”" if mark.label else ""
        question = f"Which file, as it was at {mark.id[:8]}{label}, {age(self.looking.clock() - mark.at)}?"
        choices = [Choice(found, found) for found in sorted(tree, key=lambda each: (each not in mine, each))]

        def choose() -> None:
            self.push_screen(Choose(question, choices), chosen)

        def chosen(found: str | None) -> None:
            if found:
                self.plan("restore", mark.id, found)

        self.later(choose)

    # -- other acts ----------------------------------------------------------

    def do(self, work: Callable[[], str]) -> None:
        """Something quick that writes, in a thread; what it returns is said."""
        self._do(work)

    @work(thread=True, group="act", exit_on_error=False)
    def _do(self, work: Callable[[], str]) -> None:
        try:
            told = work()
        except Exception as error:
            self.later(self.fail, failures.told(error, "ui"))
            return
        self.later(self.say, told)
        self.later(self._look)

    def fail(self, error: TakebackError) -> None:
        self.say(f"{safe(error.message)} → {safe(error.hint)}", bad=True)

    def action_checkpoint(self) -> None:
        def take(label: str | None) -> None:
            if label is not None:
                self.say("taking a checkpoint …")
                self.do(lambda: captured_said(self.acting.checkpoint(label.strip())))

        self.push_screen(Ask("Label of the checkpoint; it may be empty", "before the refactor"), take)

    def action_pin(self) -> None:
        item = self.item
        mark = item.marks[0] if isinstance(item, TurnItem) and item.marks else None
        if mark is None:
            self.say("only a checkpoint can be pinned", bad=True)
            return

        def pin() -> str:
            found = self.acting.pin(mark.id, keep=not mark.pinned)
            return f"checkpoint {mark.number} {found.id[:8]} is {'kept for ever' if found.pinned else 'kept no longer'}"

        self.do(pin)

    def action_compare(self) -> None:
        item, rows = self.item, self.rows
        if item is None:
            return
        if not rows.compared:
            rows.compared = item.id
            rows.refresh()
            self.say("compare: choose the other point, then = again (here: with now; esc ends it)")
            return
        one, rows.compared = rows.compared, ""
        rows.refresh()
        self.say("")
        self._compare(one, item.id)

    @work(thread=True, exclusive=True, group="choose", exit_on_error=False)
    def _compare(self, one: str, other: str) -> None:
        try:
            marks = [self.timeline.checkpoint_at(id) for id in dict.fromkeys((one, other))]
            found = sorted({mark.id: mark for mark in marks if mark is not None}.values(), key=lambda mark: mark.at)
            if not found:
                self.later(self.say, "there is no checkpoint from before this", True)
                return
            a, b = found[0].id, found[1].id if len(found) > 1 else ""
            diff = self.looking.diff(a, b)
        except Exception as error:
            self.later(self.fail, failures.told(error, "ui"))
            return
        files = tuple(mask_file(file) for file in diff.files) if self.agent else diff.files
        paper = Paper(self.size.width - 8)
        ends = [f"{c.id[:8]}" + (f" “{clip(safe(c.label), 30)}”" if c.label else "") for c in (diff.a, diff.b) if c]
        title = " → ".join([*ends, "now"][:2]) + ("" if files else ": no difference")
        lines = [styled(line) for line in diffs.lines(paper, files)]
        total = [styled(diffs.totals(paper, files))] if files else []
        self.later(self.push_screen, Read(title, [*total, Text(""), *lines] if files else []))

    def _act(self, *states: str) -> EffectItem | None:
        """The effect outside the files that the cursor is on, if it is in one of these states."""
        item = self.item
        return item if isinstance(item, EffectItem) and item.row.state in states else None

    def _is_refused(self, what: str) -> bool:
        if self.agent:
            self.fail(ApprovalNeeded(f"{what} is for a person, and {self.agent}", "run it in a terminal of your own"))
        return bool(self.agent)

    def action_resolve(self) -> None:
        item = self._act("unknown")
        if item is None or self._is_refused("saying what came of an undo"):
            return
        choices = [
            Choice("done", "it took effect"),
            Choice("not", "it did not; it may be sent again, after a yes"),
        ]

        def settle(said: str | None) -> None:
            if said:
                self.do(lambda: self._resolved(item.id, said == "done"))

        self.push_screen(Choose(f"What came of taking back “{clip(safe(item.title), 60)}”?", choices), settle)

    def _resolved(self, id: str, done: bool) -> str:
        act = self.acting.resolve(id, done)
        return f"noted: {safe(act.summary)} {'was taken back' if act.undone_by else f'is {act.shown_state}'}"

    def action_send(self) -> None:
        item = self._act("held")
        if item is not None and not self._is_refused("releasing mail"):
            self._offer_mail(item.id)

    @work(thread=True, exclusive=True, group="choose", exit_on_error=False)
    def _offer_mail(self, id: str) -> None:
        from ..cli.email import write_mail

        paper = Paper(self.size.width - 8)
        try:
            act = self.acting.find_email(id)
            write_mail(paper, self.acting, act)
        except Exception as error:
            self.later(self.fail, failures.told(error, "ui"))
            return
        mail = act.did.get("mail", {})
        to = listed([box for field in ("to", "cc", "bcc") for box in mail.get(field, ())], 6)
        question = f"Type yes to send it to {to} (this cannot be undone):"

        def send(yes: bool | None) -> None:
            if yes:
                self.say("sending …")
                self.do(lambda: self._sent(act.id))
            else:
                self.say(f"{act.id[:8]} stays held; x drops it")

        self.later(self.push_screen, TypeYes("Send mail", paper.read(), question), send)

    def _sent(self, id: str) -> str:
        act = self.acting.release_email(id, approved=True, by=_BY)
        return f"{act.id[:8]} {safe(str(act.did.get('left_to_do', 'sent')))}"

    # -- keys and commands ---------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "command_palette":
            return len(self.screen_stack) == 1
        if action == "end_typing":
            return isinstance(self.focused, FilterBox)
        if action == "filter":
            return len(self.screen_stack) == 1 and not isinstance(self.focused, Input)
        if action == "send":
            return self._is_there and self._act("held") is not None
        if action == "resolve":
            return self._is_there and self._act("unknown") is not None
        return True

    @property
    def _is_there(self) -> bool:
        return bool(self.screen_stack and self.screen_stack[0].query("#list"))

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
        yield SystemCommand("Compare", "two points, or one with now (=)", self.action_compare)
        yield SystemCommand("Filter", "by words, path, actor, domain, verdict, time (/)", self.action_filter)
        yield SystemCommand("Send mail", "release the held mail at the cursor (s)", self.action_send)
        yield SystemCommand("Resolve", "say what came of an unknown undo (v)", self.action_resolve)
        yield SystemCommand("Raw JSON", "of the item at the cursor (3)", lambda: self.action_view("json"))
        yield SystemCommand("Theme", "other colours", self.action_change_theme)
        yield SystemCommand("Keys", "every key (?)", self.action_keys)
        yield SystemCommand("Quit", "leave (q)", self.action_quit)


def unread(error: Exception) -> list[Line]:
    """What stands on the right where an item cannot be read."""
    told = failures.told(error, "ui")
    return [Line(Text(safe(told.message), "red")), Line(Text(f"→ {safe(told.hint)}"))]


def _opens(item: CallItem | EffectItem) -> bool:
    """A call with one effect says all of it itself."""
    return isinstance(item, CallItem) and len(item.effects) > 1
