"""One tree size, measured on both sides in turn: A B, B A, A B …

    fresh copies ─► first checkpoint ─► [nothing changed, 10 changed, restore 10]*
                 ─► every file changed ─► full restore ─► all gone ─► full restore

Only the calls are timed. What was restored is compared with what was there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from . import calm, command, samples
from .library import Library
from .samples import Size
from .shadow_git import ShadowGit

FIRST, NOTHING, CHANGED, RESTORE, FULL, GONE, DISK, COMMAND = (
    "first checkpoint",
    "nothing changed",
    "10 files changed",
    "restore 10 files",
    "full restore",
    "full restore, all was gone",
    "disk used",
    "10 files changed, whole command",
)

Side = ShadowGit | Library
Times = dict[str, dict[str, list[float]]]
Say = Callable[[str], None]


def measure(size: Size, work: Path, say: Say) -> Times:
    """Every operation on a tree of this size, in seconds (disk: in bytes), by operation and side."""
    times: Times = {}
    master = work / "master"
    say("writing the tree")
    samples.make(size, master)
    for number in range(size.bulk_rounds):
        say(f"round {number + 1} of {size.bulk_rounds}")
        home = work / f"round{number}"
        sides: list[Side] = [
            ShadowGit(home / "git" / "tree", home / "git"),
            Library(home / "ours" / "tree", home / "ours"),
        ]
        try:
            _bulk_round(size, number, master, sides, times, say)
        finally:
            for side in sides:
                side.close()
    return times


def _bulk_round(size: Size, number: int, master: Path, sides: list[Side], times: Times, say: Say) -> None:
    order = sides if number % 2 == 0 else sides[::-1]
    for side in order:
        subprocess.run(["cp", "-a", str(master), str(side.tree)], check=True)
    for side in order:
        _warm(side)
        _time(times, FIRST, side, side.first, synced=True)
        times.setdefault(DISK, {}).setdefault(side.name, []).append(_disk(side.store))
    if number == 0:
        _small_rounds(size, sides, times, say)
    paths = _files(sides[0].tree)
    for operation, spoil in ((FULL, partial(samples.change, paths=paths, round_=99)), (GONE, empty)):
        wanted = [_digest(side.tree) for side in order]
        for side in order:
            side.checkpoint()
            spoil(side.tree)
        for side, digest in zip(order, wanted):
            _warm(side)
            _time(times, operation, side, side.rollback, synced=True)
            _must_equal(side, _digest(side.tree), digest)


def _small_rounds(size: Size, sides: list[Side], times: Times, say: Say) -> None:
    paths = _files(sides[0].tree)
    whole = command.found()
    for number in range(size.small_rounds):
        say(f"round 1 of {size.bulk_rounds}, small operations {number + 1} of {size.small_rounds}")
        order = sides if number % 2 == 0 else sides[::-1]
        chosen = [samples.pick(paths, 10, 3 * number + i) for i in range(3)]
        _look(order)
        for side in order:
            _time(times, NOTHING, side, side.checkpoint)
        _change(order, chosen[0], number)
        for side in order:
            _time(times, CHANGED, side, side.checkpoint)
        wanted = [_digest(side.tree, chosen[1]) for side in order]
        _change(order, chosen[1], number)
        for side, digest in zip(order, wanted):
            _time(times, RESTORE, side, side.rollback)
            _must_equal(side, _digest(side.tree, chosen[1]), digest)
        if not whole or size.large:
            continue
        _look(order)
        _change(order, chosen[2], number)
        for side in order:
            act = partial(command.checkpoint, whole, side) if isinstance(side, Library) else side.checkpoint
            _time(times, COMMAND, side, act)


def _look(sides: list[Side]) -> None:
    """Untimed: whatever was too fresh to trust is looked at again here."""
    calm.settle()
    for side in sides:
        side.checkpoint()


def _warm(side: Side) -> None:
    """Untimed: whoever waits for the other's turn must not find its files colder for it. Systems that take back memory
    which nobody uses drop them from it within a minute."""
    for folder in (side.tree, side.store):
        for path in folder.rglob("*"):
            if stat.S_ISREG(path.lstat().st_mode):
                path.read_bytes()


def empty(tree: Path) -> None:
    """Takes everything out of a tree. Moved, not deleted: ext4 steps over the inodes of files deleted
    of late, at a great cost, which would be charged to whoever restores first."""
    away = tree.with_name(tree.name + "-emptied")
    away.mkdir()
    for entry in list(os.scandir(tree)):
        os.rename(entry.path, away / entry.name)


def _change(sides: list[Side], paths: list[str], number: int) -> None:
    for side in sides:
        samples.change(side.tree, paths, number)


def _time(times: Times, operation: str, side: Side, act: Callable[[], float], synced: bool = False) -> None:
    calm.settle(synced)
    times.setdefault(operation, {}).setdefault(side.name, []).append(act())


def _disk(folder: Path) -> int:
    """Bytes allocated, as du counts them."""
    os.sync()  # before that, blocks are only promised
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _files(tree: Path) -> list[str]:
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())


def _digest(tree: Path, paths: list[str] | None = None) -> tuple[str, str]:
    """The content and modes of a tree or of some of its files; and the times, which git does not keep."""
    content, times = hashlib.sha256(), hashlib.sha256()
    for path in sorted(tree.rglob("*")) if paths is None else [tree / path for path in paths]:
        st = path.lstat()
        content.update(f"{path} {st.st_mode:o} ".encode())
        if stat.S_ISREG(st.st_mode):
            with open(path, "rb") as file:
                content.update(hashlib.file_digest(file, "sha256").digest())
        times.update(f"{path} {st.st_mtime_ns}\n".encode())
    return content.hexdigest(), times.hexdigest()


def _must_equal(side: Side, found: tuple[str, str], wanted: tuple[str, str]) -> None:
    if found[0] != wanted[0] or (side.name == "takeback" and found[1] != wanted[1]):
        raise SystemExit(f"{side.name} did not restore the tree: the benchmark is void")
