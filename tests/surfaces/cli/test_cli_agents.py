"""What agents did, as the command line shows it: turns, calls, whose lines, and what undo says of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import takeback
from scene import Scene
from takeback.journal.brackets import Call, Caller
from takeback.model.effects import UNCOVERED
from takeback.model.outside import NewAct
from takeback.show import report, report_span
from takeback.show.timeline import Timeline
from takeback.system import processes

CLAUDE = Caller("claude", "session-one")
CODEX = Caller("codex", "session-two", one_at_a_time=True)


def bash(key: str, command: str) -> Call:
    return Call(key, "Bash", f"Bash: {command}")


def write(key: str, path: str) -> Call:
    return Call(key, "Write", f"Write {path}", (path.encode(),), scans=False)


@pytest.fixture
def worked(cli):
    """claude was asked for a login form and made two calls, with a person's edit in between."""
    with takeback.open(cli.project) as ws:
        ws.begin_turn(CLAUDE, "add a login form")
        ws.begin_call(CLAUDE, write("1", "src/form.html"))
        (cli.project / "src/form.html").write_text("<form>\n</form>\n")
        ws.end_call(CLAUDE, write("1", "src/form.html"))
        (cli.project / "notes.txt").write_text("mine\n")
        ws.begin_call(CLAUDE, bash("2", "make"))
        (cli.project / "src/auth.py").write_text("one\n2\nthree\n")
        (cli.project / "src/legacy.py").unlink()
        ws.end_call(CLAUDE, bash("2", "make"), failed=True)
    return cli


def rows(cli, *words):
    return cli("log", *words, "--json").json["rows"]


def one(cli, name: str, actor: str = "claude") -> str:
    """The id of the newest turn or call of an agent."""
    return next(row[name] for row in rows(cli, f"actor:{actor}", "kind:effect") if row[name])


def test_log_has_a_heading_per_turn_with_prompt_calls_and_totals(worked):
    heading, *lines = worked.ok("log").out.splitlines()
    assert heading.startswith("◆  " + one(worked, "turn")[:8])
    assert "claude · " in heading and "· “add a login form” · 2 calls · 3 files +3 −2" in heading
    assert [line[:5].strip() for line in lines] == ["~", "~", "~", "●", "●  1"]
    assert "claude        Bash: make · 2 files" in lines[0]
    assert "unattributed  1 new: notes.txt" in lines[1]  # between its calls, and not its work
    assert "claude        Write src/form.html" in lines[2]
    assert '"start"' in lines[4]


def test_log_rows_name_turn_session_call_and_prompt(worked):
    bash_row, mine, write_row, checkpoint, start = rows(worked)
    assert bash_row["turn"] == write_row["turn"] == checkpoint["turn"] and bash_row["turn"]
    assert bash_row["session"] == "session-one" and bash_row["prompt"] == "add a login form"
    assert bash_row["call"] and bash_row["call"] != write_row["call"]
    assert (mine["turn"], mine["call"], mine["session"], mine["prompt"], mine["actor"]) == (None, None, None, "", "")
    assert start["turn"] is None


def test_filters_by_turn_session_and_call(worked):
    turn, call = one(worked, "turn"), one(worked, "call")
    assert len(rows(worked, f"turn:{turn[:6]}", "kind:effect")) == 2
    assert len(rows(worked, "session:session-o", "kind:effect")) == 2
    assert [r["summary"] for r in rows(worked, f"call:{call[:6]}")] == ["Bash: make · 2 files"]
    assert len(rows(worked, f"-turn:{turn[:6]}", "kind:effect")) == 1


