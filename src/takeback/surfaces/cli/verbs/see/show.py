"""show: one entry of the log in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli import who_is_looking
from takeback.surfaces.wording import paths
from takeback.surfaces.wording.entry import lines, shape
from takeback.surfaces.wording.text import age, moment

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "ID"
    parser.about = (
        "One entry in full: of a checkpoint the tree it holds, of an effect its changes, of one outside\n"
        "the files what takes it back and what became of that, of a take-back what it took, kept\n"
        "and did not do; of an agent's turn its prompt and calls, of a call its tool, how it ended and\n"
        "what it changed.\n"
        "Anywhere but on your own terminal secret files (.env, keys) and tokens are masked."
    )
    parser.takes("ID", "name", help="a checkpoint's number or label, how an id begins, words of a prompt")
    parser.takes("--stat", "--stat", action="store_true", help="one line per file, no hunks")
    who_is_looking.add_option(parser)
    parser.examples = [
        ("takeback show 12", "by its number in the log"),
        ("takeback show nmlk", "by how its id begins; turns and calls of agents too"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open(when_off=True) as workspace:
        mask = who_is_looking.Mask(context, workspace, args.unmasked)
        found = workspace.show(paths.entry(context, workspace, args.name))
        files = mask.files(found.files, args.stat and not context.json)
        found = found._replace(files=files)
        if context.json:
            context.terminal.json({**shape(found), "masked": mask.masked})
        else:
            when = f"{moment(found.row.at)}, {age(workspace.clock() - found.row.at)}"
            context.terminal.page(lines(context.terminal, found, when, args.stat))
        mask.tell()
        return 0
