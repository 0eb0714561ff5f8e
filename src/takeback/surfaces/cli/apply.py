"""apply: a saved plan, exactly as seen."""

from __future__ import annotations

from . import takebacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .context import Context
    from .parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "PLAN"
    parser.about = (
        "Carries out a saved plan, which was seen when it was made, so it does not ask. If the same\n"
        "request would do something else by now, the plan is stale: nothing is changed, the steps\n"
        "that differ are shown, exit 4."
    )
    parser.takes("PLAN", "plan", help="how the plan's id begins")
    parser.takes("--all-steps", "--all-steps", action="store_true", help="show every step, however many")
    parser.examples = [
        ("takeback plan rollback", "see it first; prints the id"),
        ("takeback apply nmlk", "then do exactly that"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        return takebacks.at_once(context, workspace, lambda: workspace.apply(args.plan), args.all_steps)
