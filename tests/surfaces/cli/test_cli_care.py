"""prune, pin, verify, repair, doctor, config and completion."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import takeback
from takeback.model.calls import Caller


def test_track_captures_named_paths_and_vouches_for_an_actor(cli, contents) -> None:
    assert re.fullmatch("tracked src/auth.py as [k-z]{8}\n", cli.ok("track", "src/auth.py").out)
    (cli.project / "src/auth.py").write_text("mine\n")
    ran = cli.ok("track", "auth.py", cwd=cli.project / "src", env={"TAKEBACK_ACTOR": "claude"})
    assert re.fullmatch("tracked src/auth.py as [k-z]{8}; changed since the last look: src/auth.py\n", ran.out)
    assert cli("log", "actor:claude", "--json").json["rows"][0]["paths"] == ["src/auth.py"]
    assert "Undo the last turn (claude)" in cli.ok("undo", "--yes").out
    assert contents()["src/auth.py"] == b"one\ntwo\nthree\n"


def test_the_actor_counts_in_checkpoint_and_track_only(changed) -> None:
    changed.ok("rollback", "--yes", env={"TAKEBACK_ACTOR": "claude"})
    assert all(row["actor"] == "" for row in changed("log", "--json").json["rows"])


def test_checkpoint_says_how_to_come_back(cli) -> None:
    ran = cli.ok("checkpoint", "before", "the", "refactor")
    assert ran.out.startswith("checkpoint 2 ") and '"before the refactor": 3 paths' in ran.out
    assert ran.err.startswith("come back to it: takeback rollback ")
    cli.ok("rollback", "before the refactor", "--yes")


def test_a_checkpoint_is_called_something_else(cli) -> None:
    cli.ok("pin", "start")
    ran = cli.ok("label", "start", "the", "good", "one")
    assert 'is called "the good one" now' in ran.out and "takeback label" in ran.err
    assert '"the good one"' in cli.ok("log").out and cli("show", "start").code != 0
    assert "the good one" in cli.ok("completion", "--names", "rollback").out
    assert "start" not in cli.ok("completion", "--names", "rollback").out
    (cli.project / "README.md").write_text("changed")
    cli.ok("rollback", "the good one", "--yes")
    assert (cli.project / "README.md").read_text() == "hello\n"
    cli.ok("checkpoint")
    cli.ok("prune", "--keep", "1", "--yes")
    assert cli.ok("label", "the good one", "better", "--json").json["checkpoint"]["pinned"] is True
    assert cli.ok("label", "1", "--json").json["checkpoint"]["label"] == ""
    assert cli.ok("verify").out.startswith("whole: ")


@pytest.mark.parametrize("label", ["it's $(touch pwned); rm -r src", "--json", "", "two words"])
def test_the_way_back_from_a_label_says_what_it_was_and_runs_nothing_else(cli, label: str) -> None:
    cli.ok("label", "1", "--", *([label] if label else []))
    told = cli.ok("label", "1", "something else").err
    words = shlex.split(told.split("take this back: takeback ")[1])
    cli.ok(*words)
    assert cli("log", "--json").json["rows"][0]["label"] == label


def test_a_label_that_cannot_be_shown_is_in_no_command(cli) -> None:
    cli.ok("label", "1", "red\x1b[31m\u202e")
    assert "take this back" not in cli.ok("label", "1", "   ").err
    assert cli("log", "--json").json["rows"][0]["label"] == ""


def test_a_label_is_one_line_without_secrets_and_a_persons(cli) -> None:
    assert cli("label", "start", "a\nb").code == 2 and cli("label", "start", "x" * 5000).code == 2
    assert cli("label", "nothing", "x").code == 2
    token = "ghp_" + "a1B2" * 9
    assert token not in cli.ok("label", "start", token).out
    for words in (["label", "1", "x"], ["unpin", "1"]):
        ran = cli(*words, env={"CLAUDECODE": "1"})
        assert ran.code == 4 and "is for a person" in ran.err


def test_pin_and_unpin(cli) -> None:
    assert "is kept for ever" in cli.ok("pin", "start").out
    assert "pinned" in cli.ok("log").out
    cli.ok("checkpoint")
    cli.ok("prune", "--keep", "1", "--yes")
    assert cli.ok("show", "start").code == 0
    assert cli("unpin", "start", "--json").json["checkpoint"]["pinned"] is False


def test_prune_says_what_goes_and_asks(cli) -> None:
    cli.ok("checkpoint", "two")
    ran = cli("prune", "--keep", "1")
    assert ran.code == 4
    assert "would forget 1 checkpoint" in ran.out
    assert "--yes" in ran.err
    assert cli("prune", "--keep", "1", "--json").json["error"]["code"] == 4
    assert "would forget" in cli.ok("prune", "--keep", "1", "--dry-run").out
    assert "forgot 1 checkpoint" in cli.ok("prune", "--keep", "1", "--yes").out
    assert cli.ok("verify").out.startswith("whole: ")
    assert cli.ok("prune", "--keep", "1", "--yes").out == "nothing to prune\n"
    ran = cli("rollback", "1", "--yes")
    assert ran.code == 2
    assert "was pruned" in ran.err


def test_prune_all_empties_the_workspace(changed) -> None:
    changed.ok("checkpoint", "now")
    shape = changed("prune", "--all", "--yes", "--json").json["prune"]
    assert len(shape["checkpoints"]) == 2
    assert changed("log", "--json").json["rows"] == []
    assert "checkpoint" in changed.ok("checkpoint", "anew").out
    assert [r["label"] for r in changed("log", "--json").json["rows"]] == ["anew"]


def test_prune_path_takes_a_secret_out_and_says_that_it_may_come_back(cli, store_folder) -> None:
    secret = cli.project / ".env"
    secret.write_text("TOKEN=hunter2-hunter2-hunter2\n")
    cli.ok("checkpoint")
    ran = cli.ok("prune", "--path", ".env", "--yes")
    assert "forgot 1 version of .env" in ran.out
    assert "the next checkpoint captures it again" in ran.err
    assert "checkpoints.exclude" in ran.err
    assert cli.ok("verify", "--data").out.startswith("whole: ")


def test_prune_orphans(cli, own_home, tmp_path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    cli.ok("init", "-C", str(other))
    assert "no store is orphaned" in cli.ok("prune", "--orphans", "--yes").out
    shutil.rmtree(other)
    ran = cli("prune", "--orphans")
    assert ran.code == 4
    assert f"{other} is gone; its store other-" in ran.out
    assert cli("prune", "--orphans", "--dry-run", "--json").json["orphans"][0]["root"] == str(other)
    assert "removed 1 store" in cli.ok("prune", "--orphans", "--yes").out
    assert len(list((own_home / "takeback").iterdir())) == 1


@pytest.mark.parametrize(
    "words", [["--all", "--orphans"], ["--keep", "x"], ["--older-than", "30"], ["--max-bytes", "big"]]
)
def test_prune_refuses_what_makes_no_sense(cli, words) -> None:
    assert cli("prune", *words).code == 2


def test_verify_names_what_damage_costs_and_repair_sets_it_aside(changed, store_folder) -> None:
    changed.ok("checkpoint")
    (pack, *_) = (store_folder() / "packs").glob("*.pack")
    data = bytearray(pack.read_bytes())
    at = data.find(b"one\n2\nthree")
    assert at > 0, "small blobs are stored as they are"
    data[at] ^= 1
    pack.write_bytes(data)
    ran = changed("verify", "--data")
    assert ran.code == 1
    assert ran.out.startswith("damaged: blob ")
    assert "src/auth.py" in ran.out
    found = changed("verify", "--data", "--json")
    assert found.code == 1
    assert found.json["ok"] is False
    assert found.json["lost"][0]["path"] == "src/auth.py"
    assert changed("repair").code == 4
    assert "set 1 damaged part aside" in changed.ok("repair", "--yes").out
    ran = changed.ok("verify", "--data")
    assert ran.out.startswith("whole but for 2 known losses, set aside by repair: ") and "src/auth.py" in ran.out
    assert "known to be lost" in changed.ok("repair", "--yes").out


def test_an_altered_row_is_named_and_the_rest_works(changed, store_folder, contents) -> None:
    changed.ok("checkpoint", "two")
    (changed.project / "src/auth.py").write_text("harm\n")
    db = sqlite3.connect(store_folder() / "journal.db")
    db.execute("UPDATE log SET body = CAST(replace(CAST(body AS TEXT), 'inline', 'inlime') AS BLOB) WHERE seq = 2")
    db.commit()
    db.close()
    for words in (["log"], ["status"], ["diff"], ["show", "start"]):
        changed.ok(*words)
    ran = changed("rollback", "start", "--yes")
    assert ran.code == 1 and "row 2 was altered" in ran.err and "takeback restore" in ran.err
    assert contents()["src/auth.py"] == b"harm\n"
    changed.ok("rollback", "two", "--yes")
    assert contents()["src/auth.py"] == b"one\n2\nthree\n"
    changed.ok("restore", "start", "src/auth.py", "--yes")
    assert contents()["src/auth.py"] == b"one\ntwo\nthree\n"
    ran = changed("verify")
    assert ran.code == 1 and ran.out.startswith("damaged: row 2: its body was altered\n")
    assert "lost in effect" in ran.out and "(the entry itself)" in ran.out
    assert "takeback repair" not in ran.out + ran.err
    assert "row 2" in changed("doctor").out


def test_a_damaged_database_is_told_and_rebuilt(changed, store_folder, contents) -> None:
    changed.ok("checkpoint", "later")
    with open(store_folder() / "journal.db", "r+b") as file:
        file.write(b"no database at all")
    ran = changed("verify")
    assert ran.code == 1
    assert ran.out.startswith("damaged: the journal is damaged (") and "→ set the damaged parts aside" in ran.err
    assert changed("verify", "--json").json["ok"] is False
    assert changed("repair").code == 4
    assert "rebuilt from 3 rows" in changed.ok("repair", "--yes").out
    assert changed.ok("verify", "--data").out.startswith("whole: ")
    changed.ok("rollback", "start", "--yes")
    assert contents()["src/auth.py"] == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("damaged", ["{", '{"format":' + "[" * 200_000 + "]" * 200_000 + "}"], ids=["cut", "nested"])
def test_a_damaged_workspace_json_is_told_and_made_anew(changed, store_folder, contents, damaged: str) -> None:
    (store_folder() / "workspace.json").write_text(damaged)
    ran = changed("verify")
    assert ran.code == 1 and "workspace.json cannot be read" in ran.out
    assert "takeback repair makes it anew" in changed("status").err
    assert "workspace.json was made anew" in changed.ok("-C", "src", "repair", "--yes").out
    assert [p.read_text() for p in store_folder().glob("quarantine/*/workspace.json")] == [damaged]
    changed.ok("rollback", "--yes")
    assert contents()["src/auth.py"] == b"one\ntwo\nthree\n"


def test_repair_of_a_whole_store(cli) -> None:
    assert cli.ok("repair", "--yes").out == "nothing to repair: everything stored is whole\n"
    assert cli("verify", "--json").json["first_bad"] is None


def test_doctor_is_well(cli) -> None:
    ran = cli.ok("doctor")
    assert ran.out.splitlines()[-1] == "all is well"
    names = [c["name"] for c in cli("doctor", "--json").json["checks"]]
    assert {
        "python",
        "settings",
        "free space",
        "store",
        "root",
        "journal",
        "lock",
        "take-backs",
        "size",
        "coverage",
    } <= {*names}


def test_doctor_names_each_failure_with_its_fix(interrupted, store_folder, tmp_path) -> None:
    store_folder().chmod(0o755)
    (interrupted.project / ".takeback.toml").write_text("[checkpoints]\nkeep = 1\n")
    other = tmp_path / "other"
    other.mkdir()
    interrupted.ok("init", "-C", str(other))
    shutil.rmtree(other)
    ran = interrupted("doctor", "--json")
    assert ran.code == 1
    failed = {c["name"]: c for c in ran.json["checks"] if not c["ok"]}
    assert failed.keys() == {"store", "take-backs", "project settings", "orphaned stores"}
    assert all(c["fix"] for c in failed.values())
    assert "→ chmod -R go-rwx " in interrupted("doctor").out


def test_doctor_survives_settings_that_do_not_parse(cli) -> None:
    (cli.project / ".takeback.toml").write_text("[checkpoints\n")
    ran = cli("doctor", "--json")
    assert ran.code == 1
    (failed,) = [c for c in ran.json["checks"] if not c["ok"]]
    assert failed["name"] == "settings" and "line 1" in failed["detail"]


def test_doctor_without_a_workspace(bare) -> None:
    ran = bare("doctor")
    assert ran.code == 1
    assert "✗ workspace" in ran.out and "→ takeback init" in ran.out


def test_config_lists_each_setting_and_its_source(cli, own_home) -> None:
    (own_home / "config/takeback").mkdir(parents=True)
    (own_home / "config/takeback/config.toml").write_text('[checkpoints]\nmax_age = "60d"\n')
    (cli.project / ".takeback.toml").write_text("[checkpoints]\nkeep = 300\nmax_file = 5\n")
    env = {"TAKEBACK_CHECKPOINTS_MAX_BYTES": "1GB"}
    lines = {line.split()[0]: line for line in cli.ok("config", env=env).out.splitlines()}
    assert lines["checkpoints.keep"].split()[1:] == ["300", ".takeback.toml"]
    assert lines["checkpoints.max_bytes"].split()[1:] == [
        "1",
        "GB",
        "environment",
        "TAKEBACK_CHECKPOINTS_MAX_BYTES",
    ]
    assert lines["checkpoints.max_age"].endswith("config.toml")
    found = cli("config", "--json", env=env).json
    assert "max_file" in found["ignored"][0]
    assert {"key": "checkpoints.keep", "value": 300, "source": ".takeback.toml"} in found["settings"]


def test_config_rules_and_confirm(cli) -> None:
    (cli.project / "data.csv").write_text("1\n")
    cli.ok("checkpoint")
    (cli.project / ".takebackignore").write_text("*.csv\n")
    out = cli.ok("config", "rules").out
    assert "node_modules/" in out and "*.csv" in out and ".takebackignore" in out
    assert "data.csv (takeback config confirm)" in cli.ok("status").out
    assert cli("config", "confirm").code == 4
    ran = cli.ok("config", "confirm", "--yes")
    assert "would no longer be: data.csv" in ran.out
    assert "data.csv (excluded by .takebackignore)" in cli.ok("status").out
    ran = cli.typing("config", "confirm", answers=[("Accept the project's rules? [y/N]", "y\n")])
    assert ran.code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_parse_and_name_every_verb(bare, shell: str) -> None:
    from takeback.surfaces.cli.verb_list import VERBS

    script = bare.ok("completion", shell).out
    assert all(verb in script for verb in VERBS)
    assert "all-steps" in script
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True).returncode == 0


def test_zsh_quotes_what_each_verb_does(bare) -> None:
    """An apostrophe in it would end the quote, and with it the whole script."""
    listed = bare.ok("completion", "zsh").out.partition("verbs=(\n")[2].partition("\n  )")[0]
    assert all(re.fullmatch(r"    '[a-z]+:[^':]+'", line) for line in listed.split("\n"))


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(cli) -> None:
    (cli.project / "src/legacy.py").unlink()
    program = f"function takeback; {sys.executable} -m takeback $argv; end"

    def complete(line: str) -> list[str]:
        code = f"{program}; takeback completion fish | source; complete -C '{line}'"
        ran = subprocess.run(["fish", "-c", code], capture_output=True, text=True, cwd=cli.project)
        return [each.partition("\t")[0] for each in ran.stdout.splitlines()]

    assert complete("takeback rollb") == ["rollback"]
    assert complete("takeback rollback st") == ["start"]
    assert complete("takeback report --format h") == ["html"]
    assert complete("takeback restore start src/l") == ["src/legacy.py"]


def test_bash_completes_verbs_and_options(bare) -> None:
    script = bare.ok("completion", "bash").out

    def complete(*words: str) -> list[str]:
        line = " ".join(f"'{w}'" for w in words)
        asked = f"COMP_WORDS=(takeback {line}) COMP_CWORD={len(words)}"
        code = f'{script}\n{asked}; _takeback; echo "${{COMPREPLY[@]}}"'
        return subprocess.run(["bash", "-c", code], capture_output=True, text=True).stdout.split()

    assert complete("roll") == ["rollback"]
    assert "--dry-run" in complete("-C", "x", "rollback", "--d")
    assert complete("help", "unp") == ["unpin", "unprotect"]


def test_bash_completes_ids_and_labels(drifted) -> None:
    project = drifted.project
    drifted.ok("checkpoint", "before the fix")
    rows = drifted("log", "--json").json["rows"]
    ids = {kind: [r["id"][:8] for r in rows if r["kind"] == kind] for kind in ("checkpoint", "effect")}
    plan = drifted("plan", "undo", "--json").json["plan"]["id"][:8]
    program = f'takeback() {{ {sys.executable} -m takeback "$@"; }}'
    script = drifted.ok("completion", "bash").out

    def complete(*words: str, cwd: Path = project) -> list[str]:
        line = " ".join(f"'{w}'" for w in words)
        asked = f"COMP_WORDS=(takeback {line}) COMP_CWORD={len(words)}"
        code = f'{program}\n{script}\n{asked}; _takeback; printf "%s\\n" "${{COMPREPLY[@]}}"'
        ran = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=cwd)
        assert not ran.stderr
        return ran.stdout.split("\n")[:-1]

    named = {*ids["checkpoint"], "before\\ the\\ fix", "base", "start"}
    assert set(complete("rollback", "")) == named | set(ids["effect"])
    assert set(complete("pin", "")) == named
    assert complete("rollback", "before\\ t") == ["before\\ the\\ fix"]
    assert complete("rollback", '"before t') == ["before the fix"]
    assert complete("plan", "rollback", "bas") == ["base"]
    assert complete("apply", "") == [plan]
    assert {*ids["effect"], "notes.md"} <= set(complete("revert", ""))
    assert {"base", "notes.md"} <= set(complete("restore", ""))
    assert "base" not in complete("restore", "base", "") and "notes.md" in complete("restore", "base", "")
    assert complete("-C", str(project), "rollback", "bas", cwd=project.parent) == ["base"]
    assert complete("rollback", "bas", cwd=project.parent) == [""], "nothing is protected there, and nothing is said"
    assert {"base", *ids["effect"]} <= set(complete("report", ""))
    assert complete("report", "--format", "h") == ["html"]


def test_bash_completes_paths_of_a_checkpoint_that_are_gone(cli) -> None:
    (cli.project / "src/legacy.py").unlink()
    program = f'takeback() {{ {sys.executable} -m takeback "$@"; }}'
    script = cli.ok("completion", "bash").out

    def complete(*words: str, cwd: Path = cli.project) -> list[str]:
        asked = f"COMP_WORDS=(takeback {' '.join(repr(w) for w in words)}) COMP_CWORD={len(words)}"
        code = f'{program}\n{script}\n{asked}; _takeback; printf "%s\\n" "${{COMPREPLY[@]}}"'
        return subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=cwd).stdout.split("\n")[:-1]

    assert complete("restore", "start", "src/l") == ["src/legacy.py"]
    assert complete("restore", "start", "l", cwd=cli.project / "src") == ["legacy.py"]
    assert complete("restore", "nothing", "src/l") == [""]
    assert cli.ok("completion", "--names", "restore:start", "--", "src/a").out == "src/auth.py\n"


def test_sessions_are_offered_for_a_report(cli) -> None:
    with takeback.open(cli.project) as workspace:
        workspace.begin_turn(Caller("claude", "s1"), "add a form")
    assert cli.ok("completion", "--names", "session").out == "s1\tclaude “add a form”\n"


def test_names_for_completion_are_silent_whatever_fails(cli, store_folder) -> None:
    assert "start\tcheckpoint " in cli.ok("completion", "--names", "rollback").out
    assert cli.ok("completion", "--names", "status").out == ""
    before = {p.name: p.read_bytes() for p in store_folder().iterdir() if p.is_file()}
    cli.ok("completion", "--names", "rollback")
    assert {p.name: p.read_bytes() for p in store_folder().iterdir() if p.name in before and p.is_file()} == before
    (store_folder() / "journal.db").write_bytes(b"no database")
    assert cli("completion", "--names", "rollback") == (0, "", "")


def test_prune_names_the_paths_that_share_the_bytes_before_it_asks(cli) -> None:
    for name in (".env", "copy.env"):
        (cli.project / name).write_text("TOKEN=hunter2-hunter2-hunter2\n")
    cli.ok("checkpoint")
    told = "1 of its versions are also another path's, whose copies go too: copy.env"
    assert told in cli.ok("prune", "--path", ".env", "--dry-run").out
    assert told in cli("prune", "--path", ".env").out
    assert cli("prune", "--path", ".env", "--json").json["prune"]["also"] == ["copy.env"]
    assert cli.typing("prune", "--path", ".env", answers=[("Forget this", "n\n")]).out.index("copy.env") >= 0
    assert told in cli.ok("prune", "--path", ".env", "--yes").out


def test_prune_says_that_the_budget_does_not_fit_why_and_what_to_do(cli) -> None:
    (cli.project / "noise").write_bytes(os.urandom(200_000))
    cli.ok("checkpoint")
    for words in (["--dry-run"], ["--yes"], ["--yes"]):
        ran = cli.ok("prune", "--max-bytes", "100KB", *words)
        assert "of 100 KB (the last checkpoint 2" in ran.err, words
        assert "→ raise checkpoints.max_bytes, takeback unpin" in ran.err
    assert ran.out == "nothing to prune: all of it has to stay\n"
    shape = cli.ok("prune", "--max-bytes", "100KB", "--dry-run", "--json").json["prune"]
    assert shape["over"] > 100_000 and "the last checkpoint" in shape["why_over"]


def test_what_is_beyond_the_budget_is_told_with_why_and_until_when(cli) -> None:
    few = {"TAKEBACK_CHECKPOINTS_KEEP": "3"}
    assert "beyond the budget" not in cli.ok("status", env=few).out
    for n in range(5):
        (cli.project / "README.md").write_text(str(n))
        cli.ok("checkpoint", f"c{n}", env=few)
    shown = cli.ok("status", env=few).out
    assert "beyond the budget: 3 of 6 checkpoints (checkpoints.keep is 3)" in shown
    assert "younger than a day" in shown and "until 2" in shown and "takeback prune --dry-run" in shown
    told = cli.ok("status", "--json", env=few).json["budget"]
    assert told["over"] == 3 and told["until"] > time.time()
    assert "forgot 3 checkpoints" in cli.ok("prune", "--yes", env=few).out
    assert "beyond the budget" not in cli.ok("status", env=few).out


def test_prune_to_the_budget_counts_the_states_of_each_thread(cli) -> None:
    few = {"TAKEBACK_CHECKPOINTS_KEEP": "2"}
    for n in range(5):
        cli.ok("thread", "save", "main", "--state", f'{{"step": {n}}}', env=few)
    assert "of threads main (3 state checkpoints)" in cli.ok("status", env=few).out
    assert "3 state checkpoints of threads main (3)" in cli.ok("prune", "--dry-run", env=few).out
    assert len(cli.ok("thread", "list", "main", "--json").json["checkpoints"]) == 5
    assert cli.ok("prune", "--yes", "--json", env=few).json["prune"]["states"] == [{"thread": "main", "states": 3}]
    assert len(cli.ok("thread", "list", "main", "--json").json["checkpoints"]) == 2
    assert cli.ok("thread", "load", "main", "--json").json["state"] == {"step": 4}
