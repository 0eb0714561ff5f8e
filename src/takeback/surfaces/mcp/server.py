"""The server: what it tells agents, its tools, how it is served, and mail that falls due while it runs."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from takeback import __version__
from takeback.config.settings import home
from takeback.errors import TakebackError, UsageError
from takeback.store import layout
from takeback.surfaces.wording.failures import of_the_system
from takeback.surfaces.wording.text import safe
from takeback.system import processes

from . import resources, schemas, unread
from .answers import failure
from .auth import Guard, new_token
from .instructions import INSTRUCTIONS
from .tools import back, capture, mail, record, see, threads

if TYPE_CHECKING:
    from takeback.workspace import Workspace

# Other names under which an argument is known, by tool.
_ALIASES: Mapping[str, Mapping[str, str]] = {
    "takeback_revert": {"paths": "what", "id": "path"},
    "takeback_apply": {"id": "plan", "plan_id": "plan"},
    "takeback_show": {"name": "id"},
    "takeback_rollback": {"to": "checkpoint", "except": "without"},
    "takeback_email_release": {"draft_id": "draft", "id": "draft"},
    "takeback_email_cancel": {"draft_id": "draft", "id": "draft"},
    "takeback_record_http": {**record.HTTP_ALIASES, **record.FOR},
    "takeback_record_reversal": record.FOR,
}


class Server(MCPServer[Any]):
    """All of takeback for one client or several. Holds no workspace open: each call opens its own."""

    def __init__(self, cwd: Path, environ: Mapping[str, str], parent: int = 0, any_root: bool = False) -> None:
        super().__init__(
            "takeback",
            title="takeback: undo for AI agents",
            instructions=INSTRUCTIONS,
            version=__version__,
            log_level="ERROR",
        )
        self.cwd = cwd
        self.environ = environ
        self.roots: dict[Path, mail.Watch] = {}  # of the workspaces that were opened, and when their mail is due
        self._parent = parent  # the agent's process, where it started us
        self._noted: set[Path] = set()
        self._any_root = any_root  # the person who started it lets it work in every project
        self._served = layout.find_root(home(environ), cwd) or Path(os.path.realpath(cwd))
        self.is_agents = bool(parent)  # started by an agent, in an environment of its choice
        for module in (capture, see, back, record, mail, threads, resources):
            module.add(self)

    def must_serve(self, folder: Path) -> None:
        """Refuses a folder outside the project that we were started for: whoever set us up meant that one."""
        if self._any_root:
            return
        served, person = self._served, self.environ.get("HOME", "")
        if served == Path(served.anchor) or (person and str(served) == os.path.realpath(person)):
            if folder != served:  # nobody meant all that lies there
                raise UsageError(
                    f"this server was started in {safe(str(served))}, which is no project",
                    "a person starts it in the project, or for every project with takeback mcp --any-root",
                )
        elif not folder.is_relative_to(served):
            raise UsageError(
                f"{safe(str(folder))} lies outside {safe(str(served))}, which this server was started for",
                "a person starts one there, or one for every project with takeback mcp --any-root",
            )

    def opened(self, workspace: Workspace, client: str) -> None:
        """A workspace is in use: whoever started us is known there as an agent, and mail there is sent when due."""
        self.roots.setdefault(workspace.root, mail.Watch())
        if self._parent and workspace.root not in self._noted and workspace.settings.enabled:
            try:
                workspace.note_session(self._parent, processes.started(self._parent), client or "an MCP client")
            except TakebackError:
                return  # somebody else is writing, or nobody can: the call itself will say so
            self._noted.add(workspace.root)

    async def run_stdio_async(self) -> None:
        """As the SDK has it, but a line that it cannot read is answered too: whoever asked would wait for ever."""
        async with stdio_server() as (asked, answers):
            heard, readable = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def read() -> None:
                async with heard:
                    async for message in asked:
                        if not isinstance(message, ValidationError):
                            await heard.send(message)
                        elif (answer := unread.answer(message)) is not None:
                            await answers.send(SessionMessage(answer))
                        elif (reply := unread.reply(message)) is not None:
                            await heard.send(SessionMessage(reply))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                options = self._lowlevel_server.create_initialization_options()
                await self._lowlevel_server.run(readable, answers, options)
                tasks.cancel_scope.cancel()

    def offer(self, tool: Callable[..., Any], title: str, does: ToolAnnotations) -> None:
        """Adds a tool under our prefix, its docstring as one paragraph, with the schema of what it answers."""
        name = tool.__name__.rstrip("_")
        about = " ".join((tool.__doc__ or "").split())
        self.add_tool(tool, f"takeback_{name}", title, about, does)
        added = self._tool_manager.get_tool(f"takeback_{name}")
        assert added is not None
        added.fn_metadata.output_schema = schemas.OF[name]  # the SDK derives one from models only, and we have shapes

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """As the SDK has it, but every failure that a reader can act on is told as one."""
        try:
            return await super().call_tool(name, self._named(name, arguments), context)
        except TakebackError as error:
            return failure(error)
        except ToolError as error:
            known = _known(name, error.__cause__)
            if known is None:
                raise
            return failure(known)

    def _named(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Arguments by the names we know; one that nobody knows is refused: without it the call means another thing."""
        found = self._tool_manager.get_tool(tool)
        if found is None:
            return arguments
        known = found.parameters.get("properties", {})
        aliases = _ALIASES.get(tool, {})
        named: dict[str, Any] = {}
        for given, value in arguments.items():
            snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", given).lower()
            name = next((n for n in (given, snake, aliases.get(given), aliases.get(snake)) if n in known), None)
            if name is None or name in named:
                what = "is given twice" if name else "is no argument of it"
                raise UsageError(f"{tool}: {given[:80]!r} {what}", f"it takes {', '.join(known)}")
            named[name] = value
        return named


