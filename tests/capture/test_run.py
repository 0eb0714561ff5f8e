"""Running a command as if takeback were not there; shielding the store; layers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from support import picture
from takeback.look import runs_at_work
from takeback.model.effects import DONE, KEPT, Turn
from takeback.run import isolate, landlock, namespaces
from takeback.run.command import Ended, deaf, in_words, run
from takeback.workspace import Workspace

pytestmark = [
    pytest.mark.posix_only("run needs fork and signals"),
    pytest.mark.skipif(sys.platform == "win32", reason="run needs fork and signals"),
    pytest.mark.skipif(
        "PYTEST_XDIST_WORKER" in os.environ,
        reason="it forks, and xdist's workers have threads: scripts/test runs it in its stage forked",
    ),
]


def ran(*argv: str, prepare: Callable[[], str] = lambda: "", **environ: str) -> Ended:
    with deaf() as mask:
        return run(argv, {**os.environ, **environ}, prepare, mask)


def in_child(work: Callable[[], None]) -> str:
    """What a piece of work in a process of its own ends with: nothing, or the error."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            work()
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    return said


# -- the exit code -------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 42"], 42),
        (["sh", "-c", "kill -TERM $$"], 143),
        (["sh", "-c", "kill -KILL $$"], 137),
    ],
)
def test_the_exit_code_is_the_commands(argv: list[str], code: int) -> None:
    assert ran(*argv) == Ended(code)


def test_what_cannot_be_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("exit 3\n")
    assert ran("no-such-program-anywhere")[0] == ran("")[0] == ran(str(plain / "below"))[0] == 127
    assert not ran("no-such-program-anywhere").ran
    assert ran(str(plain))[0] == ran(str(tmp_path))[0] == 126
    plain.chmod(0o755)
    assert ran(str(plain)) == Ended(3), "a script without a first line goes to sh, as in a shell"
    assert ran("plain", PATH=f"/nowhere:{tmp_path}") == Ended(3)


def test_a_prepare_that_fails_runs_nothing(tmp_path: Path) -> None:
    def refuse() -> str:
        raise OSError(1, "not here")

    assert ran("touch", str(tmp_path / "made"), prepare=refuse) == Ended(1, failure="not here", ran=False)
    assert not (tmp_path / "made").exists()
    assert ran("true", prepare=lambda: "a note").note == "a note"


def test_signals_are_as_the_command_would_have_found_them(tmp_path: Path) -> None:
    ran("sh", "-c", f"grep -E 'SigBlk|SigIgn' /proc/self/status > {tmp_path}/with")
    subprocess.run(["sh", "-c", f"grep -E 'SigBlk|SigIgn' /proc/self/status > {tmp_path}/without"], check=True)
    assert (tmp_path / "with").read_text() == (tmp_path / "without").read_text()


def test_a_command_in_words() -> None:
    assert in_words(["npm", "run", "a b"]) == "npm run 'a b'"
    assert in_words(["echo", "a\nb"]) == "echo 'a b'"
    assert "sk_live" not in in_words(["curl", "-H", "Authorization: Bearer sk_live_abcdefgh1234567890abcd"])
    assert len(in_words(["x" * 500])) == 72


# -- the shield ----------------------------------------------------------------

needs_landlock = pytest.mark.skipif(landlock.abi() < landlock.OLDEST, reason="this kernel has no Landlock")


@needs_landlock
def test_landlock_keeps_one_folder_from_being_written(tmp_path: Path) -> None:
    shut, beside = tmp_path / "a/shut", tmp_path / "a/beside"
    for folder in (shut, beside):
        folder.mkdir(parents=True)
        (folder / "file").write_text("before")
    tried = {
        "write": lambda: (shut / "file").write_text("after"),
        "make": lambda: (shut / "new").touch(),
        "remove": lambda: (shut / "file").unlink(),
        "truncate": lambda: os.truncate(shut / "file", 0),
        "move in": lambda: os.rename(beside / "file", shut / "moved"),
        "move out": lambda: os.rename(shut / "file", beside / "moved"),
        "link": lambda: os.link(beside / "file", shut / "linked"),
        "symlink": lambda: os.symlink("x", shut / "symlinked"),
        "move itself": lambda: os.rename(shut, beside / "shut"),
    }
    before = picture(shut)
    for name, work in tried.items():

        def shielded(work: Callable[[], object] = work) -> None:
            landlock.refuse_writing(str(shut))
            work()

        assert "Error" in in_child(shielded), name
        assert picture(shut) == before, name


