"""Turns of threads, and a person beside them: a thread's rollback leads each path to what others last made of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from sampling import examples
from takeback.threads import turns as thread_turns
from takeback.threads.turns import ThreadTurn
from takeback.workspace import Workspace

THREADS, PATHS = ("alice", "bob"), ("a", "b", "c")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.sampled_from(THREADS)),  # begins, or ends
        st.tuples(st.just("write"), st.sampled_from(PATHS)),
        st.tuples(st.just("remove"), st.sampled_from(PATHS)),
    ),
    max_size=24,
)


class Model:
    """What each look finds, and whose it is."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}
        self.known: dict[str, str] = {}
        self.open: set[str] = set()
        self.layers: dict[str, list[tuple[frozenset[str], str | None]]] = {}  # path → who, and what it was then

    def look(self) -> None:
        for path in {*self.now, *self.known}:
            if self.now.get(path) != self.known.get(path):
                self.layers.setdefault(path, []).append((frozenset(self.open), self.now.get(path)))
        self.known = dict(self.now)

    def rolled_back(self, thread: str) -> dict[str, str]:
        """While the newest changes are the thread's alone they go; what others made, also together with it, stays."""
        found = {}
        for path in PATHS:
            others = [after for who, after in self.layers.get(path, ()) if who != {thread}]
            last = others[-1] if others else None
            if last is not None:
                found[path] = last
        return found


@examples(25, 200)
@given(steps=STEPS, thread=st.sampled_from(THREADS))
def test_a_rollback_leads_each_path_to_what_others_last_made_of_it(steps: list[tuple[str, str]], thread: str):
    with tempfile.TemporaryDirectory() as folder, takeback.open(folder, create=True, store=f"{folder}-store") as ws:
        model, turns = Model(), dict[str, ThreadTurn]()
        first = ws.threads.save(thread, {"n": 0})
        for number, (what, which) in enumerate(steps):
            path = Path(folder) / which
            if what == "write":
                path.write_text(str(number))
                model.now[which] = str(number)
            elif what == "remove":
                path.unlink(missing_ok=True)
                model.now.pop(which, None)
            else:
                turn(ws, model, turns, which)
        for each in sorted(turns):
            turn(ws, model, turns, each)
        model.look()
        before = files(folder)
        assert before == model.now

        outcome = ws.roll_back_thread(thread, first.id, with_files=True) if has_turns(ws, thread) else None
        if outcome is None:
            return  # of a thread that only ever was saved everything goes
        assert files(folder) == model.rolled_back(thread)
        if outcome.id:
            ws.redo()
        assert files(folder) == before


def turn(ws: Workspace, model: Model, turns: dict[str, ThreadTurn], thread: str) -> None:
    model.look()
    if thread in turns:
        thread_turns.end(ws, turns.pop(thread))
        model.open.discard(thread)
    else:
        turns[thread] = thread_turns.begin(ws, "agent", thread, "")
        model.open.add(thread)


def has_turns(ws: Workspace, thread: str) -> bool:
    return bool(ws.history().turns_of((thread,)))


def files(folder: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in Path(folder).iterdir()}


def test_what_was_shared_goes_with_the_last_of_those_who_share_it(ws: Workspace):
    first = {name: ws.threads.save(name, {"n": 0}) for name in THREADS}
    turns = {name: thread_turns.begin(ws, "agent", name, "") for name in THREADS}
    (ws.root / "both").write_text("x")
    for name in THREADS:
        ws.threads.save(name, {"n": 1})
        thread_turns.end(ws, turns[name])
    kept = ws.roll_back_thread("alice", first["alice"].id, with_files=True)
    assert kept.left == (b"both",) and (ws.root / "both").exists()
    ws.roll_back_thread("bob", first["bob"].id, with_files=True)
    assert not (ws.root / "both").exists()


def test_what_another_thread_wrote_first_with_the_same_bytes_is_left_to_it_and_named(ws: Workspace):
    first = {}
    for number, name in enumerate(("bob", "alice")):
        first[name] = ws.threads.save(name, {"n": 0})
        turn = thread_turns.begin(ws, "agent", name, "")
        (ws.root / "both").write_text("x")
        os.utime(ws.root / "both", (number, number))
        ws.threads.save(name, {"n": 1})
        thread_turns.end(ws, turn)
    kept = ws.roll_back_thread("alice", first["alice"].id, with_files=True)
    assert kept.left == (b"both",) and (ws.root / "both").exists()
    ws.roll_back_thread("bob", first["bob"].id, with_files=True)
    assert not (ws.root / "both").exists()


def test_what_was_shared_goes_with_the_last_of_them_also_if_it_was_away_meanwhile(ws: Workspace):
    first = {name: ws.threads.save(name, {"n": 0}) for name in THREADS}
    turns = {name: thread_turns.begin(ws, "agent", name, "") for name in THREADS}
    (ws.root / "both").write_text("x")
    for name in THREADS:
        ws.threads.save(name, {"n": 1})
        thread_turns.end(ws, turns[name])
    (ws.root / "both").unlink()
    ws.look()
    removal = ws.history().effects[-1].id
    ws.roll_back_thread("alice", first["alice"].id, with_files=True)
    ws.revert(removal)
    assert (ws.root / "both").exists()
    ws.roll_back_thread("bob", first["bob"].id, with_files=True)
    assert not (ws.root / "both").exists()


def test_a_rollback_says_nothing_of_what_others_made_and_deleted_since(ws: Workspace):
    first = ws.threads.save("alice", {"n": 0})
    turn = thread_turns.begin(ws, "agent", "alice", "")
    (ws.root / "hers").write_text("x")
    ws.threads.save("alice", {"n": 1})
    thread_turns.end(ws, turn)
    (ws.root / "gone").write_text("a person's")
    ws.look()
    (ws.root / "gone").unlink()
    ws.look()
    assert ws.roll_back_thread("alice", first.id, with_files=True).left == ()
    assert files(str(ws.root)) == {}


@pytest.mark.parametrize("everything", [False, True])
def test_everything_is_taken_only_where_that_is_asked_for(ws: Workspace, everything: bool):
    first = ws.threads.save("alice", {"n": 0})
    turn = thread_turns.begin(ws, "agent", "alice", "")
    (ws.root / "hers").write_text("x")
    thread_turns.end(ws, turn)
    (ws.root / "mine").write_text("x")
    ws.roll_back_thread("alice", first.id, with_files=True, everything=everything)
    assert files(str(ws.root)) == ({} if everything else {"mine": "x"})
