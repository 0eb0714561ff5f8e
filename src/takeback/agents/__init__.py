"""Coding agents: one file each says how its events read and how it wants to be answered. Loaded when first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from takeback.errors import UsageError

from .events import Agent

AGENTS = {
    "claude": "Claude",
    "codex": "Codex",
    "gemini": "Gemini",
    "copilot": "Copilot",
    "qwen": "Qwen",
    "opencode": "Opencode",
    "cursor": "Cursor",
}  # by name; each has a module of that name here, and one in setup/


def load(name: str) -> Agent:
    """The agent of this name."""
    made: Agent = part_of(__name__, name)
    return made


def part_of(package: str, name: str) -> Any:
    """What a package has of the agent of this name."""
    if name not in AGENTS:
        raise UsageError(f"no agent is called {name!r}", f"name one of: {', '.join(AGENTS)}")
    return getattr(import_module(f"{package}.{name}"), AGENTS[name])()
