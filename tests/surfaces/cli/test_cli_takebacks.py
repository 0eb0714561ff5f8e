"""undo, redo, rollback, revert, restore, plan, apply and resume without a terminal."""

from __future__ import annotations

import pytest

from takeback.surfaces.wording.take_backs import Asked


def test_rollback_and_redo_bring_back_every_byte(changed, contents) -> None:
    after = contents()
    ran = changed.ok("rollback", "--yes")
    lines = ran.out.splitlines()
    assert lines[0].startswith("Back to ") and lines[0].endswith('"start" · 3 steps')
    assert lines[1:5] == [
        "  files  ~  src/auth.py +1 −1  exact",
        "  files  +  src/legacy.py      exact (was deleted)",
        "  files  -  src/new.py         exact (created since)",
        "3 exact",
    ]
    assert lines[5].startswith("back at ")
    assert lines[5].endswith('"start": took back 3 files: src/auth.py, src/legacy.py, src/new.py')
    assert ran.err == "take this back: takeback redo\n"
    assert contents()["src/auth.py"] == b"one\ntwo\nthree\n"
    ran = changed.ok("redo", "--yes")
    assert "brought back 3 files" in ran.out
    assert "take this back: takeback rollback " in ran.err
    assert contents() == after


def test_a_second_rollback_says_there_is_nothing_to_take_back(changed) -> None:
    changed.ok("rollback", "--yes")
    ran = changed.ok("rollback", "--yes")
    assert ran.out.startswith("nothing to take back: the tree is as in ")
    assert changed.ok("rollback").out == ran.out, "and without --yes it does not ask for one"


def test_nothing_to_undo_or_redo(cli) -> None:
    assert cli.ok("undo").out == "nothing to undo\n"
    assert cli.ok("redo", "--yes").out == "nothing to redo\n"


@pytest.mark.parametrize(
    "words",
    [["rollback"], ["undo"], ["revert", "src/auth.py"], ["restore", "start", "src/auth.py"]],
)
def test_without_a_terminal_and_yes_the_plan_is_printed_and_nothing_changed(changed, contents, words) -> None:
    before = contents()
    ran = changed(*words)
    assert ran.code == 4
    assert "src/auth.py +1 −1  exact" in ran.out
    assert ran.err.splitlines() == [
        "takeback: nothing was changed: this needs a yes",
        "  → add --yes to do it, or run it on a terminal",
    ]
    assert contents() == before
    shape = changed(*words, "--json")
    assert shape.code == 4
    assert shape.json["error"]["code"] == 4
    assert shape.json["plan"]["steps"][0]["target"] == "src/auth.py"


def test_dry_run_prints_the_plan_and_exits_0(changed, contents) -> None:
    before = contents()
    ran = changed.ok("rollback", "--dry-run")
    assert "3 exact" in ran.out
    assert contents() == before


def test_undo_steps_back_and_redo_forth(cli, contents) -> None:
    states = [contents()]
    for n in range(3):
        (cli.project / "README.md").write_text(f"{n}\n")
        cli.ok("checkpoint", str(n + 100))
        states.append(contents())
    for wanted in (2, 1, 0):
        assert cli.ok("undo", "--yes").out.splitlines()[0] == "Undo the last turn (by hand) · 1 step"
        assert contents() == states[wanted]
    for wanted in (1, 2, 3):
        cli.ok("redo", "--yes")
        assert contents() == states[wanted]
    ran = cli.ok("undo", "2", "--yes")
    assert ran.out.splitlines()[0] == "Undo the last 2 turns (by hand) · 1 step"
    assert contents() == states[1]
    assert cli.ok("redo", "--yes").err == "take this back: takeback undo 2\n"


