"""ENOSPC for real: a file system of two megabytes under the store, or under the tree.

unshare -m python tests/crash/full_disk.py store|tree FOLDER
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash.scenarios import Place, build, change
from crash.sweep import Wrong, expect_one_of, nothing_left, restorable, round_trip, verified
from support import picture
from takeback.errors import TakebackError

_NOISE = random.Random(3).randbytes(3 << 20)


def fill(folder: Path) -> Path:
    """Takes what is left of a disk."""
    path = folder / "filler"
    folder.mkdir(exist_ok=True)
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 4096, 512):
            try:
                while True:
                    file.write(_NOISE[:size])
            except OSError:
                pass
    return path


def refused(act: Callable[[], Any], refusals: list[str]) -> None:
    try:
        got = act()
    except TakebackError as error:
        refusals.append(error.message)
    else:
        raise Wrong(f"worked on a full disk: {got}")


def full_store(place: Place, refusals: list[str]) -> None:
    build(place.root)
    (place.root / "large").write_bytes(_NOISE)
    refused(lambda: place.open(create=True), refusals)
    (place.root / "large").unlink()
    with place.open(create=True) as ws:
        base = ws.checkpoint("base")
        then = picture(place.root)
        change(place.root)
        now = picture(place.root)
        filler = fill(place.home)
        refused(lambda: ws.checkpoint("no room"), refusals)
        refused(ws.rollback, refusals)
        expect_one_of(picture(place.root), now)
        filler.unlink()
        verified(ws)
        if not ws.rollback().whole:
            raise Wrong("the rollback after making room is not whole")
        expect_one_of(picture(place.root), then)
        restorable(ws, place, base.id, then)
    round_trip(place)


def full_tree(place: Place, refusals: list[str]) -> None:
    build(place.root)
    (place.root / "large").write_bytes(_NOISE[: 1 << 20])
    with place.open(create=True) as ws:
        base = ws.checkpoint("base")
        then = picture(place.root)
        change(place.root)
        (place.root / "large").write_bytes(b"small")
        filler = fill(place.root / "node_modules")  # excluded: never in a take-back's way, and never deleted by one
        outcome = ws.rollback()
        failed = [r for r in outcome.results if r.result == "failed"]
        if outcome.whole or not any(r.path == b"large" for r in failed):
            raise Wrong(f"a rollback on a full disk: {outcome.results}")
        refusals += [r.note for r in failed]
        nothing_left(place)
        if (place.root / "large").read_bytes() != b"small":
            raise Wrong("the file that found no room was changed")
        verified(ws)
        filler.unlink()
        filler.parent.rmdir()
        if not (again := ws.rollback("base")).whole:
            raise Wrong(f"the second rollback: {again.results}")
        got, want = picture(place.root), dict(then)
        del got[b""], want[b""]
        expect_one_of(got, want)
        restorable(ws, place, base.id, then)
    round_trip(place)


def main() -> None:
    what, base = sys.argv[1], Path(sys.argv[2])
    place = Place(base)
    small = place.home if what == "store" else place.root
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", small], check=True)
    refusals: list[str] = []
    failures: list[str] = []
    try:
        (full_store if what == "store" else full_tree)(place, refusals)
    except Exception:
        failures.append(traceback.format_exc())
    print(json.dumps({"refusals": refusals, "failures": failures}))


if __name__ == "__main__":
    main()
