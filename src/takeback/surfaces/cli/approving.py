"""The question of verbs that have no plan of steps: prune, repair, config confirm."""

from __future__ import annotations

from ...errors import ApprovalNeeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .context import Context


def approved(context: Context, question: str) -> bool:
    """True with --yes or after a yes; False after a no; without a person to ask it is an error, exit 4."""
    if context.yes:
        return True
    if not context.asks:
        raise ApprovalNeeded("nothing was changed: this needs a yes", "add --yes to do it, or run it on a terminal")
    if context.terminal.confirm(question):
        return True
    context.terminal.say("nothing was changed")
    return False
