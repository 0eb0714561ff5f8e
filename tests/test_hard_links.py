"""Hard links: after a take-back called exact, the names in the tree are the same files they were."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from sampling import examples
from takeback.look.observer import is_work
from takeback.system.safefs.portable import PortableFolder
from takeback.system.safefs.posix import PosixFolder
from takeback.workspace import Workspace

NAMES = ("a", "b", "d/q", "d/r")


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PosixFolder, "sync", lambda self: None)
    monkeypatch.setattr(PortableFolder, "sync", lambda self: None)


def seen(root: Path) -> dict[str, tuple]:
    """Each file's bytes, mode and names."""
    found = {}
    files = [p for p in sorted(root.rglob("*")) if p.is_file()]
    for path in files:
        names = tuple(str(o.relative_to(root)) for o in files if o.samefile(path))
        assert len(names) == path.stat().st_nlink, "a stray name"
        found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mode, names)
    return found


def is_exact(outcome) -> bool:
    """Done throughout, and nothing to be said about links."""
    assert not outcome.counts["failed"]
    notes = [n.note for n in (*outcome.plan.steps, *outcome.results)]
    return outcome.whole and not any("not linked" in n or "not put back" in n for n in notes)


# -- by name -----------------------------------------------------------------


@pytest.fixture
def start(project: Path):
    """A workspace of a project with one file."""

    def begin(name: str) -> Workspace:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x\n")
        return takeback.open(project, create=True)

    return begin


@pytest.mark.parametrize("gone", [("c",), ("b",), ("a",), ("b", "c"), ("a", "b")])
@pytest.mark.parametrize("instead", ["", "x\n", "another\n"])
def test_of_three_names_those_that_went_come_back_to_those_that_stayed(
    project: Path, gone: tuple[str, ...], instead: str
):
    (project / "a").write_text("x\n")
    os.link(project / "a", project / "b")
    os.link(project / "a", project / "c")
    ws = takeback.open(project, create=True)  # no row tells of these names: they were there at first sight
    ws.checkpoint("three")
    before = seen(project)
    for name in gone:
        (project / name).unlink()
        if instead:
            (project / name).write_text(instead)
    outcome = ws.rollback("three", everything=True)
    assert is_exact(outcome) and seen(project) == before
    assert ws.status().changes == () and not ws.rollback("three", everything=True).id


def test_a_take_back_of_one_name_does_not_stand_between_the_others_and_their_undo(start):
    """It took a name away from a file, which changed the links of the name that stays, and nothing else."""
    ws = start("z")
    root = ws.root
    (root / "a").write_text("alone\n")
    ws.checkpoint("alone")
    (root / "a").unlink()
    os.link(root / "z", root / "a")
    ws.checkpoint("linked")
    (root / "z").write_text("edited\n")
    ws.checkpoint(actor="claude")
    ws.restore("alone", "a")
    assert (root / "z").stat().st_nlink == 1
    assert [(s.path, s.verdict) for s in ws.plan("undo").steps if s.path == b"z"] == [(b"z", "exact")]


def test_a_revert_done_again_keeps_the_group(project: Path, start):
    with start("e/q") as ws:
        os.link(project / "e/q", project / "a")
        ws.checkpoint("one")
        before = seen(project)
        assert is_exact(ws.revert("./e"))
        assert not (project / "a").samefile(project / "e/q")
        assert is_exact(ws.redo())
        assert seen(project) == before
        ws.rollback("one", everything=True)
        assert seen(project) == before
        assert not ws.diff("one").files


