"""restore: single files or folders from any checkpoint, in place or elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.model.effects import DONE, KEPT, text
from takeback.surfaces.cli import take_back_flow
from takeback.surfaces.cli.captured import with_progress
from takeback.surfaces.wording import json_shapes, paths
from takeback.surfaces.wording.text import counted, listed, safe

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "CHECKPOINT|TURN|TRACK PATH… [--to DIR]"
    parser.about = (
        "Brings files or folders back as a checkpoint has them, whoever changed them since; or as they\n"
        "were when `track` captured them, by the id that it printed. What is there now is stored first.\n"
        "What was not there then goes only if it is named itself, a folder with all in it; what is new\n"
        "in a folder that was there stays, and is named with the command that takes it away.\n"
        "With --to they are put, with their relative paths, into DIR, which is made if missing, and the\n"
        "project stays as it is."
    )
    parser.takes(
        "CHECKPOINT|TURN|TRACK", "checkpoint", nargs="?", default="", help="as for rollback, or what `track` printed"
    )
    parser.takes("PATH…", "path", nargs="*", help="files or folders of the project; . is all of it")
    parser.takes("--to DIR", "--to", help="put them there instead of in their place")
    take_back_flow.add_options(parser, whose=False, merging=False)
    parser.examples = [
        ("takeback restore 3 src/auth.py", "one file as it was in checkpoint 3"),
        ("takeback restore start docs/ --yes", "a folder, without asking"),
        ("takeback restore start . --to /tmp/old", "the whole project, somewhere else"),
    ]


def run(context: Context, args: Namespace) -> int:
    elsewhere = args.to is not None
    with context.open(when_off=elsewhere) as workspace:
        given = args.path
        if not args.checkpoint or (elsewhere and not given):
            raise UsageError("restore needs a checkpoint and at least one path", "takeback restore CHECKPOINT PATH…")
        paths.entry(context, workspace, args.checkpoint)
        found = paths.all_inside(context, workspace, given)
        if elsewhere:
            return _export(context, workspace, args, found)
        wanted = take_back_flow.asked("restore", (args.checkpoint, *found), args)
        return take_back_flow.take_back(context, workspace, wanted)


def _export(context: Context, workspace: Workspace, args: Namespace, found: list[str]) -> int:
    if not args.to:
        raise UsageError("--to needs a folder", "takeback restore CHECKPOINT PATH… --to DIR")
    if args.dry_run:
        raise UsageError("--to has no plan to print", "it never touches the project; leave --dry-run out")
    outcome = with_progress(
        context,
        workspace,
        lambda: workspace.restore(args.checkpoint, *found, to=Path(args.to), force=args.force),
        "wrote",
    )
    if context.json:
        context.terminal.json(json_shapes.outcome(outcome, workspace.history()))
        return 0 if outcome.whole else 3
    terminal = context.terminal
    done = [text(r.path) for r in outcome.results if r.result == DONE]
    where = safe(args.to)
    terminal.say(
        f"wrote {counted(len(done), 'path')} into {where}: {listed(done)}" if done else f"wrote nothing into {where}"
    )
    for result in outcome.results:
        if result.result == KEPT:
            terminal.warn(f"  kept {safe(text(result.path))}, which is there already; replace it with --force")
        elif result.result != DONE:
            terminal.warn(f"  failed: {safe(text(result.path))}: {safe(result.note)}")
    return 0 if outcome.whole else 3
