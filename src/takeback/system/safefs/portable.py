"""Folders by path, for systems without folder descriptors. A racer who swaps a parent between the check and
the step can win here; docs/platforms.md says so."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping

from . import keys

_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_WINDOWS = os.name == "nt"


class PortableFolder:
    """The same methods as PosixFolder, by absolute path."""

    __slots__ = ("absolute", "path")

    def __init__(self, absolute: bytes, path: bytes) -> None:
        self.absolute = absolute
        self.path = path
        if not stat.S_ISDIR(os.lstat(absolute).st_mode):
            raise NotADirectoryError(20, "not a folder", absolute)

    @classmethod
    def root(cls, path: str) -> PortableFolder:
        return cls(os.fsencode(os.path.realpath(path)), b"")

    def close(self) -> None:
        pass

    def __enter__(self) -> PortableFolder:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _at(self, name: bytes) -> bytes:
        return os.path.join(self.absolute, name)

    def child(self, name: bytes) -> PortableFolder:
        return PortableFolder(self._at(name), self.path + b"/" + name if self.path else name)

    def descend(self, names: list[bytes], across: bool = False) -> PortableFolder:
        here = self
        for name in names:
            here = here.child(name)
        return here

    def listing(self) -> list[tuple[bytes, os.stat_result]]:
        found = []
        with os.scandir(self.absolute) as entries:
            for entry in entries:
                try:
                    # DirEntry.stat leaves the inode at zero on Windows.
                    st = os.lstat(entry.path) if _WINDOWS else entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                found.append((entry.name, st))
        found.sort()
        return found

    def keys(self, names: list[bytes]) -> bytes:
        return keys.pack_all(self.stat, names)

    def stat(self, name: bytes) -> os.stat_result:
        return os.lstat(self._at(name))

    def stat_self(self) -> os.stat_result:
        return os.lstat(self.absolute)

    def open_read(self, name: bytes) -> int:
        return os.open(self._at(name), _READ)

    def readlink(self, name: bytes) -> bytes:
        return os.readlink(self._at(name))

    def xattrs(self, fd: int) -> list[tuple[bytes, bytes]]:
        return []

    def self_xattrs(self) -> list[tuple[bytes, bytes]]:
        return []

    def create(self, name: bytes) -> int:
        return os.open(self._at(name), _CREATE, 0o600)

    def mkdir(self, name: bytes) -> None:
        os.mkdir(self._at(name), 0o700)

    def rmdir(self, name: bytes) -> None:
        os.rmdir(self._at(name))

    def unlink(self, name: bytes) -> None:
        os.unlink(self._at(name))

    def symlink(self, target: bytes, name: bytes) -> None:
        os.symlink(os.fsdecode(target), os.fsdecode(self._at(name)))

    def link(self, source: PortableFolder, source_name: bytes, name: bytes) -> None:
        os.link(source._at(source_name), self._at(name), follow_symlinks=False) if not _WINDOWS else os.link(
            source._at(source_name), self._at(name)
        )

    def move(self, old: bytes, new: bytes) -> None:
        if _WINDOWS:
            os.rename(self._at(old), self._at(new))  # refuses to replace, there
        elif stat.S_ISDIR(self.stat(old).st_mode):
            self.mkdir(new)
            os.rename(self._at(old), self._at(new))
        else:
            self.link(self, old, new)
            try:
                self.unlink(old)
            except OSError:
                self.unlink(new)  # it did not move
                raise

    def replace(self, old: bytes, new: bytes) -> None:
        os.replace(self._at(old), self._at(new))

    def exchange(self, a: bytes, b: bytes) -> bool:
        return False

    def chmod(self, name: bytes, mode: int) -> None:
        if not stat.S_ISLNK(self.stat(name).st_mode) and not _WINDOWS:
            os.chmod(self._at(name), mode)

    def set_self(self, mode: int, xattrs: Mapping[bytes, bytes] | None) -> None:
        if not _WINDOWS:
            os.chmod(self.absolute, mode)

    def utime(self, name: bytes, mtime_ns: int) -> None:
        if os.utime in os.supports_follow_symlinks:
            os.utime(self._at(name), ns=(mtime_ns, mtime_ns), follow_symlinks=False)
        elif not stat.S_ISLNK(self.stat(name).st_mode):
            os.utime(self._at(name), ns=(mtime_ns, mtime_ns))

    def utime_self(self, mtime_ns: int) -> None:
        os.utime(self.absolute, ns=(mtime_ns, mtime_ns))

    def chown(self, name: bytes, uid: int, gid: int) -> None:
        if hasattr(os, "lchown"):
            try:
                os.lchown(self._at(name), uid, gid)
            except PermissionError:
                pass

    def set_xattrs(self, fd: int, wanted: Iterable[tuple[bytes, bytes]]) -> None:
        pass

    def start_sync(self) -> None:
        pass

    def sync(self) -> None:
        if hasattr(os, "sync"):
            os.sync()
