"""protect, unprotect and what doctor says of agents, as a person runs them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import picture

Cli = Any  # of conftest.py
ALL = ("claude", "codex", "gemini", "copilot", "qwen", "opencode", "cursor")


@pytest.fixture
def alone(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A machine without any agent."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (bare.project / "a.txt").write_text("1\n")
    return bare


def timeless(project: Path) -> dict[bytes, Any]:
    return {path: state[:-1] for path, state in picture(project).items()}


def doctor(cli: Cli, agent: str) -> dict[str, Any]:
    found = {check["name"]: check for check in cli("doctor", "--json").json["checks"]}
    return found.get(agent, {})


def test_it_protects_the_folder_and_sets_an_agent_up(alone: Cli) -> None:
    ran = alone.ok("protect", "claude", "--yes")
    settings = json.loads((alone.project / ".claude/settings.local.json").read_text())
    line = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    assert f"exec {sys.executable} " in line and line.endswith(" claude PreToolUse")
    assert "Claude Code" in ran.out
    assert alone.ok("status", "--json").json["changes"] == [], "the first checkpoint has the hooks"
    again = alone.ok("protect", "claude", "--yes")
    assert "nothing was changed" in again.out


def test_without_a_yes_nothing_is_changed(alone: Cli, own_home: Path) -> None:
    before = picture(alone.project)
    ran = alone("protect", "claude")
    assert ran.code == 4 and '+  "hooks"' in ran.out.replace("  +", "+")
    assert picture(alone.project) == before and not (own_home / "takeback").exists()
    ran = alone("protect", "claude", "--json")
    assert ran.code == 4 and ran.json["error"]["code"] == 4
    assert ran.json["agents"][0]["files"][0]["change"] == "new"
    assert picture(alone.project) == before


def test_it_asks_on_a_terminal(alone: Cli) -> None:
    no = alone.typing("protect", "codex", answers=[("[y/N]", "n\n")])
    assert no.code == 4 and not (alone.project / ".codex").exists()
    yes = alone.typing("protect", "codex", answers=[("Protect ", ""), ("[y/N]", "y\n")])
    assert yes.code == 0 and "/hooks" in yes.out, "what only the person can do is said"
    assert "\x1b[32m" in yes.out
    assert (alone.project / ".codex/hooks.json").exists()
    assert "trusted_hash" not in "".join(p.read_text() for p in alone.project.rglob("*") if p.is_file())


def test_those_found_are_set_up(alone: Cli, own_home: Path) -> None:
    ran = alone("protect", "--yes")
    assert ran.code == 2 and "takeback protect claude" in ran.err
    (own_home / ".gemini").mkdir(parents=True)
    program = own_home / "bin/opencode"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    ran = alone.ok("protect", "--yes", "--json", env={"PATH": path})
    assert [agent["agent"] for agent in ran.json["agents"]] == ["gemini", "opencode"]
    assert ran.json["created"] is True


def test_an_unknown_agent_is_named(alone: Cli) -> None:
    ran = alone("protect", "clippy", "--yes")
    assert ran.code == 2 and "clippy" in ran.err and "cursor" in ran.err


def test_unprotect_gives_everything_back(alone: Cli) -> None:
    mine = alone.project / ".gemini/settings.json"
    mine.parent.mkdir()
    mine.write_bytes(b'{\r\n\t// mine\r\n\t"model": {"x": 1.50,},\r\n}')
    before = timeless(alone.project)
    alone.ok("protect", *ALL, "--mcp", "--yes")
    assert (alone.project / ".mcp.json").exists() and b"takeback" in mine.read_bytes()
    assert alone("unprotect").code == 4
    alone.ok("unprotect", "--yes")
    assert timeless(alone.project) == before
    assert "nothing of takeback's" in alone.ok("unprotect").out


def test_for_all_projects_of_a_user(alone: Cli, own_home: Path) -> None:
    own_home.mkdir(exist_ok=True)
    before = picture(alone.project)
    alone.ok("protect", "claude", "qwen", "--user", "--yes")
    assert "takeback" in (own_home / ".claude/settings.json").read_text()
    assert picture(alone.project) == before
    assert doctor(alone, "qwen")["ok"]
    alone.ok("unprotect", "--user", "--yes")
    assert not (own_home / ".claude").exists() and not (own_home / ".qwen").exists()


def test_both_places_at_once_are_told(alone: Cli, own_home: Path) -> None:
    own_home.mkdir(exist_ok=True)
    alone.ok("protect", "codex", "opencode", "--user", "--yes")
    assert (
        "codex, opencode: also set up in your own configuration"
        in alone.ok("protect", "codex", "opencode", "--yes").err
    )
    assert "still set up in your own configuration" in alone.ok("unprotect", "--yes").err


def test_a_file_that_does_not_parse_stops_all_of_it(alone: Cli) -> None:
    bad = alone.project / ".qwen/settings.json"
    bad.parent.mkdir()
    bad.write_text("{")
    before = picture(alone.project)
    ran = alone("protect", *ALL, "--yes")
    assert ran.code == 1 and str(bad) in ran.err
    assert picture(alone.project) == before


def test_an_agent_cannot_unprotect_itself(alone: Cli) -> None:
    alone.ok("protect", "claude", "--yes")
    before = picture(alone.project)
    ran = alone("unprotect", "--yes", env={"CLAUDECODE": "1"})
    assert ran.code == 4 and "Claude Code" in ran.err
    assert picture(alone.project) == before


def test_rolling_back_past_it_leaves_the_hooks(cli: Cli) -> None:
    cli.ok("protect", "claude", "cursor", "--yes")
    (cli.project / "README.md").write_text("changed\n")
    cli.ok("rollback", "start", "--yes")
    assert (cli.project / "README.md").read_text() == "hello\n"
    assert (cli.project / ".claude/settings.local.json").exists()
    assert (cli.project / ".cursor/hooks.json").exists()


def test_secrets_beside_ours_are_not_shown_in_a_pipe(alone: Cli) -> None:
    path = alone.project / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text('{"env": {"API_KEY": "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"}}\n')
    assert "abcdefghijklmnopqrstuvwxyz0123456789" not in alone("protect", "gemini").out


# -- doctor ------------------------------------------------------------------


def test_doctor_on_an_agent_without_hooks(cli: Cli, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert doctor(cli, "claude") == {}
    (own_home / ".claude").mkdir()
    found = doctor(cli, "claude")
    assert found["ok"] and "takeback protect claude" in found["detail"]


def test_doctor_on_one_that_is_set_up_and_fires(cli: Cli) -> None:
    cli.ok("protect", "claude", "--yes")
    assert "installed" in doctor(cli, "claude")["detail"] and "no event" in doctor(cli, "claude")["detail"]
    payload = {
        "session_id": "s",
        "transcript_path": "t",
        "cwd": str(cli.project),
        "hook_event_name": "UserPromptSubmit",
    }
    _hook(cli, "claude", "UserPromptSubmit", {**payload, "prompt": "go"})
    found = doctor(cli, "claude")
    assert found["ok"] and "firing, last event just now" in found["detail"]


def _hook(cli: Cli, agent: str, event: str, payload: dict[str, Any]) -> None:
    import subprocess

    settings = json.loads((cli.project / ".claude/settings.local.json").read_text())
    line = settings["hooks"][event][0]["hooks"][0]["command"]
    done = subprocess.run(
        line, shell=True, input=json.dumps(payload).encode(), cwd=cli.project, timeout=60, check=False
    )
    assert done.returncode == 0


def test_doctor_on_a_stale_line(cli: Cli) -> None:
    cli.ok("protect", "gemini", "opencode", "--yes")
    for path in (".gemini/settings.json", ".opencode/plugins/takeback.js"):
        file = cli.project / path
        file.write_text(file.read_text().replace(sys.executable, "/gone/python3"))
    for agent in ("gemini", "opencode"):
        found = doctor(cli, agent)
        assert not found["ok"] and "stale" in found["detail"] and "/gone/python3" in found["detail"]
        assert f"takeback protect {agent}" in found["fix"]
    cli.ok("protect", "gemini", "opencode", "--yes")
    assert doctor(cli, "gemini")["ok"] and doctor(cli, "opencode")["ok"]


def test_doctor_on_hooks_left_behind(alone: Cli, store_folder: Callable[[], Path]) -> None:
    alone.ok("protect", "gemini", "--yes")
    for path in sorted(store_folder().rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    found = doctor(alone, "gemini")
    assert not found["ok"] and "left behind" in found["detail"] and "takeback unprotect gemini" in found["fix"]


def test_doctor_on_hooks_that_nobody_trusted(cli: Cli, own_home: Path) -> None:
    cli.ok("protect", "codex", "--yes")
    found = doctor(cli, "codex")
    assert not found["ok"] and "not trusted" in found["detail"] and "/hooks" in found["fix"]
    hooks = cli.project / ".codex/hooks.json"
    events = json.loads(hooks.read_text())["hooks"]
    told = [f'[projects."{cli.project}"]\ntrust_level = "trusted"\n']
    told += [f'[hooks.state."{hooks}:{event.lower()}:0:0"]\ntrusted_hash = "sha256:x"\n' for event in events]
    (own_home / ".codex").mkdir()
    config = own_home / ".codex/config.toml"
    config.write_text("".join(told[:-1]))
    assert "not trusted: 6 of 7" in doctor(cli, "codex")["detail"]
    config.write_text("".join(told))
    assert doctor(cli, "codex")["ok"] and ", trusted" in doctor(cli, "codex")["detail"]
