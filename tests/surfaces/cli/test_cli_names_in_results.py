"""A result names what it took, kept and left: all of it, or with the command that lists all of it."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def many(cli):
    """claude changed forty-five files; a person changed twenty-five of them since."""
    for n in range(45):
        (cli.project / f"f{n:02}").write_text("a\n")
    cli.ok("checkpoint", "base")
    for n in range(45):
        (cli.project / f"f{n:02}").write_text("b\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    return cli


def names(text: str) -> set[str]:
    return set(re.findall(r"\bf\d\d\b", text))


def test_what_was_done_is_counted_with_the_command_that_lists_it(many) -> None:
    ran = many.ok("undo", "--yes")
    assert "took back 45 files: f00, f01, f02, …" in ran.out.splitlines()[-1]
    command = ran.err.partition("all of it by name: takeback ")[2].splitlines()[0].split()
    assert len(names(many.ok(*command).out)) == 45


def test_what_was_kept_is_counted_with_the_command_that_lists_it(many) -> None:
    for n in range(25):
        (many.project / f"f{n:02}").write_text("mine\n")
    ran = many("undo", "--actor", "claude", "--yes")
    assert ran.code == 3 and "  … and 5 more; takeback show " in ran.err
    command = ran.err.partition("all of it by name: takeback ")[2].splitlines()[0].split()
    shown = [line for line in many.ok(*command).out.splitlines() if line.startswith("  kept ")]
    assert len(names("\n".join(shown))) == 25


def test_where_nothing_was_journaled_all_that_was_kept_is_named(many) -> None:
    for n in range(45):
        (many.project / f"f{n:02}").write_text("mine\n")
    ran = many("revert", ".", "--yes")
    assert ran.code == 3 and "all of it by name" not in ran.err
    assert len(names("\n".join(line for line in ran.err.splitlines() if line.startswith("  kept ")))) == 45


def test_what_is_left_is_named_whole_where_all_steps_are_asked_for(many) -> None:
    for n in range(9):
        (many.project / f"g{n}").write_text("mine\n")
    short, whole = (many.ok("rollback", "base", "--dry-run", *more).out for more in ([], ["--all-steps"]))
    (line,) = [line for line in short.splitlines() if line.startswith("left as it is, people's work: ")]
    assert "g4, … (see all: --all-steps) (9 paths)" in line
    (line,) = [line for line in whole.splitlines() if line.startswith("left as it is, people's work: ")]
    assert all(f"g{n}" in line for n in range(9))
