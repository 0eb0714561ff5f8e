"""redo: undo an undo, a rollback, a revert or a restore."""

from __future__ import annotations

from . import takebacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .context import Context
    from .parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[N]"
    parser.about = (
        "Brings back what the newest undo, rollback, revert or restore took, byte for byte, also\n"
        "after a restart and after new work: what changed since then is kept and named."
    )
    parser.takes("N", "n", nargs="*", help="how many take-backs; one, if not given")
    takebacks.add_options(parser, whose=False)
    parser.examples = [
        ("takeback redo", "the last take-back did not help: bring it all back"),
        ("takeback redo 2 --yes", "the last two, without asking"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        wanted = takebacks.asked("redo", takebacks.one_at_most("redo", args.n), args)
        return takebacks.take_back(context, workspace, wanted)
