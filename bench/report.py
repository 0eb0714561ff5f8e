"""What was measured, as a table for a person, JSON for a program and a page for docs/."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from . import hooks, rounds, state
from .command import STARTUP
from .samples import SIZES

MB = 1_000_000
MEMORY = "peak memory"
_OPERATIONS = (rounds.FIRST, rounds.NOTHING, rounds.CHANGED, rounds.RESTORE, rounds.FULL, rounds.GONE)
_FASTER = {  # at least this many times as fast as git
    "10k": dict(zip(_OPERATIONS, (5, 1.1, 1.2, 1.5, 2.5))),
    "100k": dict(zip(_OPERATIONS, (5, 1.3, 1.4, 2.5, 2.5))),
}
_MOST_DISK = {"10k": 0.6, "100k": 0.6}
_SLOWEST_COMMAND = {"10k": 2}
_SLOWEST_STARTUP = 4
_MOST_MEMORY = {"100k": 200 * MB}
_HOOKS_FASTER = {
    "10k": {hooks.SPAWNED: 2.4, hooks.ALONE: 0.6, hooks.NAMED: 1},
    "100k": {hooks.SPAWNED: 10, hooks.HTTP: 30, hooks.ALONE: 1.1, hooks.NAMED: 1},
}
_SLOWEST_HOOK = 2.5
_MOST_STORAGE = 0.3
STATE = "state"
_INTRODUCTION = """\
# How fast it is

Made by `scripts/bench --write-docs`; do not edit. Ratios against a shadow git repository (`git add -A` and
`git write-tree`; restoring by `git read-tree -u --reset` after both), measured in turn in one run on
generated trees: of the medians, and of the best, of several rounds. The library call, in a process that
lives on, stands against git's processes; the whole command is given beside it. A ratio above 1 means that
takeback is faster, or smaller.

