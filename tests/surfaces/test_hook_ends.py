"""How calls of agents other than Claude Code end, or never begin, from their events and files to whose each change is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.journal import brackets
from takeback.surfaces.hook import Asked, answer
from takeback.system import processes


class Told:
    """Events of an agent, as its hooks pass them on, and the file of its session."""

    def __init__(self, agent: str, project: Path, home: Path, ws: Any) -> None:
        self.agent, self.project, self.home, self.ws = agent, project, home, ws
        self.file = home / ".copilot/session-state/s/events.jsonl" if agent == "copilot" else home / "session.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.process = (0, 0)  # of the agent, and when it started

    def send(self, event: str, **payload: Any) -> None:
        session = {"sessionId": "s"} if self.agent == "copilot" else {"session_id": "s"}
        common = {**session, "cwd": str(self.project), "transcript_path": str(self.file)}
        if self.agent == "copilot":
            del common["transcript_path"]
        self._send(event, {**common, **payload})

    def bus(self, event: str, **payload: Any) -> None:
        """What opencode's plugin passes on."""
        self._send(event, {"directory": str(self.project), **payload})

    def _send(self, event: str, payload: dict[str, Any]) -> None:
        environ = {**os.environ, "COPILOT_HOME": str(self.home / ".copilot")}
        asked = Asked(self.agent, event, json.dumps(payload).encode(), str(self.project), environ, *self.process)
        reply = answer(asked, lambda *_: nullcontext(self.ws))  # as the resident process does, it stays open
        assert (reply.code, reply.err) == (0, "")

    def write(self, **line: Any) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps({"timestamp": _now(), **line}) + "\n")

    def put(self, path: str) -> None:
        """Some time after what was before, and before what comes next."""
        time.sleep(0.03)
        (self.project / path).write_text(f"{path}\n")
        time.sleep(0.03)


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells what a process has begun")


def _now() -> str:
    return datetime.now(UTC).isoformat()


@pytest.fixture(autouse=True)
def said_exactly(monkeypatch):
    """What these sessions say of when a call began is exact, so that the tests need not wait for long."""
    monkeypatch.setattr(brackets, "EARLY", 0.1)


@pytest.fixture
def ws(project):
    with takeback.open(project, create=True) as opened:
        yield opened


@pytest.fixture
def told(project, ws, tmp_path):
    return lambda agent: Told(agent, project, tmp_path / "home", ws)


def whose(ws: Any) -> dict[str, str]:
    """Path ─► who, with "?" where it is uncertain."""
    found = (e for e in ws.history().effects if not e.takeback)
    return {p.decode(): ", ".join(sorted(e.actors)) + "?" * e.uncertain for e in found for p in e.changes}


BASH = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "call_1"}


def _codex(told: Any) -> Told:
    codex: Told = told("codex")
    codex.send("UserPromptSubmit", prompt="one")
    codex.send("PreToolUse", **BASH)
    return codex


def _output(codex: Told, output: str) -> None:
    payload = {"type": "function_call_output", "call_id": "call_1", "output": output}
    codex.write(type="response_item", payload=payload)


def test_codex_leaves_a_command_running_that_a_person_stops(told, ws):
    codex = _codex(told)
    codex.put("made.txt")
    _output(codex, "Wall time: 1.1 seconds\naborted by user")
    codex.put("whose.txt")
    ws.checkpoint("a person's")
    assert whose(ws) == {"made.txt": "codex", "whose.txt": "codex?"}


class Process:
    """An agent's process, which begins a command and lets it end."""

    def __init__(self) -> None:
        script = "read x; sleep 100 & echo; read x; kill $!; wait; echo; read x"
        self._sh = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.identity = self._sh.pid, processes.started(self._sh.pid)

    def goes_on(self) -> None:
        assert self._sh.stdin is not None and self._sh.stdout is not None
        self._sh.stdin.write(b"\n")
        self._sh.stdin.flush()
        self._sh.stdout.readline()
        time.sleep(0.03)  # a start is told to a hundredth of a second

    def close(self) -> None:
        if self._sh.returncode is None:
            self._sh.communicate(b"\n" * 3)


@pytest.fixture
def process():
    made = Process()
    yield made
    made.close()


