"""Whether a store is over its budget, asked after each checkpoint; what makes room is loaded only then."""

from __future__ import annotations

from .typed import TYPE_CHECKING

if TYPE_CHECKING:
    from .guarded import Guarded

_DAY = 86_400.0  # what is younger is never pruned by itself
_MEASURED = 8  # the store's size is looked up every so many checkpoints: it means a stat of every pack


def stay_within(ws: Guarded) -> str:
    """Prunes after a checkpoint that is over budget; says why where it still does not fit."""
    pruned = ws.store.journal.last("prune")
    horizon = pruned.body.get("horizon", 0) if pruned is not None and pruned.body else 0
    living = [at for seq, at in ws.store.journal.bodied("checkpoint") if seq >= horizon]  # the rest is pinned
    now, surplus = ws.clock(), len(living) - ws.settings.keep
    too_old = len(living) > 1 and now - living[0] > max(ws.settings.max_age, _DAY)
    too_many = surplus > 0 and now - living[surplus - 1] > _DAY
    too_large = len(living) % _MEASURED == 0 and ws.store.size() > ws.settings.max_bytes
    if too_old or too_many or too_large:
        from . import prune

        return prune.within_budget(ws).why_over
    return ""
