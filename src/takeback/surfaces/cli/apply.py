"""apply: a saved plan, exactly as seen."""

from __future__ import annotations

from . import takebacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from .context import Context
    from .parsing import Parser


def add(parser: Parser) -> None:
    parser.synopsis = "PLAN"
    parser.about = (
        "Carries out a saved plan. If the same request would do something else by now, the plan is\n"
        "stale: nothing is changed, the steps that differ are shown, exit 4."
    )
    parser.takes("PLAN", "plan", help="how the plan's id begins")
    parser.takes("--all-steps", "--all-steps", action="store_true", help="show every step, however many")
    parser.examples = [("takeback apply nmlk", "show it, ask, do it"), ("takeback apply nmlk --yes", "do it")]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        if context.yes or workspace.interrupted():
            return takebacks.apply(context, workspace, args.plan)
        plan = workspace.saved_plan(args.plan)
        if takebacks.nothing(plan):
            return takebacks.apply(context, workspace, plan)
        if not context.asks:
            return takebacks.needs_yes(context, workspace, plan, args.all_steps)
        return takebacks.ask(context, workspace, plan, all_steps=args.all_steps)
