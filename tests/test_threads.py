"""Threads: put once, found again, forked, removed; nothing rewritten, nothing believed that the journal does not say."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from sampling import examples
from takeback.errors import Damaged, Moved, NotFound, TakebackError, UsageError
from takeback.journal.journal import New
from takeback.model.thread_states import NewState, Write
from takeback.privacy.masking import mask_state
from takeback.threads import value_codec
from takeback.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return takeback.open(tmp_path / "project", create="state")


def again(ws: Workspace) -> Workspace:
    ws.close()
    return takeback.open(ws.root)


def chat(n: int, seed: int = 1) -> list[dict[str, str]]:
    words = random.Random(seed)
    return [{"role": "user", "content": words.randbytes(60).hex(), "id": f"m{at}"} for at in range(n)]


# -- saving and finding --------------------------------------------------------


def test_state_alone_needs_no_checkpoint_of_files(ws: Workspace) -> None:
    ws.threads.save("main", {"step": 1})
    assert ws.history().checkpoints == []
    assert [row.kind for row in ws.store.journal.rows()] == ["state"]


def test_a_saved_state_comes_back_in_another_process(ws: Workspace) -> None:
    state = {"messages": chat(50), "step": 3, "note": "ä\ud800", "empty": {}, "deep": {"a": [1, None, 2.5, True]}}
    saved = ws.threads.save("main", state, summary="three steps", agent="claude")
    ws = again(ws)
    head = ws.threads.get("main")
    assert (head.id, head.summary, head.agent, head.source) == (saved.id, "three steps", "claude", "save")
    assert ws.threads.load(head) == state


def test_each_state_follows_the_head(ws: Workspace) -> None:
    first = ws.threads.save("main", {"step": 1})
    second = ws.threads.save("main", {"step": 2})
    assert (first.parent, second.parent) == ("", first.id)
    assert [each.id for each in ws.threads.list("main")] == [second.id, first.id]
    assert ws.threads.load(ws.threads.get("main", first.id)) == {"step": 1}
    assert ws.threads.get("main", first.id[:6]).id == first.id


def test_who_went_on_from_an_older_head_is_told(ws: Workspace) -> None:
    seen = ws.threads.save("main", {"step": 1})
    mine = ws.threads.save("main", {"step": 2}, parent=seen.id)
    with pytest.raises(Moved) as told:
        ws.threads.save("main", {"step": 99}, parent=seen.id)
    assert mine.id in told.value.message and seen.id in told.value.message
    assert ws.threads.load(ws.threads.get("main")) == {"step": 2}
    with pytest.raises(Moved):
        ws.threads.save("main", {"step": 1}, parent="")


def test_of_two_writers_on_one_head_one_is_told(ws: Workspace) -> None:
    seen = ws.threads.save("main", {"step": 0})
    results: list[str] = []

    def write(step: int) -> None:
        try:
            ws.threads.save("main", {"step": step}, parent=seen.id)
            results.append("saved")
        except Moved:
            results.append("told")

    at_work = [threading.Thread(target=write, args=(step,)) for step in range(1, 9)]
    for each in at_work:
        each.start()
    for each in at_work:
        each.join()
    assert sorted(results) == ["saved"] + ["told"] * 7
    assert len(ws.threads.list("main")) == 2


def test_what_is_not_there_is_named(ws: Workspace) -> None:
    with pytest.raises(NotFound, match="no thread called 'main'"):
        ws.threads.get("main")
    a = ws.threads.save("main", {"step": 1})
    ws.threads.save("other", {"step": 1})
    with pytest.raises(NotFound, match="no state checkpoint zzzz"):
        ws.threads.get("main", "zzzz")
    with pytest.raises(NotFound, match=f"{a.id} is of thread main, not of other"):
        ws.threads.get("other", a.id)


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"a": {1, 2}}, r"state\.a is of type builtins\.set"),
        ({"messages": [1, {"content": object()}]}, r"state\.messages\[1\]\.content is of type builtins\.object"),
        ({"x": float("nan")}, r"state\.x is nan"),
        ({"x": [10**5000]}, r"state\.x\[0\] is a number too long"),
        ({"x": {1: 2}}, r"state\.x has a name that is no text: 1"),
        ({3: 1}, "state has a name that is no text: 3"),
        ([1], "state is no table"),
        ({"x": b"bytes"}, r"state\.x is of type builtins\.bytes"),
    ],
)
def test_what_cannot_be_saved_is_named_by_its_path(ws: Workspace, state: object, where: str) -> None:
    with pytest.raises(UsageError, match=where):
        ws.threads.save("main", state)  # type: ignore[arg-type]
    assert ws.store.journal.head().seq == 0


def test_a_state_that_nests_too_deep_is_refused(ws: Workspace) -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(UsageError, match="levels deep"):
        ws.threads.save("main", {"x": deep})


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "x" * 501, None])
def test_a_name_is_one_line(ws: Workspace, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a thread"):
        ws.threads.save(name, {"step": 1})


# -- what is stored ------------------------------------------------------------


def size(ws: Workspace) -> int:
    folder = ws.store.folder
    assert folder is not None
    ws.store.journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return ws.store.blobs.size() + (folder / "journal.db").stat().st_size


def test_an_unchanged_value_is_stored_once(ws: Workspace) -> None:
    large = random.Random(1).randbytes(20_000).hex()
    for step in range(30):
        ws.threads.save("main", {"step": step, "large": large})
    kinds = [row.kind for row in ws.store.journal.rows()]
    assert kinds.count("value") == 1 and size(ws) < 200_000


def test_a_conversation_that_grows_costs_what_is_added(ws: Workspace) -> None:
    messages = chat(400)
    whole = 0
    for step in range(1, 401):
        ws.threads.save("main", {"messages": messages[:step]})
        whole += len(json.dumps(messages[:step]))
    assert size(ws) < 0.15 * whole
    ws = again(ws)
    for each, step in zip(reversed(ws.threads.list("main")), range(1, 401)):
        assert ws.threads.load(each) == {"messages": messages[:step]}


def test_a_large_value_lies_in_the_packs_and_survives_a_prune(ws: Workspace) -> None:
    large = random.Random(2).randbytes(400_000).hex()
    ws.threads.save("main", {"large": large})
    ws.threads.save("main", {"large": large + "more"})
    ws.prune(keep=1)
    ws = again(ws)
    assert [ws.threads.load(each)["large"] for each in ws.threads.list("main")] == [large + "more", large]
    assert ws.verify(data=True).ok


@examples(25, 200)
@given(st.lists(st.binary(max_size=4000), min_size=1, max_size=25), st.randoms(use_true_random=False))
def test_a_value_is_read_as_it_was_written_whatever_it_stands_on(parts: list[bytes], chance: random.Random) -> None:
    held: dict[bytes, bytes] = {}
    packs: dict[bytes, bytes] = {}
    base = None
    data = b""
    for part in parts:
        at = chance.randrange(len(data) + 1)
        data = data[:at] + part + data[at:]
        id = value_codec.id_of(data)
        found = value_codec.encode(data, id, base, largest=chance.choice([100, value_codec.ROW]))
        held[id] = found.body or value_codec.packed(id)
        packs[id] = data
        base = (id, data, found.depth)

        def read(id: bytes) -> bytes:
            return value_codec.decode(held[id], read, packs.__getitem__, lambda place: b"")

        assert read(id) == data and found.depth < value_codec.CHAIN


# -- namespaces, writes ----------------------------------------------------------


def put(ws: Workspace, ns: str, id: str, parent: str = "", **data: str) -> None:
    packed = {name: b"text\0" + value.encode() for name, value in data.items()}
    ws.threads.put(NewState("t", ns, id, parent, packed, codec="typed", source="langgraph"))


@pytest.mark.parametrize("capture", [False, True])
def test_what_is_put_is_what_is_read_again(project: Path, capture: bool) -> None:
    with takeback.open(project, create=True) as ws:
        (project / "a").write_text("a")
        made = ws.threads.save("main", {"n": 1}, capture=capture)
        ws.threads.forget()
        assert ws.threads.get("main") == made


def test_writes_are_ordered_as_a_step_applies_them(ws: Workspace) -> None:
    ws.threads.put_writes(
        "t", "", "c1", "task-b", "~2", [Write(0, "x", b"3", "task-b"), Write(-1, "e", b"old", "task-b")]
    )
    put(ws, "", "c1", x="1")
    ws.threads.put_writes("t", "", "c1", "task-a", "~1", [Write(0, "x", b"1", "task-a"), Write(1, "x", b"2", "task-a")])
    ws.threads.put_writes(
        "t", "", "c1", "task-b", "~2", [Write(0, "x", b"no", "task-b"), Write(-1, "e", b"new", "task-b")]
    )
    ws = again(ws)
    found = ws.threads.writes(ws.threads.get("t", "c1"))
    assert [(w.channel, w.data) for w in found] == [("x", b"1"), ("x", b"2"), ("e", b"new"), ("x", b"3")]


def test_going_back_takes_the_namespaces_along(ws: Workspace) -> None:
    put(ws, "", "c1", x="1")
    put(ws, "child", "s1", y="1")
    put(ws, "", "c2", "c1", x="2")
    then = ws.threads.document("t")
    put(ws, "child", "s2", "s1", y="2")
    put(ws, "grandchild", "g1", z="1")
    put(ws, "", "c3", "c2", x="3")
    before = ws.threads.list("t")
    with ws.writing():
        made = ws.threads.restore("t", then)
    assert ws.threads.document("t") == then
    assert {s.ns: s.restored_from for s in made} == {"": "c2", "child": "s1", "grandchild": ""}
    assert {s.ns: s.parent for s in made} == {"": "c3", "child": "s2", "grandchild": "g1"}
    assert ws.threads.find("t", ns="grandchild") is None and ws.threads.find("t", "g1", "grandchild") is not None
    assert all(each in ws.threads.list("t") for each in before), "nothing is deleted"
    head = ws.threads.get("t")
    assert ws.threads.values(head) == {"x": b"text\x002"}
    assert head.id > "c3" or len(head.id) == 36
    with ws.writing():
        assert ws.threads.restore("t", then) == []


# -- forks, copies, handoffs -----------------------------------------------------


def test_a_fork_leaves_the_original_and_refuses_a_name_that_is_taken(ws: Workspace) -> None:
    first = ws.threads.save("main", {"step": 1})
    ws.threads.save("main", {"step": 2})
    made = ws.threads.fork("main", first.id, "other")
    assert made.forked_from == ("main", first.id) and ws.threads.load(made) == {"step": 1}
    ws.threads.save("other", {"step": 10})
    assert ws.threads.load(ws.threads.get("main")) == {"step": 2} and len(ws.threads.list("main")) == 2
    with pytest.raises(UsageError, match="there is a thread main already"):
        ws.threads.fork("other", made.id, "main")
    assert [t.forked_from for t in ws.threads.all()] == [("main", first.id), None]


def test_what_a_fork_needs_outlives_its_origin(ws: Workspace) -> None:
    messages = chat(200)
    for step in range(1, 21):
        ws.threads.save("main", {"messages": messages[: step * 10]})
    middle = ws.threads.list("main")[10]
    expected = ws.threads.load(middle)
    ws.threads.fork("main", middle.id, "other")
    assert ws.threads.remove("main") == 20
    assert [t.thread for t in ws.threads.all()] == ["other"]
    pruned = ws.prune(keep=1)
    assert pruned.rows > 0
    ws = again(ws)
    assert ws.threads.load(ws.threads.get("other")) == expected
    assert ws.verify(data=True).ok and all(each.ok for each in ws.threads.verify())
    with pytest.raises(NotFound):
        ws.threads.get("main")


def test_a_removal_is_journaled_and_its_bytes_go_at_the_next_prune(ws: Workspace) -> None:
    secret = "swordfish" * 100 + random.Random(3).randbytes(3000).hex()
    ws.threads.save("main", {"x": secret})
    ws.threads.save("other", {"x": 1})
    ws.threads.put_writes("main", "", "c", "t", "", [Write(0, "x", secret.encode(), "t")])
    rows = ws.store.journal.head().seq
    assert ws.threads.remove("main") == 1 and ws.threads.remove("main") == 0
    assert ws.store.journal.head().seq == rows + 1 and ws.verify().ok
    assert ws.threads.list("main") == []
    ws.prune(keep=1)
    folder = ws.store.folder
    ws.close()
    assert folder is not None
    assert not any(b"swordfish" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    ws = takeback.open(ws.root)
    assert ws.verify(data=True).ok and ws.threads.load(ws.threads.get("other")) == {"x": 1}


def test_what_another_process_pruned_is_stored_again(ws: Workspace) -> None:
    kept = {"grows": chat(9), "same": chat(3)}
    for state in ({"grows": chat(8), "same": chat(3)}, kept):
        ws.threads.save("main", state)
    with takeback.open(ws.root) as other:
        other.threads.remove("main")
        assert other.prune().rows > 2
    saved = [ws.threads.save("again", kept), ws.threads.save("main", {**kept, "grows": chat(10)})]
    ws = again(ws)
    assert [len(ws.threads.load(ws.threads.get(each.thread, each.id))["grows"]) for each in saved] == [9, 10]
    assert ws.verify(data=True).ok


def test_a_value_that_is_damaged_does_not_stop_a_prune(ws: Workspace) -> None:
    ws.threads.save("main", {"x": chat(5)})
    ws.threads.save("other", {"x": chat(5, seed=2)})
    ws.threads.remove("main")
    value = [row.seq for row in ws.store.journal.rows() if row.kind == "value"][1]
    edit(ws, f"UPDATE log SET body = substr(body, 1, 60) || x'ff' || substr(body, 62) WHERE seq = {value}")
    ws = takeback.open(ws.root)
    assert ws.prune().rows == 0, "nobody knows what it stands on, so that nothing goes"


def test_lost_writes_are_not_left_out_of_a_copy(ws: Workspace) -> None:
    put(ws, "", "c1", x="1")
    ws.threads.put_writes("t", "", "c1", "task", "", [Write(0, "x", b"2", "task")])
    assert len(ws.threads.writes(ws.threads.get("t"))) == 1
    edit(ws, "UPDATE log SET body = replace(body, 'task', 'tusk') WHERE kind = 'writes'")
    ws = takeback.open(ws.root)
    with pytest.raises(Damaged, match="the writes after c1"):
        ws.threads.copy("t", "copy")
    assert not ws.threads.list("copy")


def test_altered_writes_that_nobody_has_seen_yet_are_not_left_out(ws: Workspace) -> None:
    put(ws, "", "c1", x="1")
    put(ws, "", "c2", "c1", x="2")
    ws.threads.save("other", {"n": 1})
    ws.threads.put_writes("t", "", "c2", "task", "", [Write(0, "x", b"3", "task")])
    ws.threads.save("later", {"n": 1})
    row = ws.store.journal.newest("writes")
    edit(ws, "UPDATE log SET body = replace(body, 'task', 'tusk') WHERE kind = 'writes'")
    (ws.store.folder or Path()).joinpath("threads.db").unlink()
    ws = takeback.open(ws.root)
    head = ws.threads.get("t")
    assert head.id == "c2", "no head is in doubt"
    for thread in ("t", "other"):
        with pytest.raises(Damaged, match=f"row {row} was altered"):
            ws.threads.writes(ws.threads.get(thread))
    with pytest.raises(Damaged, match=f"row {row} was altered"):
        ws.threads.copy("t", "copy")
    for state in (ws.threads.get("t", "c1"), ws.threads.get("later"), ws.threads.fork("t", "c2", "again")):
        assert not ws.threads.writes(state), "it was not the newest of its namespace when that was written"
    assert not ws.verify().ok and not all(each.ok for each in ws.threads.verify())


def test_writes_that_a_prune_took_are_no_loss(ws: Workspace) -> None:
    put(ws, "", "c1", x="1")
    ws.threads.put_writes("t", "", "c1", "task", "", [Write(0, "x", b"3", "task")])
    ws.threads.save("other", {"n": 1})
    ws.threads.put_writes("gone", "", "c1", "task", "", [Write(0, "x", b"3", "task")])
    ws.threads.save("gone", {"n": 1})
    ws.threads.remove("gone")
    assert ws.prune().rows
    ws.close()
    (ws.store.folder or Path()).joinpath("threads.db").unlink()
    ws = takeback.open(ws.root)
    assert len(ws.threads.writes(ws.threads.get("t"))) == 1 and not ws.threads.writes(ws.threads.get("other"))


def test_a_copy_has_all_ids_and_writes(ws: Workspace) -> None:
    put(ws, "", "c1", x="1")
    put(ws, "child", "s1", y="1")
    put(ws, "", "c2", "c1", x="2")
    ws.threads.put_writes("t", "", "c2", "task", "", [Write(0, "x", b"3", "task")])
    assert ws.threads.copy("t", "copy") == 3
    for ns in ("", "child"):
        one, other = ws.threads.list("t", ns), ws.threads.list("copy", ns)
        assert [(s.id, s.parent, s.refs) for s in one] == [(s.id, s.parent, s.refs) for s in other]
    assert [w.data for w in ws.threads.writes(ws.threads.get("copy"))] == [b"3"]
    assert ws.threads.copy("nothing", "x") == 0


def test_a_handoff_is_adopted_once_by_whom_it_is_for(ws: Workspace) -> None:
    state = ws.threads.save("main", {"step": 1})
    ws.threads.save("main", {"step": 2})
    handoff = ws.threads.handoff("main", state.id, to_agent="codex", note="go on", agent="claude")
    with pytest.raises(UsageError, match="handed to codex, not to gemini"):
        ws.threads.adopt(handoff.id, agent="gemini")
    made = ws.threads.adopt(handoff.id[:8], agent="codex")
    assert (made.thread, made.agent, made.source) == ("main@codex", "codex", "adopt")
    assert ws.threads.load(made) == {"step": 1}
    with pytest.raises(UsageError, match="adopted already"):
        ws.threads.adopt(handoff.id)
    assert ws.threads.handed_over()[0].adopted_as == ("main@codex", made.id)
    with pytest.raises(NotFound):
        ws.threads.adopt("zzzz")


def test_what_began_with_a_subgraph_is_the_whole_thread_of_that_moment(ws: Workspace) -> None:
    put(ws, "", "c1", x="1")
    put(ws, "child", "s1", y="1")
    put(ws, "child", "s2", "s1", y="2")
    put(ws, "", "c2", "c1", x="2")
    handoff = ws.threads.handoff("t", "s1", to_agent="codex")
    for made in (ws.threads.adopt(handoff.id), ws.threads.fork("t", "s1", "forked")):
        assert made.ns == "" and ws.threads.find(made.thread) == made
        then = {ns: ws.threads.load(state) for ns, state in ws.threads.heads_at(made.thread).items()}
        assert then.keys() == {"", "child"}
        assert ws.threads.values(made) == {"x": b"text\x001"}
        child = ws.threads.find(made.thread, ns="child")
        assert child is not None and ws.threads.values(child) == {"y": b"text\x001"}


def test_a_subgraph_whose_thread_had_no_state_is_not_handed_over(ws: Workspace) -> None:
    put(ws, "child", "s1", y="1")
    put(ws, "", "c1", x="1")
    with pytest.raises(UsageError, match="s1 is of child, and thread t has no state of its own"):
        ws.threads.handoff("t", "s1", to_agent="codex")
    with pytest.raises(UsageError, match="nothing was changed"):
        ws.threads.fork("t", "s1", "forked")
    assert not ws.threads.handed_over() and not ws.threads.list("forked")


def test_removing_a_run_leaves_what_others_made_of_it(ws: Workspace) -> None:
    states = [
        ws.threads.put(NewState("t", "", id, "", {"x": id.encode()}, codec="typed", source="langgraph", run=run))
        for id, run in (("1", "kept"), ("2", "gone"), ("3", "kept"))
    ]
    ws.threads.fork("t", "2", "forked")
    ws.roll_back_thread("t", "2")
    assert ws.threads.remove_runs(["gone"]) == 1
    for thread in ("t", "forked"):
        assert ws.threads.values(ws.threads.get(thread)) == {"x": b"2"}
    assert [state.id for state in ws.threads.list("t")][1:] == [states[2].id, states[0].id]


def test_of_two_who_adopt_one_handoff_one_is_told(ws: Workspace) -> None:
    ws.threads.save("main", {"step": 1})
    for number in range(8):
        handoff = ws.threads.handoff("main", to_agent="codex")
        start, told = threading.Barrier(2), []

        def adopt(name: str, id: str = handoff.id, start: threading.Barrier = start, told: list[str] = told) -> None:
            with takeback.open(ws.root) as own:
                start.wait()
                try:
                    told.append(own.threads.adopt(id, new_thread=name).thread)
                except UsageError as error:
                    assert "adopted already" in error.message

        both = [threading.Thread(target=adopt, args=(f"{side}{number}",)) for side in "ab"]
        for each in both:
            each.start()
        for each in both:
            each.join()
        begun = [name for name in ws.threads.names() if name in (f"a{number}", f"b{number}")]
        assert told == begun and len(begun) == 1


# -- seeing ----------------------------------------------------------------------


def test_differences_are_named_by_path(ws: Workspace) -> None:
    a = ws.threads.save("main", {"messages": [{"content": "one"}, {"content": "two"}], "gone": 1, "same": [1]})
    ws.threads.save(
        "main", {"messages": [{"content": "one"}, {"content": "2"}, {"content": "3"}], "new": True, "same": [1]}
    )
    assert [tuple(d) for d in ws.threads.diff("main", a.id)] == [
        ("messages[1].content", "changed", "two", "2"),
        ("messages[2]", "added", None, {"content": "3"}),
        ("gone", "removed", 1, None),
        ("new", "added", None, True),
    ]
    assert ws.threads.diff("main", a.id, a.id) == []


def test_words_are_found_in_summaries_and_in_state(ws: Workspace) -> None:
    ws.threads.save("main", {"messages": [{"content": "Deploy the FROBNICATOR now"}]}, summary="first plan")
    ws.threads.save("main", {"messages": [{"content": "nothing"}]}, summary="second")
    ws.threads.save("other", {"messages": []}, summary="another plan")
    assert [f.checkpoint.summary for f in ws.threads.search("plan")] == ["another plan", "first plan"]
    found = ws.threads.search("frobnicator deploy")
    assert [(f.where, f.checkpoint.thread) for f in found] == [("messages", "main")]
    assert "FROBNICATOR" in found[0].excerpt
    assert ws.threads.search("plan", thread="main")[0].checkpoint.thread == "main"
    with pytest.raises(UsageError):
        ws.threads.search("  ")


@pytest.mark.parametrize("between", range(60, 100, 3))
def test_an_excerpt_is_masked_before_it_is_cut(ws: Workspace, between: int) -> None:
    """Wherever the cut falls: in a secret, or between its name and it."""
    secret = "ghp_" + "a1B2" * 9
    gap = "x" * between
    for text in (f"{secret} {gap} here", f"here {gap} {secret}", f"password: hunter42 {gap} here"):
        ws.threads.save("main", {"text": text})
    found = ws.threads.search("here", mask=mask_state)
    assert len(found) == 3 and all("here" in each.excerpt for each in found)
    shown = " ".join(each.excerpt for each in found)
    assert "B2a1" not in shown and "hunter42" not in shown


def test_a_secret_in_a_summary_is_not_journaled(ws: Workspace) -> None:
    ws.threads.save("main", {"x": 1}, summary="used sk-ant-api03-" + "a" * 95)
    assert "sk-ant-api03-aaaa" not in ws.threads.get("main").summary


# -- damage ----------------------------------------------------------------------


def edit(ws: Workspace, sql: str, *more: object) -> None:
    ws.close()
    assert ws.store.folder is not None
    with sqlite3.connect(ws.store.folder / "journal.db") as db:
        db.execute(sql, more)
    db.close()


MUTATIONS = {
    "a state's body": "UPDATE log SET body = replace(body, 'main', 'mean') WHERE seq = {state}",
    "a state's body emptied": "UPDATE log SET body = x'' WHERE seq = {state}",
    "a state's body removed": "UPDATE log SET body = NULL WHERE seq = {state}",
    "a state's hash": "UPDATE log SET hash = zeroblob(32) WHERE seq = {state}",
    "a value's bytes": "UPDATE log SET body = substr(body, 1, 60) || x'ff' || substr(body, 62) WHERE seq = {value}",
    "a value removed": "UPDATE log SET body = NULL WHERE seq = {value}",
    "a value emptied": "UPDATE log SET body = x'' WHERE seq = {value}",
    "a state's kind": "UPDATE log SET kind = 'note' WHERE seq = {state}",
    "a state's number": "UPDATE log SET seq = 1000 WHERE seq = {state}",
    "a row deleted": "DELETE FROM log WHERE seq = {state}",
    "the tail cut": "DELETE FROM log WHERE seq > {value}",
    "the time": "UPDATE log SET at = at + 1 WHERE seq = {state}",
}


@pytest.mark.parametrize("what", MUTATIONS)
def test_every_mutation_is_found_and_named(ws: Workspace, what: str) -> None:
    for step in range(4):
        ws.threads.save("main", {"messages": chat(5, step)})
    rows = list(ws.store.journal.rows())
    state = [row.seq for row in rows if row.kind == "state"][1]
    value = [row.seq for row in rows if row.kind == "value"][1]
    edit(ws, MUTATIONS[what].format(state=state, value=value))
    ws = takeback.open(ws.root)
    verified = ws.verify()
    assert not verified.ok
    bad = [each for each in ws.threads.verify() if not each.ok]
    expected = {"the tail cut": value + 1}.get(what, value if "value" in what else state)
    told = " ".join([verified.first_bad, *(each.why for each in bad), *(str(each.seq) for each in bad)])
    assert str(expected) in told, (told, expected)
    if "value" in what:
        assert any(each.thread == "main" and "messages" in each.why for each in bad), "what it costs is named"


def test_a_damaged_value_is_never_handed_out(ws: Workspace) -> None:
    saved = ws.threads.save("main", {"messages": chat(5)})
    ws.threads.save("main", {"messages": chat(9)})
    value = next(row.seq for row in ws.store.journal.rows() if row.kind == "value")
    edit(ws, f"UPDATE log SET body = substr(body, 1, 60) || x'ff' || substr(body, 62) WHERE seq = {value}")
    ws = takeback.open(ws.root)
    with pytest.raises(Damaged, match=f"row {value}"):
        ws.threads.load(ws.threads.get("main", saved.id))


def test_an_older_state_is_never_taken_for_the_head(ws: Workspace) -> None:
    first = ws.threads.save("main", {"step": 1})
    second = ws.threads.save("main", {"step": 2})
    edit(ws, f"UPDATE log SET body = replace(body, 'main', 'mean') WHERE seq = {second.seq}")
    assert ws.store.folder is not None
    for index in ("kept", "made anew"):
        if index == "made anew":
            (ws.store.folder / "threads.db").unlink()
        ws = takeback.open(ws.root)
        with pytest.raises(Damaged, match=f"row {second.seq}"):
            ws.threads.get("main")
        with pytest.raises(Damaged, match=f"row {second.seq}"):
            ws.threads.save("main", {"step": 3})
        assert ws.threads.load(ws.threads.get("main", first.id)) == {"step": 1}
        ws.close()
    ws = takeback.open(ws.root)
    ws.threads.save("main", {"step": 3}, parent=first.id)
    assert ws.threads.load(ws.threads.get("main")) == {"step": 3}


@pytest.mark.parametrize("how", ["gone", "torn", "another schema", "lies", "behind"])
def test_the_index_is_only_a_cache(ws: Workspace, how: str) -> None:
    for step in range(6):
        ws.threads.save("main", {"step": step, "messages": chat(step + 3)})
    expected = [(s.id, ws.threads.load(s)) for s in ws.threads.list("main")]
    assert ws.store.folder is not None
    path = ws.store.folder / "threads.db"
    ws.close()
    if how == "gone":
        path.unlink()
    elif how == "torn":
        path.write_bytes(path.read_bytes()[:5000] + b"rubbish" * 500)
    else:
        with sqlite3.connect(path) as db:
            if how == "another schema":
                db.execute("CREATE TRIGGER evil AFTER INSERT ON held BEGIN DELETE FROM checkpoints; END")
            elif how == "behind":
                db.execute("DELETE FROM checkpoints WHERE seq > 3")
                db.execute("UPDATE followed SET seq = 3, hash = x'00'")
            else:
                db.execute("UPDATE followed SET hash = x'00'")
                db.execute("DELETE FROM checkpoints")
        db.close()
    ws = takeback.open(ws.root)
    assert [(s.id, ws.threads.load(s)) for s in ws.threads.list("main")] == expected


def test_an_older_program_is_told_that_the_store_is_newer(ws: Workspace) -> None:
    db = ws.store.journal._db
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    ws.threads.save("main", {"step": 1})
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    edit(ws, "PRAGMA user_version=3")
    with pytest.raises(TakebackError, match="newer takeback"):
        takeback.open(ws.root)


def test_a_part_that_failed_does_not_hide_that_there_is_state(ws: Workspace) -> None:
    twice = New("state", "same", {})
    with ws.threads.together():
        with pytest.raises(Damaged):
            ws.store.journal.append([twice, twice], 1.0)
        put(ws, "", "c1", x="1")
    assert ws.store.journal._db.execute("PRAGMA user_version").fetchone() == (2,)
    assert [state.id for state in ws.threads.list()] == ["c1"]


def test_the_newest_are_found_where_one_was_put_many_times(ws: Workspace) -> None:
    for id in ("a", "b", *"ccccccccc"):
        put(ws, "", id, x=id)
    for limit in (1, 2, 3, 4, None):
        assert [state.id for state in ws.threads.list("t", limit=limit)] == ["c", "b", "a"][:limit]


def test_every_verb_has_a_twin_that_does_not_block_the_loop(ws: Workspace) -> None:
    import asyncio
    import time

    async def both() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        held = ws.store.write
        held.acquire(1)
        try:
            saving = asyncio.create_task(ws.threads.asave("main", {"step": 1}))
            deadline = time.monotonic() + 10
            while ticks < 20 and time.monotonic() < deadline:
                await asyncio.sleep(0.001)
        finally:
            held.release()
        saved = await saving
        ticking.cancel()
        assert await ws.threads.aload(await ws.threads.aget("main", saved.id)) == {"step": 1}
        assert [each.ok for each in await ws.threads.averify()] == [True]
        return ticks

    assert asyncio.run(both()) >= 20


# -- several at once -------------------------------------------------------------

WRITER = """
import sys, takeback
ws = takeback.open(sys.argv[1])
for step in range(40):
    ws.threads.save(sys.argv[2], {"step": step, "messages": ["x" * 50] * step})
