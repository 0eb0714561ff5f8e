"""The log and the diff as documents: of the server's own folder, and of any other (`?cwd=`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp.server.mcpserver import ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceError

from takeback.errors import TakebackError
from takeback.surfaces.mcp.tools.see import masked
from takeback.surfaces.wording import diffs
from takeback.surfaces.wording import log as log_of_wording

from .answers import Page, answer
from .calls import Call
from .windows import more, windowed
from .wording import for_agents

if TYPE_CHECKING:
    from .server import Server

_ROWS = 100
_LINES = 1000


def add(server: Server) -> None:
    def history() -> str:
        return _read(_log, server, "")

    def history_of(cwd: str = "") -> str:
        return _read(_log, server, cwd)

    def changes() -> str:
        return _read(_diff, server, "")

    def changes_of(cwd: str = "") -> str:
        return _read(_diff, server, cwd)

    any_folder = ResourceSecurity(exempt_params={"cwd"})  # it names a workspace, and nothing in it is read by name
    for name, title, here, elsewhere in (
        ("log", "The history, newest first", history, history_of),
        ("diff", "What changed since the newest named checkpoint", changes, changes_of),
    ):
        server.resource(f"takeback://{name}", name=name, title=title, mime_type="text/plain")(here)
        server.resource(
            f"takeback://{name}{{?cwd}}", name=f"{name}-of", title=title, mime_type="text/plain", security=any_folder
        )(elsewhere)


def _log(call: Call, page: Page) -> None:
    with call.open() as workspace:
        rows, now = workspace.log(), workspace.clock()
        turns = workspace.turns_of(rows[:_ROWS])
    page.page(log_of_wording.lines(page, rows[:_ROWS], now, turns) if rows else ["the log is empty"])
    if len(rows) > _ROWS:
        page.hint(f"… and {len(rows) - _ROWS:,} more: takeback_log with offset {_ROWS}")


def _diff(call: Call, page: Page) -> None:
    with call.open() as workspace:
        files = masked(workspace.diff().files)
    cut = windowed(files, 0, _LINES)
    page.page(diffs.lines(page, cut.files))
    page.say(diffs.totals(page, files) if files else "no difference")
    more(page, "lines", 0, _LINES, cut.total)


def _read(write: Callable[[Call, Page], None], server: Server, cwd: str) -> str:
    page = Page()
    try:
        write(Call(server, cwd), page)
    except TakebackError as error:
        raise ResourceError(f"{error.message}; {for_agents(error.hint)}") from error
    content = answer(page, {}).content[0]
    return getattr(content, "text", "")
