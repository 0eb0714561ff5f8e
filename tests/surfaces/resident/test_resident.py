"""The resident process, as real hooks meet it: there, not there, killed, stuck, replaced."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import takeback
from takeback.surfaces.resident import client, starting
from takeback.surfaces.resident.command import hook_command

from .conftest import Hooks, is_alive, until

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_the_first_hook_starts_it_and_the_next_ones_are_answered_by_it(hooks: Hooks):
    hooks.before("one")
    found = hooks.up()
    calls = found["calls"]
    (hooks.project / "src/a").write_text("2\n")
    hooks.after("one")
    hooks.before("two")
    (hooks.project / "b").write_text("new\n")
    hooks.after("two")
    assert starting.status()["calls"] == calls + 3
    assert starting.status()["pid"] == found["pid"]
    assert hooks.calls() == [("one", True), ("two", True)]
    assert hooks.changed() == [({"src/a"}, {"one"}), ({"b"}, {"two"})]


def test_what_it_opened_at_its_start_is_what_hooks_use(hooks: Hooks):
    subprocess.run([sys.executable, "-m", "takeback", "resident", "start"], cwd=hooks.project, check=True)
    hooks.up()
    hooks.before("one")
    hooks.after("one")
    found = starting.status()
    assert found["calls"] == 2
    assert [workspace["root"] for workspace in found["workspaces"]] == [str(hooks.project)]


def test_what_it_journals_is_what_a_hook_alone_journals(hooks: Hooks, tmp_path: Path):
    """The same work, once with it and once without."""
    twin = Hooks(tmp_path / "twin", hooks.runtime)
    shutil.copytree(hooks.project, twin.project)
    takeback.open(twin.project, create=True).close()
    twin.environ = {"TAKEBACK_RESIDENT": "off"}
    hooks.ask("UserPromptSubmit", prompt="do it")
    hooks.up()
    twin.ask("UserPromptSubmit", prompt="do it")
    for number in range(3):
        for one in (hooks, twin):
            one.before(f"call {number}")
            (one.project / "src/a").write_text(f"{number}\n")
            (one.project / f"new{number}").mkdir()
            (one.project / f"new{number}/file").write_text("x")
            one.after(f"call {number}")
    assert hooks.calls() == twin.calls()
    assert hooks.changed() == twin.changed()


def test_nobody_waits_for_it_and_it_holds_nothing_of_whoever_started_it(hooks: Hooks):
    process = hooks.start("PreToolUse", tool_name="Bash", tool_input={"command": "x"}, tool_use_id="k")
    process.communicate(timeout=30)  # returns once nobody has its output open any more
    found = hooks.up()
    if sys.platform == "linux":
        fields = Path(f"/proc/{found['pid']}/stat").read_bytes().rpartition(b")")[2].split()
        assert int(fields[3]) != os.getsid(0)  # a session of its own
        assert Path(f"/proc/{found['pid']}/cwd").readlink() == Path("/")
        assert os.readlink(f"/proc/{found['pid']}/fd/0") == "/dev/null"


def test_only_its_user_can_reach_it(hooks: Hooks):
    hooks.before("one")
    hooks.up()
    place = hooks.runtime / "takeback"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in place.iterdir()} == {0o600}


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be another user")
def test_another_user_is_not_answered(hooks: Hooks):
    hooks.before("one")
    hooks.up()
    place = hooks.runtime / "takeback"
    own = [folder for folder in place.parents if folder.stat().st_uid == os.geteuid() and folder != Path("/")]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (place, place / "socket", *own)}
    closed = [path for path, mode in modes.items() if not mode & 0o005]  # opened to all, as its folder never is
    for path in closed:
        path.chmod(0o777)
    script = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        "line = socket.socket(socket.AF_UNIX); line.settimeout(5); line.connect(sys.argv[1])\n"
        "line.sendall(bytes.fromhex(sys.argv[2])); print(line.recv(100))"
    )
    asked = client.request([client.STATUS], b"", b"", {})
    argv = [sys.executable, "-c", script, str(place / "socket"), asked.hex()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    for path in closed:
        path.chmod(modes[path])
    cut_off = "BrokenPipeError" in done.stderr or "ConnectionResetError" in done.stderr
    assert done.stdout == "b''\n" or cut_off, done


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be another user")
def test_a_socket_in_another_users_folder_is_never_asked(hooks: Hooks):
    place = hooks.runtime / "takeback"
    place.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(place / "socket"))
        line.listen()
        line.setblocking(False)
        os.chown(place, 65534, 65534)
        hooks.before("one")
        with pytest.raises(BlockingIOError):  # who connects waits in line, whether or not anybody accepts
            line.accept()
    assert hooks.calls() == [("one", False)]  # captured all the same, by the hook itself


def test_an_open_folder_is_never_trusted(hooks: Hooks):
    place = hooks.runtime / "takeback"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    hooks.before("one")
    time.sleep(0.3)
    assert not (place / "socket").exists()
    assert hooks.calls() == [("one", False)]


def test_a_socket_that_nobody_listens_to_is_replaced(hooks: Hooks):
    place = hooks.runtime / "takeback"
    place.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(place / "socket"))
    hooks.before("one")
    hooks.up()
    assert hooks.calls() == [("one", False)]


@linux
def test_killed_it_costs_one_slow_call(hooks: Hooks):
    hooks.before("one")
    first = hooks.up()["pid"]
    os.kill(first, signal.SIGKILL)
    (hooks.project / "src/a").write_text("2\n")
    hooks.after("one")
    assert hooks.up()["pid"] != first
    assert hooks.changed() == [({"src/a"}, {"one"})]


@linux
def test_killed_in_the_middle_of_a_call(hooks: Hooks):
    """It has the request and maybe the lock: the hook finds the line cut and does it by itself, once."""
    hooks.before("one")
    first = hooks.up()["pid"]
    (hooks.project / "src/a").write_text("2\n")
    os.kill(first, signal.SIGSTOP)
    process = hooks.start("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="one")
    time.sleep(0.5)
    os.kill(first, signal.SIGKILL)
    assert process.communicate(timeout=30)[1] == b""
    assert process.returncode == 0
    assert hooks.calls() == [("one", True)]
    assert hooks.changed() == [({"src/a"}, {"one"})]


@linux
def test_stuck_it_is_ended_and_costs_one_slow_call(hooks: Hooks):
    hooks.before("one")
    first = hooks.up()["pid"]
    os.kill(first, signal.SIGSTOP)
    (hooks.project / "src/a").write_text("2\n")
    hooks.after("one")
    until(lambda: not is_alive(first))
    assert hooks.changed() == [({"src/a"}, {"one"})]
    hooks.before("two")
    assert hooks.up()["pid"] != first
    assert hooks.calls() == [("one", True), ("two", False)]


@linux
def test_stuck_with_the_store_locked_it_stops_nobody(hooks: Hooks):
    """Whatever it holds goes with it."""
    hooks.before("one")
    first = hooks.up()["pid"]
    with takeback.open(hooks.project) as ws:
        lock = ws.store.write
        lock.acquire(5)
        process = hooks.start("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="one")
        time.sleep(0.5)  # it waits for the lock now
        os.kill(first, signal.SIGSTOP)
        lock.release()
    assert process.communicate(timeout=30)[1] == b""
    assert hooks.calls() == [("one", True)]
    until(lambda: not is_alive(first))


def test_a_long_call_is_no_stuck_one(hooks: Hooks):
    """While it is at work it says so, however long that takes."""
    hooks.before("one")
    first = hooks.up()["pid"]
    with takeback.open(hooks.project) as ws, ws.store.write.hold(5):
        process = hooks.start("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="one")
        time.sleep(client._SILENCE + 1)
        assert process.poll() is None
    process.communicate(timeout=30)
    assert starting.status()["pid"] == first
    assert hooks.calls() == [("one", True)]


def test_idle_it_ends(hooks: Hooks, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TAKEBACK_HOOKS_IDLE", "0.3s")
    hooks.before("one")
    until(lambda: (hooks.runtime / "takeback/log").exists())
    until(lambda: not (hooks.runtime / "takeback/socket").exists() and not starting.status())
    hooks.after("one")
    assert hooks.calls() == [("one", True)]


@linux
def test_two_agents_at_once(hooks: Hooks):
    hooks.before("warm")
    hooks.after("warm")
    hooks.up()
    other = Hooks(hooks.project, hooks.runtime)
    other.session = "session-2"

    def work(one: Hooks, name: str) -> None:
        for number in range(5):
            one.ask(
                "PreToolUse",
                tool_name="Write",
                tool_input={"file_path": str(one.project / f"{name}{number}")},
                tool_use_id=f"{name}{number}",
            )
            (one.project / f"{name}{number}").write_text(name)
            one.ask(
                "PostToolUse",
                tool_name="Write",
                tool_input={"file_path": str(one.project / f"{name}{number}")},
                tool_use_id=f"{name}{number}",
            )

    threads = [threading.Thread(target=work, args=pair) for pair in ((hooks, "a"), (other, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {frozenset({f"{name}{n}"}) for name in "ab" for n in range(5)}
    assert {frozenset(paths) for paths, _ in hooks.changed()} == expected
    assert all(paths == keys for paths, keys in hooks.changed())
    assert all(closed for _, closed in hooks.calls())


def test_many_that_start_it_at_once_start_one(hooks: Hooks):
    started = [
        hooks.start("PreToolUse", tool_name="Bash", tool_input={"command": "x"}, tool_use_id=f"k{n}") for n in range(6)
    ]
    for process in started:
        process.communicate(timeout=60)
    found = hooks.up()
    time.sleep(0.3)
    assert starting.status()["pid"] == found["pid"]
    assert sorted(hooks.calls()) == [(f"k{n}", False) for n in range(6)]
    if sys.platform == "linux":
        mine = str(Path(starting.__file__).with_name("start.py")).encode() + b"\0--serve"
        until(lambda: len([p for p in _commands() if mine in p and str(hooks.runtime).encode() in _environ(p)]) <= 1)


def _commands() -> list[bytes]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append(folder.name.encode() + b"\0" + (folder / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def _environ(command: bytes) -> bytes:
    try:
        return Path("/proc", command.split(b"\0")[0].decode(), "environ").read_bytes()
    except OSError:
        return b""


@linux
def test_another_installation_replaces_it(hooks: Hooks, tmp_path: Path):
    """As after an upgrade: the old process must not go on answering for the new program."""
    hooks.before("one")
    first = hooks.up()
    copy = tmp_path / "site" / "takeback"
    shutil.copytree(Path(takeback.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = hook_command("claude", "PostToolUse").replace(str(Path(takeback.__file__).parent), str(copy))
    assert str(copy) in command
    said = (
        b'{"session_id": "session-1", "transcript_path": "/x", "hook_event_name": "PostToolUse", "tool_name": "Bash",'
        b'"tool_input": {"command": "make"}, "tool_use_id": "one", "cwd": "' + os.fsencode(hooks.project) + b'"}'
    )
    (hooks.project / "src/a").write_text("2\n")
    done = subprocess.run(["sh", "-c", command], input=said, capture_output=True, cwd=hooks.project, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    until(lambda: not is_alive(first["pid"]))
    assert hooks.changed() == [({"src/a"}, {"one"})]
    assert hooks.up()["pid"] != first["pid"]


def test_switched_off_nothing_is_left_behind(hooks: Hooks):
    hooks.environ = {"TAKEBACK_RESIDENT": "off"}
    hooks.before("one")
    hooks.after("one")
    assert not (hooks.runtime / "takeback").exists()
    assert hooks.calls() == [("one", True)]


def test_switched_off_in_the_configuration_it_ends(hooks: Hooks):
    hooks.before("one")
    hooks.up()
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "takeback/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[hooks]\nresident = false\n")
    hooks.after("one")
    until(lambda: not starting.status())
    assert hooks.calls() == [("one", True)]


def test_settings_are_those_of_each_call(hooks: Hooks):
    """A workspace kept open under other settings is not used for a call."""
    hooks.before("one")
    hooks.up()
    (hooks.project / "big").write_text("x" * 5000)
    hooks.environ = {"TAKEBACK_CHECKPOINTS_EXCLUDE": "big"}
    hooks.after("one")
    assert hooks.changed() == []
    hooks.environ = {}
    hooks.before("two")
    (hooks.project / "big").write_text("y" * 5000)
    hooks.after("two")
    assert hooks.changed() == [({"big"}, {"two"})]


def test_a_store_that_was_replaced_is_opened_anew(hooks: Hooks):
    hooks.before("one")
    hooks.up()
    hooks.after("one")
    home = Path(os.environ["TAKEBACK_HOME"])
    shutil.move(home, home.with_name("away"))
    takeback.open(hooks.project, create=True).close()
    hooks.before("two")
    assert hooks.calls() == [("two", False)]


@linux
def test_hooks_below_a_run_are_captured_call_by_call(hooks: Hooks, tmp_path: Path):
    """The command cannot write the store; the process that was there before can."""
    agent = tmp_path / "claude"
    agent.write_text(
        "#!/bin/sh\n"
        f"""one() {{ echo '{{"session_id": "s", "transcript_path": "/x", "hook_event_name": "'$1'", "cwd": "{hooks.project}", \
"tool_name": "Bash", "tool_input": {{"command": "make"}}, "tool_use_id": "'$2'"}}' | {{ {hook_command("claude")}; }}; }}\n"""
        "one PreToolUse k1; echo 2 > src/a; one PostToolUse k1\n"
        "one PreToolUse k2; echo 3 > b; one PostToolUse k2\n"
    )
    agent.chmod(0o755)
    argv = [sys.executable, "-m", "takeback", "run", "--", str(agent)]
    done = subprocess.run(argv, cwd=hooks.project, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    if "not shielded" in done.stderr:
        pytest.skip("this system cannot shield the store")
    assert hooks.calls() == [("k1", True), ("k2", True)]
    assert [keys for _, keys in hooks.changed()] == [{"k1"}, {"k2"}]


@linux
def test_who_sees_another_tree_is_not_answered(hooks: Hooks, tmp_path: Path):
    """Below an overlay, or in a container, the same path is another folder: only the hook itself can look there."""
    hooks.before("one")
    calls = hooks.up()["calls"]
    layer = f"mount -t tmpfs none '{hooks.project}' && cd '{hooks.project}' && {hook_command('claude', 'PreToolUse')}"
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", layer]
    done = subprocess.run(argv, input=b"{}", capture_output=True, timeout=60, cwd=hooks.project)
    if done.returncode:
        pytest.skip(f"no namespaces here: {done.stderr.decode()}")
    assert starting.status()["calls"] == calls


def test_the_verb(hooks: Hooks):
    def run(*words: str) -> str:
        argv = [sys.executable, "-m", "takeback", "resident", *words]
        done = subprocess.run(argv, cwd=hooks.project, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "no resident process" in run()
    assert str(starting.status().get("pid", "")) == ""
    run("start")
    hooks.up()
    assert str(hooks.project) in run("status")
    pid = starting.status()["pid"]
    assert run("stop") == f"ended the resident process {pid}; the next hook starts another\n"
    assert starting.status() == {}
    assert run("stop") == "no resident process ran; the next hook starts one\n"


def test_the_command_works_in_any_folder_and_environment(hooks: Hooks, tmp_path: Path):
    hooks.environ = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere", "PATH": "/nowhere", "LC_ALL": "C"}
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    (hooks.project / "client.py").write_text("raise SystemExit(3)")
    hooks.environ["PATH"] = os.environ["PATH"]
    hooks.before("one")
    hooks.up()
    hooks.after("one")
    assert hooks.calls() == [("one", True)]


def test_the_client_loads_no_database_and_no_parser():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import client\n"
        "try: client._asked(['claude', 'x'], b'{}')\n"
        "finally: print(sorted(m for m in sys.modules if m in ('sqlite3', '_sqlite3', 'json', 're', 'os', 'hashlib')))"
    )
    folder = str(Path(client.__file__).parent)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script, folder], capture_output=True, text=True)
    assert done.stdout == "[]\n", done


def test_a_hook_left_behind_says_nothing_and_stops_nothing(tmp_path):
    """Gemini CLI and Copilot CLI stop every call whose hook cannot be run."""
    line = hook_command("gemini", "BeforeTool")
    for gone in (sys.executable, str(Path(takeback.__file__).parent)):
        left = line.replace(gone, str(tmp_path / "gone"))
        ran = subprocess.run(["sh", "-c", left], input=b"{}", capture_output=True)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


_AGENT = """
import json, subprocess, sys, time
for event, command, said in json.load(sys.stdin):
    subprocess.run(["sh", "-c", command], input=json.dumps(said).encode(), check=True, capture_output=True)
