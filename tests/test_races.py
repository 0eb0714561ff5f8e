"""Others at work at the same moment: a racer who swaps folders, an editor who saves, threads, tasks and processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import takeback
from support import picture
from takeback.domains.files import Files
from takeback.model.effects import text
from takeback.system.safefs.portable import PortableFolder
from takeback.system.safefs.posix import PosixFolder
from takeback.workspace import Workspace

RACER = """
import os, sys
root, outside = sys.argv[1:]
os.chdir(root)
print("ready", flush=True)
while True:
    os.rename("d", "d-moved")
    os.symlink(outside, "d")
    os.unlink("d")
    os.rename("d-moved", "d")
"""


@pytest.mark.posix_only("a racer who swaps a parent between check and step")
def test_a_racer_swapping_a_folder_for_a_symlink_never_makes_it_read_or_write_outside(
    ws: Workspace, project: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(PosixFolder, "sync", lambda self: None)
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "d").mkdir()
    for n in range(6):
        (project / f"d/f{n}").write_text("1\n")
        (outside / f"f{n}").write_text("outside-content\n")
    ws.checkpoint("before")
    for n in range(6):
        (project / f"d/f{n}").write_text("2\n")
    ws.checkpoint("after")
    was = picture(outside)
    racer = subprocess.Popen([sys.executable, "-c", RACER, str(project), str(outside)], stdout=subprocess.PIPE)
    rounds = 0
    try:
        assert racer.stdout is not None
        racer.stdout.readline()
        until = time.monotonic() + 3
        while time.monotonic() < until:
            for act in (
                lambda: ws.rollback("before", everything=True),
                lambda: ws.redo(force=True),
                lambda: ws.checkpoint(f"{rounds}"),
            ):
                try:
                    act()
                except takeback.TakebackError as error:
                    assert "damaged" not in error.message
            rounds += 1
    finally:
        racer.kill()
        racer.wait()
    assert rounds > 5
    assert picture(outside) == was
    assert all(b"outside-content" not in ws.store.blobs.get(id) for id in ws.store.blobs.ids())
    assert ws.verify().ok


def test_portable_folders_check_each_step_on_the_way_down(project: Path, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (project / "d").symlink_to(tmp_path / "outside")
    with pytest.raises(NotADirectoryError):
        PortableFolder.root(str(project)).descend([b"d"])


# -- an edit between check and write ------------------------------------------------


@pytest.mark.parametrize("harm", ["changed", "deleted", "created", "mode"])
@pytest.mark.parametrize("what", ["written", "removed and created anew", "made a link"])
def test_an_edit_made_between_check_and_write_is_put_back_not_lost(
    ws: Workspace, project: Path, monkeypatch, harm: str, what: str
):
    """A person saves the file at the last possible moment, whatever the take-back was about to do with it."""
    file = project / "f"
    if harm != "created":
        file.write_text("1\n")
        file.chmod(0o644)
    ws.checkpoint("before")
    if harm == "changed":
        file.write_text("2\n")
    elif harm == "deleted":
        file.unlink()
    elif harm == "created":
        file.write_text("2\n")
    else:
        file.chmod(0o600)
    saved = [False]

    def person() -> None:
        if saved[0]:
            return
        saved[0] = True
        if what == "made a link":
            file.unlink(missing_ok=True)
            file.symlink_to("elsewhere")
        elif what == "removed and created anew":
            file.unlink(missing_ok=True)
            file.write_text("the person's\n")
        else:
            file.write_text("the person's\n")

    def first(method):
        real = getattr(Files, method)

        def wrapped(self, *args):
            person()
            return real(self, *args)

        monkeypatch.setattr(Files, method, wrapped)

    for method in ("_remove", "_swap", "_enter", "_set_mode"):
        first(method)
    outcome = ws.rollback()
    assert saved[0]
    if what == "made a link":
        assert os.readlink(file) == "elsewhere"
    else:
        assert file.read_text() == "the person's\n"
    assert [(text(r.path), r.result) for r in outcome.results] == [("f", "kept")]
    assert [p.name for p in project.iterdir()] == ["f"], "nothing of ours is left beside it"
    monkeypatch.undo()
    assert "f" in [c.path for c in ws.status().changes]
    ws.checkpoint("the person's work is captured like any other")


@pytest.mark.posix_only("swapping two names in one step")
@pytest.mark.parametrize("has_successor", [False, True])
def test_a_folder_that_is_moved_away_takes_old_files_along_and_they_are_named(
    ws: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch, has_successor: bool
):
    """Old files are unlinked once all new ones are in place: by then their folder may be another one."""
    (project / "d").mkdir()
    for n in range(3):
        (project / f"d/f{n}").write_text("1")
    ws.checkpoint("before")
    for n in range(3):
        (project / f"d/f{n}").write_text("2")
    unlink = Files._unlink_displaced

    def late(self: Files, results: dict) -> None:
        if self._displaced:
            (project / "d").rename(project / "away")
            if has_successor:
                (project / "d").mkdir()
        unlink(self, results)

    monkeypatch.setattr(Files, "_unlink_displaced", late)
    outcome = ws.rollback("before", everything=True)
    monkeypatch.undo()
    left = sorted(path.name for path in (project / "away").iterdir() if path.name.startswith(".takeback-"))
    assert len(left) == 3 and not outcome.whole
    assert [r.result for r in outcome.results if r.path.startswith(b"d/")] == ["failed"] * 3
    assert all(any(name in r.note for r in outcome.results) for name in left)
    assert ws.rollback("before", everything=True).whole
    assert {path.name: path.read_text() for path in (project / "d").iterdir()} == {f"f{n}": "1" for n in range(3)}
    assert not (project / "away").exists() and ws.status().changes == () and ws.verify(data=True).ok


@pytest.mark.posix_only("swapping two names in one step")
def test_an_edit_in_the_very_moment_of_the_swap_is_put_back(ws: Workspace, project: Path, monkeypatch):
    file = project / "f"
    file.write_text("1\n")
    ws.checkpoint("before")
    file.write_text("2\n")
    exchange = PosixFolder.exchange
    calls = []

    def late(self, a, b):
        calls.append((a, b))
        if len(calls) == 1:
            file.write_text("at the last moment\n")
        return exchange(self, a, b)

    monkeypatch.setattr(PosixFolder, "exchange", late)
    outcome = ws.rollback()
    assert len(calls) == 2, "swapped, and swapped back"
    assert file.read_text() == "at the last moment\n"
    assert outcome.results[0].result == "kept"
    assert [p.name for p in project.iterdir()] == ["f"]


def test_where_names_cannot_be_swapped_the_old_file_is_moved_aside_and_compared(
    ws: Workspace, project: Path, monkeypatch
):
    for name, content in (("f", "1\n"), ("g", "1\n")):
        (project / name).write_text(content)
    ws.checkpoint("before")
    for name in ("f", "g"):
        (project / name).write_text("2\n")
    for kind in (PosixFolder, PortableFolder):
        monkeypatch.setattr(kind, "exchange", lambda self, a, b: False)
        real = kind.move

        def late(self, old, new, real=real):
            if old == b"g":
                (project / "g").write_text("at the last moment\n")
            return real(self, old, new)

        monkeypatch.setattr(kind, "move", late)
    outcome = ws.rollback()
    assert {text(r.path): r.result for r in outcome.results} == {"f": "done", "g": "kept"}
    assert (project / "f").read_text() == "1\n"
    assert (project / "g").read_text() == "at the last moment\n"
    assert sorted(p.name for p in project.iterdir()) == ["f", "g"]


def test_a_folder_that_is_not_empty_by_the_time_it_goes_stays(ws: Workspace, project: Path, monkeypatch):
    ws.checkpoint("before")
    (project / "d").mkdir()
    (project / "d/f").write_text("1\n")
    ws.checkpoint("with")
    remove = Files._remove

    def late(self, step, here, name, number):
        if name == b"d":
            (project / "d/precious").write_text("mine\n")
        return remove(self, step, here, name, number)

    monkeypatch.setattr(Files, "_remove", late)
    outcome = ws.rollback("before")
    assert {text(r.path): r.result for r in outcome.results} == {"d": "kept", "d/f": "done"}
    assert (project / "d/precious").read_text() == "mine\n"


# -- threads, tasks, processes --------------------------------------------------------


def test_sixteen_threads_on_one_workspace(ws: Workspace, project: Path):
    for n in range(16):
        (project / f"f{n}").write_text("0\n")
    ws.checkpoint("before")
    start = threading.Barrier(16)

    def work(n: int) -> list[str]:
        start.wait()
        made = []
        for i in range(6):
            (project / f"f{n}").write_text(f"{i}\n")
            made.append(ws.checkpoint(f"{n}-{i}").id)
            ws.status()
            ws.diff()
            ws.log()
            ws.plan("undo")
            if i % 3 == 2:
                ws.track([f"f{n}"], actor=f"t{n}")
        return made

    with ThreadPoolExecutor(16) as pool:
        made = [id for ids in pool.map(work, range(16)) for id in ids]
    assert len(set(made)) == 96
    assert {c.id for c in ws.history().checkpoints} >= set(made)
    assert ws.verify(data=True).ok
    ws.rollback("before", everything=True)
    assert all((project / f"f{n}").read_text() == "0\n" for n in range(16))


def test_sixteen_threads_rolling_back_at_once_one_wins(ws: Workspace, project: Path):
    for n in range(10):
        (project / f"f{n}").write_text("1\n")
    ws.checkpoint("before")
    for n in range(10):
        (project / f"f{n}").write_text("2\n")
    start = threading.Barrier(16)

    def work(_: int) -> bool:
        start.wait()
        return bool(ws.rollback().id)

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(work, range(16))) == 1


def test_the_async_twins_do_the_same_and_do_not_block(ws: Workspace, project: Path):
    async def story() -> None:
        (project / "f").write_text("1\n")
        await ws.acheckpoint("before")
        (project / "f").write_text("2\n")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        status, diff, log = await asyncio.gather(ws.astatus(), ws.adiff(), ws.alog())
        ticking.cancel()
        assert ticks > 2
        assert [c.path for c in status.changes] == ["f"] == [f.path for f in diff.files]
        assert [r.label for r in log if r.kind == "checkpoint"] == ["before", "start"]
        plan = await ws.aplan("rollback")
        assert (await ws.aapply(plan)).whole and (project / "f").read_text() == "1\n"
        await ws.aredo()
        assert (project / "f").read_text() == "2\n"
        await ws.aundo()
        (project / "f").write_text("3\n")
        await ws.arevert("./f")
        (project / "f").write_text("4\n")
        await ws.arollback()
        (project / "f").write_text("5\n")
        await ws.arestore("before", "f")
        assert (project / "f").read_text() == "1\n"

    asyncio.run(story())


def test_eight_processes_take_checkpoints_while_two_roll_back(ws: Workspace, project: Path):
    for n in range(8):
        (project / f"p{n}").write_text("0\n")
    for n in range(30):
        (project / f"shared{n}").write_text("1\n")
    ws.checkpoint("before")
    for n in range(30):
        (project / f"shared{n}").write_text("2\n")
    ws.track([f"shared{n}" for n in range(30)], actor="agent")
    taking = (
        "import sys, takeback\n"
        "root, n = sys.argv[1:]\n"
        "with takeback.open(root) as ws:\n"
        "    for i in range(8):\n"
        "        open(f'{root}/p{n}', 'w').write(f'{i}\\n')\n"
        "        print(ws.checkpoint(f'{n}-{i}', named=False).id, flush=True)\n"
    )
    rolling = "import sys, takeback\noutcome = takeback.open(sys.argv[1]).rollback('before', actors=['agent'])\nprint(outcome.counts['done'])\n"
    start = [
        subprocess.Popen([sys.executable, "-c", taking, str(project), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    rollers = [
        subprocess.Popen([sys.executable, "-c", rolling, str(project)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    acknowledged = [id for process in start for id in process.communicate()[0].split()]
    said = sorted(int(process.communicate()[0]) for process in rollers)
    assert [p.returncode for p in (*start, *rollers)] == [0] * 10
    assert said == [0, 30], "one rollback wins, the other is told that there is nothing left"
    assert len(acknowledged) == 64 and {c.id for c in ws.history().checkpoints} >= set(acknowledged)
    assert all((project / f"shared{n}").read_text() == "1\n" for n in range(30))
    assert all((project / f"p{n}").read_text() == "7\n" for n in range(8)), "nobody's work was lost"
    assert ws.verify(data=True).ok


def test_a_writer_that_waits_too_long_is_told_who_to_wait_for(project: Path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_LOCK_TIMEOUT", "0.2")
    with takeback.open(project, create=True) as one, takeback.open(project) as two, one.store.write.hold(1):
        with pytest.raises(takeback.Locked):
            two.checkpoint("never")
        assert two.log()
