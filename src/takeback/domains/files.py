"""The files domain: brings paths of the tree from the state a plan expects to the state it aims at.

For each path: write the new file beside the old one ─► read it back by hash ─► swap the two names ─► compare the
displaced file, now that nobody can write to it by name, with what the plan expected ─► unlink it, or put it back.

The file beside is named `.takeback-<key>-<n>` (`…o` for a file moved aside), so that after a crash the key alone
finds every one of them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from takeback.errors import TakebackError
from takeback.journal import change_lists
from takeback.look.read_path import Reader
from takeback.model.effects import (
    DONE,
    EXACT,
    FAILED,
    FILE,
    FOLDER,
    KEPT,
    LINK,
    UNSEEN,
    Change,
    Entry,
    Result,
    State,
    Step,
    same,
    text,
)
from takeback.store import chunks, folder_objects
from takeback.store.blobs import Blobs
from takeback.store.chunks import ZEROS
from takeback.store.records import pread, sparse_chunks
from takeback.system import forking
from takeback.system.safefs import ABSENT, TEMPORARY, components
from takeback.system.safefs import Folder as OpenFolder

_BLOCK = 1 << 16
_PAGE = 1 << 12  # of zeros, so many are a hole again
_WORTH_FORKING = 600
_LOT = 400  # steps at most that are handed out at a time
_WORTH_PACKING = 30_000  # steps
_EXPORT = "export"  # and the process: the key of a restore into another folder, which no journal row begins


def temporary_prefix(key: str) -> bytes:
    return TEMPORARY + key.encode() + b"-"


class _Drifted(Exception):
    """The path is no longer what the plan expects."""


class _Stuck(TakebackError):
    """A file of ours, or somebody's under a name of ours, is left: the take-back stays open, and resume tidies up."""


class _Displaced(NamedTuple):
    folder: bytes
    beside: bytes
    path: bytes
    verdict: str


