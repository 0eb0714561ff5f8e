"""What turns takeback off: variables of its own, and lines in the settings of agents and in files of variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from takeback.agents.setup import jsonc

_FINE: Mapping[str, tuple[str, ...] | None] = {
    "TAKEBACK": ("on",),
    "TAKEBACK_AUTOPILOT": ("1", "true", "yes", "on"),
    "TAKEBACK_ACTOR": None,
}
_VARIABLE = re.compile(r"""(?<![A-Za-z0-9_])(TAKEBACK(?:_[A-Z0-9_]+)?)["']?\s{0,9}[=:]\s{0,9}["']?([^\s"',;}]{0,99})""")
_HOOKS_OFF = (
    re.compile(r"disableAllHooks[\"']?\s{0,9}[:=,]\s{0,9}[\"']?(?!false|null)[\w$]+"),
    re.compile(r"\bhooks(?:Config)?[\"']?\s{0,9}[=:]\s{0,9}[\"']?(?:false|0|off)\b", re.IGNORECASE),
    re.compile(r"\b(?:codex_)?hooks\s{0,9}=\s{0,9}false\b", re.IGNORECASE),
    re.compile(r"[\"']?hooks(?:Config)?[\"']?\s{0,9}:\s{0,9}\{\s{0,9}[\"']?(?:disabled[\"']?\s{0,9}:\s{0,9}true|"
               r"enabled[\"']?\s{0,9}:\s{0,9}false)"),
    re.compile(r"\benableHooks[\"']?\s{0,9}[:=]\s{0,9}false"),
)  # fmt: skip
_SETTINGS = re.compile(
    r"(?:^|/)(?:\.claude/settings[^/]*\.json|\.codex/config\.toml|\.(?:gemini|qwen)/settings\.json|"
    r"\.(?:copilot|cursor|opencode)/[^/]*\.json)$"
)
# A letter as JSON, TOML, JavaScript or a shell can write it.
_ESCAPE = re.compile(
    r"\\+(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|0?([01][0-7]{2}))"
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DEEPEST = 20
_VARIABLES = re.compile(r"(?:^|/)\.env(?:\.[^/]*|rc)?$")
_RC = re.compile(r"(?:^|/)\.(?:bashrc|bash_profile|bash_login|profile|zshrc|zshenv|zprofile|pam_environment)$")
AGENTS = frozenset({"claude", "codex", "gemini", "qwen", "copilot", "opencode", "cursor-agent"})


class Switch(NamedTuple):
    what: str
    why: str


def assigned(names: Mapping[str, str]) -> Iterator[Switch]:
    """Variables of ours in a command's environment."""
    for name, value in names.items():
        if name == "TAKEBACK" or name.startswith("TAKEBACK_"):
            fine = _FINE.get(name, ())
            if fine is not None and value.lower() not in fine:
                yield Switch(f"{name}={value}", "it would lessen what is captured")


def in_file(path: str, text: str) -> Switch | None:
    """What a text that is put into a file of settings or variables would turn off there."""
    if not is_settings(path):
        return None
    found = _in_settings(text) if _SETTINGS.search(path) else _variable(text)
    return Switch(f"{found} in {path}", "with it takeback's hooks would not run") if found else None


def is_settings(path: str) -> bool:
    return any(kind.search(path) for kind in (_SETTINGS, _VARIABLES, _RC))


def in_text(text: str) -> str:
    """The words by which a text turns hooks or takeback off; empty if none do. Letters may be written as escapes, and
    anything may stand between a name and its value that its reader skips."""
    text = " ".join(_COMMENT.sub(" ", _ESCAPE.sub(_letter, text)).split())
    for off in _HOOKS_OFF:
        if (found := off.search(text)) is not None:
            return " ".join(found[0].split())
    return _variable(text)


def _letter(found: re.Match[str]) -> str:
    code = int(found[5], 8) if found[5] else int(found[1] or found[2] or found[3] or found[4], 16)
    return chr(code) if code < 0x110000 else found[0]


def _in_settings(text: str) -> str:
    """The same of a file of settings: as its agent reads it, where it is JSON, with or without comments."""
    try:
        value = jsonc.parse(text).value if text.lstrip("\ufeff \t\r\n").startswith(("{", "/")) else None
    except (jsonc.Malformed, RecursionError):
        value = None
    if isinstance(value, dict):
        return next(_off_keys(value), "")
    return in_text(_without_comments(text))


def _off_keys(value: Any, depth: int = 0) -> Iterator[str]:
    """Keys that turn hooks or takeback off, wherever they stand in settings."""
    if isinstance(value, list) and depth < _DEEPEST:
        for each in value:
            yield from _off_keys(each, depth + 1)
    if not isinstance(value, dict) or depth >= _DEEPEST:
        return
    for key, each in value.items():
        if (key == "disableAllHooks" and each not in (False, None)) or (key == "enableHooks" and each is False):
            yield _told(key, each)
        elif key.lower() in ("hooks", "hooksconfig", "codex_hooks"):
            off = each.get("disabled") is True or each.get("enabled") is False if isinstance(each, dict) else False
            if off or each is False or (str(each).lower() in ("false", "0", "off") and each is not None):
                yield _told(key, "off" if off else each)
        elif isinstance(each, (str, int)):
            yield from (switch.what for switch in assigned({key: str(each)}))
        yield from _off_keys(each, depth + 1)


def _told(key: str, value: Any) -> str:
    return f"{key}: {str(value).lower()[:40]}"


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("#", "//")))


def written(given: Mapping[str, Any]) -> str:
    """What a tool puts into a file, as far as its input says: all but what it replaces."""
    return "\n".join(_strings(value) for key, value in given.items() if not _is_old(key))


def _strings(value: Any, depth: int = 0) -> str:
    if depth > 6:
        return ""
    if isinstance(value, str):
        if re.search(r"^(?:\*\*\* |@@|--- )", value, re.MULTILINE):  # a patch: what it adds
            return "\n".join(line[1:] for line in value.splitlines() if line.startswith("+"))
        return value
    if isinstance(value, Mapping):
        return "\n".join(_strings(each, depth + 1) for key, each in value.items() if not _is_old(key))
    if isinstance(value, (list, tuple)):
        return "\n".join(_strings(each, depth + 1) for each in value)
    return ""


def _is_old(key: Any) -> bool:
    return isinstance(key, str) and key.lower().startswith(("old", "file_path", "path", "description", "explanation"))


def _variable(text: str) -> str:
    for name, value in _VARIABLE.findall(text):
        for switch in assigned({name: value}):
            return switch.what
    return ""


def off_in(files: Iterable[tuple[str, str]]) -> str:
    """The first of these files (name, text) that turns hooks or takeback off, with what does it; empty if none does."""
    for name, text in files:
        found = _in_settings(text) if _SETTINGS.search(name) else _variable(_without_comments(text))
        if found and not (found.startswith("TAKEBACK_") and "ENABLED" not in found):
            return f"{name} has {found}"
    return ""
