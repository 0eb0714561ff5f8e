"""What a person meets every day: where one is after a rollback, a log as git's, forgetting a folder, what status shows
first, and what an isolated command leaves elsewhere."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from takeback.run import elsewhere

# -- where one is ------------------------------------------------------------


@pytest.fixture
def back(cli):
    """Rolled back to the second of three checkpoints."""
    for n in (1, 2, 3):
        (cli.project / f"{n}.txt").write_text(f"{n}\n")
        (cli.project / "all.txt").write_text(f"{n}\n")
        cli.ok("checkpoint", f"c{n}")
    cli.ok("rollback", "c2", "--all", "--yes")
    return cli


def test_after_a_rollback_status_and_diff_compare_with_where_one_is(back) -> None:
    first = back.ok("status").out.splitlines()[0]
    assert '"c2"' in first and first.endswith("· went back to it · no file changed")
    assert "no difference" in back.ok("diff").out
    (back.project / "mine.txt").write_text("mine\n")
    found = back("status", "--json").json
    assert found["checkpoint"]["label"] == "c2" and [c["path"] for c in found["changes"]] == ["mine.txt"]
    assert [f["path"] for f in back("diff", "--json").json["files"]] == ["mine.txt"]


def test_so_does_rollback_without_a_target(back) -> None:
    (back.project / "mine.txt").write_text("mine\n")
    back.ok("rollback", "--all", "--yes")
    assert not (back.project / "mine.txt").exists() and not (back.project / "3.txt").exists()
    assert (back.project / "2.txt").exists()


def test_a_redo_or_a_new_checkpoint_ends_that(back) -> None:
    back.ok("redo", "--yes")
    assert back("status", "--json").json["checkpoint"]["label"] == "c3"
    back.ok("rollback", "c1", "--all", "--yes")
    assert back("status", "--json").json["checkpoint"]["label"] == "c1"
    back.ok("rollback", "c2", "--all", "--yes")
    assert back("status", "--json").json["checkpoint"]["label"] == "c2" and "went back" in back.ok("status").out
    back.ok("checkpoint", "c4")
    found = back("status", "--json").json
    assert found["checkpoint"]["label"] == "c4" and found["changes"] == []
    assert "went back" not in back.ok("status").out


def test_what_a_rollback_had_to_keep_shows_as_a_change(drifted) -> None:
    drifted.ok("checkpoint", "later")
    drifted("rollback", "base", "--yes")
    found = drifted("status", "--json").json
    assert found["checkpoint"]["label"] == "base"
    assert [c["path"] for c in found["changes"]] == ["notes.md"]


def test_a_rollback_of_a_part_leads_nowhere_else(back) -> None:
    back.ok("redo", "--yes")
    back.ok("rollback", "c1", "--only", "files", "--all", "--yes")
    assert back("status", "--json").json["checkpoint"]["label"] == "c3"


# -- what status shows first ---------------------------------------------------


def test_edited_files_come_before_those_of_a_folder_that_went(cli) -> None:
    many = cli.project / "aaa" / "deep"
    many.mkdir(parents=True)
    for n in range(488):
        (many / f"f{n}").write_text("x\n")
    cli.ok("checkpoint", "full")
    for path in many.iterdir():
        path.unlink()
    many.rmdir()
    many.parent.rmdir()
    (cli.project / "src/auth.py").write_text("edited\n")
    (cli.project / "zzz").mkdir()
    (cli.project / "zzz/new").write_text("new\n")
    shown = cli.ok("status").out.splitlines()
    assert shown[0].endswith(" · 493 changes")
    assert shown[1].split() == ["~", "src/auth.py"]
    assert shown[2].split() == ["-", "aaa/", "with", "489", "paths", "in", "it"]
    assert shown[3].split() == ["+", "zzz/", "with", "1", "path", "in", "it"]
    whole = cli.ok("status", "--all").out
    assert whole.count("aaa/deep/f") == 488
    assert len(cli("status", "--json").json["changes"]) > 488


def test_what_somebody_else_did_in_a_new_folder_is_not_hidden_in_it(cli) -> None:
    (cli.project / "made").mkdir()
    (cli.project / "made/one").write_text("1\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    (cli.project / "made/mine").write_text("mine\n")
    shown = cli.ok("status").out.splitlines()
    assert [line.split()[:2] for line in shown[1:4]] == [["+", "made"], ["+", "made/mine"], ["+", "made/one"]]


# -- a log as git's ------------------------------------------------------------


@pytest.fixture
def long(cli):
    for n in range(5):
        (cli.project / "a.txt").write_text(f"line {n}\n")
        cli.ok("checkpoint", f"c{n}")
    return cli


@pytest.mark.parametrize("words", [["-3"], ["-n", "3"], ["-n3"], ["-3", "--json"]])
def test_the_newest_few(long, words) -> None:
    rows = long("log", *words, *([] if "--json" in words else ["--json"])).json["rows"]
    assert [row["kind"] for row in rows] == ["checkpoint", "effect", "checkpoint"]
    assert [row["label"] for row in rows] == ["c4", "", "c3"]


def test_one_line_each(long) -> None:
    lines = long.ok("log", "--oneline", "-2").out.splitlines()
    checkpoint, effect = long("log", "-2", "--json").json["rows"]
    assert lines[0].startswith(f'{checkpoint["id"][:8]} checkpoint 6 "c4"')
    assert lines[1] == f"{effect['id'][:8]} {effect['summary']}" and len(lines) == 2


def test_with_the_diff_of_each(long) -> None:
    out = long.ok("log", "-p", "kind:effect", "-n", "2").out
    assert "+line 4" in out and "-line 3" in out and "+line 3" in out and "-line 2" in out and "-line 1" not in out
    long.ok("undo", "--yes")
    newest = long("log", "-p", "-1", "--json").json["rows"][0]
    assert newest["kind"] == "takeback" and newest["files"][0]["path"] == "a.txt"
    assert "-line 4" in long.ok("log", "--patch", "--oneline", "-1").out


def test_what_was_so_already_has_no_diff(cli) -> None:
    (cli.project / "came").write_text("came\n")
    cli.ok("checkpoint", "later")
    (cli.project / "came").unlink()
    cli.ok("rollback", "start", "--yes")
    assert "came" not in cli.ok("log", "-p", "-1").out.partition("rollback")[2].partition("\n")[2]
    cli.ok("show", cli("log", "-1", "--json").json["rows"][0]["id"])


def test_a_diff_in_the_log_hides_secrets_as_others_do(cli) -> None:
    (cli.project / ".env").write_text("KEY=sk-live-0123456789abcdefghijklmn\n")
    cli.ok("checkpoint", "later")
    assert "0123456789" not in cli.ok("log", "-p").out and "0123456789" in cli.ok("log", "-p", "--unmasked").out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--since", "1h"], 11),
        (["--since=2 hours ago"], 11),
        (["--since", "2.weeks.ago"], 11),
        (["--since", "yesterday"], 11),
        (["--after", "2200-01-01"], 0),
        (["--until", "1h"], 0),
        (["--before", "2200-01-01"], 11),
        (["--since", "1h", "--until", "2200-01-01", "-2"], 2),
    ],
)
def test_since_and_until(long, words, found) -> None:
    assert len(long("log", *words, "--json").json["rows"]) == found


def test_a_time_that_is_none_is_said_so(long) -> None:
    ran = long("log", "--since", "soon")
    assert ran.code == 2 and "neither a duration nor a date" in ran.err
    assert long("log", "-0").code == 2
    assert long("log", "--outside", "-p").code == 2


def test_help_begins_with_init(bare) -> None:
    out = bare.ok("--help").out
    assert "  init        protect this folder" in out and len(out.splitlines()) <= 24


# -- forget ----------------------------------------------------------------------


def test_forget_says_what_is_lost_asks_and_removes_it(changed, contents, store_folder) -> None:
    changed.ok("checkpoint", "keep me")
    changed.ok("pin", "keep me")
    changed.ok("record", "command", "--did", "made a table", "--", "true")
    before, folder = contents(), store_folder()
    ran = changed.typing("forget", answers=[("Forget all of it for good? [y/N]", "n\n")], env={"NO_COLOR": "1"})
    assert ran.code == 4 and "nothing was changed" in ran.out and folder.is_dir()
    assert "2 checkpoints, 2 effects and 0 turns of agents since" in ran.out
    assert "1 checkpoint that you pinned" in ran.out and "outside the files: 1 live" in ran.out
    ran = changed.typing("forget", answers=[("Forget all of it for good? [y/N]", "y\n")], env={"NO_COLOR": "1"})
    assert ran.code == 0 and "is forgotten" in ran.out and "its files are as they were" in ran.out
    assert not folder.exists() and contents() == before
    assert changed("status").code == 10
    assert changed.ok("init").out.splitlines()[1].startswith("checkpoint 1 ")


def test_forget_without_a_person_needs_a_yes(cli, store_folder) -> None:
    folder = store_folder()
    assert cli("forget").code == 4 and folder.is_dir()
    told = cli("forget", "--json")
    assert told.code == 4 and told.json["forgotten"] is False and told.json["lost"]["checkpoints"] == 1
    done = cli("forget", "--json", "--yes")
    assert done.code == 0 and done.json["forgotten"] is True and not folder.exists()
    assert cli("forget", "--yes").code == 10


def test_forget_is_nothing_for_an_agent(cli, store_folder) -> None:
    ran = cli("forget", "--yes", env={"CLAUDECODE": "1"})
    assert ran.code == 4 and "for a person" in ran.err and store_folder().is_dir()


def test_forget_says_that_a_tree_in_between_stays_so(interrupted, contents, store_folder) -> None:
    folder, before = store_folder(), contents()
    ran = interrupted("forget")
    assert ran.code == 4 and "a rollback was interrupted: the files stay in between" in ran.out and folder.is_dir()
    assert interrupted("forget", "--json").json["lost"]["interrupted"] == "a rollback was interrupted"
    assert interrupted("forget", "--yes").code == 0 and not folder.exists() and contents() == before


def test_forget_waits_for_a_take_back_that_is_under_way(under_way, store_folder) -> None:
    ran = under_way("forget", "--yes", env={"TAKEBACK_LOCK_TIMEOUT": "0.1"})
    assert ran.code != 0 and store_folder().is_dir()


def test_forget_removes_a_store_that_is_damaged(cli, store_folder) -> None:
    (store_folder() / "workspace.json").write_text("{")
    ran = cli("forget", "--yes")
    assert ran.code == 0 and "it is damaged" in ran.out and cli("status").code == 10


def test_forget_says_that_hooks_stay(cli) -> None:
    cli.ok("protect", "claude", "--yes")
    assert "the hooks of claude stay" in cli.ok("forget", "--yes").err


# -- isolated commands ------------------------------------------------------------


@pytest.fixture
def isolated(cli):
    ran = cli("run", "--isolate", "--drop", "--", "true")
    if ran.code == 1 and ("overlayfs" in ran.err or "namespaces" in ran.err):
        pytest.skip("this system cannot isolate")
    return cli


def test_doctor_passes_after_an_isolated_run(isolated, store_folder) -> None:
    staging = store_folder() / "staging"
    assert stat.S_IMODE(staging.stat().st_mode) == 0o700
    checks = {check["name"]: check for check in isolated("doctor", "--json").json["checks"]}
    assert checks["store"]["ok"], checks["store"]
    staging.chmod(0o755)  # as an earlier version left it
    isolated.ok("run", "--isolate", "--drop", "--", "sh", "-c", "umask 0; mkdir d; echo x > d/f")
    assert stat.S_IMODE(staging.stat().st_mode) == 0o700


def test_what_an_isolated_command_wrote_elsewhere_is_named(isolated, tmp_path: Path) -> None:
    home = tmp_path / "home-of-it"
    (home / "cache").mkdir(parents=True)
    (home / "old").write_text("old\n")
    time.sleep(0.1)  # the times of files are as coarse as the kernel's clock
    script = f"echo x > inside; echo y > {home}/made; mkdir {home}/new; echo z > {home}/cache/deep"
    ran = isolated("run", "--isolate", "--drop", "--", "sh", "-c", script, env={"HOME": str(home)})
    assert ran.code == 0 and not (isolated.project / "inside").exists()
    told = next(line for line in ran.err.splitlines() if "written outside the project" in line)
    assert f"{home}/made" in told and f"{home}/cache/deep" in told and f"{home}/old" not in told
    assert "inside" not in told.replace(str(home), "")
    assert "it stays, and takeback cannot undo it" in ran.err


def test_nothing_is_named_where_nothing_was_written(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    os.utime(tmp_path / "old", ns=(0, 0))
    begun = (tmp_path / "old").stat().st_ctime_ns + 1_000_000_000
    assert elsewhere.changed([str(tmp_path)], [], begun, begun + 1) == ((), True)


def test_what_went_is_named_by_its_folder_and_what_is_left_out_is_not(tmp_path: Path) -> None:
    for name in ("gone", "ours"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("x")
    (tmp_path / "gone" / "f").unlink()
    now = (tmp_path / "gone").stat().st_mtime_ns
    found = elsewhere.changed([str(tmp_path)], [tmp_path / "ours"], now - 10_000_000_000, now + 10_000_000_000)
    assert found.paths == (f"{tmp_path}/gone/",) and found.is_whole
    assert not elsewhere.changed([str(tmp_path)], [], 0, now, seconds=0).is_whole


def test_where_a_command_may_write(tmp_path: Path) -> None:
    places = elsewhere.places({"HOME": "/home/ada", "TMPDIR": "/scratch"}, ["sh", "-c", "cp a '/srv/x'; echo > ~/b"])
    assert places[:2] == ["/srv/x", "/home/ada/b"] and {"/scratch", "/home/ada"} <= set(places) and "/" not in places
