"""The kernel tells what changes in a tree: inotify, on Linux, through ctypes alone.

    Queue        the system calls: watches on folders, events
    TreeWatcher  a watch on every covered folder of a tree, kept up as folders come, move and go

A folder is watched before it is listed, so nothing falls between. Events are queued by the system call that causes
them; a cookie file made in a folder of our own is therefore the last event of all that happened before it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from takeback.store.folder_objects import join
from takeback.system.forking import is_running
from takeback.system.safefs import open_root
from takeback.system.safefs.descent import Descent

from .watcher import MANY, Ignored, Seen, Unwatchable

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
_ONLYDIR, _EXCL_UNLINK, _ISDIR = 0x1000000, 0x4000000, 0x40000000
_WANTED = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
    | _ONLYDIR | _EXCL_UNLINK
)  # fmt: skip
_HEADER = struct.Struct("iIII")
_BATCH = 1 << 18
_PATIENCE = 5.0  # seconds until a cookie that does not show up counts as lost
_LIMITS = {
    errno.ENOSPC: ("watches", "max_user_watches"),
    errno.EMFILE: ("instances", "max_user_instances"),
    errno.ENOMEM: ("memory", ""),
}


class Event(NamedTuple):
    watch: int
    mask: int
    name: bytes


class Queue:
    """One inotify instance. Reading never blocks."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise Unwatchable("this system has no inotify")
        self.fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise _limit(ctypes.get_errno())

    def add(self, folder: bytes) -> int:
        """Watches a folder; the same folder has the same number whatever it is called."""
        found: int = self._libc.inotify_add_watch(self.fd, folder, _WANTED)
        if found < 0:
            code = ctypes.get_errno()
            if code in _LIMITS:
                raise _limit(code)
            raise OSError(code, os.strerror(code), folder)
        return found

    def remove(self, watch: int) -> None:
        self._libc.inotify_rm_watch(self.fd, watch)  # fails where the folder is gone, and its watch with it

    def read(self) -> Iterator[Event]:
        """What is in the queue just now, oldest first."""
        while True:
            try:
                data = os.read(self.fd, _BATCH)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, at)
                at += _HEADER.size
                yield Event(watch, mask, data[at : at + length].rstrip(b"\0"))
                at += length

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _limit(code: int) -> Unwatchable:
    what, knob = _LIMITS.get(code, (os.strerror(code), ""))
    if not knob:
        return Unwatchable(f"inotify is not to be had ({os.strerror(code)})")
    try:
        allowed = f" ({int(Path('/proc/sys/fs/inotify', knob).read_bytes()):,})"
    except (OSError, ValueError):
        allowed = ""
    return Unwatchable(f"the system's limit of inotify {what}{allowed} is reached; sysctl fs.inotify.{knob} raises it")


