"""The JSON of every verb. Fields only grow. Paths are text; bytes that are no UTF-8 are surrogate escapes."""

from __future__ import annotations

from ...effects import FOLDER, Checkpoint, Outcome, Plan, Step, same, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...history import History
    from ...views import FileDiff, LogRow, Status


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


def plan(found: Plan, history: History) -> dict[str, Any]:
    return {
        "id": found.id,
        "hash": found.hash,
        "verb": found.request.verb,
        "to": found.request.label,
        "steps": [_step(s, history) for s in found.steps],
        "left": sorted({text(u.path) for u in found.left}),
    }


def _step(step: Step, history: History) -> dict[str, Any]:
    return {
        "domain": step.domain,
        "target": text(step.path),
        "verdict": step.verdict,
        "summary": summary(step),
        "effect": effect_id(history, step),
        "note": step.note,
        "merges": step.merges,
    }


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


def outcome(found: Outcome, history: History) -> dict[str, Any]:
    return {
        "plan": plan(found.plan, history),
        "id": found.id,
        "number": found.number,
        "results": [
            {"target": text(r.path), "verdict": r.verdict, "result": r.result, "note": r.note} for r in found.results
        ],
        "counts": found.counts,
        "left": [text(p) for p in found.left],
        "finished_earlier": found.finished_earlier,
        "applied": True,
    }
