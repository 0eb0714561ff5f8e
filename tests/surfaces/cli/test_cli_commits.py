"""protect's files stay out of commits: real git, in a repository, a worktree, a submodule and a folder below its top."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("own_home")
AGENTS = ("claude", "codex", "gemini", "copilot", "qwen", "opencode", "cursor")


def git(folder: Path, *words: str) -> str:
    who = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "commit.gpgsign=false",
    ]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    (folder / "f").write_text("f")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "f")
    return folder


def staged(folder: Path) -> list[str]:
    """What an agent's `git add -A` takes in."""
    git(folder, "add", "-A")
    return git(folder, "diff", "--cached", "--name-only").split()


@pytest.mark.parametrize("before", [b"# mine\n*.log\n", b"no line end", b"a\r\nb\r\n", b"", None, b"\xff\n"])
def test_in_a_repository_and_out_again_byte_for_byte(bare, before: bytes | None):
    root = repository(bare.project)
    file = root / ".git/info/exclude"
    if before is None:
        file.unlink()
        file.parent.rmdir()
    else:
        file.write_bytes(before)
    bare.ok("protect", *AGENTS, "--mcp", "--yes")
    assert staged(root) == []
    assert (before or b"").rstrip() in file.read_bytes()
    assert "/.claude/settings.local.json" in file.read_text(errors="replace")
    once = file.read_bytes()
    bare.ok("protect", *AGENTS, "--mcp", "--yes")
    assert file.read_bytes() == once
    bare.ok("unprotect", "--yes")
    assert (file.read_bytes() if file.exists() else None) == before
    assert file.parent.exists() == (before is not None)
    assert staged(root) == []


def test_agent_by_agent(bare):
    root = repository(bare.project)
    file = root / ".git/info/exclude"
    before = file.read_bytes()
    bare.ok("protect", "claude", "--yes")
    bare.ok("protect", "codex", "--yes")
    assert staged(root) == []
    bare.ok("unprotect", "claude", "--yes")
    assert "/.codex/hooks.json" in file.read_text() and ".claude" not in file.read_text()
    bare.ok("unprotect", "codex", "--yes")
    assert file.read_bytes() == before


def test_what_others_wrote_meanwhile_stays(bare):
    root = repository(bare.project)
    file = root / ".git/info/exclude"
    bare.ok("protect", "claude", "--yes")
    file.write_text("first\n" + file.read_text() + "last\n")
    bare.ok("unprotect", "--yes")
    assert file.read_text().startswith("first\n") and file.read_text().endswith("last\n")
    assert "takeback" not in file.read_text()


def test_a_worktree_and_its_repository_do_not_take_each_others_lines(bare, tmp_path: Path):
    root = repository(bare.project)
    tree = tmp_path / "tree"
    git(root, "worktree", "add", "-q", str(tree))
    file = root / ".git/info/exclude"
    before = file.read_bytes()
    bare.ok("protect", "claude", "--yes")
    bare.ok("protect", "claude", "--yes", cwd=tree)
    assert staged(tree) == [] == staged(root)
    bare.ok("unprotect", "--yes")
    assert "/.claude/settings.local.json" in file.read_text()
    assert staged(tree) == []
    bare.ok("unprotect", "--yes", cwd=tree)
    assert file.read_bytes() == before


def test_a_submodule_keeps_its_own(bare, tmp_path: Path):
    inner = repository(tmp_path / "inner")
    root = repository(bare.project)
    git(root, "submodule", "--quiet", "add", str(inner), "sub")
    git(root, "commit", "-qm", "sub")
    outer = (root / ".git/info/exclude").read_bytes()
    bare.ok("protect", "claude", "--yes", cwd=root / "sub")
    assert staged(root / "sub") == [] == staged(root)
    assert (root / ".git/info/exclude").read_bytes() == outer
    assert b"settings.local.json" in (root / ".git/modules/sub/info/exclude").read_bytes()


def test_a_folder_below_the_top_with_an_odd_name(bare):
    root = repository(bare.project)
    app = root / "app [1]*"
    app.mkdir()
    bare.ok("protect", "claude", "--yes", cwd=app)
    assert staged(root) == []
    (root / "app 1x").mkdir()
    (root / "app 1x/.claude").mkdir()
    (root / "app 1x/.claude/settings.local.json").write_text("{}")
    assert staged(root) == ["app"] or "settings.local.json" in git(root, "diff", "--cached", "--name-only")


def test_without_a_repository_nothing_is_touched(bare):
    bare.ok("protect", "claude", "--yes")
    assert not (bare.project / ".git").exists()
    assert json.loads(bare.ok("protect", "claude", "--yes", "--json").out)["exclude"] is None


def test_for_the_user_nothing_is_written_there(bare):
    root = repository(bare.project)
    before = (root / ".git/info/exclude").read_bytes()
    bare.ok("protect", "claude", "--user", "--yes")
    assert (root / ".git/info/exclude").read_bytes() == before


def test_what_is_in_commits_already_is_left_and_said(bare):
    root = repository(bare.project)
    (root / ".gemini").mkdir()
    (root / ".gemini/settings.json").write_text("{}\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "settings")
    ran = bare.ok("protect", "gemini", "--yes")
    assert "in your commits already, and left so: .gemini/settings.json" in ran.err
    told = (root / ".git/info/exclude").read_text()
    assert "/.gemini/settings.json" not in told and "/.gemini/commands/takeback/" in told
    assert bare.ok("protect", "gemini", "--yes", "--json").json["exclude"]["tracked"] == [".gemini/settings.json"]
    assert staged(root) == [".gemini/settings.json"]
