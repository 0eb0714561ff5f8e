"""A command that outlives its agent: while it is at work, what changes is never a person's for certain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from takeback.model.calls import Call, Caller
from takeback.system import processes
from takeback.system.processes import Process
from takeback.workspace import Workspace

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="only Linux tells of other processes")

BASH = Call("1", "Bash", "Bash: make")
# An agent that begins a command when it is told to; that makes each file whose name it is given, until there is no more.
AGENT = """
import os, subprocess, sys
input()
command = "while read name; do echo 1 > $name; done; echo over > ../over"
marked = {**os.environ, "CLAUDECODE": "1"}
begun = subprocess.Popen(["sh", "-c", command], stdin=open(sys.argv[1]), env=marked, start_new_session=True)
print(begun.pid, flush=True)
begun.wait()
"""


class Killed:
    """An agent that can be killed in a call, while its command goes on."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self.pipe = ws.root.parent / "names"
        os.mkfifo(self.pipe)
        command = [sys.executable, "-c", AGENT, str(self.pipe)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ws.root)
        self.caller = Caller("claude", "s1", "", self.process.pid, processes.started(self.process.pid))
        ws.begin_turn(self.caller, "build")
        ws.begin_call(self.caller, BASH)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.names = self.pipe.open("w")
        self.command = int(self.process.stdout.readline())

    def makes(self, name: str) -> None:
        print(name, file=self.names, flush=True)
        until(self.ws.root / name)

    def dies(self, seen: bool = False) -> None:
        self.process.kill()
        self.process.wait()
        if seen:
            self.ws.end_gone(Process(self.caller.pid, self.caller.started), time.time())

    def ends(self) -> None:
        self.names.close()
        until(self.ws.root.parent / "over")
        while processes.started(self.command):
            time.sleep(0.01)


def until(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


@pytest.fixture
def agent(ws: Workspace) -> Iterator[Killed]:
    made = Killed(ws)
    yield made
    made.process.kill()
    made.names.close()
    for pipe in (made.process.stdin, made.process.stdout):
        assert pipe is not None
        pipe.close()
    made.process.wait()


def whose(ws: Workspace) -> dict[str, str]:
    ws.checkpoint("look")
    return {
        os.fsdecode(path): ", ".join(sorted(effect.actors)) + "?" * effect.uncertain
        for effect in ws.history().effects
        for path in effect.changes
    }


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])
def test_what_changes_while_it_goes_on_is_uncertain_and_a_persons_once_it_is_over(
    ws: Workspace, agent: Killed, seen: bool
):
    agent.makes("before.txt")
    agent.dies(seen)
    assert whose(ws) == {"before.txt": "claude" if seen else "claude?"}
    agent.makes("late.txt")
    (ws.root / "mine.txt").write_text("by hand\n")
    assert whose(ws).items() >= {"late.txt": "claude?", "mine.txt": "claude?"}.items()
    agent.makes("later.txt")
    agent.ends()
    assert whose(ws)["later.txt"] == "claude?", "it was made before that was over"
    (ws.root / "then.txt").write_text("by hand\n")
    assert whose(ws)["then.txt"] == ""


def test_a_plan_asks_about_it_and_without_an_answer_it_stays(ws: Workspace, agent: Killed):
    start = ws.history().checkpoints[0].id
    agent.makes("before.txt")
    agent.dies(seen=True)
    agent.makes("late.txt")
    plan = ws.plan("rollback", start)
    assert {kind: {u.path for u in units} for kind, units in plan.asks.items()} == {"uncertain": {b"late.txt"}}
    assert [step.path for step in plan.steps] == [b"before.txt"]
    ws.take_back("undo")
    assert sorted(os.listdir(ws.root)) == ["late.txt"]


def test_what_another_call_does_meanwhile_is_its_own(ws: Workspace, agent: Killed):
    agent.dies()
    other = Caller("codex", "s2")
    ws.begin_turn(other, "go on")
    ws.begin_call(other, BASH)
    (ws.root / "other.txt").write_text("codex's\n")
    ws.end_call(other, BASH)
    assert whose(ws)["other.txt"] == "codex"


def test_it_is_shown_as_at_work(ws: Workspace, agent: Killed):
    agent.dies()
    assert [call.summary for call in ws.status().at_work] == ["Bash: make"]
    agent.ends()
    ws.checkpoint("look")
    assert ws.status().at_work == ()


def test_the_command_of_an_agent_that_lives_is_none(ws: Workspace, agent: Killed):
    """It has an agent's mark too, and another agent was killed in the same folder."""
    living = Caller("claude", "s2", "", os.getpid(), processes.started(os.getpid()))
    ws.begin_turn(living, "something else")
    marked = {**os.environ, "CLAUDECODE": "1"}
    with subprocess.Popen(["sleep", "600"], cwd=ws.root, env=marked) as command:
        try:
            agent.dies()
            agent.ends()
            ws.checkpoint("look")
            (ws.root / "mine.txt").write_text("by hand\n")
            assert whose(ws)["mine.txt"] == ""
        finally:
            command.kill()


@pytest.mark.parametrize(("mark", "inside", "outlives"), [("1", True, True), ("1", False, False), ("0", True, False)])
def test_it_is_told_by_its_folder_and_an_agents_mark(ws: Workspace, agent: Killed, mark: str, inside: bool, outlives):
    agent.dies()
    agent.ends()
    (bracket,) = ws.history().brackets.values()
    assert not ws.outlives(bracket)
    command = ["sh", "-c", "sleep 600 > /dev/null & echo $!"]
    where, environ = ws.root if inside else ws.root.parent, {**os.environ, "CLAUDECODE": mark}
    begun = subprocess.run(command, cwd=where, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert ws.outlives(bracket) == outlives
    finally:
        os.kill(int(begun.stdout), signal.SIGKILL)
