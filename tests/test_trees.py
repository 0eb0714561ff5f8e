"""Folder objects: what they hold, what their two hashes mean, and that damage never parses."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from takeback.errors import Damaged
from takeback.model.effects import FILE, FOLDER, LINK, UNOBSERVED, Entry, Snapshot
from takeback.store import folder_objects
from takeback.store.folder_objects import Folder, Gap, Ids

ID = st.binary(min_size=32, max_size=32).filter(lambda b: b != bytes(32))
names = st.binary(min_size=1, max_size=20).map(lambda b: b.replace(b"\0", b"x").replace(b"/", b"y"))


@st.composite
def folders(draw) -> Folder:
    found = sorted(draw(st.sets(names, max_size=8)))
    entries, subtrees = [], {}
    for name in found:
        kind = draw(st.sampled_from((FILE, FOLDER, LINK)))
        content = b"" if kind == FOLDER else draw(ID)
        xattrs = draw(st.one_of(st.just(b""), ID))
        group = draw(st.sampled_from((b"", b"", b"some/path"))) if kind == FILE else b""
        times = draw(st.integers(-(2**60), 2**60)), draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 2**32 - 1))
        entries.append(
            Entry(kind, draw(st.integers(0, 0o7777)), draw(st.integers(0, 2**50)), content, xattrs, group, *times)
        )
        if kind == FOLDER and draw(st.booleans()):
            subtrees[name] = Ids(draw(ID), draw(ID))
    gaps = tuple(Gap(n, "why\n\u2028not") for n in sorted(draw(st.sets(names, max_size=2)) - set(found)))
    complete = draw(st.booleans())
    absent = frozenset() if complete else frozenset(draw(st.sets(names, max_size=2)) - set(found))
    return Folder(found, entries, subtrees, gaps, complete, absent)


quick = examples(80, 500)


@quick
@given(folders())
def test_what_was_encoded_is_decoded(folder: Folder):
    data, ids = folder_objects.encode(folder)
    assert folder_objects.decode(data) == folder
    assert folder_objects.encode(folder_objects.decode(data)) == (data, ids)


@quick
@given(folders(), st.data())
def test_times_and_owners_never_count_as_a_change_but_are_stored(folder: Folder, data):
    if not folder.entries:
        return
    at = data.draw(st.integers(0, len(folder.entries) - 1))
    later = [*folder.entries]
    later[at] = later[at]._replace(mtime_ns=later[at].mtime_ns + 1, uid=(later[at].uid + 1) % 2**32)
    (_, was), (_, now) = folder_objects.encode(folder), folder_objects.encode(folder._replace(entries=later))
    assert was.identity == now.identity and was.stored != now.stored


@quick
@given(folders(), st.data())
def test_anything_else_counts(folder: Folder, data):
    if not folder.entries:
        return
    at = data.draw(st.integers(0, len(folder.entries) - 1))
    entry = folder.entries[at]
    changes = [{"mode": entry.mode ^ 1}, {"size": entry.size + 1}, {"xattrs": os.urandom(32)}]
    if entry.kind == FILE:
        changes += [{"content": os.urandom(32)}, {"group": b"another/path"}]
    for change in changes:
        later = [*folder.entries]
        later[at] = entry._replace(**change)
        assert (
            folder_objects.encode(folder._replace(entries=later))[1].identity
            != folder_objects.encode(folder)[1].identity
        ), change


def test_a_changed_subtree_changes_the_folders_above():
    entry = Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0)
    one, two = (folder_objects.encode(Folder([b"d"], [entry], {b"d": Ids(c * 32, b"s" * 32)}))[1] for c in (b"1", b"2"))
    assert one.identity != two.identity
    same_identity, other_times = (
        folder_objects.encode(Folder([b"d"], [entry], {b"d": Ids(b"1" * 32, c * 32)}))[1] for c in (b"s", b"t")
    )
    assert same_identity.identity == other_times.identity and same_identity.stored != other_times.stored


@quick
@given(folders(), st.data())
def test_a_cut_object_is_damage_and_a_flipped_one_never_crashes(folder: Folder, data):
    whole, _ = folder_objects.encode(folder)
    cut = data.draw(st.integers(0, len(whole) - 1))
    try:
        assert folder_objects.decode(whole[:cut]) != folder
    except Damaged:
        pass
    flipped = bytearray(whole)
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        folder_objects.decode(bytes(flipped))
    except Damaged:
        pass


class Store:
    """A small tree of folder objects."""

    def __init__(self, tree: dict) -> None:
        self.objects: dict[bytes, bytes] = {}
        ids = self._put(tree)
        self.snapshot = Snapshot(*ids, Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0))
        self.ids = Ids(*ids)

    def _put(self, tree: dict) -> Ids:
        entries, subtrees = [], {}
        for name in sorted(tree):
            if isinstance(tree[name], dict):
                entries.append(Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0))
                subtrees[name] = self._put(tree[name])
            else:
                entries.append(Entry(FILE, 0o644, 1, tree[name] * 32, b"", b"", 0, 0, 0))
        data, ids = folder_objects.encode(Folder(sorted(tree), entries, subtrees))
        self.objects[ids.stored] = data
        return ids

    def load(self, id: bytes) -> bytes:
        return self.objects[id]


def test_compare_finds_every_difference_and_skips_equal_subtrees():
    a = Store({b"same": {b"x": b"1"}, b"d": {b"f": b"1", b"gone": b"1"}, b"kind": b"1"})
    b = Store({b"same": {b"x": b"1"}, b"d": {b"f": b"2", b"new": b"1"}, b"kind": {b"below": b"1"}})
    loaded = []

    def load(id: bytes) -> bytes:
        loaded.append(id)
        return {**a.objects, **b.objects}[id]

    found = {
        d.path: (d.before and d.before.kind, d.after and d.after.kind)
        for d in folder_objects.compare(load, a.ids, b.ids)
    }
    assert found == {
        b"d/f": (1, 1),
        b"d/gone": (1, None),
        b"d/new": (None, 1),
        b"kind": (1, 2),
        b"kind/below": (None, 1),
    }
    same = folder_objects.lookup(a.load, a.snapshot, b"same")[1]
    assert same is not None and same.stored not in loaded


def test_compare_with_nothing_lists_all():
    a = Store({b"d": {b"f": b"1"}})
    assert [d.path for d in folder_objects.compare(a.load, None, a.ids)] == [b"d", b"d/f"]
    assert all(d.after is None for d in folder_objects.compare(a.load, a.ids, None))


def test_lookup():
    a = Store({b"d": {b"e": {b"f": b"1"}}, b"g": b"2"})
    assert folder_objects.lookup(a.load, a.snapshot, b"")[1] == a.ids
    assert folder_objects.lookup(a.load, a.snapshot, b"g")[0].content == b"2" * 32
    assert folder_objects.lookup(a.load, a.snapshot, b"d/e/f")[0].content == b"1" * 32
    assert folder_objects.lookup(a.load, a.snapshot, b"d/e/nothing") == (None, None)
    assert folder_objects.lookup(a.load, a.snapshot, b"g/below") == (None, None)
    assert [p for p, _ in folder_objects.entries(a.load, a.snapshot)] == [b"d", b"g", b"d/e", b"d/e/f"]


def test_what_was_not_seen_is_unobserved_and_not_absent():
    entry = Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0)
    partial = Folder([b"d"], [entry], {}, (Gap(b"pipe", "fifo"),), complete=False, absent=frozenset({b"gone"}))
    assert partial.state(b"pipe") == UNOBSERVED == partial.state(b"never looked at")
    assert partial.state(b"gone") is None
    whole = partial._replace(complete=True)
    assert whole.state(b"never looked at") is None


def test_trees_deeper_than_the_stack():
    objects: dict[bytes, bytes] = {}
    folder_entry = Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0)
    data, ids = folder_objects.encode(Folder([b"f"], [Entry(FILE, 0o644, 1, b"1" * 32, b"", b"", 0, 0, 0)], {}))
    objects[ids.stored] = data
    for _ in range(3000):
        data, ids = folder_objects.encode(Folder([b"d"], [folder_entry], {b"d": ids}))
        objects[ids.stored] = data
    assert sum(1 for _ in folder_objects.walk(objects.__getitem__, ids.stored)) == 3001
    assert sum(1 for _ in folder_objects.compare(objects.__getitem__, None, ids)) == 3001


@quick
@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=30), st.binary(max_size=50)), max_size=5, unique_by=lambda p: p[0]
    )
)
def test_attributes_round_trip(pairs):
    assert dict(folder_objects.decode_xattrs(folder_objects.encode_xattrs(pairs))) == dict(pairs)
