"""Brackets around an agent's calls: whose each change is, and what undo makes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

import takeback
from takeback.apply import results
from takeback.journal.brackets import Call, Caller
from takeback.look import runs_at_work, turns_and_calls
from takeback.model.effects import IRREVERSIBLE, RUN
from takeback.model.outside import NewAct
from takeback.system import processes
from takeback.system.processes import Process

CLAUDE = Caller("claude", "s1")
CODEX = Caller("codex", "s2", one_at_a_time=True)


def bash(key: str, what: str = "Bash: make") -> Call:
    return Call(key, "Bash", what)


def write(key: str, *paths: str) -> Call:
    return Call(key, "Write", f"Write {paths[0]}", tuple(p.encode() for p in paths), scans=False)


@pytest.fixture
def ws(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    with takeback.open(root, create=True) as opened:
        yield opened


def effects(ws):
    """(summary, agents, paths) of each effect, oldest first."""
    return [
        (e.summary, sorted(e.actors), sorted(p.decode() for p in e.changes))
        for e in ws.history().effects
        if not e.takeback
    ]


def test_a_named_path_is_the_calls_and_the_rest_is_nobodys(ws):
    ws.begin_turn(CLAUDE, "add b")
    ws.begin_call(CLAUDE, write("1", "b.txt"))
    (ws.root / "b.txt").write_text("b\n")
    (ws.root / "mine.txt").write_text("a person's, at the same time\n")
    ws.end_call(CLAUDE, write("1", "b.txt"))
    ws.checkpoint()
    assert effects(ws) == [("Write b.txt · 1 file", ["claude"], ["b.txt"]), ("", [], ["mine.txt"])]


def test_a_shell_call_owns_what_changed_while_it_ran(ws):
    ws.begin_turn(CLAUDE, "build")
    (ws.root / "before.txt").write_text("a person's\n")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    ws.end_call(CLAUDE, bash("1"))
    (ws.root / "between.txt").write_text("a person's\n")
    ws.begin_call(CLAUDE, bash("2", "Bash: true"))
    ws.end_call(CLAUDE, bash("2", "Bash: true"))
    assert effects(ws) == [
        ("", [], ["before.txt"]),
        ("Bash: make · 1 file", ["claude"], ["made.txt"]),
        ("", [], ["between.txt"]),
    ]
    outcome = ws.undo()
    assert outcome.whole
    assert sorted(os.listdir(ws.root)) == ["a.txt", "before.txt", "between.txt"]
    ws.redo()
    assert (ws.root / "made.txt").read_text() == "made\n"


def test_undo_steps_over_turns_of_the_same_session(ws):
    for number in ("one", "two"):
        ws.begin_turn(CLAUDE, f"make {number}")
        ws.begin_call(CLAUDE, bash(number))
        (ws.root / number).write_text(number)
        ws.end_call(CLAUDE, bash(number))
    ws.undo()
    assert not (ws.root / "two").exists() and (ws.root / "one").exists()
    ws.undo()
    assert not (ws.root / "one").exists()


def test_what_two_agents_may_have_done_is_shared(ws):
    ws.begin_turn(CLAUDE, "this")
    ws.begin_turn(CODEX, "that")
    ws.begin_call(CLAUDE, bash("1"))
    ws.begin_call(CODEX, bash("1"))
    (ws.root / "whose.txt").write_text("?\n")
    ws.end_call(CLAUDE, bash("1"))
    (ws.root / "codex.txt").write_text("only one was left\n")
    ws.end_call(CODEX, bash("1"))
    assert [(who, paths) for _, who, paths in effects(ws)] == [
        (["claude", "codex"], ["whose.txt"]),
        (["codex"], ["codex.txt"]),
    ]
    ws.undo()
    assert (ws.root / "whose.txt").exists() and not (ws.root / "codex.txt").exists()


@pytest.fixture
def at_once(ws):
    """The ids of claude's and codex's turns, each with a file of its own; whose.txt is of both."""
    for caller, path in ((CLAUDE, "claude.txt"), (CODEX, "codex.txt")):
        ws.begin_turn(caller, f"{caller.agent}, make it")
        ws.begin_call(caller, write("1", path))
        (ws.root / path).write_text("its own\n")
        ws.end_call(caller, write("1", path))
    for caller in (CLAUDE, CODEX):
        ws.begin_call(caller, bash("2"))
    (ws.root / "whose.txt").write_text("?\n")
    for caller in (CLAUDE, CODEX):
        ws.end_call(caller, bash("2"))
    return [asked.id for asked in ws.history().agent_turns.values()]


def there(ws):
    return sorted(set(os.listdir(ws.root)) - {"a.txt"})


def calls_of(ws, turn):
    return [b.id for b in ws.history().brackets.values() if b.turn.number == turn]


@pytest.mark.parametrize("verb", ["undo", "revert"])
def test_shared_work_is_kept_and_named_by_a_take_back_of_one_turn_and_goes_with_the_last(ws, at_once, verb):
    claudes, codexs = at_once
    outcome = getattr(ws, verb)(claudes)
    assert there(ws) == ["codex.txt", "whose.txt"] and outcome.left == (b"whose.txt",)
    (left,) = results.others_work(ws.history(), outcome)
    assert (left.name, left.why) == ("whose.txt", "shared: codex was at work at the same time")
    assert left.told == f"{left.why}: takeback revert {ws.history().by_seq[left.unit.seq].id[:8]} ./whose.txt takes it"
    assert not getattr(ws, verb)(codexs).left and there(ws) == []
    ws.redo()
    ws.redo()
    assert there(ws) == ["claude.txt", "codex.txt", "whose.txt"]


def test_shared_work_goes_with_the_last_of_its_turns_also_where_only_that_agents_are_asked_for(ws, at_once):
    ws.undo(actors=["claude"])
    assert there(ws) == ["codex.txt", "whose.txt"]
    ws.undo(actors=["codex"])
    assert there(ws) == []


@pytest.mark.parametrize("options", [{}, {"force": True}, {"merge": True}])
def test_a_revert_of_a_call_keeps_what_another_turn_had_a_part_in(ws, at_once, options):
    claudes, codexs = (calls_of(ws, turn)[1] for turn in at_once)
    outcome = ws.revert(claudes, **options)
    assert outcome.left == (b"whose.txt",) and not outcome.plan.steps and "whose.txt" in there(ws)
    ws.revert(codexs, **options)
    assert there(ws) == ["claude.txt", "codex.txt"]


def test_undo_and_revert_count_each_others_turns(ws, at_once):
    claudes, codexs = at_once
    ws.revert(claudes)
    ws.undo(codexs)
    assert there(ws) == []


def test_shared_work_goes_with_both_of_its_turns_and_by_its_own_name(ws, at_once):
    shared = next(e.id for e in ws.history().effects if len(e.turns) > 1)
    ws.revert(shared)
    assert there(ws) == ["claude.txt", "codex.txt"]
    ws.redo()
    ws.revert(*at_once)
    assert there(ws) == []


def test_of_a_turn_and_paths_only_these_paths_are_kept_and_named(ws, at_once):
    claudes, codexs = at_once
    outcome = ws.revert(claudes, "claude.txt")
    assert (outcome.left, there(ws)) == ((), ["codex.txt", "whose.txt"])
    assert ws.revert(claudes, "whose.txt").left == (b"whose.txt",)
    ws.revert(codexs)
    assert there(ws) == []


@pytest.mark.parametrize("verb", ["undo", "revert"])
@pytest.mark.parametrize("part", ["turn", "call"])
def test_a_file_that_another_agent_wrote_again_goes_with_the_last_of_them(ws, verb, part):
    for number, caller in enumerate((CLAUDE, CODEX)):
        ws.begin_turn(caller, f"{caller.agent}, write it")
        ws.begin_call(caller, write("1", "same.txt"))
        (ws.root / "same.txt").write_text("the same\n")
        os.utime(ws.root / "same.txt", (number, number))
        ws.end_call(caller, write("1", "same.txt"))
    first, last = (asked.id for asked in ws.history().agent_turns.values())
    outcome = getattr(ws, verb)(first if part == "turn" else calls_of(ws, first)[0])
    assert outcome.left == (b"same.txt",) and there(ws) == ["same.txt"]
    getattr(ws, verb)(last)
    assert there(ws) == []


@pytest.mark.parametrize("verb", ["undo", "revert"])
def test_a_take_back_of_a_run_keeps_what_an_agent_may_have_done_meanwhile(ws, verb):
    since = ws.checkpoint("run", actor=RUN)
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "whose.txt").write_text("?\n")
    ws.ran(since, "make")
    ws.end_call(CLAUDE, bash("1"))
    assert [who for _, who, _ in effects(ws)] == [["claude", "run"]]
    assert getattr(ws, verb)(since.id).left == (b"whose.txt",) and there(ws) == ["whose.txt"]
    ws.undo()
    assert there(ws) == []


def test_a_write_is_its_own_while_a_call_runs_that_acts_outside(ws):
    push = NewAct("command", "git push", "git push", None, IRREVERSIBLE, {"why": "what was sent is sent"})
    ws.begin_turn(CLAUDE, "write and push")
    ws.begin_call(CLAUDE, bash("1")._replace(acts=(push,)))
    ws.begin_call(CLAUDE, write("2", "b.txt"))
    (ws.root / "b.txt").write_text("b\n")
    (ws.root / "pushed.txt").write_text("the command's\n")
    ws.end_call(CLAUDE, write("2", "b.txt"))
    ws.end_call(CLAUDE, bash("1"))
    found = [(summary, paths) for summary, _, paths in effects(ws) if summary != "git push"]
    assert found == [("Write b.txt · 1 file", ["b.txt"]), ("Bash: make · 1 file", ["pushed.txt"])]


def test_a_write_is_its_own_while_another_agents_command_runs(ws):
    ws.begin_call(CLAUDE, bash("1"))
    ws.begin_call(CODEX, write("1", "named.txt"))
    (ws.root / "named.txt").write_text("codex\n")
    (ws.root / "other.txt").write_text("claude\n")
    ws.end_call(CODEX, write("1", "named.txt"))
    ws.end_call(CLAUDE, bash("1"))
    assert [(who, paths) for _, who, paths in effects(ws)] == [(["codex"], ["named.txt"]), (["claude"], ["other.txt"])]


def test_folders_made_for_a_named_file_are_the_calls_too(ws):
    ws.begin_call(CLAUDE, write("1", "new/deep/file.txt"))
    (ws.root / "new/deep").mkdir(parents=True)
    (ws.root / "new/deep/file.txt").write_text("x")
    ws.end_call(CLAUDE, write("1", "new/deep/file.txt"))
    ws.checkpoint()
    assert ws.undo().whole
    assert os.listdir(ws.root) == ["a.txt"]


def test_a_missing_after_event_ends_with_the_next_call_of_an_agent_that_makes_one_at_a_time(ws):
    ws.begin_call(CODEX, bash("1", "Bash: first"))
    (ws.root / "first.txt").write_text("x")
    ws.begin_call(CODEX, bash("2", "Bash: second"))
    (ws.root / "second.txt").write_text("x")
    ws.end_call(CODEX, bash("2", "Bash: second"))
    assert [told for told, *_ in effects(ws)] == ["Bash: first · 1 file", "Bash: second · 1 file"]
    first, second = (e for e in ws.history().effects)
    assert first.uncertain and not second.uncertain


def test_calls_at_once_in_one_session_do_not_end_each_other(ws):
    ws.begin_call(CLAUDE, bash("1"))
    ws.begin_call(CLAUDE, bash("2"))
    (ws.root / "x").write_text("x")
    ws.end_call(CLAUDE, bash("1"))
    assert [b.call.key for b in ws.history().brackets.values() if not b.closed] == ["2"]
    (effect,) = ws.history().effects
    assert len(effect.calls) == 2 and len(effect.turns) == 1
    ws.end_turn(CLAUDE)
    assert all(b.closed for b in ws.history().brackets.values())


def test_a_process_that_is_gone_closes_its_brackets_at_the_next_look(ws):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    caller = Caller("claude", "s1", "", process.pid, processes.started(process.pid))
    ws.begin_call(caller, bash("1"))
    (ws.root / "late.txt").write_text("x")
    ws.checkpoint("alive")
    assert [b.closed for b in ws.history().brackets.values()] == [0]
    process.communicate(b"\n")
    (ws.root / "after.txt").write_text("x")
    ws.checkpoint("gone")
    (bracket,) = ws.history().brackets.values()
    assert bracket.closed and bracket.cut
    (ws.root / "mine.txt").write_text("x")
    ws.checkpoint("later")
    assert [(who, paths, e.uncertain) for (_, who, paths), e in zip(effects(ws), ws.history().effects)] == [
        (["claude"], ["late.txt"], False),
        (["claude"], ["after.txt"], True),
        ([], ["mine.txt"], False),
    ]


def test_a_session_that_ends_closes_what_it_left_open_and_another_goes_on(ws):
    ws.begin_call(CLAUDE, bash("1"))
    ws.begin_call(CODEX, write("9", "b.txt"))
    (ws.root / "b.txt").write_text("b")
    ws.end_turn(CLAUDE, whole_session=True)
    (left,) = (b for b in ws.history().brackets.values() if not b.closed)
    assert left.caller.agent == "codex"
    assert effects(ws) == [("Write b.txt · 1 file", ["codex"], ["b.txt"])]


def test_announced_twice_is_one_call(ws):
    one = ws.begin_call(CLAUDE, bash("1")).bracket
    assert ws.begin_call(CLAUDE, bash("1")).bracket.id == one.id
    ws.end_call(CLAUDE, bash("1"))
    assert ws.end_call(CLAUDE, bash("1")).bracket is None


def test_rollback_goes_to_just_before_a_call_and_revert_takes_one_back(ws):
    ids = []
    for number in ("1", "2"):
        ids.append(ws.begin_call(CLAUDE, bash(number)).bracket.id)
        (ws.root / number).write_text(number)
        ws.end_call(CLAUDE, bash(number))
    ws.revert(ids[0])
    assert not (ws.root / "1").exists() and (ws.root / "2").exists()
    ws.redo()
    ws.rollback(ids[1])
    assert (ws.root / "1").exists() and not (ws.root / "2").exists()


def test_checkpoints_by_turn_call_and_session(ws):
    def labels():
        return [(c.label, c.named) for c in ws.history().checkpoints[1:]]

    ws.begin_turn(CLAUDE, "\n  first thing\nmore")
    ws.begin_turn(CLAUDE, "second")
    assert labels() == [("first thing", True), ("second", False)]
    ws.settings = ws.settings._replace(granularity="session")
    ws.begin_turn(CLAUDE, "third")
    assert len(labels()) == 2
    ws.settings = ws.settings._replace(granularity="call")
    ws.begin_call(CLAUDE, write("1", "b.txt"))
    assert labels()[-1] == ("before Write b.txt", False)


def test_a_prompt_hears_once_of_what_was_taken_back(ws):
    assert ws.begin_turn(CLAUDE, "make it").told == ()
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "x").write_text("x")
    ws.end_call(CLAUDE, bash("1"))
    ws.undo()
    (takeback_,) = ws.begin_turn(CLAUDE, "go on").told
    assert takeback_.verb == "undo"
    assert ws.begin_turn(CLAUDE, "and on").told == ()


def test_the_turn_that_asks_is_not_the_one_taken_back(ws):
    me = Caller("claude", "s1", "", os.getpid(), processes.started(os.getpid()))
    ws.begin_turn(me, "make it")
    ws.begin_call(me, bash("1"))
    (ws.root / "x").write_text("x")
    ws.end_call(me, bash("1"))
    ws.begin_turn(me, "/undo")
    ws.begin_call(me, bash("2", "Bash: takeback undo"))
    (ws.root / "asking").write_text("this turn's own")
    ws.undo()
    ws.end_call(me, bash("2", "Bash: takeback undo"))
    assert not (ws.root / "x").exists() and (ws.root / "asking").exists()
    assert [paths for *_, paths in effects(ws)] == [["x"], ["asking"]]  # nothing of the take-back is the agent's


def asked_by(ws):
    return dict([*ws.history().takebacks.values()][-1].by)


def test_a_take_back_names_the_agent_that_asked_for_it_its_turn_and_its_call(ws):
    me = Caller("claude", "s1", "", os.getpid(), processes.started(os.getpid()))
    ws.begin_turn(me, "make it")
    ws.begin_call(me, bash("1"))
    (ws.root / "x").write_text("x")
    ws.end_call(me, bash("1"))
    turn = ws.begin_turn(me, "undo it").turn
    call = ws.begin_call(me, bash("2", "Bash: takeback undo")).bracket.id
    ws.undo()
    assert asked_by(ws) == {"actor": "claude", "turn": turn.number, "call": call}
    ws.begin_call(me, bash("3", "Bash: make, at the same time"))
    ws.redo()
    assert asked_by(ws) == {"actor": "claude", "turn": turn.number}
    ws.end_call(me, bash("2", "Bash: takeback undo"))
    ws.end_call(me, bash("3", "Bash: make, at the same time"))
    ws.undo()
    assert asked_by(ws) == {}  # typed by a person, in the agent's window


def test_a_take_back_of_an_agent_whose_process_is_hidden_is_told_by_its_mark(ws):
    (ws.root / "x").write_text("x")
    ws.asked_by = "codex"
    ws.undo()
    assert asked_by(ws) == {"actor": "codex"}  # without hooks it tells of no turns
    ws.begin_turn(CODEX, "make y")
    ws.begin_call(CODEX, bash("0"))
    (ws.root / "y").write_text("y")
    ws.end_call(CODEX, bash("0"))
    turn = ws.begin_turn(CODEX, "bring it back").turn
    ws.redo()
    assert asked_by(ws) == {}
    ws.begin_call(CODEX, bash("1"))
    ws.undo()
    assert asked_by(ws)["turn"] == turn.number and "call" in asked_by(ws)


def test_a_take_back_by_a_command_that_a_call_left_running_is_that_calls(ws, monkeypatch):
    me = Caller("claude", "s1", "", os.getppid(), processes.started(os.getppid()))
    ws.begin_turn(me, "undo it later")
    (ws.root / "x").write_text("x")
    monkeypatch.setattr(processes, "started_at", lambda pid: begun)
    begun = time.time()
    call = ws.begin_call(me, bash("1", "Bash: sleep 9; takeback rollback")).bracket.id
    begun = time.time()
    ws.end_call(me, bash("1", "Bash: sleep 9; takeback rollback"), goes_on=True)
    ws.rollback(everything=True)
    assert asked_by(ws).get("call") == call
    begun = time.time()
    ws.redo()
    assert asked_by(ws) == {}


def test_an_agents_own_files_are_taken_back_only_by_name(ws):
    (ws.root / ".claude").mkdir()
    (ws.root / ".claude/settings.local.json").write_text("{}")
    (ws.root / "x").write_text("x")
    ws.checkpoint(named=False)
    outcome = ws.rollback()
    assert outcome.whole and not (ws.root / "x").exists()
    assert (ws.root / ".claude/settings.local.json").exists()
    ws.revert(".claude/settings.local.json")
    assert not (ws.root / ".claude/settings.local.json").exists()


def test_an_agents_own_files_that_a_call_threw_away_come_back(ws):
    settings = ws.root / ".claude/settings.local.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    ws.begin_turn(CLAUDE, "tidy up")
    ws.begin_call(CLAUDE, bash("1", "Bash: git clean -fdx"))
    shutil.rmtree(settings.parent)
    (ws.root / "x").write_text("x")
    ws.end_call(CLAUDE, bash("1"))
    assert ws.undo().whole
    assert settings.read_text() == "{}", "or nothing that it does next would be captured"
    ws.redo()
    assert settings.exists() and (ws.root / "x").exists()


def test_a_turn_that_only_threw_an_agents_own_files_away_can_be_undone(ws):
    hooks = ws.root / ".mcp.json"
    hooks.write_text("{}")
    ws.begin_turn(CLAUDE, "tidy up")
    ws.begin_call(CLAUDE, bash("1"))
    hooks.unlink()
    ws.end_call(CLAUDE, bash("1"))
    ws.undo()
    assert hooks.exists()


def test_what_a_person_took_out_of_an_agents_own_files_stays_out(ws):
    settings = ws.root / ".mcp.json"
    settings.write_text("{}")
    ws.checkpoint("set up")
    settings.unlink()
    ws.rollback()
    assert not settings.exists()
    ws.restore("set up", ".mcp.json")
    assert settings.exists()


def test_a_folder_of_an_agents_name_without_its_files_goes_like_any_other(ws):
    (ws.root / ".github/workflows").mkdir(parents=True)
    (ws.root / ".github/workflows/ci.yml").write_text("on: push\n")
    assert ws.rollback().whole
    assert os.listdir(ws.root) == ["a.txt"]


def test_prompts_and_commands_are_kept_without_secrets(ws):
    secret = "sk_live_" + "a1b2c3d4" * 4
    ws.begin_turn(CLAUDE, f"use {secret} please")
    ws.begin_call(CLAUDE, bash("1", f"Bash: curl -H 'Authorization: Bearer {secret}'"))
    for row in ws.store.journal.rows():
        assert secret not in str(row.body)


# -- what is recorded inside a turn ------------------------------------------------


def test_what_an_agents_command_records_goes_with_its_turn(ws):
    me = Caller("claude", "s1", pid=os.getpid(), started=processes.started(os.getpid()))
    ws.begin_turn(me, "charge the card")
    code = "import sys; from takeback.surfaces.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["-C", str(ws.root), "record", "command", "--did", "charged a card", "--", "true"]
    subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
    (act,) = ws.effects()
    (turn,) = ws.history().agent_turns
    assert (act.by["actor"], act.by["turn"]) == ("claude", turn.number)
    assert [unit for unit in ws.plan("undo").steps if unit.domain == "command"]


def test_what_a_person_records_is_no_agents(ws):
    gone = Caller("claude", "s1", pid=os.getpid(), started=1)  # another process of that number
    ws.begin_turn(gone, "nothing")
    assert "turn" not in ws.record_command("by hand", argv=["true"]).by


def test_what_a_call_did_outside_is_in_doubt_where_nobody_tells_how_it_ended(ws):
    me = Caller("claude", "s1", pid=os.getpid(), started=processes.started(os.getpid()))
    push = NewAct("command", "git push", "git push", None, IRREVERSIBLE, {"left_to_do": "push it back"})
    ws.begin_turn(me, "push it")
    ws.begin_call(me, bash("1", "Bash: git push")._replace(acts=(push,), asked=True))
    ws.end_call(me, bash("1", "Bash: git push"))
    assert [act.state for act in ws.effects()] == ["done"], "he said yes"
    ws.begin_call(me, bash("2", "Bash: git push")._replace(acts=(push,), asked=True))
    ws.end_turn(me)
    assert sorted(act.state for act in ws.effects()) == ["begun", "done"], "refused, or interrupted: nobody knows"


# -- by the time of the change -------------------------------------------------


def whose(ws):
    """Path ─► who, with "?" where it is uncertain."""
    return {
        path.decode(): ", ".join(sorted(e.actors)) + "?" * e.uncertain
        for e in ws.history().effects
        if not e.takeback
        for path in e.changes
    }


def a_while():
    time.sleep(0.03)  # longer than a file system's clock ticks


@pytest.mark.parametrize("asked", [True, False])
def test_what_an_agent_tells_a_little_late_is_the_calls_unless_a_person_was_asked(ws, asked):
    ws.begin_turn(CLAUDE, "build")
    ws.begin_call(CLAUDE, bash("1")._replace(asked=asked))
    (ws.root / "made.txt").write_text("made\n")
    ws.end_call(CLAUDE, bash("1"), ran=0.0, at=(ws.root / "made.txt").stat().st_ctime + 0.03)
    assert whose(ws) == {"made.txt": "claude?" if asked else "claude"}


def test_a_call_that_was_asked_about_and_ran_for_nobody_knows_how_long(ws):
    ws.begin_turn(CLAUDE, "build")
    ws.begin_call(CLAUDE, bash("1"))
    ws.ask_about(CLAUDE, bash("1"))
    (ws.root / "x.txt").write_text("x\n")
    ws.end_call(CLAUDE, bash("1"))
    assert whose(ws) == {"x.txt": "claude?"}


def test_a_killed_agent_owns_what_changed_until_it_was_seen_to_be_gone(ws):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    caller = Caller("claude", "s1", "", process.pid, processes.started(process.pid))
    (ws.root / "d").mkdir()
    for name in ("d/early.txt", "late.txt"):
        (ws.root / name).write_text("x\n")
    ws.checkpoint("before")
    ws.begin_turn(caller, "build")
    ws.begin_call(caller, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    (ws.root / "d/early.txt").unlink()
    a_while()
    process.communicate(b"\n")
    died = time.time()
    a_while()
    (ws.root / "mine.txt").write_text("a person's\n")
    (ws.root / "late.txt").unlink()
    ws.end_gone(Process(caller.pid, caller.started), died)
    later = {"mine.txt": "claude?", "late.txt": "claude?"}  # nobody had looked: the call may have had a part in them
    assert whose(ws) == {"d": "", "made.txt": "claude", "d/early.txt": "claude", **later}
    (bracket,) = ws.history().brackets.values()
    assert bracket.cut and bracket.ended == died


def test_a_call_in_a_run_is_the_calls_and_the_rest_is_the_runs(ws):
    before = ws.checkpoint("before")
    inside, beside = CLAUDE._replace(run=before.id), CODEX
    with runs_at_work.mark(runs_at_work.folder_in(ws.store.folder) / before.id):
        ws.begin_call(inside, bash("1"))
        (ws.root / "by-call").write_text("1\n")
        ws.end_call(inside, bash("1"))
        (ws.root / "by-run").write_text("1\n")
        ws.begin_call(beside, bash("2"))
        (ws.root / "by-either").write_text("1\n")
        ws.end_call(beside, bash("2"))
    ws.ran(before, "claude")
    assert [(actors, paths) for _, actors, paths in effects(ws)] == [
        (["claude"], ["by-call"]),
        (["run"], ["by-run"]),
        (["codex", "run"], ["by-either"]),
    ]


def test_what_an_agent_runs_is_part_of_its_call(ws):
    ws.begin_turn(CLAUDE, "build it")
    ws.begin_call(CLAUDE, bash("1", "Bash: takeback run -- make"))
    before = ws.checkpoint("before: make")
    (ws.root / "made").write_text("1\n")
    _, paths = ws.ran(before, "make", "claude")
    ws.end_call(CLAUDE, bash("1", "Bash: takeback run -- make"))
    assert paths == ["made"]
    assert [(actors, paths) for _, actors, paths in effects(ws)] == [(["claude"], ["made"])]
    assert ws.undo().whole and not (ws.root / "made").exists()


def test_a_call_that_was_denied_after_it_was_opened_did_nothing_outside(ws):
    push = NewAct("command", "git push", "git push", None, IRREVERSIBLE)
    opened = ws.begin_call(CLAUDE, bash("1", "Bash: git push")._replace(acts=(push,)))
    ws.end_call(CLAUDE, opened.bracket.call, failed=True, did_act=False)
    assert ws.effects() == []
    assert [bool(b.closed) for b in ws.history().brackets.values()] == [True]


def test_a_first_look_of_a_process_that_stays_takes_no_longer_than_a_hook_may(ws, monkeypatch):
    asked = []
    scan = ws.observer.scan

    def noted(*given, deadline=None, **more):
        asked.append(deadline)
        return scan(*given, deadline=deadline, **more)

    monkeypatch.setattr(ws.observer, "scan", noted)
    ws.keep_watch()
    assert asked == [turns_and_calls.DEADLINE]


def test_a_persons_edits_between_calls_that_changed_nothing_are_not_undone(ws):
    ws.begin_turn(CLAUDE, "run the tests")
    ws.begin_call(CLAUDE, bash("1"))
    ws.end_call(CLAUDE, bash("1"))
    (ws.root / "mine.txt").write_text("a person's\n")
    ws.begin_call(CLAUDE, bash("2"))
    ws.end_call(CLAUDE, bash("2"))
    outcome = ws.undo()
    assert not outcome.plan.steps and (ws.root / "mine.txt").exists()


def test_what_can_never_be_undone_is_named_with_its_own_turn_only(ws):
    pushed = NewAct("command", "git push", "git push", None, IRREVERSIBLE)
    for number, acts in (("1", (pushed,)), ("2", ())):
        ws.begin_turn(CLAUDE, f"turn {number}")
        ws.begin_call(CLAUDE, bash(number)._replace(acts=acts))
        (ws.root / number).write_text(number)
        ws.end_call(CLAUDE, bash(number))
    ws.undo()
    assert {step.verdict for step in ws.undo().plan.steps} == {"exact", "irreversible"}
    ws.begin_turn(CLAUDE, "turn 3")
    ws.begin_call(CLAUDE, bash("3"))
    (ws.root / "3").write_text("3")
    ws.end_call(CLAUDE, bash("3"))
    assert {step.verdict for step in ws.plan("undo").steps} == {"exact"}


def test_what_a_person_took_back_already_is_done_and_not_kept(ws):
    ws.begin_turn(CLAUDE, "edit")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "new.txt").write_text("x")
    (ws.root / "a.txt").write_text("two\n")
    ws.end_call(CLAUDE, bash("1"))
    (ws.root / "new.txt").unlink()
    (ws.root / "a.txt").write_text("one\n")
    outcome = ws.undo()
    assert outcome.whole and {step.verdict for step in outcome.plan.steps} == {"exact"}
    assert ws.undo().plan.steps == ()


def test_what_an_earlier_undo_kept_is_taken_when_it_is_free_and_not_named_again_before(ws):
    for number in ("1", "2"):
        ws.begin_turn(CLAUDE, f"turn {number}")
        ws.begin_call(CLAUDE, bash(number))
        (ws.root / f"{number}.txt").write_text("agent's\n")
        ws.end_call(CLAUDE, bash(number))
    (ws.root / "2.txt").write_text("a person's\n")
    assert not ws.undo().whole
    outcome = ws.undo(force=True)
    assert outcome.whole and [step.path for step in outcome.plan.steps] == [b"1.txt"]
    assert (ws.root / "2.txt").read_text() == "a person's\n"


def test_the_end_of_a_run_leaves_an_agents_call_beside_it_its_own(ws):
    since = ws.checkpoint("run", actor=RUN)
    ws.begin_call(CODEX, write("1", "named.txt"))
    (ws.root / "named.txt").write_text("codex\n")
    (ws.root / "made.txt").write_text("the run\n")
    _, paths = ws.ran(since, "make")
    assert paths == ["made.txt"]
    assert [(who, changed) for _, who, changed in effects(ws)] == [(["run"], ["made.txt"]), (["codex"], ["named.txt"])]


# -- uncertain work in take-backs ------------------------------------------------


@pytest.fixture
def killed(ws):
    """Claude edited a.txt and made b.txt, then was killed in a call; unsure.txt was made before or after that."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    caller = Caller("claude", "s1", "", process.pid, processes.started(process.pid))
    ws.begin_turn(caller, "build")
    ws.begin_call(caller, write("1", "a.txt"))
    (ws.root / "a.txt").write_text("two\n")
    ws.end_call(caller, write("1", "a.txt"))
    ws.begin_call(caller, bash("2"))
    process.communicate(b"\n")
    (ws.root / "unsure.txt").write_text("whose?\n")
    ws.checkpoint("by a person")
    assert whose(ws) == {"a.txt": "claude", "unsure.txt": "claude?"}
    return ws


