"""Cursor: hooks.json with a version, MCP servers in mcp.json, commands as plain prompts."""

from __future__ import annotations

from pathlib import Path

from . import commands
from .targets import Config, Hooks, Ours, Place, Target

# The general events alone: those of shells, MCP servers and edits would tell of the same calls once more.
EVENTS = (
    "sessionStart",
    "beforeSubmitPrompt",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "stop",
    "subagentStop",
    "sessionEnd",
)
_SECONDS = 60


class Cursor:
    name = "cursor"
    title = "Cursor"
    programs = ("cursor", "cursor-agent")

    def folder(self, place: Place) -> Path:
        return place.home / ".cursor"

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        mine = self.folder(place) if place.user else place.root / ".cursor"
        events = {event: {"command": ours.hook(self.name, event), "timeout": _SECONDS} for event in EVENTS}
        server = {"command": ours.server[0], "args": list(ours.server[1:])}
        return [
            Config(mine / "hooks.json", Hooks(events, nested=False), needed=((("version",), 1),)),
            Config(mine / "mcp.json", members=((("mcpServers", "takeback"), server),)),
            *commands.plain(mine / "commands", ours),
        ]

    def left_to_do(self, place: Place) -> str:
        return ""
