"""The seam: both watchers tell the same, and when the kernel's limits are reached the other one goes on."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import PORTABLE
from takeback.look.watch.following import Following
from takeback.look.watch.watcher import Polling, Unwatchable, Watcher
from takeback.system.safefs import keys
from takeback.workspace import Workspace

LONG = 60.0
HOWS = ["polling", *(["inotify"] if sys.platform == "linux" else [])]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree/src").mkdir(parents=True)
    (tmp_path / "tree/src/a").write_text("1")
    (tmp_path / "tree/left-out").mkdir()
    return tmp_path / "tree"


@pytest.fixture(params=HOWS)
def watcher(request: pytest.FixtureRequest, tree: Path, tmp_path: Path) -> Iterator[Watcher]:
    made = Following(str(tree), lambda path, _: path == b"left-out", tmp_path / "cookies", request.param == "polling")
    assert made.how == request.param
    while made.changed().paths:  # what was made just now may be told once more
        time.sleep(0.01)
    yield made
    made.close()


def all_told(watcher: Watcher, expected: set[bytes]) -> set[bytes]:
    """What is told until all that is expected was; a watcher may tell of a path again."""
    found: set[bytes] = set()
    until = time.monotonic() + LONG
    while not expected <= found and time.monotonic() < until:
        watcher.wait(0.2)
        found |= watcher.changed().paths
    return found


def test_both_tell_what_changed(tree: Path, watcher: Watcher):
    (tree / "src/a").write_text("22")
    (tree / "src/b").write_text("1")
    assert {b"src/a", b"src/b"} <= all_told(watcher, {b"src/a", b"src/b"})
    (tree / "src/b").unlink()
    (tree / "src/a").chmod(0o600)
    assert {b"src/a", b"src/b"} <= all_told(watcher, {b"src/a", b"src/b"})
    (tree / "src").rename(tree / "lib")
    assert all_told(watcher, {b"src", b"lib", b"lib/a"}) >= {b"src", b"lib", b"lib/a"}


def test_both_leave_out_what_is_left_out(tree: Path, watcher: Watcher):
    (tree / "left-out/x").write_text("1")
    (tree / "src/x").write_text("1")
    assert b"left-out/x" not in all_told(watcher, {b"src/x"})


def test_both_come_to_rest(tree: Path, watcher: Watcher):
    (tree / "src/x").write_text("1")
    all_told(watcher, {b"src/x"})
    until = time.monotonic() + LONG
    while watcher.changed().paths and time.monotonic() < until:
        time.sleep(0.05)
    assert not watcher.wait(0.05) and not watcher.changed().paths


def test_both_say_everything_when_the_root_is_gone(tree: Path, watcher: Watcher):
    shutil.rmtree(tree)
    assert watcher.wait(LONG) and (watcher.changed().everything or watcher.changed().everything)


def test_both_can_be_woken(watcher: Watcher):
    there, here = os.pipe()
    os.write(here, b"x")
    assert not watcher.wait(LONG, there)
    os.close(there)
    os.close(here)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_beyond_the_limits_of_the_kernel_it_goes_on_by_polling(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from takeback.look.watch import inotify

    allowed, real = 4, inotify.Queue.add

    def add(self: inotify.Queue, folder: bytes) -> int:
        nonlocal allowed
        allowed -= 1
        if allowed < 0:
            raise Unwatchable("no more")
        return real(self, folder)

    monkeypatch.setattr(inotify.Queue, "add", add)
    watcher = Following(str(tree), lambda *_: False, tmp_path / "cookies", False)
    assert watcher.how == "inotify" and not watcher.limited
    (tree / "one/too/many").mkdir(parents=True)
    assert watcher.wait(LONG) and watcher.how == "polling" and watcher.limited == "no more"
    watcher.changed()
    (tree / "one/too/many/x").write_text("1")
    assert b"one/too/many/x" in all_told(watcher, {b"one/too/many/x"})
    watcher.close()
    assert Following(str(tree), lambda *_: False, tmp_path / "cookies", False).how == "polling"


def test_a_workspace_follows_what_it_covers(ws: Workspace, project: Path):
    (project / "node_modules").mkdir()
    (project / ".takebackignore").write_text("secret/\n")
    (project / "secret").mkdir()
    (project / "secret/s").write_text("1")
    ws.checkpoint()
    watcher = ws.follow()
    assert watcher.how == ("polling" if PORTABLE or sys.platform != "linux" else "inotify")
    watcher.changed()
    (project / "node_modules/x").write_text("1")
    (project / "secret/s").write_text("2")
    (project / "seen").write_text("1")
    assert not {b"node_modules/x", b"secret/s"} & all_told(watcher, {b"seen"})
    watcher.close()


def test_what_a_rule_of_the_project_excludes_is_followed_while_it_is_captured(ws: Workspace, project: Path):
    (project / "kept").mkdir()
    (project / "kept/k").write_text("1")
    ws.checkpoint()
    (project / ".takebackignore").write_text("kept/\n")  # nobody has confirmed it
    watcher = ws.follow()
    (project / "kept/k").write_text("2")
    assert b"kept/k" in all_told(watcher, {b"kept/k"})
    watcher.close()


def test_polling_tells_once_more_what_may_change_within_the_grain_of_the_clock(
    tree: Path, monkeypatch: pytest.MonkeyPatch
):
    watcher = Polling(str(tree), lambda *_: False, PORTABLE)
    monkeypatch.setattr(keys, "settled", lambda *_: False)  # a file system whose clock has not moved on
    watcher.changed()
    assert b"src/a" in watcher.changed().paths
    monkeypatch.undo()
    while watcher.changed().paths:
        time.sleep(0.01)
    assert not watcher.changed().paths
