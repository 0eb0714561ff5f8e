"""Rows that are drawn only where they are seen: a list of ten thousand costs what a screenful does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Rows(ScrollView, can_focus=True):
    """One line each, with a cursor. A child class says how many there are and how each looks."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor", "rows--cursor-blurred"}
    DEFAULT_CSS = """
    Rows {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & > .rows--cursor { background: $primary-background; text-style: bold; }
        & > .rows--cursor-blurred { background: $surface-lighten-1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("home,g", "edge(0)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
    ]

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, rows: Rows) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> Rows:
            return self.rows

    class Chosen(Message):
        """A row was opened: by Enter or a second click. The cursor may have gone on since."""

        def __init__(self, rows: Rows) -> None:
            super().__init__()
            self.rows = rows
            self.at = rows.cursor

        @property
        def control(self) -> Rows:
            return self.rows

    # -- for child classes ---------------------------------------------------

    @property
    def count(self) -> int:
        raise NotImplementedError

    def row(self, at: int, width: int) -> Text:
        raise NotImplementedError

    def resize_rows(self) -> None:
        """After the rows have changed."""
        self.virtual_size = Size(self.widest, self.count)
        if self.cursor >= self.count:
            self.cursor = max(0, self.count - 1)
        self.refresh()

    @property
    def widest(self) -> int:
        """How far it can be scrolled sideways."""
        return 1

    # -- drawing -------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        at, width = scroll_y + y, self.scrollable_content_region.width
        base = self.rich_style
        if at >= self.count:
            return Strip.blank(width, base)
        text = self.row(at, max(1, width))
        style = base
        if at == self.cursor and self.shows_cursor:
            style = base + self.get_component_rich_style("rows--cursor" if self.has_focus else "rows--cursor-blurred")
        own = self.app.console.get_style(text.style) if text.style else Style.null()
        segments = [
            Segment(s.text, style + own + (s.style or Style.null()), None)
            for s in text.render(self.app.console, end="")
        ]
        strip = Strip(segments).crop_extend(scroll_x, scroll_x + width, style)
        return strip.apply_style(Style(meta={"row": at}))

    @property
    def shows_cursor(self) -> bool:
        return True

    def watch_cursor(self, old: int, new: int) -> None:
        self.refresh_row(old)
        self.refresh_row(new)
        self.scroll_to_region(Region(int(self.scroll_x), new, 1, 1), animate=False, force=True)
        self.post_message(self.Moved(self))

    def validate_cursor(self, at: int) -> int:
        return max(0, min(at, self.count - 1))

    def refresh_row(self, at: int) -> None:
        self.refresh(Region(0, at - self.scroll_offset.y, self.size.width, 1))

    def on_resize(self) -> None:
        self.resize_rows()

    def on_focus(self) -> None:
        self.refresh_row(self.cursor)

    def on_blur(self) -> None:
        self.refresh_row(self.cursor)

    # -- moving --------------------------------------------------------------

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, by: int) -> None:
        self.cursor += by * max(1, self.scrollable_content_region.height - 1)

    def action_edge(self, which: int) -> None:
        self.cursor = self.count - 1 if which else 0

    async def on_click(self, event: events.Click) -> None:
        at = event.style.meta.get("row") if event.style else None
        if at is None:
            return
        again = at == self.cursor
        self.cursor = at
        if again or event.chain > 1:
            self.post_message(self.Chosen(self))


class Lines(Rows):
    """A text to be read, line by line; without a cursor it scrolls."""

    DEFAULT_CSS = """
    Lines { overflow-x: auto; scrollbar-size-horizontal: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "sideways(8)", "Right", show=False),
        Binding("left,h", "sideways(-8)", "Left", show=False),
    ]

    def __init__(self, *, id: str | None = None, cursor: bool = False) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Text] = ()
        self._widest = 1
        self._has_cursor = cursor

    def show_lines(self, lines: Sequence[Text], keep: bool = False) -> None:
        self.lines = lines
        self._widest = max((line.cell_len for line in lines), default=1)
        if not keep:
            self.set_reactive(Rows.cursor, 0)
            self.scroll_to(0, 0, animate=False, force=True)
        self.resize_rows()

    @property
    def shows_cursor(self) -> bool:
        return self._has_cursor and self.has_focus

    @property
    def count(self) -> int:
        return len(self.lines)

    @property
    def widest(self) -> int:
        return self._widest

    def row(self, at: int, width: int) -> Text:
        return self.lines[at]

    def action_move(self, by: int) -> None:
        if self._has_cursor:
            super().action_move(by)
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        if self._has_cursor:
            super().action_page(by)
        else:
            self.scroll_relative(y=by * max(1, self.size.height - 1), animate=False)

    def action_edge(self, which: int) -> None:
        if self._has_cursor:
            super().action_edge(which)
        else:
            self.scroll_to(y=self.max_scroll_y if which else 0, animate=False)

    def action_sideways(self, by: int) -> None:
        self.scroll_relative(x=by, animate=False)
