"""Who may ask: the browser of the person at the terminal, and no page that somebody else wrote.

    Host     exactly the address that was printed: a name that was made to lead here (DNS rebinding) is another one
    Origin   ours, where there is one; a change has to have it
    cookie   HttpOnly and SameSite=Strict, given for the token that only the terminal has shown
    POST     changes nothing without the token of the form; nothing else changes anything

    token (terminal) ─► GET /enter ─► cookie ─► pages, each with a form token ─► POST

Stands before everything: a route cannot forget it.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takeback.surfaces.wording.html import document, tag

_LARGEST = 64 << 10  # bytes of a form
_TICKET = 60.0  # seconds in which the browser that we open has to come
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_MAPPED = "0000000000000000FFFF0000"  # an IPv4 address as one of IPv6, as /proc/net/tcp6 writes it
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # with none at all, a browser would not say the Origin of a form either
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Keys:
    """The secrets of one start. None of them is ever logged, or shown on a page but the form's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(32)  # on the terminal
        self.cookie = secrets.token_urlsafe(32)
        self.form = secrets.token_urlsafe(32)
        self._clock = clock
        self._ticket, self._until = "", 0.0

    def ticket(self) -> str:
        """For the browser that we open: other users may see its command line, so it is good once, and soon not."""
        self._ticket, self._until = secrets.token_urlsafe(32), self._clock() + _TICKET
        return self._ticket

    def lets_in(self, query: bytes) -> bool:
        given = parse_qs(query.decode("latin-1"))
        if len(given) != 1:
            return False
        if len(tokens := given.get("token", [])) == 1:
            return _same(tokens[0], self.token)
        if len(tickets := given.get("ticket", [])) == 1 and self._ticket and self._clock() < self._until:
            good = _same(tickets[0], self._ticket)
            self._ticket = "" if good else self._ticket
            return good
        return False


class Guard:
    def __init__(self, app: ASGIApp, keys: Keys, host: str, read_only: bool) -> None:
        self._app = app
        self._keys = keys
        self._host = host.encode()
        self._origin = b"http://" + self._host
        self._name = f"takeback_{host.rpartition(':')[2]}"  # a browser does not tell ports apart by their cookies
        self._read_only = read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # nothing else is served: the connection is closed

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                added = [
                    (n.lower().encode(), v.encode()) for n, v in _HEADERS.items() if n.lower().encode() not in known
                ]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if (answer := self._refusal(scope)) is not None:
            await answer(scope, receive, guarded)
        elif scope["method"] == "POST":
            await self._change(scope, receive, guarded)
        else:
            await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """What is answered instead of the page; None if it may be seen."""
        hosts, origins = _all(scope, b"host"), _all(scope, b"origin")
        site, mode = _all(scope, b"sec-fetch-site"), _all(scope, b"sec-fetch-mode")
        method, path = scope["method"], scope["path"]
        if hosts != [self._host]:
            return _refuse(403, "a foreign Host")
        if any(origin != self._origin for origin in origins) or (method == "POST" and len(origins) != 1):
            return _refuse(403, "a foreign Origin")
        if any(s not in (b"same-origin", b"none") for s in site) and (method == "POST" or mode != [b"navigate"]):
            return _refuse(403, "a page of somebody else asks")
        if method not in ("GET", "HEAD", "POST"):
            return _refuse(405, "only GET and POST")
        if path == "/enter" and method == "GET":
            return self._enter(scope)
        if not self._has_cookie(scope):
            return _refuse(401, "open the address that takeback web printed in your terminal")
        if method == "POST" and self._read_only:
            return _refuse(403, "this is read-only: start takeback web without --read-only to change something")
        return None

    def _enter(self, scope: Scope) -> Response:
        if not self._keys.lets_in(scope["query_string"]) or not is_ours(scope.get("client"), scope.get("server")):
            return _refuse(401, "this address is wrong or was used: open the one in your terminal")
        # Not a redirect: a browser sends no strict cookie after one that another program began.
        head = [
            tag("meta", charset="utf-8"),
            tag("title", "takeback"),
            tag("link", rel="icon", href="/static/icon.svg"),
            tag("meta", http_equiv="refresh", content="0;url=/"),
        ]
        answer = HTMLResponse(document(head, tag("body", tag("a", "to the timeline", href="/"))))
        answer.headers["Referrer-Policy"] = "no-referrer"  # the token is in this address
        answer.headers["Set-Cookie"] = f"{self._name}={self._keys.cookie}; Path=/; HttpOnly; SameSite=Strict"
        return answer

    def _has_cookie(self, scope: Scope) -> bool:
        pairs = [each.strip().partition(b"=") for header in _all(scope, b"cookie") for each in header.split(b";")]
        given = [value for name, _, value in pairs if name == self._name.encode()]
        return len(given) == 1 and hmac.compare_digest(given[0], self._keys.cookie.encode())

    async def _change(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the form whole, and hands it on only if one of our pages made it."""
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if len(body) > _LARGEST:
                await _refuse(413, "too large")(scope, receive, send)
                return
            if not message.get("more_body"):
                break
        kinds = [kind.partition(b";")[0].strip().lower() for kind in _all(scope, b"content-type")]
        form = parse_qs(body.decode("latin-1"), keep_blank_values=True)
        if kinds != [b"application/x-www-form-urlencoded"] or not _same("".join(form.get("form", [])), self._keys.form):
            await _refuse(403, "this form is not one of ours, or of an earlier start: load the page again")(
                scope, receive, send
            )
            return
        sent = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Message:
            return next(sent, None) or await receive()

        await self._app(scope, again, send)


def is_ours(client: tuple[str, int] | None, server: tuple[str, int | None] | None) -> bool:
    """Whether a connection on loopback comes from a process of this user, or of root, where the system tells."""
    if client is None or server is None or not hasattr(os, "getuid"):
        return True
    owner = owner_of(client, server)
    return owner is None or owner in (os.getuid(), 0)


def owner_of(client: tuple[str, int], server: tuple[str, int | None]) -> int | None:
    """Whose process is at the other end; None where the system does not tell."""
    ends = [_end(client[0], client[1]), _end(server[0], server[1] or 0)]
    for table, before in (("tcp", ""), ("tcp6", _MAPPED)):  # who connects to ::ffff:127.0.0.1 stands in the other one
        wanted = [before + end for end in ends]
        try:
            with open(f"/proc/net/{table}") as file:
                found = next((int(fields[7]) for fields in map(str.split, file) if fields[1:3] == wanted), None)
        except (OSError, ValueError, IndexError):
            continue
        if found is not None:
            return found
    return None


def _end(address: str, port: int) -> str:
    return "".join(f"{int(part):02X}" for part in reversed(address.split("."))) + f":{port:04X}"


def _all(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())


def _refuse(code: int, why: str) -> PlainTextResponse:
    return PlainTextResponse(f"takeback: {why}\n", status_code=code)
