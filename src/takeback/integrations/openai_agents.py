"""The OpenAI Agents SDK: a session that can be undone, and tools that are journaled, gated and taken back.

    session = TakebackSession("main", takeback.open("my-project", create=True), undo={"charge": {"http": …}})
    agent = protect(agent, session.calls)
    await Runner.run(agent, "…", session=session)
    session.undo()      # the last turn's items, and its files and effects

The items are a thread of the workspace, one state checkpoint for each time the SDK saves some. A turn begins with what
a user says, which the SDK saves before it asks the model.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

try:
    from agents import Agent, FunctionTool, LocalShellTool, Session, SessionSettings, ShellTool, Tool
    from agents.items import TResponseInputItem
    from agents.tool_context import ToolContext
except ImportError as error:
    from takeback.system.installed import with_extra

    raise ImportError(f"{error}: install it: {with_extra('openai-agents')}") from error

from takeback.harness.undo_declarations import Undo
from takeback.harness.recorder import to_the_end
from takeback.errors import Moved, TakebackError, UsageError
from takeback.harness.steps import Approve
from takeback.harness.tool_calls import ALLOW, Ask, ToolCalls, Undone
from takeback.workspace import Workspace

AGENT = "openai-agents"
_ITEMS = "items"
_ATTEMPTS = 100  # at a thread that others move
_PROTECTED = "__takeback_protected__"
_BEHIND = "_invoke_tool_impl"

T = TypeVar("T")


class TakebackSession(Session):
    """A conversation kept in a thread of a workspace. The SDK's Session, with undo and redo."""

    session_id: str
    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        workspace: Workspace,
        *,
        approve: Ask | None = None,
        undo: Mapping[str, Undo] = {},
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self.workspace = workspace
        self._unkept: list[TResponseInputItem] = []  # while takeback is off: a conversation goes on all the same
        self.calls = ToolCalls(
            workspace, agent=AGENT, session=session_id, thread=session_id, approve=approve, undo=undo
        )

    # -- the SDK's protocol --------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, oldest first; all of them without one."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = await to_the_end(self._items)
        return items if limit is None else items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keeps items; what a user says begins a turn."""
        if items:
            await to_the_end(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the newest item away, and returns it."""
        return await to_the_end(self._pop)

    async def clear_session(self) -> None:
        """Takes all items away; the thread keeps what it held."""
        await to_the_end(self._clear)

    # -- taking back -------------------------------------------------------------

    def undo(self, approve: Approve | None = None) -> Undone:
        """Takes back the last turn: its items, its files and its effects outside. They stack."""
        return self.calls.undo(approve)

    def redo(self, approve: Approve | None = None) -> Undone:
        """Brings back what the newest undo took."""
        return self.calls.redo(approve)

    async def aundo(self, approve: Approve | None = None) -> Undone:
        return await self.calls.aundo(approve)

    async def aredo(self, approve: Approve | None = None) -> Undone:
        return await self.calls.aredo(approve)

    # -- the thread --------------------------------------------------------------

    @property
    def _is_off(self) -> bool:
        return not self.workspace.settings.enabled

    def _items(self) -> list[TResponseInputItem]:
        return self._seen()[1]

    def _seen(self) -> tuple[str, list[TResponseInputItem]]:
        """The id of the thread's head, and the items it holds."""
        if self._is_off:
            return "", list(self._unkept)
        head = self.workspace.threads.find(self.session_id)
        return (head.id, list(self.workspace.threads.load(head)[_ITEMS])) if head is not None else ("", [])

    def _add(self, new: list[TResponseInputItem]) -> None:
        if (said := _said_by_user(new)) is not None:
            self.calls.cursor = str(len(self._items()))
            self.calls.begin_turn(said)
        self._change(lambda items: [*items, *new], f"{len(new)} item{'s' * (len(new) != 1)} added")

    def _pop(self) -> TResponseInputItem | None:
        before = self._change(lambda items: items[:-1], "an item taken away")
        return before[-1] if before else None

    def _clear(self) -> None:
        self._change(lambda items: [], "all items taken away")

    def _change(
        self, change: Callable[[list[TResponseInputItem]], list[TResponseInputItem]], summary: str
    ) -> list[TResponseInputItem]:
        """Saves the items changed, and returns them as they were. Who finds that another one has saved begins anew."""
        for _ in range(_ATTEMPTS):
            head, items = self._seen()
            changed = change(items)
            with suppress(Moved):
                if changed != items:
                    self._save(changed, head, summary)
                self.calls.cursor = str(len(changed))
                return items
        raise TakebackError(f"session {self.session_id} keeps moving; nothing was saved", "let one program write it")

    def _save(self, items: list[TResponseInputItem], head: str, summary: str) -> None:
        if self._is_off:
            self._unkept = items
        else:
            state = {_ITEMS: items}
            self.workspace.threads.save(self.session_id, state, parent=head, summary=summary, agent=AGENT, source=AGENT)


