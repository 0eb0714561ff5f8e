"""The JSON of threads, under the names that users of such tools know. Fields only grow."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from takeback.model.effects import Outcome
    from takeback.model.thread_states import Checked, Found, Handoff, StateCheckpoint, StateDifference, ThreadSeen
    from takeback.threads.prune import ThreadsPruned
    from takeback.workspace import Workspace


def checkpoint(found: StateCheckpoint) -> dict[str, Any]:
    return {
        "thread_id": found.thread,
        "checkpoint_id": found.id,
        "checkpoint_ns": found.ns,
        "parent_checkpoint_id": found.parent or None,
        "summary": found.summary,
        "agent": found.agent,
        "source": found.source,
        "created_at": moment(found.at),
        "at": found.at,
        "seq": found.seq,
        "values": sorted(found.refs),
        "blob_id": found.blob_id,
        "workspace_checkpoint": found.workspace_checkpoint or None,
        "restored_from": found.restored_from or None,
        "rolled_back_from": found.rolled_back_from or None,
        "forked_from": origin(found.forked_from),
    }


def with_state(found: StateCheckpoint, state: Any) -> dict[str, Any]:
    return {**checkpoint(found), "metadata": dict(found.meta), "state": state}


def thread(found: ThreadSeen) -> dict[str, Any]:
    return {
        "thread_id": found.thread,
        "checkpoint_id": found.head.id,
        "checkpoints": found.checkpoints,
        "namespaces": list(found.namespaces),
        "summary": found.head.summary,
        "agent": found.head.agent,
        "created_at": moment(found.created),
        "updated_at": moment(found.head.at),
        "forked_from": origin(found.forked_from),
    }


def handoff(found: Handoff) -> dict[str, Any]:
    adopted = found.adopted_as
    return {
        "handoff_id": found.id,
        "thread_id": found.thread,
        "checkpoint_id": found.checkpoint,
        "to_agent": found.to_agent,
        "agent": found.agent,
        "note": found.note,
        "created_at": moment(found.at),
        "adopted_by": found.adopted_by or None,
        "adopted_as": origin(adopted),
    }


def difference(found: StateDifference) -> dict[str, Any]:
    return {"path": found.path, "change": found.change, "before": found.before, "after": found.after}


def hit(found: Found) -> dict[str, Any]:
    return {**checkpoint(found.checkpoint), "where": found.where, "excerpt": found.excerpt}


def checked(found: Checked) -> dict[str, Any]:
    return {
        "seq": found.seq,
        "thread_id": found.thread,
        "checkpoint_ns": found.ns,
        "checkpoint_id": found.id,
        "result": "PASS" if found.ok else "FAIL",
        "why": found.why,
    }


def pruned(found: ThreadsPruned) -> dict[str, Any]:
    return {
        "removed": [checkpoint(state) for state in found.removed],
        "stays": [{**checkpoint(each.checkpoint), "why": each.why} for each in found.stays],
        "deleted": list(found.deleted),
        "handoffs": list(found.handoffs),
        "dry_run": found.dry_run,
    }


def rolled_back(workspace: Workspace, outcome: Outcome) -> dict[str, Any]:
    """Of a take-back of one thread: its head now, and where that came from. Nothing for any other."""
    request = outcome.plan.request
    if len(request.threads) != 1 or not request.checkpoint or outcome.finished_earlier:
        return {}
    head = workspace.threads.find(request.threads[0])
    if head is None:
        return {}
    said: dict[str, Any] = {
        "thread_id": head.thread,
        "checkpoint_id": head.id,
        "parent_checkpoint_id": head.parent or None,
        "restored_from": request.checkpoint,
        "rolled_back_from": head.rolled_back_from if outcome.id else head.id,
        "blob_id": head.blob_id,
        "workspace_checkpoint": head.workspace_checkpoint or None,
    }
    return {**said, "nothing_to_take_back": not outcome.id}


def origin(found: tuple[str, str] | None) -> dict[str, str] | None:
    return None if found is None else {"thread_id": found[0], "checkpoint_id": found[1]}


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"
