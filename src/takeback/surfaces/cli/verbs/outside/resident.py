"""resident: the process that hooks leave behind, looked at, started and ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from takeback.config import settings
from takeback.errors import TakebackError, UsageError
from takeback.surfaces.resident import starting
from takeback.surfaces.wording.text import counted, safe
from takeback.text.units import format_duration

if TYPE_CHECKING:
    from typing import Any

    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser

_VERBS = ("status", "start", "stop")


def add(parser: Parser) -> None:
    parser.synopsis = "[status | start | stop]"
    parser.about = (
        "The first hook of an agent leaves a process behind that keeps the workspace open and watches\n"
        "it, so that the next hooks are fast. It serves only you, ends by itself when no hook has come\n"
        "for a while, and nothing is lost when it is killed: without it hooks are only slower.\n"
        "hooks.resident = false in your configuration, or TAKEBACK_RESIDENT=off, does without it."
    )
    parser.takes("WHAT", "what", nargs="?", default="status", help="status (also without a word), start or stop")
    parser.examples = [
        ("takeback resident", "whether it runs, and what it watches"),
        ("takeback resident stop", "end it; the next hook starts another"),
    ]


def run(context: Context, args: Namespace) -> int:
    if args.what not in _VERBS:
        raise UsageError(f"resident knows no {safe(args.what)!r}", f"say one of: {', '.join(_VERBS)}")
    found: dict[str, Any] = {}
    if args.what == "status":
        found = starting.status()
    elif args.what == "start":
        found = _started(context)
    else:
        return _stop(context)
    if context.json:
        context.terminal.json(found)
    else:
        _tell(context, found)
    return 0


def _stop(context: Context) -> int:
    ran = starting.status()
    if not starting.end():
        raise TakebackError("the resident process does not end", "it is at work on a hook; try again")
    if context.json:
        context.terminal.json({"stopped": ran["pid"] if ran else None})
    elif ran:
        context.terminal.say(f"ended the resident process {ran['pid']}; the next hook starts another")
    else:
        context.terminal.say("no resident process ran; the next hook starts one")
    return 0


def _started(context: Context) -> dict[str, Any]:
    """One that began before the port was set, or was free, does not listen there, so another takes its place."""
    found = starting.ensure(context.environ, str(context.cwd))
    wanted = settings.load(None, context.environ).http_port
    if found and _answers_on(found) != wanted and starting.end():
        found = starting.ensure(context.environ, str(context.cwd))
    if not found:
        raise TakebackError("no resident process could be started", _why(context))
    return found


def _answers_on(found: dict[str, Any]) -> int:
    http = found.get("http") or {}
    return http["port"] if "token" in http else 0


def _why(context: Context) -> str:
    if not starting.is_wanted(context.environ):
        return "hooks.resident or TAKEBACK_RESIDENT switches it off, or this is part of a takeback run"
    return "its log may say why: log in the folder takeback of your runtime folder"


def _tell(context: Context, found: dict[str, Any]) -> None:
    if not found:
        context.terminal.say("no resident process runs; the next hook starts one")
        return
    age = format_duration(max(0, int(time.time() - found["began"])))
    context.terminal.say(f"process {found['pid']}, takeback {safe(found['version'])}, since {age}: "
                         f"{counted(found['calls'], 'call')}")  # fmt: skip
    if http := found.get("http"):
        where = f"127.0.0.1:{http['port']}"
        if "token" in http:
            context.terminal.say(f"  HTTP hooks: answered on {where}; the token is in {safe(http['token'])}")
        else:
            context.terminal.say(f"  HTTP hooks: not answered, {where} cannot be had: {safe(http['failed'])}")
    for workspace in found["workspaces"]:
        how = f"watched by {workspace['watched']}" if workspace["watched"] else "not watched: each look is a whole one"
        context.terminal.say(f"  {safe(workspace['root'])}, {how}")
