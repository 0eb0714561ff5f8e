"""A workspace: a project root under protection, and its store. The object every surface holds.

Here names are resolved, locks are taken and the parts are joined:

    look (capture.scan) ─► journal.append ─► index      checkpoint, track
    look ─► planner ─► executor ─► index                undo, redo, rollback, revert, restore
"""

from __future__ import annotations

import gc
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from . import names, prune, store, trees, verify, views
from .capture.scan import Limits, Look, Scan
from .domains.files import Files, export, temporary_prefix
from .effects import (
    FOLDER,
    UNCOVERED,
    UNOBSERVED,
    UNSEEN,
    Change,
    Checkpoint,
    Entry,
    Outcome,
    Plan,
    Request,
    State,
    Step,
    raw,
    same,
    text,
)
from .errors import NoWorkspace, NotFound, Off, Stale, TakebackError, UsageError
from .executor import Done, Executor, kept_results
from .history import History, pack_list, pack_snapshot, unpack_list, unpack_snapshot
from .ids import new_id
from .index import Index
from .journal import New, Row
from .merging import Merger
from .planner import Planner, revert_request
from .rules import Rules, load_rules
from .safefs import Folder as OpenFolder
from .safefs import components, open_root
from .safefs.mounts import mounts_below
from .settings import Settings

Progress = Callable[[int], None]
T = TypeVar("T")
_TREE_ROWS = ("change", "note", "outcome")  # rows that move the known tree


@dataclass(frozen=True)
class Tracked:
    """What `track` captured."""

    paths: tuple[str, ...]
    changed: tuple[str, ...]
    lacking: tuple[tuple[str, str], ...]


