"""Files that agents keep in a project for themselves: captured like any other, taken back only when they are named.

A rollback past `takeback protect` must not take our own hooks away, nor an agent's settings from under it.
"""

from __future__ import annotations

# Files by their whole path below the root; folders end with a slash.
OWN = (
    b".claude/settings.local.json",
    b".claude/worktrees/",
    b".claude/commands/takeback/",
    b".codex/hooks.json",
    b".codex/config.toml",
    b".gemini/settings.json",
    b".gemini/commands/takeback/",
    b".qwen/settings.json",
    b".qwen/commands/takeback/",
    b".github/hooks/takeback.json",
    b".github/mcp.json",
    b".opencode/",
    b"opencode.json",
    b"opencode.jsonc",
    b".cursor/hooks.json",
    b".cursor/mcp.json",
    b".cursor/commands/takeback-undo.md",
    b".cursor/commands/takeback-redo.md",
    b".cursor/commands/takeback-rollback.md",
    b".cursor/commands/takeback-log.md",
    b".cursor/commands/takeback-checkpoint.md",
    b".mcp.json",
)
_FIRST = frozenset(path.partition(b"/")[0] for path in OWN)
_FOLDERS = tuple(path for path in OWN if path.endswith(b"/"))


def is_agents_own(path: bytes) -> bool:
    """Whether an agent, or what we set up for one, lives in this file or folder."""
    if path.partition(b"/")[0] not in _FIRST:
        return False
    return path in OWN or (path + b"/").startswith(_FOLDERS)


def own_below(path: bytes) -> list[bytes]:
    """What of it would lie in a folder."""
    if path not in _FIRST and path.partition(b"/")[0] not in _FIRST:
        return []
    return [own.rstrip(b"/") for own in OWN if own.startswith(path + b"/")]
