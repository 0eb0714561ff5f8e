"""Where a path lies: in the workspace, outside it, in a temporary folder, or with takeback's own."""

from __future__ import annotations

import os
from typing import NamedTuple

from takeback.gate.bash.state import resolved
from takeback.gate.bash.words import UNKNOWN

_TEMPORARY = (
    "/tmp",
    "/var/tmp",
    "/private/tmp",
    "/private/var/tmp",
    "/var/folders",
    "/private/var/folders",
    "/dev/shm",
)
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full", "/dev/stdin")

INSIDE, OUT, TEMPORARY, SOMEWHERE, NOWHERE, DEVICE = "inside", "outside", "temporary", "somewhere", "nowhere", "device"


class Places(NamedTuple):
    """The folders that matter, all real: no links in them."""

    root: str
    home: str
    temporary: tuple[str, ...]

    def of(self, word: str, cwd: str) -> tuple[str, str]:
        """Where what a word names lies, and its path. A part that is not known is taken to stay below the folder
        before it."""
        path = resolved(word, cwd)
        if path == UNKNOWN:
            return SOMEWHERE, word
        if path in _NOWHERE or path.startswith(("/dev/fd/", "/proc/self/fd/")):
            return NOWHERE, path
        if path.startswith("/dev/") and not path.startswith("/dev/shm/"):
            return DEVICE, path
        if path.startswith("//"):
            path = path[1:]
        real = _real(path, follow=word.endswith("/"))
        if is_below(real, self.root):
            return INSIDE, real
        if any(is_below(real, folder) and real != folder for folder in self.temporary):
            return TEMPORARY, real
        return OUT, real


def places(root: str, home: str) -> Places:
    """A folder for temporary files is one only where neither the project nor the home lies in it."""
    real_root, real_home = os.path.realpath(root), os.path.realpath(home) if home else ""
    temporary = tuple(f for f in _TEMPORARY if not is_below(real_root, f) and not is_below(real_home, f))
    return Places(real_root, real_home, temporary)


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _real(path: str, follow: bool) -> str:
    """With the links on the way followed, the last one only where a slash says so: rm takes the link itself."""
    known = path
    for mark in (UNKNOWN, "*", "?", "["):
        cut = known.find(mark)
        if cut >= 0:
            known = known[: known.rindex("/", 0, cut) + 1] if "/" in known[:cut] else "/"
    rest = path[len(known.rstrip("/")) :] if known != path else ""
    try:
        if rest:
            return os.path.realpath(known).rstrip("/") + rest
        if follow:
            return os.path.realpath(path)
        head, tail = os.path.split(path)
        return os.path.join(os.path.realpath(head), tail) if tail else os.path.realpath(path)
    except (OSError, ValueError):
        return path
