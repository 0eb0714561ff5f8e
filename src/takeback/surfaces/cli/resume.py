"""resume: after an interruption."""

from __future__ import annotations

from . import acts, outcomes, shapes
from .capturing import with_progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .context import Context
    from .parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[--abort]"
    parser.about = (
        "Finishes a take-back that was interrupted, or with --abort goes back to where it began.\n"
        "It was approved when it began, so it does not ask again."
    )
    parser.takes("--abort", "--abort", action="store_true", help="go back instead of finishing")
    parser.examples = [
        ("takeback resume", "finish it"),
        ("takeback resume --abort", "as if it had never begun"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open(tell=False) as workspace:
        outcome = with_progress(context, workspace, lambda: workspace.resume(args.abort), "looking at")
        terminal = context.terminal
        if context.json:
            describe = acts.describer(workspace)
            shape = {"resumed": False} if outcome is None else shapes.outcome(outcome, workspace.history(), describe)
            terminal.json({"resumed": outcome is not None, "aborted": bool(outcome) and args.abort, **shape})
        elif outcome is None:
            terminal.say("nothing was interrupted")
        elif args.abort:
            verb = outcome.plan.request.verb
            if outcome.id in workspace.history().takebacks:  # parts of it had ended, around an act outside the files
                terminal.say(f"went back from the last part of the interrupted {verb}; what it had finished stays so")
                terminal.hint("take that back too: takeback redo")
            else:
                terminal.say(f"went back from the interrupted {verb}: the tree is as before it")
            outcomes.failures(terminal, workspace, outcome)
        else:
            terminal.say(outcomes.sentence(outcome, workspace.history()))
            outcomes.failures(terminal, workspace, outcome)
            for line in outcomes.kept_lines(outcome, workspace.history()):
                terminal.hint(line)
            if outcomes.can_be_redone(outcome):
                terminal.hint(f"take this back: {outcomes.way_back(outcome, workspace.history())}")
        return 0 if outcome is None or outcome.whole else 3
