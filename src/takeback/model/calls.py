"""Who acts, and what is called: an agent's session, and one call of a tool. Light: a hook that has nothing to do loads
nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from takeback.system import processes

if TYPE_CHECKING:
    from .outside import NewAct

BY_CONTENT = (
    "#"  # begins the key of a call that its agent gave no name: made of what is called, and numbered in the end
)
TURN = "turn"  # the key of a bracket that stands around a whole turn of a thread: calls inside are a part of it


class Caller(NamedTuple):
    """Who acts: a session of an agent, or a subagent in it, and the process it runs in."""

    agent: str
    session: str
    lane: str = ""  # the subagent; empty for the agent itself
    pid: int = 0
    started: int = 0
    one_at_a_time: bool = False  # whether its next call means that the one before is over
    run: str = ""  # the `takeback run` that it was started by

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended; a later one of the same number is another."""
        return bool(self.pid and self.started) and processes.started(self.pid) != self.started


class Call(NamedTuple):
    """One tool call, as its agent announced it."""

    key: str  # the agent's own name for it, the same before and after
    tool: str
    summary: str  # what a person recognises: "Bash: npm run migrate"
    paths: tuple[bytes, ...] = ()  # below the root; what it will write, where it says so
    scans: bool = True  # it may write anywhere
    acts: tuple[NewAct, ...] = ()  # what it will have done outside the files, once it is over
    asked: bool = False  # a person was to say whether it may run
    thread: str = ""  # the conversation that it was called in, and how far that had come, as its harness calls both
    cursor: str = ""
    transcript: str = ""  # the file in which its agent writes down what becomes of its calls
