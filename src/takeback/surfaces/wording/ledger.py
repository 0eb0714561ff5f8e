"""The ledger: every effect outside the files, newest first, with what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import effects_outside, json_shapes
from .text import age, cells, clip, pad, safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from takeback.journal.history import History
    from takeback.model.outside import Act, Undo
    from takeback.workspace import Workspace

    from .screen import Screen


class Entry(NamedTuple):
    """An outside effect as a filter sees it, with the attempts to take it back."""

    id: str
    at: float
    actor: str
    domain: str
    verdict: str
    state: str
    summary: str
    paths: tuple[str, ...]
    act: Act
    undos: tuple[Undo, ...]
    turns: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    kind: str = "effect"
    label: str = ""


def entries(workspace: Workspace) -> list[Entry]:
    workspace.close_outside()
    history = workspace.history()
    undos: dict[str, list[Undo]] = {}
    for undo in history.undos.values():
        undos.setdefault(undo.act, []).append(undo)
    rows = {row.id: row for row in workspace.log("kind:effect")}  # which say whose turn and call it was
    return [
        Entry(
            a.id, a.at, a.by.get("actor", ""), a.domain, a.verdict, a.shown_state, a.summary,
            (a.target,), a, tuple(undos.get(a.id, ())), *((row.turns, row.sessions, row.calls) if row else ()),
        )
        for a in workspace.effects()
        for row in (rows.get(a.id),)
    ]  # fmt: skip


def shaped(workspace: Workspace, found: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """As JSON, newest first; an undo is an effect too, and names the one it undoes."""
    history: History = workspace.history()
    describe = effects_outside.describer(workspace)
    shown = [json_shapes.effect(e.act, history, describe(e.act) if e.act.inverse else "") for e in found]
    shown += [json_shapes.undo(undo, history) for e in found for undo in e.undos]
    yield from sorted(shown, key=lambda effect: -effect["at"])


def lines(terminal: Screen, found: Sequence[Entry], now: float) -> Iterator[str]:
    ages = [age(now - e.at) for e in found]
    wide = max(map(len, ages))
    domains, states = max(cells(e.domain) for e in found), max(len(e.state) for e in found)
    indent = 8 + 2 + wide + 2
    for entry, when in zip(found, ages):
        head = f"{terminal.style(entry.id[:8], 'bold')}  {pad(when, wide)}  "
        state = pad(effects_outside.state(terminal, entry.state), states)
        who = f"  {terminal.style(safe(entry.actor), 'cyan')}" if entry.actor else ""
        room = max(24, terminal.width - indent - domains - states - 4 - cells(who))
        what = clip(safe(entry.summary), room) if terminal.out_is_tty else safe(entry.summary)
        shown = terminal.style(what, "dim") if entry.state == "undone" else what
        yield f"{head}{pad(safe(entry.domain), domains)}  {state}  {shown}{who}"
        for undo in entry.undos:
            if undo.shown_state != "irreversible":
                told = f"↩ {undo.shown_state}, {age(now - undo.at)}: {safe(undo.note) or 'nobody heard of it again'}"
                yield " " * indent + terminal.style(told, "dim")
