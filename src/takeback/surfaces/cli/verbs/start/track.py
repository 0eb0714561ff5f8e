"""track: captures just these paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.surfaces.cli.captured import lacking, vouching
from takeback.surfaces.wording import json_shapes, paths
from takeback.surfaces.wording.text import listed

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "PATH…"
    parser.about = (
        "Captures just these paths, before they change or after, without looking at the rest of\n"
        "the tree. A path that does not exist yet is noted as absent, so that it can be deleted by\n"
        "a take-back once it is there. It is a point of these paths: `restore` brings them back as\n"
        "they are now, `revert` takes back what agents do to them from here on; both by the id that it\n"
        "prints. TAKEBACK_ACTOR vouches for what changed."
    )
    parser.takes("PATH…", "path", nargs="*", help="files or folders of the project")
    parser.examples = [
        ("takeback track src/auth.py", "before a tool writes it"),
        ("TAKEBACK_ACTOR=claude takeback track src/auth.py", "after claude wrote it"),
    ]


def run(context: Context, args: Namespace) -> int:
    with context.open() as workspace:
        given = args.path
        if not given:
            raise UsageError("track needs at least one path", "takeback track PATH…")
        wanted = paths.all_inside(context, workspace, given, present=True)
        tracked = workspace.track(wanted, actor=vouching(context, workspace))
        if context.json:
            shape = {"id": tracked.id, "paths": list(tracked.paths), "changed": list(tracked.changed)}
            context.terminal.json({**shape, "lacking": json_shapes.pairs(tracked.lacking)})
            return 3 if tracked.lacking else 0
        held = sorted({*tracked.paths} - {path for path, _ in tracked.lacking})
        changed = f"; changed since the last look: {listed(tracked.changed)}" if tracked.changed else ""
        context.terminal.say(f"tracked {listed(held) or 'nothing'} as {tracked.id[:8]}{changed}")
        if held:
            context.terminal.hint(f"bring it back as it is now: takeback restore {tracked.id[:8]}")
        return lacking(context, tracked.lacking, "some paths are not tracked")
