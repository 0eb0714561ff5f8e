"""hook: what an agent's configuration runs at each of its events."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from takeback.surfaces.hook import Asked, answer
from takeback.surfaces.resident import client, starting
from takeback.system import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser


def add(parser: Parser) -> None:
    parser.synopsis = "AGENT [EVENT]"
    parser.about = (
        "What takeback protect writes into an agent's configuration: reads one event from standard input\n"
        "and answers it, as that agent wants to be answered. Captures what is there before a call, and\n"
        "journals what the call did. Exits 0, or 2 where the call is denied; prints nothing or one JSON\n"
        "object. What went wrong is in hooks.jsonl in takeback's home, and takeback status tells of it."
    )
    parser.takes("AGENT", "agent", help="claude, codex, gemini, copilot, qwen, opencode or cursor")
    parser.takes("EVENT", "event", nargs="?", default="", help="its name, for agents that do not say it themselves")
    parser.examples = [
        ("takeback hook claude < event.json", "answer one event, as Claude Code would ask"),
        ("takeback hook copilot preToolUse < event.json", "with the name of the event"),
    ]


def run(context: Context, args: Namespace) -> int:
    return respond([args.agent, args.event], {**context.environ, **({"TAKEBACK": "off"} if context.off else {})})


def respond(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Answers the event on standard input. An agent takes every code but 0 and 2 for its own business, and 2 for a no:
    so nothing else comes out of this, whatever happens."""
    try:
        agent, event = (*words, "", "")[:2]
        payload, here = sys.stdin.buffer.read(), _here(environ)
        if (answered := _by_resident(words, payload, here, environ)) is not None:
            return _said(*answered)
        above = processes.above_shells(os.getpid())
        at = processes.hook_began(os.getpid())
        reply = answer(Asked(agent, event, payload, here, environ, *above, at))
        out = reply.out.encode("utf-8", "replace") + b"\n" if reply.out else b""
        return _said(reply.code, out, reply.err.encode("utf-8", "replace"))
    except Exception:
        return 0


def _said(code: int, out: bytes, err: bytes) -> int:
    for stream, data in ((sys.stderr, err), (sys.stdout, out)):
        if data:
            stream.buffer.write(data)
            stream.buffer.flush()
    return code


def _by_resident(
    words: Sequence[str], payload: bytes, here: str, environ: Mapping[str, str]
) -> tuple[int, bytes, bytes] | None:
    """What the resident process answers, which is faster, and sees what happens between two events; None where there is
    none. Then it is started for the next one."""
    off = (environ.get("TAKEBACK", "").lower(), environ.get("TAKEBACK_RESIDENT", "").lower())
    if os.name != "posix" or off[0] == "off" or off[1] in ("off", "0", "false", "no"):
        return None
    known = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    place, asked = client.folder(known), client.request(words, payload, os.fsencode(here), known)
    answered = client.ask(place, asked) if client.is_private(place) else None
    if answered is None:
        starting.start(environ, here)
    return answered


def _here(environ: Mapping[str, str]) -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder is gone
        return environ.get("PWD", "")
