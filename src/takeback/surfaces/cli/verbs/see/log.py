"""log: turns of agents with what they did, checkpoints, effects and take-backs, newest first."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.journal.filters import KEYS
from takeback.model.effects import STATES
from takeback.show import views
from takeback.surfaces.cli import who_is_looking
from takeback.surfaces.cli.terminal import age, cells, clip, clip_middle, counted, pad, safe
from takeback.surfaces.wording import diffs, json_shapes, ledger, log_graph
from takeback.surfaces.wording.diffs import counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from takeback.show.turns import TurnSeen
    from takeback.show.views import LogRow
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.surfaces.cli.terminal import Terminal
    from takeback.workspace import Workspace

_ABOUT = 90  # characters of what is told about a key of the filter, in one line
_MARKS = {"effect": "~", "track": "·", "takeback": "↩", "turn": "◆", "call": "◇", "gate": "⊘"}


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
            return ledger.show(context, workspace, terms(args), most)
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


def oneline(terminal: Terminal, row: LogRow) -> str:
    """'orqwkryy checkpoint 1 "start" · 3 paths', as one reads a list of commits."""
    number = f"checkpoint {row.number} " if row.number else ""
    who = f"{safe(row.actor)}: " if row.actor else ""
    told = f"{number}{who}{_what(row)}"
    id = terminal.style(row.id[:8], "bold")
    return f"{id} {clip(told, max(20, terminal.width - 9)) if terminal.out_is_tty else told}"


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


def lines(
    terminal: Terminal,
    rows: Sequence[LogRow],
    now: float,
    turns: Mapping[str, TurnSeen],
    ties: Mapping[str, Sequence[str]] = {},
) -> Iterator[str]:
    """One line per row; those of an agent's turn below its heading, with what others did between its calls. On the
    left the mark of each, and lines from a take-back to what it took."""
    numbers = max(len(str(r.number or "")) for r in rows)
    ids = max(r.short for r in rows)
    ages = [age(now - r.at) for r in rows]
    ages_width = max(map(len, ages))
    groups = list(grouped(rows))
    actors = max(cells(_who(row, turn in turns)) for turn, group in groups for row in group)
    nodes = [id for turn, group in groups for id in ([f"turn {turn}"] * (turn in turns) + [row.id for row in group])]
    gutters = dict(zip(nodes, log_graph.gutters(nodes, ties)))

    def line(row: LogRow, inside: bool) -> str:
        drawn = mark(terminal, row) + terminal.style(gutters[row.id], "magenta")
        head = f"{drawn}  {'  ' * inside}{row.number or '':>{numbers}}{'  ' * bool(numbers)}"
        id = terminal.style(row.id[: row.short], "bold") + row.id[row.short : ids]
        who = pad(terminal.style(_who(row, inside), "cyan"), actors) + ("  " if actors else "")
        room = max(30, terminal.width - cells(head) - ids - ages_width - cells(who) - 5)
        told = _what(row, inside)
        what = clip_middle(told, room) if terminal.out_is_tty else told
        if not row.live:
            what = terminal.style(what, "dim")
        when = pad(age(now - row.at), ages_width)
        return f"{head}{id}  {when}  {who}{what}".rstrip()

    for turn, group in groups:
        if turn in turns:
            gutter = gutters[f"turn {turn}"]
            drawn = terminal.style(_MARKS["turn"], "cyan") + terminal.style(gutter, "magenta")
            yield f"{drawn}  {heading(terminal, turns[turn], len(gutter) + 3)}"
        yield from (line(row, turn in turns) for row in group)


def grouped(rows: Sequence[LogRow]) -> Iterator[tuple[str, list[LogRow]]]:
    """Rows apart by the one turn they belong to. A turn stands where its newest row does, and has what belongs to no
    agent's turn and happened between its rows; the id is empty for a row outside of any."""
    oldest = {row.turns[0]: at for at, row in enumerate(rows) if len(row.turns) == 1}
    told: set[int] = set()
    for at, row in enumerate(rows):
        if at in told:
            continue
        if len(row.turns) != 1:
            yield "", [row]
            continue
        turn = row.turns[0]
        mine = [n for n in range(at, oldest[turn] + 1) if n not in told and rows[n].turns in ((turn,), ())]
        told.update(mine)
        yield turn, [rows[n] for n in mine]


def heading(terminal: Terminal, turn: TurnSeen, before: int = 0) -> str:
    """claude · 14:02 · “add a login form” · 3 calls · 5 files +40 −2"""
    begin = [terminal.style(safe(turn.agent), "cyan"), time.strftime("%H:%M", time.localtime(turn.at))]
    parts = [counted(turn.calls, "call")]
    nothing = "" if turn.outside or turn.failed or turn.git or turn.takebacks else "no file changed"
    amount = counted(len(turn.files), "file") if turn.files else nothing
    lines = counts(terminal, turn.added or 0, turn.removed or 0)
    parts += [f"{amount} {lines}".rstrip()] if amount else []
    parts += [f"git: {safe(turn.git)}"] if turn.git else []
    parts += [f"{turn.outside:,} outside the files"] if turn.outside else []
    parts += [f"{turn.failed:,} outside the files failed"] if turn.failed else []
    parts += [counted(len(turn.takebacks), "take-back")] if turn.takebacks else []
    parts += [f"{len(turn.uncertain):,} uncertain"] if turn.uncertain else []
    parts += [f"{len(turn.shared):,} shared"] if turn.shared else []
    parts += ["taken back"] if not turn.live else []
    taken = 15 + before + sum(cells(part) + 3 for part in (*begin, *parts))
    room = terminal.width - taken if terminal.out_is_tty else 60
    asked = [f"“{clip(safe(turn.prompt), max(12, min(60, room)))}”"] if turn.prompt else []
    told = " · ".join([*begin, *asked, *parts])
    return f"{terminal.style(turn.id[:8], 'bold')}  {terminal.style(told, 'dim') if not turn.live else told}"


def _who(row: LogRow, inside: bool) -> str:
    """Below an agent's heading, what nobody known did is told as such."""
    return safe(row.actor) or ("unattributed" if inside and row.kind == "effect" else "")


def mark(terminal: Terminal, row: LogRow) -> str:
    if row.kind == "checkpoint":
        return terminal.style("●", "green") if row.named else terminal.style("○", "green")
    if row.kind == "effect" and row.domain not in STATES:
        return terminal.style("»", "cyan")
    return terminal.style(
        _MARKS[row.kind], {"effect": "yellow", "takeback": "magenta", "gate": "red"}.get(row.kind, "cyan")
    )


def _what(row: LogRow, inside: bool = False) -> str:
    is_its_own = inside and row.kind == "checkpoint" and row.turns and row.label == row.prompt  # the heading says it
    parts = [f'"{safe(row.label)}"' if row.label and not is_its_own else "", safe(row.summary)]
    told = " · ".join(p for p in parts if p)
    if row.pinned:
        told += " · pinned"
    if row.kind == "effect" and row.domain != "files":
        told = f"{safe(row.domain)}: {told}"
        told += f" · {row.state}" if row.state not in ("live", "undone") else ""
    is_nobodys = row.uncertain and row.kind == "effect" and row.domain not in STATES
    if row.uncertain:
        told += " · not known whose" if is_nobodys else " · uncertain"
    if len(row.turns) > 1 and not is_nobodys:
        told += " · shared"
    if row.redone or (not row.live and row.state != "failed"):
        told += f" · {row.redone or 'taken back'}"
    return told
