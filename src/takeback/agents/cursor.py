"""Cursor, from its documentation: a permission for an answer, and events per sort of call beside the general ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from takeback.model.calls import Caller

from . import events as kinds
from .dialect import Dialect, by_content, reply, table, text
from .events import Answer, Event, Reply

_READERS = "Read Grep Glob LS List Search SemanticSearch WebFetch WebSearch ReadLints TodoWrite AskQuestion FetchRules"
_SHELLS = ("beforeShellExecution", "afterShellExecution")
_SERVERS = ("beforeMCPExecution", "afterMCPExecution")
_NOT_OURS = ("beforeReadFile", "afterAgentResponse", "afterAgentThought", "preCompact", "subagentStart")


class Cursor(Dialect):
    name = "cursor"
    title = "Cursor"
    events: Mapping[str, str] = {
        "sessionStart": kinds.START,
        "beforeSubmitPrompt": kinds.PROMPT,
        "preToolUse": kinds.BEFORE,
        "postToolUse": kinds.AFTER,
        "postToolUseFailure": kinds.AFTER,
        "beforeShellExecution": kinds.BEFORE,
        "afterShellExecution": kinds.AFTER,
        "beforeMCPExecution": kinds.BEFORE,
        "afterMCPExecution": kinds.AFTER,
        "afterFileEdit": kinds.AFTER,
        "stop": kinds.REST,
        "subagentStop": kinds.REST,
        "sessionEnd": kinds.END,
        **dict.fromkeys(_NOT_OURS, kinds.OTHER),
    }
    failures = ("postToolUseFailure",)
    tools: Mapping[str, str] = {
        **dict.fromkeys(_READERS.split(), kinds.READS),
        **dict.fromkeys(("Write", "Edit", "StrReplace", "EditNotebook", "Delete"), kinds.WRITES),
        "Shell": kinds.SHELL,
        "Task": kinds.UNKNOWN,
    }

    def parse(self, payload: Mapping[str, Any], event: str, caller: Caller) -> Event:
        found = super().parse(payload, event, caller)
        roots = payload.get("workspace_roots")
        if not found.cwd and isinstance(roots, list) and roots and isinstance(roots[0], str):
            found = found._replace(cwd=roots[0])
        return found

    def call(self, payload: Mapping[str, Any], event: Event) -> Event:
        if event.name in _SHELLS:
            given = {"command": text(payload, "command"), "cwd": text(payload, "cwd")}
            return self.classified(event._replace(tool="Shell", input=given, key=by_content("Shell", given)), payload)
        if event.name == "afterFileEdit":
            given = {"file_path": text(payload, "file_path")}
            return self.classified(event._replace(tool="Edit", input=given, key=by_content("Edit", given)), payload)
        return super().call(payload, event)

    def server(self, payload: Mapping[str, Any], tool: str) -> str:
        if tool.startswith("MCP:"):
            return text(payload, "server", "server_name") or "MCP"
        given = text(payload, "server", "server_name", "url", "command")
        if text(payload, "hook_event_name") in _SERVERS:
            return given or "MCP"
        return super().server(payload, tool)

    def has_failed(self, payload: Mapping[str, Any]) -> bool:
        return bool(table(payload, "result_json").get("isError"))

    def render(self, event: Event, answer: Answer) -> Reply:
        body: dict[str, Any] = {}
        if event.kind == kinds.BEFORE and answer.decision in (kinds.ASK, kinds.DENY):
            body = {"permission": "deny", "user_message": answer.reason, "agent_message": answer.reason}
        return reply(body)
