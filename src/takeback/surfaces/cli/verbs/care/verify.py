"""verify: whether the store holds what its records say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.care.verify import of_damaged
from takeback.errors import Damaged
from takeback.store import layout
from takeback.surfaces.cli.captured import with_progress
from takeback.surfaces.wording.text import counted, safe

if TYPE_CHECKING:
    from takeback.care.verify import Lost, Verified
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[--data]"
    parser.about = (
        "Walks the journal's hash chain and the record of everything stored, and names the first bad\n"
        "entry and what it costs, exit 1. With --data every stored byte is read and hashed."
    )
    parser.takes("--data", "--data", action="store_true", help="read every stored byte")
    parser.examples = [("takeback verify", "quick"), ("takeback verify --data", "thorough")]


def run(context: Context, args: Namespace) -> int:
    try:
        workspace = context.open()
    except Damaged as error:
        return _tell(context, _of_closed(context, error), args.data)
    with workspace:
        size = sum(workspace.store.blobs.sizes().values()) if args.data else 0
        found = with_progress(context, workspace, lambda: workspace.verify(args.data), "verified", size, "bytes")
        return _tell(context, found, args.data)


def _of_closed(context: Context, error: Damaged) -> Verified:
    """What is found of a store that cannot be opened for damage."""
    home = context.settings().home
    root = layout.find_root(home, context.cwd)
    if root is None:
        raise error
    return of_damaged(layout.folder_of(home, root), error.message)


def _tell(context: Context, found: Verified, data: bool) -> int:
    if context.json:
        shape = {"ok": found.ok, "first_bad": found.first_bad or None, "lost": lost_shape(found.lost)}
        more = {"rows": found.rows, "blobs": found.blobs, "problems": list(found.problems)}
        context.terminal.json({**shape, **more})
        return 0 if found.ok else 1
    if found.ok:
        how = "every byte" if data else "every record"
        counts = f"{counted(found.rows, 'row')}, {counted(found.blobs, 'blob')}, {how}"
        known = f" but for {found.known:,} known loss{'es' * (found.known != 1)}, set aside by repair"
        whole = context.terminal.style("whole", "green")
        context.terminal.say(f"{whole}{known if found.known else ''}: {counts}")
        tell_lost(context, found.lost)
        return 0
    context.terminal.write(f"{context.terminal.style('damaged', 'red')}: {safe(found.first_bad)}")
    for problem in found.problems[1:20]:
        context.terminal.write(f"  also: {safe(problem)}")
    tell_lost(context, found.lost)
    if found.mendable:
        way = "set the damaged parts aside with takeback repair; the rest can still be restored"
    else:
        way = "the journal stays as it is, as evidence; take-backs across the row are refused, all else works"
    context.terminal.hint(f"  → {way}")
    return 1


def lost_shape(lost: tuple[Lost, ...]) -> list[dict[str, str]]:
    return [{"entry": x.entry, "kind": x.kind, "path": x.path, "why": x.why} for x in lost]


def tell_lost(context: Context, lost: tuple[Lost, ...]) -> None:
    for each in lost[:30]:
        context.terminal.write(f"  lost in {each.kind} {each.entry[:8]}: {safe(each.path)} ({safe(each.why)})")
    if len(lost) > 30:
        context.terminal.write(f"  … and {len(lost) - 30:,} more (all of them: --json)")
