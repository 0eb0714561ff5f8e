"""Folders visited in path order, each opened from its nearest open ancestor."""

from __future__ import annotations

from .portable import PortableFolder
from .posix import PosixFolder

_DEEPEST = 128  # open folders at a time: a tree may be deeper than the limit on open files


class Descent:
    """Hands out the folder at a path; those above it stay open, so that the next one is near."""

    def __init__(self, root: PosixFolder | PortableFolder) -> None:
        self._root = root
        self._open: list[PosixFolder | PortableFolder] = []

    def __enter__(self) -> Descent:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.pop().close()

    def to(self, path: bytes) -> PosixFolder | PortableFolder:
        if not path:
            return self._root
        open_ = self._open
        while open_ and not (path == open_[-1].path or path.startswith(open_[-1].path + b"/")):
            open_.pop().close()
        here = open_[-1] if open_ else self._root
        if here.path == path:
            return here
        rest = path[len(here.path) + 1 :] if here.path else path
        for name in rest.split(b"/"):
            here = here.child(name)
            open_.append(here)
            if len(open_) > _DEEPEST:
                open_.pop(0).close()
        return here
