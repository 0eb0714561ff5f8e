"""The flow that undo, redo, rollback, revert and restore share: plan, show, ask, apply exactly that, tell.

--yes           plan and apply in one go
a terminal      plan ─► shown ─► [y/N/d/m] ─► apply, refused if it is stale by then
neither         plan ─► shown; nothing is changed, exit 4
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...effects import Outcome, Plan
from ...errors import ApprovalNeeded, UsageError
from . import diffs, outcomes, plans, shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ...workspace import Workspace
    from .context import Context
    from .parsing import Parser

_FINISHES = ("undo", "redo", "rollback", "revert")


@dataclass(frozen=True)
class Asked:
    """A take-back as typed: the verb, its words, and how."""

    verb: str
    words: tuple[str | int, ...]
    actors: tuple[str, ...] | None = None
    everything: bool = False
    merge: bool = False
    markers: bool = False
    force: bool = False
    dry_run: bool = False
    all_steps: bool = False

    @property
    def options(self) -> dict[str, Any]:
        return {
            "actors": self.actors,
            "everything": self.everything,
            "merge": self.merge,
            "markers": self.markers,
            "force": self.force,
        }


def add_options(parser: Parser, whose: bool = True, merging: bool = True) -> None:
    """The options of take-back verbs."""
    if whose:
        parser.takes(
            "--actor NAME", "--actor", action="append", default=None,
            help="only what NAME did; may be given several times",
        )  # fmt: skip
        parser.takes("--all", "--all", dest="everything", action="store_true", help="whoever did it")
    if merging:
        parser.takes("--merge", "--merge", action="store_true", help="merge text that others changed since")
        parser.takes(
            "--markers",
            "--markers",
            action="store_true",
            help="merge, with conflict markers where it is not clean",
        )
    parser.takes("--force", "--force", action="store_true", help="take back what others changed since, too")
    parser.takes("--dry-run", "--dry-run", action="store_true", help="print the plan and change nothing")
    parser.takes("--all-steps", "--all-steps", action="store_true", help="show every step, however many")


def asked(verb: str, words: tuple[str | int, ...], args: Namespace) -> Asked:
    actors = getattr(args, "actor", None)
    return Asked(
        verb,
        words,
        None if actors is None else tuple(actors),
        getattr(args, "everything", False),
        getattr(args, "merge", False),
        getattr(args, "markers", False),
        args.force,
        args.dry_run,
        args.all_steps,
    )


def one_at_most(verb: str, words: list[str]) -> tuple[str, ...]:
    if len(words) > 1:
        raise UsageError(f"{verb} takes one target at most, not {len(words)}", f"see takeback help {verb}")
    return tuple(words)


def take_back(context: Context, workspace: Workspace, wanted: Asked) -> int:
    if wanted.dry_run:
        plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
        show(context, workspace, plan, wanted.all_steps)
        return 0
    if wanted.verb in _FINISHES and workspace.interrupted():
        outcome = workspace.resume()  # it was approved when it began
        if outcome is not None:
            return tell(context, workspace, outcome)
    if context.yes:
        return _at_once(context, workspace, wanted)
    plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
    if nothing(plan):
        return tell(context, workspace, Outcome(plan, "", (), tuple(sorted({u.path for u in plan.left}))))
    if not context.asks:
        return needs_yes(context, workspace, plan, wanted.all_steps)
    return ask(context, workspace, plan, wanted, wanted.all_steps)


def nothing(plan: Plan) -> bool:
    """An undo or redo whose work left no trace has no steps either, but moves on when applied."""
    return not plan.steps and not plan.request.turns and not plan.request.takebacks


def _at_once(context: Context, workspace: Workspace, wanted: Asked) -> int:
    progress = context.terminal.progress("taken back")
    workspace.progress = progress
    try:
        outcome = workspace.take_back(wanted.verb, *wanted.words, **wanted.options)
    finally:
        if progress is not None:
            progress.close()
    if not context.json and not context.terminal.quiet and outcome.plan.steps:
        for line in plans.lines(context.terminal, workspace, outcome.plan, wanted.all_steps):
            context.terminal.write(line)
    return tell(context, workspace, outcome)


def ask(
    context: Context, workspace: Workspace, plan: Plan, wanted: Asked | None = None, all_steps: bool = False
) -> int:
    """Shows the plan until it is approved or declined; what can be asked anew can also be merged."""
    terminal = context.terminal
    show(context, workspace, plan, all_steps)
    while True:
        merges = wanted is not None and any(step.merges for step in plan.steps)
        answer = terminal.ask(f"Apply? [y/N/d diff{'/m merge' if merges else ''}]").lower()
        if answer in ("d", "diff"):
            terminal.page(list(diffs.lines(terminal, plans.diff_of(workspace, plan))))
        elif answer in ("m", "merge") and merges and wanted is not None:
            wanted = replace(wanted, merge=True)
            plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
            show(context, workspace, plan, all_steps)
        elif answer in ("y", "yes"):
            return apply(context, workspace, plan)
        else:
            terminal.say("nothing was changed")
            return 4


def apply(context: Context, workspace: Workspace, plan: Plan | str) -> int:
    """Carries out exactly this plan; the core refuses it if it is stale."""
    progress = context.terminal.progress("taken back", 0 if isinstance(plan, str) else len(plan.taken))
    workspace.progress = progress
    try:
        outcome = workspace.apply(plan)
    finally:
        if progress is not None:
            progress.close()
    return tell(context, workspace, outcome)


def show(context: Context, workspace: Workspace, plan: Plan, all_steps: bool = False) -> None:
    if context.json:
        context.terminal.json({"plan": shapes.plan(plan, workspace.history()), "applied": False})
    elif not plan.steps:
        context.terminal.write(nothing_said(plan))
    else:
        shown = plans.lines(context.terminal, workspace, plan, all_steps)
        if all_steps:
            context.terminal.page(shown)
        else:
            for line in shown:
                context.terminal.write(line)


def needs_yes(context: Context, workspace: Workspace, plan: Plan, all_steps: bool) -> int:
    error = ApprovalNeeded(
        "nothing was changed: this needs a yes", "add --yes to do it, or run it on a terminal"
    )
    if context.json:
        told = {"message": error.message, "hint": error.hint, "code": error.exit_code}
        plan_shape = shapes.plan(plan, workspace.history())
        context.terminal.json({"plan": plan_shape, "applied": False, "error": told})
    else:
        show(context, workspace, plan, all_steps)
    context.terminal.warn(f"takeback: {error.message}")
    context.terminal.warn(f"  → {error.hint}")
    return error.exit_code


def nothing_said(plan: Plan) -> str:
    what = {"redo": "nothing to redo", "undo": "nothing to undo"}.get(
        plan.request.verb, "nothing to take back"
    )
    if plan.request.verb in ("rollback", "restore"):
        what += f": the tree is as in {plan.request.label}"
    return what


def tell(context: Context, workspace: Workspace, outcome: Outcome) -> int:
    if context.json:
        context.terminal.json(shapes.outcome(outcome, workspace.history()))
        return 0 if outcome.whole else 3
    if not outcome.results and not outcome.finished_earlier:
        context.terminal.say(
            nothing_said(outcome.plan) if not outcome.id else "stepped over work that left no trace"
        )
        if others := plans.others_work(outcome.plan):
            context.terminal.hint(plans.left(others))
        return 0
    return outcomes.report(context.terminal, workspace, outcome)
