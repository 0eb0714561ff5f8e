"""status: what changed since the newest named checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.wording import json_shapes
from takeback.surfaces.wording.status import failed_hooks, lines, lost_hooks
from takeback.surfaces.wording.text import wrapped

if TYPE_CHECKING:
    from takeback.show.views import Status
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "[--all]"
    parser.about = (
        "What changed since the newest named checkpoint, or since the one that a rollback went back\n"
        "to; by whom, what is not covered, and how large the store is. Journals nothing. What was\n"
        "edited comes first; a folder that came or went whole is one line."
    )
    parser.takes("--all", "--all", dest="everything", action="store_true", help="every change and path, however many")
    parser.option("--bare", action="store_true")
    parser.examples = [("takeback status", ""), ("takeback", "the same, with the likely next command")]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        found = workspace.status()
        if context.json:
            failed = [record._asdict() for record in failed_hooks(workspace)]
            gone = [lost.agent for lost in lost_hooks(workspace)]
            context.terminal.json({**json_shapes.status(found), "hooks_failed": failed, "hooks_gone": gone})
            return 0
        shown = list(lines(context.terminal, workspace, found, args.everything))
        if args.everything:
            context.terminal.page(shown)
        else:
            for line in shown:
                context.terminal.write(line)
        told = f"next: {_next(found, workspace)}"
        for line in wrapped(told, context.terminal.width, 6) if context.terminal.err_is_tty else [told]:
            context.terminal.hint(line)
        return 0


def _next(found: Status, workspace: Workspace) -> str:
    """The likely next command."""
    if workspace.store.is_read_only:
        return "takeback doctor names what to mend, takeback restore --to DIR brings files elsewhere"
    if found.interrupted:
        return "takeback resume, or takeback resume --abort"
    if found.under_way:
        return f"wait: {found.under_way}"
    states = dict(found.outside)
    if states.get("unknown"):
        doubted = [act for act in workspace.history().ledger() if act.shown_state == "unknown"]
        then = doubted[0].resolving if len(doubted) == 1 else "takeback resolve ID as takeback show ID says"
        return f"takeback effects state:unknown, find out what came of it, then {then}"
    if found.due:
        return "takeback email release --due sends what is due, takeback email cancel ID drops it"
    if found.checkpoint is None:
        return "takeback checkpoint"
    if found.changes and states:
        return "takeback diff and takeback effects to look, takeback rollback to take it back"
    if states:
        return "takeback effects to look, takeback compensate to see what would take it back"
    if found.changes:
        return "takeback diff to look, takeback rollback to take it back, takeback checkpoint to keep it"
    standing = next((t for t in workspace.history().standing.values() if t.verb != "redo" and t.rows), None)
    newest = workspace.history().checkpoints[-1]
    if standing is not None and standing.seq > newest.seq:
        return f"takeback redo brings back what the last {standing.verb} took"
    return 'takeback checkpoint "a label", then let your agent loose; takeback log shows what was'
