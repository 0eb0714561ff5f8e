"""What agents tell while a take-back is interrupted: journaled without a look, which would take what that one has half
done for somebody's work.

    prompt       ─► turn row, without a checkpoint
    before call  ─► open row
    after call   ─► close row that only tells the end: the next look finds what the call did, and closes it

What is found then, and was not done before the call, may be the call's, and never is for certain.

The caller (hooked.py) holds the store lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from takeback.agents import ends
from takeback.journal import brackets
from takeback.journal.brackets import Bracket, Call, Caller, End
from takeback.journal.journal import New
from takeback.model.effects import Turn
from takeback.system import processes

from . import turns_and_calls

if TYPE_CHECKING:
    from takeback.workspace_locks import Guarded


def begin_turn(ws: Guarded, caller: Caller, prompt: str) -> None:
    """A harness says again that it begins one, without a prompt, as long as it is not told that it has."""
    before, line = brackets.newest_turn(ws.store.journal, caller), turns_and_calls.first_line(prompt)
    if before is not None and before.unseen and (not line or turns_and_calls.is_heard_twice(ws, before, line)):
        return
    told = _told_rows(ws, turns_and_calls.left_by(ws, caller, whole_session=True))
    _append(ws, [*told, brackets.turn_row(caller, line, unseen=True)])


def begin_call(ws: Guarded, caller: Caller, call: Call) -> None:
    """Announced twice, it is one call."""
    found = brackets.open_ones(ws.store.journal)
    known = turns_and_calls.announced(found, caller, call)
    if known is not None and known.caller.is_gone:
        known = None
    if known is not None and not call.key.startswith(brackets.BY_CONTENT):
        return
    call = turns_and_calls.as_kept(ws, call, known is not None)
    rows = _told_rows(ws, ends.ends_of_left((b for b in found if turns_and_calls.ends_with(b, caller)), ws.outlives))
    turn = brackets.newest_turn(ws.store.journal, caller)
    if turn is None:
        rows.append(brackets.turn_row(caller, "", unseen=True))
    number = turn.id if turn is not None else rows[-1].id
    oldest = min((b.seq for b in found), default=0)
    _append(ws, [*rows, brackets.open_row(Turn(caller.agent, number), caller, call, oldest, unseen=True)])


def refuse_call(ws: Guarded, caller: Caller, call: Call, at: float) -> None:
    bracket = turns_and_calls.announced(brackets.open_ones(ws.store.journal), caller, call)
    if bracket is not None:
        _tell(ws, {bracket.id: End(at, refused=True)})


def end_call(
    ws: Guarded,
    caller: Caller,
    call: Call,
    failed: bool,
    did_act: bool,
    ran: float | None,
    at: float,
    nothing: str,
    goes_on: bool,
) -> None:
    found = brackets.open_ones(ws.store.journal)
    bracket = turns_and_calls.announced(found, caller, call)
    if bracket is None:
        return
    end = End(at or ws.clock(), done=True, goes_on=goes_on, began=turns_and_calls.began_of(ws, bracket, ran, at))
    did = brackets.unrecorded(ws.store.journal, bracket._replace(failed=failed), found)
    acts = brackets.act_rows(did, in_doubt=failed, nothing=nothing) if did_act else []
    _append(ws, [*acts, brackets.told_row(did, end, _oldest(found))])


def end_turn(ws: Guarded, caller: Caller, whole_session: bool, at: float) -> None:
    _tell(ws, turns_and_calls.left_by(ws, caller, whole_session, at))


def end_gone(ws: Guarded, process: processes.Process, at: float) -> None:
    _tell(ws, turns_and_calls.left_at_death(ws, process, at))


def _tell(ws: Guarded, over: Mapping[str, End]) -> None:
    """How calls ended, by the ids of their brackets."""
    _append(ws, _told_rows(ws, over))


def _told_rows(ws: Guarded, over: Mapping[str, End]) -> list[New]:
    """One that goes on in the background is told of later, by its agent."""
    found = brackets.open_ones(ws.store.journal)
    rows: list[New] = []
    for bracket in found:
        end = over.get(bracket.id)
        if end is not None and bracket.is_open and not end.awaited:
            did = brackets.unrecorded(ws.store.journal, bracket, found)
            rows += [] if end.refused else brackets.act_rows(did, in_doubt=not end.done)
            rows.append(brackets.told_row(bracket, end, _oldest(found)))
    return rows


def _oldest(found: list[Bracket]) -> int:
    """All of them stay open, those too whose end is told."""
    return min(bracket.seq for bracket in found)


def _append(ws: Guarded, rows: list[New]) -> None:
    if rows:
        ws.store.journal.append(rows, ws.clock())
