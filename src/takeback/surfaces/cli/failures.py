"""A failure on the command line: its message, its hint and its exit code; a report where it is a bug of ours."""

from __future__ import annotations

import difflib
import os
import platform
import tempfile
import traceback

from takeback import __version__
from takeback.errors import Stale, TakebackError, UsageError
from takeback.surfaces.wording.failures import what_differs
from takeback.surfaces.wording.text import safe

from .terminal import Terminal
from .verb_list import VERBS


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


def _lines(text: str) -> str:
    return safe(text)


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