def test_work_that_two_turns_share_stands_outside_of_both_and_says_so(worked):
    with takeback.open(worked.project) as ws:
        ws.begin_turn(CODEX, "at the same time")
        ws.begin_call(CLAUDE, bash("3", "a"))
        ws.begin_call(CODEX, bash("4", "b"))
        (worked.project / "whose").write_text("?")
        ws.end_call(CLAUDE, bash("3", "a"))
        ws.end_call(CODEX, bash("4", "b"))
    shared = rows(worked, "kind:effect")[0]
    assert (shared["turn"], len(shared["turns"]), len(shared["calls"])) == (None, 2, 2)
    line = next(line for line in worked.ok("log").out.splitlines() if "whose" in line)
    assert "claude, codex" in line and line.endswith("shared") and not line.startswith(" ")
    assert "shared   by 2 turns" in worked.ok("show", shared["id"]).out
    heads = [line for line in worked.ok("log").out.splitlines() if line.startswith("◆")]
    assert len(heads) == 2 and all("1 shared" in line for line in heads)
    for turn in shared["turns"]:
        assert "shared   whose: others were at work at the same time" in worked.ok("show", turn).out


@pytest.mark.parametrize("verb", ["undo", "revert"])
def test_a_take_back_of_one_turn_keeps_shared_work_and_names_the_command_that_takes_it(worked, verb):
    with takeback.open(worked.project) as ws:
        ws.begin_turn(CODEX, "at the same time")
        ws.begin_call(CLAUDE, bash("3", "a"))
        ws.begin_call(CODEX, bash("4", "b"))
        (worked.project / "whose").write_text("?")
        ws.end_call(CLAUDE, bash("3", "a"))
        ws.end_call(CODEX, bash("4", "b"))
        codexs = next(asked.id for turn, asked in ws.history().agent_turns.items() if turn.actor == "codex")
    shared = rows(worked, "kind:effect")[0]
    told = "left as it is, shared work: whose (claude was at work at the same time); take it too: takeback revert "
    assert told + shared["id"][:8] in worked.ok(verb, codexs, "--dry-run").err
    ran = worked.ok(verb, codexs, "--yes")
    assert "all of it is taken back" not in ran.out and told + shared["id"][:8] in ran.err
    assert (worked.project / "whose").exists()
    worked.ok("revert", shared["id"][:8], "--yes")
    assert not (worked.project / "whose").exists()


def test_after_a_redo_a_revert_of_a_turn_is_named_by_the_turn(worked):
    turn = one(worked, "turn")
    worked.ok("revert", turn, "--yes")
    ran = worked.ok("redo", "--yes")
    assert f"take this back: takeback revert {turn[:8]}" in (ran.out + ran.err).splitlines()[-1]


def test_show_has_a_turn_with_its_calls(worked):
    out = worked.ok("show", one(worked, "turn")[:8], "--stat").out
    assert "turn" in out.splitlines()[0]
    assert "prompt   “add a login form”" in out and "session  session-one" in out
    assert "Write src/form.html · 1 file" in out and "Bash: make · 2 files" in out and "failed" in out
    assert "src/legacy.py" in out and "notes.txt" not in out
    shape = worked("show", one(worked, "turn"), "--json").json
    assert (shape["kind"], shape["number"], shape["asked"]["calls"]) == ("turn", None, 2)
    assert [call["state"] for call in shape["made"]] == ["done", "failed"]
    assert {f["path"] for f in shape["files"]} == {"src/form.html", "src/auth.py", "src/legacy.py"}


def test_show_has_a_turn_with_the_calls_that_were_refused_in_it(worked):
    from takeback.journal.journal import New

    said = {"agent": "claude", "fingerprint": "f", "kind": "push", "summary": "git push", "why": "x"}
    with takeback.open(worked.project) as ws:
        turn = list(ws.history().agent_turns.values())[-1]
        body = {"what": "refused", **said, "agent": turn.caller.agent, "session": turn.caller.session}
        others = {**body, "session": "another"}
        ws.store.journal.append([New("note", "k" * 32, body), New("note", "l" * 32, others)], ws.clock())
    assert "  gate     kkkkkkkk refused: git push" in (out := worked.ok("show", turn.id, "--stat").out)
    assert "llllllll" not in out
    assert [row["id"] for row in worked("show", turn.id, "--json").json["refused"]] == ["k" * 32]


def test_show_has_a_call_with_its_tool_and_changes_and_an_effect_with_its_call(worked):
    call = one(worked, "call")
    out = worked.ok("show", call[:8]).out
    assert "tool     Bash" in out and "did      Bash: make · failed" in out and "-two" in out
    effect = rows(worked, f"call:{call}")[0]
    out = worked.ok("show", effect["id"]).out
    assert f"call     {call[:8]} Bash: make" in out and "“add a login form”" in out


