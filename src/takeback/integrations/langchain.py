"""A middleware for LangChain's agents: tool calls are journaled, gated, and taken back with the conversation.

    middleware = TakebackMiddleware(workspace, undo={"charge": {"http": {"url": …, "json": {"charge": "{result.id}"}}}})
    agent = create_agent(model, tools, middleware=[middleware], checkpointer=TakebackSaver(workspace))
    agent.invoke({"messages": […]}, {"configurable": {"thread_id": "1"}}, durability="sync")
    middleware.undo("1")

A turn is one run of the agent, from a person's message to the answer. A call that a person has to approve is an
interrupt of LangGraph's, in the shape that LangChain's own middleware for approvals gives it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest
    from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.runtime import Runtime
    from langgraph.types import Command, interrupt
except ImportError as error:
    from takeback.system.installed import with_extra

    raise ImportError(f"{error}: install it: {with_extra('langchain')}") from error

from takeback.errors import NotDone
from takeback.harness.approval import awaiting
from takeback.harness.recorder import to_the_end
from takeback.harness.steps import Approve
from takeback.harness.tool_calls import ALLOW, ASK, Ask, Decision, ToolCalls, Undone
from takeback.harness.undo_declarations import Undo
from takeback.model.thread_states import StateCheckpoint
from takeback.threads import restored_from
from takeback.threads.threads import Threads
from takeback.workspace import Workspace

from .langgraph import TakebackSaver

Answer = ToolMessage | Command[Any]
_PAUSE, _PATIENCE = 0.01, 100  # seconds between looks for what LangGraph is still saving, and how many
_CHECKPOINTER = "__pregel_checkpointer"  # LangGraph's own name: without one an interrupt cannot be resumed


class TakebackMiddleware(AgentMiddleware[Any, Any, Any]):
    """Put it last in the list: then what is judged and journaled is what is really called.

    `undo` says by tool name how its outside effect is taken back, `None` that it acts on files alone. `approve` is
    asked where a person has to say yes; without it the run is interrupted, if the agent has a checkpointer, and refused
    if not."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        agent: str = "langchain",
        undo: Mapping[str, Undo] | None = None,
        approve: Ask | None = None,
    ) -> None:
        super().__init__()
        self.tools = []
        self.workspace = workspace
        self.agent = agent
        self._declared = undo or {}
        self._approve = approve
        self._threads: dict[str, ToolCalls] = {}
        self._last = ""
        self.calls_of("")  # what cannot be read in `undo` is said now

    def calls_of(self, thread_id: str) -> ToolCalls:
        """What journals the calls of one thread."""
        found = self._threads.get(thread_id)
        if found is None:
            made = ToolCalls(
                self.workspace,
                agent=self.agent,
                session=thread_id,
                thread=thread_id,
                approve=self._approve,
                undo=self._declared,
            )
            found = self._threads.setdefault(thread_id, made)
        return found

    # -- turns -----------------------------------------------------------------

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        if (calls := self._asked(state, runtime)) is not None and not self._joined(calls):
            for _ in range(_PATIENCE):
                if self._is_saved(runtime):
                    break
                time.sleep(_PAUSE)
            calls.begin_turn(_prompt(_messages(state)))

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        if (calls := self._asked(state, runtime)) is not None and not self._joined(calls):
            for _ in range(_PATIENCE):
                if await to_the_end(self._is_saved, runtime):
                    break
                await asyncio.sleep(_PAUSE)
            await calls.abegin_turn(_prompt(_messages(state)))

    def _saver(self) -> TakebackSaver | None:
        """The one that keeps the thread, if that is in this workspace."""
        saver = get_config().get("configurable", {}).get(_CHECKPOINTER)
        return saver if isinstance(saver, TakebackSaver) and saver.workspace is self.workspace else None

    def _joined(self, calls: ToolCalls) -> bool:
        """Whether the run is a turn of its thread already, to which its tool calls belong."""
        saver = self._saver()
        run = saver.runs.of(calls.thread) if saver is not None and saver.runs is not None else None
        if run is not None:
            calls.join(run.opened.turn.actor)
        return run is not None

    def _is_saved(self, runtime: Runtime[Any]) -> bool:
        """Whether what a person said is in the thread, which LangGraph may still be saving: the turn is to come after
        it in the journal."""
        thread, _, here = _where(runtime)
        return self._saver() is None or self.workspace.threads.find(thread, here) is not None

    def _asked(self, state: Any, runtime: Runtime[Any]) -> ToolCalls | None:
        """None for a subagent, whose calls are part of the turn of the agent above it."""
        thread, lane, here = _where(runtime)
        if lane:
            return None
        self._last = thread
        calls = self.calls_of(thread)
        calls.cursor = here or str(_said_before(_messages(state)))
        return calls

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        thread, lane, _ = _where(runtime)
        if not lane:
            self.calls_of(thread).end_turn()

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        thread, lane, _ = _where(runtime)
        if not lane:
            await self.calls_of(thread).aend_turn()

    # -- calls -----------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        self._know_tools(request)
        return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        self._know_tools(request)
        return await handler(request)

    def _know_tools(self, request: ModelRequest[Any]) -> None:
        """Before a model could call any of them."""
        self.calls_of("").know_tools(tool.name for tool in request.tools if not isinstance(tool, dict))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        call = _Call(request)
        calls = self.calls_of(call.thread)
        self._joined(calls)  # also where a person's answer is what it goes on with
        said = calls.begin(call.id, call.tool, call.args, cursor=call.cursor, lane=call.lane)
        if said.decision == ASK and call.approved(said):
            calls.approved(said)
            said = calls.begin(call.id, call.tool, call.args, cursor=call.cursor, lane=call.lane)
        if said.decision != ALLOW:
            return call.refused(said)
        try:
            with calls.within(call.id):
                answer = handler(request)
        except BaseException as error:
            calls.fail(call.id, _raised(error))
            raise
        if (told := _failure(answer)) is not None:
            calls.fail(call.id, told)
        else:
            calls.commit(call.id, _result(answer))
        return answer

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        call = _Call(request)
        calls = self.calls_of(call.thread)
        self._joined(calls)  # also where a person's answer is what it goes on with
        said = await calls.abegin(call.id, call.tool, call.args, cursor=call.cursor, lane=call.lane)
        if said.decision == ASK and call.approved(said):
            await to_the_end(calls.approved, said)
            said = await calls.abegin(call.id, call.tool, call.args, cursor=call.cursor, lane=call.lane)
        if said.decision != ALLOW:
            return call.refused(said)
        try:
            with calls.within(call.id):
                answer = await handler(request)
        except BaseException as error:
            await calls.afail(call.id, _raised(error))
            raise
        if (told := _failure(answer)) is not None:
            await calls.afail(call.id, told)
        else:
            await calls.acommit(call.id, _result(answer))
        return answer

    # -- taking back -----------------------------------------------------------

    def undo(self, thread_id: str = "", approve: Approve | None = None) -> Undone:
        """Takes back the last turn of a thread, or of the one that ran last: messages, files and outside effects. They
        stack. Effects go back if policy allows that, or if `approve`, shown the plan, says True; else they stay, named.

        The messages are those that a TakebackSaver of this workspace keeps. Any others are their keeper's to cut:
        `calls_of(thread).cursor` says how many stand."""
        thread = thread_id or self._last
        calls = self.calls_of(thread)
        before = _before_last_turn(self.workspace.threads, thread) if thread else None
        if before is None or len(calls.turns_since(before)) > 1:  # the last one was saved at its end alone
            return calls.undo(approve)
        return calls.undo_to(before, approve)

    def redo(self, thread_id: str = "", approve: Approve | None = None) -> Undone:
        """Brings back what the newest undo took, unless the agent has been asked something since. What was done
        outside the files to take it back stays done."""
        return self.calls_of(thread_id or self._last).redo(approve)

    async def aundo(self, thread_id: str = "", approve: Approve | None = None) -> Undone:
        return await to_the_end(self.undo, thread_id, awaiting(approve))

    async def aredo(self, thread_id: str = "", approve: Approve | None = None) -> Undone:
        return await to_the_end(self.redo, thread_id, awaiting(approve))


