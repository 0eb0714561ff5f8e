"""A hook's command line in an agent's configuration: whether it is one of ours, and whether it can still run."""

from __future__ import annotations

import os
import shlex
from typing import NamedTuple

from takeback.agents import AGENTS

_SCRIPTS = ("takeback/surfaces/resident/start.py",)  # what our hooks have run, and may still run, by its path


class Line(NamedTuple):
    """One of ours, taken apart."""

    agent: str
    event: str
    files: tuple[str, ...]  # that it needs in order to run


def read(line: object) -> Line | None:
    """What a command line says, if it is a hook of ours, of this installation or of any other."""
    if not isinstance(line, str) or "takeback" not in line:
        return None
    try:
        words = shlex.split(line, posix=os.name != "nt")
    except ValueError:
        return None
    words = [word.strip('"') for word in words]
    if "exec" in words and words[0] == "[":  # what comes before only asks whether it can run
        words = words[words.index("exec") + 1 :]
    for at, word in enumerate(words[:-1]):
        is_script = word.replace("\\", "/").endswith(_SCRIPTS)
        is_verb = word == "hook" and at and os.path.basename(words[at - 1]) in ("takeback", "takeback.exe")
        if (is_script or is_verb) and words[at + 1] in AGENTS and len(words) <= at + 3:
            event = words[at + 2] if len(words) > at + 2 else ""
            files = [words[0], *([word] if is_script else [])]
            return Line(words[at + 1], event, tuple(file for file in files if os.path.isabs(file)))
    return None


def is_ours(line: object) -> bool:
    return read(line) is not None
