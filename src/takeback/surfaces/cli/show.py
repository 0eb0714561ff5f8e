"""show: one entry of the log in full."""

from __future__ import annotations

from ...units import format_size
from . import diffs, shapes
from .log import mark
from .terminal import age, moment, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...views import Shown
    from .context import Context
    from .parsing import Namespace, Parser
    from .terminal import Terminal


def add(parser: Parser) -> None:
    parser.synopsis = "ID"
    parser.about = (
        "One entry in full: of a checkpoint the tree it holds, of an effect its changes, of a\n"
        "take-back what it took and what it kept."
    )
    parser.takes("ID", "name", help="a number, a label, or how an id begins")
    parser.takes("--stat", "--stat", action="store_true", help="one line per file, no hunks")
    parser.examples = [
        ("takeback show 12", "by its number in the log"),
        ("takeback show nmlk", "by how its id begins"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open(when_off=True) as workspace:
        found = workspace.show(args.name)
        if context.json:
            context.terminal.json(_shape(found))
        else:
            when = f"{moment(found.row.at)}, {age(workspace.clock() - found.row.at)}"
            context.terminal.page(_lines(context.terminal, found, when, args.stat))
        return 0


def _lines(terminal: Terminal, found: Shown, when: str, stat: bool) -> Iterator[str]:
    row = found.row
    label = f' "{safe(row.label)}"' if row.label else ""
    yield f"{mark(terminal, row)} {terminal.style(f'{row.kind} {row.number}{label}', 'bold')}"
    yield f"  id       {row.id}"
    yield f"  at       {when}"
    if row.actor:
        yield f"  actor    {safe(row.actor)}"
    yield f"  summary  {safe(row.summary)}"
    if row.kind == "effect":
        yield f"  live     {'yes' if row.live else 'no, taken back'}"
    for id in found.undone_by:
        yield f"  taken by {id[:8]}"
    for path, why in found.partial:
        yield terminal.style(f"  lacks    {safe(path)}: {safe(why)}", "red")
    for path, id in found.took:
        yield f"  took     {safe(path)} of {id[:8]}"
    for path, id in found.kept:
        yield f"  kept     {safe(path)} of {id[:8]} · take it too: takeback revert {id[:8]} --force"
    if found.files:
        yield ""
        yield from (diffs.stat_lines if stat else diffs.lines)(terminal, found.files)
        yield diffs.totals(terminal, found.files)
    if found.tree:
        yield ""
        for path, kind, mode, size in found.tree:
            what = format_size(size) if kind == "file" else kind
            yield f"  {mode:04o}  {what:>9}  {safe(path)}{'/' if kind == 'folder' else ''}"


def _shape(found: Shown) -> dict[str, object]:
    return {
        **shapes.log_row(found.row),
        "files": [shapes.file_diff(f) for f in found.files],
        "lacking": shapes.pairs(found.partial),
        "took": [{"path": p, "effect": id} for p, id in found.took],
        "kept": [{"path": p, "effect": id} for p, id in found.kept],
        "undone_by": list(found.undone_by),
        "tree": [{"path": p, "kind": k, "mode": m, "size": s} for p, k, m, s in found.tree],
    }
