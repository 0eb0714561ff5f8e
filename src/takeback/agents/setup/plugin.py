"""Claude Code's plugin, generated: `python -m takeback.agents.setup.plugin` writes agents/plugin anew.

It finds takeback on PATH. Where it is not there, the hooks say nothing and the agent goes on.
"""

from __future__ import annotations

import json
from pathlib import Path

from . import claude, commands

FOLDER = Path(__file__).parent.parent / "plugin"
_ABOUT = "Undo for AI agents: whatever Claude Code does is captured per call and turn, and can be taken back."


def files(version: str) -> dict[str, str]:
    """Path → text."""
    manifest = {
        "name": "takeback",
        "version": version,
        "description": _ABOUT,
        "author": {"name": "The takeback authors"},
        "license": "MIT",
        "keywords": ["undo", "rollback", "checkpoint"],
    }
    hooks = {event: [claude.group(_line(event), matcher, timeout=60)] for event, matcher in claude.EVENTS.items()}
    server = {"mcpServers": {"takeback": {"command": "takeback", "args": ["mcp"]}}}
    made = {
        ".claude-plugin/plugin.json": _json(manifest),
        "hooks/hooks.json": _json({"description": _ABOUT, "hooks": hooks}),
        ".mcp.json": _json(server),
    }
    for command in commands.COMMANDS:
        text = commands.markdown_text(command, "takeback", "claude", mark="")
        made[f"commands/{command.name}.md"] = text
    return made


def _line(event: str) -> str:
    return f"if command -v takeback >/dev/null; then exec takeback hook claude {event}; fi"


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def write(folder: Path, version: str) -> None:
    for name, text in files(version).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    from takeback import __version__

    write(FOLDER, __version__)