"""


def test_a_verify_takes_nothing_from_those_who_read_and_write_meanwhile(ws: Workspace) -> None:
    ws.threads.save("main", {"n": 0, "x": chat(3)})
    code = f"""if True:
        import sys, takeback
        with takeback.open({str(ws.root)!r}) as ws:
            while True:
                bad = [each for each in ws.threads.verify() if not each.ok]
                print(bad, flush=True) if bad else None
    """
    at_work = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for n in range(1, 61):
            head = ws.threads.save("main", {"n": n, "x": chat(3, seed=n)}, parent=ws.threads.get("main").id)
            with takeback.open(ws.root) as other:
                assert other.threads.get("main").id == head.id and other.threads.load(head)["n"] == n
        assert len(ws.threads.list("main")) == 61
    finally:
        for each in at_work:
            each.kill()
    assert [each.communicate()[0] for each in at_work] == ["", ""]


def test_several_processes_and_threads_write_at_once(ws: Workspace) -> None:
    procs = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(ws.root), name]) for name in ("a", "b", "shared", "shared")
    ]

    def write(name: str) -> None:
        for step in range(40):
            ws.threads.save(name, {"step": step})

    at_work = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(4)]
    for each in at_work:
        each.start()
    for each in at_work:
        each.join()
    assert [proc.wait() for proc in procs] == [0, 0, 0, 0]
    counts = {seen.thread: seen.checkpoints for seen in ws.threads.all()}
    assert counts == {"a": 40, "b": 40, "shared": 80, "t0": 40, "t1": 40, "t2": 40, "t3": 40}
    assert all(each.ok for each in ws.threads.verify()) and ws.verify().ok
    parents = [each.parent for each in ws.threads.list("shared")]
    assert len(set(parents)) == 80, "one chain"
