"""What changed since the checkpoint that one is at, and what needs attention, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.agents import hook_problems
from takeback.agents.setup import found as found_of_setup
from takeback.config import agents_own_files
from takeback.domains.git.repository import amount
from takeback.model.effects import raw
from takeback.text.units import format_size

from . import effects_outside
from .diffs import sign
from .text import age, cells, clip, counted, listed, moment, pad, safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from takeback.agents.setup.found import Lost
    from takeback.care.budget import Standing
    from takeback.journal.history import History
    from takeback.show.views import Changed, Status
    from takeback.workspace import Workspace

    from .screen import Screen


_MANY = 40


_TURNS = 5


_THREADS = 4


_OF_LATE = 86_400.0  # seconds


def lines(terminal: Screen, workspace: Workspace, found: Status, everything: bool) -> Iterator[str]:
    style, history = terminal.style, workspace.history()
    if found.checkpoint is None:
        yield style("no named checkpoint yet", "bold")
    else:
        newest = found.checkpoint
        label = f' "{safe(newest.label)}"' if newest.label else ""
        what = counted(len(found.changes), "change") if found.changes else "no file changed"
        when = age(workspace.clock() - newest.at)
        led = "" if newest.id == _newest_id(workspace) else " · went back to it"
        yield style(f"Since {newest.id[:8]}{label}", "bold") + f" · {when}{led} · {what}"
    shown = [(change, 0) for change in found.changes] if everything else in_order(found.changes)
    most = len(shown) if everything or len(shown) < _MANY else max(12, terminal.height - 10)
    changes, below = [change for change, _ in shown[:most]], dict(shown[:most])
    width = max((cells(safe(c.path)) for c in changes), default=0)
    for change in changes:
        kind = change.change if change.change in ("mode", "type") else ""
        who = style(safe(change.actor), "cyan") + style(" (uncertain)", "yellow") * change.uncertain
        notes = (
            *(style(f"{how}: {by}", "dim") for how, by in _taken_back(change, history)),
            style(f"{kind} changed", "dim") if kind else "",
            style(f"with {counted(below[change], 'path')} in it", "dim") if below[change] else "",
        )
        note = "  ".join(word for word in (who, *notes) if word)
        path = pad(safe(change.path) + "/" * bool(below[change]), min(width, 60))
        yield f"  {sign(terminal, change.change)} {path}  {note}".rstrip()
    if hidden := sum(1 + count for _, count in shown[most:]):
        yield style(f"  … and {hidden:,} more (see all: takeback status --all)", "dim")
    if found.git:
        yield f"git: {safe(amount(map(raw, found.git)))}"
    if found.state:
        most = len(found.state) if everything else _THREADS
        told = [f"{safe(name)} ({counted(n, 'state checkpoint') if n else 'gone'})" for name, n in found.state[:most]]
        hidden = len(found.state) - len(told)
        yield f"threads: {', '.join(told)}" + (f" and {hidden:,} more (takeback thread list)" if hidden else "")
    elif workspace.store.journal.newest_id("state") and (names := workspace.threads.names()):
        yield style(f"threads: {listed(names)} (takeback thread list)", "dim")
    yield from _agents(terminal, found, workspace.clock())
    yield from _hooks(terminal, workspace)
    yield from _hooks_gone(terminal, workspace)
    yield from _outside(terminal, found)
    yield from _coverage(terminal, found, everything)
    yield style(f"store: {format_size(found.store_bytes)} in {safe(found.store_path)}", "dim")
    if found.budget is not None and found.budget.is_over:
        yield style(beyond_budget(found.budget), "yellow")
    if workspace.store.is_read_only:
        yield style("the store can only be read: nothing is captured, and nothing can be taken back", "red")


def _taken_back(change: Changed, history: History) -> Iterator[tuple[str, str]]:
    """Which take-backs made a path as it is: by taking work back, or by bringing it back."""
    took = [id for id in change.takebacks if id not in change.brought_back]
    for how, ids in (("taken back", took), ("brought back", change.brought_back)):
        if ids:
            yield how, ", ".join(f"{history.takebacks[id].verb} {id[:8]}" for id in ids)


def in_order(changes: Sequence[Changed]) -> list[tuple[Changed, int]]:
    """What was edited first; then what came and went, a whole folder of it as one, with how many paths were in it."""
    by_path = {change.path: change for change in changes}
    inside: dict[Changed, int] = {}
    out = []
    for change in sorted(changes, key=lambda c: (c.change in ("new", "deleted"), c.path)):
        above = change.path
        while above := above.rpartition("/")[0]:
            top = by_path.get(above)
            if top in inside and top[1:] == change[1:]:  # of the same kind, by the same
                inside[top] += 1
                break
        else:
            if change.change in ("new", "deleted"):
                inside[change] = 0
            out.append(change)
    return [(change, inside.get(change, 0)) for change in out]


def _newest_id(workspace: Workspace) -> str:
    newest = workspace.history().newest_named()
    return newest.id if newest is not None else ""


def _agents(terminal: Screen, found: Status, now: float) -> Iterator[str]:
    """Whose turns these changes are, and which agents are at work just now."""
    for turn in found.turns[:_TURNS]:
        mine = [change for change in found.changes if turn.id in change.turns]
        unsure = sum(change.uncertain for change in mine)
        paths = [counted(len(mine) - unsure, "path")] if len(mine) > unsure else []
        paths += [f"{unsure:,} uncertain"] if unsure else []
        asked = f" “{clip(safe(turn.prompt), 48)}”" if turn.prompt else ""
        begin = f"{terminal.style(safe(turn.agent), 'cyan')}{asked}"
        told = " · ".join([begin, age(now - turn.at), *paths])
        yield f"by {told} (takeback show {turn.id[:8]})"
    if (hidden := len(found.turns) - _TURNS) > 0:
        yield terminal.style(f"… and {hidden:,} more (takeback log)", "dim")
    for call in found.at_work:
        who = terminal.style(safe(call.agent), "cyan") + (f" ({safe(call.lane)})" if call.lane else "")
        if call.gone:
            yield f"{who} was cut off in {safe(call.summary)}: whether what changed since is its work nobody knows"
        else:
            yield f"{who} is in {safe(call.summary)} · {age(now - call.at)}"


def failed_hooks(workspace: Workspace) -> list[hook_problems.Record]:
    """What hooks could not do here of late, oldest first."""
    since, root = workspace.clock() - _OF_LATE, str(workspace.root)
    records = hook_problems.read(workspace.settings.home)
    return [r for r in records if r.result == hook_problems.FAILED and r.at > since and r.root == root]


def _hooks(terminal: Screen, workspace: Workspace) -> Iterator[str]:
    """The last failure of each agent's hook: what its call did then may not have been captured."""
    by_agent: dict[str, list[hook_problems.Record]] = {}
    for record in failed_hooks(workspace):
        by_agent.setdefault(record.agent, []).append(record)
    for agent, failed in by_agent.items():
        newest, more = failed[-1], len(failed) - 1
        when = f"{age(workspace.clock() - newest.at)}{f', and {more:,} times before' if more else ''}"
        yield terminal.style(f"the last hook of {safe(agent)} failed {when}: {safe(newest.what)}", "red")


