"""Async twins: the verbs of threads for `await`, each in a thread of its own. What each does is said at its sibling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from takeback.model.thread_states import (
    Checked,
    Found,
    Handoff,
    NewState,
    StateCheckpoint,
    StateDifference,
    ThreadSeen,
    Write,
)

if TYPE_CHECKING:
    from typing import TypeVar

    from .prune import ThreadsPruned
    from .threads import Threads

    T = TypeVar("T")


class ThreadTwins:
    """Of Threads alone."""

    async def asave(self, thread: str, state: Mapping[str, Any], **how: Any) -> StateCheckpoint:
        return await _in_thread(lambda: _of(self).save(thread, state, **how))

    async def aput(self, new: NewState, *, capture: bool = False, actor: str = "") -> StateCheckpoint:
        return await _in_thread(lambda: _of(self).put(new, capture=capture, actor=actor))

    async def aput_writes(
        self, thread: str, ns: str, checkpoint: str, task: str, task_path: str, writes: Sequence[Write]
    ) -> None:
        await _in_thread(lambda: _of(self).put_writes(thread, ns, checkpoint, task, task_path, writes))

    async def awrites(self, checkpoint: StateCheckpoint) -> Sequence[Write]:
        return await _in_thread(lambda: _of(self).writes(checkpoint))

    async def afind(self, thread: str, id: str = "", ns: str = "") -> StateCheckpoint | None:
        return await _in_thread(lambda: _of(self).find(thread, id, ns))

    async def aget(self, thread: str, id: str = "", ns: str | None = None) -> StateCheckpoint:
        return await _in_thread(lambda: _of(self).get(thread, id, ns))

    async def avalues(self, checkpoint: StateCheckpoint) -> dict[str, bytes]:
        return await _in_thread(lambda: _of(self).values(checkpoint))

    async def aload(self, checkpoint: StateCheckpoint) -> dict[str, Any]:
        return await _in_thread(lambda: _of(self).load(checkpoint))

    async def alist(
        self, thread: str = "", ns: str | None = None, before: str = "", limit: int | None = None
    ) -> Sequence[StateCheckpoint]:
        return await _in_thread(lambda: _of(self).list(thread, ns, before, limit))

    async def aall(self) -> Sequence[ThreadSeen]:
        return await _in_thread(lambda: _of(self).all())

    async def adiff(self, thread: str, a: str, b: str = "") -> Sequence[StateDifference]:
        return await _in_thread(lambda: _of(self).diff(thread, a, b))

    async def asearch(self, query: str, thread: str = "", limit: int = 20) -> Sequence[Found]:
        return await _in_thread(lambda: _of(self).search(query, thread, limit))

    async def afork(self, thread: str, id: str, new_thread: str, *, agent: str = "") -> StateCheckpoint:
        return await _in_thread(lambda: _of(self).fork(thread, id, new_thread, agent=agent))

    async def acopy(self, source: str, target: str) -> int:
        return await _in_thread(lambda: _of(self).copy(source, target))

    async def ahandoff(self, thread: str, id: str = "", **how: Any) -> Handoff:
        return await _in_thread(lambda: _of(self).handoff(thread, id, **how))

    async def aadopt(self, handoff_id: str, *, agent: str = "", new_thread: str = "") -> StateCheckpoint:
        return await _in_thread(lambda: _of(self).adopt(handoff_id, agent=agent, new_thread=new_thread))

    async def aremove(self, thread: str, ids: Iterable[tuple[str, str]] | None = None) -> int:
        return await _in_thread(lambda: _of(self).remove(thread, ids))

    async def aprune(self, threads: Iterable[str] = (), **how: Any) -> ThreadsPruned:
        return await _in_thread(lambda: _of(self).prune(threads, **how))

    async def averify(self, thread: str = "") -> Sequence[Checked]:
        return await _in_thread(lambda: _of(self).verify(thread))


def _of(twins: ThreadTwins) -> Threads:
    return twins  # type: ignore[return-value]


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)
