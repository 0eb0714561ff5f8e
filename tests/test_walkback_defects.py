"""Each defect of the seed system's file engine, as seen in its code or by running it: one test that it is not ours."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import takeback
from support import age, picture, set_clock
from takeback.model.effects import text
from takeback.workspace import Workspace


def test_a_checkpoint_alone_captures_so_that_an_edit_can_be_rolled_back(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("mark")
    (project / "f").write_text("2\n")
    outcome = ws.rollback()
    assert outcome.counts["done"] == 1
    assert (project / "f").read_text() == "1\n"


def test_a_fifo_does_not_hang_the_checkpoint(ws: Workspace, project: Path):
    os.mkfifo(project / "pipe")
    (project / "f").write_text("1\n")
    script = "import sys, takeback\nprint(takeback.open(sys.argv[1]).checkpoint('mark').partial)\n"
    done = subprocess.run([sys.executable, "-c", script, str(project)], capture_output=True, text=True, timeout=20)
    assert done.stdout == "()\n"
    assert ("pipe", "fifo") in ws.status().uncovered


def test_a_fifo_swapped_in_while_the_tree_is_read_does_not_hang_it(ws: Workspace, project: Path, monkeypatch):
    from takeback.look.read_path import Reader

    (project / "f").write_text("1\n")
    read = Reader.read_file

    def swap(self, here, name, *known):
        if name == b"f" and (project / "f").is_file():
            (project / "f").unlink()
            os.mkfifo(project / "f")
        return read(self, here, name, *known)

    monkeypatch.setattr(Reader, "read_file", swap)
    found = ws.checkpoint("mark")
    assert [path for path, _ in found.partial] == ["f"]


def test_a_socket_does_not_make_the_checkpoint_fail(ws: Workspace, project: Path):
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(project)
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
        (project / "f").write_text("1\n")
        assert ws.checkpoint("mark").partial == ()
        assert ("sock", "socket") in ws.status().uncovered
        (project / "f").write_text("2\n")
        ws.rollback(everything=True)
        assert (project / "f").read_text() == "1\n"
        assert (project / "sock").is_socket()


def test_a_name_that_is_no_utf8_does_not_abort_half_way(ws: Workspace, project: Path):
    path = os.fsencode(project) + b"/caf\xe9"
    with open(path, "wb") as file:
        file.write(b"1\n")
    (project / "z").write_text("1\n")
    ws.checkpoint("mark")
    os.unlink(path)
    (project / "z").unlink()
    assert ws.rollback().whole
    with open(path, "rb") as file:
        assert file.read() == b"1\n"
    assert (project / "z").read_text() == "1\n"


@pytest.mark.parametrize("size", [100, 20_000, 6_000_000])
def test_a_torn_blob_is_never_trusted(ws: Workspace, project: Path, size: int):
    (project / "f").write_bytes(os.urandom(size))
    ws.checkpoint("mark")
    (project / "f").write_text("now\n")
    ws.checkpoint("later")
    store = ws.store.folder
    assert store is not None
    for path in [*store.glob("packs/*.pack"), *store.glob("big/*")]:
        with open(path, "r+b") as file:
            file.truncate(max(0, path.stat().st_size - 50 if path.parent.name == "big" else 60))
    ws.close()
    with takeback.open(project) as again:
        with pytest.raises(takeback.TakebackError):
            outcome = again.rollback("mark")
            assert outcome.counts["done"] == 0
            raise takeback.TakebackError("told by its results")
        assert (project / "f").read_text() == "now\n"
        assert not again.verify().ok


def test_a_secret_is_stored_so_that_others_cannot_read_it(project: Path):
    old = os.umask(0)
    try:
        (project / ".env").write_text("KEY=1\n")
        (project / ".env").chmod(0o600)
        (project / "big").write_bytes(os.urandom(5_000_000))
        with takeback.open(project, create=True) as ws:
            (project / ".env").write_text("KEY=2\n")
            ws.checkpoint("two")
            ws.rollback("start")
            ws.prune(keep=1)
            folder = ws.store.folder
        assert folder is not None
        for path in [folder, *folder.rglob("*")]:
            assert path.lstat().st_mode & 0o077 == 0, path
    finally:
        os.umask(old)


def test_a_path_through_a_symlink_is_refused_and_nothing_outside_is_captured_or_written(
    ws: Workspace, project: Path, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("outside-secret-content\n")
    (project / "link").symlink_to(outside)
    before = picture(outside)
    with pytest.raises(takeback.UsageError, match="link"):
        ws.track(["link/secret"])
    ws.checkpoint("mark")
    with pytest.raises(takeback.TakebackError):
        ws.restore("mark", "link/secret")
    (outside / "secret").write_text("changed outside\n")
    ws.rollback(everything=True)
    assert (outside / "secret").read_text() == "changed outside\n"
    assert all(b"outside-secret-content" not in ws.store.blobs.get(id) for id in ws.store.blobs.ids())
    assert before.keys() == picture(outside).keys()


def test_a_persons_later_edit_is_not_silently_overwritten(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("mark")
    (project / "f").write_text("agent\n")
    ws.checkpoint(actor="claude")
    (project / "f").write_text("person\n")
    outcome = ws.rollback()
    assert (project / "f").read_text() == "person\n"
    assert [(text(r.path), r.result) for r in outcome.results] == [("f", "kept")]
    ws.rollback(force=True)
    assert (project / "f").read_text() == "1\n"
    ws.redo()
    assert (project / "f").read_text() == "person\n"


def test_redo_survives_the_next_checkpoints(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("mark")
    (project / "f").write_text("2\n")
    ws.rollback()
    (project / "other").write_text("1\n")
    ws.checkpoint(actor="claude")
    ws.checkpoint("next")
    ws.track(["f"])
    ws.redo()
    assert (project / "f").read_text() == "2\n"


def test_hard_links_stay_linked(ws: Workspace, project: Path):
    (project / "a").write_text("1\n")
    os.link(project / "a", project / "b")
    os.link(project / "a", project / "c")
    ws.checkpoint("mark")
    (project / "a").write_text("2\n")
    (project / "c").unlink()
    ws.rollback()
    inodes = {(project / n).stat().st_ino for n in "abc"}
    assert len(inodes) == 1 and (project / "b").read_text() == "1\n"


@pytest.mark.posix_only("extended attributes")
def test_xattrs_and_acls_return(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    (project / "d").mkdir()
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *e)
        for e in ((1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF))
    )
    os.setxattr(project / "f", "user.note", b"kept")
    os.setxattr(project / "d", "user.folder", b"kept too")
    try:
        os.setxattr(project / "f", "system.posix_acl_access", acl)
        os.setxattr(project / "d", "system.posix_acl_default", acl)
    except OSError as error:
        pytest.skip(f"no ACLs on this file system: {error}")
    ws.checkpoint("mark")
    before = picture(project, times=False)
    (project / "f").unlink()
    (project / "d").rmdir()
    assert ws.rollback().whole
    assert picture(project, times=False) == before
    os.setxattr(project / "f", "user.note", b"changed")
    os.removexattr(project / "d", "user.folder")
    assert ws.rollback().whole
    assert picture(project, times=False) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_returns_where_permitted(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    (project / "d").mkdir()
    for name in ("f", "d"):
        os.chown(project / name, 1234, 4321)
    ws.checkpoint("mark")
    (project / "f").unlink()
    (project / "d").rmdir()
    ws.rollback()
    for name in ("f", "d"):
        st = (project / name).stat()
        assert (st.st_uid, st.st_gid) == (1234, 4321), name


def test_folder_times_return(ws: Workspace, project: Path):
    (project / "d/e").mkdir(parents=True)
    (project / "d/e/f").write_text("1\n")
    age(project)
    ws.checkpoint("mark")
    before = picture(project)
    (project / "d/e/g").write_text("new\n")
    (project / "d/e/f").unlink()
    (project / "d/h").mkdir()
    ws.rollback()
    assert picture(project) == before


def test_a_second_plain_rollback_says_that_there_is_nothing(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("mark")
    (project / "f").write_text("2\n")
    assert ws.rollback().id
    entries = len(ws.log())
    again = ws.rollback()
    assert (again.id, again.results, again.plan.steps) == ("", (), ())
    assert len(ws.log()) == entries


def test_a_rollback_does_not_rewrite_what_did_not_change(ws: Workspace, project: Path):
    for n in range(50):
        (project / f"f{n}").write_text("1\n")
    ws.checkpoint("mark")
    before = {p.name: (p.stat().st_ino, p.stat().st_ctime_ns) for p in project.iterdir()}
    (project / "f7").write_text("2\n")
    ws.rollback()
    after = {p.name: (p.stat().st_ino, p.stat().st_ctime_ns) for p in project.iterdir()}
    assert {n for n in before if before[n] != after[n]} == {"f7"}


def test_the_store_has_a_budget_and_prunes_itself(project: Path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_CHECKPOINTS_KEEP", "3")
    with takeback.open(project, create=True) as ws:
        days = [0.0]
        now = time.time()
        set_clock(ws, lambda: now + days[0] * 86400)
        for n in range(10):
            days[0] += 2
            (project / "f").write_bytes(os.urandom(1_000_000))
            ws.checkpoint(f"c{n}")
        assert [c.label for c in ws.history().checkpoints] == ["c7", "c8", "c9"]
        assert ws.store.size() < 5_000_000
        assert ws.verify(data=True).ok


def test_nothing_young_is_pruned_by_itself(project: Path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_CHECKPOINTS_KEEP", "3")
    with takeback.open(project, create=True) as ws:
        for n in range(6):
            (project / "f").write_text(f"{n}\n")
            ws.checkpoint(f"c{n}")
        assert len(ws.history().checkpoints) == 7
