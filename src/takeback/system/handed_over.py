"""Work that is handed to another thread, and where that was done. Tasks of asyncio know their context, threads do not.

    thread.start()      ─► what is open here is noted ─► the thread finds it: handed_over()
    pool.submit(work)   ─► what is open here is noted ─► the work finds it, in whichever thread of the pool

Python has no hook for either, so that both are wrapped, once, when something is first open that they could belong to.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, ContextVar
from typing import Any

_from: ContextVar[Any] = ContextVar("takeback_handed_over", default=None)
_is_followed = False
_lock = threading.Lock()


def handed_over() -> Any:
    """What was open where this thread was started, or its work submitted; None where nothing was, or nobody saw it."""
    return _from.get()


def is_followed() -> bool:
    """Whether anything was open in this process that work could have been handed over from."""
    return _is_followed


def start_apart(thread: threading.Thread) -> None:
    """Starts a thread that serves whoever asks it, and belongs to nobody."""
    Context().run(thread.start)


def follow(here: Callable[[], Any]) -> None:
    """From now on, what `here` says is handed over with every thread that is started and all work that is submitted."""
    global _is_followed
    with _lock:
        if _is_followed:
            return
        _is_followed = True
        threading.Thread.start = _following_start(here)  # type: ignore[method-assign, assignment]
        ThreadPoolExecutor.submit = _following_submit(here)  # type: ignore[method-assign]


def _following_start(here: Callable[[], Any]) -> Callable[[threading.Thread], None]:
    plain = threading.Thread.start

    @functools.wraps(plain)
    def start(self: threading.Thread) -> None:
        if (found := here()) is None:
            return plain(self)
        self.run = functools.partial(_run, found, self.run)  # type: ignore[method-assign]
        try:
            plain(self)
        except BaseException:
            del self.run  # it was not started, and may be later, elsewhere
            raise

    return start


def _following_submit(here: Callable[[], Any]) -> Callable[..., Future[Any]]:
    plain: Callable[..., Future[Any]] = ThreadPoolExecutor.submit

    @functools.wraps(plain)
    def submit(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        # Also where nothing is open: the pool's thread may have been started for somebody else.
        return plain(self, _run, here(), fn, *args, **kwargs)

    return submit


def _run(found: Any, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    token = _from.set(found)
    try:
        return work(*args, **kwargs)
    finally:
        _from.reset(token)
