"""One call: which workspace it is about, and by whom it was made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, cast

import anyio
from mcp.server.mcpserver import Context
from pydantic import Field

from takeback.agents import AGENTS
from takeback.care.moved_folder import moved_from
from takeback.config import place
from takeback.config.settings import Settings, home
from takeback.errors import NoWorkspace, TakebackError, UsageError
from takeback.store import layout
from takeback.surfaces.wording.text import safe
from takeback.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from .server import Server

Answer = TypeVar("Answer")
Ctx = Context[Any, Any]
Cwd = Annotated[
    str,
    Field(description="A folder in the project that this server was started for. Default: where the server runs"),
]


class Here(NamedTuple):
    """Where a call works, as the command line's helpers want it."""

    cwd: Path


class Call:
    """What a tool is given: the caller's folder, its workspace, its name."""

    def __init__(self, server: Server, cwd: str, client: str = "", request: str = "") -> None:
        self.server = server
        self.here = Here(_folder(server.cwd, cwd))
        server.must_serve(self.here.cwd)
        self._client = client
        self._request = request
        self.is_cancelled = False

    @property
    def environ(self) -> Mapping[str, str]:
        return self.server.environ

    @property
    def actor(self) -> str:
        """Who vouches for changed files: only somebody the owner named."""
        return self.environ.get("TAKEBACK_ACTOR", "")

    @property
    def by(self) -> dict[str, str]:
        """Who makes this call, for the journal."""
        found = {"surface": "mcp", "actor": self.actor or self._client, "call": self._request}
        return {name: value for name, value in found.items() if value}

    def settings(self, root: Path | None = None) -> Settings:
        """What holds in a root. Over stdio an agent chose our environment, so it does not say where that is read."""
        at = root or layout.find_root(home(self.environ), self.here.cwd)
        return place.load(root, self.environ, at=at, agent=self.server.is_agents or None)

    def open(self) -> Workspace:
        """The workspace at or above the caller's folder. Opened anew for each call, so that a changed policy holds."""
        workspace = self.open_quietly()
        self.server.opened(workspace, self._client)
        return workspace

    def open_quietly(self) -> Workspace:
        """The same for the server's own work, which is nobody's call."""
        home = self.settings().home
        root = layout.find_root(home, self.here.cwd)
        if root is None:
            raise _no_workspace(home, self.here.cwd)
        workspace = open_workspace(root, self.settings(root), environ=self.environ)
        workspace.asked_by = agent_of(self._client)
        workspace.client = self.by.get("actor", "mcp")
        workspace.observer.stopped = lambda: self.is_cancelled
        return workspace

    async def watch(self) -> None:
        """Until the call is over: notes when its client takes it back (notifications/cancelled, or hanging up)."""
        try:
            await anyio.sleep_forever()
        finally:
            self.is_cancelled = True


async def in_thread(call: Call, work: Callable[[], Answer]) -> Answer:
    """Work of a call, beside which others are served. A thread cannot be ended from outside: one whose call is
    cancelled goes on to the end of the step that it has begun, and no further; the journal says how far it came."""
    call.is_cancelled = False
    found: list[Answer] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.watch)
        try:
            found.append(await anyio.to_thread.run_sync(work))
        except Exception as error:  # raised below: a task group would make a group of it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return found[0]


def call_of(ctx: Ctx, cwd: str) -> Call:
    return Call(cast("Server", ctx.mcp_server), cwd, client_name(ctx), ctx.request_id)


def client_name(ctx: Ctx) -> str:
    """What the client calls itself; a later protocol lets it keep quiet."""
    params = ctx.session.client_params
    name = params.client_info.name if params is not None else ""
    return safe(name)[:80]


def agent_of(client: str) -> str:
    """Which agent a client is, by the name it gives itself: "claude-code", "gemini-cli-mcp-client"."""
    name = client.lower()
    return next((agent for agent in AGENTS if agent in name), "")


def _folder(base: Path, cwd: str) -> Path:
    if "\0" in cwd:
        raise UsageError("cwd cannot hold a NUL byte", "name a folder of the project")
    try:
        found = Path(os.path.realpath(base / cwd))
        is_folder = found.is_dir()
    except (OSError, ValueError):
        is_folder = False
    if not is_folder:
        raise UsageError(f"{safe(cwd[:200]) or base} is not a folder", "name a folder of the project in cwd")
    return found


def _no_workspace(home: Path, here: Path) -> TakebackError:
    for folder in (here, *here.parents):
        for moved in moved_from(home, folder):
            return NoWorkspace(
                f"{safe(str(folder))} is not protected, but it looks like {safe(str(moved))}, moved",
                "call takeback_init with that folder as cwd to go on with its history",
            )
    return NoWorkspace(
        f"nothing is protected at or above {safe(str(here))}", "call takeback_init with the project's folder as cwd"
    )
