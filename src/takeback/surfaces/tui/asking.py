"""Small questions: a line of text, one of several, a word that has to be typed. None of them knows a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label

from takeback.surfaces.wording.text import clip, safe

from .rows import Lines, Rows

_CANCEL = Binding("escape", "dismiss(None)", "Cancel")


class Ask(ModalScreen[str | None]):
    """One line of text; None if it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [_CANCEL]

    def __init__(self, question: str, placeholder: str = "", text: str = "") -> None:
        super().__init__()
        self._question = question
        self._placeholder = placeholder
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog small"):
            yield Label(self._question, markup=False)
            yield Input(self._text, placeholder=self._placeholder)
            yield Footer(show_command_palette=False, compact=True)

    @on(Input.Submitted)
    def submit(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class TypeYes(ModalScreen[bool]):
    """Shows all that a person must have seen, and waits for the whole word, so that no stray key does it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(False)", "Leave it")]

    def __init__(self, title: str, lines: Sequence[Text], question: str) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._title, classes="title", markup=False)
            yield Lines(id="text")
            yield Label(self._question, classes="question", markup=False)
            yield Input(placeholder="yes")
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one("#text", Lines).show_lines(self._lines)
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def submit(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip().lower() == "yes")


class Read(ModalScreen[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss(None)", "Close")]

    def __init__(self, title: str, lines: Sequence[Text]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._title, classes="title", markup=False)
            yield Lines(id="text")
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        lines = self.query_one("#text", Lines)
        lines.show_lines(self._lines)
        lines.focus()


class Choice(NamedTuple):
    value: str
    title: str


class _Choices(Rows):
    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__(id="choices")
        self.choices = choices

    @property
    def count(self) -> int:
        return len(self.choices)

    def row(self, at: int, width: int) -> Text:
        text = Text("› " if at == self.cursor else "  ", "bold cyan", no_wrap=True)
        return text.append(clip(safe(self.choices[at].title), max(8, width - 2)), "")


class Choose(ModalScreen[str | None]):
    """One of several; typing narrows them down."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _CANCEL,
        Binding("down", "step(1)", "Next", show=False),
        Binding("up", "step(-1)", "Previous", show=False),
        Binding("enter", "take", "Choose", priority=True),
    ]

    def __init__(self, question: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._question = question
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="title", markup=False)
            yield Input(placeholder="type to narrow down")
            yield _Choices(self._choices)
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        rows, words = self.query_one(_Choices), event.value.casefold().split()
        rows.choices = [c for c in self._choices if all(word in c.title.casefold() for word in words)]
        rows.cursor = 0
        rows.resize_rows()

    def action_step(self, by: int) -> None:
        self.query_one(_Choices).action_move(by)

    @on(Rows.Chosen)
    def action_take(self) -> None:
        rows = self.query_one(_Choices)
        self.dismiss(rows.choices[rows.cursor].value if rows.choices else None)
