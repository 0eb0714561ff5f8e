"""The kernel's word on what changed: every kind of change is told, whatever comes or goes meanwhile is followed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

if sys.platform == "linux":
    from takeback.look.watch import inotify
    from takeback.look.watch.inotify import TreeWatcher

LONG = 60.0


def is_left_out(path: bytes, is_folder: bool) -> bool:
    return path.rpartition(b"/")[2] in (b".git", b"node_modules", b"noise.log")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src/deep").mkdir(parents=True)
    (root / "src/a.py").write_text("a\n")
    (root / "src/deep/b.py").write_text("b\n")
    (root / ".git").mkdir()
    (root / "node_modules/pkg").mkdir(parents=True)
    return root


@pytest.fixture
def watcher(tree: Path, tmp_path: Path) -> Iterator[TreeWatcher]:
    made = TreeWatcher(str(tree), is_left_out, tmp_path / "cookies")
    yield made
    made.close()


def told(watcher: TreeWatcher) -> set[bytes]:
    seen = watcher.changed()
    assert not seen.everything
    return set(seen.paths)


CHANGES: dict[str, tuple[Callable[[Path], object], set[bytes]]] = {
    "create": (lambda t: (t / "src/new").write_text("x"), {b"src/new"}),
    "edit": (lambda t: (t / "src/a.py").write_text("x"), {b"src/a.py"}),
    "delete": (lambda t: (t / "src/a.py").unlink(), {b"src/a.py"}),
    "rename": (lambda t: (t / "src/a.py").rename(t / "c"), {b"src/a.py", b"c"}),
    "chmod": (lambda t: (t / "src/a.py").chmod(0o600), {b"src/a.py"}),
    "chmod a folder": (lambda t: (t / "src").chmod(0o700), {b"src"}),
    "chmod the root": (lambda t: t.chmod(0o700), {b""}),
    "link": (lambda t: (t / "l").symlink_to("nowhere"), {b"l"}),
    "hard link": (lambda t: (t / "h").hardlink_to(t / "src/a.py"), {b"h"}),
    "mkdir": (lambda t: (t / "d").mkdir(), {b"d"}),
    "a name that is no UTF-8": (lambda t: Path(os.fsdecode(os.fsencode(t) + b"/\xff\n")).touch(), {b"\xff\n"}),
    "deep": (lambda t: (t / "src/deep/b.py").write_text("x"), {b"src/deep/b.py"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_kind_of_change_is_told_once(tree: Path, watcher: TreeWatcher, name: str):
    change, expected = CHANGES[name]
    change(tree)
    assert expected <= told(watcher)
    assert told(watcher) == set()


def test_nothing_is_told_where_nothing_happened(tree: Path, watcher: TreeWatcher):
    (tree / "src/a.py").read_text()
    assert list(tree.rglob("*"))
    assert not watcher.wait(0) and told(watcher) == set()


def test_what_is_left_out_is_not_followed(tree: Path, watcher: TreeWatcher):
    (tree / ".git/index").write_text("x")
    (tree / "node_modules/pkg/x.js").write_text("x")
    (tree / "node_modules/more").mkdir()
    (tree / "src/noise.log").write_text("x")
    (tree / "src/node_modules").mkdir()
    (tree / "src/node_modules/y").write_text("x")
    assert told(watcher) == set()


def test_a_folder_that_appears_is_listed_and_followed(tree: Path, watcher: TreeWatcher):
    (tree / "d/e").mkdir(parents=True)
    (tree / "d/e/f").write_text("1")
    assert {b"d", b"d/e", b"d/e/f"} <= told(watcher)
    (tree / "d/e/g").write_text("1")
    assert told(watcher) == {b"d/e/g"}


def test_a_folder_moved_in_comes_with_all_it_holds(tree: Path, tmp_path: Path, watcher: TreeWatcher):
    (tmp_path / "elsewhere/in").mkdir(parents=True)
    (tmp_path / "elsewhere/in/f").write_text("1")
    (tmp_path / "elsewhere").rename(tree / "moved")
    assert {b"moved", b"moved/in", b"moved/in/f"} <= told(watcher)
    (tree / "moved/in/f").write_text("2")
    assert told(watcher) == {b"moved/in/f"}


def test_a_folder_that_moves_is_followed_under_its_new_name(tree: Path, watcher: TreeWatcher):
    (tree / "src").rename(tree / "lib")
    (tree / "lib/deep/b.py").write_text("between")
    assert {b"src", b"lib", b"lib/a.py", b"lib/deep/b.py"} <= told(watcher)
    (tree / "lib/deep/b.py").write_text("2")
    assert told(watcher) == {b"lib/deep/b.py"}
    (tree / "lib").rename(tree / "src")
    told(watcher)
    (tree / "src/deep/b.py").write_text("3")
    assert told(watcher) == {b"src/deep/b.py"}


def test_a_folder_moved_out_is_let_go(tree: Path, tmp_path: Path, watcher: TreeWatcher):
    (tree / "src").rename(tmp_path / "out")
    assert told(watcher) == {b"src"}
    (tmp_path / "out/deep/b.py").write_text("not ours")
    assert told(watcher) == set()


def test_a_folder_deleted_and_made_again(tree: Path, watcher: TreeWatcher):
    for n in range(3):
        shutil.rmtree(tree / "src")
        assert {b"src", b"src/a.py", b"src/deep"} - told(watcher) == set() or n
        (tree / "src/deep").mkdir(parents=True)
        (tree / "src/a.py").write_text(str(n))
        assert {b"src", b"src/a.py", b"src/deep"} <= told(watcher)
        (tree / "src/deep/b.py").write_text(str(n))
        assert told(watcher) == {b"src/deep/b.py"}


def test_a_burst_of_a_thousand_files(tree: Path, watcher: TreeWatcher):
    for n in range(1000):
        folder = tree / f"many/{n % 37}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{n}.txt").write_text(str(n))
    files = {f"many/{n % 37}/{n}.txt".encode() for n in range(1000)}
    assert files <= told(watcher)
    shutil.rmtree(tree / "many")
    assert files <= told(watcher)


def test_a_queue_that_overflows_means_everything_and_is_followed_anew(tree: Path, watcher: TreeWatcher):
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 40_000:
        pytest.skip(f"a queue of {limit} events is too long to fill")
    for n in range(limit // 2 + 1):  # two events each: made, closed
        (tree / f"src/{n % 1000}").unlink(missing_ok=True)
        (tree / f"src/{n % 1000}").touch()
    (tree / "late").mkdir()  # its event is lost
    assert watcher.wait(LONG) and watcher.changed().everything
    assert told(watcher) == set()
    (tree / "late/x").write_text("x")
    (tree / "src/a.py").write_text("x")
    assert told(watcher) == {b"late/x", b"src/a.py"}


def test_the_barrier_leaves_no_cookie_and_sweeps_those_of_the_dead(tree: Path, tmp_path: Path, watcher: TreeWatcher):
    told(watcher)
    assert list((tmp_path / "cookies").iterdir()) == []
    (tmp_path / "cookies/cookie-999999999-1-1").touch()
    TreeWatcher(str(tree), is_left_out, tmp_path / "cookies").close()
    assert list((tmp_path / "cookies").iterdir()) == []


def test_without_a_folder_for_cookies_everything_is_looked_at(tree: Path, tmp_path: Path, watcher: TreeWatcher):
    shutil.rmtree(tmp_path / "cookies")
    assert watcher.changed().everything


def test_two_watchers_do_not_take_each_others_cookies(tree: Path, tmp_path: Path, watcher: TreeWatcher):
    other = TreeWatcher(str(tree), is_left_out, tmp_path / "cookies")
    (tree / "x").write_text("x")
    assert told(watcher) == told(other) == {b"x"}
    other.close()


def test_a_root_that_is_moved_or_deleted_means_everything(tree: Path, tmp_path: Path, watcher: TreeWatcher):
    tree.rename(tmp_path / "gone")
    assert watcher.wait(LONG) and watcher.changed().everything


def test_waiting_ends_when_woken(watcher: TreeWatcher):
    there, here = os.pipe()
    os.write(here, b"x")
    assert not watcher.wait(LONG, there)
    os.close(there)
    os.close(here)


def test_a_link_to_a_folder_is_not_gone_into(tree: Path, tmp_path: Path, watcher: TreeWatcher):
    (tmp_path / "outside").mkdir()
    (tree / "link").symlink_to(tmp_path / "outside")
    assert told(watcher) == {b"link"}
    (tmp_path / "outside/x").write_text("x")
    assert told(watcher) == set()


def test_a_limit_of_the_system_is_named():
    script = """
import resource
from takeback.look.watch.inotify import Queue
from takeback.look.watch.watcher import Unwatchable
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
held = []
try:
    while True:
        held.append(Queue())
except Unwatchable as why:
    print(why)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "limit of inotify instances" in done.stdout and "max_user_instances" in done.stdout
    assert "max_user_watches" in str(inotify._limit(errno.ENOSPC))
