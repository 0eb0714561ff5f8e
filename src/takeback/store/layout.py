"""Where a workspace's journal and blobs live: one private folder per root, outside the project.

<home>/<name>-<hash of the real path>/   workspace.json  journal.db  head  index  packs/  big/  running/
                                         marks.key  runs/  steps/  staging/  *.lock
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from takeback.errors import Damaged, NoWorkspace, TakebackError
from takeback.journal.journal import Journal
from takeback.model.ids import new_id
from takeback.system.forking import is_running
from takeback.system.installed import upgraded
from takeback.system.locks import Lock, NullLock

from .blobs import Blobs, MemoryBlobs
from .packs import Packs

FORMAT = 1
_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_CREATING = 30.0  # seconds that another may take to make the same store


class Store(NamedTuple):
    """An open store. `folder` is None for one that lives in memory."""

    id: str
    folder: Path | None
    journal: Journal
    blobs: Blobs
    write: Lock  # short: one capture, one append, one file segment
    apply: Lock  # one take-back at a time
    is_read_only: bool = False  # what it holds can be seen and brought elsewhere, and no more

    def close(self) -> None:
        self.blobs.close()
        self.journal.close()

    def size(self) -> int:
        total = self.blobs.size()
        if self.folder is not None:
            for entry in os.scandir(self.folder):
                try:
                    total += entry.stat().st_size if entry.is_file() else 0
                except FileNotFoundError:
                    continue  # a staging file, renamed meanwhile
        return total


def folder_name(root: Path) -> str:
    runs = groupby(root.name, _PLAIN.__contains__)
    slug = "".join("".join(run) if is_plain else "-" for is_plain, run in runs)[:40].strip("-.") or "root"
    return f"{slug}-{sha256(os.fsencode(root)).hexdigest()[:16]}"


def folder_of(home: Path, root: Path) -> Path:
    return home / folder_name(root)


def is_workspace(home: Path, root: Path) -> bool:
    folder = folder_of(home, root)
    try:
        return (folder / "workspace.json").is_file()
    except OSError as error:
        why = error.strerror or str(error)
        raise TakebackError(f"cannot look into {folder} ({why})", "make it readable, then try again") from error


def find_root(home: Path, start: Path) -> Path | None:
    """The nearest protected folder at or above `start`."""
    here = Path(os.path.realpath(start))
    for candidate in (here, *here.parents):
        if is_workspace(home, candidate):
            return candidate
    return None


def read_meta(folder: Path) -> dict[str, Any]:
    path = folder / "workspace.json"
    try:
        meta: dict[str, Any] = json.loads(path.read_bytes())
        version = meta["format"]
        meta["id"], meta["root"]
    except FileNotFoundError:
        raise NoWorkspace("nothing is protected here", "protect this folder with takeback init") from None
    except OSError as error:
        raise TakebackError(
            f"{path} cannot be read ({error})", "mend its permissions, or restore it from a backup"
        ) from error
    except RecursionError:
        raise Damaged(f"{path} cannot be read (it is nested too deeply)", "takeback repair makes it anew") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{path} cannot be read ({error})", "takeback repair makes it anew") from error
    if version > FORMAT:
        raise TakebackError(
            f"this store was written by a newer takeback (format {version}, this one reads {FORMAT})",
            f"upgrade takeback: {upgraded()}",
        )
    return meta


def new_meta(root: Path, inode: int, config: Path) -> dict[str, Any]:
    """`config` is where the configuration of whoever protects the root lies (setting_place.py)."""
    meta = {"format": FORMAT, "id": new_id(), "root": str(root), "inode": inode}
    return {**meta, "config": str(config)} if config.is_absolute() else meta


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    for leftover in folder.glob("workspace.json.*.new"):
        if not is_running(leftover.name.split(".")[2]):
            leftover.unlink(missing_ok=True)
    staging = folder / f"workspace.json.{os.getpid()}.new"
    fd = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(json.dumps(meta))
        file.flush()
        os.fsync(file.fileno())
    os.replace(staging, folder / "workspace.json")


def known_stores(home: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every store under a home, with what it says of its root."""
    if not home.is_dir():
        return
    for folder in sorted(home.iterdir()):
        if (folder / "workspace.json").is_file():
            try:
                yield folder, read_meta(folder)
            except TakebackError:
                continue


def create(home: Path, root: Path, inode: int, portable: bool = False, config: Path = Path()) -> None:
    """Of several who make it at once, one does."""
    folder = folder_of(home, root)
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        for private in (home, folder, folder / "packs", folder / "big"):
            private.mkdir(mode=0o700, exist_ok=True)
        with Lock(folder / "store.lock", portable).hold(_CREATING):
            if not is_workspace(home, root):
                Journal(folder / "journal.db", create=True).close()
                write_meta(folder, new_meta(root, inode, config))
    except OSError as error:
        raise TakebackError(
            f"the store at {folder} cannot be made ({error.strerror})",
            "free space or mend the permissions there, or set TAKEBACK_HOME to another folder",
        ) from error


def open_store(home: Path, root: Path, portable: bool) -> tuple[Store, dict[str, Any]]:
    folder = folder_of(home, root)
    meta = read_meta(folder)
    if not (folder / "journal.db").is_file():
        raise TakebackError(
            f"the journal in {folder} is missing",
            "restore it from a backup, or move the folder away and run takeback init",
        )
    if not os.access(folder, os.R_OK | os.X_OK):
        raise TakebackError(f"the store at {folder} is not accessible", "mend its owner and permissions (0700)")
    is_read_only = not all(os.access(path, os.W_OK) for path in (folder, folder / "journal.db"))
    journal = Journal.copied(folder / "journal.db") if is_read_only else Journal(folder / "journal.db")
    write, apply = Lock(folder / "store.lock", portable), Lock(folder / "apply.lock", portable)
    return Store(meta["id"], folder, journal, Packs(folder, portable=portable), write, apply, is_read_only), meta


def open_memory() -> Store:
    return Store(new_id(), None, Journal(None), MemoryBlobs(), NullLock("store"), NullLock("apply"))