Which interpreter it is matters. The one that a distribution compiles, with profile-guided optimisation, runs
the same Python code in about three quarters of the time of one compiled without it, as pyenv does unless it
is told otherwise; git's time stays the same.
"""


@dataclass(frozen=True)
class Line:
    """One row of the table. The ratios (of the medians, of the best) are above 1 where takeback is ahead."""

    size: str
    operation: str
    other: str
    ours: str
    ratio: float | None = None
    best: float | None = None
    target: str = ""
    met: bool | None = None

    @property
    def mark(self) -> str:
        return "" if self.met is None else "met" if self.met else "MISSED"

    @property
    def ratios(self) -> tuple[str, str]:
        return tuple(f"{value:.2f}×" if value else "" for value in (self.ratio, self.best))


def lines(size: str, times: rounds.Times, memory: int) -> list[Line]:
    out = []
    for operation in _OPERATIONS:
        wanted = _FASTER.get(size, {}).get(operation)
        target = f"≥ {wanted}×" if wanted else ""
        out.append(_line(size, operation, times[operation], "git", target, 1 / wanted if wanted else None))
    most = _MOST_DISK.get(size)
    target = f"≤ {most} of git's" if most else ""
    out.append(_line(size, rounds.DISK, times[rounds.DISK], "git", target, most, _megabytes))
    if rounds.COMMAND in times:
        slowest = _SLOWEST_COMMAND.get(size)
        target = f"within {slowest}× of git" if slowest else ""
        out.append(_line(size, rounds.COMMAND, times[rounds.COMMAND], "git", target, slowest))
    if memory:
        cap = _MOST_MEMORY.get(size)
        target, met = (f"< {cap // MB} MB", memory < cap) if cap else ("", None)
        out.append(Line(size, MEMORY, "", f"{memory / MB:.0f} MB", target=target, met=met))
    return out


def hook_lines(size: str, times: rounds.Times) -> list[Line]:
    out = []
    for operation, values in times.items():
        if operation == hooks.START:
            target = f"within {_SLOWEST_HOOK}× of python"
            out.append(_line(size, operation, values, "python", target, _SLOWEST_HOOK))
            continue
        way = operation.removesuffix(f", {hooks.NOTHING}").removesuffix(f", {hooks.CHANGED}")
        wanted = _HOOKS_FASTER.get(size, {}).get(way)
        target = f"≥ {wanted}×" if wanted else ""
        out.append(_line(size, operation, values, "git", target, 1 / wanted if wanted else None))
    return out


def startup_line(times: dict[str, list[float]]) -> Line:
    return _line("", STARTUP, times, "python", f"within {_SLOWEST_STARTUP}× of python", _SLOWEST_STARTUP)


def state_lines(times: rounds.Times) -> list[Line]:
    out = []
    for operation, values in times.items():
        if operation == state.STORAGE:
            target = f"≤ {_MOST_STORAGE} of its"
            out.append(_line(STATE, operation, values, state.OTHER, target, _MOST_STORAGE, _megabytes))
        else:
            out.append(_line(STATE, operation, values, state.OTHER, "≥ 1×", 1))
    return out


def _title(size: str) -> tuple[str, str]:
    """What a part of the table is about, and what takeback stands against there."""
    if size == STATE:
        return "state of LangGraph's threads", state.OTHER
    return (SIZES[size].title, "git") if size else ("the command", "python -c pass")


def table(rows: list[Line]) -> str:
    out = []
    size = None
    width = max((max(len(row.operation) + 2, len(_title(row.size)[0])) for row in rows), default=0)
    for row in rows:
        if row.size != size:
            size = row.size
            title, other = _title(size)
            out += ["", f"{title:<{width}}{other:>17}{'takeback':>12}{'ratio':>9}{'at best':>9}   target"]
        ratio, best = row.ratios
        cells = f"{row.other:>17}{row.ours:>12}{ratio:>9}{best:>9}   {row.target:<21} {row.mark}"
        out.append(f"  {row.operation:<{width - 2}}{cells}".rstrip())
    return "\n".join(out)


def losses(rows: list[Line]) -> str:
    """Where takeback is slower or larger than the other, and which targets it misses."""
    slower = [f"  {_place(row)}: {1 / row.ratio:.2f}× the {_cost(row)}" for row in rows if row.ratio and row.ratio < 1]
    missed = [f"  {_place(row)}: wanted {row.target}, got {_got(row)}" for row in rows if row.met is False]
    out = ["Where it loses:", *(slower or ["  nowhere in this run"])]
    return "\n".join(out + (["Targets missed:", *missed] if missed else ["Every target is met."]))


def write_json(path: Path, about: dict[str, str], rows: list[Line], raw: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"about": about, "table": [asdict(row) for row in rows], "measured": raw}
    path.write_text(json.dumps(data, indent=1) + "\n")


def markdown(about: dict[str, str], rows: list[Line]) -> str:
    out = [_INTRODUCTION, f"{about['date']} · {about['machine']} · {about['versions']}", ""]
    out.append("![ratios against git](bench.svg)")
    size = None
    for row in rows:
        if row.size != size:
            size = row.size
            title, other = _title(size)
            other = other if size else f"`{other}`"
            out += ["", f"## {title[0].upper()}{title[1:]}", ""]
            out.append(f"| | {other} | takeback | ratio | at best | target | |")
            out.append("|---|---:|---:|---:|---:|---|---|")
        ratio, best = row.ratios
        cells = (row.operation, row.other, row.ours, ratio, best, row.target, row.mark)
        out.append(f"| {' | '.join(cells)} |")
    out += ["", "## Where it loses", ""]
    for line in losses(rows).splitlines()[1:]:
        out += [f"- {line.strip()}"] if line.startswith("  ") else ["", line, ""]
    return "\n".join(out).rstrip() + "\n"


def _line(
    size: str,
    operation: str,
    values: dict[str, list[float]],
    other: str,
    target: str,
    most: float | None,
    show: Callable[[float], str] | None = None,
) -> Line:
    """`most`: how much of the other's time or space takeback may take."""
    theirs, ours = statistics.median(values[other]), statistics.median(values["takeback"])
    best = min(values[other]) / min(values["takeback"])
    show = show or _seconds
    met = ours <= most * theirs if most else None
    return Line(size, operation, show(theirs), show(ours), theirs / ours, best, target, met)


def _megabytes(value: float) -> str:
    return f"{value / MB:.1f} MB"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"


def _place(row: Line) -> str:
    return f"{_title(row.size)[0]}, {row.operation}" if row.size else row.operation


def _cost(row: Line) -> str:
    if row.size == STATE:
        return f"{'storage' if row.operation == state.STORAGE else 'time'} of {state.OTHER}"
    if row.operation == rounds.DISK:
        return "disk of git"
    return "time of a bare interpreter" if row.operation == STARTUP else "time of git"


def _got(row: Line) -> str:
    return f"{row.ratio:.2f}× ({row.ours} against {row.other})" if row.ratio else row.ours
