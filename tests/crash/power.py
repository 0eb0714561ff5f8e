"""Power loss: the disk is an image; what has reached it at some moment is copied and mounted again.

    unshare -m python tests/crash/power.py WORLD FOLDER [EVERY]     WORLD: everything, swap; EVERY: so many changes of names

The loop device writes to the image only what the file system has submitted to it: data and names that live in the page
cache are not in the copy. Copies are made around every sync of the program; and, since a file system may commit
its names at any time without the data they belong to, also at renames and unlinks, right after a sync of an unrelated file
has forced such a commit. Every copy is then mounted at the same place (its journal is replayed) and looked at.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash.points import _REAL, Points
from crash.scenarios import Place, build, build_swaps, change, edit, lower_big, swap
from crash.scenarios import grow as grow_root
from crash.sweep import CLOCK, Picture, Wrong, nothing_left, recover, restorable, round_trip, verified
from support import picture
from takeback.model.effects import Checkpoint

_SYNCS = ("fsync", "fdatasync", "sync", "sql COMMIT", "sql PRAGMA")
_NAMES = ("rename2", "replace", "unlink", "rename", "mkdir", "link")


class Disk:
    def __init__(self, base: Path) -> None:
        self.image = base / "disk.img"
        self.mounted = base / "mnt"
        self.copies: list[tuple[Path, int, str]] = []
        self._last = 0

    def make(self) -> None:
        self.mounted.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(24 << 20)
        _do(
            "mkfs.ext4",
            "-q",
            "-b",
            "1024",
            "-J",
            "size=2",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
            str(self.image),
        )
        self.mount(self.image)

    def mount(self, image: Path) -> None:
        _do("mount", "-o", "loop", str(image), str(self.mounted))

    def unmount(self) -> None:
        _do("umount", str(self.mounted))

    def copy(self, stage: int, where: str) -> None:
        """What is on the disk now, if that has changed since the last copy."""
        data = self.image.read_bytes()
        if (sum_ := zlib.crc32(data)) == self._last:
            return
        self._last = sum_
        target = self.image.with_name(f"copy-{len(self.copies)}.img")
        with open(target, "wb") as file:
            for at in range(0, len(data), 65536):
                chunk = data[at : at + 65536]
                if chunk.count(0) == len(chunk):
                    file.seek(at + len(chunk))
                else:
                    file.seek(at)
                    file.write(chunk)
            file.truncate(len(data))
        self.copies.append((target, stage, where))


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Moments(Points):
    """Copies the disk around every sync, and at some changes of names after a forced commit of those."""

    def __init__(self, disk: Disk, every: int) -> None:
        super().__init__()
        self.disk = disk
        self.stage = 0
        self._names = 0
        self._every = every

    def hit(self, name: str, do: Callable[[], Any], half: Any = None, sql: bool = False) -> Any:
        if not self.armed:
            return do()
        if name.startswith(_SYNCS):
            with self.paused():
                self.disk.copy(self.stage, f"before {name}")
            result = do()
            with self.paused():
                self.disk.copy(self.stage, f"after {name}")
            return result
        result = do()
        if name in _NAMES:
            self._names += 1
            if self._names % self._every == 0:
                with self.paused():
                    self._commit_names()
                    self.disk.copy(self.stage, f"after {name} and a commit of names")
        return result

    def _commit_names(self) -> None:
        fd = _REAL["open"](self.disk.mounted / "unrelated", os.O_WRONLY | os.O_CREAT, 0o600)
        _REAL["write"](fd, b"x")
        _REAL["fsync"](fd)
        os.close(fd)


Stages = list[tuple[str, Callable[[Any], Any]]]  # (what, how): an empty `what` is a person's work, synced, not counted


def swaps(place: Place) -> Stages:
    """Every kind in the place of every other."""
    return [
        ("first", lambda ws: ws.checkpoint("base")),
        ("", lambda ws: swap(place.root)),
        ("rollback", lambda ws: ws.rollback("base")),
        ("redo", lambda ws: ws.redo()),
    ]


def everything(place: Place) -> Stages:
    return [
        ("first", lambda ws: ws.checkpoint("base")),
        ("", lambda ws: (change(place.root), grow_root(place.root))),
        ("checkpoint", lambda ws: ws.checkpoint("changed")),
        ("rollback", lambda ws: ws.rollback("base")),
        ("redo", lambda ws: ws.redo()),
        ("", lambda ws: edit(place.root, b"more")),
        ("checkpoint", lambda ws: ws.checkpoint(actor="agent")),
        ("undo", lambda ws: ws.undo()),
        ("redo", lambda ws: ws.redo()),
        ("restore", lambda ws: ws.restore("base", "gone.txt")),
        ("", lambda ws: edit(place.root, b"last")),
        ("prune", lambda ws: (ws.checkpoint("last"), ws.prune(keep=2))[0]),
    ]


WORLDS = {"everything": (build, everything, ("resume",)), "swap": (build_swaps, swaps, ("resume", "abort"))}


def main() -> None:
    base, every = Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 5
    furnish, scenario, ways = WORLDS[sys.argv[1]]
    lower_big()
    disk = Disk(base)
    disk.make()
    place = Place(disk.mounted)
    furnish(place.root)
    os.sync()
    states, acknowledged = [picture(place.root)], [""]
    moments = Moments(disk, every)
    with moments.counting():
        ws = place.open(create=True)
        for what, how in scenario(place):
            if what:
                result = how(ws)
            else:
                with moments.paused():
                    how(ws)
                    os.sync()
                result = None
            moments.armed = False
            states.append(picture(place.root))
            acknowledged.append(_id_of(result))
            moments.stage += 1
            disk.copy(moments.stage, f"{what or 'work'} acknowledged")
            moments.armed = True
        moments.armed = False
        ws.close()
    disk.unmount()
    stages = [what for what, _ in scenario(place)]
    failures, where = [], []
    for image, stage, when in disk.copies:
        where.append(when)
        for way in ways:
            shutil.copyfile(image, disk.image)
            disk.mount(disk.image)
            try:
                check(place, stage, states, acknowledged, stages[stage : stage + 1] == ["restore"], way)
            except Exception as error:
                told = str(error) if isinstance(error, Wrong) else traceback.format_exc()
                failures.append(f"power lost {when} in stage {stage + 1}, {way}: {told}")
            finally:
                disk.unmount()
    print(json.dumps({"copies": len(disk.copies), "where": where, "failures": failures}))


def _id_of(result: Any) -> str:
    if result is None:
        return ""
    assert getattr(result, "whole", True), result
    return ("c" if isinstance(result, Checkpoint) else "t") + result.id


def check(place: Place, stage: int, states: list[Picture], acknowledged: list[str], clock: bool, way: str) -> None:
    """`stage` steps were acknowledged; the next may have been under way."""
    before, after = states[stage], states[min(stage + 1, len(states) - 1)]
    if clock:  # a restore leaves the folder around what it brings back with the time at which that happened
        after = {**after, b"": CLOCK}
    if stage == 0 and not (place.home.exists() and any(place.home.glob("*/workspace.json"))):
        return  # nothing was acknowledged yet
    with place.open(create=stage == 0) as ws:
        verified(ws)
        living = {c.id for c in ws.history().checkpoints}
        for number, id in enumerate(acknowledged[: stage + 1]):
            if id and ws.store.journal.get(id[1:]) is None:
                raise Wrong(f"acknowledged {id} is gone")
            if id.startswith("c") and id[1:] in living:
                restorable(ws, place, id[1:], states[number])
        recover(ws, place, way, before, after)
        nothing_left(place)
    round_trip(place)


if __name__ == "__main__":
    main()