class Workspace:
    """Safe to use from several threads: each call runs whole before the next begins."""

    def __init__(self, root: Path, opened: store.Store, settings: Settings, inode: int, clock: Callable[[], float] = time.time) -> None:
        self.root = root
        self.store = opened
        self.settings = settings
        self.clock = clock
        self.progress: Progress | None = None
        self.merged: dict[bytes, bytes] = {}  # texts that the last plan merges, not stored before it is applied
        self._inode = inode
        self._mutex = threading.RLock()
        self._cached: tuple[object, Index] | None = None
        self._history: tuple[int, History] | None = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._mutex:
            self.store.close()

    @property
    def id(self) -> str:
        return self.store.id

    # -- locks and guards ----------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One call at a time, and no bare system error out of it."""
        with self._mutex, _explained():
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._alone(), self.store.write.hold(self.settings.lock_timeout), _without_collector():
            self.store.blobs.reload()
            try:
                yield
            except BaseException:
                self.store.blobs.discard()
                self._cached = None
                raise

    @contextmanager
    def _applying(self) -> Iterator[None]:
        with self._alone(), self.store.apply.hold(self.settings.lock_timeout):
            yield

    def _must_be_on(self) -> None:
        if not self.settings.enabled:
            raise Off(f"takeback is off (source: {self.settings.off_source})", "turn it on with TAKEBACK=on, or change that setting")

    @contextmanager
    def _tree(self) -> Iterator[OpenFolder]:
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

    # -- the known tree ------------------------------------------------------

    def history(self) -> History:
        """The journal, folded; kept while nothing is appended."""
        with self._alone():
            head = self.store.journal.head().seq
            if self._history is None or self._history[0] != head:
                self._history = head, History(self.store.journal.rows(), self.store.blobs.get)
            return self._history[1]

    def _known(self) -> Index:
        """The last observed state of every path: the index, brought up to the journal's head."""
        index = self._load_index()
        if index is None:
            last = self.store.journal.last("checkpoint")
            if last is None or last.body is None:
                return Index()
            index = Index.from_snapshot(self.store.blobs.get, unpack_snapshot(last.body["snapshot"]), last.seq)
        head = self.store.journal.head().seq
        if index.seq < head:
            for row in self.store.journal.rows(index.seq, _TREE_ROWS):
                index.apply(self._moved(row))
            index.seq = head
        return index

    def names_at_top(self) -> list[bytes]:
        """What is known to lie right below the root."""
        with self._alone():
            folder = self._known().folder(b"")
            return [] if folder is None else list(folder.names)

    def _load_index(self) -> Index | None:
        if self.store.folder is None:
            return self._cached[1].copy() if self._cached else None
        path = self.store.folder / "index"
        try:
            st = path.stat()
        except FileNotFoundError:
            return None
        key = (st.st_ino, st.st_mtime_ns, st.st_size)
        if self._cached is not None and self._cached[0] == key:
            return self._cached[1].copy()
        try:
            index = Index.load(path.read_bytes())
        except OSError:
            return None
        if index is not None:
            self._cached = key, index
            return index.copy()
        return None

    def _save_index(self, index: Index) -> None:
        if self.store.folder is None:
            self._cached = None, index
            return
        path = self.store.folder / "index"
        try:
            index.save(path)
        except OSError:
            path.unlink(missing_ok=True)  # only a cache: the journal has it all
            return
        st = path.stat()
        self._cached = (st.st_ino, st.st_mtime_ns, st.st_size), index

    def _moved(self, row: Row) -> list[Change]:
        """How one row moved the known tree."""
        body = row.body or {}
        if row.kind != "outcome":
            return unpack_list(body["list"], self.store.blobs.get) if "list" in body else []
        if body.get("aborted"):
            return []
        begun = self.store.journal.get(body["takeback"])
        if begun is None or begun.body is None:
            return []
        segment = begun.body["segments"][body["segment"]]
        undone = {raw(path) for path, *_ in body["not_done"]}
        if segment["domain"] != "files":
            return []
        return [c for c in unpack_list(segment["list"], self.store.blobs.get) if c.path not in undone]

    # -- looking -------------------------------------------------------------

    def rules(self, tree: OpenFolder) -> Rules:
        ignore: bytes | None = None
        try:
            fd = tree.open_read(b".takebackignore")
        except OSError:
            fd = -1
        if fd >= 0:
            with os.fdopen(fd, "rb") as file:
                ignore = file.read(1 << 20)
        return load_rules(self.settings, ignore)

    def _limits(self, deadline: float | None = None, temporary: tuple[bytes, ...] = ()) -> Limits:
        own = None
        if self.store.folder is not None:
            home = os.path.realpath(self.settings.home)
            if home.startswith(str(self.root).rstrip("/") + os.sep):
                own = os.fsencode(os.path.relpath(home, self.root)).replace(os.sep.encode(), b"/")
        seconds = deadline if deadline is not None else self.settings.scan_deadline
        return Limits(
            max_file=self.settings.max_file,
            room=self.settings.max_bytes - self.store.blobs.size(),
            deadline=None if seconds is None else time.monotonic() + seconds,
            own_store=own,
            temporary=temporary,
            mounts=mounts_below(str(self.root)),
            confirmed_rules=self._confirmed_rules(),
            progress=self.progress,
            fork=self.store.folder is not None,
        )

    def _confirmed_rules(self) -> str:
        found = self.store.journal.last("approval")
        return found.body["rules"] if found is not None and found.body is not None else ""

    def _scan(self, tree: OpenFolder, index: Index, dry: bool = False, deadline: float | None = None) -> Look:
        running = self._open_intents()
        limits = self._limits(deadline, running[1] if running else ())
        put = None if dry else self.store.blobs
        return Scan(tree, index, self.rules(tree), put, limits).whole()

    def glance(self) -> Look:
        """Looks at the whole tree without leaving a trace: for status and diff."""
        with self._alone(), self._tree() as tree:
            return self._scan(tree, self._known(), dry=True)

    def _rows_of(self, look: Look, actor: str) -> list[New]:
        """What a look found as journal rows: changes that count in one, mere sights and touches in a note."""
        if look.first or not look.changes:
            return []
        packed = {"list": pack_list(look.changes, self.store.blobs.put)}
        if all(_counts_not(c) for c in look.changes):
            return [New("note", new_id(), {"what": "sight", **packed})]
        turns = [[actor, self.history().current_turn(actor)]] if actor else []
        return [New("change", new_id(), {"turns": turns, **packed})]

    def _look(self, tree: OpenFolder, actor: str = "") -> Look:
        """Looks at the whole tree and journals what differs."""
        look = self._scan(tree, self._known())
        self._journal_look(look, self._rows_of(look, actor))
        return look

    def _journal_look(self, look: Look, rows: Sequence[New]) -> list[int]:
        self.store.blobs.flush()
        seqs = self.store.journal.append(rows, self.clock()) if rows else []
        look.index.seq = seqs[-1] if seqs else look.index.seq
        if look.dirty or look.changes:
            self._save_index(look.index)
        return seqs

    def _store_tree(self, index: Index) -> None:
        """Stores the folder objects of a snapshot that are not stored yet; below one that is, all are."""
        blobs = self.store.blobs
        waiting = [b""]
        while waiting:
            path = waiting.pop()
            record = index.folders[path]
            if blobs.has(record.stored):
                continue
            folder = trees.decode(record.object)
            blobs.put(record.object, record.stored)
            waiting += [trees.join(path, name) for name in folder.subtrees]

    # -- checkpoint, track ---------------------------------------------------

    def checkpoint(self, label: str = "", *, actor: str = "", named: bool | None = None, deadline: float | None = None) -> Checkpoint:
        """Captures the whole tree. An actor vouches for the changes found; without a label its checkpoint is automatic."""
        self._must_be_on()
        if "\0" in label or "\n" in label:
            raise UsageError("a label is one line of text", "name it without line breaks")
        is_named = named if named is not None else bool(label) or not actor
        with self._writing(), self._tree() as tree:
            self._must_not_be_interrupted()
            look = self._scan(tree, self._known(), deadline=deadline)
            rows = self._rows_of(look, actor)
            try:
                self._store_tree(look.index)
            except OSError as error:
                raise TakebackError(f"the store cannot be written ({error.strerror}); no checkpoint was taken", "free space or mend the store, then run it again") from error
            snapshot = look.index.snapshot()
            partial = [[text(path), why] for path, why in look.lacking]
            body: dict[str, Any] = {"label": label, "named": is_named, "snapshot": pack_snapshot(snapshot)}
            if actor:
                body["actor"] = actor
            if partial:
                body["partial"] = partial
            id = new_id()
            at = self.clock()
            seqs = self._journal_look(look, [*rows, New("checkpoint", id, body)])
            number = self.store.journal.count(("checkpoint", "change", "takeback"), seqs[-1])
            prune.within_budget(self)
        lacking = tuple((path, why) for path, why in partial)
        return Checkpoint(seqs[-1], id, at, label, is_named, snapshot, lacking, actor, number)

    def track(self, paths: Iterable[str | bytes], *, actor: str = "") -> Tracked:
        """Captures just these paths, before they change or after."""
        self._must_be_on()
        wanted = [self.relative(p) for p in paths]
        with self._writing(), self._tree() as tree:
            self._must_not_be_interrupted()
            for path in wanted:
                _refuse_links(tree, path)
            scan = Scan(tree, self._known(), self.rules(tree), self.store.blobs, self._limits())
            look = scan.named(wanted)
            self._journal_look(look, self._rows_of(look, actor))
        changed = tuple(text(c.path) for c in look.changes if not _counts_not(c))
        lacking = tuple((text(path), why) for path, why in look.lacking)
        return Tracked(tuple(map(text, wanted)), changed, lacking)

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

    # -- planning ------------------------------------------------------------

    def plan(
        self,
        verb: str,
        *what: str | int,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        markers: bool = False,
        force: bool = False,
        save: bool = False,
    ) -> Plan:
        """What a verb would do now, with a verdict per path. Nothing is changed; saved, it can be applied later."""
        self._must_be_on()
        options = Request(
            verb,
            actors=None if actors is None else tuple(sorted(set(actors))),
            everything=everything,
            merge=merge or markers,
            markers=markers,
            force=force,
        )
        with self._applying(), self._writing(), self._tree() as tree:
            self._must_not_be_interrupted()
            plan, merger = self._plan_fresh(tree, lambda planner: self._resolve(planner, verb, what, options))
            self.merged = merger.made
            if save:
                plan = self._save_plan(plan)
            return plan

    def _save_plan(self, plan: Plan) -> Plan:
        id = new_id()
        rows = [[text(s.path), s.verdict, s.note, _brief(s.expected) if s.taken else "", _brief(s.goal) if s.taken else ""] for s in plan.steps]
        body = {"request": plan.request.to_json(), "hash": plan.hash, "steps": rows}
        self.store.journal.append([New("plan", id, body)], self.clock())
        return replace(plan, id=id)

    def _plan_fresh(self, tree: OpenFolder, ask: Callable[[Planner], Request]) -> tuple[Plan, Merger]:
        """Looks, then plans on what is there."""
        look = self._look(tree)
        merger = Merger(self.store.blobs.get)
        planner = Planner(self.id, self.history(), _states(look.index), merger, _children(look.index))
        request = ask(planner)
        if request.verb == "restore":
            plan = planner.restore(request, self._goals(request))
            return replace(plan, steps=self._with_link_notes(tree, plan)), merger
        plan = planner.plan(request)
        if request.verb == "rollback":
            plan = replace(plan, steps=(*plan.steps, *_unreadable(look, plan, planner.history)))
        return replace(plan, steps=self._with_link_notes(tree, plan)), merger

    def _with_link_notes(self, tree: OpenFolder, plan: Plan) -> tuple[Any, ...]:
        """Says where taking a file back breaks a hard link that leaves the root."""
        steps = list(plan.steps)
        if len(steps) > 1000:
            return plan.steps
        for at, step in enumerate(steps):
            if step.taken and step.expected is not None and step.expected.kind == 1 and not step.expected.group and step.path:
                parts = components(step.path)
                try:
                    with tree.descend(parts[:-1]) as here:
                        if here.stat(parts[-1]).st_nlink > 1:
                            steps[at] = step._replace(note="its hard link outside the project is broken")
                except OSError:
                    continue
        return tuple(steps)

    def _resolve(self, planner: Planner, verb: str, what: Sequence[str | int], options: Request) -> Request:
        """Every name in a request, resolved."""
        history = planner.history
        if verb in ("undo", "redo"):
            n = _count(what[0] if what else 1)
            return planner.undo(n, options.actors, options) if verb == "undo" else planner.redo(n, options)
        if verb == "rollback":
            return self._resolve_rollback(history, str(what[0]) if what else "", options)
        if verb == "revert":
            return self._resolve_revert(history, [str(w) for w in what], options)
        if verb == "restore":
            if len(what) < 2:
                raise UsageError("restore needs a checkpoint and at least one path", "takeback restore CHECKPOINT PATH…")
            checkpoint = self.find_checkpoint(str(what[0]), history)
            paths = tuple(self.relative(str(p)) for p in what[1:])
            return replace(options, checkpoint=checkpoint.id, since=checkpoint.seq, label=_called(checkpoint), paths=paths)
        raise UsageError(f"{verb} cannot be planned", "plan one of: undo, redo, rollback, revert, restore")

    def _resolve_rollback(self, history: History, name: str, options: Request) -> Request:
        if not name:
            newest = history.newest_named()
            if newest is None:
                raise NotFound("there is no checkpoint to go back to", "take one with takeback checkpoint")
            return replace(options, since=newest.seq, label=_called(newest))
        found = names.resolve(history, name)
        if found.seq < history.horizon:
            raise NotFound(
                f"{name} lies before the prune horizon: what changed since then is gone",
                f"bring single files back from it with takeback restore {found.id[:8]} PATH…",
            )
        if found.kind == "checkpoint":
            label = _called(next(c for c in history.checkpoints if c.id == found.id))
        else:
            label = f"just before {found.id[:8]}"
        return replace(options, since=found.seq, label=label)

    def _resolve_revert(self, history: History, what: list[str], options: Request) -> Request:
        """Ids, or paths where no id is called so."""
        if not what:
            raise UsageError("revert needs an id or a path", "see takeback log, then takeback revert ID|PATH…")
        ids, paths = [], []
        for word in what:
            try:
                found = names.resolve(history, word)
                if _names_path(history, word) and found.kind != "checkpoint":
                    raise UsageError(f"{word!r} is both a {found.kind} and a path that changed", f"write ./{word} for the path, or more letters of the id")
                if not _names_path(history, word):
                    ids.append(found.id)
                    continue
                raise NotFound(f"{word} is a path")
            except NotFound as unknown:
                path = self.relative(word)
                below = [p for p in history.all_paths() if p == path or not path or p.startswith(path + b"/")]
                if not below:
                    if "pruned" in unknown.message:
                        raise
                    raise NotFound(f"nothing recorded is called {word!r}, and no such path has changed", "see takeback log") from None
                paths += below
        if ids and paths:
            raise UsageError("ids and paths cannot be reverted in one go", "revert them one after the other")
        if ids:
            return revert_request(history, ids, options)
        return replace(options, paths=tuple(sorted(set(paths))))

    def find_checkpoint(self, name: str, history: History | None = None) -> Checkpoint:
        history = history or self.history()
        found = names.resolve(history, name)
        for checkpoint in history.checkpoints:
            if checkpoint.id == found.id:
                return checkpoint
        raise UsageError(f"{name!r} is no checkpoint but a {found.kind}", "name a checkpoint: takeback log kind:checkpoint")

    def _goals(self, request: Request) -> dict[bytes, State]:
        """What a checkpoint has at the named paths and below them. What it lacks is never deleted."""
        checkpoint = self.find_checkpoint(request.checkpoint)
        goals: dict[bytes, State] = {}
        load = self.store.blobs.get
        for path in request.paths:
            state, subtree = trees.lookup(load, checkpoint.snapshot, path)
            if state is None or state.kind == UNSEEN:
                why = "was not covered" if state is not None else "is not"
                raise NotFound(f"{text(path)} {why} in {_called(checkpoint)}", f"see what it holds with takeback show {checkpoint.id[:8]}")
            if path:
                goals[path] = state
            if subtree is not None:
                goals.update({trees.join(path, p): e for p, e in trees.entries(load, checkpoint.snapshot._replace(identity=subtree.identity, stored=subtree.stored))})
            for depth in range(1, path.count(b"/") + 1):  # folders above it that are gone by now
                above = b"/".join(path.split(b"/")[:depth])
                if above not in goals:
                    found, _ = trees.lookup(load, checkpoint.snapshot, above)
                    if found is not None and self._known().state(above) is None:
                        goals[above] = found
        return goals

    # -- taking back ---------------------------------------------------------

    def apply(self, plan: Plan | str) -> Outcome:
        """Carries out exactly this plan, or refuses it as stale."""
        self._must_be_on()
        with self._applying():
            if (earlier := self._finish_interrupted()) is not None:
                return earlier
            with self._writing(), self._tree() as tree:
                wanted = self._saved(plan) if isinstance(plan, str) else (plan.request, plan.hash, plan)
                request, hash, seen = wanted
                fresh, merger = self._plan_fresh(tree, lambda _: request)
                if fresh.hash != hash:
                    raise _stale(seen, fresh)
                return self._run(tree, fresh, merger)

    def _saved(self, name: str) -> tuple[Request, str, Plan | list[Any]]:
        history = self.history()
        found = names.resolve(history, name, plans=True)
        body = history.plans[found.id]
        return Request.from_json(body["request"]), body["hash"], body["steps"]

    def take_back(
        self,
        verb: str,
        *what: str | int,
        actors: Iterable[str] | None = None,
        everything: bool = False,
        merge: bool = False,
        markers: bool = False,
        force: bool = False,
    ) -> Outcome:
        """Any verb that can be planned, planned and applied in one go."""
        options = replace(_options(verb, actors, everything, merge or markers, force), markers=markers)
        return self._take_back(verb, what, options)

    def _take_back(self, verb: str, what: Sequence[str | int], options: Request) -> Outcome:
        """Plans and applies in one go, with nobody in between."""
        self._must_be_on()
        with self._applying():
            if (earlier := self._finish_interrupted()) is not None:
                return earlier
            with self._writing(), self._tree() as tree:
                plan, merger = self._plan_fresh(tree, lambda planner: self._resolve(planner, verb, what, options))
                return self._run(tree, plan, merger)

    def _run(self, tree: OpenFolder, plan: Plan, merger: Merger) -> Outcome:
        left = tuple(sorted({u.path for u in plan.left}))
        asked = plan.request.turns or plan.request.takebacks
        if not plan.taken and not (asked and plan.request.verb in ("undo", "redo")):
            return Outcome(plan, "", tuple(kept_results(plan)), left)
        for data in merger.made.values():
            self.store.blobs.put(data)
        files = Files(tree, self.store.blobs, self.progress, self.store.folder is not None)
        index = self._known()
        done = self._executor(files).run(plan, _states(index), plan.request.label)
        self._advance(index, done, files)
        number = self.store.journal.count(("checkpoint", "change", "takeback"), done.seq)
        return Outcome(plan, done.id, (*done.results, *kept_results(plan)), left, number)

    def _executor(self, files: Files) -> Executor:
        return Executor(self.store.journal, self.store.blobs, {"files": files}, self.clock)

    def _advance(self, index: Index, done: Done, files: Files) -> None:
        """The known tree after a take-back; what was written last is read again, since its key is too young."""
        index.apply(done.changes)
        index.seq = done.seq
        self._save_index(index)

    def undo(self, n: int = 1, *, actors: Iterable[str] | None = None, everything: bool = False, merge: bool = False, force: bool = False) -> Outcome:
        """Takes back the newest turn, or the newest n as one."""
        return self._take_back("undo", (n,), _options("undo", actors, everything, merge, force))

    def redo(self, n: int = 1, *, merge: bool = False, force: bool = False) -> Outcome:
        """Brings back what the newest standing undo, rollback, revert or restore took."""
        return self._take_back("redo", (n,), _options("redo", None, False, merge, force))

    def rollback(self, to: str = "", *, actors: Iterable[str] | None = None, everything: bool = False, merge: bool = False, force: bool = False) -> Outcome:
        """Back to a checkpoint (the newest named one), or to just before an effect."""
        return self._take_back("rollback", (to,) if to else (), _options("rollback", actors, everything, merge, force))

    def revert(self, *what: str, merge: bool = False, force: bool = False) -> Outcome:
        """Takes back one effect, or the latest change to a path, and keeps the rest."""
        return self._take_back("revert", what, _options("revert", None, False, merge, force))

    def restore(self, checkpoint: str, *paths: str, to: str | os.PathLike[str] | None = None, force: bool = False) -> Outcome:
        """Brings single files or folders back from any checkpoint, in place or into another folder."""
        if to is None:
            return self._take_back("restore", (checkpoint, *paths), _options("restore", None, False, False, force))
        with self._alone():
            return self._export(checkpoint, paths, Path(to), force)

    def _export(self, name: str, paths: Sequence[str], to: Path, force: bool) -> Outcome:
        checkpoint = self.find_checkpoint(name)
        request = Request("restore", checkpoint=checkpoint.id, label=_called(checkpoint), paths=tuple(self.relative(p) for p in paths))
        if not request.paths:
            request = replace(request, paths=(b"",))
        goals: dict[bytes, Entry] = {}
        load = self.store.blobs.get
        for path in request.paths:
            state, subtree = trees.lookup(load, checkpoint.snapshot, path)
            if state is None or state.kind == UNSEEN:
                raise NotFound(f"{text(path)} is not in {_called(checkpoint)}", f"see what it holds with takeback show {checkpoint.id[:8]}")
            for depth in range(1, path.count(b"/") + 1):
                above = b"/".join(path.split(b"/")[:depth])
                found, _ = trees.lookup(load, checkpoint.snapshot, above)
                if found is not None:
                    goals[above] = found
            if path:
                goals[path] = state
            if subtree is not None:
                goals.update((trees.join(path, p), e) for p, e in trees.entries(load, checkpoint.snapshot._replace(identity=subtree.identity, stored=subtree.stored)))
        try:
            to.mkdir(parents=True, exist_ok=True)
            folder = open_root(str(to), self.settings.portable)
        except OSError as error:
            raise TakebackError(f"{to} cannot be used ({error.strerror})", "name a folder that can be made or written") from error
        with folder:
            results = export(folder, self.store.blobs, sorted(goals.items()), force)
        return Outcome(Plan(self.id, request, ()), "", tuple(results))

    # -- after an interruption -----------------------------------------------

    def interrupted(self) -> str:
        """What was interrupted, as a sentence; empty if nothing was."""
        found = self._open_intents()
        return "" if found is None else f"a {found[0]} was interrupted"

    def _open_intents(self) -> tuple[str, tuple[bytes, ...]] | None:
        """The verb of an interrupted take-back, and how its temporary files are named. Only the newest can be one."""
        journal = self.store.journal
        with self._alone():
            newest = journal.last("takeback")
            if newest is None or newest.body is None:
                return None
            ended, begun = 0, []
            for row in journal.rows(newest.seq, ("intent", "outcome")):
                if row.kind == "intent":
                    begun.append(temporary_prefix(row.id))
                else:
                    ended += 1
                    if row.body and row.body.get("aborted"):
                        return None
            if ended == len(newest.body["segments"]):
                return None
            return newest.body["request"]["verb"], tuple(begun)

    def _must_not_be_interrupted(self) -> None:
        if what := self.interrupted():
            raise TakebackError(f"{what}, and the tree may be in between", "finish it with takeback resume, or go back with takeback resume --abort")

    def _finish_interrupted(self, abort: bool = False) -> Outcome | None:
        with self._writing():
            found = self.history().interrupted
            if found is None:
                return None
            takeback, segments = found
            with self._tree() as tree:
                files = Files(tree, self.store.blobs, self.progress, self.store.folder is not None)
                index = self._known()
                done = self._executor(files).finish(takeback, segments, abort, index.state)
                self._advance(index, done, files)
        plan = Plan(self.id, takeback.request, ())
        return Outcome(plan, done.id, tuple(done.results), finished_earlier=True)

    def resume(self, abort: bool = False) -> Outcome | None:
        """Finishes an interrupted take-back, or goes back from it; None if there is none."""
        self._must_be_on()
        with self._applying():
            return self._finish_interrupted(abort)

    # -- seeing --------------------------------------------------------------

    def status(self) -> views.Status:
        """What changed since the newest named checkpoint, by whom, and what is not covered. Journals nothing."""
        with self._alone():
            return views.status(self)

    def diff(self, a: str = "", b: str = "", paths: Iterable[str] = ()) -> views.Diff:
        """Checkpoint A (the newest named one) to now, or to checkpoint B. Journals nothing."""
        with self._alone():
            return views.diff(self, a, b, [self.relative(p) for p in paths])

    def log(self, filter: str = "") -> list[views.LogRow]:
        """Checkpoints, effects and take-backs, newest first."""
        with self._alone():
            return views.log(self, filter)

    def show(self, name: str) -> views.Shown:
        with self._alone():
            return views.show(self, name)

    # -- care ----------------------------------------------------------------

    def pin(self, name: str, keep: bool = True) -> Checkpoint:
        """Keeps a checkpoint for ever, or no longer."""
        self._must_be_on()
        with self._writing():
            checkpoint = self.find_checkpoint(name)
            self.store.journal.append([New("note", new_id(), {"what": "pin" if keep else "unpin", "id": checkpoint.id})], self.clock())
            return replace(checkpoint, pinned=keep)

    def confirm_rules(self) -> str:
        """A person accepts that the project's own rules take paths out of cover."""
        self._must_be_on()
        with self._writing(), self._tree() as tree:
            fingerprint = self.rules(tree).project_fingerprint
            self.store.journal.append([New("approval", new_id(), {"rules": fingerprint})], self.clock())
            return fingerprint

    def prune(self, **asked: Any) -> prune.Pruned:
        self._must_be_on()
        with self._applying(), self._writing():
            return prune.prune(self, prune.Asked(**asked))

    def verify(self, data: bool = False) -> verify.Verified:
        with self._alone():
            return verify.verify(self, data)

    def repair(self) -> verify.Repaired:
        self._must_be_on()
        with self._applying(), self._writing():
            return verify.repair(self)

    # -- async twins ---------------------------------------------------------

    async def acheckpoint(self, label: str = "", *, actor: str = "") -> Checkpoint:
        return await _in_thread(lambda: self.checkpoint(label, actor=actor))

    async def astatus(self) -> views.Status:
        return await _in_thread(self.status)

    async def adiff(self, a: str = "", b: str = "", paths: Iterable[str] = ()) -> views.Diff:
        return await _in_thread(lambda: self.diff(a, b, paths))

    async def alog(self, filter: str = "") -> list[views.LogRow]:
        return await _in_thread(lambda: self.log(filter))

    async def aplan(self, verb: str, *what: str | int, **options: Any) -> Plan:
        return await _in_thread(lambda: self.plan(verb, *what, **options))

    async def aapply(self, plan: Plan | str) -> Outcome:
        return await _in_thread(lambda: self.apply(plan))

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
def open_workspace(root: Path, settings: Settings, create: bool = False, memory: bool = False) -> Workspace:
    """Opens the workspace of exactly this root; with `create` it is made and its first checkpoint taken if needed."""
    real = Path(os.path.realpath(root))
    if not real.is_dir():
        raise UsageError(f"{root} is not a folder", "name the folder to protect")
    if memory:
        workspace = Workspace(real, store.open_memory(), settings, 0)
        workspace.checkpoint("start")
        return workspace
    if not store.is_workspace(settings.home, real):
        if not create:
            raise NoWorkspace(f"{real} is not protected", f"protect it with takeback init -C {real}")
        if not settings.enabled:
            raise Off(f"takeback is off (source: {settings.off_source})", "turn it on with TAKEBACK=on, or change that setting")
        store.create(settings.home, real, real.stat().st_ino)
    opened, meta = store.open_store(settings.home, real, settings.portable)
    workspace = Workspace(real, opened, settings, meta["inode"])
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


