"""A past that looks the same every time: its own clock, ids that count, one time zone."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import takeback
from takeback.workspace import Workspace

MOMENT = 1_780_000_000.0  # 2026-05-28 20:26:40


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], Workspace]]:
    """Opens workspaces whose clock moves a minute at a time, and whose ids are always the same."""
    counter = itertools.count()
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    def urandom(size: int) -> bytes:
        return hashlib.sha256(str(next(counter)).encode()).digest()[:size]

    monkeypatch.setattr("takeback.model.ids.os", SimpleNamespace(urandom=urandom))
    clock = Clock()

    def opened(root: Path) -> Workspace:
        ws = takeback.open(root, create="state")
        ws.clock = ws.observer.clock = clock
        return ws

    opened.clock = clock  # type: ignore[attr-defined]
    yield opened
    monkeypatch.undo()
    time.tzset()


class Clock:
    def __init__(self) -> None:
        self.now = MOMENT

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float = 60) -> None:
        self.now += seconds
