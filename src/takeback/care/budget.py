"""Whether a store is over its budget, asked after each checkpoint.

What is younger than a day is never pruned by itself, so a store may be over its budget for so long: `standing` tells
how far, why, and until when.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import TakebackError
from takeback.threads import prune as thread_prune

from . import prune
from .prune import YOUNG

if TYPE_CHECKING:
    from takeback.workspace_locks import Guarded

_MEASURED = 8  # checkpoints after which size and threads are looked at, also where nothing seems to have changed


class Standing(NamedTuple):
    """How what is kept stands against the budget of the settings. Pinned checkpoints are counted apart."""

    checkpoints: int
    keep: int
    pinned: int
    bytes: int
    max_bytes: int
    over: int = 0  # how many checkpoints a prune to the budget would forget
    threads: tuple[tuple[str, int], ...] = ()  # threads, and how many states of each it would
    until: float | None = None  # when what is over may go by itself, all of it; None: with the next checkpoint
    young: int = 0  # how many of the checkpoints are younger than a day

    @property
    def over_bytes(self) -> int:
        return max(0, self.bytes - self.max_bytes)

    @property
    def is_over(self) -> bool:
        return bool(self.over or self.over_bytes or self.threads)


def stay_within(ws: Guarded) -> str:
    """Prunes after a checkpoint that is over budget; says why where it still does not fit."""
    living, _ = _living(ws)
    now, surplus = ws.clock(), len(living) - ws.settings.keep
    too_old = len(living) > 1 and now - living[0] > max(ws.settings.max_age, YOUNG)
    too_many = surplus > 0 and now - living[surplus - 1] > YOUNG
    is_measured = ws.store.journal.count(("checkpoint",), ws.store.journal.head().seq) % _MEASURED == 0
    too_large = (is_measured or _has_aged(ws, living)) and ws.store.size() > ws.settings.max_bytes
    has_threads = is_measured and bool(ws.store.journal.newest_id("state"))
    if too_old or too_many or too_large or (has_threads and _may_go(ws, ws.threads.names())):
        return prune.within_budget(ws).why_over
    return ""


def _has_aged(ws: Guarded, living: Sequence[float]) -> bool:
    """Whether a checkpoint may go that could not when the store was last pruned."""
    if len(living) < 2 or ws.clock() - living[0] <= YOUNG:
        return False
    pruned = ws.store.journal.last("prune")
    return pruned is None or pruned.at - living[0] <= YOUNG


def tend(ws: Guarded, thread: str) -> None:
    """Prunes after a state was saved, where its thread has more than the budget. What was saved is saved: if room
    cannot be made just now, that is no failure of it, and a later one tries again."""
    with suppress(TakebackError), ws.writing():
        if _may_go(ws, [thread]):
            prune.within_budget(ws)


def standing(ws: Guarded) -> Standing:
    """How it stands now, in the figures of `prune --dry-run`. Changes nothing."""
    living, pinned = _living(ws)
    now, settings, size = ws.clock(), ws.settings, ws.store.size()
    young = sum(now - at <= YOUNG for at in living)
    found = Standing(len(living), settings.keep, pinned, size, settings.max_bytes, young=young)
    too_old = len(living) > 1 and now - living[0] > settings.max_age
    if not (found.over_bytes or too_old or len(living) > settings.keep or _has_surplus(ws)):
        return found
    going = prune.going(ws, prune.budget_of(ws))
    ends = [row.at + YOUNG for row in going.rows if row.kind == "checkpoint"]
    ends += [state.at + YOUNG for state in going.states]
    until = max(ends, default=0.0)
    return found._replace(over=len(going.checkpoints), threads=going.threads, until=until if until > now else None)


def _living(ws: Guarded) -> tuple[list[float], int]:
    """When the checkpoints at and after the horizon were taken, oldest first; and how many before it are pinned."""
    pruned = ws.store.journal.last("prune")
    horizon = pruned.body.get("horizon", 0) if pruned is not None and pruned.body else 0
    bodied = ws.store.journal.bodied("checkpoint")
    living = [at for seq, at in bodied if seq >= horizon]
    return living, len(bodied) - len(living)


# -- threads -----------------------------------------------------------------


def _may_go(ws: Guarded, threads: Sequence[str]) -> bool:
    """Whether one of these threads has states beyond the budget that are older than a day and that nobody needs."""
    now, settings = ws.clock(), ws.settings
    limit = now - YOUNG
    due = []
    for name in threads:
        saved = ws.threads.saved(name)  # newest first; the head never goes
        too_many, too_old = saved[settings.keep :][-1:], saved[1:][-1:]
        if any(at < limit for at in too_many) or any(at < min(limit, now - settings.max_age) for at in too_old):
            due.append(name)
    if not due:
        return False
    return bool(thread_prune.beyond(ws.threads, settings.keep, settings.max_age, limit, due))


def _has_surplus(ws: Guarded) -> bool:
    """Whether a thread has more states than the budget, or older ones, whoever may need them."""
    if not ws.store.journal.newest_id("state"):
        return False
    now, settings = ws.clock(), ws.settings
    saved = (ws.threads.saved(name) for name in ws.threads.names())  # newest first
    return any(len(at) > settings.keep or (len(at) > 1 and now - at[-1] > settings.max_age) for at in saved)
