"""The end of a turn undone: a conversation and the world, taken back by one plan, told in a sentence.

    back_to ─► plan: a thread, and all since ─► a person's yes, where it acts outside the files ─► applied
    again   ─► the newest take-back, if it is of this thread and that has not gone on since

Nothing to do, takeback turned off, and nobody's yes are answers, not errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..effects import DONE, STATES, Outcome, Plan, domain_of, text
from ..errors import Stale
from ..typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..brackets import AgentTurn
    from ..workspace import Workspace

Approve = Callable[[Plan], bool]
_ATTEMPTS = 3


class Undone(NamedTuple):
    """What came of an undo or a redo. Where nothing was done there is no outcome."""

    message: str
    outcome: Outcome | None = None
    cursor: str = ""  # where the conversation stood before the turn, if its own keeper has to cut it there

    @property
    def done(self) -> bool:
        return self.outcome is not None


def back_to(workspace: Workspace, thread: str, checkpoint: str, what: str, approve: Approve | None) -> Undone:
    """Takes a thread back to a state checkpoint, and with it all that was done since."""
    command = f"takeback thread rollback {thread} {checkpoint} --with-files"
    return _carried_out(
        workspace, lambda: workspace.plan("thread", thread, checkpoint, with_files=True), what, command, approve
    )


def turn_back(workspace: Workspace, turns: Iterable[AgentTurn], approve: Approve | None) -> Undone:
    """Takes back the newest turn of which something stands: the conversation is kept elsewhere."""
    for turn in turns:
        if off := _off(workspace):
            return off
        if workspace.history().rows_of_call(turn.id) and workspace.plan("revert", turn.id).taken:
            what, command = f"“{turn.prompt}”", f"takeback revert {turn.id[:8]}"
            return _carried_out(workspace, lambda id=turn.id: workspace.plan("revert", id), what, command, approve)
    return Undone("there is nothing to undo")


def again(workspace: Workspace, thread: str, approve: Approve | None) -> Undone:
    """Brings back what the newest take-back took. What that did outside the files stays done."""
    if off := _off(workspace):
        return off
    head = workspace.threads.find(thread)
    standing = [t for t in workspace.history().standing.values() if t.verb != "redo" and t.rows]
    if not standing:
        return Undone("there is nothing to redo")
    if standing[0].request.threads != (thread,):
        return Undone(f"the last take-back was not of {thread}; takeback redo {standing[0].id[:8]} brings that back")
    if head is not None and head.source != "rollback":
        return Undone(f"there is nothing to redo: {thread} has gone on since")
    return _carried_out(workspace, lambda: workspace.plan("redo"), "", "takeback redo", approve, "brought back")


def _off(workspace: Workspace) -> Undone | None:
    if workspace.settings.enabled:
        return None
    return Undone(f"takeback is off (source: {workspace.settings.off_source}); nothing was done")


def _carried_out(
    workspace: Workspace,
    planned: Callable[[], Plan],
    what: str,
    command: str,
    approve: Approve | None,
    took: str = "took back",
) -> Undone:
    if off := _off(workspace):
        return off
    for attempt in range(_ATTEMPTS):
        plan = planned()
        waiting, unbound = workspace.unapproved(plan)
        if unbound:
            told = f"{unbound[0].name} is not bound to {unbound[0].origin} in your settings"
            return Undone(f"nothing was taken back: {told}; a person can: {command}")
        if waiting and (approve is None or approve(plan) is not True):
            told = "; ".join(step.note or text(step.path) for step in waiting)
            return Undone(f"nothing was taken back: it needs a person's yes ({told}); a person can: {command}")
        try:
            if waiting:
                workspace.approve(plan)
            outcome = workspace.apply(plan)
        except Stale:  # somebody did something meanwhile
            if attempt + 1 == _ATTEMPTS:
                raise
            continue
        return Undone(_told(outcome, what, took), outcome)
    raise AssertionError


def _told(outcome: Outcome, what: str, took: str) -> str:
    """Also what was kept: it is somebody's, or nobody knows what became of it."""
    outside = {step.path for step in outcome.plan.steps if step.domain not in STATES}
    of: dict[str, int] = {}
    for result in outcome.results:
        if result.result == DONE:
            kind = "outside" if result.path in outside else domain_of(result.path)
            of[kind] = of.get(kind, 0) + 1
    parts = ["the conversation"] if of.get("state") else []
    parts += [_counted(of[kind], name) for kind, name in _NAMES.items() if of.get(kind)]
    kept = [text(result.path) for result in outcome.results if result.result != DONE]
    told = f"{took} {what}: {', '.join(parts)}" if what else f"{took} {', '.join(parts)}"
    if not parts:
        told = "there was nothing to take back" if took == "took back" else "there was nothing to bring back"
    return f"{told}; not {', '.join(kept)}" if kept else told


_NAMES = {"files": "file", "git": "part of git", "outside": "effect outside the files"}


def _counted(number: int, name: str) -> str:
    first, _, rest = name.partition(" ")
    return f"{number} {first}{'s' * (number != 1)} {rest}".rstrip()
