"""checkpoint: captures the whole tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli.captured import captured, vouching, with_progress
from takeback.surfaces.wording import json_shapes

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[LABEL]"
    parser.about = (
        "Captures the whole tree. A checkpoint with a label, or without an actor, is a named one:\n"
        "status, diff and rollback start from the newest of these. TAKEBACK_ACTOR in the\n"
        "environment vouches for what changed since the last look and no open call of an agent owns;\n"
        "below an agent's session it can name that agent only."
    )
    parser.takes("LABEL", "label", nargs="*", help="what to call it, one line")
    parser.examples = [
        ("takeback checkpoint", ""),
        ('takeback checkpoint "before the refactor"', "find it again by its label"),
        ("TAKEBACK_ACTOR=claude takeback checkpoint", "the changes found are claude's"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        label = " ".join(args.label)
        actor = vouching(context, workspace)
        checkpoint = with_progress(context, workspace, lambda: workspace.checkpoint(label, actor=actor))
        if context.json:
            context.terminal.json({"checkpoint": json_shapes.checkpoint(checkpoint)})
            return 3 if checkpoint.partial else 0
        code = captured(context, checkpoint)
        context.terminal.hint(f"come back to it: takeback rollback {checkpoint.id[:8]}")
        return code
