"""HTTP hooks: answered on loopback, and only for who knows the token and is no web page."""

from __future__ import annotations

import http.client
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.surfaces.resident import web

from .conftest import Hooks, until


class Endpoint:
    def __init__(self, hooks: Hooks, port: int) -> None:
        self.hooks = hooks
        self.port = port
        self.token = (hooks.runtime / "takeback/token").read_text().strip()

    def send(
        self, body: bytes, path: str = "/claude", method: str = "POST", without: tuple[str, ...] = (), **headers: str
    ) -> tuple[int, bytes]:
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if name not in without:
                line.putheader(name, value)
        line.endheaders(body)
        answer = line.getresponse()
        found = answer.status, answer.read()
        line.close()
        return found

    def event(self, name: str, **what: Any) -> bytes:
        common = {"session_id": "s", "transcript_path": "/x", "cwd": str(self.hooks.project)}
        return json.dumps({**common, "hook_event_name": name, **what}).encode()

    def before(self, key: str) -> bytes:
        return self.event("PreToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_use_id=key)

    def after(self, key: str) -> bytes:
        return self.event("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_use_id=key)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        found: int = line.getsockname()[1]
    monkeypatch.setenv("TAKEBACK_HOOKS_HTTP_PORT", str(found))
    return found


@pytest.fixture
def endpoint(hooks: Hooks, port: int) -> Iterator[Endpoint]:
    hooks.ask("SessionStart")
    hooks.up()
    until((hooks.runtime / "takeback/token").exists)
    yield Endpoint(hooks, port)


def test_a_call_is_captured(endpoint: Endpoint):
    code, said = endpoint.send(endpoint.before("one"))
    assert code == 200
    assert not said or isinstance(json.loads(said), dict)
    (endpoint.hooks.project / "src/a").write_text("2\n")
    assert endpoint.send(endpoint.after("one"))[0] == 200
    assert endpoint.hooks.changed() == [({"src/a"}, {"one"})]


def test_it_answers_as_soon_as_the_hook_that_started_it_is_over(hooks: Hooks, port: int):
    hooks.ask("SessionStart")
    endpoint = Endpoint(hooks, port)  # the prompt comes at once, and nobody would ask a second time
    assert endpoint.send(endpoint.event("UserPromptSubmit", prompt="build"))[0] == 200


def test_a_call_begun_over_http_is_ended_by_a_spawned_hook(endpoint: Endpoint):
    endpoint.hooks.session = "s"
    endpoint.send(endpoint.before("one"))
    (endpoint.hooks.project / "src/a").write_text("2\n")
    endpoint.hooks.after("one")
    assert endpoint.hooks.changed() == [({"src/a"}, {"one"})]


def test_a_call_of_an_agent_that_was_killed_is_closed(endpoint: Endpoint):
    if not Path("/proc/net/tcp").exists():
        pytest.skip("reads /proc")
    said = [endpoint.event("UserPromptSubmit", prompt="build").decode(), endpoint.before("one").decode()]
    script = (
        "import http.client, json, sys, time\n"
        "for said in json.loads(sys.argv[3]):\n"
        "    line = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
        "    line.request('POST', '/claude', said, {'Authorization': 'Bearer ' + sys.argv[2]})\n"
        "    assert line.getresponse().status == 200\n"
        "print('asked', flush=True)\n"
        "time.sleep(60)\n"
    )
    argv = [sys.executable, "-c", script, str(endpoint.port), endpoint.token, json.dumps(said)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None and agent.stdout.readline() == b"asked\n"
        with takeback.open(endpoint.hooks.project) as ws:
            ws.checkpoint("while it works")
            assert endpoint.hooks.calls() == [("one", False)]
            agent.kill()
            agent.wait()
            ws.checkpoint("after")
    assert endpoint.hooks.calls() == [("one", True)]


def test_a_port_that_is_set_later_is_listened_on_at_the_next_start(hooks: Hooks, monkeypatch: pytest.MonkeyPatch):
    hooks.before("one")
    hooks.up()
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
        line.listen()
        monkeypatch.setenv("TAKEBACK_HOOKS_HTTP_PORT", str(port))
        assert f"not answered, 127.0.0.1:{port} cannot be had" in started(hooks)
    assert f"answered on 127.0.0.1:{port}; the token is in {hooks.runtime}/takeback/token" in started(hooks)
    endpoint = Endpoint(hooks, port)
    assert endpoint.send(endpoint.before("two"))[0] == 200


def started(hooks: Hooks) -> str:
    argv = [sys.executable, "-m", "takeback", "resident", "start"]
    return subprocess.run(argv, cwd=hooks.project, check=True, capture_output=True, text=True).stdout


def test_who_asks_once_and_ends_is_not_the_session():
    askers = web.Askers()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        own = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", own)) as line:
            port = line.getsockname()[1]
            assert askers.process("s", port, own).pid == 0
            if Path("/proc/net/tcp").exists():
                assert askers.process("s", port, own).pid == os.getpid()
            assert askers.process("another", port, own).pid == 0
            assert askers.process("", port, own).pid == 0


def test_the_token_is_its_users_alone(endpoint: Endpoint):
    path = endpoint.hooks.runtime / "takeback/token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(endpoint.token) >= 40


REFUSED: list[tuple[int, dict[str, Any]]] = [
    (401, {"Authorization": "Bearer wrong"}),
    (401, {"Authorization": ""}),
    (401, {"without": ("Authorization",)}),
    (403, {"Host": "evil.example:80"}),
    (403, {"Host": "127.0.0.1:1"}),
    (403, {"Host": "evil.example:{port}"}),
    (403, {"without": ("Host",)}),
    (403, {"Origin": "http://127.0.0.1:{port}"}),
    (403, {"Origin": "null"}),
    (403, {"Sec_Fetch_Site": "same-origin"}),
    (404, {"path": "/nobody"}),
    (411, {"without": ("Content-Length",)}),
    (411, {"Content_Length": "-1"}),
    (413, {"Content_Length": str(1 << 40)}),
    (501, {"method": "GET"}),
    (501, {"method": "OPTIONS"}),
    (501, {"method": "PUT"}),
]


def test_who_is_refused(endpoint: Endpoint):
    for code, given in REFUSED:
        asked = {k: v.format(port=endpoint.port) if isinstance(v, str) else v for k, v in given.items()}
        if "Content_Length" in asked:
            asked["without"] = ("Content-Length",)
            asked["content_length"] = asked.pop("Content_Length")
        assert endpoint.send(endpoint.before("one"), **asked)[0] == code, given
    assert endpoint.hooks.calls() == []


def test_what_makes_no_sense_harms_nobody(endpoint: Endpoint):
    assert endpoint.send(b"no json")[0] == 200
    assert endpoint.send(b"[]")[0] == 200
    assert endpoint.send(b"")[0] == 200
    assert endpoint.send(endpoint.before("one"))[0] == 200
    assert endpoint.hooks.calls() == [("one", False)]


def test_it_listens_on_loopback_alone(endpoint: Endpoint):
    if not Path("/proc/net/tcp").exists():
        pytest.skip("reads /proc")
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == endpoint.port]
    assert [address.split(":")[0] for address in listening] == ["0100007F"]


def test_nothing_listens_unless_it_is_asked_for(hooks: Hooks):
    if not Path("/proc/net/tcp").exists():
        pytest.skip("reads /proc")
    hooks.before("one")
    found = hooks.up()
    assert not (hooks.runtime / "takeback/token").exists()
    sockets = {os.readlink(path) for path in Path(f"/proc/{found['pid']}/fd").iterdir()}
    tcp = "".join(path.read_text() for path in Path("/proc/net").glob("tcp*"))
    inodes = {f"socket:[{line.split()[9]}]" for line in tcp.splitlines() if line.split()[9].isdigit()}
    assert not sockets & inodes
