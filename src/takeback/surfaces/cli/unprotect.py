"""unprotect: takes takeback's hooks out of agents' configuration again."""

from __future__ import annotations

from ...agents import AGENTS
from . import configuring
from .approving import only_a_person
from .terminal import counted, listed, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .configuring import Planned
    from .context import Context
    from .parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[AGENT…] [--user]"
    parser.about = (
        "Takes out what `takeback protect` put in: hooks, commands and the MCP server. A file that\n"
        "nobody else has changed is byte for byte what it was; files and folders that protect made go,\n"
        "if they are still as made; what others added stays. The history stays too. Refused where an\n"
        "agent is at work: it cannot lessen its own undo."
    )
    parser.takes("AGENT…", "agents", nargs="*", help="only of these; otherwise of all")
    parser.takes("--user", "--user", action="store_true", help="in your own configuration, not this project's")
    parser.examples = [
        ("takeback unprotect", "all agents, in this project"),
        ("takeback unprotect gemini --user", "one, in your own configuration"),
    ]


def run(context: Context, args: Namespace) -> int:
    from ...agents.setup import changes

    _must_be_a_person(context)
    root = context.root() or context.cwd
    settings = context.settings(root)
    place = configuring.place_of(context.environ, root, args.user)
    setups = configuring.named(args.agents or list(AGENTS))
    ours = configuring.ours()

    def plan() -> list[Planned]:
        planned = [configuring.Planned(s, changes.unprotecting(s.targets(place, ours), settings.home)) for s in setups]
        return [*planned, *configuring.including(planned, place, settings.home, whole=not args.agents)]

    planned = plan()
    shown: dict[str, object] = {
        "root": str(root),
        "agents": [configuring.shape(p, place) for p in configuring.of_agents(planned)],
    }
    shown["exclude"] = configuring.exclude_shape(planned)
    count = configuring.count(planned)
    if count:
        if not context.json:
            configuring.show(context, planned)
        if not configuring.approved_or_shown(context, f"Change {counted(count, 'file')}?", planned, shown):
            return 4
    planned = configuring.apply(context, planned, plan, settings)
    if there := configuring.elsewhere(setups, place, ours):
        where, option = ("this project", "") if args.user else ("your own configuration", " --user")
        context.terminal.hint(f"{', '.join(there)}: still set up in {where} (takeback unprotect{option})")
    return _tell(context, planned, count, root, shown)


def _must_be_a_person(context: Context) -> None:
    if context.root() is None:
        only_a_person(context, "unprotecting")
        return
    with context.open(when_off=True, tell=False) as workspace:
        only_a_person(context, "unprotecting", workspace)


def _tell(context: Context, planned: Sequence[Planned], count: int, root: Path, shown: dict[str, object]) -> int:
    kept = [change for p in planned for change in p.changes if change.kept]
    for change in kept:
        context.terminal.warn(f"takeback: {safe(str(change.path))} {change.kept}, and stays")
        context.terminal.warn("  → look at it, and remove it yourself")
    if context.json:
        context.terminal.json(shown)
    elif count:
        context.terminal.say(f"took takeback's hooks out of {listed(configuring.changed(planned, root), count)}")
        if context.root() is not None:
            context.terminal.hint(f"the history of {safe(str(root))} stays: takeback log, takeback prune --all")
    else:
        context.terminal.say("there is nothing of takeback's to take out")
    return 3 if kept else 0
