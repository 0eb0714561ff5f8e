"""Whether an agent stands above this process: what only a person may do is refused there.

    this process ─► its parent ─► … ─► one that was journaled as an agent's session (pid and start time)
    the environment ─► a variable that agents set for what they start

An agent that runs as the user can get around both; docs/security.md says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

# What agents put into the environment of the commands they run, and whose it is.
MARKERS: Mapping[str, str] = {
    "CLAUDECODE": "Claude Code",
    "CODEX_SANDBOX": "Codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "Codex",
    "CODEX_THREAD_ID": "Codex",
    "GEMINI_CLI": "Gemini CLI",
    "QWEN_CODE": "Qwen Code",
    "CURSOR_AGENT": "Cursor",
    "OPENCODE": "opencode",
    "COPILOT_CLI": "Copilot CLI",
    "CLINE_ACTIVE": "Cline",
    "AUGMENT_AGENT": "Augment",
    "GOOSE_TERMINAL": "goose",
    "AI_AGENT": "an agent",
}
_UNSET = ("", "0", "false")
_MOST = 256  # ancestors: no chain is that long, and a loop must end
_START = 5.0  # seconds that a hook may take to start, on a busy machine
_PROC = "/proc"
_DEAD = (b"Z", b"X")  # states of a process that nobody has cleared away
_SHELLS = frozenset((b"sh", b"bash", b"dash", b"zsh", b"fish", b"ksh", b"ash", b"busybox", b"env", b"timeout"))


class Process(NamedTuple):
    pid: int
    started: int  # in ticks since the system started; 0 where that cannot be told


class Activity(NamedTuple):
    """What a process has begun, as far as this system tells."""

    ended: int = 0  # grows with every process that it began and that is over
    begun: frozenset[int] = frozenset()  # those of a certain time that are at work


def agent_above(sessions: Iterable[Mapping[str, Any]], environ: Mapping[str, str]) -> str:
    """A sentence that names the agent among the ancestors of this process; empty if there is none."""
    known = {
        Process(s["pid"], s["started"]): str(s.get("name") or "an agent")
        for s in sessions
        if isinstance(s.get("pid"), int) and isinstance(s.get("started"), int)  # a journal may be damaged
    }
    for process in ancestors(os.getpid()) if known else ():
        if process in known:
            return f"{known[process]} is at work here: process {process.pid} is its session"
    for variable, name in MARKERS.items():
        if environ.get(variable, "") not in _UNSET:
            return f"{name} is at work here: {variable} is in the environment"
    return ""


def agent_named(sessions: Iterable[Mapping[str, Any]], environ: Mapping[str, str]) -> str:
    """What the same agent is called in the journal, or by its mark in the environment; empty if there is none."""
    known = {Process(s["pid"], s["started"]): str(s.get("name") or "") for s in sessions}
    for process in ancestors(os.getpid()) if known else ():
        if known.get(process):
            return known[process]
    return next((name for variable, name in MARKERS.items() if environ.get(variable, "") not in _UNSET), "")


def ancestors(pid: int) -> Iterator[Process]:
    """A process and those above it, as far up as this system tells."""
    for _ in range(_MOST):
        yield Process(pid, started(pid))
        parent = _parent(pid)
        if parent <= 0:
            return
        pid = parent


def above_shells(pid: int) -> Process:
    """The first process above one that is no shell: of a hook, its agent's."""
    found = Process(0, 0)
    for process in ancestors(pid):
        if process.pid == pid or (process.pid > 1 and _name(process.pid) in _SHELLS):
            continue
        found = process
        break
    return found if found.pid > 1 else Process(0, 0)


def above_launchers(pid: int) -> Process:
    """The first process above one that did not merely pass its own input on: of a server that is spoken to there, its
    client, whatever script or program stands between."""
    own = _input(pid)
    for process in ancestors(pid):
        if process.pid == pid:
            continue
        if process.pid <= 1:
            break
        fed = _input(process.pid)
        if not (own and fed == own) and not (fed and _name(process.pid) in _SHELLS):
            return process
    return Process(0, 0)


def _input(pid: int) -> str:
    """What a process is fed by, where that is a pipe or a socket."""
    try:
        found = os.readlink(f"{_PROC}/{pid}/fd/0")
    except OSError:
        return ""
    return found if found.startswith(("pipe:", "socket:")) else ""


def started(pid: int) -> int:
    """When a process started, so that a later one of the same number is not taken for it; 0 if nobody can tell, or if
    it is over and only its parent has not asked how it ended."""
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 and fields[0] not in _DEAD else 0


def started_at(pid: int) -> float:
    """The same as the time of day, to a hundredth of a second; 0 if nobody can tell."""
    ticks = started(pid)
    if not ticks or not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def hook_began(pid: int) -> float:
    """When an agent began a hook, given the hook's own process: its shell gave way to that. 0 if nobody can tell, or if
    it was not begun for this event alone."""
    found = started_at(pid)
    return found if 0 <= time.time() - found < _START else 0.0


def activity(pid: int, since: float) -> Activity:
    """What a process has begun; of what is at work, since a time."""
    fields = _stat(pid)
    if len(fields) <= 19:
        return Activity()
    return Activity(int(fields[8]), frozenset(child for child in _children(pid) if started_at(child) > since))


def is_at_work(pid: int, since: float, until: float) -> bool | None:
    """Whether something that a process began between two moments has not ended; None where nobody can tell."""
    if not _stat(pid) or not os.path.exists(f"{_PROC}/{pid}/task/{pid}/children"):
        return None
    return any(since < started_at(child) <= until for child in _children(pid))


def marked_in(folder: str, since: float) -> Iterator[int]:
    """Processes at work in a folder that began since a moment and have an agent's mark; none where nobody can tell."""
    try:
        found = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return
    top = os.path.realpath(folder)
    for pid in found:
        if started_at(pid) >= since and _is_in(pid, top) and _is_marked(pid):
            yield pid


def _is_in(pid: int, folder: str) -> bool:
    try:
        return (os.readlink(f"{_PROC}/{pid}/cwd") + "/").startswith(folder.rstrip("/") + "/")
    except OSError:
        return False


def _is_marked(pid: int) -> bool:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            said = dict(part.partition("=")[::2] for part in os.fsdecode(file.read()).split("\0"))
    except OSError:
        return False
    return any(said.get(variable, "") not in _UNSET for variable in MARKERS)


def _children(pid: int) -> Iterator[int]:
    """Processes that one has begun, by whichever of its threads; none where the system does not list them."""
    try:
        for thread in os.listdir(f"{_PROC}/{pid}/task"):
            with open(f"{_PROC}/{pid}/task/{thread}/children", "rb") as file:
                yield from map(int, file.read().split())
    except OSError:
        return


def _parent(pid: int) -> int:
    fields = _stat(pid)
    if fields:
        return int(fields[1])
    return os.getppid() if pid == os.getpid() else 0


def _name(pid: int) -> bytes:
    try:
        with open(f"{_PROC}/{pid}/comm", "rb") as file:
            return file.read().strip()
    except OSError:
        return b""


def _stat(pid: int) -> list[bytes]:
    """What follows the name in /proc/PID/stat; the name itself may hold spaces and brackets."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []
