"""The files in which agents write down what became of their calls: one JSON object a line, the newest at the end. What
cannot be read says nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from takeback.system import regular_files

_READ = 4 << 20  # bytes from the end: what has just become of a call stands there


def last_lines(path: str) -> list[bytes]:
    """The first of them may be half a line, and the last one while it is being written."""
    try:
        return regular_files.read(path, _READ, last=True).split(b"\n")
    except (OSError, ValueError):
        return []


def told(path: str, *words: str) -> Iterator[Mapping[str, Any]]:
    """What is written there in lines that hold one of these words."""
    wanted = [word.encode("utf-8", "surrogatepass") for word in words]
    for line in last_lines(path):
        if any(word in line for word in wanted) and (read := said(line)):
            yield read


def said(line: bytes) -> Mapping[str, Any]:
    """Nothing where it is no table."""
    try:
        read = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def moment(stamp: object) -> float:
    """0 where it is no time."""
    try:
        return datetime.fromisoformat(stamp).timestamp() if isinstance(stamp, str) else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0
