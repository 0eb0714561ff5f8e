"""prune: forgets old history and frees its space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded, UsageError
from takeback.surfaces.cli.approving import approved, only_a_person
from takeback.surfaces.cli.captured import over_budget, with_progress
from takeback.surfaces.wording import paths
from takeback.surfaces.wording.text import counted, listed, safe
from takeback.text.units import format_size, parse_duration, parse_size

from . import doctor_orphans

if TYPE_CHECKING:
    from typing import Any

    from takeback.care.prune import Pruned
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "[--keep N] [--older-than 30d] [--max-bytes 5GB]"
    parser.about = (
        "Forgets history: the oldest checkpoints go, with what only they hold. Without options it\n"
        "prunes to the budget in your configuration, of each thread too, as takeback does by itself;\n"
        "by itself it spares what is younger than a day. Pinned checkpoints and the last one stay,\n"
        "except with --all: that empties the workspace, pinned ones included, and the next checkpoint\n"
        "starts anew. Pruning is journaled, and verify still passes. Refused where an agent is at work:\n"
        "it cannot lessen its own undo. States of threads alone: takeback thread prune."
    )
    parser.takes("--keep N", "--keep", help="keep the newest N checkpoints")
    parser.takes("--older-than AGE", "--older-than", help="forget what is older, such as 30d")
    parser.takes("--max-bytes SIZE", "--max-bytes", help="forget until the store fits, such as 5GB")
    parser.takes("--all", "--all", dest="everything", action="store_true", help="forget everything, pinned ones too")
    parser.takes("--orphans", "--orphans", action="store_true", help="remove the stores of roots that are gone")
    parser.takes("--path P", "--path", help="take a captured secret out of every checkpoint")
    parser.takes("--dry-run", "--dry-run", action="store_true", help="say what would go, change nothing")
    parser.examples = [
        ("takeback prune --keep 20 --dry-run", "what would go"),
        ("takeback prune --older-than 30d --yes", ""),
        ("takeback prune --path .env", "a secret that should not have been captured"),
        ("takeback prune --orphans", "stores of projects you deleted"),
    ]


def run(context: Context, args: Namespace) -> int:
    ways = [bool(args.everything), bool(args.orphans), args.path is not None]
    sized = any(x is not None for x in (args.keep, args.older_than, args.max_bytes))
    if sum(ways) + sized > 1:
        raise UsageError("--all, --orphans, --path and sizes are different things", "use one of them at a time")
    if args.orphans:
        if not args.dry_run:
            only_a_person(context, "pruning")
        return doctor_orphans.prune(context, args.dry_run)
    asked = _asked(args)
    with context.open() as workspace:
        if not args.dry_run:
            only_a_person(context, "pruning", workspace)
        if args.path is not None:
            asked["path"] = paths.inside(context, workspace, args.path)
        elif not args.everything and not sized:
            settings = workspace.settings
            asked = {"keep": settings.keep, "older_than": settings.max_age, "max_bytes": settings.max_bytes}
            asked["threads"] = True
        planned = workspace.prune(**{**asked, "dry_run": True})
        empty = not planned.rows and not planned.path_blobs and not planned.states
        if args.dry_run or empty:
            _tell(context, planned, empty, asked)
            return 0
        if not context.yes and not context.json:
            _tell(context, planned, empty, asked)
        if not approved_or_shown(context, planned):
            return 4
        size = workspace.store.blobs.size()
        done = with_progress(context, workspace, lambda: workspace.prune(**asked), "looked through", size, "bytes")
        _tell(context, done, False, asked)
        return _still_there(context, workspace, asked)


def approved_or_shown(context: Context, planned: Pruned) -> bool:
    try:
        return approved(context, "Forget this for good?")
    except ApprovalNeeded as error:
        if context.json:
            told = {"message": error.message, "hint": error.hint, "code": 4}
            context.terminal.json({"prune": _shape(planned), "error": told})
            return False
        raise


def _asked(args: Namespace) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if args.everything:
        asked["everything"] = True
    if args.keep is not None:
        if not args.keep.isdecimal() or int(args.keep) < 1:
            raise UsageError(f"--keep needs a whole number from 1 up, not {args.keep!r}", "--all empties the workspace")
        asked["keep"] = int(args.keep)
    if args.older_than is not None:
        asked["older_than"] = parse_duration(args.older_than)
    if args.max_bytes is not None:
        asked["max_bytes"] = parse_size(args.max_bytes)
    return asked


def _tell(context: Context, pruned: Pruned, empty: bool, asked: dict[str, Any]) -> None:
    if context.json:
        context.terminal.json({"prune": _shape(pruned)})
        return
    if pruned.over:
        over_budget(context, pruned.why_over)
    if empty:
        context.terminal.say("nothing to prune" + (": all of it has to stay" if pruned.over else ""))
        return
    would = pruned.dry_run
    if asked.get("path"):
        what = f"{counted(pruned.path_blobs, 'version')} of {safe(asked['path'])}"
    else:
        ids = listed([id[:8] for id in pruned.checkpoints], 6)
        what = counted(len(pruned.checkpoints), "checkpoint") + (f" ({ids})" if ids else "")
        if pruned.states:
            told = listed([f"{safe(name)} ({n:,})" for name, n in pruned.states], 6)
            what += f", {counted(sum(n for _, n in pruned.states), 'state checkpoint')} of threads {told}"
        what += f" and {counted(pruned.rows - len(pruned.checkpoints), 'other entry')}"
    freed = f", which {'would free' if would else 'freed'} {format_size(pruned.freed)}" if pruned.freed else ""
    context.terminal.say(f"{'would forget' if would else 'forgot'} {what}{freed}")
    if pruned.note:
        context.terminal.say(f"  {safe(pruned.note)}: {listed(pruned.also, 20)}")


def _still_there(context: Context, workspace: Workspace, asked: dict[str, Any]) -> int:
    """A secret that is still in the project comes back with the next checkpoint: says so."""
    path = asked.get("path")
    if path and (workspace.root / path).exists():
        context.terminal.warn(
            f"{safe(path)} is still in the project: if it is covered, the next checkpoint captures it again"
        )
        context.terminal.warn(f"  → exclude it first: add {safe(path)} to checkpoints.exclude in your configuration")
    return 0


def _shape(pruned: Pruned) -> dict[str, object]:
    return {
        "checkpoints": list(pruned.checkpoints),
        "rows": pruned.rows,
        "freed": pruned.freed,
        "path_blobs": pruned.path_blobs,
        "dry_run": pruned.dry_run,
        "note": pruned.note,
        "also": list(pruned.also),
        "over": pruned.over,
        "why_over": pruned.why_over,
        "states": [{"thread": thread, "states": n} for thread, n in pruned.states],
    }