def test_drift_is_kept_and_named_with_the_command_that_takes_it(drifted, contents) -> None:
    ran = drifted("rollback", "--yes")
    assert ran.code == 3
    assert "  files  !  notes.md  drifted: changed by you since; kept, merges cleanly" in ran.out
    assert "1 exact · 1 drifted" in ran.out
    assert ran.out.splitlines()[-1].startswith(
        "took back 1 file: made.py; kept notes.md, changed by you since; the tree is not wholly at "
    )
    (kept,) = [line for line in ran.err.splitlines() if line.startswith("  kept notes.md")]
    command = kept.partition("take it too: takeback ")[2].partition(",")[0].split()
    assert command[0] == "revert" and command[-1] == "--force"
    assert "takeback revert" in kept and "--merge" in kept
    drifted.ok(*command, "--yes")
    assert contents()["notes.md"] == b"a\nb\nc\nd\ne\n"


def test_quiet_still_says_what_was_kept_and_how_to_take_it(drifted) -> None:
    ran = drifted("rollback", "--yes", "-q")
    assert ran.code == 3 and not ran.out
    assert "kept notes.md" in ran.err and "--force" in ran.err
    assert "take this back" not in ran.err
    assert drifted("redo", "--yes", "-q") == (0, "", "")


@pytest.mark.parametrize("words", [["--dry-run"], []], ids=["plan", "no yes"])
def test_quiet_is_never_silent_where_the_exit_code_is_not_0(drifted, words) -> None:
    for verb in ("undo", "rollback", "redo", "resume", "checkpoint", "verify", "doctor", "status", "diff"):
        ran = drifted(verb, "-q", *(words if verb in ("undo", "rollback", "redo") else []))
        assert ran.code == 0 or ran.out + ran.err, (verb, ran)


def test_peoples_work_is_kept_and_named_where_nobody_is_asked(drifted, contents) -> None:
    drifted.ok("run", "--", "touch", "by-run.txt")
    for words in (["--yes"], ["--yes", "--json"]):
        ran = drifted("rollback", "base", *words)
        assert "by-run.txt" in contents() and contents()["notes.md"] == b"A\nb\nc\nd\nE\n"
    assert ran.json["at_target"] is False
    assert ran.json["plan"]["asks"] == {"people": ["by-run.txt", "notes.md"]}
    plain = drifted("rollback", "base", "--yes")
    assert "the tree is not wholly at" in plain.out and "by-run.txt" in plain.out
    everything = drifted("rollback", "base", "--all", "--yes", "--json").json
    assert everything["at_target"] is True
    assert "by-run.txt" not in contents() and contents()["notes.md"] == b"a\nb\nc\nd\ne\n"


def test_revert_of_a_path_names_whose_lines_stay(drifted, contents) -> None:
    ran = drifted("revert", "notes.md", "--yes")
    assert ran.code == 3 and "kept notes.md, changed by you since" in ran.out
    assert contents()["notes.md"] == b"A\nb\nc\nd\nE\n"
    ran = drifted.ok("revert", "notes.md", "--merge", "--yes")
    assert contents()["notes.md"] == b"a\nb\nc\nd\nE\n"
    again = drifted.ok("revert", "notes.md", "--yes")
    assert "left as it is, people's work: notes.md" in again.err and "takeback restore" in again.err
    assert contents()["notes.md"] == b"a\nb\nc\nd\nE\n"


def test_revert_of_a_folder_names_what_people_did_there_and_the_command_for_it(cli, contents) -> None:
    (cli.project / "src/by_agent.py").write_text("agent\n")
    cli.ok("track", "src/by_agent.py", env={"TAKEBACK_ACTOR": "claude"})
    (cli.project / "src/mine.py").write_text("mine\n")
    (cli.project / "mine.txt").write_text("mine\n")
    ran = cli.ok("revert", "src", "--yes")
    assert "Revert src · 1 step" in ran.out and "left as it is, people's work: src/mine.py; " in ran.out
    assert "src/by_agent.py" not in contents() and "src/mine.py" in contents()
    command = ran.out.partition("take it too: takeback ")[2].partition(";")[0].split()
    cli.ok(*command, "--yes")
    assert "src/mine.py" not in contents() and "mine.txt" in contents()


