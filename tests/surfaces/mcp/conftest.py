"""The server with a client of the SDK, in one process or two, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from clients import ERAS

import takeback
from sampling import WHOLE
from servers.payments import Payments
from takeback.surfaces.mcp.server import Server

_DIFFER = ("test_mcp_approval", "test_mcp_http", "test_mcp_agents")  # who asks, and who is asked, is of an era


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Where the eras differ every test is held in each of them; what the tools do is held in one or the other."""
    if "era" in metafunc.fixturenames:
        differs = metafunc.module.__name__.rpartition(".")[2] in _DIFFER
        one = list(ERAS)[crc32(metafunc.function.__name__.encode()) % len(ERAS)]
        metafunc.parametrize("era", list(ERAS) if differs or WHOLE else [one])


@pytest.fixture
def work(project: Path) -> Path:
    """A protected project of a few files."""
    (project / "src").mkdir()
    (project / "src/auth.py").write_text("one\ntwo\nthree\n")
    (project / "README.md").write_text("hello\n")
    takeback.open(project, create=True).close()
    return project


@pytest.fixture
def server(work: Path) -> Server:
    return Server(work, os.environ)


@pytest.fixture
def payments() -> Iterator[Payments]:
    found = Payments().start()
    yield found
    found.stop()


@pytest.fixture
def charge(payments: Payments) -> Callable[[], dict[str, Any]]:
    """Charges a card, and gives what record_http wants to know of that."""

    def make(amount: int = 500) -> dict[str, Any]:
        data = json.dumps({"amount": amount}).encode()
        asked = urllib.request.Request(f"{payments.url}/v1/charges", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as answer:
            return {
                "method": "POST",
                "url": f"{payments.url}/v1/charges",
                "status": answer.status,
                "response_headers": dict(answer.headers),
                "response_body": json.loads(answer.read()),
                "inverse_method": "POST",
                "inverse_url": f"{payments.url}/v1/refunds",
                "inverse_body": {"charge": "{response.body.id}"},
            }

    return make


@pytest.fixture
def configure(own_home: Path) -> Callable[[str], None]:
    """Writes the user's own configuration."""

    def write(text: str) -> None:
        folder = own_home / "config/takeback"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text)

    return write
