"""One parser per verb, built only when that verb was asked for.

It knows what our verbs need: flags, options with a value, and words, in any order. argparse would cost every start
6 ms, and its messages differ from one Python to the next.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.errors import UsageError

from .verb_list import OPTIONS, VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType
    from typing import NoReturn


class Namespace(SimpleNamespace):
    """What was asked of a verb: the value of each word and option, by its name."""


class Option(NamedTuple):
    flags: tuple[str, ...]
    dest: str
    action: str  # store, append, store_true, store_false
    default: Any

    @property
    def takes_value(self) -> bool:
        return self.action in ("store", "append")

    def __str__(self) -> str:
        return f"argument {'/'.join(self.flags)}"


class Word(NamedTuple):
    dest: str
    shown: str
    nargs: str = ""  # one; ? one or none; * any number, as the last one
    default: str = ""


class Parser:
    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.synopsis = ""  # what follows the verb
        self.about = ""
        self.examples: list[tuple[str, str]] = []  # (command, what it does)
        self.listed: list[tuple[str, str]] = []  # (arguments or flags, help)
        self.is_word: Callable[[str], bool] = lambda word: False  # what looks like an option and is none
        self.has_after = False  # whether what follows `--` is something else than words: another program's, paths
        self.options: list[Option] = []
        self.words: list[Word] = []
        self.retired: dict[str, str] = {}  # options that are taken no longer, and what to write instead
        self._by_flag: dict[str, Option] = {}

    # -- what it takes -------------------------------------------------------

    def takes(self, shown: str, *names: str, help: str, **rest: Any) -> None:
        """Adds a word or an option together with the line of help that shows it."""
        self.listed.append((shown, help))
        if names[0].startswith("-"):
            self.option(*names, **rest)
        else:
            self.words.append(Word(names[0], shown, **rest))

    def option(self, *flags: str, dest: str = "", action: str = "store", default: Any = None) -> None:
        if action.startswith("store_"):
            default = action == "store_false"
        added = Option(flags, dest or flags[-1].lstrip("-").replace("-", "_"), action, default)
        self.options.append(added)
        self._by_flag.update(dict.fromkeys(flags, added))

    # -- what was asked ------------------------------------------------------

    def parse(self, words: list[str], plain_ones: Sequence[str] = ()) -> Namespace:
        """`plain_ones` come last, and are words whatever they look like."""
        asked = Namespace()
        for option in self.options:
            setattr(asked, option.dest, option.default)
        plain: list[str] = []
        unknown: list[str] = []
        left = iter(words)
        ahead = next(left, None)
        while (word := ahead) is not None:
            ahead = next(left, None)
            if not self._is_option(word):
                plain.append(word)
                continue
            found = list(self._read(word))
            if word in self.retired:
                raise UsageError(f"{word} is taken no longer", self.retired[word])
            if not found:
                unknown.append(word)
            for option, value in found:
                if option.takes_value and value is None:
                    if ahead is None or self._is_option(ahead):
                        self.error(f"{option}: expected one argument")
                    value, ahead = ahead, next(left, None)
                _set(asked, option, value)
        given = [*words, *plain_ones]
        if extra := [*self._name([*plain, *plain_ones], asked), *unknown]:
            self.error("unrecognized arguments: " + " ".join(sorted(extra, key=given.index)))
        return asked

    def _is_option(self, word: str) -> bool:
        """Whether it is one of ours or looks like one; a negative number or a sentence does not."""
        if not word.startswith("-") or word == "-":
            return False
        return self._knows(word) or not (" " in word or word[1:].replace(".", "", 1).isdecimal())

    def _knows(self, word: str) -> bool:
        return word in self._by_flag or word.partition("=")[0] in self._by_flag or word[:2] in self._by_flag

    def _read(self, word: str) -> Iterator[tuple[Option, str | None]]:
        """The options in one word, each with the value that is written into it: --keep=3, -n3, -qy."""
        flag, equals, value = word.partition("=")
        given = value if equals else None
        if flag not in self._by_flag:
            flag, given = word[:2], word[2:]
        while option := self._by_flag.get(flag):
            if given is None or option.takes_value:
                yield option, given
                return
            if word.startswith("--") or "-" + given[:1] not in self._by_flag:
                self.error(f"{option}: ignored explicit argument {given!r}")
            yield option, None
            flag, given = "-" + given[0], given[1:] or None

    def _name(self, plain: list[str], asked: Namespace) -> list[str]:
        """Gives the words their names, in their order; returns those that have none."""
        missing = []
        for word in self.words:
            if word.nargs == "*":
                setattr(asked, word.dest, plain)
                plain = []
            elif plain:
                setattr(asked, word.dest, plain[0])
                plain = plain[1:]
            elif word.nargs == "?":
                setattr(asked, word.dest, word.default)
            else:
                missing.append(word.shown)
        if missing:
            self.error("the following arguments are required: " + ", ".join(missing))
        return plain

    # -- what it says --------------------------------------------------------

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


def _set(asked: Namespace, option: Option, value: str | None) -> None:
    if option.action == "append":
        setattr(asked, option.dest, [*(getattr(asked, option.dest) or []), value])
    else:
        setattr(asked, option.dest, value if option.takes_value else not option.default)


def module_of(verb: str) -> ModuleType:
    """The module of a verb: it lies in the folder of its group. Loaded when the verb is asked for."""
    return import_module(f"takeback.surfaces.cli.verbs.{VERBS[verb][0]}.{verb}")


def parser_of(verb: str) -> Parser:
    """The parser of one verb, with the options that every verb takes."""
    parser = Parser(verb)
    add = parser.option
    add("-C", dest="directory", action="append", default=[])
    add("--json", action="store_true")
    add("-y", "--yes", action="store_true")
    add("-q", "--quiet", action="store_true")
    add("--no-color", dest="color", action="store_false")
    add("--off", action="store_true")
    add("-h", "--help", action="store_true")
    module_of(verb).add(parser)
    return parser


def parse(verb: str, words: list[str]) -> tuple[Parser, Namespace]:
    """What was asked of a verb. What follows `--` is taken as it is: as words, or put into `after` where the verb has
    another use for it."""
    parser = parser_of(verb)
    after: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, after = words[:at], words[at + 1 :]
    if "-h" in words or "--help" in words:  # before anyone complains about what is missing
        return parser, Namespace(help=True)
    terms = [w for w in words if parser.is_word(w)]
    ours = [w for w in words if not parser.is_word(w)]
    asked = parser.parse(ours, terms if parser.has_after else [*terms, *after])
    asked.after = after if parser.has_after else []
    return parser, asked
