"""What changed outside the project while a command ran, as far as it can be found: nothing there is captured.

Nobody tells a program without privilege who writes where. So the places where commands write most often are looked
through for what changed in that time, for a few seconds at most; others may have written there too.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_TICK = 10_000_000  # ns: the times of files may lag behind the clock by a tick of the kernel
_SECONDS = 3.0
_PATH = re.compile(r"(?:~|/)[^\s'\"`;|&<>()$]*")


class Elsewhere(NamedTuple):
    """Paths that changed, in order; whether all that was to be looked through was."""

    paths: tuple[str, ...]
    is_whole: bool


def places(environ: Mapping[str, str], argv: Iterable[str]) -> list[str]:
    """Where a command may have written: what it names by a whole path, temporary folders, the home folder."""
    home = environ.get("HOME", "")
    named = [word for arg in argv for word in _PATH.findall(arg)]
    named = [home + word[1:] if word.startswith("~") else word for word in named]
    usual = [environ.get("TMPDIR", ""), "/tmp", "/var/tmp", home]
    return [place for place in dict.fromkeys(map(os.path.realpath, filter(None, [*named, *usual]))) if place != "/"]


def changed(
    where: Iterable[str], leave_out: Iterable[str | Path], begun: int, ended: int, seconds: float = _SECONDS
) -> Elsewhere:
    """What changed between two moments in ns since 1970, but for what lies in the folders to be left out."""
    until = time.monotonic() + seconds
    out = frozenset(os.path.realpath(each) for each in leave_out)
    found: dict[str, None] = {}
    seen = set(_our_output())
    for place in where:
        if any(place == each or place.startswith(each.rstrip("/") + "/") for each in out):
            continue
        try:
            at = os.lstat(place)
        except OSError:
            continue
        if not stat.S_ISDIR(at.st_mode):
            found.update(dict.fromkeys([place] if _is_between(at.st_ctime_ns, begun, ended) else []))
            continue
        for path in _below(place, at.st_dev, out, seen, begun, ended, until):
            found[path] = None
    return Elsewhere(tuple(sorted(found)), time.monotonic() < until)


def _below(
    place: str, device: int, out: frozenset[str], seen: set[tuple[int, int]], begun: int, ended: int, until: float
) -> Iterator[str]:
    """Files that changed; of a folder in which something only went, or came empty, the folder."""
    folders = [place]
    while folders and time.monotonic() < until:
        folder = folders.pop(0)  # what lies high up first: that is where most is made
        try:
            at = os.lstat(folder)
            if folder in out or at.st_dev != device or (at.st_dev, at.st_ino) in seen:
                continue
            seen.add((at.st_dev, at.st_ino))
            with os.scandir(folder) as entries:
                inside = list(entries)
        except OSError:
            continue
        told = False
        for entry in inside:
            try:
                found = entry.stat(follow_symlinks=False)
                is_new = _is_between(found.st_ctime_ns, begun, ended)
                told = told or is_new
                if stat.S_ISDIR(found.st_mode):
                    folders.append(entry.path)
                elif is_new and (found.st_dev, found.st_ino) not in seen:
                    yield entry.path
            except OSError:
                continue
        if not told and folder != place and _is_between(at.st_mtime_ns, begun, ended):
            yield folder + "/"


def _our_output() -> Iterator[tuple[int, int]]:
    """The files that this program and the command print to."""
    for fd in (1, 2):
        try:
            found = os.fstat(fd)
        except OSError:
            continue
        yield found.st_dev, found.st_ino


def _is_between(at: int, begun: int, ended: int) -> bool:
    return begun - _TICK <= at <= ended + _TICK
