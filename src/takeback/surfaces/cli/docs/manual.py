"""docs/takeback.1, the manual page, from the same parsers as docs/cli.md: `takeback help --man > docs/takeback.1`."""

from __future__ import annotations

import re

from takeback import __version__
from takeback.surfaces.cli.parsing import parser_of
from takeback.surfaces.cli.verb_list import EXIT_CODES, GROUPS, OPTIONS, VERBS

_ABOUT = (
    "takeback records what an agent, a script or a hand does to a project: to its files, to git, to what the agent "
    "remembers, and outside of all that. It shows what changed and by whom, and takes it back: one plan across "
    "everything, in true reverse order, that says how well each step can be undone."
)
_HOW = (
    "Verbs find the workspace upwards from the current folder. Plans and results go to standard output, hints and "
    "progress to standard error. What would ask asks on a terminal; with --yes it just does it; with neither it prints "
    "its plan, changes nothing and exits 4. What acts outside the files is never covered by --yes."
)
_ENVIRONMENT = {
    "TAKEBACK": "off turns takeback off, on turns it on, whatever the configuration says",
    "TAKEBACK_HOME": "where the stores are; otherwise the state folder of your system",
    "TAKEBACK_ACTOR": "who acts; in checkpoint and track it vouches for what changed since the last look",
    "NO_COLOR": "no colours, if it is set to anything",
    "PAGER": "what long output is shown with on a terminal, less -FRX if it is not set; empty for none",
}
_SEE = "git(1), less(1); all pages are in docs/ of the source"


def render() -> str:
    lines = [
        f'.TH TAKEBACK 1 "" "takeback {__version__}" "User Commands"',
        *_section("NAME", r"takeback \- undo for AI agents: checkpoint, show and take back what an agent did"),
        *_section("SYNOPSIS"),
        r".B takeback",
        r"[\fIOPTIONS\fR] \fIVERB\fR \&...",
        *_section("DESCRIPTION", _plain(_ABOUT), ".PP", _plain(_HOW)),
        *_section("OPTIONS"),
    ]
    for name, about in OPTIONS.items():
        lines += _item(name, about)
    for group, title in GROUPS.items():
        lines += _section(f"VERBS: {title.upper()}")
        for verb, (of, _) in VERBS.items():
            if of == group:
                lines += _verb(verb)
    lines += _section("EXIT STATUS")
    for code, about in EXIT_CODES.items():
        lines += _item(str(code), about)
    lines += _section("ENVIRONMENT", "Every setting has a variable too: see takeback config.")
    for name, about in _ENVIRONMENT.items():
        lines += _item(name, about)
    lines += _section("SEE ALSO", _plain(_SEE))
    return "\n".join(lines) + "\n"


def _section(title: str, *lines: str) -> list[str]:
    return [f'.SH "{title}"', *lines]


def _verb(verb: str) -> list[str]:
    parser = parser_of(verb)
    lines = [f'.SS "takeback {_plain(f"{verb} {parser.synopsis}".rstrip())}"'.replace("\\&", "")]
    about = parser.about or VERBS[verb][1] + "."
    if re.search(r"^ {2}", about, re.MULTILINE):  # a list in columns stays one
        lines += [".nf", *map(_plain, about.split("\n")), ".fi"]
    else:
        lines += [_plain(about.replace("\n", " "))]
    for shown, help in parser.listed:
        lines += _item(shown, help)
    if parser.examples:
        lines += [".PP", "Examples:", ".PP", ".nf", ".RS 4"]
        for command, does in parser.examples:
            lines.append(_plain(command) + (f"   {_plain(does)}" if does else ""))
        lines += [".RE", ".fi"]
    return lines


def _item(name: str, about: str) -> list[str]:
    return [".TP", rf"\fB{_plain(name)}\fR", _plain(about)]


def _plain(text: str) -> str:
    """Text that roff shows as it is."""
    told = (
        text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq").replace("'", r"\(aq").replace("`", r"\(ga")
    )
    told = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", told.replace("…", "..."))
    return r"\&" + told if told.startswith((".", " ")) else told
