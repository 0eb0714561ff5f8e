"""The real `takeback web` in a process of its own, and a real Chromium that looks at it."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from scene import Scene

REQUIRED = os.environ.get("TAKEBACK_TEST_BROWSER") == "required"
CHROMIUM = (
    os.environ.get("TAKEBACK_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


class Served(NamedTuple):
    """`ask` is a browser that got in, unless told otherwise."""

    host: str
    token: str
    process: subprocess.Popen[bytes]

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def entry(self) -> str:
        return f"{self.origin}/enter?token={self.token}"

    @property
    def cookie(self) -> str:
        return self.ask(f"/enter?token={self.token}", Cookie="").headers["set-cookie"].partition(";")[0]

    def ask(self, path: str, method: str = "GET", form: dict[str, Any] | None = None, **headers: str) -> Answer:
        """A request with just these headers; the right Host and cookie, and of a form the right Origin, unless given."""
        body = urlencode(form or {}, doseq=True).encode() if method == "POST" else b""
        sent = {"Host": self.host}
        if "Cookie" not in headers:
            sent["Cookie"] = self.cookie
        if method == "POST":
            sent |= {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        address, _, port = self.host.partition(":")
        connection = http.client.HTTPConnection(address, int(port), timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        got = connection.getresponse()
        answer = Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read().decode())
        connection.close()
        return answer

    def form_token(self) -> str:
        found = re.search(r'name="form" value="([^"]+)"', self.ask("/timeline").text)
        assert found, "there is no form on the timeline"
        return found[1]

    def plan(self, **asked: str) -> str:
        """Plans by POST, as a button does; answers where the plan is."""
        answer = self.ask("/plan", "POST", {"form": self.form_token(), **asked})
        assert answer.status == 303, answer
        return answer.headers["location"]


@contextmanager
def serving(folder: Path, *options: str, opens: bool = False, **env: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "takeback", "web", *(() if opens else ("--no-open",)), *options],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env},
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline().decode().strip()
    if not line:
        raise AssertionError(process.stderr.read().decode())
    parts = urlsplit(line)
    try:
        yield Served(parts.netloc, parts.query.removeprefix("token="), process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            code = process.wait(30)
        finally:
            process.kill()
        told = process.stderr.read().decode()
    assert code == 0, told
    assert "Traceback" not in told and "bug" not in told, told
    assert parts.query.removeprefix("token=") not in told


@pytest.fixture
def scene(ws: Any) -> Scene:
    return Scene(ws)


@pytest.fixture
def served(ws: Any) -> Iterator[Served]:
    """What a test puts into the workspace before it asks for this is there at the start."""
    with serving(ws.root) as found:
        yield found


@pytest.fixture
def serve(ws: Any) -> Callable[..., Any]:
    return lambda *options, **env: serving(ws.root, *options, **env)


# -- Chromium -----------------------------------------------------------------


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's, through Playwright. Where it has to be there, not having it is a failure."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without("Playwright is not installed (pip install playwright)")
    if not CHROMIUM:
        _without("there is no Chromium here (apt-get install chromium)")
    with sync_playwright() as running:
        # Its own sandbox needs what containers lack; what it looks at is ours.
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


def _without(why: str) -> None:
    if REQUIRED:
        pytest.fail(why)
    pytest.skip(why)


class Look:
    """A tab, and all that its console and scripts complained of."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.wrong: list[str] = []
        self.clicks = 0
        self.page = self._watched(context.new_page())

    def _watched(self, page: Any) -> Any:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        return page

    def _heard(self, message: Any) -> None:
        """All but that a filter made no sense, which the page itself says, and that the server is gone at the end."""
        known = any(word in message.text for word in ("status of 400", "ERR_CONNECTION_REFUSED"))
        if message.type in ("error", "warning") and not known:
            self.wrong.append(message.text)

    def enter(self, served: Served) -> Any:
        self.page.goto(served.entry)
        self.page.wait_for_url("**/timeline")
        self.page.wait_for_selector("html.is-live")
        return self.page

    def second(self) -> Any:
        return self._watched(self.context.new_page())

    def click(self, what: str) -> None:
        self.clicks += 1
        self.page.click(what)
        self.page.wait_for_load_state()


@pytest.fixture
def look(chromium: Any) -> Iterator[Callable[..., Look]]:
    """`look(color_scheme="dark")` is a fresh profile; it fails the test if a page complained of anything."""
    made: list[Look] = []

    def one(**how: Any) -> Look:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
        context.set_default_timeout(20_000)
        made.append(Look(context))
        return made[-1]

    yield one
    for each in made:
        each.context.close()
    assert not [line for each in made for line in each.wrong]
