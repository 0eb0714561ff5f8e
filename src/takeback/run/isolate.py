"""A command over a layer of its own: it sees the project, and what it writes lies apart until somebody keeps it.

    <store>/staging/<id>/   upper  what it wrote     work  overlayfs's own     kept  what is being brought into the tree

Dropping is removing that folder. Keeping captures the layer, journals nothing yet, and brings each path into the tree
through the files domain; a keep that was cut off is finished by the next run.
"""

from __future__ import annotations

import itertools
import os
import socket
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from takeback.domains.files import Files
from takeback.errors import TakebackError
from takeback.journal import change_lists
from takeback.look import runs_at_work
from takeback.look.known_tree import Index
from takeback.look.observer import Observer, is_work, states
from takeback.model.effects import EXACT, KEPT, RUN, Change, Checkpoint, Result, Step, Turn, same, text
from takeback.store.folder_objects import Difference
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import components, open_root
from takeback.system.safefs.mounts import mounts_below
from takeback.system.safefs.posix import PosixFolder

from . import landlock, namespaces
from .command import frozen

_HINT = "run it without --isolate: takeback undo takes it back as well"


class Layer:
    """Where a command writes instead of the project."""

    def __init__(self, store: Path, id: str, root: str, home: str) -> None:
        self.folder = store / "staging" / id
        self.root = root
        self._home = home
        self._here, self._there = socket.socketpair()
        self.view: OpenFolder | None = None  # the project as the command sees it

    def prepare(self) -> None:
        """Refuses what cannot be isolated, before anything is run."""
        if (self._home + "/").startswith(self.root.rstrip("/") + "/"):
            raise TakebackError("takeback's store lies inside the project, which cannot be isolated then", _HINT)
        if found := sorted(mounts_below(self.root)):
            raise TakebackError(
                f"another file system is mounted at {text(found[0])}, and the command would not see it isolated", _HINT
            )
        for folder in (self.folder.parent, self.folder, self.folder / "upper", self.folder / "work"):
            folder.mkdir(mode=0o700, exist_ok=folder == self.folder.parent)
        self.folder.parent.chmod(0o700)  # of an earlier version it was open to all
        _dress(self.folder / "upper", self.root)

    def enter(self) -> str:
        """In the child: from here on the project is the layer over it. Hands the view of it to the parent."""
        cwd = os.getcwd()
        by_user = False
        try:
            namespaces.own_mounts()
        except PermissionError:
            by_user = True
            try:
                namespaces.own_user_and_mounts()
            except OSError as error:
                raise OSError(error.errno, f"user namespaces are not allowed here ({error.strerror})") from None
        try:
            upper, work = (str(self.folder / name) for name in ("upper", "work"))
            namespaces.overlay(self.root, upper, work, self.root, by_user)
        except OSError as error:
            raise OSError(error.errno, f"overlayfs does not work here ({error.strerror})") from None
        namespaces.bind_read_only(self._home)
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        socket.send_fds(self._there, [b"view"], [fd])
        os.chdir(cwd)
        return frozen(landlock.abi() >= landlock.OLDEST)

    def entered(self) -> None:
        """In the parent, once the command has begun: takes the view."""
        self._there.close()
        _, fds, _, _ = socket.recv_fds(self._here, 16, 1)
        if not fds:
            raise TakebackError("the isolated project cannot be seen from outside", _HINT)
        os.set_inheritable(fds[0], False)
        self.view = PosixFolder(fds[0], b"")

    def close(self) -> None:
        for end in (self._here, self._there):
            end.close()
        if self.view is not None:
            self.view.close()
            self.view = None

    def drop(self) -> None:
        self.close()
        remove(self.folder)


def _dress(upper: Path, root: str) -> None:
    """The layer's own folder is what the command sees of the project's."""
    found = os.stat(root)
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(upper, found.st_uid, found.st_gid)
    try:
        names = os.listxattr(root)
    except OSError:
        names = []
    for name in names:
        if name.startswith("user."):
            os.setxattr(upper, name, os.getxattr(root, name))
    os.chmod(upper, stat.S_IMODE(found.st_mode))
    os.utime(upper, ns=(found.st_atime_ns, found.st_mtime_ns))


def remove(folder: Path) -> None:
    """A layer with all in it, however deep: each folder is moved to the top before it is emptied. Some may be closed
    even to us, as overlayfs leaves its own."""
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        folders = _empty(top, top, 0)
        for number in itertools.count(1):
            if not folders:
                break
            name = folders.pop()
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                folders += _empty(fd, top, number)
            finally:
                os.close(fd)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _empty(fd: int, top: int, number: int) -> list[str]:
    """Unlinks the files of a folder and moves its folders to the top; returns what they are called there."""
    moved: list[str] = []
    with os.scandir(fd) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if is_folder:
            os.chmod(name, stat.S_IRWXU, dir_fd=fd)
            moved.append(f".{number}-{len(moved)}")
            os.rename(name, moved[-1], src_dir_fd=fd, dst_dir_fd=top)
        else:
            os.unlink(name, dir_fd=fd)
    return moved


