"""report: the account of a session or a span, to hand to somebody."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from typing import TYPE_CHECKING

from takeback.errors import TakebackError, UsageError
from takeback.show import report, report_span
from takeback.surfaces.cli.captured import with_progress
from takeback.surfaces.wording.text import counted, safe

if TYPE_CHECKING:
    from takeback.show.report_values import Report
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser

FORMATS = {"html": "html", "md": "md", "markdown": "md", "json": "json"}


def add(parser: Parser) -> None:
    parser.synopsis = "[SPAN] [--format html|md|json] [--output FILE]"
    parser.about = (
        "What was done, by which prompt, what was taken back and how well, what could not be, whether\n"
        "the journal's chain holds, and activity by domain over time. As one page of HTML, as Markdown\n"
        "or as JSON, with the same content and without secrets: to hand to a colleague or an auditor.\n"
        "Printed as Markdown unless a format is named; a file gets the format its name ends with.\n"
        "SPAN is FROM..TO (either may be left out), one turn, call or effect, or a checkpoint: since then.\n"
        "FROM and TO are what rollback takes, or times such as 2h or 2026-01-31T18:00."
    )
    parser.takes("SPAN", "span", nargs="?", default="", help="what to tell of; without it everything")
    parser.takes("--since AGE", "--since", help="what was done since, such as 2h or 2026-01-31")
    parser.takes("--session S", "--session", help="what one session of an agent did")
    parser.takes("--format F", "--format", help="html, md or json")
    parser.takes("--output FILE", "--output", help="write it there; nothing is replaced without --force")
    parser.takes("--force", "--force", action="store_true", help="replace FILE")
    parser.takes("--no-diffs", "--no-diffs", dest="diffs", action="store_false", help="leave changed lines out")
    parser.takes("--data", "--data", action="store_true", help="verify every stored byte, not every record alone")
    parser.examples = [
        ("takeback report --since 2h", "the last two hours, as Markdown"),
        ("takeback report --output report.html", "everything, as a page"),
        ('takeback report "before the refactor".. --output r.html', "since a checkpoint"),
        ("takeback report kxvm", "one turn"),
        ("takeback report --session 3f2a --json", "one session of an agent, as JSON"),
    ]


def run(context: Context, args: Namespace) -> int:
    if sum(map(bool, (args.span, args.since, args.session))) > 1:
        raise UsageError("a span, --since and --session are different things", "use one of them at a time")
    form = _format(args, context.json)
    if args.output is not None:
        _may_be_written(args.output, args.force)  # said before the work is done
    with context.open(when_off=True) as workspace:
        asked = report_span.find(workspace, args.span, args.since or "", args.session or "")
        size = sum(workspace.store.blobs.sizes().values()) if args.data else 0
        found = with_progress(
            context, workspace, lambda: report.make(workspace, asked, args.diffs, args.data), "verified", size, "bytes"
        )
    written = _written(found, form)
    if args.output is not None:
        _write(args.output, written, args.force)
        _say(context, found, args.output)
    elif form == "json":
        context.terminal.write(written.rstrip("\n"))
    else:
        context.terminal.page(written.rstrip("\n").split("\n"))
    if not found.integrity.ok:
        context.terminal.warn(f"takeback: the journal is damaged, and the report says so: {_first(found)}")
        context.terminal.warn("  → see what that costs with takeback verify")
        return 1
    return 0


def _format(args: Namespace, as_json: bool) -> str:
    if args.format is not None and args.format not in FORMATS:
        raise UsageError(f"there is no format {args.format!r}", "the formats are html, md and json")
    if args.output == "":
        raise UsageError("--output needs a file", "takeback report --output report.html")
    if args.format is not None:
        return FORMATS[args.format]
    if args.output is not None:
        return FORMATS.get(args.output.rpartition(".")[2].lower(), "html")
    return "json" if as_json else "md"


def _written(found: Report, form: str) -> str:
    if form == "html":
        from takeback.surfaces.report import page

        return page.written(found)
    if form == "md":
        from takeback.surfaces.report import markdown

        return markdown.written(found)
    from takeback.surfaces.report.shape import shape

    return json.dumps(shape(found), indent=2) + "\n"


def _write(path: str, written: str, force: bool) -> None:
    """Whole or not at all, and for its owner alone: it holds what the project holds."""
    _may_be_written(path, force)
    try:
        fd, made = tempfile.mkstemp(prefix=".takeback-report-", dir=os.path.dirname(path) or ".")
    except OSError as error:
        raise TakebackError(f"cannot write {path} ({error.strerror})", "name a folder that exists") from None
    try:
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(written)
        _put(made, path, force)
    except OSError as error:
        raise TakebackError(f"cannot write {path} ({error.strerror})", "free space, or name another file") from None
    finally:
        if os.path.lexists(made):
            os.unlink(made)


def _may_be_written(path: str, force: bool) -> None:
    """Of what is there already only a file may be replaced, and only with --force: no folder, device or pipe."""
    if not os.path.lexists(path):
        return
    try:
        found = os.stat(path)
    except OSError:
        found = os.lstat(path)  # a link that leads nowhere
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise TakebackError(f"{path} is there already, and no file", "name another file")
    if not force:
        raise TakebackError(f"{path} is there already", "name another file, or replace it with --force")


def _put(made: str, path: str, force: bool) -> None:
    """Gives the file its name; without --force only if nothing has got that meanwhile."""
    if not force:
        try:
            os.link(made, path)
            return
        except FileExistsError:
            raise
        except OSError:
            pass  # a file system without links
    os.replace(made, path)


def _say(context: Context, found: Report, path: str) -> None:
    if context.json:
        context.terminal.json({"output": path, "totals": found.totals._asdict(), "ok": found.integrity.ok})
        return
    told = found.totals
    parts = [counted(told.turns, "turn"), counted(told.effects, "effect"), counted(told.takebacks, "take-back")]
    context.terminal.say(f"wrote {safe(path)}: {', '.join(parts)}; secrets are masked")
    context.terminal.hint("it names paths, prompts and changed lines: look at it before you hand it on")


def _first(found: Report) -> str:
    return safe(found.integrity.problems[0]) if found.integrity.problems else "what it names is lost"
