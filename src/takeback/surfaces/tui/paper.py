"""A terminal that nobody sees: what the command line would print there is read back as styled text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from takeback.surfaces.wording.screen import Screen
from takeback.surfaces.wording.text import counted

_TAB = 4
_CONSOLE = Console(color_system=None)  # wrapping needs one; nothing is printed on it


class Paper(Screen):
    """Collects lines, results and hints in the order in which they are said."""

    color = True
    out_is_tty = True

    def __init__(self, width: int) -> None:
        self.written: list[str] = []
        self._width = max(40, width)

    @property
    def width(self) -> int:
        return self._width

    @property
    def height(self) -> int:
        return 60

    def write(self, line: str = "") -> None:
        self.written.append(line)

    def hint(self, line: str) -> None:
        self.written.append(self.style(line, "dim"))

    def warn(self, line: str) -> None:
        self.written.append(self.style(line, "yellow"))

    def page(self, lines: Iterable[str]) -> None:
        self.written += lines

    def read(self) -> list[Text]:
        return [styled(line) for line in self.written]


def styled(line: str) -> Text:
    """A line with the colours of the command line, whose words are safe already."""
    text = Text.from_ansi(line.expandtabs(_TAB)) if "\x1b" in line else Text(line.expandtabs(_TAB))
    text.no_wrap = True
    return text


def wrapped(text: Text, width: int, indent: int = 2) -> list[Text]:
    """Prose on as many lines as it needs."""
    width = max(20, width)
    if text.cell_len <= width:
        return [text]
    whole = text.copy()
    whole.no_wrap = False
    first = whole.wrap(_CONSOLE, width, no_wrap=False)[0]
    rest = whole[len(first.plain) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    lines = [first, *(Text(" " * indent).append_text(line) for line in rest.wrap(_CONSOLE, max(20, width - indent)))]
    for line in lines:
        line.rstrip()
    return lines


def cut(lines: Sequence[Text], most: int) -> list[Text]:
    """The first ones; that there are more is told."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[:most], Text(f"… and {counted(len(lines) - most, 'line')} more", "dim")]
