"""A workspace: a project root under protection, and its store. The object every surface holds.

Here locks are taken and the parts are joined; each call runs whole before the next begins:

    look (observer) ─► journal ─► index                 checkpoint, track
    look ─► planner ─► executor ─► index (takebacks)    undo, redo, rollback, revert, restore
    views, prune, verify                                loaded by the call that needs them
"""

from __future__ import annotations

import gc
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import store, workers
from .acts import Act, Approval, Credential, NewAct, Outside, body_of
from .capture.scan import Look, Scan
from .effects import Checkpoint, Outcome, Plan, Request, Step, text
from .errors import Locked, NotFound, NoWorkspace, Off, TakebackError, UsageError
from .history import NUMBERED, History, pack_snapshot
from .ids import new_id
from .journal import New
from .observer import Observer, Progress, is_work
from .safefs import Folder as OpenFolder
from .safefs import components, open_root
from .settings import Settings
from .typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from typing import TypeVar

    from . import views
    from .prune import Pruned
    from .takebacks import Takebacks
    from .verify import Repaired, Verified

    T = TypeVar("T")

_DAY = 86_400.0  # what is younger is never pruned by itself
_LONG = 3600.0  # seconds
_MEASURED = 8  # the store's size is looked up every so many checkpoints: it means a stat of every pack


class Tracked(NamedTuple):
    """What `track` captured."""

    paths: tuple[str, ...]
    changed: tuple[str, ...]
    lacking: tuple[tuple[str, str], ...]


