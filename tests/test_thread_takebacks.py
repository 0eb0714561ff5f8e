"""Threads in take-backs: with the files, without them, back again; what others moved stays, what was cut off is
finished."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
import takeback.model.effects
from conformance.domain import World, domain_conformance
from takeback.config.settings import load
from takeback.domains.threads.apply import ThreadStates
from takeback.errors import NotFound, Stale, UsageError
from takeback.journal.brackets import Call, Caller
from takeback.model.effects import FILE, KEPT, path_of_thread, state_of_thread
from takeback.model.thread_states import NewState
from takeback.store import layout
from takeback.threads import turns as thread_turns
from takeback.workspace import Workspace


def state(ws: Workspace, thread: str = "main", ns: str = "") -> dict[str, object] | None:
    head = ws.threads.find(thread, ns=ns)
    return None if head is None else ws.threads.load(head)


def sub(ws: Workspace, thread: str, ns: str, value: int) -> str:
    """A state checkpoint of a namespace below the root."""
    return ws.threads.put(NewState(thread, ns, "", "", {"n": str(value).encode()})).id


def results(outcome: takeback.model.effects.Outcome) -> list[tuple[str, str]]:
    return [(r.path.decode(), r.result) for r in outcome.results]


def take_back(project: Path, *words: str, code: int = 0) -> tuple[str, str]:
    run = subprocess.run(
        [sys.executable, "-m", "takeback", *words, "-C", str(project)], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout, run.stderr


# -- with the files, and without ---------------------------------------------


def test_rollback_leaves_threads_and_says_how_far_ahead_they_are(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    ws.threads.save("main", {"n": 1})
    checkpoint = ws.checkpoint("one")
    (project / "a").write_text("2")
    ws.threads.save("main", {"n": 2})
    ws.threads.save("main", {"n": 3})
    outcome = ws.rollback("one")
    assert (project / "a").read_text() == "1" and state(ws) == {"n": 3}
    assert results(outcome) == [("a", "done")]
    assert outcome.plan.distance.state == (("main", 2, f"takeback rollback {checkpoint.id[:8]} --with-state"),)
    assert outcome.plan.distance.files == 0


def test_rollback_with_state_is_one_take_back(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    first = ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    (project / "a").write_text("2")
    newest = ws.threads.save("main", {"n": 2})
    ws.threads.save("other", {"n": 9})
    outcome = ws.rollback("one", state=True)
    assert results(outcome) == [("a", "done"), ("//main", "done"), ("//other", "done")], "threads come last"
    assert (project / "a").read_text() == "1" and state(ws) == {"n": 1} and state(ws, "other") is None
    head = ws.threads.get("main")
    assert (head.rolled_back_from, head.restored_from, head.source) == (newest.id, first.id, "rollback")
    assert outcome.plan.distance == takeback.model.effects.Distance()
    ws.redo()
    assert (project / "a").read_text() == "2" and state(ws) == {"n": 2} and state(ws, "other") == {"n": 9}
    assert ws.threads.get("main", newest.id) == newest, "nothing was deleted"
    ws.rollback("one", state=True)
    assert (project / "a").read_text() == "1" and state(ws) == {"n": 1}
    assert ws.verify().ok


def test_only_state_is_another_word_for_it(ws: Workspace, project: Path):
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    (project / "a").write_text("2")
    ws.threads.save("main", {"n": 2})
    outcome = ws.take_back("rollback", "one", only=("state",))
    assert results(outcome) == [("//main", "done")] and state(ws) == {"n": 1} and (project / "a").exists()
    outcome = ws.take_back("rollback", "one", state=True, without=("state",))
    assert results(outcome) == [("a", "done")] and state(ws) == {"n": 1}


def test_a_thread_alone_goes_to_any_of_its_state_checkpoints(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    ids = [ws.threads.save("main", {"n": n}).id for n in range(5)]
    outcome = ws.roll_back_thread("main", ids[2])
    assert state(ws) == {"n": 2} and results(outcome) == [("//main", "done")]
    assert ws.threads.get("main").restored_from == ids[2]
    ws.roll_back_thread("main", ids[0])
    assert state(ws) == {"n": 0}
    ws.redo()
    assert state(ws) == {"n": 2}
    ws.redo()
    assert state(ws) == {"n": 4}
    assert (project / "a").read_text() == "1"


def test_a_thread_alone_needs_no_tree_and_looks_at_none(project: Path):
    (project / "big").write_text("x" * 100)
    settings = load(project, os.environ)
    made = layout.create(settings.home, project, project.stat().st_ino)
    del made
    opened, meta = layout.open_store(settings.home, project, settings.portable)
    with Workspace(project, opened, settings, meta["inode"]) as ws:
        first = ws.threads.save("main", {"n": 1})
        ws.threads.save("main", {"n": 2})
        outcome = ws.roll_back_thread("main", first.id[:10])
        assert state(ws) == {"n": 1} and outcome.plan.distance.files == 0
        ws.redo()
        assert state(ws) == {"n": 2}
        ws.apply(ws.plan("thread", "main", first.id))
        assert state(ws) == {"n": 1}
        assert not list(ws.store.journal.rows(kinds=("checkpoint",))), "nothing was scanned"
        assert not (opened.folder / "index").exists()
        ws.checkpoint("now")
        (project / "big").write_text("y")
        ws.rollback("now")
        assert (project / "big").read_text() == "x" * 100, "and protecting it later begins as ever"


def test_with_files_takes_the_world_to_that_moment(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    ws.checkpoint("start of work")
    first = ws.threads.save("main", {"n": 1})
    (project / "a").write_text("2")
    (project / "b").write_text("new")
    ws.threads.save("main", {"n": 2})
    alone = ws.plan("thread", "main", first.id)
    assert alone.distance.files == 0, "nobody has looked yet"
    ws.checkpoint("later")
    alone = ws.plan("thread", "main", first.id)
    command = f"takeback thread rollback main {first.id[:8]} --with-files"
    assert alone.distance == takeback.model.effects.Distance((), 2, command, names=("a", "b"))
    outcome = ws.roll_back_thread("main", first.id, with_files=True)
    assert {path for path, _ in results(outcome)} == {"a", "b", "//main"}
    assert (project / "a").read_text() == "1" and not (project / "b").exists() and state(ws) == {"n": 1}
    assert outcome.plan.request.label == f"{first.id[:8]} of thread main"
    ws.redo()
    assert (project / "a").read_text() == "2" and (project / "b").read_text() == "new" and state(ws) == {"n": 2}


def test_the_head_is_nothing_to_take_back(ws: Workspace, project: Path):
    ws.threads.save("main", {"n": 1})
    head = ws.threads.save("main", {"n": 2})
    outcome = ws.roll_back_thread("main", head.id)
    assert (outcome.id, outcome.results) == ("", ()) and ws.threads.get("main") == head
    assert not any(row.kind == "takeback" for row in ws.log())


def test_a_head_that_a_take_back_made_stands_after_its_files(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    (project / "a").write_text("2")
    ws.threads.save("main", {"n": 2})
    ws.rollback("one", state=True)
    back = ws.threads.get("main")
    (project / "a").write_text("3")
    ws.threads.save("main", {"n": 3})
    ws.roll_back_thread("main", back.id, with_files=True)
    assert (project / "a").read_text() == "1" and state(ws) == {"n": 1}


def test_unknown_ids_are_named(ws: Workspace):
    mine = ws.threads.save("main", {"n": 1})
    other = ws.threads.save("other", {"n": 1})
    for thread, id, said in (
        ("main", "nonesuch", "nonesuch"), ("main", other.id, "other"), ("nobody", mine.id, "nobody")
    ):  # fmt: skip
        with pytest.raises(NotFound, match=said):
            ws.roll_back_thread(thread, id)
    with pytest.raises(UsageError):
        ws.roll_back_thread("main", "")


def test_async_twin(ws: Workspace):
    first = ws.threads.save("main", {"n": 1})
    ws.threads.save("main", {"n": 2})
    asyncio.run(ws.aroll_back_thread("main", first.id))
    assert state(ws) == {"n": 1}


def test_the_log_tells_in_which_domains_a_take_back_was(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    first = ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    ws.threads.save("main", {"n": 2})
    ws.checkpoint("two")
    ws.roll_back_thread("main", first.id)
    (row,) = ws.log("kind:takeback")
    assert (row.domain, row.domains) == ("state", ("state",))
    assert ws.log("kind:takeback domain:state") == [row] and not ws.log("kind:takeback domain:files")
    (project / "a").write_text("2")
    ws.threads.save("main", {"n": 3})
    ws.rollback("one", state=True, everything=True)
    row = ws.log("kind:takeback")[0]
    assert row.domains == ("files", "state")
    assert row in ws.log("kind:takeback domain:state") and ws.log("kind:takeback domain:files") == [row]


# -- targets between two looks, namespaces -------------------------------------


def test_a_target_in_the_middle_of_what_one_look_found(ws: Workspace, project: Path):
    ws.checkpoint("empty")
    ids = [ws.threads.save("main", {"n": n}).id for n in range(4)]
    ws.checkpoint("four")
    assert [row.summary for row in ws.log("domain:state")] == ["thread main · 4 state checkpoints"]
    ws.roll_back_thread("main", ids[1])
    assert state(ws) == {"n": 1}
    ws.rollback("empty", state=True)
    assert state(ws) is None
    ws.redo()
    assert state(ws) == {"n": 1}
    ws.redo()
    assert state(ws) == {"n": 3}
    ws.rollback("empty", state=True)
    ws.roll_back_thread("main", ids[2])
    assert state(ws) == {"n": 2}, "nothing shows since then, and yet it was another state"
    ws.rollback("four", state=True)
    assert state(ws) == {"n": 3}


def test_namespaces_go_with_their_thread(ws: Workspace):
    ws.threads.save("main", {"n": 1})
    inner = sub(ws, "main", "tools", 10)
    second = ws.threads.save("main", {"n": 2})
    sub(ws, "main", "tools", 20)
    sub(ws, "main", "late", 1)
    ws.threads.save("main", {"n": 3})
    ws.roll_back_thread("main", second.id)
    assert state(ws) == {"n": 2} and ws.threads.load(ws.threads.get("main", ns="tools")) == {"n": 10}
    assert ws.threads.find("main", ns="late") is None, "it was not there then"
    back = ws.threads.get("main")
    sub(ws, "main", "tools", 30)
    ws.threads.save("main", {"n": 4})
    ws.roll_back_thread("main", back.id)
    assert state(ws) == {"n": 2} and state(ws, ns="tools") == {"n": 10}, "a head that went back stands for all of it"
    ws.redo()
    assert state(ws) == {"n": 4} and state(ws, ns="tools") == {"n": 30}
    ws.roll_back_thread("main", inner)
    assert state(ws) == {"n": 1} and state(ws, ns="tools") == {"n": 10}


# -- turns -------------------------------------------------------------------


def test_undo_steps_over_state_unless_asked(ws: Workspace, project: Path):
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    (project / "a").write_text("2")
    ws.threads.save("main", {"n": 2})
    ws.checkpoint("two")
    ws.threads.save("main", {"n": 3})
    outcome = ws.undo()
    assert not (project / "a").exists() and state(ws) == {"n": 3}
    (stays,) = outcome.plan.distance.state
    assert (stays.thread, stays.ahead) == ("main", 2)
    ws.redo()
    outcome = ws.undo(state=True)
    assert results(outcome) == [("//main", "done")] and state(ws) == {"n": 2}, "the newest turn was of the thread alone"
    outcome = ws.undo(state=True)
    assert not (project / "a").exists() and state(ws) == {"n": 1}
    ws.redo(2)
    assert (project / "a").read_text() == "2" and state(ws) == {"n": 3}


def test_the_command_that_undo_names_takes_the_thread_too(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    (project / "a").write_text("2")
    ws.threads.save("main", {"n": 2})
    ws.threads.save("new one", {"n": 1})
    outcome = ws.undo()
    main, new = outcome.plan.distance.state
    words = main.command.split()
    assert words[:4] == ["takeback", "thread", "rollback", "main"]
    ws.roll_back_thread("main", words[4])
    assert state(ws) == {"n": 1}
    assert new.command.startswith("takeback revert ")
    ws.redo()
    ws.take_back("revert", *new.command.split()[2:])
    assert state(ws, "new one") is None


def test_an_actors_turn_takes_its_own_and_keeps_what_others_moved(ws: Workspace, project: Path):
    ws.threads.save("main", {"n": 0})
    ws.threads.save("yours", {"n": 0})
    ws.checkpoint("start")
    (project / "a").write_text("agent's")
    ws.threads.save("main", {"n": 1}, agent="agent")
    ws.checkpoint(actor="agent")
    ws.threads.save("main", {"n": 2})
    ws.threads.save("yours", {"n": 2})
    plan = ws.plan("rollback", "start", actors=["agent"], state=True)
    kept = [(s.path, s.verdict, s.note) for s in plan.kept]
    assert kept == [(b"//main", "drifted", "changed by you since")]
    assert {u.path for u in plan.left} >= {b"//yours"}
    ws.apply(plan)
    assert not (project / "a").exists() and state(ws) == {"n": 2} and state(ws, "yours") == {"n": 2}
    ws.rollback("start", state=True)
    assert state(ws) == {"n": 0} and state(ws, "yours") == {"n": 0}, "asked for threads, it takes whose they are"


def saved_by(ws: Workspace, words: str = "domain:state") -> list[tuple[str, str]]:
    """Whose each row of threads is, oldest first, and what it says."""
    return [(row.actor, row.summary) for row in reversed(ws.log(words))]


def test_what_was_saved_is_whose_saved_it_and_never_of_who_takes_the_next_checkpoint(ws: Workspace, project: Path):
    for n in (1, 2):
        ws.threads.save("main", {"n": n}, agent="bob")
    ws.threads.save("mine", {"n": 1})
    (project / "a").write_text("ann's")
    ws.checkpoint(actor="ann")
    assert saved_by(ws) == [
        ("bob", "thread main · 2 state checkpoints · bob"),
        ("", "thread mine · 1 state checkpoint"),
    ]
    outcome = ws.undo(actors=["ann"], state=True)
    assert results(outcome) == [("a", "done")] and state(ws) == {"n": 2} and state(ws, "mine") == {"n": 1}
    ws.undo(actors=["bob"], state=True)
    assert state(ws) is None and state(ws, "mine") == {"n": 1}


def test_of_several_who_saved_one_thread_each_has_what_he_saved(ws: Workspace, project: Path):
    ws.threads.save("main", {"n": 0})
    ws.checkpoint("start")
    for n, agent in enumerate(("bob", "ann", "ann", "bob", "", "ann"), 1):
        ws.threads.save("main", {"n": n}, agent=agent)
    ws.threads.save("other", {"n": 1}, agent="bob")
    (project / "a").write_text("carl's")
    ws.checkpoint(actor="carl")
    assert saved_by(ws)[1:] == [
        ("bob", "threads main, other · 2 state checkpoints · bob"),
        ("ann", "thread main · 2 state checkpoints · ann"),
        ("bob", "thread main · 1 state checkpoint · bob"),
        ("", "thread main · 1 state checkpoint"),
        ("ann", "thread main · 1 state checkpoint · ann"),
    ]
    plan = ws.plan("rollback", "start", actors=["ann"], state=True)
    assert [(s.path, s.verdict, s.note) for s in plan.steps] == [
        (b"//main", "exact", ""),
        (b"//main", "drifted", "changed by bob, you since"),
    ], "down to what a person saved"
    ws.apply(plan)
    assert state(ws) == {"n": 5} and state(ws, "other") == {"n": 1}
    (step,) = ws.plan("rollback", "start", actors=["ann", "bob"], state=True).kept
    assert (step.path, step.note) == (b"//main", "changed by you since")
    ws.rollback("start", state=True)
    assert state(ws) == {"n": 0} and state(ws, "other") is None
    assert ws.verify().ok


def test_what_was_saved_after_a_take_back_is_that_alone(ws: Workspace):
    first = ws.threads.save("main", {"n": 1}, agent="bob")
    ws.threads.save("main", {"n": 2}, agent="ann")
    ws.roll_back_thread("main", first.id)
    ws.threads.save("main", {"n": 3}, agent="carl")
    ws.checkpoint(actor="ann")
    *_, last = saved_by(ws, "domain:state kind:effect")
    assert last == ("carl", "thread main · 2 state checkpoints · carl")
    ws.undo(actors=["carl"], state=True)
    assert state(ws) == {"n": 1}


def test_what_was_made_good_before_anybody_looked_is_nobodys(ws: Workspace):
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("start")
    for n, agent in ((2, "bob"), (1, "ann")):
        ws.threads.save("main", {"n": n}, agent=agent)
    ws.checkpoint("same")
    assert len(saved_by(ws)) == 1
    ws.threads.save("main", {"n": 2}, agent="bob")
    ws.threads.save("main", {"n": 1}, agent="ann")
    ws.threads.save("main", {"n": 3}, agent="carl")
    ws.checkpoint("later")
    assert [actor for actor, _ in saved_by(ws)] == ["", "carl"]


def test_that_a_thread_was_removed_is_nobodys_work(ws: Workspace):
    ws.threads.save("main", {"n": 1}, agent="bob")
    ws.checkpoint("there")
    ws.threads.save("main", {"n": 2}, agent="bob")
    ws.threads.remove("main")
    ws.checkpoint(actor="ann")
    assert saved_by(ws)[-1] == ("", "thread main · gone")


def test_what_an_actor_saves_is_the_actors(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    assert ws.threads.save("main", {"n": 1}, capture=True, actor="ann").agent == "ann"
    assert ws.threads.save("main", {"n": 2}, capture=True, actor="ann", agent="planner").agent == "planner"
    (project / "a").write_text("2")
    ws.checkpoint(actor="bob")
    assert [actor for actor, _ in saved_by(ws)] == ["ann", "planner"]
    ws.undo(actors=["planner"], state=True)
    assert state(ws) == {"n": 1}
    ws.undo(actors=["ann"], state=True)
    assert state(ws) is None, "with the file that it was saved with"
    assert (project / "a").read_text() == "2"


def test_an_agent_that_only_remembers_leaves_a_persons_stretch_a_turn(ws: Workspace, project: Path):
    ws.checkpoint("start")
    ws.threads.save("main", {"n": 1}, agent="bob")
    (project / "mine").write_text("x")
    ws.undo()
    assert not (project / "mine").exists() and state(ws) == {"n": 1}


def test_a_thread_that_an_open_turn_is_of_is_that_turns_whoever_looks(ws: Workspace, project: Path):
    ws.checkpoint("start")
    turn = thread_turns.begin(ws, "graph", "main", "do it")
    ws.threads.save("main", {"n": 1}, agent="graph")
    ws.threads.save("other", {"n": 1}, agent="bob")
    ws.checkpoint(actor="ann")
    thread_turns.end(ws, turn)
    ws.threads.save("main", {"n": 2}, agent="graph")
    ws.checkpoint(actor="ann")
    assert [actor for actor, _ in saved_by(ws)] == ["graph", "bob", ""], "between its turns a person may have saved it"


def test_what_a_hooked_agent_saves_between_its_calls_is_its_newest_turns(ws: Workspace, project: Path):
    caller = Caller("claude", "s1")
    ws.begin_turn(caller, "plan it")
    ws.threads.save("main", {"n": 1}, agent="claude")
    ws.checkpoint(actor="ann")
    (row,) = ws.log("domain:state")
    assert row.actor == "claude" and row.prompt == "plan it"


def test_beside_a_call_that_names_its_paths_a_thread_is_its_savers(ws: Workspace, project: Path):
    caller, call = Caller("claude", "s1"), Call("1", "Write", "Write a", (b"a",), scans=False)
    ws.begin_turn(caller, "write it")
    ws.begin_call(caller, call)
    ws.threads.save("main", {"n": 1}, agent="bob")
    ws.checkpoint("now")
    assert saved_by(ws) == [("bob", "thread main · 1 state checkpoint · bob")]


def test_state_that_somebody_saved_keeps_no_file(ws: Workspace, project: Path):
    """An agent that only remembers does not make a person's edits somebody else's work."""
    ws.checkpoint("start")
    ws.threads.save("main", {"n": 1})
    ws.checkpoint(actor="agent")
    (project / "mine").write_text("x")
    ws.rollback("start")
    assert not (project / "mine").exists()


# -- drift -------------------------------------------------------------------


def test_what_was_saved_since_is_kept_and_force_takes_it(ws: Workspace):
    first = ws.threads.save("main", {"n": 1})
    ws.threads.save("main", {"n": 2})
    back = ws.roll_back_thread("main", first.id)
    ws.threads.save("main", {"n": 5})
    outcome = ws.redo()
    assert state(ws) == {"n": 5}
    assert [(r.path, r.result, r.note) for r in outcome.results] == [(b"//main", KEPT, "changed by you since")]
    ws.revert(back.id, force=True)
    assert state(ws) == {"n": 2}


def test_a_plan_is_stale_once_the_thread_moved(ws: Workspace):
    first = ws.threads.save("main", {"n": 1})
    ws.threads.save("main", {"n": 2})
    plan = ws.plan("thread", "main", first.id, save=True)
    ws.threads.save("main", {"n": 3})
    with pytest.raises(Stale):
        ws.apply(plan.id)
    assert state(ws) == {"n": 3}


def test_a_removed_thread_comes_back_until_its_rows_are_pruned(ws: Workspace):
    first = ws.threads.save("main", {"n": 1})
    ws.checkpoint("there")
    ws.threads.remove("main")
    ws.checkpoint("gone")
    assert [row.summary for row in ws.log("domain:state")][0] == "thread main · gone"
    ws.rollback("there", state=True)
    assert state(ws) == {"n": 1} and ws.threads.get("main").restored_from == first.id


def test_that_a_thread_is_gone_is_seen_though_its_rows_were_pruned(ws: Workspace):
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("there")
    ws.threads.remove("main")
    ws.prune()
    ws.checkpoint("gone")
    assert [row.summary for row in ws.log("domain:state")][0] == "thread main · gone"


def test_the_cache_is_only_a_cache(ws: Workspace, project: Path):
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    ws.threads.save("main", {"n": 2})
    ws.checkpoint("two")
    rows = len(ws.log("domain:state"))
    for spoil in (lambda p: p.unlink(), lambda p: p.write_bytes(b"nonsense")):
        spoil(ws.store.folder / "threads")
        ws.observer.forget()
        ws.checkpoint("same")
        assert len(ws.log("domain:state")) == rows, "what the journal says of a thread is what was known of it"
    ws.rollback("one", state=True)
    assert state(ws) == {"n": 1}


# -- agents' calls, outside effects ----------------------------------------------


def test_a_thread_that_a_call_moved_belongs_to_its_turn(ws: Workspace, project: Path):
    caller, call = Caller("claude", "s1"), Call("1", "Bash", "Bash: plan")
    ws.threads.save("main", {"n": 0})
    ws.begin_turn(caller, "plan it")
    ws.begin_call(caller, call)
    (project / "a").write_text("1")
    ws.threads.save("main", {"n": 1}, agent="planner")
    ws.end_call(caller, call)
    (row,) = ws.log("domain:state actor:claude")
    assert row.summary == "Bash: plan · thread main · 1 state checkpoint · planner" and row.prompt == "plan it"
    ws.undo()
    assert not (project / "a").exists() and state(ws) == {"n": 1}
    ws.redo()
    ws.undo(state=True)
    assert not (project / "a").exists() and state(ws) == {"n": 0}


def test_what_was_done_outside_goes_back_in_the_same_plan(ws: Workspace, project: Path, tmp_path: Path):
    (project / "a").write_text("1")
    ws.checkpoint("one")
    first = ws.threads.save("main", {"n": 1})
    (project / "a").write_text("2")
    marks = tmp_path / "marks"
    undo = [sys.executable, "-c", f"open({str(marks)!r}, 'a').write('undone')"]
    ws.record_command("made a thing", argv=undo)
    (project / "a").write_text("3")
    ws.threads.save("main", {"n": 2})
    left = ws.plan("thread", "main", first.id).distance
    assert (left.files, left.outside) == (1, 1)
    plan = ws.plan("thread", "main", first.id, with_files=True, save=True)
    assert [s.domain for s in plan.taken] == ["files", "command", "files", "state"], "the thread comes last, once"
    ws.approve(plan)
    outcome = ws.apply(plan)
    assert outcome.whole and marks.read_text() == "undone"
    assert (project / "a").read_text() == "1" and state(ws) == {"n": 1}
    ws.redo()
    assert (project / "a").read_text() == "3" and state(ws) == {"n": 2} and marks.read_text() == "undone"


def test_one_change_of_a_thread_is_reverted_by_its_id(ws: Workspace):
    ws.threads.save("main", {"n": 1})
    ws.checkpoint("one")
    ws.threads.save("main", {"n": 2})
    ws.checkpoint("two")
    newest, _ = ws.log("domain:state")
    ws.revert(newest.id)
    assert state(ws) == {"n": 1}
    ws.redo()
    ws.threads.save("main", {"n": 3})
    outcome = ws.revert(newest.id)
    assert state(ws) == {"n": 3} and results(outcome) == [("//main", KEPT)]


# -- pruned, damaged -------------------------------------------------------------


def test_pruning_files_leaves_threads_and_what_is_known_of_them(ws: Workspace, project: Path):
    first = ws.threads.save("main", {"n": 1})
    for n in range(2, 6):
        (project / "a").write_text(str(n))
        ws.threads.save("main", {"n": n})
        ws.checkpoint(f"c{n}")
    ws.prune(keep=1)
    assert ws.verify().ok
    rows = len(ws.log("domain:state"))
    ws.checkpoint("after")
    (ws.store.folder / "threads").unlink()
    ws.observer.forget()
    ws.checkpoint("and without the cache")
    assert len(ws.log("domain:state")) == rows, "nothing is told as new that is only forgotten"
    with pytest.raises(NotFound, match="horizon"):
        ws.roll_back_thread("main", first.id, with_files=True)
    ws.roll_back_thread("main", first.id)
    assert state(ws) == {"n": 1}, "live state stays, however old"
    ws.redo()
    assert state(ws) == {"n": 5} and (project / "a").read_text() == "5"


def test_state_that_was_removed_and_pruned_is_kept_and_named(ws: Workspace, project: Path):
    ws.threads.save("main", {"n": 1})
    ws.threads.save("other", {"n": 1})
    ws.checkpoint("there")
    ws.threads.save("other", {"n": 2})
    ws.threads.remove("main")
    ws.checkpoint("gone")
    ws.prune(keep=2)
    outcome = ws.rollback("there", state=True)
    assert sorted(results(outcome)) == [("//main", KEPT), ("//other", "done")]
    assert [s.note for s in outcome.plan.kept] == ["its earlier state was pruned"]
    assert state(ws, "other") == {"n": 1} and state(ws) is None


def test_a_damaged_thread_does_not_stop_a_take_back_of_files(ws: Workspace, project: Path):
    (project / "a").write_text("1")
    ws.checkpoint("one")
    seq = ws.threads.save("main", {"n": 2}).seq
    (project / "a").write_text("2")
    with sqlite3.connect(ws.store.folder / "journal.db") as db:
        db.execute("UPDATE log SET body = ? WHERE seq = ?", (b'{"thread": "main"}', seq))
    ws.close()
    with takeback.open(project) as again:
        again.rollback("one")
        assert (project / "a").read_text() == "1"
        again.status()
        again.checkpoint("go on")
        assert not again.verify().ok


# -- the domain ----------------------------------------------------------------


def test_the_domain_conforms(ws: Workspace):
    thread = "main"
    documents = [b""]
    for n in range(2):
        ws.threads.save(thread, {"n": n})
        documents.append(ws.threads.document(thread))
    for document in documents:
        ws.store.blobs.put(document)
    by_state = {state_of_thread(document): document for document in documents}

    def put(path: bytes, wanted: takeback.model.effects.State) -> None:
        with ws.writing():
            ws.threads.restore(thread, by_state[wanted])

    class Held(ThreadStates):
        def apply(self, *args: object, **more: object) -> list[takeback.model.effects.Result]:
            with ws.writing():
                return list(super().apply(*args, **more))  # type: ignore[arg-type]

    made = Held(ws.threads, ws.store.blobs.get)
    domain_conformance(lambda: World(made, path_of_thread(thread), list(by_state), put))
    assert all(s is None or s.kind == FILE for s in by_state)


# -- cut off -------------------------------------------------------------------

_KILLED = """
import os, signal, sys, takeback
from takeback.journal.journal import Journal
root, first, after, when, files = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5] == "files"
ws = takeback.open(root)
append, seen = Journal.append, []
def killed(self, rows, *args, **more):
    if not seen and rows[0].kind != "takeback":
        return append(self, rows, *args, **more)
    seen.append(rows[0].kind)
    if len(seen) == after and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    made = append(self, rows, *args, **more)
    if len(seen) == after:
        os.kill(os.getpid(), signal.SIGKILL)
    return made
