"""The project's git repository: HEAD, refs, index, stash and a merge under way, brought from the expected to the goal.

    refs that are set ─► HEAD ─► refs that go ─► stash ─► merge files ─► index       then all of it is read again

Refs and HEAD are moved by git itself, with old values, so that its locks and its reflog are kept; the stash's log and
the index are written here, under git's own lock files. No hook, filter or pager of the project runs, no object is
ever deleted, and the network is not used.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence

from takeback.model.effects import DONE, FAILED, KEPT, Entry, Result, State, Step, same, text
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import components

from . import index_file
from .index_file import Item
from .judge import COLLECTED
from .repository import GONE, HEAD, INDEX, PARTS, REFS, STASH, Repository, Stashed, Unusable, entry, part_of

_SECONDS = 60.0  # that one git may take
_LARGEST = 32 << 20  # bytes of a file that is read to tell git that it is unchanged
_ALL_OF_THEM = 512 << 20
_CHANGED = "changed since"


class Busy(Exception):
    """Another git holds the lock, or git refused: why."""


class Git:
    name = "git"
    joins = True

    def __init__(
        self, tree: OpenFolder, root: str, read: Callable[[bytes], bytes], environ: Mapping[str, str], verb: str = ""
    ) -> None:
        self.tree = tree
        self.root = root
        self.read = read  # a blob's bytes
        self.environ = environ
        self.message = f"takeback: {verb or 'take back'}"

    def present(self, path: bytes) -> State:
        with self._opened() as repository:
            part = repository.part(part_of(path))
            if part.why_not:
                raise OSError(part.why_not)
            return _state(repository, part.states or {}, path)

    def commits(self, old: str, new: str) -> int:
        """How many commits the one has that the other lacks; 0 where git cannot say."""
        try:
            with self._opened() as repository:
                return int(_Run(self, repository, "").git(["rev-list", "--count", f"{old}..{new}", "--"]))
        except (OSError, Busy, ValueError):
            return 0

    def lost(self, goals: Mapping[bytes, bytes]) -> frozenset[bytes]:
        """Of paths and the values they should have, those that name an object which git no longer has."""
        try:
            with self._opened() as repository:
                return frozenset(_Run(self, repository, "").missing(goals))
        except OSError:
            return frozenset()

    def sweep(self, steps: Sequence[Step], key: str) -> None:
        """Locks that a killed run left: ours are known by a second name."""
        try:
            repository = self._opened()
        except OSError:
            return
        with repository:
            for name in (_beside(key), _beside(key + "-a")):
                for folder, locked in ((repository.own, [b"index"]), (repository.common, [b"refs", b"stash"])):
                    _sweep(folder, locked, name)

    def apply(
        self, steps: Sequence[Step], key: str, times: Mapping[bytes, Entry], again: bool = False
    ) -> Iterable[Result]:
        if not steps:
            return []
        try:
            repository = self._opened()
        except OSError as error:
            return [Result(s.path, s.verdict, FAILED, str(error)) for s in steps]
        with repository:
            return _Run(self, repository, key).bring(steps)

    def _opened(self) -> Repository:
        try:
            found = Repository.at(self.tree, self.root)
        except Unusable as error:
            raise OSError(str(error)) from error
        if found is None:
            raise OSError(GONE)
        return found


class _Run:
    """One set of steps, in one repository."""

    def __init__(self, domain: Git, repository: Repository, key: str) -> None:
        self.domain = domain
        self.repository = repository
        self.beside = _beside(key)
        self.notes: dict[bytes, str] = {}  # why a path was not brought to its goal

    def bring(self, steps: Sequence[Step]) -> list[Result]:
        states, unread = self._read({part_of(s.path) for s in steps} | {"head"})
        results: dict[bytes, Result] = {}
        todo: list[Step] = []
        for step in steps:
            now = _state(self.repository, states, step.path)
            if why := unread.get(part_of(step.path)):
                results[step.path] = Result(step.path, step.verdict, FAILED, why)
            elif same(now, step.goal):
                results[step.path] = Result(step.path, step.verdict, DONE)
            elif not same(now, step.expected):
                results[step.path] = Result(step.path, step.verdict, KEPT, _CHANGED)
            else:
                todo.append(step)
        goals = {s.path: self._goal(s) for s in todo}
        gone = self.missing(goals)
        for step in [s for s in todo if s.path in gone]:
            note = f"{COLLECTED}: git has no {gone[step.path]}"
            results[step.path] = Result(step.path, step.verdict, KEPT, note)
        todo = [s for s in todo if s.path not in gone]
        self._refs_and_head(todo, goals)
        self._stash([s for s in todo if s.path.startswith(STASH)], goals)
        self._files([s for s in todo if part_of(s.path) == "merging"], goals)
        self._index([s for s in todo if s.path.startswith(INDEX)], goals)
        states, unread = self._read({part_of(s.path) for s in todo})
        for step in todo:  # what git or we said counts less than what is there
            if same(_state(self.repository, states, step.path), step.goal):
                results[step.path] = Result(step.path, step.verdict, DONE)
            else:
                why = self.notes.get(step.path) or unread.get(part_of(step.path)) or "it did not take"
                results[step.path] = Result(step.path, step.verdict, KEPT if why == _CHANGED else FAILED, why)
        return [results[s.path] for s in steps]

    def _read(self, parts: Iterable[str]) -> tuple[dict[bytes, bytes], dict[str, str]]:
        states: dict[bytes, bytes] = {}
        unread: dict[str, str] = {}
        for name in PARTS:
            if name in parts:
                part = self.repository.part(name)
                unread |= {name: part.why_not} if part.why_not else {}
                found = part.states or {}
                states |= {INDEX + p: s for p, s in found.items()} if name == "index" else found
        return states, unread

    def _goal(self, step: Step) -> bytes | None:
        return None if step.goal is None else self.domain.read(step.goal.content)

    # -- objects -----------------------------------------------------------------

    def missing(self, goals: Mapping[bytes, bytes | None] | Mapping[bytes, bytes]) -> dict[bytes, str]:
        """Paths whose goal names an object that the repository lacks."""
        wanted: dict[bytes, list[str]] = {}
        for path, value in goals.items():
            if value is not None:
                wanted[path] = _objects(path, value)
        names = sorted({name for found in wanted.values() for name in found})
        if not names:
            return {}
        try:
            told = self.git(["cat-file", "--batch-check"], "\n".join(names).encode() + b"\n")
        except Busy:
            return {}  # whoever needs the object will say so
        lost = {line.split()[0].decode() for line in told.splitlines() if line.endswith(b" missing")}
        return {p: next(n for n in found if n in lost)[:12] for p, found in wanted.items() if lost & set(found)}

    # -- refs and HEAD -----------------------------------------------------------

    def _refs_and_head(self, todo: Sequence[Step], goals: Mapping[bytes, bytes | None]) -> None:
        refs = [s for s in todo if s.path.startswith(REFS)]
        going = [s for s in refs if s.goal is None]
        coming = [s for s in refs if s.goal is not None]
        waits = [s for s in coming if any(_clash(s.path, other.path) for other in going)]
        self._move([s for s in coming if s not in waits], goals)
        head = next((s for s in todo if s.path == HEAD), None)
        if head is not None:
            self._head(head, goals[HEAD])
            if HEAD in self.notes:  # the branch that HEAD is on is never deleted from under it
                on = self._value(HEAD)
                for step in [s for s in going if on == b"ref: " + s.path.removeprefix(b".git/")]:
                    self.notes[step.path] = "HEAD is still on it"
                    going.remove(step)
        self._move(going, goals)
        self._move(waits, goals)

    def _move(self, steps: Sequence[Step], goals: Mapping[bytes, bytes | None]) -> None:
        """In one transaction; where that fails, one by one, so that one that is refused holds up no other."""
        if not steps:
            return
        plain = [s for s in steps if not self._is_symbolic(s, goals)]
        try:
            self._transaction(plain, goals)
        except Busy:
            for step in plain:
                try:
                    self._transaction([step], goals)
                except Busy as error:
                    self.notes[step.path] = str(error)
        for step in [s for s in steps if s not in plain]:
            value, name = goals[step.path], step.path.removeprefix(b".git/")
            try:
                if value is not None and value.startswith(b"ref: "):
                    self.git(["symbolic-ref", "-m", self.domain.message, os.fsdecode(name), os.fsdecode(value[5:])])
                else:
                    self.git(["symbolic-ref", "-d", os.fsdecode(name)])
                    self._transaction([step._replace(expected=None)] if value is not None else [], goals)
            except Busy as error:
                self.notes[step.path] = str(error)

    def _is_symbolic(self, step: Step, goals: Mapping[bytes, bytes | None]) -> bool:
        was = self._expected(step)
        return (goals[step.path] or b"").startswith(b"ref: ") or (was or b"").startswith(b"ref: ")

    def _expected(self, step: Step) -> bytes | None:
        return None if step.expected is None else self.domain.read(step.expected.content)

    def _transaction(self, steps: Sequence[Step], goals: Mapping[bytes, bytes | None]) -> None:
        if not steps:
            return
        nothing = b"0" * (2 * self.repository.width)
        lines = []
        for step in steps:
            name, goal = step.path.removeprefix(b".git/"), goals[step.path]
            old = self._expected(step) or nothing
            if goal is None:
                lines.append(b"delete %b\0%b\0" % (name, old))
            else:
                lines.append(b"update %b\0%b\0%b\0" % (name, goal, old))
        self.git(["update-ref", "-m", self.domain.message, "-z", "--no-deref", "--stdin"], b"".join(lines))

    def _head(self, step: Step, goal: bytes | None) -> None:
        if goal is None:
            self.notes[HEAD] = "a repository without HEAD is none"
            return
        if self._value(HEAD) != self._expected(step):  # git moves it from whatever it is: somebody may have just now
            self.notes[HEAD] = _CHANGED
            return
        try:
            if goal.startswith(b"ref: "):
                self.git(["symbolic-ref", "-m", self.domain.message, "HEAD", os.fsdecode(goal[5:])])
            else:
                self.git(["update-ref", "-m", self.domain.message, "--no-deref", "HEAD", os.fsdecode(goal)])
        except Busy as error:
            self.notes[HEAD] = str(error)

    def _value(self, path: bytes) -> bytes | None:
        return (self.repository.part(part_of(path)).states or {}).get(path)

    # -- stash ---------------------------------------------------------------------

    def _stash(self, steps: Sequence[Step], goals: Mapping[bytes, bytes | None]) -> None:
        """The log of the stash is its stack: what comes back stands where it stood."""
        if not steps:
            return
        moved = {s.path for s in steps}
        try:
            self._make_folders(b"logs", b"refs")
            with self.repository.common.descend([b"refs"]) as refs, _Lock(refs, b"stash", self.beside) as lock:
                stashed = self.repository.stash()
                stack = [s for s in stashed if STASH + s.object not in moved]
                for step in sorted(steps, key=lambda s: s.goal.mtime_ns if s.goal is not None else 0):
                    value = goals[step.path]
                    if value is not None and step.goal is not None:
                        who, _, message = value.partition(b"\t")
                        _put_back(stack, Stashed(step.path.removeprefix(STASH), who, message), step.goal.mtime_ns)
                if stack:
                    with self.repository.common.descend([b"logs", b"refs"]) as logs:
                        _write(logs, b"stash", _log(stack, self.repository.width), self.beside)
                    lock.commit(stack[-1].object + b"\n", 0o644)
                    return
            if stashed:  # packed or not, and its log with it; not if somebody has stashed more since
                self.git(["update-ref", "-d", "refs/stash", os.fsdecode(stashed[-1].object)])
        except (Busy, OSError) as error:
            self.notes |= {s.path: _why(error) for s in steps}

    def _make_folders(self, *names: bytes) -> None:
        for depth, name in enumerate(names):
            with self.repository.common.descend(list(names[:depth])) as here:
                try:
                    here.stat(name)
                except FileNotFoundError:
                    here.mkdir(name)

    # -- a merge under way -----------------------------------------------------------

    def _files(self, steps: Sequence[Step], goals: Mapping[bytes, bytes | None]) -> None:
        for step in steps:
            name, value = step.path.removeprefix(b".git/"), goals[step.path]
            if self._value(step.path) != self._expected(step):
                self.notes[step.path] = _CHANGED
                continue
            try:
                if value is None:
                    self.repository.own.unlink(name)
                else:
                    _write(self.repository.own, name, value, self.beside)
            except OSError as error:
                self.notes[step.path] = _why(error)

    # -- index -------------------------------------------------------------------------

    def _index(self, steps: Sequence[Step], goals: Mapping[bytes, bytes | None]) -> None:
        if not steps:
            return
        own, width = self.repository.own, self.repository.width
        try:
            with _Lock(own, b"index", self.beside) as lock:
                mode, young = self._index_file()
                parsed, _ = self.repository.index_in_full()
                for step in steps:  # once more, now that nobody else can write
                    name = step.path[len(INDEX) :]
                    now = _state(
                        self.repository, {step.path: parsed.states[name]} if name in parsed.states else {}, step.path
                    )
                    if not same(now, step.expected):
                        raise Busy("another git changed the index in that moment")
                moved = {s.path[len(INDEX) :] for s in steps}
                items = [_unless_racy(item, young) for item in parsed.items if item.name not in moved]
                room = _ALL_OF_THEM
                for step in steps:
                    name, value = step.path[len(INDEX) :], goals[step.path]
                    for one in index_file.split(index_file.state_of(value), width) if value is not None else ():
                        known, size = self._stat_data(name, one, room)
                        room -= size
                        items.append(Item(name, one, known))
                lock.commit(index_file.pack(items, parsed.extensions, width, parsed.version), mode)
        except (Busy, OSError, ValueError) as error:
            self.notes |= {s.path: _why(error) for s in steps}

    def _index_file(self) -> tuple[int, int]:
        """The mode of the index, and the second it was written in."""
        try:
            st = self.repository.own.stat(b"index")
        except FileNotFoundError:
            return 0o644, 0
        return stat.S_IMODE(st.st_mode), int(st.st_mtime)

    def _stat_data(self, name: bytes, state: bytes, room: int) -> tuple[bytes, int]:
        """What git would remember of a file that is as staged, so that it need not read it again; else nothing."""
        nothing = bytes(40), 0
        kind = int.from_bytes(state[:4], "big")
        if state[-1] & 3 or kind not in (0o100644, 0o100755, 0o120000):
            return nothing
        *above, last = components(name)
        try:
            with self.domain.tree.descend(above) as here:
                st = here.stat(last)
                is_link = stat.S_ISLNK(st.st_mode)
                if is_link != (kind == 0o120000) or st.st_size > min(_LARGEST, room):
                    return nothing
                data = here.readlink(last) if is_link else _bytes_of(here, last, st.st_size)
        except OSError:
            return nothing
        if index_file.object_name(self.repository.width, b"blob", data) != state[4:-1]:
            return nothing
        if not is_link and bool(st.st_mode & 0o100) != (kind == 0o100755):
            return nothing
        c, m = divmod(st.st_ctime_ns, 10**9), divmod(st.st_mtime_ns, 10**9)
        fields = (*c, *m, st.st_dev, st.st_ino, kind, st.st_uid, st.st_gid, st.st_size)
        return struct.pack(">10I", *(field & 0xFFFFFFFF for field in fields)), st.st_size

    # -- git ---------------------------------------------------------------------------

    def git(self, args: Sequence[str], told: bytes = b"") -> bytes:
        """Runs git on this repository and nothing else: no hook, no pager, nothing of the caller's own git settings in
        the environment."""
        environ = self.domain.environ
        program = shutil.which("git", path=environ.get("PATH"))
        if program is None:
            raise Busy("the program git is not found")
        clean = {k: v for k, v in environ.items() if not k.startswith("GIT_")}
        clean |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        settings = ("core.hooksPath=" + os.devnull, "core.fsmonitor=false", "protocol.allow=never", "gc.auto=0")
        chosen = [word for setting in (*settings, "core.fsync=reference") for word in ("-c", setting)]
        command = [program, "--no-pager", f"--git-dir={self.repository.path}", *chosen, *args]
        try:
            done = subprocess.run(
                command, input=told, capture_output=True, env=clean, cwd=self.domain.root, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Busy(f"git could not be run ({error})") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Busy(f"git: {said[0].removeprefix('fatal: ')}" if said else f"git ended with {done.returncode}")
        return done.stdout


class _Lock:
    """One of git's own lock files. It has a second name while it is ours, by which a killed run's is told from
    another git's."""

    def __init__(self, folder: OpenFolder, name: bytes, beside: bytes) -> None:
        self.folder = folder
        self.name = name
        self.lock = name + b".lock"
        self.beside = beside
        self._is_held = False

    def __enter__(self) -> _Lock:
        self._fd = self.folder.create(self.beside)
        try:
            self._hold()
        except FileExistsError as error:
            self._drop()
            raise Busy(f"another git holds {text(self.lock)}") from error
        except OSError:
            self._drop()
            raise
        self._is_held = True
        return self

    def _hold(self) -> None:
        try:
            self.folder.link(self.folder, self.beside, self.lock)  # type: ignore[arg-type]
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: there the lock has one name
            fd = self.folder.create(self.lock)
            os.close(self._fd)
            self._fd = fd

    def commit(self, data: bytes, mode: int) -> None:
        with open(self._fd, "wb", closefd=False) as file:
            file.write(data)
        _settle(self._fd, mode)
        self.folder.replace(self.lock, self.name)
        self._is_held = False

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            self.folder.unlink(self.lock)
        self._drop()

    def _drop(self) -> None:
        os.close(self._fd)
        self.folder.unlink(self.beside)


