"""Qwen Code: settings like Gemini CLI's, with events like Claude Code's."""

from __future__ import annotations

from pathlib import Path

from . import commands
from .claude import group
from .targets import Config, Hooks, Ours, Place, Target

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "SessionEnd",
)


class Qwen:
    name = "qwen"
    title = "Qwen Code"
    programs = ("qwen",)

    def folder(self, place: Place) -> Path:
        return place.home / ".qwen"

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        mine = self.folder(place) if place.user else place.root / ".qwen"
        # No timeout: some versions count it in seconds, others in milliseconds; all of them wait a minute by default.
        events = {event: group(ours.hook(self.name, event), name="takeback") for event in EVENTS}
        server = {"command": ours.server[0], "args": list(ours.server[1:])}
        config = Config(mine / "settings.json", Hooks(events), ((("mcpServers", "takeback"), server),))
        return [config, *commands.markdown(mine / "commands/takeback", ours, "qwen")]

    def left_to_do(self, place: Place) -> str:
        return ""
