"""resume: after an interruption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.model.effects import KEPT
from takeback.surfaces.cli.approving import only_a_person
from takeback.surfaces.cli.captured import with_progress
from takeback.surfaces.wording import effects_outside, json_shapes, outcomes, way_back, ways
from takeback.surfaces.wording.plans import kinds_said

if TYPE_CHECKING:
    from takeback.model.effects import Outcome
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.surfaces.cli.terminal import Terminal
    from takeback.workspace import Workspace


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


def write_resumed(terminal: Terminal, workspace: Workspace, outcome: Outcome, aborted: bool) -> None:
    """What came of finishing it, or of going back from it."""
    history = workspace.history()
    if aborted:
        verb = outcome.plan.request.verb
        if outcome.id in history.takebacks:  # parts of it had ended, around an act outside the files
            terminal.say(f"went back from the last part of the interrupted {verb}; what it had finished stays so")
            terminal.hint("take that back too: takeback redo")
        else:
            kept = [result for result in outcome.results if result.result == KEPT]
            but = f", but for {outcomes.named(kept, outcome, history)}" if kept else ""
            terminal.say(f"went back from the interrupted {verb}: the tree is as before it{but}")
        outcomes.failures(terminal, workspace, outcome)
        for line in outcomes.left_by_abort(outcome, history):
            terminal.hint(line)
        if not outcome.whole:
            terminal.say_withheld()
        return
    terminal.say(outcomes.sentence(outcome, history))
    outcomes.failures(terminal, workspace, outcome)
    for line in outcomes.kept_lines(outcome, history, terminal.typed):
        terminal.hint(line)
    for line in outcomes.left_lines(outcome, history, terminal.typed):
        terminal.hint(line)
    if not outcome.whole:
        terminal.say_withheld()
    if outcome.plan.asks:
        more = ways.with_what_is_asked(outcome.plan, history, terminal.typed)
        terminal.hint(f"take {kinds_said(outcome.plan.asks)} too: {more}")
    if outcomes.can_be_redone(outcome) and (way := way_back.of(outcome, history, terminal.typed)):
        terminal.hint(f"take this back: {way}")
