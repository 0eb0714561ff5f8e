"""Async twins: the verbs of a workspace for `await`, each in a thread. What each does is said at its sibling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeVar

    from takeback.care.prune import Pruned
    from takeback.care.verify import Repaired, Verified
    from takeback.model.effects import Checkpoint, Outcome, Plan
    from takeback.model.outside import Act
    from takeback.show import views

    from .workspace import Tracked, Workspace

    T = TypeVar("T")


class Twins:
    """Of Workspace alone."""

    async def acheckpoint(self, label: str = "", *, actor: str = "") -> Checkpoint:
        return await _in_thread(lambda: _of(self).checkpoint(label, actor=actor))

    async def atrack(self, paths: Iterable[str | bytes], *, actor: str = "") -> Tracked:
        return await _in_thread(lambda: _of(self).track(paths, actor=actor))

    async def astatus(self) -> views.Status:
        return await _in_thread(_of(self).status)

    async def adiff(self, a: str = "", b: str = "", paths: Iterable[str] = ()) -> views.Diff:
        return await _in_thread(lambda: _of(self).diff(a, b, paths))

    async def alog(self, filter: str = "") -> list[views.LogRow]:
        return await _in_thread(lambda: _of(self).log(filter))

    async def ashow(self, name: str) -> views.Shown:
        return await _in_thread(lambda: _of(self).show(name))

    async def aplan(self, verb: str, *what: str | int, **options: Any) -> Plan:
        return await _in_thread(lambda: _of(self).plan(verb, *what, **options))

    async def aapply(self, plan: Plan | str) -> Outcome:
        return await _in_thread(lambda: _of(self).apply(plan))

    async def aresume(self, abort: bool = False, *, leave: bool = False) -> Outcome | None:
        return await _in_thread(lambda: _of(self).resume(abort, leave=leave))

    async def aundo(self, n: int | str = 1, **options: Any) -> Outcome:
        return await _in_thread(lambda: _of(self).undo(n, **options))

    async def aredo(self, n: int = 1, **options: Any) -> Outcome:
        return await _in_thread(lambda: _of(self).redo(n, **options))

    async def arollback(self, to: str = "", **options: Any) -> Outcome:
        return await _in_thread(lambda: _of(self).rollback(to, **options))

    async def aroll_back_thread(self, thread: str, checkpoint: str, **options: Any) -> Outcome:
        return await _in_thread(lambda: _of(self).roll_back_thread(thread, checkpoint, **options))

    async def arevert(self, *what: str, **options: Any) -> Outcome:
        return await _in_thread(lambda: _of(self).revert(*what, **options))

    async def arestore(self, checkpoint: str, *paths: str, **options: Any) -> Outcome:
        return await _in_thread(lambda: _of(self).restore(checkpoint, *paths, **options))

    async def ahold_email(self, to: str | Iterable[str], subject: str, body: str, **more: Any) -> Act:
        return await _in_thread(lambda: _of(self).hold_email(to, subject, body, **more))

    async def arelease_email(self, name: str = "", **how: Any) -> Act:
        return await _in_thread(lambda: _of(self).release_email(name, **how))

    async def acancel_email(self, name: str = "", *, trash_copy: bool = False) -> Act:
        return await _in_thread(lambda: _of(self).cancel_email(name, trash_copy=trash_copy))

    async def apending_email(self) -> list[Act]:
        return await _in_thread(_of(self).pending_email)

    async def arecord_http(self, method: str, url: str, **what: Any) -> Act:
        return await _in_thread(lambda: _of(self).record_http(method, url, **what))

    async def arecord_command(self, description: str = "", **more: Any) -> Act:
        return await _in_thread(lambda: _of(self).record_command(description, **more))

    async def arecord_note(self, text: str, **more: Any) -> Act:
        return await _in_thread(lambda: _of(self).record_note(text, **more))

    async def alabel(self, name: str, label: str) -> Checkpoint:
        return await _in_thread(lambda: _of(self).label(name, label))

    async def apin(self, name: str, keep: bool = True) -> Checkpoint:
        return await _in_thread(lambda: _of(self).pin(name, keep))

    async def aprune(self, **asked: Any) -> Pruned:
        return await _in_thread(lambda: _of(self).prune(**asked))

    async def averify(self, data: bool = False) -> Verified:
        return await _in_thread(lambda: _of(self).verify(data))

    async def arepair(self) -> Repaired:
        return await _in_thread(_of(self).repair)


def _of(twins: Twins) -> Workspace:
    return twins  # type: ignore[return-value]


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)
