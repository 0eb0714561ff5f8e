"""Times come and go with what is taken back; restore changes the kind of a path; what an interruption kept is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from support import PORTABLE, picture
from takeback.look.known_tree import Index
from takeback.look.observer import Observer
from takeback.model.calls import Call, Caller
from takeback.model.effects import PEOPLE, text
from takeback.model.ids import new_id
from takeback.plan.planner import ALREADY
from takeback.workspace import Workspace

OLD, NEW = 1_600_000_000_000_000_001, 1_700_000_000_000_000_002


def touch(path: Path, mtime_ns: int) -> None:
    os.utime(path, ns=(mtime_ns, mtime_ns))


def times(project: Path) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in sorted(project.iterdir())}


def test_a_mere_touch_goes_back_and_forth_with_the_work_around_it(ws: Workspace, project: Path):
    for name in ("edited", "touched"):
        (project / name).write_text("1\n")
        touch(project / name, OLD)
    ws.checkpoint("before")
    before = times(project)
    (project / "edited").write_text("2\n")
    touch(project / "edited", NEW)
    touch(project / "touched", NEW)
    after = times(project)
    ws.rollback()
    assert times(project) == before
    ws.redo()
    assert times(project) == after
    ws.undo()
    assert times(project) == before


def test_a_touch_alone_is_nothing_to_take_back(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    touch(project / "f", NEW)
    assert not ws.rollback().id
    assert ws.status().changes == ()
    assert (project / "f").stat().st_mtime_ns == NEW


def test_a_later_touch_by_somebody_stays(ws: Workspace, project: Path):
    for name in ("edited", "touched"):
        (project / name).write_text("1\n")
    ws.checkpoint("before")
    (project / "edited").write_text("2\n")
    touch(project / "touched", OLD)
    ws.checkpoint(actor="agent")
    touch(project / "touched", NEW)
    ws.undo()
    assert (project / "edited").read_text() == "1\n"
    assert (project / "touched").stat().st_mtime_ns == NEW


@pytest.fixture
def kinds(ws: Workspace, project: Path) -> Workspace:
    """At "before" `file` is a file and `folder` a folder; now it is the other way round."""
    (project / "file").write_text("1\n")
    (project / "folder/deep").mkdir(parents=True)
    (project / "folder/deep/f").write_text("2\n")
    ws.checkpoint("before")
    (project / "file").unlink()
    (project / "file/deep").mkdir(parents=True)
    (project / "file/deep/new").write_text("3\n")
    shutil.rmtree(project / "folder")
    (project / "folder").write_text("4\n")
    return ws


def test_restore_makes_a_file_of_a_folder_and_a_folder_of_a_file(kinds: Workspace, project: Path):
    now = picture(project, times=False)
    plan = kinds.plan("restore", "before", "file", "folder")
    assert {s.path: s.goal is None for s in plan.steps} == {
        b"file": False, b"file/deep": True, b"file/deep/new": True,
        b"folder": False, b"folder/deep": False, b"folder/deep/f": False,
    }  # fmt: skip
    assert kinds.apply(plan).whole
    assert (project / "file").read_text() == "1\n" and (project / "folder/deep/f").read_text() == "2\n"
    kinds.redo()
    assert picture(project, times=False) == now


@pytest.mark.posix_only("fifos")
def test_restore_says_beforehand_that_a_folder_with_uncovered_content_is_kept(kinds: Workspace, project: Path):
    os.mkfifo(project / "file/deep/pipe")
    now = picture(project, times=False, skip=(b"file/deep/pipe",))
    plan = kinds.plan("restore", "before", "file")
    assert [(s.path, s.verdict, s.note) for s in plan.steps] == [
        (b"file", "uncovered", "it holds file/deep/pipe, which is not captured")
    ]
    assert [r.result for r in kinds.apply(plan).results] == ["kept"]
    assert picture(project, times=False, skip=(b"file/deep/pipe",)) == now


def test_restore_says_beforehand_that_there_is_no_folder_for_a_path(kinds: Workspace, project: Path):
    plan = kinds.plan("restore", "before", "folder/deep/f")
    assert [(s.path, s.verdict) for s in plan.steps] == [(b"folder/deep", "drifted"), (b"folder/deep/f", "drifted")]
    assert plan.steps[0].note == "folder is no folder now"
    assert {r.result for r in kinds.apply(plan).results} == {"kept"}
    assert (project / "folder").read_text() == "4\n"


def test_restore_never_writes_into_the_store(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    assert ws.store.folder is not None
    (project / "link").symlink_to(ws.store.folder)
    for inside in (ws.settings.home, ws.store.folder, ws.store.folder / "packs/new", project / "link/new"):
        with pytest.raises(takeback.UsageError, match="takeback's own store"):
            ws.restore("before", "f", to=inside)
    assert not (ws.store.folder / "packs/new").exists() and not (ws.store.folder / "f").exists()


def test_what_was_kept_before_an_interruption_is_named_after_it(ws: Workspace, project: Path, monkeypatch):
    for name in ("a", "b"):
        (project / name).write_text("1\n")
    ws.checkpoint("before")
    for name in ("a", "b"):
        (project / name).write_text("2\n")
    ws.checkpoint(actor="claude")
    (project / "b").write_text("mine\n")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("takeback.apply.executor.Executor._conclude", dies)
    with pytest.raises(KeyboardInterrupt):
        ws.rollback()
    monkeypatch.undo()
    outcome = ws.resume()
    assert outcome is not None and [r.path for r in outcome.results] == [b"a"]
    claude = next(e for e in ws.history().effects if e.turns)
    assert [(s.path, s.units[0].seq) for s in outcome.plan.kept] == [(b"b", claude.seq)]


def test_a_folder_that_did_not_get_its_mode_is_tried_again_and_is_nobodys_change(
    ws: Workspace, project: Path, monkeypatch
):
    (project / "d").mkdir(mode=0o750)
    (project / "d/f").write_text("1\n")
    ws.checkpoint("before")
    shutil.rmtree(project / "d")
    ws.checkpoint(actor="claude")

    def refuses(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with ws.open_tree() as tree:
        monkeypatch.setattr(type(tree), "set_self", refuses)
    outcome = ws.undo()
    monkeypatch.undo()
    assert {r.path: r.result for r in outcome.results} == {b"d": "failed", b"d/f": "done"}
    again = ws.undo()
    assert [(r.path, r.verdict, r.result) for r in again.results] == [(b"d", "exact", "done")]
    assert (project / "d").stat().st_mode & 0o777 == 0o750


@pytest.mark.skipif(sys.platform != "linux" or PORTABLE, reason="the second process begins to sync only there")
def test_a_disk_that_fails_leaves_an_interrupted_takeback_with_two_processes_too(project: Path, tmp_path: Path):
    """The second process only begins to sync: the sync that counts is that of the first one, which fails."""
    for n in range(40):
        (project / f"f{n}").write_text("1")
    code = f"""if True:
        import os
        import takeback
        from takeback.domains import files
        from takeback.system.safefs import linux

        begin, sync = linux.start_syncing, linux.sync_filesystem

        def begins(fd):
            os.write(1, b"begun elsewhere\\n" if os.getpid() != first else b"begun here\\n")
            begin(fd)

        def fails(fd):
            raise OSError(5, "Input/output error")

        first, files._WORTH_FORKING = os.getpid(), 1
        linux.start_syncing, linux.sync_filesystem = begins, fails
        with takeback.open({str(project)!r}, store={str(tmp_path / "store")!r}, create=True) as ws:
            ws.checkpoint("before")
            for path in ws.root.iterdir():
                path.write_text("2")
            try:
                ws.rollback("before")
            except takeback.TakebackError as error:
                print(error.message)
            print(ws.interrupted())
            linux.sync_filesystem = sync
            print(ws.resume().whole, {{path.read_text() for path in ws.root.iterdir()}}, ws.verify(data=True).ok)
    """
    done = subprocess.run([sys.executable, "-u", "-c", code], capture_output=True, text=True, check=True)
    begun, failed, interrupted, resumed = done.stdout.splitlines()
    assert begun == "begun elsewhere", "else nothing is tested here"
    assert "Input/output error" in failed and interrupted == "a rollback was interrupted"
    assert resumed == "True {'1'} True"


@pytest.mark.parametrize(
    "failure",
    [takeback.TakebackError("the index was damaged", "run it again"), OSError(5, "EIO"), MemoryError()],
    ids=repr,
)
def test_an_index_that_fails_while_the_disk_writes_interrupts_nothing(
    ws: Workspace, project: Path, monkeypatch, failure: Exception
):
    """The known tree is made ahead of the outcome, which must not wait for a cache."""
    (project / "a").write_text("one")
    ws.checkpoint("before")
    (project / "a").write_text("two")
    known, failed = Observer.known, []

    def fails_once(self: Observer, until: int | None = None) -> Index:
        if until is not None and not failed:
            failed.append(until)
            raise failure
        return known(self, until)

    monkeypatch.setattr(Observer, "known", fails_once)
    assert ws.rollback("before").whole and failed and not ws.interrupted()
    assert (project / "a").read_text() == "one"
    assert ws.status().changes == () and ws.verify(data=True).ok


@pytest.mark.skipif(sys.platform != "linux" or PORTABLE, reason="only there a second process helps")
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        ("", "True 40 True () True"),
        ("refuse(('f3', 'f30'))", "False 38 True ('f3', 'f30') True"),  # they cannot be written
        ("touch('f7')", "False 39 True ('f7',) True"),  # somebody writes to it in that very moment
        ("fail_once()", "True 40 True () True"),  # nothing could be foreseen
    ],
)
def test_what_was_foreseen_counts_only_where_it_came_so(project: Path, tmp_path: Path, spoil: str, told: str):
    """While the second process ends, the first one prepares the known tree as if all were done."""
    for n in range(40):
        (project / f"f{n}").write_text(f"1 {n}")
    code = f"""if True:
        import os
        import takeback
        from takeback.apply import takebacks
        from takeback.domains import files

        files._WORTH_FORKING = 1
        foreseen, first = [], os.getpid()
        prepare, fill, apply = takebacks.Takebacks._prepare, files.Files._fill, takebacks.Index.apply

        def fail_once():
            def fails(self, *what):
                takebacks.Index.apply = apply
                raise OSError(5, "Input/output error")

            takebacks.Index.apply = fails

        def refuse(names):
            wrong = {{sha(f"1 {{name[1:]}}".encode()) for name in names}}

            def fails(self, fd, goal):
                if goal.content in wrong:
                    raise OSError(5, "Input/output error")
                return fill(self, fd, goal)

            files.Files._fill = fails

        def touch(name):
            def late(self, fd, goal):
                if goal.content == sha(f"1 {{name[1:]}}".encode()):
                    (ws.root / name).write_text("mine")
                return fill(self, fd, goal)

            files.Files._fill = late

        def prepared(self, head, changes):
            foreseen.append(len(changes))
            return prepare(self, head, changes)

        def sha(data):
            import hashlib

            return hashlib.sha256(data).digest()

        takebacks.Takebacks._prepare = prepared
        with takeback.open({str(project)!r}, store={str(tmp_path / "store")!r}, create=True) as ws:
            ws.checkpoint("before")
            for path in ws.root.iterdir():
                path.write_text("2")
            {spoil or "pass"}
            outcome = ws.rollback("before")
            is_used = len(foreseen) == 3 and foreseen[0] >= 40  # ahead, for the outcome, for the index
            known = ws.observer.known()
            left = tuple(sorted(str(change.path) for change in ws.status().changes))
            mistaken = [n for n in left if known.state(n.encode()).content == sha(f"1 {{n[1:]}}".encode())]
            print(outcome.whole, outcome.counts["done"], is_used, left, not mistaken and ws.verify(data=True).ok)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == told, done.stderr