def _before_last_turn(threads: Threads, thread: str) -> StateCheckpoint | None:
    """The state before the last input that stands. The first one has nothing before it, and is then itself the state
    without a message."""
    for state in restored_from.standing(threads, thread):
        if state.meta.get("metadata", {}).get("source") == "input":
            return threads.find(thread, state.parent) if state.parent else state
    return None


# -- what LangChain hands over -----------------------------------------------------


class _Call:
    """One tool call, and where in the conversation it is made."""

    def __init__(self, request: ToolCallRequest) -> None:
        asked = request.tool_call
        self.tool: str = asked["name"]
        self.args: dict[str, Any] = dict(asked["args"] or {})
        self.thread, self.lane, here = _where(request.runtime)
        self.tool_call_id = asked["id"] or ""
        self.id = self.tool_call_id or f"{self.tool}:{here}"
        self.cursor = here or str(len(_messages(request.state)))
        self._can_interrupt = request.runtime.config.get("configurable", {}).get(_CHECKPOINTER) is not None
        self._answer = ""  # what a person said instead of yes

    def approved(self, said: Decision) -> bool:
        """Has a person asked by LangGraph: the run stops here, and comes back with the answer."""
        if not self._can_interrupt:
            return False
        answer = interrupt(
            {
                "type": "tool_approval",
                "tool_call_id": self.tool_call_id,
                "name": self.tool,
                "args": self.args,
                "description": said.reason,
            }
        )
        if isinstance(answer, Mapping):
            self._answer = str(answer.get("message") or "a person said no")
            return answer.get("type") == "approve"
        self._answer = "a person said no"
        return answer is True

    def refused(self, said: Decision) -> ToolMessage:
        told = f"{said.reason}\n{self._answer}" if self._answer else said.reason
        return ToolMessage(content=told, name=self.tool, tool_call_id=self.tool_call_id, status="error")


