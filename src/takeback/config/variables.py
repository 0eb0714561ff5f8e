"""The environment that a recorded command needs, by name: the variables that it names itself, and the well-known ones
that choose an account or a place for its program (variables.toml)."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
# What a shell sets by itself, and what we give to every command.
_SHELLS_OWN = frozenset((
    "PWD", "OLDPWD", "IFS", "PPID", "RANDOM", "SECONDS", "LINENO", "HOSTNAME", "UID", "EUID", "OPTARG", "OPTIND",
    "REPLY", "PS1", "PS2", "PS4", "SHLVL", "_", "BASH", "BASHPID", "BASH_VERSION", "BASH_SOURCE", "FUNCNAME",
    "PIPESTATUS", "TAKEBACK_KEY",
))  # fmt: skip
_NAMED = re.compile(r"\$(?:([A-Za-z_]\w*)|\{[#!]?([A-Za-z_]\w*)(:?[-+=])?)")
_ASSIGNED = re.compile(r"(?:^|[\s;&|({])([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")
# Where a command begins, and what sets variables by their names: with its words up to the end of the command.
_SETTING = re.compile(
    r"(?:^|[;&|({!`\n]|\b(?:do|then|else|elif|while|until|if|time|builtin|command)\b)\s*(?:[A-Za-z_]\w*=\S*\s+)*"
    r"(for|select|read|mapfile|readarray|getopts|printf|local|declare|typeset|readonly|let)[ \t]+([^;&|\n<>)]*)"
)
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
_NAME = re.compile(r"[A-Za-z_]\w*")
_VALUES = {"read": "dinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc"}  # letters that take the next word
_HERE = re.compile(r"<<(-?)[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_RUNS_SHELL = re.compile(rf"(?:^|[\s;&|(/])(?:{'|'.join(_SHELLS)})(?=[\s;&|<)]|$)")
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
    seen, fed = _expanded(line)
    quoted = [found[1] or found[2] or "" for found in _INNER.finditer(line)]
    inner = [name for text in (*quoted, *fed) for name in _named_in(text, environ)]
    own = _set_in(seen)
    found: dict[str, None] = {}
    for match in _NAMED.finditer(seen):
        name, has_default = match[1] or match[2], bool(match[3])
        counts = not has_default or environ is None or bool(environ.get(name))
        if name not in own and name not in _SHELLS_OWN and counts:
            found[name] = None
    return list(dict.fromkeys([*found, *(name for name in inner if name not in own)]))


def _set_in(seen: str) -> set[str]:
    """The variables that a line gives a value to itself."""
    found = set(_ASSIGNED.findall(seen))
    for how, rest in _SETTING.findall(seen):
        words = _WORD.findall(rest)
        if how in ("for", "select"):
            names = words[:1]
        elif how == "printf":
            names = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-v"]
        elif how == "getopts":
            names = words[1:2]
        else:
            names = [word.partition("=")[0] for word in _without_options(words, _VALUES.get(how, ""))]
        found |= {name for name in names if _NAME.fullmatch(name)}
    return found


def _without_options(words: Iterable[str], values: str) -> list[str]:
    found, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = len(word) > 1 and word[-1] in values
        else:
            found.append(word)
    return found


def _expanded(line: str) -> tuple[str, list[str]]:
    """A line without what a shell takes as it stands: quoted by ' or a backslash, a comment, or a here-document whose
    end is quoted; and what of these documents another shell is fed, which expands it after all."""
    out: list[str] = []
    fed: list[str] = []
    waiting: list[tuple[str, bool, bool]] = []  # here-documents: their end, whether quoted, whether tabs go
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
        elif char == "<" and not quoted and line[at : at + 3] == "<<<":
            out.append("<<<")
            at, is_between = at + 3, True
            continue
        elif char == "<" and not quoted and (here := _HERE.match(line, at)) is not None:
            end_word = re.sub(r"['\"]|\\(?=.)", "", here[2])
            waiting.append((end_word, end_word != here[2], bool(here[1])))
            out.append(" ")
            at, is_between = here.end(), False
            continue
        elif char == "\n" and waiting:
            before = "".join(out).rpartition("\n")[2]
            for end_word, is_quoted, strips in waiting:
                text, at = _document(line, at + 1, end_word, strips)
                if not is_quoted:
                    out.append("\n" + re.sub(r"\\.", " ", text, flags=re.DOTALL))
                elif _RUNS_SHELL.search(before):
                    fed.append(text)
            waiting = []
            out.append("\n")
            is_between = True
            at += 1
            continue
        out.append(char)
        at, is_between = at + 1, char in " \t\n;"
    return "".join(out), fed


def _document(line: str, at: int, end_word: str, strips: bool) -> tuple[str, int]:
    """The text of a here-document that begins there, and where the line after its last one begins, but one."""
    lines: list[str] = []
    while at <= len(line):
        stop = line.find("\n", at)
        stop = len(line) if stop < 0 else stop
        each = line[at:stop]
        if (each.lstrip("\t") if strips else each) == end_word:
            return "\n".join(lines), stop
        lines.append(each)
        at = stop + 1
    return "\n".join(lines), len(line)


@cache
def _table() -> Mapping[str, Any]:
    with Path(__file__).with_name("variables.toml").open("rb") as file:
        return tomllib.load(file)
