"""The resident process: one per user, started by a hook, gone when nobody has asked for a while.

    socket (0600, in a folder of 0700) ─► whoever connects must be the same user ─► a thread ─► hook.answer ─► back
    an agent's process ends ─► what it left at work ended at that moment
    a person is asked about a call, or stops one ─► looked at meanwhile (prompts.py, stops.py)

Everything it knows it could lose at any moment: the journal is written by the same code as without it, and what it
holds in memory is only what saves looking again.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import takeback
from takeback.config import settings
from takeback.errors import TakebackError
from takeback.look import prompts, stopped_calls
from takeback.store import layout
from takeback.surfaces.hook import Asked, answer, settings_of
from takeback.system import processes

from . import client
from .alone import printed
from .deaths import Called, Deaths
from .kept import Kept
from .web import TOKEN, Web

_HEARTBEAT = 0.5  # seconds: how often whoever waits is told that their call is at work
_TEND, _REST = 1.0, 5.0  # seconds between two looks at what was told, while calls come and when none do
_BUSY = 60.0  # seconds after a call in which another one is likely
_OBJECTS = 50_000  # a known tree is many tuples and not one cycle: to look it over would only cost time
_READING = 10.0  # seconds for a request to arrive
_LARGEST = 80 << 20  # bytes of a request
_ENDING = 10.0  # seconds for calls at work when it ends
_FAILURES = 200  # times in a row that nobody could look, after which a prompt or a call is left alone
_TAKING_OVER = 10.0  # seconds for the process before this one to end


def serve(words: Sequence[str]) -> int:
    """Runs until it is told to end, or nobody needs it any more."""
    os.umask(0o077)
    place = Path(os.fsdecode(client.folder(os.environb)))
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return 1
    if not client.is_private(os.fsencode(place)):
        return 1  # another user made it before us
    log = os.open(place / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
    with open(place / "lock", "a") as lock:
        if not _took(lock.fileno(), place / "socket"):
            return 0
        return Server(place, words[0] if words else "", dict(os.environ)).run()


def _took(lock: int, path: Path) -> bool:
    """Whether this is the one process of its user; another that is about to end is waited for."""
    until = time.monotonic() + _TAKING_OVER
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() > until or _listens(path):
                return False
            time.sleep(0.05)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(0.1)
        try:
            line.connect(str(path))
        except OSError:
            return False
    return True


class Chore(NamedTuple):
    """What is done in a workspace again and again, as long as it is due."""

    is_due: Callable[[Workspace], bool]
    do: Callable[[Workspace], bool]  # whether it still is
    pause: float


CHORES = (
    Chore(lambda workspace: workspace.is_asking, lambda workspace: workspace.attend(), prompts.PAUSE),
    Chore(
        lambda workspace: workspace.is_written_down, lambda workspace: workspace.close_stopped(), stopped_calls.PAUSE
    ),
)


class Call:
    """A call at work, and the connection that waits for it. Two threads write to it."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._lock = threading.Lock()
        self._is_answered = False

    def is_at_work(self) -> None:
        with self._lock:
            if not self._is_answered:
                try:
                    self.line.send(client.AT_WORK, socket.MSG_DONTWAIT)
                except OSError:
                    pass  # gone, or not reading: the answer will tell

    def answer(self, data: bytes) -> None:
        with self._lock:
            self._is_answered = True
            try:
                self.line.sendall(data)
            except OSError:
                pass  # whoever asked is gone; what was done is journaled


