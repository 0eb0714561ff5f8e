"""A configuration file: its keys with their values, and the line of each for a message. TOML.

A run without configuration never loads this.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takeback.errors import UsageError

if TYPE_CHECKING:
    from .settings import Setting

_LARGEST_FILE = 1_000_000


def entries(path: Path, known: Mapping[str, Setting]) -> Iterator[tuple[str, Any, str]]:
    """(dotted key, value, where it stands) of every known setting in a file; whatever else is there is an error."""
    text = _read_text(path)
    if text:
        for key, value in _flatten(_parse_toml(path, text), path, text, known):
            yield key, value, _place(path, text, key)


def _read_text(path: Path) -> str:
    """What a configuration file says; never waits on a pipe or swallows a device."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        if os.path.islink(path):
            raise UsageError(f"{path} is a link to nowhere", hint="point it to a file or remove it") from None
        return ""
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError(f"{path} is not a regular file", hint="put a TOML file there or remove it")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(fd)
    if len(data) > _LARGEST_FILE:
        raise UsageError(f"{path} is larger than any configuration", hint="make it smaller or remove it")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}, line {line}: not UTF-8 text", hint="save the file as UTF-8") from None


def _unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot read {path}: {error.strerror}", hint="make it readable or remove it")


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        lines = text.split("\n")
        found = re.search(r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)$", str(error))
        number = int(found[1] or len(lines)) if found else 1
        key = lines[number - 1].partition("=")[0].strip() if "=" in lines[number - 1] else ""
        reason = str(error)[: found.start()] if found else str(error)
        raise UsageError(
            f"{path}, line {number}{f', {key}' if key else ''}: {reason}",
            hint="correct that line; the format is TOML",
        ) from None


def _flatten(
    table: dict[str, Any], path: Path, text: str, known: Mapping[str, Setting], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = prefix + name
        is_table = any(one.startswith(key + ".") for one in known)
        if key in known and is_table and isinstance(value, dict):  # a table of its own, with settings in it
            inner = {n: v for n, v in value.items() if f"{key}.{n}" in known}
            yield from _flatten(inner, path, text, known, key + ".")
            if len(inner) < len(value):
                yield key, {n: v for n, v in value.items() if n not in inner}
        elif is_table and isinstance(value, dict):
            yield from _flatten(value, path, text, known, key + ".")
        elif is_table:
            raise UsageError(
                f"{_place(path, text, key)} must be a table, not {shown(value)}",
                hint=f"write [{key}] above it",
            )
        elif key in known and not known[key].in_files:
            raise UsageError(f"{_place(path, text, key)} cannot be set in a file", hint=f"set {known[key].env} instead")
        elif key in known:
            yield key, value
        else:
            line = _line_of(text, key)
            where = f"{path}, line {line}" if line else str(path)
            siblings = {one.removeprefix(prefix) for one in known if one.startswith(prefix)}
            raise UsageError(
                f"unknown setting {key} in {where}{did_you_mean(name, siblings)}",
                hint="correct or remove it; takeback config lists the settings",
            )


def _place(path: Path, text: str, key: str) -> str:
    line = _line_of(text, key)
    return f"{path}, line {line}: {key}" if line else f"{path}: {key}"


def _line_of(text: str, key: str) -> int | None:
    """The line on which a key or table is written, as far as a plain look can tell: tomllib does not say."""
    table = ""
    for number, line in enumerate(text.replace('"', "").split("\n"), 1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            here = table = header[1] + "."
        elif written := re.match(r"\s*([^=#]+?)\s*=", line):
            here = f"{table}{written[1]}."
        else:
            continue
        if here.startswith(key + "."):
            return number
    return None


def did_you_mean(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def shown(value: Any) -> str:
    """A value as it would be written, cut short."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
