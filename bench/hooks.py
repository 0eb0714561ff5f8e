"""Hooks of an agent, as it runs them: around a shell command, and around a tool that names the file it writes.

    git add -A, write-tree │ a spawned hook │ one over HTTP │ one without the resident process │ one for named paths

All in turn, each on a tree of its own. Before a command nothing has changed, after it ten files have.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import takeback
from takeback.surfaces.resident.command import hook_command

from . import calm, samples
from .library import environ
from .rounds import Say, Times
from .samples import Size
from .shadow_git import ShadowGit

SPAWNED, HTTP, ALONE, NAMED, START = (
    "hook",
    "hook over HTTP",
    "hook without the resident process",
    "hook of a write tool, without it",
    "hook, its start",
)
NOTHING, CHANGED = "nothing changed", "10 files changed"
_CHANGES = 10
_WARM = 2  # rounds that are not counted


class Hooked:
    """One way to ask, on a tree of its own."""

    def __init__(self, name: str, tree: Path, home: Path) -> None:
        self.name = name
        self.tree = tree
        self.home = home
        self._calls = 0
        runtime = home / "run"
        runtime.mkdir(parents=True)
        runtime.chmod(0o700)
        self._environ = {**environ(home), "XDG_RUNTIME_DIR": str(runtime)}
        self._environ.pop("PYTHONDONTWRITEBYTECODE", None)
        if name in (ALONE, NAMED):
            self._environ["TAKEBACK_RESIDENT"] = "off"
        self._port = _free_port() if name == HTTP else 0
        if self._port:
            self._environ["TAKEBACK_HOOKS_HTTP_PORT"] = str(self._port)
        self._command = {event: hook_command("claude", event) for event in ("PreToolUse", "PostToolUse")}

    def protect(self) -> None:
        takeback.open(self.tree, create=True, store=str(self.home / "store")).close()
        if self.name in (SPAWNED, HTTP):
            self._spawn("UserPromptSubmit", {"prompt": "bench"})  # has the resident process started
            until = time.monotonic() + 60
            while time.monotonic() < until and not self._is_warm():
                time.sleep(0.1)

    def before(self, path: str) -> float:
        self._calls += 1
        return self._ask("PreToolUse", path)

    def after(self, path: str) -> float:
        return self._ask("PostToolUse", path)

    def close(self) -> None:
        if self.name in (SPAWNED, HTTP):
            subprocess.run([*_takeback(), "resident", "stop"], env=self._environ, capture_output=True)

    def _ask(self, event: str, path: str) -> float:
        what = {
            "tool_use_id": f"call-{self._calls}",
            "tool_name": "Write" if self.name == NAMED else "Bash",
            "tool_input": {"file_path": str(self.tree / path)} if self.name == NAMED else {"command": "make"},
        }
        return self._post(event, what) if self.name == HTTP else self._spawn(event, what)

    def _payload(self, event: str, what: dict[str, object]) -> bytes:
        common = {"session_id": "bench", "transcript_path": "/nowhere.jsonl", "cwd": str(self.tree)}
        return json.dumps({**common, "hook_event_name": event, **what}).encode()

    def _spawn(self, event: str, what: dict[str, object]) -> float:
        command = self._command.get(event) or hook_command("claude", event)
        said = self._payload(event, what)
        started = time.perf_counter()
        done = subprocess.run(["sh", "-c", command], input=said, cwd=self.tree, env=self._environ, capture_output=True)
        took = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(f"a hook failed: {done.stderr.decode()}")
        return took

    def _post(self, event: str, what: dict[str, object]) -> float:
        token = (self.home / "run/takeback/token").read_text().strip()
        said = self._payload(event, what)
        started = time.perf_counter()
        line = http.client.HTTPConnection("127.0.0.1", self._port)
        line.request("POST", f"/claude/{event}", said, {"Authorization": f"Bearer {token}"})
        answer = line.getresponse()
        answer.read()
        took = time.perf_counter() - started
        line.close()
        if answer.status != 200:
            raise SystemExit(f"a hook over HTTP failed: {answer.status}")
        return took

    def _is_warm(self) -> bool:
        asked = [*_takeback(), "resident", "status", "--json"]
        done = subprocess.run(asked, env=self._environ, capture_output=True, text=True)
        found = json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}
        return any(workspace["watched"] for workspace in found.get("workspaces", ()))


def measure(size: Size, work: Path, say: Say) -> Times:
    """Each way to ask, before and after a command, beside git on the same tree."""
    master = work / "master"
    if not master.exists():
        say("writing the tree")
        samples.make(size, master)
    home = work / "hooks"
    git = ShadowGit(home / "git" / "tree", home / "git")
    sides = [
        Hooked(name, home / str(n) / "tree", home / str(n)) for n, name in enumerate((SPAWNED, HTTP, ALONE, NAMED))
    ]
    times: Times = {}
    try:
        for tree in (git.tree, *(side.tree for side in sides)):
            subprocess.run(["cp", "-a", str(master), str(tree)], check=True)
        git.first()
        for side in sides:
            side.protect()
        paths = sorted(str(p.relative_to(master)) for p in master.rglob("*") if p.is_file())
        for number in range(size.small_rounds + _WARM):
            say(f"hooks, round {number + 1} of {size.small_rounds + _WARM}")
            _round(git, sides if number % 2 else sides[::-1], paths, number, times if number >= _WARM else {})
        times[START] = _starts(sides[0], paths[0], size.small_rounds)
    finally:
        for side in sides:
            side.close()
    return times


def _round(git: ShadowGit, sides: list[Hooked], paths: list[str], number: int, times: Times) -> None:
    chosen = samples.pick(paths, _CHANGES, 1000 + number)
    took: dict[tuple[str, str], float] = {}
    steps: list[tuple[str, str, Callable[[], float]]] = [
        (NOTHING, "git", git.checkpoint),
        *((NOTHING, side.name, lambda side=side: side.before(chosen[0])) for side in sides),
    ]
    _run(steps, took)
    for tree in (git.tree, *(side.tree for side in sides)):
        samples.change(tree, chosen, number)
    steps = [
        (CHANGED, "git", git.checkpoint),
        *((CHANGED, side.name, lambda side=side: side.after(chosen[0])) for side in sides),
    ]
    _run(steps, took)
    git.checkpoint()  # untimed: what was too fresh to trust is looked at again
    for moment in (NOTHING, CHANGED):
        for side in sides:
            found = times.setdefault(f"{side.name}, {moment}", {"git": [], "takeback": []})
            found["git"].append(took[moment, "git"])
            found["takeback"].append(took[moment, side.name])


def _run(steps: list[tuple[str, str, Callable[[], float]]], took: dict[tuple[str, str], float]) -> None:
    for moment, name, act in steps:
        calm.settle()
        took[moment, name] = act()


def _starts(side: Hooked, path: str, rounds: int) -> dict[str, list[float]]:
    """A warm hook against a bare interpreter, both through a shell."""
    times: dict[str, list[float]] = {"python": [], "takeback": []}
    bare = f"'{sys.executable}' -I -S -c pass"
    for _ in range(max(rounds, 15)):
        started = time.perf_counter()
        subprocess.run(["sh", "-c", bare], input=b"{}", capture_output=True, check=True)
        times["python"].append(time.perf_counter() - started)
        times["takeback"].append(side.before(path))
        side.after(path)
    return times


def ratio(times: dict[str, list[float]], other: str) -> float:
    return statistics.median(times[other]) / statistics.median(times["takeback"])


def _takeback() -> list[str]:
    return [sys.executable, "-m", "takeback"]


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


if os.name != "posix":
    raise SystemExit("hooks are measured on Unix systems")
