"""JSON by the parts in C that `json` is made of, without `json` itself: its regular expressions are a tenth of the time
that a hook takes. What these parts refuse is given to `json`, which says what is wrong with it.

An interpreter without those parts has `json`.
"""

from __future__ import annotations

from collections.abc import Callable

from .typed import Any

_BLANK = " \t\n\r"


def dumps(
    value: Any, *, sort_keys: bool = False, compact: bool = False, default: Callable[[Any], Any] | None = None
) -> str:
    """As json.dumps; compact: with no blanks between items."""
    comma, colon = (",", ":") if compact else (", ", ": ")
    if _make_encoder is None:
        import json

        return json.dumps(value, sort_keys=sort_keys, separators=(comma, colon), default=default)
    if isinstance(value, str):
        return _quoted(value)
    encode = _make_encoder({}, default or _refuse, _quoted, None, colon, comma, sort_keys, False, True)
    return "".join(encode(value, 0))


def loads(text: str | bytes) -> Any:
    """As json.loads."""
    if _scan is not None:
        try:
            trimmed = (text if isinstance(text, str) else text.decode()).strip(_BLANK)
            value, end = _scan(trimmed, 0)
            if end == len(trimmed):
                return value
        except (ValueError, StopIteration, SystemError):  # the last where `json`, whose errors it raises, is not loaded
            pass
    import json

    return json.loads(text)


def _refuse(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class _AsJson:
    """How `json` scans by default."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = {"-Infinity": -float("inf"), "Infinity": float("inf"), "NaN": float("nan")}.__getitem__


_scan: Callable[[str, int], tuple[Any, int]] | None
_make_encoder: Callable[..., Callable[[Any, int], tuple[str, ...]]] | None
try:
    from _json import encode_basestring_ascii as _quoted
    from _json import make_encoder as _make_encoder
    from _json import make_scanner as _make_scanner

    _scan = _make_scanner(_AsJson())  # type: ignore[arg-type]
except ImportError:
    _scan = _make_encoder = None