def _settle(fd: int, mode: int) -> None:
    os.fsync(fd)
    if hasattr(os, "fchmod"):  # Windows has no modes
        os.fchmod(fd, mode)


def _beside(key: str) -> bytes:
    return b"takeback-" + key.encode()


def _sweep(folder: OpenFolder, locked: list[bytes], beside: bytes) -> None:
    *above, name = locked
    try:
        with folder.descend(above) as here:
            ours = here.stat(beside)
            try:
                lock = here.stat(name + b".lock")
                if (lock.st_dev, lock.st_ino) == (ours.st_dev, ours.st_ino):
                    here.unlink(name + b".lock")
            except FileNotFoundError:
                pass
            here.unlink(beside)
    except OSError:
        return


def _write(folder: OpenFolder, name: bytes, data: bytes, beside: bytes) -> None:
    fd = folder.create(beside)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            _settle(fd, 0o644)
        folder.replace(beside, name)
    except OSError:
        folder.unlink(beside)
        raise


def _log(stack: Sequence[Stashed], width: int) -> bytes:
    """A reflog: each entry with the object before it."""
    lines, before = [], b"0" * (2 * width)
    for stashed in stack:
        lines.append(b"%b %b %b\t%b\n" % (before, stashed.object, stashed.who, stashed.message))
        before = stashed.object
    return b"".join(lines)


