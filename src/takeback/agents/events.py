"""What a hook is told and what it answers, the same for every agent.

stdin of a hook ─► Agent.parse ─► Event ─► (surfaces/hook.py acts on it) ─► Answer ─► Agent.render ─► Reply
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from takeback.model.calls import Caller

if TYPE_CHECKING:
    from takeback.journal.brackets import End

START = "start"  # a session begins, or goes on
PROMPT = "prompt"  # a person asks something
BEFORE = "before"  # a tool is about to be called
ASKED = "asked"  # the agent asks a person whether it may be called
REFUSED = "refused"  # a person said no
AFTER = "after"  # it was called
REST = "rest"  # the agent, or a subagent, has finished what it was asked
END = "end"  # the session is over
OTHER = "other"  # nothing of ours
STRANGE = "strange"  # what this program has never heard of

# What a tool does, as far as its agent says.
READS = "reads"  # nothing is captured
WRITES = "writes"  # the paths that it names
SHELL = "shell"  # a command
UNKNOWN = "unknown"  # it may do anything: other MCP servers' tools, and what is newer than this program

ALLOW, ASK, DENY = "allow", "ask", "deny"
FOLDERS = ("workdir", "working_directory", "directory", "dir_path", "cwd")  # what agents call where a shell is to run


class Event(NamedTuple):
    kind: str
    caller: Caller
    cwd: str = ""
    prompt: str = ""
    tool: str = ""  # as the agent calls it
    does: str = UNKNOWN
    paths: tuple[str, ...] = ()  # that it names, as given
    command: str = ""  # of a shell
    server: str = ""  # the MCP server whose tool it is
    annotations: Mapping[str, Any] = {}  # what that server says of the tool, where the agent passes it on
    input: Mapping[str, Any] = {}
    key: str = ""  # the call's name, the same before and after
    failed: bool = False
    exit: int | None = None  # with which a shell's command ended, where its agent says so
    said: str = ""  # the beginning of what that command said, where its agent says so
    name: str = ""  # the agent's own name of the event
    goes_on: bool = False  # it is over, and left a command running in the background
    ran: float | None = None  # seconds that a call was at work, without the time that a person was asked
    transcript: str = ""  # the file in which the agent writes down its calls and what became of them


class Answer(NamedTuple):
    decision: str = ""  # nothing to say, or allow, ask, deny
    reason: str = ""  # why it is asked for or denied: for the model and the person
    context: str = ""  # told to the model with the prompt
    message: str = ""  # one line for the person
    call: str = ""  # the id by which a person approves what is asked for or denied


class Reply(NamedTuple):
    """What a hook does to its agent."""

    code: int = 0
    out: str = ""
    err: str = ""


class Agent(Protocol):
    """How one coding agent speaks to hooks."""

    name: str  # "claude"
    title: str  # "Claude Code"
    can_ask: bool  # whether a hook can have the person asked
    begins_commands: bool  # whether each command is a process that its own process begins
    events: Mapping[str, str]  # the kinds of its events, by its own names of them
    tools: Mapping[str, str]  # what its tools do, by its own names of them

    def parse(self, payload: Mapping[str, Any], event: str, caller: Caller) -> Event:
        """An event from what the hook read; `event` is its name where the payload does not say. The caller comes with
        its process; parse adds session and lane. What makes no sense is an event of kind STRANGE."""

    def is_alone(self, environ: Mapping[str, str]) -> bool:
        """Whether nobody sits at it, by what its hooks are started with: it refuses what it is told to ask about."""

    def transcript_of(self, session: str, environ: Mapping[str, str]) -> str:
        """Where the transcript of a session lies, if its events do not say that; empty where nobody knows."""

    def end_of(self, transcript: str, key: str, prompted: bool, since: float) -> End | None:
        """What its transcript says of the end of a call that was announced at a moment, and about which a person was
        asked or not; None: nothing yet."""

    def began(self, transcript: str, key: str, since: float) -> float:
        """What its transcript says of the moment in which a call began its work, after a person was asked about it; 0:
        nothing."""

    def render(self, event: Event, answer: Answer) -> Reply:
        """An answer as this agent understands it: exit code 0 or 2, nothing or one JSON object on stdout."""
