"""Copilot CLI: camel case, or Claude Code's words where it runs the hooks that it finds for that; a call has no name.
A hook of it must not fail: any other exit than 0 denies, and what it says is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import events as kinds
from .claude import Claude
from .dialect import Dialect, exit_code, reply, table, text
from .events import Answer, Event, Reply
from .sessions import copilot

if TYPE_CHECKING:
    from takeback.journal.brackets import End

_READERS = (
    "view read show_file grep rg glob web_fetch fetch web_search report_intent update_todo read_bash list_bash "
    "stop_bash read_powershell list_powershell stop_powershell ask_user fetch_copilot_cli_documentation lsp "
    "exit_plan_mode list_agents read_agent session_store_sql task_complete"
)
_HOOKS = "hooks/takeback.json"


class Copilot(Dialect):
    name = "copilot"
    title = "Copilot CLI"
    events: Mapping[str, str] = {
        **Claude.events,
        "sessionStart": kinds.START,
        "userPromptSubmitted": kinds.PROMPT,
        "preToolUse": kinds.BEFORE,
        "postToolUse": kinds.AFTER,
        "postToolUseFailure": kinds.AFTER,
        "agentStop": kinds.REST,
        "subagentStop": kinds.REST,
        "sessionEnd": kinds.END,
        **dict.fromkeys(("permissionRequest", "PermissionRequest"), kinds.OTHER),  # told where nobody is asked, too
        **dict.fromkeys(("notification", "Notification"), kinds.ASKED),
    }
    failures = ("postToolUseFailure", "PostToolUseFailure")
    tools: Mapping[str, str] = {
        **Claude.tools,
        **dict.fromkeys(_READERS.split(), kinds.READS),
        **dict.fromkeys(("create", "edit", "str_replace", "insert", "str_replace_editor"), kinds.WRITES),
        **dict.fromkeys(("bash", "powershell", "local_shell"), kinds.SHELL),
        **dict.fromkeys(("task", "Task", "Agent", "skill", "sql", "write_bash", "write_powershell"), kinds.UNKNOWN),
    }

    def call(self, payload: Mapping[str, Any], event: Event) -> Event:
        if event.kind == kinds.ASKED:  # it does not say about which call: the last one that was announced
            asks = text(payload, "notification_type", "notificationType") == "permission_prompt"
            return event if asks else event._replace(kind=kinds.OTHER)
        return super().call(payload, event)

    def transcript_of(self, session: str, environ: Mapping[str, str]) -> str:
        return copilot.file_of(session, environ)

    def end_of(self, transcript: str, key: str, prompted: bool, since: float) -> End | None:
        return copilot.end_of(transcript, key, since)

    def began(self, transcript: str, key: str, since: float) -> float:
        return copilot.began(transcript, key, since)

    def server(self, payload: Mapping[str, Any], tool: str) -> str:
        if tool in self.tools or tool in self.patches:
            return ""
        return super().server(payload, tool) or (tool.partition("-")[0] if "-" in tool else "")

    def has_failed(self, payload: Mapping[str, Any]) -> bool:
        found = text(table(payload, "toolResult", "tool_result"), "resultType", "result_type")
        return found not in ("", "success") or exit_code(self.said(payload)) not in (None, 0)

    def said(self, payload: Mapping[str, Any]) -> str:
        said = text(table(payload, "toolResult", "tool_result"), "textResultForLlm", "text_result_for_llm")
        body, _, end = said.rpartition("\n<")
        code = end.rpartition("exit code ")[2].removesuffix(">")
        return f"Exit code {code}\n{body}" if code.isdecimal() else said

    def render(self, event: Event, answer: Answer) -> Reply:
        """The one form where its own hooks ask, and Claude Code's beside it where that one's do."""
        body: dict[str, Any] = {}
        if event.kind == kinds.BEFORE and answer.decision in (kinds.ASK, kinds.DENY):
            body = {"permissionDecision": "deny", "permissionDecisionReason": answer.reason}
        if event.kind == kinds.PROMPT and answer.context:
            body = {"additionalContext": answer.context}
        if body and event.name[:1].isupper():
            body["hookSpecificOutput"] = {"hookEventName": event.name, **body}
        return reply(body)


def has_own_hooks(cwd: str, environ: Mapping[str, str]) -> bool:
    """Whether its own hooks are installed, in the project or for the user: they tell us of every call."""
    here = Path(cwd)
    places = [folder / ".github" / _HOOKS for folder in (here, *here.parents)]
    own = environ.get("COPILOT_HOME") or (f"{environ['HOME']}/.copilot" if environ.get("HOME") else "")
    return any(place.is_file() for place in [*places, *([Path(own, _HOOKS)] if own else [])])