class Server:
    def __init__(self, place: Path, here: str, environ: Mapping[str, str]) -> None:
        self.place = place
        self.here = here  # the folder of whoever had it started
        self.environ = environ
        self.kept = Kept()
        self.deaths = Deaths()
        self._attended: set[tuple[Path, Chore]] = set()  # what is done again and again, and where
        self._attending = threading.Lock()
        self.began = time.time()
        self.calls = 0
        self._made_of = client.installation(), _stamp()
        self._at_work: set[object] = set()  # a Call each; over HTTP, where nobody is told, anything
        self._lock = threading.Lock()
        self._ending = False
        self._last = time.monotonic()
        self._http: dict[str, object] = {}  # the port it answers on and where the token is, or why it does not
        self._configured: tuple[object, settings.Settings] | None = None
        self._wake, self._woken = socket.socketpair()

    # -- running ---------------------------------------------------------------

    def run(self) -> int:
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        path = self.place / "socket"
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))  # in a folder that is closed to others
        path.chmod(0o600)
        listening.listen(64)
        inode = path.stat().st_ino
        web = self._open_web()
        gc.set_threshold(_OBJECTS)
        self._thread(self._warm_up)
        try:
            while not self._ending and _is_inode(path, inode):
                self._serve_next(listening)
                if web is None and not self._at_work and time.monotonic() - self._last > self._idle():
                    if not self._is_waited_for():
                        break
                    self._last = time.monotonic()
        finally:
            self._ending = True
            if _is_inode(path, inode):
                path.unlink(missing_ok=True)
            listening.close()
            if web is not None:
                web.close()
        until = time.monotonic() + _ENDING
        while self._at_work and time.monotonic() < until:
            time.sleep(0.01)
            self._tell_at_work()
        if not self._at_work:
            self.kept.close()
        return 0

    def _serve_next(self, listening: socket.socket) -> None:
        """Waits for whoever comes, and meanwhile does what is due."""
        busy = time.monotonic() - self._last < _BUSY
        pause = _HEARTBEAT if self._at_work else _TEND if busy else _REST
        watched: list[Any] = [listening, self._woken, *self.deaths.descriptors]
        ready, _, _ = select.select(watched, [], [], min(pause, self._idle()))
        for process, called in self.deaths.ended(ready):
            self._thread(partial(self._end_gone, process, called, time.time()))
        if listening in ready:
            call = Call(listening.accept()[0])
            with self._lock:
                self._at_work.add(call)  # before its thread runs: who looks whether any is at work must not miss it
            self._thread(lambda: self._handle(call))
        elif self._woken in ready:
            self._woken.recv(64)
        elif not self._at_work:
            self.kept.tend()
        self._tell_at_work()

    def _tell_at_work(self) -> None:
        with self._lock:
            calls = [call for call in self._at_work if isinstance(call, Call)]
        for call in calls:
            call.is_at_work()

    def _thread(self, work: object) -> None:
        threading.Thread(target=work, daemon=True).start()  # type: ignore[arg-type]

    def _end(self) -> None:
        self._ending = True
        self._stir()

    def _stir(self) -> None:
        try:
            self._wake.send(b"x", socket.MSG_DONTWAIT)
        except OSError:
            pass

    def _idle(self) -> float:
        try:
            return self._settings(self.environ).idle
        except TakebackError:
            return 60.0

    def _settings(self, environ: Mapping[str, str]) -> settings.Settings:
        """The user's own: read again when the file or the environment changes."""
        file = settings.user_config(environ)
        try:
            st = file.stat()
            stamp: object = (st.st_ino, st.st_mtime_ns, st.st_size)
        except OSError:
            stamp = None
        key = (file, stamp, tuple(sorted(i for i in environ.items() if i[0].startswith("TAKEBACK"))))
        known = self._configured  # held on to: the next thread may put another in its place
        if known is None or known[0] != key:
            known = self._configured = key, settings.load(None, environ)
        return known[1]

    def _warm_up(self) -> None:
        """Opens the workspace that whoever had us started is about to ask for again."""
        try:
            root = layout.find_root(settings.home(self.environ), Path(self.here)) if self.here else None
            if root is not None:
                found = settings_of(root, self.environ)
                if found.enabled:
                    with self.kept.open(root, found, self.environ):
                        pass
        except TakebackError:
            return  # the call itself will say so

    def _open_web(self) -> Web | None:
        try:
            port = self._settings(self.environ).http_port
        except TakebackError:
            return None
        if not port:
            return None
        try:
            web = Web(self.place, port, self._answer_web)
        except OSError as error:
            self._http = {"port": port, "failed": error.strerror or str(error)}
            return None
        self._http = {"port": port, "token": str(self.place / TOKEN)}
        return web

    # -- agents' processes -------------------------------------------------------

    def _opening(self, above: processes.Process) -> Workspaces:
        """Opens the workspace of a call, and watches the process that made it."""

        def opening(
            root: Path, found: settings.Settings, environ: Mapping[str, str]
        ) -> AbstractContextManager[Workspace]:
            called = Called(root, found, environ)
            if self.deaths.watch(above, called):
                self._stir()  # it waits for those it knew
            return self._open(called)

        return opening

    @contextmanager
    def _open(self, called: Called) -> Iterator[Workspace]:
        with self.kept.open(*called) as workspace:
            yield workspace
            due = [chore for chore in CHORES if chore.is_due(workspace)]
        for chore in due:
            with self._attending:
                is_new = (called.root, chore) not in self._attended
                self._attended.add((called.root, chore))
            if is_new:
                self._thread(partial(self._attend, called, chore))

    def _attend(self, called: Called, chore: Chore) -> None:
        """As long as it is due there. What nobody has seen is uncertain."""
        failures = 0
        while not self._ending and failures < _FAILURES:
            time.sleep(chore.pause)
            try:
                with self.kept.open(*called) as workspace:
                    if chore.do(workspace):
                        failures = 0
                        continue
                    with self._attending:  # who asks after this starts another
                        if not chore.is_due(workspace):
                            self._attended.discard((called.root, chore))
                            return
            except TakebackError:
                failures += 1
        with self._attending:
            self._attended.discard((called.root, chore))

    def _end_gone(self, process: processes.Process, called: Called, at: float) -> None:
        work = object()
        with self._lock:
            self._at_work.add(work)
        try:
            with self.kept.open(*called) as workspace:
                workspace.end_gone(process, at)
        except TakebackError:
            return  # the next look closes what is open, and knows less
        finally:
            self._is_over(work)

    def _is_waited_for(self) -> bool:
        """Whether an agent that is there still has a call at work, whose end is to be seen."""
        for called in self.deaths.places:
            try:
                with self.kept.open(*called) as workspace:
                    if workspace.observer.is_called:
                        return True
            except TakebackError:
                continue
        return False

    # -- one call --------------------------------------------------------------

    def _handle(self, call: Call) -> None:
        line = call.line
        with line:
            try:
                pid, user = _peer(line)
                if user != os.geteuid():
                    return
                line.settimeout(_READING)
                head, said = _received(line)
                line.settimeout(None)
                call.answer(self._answered(pid, head, said))
            except (OSError, ValueError):
                return  # cut off, or it makes no sense: whoever asked does all of it by itself
            finally:
                self._is_over(call)

    def _is_over(self, call: object) -> None:
        self._last = time.monotonic()
        with self._lock:
            self._at_work.discard(call)

    def _answered(self, pid: int, head: bytes, said: bytes) -> bytes:
        made_by, agent, event, here, is_at, *environment = (os.fsdecode(part) for part in head.split(b"\0"))
        if agent == client.STOP:
            self._end()
            return _packed(0, b"", b"")
        if agent == client.STATUS:
            return _packed(0, json.dumps(self._status()).encode(), b"")
        if self._ending or (os.fsencode(made_by), _stamp()) != self._made_of:
            self._end()  # another takeback, or a newer one: it starts its own
            return client.NOT_HERE
        if client.identity(os.fsencode(here)) != os.fsencode(is_at):
            return client.NOT_HERE  # whoever asks sees another tree than we do
        environ = dict(pair.partition("=")[::2] for pair in environment)
        try:
            if not self._settings(environ).resident:
                self._end()
                return client.NOT_HERE
        except TakebackError:
            pass  # the hook puts it on record
        above = processes.above_shells(pid)
        self.calls += 1
        at = processes.hook_began(pid)
        reply = answer(Asked(agent, event, said, here, environ, *above, at), self._opening(above))
        return _packed(reply.code, printed(reply.out), reply.err.encode("utf-8", "replace"))

    def _answer_web(
        self, agent: str, event: str, said: bytes, here: str, who: processes.Process
    ) -> tuple[int, bytes, bytes]:
        call = object()
        with self._lock:
            self._at_work.add(call)
        try:
            self.calls += 1
            reply = answer(Asked(agent, event, said, here, self.environ, *who), self._opening(who))
        finally:
            self._is_over(call)
        return reply.code, reply.out.encode("utf-8", "replace"), reply.err.encode("utf-8", "replace")

    def _status(self) -> dict[str, object]:
        return {
            "pid": os.getpid(),
            "version": takeback.__version__,
            "began": self.began,
            "calls": self.calls,
            "http": self._http,
            "workspaces": [{"root": root, "watched": how} for root, how in self.kept.roots()],
        }


