"""What page and Markdown say in the same words."""

from __future__ import annotations

import time

from ...report import EffectTold, Integrity, Report, TakebackTold, Totals, TurnTold
from ...timeline import NONE, PART
from ...units import format_duration
from ..cli.terminal import counted

WELL = {"whole": "taken back whole", "partly": "taken back in part", "nothing": "nothing was taken back"}
KINDS = {"agent": "", "hand": "by hand", "run": "a run", "watch": "a watched moment"}


def moment(at: float) -> str:
    """With the offset: it may be read elsewhere."""
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at)) if at else "never"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def when(report: Report) -> str:
    if not report.since:
        return "nothing was done in it"
    lasted = format_duration(report.until - report.since)
    return f"{moment(report.since)} to {moment(report.until)}, {lasted}"


def who(turn: TurnTold) -> str:
    return turn.agent if turn.kind == "agent" else KINDS.get(turn.kind, turn.kind)


def stands(turn: TurnTold | EffectTold) -> str:
    """What became of it, where some of it is gone."""
    by = f" by {', '.join(id[:8] for id in turn.undone_by)}" if turn.undone_by else ""
    return {NONE: f"taken back{by}", PART: f"taken back in part{by}"}.get(turn.stands, "")


def amounts(found: dict[str, int] | object) -> str:
    """'3 files, 1 http'"""
    items = found.items() if isinstance(found, dict) else ()
    return ", ".join(counted(n, "file") if name == "files" else f"{n:,} {name}" for name, n in items)


def lines(changed: tuple[int, int] | None) -> str:
    return "" if changed is None else f"+{changed[0]:,} −{changed[1]:,}"


def done(back: TakebackTold) -> str:
    """'5 exact, 1 compensating; 2 not done'"""
    told = ", ".join(f"{n:,} {verdict}" for verdict, n in back.done.items()) or "nothing"
    return told + (f"; {len(back.not_done):,} not done" if back.not_done else "")


def headline(report: Report) -> list[tuple[str, str, str]]:
    """(number, what, kind) of the figures that are read first; the kind is good, bad or plain."""
    found: Totals = report.totals
    damaged = ("damaged", "the journal's chain", "bad")
    return [
        (f"{found.turns:,}", "turn" + "s" * (found.turns != 1), "plain"),
        (f"{found.effects:,}", "effect" + "s" * (found.effects != 1), "plain"),
        (f"{found.files:,}", f"file{'s' * (found.files != 1)} {lines(found.lines)}", "plain"),
        (f"{found.taken_back:,}", "taken back", "plain"),
        (f"{found.remains:,}", "could not be", "bad" if found.remains else "good"),
        ("whole", "the journal's chain", "good") if report.integrity.ok else damaged,
    ]


def chain(found: Integrity) -> list[tuple[str, str]]:
    """(name, what): what was checked and what was found."""
    how = "every stored byte was read and hashed" if found.every_byte else "every record; not every stored byte"
    told = [
        ("result", "whole" if found.ok else "damaged"),
        ("checked", f"{counted(found.rows, 'row')} of the journal, {counted(found.blobs, 'blob')}: {how}"),
        ("head", f"row {found.head}, sha256 {found.hash}"),
        ("check it", "takeback verify" + " --data" * found.every_byte),
    ]
    told += [("forgotten", f"{found.pruned:,} entries were pruned; that is journaled")] if found.pruned else []
    told += [("known losses", f"{found.known_losses:,}, set aside by repair")] if found.known_losses else []
    return told
