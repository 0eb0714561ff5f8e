"""What protect put into files, kept in takeback's own folder, so that unprotect gives each one back byte for byte.

Of what others wrote nothing is kept: only our own text, where it stood, and the hash of the file as we left it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from takeback.config.agents_own_files import record_of
from takeback.errors import TakebackError

from .document import Made, Span


class Record(NamedTuple):
    path: str  # the file itself, behind any link
    after: str  # its hash, as we left it
    absent: bool  # whether it was not there before
    spans: tuple[Span, ...] = ()
    made: Made = frozenset()
    folders: tuple[str, ...] = ()  # that were made for it, outermost first


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def load(home: Path, path: str) -> Record | None:
    try:
        found = json.loads(record_of(home, path).read_bytes())
        if found["path"] != path:
            return None
        spans = tuple(Span(int(at), str(text)) for at, text in found["spans"])
        made = frozenset(tuple(map(str, where)) for where in found["made"])
        return Record(path, found["after"], bool(found["absent"]), spans, made, tuple(map(str, found["folders"])))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep(home: Path, record: Record) -> None:
    place = record_of(home, record.path)
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staging = place.with_name(f"{place.name}.{os.getpid()}.new")
        with open(os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({**record._asdict(), "made": sorted(record.made)}, file)
        os.replace(staging, place)
    except OSError as error:
        raise TakebackError(f"{place} cannot be written ({error.strerror})", "mend its permissions") from error


def forget(home: Path, path: str) -> None:
    record_of(home, path).unlink(missing_ok=True)
