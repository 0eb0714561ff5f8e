"""When a path last changed, as its file system tells: of a call that ended at an unusual moment, that decides what is
its work.

    there    the time of its last change (ctime, which no program sets)
    gone     at the latest when its folder last changed: the folder's time moves with every name in it
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from takeback.domains.git.repository import INDEX, REFS, STASH
from takeback.model.effects import Change, domain_of
from takeback.system.safefs import Folder, components

if TYPE_CHECKING:
    from takeback.domains.threads.look import Seen

_INDEX, _STASH, _PACKED = b".git/index", b".git/refs/stash", b".git/packed-refs"


class Moment(NamedTuple):
    at: float
    is_latest: bool = False  # it may have been earlier


class ChangeTimes:
    """Asked about changes of one look, while its tree is open."""

    def __init__(self, tree: Folder | None, threads: Seen | None) -> None:
        self._tree = tree
        self._threads = threads

    def of(self, change: Change) -> Moment | None:
        """None where nobody can tell."""
        domain = domain_of(change.path)
        if domain == "state":
            saved = self._threads.moved.get(change.path) if self._threads is not None else None
            return Moment(saved.at) if saved is not None else None
        if domain == "git":
            return self._of_git(change.path)
        return self._of_path(change.path)

    def _of_git(self, path: bytes) -> Moment | None:
        """Of a part of the repository: the time of the file that holds it. A repository that lies elsewhere is not
        asked."""
        if path.startswith(INDEX):
            path = _INDEX
        elif path.startswith(STASH):
            path = _STASH
        found = self._stat(path)
        if found is None and path.startswith(REFS):
            found = self._stat(_PACKED)
        if found is not None:
            return Moment(_changed(found))
        git = self._stat(b".git")
        return self._of_path(path) if git is not None and stat.S_ISDIR(git.st_mode) else None

    def _of_path(self, path: bytes) -> Moment | None:
        found = self._stat(path)
        if found is not None:
            return Moment(_changed(found))
        while path:
            path = path.rpartition(b"/")[0]
            folder = self._stat(path)
            if folder is not None:
                return Moment(folder.st_mtime, is_latest=True)
        return None

    def _stat(self, path: bytes) -> os.stat_result | None:
        """Nothing where the path, or a folder above it, is not there or cannot be read."""
        if self._tree is None:
            return None
        try:
            if not path:
                return self._tree.stat_self()
            *above, name = components(path)
            with self._tree.descend(above) as folder:
                return folder.stat(name)
        except OSError:
            return None


def _changed(found: os.stat_result) -> float:
    """On Windows ctime is when a file was made, so that its last writing counts there."""
    return max(found.st_mtime, found.st_ctime) if os.name == "nt" else found.st_ctime
