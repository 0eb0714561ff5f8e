"""The ledger on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.journal import filters
from takeback.surfaces.wording.ledger import entries, lines, shaped

if TYPE_CHECKING:
    from takeback.workspace import Workspace

    from .context import Context


def show(context: Context, workspace: Workspace, filter: str, most: int | None = None) -> int:
    """What `effects` and `log --outside` print."""
    wanted, now = filters.parse(filter), workspace.clock()
    found = [entry for entry in entries(workspace) if wanted.matches(entry, now)][:most]
    if context.json:
        context.terminal.json({"effects": list(shaped(workspace, found))})
    elif not found:
        none = "no effect outside the files matches" if filter else "nothing was recorded outside the files"
        context.terminal.write(none)
    else:
        context.terminal.page(lines(context.terminal, found, now))
    return 0
