"""The real `takeback mcp`, in a process of its own, over standard input and output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from clients import ERAS, Person, connected
from mcp.client.stdio import StdioServerParameters

import takeback
from sampling import WHOLE
from servers.payments import Payments

pytestmark = pytest.mark.anyio

PROGRAM = [sys.executable, "-m", "takeback"]


def started_in(folder: Path, env: Mapping[str, str] | None = None) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "takeback", "mcp"], cwd=folder, env={**os.environ, **(env or {})}
    )


def run(*words: str, cwd: Path, input: bytes = b"", env: Mapping[str, str] | None = None) -> Any:
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=cwd,
        input=input,
        capture_output=True,
        timeout=60,
        env={**os.environ, **(env or {})},
        check=False,
    )


async def test_an_agent_works_and_everything_goes_back(
    work: Path, era: str, payments: Payments, charge: Callable[[], dict[str, Any]]
) -> None:
    person = Person()
    async with connected(started_in(work / "src"), era, person) as calls:
        assert calls.client.protocol_version == ERAS[era]
        await calls.ok("checkpoint", label="before")
        await calls.ok("record_http", **charge())
        (work / "src/auth.py").write_text("changed\n")
        assert [c["path"] for c in (await calls.ok("status"))["changes"]] == ["src/auth.py"]
        assert (await calls.ok("rollback"))["whole"]
    assert len(person.asked) == 1 and len(payments.refunds) == 1
    assert (work / "src/auth.py").read_text() == "one\ntwo\nthree\n"


async def test_its_parent_is_journaled_as_an_agent_below_which_nobody_approves(work: Path, era: str) -> None:
    async with connected(started_in(work), era) as calls:
        await calls.ok("status")
        await calls.ok("record_reversal", description="made out", argv=["true"])
        plan = (await calls.ok("compensate"))["plan"]
    with takeback.open(work) as ws:
        assert [(s["pid"], s["name"]) for s in ws.history().sessions] == [(os.getpid(), "test-agent")]
    done = run("approve", plan["id"], cwd=work)
    assert done.returncode == 4, done
    assert run("apply", plan["id"], cwd=work).returncode == 4


async def test_two_servers_and_a_person_at_once(work: Path, era: str) -> None:
    """Checkpoints, looks and take-backs of three processes: each whole, none lost."""

    async def busy(calls: Any, name: str) -> None:
        for n in range(6):
            (work / f"{name}{n}").write_text(name)
            await calls.ok("checkpoint", label=f"{name} {n}")
            await calls.ok("status")

    async with connected(started_in(work), era) as one, connected(started_in(work), era) as two:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(busy, one, "a")
            tasks.start_soon(busy, two, "b")
            for _ in range(3):
                assert (await anyio.to_thread.run_sync(lambda: run("status", "--json", cwd=work))).returncode == 0
        labels = {r["label"] for r in (await one.ok("log", filter="kind:checkpoint", limit=100))["rows"]}
        assert labels == {"start", *(f"{name} {n}" for name in "ab" for n in range(6))}
        await two.ok("rollback", checkpoint="start")
    assert sorted(p.name for p in work.iterdir()) == ["README.md", "src"]
    assert run("verify", cwd=work).returncode == 0


async def test_it_answers_while_a_call_is_at_work(work: Path, era: str) -> None:
    """A take-back that waits for a slow command does not keep other calls waiting."""
    async with connected(started_in(work), era, Person()) as calls:
        waiting = "import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)"
        await calls.ok("record_reversal", description="d", argv=[sys.executable, "-c", waiting])
        ended = anyio.Event()

        async def compensate() -> None:
            assert (await calls.client.call_tool("takeback_compensate", {"execute": True})).structured_content["whole"]
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compensate)
            with anyio.fail_after(60):
                while not [e for e in (await calls.ok("effects"))["effects"] if e["undoes"]]:
                    await anyio.sleep(0.02)
            await calls.ok("log")
            assert not ended.is_set()
            (work / "go").touch()


def slow(name: str) -> list[str]:
    """A command that says that it has begun, and ends once the file `go` is there."""
    code = f"import time, pathlib\npathlib.Path('{name}.begun').touch()\n"
    return [sys.executable, "-c", code + "while not pathlib.Path('go').exists(): time.sleep(0.01)"]


async def test_a_cancelled_call_begins_no_further_step(work: Path, era: str) -> None:
    """The step under way comes to its end, the others stand as they stood, and the journal says which."""
    async with connected(started_in(work), era, Person()) as calls:
        older = await calls.ok("record_reversal", description="older", argv=slow("older"))
        newer = await calls.ok("record_reversal", description="newer", argv=slow("newer"))
        older, newer = older["effect"]["id"], newer["effect"]["id"]
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(calls.client.call_tool, "takeback_compensate", {"execute": True})
                with anyio.fail_after(60):
                    while not (work / "newer.begun").exists():
                        await anyio.sleep(0.02)
                scope.cancel()  # the client says so: notifications/cancelled
        await calls.ok("log")  # read after it, in the order in which the client wrote
        (work / "go").touch()
        with anyio.fail_after(60):
            while True:
                states = {e["id"]: e["state"] for e in (await calls.ok("effects"))["effects"]}
                if states[newer] == "undone":
                    break
                await anyio.sleep(0.02)
        with anyio.fail_after(60):
            while not [r for r in (await calls.ok("log", filter="kind:takeback"))["rows"]]:
                await anyio.sleep(0.02)
        assert states[older] == "live" and not (work / "older.begun").exists()
        assert not (await calls.ok("status")).get("interrupted")
    with takeback.open(work) as ws:
        ends = [row.body["not_done"] for row in ws.store.journal.rows(kinds=("outcome",)) if row.body]
        left = [(path, note) for end in ends for path, _, note in end]
        assert left == [(older, "not begun: whoever asked for it cancelled")]
        assert [act.id for act in ws.history().live_acts] == [older]


async def test_a_call_that_is_cancelled_while_a_person_is_asked_does_nothing(work: Path, era: str) -> None:
    asked = anyio.Event()

    class Slow(Person):
        async def __call__(self, context: Any, params: Any) -> Any:
            asked.set()
            await anyio.sleep_forever()

    async with connected(started_in(work), era, Slow()) as calls:
        await calls.ok("record_reversal", description="d", argv=["touch", str(work / "ran")])
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(calls.client.call_tool, "takeback_compensate", {"execute": True})
                with anyio.fail_after(60):
                    await asked.wait()
                scope.cancel()
        assert [e["state"] for e in (await calls.ok("effects"))["effects"]] == ["live"]
    assert not (work / "ran").exists()


async def test_it_serves_the_project_it_was_started_for(work: Path, era: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret").write_text("not yours\n")
    takeback.open(other, create=True).close()
    (work / "out").symlink_to(other)
    async with connected(started_in(work / "src"), era) as calls:
        await calls.ok("status", cwd=str(work))
        await calls.ok("status", cwd="..")
        for cwd in (str(other), "../../other", str(tmp_path), "../out"):
            error = await calls.fails("checkpoint", cwd=cwd)
            assert "which this server was started for" in error["message"] and "--any-root" in error["hint"]
        error = await calls.fails("init", cwd=str(tmp_path))
        assert "--any-root" in error["hint"]
        with pytest.raises(Exception, match="started for"):
            await calls.client.read_resource(f"takeback://log?cwd={other}")
    started = started_in(work)
    started.args.append("--any-root")
    async with connected(started, era) as calls:
        await calls.ok("checkpoint", label="by any root", cwd=str(other))


async def test_nobody_meant_all_of_a_home(era: str, work: Path, own_home: Path) -> None:
    own_home.mkdir(exist_ok=True)
    folder = own_home / "shop"
    folder.mkdir()
    takeback.open(folder, create=True).close()
    async with connected(started_in(own_home), era) as calls:
        error = await calls.fails("status", cwd=str(folder))
        assert "which is no project" in error["message"] and "--any-root" in error["hint"]


async def test_a_policy_in_the_servers_environment_does_not_count(work: Path, era: str) -> None:
    """An agent can write .mcp.json, and with it the environment of the server."""
    folder = work / "xdg/takeback"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[policy.command]\ncompensating = "allow"\n')
    async with connected(started_in(work, {"XDG_CONFIG_HOME": str(work / "xdg")}), era) as calls:
        await calls.ok("record_reversal", description="d", argv=["touch", str(work / "ran")])
        assert (await calls.ok("compensate", execute=True))["applied"] is False
    assert not (work / "ran").exists()


def test_standard_output_carries_only_the_protocol(work: Path) -> None:
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                     "clientInfo": {"name": "raw", "version": "0"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "takeback_status", "arguments": {"cwd": "/nowhere"}}},
        {"id": 3, "method": "tools/call", "params": {"name": "takeback_nothing", "arguments": {}}},
        {"id": 4, "method": "tools/call", "params": {"name": "takeback_status", "arguments": {}}},
    ]  # fmt: skip
    process = subprocess.Popen(
        [*PROGRAM, "mcp"], cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    lines = []
    process.stdin.write(b"this is no JSON\n")
    for message in asked:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        while "id" in message:
            lines.append(json.loads(process.stdout.readline()))
            if lines[-1].get("id") == message["id"]:
                break
    process.stdin.close()
    assert process.wait(60) == 0
    assert process.stdout.read() == b"" and all(line["jsonrpc"] == "2.0" for line in lines)
    assert b"Traceback" not in process.stderr.read()
    answers = {line["id"]: line for line in lines if "result" in line}
    assert answers[2]["result"]["isError"] and answers[3]["result"]["isError"] and not answers[4]["result"]["isError"]
    assert "takeback_checkpoint" in answers[1]["result"]["instructions"]


def test_the_printed_block_starts_the_server(work: Path) -> None:
    done = run("mcp", "--print-config", cwd=work)
    assert done.returncode == 0 and done.stderr == b""
    entry = json.loads(done.stdout)["mcpServers"]["takeback"]
    assert Path(entry["command"]).is_absolute()
    ended = subprocess.run([entry["command"], *entry["args"]], cwd="/", input=b"", capture_output=True, timeout=60)
    assert ended.returncode == 0 and ended.stdout == b""


def test_without_the_sdk_it_says_what_to_install(work: Path, tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('no mcp', name='mcp')")
    done = run("mcp", cwd=work, env={"PYTHONPATH": str(tmp_path)})
    assert (
        done.returncode == 1
        and b"[mcp]'" in done.stderr
        and b"install it: " in done.stderr
        and b"Traceback" not in done.stderr
    )


@pytest.mark.parametrize(
    "words", [["--port", "80"], ["--http", "--port", "x"], ["--http", "--port", "70000"], ["--serve"]]
)
def test_options_that_make_no_sense_are_refused(work: Path, words: list[str]) -> None:
    done = run("mcp", *words, cwd=work)
    assert done.returncode == 2 and done.stdout == b"", done


def test_no_other_verb_loads_the_sdk(work: Path) -> None:
    code = "import sys, takeback.surfaces.cli as cli; cli.main(['status']); print([m for m in sys.modules if m.startswith(('mcp', 'pydantic', 'anyio'))], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=work, capture_output=True, text=True, timeout=60)
    assert done.stderr.strip().endswith("[]"), done.stderr


# -- the protocol's own inspector --------------------------------------------------------


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """@modelcontextprotocol/inspector --cli, where npm is there and can fetch it."""
    if not WHOLE:
        pytest.skip("scripts/test --all runs it; the client of the SDK has been at the same tools")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    find = ["exec", "--yes", "--package=@modelcontextprotocol/inspector", "--", "sh", "-c", "command -v mcp-inspector"]
    try:
        found = subprocess.run([npm, *find], capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm cannot fetch @modelcontextprotocol/inspector")
    if found.returncode or not found.stdout.strip():
        pytest.skip("npm cannot fetch @modelcontextprotocol/inspector")
    return [found.stdout.split()[-1], "--cli"]


def test_the_inspector_lists_and_calls_the_tools(work: Path, inspector: list[str]) -> None:
    def inspect(*words: str) -> Any:
        return subprocess.run(
            [*inspector, *PROGRAM, "mcp", *words], cwd=work, capture_output=True, text=True, timeout=180, check=False
        )

    listed = inspect("--method", "tools/list")
    assert listed.returncode == 0, listed
    assert len(json.loads(listed.stdout)["tools"]) == 34
    (work / "README.md").write_text("changed\n")
    called = inspect("--method", "tools/call", "--tool-name", "takeback_rollback")
    assert called.returncode == 0 and json.loads(called.stdout)["structuredContent"]["applied"], called
    assert (work / "README.md").read_text() == "hello\n"
    refused = inspect("--method", "tools/call", "--tool-name", "takeback_show", "--tool-arg", "id=zzzzzzzz")
    assert refused.returncode in (0, 5) and json.loads(refused.stdout)["isError"], refused  # 5 in some versions


# -- half a surrogate, and a launcher ------------------------------------------------------


def spoken(
    folder: Path, *lines: str | Callable[[dict[str, Any]], str], silent: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """What the server says to these lines, said as they are, each once it has spoken to the one before; to those that
    are `silent` it says nothing."""
    able = {"elicitation": {}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": able, "clientInfo": {"name": "raw", "version": "1"}}
    initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    first = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    with subprocess.Popen(
        [*PROGRAM, "mcp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        found: list[dict[str, Any]] = []
        for said in (first, initialized, *lines):
            line = said if isinstance(said, str) else said(found[-1])
            server.stdin.write(line + "\n")
            server.stdin.flush()
            if line not in (initialized, *silent):
                found.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        assert server.wait(30) == 0
    return found


async def test_a_call_with_half_a_surrogate_is_answered(work: Path) -> None:
    call = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "takeback_%s", "arguments": {%s}}}'
    _, label, path, other, after = spoken(
        work,
        call % ("checkpoint", r'"label": "half \ud83d of one"'),
        call % ("track", r'"paths": ["src/\udce9.py"]'),
        r'{"jsonrpc": "2.0", "id": "x", "method": "resources/read", "params": {"uri": "takeback://\ud800"}}',
        call % ("status", ""),
    )
    for answer in (label, path):
        assert answer["id"] == 7 and answer["result"]["isError"]
        error = answer["result"]["structuredContent"]["error"]
        assert "cannot be read" in error["message"] and error["hint"] and error["code"] == 2
    assert other["id"] == "x" and "cannot be read" in other["error"]["message"]
    assert not after["result"].get("isError"), "it goes on"


_CALL = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "takeback_status", "a": %s}}'
_PING = '{"jsonrpc": "2.0", "id": %s, "method": "ping"}'
_UNREADABLE = {  # the line, and the id it is answered under
    "half a surrogate as its id": (_PING % r'"\ud800"', None),
    "half a surrogate in its id": (_PING % r'"a\udc00b"', None),
    "half a surrogate in its method": (r'{"jsonrpc": "2.0", "id": 7, "method": "tools/\ud800"}', 7),
    "half a surrogate in a name": (_CALL % r'{"\udc00": 1}', 7),
    "a long number": (_CALL % ("9" * 5000), 7),
    "a long number as its id": (_PING % ("9" * 5000), None),
    "deep lists": (_CALL % ("[" * 3000 + "]" * 3000), 7),
    "deep objects, and its id last": (
        '{"params": ' + '{"id":' * 3000 + "1" + "}" * 3000 + ', "method": "ping", "id": "x"}',
        "x",
    ),
    "an escape that is none": (_CALL % r'"\x"', 7),
    "a raw tab": (_CALL % '"a\tb"', 7),
    "an open string": ('{"jsonrpc": "2.0", "id": "x", "method": "ping', "x"),
    "half a line": ('{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"id": 9,', 7),
    "half of its id": ('{"jsonrpc": "2.0", "id', None),
    "more after it": (_PING % "7" + " and more", 7),
    "words": ("hello", None),
    "a number": ("5", None),
    "an id of a list's member": ("[" + _PING % "7" + "]", None),
    "neither method nor result": ('{"jsonrpc": "2.0", "id": 7}', 7),
    "another version": ('{"jsonrpc": "1.0", "id": 7, "method": "ping"}', 7),
    "parameters in a list": ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}', 7),
    "all at once, and nothing right": ('{"jsonrpc": "2.0", "id": 7, "method": 5, "result": 3, "error": 4}', None),
    "bytes that are no text": (r'{"jsonrpc": "2.0", "id": "é", "method": "ping", "params": "\ud800"}', "é"),
}


async def test_every_line_that_cannot_be_read_is_answered_and_it_goes_on(work: Path) -> None:
    lines = [line for line, _ in _UNREADABLE.values()]
    _, *answers, after = spoken(work, *lines, _PING % '"after"')
    for what, (line, id), answer in zip(_UNREADABLE, _UNREADABLE.values(), answers, strict=True):
        assert answer["id"] == id, what
        if "tools/call" in line:
            assert answer["result"]["isError"], what
            assert "cannot be read" in answer["result"]["structuredContent"]["error"]["message"], what
        else:
            assert "cannot be read" in answer["error"]["message"], what
    assert after == {"jsonrpc": "2.0", "id": "after", "result": {}}


async def test_a_line_that_nobody_waits_for_is_not_answered(work: Path) -> None:
    silent = ("", " ", r'{"jsonrpc": "2.0", "method": "notifications/\ud800"}')
    _, after = spoken(work, *silent, _PING % "1", silent=silent)
    assert after["id"] == 1


async def test_a_persons_answer_that_cannot_be_read_is_no_yes_and_the_call_ends(work: Path) -> None:
    with takeback.open(work) as ws:
        ws.record_command("made out", argv=["touch", "sent"])
    call = {"name": "takeback_compensate", "arguments": {"execute": True}}
    yes = {"action": "accept", "content": {"approve": True, "a": "\ud800"}}
    _, question, answer = spoken(
        work,
        json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}),
        lambda asked: json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": yes}),
    )
    assert question["method"] == "elicitation/create"
    assert answer["id"] == 7 and "takeback approve" in json.dumps(answer["result"])
    assert not (work / "sent").exists()


_LAUNCHERS = {
    "a shell script": ("sh", "#!/bin/sh\n{command}\nexit $?\n"),
    "a script in a script": ("sh", "#!/bin/sh\nsh -c 'sh -c \"{command}; true\"; true'\n"),
    "a pipe before it": ("sh", "#!/bin/sh\ncat | {command}\n"),
    "a program": (sys.executable, "import subprocess, shlex\nsubprocess.run(shlex.split({command!r}))\n"),
    "itself": ("sh", "#!/bin/sh\nexec {command}\n"),
}


@pytest.mark.parametrize("launcher", _LAUNCHERS)
async def test_a_client_that_starts_it_through_a_launcher_is_the_session(
    work: Path, tmp_path: Path, launcher: str
) -> None:
    program, text = _LAUNCHERS[launcher]
    script = tmp_path / "launch"
    script.write_text(text.format(command=f"{sys.executable} -m takeback mcp"))
    start = StdioServerParameters(command=program, args=[str(script)], cwd=work, env={**os.environ})
    async with connected(start, "legacy") as calls:
        await calls.ok("status")
    with takeback.open(work) as ws:
        assert [session["pid"] for session in ws.history().sessions] == [os.getpid()], "this process is the client"
    ran = run("approve", "kkkk", cwd=work)
    assert ran.returncode == 4 and b"is its session" in ran.stderr