def _children(index: Index) -> Callable[[bytes], list[bytes]]:
    """The paths in a folder as last observed, those not covered among them."""

    def children(path: bytes) -> list[bytes]:
        folder = index.folder(path)
        if folder is None:
            return []
        return [trees.join(path, name) for name in (*folder.names, *(g.name for g in folder.gaps))]

    return children


def _states(index: Index) -> Callable[[bytes], State]:
    """Known states, with each folder decoded once."""
    folders: dict[bytes, dict[bytes, Entry]] = {}
    elsewhere: dict[bytes, State] = {}  # what any name is in a folder that is not there

    def state(path: bytes) -> State:
        parent, _, name = path.rpartition(b"/")
        if parent in elsewhere:
            return elsewhere[parent]
        if parent not in folders:
            folder = index.folder(parent)
            if folder is None:
                return elsewhere.setdefault(parent, index.state(path))
            folders[parent] = dict(zip(folder.names, folder.entries))
        found = folders[parent].get(name) if path else None
        return found if found is not None else index.state(path)

    return state


def _unreadable(look: Look, plan: Plan, history: History) -> Iterator[Step]:
    """What cannot be read now and could be at the target: nobody knows whether it goes back, so it is kept and named."""
    target = next((c for c in reversed(history.checkpoints) if c.seq <= plan.request.since), None)
    known = {raw(path) for path, _ in target.partial} if target else set()
    known |= {s.path for s in plan.steps}
    for path, why in look.lacking:
        if path not in known:
            yield Step("files", path, UNOBSERVED, UNOBSERVED, UNCOVERED, frozenset(), -1, note=why)


