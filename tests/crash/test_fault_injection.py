"""Every call fails, those that read too: never a success with a wrong tree, and the same verb finishes it afterwards.

Every error at every call is a long run, for `scripts/test --all`; else a sample of the calls that has each kind of them
fails, with one error after the other, and some of them with others.
"""

from __future__ import annotations

import sys

import pytest
from faults import ERRORS
from runs import holds, python, quick_folder

from sampling import WHOLE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the points are those of POSIX")

_MINIMUM = {
    "first": 150, "checkpoint": 150, "rollback": 250, "redo": 250, "undo": 250, "revert": 250,
    "restore": 150, "export": 100, "prune keep": 80, "prune path": 120, "swap": 500,
}  # fmt: skip


@pytest.mark.parametrize("name", _MINIMUM)
def test_every_call_fails_once(name: str) -> None:
    with quick_folder() as base:
        report = python("faults.py", name, 0, base, *(() if WHOLE else (0,)), timeout=1200)
    holds(report)
    assert report["points"] >= _MINIMUM[name], report
    assert report["hit"] >= 0.9 * report["tried"] >= 50, "not every call failed once"
    assert report["told"].get("refused"), "no failure was ever told"


@pytest.mark.parametrize("errors", range(1, len(ERRORS)) if WHOLE else [5])
@pytest.mark.parametrize("name", _MINIMUM if WHOLE else ["checkpoint", "rollback"])
def test_other_errors_fail_too(name: str, errors: int) -> None:
    with quick_folder() as base:
        report = python("faults.py", name, errors, base, *(() if WHOLE else (errors,)), timeout=1200)
    holds(report)
    assert report["hit"] >= 0.9 * report["tried"] >= 50


@pytest.mark.parametrize("name", ["rollback", "redo", "undo", "swap"])
def test_with_few_descriptors_nothing_is_left_wrong(name: str) -> None:
    with quick_folder() as base:
        report = python("descriptors.py", name, base)
    holds(report)
    assert report["told"].get("refused") and report["told"].get("whole"), report
