"""A sample leaves out no kind of moment, and with `scripts/test --all` there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from crash.points import chosen

STAGES = Path(__file__).resolve().parent.parent / "scripts" / "stages.py"
NAMES = ["open w", "write", "write", *["rename", "fsync"] * 40, "unlink"]


@pytest.mark.parametrize("shift", range(9))
def test_each_kind_of_call_after_each_other_is_tried(shift: int) -> None:
    kinds = list(pairwise(["", *NAMES]))
    numbers = chosen(NAMES, shift)
    assert {kinds[number - 1] for number in numbers} == {*kinds}
    assert numbers == sorted({*numbers}) and len(numbers) < len(NAMES) / 3


def test_all_points_come_in_turn() -> None:
    assert {number for shift in range(8) for number in chosen(NAMES, shift)} == {*chosen(NAMES)}
    assert chosen(NAMES) == list(range(1, len(NAMES) + 1))


@pytest.mark.parametrize(("words", "whole"), [([], False), (["--all"], True)])
def test_all_reaches_the_tests(words: list[str], whole: bool) -> None:
    code = "import json, sampling; print(json.dumps([sampling.WHOLE, sampling.number(3, 7)]))"
    script = f"import stages, sys; stages._UNASKED[:] = ['one']; stages.STAGES['one'] = lambda: stages.run([sys.executable, '-c', {code!r}], PYTHONPATH={str(Path(__file__).parent)!r}); sys.exit(stages.main({words}))"
    environ = {**os.environ, "PYTHONPATH": str(STAGES.parent)}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert json.dumps([whole, 7 if whole else 3]) in done.stdout.splitlines()
