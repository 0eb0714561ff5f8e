"""Whether an agent stands above a process: told by real processes, their parents and their start times."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from takeback.model.calls import Caller
from takeback.system import processes
from takeback.system.processes import MARKERS, agent_above, ancestors, started
from takeback.workspace import Workspace

PROC = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only /proc tells of more than the parent")


def me(**changed: object) -> dict[str, object]:
    return {"pid": os.getpid(), "started": started(os.getpid()), "name": "claude", **changed}


def below(depth: int, code: str) -> str:
    """What code prints that runs `depth` processes below this one."""
    for _ in range(depth - 1):
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


ASKS = "from takeback.system.processes import agent_above; print(agent_above([{session}], {{}}))"


@PROC
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_session_among_the_ancestors_is_found(depth: int):
    said = below(depth, ASKS.format(session=me()))
    assert said == f"claude is at work here: process {os.getpid()} is its session"


def test_the_parent_is_found_on_every_system():
    code = (
        "import pathlib; from takeback.system import processes as ancestry; ancestry._PROC = pathlib.Path('/nowhere')\n"
        f"print(ancestry.agent_above([{me(started=0)}], {{}}))"
    )
    assert "claude is at work here" in below(1, code)


@PROC
def test_a_later_process_of_the_same_number_is_another_one():
    assert below(1, ASKS.format(session=me(started=1))) == ""


@PROC
def test_a_process_beside_is_no_ancestor():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as beside:
        session = {"pid": beside.pid, "started": started(beside.pid), "name": "codex"}
        assert agent_above([session], {}) == ""
        assert beside.stdin is not None
        beside.stdin.close()


@PROC
def test_a_child_that_lost_its_agent_is_nobodys(tmp_path: Path):
    """An agent that ended is at work no more: what it left running belongs to the system."""
    out, left, agent = tmp_path / "out", tmp_path / "left.py", tmp_path / "agent.py"
    left.write_text(
        "import json, os, sys, time\n"
        "from takeback.system.processes import agent_above\n"
        "session = json.loads(sys.argv[1])\n"
        "while os.getppid() == session['pid']: time.sleep(0.01)\n"
        f"open({str(out)!r}, 'w').write(repr(agent_above([session], {{}})))\n"
    )
    agent.write_text(
        "import json, os, subprocess, sys\n"
        "from takeback.system.processes import started\n"
        "session = {'pid': os.getpid(), 'started': started(os.getpid()), 'name': 'claude'}\n"
        f"subprocess.Popen([sys.executable, {str(left)!r}, json.dumps(session)], start_new_session=True)\n"
    )
    subprocess.run([sys.executable, str(agent)], check=True)
    until = time.monotonic() + 30
    while not (out.exists() and out.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    assert out.read_text() == "''"


@PROC
def test_the_chain_leads_up_to_the_first_process():
    chain = list(ancestors(os.getpid()))
    assert chain[0].pid == os.getpid() and chain[1].pid == os.getppid()
    assert all(process.started >= 0 for process in chain) and len({p.pid for p in chain}) == len(chain)


@PROC
def test_a_name_with_brackets_and_spaces_is_read(tmp_path: Path):
    odd = tmp_path / "a) b (c"
    odd.symlink_to(sys.executable)
    with subprocess.Popen([str(odd), "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert processes._parent(process.pid) == os.getpid()
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("variable", MARKERS)
def test_an_agents_mark_in_the_environment(variable: str):
    assert agent_above([], {variable: "1"}) == f"{MARKERS[variable]} is at work here: {variable} is in the environment"
    assert agent_above([], {variable: ""}) == "" == agent_above([], {variable: "0"})


def test_nobody():
    assert agent_above([], {"PATH": "/bin", "HOME": "/root"}) == ""
    assert agent_above([{"pid": 999_999_999, "started": 5, "name": "x"}], {}) == ""


def test_a_session_is_journaled_once(ws: Workspace):
    ws.note_session(4711, 12, "codex")
    ws.note_session(4711, 12, "codex")
    ws.note_session(4711, 13, "codex")
    assert [(s["pid"], s["started"], s["name"]) for s in ws.history().sessions] == [
        (4711, 12, "codex"),
        (4711, 13, "codex"),
    ]
    assert ws.verify().ok


def test_every_marker_is_documented():
    text = (Path(__file__).parents[1] / "docs/outside.md").read_text(encoding="utf-8")
    assert not [name for name in MARKERS if f"`{name}`" not in text]


@PROC
def test_the_agent_of_a_hook_is_the_first_above_it_that_is_no_shell():
    code = "import os; from takeback.system import processes as ancestry; print(*ancestry.above_shells(os.getpid()))"
    words = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}; true"  # with a command after it, the shell stays
    ran = subprocess.run(["sh", "-c", f"sh -c {shlex.quote(words)}; true"], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(os.getpid()), str(processes.started(os.getpid()))]


@PROC
def test_a_dead_process_that_nobody_cleared_away_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        caller = Caller("claude", "s", pid=process.pid, started=processes.started(process.pid))
        assert caller.started and not caller.is_gone
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays as it is
        assert caller.is_gone


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells when a process started")
def test_a_hook_began_with_its_own_process_whatever_shell_stands_above_it(monkeypatch):
    """A shell that has long been there says nothing of it: the call would seem to have begun before its prompt."""
    script = "sleep 0.5; sleep 100 & echo $!; wait"
    shell = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    try:
        hook = int(shell.stdout.readline())
        assert abs(processes.hook_began(hook) - time.time()) < 0.4
        monkeypatch.setattr(processes, "_START", 0.1)
        assert processes.hook_began(shell.pid) == 0.0, "it was not begun for this"
    finally:
        subprocess.run(["kill", str(hook), str(shell.pid)], check=False)
        shell.wait()
        shell.stdout.close()