@pytest.mark.parametrize(("how", "is_stopped"), [(KeyboardInterrupt, True), (SystemExit, False)])
def test_what_a_person_stopped_is_left_to_them_and_what_was_cut_off_is_finished(
    ws: Workspace, project: Path, monkeypatch, how, is_stopped
):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("2\n")

    def dies(*_: object) -> None:
        raise how

    monkeypatch.setattr("takeback.apply.executor.Executor._conclude", dies)
    with pytest.raises(how):
        ws.rollback()
    with pytest.raises(how):
        ws.resume()  # stopped or cut off once more
    monkeypatch.undo()
    assert ws.was_stopped() is is_stopped
    if is_stopped:
        for again in (ws.undo, ws.redo, ws.rollback, lambda: ws.revert("f")):
            with pytest.raises(takeback.Interrupted, match="a rollback was interrupted by Ctrl-C"):
                again()
        assert ws.resume(abort=True) is not None and (project / "f").read_text() == "2\n"
    else:
        assert ws.undo().finished_earlier and (project / "f").read_text() == "1\n"
    assert not ws.was_stopped() and ws.verify().ok


def test_a_stop_before_anything_began_is_none(ws: Workspace, project: Path, monkeypatch):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("2\n")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("takeback.apply.executor.Executor._check_stored", dies)
        with pytest.raises(KeyboardInterrupt):
            ws.rollback()
    assert not ws.interrupted() and ws.rollback().whole and (project / "f").read_text() == "1\n"


