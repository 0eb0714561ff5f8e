"""A process's own view of the mounted file systems: unshare and mount, by system call. Linux."""

from __future__ import annotations

import ctypes
import os
import sys

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _SLAVE = 1, 32, 4096, 16384, 1 << 19

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def own_mounts() -> None:
    """What is mounted from now on is seen by this process and its children alone. Needs privilege."""
    _call("unshare", _NEW_MOUNTS)
    _mount("none", "/", None, _RECURSIVE | _SLAVE)


def own_user_and_mounts() -> None:
    """The same without privilege: in a user namespace where everybody else is nobody."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_USER | _NEW_MOUNTS)
    for name, said in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(said)
    _mount("none", "/", None, _RECURSIVE | _SLAVE)


def overlay(lower: str, upper: str, work: str, at: str, by_user: bool) -> None:
    """Lays an empty layer over a folder; what is written goes into it. `by_user`: without privilege."""
    opened = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in (lower, upper, work)]
    try:  # by descriptor: a path may hold the commas and colons that the options are written with
        low, up, beside = (f"/proc/self/fd/{fd}" for fd in opened)
        options = f"lowerdir={low},upperdir={up},workdir={beside}" + (",userxattr" if by_user else "")
        _mount("overlay", at, "overlay", 0, options)
    finally:
        for fd in opened:
            os.close(fd)


def bind_read_only(folder: str) -> None:
    """Makes a folder read-only, in this view of the file systems."""
    _mount(folder, folder, None, _BIND | _RECURSIVE)
    _mount("none", folder, None, _REMOUNT | _BIND | _READ_ONLY | _kept_flags(folder))


def _kept_flags(folder: str) -> int:
    """nosuid, nodev, noexec and the like, which without privilege may not be dropped."""
    found = os.statvfs(folder).f_flag
    return found & (2 | 4 | 8 | 1024 | 2048) | (1 << 21 if found & 4096 else 0)  # statvfs has relatime elsewhere


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = (os.fsencode(source), os.fsencode(target), kind.encode() if kind else None)
    _call("mount", *texts, ctypes.c_ulong(flags), options.encode() if options else None)


def _call(name: str, *args: object) -> None:
    if _libc is None:
        raise OSError(38, "this system has no namespaces")
    if getattr(_libc, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
