"""The list of the timeline: turns, opened into calls and effects, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType

from takeback.model.effects import STATES
from takeback.show.timeline_items import NONE, PART, CallItem, EffectItem, Item, TurnItem
from takeback.surfaces.wording.text import age, clip, clip_middle, safe

from .rows import Rows

SIGNS = {
    "agent": ("◆", "cyan"), "hand": ("~", "yellow"), "watch": ("~", "yellow"), "run": ("$", "yellow"),
    "takeback": ("↩", "magenta"), "checkpoint": ("○", "green"), "call": ("◇", "cyan"), "effect": ("~", "yellow"),
}  # fmt: skip
BADGES = {
    "exact": "green", "compensating": "yellow", "held": "green", "irreversible": "red", "unknown": "magenta",
    "sending": "cyan", "failed": "dim", "uncovered": "red", "uncertain": "yellow",
}  # fmt: skip
_AGE = 10  # cells
_NAME = 36  # cells of a name before it is cut for the sake of amounts


class Row(NamedTuple):
    """An item where it stands in the list."""

    item: Item
    depth: int
    opens: bool  # there is something in it
    is_open: bool


class TimelineList(Rows):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,space", "open", "Open", show=False),
        Binding("left,h", "close", "Close", show=False),
        Binding("enter", "choose", "Open"),
    ]

    def __init__(self, clock: Callable[[], float], *, id: str | None = None, numbered: bool = False) -> None:
        super().__init__(id=id)
        self.rows_shown: Sequence[Row] = ()
        self.clock = clock
        self.numbered = numbered  # a checkpoint is chosen by its number
        self.compared = ""  # the item that another one is compared with
        self.is_touched = False
        self.moves: list[int] | None = None  # while an item opens or closes: the steps that are to be made from it

    @property
    def count(self) -> int:
        return len(self.rows_shown)

    @property
    def item(self) -> Item | None:
        return self.rows_shown[self.cursor].item if self.rows_shown and self.cursor < self.count else None

    def row(self, at: int, width: int) -> Text:
        return row_text(self.rows_shown[at], width, self.clock(), at == self.cursor, self.compared, self.numbered)

    def show_rows(self, rows: Sequence[Row], keep: str = "") -> None:
        """The cursor goes to `keep`, if that is there, or stays on its item. Until somebody has touched it, it is on
        the newest."""
        was, top = self.cursor, int(self.scroll_offset.y)
        self.is_touched |= bool(keep)
        here = self.item.id if self.item is not None and self.is_touched else ""
        places = {row.item.id: n for n, row in enumerate(rows)}
        self.rows_shown = rows
        moved = places.get(keep, places.get(here, 0))
        self.set_reactive(Rows.cursor, moved)
        self.resize_rows()
        if moved != was and (top or moved >= self.size.height):  # what came above must not push it about
            self.scroll_to(y=max(0, moved - was + top), animate=False, force=True)
        self.post_message(self.Moved(self))
        self.settle()

    def settle(self) -> None:
        moves, self.moves = self.moves, None
        for by in moves or ():
            self.action_move(by)

    def action_move(self, by: int) -> None:
        if self.moves is not None:
            self.moves.append(by)
        else:
            super().action_move(by)

    def on_key(self) -> None:
        self.is_touched = True

    def on_mouse_down(self) -> None:
        self.is_touched = True

    def action_choose(self) -> None:
        if self.rows_shown and self.rows_shown[self.cursor].opens:
            self.moves = []  # keys that come before it is open are meant for what it opens into
        self.post_message(self.Chosen(self))

    def action_open(self) -> None:
        row = self.rows_shown[self.cursor] if self.rows_shown else None
        if row is not None and row.opens and not row.is_open:
            self.action_choose()

    def action_close(self) -> None:
        """Closes what is open here, or goes to what this is part of."""
        if not self.rows_shown:
            return
        row = self.rows_shown[self.cursor]
        if row.is_open:
            self.action_choose()
        elif row.depth:
            self.cursor = next(n for n in range(self.cursor, -1, -1) if self.rows_shown[n].depth < row.depth)


def row_text(row: Row, width: int, now: float, here: bool, compared: str, numbered: bool = False) -> Text:
    """› ◆ claude “add a login form”        3 files +40 −2  compensating  4 min ago"""
    item = row.item
    dim = "dim" if item.stands == NONE else ""
    text = Text(no_wrap=True)
    text.append("›" if here else " ", "bold cyan")
    text.append("=" if compared == item.id else " ", "bold magenta")
    text.append("  " * row.depth)
    text.append(("▾ " if row.is_open else "▸ ") if row.opens else "  ", "dim")
    text.append_text(_sign(item))
    when = Text(age(now - item.at).rjust(_AGE), "dim")
    wanted = min(_NAME, _name(item, 1_000, dim, numbered).cell_len)
    for brevity in range(3):  # what it is comes before how much it is
        tail = _tail(item, dim, brevity)
        end = Text.assemble("  " if tail.plain else "", tail, "  ", when, " ")
        room = width - text.cell_len - end.cell_len
        if room >= wanted:
            break
    text.append_text(_name(item, max(6, room), dim, numbered))
    text.append(" " * max(0, width - text.cell_len - end.cell_len))
    return text.append_text(end)


def _sign(item: Item) -> Text:
    sign, colour = SIGNS[item.kind]
    if isinstance(item, TurnItem) and item.kind == "checkpoint" and item.marks[0].named:
        sign = "●"
    if isinstance(item, EffectItem) and item.domain not in STATES:
        sign, colour = "»", "cyan"
    if isinstance(item, TurnItem) and item.is_open:
        colour = f"bold {colour}"
    return Text(f"{sign} ", f"dim {colour}" if item.stands == NONE else colour)


def _name(item: Item, room: int, dim: str, numbered: bool) -> Text:
    """Who, and what; the end of a path says as much as the beginning."""
    text = Text(no_wrap=True)
    if isinstance(item, TurnItem):
        mark = item.marks[0] if item.marks else None
        if item.kind == "checkpoint" and mark is not None:
            text.append(f"{mark.number:>4}  " if numbered else "", "bold")
            told = f"“{safe(item.title)}”" if item.title else "checkpoint" if mark.named else "automatic checkpoint"
            told += " · pinned" if mark.pinned else ""
            return text.append(clip(told, max(6, room - text.cell_len)), dim)
        who = {"hand": "by hand", "run": "run", "watch": "seen"}.get(item.kind, safe(item.agent))
        if item.kind != "takeback" or item.agent:
            text.append(f"{clip(who, 16)} ", f"{dim} cyan".strip())
        title = safe(item.title)
        told = f"“{title}”" if title and item.kind in ("agent", "run") else title
        pinned = " · pinned" if any(each.pinned for each in item.marks) else ""
        return text.append(clip(told, max(6, room - text.cell_len - len(pinned))) + pinned, dim)
    if isinstance(item, CallItem):
        if item.lane:
            text.append(f"{clip(safe(item.lane), 12)} ", "cyan")
        state = "" if item.state == "done" else f" · {item.state}"
        text.append(clip_middle(safe(item.title), max(6, room - text.cell_len - len(state))), dim)
        return text.append(state, "cyan" if item.state == "open" else "red")
    text.append(f"{safe(item.domain)} " if item.domain != "files" else "", f"{dim} cyan".strip())
    shared = " · shared" if item.shared else ""
    return text.append(clip_middle(safe(item.title), max(6, room - text.cell_len - len(shared))) + shared, dim)


def _tail(item: Item, dim: str, brevity: int) -> Text:
    """How much, and how well it can be taken back; of what is gone, what took it."""
    parts: list[Text] = []
    totals: Mapping[str, int] = {} if isinstance(item, EffectItem) else item.totals
    lines = item.lines if isinstance(item, TurnItem) and not brevity else None
    if totals and brevity < 2:
        parts.append(amounts(totals, lines, dim))
    if item.undone_by:
        part = "part " if item.stands == PART else ""
        parts.append(Text(f"{part}↩ {item.undone_by[-1][:4]}", "dim magenta"))
    if item.stands != NONE:
        worst = item.badge if isinstance(item, EffectItem) else next(iter(item.badges), "")
        if worst and (worst != "exact" or not isinstance(item, TurnItem)):
            parts.append(Text(worst, BADGES.get(worst, "red")))
    return Text("  ").join(parts)


def amounts(totals: Mapping[str, int], lines: tuple[int, int] | None, style: str = "") -> Text:
    """3 files +40 −2 · git 2 · http"""
    text = Text(style=style)
    for domain, count in totals.items():
        if text.plain:
            text.append(" · ", "dim")
        if domain != "files":
            text.append(f"{safe(domain)} {count:,}" if count > 1 else safe(domain))
            continue
        text.append(f"{count:,} file{'s' * (count != 1)}")
        if lines is not None and any(lines):
            added, removed = lines
            text.append(f" +{added:,}" if added else "", "green")
            text.append(f" −{removed:,}" if removed else "", "red")
    return text
