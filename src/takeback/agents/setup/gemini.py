"""Gemini CLI: hooks and MCP servers in settings.json, commands as TOML."""

from __future__ import annotations

from pathlib import Path

from . import commands
from .claude import group
from .targets import Config, Hooks, Ours, Place, Target

_READING = "read_file read_many_files list_directory glob grep_search search_file_content web_fetch google_web_search"
BUT_READING = f"^(?!(?:{_READING.replace(' ', '|')})$)"
EVENTS = {
    "SessionStart": "",
    "BeforeAgent": "",
    "BeforeTool": BUT_READING,
    "Notification": "",
    "AfterTool": BUT_READING,
    "AfterAgent": "",
    "SessionEnd": "",
}
_MILLISECONDS = 60_000


class Gemini:
    name = "gemini"
    title = "Gemini CLI"
    programs = ("gemini",)

    def folder(self, place: Place) -> Path:
        return place.home / ".gemini"

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        mine = self.folder(place) if place.user else place.root / ".gemini"
        events = {
            event: group(ours.hook(self.name, event), matcher, name="takeback", timeout=_MILLISECONDS)
            for event, matcher in EVENTS.items()
        }
        server = {"command": ours.server[0], "args": list(ours.server[1:])}
        config = Config(mine / "settings.json", Hooks(events), ((("mcpServers", "takeback"), server),))
        return [config, *commands.toml(mine / "commands/takeback", ours)]

    def left_to_do(self, place: Place) -> str:
        return "" if place.user else "start gemini in this folder and trust the folder, if it asks"
