"""What came of a take-back, in words: what was taken, what was kept and how to take it too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from takeback.agents.sessions.conversation import way_to_forget
from takeback.apply import results
from takeback.domains.git.repository import INDEX, amount, called
from takeback.model.effects import (
    DONE,
    FAILED,
    FOLDER,
    KEPT,
    STATES,
    UNKNOWN,
    Outcome,
    Result,
    Unit,
    domain_of,
    same,
    text,
)
from takeback.show.turns import meant

from . import effects_outside, outcomes, way_back, ways
from . import threads_in_plans as threads
from .json_shapes import turns_taken
from .plans import MANY, asked_said, forced_said, kept_said, kinds_said, listed_turns
from .screen import Screen
from .text import clip, counted, listed, safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from takeback.journal.history import History
    from takeback.model.effects import Outcome, Plan, State, Step
    from takeback.model.outside import Act
    from takeback.workspace import Workspace

    from .screen import Screen


_TOOK = {"redo": "brought back", "restore": "restored"}
_MOST_KEPT = 20
_FEW = 3  # of what was done, in the sentence that tells it
_MOST_NAMED = 12  # of what was kept or failed, in the sentence that tells it
_SHORT = 100  # cells of an inverse, where it is only to be told from others


def report(terminal: Screen, workspace: Workspace, outcome: Outcome, forgets: bool = False) -> int:
    """Prints it all; returns the exit code: 3 where a step of this plan was not done. Where conversations are dealt
    with too (`forgets`), it says nothing of them."""
    history = workspace.history()
    terminal.say(sentence(outcome, history))
    failures(terminal, workspace, outcome)
    for line in kept_lines(outcome, history, terminal.typed):
        terminal.hint(line)
    for line in left_lines(outcome, history, terminal.typed) if outcome.finished_earlier else ():
        terminal.hint(line)
    for line in threads.lines(outcome.plan):
        terminal.hint(line)
    if outcome.id and _is_cut(outcome):
        terminal.hint(f"all of it by name: takeback show {outcome.id[:8]}")
    if not outcome.whole:
        terminal.say_withheld()
    if outcome.plan.asks and outcome.id:
        more = ways.with_what_is_asked(outcome.plan, history, terminal.typed)
        terminal.hint(f"take {asked_said(outcome.plan)} too: {more}")
    if outcome.finished_earlier:
        terminal.hint("nothing more was done; run the command again for what you asked")
    elif can_be_redone(outcome) and (way := way_back.of(outcome, history, terminal.typed)):
        terminal.hint(f"take this back: {way}")
    for line in conversations(outcome, history) if not forgets else ():
        terminal.hint(line)
    return 0 if outcome.whole else 3


def conversations(outcome: Outcome, history: History) -> Iterator[str]:
    """How each agent whose work was taken back can be made to forget it too."""
    if outcome.plan.request.verb == "redo" or not any(r.result == DONE for r in outcome.results):
        return
    for agent in dict.fromkeys(asked.caller.agent for asked in turns_taken(outcome.plan, history)):
        if way := way_to_forget(agent):
            yield f"{safe(agent)} still remembers it; to drop it from the conversation, {way}"


def can_be_redone(outcome: Outcome) -> bool:
    """Whether it changed files: what was taken back outside them stays so."""
    untouched = _outside(outcome.plan) | outcome.already
    return bool(outcome.id) and any(r.result == DONE and r.path not in untouched for r in outcome.results)


def is_nothing(outcome: Outcome) -> bool:
    """Whether there was nothing to do, and nothing to be named that was kept."""
    asked = bool(outcome.id and outcome.plan.asks)
    return not outcome.results and not outcome.finished_earlier and not asked


def failures(terminal: Screen, workspace: Workspace, outcome: Outcome) -> None:
    """What was not done, and what to do about it. Outside the files that is the inverse, not what it takes back."""
    history, outside, describe = workspace.history(), _outside(outcome.plan), effects_outside.describer(workspace)
    for result in outcome.results:
        name = _name(result, history, outside)
        if result.result in (FAILED, UNKNOWN) and result.path in outside and (id := text(result.path)) in history.acts:
            name = f"{safe(clip(describe(history.acts[id]), _SHORT))}, to take back {name}"
        if result.result == FAILED:
            terminal.warn(f"  failed: {name}: {safe(result.note)}")
        elif result.result == UNKNOWN:
            terminal.warn(f"  unknown: {name}: {safe(result.note)}")
            if (act := history.acts.get(text(result.path))) is not None and act.sayings:
                terminal.warn(f"    → find out, then: {act.resolving}")
    if any(r.result == FAILED and r.path in outside for r in outcome.results):
        terminal.warn("  → what failed outside the files took no effect there: run it again once that is mended")


def sentence(outcome: Outcome, history: History) -> str:
    """'took back 3 files: src/auth.py, …; kept README.md, changed by you since'"""
    request = outcome.plan.request
    verb = request.verb
    by_result: dict[str, list[Result]] = {DONE: [], KEPT: [], FAILED: [], UNKNOWN: []}
    for result in outcome.results:
        by_result[result.result].append(result)
    done, kept, failed, unknown = by_result.values()
    outside = _outside(outcome.plan)

    def names(results: Sequence[Result]) -> str:
        return _names(results, history, outside)

    took = _TOOK.get(verb, "took back")
    already = outcome.already
    was_so = list({r.path: r for r in done if r.path in already}.values())
    states = [r for r in done if r.path not in outside and r.path not in already]
    files = _net([r for r in states if domain_of(r.path) == "files"], outcome.plan)
    git = {r.path for r in states if domain_of(r.path) == "git"}
    moved = {r.path for r in states if domain_of(r.path) == "state"}
    beyond = [r for r in done if r.path in outside]
    told = [f"{_counted(files, outcome.plan)}: {names(files)}"] if files else []
    told += [f"in git {safe(amount(git))}"] if git else []
    told += [threads.amount(moved)] if moved else []
    told += [f"{counted(len(beyond), 'effect')} outside the files: {names(beyond)}"] if beyond else []
    whose = f"{_turns(outcome.plan, history)}: " if told else ""
    parts = [f"{took} {whose.removeprefix(': ')}{'; and '.join(told) or 'nothing'}"]
    if was_so and not told:
        parts = [f"{_over(outcome.plan, history)}: {names(was_so)} {_were_so(was_so, verb)}"]
    if done and (with_it := forced_said(outcome.plan, history)):
        parts.append(with_it)
    if kept:
        is_told_below = any(r.path in outside for r in kept)  # each with its reason
        parts.append(f"kept {names(kept)}" + ("" if is_told_below else _why(kept)))
    if failed:
        parts.append(f"could not do {names(failed)}")
    if unknown:
        parts.append(f"nobody knows what came of {names(unknown)}")
    told_kept = {r.path for r in kept}
    for kind, units in outcome.plan.asks.items():
        if left := sorted({_left_name(unit, history) for unit in units if unit.path not in told_kept}):
            parts.append(f"kept {kept_said(outcome.plan, kind, history)}: {listed(left, _MOST_NAMED)}")
    if outcome.plan.asks and verb == "rollback":
        parts.append(f"the tree is not wholly at {safe(request.label)}")
    said = "; ".join(parts)
    if outcome.finished_earlier:
        return f"finished the {verb} that was interrupted: {said}"
    if verb == "rollback" and done and outcome.is_there:
        return f"back at {safe(request.label)}: {said}"
    return said


def _over(plan: Plan, history: History) -> str:
    """'stepped back over claude's turn “add a login form”': where nothing that was to be done had to be."""
    if plan.request.verb not in ("undo", "redo"):
        return f"{_TOOK.get(plan.request.verb, 'took back')} nothing"
    way = "forward" if plan.request.verb == "redo" else "back"
    return f"stepped {way} over {_turns(plan, history) or counted(len(plan.request.turns) or 1, 'turn')}"