def _options(verb: str, actors: Iterable[str] | None, everything: bool, merge: bool, force: bool) -> Request:
    return Request(verb, actors=None if actors is None else tuple(sorted(set(actors))), everything=everything, merge=merge, force=force)


def _names_path(history: History, word: str) -> bool:
    """Whether a word that could be an id is also a path that changed."""
    return raw(word) in history.all_paths()


def _counts_not(change: Change) -> bool:
    return same(change.before, change.after) or (change.before is not None and change.before.kind == UNSEEN)


def _called(checkpoint: Checkpoint) -> str:
    return f'{checkpoint.id[:8]} "{checkpoint.label}"' if checkpoint.label else checkpoint.id[:8]


def _count(value: str | int) -> int:
    try:
        n = int(value)
    except ValueError:
        n = 0
    if n < 1:
        raise UsageError(f"{value!r} is no number of steps", "give a whole number from 1 up")
    return n


def _brief(state: State) -> str:
    if state is None:
        return "absent"
    if state.kind == FOLDER:
        return f"folder {state.mode:o}"
    return f"{state.content.hex()[:12]} {state.mode:o}"


def _stale(seen: Plan | list[Any], fresh: Plan) -> Stale:
    def brief(plan: Plan) -> dict[str, str]:
        return {
            text(s.path): f"{s.verdict}: {_brief(s.expected)} → {_brief(s.goal)}" if s.taken else s.verdict for s in plan.steps
        }

    now = brief(fresh)
    if isinstance(seen, Plan):
        then = brief(seen)
    else:
        then = {p: f"{verdict}: {was} → {goal}" if was or goal else verdict for p, verdict, _, was, goal in seen}
    differing = tuple((p, then.get(p, "not in the plan"), now.get(p, "no longer in the plan")) for p in sorted({*then, *now}) if then.get(p) != now.get(p))
    return Stale("the plan is stale: the same request would do something else by now; nothing was changed", "look at it again: takeback plan", differing)