def test_undo_asks_about_uncertain_work_and_keeps_it_where_nobody_answers(killed):
    plan = killed.plan("undo")
    assert {kind: {u.path for u in units} for kind, units in plan.asks.items()} == {"uncertain": {b"unsure.txt"}}
    assert [step.path for step in plan.steps] == [b"a.txt"]
    outcome = killed.undo()
    assert outcome.left == (b"unsure.txt",)
    assert (killed.root / "a.txt").read_text() == "one\n" and (killed.root / "unsure.txt").exists()
    assert not killed.undo().id, "it was asked about, and is not asked about again"
    assert killed.redo().whole and (killed.root / "a.txt").read_text() == "two\n"


def test_a_persons_yes_takes_uncertain_work_with_its_turn(killed):
    outcome = killed.take_back("undo", also=["uncertain"])
    assert outcome.whole and not outcome.left
    assert sorted(os.listdir(killed.root)) == ["a.txt"]
    assert killed.redo().whole and (killed.root / "unsure.txt").exists()


def test_uncertain_work_is_taken_by_its_own_id_and_not_by_its_calls(killed):
    (effect,) = (e for e in killed.history().effects if e.uncertain)
    (call,) = effect.calls
    assert killed.plan("revert", call).asks and not killed.plan("revert", call).steps
    assert killed.revert(effect.id).whole
    assert not (killed.root / "unsure.txt").exists()


