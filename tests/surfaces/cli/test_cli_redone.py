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
