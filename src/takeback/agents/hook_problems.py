"""What hooks could not do, kept beside the stores: a hook must not trouble its agent, and its owner must hear of it.

<home>/hooks.jsonl   one line each, newest last, secrets out; the last few hundred are kept
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from takeback.privacy import redact

FILE = "hooks.jsonl"
FAILED, NOTED = "failed", "noted"  # it could not capture or answer; it did what it should, and that is worth knowing
_KEPT = 500
_LARGEST = 256 << 10  # bytes of the file before it is cut to the lines that are kept
_LONGEST = 400  # characters of a text


class Record(NamedTuple):
    at: float
    result: str  # FAILED or NOTED
    agent: str
    event: str
    what: str
    root: str = ""  # the workspace, where one was found
    tool: str = ""


def append(home: Path, record: Record) -> None:
    """Adds a line; the same one again, right after, is told once. Silent where nothing can be written."""
    try:
        told = [_short(value) if isinstance(value, str) else value for value in record]
        line = json.dumps(dict(zip(Record._fields, told, strict=True))).encode() + b"\n"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        fd = os.open(home / FILE, flags, 0o600)
        try:
            size = os.fstat(fd).st_size
            if record.result == NOTED and _is_repeated(os.pread(fd, 4096, max(0, size - 4096)), line):
                return
            os.write(fd, line)
        finally:
            os.close(fd)
        if size > _LARGEST:
            _cut(home / FILE)
    except (OSError, ValueError, TypeError):
        return


def read(home: Path) -> list[Record]:
    """What is on record, oldest first; lines that make no sense are left out."""
    try:
        lines = (home / FILE).read_bytes().splitlines()[-_KEPT:]
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            body: dict[str, Any] = json.loads(line)
            record = Record(**{name: body[name] for name in Record._fields})
            if isinstance(record.at, (int, float)) and all(isinstance(value, str) for value in record[1:]):
                found.append(record)
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
    return found


def _short(told: str) -> str:
    clean = redact.text(told.encode("utf-8", "replace").decode())
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def _is_repeated(tail: bytes, line: bytes) -> bool:
    """Whether the newest line says the same, but for the time."""
    newest = tail.rstrip(b"\n").rpartition(b"\n")[2]
    return newest.partition(b", ")[2] == line.rstrip(b"\n").partition(b", ")[2]


def _cut(path: Path) -> None:
    kept = path.read_bytes().splitlines(keepends=True)[-_KEPT:]
    while len(kept) > 1 and sum(map(len, kept)) > _LARGEST // 2:
        kept = kept[len(kept) // 2 :]
    staging = path.with_name(f"{FILE}.{os.getpid()}.new")
    fd = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.writelines(kept)
    os.replace(staging, path)
