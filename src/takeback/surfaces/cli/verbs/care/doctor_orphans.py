"""Stores that go: of roots that are gone, found for doctor and removed by `prune --orphans`; or of one, by `forget`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.errors import ApprovalNeeded, TakebackError
from takeback.store import layout
from takeback.surfaces.cli.approving import approved
from takeback.surfaces.wording.text import counted, safe
from takeback.text.units import format_size

if TYPE_CHECKING:
    from takeback.surfaces.cli.context import Context


def found(home: Path) -> list[tuple[Path, str]]:
    """(store, root that is gone) under this home. One that was being moved when it was killed is not among them."""
    return [
        (folder, meta["root"])
        for folder, meta in layout.known_stores(home)
        if not os.path.lexists(meta["root"]) and folder.name == layout.folder_name(Path(meta["root"]))
    ]


def prune(context: Context, dry_run: bool) -> int:
    settings = context.settings()
    context.must_be_on(settings)
    gone = [(folder, root, bytes_in(folder)) for folder, root in found(settings.home)]
    shape = {"orphans": [{"store": str(f), "root": root, "bytes": size} for f, root, size in gone]}
    if not context.json:
        if not gone:
            context.terminal.say("no store is orphaned: every protected folder is there")
        for folder, root, size in gone:
            context.terminal.say(f"  {safe(root)} is gone; its store {safe(folder.name)} takes {format_size(size)}")
    if dry_run or not gone:
        if context.json:
            context.terminal.json({**shape, "removed": 0})
        return 0
    try:
        if not approved(context, f"Remove {counted(len(gone), 'store')} with all history for good?"):
            return 4
    except ApprovalNeeded as error:
        if not context.json:
            raise
        told = {"message": error.message, "hint": error.hint, "code": 4}
        context.terminal.json({**shape, "removed": 0, "error": told})
        return 4
    for folder, _, _ in gone:
        remove(folder)
    if context.json:
        context.terminal.json({**shape, "removed": len(gone)})
    else:
        context.terminal.say(f"removed {counted(len(gone), 'store')}, {format_size(sum(s for *_, s in gone))} freed")
    return 0


def remove(folder: Path) -> None:
    """A store with all that it holds."""
    try:
        (folder / "workspace.json").unlink()  # first: a store half removed is no store
        shutil.rmtree(folder)
    except OSError as error:
        raise TakebackError(
            f"{safe(str(folder))} cannot be removed ({error.strerror})",
            "mend its permissions, or remove it by hand",
        ) from error


def bytes_in(folder: Path) -> int:
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(here, name)).st_size
            except OSError:
                continue
    return total
