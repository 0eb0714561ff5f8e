"""Whether the store holds what its records say; and repair, which sets aside and never deletes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from takeback.errors import Damaged
from takeback.journal.journal import New, Row
from takeback.model.effects import domain_of, text, thread_of
from takeback.model.ids import new_id
from takeback.store.records import Bad

from . import salvage
from .prune import forget_keys, purged
from .reachability import needs

if TYPE_CHECKING:
    from pathlib import Path

    from takeback.workspace import Workspace


_READ = ("state", "writes", "thread")  # rows of threads that are checked whole; values are where a state needs them


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
    known: int = 0  # how many of the lost are known since a repair, and no problem any more
    mendable: bool = False  # whether repair would set something aside or right


@dataclass(frozen=True)
class Repaired:
    quarantined: int
    lost: tuple[Lost, ...]
    notes: tuple[str, ...]


def verify(ws: Workspace, data: bool) -> Verified:
    if (broken := ws.store.journal.broken()) and ws.store.folder is not None:
        return of_damaged(ws.store.folder, broken)
    problems = [f"row {bad.seq}: {bad.why}" for bad in ws.store.journal.check()]
    bad = {b.id: b for b in ws.store.blobs.check(data, ws.progress)}
    problems += [f"blob {b.id.hex()[:12]} ({b.where}): {b.why}" for b in bad.values()]
    rows = list(ws.store.journal.rows(full=_READ))
    lost, known, missing, told = _lost(ws, rows, bad)
    problems += [f"blob {id.hex()[:12]} is missing" for id in missing]
    of_threads = _lost_states(ws, told)
    problems += [each.why for each in of_threads]
    lost += of_threads
    count = sum(1 for _ in ws.store.blobs.ids())
    return Verified(
        not problems,
        problems[0] if problems else "",
        (*lost, *known),
        len(rows),
        count,
        tuple(problems[:100]),
        len(known),
        bool(bad or missing or ws.store.journal.cut() or ws.store.journal.kept_head() is None),
    )


def of_damaged(folder: Path, why: str) -> Verified:
    """Of a store whose database or description is damaged: which rows that costs."""
    found = salvage.read(folder)
    lost = [
        Lost("journal", "journal", f"({salvage.said([span])})", "cannot be read; take-backs across it are refused")
        for span in found.lost
    ]
    return Verified(False, why, tuple(lost), len(found.rows), 0, (why,), 0, True)


def _lost(
    ws: Workspace, rows: list[Row], bad: dict[bytes, Bad]
) -> tuple[list[Lost], list[Lost], list[bytes], set[int]]:
    """Walks everything the rows lead to; names each path that is not there whole, known losses apart, the blobs that
    are missing, and the rows that all this is about."""
    removed = purged(rows)
    accepted = _accepted(rows)
    present = set(ws.store.blobs.ids())
    lost: list[Lost] = []
    known: list[Lost] = []
    missing: dict[bytes, None] = {}
    about: set[int] = set()
    for row in rows:
        told: set[bytes] = set()
        if row.damaged:
            lost.append(Lost(row.id, _kind(row), "(the entry itself)", "its journal row was altered"))
        elif row.kind == "note" and row.body and row.body.get("what") == "cut":
            first, last = row.body["rows"]
            known.append(Lost(row.id, "journal", f"(rows {first} to {last})", "the tail was cut; repair went on"))
        elif row.kind == "note" and row.body and row.body.get("gap"):
            why = "the database was damaged, and repair went on; take-backs across it are refused"
            known.append(Lost(row.id, "journal", f"({salvage.said(row.body['gap'])})", why))
        for need in needs(row, ws.store.blobs, set()):
            if need.id in removed or (need.id in present and need.id not in bad):
                continue
            is_known = need.id in accepted and need.id not in bad
            why = bad[need.id].why if need.id in bad else "set aside by repair" if is_known else "missing"
            if need.id not in bad and not is_known:
                missing[need.id] = None
            if need.path not in told:
                told.add(need.path)
                about.add(row.seq)
                entry = row.body["id"] if row.kind == "state" and row.body else row.id
                each = Lost(entry, _kind(row), _called(need.path) or "(its list of paths)", why)
                (known if is_known else lost).append(each)
    return lost, known, list(missing), about


def _lost_states(ws: Workspace, told: set[int]) -> list[Lost]:
    """State checkpoints that are not as they were stored, but for the rows whose loss is told already."""
    if not ws.store.journal.newest_id("state"):
        return []
    bad = [each for each in ws.threads.verify() if each.thread and not each.ok and each.seq not in told]
    return [Lost(each.id, "state", f"thread {each.thread}", f"row {each.seq}: {each.why}") for each in bad]


def _called(path: bytes) -> str:
    return f"thread {thread_of(path)}" if domain_of(path) == "state" else text(path)


def _kind(row: Row) -> str:
    return {"change": "effect"}.get(row.kind, row.kind)


def _accepted(rows: list[Row]) -> set[bytes]:
    """Blobs that a repair set aside or found gone, and said so."""
    notes = [row.body for row in rows if row.kind == "note" and row.body and row.body.get("what") == "repair"]
    return {bytes.fromhex(id) for body in notes for key in ("quarantined", "missing") for id in body.get(key, ())}


def repair(ws: Workspace) -> Repaired:
    """Sets damaged blobs aside, rebuilds the caches and says what is lost. No row of the journal is ever rewritten: a
    note says what repair found, lost rows among it, and it goes on from there."""
    journal = ws.store.journal
    notes = []
    if journal.broken() and ws.store.folder is not None:
        notes.append(salvage.rebuild_journal(ws.store.folder))
        journal.reopen()
        ws.observer.forget_history()
    rows = list(journal.rows(full=_READ))
    found = list(ws.store.blobs.check(True))
    bad = {b.id: b for b in found}
    lost, *_ = _lost(ws, rows, bad)
    moved = ws.store.blobs.quarantine(found)
    _, _, missing, _ = _lost(ws, rows, {})
    ws.observer.forget()
    cut = journal.cut()
    try:
        if cut is not None:
            raise Damaged("the index may tell of lost rows")
        forget_keys(ws, {*bad, *missing})  # it is kept: it has the folder objects that may be lost in the store
    except Damaged:
        ws.observer.start_anew()
        notes.append("the index was dropped; the next look rebuilds it")
    body = {
        "what": "repair",
        "quarantined": [id.hex() for id in bad],
        "missing": [id.hex() for id in missing if id not in bad],
    }
    new = [New("note", new_id(), body)]
    if cut is not None:
        new.insert(0, New("note", new_id(), {"what": "cut", "rows": list(cut)}))
        notes.append(f"the journal's rows {cut[0]} to {cut[1]} are lost; that is recorded, and it goes on without them")
    journal.append(new, ws.clock(), across_cut=True)
    if list(journal.check()):
        notes.append("the journal's chain does not hold; it is left as it is, as evidence")
    return Repaired(moved, tuple(lost), tuple(notes))
