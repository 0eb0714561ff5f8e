"""What real agents sent to their hooks, with a project's path filled in, and how an agent reads and answers it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from takeback import agents
from takeback.agents.events import Answer, Event
from takeback.journal.brackets import Caller

SAMPLES = Path(__file__).with_name("samples")
WITH_SAMPLES = sorted(path.stem for path in SAMPLES.glob("*.json"))


class Sent(NamedTuple):
    event: str
    payload: dict[str, Any]


def sent(agent: str, project: Path | str = "/project") -> list[Sent]:
    """Every payload of an agent, in order."""
    text = (SAMPLES / f"{agent}.json").read_text()
    for name, value in {"PROJECT": str(project), "HOME": "/home/somebody", "LAB": "/lab"}.items():
        text = text.replace("${" + name + "}", value)
    return [Sent(each["event"], each["payload"]) for each in json.loads(text)["payloads"]]


def read(agent: str, payload: dict[str, Any], event: str = "") -> Event:
    return agents.load(agent).parse(payload, event, Caller(agent, "", pid=7, started=9))


def told(agent: str, project: str = "/project") -> list[tuple[Any, ...]]:
    """(kind, tool, what it does, paths or command, failed) of every sample that is about us."""
    found = []
    for each in sent(agent, project):
        event = read(agent, each.payload, each.event)
        if event.kind not in ("other", "strange"):
            named = event.command or " ".join(event.paths)
            found.append((event.kind, event.tool, event.does if event.tool else "", named, event.failed))
    return found


def answered(agent: str, event: Event, answer: Answer) -> dict[str, Any]:
    """The one JSON object of an answer; an empty one where nothing is printed."""
    reply = agents.load(agent).render(event, answer)
    assert reply.code in (0, 2)
    assert not reply.err or reply.code == 2
    body = json.loads(reply.out) if reply.out else {}
    assert isinstance(body, dict)
    return body
