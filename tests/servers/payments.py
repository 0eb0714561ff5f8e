"""A payment-and-issues server that really keeps state, and misbehaves when asked to.

    POST   /v1/charges {amount}          201, Location: /v1/charges/ch_1
    POST   /v1/refunds {charge}          201; a second one refunds again, as careless servers do
    GET    /v1/refunds?charge=ch_1       200 if there is one, else 404
    GET    /v1/charges/ch_1              DELETE voids it: 204, then 404
    POST   /issues {title}               201, id and number in the body; no Location
    POST   /issues/1/close               200
    GET    /issues/1                     DELETE: 204, then 410
    GET    /ledger                       all of it

An Idempotency-Key that was seen gets the stored answer again. A header `X-Misbehave: MODE`, a path prefix
`/misbehave/MODE/…` or `misbehave(MODE)` asks for one of MODES; a replayed answer never misbehaves.

As a program: python payments.py [PORT] prints its URL and serves until it is ended.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

MODES = {
    "drop": "resets the connection without doing anything",
    "reset": "does the work, then resets the connection",
    "hang": "does the work, and never answers",
    "500": "does the work, and answers 500",
    "half": "does the work, and answers with half of the body it announced",
    "cut-headers": "does the work, sends the status line, and resets",
    "redirect": "does nothing, and redirects to `elsewhere`",
    "drip": "does the work, and sends its answer a byte at a time, for ever",
    "drip-body": "the same, after a whole status and headers",
}
_WITHOUT_WORK = ("drop", "redirect")
Said = tuple[int, dict[str, str], Any]  # status, headers, body


class Payments:
    """The server, its state and what was asked of it."""

    def __init__(self, key: str = "", port: int = 0) -> None:
        self.key = key  # if set, what every request must bear
        self.elsewhere = "http://127.0.0.1:9/stolen"
        self.charges: dict[str, dict[str, Any]] = {}
        self.refunds: dict[str, dict[str, Any]] = {}
        self.issues: dict[str, dict[str, Any]] = {}
        self.entries: list[str] = []  # the ledger, line by line
        self.requests: list[tuple[str, str, dict[str, str], str]] = []  # method, path, headers, body
        self.stopping = threading.Event()
        self._closed: set[str] = set()  # issues that are gone
        self._answers: dict[str, Said] = {}  # by Idempotency-Key
        self._modes: list[str] = []
        self._mutex = threading.Lock()
        handler = type("Bound", (_Handler,), {"payments": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> Payments:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def misbehave(self, mode: str, times: int = 1) -> None:
        """The next requests that change something are answered so."""
        assert mode in MODES
        self._modes += [mode] * times

    def ledger(self) -> dict[str, Any]:
        taken = sum(c["amount"] for c in self.charges.values() if c["status"] != "voided")
        back = sum(self.charges[r["charge"]]["amount"] for r in self.refunds.values())
        issues = list(self.issues.values())
        return {"balance": taken - back, "charges": list(self.charges.values()), "refunds": list(self.refunds.values()),
                "issues": issues, "entries": list(self.entries)}  # fmt: skip

    def asked(self, method: str, path: str) -> int:
        """How often this was asked."""
        return sum(1 for m, p, *_ in self.requests if (m, p) == (method, path))

    # -- what it does ----------------------------------------------------------

    def mode(self, method: str, wanted: str) -> str:
        with self._mutex:
            if wanted or method in ("GET", "HEAD"):
                return wanted
            return self._modes.pop(0) if self._modes else ""

    def replayed(self, key: str) -> Said | None:
        with self._mutex:
            return self._answers.get(key)

    def act(self, method: str, path: str, query: dict[str, str], data: dict[str, Any], key: str) -> Said:
        with self._mutex:
            answer = self._act(method, path, query, data)
            if key and method == "POST" and answer[0] < 400:  # what was refused was never begun
                self._answers[key] = answer
            return answer

    def _act(self, method: str, path: str, query: dict[str, str], data: dict[str, Any]) -> Said:
        kind, _, rest = path.strip("/").removeprefix("v1/").partition("/")
        if (method, kind) == ("GET", "ledger"):
            return 200, {}, self.ledger()
        if kind == "charges":
            return self._charges(method, rest, data)
        if kind == "refunds":
            return self._refunds(method, rest, query, data)
        if kind == "issues":
            return self._issues(method, rest, data)
        return 404, {}, {"error": f"nothing at {path}"}

    def _charges(self, method: str, id: str, data: dict[str, Any]) -> Said:
        if method == "POST" and not id:
            try:
                amount = int(data["amount"])
            except (KeyError, ValueError):
                return 402, {}, {"error": "no amount"}
            id = f"ch_{len(self.charges) + 1}"
            self.charges[id] = {"id": id, "amount": amount, "status": "succeeded"}
            self._note(f"charge {id} {amount}")
            return 201, {"Location": f"/v1/charges/{id}"}, self.charges[id]
        if id not in self.charges or self.charges[id]["status"] == "voided":
            return 404, {}, {"error": f"no charge {id}"}
        if method == "DELETE":
            self.charges[id]["status"] = "voided"
            self._note(f"void {id}")
            return 204, {}, None
        return 200, {}, self.charges[id]

    def _refunds(self, method: str, id: str, query: dict[str, str], data: dict[str, Any]) -> Said:
        if method == "POST":
            charge = data.get("charge", "")
            if charge not in self.charges:
                return 400, {}, {"error": f"no charge {charge}"}
            id = f"re_{len(self.refunds) + 1}"
            self.refunds[id] = {"id": id, "charge": charge}
            self._note(f"refund {id} of {charge}")
            return 201, {"Location": f"/v1/refunds/{id}"}, self.refunds[id]
        found = [r for r in self.refunds.values() if id in ("", r["id"]) and query.get("charge") in (None, r["charge"])]
        return (200, {}, {"data": found}) if found else (404, {}, {"error": "no refund"})

    def _issues(self, method: str, rest: str, data: dict[str, Any]) -> Said:
        number, _, verb = rest.partition("/")
        if method == "POST" and not number:
            number = str(len(self.issues) + len(self._closed) + 1)
            self.issues[number] = {"id": int(number), "title": data.get("title", ""), "state": "open"}
            self._note(f"issue {number} opened")
            return 201, {}, self.issues[number]
        if number in self._closed:
            return 410, {}, {"error": f"issue {number} is gone"}
        if number not in self.issues:
            return 404, {}, {"error": f"no issue {number}"}
        if method == "DELETE":
            del self.issues[number]
            self._closed.add(number)
            self._note(f"issue {number} deleted")
            return 204, {}, None
        if (method, verb) == ("POST", "close") or method == "PATCH":
            self.issues[number]["state"] = "closed" if verb else data.get("state", "open")
            self._note(f"issue {number} {self.issues[number]['state']}")
        return 200, {}, self.issues[number]

    def _note(self, line: str) -> None:
        self.entries.append(line)


class _Handler(BaseHTTPRequestHandler):
    payments: Payments
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _serve(self) -> None:
        payments = self.payments
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        mode, path = self.headers.get("X-Misbehave", ""), self.path
        if path.startswith("/misbehave/"):
            mode, _, path = path.removeprefix("/misbehave/").partition("/")
            path = "/" + path
        payments.requests.append((self.command, self.path, dict(self.headers), body))
        if payments.key and self.headers.get("Authorization") != f"Bearer {payments.key}":
            return self._answer(401, {}, {"error": "who are you?"})
        key = self.headers.get("Idempotency-Key", "")
        if key and (stored := payments.replayed(key)) is not None:
            return self._answer(*stored)
        parts = urlsplit(path)
        mode = payments.mode(self.command, mode)
        answer: Said = (200, {}, None)
        if mode not in _WITHOUT_WORK:
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            answer = payments.act(self.command, parts.path, query, self._data(body), key)
        if mode:
            return self._misbehave(mode, answer)
        return self._answer(*answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _data(self, body: str) -> dict[str, Any]:
        if self.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
            return {name: values[0] for name, values in parse_qs(body).items()}
        with suppress(ValueError):
            found = json.loads(body)
            return found if isinstance(found, dict) else {}
        return {}

    def _answer(self, status: int, headers: dict[str, str], data: Any) -> None:
        self._head(status, headers, b"" if data is None else json.dumps(data).encode(), data is None)

    def _head(self, status: int, headers: dict[str, str], body: bytes, empty: bool = False, short: int = 0) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        if not (empty and status == 204):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) - short])
            self.wfile.flush()

    def _misbehave(self, mode: str, answer: Said) -> None:
        status, headers, data = answer
        body = json.dumps(data).encode()
        if mode in ("drop", "reset"):
            self._reset()
        elif mode == "cut-headers":
            self.wfile.write(f"HTTP/1.1 {status} Said\r\nContent-".encode())
            self.wfile.flush()
            self._reset()
        elif mode == "hang":
            self.payments.stopping.wait(60)
        elif mode == "500":
            self._answer(500, {}, {"error": "oops"})
        elif mode == "half":
            self._head(status, headers, body, short=len(body) // 2)
        elif mode == "redirect":
            self._answer(307, {"Location": self.payments.elsewhere}, None)
        elif mode in ("drip", "drip-body"):
            if mode == "drip-body":
                self._head(status, headers, b"x" * 100_000, short=100_000)
            with suppress(OSError):
                while not self.payments.stopping.wait(0.02):
                    self.wfile.write(b"H" if mode == "drip" else b"x")
                    self.wfile.flush()

    def _reset(self) -> None:
        """Not a polite end: what was sent may be lost with it."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.rfile.close()
        self.wfile = _Nowhere()  # type: ignore[assignment]


class _Nowhere:
    closed = True

    def flush(self) -> None: ...

    def close(self) -> None: ...


@contextmanager
def serving(key: str = "") -> Iterator[Payments]:
    """The server, while the block runs."""
    payments = Payments(key).start()
    try:
        yield payments
    finally:
        payments.stop()


if __name__ == "__main__":
    server = Payments(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0).start()
    print(server.url, flush=True)
    with suppress(KeyboardInterrupt):
        server.stopping.wait()
