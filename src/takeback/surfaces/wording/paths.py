"""Paths as the user types them, relative to where the run works, turned into what the workspace takes."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from takeback.errors import NotFound, UsageError
from takeback.journal.names import resolve
from takeback.plan.requests import must_be_no_entry

from .text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Protocol

    from takeback.workspace import Workspace

    class Here(Protocol):
        """Whatever knows where a run or a call works."""

        @property
        def cwd(self) -> Path: ...


def inside(here: Here, workspace: Workspace, given: str, present: bool = False) -> str:
    """A path as root-relative text, or an error that names what is wrong with it.

    `present`: of the tree as it is now, so that no link may stand above it; a checkpoint may have a folder
    where a link is today."""
    if not given:
        raise UsageError("an empty path names nothing", "name a file or folder of the project")
    if "\0" in given:
        raise UsageError("a path cannot hold a NUL byte", "name the path without it")
    root = str(workspace.root)
    whole = os.path.normpath(os.path.join(here.cwd, given))
    if whole != root and not whole.startswith(root.rstrip("/") + os.sep):
        # Perhaps it reaches the root through a link above it.
        parent, name = os.path.split(whole)
        whole = os.path.join(os.path.realpath(parent), name)
        if whole != root and not whole.startswith(root.rstrip("/") + os.sep):
            raise UsageError(f"{safe(given)} lies outside the workspace {safe(root)}", "name a path inside it")
    path = os.path.relpath(whole, root)
    if path == ".":
        return "."
    if present:
        _no_link_above(root, path, given)
    return path


def _no_link_above(root: str, path: str, given: str) -> None:
    above = os.path.dirname(path)
    while above:
        full = os.path.join(root, above)
        if os.path.islink(full):
            raise UsageError(
                f"{safe(given)} goes through the symlink {safe(above)}",
                f"name it where it really is: {safe(os.path.realpath(os.path.join(root, path)))}",
            )
        above = os.path.dirname(above)


def all_inside(here: Here, workspace: Workspace, given: Iterable[str], present: bool = False) -> list[str]:
    return [inside(here, workspace, path, present) for path in given]


def ids_or_paths(here: Here, workspace: Workspace, words: Iterable[str]) -> list[str]:
    """Words of `revert`: what is called like a path is one, the rest name entries of the log."""
    history = workspace.history()
    found = []
    for word in words:
        recorded = is_recorded(here, workspace, word)
        if recorded or os.path.lexists(here.cwd / word):
            must_be_no_entry(history, word)
            path = inside(here, workspace, word)
            # Absolute where the plain path could be taken for something else.
            found.append(path if path == word and recorded else str(workspace.root / path))
            continue
        try:
            found.append(resolve(history, word, prompts="/" not in word).id)
        except NotFound as unknown:
            if "pruned" in unknown.message:
                raise
            found.append(inside(here, workspace, word))
    return found


def entry(here: Here, workspace: Workspace, word: str) -> str:
    """A word that has to name an entry of the log: refused where it is a path from here, and an entry only by how its
    id begins or by words of a prompt."""

    def is_path(word: str) -> bool:
        return os.path.lexists(here.cwd / word) or is_recorded(here, workspace, word)

    with contextlib.suppress(NotFound):  # which the verb says, with what it takes
        resolve(workspace.history(), word, is_path=is_path)
    return word


def is_recorded(here: Here, workspace: Workspace, word: str) -> bool:
    """Whether it is a path that has changed, or a folder where something has; it may be gone by now."""
    try:
        return bool(workspace.history().recorded_below(workspace.relative(inside(here, workspace, word))))
    except UsageError:  # no path of this project
        return False
