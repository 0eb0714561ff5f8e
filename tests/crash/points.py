"""Every call that changes something, counted: so that a test can kill, or fail, exactly the Nth of them.

Points are the calls of the os module that write, safefs' own system calls, files opened for writing, and SQLite's
statements. With `reads` the calls that look at the world are points too. Nothing below Python is counted: SQLite's own
writes are covered by the strace variant of the sweep.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from takeback.system.safefs import linux

WRITES = [
    "write",
    "writev",
    "pwrite",
    "ftruncate",
    "truncate",
    "rename",
    "replace",
    "link",
    "symlink",
    "unlink",
    "remove",
    "mkdir",
    "rmdir",
    "chmod",
    "fchmod",
    "utime",
    "chown",
    "lchown",
    "setxattr",
    "removexattr",
    "fsync",
    "fdatasync",
    "sync",
]
READS = ["read", "pread", "stat", "lstat", "fstat", "scandir", "listdir", "readlink", "listxattr", "getxattr", "lseek"]
_ONE_IN = 8
_CREATES = os.O_CREAT | os.O_TRUNC
_STATEMENTS = (
    "BEGIN",
    "INSERT",
    "UPDATE",
    "COMMIT",
    "CREATE",
    "VACUUM",
    "PRAGMA WAL_CHECKPOINT",
    "PRAGMA JOURNAL_MODE",
)
_REAL = {name: getattr(os, name) for name in (*WRITES, *READS, "open", "fdopen", "kill", "getpid") if hasattr(os, name)}
_REAL_OPEN, _REAL_CONNECT, _REAL_IOCTL = builtins.open, sqlite3.connect, fcntl.ioctl
_REAL_LINUX = {name: getattr(linux, name) for name in ("rename2", "sync_filesystem", "open_folder_beneath")}


def die() -> None:
    _REAL["kill"](_REAL["getpid"](), signal.SIGKILL)


def _set_connect(connect: Callable[..., sqlite3.Connection]) -> None:
    """Wherever the program takes it from: the public module, or the one below it."""
    sqlite3.connect = connect
    sys.modules["_sqlite3"].connect = connect  # type: ignore[attr-defined]


def _full() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def _broken() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


def chosen(names: Sequence[str], shift: int | None = None) -> list[int]:
    """The numbers of the points to try: all of them; or, where a shift is given, a sample of each kind. A kind is a call
    right after another one; one in eight of each is tried, and at least one, beginning with another one for each shift."""
    if shift is None:
        return list(range(1, len(names) + 1))
    kinds: dict[tuple[str, str], list[int]] = {}
    for number, kind in enumerate(pairwise(["", *names]), 1):
        kinds.setdefault(kind, []).append(number)
    return sorted(number for alike in kinds.values() for number in alike[shift % min(len(alike), _ONE_IN) :: _ONE_IN])


class Points:
    """Counts; at point number `at` it does what it was told: "before", "after" or "half" kill, an errno fails."""

    def __init__(self, at: int = 0, how: str | int = "", reads: bool = False) -> None:
        self.at = at
        self.how = how
        self.reads = reads
        self.seen = 0
        self.names: list[str] = []
        self.armed = True

    def hit(self, name: str, do: Callable[[], Any], half: Callable[[], Any] | None = None, sql: bool = False) -> Any:
        if not self.armed:
            return do()
        self.seen += 1
        self.names.append(name)
        if self.seen != self.at:
            return do()
        if isinstance(self.how, int):
            if half is not None and self.how == errno.ENOSPC:
                half()  # a full disk takes what still fits
            if sql:
                raise _full() if self.how == errno.ENOSPC else _broken()
            raise OSError(self.how, os.strerror(self.how))
        try:
            if self.how == "after":
                do()
            elif self.how == "half" and half is not None:
                half()
        finally:
            die()
        raise AssertionError("still alive")

    @contextmanager
    def paused(self) -> Iterator[None]:
        was, self.armed = self.armed, False
        try:
            yield
        finally:
            self.armed = was

    # -- putting the counters in place ---------------------------------------

    @contextmanager
    def counting(self) -> Iterator[Points]:
        self.install()
        try:
            yield self
        finally:
            self.remove()

    def install(self) -> None:
        for name in WRITES:
            if name in _REAL:
                setattr(os, name, self._counted(name))
        if self.reads:
            for name in READS:
                if name in _REAL:
                    setattr(os, name, self._counted(name))
        os.open = self._open
        os.fdopen = self._fdopen
        builtins.open = self._file
        io.open = self._file  # pathlib's
        fcntl.ioctl = lambda *args: self.hit("ioctl", lambda: _REAL_IOCTL(*args))
        for name in ("rename2", "sync_filesystem", *(("open_folder_beneath",) if self.reads else ())):
            setattr(linux, name, self._counted(name, _REAL_LINUX[name]))
        points = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
                do = lambda: sqlite3.Connection.execute(self, sql, *rest)
                words = sql.upper()
                if words.startswith(_STATEMENTS) or (points.reads and words.startswith("SELECT")):
                    return points.hit("sql " + " ".join(words.split()[:2]), do, sql=True)
                return do()

            def executemany(self, sql: str, *rest: Any) -> sqlite3.Cursor:
                do = lambda: sqlite3.Connection.executemany(self, sql, *rest)
                return points.hit("sql " + sql.upper().split()[0], do, sql=True)

        _set_connect(lambda *args, **named: _REAL_CONNECT(*args, factory=Connection, **named))

    def remove(self) -> None:
        for name, function in _REAL.items():
            setattr(os, name, function)
        for name, function in _REAL_LINUX.items():
            setattr(linux, name, function)
        builtins.open = io.open = _REAL_OPEN
        fcntl.ioctl = _REAL_IOCTL
        _set_connect(_REAL_CONNECT)

    def _counted(self, name: str, real: Callable[..., Any] | None = None) -> Callable[..., Any]:
        call = real or _REAL[name]

        def counted(*args: Any, **named: Any) -> Any:
            half = None
            if name in ("write", "pwrite") and len(args[1]) > 1:
                half = lambda: call(args[0], bytes(args[1])[: len(args[1]) // 2], *args[2:])
            return self.hit(name, lambda: call(*args, **named), half)

        for supports in (os.supports_follow_symlinks, os.supports_dir_fd, os.supports_fd):
            if call in supports:
                supports.add(counted)
        return counted

    def _open(self, path: Any, flags: int, *args: Any, **named: Any) -> int:
        do = lambda: _REAL["open"](path, flags, *args, **named)
        creates = flags & _CREATES or (flags & os.O_ACCMODE) != os.O_RDONLY
        return self.hit("open w" if creates else "open r", do) if creates or self.reads else do()

    def _file(
        self, file: Any, mode: str = "r", buffering: int = -1, *rest: Any, opener: Any = None, **named: Any
    ) -> Any:
        """A file opened for writing writes through os.write, so that each of its writes is a point."""
        if not set(mode) & set("wax+"):
            return (
                _REAL_OPEN(file, mode, buffering, *rest, opener=opener, **named)
                if not self.reads
                else self.hit("open r", lambda: _REAL_OPEN(file, mode, buffering, *rest, opener=opener, **named))
            )
        if isinstance(file, int):
            return self._fdopen(file, mode, buffering)
        flags = {"w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND, "x": os.O_CREAT | os.O_EXCL, "r": 0}[
            mode[0]
        ]
        flags |= os.O_CLOEXEC | (os.O_RDWR if "+" in mode else os.O_WRONLY)
        return self._fdopen(opener(file, flags) if opener else os.open(file, flags, 0o666), mode, buffering)

    def _fdopen(self, fd: int, mode: str = "r", buffering: int = -1, *rest: Any, **named: Any) -> Any:
        if not set(mode) & set("wax+"):
            return _REAL["fdopen"](fd, mode, buffering, *rest, **named)
        raw = _Through(fd, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered)


class _Through(io.FileIO):
    def write(self, data: Any) -> int:  # type: ignore[override]
        return os.write(self.fileno(), data)
