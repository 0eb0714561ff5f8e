"""The log in lines: turns, effects, checkpoints and take-backs, newest first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from takeback.model.effects import STATES

from . import log_graph
from .diffs import counts
from .text import age, cells, clip, clip_middle, counted, pad, safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from takeback.show.turns import TurnSeen
    from takeback.show.views import LogRow

    from .screen import Screen


_MARKS = {"effect": "~", "track": "·", "takeback": "↩", "turn": "◆", "call": "◇", "gate": "⊘"}


def oneline(terminal: Screen, row: LogRow) -> str:
    """'orqwkryy checkpoint 1 "start" · 3 paths', as one reads a list of commits."""
    number = f"checkpoint {row.number} " if row.number else ""
    who = f"{safe(row.actor)}: " if row.actor else ""
    told = f"{number}{who}{_what(row)}"
    id = terminal.style(row.id[:8], "bold")
    return f"{id} {clip(told, max(20, terminal.width - 9)) if terminal.out_is_tty else told}"


def lines(
    terminal: Screen,
    rows: Sequence[LogRow],
    now: float,
    turns: Mapping[str, TurnSeen],
    ties: Mapping[str, Sequence[str]] = {},
) -> Iterator[str]:
    """One line per row; those of an agent's turn below its heading, with what others did between its calls. On the
    left the mark of each, and lines from a take-back to what it took."""
    numbers = max(len(str(r.number or "")) for r in rows)
    ids = max(r.short for r in rows)
    ages = [age(now - r.at) for r in rows]
    ages_width = max(map(len, ages))
    groups = list(grouped(rows))
    actors = max(cells(_who(row, turn in turns)) for turn, group in groups for row in group)
    nodes = [id for turn, group in groups for id in ([f"turn {turn}"] * (turn in turns) + [row.id for row in group])]
    gutters = dict(zip(nodes, log_graph.gutters(nodes, ties)))

    def line(row: LogRow, inside: bool) -> str:
        drawn = mark(terminal, row) + terminal.style(gutters[row.id], "magenta")
        head = f"{drawn}  {'  ' * inside}{row.number or '':>{numbers}}{'  ' * bool(numbers)}"
        id = terminal.style(row.id[: row.short], "bold") + row.id[row.short : ids]
        who = pad(terminal.style(_who(row, inside), "cyan"), actors) + ("  " if actors else "")
        room = max(30, terminal.width - cells(head) - ids - ages_width - cells(who) - 5)
        told = _what(row, inside)
        what = clip_middle(told, room) if terminal.out_is_tty else told
        if not row.live:
            what = terminal.style(what, "dim")
        when = pad(age(now - row.at), ages_width)
        return f"{head}{id}  {when}  {who}{what}".rstrip()

    for turn, group in groups:
        if turn in turns:
            gutter = gutters[f"turn {turn}"]
            drawn = terminal.style(_MARKS["turn"], "cyan") + terminal.style(gutter, "magenta")
            yield f"{drawn}  {heading(terminal, turns[turn], len(gutter) + 3)}"
        yield from (line(row, turn in turns) for row in group)


def grouped(rows: Sequence[LogRow]) -> Iterator[tuple[str, list[LogRow]]]:
    """Rows apart by the one turn they belong to. A turn stands where its newest row does, and has what belongs to no
    agent's turn and happened between its rows; the id is empty for a row outside of any."""
    oldest = {row.turns[0]: at for at, row in enumerate(rows) if len(row.turns) == 1}
    told: set[int] = set()
    for at, row in enumerate(rows):
        if at in told:
            continue
        if len(row.turns) != 1:
            yield "", [row]
            continue
        turn = row.turns[0]
        mine = [n for n in range(at, oldest[turn] + 1) if n not in told and rows[n].turns in ((turn,), ())]
        told.update(mine)
        yield turn, [rows[n] for n in mine]


def heading(terminal: Screen, turn: TurnSeen, before: int = 0) -> str:
    """claude · 14:02 · “add a login form” · 3 calls · 5 files +40 −2"""
    begin = [terminal.style(safe(turn.agent), "cyan"), time.strftime("%H:%M", time.localtime(turn.at))]
    parts = [counted(turn.calls, "call")]
    nothing = "" if turn.outside or turn.failed or turn.git or turn.takebacks else "no file changed"
    amount = counted(len(turn.files), "file") if turn.files else nothing
    lines = counts(terminal, turn.added or 0, turn.removed or 0)
    parts += [f"{amount} {lines}".rstrip()] if amount else []
    parts += [f"git: {safe(turn.git)}"] if turn.git else []
    parts += [f"{turn.outside:,} outside the files"] if turn.outside else []
    parts += [f"{turn.failed:,} outside the files failed"] if turn.failed else []
    parts += [counted(len(turn.takebacks), "take-back")] if turn.takebacks else []
    parts += [f"{len(turn.uncertain):,} uncertain"] if turn.uncertain else []
    parts += [f"{len(turn.shared):,} shared"] if turn.shared else []
    parts += ["taken back"] if not turn.live else []
    taken = 15 + before + sum(cells(part) + 3 for part in (*begin, *parts))
    room = terminal.width - taken if terminal.out_is_tty else 60
    asked = [f"“{clip(safe(turn.prompt), max(12, min(60, room)))}”"] if turn.prompt else []
    told = " · ".join([*begin, *asked, *parts])
    return f"{terminal.style(turn.id[:8], 'bold')}  {terminal.style(told, 'dim') if not turn.live else told}"


def _who(row: LogRow, inside: bool) -> str:
    """Below an agent's heading, what nobody known did is told as such."""
    return safe(row.actor) or ("unattributed" if inside and row.kind == "effect" else "")


def mark(terminal: Screen, row: LogRow) -> str:
    if row.kind == "checkpoint":
        return terminal.style("●", "green") if row.named else terminal.style("○", "green")
    if row.kind == "effect" and row.domain not in STATES:
        return terminal.style("»", "cyan")
    return terminal.style(
        _MARKS[row.kind], {"effect": "yellow", "takeback": "magenta", "gate": "red"}.get(row.kind, "cyan")
    )


def _what(row: LogRow, inside: bool = False) -> str:
    is_its_own = inside and row.kind == "checkpoint" and row.turns and row.label == row.prompt  # the heading says it
    parts = [f'"{safe(row.label)}"' if row.label and not is_its_own else "", safe(row.summary)]
    told = " · ".join(p for p in parts if p)
    if row.pinned:
        told += " · pinned"
    if row.kind == "effect" and row.domain != "files":
        told = f"{safe(row.domain)}: {told}"
        told += f" · {row.state}" if row.state not in ("live", "undone") else ""
    is_nobodys = row.uncertain and row.kind == "effect" and row.domain not in STATES
    if row.uncertain:
        told += " · not known whose" if is_nobodys else " · uncertain"
    if len(row.turns) > 1 and not is_nobodys:
        told += " · shared"
    if row.redone or (not row.live and row.state != "failed"):
        told += f" · {row.redone or 'taken back'}"
    return told
