"""Looking at threads: what differs, where words stand, whether all of it is as it was stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from takeback.errors import Damaged, NotFound, TakebackError, UsageError
from takeback.journal.journal import STATE_ROWS
from takeback.model.thread_states import Checked, Found, StateCheckpoint, StateDifference

from . import plain_data
from .index import Listed

if TYPE_CHECKING:
    from takeback.model.thread_states import StateCheckpoint
    from takeback.workspace import Workspace

    from .threads import Threads


_HIDDEN = "threads.db did not have it as the journal has; it was made anew, and nothing is lost"


def diff(threads: Threads, thread: str, a: str, b: str = "") -> list[StateDifference]:
    """What differs between two state checkpoints; `b` is the head if it is left out."""
    one, other = threads.get(thread, a), threads.get(thread, b)
    if one.identity == other.identity:
        return []
    before = {name: one.refs[name] for name in one.refs if other.refs.get(name) != one.refs[name]}
    after = {name: other.refs[name] for name in other.refs if one.refs.get(name) != other.refs[name]}
    was = {name: plain_data.decoded(threads.value(ref), one.codec) for name, ref in before.items()}
    now = {name: plain_data.decoded(threads.value(ref), other.codec) for name, ref in after.items()}
    return [StateDifference(*found) for found in plain_data.differences(was, now)]


def search(threads: Threads, query: str, thread: str, limit: int, mask: Callable[..., str] | None) -> list[Found]:
    """State checkpoints whose summary and state have all these words, newest first. Values that many share are found
    at the newest of each thread alone."""
    words = list(dict.fromkeys(query.lower().split()))
    if not words:
        raise UsageError("there is nothing to search for", "name a word: takeback thread search WORD")
    out: list[Found] = []
    seen: set[tuple[str, frozenset[str]]] = set()
    known: dict[str, frozenset[str]] = {}  # value → the words in it
    for state in threads.list(thread):
        if len(out) >= limit:
            break
        said = frozenset(word for word in words if word in state.summary.lower())
        if len(said) == len(words):
            out.append(Found(state, "summary", state.summary))
            continue
        for ref in state.refs.values():
            if ref not in known:
                low = _text(threads, state, ref).lower()
                known[ref] = frozenset(word for word in words if word in low)
        having = {name: known[ref] for name, ref in state.refs.items() if known[ref] - said}
        if len(said.union(*having.values())) < len(words):
            continue
        where = max(having, key=lambda name: len(having[name]))  # of several that have as many, the first
        chosen = [where] if len(having[where]) == len(words) else list(having)
        key = (state.thread, frozenset(state.refs[name] for name in chosen))
        if key not in seen:
            seen.add(key)
            told = _text(threads, state, state.refs[where])
            first = next(word for word in words if word in having[where])
            out.append(Found(state, where, plain_data.excerpt(told, first, partial(mask, path=where) if mask else str)))
    return out


def _text(threads: Threads, state: StateCheckpoint, ref: str) -> str:
    try:
        return plain_data.text(plain_data.decoded(threads.value(ref), state.codec))
    except Damaged:
        return ""  # verify names it; the others are searched


def verify(threads: Threads, thread: str = "") -> list[Checked]:
    """Every state checkpoint, oldest first: whether its row and its values are as they were stored."""
    with threads.ws.alone():
        threads.index.follow()
        if thread and not threads.index.has(thread):
            raise NotFound(f"there is no thread called {thread!r}", threads.names_hint())
        at, before = threads.index.told()
        threads.index.anew()
        threads.index.follow()
        threads.forget()
        now, after = threads.index.told()
        hidden = before ^ after if now == at else set()
        checked = list(threads.journal.check())
        bad = {each.seq: each.why for each in checked if not each.holds}
        listed = sorted(threads.index.listed(thread or None, None, None, None))
        out = [_verified(threads, each, bad) for each in listed]
        if not all(each.ok for each in out):  # what another process has removed meanwhile is no loss
            threads.index.follow()
            there = {each.seq for each in threads.index.listed(thread or None, None, None, None)}
            out = [each for each in out if each.ok or each.seq in there]
        lost = [row for row in threads.journal.rows(kinds=STATE_ROWS) if row.damaged]
        out += [Checked(row.seq, "", "", "", f"row {row.seq} ({row.kind}) was altered") for row in lost]
        wrong = {seq for seq, whose, *_ in hidden if thread in ("", whose)} - {row.seq for row in lost}
        out = [each._replace(why=_HIDDEN) if each.ok and each.seq in wrong else each for each in out]
        also = {**dict.fromkeys(wrong, _HIDDEN), **bad}
        told = {each.seq for each in out}
        out += [Checked(seq, "", "", "", why) for seq, why in also.items() if seq not in told]
        out += [Checked(each.seq, "", "", "", each.why) for each in checked if each.holds]
        return sorted(out)


def _verified(threads: Threads, each: Listed, bad: Mapping[int, str]) -> Checked:
    why = bad.get(each.seq, "")
    if not why:
        try:
            state = threads.at(each.seq)
            for name, ref in state.refs.items():
                try:
                    threads.held.read(ref)
                except TakebackError as error:
                    raise Damaged(f"{name}: {error.message}") from error
        except TakebackError as error:
            why = error.message
    return Checked(*each, why)


def captures(workspace: Workspace) -> bool:
    """Whether files are protected here, and not state alone."""
    return bool(workspace.store.journal.newest_id("checkpoint"))


def look_at_files(workspace: Workspace, found: StateCheckpoint) -> None:
    """So that it can be told how far they are from that state, though they stay."""
    if captures(workspace):
        with suppress(TakebackError):
            workspace.plan("thread", found.thread, found.id, with_files=True)
