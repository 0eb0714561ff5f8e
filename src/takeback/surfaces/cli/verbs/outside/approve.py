"""approve: a person's yes to a saved plan, or to a call of an agent that was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded
from takeback.surfaces.cli import approving
from takeback.surfaces.wording import json_shapes, plans
from takeback.surfaces.wording.text import age, counted, safe

if TYPE_CHECKING:
    from takeback.model.outside import Stopped
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


_DAY = 86_400.0  # seconds for which a call that was stopped is worth a look
_MOST = 20  # saved plans that are listed, the newest


def add(parser: Parser) -> None:
    parser.synopsis = "[PLAN | CALL]"
    parser.about = (
        "Shows a saved plan and asks, by a typed yes, for what it does outside the files, and for each\n"
        "credential that would go where no setting binds it. `takeback apply PLAN` then runs exactly that\n"
        "plan, once, from anywhere. Given a call of an agent that was stopped, it lets that very call pass\n"
        "once, in that session. It needs a terminal, and is refused where an agent is at work: an agent\n"
        "plans, a person approves. --yes does not answer for you. Without an id it lists what waits."
    )
    parser.takes(
        "PLAN", "plan", nargs="?", default="", help="how the plan's id begins, or the call's, as the agent was told it"
    )
    parser.examples = [
        ("takeback approve", "what waits for a yes: saved plans, and calls that were stopped"),
        ("takeback plan rollback", "an agent, or you: prints the plan and its id"),
        ("takeback approve nmlk", "you: look at it, and type yes"),
        ("takeback apply nmlk", "anybody, once"),
        ("takeback approve kxvr", "a call that was stopped: the agent may make it again, once"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        if not args.plan:
            return _list(context, workspace)
        approving.only_a_person(context, "approving", workspace)
        if not context.terminal.interactive:
            raise ApprovalNeeded(
                "approving needs a person at a terminal; nothing was approved", "run it in a terminal, by hand"
            )
        if (call := _stopped(workspace, args.plan)) is not None:
            return _approve_call(context, workspace, call)
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


def _list(context: Context, workspace: Workspace) -> int:
    """What waits for a person, newest first. Looking is anybody's."""
    terminal, now = context.terminal, workspace.clock()
    calls, waiting = _waiting_calls(workspace), workspace.waiting_plans()[:_MOST]
    if context.json:
        shown = [{"id": plan.id, "verb": plan.verb, "outside": plan.outside} for plan in waiting]
        terminal.json({"plans": shown, "calls": [json_shapes.stopped(call) for call in calls]})
        return 0
    if not calls and not waiting:
        terminal.write("nothing waits for an approval")
        return 0
    for plan in waiting:
        what = f"{counted(plan.outside, 'step')} outside the files"
        terminal.write(f"plan {terminal.style(plan.id[:8], 'bold')}  {safe(plan.verb)}: {what}")
    for call in calls:
        was = "asks you about" if call.what == "asked" else "was refused"
        said = f"{safe(call.agent)} {was}: {safe(call.summary)}"
        terminal.write(f"call {terminal.style(call.id[:8], 'bold')}  {age(now - call.at)}  {said}")
    terminal.hint("look at one, and type yes: takeback approve ID; takeback show ID has a call in full")
    return 0


def _waiting_calls(workspace: Workspace) -> list[Stopped]:
    """Those of the last day."""
    since = workspace.clock() - _DAY
    return [call for call in workspace.waiting_calls() if call.at >= since]


def _stopped(workspace: Workspace, name: str) -> Stopped | None:
    """The call of that name; None where a plan has it too, or nothing."""
    if any(id.startswith(name) for id in workspace.history().plans):
        return None
    return workspace.stopped_call(name)


def _approve_call(context: Context, workspace: Workspace, call: Stopped) -> int:
    terminal = context.terminal
    if call.never:
        raise ApprovalNeeded(
            f"{safe(call.summary)!r} is nothing that a person lets an agent do: it would lessen its own undo",
            "do it yourself, in a terminal of your own",
        )
    if not call.command:
        raise ApprovalNeeded(
            f"{safe(call.summary)!r} cannot be shown whole, and what nobody has seen nobody approves",
            "let the agent try again in smaller steps, or run it yourself",
        )
    terminal.write(f"{safe(call.agent)} wanted to run:")
    for line in call.command.split("\n"):
        terminal.write(f"  {terminal.style(safe(line), 'bold')}")
    terminal.write(f"What cannot be taken back ({counted(len(call.risks), 'risk')}):")
    for kind, what, why in call.risks:
        terminal.write(f"  {safe(kind)}: {safe(what)}")
        terminal.write(f"    {safe(why)}")
    if not approving.typed_yes(context, "Type yes to let exactly this pass once, in that session:"):
        terminal.say("not approved; nothing was changed")
        return 4
    approval = workspace.approve_call(call)
    if context.json:
        told = {"id": approval, "call": call.id, "agent": call.agent, "session": call.session}
        terminal.json({"approval": told})
    else:
        terminal.say(f"approved, for once: call {safe(call.id[:8])}")
        terminal.hint("tell the agent to try again: the same call in the same session passes once")
    return 0
