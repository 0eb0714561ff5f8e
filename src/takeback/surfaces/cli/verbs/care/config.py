"""config: every setting with its source; the visible rules; confirming the project's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.config.place import noted
from takeback.config.settings import SETTINGS
from takeback.errors import UsageError
from takeback.surfaces.cli.approving import approved, only_a_person
from takeback.surfaces.wording.text import cells, listed, pad, safe

if TYPE_CHECKING:
    from takeback.config.settings import Settings
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "[rules | confirm]"
    parser.about = (
        "Lists each setting, its value and where it comes from: .takeback.toml in the project, your\n"
        "config.toml, the environment (TAKEBACK_…). `rules` lists what is not captured. `confirm`\n"
        "accepts the project's own rules that take paths out of cover: until a person does, those\n"
        "paths stay captured, so that an agent cannot lessen its own undo."
    )
    parser.takes("rules", "what", nargs="?", default="", help="the list of rules, in the order they are read")
    parser.listed.append(("confirm", "accept the project's rules; asks, or --yes"))
    parser.examples = [
        ("takeback config", ""),
        ("takeback config rules", ""),
        ("takeback config confirm", ""),
    ]


def run(context: Context, args: Namespace) -> int:
    verbs = {"": _settings, "rules": _rules, "confirm": _confirm}
    if args.what not in verbs:
        raise UsageError(f"config knows no {args.what!r}", "takeback config, config rules or config confirm")
    return verbs[args.what](context)


def _settings(context: Context) -> int:
    settings = context.settings(context.root() or context.cwd)
    if context.json:
        rows = [{"key": key, "value": value, "source": source} for key, value, source in settings.rows()]
        by_key = {key: {"value": value, "source": source} for key, value, source in settings.rows()}
        context.terminal.json({**by_key, "settings": rows, "ignored": list(settings.ignored)})
        return 0
    shown = {s.key: s.kind.show(getattr(settings, s.attribute)) for s in SETTINGS}
    rows_shown = [
        (k, shown.get(k, " ".join(map(str, v)) if isinstance(v, list) else str(v)), s) for k, v, s in settings.rows()
    ]
    keys, values = max(len(k) for k, *_ in rows_shown), min(40, max(cells(safe(v)) for _, v, _ in rows_shown))
    for key, value, source in rows_shown:
        origin = context.terminal.style(safe(source), "dim" if source == "default" else "cyan")
        context.terminal.write(f"{key:<{keys}}  {pad(safe(value), values)}  {origin}")
    for line in settings.ignored:
        context.terminal.warn(f"ignored: {safe(line)}")
    context.terminal.hint(f"change them in {safe(str(settings.config))}")
    _tell_of_agents(context, settings)
    return 0


def _tell_of_agents(context: Context, settings: Settings) -> None:
    """Says where agents go by another configuration than the person who asks."""
    root = context.root()
    known = noted(settings.home, root) if root is not None else settings.config
    if known != settings.config:
        context.terminal.warn(f"agents in this folder go by {safe(str(known))}, as it was when it was protected")
        context.terminal.hint(f"  → have them go by {safe(str(settings.config))} too: takeback init")


def _rules(context: Context) -> int:
    with context.open(when_off=True) as workspace, workspace.open_tree() as tree:
        rules = workspace.observer.rules(tree)
    if context.json:
        context.terminal.json({"rules": [{"pattern": p, "source": s} for p, s in rules.listing()]})
        return 0
    listing = rules.listing()
    width = max(cells(safe(pattern)) for pattern, _ in listing)
    context.terminal.page(
        [f"{pad(safe(p), width)}  {context.terminal.style(safe(s), 'dim')}" for p, s in listing]
        + ["everything else is captured; the last rule that matches decides, !pattern brings a path back in"]
    )
    return 0


def _confirm(context: Context) -> int:
    with context.open() as workspace:
        only_a_person(context, "accepting the project's rules", workspace)
        with workspace.open_tree() as tree:
            project = [
                (p, s)
                for p, s in workspace.observer.rules(tree).listing()
                if s in (".takebackignore", ".takeback.toml")
            ]
        held = workspace.status().held_back
        if not context.json:
            if not project:
                context.terminal.say("the project has no rules of its own: there is nothing to confirm")
                return 0
            for pattern, source in project:
                context.terminal.write(f"  {safe(pattern)}  ({source})")
            if held:
                context.terminal.write(f"these are captured now and would no longer be: {listed(held, 10)}")
        if not approved(context, "Accept the project's rules?"):
            return 4
        fingerprint = workspace.confirm_rules()
        if context.json:
            context.terminal.json({"confirmed": fingerprint, "held_back": list(held)})
        else:
            context.terminal.say("accepted; until the rules change, they hold from the next look on")
        return 0
