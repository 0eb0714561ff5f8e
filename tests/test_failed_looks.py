"""A look that fails on a path leaves what was known of it, absence included; and says so."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import picture
from takeback.model.effects import Checkpoint, Effect, text
from takeback.system.safefs.portable import PortableFolder
from takeback.system.safefs.posix import PosixFolder
from takeback.workspace import Workspace


@pytest.fixture
def unreadable() -> Iterator[Callable[..., None]]:
    """Reading a file, or listing a folder, of these names fails, whoever we are; without names nothing does any more."""
    patches = pytest.MonkeyPatch()

    def set_to(*names: bytes, code: int = errno.EIO) -> None:
        patches.undo()
        for kind in (PosixFolder, PortableFolder):
            _fail(patches, kind, "open_read", lambda here, name: name in names, code)
            _fail(patches, kind, "listing", lambda here: here.path.rpartition(b"/")[2] in names, code)

    yield set_to
    patches.undo()


def _fail(monkeypatch: pytest.MonkeyPatch, kind: type, method: str, when: Callable[..., bool], code: int) -> None:
    real = getattr(kind, method)

    def failing(self, *args):
        if when(self, *args):
            raise OSError(code, os.strerror(code))
        return real(self, *args)

    monkeypatch.setattr(kind, method, failing)


def results(outcome) -> dict[str, str]:
    return {text(r.path): r.result for r in outcome.results}


def effects(ws: Workspace, since: Checkpoint) -> list[Effect]:
    return [effect for effect in ws.history().effects if effect.seq > since.seq]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EMFILE])
def test_what_was_absent_is_known_to_have_been_absent(ws: Workspace, project: Path, unreadable, code: int):
    ws.checkpoint("start")
    before = picture(project)
    (project / "new").write_text("new\n")
    unreadable(b"new", code=code)
    assert [path for path, _ in ws.checkpoint("partial").partial] == ["new"]
    assert [path for path, _ in ws.status().lacking] == ["new"]
    unreadable()
    assert results(ws.rollback("start")) == {"new": "done"}
    assert picture(project) == before


@pytest.mark.parametrize("look", ["checkpoint", "track", "status"])
def test_what_was_there_is_known_as_it_was(ws: Workspace, project: Path, unreadable, look: str):
    (project / "f").write_text("1\n")
    ws.checkpoint("start")
    before = picture(project)
    (project / "f").write_text("2\n")
    unreadable(b"f")
    if look == "checkpoint":
        ws.checkpoint("partial")
    elif look == "track":
        ws.track(["f"])
    else:
        ws.status()
    unreadable()
    assert results(ws.rollback("start")) == {"f": "done"}
    assert picture(project) == before


def test_what_cannot_be_read_now_is_named_and_not_touched(ws: Workspace, project: Path, unreadable):
    ws.checkpoint("start")
    (project / "a").write_text("1\n")
    (project / "b").write_text("1\n")
    ws.checkpoint(actor="agent")
    (project / "a").write_text("who knows\n")
    unreadable(b"a")
    outcome = ws.undo()
    assert results(outcome) == {"a": "kept", "b": "done"}
    assert not outcome.whole and (project / "a").read_text() == "who knows\n"


def test_no_change_is_journaled_for_what_could_not_be_read(ws: Workspace, project: Path, unreadable):
    (project / "f").write_text("1\n")
    (project / "d" / "e").mkdir(parents=True)
    (project / "d" / "e" / "g").write_text("1\n")
    start = ws.checkpoint("start")
    os.utime(project / "f")
    (project / "d" / "new").write_text("1\n")
    (project / "d" / "new").unlink()
    unreadable(b"f", b"d")
    assert {path for path, _ in ws.checkpoint("partial").partial} == {"f", "d"}
    assert not effects(ws, start), "nothing changed, as far as anybody knows"
    unreadable()
    assert not ws.checkpoint("whole").partial
    assert not effects(ws, start)


@pytest.mark.parametrize("known", [True, False])
def test_a_folder_that_could_not_be_listed_keeps_what_was_known_of_all_in_it(
    ws: Workspace, project: Path, unreadable, known: bool
):
    if known:
        (project / "d" / "e").mkdir(parents=True)
        (project / "d" / "e" / "old").write_text("1\n")
        (project / "d" / "gone").write_text("1\n")
    start = ws.checkpoint("start")
    before = picture(project)
    (project / "d" / "e").mkdir(parents=True, exist_ok=True)
    (project / "d" / "e" / "new").write_text("1\n")
    (project / "d" / "gone").unlink(missing_ok=True)
    unreadable(b"d")
    assert [path for path, _ in ws.checkpoint("partial").partial] == ["d"]
    found = {path for effect in effects(ws, start) for path in effect.changes}
    assert found == ({b"d/e/new"} if known else {b"d"}), "d itself was not listed"
    unreadable()
    assert not ws.checkpoint("whole").partial
    assert ws.rollback("start").whole
    assert picture(project) == before
    assert ws.verify(data=True).ok


def test_the_index_made_anew_knows_the_same(ws: Workspace, project: Path, unreadable):
    (project / "f").write_text("1\n")
    ws.checkpoint("start")
    before = picture(project)
    (project / "f").write_text("2\n")
    (project / "new").write_text("2\n")
    unreadable(b"f", b"new")
    ws.checkpoint("partial")
    unreadable()
    ws.observer._index.remove()
    assert results(ws.rollback("start")) == {"f": "done", "new": "done"}
    assert picture(project) == before


def test_what_a_checkpoint_could_not_read_is_not_passed_off_as_its_state(
    ws: Workspace, project: Path, unreadable, tmp_path: Path
):
    (project / "f").write_text("1\n")
    ws.checkpoint("start")
    (project / "f").write_text("2\n")
    (project / "new").write_text("2\n")
    unreadable(b"f", b"new")
    partial = ws.checkpoint("partial")
    unreadable()
    ws.checkpoint("whole")
    assert not {"f", "new"} & {path for path, *_ in ws.show(partial.id).tree}
    assert not ws.diff("partial", "whole").files
    with pytest.raises(Exception, match="was not covered"):
        ws.restore("partial", "f")
    outcome = ws.rollback("partial", everything=True)
    assert results(outcome) == {"f": "kept", "new": "kept"}, "what they were there nobody knows"
    assert (project / "f").read_text() == (project / "new").read_text() == "2\n"


def test_what_is_known_since_a_partial_checkpoint_still_goes_back(ws: Workspace, project: Path, unreadable):
    (project / "f").write_text("1\n")
    ws.checkpoint("start")
    (project / "f").write_text("2\n")
    unreadable(b"f")
    ws.checkpoint("partial")
    unreadable()
    ws.checkpoint("whole")
    (project / "f").write_text("3\n")
    outcome = ws.rollback("partial", everything=True)
    assert (project / "f").read_text() == "2\n", "the earliest that was seen since"
    assert results(outcome)["f"] == "done"


def test_hard_links_stay_together_where_one_name_could_not_be_read(ws: Workspace, project: Path, unreadable):
    (project / "a").write_text("1\n")
    os.link(project / "a", project / "b")
    os.link(project / "a", project / "c")
    start = ws.checkpoint("start")
    os.utime(project / "a")
    unreadable(b"b")
    ws.checkpoint("partial")
    assert not effects(ws, start)
    unreadable()
    ws.checkpoint("whole")
    assert not effects(ws, start)
