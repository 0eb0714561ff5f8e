"""Agents' calls against the model, over random histories: whose each change is, and what take-backs make of it.

Two agents are prompted, open calls that name paths or scan, end them, forget to, leave them running in the background,
or are killed, while a person edits in between and somebody takes back. After each operation the trees are equal, every row has the same owners, and the same
units are live. More examples: TAKEBACK_TEST_EXAMPLES=2000 pytest tests/test_bracket_model.py
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import model
import takeback
from model import Change, Effect, Turn
from takeback.agents import ends
from takeback.journal.brackets import Call, Caller, End
from takeback.model.effects import text
from takeback.system import processes
from test_workspace_model import (
    START,
    Both,
    by_hand,
    consents,
    edits,
    examples,
    marks,
    merge,
    prunes,
    takebacks,
    vouched,
    without_waiting_for_the_disk,
)

assert without_waiting_for_the_disk  # a fixture: here too nobody waits for the disk

AGENTS = ("claude", "codex")  # codex makes one call at a time
NAMED = ("p", "q", "d/r")


@dataclass(eq=False)
class Bracket(model.Bracket):
    session: str = ""
    key: str = ""
    is_over: bool = False  # as anybody can tell
    may_have: frozenset[str] = frozenset()  # paths that changed when it may have been over, or was


@dataclass
class Model(model.Workspace):
    """The model with calls of sessions: one row per set of calls, and brackets of the dead closed by a whole look."""

    dead: set[str] = field(default_factory=set)  # sessions
    acted: list[int] = field(default_factory=list)  # before which entries a call began or ended
    prompts: list[int] = field(default_factory=list)  # and before which somebody asked an agent something

    def look(
        self,
        paths: Iterable[str] | None = None,
        vouched: Turn | None = None,
        over: Iterable[Bracket] = (),
        ending: Bracket | None = None,
    ) -> None:
        """Calls in `over` ended at a moment that nobody knows, as did those of the dead; one that an event ends did
        not."""
        whole = paths is None
        unsure = {id(b) for b in self.brackets if b in over or (b.session in self.dead and b is not ending)}
        seen = {*self.world, *self.known} - self.unobserved if paths is None else paths
        found: dict[object, tuple[frozenset[Turn], dict[str, Change], bool]] = {}
        for path in sorted(seen):
            before, after = self.known.get(path), self.world.get(path)
            if before != after:
                calls = self.calls(path)
                turns, is_unsure = (
                    frozenset(b.turn for b in calls),
                    any(id(b) in unsure or path in b.may_have for b in calls),
                )
                made = turns, {}, is_unsure
                if vouched and (is_unsure or not turns):  # what no call is known to own
                    made = frozenset({vouched}), {}, False
                found.setdefault((calls, is_unsure), made)[1][path] = Change(before, after)
            self.known[path] = after
        self.journal += [Effect(turns, changes, uncertain=unsure) for turns, changes, unsure in found.values()]
        if whole:
            self.drop([b for b in self.brackets if b.session in self.dead or b.is_over])

    def turns(self, seq: int) -> frozenset[Turn]:
        """A stretch by hand is a turn only where no agent made a call, even one that changed nothing."""
        found = super().turns(seq)
        if self.journal[seq].by_takeback or not any(turn.actor == "hand" for turn in found):
            return found
        named = [i for i, e in enumerate(self.journal) if isinstance(e, model.Checkpoint) and e.label]
        start, end = max((i for i in named if i < seq), default=0), min((i for i in named if i > seq), default=1 << 62)
        return frozenset() if any(start < at <= end for at in self.acted) else found

    def has_agent_since(self, target: int) -> bool:
        """Also where one was asked something, or made a call that changed nothing."""
        return (
            bool(self.brackets)
            or super().has_agent_since(target)
            or any(at > target for at in self.acted + self.prompts)
        )

    def calls(self, path: str) -> tuple[Bracket, ...]:
        """The open calls that named the path, else those that scan."""
        naming = tuple(b for b in self.brackets if b.paths is not None and path in b.paths)
        return naming or tuple(b for b in self.brackets if b.paths is None)

    def of(self, session: str) -> list[Bracket]:
        return [b for b in self.brackets if b.session == session]

    def prune(self, keep: int) -> None:
        super().prune(keep)
        horizon = next((seq for seq, entry in enumerate(self.journal) if entry is not None), 0)
        self.acted = [at for at in self.acted if at > horizon]
        self.prompts = [at for at in self.prompts if at > horizon]

    def drop(self, over: Iterable[Bracket]) -> None:
        gone = set(map(id, over))
        self.acted += [len(self.journal)] * bool(gone)
        self.brackets = [b for b in self.brackets if id(b) not in gone]


class Agents(Both):
    """The workspace and the model, with agents at work in real processes that can be killed."""

    def __init__(self, root: Path, home: Path | None) -> None:
        super().__init__(root, home)
        self.model = Model(dict(START), merge)
        self.keys = map(str, itertools.count(1))
        self.sessions: dict[str, tuple[Caller, subprocess.Popen[bytes]]] = {}
        self.asked: dict[str, Turn] = {}  # session → its turn

    def caller(self, agent: str) -> Caller:
        """The agent's session; a new one, in a process of its own, where there is none."""
        if agent not in self.sessions:
            process = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
            session = f"{agent}-{next(self.keys)}"
            made = Caller(agent, session, "", process.pid, processes.started(process.pid), agent == "codex")
            self.sessions[agent] = made, process
        return self.sessions[agent][0]

    def prompt(self, agent: str) -> None:
        caller = self.caller(agent)
        begun = self.ws.begin_turn(caller, f"do it {next(self.keys)}")  # the same words at once would be one prompt
        left = self.model.of(caller.session)
        self.model.look(over=left)
        self.model.drop(left)
        self.model.checkpoint("" if caller.session in self.asked else "begins")
        self.model.prompts.append(len(self.model.journal))
        self.asked[caller.session] = Turn(agent, begun.turn.number)

    def call(self, agent: str, named: tuple[str, ...]) -> None:
        caller, key = self.caller(agent), next(self.keys)
        paths = tuple(p.encode() for p in named)
        bracket = self.ws.begin_call(caller, Call(key, "Tool", f"Tool {key}", paths, scans=not named)).bracket
        over = self.model.of(caller.session) if caller.one_at_a_time else []
        scans = not named or any(b.paths is None for b in over)
        self.model.look(None if scans else {*named, *(p for b in over for p in b.paths or ())}, over=over)
        self.model.drop(over)
        if caller.session not in self.asked:
            self.asked[caller.session] = Turn(agent, bracket.turn.number)
            if scans:
                self.model.checkpoint("begins")
        assert bracket.turn == tuple(self.asked[caller.session])
        turn = self.asked[caller.session]
        self.model.acted.append(len(self.model.journal))
        self.model.brackets.append(Bracket(turn, frozenset(named) or None, caller.session, key))

    def ended(self, agent: str, which: int) -> None:
        if agent not in self.sessions or not (mine := self.model.of(self.caller(agent).session)):
            return
        bracket = mine[which % len(mine)]
        assert self.ws.end_call(self.caller(agent), Call(bracket.key, "Tool", "")).bracket is not None
        self.model.look(bracket.paths, ending=bracket)
        self.model.drop([bracket])

    def works(self, agent: str, named: tuple[str, ...], changes: list[tuple], ends: bool) -> None:
        """A whole call at once, or one that is never heard of again."""
        self.call(agent, named)
        self.check()
        for change in changes:
            self.hand(change)
        if ends:
            self.ended(agent, -1)

    def runs_on(self, agent: str, named: tuple[str, ...], when: tuple[int, ...]) -> None:
        """A call goes on in the background, and its agent tells of its end later: paths are changed before its agent
        turned to something else, before it was over, or after that, when it may have had a part in them too."""
        self.call(agent, named)
        bracket, moments = self.model.brackets[-1], []
        assert isinstance(bracket, Bracket)
        for part in range(3):
            for path, its in zip(NAMED, when, strict=True):
                if its == part:
                    self.hand((path, 0, next(self.keys)))
            time.sleep(0.02)  # files have the time of the kernel's last tick
            moments.append(time.time())
            time.sleep(0.02)
        bracket.may_have = frozenset(path for path, its in zip(NAMED, when, strict=True) if its)
        bracket.is_over = True
        told = End(moments[0], goes_on=True, over=moments[1])
        self.ws.observer.end_of = lambda b: told if b.call.key == bracket.key else ends.end_of(b, self.ws.outlives)
        self.checkpoint(False)

    def rests(self, agent: str) -> None:
        """It says that it is done, whatever it left open."""
        if agent not in self.sessions:
            return
        mine = self.model.of(self.caller(agent).session)
        self.ws.end_turn(self.caller(agent), whole_session=True)
        if mine:
            scans = any(b.paths is None for b in mine)
            self.model.look(None if scans else {p for b in mine for p in b.paths or ()}, over=mine)
            self.model.drop(mine)

    def dies(self, agent: str) -> None:
        if agent in self.sessions:
            caller, process = self.sessions.pop(agent)
            process.kill()
            process.wait()
            self.model.dead.add(caller.session)

    def check(self) -> None:
        super().check()
        history = self.ws.history()
        theirs = [e for e in history.effects if not e.takeback]
        ours = [(seq, row) for seq, row in self.model.rows() if not row.by_takeback]
        assert [_owners(e.turns) for e in theirs] == [_owners(row.turns) for _, row in ours]
        assert [e.uncertain for e in theirs] == [row.uncertain for _, row in ours]
        assert [sorted(map(text, e.changes)) for e in theirs] == [sorted(row.changes) for _, row in ours]
        # What undo would step over: an agent's turn, or a stretch by hand where no agent acted.
        assert [_owners(history.turns(e.seq), True) for e in theirs] == [
            _owners(self.model.turns(seq), True) for seq, _ in ours
        ]
        still = {b.key for b in self.model.brackets}
        assert {b.call.key for b in history.brackets.values() if not b.closed} == still
        from takeback.journal import brackets

        assert {b.call.key for b in brackets.open_ones(self.ws.store.journal)} == still

    def close(self) -> None:
        for agent in list(self.sessions):
            self.dies(agent)
        self.ws.close()


