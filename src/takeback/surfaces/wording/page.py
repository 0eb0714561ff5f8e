"""A screen that collects its lines, for surfaces that say the same elsewhere than on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable


class Page(Screen):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str = "") -> None:
        self.lines.append(line)

    hint = warn = write

    def page(self, lines: Iterable[str]) -> None:
        self.lines += lines

    def __str__(self) -> str:
        return "\n".join(self.lines)