@needs_landlock
def test_landlock_leaves_all_else(tmp_path: Path) -> None:
    shut, beside = tmp_path / "shut", tmp_path / "beside"
    shut.mkdir()
    (beside / "below").mkdir(parents=True)
    (shut / "file").write_text("read me")
    (tmp_path / "file").write_text("before")

    def work() -> None:
        landlock.refuse_writing(str(shut))
        assert (shut / "file").read_text() == "read me"
        (tmp_path / "file").write_text("after")
        (beside / "new").write_text("new")
        os.rename(beside / "new", beside / "below/moved")
        (beside / "below/moved").unlink()
        with open("/dev/null", "w") as null:
            null.write("x")

    assert in_child(work) == ""
    assert (tmp_path / "file").read_text() == "after"


def test_no_kernel_no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_libc", None)
    assert landlock.abi() == 0


# -- marks ---------------------------------------------------------------------


def test_a_run_is_at_work_while_its_process_lives(tmp_path: Path) -> None:
    assert runs_at_work.at_work(tmp_path) == []
    with runs_at_work.mark(runs_at_work.folder_in(tmp_path) / "klm"):
        assert runs_at_work.at_work(tmp_path) == ["klm"]
    assert runs_at_work.at_work(tmp_path) == []
    code = "import os, sys, pathlib\nfrom takeback.look import runs_at_work as runs\n" \
        "with runs.mark(pathlib.Path(sys.argv[1])):\n    os.kill(os.getpid(), 9)"  # fmt: skip
    killed = subprocess.run([sys.executable, "-c", code, str(runs_at_work.folder_in(tmp_path) / "opq")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (runs_at_work.folder_in(tmp_path) / "opq").exists()
    assert runs_at_work.at_work(tmp_path) == []


def test_what_a_look_finds_during_a_run_is_that_runs(ws: Workspace) -> None:
    assert ws.store.folder is not None
    (ws.root / "mine").write_text("by hand")
    first = ws.checkpoint("before: one")
    with runs_at_work.mark(runs_at_work.folder_in(ws.store.folder) / first.id):
        (ws.root / "a").write_text("by the first")
        second = ws.checkpoint("before: two")
        with runs_at_work.mark(runs_at_work.folder_in(ws.store.folder) / second.id):
            (ws.root / "b").write_text("by one of the two")
            ws.ran(first, "one")
    (ws.root / "c").write_text("by the second")
    ws.ran(second, "two")
    one, two = Turn("run", first.id), Turn("run", second.id)
    whose = {path: e.turns for e in ws.history().effects for path in e.changes}
    assert whose == {
        b"mine": frozenset(),
        b"a": frozenset({one}),
        b"b": frozenset({one, two}),
        b"c": frozenset({two}),
    }


def test_a_run_is_one_turn(ws: Workspace) -> None:
    for n in (1, 2):
        before = ws.checkpoint(f"before: {n}")
        (ws.root / f"file-{n}").write_text("x")
        _, changed = ws.ran(before, f"touch file-{n}")
        assert changed == [f"file-{n}"]
    assert [row.summary for row in ws.log("actor:run kind:effect")] == [
        "run: touch file-2 · 1 file",
        "run: touch file-1 · 1 file",
    ]
    ws.undo()
    assert [p.name for p in ws.root.iterdir()] == ["file-1"]
    ws.undo()
    assert not list(ws.root.iterdir())
    ws.redo()
    ws.redo()
    assert sorted(p.name for p in ws.root.iterdir()) == ["file-1", "file-2"]


# -- layers --------------------------------------------------------------------


def _why_no_layers(tmp: Path) -> str:
    for name in ("lower", "upper", "work"):
        (tmp / name).mkdir(parents=True, exist_ok=True)

    def work() -> None:
        try:
            namespaces.own_mounts()
        except PermissionError:
            namespaces.own_user_and_mounts()
            namespaces.overlay(*(str(tmp / n) for n in ("lower", "upper", "work", "lower")), True)
        else:
            namespaces.overlay(*(str(tmp / n) for n in ("lower", "upper", "work", "lower")), False)

    return in_child(work)


@pytest.fixture
def layered(ws: Workspace, tmp_path: Path) -> Callable[..., tuple[isolate.Layer, takeback.Checkpoint]]:
    """Runs a shell line over a layer of the project."""
    if why := _why_no_layers(tmp_path / "try"):
        pytest.skip(f"no overlay for us here: {why}")

    def start(line: str) -> tuple[isolate.Layer, takeback.Checkpoint]:
        before = ws.checkpoint("before")
        assert ws.store.folder is not None
        layer = isolate.Layer(ws.store.folder, before.id, str(ws.root), str(ws.settings.home))
        layer.prepare()
        here = Path.cwd()
        os.chdir(ws.root)
        try:
            ended = ran("sh", "-ec", line, prepare=layer.enter)
        finally:
            os.chdir(here)
        assert (ended.code, ended.failure) == (0, "")
        layer.entered()
        return layer, before

    return start


MESS = "echo new > made; rm -r gone; mkdir -p deep/er; ln -s made deep/link; chmod 700 tool; echo more >> text; mv old moved"


def _furnish(root: Path) -> None:
    (root / "gone").mkdir()
    (root / "gone/file").write_text("gone\n")
    (root / "old").mkdir()
    (root / "old/file").write_bytes(b"\0\xff" * 1000)
    (root / "text").write_text("text\n")
    (root / "tool").write_text("tool\n")
    os.link(root / "text", root / "linked")


def test_a_layer_that_is_dropped_leaves_no_trace(ws: Workspace, layered) -> None:
    _furnish(ws.root)
    ws.checkpoint("furnished")
    before, size, head = picture(ws.root), ws.store.blobs.size(), ws.store.journal.head().seq
    layer, since = layered(MESS)
    assert picture(ws.root) == before
    found, files = ws.layer_found(layer, since)
    assert {f.path for f in files} >= {"made", "gone/file", "deep/link", "tool", "text", "moved"}
    assert found.uncovered == ()
    layer.drop()
    assert picture(ws.root) == before
    assert not layer.folder.exists()
    assert (ws.store.blobs.size(), ws.store.journal.head().seq) == (size, head + 1), "but for the checkpoint"


@pytest.mark.parametrize("becomes", ["echo a file > old", "ln -s gone old", "ln -s nowhere old"])
def test_a_folder_that_became_something_else_in_a_layer_is_told_and_kept(ws: Workspace, layered, becomes: str) -> None:
    _furnish(ws.root)
    layer, since = layered(f"rm -r old; {becomes}")
    found, _ = ws.layer_found(layer, since)
    assert {c.path for c in found.changes} == {b"old", b"old/file"}
    assert {r.result for r in ws.keep_layer(layer, since, "swap")} == {DONE}
    layer.drop()
    assert not (ws.root / "old").is_dir() or (ws.root / "old").is_symlink()
    assert ws.rollback(since.id).whole
    assert (ws.root / "old/file").read_bytes() == b"\0\xff" * 1000


def test_a_layer_that_is_kept_is_one_turn(ws: Workspace, layered) -> None:
    _furnish(ws.root)
    ws.checkpoint("furnished")
    before = picture(ws.root)
    layer, since = layered(MESS)
    assert layer.view is not None
    seen = picture(f"/proc/self/fd/{layer.view.fd}", times=False)
    results = ws.keep_layer(layer, since, "mess")
    assert {r.result for r in results} == {DONE}
    layer.drop()
    after = picture(ws.root, times=False)
    for path in (b"text", b"linked"):  # a write breaks the link, as overlayfs does
        assert after[path][:5] == seen[path][:5]
    unlinked = {p: found[:5] for p, found in seen.items()}
    assert {p: found[:5] for p, found in after.items()} == unlinked
    ws.undo()
    assert picture(ws.root) == before
    ws.redo()
    assert {p: found[:5] for p, found in picture(ws.root, times=False).items()} == unlinked


def test_what_a_person_did_meanwhile_is_a_persons(ws: Workspace, layered) -> None:
    for name in ("both", "theirs", "mine"):
        (ws.root / name).write_text("before\n")
    layer, since = layered("echo command > both; echo command > mine")
    (ws.root / "both").write_text("person\n")
    (ws.root / "theirs").write_text("person\n")
    (ws.root / "added").write_text("person\n")
    results = {r.path: r.result for r in ws.keep_layer(layer, since, "x")}
    layer.drop()
    assert results == {b"both": KEPT, b"mine": DONE}
    assert {p.name: p.read_text() for p in ws.root.iterdir()} == {
        "both": "person\n", "theirs": "person\n", "added": "person\n", "mine": "command\n",
    }  # fmt: skip
    ws.undo()
    assert (ws.root / "mine").read_text() == "before\n"
    assert (ws.root / "theirs").read_text() == "person\n"


def test_a_checkpoint_by_somebody_else_changes_nothing_of_that(ws: Workspace, layered) -> None:
    (ws.root / "both").write_text("before\n")
    layer, since = layered("echo command > both")
    (ws.root / "both").write_text("person\n")
    ws.checkpoint("somebody looks")
    assert [r.result for r in ws.keep_layer(layer, since, "x")] == [KEPT]
    layer.drop()
    assert (ws.root / "both").read_text() == "person\n"


def test_what_is_not_covered_is_named(ws: Workspace, layered) -> None:
    (ws.root / ".git").mkdir()
    (ws.root / ".git/config").write_text("x")
    layer, since = layered("echo y > .git/config; touch made")
    found, files = ws.layer_found(layer, since)
    assert (found.uncovered, [f.path for f in files]) == ((".git",), ["made"])
    layer.drop()


def test_a_keep_that_was_cut_off_is_finished(ws: Workspace, layered) -> None:
    (ws.root / "a").write_text("before\n")
    (ws.root / "z").write_text("before\n")
    layer, since = layered("echo after > a; echo after > z; echo after > new")

    def killed() -> None:
        real, calls = isolate.Files._do, []

        def dying(self: isolate.Files, *args: object) -> None:
            calls.append(1)
            if len(calls) > 1:
                os._exit(9)
            real(self, *args)  # type: ignore[arg-type]

        isolate.Files._do = dying  # type: ignore[method-assign]
        with takeback.open(ws.root) as mine:
            mine.keep_layer(layer, since, "x")

    assert in_child(killed) == ""
    told = [(ws.root / name).read_text() for name in ("a", "z")]
    assert sorted(told) == ["after\n", "before\n"]
    layer.close()
    assert {r.result for r in ws.finish_layers()} == {DONE}
    assert {p.name: p.read_text() for p in ws.root.iterdir()} == dict.fromkeys(("a", "z", "new"), "after\n")
    assert not layer.folder.exists()
    assert ws.finish_layers() == []
    ws.undo()
    assert {p.name: p.read_text() for p in ws.root.iterdir()} == dict.fromkeys(("a", "z"), "before\n")


def test_a_store_inside_the_project_cannot_be_isolated(ws: Workspace) -> None:
    assert ws.store.folder is not None
    layer = isolate.Layer(ws.store.folder, "klm", str(ws.root), str(ws.root / "store"))
    with pytest.raises(takeback.TakebackError, match="lies inside the project"):
        layer.prepare()
    layer.close()
