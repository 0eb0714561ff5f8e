"""The public Python API, pinned: what people build on changes only on purpose, and here."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import typing
from pathlib import Path

import pytest

import takeback
from takeback import errors
from takeback.workspace import Workspace

SIGNATURES = """
aapply(self, plan: 'Plan | str') -> 'Outcome'
acheckpoint(self, label: 'str' = '', *, actor: 'str' = '') -> 'Checkpoint'
acted(self, id: 'str', **what: 'Any') -> 'Act'
adiff(self, a: 'str' = '', b: 'str' = '', paths: 'Iterable[str]' = ()) -> 'Diff'
alabel(self, name: 'str', label: 'str') -> 'Checkpoint'
alog(self, filter: 'str' = '') -> 'list[LogRow]'
apin(self, name: 'str', keep: 'bool' = True) -> 'Checkpoint'
aplan(self, verb: 'str', *what: 'str | int', **options: 'Any') -> 'Plan'
apply(self, plan: 'Plan | str') -> 'Outcome'
approve(self, plan: 'Plan', credentials: 'Iterable[Credential]' = ()) -> 'Approval'
aprune(self, **asked: 'Any') -> 'Pruned'
arecord_command(self, description: 'str' = '', **more: 'Any') -> 'Act'
aredo(self, n: 'int' = 1, **options: 'Any') -> 'Outcome'
arepair(self) -> 'Repaired'
arestore(self, checkpoint: 'str', *paths: 'str', **options: 'Any') -> 'Outcome'
aresume(self, abort: 'bool' = False, *, leave: 'bool' = False) -> 'Outcome | None'
arevert(self, *what: 'str', **options: 'Any') -> 'Outcome'
aroll_back_thread(self, thread: 'str', checkpoint: 'str', **options: 'Any') -> 'Outcome'
arollback(self, to: 'str' = '', **options: 'Any') -> 'Outcome'
ashow(self, name: 'str') -> 'Shown'
astatus(self) -> 'Status'
astep(self, name: 'str', *, actor: 'str' = '', approve: 'Approve | None' = None) -> 'AsyncStep'
atrack(self, paths: 'Iterable[str | bytes]', *, actor: 'str' = '') -> 'Tracked'
aundo(self, n: 'int | str' = 1, **options: 'Any') -> 'Outcome'
averify(self, data: 'bool' = False) -> 'Verified'
checkpoint(self, label: 'str' = '', *, actor: 'str' = '', named: 'bool | None' = None, deadline: 'float | None' = None) -> 'Checkpoint'
close(self) -> 'None'
diff(self, a: 'str' = '', b: 'str' = '', paths: 'Iterable[str]' = ()) -> 'Diff'
effects(self) -> 'list[Act]'
find_effect(self, name: 'str') -> 'Act'
interrupted(self) -> 'str'
label(self, name: 'str', label: 'str') -> 'Checkpoint'
log(self, filter: 'str' = '') -> 'list[LogRow]'
note_session(self, pid: 'int', started: 'int', name: 'str') -> 'None'
outside(self, name: 'str') -> 'Outside'
pin(self, name: 'str', keep: 'bool' = True) -> 'Checkpoint'
plan(self, verb: 'str', *what: 'str | int', actors: 'Iterable[str] | None' = None, everything: 'bool' = False, merge: 'bool' = False, markers: 'bool' = False, force: 'bool' = False, only: 'Iterable[str]' = (), without: 'Iterable[str]' = (), leave: 'Iterable[str]' = (), state: 'bool' = False, with_files: 'bool' = False, turns: 'Iterable[Turn]' = (), also: 'Iterable[str]' = (), own: 'bool' = False, bound: 'bool' = False, save: 'bool' = False) -> 'Plan'
prune(self, **asked: 'Any') -> 'Pruned'
record_command(self, description: 'str' = '', *, argv: 'Sequence[str] | None' = None, shell: 'str | None' = None, run_in: 'str | None' = None, env: 'Iterable[str] | None' = None, timeout: 'float | None' = None, expect: 'Iterable[int] | None' = None, probe: 'Mapping[str, Any] | None' = None, idempotent: 'bool' = False, idempotent_for: 'float | None' = None, target: 'str' = '', depends_on: 'Iterable[str]' = (), by: 'Mapping[str, str] | None' = None, for_effect: 'str' = '') -> 'Act'
recording(self, *, actor: 'str' = '') -> 'Recorder'
redo(self, n: 'int' = 1, *, merge: 'bool' = False, force: 'bool' = False) -> 'Outcome'
repair(self) -> 'Repaired'
resolve(self, name: 'str', said: 'str', result: 'Any' = None) -> 'Act'
restore(self, checkpoint: 'str', *paths: 'str', to: 'str | os.PathLike[str] | None' = None, force: 'bool' = False) -> 'Outcome'
resume(self, abort: 'bool' = False, *, leave: 'bool' = False) -> 'Outcome | None'
revert(self, *what: 'str', merge: 'bool' = False, force: 'bool' = False) -> 'Outcome'
roll_back_thread(self, thread: 'str', checkpoint: 'str', *, with_files: 'bool' = False, everything: 'bool' = False, merge: 'bool' = False, force: 'bool' = False) -> 'Outcome'
rollback(self, to: 'str' = '', *, actors: 'Iterable[str] | None' = None, everything: 'bool' = False, merge: 'bool' = False, force: 'bool' = False, state: 'bool' = False) -> 'Outcome'
saved_plan(self, name: 'str') -> 'Plan'
show(self, name: 'str') -> 'Shown'
status(self) -> 'Status'
step(self, name: 'str', *, actor: 'str' = '', approve: 'Approve | None' = None) -> 'WorkStep'
take_back(self, verb: 'str', *what: 'str | int', actors: 'Iterable[str] | None' = None, everything: 'bool' = False, merge: 'bool' = False, markers: 'bool' = False, force: 'bool' = False, only: 'Iterable[str]' = (), without: 'Iterable[str]' = (), state: 'bool' = False, with_files: 'bool' = False, also: 'Iterable[str]' = ()) -> 'Outcome'
track(self, paths: 'Iterable[str | bytes]', *, actor: 'str' = '') -> 'Tracked'
unapproved(self, plan: 'Plan') -> 'tuple[list[Step], list[Credential]]'
under_way(self) -> 'str'
undo(self, n: 'int | str' = 1, *, actors: 'Iterable[str] | None' = None, everything: 'bool' = False, merge: 'bool' = False, force: 'bool' = False, state: 'bool' = False) -> 'Outcome'
verify(self, data: 'bool' = False) -> 'Verified'
"""


def test_all_is_sorted_and_pinned():
    assert takeback.__all__ == sorted(takeback.__all__)
    assert takeback.__all__ == [
        "ApprovalNeeded", "AsyncConversation", "Checkpoint", "Conversation", "Damaged", "Diff", "DoneWithoutUndo", "InProgress", "Interrupted", "Locked", "LogRow", "Moved",
        "NoWorkspace", "NotDone", "NotFound", "Off", "Outcome", "Plan", "Recorder", "Remains", "RepeatedEffect", "Result", "Stale", "Status", "Step",
        "TakebackError", "UsageError", "WorkStep", "Workspace", "__version__", "open", "tool",
    ]  # fmt: skip
    assert all(hasattr(takeback, name) for name in takeback.__all__)


@pytest.mark.parametrize("line", SIGNATURES.strip().splitlines(), ids=lambda line: line.split("(")[0])
def test_the_methods_of_a_workspace_are_pinned(line: str):
    name, _ = line.split("(", 1)
    found = f"{name}{inspect.signature(getattr(Workspace, name))}"
    assert found.replace("views.", "") == line, "the public API changed"


def test_open_is_pinned():
    create = "create: \"bool | Literal['state']\" = False"
    assert (
        str(inspect.signature(takeback.open))
        == f"(root: 'str | _os.PathLike[str]', {create}, store: 'str | None' = None) -> 'Workspace'"
    )


def test_a_conversation_and_its_async_twin_are_pinned():
    how = "workspace: 'Workspace | None', thread: 'str' = 'main', enabled: 'bool' = True"
    for kind in (takeback.Conversation, takeback.AsyncConversation):
        found = f"{inspect.signature(kind)}"
        assert found == f"({how}, *, agent: 'str' = 'conversation', approve: 'Approve | None' = None) -> 'None'"
        assert f"{inspect.signature(kind.append)}" == "(self, message: 'Mapping[str, Any]') -> 'None'"
        assert list(inspect.signature(kind.turn).parameters) == ["self", "user_text"]
        assert f"{inspect.signature(kind.undo)}" == "(self, n: 'int' = 1) -> 'Said'"
        assert f"{inspect.signature(kind.redo)}" == "(self, n: 'int' = 1) -> 'Said'"


def test_every_verb_has_an_async_twin():
    for verb in (
        "checkpoint",
        "track",
        "status",
        "diff",
        "log",
        "show",
        "plan",
        "apply",
        "resume",
        "undo",
        "redo",
        "rollback",
        "revert",
        "restore",
        "pin",
        "prune",
        "verify",
        "repair",
    ):
        assert inspect.iscoroutinefunction(getattr(Workspace, f"a{verb}")), verb


def test_async_twins_do_what_the_verbs_do(ws: Workspace, project: Path):
    async def use() -> None:
        (project / "f").write_text("1\n")
        assert (await ws.atrack(["f"], actor="claude")).changed == ("f",)
        assert (await ws.apin("start")).pinned and not (await ws.apin("start", keep=False)).pinned
        assert (await ws.ashow("start")).row.label == "start"
        assert await ws.aresume() is None
        assert (await ws.aprune(keep=1, dry_run=True)).checkpoints == ()
        assert (await ws.averify(data=True)).ok and (await ws.arepair()).quarantined == 0

    asyncio.run(use())


def test_results_are_typed():
    for verb in ("checkpoint", "status", "diff", "log", "plan", "apply", "undo", "redo", "revert", "restore"):
        assert inspect.signature(getattr(Workspace, verb)).return_annotation not in (inspect.Signature.empty, "Any"), (
            verb
        )


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("TakebackError", 1),
        ("UsageError", 2),
        ("NotFound", 2),
        ("ApprovalNeeded", 4),
        ("Stale", 4),
        ("NoWorkspace", 10),
        ("Locked", 11),
        ("Damaged", 1),
        ("Moved", 1),
        ("Interrupted", 4),
        ("Off", 1),
        ("NotDone", 1),
        ("RepeatedEffect", 1),
        ("InProgress", 1),
        ("DoneWithoutUndo", 2),
    ],
)
def test_exit_codes_of_errors_are_pinned(kind: str, code: int):
    assert getattr(errors, kind).exit_code == code


def test_a_folder_that_is_not_protected_says_what_to_do(project: Path):
    with pytest.raises(takeback.NoWorkspace) as told:
        takeback.open(project)
    assert told.value.hint and told.value.exit_code == 10


def test_opening_again_goes_on_with_the_same_history(project: Path):
    with takeback.open(project, create=True) as one:
        one.checkpoint("mark")
    with takeback.open(project, create=True) as two:
        assert [c.label for c in two.history().checkpoints] == ["start", "mark"]


def test_a_store_in_memory_leaves_no_trace(project: Path, own_home: Path):
    (project / "f").write_text("1\n")
    with takeback.open(project, store="memory") as ws:
        ws.checkpoint("mark")
        (project / "f").write_text("2\n")
        ws.rollback()
        assert (project / "f").read_text() == "1\n"
    assert not (own_home / "takeback").exists()
    assert [p.name for p in project.iterdir()] == ["f"]


def test_a_store_elsewhere(project: Path, tmp_path: Path):
    with takeback.open(project, create=True, store=str(tmp_path / "elsewhere")) as ws:
        assert ws.store.folder is not None and tmp_path / "elsewhere" in ws.store.folder.parents


def test_off_makes_and_writes_nothing(project: Path, own_home: Path, monkeypatch):
    monkeypatch.setenv("TAKEBACK", "off")
    with pytest.raises(takeback.Off, match="source"):
        takeback.open(project, create=True)
    assert not (own_home / "takeback").exists()


def test_off_leaves_what_is_there_readable(project: Path, tmp_path: Path, monkeypatch):
    (project / "f").write_text("1\n")
    takeback.open(project, create=True).close()
    monkeypatch.setenv("TAKEBACK", "off")
    with takeback.open(project) as ws:
        assert ws.log() and ws.show("start") and ws.diff().files == ()
        ws.restore("start", "f", to=tmp_path / "out")
        assert (tmp_path / "out/f").read_text() == "1\n"
        for act in (
            ws.checkpoint,
            ws.undo,
            ws.redo,
            ws.rollback,
            lambda: ws.track(["f"]),
            lambda: ws.revert("f"),
            lambda: ws.restore("start", "f"),
            ws.prune,
            ws.repair,
            lambda: ws.plan("undo"),
        ):
            with pytest.raises(takeback.Off):
                act()


def test_status_diff_and_log_journal_nothing(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    head = ws.store.journal.head()
    blobs = set(ws.store.blobs.ids())
    ws.status(), ws.diff(), ws.log(), ws.show("start")
    assert ws.store.journal.head() == head
    assert set(ws.store.blobs.ids()) == blobs


def test_a_root_that_was_replaced_is_told(project: Path):
    with takeback.open(project, create=True) as ws:
        project.rename(project.with_name("moved"))
        project.mkdir()
        with pytest.raises(takeback.TakebackError, match="replaced"):
            ws.checkpoint()
        project.rmdir()
        with pytest.raises(takeback.TakebackError, match="cannot be opened"):
            ws.checkpoint()


def test_a_root_that_was_replaced_goes_on_with_its_history_where_it_may_be_made(project: Path):
    (project / "kept").write_text("1\n")
    takeback.open(project, create=True).close()
    project.rename(project.with_name("moved"))
    project.mkdir()
    with takeback.open(project) as ws, pytest.raises(takeback.TakebackError, match="replaced"):
        ws.checkpoint()
    with takeback.open(project, create=True) as ws:
        ws.checkpoint("made anew")
        assert [c.label for c in ws.history().checkpoints] == ["start", "made anew"]
        ws.rollback("start")
    assert (project / "kept").read_text() == "1\n"


@pytest.mark.parametrize("create", [True, "state"])
def test_a_root_that_was_moved_goes_on_with_its_history_where_it_may_be_made(project: Path, create):
    (project / "kept").write_text("1\n")
    with takeback.open(project, create=True) as ws:
        ws.threads.save("main", {"n": 1})
        id = ws.id
    moved = project.with_name("moved")
    project.rename(moved)
    with pytest.raises(takeback.NoWorkspace):
        takeback.open(moved)
    with takeback.open(moved, create=create) as ws:
        assert ws.id == id and [c.label for c in ws.history().checkpoints] == ["start"]
        assert ws.threads.load(ws.threads.get("main")) == {"n": 1}
        (moved / "kept").write_text("harm\n")
        ws.rollback("start")
        assert (moved / "kept").read_text() == "1\n"
    with pytest.raises(takeback.UsageError):
        takeback.open(project, create=True)  # nothing is there any more


def test_a_copy_of_a_root_has_a_history_of_its_own(project: Path):
    (project / "kept").write_text("1\n")
    with takeback.open(project, create=True) as ws:
        id = ws.id
    copy = project.with_name("copy")
    shutil.copytree(project, copy)
    with takeback.open(copy, create=True) as ws:
        assert ws.id != id


def test_the_domain_protocol_is_what_files_has():
    from takeback.domains.files import Files
    from takeback.model.effects import Domain

    for name in ("present", "apply", "sweep"):
        wanted = list(inspect.signature(getattr(Domain, name)).parameters)
        assert list(inspect.signature(getattr(Files, name)).parameters) == wanted
    assert set(typing.get_type_hints(Domain)) <= {"name", "joins"}
