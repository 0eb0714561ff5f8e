"""Text that is fit to be shown: safe names, cut to a width, counted and dated.

Whatever comes from outside (names, labels, links, file contents) goes through `safe` before it is printed, so
that no name can move the cursor, recolour the screen or turn the text round.
"""

from __future__ import annotations

import re
import textwrap
import time
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
