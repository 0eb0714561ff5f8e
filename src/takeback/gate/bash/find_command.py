"""What find would do to a file that matters: its expression, evaluated for one path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .globs import is_name_like
from .words import UNKNOWN, named

ACTIONS = named("-delete -exec -execdir -ok -okdir -print -print0 -ls -fprint -fprint0 -fls -printf -fprintf -quit")
_RUNS = named("-exec -execdir -ok -okdir")
_NO_VALUE = named(
    "-empty -true -false -executable -readable -writable -nouser -nogroup -depth -d -mount -xdev -daystart -follow "
    "-noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race -prune -delete -print -print0 -ls -quit"
)
_TWO_VALUES = named("-fprintf")


class Path(NamedTuple):
    """A file or folder as find comes by it."""

    shown: str  # with the place where it began before it
    depth: int
    is_folder: bool


class Sight(NamedTuple):
    """What may be done to it: the positions of actions in the expression, and whether find goes no deeper."""

    actions: tuple[int, ...]
    pruned: bool


def parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Where find begins, and its expression."""
    at = 1
    while at < len(words) and (words[at] in ("-H", "-L", "-P") or not words[at].startswith(("-", "(", "!", ","))):
        at += 1
    return [w for w in words[1:at] if w not in ("-H", "-L", "-P")] or ["."], list(words[at:])


def below(place: str, folder: str, files: Sequence[tuple[str, bool]]) -> Iterator[list[Path]]:
    """Each file or folder that lies below a place, or is it, with the folders on the way to it before it."""
    base = place if place == "/" else place.rstrip("/")
    for file, is_folder in files:
        if file != folder and not file.startswith(folder.rstrip("/") + "/"):
            continue
        parts = [part for part in file[len(folder) :].split("/") if part]
        way = [Path(place, 0, True)] if parts else []
        for depth in range(1, len(parts)):
            way.append(Path(f"{base}/{'/'.join(parts[:depth])}", depth, True))
        yield [*way, Path(f"{base}/{'/'.join(parts)}" if parts else place, len(parts), is_folder)]


def reached(tests: Sequence[str], way: Sequence[Path]) -> dict[int, list[Path]]:
    """By the position of an action: what of a way it may be done to."""
    deepest = _number(tests, "-maxdepth", 1 << 30)
    first = _number(tests, "-mindepth", 0)
    found: dict[int, list[Path]] = {}
    for path in way:
        if path.depth > deepest:
            break
        if path.depth < first:
            continue
        sight = _Reading(tests, path).all()
        for action in sight.actions:
            found.setdefault(action, []).append(path)
        if sight.pruned:
            break
    return found


def _number(tests: Sequence[str], option: str, default: int) -> int:
    given = [tests[at + 1] for at, word in enumerate(tests[:-1]) if word == option]
    return int(given[-1]) if given and given[-1].isdecimal() else default


class _Reading:
    """The expression for one path. A test of which nothing is known may be either."""

    def __init__(self, tests: Sequence[str], path: Path) -> None:
        self.tests, self.path, self.at = tests, path, 0
        self.actions: list[int] = []
        self.pruned = False

    def all(self) -> Sight:
        self._either(True)
        while self.at < len(self.tests):  # a parenthesis too many: go on behind it
            self.at += 1
            self._either(True)
        if not any(word in ACTIONS for word in self.tests):
            self.at = 0
            if self._either(False) is not False:
                self.actions.append(-1)  # it prints what fits
        return Sight(tuple(dict.fromkeys(self.actions)), self.pruned)

    def _peek(self) -> str:
        return self.tests[self.at] if self.at < len(self.tests) else ""

    def _either(self, acts: bool) -> bool | None:
        value = self._both(acts)
        while self._peek() in ("-o", "-or", ","):
            comma = self._peek() == ","
            self.at += 1
            right = self._both(acts and (comma or value is not True))
            value = right if comma else (True if True in (value, right) else None if None in (value, right) else False)
        return value

    def _both(self, acts: bool) -> bool | None:
        value = self._not(acts)
        while self._peek() and self._peek() not in ("-o", "-or", ",", ")"):
            if self._peek() in ("-a", "-and"):
                self.at += 1
                continue
            right = self._not(acts and value is not False)
            value = False if False in (value, right) else None if None in (value, right) else True
        return value

    def _not(self, acts: bool) -> bool | None:
        if self._peek() in ("!", "-not"):
            self.at += 1
            value = self._not(acts)
            return None if value is None else not value
        if self._peek() == "(":
            self.at += 1
            value = self._either(acts)
            self.at += self._peek() == ")"
            return value
        return self._test(acts)

    def _test(self, acts: bool) -> bool | None:
        position, word = self.at, self._peek()
        self.at += 1
        if word in _RUNS:
            while self._peek() and self._peek() not in (";", "+"):
                self.at += 1
            self.at += 1
            value = ""
        elif word not in _NO_VALUE and word.startswith("-"):
            value = self._peek()
            self.at += 2 if word in _TWO_VALUES else 1
        else:
            value = ""
        if word in ACTIONS:
            if acts:
                self.actions.append(position)
            return None if word in _RUNS else True
        if word == "-prune":
            self.pruned = self.pruned or acts
            return True
        return self._fits(word, value)

    def _fits(self, word: str, value: str) -> bool | None:
        shown, lower = self.path.shown, word[2:] in ("name", "path", "wholename", "regex") and word[1:2] == "i"
        if lower:
            word, value, shown = f"-{word[2:]}", value.lower(), shown.lower()
        if word == "-name":
            return is_name_like(shown.rstrip("/").rpartition("/")[2] or shown, value)
        if word in ("-path", "-wholename"):
            return is_name_like(shown, value)
        if word == "-regex":
            if len(value) > 200 or re.search(r"[*+?}]\\?\)|\)[*+{]", value):
                return None  # it might take for ever to compare
            try:
                return re.fullmatch(re.sub(r"\\([|(){}])", r"\1", value), shown) is not None
            except re.error:
                return None
        if word == "-type":
            return None if UNKNOWN in value else ("d" if self.path.is_folder else "f") in value.split(",")
        if word in ("-empty", "-false"):
            return False
        if word in ("-true", "-maxdepth", "-mindepth", "-depth", "-d", "-xdev", "-mount", "-regextype"):
            return True
        return None
