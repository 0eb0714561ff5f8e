"""A pytest plugin (-p tests.forking): every scan and every restore is shared with a second process, however small."""

from __future__ import annotations

import pytest

from takeback.domains import files
from takeback.look import scan

_ONE_PROCESS = ("test_11b",)  # swaps a folder between two steps, which two processes take at once


@pytest.fixture(autouse=True)
def second_process(request, monkeypatch):
    if not request.node.name.startswith(_ONE_PROCESS):
        monkeypatch.setattr(scan, "_FRONTIER", 1)
        monkeypatch.setattr(scan, "_WORTH_LOOKING", 1)
        monkeypatch.setattr(scan, "_WORTH_SHARING", 1)
        monkeypatch.setattr(files, "_WORTH_FORKING", 1)
        monkeypatch.setattr(files, "_WORTH_PACKING", 1)
