"""What protect writes, as data: which file, and what of it is ours.

Config   a JSON file of the agent's, shared with its owner: hooks, and members such as an MCP server
Block    a few lines at the end of a file in another format
Whole    a file that is ours alone; it is sealed, so that an edited one is told from one as it was made
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from .document import Where

_SEAL = re.compile(r"(takeback protect wrote this, seal )([0-9a-f]{16}|@)")
MARK = "takeback protect wrote this, seal @"


class Hooks(NamedTuple):
    """Event → what is put into its list. Nested ones are {"hooks": [handler]}, as Claude Code has them."""

    events: Mapping[str, Mapping[str, Any]]
    nested: bool = True


class Config(NamedTuple):
    path: Path
    hooks: Hooks | None = None
    members: tuple[tuple[Where, Any], ...] = ()  # that are set where they are missing
    needed: tuple[tuple[Where, Any], ...] = ()  # without which the agent does not read the file; they go last


class Block(NamedTuple):
    path: Path
    name: str  # what marks it
    lines: tuple[str, ...]
    check: Callable[[str], None]  # raises ValueError where the text does not parse
    taken: Callable[[str], str]  # says why it is not put in, if something stands in its place; raises likewise


class Whole(NamedTuple):
    path: Path
    text: str  # sealed


Target = Config | Block | Whole


class Place(NamedTuple):
    """Where an agent is set up: in a project, or for all that its user does."""

    root: Path
    home: Path  # the user's own folder
    environ: Mapping[str, str]
    user: bool = False

    def folder(self, variable: str, *names: str) -> Path:
        """A folder of the user's that a variable can move."""
        moved = self.environ.get(variable, "")
        return Path(moved) if moved and Path(moved).is_absolute() else self.home.joinpath(*names)


class Ours(NamedTuple):
    """How this installation is called."""

    hook: Callable[[str, str], str]  # agent, event → a line for its shell
    program: tuple[str, ...]  # what runs takeback, as words
    mcp: bool = False  # whether the MCP server is wanted too

    @property
    def server(self) -> tuple[str, ...]:
        return (*self.program, "mcp")


class Setup(Protocol):
    """How one agent is set up."""

    name: str
    title: str
    programs: tuple[str, ...]  # what it is called on PATH

    def folder(self, place: Place) -> Path:
        """The user's folder of this agent: there, if the agent was ever used."""

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        """The files to write."""

    def left_to_do(self, place: Place) -> str:
        """What only the person can do, in words; empty if nothing is."""


def seal(text: str) -> str:
    """A text whose mark says what the rest of it was when we wrote it."""
    assert "seal @" in text
    return _SEAL.sub(lambda found: found[1] + _digest(text), text, count=1)


def is_sealed(text: str) -> bool:
    """Whether it is ours, and as we made it."""
    found = _SEAL.search(text)
    return found is not None and found[2] == _digest(text)


def is_marked(text: str) -> bool:
    """Whether it is ours, edited or not."""
    return _SEAL.search(text) is not None


def _digest(text: str) -> str:
    return hashlib.sha256(_SEAL.sub(r"\1@", text, count=1).encode()).hexdigest()[:16]
