"""An agent that goes on while a take-back is interrupted: what it does is named after it, and never for certain."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.journal import brackets
from takeback.journal.brackets import Call, Caller
from takeback.model.effects import IRREVERSIBLE, Plan
from takeback.model.outside import NewAct
from takeback.system import processes

CLAUDE = Caller("claude", "s1")
CODEX = Caller("codex", "s2", one_at_a_time=True)
NOBODY, UNCERTAIN = "", "claude?"


class Killed(BaseException):
    """What no program can catch."""


def bash(key: str) -> Call:
    return Call(key, "Bash", "Bash: make")


def write(key: str, path: str) -> Call:
    return Call(key, "Write", f"Write {path}", (path.encode(),), scans=False)


@pytest.fixture(autouse=True)
def told_at_once(monkeypatch):
    """Agents tell without delay, so that the tests need not wait for long."""
    monkeypatch.setattr(brackets, "EARLY", 0.02)


@pytest.fixture
def ws(tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text("one\n")
    with takeback.open(root, create=True) as opened:
        opened.checkpoint("start")
        yield opened


def put(ws: Any, path: str, text: str = "new\n") -> None:
    """Some time after what was before, and before what comes next."""
    time.sleep(0.03)
    (ws.root / path).write_text(text)
    time.sleep(0.03)


def kill_a_rollback(ws: Any, monkeypatch: pytest.MonkeyPatch, when: str = "_conclude") -> None:
    """Claude changed a.txt and made made.txt; the rollback of both is killed before or after it has done so."""
    ws.begin_turn(CLAUDE, "first")
    ws.begin_call(CLAUDE, bash("0"))
    (ws.root / "a.txt").write_text("two\n")
    (ws.root / "made.txt").write_text("made\n")
    ws.end_call(CLAUDE, bash("0"))
    interrupt(ws, monkeypatch, when)


def interrupt(ws: Any, monkeypatch: pytest.MonkeyPatch, when: str = "_conclude", everything: bool = False) -> None:
    def dies(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(
            "takeback.domains.files.Files.apply" if when == "apply" else "takeback.apply.executor.Executor._conclude",
            dies,
        )
        with pytest.raises(Killed):
            ws.rollback("start", everything=everything)
    assert ws.interrupted() == "a rollback was interrupted"


def told(ws: Any, what: str, *given: Any, **how: Any) -> None:
    """What a hook tells meanwhile: it fails, and the agent goes on."""
    with pytest.raises(takeback.TakebackError, match="a rollback was interrupted"):
        getattr(ws, what)(*given, **how)


def whose(ws: Any, *paths: str) -> dict[str, str]:
    """Who changed each of these last, with "?" where it is uncertain."""
    found = {p.decode(): e for e in ws.history().effects if not e.takeback for p in e.changes}
    return {path: ", ".join(sorted(found[path].actors)) + "?" * found[path].uncertain for path in paths}


@pytest.fixture(params=["apply", "_conclude"])
def killed(request, ws, monkeypatch):
    kill_a_rollback(ws, monkeypatch, request.param)
    return ws


@pytest.mark.parametrize("abort", [False, True])
def test_what_an_agent_does_meanwhile_is_named_after_it_and_never_for_certain(killed, abort):
    put(killed, "before.txt")
    told(killed, "begin_turn", CLAUDE, "second")
    told(killed, "begin_call", CLAUDE, bash("1"))
    put(killed, "b.txt", "claude\n")
    put(killed, "new.txt")
    told(killed, "end_call", CLAUDE, bash("1"))
    put(killed, "after.txt")
    told(killed, "begin_call", CLAUDE, write("2", "written.txt"))
    put(killed, "written.txt")
    put(killed, "beside.txt")
    told(killed, "end_call", CLAUDE, write("2", "written.txt"))
    assert killed.resume(abort=abort).whole
    put(killed, "later.txt")
    killed.checkpoint("look")
    claudes = dict.fromkeys(("b.txt", "new.txt", "written.txt"), UNCERTAIN)
    either = dict.fromkeys(("after.txt", "beside.txt", "later.txt"), UNCERTAIN)  # nobody could look after the call
    assert whose(killed, "before.txt", *claudes, *either) == {"before.txt": NOBODY, **claudes, **either}
    assert (killed.root / "a.txt").read_text() == ("two\n" if abort else "one\n")
    assert (killed.root / "made.txt").exists() == abort
    last = [e for e in killed.history().effects if not e.takeback and e.uncertain][-1]
    assert [killed.history().agent_turns[turn].prompt for turn in last.turns] == ["second"]
    assert not brackets.open_ones(killed.store.journal)
    assert not killed.verify().problems


def test_a_take_back_asks_about_it_and_leaves_it_where_nobody_answers(killed):
    told(killed, "begin_turn", CLAUDE, "second")
    told(killed, "begin_call", CLAUDE, bash("1"))
    put(killed, "b.txt", "claude\n")
    told(killed, "end_call", CLAUDE, bash("1"))
    killed.resume()
    plan: Plan = killed.plan("undo")
    assert not plan.steps and [unit.path for unit in plan.asks["uncertain"]] == [b"b.txt"]
    assert killed.take_back("undo", also=["uncertain"]).whole
    assert (killed.root / "b.txt").read_text() == "one\n"


def test_a_path_of_the_take_back_that_an_agent_writes_meanwhile_has_drifted_and_is_the_agents(ws, monkeypatch):
    kill_a_rollback(ws, monkeypatch, "apply")
    told(ws, "begin_call", CLAUDE, bash("1"))
    put(ws, "a.txt", "three\n")
    told(ws, "end_call", CLAUDE, bash("1"))
    outcome = ws.resume()
    assert {r.path: r.result for r in outcome.results} == {b"a.txt": "kept", b"made.txt": "done"}
    ws.checkpoint("look")
    assert whose(ws, "a.txt") == {"a.txt": UNCERTAIN} and (ws.root / "a.txt").read_text() == "three\n"


def test_what_a_call_did_that_began_before_and_ended_meanwhile_is_uncertain_until_somebody_looks(ws, monkeypatch):
    (ws.root / "a.txt").write_text("mine\n")
    ws.begin_turn(CLAUDE, "go")
    ws.begin_call(CLAUDE, bash("1"))
    interrupt(ws, monkeypatch, everything=True)
    put(ws, "new.txt")
    told(ws, "end_call", CLAUDE, bash("1"), failed=True)
    (bracket,) = ws.history().brackets.values()
    assert not bracket.is_open and bracket.failed
    put(ws, "after.txt")
    ws.resume()
    ws.checkpoint("look")
    assert whose(ws, "new.txt", "after.txt") == dict.fromkeys(("new.txt", "after.txt"), UNCERTAIN)
    (bracket,) = ws.history().brackets.values()
    assert bracket.closed and bracket.failed and not bracket.cut


def test_a_call_that_was_refused_meanwhile_owns_nothing(killed):
    told(killed, "begin_call", CLAUDE, bash("1")._replace(asked=True))
    told(killed, "refuse_call", CLAUDE, bash("1"), time.time())
    put(killed, "after.txt")
    killed.resume()
    killed.checkpoint("look")
    assert whose(killed, "after.txt") == {"after.txt": NOBODY}
    assert [b.refused for b in killed.history().brackets.values()] == [False, True]


@pytest.mark.parametrize("how", ["rests", "ends", "is asked", "goes on", "dies"])
def test_where_nobody_told_its_end_it_is_uncertain(killed, how):
    process = os.getpid(), processes.started(os.getpid())
    agent = (CODEX if how == "goes on" else CLAUDE)._replace(pid=process[0], started=process[1])
    told(killed, "begin_call", agent, bash("1"))
    put(killed, "new.txt")
    if how in ("rests", "ends"):
        told(killed, "end_turn", agent, whole_session=how == "ends")
    elif how == "is asked":
        told(killed, "begin_turn", agent, "second")
    elif how == "goes on":
        told(killed, "begin_call", agent, write("2", "written.txt"))
    else:
        told(killed, "end_gone", processes.Process(*process), time.time())
    assert not [b for b in brackets.at_work(killed.store.journal) if b.call.scans]
    killed.resume()
    killed.checkpoint("look")
    assert whose(killed, "new.txt") == {"new.txt": f"{agent.agent}?"}


def test_a_call_of_which_nothing_more_is_heard_is_uncertain_and_still_open(killed):
    told(killed, "begin_call", CLAUDE, bash("1"))
    put(killed, "new.txt")
    killed.resume()
    put(killed, "later.txt")
    killed.checkpoint("look")
    assert whose(killed, "new.txt", "later.txt") == dict.fromkeys(("new.txt", "later.txt"), UNCERTAIN)
    killed.end_call(CLAUDE, bash("1"))
    assert not brackets.open_ones(killed.store.journal)


def test_the_next_call_closes_what_ended_meanwhile(killed):
    told(killed, "begin_call", CLAUDE, bash("1"))
    put(killed, "new.txt")
    told(killed, "end_call", CLAUDE, bash("1"))
    killed.resume()
    killed.begin_call(CLAUDE, write("2", "written.txt"))
    assert [b.call.key for b in brackets.open_ones(killed.store.journal)] == ["2"]
    put(killed, "written.txt")
    killed.end_call(CLAUDE, write("2", "written.txt"))
    assert whose(killed, "new.txt", "written.txt") == {"new.txt": UNCERTAIN, "written.txt": "claude"}


def test_what_it_did_outside_the_files_is_told_once(killed):
    act = NewAct("http", "POST example.com", "example.com", None, IRREVERSIBLE)
    told(killed, "begin_call", CLAUDE, bash("1")._replace(acts=(act,)))
    told(killed, "end_call", CLAUDE, bash("1"))
    assert [effect.state for effect in killed.effects()] == ["done"]
    killed.resume()
    killed.checkpoint("look")
    assert [effect.state for effect in killed.effects()] == ["done"]


def test_each_is_journaled_once_however_many_hooks_tell_of_it(killed):
    for _ in range(2):
        told(killed, "begin_turn", CLAUDE, "second")
    for _ in range(2):
        told(killed, "begin_call", CLAUDE, bash("1"))
    for _ in range(2):
        told(killed, "end_call", CLAUDE, bash("1"))
    assert [turn.prompt for turn in killed.history().agent_turns.values()] == ["first", "second"]
    kinds = [row.kind for row in killed.store.journal.rows(kinds=("open", "close"))]
    assert kinds == ["open", "close", "open", "close"]


def test_the_agent_hears_of_it_once_it_can_be_told(killed):
    told(killed, "begin_turn", CLAUDE, "second")
    killed.resume()
    assert [takeback.verb for takeback in killed.begin_turn(CLAUDE, "third").told] == ["rollback"]


def test_a_call_that_is_denied_begins_nothing(killed):
    killed.settings = killed.settings._replace(failure="closed")
    told(killed, "begin_turn", CLAUDE, "second")
    told(killed, "begin_call", CLAUDE, bash("1"))
    assert len(killed.history().brackets) == 1
    assert [turn.prompt for turn in killed.history().agent_turns.values()] == ["first", "second"]


def test_a_call_that_must_be_looked_into_begins_when_it_was(killed):
    told(killed, "begin_call_unless", CLAUDE, bash("1"), lambda: True)
    assert len(killed.history().brackets) == 1
    told(killed, "begin_call_unless", CLAUDE, bash("1"), lambda: False)
    assert len(killed.history().brackets) == 2


def test_a_turn_of_a_thread_that_is_refused_has_not_begun(killed):
    from takeback.threads import turns as thread_turns

    with pytest.raises(takeback.TakebackError, match="interrupted"):
        thread_turns.begin(killed, "graph", "t1", "go")
    assert [turn.prompt for turn in killed.history().agent_turns.values()] == ["first"]
    assert not brackets.open_ones(killed.store.journal)


def test_an_older_reader_of_the_store_takes_the_call_for_over(killed):
    """Its `oldest` holds for those who do not know the word."""
    told(killed, "begin_call", CLAUDE, bash("1"))
    told(killed, "end_call", CLAUDE, bash("1"))
    row = killed.store.journal.last("close")
    assert row.body["unseen"] and row.body["oldest"] == killed.store.journal.last("open").seq


def test_it_holds_across_processes(killed, tmp_path: Path):
    told(killed, "begin_call", CLAUDE, bash("1"))
    put(killed, "new.txt")
    told(killed, "end_call", CLAUDE, bash("1"))
    put(killed, "after.txt")
    killed.close()
    with takeback.open(tmp_path / "project") as again:
        again.resume()
        again.checkpoint("look")
        assert whose(again, "new.txt", "after.txt") == dict.fromkeys(("new.txt", "after.txt"), UNCERTAIN)


def test_a_hook_that_fails_meanwhile_leaves_what_it_was_told(killed):
    from contextlib import nullcontext

    from takeback.surfaces.hook import Asked, answer

    def hear(event: str, **payload: Any) -> str:
        common = {"hook_event_name": event, "session_id": "s1", "cwd": str(killed.root)}
        common |= {"transcript_path": str(killed.root.parent / "t.jsonl"), "permission_mode": "default"}
        asked = Asked("claude", event, json.dumps({**common, **payload}).encode(), str(killed.root), os.environ)
        return answer(asked, lambda *_: nullcontext(killed)).out

    def call(key: str, command: str) -> dict[str, Any]:
        return {"tool_name": "Bash", "tool_use_id": key, "tool_input": {"command": command}}

    hear("UserPromptSubmit", prompt="second")
    assert "a rollback was interrupted" in hear("PreToolUse", **call("1", "touch new.txt"))
    put(killed, "new.txt")
    hear("PostToolUse", **call("1", "touch new.txt"), tool_response={})
    assert '"ask"' in hear("PreToolUse", **call("2", "curl -X POST https://example.com"))
    hear("Stop")
    killed.resume()
    killed.checkpoint("look")
    assert whose(killed, "new.txt") == {"new.txt": UNCERTAIN}
    (asked,) = killed.stopped_calls().values()
    assert asked.call in killed.history().brackets
