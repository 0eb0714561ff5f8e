"""What an agent may never do to its own undo, whoever asks and however it is wrapped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from .. import agent_files
from ..typed import NamedTuple
from . import Risk
from .files import touched
from .parsing import Shell
from .places import Places, is_below
from .state import Command
from .words import UNKNOWN, named

KIND = "own"
_VERBS = {
    "approve": "approving",
    "apply": "applying a plan",
    "resolve": "saying what came of an undo",
    "prune": "forgetting history",
    "repair": "mending the store",
    "unprotect": "taking the hooks away",
    "hook": "speaking for the hooks",
    "mcp": "answering the server's questions to a person",
}
_GLOBAL_VALUES = ("-C",)
_FINE = {"TAKEBACK": ("on",), "TAKEBACK_AUTOPILOT": ("1", "true", "yes", "on"), "TAKEBACK_ACTOR": None}
_READERS = named(
    "ls cat less more head tail du df stat file find tree wc grep rg test [ realpath readlink echo printf cd pwd diff "
    "sha256sum md5sum xxd od strings basename dirname command which"
)
# Where agents keep what concerns all projects, below the home.
_USER_FILES = (
    ".claude/settings.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json", ".qwen/settings.json",
    ".copilot/hooks", ".copilot/config.json", ".config/opencode/plugins", ".config/opencode/opencode.json",
    ".cursor/hooks.json",
)  # fmt: skip
_RUNTIME = re.compile(rf"^(/run/user/\d+|{UNKNOWN})/takeback(/|$)|^/tmp/takeback-\d+(/|$)")
_FINDERS = frozenset({"pgrep", "pidof", "ps", "fuser", "lsof", "ss", "grep", "rg", "awk", "cat"})
_WRITING_CODE = re.compile(r"\bopen\s*\([^)]*['\"][wax+]|write|dump|unlink|remove|rmtree|rename|replace|truncate|rm\b")


class Own(NamedTuple):
    """takeback's own: the stores, the user's configuration."""

    stores: tuple[str, ...]
    config: tuple[str, ...]

    def holds(self, path: str) -> str:
        """What of ours a change of this path would change."""
        for store in self.stores:
            if is_below(path, store) or is_below(store, path.rstrip("*").rstrip("/") or "/"):
                return "the store"
        for config in self.config:
            if is_below(path, config) or is_below(config, path.rstrip("*").rstrip("/") or "/"):
                return "takeback's configuration"
        return ""


def own(home: str, stores: Iterable[str] = (), config: Iterable[str] = ()) -> Own:
    """Given folders, or else where they lie by default."""
    stores, config = tuple(filter(None, stores)), tuple(filter(None, config))
    if home:
        stores = stores or (f"{home}/.local/state/takeback", f"{home}/Library/Application Support/takeback")
        config = config or (f"{home}/.config/takeback",)
    return Own(tuple(map(os.path.realpath, stores)), tuple(map(os.path.realpath, config)))


def in_shell(shell: Shell, mine: Own, where: Places) -> list[Risk]:
    found: list[Risk] = []
    looks_for_us = any(c.name in _FINDERS and _names_us(c.words[1:]) for c in shell.commands)
    for command in shell.commands:
        found += _switches(command.assigned)
        found += _verbs(command)
        if command.name in ("pkill", "killall") and _names_us(command.words[1:]):
            found.append(_never(" ".join(command.words), "it would end the process that captures for you"))
        if command.name == "kill" and looks_for_us and any(UNKNOWN in word for word in command.words):
            found.append(_never(" ".join(command.words), "it would end the process that captures for you"))
        if not command.elsewhere:
            found += _paths(command, mine, where)
    for code in shell.texts:
        found += _code(code, mine, where)
    return found


def of_path(path: str, mine: Own, where: Places) -> Risk | None:
    """The risk of writing or deleting one path, links followed by whoever asks."""
    if what := mine.holds(path):
        return _never(path, f"it is {what}, without which nothing can be taken back")
    for hooks in _hooks(path, where):
        return _never(hooks, "takeback's hooks are in it, and without them nothing is captured")
    return None


def _hooks(path: str, where: Places) -> list[str]:
    """The files with our hooks that a path is, or that lie below it."""
    path = path.rstrip("*").rstrip("/") or "/"
    candidates: list[str] = []
    if is_below(path, where.root):
        below = os.fsencode(os.path.relpath(path, where.root)).replace(b"\\", b"/")
        if below == b".":
            names = [own.rstrip(b"/") for own in agent_files.OWN]
        elif agent_files.is_agents_own(below):
            names = [below]
        else:
            names = agent_files.own_below(below)
        candidates = [f"{where.root}/{os.fsdecode(name)}" for name in names]
    elif is_below(where.root, path):
        candidates = [f"{where.root}/{os.fsdecode(name.rstrip(b'/'))}" for name in agent_files.OWN]
    if where.home:
        user = [f"{where.home}/{name}" for name in _USER_FILES]
        candidates += [
            path if is_below(path, file) else file for file in user if is_below(path, file) or is_below(file, path)
        ]
    return [name for name in candidates if "/worktrees" not in name and _mentions_us(name)]


def _mentions_us(path: str) -> bool:
    """Whether a file is ours, or has a hook of ours in it; of a folder, one of its files."""
    if os.path.isdir(path):
        try:
            with os.scandir(path) as entries:
                names = [entry.path for entry in entries if not entry.is_dir(follow_symlinks=False)][:200]
                folders = [f"{path}/{name}" for name in ("plugins", "hooks", "commands", "plugin")]
        except OSError:
            return False
        return any(_mentions_us(name) for name in names) or any(
            _mentions_us(folder) for folder in folders if os.path.isdir(folder)
        )
    try:
        with open(path, "rb") as file:
            return b"takeback" in file.read(1 << 20)
    except (OSError, ValueError):
        return False


def _paths(command: Command, mine: Own, where: Places) -> list[Risk]:
    found = []
    seen: set[str] = set()
    for each in touched(command):
        if _RUNTIME.search(each.path):
            found.append(_never(each.path, "the process that captures for you listens there"))
        _, path = where.of(each.path, command.cwd)
        real = os.path.realpath(path) if UNKNOWN not in path else path
        is_folder = each.deletes or command.name in ("mv", "chmod", "chown", "chgrp")
        for name in {path, real}:
            if name in seen:
                continue
            seen.add(name)
            if is_folder:
                risk = of_path(name, mine, where)
            else:
                holds = next((s for s in (*mine.stores, *mine.config) if is_below(name, s)), "")
                risk = of_path(name, mine, where) if holds or not os.path.isdir(name) else None
            if risk is not None:
                found.append(risk)
    if found or command.name in _READERS:
        return found
    for word in command.words[1:]:
        value = word.partition("=")[2] if word.startswith("-") and "=" in word else word
        if value and not value.startswith("-") and ("/" in value or "takeback" in value):
            _, path = where.of(value, command.cwd)
            if any(is_below(path, store) for store in (*mine.stores, *mine.config)):
                return [_never(path, f"it is {mine.holds(path)}, without which nothing can be taken back")]
    return found


def _verbs(command: Command) -> list[Risk]:
    """The verbs of our own program that are a person's."""
    words = [word for word in command.words if word]
    if not words or not re.fullmatch(r"takeback(-cli)?(\.__main__|\.surfaces\.cli)?|takeback[\d.]*", command.name):
        if not any(re.search(r"takeback/(__main__|surfaces/cli/__init__)\.py$", word) for word in words[:6]):
            return []
        at = next(at for at, word in enumerate(words) if re.search(r"takeback/.*\.py$", word))
        words = words[at:]
    plain, at = [], 1
    for_off = "--off" in words[1 : words.index("--") if "--" in words else None]
    while at < len(words):
        if words[at] in _GLOBAL_VALUES:
            at += 1
        elif not words[at].startswith("-"):
            plain.append(words[at])
        at += 1
    verb, further, *_ = *plain, "", ""
    said = " ".join(words)
    if verb in _VERBS:
        return [_never(said, f"{_VERBS[verb]} is for a person")]
    if verb == UNKNOWN or UNKNOWN in verb:
        return [_never(said, "nobody can say which of takeback's verbs it is")]
    if verb == "email" and further in ("release", ""):
        return [_never(said, "releasing mail is for a person")] if further else []
    if verb == "config" and further == "confirm":
        return [_never(said, "accepting rules that lessen what is captured is for a person")]
    if for_off:
        return [_never(said, "turning takeback off is for a person")]
    if any(name in command.assigned for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME")):
        return [_never(said, "it would use another store or configuration")]
    return []


def _switches(assigned: Mapping[str, str]) -> list[Risk]:
    found = []
    for name, value in assigned.items():
        if name == "TAKEBACK" or name.startswith("TAKEBACK_"):
            fine = _FINE.get(name, ())
            if fine is not None and value.lower() not in fine:
                found.append(_never(f"{name}={value}", "it would lessen what is captured"))
    return found


def _code(code: str, mine: Own, where: Places) -> list[Risk]:
    """Programs of other languages that name what is ours."""
    plain = code.replace("~", where.home)
    if any(folder in plain for folder in (*mine.stores, *mine.config)):
        return [_never("a program that names takeback's own files", "without them nothing can be taken back")]
    if re.search(r"state/takeback|config/takeback", plain):
        return [_never("a program that names takeback's own files", "without them nothing can be taken back")]
    if _WRITING_CODE.search(code):
        for name in agent_files.OWN:
            path = os.fsdecode(name.rstrip(b"/"))
            if path in code and _hooks(f"{where.root}/{path}", where):
                return [_never(path, "takeback's hooks are in it, and without them nothing is captured")]
    if "takeback" in code and re.search(r"['\"\s.](approve|resolve|prune|repair|unprotect|confirm_rules)\b", code):
        if re.search(r"\b(import|from)\s+takeback|takeback\.|['\"]takeback['\"]", code):
            return [_never("a program that uses takeback", "these of its verbs are for a person")]
    return []


def _names_us(words: Iterable[str]) -> bool:
    return any("takeback" in word for word in words)


def _never(what: str, why: str) -> Risk:
    return Risk(KIND, what.replace(UNKNOWN, "…")[:200], why, refuse=True)
