"""The command line that is written into an agent's configuration for one of its hooks."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path


def hook_command(agent: str, event: str = "") -> str:
    """One line for the agent's shell. It names this interpreter and this installation by their paths, so that it works
    in any folder and with any PATH; nothing of the user's Python settings reaches it (-I -S).

    A hook that is left behind after an uninstall, or read on another machine, says nothing: some agents would stop
    every call for a program that is missing."""
    script = str(Path(__file__).with_name("start.py"))
    words = [sys.executable, "-I", "-S", script, agent, *([event] if event else [])]
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(words)
    missing = f"[ ! -x {shlex.quote(sys.executable)} ] || [ ! -f {shlex.quote(script)} ]"
    return f"{missing} || exec {shlex.join(words)}"