def _owners(turns: Iterable[tuple[str, object]], by_hand: bool = False) -> set[tuple[str, str]]:
    """Agents' turns by their id; of others, whose numbers differ, only who."""
    who = {"hand": ""} if by_hand else {}
    return {(who.get(actor, actor), str(number) if actor in AGENTS else "") for actor, number in turns}


@contextlib.contextmanager
def agents(operations: list[tuple], place: Path, disk: bool = False) -> Iterator[Agents]:
    folder = Path(tempfile.mkdtemp(dir=place))
    found = Agents(folder / "root", folder / "home" if disk else None)
    try:
        for operation in operations:
            found.play(*operation)
            found.check()
        yield found
    finally:
        found.close()
        shutil.rmtree(folder)


who = st.sampled_from(AGENTS)
naming = st.one_of(st.just(()), st.sets(st.sampled_from(NAMED), min_size=1).map(tuple))
at_work = st.one_of(
    st.tuples(st.just("works"), who, naming, st.lists(edits, min_size=1, max_size=3), st.booleans()),
    st.tuples(st.just("works"), who, naming, st.lists(edits, min_size=1, max_size=3), st.just(True)),
    st.tuples(st.just("call"), who, naming),
    st.tuples(st.just("call"), who, naming),
    st.tuples(st.just("hand"), edits),
    st.tuples(st.just("hand"), edits),
    st.tuples(st.just("ended"), who, st.integers(0, 2)),
    st.tuples(st.just("ended"), who, st.integers(0, 2)),
    st.tuples(st.just("prompt"), who),
    st.tuples(st.just("runs_on"), who, naming, st.tuples(*[st.integers(0, 2)] * len(NAMED))),
    st.tuples(st.just("rests"), who),
    st.tuples(st.just("dies"), who),
)
others = st.one_of(by_hand, vouched, marks, takebacks, takebacks)
stepping = st.tuples(st.sampled_from(("undo", "redo")), st.integers(1, 2), consents)
stories = st.lists(st.one_of(at_work, at_work, at_work, others, stepping), min_size=4, max_size=20)
pruned = st.lists(st.one_of(at_work, at_work, at_work, others, prunes), min_size=4, max_size=20)


@examples(3)
@given(stories)
def test_each_change_is_whose_the_model_says(tmp_path_factory, operations):
    with agents(operations, tmp_path_factory.getbasetemp()):
        pass


@examples(1)
@given(pruned)
def test_the_same_where_history_is_pruned(tmp_path_factory, operations):
    with agents(operations, tmp_path_factory.getbasetemp()) as story:
        assert story.ws.verify().ok


@examples(0.3)
@given(pruned)
def test_the_same_with_a_store_on_disk_reopened_each_time(tmp_path_factory, operations):
    with agents([], tmp_path_factory.getbasetemp(), disk=True) as story:
        for operation in operations:
            story.play(*operation)
            story.check()
            story.ws.close()
            story.ws = takeback.open(story.root, store=str(story.root.parent / "home"))
        assert story.ws.verify(data=True).ok


if sys.platform != "linux":  # elsewhere nobody tells when a process started, so none is known to be gone
    del test_each_change_is_whose_the_model_says, test_the_same_where_history_is_pruned
    del test_the_same_with_a_store_on_disk_reopened_each_time
