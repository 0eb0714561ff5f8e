"""Packs, large files and their care."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
import zstandard

from conformance.blobs import blobs_conformance
from support import PORTABLE
from takeback.errors import Damaged
from takeback.store import packs as module
from takeback.store.blobs import BIG, MemoryBlobs
from takeback.store.packs import Packs
from takeback.store.records import ZSTD, decompress


@pytest.mark.parametrize("kind", ["packs", "memory", "packs sealed early"])
def test_conforms(tmp_path: Path, monkeypatch, kind: str):
    if kind == "packs sealed early":
        monkeypatch.setattr(module, "_SEAL", 100_000)
        monkeypatch.setattr(module, "_BUFFER", 50_000)
    made = iter(range(100))

    def make():
        if kind == "memory":
            return MemoryBlobs()
        folder = tmp_path / str(next(made))
        folder.mkdir()
        return Packs(folder, sync=False, portable=PORTABLE)

    blobs_conformance(make)


@pytest.fixture
def packs(tmp_path: Path) -> Packs:
    return Packs(tmp_path, sync=False, portable=PORTABLE)


def again(packs: Packs) -> Packs:
    packs.close()
    return Packs(packs.folder, sync=False, portable=PORTABLE)


def test_a_process_that_stores_little_need_not_load_zstandard(tmp_path: Path):
    code = """if True:
        import sys
        from pathlib import Path
        from takeback.store.packs import Packs
        packs = Packs(Path(sys.argv[1]), sync=False)
        few = [b"%d, " % n * 500 for n in range(20)]
        assert [packs.get(packs.put(data)) for data in few] == few
        assert packs.size() < sum(map(len, few)) / 5
        assert "zstandard" not in sys.modules
        many = [b"%d, " % n * 5000 for n in range(20)]
        ids = [packs.put(data) for data in many]
        assert "zstandard" in sys.modules
        packs.flush()
        packs = Packs(packs.folder, sync=False)
        assert [packs.get(id) for id in ids] == many
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


@pytest.mark.parametrize("level", [-5, -1, 1, 3, 19])
def test_what_was_packed_at_any_level_can_be_read(level: int):
    data = b"".join(b"%d, " % n for n in range(5000))
    packed = zstandard.ZstdCompressor(level=level, write_content_size=True).compress(data)
    assert decompress(ZSTD, packed, len(data)) == data


def test_what_was_flushed_is_there_after_reopening(packs: Packs):
    ids = [packs.put(os.urandom(n * 100)) for n in range(50)]
    packs.flush()
    fresh = again(packs)
    assert all(fresh.has(id) for id in ids)
    more = fresh.put(b"more" * 100)
    fresh.flush()
    third = again(fresh)
    assert third.get(more) == b"more" * 100 and all(third.has(id) for id in ids)
    assert len(list((third.packs).glob("*.pack"))) == 1, "the open pack is taken up again"


def test_what_was_not_flushed_is_forgotten_by_discard(packs: Packs):
    kept = packs.put(b"kept" * 100)
    packs.flush()
    lost = packs.put(b"lost" * 100)
    packs.discard()
    assert packs.has(kept) and not packs.has(lost)
    assert packs.put(b"lost" * 100) == lost
    packs.flush()
    assert again(packs).get(lost) == b"lost" * 100


@pytest.mark.parametrize("cut", [1, 10, 47, 48, 60, 150])
def test_a_torn_tail_is_cut_by_the_next_writer_and_all_before_it_stays(packs: Packs, cut: int):
    first = packs.put(random.Random(1).randbytes(500))
    packs.flush()
    last = packs.put(random.Random(2).randbytes(120))
    packs.flush()
    packs.close()
    (path,) = packs.packs.glob("*.pack")
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - cut)
    fresh = again(packs)
    assert fresh.has(first) and len(fresh.get(first)) == 500
    with pytest.raises(Damaged):
        fresh.get(last)
    assert fresh.put(random.Random(2).randbytes(120)) == last
    fresh.flush()
    assert again(fresh).get(last) == random.Random(2).randbytes(120)
    assert list(again(fresh).check(True)) == []


