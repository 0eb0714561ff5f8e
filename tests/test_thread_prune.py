"""Pruning threads: what goes, what stays and why, and that the rest reads as before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.errors import NotFound, UsageError
from takeback.model.thread_states import NewState, StateCheckpoint, Write
from takeback.threads import restored_from
from takeback.workspace import Workspace


@pytest.fixture
def ws(project: Path) -> Iterator[Workspace]:
    with takeback.open(project, create="state") as found:
        yield found


def saved(ws: Workspace, thread: str = "main", steps: int = 5) -> list[StateCheckpoint]:
    return [ws.threads.save(thread, {"step": step, "text": f"{thread} {step} " * 60}) for step in range(steps)]


def left(ws: Workspace, thread: str = "main") -> list[int]:
    return [ws.threads.load(state)["step"] for state in reversed(ws.threads.list(thread))]


def test_the_newest_stay_and_the_bytes_go(ws: Workspace) -> None:
    saved(ws)
    saved(ws, "other", 3)
    would = ws.threads.prune(["main"], keep=2, dry_run=True)
    assert would.dry_run and [state.id for state in would.removed] and left(ws) == [0, 1, 2, 3, 4]
    done = ws.threads.prune(["main"], keep=2)
    assert [s.id for s in done.removed] == [s.id for s in would.removed] and len(done.removed) == 3
    assert left(ws) == [3, 4] and left(ws, "other") == [0, 1, 2]
    assert ws.prune().rows > 0
    assert left(ws) == [3, 4] and ws.verify(data=True).ok and all(each.ok for each in ws.threads.verify())
    assert ws.threads.prune(["main"], keep=2).removed == ()


def test_all_threads_are_meant_where_none_is_named_and_heads_stay(ws: Workspace) -> None:
    saved(ws)
    saved(ws, "other", 3)
    ws.threads.prune(older_than=0.0)
    assert left(ws) == [4] and left(ws, "other") == [2]


def test_the_twin_for_await(ws: Workspace) -> None:
    saved(ws)
    assert len(asyncio.run(ws.threads.aprune(["main"], keep=1)).removed) == 4 and left(ws) == [4]


def test_what_is_young_stays(ws: Workspace) -> None:
    saved(ws)
    assert ws.threads.prune(older_than=3600.0).removed == () and left(ws) == [0, 1, 2, 3, 4]


def test_what_a_fork_began_with_stays(ws: Workspace) -> None:
    states = saved(ws)
    ws.threads.fork("main", states[1].id, "other")
    done = ws.threads.prune(["main"], keep=1)
    assert left(ws) == [1, 4]
    assert [(s.checkpoint.id, s.why) for s in done.stays] == [(states[1].id, "thread other was forked from it")]


def test_what_is_handed_over_stays_until_it_is_adopted(ws: Workspace) -> None:
    states = saved(ws)
    handoff = ws.threads.handoff("main", states[1].id, to_agent="codex")
    done = ws.threads.prune(["main"], keep=1)
    assert left(ws) == [1, 4] and "to codex is pending" in done.stays[0].why
    ws.prune()
    assert ws.threads.load(ws.threads.adopt(handoff.id))["step"] == 1


def test_what_is_handed_over_stays_with_the_namespaces_of_its_moment(ws: Workspace) -> None:
    for ns, id in (("child", "c1"), ("", "1"), ("child", "c2"), ("", "2"), ("child", "c3"), ("", "3")):
        ws.threads.put(NewState("t", ns, id, "", {"x": f"{ns}{id}".encode()}, codec="typed", source="langgraph"))
    handoff = ws.threads.handoff("t", "1", to_agent="codex")
    ws.threads.prune(["t"], keep=1)
    ws.prune()
    adopted = ws.threads.adopt(handoff.id)
    then = ws.threads.heads_at(adopted.thread)
    assert {ns: ws.threads.values(state)["x"] for ns, state in then.items()} == {"": b"1", "child": b"childc1"}


def test_what_a_redo_needs_stays(project: Path) -> None:
    with takeback.open(project, create=True) as ws:
        states = saved(ws)
        ws.roll_back_thread("main", states[1].id)
        saved(ws, "other", 1)
        ws.threads.prune(["main"], keep=1)
        ws.prune()
        assert left(ws)[-1] == 1 and 4 in left(ws)
        ws.redo()
        assert left(ws)[-1] == 4


def put(ws: Workspace, id: str, parent: str, ns: str = "", thread: str = "t", run: str = "", **data: str) -> None:
    """As LangGraph has it: a channel that is not among the values is read from what was written before."""
    packed: dict[str, bytes | str] = {name: b"text\0" + value.encode() for name, value in data.items()}
    meta: dict[str, Any] = {
        "channel_versions": {"log": "1"},
        "metadata": {"counters_since_delta_snapshot": {"log": 1}},
    }
    ws.threads.put(NewState(thread, ns, id, parent, packed, meta, codec="typed", source="langgraph", run=run))
    ws.threads.put_writes(thread, ns, id, "task", "", [Write(0, "log", b"text\0x", "task")])


def test_what_a_channel_is_read_from_stays(ws: Workspace) -> None:
    for id, parent, data in (("1", "", {}), ("2", "1", {"log": "whole"}), ("3", "2", {}), ("4", "3", {})):
        put(ws, id, parent, **data)
    done = ws.threads.prune(["t"], keep=1)
    assert [s.id for s in done.removed] == ["1"]
    assert {(s.checkpoint.id, s.why) for s in done.stays} == {("2", "4 is read from it"), ("3", "4 is read from it")}
    ws.prune()
    assert [len(ws.threads.writes(s)) for s in ws.threads.list("t")] == [1, 1, 1]


def read(ws: Workspace, thread: str) -> list[tuple[str, int, bytes]]:
    """What the channel `log` of a thread's head is read from: each checkpoint, what was written after it, its value."""
    walked = restored_from.walked(ws.threads, ws.threads.find(thread), ["log"])
    return [(at.id, len(ws.threads.writes(at)), ws.threads.values(at).get("log", b"")) for at, _ in walked]


