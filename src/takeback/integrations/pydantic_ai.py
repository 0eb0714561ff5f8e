"""A capability for Pydantic AI's agents: tool calls are journaled, gated, and taken back with the conversation.

    takeback = Takeback(workspace, undo={"charge": {"http": {"url": …, "json": {"charge": "{result.id}"}}}})
    agent = Agent(model, capabilities=[takeback], output_type=[str, DeferredToolRequests])
    agent.run_sync("order a book", conversation=takeback.harness.conversation())
    takeback.undo()

A turn is one run of the agent, with those that go on from what it deferred. The conversation is saved when a run ends,
in a thread of that name. A call that a person has to approve is deferred, as Pydantic AI's own are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn

try:
    from pydantic import TypeAdapter
    from pydantic_ai import ApprovalRequired, CallDeferred, DeferredToolRequests, RunContext, ToolFailed
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities.abstract import CapabilityOrdering
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.exceptions import SkipToolExecution
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ToolCallPart
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import ToolDefinition
except ImportError as error:
    from takeback.system.installed import with_extra

    raise ImportError(f"{error}: install it: {with_extra('pydantic-ai')}") from error

from takeback.errors import Moved, NotDone, TakebackError
from takeback.harness.approval import awaiting
from takeback.harness.recorder import to_the_end
from takeback.harness.steps import Approve
from takeback.harness.tool_calls import ALLOW, ASK, Ask, Decision, ToolCalls, Undone
from takeback.harness.undo_declarations import Undo
from takeback.model.ids import new_id
from takeback.model.thread_states import StateCheckpoint
from takeback.threads import restored_from
from takeback.workspace import Workspace

_RECORDS = TypeAdapter(ConversationRecord)
_AT_HAND = 10_000  # messages
_ATTEMPTS = 100  # at a thread that others move
_BEGUN, _FAILED = "begun", "failed"  # what a turn is, in the state that is saved of it


class Takeback(AbstractCapability[Any]):
    """Journals, gates and takes back what an agent's tools do, and keeps its conversation. It comes after all other
    capabilities: what is judged and journaled is what is really called.

    `undo` says by tool name how its outside effect is taken back, `None` that it acts on files alone. `approve` is
    asked where a person has to say yes; without it the call is deferred, if the agent can defer, and refused if not.
    `conversation_id` is that of runs which are given none."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        conversation_id: str = "main",
        agent: str = "pydantic-ai",
        undo: Mapping[str, Undo] | None = None,
        approve: Ask | None = None,
    ) -> None:
        self.workspace = workspace
        self.conversation_id = conversation_id
        self.agent = agent
        self.conversations = TakebackConversations(workspace, agent=agent)
        self._declared = undo or {}
        self._approve = approve
        self._threads: dict[str, ToolCalls] = {}
        self._begun: set[tuple[str, str]] = set()  # conversation, call
        self.calls_of(conversation_id)  # what cannot be read in `undo` is said now

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # a workspace is no part of a specification

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_default_conversation_id(self, run_id: str) -> str:
        return self.conversation_id

    def calls_of(self, conversation_id: str) -> ToolCalls:
        """What journals the calls of one conversation."""
        found = self._threads.get(conversation_id)
        if found is None:
            made = ToolCalls(
                self.workspace,
                agent=self.agent,
                session=conversation_id,
                thread=conversation_id,
                approve=self._approve,
                undo=self._declared,
            )
            found = self._threads.setdefault(conversation_id, made)
        return found

    # -- the conversation --------------------------------------------------------

    def conversation(self, conversation_id: str = "") -> Conversation:
        """The conversation as it was saved, to run on from; an empty one if there is none."""
        with ThreadPoolExecutor(1) as pool:  # a loop of its own: the caller's may be running
            return pool.submit(asyncio.run, self.aconversation(conversation_id)).result()

    async def aconversation(self, conversation_id: str = "") -> Conversation:
        id = conversation_id or self.conversation_id
        return await self.conversations.load(id) or Conversation(conversation_id=id)

    async def _save(self, result: AgentRunResult[Any]) -> None:
        """Saves what the model has seen, also where a run was not given the stored conversation: what that had
        besides stays a branch of it."""
        if not self.workspace.settings.enabled:
            return
        try:
            await self.conversations.save(result)
        except ConversationConflict:
            seen = result.conversation
            stored = await self.conversations.read_record(seen.conversation_id)
            whole = Conversation(
                messages=seen.messages,
                usage=seen.usage,
                conversation_id=seen.conversation_id,
                deferred_tool_requests=seen.deferred_tool_requests,
                revision=stored.revision if stored is not None else None,
            )
            await self.conversations.save(whole)

    # -- turns -------------------------------------------------------------------

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Callable[[], Any]) -> AgentRunResult[Any]:
        id = ctx.conversation_id or self.conversation_id
        calls = self.calls_of(id)
        if ctx.prompt is not None:  # else it goes on with what was deferred
            prompt = _text(ctx.prompt)
            await self._mark(id, _BEGUN, prompt)
            calls.cursor = str(len(ctx.messages))
            await calls.abegin_turn(prompt)
        try:
            result: AgentRunResult[Any] = await handler()
            await self._save(result)
        except BaseException as error:
            await calls.aend_turn()
            try:
                await self._mark(id, _FAILED, f"{type(error).__name__}: {error}")
            except TakebackError as trouble:
                error.add_note(f"takeback: that could not be journaled: {trouble.message}")
            raise
        await calls.aend_turn()
        return result

    async def _mark(self, conversation_id: str, phase: str, summary: str = "") -> None:
        if self.workspace.settings.enabled:
            await to_the_end(self.conversations.turn, conversation_id, phase, summary)

    # -- calls -------------------------------------------------------------------

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        self._calls(ctx).know_tools(tool.name for tool in tool_defs)  # before a model could call any of them
        return tool_defs

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """After what other capabilities make of the arguments: these are what the tool gets."""
        calls = self._calls(ctx)
        id, tool, cursor = call.tool_call_id, call.tool_name, str(len(ctx.messages))
        said = await calls.abegin(id, tool, args, cursor=cursor)
        if said.decision == ASK and ctx.tool_call_approved:
            await to_the_end(calls.approved, said)
            said = await calls.abegin(id, tool, args, cursor=cursor)
        if said.decision != ALLOW:
            _refuse(ctx, said)
        self._begun.add((calls.session, id))
        return args

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Any],
    ) -> Any:
        """Ends what was begun inside, however that ends."""
        calls = self._calls(ctx)
        begun = calls.session, call.tool_call_id
        try:
            with calls.within(call.tool_call_id):
                result = await handler(args)
        except BaseException as error:
            if begun in self._begun:
                self._begun.discard(begun)
                is_not_run = isinstance(error, ApprovalRequired | CallDeferred | SkipToolExecution)
                await calls.afail(call.tool_call_id, NotDone("it did not run") if is_not_run else error)
            raise
        if begun in self._begun:
            self._begun.discard(begun)
            await calls.acommit(call.tool_call_id, getattr(result, "return_value", result))
        return result

    def _calls(self, ctx: RunContext[Any]) -> ToolCalls:
        return self.calls_of(ctx.conversation_id or self.conversation_id)

    # -- taking back -------------------------------------------------------------

    def undo(self, conversation_id: str = "", approve: Approve | None = None) -> Undone:
        """Takes back the last turn: its messages, its files and what it did outside them. They stack. Effects go back
        if policy allows that, or if `approve`, shown the plan, says True; else they stay, and are named. Then go on
        with `conversation()`."""
        id = conversation_id or self.conversation_id
        return self.calls_of(id).undo_to(self.conversations.before_last_turn(id), approve)

    def redo(self, conversation_id: str = "", approve: Approve | None = None) -> Undone:
        """Brings back what the newest undo took, unless the agent has been asked something since. What was done
        outside the files to take it back stays done."""
        return self.calls_of(conversation_id or self.conversation_id).redo(approve)

    async def aundo(self, conversation_id: str = "", approve: Approve | None = None) -> Undone:
        return await to_the_end(self.undo, conversation_id, awaiting(approve))

    async def aredo(self, conversation_id: str = "", approve: Approve | None = None) -> Undone:
        return await to_the_end(self.redo, conversation_id, awaiting(approve))


