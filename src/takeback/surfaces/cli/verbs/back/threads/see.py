"""thread list, show, load, resume, diff, search: threads as a person reads them, and as programs do.

Secrets in what is shown are held back from pipes and agents, as those in files are. load and resume give the state as
it is: whoever goes on needs all of it.
"""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING

from takeback.errors import UsageError
from takeback.model.effects import short_id, thread_of
from takeback.surfaces.cli import who_is_looking
from takeback.surfaces.cli.terminal import age, cells, clip, moment, pad, safe, wrapped
from takeback.surfaces.wording import json_thread_shapes
from takeback.surfaces.wording.plans import read
from takeback.threads.plain_data import text
from takeback.threads.restored_from import FORKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from takeback.model.effects import Plan
    from takeback.model.thread_states import Found, Handoff, StateCheckpoint, StateDifference, ThreadSeen
    from takeback.surfaces.cli.context import Context
    from takeback.surfaces.cli.parsing import Namespace
    from takeback.surfaces.cli.terminal import Terminal
    from takeback.workspace import Workspace

_LINES = 40  # of a state that is shown
_VALUE = 200  # characters of a value that differs
_LISTED = 200  # state checkpoints, unless --limit says otherwise
_NAME = 32  # columns of a thread's name


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


def brief(id: str) -> str:
    """An id as a column has room for it: of a UUID the part that tells the time. As much names it."""
    return safe(id[:18] if len(id) == 36 and id.count("-") == 4 else short_id(id))


def table(terminal: Terminal, found: Sequence[ThreadSeen], now: float) -> Iterator[str]:
    """Name, head, how many, when, by whom; and where it was forked from, below if there is no room beside."""
    rows = [("HEAD", "STATES", "SAVED", "BY" if any(seen.head.agent for seen in found) else "")]
    for seen in found:
        agent = clip(safe(seen.head.agent), 16)
        rows.append((brief(seen.head.id), f"{seen.checkpoints:,}", age(now - seen.head.at), agent))
    widths = [max(cells(row[at]) for row in rows) for at in range(4)]
    room = terminal.width - sum(widths) - 8 if terminal.out_is_tty else _NAME
    names = ["THREAD", *(clip(safe(seen.thread), max(12, min(_NAME, room))) for seen in found)]
    width = max(map(cells, names))
    for number, (name, row) in enumerate(zip(names, rows)):
        columns = [row[at].rjust(widths[at]) if at == 1 else pad(row[at], widths[at]) for at in range(4)]
        rest = " " * (width - cells(name)) + "  " + "  ".join(columns)
        if not number:
            yield terminal.style((name + rest).rstrip(), "dim")
            continue
        parts = _from(found[number - 1].forked_from)
        beside = not terminal.out_is_tty or cells(f"{name}{rest}  {parts}") <= terminal.width
        yield (terminal.style(name, "bold") + rest + (f"  {parts}" if beside else "")).rstrip()
        if parts and not beside:
            yield f"  {parts}"


def _from(origin: tuple[str, str] | None) -> str:
    return "" if origin is None else f"⑂ {clip(safe(origin[0]), _NAME)}@{brief(origin[1])}"


def chain_of(
    workspace: Workspace, thread: str, limit: int
) -> tuple[Sequence[StateCheckpoint], dict[tuple[str, str], list[str]]]:
    """A thread's state checkpoints, newest first, and the threads that begin with each."""
    forks: dict[tuple[str, str], list[str]] = {}
    for fork in workspace.threads.forks_of(thread):
        if fork.forked_from is not None and fork.source in FORKED:
            forks.setdefault((fork.ns, fork.forked_from[1]), []).append(fork.thread)
    return workspace.threads.list(thread, limit=limit), forks


