"""Setting agents up: one file each says where its configuration lies and what protect writes there."""

from __future__ import annotations

from ...errors import UsageError
from .. import AGENTS
from .targets import Setup

SETUPS = {
    "claude": "Claude",
    "codex": "Codex",
    "gemini": "Gemini",
    "copilot": "Copilot",
    "qwen": "Qwen",
    "opencode": "Opencode",
    "cursor": "Cursor",
}


def load(name: str) -> Setup:
    """How the agent of this name is set up."""
    from importlib import import_module

    if name not in SETUPS:
        raise UsageError(f"no agent is called {name!r}", f"name one of: {', '.join(AGENTS)}")
    made: Setup = getattr(import_module(f"{__name__}.{name}"), SETUPS[name])()
    return made
