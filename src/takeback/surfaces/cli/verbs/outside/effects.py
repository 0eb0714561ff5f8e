"""effects: the ledger of what was done outside the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.journal.filters import KEYS
from takeback.surfaces.cli import ledger as ledger_of_cli
from takeback.surfaces.cli.verbs.see.log import at_most, is_term, terms

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[FILTER…] [-n N]"
    parser.about = (
        "Every effect outside the files, newest first, with its state: live (it stands and can be taken\n"
        "back), held (it never left), undone, failed (it never happened), sending (a mail, just now),\n"
        "unknown (begun or taken back, and nobody heard of it again), irreversible. The same as\n"
        "`takeback log --outside`, with its filter\n"
        f"({', '.join(KEYS)})."
    )
    parser.takes("FILTER…", "filter", nargs="*", help="terms such as state:live domain:http actor:claude")
    parser.takes("-n N", "-n", dest="most", default=None, help="at most N entries")
    parser.is_word = is_term
    parser.examples = [
        ("takeback effects", "all of them"),
        ("takeback effects state:live,unknown", "what still stands, or may stand"),
        ("takeback effects domain:http since:2h", ""),
        ("takeback show kxvm", "one in full: what takes it back"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open(when_off=True) as workspace:
        return ledger_of_cli.show(context, workspace, terms(args), at_most(args))
