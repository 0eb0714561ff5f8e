"""What a person is asked where a take-back was interrupted, before any other: finish it, go back, or leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.model.effects import text
from takeback.show.timeline import Timeline
from takeback.surfaces.wording import outcomes
from takeback.surfaces.wording.text import counted, listed

from .captured import with_progress

if TYPE_CHECKING:
    from takeback.workspace import Workspace

    from .context import Context


def ask(context: Context, workspace: Workspace) -> int:
    """Does what is answered and nothing more; that it was interrupted has been said when the workspace was opened."""
    terminal = context.terminal
    if (plan := Timeline(workspace).unfinished()) is not None:
        paths = list(dict.fromkeys(text(step.path) for step in plan.steps if step.domain == "files"))
        about = f": {listed(paths)}" if paths else ""
        terminal.write(f"it was to do {counted(len(plan.steps), 'step')}{about}")
    answer = terminal.ask("Finish it, go back from it, or leave it? [r resume/a abort/N]").lower()
    if answer not in ("r", "resume", "a", "abort"):
        terminal.say("nothing was changed")
        return 4
    is_back = answer in ("a", "abort")
    outcome = with_progress(context, workspace, lambda: workspace.resume(is_back), "looking at")
    if outcome is None:  # somebody else was faster
        terminal.say("it was finished meanwhile; nothing was changed")
        return 0
    outcomes.write_resumed(terminal, workspace, outcome, is_back)
    terminal.hint("nothing more was done; run the command again for what you asked")
    return 0 if outcome.whole else 3
