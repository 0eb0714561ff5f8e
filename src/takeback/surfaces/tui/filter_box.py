"""Where the filter is typed."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

_PAUSE = 0.12  # seconds without a key, after which what was typed is meant


class FilterBox(Input):
    """Seen while it is typed in, and as long as it holds something."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "To the list"),
        Binding("escape", "app.leave_filter", "End the filter"),
        Binding("down", "submit", "To the list", show=False),
    ]

    class Meant(Message):
        """A filter is to be used."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, text: str) -> None:
        super().__init__(text, placeholder="words, path:src/ actor:claude since:2h verdict:exact …", id="filter")
        self._typing: Timer | None = None

    def on_mount(self) -> None:
        self.hide_if_empty()

    def hide_if_empty(self) -> None:
        self.display = bool(self.value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_PAUSE, lambda: self.post_message(self.Meant(event.value)))
