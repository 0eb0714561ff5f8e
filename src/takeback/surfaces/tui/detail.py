"""One item in full, as lines: what changed, what is known of it, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.highlighter import JSONHighlighter
from rich.text import Text

from takeback.show.timeline import Detail
from takeback.show.timeline_items import NONE, PART, CallItem, EffectItem, TurnItem
from takeback.surfaces.wording import diffs, entry
from takeback.surfaces.wording.text import age, counted, moment, safe

from .listing import BADGES, amounts
from .paper import Paper, cut, styled, wrapped

VIEWS = ("changes", "about", "json")
_MOST = 5_000  # lines
_LONG = 400  # lines of one request, response or mail
_KEPT = 20  # paths that a take-back left alone


class Line(NamedTuple):
    """A line, and the file it is about, if it is about one."""

    text: Text
    path: str = ""


def lines(detail: Detail, view: str, width: int, now: float, called: dict[str, str]) -> list[Line]:
    """`called` has the titles of other items, by id: of what took this, and of what this took."""
    made = {"changes": _changes, "about": _about, "json": _json}[view](detail, width, now, called)
    out: list[Line] = []
    for line in made:
        if len(out) == _MOST:
            out.append(Line(Text("… there is more; takeback show has all of it", "dim")))
            break
        out.append(line)
    return out


def _changes(detail: Detail, width: int, now: float, called: dict[str, str]) -> Iterator[Line]:
    yield from map(Line, _head(detail, width, now, called))
    yield from map(Line, _outside(detail, width))
    yield from map(Line, _state(detail, width))
    yield from _files(detail, width)


def _head(detail: Detail, width: int, now: float, called: dict[str, str]) -> Iterator[Text]:
    item = detail.item
    title = safe(item.title) or {"checkpoint": "checkpoint", "hand": "by hand"}.get(item.kind, item.kind)
    quoted = f"“{title}”" if item.title and item.kind in ("agent", "checkpoint") else title
    yield from wrapped(Text(quoted, "bold"), width, 0)
    parts = [Text(safe(item.agent) or ("by hand" if item.kind in ("hand", "effect") else ""), "cyan")]
    parts.append(Text(f"{moment(item.at)}, {age(now - item.at)}"))
    if isinstance(item, CallItem):
        parts.append(Text(item.state if item.state != "done" else safe(item.tool)))
    if isinstance(item, TurnItem) and item.calls:
        parts.append(Text(counted(item.calls, "call")))
    if not isinstance(item, EffectItem):
        parts.append(amounts(item.totals, item.lines if isinstance(item, TurnItem) else None))
        badges = item.badges
    else:
        badges = {item.badge: 1}
    if not isinstance(item, TurnItem) or item.kind not in ("takeback", "checkpoint"):
        several = sum(badges.values()) > 1 and len(badges) > 1
        told = [Text(f"{n} {badge}" if several else badge, BADGES.get(badge, "red")) for badge, n in badges.items()]
        parts.append(Text(", ").join(told))
    if item.shared:
        parts.append(Text("shared" if isinstance(item, EffectItem) else f"{item.shared:,} shared", "cyan"))
    yield from wrapped(Text.assemble(" · ").join([part for part in parts if part.plain]), width)
    for id in item.undone_by:
        how = "taken back" if item.stands == NONE else "in part taken back" if item.stands == PART else "taken"
        yield from wrapped(Text(f"↩ {how} by {id[:8]} {called.get(id, '')}", "magenta"), width)
    for id in item.took if isinstance(item, TurnItem) else ():
        tie = f"↩ took {id[:8] if '-' not in id else ''} {called.get(id, '')}".replace("  ", " ")
        yield from wrapped(Text(tie, "magenta"), width)
    if item.kind == "takeback" and detail.shown.turn is not None:
        turn = detail.shown.turn
        yield from wrapped(Text(f"asked for in {turn.id[:8]} “{safe(turn.prompt)}”", "magenta"), width)
    for row in detail.shown.refused:
        yield from wrapped(Text(f"gate {row.id[:8]} {safe(row.summary)}", "yellow"), width)
    for row in detail.shown.asked_for:
        yield from wrapped(Text(f"↩ asked for {row.id[:8]} {safe(row.summary)}", "magenta"), width)
    if isinstance(item, TurnItem):
        for mark in item.marks:
            label = f" “{safe(mark.label)}”" if mark.label and mark.label != item.title else ""
            pinned = ", pinned" if mark.pinned else ""
            marked = f"{'●' if mark.named else '○'} checkpoint {mark.number} {mark.id[:8]}{label}{pinned}"
            yield from wrapped(Text(marked, "green"), width)
    yield from cut([Text(f"kept {safe(path)} of {id[:8]}", "red") for path, id in entry.kept(detail.shown)], _KEPT)
    yield from cut([Text(line.strip(), "red") for line in entry.missed(detail.shown)], _KEPT)
    if detail.item.kind == "checkpoint":
        yield Text("")
        yield from wrapped(Text(f"{safe(detail.shown.row.summary)}. b goes back to it; = compares it.", "dim"), width)


def _outside(detail: Detail, width: int) -> Iterator[Text]:
    """The request and its answer, or the command, and what takes it back."""
    act = detail.act
    if act is None:
        return
    yield Text("")
    if act.target:
        yield from wrapped(Text.assemble(("target   ", "dim"), safe(act.target)), width, 9)
    for name, value in detail.exchange:
        told = value.rstrip("\n").split("\n")
        if len(told) == 1:
            yield from wrapped(Text.assemble((f"{safe(name):<9}", "dim"), safe(told[0])), width, 9)
            continue
        yield Text(safe(name), "dim")
        yield from cut([Text(f"  {safe(line)}") for line in told], _LONG)
    if detail.shown.inverse:
        yield from wrapped(Text.assemble(("inverse  ", "dim"), (safe(detail.shown.inverse), "yellow")), width, 9)
    else:
        why = safe(str(act.did.get("left_to_do", "it cannot be taken back")))
        yield from wrapped(Text.assemble(("inverse  ", "dim"), (f"none: {why}", "red")), width, 9)
    for undo in detail.shown.undos:
        said = f": {safe(undo.note)}" if undo.note else ""
        yield Text(
            f"{'sent' if undo.result == 'done' else 'tried':<9}{moment(undo.at)}, {undo.result}{said}", "magenta"
        )
    if act.shown_state == "sending":
        yield Text(f"it is being sent just now, by process {act.did['sender']['pid']}", "bold cyan")
    if act.shown_state == "unknown":
        yield Text("nobody knows what came of it; find out, then v says so", "bold magenta")
    if act.shown_state == "held":
        yield Text("held: s sends it, x drops it", "bold green")


def _state(detail: Detail, width: int) -> Iterator[Text]:
    for moved in detail.moved:
        yield Text("")
        ends = " → ".join(safe(end[:8]) or "not there" for end in (moved.before, moved.after))
        yield Text.assemble(("thread ", "dim"), (safe(moved.thread), "bold"), f"  {ends}")
        for found in moved.differences[:_LONG]:
            if found.change != "added":
                yield from wrapped(Text(f"- {safe(found.path)}: {safe(_brief(found.before))}", "red"), width)
            if found.change != "removed":
                yield from wrapped(Text(f"+ {safe(found.path)}: {safe(_brief(found.after))}", "green"), width)
        if (more := len(moved.differences) - _LONG) > 0:
            yield Text(f"… and {counted(more, 'difference')} more", "dim")


def _brief(value: object) -> str:
    told = json.dumps(value, ensure_ascii=False, default=str)
    return told if len(told) <= 2_000 else told[:2_000] + "…"


def _files(detail: Detail, width: int) -> Iterator[Line]:
    paper = Paper(width)
    files = detail.shown.files
    for file in files:
        yield Line(Text(""), file.path)
        for line in diffs.lines(paper, [file]):
            if line:
                yield Line(styled(line), file.path)
    if detail.shown.more:
        yield Line(Text(f"… and {counted(detail.shown.more, 'path')} more; takeback show has all of them", "dim"))
    if len(files) > 1:
        yield Line(Text(""))
        yield Line(styled(diffs.totals(paper, files)))
    if detail.masked:
        yield Line(Text(f"secrets are masked: {safe(', '.join(detail.masked[:5]))}", "yellow"))


def _about(detail: Detail, width: int, now: float, called: dict[str, str]) -> Iterator[Line]:
    """What `takeback show` says of it, without the differences."""
    paper = Paper(width)
    shown = detail.shown._replace(files=())
    when = f"{moment(shown.row.at)}, {age(now - shown.row.at)}"
    for line in entry.lines(paper, shown, when, stat=False):
        yield from (Line(text) for text in wrapped(styled(line), width, 11))
    if detail.shown.files:
        yield Line(Text(""))
        for line in diffs.stat_lines(paper, detail.shown.files):
            yield Line(styled(line))


def _json(detail: Detail, width: int, now: float, called: dict[str, str]) -> Iterable[Line]:
    told = json.dumps(entry.shape(detail.shown), indent=2, ensure_ascii=True, default=str)
    highlight = JSONHighlighter()
    for line in told.split("\n"):
        text = Text(line, no_wrap=True)
        highlight.highlight(text)
        yield Line(text)