@pytest.mark.parametrize("verb", ["revert", "restore", "undo", "rollback"])
def test_a_removed_name_is_linked_again_with_one_that_stayed(project: Path, start, verb: str):
    with start("d/z") as ws:
        os.link(project / "d/z", project / "b")
        ws.checkpoint("two")
        before = seen(project)
        (project / "b").unlink()
        after = seen(project)
        took = {
            "revert": lambda: ws.revert("./b"),
            "restore": lambda: ws.restore("two", "b"),
            "undo": lambda: ws.undo(),
            "rollback": lambda: ws.rollback("two"),
        }
        inode = (project / "d/z").stat().st_ino
        assert is_exact(took[verb]())
        assert seen(project) == before
        assert (project / "d/z").stat().st_ino == inode, "it was in place"
        assert is_exact(ws.redo())
        assert seen(project) == after
        assert is_exact(ws.undo())
        assert seen(project) == before


def test_a_named_look_sees_the_whole_group(project: Path, start):
    with start("z") as ws:
        os.link(project / "z", project / "b")
        ws.track(["b"], actor="c")
        outcome = ws.undo()
        assert is_exact(outcome)
        assert not (project / "b").exists()
        assert is_exact(ws.redo())
        assert (project / "b").samefile(project / "z")


def test_what_was_written_through_another_name_is_the_actors_too(project: Path, start):
    with start("z") as ws:
        os.link(project / "z", project / "b")
        ws.checkpoint("linked")
        before = seen(project)
        (project / "b").write_text("other\n")
        ws.track(["b"], actor="c")
        assert is_exact(ws.undo())
        assert seen(project) == before


def test_a_tracked_folder_is_linked_with_what_is_outside_it(project: Path, start):
    with start("z") as ws:
        (project / "d").mkdir()
        os.link(project / "z", project / "d/b")
        ws.track(["d"], actor="c")
        assert is_exact(ws.undo())
        assert not (project / "d").exists()


def test_a_group_that_cannot_come_back_is_named(project: Path, start):
    with start("d/z") as ws:
        os.link(project / "d/z", project / "b")
        ws.checkpoint("two")
        (project / "b").unlink()
        (project / "d/z").write_text("other\n")
        outcome = ws.revert("./b")
        assert "d/z" in outcome.plan.steps[0].note
        assert (project / "d/z").read_text() == "other\n"


# -- any story ---------------------------------------------------------------

name = st.sampled_from(NAMES)
change = st.one_of(
    st.tuples(st.just("write"), name, st.sampled_from("xy")),
    st.tuples(st.just("link"), name, name),
    st.tuples(st.just("link"), name, name),
    st.tuples(st.just("copy"), name, name),
    st.tuples(st.just("unlink"), name, st.none()),
    st.tuples(st.just("chmod"), name, st.sampled_from([0o600, 0o644])),
)
other = st.one_of(
    st.tuples(st.just("undo"), st.integers(1, 2), st.none()),
    st.tuples(st.just("redo"), st.integers(1, 2), st.none()),
    st.tuples(st.just("rollback"), st.integers(0, 9), st.none()),
    st.tuples(st.just("revert"), name, st.none()),
    st.tuples(st.just("restore"), st.integers(0, 9), name),
    st.tuples(st.just("track"), name, st.sampled_from(["", "c"])),
)
stories = st.lists(
    st.one_of(change, change, st.tuples(st.just("checkpoint"), st.none(), st.none()), other), max_size=14
)