@pytest.mark.parametrize("how", ["remove", "delete", "some", "runs"])
def test_a_fork_outlives_its_origin_with_all_that_it_is_read_from(ws: Workspace, how: str) -> None:
    for id, parent, data in (("1", "", {}), ("2", "1", {"log": "whole" * 50}), ("3", "2", {}), ("4", "3", {})):
        put(ws, id, parent, run="r", **data)
    ws.threads.fork("t", "4", "other")
    before = read(ws, "other")
    assert [id for id, *_ in before] == ["3", "2"] and all(writes == 1 for _, writes, _ in before)
    if how == "delete":
        done = ws.threads.prune(["t"], delete=True)
        assert len(done.removed) == 4 and {stays.checkpoint.id for stays in done.stays} == {"2", "3", "4"}
        assert "until thread other, which is read from it, goes too" in done.stays[0].why
    elif how == "runs":
        assert ws.threads.remove_runs(["r"]) == 4
    else:
        ws.threads.remove("t", None if how == "remove" else [("", id) for id in "1234"])
    for _ in range(2):
        assert [seen.thread for seen in ws.threads.all()] == ["other"] and ws.threads.find("t", "3") is None
        assert ws.threads.list("t") == [] and read(ws, "other") == before
        assert ws.verify(data=True).ok and all(each.ok for each in ws.threads.verify())
        ws.prune()
    assert [row.body is None for row in ws.store.journal.rows(kinds=("state",))] == [True, False, False, False, False]
    assert ws.prune().rows == 0, "what the fork needs does not look as if it were to go each time"
    ws.threads.copy("other", "third")
    ws.threads.remove("other")
    ws.prune()
    assert read(ws, "third") == before, "a copy of the fork is read from there as well"
    ws.threads.remove("third")
    ws.prune()
    assert all(row.body is None for row in ws.store.journal.rows(kinds=("state", "writes", "value")))


