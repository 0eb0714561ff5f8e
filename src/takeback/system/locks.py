"""Locks between processes and threads, freed by the kernel when their holder dies.

    Lock(path)                 flock(2) on the file
    Lock(path, portable=True)  BEGIN EXCLUSIVE on <path>.sqlite: a kernel lock on every system
    NullLock()                 a lock inside this process, for the store in memory

Each acquire opens the file anew, so two threads exclude each other as two processes do. The file is
never deleted: whoever waited on the old one would hold a lock that nobody else sees.

A forked child shares the flock of its parent until the child exits. So a child forked under a lock
leaves by os._exit and never releases; release() in the parent unlocks for both, even while the child
runs, and if the parent is killed the lock stays until its worker is gone, which dies with it. SQLite's locks are not
inherited, but its connections must not be used, or closed, in a child either.
"""

from __future__ import annotations

import _thread
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from takeback.errors import Locked, TakebackError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HINT = "wait for the other takeback to finish and try again, or raise lock_timeout"
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05
_here = _thread._local()  # of each thread


@contextmanager
def waiting_while(is_wanted: Callable[[], bool]) -> Iterator[None]:
    """No lock is waited for inside, in this thread, once nobody wants what it is for: that fails as Locked, at once."""
    before = getattr(_here, "is_wanted", None)
    _here.is_wanted = is_wanted
    try:
        yield
    finally:
        _here.is_wanted = before


class Lock:
    """One named lock; its name is the name of its file."""

    _is_awaited = False  # by somebody here, while another process has it

    def __init__(self, path: Path, portable: bool = False) -> None:
        self.path = path
        self._open: type[_Flock | _Exclusive] = _Exclusive if portable or fcntl is None else _Flock
        self._held: _Handle | None = None

    def acquire(self, timeout: float, holder_hint: str = HINT) -> None:
        """Waits until the lock is ours, or raises Locked once the timeout (in seconds) has passed."""
        try:
            handle = self._open(self.path)
            try:
                got_it = handle.try_lock() or self._wait_for(handle, timeout)
            except BaseException:
                handle.close()
                raise
        except OSError as error:
            raise _unusable(self.path, error.strerror or str(error)) from error
        if not got_it:
            handle.close()
            raise _still_locked(self.path.name, timeout, holder_hint, _holder(self.path))
        self._held = handle

    def _wait_for(self, handle: _Handle, timeout: float) -> bool:
        """Tries again and again until the timeout; no system wakes us with a time limit."""
        until, pause = time.monotonic() + timeout, _FIRST_PAUSE
        is_wanted = getattr(_here, "is_wanted", None)
        self._is_awaited = True
        try:
            while (left := until - time.monotonic()) > 0 and (is_wanted is None or is_wanted()):
                time.sleep(min(pause, left))
                if handle.try_lock():
                    return True
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            return False
        finally:
            self._is_awaited = False

    def is_taken(self) -> bool:
        """Whether somebody has it just now. Writes nothing, so that it can be asked of a store that is only read."""
        try:
            return self._open.is_taken(self.path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(self.path, error.strerror or str(error)) from error

    @property
    def waits_for(self) -> str:
        """Who has the lock, while somebody here waits for it; else empty. To be asked from another thread."""
        return f"another process{_holder(self.path)}" if self._is_awaited else ""

    def release(self) -> None:
        """Gives the lock back; whoever waits may have it before this returns."""
        held, self._held = self._held, None
        if held is None:
            raise RuntimeError(f"the {self.path.name} lock is not held")
        held.close()

    @contextmanager
    def hold(self, timeout: float, holder_hint: str = HINT) -> Iterator[None]:
        """Holds the lock for the length of a with block."""
        self.acquire(timeout, holder_hint)
        try:
            yield
        finally:
            self.release()


class NullLock(Lock):
    """The same lock for one process only, and no file: for the store in memory."""

    def __init__(self, name: str = "memory") -> None:
        self.path = Path(name)
        self._lock = _thread.allocate_lock()

    def acquire(self, timeout: float, holder_hint: str = HINT) -> None:
        if not self._lock.acquire(timeout=min(max(timeout, 0), _thread.TIMEOUT_MAX)):
            raise _still_locked(self.path.name, timeout, holder_hint)

    def release(self) -> None:
        self._lock.release()


class _Handle(Protocol):
    def try_lock(self) -> bool: ...

    def close(self) -> None: ...


class _Flock:
    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def try_lock(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        # Closing alone would leave the lock with a forked child that still has the file open.
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            os.close(self._fd)

    @staticmethod
    def is_taken(path: Path) -> bool:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False


class _Exclusive:
    """An exclusive transaction that never writes.

    Nothing else here may open the file: on POSIX, closing any descriptor of it drops the locks that
    SQLite holds on it for the whole process. So its mode is set by path.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".sqlite")
        self._is_new = not self._path.exists()
        try:
            self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise OSError(str(error)) from error

    def try_lock(self) -> bool:
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            raise OSError(str(error)) from error
        if self._is_new:
            self._path.chmod(0o600)
        return True

    def close(self) -> None:
        self._connection.close()

    @staticmethod
    def is_taken(path: Path) -> bool:
        where = path.with_name(path.name + ".sqlite")
        if not where.exists():
            return False
        try:
            connection = sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True, timeout=0)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master")
            finally:
                connection.close()
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return True
            raise OSError(str(error)) from error
        return False


def _still_locked(name: str, timeout: float, hint: str, who: str = "") -> Locked:
    return Locked(f"the {name} lock is still held by another process{who} after {timeout:g} s", hint=hint)


def _holder(path: Path) -> str:
    """Who holds a lock, as far as the kernel tells: Linux lists them."""
    try:
        inode = f":{path.stat().st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()  # 1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0 EOF
            if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(inode) and int(words[4]) > 0:
                name = Path(f"/proc/{words[4]}/comm").read_text(errors="replace").strip()
                return f" ({name}, {words[4]})"
    except (OSError, ValueError):
        pass
    return ""


def _unusable(path: Path, reason: str) -> TakebackError:
    return TakebackError(
        f"cannot lock {path}: {reason}",
        hint="check that its folder exists, is yours and can be written; takeback doctor looks at all of it",
    )
