"""What tests share: exact pictures of trees, and small changes to them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from takeback.journal.history import History

PORTABLE = os.environ.get("TAKEBACK_PORTABLE") == "1"


def picture(root: Path | str, times: bool = True, skip: tuple[bytes, ...] = ()) -> dict[bytes, tuple[Any, ...]]:
    """All that lstat, content and attributes say of every path below a folder, which is b"" itself; never follows a link.

    Goes by folder descriptor, so that paths longer than PATH_MAX are seen too."""
    found: dict[bytes, tuple[Any, ...]] = {}
    links: dict[tuple[int, int], list[bytes]] = {}

    def visit(fd: int, path: bytes) -> None:
        with os.scandir(fd) as entries:
            names = sorted(os.fsencode(e.name) for e in entries)
        for name in names:
            at = path + b"/" + name if path else name
            if at in skip:
                continue
            st = os.stat(name, dir_fd=fd, follow_symlinks=False)
            content: Any = None
            if stat.S_ISREG(st.st_mode):
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd)
                try:
                    content = _hash(file), _attributes(file)
                finally:
                    os.close(file)
                if st.st_nlink > 1:
                    links.setdefault((st.st_dev, st.st_ino), []).append(at)
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(name, dir_fd=fd)
            elif stat.S_ISDIR(st.st_mode):
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
                try:
                    content = _attributes(folder)
                    visit(folder, at)
                finally:
                    os.close(folder)
            size = st.st_size if not stat.S_ISDIR(st.st_mode) else 0
            found[at] = (st.st_mode, st.st_uid, st.st_gid, size, content, st.st_mtime_ns if times else 0)

    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        visit(top, b"")
        st = os.fstat(top)
        found[b""] = (st.st_mode, st.st_uid, st.st_gid, 0, _attributes(top), st.st_mtime_ns if times else 0)
    finally:
        os.close(top)
    for group in links.values():
        for at in group:
            found[at] = (*found[at], tuple(group))
    return found


def _attributes(fd: int) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):
        return ()
    try:
        return tuple(sorted((n, os.getxattr(fd, n)) for n in os.listxattr(fd)))
    except OSError:
        return ()


def _hash(fd: int) -> str:
    """Of large files only what is not a hole, with where it lies."""
    size = os.fstat(fd).st_size
    digest = hashlib.sha256()
    if size < 64 << 20:
        while chunk := os.read(fd, 1 << 20):
            digest.update(chunk)
        return digest.hexdigest()
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            break
        at -= at % 4096
        os.lseek(fd, at, os.SEEK_SET)
        block = os.read(fd, 4096)
        if block.count(0) != len(block):
            digest.update(str(at).encode() + block)
        at += 4096
    return digest.hexdigest()


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        (root / name).write_text(content)


def age(root: Path | str, seconds: float = 5.0) -> None:
    """Gives every path below a folder distinct times in the past, folders too."""
    base = 1_600_000_000_000_000_000
    for n, (folder, folders, files) in enumerate(os.walk(os.fsencode(root), topdown=False)):
        for m, name in enumerate(sorted(files + folders)):
            when = base + n * 1_000_003_000 + m * 1_009
            os.utime(os.path.join(folder, name), ns=(when, when), follow_symlinks=False)
    os.utime(root, ns=(base - 1, base - 1))


def set_clock(ws: Any, clock: Callable[[], float]) -> None:
    """Lets a workspace live at another time."""
    ws.clock = ws.observer.clock = clock


def assert_folded_whole(ws) -> None:
    """What is folded row by row, as rows come, is what all rows give at once."""
    step_by_step, at_once = ws.history(), History(ws.store.journal.rows(), ws.store.blobs.get)
    for name in (
        "effects",
        "times",
        "checkpoints",
        "takebacks",
        "acts",
        "undos",
        "approvals",
        "damaged",
        "live",
        "standing",
    ):
        assert getattr(step_by_step, name) == getattr(at_once, name), name