def lost_hooks(workspace: Workspace) -> list[Lost]:
    """The agents that run our hooks no more, as doctor says too."""
    home, root = workspace.settings.home, workspace.root
    if not (edited := agents_own_files.with_edited_hooks(home, root)):
        return []
    return found_of_setup.lost(workspace.environ, home, root, edited)


def _hooks_gone(terminal: Screen, workspace: Workspace) -> Iterator[str]:
    """An agent may have cleaned its hooks up with the rest."""
    for lost in lost_hooks(workspace):
        path = lost.path.relative_to(workspace.root) if lost.path.is_relative_to(workspace.root) else lost.path
        how = f"gone {'from' if lost.path.exists() else 'with'} {path}" if not lost.why else f"broken: {lost.why}"
        then = f"takeback protect {lost.agent}{' --user' if lost.place.user else ''}"
        mend = f"mend the file, then {then}" if lost.why else then
        told = f"the hooks of {lost.agent} are {safe(how)}: what it does next is not captured ({mend})"
        yield terminal.style(told, "red")


def _outside(terminal: Screen, found: Status) -> Iterator[str]:
    if found.outside:
        told = " · ".join(f"{n:,} {effects_outside.state(terminal, state)}" for state, n in found.outside)
        yield f"outside the files: {told} (takeback effects)"
    if found.due:
        yield terminal.style(f"{counted(found.due, 'mail')} due and still held: takeback email release --due", "yellow")


def _coverage(terminal: Screen, found: Status, everything: bool) -> Iterator[str]:
    style = terminal.style
    if found.lacking:
        yield style(f"not captured, though it should be: {counted(len(found.lacking), 'path')}", "red")
        for path, why in found.lacking if everything else found.lacking[:10]:
            yield f"  ! {safe(path)}: {safe(why)}"
    for path, why in found.uncovered:
        if path == ".git" and why != "git":  # more than that it is no file of the project
            yield style(f"git: {safe(why)}", "yellow")
    uncovered = [(path, why) for path, why in found.uncovered if path != ".git" or why == "git"]
    if uncovered:
        most = len(uncovered) if everything else 4
        named = ", ".join(f"{safe(path)} ({safe(why)})" for path, why in uncovered[:most])
        yield f"not covered: {named}{', …' if len(uncovered) > most else ''}"
    if found.held_back:
        yield (
            "excluded by the project's own rules, and captured until you confirm them: "
            f"{listed(found.held_back)} (takeback config confirm)"
        )
    for line in found.ignored:
        yield style(f"ignored: {safe(line)}", "yellow")


def beyond_budget(found: Standing) -> str:
    """What is kept beyond the budget, why, and until when."""
    parts = []
    if found.over:
        kept = f" (checkpoints.keep is {found.keep:,})" if found.checkpoints > found.keep else ""
        parts.append(f"{found.over:,} of {counted(found.checkpoints, 'checkpoint')}{kept}")
    if found.over_bytes:
        parts.append(f"{format_size(found.over_bytes)} (checkpoints.max_bytes is {format_size(found.max_bytes)})")
    if found.threads:
        said = [f"{safe(name)} ({counted(over, 'state checkpoint')})" for name, over in found.threads]
        parts.append(f"of threads {listed(said)}")
    why = []
    if found.until is not None:
        why.append(f"what is younger than a day is never pruned by itself (here until {moment(found.until)[:-3]})")
    elif found.over or found.threads:
        why.append("it goes with one of the next checkpoints, unless something needs it")
    if found.over_bytes:
        why.append("the last checkpoint, pinned ones and heads of threads stay")
    return f"beyond the budget: {', '.join(parts)}; {', and '.join(why)} (takeback prune --dry-run: what would go now)"
