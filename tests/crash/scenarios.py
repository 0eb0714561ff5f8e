"""Small worlds for the crash tests: a project with one of everything, changed in every way, and what is done to it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import takeback
from takeback.look import read_path, scan
from takeback.store import blobs, packs, records
from takeback.workspace import Workspace

SECRET = b"hunter2-" + bytes(range(65, 91)) + b"-only-ever-in-dot-env"


@dataclass(frozen=True)
class Place:
    """Where one run happens: the tree, the store, and an untouched copy of both to start again from."""

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "root"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def store(self) -> Path:
        return next(self.home.iterdir())

    def open(self, create: bool = False) -> Workspace:
        return takeback.open(self.root, create=create, store=str(self.home))

    def save(self, name: str = "start") -> None:
        self._copy(self.base, self.base / name)

    def again(self, name: str = "start") -> None:
        self._copy(self.base / name, self.base)

    def _copy(self, source: Path, target: Path) -> None:
        target.mkdir(exist_ok=True)
        script = 'rm -rf "$2/root" "$2/home" "$2/out"; cp -a "$1/root" "$2/"; if [ -e "$1/home" ]; then cp -a "$1/home" "$2/"; fi'
        subprocess.run(["/bin/sh", "-ec", script, "sh", source, target], check=True)


Stage = Callable[[Workspace, Place], Any]


@dataclass(frozen=True)
class Scenario:
    """`prepare` builds a place; each stage is then done in turn, and acknowledged when it has returned."""

    name: str
    prepare: Callable[[Place], None]
    stages: tuple[Stage, ...]
    minimum: int  # points that a sweep must see at least
    creates: bool = False  # the workspace itself is made by the first stage


# -- the tree ----------------------------------------------------------------


def build(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in {
        "a.txt": b"one\ntwo\nthree\n",
        "gone.txt": b"will be deleted\n",
        "mode.sh": b"#!/bin/sh\n",
        "touched": b"only its time changes\n",
        ".env": b"KEY=" + SECRET,
        "dir/x": b"x" * 300,
        "dir/sub/y": b"y\n",
        "thing": b"a file that becomes a folder\n",
        "pile/p": b"in a folder that becomes a file\n",
        "hard1": b"two names\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    os.link(root / "hard1", root / "hard2")
    (root / "twin1").write_bytes(b"the same bytes under two names" * 9)
    os.link(root / "twin1", root / "twin2")
    (root / "empty").mkdir()
    (root / "link").symlink_to("a.txt")
    (root / "mode.sh").chmod(0o640)
    _attribute(root / "a.txt", b"kept")
    _age(root, 1_600_000_000)


def change(root: Path) -> None:
    """Modifies, deletes, creates, changes modes, renames a folder, retargets a link, turns a file into a folder and a
    folder into a file, rearranges hard links, and moves an empty folder."""
    (root / "a.txt").write_bytes(b"one\nTWO\nthree\n")
    _attribute(root / "a.txt", b"changed")
    (root / "gone.txt").unlink()
    (root / "mode.sh").chmod(0o755)
    os.utime(root / "touched", ns=(5, 1_650_000_000_123_456_789))
    (root / "dir").rename(root / "dir2")
    (root / "dir2" / "sub").chmod(0o700)
    (root / "link").unlink()
    (root / "link").symlink_to("dir2/x")
    (root / "thing").unlink()
    (root / "thing").mkdir()
    (root / "thing" / "inside").write_bytes(b"new\n")
    shutil.rmtree(root / "pile")
    (root / "pile").write_bytes(b"a file now\n")
    (root / "hard2").unlink()
    (root / "hard2").write_bytes(b"alone\n")
    os.link(root / "hard1", root / "hard3")
    (root / "twin2").unlink()
    shutil.copy2(root / "twin1", root / "twin2")
    (root / "empty").rmdir()
    (root / "void").mkdir()
    (root / "new.txt").write_bytes(b"new\n" * 60)
    _age(root, 1_700_000_000, only_young=True)


KINDS = ("file", "folder", "full", "to-file", "to-folder", "dangling")
SWAPS = [(a, b) for a in KINDS for b in KINDS if a != b]


def build_swaps(root: Path) -> None:
    """For each kind and each other one a path of the first: links lead to what looks like what may take their place."""
    root.mkdir(parents=True, exist_ok=True)
    _make(root / "there", "full")
    for was, becomes in SWAPS:
        _make(root / f"{was}-{becomes}", was)
    _age(root, 1_600_000_000)


def swap(root: Path) -> None:
    for was, becomes in SWAPS:
        path = root / f"{was}-{becomes}"
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        _make(path, becomes)
    _age(root, 1_700_000_000, only_young=True)


def _make(path: Path, kind: str) -> None:
    if kind == "file":
        path.write_bytes(b"a file at " + os.fsencode(path.name))
    elif kind == "folder":
        path.mkdir()
    elif kind == "full":
        (path / "s" / "empty").mkdir(parents=True)
        (path / "s" / "f").write_bytes(b"deep in " + os.fsencode(path.name))
        (path / "s" / "l").symlink_to("f")
    else:
        path.symlink_to({"to-file": "there/s/f", "to-folder": "there", "dangling": "nowhere/s"}[kind])


def edit(root: Path, word: bytes) -> None:
    (root / "a.txt").write_bytes(b"edit " + word + b"\n")
    (root / "more").mkdir(exist_ok=True)
    (root / "more" / os.fsdecode(word)).write_bytes(word * 40)
    _age(root, 1_710_000_000, only_young=True)


def grow(root: Path) -> None:
    """A file above the size from which blobs are files of their own."""
    (root / "big.bin").write_bytes(random.Random(7).randbytes(blobs.BIG) + b"tail")
    _age(root, 1_710_000_000, only_young=True)


def lower_big() -> None:
    """Lets smaller files take the way of large ones, for sweeps that go it a thousand times."""
    for module in (blobs, packs, read_path, scan):
        assert module.BIG
        module.BIG = 1 << 16
    records.CHUNK = 1 << 14  # still in several writes


def _attribute(path: Path, value: bytes) -> None:
    if hasattr(os, "setxattr") and os.environ.get("TAKEBACK_PORTABLE") != "1":  # there, attributes are not held
        try:
            os.setxattr(path, "user.takeback-test", value)
        except OSError:
            pass


def _age(root: Path, start: int, only_young: bool = False) -> None:
    """Fixed times with nanoseconds, deepest first, so that runs are alike."""
    paths = sorted([root, *root.rglob("*")], key=lambda p: (-len(p.parts), p))
    for number, path in enumerate(paths):
        if not only_young or path.lstat().st_mtime > 1_720_000_000:
            when = (start + number) * 10**9 + 111 * number + 7
            os.utime(path, ns=(when, when), follow_symlinks=False)


# -- what is done ------------------------------------------------------------


def _start(place: Place) -> None:
    build(place.root)


def _base(place: Place) -> None:
    build(place.root)
    with place.open(create=True) as ws:
        ws.checkpoint("base")


def _changed(place: Place) -> None:
    _base(place)
    change(place.root)


def _swapped(place: Place) -> None:
    build_swaps(place.root)
    with place.open(create=True) as ws:
        ws.checkpoint("base")
    swap(place.root)


def _by_agent(place: Place) -> None:
    _changed(place)
    with place.open() as ws:
        ws.checkpoint(actor="agent")


def _rolled_back(place: Place) -> None:
    _changed(place)
    with place.open() as ws:
        assert ws.rollback().whole


def _many(place: Place) -> None:
    """Several checkpoints whose contents differ, one with a large file, and a secret that stays in the tree."""
    _base(place)
    for number in range(4):
        edit(place.root, b"version-%d" % number)
        if number == 1:
            grow(place.root)
        elif number == 2:
            (place.root / "big.bin").unlink()
        with place.open() as ws:
            ws.checkpoint(f"c{number}")
    (place.root / ".env").unlink()
    with place.open() as ws:
        ws.checkpoint("without")


def _checkpoint(label: str) -> Stage:
    return lambda ws, place: ws.checkpoint(label)


def _edit(how: Callable[[Path], None]) -> Stage:
    """What a person does in between: not counted."""

    def stage(ws: Workspace, place: Place) -> None:
        how(place.root)

    stage.uncounted = True  # type: ignore[attr-defined]
    return stage


def _take(verb: str, *what: Any, **options: Any) -> Stage:
    return lambda ws, place: getattr(ws, verb)(*what, **options)


def _revert(ws: Workspace, place: Place) -> Any:
    return ws.revert(next(row.id for row in ws.log() if row.kind == "effect"))


def export(ws: Workspace, place: Place) -> Any:
    return ws.restore("base", to=place.base / "out")


def _prune(**asked: Any) -> Stage:
    return lambda ws, place: ws.prune(**asked)


def _resume(abort: bool) -> Stage:
    return lambda ws, place: ws.resume(abort=abort)


def _change_and_grow(root: Path) -> None:
    change(root)
    grow(root)


SCENARIOS = {
    s.name: s
    for s in (
        Scenario("first", _start, (_checkpoint("first"),), 30, creates=True),
        Scenario(
            "checkpoint",
            _base,
            (_edit(_change_and_grow), _checkpoint("one"), _edit(lambda root: edit(root, b"two")), _checkpoint("two")),
            30,
        ),
        Scenario("rollback", _changed, (_take("rollback"),), 90),
        Scenario("redo", _rolled_back, (_take("redo"),), 80),
        Scenario("undo", _by_agent, (_take("undo"),), 80),
        Scenario("revert", _by_agent, (_revert,), 80),
        Scenario(
            "restore",
            _by_agent,
            (_take("restore", "base", "dir", "pile", "gone.txt", "hard2", "empty", force=True),),
            40,
        ),
        Scenario("export", _changed, (export,), 60),
        Scenario("prune keep", _many, (_prune(keep=1),), 15),
        Scenario("prune path", _many, (_prune(path=".env"),), 15),
        Scenario("swap", _swapped, (_take("rollback"),), 250),
        Scenario("resume", _changed, (_resume(abort=False),), 30),
        Scenario("abort", _changed, (_resume(abort=True),), 30),
    )
}
