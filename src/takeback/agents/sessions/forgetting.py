"""An agent's conversation without a turn, made by the agent's own program: a new session that ends before its prompt.

    session, prompt ─► its place in the session, as the program tells it ─► the program's own fork, cut there ─► new id

Nothing of the old session is changed, and no model is asked. Where a program has no such way, only the person can do
it (conversation.py says how).
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple
from urllib.parse import quote

from takeback.errors import TakebackError
from takeback.look.turns_and_calls import first_line
from takeback.system import regular_files
from takeback.system.http import exchange, place

from .conversation import way_to_forget

_LARGEST = 1 << 30  # bytes of a transcript
_LONGEST = 60.0  # seconds that a program may take
_NEAR = 120.0  # seconds between a prompt as the agent noted it and as its hook told of it
_WITHOUT = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")  # by these it knows that it runs in itself


class Asked(NamedTuple):
    """The turn from which on a session shall be forgotten."""

    agent: str
    session: str
    prompt: str  # its first line, as it was journaled
    at: float


class Forgotten(NamedTuple):
    """What came of it: a session without that turn, or why there is none."""

    agent: str
    session: str
    new_session: str = ""
    command: str = ""  # what goes on with it
    why: str = ""  # it was not done
    by_hand: str = ""  # how a person does it


class Prompt(NamedTuple):
    """A prompt of a session, as its program has it."""

    key: str  # what to cut at: the entry before it, or the prompt itself
    text: str
    at: float


class _Program(NamedTuple):
    """An agent's program, and where it runs."""

    binary: str
    environ: Mapping[str, str]
    cwd: Path


def forget(asked: Asked, environ: Mapping[str, str], cwd: Path) -> Forgotten:
    """Makes a session that ends before the turn, by the agent's own program."""
    way = _WAYS.get(asked.agent)
    by_hand = way_to_forget(asked.agent)
    if way is None:
        return Forgotten(asked.agent, asked.session, why="its program has no way to do that for you", by_hand=by_hand)
    name, command, fork = way
    binary = shutil.which(name, path=environ.get("PATH"))
    if binary is None:
        return Forgotten(asked.agent, asked.session, why=f"{name} is not on PATH", by_hand=by_hand)
    quiet = {**{n: v for n, v in environ.items() if n not in _WITHOUT}, "TAKEBACK": "off"}
    try:
        new = fork(_Program(binary, quiet, cwd), asked)
    except (
        TakebackError, OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError, AttributeError
    ) as error:  # fmt: skip
        why = error.message if isinstance(error, TakebackError) else f"{name} answered otherwise than it should"
        return Forgotten(asked.agent, asked.session, why=why, by_hand=by_hand)
    if not new:
        return Forgotten(asked.agent, asked.session, command=name, why="")
    return Forgotten(asked.agent, asked.session, new, f"{command} {new}")


def place_of(prompts: Sequence[Prompt], asked: Asked) -> int:
    """Which of a session's prompts was meant: of those at that time the one with these words, else the nearest."""
    near = [n for n, each in enumerate(prompts) if abs(each.at - asked.at) <= _NEAR]
    same = [n for n in near if first_line(prompts[n].text) == asked.prompt] or near
    if not same:
        raise TakebackError(f"its prompt was not found in session {asked.session}")
    return min(same, key=lambda n: abs(prompts[n].at - asked.at))


# -- Claude Code: a resumed session, cut at an entry of its transcript ----------------


def _fork_claude(program: _Program, asked: Asked) -> str:
    prompts = list(_claude_prompts(_claude_transcript(program, asked.session)))
    cut = prompts[place_of(prompts, asked)].key
    if not cut:
        return ""
    argv = [program.binary, "-p", "--resume", asked.session, "--resume-session-at", cut, "--fork-session"]
    argv += ["--settings", '{"disableAllHooks": true}', "--output-format", "json", "/cost"]  # which asks no model
    done = subprocess.run(
        argv, cwd=program.cwd, env=program.environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST
    )
    answer = json.loads(done.stdout)
    if not isinstance(answer, dict):
        raise ValueError(answer)
    if done.returncode or answer.get("is_error") or answer["session_id"] == asked.session:
        raise TakebackError(f"claude did not fork the session: {str(answer.get('result'))[:200]}")
    return str(answer["session_id"])


def _claude_transcript(program: _Program, session: str) -> Path:
    base = program.environ.get("CLAUDE_CONFIG_DIR") or f"{program.environ.get('HOME', '')}/.claude"
    if not re.fullmatch(r"[0-9a-fA-F-]{8,64}", session):
        raise TakebackError(f"{session!r} is no session of Claude Code")
    found = next(Path(base, "projects").glob(f"*/{session}.jsonl"), None)
    if found is None:
        raise TakebackError(f"the transcript of session {session} is not there")
    return found