def _where(runtime: Any) -> tuple[str, str, str]:
    """Thread, the subagent in it, and the checkpoint that the conversation stands at; empty where there is none."""
    info = runtime.execution_info
    if info is None:
        return str(get_config().get("configurable", {}).get("thread_id", "")), "", ""
    return info.thread_id or "", info.checkpoint_ns.rpartition("|")[0], info.checkpoint_id if info.thread_id else ""


def _messages(state: Any) -> list[BaseMessage]:
    found = state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", state)
    return list(found or ())


def _prompt(messages: list[BaseMessage]) -> str:
    return next((message.text for message in reversed(messages) if isinstance(message, HumanMessage)), "")


def _said_before(messages: list[BaseMessage]) -> int:
    """How many messages there were before a person said something."""
    asked = [number for number, message in enumerate(messages) if isinstance(message, HumanMessage)]
    return asked[-1] if asked else len(messages)


def _raised(error: BaseException) -> BaseException:
    """An interrupted tool runs again from its beginning, so what it does once stands after its interrupts."""
    return NotDone("it was interrupted") if isinstance(error, GraphBubbleUp) else error


def _failure(answer: Answer) -> str | None:
    if isinstance(answer, ToolMessage) and answer.status == "error":
        return answer.text or "it failed"
    return None


def _result(answer: Answer) -> Any:
    """What the tool returned, for its inverse: an artifact rather than the text that a model is given."""
    if isinstance(answer, Command):
        update = answer.update if isinstance(answer.update, Mapping) else {}
        said = [message for message in update.get("messages", ()) if isinstance(message, ToolMessage)]
        return _result(said[-1]) if said else update
    return answer.artifact if answer.artifact is not None else answer.content
