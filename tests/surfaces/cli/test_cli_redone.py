"""What the log says of a take-back after a redo: what came back, and what did not."""

from __future__ import annotations


def of_undo(cli) -> tuple[str, dict]:
    """The line of the oldest take-back, and the same as data."""
    lines = [line for line in cli.ok("log").out.splitlines() if "undo" in line and "redo:" not in line]
    row = [row for row in cli.ok("log", "--json").json["rows"] if row["kind"] == "takeback"][-1]
    return lines[-1], row


def two_files(cli) -> None:
    for name in ("f", "g"):
        (cli.project / name).write_text("1\n")
    cli.ok("checkpoint", "one")
    for name in ("f", "g"):
        (cli.project / name).write_text("2\n")
    cli.ok("checkpoint", "two")
    cli.ok("undo", "--yes")


def test_a_redo_that_brings_all_back(cli) -> None:
    two_files(cli)
    line, row = of_undo(cli)
    assert "redone" not in line and row["live"] and row["redone"] == ""
    cli.ok("redo", "--yes")
    line, row = of_undo(cli)
    assert line.endswith(" · redone") and not row["live"] and row["redone"] == "redone"


def test_a_redo_that_keeps_everything_brought_nothing_back(cli, contents) -> None:
    two_files(cli)
    for name in ("f", "g"):
        (cli.project / name).write_text("mine\n")
    assert cli("redo", "--yes").code == 3 and contents()["f"] == b"mine\n"
    line, row = of_undo(cli)
    assert line.endswith(" · not redone: kept by a redo") and row["live"] and row["state"] == "live"
    cli("revert", row["id"], "--force", "--yes")
    assert contents()["f"] == contents()["g"] == b"2\n"
    assert of_undo(cli)[0].endswith(" · redone")


def test_a_redo_that_keeps_a_part(cli, contents) -> None:
    two_files(cli)
    (cli.project / "g").write_text("mine\n")
    assert cli("redo", "--yes").code == 3 and contents() | {"f": b"2\n", "g": b"mine\n"} == contents()
    line, row = of_undo(cli)
    assert line.endswith(" · redone in part") and row["live"]


def test_a_take_back_that_a_rollback_took_was_taken_back(cli, contents) -> None:
    (cli.project / "f").write_text("1\n")
    cli.ok("checkpoint", "one")
    (cli.project / "f").write_text("2\n")
    cli.ok("checkpoint", "two")
    cli.ok("undo", "--yes")
    cli.ok("checkpoint", "undone")
    cli.ok("rollback", "two", "--yes")
    assert contents()["f"] == b"2\n"
    assert of_undo(cli)[0].endswith(" · taken back")


def test_a_redo_that_is_not_reverted_and_not_undone_names_what_takes_it_back(cli, contents) -> None:
    two_files(cli)
    cli.ok("redo", "--yes")
    redo = next(row["id"] for row in cli.ok("log", "--json").json["rows"] if row["kind"] == "takeback")
    hints = {cli(verb, redo[:8], "--yes").err.splitlines()[1] for verb in ("revert", "undo")}
    (hint,) = hints
    command = hint.partition("takeback ")[2].split()
    cli.ok(*command, "--yes")
    assert contents()["f"] == contents()["g"] == b"1\n"
    assert "nothing stands that it brought back" in cli("revert", redo[:8], "--yes").err


def test_undo_keeps_what_a_redo_brought_back_where_an_agent_wrote_the_same(cli, contents) -> None:
    cli.ok("run", "--", "sh", "-c", "echo x > n.txt")
    cli.ok("undo", "--yes")
    cli.ok("checkpoint", "mid")
    (cli.project / "n.txt").write_text("x\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "codex"})
    cli.ok("redo", "--yes")
    told = cli("undo", "--actor", "codex", "--yes")
    assert told.code == 3 and "kept n.txt, changed by run since" in told.out + told.err
    assert contents()["n.txt"] == b"x\n"
