"""The files domain and the toy domain that shows what a new one needs; what files do beyond the protocol."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from conformance.domain import World, domain_conformance
from support import PORTABLE, age, picture
from takeback.domains.files import Files, export, temporary_prefix
from takeback.look.read_path import Reader
from takeback.model.effects import DONE, FILE, KEPT, Entry, Result, State, Step, same
from takeback.store.blobs import MemoryBlobs
from takeback.store.packs import Packs
from takeback.system.safefs import open_root


class Toy:
    """A domain in memory: the least that passes."""

    name = "toy"
    joins = False

    def __init__(self) -> None:
        self.things: dict[bytes, State] = {}

    def present(self, path: bytes) -> State:
        return self.things.get(path)

    def apply(
        self, steps: Sequence[Step], key: str, times: Mapping[bytes, Entry], again: bool = False
    ) -> Iterable[Result]:
        for step in steps:
            now = self.things.get(step.path)
            if again and same(now, step.goal):
                yield Result(step.path, step.verdict, DONE)
            elif same(now, step.expected):
                self.things[step.path] = step.goal
                yield Result(step.path, step.verdict, DONE)
            else:
                yield Result(step.path, step.verdict, KEPT, "changed since")

    def sweep(self, steps: Sequence[Step], key: str) -> None:
        pass


def thing(name: str) -> Entry:
    return Entry(FILE, 0o644, len(name), name.encode().ljust(32), b"", b"", 0, 0, 0)


def test_a_toy_domain_conforms():
    def make() -> World:
        toy = Toy()
        return World(toy, b"thing", [None, thing("a"), thing("b")], toy.things.__setitem__)

    domain_conformance(make)


def test_a_domain_that_overwrites_what_others_did_does_not_conform():
    class Careless(Toy):
        def apply(self, steps, key, times, again=False):
            for step in steps:
                self.things[step.path] = step.goal
                yield Result(step.path, step.verdict, DONE)

    def make() -> World:
        toy = Careless()
        return World(toy, b"thing", [None, thing("a"), thing("b")], toy.things.__setitem__)

    with pytest.raises(AssertionError):
        domain_conformance(make)


@pytest.fixture
def files(project: Path):
    with open_root(str(project), PORTABLE) as root:
        yield Files(root, MemoryBlobs())


def test_files_conform(files: Files, project: Path):
    path = project / "thing"

    def clear() -> None:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)

    makers = [
        lambda: None,
        lambda: path.write_text("one\n"),
        lambda: path.write_text("two\n"),
        lambda: (path.write_text("two\n"), path.chmod(0o755)),
        lambda: path.symlink_to("somewhere"),
        lambda: path.mkdir(0o755),
    ]
    states: list[State] = []
    for make in makers:
        clear()
        make()
        states.append(read(files, b"thing"))

    def put(_: bytes, state: State) -> None:
        clear()
        makers[[same(state, s) for s in states].index(True)]()

    domain_conformance(lambda: World(files, b"thing", states, put))
    assert [p.name for p in project.iterdir()] in (["thing"], []), "nothing of ours is left"


def read(files: Files, path: bytes) -> State:
    """What is there, with its bytes in the store."""
    *parents, name = path.split(b"/")
    with files.root.descend(parents) as here:
        try:
            entry, _ = Reader(files.blobs).read(here, name, here.stat(name))
        except FileNotFoundError:
            return None
    assert not isinstance(entry, str)
    return entry


def step(path: bytes, expected: State, goal: State) -> Step:
    return Step("files", path, expected, goal, "exact", ())


KEY = "k" * 32


def test_temporary_names_are_short_enough_for_the_longest_name():
    assert len(temporary_prefix(KEY) + b"999999999o") < 255


def test_a_name_of_255_bytes_is_swapped_like_any_other(files: Files, project: Path):
    name = "n" * 255
    (project / name).write_text("1\n")
    was = read(files, name.encode())
    (project / name).write_text("2\n")
    now = read(files, name.encode())
    (result,) = files.apply([step(name.encode(), now, was)], KEY, {})
    assert result.result == DONE and (project / name).read_text() == "1\n"


def test_sweep_removes_what_an_interrupted_run_left_and_nothing_else(files: Files, project: Path):
    (project / "f").write_text("1\n")
    was = read(files, b"f")
    (project / "f").write_text("2\n")
    now = read(files, b"f")
    mine = project / os.fsdecode(temporary_prefix(KEY) + b"0")
    mine.write_text("1\n")
    others = project / os.fsdecode(temporary_prefix("z" * 32) + b"0")
    others.write_text("1\n")
    files.sweep([step(b"f", now, was)], KEY)
    assert not mine.exists() and others.exists()
    assert (project / "f").read_text() == "2\n"


def test_sweep_puts_a_file_back_that_was_moved_aside(files: Files, project: Path):
    (project / "f").write_text("1\n")
    was = read(files, b"f")
    (project / "f").write_text("2\n")
    now = read(files, b"f")
    (project / "f").rename(project / os.fsdecode(temporary_prefix(KEY) + b"0o"))
    files.sweep([step(b"f", now, was)], KEY)
    assert (project / "f").read_text() == "2\n"
    assert [p.name for p in project.iterdir()] == ["f"]


@pytest.mark.parametrize("kind", ["nothing", "file", "to-file", "to-folder", "dangling", "to-itself"])
def test_below_what_is_no_folder_there_is_nothing(files: Files, project: Path, kind: str):
    """A path whose parent is no folder now is absent, not an error, whoever asks."""
    (project / "there" / "s").mkdir(parents=True)
    (project / "there" / "s" / "f").write_text("reached only through a link\n")
    targets = {"to-file": "there/s/f", "to-folder": "there", "dangling": "nowhere", "to-itself": "d"}
    if kind == "file":
        (project / "d").write_text("a file\n")
    elif kind != "nothing":
        (project / "d").symlink_to(targets[kind])
    before = picture(project)
    for path in (b"d/s", b"d/s/f"):
        there = read(files, b"there/s/f")
        assert files.present(path) is None
        assert files._inode(path) == (0, 0)
        assert not files._is_linked_as(there._replace(group=path), b"there/s/f")
        files.sweep([Step("files", path, None, there, "exact", ())], "kkkk")
        files.sweep_exports([path])
        step = Step("files", path, None, None, "exact", ())
        assert [r.result for r in files.apply([step], "kkkk", {}, again=True)] == [DONE]
    assert picture(project) == before


def test_sweep_never_loses_bytes_that_are_nobodys_plan(files: Files, project: Path):
    (project / "f").write_text("1\n")
    was = read(files, b"f")
    (project / "f").write_text("2\n")
    now = read(files, b"f")
    (project / os.fsdecode(temporary_prefix(KEY) + b"0o")).write_text("a person's edit, displaced\n")
    (project / "f").write_text("1\n")
    files.sweep([step(b"f", now, was)], KEY)
    kept = (project / "f").read_text() == "a person's edit, displaced\n"
    stored = any(files.blobs.get(id) == b"a person's edit, displaced\n" for id in files.blobs.ids())
    assert kept or stored
    assert [p.name for p in project.iterdir()] == ["f"]


def test_what_the_store_cannot_give_fails_by_name_and_the_rest_is_done(files: Files, project: Path):
    (project / "a").write_text("1\n")
    (project / "b").write_text("1\n")
    was = {n: read(files, n) for n in (b"a", b"b")}
    (project / "a").write_text("2\n")
    (project / "b").write_text("2\n")
    now = {n: read(files, n) for n in (b"a", b"b")}
    files.blobs.put(b"other", was[b"a"].content)  # type: ignore[union-attr]
    files.blobs._data[was[b"a"].content] = b"1\r"  # type: ignore[union-attr]
    lost = was[b"a"]._replace(content=bytes(32))  # type: ignore[union-attr]
    results = {
        r.path: r.result
        for r in files.apply(
            [step(b"a", now[b"a"], lost), step(b"b", now[b"b"], was[b"b"]._replace(content=files.blobs.put(b"1\n x")))],
            KEY,
            {},
        )
    }  # type: ignore[union-attr]
    assert results[b"a"] == "failed" and (project / "a").read_text() == "2\n"
    assert sorted(p.name for p in project.iterdir()) == ["a", "b"]


def test_bytes_that_were_damaged_in_the_store_are_named_so_and_never_put_in_place(tmp_path: Path, project: Path):
    (project / "a").write_text("2\n")
    packs = Packs(tmp_path / "store")
    id = packs.put(b"1\n")
    packs.flush()
    packs.close()
    (pack,) = packs.packs.glob("*.pack")
    pack.write_bytes(pack.read_bytes()[:-2] + b"X\n")
    with open_root(str(project), PORTABLE) as root:
        files = Files(root, Packs(tmp_path / "store"))
        now = read(files, b"a")
        assert now is not None
        (result,) = files.apply([step(b"a", now, now._replace(content=id, size=2))], KEY, {})
        assert result.result == "failed" and "damaged" in result.note
        assert (project / "a").read_text() == "2\n" and [p.name for p in project.iterdir()] == ["a"]
        files.blobs.close()


def test_bytes_that_are_not_those_of_their_hash_are_never_put_in_place(files: Files, project: Path):
    (project / "a").write_text("2\n")
    now = read(files, b"a")
    assert now is not None
    wrong = now._replace(content=bytes(32), size=2)
    files.blobs._data[bytes(32)] = b"1\n"  # type: ignore[attr-defined]
    (result,) = files.apply([step(b"a", now, wrong)], KEY, {})
    assert result.result == "failed" and "damaged" in result.note
    assert (project / "a").read_text() == "2\n" and [p.name for p in project.iterdir()] == ["a"]


@pytest.mark.parametrize("found", [b"1", b"1\nmore", b"2\n", b""])
def test_what_does_not_read_back_is_never_put_in_place(
    files: Files, project: Path, monkeypatch: pytest.MonkeyPatch, found: bytes
):
    (project / "a").write_text("2\n")
    now = read(files, b"a")
    assert now is not None
    goal = now._replace(content=files.blobs.put(b"1\n"))
    monkeypatch.setattr("takeback.domains.files.pread", lambda fd, size, offset: found[offset : offset + size])
    (result,) = files.apply([step(b"a", now, goal)], KEY, {})
    assert result.result == "failed" and "read back" in result.note
    assert (project / "a").read_text() == "2\n" and [p.name for p in project.iterdir()] == ["a"]


def test_a_large_file_is_read_back_by_its_hash(files: Files, project: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "a").write_text("2\n")
    now = read(files, b"a")
    assert now is not None
    large = bytes(range(256)) * (5 << 12)
    goal = now._replace(content=files.blobs.put(large), size=len(large))
    write = os.write
    monkeypatch.setattr("os.write", lambda fd, data: write(fd, b"?" + bytes(data)[1:]))  # a disk that lies
    (result,) = files.apply([step(b"a", now, goal)], KEY, {})
    assert result.result == "failed" and "read back" in result.note
    monkeypatch.undo()
    (result,) = files.apply([step(b"a", now, goal)], KEY, {})
    assert result.result == "done" and (project / "a").read_bytes() == large


def test_what_the_system_takes_in_parts_is_written_whole(files: Files, project: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "a").write_text("2\n")
    now = read(files, b"a")
    assert now is not None
    data = b"written in parts of seven"
    goal = now._replace(content=files.blobs.put(data), size=len(data))
    write = os.write
    monkeypatch.setattr("os.write", lambda fd, data: write(fd, bytes(data)[:7]))
    (result,) = files.apply([step(b"a", now, goal)], KEY, {})
    monkeypatch.undo()
    assert result.result == "done" and (project / "a").read_bytes() == data


def test_a_path_that_leads_elsewhere_is_refused(files: Files, project: Path):
    for path in (b"../x", b"/etc/passwd", b"a/../../x", b"a//b", b"."):
        (result,) = files.apply([step(path, None, thing("x"))], KEY, {})
        assert result.result == "failed"
    assert not (project.parent / "x").exists()


def test_export_writes_below_another_folder_and_replaces_nothing_unless_asked(
    files: Files, project: Path, tmp_path: Path
):
    (project / "d").mkdir(0o750)
    (project / "d/f").write_text("1\n")
    age(project)
    entries = [(p, read(files, p)) for p in (b"d", b"d/f")]
    out = tmp_path / "out"
    out.mkdir()
    with open_root(str(out), PORTABLE) as root:
        assert all(r.result == DONE for r in export(root, files.blobs, entries, False))
        assert {p: v for p, v in picture(out).items() if p} == {p: v for p, v in picture(project).items() if p}
        (out / "d/f").write_text("somebody's\n")
        kept = {r.path: r.result for r in export(root, files.blobs, entries, False)}
        assert kept[b"d/f"] == KEPT and (out / "d/f").read_text() == "somebody's\n"
        export(root, files.blobs, entries, True)
        assert (out / "d/f").read_text() == "1\n"


def test_the_mode_alone_is_set_in_place(files: Files, project: Path):
    (project / "f").write_text("1\n")
    was = read(files, b"f")
    inode = (project / "f").stat().st_ino
    (project / "f").chmod(0o600)
    (result,) = files.apply([step(b"f", read(files, b"f"), was)], KEY, {})
    assert result.result == DONE
    st = (project / "f").stat()
    assert (st.st_ino, st.st_mode & 0o7777) == (inode, 0o644)
