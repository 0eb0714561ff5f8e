"""Whose work a plan takes and a result keeps, in the words of the command line."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.journal.brackets import Call, Caller
from takeback.surfaces.hook import Asked, answer

CLAUDE = Caller("claude", "s1")


def bash(key: str) -> Call:
    return Call(key, "Bash", "Bash: make")


@pytest.fixture
def ws(cli: Any) -> Any:
    (cli.project / "a.txt").write_text("".join(f"{n}\n" for n in range(9)))
    cli.ok("init")
    with takeback.open(cli.project) as opened:
        yield opened


def uncertain(ws: Any, path: str, key: str = "u") -> None:
    """What was found after a call of which nobody knows when it began."""
    ws.begin_call(CLAUDE, bash(key)._replace(asked=True))
    (ws.root / path).write_text("whose\n")
    ws.end_call(CLAUDE, bash(key))


def test_uncertain_work_is_called_so_wherever_it_is_shown(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    uncertain(ws, "whose.txt")
    assert "claude (uncertain)" in cli.ok("blame", "whose.txt").out
    assert [region["uncertain"] for region in cli("blame", "whose.txt", "--json").json["regions"]] == [True]
    (row,) = [row for row in cli("log", "kind:effect", "--json").json["rows"] if row["uncertain"]]
    assert "actor    claude (uncertain)" in cli.ok("show", row["id"]).out
    assert "1 uncertain" in next(line for line in cli.ok("log").out.splitlines() if "◆" in line)
    for name in (row["turn"], row["call"]):
        assert "uncertain whose.txt: may be somebody else's" in cli.ok("show", name).out
        shown = cli("show", name, "--json").json
        assert shown["uncertain"] and shown["asked"]["uncertain"] == ["whose.txt"]
        assert [call["uncertain"] for call in shown["made"]] == [["whose.txt"]]
    told = cli.ok("report", row["turn"], "--no-diffs").out
    assert "**uncertain**" in told and "exact" not in told
    (turn,) = [turn for turn in cli("report", "--json").json["turns"] if turn["kind"] == "agent"]
    assert turn["verdicts"] == {"uncertain": 1}
    assert turn["calls"][0]["effects"][0]["verdict"] == "uncertain"


def test_undo_that_keeps_all_it_was_asked_about_says_so_and_exits_3(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    uncertain(ws, "whose.txt")
    told = cli("undo", "--yes")
    assert told.code == 3
    assert "took back nothing" in told.out + told.err and "kept uncertain work: whose.txt" in told.out + told.err
    assert (cli.project / "whose.txt").exists()


def test_a_plan_names_what_stays_whatever_is_answered(cli: Any, ws: Any) -> None:
    """Uncertain, and shared with another turn that stands: a yes to uncertain work does not take it."""
    codex = Caller("codex", "s2")
    ws.begin_turn(CLAUDE, "go")
    uncertain(ws, "whose.txt")
    ws.begin_turn(codex, "meanwhile")
    ws.begin_call(codex, bash("c"))
    uncertain(ws, "both.txt", "v")
    ws.end_call(codex, bash("c"))
    turn = next(asked.id for each, asked in ws.history().agent_turns.items() if each.actor == "claude")
    told = cli.typing("undo", turn, answers=[("t take uncertain work too/k keep it", "t\n")])
    plan, _, came = told.out.partition("Apply?")
    assert "kept uncertain work: both.txt" in came and told.code == 3
    assert "left as it is, uncertain work: both.txt (1 path); it may be yours; take it too: takeback revert " in plan
    assert (cli.project / "both.txt").exists() and not (cli.project / "whose.txt").exists()


def test_it_exits_3_on_json_too_and_0_once_it_is_taken(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    ws.end_call(CLAUDE, bash("1"))
    uncertain(ws, "whose.txt")
    told = cli("undo", "--yes", "--json")
    assert told.code == 3 and [step["target"] for step in told.json["plan"]["steps"]] == ["made.txt"]
    assert not (cli.project / "made.txt").exists() and (cli.project / "whose.txt").exists()
    cli.ok("redo", "--yes")
    assert cli("undo", "--all", "--yes").code == 0
    assert not (cli.project / "whose.txt").exists()


@pytest.mark.parametrize("how", [["--yes"], ["--yes", "--json"], []], ids=["in words", "as json", "without a yes"])
def test_rollback_exits_3_where_all_there_is_to_take_is_uncertain_and_stays(cli: Any, ws: Any, how: list[str]) -> None:
    ws.checkpoint("y")
    ws.begin_turn(CLAUDE, "go")
    uncertain(ws, "whose.txt")
    told = cli("rollback", "y", *how)
    assert told.code == 3 and (cli.project / "whose.txt").exists()
    assert "whose.txt" in told.out + told.err
    assert cli("rollback", "y", "--all", *(how or ["--yes"])).code == 0
    assert cli("rollback", "y", *how).code == 0, "nothing stays"


def test_the_python_api_calls_it_not_whole(ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    uncertain(ws, "whose.txt")
    assert not ws.undo().whole


def test_lines_of_others_and_of_nobody_known_say_whose_they_are(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    (ws.root / "both.txt").write_text("the call's\n")
    ws.end_call(CLAUDE, bash("1"))
    uncertain(ws, "whose.txt")
    (ws.root / "both.txt").write_text("a person's\n")
    ws.checkpoint("mine", named=False)

    def lines(*words: str) -> dict[str, str]:
        shown = cli("undo", *words, "--dry-run").out.splitlines()
        return {line.split()[2]: line.partition("exact")[2] for line in shown if line.startswith("  files")}

    everything = lines("--all", "--force")
    assert everything["made.txt"].endswith("(created since)"), "the turn's own need no name"
    assert everything["whose.txt"].endswith("· claude (uncertain)")
    assert everything["both.txt"].endswith("· a person, claude")
    assert lines("--force")["both.txt"].endswith("· with a person's change")


@pytest.fixture
def forced(cli: Any, ws: Any) -> Any:
    """A turn of claude that made made.txt and edited a.txt; then a person edited both, and made mine.txt."""
    ws.checkpoint("here")
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("1\n2\n3\n")
    (ws.root / "a.txt").write_text((ws.root / "a.txt").read_text().replace("8", "EIGHT"))
    ws.end_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("1\nmine\n3\n")
    (ws.root / "a.txt").write_text((ws.root / "a.txt").read_text().replace("0", "ZERO"))
    (ws.root / "mine.txt").write_text("mine\n")
    return cli


def test_rollback_by_force_names_as_kept_only_what_it_keeps(forced: Any) -> None:
    planned = forced.ok("rollback", "here", "--force", "--dry-run").out
    for path in ("a.txt", "made.txt"):
        (line,) = (line for line in planned.splitlines() if line.startswith("  files") and path in line)
        assert line.endswith("· claude, with a person's change")
    assert "left as it is, people's other work: mine.txt (1 path); so the tree is not wholly at" in planned
    plan = forced.ok("rollback", "here", "--force", "--dry-run", "--json").json["plan"]
    assert plan["left"] == ["mine.txt"] and plan["asks"] == {"people": ["mine.txt"]}
    assert plan["forced"] == ["a.txt", "made.txt"]
    told = forced.ok("rollback", "here", "--force", "--yes").out
    assert "took back 2 files: a.txt, made.txt; with a person's changes to a.txt, made.txt; " in told
    assert "kept people's other work: mine.txt; the tree is not wholly at" in told
    assert not (forced.project / "made.txt").exists() and (forced.project / "mine.txt").exists()
    (back,) = forced.ok("report", "--json").json["takebacks"]
    assert [step["target"] for step in back["not_done"]] == ["mine.txt"]


def test_a_person_is_asked_about_what_force_does_not_take(forced: Any) -> None:
    ran = forced.typing("rollback", "here", "--force", answers=[("t take people's other work too/k keep it", "k\n")])
    assert ran.code == 0 and "kept people's other work: mine.txt;" in ran.out
    assert (forced.project / "mine.txt").exists() and not (forced.project / "made.txt").exists()


def test_rollback_by_force_that_takes_all_that_people_did_is_there(forced: Any) -> None:
    (forced.project / "mine.txt").unlink()
    told = forced.ok("rollback", "here", "--force", "--yes").out
    assert "back at " in told and "with a person's changes to a.txt, made.txt" in told and "kept" not in told


def test_what_a_person_did_before_an_agent_is_kept_by_force_and_named(cli: Any, ws: Any) -> None:
    ws.checkpoint("here")
    (ws.root / "a.txt").write_text("person\n")
    ws.checkpoint("mine", named=False)
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "a.txt").write_text("claude\n")
    ws.end_call(CLAUDE, bash("1"))
    (ws.root / "a.txt").write_text("person again\n")
    told = cli.ok("rollback", "here", "--force", "--yes").out
    assert "with a person's change to a.txt; kept people's other work: a.txt" in told
    assert (ws.root / "a.txt").read_text() == "person\n"


def test_undo_by_force_says_whose_changes_went_with_it(forced: Any) -> None:
    told = forced.ok("undo", "--force", "--actor", "claude", "--yes").out
    assert "2 files: a.txt, made.txt; with a person's changes to a.txt, made.txt" in told


def test_after_an_undo_that_kept_it_the_next_says_how_it_is_merged(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "a.txt").write_text((ws.root / "a.txt").read_text().replace("8", "EIGHT"))
    ws.end_call(CLAUDE, bash("1"))
    (ws.root / "a.txt").write_text((ws.root / "a.txt").read_text().replace("0", "ZERO"))
    ws.checkpoint("mine")
    assert cli("undo", "--actor", "claude", "--yes").code == 3
    told = cli("undo", "--actor", "claude", "--merge", "--yes")
    (line,) = (line for line in (told.out + told.err).splitlines() if "kept by an earlier undo: a.txt" in line)
    command = line.partition("take it: takeback ")[2].partition(",")[0].split()
    cli.ok(*command, "--yes")
    text = (cli.project / "a.txt").read_text()
    assert "8" in text and "ZERO" in text


def test_a_revert_that_merged_a_path_is_whole(forced: Any) -> None:
    assert "took back 1 file: a.txt" in forced.ok("revert", "a.txt", "--merge", "--yes").out
    text = (forced.project / "a.txt").read_text()
    assert "8" in text and "ZERO" in text
    (back,) = forced.ok("report", "--json").json["takebacks"]
    assert (back["well"], back["done"], back["not_done"]) == ("whole", {"merged": 1}, [])
    (row,) = forced.ok("log", "kind:takeback", "--json").json["rows"]
    assert "kept" not in forced.ok("show", row["id"]).out


def edited(ws: Any, key: str = "1") -> None:
    """A turn of claude that changed a.txt and made new.txt."""
    ws.begin_turn(CLAUDE, "t1b")
    ws.begin_call(CLAUDE, bash(key))
    (ws.root / "a.txt").write_text("claude's\n")
    (ws.root / "new.txt").write_text("new\n")
    ws.end_call(CLAUDE, bash(key))


def by_hand(ws: Any, was: str) -> None:
    (ws.root / "a.txt").write_text(was)
    (ws.root / "new.txt").unlink()


def test_what_a_person_put_back_by_hand_is_stepped_over_and_not_said_to_be_taken(cli: Any, ws: Any) -> None:
    was = (ws.root / "a.txt").read_text()
    edited(ws)
    by_hand(ws, was)
    told = cli.ok("undo", "--yes")
    over = "claude's turn “t1b”: a.txt, new.txt were already as they were"
    assert f"stepped back over {over} before" in told.out and "took back" not in told.out
    assert "takeback redo" not in told.err
    log = cli.ok("log", "kind:takeback", "--json").json["rows"]
    assert log[0]["summary"] == "undo: all was already as it was · claude “t1b”" and log[0]["paths"] == []
    shown = cli.ok("show", log[0]["id"]).out
    assert "  took " not in shown and "  already  a.txt of " in shown and "  already  new.txt of " in shown
    (back,) = cli.ok("report", "--json").json["takebacks"]
    assert (back["well"], back["paths"], back["took"], back["done"]) == ("nothing", [], [], {})
    told = cli.ok("redo", "--yes")
    assert f"stepped forward over {over}\n" in told.out and "brought back" not in told.out
    assert (ws.root / "a.txt").read_text() == was and not (ws.root / "new.txt").exists()
    edited(ws, "2")
    assert "took back claude's turn “t1b”: 2 files" in cli.ok("undo", "--yes").out


def test_what_was_already_so_is_not_counted_among_what_was_taken(cli: Any, ws: Any) -> None:
    edited(ws)
    (ws.root / "new.txt").unlink()
    assert "took back claude's turn “t1b”: 1 file: a.txt" in cli.ok("undo", "--yes").out
    (row,) = cli.ok("log", "kind:takeback", "--json").json["rows"]
    assert row["summary"] == "undo: 1 path · claude “t1b”" and row["paths"] == ["a.txt"]
    shown = cli.ok("show", row["id"], "--json").json
    assert [each["path"] for each in shown["took"]] == ["a.txt"]
    assert [each["path"] for each in shown["already"]] == ["new.txt"]
    (back,) = cli.ok("report", "--json").json["takebacks"]
    assert (back["well"], back["paths"], back["done"]) == ("whole", ["a.txt"], {"exact": 1})


def test_a_rollback_that_finds_one_path_so_and_keeps_another_took_nothing(cli: Any, ws: Any) -> None:
    was = (ws.root / "a.txt").read_text()
    ws.checkpoint("y")
    edited(ws)
    (ws.root / "a.txt").write_text(was)
    (ws.root / "new.txt").write_text("mine\n")
    told = cli("rollback", "y", "--actor", "claude", "--yes")
    assert told.code == 3 and "took back nothing: a.txt was already as it was before; kept new.txt" in told.out


def send(project: Path, event: str, **more: Any) -> None:
    payload = {"session_id": "s1", "cwd": str(project), "hook_event_name": event, **more}
    reply = answer(Asked("claude", event, json.dumps(payload).encode(), str(project), dict(os.environ)))
    assert reply.code == 0 and not reply.err


def test_what_a_command_in_the_background_may_have_written_is_not_called_peoples(cli: Any, ws: Any) -> None:
    where = {"transcript_path": "/t.jsonl", "tool_name": "Bash", "tool_use_id": "1"}
    given = {"command": "(sleep 1; echo late > late.txt) &"}
    ws.checkpoint("here")
    send(cli.project, "UserPromptSubmit", prompt="go", transcript_path="/t.jsonl")
    send(cli.project, "PreToolUse", tool_input=given, **where)
    (cli.project / "made.txt").write_text("made\n")
    send(cli.project, "PostToolUse", tool_input=given, tool_response={}, **where)
    (cli.project / "late.txt").write_text("late\n")
    told = cli("rollback", "here", "--all", "--dry-run").out
    assert "· not known whose" in told and "a person" not in told
    kept = cli("rollback", "here", "--dry-run")
    assert "not known whose, people's or of what claude left running: late.txt" in kept.out + kept.err
    done = cli("rollback", "here", "--yes")
    assert "not known whose" in done.out + done.err and (cli.project / "late.txt").exists()


def test_a_request_that_a_person_stopped_is_in_the_ledger_at_once(cli: Any, ws: Any, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.touch()
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "takeback" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[policy.calls]\nall = "allow"\n')
    where = {"transcript_path": str(transcript)}
    call = {"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "curl -X POST http://127.0.0.1:9/pay"}}
    send(cli.project, "UserPromptSubmit", prompt="pay", **where)
    send(cli.project, "PreToolUse", **call, **where)
    assert "127.0.0.1" not in cli.ok("effects").out, "it runs"
    stamp = datetime.fromtimestamp(time.time(), UTC).isoformat()
    said = {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": "no"}
    stop = {"type": "text", "text": "[Request interrupted by user for tool use]"}
    common = {"type": "user", "promptId": "p", "timestamp": stamp, "entrypoint": "cli"}
    lines = (
        {**common, "toolDenialKind": "user-rejected", "message": {"role": "user", "content": [said]}},
        {**common, "interruptedMessageId": "m", "message": {"role": "user", "content": [stop]}},
    )
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (effect,) = cli.ok("effects", "--json").json["effects"]
    assert effect["state"] == "unknown" and "127.0.0.1" in effect["summary"]
    assert cli.ok("show", effect["id"][:8]).out


# -- while a call of that turn is at work -------------------------------------------

RUNNING = "claude's Bash: make is still running: what it does after this stays"


@pytest.mark.parametrize("verb", [("undo",), ("rollback", "start"), ("revert", "made.txt")])
def test_a_take_back_warns_of_a_call_that_goes_on(cli: Any, ws: Any, verb: tuple[str, ...]) -> None:
    cli.ok("checkpoint", "start")
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    assert RUNNING in cli(*verb, "--dry-run").out
    (bracket,) = ws.history().brackets.values()
    (running,) = cli(*verb, "--dry-run", "--json").json["plan"]["running"]
    assert running == {
        "id": bracket.id, "agent": "claude", "session": "s1", "turn": bracket.turn.number, "tool": "Bash",
        "summary": "Bash: make", "may_wait": False,
    }  # fmt: skip
    told = cli(*verb, "--yes")
    assert RUNNING in told.out + told.err and not (cli.project / "made.txt").exists()
    ws.end_call(CLAUDE, bash("1"))
    assert not cli("redo", "--dry-run", "--json").json["plan"]["running"]
    told = cli("redo", "--yes")
    assert "running" not in told.out + told.err


def test_a_call_that_waits_for_an_answer_is_not_said_to_run(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    ws.end_call(CLAUDE, bash("1"))
    ws.begin_call(CLAUDE, bash("2")._replace(asked=True))
    (running,) = cli("undo", "--dry-run", "--json").json["plan"]["running"]
    assert running["may_wait"]
    told = cli("undo", "--dry-run").out
    assert "claude's Bash: make is still running or waits for your answer: what it does after this stays" in told


def test_the_call_that_asks_for_a_take_back_is_not_named(cli: Any, ws: Any) -> None:
    from takeback.system import processes

    cli.ok("checkpoint", "start")
    above = CLAUDE._replace(pid=os.getpid(), started=processes.started(os.getpid()))
    ws.begin_turn(above, "go")
    ws.begin_call(above, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    assert "still running" not in cli("rollback", "start", "--dry-run").out


# -- where an agent was there, and changed nothing --------------------------------------


def was_asked(ws: Any) -> None:
    ws.begin_turn(CLAUDE, "what does this do?")


def made_a_call(ws: Any) -> None:
    was_asked(ws)
    ws.begin_call(CLAUDE, bash("1"))
    ws.end_call(CLAUDE, bash("1"))


def is_at_it(ws: Any) -> None:
    """It asks itself, from a call that began before the checkpoint."""
    from takeback.system import processes

    above = CLAUDE._replace(pid=os.getpid(), started=processes.started(os.getpid()))
    ws.begin_turn(above, "go")
    ws.begin_call(above, Call("r", "Write", "Write", scans=False, paths=(b"elsewhere",)))
    ws.checkpoint("here")


@pytest.mark.parametrize("there", [was_asked, made_a_call, is_at_it], ids=lambda each: each.__name__)
def test_rollback_keeps_a_persons_work_where_an_agent_only_was_there(cli: Any, ws: Any, there: Any) -> None:
    ws.checkpoint("here")
    if there is is_at_it:
        there(ws)
    (cli.project / "mine.txt").write_text("mine\n")
    (cli.project / "README.md").write_text("mine\n")
    if there is not is_at_it:
        there(ws)
    told = cli("rollback", "here", "--yes")
    assert "README.md, mine.txt" in told.out + told.err, told
    assert "the tree is not wholly at" in told.out + told.err, told
    assert (cli.project / "README.md").read_text() == "mine\n" and (cli.project / "mine.txt").exists()
    asked = cli.typing("rollback", "here", answers=[("k keep it", "t\n")]) if there is not is_at_it else None
    assert asked is None or (asked.code == 0 and not (cli.project / "mine.txt").exists())


def test_rollback_by_an_agent_keeps_a_persons_work_though_no_agent_did_anything_since(cli: Any, ws: Any) -> None:
    made_a_call(ws)
    ws.checkpoint("here")
    (ws.root / "mine.txt").write_text("mine\n")
    ws.client = "claude"
    assert ws.rollback("here").left == (b"mine.txt",) and (ws.root / "mine.txt").exists()
    ws.client = ""
    assert ws.rollback("here").is_there and not (ws.root / "mine.txt").exists()


def test_undo_by_an_agent_leaves_a_persons_run(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    ws.end_call(CLAUDE, bash("1"))
    cli.ok("run", "--", "sh", "-c", "echo mine > mine.txt")
    ws.client = "claude-code"
    ws.undo()
    assert (ws.root / "mine.txt").exists() and not (ws.root / "made.txt").exists()


def test_redo_by_an_agent_leaves_what_a_person_took_back(cli: Any, ws: Any) -> None:
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "made.txt").write_text("made\n")
    ws.end_call(CLAUDE, bash("1"))
    ws.undo()
    ws.client = "claude-code"
    assert not ws.redo().results
    assert not (ws.root / "made.txt").exists()
    ws.client = ""
    ws.redo()
    ws.client = "claude-code"
    ws.undo()
    ws.redo()
    assert (ws.root / "made.txt").exists(), "its own take-back it may bring back"


# -- who vouches -------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["checkpoint"], ["track", "README.md"]], ids=lambda words: words[0])
def test_nobody_vouches_for_what_an_open_call_owns(cli: Any, ws: Any, words: list[str]) -> None:
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    (ws.root / "README.md").write_text("by claude\n")
    cli.ok(*words, env={"TAKEBACK_ACTOR": "codex"})
    ws.end_call(CLAUDE, bash("1"))
    row = cli("log", "kind:effect", "--json").json["rows"][0]
    assert row["actor"] == "claude"


@pytest.mark.parametrize("actor, told", [("codex", ""), ("claude", "claude")])
def test_below_an_agents_session_nobody_vouches_for_another(cli: Any, ws: Any, actor: str, told: str) -> None:
    from takeback.system import processes

    ws.begin_turn(CLAUDE._replace(pid=os.getpid(), started=processes.started(os.getpid())), "go")
    (ws.root / "README.md").write_text("whose\n")
    ran = cli.ok("checkpoint", env={"TAKEBACK_ACTOR": actor})
    assert ("TAKEBACK_ACTOR does not count below claude's session" in ran.err) is not bool(told)
    row = cli("log", "kind:effect", "--json").json["rows"][0]
    assert (row["actor"] or "") == told