def _said_by_user(items: list[TResponseInputItem]) -> str | None:
    """What a user says in these items; None if nobody does."""
    for item in items:
        if isinstance(item, Mapping) and item.get("role") == "user":
            content = item.get("content")
            if isinstance(content, list):
                parts = (part.get("text", "") for part in content if isinstance(part, Mapping))
                return " ".join(filter(None, parts))
            return content if isinstance(content, str) else ""
    return None


# -- tools -----------------------------------------------------------------------


def protect(what: T, calls: ToolCalls) -> T:
    """A copy of a tool whose calls are journaled, gated and taken back; or of an agent with such tools, handoffs too.

    Tools that run at the provider are left as they are: what they do is none of this machine's. Tools of MCP servers
    come into being in each run: protect them by takeback's own gate at that server."""
    if isinstance(what, Agent):
        made: dict[int, Agent[Any]] = {}
        protected = cast(T, _agent(what, calls, made))
        calls.know_tools(tool.name for agent in made.values() for tool in agent.tools)
        return protected
    return cast(T, _tool(cast(Tool, what), calls))


def _agent(agent: Agent[Any], calls: ToolCalls, made: dict[int, Agent[Any]]) -> Agent[Any]:
    if id(agent) in made:
        return made[id(agent)]
    if agent.mcp_servers:
        raise UsageError(
            f"the tools of {agent.name}'s MCP servers cannot be protected: the SDK makes them anew in each run",
            "turn them into function tools, or run the program under `takeback run`",
        )
    copied = made[id(agent)] = agent.clone(tools=[_tool(tool, calls) for tool in agent.tools])
    copied.handoffs = [_agent(to, calls, made) if isinstance(to, Agent) else to for to in agent.handoffs]
    return copied


def _tool(tool: Tool, calls: ToolCalls) -> Tool:
    if getattr(tool, _PROTECTED, False):
        return tool
    if isinstance(tool, FunctionTool):
        return _function_tool(tool, calls)
    if isinstance(tool, ShellTool | LocalShellTool) and tool.executor is not None:
        return _shell_tool(tool, calls)
    if hasattr(tool, "editor") or hasattr(tool, "on_invoke_tool") or hasattr(tool, "computer"):
        raise UsageError(
            f"{tool.name} is a tool that takeback cannot protect", "leave it out, or write it as a function"
        )
    return tool


def _function_tool(tool: FunctionTool, calls: ToolCalls) -> FunctionTool:
    copied = copy.copy(tool)
    invoker: Any = copied.on_invoke_tool
    # Behind the SDK's own handling of exceptions, where it has any: it would tell them as if they were results.
    inner = getattr(invoker, _BEHIND, None)
    invoke = inner or invoker

    @functools.wraps(invoke)
    async def on_invoke_tool(context: ToolContext[Any], arguments: str) -> Any:
        lane = context.agent.name if context.agent is not None else ""
        given = _arguments(arguments)
        return await _called(calls, context.tool_call_id, tool.name, given, lane, lambda: invoke(context, arguments))

    if inner is not None:
        setattr(invoker, _BEHIND, on_invoke_tool)
    else:
        copied.on_invoke_tool = on_invoke_tool
    setattr(copied, _PROTECTED, True)
    return copied


def _shell_tool(tool: ShellTool | LocalShellTool, calls: ToolCalls) -> Tool:
    execute: Any = tool.executor

    async def executor(request: Any) -> Any:
        action = request.data.action
        commands = action.commands if isinstance(tool, ShellTool) else action.command

        async def run() -> Any:
            result = execute(request)
            return await result if inspect.isawaitable(result) else result

        given = {"commands" if isinstance(tool, ShellTool) else "command": list(commands)}
        return await _called(calls, request.data.call_id, tool.name, given, "", run)

    copied = dataclasses.replace(tool, executor=executor)
    setattr(copied, _PROTECTED, True)
    return copied


async def _called(
    calls: ToolCalls, id: str, tool: str, args: Mapping[str, Any], lane: str, run: Callable[[], Awaitable[Any]]
) -> Any:
    """One call, from the gate to the journal. A denial is what the model reads in place of a result."""
    said = await calls.abegin(id, tool, args, lane=lane)
    if said.decision != ALLOW:
        return f"Not run. {said.reason}"
    try:
        with calls.within(id):
            result = await run()
    except BaseException as error:
        await calls.afail(id, error)
        raise
    await calls.acommit(id, result)
    return result


def _arguments(given: str) -> Mapping[str, Any]:
    try:
        found = json.loads(given or "{}")
    except ValueError:
        found = given
    return found if isinstance(found, dict) else {"input": found}
