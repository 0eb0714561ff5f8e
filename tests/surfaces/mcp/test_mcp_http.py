"""The real `takeback mcp --http`: who gets in, and that all works once they are."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from clients import ERAS, Person, connected
from mcp.client.streamable_http import streamable_http_client

import takeback
from servers.payments import Payments

pytestmark = pytest.mark.anyio


class Served(NamedTuple):
    url: str
    port: int
    token: str
    process: subprocess.Popen[bytes]

    def ask(self, method: str = "POST", path: str = "/mcp", **headers: str) -> int:
        """A request with just these headers; `Host` and a good token unless given. Answers the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) if method == "POST" else ""
        sent = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}", **headers}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Accept", "application/json, text/event-stream")
        connection.endheaders(body.encode())
        status = connection.getresponse().status
        connection.close()
        return status


@contextmanager
def serving(folder: Path, env: dict[str, str]) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "takeback", "mcp", "--http"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env},
    )  # fmt: skip
    assert process.stderr is not None and process.stdout is not None
    line = process.stderr.readline().decode()
    found = re.fullmatch(r"takeback mcp: (http://127\.0\.0\.1:(\d+)/mcp) token: (\S+)\n", line)
    assert found, line
    yield Served(found[1], int(found[2]), found[3], process)
    process.send_signal(signal.SIGINT)
    process.wait(30)
    assert process.stdout.read() == b""
    assert b"Traceback" not in process.stderr.read()


@pytest.fixture
def served(work: Path) -> Iterator[Served]:
    with serving(work, {}) as found:
        yield found


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all that only looks at who gets in."""
    folder = tmp_path_factory.mktemp("door")
    with serving(folder, {"TAKEBACK_HOME": str(folder / "home")}) as found:
        yield found


def through(served: Served) -> Any:
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=60)
    return streamable_http_client(served.url, http_client=client)


async def test_a_client_with_the_token_works_as_over_stdio(
    served: Served, work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    person = Person()
    async with connected(through(served), era, person) as calls:
        assert calls.client.protocol_version == ERAS[era]
        await calls.ok("checkpoint", label="before")
        await calls.ok("record_http", **charge())
        (work / "README.md").write_text("changed\n")
        assert (await calls.ok("rollback"))["whole"]
    assert len(person.asked) == 1 and len(payments.refunds) == 1 and (work / "README.md").read_text() == "hello\n"


async def test_a_client_without_elicitation_gets_the_plan(
    served: Served, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    async with connected(through(served), era) as calls:
        await calls.ok("record_http", **charge())
        proposed = await calls.ok("compensate", execute=True)
        assert not proposed["applied"] and f"takeback approve {proposed['plan']['id']}" in calls.text
    assert not payments.refunds


async def test_two_clients_at_once(served: Served, work: Path) -> None:
    async with connected(through(served), "legacy") as one, connected(through(served), "auto") as two:
        await one.ok("checkpoint", label="of one")
        await two.ok("checkpoint", label="of two")
        assert {"of one", "of two"} <= {r["label"] for r in (await one.ok("log"))["rows"]}


async def test_whoever_started_it_may_still_approve(served: Served, work: Path) -> None:
    """Over HTTP the parent is the owner's shell, not an agent."""
    async with connected(through(served)) as calls:
        await calls.ok("status")
    with takeback.open(work) as ws:
        assert not ws.history().sessions


def test_it_listens_on_this_machine_alone(door: Served) -> None:
    hexadecimal = f"{door.port:04X}"
    rows = (
        [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        if os.path.exists("/proc/net/tcp")
        else []
    )
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(":" + hexadecimal)]
    assert listening == [f"0100007F:{hexadecimal}"]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer x{token}",
        "Bearer \u00e9",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_without_the_token_it_is_401(door: Served, method: str, given: str) -> None:
    assert door.ask(method, Authorization=given.format(token=door.token)) == 401


def test_every_path_wants_the_token(door: Served) -> None:
    for path in ("/", "/mcp", "/mcp/", "/health", "/.well-known/oauth-protected-resource"):
        assert door.ask("GET", path, Authorization="Bearer wrong") == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "localhost.evil:{port}",
    ],
)
def test_a_foreign_host_is_403(door: Served, host: str) -> None:
    assert door.ask(Host=host.format(port=door.port)) == 403


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "http://evil.example:{port}",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "file://",
        "x",
    ],
)
def test_a_foreign_origin_is_403(door: Served, origin: str) -> None:
    assert door.ask(Origin=origin.format(port=door.port)) == 403
    assert door.ask(Origin=origin.format(port=door.port), Authorization="Bearer wrong") == 403


@pytest.mark.parametrize("headers", [{}, {"Host": "localhost:{port}"}, {"Origin": "http://127.0.0.1:{port}"}])
def test_from_here_with_the_token_one_gets_in(door: Served, headers: dict[str, str]) -> None:
    status = door.ask(**{name: value.format(port=door.port) for name, value in headers.items()})
    assert status not in (401, 403)


def test_a_port_in_use_is_told(door: Served, work: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "takeback", "mcp", "--http", "--port", str(door.port)],
        cwd=work, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and b"--port" in done.stderr and b"Traceback" not in done.stderr


def test_tokens_differ() -> None:
    from takeback.surfaces.mcp.auth import new_token

    assert len({new_token() for _ in range(100)}) == 100 and len(new_token()) >= 32
