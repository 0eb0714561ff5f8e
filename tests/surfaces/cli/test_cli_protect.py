"""protect, unprotect and what doctor says of agents, as a person runs them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import picture
from takeback.agents.hook_problems import FAILED, Record, append
from takeback.config.agents_own_files import HOOKS

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
    no = alone.typing("protect", "codex", answers=[("[y/N", "n\n")])
    assert no.code == 4 and not (alone.project / ".codex").exists()
    yes = alone.typing("protect", "codex", answers=[("Protect ", ""), ("[y/N", "y\n")])
    assert yes.code == 0 and "/hooks" in yes.out, "what only the person can do is said"
    assert "\x1b[32m" in yes.out
    assert (alone.project / ".codex/hooks.json").exists()
    assert "trusted_hash" not in "".join(p.read_text() for p in alone.project.rglob("*") if p.is_file())


def test_on_a_terminal_it_says_what_is_put_in_and_shows_the_diff_when_asked(alone: Cli) -> None:
    mine = alone.project / ".mcp.json"
    mine.write_text('{"mcpServers": {"other": {"command": "x"}}}')
    answers = [("[y/N/d diff]", "d\n"), ("[y/N/d diff]", "n\n")]
    ran = alone.typing("protect", "claude", "--mcp", answers=answers, env={"COLUMNS": "80"})
    short, long = ran.out.split("[y/N/d diff]", 1)
    plain = " ".join(short.split())
    assert ran.code == 4
    for path in (".claude/settings.local.json", ".mcp.json", ".claude/commands/takeback/undo.md"):
        assert path in plain, "every file that changes is named"
    assert (
        "+ 10 hooks: SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest" in plain and "SessionEnd" in plain
    )
    assert "+ mcpServers.takeback = {" in plain and "other" not in plain
    assert plain.count("start.py AGENT EVENT") == 1 and short.count("exec ") == 1
    assert "@@" not in short and "@@" in long and long.count("start.py claude ") == 10
    alone.ok("protect", "claude", "--mcp", "--yes")
    gone = alone.typing("unprotect", answers=[("[y/N/d diff]", "y\n")])
    assert (
        gone.code == 0 and "− 10 hooks of takeback's: SessionStart" in gone.out and "− mcpServers.takeback" in gone.out
    )


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
    told = alone.ok("unprotect", "--yes").out.splitlines()[-1]
    assert told.startswith("took takeback's hooks out of ") and ".gemini/settings.json" in told and ".mcp.json" in told
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


def test_a_server_of_that_name_stays_and_is_told(alone: Cli) -> None:
    config = alone.project / ".codex/config.toml"
    config.parent.mkdir()
    config.write_text('[mcp_servers.takeback]\ncommand = "takeback"\nargs = ["mcp"]\n')
    servers = alone.project / ".mcp.json"
    servers.write_text('{"mcpServers": {"takeback": {"command": "takeback", "args": ["mcp"]}}}')
    before = timeless(alone.project)
    ran = alone.ok("protect", "codex", "claude", "--mcp", "--yes")
    assert f"{config}: mcp_servers.takeback is already there" in ran.out
    assert f"{servers}: mcpServers.takeback is already there" in ran.out
    alone.ok("unprotect", "--yes")
    assert timeless(alone.project) == before


def test_a_file_in_the_place_of_a_folder(alone: Cli) -> None:
    (alone.project / ".claude").write_text("mine\n")
    before = picture(alone.project)
    ran = alone("protect", "claude", "--yes")
    assert ran.code == 1 and f"{alone.project}/.claude is a file, so " in ran.err and "permissions" not in ran.err
    assert "nothing of takeback's" in alone.ok("unprotect").out
    assert picture(alone.project) == before


def test_several_at_once_are_undone_exactly(alone: Cli) -> None:
    """Each notes what it put where; none forgets what another noted."""
    from concurrent.futures import ThreadPoolExecutor

    alone.ok("init")
    mine = alone.project / ".gemini/settings.json"
    mine.parent.mkdir()
    mine.write_text('{\n    "a": 1}')
    before = timeless(alone.project)
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(lambda _: alone("protect", "gemini", "claude", "--mcp", "--yes"), range(4)))
    assert [each.code for each in ran] == [0] * 4, [each.err for each in ran]
    assert mine.read_text().count("BeforeTool") == 2, "the event, and one line that names it"
    alone.ok("unprotect", "--yes")
    assert timeless(alone.project) == before


@pytest.mark.parametrize("agent", ALL)
def test_a_rollback_past_unprotect_leaves_no_empty_folders(cli: Cli, agent: str) -> None:
    cli.ok("protect", agent, "--yes")
    cli.ok("checkpoint", "protected")
    cli.ok("unprotect", agent, "--yes")
    (cli.project / "a.txt").write_text("changed\n")
    before = {path for path in cli.project.rglob("*") if path.name != "a.txt"}
    ran = cli.ok("rollback", "protected", "--yes")
    assert "took back 1 file: a.txt" in ran.out and "an agent's own" in ran.out
    assert {path for path in cli.project.rglob("*") if path.name != "a.txt"} == before
    assert "nothing to undo" in cli.ok("undo", "--yes").out


def test_a_folder_with_more_than_an_agents_own_comes_back_without_that(cli: Cli) -> None:
    mine = cli.project / ".claude/agents/reviewer.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    cli.ok("protect", "claude", "--yes")
    cli.ok("checkpoint", "protected")
    shutil.rmtree(cli.project / ".claude")
    cli.ok("rollback", "protected", "--yes")
    assert [path for path in (cli.project / ".claude").rglob("*")] == [mine.parent, mine]


# -- doctor ------------------------------------------------------------------


@pytest.mark.parametrize("agent,path", [("claude", ".claude/settings.local.json"), ("codex", ".codex/hooks.json")])
def test_doctor_on_a_file_that_does_not_parse_any_more(cli: Cli, agent: str, path: str) -> None:
    cli.ok("protect", agent, "--yes")
    file = cli.project / path
    file.write_text(file.read_text() + "}")
    for _ in range(2):
        found = doctor(cli, agent)
        assert not found["ok"] and str(file) in found["detail"] and "does not parse" in found["detail"]
        assert "mend" in found["fix"] and f"takeback protect {agent}" in found["fix"]
        assert cli("doctor").code != 0
        file.write_text('{"model": "x"')  # the hooks themselves are gone as well: we still know of them


def test_doctor_on_an_agent_without_hooks(cli: Cli, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert doctor(cli, "claude") == {}
    (own_home / ".claude").mkdir()
    found = doctor(cli, "claude")
    assert found["ok"] and "takeback protect claude" in found["detail"]


def test_doctor_goes_on_where_the_settings_are_wrong(cli: Cli) -> None:
    cli.ok("protect", "gemini", "--yes")
    ran = cli("doctor", "--json", env={"TAKEBACK_HOME": "nowhere"})
    checks = {check["name"]: check for check in ran.json["checks"]}
    assert not checks["settings"]["ok"] and "gemini" in checks


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


def test_doctor_on_one_that_fails(cli: Cli) -> None:
    cli.ok("protect", "claude", "--yes")
    record = Record(time.time(), FAILED, "claude", "", "Expecting value: line 1 column 1")
    append(Path(os.environ["TAKEBACK_HOME"]), record)
    found = doctor(cli, "claude")
    assert not found["ok"] and found["fix"]
    assert found["detail"] == "failing: an event without a name, just now: Expecting value: line 1 column 1"


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


@pytest.mark.parametrize("agent", ALL)
def test_hooks_that_are_gone_are_told_of(cli: Cli, agent: str) -> None:
    cli.ok("protect", agent, "--yes")
    assert cli.ok("status", "--json").json["hooks_gone"] == []
    (cli.project / HOOKS[agent]).unlink()
    assert f"the hooks of {agent} are gone with {HOOKS[agent]}" in cli.ok("status").out
    assert cli.ok("status", "--json").json["hooks_gone"] == [agent]
    found = doctor(cli, agent)
    assert not found["ok"] and "gone" in found["detail"]
    assert found["fix"] == f"takeback protect {agent}; or takeback unprotect {agent}"
    cli.ok("unprotect", agent, "--yes")
    assert cli.ok("status", "--json").json["hooks_gone"] == []
    assert doctor(cli, agent).get("ok", True)


@pytest.mark.parametrize("agent", ALL)
def test_hooks_whose_lines_alone_are_gone_are_told_of_by_both(cli: Cli, agent: str) -> None:
    cli.ok("protect", agent, "--yes")
    (cli.project / HOOKS[agent]).write_text("{}\n")
    told = f"the hooks of {agent} are gone from {HOOKS[agent]}: what it does next is not captured"
    assert told in cli.ok("status").out
    assert cli.ok("status", "--json").json["hooks_gone"] == [agent]
    assert "gone" in doctor(cli, agent)["detail"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no fifos on this system")
def test_a_pipe_in_the_place_of_hooks_keeps_nobody_waiting(cli: Cli) -> None:
    cli.ok("protect", "claude", "--yes")
    file = cli.project / HOOKS["claude"]
    file.unlink()
    os.mkfifo(file)
    assert cli.ok("status", "--json").json["hooks_gone"] == ["claude"]


def test_hooks_in_an_edited_file_are_still_there(cli: Cli) -> None:
    cli.ok("protect", "claude", "--yes")
    file = cli.project / HOOKS["claude"]
    file.write_text(json.dumps({"permissions": {"allow": ["Bash(ls)"]}, **json.loads(file.read_text())}))
    assert cli.ok("status", "--json").json["hooks_gone"] == []
    assert "installed" in doctor(cli, "claude")["detail"]


def test_hooks_that_the_user_has_too_are_not_told_as_gone(cli: Cli, own_home: Path) -> None:
    cli.ok("protect", "claude", "--yes")
    cli.ok("protect", "claude", "--user", "--yes")
    (cli.project / HOOKS["claude"]).unlink()
    assert doctor(cli, "claude")["ok"]
    assert cli.ok("status", "--json").json["hooks_gone"] == []


def test_hooks_that_cannot_be_read_any_more_are_told_of_by_both(cli: Cli) -> None:
    cli.ok("protect", "claude", "--yes")
    file = cli.project / HOOKS["claude"]
    file.write_text(file.read_text() + "}")
    assert "broken" in doctor(cli, "claude")["detail"]
    assert f"the hooks of claude are broken: {file} does not parse" in cli.ok("status").out
    assert cli.ok("status", "--json").json["hooks_gone"] == ["claude"]


def test_doctor_on_hooks_that_ask_by_http_where_nobody_listens(cli: Cli) -> None:
    cli.ok("protect", "claude", "--yes")
    file = cli.project / ".claude/settings.local.json"
    settings = json.loads(file.read_text())
    for event in settings["hooks"].keys() - {"SessionStart"}:
        settings["hooks"][event][0]["hooks"] = [{"type": "http", "url": "http://127.0.0.1:1/claude"}]
    file.write_text(json.dumps(settings))
    found = doctor(cli, "claude")
    assert not found["ok"] and "127.0.0.1:1 by HTTP, where no resident process listens" in found["detail"]
    assert found["fix"] == "takeback resident start", "to protect again would put the commands beside them"
    del settings["hooks"]["Stop"]
    file.write_text(json.dumps(settings))
    assert "stale" in doctor(cli, "claude")["detail"], "one event is told by neither"


@pytest.mark.parametrize(
    ("agent", "path", "text", "told"),
    [
        ("claude", ".claude/settings.json", '{"disableAllHooks": true}', ".claude/settings.json has disableAllHooks"),
        ("claude", ".claude/settings.json", '{"disable\\u0041llHooks": true}', "settings.json has disableAllHooks"),
        ("claude", "~/.claude/settings.json", '{"env": {"TAKEBACK": "off"}}', "has TAKEBACK=off"),
        ("codex", "~/.codex/config.toml", "[features]\nhooks = false\n", ".codex/config.toml has hooks = false"),
        ("gemini", ".gemini/.env", "TAKEBACK=off\n", ".gemini/.env has TAKEBACK=off"),
        ("claude", ".envrc", "export TAKEBACK=off\n", ".envrc has TAKEBACK=off"),
    ],
)
def test_doctor_on_hooks_that_are_switched_off(
    cli: Cli, own_home: Path, agent: str, path: str, text: str, told: str
) -> None:
    cli.ok("protect", agent, "--yes")
    file = own_home / path[2:] if path.startswith("~/") else cli.project / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    found = doctor(cli, agent)
    assert not found["ok"] and "switched off: " in found["detail"] and told in found["detail"], found
    file.write_text("# " + text.strip().replace("\n", "\n# ") if path.endswith((".env", "rc", ".toml")) else "{}")
    assert "switched off" not in doctor(cli, agent)["detail"]


def test_doctor_on_hooks_left_behind(alone: Cli, store_folder: Callable[[], Path]) -> None:
    alone.ok("protect", "gemini", "--yes")
    for path in sorted(store_folder().rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    found = doctor(alone, "gemini")
    assert not found["ok"] and "left behind" in found["detail"] and "takeback unprotect gemini" in found["fix"]


def test_doctor_on_hooks_that_nobody_trusted(cli: Cli, own_home: Path) -> None:
    from takeback.agents.setup.codex import trust

    cli.ok("protect", "codex", "--yes")
    found = doctor(cli, "codex")
    assert not found["ok"] and "not trusted" in found["detail"] and "/hooks" in found["fix"]
    hooks = cli.project / ".codex/hooks.json"
    told = [f'[projects."{cli.project}"]\ntrust_level = "trusted"\n']
    notes = trust(str(hooks), json.loads(hooks.read_text()))
    told += [f'[hooks.state."{key}"]\ntrusted_hash = "{note}"\n' for key, note in notes.items()]
    (own_home / ".codex").mkdir()
    config = own_home / ".codex/config.toml"
    config.write_text("".join(told[:-1]))
    assert "not trusted: 1 of 8" in doctor(cli, "codex")["detail"]
    config.write_text("".join(told).replace("sha256:", "sha256:0"))
    assert "not trusted: 8 of 8" in doctor(cli, "codex")["detail"] and "changed since" in doctor(cli, "codex")["detail"]
    config.write_text("".join(told))
    assert doctor(cli, "codex")["ok"] and ", trusted" in doctor(cli, "codex")["detail"]
