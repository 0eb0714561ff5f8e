"""completion: a script for the shell, and the names that the scripts ask for while somebody types."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.journal.journal import glimpse
from takeback.model.effects import short_id
from takeback.show.views import tree_of
from takeback.store import layout
from takeback.surfaces.cli.docs.completion_scripts import SCRIPTS
from takeback.surfaces.cli.docs.nameable import NAMED, PATHS, SESSIONS
from takeback.surfaces.wording.text import counted, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from takeback.journal.journal import Row
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace, Parser

_MOST = 200  # names offered, newest first
_THREAD = "thread"  # --names thread: the threads; thread:NAME: its state checkpoints; adopt: what was handed over
_STATES = 2_000  # rows that are looked at for them


def add(parser: Parser) -> None:
    parser.synopsis = "bash|zsh|fish"
    parser.about = "Prints a completion script for your shell."
    parser.takes("SHELL", "shell", nargs="?", default="", help="bash, zsh or fish")  # with --names: how the name begins
    parser.takes("--names VERB", "--names", help="the ids and labels VERB can be given; the scripts ask for these")
    parser.examples = [
        ('eval "$(takeback completion bash)"', "in ~/.bashrc"),
        ('eval "$(takeback completion zsh)"', "in ~/.zshrc, after compinit"),
        ("takeback completion fish | source", "in ~/.config/fish/config.fish"),
    ]


def run(context: Context, args: Namespace) -> int:
    if args.names is not None:
        _say_names(context, args.names, args.shell)
        return 0
    if args.shell not in SCRIPTS:
        raise UsageError("name a shell: " + ", ".join(SCRIPTS), "takeback completion bash")
    context.terminal.write(SCRIPTS[args.shell]())
    return 0


def _say_names(context: Context, verb: str, begun: str = "") -> None:
    """What a verb can be given, as the scripts ask for it: a name, a tab, what it is. Silent whatever fails."""
    try:
        if verb.startswith(PATHS):
            for path in _paths_of(context, verb.removeprefix(PATHS), begun):
                context.terminal.write(path)
            return
        home = context.settings().home
        root = layout.find_root(home, context.cwd)
        of_threads = verb == "adopt" or verb.partition(":")[0] == _THREAD
        if root is None or (verb not in NAMED and verb != SESSIONS and not of_threads):
            return
        journal = layout.folder_of(home, root) / "journal.db"
        if verb == SESSIONS:
            named = _sessions(glimpse(journal, ("turn",), _STATES))
        elif of_threads:
            kind = "thread" if verb == "adopt" else "state"
            named = _states(glimpse(journal, (kind,), _STATES), verb)
        else:
            rows, labels = glimpse(journal, NAMED[verb], _MOST), _labels(glimpse(journal, ("note",), _STATES))
            named = [pair for row in rows if row.body is not None for pair in _names(row, labels)]
    except Exception:
        return
    for name, about in named:
        context.terminal.write(f"{name}\t{about}")


def _labels(rows: Iterable[Row]) -> dict[str, str]:
    """What checkpoints are called that were given another label, by their ids."""
    notes = [row.body for row in rows if row.kind == "note" and row.body and row.body.get("what") == "label"]
    return {note["id"]: note["label"] for note in reversed(notes)}


def _names(row: Row, labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """An entry by its id and, if it has one that can be typed, by its label."""
    body, id = row.body or {}, row.id[:8]
    if row.kind == "note":  # a call of an agent that was stopped
        stopped = body.get("what") in ("asked", "refused")
        return [(id, f"{safe(body['agent'])}: {safe(body['summary'])}")] if stopped else []
    label = labels.get(row.id, body.get("label", "")) if row.kind == "checkpoint" else ""
    if row.kind == "checkpoint":
        about = f'checkpoint "{safe(label)}"' if label else "checkpoint"
    elif row.kind == "change":
        about = f"effect, {counted(body['list']['count'], 'path')}"
    elif row.kind == "turn":
        about = f"{safe(body['agent'])} “{safe(body.get('prompt', ''))}”"
    elif row.kind == "open":
        about = f"{safe(body['agent'])}: {safe(body['summary'])}"
    elif row.kind == "act":
        about = f"{safe(body['domain'])}: {safe(body['summary'])}"
    else:
        about = body["request"]["verb"]
    return [(id, about), *([(label, f"checkpoint {id}")] if _can_be_typed(label) else [])]


def _can_be_typed(name: str) -> bool:
    """Whether a name is one line of a script, and no option."""
    return bool(name) and name == safe(name) and not name.startswith("-")


def _paths_of(context: Context, checkpoint: str, begun: str) -> list[str]:
    """Those that begin so, as they are typed where the shell is."""
    with context.open(when_off=True, tell=False) as workspace:
        below = os.path.relpath(context.cwd, workspace.root)
        found = (os.path.relpath(path, below) for path, *_ in tree_of(workspace, checkpoint))
        fit = (path for path in found if path.startswith(begun) and _can_be_typed(path) and path[:2] != "..")
        return list(islice(fit, _STATES))


def _sessions(rows: list[Row]) -> list[tuple[str, str]]:
    named: dict[str, str] = {}
    for body in (row.body or {} for row in rows):
        session = body.get("session", "")
        if _can_be_typed(session):
            named.setdefault(session, f"{safe(body['agent'])} “{safe(body.get('prompt', ''))}”")
    return list(named.items())[:_MOST]


def _states(rows: list[Row], asked: str) -> list[tuple[str, str]]:
    """Threads by their names, state checkpoints by their ids, handoffs, newest first."""
    named: dict[str, str] = {}
    _, _, thread = asked.partition(":")
    for body, id in ((row.body or {}, row.id) for row in rows):
        if asked == "adopt":
            if body.get("what") == "handoff":
                named[id[:8]] = f"{safe(body['thread'])} for {safe(body['to_agent'])}"
        elif thread and body.get("thread") == thread:
            named.setdefault(short_id(body["id"]), safe(body.get("summary", "")) or "state checkpoint")
        elif not thread and _can_be_typed(body.get("thread", "")):
            named.setdefault(body["thread"], f"at {short_id(body['id'])}")
    return list(named.items())[:_MOST]
