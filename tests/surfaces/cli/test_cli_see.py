"""status, diff, log and show: what they say, and that they leave no trace."""

from __future__ import annotations

import pytest


def test_status_in_words(changed, store_folder) -> None:
    lines = changed.ok("status").out.splitlines()
    assert lines[0].startswith("Since ") and lines[0].endswith(' "start" · just now · 3 changes')
    assert lines[1:4] == ["  ~ src/auth.py", "  - src/legacy.py", "  + src/new.py"]
    assert lines[-1].startswith("store: ") and lines[-1].endswith(str(store_folder()))


def test_status_names_actors_and_what_is_not_covered(drifted) -> None:
    (drifted.project / "node_modules").mkdir()
    (drifted.project / "node_modules/x").write_text("x")
    out = drifted.ok("status").out
    assert "  + made.py   claude\n" in out
    assert "  ~ notes.md  claude, unattributed\n" in out
    assert "not covered: node_modules (regenerable)\n" in out


@pytest.mark.parametrize("who", ["run", "claude"])
def test_status_names_a_take_back_and_not_whose_work_it_took(cli, who) -> None:
    if who == "run":
        cli.ok("run", "--", "touch", "new.txt")
    else:
        (cli.project / "new.txt").write_text("x\n")
        cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    cli.ok("checkpoint", "with it")
    cli.ok("undo", "--yes")
    (line,) = [line for line in cli.ok("status").out.splitlines() if "new.txt" in line]
    assert line.startswith("  - new.txt  taken back: undo ") and who not in line
    (change,) = cli("status", "--json").json["changes"]
    assert change["actor"] == "" and len(change["takebacks"]) == 1


def test_status_as_json(changed, store_folder) -> None:
    found = changed("status", "--json").json
    assert found["checkpoint"]["label"] == "start"
    assert found["changes"] == [
        {"path": "src/auth.py", "change": "modified", "actor": ""},
        {"path": "src/legacy.py", "change": "deleted", "actor": ""},
        {"path": "src/new.py", "change": "new", "actor": ""},
    ]
    assert found["uncovered"] == []
    assert found["store"]["path"] == str(store_folder())
    assert found["store"]["bytes"] > 0


def test_status_of_many_changes_fits_a_screen(cli) -> None:
    for n in range(200):
        (cli.project / f"f{n:03}").write_text("x")
    out = cli.ok("status").out
    assert len(out.splitlines()) < 24
    assert "more (see all: takeback status --all)" in out
    assert len(cli.ok("status", "--all").out.splitlines()) > 200


@pytest.mark.parametrize("words", [["status"], ["diff"], ["log"], ["show", "1"], ["rollback", "--dry-run"], ["doctor"]])
def test_looking_changes_neither_the_tree_nor_the_number_of_checkpoints(changed, contents, words) -> None:
    before = contents()
    changed.ok(*words)
    assert contents() == before
    assert len(changed("log", "kind:checkpoint", "--json").json["rows"]) == 1


@pytest.mark.parametrize("words", [["status"], ["diff"], ["log"], ["show", "1"]])
def test_seeing_journals_nothing(changed, words) -> None:
    changed.ok(*words)
    assert len(changed("log", "--json").json["rows"]) == 1


def test_diff_in_words(changed) -> None:
    lines = changed.ok("diff").out.splitlines()
    assert lines[0].endswith(' "start" → now')
    assert "~ src/auth.py  modified +1 −1" in lines
    assert lines[lines.index("~ src/auth.py  modified +1 −1") + 1 :][:5] == [
        "  @@ -1,3 +1,3 @@", "   one", "  -two", "  +2", "   three",
    ]  # fmt: skip
    assert "- src/legacy.py  deleted −1" in lines
    assert lines[-1] == "3 paths · 1 modified · 1 deleted · 1 new · +2 −2"


