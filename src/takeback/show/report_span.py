"""Which part of the journal is told of: from and to by name or by time, one entry, or a session of an agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import NotFound, TakebackError, UsageError
from takeback.journal import filters, names
from takeback.journal.history import History

if TYPE_CHECKING:
    from takeback.workspace import Workspace

_END = 1 << 62


class Span(NamedTuple):
    """Rows and times from and to, both inclusive."""

    said: str
    first: int = 0
    last: int = _END
    since: float = 0.0
    until: float = float("inf")
    session: str = ""
    only: frozenset[str] = frozenset()  # ids: of one turn, call or effect, with what it did; nobody's work in between

    def holds(self, seq: int, at: float) -> bool:
        return self.first <= seq <= self.last and self.since <= at <= self.until


def find(ws: Workspace, asked: str = "", since: str = "", session: str = "") -> Span:
    """The span that was meant: FROM..TO, one turn, call or effect, what came after a checkpoint, a time, or a session.
    Each end is a name as everywhere, or a time as for `log since:`."""
    history = ws.history()
    if session:
        return _session(history, session)
    if since:
        return Span(f"since {since}", since=_moment(ws, since, end=False))
    if not asked:
        return Span("everything that is known")
    try:
        found = names.resolve(history, asked, prompts=False)
    except NotFound:
        begin, dots, end = asked.partition("..")
        if dots:
            return _between(ws, begin, end)
        try:
            return Span(f"since {asked}", since=_moment(ws, asked, end=False))
        except NotFound as unknown:
            found = _prompted(history, asked, unknown)
    if found.kind == "checkpoint":
        return Span(f"since {_called(found)}", first=found.seq)
    only = frozenset(_parts(history, found))
    return Span(f"{found.kind} {_called(found)}", first=found.seq, last=_end_of(history, found), only=only)


def bounds(ws: Workspace, span: Span, now: float) -> tuple[float, float]:
    """The span as times, whatever it was asked by; 0 where it begins with the journal."""
    rows = ws.store.journal.at([seq for seq in (span.first, span.last) if 0 < seq < _END])
    first, last = (rows[seq].at if seq in rows else 0.0 for seq in (span.first, span.last))
    return max(first, span.since), min(last or now, span.until, now)


def _between(ws: Workspace, begin: str, end: str) -> Span:
    history = ws.history()
    span = Span("")
    said = []
    for name, last in ((begin, False), (end, True)):
        if not name:
            said.append("now" if last else "the beginning")
            continue
        try:
            found = names.resolve(history, name, prompts=False)
        except NotFound:
            at = _moment(ws, name, end=last)
            span = span._replace(until=at) if last else span._replace(since=at)
            said.append(name)
            continue
        said.append(_called(found))
        span = span._replace(last=_end_of(history, found)) if last else span._replace(first=found.seq)
    begins, ends = bounds(ws, span, ws.clock())
    by_time = span.since or span.until < float("inf")  # the clock of two rows may have been set back in between
    if begins > ends if by_time else span.first > span.last:
        raise UsageError(f"{said[0]} is not before {said[1]}", "name the older one first: takeback report FROM..TO")
    return span._replace(said=f"{said[0]} to {said[1]}")


def _prompted(history: History, asked: str, unknown: NotFound) -> names.Named:
    """A turn by words of its prompt, where they are no time either."""
    try:
        return names.resolve(history, asked)
    except NotFound:
        raise unknown from None


def _moment(ws: Workspace, value: str, end: bool) -> float:
    try:
        return filters.moment(value, end)(ws.clock())
    except TakebackError:
        raise NotFound(
            f"{value!r} is no checkpoint, turn, effect or time",
            "list them with takeback log, or write a time such as 2h or 2026-01-31T18:00",
        ) from None


def _session(history: History, asked: str) -> Span:
    sessions = list(dict.fromkeys(turn.caller.session for turn in history.agent_turns.values()))
    found = [each for each in sessions if each.casefold().startswith(asked.casefold())]
    if not found:
        known = ", ".join(each for each in sessions[-4:] if each) or "none yet"
        raise NotFound(f"no session's name begins with {asked!r}", f"the newest are: {known}")
    return Span(f"session {found[-1]}" if len(found) == 1 else f"sessions {asked}…", session=asked)


def _parts(history: History, found: names.Named) -> Iterable[str]:
    """The ids of an entry and of what belongs to it."""
    yield found.id
    if found.kind in ("turn", "call"):
        yield from history.rows_of_call(found.id, failed=True) or ()
        whose = [turn for turn, asked in history.agent_turns.items() if asked.id == found.id]
        yield from (bracket.id for bracket in history.brackets.values() if bracket.turn in whose)


def _end_of(history: History, found: names.Named) -> int:
    """The last row that belongs to an entry."""
    if found.kind == "takeback":
        return max([found.seq, *history.takebacks[found.id].rows])
    parts = set(_parts(history, found))
    return max([found.seq, *(e.seq for e in history.all_effects if e.id in parts)])


def _called(found: names.Named) -> str:
    return f'{found.id[:8]} "{found.label}"' if found.label else found.id[:8]
