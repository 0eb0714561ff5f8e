"""blame: which turn, call and prompt last wrote each line of a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.model.effects import text
from takeback.surfaces.cli import who_is_looking
from takeback.surfaces.wording import paths
from takeback.surfaces.wording.text import age, cells, clip, pad, safe, safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from takeback.show.blame import Origin, Region
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.surfaces.cli.terminal import Terminal

_PROMPT = 32  # cells of a prompt, beside a line


def add(parser: Parser) -> None:
    parser.synopsis = "PATH [-L A,B]"
    parser.about = (
        "Who last wrote each line of a text file: the effect's id, the agent, when, and the prompt's\n"
        "first words. Lines older than the first change that is known are from before takeback; those\n"
        "that nobody has captured yet are pending. What a take-back brought back is whose it was. A\n"
        "file that was renamed is followed. Secrets are masked as in diff. Journals nothing."
    )
    parser.takes("PATH", "path", help="a text file")
    parser.takes("-L A,B", "-L", dest="span", default=None, help="only lines A to B; either may be left out")
    who_is_looking.add_option(parser)
    parser.examples = [
        ("takeback blame src/auth.py", "every line, in regions"),
        ("takeback blame src/auth.py -L 40,60", "some of them"),
        ("takeback show kxvm", "what else that turn, call or effect did"),
    ]


def run(context: Context, args: Namespace) -> int:
    first, last = span(args.span)
    with context.open(when_off=True) as workspace:
        mask = who_is_looking.Mask(context, workspace, args.unmasked)
        found = workspace.blame(paths.inside(context, workspace, args.path, present=True))
        said = mask.lines(found.path, [line for region in found.regions for line in region.lines])
        if found.regions and first > len(said):
            raise UsageError(f"{found.path} has {len(said)} lines", "-L counts from 1")
        shown = cut(found.regions, said, first, last)
        if context.json:
            shape = [region_shape(region) for region in shown]
            context.terminal.json(
                {"path": found.path, "renamed_from": list(found.names), "regions": shape, "masked": mask.masked}
            )
        elif not shown:
            context.terminal.write(f"{safe(found.path)} is empty")
        else:
            context.terminal.page(lines(context.terminal, shown, workspace.clock()))
        mask.tell()
        return 0


def span(given: str | None) -> tuple[int, int]:
    """The first and the last line that are asked for."""
    if given is None:
        return 1, 1 << 60
    asked = re.fullmatch(r"(\d*)(?:(,)(\d*))?", given)
    if asked is None or not given.strip(","):
        raise UsageError(f"-L needs two line numbers, not {given!r}", "takeback blame PATH -L 10,20")
    first = int(asked[1] or 1)
    last = int(asked[3]) if asked[3] else 1 << 60 if asked[2] else first
    if not 0 < first <= last:
        raise UsageError(f"-L {given} names no lines", "the first line is 1, and the last comes after it")
    return first, last


def cut(regions: Sequence[Region], said: Sequence[bytes], first: int, last: int) -> list[Region]:
    """The regions within these lines, with the lines as they may be shown."""
    found = []
    for region in regions:
        start, end = max(region.start, first), min(region.end, last)
        if start <= end:
            found.append(region._replace(start=start, lines=tuple(said[start - 1 : end])))
    return found


def lines(terminal: Terminal, regions: Sequence[Region], now: float) -> Iterator[str]:
    heads = [_head(region.origin, now) for region in regions]
    widths = [max(cells(head[column]) for head in heads) for column in range(4)]
    digits = len(str(regions[-1].end))
    blank = " " * (sum(widths) + 2 * (sum(1 for width in widths if width) - 1))
    for region, head in zip(regions, heads):
        styled = (terminal.style(head[0], "bold"), terminal.style(head[1], "cyan"), head[2], head[3])
        told = "  ".join(pad(part, width) for part, width in zip(styled, widths) if width)
        for number, line in enumerate(region.lines, region.start):
            yield f"{told}  {number:>{digits}} {terminal.style('│', 'dim')} {safe_line(line)}".rstrip()
            told = blank


def _head(origin: Origin, now: float) -> tuple[str, str, str, str]:
    """Id, who, when, and what was asked."""
    if origin.kind == "before":
        return "", "", "", "before takeback"
    if origin.kind == "pending":
        return "", "", "", "not captured yet"
    when = age(now - origin.at)
    if origin.kind == "takeback":
        return origin.id[:8], "", when, "a take-back"
    asked = f"“{clip(safe(origin.prompt), _PROMPT)}”" if origin.prompt else clip(safe(origin.summary), _PROMPT)
    who = (safe(origin.actor) or "unattributed") + " (uncertain)" * origin.uncertain
    return (origin.turns[0] if len(origin.turns) == 1 else origin.id)[:8], who, when, asked


def region_shape(region: Region) -> dict[str, Any]:
    origin = region.origin
    return {
        "start": region.start,
        "end": region.end,
        "origin": origin.kind,
        "effect": origin.id or None,
        "at": origin.at or None,
        "actor": origin.actor,
        "turn": origin.turns[0] if len(origin.turns) == 1 else None,
        "turns": list(origin.turns),
        "session": origin.sessions[0] if len(origin.sessions) == 1 else None,
        "call": origin.calls[0] if len(origin.calls) == 1 else None,
        "calls": list(origin.calls),
        "prompt": origin.prompt,
        "summary": origin.summary,
        "uncertain": origin.uncertain,
        "lines": [text(line) for line in region.lines],
    }