class Files:
    name = "files"
    joins = True

    def __init__(
        self,
        root: OpenFolder,
        blobs: Blobs,
        progress: Callable[[int], None] | None = None,
        fork: bool = False,
        foresee: Callable[[Sequence[Step], Mapping[bytes, Entry]], None] | None = None,
    ) -> None:
        self.root = root
        self.blobs = blobs
        self.progress = progress
        self.fork = fork
        self.foresee = foresee  # hears what will have been done if all goes well, while a second process is at it
        self._parent: OpenFolder | None = None  # the folder of the last step: neighbours share it
        self._reader = Reader(None)
        self._read, self._read_file = self._reader.read, self._reader.read_file
        self._owner = (os.geteuid(), os.getegid()) if hasattr(os, "geteuid") else (0, 0)
        self._placed: dict[bytes, bytes] = {}  # hard-link group → path of a member that is in place
        self._displaced: list[_Displaced] = []  # old files, compared and stored, still to be unlinked

    # -- looking -------------------------------------------------------------

    def present(self, path: bytes) -> State:
        names = components(path)
        if not names:
            st = self.root.stat_self()
            return Entry(FOLDER, stat.S_IMODE(st.st_mode), 0, b"", b"", b"", st.st_mtime_ns, st.st_uid, st.st_gid)
        try:
            with self.root.descend(names[:-1]) as here:
                return self._state(here, names[-1])
        except ABSENT:
            return None

    def _expect(self, states: Iterable[State]) -> None:
        """Large files that were stored with a plain identity are met with it again."""
        for state in states:
            if state is not None and state.size >= chunks.FROM and not chunks.is_chunked(state.content):
                self._reader.plain.add((state.size, state.content))

    def _state(self, here: OpenFolder, name: bytes) -> State:
        try:
            st = here.stat(name)
        except FileNotFoundError:
            return None
        if not (stat.S_ISREG(st.st_mode) or stat.S_ISDIR(st.st_mode) or stat.S_ISLNK(st.st_mode)):
            return Entry(UNSEEN, 0, 0, b"", b"", b"", 0, 0, 0)
        entry, _ = self._read(here, name, st)
        if isinstance(entry, str):
            if not entry:
                return None
            raise OSError(5, entry)
        return entry

    # -- applying ------------------------------------------------------------

    def apply(
        self, steps: Sequence[Step], key: str, times: Mapping[bytes, Entry], again: bool = False
    ) -> Iterator[Result]:
        """Removals deepest first, then folders, then files and links, then the folders' modes and times."""
        numbered = {step.path: n for n, step in enumerate(steps)}
        results: dict[bytes, Result] = {}
        self._expect(state for step in steps for state in (step.expected, step.goal))
        self._placed.clear()
        self._key = key
        self._again = again
        self._groups = (
            {s.path for s in steps if (s.expected and s.expected.group) or (s.goal and s.goal.group)}
            if again
            else set()
        )
        self._members = Counter(
            s.goal.group for s in steps if s.goal and s.goal.group and s.expected and s.expected.group == s.goal.group
        )
        todo = [s for s in steps if not same(s.expected, s.goal)]
        for step in steps if len(todo) < len(steps) else ():
            if step.goal is not None and step.goal.kind != FOLDER and same(step.expected, step.goal):
                self._do(step, results, self._touch, numbered)  # others have undone it already, at another time
        if again:
            todo = [more for s in todo if (more := self._left_to_do(s, results)) is not None]
        removals = [s for s in todo if s.expected is not None and _makes_room(s.expected, s.goal)]
        for step in sorted(removals, key=lambda s: (-s.path.count(b"/"), s.path)):
            self._do(step, results, self._remove, numbered)
        left = [s for s in todo if s.goal is not None and s.path not in results]
        for step in sorted(
            (s for s in left if s.goal and s.goal.kind == FOLDER), key=lambda s: (s.path.count(b"/"), s.path)
        ):
            self._do(step, results, self._make_folder, numbered)
        self._place_all(
            sorted((s for s in left if s.goal and s.goal.kind != FOLDER), key=lambda s: s.path),
            results,
            numbered,
            lambda: self.foresee(steps, times) if self.foresee is not None else None,
        )
        self._leave()
        for step in steps:
            results.setdefault(step.path, Result(step.path, step.verdict, DONE))
        self._finish_folders(steps, times, results)
        return iter(results.values())

    def _place_all(
        self,
        steps: list[Step],
        results: dict[bytes, Result],
        numbered: dict[bytes, int],
        meanwhile: Callable[[], None],
    ) -> None:
        """Files and links, half of them in a second process where that pays. Hard links stay together, here."""
        linked: list[Step] = []
        single: list[Step] = []
        for step in steps:
            (linked if (step.goal and step.goal.group) or _alike(step.expected, step.goal) else single).append(step)

        def part(ranges: Iterator[range], second: bool) -> list[bytes]:
            self._leave()
            if second:
                self.progress = getattr(self.progress, "elsewhere", None)  # whoever can be told by a second process
            found: dict[bytes, Result] = {}
            for number in chain.from_iterable(ranges):
                mine, numbers = lots[number].steps(numbered)
                for step in mine:
                    self._do(step, found, self._place, numbers)
            self._leave()
            if second:
                self.root.start_sync()  # the disk has work while old files are unlinked here and the parent goes on
            self._unlink_displaced(found)
            return [
                b"\0".join((r.path, r.verdict.encode(), r.result.encode(), r.note.encode())) for r in found.values()
            ]

        lots = _in_lots(single)
        fork = self.fork and len(single) >= _WORTH_FORKING
        if fork and len(single) >= _WORTH_PACKING:
            for lot in lots:
                lot.pack(numbered)
            left = {s.path: numbered[s.path] for s in chain(linked, *(lot.unpacked for lot in lots))}
            numbered.clear()  # of the caller too, for room: a lot that is packed knows its own
            numbered.update(left)
        for packed in forking.split(part, len(lots), 0, fork, meanwhile):
            path, verdict, result, note = packed.split(b"\0")
            results[path] = Result(path, verdict.decode(), result.decode(), note.decode())
        groups: dict[bytes, list[Step]] = {}
        for step in linked:
            groups.setdefault(step.goal.group if step.goal else b"", []).append(step)
        for step in groups.pop(b"", []):  # those that stand alone come first: who is left may be in place then
            self._unlink_displaced(results)
            self._do(step, results, self._stay if self._inode(step.path)[1] == 1 else self._place, numbered)
        for group, members in groups.items():
            self._unlink_displaced(results)
            self._link_all(group, members, results, numbered)
        self._unlink_displaced(results)

    def _link_all(
        self, group: bytes, members: list[Step], results: dict[bytes, Result], numbered: Mapping[bytes, int]
    ) -> None:
        """The names of one file. One that is in place and has no names besides stays; the others are linked with it."""
        found = Counter(self._inode(s.path) for s in members if _alike(s.expected, s.goal))
        inode = self._inode(group)[0]
        if any(s.path == group for s in members):
            inode = next((i for (i, links), n in found.most_common() if i and links <= n), 0)
        for step in members:
            if inode and _alike(step.expected, step.goal) and self._inode(step.path)[0] == inode:
                self._do(step, results, self._stay, numbered)
        for step in members:
            if not inode or self._inode(step.path)[0] != inode or not _alike(step.expected, step.goal):
                self._do(step, results, self._place, numbered)
        first = self._inode(self._placed.get(group, group))[0]
        for step in members:
            if os.name != "nt" and self._inode(step.path)[0] != first:
                results.setdefault(step.path, Result(step.path, step.verdict, DONE, "its hard link was not put back"))

    def _stay(self, step: Step, here: OpenFolder, name: bytes, number: int) -> None:
        """Other names of the file came or went; it is in place."""
        assert step.goal is not None
        if not _alike(self._state(here, name), step.expected):
            raise _Drifted("changed in this very moment; kept")
        self._set_time(step.path, step.goal)
        if step.goal.group:
            self._placed[step.goal.group] = step.path

    def _unlink_displaced(self, results: dict[bytes, Result]) -> None:
        """All at the end: ext4 steps over inodes freed of late, ever more slowly, when it makes new ones."""
        here: OpenFolder | None = None
        try:
            for folder, beside, path, verdict in self._displaced:
                try:
                    if here is None or here.path != folder:
                        if here is not None:
                            here.close()
                            here = None
                        here = self.root.descend(components(folder))
                    if not self._clear(here, beside):
                        raise FileNotFoundError(errno.ENOENT, "another folder has its name")
                except OSError as error:
                    if not isinstance(error, ABSENT) and error.errno != errno.EXDEV:
                        raise
                    note = f"its folder was moved away meanwhile; {text(beside)} is left in it"
                    results[path] = Result(path, verdict, FAILED, note)
        finally:
            if here is not None:
                here.close()
        self._displaced.clear()

    def _do(
        self,
        step: Step,
        results: dict[bytes, Result],
        act: Callable[[Step, OpenFolder, bytes, int], None],
        numbered: Mapping[bytes, int],
    ) -> None:
        try:
            parent, _, name = step.path.rpartition(b"/")
            if not name:
                return  # the root itself: only its mode and times
            act(step, self._enter_folder(parent), name, numbered[step.path])
        except _Drifted as drift:
            results[step.path] = Result(step.path, step.verdict, KEPT, str(drift))
        except _Stuck:
            raise
        except (TakebackError, OSError) as error:
            if act != self._remove:
                self._bring_back(step, numbered[step.path])
            why = error.message if isinstance(error, TakebackError) else error.strerror
            results[step.path] = Result(step.path, step.verdict, FAILED, why or str(error))
        if self.progress:
            self.progress(1)

    def _bring_back(self, step: Step, number: int) -> None:
        """Undoes the first half of a failed change of kind: a step is done whole or not at all."""
        was, goal = step.expected, step.goal
        if was is None or goal is None or was.kind == goal.kind:
            return
        parent, _, name = step.path.rpartition(b"/")
        try:
            if self.present(step.path) is not None:
                return
            here = self._enter_folder(parent)
            if was.kind == FOLDER:
                here.mkdir(name)
                self._finish_folder(step.path, was, step.reversed())
            else:
                self._place(step._replace(expected=None, goal=was), here, name, number)
        except _Stuck:
            raise
        except _Drifted:
            return  # somebody put something there meanwhile
        except (OSError, TakebackError) as error:
            raise _stuck(error, step.path) from error

    def _enter_folder(self, path: bytes) -> OpenFolder:
        """Opened anew from the root for each folder, so that a swapped parent is noticed."""
        if self._parent is None or self._parent.path != path:
            self._leave()
            self._parent = self.root.descend(components(path))
        return self._parent

    def _leave(self) -> None:
        if self._parent is not None:
            self._parent.close()
            self._parent = None

    def _left_to_do(self, step: Step, results: dict[bytes, Result]) -> Step | None:
        """On a second run: what is at its goal is done, what is neither there nor as expected is kept."""
        goal, expected = step.goal, step.expected
        try:
            now = self.present(step.path)
            if _alike(now, goal):
                if goal is not None and goal.kind != FOLDER:
                    if not self._is_linked_as(goal, step.path):
                        return step._replace(expected=goal._replace(group=b"" if goal.group else b"-"))
                    self._set_time(step.path, goal)
                results[step.path] = Result(step.path, step.verdict, DONE)
                return None
        except OSError as error:
            results[step.path] = Result(step.path, step.verdict, FAILED, error.strerror or str(error))
            return None
        if _alike(now, expected):
            return step
        if now is not None and (_is_torn(now, goal) or _is_torn(now, expected)):  # an abort wrote what was expected
            self._keep_torn(step.path)
            return step._replace(expected=now)
        if now is None and expected is not None and goal is not None and expected.kind != goal.kind:
            return step  # the old kind is gone, the new one is still to come
        if now is not None and now.kind == FOLDER and goal is not None and goal.kind == FOLDER:
            return step._replace(expected=now)  # made, but its mode is still to come
        if now is not None and now.kind == FOLDER and expected is not None and expected.kind == FOLDER:
            return step  # as made, before it got its mode
        results[step.path] = Result(step.path, step.verdict, KEPT, "changed since; kept")
        return None

    def _keep_torn(self, path: bytes) -> None:
        parent, _, name = path.rpartition(b"/")
        try:
            with self.root.descend(components(parent)) as here:
                self._keep_bytes(here, name)
        except OSError:
            pass  # then its replacement fails too, and says why

    def _is_linked_as(self, goal: Entry, path: bytes) -> bool:
        """Whether a file in place has the other names its goal has; links that leave the root do not count."""
        if goal.kind != FILE or os.name == "nt":
            return True
        inode, links = self._inode(path)
        if goal.group:
            return goal.group == path or inode == self._inode(goal.group)[0]
        return links == 1 or not any(inode == self._inode(other)[0] for other in self._groups if other != path)

    def _inode(self, path: bytes) -> tuple[int, int]:
        """A path's inode and how many names that has."""
        names = components(path)
        try:
            with self.root.descend(names[:-1]) as here:
                st = here.stat(names[-1])
                return st.st_ino, st.st_nlink
        except ABSENT:
            return 0, 0

    def regrouped(self, steps: Sequence[Step], not_done: Collection[bytes]) -> list[Change]:
        """Names whose file has other names than was aimed at, because some steps were not done: our own doing too."""
        linked = [(s.path, e.group) for s in steps for e in (s.expected, s.goal) if e is not None and e.group]
        inodes = {path: self._inode(path) for path in {path for pair in linked for path in pair}}
        names: dict[int, list[bytes]] = {}
        for path in sorted(inodes):
            names.setdefault(inodes[path][0], []).append(path)
        found = []
        for step in steps:
            was = step.expected if step.path in not_done else step.goal
            inode, links = inodes.get(step.path, (0, 0))
            if was is None or not inode or 1 == len(names[inode]) < links:  # in the last case names elsewhere count
                continue
            now = was._replace(group=names[inode][0] if len(names[inode]) > 1 else b"")
            if now.group != was.group and _alike(self.present(step.path), was):
                found.append(Change(step.path, was, now))
        return found

    def _set_time(self, path: bytes, goal: Entry) -> None:
        """The last thing a file gets is its time; what killed the first run may have come just before."""
        names = components(path)
        with self.root.descend(names[:-1]) as here:
            if here.stat(names[-1]).st_mtime_ns != goal.mtime_ns:
                here.utime(names[-1], goal.mtime_ns)

    def _touch(self, step: Step, here: OpenFolder, name: bytes, number: int) -> None:
        """Only the time is put back, of a file that is as it should be in all else."""
        if step.goal is not None and _alike(self._state(here, name), step.goal):
            here.utime(name, step.goal.mtime_ns)

    # -- one path ------------------------------------------------------------

    def _remove(self, step: Step, here: OpenFolder, name: bytes, number: int) -> None:
        assert step.expected is not None
        if step.expected.kind == FOLDER:
            try:
                here.rmdir(name)
            except FileNotFoundError:
                self._is_gone(step)
            except NotADirectoryError:
                raise _Drifted("it is no folder any more") from None
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise _Drifted("not empty: it holds what this plan does not cover") from None
                raise
            return
        aside = temporary_prefix(self._key) + b"%do" % number
        try:
            here.move(name, aside)
        except FileNotFoundError:
            self._is_gone(step)
            return
        self._drop(here, aside, name, step)

    def _is_gone(self, step: Step) -> None:
        """Nothing to remove: as aimed at, or as an earlier run left it; else somebody took it away meanwhile."""
        if step.goal is not None and not self._again:
            raise _Drifted("it is gone")

    def _drop(self, here: OpenFolder, aside: bytes, name: bytes, step: Step) -> None:
        """Unlinks a displaced file that is what the plan expected; puts any other back."""
        try:
            as_expected = _alike(self._state(here, aside), step.expected)
        except BaseException:
            self._put_back(here, aside, name)
            raise
        if as_expected:
            self._clear(here, aside)
            return
        self._put_back(here, aside, name)
        raise _Drifted("changed in this very moment; kept")

    def _put_back(self, here: OpenFolder, aside: bytes, name: bytes) -> None:
        try:
            try:
                here.move(aside, name)
            except FileExistsError:  # a new file took its place: both are somebody's, so the older one gets a name
                here.move(aside, name[:200] + b".takeback-kept")
        except OSError as error:
            raise _stuck(error, aside) from error

    def _clear(self, here: OpenFolder, ours: bytes) -> bool:
        """Unlinks a file under a name of ours, if it is there, which is told; what cannot be unlinked is not passed
        over."""
        try:
            here.unlink(ours)
        except FileNotFoundError:
            return False
        except OSError:
            try:
                here.stat(ours)
            except OSError:
                return False
            try:
                here.unlink(ours)
            except OSError as error:
                raise _stuck(error, ours) from error
        return True

    def _make_folder(self, step: Step, here: OpenFolder, name: bytes, number: int) -> None:
        if step.expected is not None and step.expected.kind == FOLDER:
            now = self._state(here, name)
            if now is None or now.kind != FOLDER:
                raise _Drifted("it is no folder any more")
            return  # only its mode or attributes differ
        try:
            here.mkdir(name)
        except FileExistsError:
            now = self._state(here, name)
            if now is None or now.kind != FOLDER:
                raise _Drifted("something else is there now") from None

    def _place(self, step: Step, here: OpenFolder, name: bytes, number: int) -> None:
        goal, expected = step.goal, step.expected
        assert goal is not None
        if (
            expected is not None
            and expected.kind == goal.kind == FILE
            and (expected.content, expected.group) == (goal.content, goal.group)
            and self._may_stay(here, name, goal)
        ):
            self._set_mode(step, here, name, goal)
            if goal.group:
                self._placed[goal.group] = step.path
            return
        beside = temporary_prefix(self._key) + b"%d" % number
        try:
            self._write_with_room(here, beside, goal, step.path)
            if expected is None or expected.kind == FOLDER:
                self._enter(here, beside, name)
            else:
                self._swap(here, beside, name, step, number)
        except _Stuck:
            raise  # it may be somebody's
        except BaseException:
            self._clear(here, beside)
            raise
        if goal.group:
            self._placed[goal.group] = step.path

    def _may_stay(self, here: OpenFolder, name: bytes, goal: Entry) -> bool:
        """Whether a file's mode can be set in place: of one with several names, if its group is linked with it by now,
        or if none of its names is left out."""
        if not goal.group:
            return True
        st = here.stat(name)
        placed = self._placed.get(goal.group)
        if placed is not None:
            return self._inode(placed)[0] == st.st_ino
        return st.st_nlink <= self._members[goal.group]

    def _enter(self, here: OpenFolder, beside: bytes, name: bytes) -> None:
        try:
            here.move(beside, name)
        except FileExistsError:
            raise _Drifted("something is there now; kept") from None

    def _swap(self, here: OpenFolder, beside: bytes, name: bytes, step: Step, number: int) -> None:
        try:
            swapped = here.exchange(beside, name)
        except FileNotFoundError:
            raise _Drifted("it is gone") from None
        if swapped:
            try:
                as_expected = self._is_as_expected(here, beside, step.expected)
            except BaseException:
                self._swap_back(here, beside, name)
                raise
            if as_expected:
                self._displaced.append(_Displaced(here.path, beside, step.path, step.verdict))
                return
            self._swap_back(here, beside, name)
            raise _Drifted("changed in this very moment; kept")
        aside = temporary_prefix(self._key) + b"%do" % number
        try:
            here.move(name, aside)
        except FileNotFoundError:
            raise _Drifted("it is gone") from None
        try:
            if not _alike(self._state(here, aside), step.expected):
                raise _Drifted("changed in this very moment; kept")
            self._enter(here, beside, name)
        except BaseException:
            self._put_back(here, aside, name)
            raise
        self._clear(here, aside)

    def _is_as_expected(self, here: OpenFolder, name: bytes, expected: State) -> bool:
        """Read whole: who wrote through a memory map leaves no trace but the bytes."""
        if expected is not None and expected.kind == FILE:
            try:
                found, _ = self._read_file(here, name)
                if not isinstance(found, str):
                    return _alike(found, expected)
            except OSError:
                pass  # no file any more, perhaps
        return _alike(self._state(here, name), expected)

    def _swap_back(self, here: OpenFolder, beside: bytes, name: bytes) -> None:
        try:
            here.exchange(beside, name)
        except OSError as error:
            raise _stuck(error, beside) from error

    def _write_with_room(self, here: OpenFolder, beside: bytes, goal: Entry, path: bytes) -> None:
        """Old files that are done with make room before a full disk is believed."""
        try:
            self._write_beside(here, beside, goal, path)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self._displaced:
                raise
            self._clear(here, beside)
            self._unlink_displaced({})
            self._write_beside(here, beside, goal, path)

    def _write_beside(self, here: OpenFolder, beside: bytes, goal: Entry, path: bytes) -> None:
        """A whole, verified copy of the goal under a name of ours."""
        if goal.kind == LINK:
            here.symlink(self.blobs.get(goal.content), beside)
            here.chown(beside, goal.uid, goal.gid)
            here.utime(beside, goal.mtime_ns)
            return
        if goal.group and self._link_beside(here, beside, goal, path):
            return
        fd = here.create(beside)
        try:
            self._fill(fd, goal)
            if (goal.uid, goal.gid) != self._owner:
                here.chown(beside, goal.uid, goal.gid)
            if hasattr(os, "fchmod"):
                os.fchmod(fd, goal.mode)
            if goal.xattrs:
                here.set_xattrs(fd, self._attributes(goal).items())
            if _hash(fd, goal) != goal.content:
                raise TakebackError("what was written does not read back the same")
            if os.utime in os.supports_fd:
                os.utime(fd, ns=(goal.mtime_ns, goal.mtime_ns))
        finally:
            os.close(fd)
        if os.utime not in os.supports_fd:
            here.utime(beside, goal.mtime_ns)

    def _fill(self, fd: int, goal: Entry) -> None:
        sparse = self.blobs.is_sparse(goal.content) if goal.size >= _BLOCK else False
        if goal.size < (4 << 20) and not sparse:
            _write_all(fd, self.blobs.get(goal.content))
            return
        if not sparse:
            for chunk in self.blobs.stream(goal.content):
                _write_all(fd, chunk)
            return
        for start, chunk in self.blobs.extents(goal.content):
            for at, block in _without_zeros(chunk):
                os.lseek(fd, start + at, os.SEEK_SET)
                _write_all(fd, block)
        os.ftruncate(fd, goal.size)

    def _link_beside(self, here: OpenFolder, beside: bytes, goal: Entry, path: bytes) -> bool:
        """Another name for a member of the group that is in place; False if none is."""
        for member in (self._placed.get(goal.group), goal.group):
            if member is None or member == path:
                continue
            names = components(member)
            try:
                with self.root.descend(names[:-1]) as there:
                    state = self._state(there, names[-1])
                    if state is None or state[:5] != goal[:5]:
                        continue
                    here.link(there, names[-1], beside)  # type: ignore[arg-type]
                    return True
            except ABSENT:
                continue
        return False

    def _set_mode(self, step: Step, here: OpenFolder, name: bytes, goal: Entry) -> None:
        """Only the mode or the attributes differ: set in place, the bytes stay."""
        now = self._state(here, name)
        if goal.group and _alike(now, goal):
            return  # done by another of its names
        if not _alike(now, step.expected):
            raise _Drifted("changed in this very moment; kept")
        assert step.expected is not None
        if goal.xattrs != step.expected.xattrs:
            fd = here.open_read(name)
            try:
                here.set_xattrs(fd, self._attributes(goal).items())
            finally:
                os.close(fd)
        here.chmod(name, goal.mode)
        here.utime(name, goal.mtime_ns)
        st = here.stat(name)
        if stat.S_IMODE(st.st_mode) != goal.mode and os.name != "nt":
            raise TakebackError("the mode did not take")

    def _finish_folders(
        self, steps: Sequence[Step], times: Mapping[bytes, Entry], results: dict[bytes, Result]
    ) -> None:
        """Modes and times of folders, deepest first, when nothing more changes in them."""
        goals = dict(times)
        for step in steps:
            if step.goal is not None and step.goal.kind == FOLDER and results[step.path].result == DONE:
                goals[step.path] = step.goal
        set_mode = {s.path: s for s in steps if s.goal is not None and s.goal.kind == FOLDER}
        todo = sorted(goals, key=lambda p: (-p.count(b"/") if p else 1, p))
        late = [path for path in todo if self._why_unfinished(path, goals[path], set_mode.get(path))]
        for path in late:  # tried once more: a time that is wrong is no work, and no later take-back is for it alone
            why = self._why_unfinished(path, goals[path], set_mode.get(path))
            if why and (path not in results or results[path].result == DONE):  # else it is named already
                verdict = set_mode[path].verdict if path in set_mode else EXACT
                note = why if path in set_mode else f"its time could not be put back: {why}"
                results[path] = Result(path, verdict, FAILED, note)
        self._leave()

    def _why_unfinished(self, path: bytes, goal: Entry, step: Step | None) -> str:
        """What is in the way of its mode or time; empty once it has them."""
        try:
            self._finish_folder(path, goal, step)
        except OSError as error:
            return error.strerror or str(error)
        except TakebackError as error:
            return error.message
        return ""

    def _finish_folder(self, path: bytes, goal: Entry, step: Step | None) -> None:
        names = components(path)
        if not names:
            if step is not None:
                self.root.set_self(goal.mode, self._attributes(goal) if goal.xattrs or _had_xattrs(step) else None)
            self.root.utime_self(goal.mtime_ns)
            return
        here, name = self._enter_folder(folder_objects.parent(path)), names[-1]
        if step is not None:
            here.chown(name, goal.uid, goal.gid)
            with here.child(name) as folder:
                folder.set_self(goal.mode, self._attributes(goal) if goal.xattrs or _had_xattrs(step) else None)
        elif goal.kind != FOLDER and not _alike(self._state(here, name), goal):
            return  # it has changed meanwhile, and its times with it
        elif (st := here.stat(name)) and (st.st_uid, st.st_gid) != (goal.uid, goal.gid):
            here.chown(name, goal.uid, goal.gid)
        here.utime(name, goal.mtime_ns)

    def _attributes(self, goal: Entry) -> Mapping[bytes, bytes]:
        return folder_objects.decode_xattrs(self.blobs.get(goal.xattrs)) if goal.xattrs else {}

    # -- after an interruption -----------------------------------------------

    def sweep(self, steps: Sequence[Step], key: str) -> None:
        """Removes the files an interrupted `apply` left beside their targets; a file that is neither what was
        expected nor what was aimed at is somebody's, and goes back."""
        prefix = temporary_prefix(key)
        self._expect(state for step in steps for state in (step.expected, step.goal))
        folders = {folder_objects.parent(s.path) for s in steps}
        for folder in folders:
            try:
                with self.root.descend(components(folder)) as here:
                    for name, _ in here.listing():
                        if name.startswith(prefix):
                            self._sweep_one(here, name, name[len(prefix) :], steps)
            except ABSENT:
                continue

    def _sweep_one(self, here: OpenFolder, leftover: bytes, suffix: bytes, steps: Sequence[Step]) -> None:
        backwards = suffix.startswith(b"a-")  # left by an abort
        number = suffix.removeprefix(b"a-").removesuffix(b"o")
        if not number.isdigit() or int(number) >= len(steps):
            return  # not one of ours
        step = steps[int(number)]
        if backwards:
            step = step.reversed()
        name = step.path.rpartition(b"/")[2]
        found, now = self._state(here, leftover), self._state(here, name)
        ours = _alike(found, step.expected) or _alike(found, step.goal)
        in_place = _alike(now, step.goal) and not _alike(now, step.expected)
        displaced = suffix.endswith(b"o") or (step.expected is not None and in_place)
        if displaced and now is None and step.expected is not None and not (ours and step.goal is None):
            here.move(leftover, name)  # moved aside, and nothing took its place yet
        elif displaced and not ours and _alike(now, step.goal) and here.exchange(leftover, name):
            here.unlink(leftover)
        else:
            if not ours and found is not None and found.kind == FILE:
                self._keep_bytes(here, leftover)
            here.unlink(leftover)

    def sweep_exports(self, folders: Iterable[bytes]) -> None:
        """Removes what an export that died left there."""
        prefix = TEMPORARY + _EXPORT.encode()
        for folder in folders:
            try:
                with self.root.descend(components(folder)) as here:
                    for name, _ in here.listing():
                        if name.startswith(prefix) and not forking.is_running(
                            text(name[len(prefix) :]).partition("-")[0]
                        ):
                            _unlink_quietly(here, name)
            except ABSENT:
                continue

    def _keep_bytes(self, here: OpenFolder, name: bytes) -> None:
        Reader(self.blobs).read(here, name, here.stat(name))
        self.blobs.flush()

    def sync(self) -> None:
        self.root.sync()


