"""A git repository, read without git: HEAD, refs, the index, the stash, and a merge under way.

    .git                 a folder, or a file that leads to one (a linked worktree, a submodule)
    <own>/HEAD, index, MERGE_HEAD …      of this work tree
    <common>/refs, packed-refs, logs     of all work trees of the repository

Each part has a stamp of stat keys: while that is equal nothing is read. Nothing here follows a link, runs anything or
raises for what it finds: a part that cannot be read is named and left as it was.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from takeback.model.effects import FILE, Entry
from takeback.system.safefs import ABSENT, keys, open_root
from takeback.system.safefs import Folder as OpenFolder

from . import index_file

HEAD = b".git/HEAD"
REFS = b".git/refs/"
INDEX = b".git/index/"
STASH = b".git/stash/"
MERGING = (b"MERGE_HEAD", b"MERGE_MSG", b"MERGE_MODE", b"CHERRY_PICK_HEAD", b"REVERT_HEAD", b"SQUASH_MSG")
UNDER_WAY = {  # work that lies in a folder of its own, which is not recorded; what ends it and moves nothing
    b"rebase-merge": ("a rebase", "git rebase --quit"),
    b"rebase-apply": ("a rebase", "git rebase --quit"),
    b"sequencer": ("a series of picks", "git cherry-pick --quit"),
    b"BISECT_LOG": ("a bisection", "git bisect reset HEAD"),
}
# Refs that say what another repository had, or that belong to work under way.
_LEFT_OUT = (b"refs/remotes/", b"refs/stash", b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/", b"refs/prefetch/")
_MOST_REFS = 100_000
_LARGEST = 512 << 20  # bytes of an index
_LARGE = 64 << 20  # of packed-refs, and of the stash's log
_SMALL = 1 << 20  # of a ref, a message, the configuration
_OBJECT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SYMBOLIC = re.compile(rb"ref: *(refs/[^\0\n]+)")
GONE = "the repository is gone, and its objects are not in the store"
PARTS = ("head", "refs", "stash", "merging", "index")
_SAID = {"head": "HEAD", "refs": "refs", "stash": "the stash", "merging": "a merge under way", "index": "the index"}


class Unusable(ValueError):
    """A repository, or a part of one, that cannot be recorded: why."""


class Stashed(NamedTuple):
    """One entry of the stash, as its log has it."""

    object: bytes  # in hex
    who: bytes  # name, mail, time and zone
    message: bytes

    @property
    def value(self) -> bytes:
        return self.who + b"\t" + self.message

    @property
    def at(self) -> int:
        words = self.who.rsplit(b" ", 2)
        return int(words[1]) if len(words) == 3 and words[1].isdigit() else 0


class Part(NamedTuple):
    """One part of a repository: `states` by path; None while its stamp is the one that was known."""

    stamp: bytes  # empty: it is too young to tell a later change by
    states: Mapping[bytes, bytes] | None
    why_not: str = ""  # it was not read
    is_covered: bool = True  # else it is of a kind that is never read


class Repository:
    """The repository whose work tree is a folder. Closed by its user."""

    def __init__(self, own: OpenFolder, common: OpenFolder, own_path: str, common_path: str) -> None:
        self.own = own
        self.common = common
        self.path = own_path  # what git calls its GIT_DIR
        self.common_path = common_path
        config = _config(common)
        self.width = index_file.width_of(config.get("extensions.objectformat", ""))
        if config.get("extensions.refstorage", "files") != "files":
            self.close()
            raise Unusable(f"refs are stored as {config['extensions.refstorage']}, which is not read")

    @classmethod
    def at(cls, tree: OpenFolder, root: str) -> Repository | None:
        """The one at the root of a tree; None where there is none. Unusable where it cannot be recorded."""
        try:
            kind = tree.stat(b".git").st_mode
        except OSError:
            return None
        if stat.S_ISLNK(kind):
            raise Unusable(".git is a symbolic link, which is not followed")
        try:
            if stat.S_ISDIR(kind):
                own, path = tree.child(b".git"), os.path.join(root, ".git")
            else:
                path = _led_to(tree, b".git", b"gitdir:", root)
                own = open_root(path)
        except OSError as error:
            raise Unusable(f".git cannot be opened ({error.strerror})") from error
        try:
            own.stat(b"HEAD")
        except OSError:
            own.close()
            return None
        try:
            elsewhere = _led_to(own, b"commondir", b"", path)
            common = open_root(elsewhere)
        except FileNotFoundError:
            elsewhere, common = path, own.descend([])
        except OSError as error:
            own.close()
            raise Unusable(f"the repository's common folder cannot be opened ({error.strerror})") from error
        return cls(own, common, path, elsewhere)

    def close(self) -> None:
        self.own.close()
        self.common.close()

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- parts -----------------------------------------------------------------

    def part(self, name: str, known: bytes = b"") -> Part:
        """One of PARTS. Read again a few times where a git at work pulls it away."""
        read = getattr(self, f"_{name}")
        why = ""
        for attempt in range(3):
            if attempt:
                time.sleep(0.005)
            try:
                found: Part = read(known)
                return found
            except index_file.NotCovered as error:
                return Part(b"", None, str(error), is_covered=False)
            except (Unusable, index_file.Unreadable) as error:
                why = str(error)
            except OSError as error:
                why = error.strerror or type(error).__name__
        return Part(b"", None, f"{_SAID[name]} cannot be read ({why}){self._mend(name)}")

    def _mend(self, name: str) -> str:
        own = ".git" if os.path.basename(self.path) == ".git" else self.path
        if name == "head":  # git itself takes it for no repository then
            return f"; echo ref: refs/heads/BRANCH > {own}/HEAD mends it"
        return f"; rm {own}/index && git reset makes it anew from HEAD" if name == "index" else ""

    def _head(self, known: bytes) -> Part:
        stamp = _stamp([(b"HEAD", self.own.stat(b"HEAD"))])
        if stamp and stamp == known:
            return Part(stamp, None)
        return Part(stamp, {HEAD: _ref_value(_read(self.own, b"HEAD", _SMALL))})

    def _refs(self, known: bytes) -> Part:
        loose = list(_loose(self.common))
        try:
            packed_stat = [(b"packed-refs", self.common.stat(b"packed-refs"))]
        except FileNotFoundError:
            packed_stat = []
        stamp = _stamp([*((path, st) for path, st, _ in loose), *packed_stat])
        if stamp and stamp == known:
            return Part(stamp, None)
        if len(loose) > _MOST_REFS:
            raise Unusable(f"there are more than {_MOST_REFS:,} refs")
        found: dict[bytes, bytes] = {}
        broken = 0
        for path, _, folder in loose:  # before packed-refs, where a git at work may just have moved them
            try:
                with self.common.descend(folder) as here:
                    found[path] = _ref_value(_read(here, path.rpartition(b"/")[2], _SMALL))
            except FileNotFoundError:
                continue
            except Unusable:  # a broken ref: git does not follow it either
                broken += 1
        states = _packed(_read(self.common, b"packed-refs", _LARGE)) if packed_stat else {}
        if len(states) + len(found) > _MOST_REFS:
            raise Unusable(f"there are more than {_MOST_REFS:,} refs")
        states.update(found)
        return Part(stamp, {b".git/" + path: value for path, value in states.items()})

    def _stash(self, known: bytes) -> Part:
        stamps = [(path, st) for path in (b"logs/refs/stash", b"refs/stash") if (st := self._stat(path)) is not None]
        stamp = _stamp(stamps)
        if stamp and stamp == known:
            return Part(stamp, None)
        return Part(stamp, {STASH + s.object: s.value for s in self.stash()})

    def stash(self) -> list[Stashed]:
        """Oldest first, as its log has it."""
        try:
            with self.common.descend([b"logs", b"refs"]) as here:
                data = _read(here, b"stash", _LARGE)
        except OSError:
            return []
        found = []
        for line in data.splitlines():
            head, _, message = line.partition(b"\t")
            words = head.split(b" ", 2)
            if len(words) == 3 and _OBJECT.fullmatch(words[1]):
                found.append(Stashed(words[1], words[2], message))
        return found

    def _merging(self, known: bytes) -> Part:
        there = [(name, st) for name in MERGING if (st := self._own_stat(name)) is not None]
        stamp = _stamp(there)
        if stamp and stamp == known:
            return Part(stamp, None)
        found = {}
        for name, st in there:
            if not stat.S_ISREG(st.st_mode):
                raise Unusable(f"{name.decode()} is no file")
            found[b".git/" + name] = _read(self.own, name, _SMALL)
        return Part(stamp, found)

    def _index(self, known: bytes) -> Part:
        """States as git_index has them, by path of the work tree."""
        st = self._own_stat(b"index")
        stamp = _stamp([(b"index", st)] if st is not None else [])
        if stamp and stamp == known:
            return Part(stamp, None)
        if st is None:
            return Part(stamp, {})
        return Part(stamp, index_file.parse(_read(self.own, b"index", _LARGEST), self.width).states)

    def index_in_full(self) -> tuple[index_file.Parsed, bytes]:
        """The index with all that git remembers, and its bytes; an empty one where there is none."""
        try:
            data = _read(self.own, b"index", _LARGEST)
        except FileNotFoundError:
            return index_file.Parsed({}, [], b"", 2), b""
        return index_file.parse(data, self.width, in_full=True), data

    # -- more ------------------------------------------------------------------

    def under_way(self) -> str:
        """Work of git that is not recorded, in words, and how to end it; empty where there is none."""
        for name, (what, command) in UNDER_WAY.items():
            if self._own_stat(name) is not None:
                return f"{what} is under way, which is not recorded: it stays, and {command} ends it"
        return ""

    def elsewhere(self) -> dict[bytes, str]:
        """The branches that other work trees of this repository are on, and what would free each."""
        found: dict[bytes, str] = {}
        mine = os.path.realpath(self.path)
        there = "git switch there first"
        places = []
        if mine != os.path.realpath(self.common_path):
            places.append((self.common_path, f"the main work tree is on it: {there}"))
        folder = os.path.join(self.common_path, "worktrees")
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            names = []
        for name in names:
            told = f"the work tree {name} is on it: git worktree remove {name} or {there}"
            places.append((os.path.join(folder, name), told))
        for path, told in places:
            if os.path.realpath(path) == mine:
                continue
            try:
                with open_root(path) as other:
                    value = _ref_value(_read(other, b"HEAD", _SMALL))
            except (OSError, Unusable):
                continue
            if value.startswith(b"ref: "):
                found[value[5:]] = told
        return found

    def _own_stat(self, name: bytes) -> os.stat_result | None:
        try:
            return self.own.stat(name)
        except FileNotFoundError:
            return None

    def _stat(self, path: bytes) -> os.stat_result | None:
        *folder, name = path.split(b"/")
        try:
            with self.common.descend(folder) as here:
                return here.stat(name)
        except OSError:
            return None


def _loose(common: OpenFolder) -> Iterator[tuple[bytes, os.stat_result, list[bytes]]]:
    """Refs that are files of their own: (path, stat, names of its folder)."""
    waiting = [[b"refs"]]
    count = 0
    while waiting and count <= _MOST_REFS:
        names = waiting.pop()
        try:
            with common.descend(names) as here:
                listing = here.listing()
        except ABSENT:
            continue
        for name, st in listing:
            path = b"/".join([*names, name])
            if (path + b"/").startswith(_LEFT_OUT) or path in _LEFT_OUT:
                continue
            if stat.S_ISDIR(st.st_mode):
                waiting.append([*names, name])
            elif stat.S_ISREG(st.st_mode) and not name.endswith(b".lock"):
                count += 1
                yield path, st, names


def _packed(data: bytes) -> dict[bytes, bytes]:
    found = {}
    for line in data.split(b"\n"):
        if line[:1] in (b"#", b"^", b""):
            continue
        value, _, name = line.partition(b" ")
        if not _OBJECT.fullmatch(value) or not name:
            raise Unusable("packed-refs makes no sense")
        if name.startswith(b"refs/") and not name.startswith(_LEFT_OUT):
            found[name] = value
    return found


def _ref_value(data: bytes) -> bytes:
    value = data.rstrip(b"\n\r\t ")
    if found := _SYMBOLIC.fullmatch(value):
        return b"ref: " + found[1]
    if not _OBJECT.fullmatch(value):
        raise Unusable("a ref makes no sense")
    return value


def _led_to(folder: OpenFolder, name: bytes, word: bytes, beside: str) -> str:
    """Where a small file leads: a path of its own, or one from where it lies."""
    data = _read(folder, name, _SMALL)
    if not data.startswith(word):
        raise Unusable(f"{name.decode()} leads nowhere")
    path = os.fsdecode(data[len(word) :].strip())
    if not path or "\0" in path:
        raise Unusable(f"{name.decode()} leads nowhere")
    return os.path.normpath(os.path.join(beside, path))


def _read(folder: OpenFolder, name: bytes, most: int) -> bytes:
    fd = folder.open_read(name)
    with open(fd, "rb", buffering=0, closefd=True) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Unusable(f"{name.decode('utf-8', 'replace')} is no file")
        found = []
        left = most + 1
        while left > 0 and (data := file.read(min(left, 16 << 20))):
            found.append(data)
            left -= len(data)
    if left <= 0:
        raise Unusable(f"{name.decode('utf-8', 'replace')} is too large")
    return b"".join(found)


def _stamp(found: list[tuple[bytes, os.stat_result]]) -> bytes:
    """What tells that nothing changed; empty while a change could hide in the clock's grain."""
    now = time.time_ns()
    if not all(keys.settled(st, now) for _, st in found):
        return b""
    return b"=" + b"\0".join(name + b"\0" + keys.pack(st) for name, st in found)


