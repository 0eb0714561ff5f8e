"""status, diff, log, show, effects: what happened, in pages of a size that an agent can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult
from pydantic import Field

from takeback.journal import filters
from takeback.privacy.masking import mask_file
from takeback.show.views import FileDiff
from takeback.surfaces.mcp.answers import LONGEST_LIST, Page, answer
from takeback.surfaces.mcp.calls import Ctx, Cwd, call_of
from takeback.surfaces.mcp.windows import Window, more, windowed
from takeback.surfaces.mcp.wording import for_agents
from takeback.surfaces.wording import diffs, json_shapes, ledger
from takeback.surfaces.wording import entry as entry_of_wording
from takeback.surfaces.wording import log as log_of_wording
from takeback.surfaces.wording import status as status_of_wording
from takeback.surfaces.wording.paths import all_inside, entry
from takeback.surfaces.wording.text import age, moment

from . import LOOKS

if TYPE_CHECKING:
    from takeback.surfaces.mcp.server import Server

Offset = Annotated[int, Field(ge=0, description="Where to go on: the next_offset of the answer before")]
Limit = Annotated[int, Field(ge=1, le=LONGEST_LIST, description="How much to answer with at most")]
Stat = Annotated[bool, Field(description="One line per file, no contents")]


def add(server: Server) -> None:
    server.offer(status_, "What changed", LOOKS)
    server.offer(diff, "Changes line by line", LOOKS)
    server.offer(log_, "The history", LOOKS)
    server.offer(show_, "One entry in full", LOOKS)
    server.offer(effects, "Effects outside the files", LOOKS)


def status_(ctx: Ctx, cwd: Cwd = "") -> CallToolResult:
    """What changed since the newest named checkpoint and by whom, what is not covered, which mail is held or due, and
    whether a take-back was interrupted. Changes nothing."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        found = workspace.status()
        page = Page()
        page.page(map(for_agents, status_of_wording.lines(page, workspace, found, False)))
        if found.interrupted:
            who = "a person finishes it with takeback resume, or goes back with takeback resume --abort"
            page.warn(f"{found.interrupted}: {who if found.stopped else 'the next take-back finishes it first'}")
        if found.under_way:
            page.warn(f"{found.under_way}; what changed is in between until that ends")
        return answer(page, json_shapes.status(found))


def diff(
    ctx: Ctx,
    a: Annotated[
        str, Field(description="A checkpoint: number, label or how its id begins. Default: newest named")
    ] = "",
    b: Annotated[str, Field(description="Another checkpoint. Default: the project as it is now")] = "",
    paths: Annotated[list[str], Field(description="Only these files or folders")] = [],  # noqa: B006
    stat: Stat = False,
    offset: Offset = 0,
    limit: Limit = 400,
    cwd: Cwd = "",
) -> CallToolResult:
    """The changes from a checkpoint to now, or to another checkpoint, line by line. A long diff is cut: ask for the
    rest by offset, or for single paths. Contents of secret-named files and tokens are masked."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        a, b = (entry(call.here, workspace, name) for name in (a, b))
        found = workspace.diff(a, b, all_inside(call.here, workspace, paths))
    files = masked(found.files)
    page = Page()
    head = " → ".join(diffs.ends(found))
    page.say(head if files else f"{head}: no difference")
    cut = _files(page, files, stat, offset, limit)
    following = more(page, "files" if stat else "lines", offset, limit, cut.total)
    return answer(
        page,
        {
            "a": json_shapes.checkpoint(found.a),
            "b": None if found.b is None else json_shapes.checkpoint(found.b),
            "files": [json_shapes.file_diff(f) for f in cut.files],
            "added": found.added,
            "removed": found.removed,
            "next_offset": following,
            "total": cut.total,
        },
    )


def log_(
    ctx: Ctx,
    filter: Annotated[
        str, Field(description="Terms that must all match: actor:NAME turn:ID path:SRC kind:effect since:2h, words")
    ] = "",
    offset: Offset = 0,
    limit: Limit = 30,
    cwd: Cwd = "",
) -> CallToolResult:
    """Turns of agents, checkpoints, effects and take-backs, newest first. Each has an id by which other tools know
    it; checkpoints have numbers too."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        rows = workspace.log(filter)
        now = workspace.clock()
        shown = rows[offset : offset + limit]
        turns = workspace.turns_of(shown)
    page = Page()
    if shown:
        page.page(log_of_wording.lines(page, shown, now, turns))
    else:
        page.say("nothing in the log matches" if filter or offset else "the log is empty")
    following = more(page, "entries", offset, limit, len(rows))
    return answer(page, {"rows": [json_shapes.log_row(r) for r in shown], "next_offset": following, "total": len(rows)})


def show_(
    ctx: Ctx,
    id: Annotated[str, Field(description="A checkpoint's number or label, how an id begins, or words of a prompt")],
    stat: Stat = False,
    offset: Offset = 0,
    limit: Limit = 400,
    cwd: Cwd = "",
) -> CallToolResult:
    """One entry of the log in full: the tree of a checkpoint, the changes of an effect, what a take-back took and
    kept, the prompt and calls of an agent's turn, the changes of one call."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        found = workspace.show(entry(call.here, workspace, id))
        found = found._replace(files=masked(found.files))
        page = Page(workspace.root)
        when = f"{moment(found.row.at)}, {age(workspace.clock() - found.row.at)}"
        cut = windowed(found.files, offset, limit) if not found.tree else Window((), 0)
        tree = found.tree[offset : offset + limit]
        total = len(found.tree) or cut.total
        page.tell(entry_of_wording.lines(page, found._replace(files=cut.files, tree=tree), when, stat))
        following = more(page, "paths" if found.tree else "lines", offset, limit, total)
        shape = entry_of_wording.shape(found._replace(files=cut.files, tree=tree))
    return answer(page, {**shape, "next_offset": following, "total": total})


def effects(
    ctx: Ctx,
    filter: Annotated[
        str, Field(description="Terms that must all match: state:live,unknown domain:http since:2h")
    ] = "",
    offset: Offset = 0,
    limit: Limit = 50,
    cwd: Cwd = "",
) -> CallToolResult:
    """The ledger of what was done outside the files (requests, commands, mail), newest first: each effect with its
    state and what would take it back, and each attempt to take one back."""
    call = call_of(ctx, cwd)
    with call.open() as workspace:
        wanted, now = filters.parse(filter), workspace.clock()
        found = [entry for entry in ledger.entries(workspace) if wanted.matches(entry, now)]
        shown = found[offset : offset + limit]
        shape = list(ledger.shaped(workspace, shown))
    page = Page()
    if shown:
        page.page(ledger.lines(page, shown, now))
    else:
        page.say(
            "no effect outside the files matches" if filter or offset else "nothing was recorded outside the files"
        )
    following = more(page, "effects", offset, limit, len(found))
    return answer(page, {"effects": shape, "next_offset": following, "total": len(found)})


def masked(files: Sequence[FileDiff]) -> tuple[FileDiff, ...]:
    """Without what an agent should not read: contents of secret-named files, and tokens."""
    return tuple(map(mask_file, files))


def _files(page: Page, files: Sequence[FileDiff], stat: bool, offset: int, limit: int) -> Window:
    cut = windowed([f._replace(hunks=()) for f in files] if stat else files, offset, limit)
    page.page((diffs.stat_lines if stat else diffs.lines)(page, cut.files))
    if files:
        page.say(diffs.totals(page, files))
    return cut