# -- what the command did ------------------------------------------------------


class Found(NamedTuple):
    """What a layer holds: changes that can be kept, and changed paths that are not covered and so cannot."""

    changes: tuple[Change, ...]
    uncovered: tuple[str, ...]

    @property
    def differences(self) -> list[Difference]:
        return [Difference(c.path, c.before, c.after) for c in self.changes]


def look_at(observer: Observer, layer: Layer, since: Checkpoint, dry: bool) -> Found:
    """Compares a layer with the project as it was when the command began. What changed below the layer meanwhile
    shows through it, and is somebody else's."""
    assert layer.view is not None
    before = _known_at(observer, since)
    seen = {path for path, _ in before.uncovered()}
    look = observer.scan(layer.view, before, dry=dry, git=False)
    seen |= {path for path, _ in look.index.uncovered()}
    with open_root(str(layer.folder / "upper")) as upper:
        written = _Written(upper)
        uncovered = tuple(text(path) for path in sorted(seen) if written(path))
        return Found(tuple(c for c in look.changes if is_work(c) and written(c.path)), uncovered)


class _Written:
    """Whether a layer holds a path, or has removed or replaced a folder above it: else it shows through from below."""

    def __init__(self, upper: OpenFolder) -> None:
        self._upper = upper
        self._all: dict[bytes, bool | None] = {
            b"": False
        }  # folder → whether all below it is the layer's; None: nothing

    def __call__(self, path: bytes) -> bool:
        names = components(path)
        for depth in range(1, len(names) + 1):
            here = b"/".join(names[:depth])
            if here not in self._all:
                self._all[here] = self._look(names[:depth])
            if (found := self._all[here]) is not False:
                return bool(found)
        return True

    def _look(self, names: list[bytes]) -> bool | None:
        try:
            with self._upper.descend(names[:-1]) as parent:
                found = parent.stat(names[-1])
            if stat.S_ISDIR(found.st_mode):
                with self._upper.descend(names) as folder:
                    return _is_opaque(folder)
        except FileNotFoundError:
            return None
        except PermissionError:  # closed by the command: what is in it cannot be seen anyway
            return False
        return True  # a whiteout, or something else where a folder may have been


def _is_opaque(folder: OpenFolder) -> bool:
    assert isinstance(folder, PosixFolder)
    for name in ("user.overlay.opaque", "trusted.overlay.opaque"):
        try:
            if os.getxattr(folder.fd, name) == b"y":
                return True
        except OSError:
            continue
    return False


def _known_at(observer: Observer, since: Checkpoint) -> Index:
    if observer.store.journal.head().seq == since.seq:
        return observer.known()
    return Index.from_snapshot(observer.store.blobs.get, since.snapshot, since.seq)  # somebody has looked since


# -- keeping it ----------------------------------------------------------------


def keep(observer: Observer, tree: OpenFolder, layer: Layer, since: Checkpoint, summary: str) -> list[Result]:
    """Brings what a layer holds into the tree, as one effect. A path that somebody changed meanwhile is kept as it
    is, and named. The caller holds the locks."""
    found = look_at(observer, layer, since, dry=False)
    observer.store.blobs.flush()
    observer.look(tree)  # what anybody else did before this is not the command's
    now = states(observer.known())
    steps, results = [], []
    for change in found.changes:
        present = now(change.path)
        if same(present, change.after):
            continue
        if same(present, change.before):
            steps.append(change)
        else:
            results.append(Result(change.path, "drifted", KEPT, "somebody changed it meanwhile; kept"))
    (layer.folder / "kept").write_bytes(change_lists.encode(steps))
    (layer.folder / "summary").write_text(summary, encoding="utf-8", errors="surrogateescape")
    results += _bring(observer, tree, layer.folder.name, steps, summary, again=False)
    return results


def finish(observer: Observer, tree: OpenFolder, folder: Path) -> list[Result]:
    """Finishes a keep that was cut off."""
    steps = change_lists.decode((folder / "kept").read_bytes())
    summary = (folder / "summary").read_text(encoding="utf-8", errors="surrogateescape")
    return _bring(observer, tree, folder.name, steps, summary, again=True)


def _bring(
    observer: Observer, tree: OpenFolder, id: str, found: Iterable[Change], summary: str, again: bool
) -> list[Result]:
    steps = [Step("files", c.path, c.before, c.after, EXACT, ()) for c in found]
    files = Files(tree, observer.store.blobs, observer.progress, fork=False)
    if again:
        files.sweep(steps, id)
    results = list(files.apply(steps, id, {}, again))
    files.sync()
    look = observer.scan(tree, observer.known())
    observer.journal_look(look, observer.rows_of(look, "", turns=[Turn(RUN, id)], summary=summary))
    return results


def cut_off(store: Path) -> Iterator[Path]:
    """Layers whose run has died: those that were being kept, to be finished. The others are removed."""
    staging = store / "staging"
    for folder in sorted(staging.iterdir()) if staging.is_dir() else ():
        if runs_at_work.is_alive(folder / "lock"):
            continue
        if (folder / "summary").exists():
            yield folder
        else:
            remove(folder)
