"""resume: after an interruption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli.approving import only_a_person
from takeback.surfaces.cli.captured import with_progress
from takeback.surfaces.wording import effects_outside, json_shapes
from takeback.surfaces.wording.outcomes import write_resumed

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[--abort]"
    parser.about = (
        "Finishes a take-back that was interrupted, or with --abort goes back to where it began; of one\n"
        "in several parts, around acts outside the files, to where its last part began: what it had\n"
        "finished stays, and takeback redo takes that back too.\n"
        "It was approved when it began, so it does not ask again. At a terminal other take-backs ask\n"
        "first which of the two it shall be. Without one they finish what was killed; what a person\n"
        "stopped by Ctrl-C they leave alone, exit 4; below an agent so does this."
    )
    parser.takes("--abort", "--abort", action="store_true", help="go back instead of finishing")
    parser.examples = [
        ("takeback resume", "finish it"),
        ("takeback resume --abort", "go back from what was interrupted"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open(tell=False) as workspace:
        if workspace.was_stopped():
            only_a_person(context, "settling what a person stopped", workspace)
        outcome = with_progress(context, workspace, lambda: workspace.resume(args.abort), "looking at")
        terminal = context.terminal
        if context.json:
            describe = effects_outside.describer(workspace)
            shape = (
                {"resumed": False} if outcome is None else json_shapes.outcome(outcome, workspace.history(), describe)
            )
            terminal.json({"resumed": outcome is not None, "aborted": bool(outcome) and args.abort, **shape})
        elif outcome is None:
            terminal.say("nothing was interrupted")
        else:
            write_resumed(terminal, workspace, outcome, args.abort)
        return 0 if outcome is None or outcome.whole else 3
