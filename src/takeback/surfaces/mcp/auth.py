"""Who may connect over HTTP: whoever knows the token, from this machine, and no web page that was opened on it."""

from __future__ import annotations

import hmac
import secrets

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_NAMES = ("127.0.0.1", "localhost", "[::1]")


def new_token() -> str:
    return secrets.token_urlsafe(32)


class Guard:
    """Stands before the server. A foreign Host (a name that was made to point here) or Origin (a page of somebody
    else, `null` included) is refused before the token is looked at."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in _NAMES}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http" or not self._is_from_here(scope):
            await _refuse(403, "a foreign Host or Origin")(scope, receive, send)
        elif not self._knows_the_token(scope):
            await _refuse(401, "the token is missing or wrong")(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_from_here(self, scope: Scope) -> bool:
        hosts, origins = _all(scope, b"host"), _all(scope, b"origin")
        return len(hosts) == 1 and hosts[0].lower() in self._hosts and all(o.lower() in self._origins for o in origins)

    def _knows_the_token(self, scope: Scope) -> bool:
        given = _all(scope, b"authorization")
        kind, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def _all(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _refuse(code: int, why: str) -> PlainTextResponse:
    headers = {"WWW-Authenticate": "Bearer"} if code == 401 else {}
    return PlainTextResponse(f"takeback: {why}\n", status_code=code, headers=headers)
