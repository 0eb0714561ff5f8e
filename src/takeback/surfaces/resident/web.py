"""HTTP hooks: the same answers over loopback, for an agent that can ask by itself instead of starting a process.

    POST /claude   Authorization: Bearer TOKEN   the event as JSON   ─► 200 with the hook's JSON, or with nothing

The token lies in the runtime folder, for its user alone. Host must name this machine and this port, and no browser may
ask: a page that a name server leads here has another Host, and any page sends its Origin.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from takeback import agents
from takeback.system import processes
from takeback.system.processes import Process

TOKEN = "token"
_LARGEST = 64 << 20  # bytes of an event
_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_PATIENCE = 60.0  # seconds that a connection may be silent
_MOST = 256  # sessions whose process is remembered
_NOBODY = Process(0, 0)

Respond = Callable[[str, str, bytes, str, Process], tuple[int, bytes, bytes]]  # agent, event, what it said, folder, who


def token(place: Path) -> str:
    """Made once, and kept as long as the runtime folder is."""
    path = place / TOKEN
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(fd, "w") as file:
        made = secrets.token_urlsafe(32)
        file.write(made + "\n")
    return made


class Web:
    def __init__(self, place: Path, port: int, respond: Respond) -> None:
        self._server = _Listening(("127.0.0.1", port), _Handler)
        self._server.token, self._server.respond = token(place), respond
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Askers:
    """Which process a session runs in: the one that has asked for it twice. One that asks once and ends is a helper of
    it, and its end would be taken for the session's."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Process, bool]] = {}

    def process(self, session: str, port: int, own: int) -> Process:
        known, is_sure = self._known.get(session, (_NOBODY, False))
        if is_sure and processes.started(known.pid) == known.started:
            return known
        pid = _at_other_end(port, own) if session else 0
        found = Process(pid, processes.started(pid)) if pid else _NOBODY
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[session] = found, bool(pid) and found == known
        return found if self._known[session][1] else _NOBODY


def _at_other_end(port: int, own: int) -> int:
    """The process that a connection on loopback comes from; 0 where the system does not tell."""
    ends = [f"0100007F:{port:04X}", f"0100007F:{own:04X}"]
    try:
        with open("/proc/net/tcp") as file:
            inode = next((fields[9] for fields in map(str.split, file) if fields[1:3] == ends), "")
        for pid in filter(str.isdigit, os.listdir("/proc")) if inode else ():
            if _has_socket(pid, f"socket:[{inode}]"):
                return int(pid)
    except OSError:
        pass
    return 0


def _has_socket(pid: str, name: str) -> bool:
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(os.readlink(entry.path) == name for entry in entries)
    except OSError:
        return False  # another user's, or gone meanwhile


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    token = ""
    respond: Respond

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        super().__init__(address, handler)
        self.askers = Askers()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    wbufsize = 1 << 16  # head and body in one segment: else the second waits for the first to be acknowledged
    server: _Listening

    def do_POST(self) -> None:
        if why := self._refused():
            self._send(*why)
            return
        agent, _, event = self.path.strip("/").partition("/")
        if agent not in agents.AGENTS:
            self._send(404, b"no such agent")
            return
        said = self.rfile.read(int(self.headers["Content-Length"]))
        folder, session = (_told(said, name) for name in ("cwd", "session_id"))
        who = self.server.askers.process(session, self.client_address[1], self.server.server_address[1])
        code, out, err = self.server.respond(agent, event, said, folder, who)
        if code and not out:  # an agent that asks over HTTP sees no exit code
            out = json.dumps({"decision": "block", "reason": err.decode("utf-8", "replace")}).encode()
        self._send(200, out, "application/json")

    def _refused(self) -> tuple[int, bytes] | None:
        """Why this is nobody we answer, before anything that it sends is read."""
        host, _, port = (self.headers.get("Host") or "").rpartition(":")
        if host not in _HOSTS or port != str(self.server.server_address[1]):
            return 403, b"not this host"
        if self.headers.get("Origin") is not None or self.headers.get("Sec-Fetch-Site") is not None:
            return 403, b"not from a browser"
        given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode()):
            return 401, b"the token is in the runtime folder"
        length = self.headers.get("Content-Length") or ""
        if not length.isdecimal() or self.headers.get("Transfer-Encoding"):
            return 411, b"say how long it is"
        if int(length) > _LARGEST:
            return 413, b"too large"
        return None

    def _send(self, code: int, body: bytes = b"", kind: str = "text/plain") -> None:
        if code != 200:
            self.close_connection = True  # what it sent was not read
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if code != 200:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: paths and errors are on record elsewhere, and a token must be nowhere."""


def _told(said: bytes, name: str) -> str:
    try:
        value = json.loads(said).get(name)
    except (ValueError, AttributeError):
        return ""
    return value if isinstance(value, str) else ""
