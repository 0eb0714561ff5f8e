"""Handing a state checkpoint over to another agent, who goes on from it in a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import NotFound, UsageError
from takeback.journal.journal import New
from takeback.model.ids import new_id
from takeback.model.thread_states import Handoff, StateCheckpoint, quoted
from takeback.privacy import redact

if TYPE_CHECKING:
    from .threads import Threads

_NOTE = 300  # characters


def hand_over(threads: Threads, thread: str, id: str, to_agent: str, note: str, agent: str) -> Handoff:
    """Passes a state checkpoint to another agent, who adopts it."""
    threads.ws.must_be_on()
    if not to_agent:
        raise UsageError("a handoff needs an agent to go to", "takeback thread handoff THREAD CHECKPOINT --to AGENT")
    target = threads.get(thread, id)
    threads.moment_of(target)  # what cannot be adopted is not handed over
    body = {
        "what": "handoff", "thread": thread, "checkpoint": target.id, "to_agent": to_agent, "agent": agent,
        "note": redact.text(note)[:_NOTE],
    }  # fmt: skip
    handoff = new_id()
    with threads.ws.writing():
        threads.journal.append([New("thread", handoff, body)], threads.ws.clock())
    return find(threads, handoff)


def find(threads: Threads, id: str) -> Handoff:
    """A handoff by its id or the beginning of it."""
    found = [h for h in made(threads) if h.id.startswith(id)] if id else []
    if len(found) != 1:
        several = "several handoffs begin" if found else "no handoff begins"
        raise NotFound(f"{several} with {id!r}", "see them with takeback thread list --handoffs")
    return found[0]


def made(threads: Threads) -> list[Handoff]:
    """Every handoff, newest first."""
    found: dict[str, Handoff] = {}
    with threads.ws.alone():
        rows = list(threads.journal.rows(kinds=("thread",)))
    for row in rows:
        body = row.body or {}
        if body.get("what") == "handoff":
            thread, checkpoint, to, agent, note = (
                body[k] for k in ("thread", "checkpoint", "to_agent", "agent", "note")
            )
            found[row.id] = Handoff(row.id, thread, checkpoint, to, agent, note, row.at)
        elif body.get("what") == "adopted" and body["handoff"] in found:
            by = (body["thread"], body["checkpoint"])
            found[body["handoff"]] = found[body["handoff"]]._replace(adopted_by=body["agent"], adopted_as=by)
    return list(reversed(found.values()))


def adopt(threads: Threads, handoff_id: str, agent: str, new_thread: str) -> StateCheckpoint:
    """Takes over what was handed over: a new thread that begins with it. Once: of two who adopt it, one is told."""
    with threads.together():
        return _adopted(threads, find(threads, handoff_id), agent, new_thread)


def _adopted(threads: Threads, handoff: Handoff, agent: str, new_thread: str) -> StateCheckpoint:
    if handoff.adopted_as is not None:
        raise UsageError(
            f"{handoff.id[:8]} was adopted already, by {handoff.adopted_by or 'nobody named'} as thread "
            f"{handoff.adopted_as[0]}",
            f"go on there, or fork it: takeback thread fork {quoted(handoff.thread)} {handoff.checkpoint} NEW",
        )
    if agent and agent != handoff.to_agent:
        raise UsageError(
            f"{handoff.id[:8]} was handed to {handoff.to_agent}, not to {agent}", "ask for a handoff of your own"
        )
    thread = new_thread or f"{handoff.thread}@{handoff.to_agent}"
    made = threads.fork(handoff.thread, handoff.checkpoint, thread, agent=handoff.to_agent, source="adopt")
    body = {
        "what": "adopted", "handoff": handoff.id, "agent": handoff.to_agent, "thread": thread, "checkpoint": made.id,
    }  # fmt: skip
    threads.journal.append([New("thread", new_id(), body)], threads.ws.clock())
    return made
