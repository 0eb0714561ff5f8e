"""One HTTP request over one connection, given up at one moment. No redirect is followed. Says how far it came:

not opened ─► nothing was sent      lost ─► sent, and no status line came      answered ─► a status, for certain
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from takeback.errors import UsageError
from takeback.privacy import redact

MOST = 65_536  # bytes of an answer that are read
_PORTS = {"http": 80, "https": 443}
_ASCII = "".join(chr(c) for c in range(0x21, 0x7F))  # what a URL may hold as it is
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")


class Place(NamedTuple):
    """Where a URL leads: its origin, taken apart, and what is asked for there."""

    scheme: str
    host: str
    port: int
    target: str  # path and query

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port != _PORTS[self.scheme] else "")

    @property
    def url(self) -> str:
        return self.origin + self.target


class Reply(NamedTuple):
    """What came of a request. Without a status, `sent` says whether anything of it may have arrived."""

    status: int = 0
    headers: Mapping[str, str] = {}  # by lower-case name
    body: bytes = b""
    whole: bool = True  # the body is all there, or as much as we read of any
    sent: bool = True
    why: str = ""  # why there is no status


def place(url: str) -> Place:
    """A URL taken apart, in one spelling; refused if two readers could read it in two ways."""
    if re.search(r"[\x00-\x20\x7f\\]", url):
        raise UsageError(
            f"{_said(url)} has a space, a backslash or a control character in it", "write it percent-encoded"
        )
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port
        path, query = quote(parts.path, safe=_ASCII), quote(parts.query, safe=_ASCII)
    except ValueError:
        raise UsageError(
            f"{_said(url)} is no URL", "write it whole, such as https://api.example.com/v1/things/1"
        ) from None
    if parts.scheme not in _PORTS:
        raise UsageError(f"{_said(url)} is not http or https", "only those are sent")
    if "@" in parts.netloc:
        raise UsageError(
            f"the URL for {host} has a user or password in it",
            "leave it out and send a header instead: Authorization: Basic ${env:NAME}",
        )
    if not _HOST.fullmatch(host):
        raise UsageError(f"{_said(url)} names no host", "write it whole, such as https://api.example.com/v1/things/1")
    refuse_dots(path)
    target = (path or "/") + (f"?{query}" if query else "")
    return Place(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, target)


def refuse_dots(url: str) -> None:
    """A path that leads up may be read by a server as another one than was meant."""
    if any(unquote(part) in (".", "..") for part in re.split("[/?#]", url)):
        raise UsageError(f"{_said(url)} leads up or round by a dot segment", "write the path it means")


def exchange(
    method: str, at: Place, headers: Mapping[str, str], body: bytes | None, timeout: float, most: int = MOST
) -> Reply:
    """Sends one request, and reads as much of the answer as comes in time."""
    ends = time.monotonic() + timeout
    try:
        sock = _connected(at, ends)
    except (OSError, ValueError) as error:  # refused, no such host, no valid certificate, too slow
        return Reply(sent=False, why=_reason(error))
    with sock:
        line = _Line(sock, ends)
        asked = http.client.HTTPConnection(at.host, at.port)
        asked.default_port = _PORTS[at.scheme]
        asked.sock = line
        cut: OSError | None = None
        try:
            asked.request(method, at.target, body, dict(headers))
        except OSError as error:  # a server may answer and hang up before it has read a large body
            cut = error
        response = http.client.HTTPResponse(line, method=method)  # type: ignore[arg-type]
        try:
            response.begin()
        except (OSError, http.client.HTTPException) as error:
            status = response.status  # known as soon as its line was read, even if the headers never came
            return Reply(status, whole=False) if isinstance(status, int) else Reply(why=_reason(cut or error))
        found, whole = _body(response, most)
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, found, whole)


def _body(response: http.client.HTTPResponse, most: int) -> tuple[bytes, bool]:
    found = bytearray()
    try:
        while len(found) < most and (more := response.read1(min(most - len(found), MOST))):
            found += more
    except (OSError, http.client.HTTPException, ValueError):
        return bytes(found), False
    return bytes(found), len(found) >= most or not response.length


def _said(url: str) -> str:
    return repr(redact.text(url[:200]))


def _connected(at: Place, ends: float) -> socket.socket:
    """Tries each address of the host until one answers."""
    failure: OSError = OSError("it has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(ends))
            sock.connect(address)
            if at.scheme == "https":
                sock.settimeout(_left(ends))
                return ssl.create_default_context().wrap_socket(sock, server_hostname=at.host)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Line(io.RawIOBase):
    """A connection that ends at one moment, however slowly bytes drip in: a socket's own timeout begins anew with
    each byte."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock = sock
        self._ends = ends

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._sock.settimeout(_left(self._ends))
            view = view[self._sock.send(view) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._sock.settimeout(_left(self._ends))
        return self._sock.recv_into(buffer)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)):
        return "the connection was lost"
    if isinstance(error, OSError):
        return (error.strerror or str(error) or type(error).__name__).lower()
    return "the answer was no HTTP"
