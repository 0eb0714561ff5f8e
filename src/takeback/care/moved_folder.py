"""Whose history a folder goes on with that was moved, or made anew where a protected one was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.config.settings import Settings
from takeback.errors import TakebackError
from takeback.store import layout
from takeback.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator


def adopt_moved(root: Path, settings: Settings) -> Path | None:
    """Gives this folder the history of the root it was before it was moved; returns where it was.

    An inode number may be used again, so some of the names known at its top have to be there too."""
    inode = root.stat().st_ino
    here = {os.fsencode(entry.name) for entry in os.scandir(root)}
    for folder, meta in layout.known_stores(settings.home):
        if meta.get("inode") != inode or os.path.lexists(meta["root"]):
            continue
        if not here & _names_at_top(meta, settings):
            continue
        was = Path(meta["root"])
        new = layout.folder_of(settings.home, root)
        try:
            os.rename(folder, new)  # first: a store under a name that is not its root's is never an orphan
            layout.write_meta(new, {**meta, "root": str(root)})
        except OSError as error:
            if layout.is_workspace(settings.home, root):
                return was  # somebody else was faster
            raise TakebackError(
                f"the store at {folder} cannot be renamed ({error.strerror})", "mend its permissions"
            ) from error
        return was
    return None


def _names_at_top(meta: dict[str, object], settings: Settings) -> set[bytes]:
    root = Path(str(meta["root"]))
    opened, _ = layout.open_store(settings.home, root, settings.portable)
    with Workspace(root, opened, settings, 0) as workspace:
        return set(workspace.names_at_top())


def accept_replaced(root: Path, settings: Settings) -> bool:
    """Goes on with the history of a root whose folder was replaced by another one; False if it was not."""
    folder = layout.folder_of(settings.home, root)
    meta = layout.read_meta(folder)
    inode = root.stat().st_ino
    if not meta.get("inode") or meta["inode"] == inode:
        return False
    layout.write_meta(folder, {**meta, "inode": inode})
    return True


def moved_from(home: Path, folder: Path) -> Iterator[Path]:
    """Roots that are gone and whose folder was this one, by its inode."""
    try:
        inode = folder.stat().st_ino
    except OSError:
        return
    for _, meta in layout.known_stores(home):
        if meta.get("inode") == inode and not os.path.lexists(meta["root"]):
            yield Path(meta["root"])
