"""The lines at the left of the log."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from takeback.surfaces.wording.log_graph import gutters


def drawn(rows: str, **ties: str) -> list[str]:
    return [
        mark + gutter.rstrip() for mark, gutter in zip(rows, gutters(list(rows), {k: list(v) for k, v in ties.items()}))
    ]


def test_nothing_is_drawn_where_nothing_was_taken() -> None:
    assert drawn("cba") == ["c", "b", "a"]
    assert drawn("cba", c="zy") == ["c", "b", "a"], "what it took is not shown"


def test_a_take_back_is_tied_to_all_it_took() -> None:
    assert drawn("uedcba", u="eca") == ["u─╮", "e─┤", "d │", "c─┤", "b │", "a─╯"]


def test_undo_redo_undo() -> None:
    assert drawn("urob", u="b", r="o", o="b") == ["u─╮", "r─┼─╮", "o─┼─┴─╮", "b─┴───╯"]


def test_lanes_are_used_again() -> None:
    assert drawn("xbya", x="b", y="a") == ["x─╮", "b─╯", "y─╮", "a─╯"]


def test_a_line_crosses_others() -> None:
    assert drawn("xydcba", x="a", y="d") == ["x─╮", "y─┼─╮", "d─┼─╯", "c │", "b │", "a─╯"]


def test_only_so_many_beside_each_other() -> None:
    rows = [f"t{n}" for n in range(9)] + [f"e{n}" for n in range(9)]
    found = gutters(rows, {f"t{n}": [f"e{n}"] for n in range(9)})
    assert {len(each) for each in found} == {12}


@given(st.data())
def test_every_line_begins_and_ends_and_never_breaks(data: st.DataObject) -> None:
    ids = [str(n) for n in range(data.draw(st.integers(1, 14)))]
    ties = {
        id: data.draw(st.lists(st.sampled_from(ids[n + 1 :]), unique=True, max_size=4))
        for n, id in enumerate(ids[:-1])
        if data.draw(st.booleans())
    }
    found = gutters(ids, ties)
    assert len({len(each) for each in found}) == 1
    down, up = set("│┼╮┤┬"), set("│┼╯┤┴")
    for above, below in zip(["", *found], [*found, ""]):
        for at in range(1, len(found[0]), 2):
            goes = at < len(above) and above[at] in down
            comes = at < len(below) and below[at] in up
            if at < len(above) and above[at] == "┼" and at < len(below) and below[at] not in up:
                raise AssertionError((found, "a line ends in the middle"))
            assert goes == comes, found
    for each in found:
        assert re.fullmatch(r"(?:(?:─[─┼┬┴])*─[╮┤╯])?(?: [ │])*", each), each


def test_the_log_ties_a_take_back_to_the_turn_it_took(changed) -> None:
    changed.ok("rollback", "--yes")
    first, second, third = changed.ok("log").out.splitlines()
    assert first.startswith("↩─╮     ") and second.startswith("~─╯     ") and third.startswith("●    1  ")
    shown = changed.typing("log").out
    assert re.search(r"\x1b\[1m[k-z]{4}\x1b\[0m", shown), "the part of an id that is enough is bold"
