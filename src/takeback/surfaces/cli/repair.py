"""repair: sets damaged parts of the store aside."""

from __future__ import annotations

from .approving import approved
from .terminal import counted, safe
from .verify import lost_shape, tell_lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from .context import Context
    from .parsing import Parser


def add(parser: Parser) -> None:
    parser.synopsis = ""
    parser.about = (
        "Reads everything stored, sets what is damaged aside (quarantined, never deleted), rebuilds\n"
        "the caches and says what is lost. The journal itself is never rewritten."
    )
    parser.examples = [("takeback verify --data", "look first"), ("takeback repair --yes", "then repair")]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        found = workspace.verify(data=True)
        if found.ok:
            if context.json:
                context.terminal.json({"repaired": False, "quarantined": 0, "lost": [], "notes": []})
            else:
                but = ", but for what is known to be lost" if found.known else ""
                context.terminal.say(f"nothing to repair: everything stored is whole{but}")
            return 0
        if not context.json:
            context.terminal.write(f"damaged: {safe(found.first_bad)}")
            tell_lost(context, found.lost)
        if not approved(context, "Set the damaged parts aside?"):
            return 4
        done = workspace.repair()
        if context.json:
            shape = {
                "quarantined": done.quarantined,
                "lost": lost_shape(done.lost),
                "notes": list(done.notes),
            }
            context.terminal.json({"repaired": True, **shape})
            return 0
        context.terminal.say(f"set {counted(done.quarantined, 'damaged part')} aside, in the store's quarantine")
        for note in done.notes:
            context.terminal.say(f"  {safe(note)}")
        context.terminal.hint("take a checkpoint now: what is still in the project is stored anew")
        return 0
