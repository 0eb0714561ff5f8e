"""log: turns of agents with what they did, checkpoints, effects and take-backs, newest first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.journal.filters import KEYS
from takeback.show import views
from takeback.surfaces.cli import ledger as ledger_of_cli
from takeback.surfaces.cli import who_is_looking
from takeback.surfaces.wording import diffs, json_shapes
from takeback.surfaces.wording.log import lines, oneline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.show.views import LogRow
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.workspace import Workspace

_ABOUT = 90  # characters of what is told about a key of the filter, in one line


def add(parser: Parser) -> None:
    parser.synopsis = "[FILTER…] [-N] [--since WHEN] [-p] [--oneline]"
    keys = "\n".join(f"  {key + ':':<10}{_in_two(about)}" for key, (_, about) in KEYS.items())
    parser.about = (
        "Everything that is known, newest first: ● named checkpoint, ○ automatic one, ~ effect,\n"
        "» effect outside the files, ⊘ call that the gate asked about or refused, ↩ take-back, with a\n"
        "line down to what it took. ◆ is an agent's turn, and below it what it did, with what others\n"
        "did between its calls. What was taken back is dim and marked. The filter's terms must all\n"
        "match; several values stand between commas, - before a term turns it round, other words are\n"
        f"looked for in label, summary and prompt:\n{keys}"
    )
    parser.takes("FILTER…", "filter", nargs="*", help="terms such as actor:claude path:src/ since:2h")
    parser.takes("-n N, -N", "-n", dest="most", default=None, help="at most N entries, as in log -3")
    parser.takes(
        "--since, --after WHEN", "--since", "--after", dest="since", help='not before: 2h, 2026-01-31, "2 days ago"'
    )
    parser.takes("--until, --before WHEN", "--until", "--before", dest="until", help="not after, written the same way")
    parser.takes("-p, --patch", "-p", "--patch", action="store_true", help="with what each entry changed, line by line")
    parser.takes("--oneline", "--oneline", action="store_true", help="each entry in one short line")
    parser.takes("--outside", "--outside", action="store_true", help="only effects outside the files, as a ledger")
    who_is_looking.add_option(parser)
    parser.is_word = is_term
    parser.examples = [
        ("takeback log -5", "the newest five"),
        ("takeback log -p -1", "the newest, with its diff"),
        ("takeback log actor:claude since:2h", "what claude did in the last two hours"),
        ("takeback log kind:effect path:src/", "every change in a folder"),
        ("takeback log turn:kxvm", "what one turn of an agent did"),
        ("takeback log -kind:checkpoint", "all but checkpoints"),
        ("takeback log kind:gate", "calls that were asked about or refused, and what came of that"),
        ("takeback log --outside state:live", "what stands outside the files"),
    ]


def _in_two(about: str) -> str:
    """A long line goes on below where it began, after its last part that fits."""
    if len(about) <= _ABOUT:
        return about
    end = about.rindex("; ", 0, _ABOUT) + 1
    return f"{about[:end]}\n{' ' * 12}{about[end + 1 :]}"


def run(context: Context, args: Namespace) -> int:
    most = at_most(args)
    with context.open(when_off=True) as workspace:
        if args.outside:
            if args.patch or args.oneline:
                raise UsageError("--outside lists no files", "leave out -p and --oneline")
            return ledger_of_cli.show(context, workspace, terms(args), most)
        rows = workspace.log(terms(args))[:most]
        if args.patch:
            return _patches(context, workspace, rows, args)
        if context.json:
            context.terminal.json({"rows": [json_shapes.log_row(r) for r in rows]})
        elif rows and args.oneline:
            context.terminal.page(oneline(context.terminal, row) for row in rows)
        elif not rows:
            context.terminal.write("nothing in the log matches" if terms(args) else "the log is empty")
        else:
            ties = views.ties(workspace.history())
            turns = workspace.turns_of(rows)
            context.terminal.page(lines(context.terminal, rows, workspace.clock(), turns, ties))
        return 0


def _patches(context: Context, workspace: Workspace, rows: Sequence[LogRow], args: Namespace) -> int:
    """Each entry with the whole of what it changed."""
    mask = who_is_looking.Mask(context, workspace, args.unmasked)
    files = {id: mask.files(found) for id, found in views.files_of(workspace, rows).items()}
    if context.json:
        shown = [
            json_shapes.log_row(r) | {"files": [json_shapes.file_diff(f) for f in files.get(r.id, ())]} for r in rows
        ]
        context.terminal.json({"rows": shown, "masked": mask.masked})
    elif not rows:
        context.terminal.write("nothing in the log matches" if terms(args) else "the log is empty")
    else:
        terminal, out = context.terminal, []
        now, turns = workspace.clock(), workspace.turns_of(rows)
        for row in rows:
            out += [oneline(terminal, row)] if args.oneline else list(lines(terminal, [row], now, turns))
            if files.get(row.id):
                out += ["", *diffs.lines(terminal, files[row.id]), ""]
        terminal.page(out)
    mask.tell()
    return 0


def is_term(word: str) -> bool:
    """Whether a word that begins like an option is a term turned round: -kind:checkpoint."""
    return re.match(r"-[a-z]{2,}:", word) is not None


def at_most(args: Namespace) -> int | None:
    """The number after -n; or -3, as in git."""
    for word in [w for w in args.filter if re.fullmatch(r"-[0-9]+", w)]:
        args.filter.remove(word)
        args.most = word[1:]
    if args.most is not None and not (args.most.isdecimal() and int(args.most) > 0):
        raise UsageError(f"-n needs a whole number from 1 up, not {args.most!r}", "takeback log -n 10")
    return int(args.most) if args.most else None


def terms(args: Namespace) -> str:
    named = [f"{key}:{value}" for key in ("since", "until") if (value := getattr(args, key, None)) is not None]
    return " ".join(_quoted(word) for word in [*named, *args.filter])


def _quoted(word: str) -> str:
    """A word that the shell kept whole stays whole in the filter."""
    if " " not in word or '"' in word:
        return word
    key, colon, value = word.partition(":")
    return f'{key}:"{value}"' if colon and key.lstrip("-") in KEYS else f'"{word}"'
