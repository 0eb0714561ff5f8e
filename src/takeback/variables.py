"""The environment that a recorded command needs, by name: the variables that it names itself, and the well-known ones
that choose an account or a place for its program (variables.toml)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from .typed import Any

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
# What a shell sets by itself, and what we give to every command.
_SHELLS_OWN = frozenset((
    "PWD", "OLDPWD", "IFS", "PPID", "RANDOM", "SECONDS", "LINENO", "HOSTNAME", "UID", "EUID", "OPTARG", "OPTIND",
    "REPLY", "PS1", "PS2", "PS4", "SHLVL", "_", "BASH", "BASHPID", "BASH_VERSION", "BASH_SOURCE", "FUNCNAME",
    "PIPESTATUS", "TAKEBACK_KEY",
))  # fmt: skip
_NAMED = re.compile(r"\$(?:([A-Za-z_]\w*)|\{[#!]?([A-Za-z_]\w*)(:?[-+=])?)")
_SET = re.compile(
    r"(?:^|[\s;&|(])(?:([A-Za-z_]\w*)\+?=|for\s+([A-Za-z_]\w*)\s+in\b"
    r"|(?:read|mapfile|readarray|getopts\s+\S+)\s+((?:-\w+\s+|[A-Za-z_]\w*[ \t]*)+))"
)
_INNER = re.compile(rf"(?:^|[\s;&|(/])(?:{'|'.join(_SHELLS)})\s+(?:-\w+\s+)*-\w*c\s+'([^']*)'|\beval\s+'([^']*)'")


def named(words: Mapping[str, Any], environ: Mapping[str, str] | None) -> list[str]:
    """The variables that a command names: in a shell's line, or in the words of one that is given to a shell. One with
    a default of its own counts where it is set; without an environment, always."""
    argv = words.get("argv")
    if argv is None:
        return _named_in(str(words.get("shell", "")), environ)
    if os.path.basename(argv[0]) in _SHELLS and len(argv) > 2:
        at = next((n for n, word in enumerate(argv[1:-1], 1) if re.fullmatch(r"-\w*c", word)), 0)
        return _named_in(argv[at + 1], environ) if at else []
    return []


def chosen(words: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """The well-known variables that are set here, and choose an account or a place for what a command runs."""
    table = _table()
    line = words["argv"] if "argv" in words else re.split(r"[\s;&|()'\"`$<>]+", str(words.get("shell", "")))
    programs = [os.path.basename(word) for word in line if word]
    known = [program for program in programs if program in table["programs"]]
    if "argv" in words and programs and programs[0] not in _SHELLS:
        known = known[:1] if programs[0] in known else []
    if known:
        wanted: Iterable[str] = (name for program in known for name in table["programs"][program])
    else:
        wanted = () if programs and programs[0] in table["files_only"] else table["any"]
    return [name for name in dict.fromkeys(wanted) if environ.get(name)]


def is_place(name: str) -> bool:
    """Whether a variable chooses an account or a place by a value that is no secret."""
    return name in _table()["places"]


def _named_in(line: str, environ: Mapping[str, str] | None) -> list[str]:
    inner = [name for found in _INNER.finditer(line) for name in _named_in(found[1] or found[2] or "", environ)]
    seen = _expanded(line)
    own = {name for found in _SET.finditer(seen) for part in found.groups() if part for name in part.split()}
    found: dict[str, None] = {}
    for match in _NAMED.finditer(seen):
        name, has_default = match[1] or match[2], bool(match[3])
        counts = not has_default or environ is None or bool(environ.get(name))
        if name not in own and name not in _SHELLS_OWN and counts:
            found[name] = None
    return list(dict.fromkeys([*found, *(name for name in inner if name not in own)]))


def _expanded(line: str) -> str:
    """A line without what a shell takes as it stands: quoted by ' or a backslash, or a comment."""
    out: list[str] = []
    quoted, at = False, 0
    is_between = True  # words, where a comment may begin
    while at < len(line):
        char = line[at]
        if char == "\\":
            out.append(" ")
            at, is_between = at + 2, False
            continue
        if char == '"':
            quoted = not quoted
        elif char == "'" and not quoted:
            end = line.find("'", at + 1)
            at, is_between = len(line) if end < 0 else end + 1, False
            out.append("''")
            continue
        elif char == "#" and not quoted and is_between:
            end = line.find("\n", at)
            at = len(line) if end < 0 else end
            continue
        out.append(char)
        at, is_between = at + 1, char in " \t\n;"
    return "".join(out)


@cache
def _table() -> Mapping[str, Any]:
    import tomllib

    with Path(__file__).with_name("variables.toml").open("rb") as file:
        return tomllib.load(file)
