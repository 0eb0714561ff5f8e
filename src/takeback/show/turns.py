"""Agents' turns and calls as values to look at: what was asked, by which calls it was done, what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from takeback.domains.git.repository import amount
from takeback.errors import Damaged
from takeback.journal.brackets import AgentTurn, Bracket, End
from takeback.journal.history import History
from takeback.model.effects import FILE, FOLDER, STATES, UNSEEN, Effect, Request, State, Takeback, Turn, same, text
from takeback.store.folder_objects import Difference
from takeback.text import linediff

_COUNTED = 50  # turns whose lines are counted, of those that are listed
_MOST = 60  # files of one turn whose lines are counted
_LARGEST = 256 << 10  # bytes of a file whose lines are counted

OPEN, DONE, FAILED, REFUSED, CUT_OFF = "open", "done", "failed", "refused", "cut off"


class CallSeen(NamedTuple):
    """One call of an agent."""

    id: str
    turn: str
    agent: str
    session: str
    lane: str  # the subagent; empty for the agent itself
    tool: str
    summary: str
    at: float
    ended: float  # 0 while it is open
    state: str  # open, done, failed, refused, cut off
    gone: bool  # open, and its process has ended: the next look closes it
    effects: tuple[str, ...]  # ids of what was found in it, of what it did outside the files too
    files: tuple[str, ...]
    shared: bool  # some of it was found while other calls were open too
    uncertain: tuple[str, ...] = ()  # paths of it that may be somebody else's


class TurnSeen(NamedTuple):
    """What an agent was asked, and what came of it."""

    id: str
    agent: str
    session: str
    prompt: str
    at: float
    lanes: tuple[str, ...]  # its subagents
    calls: int
    files: tuple[str, ...]
    added: int | None  # lines; None where they were not counted
    removed: int | None
    git: str  # how much of the repository's state it changed, in words
    outside: int  # what it did beyond files and git
    live: bool  # whether some of it still stands; true where it did nothing
    takebacks: tuple[str, ...] = ()  # ids of those that it asked for, oldest first
    uncertain: tuple[str, ...] = ()  # paths that may be somebody else's: its take-back keeps them, and asks
    shared: tuple[str, ...] = ()  # paths that other turns had a part in
    failed: int = 0  # what was to be done beyond files and git, and did not happen


def of_effect(history: History, effect: Effect) -> list[AgentTurn]:
    """The agents' turns that an effect belongs to; several where it is shared."""
    return known(history, effect.turns)


def known(history: History, turns: Iterable[Turn]) -> list[AgentTurn]:
    return [history.agent_turns[turn] for turn in sorted(turns) if turn in history.agent_turns]


def meant(history: History, request: Request) -> list[Turn]:
    """The turns that a take-back was asked for; of one that brings others back, those that these were asked for, but
    for what only lay on the way."""
    others = [t for id in request.takebacks if (t := history.takebacks.get(id)) is not None]
    asked = [request, *(t.request for t in [t for t in others if t.rows] or others)]
    named = [turn for each in asked if each.verb != "revert" for turn in each.turns]
    whole = [turn for each in asked if (turn := whole_turn(history, each)) is not None]
    return list(dict.fromkeys([*named, *whole]))


def whole_turn(history: History, request: Request) -> Turn | None:
    """The turn of an agent that a revert takes whole."""
    if request.paths or request.verb != "revert":
        return None
    effects = {e.id: e for e in history.effects if e.id in request.rows and not e.takeback} if request.rows else {}
    turns = set(request.turns) or {turn for effect in effects.values() for turn in effect.turns}
    if len(turns) != 1:
        return None
    turn = turns.pop()
    asked = history.agent_turns.get(turn)
    return turn if asked is not None and set(history.rows_of_call(asked.id) or ()) == set(request.rows) else None


def called(history: History, turns: Iterable[Turn], most: int = 3) -> str:
    """'claude “add a login form”, codex “test it”': those of agents."""
    asked = [history.agent_turns[turn] for turn in turns if turn in history.agent_turns]
    names = [f"{each.caller.agent} “{each.prompt}”" if each.prompt else each.caller.agent for each in asked]
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:most]) + (", …" if len(unique) > most else "")


def turns_seen(
    history: History, wanted: Iterable[AgentTurn], get: Callable[[bytes], bytes], count: int = _COUNTED
) -> list[TurnSeen]:
    """Turns with what came of them; of the first `count` the lines are counted."""
    asked = {turn.turn: turn for turn in wanted}
    effects: dict[Turn, list[Effect]] = {turn: [] for turn in asked}
    calls: dict[Turn, list[Bracket]] = {turn: [] for turn in asked}
    for effect in history.all_effects if asked else ():
        for turn in effect.turns & asked.keys() if not effect.takeback else ():
            effects[turn].append(effect)
    for bracket in history.brackets.values() if asked else ():
        if bracket.turn in calls:
            calls[bracket.turn].append(bracket)
    return [
        _turn_seen(history, found, effects[turn], calls[turn], get if at < count else None)
        for at, (turn, found) in enumerate(asked.items())
    ]


