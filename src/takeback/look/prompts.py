"""While a person is asked about a call: what changes meanwhile is told from what the call does, once it may.

    asked ─► look ─► … ─► look ─► yes ─► the call begins        many times a second, by a process that stays

A look is taken only where something has changed, and not while its agent has begun something: then it may be the call's
own work. Of a command whose agent has begun nothing since it asks nothing can be found, whoever looks. What is found of
other calls is journaled as uncertain; the row that closes the call settles whose it is (brackets.py).
Between two looks the tree is seen to be as it is known, and the last such moment before the call began makes all that
is found later the call's for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from takeback.agents import ends
from takeback.journal import brackets
from takeback.journal.brackets import Bracket
from takeback.system import processes
from takeback.system.safefs import Folder as OpenFolder

from . import turns_and_calls

if TYPE_CHECKING:
    from takeback.workspace_locks import Guarded

PAUSE = 0.05  # seconds between two times that somebody attends to a prompt: nobody saves a file and answers in less
_SETTLING = 0.4  # seconds until the hooks are over after which an agent asks: nobody has read the prompt in less
_PATIENCE = 900.0  # seconds after which nobody attends to one any more
_SHARE = 10  # looks may take one in so many seconds


def asked_about(ws: Guarded) -> list[Bracket]:
    """The calls that a person is asked about, as long as that is worth attending to."""
    found = (b for b in brackets.at_work(ws.store.journal) if b.prompted)
    return [b for b in found if ws.clock() - b.at < _PATIENCE and not b.caller.is_gone]


class Attendance:
    """Attends to the prompts of one workspace, whose caller holds its lock."""

    def __init__(self) -> None:
        self._activity: dict[str, processes.Activity] = {}  # of agents' processes, by the call that is asked about
        self._first: dict[str, float] = {}  # when each was attended to first, or its prompt was there
        self._waiting: dict[str, processes.Activity] = {}  # what their agents' activity was then, of commands
        self._shown: set[str] = set()  # of the calls that the gate asks about, whose prompts are known to be there
        self._begun: set[str] = set()  # calls whose agents were seen to begin something since they wait
        self._cost = 0.0  # seconds that the last look took
        self._looked = 0.0  # when that was

    def attend(self, ws: Guarded, tree: OpenFolder) -> bool:
        """Whether a person is still asked."""
        now, asked = ws.clock(), asked_about(ws)
        if asked and self._are_idle(asked, now):
            self._see(ws, tree, now)
        return bool(asked)

    def waits(self, bracket: Bracket) -> bool:
        """Whether a call is a command that is not begun yet: its agent has begun nothing since it asks."""
        before = self._waiting.get(bracket.id)
        return before is not None and processes.activity(bracket.caller.pid, bracket.at) == before

    def show(self, asked: Sequence[Bracket]) -> None:
        """An agent says that its prompt is there for one of these calls, which it was told to ask about: it waits from
        now on. Which one it does not say; prompts come in the order of their calls."""
        if (new := next((b.id for b in asked if b.id not in self._shown), "")) != "":
            self._shown.add(new)
            self._first.pop(new, None)
            self._waiting.pop(new, None)

    def _are_idle(self, asked: Sequence[Bracket], now: float) -> bool:
        """Whether the agents that ask have begun nothing since the last time."""
        before, self._activity = self._activity, {b.id: processes.activity(b.caller.pid, b.at) for b in asked}
        self._first = {b.id: self._first.get(b.id, now) for b in asked}
        still = {id: then for id, then in self._waiting.items() if id in self._first}
        self._shown &= self._first.keys()
        busy = {b.id for b in asked if b.id in still and self._activity[b.id].begun}
        hooks = {b.id for b in asked if b.call.asked and b.id not in self._shown}  # that of its prompt is to come
        self._begun = ((self._begun | busy) - hooks) & self._first.keys()
        new = [b for b in asked if b.id not in self._begun and now - self._first[b.id] <= _SETTLING]
        idle = [b for b in new if processes.is_at_work(b.caller.pid, b.at, now) is False and ends.begins_a_process(b)]
        self._waiting = still | {b.id: self._activity[b.id] for b in idle}
        return all(not seen.begun and before.get(id, seen) == seen for id, seen in self._activity.items())

    def _see(self, ws: Guarded, tree: OpenFolder, now: float) -> None:
        observer = ws.observer
        known = observer.known()
        if observer.suspects is not None and observer.suspects.is_quiet(known) and not _has_git_moved(ws, tree):
            observer.seen_at = now
            return
        if now - self._looked < self._cost * _SHARE:
            return
        look = observer.scan(tree, known, deadline=turns_and_calls.deadline(ws))
        observer.journal_look(look, observer.rows_of(look))
        if not look.lacking:
            observer.seen_at = now
        self._looked = ws.clock()
        self._cost = self._looked - now


def _has_git_moved(ws: Guarded, tree: OpenFolder) -> bool:
    return ws.settings.git and bool(ws.observer.git.look(tree, dry=True).changes)
