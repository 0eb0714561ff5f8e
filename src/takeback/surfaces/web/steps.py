"""The steps of a plan, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from takeback.model.effects import Plan
from takeback.surfaces.wording.html import Markup, tag
from takeback.surfaces.wording.page import Page
from takeback.surfaces.wording.plans import Shown, shown
from takeback.surfaces.wording.text import counted
from takeback.workspace import Workspace

_MANY = 500  # steps that are all listed


def listed(workspace: Workspace, plan: Plan) -> tuple[tuple[Shown, ...], int]:
    """Its steps as the command line words them, and how many there are besides."""
    if not plan.steps:
        return (), 0
    rows, hidden = shown(Page(), workspace, plan, len(plan.steps) <= _MANY)
    return tuple(rows), hidden


def table(rows: Sequence[Shown], hidden: int) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in ("where", "step", "how well"))))
    lines = [
        tag(
            "tr",
            tag("td", row.domain),
            tag("td", tag("span", row.sign, class_="sign", aria_hidden="true"), " ", tag("code", row.name)),
            tag("td", row.verdict, tag("small", row.origin) if row.origin else None, class_=_tone(row.verdict)),
        )
        for row in rows
    ]
    if hidden:
        lines.append(tag("tr", tag("td", f"… and {counted(hidden, 'step')} more; the terminal has all", colspan=3)))
    caption = tag("caption", "Steps, in this order", class_="hidden")
    whole = tag("table", caption, head, tag("tbody", *lines), class_="steps")
    return tag("div", whole, class_="scroll", tabindex=0, role="group", aria_label="Steps of the plan")


def _tone(verdict: str) -> str:
    word = verdict.partition(":")[0].split(" ")[0]
    return "good" if word in ("exact", "held", "merged") else "fair" if word == "compensates" else "poor"
