"""The gate: what a call would do that takeback cannot take back, told before it is done.

    gate.shell(command, …)   a shell command, parsed and seen through its wrappers
    gate.tool(event, …)      any other tool: by what it names, its annotations, its name
    gate.decide(ws, …)       allow, ask or deny, by the owner's policy and a person's approvals

What is captured is no risk: files in the workspace, branches, tags, the index. Nothing here stops a program that hides
what it does; docs/gate.md says what the gate does not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import decision, tools
from .bash import judge
from .risk import Risk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from takeback.agents.events import Answer, Event
    from takeback.gate.bash.judge import Judged
    from takeback.workspace import Workspace


_NONE: Mapping[str, str] = {}


def known(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables by which a command may name what is takeback's own, as it will find them."""
    return {name: environ[name] for name in ("TAKEBACK_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME") if environ.get(name)}


def shell(
    command: str,
    cwd: str,
    root: str,
    home: str,
    stores: Iterable[str] = (),
    config: Iterable[str] = (),
    known: Mapping[str, str] = _NONE,
) -> tuple[Risk, ...]:
    """The risks of a shell command, the worst first. `home` is the person's home folder; `stores` and `config` are
    where takeback keeps its own, where that is not the default; `known` are variables that it begins with."""
    return look(command, cwd, root, home, stores, config, known).risks


def look(
    command: str,
    cwd: str,
    root: str,
    home: str,
    stores: Iterable[str] = (),
    config: Iterable[str] = (),
    known: Mapping[str, str] = _NONE,
) -> Judged:
    """The same with what of the command is not known: programs whose own code alone says what they do."""
    return judge.shell(command, cwd, root, home, stores, config, known)


def tool(
    event: Event,
    root: str,
    home: str,
    stores: Iterable[str] = (),
    config: Iterable[str] = (),
    known: Mapping[str, str] = _NONE,
) -> tuple[Risk, ...]:
    """The risks of a call of any tool; of a shell, those of its command."""
    return tools.tool(event, root, home, stores, config, known)


def decide(
    ws: Workspace, event: Event, risks: Sequence[Risk], can_ask: bool, summary: str = "", alone: bool = False
) -> Answer:
    """What is answered. A call that is asked for or denied is journaled; an approval of it is used up. `alone`: the
    agent could ask, but nobody sits at it."""
    return decision.decide(ws, event, risks, can_ask, summary, alone)
