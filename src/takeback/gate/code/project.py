"""Files of the project that a command would run: read, so that they can be judged like the command line.

Only what lies in the project is read, and no link is followed out of it; size and number are bounded. What a file that
is not read would do is not known.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from takeback.errors import TakebackError
from takeback.gate.bash.globs import is_name_like
from takeback.gate.bash.words import UNKNOWN
from takeback.gate.places import is_below
from takeback.system import safefs

_LARGEST = 200_000  # bytes of one file
_MOST = 60  # files of one call
_ALL = 1_000_000  # bytes of all of them
_ENTRIES = 1500  # of folders that are gone through
_PATTERN = re.compile(r"[*?\[]")


class Project:
    """What can be read in one project for one call."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._known: dict[str, str | None] = {}
        self._bytes = 0

    def text(self, path: str) -> str | None:
        """What a file says; None where it is no text of the project, or more than is read."""
        real = self.real(path)
        if real not in self._known:
            self._known[real] = self._read(real) if real and len(self._known) < _MOST else None
        return self._known[real]

    def has(self, path: str) -> bool:
        """Whether a file of the project is called so."""
        real = self.real(path)
        return bool(real) and os.path.isfile(real)

    def has_folder(self, path: str) -> bool:
        real = self.real(path)
        return bool(real) and os.path.isdir(real)

    def matching(self, path: str) -> list[str] | None:
        """The files that a path with `*`, `?` and `[…]` in it names; None where that cannot be said."""
        if UNKNOWN in path or not path.startswith("/"):
            return None
        parts = path.strip("/").split("/")
        first = next((at for at, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
        folder = "/" + "/".join(parts[:first])
        if os.path.realpath(folder) != self.root and not self.real(folder):
            return None
        below = self.below(folder, len(parts) - first if "**" not in parts else _ENTRIES)
        if below is None:
            return None
        return [file for file, is_folder in below if not is_folder and fits(path, file)]

    def below(self, folder: str, depth: int = _ENTRIES) -> list[tuple[str, bool]] | None:
        """All that lies below a folder of the project, and whether it is a folder; None where that is too much.
        git's own folder is left out, and no link is followed."""
        if os.path.realpath(folder) != self.root and not self.has_folder(folder):
            return None
        found: list[tuple[str, bool]] = []
        waiting = [(folder.rstrip("/"), depth)]
        try:
            while waiting:
                above, left = waiting.pop(0)
                with os.scandir(above or "/") as entries:
                    for entry in sorted(entries, key=lambda each: each.name):
                        is_folder = entry.is_dir(follow_symlinks=False)
                        found.append((entry.path, is_folder))
                        if is_folder and left > 1 and entry.name != ".git":
                            waiting.append((entry.path, left - 1))
                        if len(found) > _ENTRIES:
                            return None
        except (OSError, ValueError):
            return None
        return found

    def shown(self, path: str) -> str:
        """As a person knows it: below the project."""
        return os.path.relpath(self.real(path) or path, self.root)

    def real(self, path: str) -> str:
        """Where it lies, links followed; empty if that is not in the project."""
        if UNKNOWN in path or not path.startswith("/"):
            return ""
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            return ""
        return real if real != self.root and is_below(real, self.root) else ""

    def _read(self, real: str) -> str | None:
        *above, name = [os.fsencode(part) for part in os.path.relpath(real, self.root).split(os.sep)]
        try:
            with safefs.open_root(self.root) as top, top.descend(above) as folder:
                if (found := folder.stat(name)).st_size > _LARGEST or not stat.S_ISREG(found.st_mode):
                    return None
                with open(folder.open_read(name), "rb") as file:
                    data = file.read(_LARGEST + 1)
        except (OSError, ValueError, TakebackError):
            return None
        self._bytes += len(data)
        if len(data) > _LARGEST or self._bytes > _ALL or b"\0" in data:
            return None
        return data.decode("utf-8", "replace").replace("\r\n", "\n")


def fits(pattern: str, path: str) -> bool:
    """Whether a path, from the root, is one that a pattern names."""
    return _fits(pattern.strip("/").split("/"), path.strip("/").split("/"))


def _fits(wanted: Sequence[str], there: Sequence[str]) -> bool:
    """Whether the parts of a path are those of a pattern; ** is any number of folders."""
    if not wanted or not there:
        return not wanted and not there
    if wanted[0] == "**":
        return any(_fits(wanted[1:], there[at:]) for at in range(len(there)))
    if wanted[0] != there[0] and (there[0].startswith(".") and not wanted[0].startswith(".")):
        return False
    return (wanted[0] == there[0] or is_name_like(there[0], wanted[0])) and _fits(wanted[1:], there[1:])
