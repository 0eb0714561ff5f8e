"""A turn of a thread, from its beginning to its end: whatever changes meanwhile is that thread's.

    begin ─► look ─► what others did before ─► turn row, and two brackets: around the thread, and around the files
    end   ─► look ─► what was done in it ─► the brackets close

Where turns of several threads are open, what changes is shared by them. Tool calls in a turn are a part of it.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NamedTuple

from takeback.apply import results
from takeback.model.calls import TURN, Call, Caller
from takeback.model.effects import Turn, path_of_thread
from takeback.system import processes

if TYPE_CHECKING:
    from takeback.apply.results import Finished
    from takeback.workspace import Workspace

_TALK = "conversation"  # the bracket around the thread


class ThreadTurn(NamedTuple):
    """A turn that is open."""

    caller: Caller
    calls: tuple[Call, ...]
    turn: Turn
    seq: int  # a row of its beginning
    lacking: tuple[tuple[bytes, str], ...] = ()  # what could not be captured as it was before, and why

    @property
    def owner(self) -> dict[str, str]:
        """Whose acts are that are recorded in it."""
        return {"actor": self.turn.actor, "turn": self.turn.number}


def begin(
    workspace: Workspace, agent: str, thread: str, prompt: str, *, called: str = _TALK, goes_on: bool = False
) -> ThreadTurn:
    """What is found in it is `called` so. With `goes_on` it is the last turn of the thread once more, if there is one:
    what it was asked is still to do."""
    process = os.getpid(), processes.started(os.getpid())
    workspace.note_session(*process, agent)
    # Only brackets know the process: a turn that did would be spared by an undo from the same one.
    caller = Caller(agent, thread, "", *process)
    talk = Call(_TALK, _TALK, called, (path_of_thread(thread),), scans=False, thread=thread)
    work = Call(TURN, _TALK, called, thread=thread)
    if goes_on and workspace.has_turns(caller):
        opened = workspace.begin_call(caller, work)
        workspace.begin_call(caller, talk)
        return ThreadTurn(caller, (work, talk), opened.bracket.turn, opened.bracket.seq, opened.lacking)
    begun = workspace.begin_turn(Caller(agent, thread), prompt, ((caller, talk), (caller, work)))
    return ThreadTurn(caller, (work, talk), begun.turn, begun.seq, begun.lacking)


def finish_interrupted(workspace: Workspace) -> Finished | None:
    """Whoever comes next finishes a take-back that was cut off: else no thread could go on. What lacks a credential
    here stays, and is named. What a person stopped is theirs to decide on."""
    if not workspace.interrupted() or workspace.was_stopped():
        return None
    outcome = workspace.resume(leave=True)
    return results.finished(workspace, outcome) if outcome is not None else None


def finish_unasked(workspace: Workspace) -> Finished | None:
    """The same where a harness's own call returns nothing of ours: its log is told what went back by that."""
    finished = finish_interrupted(workspace)
    if finished is not None:
        logging.getLogger("takeback").warning("%s", finished.message)
    return finished


def end(workspace: Workspace, turn: ThreadTurn, failed: bool = False) -> None:
    for call in turn.calls:
        workspace.end_call(turn.caller, call, failed=failed)
    workspace.end_turn(turn.caller)  # with calls in it that nobody said were over
