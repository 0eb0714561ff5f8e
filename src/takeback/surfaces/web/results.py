"""What came of something that was confirmed, in the words of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...effects import Outcome
from ...typed import NamedTuple
from ...workspace import Workspace
from ..cli import acts, outcomes, resume, shapes, takebacks, thread_shapes
from ..cli.page import Page
from .forms import Forms, group
from .html import Child, lines, tag
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
    takebacks.write_outcome(page, workspace, outcome)
    return _of(workspace, outcome, page)


def of_resumed(workspace: Workspace, outcome: Outcome, aborted: bool) -> Result:
    page = Page()
    resume.write_resumed(page, workspace, outcome, aborted)
    result = _of(workspace, outcome, page)
    return result._replace(redo=False) if aborted else result


def _of(workspace: Workspace, outcome: Outcome, page: Page) -> Result:
    shape = shapes.outcome(outcome, workspace.history(), acts.describer(workspace))
    shape |= thread_shapes.rolled_back(workspace, outcome)
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
