"""What failed in a take-back can be done once the cause is gone, by the same verb; nothing later is wrong or stuck."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import PORTABLE, age, picture
from takeback.domains.files import Files
from takeback.model.effects import text
from takeback.workspace import Workspace

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def results(outcome) -> dict[str, str]:
    return {text(r.path): r.result for r in outcome.results}


def immutable(path: Path, on: bool) -> None:
    if subprocess.run(["chattr", "+i" if on else "-i", path], capture_output=True).returncode:
        pytest.skip("no chattr on this file system")


@pytest.mark.skipif(not ROOT, reason="only root makes files immutable")
@pytest.mark.parametrize("verb", ["undo", "rollback", "revert"])
def test_a_redo_that_failed_in_part_can_be_finished(ws: Workspace, project: Path, verb: str):
    (project / "f").write_text("1\n")
    (project / "g").write_text("1\n")
    ws.checkpoint("start")
    (project / "f").write_text("2\n")
    (project / "g").write_text("2\n")
    ws.checkpoint(actor="agent")
    done = picture(project)
    if verb == "revert":
        assert ws.revert(ws.history().effects[-1].id).whole
    else:
        assert getattr(ws, verb)(*(["start"] if verb == "rollback" else [])).whole
    immutable(project / "f", True)
    try:
        first = ws.redo()
        again = ws.redo()
    finally:
        immutable(project / "f", False)
    assert results(first) == {"f": "failed", "g": "done"} and not first.whole
    assert results(again) == {"f": "failed"}, "what is done is not done twice"
    assert (project / "f").read_text() == "1\n" and (project / "g").read_text() == "2\n"
    assert results(ws.redo()) == {"f": "done"}
    assert picture(project) == done
    assert not ws.redo().id, "and now nothing is left to redo"
    assert ws.undo().whole
    assert (project / "f").read_text() == (project / "g").read_text() == "1\n"
    assert ws.redo().whole
    assert picture(project) == done


class _Once:
    """A system call that fails at its nth use, once."""

    def __init__(self, real: Callable, at: int, code: int) -> None:
        self.real, self.left, self.code = real, at, code

    def __call__(self, *args, **named):
        self.left -= 1
        if self.left == 0:
            raise OSError(self.code, os.strerror(self.code))
        return self.real(*args, **named)


@pytest.mark.skipif(PORTABLE, reason="by folder descriptor")
@pytest.mark.parametrize("call", ["chown", "utime", "fchmod", "mkdir"])
@pytest.mark.parametrize("at", range(1, 7))
def test_what_fails_at_a_folder_in_a_redo_is_mended_by_the_next(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch, call: str, at: int
):
    (project / "keep").write_text("1\n")
    age(project)
    ws.checkpoint("start")
    start = picture(project)
    (project / "d" / "e").mkdir(parents=True)
    (project / "d").chmod(0o750)
    (project / "d" / "f").write_text("1\n")
    (project / "d" / "e" / "g").write_text("1\n")
    (project / "keep").write_text("2\n")
    age(project)
    ws.checkpoint("done")
    done = picture(project)
    assert ws.rollback("start").whole
    assert picture(project) == start
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _Once(getattr(os, call), at, errno.EIO))
        first = ws.redo()
    if picture(project) != done:
        assert not first.whole
        ws.redo()
    now = picture(project)
    late = {p for p in done if now[p] != done[p]}  # the time alone of a folder around them is no work to take back
    assert all(now[p][:5] == done[p][:5] and results(first)[text(p)] == "failed" for p in late)
    assert ws.rollback("start").whole
    assert picture(project) == start
    assert ws.rollback("done").whole
    assert picture(project) == done


@contextmanager
def stuck(*paths: str) -> Iterator[None]:
    """Steps on these paths fail."""

    def failing(act: Callable) -> Callable:
        def tried(self, step, *rest):
            if text(step.path) in paths:
                raise OSError(errno.EPERM, os.strerror(errno.EPERM))
            return act(self, step, *rest)

        return tried

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_remove", "_place", "_stay"):
            patch.setattr(Files, name, failing(getattr(Files, name)))
        yield


def _make(root: Path) -> None:
    (root / "d1/a").write_text("one\n")
    os.link(root / "d1/a", root / "d2/a")
    os.link(root / "d1/a", root / "d3/a")


def _remove(root: Path) -> None:
    for name in ("d1/a", "d2/a", "d3/a"):
        (root / name).unlink()


def _edit(root: Path) -> None:
    (root / "d2/a").write_text("two\n")


def _part(root: Path) -> None:
    (root / "d1/a").unlink()
    (root / "d1/a").write_text("one\n")


@pytest.mark.parametrize("verb", ["undo", "rollback", "redo"])
@pytest.mark.parametrize("names", [("d1/a",), ("d2/a",), ("d3/a",), ("d1/a", "d3/a"), ("d2/a", "d3/a")])
@pytest.mark.parametrize("work", [_make, _remove, _edit, _part])
def test_what_failed_on_a_name_of_a_file_of_several_can_be_finished(
    ws: Workspace, project: Path, verb: str, names: tuple[str, ...], work: Callable[[Path], None]
):
    """What was done to its other names changed what it is linked with: our own doing, and nobody's change."""
    for folder in ("d1", "d2", "d3"):
        (project / folder).mkdir()
    if work is not _make:
        _make(project)
    ws.checkpoint("start")
    start = picture(project, times=False)
    work(project)
    ws.checkpoint(actor="agent")
    done = picture(project, times=False)
    goal = done if verb == "redo" else start
    found = ws.history().effects
    if verb == "redo":
        assert ws.undo().whole
    act = {"undo": ws.undo, "rollback": lambda: ws.rollback("start"), "redo": ws.redo}[verb]
    with stuck(*names):
        first = act()
    if picture(project, times=False) != goal:
        assert not first.whole
        again = act()
        assert again.whole, [(r.path, r.result, r.note) for r in again.results]
    assert picture(project, times=False) == goal
    ws.checkpoint()
    assert [e for e in ws.history().effects if not e.takeback] == found, "nobody else did anything"


