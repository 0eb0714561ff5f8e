"""unprotect: takes takeback's hooks out of agents' configuration again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.agents import AGENTS
from takeback.agents.setup import changes, found
from takeback.surfaces.cli.approving import only_a_person
from takeback.surfaces.cli.verbs.start import agents_configured
from takeback.surfaces.wording.text import counted, listed, safe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser
    from takeback.surfaces.cli.verbs.start.agents_configured import Planned


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
    _must_be_a_person(context)
    root = context.root() or context.cwd
    settings = context.settings(root)
    place = found.place_of(context.environ, root, args.user)
    setups = agents_configured.named(args.agents or list(AGENTS))
    ours = found.ours()

    def plan() -> list[Planned]:
        planned = [
            agents_configured.Planned(s, changes.unprotecting(s.targets(place, ours), settings.home)) for s in setups
        ]
        return [*planned, *agents_configured.including(planned, place, settings.home, whole=not args.agents)]

    planned = plan()
    shown: dict[str, object] = {
        "root": str(root),
        "agents": [agents_configured.shape(p, place) for p in agents_configured.of_agents(planned)],
    }
    shown["exclude"] = agents_configured.exclude_shape(planned)
    count = agents_configured.count(planned)
    if count:
        if not context.json:
            agents_configured.show(context, planned)
        if not agents_configured.approved_or_shown(context, f"Change {counted(count, 'file')}?", planned, shown):
            return 4
    planned = agents_configured.apply(context, planned, plan, settings)
    if there := agents_configured.elsewhere(setups, place, ours):
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
        context.terminal.say(f"took takeback's hooks out of {listed(agents_configured.changed(planned, root), count)}")
        if context.root() is not None:
            context.terminal.hint(f"the history of {safe(str(root))} stays: takeback log, takeback prune --all")
    else:
        context.terminal.say("there is nothing of takeback's to take out")
    return 3 if kept else 0
