"""Passes for every blob store: `blobs_conformance(make)`; `make()` gives an empty one, as often as it is called."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from hashlib import sha256

import pytest

from takeback.errors import Damaged
from takeback.store.blobs import BIG, Blobs


def samples() -> list[bytes]:
    noise = random.Random(1)
    return [
        b"",
        b"x",
        b"short and sweet",
        b"compress me " * 5000,
        noise.randbytes(127),
        noise.randbytes(70_000),
        bytes(100_000),
        noise.randbytes(BIG - 1),
        noise.randbytes(BIG),
        b"large and regular\n" * (BIG // 10),
    ]


def blobs_conformance(make: Callable[[], Blobs]) -> None:
    _gives_back_what_was_put(make())
    _streams(make())
    _lists_and_measures(make())
    _collects(make())
    _works_in_parts(make())
    _gives_out_no_wrong_bytes(make())


def _gives_back_what_was_put(blobs: Blobs) -> None:
    ids = []
    for data in samples():
        id = blobs.put(data)
        assert id == sha256(data).digest() == blobs.put(data) == blobs.put(data, id)
        assert blobs.has(id) and blobs.get(id) == data, "before it is flushed"
        ids.append(id)
    blobs.flush()
    for id, data in zip(ids, samples()):
        assert blobs.has(id) and blobs.get(id) == data == b"".join(blobs.stream(id))
        assert not blobs.is_sparse(id)
    blobs.reload()
    for id, data in zip(ids, samples()):
        assert blobs.has(id) and blobs.get(id) == data
    missing = sha256(b"never put").digest()
    assert not blobs.has(missing) and not blobs.is_sparse(missing)
    with pytest.raises(Damaged):
        blobs.get(missing)
    with pytest.raises(Damaged):
        b"".join(blobs.stream(missing))
    assert list(blobs.check(True)) == [] == list(blobs.check(False))
    blobs.close()


def _streams(blobs: Blobs) -> None:
    for data, sparse in (
        (os.urandom(BIG + 5), False),
        (b"text\n" * BIG, False),
        (bytes(BIG) + b"end" + bytes(BIG), True),
        (b"", False),
    ):
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.flush()
            file.seek(17)
            id = blobs.put_stream(file.fileno(), len(data), sparse)
            assert file.tell() is not None and os.lseek(file.fileno(), 0, os.SEEK_CUR) == len(data), "read to its end"
        blobs.flush()
        assert id == sha256(data).digest()
        assert b"".join(blobs.stream(id)) == data == blobs.get(id)
        assert blobs.is_sparse(id) == sparse
    blobs.close()


def _lists_and_measures(blobs: Blobs) -> None:
    assert set(blobs.ids()) == set()
    empty = blobs.size()
    ids = {blobs.put(data) for data in samples()}
    blobs.flush()
    assert set(blobs.ids()) == ids
    assert blobs.size() > empty + BIG
    blobs.close()


def _collects(blobs: Blobs) -> None:
    data = [os.urandom(50_000 + n) for n in range(20)] + [os.urandom(BIG + n) for n in range(2)]
    ids = [blobs.put(d) for d in data]
    blobs.flush()
    live = {ids[3], ids[7], ids[20]}
    before = blobs.size()
    assert blobs.collect(live) > 0
    assert blobs.size() < before
    for id, content in zip(ids, data):
        if id in live:
            assert blobs.get(id) == content, "what is live stays"
        elif blobs.has(id):
            assert blobs.get(id) == content, "and what is still there is whole"
    assert not blobs.has(ids[21]), "a dead large one goes at once"
    again = blobs.put(data[0])
    blobs.flush()
    assert blobs.get(again) == data[0], "what went can come back"
    blobs.collect(live - {ids[3]}, frozenset({ids[3]}))
    assert not blobs.has(ids[3]), "what must go goes, however little it is"
    assert blobs.get(ids[7]) == data[7]
    assert list(blobs.check(True)) == []
    blobs.close()


def _works_in_parts(blobs: Blobs) -> None:
    """A forked process puts into a part of its own, and everybody sees it afterwards."""
    here = blobs.put(b"put here" * 100)
    blobs.flush()
    part = blobs.worker("-w1")
    assert part.get(here) == b"put here" * 100
    there = part.put(b"put there" * 100)
    part.flush()
    blobs.reload()
    assert blobs.get(there) == b"put there" * 100
    assert {here, there} <= set(blobs.ids())
    blobs.put(b"not flushed" * 50)
    blobs.discard()
    assert blobs.get(here) == b"put here" * 100
    blobs.close()


def _gives_out_no_wrong_bytes(blobs: Blobs) -> None:
    wrong = sha256(b"another").digest()
    blobs.put(b"these", wrong)
    for _ in range(2):
        with pytest.raises(Damaged):
            blobs.get(wrong)
        with pytest.raises(Damaged):
            b"".join(blobs.stream(wrong))
        blobs.flush()
