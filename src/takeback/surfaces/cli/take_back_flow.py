"""The flow that undo, redo, rollback, revert and restore share: plan, show, ask, apply exactly that, tell.

--yes           plan and apply in one go; not what acts outside the files, unless policy allows it: exit 4
a terminal      plan ─► shown ─► [y/N/d/m] for the files ─► yes, typed, for what acts outside them ─► apply
                where it asks about work that is not an agent's: [t take it/k keep it/N/d/m] instead of y
neither         plan ─► shown; nothing is changed, exit 4

After an interruption a person at a terminal is asked what becomes of that. Elsewhere one that was cut off is finished,
and nothing more; one that a person stopped is left to them: exit 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded, CredentialNeeded, Stale, UsageError
from takeback.model.effects import STATES, Outcome, Plan
from takeback.surfaces.cli.verbs.back import conversations
from takeback.surfaces.wording import (
    diffs,
    effects_outside,
    json_shapes,
    json_thread_shapes,
    plans,
    threads,
)
from takeback.surfaces.wording.take_backs import Asked, fuller_plan, must_be_known, write_outcome, write_plan
from takeback.surfaces.wording.text import counted, safe

from . import approving, unfinished, who_is_looking
from .captured import with_progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from takeback.workspace import Workspace

    from .context import Context
    from .parsing import Namespace, Parser


def add_options(parser: Parser, whose: bool = True, merging: bool = True, scope: bool = False) -> None:
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
    if scope:
        add_scope(parser)
    parser.takes("--dry-run", "--dry-run", action="store_true", help="print the plan and change nothing")
    parser.takes("--all-steps", "--all-steps", action="store_true", help="show every step, however many")


def add_scope(parser: Parser) -> None:
    parser.takes("--only DOMAIN[,…]", "--only", action="append", default=None, help="only there: files, git, http, …")
    parser.takes("--except DOMAIN[,…]", "--except", action="append", default=None, help="everywhere but there")


def add_state(parser: Parser) -> None:
    parser.takes("--with-state", "--with-state", dest="state", action="store_true", help="threads too")


def domains(workspace: Workspace, given: list[str] | None) -> tuple[str, ...]:
    """The domains of --only and --except, in one word with commas or in several."""
    found = [name.strip() for word in given or () for name in word.split(",") if name.strip()]
    if given and not found:
        raise UsageError("--only and --except need a domain", "such as --only files")
    must_be_known(workspace, found)
    return tuple(sorted(set(found)))


def asked(verb: str, words: tuple[str | int, ...], args: Namespace) -> Asked:
    actors = getattr(args, "actor", None)
    return Asked(
        verb,
        words,
        None if actors is None else tuple(actors),
        getattr(args, "everything", False),
        getattr(args, "merge", False),
        getattr(args, "markers", False),
        getattr(args, "force", False),
        args.dry_run,
        args.all_steps,
        state=getattr(args, "state", False),
    )


def within(workspace: Workspace, wanted: Asked, args: Namespace) -> Asked:
    """Narrowed to the domains that were named."""
    without = getattr(args, "except")
    return wanted._replace(only=domains(workspace, args.only), without=domains(workspace, without))


def one_at_most(verb: str, words: list[str]) -> tuple[str, ...]:
    if len(words) > 1:
        raise UsageError(f"{verb} takes one target at most, not {len(words)}", f"see takeback help {verb}")
    return tuple(words)


def take_back(context: Context, workspace: Workspace, wanted: Asked) -> int:
    approving.name_asking(context, workspace)
    if wanted.dry_run:
        plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
        show(context, workspace, plan, wanted.all_steps)
        _say_fewer(context, workspace, wanted, plan)
        return 0
    if workspace.interrupted():
        if context.asks:
            return unfinished.ask(context, workspace)
        workspace.must_not_be_stopped()
        if (outcome := workspace.resume()) is not None:  # it was approved when it began
            return tell(context, workspace, outcome)
    if context.yes:

        def work() -> Outcome:
            outcome = workspace.take_back(wanted.verb, *wanted.words, **wanted.options)
            if not outcome.finished_earlier:
                _say_fewer(context, workspace, wanted, outcome.plan)
            return outcome

        try:
            return at_once(context, workspace, work, wanted.all_steps)
        except (Stale, CredentialNeeded):
            raise
        except ApprovalNeeded:
            return needs_person(context, workspace, wanted)
    plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
    _say_fewer(context, workspace, wanted, plan)
    if plan.asks and context.asks and not approving.agent_above(context, workspace):
        return ask(context, workspace, plan, wanted)
    if not plan.steps or plan.idle:  # nothing will change; an undo of work that left no trace still moves on
        return tell(context, workspace, workspace.apply(plan))
    outside_only = plan.request.verb == "redo" and all(step.domain not in STATES for step in plan.steps)
    moves_on = plan.request.verb in ("undo", "redo") and not outside_only
    if not plan.taken and not moves_on and not _could_merge(context, plan):
        return at_once(context, workspace, lambda: workspace.apply(plan), wanted.all_steps)  # a yes changes nothing
    if context.asks:
        return ask(context, workspace, plan, wanted)
    if any(workspace.unapproved(plan)):
        return needs_person(context, workspace, wanted)
    return needs_yes(context, workspace, plan, wanted.all_steps)


def _say_fewer(context: Context, workspace: Workspace, wanted: Asked, plan: Plan) -> None:
    """`undo 100` where there are 3 turns is all 3 of them, and says so."""
    if wanted.verb not in ("undo", "redo") or not wanted.words or not str(wanted.words[0]).isdecimal():
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
    outcome = with_progress(context, workspace, work, "looking at")
    if not context.json and not context.terminal.quiet and outcome.plan.steps and not outcome.plan.idle:
        for line in plans.lines(context.terminal, workspace, outcome.plan, all_steps):
            context.terminal.write(line)
    return tell(context, workspace, outcome)


def ask(context: Context, workspace: Workspace, plan: Plan, wanted: Asked) -> int:
    """Shows the plan until it is approved or declined. What is approved is exactly what was shown: the core
    refuses a plan that is stale by then."""
    terminal = context.terminal
    agent = approving.agent_above(context, workspace)
    fuller = fuller_plan(workspace, plan, wanted, agent)
    _show_both(context, workspace, plan, fuller, wanted)
    planned = [plan] if fuller is None else [plan, fuller]
    if any(any(workspace.unapproved(each)) for each in planned) and _has_first_question(workspace, plan):
        terminal.hint("(what acts outside the files is asked for next, by typing yes)")
    while _has_first_question(workspace, plan):
        merges = any(step.merges for step in plan.steps)
        keys = f"t take {plans.asked_said(plan)} too/k keep it/N" if fuller else "y/N"
        answer = terminal.ask(f"Apply? [{keys}/d diff{'/m merge' if merges else ''}]").lower()
        if answer in ("d", "diff"):
            _show_diff(context, workspace, plan, fuller)
        elif answer in ("m", "merge") and merges:
            wanted = wanted._replace(merge=True)
            plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options)
            fuller = fuller_plan(workspace, plan, wanted, agent) if fuller else None
            _show_both(context, workspace, plan, fuller, wanted)
        elif fuller is not None and answer in ("t", "take"):
            plan, wanted = fuller, wanted._replace(also=fuller.request.also)
            break
        elif answer in (("k", "keep") if fuller else ("y", "yes")):
            break
        elif fuller is not None and answer in ("y", "yes"):
            terminal.hint(f"t takes {plans.asked_said(plan)} too, k keeps it, N changes nothing")
        else:
            terminal.say("nothing was changed")
            return 4
    return _apply_outside(context, workspace, plan, wanted) if plan.outside else _apply(context, workspace, plan)


def _show_both(context: Context, workspace: Workspace, plan: Plan, fuller: Plan | None, wanted: Asked) -> None:
    """The plan and, apart, what the fuller one would do besides: whichever is applied, it was shown."""
    if fuller is None:
        show(context, workspace, plan, wanted.all_steps)
    else:
        write_plan(context.terminal, workspace, plan, wanted.all_steps, fuller)


def _show_diff(context: Context, workspace: Workspace, plan: Plan, fuller: Plan | None) -> None:
    mask, terminal = who_is_looking.Mask(context, workspace), context.terminal
    shown = list(diffs.lines(terminal, mask.files(plans.diff_of(workspace, plan))))
    if fuller is not None:
        shown.append(terminal.style(f"with {plans.asked_said(plan)}:", "bold"))
        shown += diffs.lines(terminal, mask.files(plans.diff_of(workspace, plans.besides(plan, fuller))))
    if any(step.domain == "state" for step in plan.taken):
        shown += threads.planned(terminal, workspace, plan, mask.differences)
    terminal.page(shown)
    mask.tell()


def _has_first_question(workspace: Workspace, plan: Plan) -> bool:
    """Files are asked for by a letter; a plan that only acts outside them goes on to the word that has to be typed."""
    if plan.asks:
        return True
    return len(plan.outside) < len(plan.taken) or not plan.outside or not any(workspace.unapproved(plan))


def _apply_outside(context: Context, workspace: Workspace, plan: Plan, wanted: Asked) -> int:
    workspace.must_be_ready(plan)  # before anybody is asked for a yes that nothing could come of
    credentials = approving.outside(context, workspace, plan)
    if credentials is None:
        context.terminal.say("nothing was changed")
        if len(plan.outside) < len(plan.taken):
            context.terminal.hint(wanted.inside)
        return 4
    if any(workspace.unapproved(plan)):
        workspace.approve(plan, credentials)
    return _apply(context, workspace, plan)


def _apply(context: Context, workspace: Workspace, plan: Plan) -> int:
    work, total = (lambda: workspace.apply(plan)), len(plan.taken)
    return tell(context, workspace, with_progress(context, workspace, work, "looking at", total))


def show(context: Context, workspace: Workspace, plan: Plan, all_steps: bool = False) -> None:
    if context.json:
        context.terminal.json({"plan": _shape(workspace, plan), "applied": False})
    else:
        write_plan(context.terminal, workspace, plan, all_steps)


def _shape(workspace: Workspace, plan: Plan) -> dict[str, Any]:
    return json_shapes.plan(plan, workspace.history(), effects_outside.describer(workspace))


def needs_yes(context: Context, workspace: Workspace, plan: Plan, all_steps: bool) -> int:
    error = ApprovalNeeded("nothing was changed: this needs a yes", "add --yes to do it, or run it on a terminal")
    return _refuse(context, workspace, plan, all_steps, error)


def needs_person(context: Context, workspace: Workspace, wanted: Asked) -> int:
    """What acts outside the files is beyond --yes: the plan is saved for a person to approve, and nothing is done."""
    plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options, save=True)
    steps, unbound = workspace.unapproved(plan)
    parts = [f"{counted(len(steps), 'step')} outside the files"] if steps else []
    parts += [f"sending {c.name} to {c.origin}" for c in unbound]
    need = "needs" if len(steps) + len(unbound) == 1 else "need"
    go_on = f"a person runs takeback approve {plan.id[:8]}, then takeback apply {plan.id[:8]} does it from anywhere"
    if len(plan.outside) < len(plan.taken) and wanted.verb != "compensate":
        go_on += f"; or {wanted.inside}" + " --yes" * context.yes
    error = ApprovalNeeded(f"nothing was changed: {' and '.join(parts)} {need} a person's yes", go_on)
    return _refuse(context, workspace, plan, wanted.all_steps, error)


def _refuse(context: Context, workspace: Workspace, plan: Plan, all_steps: bool, error: ApprovalNeeded) -> int:
    """The plan, why it was not applied, and how to go on."""
    if context.json:
        told = {"message": error.message, "hint": error.hint, "code": error.exit_code}
        context.terminal.json({"plan": _shape(workspace, plan), "applied": False, "error": told})
    else:
        show(context, workspace, plan, all_steps)
    context.terminal.warn(f"takeback: {safe(error.message)}")
    context.terminal.warn(f"  → {safe(error.hint)}")
    return error.exit_code


def tell(context: Context, workspace: Workspace, outcome: Outcome) -> int:
    if context.forgets:
        return _tell_and_forget(context, workspace, outcome)
    if context.json:
        context.terminal.json(_told(workspace, outcome))
        return 0 if outcome.whole else 3
    return write_outcome(context.terminal, workspace, outcome)


def _tell_and_forget(context: Context, workspace: Workspace, outcome: Outcome) -> int:
    if context.json:
        found = conversations.forgotten(context, workspace, outcome)
        context.terminal.json({**_told(workspace, outcome), "conversation": [each._asdict() for each in found]})
        return 0 if outcome.whole and not any(each.why for each in found) else 3
    code = write_outcome(context.terminal, workspace, outcome, forgets=True)
    return conversations.tell(context.terminal, conversations.forgotten(context, workspace, outcome)) or code


def _told(workspace: Workspace, outcome: Outcome) -> dict[str, Any]:
    shape = json_shapes.outcome(outcome, workspace.history(), effects_outside.describer(workspace))
    return {**shape, **json_thread_shapes.rolled_back(workspace, outcome)}
