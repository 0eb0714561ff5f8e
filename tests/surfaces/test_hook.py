"""Hooks of agents, answered in this process on real workspaces: what is journaled, what is said, and what happens when
something goes wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback import agents
from takeback.agents import hook_problems
from takeback.look import runs_at_work
from takeback.surfaces.hook import Asked, answer
from takeback.system import forking
from takeback.system.locks import Lock

AGENTS = list(agents.AGENTS)


class Claude:
    """A session of Claude Code, as its hooks hear of it."""

    def __init__(self, project: Path, session: str = "s1", pid: int = 0, started: int = 0) -> None:
        self.project, self.session, self.process = project, session, (pid, started)
        self.code = 0
        self.beside: Any = None

    def send(self, event: str, environ: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
        payload = {
            "session_id": self.session,
            "transcript_path": "/t.jsonl",
            "cwd": str(self.project),
            "hook_event_name": event,
            **more,
        }
        asked = Asked(
            "claude", event, json.dumps(payload).encode(), str(self.project), {**os.environ, **(environ or {})},
            *self.process,
        )  # fmt: skip
        reply = answer(asked, beside=self.beside)
        assert reply.code in (0, 2)
        self.code = reply.code
        body = json.loads(reply.out) if reply.out else {}
        assert isinstance(body, dict)
        return body

    def prompt(self, said: str, **more: Any) -> str:
        """What is added to the prompt."""
        told = self.send("UserPromptSubmit", prompt=said, **more)
        return str(told.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def before(self, key: str, tool: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self.send("PreToolUse", tool_name=tool, tool_input=given, tool_use_id=key, **more)

    def after(self, key: str, tool: str, given: dict[str, Any], failed: bool = False, **more: Any) -> dict[str, Any]:
        event = "PostToolUseFailure" if failed else "PostToolUse"
        return self.send(event, tool_name=tool, tool_input=given, tool_use_id=key, **more)

    def write(self, key: str, path: str, content: str, **more: Any) -> dict[str, Any]:
        given = {"file_path": str(self.project / path), "content": content}
        told = self.before(key, "Write", given, **more)
        (self.project / path).parent.mkdir(parents=True, exist_ok=True)
        (self.project / path).write_text(content)
        self.after(key, "Write", given, **more)
        return told

    def shell(self, key: str, command: str, failed: bool = False, **more: Any) -> dict[str, Any]:
        told = self.before(key, "Bash", {"command": command}, **more)
        if is_denied(told):
            return told
        subprocess.run(["sh", "-c", command], cwd=self.project, check=False, capture_output=True)
        self.after(key, "Bash", {"command": command}, failed, **more)
        return told


def is_denied(told: dict[str, Any]) -> bool:
    return bool(told.get("hookSpecificOutput", {}).get("permissionDecision") == "deny")


def effects(ws: Any) -> list[tuple[str, list[str], list[str]]]:
    """(summary, agents, paths) of each effect on files, oldest first."""
    return [
        (e.summary, sorted(e.actors), sorted(p.decode() for p in e.changes))
        for e in ws.history().effects
        if not e.takeback and e.domain == "files"
    ]


def tree(project: Path) -> dict[str, tuple[int, str]]:
    return {
        str(p.relative_to(project)): (p.stat().st_mode, p.read_text() if p.is_file() else "")
        for p in sorted(project.rglob("*"))
    }


def records(result: str = "") -> list[hook_problems.Record]:
    return [r for r in hook_problems.read(Path(os.environ["TAKEBACK_HOME"])) if not result or r.result == result]


@pytest.fixture
def ws(project):
    (project / "a.txt").write_text("one\n")
    with takeback.open(project, create=True) as opened:
        yield opened


@pytest.fixture
def session(project, ws):
    return Claude(project)


# -- a turn ------------------------------------------------------------------------


def test_a_turn_with_a_write_a_shell_and_a_failing_shell_is_journaled_undone_and_redone(session, ws, project):
    before = tree(project)
    session.send("SessionStart", source="startup")
    assert session.prompt("add b\nand more") == ""
    session.write("1", "src/b.txt", "b\n")
    session.shell("2", "echo two > a.txt; echo c > c.txt")
    session.shell("3", "echo half > half.txt; exit 3", failed=True)
    session.send("Stop")
    after = tree(project)
    assert effects(ws) == [
        ("Write src/b.txt · 1 file", ["claude"], ["src", "src/b.txt"]),
        ("Bash: echo two > a.txt; echo c > c.txt · 2 files", ["claude"], ["a.txt", "c.txt"]),
        ("Bash: echo half > half.txt; exit 3 · 1 file", ["claude"], ["half.txt"]),
    ]
    turns = list(ws.history().agent_turns.values())
    assert [turn.prompt for turn in turns] == ["add b"]
    assert ws.history().checkpoints[-1].label == "add b"
    assert not records()
    assert ws.undo().whole
    assert tree(project) == before
    assert ws.redo().whole
    assert tree(project) == after


def test_reading_costs_nothing(session, ws):
    head = ws.store.journal.head()
    given = {"file_path": str(session.project / "a.txt")}
    for tool in ("Read", "Grep", "WebFetch", "mcp__takeback__takeback_log"):
        assert session.before("1", tool, given) == {}
        assert session.after("1", tool, given) == {}
    assert ws.store.journal.head() == head
    with Lock(ws.store.folder / "store.lock", False).hold(1):  # and it waits for nobody
        assert session.before("2", "Read", given) == {}


def test_a_write_looks_at_the_paths_it_names_and_nothing_else(session, ws, project):
    session.prompt("edit a")
    (project / "mine.txt").write_text("a person's\n")
    session.write("1", "a.txt", "two\n")
    assert effects(ws) == [("Write a.txt · 1 file", ["claude"], ["a.txt"])]
    ws.checkpoint("later")
    assert effects(ws)[1] == ("", [], ["mine.txt"])


def test_the_line_names_a_checkpoint_that_rollback_accepts(session, ws, project):
    session.prompt("edit a")
    session.write("0", "first.txt", "kept\n")
    line = session.write("1", "a.txt", "two\n")["systemMessage"]
    mark, word, id, *rest = line.split()
    assert (mark, word, " ".join(rest)) == ("⚙", "checkpoint", "before Write a.txt")
    assert len(id) >= 3
    assert ws.rollback(id, everything=True).whole
    assert (project / "a.txt").read_text() == "one\n"
    assert (project / "first.txt").exists()


@pytest.mark.parametrize("granularity", ["call", "turn", "session"])
def test_at_every_granularity(session, project, granularity):
    environ = {"TAKEBACK_HOOKS_GRANULARITY": granularity}
    session.prompt("edit a", environ=environ)
    session.prompt("edit a again", environ=environ)
    line = session.write("1", "a.txt", "two\n", environ=environ)["systemMessage"]
    id = line.split()[2]
    with takeback.open(project) as ws:
        assert [f.path for f in ws.diff(id).files] == ["a.txt"] and ws.show(id).row.kind == "call"
        for take_back in (ws.undo, ws.revert, lambda id: ws.restore(id, "a.txt")):
            assert take_back(id).whole and (project / "a.txt").read_text() == "one\n"
            assert ws.redo().whole and (project / "a.txt").read_text() == "two\n"
        assert ws.pin(id).seq <= ws.history().brackets[ws.show(id).row.id].seq, "the checkpoint of that moment"
        assert ws.rollback(id, everything=True).whole
    assert (project / "a.txt").read_text() == "one\n"


def test_the_line_is_a_setting(session):
    session.prompt("edit a")
    assert session.write("1", "a.txt", "two\n", environ={"TAKEBACK_HOOKS_MESSAGE": "off"}) == {}


def test_secrets_are_kept_out(session, ws):
    secret = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    session.prompt(f"use {secret}")
    told = session.shell("1", f"echo API_KEY={secret} > made.txt")
    assert secret not in json.dumps(told)
    for row in ws.store.journal.rows(0, ("turn", "open", "checkpoint", "change")):
        assert secret not in json.dumps(row.body)


def test_a_secret_at_the_edge_of_a_summary_is_kept_out_whole(session, ws):
    """Cut first, it would have no shape."""
    for key, blank in enumerate(range(40, 90, 5)):
        session.before(
            str(key), "Bash", {"command": f"echo {'x' * blank}; curl -H 'X-Api-Key: correcthorse' https://h"}
        )
    assert "correct" not in json.dumps([row.body for row in ws.store.journal.rows()])


@pytest.mark.parametrize(
    "command",
    ["PGPASSWORD=PgP4ssEnv psql", "curl -u ada:PgP4ssEnv https://h", "mysql -pPgP4ssEnv shop",
     "sshpass -p PgP4ssEnv ssh -p 22 host", "docker login -u ada -p PgP4ssEnv", "redis-cli -a PgP4ssEnv ping"],
)  # fmt: skip
def test_secrets_of_commands_and_prompts_reach_neither_journal_nor_log(session, ws, project, command):
    session.prompt(f"my password is PgP4ssEnv, run {command}")
    session.shell("1", f"echo x > made; true {command}")
    session.before("2", "Bash", {"command": command})
    assert "PgP4ssEnv" not in json.dumps([row.body for row in ws.store.journal.rows()])
    words = [sys.executable, "-m", "takeback", "-C", str(project), "log"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "[redacted]" in shown and "PgP4ssEnv" not in shown


def test_a_notice_of_claude_code_itself_begins_no_turn(session, ws, project):
    session.prompt("build it in the background")
    session.write("1", "a.txt", "two\n")
    session.send("Stop")
    head = ws.store.journal.head()
    session.prompt("<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>")
    assert ws.store.journal.head() == head
    session.write("2", "b.txt", "b\n")
    assert [t.prompt for t in ws.history().agent_turns.values()] == ["build it in the background"]
    assert len({turn for e in ws.history().effects for turn in e.turns}) == 1
    session.prompt("/review the last commit")
    assert len(ws.history().agent_turns) == 2


# -- paths -------------------------------------------------------------------------


def test_writes_outside_the_workspace_are_journaled_as_uncovered(session, ws, tmp_path):
    outside = tmp_path / "elsewhere.txt"
    session.prompt("write elsewhere")
    session.write("1", "../elsewhere.txt", "out\n")
    (act,) = ws.effects()
    assert (act.target, act.shown_state, act.by["actor"]) == (str(outside), "uncovered", "claude")
    assert effects(ws) == []
    outcome = ws.undo()
    assert outcome.whole and [step.verdict for step in outcome.plan.steps] == ["uncovered"]
    assert outside.read_text() == "out\n"


def test_a_write_through_a_symlink_is_found_where_it_went(session, ws, project):
    (project / "real").mkdir()
    (project / "real" / "x.txt").write_text("old\n")
    (project / "link.txt").symlink_to("real/x.txt")
    (project / "folder").symlink_to("real")
    ws.checkpoint("links")
    session.prompt("write through")
    session.write("1", "link.txt", "new\n")
    session.write("2", "folder/y.txt", "y\n")
    assert [paths for _, _, paths in effects(ws)[-2:]] == [["real/x.txt"], ["real/y.txt"]]
    assert ws.undo().whole
    assert (project / "real" / "x.txt").read_text() == "old\n"


def test_a_folder_below_the_root_and_one_that_is_gone(session, ws, project):
    deep = project / "src"
    deep.mkdir()
    ws.checkpoint("deep")
    session.prompt("from below", cwd=str(deep))
    patch = {"command": "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"}
    payload = {"session_id": "c", "cwd": str(deep), "tool_name": "apply_patch", "tool_input": patch, "tool_use_id": "1"}
    for event in ("PreToolUse", "PostToolUse"):
        body = json.dumps({**payload, "hook_event_name": event}).encode()
        answer(Asked("codex", event, body, str(deep), os.environ))
        (deep / "new.txt").write_text("x\n")
    assert effects(ws)[-1] == ("Patch src/new.txt · 1 file", ["codex"], ["src/new.txt"])
    session.shell("9", "true", cwd=str(project / "gone"))
    assert not records("failed")


# -- whose it is -------------------------------------------------------------------


def test_a_missing_after_event_is_closed_by_the_next_prompt(session, ws, project):
    session.prompt("one")
    session.before("1", "Bash", {"command": "make"})
    (project / "made.txt").write_text("made\n")
    session.prompt("two")
    assert effects(ws) == [("Bash: make · 1 file", ["claude"], ["made.txt"])]
    assert ws.history().effects[-1].uncertain


def test_a_persons_edit_between_two_calls_is_a_persons(session, ws, project):
    session.prompt("go")
    session.shell("1", "echo x > x.txt")
    (project / "mine.txt").write_text("mine\n")
    session.shell("2", "echo y > y.txt")
    assert [(actors, paths) for _, actors, paths in effects(ws)] == [
        (["claude"], ["x.txt"]),
        ([], ["mine.txt"]),
        (["claude"], ["y.txt"]),
    ]
    ws.undo()
    assert (project / "mine.txt").exists()


def test_two_sessions_at_once_keep_their_own(session, ws, project):
    other = Claude(project, "s2")
    session.prompt("one")
    other.prompt("two")
    mine, theirs = {"file_path": str(project / "m.txt")}, {"file_path": str(project / "t.txt")}
    session.before("1", "Write", mine)
    other.before("1", "Write", theirs)
    (project / "m.txt").write_text("m\n")
    (project / "t.txt").write_text("t\n")
    other.after("1", "Write", theirs)
    session.after("1", "Write", mine)
    owned = {e.summary: e.turns for e in ws.history().effects if e.domain == "files" and e.summary}
    assert len(owned["Write m.txt · 1 file"]) == 1
    assert owned["Write m.txt · 1 file"] != owned["Write t.txt · 1 file"]


def test_a_subagent_and_the_end_of_it(session, ws, project):
    session.prompt("delegate")
    assert session.before("t", "Task", {"prompt": "look"}) == {}
    session.before("1", "Bash", {"command": "make"}, agent_id="a1")
    (project / "made.txt").write_text("made\n")
    session.send("SubagentStop", agent_id="a1")
    assert effects(ws) == [("Bash: make · 1 file", ["claude"], ["made.txt"])]
    (bracket,) = ws.history().brackets.values()
    assert bracket.caller.lane == "a1" and bracket.closed


def test_a_resumed_session_closes_what_its_earlier_process_left(session, ws, project):
    session.prompt("one")
    session.before("1", "Bash", {"command": "make"})
    (project / "made.txt").write_text("made\n")
    session.send("SessionStart", source="resume")
    assert [b.closed > 0 for b in ws.history().brackets.values()] == [True]
    assert effects(ws)[0][1] == ["claude"]


def test_calls_without_a_name_pair_by_content_two_alike_in_order(ws, project):
    def send(event: str, **more: Any) -> None:
        payload = {"session_id": "g", "cwd": str(project), "hook_event_name": event, **more}
        assert answer(Asked("gemini", event, json.dumps(payload).encode(), str(project), os.environ)).code == 0

    call = {"tool_name": "run_shell_command", "tool_input": {"command": "date >> log.txt"}}
    send("BeforeAgent", prompt="twice")
    send("BeforeTool", **call)
    send("BeforeTool", **call)
    (project / "log.txt").write_text("1\n")
    send("AfterTool", **call)
    (project / "log.txt").write_text("1\n2\n")
    send("AfterTool", **call)
    assert [actors for _, actors, _ in effects(ws)] == [["gemini"], ["gemini"]]
    assert all(b.closed and not b.cut for b in ws.history().brackets.values())


def test_two_hooks_that_tell_of_one_prompt_begin_one_turn(session, ws):
    session.prompt("go")
    session.prompt("go")
    assert len(ws.history().agent_turns) == 1
    session.write("1", "b.txt", "b\n")
    session.prompt("go")
    assert len(ws.history().agent_turns) == 2


def test_qwen_begins_one_turn_for_one_prompt(ws, project):
    for prompt in ("go", "", ""):
        payload = {"session_id": "q", "cwd": str(project), "hook_event_name": "UserPromptSubmit", "prompt": prompt}
        answer(Asked("qwen", "", json.dumps(payload).encode(), str(project), os.environ))
    assert [turn.prompt for turn in ws.history().agent_turns.values()] == ["go"]


def test_copilot_under_claudes_hooks_is_copilot_and_told_once(ws, project):
    payload = {
        "session_id": "c", "timestamp": "2026", "cwd": str(project), "hook_event_name": "PreToolUse",
        "tool_name": "Write", "tool_input": {"path": str(project / "x.txt"), "file_text": "x"},
    }  # fmt: skip
    environ = {**os.environ, "CLAUDE_PROJECT_DIR": str(project)}
    asked = Asked("claude", "PreToolUse", json.dumps(payload).encode(), str(project), environ)
    answer(asked)
    (bracket,) = ws.history().brackets.values()
    assert (bracket.caller.agent, bracket.call.paths) == ("copilot", (b"x.txt",))
    own = project / ".github" / "hooks" / "takeback.json"
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    answer(asked)
    assert len(ws.history().brackets) == 1


# -- the gate ----------------------------------------------------------------------


AUTOPILOT = {"TAKEBACK_AUTOPILOT": "1"}


def reason(told: dict[str, Any]) -> str:
    return str(told["hookSpecificOutput"]["permissionDecisionReason"])


def test_a_denied_call_has_no_bracket_and_passes_once_when_a_person_approved(session, ws, project):
    session.prompt("push it")
    told = session.shell("1", "git push origin main", environ=AUTOPILOT)
    assert is_denied(told)
    assert not ws.history().brackets
    call = reason(told).rpartition("takeback approve ")[2].strip(" .")
    ws.approve_call(ws.stopped_call(call))
    assert not is_denied(session.shell("2", "git push origin main", failed=True, environ=AUTOPILOT))
    assert is_denied(session.shell("3", "git push origin main", environ=AUTOPILOT))


def dies(work: Any) -> Any:
    def ask() -> bool:
        raise takeback.TakebackError("a worker process died")

    return ask


@pytest.mark.parametrize("beside", [forking.beside, dies], ids=["judged", "and dies"])
def test_a_command_that_is_judged_beside_the_look_fares_as_any_other(session, ws, project, beside):
    session.beside = beside
    assert "checkpoint" in session.shell("c1", "echo new > made.txt")["systemMessage"]
    assert effects(ws)[-1] == ("Bash: echo new > made.txt · 1 file", ["claude"], ["made.txt"])
    (project / "a.txt").write_text("a person's\n")
    rows = ws.store.journal.head().seq
    denied = session.shell("c2", "git push", environ=AUTOPILOT)
    assert is_denied(denied) and "open" not in {row.kind for row in ws.store.journal.rows(rows)}
    ws.approve_call(ws.stopped_call(reason(denied).rpartition("takeback approve ")[2].strip(" .")))
    assert not is_denied(session.shell("c3", "git push", failed=True, environ=AUTOPILOT))
    assert [act.summary for act in ws.effects()] == ["git push"]
    assert not records("failed")


@pytest.mark.parametrize("beside", [None, forking.beside, dies], ids=["first", "beside", "and dies"])
def test_an_agent_cannot_remove_the_store_while_another_process_has_it(session, ws, beside):
    """Nothing can be captured then, which alone lets a call go on."""
    session.beside = beside
    with Lock(ws.store.folder / "store.lock", False).hold(1):
        told = session.shell("1", "rm -rf $TAKEBACK_HOME", environ={"TAKEBACK_LOCK_TIMEOUT": "0.1"})
    assert is_denied(told) and "it is the store" in reason(told)


@pytest.mark.parametrize("beside", [None, forking.beside], ids=["first", "beside"])
def test_what_cannot_be_put_on_record_is_refused_and_asked_for_all_the_same(session, ws, beside):
    session.beside = beside
    soon = {"TAKEBACK_LOCK_TIMEOUT": "0.1"}
    with Lock(ws.store.folder / "store.lock", False).hold(1):
        denied = session.before("1", "Bash", {"command": "git push"}, environ={**soon, **AUTOPILOT})
        asked = session.before("2", "Bash", {"command": "git push"}, environ=soon)
    assert is_denied(denied) and "cannot be put on record" in reason(denied)
    assert asked["hookSpecificOutput"]["permissionDecision"] == "ask" and records("failed")


@pytest.mark.parametrize("beside", [None, forking.beside], ids=["first", "beside"])
def test_a_call_that_is_announced_twice_is_judged_twice(session, ws, beside):
    session.beside = beside
    assert not is_denied(session.before("1", "Bash", {"command": "ls"}))
    assert is_denied(session.before("1", "Bash", {"command": "git push"}, environ=AUTOPILOT))


def test_what_may_run_and_cannot_be_undone_is_journaled_with_what_would_undo_it(session, ws):
    allow = Path(os.environ["XDG_CONFIG_HOME"]) / "takeback" / "config.toml"
    allow.parent.mkdir(parents=True)
    allow.write_text('[policy.calls]\npush = "allow"\n')
    session.prompt("push it")
    command = "git push origin main"
    assert not is_denied(session.before("1", "Bash", {"command": command}))
    session.after("1", "Bash", {"command": command})
    (act,) = ws.effects()
    assert (act.summary, act.shown_state, act.by["actor"]) == (command, "irreversible", "claude")
    assert act.did["left_to_do"]
    assert act.by["call"] in ws.history().brackets


def test_what_was_cut_off_may_have_happened(session, ws):
    session.prompt("write elsewhere")
    given = {"file_path": str(session.project.parent / "elsewhere.txt"), "content": "x"}
    session.before("1", "Write", given)
    session.prompt("next")
    (act,) = ws.effects()
    assert act.shown_state == "unknown"


def test_a_gate_that_breaks_lets_the_capture_go_on_or_is_closed(session, ws, monkeypatch):
    from takeback import gate

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(gate, "tool", broken)
    assert "checkpoint" in session.before("1", "Bash", {"command": "make"})["systemMessage"]
    assert "the gate did not judge" in records("failed")[-1].what
    assert is_denied(session.before("2", "Bash", {"command": "make"}, environ={"TAKEBACK_HOOKS_FAILURE": "closed"}))


def test_where_nobody_can_be_asked_it_is_denied_with_the_command_that_approves(ws, project):
    user = Path(os.environ["XDG_CONFIG_HOME"]) / "takeback" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text('[policy.calls]\npush = "ask"\n')
    call = {"tool_name": "Bash", "tool_input": {"command": "git push"}, "tool_use_id": "1"}
    for agent, wanted in (("claude", "ask"), ("codex", "deny")):
        payload = {"session_id": agent, "transcript_path": "/t", "cwd": str(project), **call}
        told = answer(Asked(agent, "PreToolUse", json.dumps(payload).encode(), str(project), os.environ))
        body = json.loads(told.out)["hookSpecificOutput"]
        assert body["permissionDecision"] == wanted
        assert "takeback approve " in body["permissionDecisionReason"]
    assert [b.caller.agent for b in ws.history().brackets.values()] == ["claude"]  # the person may say yes


# -- after an undo -----------------------------------------------------------------


def test_the_agent_is_told_once_what_was_taken_back(session, ws, project):
    session.prompt("make a mess")
    for number in range(12):
        session.write(str(number), f"mess{number:02}.txt", "mess\n")
    session.send("Stop")
    ws.undo()
    told = session.prompt("go on")
    assert "\n" not in told
    assert told.startswith('takeback took back the turn "make a mess": mess00.txt, mess01.txt')
    assert "and 4 more" in told
    assert session.prompt("and on") == ""
    ws.redo()
    assert "takeback brought back" in session.prompt("again")


def test_git_is_told_in_words_after_the_files(session, ws, project):
    session.shell("0", "git init -q -b main; git config user.email a@b.c; git config user.name a; touch a; git add a")
    session.shell("1", "git commit -qm one")
    session.prompt("commit it")
    session.shell(
        "2", "for n in 1 2 3 4 5 6 7 8 9; do echo $n > z$n; done; git add -A; git commit -qm more; git tag v1"
    )
    session.send("Stop")
    ws.undo()
    told = session.prompt("go on")
    assert "z1, z2, z3, z4, z5, z6, z7, z8 and 1 more; and in git main, tag v1, " in told
    assert " index entries." in told and ".git/" not in told


def test_every_agent_that_can_be_told_is_told(ws, project):
    said = {
        "claude": ("UserPromptSubmit", {"transcript_path": "/t"}),
        "codex": ("UserPromptSubmit", {}),
        "qwen": ("UserPromptSubmit", {}),
        "gemini": ("BeforeAgent", {}),
        "copilot": ("userPromptSubmitted", {"sessionId": "s"}),
    }
    for agent, (event, more) in said.items():
        payload = {"session_id": "s", "cwd": str(project), "prompt": f"ask {agent}", **more}
        asked = Asked(agent, event, json.dumps(payload).encode(), str(project), os.environ)
        answer(asked)
        (project / f"{agent}.txt").write_text("x\n")
        ws.checkpoint(actor="me")
        ws.undo()
        assert "takeback took back" in answer(asked).out, agent


# -- failing -----------------------------------------------------------------------


def test_off_is_silent(session, ws):
    head = ws.store.journal.head()
    assert session.write("1", "b.txt", "b\n", environ={"TAKEBACK": "off"}) == {}
    assert session.write("2", "c.txt", "c\n", environ={"TAKEBACK_CHECKPOINTS_ENABLED": "off"}) == {}
    assert ws.store.journal.head() == head
    assert not records()


def test_no_workspace_is_noted_and_nothing_said(tmp_path):
    elsewhere = tmp_path / "unprotected"
    elsewhere.mkdir()
    session = Claude(elsewhere)
    for _ in range(3):
        assert session.before("1", "Bash", {"command": "make"}) == {}
    assert session.before("2", "Read", {"file_path": "x"}) == {}
    (found,) = records()
    assert (found.result, found.agent, found.event) == ("noted", "claude", "PreToolUse")
    assert str(elsewhere) in found.what
    assert (Path(os.environ["TAKEBACK_HOME"]) / hook_problems.FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("payload", [b"", b"nonsense", b"[]", b"3", b'{"a":', b"\xff\xfe", b"{}", b"[" * 100_000])
def test_what_cannot_be_read_is_on_record_and_lets_the_call_go_on(agent, payload, ws, project):
    reply = answer(Asked(agent, "", payload, str(project), os.environ))
    assert (reply.code, reply.out, reply.err) == (0, "", "")
    assert records()[-1].agent == agent


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "payload",
    [b"nonsense", b"[]", b"\xff\xfe", b"[" * 100_000, bytes(65 << 20)],
    ids=["nonsense", "list", "bytes", "deep", "oversized"],
)
def test_what_cannot_be_read_before_a_call_fails_as_the_owner_chose(agent, payload, ws, project):
    event = next(name for name, kind in agents.load(agent).events.items() if kind == "before")
    closed = {**os.environ, "TAKEBACK_HOOKS_FAILURE": "closed"}
    assert answer(Asked(agent, event, payload, str(project), os.environ)) == (0, "", "")
    reply = answer(Asked(agent, event, payload, str(project), closed))
    assert "deny" in reply.out and "hooks.failure is closed" in reply.out
    assert [r.root for r in records("failed")] == [str(project)] * 2
    assert answer(Asked(agent, "", payload, str(project), closed)) == (0, "", ""), "nobody says that a call waits"
    after = next(name for name, kind in agents.load(agent).events.items() if kind == "after")
    assert answer(Asked(agent, after, payload, str(project), closed)) == (0, "", "")
    off = {**closed, "TAKEBACK_CHECKPOINTS_ENABLED": "off"}
    assert answer(Asked(agent, event, payload, str(project), off)) == (0, "", "")


def test_a_call_without_a_tool_fails_as_the_owner_chose(session, ws):
    assert session.send("PreToolUse") == {}
    assert is_denied(session.send("PreToolUse", environ={"TAKEBACK_HOOKS_FAILURE": "closed"}))


def test_what_cannot_be_read_where_nothing_is_protected_goes_on(tmp_path):
    closed = {**os.environ, "TAKEBACK_HOOKS_FAILURE": "closed"}
    assert answer(Asked("claude", "PreToolUse", b"nonsense", str(tmp_path), closed)) == (0, "", "")
    assert [(r.result, r.root) for r in records()] == [("failed", "")]


def test_an_unknown_event_and_an_unknown_tool_are_on_record(session, ws):
    assert session.send("BrandNewEvent") == {}
    assert records("noted")[-1].event == "BrandNewEvent"
    session.before("1", "BrandNewTool", {"x": 1})
    assert "BrandNewTool" in records("noted")[-1].what
    assert [b.call.scans for b in ws.history().brackets.values()] == [True]


def test_an_unknown_agent_is_on_record(project):
    assert answer(Asked("nobody", "PreToolUse", b"{}", str(project), os.environ)) == (0, "", "")
    assert records("failed")[-1].agent == "nobody"


def break_store(ws: Any) -> None:
    ws.close()
    (ws.store.folder / "journal.db").write_bytes(b"no database" * 1000)


@pytest.mark.parametrize("failure", ["open", "closed"])
def test_a_locked_store_fails_as_the_owner_chose(session, ws, failure):
    environ = {"TAKEBACK_HOOKS_FAILURE": failure, "TAKEBACK_LOCK_TIMEOUT": "0.1"}
    with Lock(ws.store.folder / "store.lock", False).hold(1):
        told = session.before("1", "Bash", {"command": "make"}, environ=environ)
    assert is_denied(told) == (failure == "closed")
    assert session.code == 0
    assert records("failed")[-1].root == str(session.project)
    if failure == "closed":
        assert "hooks.failure is closed" in told["hookSpecificOutput"]["permissionDecisionReason"]
    else:
        assert "takeback captured nothing" in told["systemMessage"]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("failure", ["open", "closed"])
def test_a_broken_store_fails_as_the_owner_chose_in_every_agent(ws, project, agent, failure):
    """The table of what agents make of a hook: exit 1 would run in five and block in Copilot; so it is 0, and the no is
    in the one object that is printed."""
    break_store(ws)
    call = {
        "claude": {"transcript_path": "/t", "tool_name": "Bash", "tool_input": {"command": "make"}},
        "copilot": {"toolName": "bash", "toolArgs": {"command": "make"}},
        "opencode": {"input": {"tool": "bash", "callID": "1"}, "output": {"args": {"command": "make"}}},
        "cursor": {"tool_name": "Shell", "tool_input": {"command": "make"}},
        "codex": {"tool_name": "Bash", "tool_input": {"command": "make"}},
    }.get(agent, {"tool_name": "run_shell_command", "tool_input": {"command": "make"}})
    event = {"gemini": "BeforeTool", "copilot": "preToolUse", "opencode": "tool.execute.before", "cursor": "preToolUse"}
    payload = {"session_id": "s", "cwd": str(project), "directory": str(project), **call}
    name = event.get(agent, "PreToolUse")
    environ = {**os.environ, "TAKEBACK_HOOKS_FAILURE": failure}
    reply = answer(Asked(agent, name, json.dumps(payload).encode(), str(project), environ))
    assert reply.code == 0 and reply.err == ""
    body = json.loads(reply.out) if reply.out else {}
    no = "deny" in (body.get("permission"), body.get("decision"), body.get("permissionDecision")) or is_denied(body)
    assert no == (failure == "closed")
    assert records("failed")[-1].agent == agent


def test_a_hook_waits_for_the_store_no_longer_than_ten_seconds(session, ws, project):
    """An agent waits with it, whatever others may."""
    waited = []

    class Stopped(Exception): ...

    def opened(root, settings, environ):
        waited.append(settings.lock_timeout)
        raise Stopped

    for chosen in ("1h", "0.1"):
        payload = json.dumps({"session_id": "s", "transcript_path": "/t", "cwd": str(project), "prompt": "go"})
        environ = {**os.environ, "TAKEBACK_LOCK_TIMEOUT": chosen}
        answer(Asked("claude", "UserPromptSubmit", payload.encode(), str(project), environ), opened)
    assert waited == [10.0, 0.1]


def test_an_interrupted_take_back_is_told(session, ws, project):
    session.prompt("go")
    session.write("1", "b.txt", "b\n")
    with pytest.raises(RuntimeError):
        _interrupt(ws)
    told = session.before("2", "Bash", {"command": "make"})
    assert "an undo was interrupted" in told["systemMessage"]
    assert is_denied(session.before("3", "Bash", {"command": "make"}, environ={"TAKEBACK_HOOKS_FAILURE": "closed"}))


def _interrupt(ws: Any) -> None:
    """Stops an undo between its intent and its outcome, as a kill would."""
    journal = ws.store.journal
    append = journal.append

    def stopping(rows, at, *args):
        if any(row.kind == "outcome" for row in rows):
            raise RuntimeError("killed")
        return append(rows, at, *args)

    journal.append = stopping
    try:
        ws.undo()
    finally:
        journal.append = append
        ws.store.apply.release() if getattr(ws.store.apply, "held", False) else None


def test_a_deadline_is_partial_on_record_or_denied(session, ws, project):
    for folder in range(40):
        (project / f"d{folder}").mkdir()
        for number in range(40):
            (project / f"d{folder}" / f"{number}").write_text("x")
    environ = {"TAKEBACK_CHECKPOINTS_SCAN_DEADLINE": "0.000001"}
    session.before("1", "Bash", {"command": "make"}, environ=environ)
    assert "not captured" in records("failed")[-1].what
    told = session.before("2", "Bash", {"command": "make"}, environ={**environ, "TAKEBACK_HOOKS_FAILURE": "closed"})
    assert is_denied(told)
    assert [b.call.key for b in ws.history().brackets.values() if not b.closed] == ["1"]


def test_what_is_denied_for_want_of_a_capture_is_not_journaled_as_done(session, ws, project):
    for folder in range(40):
        (project / f"d{folder}").mkdir()
        (project / f"d{folder}" / "x").write_text("x")
    environ = {"TAKEBACK_CHECKPOINTS_SCAN_DEADLINE": "0.000001", "TAKEBACK_HOOKS_FAILURE": "closed"}
    assert is_denied(session.before("1", "Bash", {"command": "echo x > /tmp/elsewhere"}, environ=environ))
    assert ws.effects() == []


def test_a_call_below_a_run_that_can_be_captured_is_the_agents(session, ws, project):
    begun = ws.checkpoint("run")
    with runs_at_work.mark(runs_at_work.folder_in(ws.store.folder) / begun.id):
        session.shell("1", "echo x > made", environ={"TAKEBACK_RUN": begun.id})
    assert effects(ws) == [("Bash: echo x > made · 1 file", ["claude"], ["made"])]


def test_an_after_event_never_denies(session, ws):
    session.before("1", "Bash", {"command": "make"})
    break_store(ws)
    environ = {"TAKEBACK_HOOKS_FAILURE": "closed"}
    assert session.after("1", "Bash", {"command": "make"}, environ=environ) == {}
    assert session.prompt("next", environ=environ) == ""
    assert len(records("failed")) == 2


def test_a_bug_is_no_traceback(session, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(takeback.workspace.Workspace, "begin_call", broken)
    told = session.before("1", "Bash", {"command": "make"})
    assert "ZeroDivisionError" in told["systemMessage"]
    assert "ZeroDivisionError: a bug" in records("failed")[-1].what
    assert is_denied(session.before("1", "Bash", {"command": "make"}, environ={"TAKEBACK_HOOKS_FAILURE": "closed"}))


def test_status_says_which_hook_failed_and_when(session, ws, project):
    answer(Asked("gemini", "BeforeTool", b"nonsense", str(project), os.environ))
    session.send("BrandNewEvent")  # which is noted, and no failure
    words = [sys.executable, "-m", "takeback", "-C", str(project), "status"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "the last hook of gemini failed just now: " in shown
    assert "claude" not in shown
    told = json.loads(subprocess.run([*words, "--json"], capture_output=True, check=True).stdout)
    assert [each["agent"] for each in told["hooks_failed"]] == ["gemini"]


def test_status_tells_of_failures_in_its_own_workspace_only(ws, project, tmp_path):
    answer(Asked("gemini", "BeforeTool", b"nonsense", str(tmp_path), os.environ))
    answer(Asked("claude", "PreToolUse", b"{}", str(project), {**os.environ, "TAKEBACK": "0"}))
    assert [r.root for r in records("failed")] == ["", ""]
    words = [sys.executable, "-m", "takeback", "-C", str(project), "status"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "the last hook of" not in shown
    told = json.loads(subprocess.run([*words, "--json"], capture_output=True, check=True).stdout)
    assert told["hooks_failed"] == []


def test_below_a_run_that_shields_the_store_it_keeps_quiet(session, ws):
    lock = ws.store.folder / "store.lock"
    lock.unlink()
    lock.mkdir()  # which cannot be opened for writing either, even by root
    assert session.before("1", "Bash", {"command": "make"}, environ={"TAKEBACK_RUN": "1"}) == {}


# -- whatever is sent --------------------------------------------------------------


def odd(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON value, of the sorts that break programs."""
    leaves = [
        None, True, 0, -1, 10**40, 1e308, "", "\0", "\ud800", "../../etc/passwd", "/", "~", "x" * 5_000, "⚙\n\x1b[31m",
        "*** Add File: \0", "PreToolUse", "Bash", "Write", "mcp__a__b", "mcp__", "takeback-",
    ]  # fmt: skip
    if depth > 3 or rng.random() < 0.5:
        return rng.choice(leaves)
    if rng.random() < 0.5:
        return [odd(rng, depth + 1) for _ in range(rng.randrange(4))]
    names = [
        "command",
        "file_path",
        "path",
        "input",
        "output",
        "args",
        "tool",
        "parts",
        "annotations",
        "text",
        "\ud800",
    ]
    return {rng.choice(names): odd(rng, depth + 1) for _ in range(rng.randrange(4))}


