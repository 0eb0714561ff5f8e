"""Real graphs on the saver: what LangGraph does with its own savers it does with ours; and what only ours can do."""

from __future__ import annotations

import asyncio
import json
import operator
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph", reason="langgraph is not installed here")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

import takeback
from servers.payments import Payments, serving
from takeback.errors import Damaged, NotFound, TakebackError, UsageError
from takeback.integrations.langgraph import TakebackSaver

ROOT = Path(__file__).parents[2]


@pytest.fixture
def saver(project: Path) -> Iterator[TakebackSaver]:
    with TakebackSaver(project, files=False) as opened:
        yield opened


def config(thread: str = "t", id: str = "") -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **({"checkpoint_id": id} if id else {})}}


def id_of(snapshot: Any) -> str:
    return snapshot.config["configurable"]["checkpoint_id"]


# -- graphs ---------------------------------------------------------------------------


class Steps(TypedDict):
    done: Annotated[list[str], operator.add]


def line(*names: str, **options: Any) -> Callable[[BaseCheckpointSaver[str]], Any]:
    """A graph of nodes one after another, each of which notes its name."""

    def compiled(saver: BaseCheckpointSaver[str]) -> Any:
        builder = StateGraph(Steps)
        for before, name in zip((START, *names), (*names, END)):
            if name != END:
                builder.add_node(name, lambda state, name=name: {"done": [name]})
            builder.add_edge(before, name)
        return builder.compile(checkpointer=saver, **options)

    return compiled


def appended(state: list[str], writes: Sequence[Any]) -> list[str]:
    """No order but the right one gives this: each item knows how many were before it."""
    out = list(state)
    for write in writes:
        for item in write if isinstance(write, list) else [write]:
            out.append(f"{len(out)}:{item}")
    return out


class Grown(TypedDict):
    log: Annotated[list[str], DeltaChannel(appended, snapshot_frequency=3)]
    n: int


def growing(saver: BaseCheckpointSaver[str]) -> Any:
    builder = StateGraph(Grown)
    for name in ("left", "right"):
        builder.add_node(name, lambda state, name=name: {"log": [f"{name}{state['n']}"]})
        builder.add_edge("count", name)
    builder.add_node("count", lambda state: {"n": state.get("n", 0) + 1, "log": ["count"]})
    builder.add_edge(START, "count")
    return builder.compile(checkpointer=saver)


class Asked(TypedDict):
    answer: str
    before: int


def asking(saver: BaseCheckpointSaver[str]) -> Any:
    builder = StateGraph(Asked)
    builder.add_node("prepare", lambda state: {"before": state.get("before", 0) + 1})
    builder.add_node("ask", lambda state: {"answer": interrupt("well?")})
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "ask")
    return builder.compile(checkpointer=saver)


def nested(own: bool) -> Callable[[BaseCheckpointSaver[str]], Any]:
    """A graph whose subgraph keeps a state of its own from call to call, or not."""

    def compiled(saver: BaseCheckpointSaver[str]) -> Any:
        inner = StateGraph(Steps)
        inner.add_node("inner", lambda state: {"done": [f"inner{len(state['done'])}"]})
        inner.add_edge(START, "inner")
        sub = inner.compile(checkpointer=True if own else None)
        outer = StateGraph(Steps)
        outer.add_node("first", lambda state: {"done": ["first"]})
        outer.add_node("sub", sub)
        outer.add_node("last", lambda state: {"done": ["last"]})
        for before, after in ((START, "first"), ("first", "sub"), ("sub", "last")):
            outer.add_edge(before, after)
        return outer.compile(checkpointer=saver)

    return compiled


def told(graph: Any, thread: str = "t") -> list[Any]:
    """All that LangGraph says of a thread, but for ids and times."""
    return [
        (one.values, one.next, one.metadata.get("step"), one.metadata.get("source"), [t.name for t in one.tasks])
        for one in graph.get_state_history(config(thread))
    ]


# -- as on LangGraph's own savers -------------------------------------------------------


def runs_twice(graph: Any) -> Any:
    return [graph.invoke({"done": ["in"]}, config()) for _ in range(2)]


def travels(graph: Any) -> Any:
    graph.invoke({"done": ["in"]}, config())
    middle = list(graph.get_state_history(config()))[2]
    again = graph.invoke(None, middle.config)
    graph.update_state(middle.config, {"done": ["edited"]})
    return again, graph.invoke(None, config()), graph.get_state(middle.config).values


def copies(graph: Any) -> Any:
    graph.invoke({"done": ["in"]}, config())
    oldest = list(graph.get_state_history(config()))[-2]
    graph.update_state(oldest.config, None, as_node="__copy__")
    return graph.get_state(config()).values, graph.invoke(None, config())


def grows(graph: Any) -> Any:
    out = [graph.invoke({"log": [f"in{n}"]}, config()) for n in range(5)]
    middle = list(graph.get_state_history(config()))[4]
    graph.update_state(middle.config, {"log": ["edited"]}, as_node="count")
    return out, graph.get_state(config()).values, graph.invoke(None, config())


