"""Runs at work in a workspace: each holds a lock in the store that is named after it, and lost when it dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def mark(path: Path) -> Iterator[None]:
    """Holds a run's lock for the length of a with block."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def is_alive(path: Path) -> bool:
    """Whether somebody holds this lock."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def can_tell() -> bool:
    """Whether this system has such locks."""
    return fcntl is not None


def folder_in(store: Path, by_agent: bool = False) -> Path:
    """Where the locks of runs lie; those that an agent started are no turns of their own, and lie apart."""
    return store / ("runs-of-agents" if by_agent else "runs")


def at_work(store: Path | None) -> list[str]:
    """Runs whose command is changing the tree just now, by id."""
    if store is None:
        return []
    try:
        names = sorted(os.listdir(folder_in(store)))
    except OSError:
        return []
    return [name for name in names if is_alive(folder_in(store) / name)]