def test_rubbish_after_the_last_record_is_no_damage(packs: Packs):
    first = packs.put(b"one" * 100)
    packs.flush()
    packs.close()
    (path,) = packs.packs.glob("*.pack")
    with open(path, "ab") as file:
        file.write(b"tbr1" + os.urandom(30))
    fresh = again(packs)
    assert list(fresh.check(True)) == []
    second = fresh.put(b"two" * 100)
    fresh.flush()
    last = again(fresh)
    assert last.get(first) == b"one" * 100 and last.get(second) == b"two" * 100


def test_the_tables_of_contents_are_only_caches(packs: Packs, monkeypatch):
    monkeypatch.setattr(module, "_SEAL", 20_000)
    monkeypatch.setattr(module, "_BUFFER", 10_000)
    data = {packs.put(d): d for d in (os.urandom(3000 + n) for n in range(30))}
    packs.flush()
    packs.close()
    caches = [*packs.packs.glob("*.idx"), *packs.packs.glob("*.toc")]
    assert any(c.suffix == ".idx" for c in caches)
    for harm in ("gone", "cut", "rubbish"):
        for path in caches:
            path.unlink(missing_ok=True) if harm == "gone" else path.write_bytes(
                os.urandom(100 if harm == "rubbish" else 39)
            )
        fresh = again(packs)
        for id, content in data.items():
            assert fresh.get(id) == content, harm
        fresh.close()


def test_a_flipped_byte_anywhere_in_a_toc_costs_nothing(packs: Packs):
    data = {packs.put(d): d for d in (os.urandom(100 + n) for n in range(6))}
    packs.flush()
    packs.close()
    (toc,) = packs.packs.glob("*.toc")
    sound = toc.read_bytes()
    assert len(sound) == 44 * 6
    for at in range(len(sound)):
        harmed = bytearray(sound)
        harmed[at] ^= 1 << at % 8
        toc.write_bytes(harmed)
        fresh = again(packs)
        assert {id: fresh.get(id) for id in data} == data, at
        assert set(fresh.ids()) == set(data) and list(fresh.check(True)) == [], at
        if at % 11 == 0:
            fresh.put(b"one more")
            fresh.flush()
            assert len(toc.read_bytes()) == 44 * 7, "mended, and no longer than it was"
            (pack,) = fresh.packs.glob("*.pack")
            with open(pack, "r+b") as file:
                file.truncate(pack.stat().st_size - 76 + 16)
        fresh.close()


def test_quarantine_loses_nothing_that_only_the_caches_lack(packs: Packs):
    ids = [packs.put(bytes([65 + n]) * 50 + os.urandom(200)) for n in range(5)]
    packs.flush()
    packs.close()
    (path,) = packs.packs.glob("*.pack")
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    fresh = again(packs)
    bad = list(fresh.check(True))
    assert [b.id for b in bad] == ids[4:]
    assert fresh._open is not None
    del fresh._open[ids[1]]
    fresh.quarantine(bad)
    assert [again(fresh).has(id) for id in ids] == [True] * 4 + [False]


def test_packs_are_sealed_and_found(packs: Packs, monkeypatch):
    monkeypatch.setattr(module, "_SEAL", 20_000)
    monkeypatch.setattr(module, "_BUFFER", 5_000)
    ids = [packs.put(os.urandom(1000)) for _ in range(100)]
    packs.flush()
    assert len(list(packs.packs.glob("*.idx"))) >= 3
    assert all(packs.has(id) for id in again(packs).ids()) and set(ids) <= set(packs.ids())


def test_after_many_searches_hints_find_the_same(packs: Packs, monkeypatch):
    monkeypatch.setattr(module, "_SEAL", 20_000)
    monkeypatch.setattr(module, "_BUFFER", 5_000)
    monkeypatch.setattr(module, "_OFTEN", 10)
    monkeypatch.setattr(module, "_BITS", 6)  # most ids share theirs with one in another table
    data = {packs.put(d): d for d in (os.urandom(1000) for _ in range(100))}
    packs.flush()
    fresh = again(packs)
    for _ in range(3):
        assert {id: fresh.get(id) for id in data} == data
        assert not any(fresh.has(os.urandom(32)) for _ in range(100))
        assert fresh._hints is not None, "else nothing is tested here"
        for _ in range(40):  # a table more, which they do not know of yet
            more = os.urandom(1000)
            data[fresh.put(more)] = more
        fresh.flush()
    other = Packs(packs.folder, sync=False, portable=PORTABLE)
    late = other.put(b"by another process" * 100)
    for _ in range(40):
        other.put(os.urandom(1000))
    other.close()
    assert fresh.get(late) == b"by another process" * 100


