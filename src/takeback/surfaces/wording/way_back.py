"""The command that takes a take-back back: just that, or none is named."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from takeback.model.effects import Request, Unit, short_id

from . import ways
from .plans import earlier_turn, has_turn_after

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from takeback.journal.history import History
    from takeback.model.effects import Effect, Outcome, Takeback

_MOST_IDS = 6  # in a command that somebody is to type


def of(outcome: Outcome, history: History, word: ways.Typed = ways.from_root) -> str:
    """After a redo, the verb that did what it redid, once more; where that would take other work too, a revert of what
    came back; nothing where neither takes just that."""
    if outcome.plan.request.verb != "redo":
        return "takeback redo"
    redone = [history.takebacks.get(id) for id in outcome.plan.request.takebacks]
    found = [takeback for takeback in redone if takeback is not None and takeback.rows]
    back = _brought_back(found, history)
    request = _once_more(found)
    if request is not None and _takes_just(request, back, found, history):
        return _as_asked(request, history, word)
    if not back or any(history.by_seq[unit.seq].takeback for unit in back):
        return ""
    if len({unit.seq for unit in back}) > _MOST_IDS:
        return ""
    command, takes_more = ways.revert(history, back, word)
    return "" if takes_more else command


def _brought_back(found: Sequence[Takeback], history: History) -> set[Unit]:
    """What stands again of what these had taken."""
    changes = (change for each in found for seq in each.rows for change in history.by_seq[seq].changes.values())
    taken = (Unit(seq, change.path) for change in changes for seq in change.took)
    return {unit for unit in taken if unit in history.live}


def _once_more(found: Sequence[Takeback]) -> Request | None:
    """What asks for all of it in one go."""
    if len(found) == 1:
        return found[0].request
    if found and all(takeback.verb == "undo" for takeback in found):
        return Request("undo", turns=tuple(dict.fromkeys(turn for each in found for turn in each.request.turns)))
    return None


def _takes_just(request: Request, back: Collection[Unit], found: Sequence[Takeback], history: History) -> bool:
    """Whether nothing else stands that it would take now; what it kept then it keeps again."""
    if request.verb not in ("undo", "rollback", "revert") or request.threads:
        return True
    kept = frozenset().union(*(takeback.kept for takeback in found))
    for effect in filter(_about(request, history), history.effects):
        for path in effect.changes:
            unit = Unit(effect.seq, path)
            if unit in history.live and unit not in back and unit not in kept and _is_at(request, path):
                return False
    return len(request.turns) < 2 or request.verb != "undo" or not _has_other_turn(request, back, history)


def _about(request: Request, history: History) -> Callable[[Effect], bool]:
    """Whether a request is about what somebody did."""
    turns = set(request.turns)
    rows = {*request.rows, *(id for call in request.calls for id in history.rows_of_call(call) or ())}

    def is_about(effect: Effect) -> bool:
        if effect.takeback or effect.domain == "state" or effect.domain in request.without:
            return False
        if request.only and effect.domain not in request.only:
            return False
        if request.verb == "rollback":
            return effect.seq >= request.since
        if request.verb == "revert":
            return not (rows or turns) or effect.id in rows or not turns.isdisjoint(effect.turns)
        return not turns.isdisjoint(history.turns(effect.seq))

    return is_about


def _is_at(request: Request, path: bytes) -> bool:
    return not request.paths or any(path == each or path.startswith(each + b"/") for each in request.paths)


def _has_other_turn(request: Request, back: Collection[Unit], history: History) -> bool:
    """Whether another turn is among the newest ones, which is what a number counts."""
    newest = {turn: unit.seq for unit in sorted(back) for turn in history.turns(unit.seq) & set(request.turns)}
    return has_turn_after(min(newest.values(), default=0), request.turns, history)


def _as_asked(request: Request, history: History, word: ways.Typed) -> str:
    """The command that asks for the same once more."""
    flags = ways.flags(request)
    if request.threads and request.checkpoint:
        also = "" if request.only else " --with-files"
        return f"takeback thread rollback {quote(request.threads[0])} {short_id(request.checkpoint)}{also}"
    words = [request.verb]
    if request.verb == "rollback":
        words += [ways.going_to(request, history)]
    elif request.verb == "restore":
        words += [request.checkpoint[:8], *map(word, request.paths)]
    elif request.verb == "revert":
        since = [ways.going_to(request, history)] if request.since else []
        words += [*since, *ways.reverted(request, history), *map(word, request.paths)]
    elif len(request.turns) > 1:
        words += [str(len(request.turns))]
    elif request.turns and (id := earlier_turn(request.turns[0], history)):
        words += [id[:8]]
    return " ".join(["takeback", *filter(None, words), *flags])
