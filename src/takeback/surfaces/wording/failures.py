"""How failures are told: a known one with its next step, a bug with a report to paste."""

from __future__ import annotations

import difflib
import errno
import os
import platform
import sqlite3
import tempfile
import traceback

from takeback import __version__
from takeback.errors import Stale, TakebackError, UsageError
from takeback.surfaces.cli.terminal import Terminal, safe
from takeback.surfaces.cli.verb_list import VERBS


def known(error: TakebackError, terminal: Terminal, as_json: bool) -> int:
    """The one place where a TakebackError becomes words and an exit code."""
    differing = error.differing if isinstance(error, Stale) else ()
    terminal.warn(f"takeback: {_lines(error.message)}")
    for line in what_differs(error):
        terminal.warn(f"    {line}")
    if error.hint:
        terminal.warn(f"  → {_lines(error.hint)}")
    if as_json:
        told: dict[str, object] = {"message": error.message, "hint": error.hint, "code": error.exit_code}
        if differing:
            told["differing"] = [{"target": t, "was": w, "now": n} for t, w, n in differing]
        terminal.json({"error": told})
    return error.exit_code


def what_differs(error: TakebackError) -> list[str]:
    """Of a plan that is stale: each step that is not what it was."""
    differing = error.differing if isinstance(error, Stale) else ()
    lines = []
    for target, was, now in differing[:20]:
        shown = f"thread {target[2:]}" if target.startswith("//") else target
        lines.append(f"{safe(shown)}: {safe(was)} ≠ now {safe(now)}")
    return [*lines, f"… and {len(differing) - 20:,} more"] if len(differing) > 20 else lines


def _lines(text: str) -> str:
    return safe(text)


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


def unknown_verb(verb: str) -> UsageError:
    close = difflib.get_close_matches(verb, VERBS, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return UsageError(f"there is no verb {safe(verb)!r}{meant}", "see takeback help --all")


def bug(error: Exception, terminal: Terminal, as_json: bool, verb: str) -> int:
    """Never a bare traceback: a short report, and where the long one is."""
    system = f"{platform.system()} {platform.release()}"
    where = f"takeback {__version__}, Python {platform.python_version()}, {system}"
    report = "".join(traceback.format_exception(error))
    message = f"a bug in takeback {verb}: {type(error).__name__}: {error}"
    try:
        fd, path = tempfile.mkstemp(prefix="takeback-report-", suffix=".txt")
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{where}\nverb: {verb}\n\n{report}")
        told = f"paste {path} into an issue; it names your paths, so look at it first"
    except OSError:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        told = "paste these lines into an issue" + "".join(f" (at {f.filename}:{f.lineno})" for f in last)
    terminal.warn(f"takeback: {safe(message)}")
    terminal.warn(f"  {where}")
    terminal.warn(f"  → {told}; your history is safe, and takeback verify checks it")
    if as_json:
        terminal.json({"error": {"message": message, "hint": told, "code": 70}})
    return 70
