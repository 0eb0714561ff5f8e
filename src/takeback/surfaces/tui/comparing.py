"""Two points of the timeline compared, as a text to read."""

from __future__ import annotations

from rich.text import Text

from takeback.privacy.masking import mask_file
from takeback.show.timeline import Timeline
from takeback.surfaces.wording import diffs
from takeback.surfaces.wording.text import clip, safe
from takeback.workspace import Workspace

from .paper import Paper, styled


def compared(
    workspace: Workspace, timeline: Timeline, one: str, other: str, width: int, masked: bool
) -> tuple[str, list[Text]] | None:
    """A title and its lines: from the older of the two to the newer, or to now where there is only one checkpoint to
    stand for both. None where there is none at all."""
    marks = [timeline.checkpoint_at(id) for id in dict.fromkeys((one, other))]
    found = sorted({mark.id: mark for mark in marks if mark is not None}.values(), key=lambda mark: mark.at)
    if not found:
        return None
    diff = workspace.diff(*(mark.id for mark in found))
    files = tuple(map(mask_file, diff.files)) if masked else diff.files
    ends = [f"{c.id[:8]}" + (f" “{clip(safe(c.label), 30)}”" if c.label else "") for c in (diff.a, diff.b) if c]
    title = " → ".join([*ends, "now"][:2])
    if not files:
        return f"{title}: no difference", []
    paper = Paper(width)
    return title, [styled(diffs.totals(paper, files)), Text(""), *map(styled, diffs.lines(paper, files))]
