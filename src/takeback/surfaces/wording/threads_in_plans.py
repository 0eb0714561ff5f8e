"""Threads in plans and outcomes as a person reads them: where each goes back to, and what stays ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import TakebackError
from takeback.model.effects import short_id, thread_of

from .text import counted, listed, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Any

    from takeback.model.effects import Distance, Plan, Step
    from takeback.workspace import Workspace

_NAMED = 5  # threads, or what stays


def called(path: bytes) -> str:
    return f"thread {safe(thread_of(path))}"


def amount(paths: Collection[bytes]) -> str:
    """'thread main', or 'threads ada, bob'."""
    return f"thread{'s' * (len(paths) != 1)} {listed([thread_of(path) for path in paths], _NAMED)}"


def name(workspace: Workspace, step: Step, read: Callable[[Workspace, bytes], bytes], again: bool) -> str:
    """'thread main  back to 8 (kxvmrtqo)'"""
    if not step.taken:
        return called(step.path)
    return f"{called(step.path)}  {'again at' if again else 'back to'} {_place(workspace, step, read)}"


def _place(workspace: Workspace, step: Step, read: Callable[[Workspace, bytes], bytes]) -> str:
    if step.goal is None:
        return "before it was"
    thread, threads = thread_of(step.path), workspace.threads
    try:
        told = threads.told_by(thread, read(workspace, step.goal.content))
    except TakebackError:
        return "an earlier state"
    if not told:
        return "an earlier state"
    at = told.get("") or max(told.values(), key=lambda state: state.seq)
    return f"{threads.ahead(thread, 0) - threads.ahead(thread, at.seq)} ({safe(short_id(at.id))})"


def lines(plan: Plan) -> Iterator[str]:
    """What a take-back of files, or of a thread, leaves of the other; and what takes that too."""
    distance = plan.distance
    for found in distance.state:
        ahead = f"{counted(found.ahead, 'state checkpoint')} ahead" if found.ahead else "gone since"
        yield f"thread {safe(found.thread)} stays, {ahead}; {safe(found.command)} takes it too"
    left = [f"{counted(distance.files, 'file')} changed since"] if distance.files else []
    left += [f"{counted(distance.outside, 'effect')} outside the files since"] if distance.outside else []
    if left:
        one = distance.files + distance.outside == 1
        told = f"{' and '.join(left)}, and {'stays' if one else 'stay'}: {listed(distance.names, _NAMED)}"
        yield f"{told}; {safe(distance.command)} takes {'it' if one else 'them'} too"


def shape(found: Distance) -> dict[str, Any]:
    also = {"outside": found.outside, "command": found.command} if found.command else {}
    return {"state": [each._asdict() for each in found.state], "files": found.files, **also}
