"""diff: the changes line by line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from takeback.errors import NotFound, UsageError
from takeback.journal.names import exactly
from takeback.surfaces.cli import who_is_looking
from takeback.surfaces.wording import diffs, json_shapes, paths

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace


def add(parser: Parser) -> None:
    parser.synopsis = "[A] [B] [-- PATH…]"
    parser.about = (
        "Compares checkpoint A (the newest named one) with now, or with checkpoint B: per file new,\n"
        "modified, deleted, renamed, mode or type, its hunks, and totals. Journals nothing. Anywhere but\n"
        "on your own terminal secret files (.env, keys) and tokens are masked."
    )
    parser.takes("A, B", "what", nargs="*", help="checkpoints, or turns and calls: just before them")
    parser.takes("-- PATH…", "--path", action="append", default=[], help="only these files or folders")
    parser.takes("--stat", "--stat", action="store_true", help="one line per file, no hunks")
    who_is_looking.add_option(parser)
    parser.has_after = True
    parser.examples = [
        ("takeback diff", "since the newest named checkpoint"),
        ("takeback diff 3 7 --stat", "between two checkpoints, in short"),
        ("takeback diff start -- src/", "one folder, since the start"),
        ("takeback diff --unmasked > all.diff", "into a file, secrets included"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open(when_off=True) as workspace:
        names, wanted = _sort_out(context, workspace, args.what)
        within = paths.all_inside(context, workspace, [*wanted, *args.path, *args.after])
        a, b = [*names, "", ""][:2]
        mask = who_is_looking.Mask(context, workspace, args.unmasked)
        found = workspace.diff(a, b, within)
        files = mask.files(found.files, args.stat and not context.json)
        if context.json:
            shape = {
                "a": json_shapes.checkpoint(found.a),
                "b": None if found.b is None else json_shapes.checkpoint(found.b),
                "files": [json_shapes.file_diff(f) for f in files],
            }
            totals = {"added": found.added, "removed": found.removed}
            context.terminal.json({**shape, **totals, "masked": mask.masked})
            mask.tell()
            return 0
        head = " → ".join(diffs.ends(found))
        if not files:
            context.terminal.write(f"{head}: no difference")
            return 0
        body = diffs.stat_lines if args.stat else diffs.lines
        lines = [
            context.terminal.style(head, "bold"),
            *([] if args.stat else [""]),
            *body(context.terminal, files),
        ]
        context.terminal.page([*lines, diffs.totals(context.terminal, files)])
        mask.tell()
        return 0


def _sort_out(context: Context, workspace: Workspace, words: list[str]) -> tuple[list[str], list[str]]:
    """Checkpoints come first; from the first word that is a path, they are paths, as in git."""
    at = next((at for at, word in enumerate(words) if _is_path(context, workspace, word)), len(words))
    if at > 2:
        raise UsageError("diff compares two checkpoints at most", "takeback diff [A] [B] [-- PATH…]")
    return words[:at], words[at:]


def _is_path(context: Context, workspace: Workspace, word: str) -> bool:
    """Whether it is there or was once. Where a checkpoint has this number or label, nobody can tell which is meant."""
    if not os.path.lexists(context.cwd / word) and not paths.is_recorded(context, workspace, word):
        return False
    try:
        found = exactly(workspace.history(), word)
    except NotFound:  # pruned
        return True
    if found is not None:
        raise UsageError(
            f"{word!r} is a path, and also the {found.kind} {found.id[:8]}",
            f"write ./{word} for the path, or {found.id[:8]} for the {found.kind}",
        )
    return True
