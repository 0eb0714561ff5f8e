"""What is the same for all agents: where they are installed, a process of one, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agents.model import Use

from .terminal import Terminal

CHECKOUT = Path(__file__).resolve().parents[3]
INSTALLED = CHECKOUT / ".cache" / "agents"
_MUST_RUN = os.environ.get("TAKEBACK_TEST_AGENTS", "").split()  # read once: a test's own environment has none of ours
_LONGEST = 120  # seconds that an agent may take for a scenario of a few calls


class Command(NamedTuple):
    argv: Sequence[str]
    environ: Mapping[str, str]


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Driver:
    """One agent. A subclass says how it is started and what its tools are called."""

    name: str  # as takeback calls it
    program: str
    ready: tuple[str, ...]  # in a terminal: what can be read there when it can be asked something
    asking: tuple[str, ...]  # … when it asks whether it may run a command
    yes = ("Enter",)  # keys that answer that
    no = ("Escape",)
    stop = ("Escape",)  # keys that end a command at work

    def __init__(self, home: Path, project: Path, model: str = "", servers: Mapping[str, Sequence[str]] = {}) -> None:
        self.home = home
        self.project = project
        self.model = model  # its address
        self.servers = servers  # MCP servers by name, and the command of each

    # -- its tools

    def write(self, path: str, text: str) -> Use:
        raise NotImplementedError

    def edit(self, path: str, old: str, new: str) -> Use:
        raise NotImplementedError

    def read(self, path: str) -> Use:
        raise NotImplementedError

    def shell(self, command: str) -> Use:
        raise NotImplementedError

    def mcp(self, server: str, tool: str, given: dict[str, object]) -> Use:
        raise NotImplementedError

    def asked(self, command: str) -> Use:
        """A command that a person is asked about, where the agent asks."""
        return self.shell(command)

    def limited(self, command: str, seconds: float) -> Use:
        """A command that may take no longer; what then becomes of it is the agent's affair."""
        raise NotImplementedError

    def behind(self, command: str) -> Use:
        """A command in the background, if the agent has one; else one that a shell leaves behind."""
        return self.shell(f"({command}) > /dev/null 2>&1 &")

    # -- starting it

    def trust(self) -> None:
        """What a person has to do once before the agent runs hooks; most want nothing."""

    def command(self, prompt: str, again: bool) -> Command:
        """How it is asked something; `again` goes on with the last session."""
        raise NotImplementedError

    def screen(self, asks: bool) -> Command:
        """How a person starts it in a terminal: it asks before it runs a command, or never."""
        raise NotImplementedError

    def start(self, prompt: str, again: bool = False) -> Running:
        argv, environ = self.command(prompt, again)
        return Running(argv, self.project, self.environ() | environ)

    def environ(self) -> dict[str, str]:
        path = os.pathsep.join([str(INSTALLED / "node" / "node_modules" / "node" / "bin"), os.environ["PATH"]])
        kept = {
            name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR") if name in os.environ
        }
        return {**kept, "HOME": str(self.home), "PATH": path, "NO_COLOR": "1", "CI": "1"}

    def sit_down(self, folder: Path, asks: bool) -> Terminal:
        """In a terminal, and ready to be asked something."""
        argv, environ = self.screen(asks)
        spoken = {name: value for name, value in self.environ().items() if name not in ("CI", "NO_COLOR")}
        terminal = Terminal(folder, argv, spoken | dict(environ), self.project)
        terminal.see(*self.ready)
        self.settle(terminal)
        return terminal

    def settle(self, terminal: Terminal) -> None:
        """Whatever it wants before it listens."""

    def ask(self, prompt: str, again: bool = False) -> Ran:
        """Started, and waited for."""
        return self.start(prompt, again).wait()

    @property
    def binary(self) -> str:
        return str(program_of(self.name, self.program))


class Running:
    """An agent at work, in a session of its own."""

    def __init__(self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait(self) -> Ran:
        try:
            out, err = self.process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"it did not end: {out.decode()[-2000:]}{err.decode()[-2000:]}") from None
        return Ran(self.process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def kill(self) -> None:
        """The agent alone, at once, with its launcher if it has one; what it started goes on."""
        kill_agent(Path(self.environ["HOME"]))
        self.process.wait()

    def end(self) -> None:
        """The same by SIGTERM, which it may answer in its own way."""
        kill_agent(Path(self.environ["HOME"]), signal.SIGTERM)
        self.process.wait(timeout=20)


def processes_of(home: Path) -> list[int]:
    """All that was started with a home, by the agent or by what it started."""
    wanted = b"HOME=" + os.fsencode(home)
    pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [pid for pid in pids if wanted in _proc(pid, "environ").split(b"\0")]


def kill_agent(home: Path, number: int = signal.SIGKILL) -> None:
    """All that was started with a home and is the agent's own program."""
    names = os.fsencode(INSTALLED), os.fsencode(INSTALLED.resolve())
    for pid in processes_of(home):
        if any(name in _proc(pid, "cmdline") for name in names):
            kill(pid, number)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _proc(pid: int, name: str) -> bytes:
    try:
        return Path("/proc", str(pid), name).read_bytes()
    except OSError:
        return b""


def program_of(name: str, program: str) -> Path:
    return INSTALLED / name / "node_modules" / ".bin" / program


def must_run(name: str) -> bool:
    """Whether scripts/test has installed this agent, so that its tests may not be skipped."""
    return name in _MUST_RUN


def why_not(driver: type[Driver]) -> str:
    """Why an agent cannot be driven here; empty if it can."""
    if not program_of(driver.name, driver.program).exists():
        lacking = "" if shutil.which("npm") else " (npm is not installed)"
        return f"{driver.name} is not installed: scripts/agents {driver.name}{lacking}"
    return ""