class Workspace:
    """Safe to use from several threads: each call runs whole before the next begins."""

    def __init__(
        self,
        root: Path,
        opened: store.Store,
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
        self._inode = inode
        self._mutex = threading.RLock()
        self._closed = False
        self._is_applying = False
        self._made: Takebacks | None = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._mutex:
            if not self._closed:
                self._closed = True
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
    def _takebacks(self) -> Takebacks:
        from .takebacks import Takebacks

        if self._made is None:
            self._made = Takebacks(self.id, self.observer, self.environ, self._unlocked)
        return self._made

    # -- locks and guards ----------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One call at a time, and no bare system error out of it."""
        with self._mutex, _explained():
            if self._closed:
                raise UsageError("this workspace was closed", "open it again: takeback.open(root)")
            try:
                yield
            finally:
                workers.reap()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._alone(), self.store.write.hold(self.settings.lock_timeout), _without_collector():
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
    def _applying(self) -> Iterator[None]:
        with self._alone(), self.store.apply.hold(self.settings.lock_timeout):
            self._is_applying = True
            try:
                yield
            finally:
                self._is_applying = False

    def _is_running(self) -> bool:
        """Whether another process is at a take-back just now."""
        if self._is_applying:
            return False
        try:
            self.store.apply.acquire(0)
        except Locked:
            return True
        self.store.apply.release()
        return False

    def _must_be_on(self) -> None:
        if not self.settings.enabled:
            raise Off(
                f"takeback is off (source: {self.settings.off_source})",
                "turn it on with TAKEBACK=on, or change that setting",
            )

    def _must_not_be_interrupted(self) -> None:
        if what := self.interrupted():
            raise TakebackError(
                f"{what}, and the tree may be in between",
                "finish it with takeback resume, or go back with takeback resume --abort",
            )

    def interrupted(self) -> str:
        """What was interrupted, as a sentence; empty if nothing was."""
        with self._alone():
            found = self.observer.open_intents()
            return "" if found is None or self._is_running() else f"a {found[0]} was interrupted"

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

    # -- looking -------------------------------------------------------------

    def history(self) -> History:
        """The journal, folded; kept while nothing is appended."""
        with self._alone():
            return self.observer.history()

    def glance(self) -> Look:
        """Looks at the whole tree without leaving a trace: for status and diff."""
        with self._alone(), self.open_tree() as tree:
            return self.observer.scan(tree, self.observer.known(), dry=True)

    def names_at_top(self) -> list[bytes]:
        """What is known to lie right below the root."""
        with self._alone():
            folder = self.observer.known().folder(b"")
            return [] if folder is None else list(folder.names)

    def relative(self, path: str | bytes) -> bytes:
        """A path as the user names it (absolute, or relative to the root) as root-relative bytes, or an error."""
        given = os.fsdecode(path)
        if "\0" in given:
            raise UsageError("a path cannot hold a NUL byte", "name the path without it")
        if os.path.isabs(given):
            parent = os.path.realpath(os.path.dirname(given.rstrip("/")))
            given = os.path.relpath(os.path.join(parent, os.path.basename(given.rstrip("/"))), self.root)  # noqa: PTH118
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

    # -- checkpoint, track ---------------------------------------------------

    def checkpoint(
        self, label: str = "", *, actor: str = "", named: bool | None = None, deadline: float | None = None
    ) -> Checkpoint:
        """Captures the whole tree. An actor vouches for what changed; without a label its checkpoint is automatic."""
        self._must_be_on()
        if "\0" in label or "\n" in label:
            raise UsageError("a label is one line of text", "name it without line breaks")
        is_named = named if named is not None else bool(label) or not actor
        with self._writing(), self.open_tree() as tree:
            self._must_not_be_interrupted()
            observer = self.observer
            look = observer.scan(tree, observer.known(), deadline=deadline)
            rows = observer.rows_of(look, actor)
            try:
                observer.store_tree(look.index)
            except OSError as error:
                raise TakebackError(
                    f"the store cannot be written ({error.strerror}); no checkpoint was taken",
                    "free space or mend the store, then run it again",
                ) from error
            snapshot = look.index.snapshot()
            partial = [[text(path), why] for path, why in look.lacking]
            body: dict[str, Any] = {"label": label, "named": is_named, "snapshot": pack_snapshot(snapshot)}
            if actor:
                body["actor"] = actor
            if partial:
                body["partial"] = partial
            id = new_id()
            at = self.clock()
            seqs = observer.journal_look(look, [*rows, New("checkpoint", id, body)])
            number = self.store.journal.count(NUMBERED, seqs[-1])
            over = self._stay_within_budget()
        lacking = tuple((path, why) for path, why in partial)
        large = tuple((text(p), why) for p, why in look.index.uncovered() if why.startswith("larger than"))
        return Checkpoint(seqs[-1], id, at, label, is_named, snapshot, lacking, actor, number, False, large, over)

    def _stay_within_budget(self) -> str:
        """Prunes after a checkpoint that is over budget; says why where it still does not fit."""
        pruned = self.store.journal.last("prune")
        horizon = pruned.body.get("horizon", 0) if pruned is not None and pruned.body else 0
        living = [at for seq, at in self.store.journal.bodied("checkpoint") if seq >= horizon]  # the rest is pinned
        now, surplus = self.clock(), len(living) - self.settings.keep
        too_old = len(living) > 1 and now - living[0] > max(self.settings.max_age, _DAY)
        too_many = surplus > 0 and now - living[surplus - 1] > _DAY
        too_large = len(living) % _MEASURED == 0 and self.store.size() > self.settings.max_bytes
        if too_old or too_many or too_large:
            from . import prune

            return prune.within_budget(self).why_over
        return ""

    def track(self, paths: Iterable[str | bytes], *, actor: str = "") -> Tracked:
        """Captures just these paths, before they change or after."""
        self._must_be_on()
        wanted = [self.relative(p) for p in paths]
        with self._writing(), self.open_tree() as tree:
            self._must_not_be_interrupted()
            for path in wanted:
                _refuse_links(tree, path)
            scan = Scan(
                tree, self.observer.known(), self.observer.rules(tree), self.store.blobs, self.observer.limits()
            )
            look = scan.named(wanted)
            self.observer.journal_look(look, self.observer.rows_of(look, actor))
        changed = tuple(text(c.path) for c in look.changes if is_work(c))
        lacking = tuple((text(path), why) for path, why in look.lacking)
        return Tracked(tuple(map(text, wanted)), changed, lacking)

    # -- taking back ---------------------------------------------------------

    def plan(
        self,
        verb: str,
        *what: str | int,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        markers: bool = False,
        force: bool = False,
        only: Iterable[str] = (),
        without: Iterable[str] = (),
        save: bool = False,
    ) -> Plan:
        """What a verb would do now, with a verdict per path. Nothing is changed; saved, it can be applied later."""
        self._must_be_on()
        options = _options(verb, actors, everything, merge, force, markers, only, without)
        with self._applying(), self._writing(), self.open_tree() as tree:
            self._must_not_be_interrupted()
            plan = self._takebacks.plan(tree, self._asked(verb, what, options))
            return self._takebacks.save(plan) if save else plan

    def _asked(self, verb: str, what: Sequence[str | int], options: Request) -> Any:
        from . import requests

        return lambda planner: requests.resolve(planner, self.relative, verb, what, options)

    @property
    def merged(self) -> dict[bytes, bytes]:
        """Texts that the last plan merges, by content id: they are stored when it is applied."""
        return self._takebacks.merged

    def saved_plan(self, name: str) -> Plan:
        """A saved plan as it still stands, to be looked at before it is applied; refused if it is stale."""
        self._must_be_on()
        with self._applying(), self._writing(), self.open_tree() as tree:
            self._must_not_be_interrupted()
            return self._takebacks.again(tree, name)

    def apply(self, plan: Plan | str) -> Outcome:
        """Carries out exactly this plan, or refuses it as stale."""
        return self._finishing_first(lambda tree: self._takebacks.again(tree, plan))

    def take_back(
        self,
        verb: str,
        *what: str | int,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        markers: bool = False,
        force: bool = False,
        only: Iterable[str] = (),
        without: Iterable[str] = (),
    ) -> Outcome:
        """Any verb that can be planned, planned and applied in one go."""
        options = _options(verb, actors, everything, merge, force, markers, only, without)
        return self._finishing_first(lambda tree: self._takebacks.plan(tree, self._asked(verb, what, options)))

    def _finishing_first(self, planned: Callable[[OpenFolder], Plan]) -> Outcome:
        """Plans and applies with nobody in between; an interrupted take-back is finished instead, and nothing more."""
        self._must_be_on()
        with self._applying():
            if (earlier := self._finish_interrupted(abort=False)) is not None:
                return earlier
            with self._writing(), self.open_tree() as tree:
                return self._takebacks.run(tree, planned(tree))

    def _finish_interrupted(self, abort: bool) -> Outcome | None:
        with self._writing():
            if self.observer.open_intents() is None:
                return None
            with self.open_tree() as tree:
                return self._takebacks.finish_interrupted(tree, abort)

    def resume(self, abort: bool = False) -> Outcome | None:
        """Finishes an interrupted take-back, or goes back from it; None if there is none."""
        self._must_be_on()
        with self._applying():
            return self._finish_interrupted(abort)

    def undo(
        self,
        n: int = 1,
        *,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        force: bool = False,
    ) -> Outcome:
        """Takes back the newest turn, or the newest n as one."""
        return self.take_back("undo", n, actors=actors, everything=everything, merge=merge, force=force)

    def redo(self, n: int = 1, *, merge: bool = False, force: bool = False) -> Outcome:
        """Brings back what the newest standing undo, rollback, revert or restore took."""
        return self.take_back("redo", n, merge=merge, force=force)

    def rollback(
        self,
        to: str = "",
        *,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        force: bool = False,
    ) -> Outcome:
        """Back to a checkpoint (the newest named one), or to just before an effect."""
        what = (to,) if to else ()
        return self.take_back("rollback", *what, actors=actors, everything=everything, merge=merge, force=force)

    def revert(self, *what: str, merge: bool = False, force: bool = False) -> Outcome:
        """Takes back one effect, or the latest change to a path, and keeps the rest."""
        return self.take_back("revert", *what, merge=merge, force=force)

    def restore(
        self, checkpoint: str, *paths: str, to: str | os.PathLike[str] | None = None, force: bool = False
    ) -> Outcome:
        """Brings single files or folders back from any checkpoint, in place or into another folder."""
        if to is None:
            return self.take_back("restore", checkpoint, *paths, force=force)
        with self._alone():
            return self._takebacks.export(checkpoint, [self.relative(p) for p in paths], Path(to), force)

    # -- outside the files -----------------------------------------------------

    def record(self, act: NewAct, by: Mapping[str, str] | None = None) -> Act:
        """Journals an outside effect with its inverse. What changed in the tree before it stands before it."""
        self._must_be_on()
        with self._writing(), self.open_tree() as tree:
            self._must_not_be_interrupted()
            self.observer.look(tree)
            id = new_id()
            self.store.journal.append([New("act", id, body_of(act, by or {}))], self.clock())
            return self.history().acts[id]

    def acted(self, id: str, **what: Any) -> Act:
        """Journals what became of an act: its state, its inverse, a verdict that changed."""
        self._must_be_on()
        with self._writing(), self.open_tree() as tree:
            self.observer.look(tree)
            inverse = what.pop("inverse", False)
            if inverse is not False:
                what["inverse"] = inverse.to_json() if inverse else None
            self.store.journal.append([New("acted", new_id(), {"act": id, **what})], self.clock())
            return self.history().acts[id]

    def outside(self, name: str) -> Outside:
        """A domain of the outside world, in this workspace."""
        from . import domains

        return domains.load(name, self._takebacks.world())

    def effects(self) -> list[Act]:
        """The ledger: every outside effect, newest first."""
        with self._alone():
            return self.history().ledger()

    def find_effect(self, name: str) -> Act:
        """An outside effect by its number, the beginning of its id, or the id of the take-back that left it in
        doubt."""
        from . import names

        with self._alone():
            history = self.history()
            found = names.resolve(history, name)
            for act in history.ledger():
                if act.id == found.id or found.id == act.in_doubt:
                    return act
        raise NotFound(f"{name!r} is no effect outside the files", "list them with takeback effects")

    def unapproved(self, plan: Plan) -> tuple[list[Step], list[Credential]]:
        """What a plan would do outside the files that a person has to approve: steps, and credentials that would be
        sent where no setting binds them."""
        with self._alone():
            return self._takebacks.unapproved(plan) if plan.outside else ([], [])

    def approve(self, plan: Plan, credentials: Iterable[Credential] = ()) -> Approval:
        """A person's yes to exactly this plan, good for one apply."""
        self._must_be_on()
        with self._writing():
            return self._takebacks.approve(plan, credentials)

    def resolve(self, name: str, done: bool) -> Act:
        """A person says what came of an inverse nobody heard of again: it took effect, or it may be sent again."""
        self._must_be_on()
        act = self.find_effect(name)
        if act.shown_state != "unknown":
            raise UsageError(f"{act.id[:8]} is not in doubt: it is {act.shown_state}", "see takeback effects")
        with self._applying(), self._writing():
            note = {"what": "resolve", "act": act.id, "done": done}
            self.store.journal.append([New("note", new_id(), note)], self.clock())
        return self.find_effect(act.id)

    # -- seeing --------------------------------------------------------------

    def status(self) -> views.Status:
        """What changed since the newest named checkpoint, by whom, and what is not covered. Journals nothing."""
        from . import views

        with self._alone():
            return views.status(self)

    def diff(self, a: str = "", b: str = "", paths: Iterable[str] = ()) -> views.Diff:
        """Checkpoint A (the newest named one) to now, or to checkpoint B. Journals nothing."""
        from . import views

        with self._alone():
            return views.diff(self, a, b, [self.relative(p) for p in paths])

    def log(self, filter: str = "") -> list[views.LogRow]:
        """Checkpoints, effects and take-backs, newest first."""
        from . import views

        with self._alone():
            return views.log(self, filter)

    def show(self, name: str) -> views.Shown:
        """One entry of the log in full."""
        from . import views

        with self._alone():
            return views.show(self, name)

    def find_checkpoint(self, name: str) -> Checkpoint:
        """By its number, its label or the beginning of its id."""
        from . import requests

        return requests.find_checkpoint(self.history(), name)

    # -- care ----------------------------------------------------------------

    def pin(self, name: str, keep: bool = True) -> Checkpoint:
        """Keeps a checkpoint for ever, or no longer."""
        self._must_be_on()
        with self._writing():
            checkpoint = self.find_checkpoint(name)
            self.store.journal.append(
                [New("note", new_id(), {"what": "pin" if keep else "unpin", "id": checkpoint.id})], self.clock()
            )
            return checkpoint._replace(pinned=keep)

    def confirm_rules(self) -> str:
        """A person accepts that the project's own rules take paths out of cover."""
        self._must_be_on()
        with self._writing(), self.open_tree() as tree:
            fingerprint = self.observer.rules(tree).project_fingerprint
            self.store.journal.append([New("approval", new_id(), {"rules": fingerprint})], self.clock())
            return fingerprint

    def prune(self, **asked: Any) -> Pruned:
        """Makes room; `asked` are the fields of prune.Asked."""
        from . import prune

        self._must_be_on()
        with self._applying(), self._writing():
            return prune.prune(self, prune.Asked(**asked))

    def verify(self, data: bool = False) -> Verified:
        """Walks the hash chain and every blob's record; with `data` every byte."""
        from . import verify

        with self._alone():
            return verify.verify(self, data)

    def repair(self) -> Repaired:
        """Sets damaged blobs aside and rebuilds the caches."""
        from . import verify

        self._must_be_on()
        with self._applying(), self._writing():
            return verify.repair(self)

    # -- async twins ---------------------------------------------------------

    async def acheckpoint(self, label: str = "", *, actor: str = "") -> Checkpoint:
        return await _in_thread(lambda: self.checkpoint(label, actor=actor))

    async def atrack(self, paths: Iterable[str | bytes], *, actor: str = "") -> Tracked:
        return await _in_thread(lambda: self.track(paths, actor=actor))

    async def astatus(self) -> views.Status:
        return await _in_thread(self.status)

    async def adiff(self, a: str = "", b: str = "", paths: Iterable[str] = ()) -> views.Diff:
        return await _in_thread(lambda: self.diff(a, b, paths))

    async def alog(self, filter: str = "") -> list[views.LogRow]:
        return await _in_thread(lambda: self.log(filter))

    async def ashow(self, name: str) -> views.Shown:
        return await _in_thread(lambda: self.show(name))

    async def aplan(self, verb: str, *what: str | int, **options: Any) -> Plan:
        return await _in_thread(lambda: self.plan(verb, *what, **options))

    async def aapply(self, plan: Plan | str) -> Outcome:
        return await _in_thread(lambda: self.apply(plan))

    async def aresume(self, abort: bool = False) -> Outcome | None:
        return await _in_thread(lambda: self.resume(abort))

    async def aundo(self, n: int = 1, **options: Any) -> Outcome:
        return await _in_thread(lambda: self.undo(n, **options))

    async def aredo(self, n: int = 1, **options: Any) -> Outcome:
        return await _in_thread(lambda: self.redo(n, **options))

    async def arollback(self, to: str = "", **options: Any) -> Outcome:
        return await _in_thread(lambda: self.rollback(to, **options))

    async def arevert(self, *what: str, **options: Any) -> Outcome:
        return await _in_thread(lambda: self.revert(*what, **options))

    async def arestore(self, checkpoint: str, *paths: str, **options: Any) -> Outcome:
        return await _in_thread(lambda: self.restore(checkpoint, *paths, **options))

    async def apin(self, name: str, keep: bool = True) -> Checkpoint:
        return await _in_thread(lambda: self.pin(name, keep))

    async def aprune(self, **asked: Any) -> Pruned:
        return await _in_thread(lambda: self.prune(**asked))

    async def averify(self, data: bool = False) -> Verified:
        return await _in_thread(lambda: self.verify(data))

    async def arepair(self) -> Repaired:
        return await _in_thread(self.repair)


async def _in_thread(work: Callable[[], T]) -> T:
    import asyncio

    return await asyncio.to_thread(work)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Hundreds of thousands of small tuples and not one cycle: the cycle collector would only cost time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _explained() -> Iterator[None]:
    """What the system refuses anywhere inside, said so that a person can act on it."""
    try:
        yield
    except BrokenPipeError:
        raise  # of whoever listens to the progress: not ours
    except OSError as error:
        where = f" at {error.filename!r}" if error.filename is not None else ""
        raise TakebackError(
            f"the system refused: {error.strerror or error}{where}",
            "free space, or mend the permissions or the disk, then run it again: takeback doctor looks at all of it",
        ) from error


# -- opening -----------------------------------------------------------------


@_explained()
def open_workspace(
    root: Path, settings: Settings, create: bool = False, memory: bool = False, environ: Mapping[str, str] = {}
) -> Workspace:
    """Opens the workspace of exactly this root; with `create` it is made and its first checkpoint taken if needed."""
    real = Path(os.path.realpath(root))
    if not real.is_dir():
        raise UsageError(f"{root} is not a folder", "name the folder to protect")
    if memory:
        workspace = Workspace(real, store.open_memory(), settings, 0, environ=environ)
        workspace.checkpoint("start")
        return workspace
    if not store.is_workspace(settings.home, real):
        if not create:
            raise NoWorkspace(f"{real} is not protected", f"protect it with takeback init -C {real}")
        if not settings.enabled:
            raise Off(
                f"takeback is off (source: {settings.off_source})",
                "turn it on with TAKEBACK=on, or change that setting",
            )
        store.create(settings.home, real, real.stat().st_ino)
    opened, meta = store.open_store(settings.home, real, settings.portable)
    workspace = Workspace(real, opened, settings, meta["inode"], environ=environ)
    if create and opened.journal.last("checkpoint") is None:
        workspace.checkpoint("start")
    return workspace


def _refuse_links(tree: OpenFolder, path: bytes) -> None:
    """A path that leads through a symlink is somewhere else's."""
    parts = components(path)
    for depth in range(len(parts) - 1):
        try:
            with tree.descend(parts[:depth]) as here:
                st = here.stat(parts[depth])
        except OSError:
            return
        if stat.S_ISLNK(st.st_mode):
            link = text(b"/".join(parts[: depth + 1]))
            raise UsageError(f"{text(path)} leads through the symlink {link}", "name a path that no symlink is part of")


def _options(
    verb: str,
    actors: Iterable[str] | None,
    everything: bool,
    merge: bool,
    force: bool,
    markers: bool,
    only: Iterable[str] = (),
    without: Iterable[str] = (),
) -> Request:
    return Request(
        verb,
        actors=None if actors is None else tuple(sorted(set(actors))),
        everything=everything,
        merge=merge or markers,
        markers=markers,
        force=force,
        only=tuple(sorted(set(only))),
        without=tuple(sorted(set(without))),
    )