class _Lot:
    """Some steps for one of two processes. Of a large tree they are packed before the second one is forked: whoever
    looks at an object writes to its count of references, and a page that one of two processes writes to is there
    twice. So nobody looks at the plan's own before the lots are done, and what is unpacked lives no longer than its
    lot."""

    def __init__(self, steps: list[Step]) -> None:
        self.unpacked = steps
        self._packed: tuple[bytes, str] | None = None

    def pack(self, numbered: Mapping[bytes, int]) -> None:
        verdicts = {step.verdict for step in self.unpacked}
        if len(verdicts) == 1:
            found = [Change(s.path, s.expected, s.goal, (numbered[s.path],)) for s in self.unpacked]
            self._packed = change_lists.encode(found), verdicts.pop()
            self.unpacked = []

    def steps(self, numbered: Mapping[bytes, int]) -> tuple[list[Step], Mapping[bytes, int]]:
        """The steps, and the number of each."""
        if self._packed is None:
            return self.unpacked, numbered
        packed, verdict = self._packed
        found = change_lists.decode(packed)
        return [Step("files", c.path, c.before, c.after, verdict, ()) for c in found], {
            c.path: c.took[0] for c in found
        }


def _in_lots(steps: list[Step]) -> list[_Lot]:
    """Enough of them for two processes to end at the same time."""
    size = min(_LOT, -(-len(steps) // forking.PARTS)) or 1
    return [_Lot(steps[at : at + size]) for at in range(0, len(steps), size)]


def _had_xattrs(step: Step) -> bool:
    return step.expected is not None and bool(step.expected.xattrs)


def _makes_room(expected: Entry, goal: State) -> bool:
    """Whether what is there has to go first; a file and a link can take each other's name in one step."""
    return goal is None or (goal.kind != expected.kind and FOLDER in (goal.kind, expected.kind))


def _is_torn(now: Entry, goal: State) -> bool:
    """Whether a file is what a power cut left of our own: the names reached the disk, its bytes did not. No edit
    has the goal's time to the nanosecond."""
    return (
        goal is not None
        and now.kind == goal.kind == FILE
        and now.size <= goal.size
        and (now.mode, now.mtime_ns) == (goal.mode, goal.mtime_ns)
    )


def _stuck(error: OSError | TakebackError, name: bytes) -> _Stuck:
    why = error.message if isinstance(error, TakebackError) else error.strerror
    return _Stuck(
        f"{text(name)} could not be tidied up ({why}); the take-back was stopped",
        "finish it with takeback resume once that works again, or go back with takeback resume --abort",
    )


def _alike(now: State, wanted: State) -> bool:
    """The same but for hard-link groups, which one file alone does not show."""
    if now is None or wanted is None:
        return now is wanted
    if os.name == "nt":
        return (now.kind, now.size, now.content) == (wanted.kind, wanted.size, wanted.content)
    return now[:5] == wanted[:5]


def _without_zeros(chunk: bytes) -> Iterator[tuple[int, bytes]]:
    """What of a chunk has to be written for it to be the same in a file full of holes."""
    start = 0
    for at in range(0, len(chunk) + 1, _PAGE):
        block = chunk[at : at + _PAGE]
        if not block or block == ZEROS[: len(block)]:
            if start < at:
                yield start, chunk[start:at]
            start = at + len(block)
    if start < len(chunk):
        yield start, chunk[start:]


def _write_all(fd: int, data: bytes) -> None:
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])


