"""plan: any take-back as a saved plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.surfaces.cli import approving, take_back_flow
from takeback.surfaces.wording import effects_outside, json_shapes, paths, plans, take_backs, threads_in_plans

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser

VERBS = ("undo", "redo", "rollback", "revert", "restore", "compensate")


def add(parser: Parser) -> None:
    parser.synopsis = "VERB [ARGS]"
    parser.about = (
        "Plans undo, redo, rollback, revert, restore or compensate, prints the steps and saves them.\n"
        "Nothing in the project changes. `takeback apply` carries out exactly this plan, or refuses it\n"
        "once the same request would do something else; what it does outside the files needs\n"
        "`takeback approve` first."
    )
    parser.takes("VERB", "planned", nargs="?", default="", help="one of " + ", ".join(VERBS))
    parser.takes("ARGS", "words", nargs="*", help="what that verb takes, with its options")
    take_back_flow.add_options(parser, scope=True)
    take_back_flow.add_state(parser)
    parser.examples = [
        ("takeback plan rollback", "plan, and print the id of the plan"),
        ("takeback plan revert src/auth.py --merge", ""),
        ("takeback apply nmlk --yes", "do exactly that"),
    ]


def run(context: Context, args: Namespace) -> int:
    if args.planned not in VERBS:
        what = f"{args.planned!r} cannot be planned" if args.planned else "plan needs a verb"
        raise UsageError(what, f"plan one of: {', '.join(VERBS)}")
    with context.open() as workspace:
        words = tuple(args.words)
        if args.planned == "revert":
            words = tuple(paths.ids_or_paths(context, workspace, words))
        elif args.planned == "restore":
            point = [paths.entry(context, workspace, word) for word in words[:1]]
            words = (*point, *paths.all_inside(context, workspace, words[1:]))
        else:
            words = take_back_flow.one_at_most(args.planned, list(words))
            words = tuple(paths.entry(context, workspace, word) for word in words)
        wanted = take_back_flow.within(workspace, take_back_flow.asked(args.planned, words, args), args)
        approving.name_asking(context, workspace)
        plan = workspace.plan(wanted.verb, *wanted.words, **wanted.options, save=not args.dry_run)
        if context.json:
            context.terminal.json(
                {"plan": json_shapes.plan(plan, workspace.history(), effects_outside.describer(workspace))}
            )
            return 0
        if not plan.steps:
            context.terminal.write(take_backs.nothing_said(plan))
            for line in plans.left_lines(plan, workspace.history(), context.terminal.typed):
                context.terminal.hint(line)
        for line in plans.lines(context.terminal, workspace, plan, args.all_steps) if plan.steps else ():
            context.terminal.write(line)
        for line in threads_in_plans.lines(plan):
            context.terminal.write(line)
        if plan.id:
            context.terminal.write(f"plan {context.terminal.style(plan.id, 'bold')}")
            if any(workspace.unapproved(plan)):
                context.terminal.hint(f"it acts outside the files: a person runs takeback approve {plan.id[:8]} first")
            context.terminal.hint(f"do exactly this: takeback apply {plan.id[:8]}")
        return 0
