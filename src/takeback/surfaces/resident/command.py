"""The command line that is written into an agent's configuration for one of its hooks."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path


def hook_command(agent: str, event: str = "") -> str:
    """One line for the agent's shell. It names this interpreter and this installation by their paths, so that it works
    in any folder and with any PATH; nothing of the user's Python settings reaches it (-I -S)."""
    words = [sys.executable, "-I", "-S", str(Path(__file__).with_name("start.py")), agent, *([event] if event else [])]
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(words)
    return shlex.join(words)
