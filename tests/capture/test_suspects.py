"""A look at the folders that may differ finds exactly what a look at all of them finds, whatever happened."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sampling
import takeback
from support import PORTABLE
from takeback.look.scan import Look, Scan
from takeback.workspace import Workspace

pytestmark = pytest.mark.skipif(PORTABLE or sys.platform != "linux", reason="only the kernel of Linux vouches so far")


@pytest.fixture
def watched(project: Path) -> Iterator[Workspace]:
    for name in ("a/b/c", "a/d", "e", "f/g/h/i"):
        (project / name).mkdir(parents=True)
        (project / name / "file").write_text(name)
    with takeback.open(project, create=True) as ws:
        time.sleep(0.03)
        ws.checkpoint("settled")  # nothing is too fresh any more
        ws.keep_watch()
        yield ws


def both(ws: Workspace) -> tuple[Look, Look]:
    """The same moment, seen by asking the watcher and by visiting every folder; the first is journaled."""
    observer = ws.observer
    assert observer.suspects is not None
    with ws.writing(), ws.open_tree() as tree:
        known = observer.known()
        full = Scan(tree, known.copy(), observer.rules(tree), None, observer.limits()).whole()
        few = observer.scan(tree, known)
        observer.journal_look(few, observer.rows_of(few))
    return few, full


def assert_same(few: Look, full: Look) -> None:
    assert few.changes == full.changes
    assert few.lacking == full.lacking
    assert few.whole and full.whole
    assert {p: r.object for p, r in few.index.folders.items()} == {p: r.object for p, r in full.index.folders.items()}
    assert few.index.gaps == full.index.gaps
    assert few.index.links == full.index.links
    assert list(few.index.folders) == list(full.index.folders)


class Hands:
    """Somebody who changes a tree at random."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.chance = random.Random(seed)
        self.made = 0

    def paths(self, folders: bool) -> list[Path]:
        """All that is covered: a second name elsewhere tells nobody, as the module says."""
        found = [p for p in sorted(self.root.rglob("*")) if p.is_dir() == folders and not p.is_symlink()]
        found = [p for p in found if "node_modules" not in p.parts]
        return [*found, self.root] if folders else found

    def act(self) -> None:
        getattr(self, self.chance.choice(self.ACTS))()

    def _folder(self) -> Path:
        return self.chance.choice(self.paths(True))

    def _file(self) -> Path:
        return self.chance.choice(self.paths(False) or [self.new()])

    def new(self) -> Path:
        self.made += 1
        path = self._folder() / f"n{self.made}{self.chance.choice(['', '.log'])}"
        path.write_text(str(self.made))
        return path

    def write(self) -> None:
        with open(self._file(), "a") as file:
            file.write("more")

    def delete(self) -> None:
        self._file().unlink()

    def replace(self) -> None:
        self.made += 1
        path, new = self._file(), self.root / f"new{self.made}"
        new.write_text("replaced")
        os.replace(new, path)

    def make_folder(self) -> None:
        self.made += 1
        path = self._folder() / f"d{self.made}/deep{self.made}"
        path.mkdir(parents=True)
        (path / "x").write_text("x")

    def move(self) -> None:
        self.made += 1
        source, target = self.chance.choice([self._file(), self._folder()]), self._folder()
        if source != self.root and source not in (target, *target.parents):
            source.rename(target / f"m{self.made}")

    def remove_folder(self) -> None:
        import shutil

        if (path := self._folder()) != self.root:
            shutil.rmtree(path)

    def mode(self) -> None:
        self.chance.choice([self._file(), self._folder()]).chmod(self.chance.choice([0o700, 0o750, 0o755]))

    def touch(self) -> None:
        os.utime(self.chance.choice([self._file(), self._folder()]), (1_600_000_000, 1_600_000_000 + self.made))

    def link(self) -> None:
        self.made += 1
        os.link(self._file(), self._folder() / f"l{self.made}")

    def symlink(self) -> None:
        self.made += 1
        (self._folder() / f"s{self.made}").symlink_to(self.chance.choice(["a", "nowhere", "../e"]))

    def heap(self) -> None:
        """Left out by the rules; the folder it is in has a new time."""
        (self._folder() / "node_modules").mkdir(exist_ok=True)

    def nothing(self) -> None:
        time.sleep(0.025)

    ACTS = (
        "new", "new", "write", "write", "delete", "replace", "make_folder", "move", "remove_folder", "mode", "touch",
        "link", "symlink", "heap", "nothing",
    )  # fmt: skip


