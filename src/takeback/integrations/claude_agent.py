"""The Claude Agent SDK: hooks that journal and gate each call, and a store that keeps its conversations in threads.

    workspace = takeback.open("my-project", create=True)
    calls = ToolCalls(workspace, agent="claude")
    store = TakebackSessionStore(workspace)
    options = ClaudeAgentOptions(cwd="my-project", hooks=hooks(calls, store), session_store=store)
    …                                                   # query(…), or a ClaudeSDKClient that is closed again
    calls.undo()                                        # the last turn: its part of the conversation, files and effects
    options = await resuming(options, calls)            # goes on from there

A session is a thread, and its subagents are namespaces of it. The SDK mirrors each line of a transcript into the store
as it is written; what it mirrors between one prompt and the next belongs to that turn.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

try:
    from claude_agent_sdk import (
        ClaudeAgentOptions,
        HookCallback,
        HookContext,
        HookMatcher,
        fold_session_summary,
        project_key_for_directory,
    )
    from claude_agent_sdk.types import (
        HookEvent,
        SessionKey,
        SessionListSubkeysKey,
        SessionStore,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )
except ImportError as error:
    from takeback.system.installed import with_extra

    raise ImportError(f"{error}: install it: {with_extra('claude-agent')}") from error

from takeback.agents.claude import is_made_by_program
from takeback.errors import Moved, TakebackError
from takeback.harness.recorder import to_the_end
from takeback.harness.tool_calls import ALLOW, ToolCalls
from takeback.model.thread_states import NewState, StateCheckpoint
from takeback.system import regular_files
from takeback.threads import plain_data
from takeback.workspace import Workspace

SOURCE = "claude-agent"
START = "start"  # the cursor of a conversation in which nothing has been said
_ENTRIES, _SUMMARY = "entries", "summary"
_PATIENCE = 60.0  # seconds that the program waits for a hook
_ATTEMPTS = 100  # at a thread that others move
_TAIL = 1 << 18  # bytes of a transcript that are read for its last message
_SAID = ("user", "assistant")  # entries of which a conversation is made; the others are notes of the program


# -- hooks -----------------------------------------------------------------------


def hooks(calls: ToolCalls, store: TakebackSessionStore | None = None) -> dict[HookEvent, list[HookMatcher]]:
    """For ClaudeAgentOptions(hooks=…). A call before which takeback fails is blocked. With a store each turn owns what
    is mirrored into it."""
    made = _Hooks(calls, store)
    events: dict[HookEvent, tuple[HookCallback, bool]] = {
        "UserPromptSubmit": (made.prompt, True),
        "PreToolUse": (made.before, True),
        "PostToolUse": (made.after, False),
        "PostToolUseFailure": (made.after_failure, False),
        "Stop": (made.rest, False),
    }
    return {
        event: [HookMatcher(hooks=[callback], timeout=_PATIENCE, on_failure="block" if blocks else None)]
        for event, (callback, blocks) in events.items()
    }


class _Hooks:
    """Each is called with what the program says, and answers with its opinion; {} is none."""

    def __init__(self, calls: ToolCalls, store: TakebackSessionStore | None) -> None:
        self.calls = calls
        self.store = store

    async def prompt(self, given: Any, _: str | None, __: HookContext) -> Any:
        if not is_made_by_program(given["prompt"]):
            self.calls.session = given["session_id"]
            if self.store is not None:
                key = project_key_for_directory(given["cwd"])
                self.calls.thread = self.store.thread(key, given["session_id"])
            self.calls.cursor = await to_the_end(_last_message, given.get("transcript_path", "")) or START
            await self.calls.abegin_turn(given["prompt"])
        return {}

    async def before(self, given: Any, id: str | None, _: HookContext) -> Any:
        cursor = await to_the_end(_last_message, given.get("transcript_path", ""))
        said = await self.calls.abegin(
            given.get("tool_use_id") or id or "",
            given["tool_name"],
            given["tool_input"],
            cursor=cursor,
            lane=given.get("agent_id", ""),
            cwd=given.get("cwd", ""),
            asking=True,
        )
        if said.decision == ALLOW:
            return {}
        told = {"permissionDecision": said.decision, "permissionDecisionReason": said.reason}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}}

    async def after(self, given: Any, id: str | None, _: HookContext) -> Any:
        await self.calls.acommit(given.get("tool_use_id") or id or "", given.get("tool_response"))
        return {}

    async def after_failure(self, given: Any, id: str | None, _: HookContext) -> Any:
        await self.calls.afail(given.get("tool_use_id") or id or "", str(given.get("error", "")))
        return {}

    async def rest(self, *_: Any) -> Any:
        """The last lines of a turn are mirrored after it: with a store its thread stays open until the next prompt."""
        await (self.calls.aend_turn() if self.store is None else to_the_end(self.calls.settle))
        return {}


def _last_message(transcript: str) -> str:
    """The id of the newest message in a transcript: how far the conversation has come."""
    try:
        lines = regular_files.read(transcript, _TAIL, last=True).splitlines()
    except (OSError, ValueError):
        return ""
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the first may be cut in two, the last half written
        if isinstance(entry, dict) and entry.get("type") in _SAID and isinstance(entry.get("uuid"), str):
            found: str = entry["uuid"]
            return found
    return ""


async def resuming(options: ClaudeAgentOptions, calls: ToolCalls) -> ClaudeAgentOptions:
    """Options that go on with the conversation as it is now, after an undo too: from the store, or, without one, in a
    fork of the session from the message that it was taken back to."""
    store = options.session_store
    if store is not None:
        key: SessionKey = {"project_key": project_key_for_directory(options.cwd), "session_id": calls.session}
        entries = await store.load(key) or []
        is_there = any(entry.get("type") in _SAID for entry in entries)
        return dataclasses.replace(options, resume=calls.session if is_there else None, continue_conversation=False)
    if calls.cursor in ("", START):
        return dataclasses.replace(options, resume=None, continue_conversation=False)
    at = {**options.extra_args, "resume-session-at": calls.cursor}
    return dataclasses.replace(options, resume=calls.session, fork_session=True, extra_args=at)


# -- the store -------------------------------------------------------------------


class TakebackSessionStore(SessionStore):
    """Keeps the SDK's transcripts in threads of a workspace: each append is a state checkpoint, nothing is lost, and a
    turn that is taken back takes its lines along."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._own = project_key_for_directory(workspace.root)

    def thread(self, project_key: str, session_id: str) -> str:
        """The thread of a session: called as the session is, with its project where that is another one."""
        return session_id if project_key == self._own else f"{project_key}/{session_id}"

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        if entries and self.workspace.settings.enabled:
            await to_the_end(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        head = await to_the_end(self._head, key)
        return None if head is None else await to_the_end(self._entries, head)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        found = await to_the_end(self._sessions, project_key)
        return [{"session_id": id, "mtime": _milliseconds(head)} for id, head in found.items()]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return await to_the_end(self._summaries, project_key)

    async def delete(self, key: SessionKey) -> None:
        await to_the_end(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        heads = await to_the_end(self.workspace.threads.heads_at, self.thread(key["project_key"], key["session_id"]))
        return sorted(ns for ns in heads if ns)

    # -- threads -----------------------------------------------------------------

    def _head(self, key: SessionKey) -> StateCheckpoint | None:
        thread = self.thread(key["project_key"], key["session_id"])
        head = self.workspace.threads.find(thread, ns=key.get("subpath", ""))
        return head if head is not None and _ENTRIES in head.refs else None

    def _entries(self, head: StateCheckpoint) -> list[SessionStoreEntry]:
        return cast(list[SessionStoreEntry], self.workspace.threads.load(head)[_ENTRIES])

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Adds what is not there yet: a batch whose answer was lost is sent again. Of two writers the second one begins
        anew from what the first one wrote."""
        for _ in range(_ATTEMPTS):
            head = self._head(key)
            known = self.workspace.threads.load(head) if head is not None else {}
            before: list[SessionStoreEntry] = known.get(_ENTRIES, [])
            seen = {entry["uuid"] for entry in before if "uuid" in entry}
            new = [entry for entry in entries if entry.get("uuid") not in seen]
            if not new:
                return
            state: dict[str, Any] = {_ENTRIES: [*before, *new]}
            if not key.get("subpath"):
                last = {"session_id": key["session_id"], "mtime": 0, "data": known[_SUMMARY]} if known else None
                state[_SUMMARY] = fold_session_summary(cast(Any, last), key, new)["data"]
            with suppress(Moved):
                self._put(key, state, head, f"{len(new)} line{'s' * (len(new) != 1)} of the transcript")
                return
        raise TakebackError(f"session {key['session_id']} keeps moving; nothing was added", "let one program write it")

    def _put(self, key: SessionKey, state: Mapping[str, Any], head: StateCheckpoint | None, summary: str) -> None:
        values = {name: plain_data.encoded(value, name) for name, value in state.items()}
        thread, subpath = self.thread(key["project_key"], key["session_id"]), key.get("subpath", "")
        new = NewState(thread, subpath, "", "", values, source=SOURCE, agent="claude", summary=summary)
        self.workspace.threads.put(new._replace(expect_head=head.id if head is not None else ""))

    def _sessions(self, project_key: str) -> Mapping[str, StateCheckpoint]:
        """The head of each session of a project."""
        found = {}
        for seen in self.workspace.threads.all():
            project, _, session = seen.thread.rpartition("/")
            if (project or self._own) == project_key and seen.head.ns == "" and _ENTRIES in seen.head.refs:
                found[session] = seen.head
        return found

    def _summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        load = self.workspace.threads.load
        return [
            {"session_id": id, "mtime": _milliseconds(head), "data": load(head)[_SUMMARY]}
            for id, head in self._sessions(project_key).items()
        ]

    def _delete(self, key: SessionKey) -> None:
        """Journaled, as all of it: the bytes go at the next prune."""
        threads, subpath = self.workspace.threads, key.get("subpath", "")
        thread = self.thread(key["project_key"], key["session_id"])
        if not subpath:
            threads.remove(thread)
        elif (head := threads.find(thread, ns=subpath)) is not None:
            threads.put(NewState(thread, subpath, "", head.id, {}, source=SOURCE, absent=True))


def _milliseconds(head: StateCheckpoint) -> int:
    return int(head.at * 1000)
