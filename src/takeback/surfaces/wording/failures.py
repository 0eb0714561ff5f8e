"""How failures are told: a known one with its next step, a bug with a report to paste."""

from __future__ import annotations

import errno
import os
import sqlite3

from takeback.errors import Stale, TakebackError

from .text import safe


def what_differs(error: TakebackError) -> list[str]:
    """Of a plan that is stale: each step that is not what it was."""
    differing = error.differing if isinstance(error, Stale) else ()
    lines = []
    for target, was, now in differing[:20]:
        shown = f"thread {target[2:]}" if target.startswith("//") else target
        lines.append(f"{safe(shown)}: {safe(was)} ≠ now {safe(now)}")
    return [*lines, f"… and {len(differing) - 20:,} more"] if len(differing) > 20 else lines


def of_the_system(error: Exception) -> TakebackError | None:
    """What the disk or the database said, where no part of the core had a better word for it."""
    if isinstance(error, sqlite3.Error):
        return TakebackError(f"the journal cannot be used ({error})", "takeback doctor and takeback verify look at it")
    if not isinstance(error, OSError) or error.errno is None:
        return None
    hints = {
        errno.ENOSPC: "free space on that disk, then run it again; nothing is lost",
        errno.EDQUOT: "free space in your quota, then run it again; nothing is lost",
        errno.EROFS: "make that file system writable, or set TAKEBACK_HOME to another folder",
        errno.EACCES: "mend the permissions there, then run it again",
        errno.EPERM: "mend the permissions there, then run it again",
        errno.EIO: "the disk failed to read or write: look at its health, then run takeback verify",
        errno.EMFILE: "raise the limit of open files (ulimit -n), then run it again",
    }
    if error.errno not in hints:
        return None
    where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, (str, bytes)) else ""
    return TakebackError(f"{error.strerror}{where}", hints[error.errno])


def told(error: Exception, verb: str) -> TakebackError:
    """Any failure as one that can be told where nothing may end because of it."""
    if isinstance(error, TakebackError):
        return error
    return of_the_system(error) or TakebackError(
        f"a bug in takeback {verb}: {type(error).__name__}: {error}",
        "tell us what you did; your history is safe, and takeback verify checks it",
    )
