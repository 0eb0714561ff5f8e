"""Pruning threads: which state checkpoints go, and why others stay.

    asked ─► what is older than the horizon of each thread, less what something needs ─► a journaled removal

The bytes go at the next prune of the workspace. Heads never go, nor what forks, channels that keep only what was added,
pending handoffs and a redo of standing take-backs need. A thread that is deleted goes whole from sight; what forks are
read from stays in the store until they go too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import Damaged, NotFound, TakebackError, UsageError
from takeback.model.effects import short_id, thread_of
from takeback.model.thread_states import StateCheckpoint

from . import restored_from
from .restored_from import Place, place

if TYPE_CHECKING:
    from .threads import Threads


class Stays(NamedTuple):
    """A state checkpoint that was asked to go, and why it does not."""

    checkpoint: StateCheckpoint
    why: str


class ThreadsPruned(NamedTuple):
    removed: tuple[StateCheckpoint, ...]
    stays: tuple[Stays, ...] = ()
    deleted: tuple[str, ...] = ()  # threads that go whole
    handoffs: tuple[str, ...] = ()  # pending ones of what goes whole: nobody can adopt them any more
    dry_run: bool = False


def prune(
    threads: Threads,
    names: Iterable[str] = (),
    keep: int | None = None,
    older_than: float | None = None,
    delete: bool = False,
    dry_run: bool = False,
    heads: bool = False,
    missing_ok: bool = False,
) -> ThreadsPruned:
    """Of these threads, or of all: the newest `keep` stay, and what is not older than so many seconds; with `heads` the
    newest of each namespace alone. `delete` removes the threads that are named, whole. With `missing_ok` one that is
    not there is no error."""
    chosen = list(dict.fromkeys(names))
    if delete and (not chosen or keep is not None or older_than is not None):
        raise UsageError("deleting takes whole threads, by their names", "name them, and leave out what to keep")
    if not (delete or heads) and keep is None and older_than is None:
        raise UsageError("say how much to keep", "such as --keep 20, or --older-than 30d")
    if keep is not None and keep < 1:
        raise UsageError("prune keeps at least the head", "to remove a thread whole, name it with --delete")
    threads.ws.must_be_on()
    with threads.ws.applying(), threads.ws.writing():
        threads.ws.must_not_be_interrupted()
        there = threads.names()
        if unknown := [name for name in chosen if name not in there]:
            if not missing_ok:
                raise NotFound(f"there is no thread called {unknown[0]!r}", threads.names_hint())
            chosen = [name for name in chosen if name in there]
            if not chosen:
                return ThreadsPruned((), dry_run=dry_run)
        if delete:
            return _deleted(threads, chosen, dry_run)
        before = _before_heads if heads else lambda threads, name: _surplus(threads, name, keep, older_than)
        surplus = [state for name in chosen or there for state in before(threads, name)]
        going, stays = _parted(threads, surplus, chosen or there)
        if not dry_run:
            for name in dict.fromkeys(state.thread for state in going):
                threads.removed(name, [(state.ns, state.id) for state in going if state.thread == name])
        return ThreadsPruned(going, stays, dry_run=dry_run)


def beyond(
    threads: Threads, keep: int | None, older_than: float | None, young: float | None = None, names: Sequence[str] = ()
) -> tuple[StateCheckpoint, ...]:
    """What each of these threads, or of all, has beyond the newest `keep` and what is not older than so many seconds,
    and nobody needs; nothing that was saved since `young`. The caller holds the store lock."""
    threads.index.follow()
    names = names or threads.names()
    surplus = [state for name in names for state in _surplus(threads, name, keep, older_than, young)]
    return _parted(threads, surplus, names)[0]


def _parted(
    threads: Threads, surplus: Sequence[StateCheckpoint], names: Sequence[str]
) -> tuple[tuple[StateCheckpoint, ...], tuple[Stays, ...]]:
    """What goes of a surplus, and what stays since something else needs it."""
    if not surplus:
        return (), ()
    needs = _needs(threads, threads.names())
    stays = tuple(Stays(state, needs[place(state)]) for state in surplus if place(state) in needs)
    going = tuple(state for state in surplus if place(state) not in needs)
    gone = set(map(place, going))
    staying = [state for name in names for state in threads.list(name) if place(state) not in gone]
    going, also = _less_what_is_read(threads, going, staying)
    return going, (*stays, *also)


def _before_heads(threads: Threads, name: str) -> list[StateCheckpoint]:
    """All but the newest of each namespace."""
    newest = set(map(place, threads.heads_at(name).values()))
    return [state for state in threads.list(name) if place(state) not in newest]


def _surplus(
    threads: Threads, name: str, keep: int | None, older_than: float | None, young: float | None = None
) -> list[StateCheckpoint]:
    """What lies before the horizon: the row of the oldest state that stays. Namespaces go with their root."""
    listed = threads.list(name)
    roots = [state for state in listed if not state.ns] or listed
    if not roots:
        return []
    horizon = 0
    if keep is not None and len(roots) > keep:
        horizon = roots[keep - 1].seq
    if older_than is not None:
        limit = threads.ws.clock() - older_than
        horizon = max(horizon, min((state.seq for state in roots if state.at >= limit), default=roots[0].seq))
    if young is not None:
        horizon = min([horizon, *(state.seq for state in listed if state.at >= young)])
    then = {place(state) for state in threads.heads_at(name, horizon).values()}
    then |= {place(state) for state in threads.heads_at(name).values()}
    return [state for state in listed if state.seq < horizon and place(state) not in then]


def _needs(threads: Threads, names: Sequence[str]) -> dict[Place, str]:
    """What others than its own thread need, and why."""
    out: dict[Place, str] = {}
    for name in names:
        for fork in threads.forks_of(name):
            if fork.source in restored_from.FORKED and fork.forked_from is not None:
                out[(name, fork.ns, fork.forked_from[1])] = f"thread {fork.thread} was forked from it"
    for handoff in threads.handed_over():
        if handoff.adopted_as is None:
            why = f"handoff {handoff.id[:8]} to {handoff.to_agent} is pending"
            for found in threads.index.beginning(handoff.thread, handoff.checkpoint):
                then = threads.heads_at(handoff.thread, found.seq)  # adopted as the thread was at that moment
                out.update(dict.fromkeys(map(place, then.values()), why))
    for state in _redone(threads):
        out[place(state)] = "a redo would bring it back"
    return out


def _redone(threads: Threads) -> list[StateCheckpoint]:
    """What a redo of the take-backs that stand would go to."""
    history, read = threads.ws.history(), threads.ws.store.blobs.get
    out: list[StateCheckpoint] = []
    for takeback in history.standing.values():
        effects = [history.by_seq[seq] for seq in takeback.rows if seq in history.by_seq]
        for effect in effects:
            for path, change in effect.changes.items() if effect.domain == "state" else ():
                for state in (change.before, change.after):
                    try:
                        told = threads.told_by(thread_of(path), read(state.content)) if state is not None else None
                    except TakebackError:
                        continue  # its document is lost: nothing goes back to it
                    out += (told or {}).values()
    return out


def _less_what_is_read(
    threads: Threads, going: Sequence[StateCheckpoint], staying: Sequence[StateCheckpoint]
) -> tuple[tuple[StateCheckpoint, ...], tuple[Stays, ...]]:
    """Channels that keep only what was added are read from the checkpoints before: those stay."""
    if not any("metadata" in state.meta for state in staying):
        return tuple(going), ()
    needs: dict[Place, StateCheckpoint] = {}
    beside = [fork for name in {state.thread for state in going} for fork in threads.forks_of(name)]
    for state in (*staying, *beside):
        try:
            needs.update(dict.fromkeys(restored_from.needed(threads, state), state))
        except Damaged:
            continue  # it cannot be read as it is
    stays = tuple(
        Stays(state, f"{short_id(needs[place(state)].id)} is read from it") for state in going if place(state) in needs
    )
    return tuple(state for state in going if place(state) not in needs), stays


def _deleted(threads: Threads, names: Sequence[str], dry_run: bool) -> ThreadsPruned:
    read: dict[Place, StateCheckpoint] = {}
    for state in (state for name in threads.names() if name not in names for state in threads.list(name)):
        with suppress(Damaged):  # it cannot be read as it is
            read.update((place(each), state) for each in restored_from.below(threads, state))
    pending = [h.id for h in threads.handed_over() if h.adopted_as is None and h.thread in names]
    gone = tuple(state for name in names for state in threads.list(name))
    stays = tuple(
        Stays(state, f"out of sight, until thread {read[place(state)].thread}, which is read from it, goes too")
        for state in gone
        if place(state) in read
    )
    for name in names if not dry_run else ():
        threads.removed(name)
    return ThreadsPruned(gone, stays, tuple(names), tuple(pending), dry_run)
