"""The twenty scenarios of the field notes, one test each: what shadow-git designs get wrong.

17 (git commits) and the conversation of 16 come with the git and state domains. 14 (SIGKILL at every call) is swept
by the crash tests; here is the story of it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import takeback
from support import age, picture
from takeback.model.effects import text
from takeback.workspace import Workspace


def shell(project: Path, script: str, **env: str) -> None:
    subprocess.run(["sh", "-c", script], cwd=project, check=True, env={**os.environ, **env}, capture_output=True)


def kept(outcome) -> set[str]:
    return {text(r.path) for r in outcome.results if r.result == "kept"} | {text(p) for p in outcome.left}


def done(outcome) -> set[str]:
    return {text(r.path) for r in outcome.results if r.result == "done"}


def test_01_sed_rm_and_mv_in_a_shell_are_undone_byte_exact(ws: Workspace, project: Path):
    (project / "src").mkdir()
    (project / "src/auth.py").write_bytes(b"def login():\r\n    return 1\n")
    (project / "old.txt").write_bytes(os.urandom(5000))
    (project / "name.txt").write_text("to be renamed\n")
    age(project)
    ws.checkpoint("before")
    before = picture(project)
    shell(project, "sed -i s/login/logout/ src/auth.py; rm old.txt; mv name.txt renamed.txt")
    ws.checkpoint(actor="claude")
    outcome = ws.undo()
    assert picture(project) == before
    assert done(outcome) == {"src/auth.py", "old.txt", "name.txt", "renamed.txt"}


def test_02_a_person_edited_the_file_after_the_agent_undo_keeps_and_names_it(ws: Workspace, project: Path):
    (project / "F").write_text("one\ntwo\nthree\nfour\nfive\n")
    (project / "G").write_text("g\n")
    ws.checkpoint("before")
    (project / "F").write_text("ONE\ntwo\nthree\nfour\nfive\n")
    (project / "G").write_text("agent\n")
    ws.checkpoint(actor="claude")
    (project / "F").write_text("ONE\ntwo\nthree\nfour\nFIVE\n")
    outcome = ws.undo()
    assert (project / "F").read_text() == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert (project / "G").read_text() == "g\n"
    assert kept(outcome) == {"F"}
    (step,) = outcome.plan.kept
    assert step.verdict == "drifted" and step.merges and "you" in step.note


def test_02b_or_it_merges_cleanly_when_asked(ws: Workspace, project: Path):
    (project / "F").write_text("one\ntwo\nthree\nfour\nfive\n")
    ws.checkpoint("before")
    (project / "F").write_text("ONE\ntwo\nthree\nfour\nfive\n")
    ws.checkpoint(actor="claude")
    (project / "F").write_text("ONE\ntwo\nthree\nfour\nFIVE\n")
    ws.undo(merge=True)
    assert (project / "F").read_text() == "one\ntwo\nthree\nfour\nFIVE\n"


def test_03_undoing_one_of_two_interleaved_agents_leaves_the_others_files_alone(ws: Workspace, project: Path):
    for name in ("a1", "b1", "a2", "b2"):
        (project / name).write_text("start\n")
    ws.checkpoint("before")
    for actor, name in (("A", "a1"), ("B", "b1"), ("A", "a2"), ("B", "b2")):
        (project / name).write_text(f"by {actor}\n")
        ws.track([name], actor=actor)
    outcome = ws.undo(actors=["A"])
    assert {n: (project / n).read_text() for n in ("a1", "a2", "b1", "b2")} == {
        "a1": "start\n", "a2": "start\n", "b1": "by B\n", "b2": "by B\n"
    }  # fmt: skip
    assert done(outcome) == {"a1", "a2"}


def test_04_two_agents_in_different_hunks_of_one_file_merge_takes_only_one_hunk(ws: Workspace, project: Path):
    lines = [f"line {n}\n" for n in range(20)]
    file = project / "shared.py"
    file.write_text("".join(lines))
    ws.checkpoint("before")
    a = [*lines]
    a[2] = "A was here\n"
    file.write_text("".join(a))
    ws.track(["shared.py"], actor="A")
    both = [*a]
    both[15] = "B was here\n"
    file.write_text("".join(both))
    ws.track(["shared.py"], actor="B")
    plan = ws.plan("undo", actors=["A"])
    assert [(s.verdict, s.merges) for s in plan.steps] == [("drifted", True)], "the prompt can offer the merge"
    assert kept(ws.apply(plan)) == {"shared.py"}
    assert file.read_text() == "".join(both)
    ws.revert(ws.log("actor:A kind:effect")[0].id, merge=True)
    only_b = [*lines]
    only_b[15] = "B was here\n"
    assert file.read_text() == "".join(only_b)


def test_05_output_of_another_process_is_not_deleted_unless_the_plan_names_it_with_a_stored_copy(
    ws: Workspace, project: Path
):
    (project / "code").write_text("1\n")
    ws.checkpoint("before")
    (project / "code").write_text("2\n")
    ws.checkpoint(actor="claude")
    (project / "out").mkdir()
    (project / "out/result.bin").write_bytes(b"hours of work")
    outcome = ws.rollback()
    assert (project / "out/result.bin").read_bytes() == b"hours of work"
    assert {"out", "out/result.bin"} <= kept(outcome)
    plan = ws.plan("rollback", everything=True)
    assert {text(s.path) for s in plan.taken} >= {"out", "out/result.bin"}, "only by a plan that names it"
    ws.apply(plan)
    assert not (project / "out").exists()
    ws.redo()
    assert (project / "out/result.bin").read_bytes() == b"hours of work"


def test_06_a_deleted_gitignored_env_returns_with_its_mode_and_the_store_is_private(ws: Workspace, project: Path):
    (project / ".gitignore").write_text(".env\n")
    (project / ".env").write_text("KEY=secret-value\n")
    (project / ".env").chmod(0o600)
    old = os.umask(0)
    try:
        ws.checkpoint("before")
        (project / ".env").unlink()
        ws.checkpoint(actor="claude")
        ws.undo()
    finally:
        os.umask(old)
    assert (project / ".env").read_text() == "KEY=secret-value\n"
    assert (project / ".env").stat().st_mode & 0o7777 == 0o600
    store = ws.store.folder
    assert store is not None
    for path in [store.parent, store, *store.rglob("*")]:
        assert path.lstat().st_mode & 0o077 == 0, f"{path} can be read by others"


def test_07_nested_repositories_revert_inside_and_no_git_folder_is_touched(ws: Workspace, project: Path):
    for repo in ("nested", "sub", "empty"):
        (project / repo / ".git" / "refs").mkdir(parents=True)
        (project / repo / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (project / "sub/.git/refs").rmdir()
    (project / "sub/.git/HEAD").unlink()
    (project / "sub/.git").rmdir()
    (project / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    (project / "nested/file").write_text("1\n")
    (project / "sub/file").write_text("1\n")
    age(project)
    gits = {p: p.lstat() for p in project.rglob(".git*")} | {p: p.lstat() for p in project.rglob("HEAD")}
    ws.checkpoint("before")
    before = picture(project)
    (project / "nested/file").write_text("2\n")
    (project / "sub/file").unlink()
    (project / "empty/new").write_text("x\n")
    ws.rollback()
    assert picture(project) == before
    for path, was in gits.items():
        now = path.lstat()
        assert (now.st_ino, now.st_ctime_ns, now.st_mtime_ns) == (was.st_ino, was.st_ctime_ns, was.st_mtime_ns), path
    assert (b"nested/.git" in [p for p, _ in ws.observer.known().uncovered()]) and ws.status().uncovered


def test_08_gitattributes_filters_change_nothing_and_no_process_is_spawned(
    ws: Workspace, project: Path, tmp_path: Path
):
    (project / ".gitattributes").write_text("* text=auto eol=lf\n*.bin filter=lfs diff=lfs\n*.x filter=evil\n")
    (project / ".git").mkdir()
    (project / ".git/config").write_text(
        f'[filter "evil"]\n clean = touch {tmp_path}/ran\n smudge = touch {tmp_path}/ran\n'
    )
    contents = {"crlf.txt": b"a\r\nb\r\n", "model.bin": os.urandom(300), "code.x": b"x\r\n\0"}
    for name, data in contents.items():
        (project / name).write_bytes(data)
    spawned = []
    watching = True

    def watch(event: str, args: tuple) -> None:
        if watching and event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
            spawned.append(args)

    sys.addaudithook(watch)
    ws.checkpoint("before")
    for name in contents:
        (project / name).write_bytes(b"changed\n")
    ws.rollback()
    watching = False
    for name, data in contents.items():
        assert hashlib.sha256((project / name).read_bytes()).digest() == hashlib.sha256(data).digest()
    assert not spawned and not (tmp_path / "ran").exists()


def test_09_odd_entries_have_the_same_lstat_or_are_named(ws: Workspace, project: Path):
    top = os.fsencode(project)
    os.mkdir(top + b"/empty", 0o711)
    os.symlink(b"/nowhere/at/all", top + b"/dangling")
    os.symlink(b"/etc/passwd", top + b"/external")
    for name in (b"run.sh", b":colon", b"-rf", b"\xff\xfe", b"new\nline", b"esc\x1b[31m"):
        with open(top + b"/" + name, "wb") as file:
            file.write(name)
    os.chmod(top + b"/run.sh", 0o4755)
    os.link(top + b"/-rf", top + b"/hard")
    os.mkfifo(top + b"/pipe")
    age(project)
    before = picture(project, skip=(b"pipe",))
    found = ws.checkpoint("before")
    assert not found.partial
    assert ("pipe", "fifo") in ws.status().uncovered
    for name in os.listdir(top):
        path = top + b"/" + name
        if name != b"pipe":
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    outcome = ws.rollback()
    assert outcome.whole
    assert picture(project, skip=(b"pipe",)) == before
    assert os.path.exists(top + b"/pipe")


def test_10_a_symlink_to_outside_replaced_by_a_folder_nothing_outside_changes(
    ws: Workspace, project: Path, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine\n")
    age(outside)
    (project / "data").symlink_to(outside)
    ws.checkpoint("before")
    was = picture(outside)
    (project / "data").unlink()
    (project / "data").mkdir()
    (project / "data/precious").write_text("agent's\n")
    (project / "data/more").write_text("agent's\n")
    ws.checkpoint(actor="claude")
    ws.rollback()
    assert os.readlink(project / "data") == str(outside)
    assert picture(outside) == was
    ws.redo()
    assert (project / "data/precious").read_text() == "agent's\n"
    assert picture(outside) == was


@pytest.mark.parametrize("path", ["../../x", "/etc/passwd", "a/../../x", "a\0b", "..", "sub/../../project2/x"])
def test_11_restore_of_a_path_that_leads_outside_is_refused(ws: Workspace, project: Path, path: str):
    (project / "a").write_text("1\n")
    ws.checkpoint("before")
    before = picture(project.parent, skip=(b"own-home",))
    for act in (lambda: ws.restore("before", path), lambda: ws.track([path]), lambda: ws.diff(paths=[path])):
        with pytest.raises(takeback.UsageError):
            act()
    assert picture(project.parent, skip=(b"own-home",)) == before


@pytest.mark.posix_only("a racer who swaps a parent between check and step")
def test_11b_a_parent_swapped_for_a_symlink_in_mid_restore_writes_nothing_outside(
    ws: Workspace, project: Path, tmp_path: Path, monkeypatch
):
    from takeback.domains.files import Files

    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "d").mkdir()
    for n in range(3):
        (project / f"d/{n}").write_text("1\n")
    ws.checkpoint("before")
    for n in range(3):
        (project / f"d/{n}").write_text("2\n")
    place = Files._place

    def swap_first(self, step, here, name, number):
        place(self, step, here, name, number)
        if name == b"0":
            self._leave()
            (project / "d").rename(project / "moved")
            (project / "d").symlink_to(outside)

    monkeypatch.setattr(Files, "_place", swap_first)
    outcome = ws.rollback()
    assert not outcome.whole
    assert list(outside.iterdir()) == []
    assert (project / "moved/1").read_text() == "2\n"


def test_12_past_its_deadline_it_degrades_to_what_is_named_and_says_so(ws: Workspace, project: Path):
    for n in range(20):
        (project / f"d{n}").mkdir()
        (project / f"d{n}/f").write_text("1\n")
    found = ws.checkpoint("late", deadline=0.0)
    assert found.partial and any("deadline" in why for _, why in found.partial)
    tracked = ws.track(["d3/f"])
    assert not tracked.lacking
    (project / "d3/f").write_text("2\n")
    (project / "d4/f").write_text("2\n")
    ws.track(["d3/f"], actor="claude")
    ws.undo()
    assert (project / "d3/f").read_text() == "1\n"
    assert (project / "d4/f").read_text() == "2\n"


def test_12b_what_was_never_looked_at_is_never_deleted(project: Path, monkeypatch):
    (project / "big").mkdir()
    (project / "big/precious").write_text("1\n")
    monkeypatch.setenv("TAKEBACK_CHECKPOINTS_SCAN_DEADLINE", "0.000001")
    with takeback.open(project, create=True) as ws:
        assert ws.history().checkpoints[0].partial
    monkeypatch.delenv("TAKEBACK_CHECKPOINTS_SCAN_DEADLINE")
    with takeback.open(project) as ws:
        ws.checkpoint("whole")
        (project / "new").write_text("1\n")
        ws.rollback("start", everything=True)
        assert (project / "big/precious").read_text() == "1\n"
        assert not (project / "new").exists()


def test_13_a_huge_untracked_file_is_named_and_never_deleted_and_the_store_does_not_grow(project: Path, monkeypatch):
    monkeypatch.setenv("TAKEBACK_CHECKPOINTS_MAX_FILE", "1MB")
    with takeback.open(project, create=True) as ws:
        ws.checkpoint("before")
        (project / "huge.bin").write_bytes(os.urandom(3_000_000))
        (project / "small").write_text("1\n")
        size = ws.store.size()
        for n in range(20):
            (project / "huge.bin").write_bytes(os.urandom(3_000_000 + n))
            ws.checkpoint(actor="claude")
        assert any(path == "huge.bin" and "max_file" in why for path, why in ws.status().uncovered)
        assert ws.store.size() - size < 1_000_000
        ws.rollback("before", everything=True)
        assert (project / "huge.bin").stat().st_size == 3_000_019
        assert not (project / "small").exists()


def test_14_killed_in_mid_rollback_one_command_finishes_it_and_nothing_stray_is_left(ws: Workspace, project: Path):
    for n in range(40):
        (project / f"f{n:02}").write_text("1\n")
    ws.checkpoint("before")
    before = {p: v[:5] for p, v in picture(project).items()}
    for n in range(40):
        (project / f"f{n:02}").write_text("2\n")
    script = (
        "import sys, os, signal, takeback\n"
        "from takeback.domains.files import Files\n"
        "place, count = Files._place, [0]\n"
        "def dying(self, *args):\n"
        "    count[0] += 1\n"
        "    if count[0] == 20: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    place(self, *args)\n"
        "Files._place = dying\n"
        f"takeback.open({str(project)!r}).rollback()\n"
    )
    died = subprocess.run([sys.executable, "-c", script], env=os.environ.copy())
    assert died.returncode == -signal.SIGKILL
    assert ws.interrupted()
    with pytest.raises(takeback.TakebackError, match="interrupted"):
        ws.checkpoint()
    finished = ws.undo()  # finishes the interrupted one and does nothing more
    assert finished.finished_earlier and finished.plan.request.verb == "rollback"
    assert {p: v[:5] for p, v in picture(project).items()} == before
    assert ws.verify(data=True).ok
    ws.redo()
    assert all((project / f"f{n:02}").read_text() == "2\n" for n in range(40))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything; test_odd_files drops root for this")
def test_15_one_unreadable_file_makes_the_checkpoint_partial(ws: Workspace, project: Path):
    (project / "open").write_text("1\n")
    (project / "closed").write_text("1\n")
    ws.checkpoint("whole")
    (project / "closed").write_text("2\n")
    (project / "closed").chmod(0)
    found = ws.checkpoint("partial")
    assert [path for path, _ in found.partial] == ["closed"]


def test_15b_an_unreadable_file_is_named_and_an_older_state_is_never_passed_off_as_current(
    ws: Workspace, project: Path, monkeypatch
):
    from takeback.look.read_path import Reader

    (project / "open").write_text("1\n")
    (project / "closed").write_text("1\n")
    ws.checkpoint("whole")
    (project / "open").write_text("2\n")
    (project / "closed").write_text("2\n")
    read = Reader.read_file

    def refuse(self, here, name, *known):
        if name == b"closed":
            raise PermissionError(13, "Permission denied")
        return read(self, here, name, *known)

    monkeypatch.setattr(Reader, "read_file", refuse)
    found = ws.checkpoint("partial")
    assert [path for path, _ in found.partial] == ["closed"]
    monkeypatch.undo()
    with pytest.raises(takeback.NotFound, match="not covered"):
        ws.restore("partial", "closed")
    assert (project / "closed").read_text() == "2\n"
    ws.rollback("whole", everything=True)
    assert (project / "open").read_text() == "1\n"


def test_16_undo_restart_redo_and_redo_after_new_work_reports_instead_of_clobbering(project: Path):
    with takeback.open(project, create=True) as ws:
        (project / "f").write_text("1\n")
        (project / "g").write_text("1\n")
        ws.checkpoint("before")
        (project / "f").write_text("agent\n")
        (project / "g").write_text("agent\n")
        ws.checkpoint(actor="claude")
        ws.undo()
        assert (project / "f").read_text() == "1\n"
    with takeback.open(project) as ws:
        ws.redo()
        assert (project / "f").read_text() == "agent\n"
        ws.undo()
    with takeback.open(project) as ws:
        (project / "f").write_text("new work\n")
        outcome = ws.redo()
        assert (project / "f").read_text() == "new work\n"
        assert (project / "g").read_text() == "agent\n"
        assert kept(outcome) == {"f"}


def test_18_undo_number_three_and_keep_four_to_six_the_preview_is_the_result(ws: Workspace, project: Path):
    for n in range(1, 7):
        (project / f"f{n}").write_text("start\n")
    ws.checkpoint("before")
    for n in range(1, 7):
        (project / f"f{n}").write_text(f"call {n}\n")
        (project / "log").write_text(f"up to {n}\n")
        ws.checkpoint(actor="claude")
    third = ws.log("kind:effect")[3]
    assert third.paths == ("f3", "log")
    plan = ws.plan("revert", third.id)
    assert {(text(s.path), s.verdict) for s in plan.steps} == {("f3", "exact"), ("log", "drifted")}
    before = {p.name: p.read_text() for p in project.iterdir()}
    outcome = ws.apply(plan)
    after = {p.name: p.read_text() for p in project.iterdir()}
    assert after == {**before, "f3": "start\n"}
    assert done(outcome) == {"f3"} and kept(outcome) == {"log"}


def test_19_hostile_or_missing_git_nothing_of_it_runs(project: Path, tmp_path: Path, monkeypatch):
    evil = tmp_path / "bin"
    evil.mkdir()
    (evil / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (evil / "git").chmod(0o755)
    (project / ".git/hooks").mkdir(parents=True)
    (project / ".git/config").write_text("[core]\n fsmonitor = ./evil\n hooksPath = .\n[commit]\n gpgsign = true\n")
    (project / "evil").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (project / "evil").chmod(0o755)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    for path in (f"{evil}:{os.environ['PATH']}", "/nonexistent"):
        monkeypatch.setenv("PATH", path)
        with takeback.open(project, create=True) as ws:
            (project / "f").write_text("1\n")
            ws.checkpoint("before")
            (project / "f").write_text("2\n")
            ws.rollback()
            assert (project / "f").read_text() == "1\n"
    assert not (tmp_path / "ran").exists()


def test_20_eight_processes_eight_checkpoints_each_all_succeed(ws: Workspace, project: Path):
    for n in range(8):
        (project / f"p{n}").write_text("0\n")
    ws.checkpoint("before")
    script = (
        "import sys, takeback\n"
        "root, n = sys.argv[1:]\n"
        "with takeback.open(root) as ws:\n"
        "    for i in range(8):\n"
        "        open(f'{root}/p{n}', 'w').write(f'{i}\\n')\n"
        "        print(ws.checkpoint(f'{n}-{i}').id, flush=True)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(project), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    acknowledged = [line for process in running for line in process.communicate()[0].split()]
    assert all(process.returncode == 0 for process in running)
    assert len(acknowledged) == 64
    known = {c.id: c for c in ws.history().checkpoints}
    assert set(acknowledged) <= set(known)
    assert ws.verify(data=True).ok
    for n in range(8):
        for i in range(8):
            out = project.parent / f"out-{n}-{i}"
            ws.restore(f"{n}-{i}", f"p{n}", to=out)
            assert (out / f"p{n}").read_text() == f"{i}\n"


def test_20b_restoring_one_file_leaves_every_other_mtime_unchanged(ws: Workspace, project: Path):
    (project / "d").mkdir()
    for n in range(10):
        (project / f"d/f{n}").write_text("1\n")
    age(project)
    ws.checkpoint("before")
    before = picture(project)
    (project / "d/f3").write_text("2\n")
    ws.restore("before", "d/f3")
    after = picture(project)
    assert {p: v for p, v in after.items() if p != b"d"} == {p: v for p, v in before.items() if p != b"d"}


def test_20c_prune_never_drops_the_data_of_a_checkpoint_that_is_listed(ws: Workspace, project: Path):
    contents = {}
    for n in range(12):
        data = os.urandom(50_000)
        (project / "f").write_bytes(data)
        contents[ws.checkpoint(f"c{n}").id] = data
    ws.pin("c1")
    ws.prune(keep=3)
    listed = [r for r in ws.log("kind:checkpoint") if r.label.startswith("c")]
    assert {r.label for r in listed} == {"c1", "c9", "c10", "c11"}
    for row in listed:
        out = project.parent / row.label
        ws.restore(row.id, "f", to=out)
        assert (out / "f").read_bytes() == contents[row.id]
    assert ws.verify(data=True).ok


def test_two_rollbacks_at_once_one_wins_and_the_other_is_told(ws: Workspace, project: Path):
    for n in range(200):
        (project / f"f{n}").write_text("1\n")
    ws.checkpoint("before")
    for n in range(200):
        (project / f"f{n}").write_text("2\n")
    script = (
        "import sys, time, takeback\n"
        "ws = takeback.open(sys.argv[1])\n"
        "while time.time() < float(sys.argv[2]): time.sleep(0.001)\n"
        "outcome = ws.rollback()\n"
        "print(outcome.counts['done'], bool(outcome.id))\n"
    )
    start = str(time.time() + 0.7)
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(project), start], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(process.communicate()[0].strip() for process in running)
    assert said == ["0 False", "200 True"]
    assert all((project / f"f{n}").read_text() == "1\n" for n in range(200))
    assert len([r for r in ws.log("kind:takeback")]) == 1
    assert ws.verify().ok


def test_two_processes_apply_one_plan_the_second_finds_it_stale(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("2\n")
    plan = ws.plan("rollback", save=True)
    script = "import sys, takeback\ntakeback.open(sys.argv[1]).apply(sys.argv[2])\n"
    subprocess.run([sys.executable, "-c", script, str(project), plan.id], check=True)
    with pytest.raises(takeback.Stale):
        ws.apply(plan.id)
    assert (project / "f").read_text() == "1\n"
