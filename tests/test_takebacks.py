"""Times come and go with what is taken back; what only its times changed comes back with its row."""

from __future__ import annotations

import os
from pathlib import Path

from takeback.workspace import Workspace

OLD, NEW = 1_600_000_000_000_000_001, 1_700_000_000_000_000_002


def touch(path: Path, mtime_ns: int) -> None:
    os.utime(path, ns=(mtime_ns, mtime_ns))


def times(project: Path) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in sorted(project.iterdir())}


def test_a_mere_touch_goes_back_and_forth_with_the_work_around_it(ws: Workspace, project: Path):
    for name in ("edited", "touched"):
        (project / name).write_text("1\n")
        touch(project / name, OLD)
    ws.checkpoint("before")
    before = times(project)
    (project / "edited").write_text("2\n")
    touch(project / "edited", NEW)
    touch(project / "touched", NEW)
    after = times(project)
    ws.rollback()
    assert times(project) == before
    ws.redo()
    assert times(project) == after
    ws.undo()
    assert times(project) == before


def test_a_touch_alone_is_nothing_to_take_back(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    touch(project / "f", NEW)
    assert not ws.rollback().id
    assert ws.status().changes == ()
    assert (project / "f").stat().st_mtime_ns == NEW


def test_a_later_touch_by_somebody_stays(ws: Workspace, project: Path):
    for name in ("edited", "touched"):
        (project / name).write_text("1\n")
    ws.checkpoint("before")
    (project / "edited").write_text("2\n")
    touch(project / "touched", OLD)
    ws.checkpoint(actor="agent")
    touch(project / "touched", NEW)
    ws.undo()
    assert (project / "edited").read_text() == "1\n"
    assert (project / "touched").stat().st_mtime_ns == NEW
