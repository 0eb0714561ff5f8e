"""A root and its store, opened: one call at a time, under its locks, and only where that is safe.

alone      one thread of this process
writing    alone, and the store lock: what fails in it leaves nothing half known
applying   alone, and the apply lock: one take-back at a time, which frees the store while it acts outside (_unlocked)
"""

from __future__ import annotations

import gc
import os
import time
from _thread import RLock  # all that we need of threading, which would cost every start
from collections.abc import Callable, Iterator, Mapping
from contextlib import ContextDecorator, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from takeback.agents import ends
from takeback.apply.takebacks import Takebacks
from takeback.config.settings import Settings
from takeback.journal.history import History
from takeback.look.observer import Observer, Progress
from takeback.look.turns_and_calls import asker
from takeback.store import layout
from takeback.system import forking
from takeback.system.processes import Process
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import components, open_root
from takeback.threads.threads import Threads

from .errors import Interrupted, Locked, Off, TakebackError, UsageError

if TYPE_CHECKING:
    from takeback.apply.executor import Told
    from takeback.apply.takebacks import Takebacks
    from takeback.harness.recorder import Recorder
    from takeback.journal.brackets import Bracket
    from takeback.threads.threads import Threads

_LONG = 3600.0  # seconds


class Guarded:
    """What every call on a workspace stands on. Safe to use from several threads."""

    def __init__(
        self,
        root: Path,
        opened: layout.Store,
        settings: Settings,
        inode: int,
        clock: Callable[[], float] = time.time,
        environ: Mapping[str, str] = {},
    ) -> None:
        self.root = root
        self.environ = environ  # where credentials are looked up by name, when an inverse is sent
        self.store = opened
        self.settings = settings
        self.clock = clock
        self.observer = Observer(root, opened, settings, clock)
        self.observer.end_of = lambda bracket: ends.end_of(bracket, self.outlives)
        self._inode = inode
        self._mutex = RLock()
        self._closed = False
        self._is_applying = False
        self._made: Takebacks | None = None
        self._threads: Threads | None = None
        self.observer.threads = lambda: self.threads
        self.open_steps: list[Recorder] = []  # of harnesses in this process
        self.asked_by = ""  # the agent that asks, where no process above this one tells
        self.by_command = False  # asked by a command, which an agent runs in a call; not by a tool of ours
        self.client = ""  # of a tool of ours: who calls it

    def outlives(self, bracket: Bracket) -> bool:
        """Whether something of a call is at work, though its agent is gone."""
        return ends.outlives(bracket, str(self.root), self._agents)

    def _agents(self) -> Iterator[Process]:
        return (Process(each["pid"], each["started"]) for each in self.observer.history().sessions)

    def close(self) -> None:
        with self._mutex:
            if not self._closed:
                self._closed = True
                self.observer.close()
                if self._threads is not None:
                    self._threads.close()
                self.store.close()

    @property
    def id(self) -> str:
        return self.store.id

    @property
    def progress(self) -> Progress | None:
        """Called with counts of paths or bytes during long work."""
        return self.observer.progress

    @progress.setter
    def progress(self, report: Progress | None) -> None:
        self.observer.progress = report

    @property
    def told(self) -> Told | None:
        """Called with steps of a take-back before they are done, and again with what came of them."""
        return self.observer.told

    @told.setter
    def told(self, report: Told | None) -> None:
        self.observer.told = report

    @property
    def _takebacks(self) -> Takebacks:
        if self._made is None:
            self._made = Takebacks(self.id, self.observer, self.environ, self._unlocked, self._asker)
        return self._made

    def _asker(self) -> dict[str, str]:
        return asker(self)

    @property
    def threads(self) -> Threads:
        """What agents remember: threads of state checkpoints."""
        with self._mutex:
            if self._threads is None:
                self._threads = Threads(self)
            return self._threads

    # -- locks and guards ----------------------------------------------------

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One call at a time, and no bare system error out of it."""
        with self._mutex, explained:
            if self._closed:
                raise UsageError("this workspace was closed", "open it again: takeback.open(root)")
            try:
                yield
            finally:
                forking.reap()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.alone(), self.store.write.hold(self.settings.lock_timeout), _WithoutCollector():
            self.store.blobs.reload()
            try:
                yield
            except BaseException:
                self.store.blobs.discard()
                self.observer.forget()
                raise

    @contextmanager
    def _unlocked(self) -> Iterator[None]:
        """The store is free while a take-back acts outside the files: nobody else waits for a slow server."""
        self.store.blobs.flush()
        self.store.write.release()
        try:
            yield
        finally:
            self.store.write.acquire(_LONG)  # what was done must be journaled
            self.store.blobs.reload()

    @contextmanager
    def applying(self) -> Iterator[None]:
        with self.alone(), self.store.apply.hold(self.settings.lock_timeout):
            self._is_applying = True
            try:
                yield
            finally:
                self._is_applying = False

    def _is_running(self) -> bool:
        """Whether another process is at a take-back just now."""
        if self._is_applying:
            return False
        if self.store.is_read_only:
            return self.store.apply.is_taken()
        try:
            self.store.apply.acquire(0)
        except Locked:
            return True
        self.store.apply.release()
        return False

    def must_be_on(self) -> None:
        if self.store.is_read_only:
            raise TakebackError(
                f"nothing was changed: the store at {self.store.folder} can only be read",
                "log, show, diff and restore --to DIR work; for the rest mend its owner, its permissions (0700), or "
                "its disk, which the system mounts so when it fails",
            )
        if not self.settings.enabled:
            raise Off(
                f"takeback is off (source: {self.settings.off_source})",
                "turn it on with TAKEBACK=on, or change that setting",
            )

    def must_not_be_interrupted(self) -> None:
        if what := self.interrupted():
            raise in_between(what)

    def interrupted(self) -> str:
        """What was interrupted, as a sentence; empty if nothing was."""
        with self.alone():
            found = self.observer.open_intents()
            if found is None or self._is_running():
                return ""
            return f"{with_article(found.verb)} was interrupted{' by Ctrl-C' if found.stopped else ''}"

    def under_way(self) -> str:
        """Which take-back another process is at just now, as a sentence; empty if none is."""
        with self.alone():
            found = self.observer.open_intents()
            if found is None or not self._is_running():
                return ""
            return f"{with_article(found.verb)} is under way in another process"

    def was_stopped(self) -> bool:
        """Whether a person stopped what was interrupted: then only a person says whether it is finished."""
        with self.alone():
            found = self.observer.open_intents()
            return found is not None and found.stopped and not self._is_running()

    def must_not_be_stopped(self) -> None:
        """What a person stopped is finished by nobody who was not asked to."""
        if self.was_stopped():
            raise Interrupted(
                f"nothing was changed: {self.interrupted()}, and the tree may be in between",
                "finish it with takeback resume, or go back with takeback resume --abort",
            )

    @contextmanager
    def _noting_a_stop(self) -> Iterator[None]:
        """Ctrl-C in the middle of a take-back is a person's decision, and is journaled as that."""
        try:
            yield
        except KeyboardInterrupt:
            with suppress(TakebackError, OSError):  # unnoted, it counts as killed; the stop itself must not wait
                self.observer.note_stopped()
            raise

    @contextmanager
    def open_tree(self) -> Iterator[OpenFolder]:
        """The root, opened and known to be the folder that was protected."""
        try:
            folder = open_root(str(self.root), self.settings.portable)
        except OSError as error:
            raise TakebackError(
                f"{self.root} cannot be opened ({error.strerror})",
                "if it was moved, run takeback init in its new place; takeback restore --to DIR still works",
            ) from error
        with folder:
            if self._inode and folder.stat_self().st_ino != self._inode:
                raise TakebackError(
                    f"{self.root} is not the folder that was protected: it was replaced by another one",
                    "run takeback init here to go on with its history, or takeback restore --to DIR to get files out",
                )
            yield folder

    def relative(self, path: str | bytes) -> bytes:
        """A path as the user names it (absolute, or relative to the root) as root-relative bytes, or an error."""
        given = os.fsdecode(path)
        if "\0" in given:
            raise UsageError("a path cannot hold a NUL byte", "name the path without it")
        if os.path.isabs(given):
            parent = os.path.realpath(os.path.dirname(given.rstrip("/")))
            given = os.path.relpath(os.path.join(parent, os.path.basename(given.rstrip("/"))), self.root)
            if given == ".." or given.startswith(".." + os.sep):
                raise UsageError(f"{os.fsdecode(path)} lies outside the workspace {self.root}", "name a path inside it")
        normal = os.path.normpath(given).replace(os.sep, "/")
        if normal == "..":
            normal = "../"
        if normal.startswith("../"):
            raise UsageError(f"{os.fsdecode(path)} lies outside the workspace {self.root}", "name a path inside it")
        found = b"" if normal == "." else os.fsencode(normal)
        components(found)
        return found

    def history(self) -> History:
        """The journal, folded, as a look would leave it now that closes the calls that are over; kept while nothing is
        appended."""
        with self.alone():
            return self.observer.as_closed()


def in_between(what: str) -> TakebackError:
    """Said where nobody may look, since something was interrupted."""
    return TakebackError(
        f"{what}, and the tree may be in between",
        "finish it with takeback resume, or go back with takeback resume --abort",
    )


def with_article(verb: str) -> str:
    return f"{'an' if verb[:1] in 'aeiou' else 'a'} {verb}"


class _WithoutCollector:
    """Hundreds of thousands of small tuples and not one cycle: the cycle collector would only cost time."""

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()


class _Explained(ContextDecorator):
    """What the system refuses anywhere inside, said so that a person can act on it."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):  # of whoever listens to the progress
            where = f" at {error.filename!r}" if error.filename is not None else ""
            raise TakebackError(
                f"the system refused: {error.strerror or error}{where}",
                "free space, or mend the permissions or the disk, then run it again: "
                "takeback doctor looks at all of it",
            ) from error


explained = _Explained()
