"""The lines at the left of the log: what each entry is, and which take-back took it.

↩─╮    undo            a take-back begins a line down to what it took
↩─┼─╮  rollback        and a redo takes a take-back
~─┤ │  taken by the undo
~ │ │
~─┴─╯  the oldest of both
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST = 6  # lines beside each other; what is beyond is told in words alone


class _Lane(NamedTuple):
    first: int  # the row of the take-back
    last: int  # the oldest row it took
    taken: frozenset[int]


def gutters(ids: Sequence[str], ties: Mapping[str, Sequence[str]]) -> list[str]:
    """What follows the mark of each row, newest first, all of one width. `ties` are the ids that a take-back took."""
    at = {id: row for row, id in enumerate(ids)}
    lanes: list[list[_Lane]] = []  # columns, each with lanes that do not overlap
    for row, id in enumerate(ids):
        taken = frozenset(at[each] for each in ties.get(id, ()) if at.get(each, -1) > row)
        if not taken:
            continue
        lane = _Lane(row, max(taken), taken)
        for column in lanes:
            if column[-1].last < row:
                column.append(lane)
                break
        else:
            if len(lanes) < _MOST:
                lanes.append([lane])
    return [_gutter(lanes, row) for row in range(len(ids))]


def _gutter(lanes: Sequence[Sequence[_Lane]], row: int) -> str:
    here = [next((lane for lane in column if lane.first <= row <= lane.last), None) for column in lanes]
    tied = [n for n, lane in enumerate(here) if lane is not None and (row == lane.first or row in lane.taken)]
    furthest = tied[-1] if tied else -1
    parts = []
    for n, lane in enumerate(here):
        on = n < furthest
        cell = "─" if on else " "
        if lane is not None:
            cell = "┼" if on else "│"
            if n in tied:
                sign = 0 if row == lane.first else 2 if row == lane.last else 1
                cell = "┬┼┴"[sign] if on else "╮┤╯"[sign]
        parts.append(("─" if n <= furthest else " ") + cell)
    return "".join(parts)