def _config(common: OpenFolder) -> dict[str, str]:
    """The few settings that say how a repository is stored."""
    try:
        lines = _read(common, b"config", _SMALL).decode("utf-8", "replace").splitlines()
    except (OSError, Unusable):
        return {}
    found, section = {}, ""
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            section = line[1:].partition("]")[0].strip().lower()
        elif section == "extensions":
            key, _, value = line.partition("=")
            found[f"extensions.{key.strip().lower()}"] = value.strip().strip('"').lower()
    return found


def above(root: str) -> str:
    """The folder whose repository a folder without one of its own lies in; empty where there is none."""
    here = os.path.dirname(root)
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        here, below = os.path.dirname(here), here
        if here == below:
            return ""


def left_to_git(tree: OpenFolder, root: str, path: bytes) -> str:
    """What is left in a folder that takeback cannot empty, as git's own part is never touched, and the command that
    would; empty where there is no such part."""
    shown = shlex.quote(os.fsdecode(path))
    try:
        with tree.descend(path.split(b"/")) as here:
            if stat.S_ISDIR(here.stat(b".git").st_mode):
                return f"a repository of its own: rm -rf {shown} removes it"
            leads = os.fsencode(_led_to(here, b".git", b"gitdir:", root))
    except (OSError, Unusable):
        return ""
    if b"/worktrees/" in leads:
        return f"a work tree: git worktree remove --force {shown} removes it"
    return f"a submodule: rm -rf {shown} removes it"


