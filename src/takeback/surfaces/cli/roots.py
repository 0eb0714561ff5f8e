"""Which folder `init` may protect, and whose history a moved or replaced one goes on with."""

from __future__ import annotations

import os
from pathlib import Path

from ... import store
from ...errors import TakebackError, UsageError
from .terminal import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...settings import Settings


def refuse_unwise(root: Path, settings: Settings, home_folder: str) -> None:
    """Raises where protecting this folder is almost surely a mistake."""
    hint = "protect a project folder, or insist with --force"
    if root == Path(root.anchor):
        raise UsageError(f"{root} is the whole file system", hint)
    if home_folder and str(root) == os.path.realpath(home_folder):
        raise UsageError(f"{safe(str(root))} is your home folder", hint)
    store_home = Path(os.path.realpath(settings.home))
    if root == store_home or store_home in root.parents:
        raise UsageError(f"{safe(str(root))} lies inside takeback's own store", hint)
    for _, meta in store.known_stores(settings.home):
        other = Path(meta["root"])
        if other in root.parents and other.is_dir():
            raise UsageError(
                f"{safe(str(root))} lies inside {safe(str(other))}, which is protected already",
                "use that one (verbs find it from here), or insist with --force",
            )
        if root in other.parents and other.is_dir():
            raise UsageError(
                f"{safe(str(root))} holds {safe(str(other))}, which is protected by itself",
                "work there instead, or insist with --force",
            )


def repository_top(folder: Path) -> Path | None:
    """The top of the git repository that this folder lies in, if it is not the top itself."""
    if os.path.lexists(folder / ".git"):
        return None
    return next((above for above in folder.parents if os.path.lexists(above / ".git")), None)


def adopt_moved(root: Path, settings: Settings) -> Path | None:
    """Gives this folder the history of the root it was before it was moved; returns where it was.

    An inode number may be used again, so some of the names known at its top have to be there too."""
    inode = root.stat().st_ino
    here = {os.fsencode(entry.name) for entry in os.scandir(root)}
    for folder, meta in store.known_stores(settings.home):
        if meta.get("inode") != inode or os.path.lexists(meta["root"]):
            continue
        if not here & _names_at_top(folder, meta, settings):
            continue
        was = Path(meta["root"])
        new = store.folder_of(settings.home, root)
        try:
            os.rename(folder, new)  # first: a store under a name that is not its root's is never an orphan
            store.write_meta(new, {**meta, "root": str(root)})
        except OSError as error:
            raise TakebackError(
                f"the store at {safe(str(folder))} cannot be renamed ({error.strerror})",
                "mend its permissions",
            ) from error
        return was
    return None


def _names_at_top(folder: Path, meta: dict[str, object], settings: Settings) -> set[bytes]:
    from ...workspace import Workspace

    opened, _ = store.open_store(settings.home, Path(str(meta["root"])), settings.portable)
    with Workspace(Path(str(meta["root"])), opened, settings, 0) as workspace:
        return set(workspace.names_at_top())


def accept_replaced(root: Path, settings: Settings) -> bool:
    """Goes on with the history of a root whose folder was replaced by another one; False if it was not."""
    folder = store.folder_of(settings.home, root)
    meta = store.read_meta(folder)
    inode = root.stat().st_ino
    if not meta.get("inode") or meta["inode"] == inode:
        return False
    store.write_meta(folder, {**meta, "inode": inode})
    return True
