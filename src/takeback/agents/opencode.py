"""opencode: its plugin passes on what its hooks are given, as {"input": …, "output": …, "directory": …}, and acts on
the answer: {"decision": "deny", "reason": …} makes it throw, {"context": …} goes to the model with the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from takeback.model.calls import Caller

from . import events as kinds
from .dialect import Dialect, by_content, reply, seconds, table, text
from .events import Answer, Event, Reply

_READERS = "read glob grep list webfetch websearch codesearch todowrite todoread question lsp skill invalid plan_exit"


class Opencode(Dialect):
    name = "opencode"
    title = "opencode"
    events: Mapping[str, str] = {
        "plugin.init": kinds.OTHER,
        "session.created": kinds.START,
        "chat.message": kinds.PROMPT,
        "tool.execute.before": kinds.BEFORE,
        "permission.asked": kinds.ASKED,
        "permission.replied": kinds.REFUSED,  # that alone is passed on
        "tool.execute.after": kinds.AFTER,
        "session.idle": kinds.REST,
        "session.error": kinds.REST,
        "session.deleted": kinds.END,
    }
    tools: Mapping[str, str] = {
        **dict.fromkeys(_READERS.split(), kinds.READS),
        "task": kinds.READS,  # a subagent is a session of its own, whose calls are told
        **dict.fromkeys(("write", "edit", "multiedit"), kinds.WRITES),
        "bash": kinds.SHELL,
        "batch": kinds.UNKNOWN,
    }
    patches = ("apply_patch", "patch")

    def parse(self, payload: Mapping[str, Any], event: str, caller: Caller) -> Event:
        given, made = table(payload, "input"), table(payload, "output")
        if event in ("", "event"):  # of the bus: its type is its name
            event = text(given, "type") or event
        kind = self.events.get(event, kinds.OTHER if text(given, "type") else kinds.STRANGE)
        session = text(given, "sessionID") or text(table(given, "properties", "info"), "sessionID", "id")
        parent = text(payload, "parentID") or text(given, "parentID")
        whose = caller._replace(
            agent=self.name,
            session=parent or session or f"process {caller.pid}",
            lane=session if parent else "",
            one_at_a_time=self.one_at_a_time,
        )
        found = Event(kind, whose, cwd=text(payload, "directory", "cwd"), name=event)
        if parent and kind in (kinds.START, kinds.PROMPT):
            return found._replace(kind=kinds.OTHER)  # a subagent is asked by its agent
        if parent and kind == kinds.END:
            return found._replace(kind=kinds.REST)
        if kind == kinds.PROMPT:
            return found._replace(prompt=_said(made.get("parts")))
        if kind in (kinds.ASKED, kinds.REFUSED):
            key = text(given, "callID")
            return found._replace(key=key) if key else found._replace(kind=kinds.OTHER)
        if kind not in (kinds.BEFORE, kinds.AFTER):
            return found
        args, tool = table(made, "args") or table(given, "args"), text(given, "tool")
        if not tool:
            return found._replace(kind=kinds.STRANGE)
        key = text(given, "callID") or by_content(tool, args)
        failed = kind == kinds.AFTER and (made.get("isError") is True or _exit(made) not in (None, 0))
        found = found._replace(ran=seconds(payload, "duration_ms"))
        known = tool in self.tools or tool in self.patches
        server = "" if known or "_" not in tool else tool.partition("_")[0]
        found = found._replace(tool=tool, input=args, key=key, failed=failed, server=server)
        if failed and isinstance(code := _exit(made), int):
            found = found._replace(exit=code, said=text(made, "output")[:4_000])
        return self.classified(found, payload)

    def render(self, event: Event, answer: Answer) -> Reply:
        body: dict[str, Any] = {}
        if event.kind == kinds.BEFORE and answer.decision in (kinds.ASK, kinds.DENY):
            body = {"decision": "deny", "reason": answer.reason}
        if event.kind == kinds.PROMPT and answer.context:
            body = {"context": answer.context}
        if answer.message:
            body["message"] = answer.message
        return reply(body)


def _said(parts: Any) -> str:
    found = parts if isinstance(parts, list) else []
    return "\n".join(text(part, "text") for part in found if isinstance(part, dict) and not part.get("synthetic"))


def _exit(made: Mapping[str, Any]) -> Any:
    return table(made, "metadata").get("exit")