def _hash(fd: int, goal: Entry) -> bytes:
    if chunks.is_chunked(goal.content):
        return chunks.identity(fd, os.fstat(fd).st_size)
    if goal.size < 1 << 20:
        return sha256(pread(fd, goal.size + 1, 0)).digest()
    os.lseek(fd, 0, os.SEEK_SET)
    digest = sha256()
    for chunk in sparse_chunks(fd):
        digest.update(chunk)
    return digest.digest()


def _unlink_quietly(here: OpenFolder, name: bytes) -> None:
    try:
        here.unlink(name)
    except OSError:
        pass


def export(root: OpenFolder, blobs: Blobs, found: Iterable[tuple[bytes, Entry]], replace: bool) -> list[Result]:
    """Writes entries of a snapshot below another folder (`restore --to`), replacing nothing unless asked."""
    files = Files(root, blobs)
    found = list(found)
    files._expect(entry for _, entry in found)
    files.sweep_exports({folder_objects.parent(path) for path, _ in found})
    steps = []
    results = []
    for path, goal in found:
        now = files.present(path)
        if _alike(now, goal):
            results.append(Result(path, "exact", DONE, "already there"))
        elif now is not None and now.kind == FOLDER == goal.kind:
            results.append(Result(path, "exact", DONE, "the folder is there already"))
        elif now is not None and not replace:
            results.append(Result(path, "exact", KEPT, f"{text(path)} is there already"))
        else:
            steps.append(Step("files", path, now, goal, "exact", ()))
    results += files.apply(steps, f"{_EXPORT}{os.getpid()}", {})
    return sorted(results, key=lambda r: r.path)