def test_show_has_what_a_call_did_outside_the_files(worked):
    with takeback.open(worked.project) as ws:
        pushed = NewAct("command", "git push origin main", "git push", None, "irreversible", {"left_to_do": "by hand"})
        ws.begin_call(CLAUDE, bash("7", "git push")._replace(acts=(pushed,)))
        ws.end_call(CLAUDE, bash("7", "git push"))
    turn = one(worked, "turn")
    assert "outside" in worked.ok("show", turn).out and "git push origin main" in worked.ok("show", turn).out
    assert "1 outside the files" in worked.ok("log").out.splitlines()[0]


def test_a_call_that_was_cut_off_is_marked(worked):
    with takeback.open(worked.project) as ws:
        ws.begin_call(CODEX, bash("1", "first"))
        (worked.project / "first").write_text("x")
        ws.begin_call(CODEX, bash("2", "second"))
    assert "Bash: first · 1 file · uncertain" in worked.ok("log").out
    assert "cut off" in worked.ok("show", one(worked, "call", "codex")).out


def test_status_says_whose_turns_and_who_is_at_work_and_leaves_no_trace(worked):
    with takeback.open(worked.project) as ws:
        ws.begin_call(CLAUDE, bash("9", "npm test"))
        head = ws.store.journal.head()
        out = worked.ok("status").out
        assert "by claude “add a login form”" in out and "3 paths" in out
        assert "claude is in Bash: npm test" in out
        found = worked("status", "--json").json
        assert found["at_work"][0]["summary"] == "Bash: npm test" and found["turns"][0]["agent"] == "claude"
        by = {c["path"]: (c["actor"], len(c.get("turns", ()))) for c in found["changes"]}
        assert by["src/auth.py"] == ("claude", 1) and by["notes.txt"] == ("", 0)
        assert ws.store.journal.head() == head


def test_status_tells_a_call_whose_process_is_gone(cli):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    gone = Caller("claude", "s", "", process.pid, processes.started(process.pid))
    with takeback.open(cli.project) as ws:
        ws.begin_call(gone, bash("1", "sleep 9"))
    process.communicate(b"\n")
    assert "claude was cut off in Bash: sleep 9" in cli.ok("status").out


def test_undo_names_the_turn_keeps_a_persons_work_and_says_how_the_agent_forgets(worked):
    done = worked.ok("undo", "--yes")
    assert "Undo the last turn (claude “add a login form”)" in done.out
    assert "took back claude's turn “add a login form”: 3 files: " in done.out
    assert "in Claude Code: press Esc twice" in done.err
    assert (worked.project / "notes.txt").exists() and not (worked.project / "src/form.html").exists()
    assert "“add a login form”" in worked.ok("log").out and "taken back" in worked.ok("log").out
    assert re.search(r"^Redo undo [k-z]{8} \(claude “add a login form”\) · ", worked.ok("redo", "--dry-run").out)
    done = worked.ok("redo", "--yes")
    assert "brought back claude's turn “add a login form”: 3 files" in done.out and "Esc" not in done.err


def test_undo_of_an_earlier_turn_says_which_and_that_later_ones_stay(cli):
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        scene.turn("first thing", one_txt="1\n")
        scene.turn("second thing", two_txt="2\n")
        scene.turn("a third one", three_txt="3\n")
        first = next(t.id for t in ws.history().agent_turns.values() if t.prompt == "first thing")
    for more in (["--dry-run"], ["--yes"]):
        out = cli.ok("undo", "first thing", *more).out
        assert out.startswith(f"Undo the turn {first[:8]}, later ones stay (claude “first thing”) · 1 step")
    assert cli.ok("undo", "--dry-run").out.startswith("Undo the last turn (claude “a third one”) · 1 step")
    assert cli.ok("undo", "2", "--yes").out.startswith(
        "Undo the last 2 turns (claude “a third one”, claude “second thing”) · 2 steps"
    )
    cli.ok("redo", "--yes")
    assert cli.ok("undo", "third one", "--yes").out.startswith("Undo the last turn (claude “a third one”) · 1 step")