class Story:
    def __init__(self, place: Path) -> None:
        self.root = place / "root"
        (self.root / "d").mkdir(parents=True)
        (self.root / "d/q").write_text("x")
        self.ws = takeback.open(self.root, create=True, store="memory")
        self.checkpoints = [(self.ws.history().checkpoints[0].id, seen(self.root))]

    def play(self, kind: str, a, b) -> None:
        getattr(self, kind)(a, b)

    def write(self, a: str, text: str) -> None:
        (self.root / a).write_text(text)

    def link(self, a: str, b: str) -> None:
        if (self.root / a).exists() and a != b:
            (self.root / b).unlink(missing_ok=True)
            os.link(self.root / a, self.root / b)

    def copy(self, a: str, b: str) -> None:
        """The same bytes as another file."""
        if (self.root / a).exists() and a != b:
            (self.root / b).unlink(missing_ok=True)
            shutil.copy(self.root / a, self.root / b)

    def unlink(self, a: str, _) -> None:
        (self.root / a).unlink(missing_ok=True)

    def chmod(self, a: str, mode: int) -> None:
        if (self.root / a).exists():
            (self.root / a).chmod(mode)

    def track(self, a: str, actor: str) -> None:
        self.ws.track([a], actor=actor)

    def checkpoint(self, _, __) -> None:
        self.checkpoints.append((self.ws.checkpoint("named").id, seen(self.root)))

    def undo(self, n: int, _) -> None:
        assert not self.ws.undo(n).counts["failed"]

    def redo(self, n: int, _) -> None:
        assert not self.ws.redo(n).counts["failed"]

    def rollback(self, number: int, _) -> None:
        id, then = self.checkpoints[number % len(self.checkpoints)]
        assert is_exact(self.ws.rollback(id, everything=True))
        assert seen(self.root) == then
        assert not self.ws.diff(id).files

    def revert(self, a: str, _) -> None:
        if any(a.encode() in e.changes for e in self.ws.history().effects):
            self._exactly(lambda: self.ws.revert(f"./{a}"))

    def restore(self, number: int, a: str) -> None:
        id, then = self.checkpoints[number % len(self.checkpoints)]
        if a in then:
            outcome = self._exactly(lambda: self.ws.restore(id, a))
            assert seen(self.root)[a][:2] == then[a][:2]
            if is_exact(outcome) and any(s.path == a.encode() for s in outcome.plan.steps):
                assert seen(self.root)[a] == then[a]

    def _exactly(self, take_back):
        """Leaves nothing that the next look would take for somebody's work, and can be taken back itself."""
        self.ws.plan("undo")
        before = seen(self.root)
        outcome = take_back()
        assert not outcome.counts["failed"]
        assert not any(map(is_work, self.ws.glance().changes))
        if outcome.id and is_exact(outcome):
            after = seen(self.root)
            assert is_exact(self.ws.redo())
            assert seen(self.root) == before
            take_back()
            assert seen(self.root) == after
        return outcome


def played(story, place: Path) -> Story:
    found = Story(place)
    for operation in story:
        found.play(*operation)
    return found


@examples(30, 200)
@given(story=stories, number=st.integers(0, 9))
def test_rollback_brings_every_group_back(story, number: int):
    with tempfile.TemporaryDirectory() as place:
        found = played(story, Path(place))
        found.rollback(number, None)
        found.ws.close()


@examples(30, 200)
@given(story=stories, n=st.integers(1, 3))
def test_as_many_redos_as_undos_bring_every_group_back(story, n: int):
    with tempfile.TemporaryDirectory() as place:
        found = played(story, Path(place))
        found.ws.plan("undo")
        before = seen(found.root)
        took = [found.ws.undo() for _ in range(n)]
        assert not any(map(is_work, found.ws.glance().changes))
        if all(o.id and is_exact(o) for o in took):
            for _ in range(n):
                assert is_exact(found.ws.redo())
            assert seen(found.root) == before
        found.ws.close()


@pytest.mark.parametrize("replaced", ["removed", "written anew", "copied"])
@pytest.mark.parametrize("name", ["b", "c", "d"])
def test_a_mode_of_four_names_of_which_one_left_goes_back_and_forth(tmp_path: Path, name: str, replaced: str):
    """Setting the mode of one name sets that of all: nobody else touched them."""
    root = tmp_path / "four"
    root.mkdir()
    (root / "a").write_text("x")
    for other in "bcd":
        os.link(root / "a", root / other)
    with takeback.open(root, create=True, store="memory") as ws:
        start = seen(root)
        (root / "a").chmod(0o600)
        (root / name).unlink()
        if replaced != "removed":
            (root / name).write_text("x" if replaced == "copied" else "y")
        ws.checkpoint("changed")
        changed = seen(root)
        for _ in range(2):
            assert is_exact(ws.rollback("start")) and seen(root) == start
            assert is_exact(ws.redo()) and seen(root) == changed
