"""Values of threads as bytes of a row: whatever a value grew from, it comes back as it was."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import Damaged
from takeback.threads import value_codec


def stored(data: bytes, base: bytes | None = None) -> bytes:
    known = None if base is None else (value_codec.id_of(base), base, 0)
    return value_codec.encode(data, value_codec.id_of(data), known).body


def read(body: bytes, base: bytes = b"") -> bytes:
    def nowhere(_: object) -> bytes:
        raise AssertionError("it is in the row")

    return value_codec.decode(body, lambda id: base, nowhere, nowhere)


@given(st.binary(max_size=600), st.integers(0, 40), st.binary(max_size=4), st.integers(0, 3), st.binary(max_size=400))
def test_a_value_that_grew_or_changed_comes_back(base: bytes, at: int, other: bytes, less: int, more: bytes):
    data = base[:at] + other + base[at + len(other) : len(base) - less] + more
    assert read(stored(data, base), base) == data
    assert read(stored(data)) == data


@pytest.mark.parametrize(
    "added",
    [b"", b"a message", random.Random(1).randbytes(900), b"words " * 2000],
    ids=["nothing", "a message", "noise", "words"],
)
def test_what_was_added_is_all_that_is_stored(added: bytes):
    base = b"msgpack\0\xdc\x00\x10" + os.urandom(20_000)
    data = base.replace(b"\xdc\x00\x10", b"\xdc\x00\x11", 1) + added
    body = stored(data, base)
    assert body[32] == value_codec.GROWN and value_codec.base_of(body) == value_codec.id_of(base)
    assert len(body) < 120 + min(len(added), 1000)
    assert read(body, base) == data


def test_a_list_in_json_grows_before_its_end():
    base = b'[{"role": "user", "content": "' + os.urandom(2000).hex().encode() + b'"}]'
    assert stored(base[:-1] + b', {"role": "assistant"}]', base)[32] == value_codec.GROWN


def test_what_changed_inside_is_told_by_its_difference():
    base = os.urandom(5000)
    body = stored(base[:2000] + b"other" + base[2000:], base)
    assert body[32] == value_codec.DELTA and len(body) < 300


def test_another_base_or_another_byte_is_damage():
    base = os.urandom(1000)
    body = stored(base + b"more", base)
    for altered, stands_on in ((body, os.urandom(1000)), (body[:-1] + b"!", base), (body[:70], base)):
        with pytest.raises(Damaged):
            read(altered, stands_on)