@pytest.mark.parametrize("seed", range(4))
def test_hostile_payloads(ws, project, seed):
    rng = random.Random(seed)
    fields = [
        "session_id", "sessionId", "cwd", "prompt", "tool_name", "toolName", "tool_input", "toolArgs", "tool_use_id",
        "agent_id", "hook_event_name", "input", "output", "transcript_path", "mcp_context", "tool_response", "source",
        "workspace_roots", "directory", "parentID", "mcp_server", "timestamp",
    ]  # fmt: skip
    environ = {**os.environ, "TAKEBACK_HOOKS_FAILURE": rng.choice(["open", "closed"])}
    for _ in range(60):
        agent = agents.load(rng.choice(AGENTS))
        event = rng.choice([*agent.events, "Nonsense"])
        tool = rng.choice([*agent.tools, "apply_patch", "mcp__a__b", "nonsense"])
        payload = {
            "hook_event_name": event, "tool_name": tool, "toolName": tool, "cwd": str(project), "directory": str(project),
            "session_id": "s", "tool_input": {"command": "x", "file_path": str(project / "x")},
        }  # fmt: skip
        payload |= {field: odd(rng) for field in rng.sample(fields, rng.randrange(6))}
        reply = answer(Asked(agent.name, event, json.dumps(payload).encode(), str(project), environ))
        assert reply.code in (0, 2)
        assert not reply.out or isinstance(json.loads(reply.out), dict)
    bugs = [r.what for r in records("failed") if "Error" in r.what and "JSONDecodeError" not in r.what]
    assert bugs == []