def chain(
    terminal: Terminal,
    found: Sequence[StateCheckpoint],
    forks: Mapping[tuple[str, str], Sequence[str]],
    now: float,
    heads: Mapping[str, StateCheckpoint],
) -> Iterator[str]:
    """One line each: ● the head, ○ what lies before it, ↩ where a rollback came from, ⑂ where threads part."""
    ids = max((cells(brief(s.id)) for s in found), default=0)
    ages = max((len(age(now - s.at)) for s in found), default=0)
    agents = min(16, max((cells(safe(s.agent)) for s in found), default=0))
    for at, state in enumerate(found):
        mark = terminal.style("●", "green") if is_head(state, heads) else "○"
        head = f"{mark} {terminal.style(pad(brief(state.id), ids), 'bold')}  {pad(age(now - state.at), ages)}"
        head += f"  {terminal.style(pad(clip(safe(state.agent), 16), agents), 'cyan')}" if agents else ""
        notes = list(_notes(state, found[at + 1 :]))
        told = safe(state.summary) or ", ".join(map(safe, list(state.refs)[:6]))
        room = terminal.width - cells(head) - 2 - sum(cells(note) + 3 for note in notes)
        told = clip(told, max(16, room)) if terminal.out_is_tty else told
        parts = [*(terminal.style(note, "yellow") for note in notes), *([told] if told else [])]
        yield f"{head}  {' · '.join(parts)}".rstrip()
        for name in forks.get((state.ns, state.id), ()):
            yield f"{'├─'} {terminal.style(f'⑂ {safe(name)}', 'magenta')} begins here"


def is_head(state: StateCheckpoint, heads: Mapping[str, StateCheckpoint]) -> bool:
    """Whether its namespace is at it now; one that was taken back to before it existed is at none."""
    return state.ns in heads and heads[state.ns].seq == state.seq


def _notes(state: StateCheckpoint, older: Sequence[StateCheckpoint]) -> Iterator[str]:
    if state.ns:
        yield f"in {clip(safe(state.ns), 24)}"
    if state.restored_from:
        yield f"↩ from {brief(state.restored_from)}"
    if state.forked_from is not None and not state.parent:
        yield _from(state.forked_from)
    before = next((each.id for each in older if each.ns == state.ns), "")
    if state.parent and before and state.parent != before:
        yield f"after {brief(state.parent)}"


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


def handoff_lines(found: Sequence[Handoff], now: float) -> Iterator[str]:
    for each in found:
        sender = f"{safe(each.agent)} → " if each.agent else "→ "
        became = f"adopted as {safe(each.adopted_as[0])}" if each.adopted_as is not None else "pending"
        note = f"  “{clip(safe(each.note), 60)}”" if each.note else ""
        what = f"{safe(each.thread)} {brief(each.checkpoint)}"
        yield f"{each.id[:8]}  {age(now - each.at)}  {sender}{safe(each.to_agent)}  {what}  {became}{note}"


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


def about(terminal: Terminal, workspace: Workspace, found: StateCheckpoint) -> Iterator[str]:
    threads = workspace.threads
    head = threads.find(found.thread, ns=found.ns)
    is_head = " (head)" if head is not None and head.id == found.id else ""
    named = f"State {safe(short_id(found.id))} of thread {safe(found.thread)}"
    yield terminal.style(named, "bold") + is_head
    who = f" by {safe(found.agent)}" if found.agent else ""
    yield f"  saved     {moment(found.at)}, {age(workspace.clock() - found.at)}{who}"
    if found.summary:
        room = terminal.width - 12 if terminal.out_is_tty else 10_000
        first, *more = wrapped(safe(found.summary), room)
        yield from (f"  summary   {first}", *(f"{'':12}{line}" for line in more))
    rows = [
        ("in", safe(found.ns)),
        ("after", safe(short_id(found.parent))),
        ("↩ from", safe(short_id(found.restored_from))),
        ("⑂ from", _from(found.forked_from).removeprefix("⑂ ")),
        ("files", f"checkpoint {found.workspace_checkpoint[:8]}" if found.workspace_checkpoint else ""),
        ("blob", safe(found.blob or "")),
    ]
    yield from (f"  {name:<8}  {told}" for name, told in rows if told)
    for fork in threads.forks_of(found.thread):
        if fork.forked_from == (found.thread, found.id) and fork.ns == found.ns:
            yield f"  ⑂ to      {safe(fork.thread)}"


