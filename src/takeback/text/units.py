"""Sizes and durations, as people write and read them."""

from __future__ import annotations

import re

from takeback.errors import UsageError

LARGEST = 2**63 - 1

_SIZE_UNITS: dict[str, int] = {"": 1, "b": 1} | {
    letter + suffix: base**power
    for power, letter in enumerate("kmgtp", 1)
    for suffix, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_NUMBER = r"([0-9]{1,20}(?:\.[0-9]{1,20})?)"
_SIZE = rf"{_NUMBER}\s*([A-Za-z]*)"
_DURATION_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = r"\s*".join(rf"(?:{_NUMBER}\s*{unit})?" for unit in _DURATION_UNITS)


def parse_size(text: str) -> int:
    """Bytes meant by "5GB", "1.5 GiB" or "1000"; KB is 1000 and KiB is 1024."""
    found = re.fullmatch(_SIZE, text.strip())
    unit = _SIZE_UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise UsageError(f"{text!r} is not a size", hint="write a number and a unit, such as 5GB or 1.5GiB")
    size = float(found[1]) * unit if "." in found[1] else int(found[1]) * unit
    if not 1 <= size <= LARGEST:
        raise UsageError(f"the size {text!r} is out of range", hint="write something such as 5GB")
    return round(size)


def parse_duration(text: str) -> float:
    """Seconds meant by "30d", "2h" or "1h30m"; a unit is required, since prune takes durations too."""
    found = re.fullmatch(_DURATION, text.strip())
    if found is None or not any(found.groups()):
        raise UsageError(f"{text!r} is not a duration", hint="write numbers with units, such as 30d, 2h or 1h30m")
    seconds = sum(float(n) * unit for n, unit in zip(found.groups(), _DURATION_UNITS.values()) if n)
    if not 0 < seconds <= LARGEST:
        raise UsageError(f"the duration {text!r} is out of range", hint="write something such as 30d or 2h")
    return seconds


def format_size(size: int) -> str:
    """A size as a person reads it: "3.4 MB"."""
    if size < 1000:
        return f"{size} B"
    value, unit = size / 1000, "KB"
    for larger in ("MB", "GB", "TB", "PB"):
        if round(value, 1) < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"


def format_duration(seconds: float) -> str:
    """A duration in its two largest units: "30d", "1h30m", "0.5s"."""
    if round(seconds, 1) < 60:
        return f"{max(0.0, round(seconds, 1)):g}s"
    left, parts = round(seconds), []
    for unit in "dhms":
        count, left = divmod(left, _DURATION_UNITS[unit])
        parts.append(f"{count}{unit}" if count else "")
    first = next(i for i, part in enumerate(parts) if part)
    return "".join(parts[first : first + 2])
