"""Change lists: what a row of the journal says happened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from takeback.errors import Damaged
from takeback.journal import change_lists
from takeback.model.effects import FILE, FOLDER, LINK, UNOBSERVED, Change, Entry

ID = st.binary(min_size=32, max_size=32).filter(lambda b: b != bytes(32))
paths = st.binary(min_size=1, max_size=30).map(lambda b: b.replace(b"\0", b"x"))
entries = st.builds(
    Entry,
    st.sampled_from((FILE, FOLDER, LINK)),
    st.integers(0, 0o7777),
    st.integers(0, 2**63),
    st.one_of(st.just(b""), ID),
    st.one_of(st.just(b""), ID),
    st.sampled_from((b"", b"group/path")),
    st.integers(-(2**62), 2**62),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)
states = st.one_of(st.none(), st.just(UNOBSERVED), entries)
lists = st.lists(
    st.builds(Change, paths, states, states, st.lists(st.integers(0, 2**40), max_size=3).map(tuple)), max_size=8
)
quick = examples(80, 500)


@quick
@given(lists)
def test_what_was_encoded_is_decoded(found):
    assert change_lists.decode(change_lists.encode(found)) == found


@quick
@given(lists, st.data())
def test_a_cut_list_is_damage(found, data):
    whole = change_lists.encode(found)
    with pytest.raises(Damaged):
        change_lists.decode(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(Damaged):
        change_lists.decode(whole + b"x")


@quick
@given(lists, st.data())
def test_a_flipped_list_never_crashes(found, data):
    whole = bytearray(change_lists.encode(found))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        change_lists.decode(bytes(whole))
    except Damaged:
        pass


def test_the_root_itself_is_a_path():
    root = Change(b"", Entry(FOLDER, 0o755, 0, b"", b"", b"", 1, 0, 0), Entry(FOLDER, 0o700, 0, b"", b"", b"", 1, 0, 0))
    assert change_lists.decode(change_lists.encode([root])) == [root]


def test_references_name_every_blob():
    before = Entry(FILE, 0, 1, b"a" * 32, b"x" * 32, b"", 0, 0, 0)
    after = Entry(LINK, 0, 1, b"b" * 32, b"", b"", 0, 0, 0)
    assert set(change_lists.references([Change(b"p", before, after), Change(b"q", None, UNOBSERVED)])) == {
        b"a" * 32,
        b"x" * 32,
        b"b" * 32,
    }
