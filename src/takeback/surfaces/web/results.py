"""What came of something that was confirmed, in the words of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from takeback.model.effects import Outcome
from takeback.surfaces.wording import effects_outside, json_shapes, json_thread_shapes, outcomes, take_backs
from takeback.surfaces.wording.html import Child, lines, tag
from takeback.surfaces.wording.page import Page
from takeback.workspace import Workspace

from .forms import Forms, group
from .listing import Place, way_back


class Result(NamedTuple):
    """In words and as JSON."""

    id: str  # of the take-back or effect; empty if nothing was journaled
    heading: str
    lines: tuple[str, ...]
    whole: bool
    redo: bool
    shape: Mapping[str, Any]


def of_plan(workspace: Workspace, outcome: Outcome) -> Result:
    page = Page()
    take_backs.write_outcome(page, workspace, outcome)
    return _of(workspace, outcome, page)


def of_resumed(workspace: Workspace, outcome: Outcome, aborted: bool) -> Result:
    page = Page()
    outcomes.write_resumed(page, workspace, outcome, aborted)
    result = _of(workspace, outcome, page)
    return result._replace(redo=False) if aborted else result


def _of(workspace: Workspace, outcome: Outcome, page: Page) -> Result:
    shape = json_shapes.outcome(outcome, workspace.history(), effects_outside.describer(workspace))
    shape |= json_thread_shapes.rolled_back(workspace, outcome)
    again = outcomes.can_be_redone(outcome) and outcome.plan.request.verb != "redo"
    heading = "Done" if outcome.whole else "Done in part"
    return Result(outcome.id, heading, tuple(page.lines), outcome.whole, again, {**shape, "whole": outcome.whole})


def result_page(result: Result, forms: Forms, place: Place) -> list[Child]:
    first, *rest = result.lines or ("nothing was changed",)
    again = forms.plan("Take this back…", how="redo", class_="main") if result.redo else None
    seen = tag("a", "See it in the timeline", href=place.item(result.id), class_="button") if result.id else None
    return [
        way_back(place),
        tag("h2", result.heading, id="heading"),
        tag("p", first, role="status", class_="said" if result.whole else "said poor"),
        tag("pre", lines("\n".join(rest)), tabindex=0) if rest else None,
        group("Next", again, seen),
    ]