# -- of a path, what agents did ------------------------------------------------

LINES = "1\n2\n3\n4\n5\n6\n7\n8\n"


def edited(project: Path, **lines: str) -> str:
    """The file with these lines (`_4="agent"`) written anew."""
    found = (project / "f").read_text().splitlines()
    for number, line in lines.items():
        found[int(number[1:]) - 1] = line
    (project / "f").write_text("\n".join(found) + "\n")
    return (project / "f").read_text()


def test_revert_of_a_path_takes_the_agents_line_and_keeps_the_persons(ws: Workspace, project: Path):
    (project / "f").write_text(LINES)
    ws.checkpoint("base")
    edited(project, _4="agent")
    ws.track(["f"], actor="claude")
    both = edited(project, _1="mine")
    plan = ws.plan("revert", "./f")
    assert [(s.verdict, s.merges) for s in plan.steps] == [("drifted", True)] and "you" in plan.steps[0].note
    assert not ws.revert("./f").whole and (project / "f").read_text() == both
    assert ws.revert("./f", merge=True).whole
    assert (project / "f").read_text() == LINES.replace("1", "mine", 1)


def test_what_lies_below_the_agents_change_stays_and_it_goes_exactly(ws: Workspace, project: Path):
    (project / "f").write_text(LINES)
    ws.checkpoint("base")
    mine = edited(project, _1="mine")
    ws.checkpoint(named=False)
    edited(project, _4="agent")
    ws.checkpoint(actor="claude")
    ws.checkpoint("later")
    assert [s.verdict for s in ws.plan("revert", "./f").steps] == ["exact"]
    assert ws.revert("./f").whole and (project / "f").read_text() == mine
    again = ws.plan("revert", "./f")
    assert not again.steps, "nothing of an agent's is left there, and the person's is not taken instead"


