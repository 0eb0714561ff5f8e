"""resolve: a person says what came of an undo that nobody heard of again."""

from __future__ import annotations

from ...errors import UsageError
from . import approving, shapes
from .terminal import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .context import Context
    from .parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "ID --done|--not-done"
    parser.about = (
        "An undo that was sent and never answered is unknown, and is never sent again by itself. Look\n"
        "at the other side, then say so: --done, it took effect; --not-done, it did not, and may be sent\n"
        "again, after approval. Refused where an agent is at work: it is a person's word."
    )
    parser.takes("ID", "name", help="of the effect or of its undo: a number, or how an id begins")
    parser.takes("--done", "--done", action="store_true", help="the undo took effect")
    parser.takes("--not-done", "--not-done", action="store_true", help="it did not; it may be sent again")
    parser.examples = [
        ("takeback effects state:unknown", "what is in doubt"),
        ("takeback resolve kxvm --done", "the refund is in the other side's books"),
        ("takeback resolve kxvm --not-done", "it is not; then takeback compensate --execute"),
    ]


def run(context: Context, args: Namespace) -> int:
    if args.done == args.not_done:
        raise UsageError("say one of --done and --not-done", f"takeback resolve {args.name} --done")
    with context.open() as workspace:
        approving.only_a_person(context, "saying what came of an undo", workspace)
        act = workspace.resolve(args.name, args.done)
        if context.json:
            context.terminal.json({"effect": shapes.effect(act, workspace.history())})
            return 0
        what = "was taken back" if args.done else "stands, and may be taken back again"
        if act.domain == "email" and not act.undone_by:  # in doubt was not its undo, but whether it was sent
            what = "was sent" if args.done else "is held as before"
        context.terminal.say(f"noted: {safe(act.summary)} {what}")
        if act.shown_state in ("live", "held"):
            context.terminal.hint(f"take it back: takeback revert {act.id[:8]}")
        return 0
