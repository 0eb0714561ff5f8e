"""One configuration file, read and written whole: beside the old one and in one step, never through a link that was
swapped meanwhile, with the mode and the owner it had."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from takeback.config.agents_own_files import MOST
from takeback.errors import TakebackError
from takeback.system import safefs
from takeback.system.safefs.portable import PortableFolder

_FOLDER_MODE, _FILE_MODE = 0o755, 0o644


class Found(NamedTuple):
    """A file as it was when we looked. `real` is where it lies, behind any link."""

    path: Path
    real: Path
    data: bytes | None  # None where there is none
    state: tuple[int, int, int, int] | None = None  # what tells that nobody changed it since
    mode: int = _FILE_MODE
    owner: tuple[int, int] = (-1, -1)
    closed: str = ""  # why it cannot be written


def read(path: Path) -> Found:
    """Refuses, by name, what cannot be read; what cannot be written is told, and refused once it would be."""
    real = Path(os.path.realpath(path))
    try:
        info = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise _refused(path, "is a link that leads nowhere", "mend the link, or remove it") from None
        return Found(path, real, None, closed=_closed(real.parent))
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})", "mend its permissions") from None
    if not stat.S_ISREG(info.st_mode):
        raise _refused(path, "is no file", "move it away")
    closed = _closed(real.parent)
    if not info.st_mode & 0o222 or not os.access(real, os.W_OK):
        closed = "is read-only"
    if info.st_size > MOST:
        raise _refused(path, "is longer than any configuration", "look at it")
    try:
        with safefs.open_root(str(real.parent)) as folder, open(folder.open_read(os.fsencode(real.name)), "rb") as file:
            info = os.fstat(file.fileno())
            data = file.read(MOST)
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})", "mend its permissions") from None
    return Found(path, real, data, _state(info), stat.S_IMODE(info.st_mode), _owner(info), closed)


def must_be_open(found: Found) -> None:
    """Refuses, by name, what cannot be written."""
    if (above := _lowest(found.real.parent)) and not above.is_dir():
        what = "is a file" if above.is_file() else "is no folder"
        raise _refused(
            above, f"{what}, so {found.path} cannot be made", "move it away, or name other agents; nothing was changed"
        )
    if found.closed:
        raise _refused(found.path, found.closed, "mend its permissions, if you want it changed; nothing was changed")


def write(found: Found, data: bytes) -> list[str]:
    """Puts new bytes in the place of a file, or where none was. Returns the folders that it made, outermost first."""
    made = _make_folders(found)
    name = os.fsencode(found.real.name)
    staging = safefs.TEMPORARY + f"{os.getpid()}-".encode() + name[:200]
    try:
        with _parent(found) as folder:
            with open(folder.create(staging), "wb") as file:
                file.write(data)
                file.flush()
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), found.mode)
                os.fsync(file.fileno())
            try:
                if found.data is not None and found.owner != _owner(folder.stat(staging)):
                    folder.chown(staging, *found.owner)
                    folder.chmod(staging, found.mode)  # giving a file away may cost it some of its mode
                _must_be(found, folder, name)
                if found.data is None:
                    folder.move(staging, name)
                else:
                    _replace(folder, staging, name)
            except BaseException:
                folder.unlink(staging)
                raise
    except OSError as error:
        remove_folders(made)
        raise _refused(found.path, f"cannot be written ({error.strerror})", "nothing was changed") from error
    except BaseException:
        remove_folders(made)
        raise
    return made


def remove(found: Found) -> None:
    """Takes a file away, if it is still the one that was read."""
    name = os.fsencode(found.real.name)
    try:
        with _parent(found) as folder:
            _must_be(found, folder, name)
            folder.unlink(name)
    except OSError as error:
        raise _refused(found.path, f"cannot be removed ({error.strerror})", "mend its permissions") from error


def remove_folders(folders: list[str]) -> list[str]:
    """Takes folders away, innermost first, as far as they are empty."""
    gone = []
    for folder in sorted(folders, key=len, reverse=True):
        try:
            os.rmdir(folder)
        except OSError:
            continue
        gone.append(folder)
    return gone


def _make_folders(found: Found) -> list[str]:
    missing = []
    folder = found.real.parent
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    made: list[str] = []
    for folder in reversed(missing):
        try:
            os.mkdir(folder, _FOLDER_MODE)
        except OSError as error:
            remove_folders(made)
            raise _refused(
                found.path, f"its folder cannot be made ({error.strerror})", "mend its permissions"
            ) from error
        made.append(str(folder))
    return made


def _parent(found: Found) -> safefs.Folder:
    """Its folder, reached without following any link: the way there was resolved when the file was read. A home often
    is a disk of its own."""
    parent = found.real.parent
    top = safefs.open_root(parent.anchor)
    try:
        return top.descend([os.fsencode(part) for part in parent.parts[1:]], across=True)
    finally:
        top.close()


def _must_be(found: Found, folder: safefs.Folder, name: bytes) -> None:
    try:
        state = _state(folder.stat(name))
    except FileNotFoundError:
        state = None
    if state != found.state:
        raise _refused(found.path, "was changed meanwhile", "try again")


def _replace(folder: safefs.Folder, old: bytes, new: bytes) -> None:
    if isinstance(folder, PortableFolder):
        os.replace(folder._at(old), folder._at(new))
    else:
        os.replace(old, new, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)


def _closed(folder: Path) -> str:
    """Why no file can be put into a folder, or into the one that it would be made in."""
    folder = _lowest(folder)
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"cannot be written: {folder} is read-only"


def _lowest(folder: Path) -> Path:
    """A folder, or the lowest thing above it that is there."""
    while not os.path.lexists(folder):
        folder = folder.parent
    return folder


def _state(info: os.stat_result) -> tuple[int, int, int, int]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _owner(info: os.stat_result) -> tuple[int, int]:
    return info.st_uid, info.st_gid


def _refused(path: Path, why: str, hint: str) -> TakebackError:
    return TakebackError(f"{path} {why}", hint)
