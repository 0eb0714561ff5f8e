"""State as plain data: written as JSON, read without importing anything by a name that stands in it, compared, told.

What a framework stored ("typed": the name of a format, NUL, bytes of it) is read as far as plain data goes; an object
becomes a table that says which class it was of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from math import isfinite
from typing import Any

from takeback.errors import Damaged, UsageError

_DEEP = 200  # levels
_LONG = 14_000  # bits of a number: Python reads and writes no longer ones as text
_EXCERPT = 80  # characters on each side
_NEAR = 1000  # characters that tell what a secret is
_NOTHING = object()


# -- writing -------------------------------------------------------------------


def named(state: Any, where: str) -> dict[str, Any]:
    """A table whose names are texts; else an error that says where it is not."""
    if not isinstance(state, Mapping):
        raise UsageError(f"{where} is no table of names and values", 'give one like {"messages": [], "step": 3}')
    for name in state:
        if not isinstance(name, str):
            raise UsageError(f"{where} has a name that is no text: {name!r}"[:200], "use texts as names")
    return dict(state)


def encoded(value: Any, where: str) -> bytes:
    """JSON; what is none is named by its path."""
    _must_be_plain(value, where, 0)
    return json.dumps(value, separators=(",", ":")).encode()


def _must_be_plain(value: Any, where: str, depth: int) -> None:
    if depth > _DEEP:
        raise UsageError(f"{where[:120]}… lies more than {_DEEP} levels deep", "save a flatter state")
    if value is None or isinstance(value, str):
        return
    if isinstance(value, int):
        if value.bit_length() > _LONG:
            raise UsageError(f"{where} is a number too long to be read again", "save it as a text")
        return
    if isinstance(value, float):
        if not isfinite(value):
            raise UsageError(f"{where} is {value}, which JSON does not have", "save a number, a text or null")
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(value):
            _must_be_plain(each, f"{where}[{at}]", depth + 1)
    elif isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise UsageError(f"{where} has a name that is no text: {name!r}"[:200], "use texts as names")
            _must_be_plain(each, f"{where}.{name}", depth + 1)
    else:
        kind = type(value)
        raise UsageError(
            f"{where} is of type {kind.__module__}.{kind.__qualname__}, which cannot be saved as plain data",
            "save texts, numbers, true, false, null, lists and tables",
        )


def typed(format: str, data: bytes) -> bytes:
    return format.encode() + b"\0" + data


def untyped(value: bytes) -> tuple[str, bytes]:
    format, _, data = value.partition(b"\0")
    return format.decode(), data


# -- reading -------------------------------------------------------------------


def decoded(value: bytes, codec: str) -> Any:
    if codec == "json":
        return json.loads(value)
    format, data = untyped(value)
    if format in ("null", "empty"):
        return None
    if format == "json":
        return json.loads(data)
    if format == "msgpack":
        return _msgpack(data)
    return {"format": format, "bytes": len(data)}


def _msgpack(data: bytes) -> Any:
    try:
        import ormsgpack
    except ImportError:
        return {"format": "msgpack", "bytes": len(data)}
    option = ormsgpack.OPT_NON_STR_KEYS
    try:
        return _readable(ormsgpack.unpackb(data, ext_hook=lambda code, raw: _extended(raw), option=option))
    except ValueError as error:
        raise Damaged(f"a value cannot be read as plain data ({error})") from error


def _extended(raw: bytes) -> Any:
    """An object, as what it was made of: (module, name, arguments …)."""
    try:
        found = _msgpack(raw)
    except Damaged:
        return {"bytes": len(raw)}
    if isinstance(found, list) and len(found) >= 3 and all(isinstance(part, str) for part in found[:2]):
        made_of = found[2]
        return {"type": f"{found[0]}.{found[1]}", **(made_of if isinstance(made_of, dict) else {"value": made_of})}
    return found


def _readable(value: Any) -> Any:
    """What JSON can tell: names are texts, bytes are told by their number."""
    if isinstance(value, dict):
        return {name if isinstance(name, str) else repr(name): _readable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_readable(each) for each in value]
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": len(value)}
    return value if value is None or isinstance(value, (str, bool, int, float)) else repr(value)


# -- comparing and telling -------------------------------------------------------


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, str, Any, Any]]:
    """(path, change, before, after) of what differs, in order."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            here = f"{path}.{name}" if path else name
            yield from _both(before.get(name, _NOTHING), after.get(name, _NOTHING), here)
    elif isinstance(before, list) and isinstance(after, list):
        for at, (one, other) in enumerate(zip_longest(before, after, fillvalue=_NOTHING)):
            yield from _both(one, other, f"{path}[{at}]")
    elif type(before) is not type(after) or before != after:
        yield path, "changed", before, after


def _both(before: Any, after: Any, path: str) -> Iterator[tuple[str, str, Any, Any]]:
    if before is _NOTHING:
        yield path, "added", None, after
    elif after is _NOTHING:
        yield path, "removed", before, None
    else:
        yield from differences(before, after, path)


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def excerpt(told: str, word: str, mask: Callable[[str], str]) -> str:
    """What stands around a word, in one line. It is masked before it is cut: nobody could tell that half a secret is
    one, or a secret without its name."""
    at = max(0, told.lower().find(word))
    first, last = max(0, at - _NEAR), at + _NEAR
    near = mask(told[first:last])
    at = max(0, near.lower().find(word))
    start, end = max(0, at - _EXCERPT), at + _EXCERPT
    part = " ".join(near[start:end].split())
    return f"{'…' if first or start else ''}{part}{'…' if end < len(near) or last < len(told) else ''}"