def test_of_a_path_that_no_agent_changed_it_is_the_persons(ws: Workspace, project: Path):
    (project / "f").write_text(LINES)
    ws.checkpoint("base")
    (project / "g").write_text("agent\n")
    ws.checkpoint(actor="claude", named=False)
    ws.checkpoint("after")
    edited(project, _1="mine")
    ws.plan("undo")  # a look
    edited(project, _2="mine")
    assert ws.revert("./f").whole and (project / "f").read_text() == LINES


def test_of_a_folder_it_is_the_agents_files_and_the_persons_stay_and_are_named(ws: Workspace, project: Path):
    (project / "d").mkdir()
    (project / "d/q").write_text("q\n")
    ws.checkpoint("base")
    (project / "d/early").write_text("mine\n")
    ws.checkpoint(named=False)
    (project / "d/z").write_text("agent\n")
    point = ws.track(["d/z"], actor="claude").id
    (project / "d/mine").write_text("mine\n")
    (project / "d/q").write_text("mine\n")
    ws.checkpoint("later")
    (project / "d/y").write_text("agent\n")
    ws.track(["d/y"], actor="claude")
    (project / "d/new").write_text("mine\n")

    def reverted(*what: str) -> set[str]:
        before = picture(project, times=False)
        outcome = ws.revert(*what)
        found = {text(r.path) for r in outcome.results}
        gone = {"d/y"} if what == ("d",) else {"d/y", "d/new"}
        assert outcome.whole and found == gone
        ws.redo()
        assert picture(project, times=False) == before
        return {text(path) for path in outcome.left}

    assert reverted("d") == {"d/new"}, "nothing before the last checkpoint goes, whoever did it"
    assert reverted("d", "d/new") == set(), "what is named itself goes by its own rule"
    assert ws.revert("d").whole
    assert {text(s.path) for s in ws.plan("revert", "d").steps} == {"d/z"}, "else their newest change in it"
    assert ws.plan("revert", point).steps == (), "d/z has not changed since"
    point = ws.track(["d"]).id
    (project / "d/z").write_text("agent again\n")
    ws.track(["d/z"], actor="claude")
    (project / "d/q").write_text("mine again\n")
    plan = ws.plan("revert", point)
    assert [text(s.path) for s in plan.steps] == ["d/z"] and {u.path for u in plan.left} == {b"d/q"}


