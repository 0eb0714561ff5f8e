"""What a person is asked to say yes to: every step outside the files in full, and where a credential goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import effects_outside
from .text import cells, counted, safe

if TYPE_CHECKING:
    from takeback.model.effects import Step
    from takeback.model.outside import Credential
    from takeback.workspace import Workspace

    from .screen import Screen


CANNOT = "a redo does not bring them back"


def question(steps: int) -> str:
    these = "this" if steps == 1 else f"these {steps}"
    return f"Type yes to do {these} outside the files ({CANNOT}):"


def unbound_said(credential: Credential) -> str:
    return f"{safe(credential.name)} is bound to no place in your configuration."


def credential_question(credential: Credential) -> str:
    return f"Type yes to send the value of {safe(credential.name)} to {safe(credential.origin)}:"


def listing(terminal: Screen, workspace: Workspace, steps: list[Step]) -> None:
    """Every step in full: what is approved must have been seen."""
    history = workspace.history()
    terminal.write(terminal.style(f"Outside the files · {counted(len(steps), 'step')}, in this order", "bold"))
    describe = effects_outside.describer(workspace)
    for number, step in enumerate(steps, 1):
        act = history.acts[step.path.decode()]
        head = f"  {number:>2}  {step.domain}  "
        does = safe(describe(act))
        line = effects_outside.wrapped(terminal, does, cells(head))
        indent = " " * cells(head)
        for shown in (head + line[0], *line[1:]):
            terminal.write(shown)
        terminal.write(indent + effects_outside.verdict(terminal, step, act, does, workspace))
        terminal.write(indent + terminal.style(effects_outside.origin(act, workspace.clock()), "dim"))
