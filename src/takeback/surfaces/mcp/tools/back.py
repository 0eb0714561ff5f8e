"""undo, redo, rollback, revert, restore, compensate, plan, apply: the way back.

Files go back at once: what they replace is stored first, and redo brings it back. What acts outside the files needs a
person's yes (proposals.py), unless the owner's policy allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from anyio import to_thread
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import Field

from takeback.errors import UsageError
from takeback.model.effects import Outcome
from takeback.surfaces.mcp.calls import Call, Ctx, Cwd, call_of
from takeback.surfaces.mcp.proposals import carry_out, shown
from takeback.surfaces.wording.paths import all_inside, entry, ids_or_paths
from takeback.surfaces.wording.take_backs import must_be_known
from takeback.workspace import Workspace

from . import CHANGES, KEEPS

if TYPE_CHECKING:
    from takeback.surfaces.mcp.server import Server

Answer = CallToolResult | InputRequiredResult
Only = Annotated[list[str], Field(description="Only these domains: files, http, command, email, python")]
Without = Annotated[list[str], Field(description="All domains but these")]
Actors = Annotated[list[str], Field(description="Only what these actors did")]
Everything = Annotated[bool, Field(description="Whoever did it; by default others' work is kept")]
Merge = Annotated[bool, Field(description="Merge text that others changed since, where that is clean")]
WithState = Annotated[bool, Field(description="Threads too: what agents remember; by default they stay")]
Force = Annotated[bool, Field(description="Take back what others changed since, too; a person should agree")]
DryRun = Annotated[bool, Field(description="Only show the plan")]
Count = Annotated[int, Field(ge=1, le=1000, description="How many, newest first")]
Verb = Literal["undo", "redo", "rollback", "revert", "restore", "compensate"]


def add(server: Server) -> None:
    server.offer(rollback, "Go back to a checkpoint", CHANGES)
    server.offer(undo, "Take back the last turn", CHANGES)
    server.offer(redo, "Bring back what was taken", CHANGES)
    server.offer(revert, "Take back one effect or path", CHANGES)
    server.offer(restore, "Bring files back from a checkpoint", CHANGES)
    server.offer(compensate, "Take back what stands outside the files", CHANGES)
    server.offer(plan, "Plan a take-back", KEEPS)
    server.offer(apply, "Carry out a saved plan", CHANGES)


async def rollback(
    ctx: Ctx,
    checkpoint: Annotated[
        str,
        Field(
            description="Number, label or how its id begins; or a turn (also by words of its prompt), call or effect, "
            "to go to just before it. Default: newest"
        ),
    ] = "",
    only: Only = [],  # noqa: B006
    without: Without = [],  # noqa: B006
    actors: Actors = [],  # noqa: B006
    everything: Everything = False,
    merge: Merge = False,
    with_state: WithState = False,
    force: Force = False,
    dry_run: DryRun = False,
    cwd: Cwd = "",
) -> Answer:
    """Goes back to a checkpoint: files, and what was recorded outside them, newest first. Look first with dry_run:
    where a person asks for it, show the points (log with filter kind:checkpoint) and that plan, and go only to the id
    that the person then names. What people did since is kept and named, unless everything is true; a person should
    agree to that. Files go back at once and can be brought back by redo. Steps outside the files (requests, commands,
    mail) run only after a person's yes."""
    words = (checkpoint,) if checkpoint else ()
    return await _take_back(
        ctx, cwd, "rollback", words, dry_run, only=only, without=without, actors=actors or None,
        everything=everything, merge=merge, force=force, state=with_state,
    )  # fmt: skip


async def undo(
    ctx: Ctx,
    n: Count = 1,
    turn: Annotated[str, Field(description="One turn instead: how its id begins, or words of its prompt")] = "",
    only: Only = [],  # noqa: B006
    without: Without = [],  # noqa: B006
    actors: Actors = [],  # noqa: B006
    everything: Everything = False,
    merge: Merge = False,
    with_state: WithState = False,
    force: Force = False,
    dry_run: DryRun = False,
    cwd: Cwd = "",
) -> Answer:
    """Takes back the last turn; again, the one before. Steps outside the files run only after a person's yes."""
    return await _take_back(
        ctx, cwd, "undo", (turn or n,), dry_run, only=only, without=without, actors=actors or None,
        everything=everything, merge=merge, force=force, state=with_state,
    )  # fmt: skip


async def redo(
    ctx: Ctx, n: Count = 1, merge: Merge = False, force: Force = False, dry_run: DryRun = False, cwd: Cwd = ""
) -> Answer:
    """Brings back what the last undo, rollback, revert or restore took."""
    return await _take_back(ctx, cwd, "redo", (n,), dry_run, merge=merge, force=force)


async def revert(
    ctx: Ctx,
    what: Annotated[
        list[str], Field(description="Turns, calls or effects (how the id begins, or words of the prompt), or paths")
    ] = [],  # noqa: B006
    path: Annotated[str, Field(description="One path, or one effect")] = "",
    only: Only = [],  # noqa: B006
    without: Without = [],  # noqa: B006
    merge: Merge = False,
    force: Force = False,
    dry_run: DryRun = False,
    cwd: Cwd = "",
) -> Answer:
    """Takes back single effects; or, of a path, what agents did to it since the last checkpoint or track, keeping and
    naming what people wrote there. Steps outside the files run only after a person's yes."""
    given = (*what, *([path] if path else []))
    return await _take_back(
        ctx, cwd, "revert", given, dry_run, only=only, without=without, merge=merge, force=force
    )  # fmt: skip


