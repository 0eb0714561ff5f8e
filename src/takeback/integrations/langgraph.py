"""A checkpointer for LangGraph that keeps its threads in the journal, beside the files and effects of the same moment.

    saver = TakebackSaver("my-project")
    graph = builder.compile(checkpointer=saver)
    graph.invoke(…, config)
    saver.rollback_to(thread_id, checkpoint_id, with_files=True)

LangGraph's words for it: a channel is a named value of the state, a namespace is a graph or one of its subgraphs, and
pending writes are what tasks have already returned for the step that comes after a checkpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, cast

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
        PendingWrite,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
except ImportError as error:
    from takeback.system.installed import with_extra

    raise ImportError(f"{error}: install it: {with_extra('langgraph')}") from error

from takeback import open as open_workspace
from takeback.apply import results
from takeback.apply.executor import kept_results
from takeback.errors import ApprovalNeeded, CredentialNeeded, Damaged, NoWorkspace, Stale, TakebackError, UsageError
from takeback.harness.approval import awaiting, is_yes
from takeback.harness.recorder import to_the_end
from takeback.harness.steps import Approve
from takeback.model.effects import DONE, STATES, UNCOVERED, Outcome, Plan, path_of_thread
from takeback.model.thread_states import Checked, NewState, StateCheckpoint, Write
from takeback.system.handed_over import start_apart
from takeback.threads import plain_data
from takeback.threads import restored_from as lineage
from takeback.threads.stores import StateStore
from takeback.threads.threads import Threads
from takeback.threads.turns import finish_interrupted, finish_unasked
from takeback.workspace import Workspace

from .langgraph_runs import Runs, begun_here, is_run, is_synced

_BATCH = 64  # checkpoints that one trip to the worker thread reads
_DEEP = 50  # a value that holds itself has no innermost part
_REMEMBERED = 256  # namespaces whose last values are known by heart
_ATTEMPTS = 5  # at a plan that others make stale
_NAMED = 5  # of what would stay, in an error

T = TypeVar("T")
_List = list  # a saver has a method of that name


class _Kept(NamedTuple):
    """A channel as it was last put."""

    version: Any
    value: Any
    ref: str


class RolledBack(Outcome):
    """What came of going back, and where the thread is now. What it has besides an Outcome can be read by its name too:
    `said["back"]`, `said.get("back")`, `dict(said)`."""

    thread_id: str
    checkpoint_id: str  # the head of the thread now
    restored_from: str  # the checkpoint that was gone back to; empty where the thread stayed where it was
    rolled_back_from: str  # the head that was left; empty where none was
    blob_id: str
    back: tuple[str, ...]  # what went back, by name
    stayed: tuple[tuple[str, str], ...]  # what stayed, and why
    message: str  # both in a sentence, and what was finished
    nothing_to_take_back: bool  # it was the head already
    finished: results.Finished | None  # of a take-back that had been interrupted, whosever: it was finished first

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, str):
            return super().__getitem__(name)
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> _List[str]:
        return [*RolledBack.__annotations__, *self._fields]

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self.keys() else default


class _Job(NamedTuple):
    """What an awaited call waits for; it may join others in one transaction."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[], Any]
    joins: bool


class _Worker:
    """The thread in which awaited calls run, one after another: the event loop never waits for a disk. Puts that have
    come while one was written are written together."""

    def __init__(self, opened: _Opened) -> None:
        self._opened = opened
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._ending = threading.Lock()
        self._has_ended = False
        self._thread = threading.Thread(target=self._run, name="takeback-saver", daemon=True)
        start_apart(self._thread)

    def do(self, work: Callable[[], T], joins: bool = False) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._ending:  # what came after the end would be awaited for ever
            if self._has_ended:
                raise _was_closed()
            self._jobs.put(_Job(loop, future, work, joins))
        return future

    @property
    def is_alive(self) -> bool:
        """Threads do not come along into a process that is forked."""
        return self._thread.is_alive()

    def end(self) -> None:
        with self._ending:
            self._has_ended = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        waiting: deque[_Job | None] = deque()
        while (job := waiting.popleft() if waiting else self._jobs.get()) is not None:
            some = [job]
            while job.joins and not waiting and not self._jobs.empty():
                following = self._jobs.get()
                if following is not None and following.joins:
                    some.append(following)
                else:
                    waiting.append(following)
            for each, (result, error) in zip(some, self._done(some), strict=True):
                _tell(each, result, error)

    def _done(self, jobs: Sequence[_Job]) -> Sequence[tuple[Any, BaseException | None]]:
        if len(jobs) == 1:
            return [_attempt(jobs[0].work)]
        try:
            with self._opened.threads.together():
                return [_attempt(job.work) for job in jobs]
        except BaseException as error:
            self._opened.kept.clear()
            return [(None, error)] * len(jobs)


