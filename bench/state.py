"""The state of LangGraph's threads: our saver against LangGraph's own for SQLite, both awaited, in one process.

put, get_tuple, list │ one call each, in turn, on threads that grow alike; put once more at the end of a long one
a graph of 50 steps  │ the same graph on either saver, in turn
storage              │ a thread of 1,000 steps whose messages grow
"""

from __future__ import annotations

import asyncio
import operator
import os
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from . import calm
from .rounds import Say, Times

OTHER = "AsyncSqliteSaver"
PUT, GET, LIST, GRAPH, STORAGE = "put", "get_tuple", "list of 100", "a graph of 50 steps", "storage of 1,000 steps"
LONG_PUT = "put after 900 steps"
_STEPS, _LONG, _GRAPH = 100, 1_000, 50
_WORDS = [
    f"{a}{b}" for a in ("re", "con", "pa", "val", "in", "set", "de") for b in ("tent", "ing", "th", "er", "st", "ma")
]
_PLAN = "Read the code, write a test, mend what fails, and say what was done. " * 30


def is_there() -> bool:
    """Whether LangGraph and its saver for SQLite are installed."""
    from importlib.util import find_spec

    return all(find_spec(name) for name in ("langgraph", "langgraph.checkpoint.sqlite"))


def measure(work: Path, rounds: int, say: Say) -> Times:
    """Every operation in seconds (storage: in bytes), by operation and side."""
    return asyncio.run(_measure(work, rounds, say))


async def _measure(work: Path, rounds: int, say: Say) -> Times:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from takeback.integrations.langgraph import TakebackSaver

    os.environ["TAKEBACK_HOME"] = str(work / "ours")
    (work / "theirs").mkdir(parents=True)
    (work / "project").mkdir()
    times: Times = {}
    async with (
        AsyncSqliteSaver.from_conn_string(str(work / "theirs" / "threads.db")) as theirs,
        TakebackSaver(work / "project", files=False) as ours,
    ):
        sides = {OTHER: theirs, "takeback": ours}
        for saver in sides.values():
            await _Grown(saver, "warm").put()
            await _run_graph(saver, "warm graph")
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            calm.settle(synced=True)
            await _calls(sides, number, times)
            for name in _order(sides, number):
                await _timed(times, GRAPH, name, partial(_run_graph, sides[name], f"graph {number}"))
        say("a long thread")
        used = {OTHER: work / "theirs", "takeback": work / "ours"}
        before = {name: _disk(folder) for name, folder in used.items()}
        long = {name: _Grown(saver, "long") for name, saver in sides.items()}
        for step in range(_LONG):
            for name in _order(sides, step):
                if step < _LONG - _STEPS:
                    await long[name].put()
                else:
                    await _timed(times, LONG_PUT, name, long[name].next())
        times[STORAGE] = {name: [_disk(used[name]) - before[name]] for name in sides}
    return times


async def _calls(sides: dict[str, Any], number: int, times: Times) -> None:
    threads = {name: _Grown(saver, f"thread {number}") for name, saver in sides.items()}
    for step in range(_STEPS):
        for name in _order(sides, step):
            await _timed(times, PUT, name, threads[name].next())
    for step in range(20):
        for name in _order(sides, step):
            await _timed(times, GET, name, threads[name].get)
    for step in range(3):
        for name in _order(sides, step):
            await _timed(times, LIST, name, threads[name].list)


def _order(sides: dict[str, Any], number: int) -> list[str]:
    return list(sides) if number % 2 == 0 else list(sides)[::-1]


async def _timed(times: Times, operation: str, side: str, act: Callable[[], Awaitable[None]]) -> None:
    started = time.perf_counter()
    await act()
    times.setdefault(operation, {}).setdefault(side, []).append(time.perf_counter() - started)


class _Grown:
    """A thread that grows by a message at each step, as a conversation does."""

    def __init__(self, saver: Any, thread: str) -> None:
        self.saver = saver
        self.name = thread
        self.thread = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        self.config = self.thread
        self.step = 0
        self.messages: list[Any] = []

    async def put(self) -> None:
        await self.next()()

    def next(self) -> Callable[[], Awaitable[None]]:
        """The next step, ready to be put."""
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.base.id import uuid6

        self.messages = [*self.messages, _message(f"{self.name}, {self.step}")]
        versions = dict.fromkeys(("messages", "step"), f"{self.step + 1:032}.{0.5:016}")
        new = versions if self.step else {**versions, "plan": f"{1:032}.{0.5:016}"}
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=self.step))
        checkpoint["channel_values"] = {"messages": self.messages, "step": self.step, "plan": _PLAN}
        checkpoint["channel_versions"] = {**versions, "plan": f"{1:032}.{0.5:016}"}
        checkpoint["versions_seen"] = {"agent": versions, "tools": versions}
        told = {"source": "loop", "step": self.step, "parents": {}}
        self.step += 1

        async def put() -> None:
            self.config = await self.saver.aput(self.config, checkpoint, told, new)

        return put

    async def get(self) -> None:
        found = await self.saver.aget_tuple(self.thread)
        assert len(found.checkpoint["channel_values"]["messages"]) == self.step

    async def list(self) -> None:
        assert len([found async for found in self.saver.alist(self.thread)]) == self.step


def _message(name: str) -> Any:
    """A message of about 400 bytes, which no other thread has."""
    from langchain_core.messages import AIMessage

    words = random.Random(name).choices(_WORDS, k=60)
    return AIMessage(f"{name}: {' '.join(words)}", id=name)


class _State(TypedDict):
    messages: Annotated[list[Any], operator.add]
    step: int


async def _run_graph(saver: Any, thread: str) -> None:
    from langgraph.graph import END, START, StateGraph

    def work(state: _State) -> Any:
        return {"messages": [_message(f"{thread}, {state['step']}")], "step": state["step"] + 1}

    builder = StateGraph(_State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: "work" if state["step"] < _GRAPH else END)
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 2 * _GRAPH}
    result = await builder.compile(checkpointer=saver).ainvoke({"messages": [], "step": 0}, config)
    assert len(result["messages"]) == _GRAPH


def _disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