async def restore(
    ctx: Ctx,
    checkpoint: Annotated[str, Field(description="Number, label or how its id begins; or the id of a track")],
    paths: Annotated[list[str], Field(description="Files or folders to bring back; of a track, by default all")] = [],  # noqa: B006
    force: Force = False,
    dry_run: DryRun = False,
    cwd: Cwd = "",
) -> Answer:
    """Brings single files or folders back from any checkpoint, in place. What they replace is stored first. What was
    not there then goes only if it is named itself; what is new in a folder stays (left)."""
    return await _take_back(ctx, cwd, "restore", (checkpoint, *paths), dry_run, force=force)


async def compensate(
    ctx: Ctx,
    execute: Annotated[bool, Field(description="False shows the plan; true runs it, after a person's yes")] = False,
    to: Annotated[
        str, Field(description="Only what was done since this checkpoint. Default: all that still stands")
    ] = "",
    only: Only = [],  # noqa: B006
    without: Without = [],  # noqa: B006
    actors: Actors = [],  # noqa: B006
    cwd: Cwd = "",
) -> Answer:
    """Takes back what still stands outside the files (requests, commands, held mail), newest first, and leaves files
    alone. Shows the plan unless execute is true; then a person is asked."""
    words = (to,) if to else ()
    return await _take_back(
        ctx, cwd, "compensate", words, not execute, only=only, without=without, actors=actors or None
    )  # fmt: skip


async def plan(
    ctx: Ctx,
    verb: Annotated[Verb, Field(description="What to plan")],
    args: Annotated[list[str], Field(description="What that verb takes: a checkpoint, effects, paths, a count")] = [],  # noqa: B006
    only: Only = [],  # noqa: B006
    without: Without = [],  # noqa: B006
    actors: Actors = [],  # noqa: B006
    everything: Everything = False,
    merge: Merge = False,
    with_state: WithState = False,
    force: Force = False,
    cwd: Cwd = "",
) -> Answer:
    """Plans any take-back and saves it under an id, with every step and its verdict. Nothing is changed.
    takeback_apply carries out exactly this plan; a person approves it with `takeback approve`."""
    call = call_of(ctx, cwd)
    options: dict[str, Any] = {
        "only": only,
        "without": without,
        "everything": everything,
        "merge": merge,
        "force": force,
        "state": with_state,
    }

    def work() -> CallToolResult:
        with call.open() as workspace:
            must_be_known(workspace, [*only, *without])
            words = _words(call, workspace, verb, tuple(args))
            return shown(workspace, workspace.plan(verb, *words, actors=actors or None, save=True, **options))

    return await to_thread.run_sync(work)


async def apply(
    ctx: Ctx, plan: Annotated[str, Field(description="How the id of the saved plan begins")], cwd: Cwd = ""
) -> Answer:
    """Carries out a saved plan exactly as it was shown, or refuses it as stale. Steps outside the files run only if a
    person approved it, or says yes now."""

    def work(workspace: Workspace) -> Outcome:
        return workspace.apply(plan)

    return await carry_out(ctx, call_of(ctx, cwd), work, lambda workspace: workspace.saved_plan(plan))


async def _take_back(
    ctx: Ctx, cwd: str, verb: str, given: tuple[str | int, ...], dry_run: bool, **options: Any
) -> Answer:
    call = call_of(ctx, cwd)

    def look() -> CallToolResult:
        with call.open() as workspace:
            must_be_known(workspace, [*options.get("only", ()), *options.get("without", ())])
            words = _words(call, workspace, verb, given)
            plan = workspace.plan(verb, *words, **options)
            if plan.outside:  # saved, so that exactly this can be approved and applied
                plan = workspace.plan(verb, *words, **options, save=True)
            return shown(workspace, plan)

    def work(workspace: Workspace) -> Outcome:
        must_be_known(workspace, [*options.get("only", ()), *options.get("without", ())])
        return workspace.take_back(verb, *_words(call, workspace, verb, given), **options)

    if dry_run:
        return await to_thread.run_sync(look)
    return await carry_out(
        ctx, call, work, lambda ws: ws.plan(verb, *_words(call, ws, verb, given), **options, save=True)
    )  # fmt: skip


def _words(call: Call, workspace: Workspace, verb: str, given: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """What a verb takes, its paths as the workspace knows them."""
    words = [str(word) for word in given]
    if verb == "revert":
        if not words:
            raise UsageError("revert needs an effect or a path", "name it in what, or in path")
        return tuple(ids_or_paths(call.here, workspace, words))
    if verb == "restore":
        if not words:
            raise UsageError("restore needs a checkpoint and at least one path", "see takeback_log for checkpoints")
        return (entry(call.here, workspace, words[0]), *all_inside(call.here, workspace, words[1:]))
    if len(words) > 1:
        raise UsageError(f"{verb} takes one target at most, not {len(words)}", "leave out the rest")
    if verb == "redo":
        return tuple(int(w) if w.isdecimal() and w.isascii() else _no_count(w) for w in words)
    return tuple(entry(call.here, workspace, word) for word in words)


def _no_count(word: str) -> int:
    raise UsageError(f"{word!r} is no number of turns", "give a whole number from 1 up")
