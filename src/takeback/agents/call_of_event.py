"""A call of an agent as the journal has it: what a person knows it by, the paths that it names, and what it does where
nothing is captured."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from takeback.model.calls import Call
from takeback.model.effects import IRREVERSIBLE, UNCOVERED
from takeback.model.outside import NewAct
from takeback.privacy import redact

from . import events as kinds
from .events import Event

if TYPE_CHECKING:
    from pathlib import Path

    from takeback.gate.risk import Risk
    from takeback.model.outside import NewAct

_SUMMARY = 100  # characters
_COMMAND = 4096  # characters of a command that are read for its summary
_UNSEEN = "unknown"  # a risk of which nothing is known, and so nothing to journal
# What a shell says of a program that it could not run, by its exit code.
_NEVER_RAN = {126: ("Permission denied", "cannot execute"), 127: ("command not found", "not found", "No such file")}
_CURL_SENT_NOTHING = (1, 2, 3, 5, 6, 7, 35, 60)  # no such protocol, host or connection, or no certificate to trust
_CURL_REFUSED = 22  # with --fail
# Options of curl with which one URL is one request; with any other nobody here can tell.
_CURL_FLAGS = "#0146fgGiIjJkNnOqRsSv"
_CURL_LONG_FLAGS = (
    "--compressed", "--fail", "--fail-with-body", "--get", "--globoff", "--head", "--http1.1", "--http2", "--include",
    "--insecure", "--ipv4", "--ipv6", "--no-buffer", "--no-progress-meter", "--progress-bar", "--remote-name",
    "--show-error", "--silent", "--tlsv1.2", "--verbose",
)  # fmt: skip
_CURL_VALUES = "AbcdDeFHmouwX"
_CURL_LONG_VALUES = (
    "--cacert", "--cert", "--connect-timeout", "--cookie", "--cookie-jar", "--data", "--data-ascii", "--data-binary",
    "--data-raw", "--data-urlencode", "--form", "--form-string", "--header", "--json", "--key", "--max-time",
    "--output", "--oauth2-bearer", "--referer", "--request", "--url", "--user", "--user-agent", "--write-out",
)  # fmt: skip
_QUOTED = r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\""""
_EDITS = {"Edit": ("edit", "replace", "str_replace", "insert", "multiedit", "notebookedit"), "Patch": ("patch",)}


def acts(event: Event, outside: Iterable[str], risks: Iterable[Risk]) -> tuple[NewAct, ...]:
    """What a call that may run does where nothing is captured. A request that it sends twice is two acts."""
    domain = "command" if event.does == kinds.SHELL else "note"
    found: dict[str, list[NewAct]] = {}
    for risk in risks:
        if risk.kind != _UNSEEN and not risk.outside:
            did = {"why": risk.why, "left_to_do": risk.why if risk.request else risk.undo or risk.why}
            did |= {"request": risk.request} if risk.request else {}
            found[risk.what] = [NewAct(domain, risk.what, risk.what, None, IRREVERSIBLE, did)] * risk.times
    uncovered = {"left_to_do": "it lies outside the workspace, where nothing is captured"}
    for path in (*outside, *(path for risk in risks for path in risk.outside)):
        found[path] = [NewAct("note", f"{_said(event)} {path}", path, None, UNCOVERED, uncovered)]
    return tuple(act for acts in found.values() for act in acts)


def nothing_came_of(event: Event) -> str:
    """Why a command that failed is known to have done nothing outside the files; empty where nobody can tell. Only of
    one that stands alone on its line: of several the exit code is that of the last."""
    if event.does != kinds.SHELL or event.exit is None or _joined(event.command):
        return ""
    words = [word for word in event.command.split() if "=" not in word.partition("-")[0]] or [""]
    program = os.path.basename(words[0].strip("'\""))
    if event.exit in _NEVER_RAN and any(f"{program}: {why}" in event.said for why in _NEVER_RAN[event.exit]):
        return f"it was never run: {program} could not be started (exit {event.exit})"
    if program == "curl" and _is_one_request(event.command):
        if event.exit in _CURL_SENT_NOTHING:
            return f"nothing was sent: curl could not reach the server (exit {event.exit})"
        if event.exit == _CURL_REFUSED and "returned error: 4" in event.said:
            return "the server refused it with a 4xx, so nothing happened"
    return ""