def test_a_fork_is_read_from_its_origin_and_not_from_who_has_its_name_now(ws: Workspace) -> None:
    put(ws, "1", "", log="whole")
    put(ws, "2", "1")
    ws.threads.fork("t", "2", "other")
    before = read(ws, "other")
    ws.threads.remove("t")
    put(ws, "1", "", log="another")
    put(ws, "2", "1", log="another")
    ws.threads.put_writes("t", "", "1", "task", "", [Write(5, "log", b"text\0more", "task")])
    assert read(ws, "other") == before and len(ws.threads.writes(ws.threads.get("t", "1"))) == 2
    ws.prune()
    assert read(ws, "other") == before and ws.verify(data=True).ok


def test_who_goes_on_after_the_thread_was_removed_is_read_from_what_it_was(ws: Workspace) -> None:
    put(ws, "1", "", log="whole")
    ws.threads.remove("t")
    put(ws, "2", "1")
    assert read(ws, "t") == [("1", 1, b"text\0whole")]
    ws.prune()
    assert read(ws, "t") == [("1", 1, b"text\0whole")] and [state.id for state in ws.threads.list("t")] == ["2"]


def test_a_thread_and_its_fork_go_together(ws: Workspace) -> None:
    put(ws, "1", "", log="whole")
    put(ws, "2", "1")
    ws.threads.fork("t", "2", "other")
    done = ws.threads.prune(["t", "other"], delete=True)
    assert done.deleted == ("t", "other") and done.stays == () and ws.threads.all() == []


def test_what_is_not_there_may_be_named_where_that_is_said(ws: Workspace) -> None:
    saved(ws)
    assert ws.threads.prune(["nothing"], keep=1, missing_ok=True).removed == () and left(ws) == [0, 1, 2, 3, 4]
    assert len(ws.threads.prune(["nothing", "main"], keep=1, missing_ok=True).removed) == 4
    assert ws.threads.prune(["nothing", "main"], delete=True, missing_ok=True).deleted == ("main",)


def test_namespaces_go_with_their_root(ws: Workspace) -> None:
    def plain(ns: str, id: str, parent: str) -> None:
        ws.threads.put(NewState("t", ns, id, parent, {"x": f"{ns}{id}".encode()}, codec="typed", source="langgraph"))

    for step in ("1", "2", "3"):
        plain("child", f"c{step}", f"c{int(step) - 1}" if step != "1" else "")
        plain("", step, str(int(step) - 1) if step != "1" else "")
    ws.threads.prune(["t"], keep=2)
    assert [(s.ns, s.id) for s in ws.threads.list("t")] == [("", "3"), ("child", "c3"), ("", "2"), ("child", "c2")]


def test_a_head_stays_that_is_one_only_since_another_was_removed(ws: Workspace) -> None:
    for ns, id in (("child", "c1"), ("child", "c2"), ("", "1"), ("", "2"), ("", "3")):
        ws.threads.put(NewState("t", ns, id, "", {"x": f"{ns}{id}".encode()}, codec="typed", source="langgraph"))
    ws.threads.remove("t", [("child", "c2")])
    ws.threads.prune(["t"], keep=1)
    assert [(s.ns, s.id) for s in ws.threads.list("t")] == [("", "3"), ("child", "c1")]


def test_a_thread_goes_whole_when_it_is_named(ws: Workspace) -> None:
    states = saved(ws)
    saved(ws, "other", 2)
    handoff = ws.threads.handoff("main", states[0].id, to_agent="codex")
    done = ws.threads.prune(["main"], delete=True)
    assert (done.deleted, len(done.removed), done.handoffs) == (("main",), 5, (handoff.id,))
    assert [seen.thread for seen in ws.threads.all()] == ["other"]
    with pytest.raises(NotFound):
        ws.threads.adopt(handoff.id)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "say how much to keep"),
        ({"keep": 0}, "at least the head"),
        ({"delete": True}, "by their names"),
        ({"threads": ["main"], "delete": True, "keep": 1}, "by their names"),
        ({"threads": ["nothing"], "keep": 1}, "no thread called 'nothing'"),
    ],
)
def test_what_makes_no_sense_is_refused(ws: Workspace, asked: dict[str, Any], said: str) -> None:
    saved(ws)
    with pytest.raises(UsageError, match=said):
        ws.threads.prune(**asked)
    assert left(ws) == [0, 1, 2, 3, 4]
