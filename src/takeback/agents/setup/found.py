"""Which hooks of ours an agent's configuration holds, and which agents have lost them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from takeback.config.agents_own_files import record_of
from takeback.errors import TakebackError
from takeback.surfaces.resident.command import hook_command
from takeback.system import regular_files

from . import changes, lines, load
from . import found as found_of_setup
from .targets import Config, Ours, Place, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .targets import Place, Setup, Target


def place_of(environ: Mapping[str, str], root: Path, user: bool) -> Place:
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    return Place(root, home, environ, user)


def ours() -> Ours:
    """This installation, by its interpreter's own path: no shim, nothing that PATH or a folder could change."""
    if not os.path.isabs(sys.executable) or not os.path.exists(sys.executable):
        raise TakebackError(
            "nobody can tell which Python runs takeback", "run it with the full path of the interpreter"
        )
    return Ours(hook_command, (sys.executable, "-P", "-m", "takeback"))


# Where an agent can be told to run no hooks, below the project and below the home.
_LARGEST = 4 << 20  # bytes of a file of settings


class Lost(NamedTuple):
    """An agent that runs hooks of ours no more: nothing that it does is captured."""

    agent: str
    place: Place
    path: Path  # where they were
    why: str  # they cannot be read there; empty if they are gone


class Hooks(NamedTuple):
    """What of ours is in one agent's configuration, in one place."""

    place: Place
    there: list[str]  # our lines as they are
    wanted: list[str]  # as they should be
    path: Path
    http: Mapping[str, int]  # events that are told by HTTP instead, and the port of each

    @property
    def is_any(self) -> bool:
        return bool(self.there or self.http)

    @property
    def option(self) -> str:
        return " --user" if self.place.user else ""


def lost(environ: Mapping[str, str], home: Path, root: Path, agents: Sequence[str]) -> list[Lost]:
    """Which of these agents have lost the hooks of this project, or of their user."""
    places = places_of(environ, root)
    every = ((setup, [hooks_at(setup, place) for place in places]) for setup in map(load, agents))
    return [missing for setup, hooks in every if (missing := lost_of(home, setup, hooks))]


def places_of(environ: Mapping[str, str], root: Path) -> list[Place]:
    return [found_of_setup.place_of(environ, root, user) for user in (False, True)]


def lost_of(home: Path, setup: Setup, hooks: list[Hooks]) -> Lost | None:
    """A file with hooks of ours that nobody can read any more, or hooks that somebody threw away, maybe an agent that
    cleaned up, while there are none elsewhere."""
    for each in hooks:
        if why := changes.broken(_target(setup, each.place), home):
            return Lost(setup.name, each.place, each.path, why)
    if not any(each.is_any for each in hooks):
        for each in hooks:
            if record_of(home, os.path.realpath(each.path)).exists():
                return Lost(setup.name, each.place, each.path, "")
    return None


def hooks_at(setup: Setup, place: Place) -> Hooks:
    target, there, wanted, http = _target(setup, place), [], [], dict[str, int]()
    if isinstance(target, Whole):
        text = read_file(target.path)
        there = [text] if "takeback protect wrote this" in text else []
        wanted = [target.text]
    elif isinstance(target, Config) and target.hooks is not None:
        there, http = changes.lines_in(target), changes.asked_by_http(target, setup.name)
        wanted = [line for line in changes.wanted_lines(target.hooks) if line in there or _event_of(line) not in http]
    return Hooks(place, there, wanted, target.path, http)


def _event_of(line: str) -> str:
    ours = lines.read(line)
    return ours.event if ours else ""


def _target(setup: Setup, place: Place) -> Target:
    """The file that has the hooks: the first that an agent names."""
    return setup.targets(place, found_of_setup.ours())[0]


def read_file(path: Path) -> str:
    try:
        return regular_files.read(path, _LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