# -- states ------------------------------------------------------------------


def entry(value: bytes, order: int = 0) -> Entry:
    """A value as a path's state. The order, of a stash in its stack, is no part of its identity."""
    return Entry(FILE, 0o644, len(value), sha256(value).digest(), b"", b"", order, 0, 0)


def part_of(path: bytes) -> str:
    if path == HEAD:
        return "head"
    for prefix, name in ((REFS, "refs"), (INDEX, "index"), (STASH, "stash")):
        if path.startswith(prefix):
            return name
    return "merging"


# -- words -------------------------------------------------------------------


def called(path: bytes) -> str:
    """What a person calls a path of this domain: a branch by its name alone."""
    name = path.removeprefix(b".git/").decode("utf-8", "surrogateescape")
    for prefix, word in (("refs/heads/", ""), ("refs/tags/", "tag "), ("index/", "index: ")):
        if name.startswith(prefix):
            return word + name.removeprefix(prefix)
    if name.startswith("stash/"):
        return f"stash {name.removeprefix('stash/')[:7]}"
    return name


def amount(paths: Iterable[bytes]) -> str:
    """'HEAD, main, tag v1, 3 index entries': each by name, but for those of which there are many."""
    given = sorted(paths)
    staged = [path for path in given if path.startswith(INDEX)]
    named = [called(path) for path in given if not path.startswith(INDEX)]
    shown = [*named[:4], *([f"{len(named) - 4:,} more"] if len(named) > 4 else [])]
    if staged:
        shown.append(f"{len(staged):,} index entr{'y' if len(staged) == 1 else 'ies'}")
    return ", ".join(shown)


def value_told(value: bytes) -> str:
    """A ref's value in short: where HEAD points, or the first letters of an object's name."""
    value = value.strip()
    if value.startswith(b"ref: "):
        return called(b".git/" + value[5:])
    return value[:7].decode("ascii", "replace")
