"""Folders visited in path order, each opened from its nearest open ancestor."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Folder

_DEEPEST = 128  # open folders at a time: a tree may be deeper than the limit on open files


class Descent:
    """Hands out the folder at a path; those above it stay open, so that the next one is near."""

    def __init__(self, root: Folder) -> None:
        self._root = root
        self._open: list[Folder] = []

    def __enter__(self) -> Descent:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.pop().close()

    def to(self, path: bytes) -> Folder:
        if not path:
            return self._root
        parent, _, name = path.rpartition(b"/")
        open_ = self._open
        while open_ and open_[-1].path != parent:
            if parent.startswith(open_[-1].path + b"/"):
                return self._down(path)
            open_.pop().close()
        if not open_ and parent:
            return self._down(path)
        here = (open_[-1] if open_ else self._root).child(name)
        open_.append(here)
        if len(open_) > _DEEPEST:
            open_.pop(0).close()
        return here

    def _down(self, path: bytes) -> Folder:
        """Several names at once, from the nearest open ancestor."""
        here = self._open[-1] if self._open else self._root
        rest = path[len(here.path) + 1 :] if here.path else path
        for name in rest.split(b"/"):
            here = here.child(name)
            self._open.append(here)
            if len(self._open) > _DEEPEST:
                self._open.pop(0).close()
        return here
