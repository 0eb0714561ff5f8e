"""opencode: a plugin in JavaScript that hands its events to the hook, commands, and MCP servers in opencode.json."""

from __future__ import annotations

import json
from pathlib import Path

from . import commands
from .targets import MARK, Config, Ours, Place, Target, Whole, seal


class Opencode:
    name = "opencode"
    title = "opencode"
    programs = ("opencode",)

    def folder(self, place: Place) -> Path:
        return place.folder("XDG_CONFIG_HOME", ".config") / "opencode"

    def targets(self, place: Place, ours: Ours) -> list[Target]:
        mine = self.folder(place) if place.user else place.root / ".opencode"
        above = mine if place.user else place.root
        server = {"type": "local", "command": list(ours.server), "enabled": True}
        config = above / "opencode.jsonc"
        return [
            Whole(mine / "plugins/takeback.js", plugin(ours)),
            Config(config if config.exists() else above / "opencode.json", members=((("mcp", "takeback"), server),)),
            *commands.opencode(mine / "commands/takeback", ours),
        ]

    def left_to_do(self, place: Place) -> str:
        return ""


def plugin(ours: Ours) -> str:
    """The plugin's text. It starts the hook through the shell, like every other agent does."""
    source = (Path(__file__).parent / "opencode.js").read_text(encoding="utf-8")
    line = json.dumps(ours.hook("opencode", ""), ensure_ascii=False)
    return seal(f"// {MARK}\n" + source.replace("HOOK_COMMAND", line))