def _claude_prompts(transcript: Path) -> Iterator[Prompt]:
    """Prompts by the entry before each, which is empty before the first."""
    for line in regular_files.read(transcript, _LARGEST).decode("utf-8", "replace").split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # its last line, half written
        if not isinstance(entry, dict) or entry.get("type") != "user" or entry.get("isMeta"):
            continue
        said = (entry.get("message") or {}).get("content")
        if isinstance(said, list):
            said = "\n".join(part["text"] for part in said if part.get("type") == "text")
        if said and not entry.get("isSidechain") and "toolUseResult" not in entry:
            yield Prompt(entry.get("parentUuid") or "", said, _moment(entry["timestamp"]))


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# -- Codex: its app server forks a thread up to a turn --------------------------------


def _fork_codex(program: _Program, asked: Asked) -> str:
    with _codex(program) as call:
        thread = call("thread/read", threadId=asked.session, includeTurns=True)["thread"]
        turns = thread["turns"]
        prompts = [Prompt(turn["id"], _codex_text(turn["items"]), float(turn["startedAt"] or 0)) for turn in turns]
        at = place_of(prompts, asked)
        if not at:
            return ""
        same = {
            "model": thread.get("model"),
            "modelProvider": thread.get("modelProvider"),
        }  # else its defaults
        through = prompts[at - 1].key
        forked = call("thread/fork", threadId=asked.session, lastTurnId=through, excludeTurns=True, **same)
        return str(forked["thread"]["id"])


def _codex_text(items: Sequence[Mapping[str, Any]]) -> str:
    said: Sequence[Mapping[str, Any]] = next((item["content"] for item in items if item["type"] == "userMessage"), ())
    return "\n".join(part["text"] for part in said if part.get("type") == "text")


@contextmanager
def _codex(program: _Program) -> Iterator[Callable[..., Any]]:
    """Its app server, asked by lines of JSON; ended when we are done."""
    with subprocess.Popen(
        [program.binary, "app-server"],
        cwd=program.cwd,
        env=program.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def call(method: str, **params: Any) -> Any:
            stdin.write(json.dumps({"id": method, "method": method, "params": params}).encode() + b"\n")
            stdin.flush()
            for line in stdout:
                answer = json.loads(line)
                if answer.get("id") == method:
                    if "error" in answer:
                        raise TakebackError(f"codex said: {str(answer['error'].get('message'))[:200]}")
                    return answer["result"]
            raise TakebackError("codex ended without an answer")

        with _ended_in_time(process):
            call("initialize", clientInfo={"name": "takeback", "version": "1"})
            yield call


# -- opencode: its server forks a session before a message ----------------------------


def _fork_opencode(program: _Program, asked: Asked) -> str:
    with _opencode(program) as call:
        messages = call("GET", f"/session/{asked.session}/message")
        prompts = [
            Prompt(each["info"]["id"], _opencode_text(each["parts"]), each["info"]["time"]["created"] / 1000)
            for each in messages
            if each["info"]["role"] == "user"
        ]
        at = place_of(prompts, asked)
        if not at:
            return ""
        return str(call("POST", f"/session/{asked.session}/fork", {"messageID": prompts[at].key})["id"])


def _opencode_text(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(part["text"] for part in parts if part.get("type") == "text" and not part.get("synthetic"))


@contextmanager
def _opencode(program: _Program) -> Iterator[Callable[..., Any]]:
    """Its server on a loopback port, with a password of our own; ended when we are done."""
    password = secrets.token_hex(16)
    environ = {**program.environ, "OPENCODE_SERVER_PASSWORD": password, "OPENCODE_SERVER_USERNAME": "takeback"}
    with subprocess.Popen(
        [program.binary, "serve", "--hostname", "127.0.0.1", "--port", "0"],
        cwd=program.cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        with _ended_in_time(process):
            address = re.compile(rb"http://127\.0\.0\.1:\d+")
            told = next((found for line in process.stdout if (found := address.search(line))), None)
            if told is None:
                raise TakebackError("opencode's server did not start")
            base = told[0].decode()
            headers = {"Authorization": "Basic " + b64encode(f"takeback:{password}".encode()).decode()}
            headers["Content-Type"] = "application/json"

            def call(method: str, path: str, given: Any = None) -> Any:
                at = place(f"{base}{path}?directory={quote(str(program.cwd), safe='')}")
                body = None if given is None else json.dumps(given).encode()
                reply = exchange(method, at, headers, body, _LONGEST, 1 << 30)
                if reply.status != 200:
                    raise TakebackError(f"opencode answered {reply.status or reply.why}")
                return json.loads(reply.body)

            yield call


@contextmanager
def _ended_in_time(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whatever it does, it is ended: when we are done, or after too long."""
    timer = Timer(_LONGEST, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()


# agent → its program, what goes on with a session, and how one is forked
_WAYS: dict[str, tuple[str, str, Callable[[_Program, Asked], str]]] = {
    "claude": ("claude", "claude --resume", _fork_claude),
    "codex": ("codex", "codex resume", _fork_codex),
    "opencode": ("opencode", "opencode --session", _fork_opencode),
}
CAN = tuple(_WAYS)