def test_a_rollback_asks_about_uncertain_work_too(killed):
    plan = killed.plan("rollback", killed.history().checkpoints[0].id)
    assert set(plan.asks) == {"uncertain"} and [step.path for step in plan.steps] == [b"a.txt"]
    assert killed.take_back("rollback", killed.history().checkpoints[0].id, everything=True).whole
    assert sorted(os.listdir(killed.root)) == ["a.txt"]


def test_what_is_uncertain_lies_above_what_is_the_agents(killed):
    """The same file, changed in the call for certain, and then by somebody."""
    other = Caller("codex", "s9", pid=1, started=5)
    killed.begin_turn(other, "more")
    killed.begin_call(other, write("1", "c.txt"))
    (killed.root / "c.txt").write_text("codex\n")
    killed.end_call(other, write("1", "c.txt"))
    killed.begin_call(other, bash("2"))
    (killed.root / "c.txt").write_text("codex, or a person\n")
    killed.checkpoint("later")
    (step,) = killed.plan("undo").steps
    assert (step.path, step.verdict) == (b"c.txt", "drifted")
    assert killed.take_back("undo", also=["uncertain"]).whole and not (killed.root / "c.txt").exists()


def test_the_death_of_one_agent_tells_nothing_of_another_that_died_unseen(ws):
    def agent(session):
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        return process, Caller("claude", session, "", process.pid, processes.started(process.pid))

    (one, first), (two, second) = agent("s1"), agent("s2")
    ws.begin_turn(first, "this")
    ws.begin_call(first, bash("1"))
    one.communicate(b"\n")
    (ws.root / "mine.txt").write_text("a person's, or of the one that died unseen\n")
    ws.begin_turn(second, "that")
    ws.begin_call(second, write("2", "b.txt"))
    two.communicate(b"\n")
    ws.end_gone(Process(second.pid, second.started), time.time())
    ws.checkpoint("later")
    assert whose(ws) == {"mine.txt": "claude?"}


