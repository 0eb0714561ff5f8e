"""What `?` shows: every key, and the filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.text import Text

from takeback.journal.filters import KEYS

from .paper import wrapped

_KEYS = {
    "look": (
        ("↑ ↓ PgUp PgDn Home End", "move; j k g G too"),
        ("enter, → ←", "open and close a turn or call"),
        ("tab", "to the other pane and back; there the arrows scroll"),
        ("1 2 3", "what changed · all that is known · the same as JSON"),
        ("z", "the pane at hand fills the screen, and back"),
        ("t", "to what took this back, or what this took, and back"),
        ("/", "filter as you type; esc ends it"),
    ),
    "take back": (
        ("x", "take back just this: a turn, call or effect; in the right pane one file"),
        ("b", "back to here: to this checkpoint, or to just before this"),
        ("u, r", "undo the last turn, redo"),
        ("f", "bring one file back as it was here"),
    ),
    "and": (
        ("c, n, p", "take a checkpoint; name it anew; pin it, or unpin it"),
        ("=", "compare two points: = here, then = there (twice: with now)"),
        ("s, v", "send a held mail; say what came of what is unknown"),
        ("ctrl+p", "every command, by its name"),
        ("q", "leave"),
    ),
}

_SIGNS = (
    ("◆ ~ $ ↩", "an agent's turn, by hand, a run, a take-back"),
    ("● ○", "a named checkpoint, an automatic one"),
    ("◇ ~ »", "a call, an effect on files or git, one outside of them"),
    ("dim, ↩ kxvm", "taken back, by that take-back"),
)


_PICKER = {
    "look": (
        ("↑ ↓ PgUp PgDn Home End", "move; j k g G too"),
        ("tab", "to the plan on the right and back; there the arrows scroll"),
        ("z", "the pane at hand fills the screen, and back"),
        ("/", "filter as you type; esc ends it"),
        ("0–9", "to the checkpoint of the number that you type"),
    ),
    "and": (
        ("enter, b", "back to this checkpoint: its plan, and y applies it"),
        ("c", "take one now, with a label, before going back"),
        ("ctrl+p", "every command, by its name"),
        ("esc, q", "leave all as it is"),
    ),
}


def lines(width: int) -> Iterator[Text]:
    """On as many lines as they need."""
    return _wrapped([*_keys(_KEYS), *_signs(), *_filter()], width)


def picker_lines(width: int) -> Iterator[Text]:
    """Of the picker of `takeback rollback`."""
    return _wrapped([*_keys(_PICKER), *_filter()], width)


def _wrapped(told: Iterable[Text], width: int) -> Iterator[Text]:
    for line in told:
        yield from wrapped(line, width, 26 if line.plain.startswith("  ") else 0)


def _keys(groups: Mapping[str, Iterable[tuple[str, str]]]) -> Iterator[Text]:
    yield Text("Nothing changes before you have seen its plan and said y. Every take-back can be taken back.", "dim")
    for group, keys in groups.items():
        yield Text("")
        yield Text(group, "bold")
        for key, what in keys:
            yield Text.assemble((f"  {key:<24}", "cyan"), what)


def _signs() -> Iterator[Text]:
    yield Text("")
    yield Text("signs", "bold")
    for sign, what in _SIGNS:
        yield Text.assemble((f"  {sign:<24}", "cyan"), what)


def _filter() -> Iterator[Text]:
    yield Text("")
    yield Text("filter: all terms must match; a comma is an or, - before a term a not", "bold")
    for key, (_, about) in KEYS.items():
        yield Text.assemble((f"  {key + ':':<24}", "cyan"), about)
    yield Text.assemble(("  words                   ", "cyan"), "in the prompt, the label or the summary")
