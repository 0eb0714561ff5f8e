"""The flow that undo, redo, rollback, revert and restore share: plan, show, ask, apply exactly that, tell.

--yes           plan and apply in one go
a terminal      plan ─► shown ─► [y/N/d/m] ─► apply, refused if it is stale by then
neither         plan ─► shown; nothing is changed, exit 4
"""

from __future__ import annotations

from ...effects import Outcome, Plan
from ...errors import ApprovalNeeded, UsageError
from ...typed import NamedTuple
from . import diffs, outcomes, plans, shapes
from .capturing import with_progress
from .terminal import counted, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...workspace import Workspace
    from .context import Context
    from .parsing import Namespace, Parser


class Asked(NamedTuple):
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
        _say_fewer(context, workspace, wanted, plan)
        return 0
    if workspace.interrupted():
        outcome = workspace.resume()  # it was approved when it began
        if outcome is not None:
            return tell(context, workspace, outcome)
    if context.yes:

        def work() -> Outcome:
            outcome = workspace.take_back(wanted.verb, *wanted.words, **wanted.options)
            if not outcome.finished_earlier:
                _say_fewer(context, workspace, wanted, outcome.plan)
            return outcome

        return at_once(context, workspace, work, wanted.all_steps)
    plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
    _say_fewer(context, workspace, wanted, plan)
    if not plan.steps or plan.idle:  # nothing will change; an undo of work that left no trace still moves on
        return tell(context, workspace, workspace.apply(plan))
    if not plan.taken and plan.request.verb not in ("undo", "redo") and not _could_merge(context, plan):
        return at_once(context, workspace, lambda: workspace.apply(plan), wanted.all_steps)  # a yes changes nothing
    if not context.asks:
        return needs_yes(context, workspace, plan, wanted.all_steps)
    return ask(context, workspace, plan, wanted)


def _say_fewer(context: Context, workspace: Workspace, wanted: Asked, plan: Plan) -> None:
    """`undo 100` where there are 3 turns is all 3 of them, and says so."""
    if wanted.verb not in ("undo", "redo") or not wanted.words:
        return
    known = workspace.history().takebacks
    takebacks = [id for id in plan.request.takebacks if id in known and known[id].rows]
    there = len(plan.request.turns if wanted.verb == "undo" else takebacks)
    if 0 < there < int(wanted.words[0]):
        what = counted(there, "turn" if wanted.verb == "undo" else "take-back")
        context.terminal.hint(f"there {'is' if there == 1 else 'are'} only {what} to {wanted.verb}")


def _could_merge(context: Context, plan: Plan) -> bool:
    return context.asks and any(step.merges for step in plan.steps)


def at_once(context: Context, workspace: Workspace, work: Callable[[], Outcome], all_steps: bool) -> int:
    """Acts with nobody in between; the plan is shown with what came of it."""
    outcome = with_progress(context, workspace, work, "paths done:")
    if not context.json and not context.terminal.quiet and outcome.plan.steps and not outcome.plan.idle:
        for line in plans.lines(context.terminal, workspace, outcome.plan, all_steps):
            context.terminal.write(line)
    return tell(context, workspace, outcome)


def ask(context: Context, workspace: Workspace, plan: Plan, wanted: Asked) -> int:
    """Shows the plan until it is approved or declined. What is approved is exactly what was shown: the core
    refuses a plan that is stale by then."""
    terminal = context.terminal
    show(context, workspace, plan, wanted.all_steps)
    while True:
        merges = any(step.merges for step in plan.steps)
        answer = terminal.ask(f"Apply? [y/N/d diff{'/m merge' if merges else ''}]").lower()
        if answer in ("d", "diff"):
            terminal.page(list(diffs.lines(terminal, plans.diff_of(workspace, plan))))
        elif answer in ("m", "merge") and merges:
            wanted = wanted._replace(merge=True)
            plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
            show(context, workspace, plan, wanted.all_steps)
        elif answer in ("y", "yes"):
            return _apply(context, workspace, plan)
        else:
            terminal.say("nothing was changed")
            return 4


def _apply(context: Context, workspace: Workspace, plan: Plan) -> int:
    return tell(context, workspace, with_progress(context, workspace, lambda: workspace.apply(plan), "paths done:"))


def show(context: Context, workspace: Workspace, plan: Plan, all_steps: bool = False) -> None:
    if context.json:
        context.terminal.json({"plan": shapes.plan(plan, workspace.history()), "applied": False})
    elif not plan.steps or plan.idle:
        context.terminal.write(nothing_said(plan))
    else:
        shown = plans.lines(context.terminal, workspace, plan, all_steps)
        if all_steps:
            context.terminal.page(shown)
        else:
            for line in shown:
                context.terminal.write(line)


def needs_yes(context: Context, workspace: Workspace, plan: Plan, all_steps: bool) -> int:
    error = ApprovalNeeded("nothing was changed: this needs a yes", "add --yes to do it, or run it on a terminal")
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
    what = {"redo": "nothing to redo", "undo": "nothing to undo"}.get(plan.request.verb, "nothing to take back")
    if plans.others_work(plan):
        return what
    if plan.request.verb == "rollback" and not plan.left:
        what += f": the tree is as in {safe(plan.request.label)}"
    elif plan.request.verb == "restore":
        what += f": these paths are as in {safe(plan.request.label)}"
    return what


def tell(context: Context, workspace: Workspace, outcome: Outcome) -> int:
    if context.json:
        context.terminal.json(shapes.outcome(outcome, workspace.history()))
        return 0 if outcome.whole else 3
    if not outcome.results and not outcome.finished_earlier:
        context.terminal.say(nothing_said(outcome.plan) if not outcome.id else "stepped over work that left no trace")
        if others := plans.others_work(outcome.plan):
            context.terminal.hint(plans.left(others))
        return 0
    return outcomes.report(context.terminal, workspace, outcome)
