"""Marks of values: they tell later whether a variable still has the value that somebody saw, and never which.

A mark is keyed by a random key beside the journal: a plain hash of a short password could be guessed by trying.
"""

from __future__ import annotations

import contextlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

_KEY_FILE, _KEY_BYTES = "marks.key", 32


class Marks:
    """Of one store; without a folder, or where nothing can be written, as long as this object lives."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._key = b""

    def of(self, values: Mapping[str, str]) -> dict[str, str]:
        """The mark of each value by its name; empty where it is."""
        return {name: self._mark(name, value) if value else "" for name, value in sorted(values.items())}

    def _mark(self, name: str, value: str) -> str:
        self._key = self._key or self._stored() or os.urandom(_KEY_BYTES)
        told = f"{name}\0{value}".encode("utf-8", "surrogateescape")
        return hmac.new(self._key, told, "sha256").hexdigest()

    def _stored(self) -> bytes:
        """The key of the store, made when it is first needed; empty where there can be none."""
        if self._folder is None:
            return b""
        path = self._folder / _KEY_FILE
        with contextlib.suppress(OSError):
            if len(_read(path)) != _KEY_BYTES:
                _make(path)
            key = _read(path)
            return key if len(key) == _KEY_BYTES else b""
        return b""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _make(path: Path) -> None:
    """Whole, for its owner alone; of several who make it at once, one does."""
    staging = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}.new")
    fd = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and len(_read(path)) != _KEY_BYTES:
            os.replace(staging, path)  # what was there is no key
            return
        try:
            os.link(staging, path)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            os.replace(staging, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(staging)
