"""What came of a take-back, by name: what went back, and what stayed and why."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Set
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import TakebackError
from takeback.model.effects import DONE, FAILED, KEPT, Outcome, Unit, domain_of, text, thread_of
from takeback.workspace_locks import with_article

if TYPE_CHECKING:
    from takeback.journal.history import History
    from takeback.model.effects import Request, Result, Step, Turn
    from takeback.model.outside import Act
    from takeback.workspace import Workspace

_NAMED = 8  # of a kind, in a sentence
SHARED = "shared: "  # how it begins why something stays that several did


class Named(NamedTuple):
    back: tuple[str, ...]  # paths, threads, and what effects did
    stayed: tuple[tuple[str, str], ...]  # each with why


class Finished(Outcome):
    """What came of a take-back that had been interrupted, and was finished before anything else."""

    back: tuple[str, ...]  # what went back, by name
    stayed: tuple[tuple[str, str], ...]  # what stayed, and why
    message: str  # 'finished a rollback of thread bob that was interrupted: took back a.txt'


class Left(NamedTuple):
    """What was left because it is somebody else's work, or may be."""

    name: str
    why: str
    unit: Unit
    outside: bool  # it was done outside the files
    command: str = ""  # that takes it all the same, where several did it

    @property
    def told(self) -> str:
        """Why it was left, and what takes it all the same."""
        return f"{self.why}: {self.command} takes it" if self.command else self.why


def named(workspace: Workspace, outcome: Outcome) -> Named:
    history = workspace.history()
    acts = {act.path: called(act) for act in history.acts.values()}
    outside = {step.path for step in outcome.plan.steps if step.path in acts}

    def name(path: bytes) -> str:
        return acts[path] if path in outside or (path in acts and path not in history.all_paths) else _called(path)

    already = outcome.already
    back = dict.fromkeys(name(r.path) for r in outcome.results if r.result == DONE and r.path not in already)
    stayed = dict.fromkeys(
        (name(r.path), why_not(history.acts[text(r.path)], r) if r.path in outside else r.note or r.result)
        for r in outcome.results
        if r.result != DONE
    )
    return Named(tuple(back), (*stayed, *((left.name, left.told) for left in others_work(history, outcome))))


def others_work(history: History, outcome: Outcome) -> list[Left]:
    """What was left because it is somebody else's, or may be: each by name, with whose it is."""
    return left_by(history, outcome.plan.request, outcome.plan.left, {r.path for r in outcome.results})


def left_by(history: History, request: Request, units: Iterable[Unit], tried: Container[bytes] = ()) -> list[Left]:
    mine = history.turns_of(request.threads) | history.turns_named(request)
    left = {unit.path: unit for unit in sorted(units)}  # of each the newest
    if request.actors and not mine:
        mine = frozenset(t for unit in left.values() for t in history.whose(unit) if t.actor in request.actors)
    found = []
    for path, unit in sorted(left.items()):
        if path not in tried and not history.by_seq[unit.seq].takeback:  # what a take-back took is gone, and not left
            act = history.act_of(unit.seq)
            name = called(act) if act is not None else _called(path)
            why = _by_whom(history, unit, mine)
            command = _revert(history, unit) if why.startswith(SHARED) else ""
            found.append(Left(name, why, unit, act is not None, command))
    return found


def why_not(act: Act, result: Result) -> str:
    """Why an act was not taken back, with the command to go on with."""
    why = result.note or result.result
    if "takeback " in why or act.inverse is None or result.result == KEPT:
        return why
    return f"{why}; {act.resolving if act.sayings else f'takeback revert {act.id[:8]} tries it again'}"


def not_done(history: History, outcome: Outcome) -> list[Result]:
    """What was not done; of a redo, each with what brings it back, where that is known."""
    found = [r for r in outcome.results if r.result != DONE]
    if outcome.plan.request.verb != "redo":
        return found
    kept = {step.path: step for step in outcome.plan.kept}
    return [r._replace(note=why_not_again(history, kept[r.path])) if r.path in kept else r for r in found]


