"""Threads and files over random histories, against a simple model: a dict of files, a dict of threads.

Nobody is known here, so every take-back goes back exactly. The model says what files and threads are after each step;
how many state checkpoints, layers and take-backs that took, it does not know.
More examples: TAKEBACK_TEST_EXAMPLES=2000 pytest tests/test_thread_model.py
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import takeback
from sampling import examples
from takeback.model.effects import Outcome
from takeback.model.thread_states import NewState
from takeback.system.safefs.portable import PortableFolder
from takeback.system.safefs.posix import PosixFolder

PATHS = ("p", "q")
THREADS = ("main", "sub agent")
SPACES = ("", "tools")

Files = dict[str, str]
Memory = dict[str, dict[str, int]]  # thread → namespace → value


class World(NamedTuple):
    files: Files
    threads: Memory


class Saved(NamedTuple):
    """A state checkpoint: what its thread was then, and the files as they were last looked at."""

    thread: str
    ns: str
    id: str
    state: dict[str, int]
    files: Files


class Remembering(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.base = Path(tempfile.mkdtemp())
        self.root = self.base / "project"
        self.root.mkdir()
        self.ws = takeback.open(self.root, create=True)
        self.files: Files = {}
        self.threads: Memory = {}
        self.looked: Files = {}
        self.saved: list[Saved] = []
        self.checkpoints: dict[str, World] = {}
        self.undone: list[World] = []  # what each take-back that redo can reverse went back from
        self.since: World | None = None  # the newest checkpoint, while nothing was taken back since
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "ws"):
            assert self.ws.verify().ok
            self.ws.close()
            shutil.rmtree(self.base)

    def world(self) -> World:
        return copy.deepcopy(World(self.files, self.threads))

    # -- doing ---------------------------------------------------------------

    @rule(path=st.sampled_from(PATHS), content=st.sampled_from(["", "a", "b", "c"]))
    def edit(self, path: str, content: str) -> None:
        if content:
            (self.root / path).write_text(content)
            self.files[path] = content
        else:
            (self.root / path).unlink(missing_ok=True)
            self.files.pop(path, None)
        self.undone.clear()

    @rule(thread=st.sampled_from(THREADS), ns=st.sampled_from(SPACES), value=st.integers(0, 3))
    def save(self, thread: str, ns: str, value: int) -> None:
        made = self.ws.threads.put(NewState(thread, ns, "", "", {"n": str(value).encode()}))
        self.threads.setdefault(thread, {})[ns] = value
        self.keep(thread, ns, made.id, self.looked)
        self.undone.clear()

    def keep(self, thread: str, ns: str, id: str, files: Files) -> None:
        self.saved.append(Saved(thread, ns, id, dict(self.threads[thread]), dict(files)))

    @rule()
    def checkpoint(self) -> None:
        self.number += 1
        self.ws.checkpoint(f"c{self.number}")
        self.looked = dict(self.files)
        self.checkpoints[f"c{self.number}"] = self.since = self.world()

    # -- taking back ---------------------------------------------------------

    def took(self, before: World, outcome: Outcome, looked: bool = True) -> None:
        assert outcome.whole
        if looked:
            self.looked = dict(self.files)
        if outcome.id:
            self.undone.append(before)
            self.since = None
        for thread in self.threads:
            head = self.ws.threads.find(thread)
            if head is not None and all(head.id != known.id for known in self.saved):
                self.keep(thread, "", head.id, self.looked)
        self.agree()

    @precondition(lambda self: self.checkpoints)
    @rule(data=st.data(), with_state=st.booleans())
    def rollback(self, data: st.DataObject, with_state: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.checkpoints)))
        target, before = copy.deepcopy(self.checkpoints[name]), self.world()
        self.files = target.files
        self.threads = target.threads if with_state else self.threads
        outcome = self.ws.rollback(name, state=with_state)
        ahead = {found.thread for found in outcome.plan.distance.state}
        differ = {t for t in THREADS if target.threads.get(t, {}) != self.threads.get(t, {})}
        assert ahead == (set() if with_state else differ), "what stays is told"
        self.took(before, outcome)

    @precondition(lambda self: self.saved)
    @rule(data=st.data(), with_files=st.booleans())
    def roll_back_thread(self, data: st.DataObject, with_files: bool) -> None:
        target = data.draw(st.sampled_from(self.saved))
        before, head = self.world(), self.ws.threads.find(target.thread)
        if head is None or head.id != target.id:
            self.threads[target.thread] = dict(target.state)
        if with_files:
            self.files = dict(target.files)
        outcome = self.ws.roll_back_thread(target.thread, target.id, with_files=with_files)
        self.took(before, outcome, looked=with_files)

    @precondition(lambda self: self.since is not None and self.since != World(self.files, self.threads))
    @rule(with_state=st.booleans())
    def undo(self, with_state: bool) -> None:
        assert self.since is not None
        if self.files == self.since.files and not with_state:
            return  # then it is an earlier turn that goes
        before, target = self.world(), copy.deepcopy(self.since)
        self.files = target.files
        self.threads = target.threads if with_state else self.threads
        self.took(before, self.ws.undo(state=with_state))

    @precondition(lambda self: self.undone)
    @rule()
    def redo(self) -> None:
        before, target = self.world(), self.undone.pop()
        left = list(self.undone)
        self.files, self.threads = copy.deepcopy(target)
        outcome = self.ws.redo()
        files = any(not r.path.startswith(b"//") for r in outcome.results)  # else the tree is not looked at
        self.took(before, outcome, looked=files)
        self.undone = left

    # -- what has to hold ----------------------------------------------------

    def agree(self) -> None:
        found = {path.name: path.read_text() for path in self.root.iterdir()}
        assert found == self.files
        for thread in THREADS:
            heads = self.ws.threads.heads_at(thread)
            now = {ns: self.ws.threads.load(state)["n"] for ns, state in heads.items()}
            assert now == self.threads.get(thread, {}), thread


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PosixFolder, "sync", lambda self: None)
    monkeypatch.setattr(PortableFolder, "sync", lambda self: None)


def test_threads_and_files_are_what_the_model_says():
    run_state_machine_as_test(
        Remembering,
        settings=examples(25, 200, steps=25),
    )
