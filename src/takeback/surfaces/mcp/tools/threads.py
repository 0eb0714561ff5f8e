"""thread_save, _load, _list, _resume, _diff, _search, _fork, _rollback, _handoff, _adopt, _verify: what an agent
remembers, as chains of state checkpoints beside the files it changed.

Going back in a thread appends its old state as a new head and touches nothing else, unless files are asked for too: a
redo reverses it, so nobody is asked but for what acts outside the files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from anyio import to_thread
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import Field

from takeback.model.effects import Outcome, short_id
from takeback.model.thread_states import StateCheckpoint, quoted
from takeback.privacy.masking import mask_difference, mask_state
from takeback.surfaces.mcp.answers import LONGEST_LIST, Page, answer, whole
from takeback.surfaces.mcp.calls import Call, Ctx, Cwd, call_of
from takeback.surfaces.mcp.proposals import carry_out, shown
from takeback.surfaces.wording import json_thread_shapes as shapes
from takeback.surfaces.wording import threads as threads_of_wording
from takeback.surfaces.wording.text import counted, safe
from takeback.surfaces.wording.threads import verified
from takeback.threads.compare import captures, look_at_files
from takeback.workspace import Workspace

from . import CHANGES, KEEPS, LOOKS
from .back import DryRun, Everything, Force, Merge

if TYPE_CHECKING:
    from takeback.surfaces.mcp.server import Server

_LARGEST = 256 << 10  # bytes of a state, as JSON, that is answered with whole
_LISTED = 50
_DIFFERENCES = 200

Thread = Annotated[str, Field(description="The thread's name, such as main")]
Maybe = Annotated[str, Field(description="Only this thread. Default: all of them")]
Place = Annotated[str, Field(description="A state checkpoint of that thread: how its id begins")]
Head = Annotated[str, Field(description="A state checkpoint: how its id begins. Default: the head, the newest")]


def add(server: Server) -> None:
    server.offer(thread_save, "Save what you remember", KEEPS)
    server.offer(thread_load, "Read a saved state", LOOKS)
    server.offer(thread_list, "Threads and their states", LOOKS)
    server.offer(thread_resume, "Go on where a thread stands", LOOKS)
    server.offer(thread_diff, "What differs between two states", LOOKS)
    server.offer(thread_search, "Search summaries and states", LOOKS)
    server.offer(thread_fork, "Begin a thread at an earlier state", KEEPS)
    server.offer(thread_rollback, "Go back in a thread", CHANGES)
    server.offer(thread_handoff, "Pass a state to another agent", KEEPS)
    server.offer(thread_adopt, "Take over what was handed to you", KEEPS)
    server.offer(thread_verify, "Check that states are as they were stored", LOOKS)


# -- keeping -----------------------------------------------------------------


def thread_save(
    ctx: Ctx,
    thread_id: Thread,
    state: Annotated[dict[str, Any], Field(description="All of it, as a JSON object; each name is stored once")],
    summary: Annotated[str, Field(description="One line about it")] = "",
    checkpoint_id: Annotated[
        str, Field(description="The head you went on from: if another was saved since, nothing is. Default: any")
    ] = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """Saves a state as the new head of a thread, tied to the files as they are at this moment. Nothing saved before is
    changed; takeback_thread_resume gives it back, after a restart too."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        parent = _whole_id(workspace, thread_id, checkpoint_id) if checkpoint_id else None
        made = workspace.threads.save(
            thread_id, state, parent=parent, summary=summary, agent=_agent(call), capture=captures(workspace)
        )
    said = f"saved {short_id(made.id)} as the head of thread {safe(made.thread)}"
    return answer(said, shapes.checkpoint(made))


