"""From what an agent asks to what is done: files at once, what acts outside them after a person's yes.

take back ─► needs nobody ─► done
         └─► outside steps that policy does not allow ─► saved plan ─► asked ─► yes: approved and applied, once
                                                                           └─► no, or nobody to ask: nothing done
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mcp_types import CallToolResult, InputRequiredResult

from takeback.apply import results
from takeback.errors import ApprovalNeeded, CredentialNeeded, Stale
from takeback.model.effects import Outcome, Plan, Step
from takeback.model.outside import Credential
from takeback.surfaces.wording import (
    effects_outside,
    json_shapes,
    json_thread_shapes,
    outcomes,
    plans,
    take_backs,
    threads_in_plans,
)
from takeback.surfaces.wording.text import counted, safe
from takeback.workspace import Workspace

from . import approvals
from .answers import Page, answer
from .approvals import Question
from .calls import Call, Ctx, in_thread


class Proposal(NamedTuple):
    """A saved plan that waits for a person."""

    plan: Plan
    credentials: tuple[Credential, ...]
    questions: tuple[Question, ...]
    text: str
    shape: dict[str, Any]


async def carry_out(
    ctx: Ctx, call: Call, work: Callable[[Workspace], Outcome], again: Callable[[Workspace], Plan]
) -> CallToolResult | InputRequiredResult:
    """Does the work, or has a person asked for the plan that `again` saves of it."""
    asked_before = approvals.subject_of(ctx)

    def begin() -> CallToolResult | Proposal:
        with call.open() as workspace:
            if asked_before:
                return _proposal(workspace, workspace.saved_plan(asked_before))
            try:
                return told(workspace, work(workspace))
            except (Stale, CredentialNeeded):
                raise
            except ApprovalNeeded:
                return _proposal(workspace, again(workspace))

    found = await in_thread(call, begin)
    return found if isinstance(found, CallToolResult) else await _settle(ctx, call, found)


async def _settle(ctx: Ctx, call: Call, proposal: Proposal) -> CallToolResult | InputRequiredResult:
    said = await approvals.ask(ctx, proposal.plan.id, proposal.questions)
    if isinstance(said, InputRequiredResult):
        return said
    if said is None:
        return _for_a_person(proposal)
    if not said:
        shape = {**proposal.shape, "applied": False, "approved": False}
        return answer("Nothing was done: a person said no, or gave no answer.", shape)

    def go_on() -> CallToolResult:
        with call.open() as workspace:
            plan = workspace.saved_plan(proposal.plan.id)  # refused if it is another one by now
            workspace.approve(plan, proposal.credentials)
            return told(workspace, workspace.apply(plan.id))

    return await in_thread(call, go_on)


def _proposal(workspace: Workspace, plan: Plan) -> Proposal:
    steps, unbound = workspace.unapproved(plan)
    page = Page(workspace.root)
    page.tell(plans.lines(page, workspace, plan))
    questions = _questions(workspace, plan, steps, unbound)
    return Proposal(plan, tuple(unbound), tuple(questions), str(page), planned(workspace, plan))


def _questions(
    workspace: Workspace, plan: Plan, steps: Sequence[Step], unbound: Sequence[Credential]
) -> list[Question]:
    history, describe = workspace.history(), effects_outside.describer(workspace)
    lines = []
    for number, step in enumerate(plan.outside, 1):
        act = history.acts[step.path.decode()]
        lines.append(f"{number}. {safe(describe(act))}")
        lines.append(f"   takes back: {safe(act.summary)}; recorded {effects_outside.origin(act, workspace.clock())}")
    files = len(plan.taken) - len(plan.outside)
    beside = f" It also takes back {counted(files, 'path')} of the project." if files else ""
    head = f"takeback {plan.request.verb} would act outside the files: {counted(len(plan.outside), 'step')}.{beside}"
    found = [Question("steps", "\n".join([head, *lines]))] if steps or not unbound else []
    for number, (name, origin) in enumerate(unbound, 1):
        text = (
            f"takeback would send the value of {safe(name)} to {safe(origin)}. "
            "No setting binds it to that place. Send it there, this once?"
        )
        found.append(Question(f"credential_{number}", text))
    return found


def _for_a_person(proposal: Proposal) -> CallToolResult:
    id = proposal.plan.id
    run = [f"takeback approve {id}", f"takeback apply {id}"]
    text = [
        proposal.text,
        f"Nothing was done: this needs a person's yes, and this client cannot ask for one. It is saved as plan {id}.",
        f"A person runs, on a terminal in {safe(proposal.shape['root'])}: {run[0]}, then {run[1]}",
    ]
    if len(proposal.plan.outside) < len(proposal.plan.taken):
        text.append('The files alone can be taken back now: call this again with only=["files"].')
    return answer("\n".join(text), {**proposal.shape, "applied": False, "approval": {"needed": True, "run": run}})


def planned(workspace: Workspace, plan: Plan) -> dict[str, Any]:
    shape = json_shapes.plan(plan, workspace.history(), effects_outside.describer(workspace))
    return {"plan": shape, "root": str(workspace.root), "applied": False}


def shown(workspace: Workspace, plan: Plan) -> CallToolResult:
    """A plan to look at; nothing is done."""
    page = Page(workspace.root)
    if not plan.steps or plan.idle:
        page.say(take_backs.nothing_said(plan))
        for line in plans.left_lines(plan, workspace.history(), page.typed):
            page.hint(line)
    else:
        page.tell(plans.lines(page, workspace, plan))
    for line in threads_in_plans.lines(plan):
        page.hint(line)
    if plan.id:
        page.hint(f"saved as plan {plan.id}; takeback_apply does exactly this")
    return answer(page, planned(workspace, plan))


def told(workspace: Workspace, outcome: Outcome) -> CallToolResult:
    """What came of it."""
    page = Page(workspace.root)
    if outcomes.is_nothing(outcome):
        page.say(take_backs.nothing_came(outcome, workspace.history()))
        for line in threads_in_plans.lines(outcome.plan):
            page.hint(line)
    else:
        outcomes.report(page, workspace, outcome)
    history = workspace.history()
    for line in (*plans.left_lines(outcome.plan, history, page.typed), *plans.running_lines(outcome.plan, history)):
        page.hint(line)
    shape = json_shapes.outcome(outcome, workspace.history(), effects_outside.describer(workspace))
    shape |= {**json_thread_shapes.rolled_back(workspace, outcome), "whole": outcome.whole}
    if outcome.is_refused:
        why = results.sentence(results.named(workspace, outcome))
        shape["error"] = {"message": why, "hint": "settle what keeps it, then ask for it again", "code": 3}
    return answer(page, shape, failed=outcome.is_refused)
