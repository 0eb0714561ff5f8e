"""What most agents have in common: JSON with a session, a folder, an event, a tool and its input. Each agent's file
says how it differs.

    payload ─► which event ─► which tool, and what it does ─► Event
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from shlex import join
from typing import TYPE_CHECKING, Any

from takeback.model.calls import BY_CONTENT, Caller

from . import events as kinds
from .events import Answer, Event, Reply

if TYPE_CHECKING:
    from takeback.journal.brackets import End

PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_OURS = ("takeback", "plugin_takeback_takeback")  # what our MCP server is called, by itself and in the plugin
_PATCHED = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
_SAID = 4_000  # characters of what a call that failed said
_PATCHES = ("command", "input", "patch", "patchText", "patch_text")


class Dialect:
    """An agent whose events look like Claude Code's. Tables say what is different."""

    name = ""
    title = ""
    can_ask = False
    one_at_a_time = False
    begins_commands = False  # where that is not known
    events: Mapping[str, str] = {}
    failures: tuple[str, ...] = ("PostToolUseFailure",)  # after-events that say that the call failed
    tools: Mapping[str, str] = {}
    patches: tuple[str, ...] = ("apply_patch",)  # tools that are given a patch

    # -- parsing -------------------------------------------------------------

    def parse(self, payload: Mapping[str, Any], event: str, caller: Caller) -> Event:
        name = text(payload, "hook_event_name", "hookEventName") or event
        caller = self.caller(payload, caller)
        kind = self.events.get(name, kinds.STRANGE)
        found = Event(kind, caller, cwd=text(payload, "cwd"), name=name, transcript=text(payload, "transcript_path"))
        if kind == kinds.PROMPT:
            asked = found._replace(prompt=text(payload, "prompt"))
            return asked._replace(kind=kinds.OTHER) if caller.lane else asked  # a subagent is asked by its agent
        if kind == kinds.REST and name.lower().startswith("subagent") and not caller.lane:
            return found._replace(kind=kinds.OTHER)  # whose rest it is cannot be told: the agent's own calls go on
        if kind not in (kinds.BEFORE, kinds.ASKED, kinds.AFTER):
            return found
        return self.call(payload, found)

    def is_alone(self, environ: Mapping[str, str]) -> bool:
        return False

    def transcript_of(self, session: str, environ: Mapping[str, str]) -> str:
        """Where its transcript lies, if its events do not say that."""
        return ""

    def end_of(self, transcript: str, key: str, prompted: bool, since: float) -> End | None:
        return None

    def began(self, transcript: str, key: str, since: float) -> float:
        return 0.0

    def caller(self, payload: Mapping[str, Any], caller: Caller) -> Caller:
        session = text(payload, "session_id", "sessionId", "conversation_id") or f"process {caller.pid}"
        lane = text(payload, "agent_id", "agentId")
        return caller._replace(agent=self.name, session=session, lane=lane, one_at_a_time=self.one_at_a_time)

    def call(self, payload: Mapping[str, Any], event: Event) -> Event:
        """The tool of an event, and what it does."""
        tool = text(payload, "tool_name", "toolName")
        given = table(payload, "tool_input", "toolArgs")
        if not tool:
            return event._replace(kind=kinds.STRANGE)
        failed = event.name in self.failures or self.has_failed(payload)
        key = text(payload, "tool_use_id", "tool_call_id", "toolUseId") or by_content(tool, given)
        found = event._replace(tool=tool, input=given, key=key, failed=failed, server=self.server(payload, tool))
        found = found._replace(ran=seconds(payload, "duration_ms"))
        if failed:
            said = self.said(payload)
            found = found._replace(exit=exit_code(said), said=said[:_SAID])
        return self.classified(found, payload)

    def classified(self, event: Event, payload: Mapping[str, Any]) -> Event:
        does, given = self.tools.get(event.tool, kinds.UNKNOWN), event.input
        if event.server:
            called = event.tool.partition(event.server)[2].lstrip("_-.")
            is_ours = event.server in _OURS and called.startswith("takeback_")
            said = hints(payload)
            reads = is_ours or said.get("readOnlyHint") is True
            return event._replace(does=kinds.READS if reads else kinds.UNKNOWN, annotations=said)
        if event.tool in self.patches:
            paths = patched(next((given[k] for k in _PATCHES if isinstance(given.get(k), str)), ""))
            return event._replace(does=kinds.WRITES if paths else kinds.UNKNOWN, paths=paths)
        if does == kinds.WRITES:
            paths = tuple(path for path in (text(given, key) for key in PATHS) if path)
            return event._replace(does=kinds.WRITES if paths else kinds.UNKNOWN, paths=paths)
        if does == kinds.SHELL:
            command = command_of(given.get("command"))
            goes_on = event.kind == kinds.AFTER and leaves_behind(given, table(payload, "tool_response"), command)
            return event._replace(does=kinds.SHELL if command else kinds.UNKNOWN, command=command, goes_on=goes_on)
        return event._replace(does=does)

    def server(self, payload: Mapping[str, Any], tool: str) -> str:
        """The MCP server whose tool it is; empty for one of the agent's own."""
        if tool.startswith("mcp__"):
            return tool.removeprefix("mcp__").partition("__")[0]
        return ""

    def has_failed(self, payload: Mapping[str, Any]) -> bool:
        """Whether an after-event that does not say so by its name tells of a failure."""
        return bool(table(payload, "tool_response").get("isError"))

    def said(self, payload: Mapping[str, Any]) -> str:
        """What a call that failed said."""
        response = payload.get("tool_response")
        told = table(payload, "tool_response")
        found = text(payload, "error") or (response if isinstance(response, str) else "")
        return found or text(told, "llmContent", "output", "stderr")

    # -- answering -----------------------------------------------------------

    def render(self, event: Event, answer: Answer) -> Reply:
        """As Claude Code has it, which most have taken over."""
        told: dict[str, Any] = {}
        if event.kind == kinds.BEFORE and answer.decision in (kinds.ASK, kinds.DENY):
            decision = answer.decision if self.can_ask else kinds.DENY
            told["permissionDecision"], told["permissionDecisionReason"] = decision, answer.reason
        if event.kind == kinds.PROMPT and answer.context:
            told["additionalContext"] = answer.context
        body: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": event.name, **told}} if told else {}
        if answer.message:
            body["systemMessage"] = answer.message
        return reply(body)


