"""Gemini CLI: its own names for events and tools, and no name for a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import events as kinds
from .dialect import Dialect, exit_code, reply, table, text
from .events import Answer, Event, Reply
from .sessions import gemini

if TYPE_CHECKING:
    from takeback.journal.brackets import End

_READERS = (
    "read_file read_many_files list_directory glob search_file_content grep_search google_web_search web_fetch "
    "write_todos ask_user activate_skill get_internal_docs enter_plan_mode exit_plan_mode list_mcp_resources "
    "read_mcp_resource cli_help complete_task update_topic tracker_create_task tracker_get_task tracker_list_tasks "
    "tracker_update_task tracker_add_dependency tracker_visualize"
)
_NOT_OURS = ("PreCompress", "BeforeModel", "AfterModel", "BeforeToolSelection")


class Gemini(Dialect):
    name = "gemini"
    title = "Gemini CLI"
    events: Mapping[str, str] = {
        "SessionStart": kinds.START,
        "BeforeAgent": kinds.PROMPT,
        "BeforeTool": kinds.BEFORE,
        "Notification": kinds.ASKED,
        "AfterTool": kinds.AFTER,
        "AfterAgent": kinds.REST,
        "SessionEnd": kinds.END,
        **dict.fromkeys(_NOT_OURS, kinds.OTHER),
    }
    tools: Mapping[str, str] = {
        **dict.fromkeys(_READERS.split(), kinds.READS),
        # the calls of a subagent have hooks of their own
        **dict.fromkeys(("invoke_agent", "delegate_to_agent", "codebase_investigator", "generalist"), kinds.READS),
        **dict.fromkeys(("write_file", "replace", "edit"), kinds.WRITES),
        "run_shell_command": kinds.SHELL,
        "save_memory": kinds.UNKNOWN,
    }

    def call(self, payload: Mapping[str, Any], event: Event) -> Event:
        if event.kind == kinds.ASKED:  # it does not say about which call: the last one that was announced
            asks = text(payload, "notification_type") == "ToolPermission"
            return event if asks else event._replace(kind=kinds.OTHER)
        return super().call(payload, event)

    def end_of(self, transcript: str, key: str, prompted: bool, since: float) -> End | None:
        return gemini.end_of(transcript, key, since)

    def server(self, payload: Mapping[str, Any], tool: str) -> str:
        return text(table(payload, "mcp_context"), "server_name") or super().server(payload, tool)

    def has_failed(self, payload: Mapping[str, Any]) -> bool:
        told = table(payload, "tool_response")
        is_shell = text(payload, "tool_name") == "run_shell_command"
        return bool(told.get("error")) or (is_shell and exit_code(text(told, "llmContent")) not in (None, 0))

    def render(self, event: Event, answer: Answer) -> Reply:
        body: dict[str, Any] = {}
        if event.kind == kinds.BEFORE and answer.decision in (kinds.ASK, kinds.DENY):
            body = {"decision": "deny", "reason": answer.reason}
        if event.kind == kinds.PROMPT and answer.context:
            body = {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": answer.context}}
        if answer.message:
            body["systemMessage"] = answer.message
        return reply(body)
