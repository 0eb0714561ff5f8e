"""What became of a call that is open: what its agent has written down about it, else whether its process still runs.

An agent tells most ends by an event. Of a call that a person refused or interrupted some tell nothing, but write it
into the transcript of the session; and one that was killed can tell nothing at all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from takeback.journal.brackets import Bracket, End
from takeback.system import processes

from .events import SHELL

if TYPE_CHECKING:
    from .events import Agent

_WRITING = 0.4  # seconds until an agent has written down what it has already acted upon
_AGAIN = 0.05
_EARLY = 0.05  # seconds by which the start of a process may be told too early

Outlives = Callable[[Bracket], bool]  # whether something of a call is at work, though its agent is gone


def end_of(bracket: Bracket, outlives: Outlives) -> End | None:
    """None where the call is at work, as far as anybody can tell."""
    if bracket.told is not None:
        return bracket.told
    found = _written(bracket)
    return _end_of_gone(bracket, found or End(), outlives) if bracket.caller.is_gone else found


def ends_of_left(left: Iterable[Bracket], outlives: Outlives, at: float = 0.0) -> dict[str, End]:
    """The same of calls whose session has gone on, by the ids of their brackets: they are over, and that may just be
    being written down. Waits once for all of them. Where their agent tells that the session ends at some moment, those
    of which it has written down nothing were at work until then."""
    until = time.monotonic() + _WRITING
    return {bracket.id: _end_of_left(bracket, until, outlives, at) for bracket in left}


def outlives(bracket: Bracket, root: str, agents: Callable[[], Iterable[processes.Process]]) -> bool:
    """Whether a command that an agent has begun in the root since a call was announced is at work, and no agent that is
    known to live has begun it: one that outlived the agent of that call."""
    if not bracket.call.scans or not (found := list(processes.marked_in(root, bracket.at - _EARLY))):
        return False
    living, here = set(agents()), set(processes.ancestors(os.getpid()))
    above = (list(processes.ancestors(pid)) for pid in found)
    return any(chain[0] not in here and living.isdisjoint(chain) for chain in above)


def _end_of_gone(bracket: Bracket, end: End, outlives: Outlives) -> End:
    """Nobody tells any more. Where its command lives on, it is not over: until that has ended, nobody knows what is
    its work."""
    goes_on = not (end.done or end.refused) and outlives(bracket)
    return end._replace(goes_on=end.goes_on or goes_on, awaited=goes_on)


def _end_of_left(bracket: Bracket, until: float, outlives: Outlives, at: float) -> End:
    if bracket.told is not None:
        return bracket.told
    can_wait = not bracket.caller.is_gone and os.path.isfile(bracket.call.transcript)
    while (end := _written(bracket)) is None:
        if not can_wait or time.monotonic() > until:
            end = End(at if can_wait else 0.0)
            break
        time.sleep(_AGAIN)
    if not bracket.caller.is_gone:
        return end
    while (gone := _end_of_gone(bracket, end, outlives)).awaited and time.monotonic() < until:
        time.sleep(_AGAIN)  # most commands die with their agent, a moment after it
    return gone


def began(bracket: Bracket) -> float:
    """When a call that a person was asked about began its work, as its agent has written down; 0: nobody knows."""
    reader, call = _reader(bracket), bracket.call
    return reader.began(call.transcript, call.key, bracket.at) if reader is not None else 0.0


def begins_a_process(bracket: Bracket) -> bool:
    """Whether a call is a command, which its agent runs in a process that it begins for it."""
    from takeback import agents

    if bracket.caller.agent not in agents.AGENTS:
        return False
    agent = agents.load(bracket.caller.agent)
    return agent.begins_commands and agent.tools.get(bracket.call.tool) == SHELL


def _written(bracket: Bracket) -> End | None:
    end = _read(bracket)
    if end is None or not end.unless_at_work:
        return end
    caller = bracket.caller
    is_at_work = None if caller.is_gone else processes.is_at_work(caller.pid, bracket.at, end.at)
    if is_at_work is False:
        time.sleep(_AGAIN)  # it may have ended this moment, which is being written down
        end = _read(bracket) or end
        return end._replace(unless_at_work=False)
    return End(end.at, goes_on=True, awaited=True)


def _read(bracket: Bracket) -> End | None:
    reader, call = _reader(bracket), bracket.call
    return reader.end_of(call.transcript, call.key, bracket.prompted, bracket.at) if reader is not None else None


def _reader(bracket: Bracket) -> Agent | None:
    from takeback import agents

    if not bracket.call.transcript or bracket.caller.agent not in agents.AGENTS:
        return None
    return agents.load(bracket.caller.agent)