Journal.append = killed
ws.roll_back_thread("main", first, with_files=files)
print("done")
"""


@pytest.fixture
def begun(project: Path) -> Iterator[tuple[Path, str]]:
    with takeback.open(project, create=True) as ws:
        (project / "a").write_text("1")
        ws.checkpoint("one")
        first = ws.threads.save("main", {"n": 1})
        sub(ws, "main", "tools", 1)
        (project / "a").write_text("2")
        ws.threads.save("main", {"n": 2})
        ws.checkpoint("two")
        yield project, first.id


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("abort", [False, True], ids=["finish", "abort"])
@pytest.mark.parametrize("files", ["alone", "files"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_killed_anywhere_it_is_finished_or_taken_back(
    begun: tuple[Path, str], after: int, when: str, files: str, abort: bool
):
    project, first = begun
    words = [str(project), first, str(after), when, files]
    run = subprocess.run([sys.executable, "-c", _KILLED, *words], capture_output=True, text=True, timeout=60)
    assert run.returncode == -signal.SIGKILL, run.stderr
    with takeback.open(project) as ws:
        is_begun = (after, when) != (1, "before")
        is_over = (after, when) == (3, "after")
        assert bool(ws.interrupted()) == (is_begun and not is_over)
        outcome = ws.resume(abort=abort)
        assert (outcome is not None) == (is_begun and not is_over)
        back = is_over or (is_begun and not abort)
        assert state(ws) == ({"n": 1} if back else {"n": 2})
        assert state(ws, ns="tools") == (None if back else {"n": 1})
        assert (project / "a").read_text() == ("1" if back and files == "files" else "2")
        assert not ws.interrupted() and ws.verify().ok
        heads = [s for s in ws.threads.list("main", ns="") if s.source == "rollback"]
        assert len(heads) <= 2, "nothing is appended twice"
        rows = len(ws.log("domain:state kind:effect"))
        ws.checkpoint("after")
        assert len(ws.log("domain:state kind:effect")) == rows, "what it did itself is nobody else's work"
        if back:
            ws.redo()
            assert state(ws) == {"n": 2} and (project / "a").read_text() == "2"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_was_saved_while_it_was_cut_off_is_kept(begun: tuple[Path, str]):
    project, first = begun
    words = [str(project), first, "1", "after", "alone"]
    subprocess.run([sys.executable, "-c", _KILLED, *words], capture_output=True, timeout=60)
    with takeback.open(project) as ws:
        ws.threads.save("main", {"n": 7})
        outcome = ws.resume()
        assert outcome is not None and results(outcome) == [("//main", KEPT)]
        assert state(ws) == {"n": 7}


# -- as people see it ----------------------------------------------------------


def test_the_command_line_shows_it(begun: tuple[Path, str]):
    project, _ = begun
    out, _ = take_back(project, "rollback", "one", "--dry-run")
    assert "thread main stays, 3 state checkpoints ahead" in out and "--with-state takes it too" in out
    out, err = take_back(project, "rollback", "one", "--with-state", "--yes")
    assert "state  ↩  thread main  back to before it was" in out
    assert "took back 1 file: a; and thread main" in out + err
    out, err = take_back(project, "redo", "--yes")
    assert "thread main  again at 3" in out and "takeback rollback" in err and "--with-state" in err
    out, _ = take_back(project, "log", "domain:state")
    assert "thread main · 3 state checkpoints" in out
    out, _ = take_back(project, "log", "kind:takeback")
    assert "1 path, 1 thread" in out
    with takeback.open(project) as ws:
        row = ws.log("domain:state")[0].id
    out, _ = take_back(project, "show", row)
    assert "thread   main: not there → " in out
    with takeback.open(project) as ws:
        ws.threads.save("main", {"n": 9})
        ws.checkpoint("three")
        ws.threads.save("main", {"n": 10})
    assert "threads: main (1 state checkpoint)" in take_back(project, "status")[0]


def test_the_command_line_in_json(begun: tuple[Path, str]):
    project, _ = begun
    plan = json.loads(take_back(project, "rollback", "one", "--dry-run", "--json")[0])["plan"]
    (stays,) = plan["distance"]["state"]
    assert (stays["thread"], stays["ahead"], plan["distance"]["files"]) == ("main", 3, 0)
    assert stays["command"].startswith("takeback rollback ") and stays["command"].endswith(" --with-state")
    told = json.loads(take_back(project, *stays["command"].split()[1:], "--yes", "--json")[0])
    assert [(s["domain"], s["target"], s["summary"]) for s in told["plan"]["steps"]] == [
        ("files", "a", "change back a"),
        ("state", "//main", "take thread main back to before it was"),
    ]
    assert {(r["domain"], r["target"], r["result"]) for r in told["results"]} == {
        ("files", "a", "done"), ("state", "//main", "done")
    }  # fmt: skip
    assert told["distance"] == {"state": [], "files": 0}
    assert json.loads(take_back(project, "status", "--json")[0])["state"] == [], "it is where the rollback led"


def test_a_rollback_to_the_end_of_a_turn_leaves_that_turn_standing(ws, project):
    talk = takeback.Conversation(ws)
    for name in ("one", "two", "three"):
        with talk.turn(name):
            (project / name).write_text("1")
            talk.append({"role": "assistant", "content": f"ok {name}"})
    end = next(state for state in ws.threads.list("main") if state.summary == "assistant: ok two")
    ws.apply(ws.plan("thread", "main", end.id))
    assert [message["content"] for message in talk.messages] == ["one", "ok one", "two", "ok two"]
    ws.apply(ws.plan("undo", "two", state=True))
    assert [message["content"] for message in talk.messages] == ["one", "ok one"]
    ws.redo()
    assert [message["content"] for message in talk.messages] == ["one", "ok one", "two", "ok two"]
