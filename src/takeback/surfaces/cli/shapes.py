"""The JSON of every verb. Fields only grow. Paths are text; bytes that are no UTF-8 are surrogate escapes."""

from __future__ import annotations

from ...effects import FOLDER, Checkpoint, Outcome, Plan, Result, Step, same, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...acts import Act, Undo
    from ...history import History
    from ...views import FileDiff, LogRow, Status

    Describe = Callable[[Act], str]  # exactly what would be sent or run to take it back


def checkpoint(found: Checkpoint) -> dict[str, Any]:
    return {
        "id": found.id,
        "number": found.number,
        "label": found.label,
        "at": found.at,
        "actor": found.actor,
        "named": found.named,
        "pinned": found.pinned,
        "paths": found.snapshot.files,
        "partial": pairs(found.partial),
        "over_budget": found.over_budget,
    }


def pairs(found: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"path": path, "why": why} for path, why in found]


def log_row(row: LogRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "number": row.number,
        "label": row.label,
        "at": row.at,
        "actor": row.actor,
        "summary": row.summary,
        "live": row.live,
        "paths": list(row.paths),
        "domain": row.domain,
        "verdict": row.verdict,
        "state": row.state,
        "named": row.named,
        "pinned": row.pinned,
        "partial": row.partial,
    }


def status(found: Status) -> dict[str, Any]:
    return {
        "checkpoint": None if found.checkpoint is None else checkpoint(found.checkpoint),
        "changes": [{"path": c.path, "change": c.change, "actor": c.actor} for c in found.changes],
        "uncovered": pairs(found.uncovered),
        "lacking": pairs(found.lacking),
        "held_back": list(found.held_back),
        "ignored": list(found.ignored),
        "interrupted": found.interrupted,
        "outside": dict(found.outside),
        "due": found.due,
        "store": {"path": found.store_path, "bytes": found.store_bytes},
    }


def file_diff(found: FileDiff) -> dict[str, Any]:
    return {
        "path": found.path,
        "status": found.status,
        "added": found.added,
        "removed": found.removed,
        "hunks": [
            {
                "old_start": h.old_start,
                "old_lines": h.old_lines,
                "new_start": h.new_start,
                "new_lines": h.new_lines,
                "lines": [text(line) for line in h.lines],
            }
            for h in found.hunks
        ],
        "kind": found.kind,
        "old_path": found.old_path,
        "binary": found.binary,
        "note": found.note,
        "old_size": found.old_size,
        "new_size": found.new_size,
    }


def effect(found: Act, history: History, undo: str = "") -> dict[str, Any]:
    """An outside effect of the ledger."""
    return {
        "id": found.id,
        "number": history.numbers.get(found.id),
        "domain": found.domain,
        "state": found.shown_state,
        "summary": found.summary,
        "target": found.target,
        "undoes": None,
        "undone_by": found.undone_by or None,
        "at": found.at,
        "by": dict(found.by),
        "verdict": found.verdict,
        "inverse": undo or None,
        "depends_on": list(found.depends_on),
    }


def undo(found: Undo, history: History) -> dict[str, Any]:
    """An attempt to take an outside effect back: an effect too, which names the one it undoes."""
    act = history.acts[found.act]
    return {
        "id": found.id,
        "number": history.numbers.get(found.takeback),
        "domain": act.domain,
        "state": found.shown_state,
        "summary": f"undo of {act.summary}" + (f": {found.note}" if found.note else ""),
        "target": act.target,
        "undoes": act.id,
        "undone_by": None,
        "at": found.at,
        "by": {"takeback": found.takeback},
        "verdict": "irreversible",
        "inverse": None,
        "depends_on": [],
    }


def plan(found: Plan, history: History, describe: Describe | None = None) -> dict[str, Any]:
    return {
        "id": found.id,
        "hash": found.hash,
        "verb": found.request.verb,
        "to": found.request.label,
        "steps": [_step(s, history, describe) for s in found.steps],
        "totals": _totals(found),
        "left": sorted({text(u.path) for u in found.left}),
    }


def _totals(found: Plan) -> dict[str, int]:
    by_verdict: dict[str, int] = {}
    for step in found.steps:
        by_verdict[step.verdict] = by_verdict.get(step.verdict, 0) + 1
    return by_verdict


def _step(step: Step, history: History, describe: Describe | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "domain": step.domain,
        "target": text(step.path),
        "verdict": step.verdict,
        "summary": summary(step),
        "effect": effect_id(history, step),
        "note": step.note,
        "merges": step.merges,
    }
    if step.domain != "files" and (act := history.acts.get(text(step.path))) is not None:
        does = describe(act) if describe is not None and step.taken else act.summary
        shown |= {"target": act.target, "summary": does if step.taken else f"keep {does}: {step.note}"}
        shown |= {"effect": act.id, "undoes": act.summary, "by": dict(act.by), "at": act.at}
    return shown


def effect_id(history: History, step: Step) -> str | None:
    """The newest entry whose change this step takes back, or keeps."""
    effect = history.by_seq.get(max(step.units).seq) if step.units else None
    return None if effect is None else effect.takeback or effect.id


def summary(step: Step) -> str:
    path = text(step.path) or "."
    if not step.taken:
        return f"keep {path}" + (f": {step.note}" if step.note else "")
    if same(step.expected, step.goal):
        return f"leave {path} as it is"
    if step.expected is None:
        return f"bring back {path}"
    if step.goal is None:
        return f"delete {path}"
    if step.verdict == "merged":
        return f"merge {path}"
    if step.expected.kind != step.goal.kind:
        return f"replace {path}"
    if step.expected.content == step.goal.content and step.goal.kind != FOLDER:
        return f"reset the mode or attributes of {path}"
    return f"change back {path}"


def outcome(found: Outcome, history: History, describe: Describe | None = None) -> dict[str, Any]:
    outside = {s.path: s.domain for s in found.plan.steps if s.domain != "files"}
    return {
        "plan": plan(found.plan, history, describe),
        "id": found.id,
        "number": found.number,
        "results": [_result(r, outside.get(r.path, "files"), history) for r in found.results],
        "counts": found.counts,
        "left": [text(p) for p in found.left],
        "finished_earlier": found.finished_earlier,
        "applied": True,
    }


def _result(found: Result, domain: str, history: History) -> dict[str, Any]:
    act = history.acts.get(text(found.path)) if domain != "files" else None
    shown: dict[str, Any] = {
        "target": act.target if act else text(found.path),
        "verdict": found.verdict,
        "result": found.result,
        "note": found.note,
        "domain": domain,
    }
    return {**shown, "effect": act.id, "summary": act.summary} if act else shown
