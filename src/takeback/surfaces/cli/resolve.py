"""resolve: a person says what came of an undo that nobody heard of again."""

from __future__ import annotations

from ...errors import UsageError
from . import approving, shapes
from .terminal import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...acts import Act
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


def meaning(doubted: Act, done: bool) -> str:
    """What a person's word says about an act, as it was while it was in doubt."""
    what = "was taken back" if done else "stands, and may be taken back again"
    if doubted.domain == "email" and (doubted.did.get("releasing") or not done):  # then it is about its sending
        what = "was sent" if done else "is held as before"
    return f"{safe(doubted.summary)} {what}"


def run(context: Context, args: Namespace) -> int:
    if args.done == args.not_done:
        raise UsageError("say one of --done and --not-done", f"takeback resolve {args.name} --done")
    with context.open() as workspace:
        approving.only_a_person(context, "saying what came of an undo", workspace)
        doubted = workspace.find_effect(args.name)
        act = workspace.resolve(args.name, args.done)
        if context.json:
            context.terminal.json({"effect": shapes.effect(act, workspace.history())})
            return 0
        context.terminal.say(f"noted: {meaning(doubted, args.done)}")
        if act.shown_state in ("live", "held"):
            context.terminal.hint(f"take it back: takeback revert {act.id[:8]}")
        return 0
