"""compensate: what stands outside the files, taken back, whatever the checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli import take_back_flow
from takeback.surfaces.wording import paths

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[--execute] [--to CHECKPOINT]"
    parser.about = (
        "The part of a take-back that lies outside the files, alone: every live effect there, newest\n"
        "first, whatever the checkpoints; files stay as they are. It prints what it would send or run\n"
        "and does nothing, until --execute: then it asks, by a typed yes, or runs what your policy\n"
        "allows. Without a terminal it saves the plan for a person to approve, exit 4."
    )
    parser.takes("--execute", "--execute", action="store_true", help="do it, after a typed yes")
    parser.takes("--to CHECKPOINT", "--to", help="only what was done since then")
    parser.takes(
        "--actor NAME", "--actor", action="append", default=None, help="only what NAME did; may be given several times"
    )
    take_back_flow.add_scope(parser)
    parser.takes("--all-steps", "--all-steps", action="store_true", help="show every step, in full")
    parser.examples = [
        ("takeback compensate", "what would be sent, and nothing is"),
        ("takeback compensate --execute", "do it, after a typed yes"),
        ("takeback compensate --only http --to start", "requests since a checkpoint"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        args.dry_run = not args.execute
        words = (paths.entry(context, workspace, args.to),) if args.to else ()
        wanted = take_back_flow.within(workspace, take_back_flow.asked("compensate", words, args), args)
        code = take_back_flow.take_back(context, workspace, wanted)
        if args.dry_run and not context.json and any(a.shown_state in ("live", "held") for a in workspace.effects()):
            context.terminal.hint("nothing was sent; do it: takeback compensate --execute")
        return code
