"""help: on one verb, or on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.surfaces.cli.docs.manual import render
from takeback.surfaces.cli.failures import unknown_verb
from takeback.surfaces.cli.parsing import Word, parser_of
from takeback.surfaces.cli.verb_list import VERBS, overview, overview_of_all

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[VERB | --all | --man]"
    parser.about = "The overview, one verb with its examples, every verb, option and exit code, or the manual page."
    parser.takes("VERB", "about_verb", nargs="?", default="", help="one verb, with all that may follow it")
    parser.words.append(Word("rest", "", nargs="*"))  # `help record command` is asked for as it is typed
    parser.takes("--all", "--all", dest="everything", action="store_true", help="every verb")
    parser.takes("--man", "--man", dest="manual", action="store_true", help="the manual page, as man reads it")
    parser.examples = [
        ("takeback help rollback", ""),
        ("takeback help record command", "the same as takeback help record"),
        ("takeback help --all", ""),
        ("takeback help --man | man -l -", "the manual page; man takeback, once it is installed"),
    ]


def run(context: Context, args: Namespace) -> int:
    if args.manual:
        context.terminal.write(render().rstrip("\n"))
    elif args.everything:
        context.terminal.page(overview_of_all().split("\n"))
    elif not args.about_verb:
        context.terminal.write(overview())
    elif args.about_verb in VERBS:
        context.terminal.page(parser_of(args.about_verb).format_help().split("\n"))
    else:
        raise unknown_verb(args.about_verb)
    return 0
