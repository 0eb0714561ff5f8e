"""Which folder `init` may protect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.store import layout
from takeback.surfaces.wording.text import safe

if TYPE_CHECKING:
    from takeback.config.settings import Settings


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
    for _, meta in layout.known_stores(settings.home):
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