def _were_so(results: Sequence[Result], verb: str) -> str:
    """'was already as it was before'"""
    was = "was already as it was" if len(results) == 1 else "were already as they were"
    return was if verb == "redo" else f"{was} before"


def _turns(plan: Plan, history: History) -> str:
    """'claude's turn “add a login form”', where what was asked for is turns of agents; else nothing."""
    turns = meant(history, plan.request)
    if not any(turn in history.agent_turns for turn in turns):
        return ""
    if len(turns) > 1:
        return f"{len(turns)} turns ({listed_turns(turns, history)})"
    prompt = clip(safe(history.agent_turns[turns[0]].prompt), 60)
    return f"{safe(turns[0].actor)}'s turn" + (f" “{prompt}”" if prompt else "")


def _net(results: list[Result], plan: Plan) -> list[Result]:
    """Each path once, however many steps it took; what came and went on the way is left out, unless that is all."""
    before: dict[bytes, State] = {}
    after: dict[bytes, State] = {}
    for step in plan.steps:
        if step.taken and step.domain == "files":
            before.setdefault(step.path, step.expected)
            after[step.path] = step.goal
    unique = list({r.path: r for r in results}.values())
    changed = [r for r in unique if r.path not in before or not same(before[r.path], after[r.path])]
    return changed or unique


