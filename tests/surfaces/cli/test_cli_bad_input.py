"""Each kind of bad input: one clear message with the next step, its exit code, nothing lost."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from support import PORTABLE
from takeback.system.locks import Lock


def fails(ran, code: int, *told: str) -> None:
    assert ran.code == code, ran
    lines = ran.err.splitlines()
    assert lines[0].startswith("takeback: "), ran
    assert any(line.startswith("  → ") for line in lines), f"no next step: {ran}"
    assert "Traceback" not in ran.err
    for text in told:
        assert text in ran.err


VERBS_THAT_NEED_ONE = [
    ["checkpoint"],
    ["track", "a"],
    ["status"],
    ["diff"],
    ["log"],
    ["show", "1"],
    ["rollback"],
    ["undo"],
    ["redo"],
    ["revert", "a"],
    ["restore", "1", "a"],
    ["plan", "undo"],
    ["apply", "k"],
    ["resume"],
    ["prune"],
    ["pin", "1"],
    ["unpin", "1"],
    ["verify"],
    ["repair"],
    ["config", "rules"],
    ["thread", "list"],
    ["thread", "save", "main", "--state", "{}"],
    [],
]


@pytest.mark.parametrize("words", VERBS_THAT_NEED_ONE, ids=" ".join)
def test_not_a_workspace(bare, own_home: Path, words: list[str]) -> None:
    fails(bare(*words), 10, f"nothing is protected at or above {bare.project}", "takeback init")
    assert not (own_home / "takeback").exists(), "no store is made"


@pytest.mark.parametrize("words", [["rollback"], ["show"], ["diff"], ["pin"], ["restore"], ["apply"]])
def test_unknown_id(cli, words: list[str]) -> None:
    more = ["README.md"] if words == ["restore"] else []
    fails(cli(*words, "nosuch", *more), 2, "'nosuch'", "takeback log")


def test_revert_of_an_unknown_word(cli) -> None:
    fails(cli("revert", "nosuch", "--yes"), 2, "nosuch")


def test_ambiguous_id(cli) -> None:
    for _ in range(16):
        cli.ok("checkpoint", "-q")
    ids = [row["id"] for row in cli("log", "--json").json["rows"]]
    letter = next(c for c in "klmnopqrstuvwxyz" if sum(i.startswith(c) for i in ids) > 1)
    both = [i for i in ids if i.startswith(letter)][:2]
    fails(cli("show", letter), 2, f"{letter!r} is ambiguous", *(i[:12] for i in both), "type more letters")


def test_pruned_id(cli) -> None:
    first = cli("log", "--json").json["rows"][0]["id"]
    cli.ok("checkpoint")
    cli.ok("prune", "--keep", "1", "--yes")
    for name in ("1", first[:10]):
        fails(cli("show", name), 2, "was pruned", "takeback log")
    fails(cli("revert", first[:10], "--yes"), 2, "was pruned")


@pytest.mark.parametrize("path", ["../elsewhere", "/etc/passwd", "src/../../elsewhere"])
@pytest.mark.parametrize("words", [["track"], ["restore", "start"], ["revert"], ["diff", "--"], ["prune", "--path"]])
def test_path_outside_the_root(cli, words: list[str], path: str) -> None:
    fails(cli(*words, path), 2, f"{path} lies outside the workspace {cli.project}", "name a path inside it")


def test_path_through_a_symlink(cli) -> None:
    (cli.project / "link").symlink_to("src")
    fails(cli("track", "link/auth.py"), 2, "goes through the symlink link", str(cli.project / "src/auth.py"))
    fails(cli("restore", "start", "link/auth.py", "--yes"), 2, "link/auth.py is not in")
    (cli.project / "out").symlink_to("/etc")
    fails(cli("track", "out/passwd"), 2, "goes through the symlink out")


def test_absolute_paths_inside_the_root_are_fine(cli, tmp_path: Path) -> None:
    cli.ok("track", str(cli.project / "src/auth.py"))
    (tmp_path / "alias").symlink_to(cli.project)
    cli.ok("track", str(tmp_path / "alias/src/auth.py"))
    fails(cli("track", ""), 2, "an empty path names nothing")


def test_store_missing(cli, store_folder: Callable[[], Path]) -> None:
    os.rename(store_folder(), store_folder().parent.parent / "away")
    fails(cli("status"), 10, "nothing is protected")


def test_journal_missing(cli, store_folder: Callable[[], Path]) -> None:
    (store_folder() / "journal.db").rename(store_folder() / "away")
    fails(cli("status"), 1, "the journal in", "is missing", "restore it from a backup")


def test_journal_that_is_no_database(cli, store_folder: Callable[[], Path]) -> None:
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        path = store_folder() / name
        if path.exists():
            path.write_bytes(b"not a database" * 1000)
    for words in (["status"], ["log"], ["rollback", "--yes"]):
        fails(cli(*words), 1, "journal")
    assert cli("verify").code == 1
    assert cli("doctor").code == 1


def test_workspace_json_that_does_not_parse(cli, store_folder: Callable[[], Path]) -> None:
    (store_folder() / "workspace.json").write_text("{")
    fails(cli("status"), 1, "workspace.json cannot be read")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_store_unreadable(cli, store_folder: Callable[[], Path]) -> None:
    folder = store_folder()
    folder.chmod(0o500)
    try:
        fails(cli("checkpoint"), 1)
    finally:
        folder.chmod(0o700)


def test_store_newer_than_the_program(cli, store_folder: Callable[[], Path]) -> None:
    path = store_folder() / "workspace.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    fails(cli("status"), 1, "written by a newer takeback", "upgrade takeback")


def test_journal_newer_than_the_program(cli, store_folder: Callable[[], Path]) -> None:
    with sqlite3.connect(store_folder() / "journal.db") as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    fails(cli("log"), 1, "written by a newer takeback")


def test_locked(cli, store_folder: Callable[[], Path]) -> None:
    with Lock(store_folder() / "store.lock", PORTABLE).hold(1):
        fails(cli("checkpoint", env={"TAKEBACK_LOCK_TIMEOUT": "0.1"}), 11, "still held by another process")
        assert cli("log").code == 0, "reading does not wait"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[checkpoints\n", ("line 1",)),
        ("\n[checkpoints]\nkeep = 'many'\n", ("line 3: checkpoints.keep", "must be a whole number")),
        ("[checkpoints]\nkep = 3\n", ("unknown setting checkpoints.kep", "line 2", "did you mean keep?")),
    ],
)
def test_settings_that_do_not_parse(cli, own_home, text: str, told: tuple[str, ...]) -> None:
    config = own_home / "config/takeback/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)
    fails(cli("status"), 2, "config.toml", *told)
    config.unlink()
    (cli.project / ".takeback.toml").write_text(text)
    ran = cli("status")
    assert ran.code == 0, "a project's file does not stop anything"
    assert all(word in ran.err for word in (".takeback.toml", *told, "until it is mended"))


def test_rules_that_do_not_parse_do_not_stop_an_undo(cli) -> None:
    (cli.project / "f").write_text("1\n")
    cli.ok("checkpoint", "before")
    (cli.project / "f").write_text("2\n")
    (cli.project / ".takebackignore").write_text("[\n")
    assert "until it is mended" in cli.ok("status").out
    cli.ok("rollback", "--yes")
    assert (cli.project / "f").read_text() == "1\n"


def test_an_empty_name_is_no_checkpoint(cli) -> None:
    fails(cli("rollback", "", "--yes"), 2, "the name of the checkpoint is empty")


def test_environment_that_does_not_parse(cli) -> None:
    fails(cli("status", env={"TAKEBACK_CHECKPOINTS_KEEP": "x"}), 2, "TAKEBACK_CHECKPOINTS_KEEP")
    fails(cli("status", env={"TAKEBACK": "perhaps"}), 2, "TAKEBACK='perhaps'")


def test_a_folder_that_is_none(cli) -> None:
    fails(cli("-C", "/no/such/folder", "status"), 2, "cannot work in /no/such/folder")


def test_control_characters_in_names_and_labels_never_reach_the_terminal(cli) -> None:
    names = [
        b"esc\x1b[31mred",
        b"bi\xe2\x80\xaedi",
        b"c1\xc2\x9b2J",
        b"bad\xff",
        b"new\nline",
        b"tab\there",
        b"del\x7f",
    ]
    for name in names:
        Path(os.fsdecode(os.fsencode(cli.project) + b"/" + name)).write_bytes(b"text \x1b[2J\x9b\n")
    (cli.project / "link").symlink_to("to\x1b[2J")
    actor = {"TAKEBACK_ACTOR": "evil\x1b]0;title\x07"}
    runs = [
        cli("status"),
        cli("diff"),
        cli("diff", "--stat"),
        cli("checkpoint", "label\x1b[31m", env=actor),
        cli("log"),
        cli("show", "2"),
        cli("show", next(row["id"] for row in cli("log", "--json").json["rows"] if row["kind"] == "effect")),
        cli("status"),
        cli("rollback", "start", "--dry-run", "--all"),
        cli("undo", "--yes"),
        cli("redo", "--yes"),
        cli("revert", "no\x1bsuch"),
        cli("track", "out\x1b/../../x"),
        cli("restore", "start", "no\x1bsuch"),
        cli("nover\x1bb"),
        cli("rollback", "no\x1bsuch"),
        cli("diff", "no\x1bsuch"),
        cli("log", "co\x1blor:red"),
        cli("-C", "no\x1bfolder", "status"),
        cli("config", "\x1b"),
        cli("status", "--no\x1b"),
        cli("prune", "--keep", "\x1b"),
    ]
    for ran in runs:
        for text in (ran.out, ran.err):
            assert not {c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or c == "\u202e"}, ran
    assert "esc\\x1b[31mred" in runs[0].out
    assert "bad\\xff" in runs[0].out
    assert "new\\nline" in runs[0].out
    shown = cli.typing("status", env={"NO_COLOR": "1"}).out
    assert "\x1b" not in shown


def test_names_that_are_no_utf8_survive_in_json(cli) -> None:
    Path(os.fsdecode(os.fsencode(cli.project) + b"/bad\xff")).write_bytes(b"x")
    ran = cli("status", "--json")
    assert ran.out.isascii()
    assert ran.json["changes"][0]["path"] == "bad\udcff"
    cli.ok("revert", b"bad\xff", "--yes")
    assert cli("status", "--json").json["changes"] == []


def test_a_path_that_cannot_be_read_makes_the_checkpoint_partial(cli) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (cli.project / "README.md").chmod(0)
    ran = cli("checkpoint")
    assert ran.code == 3
    assert "README.md" in ran.err


def test_a_scan_that_is_cut_off_makes_the_checkpoint_partial(cli) -> None:
    for n in range(50):
        (cli.project / f"folder{n}").mkdir()
        (cli.project / f"folder{n}/file").write_text("x")
    ran = cli("checkpoint", env={"TAKEBACK_CHECKPOINTS_SCAN_DEADLINE": "0.000001"})
    assert ran.code == 3
    assert ran.out.startswith("checkpoint 2 ")
    assert "takeback: this checkpoint is partial; not captured:" in ran.err
    found = cli("checkpoint", "--json", env={"TAKEBACK_CHECKPOINTS_SCAN_DEADLINE": "0.000001"})
    assert found.code == 3 and found.json["checkpoint"]["partial"]
    assert cli("checkpoint").code == 0


def test_a_file_that_is_too_large_is_named(cli) -> None:
    (cli.project / "large").write_bytes(os.urandom(100_000))
    ran = cli.ok("status", env={"TAKEBACK_CHECKPOINTS_MAX_FILE": "10KB"})
    assert "large" in ran.out and "not covered" in ran.out


def test_track_lacking_a_path(cli) -> None:
    os.mkfifo(cli.project / "pipe")
    ran = cli("track", "pipe", "README.md")
    assert ran.code == 3
    assert "    pipe: fifo" in ran.err
    assert cli("track", "pipe", "--json").json["lacking"] == [{"path": "pipe", "why": "fifo"}]
