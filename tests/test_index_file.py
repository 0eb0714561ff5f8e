"""The index on disk: appended to, written anew, and never trusted when torn."""

from __future__ import annotations

import marshal
import os
import struct
import subprocess
import sys
import zlib
from itertools import islice, pairwise
from pathlib import Path

import pytest

import takeback
from takeback.errors import Damaged
from takeback.look import known_tree_file
from takeback.look.known_tree import Index
from takeback.look.known_tree_file import IndexFile, Step, packed, parse
from takeback.look.observer import Observer
from takeback.model.effects import FILE, FOLDER, Change, Entry
from takeback.store.folder_objects import Folder, Gap
from takeback.workspace import Workspace


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
    folders = [(path, r.names, r.keys, r.object, *r.ids) for path, r in index.folders.items()]
    return (
        folders, index.root, index.root_key, index.gaps, index.incomplete, index.links,
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
    first = packed(index)
    later = index.copy()
    later.apply([Change(b"a", file(1), file(5))])
    data = first + b"".join(Step(index, later).parts())
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


# -- folder objects that wait --------------------------------------------------


def many(count: int) -> Index:
    """More folders than one frame holds."""
    made = Index(root=FOLDER_ENTRY)
    made.put_folder(b"", Folder([], [], {}), b"")
    names = [b"d%04d" % n for n in range(count)]
    made.apply([Change(name, None, FOLDER_ENTRY) for name in names])
    made.apply([Change(name + b"/f", None, file(n)) for n, name in enumerate(names)])
    made.in_order()
    return made


def objects_in(path: Path, index: Index) -> list[int]:
    """An offset in the middle of each folder object that lies in the file."""
    data = path.read_bytes()
    return [data.index(record.object) + len(record.object) // 2 for record in index.folders.values()]


def flip(path: Path, *places: int) -> None:
    with open(path, "r+b") as broken:
        for at in places:
            broken.seek(at)
            byte = broken.read(1)[0]
            broken.seek(at)
            broken.write(bytes([byte ^ 1]))


@pytest.fixture(params=["late", "at once"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a file can be read at an offset, objects wait; elsewhere all of it is read."""
    monkeypatch.setattr(known_tree_file, "_CAN_WAIT", request.param == "late")
    return str(request.param)


@pytest.mark.parametrize("count", [0, 511, 512, 1300])
def test_many_folders_and_what_is_appended_to_them_come_back(tmp_path: Path, how: str, count: int):
    index, path = many(count), tmp_path / "index"
    told = facts(index)
    IndexFile(path).save(index)
    assert facts(index) == told  # in memory no more, if they can wait
    for changes in (
        [Change(b"new", None, FOLDER_ENTRY), Change(b"new/f", None, file(7))],
        [Change(b"new/f", file(7), None), Change(b"new", FOLDER_ENTRY, None), Change(b"a", None, file(8))],
        [Change(b"d%04d/g" % n, None, file(9)) for n in range(count)],
    ):
        kept = IndexFile(path)  # each time as a process that has just begun
        now = kept.load()
        assert now is not None and facts(now) == told
        now.apply(changes)
        now.in_order()
        told = facts(now)
        kept.save(now)
        assert facts(now) == told
        held = kept.load()
        assert held is not None and facts(held) == told
    assert facts(read(path)) == told


def test_a_step_of_many_frames_is_taken_up_whole_or_not_at_all(tmp_path: Path):
    index = many(1300)
    first = packed(index)
    later = index.copy()
    later.apply([Change(b"d%04d/g" % n, None, file(9)) for n in range(600)])
    later.seq = 5
    data = first + b"".join(Step(index, later).parts())
    path = tmp_path / "index"
    for length in (*range(4, len(first), 1801), len(first) - 1):
        path.write_bytes(data[:length])
        assert IndexFile(path).load() is None and parse(data[:length]) == (None, 0), length
    for length in (*range(len(first), len(data), 901), len(data) - 1):
        path.write_bytes(data[:length])
        assert facts(read(path)) == facts(index), length
    path.write_bytes(data)
    assert facts(read(path)) == facts(later)
    one = len(first) + sum(map(len, islice(Step(index, later).parts(), 4)))  # cut where its first frame ends
    path.write_bytes(data[:one])
    kept = IndexFile(path)
    now = kept.load()
    assert now is not None and facts(now) == facts(index) and parse(data[:one])[1] == 0
    now.seq = 6
    kept.save(now)
    assert facts(read(path)) == facts(now)  # nothing was written behind it


def test_a_flipped_byte_in_a_folder_object_is_found_when_it_is_asked_for(tmp_path: Path):
    index, path = many(40), tmp_path / "index"
    spare = {record.stored: record.object for record in index.folders.values()}
    told, asked = facts(index), []

    def ask(stored: bytes) -> bytes:
        asked.append(stored)
        return spare[stored]

    IndexFile(path).save(index)
    places = objects_in(path, index)
    for number, (folder, at) in enumerate(zip(index.folders, places)):
        IndexFile(path).save(index.copy())
        flip(path, at)
        kept = IndexFile(path, ask)
        now = kept.load()
        assert now is not None and path.exists()  # nothing was asked for
        assert now.folders[folder].object == index.folders[folder].object
        assert asked == [index.folders[folder].stored] * (len(asked)) and asked, number
        assert not path.exists()  # it is not believed any more, by anybody
        assert facts(now) == told
        kept.save(now)
        asked.clear()
        assert facts(read(path)) == told and facts(now) == told and not asked  # written anew, and mended
        asked.clear()


def test_what_is_lost_for_good_is_said_and_never_made_up(tmp_path: Path):
    index, path = many(40), tmp_path / "index"
    IndexFile(path).save(index)
    flip(path, objects_in(path, index)[7])
    kept = IndexFile(path)
    now = kept.load()
    assert now is not None
    with pytest.raises(Damaged, match="dropped"):
        now.folder(list(index.folders)[7])
    assert kept.load() is None and IndexFile(path).load() is None
    kept.save(now)  # it cannot be written whole
    assert IndexFile(path).load() is None
    assert facts(index)  # this one has a file of its own still


def test_a_file_cut_short_while_it_is_held_is_found(tmp_path: Path):
    index, path = many(40), tmp_path / "index"
    spare = {record.stored: record.object for record in index.folders.values()}
    told = facts(index)
    IndexFile(path).save(index)
    kept = IndexFile(path, spare.__getitem__)
    now = kept.load()
    assert now is not None
    with open(path, "r+b") as cut:
        cut.truncate(100)
    assert facts(now) == told
    assert kept.load() is None


def test_a_file_put_in_its_place_does_not_matter_to_one_who_holds_it(tmp_path: Path):
    index, path = many(40), tmp_path / "index"
    told = facts(index)
    IndexFile(path).save(index)
    kept = IndexFile(path)
    now = kept.load()
    theirs = many(3)
    IndexFile(path).save(theirs)
    assert now is not None and facts(now) == told
    found = kept.load()
    assert found is not None and facts(found) == facts(theirs)
    now.seq = 9
    kept.save(now)
    assert facts(read(path)) == facts(now)


def test_a_file_of_an_older_format_is_none_and_is_replaced(index: Index, tmp_path: Path):
    path = tmp_path / "index"
    body = marshal.dumps(({}, {}, {}, tuple(FOLDER_ENTRY), b"", None, 3, ""))
    path.write_bytes(b"tbi3" + struct.pack("<II", len(body), zlib.crc32(body)) + body)
    kept = IndexFile(path)
    assert kept.load() is None
    kept.save(index)
    assert facts(read(path)) == facts(index) and path.read_bytes()[:4] == b"tbi4"


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="open files are counted in /proc")
def test_its_file_is_closed_with_the_last_who_needs_it(tmp_path: Path):
    def open_files() -> int:
        return sum(
            os.path.realpath(f"/proc/self/fd/{fd}").startswith(str(tmp_path)) for fd in os.listdir("/proc/self/fd")
        )

    index, path = many(40), tmp_path / "index"
    told = facts(index)
    kept = IndexFile(path)
    kept.save(index)
    del index
    for _ in range(5):
        kept.forget()
        now = kept.load()
        assert now is not None and open_files() == 1
    kept.forget()
    assert now is not None and facts(now) == told
    del now
    assert open_files() == 0


def test_a_workspace_goes_on_over_a_damaged_index(ws: Workspace, project: Path):
    """The objects of its last look are in no checkpoint: the journal leads to them."""
    for n in range(3):
        (project / f"d{n}").mkdir()
        (project / f"d{n}" / "f").write_text("one")
    ws.checkpoint("one")
    (project / "d1" / "f").write_text("two")
    with ws.writing(), ws.open_tree() as tree:
        ws.observer.look(tree)
    known = ws.observer.known()
    assert not ws.store.blobs.has(known.folders[b"d1"].stored)
    told = {path: (record.object, *record.ids) for path, record in known.folders.items()}
    assert ws.store.folder is not None
    ws.close()
    path = ws.store.folder / "index"
    data = path.read_bytes()
    for name in ("d0", "d1", ""):
        path.write_bytes(data)
        flip(path, data.rindex(told[name.encode()][0]) + 40)
        with takeback.open(project) as again:
            found = again.observer.known().folders
            assert {p: (r.object, *r.ids) for p, r in found.items()} == told
            assert not path.exists()
            again.observer.forget()
            assert again.observer.known().folders[b""].identity == told[b""][1]  # from the journal
    path.write_bytes(data)
    flip(path, *(data.rindex(object) + 40 for object, *_ in told.values()))
    (project / "d1" / "f").write_text("three")
    with takeback.open(project) as again:
        again.checkpoint("three")
        again.rollback("one")
        assert (project / "d1" / "f").read_text() == "one" and again.verify(data=True).ok
        again.redo()
        assert (project / "d1" / "f").read_text() == "three"


def closed_with_damage(ws: Workspace) -> list[bytes]:
    """Closes it, and spoils every folder object that its index has: what they were."""
    told = [record.object for record in ws.observer.known().folders.values()]
    assert ws.store.folder is not None
    ws.close()
    path = ws.store.folder / "index"
    data = path.read_bytes()
    flip(path, *(data.rindex(object) + 40 for object in told))
    return told


def test_many_objects_that_are_lost_are_made_again_from_the_journal_at_once(ws: Workspace, project: Path, monkeypatch):
    for n in range(30):
        (project / f"d{n}").mkdir()
        (project / f"d{n}" / "f").write_text("one")
    ws.checkpoint("one")
    for n in range(30):
        (project / f"d{n}" / "f").write_text("two")
    with ws.writing(), ws.open_tree() as tree:
        ws.observer.look(tree)
    told = closed_with_damage(ws)
    rebuilt, made = Observer._rebuilt, []

    def counts(self: Observer, head: int) -> Index:
        made.append(head)
        return rebuilt(self, head)

    monkeypatch.setattr(Observer, "_rebuilt", counts)
    with takeback.open(project) as again:
        assert [record.object for record in again.observer.known().folders.values()] == told
        assert len(made) == 1


def test_a_second_process_that_meets_damage_costs_no_look(ws: Workspace, project: Path):
    """In a process without threads: only there a look is shared."""
    for n in range(40):
        (project / f"d{n}").mkdir()
        (project / f"d{n}" / "f").write_text("one")
    ws.checkpoint("one")
    closed_with_damage(ws)
    for n in range(40):
        (project / f"d{n}" / "f").write_text("two")
    script = (
        "import sys, takeback\nfrom takeback.look import scan\n"
        "scan._WORTH_LOOKING = scan._WORTH_SHARING = 1\n"
        "with takeback.open(sys.argv[1]) as ws: print(len(ws.diff('one').files), ws.checkpoint('two').label)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(project)], capture_output=True, text=True)
    assert done.stdout == "40 two\n", done


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nowhere"])
def test_what_lies_in_its_place_and_is_no_file_keeps_nobody_waiting(ws: Workspace, project: Path, kind: str):
    if kind == "pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("no fifos on this system")
    ws.checkpoint("one")
    assert ws.store.folder is not None
    ws.close()
    path = ws.store.folder / "index"
    path.unlink()
    {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "link to nowhere": lambda: path.symlink_to("/nowhere")}[
        kind
    ]()
    (project / "new").write_text("1")
    with takeback.open(project) as again:
        assert [file.path for file in again.diff("one").files] == ["new"]
        again.checkpoint("two")
        assert again.rollback("one").whole and not (project / "new").exists()
