"""Files of the project that a command would run: read, so that they can be judged like the command line.

Only what lies in the project is read, and no link is followed out of it; size and number are bounded. What a file that
is not read would do is not known.
"""

from __future__ import annotations

import os

from .. import safefs
from ..errors import TakebackError
from .places import is_below
from .words import UNKNOWN

_LARGEST = 200_000  # bytes of one file
_MOST = 60  # files of one call
_ALL = 1_000_000  # bytes of all of them


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
                if folder.stat(name).st_size > _LARGEST:
                    return None
                with open(folder.open_read(name), "rb") as file:
                    data = file.read(_LARGEST + 1)
        except (OSError, ValueError, TakebackError):
            return None
        self._bytes += len(data)
        if len(data) > _LARGEST or self._bytes > _ALL or b"\0" in data:
            return None
        return data.decode("utf-8", "replace").replace("\r\n", "\n")
