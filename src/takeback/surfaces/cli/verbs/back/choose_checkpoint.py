"""The numbered list of checkpoints that `rollback` offers on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded, UsageError
from takeback.journal import names
from takeback.surfaces.wording.text import age, pad, safe

if TYPE_CHECKING:
    from takeback.show.views import LogRow
    from takeback.surfaces.cli.context import Context
    from takeback.workspace import Workspace

_MOST = 15


def choose_checkpoint(context: Context, workspace: Workspace) -> str:
    """An id, or nothing where there is nothing to choose from. Numbers are those of checkpoints everywhere."""
    rows = workspace.log("kind:checkpoint")
    if len(rows) < 2:
        return ""
    newest = next((r for r in rows if r.named), rows[0])
    terminal = context.terminal
    terminal.write(terminal.style("Which checkpoint?", "bold"))
    ages = [age(workspace.clock() - r.at) for r in rows[:_MOST]]
    for row, when in zip(rows, ages):
        mark = terminal.style("→", "green") if row is newest else " "
        terminal.write(f" {mark} {row.number:>4}  {pad(when, max(map(len, ages)))}  {_called(row)}")
    if len(rows) > _MOST:
        terminal.write(terminal.style(f"   … and {len(rows) - _MOST} older: takeback log kind:checkpoint", "dim"))
    terminal.write(terminal.style("   how things are now can be kept first: takeback checkpoint LABEL", "dim"))
    while True:
        answer = terminal.ask(f"Number, label or id [{newest.number}]:")
        if answer.lower() in ("q", "n", "no"):
            raise ApprovalNeeded(
                "nothing was changed: no checkpoint was chosen", "name one: takeback rollback CHECKPOINT"
            )
        try:
            return names.resolve(workspace.history(), answer).id if answer else newest.id
        except UsageError as unknown:
            terminal.warn(f"{safe(unknown.message)}; q leaves all as it is")


def _called(row: LogRow) -> str:
    label = f'"{safe(row.label)}"' if row.label else "automatic" if not row.named else "no label"
    by = f" by {safe(row.actor)}" if row.actor else ""
    return f"{row.id[: row.short]}  {label}{by} · {row.summary}"
