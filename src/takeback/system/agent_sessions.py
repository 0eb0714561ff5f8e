"""Processes that are agents' sessions, kept beside the stores: what only a person may do is refused below them in every
project, also where nothing of theirs was journaled.

<home>/sessions/PID.STARTED   {"name": the agent, "root": where it was journaled}; removed once the process is gone
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import processes
from .forking import is_running
from .processes import Process

FOLDER = "sessions"


def note(home: Path, root: Path, process: Process, name: str) -> None:
    """Silent where nothing can be written: the journal of its own project still tells."""
    folder = home / FOLDER
    path = folder / f"{process.pid}.{process.started}"
    if not process.pid or os.path.lexists(path):
        return
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _sweep(folder)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(json.dumps({"name": name, "root": str(root)}))
    except OSError:
        return


def known(home: Path) -> list[Mapping[str, Any]]:
    """Those that were noted, as the journal has them: pid, started, name, and the root where they were journaled."""
    folder = home / FOLDER
    return [{"pid": p.pid, "started": p.started, **_said(path)} for path, p in _processes(folder)]


def root_above(home: Path) -> Path | None:
    """Where the nearest session among the processes above was journaled; None if there is none, or nobody can tell."""
    roots = {Process(each["pid"], each["started"]): each["root"] for each in known(home)}
    found = (roots[process] for process in processes.ancestors(os.getpid()) if process in roots) if roots else ()
    return next((Path(root) for root in found if root), None)


def _processes(folder: Path) -> Iterator[tuple[Path, Process]]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        pid, _, started = name.partition(".")
        if pid.isdecimal() and started.isdecimal():
            yield folder / name, Process(int(pid), int(started))


def _said(path: Path) -> dict[str, str]:
    """What a file says; its name alone says that the process is an agent's."""
    try:
        read = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        read = {}
    read = read if isinstance(read, dict) else {}
    return {key: value if isinstance(value := read.get(key), str) else "" for key in ("name", "root")}


def _sweep(folder: Path) -> None:
    for path, process in _processes(folder):
        if not is_running(str(process.pid)) or processes.started(process.pid) != process.started:
            path.unlink(missing_ok=True)
