"""The index on disk: appended to, written anew, and never trusted when torn."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from takeback.effects import FILE, FOLDER, Change, Entry
from takeback.index import Index
from takeback.index_file import IndexFile, frame, parse
from takeback.trees import Folder, Gap


def file(n: int = 1) -> Entry:
    return Entry(FILE, 0o644, n, bytes([n % 256]) * 32, b"", b"", n, 0, 0)


FOLDER_ENTRY = Entry(FOLDER, 0o755, 0, b"", b"", b"", 0, 0, 0)


@pytest.fixture
def index() -> Index:
    made = Index(root=FOLDER_ENTRY)
    made.put_folder(b"", Folder([], [], {}), b"")
    made.apply([Change(b"a", None, file(1)), Change(b"d", None, FOLDER_ENTRY), Change(b"d/b", None, file(2))])
    return made


def facts(index: Index) -> tuple[object, ...]:
    return (
        list(index.folders.items()), index.root, index.root_key, index.gaps, index.incomplete, index.links,
        index.seq, index.rules,
    )  # fmt: skip


def read(path: Path) -> Index:
    found = IndexFile(path).load()
    assert found is not None
    return found


def test_it_survives_being_saved(index: Index, tmp_path: Path):
    index.put_folder(b"late", Folder([], [], {}, (Gap(b"pipe", "fifo"),), False, frozenset({b"gone"})), b"")
    index.links = {7: (b"a", b"d/b")}
    index.seq, index.rules = 42, "fingerprint"
    IndexFile(tmp_path / "index").save(index)
    assert facts(read(tmp_path / "index")) == facts(index)
    assert (tmp_path / "index").stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


def test_what_a_look_changed_is_appended(index: Index, tmp_path: Path):
    path = tmp_path / "index"
    kept = IndexFile(path)
    kept.save(index)
    first = path.read_bytes()
    steps = [
        [Change(b"a", file(1), file(5))],
        [Change(b"c", None, FOLDER_ENTRY), Change(b"c/new", None, file(6))],
        [Change(b"d/b", file(2), None), Change(b"d", FOLDER_ENTRY, None)],
    ]
    for number, changes in enumerate(steps):
        now = kept.load()
        assert now is not None
        now.apply(changes)
        now.in_order()
        now.seq = number
        now.links = {number: (b"a",)} if number != 1 else now.links
        kept.save(now)
        assert facts(read(path)) == facts(now)
    assert path.read_bytes().startswith(first) and len(path.read_bytes()) < 4 * len(first)


def test_gaps_that_pass_are_forgotten_on_disk_too(index: Index, tmp_path: Path):
    kept = IndexFile(tmp_path / "index")
    index.put_folder(b"late", Folder([], [], {}, (Gap(b"pipe", "fifo"),), False, frozenset({b"gone"})), b"")
    kept.save(index)
    now = kept.load()
    assert now is not None
    now.put_folder(b"late", Folder([], [], {}), b"")
    kept.save(now)
    found = read(tmp_path / "index")
    assert not found.gaps and not found.incomplete


def test_it_is_written_anew_when_much_was_appended(index: Index, tmp_path: Path):
    path = tmp_path / "index"
    kept = IndexFile(path)
    kept.save(index)
    sizes = []
    for n in range(400):
        now = kept.load()
        assert now is not None
        now.apply([Change(b"a", None, file(n))])
        kept.save(now)
        sizes.append(path.stat().st_size)
    assert max(sizes) < 70_000 and any(b < a for a, b in pairwise(sizes))
    assert facts(read(path)) == facts(now)


def test_another_process_is_noticed(index: Index, tmp_path: Path):
    mine, theirs = IndexFile(tmp_path / "index"), IndexFile(tmp_path / "index")
    mine.save(index)
    other = theirs.load()
    assert other is not None
    other.seq = 9
    theirs.save(other)
    index.seq = 10
    mine.save(index)  # what it held is not what the file says: all of it is written
    assert read(tmp_path / "index").seq == 10
    found = theirs.load()
    assert found is not None and found.seq == 10


def test_damage_drops_what_it_hit_and_all_after_it(index: Index):
    first = b"tbi3" + b"".join(frame(Index(), index))
    later = index.copy()
    later.apply([Change(b"a", file(1), file(5))])
    data = first + b"".join(frame(index, later))
    assert parse(b"") == (None, 0) and parse(b"tbi0" + data[4:]) == (None, 0)
    for at in range(0, len(data), 3):
        broken = bytearray(data)
        broken[at] ^= 1
        found, whole = parse(bytes(broken))
        assert whole == 0, at
        assert (found is None) if at < len(first) else (found is not None and facts(found) == facts(index)), at
    for length in range(len(data)):
        found, whole = parse(data[:length])
        assert (found is not None) == (length >= len(first)), length
        assert (whole > 0) == (length == len(first)), length


def test_a_torn_frame_is_not_written_behind(index: Index, tmp_path: Path):
    path = tmp_path / "index"
    IndexFile(path).save(index)
    with open(path, "ab") as torn:
        torn.write(b"half a frame")
    kept = IndexFile(path)
    now = kept.load()
    assert now is not None and facts(now) == facts(index)
    now.seq = 3
    kept.save(now)
    assert read(path).seq == 3


def test_what_cannot_be_written_is_no_cache(index: Index, tmp_path: Path):
    kept = IndexFile(tmp_path / "nowhere" / "index")
    kept.save(index)
    assert kept.load() is None


def test_without_a_path_it_is_memory(index: Index):
    kept = IndexFile(None)
    assert kept.load() is None
    kept.save(index)
    found = kept.load()
    assert found is not None and facts(found) == facts(index)
    found.apply([Change(b"a", file(1), None)])
    again = kept.load()
    assert again is not None and facts(again) == facts(index)
    kept.remove()
    assert kept.load() is None
