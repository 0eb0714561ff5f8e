"""Large files and their holes: nobody reads a hole, and the same bytes are the same, as holes or written out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from sampling import examples
from support import picture
from takeback.errors import TakebackError
from takeback.store import chunks
from takeback.workspace import Workspace

FROM = 4 * chunks.GRAIN
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where syncing costs nothing


@pytest.fixture(autouse=True)
def small_files_are_large() -> Iterator[None]:
    patches = pytest.MonkeyPatch()
    patches.setattr(chunks, "FROM", FROM)
    yield
    patches.undo()


def sparse(path: Path, size: int, *parts: tuple[int, bytes]) -> None:
    with open(path, "wb") as file:
        file.truncate(size)
        for at, data in parts:
            file.seek(at)
            file.write(data)


def identity(data: bytes) -> bytes:
    whole = chunks.ChunkedHash()
    whole.update(data)
    return whole.digest()


def of(path: Path) -> bytes:
    with open(path, "rb") as file:
        return chunks.identity(file.fileno(), os.fstat(file.fileno()).st_size)


# -- any file ----------------------------------------------------------------

near = st.integers(-2, 2)
place = st.builds(lambda grain, off: max(0, grain * chunks.GRAIN + off), st.integers(0, 7), near)
data = st.one_of(
    st.binary(min_size=1, max_size=40),
    st.just(bytes(5000)),  # zeros that are written out
    st.just(b"x" * chunks.GRAIN),
    st.just(bytes(chunks.GRAIN) + b"x"),
)
files = st.tuples(
    st.builds(lambda grains, off: max(0, grains * chunks.GRAIN + off), st.integers(3, 9), near),
    st.lists(st.tuples(place, data), max_size=5),
)


def write(path: Path, file: tuple[int, list[tuple[int, bytes]]]) -> bytes:
    """Writes it with its holes; returns its bytes."""
    size, parts = file
    sparse(path, size, *parts)
    return path.read_bytes()


@examples(12, 100)
@given(file=files, cuts=st.lists(st.integers(1, 3 * chunks.GRAIN), min_size=1, max_size=4))
def test_identity_is_of_the_bytes_alone(file, cuts):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        holes, full = Path(folder, "holes"), Path(folder, "full")
        content = write(holes, file)
        full.write_bytes(content)
        assert of(holes) == of(full) == identity(content)
        with pytest.MonkeyPatch.context() as patches:  # where nobody tells of holes
            patches.delattr(os, "SEEK_DATA")
            patches.delattr(os, "SEEK_HOLE")
            assert of(holes) == identity(content)
        piecewise, at = chunks.ChunkedHash(), 0
        for number in range(len(content)):
            if at >= len(content):
                break
            cut = cuts[number % len(cuts)]
            piecewise.update(content[at : at + cut])
            at += cut
        assert piecewise.digest() == identity(content)
        if content:
            at = len(content) // 2
            other = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            assert identity(other) != identity(content)
        assert identity(content + b"\0") != identity(content)


@pytest.mark.parametrize("store", ["disk", "memory"])
@examples(12, 100)
@given(before=files, after=files)
def test_what_comes_back_is_the_same_byte_for_byte(store, before, after):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        root = Path(folder, "root")
        root.mkdir()
        path = root / "f"
        then = write(path, before)
        where = {"disk": str(Path(folder, "home")), "memory": "memory"}[store]
        with takeback.open(root, create=True, store=where) as ws:
            allocated = path.stat().st_blocks
            path.unlink()
            now = write(path, after)
            ws.checkpoint("after")
            for _ in range(2):
                assert ws.rollback("start").whole and path.read_bytes() == then
                if then != now:  # else it was never written anew
                    assert path.stat().st_blocks <= allocated + 8, "its holes are holes again"
                assert ws.rollback("after").whole and path.read_bytes() == now
            assert ws.verify(data=True).ok
            out = Path(folder, "out")
            assert ws.restore("start", to=out).whole and (out / "f").read_bytes() == then
            assert ws.restore("start", to=out).results[0].note == "already there"


# -- by name -----------------------------------------------------------------


def test_a_hole_that_is_filled_with_zeros_is_no_change(ws: Workspace, project: Path):
    sparse(project / "f", 2 * FROM, (FROM, b"x"))
    ws.checkpoint("holes")
    content = (project / "f").read_bytes()
    (project / "f").write_bytes(content)
    assert (project / "f").stat().st_blocks * 512 >= len(content)
    assert ws.status().changes == ()
    assert not ws.rollback("holes").id


def read_during(work) -> int:
    """How many bytes were read through os.read."""
    total, real = 0, os.read

    def counting(fd: int, size: int) -> bytes:
        nonlocal total
        found = real(fd, size)
        total += len(found)
        return found

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(os, "read", counting)
        work()
    return total


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="nobody tells of holes here")
def test_holes_are_never_read(ws: Workspace, project: Path):
    size = 11 << 30
    file = project / "f"
    try:
        sparse(file, size, (size // 2, b"x" * 4096), (size - 1, b"y"))
    except OSError as error:
        pytest.skip(f"no such large files here: {error}")
    if file.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("no holes on this file system")
    before = picture(project)

    def all_of_it() -> None:
        ws.checkpoint("one")
        with open(file, "r+b") as open_file:
            open_file.seek(1 << 30)
            open_file.write(b"changed")
        ws.checkpoint("two")
        assert ws.rollback("one").whole
        assert ws.redo().whole and ws.undo().whole
        file.unlink()
        assert ws.rollback("one").whole
        assert ws.verify(data=True).ok

    assert read_during(all_of_it) < 32 << 20
    assert picture(project)[b"f"][:5] == before[b"f"][:5]
    assert file.stat().st_blocks * 512 <= 1 << 20
    assert ws.store.blobs.size() < 1 << 20


def test_a_store_from_before_knows_its_large_files_still(ws: Workspace, project: Path, tmp_path: Path, monkeypatch):
    """They have the plain hash of their bytes: they are the same, come back, and are found in place."""
    (project / "holes").touch()
    sparse(project / "holes", 3 * FROM, (FROM + 5, b"x"))
    (project / "full").write_bytes(os.urandom(2 * FROM))
    with monkeypatch.context() as then:
        then.setattr(chunks, "FROM", 1 << 62)
        ws.checkpoint("before")
    was = {name: (project / name).read_bytes() for name in ("holes", "full")}
    known = {name: ws.observer.known().state(name.encode()).content for name in was}
    assert not any(map(chunks.is_chunked, known.values()))
    for name in was:
        os.utime(project / name)
    assert ws.checkpoint("touched") and not [c for c in ws.status().changes]
    assert {name: ws.observer.known().state(name.encode()).content for name in was} == known
    assert not any(e.changes for e in ws.history().effects if e.seq > ws.history().checkpoints[1].seq)
    for name, content in was.items():
        (project / name).write_bytes(b"new" + content[3:])
    assert chunks.is_chunked((ws.checkpoint("changed"), ws.observer.known().state(b"full"))[1].content)
    assert ws.rollback("before").whole
    assert {name: (project / name).read_bytes() for name in was} == was
    assert ws.redo().whole
    assert ws.undo().whole or ws.rollback("before").whole
    assert {name: (project / name).read_bytes() for name in was} == was
    assert not ws.rollback("before").id and ws.verify(data=True).ok
    assert ws.restore("before", to=tmp_path / "out").whole
    assert {r.note for r in ws.restore("before", to=tmp_path / "out").results} == {"already there"}


@pytest.mark.parametrize("where", ["data", "map", "footer"])
def test_damage_is_found_and_never_handed_out(ws: Workspace, project: Path, where: str):
    sparse(project / "f", 9 * FROM, (FROM, os.urandom(100)), (5 * FROM, os.urandom(100)))
    ws.checkpoint("one")
    id = ws.observer.known().state(b"f").content
    blob = ws.store.folder / "big" / id.hex()
    damaged = bytearray(blob.read_bytes())
    damaged[{"data": 20, "map": -100, "footer": -30}[where]] ^= 1
    (project / "f").unlink()
    blob.write_bytes(damaged)
    found = ws.verify(data=True)
    assert not found.ok
    try:
        outcome = ws.rollback("one")
    except TakebackError:
        pass
    else:
        assert not outcome.whole
    assert not (project / "f").exists()
