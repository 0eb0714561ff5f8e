"""A plan as a person reads it: a heading, one line per step, totals."""

from __future__ import annotations

from ...effects import DRIFTED, EXACT, FILE, FOLDER, MERGED, Plan, Step, same, text
from ...errors import TakebackError
from .diffs import counts
from .terminal import Terminal, cells, clip_path, counted, listed, pad, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...history import History
    from ...views import FileDiff
    from ...workspace import Workspace

_MANY = 40  # steps; from here on a screenful is shown
_LARGEST_COUNTED = 256 << 10  # bytes of a file whose changed lines are counted


def lines(terminal: Terminal, workspace: Workspace, plan: Plan, all_steps: bool = False) -> Iterator[str]:
    yield terminal.style(heading(plan, workspace.history()), "bold")
    shown = list(plan.steps) if all_steps else some(plan, terminal)
    cheap, again = len(shown) <= _MANY, plan.request.verb == "redo"
    rows = [_row(terminal, workspace, step, cheap, again) for step in shown]
    domains = max((cells(s.domain) for s in shown), default=0)
    names = max((cells(name) for _, name, _ in rows), default=0)
    for step, (sign, name, verdict) in zip(shown, rows):
        yield f"  {pad(step.domain, domains)}  {sign}  {pad(name, names)}  {verdict}"
    if hidden := len(plan.steps) - len(shown):
        yield terminal.style(f"  … and {hidden:,} more (see all: --all-steps or takeback diff)", "dim")
    yield totals(plan)
    if others := others_work(plan):
        yield left(others)


def some(plan: Plan, terminal: Terminal) -> list[Step]:
    """All steps, or as many as a screen holds: what is kept is never crowded out by what is taken."""
    if len(plan.steps) < _MANY:
        return list(plan.steps)
    room = max(12, min(_MANY, terminal.height - 6) if terminal.out_is_tty else 24)
    kept = plan.kept[: room // 2]
    return [*plan.taken[: room - len(kept)], *kept]


def heading(plan: Plan, history: History) -> str:
    return f"{_aim(plan, history)} · {counted(len(plan.steps), 'step')}"


def _aim(plan: Plan, history: History) -> str:
    request = plan.request
    if request.verb == "rollback":
        return f"Back to {safe(request.label)}"
    if request.verb == "restore":
        return f"Restore from {safe(request.label)}"
    if request.verb == "undo":
        whose = sorted({turn.actor for turn in request.turns})
        names = ", ".join(safe(actor) if actor else "by hand" for actor in whose)
        how_many = "the last turn" if len(request.turns) == 1 else f"the last {len(request.turns)} turns"
        return f"Undo {how_many} ({names})" if names else "Undo"
    if request.verb == "redo":
        found = [history.takebacks[id] for id in request.takebacks if id in history.takebacks]
        named = [t for t in found if t.rows] or found
        return "Redo " + ", ".join(f"{t.verb} {t.id[:8]}" for t in named[:4]) if named else "Redo"
    if request.rows:
        return "Revert " + ", ".join(id[:8] for id in request.rows[:4])
    return f"Revert {listed([text(p) for p in request.paths])}"


def _row(terminal: Terminal, workspace: Workspace, step: Step, cheap: bool, again: bool) -> tuple[str, str, str]:
    """Sign, name with counts, and verdict with its note."""
    mark, colour = _sign(step)
    state = step.goal or step.expected
    folder = "/" if state is not None and state.kind == FOLDER and step.path else ""
    name = clip_path(safe(text(step.path) or ".") + folder, max(24, terminal.width - 44))
    changed = _counts(terminal, workspace, step) if cheap and step.taken else ""
    return terminal.style(mark, colour), f"{name} {changed}".rstrip(), verdict(terminal, step, again)


def _sign(step: Step) -> tuple[str, str]:
    if not step.taken:
        return "!", "red"
    if same(step.expected, step.goal):
        return "=", "dim"
    if step.expected is None:
        return "+", "green"
    if step.goal is None:
        return "-", "red"
    return "~", "yellow"


def verdict(terminal: Terminal, step: Step, again: bool = False) -> str:
    note = safe(step.note)
    if step.verdict == EXACT:
        told = note or _was(step, again)
        return "exact" + (f" ({told})" if told else "")
    if step.verdict == MERGED:
        return terminal.style("merged", "cyan") + f" with what changed since{f' ({note})' if note else ''}"
    shown = terminal.style(step.verdict, "red")
    if step.verdict == DRIFTED:
        return f"{shown}: {note or 'changed since'}; kept" + (", merges cleanly" if step.merges else "")
    return f"{shown}: {note}; kept" if note and not step.taken else shown


def _was(step: Step, again: bool) -> str:
    if step.expected is None:
        return "created again" if again else "was deleted"
    if step.goal is None:
        return "deleted again" if again else "created since"
    if step.expected.kind != step.goal.kind:
        return "was another kind of file"
    if step.expected.mode != step.goal.mode:
        return f"mode {step.expected.mode:04o} → {step.goal.mode:04o}"
    return ""


def _counts(terminal: Terminal, workspace: Workspace, step: Step) -> str:
    """+n −n of a file that is small enough to count, as it will change."""
    was, goal = step.expected, step.goal
    if was is None or goal is None or not was.kind == goal.kind == FILE or was.content == goal.content:
        return ""
    if max(was.size, goal.size) > _LARGEST_COUNTED:
        return ""
    from ...textdiff import count, hunks, is_binary

    try:
        old, new = read(workspace, was.content), read(workspace, goal.content)
    except TakebackError:
        return ""
    if is_binary(old) or is_binary(new):
        return "binary"
    return counts(terminal, *count(hunks(old, new)))


def read(workspace: Workspace, content: bytes) -> bytes:
    """The bytes of a step's state; those of a merge are not stored before it is applied."""
    merged = workspace.merged.get(content)
    return merged if merged is not None else workspace.store.blobs.get(content)


def diff_of(workspace: Workspace, plan: Plan) -> list[FileDiff]:
    """What applying the plan would change, line by line."""
    from ...trees import Difference
    from ...views import file_diffs

    found = [Difference(s.path, s.expected, s.goal) for s in plan.taken if s.domain == "files" and s.path]

    def get(content: bytes) -> bytes:
        return read(workspace, content)

    return file_diffs(found, get, get)


def totals(plan: Plan) -> str:
    by_verdict: dict[str, int] = {}
    for step in plan.steps:
        by_verdict[step.verdict] = by_verdict.get(step.verdict, 0) + 1
    return " · ".join(f"{n:,} {verdict}" for verdict, n in by_verdict.items())


def others_work(plan: Plan) -> list[str]:
    """Paths in range that only others changed; where they changed ours too, its step says so."""
    stepped = {step.path for step in plan.steps}
    return sorted({text(u.path) for u in plan.left if u.path not in stepped})


def left(paths: Sequence[str]) -> str:
    """Work of others in range, which stays."""
    named = f"{listed(paths, 5)} ({counted(len(paths), 'path')}"
    return f"left as it is, others' work: {named}; take it too with --all)"