def test_of_a_folder_that_no_agent_changed_it_is_what_people_did_since_the_last_checkpoint(
    ws: Workspace, project: Path
):
    (project / "d").mkdir()
    ws.checkpoint("base")
    (project / "f").write_text("agent\n")
    ws.checkpoint(actor="claude", named=False)
    (project / "d/old").write_text("1\n")
    ws.checkpoint("later")
    (project / "d/new").write_text("1\n")
    assert {text(s.path) for s in ws.plan("revert", "d").steps} == {"d/new"}
    ws.checkpoint("latest")
    assert {text(s.path) for s in ws.plan("revert", "d").steps} == {"d/new"}, "else their newest change"


def test_a_track_is_a_point_that_restore_and_revert_can_name(ws: Workspace, project: Path):
    (project / "f").write_text(LINES)
    (project / "d").mkdir()
    (project / "d/old").write_text("old\n")
    ws.checkpoint("base")
    then = edited(project, _2="mine")
    (project / "d/kept").write_text("kept\n")
    point = ws.track(["f", "d", "new"]).id
    assert point
    edited(project, _7="agent")
    (project / "new").write_text("agent\n")
    (project / "d/more").write_text("agent\n")
    (project / "d/old").unlink()
    ws.checkpoint(actor="claude", named=False)
    whole = picture(project, times=False)
    assert ws.revert(point).whole
    back = picture(project, times=False)
    assert (project / "f").read_text() == then and not (project / "new").exists()
    assert sorted(p.name for p in (project / "d").iterdir()) == ["kept", "old"]
    ws.redo()
    assert picture(project, times=False) == whole
    assert ws.restore(point, "./f").whole and (project / "f").read_text() == then and (project / "new").exists()
    assert ws.restore(point).whole and (project / "d/more").exists(), "what was made in a tracked folder since stays"
    assert not ws.plan("restore", point).steps
    (project / "d/more").unlink()
    assert picture(project, times=False) == back
    with pytest.raises(takeback.NotFound, match="was not tracked"):
        ws.restore(point, "elsewhere")
    assert ws.show(point[:8]).row.summary.startswith("tracked ")


def test_restore_of_a_tracked_folder_never_deletes_what_was_made_there_since(ws: Workspace, project: Path):
    (project / "d").mkdir()
    (project / "d/old").write_text("old\n")
    point = ws.track(["d", "named", "folder"]).id
    (project / "d/old").write_text("new\n")
    (project / "d/mine").write_text("a person's\n")
    (project / "d/sub").mkdir()
    (project / "d/sub/mine").write_text("a person's\n")
    (project / "named").write_text("was not there, as the track says\n")
    (project / "folder").mkdir()
    (project / "folder/mine").write_text("a person's\n")
    plan = ws.plan("restore", point)
    assert {s.path for s in plan.steps} == {b"d/old", b"named"}
    assert ws.restore(point).whole
    assert (project / "d/old").read_text() == "old\n" and not (project / "named").exists()
    for kept in ("d/mine", "d/sub/mine", "folder/mine"):
        assert (project / kept).read_text() == "a person's\n"


