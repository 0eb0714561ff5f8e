"""Starting the resident process: apart from whoever starts it, in a session of its own, with nothing of theirs open."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from takeback.config import settings

from . import client

_PATIENCE = 10.0  # seconds for it to come up, or to end
_KEPT = ("HOME", "PATH", "LANG", "LC_ALL", "TMPDIR")  # of the environment: each call brings its own


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether hooks may leave a process behind. One that is started below `takeback run` could not write the store."""
    if not hasattr(os, "fork") or environ.get("TAKEBACK_RUN"):
        return False
    return settings.load(None, environ).resident


def status(stop: bool = False) -> dict[str, Any]:
    """What it says of itself; empty where none runs. May tell it to end."""
    if os.name != "posix":
        return {}
    place = client.folder(os.environb)
    if not client.is_private(place):
        return {}
    reply = client.ask(place, client.request([client.STOP if stop else client.STATUS], b"", b"", {}))
    found: dict[str, Any] = json.loads(reply[1] or b"{}") if reply is not None else {}
    return found


def ensure(environ: Mapping[str, str], here: str) -> dict[str, Any]:
    """Has it run, and waits until it answers; empty where it is not wanted or does not come up."""
    if found := status():
        return found
    return wait(_PATIENCE) if start(environ, here) else {}


def wait(patience: float) -> dict[str, Any]:
    """Until it answers, over HTTP too if it is to; empty where it does not in time."""
    until = time.monotonic() + patience
    while not (found := status()) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def end() -> bool:
    """Tells it to end, and waits for that. Whether none runs any more."""
    until = time.monotonic() + _PATIENCE
    status(stop=True)
    while (found := status()) and time.monotonic() < until:
        time.sleep(0.02)
    return not found


def start(environ: Mapping[str, str], here: str = "") -> bool:
    """Has it started, if it is wanted; it opens the workspace of this folder at once. Two that start at the same time
    are one: the second finds the first's lock. Nobody waits for it."""
    if not is_wanted(environ):
        return False
    kept = {k: v for k, v in environ.items() if k in _KEPT or k.startswith(("XDG_", "TAKEBACK"))}
    argv = [sys.executable, "-I", "-S", str(Path(__file__).with_name("start.py")), client.SERVE, here]
    if sys.platform == "win32":
        return False
    first = os.fork()
    if first == 0:
        _become(argv, kept)
    os.waitpid(first, 0)
    return True


def _become(argv: list[str], environ: dict[str, str]) -> None:
    """Never returns. Forked twice, it is nobody's child, and whoever reads our output does not wait for it."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(3, 1 << 16)
        os.chdir("/")
        os.execve(argv[0], argv, environ)
    finally:
        os._exit(1)