def thread_fork(
    ctx: Ctx,
    thread_id: Thread,
    checkpoint_id: Place,
    new_thread_id: Annotated[str, Field(description="What the new thread is called; it must not exist")],
    cwd: Cwd = "",
) -> CallToolResult:
    """Begins a new thread with an earlier state of another, which stays as it is: to try something else."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        made = workspace.threads.fork(thread_id, checkpoint_id, new_thread_id, agent=_agent(call))
    return answer(f"thread {safe(made.thread)} begins, as {short_id(made.id)}", shapes.checkpoint(made))


async def thread_rollback(
    ctx: Ctx,
    thread_id: Thread,
    checkpoint_id: Place,
    with_files: Annotated[
        bool, Field(description="Files, git and what was done outside since then too; by default they stay")
    ] = False,
    everything: Everything = False,
    merge: Merge = False,
    force: Force = False,
    dry_run: DryRun = False,
    cwd: Cwd = "",
) -> CallToolResult | InputRequiredResult:
    """Makes an earlier state the head of its thread again, subgraphs with it. Nothing is deleted, and takeback_redo
    reverses it. Files and what was done outside them stay, and the answer says how far they are ahead; with_files takes
    them along in the same plan. Steps outside the files then run only after a person's yes."""
    call = call_of(ctx, cwd)
    how: dict[str, Any] = {"with_files": with_files, "everything": everything, "merge": merge, "force": force}

    def look() -> CallToolResult:
        with call.open() as workspace:
            plan = workspace.plan("thread", thread_id, checkpoint_id, **how)
            if plan.outside:  # saved, so that exactly this can be approved and applied
                plan = workspace.plan("thread", thread_id, checkpoint_id, save=True, **how)
            return shown(workspace, plan)

    def work(workspace: Workspace) -> Outcome:
        found = workspace.threads.get(thread_id, checkpoint_id)
        if not with_files:
            look_at_files(workspace, found)
        return workspace.take_back("thread", found.thread, found.id, **how)

    if dry_run:
        return await to_thread.run_sync(look)
    return await carry_out(ctx, call, work, lambda ws: ws.plan("thread", thread_id, checkpoint_id, save=True, **how))


