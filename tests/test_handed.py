"""Work that is handed to another thread knows from where: real threads, pools and timers."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takeback.harness.recorder import Recorder, at_work
from takeback.system import handed_over
from takeback.workspace import Workspace

WAYS: dict[str, Callable[[Callable[[], Any]], Any]] = {}


def way(run: Callable[[Callable[[], Any]], Any]) -> Callable[[Callable[[], Any]], Any]:
    WAYS[run.__name__] = run
    return run


def _kept(start: Callable[[Callable[[], None]], threading.Thread]) -> Callable[[Callable[[], Any]], Any]:
    def run(work: Callable[[], Any]) -> Any:
        found: list[Any] = []
        thread = start(lambda: found.append(work()))
        thread.start()
        thread.join(30)
        return found[0]

    return run


@way
def thread(work: Callable[[], Any]) -> Any:
    return _kept(lambda told: threading.Thread(target=told))(work)


@way
def thread_with_its_own_run(work: Callable[[], Any]) -> Any:
    class Own(threading.Thread):
        def __init__(self, told: Callable[[], None]) -> None:
            super().__init__()
            self.told = told

        def run(self) -> None:
            self.told()

    return _kept(Own)(work)


@way
def timer(work: Callable[[], Any]) -> Any:
    return _kept(lambda told: threading.Timer(0.001, told))(work)


@way
def pool(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as made:
        return made.submit(work).result(30)


@way
def mapped(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(2) as made:
        return list(made.map(lambda _: work(), range(3)))[-1]


@way
def thread_in_a_thread(work: Callable[[], Any]) -> Any:
    return thread(lambda: thread(work))


@way
def pool_in_a_pool(work: Callable[[], Any]) -> Any:
    return pool(lambda: pool(work))


@way
def executor_of_a_loop(work: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, work)

    return asyncio.run(run())


@way
def to_thread(work: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return await asyncio.to_thread(work)

    return asyncio.run(run())


@contextmanager
def opened(ws: Workspace) -> Iterator[Recorder]:
    with ws.recording(actor="alice") as recorder:
        yield recorder


@pytest.mark.parametrize("how", WAYS)
def test_it_is_known_where_work_was_handed_over(ws: Workspace, how: str):
    with opened(ws) as recorder:
        assert WAYS[how](at_work) is recorder
    assert WAYS[how](at_work) is None


@pytest.mark.parametrize("how", WAYS)
def test_what_comes_after_its_end_is_its_own_while_nothing_else_is_open(ws: Workspace, how: str):
    over, found = threading.Event(), list[Any]()

    def late() -> None:
        over.wait(30)
        found.append(at_work())

    with opened(ws) as recorder:
        running = threading.Thread(target=WAYS[how], args=(late,))
        running.start()
    over.set()
    running.join(30)
    assert found[-1] is recorder


@pytest.mark.parametrize("how", WAYS)
def test_what_comes_after_its_end_may_be_anybodys_once_others_are_open(ws: Workspace, how: str):
    """A thread may live longer than what it was started in, and serve others then."""
    over, found = threading.Event(), list[Any]()

    def late() -> None:
        over.wait(30)
        found.append(at_work())

    with opened(ws):
        running = threading.Thread(target=WAYS[how], args=(late,))
        running.start()
    with ws.recording(actor="bob"):
        over.set()
        running.join(30)
    assert [type(each).__name__ for each in found][-1] == "_NobodyKnows"


def test_what_comes_after_the_end_of_an_inner_one_is_of_the_one_around_it(ws: Workspace):
    over, found = threading.Event(), list[Any]()
    with opened(ws) as outer:
        with ws.recording():
            running = threading.Thread(target=lambda: (over.wait(30), found.append(at_work())))
            running.start()
        over.set()
        running.join(30)
    assert found == [outer]


def test_a_thread_of_a_pool_forgets_for_whom_it_worked(ws: Workspace):
    with ThreadPoolExecutor(1) as made, opened(ws) as recorder:
        assert made.submit(at_work).result(30) is recorder
        outside = threading.Event()
        asked = threading.Thread(target=lambda: (outside.wait(30), found.append(made.submit(at_work).result(30))))
        found: list[Any] = []
        handed_over.start_apart(asked)
        outside.set()
        asked.join(30)
        assert type(found[0]).__name__ == "_NobodyKnows"


def test_what_fails_fails_as_before(ws: Workspace):
    def fails() -> None:
        raise LookupError("no")

    with opened(ws), ThreadPoolExecutor(1) as made:
        with pytest.raises(LookupError):
            made.submit(fails).result(30)
        assert made.submit(sorted, [2, 1], reverse=True).result(30) == [2, 1]
        with pytest.raises(TypeError):
            made.submit()
        made.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            made.submit(fails)


def test_a_thread_that_could_not_be_started_is_as_it_was(ws: Workspace):
    made = threading.Thread(target=int)
    with opened(ws):
        made.start()
        made.join(30)
        with pytest.raises(RuntimeError, match="only be started once"):
            made.start()
    fresh = threading.Thread.__new__(threading.Thread)
    with opened(ws), pytest.raises(RuntimeError, match="__init__"):
        fresh.start()
    assert "run" not in vars(fresh)


def test_other_context_is_not_carried_along(ws: Workspace):
    """Only what is open: whatever else a program keeps in its context is its own affair."""
    own: ContextVar[str] = ContextVar("own", default="unset")
    own.set("set")
    with opened(ws):
        assert pool(own.get) == "unset"


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["own", "shared", "thread", "queue", "here"])), max_size=8)
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whoever_hands_over_what_is_never_taken_for_another(ws: Workspace, asked: list[tuple[int, str]]):
    """Three are open at once and hand work over in any order and way: it is theirs, or nobody knows whose."""
    jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def serve() -> None:
        while (job := jobs.get()) is not None:
            job()

    def by_queue(work: Callable[[], Any]) -> Any:
        found: queue.SimpleQueue[Any] = queue.SimpleQueue()
        jobs.put(lambda: found.put(work()))
        return found.get(timeout=30)

    server = threading.Thread(target=serve)
    server.start()
    with ThreadPoolExecutor(1) as shared:
        ways = {
            "own": pool,
            "thread": thread,
            "queue": by_queue,
            "here": lambda work: work(),
            "shared": lambda work: shared.submit(work).result(30),
        }
        contexts = [copy_context() for _ in range(3)]
        recorders = [ws.recording(actor=name) for name in ("alice", "bob", "carol")]
        for context, recorder in zip(contexts, recorders):
            context.run(recorder.__enter__)
        try:
            for who, how in asked:
                found = contexts[who].run(ways[how], at_work)
                is_known = found is recorders[who]
                assert is_known if how != "queue" else type(found).__name__ == "_NobodyKnows", (who, how, found)
        finally:
            for context, recorder in zip(contexts, recorders):
                context.run(recorder.__exit__)
            jobs.put(None)
            server.join(30)
