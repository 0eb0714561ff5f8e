"""The real agents: how each is started against a scripted model, and what it calls its tools.

`scripts/agents` installs them. In a test they have a home of their own, dummy keys, and no network but 127.0.0.1.
"""

from __future__ import annotations

from .claude import Claude
from .codex import Codex
from .copilot import Copilot
from .driver import Driver, Running, must_run, why_not
from .gemini import Gemini
from .opencode import Opencode
from .qwen import Qwen

DRIVERS: dict[str, type[Driver]] = {driver.name: driver for driver in (Claude, Codex, Gemini, Copilot, Qwen, Opencode)}

__all__ = [
    "DRIVERS",
    "Claude",
    "Codex",
    "Copilot",
    "Driver",
    "Gemini",
    "Opencode",
    "Qwen",
    "Running",
    "must_run",
    "why_not",
]
