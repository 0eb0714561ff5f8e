"""The one door to the user's tree: by folder, following no links. Names are bytes.

`open_root` hands out a Folder; everything below is reached from it by name or by a checked relative
path. The implementation by folder descriptor (posix) is the one that a racer cannot lead astray; the
portable one works by path, for systems without descriptors for folders, and checks before each step.
"""

from __future__ import annotations

import os
import sys

from takeback.errors import UsageError

from .portable import PortableFolder

if sys.platform != "win32":
    from .posix import PosixFolder

    Folder = PosixFolder | PortableFolder
else:
    Folder = PortableFolder


TEMPORARY = b".takeback-"  # how a running take-back's own files begin

# What a look raises at a path that is not there: it has no such name, or what should be a folder above it is none now.
# A link is no folder here, whatever it leads to; both implementations say so.
ABSENT = (FileNotFoundError, NotADirectoryError)


def open_root(path: str, portable: bool = False) -> Folder:
    """The folder at `path` itself may be reached through links; nothing below it is."""
    if portable or sys.platform == "win32":
        return PortableFolder.root(path)
    return PosixFolder.root(path)


def components(path: bytes) -> list[bytes]:
    """A root-relative path as its names; refuses what could lead elsewhere."""
    if b"\0" in path:
        raise UsageError("a path cannot hold a NUL byte", "name the path without it")
    if path.startswith(b"/") or (os.name == "nt" and (b":" in path or b"\\" in path)):
        raise UsageError(f"{path!r} is absolute", "name paths relative to the workspace's root")
    if not path:
        return []
    names = path.split(b"/")
    if any(name in (b"", b".", b"..") for name in names):
        raise UsageError(f"{path!r} leads elsewhere", "name paths without '.', '..' or empty parts")
    return names
