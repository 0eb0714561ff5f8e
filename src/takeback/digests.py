"""SHA-256, by whichever of the interpreter's two is the cheaper one.

OpenSSL's is several times as fast, and loading it costs a start 3 ms. So a run takes the small one until it has hashed
some bytes: a hook that hashes a few files never needs the other. Both give the same digests.
"""

from __future__ import annotations

from collections.abc import Callable

from .typed import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash

_FEW = 256 << 10  # bytes that the small one hashes in half the time that the other takes to load
_left = _FEW


def _small() -> Callable[[bytes], _Hash]:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found]
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found]  # its name before 3.12
        except ImportError:
            from hashlib import sha256
    made: Callable[[bytes], _Hash] = sha256
    return made


_made = _small()


def sha256(data: bytes = b"") -> _Hash:
    """As hashlib's. For what is given piece by piece, and may be long, there is `stream`."""
    global _left, _made
    if _left > 0:
        _left -= len(data)
        if _left <= 0:
            from hashlib import sha256 as _made
    return _made(data)


def stream() -> _Hash:
    """For a content of any length, given piece by piece."""
    from hashlib import sha256

    return sha256()
