"""Serves the site on this machine alone, until it is stopped."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import uvicorn

from takeback.errors import TakebackError, UsageError
from takeback.workspace import Workspace

from .changes import MAIL, TAKEBACK
from .guard import Guard, Keys
from .site import Site

_LEFT = {
    TAKEBACK: "finish it with takeback resume, or go back with takeback resume --abort",
    MAIL: "see whether it has left: takeback effects state:unknown",
}


class Served(NamedTuple):
    """Where it is: `entry` has the token, and is for the terminal alone."""

    host: str
    keys: Keys

    @property
    def entry(self) -> str:
        return f"http://{self.host}/enter?token={self.keys.token}"

    @property
    def once(self) -> str:
        """For the browser that we open: good for a minute, and once."""
        return f"http://{self.host}/enter?ticket={self.keys.ticket()}"


def serve(
    opened: Callable[[], Workspace],
    address: str,
    port: int,
    read_only: bool,
    ready: Callable[[Served], None],
    bug: Callable[[Exception], None],
    finishing: Callable[[str], None],
) -> None:
    with opened() as workspace:
        listening = _listen(address, port)
        host = host_of(*listening.getsockname()[:2])
        keys = Keys()
        running: list[uvicorn.Server] = []
        site = Site(workspace, opened, keys, read_only, lambda: any(each.should_exit for each in running), bug)
        app: Any = Guard(site.app(), keys, host, read_only)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            log_level="critical",
            lifespan="off",
            http="h11",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        running.append(_Server(config, site, finishing))
        ready(Served(host, keys))
        try:
            running[0].run(sockets=[listening])
        finally:
            if what := site.under_way:
                raise TakebackError(f"stopped in the middle of {what}", _LEFT[what])


class _Server(uvicorn.Server):
    """Ends when it is told to; what somebody has confirmed is finished before, unless it is told twice."""

    def __init__(self, config: uvicorn.Config, site: Site, finishing: Callable[[str], None]) -> None:
        super().__init__(config)
        self._site = site
        self._finishing = finishing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if (what := self._site.under_way) and not self.should_exit:
            self.config.timeout_graceful_shutdown = None
            self._finishing(what)
        super().handle_exit(sig, frame)


def _listen(address: str, port: int) -> socket.socket:
    """An address of our own, where the system has more than one for itself: a browser gives our cookie to every port
    of an address, so that another local server would get it, were ours 127.0.0.1 too."""
    tried = [address] if address else [_own(), "127.0.0.1"]
    for at, each in enumerate(tried):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((each, port))
            listening.listen()  # before its address is told
            return listening
        except (OSError, OverflowError) as error:
            listening.close()
            if at == len(tried) - 1:
                why = getattr(error, "strerror", None) or str(error)
                raise TakebackError(
                    f"{each} port {port} cannot be used ({why})", "name another one with --port"
                ) from None
    raise AssertionError("there is always an address to try")


def host_of(address: str, port: int) -> str:
    """As a browser says it: without the port where that is the one that goes without saying."""
    return address if port == 80 else f"{address}:{port}"


def _own() -> str:
    return f"127.{secrets.randbelow(200) + 40}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"


def must_be_loopback(address: str) -> None:
    try:
        fits = ipaddress.IPv4Address(address).is_loopback
    except ValueError:
        fits = False
    if not fits:
        raise UsageError(
            f"{address[:80]!r} is no address of this machine alone",
            "name one that begins with 127, such as 127.0.0.1; from elsewhere, forward its port over ssh",
        )