def test_what_was_not_there_goes_if_it_is_named_itself_and_else_stays_and_is_named(ws: Workspace, project: Path):
    """The same of a checkpoint, of a track, and of the moment before an effect."""
    (project / "d/e").mkdir(parents=True)
    (project / "d/old").write_text("old\n")
    (project / ".takebackignore").write_text("*.log\n")
    points = [ws.checkpoint("base").id, ws.track(["d", "new"]).id]
    (project / "other").write_text("made\n")
    ws.checkpoint(named=False)
    points.append(ws.log()[0].id if ws.log()[0].kind == "change" else ws.log()[1].id)
    (project / "d/mine").write_text("mine\n")
    (project / "d/e/sub").mkdir()
    (project / "d/e/sub/f").write_text("mine\n")
    (project / "d/debug.log").write_text("not captured\n")
    (project / "new").mkdir()
    (project / "new/f").write_text("mine\n")
    for point in points:
        before = picture(project, times=False)
        outcome = ws.restore(point, "d")
        assert not outcome.results and outcome.left == (b"d/e/sub", b"d/mine"), point
        assert {text(s.path) for s in ws.plan("restore", point, "d", "d/mine").steps} == {"d/mine"}
        outcome = ws.restore(point, "d/mine", "d/e/sub", "new")
        assert outcome.whole and outcome.left == ()
        assert [p.name for p in (project / "d").iterdir() if p.name in ("mine", "e")] == ["e"]
        assert not list((project / "d/e").iterdir()) and not (project / "new").exists()
        ws.redo()
        assert picture(project, times=False) == before
        with pytest.raises(takeback.NotFound, match="d/typo is not in"):
            ws.restore(point, "d/typo")
    (project / "d/old").write_text("changed\n")
    outcome = ws.restore("base", ".")
    assert {r.path for r in outcome.results} == {b"d/old"}
    assert outcome.left == (b"d/e/sub", b"d/mine", b"new", b"other")


def test_what_may_have_been_there_is_never_deleted_by_its_name(ws: Workspace, project: Path):
    """Nothing was seen of an ignored file at the checkpoint: that it is not in it says nothing."""
    (project / ".takebackignore").write_text("f\n")
    (project / "f").write_text("there\n")
    ws.checkpoint("base")
    (project / ".takebackignore").write_text("")
    ws.checkpoint("covered")
    with pytest.raises(takeback.NotFound, match="f "):
        ws.restore("base", "./f")
    ws.restore("base", ".")
    assert (project / "f").read_text() == "there\n"


def test_a_new_folder_goes_by_its_name_only_with_all_in_it_stored(ws: Workspace, project: Path):
    (project / ".takebackignore").write_text("*.log\n")
    ws.checkpoint("base")
    (project / "new").mkdir()
    (project / "new/f").write_text("f\n")
    (project / "new/debug.log").write_text("not captured\n")
    outcome = ws.restore("base", "new")
    assert not outcome.whole and sorted(p.name for p in (project / "new").iterdir()) == ["debug.log", "f"]


def test_revert_of_a_path_counts_from_its_track(ws: Workspace, project: Path):
    (project / "f").write_text(LINES)
    ws.checkpoint("base")
    first = edited(project, _2="agent")
    ws.track(["f"], actor="claude")
    edited(project, _7="agent")
    ws.checkpoint(actor="claude", named=False)
    ws.revert("./f")
    assert (project / "f").read_text() == first


# -- force takes what others did, and never revives ------------------------------


