"""Commands that a line names for what to do next: each does what the line says, and nothing more."""

from __future__ import annotations

import posixpath
import shlex
from typing import TYPE_CHECKING

from takeback.journal import names
from takeback.model.effects import STATES, domain_of, text

from .text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from takeback.journal.history import History
    from takeback.model.effects import Plan, Request, Unit

    Typed = Callable[[bytes], str]  # a path below the root → as it is typed


def from_root(path: bytes) -> str:
    return typed(path)


def typed(path: bytes, below: str = "") -> str:
    """A path of the project as one word of a command that is typed in the folder `below` the root."""
    name = posixpath.relpath("/" + text(path), "/" + below)
    name = name if name.startswith("../") else f"./{name}"
    if safe(name) == name:
        return shlex.quote(name)
    shown = {ord("'"): "\\'", ord("\\"): "\\\\"}  # in the quotes that write bytes out, as bash and zsh have them
    bytes_ = name.encode("utf-8", "surrogateescape")
    return "$'" + "".join(shown.get(b, chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in bytes_) + "'"


def revert(history: History, units: Collection[Unit], word: Typed = from_root) -> tuple[str, bool]:
    """`takeback revert` for this work, and whether it takes more, as it does of what is only taken whole: of what was
    done to git and to threads, and of take-backs."""
    ids: dict[str, None] = {}
    rows: set[int] = set()
    narrow = all(domain_of(unit.path) == "files" for unit in units)
    for seq in sorted({unit.seq for unit in units if unit.seq in history.by_seq}, reverse=True):
        effect = history.by_seq[seq]
        ids[(effect.takeback or effect.id)[:8]] = None
        rows.update(history.takebacks[effect.takeback].rows if effect.takeback else (seq,))
        narrow = narrow and not effect.takeback and effect.domain in STATES
    paths = {unit.path for unit in units}
    more = any(unit in history.live and unit.path not in paths for unit in history.units(rows))
    command = " ".join(["takeback revert", *ids])
    if more and narrow:
        return " ".join([command, *map(word, sorted(paths))]), False
    return command, more


def reverted(request: Request, history: History) -> list[str]:
    """What was named to a revert: turns, calls, and effects that are of none of these."""
    turns = [history.agent_turns[turn].id if turn in history.agent_turns else turn.number for turn in request.turns]
    theirs = {row.id for row in history.effects if row.turns & set(request.turns)}
    theirs.update(id for call in request.calls for id in history.rows_of_call(call) or ())
    return [id[:8] for id in (*turns, *request.calls, *(id for id in request.rows if id not in theirs))]


def with_what_is_asked(plan: Plan, history: History, word: Typed = from_root) -> str:
    """The command that takes what a plan asked about, too."""
    request = plan.request
    if request.verb != "rollback" or request.actors or request.turns or request.threads or request.own:
        units = {unit for found in plan.asks.values() for unit in found}
        return revert(history, units, word)[0]
    words = ["takeback rollback", going_to(request, history), *flags(request._replace(everything=True))]
    return " ".join(filter(None, words))


def flags(request: Request) -> list[str]:
    """How it was asked for, in options."""
    everything = request.everything or (request.verb == "rollback" and bool(request.also))  # an undo asks once more
    given = {"--all": everything, "--merge": request.merge, "--markers": request.markers}
    given |= {"--force": request.force, "--with-state": request.state}
    named = [word for actor in request.actors or () for word in ("--actor", shlex.quote(actor))]
    scopes = (("--only", request.only), ("--except", request.without))
    scope = [word for name, domains in scopes if domains for word in (name, ",".join(domains))]
    return [*(flag for flag in given if given[flag] and _has(request.verb, flag)), *named, *scope]


def _has(verb: str, flag: str) -> bool:
    """Whether a verb takes an option: what is named goes, whoever did it."""
    return not (flag == "--all" and verb in ("revert", "restore"))


def going_to(request: Request, history: History) -> str:
    """What a rollback was to: a checkpoint, or what it went to just before of."""
    return next((found.id[:8] for found in names.everything(history) if found.seq == request.since), "")
