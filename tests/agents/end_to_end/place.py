"""Where a scenario plays: a git project with a person's own work in it, a home, and takeback protecting it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import takeback
from agents.drivers import Driver
from agents.drivers.driver import Ran, kill, kill_agent, processes_of
from agents.drivers.terminal import Terminal
from agents.model import Model, Turn
from support import picture
from takeback.journal.history import History
from takeback.model.effects import Effect

NOTES = Path(__file__).with_name("notes.py")
_OWN = (b".git", b".claude", b".codex", b".gemini", b".qwen", b".github", b".opencode", b".mcp.json")
_LONGEST = 60


class World(NamedTuple):
    """All that an undo has to bring back: every path by hash and mode, HEAD, refs, the index and the stash."""

    tree: Mapping[bytes, tuple[Any, ...]]
    head: str
    refs: str
    index: str
    stash: str


class Place:
    def __init__(self, folder: Path, driver: type[Driver]) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.remote = folder / "remote.git"
        self.home.mkdir()
        self.project.mkdir()
        self._driver = driver
        self._make_project()

    def _make_project(self) -> None:
        """Committed, ignored, changed and staged files, as a person leaves them lying around."""
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")  # in the project: some agents hide the user's own settings from git
        self.git("config", "user.email", "ada@example.com")
        self.git("config", "commit.gpgSign", "false")
        (self.project / "src").mkdir()
        self.put("src/app.py", "print('hello')\n")
        self.put("kept.txt", "one\ntwo\nthree\n")
        self.put("run.sh", "#!/bin/sh\n", mode=0o755)
        self.put(".gitignore", ".env\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")
        self.git("init", "-q", "--bare", "-b", "main", str(self.remote))
        self.git("remote", "add", "origin", str(self.remote))
        self.put(".env", "KEY=1\n", mode=0o600)
        self.put("staged.txt", "staged by hand\n")
        self.git("add", "staged.txt")

    # -- what a person does

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.project / path
        file.write_text(text)
        file.chmod(mode)

    def read(self, path: str) -> str:
        return (self.project / path).read_text()

    def git(self, *words: str) -> str:
        return self._run(["git", *words]).out.strip()

    def takeback(self, *words: str, code: int | None = 0) -> Ran:
        return self._run([sys.executable, "-m", "takeback", *words], code)

    def protect(self, *words: str) -> None:
        self.takeback("protect", self._driver.name, *words, "--yes")

    def undo(self) -> Ran:
        return self.takeback("undo", "--yes")

    def redo(self) -> Ran:
        return self.takeback("redo", "--yes")

    def approve(self, call: str) -> None:
        """At a terminal, where it is asked for in so many letters."""
        mine, its = os.openpty()
        argv = [sys.executable, "-m", "takeback", "approve", call]
        with subprocess.Popen(
            argv, cwd=self.project, stdin=its, stdout=its, stderr=its, start_new_session=True
        ) as process:
            os.close(its)
            shown = b""
            while b"Type yes" not in shown and (part := _read(mine)):
                shown += part
            os.write(mine, b"yes\n")
            while part := _read(mine):
                shown += part
        os.close(mine)
        assert process.returncode == 0, shown.decode()

    def _run(self, argv: Sequence[str], code: int | None = 0) -> Ran:
        done = subprocess.run(argv, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST)
        ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert code in (ran.code, None), (argv, ran)
        return ran

    # -- what the agent does

    def driver(self, model: Model | None = None, servers: bool = False) -> Driver:
        given = {"notes": (sys.executable, str(NOTES), str(self.project))} if servers else {}
        return self._driver(self.home, self.project, model.url if model is not None else "", given)

    def play(self, *turns: Turn, prompt: str = "please", again: bool = False, servers: bool = False) -> Model:
        """The agent is asked once, and does what the model says. What the model saw."""
        with Model(turns) as model:
            ran = self.driver(model, servers).ask(prompt, again)
        assert not model.failures, model.failures
        assert ran.code == 0, ran
        assert model.played >= len(turns), (model.played, ran)
        return model

    @contextmanager
    def sit_down(self, *turns: Turn, asks: bool) -> Iterator[Terminal]:
        """The agent in a terminal; it asks a person before it runs a command, or never. All of it ends with the block."""
        with Model(turns) as model:
            terminal = self.driver(model).sit_down(self.project.parent, asks)
            try:
                yield terminal
            finally:
                terminal.close()
                self.stop()
        assert not model.failures, model.failures

    def kill_agent(self) -> None:
        kill_agent(self.home)

    def wait_for(self, path: str) -> None:
        wait_until((self.project / path).exists, path)

    def stop(self) -> None:
        """Ends all that was started here: an agent, its commands, and what answers its hooks."""
        quiet = 0
        while quiet < 2:  # one that is just being started shows only a moment later
            found = processes_of(self.home)
            for pid in found:
                kill(pid)
            quiet = 0 if found else quiet + 1
            time.sleep(0.05)

    # -- what came of it

    def world(self) -> World:
        return World(
            picture(self.project, times=False, skip=_OWN),
            self.git("symbolic-ref", "HEAD"),
            self.git("for-each-ref", "--format=%(refname) %(objectname)"),
            self.git("ls-files", "--stage"),
            self.git("stash", "list", "--format=%H %gs"),
        )

    def history(self) -> History:
        with takeback.open(self.project) as ws:
            return ws.history()

    def effects(self) -> list[Effect]:
        """What was done to the project, by whomever; not what a take-back did, nor what agents keep for themselves."""
        found = [effect for effect in self.history().effects if not effect.takeback]
        return [effect for effect in found if any(path.partition(b"/")[0] not in _OWN for path in effect.changes)]

    def decided(self) -> list[str]:
        """What became of each call at the gate, the newest first, as the log tells it."""
        rows = json.loads(self.takeback("log", "kind:gate", "--json").out)["rows"]
        return [row["state"] for row in rows]

    def whose(self) -> dict[str, set[str]]:
        """Each path that changed, and the prompts it belongs to: none is a person's, several are shared; with a question
        mark where it is uncertain."""
        history, found = self.history(), dict[str, set[str]]()
        for effect in self.effects():
            mark = "?" if effect.uncertain else ""
            prompts = {history.agent_turns[turn].prompt + mark for turn in effect.turns}
            for path in effect.changes:
                found.setdefault(os.fsdecode(path), set()).update(prompts or {"nobody"})
        return found


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except OSError:  # the other side is closed
        return b""


def wait_until(what: Callable[[], bool], why: str) -> None:
    deadline = time.monotonic() + _LONGEST
    while not what():
        assert time.monotonic() < deadline, f"it never came: {why}"
        time.sleep(0.02)


def own_environ(place: Path) -> dict[str, str]:
    """The person's environment in a place: nothing of the real home, and a short path for sockets."""
    run = place / "run"
    run.mkdir(mode=0o700)
    return {"HOME": str(place / "home"), "XDG_RUNTIME_DIR": str(run), "LANG": os.environ.get("LANG", "C.UTF-8")}
