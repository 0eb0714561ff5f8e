"""A provider's JSON interface over HTTP: one request, and what came of it, told apart.

cannot connect, 401, 429 …   nothing was done        TakebackError
no status line, 5xx          nobody knows            Unheard
any other status             the caller judges       Answered
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from takeback.errors import CredentialNeeded, TakebackError, UsageError
from takeback.privacy import redact
from takeback.system.http import Place, exchange, place

from .providers import LOOPBACK, Unheard

TIMEOUT = 30.0
LONGEST_WAIT = 5.0  # seconds that a Retry-After is waited for, in all
_LARGEST = 4 << 20  # Graph answers with the whole message


class Answered(NamedTuple):
    status: int
    body: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Api:
    """One service, under one token, which goes to its own origin only."""

    def __init__(self, service: str, base: str, token: str, setting: str, headers: Mapping[str, str] = {}) -> None:
        self.service = service
        self.base = base.rstrip("/")
        self.token = token
        self.setting = setting  # where the token comes from, as people set it
        self.headers = headers

    def ready(self) -> None:
        if not self.token:
            raise CredentialNeeded(f"there is no token for {self.service}", f"set {self.setting}")
        if not self.token.isprintable() or not self.token.isascii():
            raise CredentialNeeded(f"the token for {self.service} has odd characters in it", f"set {self.setting}")

    def call(self, method: str, path: str, body: object = None) -> Answered:
        self.ready()
        waited = 0.0
        while True:
            answer, retry_after = self._once(method, path, body)
            if answer.status != 429:
                break
            if retry_after is None or waited + retry_after > LONGEST_WAIT:
                pause = f" for {retry_after:g} s" if retry_after is not None else ""
                raise TakebackError(
                    f"{self.service} asks to wait{pause} (429); nothing was done", "run it again after that"
                )
            pause_now = max(retry_after, 0.1)
            waited += pause_now
            time.sleep(pause_now)
        if answer.status == 401:
            raise CredentialNeeded(
                f"{self.service} does not accept the token (401): it has expired or was revoked; nothing was done",
                f"get a new one and set {self.setting}",
            )
        if answer.status >= 500:
            raise Unheard(f"{self.service} answered {self._told(answer)}", "it may have been done all the same")
        return answer

    def _once(self, method: str, path: str, body: object) -> tuple[Answered, float | None]:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", **self.headers}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        reply = exchange(method, self._place(path), headers, data, TIMEOUT, _LARGEST)
        if not reply.sent:
            raise TakebackError(
                f"{self.service} cannot be reached ({reply.why}); nothing was done",
                "run it again when the network is there",
            )
        if not reply.status:
            raise Unheard(f"{self.service} did not answer ({reply.why})", "it may have been done all the same")
        return Answered(reply.status, _json(reply.body)), _seconds(reply.headers.get("retry-after", ""))

    def _place(self, path: str) -> Place:
        at = place(self.base + path)
        if at.scheme != "https" and at.host not in LOOPBACK:
            raise UsageError(f"a token would be readable on its way to {at.origin}", "use an https:// address")
        return at

    def failed(self, answer: Answered, what: str) -> TakebackError:
        """A status that means: not done, and why."""
        return TakebackError(
            f"{self.service} did not {what}: {self._told(answer)}", "see what it says, then run it again"
        )

    def _told(self, answer: Answered) -> str:
        error = answer.body.get("error")
        message = error.get("message", "") if isinstance(error, dict) else ""
        told = redact.text(str(message)[:300], [self.token])
        return f"{answer.status}{f' ({told})' if told else ''}"


def named(id: object) -> str:
    """An id as one segment of a path, whatever it holds."""
    text = str(id)
    if text in ("", ".", ".."):
        raise UsageError(f"{text!r} is no draft", "list them with takeback email pending")
    return quote(text, safe="")


def _json(body: bytes) -> Mapping[str, Any]:
    """What it says, if anything: 202 and 204 have no body, and a status is an answer even if its body was cut off."""
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _seconds(header: str) -> float | None:
    return float(header) if header.strip().isdecimal() else None