def _asking(told: Any, process: Process) -> Told:
    codex: Told = told("codex")
    codex.process = process.identity
    codex.send("UserPromptSubmit", prompt="one")
    codex.send("PreToolUse", **BASH)
    time.sleep(0.03)
    codex.send("PermissionRequest", tool_name="Bash", tool_input={"command": "make", "description": "may I?"})
    return codex


@on_linux
@pytest.mark.parametrize("looks", ["plan", "checkpoint"])
def test_what_a_person_allowed_and_then_stopped_is_not_refused(told, ws, process, looks):
    """Codex writes the same as of one that was refused, until the command that goes on is over."""
    codex = _asking(told, process)
    process.goes_on()
    began = time.time()
    codex.put("made.txt")
    _output(codex, "Wall time: 3.0 seconds\naborted by user")
    codex.put("meanwhile.txt")
    ws.plan("undo") if looks == "plan" else ws.checkpoint("a person's")
    (bracket,) = ws.history().brackets.values()
    assert not bracket.closed
    assert whose(ws) == {"made.txt": "codex?", "meanwhile.txt": "codex?"}
    process.goes_on()
    ended = time.time()
    item = {"type": "CommandExecution", "id": "call_1", "exit_code": 0}
    item["duration"] = {"secs": 0, "nanos": int((ended - began) * 1e9)}
    codex.write(type="event_msg", payload={"type": "item_completed", "item": item, "completed_at_ms": ended * 1000})
    ws.close_stopped()  # as the resident process does, which then looks
    codex.put("later.txt")
    ws.checkpoint("a person's")
    (bracket,) = ws.history().brackets.values()
    assert bracket.closed and not bracket.refused
    assert whose(ws) == {"made.txt": "codex?", "meanwhile.txt": "codex?", "later.txt": ""}


@on_linux
def test_what_was_allowed_and_stopped_in_an_agent_that_is_gone_is_uncertain(told, ws, process):
    codex = _asking(told, process)
    codex.put("made.txt")
    _output(codex, "Wall time: 3.0 seconds\naborted by user")
    process.close()
    ws.checkpoint("a person's")
    assert whose(ws) == {"made.txt": "codex?"}


@on_linux
def test_codex_tells_of_a_refused_call_in_its_rollout(told, ws, process):
    codex = _asking(told, process)
    codex.put("at the prompt.txt")
    _output(codex, "Wall time: 3.0 seconds\naborted by user")
    codex.put("later.txt")
    ws.checkpoint("a person's")
    assert whose(ws) == {"at the prompt.txt": "", "later.txt": ""}


def test_codex_says_how_long_a_command_really_ran(told, ws):
    codex = _codex(told)
    codex.send("PermissionRequest", tool_name="Bash", tool_input={"command": "make", "description": "may I?"})
    codex.put("at the prompt.txt")
    time.sleep(0.3)  # Codex does not measure its first moment
    ws.attend()
    began = time.time()
    codex.put("made.txt")
    ended = time.time()
    item = {"type": "CommandExecution", "id": "call_1", "exit_code": 0}
    item["duration"] = {"secs": 0, "nanos": int((ended - began) * 1e9)}
    completed = {"type": "item_completed", "item": item, "completed_at_ms": int(ended * 1000)}
    codex.write(type="event_msg", payload=completed)
    codex.send("PostToolUse", **BASH, tool_response="")
    assert whose(ws) == {"at the prompt.txt": "", "made.txt": "codex"}


RUNNING = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n"
STOPPED = "Wall time: 1.1 seconds\naborted by user"


