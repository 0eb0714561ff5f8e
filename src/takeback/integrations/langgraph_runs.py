"""The runs of LangGraph's threads, each a turn of its thread.

    a graph begins to run    ─► LangChain's callbacks say so ─► it reads its thread ─► look ─► the turn begins
    a node records an effect ─► LangChain's context says in which thread ─► it belongs to that turn
    the run ends, or fails   ─► the callbacks say so ─► look ─► what was done in it is the turn's

What a person, or another thread, did before, between and after is none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook
from langgraph.types import Command

from takeback.errors import TakebackError
from takeback.harness.recorder import Recorder, around_here, find_by
from takeback.threads import turns as thread_turns
from takeback.threads.turns import ThreadTurn
from takeback.workspace import Workspace

CHECKPOINTER = "__pregel_checkpointer"  # LangGraph's own names, in a config
_RUNTIME, _DURABILITY = "__pregel_runtime", "__pregel_durability"


class _Begun(NamedTuple):
    """What the callbacks told last, where a graph is about to read its thread."""

    run: UUID
    asked: str
    goes_on: bool  # with what was interrupted, or failed


_begun: ContextVar[_Begun | None] = ContextVar("takeback_langgraph_run", default=None)
_ends: dict[UUID, Callable[[bool], None]] = {}  # what is to be done when a run is over
_known: list[Runs] = []  # of savers that tie states to files
_REMEMBERED = 1_000  # runs that are over, while nodes of theirs may still be at work


class _Run(Recorder):
    """A turn that is open: what its nodes record belongs to it, also what a thread does that outlives it."""

    is_told = True

    def __init__(self, workspace: Workspace, opened: ThreadTurn, is_synced: bool) -> None:
        super().__init__(workspace)
        self.opened = opened
        self.turn = opened.owner
        self.is_synced = is_synced  # each state is put before the next step begins
        self.ids: set[UUID] = set()
        self.has_failed = False
        self.is_fresh = True  # no state was put in it yet
        self.moments: dict[int, int] = {}  # step → a row of the moment in which it was over, and the next one began
        self.looking = Lock()  # of a step that begins and a state that is put, one comes first

    def step_begins(self, step: int) -> None:
        """Looks at the files before the first node of a step touches them."""
        with self.looking:
            if step - 1 not in self.moments:
                self.moments[step - 1] = self.workspace.look()


class Runs:
    """Those of one workspace that are under way in this process. Two at once of the same thread are one turn."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._open: dict[str, _Run] = {}
        self._over: dict[str, _Run] = {}  # the last one of each thread
        self._lock = Lock()
        _known.append(self)

    def close(self) -> None:
        _known.remove(self)

    def of(self, thread: str) -> _Run | None:
        return self._open.get(thread)

    def last_of(self, thread: str) -> _Run | None:
        """The one that is under way; or was: a cancelled run cannot stop a node that is at work in a thread."""
        return self._open.get(thread) or self._over.get(thread)

    @property
    def all(self) -> Sequence[_Run]:
        return tuple(self._open.values())

    def begin(self, agent: str, thread: str, begun: _Begun, is_synced: bool) -> None:
        with self._lock:
            run = self._open.get(thread)
            if run is None:
                how: dict[str, Any] = {"called": "run", "goes_on": begun.goes_on}
                opened = thread_turns.begin(self._workspace, agent, thread, begun.asked, **how)
                run = self._open[thread] = _Run(self._workspace, opened, is_synced)
                run._enter(around_here())
            run.ids.add(begun.run)
            run.is_synced = run.is_synced and is_synced
            _ends[begun.run] = lambda failed: self._end(thread, begun.run, failed)

    def _end(self, thread: str, id: UUID, failed: bool) -> None:
        with self._lock:
            run = self._open.get(thread)
            if run is None or id not in run.ids:
                return
            run.ids.discard(id)
            run.has_failed = run.has_failed or failed
            if run.ids:
                return
            del self._open[thread]
            run._leave()
            self._over.pop(thread, None)
            self._over[thread] = run
            if len(self._over) > _REMEMBERED:
                del self._over[next(iter(self._over))]
            thread_turns.end(self._workspace, run.opened, run.has_failed)

    @contextmanager
    def putting(self, thread: str, metadata: Mapping[str, Any]) -> Iterator[int]:
        """While a state is put: a row of the moment that it is of, where the next step may be at work already. That is
        so of the one that a run begins with, and of every one where LangGraph does not wait until it is put. 0: it is
        of now, and no step begins before it is put."""
        run = self._open.get(thread)
        if run is None:
            yield 0
            return
        with run.looking:
            begins, step = run.is_fresh and metadata.get("source") in ("input", "fork"), metadata.get("step", -1)
            yield run.opened.seq if begins else run.moments.get(step, 0)
            run.is_fresh = False
            if not run.is_synced and not begins and step not in run.moments:
                run.moments[step] = self._workspace.store.journal.head().seq


def begun_here() -> _Begun | None:
    """The run that has begun in this context, and is not over."""
    return _begun.get()


def is_run(config: Mapping[str, Any]) -> bool:
    """Whether a graph asks that runs, and not somebody who looks at its state."""
    return _RUNTIME in config.get("configurable", {})


def is_synced(config: Mapping[str, Any]) -> bool:
    """Whether each state is put before the next step begins."""
    return bool(config.get("configurable", {}).get(_DURABILITY) == "sync")


class _Begins(BaseCallbackHandler):
    run_inline = True  # in the context of the graph itself

    @property
    def ignore_chain(self) -> bool:
        return not _known

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **_: Any) -> None:
        _begun.set(_Begun(run_id, _asked(inputs), inputs is None or isinstance(inputs, Command)))


class _Steps(BaseCallbackHandler):
    raise_error = True

    @property
    def ignore_chain(self) -> bool:
        return not any(not run.is_synced for runs in _known for run in runs.all)

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, metadata: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        told = metadata or {}
        step, thread = told.get("langgraph_step"), str(told.get("thread_id", ""))
        if isinstance(step, int):
            for run in filter(None, (runs.of(thread) for runs in _known)):
                run.step_begins(step)


class _Ends(BaseCallbackHandler):
    raise_error = True  # what cannot be journaled is said, and not only logged

    @property
    def ignore_chain(self) -> bool:
        return not _ends

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        if (end := _ends.pop(run_id, None)) is not None:
            end(False)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        if (end := _ends.pop(run_id, None)) is not None:
            try:
                end(True)
            except TakebackError as trouble:  # the graph's own failure is what its caller is to hear of
                error.add_note(f"takeback: what the run did could not be journaled: {trouble.message}")


def _asked(inputs: Any) -> str:
    """What a person said, if that is among what a graph is given."""
    messages = inputs.get("messages") if isinstance(inputs, Mapping) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    said = last.get("content") if isinstance(last, Mapping) else getattr(last, "content", last)
    return said if isinstance(said, str) else ""


def _here() -> Recorder | None:
    """The run that the caller's node is part of."""
    config = var_child_runnable_config.get()
    conf = (config or {}).get("configurable", {})
    runs = getattr(conf.get(CHECKPOINTER), "runs", None)
    return runs.last_of(str(conf.get("thread_id", ""))) if isinstance(runs, Runs) else None


# In every context: a run may begin in any of them.
for _handler in (_Begins(), _Steps(), _Ends()):
    register_configure_hook(ContextVar(type(_handler).__name__, default=_handler), inheritable=True)
find_by(_here)
