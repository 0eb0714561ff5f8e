"""Qwen Code: Claude Code's events around Gemini CLI's tools. A prompt is told with every request to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from takeback.model.calls import Caller

from . import events as kinds
from .claude import Claude
from .dialect import Dialect, table
from .events import Event

_READERS = (
    "read_file read_many_files list_directory glob search_file_content grep_search web_fetch web_search "
    "todo_write enter_plan_mode exit_plan_mode ask_user_question lsp list_agents read_mcp_resource tool_search "
    "hooks_list task_create task_list task_stop task_update cron_list"
)


class Qwen(Dialect):
    name = "qwen"
    title = "Qwen Code"
    # A call is announced only once it is allowed, so that nobody is asked while it is open.
    events: Mapping[str, str] = {
        **Claude.events, "PermissionRequest": kinds.OTHER, "Notification": kinds.OTHER,
    }  # fmt: skip
    tools: Mapping[str, str] = {
        **dict.fromkeys(_READERS.split(), kinds.READS),
        **dict.fromkeys(("agent", "task"), kinds.READS),  # the calls of a subagent have hooks of their own
        **dict.fromkeys(("write_file", "edit", "replace", "notebook_edit"), kinds.WRITES),
        **dict.fromkeys(("run_shell_command", "monitor"), kinds.SHELL),
        **dict.fromkeys(("skill", "save_memory", "cron_create"), kinds.UNKNOWN),
    }

    def parse(self, payload: Mapping[str, Any], event: str, caller: Caller) -> Event:
        found = super().parse(payload, event, caller)
        if found.kind == kinds.PROMPT and not found.prompt.strip():
            return found._replace(kind=kinds.OTHER)  # the same turn goes on
        return found

    def has_failed(self, payload: Mapping[str, Any]) -> bool:
        return bool(table(payload, "tool_response").get("error"))