@pytest.mark.parametrize("said", [RUNNING, STOPPED], ids=["it takes longer", "a person stops it"])
def test_what_codex_leaves_running_may_have_done_all_that_nobody_else_did(told, ws, said):
    codex = _codex(told)
    codex.put("made.txt")
    _output(codex, said)
    codex.put("soon.txt")
    other = {**BASH, "tool_use_id": "call_2"}
    patch = {"tool_name": "apply_patch", "tool_use_id": "call_3"}
    patch["tool_input"] = {"command": "*** Begin Patch\n*** Add File: named.txt\n+1\n*** End Patch\n"}
    codex.send("PreToolUse", **other)
    codex.put("of another.txt")
    codex.send("PostToolUse", **other, tool_response="")
    codex.put("later.txt")
    codex.send("PreToolUse", **patch)
    codex.put("named.txt")
    codex.put("meanwhile.txt")
    codex.send("PostToolUse", **patch, tool_response="")
    codex.send("Stop")
    codex.put("at rest.txt")
    codex.send("UserPromptSubmit", prompt="two")
    codex.put("in the next turn.txt")
    ws.checkpoint("a person's")
    sure = dict.fromkeys(("made.txt", "of another.txt", "named.txt"), "codex")
    maybe = ("soon.txt", "later.txt", "meanwhile.txt", "at rest.txt", "in the next turn.txt")
    assert whose(ws) == sure | dict.fromkeys(maybe, "codex?")
    first = {turn for effect in ws.history().effects if effect.uncertain for turn in effect.turns}
    assert len(first) == 1, "all of it may be of the turn that began it"
    codex.send("SessionEnd", reason="other")
    codex.put("after all.txt")
    ws.checkpoint("a person's")
    assert whose(ws)["after all.txt"] == "", "it dies with Codex"


def test_what_codex_left_running_may_have_done_all_until_the_end_that_it_writes_down(told, ws):
    codex = _codex(told)
    _output(codex, RUNNING)
    codex.send("Stop")
    codex.put("made.txt")
    item = {"type": "CommandExecution", "id": "call_1", "exit_code": 0, "duration": {"secs": 2, "nanos": 0}}
    completed = {"type": "item_completed", "item": item, "completed_at_ms": int(time.time() * 1000)}
    codex.write(type="event_msg", payload=completed)
    ws.close_stopped()  # as the resident process does, which then looks
    codex.put("mine.txt")
    ws.checkpoint("a person's")
    assert whose(ws) == {"made.txt": "codex?", "mine.txt": ""}, "somebody else may have written while it ran"
    assert not brackets.open_ones(ws.store.journal)


@pytest.fixture
def lenient(own_home):
    """A configuration that lets every call pass."""
    config = own_home / "config/takeback/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[policy.calls]\nall = "allow"\n')


def test_what_codex_left_running_did_outside_is_in_doubt_at_once_and_told_once(lenient, told, ws):
    codex = told("codex")
    post = {**BASH, "tool_input": {"command": "curl -X POST https://api.example.com/v1/charges"}}
    codex.send("UserPromptSubmit", prompt="one")
    codex.send("PreToolUse", **post)
    _output(codex, RUNNING)
    codex.send("Stop")
    assert [act.shown_state for act in ws.effects()] == ["unknown"]
    codex.send("Stop")
    codex.send("PostToolUse", **post, tool_response="")
    codex.send("SessionEnd", reason="other")
    assert [act.shown_state for act in ws.effects()] == ["unknown"]


def test_gemini_tells_of_a_refused_call_in_its_session(told, ws):
    gemini = told("gemini")
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "make"}}
    gemini.send("BeforeAgent", prompt="one")
    gemini.send("BeforeTool", **call)
    gemini.send("Notification", notification_type="ToolPermission", details={"type": "exec", "command": "make"})
    gemini.put("at the prompt.txt")
    result = [{"functionResponse": {"response": {"error": "[Operation Cancelled] Reason: User denied execution."}}}]
    done = {"name": call["tool_name"], "args": call["tool_input"], "status": "cancelled", "result": result}
    gemini.write(type="gemini", toolCalls=[{**done, "timestamp": _now()}])
    gemini.put("later.txt")
    ws.checkpoint("a person's")
    assert whose(ws) == {"at the prompt.txt": "", "later.txt": ""}


def test_nobody_knows_when_geminis_prompt_was_answered_but_what_a_call_names_is_its_own(told, ws):
    gemini = told("gemini")
    shell = {"tool_name": "run_shell_command", "tool_input": {"command": "make"}}
    write = {"tool_name": "write_file", "tool_input": {"file_path": "named.txt", "content": "1"}}
    gemini.send("BeforeAgent", prompt="one")
    for call, path in ((shell, "whose.txt"), (write, "named.txt")):
        gemini.send("BeforeTool", **call)
        gemini.send("Notification", notification_type="ToolPermission", details={})
        gemini.put(path)
        gemini.send("AfterTool", **call, tool_response={"llmContent": "ok"})
    assert whose(ws) == {"whose.txt": "gemini?", "named.txt": "gemini"}


