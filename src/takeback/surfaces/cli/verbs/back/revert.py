"""revert: one effect or one path, and the rest stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli import take_back_flow
from takeback.surfaces.wording import paths

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "TURN|ID|PATH…"
    parser.about = (
        "Takes back one effect and keeps the rest; or, of a path, what agents did to it since the last\n"
        "checkpoint or `track`, else their newest change: what people wrote there is kept, or merged\n"
        "with --merge, and named. A folder is one path with all in it: people's files beside the agents'\n"
        "stay. Of a path where no agent changed anything, what people did since then. With an id and a\n"
        "path, what that effect did to that path; with the id of a track, what agents did to its paths\n"
        "since. What is called like a path is the path, before it is how an id begins. Of a turn or\n"
        "call, what others did at the same time is kept and named; it goes with the last of them, or by\n"
        "its own id. Of a take-back it is the redo of just that one. For a path as of a checkpoint there\n"
        "is `restore`."
    )
    parser.takes("TURN|ID|PATH…", "what", nargs="*", help="turns, calls and effects, or files and folders")
    take_back_flow.add_options(parser, whose=False, scope=True)
    parser.examples = [
        ("takeback revert src/auth.py", "what agents did to one file of late"),
        ("takeback revert nmlk", "all that one effect did; outside the files, its inverse"),
        ("takeback revert nmlk src/auth.py", "of that one effect, one file"),
        ('takeback revert "login form"', "all that the turn did which was asked for it"),
        ("takeback revert nmlk --merge", "and keep, by a merge, what came after it"),
        ("takeback revert -- -odd-name", "a path that looks like an option"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        words = tuple(paths.ids_or_paths(context, workspace, args.what))
        wanted = take_back_flow.within(workspace, take_back_flow.asked("revert", words, args), args)
        return take_back_flow.take_back(context, workspace, wanted)