@pytest.mark.parametrize("verb", ["undo", "rollback", "revert"])
@pytest.mark.parametrize("person", [False, True])
def test_force_never_brings_back_what_was_taken_back(ws: Workspace, project: Path, verb: str, person: bool):
    (project / "f").write_text(LINES)
    ws.checkpoint("base")
    edited(project, _2="reverted")
    ws.checkpoint(actor="claude")
    reverted = ws.history().effects[-1]
    edited(project, _5="second")
    ws.checkpoint(actor="claude")
    second = ws.history().effects[-1]
    if person:
        edited(project, _8="mine")
    assert ws.revert(reverted.id, merge=True).whole
    assert "reverted" not in (project / "f").read_text()
    what = {"undo": (), "rollback": ("base",), "revert": (second.id,)}[verb]
    assert ws.take_back(verb, *what, force=True).whole
    assert (project / "f").read_text() == LINES
    assert not {(reverted.seq, b"f"), (second.seq, b"f")} & ws.history().live
    ws.redo()
    assert "second" in (project / "f").read_text() and "reverted" not in (project / "f").read_text()


def test_where_somebody_wrote_in_between_force_merges(ws: Workspace, project: Path):
    (project / "f").write_text(LINES)
    ws.checkpoint("base")
    edited(project, _2="reverted")
    ws.checkpoint(actor="claude")
    reverted = ws.history().effects[-1]
    edited(project, _8="mine")
    ws.checkpoint(named=False)
    edited(project, _5="second")
    ws.checkpoint(actor="claude")
    ws.revert(reverted.id, merge=True)
    assert ws.undo(force=True).whole
    assert (project / "f").read_text() == LINES.replace("8", "mine")


# -- what is as it was ------------------------------------------------------------


@pytest.fixture
def beside(ws: Workspace, project: Path) -> Workspace:
    """Claude has made a file since the checkpoint `start`."""
    ws.checkpoint("start")
    by_claude(ws, lambda: (project / "made.txt").write_text("claude's\n"))
    return ws


def by_claude(ws: Workspace, does: Callable[[], object]) -> None:
    caller, call = Caller("claude", "s1"), Call(new_id(), "Bash", "Bash: make")
    ws.begin_call(caller, call)
    does()
    ws.end_call(caller, call)


def by_hand(ws: Workspace, does: Callable[[], object]) -> None:
    does()
    ws.look()


@pytest.mark.parametrize("hands", ["hand, hand", "claude, hand", "hand, claude, hand", "hand, hand, claude, hand"])
def test_a_rollback_says_nothing_of_what_was_made_and_deleted_since(beside: Workspace, project: Path, hands: str):
    *makers, last = ({"hand": by_hand, "claude": by_claude}[who] for who in hands.split(", "))
    gone = project / "gone.txt"
    for number, maker in enumerate(makers):
        maker(beside, lambda number=number: gone.write_text(f"{number}\n"))
    last(beside, gone.unlink)
    plan = beside.plan("rollback", "start")
    assert [step.path for step in plan.steps if step.note != ALREADY] == [b"made.txt"]
    assert not plan.left and not plan.asks
    outcome = beside.take_back("rollback", "start")
    assert outcome.whole and not outcome.left
    assert os.listdir(project) == [], "the world of the checkpoint"


def test_a_rollback_says_nothing_of_what_was_changed_and_changed_back(ws: Workspace, project: Path):
    (project / "f").write_text("as it was\n")
    ws.checkpoint("start")
    by_claude(ws, lambda: (project / "made.txt").write_text("claude's\n"))
    by_hand(ws, lambda: (project / "f").write_text("otherwise\n"))
    by_hand(ws, lambda: (project / "f").write_text("as it was\n"))
    plan = ws.plan("rollback", "start")
    assert not plan.left and not plan.asks


def test_what_a_rollback_brings_back_of_others_is_still_asked_about(beside: Workspace, project: Path):
    by_hand(beside, lambda: (project / "mine.txt").write_text("a person's\n"))
    by_claude(beside, (project / "mine.txt").unlink)
    plan = beside.plan("rollback", "start")
    assert {unit.path for unit in plan.asks[PEOPLE]} == {b"mine.txt"}
    beside.take_back("rollback", "start")
    assert os.listdir(project) == ["mine.txt"]
