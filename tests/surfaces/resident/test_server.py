"""The resident process from the inside: what keeps it from ending."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from takeback.agents.events import Reply
from takeback.system.processes import Process

pytest.importorskip("fcntl")
from takeback.surfaces.resident import server


def test_a_call_that_just_came_keeps_it_from_ending(runtime: Path, monkeypatch: pytest.MonkeyPatch):
    served = server.Server(runtime, "", dict(os.environ))
    monkeypatch.setattr(served, "_thread", lambda work: None)  # its thread has not run yet
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as asking:
        listening.bind(str(runtime / "s"))
        listening.listen()
        asking.connect(str(runtime / "s"))
        served._serve_next(listening)
    assert served._at_work


def test_a_call_over_http_keeps_it_from_ending(runtime: Path, monkeypatch: pytest.MonkeyPatch):
    served = server.Server(runtime, "", dict(os.environ))
    seen: list[bool] = []

    def answered(*_: object) -> Reply:
        seen.append(bool(served._at_work))
        return Reply()

    monkeypatch.setattr(server, "answer", answered)
    served._answer_web("claude", "", b"{}", "", Process(0, 0))
    assert seen == [True]
    assert not served._at_work
