"""What a look finds: exactly what differs from the known tree, and nothing that it did not look at."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

import takeback
from support import PORTABLE
from takeback.look.coverage import Rules
from takeback.look.known_tree import Index
from takeback.look.scan import Limits, Look, Scan
from takeback.model.effects import FILE, FOLDER, LINK, UNSEEN, text
from takeback.store.blobs import MemoryBlobs
from takeback.system.safefs import open_root
from takeback.workspace import Workspace


class Looking:
    def __init__(self, project: Path) -> None:
        self.project = project
        self.index = Index()
        self.blobs = MemoryBlobs()
        self.rules = Rules()

    def whole(self, **limits) -> Look:
        with open_root(str(self.project), PORTABLE) as root:
            look = Scan(root, self.index, self.rules, self.blobs, Limits(fork=False, **limits)).whole()
        self.index = look.index
        return look

    def named(self, *paths: bytes) -> Look:
        with open_root(str(self.project), PORTABLE) as root:
            look = Scan(root, self.index, self.rules, self.blobs, Limits(fork=False)).named(paths)
        self.index = look.index
        return look


@pytest.fixture
def looking(project: Path) -> Looking:
    return Looking(project)


def found(look: Look) -> dict[str, tuple]:
    """path → kinds before and after, of what counts."""
    return {
        text(c.path): (c.before and c.before.kind, c.after and c.after.kind)
        for c in look.changes
        if c.path and not (c.before and c.after and c.before[:6] == c.after[:6])
    }


def test_the_first_look_is_no_change(looking: Looking, project: Path):
    (project / "f").write_text("1")
    look = looking.whole()
    assert look.first
    assert looking.index.state(b"f").kind == FILE
    assert found(looking.whole()) == {}


def test_what_differs_is_found_and_its_bytes_are_stored(looking: Looking, project: Path):
    (project / "d").mkdir()
    for name in ("same", "edited", "gone", "d/moved"):
        (project / name).write_text(name)
    looking.whole()
    (project / "edited").write_text("EDITED")
    (project / "gone").unlink()
    (project / "d/moved").rename(project / "moved")
    (project / "n").mkdir()
    (project / "n/new").write_text("new")
    look = looking.whole()
    assert found(look) == {
        "edited": (FILE, FILE),
        "gone": (FILE, None),
        "d/moved": (FILE, None),
        "moved": (None, FILE),
        "n": (None, FOLDER),
        "n/new": (None, FILE),
    }
    for change in look.changes:
        for state in change[1:3]:
            if state is not None and state.content:
                assert looking.blobs.has(state.content)


def test_a_touch_is_recorded_and_is_no_change(looking: Looking, project: Path):
    (project / "f").write_text("1")
    looking.whole()
    os.utime(project / "f", ns=(5, 5))
    look = looking.whole()
    assert found(look) == {}
    (change,) = (c for c in look.changes if c.path == b"f")
    assert change.after is not None and change.after.mtime_ns == 5


def test_what_did_not_change_is_not_read_again(looking: Looking, project: Path, monkeypatch):
    from takeback.look.read_path import Reader

    for n in range(20):
        (project / f"f{n}").write_text("1")
    time.sleep(0.03)
    looking.whole()
    read = []
    real = Reader.read_file
    monkeypatch.setattr(
        Reader, "read_file", lambda self, here, name, *known: read.append(name) or real(self, here, name, *known)
    )
    (project / "f7").write_text("2")
    looking.whole()
    assert read == [b"f7"]


def test_a_named_look_sees_only_what_is_named(looking: Looking, project: Path):
    (project / "d").mkdir()
    (project / "a").write_text("1")
    (project / "d/b").write_text("1")
    looking.whole()
    (project / "a").write_text("2")
    (project / "d/b").write_text("2")
    assert found(looking.named(b"d/b")) == {"d/b": (FILE, FILE)}
    assert found(looking.whole()) == {"a": (FILE, FILE)}, "and the rest is still found later"


def test_a_named_look_at_something_gone_or_new(looking: Looking, project: Path):
    (project / "a").write_text("1")
    (project / "d").mkdir()
    (project / "d/x").write_text("1")
    looking.whole()
    (project / "a").unlink()
    (project / "d/x").unlink()
    (project / "d").rmdir()
    (project / "n").write_text("1")
    assert found(looking.named(b"a", b"d", b"n", b"never")) == {
        "a": (FILE, None),
        "d": (FOLDER, None),
        "d/x": (FILE, None),
        "n": (None, FILE),
    }
    assert found(looking.whole()) == {}


@pytest.mark.parametrize("becomes", ["file", "link"])
def test_a_named_look_below_what_is_no_folder_any_more_finds_nothing_there(
    looking: Looking, project: Path, becomes: str
):
    (project / "d" / "s").mkdir(parents=True)
    (project / "d" / "s" / "f").write_text("f\n")
    looking.whole()
    (project / "d").rename(project / "elsewhere")
    (project / "d").write_text("a file\n") if becomes == "file" else (project / "d").symlink_to("elsewhere")
    look = looking.named(b"d/s/f")
    assert not look.lacking
    assert [(c.path, c.after) for c in look.changes] == [(b"d/s/f", None)]


def test_a_named_folder_means_everything_in_it(looking: Looking, project: Path):
    (project / "d/e").mkdir(parents=True)
    (project / "d/e/x").write_text("1")
    looking.whole()
    (project / "d/e/x").write_text("2")
    (project / "d/e/y").write_text("1")
    assert found(looking.named(b"d")) == {"d/e/x": (FILE, FILE), "d/e/y": (None, FILE)}


def test_named_before_anything_else_was_seen(looking: Looking, project: Path):
    (project / "d").mkdir()
    (project / "d/x").write_text("1")
    (project / "d/y").write_text("1")
    (project / "other").write_text("1")
    first = looking.named(b"d/x")
    assert all(c.before is not None and c.before.kind == UNSEEN for c in first.changes), "first sight is no change"
    (project / "d/x").write_text("2")
    assert found(looking.named(b"d/x")) == {"d/x": (FILE, FILE)}
    for path in (b"other", b"d/y"):
        state = looking.index.state(path)
        assert state is not None and state.kind == UNSEEN, "never looked at is not absent: that would permit deletion"
    look = looking.whole()
    assert {text(c.path): c.before and c.before.kind for c in look.changes if c.path in (b"other", b"d/y")} == {
        "other": UNSEEN,
        "d/y": UNSEEN,
    }


def test_rules_exclude_and_bring_back(looking: Looking, project: Path):
    for folder in ("node_modules", "src", ".git"):
        (project / folder).mkdir()
        (project / folder / "f").write_text("1")
    (project / "x.log").write_text("1")
    looking.rules = Rules(user=["*.log"])
    look = looking.whole()
    assert {text(p): why for p, why in looking.index.uncovered()} == {
        "node_modules": "regenerable", ".git": "git", "x.log": "excluded by your configuration",
    }  # fmt: skip
    assert not look.lacking, "a rule does not make a checkpoint partial"
    looking.rules = Rules(user=["!node_modules/"])
    look = looking.whole()
    assert looking.index.state(b"node_modules/f").kind == FILE and looking.index.state(b"x.log").kind == FILE
    assert all(c.before is not None and c.before.kind == UNSEEN for c in look.changes if c.path and c.path != b""), (
        "seen for the first time"
    )


def test_what_becomes_excluded_is_not_gone(looking: Looking, project: Path):
    (project / "x.log").write_text("1")
    looking.whole()
    looking.rules = Rules(user=["*.log"])
    looking.whole()
    assert looking.index.state(b"x.log").kind == UNSEEN


def test_files_above_the_limit_by_allocated_size(looking: Looking, project: Path):
    (project / "large").write_bytes(b"x" * 100_000)
    with open(project / "sparse", "wb") as file:
        file.truncate(10_000_000)
    looking.whole(max_file=50_000)
    assert [text(p) for p, why in looking.index.uncovered()] == ["large"]
    assert looking.index.state(b"sparse").kind == FILE
    looking.whole(max_file=500_000)
    assert looking.index.state(b"large").kind == FILE


def test_our_own_store_inside_the_root_is_never_captured(project: Path):
    with takeback.open(project, create=True, store=str(project / ".takeback")) as ws:
        (project / "f").write_text("1")
        ws.checkpoint("one")
        size = ws.store.size()
        for n in range(5):
            ws.checkpoint(f"{n}")
        assert ws.store.size() - size < 200_000
        assert (".takeback", "takeback's own store") in ws.status().uncovered
        ws.rollback("start", everything=True)
        assert (project / ".takeback").is_dir()


def test_the_projects_own_rules_do_not_take_out_of_cover_what_was_covered(ws: Workspace, project: Path):
    (project / "precious").write_text("1\n")
    ws.checkpoint("before")
    (project / ".takebackignore").write_text("precious\nnew\n")
    (project / "new").write_text("1\n")
    (project / "precious").write_text("2\n")
    ws.checkpoint(actor="agent")
    time.sleep(0.03)
    ws.checkpoint(actor="agent")  # by now nothing is listed anew
    assert ws.status().held_back == ("precious",), "an agent cannot lessen its own undo"
    ws.undo()
    assert (project / "precious").read_text() == "1\n"
    (project / ".takebackignore").write_text("precious\n")
    ws.confirm_rules()
    ws.checkpoint("confirmed")
    assert ws.status().held_back == ()
    assert any(p == "precious" for p, _ in ws.status().uncovered)


def test_past_the_deadline_it_says_what_it_did_not_look_at(looking: Looking, project: Path):
    (project / "d").mkdir()
    (project / "d/f").write_text("1")
    looking.whole()
    (project / "d/f").write_text("2")
    look = looking.whole(deadline=time.monotonic() - 1)
    assert look.lacking and found(look) == {}
    assert found(looking.whole()) == {"d/f": (FILE, FILE)}


def test_forked_workers_find_the_same(project: Path):
    for n in range(60):
        (project / f"d{n}").mkdir()
        for m in range(15):
            (project / f"d{n}/f{m}").write_text(f"{n} {m}")
    with takeback.open(project, create=True) as ws, takeback.open(project, store="memory") as alone:
        a, b = ws.history().checkpoints[0], alone.history().checkpoints[0]
        assert a.snapshot.identity == b.snapshot.identity and a.snapshot.files == 900
        assert ws.verify(data=True).ok


def test_temporary_files_of_a_running_takeback_are_nobodys(looking: Looking, project: Path):
    looking.whole()
    (project / ".takeback-kkk-0").write_text("ours")
    assert found(looking.whole(temporary=(b".takeback-kkk-",))) == {}
    assert found(looking.whole()) == {".takeback-kkk-0": (None, FILE)}


def test_a_folder_that_goes_takes_its_hard_linked_files_along(ws: Workspace, project: Path):
    (project / "d/e").mkdir(parents=True)
    (project / "d/e/x").write_text("1")
    os.link(project / "d/e/x", project / "twin")
    ws.checkpoint("before")
    (project / "d/e/x").unlink()
    (project / "d/e").rmdir()
    (project / "d").rmdir()
    ws.checkpoint("after")
    assert {r for row in ws.log("kind:effect")[:1] for r in row.paths} == {"d", "d/e", "d/e/x", "twin"}
    assert ws.rollback("before").whole
    assert (project / "d/e/x").stat().st_ino == (project / "twin").stat().st_ino


def test_a_file_that_became_a_link_and_a_mode_on_linked_names_go_back(ws: Workspace, project: Path):
    (project / "file").write_text("1")
    (project / "a").write_text("1")
    os.link(project / "a", project / "b")
    ws.checkpoint("before")
    (project / "file").unlink()
    (project / "file").symlink_to("elsewhere")
    (project / "a").chmod(0o600)
    assert ws.rollback().whole
    assert (project / "file").read_text() == "1" and not (project / "file").is_symlink()
    assert {(project / n).stat().st_mode & 0o777 for n in "ab"} == {0o644}
    (project / "a").chmod(0o600)
    ws.revert("./a")
    assert [(project / n).stat().st_mode & 0o777 for n in "ab"] == [0o644, 0o600], "only the path that was named"


@pytest.mark.parametrize("above", ["", "deep/"])
def test_a_folder_that_became_a_link_to_itself_elsewhere_is_a_link(looking: Looking, project: Path, above: str):
    """Below it every name still has the key that it had."""
    (project / above / "a/b").mkdir(parents=True)
    (project / above / "a/b/f").write_text("1")
    time.sleep(0.05)
    looking.whole()
    looking.whole()
    (project / above / "a").rename(project.parent / "elsewhere")
    (project / above / "a").symlink_to(project.parent / "elsewhere")
    seen = found(looking.whole())
    assert seen[f"{above}a"] == (FOLDER, LINK) and seen[f"{above}a/b/f"] == (FILE, None)
    assert not any(looking.whole().changes)


@pytest.mark.posix_only("paths longer than the system takes")
def test_what_lies_deeper_than_a_path_may_be_long_is_looked_at_too(looking: Looking, project: Path):
    here = os.open(project, os.O_RDONLY)
    for _ in range(20):
        os.mkdir(b"n" * 200, dir_fd=here)
        above, here = here, os.open(b"n" * 200, os.O_RDONLY, dir_fd=here)
        os.close(above)
    with open(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here), "w") as file:
        file.write("1")
    time.sleep(0.05)
    looking.whole()
    assert not found(looking.whole())
    os.utime("f", dir_fd=here)
    with open(os.open("f", os.O_WRONLY | os.O_APPEND, dir_fd=here), "w") as file:
        file.write("2")
    os.close(here)
    assert list(found(looking.whole()).values()) == [(FILE, FILE)]


@pytest.mark.posix_only("hard links")
def test_a_link_that_went_with_a_folder_above_it_is_no_name_of_the_file_any_more(looking: Looking, project: Path):
    (project / "a/deep").mkdir(parents=True)
    (project / "a/deep/f").write_text("x")
    for name in ("b", "c"):
        os.link(project / "a/deep/f", project / name)
    looking.whole()
    assert {looking.index.state(p).group for p in (b"a/deep/f", b"b", b"c")} == {b"a/deep/f"}
    shutil.rmtree(project / "a")
    looking.whole()
    assert {looking.index.state(p).group for p in (b"b", b"c")} == {b"b"}
    assert list(looking.index.links.values()) == [(b"b", b"c")]
