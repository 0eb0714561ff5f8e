"""Folders by descriptor: a swapped parent or a planted link cannot lead out of the root."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from . import keys

if TYPE_CHECKING:
    from types import ModuleType

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO swapped in must not block us
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_NOATIME = getattr(os, "O_NOATIME", 0)
_NAMES, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_SKIPPED_XATTRS = ("security.selinux", "security.ima", "security.evm")  # set by the system's policy, not by people


_NO_XATTRS = (
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.ENODATA,
    errno.EPERM,
    errno.EACCES,
)  # none, or not for us


@cache  # an import statement costs more than some of the calls
def _linux() -> ModuleType:
    """Loaded when it is needed: the hook's start is too short for it."""
    from . import linux

    return linux


def _no_folder(error: OSError, path: bytes) -> OSError:
    """A link where a folder should be, which the kernel calls too many levels of links, is no folder."""
    return NotADirectoryError(errno.ENOTDIR, "not a folder", path) if error.errno == errno.ELOOP else error


class PosixFolder:
    """An open folder of the user's tree; `path` is relative to the root, for messages."""

    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: bytes) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def root(cls, path: str) -> PosixFolder:
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), b"")

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> PosixFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- going down ----------------------------------------------------------

    def child(self, name: bytes) -> PosixFolder:
        try:
            fd = os.open(name, _FOLDER, dir_fd=self.fd)
        except OSError as error:
            raise _no_folder(error, name) from None
        return PosixFolder(fd, self.path + b"/" + name if self.path else name)

    def descend(self, names: list[bytes], across: bool = False) -> PosixFolder:
        """The folder at a path below this one, in one system call where the kernel offers it; `across` mounts only on
        the way to a file that was named, never in a tree."""
        if not names:
            return PosixFolder(os.dup(self.fd), self.path)
        path = b"/".join(names)
        try:
            return PosixFolder(_linux().open_folder_beneath(self.fd, path, across), path)
        except NotImplementedError:
            here = self
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:  # deeper than PATH_MAX, so go name by name
                raise _no_folder(error, path) from None
            here = self
        for name in names:
            try:
                below = here.child(name)
            finally:
                if here is not self:
                    here.close()
            here = below
        return here

    # -- looking -------------------------------------------------------------

    def listing(self) -> list[tuple[bytes, os.stat_result]]:
        """Every name with its lstat, sorted by bytes."""
        found = []
        with os.scandir(self.fd) as entries:
            for entry in entries:
                try:
                    found.append((entry.name.encode(_NAMES, _ERRORS), entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue  # gone since the folder was read
        found.sort()
        return found

    def keys(self, names: list[bytes]) -> bytes:
        return keys.pack_all(partial(os.stat, dir_fd=self.fd, follow_symlinks=False), names)

    def stat(self, name: bytes) -> os.stat_result:
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def stat_self(self) -> os.stat_result:
        return os.fstat(self.fd)

    def open_read(self, name: bytes) -> int:
        try:
            return os.open(name, _READ | _NOATIME, dir_fd=self.fd)
        except PermissionError:  # O_NOATIME is for owners only
            return os.open(name, _READ, dir_fd=self.fd)

    def readlink(self, name: bytes) -> bytes:
        return os.readlink(name, dir_fd=self.fd)

    def xattrs(self, fd: int) -> list[tuple[bytes, bytes]]:
        """Extended attributes, ACLs among them, of an open file or folder; empty where there are none."""
        if not hasattr(os, "listxattr"):
            return []
        try:
            names = os.listxattr(fd)
            return (
                []
                if not names
                else sorted((os.fsencode(n), os.getxattr(fd, n)) for n in names if n not in _SKIPPED_XATTRS)
            )
        except OSError as error:
            if error.errno not in _NO_XATTRS:
                raise
            return []

    def self_xattrs(self) -> list[tuple[bytes, bytes]]:
        return self.xattrs(self.fd)

    # -- changing ------------------------------------------------------------

    def create(self, name: bytes) -> int:
        return os.open(name, _CREATE, 0o600, dir_fd=self.fd)

    def mkdir(self, name: bytes) -> None:
        os.mkdir(name, 0o700, dir_fd=self.fd)

    def rmdir(self, name: bytes) -> None:
        os.rmdir(name, dir_fd=self.fd)

    def unlink(self, name: bytes) -> None:
        os.unlink(name, dir_fd=self.fd)

    def symlink(self, target: bytes, name: bytes) -> None:
        os.symlink(target, name, dir_fd=self.fd)

    def link(self, source: PosixFolder, source_name: bytes, name: bytes) -> None:
        os.link(source_name, name, src_dir_fd=source.fd, dst_dir_fd=self.fd, follow_symlinks=False)

    def move(self, old: bytes, new: bytes) -> None:
        """Renames, and raises FileExistsError rather than replace anything."""
        try:
            _linux().rename2(self.fd, old, new, _linux().RENAME_NOREPLACE)
        except NotImplementedError:
            if stat.S_ISDIR(self.stat(old).st_mode):
                self.mkdir(new)  # an empty folder may be replaced by a folder, so this one is a safe seat
                os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)
            else:
                self.link(self, old, new)
                try:
                    self.unlink(old)
                except OSError:
                    self.unlink(new)  # it did not move
                    raise

    def replace(self, old: bytes, new: bytes) -> None:
        """Renames over what is there."""
        os.replace(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def exchange(self, a: bytes, b: bytes) -> bool:
        """Swaps two names in one step; False where kernel or file system cannot."""
        try:
            _linux().rename2(self.fd, a, b, _linux().RENAME_EXCHANGE)
        except NotImplementedError:
            return False
        return True

    def chmod(self, name: bytes, mode: int) -> None:
        try:
            fd = os.open(name, _READ, dir_fd=self.fd)
        except PermissionError:
            fd = os.open(name, _PATH, dir_fd=self.fd)
            try:
                os.chmod(f"/proc/self/fd/{fd}", mode)
            finally:
                os.close(fd)
            return
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def set_self(self, mode: int, xattrs: Mapping[bytes, bytes] | None) -> None:
        """This folder's own mode and, unless None, its attributes."""
        if xattrs is not None:
            self.set_xattrs(self.fd, xattrs.items())
        os.fchmod(self.fd, mode)
        if stat.S_IMODE(os.fstat(self.fd).st_mode) != mode:
            raise OSError(errno.EPERM, "the mode did not take")

    def utime(self, name: bytes, mtime_ns: int) -> None:
        os.utime(name, ns=(mtime_ns, mtime_ns), dir_fd=self.fd, follow_symlinks=False)

    def utime_self(self, mtime_ns: int) -> None:
        os.utime(self.fd, ns=(mtime_ns, mtime_ns))

    def chown(self, name: bytes, uid: int, gid: int) -> None:
        """Where permitted: only a privileged user may give files away."""
        try:
            os.chown(name, uid, gid, dir_fd=self.fd, follow_symlinks=False)
        except PermissionError:
            pass

    def set_xattrs(self, fd: int, wanted: Iterable[tuple[bytes, bytes]]) -> None:
        if not hasattr(os, "setxattr"):
            return
        goal = dict(wanted)
        for name, _ in self.xattrs(fd):
            if name not in goal:
                os.removexattr(fd, name)
        for name, value in goal.items():
            os.setxattr(fd, name, value)

    def start_sync(self) -> None:
        """Begins to write out what was written so far, for a process that soon ends. Only a hint."""
        _linux().start_syncing(self.fd)

    def sync(self) -> None:
        """Everything written so far to this file system is on disk when this returns."""
        _linux().sync_filesystem(self.fd)