def grows_at_exit(graph: Any) -> Any:
    return [graph.invoke({"log": [f"in{n}"]}, config(), durability="exit") for n in range(5)]


def answers(graph: Any) -> Any:
    first = graph.invoke({"before": 0}, config())
    waiting = graph.get_state(config())
    second = graph.invoke(Command(resume="yes"), config())
    return first["__interrupt__"][0].value, waiting.next, second, graph.get_state(config()).values


@pytest.mark.parametrize(
    ("make", "scenario"),
    [
        (line("a", "b", "c"), runs_twice),
        (line("a", "b", "c"), travels),
        (line("a", "b", "c"), copies),
        (growing, grows),
        (growing, grows_at_exit),
        (asking, answers),
        (nested(own=False), runs_twice),
        (nested(own=True), runs_twice),
        (nested(own=True), travels),
        (nested(own=False), travels),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_graphs_do_what_they_do_on_the_saver_in_memory(saver: TakebackSaver, make: Any, scenario: Any):
    theirs, ours = make(InMemorySaver()), make(saver)
    assert scenario(ours) == scenario(theirs)
    assert told(ours) == told(theirs)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_awaited_graphs_too(saver: TakebackSaver, durability: str):
    async def scenario(graph: Any) -> Any:
        out = [await graph.ainvoke({"log": [f"in{n}"]}, config(), durability=durability) for n in range(5)]
        return out, [one.values async for one in graph.aget_state_history(config())]

    assert asyncio.run(scenario(growing(saver))) == asyncio.run(scenario(growing(InMemorySaver())))


def test_sends_and_messages(saver: TakebackSaver):
    class State(TypedDict):
        messages: Annotated[list[Any], add_messages]

    builder = StateGraph(State)
    builder.add_node("plan", lambda state: {"messages": [AIMessage("planning", id="p")]})
    builder.add_node("work", lambda state: {"messages": [AIMessage(f"did {state}", id=f"w{state}")]})
    builder.add_conditional_edges("plan", lambda state: [Send("work", n) for n in range(5)])
    builder.add_edge(START, "plan")
    graph = builder.compile(checkpointer=saver)
    result = graph.invoke({"messages": [HumanMessage("go", id="h")]}, config())
    assert [m.content for m in result["messages"]] == ["go", "planning", *(f"did {n}" for n in range(5))]
    assert graph.get_state(config()).values["messages"] == result["messages"]
    assert [type(m).__name__ for m in result["messages"][:2]] == ["HumanMessage", "AIMessage"]


def test_the_event_loop_never_waits(project: Path):
    """While one call is held up by another process's lock, the loop goes on."""

    async def scenario() -> int:
        async with TakebackSaver(project, files=False) as saver:
            ticks = 0
            saver.workspace.store.write.acquire(5)
            putting = asyncio.create_task(saver.aput(config_of("t"), empty_checkpoint(), {}, {}))
            for _ in range(50):
                await asyncio.sleep(0.002)
                ticks += 1
            assert not putting.done()
            saver.workspace.store.write.release()
            await putting
            return ticks

    assert asyncio.run(scenario()) == 50


def test_puts_that_wait_for_one_another_are_written_together_and_fail_alone(project: Path):
    async def scenario() -> None:
        async with TakebackSaver(project, files=False) as saver:
            checkpoint = empty_checkpoint()
            where = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}
            saver.workspace.store.write.acquire(5)
            first = asyncio.create_task(saver.aput(config_of("first"), empty_checkpoint(), {}, {}))
            while not saver._opened.worker._jobs.empty() or not first:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)  # the worker waits for the lock; what comes now comes together
            puts = [saver.aput_writes(where, [("c", n)], f"task-{n}", f"{n:03}") for n in range(20)]
            bad = saver.aput_writes(where, [("c", Odd())], "odd")
            put = saver.aput(config_of("t"), checkpoint, {"step": 1}, {})
            waiting = asyncio.gather(*puts, bad, put, return_exceptions=True)
            await asyncio.sleep(0.05)
            saver.workspace.store.write.release()
            *done, refused, stored = await waiting
            assert done == [None] * 20 and stored == where
            assert isinstance(refused, TakebackError) and "'c'" in refused.message
            found = await saver.aget_tuple(config_of("t"))
            assert [value for _, _, value in found.pending_writes] == list(range(20))
            times = [row.at for row in saver.workspace.store.journal.rows(kinds=("writes", "state"))]
            assert len(times) == 22 and all(one.ok for one in await saver.averify())

    asyncio.run(scenario())


def one_of(**values: Any) -> Any:
    return {**empty_checkpoint(), "channel_values": values, "channel_versions": dict.fromkeys(values, "1.0")}


