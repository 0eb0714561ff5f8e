"""Files that agents keep in a project for themselves: captured like any other, taken back only when they are named.

A rollback past `takeback protect` must not take our own hooks away, nor an agent's settings from under it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING

from takeback.system import safefs

if TYPE_CHECKING:
    from pathlib import Path

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
HOOKS = {  # where protect puts each agent's hooks
    "claude": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "copilot": ".github/hooks/takeback.json",
    "qwen": ".qwen/settings.json",
    "opencode": ".opencode/plugins/takeback.js",
    "cursor": ".cursor/hooks.json",
}
MOST = 20 * 1000**2  # bytes: no configuration is that long
_FIRST = frozenset(path.partition(b"/")[0] for path in OWN)
_FOLDERS = tuple(path for path in OWN if path.endswith(b"/"))


def may_hold_own(path: bytes) -> bool:
    """False for by far the most paths: neither of the two below is to be asked about them."""
    return path.partition(b"/")[0] in _FIRST


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


def record_of(home: Path, path: str) -> Path:
    """Where takeback keeps what protect put into a file, until unprotect takes it out."""
    return home / "setup" / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def with_edited_hooks(home: Path, root: Path) -> list[str]:
    """The agents that protect set up in a project, and whose file of hooks is not as it left it: its hooks may be gone.

    Asked at each status, so cheap: what reads agents' files is loaded for these alone."""
    return [agent for agent, path in HOOKS.items() if _is_edited(home, os.path.realpath(root / path))]


def _is_edited(home: Path, path: str) -> bool:
    try:
        left = json.loads(record_of(home, path).read_bytes())["after"]
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return True
    folder, name = os.path.split(path)
    try:
        with safefs.open_root(folder) as above, open(above.open_read(os.fsencode(name)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # maybe a pipe, which nobody writes to
                return True
            return bool(sha256(file.read(MOST)).hexdigest() != left)
    except OSError:
        return True
