"""A value of a thread's state, as it lies in the journal: whole, compressed, or as what differs from an earlier one.

    body of a "value" row:  sha256 of the value · codec · payload

A conversation grows by a message at each step, and is a new value each time. What was only added to is stored as what
was added; what changed otherwise is compressed with the value before it as dictionary, which costs about what differs.
Such a chain is never longer than CHAIN: then the value is whole again.
Values too large for a row lie in the packs; those of a thread whose state is kept elsewhere lie there, many in one
upload.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from takeback.errors import Damaged

CHAIN = 16  # values that are read to read one
INLINE = 96  # bytes: up to here a value is in the reference itself
ROW = 32 << 10  # bytes: up to here it is in a row of its own
_SMALL = 200  # bytes: not worth compressing
_MESSAGE = 1 << 10  # bytes: added to a value, not worth the time
_LEVEL = 1
_BEGINNING = 16  # bytes: how many there are of something is often said there
RAW, ZSTD, DELTA, PACKED, ELSEWHERE, GROWN = range(6)
_GROWN = struct.Struct("<IB")  # up to where the earlier value goes on, and whether what was added is compressed


class Place(NamedTuple):
    """Where a value is that lies beyond this machine: in which store, in which of its blobs, and where in that."""

    store: str
    blob: str
    sha256: str  # of the whole blob
    at: int
    size: int


class Encoded(NamedTuple):
    id: bytes
    body: bytes  # of a "value" row; empty if it belongs in the packs
    depth: int  # how many values are read to read this one, beside itself


def id_of(data: bytes) -> bytes:
    return sha256(data).digest()


def encode(data: bytes, id: bytes, base: tuple[bytes, bytes, int] | None = None, largest: int = ROW) -> Encoded:
    """A value for a row, by what is smallest; `base` is an earlier value: its id, its bytes, its depth. One that takes
    more than `largest` has no row."""
    import zstandard

    if len(data) <= _SMALL:
        return Encoded(id, id + bytes((RAW,)) + data, 0)
    if base is not None and base[2] < CHAIN - 1 and len(base[1]) * 4 > len(data):
        grown = _grown(data, base[1])
        if grown is not None and len(grown) < min(largest, len(data) // 2):
            return Encoded(id, id + bytes((GROWN,)) + base[0] + grown, base[2] + 1)
        packed = _compressor(base[1], len(data)).compress(data)
        if len(packed) < min(largest, len(data) // 2):
            return Encoded(id, id + bytes((DELTA,)) + base[0] + packed, base[2] + 1)
    if len(data) > 8 * largest:
        return Encoded(id, b"", 0)
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(data)
    if min(len(packed), len(data)) > largest:
        return Encoded(id, b"", 0)
    if len(packed) >= len(data):
        return Encoded(id, id + bytes((RAW,)) + data, 0)
    return Encoded(id, id + bytes((ZSTD,)) + packed, 0)


def packed(id: bytes) -> bytes:
    """The row of a value that lies in the packs."""
    return id + bytes((PACKED,))


def elsewhere(id: bytes, place: Place) -> bytes:
    return id + bytes((ELSEWHERE,)) + json.dumps(place).encode()


def place_of(body: bytes) -> Place | None:
    """Where a value lies that is kept beyond this machine."""
    return Place(*json.loads(body[33:])) if body[32] == ELSEWHERE else None


def base_of(body: bytes) -> bytes | None:
    """The value that has to be read first."""
    return body[33:65] if body[32] in (DELTA, GROWN) else None


def decode(
    body: bytes,
    base: Callable[[bytes], bytes],
    pack: Callable[[bytes], bytes],
    fetch: Callable[[Place], bytes],
) -> bytes:
    """The value of a row, checked by its hash."""
    import zstandard

    id, codec, payload = body[:32], body[32], body[33:]
    try:
        if codec == RAW:
            data = payload
        elif codec == ZSTD:
            data = zstandard.ZstdDecompressor().decompress(payload)
        elif codec == DELTA:
            raw = base(payload[:32])
            dictionary = zstandard.ZstdCompressionDict(raw, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            data = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=1 << 31).decompress(payload[32:])
        elif codec == GROWN:
            data = _ungrown(payload[32:], base(payload[:32]))
        elif codec == PACKED:
            data = pack(id)
        elif codec == ELSEWHERE:
            data = decode(id + fetch(Place(*json.loads(payload))), base, pack, fetch)
        else:
            raise Damaged(f"value {id.hex()[:12]} is of a kind that this program does not know ({codec})")
    except (zstandard.ZstdError, ValueError, TypeError, MemoryError, struct.error) as error:
        raise Damaged(f"value {id.hex()[:12]} cannot be read ({error})", "takeback verify says what is lost") from error
    if id_of(data) != id:
        raise Damaged(f"value {id.hex()[:12]} is not what was stored", "takeback verify says what is lost")
    return data


def _grown(data: bytes, base: bytes) -> bytes | None:
    """What was added to an earlier value; None if it is not the same but for its beginning and its last sign."""
    for end in (len(base), len(base) - 1):
        if end > _BEGINNING and data.startswith(base[_BEGINNING:end], _BEGINNING):
            break
    else:
        return None
    added, is_packed = data[end:], False
    if len(added) > _MESSAGE:
        import zstandard

        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(added)
        if len(packed) < len(added):
            added, is_packed = packed, True
    return _GROWN.pack(end, is_packed) + data[:_BEGINNING] + added


def _ungrown(payload: bytes, base: bytes) -> bytes:
    import zstandard

    end, is_packed = _GROWN.unpack_from(payload)
    start = _GROWN.size + _BEGINNING
    added = payload[start:]
    whole = zstandard.ZstdDecompressor().decompress(added) if is_packed else added
    return payload[_GROWN.size : start] + base[_BEGINNING:end] + whole


def _compressor(base: bytes, size: int) -> Any:
    """One that knows an earlier value: its window reaches back over all of it."""
    import zstandard

    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    window = max(10, min(27, (len(base) + size).bit_length()))
    parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=window)
    return zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters)
