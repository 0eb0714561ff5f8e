"""Ctrl-C while a take-back runs that somebody confirmed in a browser."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Slow:
    """A server that answers a refund when it is told to."""

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()
        slow = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                slow.asked.set()
                slow.answers.wait(60)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()
    threading.Thread(target=found.server.serve_forever, daemon=True).start()
    yield found
    found.answers.set()
    found.server.shutdown()
    found.server.server_close()


def begun(ws: Any, served: Any, slow: Slow) -> tuple[threading.Thread, list[Any]]:
    """A refund that is on its way."""
    inverse = {"method": "POST", "url": f"{slow.url}/v1/refunds", "json": {"charge": "{response.body.id}"}}
    act = ws.record_http("POST", f"{slow.url}/v1/charges", status=201, response_body={"id": "ch_1"}, inverse=inverse)
    place = served.plan(item=act.id, how="revert")
    form = {"form": served.form_token(), "hash": place.rpartition("/")[2], "yes": "yes"}
    answers: list[Any] = []

    def apply() -> None:
        try:
            answers.append(served.ask(f"{place}/apply", "POST", form).status)
        except OSError as error:
            answers.append(error)

    thread = threading.Thread(target=apply)
    thread.start()
    assert slow.asked.wait(30)
    return thread, answers


def line_with(served: Any, words: str) -> str:
    for line in iter(served.process.stderr.readline, b""):
        if words in line.decode():
            return str(line.decode())
    raise AssertionError(f"it never said: {words}")


def test_a_take_back_is_finished_first(ws: Any, serve: Any, slow: Slow) -> None:
    with serve() as served:
        thread, answers = begun(ws, served, slow)
        served.process.send_signal(signal.SIGINT)
        assert "Ctrl-C again" in line_with(served, "a take-back is under way")
        with pytest.raises(Exception, match="timed out"):
            served.process.wait(6)  # longer than it waits for a browser that reads slowly
        slow.answers.set()
        thread.join(30)
        assert served.process.wait(30) == 0
    assert answers == [303] and not ws.interrupted()
    assert not [act for act in ws.history().ledger() if act.shown_state == "unknown"]


def test_told_twice_it_stops_and_says_what_is_left(ws: Any, serve: Any, slow: Slow) -> None:
    with pytest.raises(AssertionError, match="stopped in the middle of a take-back"), serve() as served:
        thread, _ = begun(ws, served, slow)
        served.process.send_signal(signal.SIGINT)
        line_with(served, "a take-back is under way")
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(30) == 1
        thread.join(30)
    assert ws.interrupted()


def test_so_is_a_mail(ws: Any, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import takeback
    from servers.smtp import Smtp

    asked, answers = threading.Event(), threading.Event()

    def slowly(server: Any) -> None:
        asked.set()
        answers.wait(60)

    with Smtp() as smtp:
        smtp.after_data = slowly
        monkeypatch.setenv("TAKEBACK_SMTP_URL", f"smtp://127.0.0.1:{smtp.port}")
        monkeypatch.setenv("TAKEBACK_SMTP_FROM", "shop@example.com")
        with takeback.open(ws.root) as own:
            mail = own.hold_email("bob@example.com", "Order 17", "Dear Bob,\n")
        with serve() as served:
            seen = json.loads(served.ask(f"/release/{mail.id}.json").text)["confirms"]
            form = {"form": served.form_token(), "seen": seen, "yes": "yes"}
            thread = threading.Thread(target=lambda: served.ask(f"/release/{mail.id}", "POST", form))
            thread.start()
            assert asked.wait(30)
            served.process.send_signal(signal.SIGINT)
            assert "Ctrl-C again" in line_with(served, "a mail is under way")
            answers.set()
            thread.join(30)
            assert served.process.wait(30) == 0
    assert ws.find_effect(mail.id).shown_state == "irreversible" and len(smtp.got) == 1
