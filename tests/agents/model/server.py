"""The model on 127.0.0.1: answers each request with the next turn, and remembers what it was told."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from .languages import Language, language_of
from .turns import Turn


class Seen(NamedTuple):
    """A request that took a turn."""

    turn: int
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All of it, as text to look for words in."""
        return json.dumps(self.body, ensure_ascii=False)


class Model:
    """Plays turns, one for each request that offers tools; after the last it says "done"."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        self.seen: list[Seen] = []
        self.failures: list[BaseException] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Model:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def played(self) -> int:
        return len(self.seen)

    def times_told(self, words: str) -> int:
        """How often some words stand in the last request, which holds the whole conversation."""
        return self.seen[-1].text.count(words)

    def next(self, language: Language, body: dict[str, Any]) -> tuple[Turn, str]:
        if not language.tools(body):
            return Turn("ok"), "side"
        with self._lock:
            number = len(self.seen)
            self.seen.append(Seen(number, body))
        turn = self.turns[number] if number < len(self.turns) else Turn("done")
        if turn.meanwhile is not None:
            try:
                turn.meanwhile()
            except BaseException as failure:  # told by the test, not by a thread that nobody reads
                self.failures.append(failure)
        return turn, f"{id(self):x}_{number}"


class _Handler(BaseHTTPRequestHandler):
    model: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/models"):
            self._send_json({"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self._send_json({"error": {"message": "not here"}}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if path.lower().endswith(("count_tokens", "counttokens")):
            self._send_json({"input_tokens": 1, "totalTokens": 1})
            return
        language = language_of(path)
        if language is None:
            self._send_json({"error": {"message": "not here"}}, 404)
            return
        turn, key = self.model.next(language, body)
        whole = language.whole(turn, key, body)
        if body.get("stream") or ":stream" in path:
            self._send("".join(map(_event, language.events(whole))).encode(), "text/event-stream")
        else:
            self._send_json(whole)

    def _send_json(self, value: object, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), "application/json", status)

    def _send(self, data: bytes, kind: str, status: int = 200) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # an agent that was killed


def _event(event: dict[str, Any] | str) -> str:
    if isinstance(event, str):
        return f"data: {event}\n\n"
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"
