"""What doctor says of each coding agent: installed, trusted, firing, stale, or left behind."""

from __future__ import annotations

import json
import os
import re
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from takeback.agents import AGENTS, hook_problems
from takeback.agents.setup import jsonc, lines, load
from takeback.agents.setup.codex import trust
from takeback.agents.setup.found import Hooks, Lost, hooks_at, lost_of, places_of, read_file
from takeback.errors import TakebackError
from takeback.gate.bash import switches
from takeback.surfaces.cli.verbs.start import agents_configured
from takeback.surfaces.resident import starting
from takeback.surfaces.wording.text import age

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.agents.setup.targets import Setup
    from takeback.surfaces.cli.context import Context
    from takeback.workspace import Workspace


_SETTINGS = {
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
    "codex": (".codex/config.toml",),
    "gemini": (".gemini/settings.json", ".gemini/.env", ".env"),
    "qwen": (".qwen/settings.json", ".qwen/.env", ".env"),
}


class Finding(NamedTuple):
    name: str
    ok: bool
    detail: str
    fix: str = ""


def found(context: Context, home: Path, root: Path | None, seen: Mapping[str, float]) -> Iterator[Finding]:
    """One line for each agent that is on this machine or has hooks of ours."""
    places = places_of(context.environ, root or context.cwd)
    for setup in map(load, AGENTS):
        every = [hooks_at(setup, place) for place in places]
        hooks = [each for each in every if each.is_any]
        if missing := lost_of(home, setup, every):
            yield Finding(setup.name, False, *_told(missing, setup))
        elif hooks:
            yield _failing(home, _of(setup, hooks, root, seen.get(setup.name)), root, seen.get(setup.name, 0.0))
        elif agents_configured.is_found(setup, places[0]):
            yield Finding(setup.name, True, f"{setup.title} is there, without hooks (takeback protect {setup.name})")


def _told(lost: Lost, setup: Setup) -> tuple[str, str]:
    """What is wrong, and what mends it."""
    option = " --user" if lost.place.user else ""
    again = f"takeback protect {setup.name}{option}"
    if lost.why:
        return f"broken: {lost.why}; {setup.title} runs no hook from it", f"mend the file, then {again}"
    fix = f"{again}; or takeback unprotect {setup.name}{option}"
    return f"gone: the hooks that protect put into {lost.path}", fix


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


def _of(setup: Setup, hooks: list[Hooks], root: Path | None, seen: float | None) -> Finding:
    for each in hooks:
        if why := _stale(each):
            fix = f"takeback protect {setup.name}{each.option}; or takeback unprotect {setup.name}{each.option}"
            return Finding(setup.name, False, f"stale: {why}", fix)
        if root is None and not each.place.user:
            fix = f"takeback init, or takeback unprotect {setup.name}"
            return Finding(setup.name, False, f"left behind: hooks in {each.path}, and nothing is protected here", fix)
        if why := _switched_off(setup, each):
            return Finding(setup.name, False, f"switched off: {why}", "take that line out, then start the agent again")
        if setup.name == "codex" and (why := _untrusted(setup, each, seen or 0.0)):
            return Finding(setup.name, False, f"not trusted: {why}", setup.left_to_do(each.place))
        if why := _unanswered(each):
            return Finding(setup.name, False, f"not answered: {why}", "takeback resident start")
    where = " and ".join(f"{each.path}{', by HTTP' if each.http else ''}" for each in hooks)
    firing = f"firing, last event {age(time.time() - seen)}" if seen else "no event seen yet"
    trusted = ", trusted" if setup.name == "codex" else ""
    return Finding(setup.name, True, f"installed in {where}{trusted}; {firing}")


def _failing(home: Path, finding: Finding, root: Path | None, seen: float) -> Finding:
    """The same, unless its hook has failed since the last event that it took."""
    records = hook_problems.read(home) if finding.ok else []
    failed = [r for r in records if r.agent == finding.name and r.result == hook_problems.FAILED and r.at > seen]
    mine = [r for r in failed if r.root in ("", str(root))]
    if not mine:
        return finding
    last = mine[-1]
    told = f"failing: {last.event or 'an event without a name'}, {age(time.time() - last.at)}: {last.what}"
    return finding._replace(ok=False, detail=told, fix=f"try again, then takeback protect {finding.name}")


def _stale(hooks: Hooks) -> str:
    told = [_line_in(text) if "\n" in text else text for text in hooks.there]
    gone = [f for line in told if (ours := lines.read(line)) for f in ours.files if not os.path.exists(f)]
    if gone:
        return f"hooks in {hooks.path} name {gone[0]}, which is gone"
    if sorted(hooks.there) != sorted(hooks.wanted):
        return f"hooks in {hooks.path} are not as this takeback writes them"
    return ""


def _unanswered(hooks: Hooks) -> str:
    """Where the agent asks by HTTP and nobody is there, it goes on, and its calls are not captured."""
    http = starting.status().get("http") or {} if hooks.http else {}
    answered = http.get("port") if "token" in http else None
    silent = sorted({port for port in hooks.http.values() if port != answered})
    if not silent:
        return ""
    return f"hooks in {hooks.path} ask 127.0.0.1:{silent[0]} by HTTP, where no resident process listens"


def _switched_off(setup: Setup, hooks: Hooks) -> str:
    """A line in the agent's settings, or in a file of variables that it reads, with which no hook runs."""
    place, names = hooks.place, [*_SETTINGS.get(setup.name, ()), ".envrc"]
    found = []
    for base in dict.fromkeys((place.root, place.home)):
        for name in names:
            shown = name if base == place.root else f"~/{name}"
            found.append((shown, read_file(base / name)))
    return switches.off_in(found)


def _line_in(plugin: str) -> str:
    """The command line that a plugin runs."""
    found = re.search(r'^const HOOK = ("(?:[^"\\]|\\.)*")$', plugin, re.MULTILINE)
    return json.loads(found[1]) if found else ""


def _untrusted(setup: Setup, hooks: Hooks, seen: float) -> str:
    """Codex's own record of what its user has trusted; it is read and never written."""
    config = setup.folder(hooks.place) / "config.toml"
    try:
        told = tomllib.loads(read_file(config))
    except ValueError:
        return f"{config} does not parse"
    state = _table(_table(told, "hooks"), "state")
    path = os.path.realpath(hooks.path)
    wanted = trust(
        path, jsonc.parse(read_file(hooks.path)).value
    )  # stale ones are told of before: these are as written
    noted = {key: _table(state, key) or _table(state, key.replace(path, str(hooks.path), 1)) for key in wanted}
    trusted = [key for key, note in noted.items() if note.get("trusted_hash") == wanted[key]]
    if not hooks.place.user:
        root = hooks.place.root
        projects = [_table(_table(told, "projects"), str(folder)) for folder in (root, *root.parents)]
        if not any(project.get("trust_level") == "trusted" for project in projects):
            return f"{hooks.place.root} is no folder that Codex trusts"
    if len(trusted) < len(hooks.there):
        changed = all(note.get("trusted_hash") for note in noted.values())
        if changed and seen > hooks.path.stat().st_mtime:  # they run: this Codex notes something else
            return ""
        but = ", which have changed since they were" if changed else ""
        return f"{len(hooks.there) - len(trusted)} of {len(hooks.there)} hooks in {hooks.path}{but}"
    return ""


def _table(found: object, key: str) -> dict[str, object]:
    inner = found.get(key) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}
