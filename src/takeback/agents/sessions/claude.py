"""Claude Code's transcript of a session, one JSON object a line: how a call ended of which its hooks tell nothing.

    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": …}]}}    the call is over
    … "toolDenialKind": "user-rejected" …                     a person said no, or stopped it while it ran
    … "permissionDecision": {"decision": "reject"} …          refused, by whomever
    {"type": "user", "interruptedMessageId": …, … "[Request interrupted by user …]"}         it ran until then

Lines reach the file up to a quarter of a second after their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from takeback.agents.dialect import table, text
from takeback.journal.brackets import End

from . import transcripts

_LATE = 0.3  # seconds that a command which is stopped may take to end, after the transcript says so
_STOPPED = "[Request interrupted"
_HEADLESS = "sdk"  # how the entry point of a session begins that nobody types into, so that nobody is asked


def end_of(path: str, key: str, prompted: bool) -> End | None:
    """How the call of that key ended; None if nothing is said of its end. A person may have been asked about it."""
    lines = _lines(path, key.encode("utf-8", "surrogatepass"))
    for line in lines:
        if any(text(part, "tool_use_id") == key for part in _parts(line)):
            asked = text(line, "promptId")
            after = (other for other in lines if _says_stopped(other) and text(other, "promptId") == asked)
            return _end(line, key, next(after, None), prompted)
    return None


def _end(line: Mapping[str, Any], key: str, stopped: Mapping[str, Any] | None, prompted: bool) -> End:
    at = transcripts.moment(line.get("timestamp"))
    if not any(text(part, "tool_use_id") == key and part.get("is_error") for part in _parts(line)):
        return End(at, done=True)
    if text(table(line, "permissionDecision"), "decision") == "reject":
        return End(at, refused=True)
    if not text(line, "toolDenialKind"):
        return End(at, over=at + _LATE)
    if stopped is not None and text(stopped, "interruptedMessageId"):
        return End(at, over=at + _LATE, ran=True, untold=True)  # a person stopped it
    is_headless = text(line, "entrypoint").startswith(_HEADLESS)
    if prompted or (stopped is not None and not is_headless):
        return End(at, refused=True)
    return End(at, over=at + _LATE, untold=True) if stopped is not None else End()


def _lines(path: str, key: bytes) -> Iterator[Mapping[str, Any]]:
    """From the first line that holds the key on, what people and tools said."""
    has_begun = False
    for line in transcripts.last_lines(path):
        has_begun = has_begun or key in line
        if has_begun and b'"user"' in line and (read := transcripts.said(line)).get("type") == "user":
            yield read


def _parts(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = table(line, "message").get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _says_stopped(line: Mapping[str, Any]) -> bool:
    return any(text(part, "text").startswith(_STOPPED) for part in _parts(line))