@pytest.mark.parametrize("yes", [["--dry-run"], ["--yes"], ["--json", "--yes"]])
def test_restore_of_a_folder_names_what_was_not_there_and_the_command_that_takes_it_away(cli, contents, yes) -> None:
    track = cli.ok("track", "src", "--json").json["id"]
    (cli.project / "src/mine.py").write_text("mine\n")
    for point in ("start", track):
        ran = cli.ok("restore", point, "src", *yes)
        if "--json" in yes:
            assert ran.json["left"] == ran.json["plan"]["left"] == ["src/mine.py"]
            continue
        said = ran.out + ran.err
        assert "nothing to take back: what" in said and "these paths are as in" not in said
        assert ", and left as it is: src/mine.py; take it away: takeback restore " in said
        command = said.partition("take it away: takeback ")[2].splitlines()[0].split()
        ran = cli.ok(*command, "--yes")
        assert "src/mine.py" not in contents()
        assert "these paths are as in" in cli.ok("restore", point, "src").out
        cli.ok("redo", "--yes")


def test_track_says_how_to_come_back_and_that_works(cli, contents) -> None:
    ran = cli.ok("track", "README.md")
    command = ran.err.partition("takeback ")[2].split()
    assert command[0] == "restore" and command[1] in ran.out
    point = cli.ok("track", "README.md", "--json").json["id"]
    (cli.project / "README.md").write_text("changed\n")
    cli.ok(*command, "--yes")
    assert contents()["README.md"] == b"hello\n"
    (cli.project / "README.md").write_text("changed by claude\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    cli.ok("revert", point, "--yes")
    assert contents()["README.md"] == b"hello\n"
    assert cli("restore", point, "src/auth.py", "--yes").code == 2
    assert "tracked README.md" in cli.ok("show", point).out


def test_actor_narrows_and_asks_nothing(drifted, contents) -> None:
    drifted.ok("run", "--", "touch", "by-run.txt")
    ran = drifted("rollback", "base", "--actor", "claude", "--yes", "--json")
    assert ran.json["plan"]["asks"] == {} and set(ran.json["left"]) == {"by-run.txt", "notes.md"}
    assert "made.py" not in contents() and "by-run.txt" in contents()


def test_where_all_has_drifted_a_yes_is_not_asked_for(drifted, contents) -> None:
    (drifted.project / "made.py").write_text("by me\n")
    ran = drifted("rollback")
    assert ran.code == 3
    assert "took back nothing; kept made.py, notes.md, changed by you since" in ran.out
    assert ran.err.count("take it too: takeback revert ") == 2
    assert contents()["made.py"] == b"by me\n"


def test_merge_takes_back_only_our_lines(drifted, contents) -> None:
    ran = drifted.ok("undo", "--merge", "--yes")
    assert "merged with what changed since" in ran.out
    assert contents()["notes.md"] == b"a\nb\nc\nd\nE\n"
    drifted.ok("redo", "--yes")
    assert contents()["notes.md"] == b"A\nb\nc\nd\nE\n"


def test_markers_only_when_asked(drifted, contents) -> None:
    (drifted.project / "notes.md").write_text("B\nb\nc\nd\ne\n")
    assert drifted("undo", "--merge", "--yes").code == 3
    assert b"<<<<<<<" not in contents()["notes.md"]
    drifted.ok("redo", "--yes")
    drifted("undo", "--markers", "--yes")
    assert b"<<<<<<<" in contents()["notes.md"]


def test_force_and_all_and_actor(drifted, contents) -> None:
    (drifted.project / "mine.txt").write_text("mine\n")
    ran = drifted("rollback", "--yes", "--actor", "claude")
    assert ran.code == 3
    assert "left as it is, others' work: mine.txt (1 path; take it too with --all)" in ran.out
    assert "mine.txt" in contents()
    drifted.ok("rollback", "--all", "--yes")
    assert "mine.txt" not in contents()
    assert contents()["notes.md"] == b"a\nb\nc\nd\ne\n"


def test_revert_a_path_relative_to_the_current_folder(changed, contents) -> None:
    ran = changed.ok("revert", "auth.py", "--yes", cwd=changed.project / "src")
    assert "took back 1 file: src/auth.py" in ran.out
    assert contents()["src/auth.py"] == b"one\ntwo\nthree\n"
    assert "src/new.py" in contents()


def test_revert_an_effect_and_a_take_back(changed, contents) -> None:
    after = contents()
    changed.ok("checkpoint")
    effect = changed("log", "kind:effect", "--json").json["rows"][0]["id"]
    changed.ok("revert", effect[:8], "--yes")
    assert "src/new.py" not in contents()
    newest = changed("log", "-n", "1", "--json").json["rows"][0]
    assert newest["kind"] == "takeback"
    changed.ok("revert", newest["id"][:8], "--yes")
    assert contents() == after
    assert changed.ok("revert", newest["id"][:8], "--yes").out == "nothing to redo\n", "it is redone already"


def test_a_file_called_like_a_number_is_reverted_by_its_path(cli, contents) -> None:
    (cli.project / "1").write_text("mine\n")
    assert cli("revert", "1", "--yes").code == 2, "1 is the first checkpoint"
    cli.ok("revert", "../1", "--yes", cwd=cli.project / "src")
    assert "1" not in contents()


def test_restore_in_place(changed, contents) -> None:
    ran = changed.ok("restore", "start", "src/legacy.py", "--yes")
    assert ran.out.splitlines()[0].startswith("Restore from ")
    assert "restored 1 file: src/legacy.py" in ran.out
    assert contents()["src/legacy.py"] == b"old\n"
    assert contents()["src/auth.py"] == b"one\n2\nthree\n"
    changed.ok("redo", "--yes")
    assert "src/legacy.py" not in contents()


def test_restore_to_another_folder(changed, contents, tmp_path) -> None:
    before = contents()
    out = tmp_path / "deep/er"
    ran = changed.ok("restore", "start", "auth.py", "--to", str(out), cwd=changed.project / "src")
    assert ran.out.startswith(f"wrote 2 paths into {out}: src, src/auth.py")
    assert (out / "src/auth.py").read_text() == "one\ntwo\nthree\n"
    assert contents() == before
    (out / "src/auth.py").write_text("other")
    ran = changed("restore", "start", "src/auth.py", "--to", str(out))
    assert ran.code == 3
    assert "kept src/auth.py, which is there already; replace it with --force" in ran.err
    assert changed("restore", "start", "src/auth.py", "--to", str(out), "--force").code == 0


def test_take_backs_as_json(changed) -> None:
    found = changed("rollback", "--yes", "--json").json
    assert found["counts"] == {"done": 3, "kept": 0, "failed": 0}
    assert {"target", "verdict", "result"} <= found["results"][0].keys()
    step = found["plan"]["steps"][0]
    assert {"domain", "target", "verdict", "summary", "effect"} <= step.keys()
    assert (step["domain"], step["target"], step["summary"]) == (
        "files",
        "src/auth.py",
        "change back src/auth.py",
    )
    assert changed("show", step["effect"], "--json").json["kind"] == "effect"


def test_many_steps_fit_a_screen(cli) -> None:
    for n in range(300):
        (cli.project / f"f{n:03}").write_text("x")
    ran = cli.ok("rollback", "--yes")
    assert len(ran.out.splitlines()) < 40
    assert "… and 276 more (see all: --all-steps or takeback diff)" in ran.out
    assert "took back 300 files: f000, f001, f002, …" in ran.out
    cli.ok("redo", "--yes")
    assert len(cli.ok("rollback", "--dry-run", "--all-steps").out.splitlines()) > 300


# -- plan and apply ----------------------------------------------------------


@pytest.mark.parametrize("verb", [["rollback"], ["undo"], ["revert", "src"], ["restore", "start", "src"]])
def test_a_saved_plan_is_applied_exactly(changed, contents, verb: list[str]) -> None:
    ran = changed.ok("plan", *verb)
    id = next(line.split()[1] for line in ran.out.splitlines() if line.startswith("plan "))
    assert ran.err == f"do exactly this: takeback apply {id[:8]}\n"
    ran = changed.ok("apply", id[:8])
    assert "take this back: takeback redo" in ran.err
    assert contents()["src/auth.py"] == b"one\ntwo\nthree\n"


def test_a_stale_plan_is_refused_and_shows_what_differs(changed, contents) -> None:
    id = changed("plan", "rollback", "--json").json["plan"]["id"]
    (changed.project / "src/auth.py").write_text("more\n")
    before = contents()
    for words in (["apply", id, "--yes"], ["apply", id]):
        ran = changed(*words)
        assert ran.code == 4
        assert "takeback: the plan is stale" in ran.err
        assert "    src/auth.py: exact:" in ran.err
    assert contents() == before
    assert changed("apply", id, "--yes", "--json").json["error"]["differing"][0]["target"] == "src/auth.py"


def test_undo_steps_over_work_that_left_no_trace(cli, contents) -> None:
    (cli.project / "README.md").write_text("one\n")
    cli.ok("checkpoint")
    (cli.project / "brief").write_text("x")
    cli.ok("track", "brief")
    (cli.project / "brief").unlink()
    assert "  files  =  brief  exact (already as it was)" in cli.ok("undo", "--yes").out
    cli.ok("undo", "--yes")
    assert contents()["README.md"] == b"hello\n"


def test_a_plan_knows_its_verbs(cli) -> None:
    assert cli("plan").code == 2
    ran = cli("plan", "checkpoint")
    assert ran.code == 2
    assert "plan one of: undo, redo, rollback, revert, restore" in ran.err


# -- after an interruption ---------------------------------------------------


@pytest.mark.parametrize("words", [["status"], ["log"], ["diff"], ["show", "1"], ["verify"]])
def test_every_verb_says_that_a_take_back_was_interrupted(interrupted, words) -> None:
    ran = interrupted(*words)
    assert "takeback: a rollback was interrupted; the tree may be in between" in ran.err
    assert "takeback resume, or go back with takeback resume --abort" in ran.err


def test_while_one_is_under_way_its_tree_is_said_to_be_in_between(under_way) -> None:
    ran = under_way.ok("status")
    assert "takeback: a rollback is under way in another process; the tree is in between until that ends" in ran.err
    assert "next: wait" in ran.err and "interrupted" not in ran.err
    told = under_way("status", "--json").json
    assert (told["interrupted"], told["under_way"]) == ("", "a rollback is under way in another process")
    (check,) = [c for c in under_way("doctor", "--json").json["checks"] if c["name"] == "take-backs"]
    assert (check["ok"], check["detail"]) == (True, "a rollback is under way in another process")


@pytest.mark.parametrize(
    "words",
    [
        ["undo"],
        ["redo"],
        ["rollback"],
        ["revert", "README.md"],
        ["restore", "start", "src"],
        ["undo", "--yes"],
    ],
)
def test_take_backs_finish_the_interrupted_one_and_do_nothing_more(interrupted, contents, words) -> None:
    ran = interrupted(*words)
    assert ran.code == 0
    assert ran.out.startswith("finished the rollback that was interrupted: took back 3 files")
    assert "nothing more was done" in ran.err
    assert contents() == {
        "README.md": b"hello\n", "src/auth.py": b"one\ntwo\nthree\n", "src/legacy.py": b"old\n",
    }  # fmt: skip


def test_log_and_show_say_that_it_was_interrupted_and_nothing_else(interrupted) -> None:
    line = next(line for line in interrupted.ok("log").out.splitlines() if "rollback" in line)
    assert line.endswith('"start": interrupted (takeback resume finishes it)')
    row = next(row for row in interrupted("log", "--json").json["rows"] if row["kind"] == "takeback")
    assert row["live"] is True and row["state"] == "live"
    assert "interrupted (takeback resume finishes it)" in interrupted.ok("show", row["id"]).out
    interrupted.ok("resume")
    assert "interrupted" not in interrupted.ok("log").out


def test_resume_finishes(interrupted, contents) -> None:
    ran = interrupted.ok("resume")
    assert "finished the rollback that was interrupted" in ran.out
    assert contents()["src/legacy.py"] == b"old\n"
    assert interrupted.ok("resume").out == "nothing was interrupted\n"


def test_resume_abort_goes_back(interrupted, contents) -> None:
    ran = interrupted.ok("resume", "--abort")
    assert ran.out == "went back from the interrupted rollback: the tree is as before it\n"
    assert contents() == {"README.md": b"hello\n", "src/auth.py": b"one\n2\nthree\n", "src/new.py": b"new\n"}
    assert interrupted("resume", "--json").json == {"resumed": False, "aborted": False}


def test_what_was_gone_back_from_is_in_the_log_and_in_show(interrupted) -> None:
    interrupted.ok("resume", "--abort")
    row = next(row for row in interrupted.ok("log", "--json").json["rows"] if row["kind"] == "takeback")
    assert (row["live"], row["redone"]) == (False, "interrupted, and gone back from")
    assert set(row["paths"]) == {"src/auth.py", "src/legacy.py", "src/new.py"}
    (line,) = (line for line in interrupted.ok("log").out.splitlines() if "↩" in line)
    assert '"start": put back as before it: src/auth.py, src/legacy.py, src/new.py · interrupted' in line
    shown = interrupted.ok("show", row["id"][:8])
    assert "begun    src/legacy.py, put back as it was" in shown.out and "resume --abort" in shown.out
    told = interrupted.ok("show", row["id"], "--json").json["gone_back_from"]
    assert set(told["begun"]) == set(row["paths"]) and told["not_put_back"] == [] and told["at"]
    interrupted.ok("report"), interrupted.ok("checkpoint", "later"), interrupted.ok("rollback", "--yes", "start")
    assert len([row for row in interrupted.ok("log", "--json").json["rows"] if row["kind"] == "takeback"]) == 2


def test_what_could_not_be_put_back_is_named_there(interrupted) -> None:
    (interrupted.project / "src/auth.py").write_text("somebody's since\n")
    assert interrupted("resume", "--abort").code in (0, 3)
    row = next(row for row in interrupted.ok("log", "--json").json["rows"] if row["kind"] == "takeback")
    assert "not put back: src/auth.py" in row["summary"]
    assert "begun    src/auth.py, not put back: " in interrupted.ok("show", row["id"]).out


@pytest.mark.parametrize("words", [["checkpoint"], ["track", "README.md"]])
def test_what_would_look_at_a_tree_in_between_is_refused(interrupted, words) -> None:
    ran = interrupted(*words)
    assert ran.code == 1
    assert "finish it with takeback resume" in ran.err


# -- after Ctrl-C ------------------------------------------------------------

BETWEEN = {
    "README.md": b"hello\n",
    "src/auth.py": b"one\n2\nthree\n",
    "src/legacy.py": b"old\n",
    "src/new.py": b"new\n",
}
BEFORE = {"README.md": b"hello\n", "src/auth.py": b"one\n2\nthree\n", "src/new.py": b"new\n"}
DONE = {"README.md": b"hello\n", "src/auth.py": b"one\ntwo\nthree\n", "src/legacy.py": b"old\n"}


def test_ctrl_c_says_how_to_go_on(stopped) -> None:
    assert "takeback: a rollback was interrupted by Ctrl-C; the tree may be in between" in stopped.said_when_stopped
    assert "takeback resume, or go back with takeback resume --abort" in stopped.said_when_stopped


@pytest.mark.parametrize(
    "words",
    [
        ["undo"],
        ["undo", "--yes"],
        ["undo", "--yes", "--json"],
        ["redo", "--yes"],
        ["rollback", "--yes"],
        ["rollback", "start", "--yes"],
        ["revert", "src/new.py", "--yes"],
        ["restore", "start", "src", "--yes"],
    ],
)
def test_what_a_person_stopped_is_finished_by_no_other_verb(stopped, contents, words) -> None:
    between = contents()
    assert between not in (BEFORE, DONE)
    ran = stopped(*words)
    assert ran.code == 4
    assert "takeback: nothing was changed: a rollback was interrupted by Ctrl-C" in ran.err
    assert "takeback resume" in ran.err and "takeback resume --abort" in ran.err
    assert contents() == between
    if "--json" in words:
        assert ran.json["error"]["code"] == 4
    assert stopped("status", "--json").json["stopped"] is True


@pytest.mark.parametrize("verb", ["undo", "redo", "rollback", "revert src/new.py"])
def test_a_person_is_asked_whether_to_finish_it_or_to_go_back(stopped, contents, verb) -> None:
    between = contents()
    left = stopped.typing(*verb.split(), answers=[("[r resume/a abort/N]", "\n")])
    assert left.code == 4 and "nothing was changed" in left.out and contents() == between
    ran = stopped.typing(*verb.split(), answers=[("[r resume/a abort/N]", "r\n")])
    assert ran.code == 0 and "finished the rollback that was interrupted: took back 3 files" in ran.out
    assert "nothing more was done; run the command again for what you asked" in ran.out
    assert contents() == DONE


def test_a_person_goes_back_from_what_they_stopped(stopped, contents) -> None:
    ran = stopped.typing("undo", answers=[("it was to do 3 steps: src/", ""), ("[r resume/a abort/N]", "a\n")])
    assert ran.code == 0 and "went back from the interrupted rollback: the tree is as before it" in ran.out
    assert contents() == BEFORE
    assert not stopped("status", "--json").json["stopped"]


def test_at_a_terminal_a_killed_one_is_asked_about_too(interrupted, contents) -> None:
    ran = interrupted.typing("undo", answers=[("[r resume/a abort/N]", "a\n")])
    assert ran.code == 0 and contents() == BEFORE
    assert interrupted("status", "--json").json["stopped"] is False


def test_an_agent_does_not_settle_what_a_person_stopped(stopped, contents) -> None:
    between = contents()
    for words in (["resume"], ["resume", "--abort"]):
        ran = stopped(*words, env={"CLAUDECODE": "1"})
        assert ran.code == 4 and "is for a person" in ran.err and contents() == between


def test_what_was_settled_stops_nobody(stopped, contents) -> None:
    stopped.ok("resume", "--abort")
    assert contents() == BEFORE
    stopped.ok("rollback", "--yes")
    assert contents() == DONE, "what was stopped once and settled stops nobody"


def test_files_and_folders_are_counted_apart(cli) -> None:
    for n in range(2):
        (cli.project / f"d{n}").mkdir()
        (cli.project / f"d{n}/f").write_text("x\n")
    assert "took back 2 files and 2 folders: d0, d0/f, d1, …" in cli.ok("rollback", "--yes").out
    assert "brought back 2 files and 2 folders: " in cli.ok("redo", "--yes").out
    (cli.project / "empty").mkdir()
    assert "took back 1 folder: empty" in cli.ok("revert", "empty", "--yes").out


def test_undo_of_more_turns_than_there_are_says_so(cli, contents) -> None:
    first = contents()
    for n in range(3):
        (cli.project / "README.md").write_text(f"{n}\n")
        cli.ok("checkpoint", str(n + 100))
    ran = cli.ok("undo", "100", "--yes")
    assert ran.out.splitlines()[0] == "Undo the last 3 turns (by hand) · 1 step"
    assert "there are only 3 turns to undo" in ran.err
    assert contents() == first
    assert "there is only 1 take-back to redo" in cli.ok("redo", "2", "--yes").err
    assert "only" not in cli.ok("undo", "3", "--yes").err


def test_resume_names_what_was_kept_with_the_command_that_takes_it(drifted, contents, killed_rollback) -> None:
    killed_rollback(drifted)
    ran = drifted.ok("resume")
    (kept,) = [line for line in ran.err.splitlines() if line.startswith("  kept notes.md")]
    command = kept.partition("take it too: takeback ")[2].partition(",")[0].split()
    assert command[0] == "revert" and command[-1] == "--force"
    drifted.ok(*command, "--yes")
    assert contents()["notes.md"] == b"a\nb\nc\nd\ne\n"


def test_restore_refuses_the_store_as_its_place(changed, store_folder) -> None:
    ran = changed("restore", "start", ".", "--to", str(store_folder() / "out"))
    assert ran.code == 2
    assert "takeback's own store" in ran.err and "→ name a folder elsewhere" in ran.err


def test_the_command_for_the_files_alone_names_no_other_domain() -> None:
    wanted = Asked("undo", (2,), only=("files", "http"), without=("git",), state=True)
    assert wanted.inside == "take back the files alone: takeback undo 2 --only files"
