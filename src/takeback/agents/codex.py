"""Codex: as Claude Code, with patches for edits, no way to ask, and after-events that may never come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import events as kinds
from .dialect import Dialect, table, text
from .events import Answer, Event, Reply
from .sessions import codex

if TYPE_CHECKING:
    from takeback.journal.brackets import End

_READERS = (
    "update_plan view_image web_search web_search_preview list_mcp_resources list_mcp_resource_templates "
    "read_mcp_resource request_user_input request_permissions read_file list_dir grep_files get_goal create_goal "
    "update_goal tool_search tool_suggest"
)
_AGENTS = "spawn_agent wait_agent wait send_input send_message followup_task resume_agent close_agent list_agents"


class Codex(Dialect):
    name = "codex"
    title = "Codex"
    begins_commands = True
    one_at_a_time = True  # a failed MCP call or patch has no after-event: the next call says that it is over
    events: Mapping[str, str] = {
        "SessionStart": kinds.START,
        "UserPromptSubmit": kinds.PROMPT,
        "PreToolUse": kinds.BEFORE,
        "PermissionRequest": kinds.ASKED,
        "PostToolUse": kinds.AFTER,
        "Stop": kinds.REST,
        "SubagentStop": kinds.REST,
        "SessionEnd": kinds.END,
    }
    tools: Mapping[str, str] = {
        **dict.fromkeys(_READERS.split(), kinds.READS),
        **dict.fromkeys(
            ("Bash", "shell", "shell_command", "local_shell", "exec_command", "container.exec"), kinds.SHELL
        ),
        **dict.fromkeys(_AGENTS.split(), kinds.READS),  # the calls of a subagent have hooks of their own
        **dict.fromkeys(("exec", "write_stdin"), kinds.UNKNOWN),
    }

    def end_of(self, transcript: str, key: str, prompted: bool, since: float) -> End | None:
        return codex.end_of(transcript, key, prompted)

    def began(self, transcript: str, key: str, since: float) -> float:
        return codex.began(transcript, key)

    def classified(self, event: Event, payload: Mapping[str, Any]) -> Event:
        if event.tool == "exec_command" and "command" not in event.input:
            event = event._replace(input={**event.input, "command": event.input.get("cmd")})
        return super().classified(event, payload)

    def has_failed(self, payload: Mapping[str, Any]) -> bool:
        response = payload.get("tool_response")
        if isinstance(response, str) and response.startswith("Exit code: "):
            return not response.startswith("Exit code: 0")
        return bool(table(payload, "tool_response").get("isError")) or bool(self._failure(payload))

    def said(self, payload: Mapping[str, Any]) -> str:
        return self._failure(payload) or super().said(payload)

    def _failure(self, payload: Mapping[str, Any]) -> str:
        """As its rollout has it: the event has no exit code."""
        if text(payload, "hook_event_name") != "PostToolUse" or not text(payload, "tool_use_id"):
            return ""
        return codex.failure(text(payload, "transcript_path"), text(payload, "tool_use_id"))

    def render(self, event: Event, answer: Answer) -> Reply:
        if event.kind == kinds.PROMPT:
            answer = answer._replace(message="")  # it takes added context from an answer that has nothing else
        return super().render(event, answer)
