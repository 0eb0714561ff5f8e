"""Every odd file of the field notes: restored exactly (type, mode, times, size, content, link target, attributes,
hard-link groups), or named as not covered. None is skipped silently."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import traceback
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from support import age, picture
from takeback.model.effects import text
from takeback.workspace import Workspace

ROOT = os.geteuid() == 0


def put(name: bytes, content: bytes = b"content\n", mode: int = 0o644) -> Callable[[bytes], None]:
    def make(top: bytes) -> None:
        path = top + b"/" + name
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)

    return make


def several(*makers: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def make(top: bytes) -> None:
        for one in makers:
            one(top)

    return make


def linked(top: bytes) -> None:
    put(b"first")(top)
    os.mkdir(top + b"/deep")
    for name in (b"second", b"deep/third"):
        os.link(top + b"/first", top + b"/" + name)


def sparse(top: bytes) -> None:
    size = 10 << 30 if os.environ.get("TAKEBACK_TEST_SLOW") else 192 << 20
    with open(top + b"/sparse", "wb") as file:
        file.write(b"head")
        file.seek(size // 2)
        file.write(b"middle")
        file.truncate(size)


def attributes(top: bytes) -> None:
    put(b"noted")(top)
    os.mkdir(top + b"/folder")
    os.setxattr(top + b"/noted", "user.note", b"a value \0 with a NUL")
    os.setxattr(top + b"/noted", "user.empty", b"")
    os.setxattr(top + b"/folder", "user.note", b"folder")


def acl(top: bytes) -> None:
    entries = ((1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF))
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)
    put(b"listed")(top)
    os.setxattr(top + b"/listed", "system.posix_acl_access", value)


def capabilities(top: bytes) -> None:
    put(b"capable", mode=0o755)(top)
    os.setxattr(top + b"/capable", "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0))


def loops(top: bytes) -> None:
    os.symlink(b"self", top + b"/self")
    os.symlink(b"two", top + b"/one")
    os.symlink(b"one", top + b"/two")
    os.mkdir(top + b"/folder")
    os.symlink(b"..", top + b"/folder/up")


def deep(top: bytes) -> None:
    """Deeper than PATH_MAX: only by folder descriptor can one get there."""
    name = b"d" * 200
    fd = os.open(top, os.O_RDONLY)
    for _ in range(25):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    file = os.open(b"bottom", os.O_WRONLY | os.O_CREAT, 0o640, dir_fd=fd)
    os.write(file, b"deep down\n")
    os.close(file)
    os.close(fd)


def times(top: bytes) -> None:
    for name, when in ((b"before 1970", -5_000_000_001), (b"after 2242", (1 << 33) * 1_000_000_000 + 7), (b"epoch", 0)):
        put(name)(top)
        os.utime(top + b"/" + name, ns=(when, when))


def kinds(top: bytes) -> None:
    """A folder that becomes a file, a file that becomes a folder."""
    os.mkdir(top + b"/folder")
    put(b"folder/inside")(top)
    put(b"file")(top)


def swap_kinds(top: bytes) -> None:
    os.unlink(top + b"/folder/inside")
    os.rmdir(top + b"/folder")
    put(b"folder", b"now a file\n")(top)
    os.unlink(top + b"/file")
    os.mkdir(top + b"/file")
    put(b"file/inside", b"now a folder\n")(top)


def remove_all(top: bytes) -> None:
    _empty(os.open(top, os.O_RDONLY))


def _empty(fd: int) -> None:
    try:
        for name in os.listdir(fd):
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                _empty(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd))
                os.rmdir(name, dir_fd=fd)
            else:
                os.unlink(name, dir_fd=fd)
    finally:
        os.close(fd)


NFC, NFD = (unicodedata.normalize(form, "café").encode() for form in ("NFC", "NFD"))
needs_attributes = pytest.mark.posix_only("extended attributes")
needs_descriptors = pytest.mark.posix_only("paths longer than PATH_MAX")

EXACT = [
    pytest.param(put(b"caf\xe9 \xff"), id="a name that is no UTF-8"),
    pytest.param(put(b"two\nlines"), id="a newline in the name"),
    pytest.param(put(b"\x1b[31mred\x07"), id="terminal control characters in the name"),
    pytest.param(put(b"n" * 255), id="a name of 255 bytes"),
    pytest.param(several(put(NFC, b"composed"), put(NFD, b"decomposed")), id="NFC and NFD twins"),
    pytest.param(several(put(b"Foo", b"upper"), put(b"foo", b"lower")), id="names that differ in case"),
    pytest.param(
        several(put(b"-rf"), put(b":(glob)"), put(b" "), put(b"*"), put(b"\\")), id="names that look like options"
    ),
    pytest.param(put(b"empty", b""), id="an empty file"),
    pytest.param(put(b"nothing", b"x", 0), id="mode 000"),
    pytest.param(put(b"setuid", mode=0o6755), id="setuid and setgid"),
    pytest.param(linked, id="hard links"),
    pytest.param(sparse, id="a sparse file"),
    pytest.param(attributes, id="extended attributes", marks=needs_attributes),
    pytest.param(acl, id="an ACL", marks=needs_attributes),
    pytest.param(
        capabilities, id="capabilities", marks=[needs_attributes, pytest.mark.skipif(not ROOT, reason="root only")]
    ),
    pytest.param(loops, id="symlink loops"),
    pytest.param(deep, id="deeper than PATH_MAX", marks=needs_descriptors),
    pytest.param(times, id="times before 1970 and after 2242"),
    pytest.param(put(b".takeback-" + b"k" * 32 + b"-0"), id="a name like one of our own"),
    pytest.param(put(b"\xef\xbb\xbfbom.txt", b"\xef\xbb\xbf\r\n\0\r\n"), id="BOM, CRLF and NUL bytes"),
]


@pytest.mark.parametrize("make", EXACT)
@pytest.mark.parametrize("harm", ["deleted", "overwritten", "since created"])
def test_odd_files_are_restored_exactly(ws: Workspace, project: Path, make, harm: str):
    top = os.fsencode(project)
    if harm == "since created":
        ws.checkpoint("without")
        before = picture(project)
        make(top)
        try:
            made = picture(project)
            assert not ws.checkpoint("with").partial
            outcome = ws.rollback("without")
            assert outcome.whole, [r for r in outcome.results if r.result != "done"]
            assert picture(project) == before
            ws.redo()
            assert _without_folder_times(picture(project)) == _without_folder_times(made)
        finally:
            _empty(os.open(top, os.O_RDONLY))
        return
    make(top)
    if make not in (times, deep):
        age(project)
    try:
        before = picture(project)
        assert not ws.checkpoint("before").partial
        remove_all(top) if harm == "deleted" else _overwrite(os.open(top, os.O_RDONLY))
        outcome = ws.rollback()
        assert outcome.whole, [r for r in outcome.results if r.result != "done"]
        assert picture(project) == before
        assert ws.verify(data=True).ok
        if make is sparse:
            assert os.stat(top + b"/sparse").st_blocks * 512 < 1 << 20, "a sparse file was inflated"
            assert ws.store.size() < 2 << 20
    finally:
        _empty(os.open(top, os.O_RDONLY))


def _without_folder_times(found: dict) -> dict:
    return {p: v[:5] + v[6:] if stat.S_ISDIR(v[0]) else v for p, v in found.items()}


def _overwrite(fd: int) -> None:
    """Every file gets other bytes and another mode, every link another target."""
    try:
        for name in os.listdir(fd):
            mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                _overwrite(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd))
            else:
                os.unlink(name, dir_fd=fd)
                file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=fd)
                os.write(file, b"overwritten\n")
                os.close(file)
    finally:
        os.close(fd)


def test_a_folder_becomes_a_file_and_back(ws: Workspace, project: Path):
    top = os.fsencode(project)
    kinds(top)
    age(project)
    ws.checkpoint("before")
    before = picture(project)
    swap_kinds(top)
    swapped = picture(project)
    assert ws.rollback().whole
    assert picture(project) == before
    assert ws.redo().whole
    assert _without_folder_times(picture(project)) == _without_folder_times(swapped)
    assert ws.rollback().whole
    assert picture(project) == before


@pytest.mark.parametrize("a", ["file", "link", "folder", "full folder"])
@pytest.mark.parametrize("b", ["file", "link", "folder", "full folder"])
def test_any_kind_becomes_any_other_and_back(ws: Workspace, project: Path, a: str, b: str):
    def make(kind: str, content: str) -> None:
        path = project / "thing"
        if kind == "file":
            path.write_text(content)
        elif kind == "link":
            path.symlink_to(content)
        else:
            path.mkdir()
            path.chmod(0o750 if content == "a" else 0o700)
            if kind == "full folder":
                (path / "inside").write_text(content)

    make(a, "a")
    age(project)
    ws.checkpoint("before")
    before = picture(project)
    path = project / "thing"
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    make(b, "b")
    after = picture(project)
    assert ws.rollback().whole
    assert picture(project) == before
    ws.redo()
    assert _without_folder_times(picture(project)) == _without_folder_times(after)


# -- not covered, and named ----------------------------------------------------


def fifo(top: bytes) -> None:
    os.mkfifo(top + b"/odd")


def device(top: bytes) -> None:
    os.mknod(top + b"/odd", 0o600 | stat.S_IFCHR, os.makedev(1, 3))


def sock(top: bytes) -> None:
    here = os.getcwd()
    os.chdir(top)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("odd")
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (fifo, "fifo"),
        (sock, "socket"),
        pytest.param(device, "device", marks=pytest.mark.skipif(not ROOT, reason="root only")),
    ],
)
def test_special_files_are_named_never_opened_and_never_removed(ws: Workspace, project: Path, make, why: str):
    make(os.fsencode(project))
    was = os.lstat(project / "odd")
    (project / "f").write_text("1\n")
    assert not ws.checkpoint("before").partial, "a rule of ours does not make it partial"
    assert ("odd", why) in ws.status().uncovered
    (project / "f").write_text("2\n")
    ws.rollback("start", everything=True)
    now = os.lstat(project / "odd")
    assert (now.st_ino, now.st_mode, now.st_ctime_ns) == (was.st_ino, was.st_mode, was.st_ctime_ns)


def test_a_file_replaced_by_a_fifo_is_named_and_the_fifo_is_not_touched(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").unlink()
    os.mkfifo(project / "f")
    outcome = ws.rollback(everything=True)
    assert [(text(r.path), r.verdict, r.result) for r in outcome.results] == [("f", "uncovered", "kept")]
    assert (project / "f").is_fifo()
    (project / "f").unlink()
    ws.restore("before", "f")
    assert (project / "f").read_text() == "1\n"


@pytest.mark.skipif(not ROOT, reason="only root makes files immutable")
def test_an_immutable_file_is_captured_and_named_where_it_cannot_be_taken_back(ws: Workspace, project: Path):
    ws.checkpoint("before")
    stuck, free = project / "stuck", project / "free"
    stuck.write_text("1\n")
    free.write_text("1\n")
    if subprocess.run(["chattr", "+i", stuck], capture_output=True).returncode:
        pytest.skip("no chattr on this file system")
    try:
        assert not ws.checkpoint("with").partial
        outcome = ws.rollback("before")
        assert {text(r.path): r.result for r in outcome.results} == {"stuck": "failed", "free": "done"}
        assert stuck.read_text() == "1\n" and not free.exists()
    finally:
        subprocess.run(["chattr", "-i", stuck], check=True)
    assert ws.rollback("before").whole
    assert not stuck.exists()
    assert sorted(p.name for p in project.iterdir()) == []


@pytest.mark.skipif(not ROOT, reason="only root mounts")
def test_a_bind_mount_is_named_and_not_entered(ws: Workspace, project: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("outside\n")
    (project / "mounted").mkdir()
    if subprocess.run(["mount", "--bind", other, project / "mounted"], capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        (project / "f").write_text("1\n")
        ws.checkpoint("before")
        assert any(path == "mounted" and "file system" in why for path, why in ws.status().uncovered)
        (project / "f").write_text("2\n")
        (other / "precious").write_text("outside, changed\n")
        ws.rollback("start", everything=True)
        assert (other / "precious").read_text() == "outside, changed\n"
    finally:
        subprocess.run(["umount", project / "mounted"], check=True)


def test_a_hard_link_that_leaves_the_root_is_broken_and_named(ws: Workspace, project: Path, tmp_path: Path):
    (tmp_path / "outside").write_text("1\n")
    os.link(tmp_path / "outside", project / "inside")
    ws.checkpoint("before")
    (project / "inside").write_text("2\n")
    plan = ws.plan("rollback")
    assert "hard link" in plan.steps[0].note
    ws.apply(plan)
    assert (project / "inside").read_text() == "1\n"
    assert (tmp_path / "outside").read_text() == "2\n", "nothing outside is written"


# -- changing while it is read ---------------------------------------------------


def test_a_file_that_changes_while_it_is_read_is_a_real_version_or_flagged(ws: Workspace, project: Path):
    file = project / "busy"
    versions = [bytes([65 + n]) * (100_000 + n) for n in range(8)]
    file.write_bytes(versions[0])
    stop = threading.Event()

    def churn() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            with open(file, "r+b") as out:
                out.truncate(0)
                out.write(versions[n % 8])

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        found = [ws.checkpoint(f"c{n}") for n in range(12)]
    finally:
        stop.set()
        writer.join()
    for checkpoint in found:
        if checkpoint.partial:
            assert [p for p, _ in checkpoint.partial] == ["busy"]
            continue
        out = project.parent / checkpoint.label
        ws.restore(checkpoint.label, "busy", to=out)
        data = (out / "busy").read_bytes()
        # Truncated and rewritten in place: what a reader sees whole is a prefix of one version.
        assert any(version.startswith(data) for version in versions), "a mixture was captured"


def test_a_file_that_never_holds_still_is_flagged(ws: Workspace, project: Path, monkeypatch):
    from takeback.look import read_path

    (project / "busy").write_text("0")
    real, count = os.fstat, [0]

    def moving(fd):
        count[0] += 1
        with open(project / "busy", "a") as file:
            file.write("x")
        return real(fd)

    monkeypatch.setattr(read_path.os, "fstat", moving)
    found = ws.checkpoint("mark")
    monkeypatch.undo()
    assert [(p, why) for p, why in found.partial] == [("busy", "kept changing while it was read")]


def test_racy_timestamps_a_change_that_keeps_size_and_mtime_is_seen(ws: Workspace, project: Path):
    file = project / "f"
    for n in range(40):
        file.write_text(f"{n:04}")
        os.utime(file, ns=(1_000_000_000, 1_000_000_000))
        ws.checkpoint(f"c{n}")
    for n in (0, 7, 23, 39):
        ws.restore(f"c{n}", "f")
        assert file.read_text() == f"{n:04}"


def test_racy_timestamps_after_a_rollback(ws: Workspace, project: Path):
    file = project / "f"
    file.write_text("aaaa")
    os.utime(file, ns=(1_000_000_000, 1_000_000_000))
    ws.checkpoint("a")
    for _ in range(10):
        file.write_text("bbbb")
        os.utime(file, ns=(1_000_000_000, 1_000_000_000))
        assert ws.rollback("a").counts["done"] == 1
        assert file.read_text() == "aaaa"


# -- as somebody who may not read everything ---------------------------------------


def as_nobody(work: Callable[[Path], object]) -> object:
    """Runs `work` in a child that has dropped root, in folders of its own; returns what it returned."""
    import takeback.care.prune
    import takeback.care.verify

    with takeback.open(tempfile.mkdtemp(), store="memory") as warm:  # loads what is loaded late
        (warm.root / "f").write_text("x" * 500)
        warm.checkpoint("x")
        warm.status()
        warm.log("actor:x")
        shutil.rmtree(warm.root)
    folder = Path(tempfile.mkdtemp(prefix="takeback-nobody-"))
    account = pwd.getpwuid(65534)
    os.chown(folder, account.pw_uid, account.pw_gid)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            os.environ.update(
                HOME=str(folder / "home"),
                TAKEBACK_HOME=str(folder / "home/takeback"),
                XDG_CONFIG_HOME=str(folder / "home/config"),
            )
            (folder / "project").mkdir()
            os.chdir(folder)
            answer = {"ok": work(folder / "project")}
        except BaseException:
            answer = {"failed": traceback.format_exc()}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = json.loads(pipe.read() or b'{"failed": "the child died"}')
    os.waitpid(pid, 0)
    shutil.rmtree(folder)
    assert "failed" not in answer, answer["failed"]
    return answer["ok"]


only_root = pytest.mark.skipif(not ROOT, reason="drops root, so it needs it")


@only_root
def test_15_an_unreadable_file_is_named_the_rest_is_captured_and_it_heals():
    def work(project: Path) -> object:
        (project / "open").write_text("1\n")
        (project / "closed").write_text("1\n")
        with takeback.open(project, create=True) as ws:
            (project / "open").write_text("2\n")
            (project / "closed").write_text("2\n")
            (project / "closed").chmod(0)
            partial = ws.checkpoint("partial").partial
            named = ws.status().lacking
            (project / "closed").chmod(0o600)
            whole = ws.checkpoint("whole").partial
            outcome = ws.rollback("start", everything=True)
            results = {text(r.path): r.result for r in outcome.results}
            return [partial, named, whole, results, (project / "open").read_text(), (project / "closed").read_text()]

    partial, named, whole, results, opened, closed = as_nobody(work)
    assert partial == [["closed", "cannot be read: Permission denied"]] == named
    assert whole == [] and opened == "1\n"
    assert (results["closed"], closed) == ("done", "1\n")


@only_root
def test_a_folder_that_cannot_be_entered_is_named_and_nothing_in_it_counts_as_deleted():
    def work(project: Path) -> object:
        (project / "d/e").mkdir(parents=True)
        (project / "d/f").write_text("1\n")
        (project / "d/e/g").write_text("1\n")
        with takeback.open(project, create=True) as ws:
            (project / "d").chmod(0)
            partial = ws.checkpoint("closed").partial
            changed = [c.path for c in ws.status().changes]
            (project / "d").chmod(0o755)
            whole = ws.checkpoint("open").partial
            changed += [c.path for c in ws.status().changes]
            undone = ws.undo()  # of the modes
            (project / "d").chmod(0o755)
            there = (project / "d/f").read_text() + (project / "d/e/g").read_text()
            return [
                partial,
                changed,
                whole,
                [text(r.path) for r in undone.results if r.result != "kept" and text(r.path) != "d"],
                there,
            ]

    partial, changed, whole, undone, there = as_nobody(work)
    assert partial and all(path.startswith("d") for path, _ in partial)
    assert [c for c in changed if c != "d"] == [] and whole == [] and undone == []
    assert there == "1\n1\n"


@only_root
def test_mode_000_of_ones_own_file_comes_back_exactly():
    def work(project: Path) -> object:
        (project / "f").write_text("1\n")
        with takeback.open(project, create=True) as ws:
            (project / "f").chmod(0o400)
            ws.checkpoint("locked")
            (project / "f").unlink()
            whole = ws.rollback().whole
            return [whole, (project / "f").stat().st_mode & 0o7777, (project / "f").read_text()]

    assert as_nobody(work) == [True, 0o400, "1\n"]


@only_root
def test_a_folder_that_cannot_be_written_fails_by_name_and_leaves_nothing_half_done():
    def work(project: Path) -> object:
        (project / "d").mkdir()
        (project / "d/f").write_text("1\n")
        (project / "g").write_text("1\n")
        with takeback.open(project, create=True) as ws:
            (project / "d/f").write_text("2\n")
            (project / "g").write_text("2\n")
            ws.checkpoint(actor="claude")
            (project / "d").chmod(0o555)
            outcome = ws.undo()
            results = {text(r.path): r.result for r in outcome.results}
            (project / "d").chmod(0o755)
            strays = [p.name for p in (project / "d").iterdir()]
            ws.undo()
            return [results, strays, (project / "d/f").read_text(), (project / "g").read_text()]

    results, strays, f, g = as_nobody(work)
    assert results == {"d/f": "failed", "g": "done"}
    assert strays == ["f"] and g == "1\n" and f == "1\n"
