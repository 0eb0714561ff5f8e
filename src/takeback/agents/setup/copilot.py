"""Copilot CLI: every JSON file in its hooks folder counts, so ours is a file of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .targets import Config, Hooks, Ours, Place, Target

EVENTS = (
    "sessionStart",
    "userPromptSubmitted",
    "preToolUse",
    "notification",
    "postToolUse",
    "postToolUseFailure",
    "agentStop",
    "subagentStop",
    "sessionEnd",
)
_SECONDS = 60


class Copilot:
    name = "copilot"
    title = "Copilot CLI"
    programs = ("copilot",)

    def folder(self, place: Place) -> Path:
        return place.folder("COPILOT_HOME", ".copilot")

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        mine = self.folder(place) if place.user else place.root / ".github"
        events = {event: _handler(ours.hook(self.name, event)) for event in EVENTS}
        server = {"type": "local", "command": ours.server[0], "args": list(ours.server[1:]), "tools": ["*"]}
        servers = mine / ("mcp-config.json" if place.user else "mcp.json")
        return [
            Config(mine / "hooks/takeback.json", Hooks(events, nested=False), needed=((("version",), 1),)),
            Config(servers, members=((("mcpServers", "takeback"), server),)),
        ]

    def left_to_do(self, place: Place) -> str:
        return "" if place.user else "start copilot in this folder and trust the folder, if it asks"


def _handler(line: str) -> dict[str, Any]:
    shell = {"powershell": f"& {line}"} if os.name == "nt" else {"bash": line}
    return {"type": "command", **shell, "timeoutSec": _SECONDS}
