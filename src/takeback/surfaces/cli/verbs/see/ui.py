"""ui: the timeline in the terminal."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded, TakebackError, UsageError
from takeback.journal import filters
from takeback.surfaces.cli import approving
from takeback.system.installed import with_extra

from .log import is_term, terms

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.surfaces.wording.take_backs import Asked
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "[FILTER…]"
    parser.about = (
        "The timeline, live, in the whole terminal: turns on the left, opened into calls and effects;\n"
        "on the right what each changed. x takes the chosen one back, after its plan and your yes; b goes\n"
        "back to it; / filters as you type, in the language of takeback log; ? shows every key.\n"
        "Needs the extra ui: pip install '.[ui]' in your clone."
    )
    parser.takes("FILTER…", "filter", nargs="*", help="terms to begin with, as for takeback log")
    parser.is_word = is_term
    parser.examples = [
        ("takeback ui", "everything, newest first"),
        ("takeback ui actor:claude since:2h", "what claude did in the last two hours"),
    ]


def run(context: Context, args: Namespace) -> int:
    if context.json or not context.terminal.interactive:
        raise UsageError("ui needs a terminal", "elsewhere: takeback log --json")
    filters.parse(terms(args))
    with context.open(when_off=True) as looking, context.open(when_off=True, tell=False) as acting:
        must_be_there()
        from takeback.surfaces.tui.app import TimelineApp

        plain = not context.terminal.color
        return TimelineApp(looking, acting, above(context, acting), terms(args), plain).finish()


def must_be_there() -> None:
    """The extra, or how to get it."""
    try:
        import_module("textual")
    except ModuleNotFoundError as error:
        hint = f"install it: {with_extra('ui')}"
        raise TakebackError(f"the ui needs a package that is not installed: {error.name}", hint) from None


def above(context: Context, workspace: Workspace) -> str:
    """Which agent is at work above this terminal; and the workspace knows who asks."""
    approving.name_asking(context, workspace)
    return approving.agent_above(context, workspace)


def run_picker(context: Context, looking: Workspace, acting: Workspace, wanted: Asked) -> int:
    """Chooses a checkpoint and goes back to it; what came of it stays on the terminal."""
    from takeback.surfaces.tui.picker import Picker

    agent = above(context, acting)
    app = Picker(looking, acting, wanted, agent, not context.terminal.color)
    code = app.finish()
    for line in app.said:
        context.terminal.write(line)
    if not app.said:
        raise ApprovalNeeded("nothing was changed: no checkpoint was chosen", "name one: takeback rollback CHECKPOINT")
    return code
