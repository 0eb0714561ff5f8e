"""A Walrus publisher and aggregator in one, as its daemon is, answering as its documentation says. Misbehaves when asked.

    PUT /v1/blobs?epochs=N&deletable=true|permanent=true    200 newlyCreated, or alreadyCertified for the same bytes
    GET /v1/blobs/{id}                                      200 the bytes, or 404 BLOB_NOT_FOUND
    PUT larger than `largest`                               413 at once, the body unread
    both deletable and permanent                            400

The id is made of the bytes and is not their sha256. `hide(n)` answers the next n reads of each new blob with 404, as a
cache before an aggregator does. `misbehave(METHOD, MODE, times)` asks for one of MODES, or for a status.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

MODES = {
    "drop": "resets the connection without doing anything",
    "reset": "does the work, then resets the connection",
    "half": "does the work, and breaks off in the middle of its answer",
    "redirect": "does nothing, and redirects to `elsewhere`",
    "nonsense": "answers 200 with what is no answer of a publisher",
    "invalid": "calls the blob invalid",
}
STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    451: "UNAVAILABLE_FOR_LEGAL_REASONS",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class WalrusServer:
    """The server, its blobs and what was asked of it."""

    def __init__(self) -> None:
        self.largest = 10 * 1024**2
        self.elsewhere = "https://evil.example/v1/blobs"
        self.retry_after = ""
        self.message = "the server says why"
        self.blobs: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, dict[str, list[str]]]] = []  # method, path, query
        self.stopping = threading.Event()
        self._hides = 0
        self._hidden: dict[str, int] = {}  # reads of a blob that are still answered with 404
        self._modes: dict[str, list[str | int]] = {"PUT": [], "GET": []}
        self._mutex = threading.Lock()
        handler = type("Bound", (_Handler,), {"walrus": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> WalrusServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def hide(self, reads: int) -> None:
        self._hides = reads

    def misbehave(self, method: str, mode: str | int, times: int = 1) -> None:
        assert mode in MODES or mode in STATUS
        self._modes[method] += [mode] * times

    def asked(self, method: str) -> int:
        return sum(1 for each in self.requests if each[0] == method)

    def mode(self, method: str) -> str | int:
        with self._mutex:
            return self._modes[method].pop(0) if self._modes[method] else ""

    def store(self, data: bytes, query: dict[str, list[str]]) -> dict[str, Any]:
        blob_id = base64.urlsafe_b64encode(hashlib.blake2b(data, digest_size=32).digest()).decode().rstrip("=")
        with self._mutex:
            if blob_id in self.blobs:
                event = {"txDigest": "4XQHFa9S324wTzYHF3vsBSwpUZuLpmwTHYMFv9nsttSs", "eventSeq": "0"}
                return {"alreadyCertified": {"blobId": blob_id, "event": event, "endEpoch": 40}}
            self.blobs[blob_id] = data
            self._hidden[blob_id] = self._hides
        epochs = int(query.get("epochs", ["1"])[0])
        made = {
            "id": "0xe91eee8c5b6f35b9a250cfc29e30f0d9e5463a21fd8d1ddb0fc22d44db4eac50",
            "registeredEpoch": 34,
            "blobId": blob_id,
            "size": len(data),
            "encodingType": "RS2",
            "certifiedEpoch": None,  # as public publishers say it of a blob that is certified
            "storage": {"id": "0x28cc75b3", "startEpoch": 34, "endEpoch": 34 + epochs, "storageSize": 66034000},
            "deletable": "permanent" not in query,
        }
        operation = {"registerFromScratch": {"encodedLength": 66034000, "epochsAhead": epochs}}
        return {"newlyCreated": {"blobObject": made, "resourceOperation": operation, "cost": 132300}}

    def read(self, blob_id: str) -> bytes | None:
        with self._mutex:
            if self._hidden.get(blob_id, 0) > 0:
                self._hidden[blob_id] -= 1
                return None
            return self.blobs.get(blob_id)


class _Handler(BaseHTTPRequestHandler):
    walrus: WalrusServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_PUT(self) -> None:
        path, query, mode = self._begun()
        size = int(self.headers["Content-Length"])
        if size > self.walrus.largest:
            self.close_connection = True
            return self._answer(413, b"length limit exceeded", "text/plain", {"Connection": "close"})
        data = self.rfile.read(size)
        if path != "/v1/blobs":
            return self._fail(404)
        if "deletable" in query and "permanent" in query:
            return self._fail(400)
        if self._misbehaved(mode):
            return None
        if mode == "nonsense":
            return self._answer(200, b"<html>welcome</html>", "text/html")
        answer = self.walrus.store(data, query)
        if mode == "invalid":
            answer = {"markedInvalid": {"blobId": next(iter(self.walrus.blobs)), "event": {}}}
        return self._finish(json.dumps(answer).encode(), "application/json", mode)

    def do_GET(self) -> None:
        path, _, mode = self._begun()
        if self._misbehaved(mode):
            return None
        found = self.walrus.read(path.removeprefix("/v1/blobs/"))
        if found is None:
            return self._fail(404, "BLOB_NOT_FOUND")
        return self._finish(found, "application/octet-stream", mode)

    def _begun(self) -> tuple[str, dict[str, list[str]], str | int]:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        self.walrus.requests.append((self.command, parts.path, query))
        return parts.path, query, self.walrus.mode(self.command)

    def _misbehaved(self, mode: str | int) -> bool:
        """Whether that was all."""
        if isinstance(mode, int):
            self._fail(mode)
        elif mode == "drop":
            self._reset()
        elif mode == "redirect":
            self._answer(307, b"", "text/plain", {"Location": self.walrus.elsewhere})
        else:
            return False
        return True

    def _finish(self, body: bytes, kind: str, mode: str | int) -> None:
        if mode == "reset":
            self._reset()
        elif mode == "half":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        else:
            self._answer(200, body, kind)

    def _fail(self, status: int, reason: str = "") -> None:
        details = [{"@type": "ErrorInfo", "reason": reason or STATUS[status], "domain": "daemon.walrus.space"}]
        error = {"status": STATUS[status], "code": status, "message": self.walrus.message, "details": details}
        headers = {"Retry-After": self.walrus.retry_after} if self.walrus.retry_after else {}
        self._answer(status, json.dumps({"error": error}).encode(), "application/json", headers)

    def _answer(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _reset(self) -> None:
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True


@contextmanager
def serving() -> Iterator[WalrusServer]:
    server = WalrusServer().start()
    try:
        yield server
    finally:
        server.stop()
