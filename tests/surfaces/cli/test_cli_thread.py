"""takeback thread: saving, looking, going back, forking, handing over, verify and prune, as a person or a script has it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import takeback


def save(cli: Any, state: Any, *more: str, thread: str = "main", **how: Any) -> str:
    """The id of the new head."""
    return str(
        cli.ok("thread", "save", thread, "--state", json.dumps(state), "--json", *more, **how).json["checkpoint_id"]
    )


def ids(cli: Any, thread: str = "main") -> list[str]:
    return [c["checkpoint_id"] for c in cli.ok("thread", "list", thread, "--json").json["checkpoints"]]


def state(cli: Any, *words: str) -> Any:
    return cli.ok("thread", "load", *words).json


@pytest.fixture
def three(cli: Any) -> Any:
    """A thread of three states."""
    for step in (1, 2, 3):
        save(cli, {"step": step, "messages": ["hello"] * step}, "--summary", f"step {step}", "--agent", "claude")
    return cli


# -- save, load, resume ------------------------------------------------------


def test_a_state_is_saved_from_a_word_a_file_or_standard_input(cli: Any) -> None:
    (cli.project / "state.json").write_text('{"step": 2}')
    first = cli.ok("thread", "save", "main", "--state", '{"step": 1}', "--summary", "the first", "--json").json
    assert first["thread_id"] == "main" and first["parent_checkpoint_id"] is None
    assert first["summary"] == "the first" and first["values"] == ["step"]
    cli.ok("thread", "save", "main", "state.json")
    for words in (["-"], []):
        done = subprocess.run(
            [sys.executable, "-m", "takeback", "thread", "save", "main", *words],
            cwd=cli.project,
            input=b'{"step": 3}',
            check=False,
        )
        assert done.returncode == 0
    assert [state(cli, "main", id)["step"] for id in ids(cli)] == [3, 3, 2, 1]


def test_resume_has_the_id_and_the_state(three: Any) -> None:
    found = three.ok("thread", "resume", "main", "--json").json
    assert found["checkpoint_id"] == ids(three)[0]
    assert found["state"] == {"step": 3, "messages": ["hello"] * 3}
    assert found["agent"] == "claude" and found["created_at"].endswith("Z") and found["blob_id"]
    assert found["workspace_checkpoint"] and found["parent_checkpoint_id"] == ids(three)[1]
    told = three.ok("thread", "resume", "main")
    assert '"step": 3' in told.out and f"--parent {found['checkpoint_id'][:8]}" in told.err
    assert "it is not the head" in three.ok("thread", "resume", "main", ids(three)[2][:8]).err


def test_who_saves_is_named_by_the_option_or_the_environment(cli: Any) -> None:
    save(cli, {"x": 1}, env={"TAKEBACK_ACTOR": "codex"})
    save(cli, {"x": 2}, "--agent", "claude", env={"TAKEBACK_ACTOR": "codex"})
    found = cli.ok("thread", "list", "main", "--json").json["checkpoints"]
    assert [c["agent"] for c in found] == ["claude", "codex"]


def test_whoever_saves_vouches_for_no_file(cli: Any) -> None:
    (cli.project / "mine").write_text("by hand")
    save(cli, {"x": 1}, env={"TAKEBACK_ACTOR": "ann"})
    (row,) = cli.ok("log", "domain:files", "kind:effect", "--json").json["rows"]
    assert row["paths"] == ["mine"] and not row["actor"]
    cli("undo", "--actor", "ann", "--yes")
    assert (cli.project / "mine").exists()


def test_state_alone_needs_no_init_and_looks_at_no_file(bare: Any, own_home: Path) -> None:
    refused = bare("thread", "save", "main", "--state", "{}")
    assert refused.code == 10 and "--state-only" in refused.err and "takeback init" in refused.err
    assert not (own_home / "takeback").exists()
    (bare.project / "a.txt").write_text("a")
    first = save(bare, {"x": 1}, "--state-only")
    save(bare, {"x": 2})
    assert bare.ok("thread", "resume", "main", "--json").json["workspace_checkpoint"] is None
    assert bare.ok("thread", "rollback", "main", first, "--yes", "--json").json["restored_from"] == first
    assert state(bare, "main") == {"x": 1}
    assert "checkpoint" not in {row["kind"] for row in bare.ok("log", "--json").json["rows"]}
    bare.ok("init")
    assert ids(bare)[-1] == first and bare.ok("log", "--json", "kind:checkpoint").json["rows"]


def test_two_on_one_head(three: Any) -> None:
    head, older = ids(three)[:2]
    moved = three("thread", "save", "main", "--state", "{}", "--parent", older[:8])
    assert moved.code == 1 and "has moved on" in moved.err and head in moved.err and "→" in moved.err
    assert ids(three)[0] == head
    save(three, {"step": 4}, "--parent", head[:8])
    assert three("thread", "save", "main", "--state", "{}", "--parent", head, "--json").json["error"]["code"] == 1


# -- list, show, diff, search ------------------------------------------------


def test_the_list_shows_threads_rollbacks_and_forks(three: Any) -> None:
    _, second, first = ids(three)
    three.ok("thread", "rollback", "main", first, "--yes")
    three.ok("thread", "fork", "main", second[:8], "other")
    lines = three.ok("thread", "list", "main").out.splitlines()
    assert lines[0].startswith("● ") and f"↩ from {first[:8]}" in lines[0] and "step 1" in lines[0]
    assert [line[0] for line in lines] == ["●", "○", "○", "├", "○"] and lines[3].endswith("⑂ other begins here")
    assert f"⑂ main@{second[:8]}" in three.ok("thread", "list", "other").out
    header, *rows = three.ok("thread", "list").out.splitlines()
    assert header.split() == ["THREAD", "HEAD", "STATES", "SAVED", "BY"]
    assert {row.split()[0]: row.split()[2] for row in rows} == {"other": "1", "main": "4"}
    assert f"⑂ main@{second[:8]}" in rows[0]
    shown = three.ok("thread", "list", "--json").json["threads"]
    assert shown[0]["forked_from"] == {"thread_id": "main", "checkpoint_id": second}
    chain = three.ok("thread", "list", "main", "--json").json["checkpoints"]
    assert [c["forks"] for c in chain] == [[], [], ["other"], []] and chain[0]["restored_from"] == first
    assert len(three.ok("thread", "list", "main", "-n", "2", "--json").json["checkpoints"]) == 2


def test_show_is_bounded_and_its_json_whole(cli: Any) -> None:
    assert "no thread yet" in cli.ok("thread", "list").out
    save(cli, {"lines": [f"number {n}" for n in range(500)]}, "--summary", "many \x1b[31mred\x1b[0m")
    shown = cli.ok("thread", "show", "main")
    assert len(shown.out.splitlines()) < 60 and "more lines (whole: takeback thread load main" in shown.out
    assert "\x1b" not in shown.out
    assert len(cli.ok("thread", "show", "main", "--json").json["state"]["lines"]) == 500


def test_a_secret_is_masked_for_pipes_and_whole_for_who_goes_on(cli: Any) -> None:
    secret = "sk-ant-api03-" + "a" * 95
    first = save(cli, {"note": f"key {secret}", "login": {"password": "hunter2"}, "tokens": 123})
    save(cli, {"note": "none"})
    for words in (
        ["show", "main", first],
        ["diff", "main", first],
        ["search", "key"],
        ["show", "main", first, "--json"],
    ):
        ran = cli.ok("thread", *words)
        assert secret not in ran.out and "hunter2" not in ran.out and "--unmasked" in ran.err, words
    assert cli.ok("thread", "show", "main", first, "--json").json["state"]["tokens"] == 123
    assert "hunter2" not in cli.ok("thread", "search", "hunter2").out
    assert secret in cli.ok("thread", "show", "main", first, "--unmasked").out
    assert cli("thread", "show", "main", "--unmasked", env={"CLAUDECODE": "1"}).code == 4
    assert state(cli, "main", first)["note"] == f"key {secret}"


def test_diff_is_by_path(cli: Any) -> None:
    a = save(cli, {"messages": ["one"], "step": 1, "gone": True})
    save(cli, {"messages": ["one", "two"], "step": 2})
    out = cli.ok("thread", "diff", "main", a[:8]).out.splitlines()
    assert out[:3] == ["+ messages[1]  two", "~ step  1 → 2", "− gone  true"]
    found = cli.ok("thread", "diff", "main", a, "--json").json
    assert {"path": "step", "change": "changed", "before": 1, "after": 2} in found["differences"]
    assert "the same state" in cli.ok("thread", "diff", "main", a, a).out


def test_search_finds_words_in_summaries_and_states(three: Any) -> None:
    save(three, {"text": "frobnicate the widget"}, thread="other")
    assert "frobnicate the" in three.ok("thread", "search", "widget", "frobnicate").out
    found = three.ok("thread", "search", "step 2", "--json").json["found"]
    assert [(f["thread_id"], f["where"]) for f in found] == [("main", "summary")]
    assert three.ok("thread", "search", "widget", "--thread", "main", "--json").json["found"] == []


# -- rollback, fork ----------------------------------------------------------


def test_a_rollback_is_planned_confirmed_and_taken_back(three: Any) -> None:
    head, _, first = ids(three)
    (three.project / "README.md").write_text("changed\n")
    asked = three("thread", "rollback", "main", first[:8])
    assert asked.code == 4 and f"back to 1 ({first[:8]})" in asked.out and "--yes" in asked.err
    assert ids(three)[0] == head
    dry = three.ok("thread", "rollback", "main", first, "--dry-run", "--json").json
    assert not dry["applied"] and dry["plan"]["distance"]["files"] == 1 and ids(three)[0] == head
    done = three.ok("thread", "rollback", "main", first, "--yes")
    assert (
        "1 file changed since, and stays: README.md; " in done.err
        and "--with-files" in done.err
        and "takeback redo" in done.err
    )
    assert state(three, "main")["step"] == 1 and (three.project / "README.md").read_text() == "changed\n"
    again = three.ok("thread", "rollback", "main", first, "--yes")
    assert again.out.startswith("nothing to take back") and len(ids(three)) == 4
    three.ok("redo", "--yes")
    assert state(three, "main")["step"] == 3 and len(ids(three)) == 5


def test_what_a_rollback_tells_programs(three: Any) -> None:
    head, second, _ = ids(three)
    done = three.ok("thread", "rollback", "main", second, "--yes", "--json").json
    now = ids(three)[0]
    assert (done["thread_id"], done["checkpoint_id"], done["parent_checkpoint_id"]) == ("main", now, head)
    assert (done["restored_from"], done["rolled_back_from"]) == (second, head) and done["blob_id"]
    assert done["applied"] and not done["nothing_to_take_back"]
    again = three.ok("thread", "rollback", "main", second, "--yes", "--json").json
    assert again["nothing_to_take_back"] and again["checkpoint_id"] == now


def test_memory_and_world_go_back_in_one_plan(cli: Any) -> None:
    (cli.project / "src/auth.py").write_text("changed before it was saved\n")
    first = save(cli, {"step": 1})
    (cli.project / "README.md").write_text("by the agent\n")
    save(cli, {"step": 2})
    (cli.project / "new.txt").write_text("new\n")
    asked = cli("thread", "rollback", "main", first, "--with-files")
    assert asked.code == 4 and "README.md" in asked.out and "new.txt" in asked.out and "thread main" in asked.out
    cli.ok("thread", "rollback", "main", first, "--with-files", "--yes")
    assert state(cli, "main") == {"step": 1} and (cli.project / "README.md").read_text() == "hello\n"
    assert not (cli.project / "new.txt").exists()
    assert (cli.project / "src/auth.py").read_text() == "changed before it was saved\n", "saving looks at the files"
    cli.ok("redo", "--yes")
    assert state(cli, "main") == {"step": 2} and (cli.project / "README.md").read_text() == "by the agent\n"
    assert (cli.project / "new.txt").exists()


def test_on_a_terminal_it_asks(three: Any) -> None:
    head, second, _ = ids(three)
    no = three.typing("thread", "rollback", "main", second, answers=[("Apply?", "n\n")])
    assert no.code == 4 and ids(three)[0] == head
    yes = three.typing("thread", "rollback", "main", second, answers=[("Apply?", "d\n"), ("Apply?", "y\n")])
    assert "step" in yes.out and "messages[2]" in yes.out, "what would change, by path"
    assert yes.code == 0 and "took back thread main" in yes.out and state(three, "main")["step"] == 2


def test_a_fork_leaves_its_origin(three: Any) -> None:
    made = three.ok("thread", "fork", "main", ids(three)[1], "other", "--json").json
    assert made["thread_id"] == "other" and made["forked_from"]["thread_id"] == "main"
    assert state(three, "other")["step"] == 2 and state(three, "main")["step"] == 3


# -- handoff, adopt ----------------------------------------------------------


def test_a_state_is_passed_to_another_agent(three: Any) -> None:
    given = three.ok("thread", "handoff", "main", ids(three)[1], "--to", "codex", "--note", "go on", "--json").json
    assert given["to_agent"] == "codex" and given["adopted_as"] is None
    assert "pending" in three.ok("thread", "list", "--handoffs").out
    wrong = three("thread", "adopt", given["handoff_id"], env={"TAKEBACK_ACTOR": "gemini"})
    assert wrong.code == 2 and "handed to codex, not to gemini" in wrong.err
    taken = three.ok(
        "thread", "adopt", given["handoff_id"][:8], "review", "--json", env={"TAKEBACK_ACTOR": "codex"}
    ).json
    assert (taken["thread_id"], taken["agent"], taken["handoff_id"]) == ("review", "codex", given["handoff_id"])
    assert state(three, "review")["step"] == 2
    assert "adopted as review" in three.ok("thread", "list", "--handoffs").out
    assert three("thread", "adopt", given["handoff_id"]).code == 2


# -- verify, prune -----------------------------------------------------------


def damage(folder: Path, sql: str) -> None:
    with sqlite3.connect(folder / "journal.db") as db:
        db.execute(sql)
    db.close()


def test_verify_passes_step_by_step(three: Any) -> None:
    out = three.ok("thread", "verify").out.splitlines()
    assert [line.split()[0] for line in out] == ["PASS", "PASS", "PASS", "whole:"]
    found = three.ok("thread", "verify", "main", "--json").json
    assert found["ok"] and [step["result"] for step in found["steps"]] == ["PASS"] * 3


def test_a_head_file_that_is_missing_costs_no_state(three: Any, store_folder: Callable[[], Path]) -> None:
    (store_folder() / "head").unlink()
    marks = [line.split()[0] for line in three("thread", "verify").out.splitlines() if not line.startswith(" ")]
    assert sorted(marks) == ["FAIL", "PASS", "PASS", "PASS", "damaged:"]
    told = three("verify")
    assert told.code == 1 and "head file" in told.out and "lost in" not in told.out and "repair" in told.err
    three.ok("repair", "--yes")
    three.ok("verify")


def test_verify_names_the_row_and_what_is_lost(cli: Any, store_folder: Callable[[], Path]) -> None:
    text = os.urandom(400).hex()
    save(cli, {"big": text, "step": 1})
    save(cli, {"step": 2})
    with sqlite3.connect(store_folder() / "journal.db") as db:
        (row,) = db.execute("SELECT seq FROM log WHERE kind = 'value'").fetchone()
    db.close()
    damage(store_folder(), f"UPDATE log SET body = substr(body, 1, 60) || x'00' || substr(body, 62) WHERE seq = {row}")
    ran = cli("thread", "verify")
    assert ran.code == 1 and f"row {row}" in ran.out and "big" in ran.out
    marks = [line.split()[0] for line in ran.out.splitlines() if not line.startswith(" ")]
    assert marks == ["FAIL", "FAIL", "PASS", "damaged:"], "the value's own row, and the state that needs it"
    assert cli("thread", "verify", "--json").json["failed"] >= 1
    lost = cli("thread", "load", "main", ids(cli)[1])
    assert lost.code == 1 and "missing or altered" in lost.err
    assert state(cli, "main") == {"step": 2}, "the rest still reads"


def test_what_holds_beside_damage_can_still_be_seen(cli: Any, store_folder: Callable[[], Path]) -> None:
    save(cli, {"text": "the old one"}, thread="old")
    save(cli, {"big": os.urandom(400).hex()}, thread="new")
    damage(
        store_folder(), "UPDATE log SET body = substr(body, 1, 60) || x'00' || substr(body, 62) WHERE kind = 'value'"
    )
    assert {t["thread_id"] for t in cli.ok("thread", "list", "--json").json["threads"]} == {"old", "new"}
    for words in (["list", "old"], ["list", "new"], ["search", "old", "one"], ["search", "one", "--thread", "old"]):
        cli.ok("thread", *words)
    assert cli("thread", "verify").code == 1 and cli("thread", "load", "new").code == 1
    assert state(cli, "old", ids(cli, "old")[0]) == {"text": "the old one"}


def test_prune_asks_and_keeps_what_is_needed(three: Any) -> None:
    three.ok("thread", "fork", "main", ids(three)[2], "other")
    would = three.ok("thread", "prune", "main", "--keep", "1", "--dry-run")
    assert (
        "would forget 1 state checkpoint of main" in would.out and "stays: thread other was forked from it" in would.out
    )
    asked = three("thread", "prune", "main", "--keep", "1")
    assert asked.code == 4 and len(ids(three)) == 3
    done = three.ok("thread", "prune", "main", "--keep", "1", "--yes", "--json").json["prune"]
    assert len(done["removed"]) == 1 and done["stays"][0]["why"] == "thread other was forked from it"
    assert len(ids(three)) == 2 and state(three, "other")["step"] == 1
    three.ok("thread", "prune", "other", "--delete", "--yes")
    assert [t["thread_id"] for t in three.ok("thread", "list", "--json").json["threads"]] == ["main"]
    three.ok("verify", "--data")
    three.ok("thread", "verify")


def test_an_agent_cannot_prune_what_it_remembers(three: Any) -> None:
    ran = three("thread", "prune", "main", "--keep", "1", "--yes", env={"CLAUDECODE": "1"})
    assert ran.code == 4 and "is for a person" in ran.err and len(ids(three)) == 3
    three.ok("thread", "prune", "main", "--keep", "1", "--dry-run", env={"CLAUDECODE": "1"})
    three.ok("thread", "verify", env={"CLAUDECODE": "1"})


# -- bad input ---------------------------------------------------------------

BAD: dict[str, tuple[list[str], int, str]] = {
    "no verb": ([], 2, "say what to do with threads"),
    "another verb": (["frob"], 2, "thread knows no 'frob'"),
    "no thread": (["save"], 2, "takes THREAD [FILE]"),
    "too many words": (["fork", "main", "a", "b", "c"], 2, "takes THREAD CHECKPOINT NEW"),
    "an option of another": (["list", "--keep", "3"], 2, "--keep is for takeback thread prune"),
    "an unknown thread": (["load", "nothing"], 2, "no thread called 'nothing'"),
    "an unknown thread to list": (["list", "nothing"], 2, "no thread called 'nothing'"),
    "an unknown thread to search": (["search", "x", "--thread", "nothing"], 2, "no thread called 'nothing'"),
    "an unknown thread to verify": (["verify", "nothing"], 2, "no thread called 'nothing'"),
    "an unknown thread to prune": (["prune", "nothing", "--keep", "1"], 2, "no thread called 'nothing'"),
    "an unknown checkpoint": (["show", "main", "zzzz"], 2, "thread main has no state checkpoint zzzz"),
    "an unknown checkpoint to go back to": (["rollback", "main", "zzzz", "--yes"], 2, "no state checkpoint zzzz"),
    "a checkpoint of another thread": (["rollback", "main", "OTHER", "--yes"], 2, "is of thread other, not of main"),
    "a fork onto a thread that is there": (["fork", "main", "MAIN", "other"], 2, "there is a thread other already"),
    "no JSON": (["save", "main", "--state", "{"], 2, "--state is no JSON"),
    "no object": (["save", "main", "--state", "[1]"], 2, "state is a list, not an object"),
    "nothing": (["save", "main", "--state", " "], 2, "--state is empty"),
    "no number": (["save", "main", "--state", '{"a": [1, {"b": NaN}]}'], 2, "state.a[1].b is nan"),
    "a number too long": (["save", "main", "--state", '{"a": ' + "1" * 5000 + "}"], 2, "too long to read"),
    "too deep": (["save", "main", "--state", '{"a":' + "[" * 5000 + "]" * 5000 + "}"], 2, "deep"),
    "no file": (["save", "main", "nowhere.json"], 2, "nowhere.json cannot be read"),
    "two states": (["save", "main", "a", "--state", "{}"], 2, "either --state or a file"),
    "a name with a line break": (["save", "a\nb", "--state", "{}"], 2, "cannot be the name of a thread"),
    "an unknown handoff": (["adopt", "zzzz"], 2, "no handoff begins with 'zzzz'"),
    "a handoff to nobody": (["handoff", "main"], 2, "needs an agent to go to"),
    "nothing to keep": (["prune"], 2, "say how much to keep"),
    "to keep none": (["prune", "--keep", "0"], 2, "--keep needs a whole number from 1 up"),
    "to delete all": (["prune", "--delete", "--yes"], 2, "by their names"),
    "a strange limit": (["list", "main", "--limit", "x"], 2, "--limit needs a whole number"),
    "files without files": (["rollback", "main", "MAIN", "--force", "--yes"], 2, "are about files"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_told_and_nothing_is_lost(cli: Any, what: str) -> None:
    main, other = save(cli, {"x": 1}), save(cli, {"x": 1}, thread="other")
    words, code, said = BAD[what]
    before = cli.ok("thread", "list", "--json").out
    ran = cli("thread", *(w.replace("MAIN", main).replace("OTHER", other) for w in words))
    assert ran.code == code and said in ran.err and "  → " in ran.err, ran
    assert "Traceback" not in ran.err and cli.ok("thread", "list", "--json").out == before
    as_json = cli("thread", *(w.replace("MAIN", main).replace("OTHER", other) for w in words), "--json")
    assert as_json.json["error"]["code"] == code and as_json.json["error"]["hint"]


def test_a_store_of_a_newer_program(three: Any, store_folder: Callable[[], Path]) -> None:
    damage(store_folder(), "PRAGMA user_version=3")
    ran = three("thread", "load", "main")
    assert ran.code == 1 and "newer takeback" in ran.err and "→" in ran.err


def test_a_tail_that_was_cut(three: Any, store_folder: Callable[[], Path]) -> None:
    damage(store_folder(), "DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)")
    ran = three("thread", "verify")
    assert ran.code == 1 and ("row" in ran.out or "row" in ran.err), ran


def test_a_blob_that_is_missing(cli: Any, store_folder: Callable[[], Path]) -> None:
    first = save(cli, {"step": 1})
    (cli.project / "large.json").write_text(json.dumps({"large": os.urandom(400_000).hex()}))
    cli.ok("thread", "save", "main", "large.json")
    packs = sorted(
        p for p in store_folder().rglob("*") if p.is_file() and p.stat().st_size > 300_000 and "pack" in str(p)
    )
    assert packs
    for path in packs:
        path.write_bytes(b"\0" * path.stat().st_size)
    ran = cli("thread", "verify")
    assert ran.code == 1 and "FAIL" in ran.out and "large" in ran.out
    assert cli("thread", "load", "main").code == 1
    assert cli("doctor").code == 1
    cli.ok("thread", "rollback", "main", first, "--yes")
    assert state(cli, "main") == {"step": 1}, "what holds can be gone on from"


# -- beside --------------------------------------------------------------------


def test_status_names_a_few_threads_and_counts_the_rest(cli: Any) -> None:
    with takeback.open(cli.project) as workspace:
        for n in range(9):
            workspace.threads.save(f"user-{n}", {"n": n})
    (told,) = [line for line in cli.ok("status").out.splitlines() if line.startswith("threads: ")]
    assert told.count("state checkpoint") == 4 and told.endswith(" and 5 more (takeback thread list)")
    (told,) = [line for line in cli.ok("status", "--all").out.splitlines() if line.startswith("threads: ")]
    assert told.count("state checkpoint") == 9 and "more" not in told


def test_doctor_status_and_completion_know_threads(three: Any) -> None:
    checks = {c["name"]: c for c in three.ok("doctor", "--json").json["checks"]}
    assert checks["threads"]["ok"] and "1 thread, 3 state checkpoints" in checks["threads"]["detail"]
    assert "threads: main (3 state checkpoints)" in three.ok("status").out
    three.ok("checkpoint", "later")
    assert "threads: main (takeback thread list)" in three.ok().out
    assert three.ok("completion", "--names", "thread").out.startswith("main\tat ")
    names = three.ok("completion", "--names", "thread:main").out.splitlines()
    assert [line.split("\t") for line in names] == [[id[:8], f"step {n}"] for id, n in zip(ids(three), (3, 2, 1))]
    assert "rollback" in three.ok("completion", "bash").out


def test_off_is_off_and_looking_goes_on(three: Any) -> None:
    off = {"TAKEBACK": "off"}
    for words in (
        ["save", "main", "--state", "{}"],
        ["rollback", "main", ids(three)[1], "--yes"],
        ["fork", "main", ids(three)[1], "x"],
    ):
        assert three("thread", *words, env=off).code == 1
    assert three.ok("thread", "resume", "main", "--json", env=off).json["state"]["step"] == 3
    three.ok("thread", "verify", env=off)
    assert len(ids(three)) == 3


def test_names_are_only_names(cli: Any) -> None:
    """Braces, options, bidirectional marks and other scripts."""
    for thread in ("{}", "-x", "a b", "…/../x", "日本", "\u202eevil", "x" * 500):
        first = cli.ok("thread", "save", "--state", '{"x": 1}', "--json", "--", thread).json["checkpoint_id"]
        cli.ok("thread", "fork", "--", thread, first, f"{thread[:400]} fork")
        cli.ok("thread", "save", "--state", '{"x": 2}', "--", thread)
        for verb, more in (("list", []), ("show", []), ("verify", []), ("diff", [first])):
            assert "\u202e" not in cli.ok("thread", verb, "--", thread, *more).out
        cli.ok("thread", "rollback", "--yes", "--", thread, first)
        assert cli.ok("thread", "load", "--", thread).json == {"x": 1}
    assert "\u202e" not in cli.ok("thread", "list").out + cli.ok("status").out + cli.ok("log").out


def test_a_thread_that_was_taken_back_to_before_it_existed_has_no_head(cli) -> None:
    with takeback.open(cli.project) as ws:
        talk = takeback.Conversation(ws, "main")
        with talk.turn("one"):
            (cli.project / "f").write_text("1")
            talk.append({"role": "assistant", "content": "ok"})
        assert "●" in cli.ok("thread", "list", "main").out
        assert talk.undo().done
    shown = cli.ok("thread", "list", "main")
    assert "●" not in shown.out and "○" in shown.out and "takeback thread rollback main " in shown.err
    assert not any(each["head"] for each in cli.ok("thread", "list", "main", "--json").json["checkpoints"])
    again = cli.ok("redo", "--yes")
    assert "take this back: takeback undo --with-state" in again.err, "and that is what it takes"
    assert [each["head"] for each in cli.ok("thread", "list", "main", "--json").json["checkpoints"]].count(True) == 1
    cli.ok("undo", "--with-state", "--yes")
    assert not (cli.project / "f").exists() and "●" not in cli.ok("thread", "list", "main").out


KILLED = """
import os, sys, takeback
from takeback.apply.executor import Executor
ws = takeback.open(sys.argv[1])
plan = ws.plan("thread", "alice", sys.argv[2], with_files=True, own=True)
Executor._conclude = lambda *_: os._exit(9)
ws.apply(plan)
"""


def test_what_a_killed_rollback_left_is_named_with_whose_it_is_when_it_is_finished(cli: Any) -> None:
    """An effect was named by 32 letters, among files, and nothing said whose the others are."""
    ws = takeback.open(cli.project)
    alice, bob = (takeback.Conversation(ws, thread=name) for name in ("alice", "bob"))
    with alice.turn("hello"):
        pass
    target = ids(cli, "alice")[0]
    with alice.turn("write"):
        (cli.project / "alice.txt").write_text("a")
    with bob.turn("charge"):
        (cli.project / "bob.txt").write_text("b")
        charge = ws.record_command("charged bob", argv=["true"])
    (cli.project / "person.txt").write_text("p")
    ws.close()
    done = subprocess.run([sys.executable, "-c", KILLED, str(cli.project), target], check=False)
    assert done.returncode == 9
    ran = cli("resume")
    assert ran.code == 0 and "finished the rollback that was interrupted: took back 1 file: alice.txt" in ran.out, ran
    kept = {line.split("kept ")[1] for line in ran.err.splitlines() if "kept " in line}
    whose = {name.split(" · ")[0] for name in kept}
    assert whose == {
        f"charged bob ({charge.id[:8]}): thread bob did it",
        "bob.txt: thread bob did it",
        "person.txt: a person's",
    }
    assert any(line.endswith(f"take it too: takeback revert {charge.id[:8]}") for line in kept)
    assert charge.id not in ran.out + ran.err
