"""Differences side by side: before on the left, after on the right; what differs in a line is marked in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from takeback.show.views import FileDiff
from takeback.surfaces.wording.diffs import name_of, what_of
from takeback.surfaces.wording.html import Child, Markup, tag
from takeback.surfaces.wording.page import Page
from takeback.surfaces.wording.text import counted, listed, safe_line
from takeback.text.linediff import Hunk

_MOST = 4_000  # rows of one page
_LONGEST = 2_000  # characters of a line


class Side(NamedTuple):
    number: int
    text: str


class Pair(NamedTuple):
    before: Side | None
    after: Side | None
    changed: bool
    note: str = ""  # instead of both


def files(
    found: Sequence[FileDiff],
    alone: dict[str, str],
    more: int = 0,
    act: Callable[[FileDiff], Child] = lambda file: None,
) -> list[Child]:
    """Every file under its own heading, with what can be done about it; beyond what a page can hold, a link to it."""
    shown: list[Child] = []
    room = _MOST
    for file in found:
        rows = sum(len(hunk.lines) for hunk in file.hunks)
        fits = rows <= room or (len(found) == 1)
        room -= rows if fits else 0
        shown.append(_file(file, None if fits else alone.get(file.path, ""), act(file)))
    if more:
        shown.append(tag("p", f"… and {counted(more, 'path')} more; takeback show has all of them", class_="note"))
    return shown


def masked_note(paths: Sequence[str]) -> Markup | None:
    """Of what something is held back."""
    return tag("p", f"secrets are masked: {listed(paths, 5)}", class_="note") if paths else None


def _file(file: FileDiff, alone: str | None, act: Child) -> Markup:
    head = tag(
        "summary", tag("h3", tag("code", name_of(file))), " ", tag("span", what_of(Page(), file), class_="facts")
    )
    if alone is not None:
        link = tag("a", "see it by itself", href=alone) if alone else "takeback show has all of it"
        said = tag("p", "too long for this page: ", link, class_="note")
        return tag("details", head, said, act, class_="file", open=True)
    if not file.hunks:
        return tag("details", head, tag("p", "no lines to show", class_="note"), act, class_="file")
    body = [_row(pair) for at, hunk in enumerate(file.hunks) for pair in (*_between(at, hunk), *pairs(hunk))]
    columns = tag(
        "thead",
        tag("tr", tag("th", "before", colspan=2, scope="colgroup"), tag("th", "after", colspan=2, scope="colgroup")),
    )
    table = tag(
        "table",
        tag("caption", f"Lines of {name_of(file)}", class_="hidden"),
        tag("colgroup", tag("col", class_="no"), tag("col"), tag("col", class_="no"), tag("col")),
        columns,
        tag("tbody", *body),
        class_="sides",
    )
    # In a frame of its own, which scrolls sideways and can be reached by keyboard.
    frame = tag("div", table, class_="scroll", tabindex=0, role="group", aria_label=f"Lines of {name_of(file)}")
    return tag("details", head, frame, act, class_="file", open=True)


def _between(at: int, hunk: Hunk) -> Iterator[Pair]:
    if at or hunk.old_start > 1:
        yield Pair(None, None, False, f"line {hunk.new_start}")


def pairs(hunk: Hunk) -> Iterator[Pair]:
    """Lines taken and put stand beside each other, in the order in which they come."""
    old, new = hunk.old_start, hunk.new_start
    gone: list[Side] = []
    came: list[Side] = []
    for line in hunk.lines:
        mark, text = line[:1], _text(line[1:])
        if mark == b"-":
            if came:
                yield from _beside(gone, came)
                gone, came = [], []
            gone.append(Side(old, text))
            old += 1
        elif mark == b"+":
            came.append(Side(new, text))
            new += 1
        elif mark == b"\\":
            side = came or gone
            if side:
                side[-1] = side[-1]._replace(text=side[-1].text + " (no newline at the end)")
        else:
            yield from _beside(gone, came)
            gone, came = [], []
            yield Pair(Side(old, text), Side(new, text), False)
            old, new = old + 1, new + 1
    yield from _beside(gone, came)


def _beside(gone: Sequence[Side], came: Sequence[Side]) -> Iterator[Pair]:
    for at in range(max(len(gone), len(came))):
        yield Pair(gone[at] if at < len(gone) else None, came[at] if at < len(came) else None, True)


def _text(line: bytes) -> str:
    shown = safe_line(line)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}… ({len(shown) - _LONGEST:,} more)"


def _row(pair: Pair) -> Markup:
    if pair.note:
        return tag("tr", tag("td", pair.note, colspan=4), class_="gap")
    before, after = pair.before, pair.after
    marks = _marked(before.text, after.text) if pair.changed and before and after else None
    return tag(
        "tr",
        *_cells(before, "−" if pair.changed else "", marks[0] if marks else None),
        *_cells(after, "+" if pair.changed else "", marks[1] if marks else None),
        class_="same" if not pair.changed else None,
    )


def _cells(side: Side | None, sign: str, marked: Child) -> tuple[Markup, Markup]:
    if side is None:
        return tag("td", class_="no none"), tag("td", class_="none")
    kind = {"−": "del", "+": "ins"}.get(sign)
    told = tag("span", sign, class_="mark") if sign else None
    return tag("td", str(side.number), class_="no"), tag(
        "td", told, marked if marked is not None else side.text, class_=kind
    )


def _marked(before: str, after: str) -> tuple[Child, Child] | None:
    """What differs between two lines, where most of them is the same."""
    shorter = min(len(before), len(after))
    start = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    end = next((n for n in range(shorter - start) if before[-1 - n] != after[-1 - n]), shorter - start)
    if start + end < shorter // 3 or start + end == 0:
        return None

    def cut(text: str) -> Child:
        middle = text[start : len(text) - end]
        return [text[:start], tag("mark", middle) if middle else None, text[len(text) - end :] if end else ""]

    return cut(before), cut(after)
