"""What doctor says of each coding agent: installed, trusted, firing, stale, or left behind."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

from ... import hook_record
from ...agents.setup import SETUPS, changes, lines, load
from ...agents.setup.targets import Config, Whole
from ...errors import TakebackError
from ...typed import NamedTuple
from . import configuring
from .terminal import age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...agents.setup.targets import Place, Setup, Target
    from ...workspace import Workspace
    from .context import Context


class Finding(NamedTuple):
    name: str
    ok: bool
    detail: str
    fix: str = ""


class _Hooks(NamedTuple):
    """What of ours is in one agent's configuration, in one place."""

    place: Place
    there: list[str]  # our lines as they are
    wanted: list[str]  # as they should be
    path: Path

    @property
    def option(self) -> str:
        return " --user" if self.place.user else ""


def found(context: Context, root: Path | None, seen: Mapping[str, float]) -> Iterator[Finding]:
    """One line for each agent that is on this machine or has hooks of ours."""
    here = root or context.cwd
    for setup in map(load, SETUPS):
        places = [configuring.place_of(context, here, user) for user in (False, True)]
        hooks = [h for place in places if (h := _hooks(setup, place)).there]
        if hooks:
            yield _failing(context, _of(setup, hooks, root, seen.get(setup.name)), root, seen.get(setup.name, 0.0))
        elif configuring.is_found(setup, places[0]):
            yield Finding(setup.name, True, f"{setup.title} is there, without hooks (takeback protect {setup.name})")


def last_seen(workspace: Workspace) -> dict[str, float]:
    """When each agent's last event came, as far as the journal has it."""
    try:
        history = workspace.history()
    except TakebackError:
        return {}
    newest: dict[str, float] = {}
    turns = [(turn.caller.agent, turn.at) for turn in history.agent_turns.values()]
    calls = [(call.caller.agent, call.at) for call in history.brackets.values()]
    for agent, at in (*turns, *calls):
        newest[agent] = max(newest.get(agent, 0.0), at)
    return newest


def _of(setup: Setup, hooks: list[_Hooks], root: Path | None, seen: float | None) -> Finding:
    for each in hooks:
        if why := _stale(each):
            fix = f"takeback protect {setup.name}{each.option}; or takeback unprotect {setup.name}{each.option}"
            return Finding(setup.name, False, f"stale: {why}", fix)
        if root is None and not each.place.user:
            fix = f"takeback init, or takeback unprotect {setup.name}"
            return Finding(setup.name, False, f"left behind: hooks in {each.path}, and nothing is protected here", fix)
        if setup.name == "codex" and (why := _untrusted(setup, each)):
            return Finding(setup.name, False, f"not trusted: {why}", setup.left_to_do(each.place))
    where = " and ".join(str(each.path) for each in hooks)
    firing = f"firing, last event {age(time.time() - seen)}" if seen else "no event seen yet"
    trusted = ", trusted" if setup.name == "codex" else ""
    return Finding(setup.name, True, f"installed in {where}{trusted}; {firing}")


def _failing(context: Context, finding: Finding, root: Path | None, seen: float) -> Finding:
    """The same, unless its hook has failed since the last event that it took."""
    records = hook_record.read(context.settings().home) if finding.ok else []
    failed = [r for r in records if r.agent == finding.name and r.result == hook_record.FAILED and r.at > seen]
    mine = [r for r in failed if r.root in ("", str(root))]
    if not mine:
        return finding
    told = f"failing: {mine[-1].event}, {age(time.time() - mine[-1].at)}: {mine[-1].what}"
    return finding._replace(ok=False, detail=told, fix=f"try again, then takeback protect {finding.name}")


def _hooks(setup: Setup, place: Place) -> _Hooks:
    target, there, wanted = _target(setup, place), [], []
    if isinstance(target, Whole):
        text = _read(target.path)
        there = [text] if "takeback protect wrote this" in text else []
        wanted = [target.text]
    elif isinstance(target, Config) and target.hooks is not None:
        there, wanted = changes.lines_in(target), changes.wanted_lines(target.hooks)
    return _Hooks(place, there, wanted, target.path)


def _target(setup: Setup, place: Place) -> Target:
    """The file that has the hooks: the first that an agent names."""
    return setup.targets(place, configuring.ours())[0]


def _stale(hooks: _Hooks) -> str:
    told = [_line_in(text) if "\n" in text else text for text in hooks.there]
    gone = [f for line in told if (ours := lines.read(line)) for f in ours.files if not os.path.exists(f)]
    if gone:
        return f"hooks in {hooks.path} name {gone[0]}, which is gone"
    if sorted(hooks.there) != sorted(hooks.wanted):
        return f"hooks in {hooks.path} are not as this takeback writes them"
    return ""


def _line_in(plugin: str) -> str:
    """The command line that a plugin runs."""
    found = re.search(r'^const HOOK = ("(?:[^"\\]|\\.)*")$', plugin, re.MULTILINE)
    return json.loads(found[1]) if found else ""


def _untrusted(setup: Setup, hooks: _Hooks) -> str:
    """Codex's own record of what its user has trusted; it is read and never written."""
    import tomllib

    config = setup.folder(hooks.place) / "config.toml"
    try:
        told = tomllib.loads(_read(config))
    except ValueError:
        return f"{config} does not parse"
    state = _table(_table(told, "hooks"), "state")
    path = os.path.realpath(hooks.path)
    trusted = [
        key
        for key, value in state.items()
        if key.startswith((f"{path}:", f"{hooks.path}:")) and isinstance(value, dict) and value.get("trusted_hash")
    ]
    if not hooks.place.user:
        root = hooks.place.root
        projects = [_table(_table(told, "projects"), str(folder)) for folder in (root, *root.parents)]
        if not any(project.get("trust_level") == "trusted" for project in projects):
            return f"{hooks.place.root} is no folder that Codex trusts"
    if len(trusted) < len(hooks.there):
        return f"{len(trusted)} of {len(hooks.there)} hooks in {hooks.path}"
    return ""


def _table(found: object, key: str) -> dict[str, object]:
    inner = found.get(key) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