def test_undo_of_a_turn_that_is_taken_back_already_says_so(cli):
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        scene.turn("first thing", one_txt="1\n")
        scene.turn("second thing", two_txt="2\n")
        scene.turn("only talk")
    for again in range(3):
        ran = cli.ok("undo", "first thing", "--yes")
        assert (ran.out == "nothing to undo: all of it is taken back already\n") is bool(again)
    assert cli.ok("undo", "only talk", "--yes").out == "stepped over work that left no trace\n"
    assert (cli.project / "two.txt").exists() and not (cli.project / "one.txt").exists()
    assert cli.ok("redo", "--yes").out.startswith("Redo undo ") and (cli.project / "one.txt").exists()


def test_the_last_turn_of_one_agent_is_not_the_last_one(cli):
    with takeback.open(cli.project) as ws:
        scene = Scene(ws)
        scene.turn("for claude", one_txt="1\n")
        scene.turn("for codex", CODEX, two_txt="2\n")
    out = cli.ok("undo", "--actor", "claude", "--dry-run").out
    assert "Undo the turn " in out and "later ones stay (claude “for claude”)" in out


def test_undo_as_json_has_the_turns(worked):
    found = worked("undo", "--yes", "--json").json
    assert [(t["agent"], t["prompt"]) for t in found["turns"]] == [("claude", "add a login form")]
    assert "Claude Code" in found["turns"][0]["forget"]


def test_what_cannot_be_taken_back_is_named_once_with_its_reason(worked):
    why = "it lies outside the workspace, where nothing is captured"
    act = NewAct("note", "Write /etc/motd", "/etc/motd", None, UNCOVERED, {"left_to_do": why})
    with takeback.open(worked.project) as ws:
        ws.begin_call(CLAUDE, bash("3", "motd")._replace(acts=(act,)))
        ws.end_call(CLAUDE, bash("3", "motd"))
    shown = worked("undo").out
    assert re.search(r"by claude, just now, in call [k-z]{8}\b", shown), shown
    done = worked("undo", "--yes")
    said = f"{done.out}{done.err}".partition("took back")[2]
    assert "kept Write /etc/motd" in done.out and said.count(why) == 1


def test_what_is_left_as_an_agents_own_is_not_called_others_work(worked):
    with takeback.open(worked.project) as ws:
        ws.begin_call(CLAUDE, bash("5", "configure"))
        (worked.project / ".claude").mkdir()
        (worked.project / ".claude/settings.local.json").write_text("{}")
        (worked.project / "x").write_text("x")
        ws.end_call(CLAUDE, bash("5", "configure"))
    done = worked.ok("undo", "--yes")
    assert "left alone: .claude, .claude/settings.local.json (an agent's own; name them to take them back)" in done.out
    assert "others' work" not in done.out
    assert not (worked.project / "x").exists() and (worked.project / ".claude/settings.local.json").exists()
    worked.ok("redo", "--yes")
    found = worked("undo", "--yes", "--json").json
    assert found["own"] == [".claude", ".claude/settings.local.json"] and found["left"] == []
    worked.ok("revert", ".claude/settings.local.json", "--yes")
    assert not (worked.project / ".claude/settings.local.json").exists()


def test_changes_between_an_agents_calls_are_listed_and_never_undone(worked):
    worked.ok("undo", "--yes")
    assert "nothing to undo" in worked.ok("undo", "--yes").out
    assert (worked.project / "notes.txt").exists()
    assert worked.ok("rollback", "start", "--all", "--yes")
    assert not (worked.project / "notes.txt").exists()


