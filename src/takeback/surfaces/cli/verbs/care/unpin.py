"""unpin: the opposite of pin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .pin import change

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "CHECKPOINT"
    parser.about = "Lets a pinned checkpoint be pruned again, when its time comes."
    parser.takes("CHECKPOINT", "name", help="a number, a label, or how an id begins; of a turn, its own")
    parser.examples = [("takeback unpin release-1", "")]


def run(context: Context, args: Namespace) -> int:
    return change(context, args.name, keep=False)
