"""Processes beside each other: locks of the dead are free at once, and one of two rollbacks wins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from runs import quick_folder
from scenarios import Place, build, change, edit

from support import picture

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

_WORKER = """
import json, os, sys
sys.path[:0] = [{tests!r}, {here!r}]
from pathlib import Path
from scenarios import Place, edit
place = Place(Path({base!r}))
verb, *args = sys.argv[1:]
ws = place.open()
print("ready", flush=True)
sys.stdin.readline()
out = []
if verb == "rollback":
    outcome = ws.rollback(args[0])
    out = [outcome.id, outcome.whole, outcome.counts["done"]]
elif verb == "checkpoints":
    for number in range(3):
        (place.root / f"by-{{args[0]}}-{{number}}").write_text("x")
        out.append(ws.checkpoint(f"{{args[0]}}-{{number}}").id)
elif verb == "stall":
    from takeback.store import packs
    from takeback.domains import files
    def stall(*_):
        print("stalled", flush=True)
        sys.stdin.readline()
    if args[0] == "checkpoint":
        packs.Packs.flush = stall
        ws.checkpoint("never")
    else:
        files.Files.sync = stall
        ws.rollback("base")
print(json.dumps(out), flush=True)
"""


class Worker:
    def __init__(self, place: Place, *args: str) -> None:
        here = str(Path(__file__).resolve().parent)
        code = _WORKER.format(tests=str(Path(here).parent), here=here, base=str(place.base))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self) -> Any:
        said = self.line()
        assert self.process.wait(30) == 0
        self.close()
        return json.loads(said)

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self.close()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _changed(base: Path) -> tuple[Place, dict[bytes, Any]]:
    place = Place(base)
    build(place.root)
    with place.open(create=True) as ws:
        ws.checkpoint("base")
    then = picture(place.root)
    change(place.root)
    return place, then


def test_two_rollbacks_at_once_one_wins_and_the_other_is_told() -> None:
    with quick_folder() as base:
        place, then = _changed(base)
        both = [Worker(place, "rollback", "base") for _ in range(2)]
        for worker in both:
            worker.go()
        results = [worker.result() for worker in both]
        winners = [id for id, whole, done in results if id and done]
        assert len(winners) == 1, results
        assert all(whole for _, whole, _ in results), results
        assert picture(place.root) == then
        with place.open() as ws:
            assert ws.verify(data=True).ok
            assert sum(row.kind == "takeback" for row in ws.log()) == 1


def test_a_killed_checkpoint_frees_its_lock_at_once() -> None:
    with quick_folder() as base:
        place, _ = _changed(base)
        holder = Worker(place, "stall", "checkpoint")
        holder.go()
        assert holder.line() == "stalled"
        holder.kill()
        with place.open() as ws:
            started = time.monotonic()
            ws.checkpoint("next")
            assert time.monotonic() - started < 5
            assert ws.verify(data=True).ok


def test_a_killed_rollback_frees_its_locks_and_is_finished_by_the_next() -> None:
    with quick_folder() as base:
        place, then = _changed(base)
        holder = Worker(place, "stall", "rollback")
        holder.go()
        assert holder.line() == "stalled"
        holder.kill()
        with place.open() as ws:
            assert ws.interrupted()
            started = time.monotonic()
            outcome = ws.rollback("base")
            assert time.monotonic() - started < 5
            assert outcome.whole and outcome.finished_earlier
            assert picture(place.root) == then


def test_eight_processes_lose_nothing_that_was_acknowledged() -> None:
    with quick_folder() as base:
        place, _ = _changed(base)
        edit(place.root, b"before")
        workers = [Worker(place, "checkpoints", str(n)) for n in range(6)]
        workers += [Worker(place, "rollback", "base") for _ in range(2)]
        for worker in workers:
            worker.go()
        results = [worker.result() for worker in workers]
        with place.open() as ws:
            assert ws.verify(data=True).ok
            for id in [id for ids in results[:6] for id in ids]:
                assert ws.store.journal.get(id) is not None, "an acknowledged checkpoint is gone"
            for id, _, _ in results[6:]:
                assert not id or ws.store.journal.get(id) is not None, "an acknowledged rollback is gone"
            taken = ws.checkpoint("end")
            out = base / "out"
            assert not taken.partial and ws.restore(taken.id, to=out).whole
            left, right = picture(out, times=False), picture(place.root, times=False)
            assert {p: e for p, e in left.items() if p} == {p: e for p, e in right.items() if p}
