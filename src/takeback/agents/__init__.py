"""Coding agents: one file each says how its events read and how it wants to be answered. Loaded when first needed."""

from __future__ import annotations

from ..errors import UsageError
from .events import Agent

AGENTS = {
    "claude": "takeback.agents.claude:Claude",
    "codex": "takeback.agents.codex:Codex",
    "gemini": "takeback.agents.gemini:Gemini",
    "copilot": "takeback.agents.copilot:Copilot",
    "qwen": "takeback.agents.qwen:Qwen",
    "opencode": "takeback.agents.opencode:Opencode",
    "cursor": "takeback.agents.cursor:Cursor",
}


def load(name: str) -> Agent:
    """The agent of this name."""
    from importlib import import_module

    if name not in AGENTS:
        raise UsageError(f"no agent is called {name!r}", f"name one of: {', '.join(AGENTS)}")
    module, _, found = AGENTS[name].partition(":")
    made: Agent = getattr(import_module(module), found)()
    return made
