"""A line that cannot be read as a message, as with half a surrogate in a text or no JSON at all: answered as a failure,
under its id where that can be told. What we asked the client, and was answered so, has failed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCResponse
from pydantic import ValidationError

from takeback.errors import UsageError

from .answers import failure

_HINT = "send one message of JSON on a line, text as UTF-8; bytes of a name that are none as \\xe9"

# The errors that name the whole line, each by how many words say where it is.
_WHOLE = {"json_invalid": 0, "model_type": 1, "missing": 2}

# A string to its end, closed or not, a mark of punctuation, or a bare word.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)


def answer(found: ValidationError) -> JSONRPCResponse | JSONRPCError | None:
    """What is said to a line that could not be read; None where nobody waits for an answer."""
    line = _line(found)
    said = _members(line)
    if (isinstance(line, str) and not line.strip()) or _is_notification(said) or _is_reply(said):
        return None
    if said.get("method") == "tools/call" and (id := _id(said)) is not None:
        failed = failure(UsageError(_why(found), _HINT)).model_dump(mode="json", by_alias=True, exclude_none=True)
        return JSONRPCResponse(jsonrpc="2.0", id=id, result=failed)
    return _error(found, said)


def reply(found: ValidationError) -> JSONRPCError | None:
    """The client's answer to something we asked, where that is what could not be read: whoever asked hears that it
    failed, and waits no longer. None of any other line."""
    said = _members(_line(found))
    return _error(found, said) if _is_reply(said) else None


def _error(found: ValidationError, said: Mapping[str, Any]) -> JSONRPCError:
    code = PARSE_ERROR if _is_no_json(found) else INVALID_REQUEST
    return JSONRPCError(jsonrpc="2.0", id=_id(said), error=ErrorData(code=code, message=f"{_why(found)}; {_HINT}"))


def _why(found: ValidationError) -> str:
    return f"this request cannot be read: {found.errors()[0]['msg']}"


def _is_no_json(found: ValidationError) -> bool:
    return found.errors()[0]["type"] == "json_invalid"


def _is_notification(said: Mapping[str, Any]) -> bool:
    return "method" in said and "id" not in said


def _is_reply(said: Mapping[str, Any]) -> bool:
    return "method" not in said and ("result" in said or "error" in said) and _id(said) is not None


def _id(said: Mapping[str, Any]) -> int | str | None:
    """The id that an answer can bear; None where there is none, or it could not be written either."""
    id = said.get("id")
    if isinstance(id, str):
        return id if id.encode(errors="replace").decode() == id else None
    return id if isinstance(id, int) and not isinstance(id, bool) else None


def _line(found: ValidationError) -> object:
    """The line, where it is no JSON; else what it holds; nothing where no error names the whole of it."""
    return next((e["input"] for e in found.errors() if len(e["loc"]) == _WHOLE.get(e["type"], -1)), None)


def _members(line: object) -> Mapping[str, Any]:
    """The members of the object that a line holds, as far as it can be read: no depth and no number is too much."""
    if not isinstance(line, str):
        return line if isinstance(line, dict) else {}
    found: dict[str, Any] = {}
    depth, last, name = 0, "", None
    for token in _TOKEN.findall(line):
        if depth == 1 and token == ":":
            name = _value(last)
        elif depth == 1 and last == ":" and isinstance(name, str):
            found[name] = _value(token)
        depth += (token in "{[") - (token in "}]")
        last = token if depth == 1 else last
    return found


def _value(token: str) -> Any:
    """What a token stands for; nothing for one that opens a list or an object, or cannot be read."""
    try:
        return json.loads(token, strict=False)
    except ValueError:
        return None