def test_a_call_that_goes_on_in_another_process_is_a_new_one(ws):
    """A run that was killed, and is gone on with under the same names."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    first = Caller("langgraph", "alice", "", process.pid, processes.started(process.pid))
    ws.begin_turn(first, "go")
    ws.begin_call(first, bash("turn"))
    process.communicate(b"\n")
    again = first._replace(pid=os.getpid(), started=processes.started(os.getpid()))
    ws.begin_call(again, bash("turn"))
    (ws.root / "made.txt").write_text("by the one that goes on\n")
    ws.checkpoint("meanwhile")
    (ws.root / "more.txt").write_text("by the one that goes on\n")
    ws.end_call(again, bash("turn"))
    assert whose(ws) == {"made.txt": "langgraph", "more.txt": "langgraph"}


def test_calls_that_were_left_are_waited_for_once(ws, tmp_path):
    transcript = tmp_path / "t.jsonl"
    transcript.touch()
    ws.begin_turn(CLAUDE, "many")
    for key in "12345678":
        ws.begin_call(CLAUDE, bash(key)._replace(transcript=str(transcript)))
    waited = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("takeback.agents.ends.time.sleep", waited.append)
        patched.setattr("takeback.agents.ends.time.monotonic", lambda: 100.0 + sum(waited))
        ws.begin_turn(CLAUDE, "go on")
    assert 0 < sum(waited) < 0.6


def test_uncertain_work_that_a_person_kept_is_no_part_of_the_next_undo(killed):
    killed.undo()  # keeps unsure.txt
    other = Caller("codex", "s9", pid=1, started=5)
    killed.begin_turn(other, "more")
    killed.begin_call(other, bash("2"))
    (killed.root / "second.txt").write_text("whose?\n")
    killed.checkpoint("later")
    outcome = killed.take_back("undo", also=["uncertain"])
    assert [step.path for step in outcome.plan.steps] == [b"second.txt"]
    assert (killed.root / "unsure.txt").exists()
