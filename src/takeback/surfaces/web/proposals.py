"""A plan as a page, in the words of the command line.

A plan is made by POST, kept under its hash while we run, and applied by POST of that very hash. The core plans again
before it applies, and refuses if anything would be done that was not shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from takeback.errors import Stale, TakebackError
from takeback.model.effects import DRIFTED, STATES, Outcome, Plan, Step
from takeback.model.outside import Credential
from takeback.privacy import masking
from takeback.show.views import FileDiff
from takeback.surfaces.wording import approvals, effects_outside, json_shapes, plans, take_backs, threads_in_plans
from takeback.surfaces.wording.html import Child, Markup, lines, tag, url
from takeback.surfaces.wording.page import Page
from takeback.surfaces.wording.plans import Shown
from takeback.surfaces.wording.take_backs import Asked
from takeback.workspace import Workspace

from . import sides, steps
from .forms import Filled, Forms, group, must_say_yes, one, typed_yes
from .listing import Place, way_back

_ID = re.compile("[a-z]{32}")


class Proposal(NamedTuple):
    """A plan, and all that is said of it: as it was when it was made."""

    plan: Plan
    asked: Asked
    rows: tuple[Shown, ...]
    hidden: int
    said: tuple[str, ...]  # after the steps
    files: tuple[FileDiff, ...]
    masked: tuple[str, ...]
    outside: str  # every step outside the files, in full
    questions: tuple[str, ...]  # each is answered by typing yes
    unapproved: tuple[Step, ...]  # what the first of them lists
    credentials: tuple[Credential, ...]
    heading: str
    shape: Mapping[str, Any]


def propose(workspace: Workspace, asked: Asked) -> Proposal:
    plan = workspace.plan(asked.verb, *asked.words, **asked.options)
    history = workspace.history()
    rows, hidden = steps.listed(workspace, plan)
    said = [*plans.left_lines(plan, history), *plans.unrecorded_lines(workspace, plan), *threads_in_plans.lines(plan)]
    said += plans.running_lines(plan, history)
    found = plans.diff_of(workspace, plan)
    files = [masking.mask_file(file) for file in found]
    asked_for, unbound = workspace.unapproved(plan)
    listed = Page()
    if asked_for:
        approvals.listing(listed, workspace, asked_for)
    questions = [approvals.question(len(asked_for))] if asked_for else []
    questions += [f"{approvals.unbound_said(each)} {approvals.credential_question(each)}" for each in unbound]
    heading = plans.heading(plan, history) if plan.steps and not plan.idle else take_backs.nothing_said(plan)
    shape = json_shapes.plan(plan, history, effects_outside.describer(workspace))
    return Proposal(
        plan,
        asked,
        rows,
        hidden,
        tuple(said),
        tuple(files),
        tuple(was.path for was, file in zip(found, files) if was != file),
        str(listed),
        tuple(questions),
        tuple(asked_for),
        tuple(unbound),
        heading,
        shape,
    )


def otherwise(asked: Asked, filled: Filled) -> Asked:
    """The same, with what was asked for in addition."""
    for option in ("merge", "force", "everything", "state"):
        if one(filled, option):
            asked = asked._replace(**{option: True})  # type: ignore[arg-type]
    if one(filled, "keep"):
        asked = asked._replace(also=())
    elif kinds := one(filled, "also"):
        asked = asked._replace(also=tuple(sorted({*asked.also, *kinds.split(",")})))
    return asked._replace(only=("files",)) if one(filled, "only") == "files" else asked


def carry_out(workspace: Workspace, proposal: Proposal, filled: Filled) -> Outcome:
    """Applies exactly what was shown: the hash is the one on the page, and each question was answered by a yes."""
    plan = proposal.plan
    if one(filled, "hash") != plan.hash:
        raise Stale(
            "the plan that was confirmed is another one; nothing was changed", "look at it again, then apply it"
        )
    must_say_yes(filled, proposal.questions)
    if workspace.interrupted():
        raise TakebackError(
            "a take-back was interrupted, and the tree may be in between; nothing was changed",
            "finish it with takeback resume, or go back with takeback resume --abort",
        )
    asked_for, unbound = workspace.unapproved(plan)
    new = any(step not in proposal.unapproved for step in asked_for)
    if new or any(credential not in proposal.credentials for credential in unbound):
        raise Stale("what has to be asked for has changed meanwhile; nothing was changed", "plan it again")
    if asked_for or unbound:
        workspace.approve(plan, proposal.credentials)
    return workspace.apply(plan)


def plan_page(proposal: Proposal, forms: Forms, place: Place) -> list[Child]:
    plan = proposal.plan
    changes = plan.steps and not plan.idle
    body: list[Child] = [way_back(place), tag("h2", proposal.heading, id="heading")]
    if changes:
        body.append(steps.table(proposal.rows, proposal.hidden))
        body.append(tag("p", plans.totals(plan), class_="totals"))
    body += [tag("p", line, class_="note") for line in proposal.said]
    body.append(_confirmation(proposal, forms))
    body.append(_otherwise(proposal, forms))
    if proposal.files:
        body.append(
            tag(
                "section",
                tag("h3", "What applying it changes"),
                *sides.files(proposal.files, {}),
                sides.masked_note(proposal.masked),
                class_="changes",
            )
        )
    command = tag("p", "The same in a terminal: ", tag("code", _command(proposal.asked)), class_="note")
    raw = tag("p", tag("a", "all of it as JSON", href=url("plan", f"{plan.hash}.json")))
    return [*body, tag("footer", command, raw, class_="about")]


def _command(asked: Asked) -> str:
    """As one would type it; of many ids, the first ones."""
    words = [str(word)[:8] if _ID.fullmatch(str(word)) else str(word) for word in asked.words]
    return asked._replace(words=tuple(words[:4])).command + " …" * (len(words) > 4)


def _confirmation(proposal: Proposal, forms: Forms) -> Markup | None:
    plan = proposal.plan
    moves_on = plan.request.verb in ("undo", "redo") and any(s.domain in STATES for s in plan.steps)
    if not plan.steps and not plan.idle:
        return None
    if not plan.taken and not moves_on and not plan.idle:
        return tag("p", "All of it is kept: there is nothing to apply.", class_="note")
    text = (
        "Step over it"
        if plan.idle
        else f"Apply {'this step' if len(plan.taken) == 1 else f'these {len(plan.taken):,} steps'}"
        + (f", keep {plans.asked_said(plan)}" if plan.asks else "")
    )
    fields: list[Child] = []
    if proposal.outside:
        fields.append(tag("pre", lines(proposal.outside), tabindex=0, aria_label="Steps outside the files"))
    fields += [typed_yes(question, number) for number, question in enumerate(proposal.questions)]
    fields.append(
        tag("p", "Confirms plan ", tag("code", plan.hash[:12]), ", exactly as it stands here.", class_="note")
    )
    return forms.confirm(text, url("plan", plan.hash, "apply"), fields, "Applying …", hash=plan.hash)


def _otherwise(proposal: Proposal, forms: Forms) -> Markup | None:
    """The same request, asked another way."""
    plan, asked = proposal.plan, proposal.asked
    ways: list[Child] = []
    again = {"again": plan.hash}
    if any(step.merges for step in plan.steps) and not asked.merge:
        ways.append(forms.plan("Merge what others changed since…", **again, merge="1"))
    if any(step.verdict == DRIFTED for step in plan.steps) and not asked.force:
        ways.append(forms.plan("Take what others changed since, too…", **again, force="1"))
    if plan.asks:
        ways.append(forms.plan(f"Take {plans.asked_said(plan)} too…", **again, also=",".join(plan.asks)))
    elif asked.also:
        ways.append(forms.plan(f"Keep {plans.kinds_said(asked.also)}…", **again, keep="1"))
    elif plan.left and not asked.everything and asked.verb in ("undo", "rollback"):
        ways.append(forms.plan("Others' work too…", **again, everything="1"))
    if plan.outside and len(plan.outside) < len(plan.taken):
        ways.append(forms.plan("Only the files…", **again, only="files"))
    if plan.distance.state and not asked.state:
        ways.append(forms.plan("Threads too…", **again, state="1"))
    return group("Or otherwise", *ways)
