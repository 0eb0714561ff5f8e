"""Passes for every store of state: `state_store_conformance(make)`. `make()` gives a store; each call gives another
one on the same place, as another process would have it."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest

from takeback.errors import Damaged, TakebackError
from takeback.threads.stores import StateStore


def samples() -> list[bytes]:
    noise = random.Random(1)
    return [
        b"",
        b"x",
        b"\0\r\n\xff text and no text",
        "état, 状態".encode(),
        b"the same again and again " * 2000,
        noise.randbytes(65_537),
        noise.randbytes(1_000_000),
    ]


def digest(data: bytes) -> bytes:
    return sha256(data).digest()


def state_store_conformance(make: Callable[[], StateStore]) -> None:
    _is_named(make())
    _gives_back_what_was_put(make(), make())
    _takes_the_same_again(make())
    _holds_against_the_callers_digest(make())
    _says_what_is_missing(make())
    _deletes_or_says_no(make(), make())
    _serves_many(make())


def _is_named(store: StateStore) -> None:
    assert store.name.isidentifier()


def _gives_back_what_was_put(store: StateStore, other: StateStore) -> None:
    ids = [store.put(data) for data in samples()]
    assert all(isinstance(id, str) and id and id.isprintable() and not id.isspace() for id in ids)
    assert len(set(ids)) == len(ids)
    for id, data in zip(ids, samples()):
        assert store.get(id, digest(data)) == data
        assert other.get(id, digest(data)) == data, "it was there to stay when put returned"


def _takes_the_same_again(store: StateStore) -> None:
    data = b"put twice"
    first, second = store.put(data), store.put(data)
    assert store.get(first, digest(data)) == data == store.get(second, digest(data))


def _holds_against_the_callers_digest(store: StateStore) -> None:
    first, second = store.put(b"one"), store.put(b"other")
    with pytest.raises(Damaged) as said:
        store.get(first, digest(b"other"))
    assert first in said.value.message
    assert store.get(second, digest(b"other")) == b"other"


def _says_what_is_missing(store: StateStore) -> None:
    known = store.put(b"known")
    unknown = known[::-1] if known[::-1] != known else known + "A"
    for id in (unknown, "", "../../etc/passwd", "a b", "x\n", "?epochs=1", "ü"):
        with pytest.raises(TakebackError) as said:
            store.get(id, digest(b"known"))
        assert repr(id)[1:-1] in said.value.message and said.value.hint
    assert store.delete(unknown) is False


def _deletes_or_says_no(store: StateStore, other: StateStore) -> None:
    id = store.put(b"may go")
    if store.delete(id):
        with pytest.raises(TakebackError, match=id):
            other.get(id, digest(b"may go"))
        assert store.delete(id) is False
    else:
        assert other.get(id, digest(b"may go")) == b"may go", "what cannot be deleted is still there"


def _serves_many(store: StateStore) -> None:
    data = [b"%d of many" % n for n in range(24)]
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(store.put, data))
        assert list(pool.map(lambda n: store.get(ids[n], digest(data[n])), range(24))) == data
