"""Which configuration holds where an agent is at work: the one that was the person's when the folder was protected.

    takeback init, protect ─► workspace.json {"config": …} ─► hooks, the MCP server, every command below an agent

An agent chooses the environment of what it starts, so XDG_CONFIG_HOME, HOME and APPDATA say nothing there: they could
name a policy that it wrote itself. For a person they count as ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from takeback.errors import TakebackError
from takeback.journal.journal import glimpse
from takeback.store import layout
from takeback.system import agent_sessions, processes

from . import settings
from .settings import Settings

_MOST = 20_000  # rows among which sessions are looked for, the newest first


def load(
    root: Path | None,
    environ: Mapping[str, str],
    off: bool = False,
    at: Path | None = None,
    agent: bool | None = None,
    home: Path | None = None,
) -> Settings:
    """The settings that hold in this root (None: without the project's file), for the workspace `at`, or else there.
    `agent`: whether one is at work here; None: that is found out, where it makes a difference."""
    home, where = home or settings.home(environ), at or root
    known, wanted = noted(home, where), settings.user_config(environ)
    if agent is None:
        agent = (known != wanted or settings.lessens(environ)) and is_below_agent(home, where, environ)
    if not agent:
        return settings.load(root, environ, off)
    found = settings.load(root, environ, off, known, wary=True)
    if known == wanted or not os.path.lexists(wanted):
        return found
    vain = (
        f"{wanted} does not count where an agent is at work: the configuration is {known}, as it was when this folder "
        "was protected; a person changes that with takeback init"
    )
    return found._replace(ignored=(*found.ignored, vain))


def noted(home: Path, root: Path | None) -> Path:
    """The configuration of whoever protected a root, or the folder that it lies in; where nobody noted it, that of the
    project in which an agent above is at work, or else the user's by the system's account."""
    found = _noted_at(home, layout.find_root(home, root) if root is not None else None)
    return found or _noted_at(home, agent_sessions.root_above(home)) or settings.system_config()


def _noted_at(home: Path, protected: Path | None) -> Path | None:
    try:
        found = layout.read_meta(layout.folder_of(home, protected)).get("config") if protected is not None else None
    except TakebackError:  # damaged: repair says so
        return None
    return Path(found) if isinstance(found, str) and os.path.isabs(found) else None


def note(root: Path, found: Settings) -> Path | None:
    """From now on agents in a root go by the configuration of these settings. Returns the one before, if it was
    another. Below an agent that is the same one: nothing changes."""
    before = noted(found.home, root)
    folder = layout.folder_of(found.home, root)
    meta = layout.read_meta(folder)
    if not found.config.is_absolute() or meta.get("config") == str(found.config):
        return None
    layout.write_meta(folder, {**meta, "config": str(found.config)})
    return before if before != found.config else None


def is_below_agent(home: Path, root: Path | None, environ: Mapping[str, str]) -> bool:
    """Whether an agent is among the processes above, by its mark in the environment or its session: in the journal
    here, or in that of any project. Where the journal cannot be read nobody can say that none is."""
    if processes.agent_above(agent_sessions.known(home), environ):
        return True
    journal = layout.folder_of(home, root) / "journal.db" if root is not None else None
    if journal is None or not os.path.isfile(journal):
        return False
    try:
        return bool(processes.agent_above(_sessions(journal), environ))
    except TakebackError:
        return True


def _sessions(journal: Path) -> Iterator[Mapping[str, Any]]:
    for row in glimpse(journal, ("turn", "note"), _MOST):
        body = row.body or {}
        if body.get("pid") and (row.kind == "turn" or body.get("what") == "session"):
            yield {"pid": body["pid"], "started": body.get("started", 0), "name": body.get("name", "")}