def _outside(plan: Plan) -> set[bytes]:
    return {s.path for s in plan.steps if s.domain not in STATES}


def _counted(results: Sequence[Result], plan: Plan) -> str:
    """'14 files and 2 folders'"""
    folders = {s.path for s in plan.steps if (state := s.goal or s.expected) is not None and state.kind == FOLDER}
    n = sum(r.path in folders for r in results)
    told = [counted(count, word) for count, word in ((len(results) - n, "file"), (n, "folder")) if count]
    return " and ".join(told)


def _name(result: Result, history: History, outside: set[bytes]) -> str:
    path = text(result.path)
    if result.path in outside and path in history.acts:
        return _act_name(history.acts[path])
    if domain_of(result.path) == "state":
        return threads.called(result.path)
    return safe(called(result.path) if domain_of(result.path) == "git" else path or ".")


def _left_name(unit: Unit, history: History) -> str:
    act = history.act_of(unit.seq)
    return _act_name(act) if act is not None else safe(text(unit.path))


def _act_name(act: Act) -> str:
    return f"{safe(act.summary)} ({act.id[:8]})"


def _names(results: Sequence[Result], history: History, outside: set[bytes]) -> str:
    """Of what was done the plan has every name; what was not is named here."""
    most = _FEW if all(r.result == DONE for r in results) else _MOST_NAMED
    return listed([_name(r, history, outside) for r in results], most)


def _is_cut(outcome: Outcome) -> bool:
    """Whether a result has more names than its sentence."""
    kinds = Counter(r.result for r in outcome.results)
    asked = max((len({unit.path for unit in units}) for units in outcome.plan.asks.values()), default=0)
    most = max((kinds[kind] for kind in kinds if kind != DONE), default=0)
    is_plan_cut = len(outcome.plan.steps) >= MANY  # else its steps have all the names
    return (kinds[DONE] > _FEW and is_plan_cut) or max(most, asked) > _MOST_NAMED


def _why(kept: Sequence[Result]) -> str:
    reasons = {r.note.removesuffix("; kept") for r in kept}
    return f", {safe(reasons.pop())}" if len(reasons) == 1 and "" not in reasons else ""


def kept_lines(outcome: Outcome, history: History, word: ways.Typed = ways.from_root) -> Iterator[str]:
    """Each path that was kept, with the reason and the exact command that takes it too."""
    notes = {(r.path, r.verdict): r.note for r in outcome.results if r.result == KEPT}
    told = 0
    staged: dict[str, list[bytes]] = {}  # entries of the index that nothing here takes, by the reason
    for step in outcome.plan.steps:
        kept_then = outcome.finished_earlier and not step.taken  # by its plan, which has no results here
        key = (step.path, step.verdict)  # of a path with two steps, the one that was kept
        if not (key in notes or kept_then) or (step.taken and not step.units):
            continue
        step = step._replace(note=notes.get(key) or step.note)
        if step.path.startswith(INDEX) and not step.note.startswith("changed "):
            staged.setdefault(step.note, []).append(step.path)
            continue
        told += 1
        if told > _MOST_KEPT and outcome.id:  # else nothing was journaled that would tell the rest
            continue
        if step.domain == "git":
            how = _command(step, history, word) if step.note.startswith("changed ") else ""
            yield f"  kept {safe(called(step.path))}: {safe(step.note)}{how}"
            continue
        if step.domain == "state":
            how = _command(step, history, word) if step.note.startswith("changed ") else ""
            yield f"  kept {threads.called(step.path)}: {safe(step.note)}{how}"
            continue
        if step.domain != "files":
            act = history.acts.get(text(step.path))
            how = effects_outside.giving(act) if act else ""
            more = f" · if something takes it back: {how}" if how else ""
            yield f"  kept {_act_name(act) if act else safe(text(step.path))}: {safe(step.note)}{more}"
            continue
        yield f"  kept {safe(text(step.path))}{_command(step, history, word)}"
    for note, paths in staged.items():
        yield f"  kept {safe(amount(paths) if len(paths) > 1 else called(paths[0]))}: {safe(note)}"
    if told > _MOST_KEPT and outcome.id:
        yield f"  … and {told - _MOST_KEPT:,} more; takeback show {outcome.id[:8]} lists them"


