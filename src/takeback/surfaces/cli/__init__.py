"""The command line: parses, dispatches to one verb per file, and maps errors to exit codes.

Nothing heavy is imported here: `--version` and `--help` answer at the speed of the interpreter.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from takeback import __version__
from takeback.errors import TakebackError

from .parsing import module_of, parse
from .terminal import Terminal
from .verb_list import VERBS, overview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terminal import Terminal

_INTERRUPTED, _UNREAD = 130, 141
_OBJECTS = 50_000  # what a start makes stays to the end: to look it over for cycles would only cost time


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point. As a program it ends at once, without tearing the interpreter down."""
    if argv is None:
        gc.set_threshold(_OBJECTS)
    words = list(sys.argv[1:] if argv is None else argv)
    code = 0
    try:
        code = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has seen enough. Python would complain once more while it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = code or _UNREAD
    if argv is None:
        if sys.stderr is not None:
            sys.stderr.flush()
        os._exit(code)
    return code


def _run(words: list[str]) -> int:
    verb, rest = split_verb(words)
    if verb == "--version":
        print(f"takeback {__version__}")
        return 0
    if verb == "--help":
        print(overview())
        return 0
    if verb == "hook" and not any(word.startswith("-") for word in rest):
        code: int = module_of(verb).respond(rest, os.environ)
        return code
    return _dispatch(verb, rest)


def split_verb(words: list[str]) -> tuple[str, list[str]]:
    """The verb, and everything else: the options of every verb may stand before it or after it."""
    at = 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        if not word.startswith("-") or word == "-":
            return word, words[:at] + words[at + 1 :]
        if word == "--version":
            return word, []
        if word in ("-h", "--help"):
            later = [w for w in words[at + 1 :] if not w.startswith("-")]
            return (later[0], ["--help"]) if later else ("--help", [])
        at += 2 if word == "-C" else 1
    return "status", ["--bare", *words]


def _dispatch(verb: str, rest: list[str]) -> int:
    ours = rest[: rest.index("--")] if "--" in rest else rest  # what follows may be the words of another program
    terminal = Terminal(os.environ, "--no-color" not in ours, bool({"-q", "--quiet"} & set(ours)))
    as_json = "--json" in ours
    try:
        return _perform(verb, rest, terminal)
    except TakebackError as error:
        from .failures import known

        return known(error, terminal, as_json)
    except KeyboardInterrupt:
        terminal.warn("takeback: interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        from takeback.surfaces.wording.failures import of_the_system

        from .failures import bug, known

        explained = of_the_system(error)
        return known(explained, terminal, as_json) if explained else bug(error, terminal, as_json, verb)


def _perform(verb: str, rest: list[str], terminal: Terminal) -> int:
    if verb not in VERBS:
        from .failures import unknown_verb

        raise unknown_verb(verb)
    parser, args = parse(verb, rest)
    if args.help:
        terminal.page(parser.format_help().split("\n"))
        return 0
    terminal.quiet = args.quiet
    from .context import Context

    code: int = module_of(verb).run(Context(args, terminal, os.environ), args)
    if code and not terminal.has_told and verb != "run":  # of which the code is another program's
        terminal.say_withheld()
    return code
