"""A resident process of the test's own: in a runtime folder of its own, ended with the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback
from support import PORTABLE
from takeback.surfaces.resident import starting
from takeback.surfaces.resident.command import hook_command

LONG = 30.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and (PORTABLE or os.name != "posix"):
            item.add_marker(pytest.mark.skip(reason="portable mode has no resident process"))


class Hooks:
    """An agent that runs its hooks, as far as they can tell."""

    def __init__(self, project: Path, runtime: Path) -> None:
        self.project = project
        self.runtime = runtime
        self.session = "session-1"
        self.environ: dict[str, str] = {}

    def start(self, event: str, **what: Any) -> subprocess.Popen[bytes]:
        said = {
            "session_id": self.session,
            "transcript_path": "/nowhere.jsonl",
            "cwd": str(self.project),
            "hook_event_name": event,
            **what,
        }
        process = subprocess.Popen(
            ["sh", "-c", hook_command("claude", event)],
            cwd=self.project,
            env={**os.environ, **self.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(said).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def ask(self, event: str, **what: Any) -> str:
        out, err = (process := self.start(event, **what)).communicate(timeout=LONG)
        assert process.returncode == 0, err.decode()
        assert not err, err.decode()
        return out.decode()

    def before(self, key: str, command: str = "make") -> str:
        return self.ask("PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id=key)

    def after(self, key: str, command: str = "make") -> str:
        return self.ask("PostToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id=key)

    def up(self) -> dict[str, Any]:
        """The resident process, once it watches the project."""
        return until(lambda: (found := starting.status()) and _watches(found, self.project) and found)

    def calls(self) -> list[tuple[str, bool]]:
        """The calls in the journal, and whether each is closed."""
        with takeback.open(self.project) as ws:
            return [(b.call.key, bool(b.closed)) for b in ws.history().brackets.values()]

    def changed(self) -> list[tuple[set[str], set[str]]]:
        """Each effect of calls: its paths, and the keys of the calls it is of."""
        with takeback.open(self.project) as ws:
            history = ws.history()
            return [
                ({os.fsdecode(p) for p in e.changes}, {history.brackets[id].call.key for id in e.calls})
                for e in history.effects
                if e.calls
            ]


def _watches(found: dict[str, Any], project: Path) -> bool:
    return any(w["root"] == str(project) and w["watched"] for w in found["workspaces"])


def until(is_so: Any, what: str = "") -> Any:
    """What a condition comes to, once it holds."""
    end = time.monotonic() + LONG
    while not (found := is_so()):
        assert time.monotonic() < end, what or "it never came to that"
        time.sleep(0.02)
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("r")
    folder.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.delenv("TAKEBACK_RESIDENT")
    monkeypatch.setenv("TAKEBACK_HOOKS_IDLE", "2m")  # a test that fails leaves nothing for long
    yield folder
    if sys.platform != "win32":
        starting.status(stop=True)


@pytest.fixture
def hooks(project: Path, runtime: Path) -> Hooks:
    (project / "src").mkdir()
    (project / "src/a").write_text("1\n")
    takeback.open(project, create=True).close()
    return Hooks(project, runtime)
