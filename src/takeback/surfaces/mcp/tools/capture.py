"""init, checkpoint, track: what is captured before anything is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult
from pydantic import Field

from takeback.care import moved_folder
from takeback.errors import UsageError
from takeback.look import roots
from takeback.store import layout
from takeback.surfaces.mcp.answers import Page, answer
from takeback.surfaces.mcp.calls import Call, Ctx, Cwd, call_of
from takeback.surfaces.wording import json_shapes
from takeback.surfaces.wording.paths import all_inside
from takeback.surfaces.wording.text import counted, listed, safe
from takeback.workspace import Workspace, open_workspace

from . import KEEPS, KEEPS_ONCE

if TYPE_CHECKING:
    from takeback.model.effects import Checkpoint
    from takeback.surfaces.mcp.server import Server

Actor = Annotated[
    str,
    Field(description="Who made the changes found now, if that is certain; empty: nobody vouches for them"),
]


def add(server: Server) -> None:
    server.offer(init, "Protect a folder", KEEPS_ONCE)
    server.offer(checkpoint, "Take a checkpoint", KEEPS)
    server.offer(track, "Capture single paths", KEEPS_ONCE)


def init(ctx: Ctx, cwd: Cwd = "") -> CallToolResult:
    """Protects a project folder and captures it whole in a checkpoint called "start". Writes nothing into the project.
    Where it is protected already, nothing changes. Call it once, at the project's top."""
    call = call_of(ctx, cwd)
    root = call.here.cwd
    settings = call.settings(root)
    page = Page()
    created = not layout.is_workspace(settings.home, root)
    if created and (was := moved_folder.adopt_moved(root, settings)) is not None:
        created = False
        page.say(f"this folder was moved from {safe(str(was))}; its history came along")
    elif created:
        roots.refuse_unwise(root, settings, call.environ.get("HOME", ""))
        if (top := roots.repository_top(root)) is not None:
            page.hint(f"only this folder: it lies in the git repository {safe(str(top))}")
    elif moved_folder.accept_replaced(root, settings):
        page.say("this folder replaced the one that was protected; its history goes on here")
    open_workspace(root, settings, create=True, environ=call.environ).close()
    with call.open() as workspace:
        workspace.must_be_on()
        newest = workspace.history().newest_named()
    page.say(f"{safe(str(root))} is protected" + ("" if created else " already"))
    if newest is not None and created:
        _captured(page, newest)
    shape = None if newest is None else json_shapes.checkpoint(newest)
    return answer(page, {"root": str(root), "created": created, "checkpoint": shape})


def checkpoint(
    ctx: Ctx,
    label: Annotated[str, Field(description="What to call it, one line; it can be named so later")] = "",
    actor: Actor = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """Captures the whole project, so that rollback can come back to this moment. Call it once before a task, and
    before each step you may want to take back on its own."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        taken = workspace.checkpoint(label, actor=_vouching(call, workspace, actor))
    page = Page()
    _captured(page, taken)
    page.hint(f"come back to it: takeback_rollback with checkpoint {taken.id[:8]}")
    return answer(page, {"checkpoint": json_shapes.checkpoint(taken)})


def _vouching(call: Call, workspace: Workspace, named: str) -> str:
    """Who vouches for what changed: below an agent's session, that agent only."""
    actor = named or call.actor
    return "" if workspace.vouches_above(actor) else actor


def _captured(page: Page, taken: Checkpoint) -> None:
    label = f' "{safe(taken.label)}"' if taken.label else ""
    page.say(f"checkpoint {taken.number} {taken.id[:8]}{label}: {counted(taken.snapshot.files, 'path')}")
    for path, why in (*taken.too_large, *taken.partial)[:20]:
        page.warn(f"  not captured: {safe(path) or '.'}, {safe(why)}")
    if taken.over_budget:
        page.warn(safe(taken.over_budget))


def track(
    ctx: Ctx,
    paths: Annotated[list[str], Field(description="Files or folders, absolute or relative to cwd")],
    actor: Actor = "",
    cwd: Cwd = "",
) -> CallToolResult:
    """Captures just these paths, before they change or after, without a look at the rest of the project. A path that
    does not exist yet is noted as absent. takeback_restore with the id brings them back as they are now."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        if not paths:
            raise UsageError("track needs at least one path", "name files or folders in paths")
        wanted = all_inside(call.here, workspace, paths, present=True)
        tracked = workspace.track(wanted, actor=_vouching(call, workspace, actor))
    page = Page()
    changed = f"; changed since the last look: {listed(tracked.changed)}" if tracked.changed else ""
    held = sorted({*tracked.paths} - {path for path, _ in tracked.lacking})
    page.say(f"tracked {listed(held) or 'nothing'} as {tracked.id[:8]}{changed}")
    for path, why in tracked.lacking[:20]:
        page.warn(f"  not captured: {safe(path)}, {safe(why)}")
    shape = {"id": tracked.id, "paths": list(tracked.paths), "changed": list(tracked.changed)}
    return answer(page, {**shape, "lacking": json_shapes.pairs(tracked.lacking)})
