"""repair: sets damaged parts of the store aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.care import salvage
from takeback.care.verify import of_damaged
from takeback.store import layout
from takeback.surfaces.cli.approving import approved, only_a_person
from takeback.surfaces.wording.text import counted, safe

from .verify import lost_shape, tell_lost

if TYPE_CHECKING:
    from takeback.care.verify import Repaired, Verified
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = ""
    parser.about = (
        "Reads everything stored, sets what is damaged aside (quarantined, never deleted), rebuilds\n"
        "the caches and says what is lost. Rows of the journal are never rewritten: where the database\n"
        "itself is damaged, a new one is made of every row that can still be read."
    )
    parser.examples = [("takeback verify --data", "look first"), ("takeback repair --yes", "then repair")]


def run(context: Context, args: Namespace) -> int:
    only_a_person(context, "repairing the store")
    mended = _mended(context)
    if mended is None:
        return 4
    with context.open() as workspace:
        only_a_person(context, "repairing the store", workspace)
        found = workspace.verify(data=True)
        if found.ok and not mended:
            if context.json:
                context.terminal.json({"repaired": False, "quarantined": 0, "lost": [], "notes": []})
            else:
                but = ", but for what is known to be lost" if found.known else ""
                context.terminal.say(f"nothing to repair: everything stored is whole{but}")
            return 0
        if not mended and not _approved(context, found):
            return 4
        return _tell(context, mended, workspace.repair())


def _mended(context: Context) -> list[str] | None:
    """What had to be set right before the store could be opened at all; None if that was declined."""
    settings = context.settings()
    root = layout.find_root(settings.home, context.cwd)
    if root is None:
        return []
    context.must_be_on(settings)
    why = salvage.why_closed(settings, root)
    if not why:
        return []
    if not _approved(context, of_damaged(layout.folder_of(settings.home, root), why)):
        return None
    return salvage.mend(settings, root)


def _approved(context: Context, found: Verified) -> bool:
    if not context.json:
        context.terminal.write(f"damaged: {safe(found.first_bad)}")
        tell_lost(context, found.lost)
    return approved(context, "Set the damaged parts aside?")


def _tell(context: Context, mended: list[str], done: Repaired) -> int:
    notes = [*mended, *done.notes]
    if context.json:
        shape = {"quarantined": done.quarantined, "lost": lost_shape(done.lost), "notes": notes}
        context.terminal.json({"repaired": True, **shape})
        return 0
    if done.quarantined or not notes:
        context.terminal.say(f"set {counted(done.quarantined, 'damaged part')} aside, in the store's quarantine")
    for note in notes:
        context.terminal.say(safe(note))
    context.terminal.hint("take a checkpoint now: what is still in the project is stored anew")
    return 0