def left_lines(outcome: Outcome, history: History, word: ways.Typed = ways.from_root) -> Iterator[str]:
    """After a take-back that was finished, of which no plan was shown: others' work that it left, with whose it is and
    the command that takes it too."""
    asked = {unit.path for units in outcome.plan.asks.values() for unit in units}  # of which its sentence tells
    found = [left for left in results.others_work(history, outcome) if left.unit.path not in asked | outcome.plan.own]
    for left in found[:_MOST_KEPT]:
        more = "" if "takeback " in left.why else f" · take it too: {ways.revert(history, [left.unit], word)[0]}"
        yield f"  kept {safe(left.name)}: {safe(left.why)}{more}"
    if len(found) > _MOST_KEPT:
        yield f"  … and {len(found) - _MOST_KEPT:,} more; takeback show {outcome.id[:8]} lists them"


def kept_before(plan: Plan, history: History, word: ways.Typed = ways.from_root) -> Iterator[str]:
    """Where there is nothing more to undo: what earlier undos kept, with the command that takes it."""
    request = plan.request
    if request.verb != "undo" or request.turns:
        return
    wanted = {unit for turn, unit in history.passed if request.actors is None or turn.actor in request.actors}
    units = {unit for unit in wanted if unit in history.live and domain_of(unit.path) == "files"}
    if not units or any(unit.seq not in history.by_seq for unit in units):
        return
    names = listed(sorted({text(unit.path) for unit in units}), _MOST_NAMED)
    command = ways.revert(history, units, word)[0]
    yield f"kept by an earlier undo: {names} · take it: {command} --merge, or {command} --force"


def named(results: Sequence[Result], outcome: Outcome, history: History) -> str:
    """'a.txt, b.txt and 3 more'"""
    return _names(results, history, _outside(outcome.plan))


def left_by_abort(outcome: Outcome, history: History) -> Iterator[str]:
    """What an abort left as it is, each with the reason: somebody changed it while the take-back waited."""
    kept = [result for result in outcome.results if result.result == KEPT]
    for result in kept[:_MOST_KEPT]:
        name = _name(result, history, _outside(outcome.plan))
        yield f"  kept {name} as it is now: {safe(result.note) or 'it was changed meanwhile'}"
    if len(kept) > _MOST_KEPT:
        yield f"  … and {len(kept) - _MOST_KEPT:,} more: takeback status shows what differs"


def _command(step: Step, history: History, word: ways.Typed) -> str:
    if step.verdict == "uncovered":
        return f": {safe(step.note or 'it is not captured, so nothing takes it back')}"
    if step.note.startswith("it still holds ") and "/.git, " in step.note:  # which force does not touch
        return f": {safe(step.note)}"
    if not any(unit.seq in history.by_seq for unit in step.units):
        return ""
    command, takes_more = ways.revert(history, step.units, word)
    merging = f", or merge it: {command} --merge" if step.merges else ""
    too = "take it too, with all else of that entry" if takes_more else "take it too"
    return f" · {too}: {command} --force{merging}"


def write_resumed(terminal: Screen, workspace: Workspace, outcome: Outcome, aborted: bool) -> None:
    """What came of finishing it, or of going back from it."""
    history = workspace.history()
    if aborted:
        verb = outcome.plan.request.verb
        if outcome.id in history.takebacks:  # parts of it had ended, around an act outside the files
            terminal.say(f"went back from the last part of the interrupted {verb}; what it had finished stays so")
            terminal.hint("take that back too: takeback redo")
        else:
            kept = [result for result in outcome.results if result.result == KEPT]
            but = f", but for {outcomes.named(kept, outcome, history)}" if kept else ""
            terminal.say(f"went back from the interrupted {verb}: the tree is as before it{but}")
        outcomes.failures(terminal, workspace, outcome)
        for line in outcomes.left_by_abort(outcome, history):
            terminal.hint(line)
        if not outcome.whole:
            terminal.say_withheld()
        return
    terminal.say(outcomes.sentence(outcome, history))
    outcomes.failures(terminal, workspace, outcome)
    for line in outcomes.kept_lines(outcome, history, terminal.typed):
        terminal.hint(line)
    for line in outcomes.left_lines(outcome, history, terminal.typed):
        terminal.hint(line)
    if not outcome.whole:
        terminal.say_withheld()
    if outcome.plan.asks:
        more = ways.with_what_is_asked(outcome.plan, history, terminal.typed)
        terminal.hint(f"take {kinds_said(outcome.plan.asks)} too: {more}")
    if outcomes.can_be_redone(outcome) and (way := way_back.of(outcome, history, terminal.typed)):
        terminal.hint(f"take this back: {way}")
