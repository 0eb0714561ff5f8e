"""JSON that a person typed, or named a file of."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from takeback.errors import UsageError

if TYPE_CHECKING:
    from typing import Any


_LARGEST = 4 << 20  # bytes of a body that are read: only its beginning is kept


def text_given(given: str | None) -> str | None:
    """A text as typed, that of a file after @, or standard input for -."""
    if given is None or (given != "-" and not given.startswith("@")):
        return given
    try:
        if given == "-":
            data = sys.stdin.buffer.read(_LARGEST)
        else:
            with open(given[1:], "rb") as file:
                data = file.read(_LARGEST)
    except OSError as error:
        raise UsageError(f"cannot read {given[1:]} ({error.strerror})", "name a file after the @") from None
    return data.decode("utf-8", "replace")


def parsed_json(given: str | None, flag: str, example: str) -> Any:
    """What was written after an option, as data: JSON, that of a file after @, or standard input for -."""
    if given is None:
        return None
    try:
        return json.loads(text_given(given) or "")
    except ValueError as error:
        raise UsageError(f"{flag} is no JSON ({error})", f"such as {example}") from None
