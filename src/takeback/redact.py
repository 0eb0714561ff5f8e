"""Secrets out, before anything is stored or said. Pure.

text(…)      known token shapes, URLs with credentials, and the values of named environment variables
headers(…)   what authenticates, whatever it looks like
secret_in(…) what a literal looks like that should have been a reference: ${env:NAME}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MASK = "[redacted]"
_HEADERS = frozenset(
    ("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token")
)
_SHAPES: tuple[tuple[str, str], ...] = (
    ("a Stripe key", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{10,}"),
    ("a GitHub token", r"\bgh[pousr]_[0-9A-Za-z]{20,}"),
    ("an AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("a bearer token", r"(?i)\bbearer\s+[0-9A-Za-z._~+/=-]{12,}"),
)
REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_compiled: list[tuple[str, re.Pattern[str]]] = []


def _shapes() -> list[tuple[str, re.Pattern[str]]]:
    if not _compiled:
        _compiled.extend((name, re.compile(shape)) for name, shape in _SHAPES)
    return _compiled


def text(value: str, values: Iterable[str] = ()) -> str:
    """Free of everything that looks like a secret, and of these values."""
    for secret in values:
        if len(secret) >= 4:
            value = value.replace(secret, MASK)
    for _, shape in _shapes():
        value = shape.sub(MASK, value)
    return re.sub(r"(://[^/\s:@]*):[^/\s@]+@", rf"\1:{MASK}@", value)


def headers(found: Mapping[str, str], values: Iterable[str] = ()) -> dict[str, str]:
    return {
        name: MASK if name.lower() in _HEADERS and not REFERENCE.search(value) else text(value, values)
        for name, value in found.items()
    }


def secret_in(value: str) -> str:
    """What a literal secret in a text looks like, as "a Stripe key"; empty if there is none."""
    plain = REFERENCE.sub("", value)
    for name, shape in _shapes():
        if shape.search(plain):
            return name
    return "a URL with a password" if re.search(r"://[^/\s:@]*:[^/\s@]+@", plain) else ""
