"""Tools that are no shell: by the paths they name, their annotations and their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from takeback import gate
from takeback.agents.events import BEFORE, READS, SHELL, UNKNOWN, WRITES, Event
from takeback.gate import risk as risk_of_gate
from takeback.journal.brackets import Caller

HOME = "/home/me"


def judged(root: str = "/srv/project", **event: Any) -> tuple[risk_of_gate.Risk, ...]:
    return gate.tool(Event(BEFORE, Caller("claude", "s"), root, **event), root, HOME)


@pytest.mark.parametrize("name", ["delete_issue", "deleteRepository", "drop_table", "send_message", "create_payment_charge",
                                  "transfer_funds", "deploy", "publish_post", "merge_pull_request", "SendEmail"])  # fmt: skip
def test_a_tool_that_acts_by_its_name(name: str):
    (risk,) = judged(tool=f"mcp__forge__{name}", does=UNKNOWN, server="forge")
    assert risk.kind == "tool" and name in risk.what


@pytest.mark.parametrize("name", ["get_issue", "list_deleted", "search_orders", "read_file", "create_draft", "add_label",
                                  "query_docs", "get_deploy_status"])  # fmt: skip
def test_a_tool_that_reads_or_only_adds_by_its_name(name: str):
    assert judged(tool=f"mcp__forge__{name}", does=UNKNOWN, server="forge") == ()


def test_annotations_go_before_the_name():
    server: dict[str, Any] = {"does": UNKNOWN, "server": "forge"}
    assert judged(tool="delete", annotations={"readOnlyHint": True}, **server) == ()
    assert judged(tool="delete", annotations={"destructiveHint": False}, **server) == ()
    assert judged(tool="tidy", annotations={"destructiveHint": True}, **server)[0].kind == "tool"


def test_what_the_model_writes_is_no_annotation():
    given = {"annotations": {"readOnlyHint": True}, "readOnlyHint": True}
    assert judged(tool="delete", does=UNKNOWN, server="forge", input=given)[0].kind == "tool"


def test_statements_given_to_a_server():
    for statement, kinds in (("SELECT 1", []), ("DROP TABLE users", ["database"])):
        found = judged(tool="mcp__db__execute_sql", does=UNKNOWN, server="db", input={"sql": statement})
        assert [risk.kind for risk in found] == kinds


def test_our_own_server_is_no_risk():
    assert judged(tool="mcp__takeback__takeback_undo", does=UNKNOWN, server="takeback") == ()


def test_a_shell_is_judged_by_its_command():
    assert [r.kind for r in judged(tool="Bash", does=SHELL, command="git push")] == ["push"]


def test_writes_outside_the_workspace_are_told():
    (risk,) = judged(tool="Write", does=WRITES, paths=("/opt/x", "a.txt"))
    assert risk.kind == "outside" and risk.outside == ("/opt/x",)
    assert judged(tool="Write", does=WRITES, paths=("a.txt", "/srv/project/b")) == ()
    assert judged(tool="Read", does=READS, paths=("/opt/x",)) == ()


def test_an_editing_tool_never_gets_at_our_hooks(tmp_path: Path):
    hooks = tmp_path / ".claude" / "settings.local.json"
    hooks.parent.mkdir()
    hooks.write_text('{"hooks": {"PreToolUse": "takeback hook claude"}}')
    (tmp_path / "link").symlink_to(hooks)
    for path in (str(hooks), ".claude/settings.local.json", "./src/../.claude/settings.local.json", "link",
                 "~/.config/takeback/config.toml", "~/.local/state/takeback/x"):  # fmt: skip
        found = judged(str(tmp_path), tool="Edit", does=WRITES, paths=(path,))
        assert found and found[0].refuse, path
    assert judged(str(tmp_path), tool="Edit", does=WRITES, paths=(".takeback.toml", ".claude/settings.json")) == ()
    assert judged(str(tmp_path), tool="Read", does=READS, paths=(str(hooks),)) == ()


OFF = [
    (".claude/settings.json", {"content": '{"disableAllHooks": true}'}),
    (".claude/settings.json", {"old_string": "{", "new_string": '{"disableAllHooks":true,'}),
    ("~/.claude/settings.json", {"content": '{"env": {"TAKEBACK": "off"}}'}),
    (".claude/settings.json", {"edits": [{"old_string": "{", "new_string": '{"env": {"TAKEBACK_HOME": "/x"},'}]}),
    (".claude/settings.json", {"content": '{"disable\\u0041llHooks": true}\n'}),
    (".claude/settings.json", {"old_string": "{", "new_string": '{"disable\\u0041llHooks":true,'}),
    (".claude/settings.json", {"content": '{"disableAllHooks" /* as asked */' + " " * 12 + ": true}"}),
    (".claude/settings.json", {"content": '{"env": {"TAKE\\u0042ACK": "o\\u0066f"}}'}),
    (".gemini/settings.json", {"content": '// mine\n{"hooksConfig": {"a": 1, "\\u0065nabled": false}}'}),
    (".codex/config.toml", {"content": '[features]\n"ho\\u006fks" = false\n'}),
    (".codex/config.toml", {"content": "[features]\nhooks = false\n"}),
    ("~/.codex/config.toml", {"patch": "*** Begin Patch\n@@\n+hooks = false\n"}),
    (".gemini/settings.json", {"content": '{"hooks": {"disabled": true}}'}),
    (".qwen/settings.json", {"content": '{"disableAllHooks": true}'}),
    (".gemini/.env", {"content": "TAKEBACK=off\n"}),
    (".env", {"content": "A=1\nTAKEBACK=off\n"}),
    (".envrc", {"content": "export TAKEBACK_AUTOPILOT=0\n"}),
    ("~/.bashrc", {"content": "export TAKEBACK=off\n"}),
]
ON = [
    (".claude/settings.json", {"content": '{"permissions": {"allow": ["Bash(ls)"]}}'}),
    (".claude/settings.json", {"old_string": '"disableAllHooks": true', "new_string": '"x": 1'}),
    (".claude/settings.json", {"content": '{"disableAllHooks": false}'}),
    (".claude/settings.json", {"content": '{"disable\\u0041llHooks": false, "note": "disableAllHooks: true"}'}),
    (".claude/settings.json", {"content": '{"hooks": {"PreToolUse": []}, "env": {"A": "b"}}'}),
    (".codex/config.toml", {"content": 'model = "x"\n[features]\nhooks = true\n'}),
    (".codex/config.toml", {"patch": "*** Begin Patch\n@@\n-hooks = false\n+hooks = true\n"}),
    (".env", {"content": "A=1\nTAKEBACK=on\n"}),
    (".env", {"content": "MY_TAKEBACK=off\n"}),
    ("docs/off.md", {"content": "TAKEBACK=off and disableAllHooks: true"}),
    (".github/workflows/a.yml", {"content": "env:\n  TAKEBACK: off\n"}),
]


@pytest.mark.parametrize(("path", "given"), OFF)
def test_an_editing_tool_never_turns_hooks_off(path: str, given: dict[str, Any]):
    found = judged(tool="Edit", does=WRITES, paths=(path,), input={"file_path": path, **given})
    assert [risk for risk in found if risk.refuse], found


@pytest.mark.parametrize(("path", "given"), ON)
def test_ordinary_edits_of_settings_pass(path: str, given: dict[str, Any]):
    assert judged(tool="Edit", does=WRITES, paths=(path,), input={"file_path": path, **given}) == ()