def test_what_is_changed_while_a_put_waits_is_not_in_it(saver: TakebackSaver):
    async def put() -> Any:
        checkpoint = one_of(kept=[1], gone=2)
        metadata = {"source": "loop", "step": 1}
        waiting = asyncio.ensure_future(saver.aput(config(), checkpoint, metadata, {"kept": "1.0", "gone": "1.0"}))
        await asyncio.sleep(0)
        checkpoint["channel_values"]["kept"].append(2)
        checkpoint["channel_values"]["new"] = 3
        del checkpoint["channel_values"]["gone"]
        checkpoint["channel_versions"]["kept"] = "2.0"
        metadata["step"] = 2
        await waiting
        first = await saver.aget_tuple(config())
        again = {**checkpoint, "id": "later"}
        await saver.aput(config(), again, metadata, {})
        return first, await saver.aget_tuple(config())

    first, second = asyncio.run(put())
    assert first.checkpoint["channel_values"] == {"kept": [1], "gone": 2} and first.metadata["step"] == 1
    assert second.checkpoint["channel_values"] == {"kept": [1, 2], "new": 3}, "its version is not the one that was put"


class Slow:
    """A serializer that takes its time, and says when it is asked."""

    def __init__(self, asked: threading.Event, go_on: threading.Event) -> None:
        self.asked, self.go_on = asked, go_on

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        self.asked.set()
        assert self.go_on.wait(30)
        return "bytes", b""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return data


def test_a_saver_that_is_closed_while_state_is_serialised_says_so(project: Path):
    asked, go_on = threading.Event(), threading.Event()
    saver = TakebackSaver(project, files=False, serde=Slow(asked, go_on))

    def close() -> None:
        asked.wait(30)
        saver.close()
        go_on.set()

    async def put() -> None:
        await saver.aget_tuple(config())  # its worker runs
        threading.Thread(target=close).start()
        checkpoint = one_of(slow=1)
        await asyncio.wait_for(saver.aput(config(), checkpoint, {}, {"slow": "1.0"}), 30)

    with pytest.raises(UsageError, match="closed"):
        asyncio.run(put())


@pytest.mark.posix_only("fork")
def test_a_forked_process_goes_on_with_it(project: Path):
    """As a server does that is made before its workers are forked."""
    program = """
    import asyncio, os, sys
    from langgraph.checkpoint.base import empty_checkpoint
    from takeback.integrations.langgraph import TakebackSaver

    saver = TakebackSaver(sys.argv[1], files=False)

    def put(thread):
        where = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        asyncio.run(asyncio.wait_for(saver.aput(where, empty_checkpoint(), {}, {}), 30))

    put("before")
    if (child := os.fork()) == 0:
        for n in range(20):
            put("child")
        os._exit(0)
    for n in range(20):
        put("parent")
    sys.exit(os.waitpid(child, 0)[1])
    """
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), str(project)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran
    with TakebackSaver(project, files=False) as saver:
        assert [len(list(saver.list(config(name)))) for name in ("before", "child", "parent")] == [1, 20, 20]
        assert saver.workspace.verify().ok


def test_it_goes_on_after_another_process_has_rebuilt_the_journal(saver: TakebackSaver, project: Path):
    saver.put(config(), one_of(n=1), {}, {"n": "1.0"})
    with sqlite3.connect(saver.workspace.store.journal.path) as db:
        db.execute("DROP INDEX log_kind")
    db.close()
    program = [sys.executable, "-m", "takeback", "repair", "--yes"]
    subprocess.run(program, cwd=project, check=True, capture_output=True)
    saver.put(config(), one_of(n=2), {}, {"n": "1.0"})
    with TakebackSaver(project, files=False) as other:
        assert other.get_tuple(config()).checkpoint["channel_values"] == {"n": 2}
        assert other.workspace.verify().ok


def test_values_beyond_this_machine(project: Path):
    class Shelf:
        name = "shelf"
        kept: dict[str, bytes] = {}  # noqa: RUF012

        def put(self, data: bytes) -> str:
            self.kept[str(len(self.kept))] = data
            return str(len(self.kept) - 1)

        def get(self, blob: str, sha256: bytes) -> bytes:
            return self.kept[blob]

        def close(self) -> None:
            pass

    with TakebackSaver(project, files=False, blobs=Shelf()) as saver:
        graph = line("a", "b")(saver)
        whole = graph.invoke({"done": ["x" * 5000]}, config())
        assert Shelf.kept
        target = list(graph.get_state_history(config()))[1]
        assert saver.rollback_to("t", id_of(target))["blob_id"] in Shelf.kept
        assert graph.invoke(None, config()) == whole
    with TakebackSaver(project, files=False) as saver, pytest.raises(TakebackError, match="shelf"):
        saver.get_tuple(config())


