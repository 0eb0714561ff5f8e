"""What docs/agents.md says is proved is what is installed and driven."""

from __future__ import annotations

import re
from pathlib import Path

from agents.drivers import DRIVERS

ROOT = Path(__file__).parents[2]
TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "copilot": "Copilot CLI",
    "qwen": "Qwen Code",
    "opencode": "opencode",
}


def test_the_versions_that_are_named_are_those_that_are_installed():
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    script = (ROOT / "scripts" / "agents").read_text(encoding="utf-8")
    installed = dict(re.findall(r"^    (\w+)\) echo \S+@([\d.]+) ;;$", script, re.MULTILINE))
    named = dict(re.findall(r"^\| ([\w ]+?) \| (\d[\d.]+) \|", page, re.MULTILINE))
    assert {TITLES[name]: version for name, version in installed.items() if name != "node"} == named
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| ([\w ]+?) \| `\w+` \| proved \(([\d.]+)\) \|$", readme, re.MULTILINE)) == named


def test_every_agent_that_is_driven_has_its_tests():
    assert set(DRIVERS) == set(TITLES)
    assert not [
        name for name in DRIVERS if not Path(__file__).with_name("end_to_end").joinpath(f"test_{name}.py").exists()
    ]
