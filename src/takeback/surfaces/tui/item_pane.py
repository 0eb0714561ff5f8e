"""The right pane: one item in full, read in a thread once the cursor of the list rests on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import DescendantBlur, DescendantFocus
from textual.timer import Timer
from textual.widgets import Static
from textual.worker import get_current_worker

from takeback.show.timeline_items import Item
from takeback.surfaces.wording import failures
from takeback.surfaces.wording.text import clip_path, safe

from .detail import VIEWS, Line
from .later import HasThreads
from .rows import Lines, Rows

_SOON = 0.08  # seconds a cursor has to rest before its item is read
_TABS = {"changes": "1 Changes", "about": "2 About", "json": "3 JSON"}

Reader = Callable[[Item, str, int], list[Line]]  # an item, the view, and the width of a line


class Detail(Lines):
    """Lines that know which file they are about."""

    def __init__(self) -> None:
        super().__init__(id="detail", cursor=True)
        self.told: list[Line] = []

    def tell(self, lines: list[Line], keep: bool) -> None:
        self.told = lines
        self.show_lines([line.text for line in lines], keep)

    @property
    def path(self) -> str:
        return self.told[self.cursor].path if self.has_focus and self.cursor < len(self.told) else ""


class ItemPane(HasThreads, Vertical):
    def __init__(self, read: Reader, tabs: bool = True) -> None:
        super().__init__(id="right")
        self._read = read
        self._has_tabs = tabs
        self._item: Item | None = None
        self._nothing = ""
        self._shown = ""  # id of the item that is told
        self._is_stale = False
        self._soon: Timer | None = None
        self.view = VIEWS[0]

    def compose(self) -> ComposeResult:
        yield Static("", id="tabs")
        yield Detail()

    def on_mount(self) -> None:
        self.query_one("#tabs").display = self._has_tabs
        self.draw_tabs()

    @property
    def is_there(self) -> bool:
        return bool(self.is_running and self.query(Detail))

    @property
    def detail(self) -> Detail:
        return self.query_one(Detail)

    # -- what is shown -------------------------------------------------------

    def follow(self, item: Item | None, nothing: str, is_stale: bool = False) -> None:
        """Shows an item soon, or that there is `nothing`; what is known of the one that is shown may be `stale`."""
        self._item, self._nothing = item, nothing
        self._is_stale |= is_stale
        if self._soon is not None:
            self._soon.stop()
        self._soon = self.set_timer(_SOON, self._begin)

    def show_view(self, view: str) -> None:
        self.view = view
        self._shown = ""
        self.draw_tabs()
        self._begin()

    def on_resize(self) -> None:
        if self._shown:
            self.follow(self._item, self._nothing, is_stale=True)

    def _begin(self) -> None:
        if not self.is_there:
            return  # the program has ended meanwhile
        if self._item is None:
            self._shown = ""
            self.detail.tell([Line(Text(self._nothing, "dim"))], keep=False)
        elif self._is_stale or self._shown != self._item.id:
            self._is_stale = False
            self._read_in_thread(self._item, self.view, max(40, self.detail.content_region.width - 2))

    @work(thread=True, exclusive=True, group="detail", exit_on_error=False)
    def _read_in_thread(self, item: Item, view: str, width: int) -> None:
        worker = get_current_worker()
        try:
            lines = self._read(item, view, width)
        except Exception as error:  # what ends a thread unseen leaves the screen waiting for ever
            lines = list(_unread(error))
        if not worker.is_cancelled:
            self.later(self._tell, item.id, lines)

    def _tell(self, id: str, lines: list[Line]) -> None:
        if self._item is not None and self._item.id == id:
            self.detail.tell(lines, keep=self._shown == id)  # whoever reads it stays where he is
            self._shown = id
            self.draw_tabs()

    # -- the line above it ---------------------------------------------------

    @on(Rows.Moved, "#detail")
    @on(DescendantFocus)
    @on(DescendantBlur)
    def draw_tabs(self) -> None:
        if not self.is_there:
            return
        parts = [
            f"[@click=app.view('{view}')]{f'[b reverse] {name} [/]' if view == self.view else f' {name} '}[/]"
            for view, name in _TABS.items()
        ]
        path = self.detail.path
        parts += [" [dim]x f: only[/] $path"] if path else []
        self.query_one("#tabs", Static).update(Content.from_markup("".join(parts), path=clip_path(safe(path), 30)))


def _unread(error: Exception) -> Iterator[Line]:
    """What stands there if an item cannot be read."""
    told = failures.told(error, "ui")
    yield Line(Text(safe(told.message), "red"))
    yield Line(Text(f"→ {safe(told.hint)}"))
