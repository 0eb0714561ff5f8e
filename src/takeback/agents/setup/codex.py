"""Codex: hooks in hooks.json, which its user has to trust; MCP servers in config.toml; prompts for the user alone."""

from __future__ import annotations

from pathlib import Path

from . import commands
from .claude import group
from .targets import Block, Config, Hooks, Ours, Place, Target

# Its patterns know no exceptions, so every tool is matched. It ends a SessionEnd hook after 3 s, whatever is asked.
EVENTS = {
    "SessionStart": 60,
    "UserPromptSubmit": 60,
    "PreToolUse": 60,
    "PostToolUse": 60,
    "Stop": 60,
    "SubagentStop": 60,
    "SessionEnd": 3,
}


class Codex:
    name = "codex"
    title = "Codex"
    programs = ("codex",)

    def folder(self, place: Place) -> Path:
        return place.folder("CODEX_HOME", ".codex")

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        mine = self.folder(place) if place.user else place.root / ".codex"
        events = {event: group(ours.hook(self.name, event), timeout=limit) for event, limit in EVENTS.items()}
        made: list[Target] = [Config(mine / "hooks.json", Hooks(events)), server(mine / "config.toml", ours)]
        return [*made, *commands.prompts(mine / "prompts", ours)] if place.user else made

    def left_to_do(self, place: Place) -> str:
        where = "" if place.user else " in this folder, trust the folder"
        return (
            f"start codex{where}, type /hooks, look at takeback's and trust them: "
            "Codex skips hooks that nobody has trusted without a word"
        )


def server(path: Path, ours: Ours) -> Block:
    """The MCP server in Codex's own format."""
    import json

    words = [json.dumps(word, ensure_ascii=False) for word in ours.server]  # its strings are TOML's too
    lines = ("[mcp_servers.takeback]", f"command = {words[0]}", f"args = [{', '.join(words[1:])}]")
    return Block(path, "takeback mcp", lines, _check)


def _check(text: str) -> None:
    import tomllib

    tomllib.loads(text)
