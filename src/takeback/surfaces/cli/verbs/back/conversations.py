"""undo --conversation: what was taken back goes from the agents' conversations too, where their programs can do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.agents.sessions.forgetting import Asked, Forgotten, forget
from takeback.surfaces.wording.json_shapes import turns_taken
from takeback.surfaces.wording.text import safe

if TYPE_CHECKING:
    from takeback.model.effects import Outcome
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.terminal import Terminal
    from takeback.workspace import Workspace


def forgotten(context: Context, workspace: Workspace, outcome: Outcome) -> list[Forgotten]:
    """Of each session whose turns were taken, from the earliest of these on."""
    if not outcome.id or outcome.finished_earlier:
        return []
    first: dict[tuple[str, str], Asked] = {}
    for turn in turns_taken(outcome.plan, workspace.history()):
        caller = turn.caller
        first.setdefault((caller.agent, caller.session), Asked(caller.agent, caller.session, turn.prompt, turn.at))
    return [forget(asked, context.environ, workspace.root) for asked in first.values()]


def tell(terminal: Terminal, found: list[Forgotten]) -> int:
    """What came of it; 3 where a person has to do it, or nothing was to be done."""
    if not found:
        terminal.hint("no agent's turn was taken back, so there is no conversation to drop it from")
    for each in found:
        if each.new_session:
            terminal.say(f"{safe(each.agent)} goes on without it and what was said after it: {safe(each.command)}")
            terminal.hint(f"the session before stays as it is: {safe(each.session)}")
        elif not each.why:
            terminal.say(f"it was the first thing said in its session: begin a new one with {safe(each.command)}")
        else:
            terminal.warn(f"{safe(each.agent)} still remembers it: {safe(each.why)}")
            terminal.warn(f"  → {safe(each.by_hand)}" if each.by_hand else "  → tell it in the conversation")
    return 3 if any(each.why for each in found) else 0
