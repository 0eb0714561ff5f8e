"""What the stand-ins for Gmail and Graph share: an HTTP server with a token, that misbehaves when asked to."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit


class Asked(NamedTuple):
    method: str
    path: str
    body: Any
    headers: dict[str, str]


class Sent(NamedTuple):
    to: list[str]  # the envelope
    message: Any


class Mailboxes:
    """One account. `next` is how the next request is answered:

    ("status", 401, {…})   so, without doing the work
    "reset"                it does the work, then resets the connection
    "drop"                 it resets the connection without doing anything
    "500"                  it does the work, and answers 500
    """

    token = "ya29.good-token"

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.asked: list[Asked] = []
        self.next: list[Any] = []
        handler = type("Bound", (_Handler,), {"mailboxes": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Any:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON; None is an empty body."""
        raise NotImplementedError

    def counted(self, end: str) -> int:
        """How many POSTs ended so."""
        return sum(a.method == "POST" and a.path.endswith(end) for a in self.asked)

    @contextmanager
    def then(self, *how: Any) -> Iterator[None]:
        self.next = list(how)
        yield
        assert not self.next, "not all of it was asked for"


class _Handler(BaseHTTPRequestHandler):
    mailboxes: Mailboxes
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        boxes = self.mailboxes
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        body = json.loads(data) if data else None
        path = unquote(urlsplit(self.path).path)
        boxes.asked.append(Asked(self.command, path, body, dict(self.headers)))
        if self.headers.get("Authorization") != f"Bearer {boxes.token}":
            return self._say(401, {"error": {"message": "Invalid Credentials"}})
        how = boxes.next.pop(0) if boxes.next else None
        if isinstance(how, tuple):
            return self._say(how[1], {"error": {"message": "as asked"}}, how[2])
        if how == "drop":
            return self._reset()
        status, said = boxes.answer(self.command, path, body)
        if how == "reset":
            return self._reset()
        return self._say(*((500, {"error": {"message": "Backend Error"}}) if how == "500" else (status, said)))

    do_POST = do_DELETE = do_PATCH = do_GET

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _say(self, status: int, said: Any, headers: dict[str, str] | None = None) -> None:
        data = b"" if said is None else json.dumps(said).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        pass
