"""Whether a path with `*`, `?` and `[…]` in it may be a certain file, or a folder above or below it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from .words import UNKNOWN

SAME, ABOVE, BELOW, APART = "same", "above", "below", ""


def covers(pattern: str, path: str, dots: bool = False) -> str:
    """How what a pattern names lies to a path, both from the root. To the shell no `*` matches a dot at the beginning
    of a name, unless it is told to (`dots`). A part of which nothing is known matches nothing."""
    wanted = [part for part in pattern.split("/") if part]
    there = [part for part in path.split("/") if part]
    if not all(_is_like(name, part, dots) for part, name in zip(wanted, there)):  # the shorter one decides
        return APART
    if len(wanted) == len(there):
        return SAME
    return ABOVE if len(wanted) < len(there) else BELOW


def is_name_like(name: str, pattern: str) -> bool:
    """As find's -name compares: dots are letters like others."""
    return fnmatchcase(name, pattern.replace("[^", "[!").replace(UNKNOWN, "*"))


def _is_like(name: str, pattern: str, dots: bool) -> bool:
    if name == pattern:
        return True
    if pattern == UNKNOWN or not any(mark in pattern for mark in ("*", "?", "[", UNKNOWN)):
        return False
    if name.startswith(".") and not pattern.startswith(".") and not dots:
        return False
    return is_name_like(name, pattern)
