"""Where words go: a terminal, a page of a browser, an answer to an agent. Each surface has its own kind of screen.

What is said alike everywhere is written to a `Screen`; only the surface knows what becomes of the lines.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ways import typed

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "magenta": "35"}


class Screen:
    """Takes lines: results, prose about them, hints and warnings."""

    below = ""  # the folder below the project's root that commands are typed in
    quiet = False  # leaves out prose and hints
    color = False
    out_is_tty = False  # whether lines are cut to the width

    @property
    def width(self) -> int:
        """How many columns a line may take."""
        return 120

    @property
    def height(self) -> int:
        """How many lines are seen at once."""
        return 50

    def style(self, text: str, *names: str) -> str:
        """The text in these colours, where there are any."""
        if not self.color or not names or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[n] for n in names)}m{text}\x1b[0m"

    def typed(self, path: bytes) -> str:
        """A path of the project as a word of a command that is typed here."""
        return typed(path, self.below)

    def write(self, line: str = "") -> None:
        """A result."""
        raise NotImplementedError

    def say(self, line: str = "") -> None:
        """Prose about a result, which a quiet screen leaves out."""
        if not self.quiet:
            self.write(line)

    def say_withheld(self) -> None:
        """What a quiet screen left out, after all: for where it turned out that something went wrong."""

    def hint(self, line: str) -> None:
        """What to do next."""
        raise NotImplementedError

    def warn(self, line: str) -> None:
        """Something that should not be missed, quiet or not."""
        raise NotImplementedError

    def page(self, lines: Iterable[str]) -> None:
        """Many lines, which a terminal shows one screenful after another."""
        for line in lines:
            self.write(line)
