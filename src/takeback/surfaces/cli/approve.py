"""approve: a person's yes to a saved plan."""

from __future__ import annotations

from ...errors import ApprovalNeeded
from . import approving, plans
from .terminal import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .context import Context
    from .parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "PLAN"
    parser.about = (
        "Shows a saved plan and asks, by a typed yes, for what it does outside the files, and for each\n"
        "credential that would go where no setting binds it. `takeback apply PLAN` then runs exactly that\n"
        "plan, once, from anywhere. It needs a terminal, and is refused where an agent is at work: an\n"
        "agent plans, a person approves. --yes does not answer for you."
    )
    parser.takes("PLAN", "plan", help="how the plan's id begins")
    parser.examples = [
        ("takeback plan rollback", "an agent, or you: prints the plan and its id"),
        ("takeback approve nmlk", "you: look at it, and type yes"),
        ("takeback apply nmlk", "anybody, once"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        approving.only_a_person(context, "approving a plan", workspace)
        if not context.terminal.interactive:
            raise ApprovalNeeded(
                "approving needs a person at a terminal; nothing was approved", "run it in a terminal, by hand"
            )
        plan = workspace.saved_plan(args.plan)
        terminal = context.terminal
        for line in plans.lines(terminal, workspace, plan, all_steps=True):
            terminal.write(line)
        if not any(workspace.unapproved(plan)):
            terminal.say(f"this plan needs no approval: takeback apply {plan.id[:8]}")
            return 0
        credentials = approving.outside(context, workspace, plan)
        if credentials is None:
            terminal.say("not approved; nothing was changed")
            return 4
        approval = workspace.approve(plan, credentials)
        if context.json:
            pairs = [{"name": name, "origin": origin} for name, origin in approval.credentials]
            shape = {"id": approval.id, "plan": plan.id, "hash": approval.hash, "credentials": pairs}
            terminal.json({"approval": shape})
        else:
            terminal.say(f"approved, for once: plan {safe(plan.id)}")
            terminal.hint(f"do exactly this: takeback apply {plan.id[:8]}")
        return 0
