"""Where the command line's own words go instead of a screen: for the surfaces that say the same elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterable


class Page(Terminal):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.quiet = self.color = self.interactive = False
        self.out_is_tty = self.err_is_tty = False
        self.environ = {}

    @property
    def width(self) -> int:
        return 120

    @property
    def height(self) -> int:
        return 50

    def write(self, line: str = "") -> None:
        self.lines.append(line)

    hint = warn = write

    def page(self, lines: Iterable[str]) -> None:
        self.lines += lines

    def __str__(self) -> str:
        return "\n".join(self.lines)