if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from takeback.surfaces.hook import Workspaces
    from takeback.workspace import Workspace

    from .web import Web


def _packed(code: int, out: bytes, err: bytes) -> bytes:
    lengths = len(out).to_bytes(4, "big") + len(err).to_bytes(4, "big")
    return client.ANSWER + bytes((code,)) + lengths + out + err


def _received(line: socket.socket) -> tuple[bytes, bytes]:
    sizes = _exactly(line, client.HEAD)
    head, said = int.from_bytes(sizes[:4], "big"), int.from_bytes(sizes[4:], "big")
    if head + said > _LARGEST:
        raise ValueError("too large")
    data = _exactly(line, head + said)
    return data[:head], data[head:]


def _exactly(line: socket.socket, size: int) -> bytes:
    parts, left = [], size
    while left:
        part = line.recv(min(left, 1 << 20))
        if not part:
            raise ValueError("cut off")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _peer(line: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end. Where only the user is told, or neither, the folder's mode has to do
    for what is not."""
    if sys.platform == "linux":
        pid, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return pid, user
    if sys.platform == "darwin":
        _, user = struct.unpack_from("2I", line.getsockopt(0, 1, 76))  # SOL_LOCAL, LOCAL_PEERCRED
        return int.from_bytes(line.getsockopt(0, 2, 4), sys.byteorder), user
    return 0, os.geteuid()


def _stamp() -> object:
    """Changes when this installation is replaced by another one."""
    try:
        st = os.stat(takeback.__file__)
    except OSError:
        return None
    return st.st_ino, st.st_mtime_ns, st.st_size


def _is_inode(path: Path, inode: int) -> bool:
    try:
        return path.lstat().st_ino == inode
    except OSError:
        return False
