"""pin: keeps a checkpoint for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli.approving import only_a_person
from takeback.surfaces.wording import json_shapes, paths
from takeback.surfaces.wording.text import safe

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "CHECKPOINT"
    parser.about = "Keeps a checkpoint for ever: no prune but --all takes its snapshot, so restore works from it."
    parser.takes("CHECKPOINT", "name", help="a number, a label, or how an id begins; of a turn, its own")
    parser.examples = [("takeback pin release-1", "")]


def run(context: Context, args: Namespace) -> int:
    return change(context, args.name, keep=True)


def change(context: Context, name: str, keep: bool) -> int:
    with context.open() as workspace:
        if not keep:
            only_a_person(context, "letting a checkpoint go", workspace)
        checkpoint = workspace.pin(paths.entry(context, workspace, name), keep)
        if context.json:
            context.terminal.json({"checkpoint": json_shapes.checkpoint(checkpoint)})
            return 0
        label = f' "{safe(checkpoint.label)}"' if checkpoint.label else ""
        told = "is kept for ever" if keep else "may be pruned again"
        context.terminal.say(f"checkpoint {checkpoint.number} {checkpoint.id[:8]}{label} {told}")
        context.terminal.hint(f"take this back: takeback {'unpin' if keep else 'pin'} {checkpoint.id[:8]}")
        return 0
