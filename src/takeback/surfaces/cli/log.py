"""log: checkpoints, effects and take-backs, newest first."""

from __future__ import annotations

import re

from ...errors import UsageError
from ...filters import KEYS
from . import ledger, shapes
from .terminal import age, cells, clip, pad, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...views import LogRow
    from .context import Context
    from .parsing import Namespace, Parser
    from .terminal import Terminal

_MARKS = {"effect": "~", "takeback": "↩"}


def add(parser: Parser) -> None:
    parser.synopsis = "[FILTER…] [-n N]"
    keys = "\n".join(f"  {key + ':':<10}{about}" for key, (_, about) in KEYS.items())
    parser.about = (
        "Everything that is known, newest first: ● named checkpoint, ○ automatic one, ~ effect,\n"
        "» effect outside the files, ↩ take-back. What was taken back is dim and marked. The filter's\n"
        "terms must all match; several values stand between commas, - before a term turns it round,\n"
        "other words are looked for in "
        f"label and summary:\n{keys}"
    )
    parser.takes("FILTER…", "filter", nargs="*", help="terms such as actor:claude path:src/ since:2h")
    parser.takes("-n N", "-n", dest="most", default=None, help="at most N entries")
    parser.takes("--outside", "--outside", action="store_true", help="only effects outside the files, as a ledger")
    parser.is_word = is_term
    parser.examples = [
        ("takeback log -n 5", "the newest five"),
        ("takeback log actor:claude since:2h", "what claude did in the last two hours"),
        ("takeback log kind:effect path:src/", "every change in a folder"),
        ("takeback log -kind:checkpoint", "all but checkpoints"),
        ("takeback log --outside state:live", "what stands outside the files"),
    ]


def run(context: Context, args: Namespace) -> int:
    most = at_most(args)
    with context.open(when_off=True) as workspace:
        if args.outside:
            return ledger.show(context, workspace, terms(args), most)
        rows = workspace.log(terms(args))[:most]
        if context.json:
            context.terminal.json({"rows": [shapes.log_row(r) for r in rows]})
        elif not rows:
            context.terminal.write("nothing in the log matches" if terms(args) else "the log is empty")
        else:
            context.terminal.page(lines(context.terminal, rows, workspace.clock()))
        return 0


def is_term(word: str) -> bool:
    """Whether a word that begins like an option is a term turned round: -kind:checkpoint."""
    return re.match(r"-[a-z]{2,}:", word) is not None


def at_most(args: Namespace) -> int | None:
    """The number after -n."""
    if args.most is not None and not (args.most.isdecimal() and int(args.most) > 0):
        raise UsageError(f"-n needs a whole number from 1 up, not {args.most!r}", "takeback log -n 10")
    return int(args.most) if args.most else None


def terms(args: Namespace) -> str:
    return " ".join(_quoted(word) for word in [*args.filter, *args.after])


def _quoted(word: str) -> str:
    """A word that the shell kept whole stays whole in the filter."""
    if " " not in word or '"' in word:
        return word
    key, colon, value = word.partition(":")
    return f'{key}:"{value}"' if colon and key.lstrip("-") in KEYS else f'"{word}"'


def lines(terminal: Terminal, rows: Sequence[LogRow], now: float) -> Iterator[str]:
    numbers = max(len(str(r.number)) for r in rows)
    ids = max(r.short for r in rows)
    ages = [age(now - r.at) for r in rows]
    ages_width = max(map(len, ages))
    actors = max(cells(safe(r.actor)) for r in rows)
    for row, when in zip(rows, ages):
        head = f"{row.number:>{numbers}}  "
        id = terminal.style(row.id[: row.short], "bold") + row.id[row.short : ids]
        who = pad(terminal.style(safe(row.actor), "cyan"), actors) + ("  " if actors else "")
        room = max(30, terminal.width - numbers - ids - ages_width - actors - 14)
        what = clip(_what(row), room) if terminal.out_is_tty else _what(row)
        if not row.live:
            what = terminal.style(what, "dim")
        yield f"{head}{id}  {pad(when, ages_width)}  {mark(terminal, row)} {who}{what}".rstrip()


def mark(terminal: Terminal, row: LogRow) -> str:
    if row.kind == "checkpoint":
        return terminal.style("●", "green") if row.named else terminal.style("○", "green")
    if row.kind == "effect" and row.domain != "files":
        return terminal.style("»", "cyan")
    return terminal.style(_MARKS[row.kind], "yellow" if row.kind == "effect" else "magenta")


def _what(row: LogRow) -> str:
    parts = [f'"{safe(row.label)}"' if row.label else "", safe(row.summary)]
    told = " · ".join(p for p in parts if p)
    if row.pinned:
        told += " · pinned"
    if row.domain != "files":
        told = f"{safe(row.domain)}: {told}"
        told += f" · {row.state}" if row.state not in ("live", "undone") else ""
    if not row.live:
        told += " · taken back" if row.kind == "effect" else " · redone"
    return told
