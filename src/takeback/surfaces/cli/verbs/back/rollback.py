"""rollback: to a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import TakebackError
from takeback.surfaces.cli import take_back_flow
from takeback.surfaces.cli.verbs.see import ui
from takeback.surfaces.wording import paths, take_backs

from .choose_checkpoint import choose_checkpoint

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "[CHECKPOINT|TURN]"
    parser.about = (
        "Goes back to a checkpoint; given a turn, call or effect, to just before it. Without a target\n"
        "a terminal lists the checkpoints to choose from (with the extra takeback[ui] beside what would\n"
        "change); otherwise it is the newest named one. Files created since are deleted, stored first:\n"
        "`takeback redo` brings everything back. Where agents were at work, the plan shows what is whose\n"
        "and asks once about what people did since, by hand or by `run`: one key takes it, one keeps it.\n"
        "Where nobody can be asked it is kept and named; --all takes it. What was done outside the files\n"
        "goes back in the same plan, newest first, after a typed yes: --yes does not cover it.\n"
        "Threads stay, and it says how far ahead they are; --with-state takes each to its head of then."
    )
    parser.takes("CHECKPOINT|TURN", "to", nargs="*", help="a number, a label, how an id begins, words of a prompt")
    take_back_flow.add_options(parser, scope=True)
    take_back_flow.add_state(parser)
    parser.examples = [
        ("takeback rollback", "choose a checkpoint, see the plan, confirm"),
        ('takeback rollback "before the refactor"', "by its label"),
        ("takeback rollback 12 --yes", "by its number, without asking"),
        ('takeback rollback "before: add a login form"', "to just before that prompt"),
        ("takeback rollback kxvm --merge", "merge what you changed meanwhile"),
        ("takeback rollback --only files", "leave what was done outside the files"),
        ("takeback rollback 12 --with-state", "what agents remember too, in one plan"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        words = tuple(paths.entry(context, workspace, word) for word in take_back_flow.one_at_most("rollback", args.to))
        wanted = take_back_flow.within(workspace, take_back_flow.asked("rollback", words, args), args)
        if not words and context.asks and not args.dry_run and not workspace.interrupted():
            if (code := pick(context, workspace, wanted)) is not None:
                return code
            chosen = choose_checkpoint(context, workspace)
            wanted = wanted._replace(words=(chosen,) if chosen else ())
        return take_back_flow.take_back(context, workspace, wanted)


def pick(context: Context, workspace: Workspace, wanted: take_backs.Asked) -> int | None:
    """The picker of `takeback ui`, to the end; None where it cannot be had, or there is nothing to choose from."""
    if context.environ.get("TERM", "") in ("dumb", "") or len(workspace.history().checkpoints) < 2:
        return None
    try:
        ui.must_be_there()
    except TakebackError:
        return None
    with context.open(tell=False) as looking:
        return ui.run_picker(context, looking, workspace, wanted)