print("in a call", flush=True)
time.sleep(1000)
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells at once that a process has ended")
def test_what_an_agent_did_before_it_was_killed_is_its_own_and_the_rest_is_nobodys(hooks: Hooks):
    hooks.ask("SessionStart", source="startup")  # starts it, so that it knows the agent from its first call on
    hooks.up()
    said = {"session_id": "killed", "transcript_path": "/nowhere.jsonl", "cwd": str(hooks.project)}
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "1"}
    told = [
        (event, hook_command("claude", event), {**said, "hook_event_name": event, **what})
        for event, what in (("UserPromptSubmit", {"prompt": "build it"}), ("PreToolUse", call))
    ]
    agent = subprocess.Popen(
        [sys.executable, "-c", _AGENT], cwd=hooks.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert agent.stdin is not None and agent.stdout is not None
    agent.stdin.write(json.dumps(told).encode())
    agent.stdin.close()
    assert agent.stdout.readline() == b"in a call\n"
    (hooks.project / "made.txt").write_text("the agent's\n")
    agent.kill()
    agent.wait()
    agent.stdout.close()
    until(lambda: ("1", True) in hooks.calls(), "the call of an agent that was killed was not closed")
    (hooks.project / "mine.txt").write_text("a person's\n")
    with takeback.open(hooks.project) as ws:
        ws.checkpoint("later")
        found = {p.decode(): (sorted(e.actors), e.uncertain) for e in ws.history().effects for p in e.changes}
        assert found == {"made.txt": (["claude"], False), "mine.txt": ([], False)}
        assert ws.undo().whole
    assert (hooks.project / "mine.txt").exists() and not (hooks.project / "made.txt").exists()


def test_it_stays_while_an_agent_has_a_call_at_work(hooks: Hooks, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TAKEBACK_HOOKS_IDLE", "1s")
    hooks.ask("SessionStart", source="startup")
    pid = hooks.up()["pid"]
    hooks.before("1")
    time.sleep(2.5)
    assert is_alive(pid)
    hooks.after("1")
    until(lambda: not is_alive(pid))


def test_what_a_person_does_at_a_prompt_is_theirs_and_what_the_command_does_then_is_its_own(hooks: Hooks):
    file = hooks.project / "a.txt"
    hooks.ask("UserPromptSubmit", prompt="build it")
    hooks.before("1")  # it starts the resident process
    hooks.after("1")
    hooks.up()
    hooks.before("2")
    hooks.ask("PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
    file.write_text("a person's\n")
    time.sleep(2.2)  # longer than what is allowed for, and than the pause between two looks
    began = time.time()
    file.write_text("the command's\n")
    (hooks.project / "made.txt").write_text("the command's\n")
    ran = int((time.time() - began) * 1000)
    hooks.ask("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="2", duration_ms=ran)
    with takeback.open(hooks.project) as ws:
        found = [(e.is_agents, e.uncertain, sorted(e.changes)) for e in ws.history().effects]
        assert found == [(False, False, [b"a.txt"]), (True, False, [b"a.txt", b"made.txt"])]
        ws.revert(ws.history().effects[-1].id)
    assert file.read_text() == "a person's\n"


def test_the_verb_that_a_plugin_runs_is_answered_by_it_too(hooks: Hooks):
    def hook(event: str, **what: object) -> str:
        said = {"session_id": "s", "transcript_path": "/t", "cwd": str(hooks.project), "hook_event_name": event, **what}
        command = [sys.executable, "-m", "takeback", "hook", "claude", event]
        done = subprocess.run(command, cwd=hooks.project, input=json.dumps(said).encode(), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    hook("UserPromptSubmit", prompt="build it")  # alone, and it starts the process
    before = hooks.up()["calls"]
    told = hook("PreToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="1")
    assert "checkpoint" in json.loads(told)["systemMessage"]
    assert hooks.up()["calls"] == before + 1
    assert hooks.calls() == [("1", False)]
