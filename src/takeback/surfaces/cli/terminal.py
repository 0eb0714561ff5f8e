"""The terminal: its streams, width, pager, questions and progress."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from takeback.surfaces.wording.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

    from .progress import Progress


class Terminal(Screen):
    """Where this run prints and asks. Results go to standard output, hints and progress to standard error."""

    has_told = False  # on either stream
    _withheld: tuple[str, ...] = ()  # what --quiet left out
    _progress: Progress | None = None  # drawn on a line of its own, which is wiped before anything else is said

    def __init__(self, environ: Mapping[str, str], color: bool = True, quiet: bool = False) -> None:
        self.quiet = quiet
        self.environ = environ
        self.out: TextIO = sys.stdout or open(os.devnull, "w")  # closed by whoever started us
        self.err: TextIO = sys.stderr or open(os.devnull, "w")
        for stream in (self.out, self.err):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        self.out_is_tty = self.out.isatty()
        self.err_is_tty = self.err.isatty()
        plain = not color or environ.get("NO_COLOR", "") != "" or environ.get("TERM", "") in ("dumb", "")
        self.color = self.out_is_tty and not plain
        self._err_color = self.err_is_tty and not plain
        self.interactive = self.out_is_tty and sys.stdin is not None and sys.stdin.isatty()

    def leave_output(self) -> None:
        """Everything goes to standard error from here on: standard output is another program's."""
        self.out, self.out_is_tty, self.color = self.err, self.err_is_tty, self._err_color
        self.interactive = self.err_is_tty and sys.stdin is not None and sys.stdin.isatty()

    # -- size ----------------------------------------------------------------

    @property
    def width(self) -> int:
        return self._size(self.out, "COLUMNS", 0, 100 if not self.out_is_tty else 80)

    @property
    def err_width(self) -> int:
        """Of standard error, which may be a terminal where output is not."""
        return self._size(self.err, "COLUMNS", 0, 80)

    @property
    def height(self) -> int:
        return self._size(self.out, "LINES", 1, 24)

    def _size(self, stream: TextIO, variable: str, which: int, otherwise: int) -> int:
        if (given := self.environ.get(variable, "")).isdecimal() and int(given) > 0:
            return int(given)
        try:
            return os.get_terminal_size(stream.fileno())[which] or otherwise
        except (OSError, ValueError, AttributeError):
            return otherwise

    # -- printing ------------------------------------------------------------

    def write(self, line: str = "") -> None:
        """A result."""
        self._wipe()
        self.has_told = True
        self.out.write(line + "\n")

    def say(self, line: str = "") -> None:
        """Prose about a result, which --quiet leaves out."""
        if not self.quiet:
            self.write(line)
        else:
            self._withheld += (line,)

    def hint(self, line: str) -> None:
        """What to do next, on standard error."""
        if not self.quiet:
            self._tell(line, "2")
        else:
            self._withheld += (line,)

    def warn(self, line: str) -> None:
        """Something that should not be missed, quiet or not."""
        self._tell(line, "33")

    def say_withheld(self) -> None:
        """What --quiet left out, on standard error: for where it turned out that something went wrong."""
        for line in self._withheld:
            self._tell(line, "33")
        self._withheld = ()

    def _tell(self, line: str, colour: str) -> None:
        self._wipe()
        self.has_told = True
        self.out.flush()
        self.err.write(f"\x1b[{colour}m{line}\x1b[0m\n" if self._err_color else f"{line}\n")
        self.err.flush()

    def _wipe(self) -> None:
        if self._progress is not None:
            self._progress.wipe()

    def json(self, value: object) -> None:
        self.has_told = True
        json.dump(value, self.out, indent=2 if self.out_is_tty else None)
        self.out.write("\n")

    def page(self, lines: Iterable[str]) -> None:
        """Long output through a pager on a terminal; everything at once elsewhere."""
        if not self.out_is_tty:
            for line in lines:
                self.write(line)
            return
        shown = list(lines)
        if len(shown) < self.height or not self._through_pager("\n".join(shown) + "\n"):
            self.write("\n".join(shown))

    def _through_pager(self, text: str) -> bool:
        try:
            command = shlex.split(self.environ.get("PAGER", "less -FRX"))  # an empty one means none
        except ValueError:  # a quote that does not end
            return False
        if not command or command == ["cat"]:
            return False
        self.out.flush()
        before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the pager's, which would die with us
        try:
            # The user's own choice of pager, run without a shell.
            found = subprocess.run(command, input=text.encode("utf-8", "backslashreplace"), check=False)
        except OSError:
            return False
        finally:
            signal.signal(signal.SIGINT, before)
        return found.returncode != 127

    # -- asking --------------------------------------------------------------

    def ask(self, question: str) -> str:
        """A line typed by a person; nothing at the end of input."""
        self.out.write(self.style(question, "bold") + " ")
        self.out.flush()
        answer = sys.stdin.readline()
        if not answer:
            self.out.write("\n")
        return answer.strip()

    def confirm(self, question: str) -> bool:
        """A yes or a no; anything but a yes is a no."""
        return self.ask(f"{question} [y/N]").lower() in ("y", "yes")

    # -- progress ------------------------------------------------------------

    @property
    def draws(self) -> bool:
        """Whether somebody sees progress, and wants to."""
        return self.err_is_tty and not self.quiet and self.environ.get("TERM", "") not in ("dumb", "")

    def progress(self, doing: str, total: int = 0, unit: str = "") -> Progress | None:
        """A line on standard error that counts, on a terminal only."""
        if not self.draws:
            return None
        from .progress import Progress

        self._progress = Progress(self, doing, total, unit)
        return self._progress