def facts(ws: Workspace) -> dict[bytes, tuple[bytes, ...]]:
    return {path: (r.names, r.keys, *r.ids) for path, r in ws.observer.known().folders.items()}


@pytest.mark.parametrize("seed", range(sampling.number(6, 60)))
def test_few_folders_tell_what_all_of_them_tell(watched: Workspace, seed: int):
    hands = Hands(watched.root, seed)
    partial = 0
    for _ in range(25):
        for _ in range(hands.chance.randrange(5)):
            hands.act()
        assert_same(*both(watched))
        partial += watched.observer.suspects.is_partial
        with takeback.open(watched.root) as again:  # what was written of it is all of it
            assert facts(again) == facts(watched)
    assert partial >= 20  # else nothing was proved


@pytest.mark.parametrize("seed", range(3))
def test_lost_events_are_made_up_for(watched: Workspace, seed: int):
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip("the queue of this system is too long to fill")
    hands = Hands(watched.root, 100 + seed)
    both(watched)
    for number in range(limit + 100):  # two files in turn, since equal events in a row are one
        os.utime(watched.root / ("a/d/file", "e/file")[number % 2])
    for _ in range(5):
        hands.act()
    assert_same(*both(watched))
    assert not watched.observer.suspects.is_partial
    hands.act()
    assert_same(*both(watched))
    assert watched.observer.suspects.is_partial


def test_another_process_that_looks_takes_nothing_from_this_one(watched: Workspace):
    for number in range(4):
        (watched.root / "a/b/file").write_text(f"mine {number}")
        (watched.root / f"e/new{number}").write_text("more")
        with takeback.open(watched.root) as other:
            other.checkpoint("of another process")
        (watched.root / "a/b/file").write_text(f"again {number}")
        few, full = both(watched)
        assert_same(few, full)
        assert b"a/b/file" in {c.path for c in few.changes}


def test_a_look_that_was_not_journaled_lets_nothing_go(watched: Workspace):
    (watched.root / "a/d/file").write_text("changed")
    watched.glance()
    watched.glance()
    assert [c.path for c in watched.glance().changes] == [b"a/d/file"]
    with pytest.raises(RuntimeError), watched.writing(), watched.open_tree() as tree:
        watched.observer.scan(tree, watched.observer.known())
        raise RuntimeError("killed before anything was journaled")
    assert [c.path for c in both(watched)[0].changes] == [b"a/d/file"]


def test_named_paths_let_nothing_else_go(watched: Workspace):
    (watched.root / "a/d/file").write_text("changed")
    (watched.root / "e/file").write_text("changed too")
    watched.track(["e/file"])
    few, full = both(watched)
    assert_same(few, full)
    assert b"a/d/file" in {c.path for c in few.changes}


def test_new_rules_are_followed_from_then_on(watched: Workspace):
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "takeback"
    assert not config.exists()
    (watched.root / ".takebackignore").write_text("*.log\n")
    (watched.root / "e/a.log").write_text("left out once confirmed")
    assert_same(*both(watched))
    watched.confirm_rules()
    assert_same(*both(watched))
    (watched.root / "e/b.log").write_text("left out")
    (watched.root / "e/c").write_text("new")
    few, full = both(watched)
    assert_same(few, full)
    assert watched.observer.suspects.is_partial
    assert b"e/c" in {c.path for c in few.changes}


def test_a_folder_closed_to_us_and_opened_again(watched: Workspace):
    if os.geteuid() == 0:
        pytest.skip("nothing is closed to root")
    closed = watched.root / "a/b"
    closed.chmod(0)
    try:
        assert_same(*both(watched))
    finally:
        closed.chmod(0o755)
    (closed / "file").write_text("changed")
    assert_same(*both(watched))


def test_a_folder_that_others_may_write_to_is_never_vouched_for():
    from takeback.system.safefs import mounts

    assert not mounts.is_local("/proc")
    assert not mounts.is_local("/sys")


def test_what_no_event_tells_is_found_by_a_thorough_look(watched: Workspace):
    import mmap

    path = watched.root / "a/d/file"
    path.write_bytes(b"x" * 4096)
    both(watched)
    time.sleep(0.03)
    both(watched)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096) as mapped:
        mapped[:3] = b"new"  # the map stays open: no event
        with watched.writing(), watched.open_tree() as tree:
            few = watched.observer.scan(tree, watched.observer.known())
            full = watched.observer.scan(tree, watched.observer.known(), thorough=True)
        assert not few.changes
        assert [c.path for c in full.changes] == [b"a/d/file"]
    assert [c.path for c in both(watched)[0].changes] == [b"a/d/file"]  # closed: that is told
