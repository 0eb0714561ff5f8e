"""label: calls a checkpoint something else."""

from __future__ import annotations

from shlex import join
from typing import TYPE_CHECKING

from takeback.surfaces.cli.approving import only_a_person
from takeback.surfaces.wording import json_shapes, paths
from takeback.surfaces.wording.text import safe

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "CHECKPOINT LABEL…"
    parser.about = (
        "Calls a checkpoint something else, so that you find it again: an automatic one, say, or one that\n"
        "was named too early. What it captured stays as it is. An agent may not do this."
    )
    parser.takes("CHECKPOINT", "name", help="a number, a label, or how an id begins; of a turn, its own")
    parser.takes("LABEL", "label", nargs="*", help="what to call it, one line; nothing takes its label away")
    parser.examples = [
        ("takeback label 7 before it went wrong", ""),
        ('takeback rollback "before it went wrong"', "find it again"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        only_a_person(context, "calling a checkpoint something else", workspace)
        before = workspace.find_checkpoint(paths.entry(context, workspace, args.name))
        checkpoint = workspace.label(before.id, " ".join(args.label))
        if context.json:
            context.terminal.json({"checkpoint": json_shapes.checkpoint(checkpoint)})
            return 0
        called = f'is called "{safe(checkpoint.label)}" now' if checkpoint.label else "has no label now"
        context.terminal.say(f"checkpoint {checkpoint.number} {checkpoint.id[:8]} {called}")
        if safe(before.label) == before.label:  # else no command that can be shown says it
            context.terminal.hint(f"take this back: {_command(checkpoint.id[:8], before.label)}")
        return 0


def _command(id: str, label: str) -> str:
    """An agent may have chosen the label: in a shell it is one word, whatever it says."""
    ends_flags = ["--"] if label.startswith("-") else []
    return join(["takeback", "label", id, *ends_flags, *([label] if label else [])])
