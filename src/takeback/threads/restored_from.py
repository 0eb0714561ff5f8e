"""What a state checkpoint stands on besides its own values: channels that keep only what was added are read from the
checkpoints before it, up to the last whole value. Those may be removed since, with their thread: a fork outlives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from takeback.errors import Damaged
from takeback.model.thread_states import StateCheckpoint

if TYPE_CHECKING:
    from .threads import Threads

FORKED = ("fork", "adopt")  # sources of a thread's first state that is another thread's
Place = tuple[str, str, str]  # thread, namespace, id


def place(found: StateCheckpoint) -> Place:
    return found.thread, found.ns, found.id


def needed(threads: Threads, found: StateCheckpoint) -> set[Place]:
    """A checkpoint, and those that some of its channels are read from."""
    return {place(found), *map(place, below(threads, found))}


def below(threads: Threads, found: StateCheckpoint) -> list[StateCheckpoint]:
    """The checkpoints that some channels of one are read from."""
    counted = found.meta.get("metadata", {}).get("counters_since_delta_snapshot") or {}
    known = found.meta.get("channel_versions", {})
    wanted = {name for name in counted if name not in found.refs and name in known}
    if not wanted:
        return []
    read = [at for at, _ in walked(threads, found, wanted)]
    return [*read, *(origin(threads, at) for at in (found, *read))]


def walked(
    threads: Threads, target: StateCheckpoint | None, channels: Iterable[str]
) -> Iterator[tuple[StateCheckpoint, set[str]]]:
    """The checkpoints before one, nearest first, each with the channels that are read from it.

    A channel ends where its whole value is, or where it was never written before. A head that a rollback or a fork made
    stands for the checkpoint it restored: the walk goes on from there."""
    wanted, seen, at = set(channels), set(), target
    while at is not None and wanted:
        restored = origin(threads, at)
        if not restored.parent:
            return
        at = threads.parent_of(restored)
        if at is None:
            raise Damaged(
                f"{', '.join(sorted(wanted))}: state checkpoint {restored.parent} of thread {restored.thread} is gone, "
                "and these channels are read from it",
                "roll back to a checkpoint that is whole: takeback thread list",
            )
        if at.seq in seen:  # put again below itself: a ring
            return
        seen.add(at.seq)
        yield at, set(wanted)
        wanted -= at.refs.keys()
        wanted &= at.meta.get("channel_versions", {}).keys()


def origin(threads: Threads, found: StateCheckpoint) -> StateCheckpoint:
    """The checkpoint whose state this is: itself, or the one that a rollback or a fork restored."""
    while found.restored_from or (found.forked_from and found.source in FORKED and not found.parent):
        thread, id = (found.thread, found.restored_from) if found.restored_from else found.forked_from or ("", "")
        restored = threads.restored_by(found, thread, id)
        if restored is None:
            raise Damaged(
                f"{found.id} was made of state checkpoint {id} of thread {thread}, which is gone",
                "roll back to a checkpoint that is whole: takeback thread list",
            )
        found = restored
    return found


def standing(threads: Threads, thread: str) -> Iterator[StateCheckpoint]:
    """The states by which a thread came to its head, newest first, as far as they are kept. What was gone back from is
    left out, and so is a state that was gone back to: what began with it is undone."""
    at = threads.find(thread)
    while at is not None:
        if at.restored_from:
            while at is not None and at.restored_from:
                at = threads.find(thread, at.restored_from)
        else:
            yield at
        at = threads.find(thread, at.parent) if at is not None and at.parent else None
