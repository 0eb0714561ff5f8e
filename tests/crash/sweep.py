"""The kill sweep: an operation is run again and again, and killed at each of its points in turn.

    python tests/crash/sweep.py SCENARIO HOW FOLDER [SHIFT]     HOW: before, after, half; SHIFT: a sample of the points

A process of its own without threads, so that it may fork. Each run starts from the same saved tree and store; the child
does the operation with every mutating call counted and dies at the Nth; then this process looks at what it left:

    the journal opens and verifies ─► what was acknowledged is there ─► the tree is before, after, or one resume from it
    ─► no file of ours is left in the tree ─► checkpoint, rollback and redo work

It prints one line of JSON: how many points there were, how many died, and what did not hold.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crash.points import Points, chosen
from crash.scenarios import SCENARIOS, SECRET, Place, Scenario, edit, export, lower_big
from support import picture
from takeback.store import blobs
from takeback.workspace import Workspace

RECOVERY = {"before": "resume", "after": "abort", "half": "rollback"}
_STORE_FILES = {"workspace.json", "journal.db", "journal.db-wal", "journal.db-shm", "head", "index", "git", "git-index"}
CLOCK = ("whatever the clock said",)
Picture = dict[bytes, tuple[Any, ...]]

_RUNS = 3  # of one point: on a busy machine a run may make a call less, where a time stamp is too young to be trusted


class Wrong(Exception):
    """Something did not hold."""


def run(scenario: Scenario, place: Place, points: Points, tell: Any) -> None:
    """All stages of a scenario; `tell` is called with what each returned: that is its acknowledgement."""
    with points.counting():
        ws = place.open(create=scenario.creates)
        try:
            for stage in scenario.stages:
                if getattr(stage, "uncounted", False):
                    with points.paused():
                        result = stage(ws, place)
                else:
                    result = stage(ws, place)
                with points.paused():
                    tell(result)
        finally:
            points.armed = False
            ws.close()


def forked(scenario: Scenario, place: Place, points: Points) -> tuple[bool, list[str], list[str]]:
    """Runs in a child. Returns whether it was killed, what it acknowledged, and the names of its points."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reader)
            run(scenario, place, points, lambda result: os.write(writer, f"{_id_of(result)}\n".encode()))
            os.write(writer, json.dumps(points.names).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status:
        raise Wrong(f"the operation failed: status {status}")
    *acknowledged, names = said.split("\n")
    return killed, acknowledged, json.loads(names) if names else []


def _id_of(result: Any) -> str:
    assert getattr(result, "whole", True), result
    assert not getattr(result, "partial", ()), result
    return getattr(result, "id", "")


# -- one sweep ---------------------------------------------------------------


def prepare(scenario: Scenario, place: Place) -> None:
    """The place as each run finds it. resume and abort begin after a rollback that died halfway."""
    scenario.prepare(place)
    for meta in place.home.glob("*/workspace.json"):  # each run has a copy of the root, which is another folder
        meta.write_text(json.dumps({**json.loads(meta.read_text()), "inode": 0}))
    if scenario.name in ("resume", "abort"):
        place.save()
        total = len(forked(SCENARIOS["rollback"], place, Points())[2])
        place.again()
        killed, _, _ = forked(SCENARIOS["rollback"], place, Points(total * 6 // 10, "before"))
        assert killed
    place.save()


def reference(scenario: Scenario, place: Place, reads: bool = False) -> tuple[list[str], list[Picture]]:
    """One run without a kill: the names of its points, and the tree after each stage."""
    states = [picture(place.root)]
    points = Points(reads=reads)
    run(scenario, place, points, lambda _: states.append(picture(place.root)))
    if scenario.name == "restore":  # the folder around what it brings back keeps the time at which that happened
        states[1][b""] = CLOCK
    if scenario.name == "abort":  # what the rollback found; resume's only stage starts from a tree in between
        states[0] = states[1]
    return points.names, states


def sweep(scenario: Scenario, how: str, place: Place, shift: int | None = None) -> dict[str, Any]:
    prepare(scenario, place)
    names, states = reference(scenario, place)
    goals: dict[str, Picture] = {}
    if scenario.name in ("resume", "abort"):
        goals = _both_ends(place)
    failures: list[str] = []
    numbers = chosen(names, shift)
    if how == "half":
        numbers = [
            n for n in numbers if names[n - 1] in ("write", "pwrite")
        ]  # the other two ways have been at the rest
    dead = 0
    for tried, number in enumerate(numbers):
        name = names[number - 1]
        for _ in range(_RUNS):
            place.again()
            killed, acknowledged, _ = forked(scenario, place, Points(number, how))
            if killed:
                break
        if not killed:
            failures.append(f"point {number} ({name}) did not kill")
            continue
        dead += 1
        try:
            ways = ("resume", "abort") if scenario.name == "swap" else (RECOVERY[how],)
            if len(ways) > 1:
                place.save("killed")
            for way in ways:
                if way != ways[0]:
                    place.again("killed")
                check(scenario, place, way, acknowledged, states, goals, tried % 3 == 0)
        except Exception as error:
            told = str(error) if isinstance(error, Wrong) else traceback.format_exc()
            failures.append(f"killed {how} point {number} ({name}): {told}")
    return {"points": len(names), "tried": len(numbers), "dead": dead, "failures": failures, "names": names}


def _both_ends(place: Place) -> dict[str, Picture]:
    goals = {}
    for which in ("resume", "abort"):
        place.again()
        with place.open() as ws:
            ws.resume(abort=which == "abort")
        goals[which] = picture(place.root)
    return goals


# -- what must hold after a kill ---------------------------------------------


def check(
    scenario: Scenario,
    place: Place,
    way: str,
    acknowledged: list[str],
    states: list[Picture],
    goals: dict[str, Picture],
    thorough: bool,
) -> None:
    stage = len(acknowledged)
    before, after = states[stage], states[min(stage + 1, len(states) - 1)]
    with place.open(create=scenario.creates) as ws:
        verified(ws)
        for id in filter(None, acknowledged):
            if ws.store.journal.get(id) is None:
                raise Wrong(f"acknowledged {id} is not in the journal")
        recover(ws, place, way, goals.get("abort", before), goals.get("resume", after))
        nothing_left(place)
        if scenario.name == "checkpoint":
            for number, id in enumerate(acknowledged):
                if id:
                    restorable(ws, place, id, states[number + 1])
        if scenario.name == "export":
            exported(ws, place)
    if scenario.name == "prune path":
        with place.open() as ws:
            ws.prune(path=".env")
        no_secret(place)
    if thorough or scenario.name.startswith("prune"):
        round_trip(place)
        no_strays(place)


def recover(ws: Workspace, place: Place, way: str, before: Picture, after: Picture) -> None:
    now = picture(place.root)
    if not ws.interrupted():
        expect_one_of(now, before, after)
        return
    if way == "abort":
        outcome = ws.resume(abort=True)
    else:
        outcome = ws.resume() if way == "resume" else ws.rollback()
    assert outcome is not None
    if not outcome.whole:
        raise Wrong(f"{way} did not do all: {[r for r in outcome.results if r.result != 'done']}")
    if ws.interrupted():
        raise Wrong(f"still interrupted after {way}")
    expect_one_of(picture(place.root), before if way == "abort" else after)
    verified(ws)


def expect_one_of(now: Picture, *wanted: Picture) -> None:
    if now in wanted or any(now == {**other, b"": now[b""]} for other in wanted if other.get(b"") == CLOCK):
        return
    told = []
    for other in wanted:
        told.append({p: (now.get(p), other.get(p)) for p in sorted({*now, *other}) if now.get(p) != other.get(p)})
    raise Wrong("the tree is in between; (is, should be): " + " -- or -- ".join(map(str, told)))


def verified(ws: Workspace) -> None:
    found = ws.verify(data=True)
    if not found.ok:
        raise Wrong(f"verify: {found.problems} {found.lost}")


def nothing_left(place: Place) -> None:
    left = [str(p) for p in place.root.rglob("*") if ".takeback-" in p.name]
    if left:
        raise Wrong(f"left in the tree: {left}")


def restorable(ws: Workspace, place: Place, id: str, was: Picture) -> None:
    out = place.base / "out"
    shutil.rmtree(out, ignore_errors=True)
    outcome = ws.restore(id, to=out)
    if not outcome.whole:
        raise Wrong(f"restore of acknowledged {id}: {outcome.results}")
    got, want = picture(out), dict(was)
    del got[b""], want[b""]
    expect_one_of(got, want)


def exported(ws: Workspace, place: Place) -> None:
    """A second try brings out the whole checkpoint and leaves nothing else."""
    if not (outcome := export(ws, place)).whole:
        raise Wrong(f"the second restore --to: {outcome.results}")
    out = place.base / "out"
    left = [str(p) for p in out.rglob("*") if ".takeback-" in p.name]
    if left:
        raise Wrong(f"left in the other folder: {left}")


def round_trip(place: Place) -> None:
    """Everything goes on as if nothing had been: checkpoint, change, rollback, redo, all exact."""
    with place.open() as ws:
        taken = ws.checkpoint("afterwards")
        if taken.partial:
            raise Wrong(f"the next checkpoint is partial: {taken.partial}")
        then = picture(place.root)
        edit(place.root, b"afterwards")
        now = picture(place.root)
        for verb, wanted in (("rollback", then), ("redo", now)):
            outcome = getattr(ws, verb)()
            if not outcome.whole or outcome.finished_earlier or not outcome.id:
                raise Wrong(f"{verb} afterwards: {outcome}")
            expect_one_of(picture(place.root), wanted)
        verified(ws)
    with place.open() as ws:
        verified(ws)


def no_secret(place: Place) -> None:
    for path in place.store.rglob("*"):
        if path.is_file() and SECRET in path.read_bytes():
            raise Wrong(f"the pruned bytes are still in {path.name}")


def no_strays(place: Place) -> None:
    """The store holds only what belongs there: nothing that would pile up kill after kill."""
    with place.open() as ws:
        ws.prune(keep=1)
        needed = ws.store.blobs.size()
    strays = [str(p.relative_to(place.store)) for p in place.store.rglob("*") if p.is_file() and not _belongs(p)]
    if strays:
        raise Wrong(f"left in the store: {strays}")
    if needed > blobs.BIG / 2 and not (place.root / "big.bin").exists():
        raise Wrong(f"the store keeps {needed} bytes for a tiny tree")


def _belongs(path: Path) -> bool:
    if path.parent.name == "packs":
        return path.suffix in (".pack", ".idx", ".toc")
    if path.parent.name == "big":
        return len(path.name) == 64
    return path.name in _STORE_FILES or path.name.split(".")[0] in ("store", "apply")


def main() -> None:
    name, how, folder, *shift = sys.argv[1:]
    if how != "before":
        lower_big()
    place = Place(Path(folder))
    place.base.mkdir(parents=True, exist_ok=True)
    print(json.dumps(sweep(SCENARIOS[name], how, place, *map(int, shift))))


if __name__ == "__main__":
    main()