def _turn_seen(
    history: History,
    asked: AgentTurn,
    effects: Sequence[Effect],
    calls: Sequence[Bracket],
    get: Callable[[bytes], bytes] | None,
) -> TurnSeen:
    failed = {e.id for e in history.did_not_happen}
    effects, not_done = [e for e in effects if e.id not in failed], sum(e.id in failed for e in effects)
    found = net(effects)
    added, removed = lines_of(found, get) if get is not None else (None, None)
    units = [(e.seq, path) for e in effects for path in e.changes]
    caller = asked.caller
    return TurnSeen(
        asked.id,
        caller.agent,
        caller.session,
        asked.prompt,
        asked.at,
        tuple(sorted({b.caller.lane for b in calls} - {""})),
        len(calls),
        _files(found),
        added,
        removed,
        amount(d.path for d in net(effects, "git")),
        sum(e.id in history.acts for e in effects),
        not units or any(unit in history.live for unit in units),
        tuple(t.id for t in asked_for(history, asked.id)),
        tuple(map(text, uncertain_paths(history, effects))),
        tuple(map(text, shared_paths(history, effects))),
        not_done,
    )


def asked_for(history: History, id: str) -> list[Takeback]:
    """The take-backs that an agent's turn or call asked for, oldest first."""
    return [t for t in history.takebacks.values() if id in (t.by.get("turn"), t.by.get("call"))]


def calls_seen(history: History, wanted: Iterable[Bracket]) -> list[CallSeen]:
    found = {bracket.id: bracket for bracket in wanted}
    effects: dict[str, list[Effect]] = {id: [] for id in found}
    for effect in history.all_effects if found else ():
        for id in effect.calls:
            if id in effects:
                effects[id].append(effect)
    return [_call_seen(history, bracket, effects[bracket.id]) for bracket in found.values()]


def state_of(bracket: Bracket) -> str:
    if bracket.is_open:
        return OPEN
    if bracket.refused:
        return REFUSED
    return CUT_OFF if bracket.cut else FAILED if bracket.failed else DONE


def _call_seen(history: History, bracket: Bracket, effects: Sequence[Effect]) -> CallSeen:
    caller, call = bracket.caller, bracket.call
    return CallSeen(
        bracket.id,
        bracket.turn.number,
        caller.agent,
        caller.session,
        caller.lane,
        call.tool,
        call.summary,
        bracket.at,
        bracket.ended,
        state_of(bracket),
        bracket.is_open and caller.is_gone,
        tuple(e.id for e in effects),
        _files(net(effects)),
        any(len(e.calls) > 1 for e in effects),
        tuple(map(text, uncertain_paths(history, effects))),
    )


def calls_of(history: History, turn: Turn) -> list[CallSeen]:
    """Oldest first."""
    return calls_seen(history, (b for b in history.brackets.values() if b.turn == turn))


def at_work(history: History, end_of: Callable[[Bracket], End | None]) -> list[CallSeen]:
    """Calls that are at work, or were when their process ended, oldest first."""
    left = (bracket for bracket in history.brackets.values() if bracket.is_open)
    ends = ((bracket, end_of(bracket)) for bracket in left)
    return calls_seen(history, (b for b, end in ends if end is None or end == End() or end.is_outlived))


def uncertain_paths(history: History, effects: Iterable[Effect]) -> list[bytes]:
    """What stands of them and may be somebody else's: what the plan of their take-back asks about."""
    return _standing(history, (e for e in effects if is_uncertain(e)))


def is_uncertain(effect: Effect) -> bool:
    return effect.uncertain and effect.domain in STATES and effect.domain != "state"


def shared_paths(history: History, effects: Iterable[Effect]) -> list[bytes]:
    """What stands of them and was done while calls of several turns were under way."""
    return _standing(history, (e for e in effects if len(e.turns) > 1 and e.domain in STATES))


def _standing(history: History, effects: Iterable[Effect]) -> list[bytes]:
    return sorted({path for e in effects for path in e.changes if (e.seq, path) in history.live})


def net(effects: Iterable[Effect], *domains: str) -> list[Difference]:
    """What they changed as a whole, path by path: from before the first to after the last."""
    first: dict[bytes, State] = {}
    last: dict[bytes, State] = {}
    for effect in effects:
        for path, change in effect.changes.items() if effect.domain in (domains or ("files",)) else ():
            first.setdefault(path, change.before)
            last[path] = change.after
    found = (Difference(path, first[path], last[path]) for path in sorted(first))
    return [d for d in found if not same(d.before, d.after) and not any(s and s.kind == UNSEEN for s in d[1:])]


def _files(found: Iterable[Difference]) -> tuple[str, ...]:
    states = ((path, after or before) for path, before, after in found)
    return tuple(text(path) for path, state in states if state is not None and state.kind != FOLDER)


def lines_of(found: list[Difference], get: Callable[[bytes], bytes]) -> tuple[int | None, int | None]:
    """Lines added and removed; nothing where there is too much to count, or bytes are gone."""
    added = removed = 0
    if len(found) > _MOST:
        return None, None
    for _, *states in found:
        if any(s is not None and s.kind == FILE and s.size > _LARGEST for s in states):
            return None, None
        try:
            old, new = (get(s.content) if s is not None and s.kind == FILE else b"" for s in states)
        except Damaged:
            return None, None
        if not linediff.is_binary(old) and not linediff.is_binary(new):
            plus, minus = linediff.count(linediff.hunks(old, new))
            added, removed = added + plus, removed + minus
    return added, removed
