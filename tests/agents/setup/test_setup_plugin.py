"""Claude Code's plugin is what the program would write, and so are the versions in it."""

from __future__ import annotations

import json
from pathlib import Path

import takeback
from takeback.agents.setup import plugin

ROOT = Path(__file__).parents[3]


def test_the_plugin_is_generated() -> None:
    found = {str(p.relative_to(plugin.FOLDER)): p.read_text("utf-8") for p in plugin.FOLDER.rglob("*") if p.is_file()}
    hint = "python -m takeback.agents.setup.plugin"
    assert found == plugin.files(takeback.__version__), hint


def test_the_marketplace_points_to_it() -> None:
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text("utf-8"))
    (entry,) = market["plugins"]
    assert ROOT / entry["source"] == plugin.FOLDER and (plugin.FOLDER / ".claude-plugin/plugin.json").is_file()
    assert entry["name"] == json.loads(plugin.files("1")[".claude-plugin/plugin.json"])["name"] == "takeback"


def test_it_has_the_five_commands() -> None:
    names = {name for name in plugin.files("1") if name.startswith("commands/")}
    assert names == {f"commands/{name}.md" for name in ("undo", "redo", "rollback", "log", "checkpoint")}
