"""The cache of the known tree: what it keeps, and that it is only a cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from takeback.look.known_tree import Index
from takeback.model.effects import FILE, FOLDER, LINK, UNOBSERVED, Change, Entry
from takeback.store.folder_objects import Folder
from takeback.system.safefs import keys


def file(n: int = 1) -> Entry:
    return Entry(FILE, 0o644, n, bytes([n]) * 32, b"", b"", n, 0, 0)


FOLDER_ENTRY = Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0)


@pytest.fixture
def index() -> Index:
    made = Index(root=FOLDER_ENTRY)
    made.put_folder(b"", Folder([], [], {}), b"")
    made.apply(
        [
            Change(b"a", None, file(1)),
            Change(b"d", None, FOLDER_ENTRY),
            Change(b"d/b", None, file(2)),
            Change(b"d/e", None, FOLDER_ENTRY),
            Change(b"d/e/c", None, file(3)),
        ]
    )
    return made


def test_states(index: Index):
    assert index.state(b"a") == file(1) and index.state(b"d/e/c") == file(3) and index.state(b"") == FOLDER_ENTRY
    assert index.state(b"nothing") is None and index.state(b"a/below") is None and index.state(b"d/e/x/y") is None
    assert Index().state(b"anything") == UNOBSERVED, "nothing was looked at"


def test_changes_lead_to_the_same_hashes_whichever_way(index: Index):
    before = index.folders[b""].identity
    index.apply([Change(b"d/e/c", file(3), file(4))])
    changed = index.folders[b""].identity
    assert changed != before
    index.apply([Change(b"d/e/c", file(4), file(3))])
    assert index.folders[b""].identity == before
    index.apply([Change(b"d/e/c", file(3), file(3)._replace(mtime_ns=99))])
    assert index.folders[b""].identity == before, "times are no change"


def test_a_folder_goes_with_all_in_it(index: Index):
    index.apply(
        [
            Change(b"d", FOLDER_ENTRY, None),
            Change(b"d/b", file(2), None),
            Change(b"d/e", FOLDER_ENTRY, None),
            Change(b"d/e/c", file(3), None),
        ]
    )
    assert set(index.folders) == {b""}
    assert index.state(b"d/e/c") is None
    assert index.snapshot().files == 1


def test_a_folder_becomes_a_file_and_a_file_a_folder(index: Index):
    index.apply(
        [
            Change(b"d", FOLDER_ENTRY, file(9)),
            Change(b"d/b", file(2), None),
            Change(b"d/e", FOLDER_ENTRY, None),
            Change(b"d/e/c", file(3), None),
        ]
    )
    assert index.state(b"d") == file(9) and set(index.folders) == {b""}
    index.apply([Change(b"a", file(1), FOLDER_ENTRY), Change(b"a/x", None, file(5))])
    assert index.state(b"a/x") == file(5)


def test_what_becomes_unobserved_is_neither_there_nor_absent(index: Index):
    index.apply([Change(b"a", file(1), UNOBSERVED)])
    assert index.state(b"a") == UNOBSERVED
    index.apply([Change(b"a", UNOBSERVED, file(7))])
    assert index.state(b"a") == file(7)


def test_a_snapshot_gives_the_same_tree_with_keys_that_match_nothing(index: Index):
    objects = {record.stored: record.object for record in index.folders.values()}
    found = Index.from_snapshot(objects.__getitem__, index.snapshot(), 5)
    assert found.folders[b""].identity == index.folders[b""].identity
    assert {p: r.object for p, r in found.folders.items()} == {p: r.object for p, r in index.folders.items()}
    assert set(found.folders[b"d"].keys) == {0} and found.seq == 5


def test_a_copy_is_apart(index: Index):
    copy = index.copy()
    copy.apply([Change(b"a", file(1), None)])
    assert index.state(b"a") == file(1) and copy.state(b"a") is None


def test_links_are_counted_as_paths():
    made = Index(root=FOLDER_ENTRY)
    made.put_folder(b"", Folder([], [], {}), b"")
    made.apply([Change(b"l", None, Entry(LINK, 0o777, 1, b"l" * 32, b"", b"", 0, 0, 0))])
    assert made.snapshot().files == 1


def test_a_young_key_is_not_trusted(tmp_path: Path):
    (tmp_path / "f").write_text("x")
    st = os.lstat(tmp_path / "f")
    assert not keys.settled(st, st.st_ctime_ns + 1)
    assert keys.settled(st, st.st_ctime_ns + 3_000_000_000)
