"""Steps of harnesses at work in a workspace, in whichever process. Each has a mark in the store, and holds its lock.

A mark says whose the step is, and what it is inside of. Written to it later: the turns that began in the step, and the
steps that came while it was at work. A mark whose lock nobody holds is of a step whose process died in it: the look
that finds it drops it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.system import processes

from . import runs_at_work

if TYPE_CHECKING:
    from takeback.journal.brackets import Bracket

_FOLDER = "steps"
_TICKS = 0.03  # seconds by which a process may have begun later than is told


class StepAtWork(NamedTuple):
    """A step as its mark tells of it."""

    id: str
    at: float  # when it began
    actor: str  # whose files it makes; empty if it names nobody
    process: processes.Process
    around: frozenset[str]  # the ids of steps, and the numbers of turns, that it is inside of
    inside: frozenset[str]  # the numbers of turns that began in it
    beside: tuple[str, ...]  # the actors of steps that came while it was at work, and are no part of it
    died: bool = False

    def has_inside(self, bracket: Bracket) -> bool:
        """Whether a call is a part of it: its turn began in the step, or the step started its program."""
        pid = bracket.caller.pid
        return bracket.turn.number in self.inside or (bool(pid) and self.has_started(pid))

    def has_started(self, pid: int) -> bool:
        """Whether a process, or the one above it that the step's process has started, began after the step did."""
        below = 0
        for process in processes.ancestors(pid):
            if process == self.process:
                return below > 0 and processes.started_at(below) + _TICKS >= self.at
            below = process.pid
        return False


class Mark:
    """The mark of a step of this process, until it is dropped."""

    def __init__(self, store: Path, id: str, actor: str, around: Iterable[str]) -> None:
        self.id = id
        self._store = store
        self._path = store / _FOLDER / id
        self._held = ExitStack()
        self._held.enter_context(runs_at_work.mark(self._path))
        own = processes.Process(os.getpid(), processes.started(os.getpid()))
        around = {*around, *_started_by(at_work(store), own)}
        said = {"at": time.time(), "actor": actor, "process": list(own), "around": sorted(around)}
        _write(self._path, said)
        self.beside = self._met(actor, around)

    def _met(self, actor: str, around: set[str]) -> list[str]:
        """The actors of steps that are at work and are no part of it, nor it of them; each is told of this one. Of two
        that begin at once, one sees the other."""
        others = [s for s in at_work(self._store) if not s.died and s.id != self.id]
        met = [s for s in others if s.id not in around and self.id not in s.around]
        for step in met:
            _write(self._path.with_name(step.id), {"beside": actor})
        return [step.actor for step in met]

    def note_inside(self, turn: str) -> None:
        """A turn has begun in the step."""
        _write(self._path, {"inside": turn})

    def drop(self) -> None:
        """The step is over."""
        known = _read(self._path, died=False)
        self.beside += known.beside if known is not None else ()
        self._held.close()


def can_tell(store: Path | None) -> bool:
    """Whether steps of several processes know of each other here."""
    return store is not None and runs_at_work.can_tell()


def at_work(store: Path | None) -> list[StepAtWork]:
    """Steps that are open, in any process, and those whose process died in them."""
    folder = store / _FOLDER if store is not None else None
    try:
        names = sorted(os.listdir(folder)) if folder is not None else []
    except OSError:
        return []
    found = (_read(folder / name, not runs_at_work.is_alive(folder / name)) for name in names if folder is not None)
    return [step for step in found if step is not None]


def forget(store: Path | None, steps: Sequence[StepAtWork]) -> None:
    """Drops the marks of steps whose process died in them."""
    for step in steps:
        if store is not None and step.died:
            (store / _FOLDER / step.id).unlink(missing_ok=True)


def closest(steps: Sequence[StepAtWork]) -> list[StepAtWork]:
    """Those of them that no other one is inside of."""
    around = {id for step in steps for id in step.around}
    return [step for step in steps if step.id not in around]


def _started_by(steps: Sequence[StepAtWork], own: processes.Process) -> set[str]:
    """The steps that this program was started in, by another one. Of steps side by side nobody can tell which one it
    was."""
    above = [s for s in steps if not s.died and s.process != own and s.has_started(own.pid)]
    return {id for step in above for id in (step.id, *step.around)} if len(closest(above)) == 1 else set()


def _write(path: Path, line: dict[str, Any]) -> None:
    with suppress(OSError):  # it is over meanwhile
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(fd, json.dumps(line).encode() + b"\n")
        finally:
            os.close(fd)


def _read(path: Path, died: bool) -> StepAtWork | None:
    try:
        first, *later = [json.loads(line) for line in path.read_bytes().splitlines()]
        inside = frozenset(line["inside"] for line in later if "inside" in line)
        beside = tuple(line["beside"] for line in later if "beside" in line)
        process, around = processes.Process(*first["process"]), frozenset(first["around"])
        return StepAtWork(path.name, first["at"], first["actor"], process, around, inside, beside, died)
    except (OSError, ValueError, LookupError, TypeError):  # just made, or just dropped
        return None