class TreeWatcher:
    """Every covered folder below a root."""

    how = "inotify"
    limited = ""

    def __init__(self, root: str, ignored: Ignored, cookies: Path | None, times: bool = False) -> None:
        self._root = root
        self._ignored = ignored
        self._times = times
        self._cookies = cookies
        self._paths: set[bytes] = set()
        self._everything = False
        self._news = False
        self._cookie = b""  # the one that is waited for
        self._count = 0
        self._start()

    def close(self) -> None:
        self._queue.close()

    # -- the seam ------------------------------------------------------------

    def wait(self, timeout: float, wake: int = -1) -> bool:
        until = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._queue.fd, select.POLLIN)
        if wake >= 0:
            poll.register(wake, select.POLLIN)
        while not self._took_news():
            left = until - time.monotonic()
            ready = [fd for fd, _ in poll.poll(max(0.0, left) * 1000)]
            before = self._queue.fd
            self._drain()
            if self._queue.fd != before:
                poll.unregister(before)
                poll.register(self._queue.fd, select.POLLIN)
            if wake in ready or left <= 0:
                return self._took_news()
        return True

    def changed(self) -> Seen:
        self._barrier()
        seen = Seen(self._everything or len(self._paths) >= MANY, frozenset(self._paths))
        self._paths.clear()
        self._everything = self._news = False
        return seen

    def _took_news(self) -> bool:
        news, self._news = self._news, False
        return news

    # -- the barrier ---------------------------------------------------------

    def _barrier(self) -> None:
        """Returns once everything that happened before it has been read from the queue."""
        if self._cookies is None:
            self._drain()
            return
        self._count += 1
        self._cookie = b"cookie-%d-%d-%d" % (os.getpid(), id(self), self._count)
        path = os.fsencode(self._cookies) + b"/" + self._cookie
        until = time.monotonic() + _PATIENCE
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            self._drain()
            while self._cookie and time.monotonic() < until:
                poll = select.poll()
                poll.register(self._queue.fd, select.POLLIN)
                poll.poll(100)
                self._drain()
            if self._cookie:
                self._all_of_it()
        except OSError:  # no room for a cookie: nothing is proved, so all of it has to be looked at
            self._drain()
            self._all_of_it()
        finally:
            self._cookie = b""
            try:
                os.unlink(path)
            except OSError:
                pass

    # -- watches -------------------------------------------------------------

    def _start(self) -> None:
        self._queue = Queue()
        self._by_watch: dict[int, bytes] = {}
        self._by_path: dict[bytes, int] = {}
        self._cookie_watch = 0
        try:
            self._cookie_watch = self._watch_cookies()
            self._follow(b"")
        except BaseException:
            self._queue.close()
            raise

    def _watch_cookies(self) -> int:
        if self._cookies is None:
            return 0
        try:
            self._cookies.mkdir(mode=0o700, exist_ok=True)
            for left in self._cookies.glob("cookie-*"):
                if not is_running(left.name.split("-")[1]):
                    left.unlink(missing_ok=True)
            return self._queue.add(os.fsencode(self._cookies))
        except OSError:
            self._cookies = None  # the store cannot be written: emptying the queue has to do
            return 0

    def _restart(self) -> None:
        """Events were lost: what came and went meanwhile is not known, so all watches are made anew."""
        self._queue.close()
        self._all_of_it()
        self._cookie = b""  # it went with the queue, and all of it is to be looked at anyway
        self._start()

    def _follow(self, path: bytes, found: Callable[[bytes], None] = lambda path: None) -> None:
        """Watches a folder and all covered ones below it; tells what is in them."""
        try:
            tree = open_root(self._root)
        except OSError:
            self._all_of_it()  # the root itself is gone, as the next look will say
            return
        with tree, Descent(tree) as descent:
            device = tree.stat_self().st_dev
            waiting = [path]
            while waiting:
                here = waiting.pop()
                try:
                    folder = descent.to(here)
                    self._watch(b"/proc/self/fd/%d" % folder.fd, here)  # type: ignore[union-attr]
                    listing = folder.listing()
                except OSError:
                    continue  # gone again, a link by now, or closed to us: a scan names it
                below = []
                for name, st in listing:
                    at, is_folder = join(here, name), stat.S_ISDIR(st.st_mode)
                    if self._ignored(at, is_folder):
                        continue
                    found(at)
                    if is_folder and st.st_dev == device:
                        below.append(at)
                waiting += reversed(below)

    def _watch(self, folder: bytes, path: bytes) -> None:
        watch = self._queue.add(folder)
        was = self._by_watch.get(watch)
        if was is not None and was != path:
            self._by_path.pop(was, None)  # moved, and this is heard of before the move
        self._by_watch[watch] = path
        self._by_path[path] = watch

    def _drop(self, path: bytes) -> None:
        below = path + b"/"
        for at in [p for p in self._by_path if p == path or p.startswith(below)]:
            watch = self._by_path.pop(at)
            self._by_watch.pop(watch, None)
            self._queue.remove(watch)

    # -- events --------------------------------------------------------------

    def _drain(self) -> None:
        for event in self._queue.read():
            if event.mask & _OVERFLOW:
                self._restart()
                return
            self._take(event)

    def _take(self, event: Event) -> None:
        watch, mask, name = event
        if watch == self._cookie_watch:
            if name == self._cookie and mask & _CREATE:
                self._cookie = b""
            return
        if mask & _IGNORED:
            path = self._by_watch.pop(watch, None)
            if path is not None and self._by_path.get(path) == watch:
                del self._by_path[path]
            if path == b"":
                self._all_of_it()
            return
        folder = self._by_watch.get(watch)
        if folder is None:
            return  # of a folder that was dropped: its parent told the rest
        if not name:
            if folder and mask & (_DELETE_SELF | _MOVE_SELF):
                return
            if mask & (_DELETE_SELF | _MOVE_SELF | _UNMOUNT):
                self._all_of_it()
            else:
                self._note(folder)
            return
        path, is_folder = join(folder, name), bool(mask & _ISDIR)
        if self._ignored(path, is_folder):
            if self._times and mask & (_CREATE | _DELETE | _MOVED_FROM | _MOVED_TO):
                self._note(folder)
            return
        self._note(path)
        if is_folder:
            self._folder_changed(path, mask)

    def _folder_changed(self, path: bytes, mask: int) -> None:
        if mask & _MOVED_FROM:
            self._drop(path)
        elif mask & _DELETE:
            self._by_watch.pop(self._by_path.pop(path, -1), None)
        elif mask & (_CREATE | _MOVED_TO) or path not in self._by_path:
            self._follow(path, self._note)

    def _note(self, path: bytes) -> None:
        self._news = True
        if len(self._paths) < MANY:
            self._paths.add(path)

    def _all_of_it(self) -> None:
        self._news = self._everything = True