def _joined(command: str) -> bool:
    """Whether a line holds more than one command, or one that a shell or another program makes of it."""
    return any(part in command.strip() for part in (";", "&", "|", "\n", "`", "$(", "<(", ">("))


def _is_one_request(command: str) -> bool:
    """Whether a line is a curl that sends exactly one request, as far as it can be read."""
    if any(sign in re.sub(_QUOTED, "", command) for sign in "${}[]*<>"):  # of which a shell may make several words
        return False
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that nothing closes
        return False
    while words and os.path.basename(words[0]) != "curl":  # what is set for it alone
        words.pop(0)
    urls: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            urls.append(word)
        elif word in _CURL_LONG_VALUES:
            value = next(rest, "")
            urls += [value] if word == "--url" else []
        elif not word.startswith("--"):
            flags = word[1:].lstrip(_CURL_FLAGS)
            if flags and flags[0] not in _CURL_VALUES:
                return False
            if len(flags) == 1:
                next(rest, "")
        elif word not in _CURL_LONG_FLAGS:
            return False
    return len(urls) == 1 and not any(sign in urls[0] for sign in "${}[]")


def _said(event: Event) -> str:
    return "Shell wrote" if event.does == kinds.SHELL else _verb(event.tool)


def call(event: Event, root: Path) -> tuple[Call, tuple[str, ...]]:
    """The call as the journal has it, and what it writes where nothing is captured."""
    if event.does != kinds.WRITES:
        return Call(event.key, event.tool, _summary(event, ()), transcript=event.transcript), ()
    try:
        inside, outside = _divided(event, root)
    except ValueError:  # no file can be called that: whatever the tool makes of it
        return Call(event.key, event.tool, _summary(event, ()), transcript=event.transcript), ()
    summary = _summary(event, (*map(os.fsdecode, inside), *outside))
    return Call(event.key, event.tool, summary, inside, scans=False, transcript=event.transcript), outside


def _divided(event: Event, root: Path) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """The paths that a call names: those below the root, by name and behind symlinks, and those elsewhere."""
    inside: dict[bytes, None] = {}
    outside: dict[str, None] = {}
    for given in event.paths:
        path = os.path.join(event.cwd or str(root), os.path.expanduser(given) if given.startswith("~/") else given)
        path = os.path.normpath(path)
        folder, name = os.path.split(path)
        for found in (os.path.join(os.path.realpath(folder), name), os.path.realpath(path)):
            below = os.path.relpath(found, root)
            if below == os.pardir or below.startswith(os.pardir + os.sep):
                outside[found] = None
            elif below != os.curdir:
                inside[os.fsencode(below)] = None
    return tuple(inside), tuple(outside)


def _summary(event: Event, paths: tuple[str, ...]) -> str:
    """What a person recognises the call by."""
    if event.server:
        name = event.tool.partition(event.server)[2].lstrip("_-.") or event.tool
        return _cut(f"mcp: {event.server}.{name}")
    if event.does == kinds.SHELL:
        lines = [line.strip() for line in event.command.splitlines() if line.strip()]
        more = " …" if len(lines) > 1 else ""
        line = redact.text(lines[0][:_COMMAND]) if lines else ""  # before it is cut: half a secret has no shape
        return _cut(f"{'Bash' if event.tool.lower() == 'bash' else 'Shell'}: {line}", more)
    if paths:
        return _cut(f"{_verb(event.tool)} {paths[0]}", f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    return _cut(event.tool)


def _verb(tool: str) -> str:
    lower = tool.lower()
    return next((verb for verb, parts in _EDITS.items() if any(part in lower for part in parts)), "Write")


def _cut(told: str, more: str = "") -> str:
    clean = "".join(c if c.isprintable() else " " for c in told)
    return clean + more if len(clean) + len(more) <= _SUMMARY else clean[: _SUMMARY - 1] + "…"
