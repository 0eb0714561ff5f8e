"""Killed at every single mutating call, before it, after it and halfway through a write."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from runs import WHOLE, holds, python, quick_folder
from scenarios import SCENARIOS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("how", ["before", "after", "half"])
def test_killed_at_every_point(name: str, how: str) -> None:
    every = 1 if WHOLE or name != "swap" else {"before": 5, "after": 7, "half": 1}[how]
    with quick_folder() as base:
        report = python("sweep.py", name, how, base, every, timeout=1200)
    holds(report)
    assert report["points"] >= SCENARIOS[name].minimum, report["names"]
    if how == "half":
        assert report["dead"] >= 2, "no write was cut in half"
    else:
        assert report["dead"] >= report["points"] // every, "not every point was hit"
    assert report["dead"] == report["tried"]


# -- below Python: SQLite's own writes ---------------------------------------

_CALLS = {
    "first": ("pwrite64", "fdatasync", "write"),
    "checkpoint": ("pwrite64", "fdatasync", "ftruncate"),
    "rollback": ("pwrite64", "fdatasync", "rename", "renameat2", "unlinkat"),
    "prune keep": ("pwrite64", "fdatasync", "ftruncate", "unlink", "rename"),
}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("name", _CALLS)
def test_killed_at_system_calls(name: str) -> None:
    can = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    if can.returncode:
        pytest.skip(f"strace may not trace here: {can.stderr.decode().strip()}")
    with quick_folder() as base:
        report = python("syscalls.py", name, base, ",".join(_CALLS[name]))
    holds(report)
    assert report["killed"] >= 8, report
