"""What keeps protect's files out of commits: lines in the repository's own info/exclude, which nobody commits.

    # >>> takeback protect shop-1a2b…
    /.claude/settings.local.json
    # <<< takeback protect shop-1a2b…

One block for each protected folder: worktrees of a repository share the file. What the repository tracks already is
left alone, and said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from takeback.domains.git import index_file
from takeback.store.layout import folder_name
from takeback.system import regular_files

from . import records, writing
from .changes import Change
from .document import Span
from .records import Record

_LARGEST = 4096  # bytes of a file that only leads elsewhere


class Excluded(NamedTuple):
    """What becomes of the file, and the paths that the repository has in its commits already."""

    change: Change
    tracked: tuple[str, ...] = ()


class _Repository(NamedTuple):
    top: Path  # the working tree
    own: Path  # where its index is
    common: Path  # where info/exclude is


def protecting(root: Path, home: Path, paths: Iterable[Path]) -> Excluded | None:
    """The lines for these files of a project, beside those that are there; None where there is no repository."""
    repository = _repository(root)
    if repository is None:
        return None
    wanted, tracked = [], []
    known = _tracked(repository)
    for path in paths:
        if not path.is_relative_to(root):
            continue
        name = path.relative_to(repository.top).as_posix()
        if name in known:
            tracked.append(name)
        else:
            wanted.append(_pattern(name))
    return Excluded(_changed(repository, root, home, wanted, ()), tuple(tracked))


def unprotecting(root: Path, home: Path, paths: Iterable[Path] | None) -> Excluded | None:
    """Without the lines for these files; without all of them for None."""
    repository = _repository(root)
    if repository is None:
        return None
    gone = None
    if paths is not None:
        gone = [_pattern(p.relative_to(repository.top).as_posix()) for p in paths if p.is_relative_to(repository.top)]
    return Excluded(_changed(repository, root, home, (), gone))


def _changed(
    repository: _Repository, root: Path, home: Path, wanted: Sequence[str], gone: Sequence[str] | None
) -> Change:
    found = writing.read(repository.common / "info/exclude")
    name = f"takeback protect {folder_name(root)}"
    key = f"{found.real}#{name}"
    old = records.load(home, key)
    text = (found.data or b"").decode("utf-8", "surrogateescape")
    start, end = f"# >>> {name}", f"# <<< {name}"
    block = re.search(rf"^{re.escape(start)}\r?\n(.*?)^{re.escape(end)}(?:\r?\n|\Z)", text, re.MULTILINE | re.DOTALL)
    there = block[1].splitlines() if block else []
    put_in = old.spans[0].text if old is not None and old.spans else ""
    if put_in and put_in in text:
        before = text.replace(put_in, "", 1)  # byte for byte, with the line end that was put before it
    else:
        before = text[: block.start()] + text[block.end() :] if block else text
    lines = [] if gone is None else [line for line in dict.fromkeys((*there, *wanted)) if line not in gone]
    absent = old.absent if old is not None else found.data is None
    folders = old.folders if old is not None else ()
    if not lines:
        after = None if absent and not before else before.encode("utf-8", "surrogateescape")
        return Change(found, found.data if not block else after, None, folders, old=old, key=key)
    newline = "\r\n" if "\r\n" in before else "\n"
    added = (newline if before and not before.endswith("\n") else "") + newline.join([start, *lines, end, ""])
    data = (before + added).encode("utf-8", "surrogateescape")
    if lines == there and put_in and put_in in text:
        return Change(found, found.data, old, folders, old=old, key=key)
    span = Span(len(before), added)
    return Change(found, data, Record(key, records.digest(data), absent, (span,), folders=folders), folders, old=old,
                  key=key)  # fmt: skip


def _pattern(name: str) -> str:
    """A path below the working tree in the syntax of .gitignore; of commands the folder that is all ours."""
    folder, _, _ = name.rpartition("/")
    if folder.endswith("commands/takeback"):
        name = f"{folder}/"
    said = re.sub(r"([\\*?\[\]])", r"\\\1", name)
    return "/" + (said[:-1] + "\\ " if said.endswith(" ") else said)


def _repository(root: Path) -> _Repository | None:
    """The repository that a folder lies in: .git may be a file that leads to it, in worktrees and submodules."""
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)
    if top is None:
        return None
    own = top / ".git"
    if own.is_file():
        led = _line(own)
        if not led.startswith("gitdir:"):
            return None
        own = Path(os.path.normpath(top / led.removeprefix("gitdir:").strip()))
    common = Path(os.path.normpath(own / (_line(own / "commondir") or ".")))
    return _Repository(top, own, common) if (common / "HEAD").is_file() or (own / "HEAD").is_file() else None


def _line(file: Path) -> str:
    try:
        return os.fsdecode(regular_files.read(file, _LARGEST)).strip()
    except OSError:
        return ""


def _tracked(repository: _Repository) -> set[str]:
    """What is in its index; nothing, where that cannot be read."""
    try:
        data = (repository.own / "index").read_bytes()
        config = (repository.common / "config").read_bytes().lower()
    except OSError:
        return set()
    width = 32 if re.search(rb"objectformat\s*=\s*sha256", config) else 20
    try:
        return {os.fsdecode(name) for name in index_file.parse(data, width).states}
    except ValueError:
        return set()