def _attempt(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:
        return None, error


def _tell(job: _Job, result: Any, error: BaseException | None) -> None:
    def told() -> None:
        if job.future.done():
            return  # nobody waits any more
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    with contextlib.suppress(RuntimeError):  # its loop has ended
        job.loop.call_soon_threadsafe(told)


class _Opened:
    """What a saver and its clones share: the workspace, its threads, and who works on them for awaited calls."""

    def __init__(self, workspace: Workspace, is_own: bool, blobs: StateStore | None, files: bool) -> None:
        self.workspace = workspace
        self.runs = Runs(workspace) if files else None
        self.threads = workspace.threads if blobs is None else Threads(workspace, blobs)
        if blobs is not None:
            workspace.threads.held.read_from(blobs)  # or nothing that lies there could be gone back to
        self.joins = not self.threads.held.goes_elsewhere  # nobody else waits while values are uploaded
        self.is_own = is_own
        self.is_closed = False
        self.finished: results.Finished | None = None
        self.kept: dict[tuple[str, str], dict[str, _Kept]] = {}
        self._worker: _Worker | None = None

    @property
    def worker(self) -> _Worker:
        if self._worker is None or not self._worker.is_alive:
            self._worker = _Worker(self)
        return self._worker

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if self.runs is not None:
            self.runs.close()
        if self._worker is not None:
            self._worker.end()
        if self.threads is not self.workspace.threads:
            self.threads.close()  # no part of the workspace: its index is open for it alone
        if self.is_own:
            self.workspace.close()


class TakebackSaver(BaseCheckpointSaver[str]):
    """LangGraph's state in takeback's journal: every method for a call and for `await`.

    `files` ties each checkpoint to the files of its moment, and each run is a turn of its thread: the folder must be
    protected (takeback init). Without it only state is kept, nothing is scanned, and any folder will do. `blobs` keeps
    values beyond this machine; without it they go where the setting threads.store says. `allow` lists classes, beside
    LangGraph's own, that a value may be read back as; all others come back as plain data."""

    def __init__(
        self,
        root_or_workspace: str | os.PathLike[str] | Workspace,
        files: bool = True,
        blobs: StateStore | None = None,
        *,
        allow: Iterable[type | tuple[str, ...]] = (),
        serde: SerializerProtocol | None = None,
        agent: str = "langgraph",
    ) -> None:
        strict = JsonPlusSerializer(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)
        super().__init__(serde=serde or strict.with_msgpack_allowlist(allow))
        self._files = files
        self._agent = agent
        self._opened = _open(root_or_workspace, files, blobs)

    @property
    def workspace(self) -> Workspace:
        """Where it all is. Closed, it says so."""
        self._must_be_open()
        return self._opened.workspace

    @property
    def threads(self) -> Threads:
        self._must_be_open()
        return self._opened.threads

    @property
    def runs(self) -> Runs | None:
        """Of its threads, those that are under way; None where files are no concern of it."""
        return self._opened.runs

    @property
    def finished(self) -> results.Finished | None:
        """What came of the take-back that had been interrupted, whosever, and that a run of this saver last finished
        before it began; None where none had to. The logger `takeback` is told of each."""
        return self._opened.finished

    def _must_be_open(self) -> None:
        if self._opened.is_closed:
            raise _was_closed()

    # -- runs ----------------------------------------------------------------------

    def _beginning(self, config: RunnableConfig) -> Callable[[], None] | None:
        """What is to be done before a graph runs on: None where nothing is."""
        if self.runs is None or not is_run(config) or not self.workspace.settings.enabled:
            return None
        thread, ns, _ = _address(config)
        runs, begun = self.runs, begun_here()
        if ns or begun is None:
            return None

        def begin() -> None:
            self._opened.finished = finish_unasked(self.workspace) or self._opened.finished
            runs.begin(self._agent, thread, begun, is_synced(config))

        return begin

    def close(self) -> None:
        """Ends its worker thread, and closes the workspace if the saver opened it."""
        self._opened.close()

    def __enter__(self) -> TakebackSaver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> TakebackSaver:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    async def _in_worker(self, work: Callable[[], T]) -> T:
        return await self._worker.do(work)

    @property
    def _worker(self) -> _Worker:
        self._must_be_open()
        return self._opened.worker

    # -- putting -------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Saves a checkpoint as the head of its namespace. Channels that did not change are not stored again."""
        return self._putting(config, checkpoint, metadata, new_versions)()

    def _putting(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Callable[[], RunnableConfig]:
        """With all its values in bytes; what is left is to store it."""
        thread, ns, parent = _address(config)
        found = get_checkpoint_metadata(config, metadata)
        told: dict[str, Any] = json.loads(plain_data.encoded(found, "metadata"))  # as it is read again
        kept = self._opened.kept.get((thread, ns), {})
        # Copies: they may be changed while the put waits for its turn.
        versions, values = dict(checkpoint["channel_versions"]), dict(checkpoint["channel_values"])
        refs: dict[str, bytes | str] = {}
        for channel, value in values.items():
            before = kept.get(channel)
            if (
                before is not None
                and before.value is value
                and channel not in new_versions
                and before.version == versions.get(channel)
            ):
                refs[channel] = before.ref
            else:
                refs[channel] = self._dumped(value, f"channel {channel!r}")
        rest = {name: _own(part) for name, part in checkpoint.items() if name not in ("id", "channel_values") and part}
        rest["metadata"] = told
        new = NewState(
            thread=thread,
            ns=ns,
            id=checkpoint["id"],
            parent=parent,
            values=refs,
            meta=rest,
            codec="typed",
            source="langgraph",
            summary=_summary(told),
            agent=self._agent,
            run=str(told.get("run_id") or ""),
            part_of_identity={"versions": _digest(versions, checkpoint["versions_seen"])},
        )
        runs = self.runs if not ns else None

        def put(new: NewState) -> Mapping[str, str]:
            if runs is None:
                return self.threads.put(new, capture=self._files).refs
            with runs.putting(thread, told) as began:
                return self.threads.put(new._replace(began=began), capture=not began).refs  # else it was looked at then

        def store() -> RunnableConfig:
            try:
                refs = put(new)
            except Damaged:  # what did not change was pruned meanwhile, by whoever removed its thread
                whole = {
                    name: part if isinstance(part, bytes) else self._dumped(values[name], f"channel {name!r}")
                    for name, part in new.values.items()
                }
                refs = put(new._replace(values=whole))
            self._remember(thread, ns, {name: _Kept(versions.get(name), values[name], refs[name]) for name in values})
            return _config(thread, ns, new.id)

        return store

    def _remember(self, thread: str, ns: str, kept: dict[str, _Kept]) -> None:
        known = self._opened.kept
        known.pop((thread, ns), None)
        if len(known) >= _REMEMBERED:
            for oldest in _List(islice(known, _REMEMBERED // 2)):
                known.pop(oldest, None)
        known[thread, ns] = kept

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Saves what a task returned for the step after a checkpoint. Said twice, the first time counts, but for
        errors, interrupts and resumes."""
        self._putting_writes(config, writes, task_id, task_path)()

    def _putting_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Callable[[], None]:
        thread, ns, id = _address(config)
        rows = []
        for number, (channel, value) in enumerate(writes):
            data = self._dumped(value, f"a write to {channel!r}")
            rows.append(Write(WRITES_IDX_MAP.get(channel, number), channel, data, task_id, task_path))
        return lambda: self.threads.put_writes(thread, ns, id, task_id, task_path, rows)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Counts up. The random end tells the versions of two branches apart."""
        count = 0 if current is None else current if isinstance(current, int) else int(str(current).split(".")[0])
        return f"{count + 1:032}.{random.random():016}"

    # -- getting -------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint with its pending writes; the head of the namespace if none is named."""
        if (begin := self._beginning(config)) is not None:
            begin()
        read = self._read(config)
        return None if read is None else self._tuple(*read)

    def _read(self, config: RunnableConfig) -> tuple[StateCheckpoint, Mapping[str, bytes], Sequence[Write]] | None:
        """A checkpoint, its values in bytes, and what was written after it."""
        threads = self.threads
        with threads.reading():
            found = self._find(*_address(config))
            return None if found is None else (found, threads.values(found), threads.writes(found))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first; of all threads without a config."""
        wanted = iter(self._listed(config, filter or {}, before, limit))
        while some := _List(islice(wanted, _BATCH)):
            writes = self.threads.many_writes(some)
            for found in some:
                written = writes.get((found.thread, found.ns, found.id), [])
                yield self._tuple(found, self.threads.values(found), written)

    def _find(self, thread: str, ns: str, id: str) -> StateCheckpoint | None:
        found = self.threads.find(thread, id, ns)
        return None if found is None or found.absent else found

    def _listed(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any],
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Iterator[StateCheckpoint]:
        conf = config["configurable"] if config else {}
        thread, ns, id = str(conf.get("thread_id", "")), conf.get("checkpoint_ns"), conf.get("checkpoint_id")
        below = before["configurable"].get("checkpoint_id") if before else None
        left = limit
        for found in self._pages(thread, ns, limit):
            if left is not None and left <= 0:
                return
            if (id and found.id != id) or (below and found.id >= below):
                continue
            if found.absent:
                if limit == 1 and ns is not None:
                    return  # the newest before a moment was asked for, and there was none then
                continue
            told = _metadata(found)
            if all(name in told and told[name] == value for name, value in filter.items()):
                left = None if left is None else left - 1
                yield found

    def _pages(self, thread: str, ns: str | None, limit: int | None) -> Iterator[StateCheckpoint]:
        seen: set[tuple[str, str, str]] = set()  # of one that was put again, the newest row counts
        size, below = min(limit or _BATCH, _BATCH), None
        while some := self.threads.list(thread, ns, limit=size, below=below, absent=True):
            for found in some:
                if (key := (found.thread, found.ns, found.id)) not in seen:
                    seen.add(key)
                    yield found
            if len(some) < size:
                return
            below, size = some[-1].seq, _BATCH

    def _tuple(self, found: StateCheckpoint, data: Mapping[str, bytes], writes: Sequence[Write]) -> CheckpointTuple:
        values = {name: self._loaded(value, f"channel {name!r} of {found.id}") for name, value in data.items()}
        rest = {name: _own(part) for name, part in found.meta.items() if name != "metadata"}
        whole = {"updated_channels": None, "versions_seen": {}, "channel_versions": {}, **rest}
        checkpoint = cast(Checkpoint, {**whole, "id": found.id, "channel_values": values})
        parent = _config(found.thread, found.ns, found.parent) if found.parent else None
        told = cast(CheckpointMetadata, _metadata(found))
        where = _config(found.thread, found.ns, found.id)
        return CheckpointTuple(where, checkpoint, told, parent, self._pending(found, writes))

    def _pending(self, found: StateCheckpoint, writes: Sequence[Write]) -> _List[PendingWrite]:
        return [(w.task, w.channel, self._loaded(w.data, f"a write to {w.channel!r} at {found.id}")) for w in writes]

    # -- channels that keep only what was added -------------------------------------

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What was written to each channel since its last whole value, oldest first, and that value."""
        out: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        target = self._find(*_address(config)) if channels else None
        for found, wanted in lineage.walked(self.threads, target, channels):
            pending = [w for w in self.threads.writes(found) if w.channel in wanted]
            for write in reversed(self._pending(found, pending)):
                out[write[1]]["writes"].append(write)
            for channel in wanted & found.refs.keys():
                out[channel]["seed"] = self._value(found, channel)
        for history in out.values():
            history["writes"].reverse()
        return out

    def _value(self, found: StateCheckpoint, channel: str) -> Any:
        return self._loaded(self.threads.value(found.refs[channel]), f"channel {channel!r} of {found.id}")

    # -- removing ------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Removes a thread from sight; its bytes go at the next takeback prune."""
        self._opened.kept.clear()
        self.threads.remove(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Removes the checkpoints and writes of these runs."""
        self._opened.kept.clear()
        self.threads.remove_runs([str(run) for run in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies every checkpoint of a thread with its writes, so that its whole history is there too."""
        self.threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes all checkpoints of these threads, or all but the newest of each namespace; what those are read from
        stays, and so does what forks, pending handoffs and a redo need."""
        if strategy not in ("keep_latest", "delete"):
            raise UsageError(f"no such strategy: {strategy!r}", 'there are "keep_latest" and "delete"')
        self._opened.kept.clear()
        if names := [str(thread) for thread in thread_ids]:  # without any, all of them would be meant
            self.threads.prune(names, delete=strategy == "delete", heads=strategy == "keep_latest", missing_ok=True)

    # -- rolling back ----------------------------------------------------------------

    def rollback_to(
        self,
        thread_id: str,
        checkpoint_id: str,
        with_files: bool = False,
        approve: Approve | None = None,
        *,
        anyway: bool = False,
    ) -> RolledBack:
        """Makes an earlier state the head of its thread again, subgraphs with it. Nothing is deleted, and takeback redo
        reverses it. With files, what was done in the thread's own runs after that checkpoint is taken back too: files,
        git, and what was done outside if policy allows that, or if `approve`, shown the plan, says True. What others
        did stays, and is named.

        Where some of that cannot go back, nothing does, and an error says what; what fails on the way leaves the state
        where it is. With `anyway` the state and the rest go back all the same."""
        if not checkpoint_id:
            raise UsageError(f"no checkpoint of thread {thread_id} is named to go back to", "see takeback thread list")
        if with_files and not self._files:
            raise UsageError(
                f"this saver keeps state alone, so that nothing ties {checkpoint_id} to the files of its moment",
                "roll back without them, or keep them from the beginning: files=True",
            )
        ws, before = self.workspace, self.threads.find(str(thread_id))
        finished = finish_interrupted(ws)
        while True:
            with results.telling(finished):
                target = self.threads.get(str(thread_id), checkpoint_id)
                outcome, left = self._go_back(target, with_files, approve, anyway)
            if not outcome.finished_earlier:
                break
            finished = results.finished(ws, outcome)  # it was cut off since we looked
        if finished is None or not outcome.plan.idle or target.thread not in finished.plan.request.threads:
            return self._rolled_back(outcome, target, left, finished)
        return self._rolled_back(finished, target, before.id if before else "", finished)  # all there was to do

    def _go_back(
        self, target: StateCheckpoint, with_files: bool, approve: Approve | None, anyway: bool
    ) -> tuple[Outcome, str]:
        """What came of it, and the head that was there before."""
        ws = self.workspace
        how: dict[str, Any] = {"with_files": with_files, "own": with_files, "bound": with_files and not anyway}
        for _ in range(_ATTEMPTS):
            head = self.threads.get(target.thread)
            plan = ws.plan("thread", target.thread, target.id, **how)
            _must_go_back(plan, target, anyway, ws)
            _must_have_credentials(plan, ws)
            if any(ws.unapproved(plan)) and not (approve and is_yes(approve(plan), "await arollback_to")):
                raise ApprovalNeeded(
                    f"nothing was changed: {_outside(plan, ws)} would be taken back outside the files, which needs a "
                    "person's yes",
                    "give rollback_to an approve: it is shown the plan and says True; or roll back without files",
                )
            if any(ws.unapproved(plan)):
                ws.approve(plan)
            with contextlib.suppress(Stale):  # somebody did something meanwhile
                return ws.apply(plan), head.id
        raise Stale("others kept changing what it would take back; nothing was changed", "try it again")

    def _rolled_back(
        self, outcome: Outcome, target: StateCheckpoint, before: str, finished: results.Finished | None
    ) -> RolledBack:
        head, named = self.threads.get(target.thread), results.named(self.workspace, outcome)
        said = RolledBack(*outcome)
        said.thread_id, said.checkpoint_id, said.blob_id = head.thread, head.id, head.blob_id
        thread = path_of_thread(target.thread)
        has_moved = any(r.path == thread and r.result == DONE for r in outcome.results)  # by this, not by another
        said.restored_from, said.rolled_back_from = (target.id, before) if has_moved else ("", "")
        said.back, said.stayed = named
        told = [finished.message] if finished is not None else []
        told += [results.sentence(named)] if outcome is not finished else []
        said.message = ". Besides that: ".join(told)
        said.nothing_to_take_back = outcome.plan.idle
        said.finished = finished
        return said

    def fork(self, thread_id: str, checkpoint_id: str, new_thread_id: str) -> dict[str, Any]:
        """Begins a new thread at a checkpoint of another one, which stays as it is."""
        head = self.threads.fork(str(thread_id), checkpoint_id, str(new_thread_id), agent=self._agent)
        source, id = head.forked_from or (str(thread_id), checkpoint_id)
        return {
            "thread_id": head.thread,
            "checkpoint_id": head.id,
            "forked_from": {"thread_id": source, "checkpoint_id": id},
            "blob_id": head.blob_id,
        }

    def verify(self, thread_id: str = "") -> Sequence[Checked]:
        """Each checkpoint, and whether all of it is as it was put."""
        return self.threads.verify(str(thread_id))

    # -- the twins for await ---------------------------------------------------------

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        joins = not self._files and self._opened.joins
        return await self._worker.do(self._putting(config, checkpoint, metadata, new_versions), joins)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._worker.do(self._putting_writes(config, writes, task_id, task_path), self._opened.joins)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        if (begin := self._beginning(config)) is not None:
            await self._in_worker(begin)
        read = await self._in_worker(lambda: self._read(config))
        return None if read is None else self._tuple(*read)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while some := await self._in_worker(lambda: _List(islice(found, _BATCH))):
            for one in some:
                yield one

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._in_worker(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._in_worker(lambda: self.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._in_worker(lambda: self.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._in_worker(lambda: self.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._in_worker(lambda: self.prune(thread_ids, strategy=strategy))

    async def arollback_to(
        self,
        thread_id: str,
        checkpoint_id: str,
        with_files: bool = False,
        approve: Approve | None = None,
        *,
        anyway: bool = False,
    ) -> RolledBack:
        def roll_back(asked: Approve | None = None) -> RolledBack:
            return self.rollback_to(thread_id, checkpoint_id, with_files, asked, anyway=anyway)

        if approve is None:
            return await self._in_worker(roll_back)
        # In a thread of its own: who is asked may await what the worker does.
        return await to_the_end(roll_back, awaiting(approve))

    async def afork(self, thread_id: str, checkpoint_id: str, new_thread_id: str) -> dict[str, Any]:
        return await self._in_worker(lambda: self.fork(thread_id, checkpoint_id, new_thread_id))

    async def averify(self, thread_id: str = "") -> Sequence[Checked]:
        return await self._in_worker(lambda: self.verify(thread_id))

    # -- values as bytes ---------------------------------------------------------------

    def _dumped(self, value: Any, what: str) -> bytes:
        try:
            kind, data = self.serde.dumps_typed(value)
        except Exception as error:  # a serializer may be anybody's, and so may what it calls
            path, part = _culprit(self.serde, value)
            where = f"{what}, at {path}" if path else what
            raise TakebackError(
                f"{where}: a {type(part).__name__} cannot be saved ({error})",
                "keep it out of the state, or put plain data, a dataclass or a pydantic model there",
            ) from error
        return b"%b\0%b" % (kind.encode(), data)

    def _loaded(self, data: bytes, what: str) -> Any:
        kind, _, packed = data.partition(b"\0")
        try:
            if kind == b"json":
                raise ValueError("takeback never wrote JSON that names classes")
            return self.serde.loads_typed((kind.decode(), packed))
        except Exception as error:  # as above
            raise Damaged(f"{what} cannot be read ({error})", "takeback verify says what is lost") from error


def _open(given: str | os.PathLike[str] | Workspace, files: bool, blobs: StateStore | None) -> _Opened:
    if isinstance(given, Workspace):
        opened = _Opened(given, False, blobs, files)
    else:
        opened = _Opened(open_workspace(given, create=False if files else "state"), True, blobs, files)
    if files and opened.workspace.store.journal.last("checkpoint") is None:
        opened.close()
        raise NoWorkspace(
            f"the files of {opened.workspace.root} are not protected",
            f"protect them with takeback init -C {opened.workspace.root}, or keep state alone: files=False",
        )
    return opened


def _must_go_back(plan: Plan, target: StateCheckpoint, anyway: bool, workspace: Workspace) -> None:
    """Refuses what would leave behind something that the state stands on: the thread itself, or what was done in it.
    What was written beyond the workspace was never to go back."""
    path = path_of_thread(target.thread)
    kept = [s for s in plan.kept if s.verdict != UNCOVERED or s.domain in STATES]
    if own := [s for s in kept if s.path == path]:
        raise TakebackError(
            f"thread {target.thread} cannot go back to {target.id}: {own[0].note}; nothing was changed",
            "go back to another checkpoint; takeback thread verify says which are whole",
        )
    history = workspace.history()
    mine = history.turns_of((target.thread,))
    doubtful = {u for u in plan.left if results.is_uncertain(history, u) and history.whose(u) & mine}
    if (kept or doubtful) and not anyway:
        found = results.named(
            workspace, Outcome(plan._replace(left=frozenset(doubtful)), "", tuple(kept_results(plan)))
        )
        more = f" and {len(found.stayed) - _NAMED} more" if len(found.stayed) > _NAMED else ""
        told = "; ".join(f"{name}: {why}" for name, why in found.stayed[:_NAMED])
        raise TakebackError(
            f"not all that thread {target.thread} did since {target.id} can go back, so nothing was changed: "
            f"{told}{more}",
            "settle that first, or go back with the rest all the same: rollback_to(…, anyway=True)",
        )


def _must_have_credentials(plan: Plan, workspace: Workspace) -> None:
    """Refuses what would need a secret that is not set here, or that no setting lets go there: nobody's yes to the plan
    changes that."""
    if unbound := workspace.unapproved(plan)[1]:
        named = ", ".join(f"{each.name} is not bound to {each.origin}" for each in unbound)
        bind = "; ".join(each.binding for each in unbound)
        raise CredentialNeeded(
            f"nothing was changed: {named} in your settings, and is not sent there without that",
            f"bind it in your own configuration ({bind}), open the workspace again and roll back; or roll back on a "
            "terminal, which asks (takeback thread rollback), or without files",
        )
    try:
        workspace.must_be_ready(plan)
    except CredentialNeeded as error:
        way = "set it in the environment of this program and roll back again, or roll back without files"
        raise CredentialNeeded(error.message, way) from error


def _outside(plan: Plan, workspace: Workspace) -> str:
    acts = {act.path: results.called(act) for act in workspace.effects()}
    return ", ".join(acts[step.path] for step in plan.outside)


def _was_closed() -> UsageError:
    return UsageError("this saver was closed", "make a new one: TakebackSaver(root)")


def _address(config: RunnableConfig) -> tuple[str, str, str]:
    """Thread, namespace and checkpoint; the last is empty for the head."""
    conf = config["configurable"]
    if "thread_id" not in conf:
        raise UsageError("the config names no thread", 'say which: {"configurable": {"thread_id": …}}')
    return str(conf["thread_id"]), str(conf.get("checkpoint_ns") or ""), str(conf.get("checkpoint_id") or "")


def _config(thread: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}


def _metadata(found: StateCheckpoint) -> dict[str, Any]:
    """As it was put. A head that a rollback made is no update: LangGraph would look for its subgraphs' state beside the
    head before it."""
    told: dict[str, Any] = _own(found.meta.get("metadata", {}))
    if found.restored_from:
        told |= {"restored_from": found.restored_from, "rolled_back_from": found.rolled_back_from}
        if told.get("source") in ("update", "fork"):
            told["source"] = "loop"
    return told


def _summary(metadata: Mapping[str, Any]) -> str:
    step, source = metadata.get("step"), metadata.get("source")
    return ", ".join([*([f"step {step}"] if step is not None else []), *([str(source)] if source else [])])


def _own(part: Any) -> Any:
    """A copy of plain data: LangGraph changes what it put, and what it got, in place."""
    if isinstance(part, dict):
        return {name: _own(value) if isinstance(value, dict | list) else value for name, value in part.items()}
    return [_own(value) for value in part] if isinstance(part, list) else part


def _digest(*versions: Any) -> str:
    return sha256(repr(versions).encode()).hexdigest()[:32]


def _culprit(serde: SerializerProtocol, value: Any, depth: int = 0) -> tuple[str, Any]:
    """The innermost part of a value that cannot be serialised, and the path to it."""
    for step, part in _parts(value) if depth < _DEEP else ():
        try:
            serde.dumps_typed(part)
        except Exception:
            path, innermost = _culprit(serde, part, depth + 1)
            return step + path, innermost
    return "", value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{name!r}]", part) for name, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{number}]", part) for number, part in enumerate(value))
    elif hasattr(value, "__dict__"):
        yield from ((f".{name}", part) for name, part in vars(value).items())
