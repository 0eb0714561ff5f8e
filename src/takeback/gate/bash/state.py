"""What the shell knows while a text is walked, and the commands that are found in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.gate.rules import PROGRAMS

from .words import UNKNOWN
from .wrappers import SHELLS, WRAPPERS

if TYPE_CHECKING:
    from takeback.gate.code.written import Written

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)


TMPDIR = f"/tmp/{UNKNOWN}TMPDIR"  # where temporary files lie; nobody says where, or whether it is set


class Command(NamedTuple):
    """One program that would be run."""

    words: tuple[str, ...]
    cwd: str  # UNKNOWN where nobody can say
    assigned: Mapping[str, str] = {}  # in its environment, by this text
    writes: tuple[str, ...] = ()  # files its output goes to
    stdin: str | None = None  # what it is fed, where that is known
    elsewhere: bool = False  # in a container
    script: str = ""  # the file of the project that has it; empty for the call itself
    again: bool = False  # it is the same as one that is run instead of it, or a loop's next time

    @property
    def name(self) -> str:
        return program(self.words[0]) if self.words else ""


class State:
    """What the shell knows while it runs."""

    def __init__(self, cwd: str, home: str, known: Mapping[str, str], written: Written) -> None:
        self.cwd = cwd
        self.astray = False  # whether the shell is there depends on how something ends
        self.variables: dict[str, str] = {
            "HOME": home, "PWD": cwd, "IFS": " \t\n", "TMPDIR": TMPDIR, "PATH": "", **known}  # fmt: skip
        self.exported: dict[str, str] = {}
        self.functions: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}
        self.git: dict[str, str] = {}  # what git is told for good by this text
        self.written = written  # files that this text writes
        self.elsewhere = False

    def copy(self) -> State:
        """For a shell inside: what it sets is its own, and what it writes is everybody's."""
        other = State.__new__(State)
        other.__dict__.update({k: v.copy() if isinstance(v, dict) else v for k, v in self.__dict__.items()})
        return other

    def branch(self) -> State:
        """For one of several ways."""
        other = self.copy()
        other.written = self.written.copy()
        return other

    def join(self, others: Iterable[State]) -> None:
        """After a choice: what the branches disagree on is not known."""
        for other in others:
            self.astray = self.astray or other.astray or other.cwd != self.cwd
            for name, value in other.variables.items():
                mine = self.variables.get(name)
                self.variables[name] = value if mine is None or mine == value else UNKNOWN
            for name, body in other.functions.items():
                mine = self.functions.get(name, body)
                self.functions[name] = body if mine == body else (mine, body)  # it may be either
            for name, value in other.aliases.items():
                self.aliases[name] = value if self.aliases.get(name, value) == value else UNKNOWN
            self.written.join(other.written)
            self.git |= other.git
            self.exported |= other.exported


def program(word: str) -> str:
    """The program that a word names: without its folder, and UNKNOWN where nobody can say."""
    name = word.rstrip("/").rpartition("/")[2].rpartition("\\")[2] or word
    if UNKNOWN in name:
        return UNKNOWN
    name = name.removesuffix(".exe").removesuffix(".cmd")
    if any(letter in name for letter in "*?[") and not (word.startswith((".", "/")) and "bin/" not in word):
        return next((known for known in (*PROGRAMS, *SHELLS, *WRAPPERS) if fnmatchcase(known, name)), name)
    return name


def resolved(path: str, cwd: str) -> str:
    """A path from the root; UNKNOWN where it is relative to who knows where."""
    if path.startswith(UNKNOWN) or (not path.startswith("/") and cwd.startswith(UNKNOWN)):
        return UNKNOWN
    return os.path.normpath(f"{cwd}/{path}" if not path.startswith("/") else path)
