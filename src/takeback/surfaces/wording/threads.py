"""Threads, their states and what differs between two of them, in lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from takeback.model.effects import short_id, thread_of
from takeback.threads.plain_data import text
from takeback.threads.restored_from import FORKED

from .plans import read
from .text import age, cells, clip, moment, pad, safe, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from takeback.model.effects import Plan
    from takeback.model.thread_states import Checked, Found, Handoff, StateCheckpoint, StateDifference, ThreadSeen
    from takeback.workspace import Workspace

    from .screen import Screen


_LINES = 40  # of a state that is shown


_VALUE = 200  # characters of a value that differs


_NAME = 32  # columns of a thread's name


def brief(id: str) -> str:
    """An id as a column has room for it: of a UUID the part that tells the time. As much names it."""
    return safe(id[:18] if len(id) == 36 and id.count("-") == 4 else short_id(id))


def table(terminal: Screen, found: Sequence[ThreadSeen], now: float) -> Iterator[str]:
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
    terminal: Screen,
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


def handoff_lines(found: Sequence[Handoff], now: float) -> Iterator[str]:
    for each in found:
        sender = f"{safe(each.agent)} → " if each.agent else "→ "
        became = f"adopted as {safe(each.adopted_as[0])}" if each.adopted_as is not None else "pending"
        note = f"  “{clip(safe(each.note), 60)}”" if each.note else ""
        what = f"{safe(each.thread)} {brief(each.checkpoint)}"
        yield f"{each.id[:8]}  {age(now - each.at)}  {sender}{safe(each.to_agent)}  {what}  {became}{note}"


def about(terminal: Screen, workspace: Workspace, found: StateCheckpoint) -> Iterator[str]:
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


def state_lines(terminal: Screen, state: Any, whole: str, most: int = _LINES) -> Iterator[str]:
    """A state as it reads, cut where it is long, with the command that gives all of it."""
    lines = json.dumps(state, indent=2, ensure_ascii=False).split("\n")
    width = terminal.width if terminal.out_is_tty else _VALUE
    for line in lines[:most]:
        yield clip(safe(line), max(20, width))
    if len(lines) > most:
        yield terminal.style(f"… and {len(lines) - most:,} more lines (whole: {whole})", "dim")


def planned(
    terminal: Screen,
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


def difference_lines(terminal: Screen, found: Sequence[StateDifference]) -> Iterator[str]:
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


def totals(terminal: Screen, found: Sequence[StateDifference], between: str) -> str:
    if not found:
        return f"{between}: the same state"
    kinds = [each.change for each in found]
    told = [f"{kinds.count(kind):,} {kind}" for kind in ("added", "changed", "removed") if kind in kinds]
    return f"{between}: {', '.join(told)}"


def found_lines(terminal: Screen, found: Sequence[Found], now: float) -> Iterator[str]:
    for each in found:
        state = each.checkpoint
        name = terminal.style(f"{safe(state.thread)} {brief(state.id)}", "bold")
        also = f" · {safe(state.summary)}" if state.summary and each.where != "summary" else ""
        line = f"{name}  {age(now - state.at)}  {safe(each.where)}"
        yield line + (clip(also, max(16, terminal.width - cells(line))) if terminal.out_is_tty else also)
        excerpt = safe(each.excerpt)
        yield f"    {clip(excerpt, max(20, terminal.width - 4)) if terminal.out_is_tty else excerpt}"


_NAME = 24  # columns of a name


def verified(terminal: Screen, found: Sequence[Checked]) -> Iterator[str]:
    """'PASS  row 12  main  kxvmrtqo'; what fails says what is lost."""
    called = [clip(safe(each.thread), _NAME) for each in found]
    names = max(map(cells, called), default=0)
    ids = max((cells(brief(each.id)) for each in found), default=0)
    rows = max((len(str(each.seq)) for each in found), default=0)
    for each, name in zip(found, called):
        mark = terminal.style("PASS", "green") if each.ok else terminal.style("FAIL", "red")
        ns = f"  in {clip(safe(each.ns), _NAME)}" if each.ns else ""
        yield f"{mark}  row {each.seq:<{rows}}  {pad(name, names)}  {pad(brief(each.id), ids)}{ns}".rstrip()
        if each.why:
            yield from (f"      {line}" for line in wrapped(safe(each.why), terminal.width - 6))
