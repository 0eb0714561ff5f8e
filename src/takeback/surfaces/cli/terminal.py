"""The terminal: colours, safe names, width, pager, questions and progress.

Whatever comes from outside (names, labels, links, file contents) goes through `safe` before it is printed, so
that no name can move the cursor, recolour the screen or turn the text round.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from .progress import Progress

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "magenta": "35"}

# C0, DEL, C1; marks that turn text round or hide in it; line and paragraph separators; lone surrogates; tags.
# As text: most runs meet no such name and never compile it.
_UNSAFE = (
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_UNSAFE_IN_TEXT = _UNSAFE.replace("\x00-\x1f", "\x00-\x08\x0a-\x1f")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code in _SHORT:
        return _SHORT[code]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SHORT = {9: "\\t", 10: "\\n", 13: "\\r"}


def safe(text: str) -> str:
    """A name as it can be shown on one line: what would steer the terminal is written out."""
    return text if text.isascii() and text.isprintable() else re.sub(_UNSAFE, _escape, text)


def safe_line(line: bytes) -> str:
    """A line of somebody's file; tabs stay."""
    return re.sub(_UNSAFE_IN_TEXT, _escape, line.decode("utf-8", "surrogateescape"))


def cells(text: str) -> int:
    """How many columns a text takes, without our colours."""
    plain = re.sub("\x1b\\[[0-9;]*m", "", text) if "\x1b" in text else text
    if plain.isascii():
        return len(plain)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in plain)
    return len(plain) + wide - sum(unicodedata.combining(c) != 0 for c in plain)


def _fitting(text: Iterable[str], width: int) -> int:
    """How many characters of a text fit into so many columns; a prompt may be very long, so no more of it is read."""
    fit = 0
    for char in text:
        width -= cells(char)
        if width < 0:
            break
        fit += 1
    return fit


def _fits(text: str, width: int) -> bool:
    return _fitting(text, width) == len(text) or ("\x1b" in text and cells(text) <= width)


def pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def clip(text: str, width: int) -> str:
    """A plain text cut to a width, with a sign that it was."""
    if _fits(text, width):
        return text
    return text[: _fitting(text, width - 1)] + "…"


def clip_path(path: str, width: int) -> str:
    """A path cut in front: its end says more."""
    if _fits(path, width):
        return path
    return "…" + path[len(path) - _fitting(reversed(path), width - 1) :]


def clip_middle(text: str, width: int) -> str:
    """A text cut in its middle: how it begins and how it ends say most."""
    if _fits(text, width):
        return text
    end = text[-(width // 3) :] if width >= 3 else ""
    while cells(end) > width // 3:
        end = end[1:]
    return clip(text, width - cells(end)) + end


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Lines broken between words."""
    more = " " * indent
    return textwrap.wrap(
        text, max(20, width), subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    ) or [text]


def age(seconds: float) -> str:
    """How long ago, as people say it."""
    if seconds < 10:
        return "just now"
    for size, unit in ((60, "s"), (3600, "min"), (86400, "h"), (86400 * 14, "days"), (86400 * 70, "weeks")):
        if seconds < size:
            each = {"s": 1, "min": 60, "h": 3600, "days": 86400, "weeks": 86400 * 7}[unit]
            count = int(seconds // each)
            return f"{count} {unit.rstrip('s') if count == 1 and unit != 's' else unit} ago"
    return f"{int(seconds // (86400 * 30))} months ago"


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def counted(n: int, word: str) -> str:
    plural = word[:-1] + "ies" if word.endswith("y") else word + "s"
    return f"{n:,} {word if n == 1 else plural}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """'a, b, c, …' with every name made safe."""
    return ", ".join(safe(n) for n in names[:most]) + (", …" if len(names) > most else "")


class Terminal:
    """Where this run prints and asks. Results go to standard output, hints and progress to standard error."""

    below = ""  # the folder below the project's root that commands are typed in
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

    def typed(self, path: bytes) -> str:
        """A path of the project as a word of a command that is typed here."""
        from takeback.surfaces.wording.ways import typed

        return typed(path, self.below)

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

    def style(self, text: str, *names: str) -> str:
        if not self.color or not names or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[n] for n in names)}m{text}\x1b[0m"

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
