"""Looking at threads: what differs, where words stand, whether all of it is as it was stored."""

from __future__ import annotations

from collections.abc import Mapping

from . import plain
from .errors import Damaged, NotFound, TakebackError, UsageError
from .states import Checked, Found, StateDifference
from .thread_index import Listed
from .typed import TYPE_CHECKING

if TYPE_CHECKING:
    from .threads import Threads


def diff(threads: Threads, thread: str, a: str, b: str = "") -> list[StateDifference]:
    """What differs between two state checkpoints; `b` is the head if it is left out."""
    one, other = threads.get(thread, a), threads.get(thread, b)
    if one.identity == other.identity:
        return []
    before = {name: one.refs[name] for name in one.refs if other.refs.get(name) != one.refs[name]}
    after = {name: other.refs[name] for name in other.refs if one.refs.get(name) != other.refs[name]}
    was = {name: plain.decoded(threads.value(ref), one.codec) for name, ref in before.items()}
    now = {name: plain.decoded(threads.value(ref), other.codec) for name, ref in after.items()}
    return [StateDifference(*found) for found in plain.differences(was, now)]


def search(threads: Threads, query: str, thread: str = "", limit: int = 20) -> list[Found]:
    """State checkpoints whose summary or state has all these words, newest first. A value that many share is
    found at the newest of each thread alone."""
    words = query.lower().split()
    if not words:
        raise UsageError("there is nothing to search for", "name a word: takeback thread search WORD")
    out: list[Found] = []
    seen: set[tuple[str, str]] = set()
    for state in threads.list(thread):
        if len(out) >= limit:
            break
        if all(word in state.summary.lower() for word in words):
            out.append(Found(state, "summary", state.summary))
            continue
        for name, ref in state.refs.items():
            if (state.thread, ref) in seen:
                continue
            seen.add((state.thread, ref))
            try:
                told = plain.text(plain.decoded(threads.value(ref), state.codec))
            except Damaged:
                continue  # verify names it; the others are searched
            low = told.lower()
            if all(word in low for word in words):
                out.append(Found(state, name, plain.excerpt(told, low.index(words[0]))))
                break
    return out


def verify(threads: Threads, thread: str = "") -> list[Checked]:
    """Every state checkpoint, oldest first: whether its row, its values and its parent are as they were stored."""
    with threads.ws._alone():
        threads.index.follow()
        if thread and not threads.index.has(thread):
            raise NotFound(f"there is no thread called {thread!r}", threads._threads_hint())
        threads.index.anew()
        threads.index.follow()
        threads.forget()
        bad = {each.seq: each.why for each in threads.journal.check()}
        listed = sorted(threads.index.listed(thread or None, None, None, None))
        ids = {(each.thread, each.ns, each.id) for each in listed}
        out = [_verified(threads, each, bad, ids) for each in listed]
        known = {each.seq for each in listed}
        lost = [row for row in threads.journal.rows(kinds=("state", "writes", "value", "thread")) if row.damaged]
        out += [Checked(row.seq, "", "", "", f"row {row.seq} ({row.kind}) was altered") for row in lost]
        out += [
            Checked(seq, "", "", "", why)
            for seq, why in sorted(bad.items())
            if seq not in known and seq not in {row.seq for row in lost}
        ]
        return sorted(out)


def _verified(threads: Threads, each: Listed, bad: Mapping[int, str], ids: set[tuple[str, str, str]]) -> Checked:
    why = bad.get(each.seq, "")
    if not why:
        try:
            state = threads._at(each.seq)
            for name, ref in state.refs.items():
                try:
                    threads.held.read(ref)
                except TakebackError as error:
                    raise Damaged(f"{name}: {error.message}") from error
        except TakebackError as error:
            why = error.message
    return Checked(*each, why)
