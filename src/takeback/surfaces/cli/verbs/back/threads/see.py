"""thread list, show, load, resume, diff, search: threads as a person reads them, and as programs do.

Secrets in what is shown are held back from pipes and agents, as those in files are. load and resume give the state as
it is: whoever goes on needs all of it.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.model.effects import short_id
from takeback.surfaces.cli import who_is_looking
from takeback.surfaces.wording import json_thread_shapes
from takeback.surfaces.wording.text import safe
from takeback.surfaces.wording.threads import (
    about,
    chain,
    chain_of,
    difference_lines,
    found_lines,
    handoff_lines,
    is_head,
    state_lines,
    table,
    totals,
)

if TYPE_CHECKING:
    from takeback.model.thread_states import StateCheckpoint
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace
    from takeback.workspace import Workspace

_LISTED = 200  # state checkpoints, unless --limit says otherwise


# -- list --------------------------------------------------------------------


def list_(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    limit = _limit(args)
    if args.handoffs:
        return _handoffs(context, workspace, words, limit)
    if not words:
        return _threads(context, workspace, limit)
    found, forks = chain_of(workspace, words[0], limit or _LISTED)
    if not found:
        workspace.threads.get(words[0])  # says that there is none
    heads = workspace.threads.heads_at(words[0])
    if context.json:
        shown = [
            {**json_thread_shapes.checkpoint(s), "forks": forks.get((s.ns, s.id), []), "head": is_head(s, heads)}
            for s in found
        ]
        context.terminal.json({"thread_id": words[0], "checkpoints": shown})
        return 0
    context.terminal.page(chain(context.terminal, found, forks, workspace.clock(), heads))
    if not heads:
        back = f"takeback thread rollback {_quoted(words[0])} {short_id(found[0].id)}"
        context.terminal.hint(f"it was taken back to before its first state, and has no head; {back} gives it this one")
    if not limit and len(found) == _LISTED:
        context.terminal.hint(f"the newest {_LISTED}; more with --limit N")
    return 0


def _threads(context: Context, workspace: Workspace, limit: int) -> int:
    found = workspace.threads.all()
    shown = found[:limit] if limit else found
    if context.json:
        context.terminal.json({"threads": [json_thread_shapes.thread(seen) for seen in shown]})
        return 0
    if not found:
        context.terminal.say("there is no thread yet")
        context.terminal.hint("save one: takeback thread save THREAD FILE")
        return 0
    context.terminal.page(table(context.terminal, shown, workspace.clock()))
    return 0


def _handoffs(context: Context, workspace: Workspace, words: list[str], limit: int) -> int:
    found = [h for h in workspace.threads.handed_over() if not words or h.thread == words[0]]
    found = found[:limit] if limit else found
    if context.json:
        context.terminal.json({"handoffs": [json_thread_shapes.handoff(h) for h in found]})
        return 0
    for line in handoff_lines(found, workspace.clock()):
        context.terminal.write(line)
    if not found:
        context.terminal.say("nothing was handed over")
    return 0


def _limit(args: Namespace) -> int:
    if args.limit is None:
        return 0
    if not args.limit.isdecimal() or not args.limit.isascii() or int(args.limit) < 1:
        raise UsageError(f"--limit needs a whole number from 1 up, not {safe(args.limit)!r}", "such as --limit 20")
    return int(args.limit)


# -- show, load, resume ------------------------------------------------------


def show(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    found = workspace.threads.get(*words)
    mask = who_is_looking.Mask(context, workspace, args.unmasked)
    state = mask.state(workspace.threads.load(found))
    if context.json:
        context.terminal.json(json_thread_shapes.with_state(found, state))
    else:
        terminal = context.terminal
        shown = [*about(terminal, workspace, found), *state_lines(terminal, state, _again(found))]
        terminal.page(shown)
    mask.tell()
    return 0


def load(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    """The state and nothing else, exactly: for whoever goes on with it."""
    found = workspace.threads.get(*words)
    state = workspace.threads.load(found)
    context.terminal.json(json_thread_shapes.with_state(found, state) if context.json else state)
    return 0


def resume(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    found = workspace.threads.get(*words)
    state = workspace.threads.load(found)
    if context.json:
        context.terminal.json(json_thread_shapes.with_state(found, state))
        return 0
    terminal = context.terminal
    for line in (*about(terminal, workspace, found), *state_lines(terminal, state, _again(found))):
        terminal.write(line)
    head = workspace.threads.find(found.thread)
    if head is not None and head.id != found.id:
        words_of = f"{_quoted(found.thread)} {short_id(found.id)}"
        terminal.hint(f"it is not the head: takeback thread rollback {words_of} makes it that, or fork it")
    else:
        terminal.hint(f"save what follows: takeback thread save {_quoted(found.thread)} --parent {short_id(found.id)}")
    return 0


def _again(found: StateCheckpoint) -> str:
    return f"takeback thread load {_quoted(found.thread)} {short_id(found.id)}"


def _quoted(name: str) -> str:
    return safe(quote(name))


# -- diff, search ------------------------------------------------------------


def diff(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    threads = workspace.threads
    a, b = threads.get(*words[:2]), threads.get(words[0], *words[2:])
    mask = who_is_looking.Mask(context, workspace, args.unmasked)
    found = mask.differences(threads.diff(words[0], a.id, b.id))
    if context.json:
        ids = {"thread_id": words[0], "from_checkpoint_id": a.id, "to_checkpoint_id": b.id}
        context.terminal.json({**ids, "differences": [json_thread_shapes.difference(each) for each in found]})
    else:
        terminal = context.terminal
        if found:
            terminal.page(difference_lines(terminal, found))
        terminal.say(totals(terminal, found, f"{safe(short_id(a.id))} → {safe(short_id(b.id))}"))
    mask.tell()
    return 0


def search(context: Context, workspace: Workspace, args: Namespace, words: list[str]) -> int:
    if args.thread and not workspace.threads.list(args.thread, limit=1):
        workspace.threads.get(args.thread)  # says that there is none
    mask = who_is_looking.Mask(context, workspace, args.unmasked)
    found = workspace.threads.search(" ".join(words), args.thread or "", _limit(args) or 20, mask=mask.state)
    if context.json:
        context.terminal.json({"query": " ".join(words), "found": [json_thread_shapes.hit(each) for each in found]})
    else:
        context.terminal.page(found_lines(context.terminal, found, workspace.clock()))
        if not found:
            context.terminal.say(f"nothing has {' '.join(map(safe, words))!r}")
    mask.tell()
    return 0


VERBS = {"list": list_, "show": show, "load": load, "resume": resume, "diff": diff, "search": search}
