"""Killed at every single mutating call, before it, after it and halfway through a write; unless all is asked for
(`scripts/test --all`), at a sample of the calls that has each kind of them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from runs import holds, python, quick_folder
from scenarios import SCENARIOS

from sampling import WHOLE

_SHIFTS = {"before": 0, "after": 3, "half": 6}  # other points for each

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("how", ["before", "after", "half"])
def test_killed_at_every_point(name: str, how: str) -> None:
    sample = () if WHOLE else (_SHIFTS[how],)
    with quick_folder() as base:
        report = python("sweep.py", name, how, base, *sample, timeout=1200)
    holds(report)
    assert report["points"] >= SCENARIOS[name].minimum, report["names"]
    assert report["dead"] == report["tried"] >= {"before": 20, "after": 20, "half": 2 if WHOLE else 1}[how], report


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
        report = python("syscalls.py", name, base, ",".join(_CALLS[name]), *(() if WHOLE else ("1,3,8",)))
    holds(report)
    assert report["killed"] >= (8 if WHOLE else 5), report
