"""Landlock: what a process gives up for itself and all it starts, without any privilege. Linux, by system call.

It knows only what is allowed, never what is forbidden. So all but one folder means: each neighbour of that folder,
each neighbour of its parent, and so on up to the root. What is made later right in one of those parents has no rule
and cannot be written: docs/run.md says so.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Iterator

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1  # asks for the ABI instead of making a ruleset
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

WRITE_FILE = 1 << 1
REMOVE = 1 << 4 | 1 << 5
MAKE = sum(1 << bit for bit in range(6, 13))
REFER = 1 << 13  # since ABI 2; before it, no file could be moved between folders at all
TRUNCATE = 1 << 14  # since ABI 3
OLDEST = 2

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """What this kernel offers; zero where it has no Landlock or it is switched off."""
    if _libc is None:
        return 0
    return max(0, int(_libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def refuse_writing(folder: str, also_allowed: Iterable[str] = ()) -> None:
    """From now on nothing in this folder is written, made, moved or removed by this process and its children."""
    handled = WRITE_FILE | REMOVE | MAKE | REFER | (TRUNCATE if abi() >= 3 else 0)
    _restrict(handled, [*_neighbours(os.path.realpath(folder)), *also_allowed])


def freeze_mounts() -> None:
    """From now on this process and its children mount and unmount nothing; all else stays as it is."""
    _restrict(REFER, ["/"])


def _neighbours(folder: str) -> Iterator[str]:
    """Everything that is neither on the way to a folder nor in it."""
    here = folder
    while (parent := os.path.dirname(here)) != here:
        try:
            with os.scandir(parent) as entries:
                yield from (entry.path for entry in entries if entry.name != os.path.basename(here))
        except OSError:
            pass  # what cannot be listed is not allowed either
        here = parent


def _restrict(handled: int, allowed: Iterable[str]) -> None:
    assert _libc is not None
    rules = _Ruleset(handled)
    made = _checked(_libc.syscall(_CREATE, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0))
    try:
        for path in allowed:
            _allow(made, path, handled)
        if _libc.syscall(_RESTRICT, made, 0) != 0:  # without privilege only who gives up sudo and the like may do it
            _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
            _checked(_libc.syscall(_RESTRICT, made, 0))
    finally:
        os.close(made)


def _allow(ruleset: int, path: str, handled: int) -> None:
    assert _libc is not None
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone, or not for us
    try:
        mode = os.fstat(fd).st_mode
        rights = handled if stat.S_ISDIR(mode) else handled & (WRITE_FILE | TRUNCATE)
        if rights and not stat.S_ISLNK(mode):
            rule = _Beneath(rights, fd)
            _checked(_libc.syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(fd)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