ASKING = """
import os, subprocess, sys
import takeback
from takeback.system import processes as ancestry
from takeback.journal.brackets import Call, Caller

# An agent: it has done something, is asked to undo it, and runs takeback in a shell of its own.
me = Caller("claude", "s", "", os.getpid(), ancestry.started(os.getpid()))
with takeback.open(sys.argv[1]) as ws:
    for prompt, path in (("make it", "made"), ("/undo", "asking")):
        ws.begin_turn(me, prompt)
        call = Call(prompt, "Bash", "Bash: it")
        ws.begin_call(me, call)
        open(os.path.join(sys.argv[1], path), "w").close()
        if prompt != "/undo":
            ws.end_call(me, call)
done = subprocess.run(["sh", "-c", sys.executable + " -m takeback undo --yes"], cwd=sys.argv[1])
with takeback.open(sys.argv[1]) as ws:
    ws.end_call(me, call)
sys.exit(done.returncode)
"""


def test_an_agent_that_runs_undo_in_its_shell_keeps_the_turn_that_asks(cli):
    done = subprocess.run(
        [sys.executable, "-c", ASKING, str(cli.project)], env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert "claude's turn “make it”" in done.stdout
    assert not (cli.project / "made").exists() and (cli.project / "asking").exists()
    assert {(row["prompt"], *row["paths"]) for row in rows(cli, "kind:effect")} == {
        ("make it", "made"), ("/undo", "asking"),
    }  # fmt: skip


def rolled_back_by_claude(cli) -> None:
    """A person's file is there, and a command in a call of Claude's takes all back."""
    (cli.project / "mine").write_text("a person's\n")
    done = subprocess.run(
        [sys.executable, "-c", ASKING.replace("undo --yes", "rollback start --all --yes"), str(cli.project)],
        env=os.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done


def test_a_take_back_that_an_agent_asks_for_is_told_as_its_own(cli):
    rolled_back_by_claude(cli)
    assert not (cli.project / "mine").exists()
    (row,) = rows(cli, "kind:takeback", "actor:claude")
    (turn,) = {each["turn"] for each in rows(cli, "/undo", "kind:checkpoint")}
    assert (row["actor"], row["turn"], row["prompt"]) == ("claude", turn, "/undo") and row["call"]
    assert not rows(cli, "kind:takeback", "-actor:claude") and rows(cli, "kind:takeback", f"call:{row['call'][:8]}")
    told = cli.ok("show", row["id"], "--stat").out
    assert (
        "actor    claude" in told and f"turn     {turn[:8]} “/undo”" in told and f"call     {row['call'][:8]}" in told
    )
    told = cli.ok("show", turn, "--stat").out
    assert f"asked    for {row['id'][:8]} rollback to " in told
    assert f"asked    for {row['id'][:8]}" in cli.ok("show", row["call"], "--stat").out
    shown = cli.ok("show", turn, "--json").json
    assert shown["asked"]["takebacks"] == [row["id"]] == [each["id"] for each in shown["asked_for"]]
    line = next(line for line in cli.ok("log").out.splitlines() if "“/undo”" in line and "◆" in line)
    assert "1 take-back" in line and "no file changed" not in line
    report = cli.ok("report", "start").out
    assert f"asked for by `claude`, in turn `{turn[:8]}`" in report


def test_a_take_back_that_an_agent_asked_for_is_redone_as_any_other(cli):
    rolled_back_by_claude(cli)
    cli.ok("redo", "--yes")
    assert (cli.project / "mine").exists() and (cli.project / "made").exists()
    (redo, *_) = rows(cli, "kind:takeback")
    assert (redo["actor"], redo["turn"]) == ("", None)


@pytest.mark.parametrize("first", [(), ("revert", "a.txt", "--merge", "--yes")])
def test_what_a_merge_took_back_is_not_named_for_the_line_that_is_a_persons(cli, first):
    (cli.project / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    with takeback.open(cli.project) as ws:
        ws.checkpoint("now")
        ws.begin_turn(CLAUDE, "t1")
        ws.begin_call(CLAUDE, bash("1", "sed"))
        (cli.project / "a.txt").write_text("one\ntwo\nthree\nFOUR\nfive\n")
        (cli.project / "new.txt").write_text("new\n")
        ws.end_call(CLAUDE, bash("1", "sed"))
    (cli.project / "a.txt").write_text("MINE\ntwo\nthree\nFOUR\nfive\n")
    if first:
        cli.ok(*first)
        changes = {c["path"]: c for c in cli.ok("status", "--json").json["changes"]}
        assert (changes["a.txt"]["actor"], changes["new.txt"]["actor"]) == ("", "claude")
    cli.ok("undo", "--merge", "--yes")
    assert (cli.project / "a.txt").read_text() == "MINE\ntwo\nthree\nfour\nfive\n"
    found = cli.ok("status", "--json").json
    assert found["changes"] == [{"path": "a.txt", "change": "modified", "actor": ""}] and not found["turns"]
    restored = cli.ok("restore", "now", "a.txt", "--yes")
    assert "remembers" not in restored.out + restored.err  # only the person's line was taken
    cli.ok("redo", "--yes")
    cli.ok("redo", "--merge", "--yes")
    again = {c["path"]: c["actor"] for c in cli.ok("status", "--json").json["changes"]}
    assert again == (
        {"a.txt": "claude, unattributed", "new.txt": "claude"} if not first else {"a.txt": "", "new.txt": "claude"}
    )


def test_an_undo_that_a_person_types_in_the_agents_window_takes_its_last_turn(cli):
    """`!takeback undo`, or a command that an agent runs before it begins a turn: nothing asks but the person."""
    typed = ASKING.replace('if prompt != "/undo":', "if True:")
    done = subprocess.run(
        [sys.executable, "-c", typed, str(cli.project)], env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert (cli.project / "made").exists() and not (cli.project / "asking").exists()
    (row,) = rows(cli, "kind:takeback")
    assert (row["actor"], row["turn"], row["call"]) == ("", None, None)


def test_a_narrow_log_fits_and_keeps_its_ends(cli):
    long = "a long prompt that says a good deal more than fits on a line of a narrow terminal"
    with takeback.open(cli.project) as ws:
        call = bash("1", f"make {long.replace(' ', '-')}")
        ws.begin_turn(CLAUDE, long)
        ws.begin_call(CLAUDE, call)
        for n in range(30):
            (cli.project / f"made{n}").write_text("x\n")
        ws.end_call(CLAUDE, call)
    lines = cli.typing("log", env={"COLUMNS": "80", "NO_COLOR": "1"}).out.splitlines()
    assert all(len(line) <= 80 for line in lines), lines
    assert lines[0].endswith("… · 1 call · 30 files +30") or "…” · 1 call · 30 files +30" in lines[0]
    assert "Bash: make a-long" in lines[1] and lines[1].endswith("· 30 files")
    status = cli.typing("status", env={"COLUMNS": "60", "NO_COLOR": "1"}).out.splitlines()
    at = next(n for n, line in enumerate(status) if line.startswith("next: "))
    assert all(len(line) <= 60 for line in status[at:]) and status[at + 1].startswith("      ")


def test_blame_is_aligned_where_no_line_has_an_id(cli):
    lines = cli.ok("blame", "src/auth.py").out.splitlines()
    assert len({line.index("│") for line in lines}) == 1


def test_blame_prints_regions_with_turn_agent_and_prompt(worked):
    lines = worked.ok("blame", "src/auth.py").out.splitlines()
    assert "before takeback" in lines[0] and lines[0].endswith("1 │ one")
    assert lines[1].startswith(one(worked, "turn")[:8]) and "claude" in lines[1] and "“add a login form”" in lines[1]
    assert lines[1].endswith("2 │ 2")
    assert worked.ok("blame", "src/auth.py", "-L", "2,2").out.splitlines()[0].endswith("2 │ 2")
    region = worked("blame", "src/auth.py", "-L", "2,", "--json").json["regions"][0]
    assert (region["start"], region["end"], region["lines"]) == (2, 2, ["2"])
    assert region["turn"] == one(worked, "turn") and region["call"] == one(worked, "call")
    for wrong in ("x", "0,1", "3,2", ",", "9,9"):
        assert worked("blame", "src/auth.py", "-L", wrong).code == 2, wrong
    gone = worked("blame", "src/legacy.py")
    assert gone.code == 2 and "src/legacy.py is gone" in gone.err


def test_blame_names_nobody_where_nobody_is_known(worked):
    (line,) = worked.ok("blame", "notes.txt").out.splitlines()
    assert "  unattributed  " in line and "you" not in line


def test_blame_masks_secrets_where_nobody_owns_the_terminal(worked):
    secret = "sk_live_" + "a1b2c3d4" * 4
    (worked.project / ".env").write_text(f"KEY={secret}\n")
    (worked.project / "plain.txt").write_text(f"hello\nkey = {secret}\n")
    for path in (".env", "plain.txt"):
        ran = worked.ok("blame", path)
        assert secret not in ran.out and "secrets are masked" in ran.err
        assert secret in worked.ok("blame", path, "--unmasked").out
    assert "hello" in worked.ok("blame", "plain.txt").out


def test_calls_and_turns_complete_where_ids_do(worked):
    for verb in ("show", "rollback", "revert"):
        names = worked.ok("completion", "--names", verb).out
        assert f"{one(worked, 'turn')[:8]}\tclaude “add a login form”" in names, verb
        assert f"{one(worked, 'call')[:8]}\tclaude: Bash: make" in names, verb
    assert "claude" not in worked.ok("completion", "--names", "restore").out.replace("add a login form", "")


def test_approve_completes_calls_that_were_stopped(worked):
    from takeback.journal.journal import New

    with takeback.open(worked.project) as ws:
        body = {
            "agent": "claude",
            "session": "s",
            "fingerprint": "f",
            "kind": "push",
            "summary": "git push",
            "why": "x",
        }
        ws.store.journal.append(
            [New("note", "k" * 32, {"what": "refused", **body}), New("note", "l" * 32, {"what": "session", "pid": 1})],
            ws.clock(),
        )
    assert worked.ok("completion", "--names", "approve").out == "kkkkkkkk\tclaude: git push\n"


def test_status_shows_uncertain_work_as_such_and_undo_asks_about_it(worked):
    with takeback.open(worked.project) as ws:
        ws.begin_call(CODEX, bash("1", "first"))
        (worked.project / "unsure").write_text("x")
        ws.begin_call(CODEX, bash("2", "second"))
        ws.end_call(CODEX, bash("2", "second"))
    assert "+ unsure" in (shown := worked.ok("status").out) and "codex (uncertain)" in shown
    told = worked("undo", "--yes")
    assert "kept uncertain work: unsure" in told.out + told.err
    assert (worked.project / "unsure").exists()
    command = next(line for line in told.err.splitlines() if "takeback revert" in line).partition("takeback ")[2]
    worked.ok(*command.split(), "--yes")
    assert not (worked.project / "unsure").exists()


def test_status_counts_uncertain_work_apart(worked):
    with takeback.open(worked.project) as ws:
        ws.begin_turn(CODEX, "count")
        ws.begin_call(CODEX, write("0", "sure"))
        (worked.project / "sure").write_text("x")
        ws.end_call(CODEX, write("0", "sure"))
        ws.begin_call(CODEX, bash("1", "first"))
        (worked.project / "unsure").write_text("x")
        ws.begin_call(CODEX, bash("2", "second"))
        ws.end_call(CODEX, bash("2", "second"))
    (line,) = (line for line in worked.ok("status").out.splitlines() if line.startswith("by codex “count”"))
    assert " · 1 path · 1 uncertain (takeback show " in line
    worked.ok("checkpoint", "now")
    with takeback.open(worked.project) as ws:
        ws.begin_call(CODEX, bash("3", "third"))
        (worked.project / "unsure too").write_text("x")
        ws.begin_call(CODEX, bash("4", "fourth"))
    (line,) = (line for line in worked.ok("status").out.splitlines() if line.startswith("by codex “count”"))
    assert " · 1 uncertain (" in line and "path" not in line


def _turn(ws, caller: Caller, prompt: str, *paths: str) -> None:
    ws.begin_turn(caller, prompt)
    for path in paths:
        ws.begin_call(caller, write(path, path))
        (ws.root / path).write_text(prompt)
        ws.end_call(caller, write(path, path))


def test_status_says_of_work_that_a_redo_brought_back_whose_it_is(cli):
    cli.ok("init")
    with takeback.open(cli.project) as ws:
        _turn(ws, CLAUDE, "do it", "n.txt")
    cli.ok("undo", "--yes")
    cli.ok("checkpoint", "mine")
    cli.ok("redo", "--yes")
    redo, turn = (
        cli.ok("log", *of, "--json").json["rows"][0] for of in (["kind:takeback"], ["actor:claude", "kind:effect"])
    )
    found = cli.ok("status", "--json").json
    (changed,) = found["changes"]
    assert (changed["actor"], changed["turns"]) == ("claude", turn["turns"])
    assert changed["takebacks"] == changed["brought_back"] == [redo["id"]]
    assert [t["prompt"] for t in found["turns"]] == ["do it"]
    told = cli.ok("status").out
    assert f"+ n.txt  claude  brought back: redo {redo['id'][:8]}" in told and "taken back" not in told
    assert "n.txt  exact (created since) · claude" in cli.ok("rollback", "--dry-run").out
    cli.ok("checkpoint", "brought back")
    cli.ok("undo", "do it", "--yes")
    (changed,) = cli.ok("status", "--json").json["changes"]
    assert not changed["actor"] and changed["takebacks"] and "brought_back" not in changed


def test_an_undo_that_a_redo_only_steps_over_is_no_turn_that_it_brings_back(cli):
    cli.ok("init")
    for path in ("a.txt", "b.txt"):
        (cli.project / path).write_text("mine\n")
    with takeback.open(cli.project) as ws:
        ws.checkpoint("before")
        _turn(ws, CLAUDE, "do it", "a.txt", "b.txt")
        _turn(ws, CODEX, "test it", "c.txt")
    (cli.project / "b.txt").write_text("do it\nand a person's\n")
    (cli.project / "c.txt").write_text("a person's\n")
    for turn in ("do it", "do it", "test it"):
        assert cli("undo", turn, "--yes").code == 3
    assert "brought back claude's turn “do it”: 1 file: a.txt" in cli.ok("redo", "--yes").out


def test_every_surface_names_the_turn_that_an_undo_was_asked_for(cli):
    """Though it takes what is shared too, as the last of its turns."""
    cli.ok("init")
    with takeback.open(cli.project) as ws:
        ws.begin_turn(CLAUDE, "alpha")
        ws.begin_turn(CODEX, "beta")
        ws.begin_call(CLAUDE, bash("1", "a"))
        (cli.project / "alpha.txt").write_text("a")
        ws.begin_call(CODEX, bash("2", "b"))
        (cli.project / "shared.txt").write_text("both")
        ws.end_call(CLAUDE, bash("1", "a"))
        (cli.project / "beta.txt").write_text("b")
        ws.end_call(CODEX, bash("2", "b"))
    cli.ok("undo", "alpha", "--yes")
    assert "took back codex's turn “beta”" in cli.ok("undo", "beta", "--yes").out
    titles = ["undo: 2 paths · codex “beta”", "undo: 1 path · claude “alpha”"]
    assert [row["summary"] for row in cli.ok("log", "kind:takeback", "--json").json["rows"]] == titles
    assert all(title in cli.ok("log").out for title in titles)
    with takeback.open(cli.project) as ws:
        items = (item for item in Timeline(ws).turns() if item.kind == "takeback")
        assert [item.title for item in items] == titles
        told = report.make(ws, report_span.find(ws, "", "", ""))
        assert sorted(each.summary for each in told.takebacks) == sorted(titles)


def test_what_is_not_journaled_yet_is_shown_as_it_would_be(worked):
    with takeback.open(worked.project) as ws:
        ws.begin_call(CODEX, bash("1", "first"))
        (worked.project / "made").write_text("x")
        found = {c.path: (c.actor, c.uncertain) for c in ws.status().changes}
        assert found["made"] == ("codex", False)
        ws.ask_about(CODEX, bash("1", "first"))
        found = {c.path: (c.actor, c.uncertain) for c in ws.status().changes}
        assert found["made"] == ("codex", True)