def leaves_behind(given: Mapping[str, Any], response: Mapping[str, Any], command: str) -> bool:
    """Whether a shell's call that is over left a command running, as far as it was asked to or says so."""
    is_asked = given.get("run_in_background") is True or given.get("is_background") is True
    return is_asked or bool(text(response, "backgroundTaskId")) or _has_ampersand(command)


def _has_ampersand(command: str) -> bool:
    """Whether something in a shell's command goes on by itself."""
    around = zip(" " + command, command, command[1:] + "\n")
    return any(sign == "&" and before not in "&>|\\" and after in " \t\n);}" for before, sign, after in around)


def exit_code(said: str) -> int | None:
    """The exit code that an agent puts before what a command said, or after all of it."""
    before, after = "Exit code", "\nExit Code:"
    rest = said.removeprefix(before).lstrip(":") if said.startswith(before) else said.rpartition(after)[2]
    if rest == said:
        return None
    code = rest.split(maxsplit=1)[0] if rest.split() else ""
    return int(code) if code.isdecimal() else None


def reply(body: Mapping[str, Any]) -> Reply:
    return Reply(out=json.dumps(body) if body else "")


# -- reading what anybody may have written -------------------------------------


def text(found: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a text and not empty."""
    return next((value for name in names if isinstance(value := found.get(name), str) and value), "")


def seconds(found: Mapping[str, Any], *names: str) -> float | None:
    """The first of these fields that is a number of milliseconds."""
    for name in names:
        value = found.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return value / 1000
    return None


def table(found: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The first of these fields that is a table, or JSON of one."""
    for name in names:
        value = found.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                continue
        if isinstance(value, dict):
            return value
    return {}


def command_of(given: Any) -> str:
    """A command as one line, where it is given as words too."""
    if isinstance(given, str):
        return given
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        if len(given) == 3 and given[0].rpartition("/")[2] in ("bash", "sh", "zsh") and given[1] in ("-c", "-lc"):
            line: str = given[2]
            return line
        return join(given)
    return ""


def patched(patch: str) -> tuple[str, ...]:
    """The paths that a patch names, in the form that models write them."""
    found = (
        line.removeprefix(start).strip() for line in patch.splitlines() for start in _PATCHED if line.startswith(start)
    )
    return tuple(dict.fromkeys(path for path in found if path))


def by_content(tool: str, given: Mapping[str, Any]) -> str:
    """The name of a call that has none: the same before and after, since the tool and its input are."""
    packed = json.dumps([tool, given], sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    return BY_CONTENT + sha256(packed).hexdigest()[:24]


def is_by_content(key: str, tool: str, given: Mapping[str, Any]) -> bool:
    """Whether a key is the name of such a call; alike ones are told apart by a number behind it."""
    if not key.startswith(BY_CONTENT):
        return False
    name = by_content(tool, given)
    return key == name or key.startswith(f"{name}.")


def hints(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a payload says of an MCP server's tool: readOnlyHint, destructiveHint."""
    for place in ("annotations", "tool_annotations", "toolAnnotations", "mcp_context", "mcp_server", "mcp_tool"):
        found = payload.get(place)
        inner = found.get("annotations", found) if isinstance(found, dict) else None
        if isinstance(inner, dict) and any(name.endswith("Hint") for name in inner):
            return inner
    return {}
