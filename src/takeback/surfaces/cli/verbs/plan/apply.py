"""apply: a saved plan, exactly as seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded, CredentialNeeded, Stale
from takeback.surfaces.cli import approving, take_back_flow, unfinished

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "PLAN"
    parser.about = (
        "Carries out a saved plan, which was seen when it was made, so it does not ask. What it does\n"
        "outside the files a person has approved before (takeback approve), for once. If the same\n"
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
        approving.name_asking(context, workspace)
        if context.asks and workspace.interrupted():
            return unfinished.ask(context, workspace)
        try:
            return take_back_flow.at_once(context, workspace, lambda: workspace.apply(args.plan), args.all_steps)
        except (Stale, CredentialNeeded):
            raise
        except ApprovalNeeded as error:
            how = f"a person looks at it and types yes: takeback approve {args.plan}; then apply it again"
            raise ApprovalNeeded(error.message, how) from None
