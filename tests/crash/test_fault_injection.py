"""ENOSPC, EIO, EROFS and EACCES at every call: never a success with a wrong tree, and it works again afterwards."""

from __future__ import annotations

import sys

import pytest
from runs import holds, python, quick_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the points are those of POSIX")

_MINIMUM = {
    "first": 150, "checkpoint": 150, "rollback": 250, "redo": 250, "undo": 250, "revert": 250,
    "restore": 150, "export": 100, "prune keep": 80, "prune path": 120,
}  # fmt: skip


@pytest.mark.parametrize("name", _MINIMUM)
def test_every_call_fails_once(name: str) -> None:
    with quick_folder() as base:
        report = python("faults.py", name, 0, base)
    holds(report)
    assert report["hit"] >= _MINIMUM[name], report
    assert report["hit"] >= report["points"], "not every call failed once"
    assert report["told"].get("refused"), "no failure was ever told"


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("name", ["checkpoint", "rollback", "undo"])
def test_other_errors_at_a_sample_of_calls(name: str, shift: int) -> None:
    with quick_folder() as base:
        report = python("faults.py", name, shift, base, 9)
    holds(report)
    assert report["hit"] >= _MINIMUM[name] // 9


@pytest.mark.parametrize("name", ["rollback", "redo", "undo", "swap"])
def test_with_few_descriptors_nothing_is_left_wrong(name: str) -> None:
    with quick_folder() as base:
        report = python("descriptors.py", name, base)
    holds(report)
    assert report["told"].get("refused") and report["told"].get("whole"), report
