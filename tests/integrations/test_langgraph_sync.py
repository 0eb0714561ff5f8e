"""The plain calls of the saver, each capability of LangGraph's suite again in our words; some beyond it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("langgraph.checkpoint.base", reason="langgraph is not installed here")

from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

import takeback
from takeback.errors import NoWorkspace, TakebackError, UsageError
from takeback.integrations.langgraph import TakebackSaver

Config = dict[str, Any]


@pytest.fixture
def saver(project: Path) -> Iterator[TakebackSaver]:
    with TakebackSaver(project, files=False) as opened:
        yield opened


def config(thread: str, id: str | None = None, ns: str = "") -> Config:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, **({"checkpoint_id": id} if id else {})}}


def put(
    saver: TakebackSaver,
    thread: str,
    values: dict[str, Any] | None = None,
    *,
    after: Config | None = None,
    ns: str = "",
    versions: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
    seen: dict[str, Any] | None = None,
    **metadata: Any,
) -> Config:
    checkpoint = empty_checkpoint()
    checkpoint["id"] = str(uuid6())
    checkpoint["channel_values"] = values or {}
    checkpoint["channel_versions"] = versions or dict.fromkeys(values or {}, 1)
    checkpoint["versions_seen"] = seen or {}
    where = config(thread, after["configurable"]["checkpoint_id"] if after else None, ns)
    told = {"source": "loop", "step": 0, "parents": {}, **metadata}
    return saver.put(where, checkpoint, told, checkpoint["channel_versions"] if new is None else new)


def chain(saver: TakebackSaver, thread: str, count: int, ns: str = "", **metadata: Any) -> list[str]:
    after, ids = None, []
    for step in range(count):
        after = put(saver, thread, {"step": step}, after=after, ns=ns, **{"step": step, **metadata})
        ids.append(after["configurable"]["checkpoint_id"])
    return ids


def ids(found: Iterator[CheckpointTuple]) -> list[str]:
    return [one.checkpoint["id"] for one in found]


# -- put, get_tuple -----------------------------------------------------------------


def test_a_checkpoint_comes_back_as_it_was_put(saver: TakebackSaver):
    values = {"s": "hi", "i": 42, "f": 1.5, "l": [1, {"a": None}], "b": b"\0\xff", "n": None, "big": "x" * 5000}
    versions = {name: f"{n:032}.5" for n, name in enumerate(values)}
    stored = put(saver, "t", values, versions=versions, seen={"node": {"s": 1}}, step=3, run_id="r", extra=[1, 2])
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.config == stored
    assert found.checkpoint["channel_values"] == values
    assert found.checkpoint["channel_versions"] == versions
    assert found.checkpoint["versions_seen"] == {"node": {"s": 1}}
    assert found.checkpoint["v"] and found.checkpoint["ts"]
    assert found.metadata == {"source": "loop", "step": 3, "parents": {}, "run_id": "r", "extra": [1, 2]}
    assert found.parent_config is None and found.pending_writes == []


def test_what_the_config_says_of_the_run_is_metadata(saver: TakebackSaver):
    where = {**config("t"), "metadata": {"user": "ada", "thread_id": "not this"}}
    checkpoint = empty_checkpoint()
    saver.put(where, checkpoint, {"source": "input", "step": -1}, {})
    assert saver.get_tuple(config("t")).metadata == {"source": "input", "step": -1, "user": "ada"}


def test_none_without_a_thread_or_an_id_that_is_there(saver: TakebackSaver):
    assert saver.get_tuple(config("nobody")) is None
    first = put(saver, "t")
    assert saver.get_tuple(config("t", str(uuid4()))) is None
    assert saver.get_tuple(config("t", first["configurable"]["checkpoint_id"][:20])) is None  # no beginning of one
    assert saver.get_tuple(config("t", first["configurable"]["checkpoint_id"], ns="child:1")) is None
    assert saver.get_tuple(config("other", first["configurable"]["checkpoint_id"])) is None


def test_the_newest_one_unless_one_is_named(saver: TakebackSaver):
    made = chain(saver, "t", 3)
    assert saver.get_tuple(config("t")).checkpoint["id"] == made[-1]
    middle = saver.get_tuple(config("t", made[1]))
    assert middle.checkpoint["channel_values"] == {"step": 1}
    assert middle.parent_config == config("t", made[0])
    assert saver.get(config("t", made[0]))["channel_values"] == {"step": 0}


def test_namespaces_and_threads_are_apart(saver: TakebackSaver):
    put(saver, "t", {"x": "root"})
    put(saver, "t", {"x": "child"}, ns="child:1")
    put(saver, "u", {"x": "other"})
    found = [saver.get_tuple(config(*where)) for where in (("t",), ("t", None, "child:1"), ("u",))]
    assert [one.checkpoint["channel_values"]["x"] for one in found] == ["root", "child", "other"]
    assert found[1].config["configurable"]["checkpoint_ns"] == "child:1"


def test_a_thread_may_be_called_by_a_number(saver: TakebackSaver):
    put(saver, 7, {"x": 1})  # type: ignore[arg-type]
    assert saver.get_tuple(config(7)).checkpoint["channel_values"] == {"x": 1}  # type: ignore[arg-type]


def test_channels_that_did_not_change_come_along(saver: TakebackSaver):
    long = ["unchanged " * 100]
    first = put(saver, "t", {"a": "1" * 500, "b": long})
    second = put(saver, "t", {"a": "2" * 500, "b": long}, after=first, versions={"a": 2, "b": 1}, new={"a": 2})
    third = put(saver, "t", {"a": "3" * 500}, after=second, versions={"a": 3}, new={"a": 3})
    got = [saver.get_tuple(where).checkpoint["channel_values"] for where in (first, second, third)]
    assert got == [{"a": "1" * 500, "b": long}, {"a": "2" * 500, "b": long}, {"a": "3" * 500}]
    rows = [row for row in saver.workspace.store.journal.rows(kinds=("value",))]
    assert len(rows) == 4  # b once


def test_a_channel_said_to_be_new_is_read_again_even_if_it_is_the_same_object(saver: TakebackSaver):
    grows = ["a" * 300]
    first = put(saver, "t", {"m": grows})
    grows.append("b")
    second = put(saver, "t", {"m": grows}, after=first, versions={"m": 2}, new={"m": 2})
    assert saver.get_tuple(first).checkpoint["channel_values"]["m"] == ["a" * 300]
    assert saver.get_tuple(second).checkpoint["channel_values"]["m"] == ["a" * 300, "b"]


def test_put_again_replaces(saver: TakebackSaver):
    stored = put(saver, "t", {"x": 1})
    checkpoint = saver.get_tuple(stored).checkpoint
    checkpoint["channel_values"] = {"x": 2}
    saver.put(config("t"), checkpoint, {"step": 9}, {"x": 1})
    assert saver.get_tuple(stored).checkpoint["channel_values"] == {"x": 2}
    assert ids(saver.list(config("t"))) == [checkpoint["id"]]


def test_versions_count_up_and_branches_differ(saver: TakebackSaver):
    first = saver.get_next_version(None, None)
    one, other = saver.get_next_version(first, None), saver.get_next_version(first, None)
    assert first < one and first < other and one != other
    assert saver.get_next_version(7, None).startswith(f"{8:032}.")  # type: ignore[arg-type]


# -- put_writes ---------------------------------------------------------------------


def test_writes_are_pending_in_the_order_in_which_a_step_applies_them(saver: TakebackSaver):
    where = put(saver, "t")
    saver.put_writes(where, [("c", "b0"), ("d", "b1")], "task-1", "~path-b")
    saver.put_writes(where, [("c", "a0")], "task-2", "~path-a")
    saver.put_writes(where, [("c", "none")], "task-3")
    assert saver.get_tuple(where).pending_writes == [
        ("task-3", "c", "none"), ("task-2", "c", "a0"), ("task-1", "c", "b0"), ("task-1", "d", "b1"),
    ]  # fmt: skip


def test_a_write_counts_the_first_time_but_an_interrupt_the_last(saver: TakebackSaver):
    where = put(saver, "t")
    for value in ("first", "second"):
        saver.put_writes(where, [("c", value)], "task")
        saver.put_writes(where, [(INTERRUPT, value), (RESUME, value), (ERROR, value)], "task")
    assert sorted(saver.get_tuple(where).pending_writes) == sorted(
        [("task", "c", "first"), ("task", INTERRUPT, "second"), ("task", RESUME, "second"), ("task", ERROR, "second")]
    )


def test_writes_may_come_before_their_checkpoint(saver: TakebackSaver):
    checkpoint = empty_checkpoint()
    saver.put_writes(config("t", checkpoint["id"]), [("c", 1)], "task")
    assert saver.get_tuple(config("t")) is None
    saver.put(config("t"), checkpoint, {"step": 0}, {})
    assert saver.get_tuple(config("t")).pending_writes == [("task", "c", 1)]


def test_writes_stay_with_their_checkpoint_and_namespace(saver: TakebackSaver):
    root, child = put(saver, "t"), put(saver, "t", ns="child:1")
    saver.put_writes(root, [("c", "root")], "task")
    saver.put_writes(child, [("c", "child")], "task")
    assert saver.get_tuple(child).pending_writes == [("task", "c", "child")]
    following = put(saver, "t", after=root)
    assert saver.get_tuple(following).pending_writes == []
    assert saver.get_tuple(root).pending_writes == [("task", "c", "root")]


# -- list ---------------------------------------------------------------------------


def test_list_newest_first_by_every_means(saver: TakebackSaver):
    made = chain(saver, "t", 4)
    chain(saver, "u", 2)
    assert ids(saver.list(config("t"))) == made[::-1]
    assert ids(saver.list(config("t"), limit=2)) == made[:1:-1]
    assert ids(saver.list(config("t"), limit=0)) == []
    assert ids(saver.list(config("t"), before=config("t", made[2]))) == made[1::-1]
    assert ids(saver.list(config("t"), before=config("t", made[3]), limit=1)) == [made[2]]
    assert ids(saver.list(config("t", made[1]))) == [made[1]]
    assert ids(saver.list(config("nobody"))) == []
    assert len(ids(saver.list(None))) == 6
    assert len(ids(saver.list(None, limit=5))) == 5


def test_list_by_metadata(saver: TakebackSaver):
    for source, step in (("input", 1), ("loop", 1), ("input", 2)):
        put(saver, "t", source=source, step=step, score=step * 10)
    wanted = [({"source": "input"}, 2), ({"step": 1}, 2), ({"source": "input", "step": 2}, 1), ({"score": 20}, 1),
              ({"source": "update"}, 0), ({"nobody": None}, 0), ({}, 3)]  # fmt: skip
    for asked, count in wanted:
        assert len(ids(saver.list(config("t"), filter=asked))) == count, asked
    assert len(ids(saver.list(None, filter={"source": "input"}, limit=1))) == 1


def test_list_by_namespace_and_with_writes(saver: TakebackSaver):
    chain(saver, "t", 2)
    child = put(saver, "t", ns="child:1")
    saver.put_writes(child, [("c", 1)], "task")
    (found,) = saver.list(config("t", ns="child:1"))
    assert found.pending_writes == [("task", "c", 1)]
    assert len(ids(saver.list(config("t")))) == 2
    assert len(ids(saver.list({"configurable": {"thread_id": "t"}}))) == 3


def test_list_goes_on_over_more_than_one_page(saver: TakebackSaver):
    made = chain(saver, "t", 150)
    assert ids(saver.list(config("t"))) == made[::-1]
    assert ids(saver.list(config("t"), before=config("t", made[20]), limit=3)) == made[19:16:-1]
    assert ids(saver.list(config("t"), filter={"step": 2})) == [made[2]]


# -- removing -----------------------------------------------------------------------


def test_delete_thread(saver: TakebackSaver):
    (first, *_) = chain(saver, "t", 2)
    put(saver, "t", ns="child:1")
    chain(saver, "u", 1)
    saver.put_writes(config("t", first), [("c", 1)], "task")
    saver.delete_thread("t")
    saver.delete_thread("nobody")
    assert ids(saver.list({"configurable": {"thread_id": "t"}})) == []
    assert saver.get_tuple(config("t", first)) is None
    assert len(ids(saver.list(config("u")))) == 1
    put(saver, "t", {"x": "again"})
    assert [one.checkpoint["channel_values"] for one in saver.list(config("t"))] == [{"x": "again"}]
    assert all(one.ok for one in saver.verify())


def test_delete_for_runs(saver: TakebackSaver):
    for ns in ("", "child:1"):
        gone = put(saver, "t", ns=ns, run_id="gone")
        put(saver, "t", after=gone, ns=ns, run_id="stays")
        saver.put_writes(gone, [("c", 1)], "task")
    saver.delete_for_runs([])
    saver.delete_for_runs(["nobody"])
    saver.delete_for_runs(["gone"])
    assert saver.get_tuple(gone) is None
    assert [one.metadata["run_id"] for one in saver.list({"configurable": {"thread_id": "t"}})] == ["stays", "stays"]


def test_copy_thread(saver: TakebackSaver):
    made = chain(saver, "t", 3, extra="yes")
    chain(saver, "t", 1, ns="child:1")
    saver.put_writes(config("t", made[1]), [("c", "w")], "task", "path")
    saver.copy_thread("t", "copy")
    for ns in ("", "child:1"):
        one, other = (list(saver.list(config(thread, ns=ns))) for thread in ("t", "copy"))
        assert [c.checkpoint for c in one] == [c.checkpoint for c in other]
        assert [c.metadata for c in one] == [c.metadata for c in other]
        assert [c.pending_writes for c in one] == [c.pending_writes for c in other]
    assert saver.get_tuple(config("copy", made[1])).parent_config == config("copy", made[0])
    saver.delete_thread("t")
    assert len(ids(saver.list(config("copy")))) == 3
    saver.copy_thread("nobody", "nothing")
    assert ids(saver.list(config("nothing"))) == []


def test_prune(saver: TakebackSaver):
    last = {ns: chain(saver, "t", 3, ns=ns)[-1] for ns in ("", "child:1")}
    saver.put_writes(config("t", last[""]), [("c", 1)], "task")
    other = chain(saver, "u", 2)
    saver.prune([])
    saver.prune(["nobody"])
    saver.prune(["t"], strategy="keep_latest")
    assert {ns: ids(saver.list(config("t", ns=ns))) for ns in last} == {ns: [id] for ns, id in last.items()}
    assert saver.get_tuple(config("t")).pending_writes == [("task", "c", 1)]
    assert saver.get_tuple(config("t")).checkpoint["channel_values"] == {"step": 2}
    assert ids(saver.list(config("u"))) == other[::-1]
    saver.prune(["t"], strategy="delete")
    assert ids(saver.list({"configurable": {"thread_id": "t"}})) == []
    with pytest.raises(UsageError, match="some-of-it"):
        saver.prune(["u"], strategy="some-of-it")


# -- opening, closing, several at once ------------------------------------------------


def test_state_alone_needs_no_init_and_scans_nothing(project: Path):
    (project / "a.txt").write_text("a")
    with TakebackSaver(project, files=False) as saver:
        put(saver, "t", {"x": 1})
        assert saver.workspace.store.journal.last("checkpoint") is None
        assert not [row for row in saver.workspace.store.journal.rows() if row.kind == "change"]
    with pytest.raises(NoWorkspace, match=str(project)) as refused:
        TakebackSaver(project)
    assert "takeback init" in refused.value.hint
    with takeback.open(project, create=True) as ws:  # protected later: the same journal
        assert ws.threads.get("t").meta["metadata"]["step"] == 0
    with TakebackSaver(project) as saver:
        assert saver.get_tuple(config("t")).checkpoint["channel_values"] == {"x": 1}


def test_files_need_a_protected_folder(project: Path, tmp_path: Path):
    with pytest.raises(NoWorkspace) as refused:
        TakebackSaver(project)
    assert "takeback init" in refused.value.hint
    with pytest.raises(TakebackError):
        TakebackSaver(tmp_path / "nowhere", files=False)


def test_a_workspace_that_is_open_stays_open(ws: takeback.Workspace):
    with TakebackSaver(ws) as saver:
        put(saver, "t", {"x": 1})
    assert ws.threads.get("t").workspace_checkpoint == ws.store.journal.last("checkpoint").id
    with pytest.raises(UsageError, match="closed"):
        saver.get_tuple(config("t"))


def test_a_closed_saver_says_so(project: Path):
    saver = TakebackSaver(project, files=False)
    clone = saver.with_allowlist([("some.module", "Class")])
    stored = put(saver, "t")
    saver.close()
    saver.close()
    for one in (saver, clone):
        for call in (lambda: one.get_tuple(stored), lambda: put(one, "t"), lambda: list(one.list(None)),
                     lambda: one.put_writes(stored, [("c", 1)], "x"), lambda: one.delete_thread("t"),
                     lambda: one.rollback_to("t", "x"), lambda: one.verify()):  # fmt: skip
            with pytest.raises(UsageError, match="closed"):
                call()


def test_calls_from_many_threads(saver: TakebackSaver):
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for made in [chain(saver, name, 10)]:
                assert ids(saver.list(config(name))) == made[::-1]
                saver.put_writes(config(name, made[-1]), [("c", name)], "task")
                assert saver.get_tuple(config(name)).pending_writes == [("task", "c", name)]
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    assert len(ids(saver.list(None))) == 60
