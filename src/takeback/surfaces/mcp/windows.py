"""A part of what is too long to answer at once, and where to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from takeback.show.views import FileDiff

from .answers import LONGEST_LINE, Page


class Window(NamedTuple):
    files: tuple[FileDiff, ...]
    total: int  # lines of all of them


def windowed(files: Sequence[FileDiff], offset: int, limit: int) -> Window:
    """The files that some lines of a diff belong to, with just those lines. A file's heading is a line too."""
    at, end = 0, offset + limit
    out = []
    for found in files:
        head, hunks = at, []
        at += 1
        for hunk in found.hunks:
            lines = [_short(line) for n, line in enumerate(hunk.lines, at) if offset <= n < end]
            at += len(hunk.lines)
            if lines:
                hunks.append(hunk._replace(lines=tuple(lines)))
        if hunks or offset <= head < end:
            out.append(found._replace(hunks=tuple(hunks)))
    return Window(tuple(out), at)


def more(page: Page, what: str, offset: int, limit: int, total: int) -> int | None:
    """Says that there is more, and from where."""
    end = offset + limit
    if end >= total:
        return None
    page.hint(f"{what} {offset + 1:,}–{end:,} of {total:,}; for the rest call again with offset {end}")
    return end


def _short(line: bytes) -> bytes:
    return line if len(line) <= LONGEST_LINE // 4 else line[: LONGEST_LINE // 4] + "… (line cut)".encode()
