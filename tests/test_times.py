"""The times of what is taken back, and of what is not."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from support import age, picture
from takeback.workspace import Workspace


def touch(path: Path, when: int) -> None:
    os.utime(path, ns=(when, when))


@pytest.mark.parametrize("who", ["agent", ""])
def test_revert_of_a_path_moves_no_other_times(ws: Workspace, project: Path, who: str):
    for name in "abc":
        (project / name).write_text("1\n")
    age(project)
    ws.checkpoint("start")
    (project / "a").write_text("2\n")
    touch(project / "b", 7 * 10**17)
    (project / "c").write_text("2\n")
    (project / "new").write_text("2\n")
    if who:
        ws.checkpoint(actor=who)
    before = picture(project)
    assert ws.revert("a").whole
    after = picture(project)
    assert [path for path in before if before[path] != after[path]] == [b"a"]


def test_revert_of_a_whole_row_brings_all_its_times_back(ws: Workspace, project: Path):
    for name in "ab":
        (project / name).write_text("1\n")
    age(project)
    ws.checkpoint("start")
    before = picture(project)
    (project / "a").write_text("2\n")
    touch(project / "b", 7 * 10**17)
    ws.checkpoint(actor="agent")
    assert ws.revert(ws.history().effects[-1].id).whole
    assert picture(project) == before


@pytest.mark.parametrize("seed", range(25))
def test_rolling_back_and_forward_leaves_each_path_at_the_times_of_that_checkpoint(
    ws: Workspace, project: Path, seed: int
):
    chance = random.Random(seed)
    (project / "d").mkdir()
    names = ("a", "b", "d/c")
    for name in names:
        (project / name).write_text("1\n")
    age(project)
    seen = []
    for number in range(4):
        ws.checkpoint(f"c{number}")
        seen.append(picture(project))
        (project / "always").write_text(str(number))
        for name in names:
            kind = chance.choice(["touch", "write", "none", "none"])
            if kind == "write":
                (project / name).write_text(str(chance.randrange(2)))
            if kind != "none":
                touch(project / name, (number * 10 + chance.randrange(1, 9)) * 10**16)
        touch(project / "always", number)
        touch(project, number * 10**16)
    ws.checkpoint("end")
    for number in [0, 1, 2, 3, *(chance.randrange(4) for _ in range(6))]:
        assert ws.rollback(f"c{number}").whole
        assert picture(project) == seen[number], f"at c{number}"


def test_a_time_that_a_rollback_moved_comes_back_where_nothing_else_is_to_be_done(ws: Workspace, project: Path):
    (project / "a").write_text("1\n")
    (project / "b").write_text("1\n")
    age(project)
    ws.checkpoint("c0")
    c0 = picture(project)
    touch(project / "a", 7 * 10**17)
    ws.checkpoint("c1")
    c1 = picture(project)
    (project / "b").write_text("2\n")
    assert ws.rollback("c0").whole and picture(project) == c0
    for _ in range(2):
        assert not ws.rollback("c1").id, "it is no work"
        assert picture(project) == c1
        assert not ws.rollback("c0").id
        assert picture(project) == c0
    assert ws.verify(data=True).ok and not ws.status().changes
    touch(project / "a", 8 * 10**17)
    assert not ws.rollback("c0").id
    assert (project / "a").stat().st_mtime_ns == 8 * 10**17, "a person's touch alone is nothing to take back"