def test_diff_stat_paths_and_two_checkpoints(changed) -> None:
    assert changed.ok("diff", "--stat").out.splitlines()[1:4] == [
        "  ~ src/auth.py    modified +1 −1",
        "  - src/legacy.py  deleted −1",
        "  + src/new.py     new +1",
    ]
    changed.ok("checkpoint", "later")
    assert "src/auth.py" in changed.ok("diff", "start", "later", "--", "src/auth.py").out
    assert "legacy" not in changed.ok("diff", "start", "later", "--", "src/auth.py").out
    assert changed.ok("diff").out.endswith('"later" → now: no difference\n')
    assert "auth.py" in changed.ok("diff", "start", "auth.py", cwd=changed.project / "src").out
    assert changed("diff", "start", "later", "start").code == 2


def test_diff_as_json(changed) -> None:
    found = changed("diff", "--json").json
    first = found["files"][0]
    assert (first["path"], first["status"], first["added"], first["removed"]) == (
        "src/auth.py",
        "modified",
        1,
        1,
    )
    assert first["hunks"][0]["lines"] == [" one", "-two", "+2", " three"]


def test_diff_names_renames_modes_links_and_binaries(cli) -> None:
    (cli.project / "src/auth.py").rename(cli.project / "src/login.py")
    (cli.project / "README.md").chmod(0o600)
    (cli.project / "link").symlink_to("README.md")
    (cli.project / "pixel").write_bytes(b"\0" * 2000)
    out = cli.ok("diff", "--stat").out
    assert "→ src/auth.py → src/login.py" in out
    assert "mode 0644 → 0600" in out
    assert "new symlink (README.md)" in out
    assert "new binary 2 KB" in out


def test_log_in_words_and_json(drifted) -> None:
    drifted.ok("undo", "--yes", "--merge")
    lines = drifted.ok("log").out.splitlines()
    kinds = ["↩", "~", "○", "~", "●", "~", "●"]
    assert [line[0] for line in lines] == kinds
    assert lines[0].split()[0] == "↩─╮" and lines[2].split()[:3] == ["○", "│", "3"]
    assert '"base"' in lines[4] and "claude" in lines[3]
    rows = drifted("log", "--json").json["rows"]
    assert {"id", "kind", "number", "label", "at", "actor", "summary", "live", "paths"} <= rows[0].keys()
    assert [r["number"] for r in rows] == [None, None, 3, None, 2, None, 1]
    assert [r["kind"] for r in rows][:2] == ["takeback", "effect"]


def test_log_filters(drifted) -> None:
    def numbers(*words: str) -> list[int]:
        return [r["number"] for r in drifted("log", *words, "--json").json["rows"]]

    assert numbers("actor:claude") == [3, None]
    assert numbers("-n", "1") == [3]
    assert numbers("kind:checkpoint", "-actor:claude") == [2, 1]
    assert numbers("path:made.py") == [None]
    assert numbers("base") == [2]
    assert "nothing in the log matches" in drifted.ok("log", "label:nothing").out
    bad = drifted("log", "color:red")
    assert bad.code == 2 and "unknown key 'color'" in bad.err


def test_show_each_kind_of_entry(changed) -> None:
    changed.ok("rollback", "--yes")
    ids = [row["id"] for row in reversed(changed("log", "--json").json["rows"])]
    checkpoint, effect, takeback = (changed.ok("show", name).out for name in ("1", *ids[1:]))
    assert '● checkpoint 1 "start"' in checkpoint and "src/auth.py" in checkpoint
    assert "~ effect\n" in effect and "live     no, taken back" in effect and "-two" in effect
    assert "↩ takeback\n" in takeback and "took     src/auth.py of " in takeback
    found = changed("show", "start", "--json").json
    assert found["kind"] == "checkpoint"
    assert {t["path"] for t in found["tree"]} == {"README.md", "src", "src/auth.py", "src/legacy.py"}


def test_quiet_says_nothing_of_success(cli) -> None:
    ran = cli.ok("checkpoint", "-q")
    assert (ran.out, ran.err) == ("", "")