def test_other_notices_of_gemini_and_copilot_ask_nobody(told, ws):
    for agent, before, after in (("gemini", "BeforeTool", "AfterTool"), ("copilot", "preToolUse", "postToolUse")):
        one = told(agent)
        call = {"tool_name": "run_shell_command", "tool_input": {"command": "make"}}
        if agent == "copilot":
            call = {"toolName": "bash", "toolArgs": {"command": "make"}}
        one.send(before, **call)
        one.send("Notification", hook_event_name="Notification", notification_type="shell_completed")
        one.send("PermissionRequest" if agent == "copilot" else "Notification", notification_type="other", **call)
        one.put(f"{agent}.txt")
        one.send(after, **call)
    assert whose(ws) == {"gemini.txt": "gemini", "copilot.txt": "copilot"}


COPILOT = {"toolName": "bash", "toolArgs": {"command": "make"}}


def _copilot(told: Any) -> Told:
    copilot: Told = told("copilot")
    copilot.send("userPromptSubmitted", prompt="one")
    start = {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "make"}}
    copilot.write(type="tool.execution_start", data=start)
    copilot.send("preToolUse", **COPILOT)
    return copilot


def test_copilot_says_when_a_person_allowed_a_call(told, ws):
    copilot = _copilot(told)
    copilot.write(type="permission.requested", data={"permissionRequest": {"toolCallId": "c1"}})
    copilot.send("Notification", hook_event_name="Notification", notification_type="permission_prompt")
    copilot.put("at the prompt.txt")
    time.sleep(0.15)
    ws.attend()
    copilot.write(type="permission.completed", data={"toolCallId": "c1", "result": {"kind": "approved"}})
    copilot.put("made.txt")
    copilot.send("postToolUse", **COPILOT, toolResult={"resultType": "success"})
    assert whose(ws) == {"at the prompt.txt": "", "made.txt": "copilot"}


@pytest.mark.parametrize("at_the_prompt", [True, False])
def test_copilot_tells_of_a_stopped_call_in_its_events(told, ws, at_the_prompt):
    copilot = _copilot(told)
    if at_the_prompt:
        copilot.write(type="permission.requested", data={"permissionRequest": {"toolCallId": "c1"}})
    copilot.put("before.txt")
    copilot.write(type="abort", data={"reason": "user_initiated"})
    ws.close_stopped()  # as the resident process does, which then looks
    copilot.put("later.txt")
    ws.checkpoint("a person's")
    assert whose(ws) == {"before.txt": "" if at_the_prompt else "copilot", "later.txt": ""}


def test_opencode_tells_of_questions_and_answers(told, ws):
    opencode = told("opencode")
    call = {"tool": "bash", "sessionID": "s", "callID": "c1"}
    args = {"args": {"command": "make"}}
    opencode.bus("tool.execute.before", input=call, output=args)
    opencode.bus("permission.asked", input={"type": "permission.asked", "sessionID": "s", "callID": "c1"})
    opencode.put("at the prompt.txt")
    opencode.bus("permission.replied", input={"type": "permission.replied", "sessionID": "s", "callID": "c1"})
    opencode.put("later.txt")
    opencode.bus("session.idle", input={"type": "session.idle", "sessionID": "s"})
    ws.checkpoint("a person's")
    assert whose(ws) == {"at the prompt.txt": "", "later.txt": ""}
    (bracket,) = ws.history().brackets.values()
    assert bracket.refused


def test_opencode_says_how_long_a_call_ran(told, ws):
    opencode = told("opencode")
    call = {"tool": "bash", "sessionID": "s", "callID": "c1"}
    args = {"args": {"command": "make"}}
    opencode.bus("tool.execute.before", input=call, output=args)
    opencode.bus("permission.asked", input={"type": "permission.asked", "sessionID": "s", "callID": "c1"})
    opencode.put("at the prompt.txt")
    time.sleep(0.15)
    ws.attend()
    began = time.time()
    opencode.put("made.txt")
    opencode.bus("tool.execute.after", input=call, output=args, duration_ms=(time.time() - began) * 1000)
    assert whose(ws) == {"at the prompt.txt": "", "made.txt": "opencode"}
