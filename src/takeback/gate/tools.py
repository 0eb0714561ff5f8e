"""Tools that are no shell: what they write, what their servers say of them, and what they are called."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from takeback.agents.events import READS, SHELL, WRITES
from takeback.gate.bash.judge import shell
from takeback.gate.bash.words import named

from . import own_undo, rules
from .bash import switches
from .deadline import Deadline, TooLate
from .places import OUT, TEMPORARY, places
from .requests_and_statements import destroys
from .risk import Risk

if TYPE_CHECKING:
    from takeback.agents.events import Event

KIND = "tool"
_ACTS = named(
    "delete remove drop destroy truncate purge erase wipe publish release send mail email post tweet pay charge refund "
    "transfer payout withdraw buy purchase order book deploy undeploy terminate shutdown merge push revoke cancel "
    "invite "
    "grant ban kick archive uninstall reboot restart submit sign trade approve"
)
_READS = named(
    "get list read search find fetch query describe show view count status info help lookup browse check validate "
    "preview "
    "explain diff history log logs draft plan dry screenshot snapshot resolve"
)
_STATEMENTS = ("query", "sql", "statement")


def tool(
    event: Event, root: str, home: str, stores: Iterable[str], config: Iterable[str], known: Mapping[str, str]
) -> tuple[Risk, ...]:
    if event.does == SHELL:
        return shell(event.command, event.cwd or root, root, home, stores, config, known).risks
    found = _written(event, root, home, stores, config) if event.does != READS else []
    if event.server:
        found += _of_server(event)
    return tuple(found)


def _written(event: Event, root: str, home: str, stores: Iterable[str], config: Iterable[str]) -> list[Risk]:
    """The paths that an editing tool names."""
    where = places(root, home)
    mine = own_undo.own(home, where, stores, config)
    found, outside = [], []
    text, deadline = switches.written(event.input), Deadline()
    for given in event.paths:
        try:
            deadline.check()
        except TooLate:
            found.append(Risk(rules.UNREAD, event.tool, "it names more files than can be looked at in time"))
            break
        path = home + given[1:] if given == "~" or given.startswith("~/") else given
        place, real = where.of(path, event.cwd or root)
        for name in dict.fromkeys((real, os.path.realpath(real))):
            if (risk := own_undo.of_path(name, mine)) is not None:
                found.append(risk)
                break
            if (switch := switches.in_file(name, text)) is not None:
                found.append(Risk(own_undo.KIND, switch.what, switch.why, refuse=True))
                break
        else:
            if place in (OUT, TEMPORARY):
                outside.append(real)
    if outside and event.does == WRITES:
        why = "what lies outside the workspace is not captured"
        found.append(Risk(rules.OUTSIDE, f"{event.tool} {outside[0]}", why, outside=tuple(outside)))
    return found


def _of_server(event: Event) -> list[Risk]:
    """Another MCP server's tool, by its annotations where it has any, else by the words of its name."""
    said = event.annotations
    name = event.tool.rpartition("__")[2] or event.tool
    shown = f"{event.server}: {name}"
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
    if event.server == "takeback" or name.startswith("takeback_"):
        return []
    if said.get("readOnlyHint") is True or event.does == READS:
        return []
    if said.get("destructiveHint") is True:
        return [Risk(KIND, shown, "its server says that it may destroy something, and nothing there is captured")]
    if said.get("destructiveHint") is False:
        return []
    if (statement := _statement(event.input)) and words and words[0] in ("query", "execute", "run", "sql", "exec"):
        if lost := destroys("psql", ["psql", statement], None):
            return [Risk(rules.DATABASE, f"{lost} in {shown}", "what a database loses is not captured")]
        return []
    acts = [word for word in words if word in _ACTS]
    if acts and not (words and words[0] in _READS):
        return [Risk(KIND, shown, f"by its name it may {acts[0]}, and nothing there is captured")]
    return []


def _statement(given: Mapping[str, Any]) -> str:
    return next((given[key] for key in _STATEMENTS if isinstance(given.get(key), str)), "")
