"""redo: undo an undo, a rollback, a revert or a restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli import take_back_flow

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[N]"
    parser.about = (
        "Brings back what the newest undo, rollback, revert or restore took, byte for byte, also\n"
        "after a restart and after new work: what changed since then is kept and named."
    )
    parser.takes("N", "n", nargs="*", help="how many take-backs; one, if not given")
    take_back_flow.add_options(parser, whose=False)
    parser.examples = [
        ("takeback redo", "the last take-back did not help: bring it all back"),
        ("takeback redo 2 --yes", "the last two, without asking"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        wanted = take_back_flow.asked("redo", take_back_flow.one_at_most("redo", args.n), args)
        return take_back_flow.take_back(context, workspace, wanted)
