"""Claude Code: hooks in its settings, slash commands in its commands folder, MCP servers in .mcp.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import commands
from .targets import Config, Hooks, Ours, Place, Target

# Tools that only read need no hook. A pattern of JavaScript: whatever is not one of these is matched, newer tools too.
BUT_READING = "^(?!(?:Read|Glob|Grep|LS|NotebookRead|WebFetch|WebSearch|TodoWrite)$)"
EVENTS = {
    "SessionStart": "",
    "UserPromptSubmit": "",
    "PreToolUse": BUT_READING,
    "PermissionRequest": BUT_READING,
    "PostToolUse": BUT_READING,
    "PostToolUseFailure": BUT_READING,
    "Stop": "",
    "StopFailure": "",
    "SubagentStop": "",
    "SessionEnd": "",
}
_SECONDS = 60


def group(line: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    """One of ours as Claude Code and those that follow it have it."""
    handler = {"type": "command", "command": line, **more}
    return {**({"matcher": matcher} if matcher else {}), "hooks": [handler]}


class Claude:
    name = "claude"
    title = "Claude Code"
    programs = ("claude",)

    def folder(self, place: Place) -> Path:
        return place.folder("CLAUDE_CONFIG_DIR", ".claude")

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        mine = self.folder(place) if place.user else place.root / ".claude"
        events = {
            event: group(ours.hook(self.name, event), matcher, timeout=_SECONDS) for event, matcher in EVENTS.items()
        }
        settings = mine / ("settings.json" if place.user else "settings.local.json")
        server = {"type": "stdio", "command": ours.server[0], "args": list(ours.server[1:])}
        return [
            Config(settings, Hooks(events)),
            Config(self._servers(place), members=((("mcpServers", "takeback"), server),)),
            *commands.markdown(mine / "commands/takeback", ours, "claude"),
        ]

    def _servers(self, place: Place) -> Path:
        if not place.user:
            return place.root / ".mcp.json"
        return place.folder("CLAUDE_CONFIG_DIR") / ".claude.json"

    def left_to_do(self, place: Place) -> str:
        return "" if place.user else "start claude in this folder and trust the folder, if it asks"
