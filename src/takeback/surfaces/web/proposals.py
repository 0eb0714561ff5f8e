"""A plan as a page, in the words of the command line, and what came of it.

A plan is made by POST, kept under its hash while we run, and applied by POST of that very hash. The core plans again
before it applies, and refuses if anything would be done that was not shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ... import masking
from ...acts import Credential
from ...effects import DRIFTED, STATES, Outcome, Plan, Step
from ...errors import ApprovalNeeded, Stale, TakebackError
from ...typed import NamedTuple
from ...views import FileDiff
from ...workspace import Workspace
from ..cli import acts, approving, outcomes, plans, shapes, states, takebacks, thread_shapes
from ..cli.page import Page
from ..cli.plans import Shown
from ..cli.takebacks import Asked
from ..cli.terminal import counted
from . import sides
from .details import Form
from .html import Child, Markup, lines, tag, url
from .listing import Place

_ID = re.compile("[a-z]{32}")
_MANY = 500  # steps that are listed


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
    history, page = workspace.history(), Page()
    all_steps = len(plan.steps) <= _MANY
    rows, hidden = plans.shown(page, workspace, plan, all_steps) if plan.steps else ([], 0)
    said = [*plans.left_lines(plan, history), *plans.unrecorded_lines(workspace, plan), *states.lines(plan)]
    found = plans.diff_of(workspace, plan)
    files = [masking.mask_file(file) for file in found]
    steps, unbound = workspace.unapproved(plan)
    listed = Page()
    if steps:
        approving.listing(listed, workspace, steps)
    questions = [approving.question(len(steps))] if steps else []
    questions += [f"{approving.unbound_said(each)} {approving.credential_question(each)}" for each in unbound]
    heading = plans.heading(plan, history) if plan.steps and not plan.idle else takebacks.nothing_said(plan)
    shape = shapes.plan(plan, history, acts.describer(workspace))
    return Proposal(
        plan,
        asked,
        tuple(rows),
        hidden,
        tuple(said),
        tuple(files),
        tuple(was.path for was, file in zip(found, files) if was != file),
        str(listed),
        tuple(questions),
        tuple(steps),
        tuple(unbound),
        heading,
        shape,
    )


def carry_out(workspace: Workspace, proposal: Proposal, hash: str, answers: Sequence[str]) -> Outcome:
    """Applies exactly what was shown: the hash is the one on the page, and each question was answered by a yes."""
    plan = proposal.plan
    if hash != plan.hash:
        raise Stale(
            "the plan that was confirmed is another one; nothing was changed", "look at it again, then apply it"
        )
    said = [answer.strip().lower() for answer in answers]
    if len(said) != len(proposal.questions) or any(answer != "yes" for answer in said):
        raise ApprovalNeeded("nothing was changed: this needs a typed yes", "type yes into every field, or leave it")
    if workspace.interrupted():
        raise TakebackError(
            "a take-back was interrupted, and the tree may be in between; nothing was changed",
            "finish it with takeback resume, or go back with takeback resume --abort",
        )
    steps, unbound = workspace.unapproved(plan)
    if any(step not in proposal.unapproved for step in steps) or any(c not in proposal.credentials for c in unbound):
        raise Stale("what has to be asked for has changed meanwhile; nothing was changed", "plan it again")
    if steps or unbound:
        workspace.approve(plan, proposal.credentials)
    return workspace.apply(plan)


def plan_page(proposal: Proposal, form: Form, apply: Form, place: Place) -> list[Child]:
    plan = proposal.plan
    changes = plan.steps and not plan.idle
    body: list[Child] = [
        tag(
            "nav",
            tag("a", "← timeline", href=place.timeline(), class_="back"),
            aria_label="Where this is",
            class_="path",
        ),
        tag("h2", proposal.heading, id="heading"),
    ]
    if changes:
        body.append(_steps(proposal))
        body.append(tag("p", plans.totals(plan), class_="totals"))
    body += [tag("p", line, class_="note") for line in proposal.said]
    body.append(_confirmation(proposal, apply))
    body.append(_otherwise(proposal, form))
    if proposal.files:
        masked = f"secrets are masked: {', '.join(proposal.masked[:5])}" if proposal.masked else ""
        body.append(
            tag(
                "section",
                tag("h3", "What applying it changes"),
                *sides.files(proposal.files, {}),
                tag("p", masked, class_="note") if masked else None,
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


def _steps(proposal: Proposal) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in ("where", "step", "how well"))))
    rows = [
        tag(
            "tr",
            tag("td", row.domain),
            tag("td", tag("span", row.sign, class_="sign", aria_hidden="true"), " ", tag("code", row.name)),
            tag("td", row.verdict, tag("small", row.origin) if row.origin else None, class_=_tone(row.verdict)),
        )
        for row in proposal.rows
    ]
    if proposal.hidden:
        rows.append(
            tag("tr", tag("td", f"… and {counted(proposal.hidden, 'step')} more; the terminal has all", colspan=3))
        )
    table = tag(
        "table", tag("caption", "Steps, in this order", class_="hidden"), head, tag("tbody", *rows), class_="steps"
    )
    return tag("div", table, class_="scroll", tabindex=0, role="group", aria_label="Steps of the plan")


def _tone(verdict: str) -> str:
    word = verdict.partition(":")[0].split(" ")[0]
    return "good" if word in ("exact", "held", "merged") else "fair" if word == "compensates" else "poor"


def _confirmation(proposal: Proposal, apply: Form) -> Markup | None:
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
    )
    fields: list[Child] = []
    if proposal.outside:
        fields.append(tag("pre", lines(proposal.outside), tabindex=0, aria_label="Steps outside the files"))
    for number, question in enumerate(proposal.questions):
        fields.append(
            tag(
                "p",
                tag("label", question, for_=f"yes-{number}"),
                " ",
                tag(
                    "input",
                    id=f"yes-{number}",
                    name="yes",
                    type="text",
                    autocomplete="off",
                    required=True,
                    size=6,
                    pattern="[Yy][Ee][Ss]",
                ),
            )
        )
    fields.append(
        tag("p", "Confirms plan ", tag("code", plan.hash[:12]), ", exactly as it stands here.", class_="note")
    )
    return apply(text, fields, hash=plan.hash)


def _otherwise(proposal: Proposal, form: Form) -> Markup | None:
    """The same request, asked another way."""
    plan, asked = proposal.plan, proposal.asked
    ways: list[Child] = []
    again = {"again": plan.hash}
    if any(step.merges for step in plan.steps) and not asked.merge:
        ways.append(form("Merge what others changed since…", **again, merge="1"))
    if any(step.verdict == DRIFTED for step in plan.steps) and not asked.force:
        ways.append(form("Take what others changed since, too…", **again, force="1"))
    if plan.outside and len(plan.outside) < len(plan.taken):
        ways.append(form("Only the files…", **again, only="files"))
    if plan.distance.state and not asked.state:
        ways.append(form("Threads too…", **again, state="1"))
    ways = [way for way in ways if way]
    return tag("div", *ways, class_="acts", role="group", aria_label="Or otherwise") if ways else None


# -- what came of it -----------------------------------------------------------


class Result(NamedTuple):
    """What came of a plan, in words and as JSON."""

    id: str
    lines: tuple[str, ...]
    whole: bool
    redo: bool
    shape: Mapping[str, Any]


def result_of(workspace: Workspace, outcome: Outcome) -> Result:
    page = Page()
    takebacks.write_outcome(page, workspace, outcome)
    shape = shapes.outcome(outcome, workspace.history(), acts.describer(workspace))
    shape |= thread_shapes.rolled_back(workspace, outcome)
    again = outcomes.can_be_redone(outcome) and outcome.plan.request.verb != "redo"
    return Result(outcome.id, tuple(page.lines), outcome.whole, again, {**shape, "whole": outcome.whole})


def result_page(result: Result, form: Form, place: Place) -> list[Child]:
    first, *rest = result.lines or ("nothing was changed",)
    acts_: list[Child] = [form("Take this back…", how="redo", class_="main")] if result.redo else []
    if result.id:
        acts_.append(tag("a", "See it in the timeline", href=place.item(result.id), class_="button"))
    return [
        tag(
            "nav",
            tag("a", "← timeline", href=place.timeline(), class_="back"),
            aria_label="Where this is",
            class_="path",
        ),
        tag("h2", "Done" if result.whole else "Done in part", id="heading"),
        tag("p", first, role="status", class_="said" if result.whole else "said poor"),
        tag("pre", lines("\n".join(rest)), tabindex=0) if rest else None,
        tag("div", *[a for a in acts_ if a], class_="acts", role="group", aria_label="Next") if any(acts_) else None,
    ]
