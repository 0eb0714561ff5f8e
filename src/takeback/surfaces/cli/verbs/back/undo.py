"""undo: the last thing, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli import take_back_flow
from takeback.surfaces.wording import paths

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[N|TURN]"
    parser.about = (
        "Takes back the newest turn: an agent's turn, or what was changed by hand between two\n"
        "checkpoints. Each further undo goes one turn further back. What somebody else changed\n"
        "since is kept and named. `undo N` is one take-back: one redo brings all N back. A turn is\n"
        "named by its id or by words of its prompt, and later ones stay; so is a call, alone.\n"
        "Threads stay, and it says how far ahead they are; --with-state takes what the turn did to them too.\n"
        "--conversation makes a session of the agent that ends before the turn, and says how to go on in\n"
        "it; the old one stays. Claude Code, Codex and opencode can do that; of others it says what you do."
    )
    parser.takes("N|TURN", "n", nargs="*", help="how many turns, one if not given; or which one")
    take_back_flow.add_options(parser, scope=True)
    take_back_flow.add_state(parser)
    parser.takes(
        "--conversation", "--conversation", action="store_true", help="make the agent's conversation end before it, too"
    )
    parser.examples = [
        ("takeback undo", "the last turn"),
        ("takeback undo 3 --yes", "the last three, without asking"),
        ('takeback undo "login form"', "the turn that was asked for it"),
        ("takeback undo --actor claude", "the last turn of claude"),
        ("takeback undo --dry-run", "only look"),
        ("takeback undo --conversation", "and go on in a session that knows nothing of it"),
    ]


def run(context: Context, args: Namespace) -> int:
    context.forgets = args.conversation
    with context.open() as workspace:
        words = tuple(paths.entry(context, workspace, word) for word in take_back_flow.one_at_most("undo", args.n))
        asked = take_back_flow.asked("undo", words, args)
        wanted = take_back_flow.within(workspace, asked, args)
        return take_back_flow.take_back(context, workspace, wanted)