def config_of(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


# -- going back -------------------------------------------------------------------------


def test_rollback_appends_the_old_state_as_the_new_head(saver: TakebackSaver):
    graph = line("a", "b", "c")(saver)
    graph.invoke({"done": ["in"]}, config())
    before = list(graph.get_state_history(config()))
    target = before[2]
    said = saver.rollback_to("t", id_of(target))
    after = list(graph.get_state_history(config()))
    assert after[1:] == before  # nothing is gone
    head = after[0]
    assert head.values == target.values and head.next == target.next == ("b",)
    assert head.parent_config == before[0].config
    assert isinstance(said, takeback.Outcome) and said.whole and said.id
    assert (said.thread_id, said.checkpoint_id, said["checkpoint_id"]) == ("t", id_of(head), id_of(head))
    assert (said.restored_from, said.rolled_back_from) == (id_of(target), id_of(before[0]))
    assert said.blob_id and (said.back, said.stayed) == (("thread t",), ())
    assert head.metadata["restored_from"] == id_of(target)
    assert head.metadata["rolled_back_from"] == id_of(before[0])
    assert graph.invoke(None, config())["done"] == ["in", "a", "b", "c"]


def test_rollback_to_the_head_has_nothing_to_take_back(saver: TakebackSaver):
    graph = line("a")(saver)
    graph.invoke({"done": []}, config())
    head = id_of(graph.get_state(config()))
    said = saver.rollback_to("t", head)
    assert (said["checkpoint_id"], said["nothing_to_take_back"]) == (head, True)
    assert id_of(graph.get_state(config())) == head


def test_what_cannot_be_gone_back_to_is_said_and_nothing_is_scanned(saver: TakebackSaver):
    graph = line("a", "b")(saver)
    graph.invoke({"done": []}, config())
    for nothing in ("", None):
        with pytest.raises(UsageError, match="no checkpoint of thread t is named"):
            saver.rollback_to("t", nothing)  # type: ignore[arg-type]
    target = list(graph.get_state_history(config()))[1]
    with pytest.raises(UsageError, match="keeps state alone"):
        saver.rollback_to("t", id_of(target), with_files=True)
    assert not saver.workspace.history().checkpoints and graph.get_state(config()).next == ()


def test_ids_that_are_not_there(saver: TakebackSaver):
    graph = line("a")(saver)
    for thread in ("t", "u"):
        graph.invoke({"done": []}, config(thread))
    theirs = id_of(graph.get_state(config("u")))
    for call in (saver.rollback_to, lambda *a: saver.fork(*a, "new")):
        with pytest.raises(NotFound, match="00000000-dead"):
            call("t", "00000000-dead")
        with pytest.raises(NotFound, match=f"{theirs} is of thread u"):
            call("t", theirs)
        with pytest.raises(NotFound, match="nobody"):
            call("nobody", theirs)
    with pytest.raises(UsageError, match="thread t already"):
        saver.fork("u", theirs, "t")
    with pytest.raises(NotFound, match="nobody"):
        saver.verify("nobody")


def test_redo_brings_the_thread_forward_again(saver: TakebackSaver):
    graph = line("a", "b")(saver)
    graph.invoke({"done": ["in"]}, config())
    whole = graph.get_state(config())
    saver.rollback_to("t", id_of(list(graph.get_state_history(config()))[-1]))
    assert graph.get_state(config()).values == {"done": []}
    saver.workspace.redo()
    again = graph.get_state(config())
    assert (again.values, again.next) == (whole.values, whole.next)


def test_rollback_of_what_was_rolled_back(saver: TakebackSaver):
    graph = growing(saver)
    seen = [graph.invoke({"log": [f"in{n}"]}, config())["log"] for n in range(4)]
    steps = [one for one in graph.get_state_history(config()) if not one.next]
    for _ in range(3):
        for target, log in zip(steps, seen[::-1]):
            saver.rollback_to("t", id_of(target))
            assert graph.get_state(config()).values["log"] == log
        graph.invoke({"log": ["more"]}, config())
        assert graph.get_state(config()).values["log"][: len(seen[0]) + 1] == [*seen[0], f"{len(seen[0])}:more"]


def test_delta_channels_after_rollback_read_as_at_the_target_at_every_step(saver: TakebackSaver):
    """Every checkpoint of a thread, each rolled back to and run on from, against the same graph in memory."""
    memory = InMemorySaver()
    theirs, ours = growing(memory), growing(saver)
    for graph in (theirs, ours):
        for n in range(4):
            graph.invoke({"log": [f"in{n}"]}, config())
    targets = list(zip(theirs.get_state_history(config()), ours.get_state_history(config())))
    for their_target, target in targets:
        assert target.values == their_target.values
        saver.rollback_to("t", id_of(target))
        head = ours.get_state(config())
        assert head.values == their_target.values
        went_on = theirs.invoke({"log": ["on"]}, their_target.config)
        assert ours.invoke({"log": ["on"]}, config()) == went_on
    assert all(one.ok for one in saver.verify("t"))


def test_delta_channels_survive_fork_copy_and_prune(saver: TakebackSaver):
    graph = growing(saver)
    for n in range(4):
        whole = graph.invoke({"log": [f"in{n}"]}, config())["log"]
    for target in list(graph.get_state_history(config()))[1:6]:
        thread = f"fork of {id_of(target)}"
        said = saver.fork("t", id_of(target), thread)
        assert said["forked_from"] == {"thread_id": "t", "checkpoint_id": id_of(target)}
        assert said["checkpoint_id"] == id_of(graph.get_state(config(thread)))
        assert graph.get_state(config(thread)).values == target.values
        on = graph.invoke({"log": ["on"]}, config(thread))["log"]
        assert on[: len(target.values.get("log", []))] == target.values.get("log", [])
    saver.copy_thread("t", "copy")
    count = len(list(saver.list(config())))
    forked = {name: graph.get_state(config(name)).values for name in (f"fork of {id_of(target)}",)}
    saver.prune(["t"])
    assert 1 < len(list(saver.list(config()))) < count
    assert graph.get_state(config()).values["log"] == whole
    assert forked == {name: graph.get_state(config(name)).values for name in forked}
    saver.workspace.prune()
    assert graph.get_state(config()).values["log"] == whole
    assert forked == {name: graph.get_state(config(name)).values for name in forked}
    assert graph.invoke({"log": ["on"]}, config())["log"][: len(whole) + 1] == [*whole, f"{len(whole)}:on"]
    saver.delete_thread("t")
    assert graph.get_state(config("copy")).values["log"] == whole


def test_a_fork_outlives_a_source_that_was_deleted(saver: TakebackSaver):
    graph = growing(saver)
    graph.invoke({"log": ["in"]}, config())
    head = list(graph.get_state_history(config()))[1]
    assert "log" not in saver.get_tuple(head.config).checkpoint["channel_values"]
    saver.fork("t", id_of(head), "forked")
    assert graph.get_state(config("forked")).values == head.values
    saver.delete_thread("t")
    saver.workspace.prune()
    assert graph.get_state(config("forked")).values == head.values and saver.get_tuple(config()) is None
    again = graph.invoke({"log": ["more"]}, config("forked"))
    assert again["log"][: len(head.values["log"])] == head.values["log"]
    assert all(each.ok for each in saver.verify()) and saver.workspace.verify(data=True).ok


def test_prune_keeps_what_others_need(saver: TakebackSaver):
    graph = line("a", "b", "c")(saver)
    graph.invoke({"done": []}, config(), durability="sync")
    forked, handed, *_ = [found.config for found in graph.get_state_history(config())][1:]
    forked, handed = (found["configurable"]["checkpoint_id"] for found in (forked, handed))
    saver.fork("t", forked, "other")
    handoff = saver.threads.handoff("t", handed, to_agent="codex")
    expected = graph.get_state({"configurable": {"thread_id": "t", "checkpoint_id": handed}}).values
    saver.prune(["t"])
    saver.workspace.prune()
    assert [found.checkpoint["id"] for found in saver.list(config())][1:] == [forked, handed]
    adopted = saver.threads.adopt(handoff.id)
    assert graph.get_state(config(adopted.thread)).values == expected


def test_prune_after_rollback_keeps_what_the_head_is_read_from(saver: TakebackSaver):
    graph = growing(saver)
    for n in range(4):
        graph.invoke({"log": [f"in{n}"]}, config())
    target = list(graph.get_state_history(config()))[4]
    saver.rollback_to("t", id_of(target))
    saver.prune(["t"])
    saver.workspace.prune()
    assert graph.get_state(config()).values == target.values


def test_an_interrupted_graph_resumes_after_rollback(saver: TakebackSaver):
    graph = asking(saver)
    graph.invoke({"before": 0}, config())
    waiting = graph.get_state(config())
    assert waiting.tasks[0].interrupts
    assert graph.invoke(Command(resume="first"), config())["answer"] == "first"
    saver.rollback_to("t", id_of(waiting))
    head = graph.get_state(config())
    assert head.next == ("ask",) and not head.tasks[0].interrupts  # pending writes stay where they were
    assert graph.invoke(None, config())["__interrupt__"][0].value == "well?"
    assert graph.invoke(Command(resume="second"), config()) == {"before": 1, "answer": "second"}
    saver.rollback_to("t", id_of(waiting))
    assert graph.invoke(Command(resume="at once"), config())["answer"] == "at once"


@pytest.mark.parametrize("own", [True, False])
def test_subgraphs_go_back_with_their_graph(saver: TakebackSaver, own: bool):
    graph = nested(own)(saver)
    first = graph.invoke({"done": ["in"]}, config(), durability="sync")
    one = graph.get_state(config())
    second = graph.invoke({"done": ["in"]}, config(), durability="sync")
    saver.rollback_to("t", id_of(one))
    assert graph.get_state(config()).values == first
    assert graph.invoke({"done": ["in"]}, config(), durability="sync") == second
    start = list(graph.get_state_history(config()))[-1]
    saver.rollback_to("t", id_of(start))
    assert graph.invoke({"done": ["in"]}, config(), durability="sync") == first


def test_time_travel_to_a_head_that_a_rollback_made_finds_its_subgraphs(saver: TakebackSaver):
    graph = nested(own=True)(saver)
    graph.invoke({"done": ["in"]}, config(), durability="sync")
    history = list(graph.get_state_history(config()))
    before_sub = next(one for one in history if one.next == ("sub",))
    whole = graph.invoke({"done": ["in"]}, config(), durability="sync")
    for target, wanted in ((history[0], whole), (history[-1], history[0].values)):
        saver.rollback_to("t", id_of(target))
        head = graph.get_state(config())
        if target is history[-1]:  # before the subgraph had any state
            assert graph.invoke(None, head.config, durability="sync") == wanted
    saver.rollback_to("t", id_of(before_sub))
    head = graph.get_state(config())
    assert graph.invoke(None, head.config, durability="sync") == history[0].values


# -- with the files and the world --------------------------------------------------------


class Order(TypedDict):
    done: Annotated[list[str], operator.add]
    charge: str


def shop(ws: takeback.Workspace, server: Payments, saver: TakebackSaver) -> Any:
    """Writes an order, charges for it, and fails at shipping it."""

    def write(state: Order) -> Any:
        (ws.root / "order.txt").write_text("one book\n")
        return {"done": ["written"]}

    def charge(state: Order) -> Any:
        url = f"{server.url}/v1/charges"
        request = urllib.request.Request(url, b'{"amount": 4200}', {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            made = json.load(answer)
        ws.record_http(
            "POST", url, status=201, response_body=made,
            inverse_url=f"{server.url}/v1/refunds", inverse_json={"charge": "{response.body.id}"},
        )  # fmt: skip
        (ws.root / "order.txt").write_text("one book, paid\n")
        return {"done": ["charged"], "charge": made["id"]}

    def ship(state: Order) -> Any:
        (ws.root / "label.txt").write_text("EXPRESS\n")
        raise RuntimeError("no courier")

    builder = StateGraph(Order)
    for before, node in ((START, write), ("write", charge), ("charge", ship)):
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
    return builder.compile(checkpointer=saver)


def test_one_call_takes_graph_files_and_charge_to_the_step_before(ws: takeback.Workspace):
    with serving() as server, TakebackSaver(ws) as saver:
        graph = shop(ws, server, saver)
        with pytest.raises(RuntimeError, match="no courier"):
            graph.invoke({"done": ["asked"]}, config(), durability="sync")
        assert server.ledger()["balance"] == 4200
        before_charge = next(one for one in graph.get_state_history(config()) if one.next == ("charge",))
        said = saver.rollback_to("t", id_of(before_charge), with_files=True, approve=lambda plan: True)
        assert said["restored_from"] == id_of(before_charge)
        assert graph.get_state(config()).values == {"done": ["asked", "written"]}
        assert graph.get_state(config()).next == ("charge",)
        assert (ws.root / "order.txt").read_text() == "one book\n"
        assert not (ws.root / "label.txt").exists()
        assert server.ledger()["balance"] == 0 and server.asked("POST", "/v1/refunds") == 1


def test_without_files_the_world_stays_and_its_distance_is_told(ws: takeback.Workspace):
    with serving() as server, TakebackSaver(ws) as saver:
        graph = shop(ws, server, saver)
        with pytest.raises(RuntimeError):
            graph.invoke({"done": ["asked"]}, config(), durability="sync")
        target = next(one for one in graph.get_state_history(config()) if one.next == ("charge",))
        saver.rollback_to("t", id_of(target))
        assert graph.get_state(config()).values == {"done": ["asked", "written"]}
        assert (ws.root / "order.txt").read_text() == "one book, paid\n"
        assert server.ledger()["balance"] == 4200


def test_what_nobody_approved_is_refused_and_nothing_is_taken(ws: takeback.Workspace):
    with serving() as server, TakebackSaver(ws) as saver:
        graph = shop(ws, server, saver)
        with pytest.raises(RuntimeError):
            graph.invoke({"done": ["asked"]}, config(), durability="sync")
        head = graph.get_state(config())
        target = next(one for one in graph.get_state_history(config()) if one.next == ("charge",))
        for how in ({"approve": lambda plan: False}, {}):
            with pytest.raises(takeback.ApprovalNeeded) as refused:
                saver.rollback_to("t", id_of(target), with_files=True, **how)
        assert "approve" in refused.value.hint and "--" not in refused.value.hint
        assert graph.get_state(config()) == head
        assert (ws.root / "label.txt").exists() and server.ledger()["balance"] == 4200


def test_who_is_asked_may_be_awaited_and_is_never_taken_at_a_promise(ws: takeback.Workspace):
    async def approve(plan: takeback.Plan) -> bool:
        return (await graph.aget_state(config())).next == ("ship",)  # which the saver's own worker reads

    with serving() as server, TakebackSaver(ws) as saver:
        graph = shop(ws, server, saver)
        with pytest.raises(RuntimeError):
            graph.invoke({"done": ["asked"]}, config(), durability="sync")
        target = id_of(next(one for one in graph.get_state_history(config()) if one.next == ("charge",)))
        with pytest.raises(UsageError, match="approve is async"):
            saver.rollback_to("t", target, with_files=True, approve=approve)
        with pytest.raises(takeback.ApprovalNeeded):
            saver.rollback_to("t", target, with_files=True, approve=lambda plan: "no")  # type: ignore[arg-type,return-value]
        assert server.ledger()["balance"] == 4200
        said = asyncio.run(saver.arollback_to("t", target, with_files=True, approve=approve))
        assert said["restored_from"] == target and server.ledger()["balance"] == 0


def test_each_checkpoint_knows_the_files_of_its_moment(ws: takeback.Workspace):
    with TakebackSaver(ws) as saver:
        builder = StateGraph(Steps)
        names = ("one", "two", "three")
        for before, name in zip((START, *names), names):
            builder.add_node(name, lambda state, name=name: (ws.root / "f.txt").write_text(name) and {"done": [name]})
            builder.add_edge(before, name)
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"done": []}, config(), durability="sync")
        history = list(graph.get_state_history(config()))
        for snapshot in history[:3]:
            saver.rollback_to("t", id_of(snapshot), with_files=True)
            assert (ws.root / "f.txt").read_text() == snapshot.values["done"][-1]
        saver.rollback_to("t", id_of(history[-1]), with_files=True)
        assert not (ws.root / "f.txt").exists()


# -- several at once, and killed ----------------------------------------------------------


WORKER = """
import operator, os, signal, sys
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph
from takeback.integrations.langgraph import TakebackSaver

class State(TypedDict):
    done: Annotated[list[str], operator.add]

root, who, mode = sys.argv[1:]
saver = TakebackSaver(root, files=False)

def second(state):
    if mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"done": [f"{who}2"]}

builder = StateGraph(State)
builder.add_node("first", lambda state: {"done": [f"{who}1"]})
builder.add_node("second", second)
builder.add_edge(START, "first")
builder.add_edge("first", "second")
graph = builder.compile(checkpointer=saver)
config = {"configurable": {"thread_id": "t"}}
start = None if mode == "resume" else {"done": [who]}
for _ in range(5 if mode == "many" else 1):
    print(graph.invoke(start, config, durability="sync")["done"], flush=True)
"""


def run(project: Path, who: str, mode: str = "") -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", WORKER, str(project), who, mode]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_several_processes_on_one_thread(project: Path):
    workers = [run(project, f"w{n}", "many") for n in range(3)]
    for worker in workers:
        out, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
        assert len(out.splitlines()) == 5
    with TakebackSaver(project, files=False) as saver:
        found = list(saver.list(config()))
        assert len({one.checkpoint["id"] for one in found}) == len(found) == 3 * 5 * 4
        assert all(one.ok for one in saver.verify())
        (head, *_) = found
        assert head.checkpoint["channel_values"]["done"][-1].endswith("2")


def test_killed_between_put_and_put_writes_it_goes_on_from_there(project: Path):
    worker = run(project, "w", "die")
    worker.communicate(timeout=60)
    assert worker.returncode == -signal.SIGKILL
    with TakebackSaver(project, files=False) as saver:
        head = saver.get_tuple(config())
        assert head.checkpoint["channel_values"]["done"] == ["w", "w1"] and head.pending_writes == []
        assert all(one.ok for one in saver.verify())
    worker = run(project, "w", "resume")
    out, errors = worker.communicate(timeout=60)
    assert out.strip() == "['w', 'w1', 'w2']", errors


# -- values ----------------------------------------------------------------------------


@dataclass
class Point:
    x: int


class Model(BaseModel):
    name: str


class Odd:
    pass


class Any_(TypedDict):
    it: Any


def keeping(saver: BaseCheckpointSaver[str], value: Any) -> Any:
    builder = StateGraph(Any_)
    builder.add_node("node", lambda state: {"it": value})
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"deep": [1, {"er": Odd()}]}, r"at \['deep'\]\[1\]\['er'\]: a Odd"),
        (Odd(), "a Odd"),
        ([2**70], r"at \[0\]: a int"),
        (Point(Odd()), r"at \.x: a Odd"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_cannot_be_saved_is_named_by_its_path(saver: TakebackSaver, value: Any, path: str):
    with pytest.raises(TakebackError, match=f"'it'.*{path}"):
        keeping(saver, value).invoke({"it": 0}, config())
    with pytest.raises(TakebackError, match=r"metadata\.a\[1\] is of type .*Odd"):
        saver.put(config_of("m"), empty_checkpoint(), {"a": [1, Odd()]}, {})  # type: ignore[typeddict-unknown-key]
    holds_itself: list[Any] = []
    holds_itself.append(holds_itself)
    with pytest.raises(TakebackError, match="channel 'c'"):
        saver.put(config_of("m"), {**empty_checkpoint(), "channel_values": {"c": holds_itself}}, {}, {"c": 1})
    assert saver.get_tuple(config_of("m")) is None


def test_only_classes_that_were_allowed_come_back_as_such(project: Path):
    values = [Point(1), Model(name="m")]
    with TakebackSaver(project, files=False) as saver:
        keeping(saver, values).invoke({"it": 0}, config(), durability="sync")
        assert saver.get_tuple(config()).checkpoint["channel_values"]["it"] == [{"x": 1}, {"name": "m"}]
        allowed = saver.with_allowlist([(Point.__module__, "Point"), (Model.__module__, "Model")])
        assert allowed.get_tuple(config()).checkpoint["channel_values"]["it"] == values
    with TakebackSaver(project, files=False, allow=[Point, Model]) as saver:
        assert saver.get_tuple(config()).checkpoint["channel_values"]["it"] == values


@pytest.mark.parametrize(
    ("value", "said"),
    [(float("nan"), "metadata.parents.x is nan"), ({1}, "metadata.parents.x is of type"), ({1: 2}, "no text: 1")],
)
def test_metadata_that_is_no_json_is_named_by_its_path(saver: TakebackSaver, value: Any, said: str):
    metadata: Any = {"source": "loop", "step": 1, "parents": {"x": value}}
    with pytest.raises(UsageError, match=said):
        saver.put(config(), empty_checkpoint(), metadata, {})
    assert saver.get_tuple(config()) is None
    saver.put(config(), empty_checkpoint(), {**metadata, "parents": {"x": ("a", "b")}}, {})
    found = saver.get_tuple(config())
    assert found is not None and found.metadata["parents"] == {"x": ["a", "b"]}


def test_data_imports_nothing_by_name(saver: TakebackSaver, tmp_path: Path):
    import ormsgpack

    mark = tmp_path / "ran"
    evil = [
        ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(["os", "system", f"touch {mark}"]))),
        ormsgpack.packb(ormsgpack.Ext(3, ormsgpack.packb(["os", "path", str(mark), "exists"]))),
    ]
    for data in evil:
        assert mark.name in str(saver._loaded(b"msgpack\0" + data, "it"))
    assert not mark.exists()
    for kind in (b"pickle", b"json"):
        with pytest.raises(Damaged, match="it cannot be read"):
            saver._loaded(kind + b'\0{"lc": 2, "type": "constructor", "id": ["os", "system"]}', "it")


