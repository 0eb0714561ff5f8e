"""Killed at every mutating call of a take-back with outside acts: one firing of each inverse, never two."""

from __future__ import annotations

import sys

import pytest
from runs import holds, python, quick_folder

from sampling import WHOLE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


@pytest.mark.parametrize("how", ["before", "after"])
def test_killed_at_every_point_of_a_take_back_with_outside_acts(how: str) -> None:
    with quick_folder() as base:
        report = python("outside.py", how, base, *(() if WHOLE else (0,)))
    holds(report)
    assert report["dead"] == report["tried"] and report["points"] >= 100, report
    assert report["seen"]["unknown"] >= 1 and report["seen"]["settled"] >= (30 if WHOLE else 10), (
        "both endings were seen"
    )