# -- as a program ------------------------------------------------------------------


def run(project: Path, payload: bytes, *words: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "takeback", "hook", *words],
        input=payload, cwd=project, env={**os.environ, **environ}, capture_output=True, check=False, timeout=60,
    )  # fmt: skip


def test_the_verb_answers_on_standard_output_and_knows_the_agents_process(session, ws, project):
    call = {"session_id": "p", "transcript_path": "/t", "tool_name": "Bash", "tool_input": {"command": "make"}}
    payload = {**call, "cwd": str(project), "hook_event_name": "PreToolUse", "tool_use_id": "1"}
    ran = run(project, json.dumps(payload).encode(), "claude")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert json.loads(ran.stdout)["systemMessage"].startswith("⚙ checkpoint")
    (bracket,) = ws.history().brackets.values()
    assert bracket.caller.pid == os.getpid()
    assert bracket.caller.started


@pytest.mark.parametrize("words", [(), ("claude",), ("nobody",), ("claude", "PreToolUse", "more", "words")])
def test_the_verb_never_fails(project, words):
    ran = run(project, b"nonsense", *words)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_the_verb_in_a_folder_that_is_gone(project):
    gone = project / "gone"
    gone.mkdir()
    code = f"import os,sys; os.rmdir({str(gone)!r}); from takeback.surfaces.cli import main; main(['hook', 'claude'])"
    ran = subprocess.run([sys.executable, "-c", code], input=b"{}", cwd=gone, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_hidden_from_the_one_screen_help():
    helped = subprocess.run([sys.executable, "-m", "takeback", "--help"], capture_output=True, text=True, check=True)
    assert "\n  hook " not in helped.stdout
    helped = subprocess.run(
        [sys.executable, "-m", "takeback", "help", "hook"], capture_output=True, text=True, check=True
    )
    assert "AGENT [EVENT]" in helped.stdout


@pytest.mark.parametrize("name", ["cwd", "workdir", "directory", "dir_path", "working_directory"])
def test_a_command_is_judged_in_the_folder_it_is_told_to_run_in(session, ws, tmp_path, name):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    session.prompt("tidy")
    session.before("1", "Bash", {"command": "touch made", name: str(elsewhere)})
    session.after("1", "Bash", {"command": "touch made", name: str(elsewhere)})
    assert [act.target for act in ws.effects()] == [str(elsewhere / "made")]


# -- how a call ended that no after-event tells of: Claude Code's transcript ---------------------------------------


class Transcript:
    """The file that Claude Code writes, with the lines that it was seen to write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def line(self, at: float, content: list[dict[str, Any]], **more: Any) -> None:
        stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"type": "user", "promptId": "p", "timestamp": stamp, "entrypoint": "cli", **more}
        with self.path.open("a") as file:
            file.write(json.dumps({**line, "message": {"role": "user", "content": content}}) + "\n")

    def rejected(self, key: str, at: float, ran: bool) -> None:
        """What both a No and Esc leave; only what follows tells whether it ran."""
        said = {"type": "tool_result", "tool_use_id": key, "is_error": True, "content": "The user doesn't want to"}
        self.line(at, [said], toolUseResult="User rejected tool use", toolDenialKind="user-rejected")
        more = {"interruptedMessageId": "msg_1"} if ran else {}
        self.line(at, [{"type": "text", "text": "[Request interrupted by user for tool use]"}], **more)


@pytest.fixture
def transcript(tmp_path):
    return Transcript(tmp_path / "transcript.jsonl")


def whose(ws: Any) -> dict[str, str]:
    """Path ─► who, with "?" where it is uncertain."""
    return {
        path.decode(): ", ".join(sorted(e.actors)) + "?" * e.uncertain
        for e in ws.history().effects
        if not e.takeback
        for path in e.changes
    }


def test_a_call_that_a_person_refused_owns_nothing(session, ws, project, transcript):
    where = {"transcript_path": str(transcript.path)}
    session.prompt("one", **where)
    session.before("1", "Bash", {"command": "make"}, **where)
    session.send("PermissionRequest", tool_name="Bash", tool_input={"command": "make"}, **where)
    (project / "at-the-prompt.txt").write_text("mine\n")
    transcript.rejected("1", time.time(), ran=False)
    (project / "later.txt").write_text("mine\n")
    ws.checkpoint("a person's")
    assert whose(ws) == {"at-the-prompt.txt": "", "later.txt": ""}
    (bracket,) = ws.history().brackets.values()
    assert bracket.closed and bracket.refused
    session.prompt("two", **where)
    outcome = ws.undo()
    assert not outcome.id or not outcome.results, "there is nothing of Claude's"
    assert (project / "later.txt").exists()


def test_a_call_that_was_interrupted_owns_what_changed_until_then(session, ws, project, transcript):
    where = {"transcript_path": str(transcript.path)}
    session.prompt("one", **where)
    session.before("1", "Bash", {"command": "make"}, **where)
    (project / "made.txt").write_text("made\n")
    time.sleep(0.03)
    transcript.rejected("1", time.time(), ran=True)
    time.sleep(0.35)  # a command that is stopped may take a moment to end
    ws.close_stopped()  # as the resident process does, which then looks
    (project / "mine.txt").write_text("mine\n")
    session.prompt("two", **where)
    assert whose(ws) == {"made.txt": "claude", "mine.txt": ""}
    assert ws.undo().whole
    assert (project / "mine.txt").exists() and not (project / "made.txt").exists()


def test_a_call_that_was_approved_late_and_then_interrupted_is_uncertain(session, ws, project, transcript):
    where = {"transcript_path": str(transcript.path)}
    session.prompt("one", **where)
    session.before("1", "Bash", {"command": "make"}, **where)
    session.send("PermissionRequest", tool_name="Bash", tool_input={"command": "make"}, **where)
    (project / "whose.txt").write_text("?\n")
    time.sleep(0.03)
    transcript.rejected("1", time.time(), ran=True)
    time.sleep(0.35)  # a command that is stopped may take a moment to end
    ws.close_stopped()  # as the resident process does, which then looks
    (project / "mine.txt").write_text("mine\n")
    session.send("Stop", **where)
    ws.checkpoint("a person's")
    assert whose(ws) == {"whose.txt": "claude?", "mine.txt": ""}


def test_a_subagents_call_is_in_a_transcript_of_its_own(session, ws, project, tmp_path, transcript):
    where = {"transcript_path": str(transcript.path), "agent_id": "a1"}
    own = tmp_path / "transcript" / "subagents" / "agent-a1.jsonl"
    own.parent.mkdir(parents=True)
    session.prompt("one", transcript_path=str(transcript.path))
    session.before("1", "Bash", {"command": "make"}, **where)
    Transcript(own).rejected("1", time.time(), ran=False)
    (project / "mine.txt").write_text("mine\n")
    ws.checkpoint("a person's")
    assert whose(ws) == {"mine.txt": ""}


@pytest.mark.parametrize("odd", ["", "{", "[]\n", '{"type": "user"}\n', '{"type": "user", "message": 7}\n', "\0\xff"])
def test_a_transcript_that_says_nothing_leaves_a_call_at_work(session, ws, project, transcript, odd):
    where = {"transcript_path": str(transcript.path)}
    transcript.path.write_text(odd)
    session.prompt("one", **where)
    session.before("1", "Bash", {"command": "make"}, **where)
    (project / "made.txt").write_text("made\n")
    ws.checkpoint("while it runs")
    assert whose(ws) == {"made.txt": "claude"}
    session.prompt("two", **where)
    assert [b.cut for b in ws.history().brackets.values()] == [True]
