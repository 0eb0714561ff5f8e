"""What page and Markdown say in the same words."""

from __future__ import annotations

import time
from collections.abc import Mapping

from takeback.show.report_values import (
    EffectTold,
    FileTold,
    GateTold,
    Integrity,
    Report,
    TakebackTold,
    Totals,
    TurnTold,
)
from takeback.show.timeline_items import NONE, PART, Mark
from takeback.surfaces.wording.text import counted
from takeback.text.units import format_duration

WELL = {"whole": "taken back whole", "partly": "taken back in part", "nothing": "nothing was taken back"}
KINDS = {"agent": "", "hand": "by hand", "run": "a run", "watch": "a watched moment"}
CHAINED = (
    "Each row of the journal has the hash of the one before: whoever altered or removed one would have to make all "
    "that follow anew, up to the head that is named here."
)
IN_PART = "in part: the rest of it is outside the span; amounts and lines are of all of it"


def moment(at: float) -> str:
    """With the offset: it may be read elsewhere."""
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at)) if at else "never"


def clock(at: float, turn: TurnTold) -> str:
    """Of what a turn did; with its day, if that is not the turn's."""
    same = time.localtime(at)[:3] == time.localtime(turn.at)[:3]
    return time.strftime("%H:%M:%S", time.localtime(at)) if same else moment(at)


def short(id: str) -> str:
    """An id as people type it; what comes before it says what it is of."""
    return id.rpartition("-")[2][:8]


def facts(report: Report) -> list[tuple[str, str]]:
    """(name, what): of what and of when it tells, and who made it."""
    agents = ", ".join(f"{name} ({counted(n, 'turn')})" for name, n in report.agents.items())
    return [
        ("span", report.span),
        ("from", moment(report.begins) if report.begins else "the beginning"),
        ("to", moment(report.ends)),
        ("done in it", when(report)),
        ("by", agents or "nobody"),
        ("root", report.root),
        *([("store", report.store)] if report.store else []),
        ("made", f"{moment(report.made)} by takeback {report.version}"),
    ]


def when(report: Report) -> str:
    if not report.since:
        return "nothing"
    lasted = format_duration(report.until - report.since)
    return f"{moment(report.since)} to {moment(report.until)}, {lasted}"


def who(turn: TurnTold) -> str:
    return turn.agent if turn.kind == "agent" else KINDS.get(turn.kind, turn.kind)


def stands(turn: TurnTold | EffectTold) -> str:
    """What became of it, where some of it is gone."""
    by = f" by {', '.join(id[:8] for id in turn.undone_by)}" if turn.undone_by else ""
    return {NONE: f"taken back{by}", PART: f"taken back in part{by}"}.get(turn.stands, "")


def shared(found: TurnTold | EffectTold) -> str:
    """What others had a part in: of a turn how much, of an effect with whom."""
    if isinstance(found, EffectTold):
        return f"shared by {found.agent}" if found.shared else ""
    return f"{found.shared:,} shared" if found.shared else ""


def amounts(found: Mapping[str, int]) -> str:
    """'3 files, 1 http'"""
    return ", ".join(counted(n, "file") if name == "files" else f"{n:,} {name}" for name, n in found.items())


def lines(changed: tuple[int, int] | None) -> str:
    return "" if changed is None else f"+{changed[0]:,} −{changed[1]:,}"


def done(back: TakebackTold) -> str:
    """'5 exact, 1 compensating; 2 not done'"""
    told = ", ".join(f"{n:,} {verdict}" for verdict, n in back.done.items()) or "nothing"
    missed = len(back.not_done) + back.more_not_done
    return told + (f"; {missed:,} not done" if missed else "")


def renamed(found: FileTold) -> str:
    diff = found.diff
    return f"{diff.old_path} → {diff.path}" if diff.old_path else diff.path


def changed(found: FileTold) -> list[str]:
    """What is told of a file beside its name; its note comes last, for it is the file's own."""
    diff = found.diff
    size = "binary" if diff.binary else lines((diff.added, diff.removed)) if diff.hunks else ""
    return [word for word in (diff.status, size, "masked" if found.masked else "", diff.note) if word]


def marked(found: Mark) -> str:
    return ", ".join(word for word, is_so in (("named", found.named), ("pinned", found.pinned)) if is_so)


GATE = "What was asked about or refused"


def stopped(found: GateTold) -> str:
    """'refused by autopilot', 'asked about, and allowed by a person at claude's prompt 2026-01-31 14:02'"""
    if found.state != "allowed" and (found.came or found.state == "approved"):
        said = f"stopped; approved for once {moment(found.approved)}"
        return said + (f", {found.came}, {moment(found.turned_down or found.tried)}" if found.came else "")
    return found.told + (f" {moment(found.answered)}" if found.state in ("allowed", "declined") else "")


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