def thread_handoff(
    ctx: Ctx,
    thread_id: Thread,
    to_agent: Annotated[str, Field(description="Who shall adopt it")],
    checkpoint_id: Head = "",
    summary: Annotated[str, Field(description="What the other agent should know")] = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """Passes a state to another agent, who takes it over with takeback_thread_adopt, once."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        made = workspace.threads.handoff(
            thread_id, checkpoint_id, to_agent=to_agent, note=summary, agent=_agent(call)
        )  # fmt: skip
    return answer(f"handoff {made.id} is for {safe(made.to_agent)}", shapes.handoff(made))


def thread_adopt(
    ctx: Ctx,
    handoff_id: Annotated[str, Field(description="How the id of the handoff begins")],
    new_thread_id: Annotated[str, Field(description="What your thread is called. Default: THREAD@AGENT")] = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """Takes over a state that was handed to you, as a new thread of your own; the answer has the state."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        made = workspace.threads.adopt(handoff_id, agent=call.actor, new_thread=new_thread_id)
        found = next((h.id for h in workspace.threads.handed_over() if h.id.startswith(handoff_id)), handoff_id)
        return _with_state(workspace, made, {"handoff_id": found})


# -- looking -----------------------------------------------------------------


def thread_load(ctx: Ctx, thread_id: Thread, checkpoint_id: Head = "", cwd: Cwd = "") -> CallToolResult:
    """A state as it was saved, with when, by whom and after what. Changes nothing."""
    with call_of(ctx, cwd).open() as workspace:
        return _with_state(workspace, workspace.threads.get(thread_id, checkpoint_id))


def thread_resume(ctx: Ctx, thread_id: Thread, checkpoint_id: Head = "", cwd: Cwd = "") -> CallToolResult:
    """Where to go on: the head of a thread and its state. Give its checkpoint_id to takeback_thread_save, and another
    agent's save in between is noticed."""
    with call_of(ctx, cwd).open() as workspace:
        return _with_state(workspace, workspace.threads.get(thread_id, checkpoint_id))


def thread_list(ctx: Ctx, thread_id: Maybe = "", checkpoint_id: Head = "", cwd: Cwd = "") -> CallToolResult:
    """All threads; or with a thread its state checkpoints, newest first, with rollbacks, forks and pending handoffs.
    Older ones than 50 are listed by naming the last one seen as checkpoint_id."""
    with call_of(ctx, cwd).open() as workspace:
        page, threads, now = Page(), workspace.threads, workspace.clock()
        pending = [h for h in threads.handed_over() if h.adopted_as is None and thread_id in ("", h.thread)]
        if not thread_id:
            every = threads.all()
            page.page(
                threads_of_wording.table(page, every, now)
                if every
                else ["there is no thread yet: takeback_thread_save"]
            )
            shape: dict[str, Any] = {"threads": [shapes.thread(each) for each in every]}
        else:
            before = threads.get(thread_id, checkpoint_id).id if checkpoint_id else ""
            found = threads.list(thread_id, before=before, limit=_LISTED + 1)
            if not found:
                threads.get(thread_id)  # says that there is none
            _, forks = threads_of_wording.chain_of(workspace, thread_id, 1)
            heads = threads.heads_at(thread_id)
            page.page(threads_of_wording.chain(page, found[:_LISTED], forks, now, heads))
            more = found[_LISTED - 1].id if len(found) > _LISTED else None
            if more:
                page.hint(f"there are older ones: call again with checkpoint_id {more}")
            listed = [
                {
                    **shapes.checkpoint(s),
                    "forks": forks.get((s.ns, s.id), []),
                    "head": threads_of_wording.is_head(s, heads),
                }
                for s in found[:_LISTED]
            ]
            shape = {"thread_id": thread_id, "checkpoints": listed, "next_checkpoint_id": more}
        page.page(f"handoff {line}" for line in threads_of_wording.handoff_lines(pending[:_LISTED], now))
        return answer(page, {**shape, "handoffs": [shapes.handoff(h) for h in pending]})


def thread_diff(
    ctx: Ctx,
    thread_id: Thread,
    from_checkpoint_id: Place,
    to_checkpoint_id: Head = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """What differs between two states of a thread, by path (messages[3].content). Secrets are masked."""
    with call_of(ctx, cwd).open() as workspace:
        threads = workspace.threads
        a, b = threads.get(thread_id, from_checkpoint_id), threads.get(thread_id, to_checkpoint_id)
        found = threads.diff(thread_id, a.id, b.id)
        shown = [mask_difference(each) for each in found[:_DIFFERENCES]]
        page = Page()
        page.page(threads_of_wording.difference_lines(page, shown))
        page.say(threads_of_wording.totals(page, found, f"{short_id(a.id)} → {short_id(b.id)}"))
        ids = {"thread_id": a.thread, "from_checkpoint_id": a.id, "to_checkpoint_id": b.id}
        return answer(page, {**ids, "differences": [shapes.difference(d) for d in shown], "total": len(found)})


def thread_search(
    ctx: Ctx,
    query: Annotated[str, Field(description="Words that must all be there, in a summary or a state")],
    thread_id: Maybe = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """State checkpoints whose summary or state has all these words, newest first. Secrets are masked."""
    with call_of(ctx, cwd).open() as workspace:
        if thread_id and not workspace.threads.list(thread_id, limit=1):
            workspace.threads.get(thread_id)  # says that there is none
        found = workspace.threads.search(query, thread_id, mask=mask_state)
        page = Page()
        page.page(
            threads_of_wording.found_lines(page, found, workspace.clock()) if found else ["nothing has all these words"]
        )
        return answer(page, {"query": query, "found": [shapes.hit(each) for each in found]})


async def thread_verify(ctx: Ctx, thread_id: Maybe = "", cwd: Cwd = "") -> CallToolResult:
    """Each state checkpoint: PASS, or FAIL and what is lost. Reads everything that threads have stored."""
    call = call_of(ctx, cwd)

    def work() -> CallToolResult:
        with call.open() as workspace:
            found = workspace.threads.verify(thread_id)
        bad = [each for each in found if not each.ok]
        page = Page()
        page.page(verified(page, bad or found[-_LISTED:]))
        whole_or_not = f"{len(bad):,} of {len(found):,} failed" if bad else "whole"
        page.say(f"{whole_or_not}: {counted(len(found), 'state checkpoint')}")
        steps = [shapes.checked(each) for each in (*bad, *(each for each in found if each.ok))]
        return answer(page, {"ok": not bad, "failed": len(bad), "steps": steps[:LONGEST_LIST], "total": len(found)})

    return await to_thread.run_sync(work)


def _with_state(workspace: Workspace, found: StateCheckpoint, also: dict[str, Any] | None = None) -> CallToolResult:
    """A state is answered with whole, or not at all: whoever goes on with a part of it goes on wrong."""
    state = workspace.threads.load(found)
    size = len(json.dumps(state))
    page, told = Page(), {**shapes.with_state(found, None), "bytes": size, **(also or {})}
    page.page(threads_of_wording.about(page, workspace, found))
    command = f"takeback thread load {quoted(found.thread)} {found.id}"
    if size > _LARGEST:
        page.say(f"its state is too large to answer with ({size:,} bytes of JSON); all of it: {safe(command)}")
        told |= {"state_left_out": command, "sizes": {name: len(json.dumps(value)) for name, value in state.items()}}
        return answer(page, told)
    page.page(threads_of_wording.state_lines(page, state, "state in this answer"))
    result = answer(page, told)
    assert result.structured_content is not None
    result.structured_content["state"] = whole(state)
    return result


def _whole_id(workspace: Workspace, thread: str, id: str) -> str:
    """The id that this one begins; as it is, where the thread has none such: then its head is another one."""
    found = workspace.threads.find(thread)
    return found.id if found is not None and found.id.startswith(id) else id


def _agent(call: Call) -> str:
    return call.by.get("actor", "")
