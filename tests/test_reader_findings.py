"""What a fresh reader of the code found: each was wrong once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import takeback
from support import PORTABLE
from takeback.apply import executor
from takeback.workspace import Workspace


def test_a_broken_ignore_file_does_not_stop_an_undo(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("2\n")
    (project / ".takebackignore").mkdir()
    ws.rollback()
    assert (project / "f").read_text() == "1\n"


def test_pruning_the_path_of_the_root_is_refused(ws: Workspace, project: Path):
    with pytest.raises(takeback.UsageError):
        ws.prune(path=".")


def test_an_export_into_the_project_replaces_nothing(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("mine\n")
    with pytest.raises(takeback.UsageError):
        ws.restore("before", "f", to=project, force=True)
    outcome = ws.restore("before", "f", to=project)
    assert not outcome.whole and (project / "f").read_text() == "mine\n"
    assert ws.restore("before", "f", to=project / "old").whole
    assert (project / "old" / "f").read_text() == "1\n"


@pytest.mark.skipif(PORTABLE, reason="portable mode has no attributes")
def test_attributes_and_mode_of_the_root_come_back(ws: Workspace, project: Path):
    os.setxattr(project, "user.mark", b"before")
    mode = project.stat().st_mode
    ws.checkpoint("before")
    os.setxattr(project, "user.mark", b"after")
    project.chmod(0o700 if mode & 0o077 else 0o755)
    assert ws.rollback().whole
    assert os.getxattr(project, "user.mark") == b"before"
    assert project.stat().st_mode == mode


def test_tracking_one_of_two_hard_links_is_no_change(ws: Workspace, project: Path):
    (project / "a").write_text("1\n")
    os.link(project / "a", project / "b")
    ws.checkpoint("before")
    assert ws.track(["b"]).changed == ()


def test_a_saved_redo_is_stale_once_its_take_back_is_pruned(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("2\n")
    ws.rollback()
    plan = ws.plan("redo", save=True)
    ws.checkpoint("after")
    ws.prune(keep=1)
    with pytest.raises((takeback.Stale, takeback.NotFound)):
        ws.apply(plan.id)


def test_an_index_from_another_time_is_not_believed(ws: Workspace, project: Path):
    """As after putting an older journal back from a backup."""
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    index = ws.observer.known()
    index.seq = 10_000
    index.apply([])
    ws.observer.save(index)
    ws.observer.forget()
    assert ws.observer.known().seq == ws.store.journal.head().seq


def test_an_abort_is_synced_before_it_is_called_one(ws: Workspace, project: Path, monkeypatch):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("2\n")
    order: list[str] = []
    monkeypatch.setattr(executor.Executor, "_conclude", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ws.rollback()
    monkeypatch.undo()
    append, sync = ws.store.journal.append, executor._sync
    monkeypatch.setattr(executor, "_sync", lambda domain: (order.append("sync"), sync(domain))[1])
    monkeypatch.setattr(ws.store.journal, "append", lambda *a, **k: (order.append("journal"), append(*a, **k))[1])
    ws.resume(abort=True)
    assert order == ["sync", "journal"]
    assert (project / "f").read_text() == "2\n"


def test_a_checkpoint_over_keep_does_not_prune_young_history(ws: Workspace, monkeypatch):
    from takeback.care import prune

    ws.settings = ws.settings._replace(keep=2)
    monkeypatch.setattr(prune, "prune", lambda *_: pytest.fail("pruned"))
    for number in range(5):
        ws.checkpoint(str(number))
    assert len(ws.history().checkpoints) == 6