def test_compressible_bytes_take_less_room(packs: Packs):
    packs.put(b"the same line again and again\n" * 3000)
    packs.flush()
    assert packs.size() < 20_000


def test_a_large_blob_is_a_file_of_its_own_and_readable_only_by_its_owner(packs: Packs):
    id = packs.put(os.urandom(BIG))
    packs.flush()
    (path,) = packs.large.folder.iterdir()
    assert path.name == id.hex() and path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("at", [0, 100, BIG // 2, -40, -1])
def test_a_flipped_bit_in_a_large_blob_is_found_before_its_first_byte_is_handed_out(packs: Packs, at: int):
    id = packs.put(os.urandom(BIG + 100))
    packs.flush()
    path = packs.large.folder / id.hex()
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)
    with pytest.raises(Damaged):
        next(again(packs).stream(id))
    assert [b.id for b in again(packs).check(True)] == [id]


def test_every_flipped_bit_in_a_record_is_found(packs: Packs):
    content = b"some text that is long enough to be compressed, twice over; " * 10
    id = packs.put(content)
    packs.flush()
    (path,) = packs.packs.glob("*.pack")
    sound = path.read_bytes()
    packs.close()
    for at in range(len(sound)):
        data = bytearray(sound)
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        fresh = again(packs)
        try:
            assert fresh.get(id) == content, at
        except Damaged:
            pass
        assert at in range(6, 8) or list(fresh.check(True)) or not fresh.has(id), f"byte {at} was not noticed"
        fresh.close()


def test_collect_rewrites_only_what_is_mostly_dead(packs: Packs):
    mostly = [packs.put(os.urandom(10_000)) for _ in range(10)]
    packs.flush()
    (before,) = packs.packs.glob("*.pack")
    assert packs.collect(set(mostly[:9])) == 0
    assert list(packs.packs.glob("*.pack")) == [before]
    assert packs.collect(set(mostly[:2])) > 50_000
    assert again(packs).has(mostly[0]) and not packs.has(mostly[9])


def test_a_reader_looks_once_more_when_a_pack_was_rewritten_under_it(packs: Packs):
    ids = [packs.put(os.urandom(10_000)) for _ in range(10)]
    packs.flush()
    reader = Packs(packs.folder, sync=False, portable=PORTABLE)
    assert reader.has(ids[0])
    packs.collect({ids[0]})
    assert sha256(reader.get(ids[0])).digest() == ids[0]


def test_collect_clears_leftovers_of_large_files(packs: Packs):
    packs.put(os.urandom(BIG))
    (packs.large.folder / "tmp-123-abc").write_bytes(b"left by a crash")
    packs.collect(set())
    assert list(packs.large.folder.iterdir()) == []


def test_quarantine_keeps_the_sound_ones_and_deletes_nothing(packs: Packs):
    ids = [packs.put(bytes([65 + n]) * 50 + os.urandom(200)) for n in range(5)]
    packs.flush()
    packs.close()
    (path,) = packs.packs.glob("*.pack")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    fresh = again(packs)
    bad = list(fresh.check(True))
    assert len(bad) == 1
    fresh.quarantine(bad)
    last = again(fresh)
    assert sum(last.has(id) for id in ids) == 4
    assert list(last.check(True)) == []
    assert any((packs.folder / "quarantine").iterdir())


def test_two_processes_append_one_after_the_other(packs: Packs):
    one = packs.put(b"first process" * 20)
    packs.flush()
    script = f"import pathlib\nfrom takeback.store.packs import Packs\np = Packs(pathlib.Path({str(packs.folder)!r}))\np.put(b'second process' * 20)\np.flush()\n"
    subprocess.run([sys.executable, "-c", script], check=True)
    packs.reload()
    two = sha256(b"second process" * 20).digest()
    assert packs.get(one) and packs.get(two)
    three = packs.put(b"first again" * 20)
    packs.flush()
    fresh = again(packs)
    assert [len(fresh.get(id)) for id in (one, two, three)] == [260, 280, 220]
