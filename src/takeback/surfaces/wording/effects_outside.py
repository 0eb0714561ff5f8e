"""How an outside effect looks: its state, the exact request or command that takes it back, who recorded it and when."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from takeback.config.variables import is_place
from takeback.model.effects import COMPENSATING, EXACT, HELD, IRREVERSIBLE, REFUSED, UNKNOWN, text
from takeback.model.ids import is_id
from takeback.model.outside import DID_NOT_HAPPEN, HAPPENED, NOT_UNDONE, UNDONE
from takeback.privacy.redact import REFERENCE
from takeback.privacy.redact import text as redacted

from .text import age, safe

if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.journal.history import History
    from takeback.model.effects import Step
    from takeback.model.outside import Act
    from takeback.workspace import Workspace

    from .screen import Screen


_SIGNS = {
    EXACT: ("↩", "green"),
    COMPENSATING: ("↩", "yellow"),
    HELD: ("×", "green"),
    IRREVERSIBLE: ("✗", "red"),
    UNKNOWN: ("?", "magenta"),
    REFUSED: ("!", "red"),
}
_STATES = {
    "live": "yellow",
    "held": "green",
    "undone": "dim",
    "failed": "dim",
    "sending": "cyan",
    "unknown": "magenta",
    "irreversible": "red",
}


def act_of(step: Step, history: History) -> Act | None:
    """The outside effect a step is about; None where it is about a file."""
    return None if step.domain == "files" else history.acts.get(text(step.path))


def describer(workspace: Workspace) -> Callable[[Act], str]:
    """Says exactly what would be sent or run to take an act back, secrets as names."""

    return lambda act: workspace.describe(act) or act.summary


def needs(act: Act) -> list[str]:
    """The environment variables whose values its inverse needs."""
    if act.inverse is None:
        return []
    args = act.inverse.args
    named = args.get("env", ()) if act.domain == "command" else ()
    return list(dict.fromkeys([*REFERENCE.findall(json.dumps(dict(args))), *map(str, named)]))


def giving(act: Act) -> str:
    """The command that says what takes back an effect that stands without; empty where there is none to be."""
    if act.inverse is not None or act.undone_by or act.shown_state != "irreversible" or act.domain == "email":
        return ""
    if act.domain == "http" or act.did.get("request"):
        return f"takeback record http --for {act.id[:8]} --inverse-method METHOD --inverse-url URL"
    return f"takeback record command --for {act.id[:8]} -- COMMAND"


def sign(terminal: Screen, verdict: str) -> str:
    mark, colour = _SIGNS.get(verdict, ("!", "red"))
    return terminal.style(mark, colour)


def verdict(terminal: Screen, step: Step, act: Act, does: str, workspace: Workspace) -> str:
    """'compensates POST /v1/charges ch_3P (needs STRIPE_KEY)', beside what it does, which may name the key already."""
    note, what = safe(step.note), safe(act.summary)
    colour = _SIGNS.get(step.verdict, ("", "red"))[1]
    if not step.taken:
        told = note.removeprefix(f"{step.verdict} ")
        return terminal.style(step.verdict, colour) + (f" {told}" if step.verdict == REFUSED else f": {told}")
    if step.verdict == HELD:
        return f"{terminal.style('held', colour)}: {what} never left; dropped" + (f" · {note}" if note else "")
    word = "compensates" if step.verdict == COMPENSATING else step.verdict + ":"
    wanted, environ = needs(act), workspace.environ
    unsaid, unset = [n for n in wanted if n not in does], [n for n in wanted if n not in environ]
    told = f" (needs {safe(', '.join(unsaid))})" if unsaid else ""
    told += terminal.style(f" · {safe(', '.join(unset))} {'is' if len(unset) == 1 else 'are'} not set", "red") * bool(
        unset
    )
    told += "".join(_place(terminal, act, name, environ[name]) for name in wanted if environ.get(name))
    if changed := [name for name in workspace.changed_since_recorded(act) if not is_place(name)]:
        verb = "differs" if len(changed) == 1 else "differ"
        told += terminal.style(f" · {safe(', '.join(changed))} {verb} from when it was recorded", "red")
    return f"{terminal.style(word, colour)} {what}{told}" + (f" · {note}" if note else "")


def _place(terminal: Screen, act: Act, name: str, now: str) -> str:
    """' · AWS_PROFILE is prod here, and was staging': which account or place is chosen, where that is no secret."""
    if act.domain != "command" or not is_place(name):
        return ""
    was = act.did.get("environment", {}).get(name, redacted(now))
    here = f" · {name} is {safe(redacted(now))} here"
    return here if was == redacted(now) else terminal.style(f"{here}, and was {safe(str(was))}", "red")


def origin(act: Act, now: float) -> str:
    """Who recorded it, when, in which call: 'by claude, 4 min ago, in call toolu_01, through mcp'"""
    by = act.by
    nobody = (
        "not known by whom" if act.is_of_unknown else "by hand" if by.get("surface") == "cli" else "by nobody named"
    )
    parts = [f"by {by['actor']}" if by.get("actor") else nobody, age(now - act.at)]
    parts += [f"in {what} {_shown(by[what])}" for what in ("session", "call") if by.get(what)]
    parts += [f"in step {act.step}"] if act.step else []
    parts += [f"through {by['surface']}"] if by.get("surface") else []
    return safe(", ".join(parts))


def _shown(name: str) -> str:
    """Short where it is an id of ours: its beginning is enough for every verb. An agent's own name is told whole."""
    return name[:8] if is_id(name) else name


def state(terminal: Screen, word: str) -> str:
    return terminal.style(word, _STATES.get(word, "red"))


def wrapped(terminal: Screen, line: str, indent: int) -> list[str]:
    """A long line of plain text, on as many lines as it needs; none of it is lost."""
    room = max(30, terminal.width - indent)
    lines = textwrap.wrap(line, room, break_on_hyphens=False, drop_whitespace=True) if terminal.out_is_tty else [line]
    return [lines[0] if lines else "", *(" " * indent + more for more in lines[1:])]


# What it means, of anything; and of a mail that may have left.
_MEANS = {
    HAPPENED: "happened, and stands",
    DID_NOT_HAPPEN: "did not happen: there is nothing to take back",
    UNDONE: "was taken back",
    NOT_UNDONE: "was not taken back: it stands, and may be taken back again",
}


_MEANS_OF_MAIL = {HAPPENED: "was sent", DID_NOT_HAPPEN: "was not sent, and is held as before"}


def meaning(doubted: Act, said: str) -> str:
    """What a person's word says about an act, as it was while it was in doubt."""
    means = _MEANS | _MEANS_OF_MAIL if doubted.did.get("releasing") else _MEANS
    return f"{safe(doubted.summary)} {means[said]}"