@pytest.fixture
def moved(ws: Workspace, project: Path) -> dict[bytes, tuple]:
    """What the tree was at its start; since then a folder became a file, and another one got another file."""
    (project / "keep").write_text("1\n")
    (project / "d" / "e").mkdir(parents=True)
    (project / "d" / "f").write_text("1\n")
    (project / "k").mkdir()
    (project / "k" / "x").write_text("1\n")
    age(project)
    ws.checkpoint("start")
    found = picture(project)
    shutil.rmtree(project / "d")
    (project / "d").write_text("x\n")
    (project / "k" / "x").rename(project / "k" / "y")
    age(project)
    ws.checkpoint(actor="agent")
    return found


@pytest.mark.skipif(PORTABLE, reason="by folder descriptor")
@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("verb", ["undo", "rollback", "redo"])
def test_a_time_that_could_not_be_set_for_a_moment_is_set(
    ws: Workspace, project: Path, moved: dict, monkeypatch: pytest.MonkeyPatch, verb: str, at: int
):
    goal = moved
    if verb == "redo":
        goal = picture(project)
        assert ws.undo().whole
    act = {"undo": ws.undo, "rollback": lambda: ws.rollback("start"), "redo": ws.redo}[verb]
    with monkeypatch.context() as patch:
        once = _Once(os.utime, at, errno.ENOSPC)
        patch.setattr(os, "utime", once)
        patch.setattr(os, "supports_fd", {*os.supports_fd, once})
        first = act()
    if picture(project) != goal:
        assert not first.whole and act().whole
    assert picture(project) == goal


@pytest.mark.parametrize("path", ["d", "d/e", "k", "keep", ""])
def test_a_time_that_could_not_be_set_is_set_by_the_same_rollback_later(
    ws: Workspace, project: Path, moved: dict, monkeypatch: pytest.MonkeyPatch, path: str
):
    def refusing(self, at, *rest):
        if text(at) == path:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        return real(self, at, *rest)

    real = Files._finish_folder
    with monkeypatch.context() as patch:
        patch.setattr(Files, "_finish_folder", refusing)
        first = ws.rollback("start")
    [failed] = [r for r in first.results if r.result == "failed"]
    assert text(failed.path) == path and picture(project, times=False)[b"k/x"]
    assert failed.note.startswith("its time could not be put back: ") is (path in ("k", "keep", ""))
    ws.checkpoint()
    assert ws.rollback("start").whole
    assert picture(project) == moved
