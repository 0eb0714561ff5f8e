"""policy: what may run, is asked for or is refused, and where that is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from takeback import gate
from takeback.config.policy import ALLOW, ASK, CALLS, REFUSE
from takeback.config.settings import PROJECT_FILE
from takeback.domains import BUILT_IN
from takeback.errors import UsageError
from takeback.gate.decision import by_policy
from takeback.model.effects import VERDICTS
from takeback.surfaces.wording.text import listed, pad, safe

if TYPE_CHECKING:
    from takeback.config.settings import Settings
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser

_COLOURS = {ALLOW: "green", ASK: "yellow", REFUSE: "red"}
_WHY = {
    "exact": "what was there comes back exactly",
    "compensating": "a further act makes up for it",
    "held": "it never left, and is dropped",
    "irreversible": "doing what cannot be undone, such as releasing mail",
    "unknown": "nobody knows what came of it",
}
_DOES = {
    ALLOW: "runs without a person",
    ASK: "a person types yes, or approves the plan",
    REFUSE: "is kept, and named so",
}


class Ruled(NamedTuple):
    domain: str
    verdict: str
    decision: str
    source: str


def add(parser: Parser) -> None:
    parser.synopsis = "check [DOMAIN VERDICT] | calls | --command COMMAND"
    parser.about = (
        "Explains what happens to a step outside the files: it runs (allow), a person is asked (ask), or\n"
        "it is kept (refuse), and which line of which file says so. Only your own configuration may\n"
        "loosen anything; the project's .takeback.toml, which an agent can write, may only tighten.\n"
        "--yes never answers for what is asked, and no policy lets a credential go where none binds it.\n"
        "`calls` lists what agents are stopped at; --command says what would be decided on one command,\n"
        "as an agent in this folder would run it. Nothing is run, and nothing is journaled."
    )
    parser.takes("check", "what", nargs="?", default="check", help="explain each decision, or the one named")
    parser.listed.append(("calls", "each kind of call that cannot be taken back, and what is decided on it"))
    parser.takes("--command COMMAND", "--command", default="", help="what would be decided on this shell command")
    parser.takes("DOMAIN", "domain", nargs="?", default="", help="http, command, email, python, or another")
    parser.takes("VERDICT", "verdict", nargs="?", default="", help=", ".join(VERDICTS))
    parser.examples = [
        ("takeback policy check", "everything"),
        ("takeback policy check http compensating", "one decision, and its source"),
        ('takeback policy --command "git push"', "whether an agent may, and why"),
    ]


def run(context: Context, args: Namespace) -> int:
    if args.command:
        return _command(context, args.command)
    if args.what == "calls":
        return _calls(context)
    if args.what != "check":
        raise UsageError(f"policy knows no {args.what!r}", "takeback policy check, policy calls, or policy --command")
    if args.verdict and args.verdict not in VERDICTS:
        raise UsageError(f"there is no verdict {args.verdict!r}", f"the verdicts are {', '.join(VERDICTS)}")
    mine, settings = context.settings(), context.settings(context.root() or context.cwd)
    domains = [args.domain] if args.domain else list(BUILT_IN)
    verdicts = [args.verdict] if args.verdict else list(VERDICTS)
    found = [_ruled(mine, settings, d, v) for d in domains for v in verdicts]
    ignored = [line for line in settings.ignored if "policy." in line or "sets credentials" in line]
    if context.json:
        context.terminal.json({"policy": [r._asdict() for r in found], "ignored": ignored})
        return 0
    _tell(context, found, one=bool(args.verdict))
    for line in ignored:
        context.terminal.warn(f"ignored: {safe(line)}")
    context.terminal.hint(f"change it in {safe(str(settings.config))}")
    return 0


def _calls(context: Context) -> int:
    """Every kind of call that cannot be taken back."""
    settings = context.settings(context.root() or context.cwd)
    found = [(kind, *settings.policy.call(kind), about) for kind, about in CALLS.items()]
    if context.json:
        keys = ("kind", "decision", "source", "about")
        context.terminal.json({"calls": [dict(zip(keys, each)) for each in found]})
        return 0
    for kind, decision, source, about in found:
        word = pad(context.terminal.style(decision, _COLOURS[decision]), 6)
        context.terminal.write(f"{kind:<14}  {word}  {about}  {context.terminal.style(safe(source), 'dim')}")
    context.terminal.hint(f"change it under [policy.calls] in {safe(str(settings.config))}")
    return 0


def _command(context: Context, command: str) -> int:
    """What would be decided on a command."""
    root = context.root() or context.cwd
    settings = context.settings(root)
    home = context.environ.get("HOME", "")
    config = str(settings.config.parent)
    known = gate.known(context.environ)
    judged = gate.look(command, str(context.cwd), str(root), home, (str(settings.home),), (config,), known)
    risks, unknown, ends = judged
    decided = by_policy(settings.policy, risks)
    if context.json:
        shapes = [{**risk._asdict(), "decision": REFUSE if risk.refuse else settings.policy.call(risk.kind).decision}
                  for risk in risks]  # fmt: skip
        context.terminal.json({"decision": decided.decision, "source": decided.source, "risks": shapes,
                               "unknown": list(unknown), "ends": list(ends)})  # fmt: skip
        return 0
    context.terminal.write(context.terminal.style(decided.decision, _COLOURS[decided.decision]))
    for risk in risks:
        made = "always refused" if risk.refuse else "{0.decision}, {0.source}".format(settings.policy.call(risk.kind))
        often = f" ({risk.times} times)" if risk.times > 1 else ""
        context.terminal.write(f"  {risk.kind}: {safe(risk.what)}{often}")
        context.terminal.write(f"    {safe(risk.why)} ({made})")
        if risk.undo:
            context.terminal.write(f"    undo: {safe(risk.undo)}")
    if ends:
        context.terminal.say(f"  ends processes: {safe(listed(ends))}; one that has ended is not brought back")
    if unknown:
        context.terminal.say(
            f"  not known: what is done by {safe(listed(unknown))}; files in the workspace are captured"
        )
    elif ends and not risks:
        context.terminal.say("  all of it was read: nothing else was found, and files in the workspace are captured")
    elif not risks:
        context.terminal.say("  all of it was read: it works on files, and those in the workspace are captured")
    return 0


def _ruled(mine: Settings, settings: Settings, domain: str, verdict: str) -> Ruled:
    """A decision, and the file and line of it that made it."""
    decision, said = settings.policy.decide(domain, verdict)
    if said.startswith("default"):
        return Ruled(domain, verdict, decision, said)
    tightened = mine.policy.decide(domain, verdict) != (decision, said)
    file = PROJECT_FILE if tightened else str(settings.config)
    return Ruled(domain, verdict, decision, f"{said} in {file}")


def _tell(context: Context, found: list[Ruled], one: bool) -> None:
    style = context.terminal.style
    domains = max(len(r.domain) for r in found)
    for ruled in found:
        word = pad(style(ruled.decision, _COLOURS[ruled.decision]), 6)
        source = style(safe(ruled.source), "dim" if ruled.source.startswith("default") else "cyan")
        context.terminal.write(f"{safe(ruled.domain):<{domains}}  {ruled.verdict:<12}  {word}  {source}")
        if one:
            context.terminal.say(f"  {_WHY[ruled.verdict]}: {_DOES[ruled.decision]}")