def _known(tool: str, cause: BaseException | None) -> TakebackError | None:
    if isinstance(cause, TakebackError):
        return cause
    if isinstance(cause, ValidationError):
        wrong = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in cause.errors()[:5]]
        return UsageError(f"{tool}: {'; '.join(wrong)}", "see the tool's schema")
    return of_the_system(cause) if isinstance(cause, (OSError, sqlite3.Error)) else None


# -- serving -----------------------------------------------------------------------


def over_stdio(cwd: Path, environ: Mapping[str, str], any_root: bool = False) -> None:
    """For the agent that started us, until it hangs up."""
    client = processes.above_launchers(os.getpid()).pid or os.getppid()  # before the SDK takes our input away
    server = Server(cwd, environ, client, any_root)
    anyio.run(_until_done, server, server.run_stdio_async)


def over_http(cwd: Path, environ: Mapping[str, str], port: int, any_root: bool = False) -> None:
    """For whoever on this machine has the token, until it is stopped."""
    import uvicorn

    server = Server(cwd, environ, any_root=any_root)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # before its address is told
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise TakebackError(f"port {port} cannot be used ({why})", "name another one with --port") from None
    port, token = listening.getsockname()[1], new_token()
    app = Guard(server.streamable_http_app(), token, port)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
    print(f"takeback mcp: http://127.0.0.1:{port}/mcp token: {token}", file=sys.stderr, flush=True)
    anyio.run(_until_done, server, lambda: uvicorn.Server(config).serve(sockets=[listening]))


async def _until_done(server: Server, serve: Any) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mail.release_when_due, server)
        await serve()
        tasks.cancel_scope.cancel()


def config() -> str:
    """The block for .mcp.json, and for every client that has the same shape."""
    entry = {"command": sys.executable, "args": ["-m", "takeback", "mcp"]}
    return json.dumps({"mcpServers": {"takeback": entry}}, indent=2)
