"""One parser per verb, built only when that verb was asked for."""

from __future__ import annotations

import argparse
from importlib import import_module

from ...errors import UsageError
from .verbs import OPTIONS, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """argparse, with our errors and our help: argparse's own help differs from one Python to the next."""

    def __init__(self, verb: str) -> None:
        super().__init__(prog=f"takeback {verb}", add_help=False, allow_abbrev=False)
        self.verb = verb
        self.synopsis = ""  # what follows the verb
        self.about = ""
        self.examples: list[tuple[str, str]] = []  # (command, what it does)
        self.listed: list[tuple[str, str]] = []  # (arguments or flags, help)
        self.is_word: Callable[[str], bool] = lambda word: False  # what looks like an option and is none

    def takes(self, shown: str, *names: str, help: str, **rest: Any) -> None:
        """Adds an argument or option together with the line of help that shows it."""
        self.listed.append((shown, help))
        if not names[0].startswith("-"):
            rest.setdefault("metavar", shown)
        self.add_argument(*names, **rest)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see takeback help {self.verb}")

    def format_help(self) -> str:
        usage = f"usage: takeback {self.verb} {self.synopsis}".rstrip()
        lines = [usage, "", self.about or VERBS[self.verb][1] + "."]
        if self.listed:
            width = max(len(shown) for shown, _ in self.listed) + 2
            lines += ["", *(f"  {shown:<{width}}{help}" for shown, help in self.listed)]
        if self.examples:
            width = max(len(command) for command, _ in self.examples) + 2
            lines += ["", "examples", *(f"  {c:<{width}}{does}".rstrip() for c, does in self.examples)]
        lines += ["", "Every verb also takes " + ", ".join(o for o in OPTIONS if o != "--version") + "."]
        return "\n".join(lines)


def module_of(verb: str) -> ModuleType:
    return import_module(f".{verb}", __package__)


def parser_of(verb: str) -> Parser:
    """The parser of one verb, with the options that every verb takes."""
    parser = Parser(verb)
    add = parser.add_argument
    add("-C", dest="directory", action="append", default=[])
    add("--json", action="store_true")
    add("-y", "--yes", action="store_true")
    add("-q", "--quiet", action="store_true")
    add("--no-color", dest="color", action="store_false")
    add("--off", action="store_true")
    add("-h", "--help", action="store_true")
    module_of(verb).add(parser)
    return parser


def parse(verb: str, words: list[str]) -> tuple[Parser, argparse.Namespace]:
    """What was asked of a verb. What follows `--` is taken as it is and put into `after`."""
    parser = parser_of(verb)
    after: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, after = words[:at], words[at + 1 :]
    if "-h" in words or "--help" in words:  # before argparse complains about what is missing
        return parser, argparse.Namespace(help=True)
    asked = parser.parse_intermixed_args([w for w in words if not parser.is_word(w)])
    asked.after = [*(w for w in words if parser.is_word(w)), *after]
    return parser, asked