def _put_back(stack: list[Stashed], stashed: Stashed, place: int) -> None:
    """Among those of its second where it stood, and else by time."""
    older = max((at + 1 for at, s in enumerate(stack) if s.at < stashed.at), default=0)
    newer = min((at for at, s in enumerate(stack) if s.at > stashed.at), default=len(stack))
    stack.insert(max(older, min(place, newer)), stashed)


def _state(repository: Repository, states: Mapping[bytes, bytes], path: bytes) -> State:
    value = states.get(path)
    if value is None and path.startswith(INDEX):
        value = states.get(path[len(INDEX) :])
    if value is None:
        return None
    return entry(index_file.text_of(value, repository.width) if path.startswith(INDEX) else value)


def _objects(path: bytes, value: bytes) -> list[str]:
    """The objects that a value names."""
    if path.startswith(STASH):
        return [path.removeprefix(STASH).decode("ascii", "replace")]
    if path.startswith(INDEX):
        lines = [line.split(" ") for line in value.decode("ascii", "replace").splitlines()]
        return [line[1] for line in lines if line[0] != "160000" and "intent-to-add" not in line]
    if part_of(path) == "merging" or value.startswith(b"ref: "):
        return []
    return [value.decode("ascii", "replace")]


def _clash(one: bytes, other: bytes) -> bool:
    """Whether a ref cannot be there while the other is: one is a folder of the other."""
    return one.startswith(other + b"/") or other.startswith(one + b"/")


def _unless_racy(item: Item, young: int) -> Item:
    """An entry that is as young as the index may be stale without showing it: git has to read that file again."""
    return item._replace(stat=bytes(40)) if int.from_bytes(item.stat[8:12], "big") >= young else item


def _bytes_of(folder: OpenFolder, name: bytes, size: int) -> bytes:
    with open(folder.open_read(name), "rb") as file:
        return file.read(size + 1)


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
