"""A hook that does all of it by itself, and has the resident process started for the next one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.surfaces.hook import Asked
from takeback.surfaces.hook import answer as respond
from takeback.system import forking, processes

if TYPE_CHECKING:
    from takeback.config.settings import Settings
    from takeback.workspace import Workspace

_PATIENCE = 3.0  # seconds for the resident process to come up, where the next to ask can start none


def answer(words: Sequence[str], said: bytes) -> tuple[int, bytes, bytes]:
    """Exit code, standard output, standard error. The process ends after it."""
    agent, event = (*words, "", "")[:2]
    environ = dict(os.environ)
    here = _here(environ)
    is_starting = _have_started(environ, here)
    above = processes.above_shells(os.getpid())
    at = processes.hook_began(os.getpid())
    reply = respond(Asked(agent, event, said, here, environ, *above, at), _opened, forking.beside)
    if is_starting:
        _wait_for_http(environ)
    return reply.code, printed(reply.out), reply.err.encode("utf-8", "replace")


def printed(out: str) -> bytes:
    return out.encode("utf-8", "replace") + b"\n" if out else b""


@contextmanager
def _opened(root: Path, settings: Settings, environ: Mapping[str, str]) -> Iterator[Workspace]:
    """Never closed: the end of the process does that, and SQLite would copy its log into the table first. All that was
    journaled is synced, and whoever opens it next goes on from there."""
    from takeback.workspace import open_workspace

    yield open_workspace(root, settings, environ=environ)


def _have_started(environ: Mapping[str, str], here: str) -> bool:
    """Never raises: this hook is answered all the same."""
    if environ.get("TAKEBACK_RESIDENT", "").lower() in ("off", "0", "false", "no"):
        return False
    try:
        from . import starting

        return starting.start(environ, here)
    except Exception:
        return False


def _wait_for_http(environ: Mapping[str, str]) -> None:
    """An agent that asks by HTTP asks next, and has nobody else to ask: it must find the process up. Never raises."""
    try:
        from takeback.config import settings

        from . import starting

        if settings.load(None, environ).http_port:
            starting.wait(_PATIENCE)
    except Exception:
        return


def _here(environ: Mapping[str, str]) -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder is gone
        return environ.get("PWD", "")
