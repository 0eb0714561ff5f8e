"""A request that is JSON and yet cannot be read, as with half a surrogate in a text: answered as a failure."""

from __future__ import annotations

import json

from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCResponse
from pydantic import ValidationError

from ...errors import UsageError
from .answers import failure

_HINT = "write text as UTF-8; bytes of a name that are none as \\xe9"


def answer(found: ValidationError) -> JSONRPCResponse | JSONRPCError | None:
    """What is said to a request that could not be read; None where nobody waits for an answer, or nobody knows who."""
    errors = found.errors(include_url=False)
    line = errors[0].get("input") if errors else None
    try:
        asked = json.loads(line) if isinstance(line, (str, bytes)) else None
    except (ValueError, RecursionError):
        return None
    id = asked.get("id") if isinstance(asked, dict) else None
    if not isinstance(asked, dict) or not isinstance(id, (str, int)) or isinstance(id, bool) or "method" not in asked:
        return None
    why = f"this request cannot be read: {errors[0]['msg']}"
    if asked.get("method") == "tools/call":
        said = failure(UsageError(why, _HINT)).model_dump(mode="json", by_alias=True, exclude_none=True)
        return JSONRPCResponse(jsonrpc="2.0", id=id, result=said)
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=INVALID_REQUEST, message=f"{why}; {_HINT}"))
