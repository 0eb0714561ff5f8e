"""Claude Code: its hooks' payloads are the pattern that others follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from takeback.model.calls import Caller

from . import events as kinds
from .dialect import Dialect, text
from .events import Event
from .sessions import claude

if TYPE_CHECKING:
    from takeback.journal.brackets import End

_READERS = (
    "Read NotebookRead Glob Grep LS LSP WebFetch WebSearch TodoRead TodoWrite AskUserQuestion EnterPlanMode "
    "ExitPlanMode BashOutput KillBash KillShell TaskOutput TaskStop TaskCreate TaskGet TaskList TaskUpdate "
    "AgentOutputTool ListAgents ReportFindings ScheduleWakeup ListMcpResourcesTool ReadMcpResourceTool ToolSearch "
    "StructuredOutput SendMessage"
)
# What Claude Code itself sends as a prompt.
_NOTICES = (
    "<task-notification>", "<local-command-caveat>", "<local-command-stdout>", "<local-command-stderr>",
    "<bash-stdout>", "<bash-stderr>", "<teammate-message", "<cross-session-message", "<tick>",
)  # fmt: skip
_HEADLESS = "sdk-cli"  # the entry point of `claude -p`
_REMINDER = "<system-reminder>"


class Claude(Dialect):
    name = "claude"
    title = "Claude Code"
    can_ask = True
    begins_commands = True
    events: Mapping[str, str] = {
        "SessionStart": kinds.START,
        "UserPromptSubmit": kinds.PROMPT,
        "PreToolUse": kinds.BEFORE,
        "PermissionRequest": kinds.ASKED,
        "PostToolUse": kinds.AFTER,
        "PostToolUseFailure": kinds.AFTER,
        "Stop": kinds.REST,
        "StopFailure": kinds.REST,
        "SubagentStop": kinds.REST,
        "SessionEnd": kinds.END,
    }
    tools: Mapping[str, str] = {
        **dict.fromkeys(_READERS.split(), kinds.READS),
        **dict.fromkeys(("Task", "Agent"), kinds.READS),  # the calls of a subagent have hooks of their own
        **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), kinds.WRITES),
        **dict.fromkeys(("Bash", "PowerShell", "Monitor"), kinds.SHELL),
        **dict.fromkeys(("Skill", "SlashCommand", "EnterWorktree", "ExitWorktree"), kinds.UNKNOWN),
    }

    def parse(self, payload: Mapping[str, Any], event: str, caller: Caller) -> Event:
        found = super().parse(payload, event, caller)
        if found.kind == kinds.START and text(payload, "source") == "compact":
            return found._replace(kind=kinds.OTHER)  # the same process goes on, and calls may be at work
        if found.kind == kinds.PROMPT and is_made_by_program(found.prompt):
            return found._replace(kind=kinds.OTHER)  # what comes of it belongs to the person's last turn
        if found.transcript and found.caller.lane:  # a subagent's calls are in a transcript of its own
            folder = found.transcript.removesuffix(".jsonl")
            return found._replace(transcript=f"{folder}/subagents/agent-{found.caller.lane}.jsonl")
        return found

    def is_alone(self, environ: Mapping[str, str]) -> bool:
        return environ.get("CLAUDE_CODE_ENTRYPOINT") == _HEADLESS

    def end_of(self, transcript: str, key: str, prompted: bool, since: float) -> End | None:
        return claude.end_of(transcript, key, prompted)


def is_made_by_program(prompt: str) -> bool:
    """Whether no person typed a prompt: a background command has ended, another agent writes, or there is nothing in it
    but a reminder. A slash command is a person's, and so is what stands after a reminder."""
    said = prompt.lstrip()
    if said.startswith(_NOTICES):
        return True
    return said.startswith(_REMINDER) and not said.rpartition(_REMINDER.replace("<", "</"))[2].strip()


def is_another(payload: Mapping[str, Any]) -> bool:
    """Whether an event that came to Claude Code's hook is another program's, which runs the hooks that it finds in a
    project: Claude Code always names its transcript, and never the time."""
    return "timestamp" in payload or not text(payload, "transcript_path")