def _refuse(ctx: RunContext[Any], said: Decision) -> NoReturn:
    if said.decision == ASK and _can_defer(ctx):
        raise ApprovalRequired({"reason": said.reason, "call": said.call})
    raise ToolFailed(said.reason)


def _can_defer(ctx: RunContext[Any]) -> bool:
    """Whether the run may end with what was deferred, or somebody handles that while it runs."""
    wanted = getattr(ctx.agent, "output_type", None)
    if wanted is DeferredToolRequests or (isinstance(wanted, Sequence) and DeferredToolRequests in wanted):
        return True
    handlers: list[AbstractCapability[Any]] = []
    if ctx.root_capability is not None:
        ctx.root_capability.apply(handlers.append)
    base = AbstractCapability.handle_deferred_tool_calls
    return any(type(found).handle_deferred_tool_calls is not base for found in handlers)


def _text(prompt: Any) -> str:
    parts = [prompt] if isinstance(prompt, str) else prompt
    return "\n".join(part for part in parts if isinstance(part, str))


class TakebackConversations(ConversationStore):
    """Keeps conversations in the journal, each in the thread of its name. Deleted ones go at the next prune."""

    def __init__(self, workspace: Workspace, *, agent: str = "pydantic-ai") -> None:
        self.workspace = workspace
        self.agent = agent
        self._entries: dict[str, ConversationEntry] = {}  # of the conversations that were read

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return await to_the_end(self._record, conversation_id)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        found = await to_the_end(self._records)
        found = [record for record in found if scope is None or record.scope == scope]
        return sorted(found, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await to_the_end(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await to_the_end(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        if entry_id not in self._entries:
            await to_the_end(self._records)
        return self._entries[entry_id]

    # -- the same, in a thread -----------------------------------------------------

    def turn(self, conversation_id: str, phase: str, summary: str = "") -> None:
        """Saves that a turn begins, which is where undo goes back to; or that it failed, which is what undo takes."""
        for _ in range(_ATTEMPTS):
            head, state = self._state(conversation_id)
            id = new_id() if phase == _BEGUN else state.get("turn", {}).get("id", "")
            with suppress(Moved):
                self._save(conversation_id, head, {**state, "turn": {"id": id, "is": phase}}, summary, phase)
                return
        raise TakebackError(
            f"conversation {conversation_id} keeps moving; its turn was not noted", "let one program write it"
        )

    def before_last_turn(self, conversation_id: str) -> StateCheckpoint | None:
        """Where the last turn that stands began."""
        states = restored_from.standing(self.workspace.threads, conversation_id)
        return next((state for state in states if state.meta.get("turn") == _BEGUN), None)

    def _state(self, conversation_id: str) -> tuple[StateCheckpoint | None, dict[str, Any]]:
        head = self.workspace.threads.find(conversation_id)
        return head, self.workspace.threads.load(head) if head is not None else {}

    def _save(
        self, thread: str, head: StateCheckpoint | None, state: Mapping[str, Any], summary: str, phase: str = ""
    ) -> None:
        self.workspace.threads.save(
            thread,
            state,
            parent=head.id if head is not None else "",
            summary=summary,
            agent=self.agent,
            source="conversation",
            meta={"turn": phase} if phase else {},
        )

    def _record(self, conversation_id: str) -> ConversationRecord | None:
        return self._kept(self._state(conversation_id)[1])

    def _records(self) -> list[ConversationRecord]:
        found = [seen.head for seen in self.workspace.threads.all() if "entries" in seen.head.refs]
        records = [self._kept(self.workspace.threads.load(head)) for head in found]
        return [record for record in records if record is not None]

    def _kept(self, state: Mapping[str, Any]) -> ConversationRecord | None:
        entries = state.get("entries", ())
        if not state.get("record"):
            return None
        if len(self._entries) > _AT_HAND:
            self._entries.clear()
        messages = ModelMessagesTypeAdapter.validate_python([entry["message"] for entry in entries])
        for entry, message in zip(entries, messages):
            self._entries[entry["id"]] = ConversationEntry(id=entry["id"], parent_id=entry["parent"], message=message)
        return _RECORDS.validate_python(state["record"])

    def _write(
        self, record: ConversationRecord, new_entries: Sequence[ConversationEntry], expected_revision: str | None
    ) -> None:
        head, state = self._state(record.conversation_id)
        stored = state.get("record") or {}
        if stored.get("revision") != expected_revision:
            raise ConversationConflict(record.conversation_id)
        entries = [*state.get("entries", ()), *map(_entry_as_json, new_entries)]
        if record.head_id is not None and record.head_id not in {entry["id"] for entry in entries}:
            entries += self._line(record)
        new = {**state, "record": _RECORDS.dump_python(record, mode="json"), "entries": entries}
        try:
            self._save(record.conversation_id, head, new, f"{len(entries)} messages")
        except Moved as error:
            raise ConversationConflict(record.conversation_id) from error

    def _line(self, fork: ConversationRecord) -> list[dict[str, Any]]:
        """The entries that a fork shares with the conversation that it was made from, which may be deleted later."""
        source = self._state(fork.forked_from)[1] if fork.forked_from else {}
        known = {entry["id"]: entry for entry in source.get("entries", ())}
        line: list[dict[str, Any]] = []
        at = fork.head_id
        while at is not None:
            if at not in known:
                raise ConversationConflict(fork.conversation_id)
            line.append(known[at])
            at = known[at]["parent"]
        return line[::-1]

    def _delete(self, conversation_id: str, expected_revision: str) -> None:
        head, state = self._state(conversation_id)
        if (state.get("record") or {}).get("revision") != expected_revision:
            raise ConversationConflict(conversation_id)
        try:
            self._save(conversation_id, head, {**state, "record": None, "entries": []}, "deleted")
        except Moved as error:
            raise ConversationConflict(conversation_id) from error
        self.workspace.threads.remove(conversation_id)


def _entry_as_json(entry: ConversationEntry) -> dict[str, Any]:
    message = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")[0]
    return {"id": entry.id, "parent": entry.parent_id, "message": message}
