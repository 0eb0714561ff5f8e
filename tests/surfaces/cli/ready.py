"""The program, imported once: each command is a fork of it, a process of its own with its own words, folder, environment
and standard files. Only the start of the interpreter and the imports are spared, which would be most of a test's time.

    python tests/surfaces/cli/ready.py DESCRIPTOR     waits there for commands
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_NUMBER = struct.Struct("!q")
_NOT_READY = {"__main__", "integrations", "mcp", "reference", "tui", "ui", "web"}  # what few commands load
_INTERPRETERS = ("PYTHON", "LC_", "LANG", "TZ", "TAKEBACK_PORTABLE")  # what is read once, at the start


class Ready:
    """One that waits, and the way to it. Its commands come one after another, for whoever holds `free`."""

    def __init__(self) -> None:
        self.free = threading.Lock()
        self._setting = interpreters(os.environ)
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )

    def can(self, env: Mapping[str, str]) -> bool:
        return interpreters(env) == self._setting

    def run(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float) -> tuple[int, bytes, bytes]:
        asked = json.dumps([list(words), str(cwd), dict(env)]).encode()
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            socket.send_fds(self._channel, [_NUMBER.pack(len(asked))], [nothing, their_out, their_err])
            self._channel.sendall(asked)
        finally:
            for fd in (nothing, their_out, their_err):
                os.close(fd)
        pid = receive(self._channel)
        try:
            said = _read_all((out, err), timeout)
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            receive(self._channel)
            raise
        return receive(self._channel), *said

    def close(self) -> None:
        self._channel.close()
        self._process.wait(timeout=60)


def _read_all(fds: tuple[int, int], timeout: float) -> tuple[bytes, bytes]:
    """What both say until nobody holds their other ends."""
    said: dict[int, list[bytes]] = {fd: [] for fd in fds}
    until = time.monotonic() + timeout
    with selectors.DefaultSelector() as both:
        for fd in fds:
            both.register(fd, selectors.EVENT_READ)
        try:
            while both.get_map():
                if time.monotonic() > until:
                    raise TimeoutError(f"still running after {timeout:.0f} s: {said}")
                for key, _ in both.select(1):
                    if part := os.read(key.fd, 1 << 16):
                        said[key.fd].append(part)
                    else:
                        both.unregister(key.fd)
        finally:
            for fd in fds:
                os.close(fd)
    first, second = (b"".join(parts) for parts in said.values())
    return first, second


def interpreters(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_INTERPRETERS)}


def receive(channel: socket.socket) -> int:
    data = channel.recv(_NUMBER.size, socket.MSG_WAITALL)
    assert len(data) == _NUMBER.size, "it has ended"
    number: int = _NUMBER.unpack(data)[0]
    return number


# -- the other side -----------------------------------------------------------


def wait_for_commands(channel: socket.socket) -> None:
    """Returns in each command's own process, as one that was just started."""
    while True:
        head, fds, _, _ = socket.recv_fds(channel, _NUMBER.size, 3)
        if not head:
            os._exit(0)
        words, cwd, env = json.loads(channel.recv(_NUMBER.unpack(head)[0], socket.MSG_WAITALL))
        if (pid := os.fork()) == 0:
            channel.close()
            become(words, cwd, env, fds)
            return
        for fd in fds:
            os.close(fd)
        channel.sendall(_NUMBER.pack(pid))
        channel.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


def become(words: list[str], cwd: str, env: dict[str, str], fds: list[int]) -> None:
    for fd, standard in zip(fds, (0, 1, 2), strict=True):
        os.dup2(fd, standard)
        os.close(fd)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["takeback", *words]
    sys.path[0] = cwd
    how = sys.__stdout__
    assert how is not None
    sys.stdin = sys.__stdin__ = open(0, encoding=how.encoding, errors=how.errors, closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = open(1, "w", encoding=how.encoding, errors=how.errors, closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]
        2, "w", encoding=how.encoding, errors="backslashreplace", closefd=False, buffering=1
    )


def main() -> None:
    import takeback
    from takeback.surfaces import cli

    for module in pkgutil.walk_packages(takeback.__path__, "takeback."):
        if not _NOT_READY & set(module.name.split(".")) and not module.name.endswith("resident.start"):
            importlib.import_module(module.name)
    gc.freeze()
    wait_for_commands(socket.socket(fileno=int(sys.argv[1])))
    cli.main()


if __name__ == "__main__":
    main()
