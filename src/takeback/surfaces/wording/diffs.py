"""Differences between two trees as a person reads them: one heading per file, its hunks, totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.text.units import format_size

from .screen import Screen
from .text import cells, counted, pad, safe, safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from takeback.model.effects import Checkpoint
    from takeback.show.views import Diff, FileDiff
    from takeback.text.linediff import Hunk

_SIGNS = {
    "new": ("+", "green"),
    "deleted": ("-", "red"),
    "modified": ("~", "yellow"),
    "renamed": ("→", "cyan"),
    "mode": ("~", "yellow"),
    "type": ("~", "yellow"),
}


def sign(terminal: Screen, status: str) -> str:
    mark, colour = _SIGNS[status]
    return terminal.style(mark, colour)


def counts(terminal: Screen, added: int, removed: int) -> str:
    parts = []
    if added:
        parts.append(terminal.style(f"+{added:,}", "green"))
    if removed:
        parts.append(terminal.style(f"−{removed:,}", "red"))
    return " ".join(parts)


def ends(found: Diff) -> tuple[str, str]:
    """What is compared, as a person calls it."""
    new = "now" if found.b is None else safe(found.b_moment) or _called(found.b)
    return safe(found.a_moment) or _called(found.a), new


def _called(checkpoint: Checkpoint) -> str:
    return checkpoint.id[:8] + (f' "{safe(checkpoint.label)}"' if checkpoint.label else "")


def name_of(found: FileDiff) -> str:
    shown = safe(found.path) + ("/" if found.kind == "folder" else "")
    return f"{safe(found.old_path)} → {shown}" if found.old_path else shown


def what_of(terminal: Screen, found: FileDiff) -> str:
    """'modified +2 −1', 'new symlink', 'deleted binary 3 KB'."""
    words = [found.status]
    if found.kind != "file":
        words.append(found.kind)
    elif found.binary:
        words.append("binary")
        sizes = [format_size(s) for s in (found.old_size, found.new_size) if s]
        words.append(" → ".join(sizes))
    if changed := counts(terminal, found.added, found.removed):
        words.append(changed)
    if found.note:
        words.append(terminal.style(f"({safe(found.note)})", "dim"))
    return " ".join(w for w in words if w)


def stat_lines(terminal: Screen, files: Sequence[FileDiff]) -> Iterator[str]:
    width = min(max((cells(name_of(f)) for f in files), default=0), max(30, terminal.width - 34))
    for found in files:
        yield f"  {sign(terminal, found.status)} {pad(name_of(found), width)}  {what_of(terminal, found)}"


def lines(terminal: Screen, files: Sequence[FileDiff]) -> Iterator[str]:
    for found in files:
        name = terminal.style(name_of(found), "bold")
        yield f"{sign(terminal, found.status)} {name}  {what_of(terminal, found)}"
        for hunk in found.hunks:
            yield from _hunk(terminal, hunk)
        if found.hunks:
            yield ""


def _hunk(terminal: Screen, hunk: Hunk) -> Iterator[str]:
    head = f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@"
    yield "  " + terminal.style(head, "cyan")
    for line in hunk.lines:
        shown = safe_line(line)
        colour = {"+": ("green",), "-": ("red",), "\\": ("dim",)}.get(shown[:1], ())
        yield "  " + terminal.style(shown, *colour)


def totals(terminal: Screen, files: Sequence[FileDiff]) -> str:
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    by_status: dict[str, int] = {}
    for found in files:
        by_status[found.status] = by_status.get(found.status, 0) + 1
    parts = [
        counted(len(files), "path"),
        *(f"{n:,} {status}" for status, n in by_status.items() if len(by_status) > 1),
    ]
    if changed := counts(terminal, added, removed):
        parts.append(changed)
    return " · ".join(parts)
