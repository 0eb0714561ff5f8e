"""A take-back that was killed and waits to be finished: what a person writes meanwhile is no part of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import takeback

KILLING = ["sh", "-c", "echo by the inverse > data.txt; kill -9 $PPID"]  # the take-back that runs it
ROLL_BACK = "import sys, takeback; ws = takeback.open(sys.argv[1]); plan = ws.plan('rollback', '1'); "
ROLL_BACK += "ws.approve(plan); ws.apply(plan)"


@pytest.fixture
def ws(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "data.txt").write_text("one\n")
    with takeback.open(root, create=True) as opened:
        yield opened


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_a_person_writes_while_it_waits_stays_with_redo(ws, goes_on):
    (ws.root / "data.txt").write_text("two\n")
    ws.checkpoint(named=False)
    if goes_on:  # with another act, when it is finished
        ws.record_command("migrated", argv=["sh", "-c", "echo more > more.txt"])
    ws.record_command("deployed", argv=KILLING)
    killed = subprocess.run([sys.executable, "-c", ROLL_BACK, str(ws.root)], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    (ws.root / "mine.txt").write_text("written while it waits\n")
    assert ws.interrupted()
    ws.resume()
    assert (ws.root / "mine.txt").exists()
    ws.redo()
    assert (ws.root / "mine.txt").read_text() == "written while it waits\n"
    (effect,) = (e for e in ws.history().effects if b"mine.txt" in e.changes)
    assert not effect.takeback and not effect.turns


STOP_HALFWAY = """
import os, sys, takeback
from takeback.domains import files
ws = takeback.open(sys.argv[1])
done = files.Files.apply
def killed(self, steps, *more, **also):
    for _ in done(self, steps[: len(steps) // 2], *more, **also): pass
    os.kill(os.getpid(), 9)
files.Files.apply = killed
ws.rollback("1")
"""


def test_going_back_from_it_names_what_it_kept(ws, capsys):
    from takeback.surfaces.cli import main

    for name in ("a", "b", "c", "d"):
        (ws.root / name).write_text(f"{name}\n")
    ws.checkpoint(named=False)
    killed = subprocess.run([sys.executable, "-c", STOP_HALFWAY, str(ws.root)], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    gone = next(name for name in ("a", "b", "c", "d") if not (ws.root / name).exists())
    (ws.root / gone).write_text("a person's\n")
    code = main(["-C", str(ws.root), "resume", "--abort"])
    told = capsys.readouterr()
    assert code == 3
    assert f"but for {gone}" in told.out + told.err and f"kept {gone} as it is now" in told.err
    assert (ws.root / gone).read_text() == "a person's\n"
