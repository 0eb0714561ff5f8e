"""System calls that Python does not offer: each returns False or raises NotImplementedError where missing."""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import sys

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
_OPENAT2 = 437
_SYNC_FILE_RANGE_WRITE = 2
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_BENEATH_NO_LINKS = 0x08 | 0x04 | 0x02  # RESOLVE_BENEATH, NO_SYMLINKS, NO_MAGICLINKS
_NO_MOUNTS = 0x01  # RESOLVE_NO_XDEV

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_have: dict[str, bool] = {}


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _OpenHow(_FLAGS, 0, _BENEATH_NO_LINKS | _NO_MOUNTS)
_FOLDER_ACROSS = _OpenHow(_FLAGS, 0, _BENEATH_NO_LINKS)


def _fail(path: bytes) -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), path)


def open_folder_beneath(root: int, path: bytes, across: bool = False) -> int:
    """One call from the root to a folder, through no link, and only `across` through a mount; NotImplementedError on
    old kernels."""
    if _libc is None or not _have.get("openat2", True):
        raise NotImplementedError
    how = _FOLDER_ACROSS if across else _FOLDER
    for _ in range(64):
        fd: int = _libc.syscall(_OPENAT2, root, path, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code in (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG):
            _have["openat2"] = False
            raise NotImplementedError
        if code != errno.EAGAIN:  # EAGAIN: a rename went on somewhere meanwhile
            break
    _fail(path)
    raise AssertionError


def rename2(folder: int, old: bytes, new: bytes, flags: int) -> None:
    """renameat2 within one folder; NotImplementedError where kernel or file system lack it."""
    if _libc is None or not hasattr(_libc, "renameat2") or not _have.get(f"rename2-{flags}", True):
        raise NotImplementedError
    if _libc.renameat2(folder, old, folder, new, flags) != 0:
        code = ctypes.get_errno()
        if code in (errno.ENOSYS, errno.EINVAL):
            _have[f"rename2-{flags}"] = False
            raise NotImplementedError
        _fail(old)


def start_writing(fd: int, offset: int, size: int) -> None:
    """Lets the disk begin with what was written, so that the sync at the end waits for little. Only a hint."""
    if _libc is not None and hasattr(_libc, "sync_file_range"):
        _libc.sync_file_range(fd, ctypes.c_int64(offset), ctypes.c_int64(size), _SYNC_FILE_RANGE_WRITE)


def trim_memory() -> None:
    """Gives memory that was freed back to the system, after work on a large tree."""
    if _libc is not None and hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def end_with_parent() -> None:
    """Has the system kill this process when the thread that forked it ends, where it can."""
    if _libc is not None and hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(_SIGKILL))


def start_syncing(fd: int) -> None:
    """Lets the disk begin with all that was written to a file system. Only a hint, and by a thread: not for a process
    that forks again. By a descriptor of its own, since each is told of an error once, and the sync that counts must
    hear of it."""
    if _libc is not None and hasattr(_libc, "syncfs"):
        try:
            _thread.start_new_thread(_libc.syncfs, (os.open(b".", _FLAGS, dir_fd=fd),))
        except (OSError, RuntimeError):
            pass


def sync_filesystem(fd: int) -> None:
    if _libc is not None and hasattr(_libc, "syncfs"):
        if _libc.syncfs(fd) != 0:
            _fail(b"")
    else:
        os.sync()