def state_lines(terminal: Terminal, state: Any, whole: str, most: int = _LINES) -> Iterator[str]:
    """A state as it reads, cut where it is long, with the command that gives all of it."""
    lines = json.dumps(state, indent=2, ensure_ascii=False).split("\n")
    width = terminal.width if terminal.out_is_tty else _VALUE
    for line in lines[:most]:
        yield clip(safe(line), max(20, width))
    if len(lines) > most:
        yield terminal.style(f"… and {len(lines) - most:,} more lines (whole: {whole})", "dim")


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


def planned(
    terminal: Terminal,
    workspace: Workspace,
    plan: Plan,
    as_seen: Callable[[Sequence[StateDifference]], Sequence[StateDifference]],
) -> Iterator[str]:
    """What a plan would change in threads, by path; `as_seen` holds secrets back, or not."""
    threads = workspace.threads
    for step in plan.taken:
        if step.domain != "state" or step.goal is None:
            continue
        thread = thread_of(step.path)
        told = threads.told_by(thread, read(workspace, step.goal.content)) or {}
        if (head := threads.find(thread)) is not None and (goal := told.get("")) is not None:
            yield terminal.style(f"thread {safe(thread)}", "bold")
            yield from difference_lines(terminal, as_seen(threads.diff(thread, head.id, goal.id)))


def difference_lines(terminal: Terminal, found: Sequence[StateDifference]) -> Iterator[str]:
    for each in found:
        mark, colour = {"added": ("+", "green"), "removed": ("−", "red")}.get(each.change, ("~", "yellow"))
        name = f"{terminal.style(mark, colour)} {terminal.style(safe(each.path), 'bold')}"
        room = max(20, terminal.width - 4) if terminal.out_is_tty else _VALUE
        was, now = (clip(safe(text(value)), room) for value in (each.before, each.after))
        short = cells(f"  {each.path}  {was} → {now}") <= terminal.width
        if each.change != "changed":
            told = terminal.style(was if each.change == "removed" else now, colour)
            fits = cells(f"  {each.path}  ") + cells(told) <= terminal.width
            yield from [f"{name}  {told}"] if fits else [name, f"    {told}"]
        elif short:
            yield f"{name}  {terminal.style(was, 'red')} → {terminal.style(now, 'green')}"
        else:
            yield from (name, f"  {terminal.style('−', 'red')} {terminal.style(was, 'red')}")
            yield f"  {terminal.style('+', 'green')} {terminal.style(now, 'green')}"


def totals(terminal: Terminal, found: Sequence[StateDifference], between: str) -> str:
    if not found:
        return f"{between}: the same state"
    kinds = [each.change for each in found]
    told = [f"{kinds.count(kind):,} {kind}" for kind in ("added", "changed", "removed") if kind in kinds]
    return f"{between}: {', '.join(told)}"


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


def found_lines(terminal: Terminal, found: Sequence[Found], now: float) -> Iterator[str]:
    for each in found:
        state = each.checkpoint
        name = terminal.style(f"{safe(state.thread)} {brief(state.id)}", "bold")
        also = f" · {safe(state.summary)}" if state.summary and each.where != "summary" else ""
        line = f"{name}  {age(now - state.at)}  {safe(each.where)}"
        yield line + (clip(also, max(16, terminal.width - cells(line))) if terminal.out_is_tty else also)
        excerpt = safe(each.excerpt)
        yield f"    {clip(excerpt, max(20, terminal.width - 4)) if terminal.out_is_tty else excerpt}"


VERBS = {"list": list_, "show": show, "load": load, "resume": resume, "diff": diff, "search": search}
