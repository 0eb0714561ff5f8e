"""Three-way merges of what a path is: content, mode and attributes each by itself, and only where clean."""

from __future__ import annotations

from hashlib import sha256

import pytest

from takeback.model.effects import FILE, FOLDER, LINK, Entry
from takeback.plan.merge import Merger
from takeback.text.linediff import Conflict

LINES = [f"line {n}\n" for n in range(12)]


class Store:
    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}

    def file(
        self, text: str | bytes, mode: int = 0o644, xattrs: bytes = b"", mtime: int = 0, group: bytes = b""
    ) -> Entry:
        data = text.encode() if isinstance(text, str) else text
        id = sha256(data).digest()
        self.data[id] = data
        return Entry(FILE, mode, len(data), id, xattrs, group, mtime, 0, 0)


@pytest.fixture
def store() -> Store:
    return Store()


def edited(**lines: str) -> str:
    found = [*LINES]
    for at, new in lines.items():
        found[int(at[1:])] = new + "\n"
    return "".join(found)


def merged(store: Store, base, ours, theirs, markers=False) -> tuple[Entry, bytes]:
    merger = Merger(store.data.__getitem__)
    found = merger(base, ours, theirs, markers)
    assert found is not None
    return found, merger.made.get(found.content) or store.data[found.content]


def test_different_hunks_merge(store: Store):
    base, ours, theirs = (
        store.file(edited(_2="agent")),
        store.file(edited(_2="agent", _9="person")),
        store.file(edited()),
    )
    found, data = merged(store, base, ours, theirs)
    assert data.decode() == edited(_9="person") and found.size == len(data)


def test_the_same_hunk_is_a_conflict(store: Store):
    base, ours, theirs = store.file(edited(_2="agent")), store.file(edited(_2="person")), store.file(edited())
    with pytest.raises(Conflict):
        merged(store, base, ours, theirs)


def test_markers_only_when_asked(store: Store):
    base, ours, theirs = store.file(edited(_2="agent")), store.file(edited(_2="person")), store.file(edited())
    _, data = merged(store, base, ours, theirs, markers=True)
    assert b"<<<<<<<" in data and b"person" in data and b"line 2" in data


def test_what_did_not_change_since_goes_back_whole(store: Store):
    base, theirs = store.file("a\n"), store.file("b\n")
    assert Merger(store.data.__getitem__)(base, base, theirs, False) is theirs
    assert Merger(store.data.__getitem__)(base, base, None, False) is None


def test_absence_merges_only_trivially(store: Store):
    a, b = store.file("a\n"), store.file("b\n")
    merger = Merger(store.data.__getitem__)
    assert merger(a, None, None, False) is None
    assert merger(None, a, None, False) is a, "nothing of ours to take back"
    for base, ours, theirs in ((a, None, b), (a, b, None), (None, a, b)):
        with pytest.raises(Conflict):
            merger(base, ours, theirs, False)


def test_mode_and_content_merge_each_by_itself(store: Store):
    base, ours, theirs = (
        store.file("agent\n", 0o755),
        store.file("agent, then person\n", 0o755),
        store.file("agent\n", 0o644),
    )
    found, data = merged(store, base, ours, theirs)
    assert found.mode == 0o644 and data == b"agent, then person\n"
    with pytest.raises(Conflict):
        merged(store, store.file("a\n", 0o755), store.file("a\n", 0o700), store.file("a\n", 0o644))


def test_attributes_merge_by_themselves(store: Store):
    x, y = b"x" * 32, b"y" * 32
    base, ours, theirs = store.file("a\n", xattrs=x), store.file("b\n", xattrs=x), store.file("a\n", xattrs=y)
    found, data = merged(store, base, ours, theirs)
    assert found.xattrs == y and data == b"b\n"


def test_binary_folders_and_links_conflict(store: Store):
    with pytest.raises(Conflict):
        merged(store, store.file(b"\0one\n\n\n\n"), store.file(b"\0one\n\n\n\ntwo"), store.file(b"\0three\n\n\n\n"))
    folder = Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0)
    links = [Entry(LINK, 0o777, 1, bytes([n]) * 32, b"", b"", 0, 0, 0) for n in range(3)]
    with pytest.raises(Conflict):
        Merger(store.data.__getitem__)(folder, folder._replace(mode=0o700), folder._replace(mode=0o711), False)
    with pytest.raises(Conflict):
        Merger(store.data.__getitem__)(*links, False)


def test_files_too_large_to_read_conflict(store: Store):
    large = [store.file(f"{n}\n").__class__(FILE, 0o644, 5 << 20, bytes([n]) * 32, b"", b"", 0, 0, 0) for n in range(3)]
    with pytest.raises(Conflict):
        Merger(lambda _: pytest.fail("read"))(*large, False)


def test_a_merge_of_a_merge_reads_what_was_just_made(store: Store):
    merger = Merger(store.data.__getitem__)
    first = merger(
        store.file(edited(_2="agent")), store.file(edited(_2="agent", _9="person")), store.file(edited()), False
    )
    again = merger(store.file(edited(_5="b")), first, store.file(edited(_5="b", _11="end")), False)
    assert again is not None and merger.made[again.content].decode() == edited(_9="person", _11="end")


def test_a_merged_file_stands_alone(store: Store):
    base = store.file(edited(_2="agent"), group=b"first")
    found, _ = merged(
        store, base, store.file(edited(_2="agent", _9="p"), group=b"first"), store.file(edited(), group=b"first")
    )
    assert found.group == b"", "merged bytes are nobody else's"
