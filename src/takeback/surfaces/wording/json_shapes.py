"""The JSON of every verb. Fields only grow. Paths are text; bytes that are no UTF-8 are surrogate escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback.agents.sessions.conversation import way_to_forget
from takeback.domains.git.repository import called
from takeback.look.turns_and_calls import left_at_work
from takeback.model.effects import FOLDER, Checkpoint, Outcome, Plan, Result, Step, Unit, same, text, thread_of

from . import threads_in_plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from takeback.care.budget import Standing
    from takeback.journal.brackets import AgentTurn, Bracket
    from takeback.journal.history import History
    from takeback.model.effects import Abandoned
    from takeback.model.outside import Act, Stopped, Undo
    from takeback.show.turns import CallSeen, TurnSeen
    from takeback.show.views import FileDiff, LogRow, Status

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
        "number": row.number or None,
        "label": row.label,
        "at": row.at,
        "actor": row.actor,
        "summary": row.summary,
        "live": row.live,
        "paths": list(row.paths),
        "domain": row.domain,
        "domains": list(row.domains) or [row.domain],
        "verdict": row.verdict,
        "state": row.state,
        "named": row.named,
        "pinned": row.pinned,
        "partial": row.partial,
        "turn": row.turns[0] if len(row.turns) == 1 else None,
        "session": row.sessions[0] if len(row.sessions) == 1 else None,
        "call": row.calls[0] if len(row.calls) == 1 else None,
        "prompt": row.prompt,
        "turns": list(row.turns),
        "calls": list(row.calls),
        "cut": row.uncertain,  # its name until 0.1
        "uncertain": row.uncertain,
        "redone": row.redone,
    }


def stopped(found: Stopped) -> dict[str, Any]:
    """An agent's call that the gate did not let pass."""
    risks = [{"kind": kind, "what": what, "why": why} for kind, what, why in found.risks]
    told = found._asdict() | {"risks": risks, "state": found.state}
    told |= {name: told[name] or None for name in ("approved", "passed", "answered", "tried", "turned_down")}
    return {name: value for name, value in told.items() if name not in ("fingerprint", "seq", "key")}


def abandoned(found: Abandoned) -> dict[str, Any]:
    """A take-back that was interrupted, and gone back from."""
    left = [{"path": text(path), "why": why} for path, why in found.left]
    return {"at": found.at, "begun": [text(path) for path in found.paths], "not_put_back": left}


def turn(found: TurnSeen) -> dict[str, Any]:
    """What an agent was asked, and what came of it."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found._asdict().items()}


def call(found: CallSeen) -> dict[str, Any]:
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in found._asdict().items()}
    return {**told, "ended": found.ended or None}


def status(found: Status) -> dict[str, Any]:
    return {
        "checkpoint": None if found.checkpoint is None else checkpoint(found.checkpoint),
        "changes": [
            {"path": c.path, "change": c.change, "actor": c.actor}
            | ({"turns": list(c.turns)} if c.turns else {})
            | ({"uncertain": True} if c.uncertain else {})
            | ({"takebacks": list(c.takebacks)} if c.takebacks else {})
            | ({"brought_back": list(c.brought_back)} if c.brought_back else {})
            for c in found.changes
        ],
        "uncovered": pairs(found.uncovered),
        "lacking": pairs(found.lacking),
        "held_back": list(found.held_back),
        "ignored": list(found.ignored),
        "interrupted": found.interrupted,
        "stopped": found.stopped,
        "under_way": found.under_way,
        "outside": dict(found.outside),
        "due": found.due,
        "git": list(found.git),
        "state": [{"thread": thread, "ahead": ahead} for thread, ahead in found.state],
        "turns": [turn(t) for t in found.turns],
        "at_work": [call(c) for c in found.at_work],
        "store": {"path": found.store_path, "bytes": found.store_bytes},
        "budget": None if found.budget is None else budget(found.budget),
    }


def budget(found: Standing) -> dict[str, Any]:
    return {
        "checkpoints": found.checkpoints,
        "keep": found.keep,
        "over": found.over,
        "young": found.young,
        "pinned": found.pinned,
        "bytes": found.bytes,
        "max_bytes": found.max_bytes,
        "over_bytes": found.over_bytes,
        "threads": [{"thread": thread, "over": over} for thread, over in found.threads],
        "until": found.until,
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
        "number": None,  # checkpoints have one
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
        "resolve": list(found.sayings),
    }


def undo(found: Undo, history: History) -> dict[str, Any]:
    """An attempt to take an outside effect back: an effect too, which names the one it undoes."""
    act = history.acts[found.act]
    return {
        "id": found.id,
        "number": None,
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
        "left": sorted({*(text(u.path) for u in found.left if u.path not in found.own), *map(text, found.new)}),
        "own": sorted(map(text, found.own)),
        "asks": {kind: sorted({text(u.path) for u in units}) for kind, units in found.asks.items()},
        "forced": sorted({text(u.path) for u in found.forced}),
        "distance": threads_in_plans.shape(found.distance),
        "running": [_running(bracket) for bracket in left_at_work(history, found)],
    }


def _running(found: Bracket) -> dict[str, Any]:
    """A call that is at work, or waits for a person's answer: what it does after the plan is done stays."""
    caller, call = found.caller, found.call
    shown = {"id": found.id, "agent": caller.agent, "session": caller.session, "turn": found.turn.number}
    return {**shown, "tool": call.tool, "summary": call.summary, "may_wait": found.prompted}


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
    path = called(step.path) if step.domain == "git" else text(step.path) or "."
    if step.domain == "state":
        path = f"thread {thread_of(step.path)}"
    if not step.taken:
        return f"keep {path}" + (f": {step.note}" if step.note else "")
    if same(step.expected, step.goal):
        return f"leave {path} as it is"
    if step.expected is None:
        return f"bring back {path}"
    if step.goal is None:
        return f"delete {path}" if step.domain != "state" else f"take {path} back to before it was"
    if step.domain == "state":
        return f"take {path} back"
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
        "number": None,
        "results": [_result(r, outside.get(r.path, "files"), history) for r in found.results],
        "counts": found.counts,
        "left": [text(p) for p in found.left if p not in found.plan.own],
        "own": sorted(map(text, found.plan.own)),
        "distance": threads_in_plans.shape(found.plan.distance),
        "turns": [asked(t) for t in turns_taken(found.plan, history)],
        "finished_earlier": found.finished_earlier,
        "at_target": found.is_there if found.plan.request.verb == "rollback" else None,
        "applied": not found.is_refused,
    }


def turns_taken(found: Plan, history: History) -> list[AgentTurn]:
    """The agents' turns that a plan takes work of, oldest first; of a redo, those whose work it brings back."""
    units = {unit for step in found.taken for unit in step.units if unit.seq in history.by_seq}
    work: set[Unit] = set()
    gone: set[Unit] = set()  # taken before, by what this takes too
    for unit in sorted(units, reverse=True):
        if unit not in gone and (change := history.by_seq[unit.seq].changes.get(unit.path)) is not None:
            took = {Unit(seq, unit.path) for seq in change.took}
            gone |= took
            work |= {unit} | (took - units)
    whose = {turn for unit in work if unit.seq in history.by_seq for turn in history.by_seq[unit.seq].turns}
    return sorted((history.agent_turns[turn] for turn in whose if turn in history.agent_turns), key=lambda t: t.seq)


def asked(found: AgentTurn) -> dict[str, Any]:
    caller = found.caller
    shown = {"id": found.id, "agent": caller.agent, "session": caller.session, "prompt": found.prompt}
    return {**shown, "forget": way_to_forget(caller.agent)}


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