def test_a_tampered_row_is_named(project: Path):
    with TakebackSaver(project, files=False) as saver:
        line("a", "b")(saver).invoke({"done": ["x" * 300]}, config(), durability="sync")
        ids = [one.checkpoint["id"] for one in saver.list(config())]
        database = saver.workspace.store.folder / "journal.db"
    with sqlite3.connect(database) as db:
        ((seq, body),) = db.execute(
            "SELECT seq, body FROM log WHERE kind = 'state' ORDER BY seq DESC LIMIT 1"
        ).fetchall()
        db.execute("UPDATE log SET body = ? WHERE seq = ?", (body.replace(b'"step":2', b'"step":7'), seq))
    with TakebackSaver(project, files=False) as saver:
        with pytest.raises(Damaged, match=f"row {seq}"):
            saver.get_tuple(config())
        bad = [one for one in saver.verify() if not one.ok]
        assert [one.seq for one in bad] == [seq]
        assert saver.get_tuple(config(id=ids[1])) is not None  # the others are there


def test_an_unchanged_channel_is_stored_again_after_another_process_pruned_it(project: Path):
    same = ["x" * 300]

    def put(saver: TakebackSaver, n: int, new: dict[str, str]) -> None:
        versions = {"same": "1", "n": str(n)}
        one = {**empty_checkpoint(), "channel_values": {"same": same, "n": n}, "channel_versions": versions}
        saver.put(config(), one, {"source": "loop", "step": n}, new)

    with TakebackSaver(project, files=False) as saver:
        put(saver, 1, {"same": "1", "n": "1"})
        with takeback.open(project) as other:
            other.threads.remove("t")
            assert other.prune().rows
        put(saver, 2, {"n": "2"})
    with TakebackSaver(project, files=False) as saver:
        assert saver.get_tuple(config()).checkpoint["channel_values"] == {"same": same, "n": 2}


def test_a_value_that_was_altered_is_named(project: Path):
    with TakebackSaver(project, files=False) as saver:
        line("a")(saver).invoke({"done": ["x" * 300]}, config(), durability="sync")
        database = saver.workspace.store.folder / "journal.db"
    with sqlite3.connect(database) as db:
        rows = db.execute("SELECT seq, body FROM log WHERE kind = 'value'").fetchall()
        for seq, body in rows:
            db.execute("UPDATE log SET body = ? WHERE seq = ?", (body[:-1] + bytes((body[-1] ^ 1,)), seq))
    with TakebackSaver(project, files=False) as saver:
        with pytest.raises(Damaged, match="value"):
            saver.get_tuple(config())
        assert {seq for seq, _ in rows} <= {one.seq for one in saver.verify() if not one.ok}


def test_the_worked_example_runs(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/langgraph_rollback.py"), str(tmp_path / "demo")],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the shop has 42.00 EUR" in done.stdout and done.stdout.rstrip().endswith("the shop has 0.00 EUR.")
    assert textwrap.dedent(done.stdout) == done.stdout
