"""Workspaces that stay open between calls, each with a watcher that knows what changed."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from takeback.config.settings import Settings
from takeback.workspace import Workspace, open_workspace

_UNUSED = 600.0  # seconds until a workspace that nobody asks for is closed
_MOST = 16  # workspaces at a time


class _Kept:
    def __init__(self, workspace: Workspace, stamp: object) -> None:
        self.workspace = workspace
        self.stamp = stamp  # of its store: another one may take its place
        self.users = 0
        self.used = time.monotonic()


class Kept:
    """One workspace per root and settings: a call under other settings, or in another store, gets its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Path, list[_Kept]] = {}

    @contextmanager
    def open(self, root: Path, settings: Settings, environ: Mapping[str, str]) -> Iterator[Workspace]:
        held, is_new = self._take(root, settings, environ)
        try:
            if is_new:
                held.workspace.keep_watch()
                gc.freeze()  # the known tree is there to stay
            yield held.workspace
        except BaseException:
            self._drop(root, held)  # whatever went wrong: the next call opens it anew
            raise
        finally:
            self._leave(held)

    def _take(self, root: Path, settings: Settings, environ: Mapping[str, str]) -> tuple[_Kept, bool]:
        with self._lock:
            for held in self._kept.get(root, []):
                if held.workspace.settings == settings and held.stamp == _stamp(held.workspace):
                    held.users += 1
                    return held, False
            workspace = open_workspace(root, settings, environ=environ)
            held = _Kept(workspace, _stamp(workspace))
            held.users = 1
            self._kept.setdefault(root, []).append(held)
            return held, True

    def _leave(self, held: _Kept) -> None:
        with self._lock:
            held.users -= 1
            held.used = time.monotonic()
            is_last = not held.users and not any(held in group for group in self._kept.values())
        if is_last:
            held.workspace.close()

    def _drop(self, root: Path, held: _Kept) -> None:
        with self._lock:
            if held in self._kept.get(root, []):
                self._kept[root].remove(held)

    def tend(self) -> None:
        """Between calls: reads what watchers were told, and closes what nobody uses."""
        now = time.monotonic()
        with self._lock:
            unused = sorted((held for group in self._kept.values() for held in group if not held.users), key=_used)
            many = len(unused) - _MOST
            over = [held for n, held in enumerate(unused) if n < many or now - held.used > _UNUSED]
            for root, group in list(self._kept.items()):
                self._kept[root] = [held for held in group if held not in over]
                if not self._kept[root]:
                    del self._kept[root]
            staying = [held.workspace for group in self._kept.values() for held in group]
        for held in over:
            held.workspace.close()
        if over:
            gc.unfreeze()
            gc.collect()
        for workspace in staying:
            workspace.tend()

    def roots(self) -> list[tuple[str, str]]:
        """Each root that is open, and how it is watched."""
        with self._lock:
            held = [held.workspace for group in self._kept.values() for held in group]
        return [(str(w.root), w.observer.suspects.how if w.observer.suspects else "") for w in held]

    def close(self) -> None:
        with self._lock:
            held = [held for group in self._kept.values() for held in group]
            self._kept.clear()
        for one in held:
            one.workspace.close()


def _used(held: _Kept) -> float:
    return held.used


def _stamp(workspace: Workspace) -> object:
    """Changes when another store takes the place of an open one: after init, a move, a repair, a restored backup."""
    assert workspace.store.folder is not None
    found = []
    for name in ("workspace.json", "journal.db"):
        try:
            st = (workspace.store.folder / name).stat()
        except OSError:
            return None
        found.append((st.st_dev, st.st_ino, st.st_mtime_ns if name == "workspace.json" else 0))
    return tuple(found)
