"""Where values of threads may lie beyond this machine: one seam. No store is loaded before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from takeback.errors import UsageError

if TYPE_CHECKING:
    from takeback.config.settings import Settings

NAMES = ("walrus",)


class StateStore(Protocol):
    """Keeps bytes by an id of its own choosing. May be asked by several threads at once."""

    name: str  # one word, kept beside each id, so that it is known later where to ask

    def put(self, data: bytes) -> str:
        """Stores it and says under which id; when this returns, the data is there to stay."""

    def get(self, blob_id: str, sha256: bytes) -> bytes:
        """The very bytes that were put, held against the caller's own digest; otherwise NotFound, Damaged or another
        TakebackError that names the blob."""

    def delete(self, blob_id: str) -> bool:
        """Whether it is gone now. A store that cannot delete says no, and keeps it."""

    # A store may also have `set_up(settings, environ, key)`, called when a workspace begins to use it: what was not
    # said when it was made is its owner's. `key` is where a key of its own lies, or will.


def from_settings(name: str, settings: Settings, environ: Mapping[str, str], key: str | Path = "") -> StateStore:
    """The store of this name, as its owner has set it up; `key` is the file of its key where the settings name none."""
    if name != "walrus":
        raise UsageError(f"{name!r} is no store for state", f"there is {', '.join(NAMES)}")
    from .walrus import Walrus

    return Walrus.from_settings(settings, environ, key)
