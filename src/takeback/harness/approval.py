"""What a plan may do outside the files: what policy allows, or a person says yes to. The rest stays, and says why."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from takeback.errors import UsageError
from takeback.model.effects import FAILED, Plan, text
from takeback.model.outside import Act, depends

if TYPE_CHECKING:
    from takeback.workspace import Workspace

Stays = list[tuple[Act, str]]  # each with why


def allowed(
    workspace: Workspace,
    planned: Callable[[set[str]], Plan],
    live: Iterable[Act],
    leave: Iterable[str],
    can_ask: bool,
    command: Callable[[str], str],
) -> Generator[Plan, bool, tuple[Plan, Stays]]:
    """The plan that may run, made by `planned` without the acts it is told to leave. Yields a plan that a person has to
    approve, once, and goes on with the answer: what nobody allows stays, and so does what that stands on. `command` is
    what a person would run for an act that stays."""
    acts = {act.id: act for act in live}
    left = set(leave)
    found: Stays = []
    asked = False
    while True:
        plan = planned(left)
        outside = [acts[text(s.path)] for s in plan.outside if text(s.path) in acts]
        stays = {act.id: why for act in outside if (why := _stands_under(act, acts.values(), left))}
        stays = stays or {act.id: why for act in outside if (why := _lacks_binding(workspace, act, command))}
        stays = stays or {act.id: why for act in outside if (why := workspace.lacks(act))}
        waiting = [] if stays else workspace.unapproved(plan)[0]
        if waiting and not asked:
            asked = True
            if can_ask and (yield plan):
                workspace.approve(plan)
                waiting = []
        if waiting:
            why = "nobody approved that" if can_ask else "it needs a person's yes"
            stays = {id: f"{why}: {command(id)}" for id in (text(s.path) for s in waiting)}
        if not stays:
            return plan, found
        left |= stays.keys()
        found += [(acts[id], why) for id, why in stays.items() if id in acts]


def still_standing(workspace: Workspace) -> list[Act]:
    """Acts that were done, as far as is known, and not taken back."""
    return [act for act in workspace.effects() if not act.undone_by and act.state != FAILED]


def is_yes(answer: Any, instead: str) -> bool:
    """True is a yes, and nothing else is. One that has to be awaited is refused: `instead` says what to do."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise UsageError("approve is async, and nobody awaits it here", instead)
    return answer is True


def awaiting(approve: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The same for a thread that works for this event loop: an answer that has to be awaited is, in the loop."""
    if approve is None:
        return None
    loop = asyncio.get_running_loop()

    def ask(*given: Any) -> Any:
        said = approve(*given)
        return asyncio.run_coroutine_threadsafe(_answer(said), loop).result() if inspect.isawaitable(said) else said

    return ask


async def _answer(said: Awaitable[Any]) -> Any:
    return await said


def _stands_under(act: Act, live: Iterable[Act], leave: set[str]) -> str:
    above = [a for a in live if a.id in leave and depends(a, act)]
    return f"{above[0].summary} stands on it and stays" if above else ""


def _lacks_binding(workspace: Workspace, act: Act, command: Callable[[str], str]) -> str:
    """A credential goes where the user's own settings bind it, and a plan's approval does not change that."""
    assert act.inverse is not None
    for name, origin in workspace.outside(act.domain).credentials(act.inverse):
        return f"{name} is not bound to {origin} in your settings: {command(act.id)} asks"
    return ""
