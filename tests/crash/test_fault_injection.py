"""Every call fails, those that read too: never a success with a wrong tree, and the same verb finishes it afterwards.

Every error at every call is a long run, for TAKEBACK_WHOLE_SWEEP=1; else each call fails once, with one error after the
other, and a fixed sample of the calls with others.
"""

from __future__ import annotations

import sys

import pytest
from faults import ERRORS
from runs import WHOLE, holds, python, quick_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the points are those of POSIX")

_MINIMUM = {
    "first": 150, "checkpoint": 150, "rollback": 250, "redo": 250, "undo": 250, "revert": 250,
    "restore": 150, "export": 100, "prune keep": 80, "prune path": 120, "swap": 500,
}  # fmt: skip


@pytest.mark.parametrize("name", _MINIMUM)
def test_every_call_fails_once(name: str) -> None:
    every = 1 if WHOLE or name != "swap" else 7
    with quick_folder() as base:
        report = python("faults.py", name, 0, base, every, timeout=1200)
    holds(report)
    assert report["points"] >= _MINIMUM[name], report
    assert report["hit"] >= report["points"] // every, "not every call failed once"
    assert report["told"].get("refused"), "no failure was ever told"


@pytest.mark.parametrize("shift", range(1, len(ERRORS)) if WHOLE else [5, 10])
@pytest.mark.parametrize("name", _MINIMUM if WHOLE else ["checkpoint", "rollback", "undo", "redo"])
def test_other_errors_fail_too(name: str, shift: int) -> None:
    every = 1 if WHOLE else 11
    with quick_folder() as base:
        report = python("faults.py", name, shift, base, every, timeout=1200)
    holds(report)
    assert report["hit"] >= report["points"] // every


@pytest.mark.parametrize("name", ["rollback", "redo", "undo", "swap"])
def test_with_few_descriptors_nothing_is_left_wrong(name: str) -> None:
    with quick_folder() as base:
        report = python("descriptors.py", name, base)
    holds(report)
    assert report["told"].get("refused") and report["told"].get("whole"), report
