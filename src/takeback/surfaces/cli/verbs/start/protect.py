"""protect: sets agents up so that whatever they do here is captured."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from takeback.agents.setup import changes, found
from takeback.errors import UsageError
from takeback.surfaces.wording.text import counted, listed, safe
from takeback.system.installed import with_extra

from . import agents_configured, init

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from takeback.agents.setup.targets import Place
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser

    from .agents_configured import Planned


def add(parser: Parser) -> None:
    parser.synopsis = "[AGENT…] [--user] [--mcp]"
    parser.about = (
        "Protects this folder, as init does, and puts takeback's hooks into the configuration of your\n"
        "coding agents: from then on each of their calls is in the journal and can be taken back. It\n"
        "shows what changes first, and asks. All else in those files stays as it is, and `takeback\n"
        "unprotect` gives each back byte for byte. Done twice it changes nothing; after an upgrade it\n"
        "renews what is old. See docs/agents.md."
    )
    parser.takes("AGENT…", "agents", nargs="*", help="claude codex gemini copilot qwen opencode cursor; or those found")
    parser.takes("--user", "--user", action="store_true", help="in your own configuration: for all your projects")
    parser.takes("--mcp", "--mcp", action="store_true", help="also add takeback's MCP server")
    parser.examples = [
        ("takeback protect", "the agents on this machine, in this project"),
        ("takeback protect claude codex", "these two, whether they are found or not"),
        ("takeback protect --user --mcp", "wherever you work, with the MCP server"),
    ]


def run(context: Context, args: Namespace) -> int:
    here = context.root()
    root = here or init.choose_root(context)
    settings = context.settings(root)
    context.must_be_on(settings)
    place = found.place_of(context.environ, root, args.user)
    setups = agents_configured.named(args.agents) or agents_configured.found(place)
    if not setups:
        raise UsageError("no coding agent was found on this machine", "name one: takeback protect claude")
    ours = found.ours()
    agents_configured.warn_of_cache(context)

    def plan() -> list[Planned]:
        planned = [
            agents_configured.Planned(s, changes.protecting(s.targets(place, ours), settings.home, args.mcp))
            for s in setups
        ]
        return [*planned, *agents_configured.excluding(planned, place, settings.home)]

    planned = plan()
    count = agents_configured.count(planned)
    if count or here is None:
        if count and not context.json:
            agents_configured.show(context, planned)
        shown = _shape(planned, place, created=False)
        if not agents_configured.approved_or_shown(context, _question(root, count, here is None), planned, shown):
            return 4
    created, done = _apply(
        context, lambda: agents_configured.apply(context, planned, plan, settings), here, root, args.user
    )
    _tell(context, done, place, created)
    if there := agents_configured.elsewhere(setups, place, ours):
        where, option = ("this project", "") if args.user else ("your own configuration", " --user")
        context.terminal.hint(f"{', '.join(there)}: also set up in {where}; one is enough (takeback unprotect{option})")
    if args.mcp:
        _tell_of_extra(context)
    return 0


def _question(root: Path, count: int, fresh: bool) -> str:
    protect = f"Protect {safe(str(root))}" if fresh else ""
    write = f"change {counted(count, 'file')}" if count else ""
    asked = " and ".join(part for part in (protect, write) if part)
    return asked[:1].upper() + asked[1:] + "?"


def _shape(planned: Sequence[Planned], place: Place, created: bool) -> dict[str, object]:
    agents = [
        {**agents_configured.shape(p, place), "left_to_do": p.setup.left_to_do(place)}
        for p in agents_configured.of_agents(planned)
    ]
    shape = {"root": str(place.root), "created": created, "agents": agents}
    return {**shape, "exclude": agents_configured.exclude_shape(planned)}


def _apply(
    context: Context, write: Callable[[], list[Planned]], here: Path | None, root: Path, user: bool
) -> tuple[bool, list[Planned]]:
    """Writes the files; a folder that was not protected yet is, and its first checkpoint has them. Says whether it
    was, and what was written."""
    if here is not None:
        done = write()
        init.note_place(context, here, context.settings(here))
        return False, done
    done = []
    try:
        workspace, first = init.ensure(context, root, lambda: done.extend(write()))
    except UsageError as error:
        if not user:
            raise
        context.terminal.hint(f"takeback: {safe(error.message)}: it is not protected itself")
        context.terminal.hint("  → protect each project with takeback init")
        return False, write()
    workspace.close()
    return first is not None, done


def _tell(context: Context, planned: Sequence[Planned], place: Place, created: bool) -> None:
    terminal, count = context.terminal, agents_configured.count(planned)
    if context.json:
        terminal.json(_shape(planned, place, created))
        return
    titles = ", ".join(p.setup.title for p in agents_configured.of_agents(planned))
    where = "wherever you work" if place.user else f"in {safe(str(place.root))}"
    done = "set up" if count else "set up already; nothing was changed"
    terminal.say(f"{terminal.style(titles, 'bold')}: {done}, {where}")
    for p in planned:
        for change in p.changes:
            if change.note:
                terminal.say(f"  {p.setup.title}: {safe(str(change.path))}: {change.note}")
        if todo := p.setup.left_to_do(place):
            terminal.say(f"  {p.setup.title}: {todo}")
    for p in planned:
        if p.setup is agents_configured.EXCLUDE:
            _tell_of_commits(context, p)
    terminal.hint("let your agent loose; then: takeback log, takeback undo; whether it fires: takeback doctor")


def _tell_of_commits(context: Context, planned: Planned) -> None:
    """Which files git does not take into a commit by itself, and which it has already."""
    (change,) = planned.changes
    if change.record is not None:
        context.terminal.hint(f"they stay out of your commits: {safe(str(change.path))} names them")
    if planned.tracked:
        named = listed([safe(name) for name in planned.tracked])
        context.terminal.warn(f"takeback: in your commits already, and left so: {named}")
        context.terminal.warn("  → they name this machine's Python: do not commit that, or use takeback protect --user")


def _tell_of_extra(context: Context) -> None:
    if find_spec("mcp") is None:
        context.terminal.warn(f"takeback: the MCP server needs an extra: {with_extra('mcp')}")
