"""Whether the store holds what its records say; and repair, which sets aside and never deletes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .effects import text
from .errors import Damaged
from .ids import new_id
from .journal import New, Row
from .prune import purged
from .reach import needs
from .records import Bad

if TYPE_CHECKING:
    from .workspace import Workspace


@dataclass(frozen=True)
class Lost:
    """What a damaged or missing blob costs."""

    entry: str  # id of the checkpoint, effect or take-back
    kind: str
    path: str
    why: str


@dataclass(frozen=True)
class Verified:
    ok: bool
    first_bad: str  # the first entry that does not hold, as a sentence; empty if all do
    lost: tuple[Lost, ...]
    rows: int
    blobs: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Repaired:
    quarantined: int
    lost: tuple[Lost, ...]
    notes: tuple[str, ...]


def verify(ws: Workspace, data: bool) -> Verified:
    problems = [f"row {bad.seq}: {bad.why}" for bad in ws.store.journal.check()]
    altered = bool(problems)
    bad = {b.id: b for b in ws.store.blobs.check(data, ws.progress)}
    problems += [f"blob {b.id.hex()[:12]} ({b.where}): {b.why}" for b in bad.values()]
    lost, rows, missing = _lost(ws, bad)
    problems += [f"blob {id.hex()[:12]} is missing" for id in missing]
    count = sum(1 for _ in ws.store.blobs.ids())
    return Verified(
        not problems,
        problems[0] if problems else "",
        tuple(lost),
        rows,
        count,
        tuple(problems[:100]) if altered or problems else (),
    )


def _lost(ws: Workspace, bad: dict[bytes, Bad]) -> tuple[list[Lost], int, list[bytes]]:
    """Walks everything the rows lead to; names each path that is not there whole."""
    rows = _readable_rows(ws)
    removed = purged(rows)
    present = set(ws.store.blobs.ids())
    lost: list[Lost] = []
    missing: dict[bytes, None] = {}
    for row in rows:
        told: set[bytes] = set()
        for need in needs(row, ws.store.blobs, set()):
            if need.id in removed or (need.id in present and need.id not in bad):
                continue
            why = bad[need.id].why if need.id in bad else "missing"
            if need.id not in bad:
                missing[need.id] = None
            if need.path not in told:
                told.add(need.path)
                kind = {"change": "effect"}.get(row.kind, row.kind)
                lost.append(Lost(row.id, kind, text(need.path) or "(its list of paths)", why))
    return lost, len(rows), list(missing)


def _readable_rows(ws: Workspace) -> list[Row]:
    """The rows that still hold; altered ones are named by the chain's own check."""
    rows = []
    after = 0
    while True:
        try:
            for row in ws.store.journal.rows(after):
                rows.append(row)
                after = row.seq
            return rows
        except Damaged:
            after += 1


def repair(ws: Workspace) -> Repaired:
    """Sets damaged blobs aside, rebuilds the caches and says what is lost. The journal itself is never rewritten."""
    bad = list(ws.store.blobs.check(True))
    lost, _, _ = _lost(ws, {b.id: b for b in bad})
    moved = ws.store.blobs.quarantine(bad)
    notes = []
    if ws.store.folder is not None:
        index = ws.store.folder / "index"
        if index.exists():
            index.unlink()
            notes.append("the index was dropped; the next look rebuilds it")
    ws.observer.forget()
    if not list(ws.store.journal.check()):
        body = {"what": "repair", "quarantined": [b.id.hex() for b in bad]}
        ws.store.journal.append([New("note", new_id(), body)], ws.clock())
    else:
        notes.append("the journal's chain does not hold; it is left as it is, as evidence")
    return Repaired(moved, tuple(lost), tuple(notes))
