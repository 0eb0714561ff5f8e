"""A damaged database costs the rows on the damaged pages and no more; the rest goes on, and the gap has a name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import takeback
from takeback.care import salvage
from takeback.journal.journal import Stored
from takeback.workspace import Workspace

PAGE = 4096


@pytest.fixture
def rows(ws: Workspace, project: Path) -> list[Stored]:
    """Of a journal of a good many pages, one row too long for a page and one pruned; it is closed."""
    for n in range(60):
        (project / f"f{n % 7}").write_text(f"{n}\n")
        ws.checkpoint(f"c{n}")
    (project / "many").mkdir()
    for n in range(150):
        (project / f"many/{n}").write_text(f"{n}\n")
    ws.checkpoint("many")
    ws.prune(keep=55)
    query = "SELECT seq, id, kind, at, body_hash, prev, hash, body FROM log ORDER BY seq"
    found = ws.store.journal._db.execute(query).fetchall()
    assert max(len(row[7] or b"") for row in found) > PAGE and any(row[7] is None for row in found)
    ws.close()
    return found


def folder_of(ws: Workspace) -> Path:
    assert ws.store.folder is not None
    return ws.store.folder


def damage(ws: Workspace, *pages: int, at: int = 0, size: int = PAGE) -> None:
    with open(folder_of(ws) / "journal.db", "r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE + at)
            file.write(b"\xa5" * size)


def test_every_row_of_a_sound_database_is_read(ws: Workspace, rows: list[Stored]):
    assert salvage.read(folder_of(ws)) == (rows, [])


def test_rows_that_are_only_in_the_write_ahead_log_are_read(ws: Workspace, project: Path, tmp_path: Path):
    for n in range(20):
        (project / "f").write_text(f"{n}\n")
        ws.checkpoint()
    wal = folder_of(ws) / "journal.db-wal"
    assert wal.stat().st_size, "the database is still open"
    shutil.copytree(folder_of(ws), tmp_path / "copy")
    found = salvage.read(tmp_path / "copy")
    assert [row[0] for row in found.rows] == list(range(1, ws.store.journal.head().seq + 1)) and not found.lost


@pytest.mark.parametrize("page", [1, 2, 5, 9])
def test_a_damaged_page_costs_its_own_rows_and_repair_goes_on(
    ws: Workspace, rows: list[Stored], project: Path, page: int
):
    damage(ws, page)
    root, settings = ws.root, ws.settings
    if salvage.why_closed(settings, root):
        with pytest.raises(takeback.Damaged):
            takeback.open(root)
        (note,) = salvage.mend(settings, root)
    else:
        with takeback.open(root) as again:
            found = again.verify()
            assert not found.ok and found.mendable and "database is damaged" in found.first_bad
            note = again.repair().notes[0]
    assert "rebuilt from" in note
    aside = list((folder_of(ws) / "quarantine").glob("*/journal.db"))
    assert len(aside) == 1 and b"\xa5" * PAGE in aside[0].read_bytes(), "never deleted"
    if os.name == "posix":
        assert all(path.stat().st_mode & 0o077 == 0 for path in (aside[0].parent, aside[0].parent.parent))
    with takeback.open(root) as again:
        found = again.verify(data=True)
        assert found.ok, found.problems
        kept = {row.seq: row.id for row in again.store.journal.rows()}
        lost = [row[0] for row in rows if kept.get(row[0]) != row[1]]
        assert len(lost) < len(rows) / 2, "most are there"
        assert bool(lost) == bool(found.known) and all(f"{seq}" in found.lost[0].path for seq in lost[:1])
        again.checkpoint("goes on")
        (project / "f1").write_text("harm")
        assert again.rollback().whole and again.verify(data=True).ok
        assert again.restore("c57", "f1", to=project.parent / "out").whole
        before = [c.id for c in again.history().checkpoints if lost and c.seq < max(lost)]
        assert before or page != 9, "the gap lies behind the horizon"
        for id in before[:1]:
            with pytest.raises(takeback.Damaged, match="altered or lost"):
                again.rollback(id)


def test_what_a_prune_took_does_not_come_back_out_of_an_old_page(ws: Workspace, rows: list[Stored]):
    pruned = {row[0] for row in rows if row[7] is None}
    damage(ws, 1, size=100)
    salvage.mend(ws.settings, ws.root)
    with takeback.open(ws.root) as again:
        assert {row.seq for row in again.store.journal.rows() if row.body is None} == pruned


def test_a_repair_that_was_killed_loses_nothing(ws: Workspace, rows: list[Stored], monkeypatch):
    damage(ws, 1, size=100)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        salvage.mend(ws.settings, ws.root)
    monkeypatch.undo()
    damage(ws, 2, 3, 4, 5)
    salvage.mend(ws.settings, ws.root)
    with takeback.open(ws.root) as again:
        assert [row.id for row in again.store.journal.rows()][: len(rows)] == [row[1] for row in rows]
        assert again.verify(data=True).ok


def test_no_garbage_stops_it(ws: Workspace, rows: list[Stored]):
    path = folder_of(ws) / "journal.db"
    sound = path.read_bytes()
    for n in range(60):
        harmed = bytearray(sound)
        for k in range(200):
            harmed[(n * 7919 + k * 104729) % len(sound)] ^= 1 << (n + k) % 8
        path.write_bytes(harmed)
        assert {row[0] for row in salvage.read(folder_of(ws)).rows} <= {row[0] for row in rows}
