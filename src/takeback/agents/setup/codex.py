"""Codex: hooks in hooks.json, which its user has to trust; MCP servers in config.toml; prompts for the user alone."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import commands, lines
from .claude import group
from .targets import Block, Config, Hooks, Ours, Place, Target

# Its patterns know no exceptions, so every tool is matched. It ends a SessionEnd hook after 3 s, whatever is asked.
EVENTS = {
    "SessionStart": 60,
    "UserPromptSubmit": 60,
    "PreToolUse": 60,
    "PermissionRequest": 60,
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
    words = [json.dumps(word, ensure_ascii=False) for word in ours.server]  # its strings are TOML's too
    lines = ("[mcp_servers.takeback]", f"command = {words[0]}", f"args = [{', '.join(words[1:])}]")
    return Block(path, "takeback mcp", lines, _check, _taken)


def _check(text: str) -> None:
    tomllib.loads(text)


def _taken(text: str) -> str:
    """What `codex mcp add takeback` has written is as good as ours; servers in one line cannot be added to below it."""
    servers = tomllib.loads(text).get("mcp_servers")
    if isinstance(servers, dict) and "takeback" in servers:
        return "mcp_servers.takeback is already there, and stays as it is"
    if servers is not None and re.search(r"^[ \t]*mcp_servers[ \t]*=", text, re.MULTILINE):
        return "mcp_servers is written in one line, and stays as it is: add takeback there yourself (docs/mcp.md)"
    return ""


def trust(path: str, value: Mapping[str, Any]) -> dict[str, str]:
    """What Codex notes of our hooks in a file once they are trusted: where each stands → a hash of what it is. A hook
    that has another one by now is skipped until its user has looked at it again."""
    found = {}
    for event, groups in value["hooks"].items():
        label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, among in enumerate(groups if isinstance(groups, list) else ()):
            handlers = among.get("hooks") if isinstance(among, dict) else ()
            for at, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if not isinstance(handler, dict) or not lines.is_ours(handler.get("command")):
                    continue
                one = {"type": "command", "command": handler["command"], "timeout": handler.get("timeout", 600)}
                is_it = {"event_name": label, "hooks": [{**one, "async": handler.get("async", False)}]}
                packed = json.dumps(is_it, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
                found[f"{path}:{label}:{number}:{at}"] = f"sha256:{hashlib.sha256(packed.encode()).hexdigest()}"
    return found