def why_not_again(history: History, step: Step) -> str:
    """Why a redo keeps something; where other take-backs came after what it would bring back, with the commands that do
    it, in their order."""
    if step.taken or not step.units or max(step.units).seq not in history.by_seq:
        return step.note
    since, newest = min(step.units).seq, max(step.units).seq
    above = [u.seq for u in history.layers(step.path, since) if u.seq > newest and u in history.live]
    rows = (*reversed(above), *(u.seq for u in sorted(step.units, reverse=True)))
    ids = dict.fromkeys(history.by_seq[seq].takeback for seq in rows)
    if not above or not all(id and history.takebacks[id].verb != "redo" for id in ids):
        return step.note
    return f"{step.note}: {', then '.join(f'takeback revert {id[:8]}' for id in ids)} bring it back"


def still_there(workspace: Workspace, turns: Set[Turn]) -> str:
    """What was done outside in turns that were taken back, and stays: '; still there: charge(20): takeback revert …'"""
    history = workspace.history()
    live = [act for act in history.ledger() if (act.seq, act.path) in history.live and act.state != FAILED]
    found = [act for act in live if act.seq in history.by_seq and history.turns(act.seq) & turns]
    told = [
        f"{act.summary}: {act.resolving if act.sayings else f'takeback revert {act.id[:8]}'}"
        for act in found
        if act.inverse is not None or act.sayings
    ]
    return f"; still there: {listed(told)}" if told else ""


def called(act: Act) -> str:
    """What an effect is named by: several may have done alike."""
    return f"{act.summary} ({act.id[:8]})"


def _called(path: bytes) -> str:
    return f"thread {thread_of(path)}" if domain_of(path) == "state" else text(path)


def finished(workspace: Workspace, outcome: Outcome) -> Finished:
    request, said = outcome.plan.request, Finished(*outcome)
    of = f" of thread {listed(request.threads)}" if request.threads else ""
    did = "brought back" if request.verb == "redo" else "took back"
    said.back, said.stayed = found = named(workspace, outcome)
    said.message = f"finished {with_article(request.verb)}{of} that was interrupted: {sentence(found, did)}"
    return said


@contextmanager
def telling(finished: Finished | None) -> Iterator[None]:
    """An error says what was finished before it: else it would seem that nothing was changed at all."""
    try:
        yield
    except TakebackError as error:
        if finished is not None:
            error.message, error.finished = f"{finished.message}. Besides that: {error.message}", finished
        raise


def sentence(found: Named, did: str = "took back") -> str:
    """'took back a.txt, POST /charges; stays: b.txt (thread bob did it), c.txt (a person's)': all that stays."""
    told = f"{did} {listed(found.back)}" if found.back else f"{did} nothing"
    kept = [f"{name} ({why})" for name, why in found.stayed]
    return f"{told}; stays: {', '.join(kept)}" if kept else told


def _by_whom(history: History, unit: Unit, mine: Set[Turn]) -> str:
    turns = history.whose(unit)
    if (act := history.act_of(unit.seq)) is not None and act.is_of_unknown:
        return f"not known whose: takeback revert {act.id[:8]} takes it back"
    if is_uncertain(history, unit) and turns & mine:
        return f"found after its turn was cut off, so that it may be a person's: {_revert(history, unit)} takes it"
    names = {bracket.turn: bracket.call.thread for bracket in history.brackets.values() if bracket.call.thread}
    others = sorted({f"thread {names[t]}" if t in names else t.actor for t in turns - mine if t in names or t.actor})
    if again := history.rewritten.get(unit):
        owners = {turn for turn in (*turns, *again) if (turn, unit) not in history.passed} - mine
        told = listed(sorted({f"thread {names[t]}" if t in names else t.actor for t in owners}))
        how = "wrote it again" if turns & mine and owners & again.keys() else "wrote it too"
        return f"{told or 'an earlier turn'} {how}, with the same bytes"
    if turns & mine:
        return f"{SHARED}{listed(others) or 'somebody else'} was at work at the same time"
    return f"{listed(others)} did it" if others else "a person's"


def _revert(history: History, unit: Unit) -> str:
    """The command that takes it, and nothing that was found with it; of git and of threads a row goes whole."""
    effect = history.by_seq[unit.seq]
    path = f" {quote('./' + text(unit.path))}" if effect.domain == "files" else ""
    return f"takeback revert {effect.id[:8]}{path}"


def is_uncertain(history: History, unit: Unit) -> bool:
    """Whether it may be somebody else's than those it is said to be of."""
    return unit.seq in history.uncertain_rows and domain_of(unit.path) != "state"


def listed(names: Iterable[str]) -> str:
    """'a.txt, b.txt and 3 more'"""
    found = list(names)
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
