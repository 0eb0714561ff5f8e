"""The command line's own words, as an agent can follow them: a command that it has a tool for is named by that tool.

    takeback revert kxvm --force  ─►  takeback_revert kxvm force=true

What a person has to do (approve, resolve, resume, protect, …) stays a command, and so does one whose options no tool
takes. Only lines of our own are changed: never what a file, a plan's step or somebody's prompt says.
"""

from __future__ import annotations

import re

_BACK = {"--merge": "merge", "--force": "force", "--dry-run": "dry_run"}
_SCOPE = {"--only": "only", "--without": "without"}
_WIDER = {**_BACK, **_SCOPE, "--with-state": "with_state", "--all": "everything"}
_EMAIL = ("stage", "release", "cancel", "pending")
_THREAD = ("save", "load", "list", "resume", "diff", "search", "fork", "rollback", "handoff", "adopt", "verify")
_PLAIN = ("init", "checkpoint", "track", "status", "diff", "log", "show", "effects", "apply")
TOOLS: dict[str, dict[str, str]] = {  # command → which of its options its tool takes, and as what
    **dict.fromkeys(("rollback", "undo", "plan"), _WIDER),
    **dict.fromkeys(("redo", "restore"), _BACK),
    "revert": {**_BACK, **_SCOPE},
    "compensate": {"--execute": "execute", **_SCOPE},
    **{command: {} for command in _PLAIN},
    **{f"email {command}": {} for command in _EMAIL},
    **{f"thread {command}": {} for command in _THREAD},
    "thread rollback": {**_BACK, "--with-files": "with_files", "--all": "everything"},
}
_COMMAND = re.compile(rf"\btakeback ({'|'.join(sorted(TOOLS, key=len, reverse=True))})\b([^,;()\n“”]*)")
_OPTION = re.compile(r"(?<=\s)--?[a-z][a-z-]*")
_NAMES = re.compile(rf"(?<=\s)({'|'.join(_SCOPE)}) (\w+)")
_REVERSAL = re.compile(r"\btakeback record (http|command) --for (\w+)[^,;()\n“”]*")
_HOW = {
    "http": "record_http for_effect={} inverse_method=… inverse_url=…",
    "command": "record_reversal for_effect={} argv=…",
}
_OTHERS = ("take it too with --all", "take it too with everything=true")
_ALL = re.compile(r"\(see all: [^()]*\)")
OWN = (
    "… and ",
    "kept ",
    "carries ",
    "left as it is",
    "left alone",
    "if something takes it back: ",
)  # how lines begin that name what to do next


def for_agents(line: str) -> str:
    """One line of ours."""
    quoted = re.split(r"(“[^”]*”)", _ALL.sub("(the data has more)", line).replace(*_OTHERS))
    return "".join(part if at % 2 else _by_tools(part) for at, part in enumerate(quoted))


def _by_tools(part: str) -> str:
    part = _REVERSAL.sub(lambda found: f"takeback_{_HOW[found[1]].format(found[2])}", part)
    return _COMMAND.sub(_named, part)


def _named(found: re.Match[str]) -> str:
    command, rest = found[1], found[2]
    options = TOOLS[command]
    before = re.split(r"[,;:.()]", found.string[: found.start()])[-1]
    if "a person" in before or "terminal" in rest or not set(_OPTION.findall(rest)) <= options.keys():
        return found[0]
    rest = _NAMES.sub(lambda scope: f'{options[scope[1]]}=["{scope[2]}"]', rest)
    return f"takeback_{command.replace(' ', '_')}" + _OPTION.sub(lambda option: f"{options[option[0]]}=true", rest)
