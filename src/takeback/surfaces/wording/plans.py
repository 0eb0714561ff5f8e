"""A plan as a person reads it: a heading, one line per step, totals."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from takeback.apply import results
from takeback.errors import TakebackError
from takeback.look import turns_and_calls
from takeback.model.effects import (
    COMPENSATING,
    DRIFTED,
    EXACT,
    FILE,
    FOLDER,
    HELD,
    IRREVERSIBLE,
    MERGED,
    PEOPLE,
    REFUSED,
    STATES,
    UNCERTAIN,
    UNCOVERED,
    UNKNOWN,
    Plan,
    Request,
    Step,
    Turn,
    Unit,
    domain_of,
    same,
    text,
)
from takeback.show.turns import whole_turn
from takeback.show.views import file_diffs
from takeback.store.folder_objects import Difference

from . import effects_outside, git_refs, threads_in_plans, ways
from .diffs import counts
from .screen import Screen
from .text import cells, clip, clip_path, counted, listed, pad, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from takeback.journal.history import History
    from takeback.show.views import FileDiff
    from takeback.workspace import Workspace

_ORDER = (EXACT, MERGED, COMPENSATING, HELD, DRIFTED, UNCOVERED, IRREVERSIBLE, UNKNOWN, REFUSED)  # of the totals
MANY = 40  # steps; from here on a screenful is shown
_OVERVIEW = 500  # characters of what a step does; the question for it, `show` and --json have all of it
_KINDS = {PEOPLE: "people's", UNCERTAIN: "uncertain"}  # of work that a plan asks about
_UNSURE = " (uncertain)"
NOT_KNOWN = "not known whose"
_MOST_FORCED = 12  # names of what others changed, and force takes
_FEW_LEFT = 5  # names of what is left, unless all steps are to be shown
_LARGEST_COUNTED = 256 << 10  # bytes of a file whose changed lines are counted


def lines(
    terminal: Screen, workspace: Workspace, plan: Plan, all_steps: bool = False, fuller: Plan | None = None
) -> Iterator[str]:
    """`fuller` takes what the plan asks about too: what it does besides stands apart."""
    history = workspace.history()
    for line in effects_outside.wrapped(terminal, heading(plan, history), 0):
        yield terminal.style(line, "bold")
    yield from _step_lines(terminal, workspace, plan, all_steps)
    if plan.steps:
        yield totals(plan)
    if fuller is None:
        yield from left_lines(plan, history, terminal.typed, all_steps)
    else:
        since = " since then" if plan.request.verb == "rollback" else ""
        yield terminal.style(f"asked about, {work_said(plan.asks, history)}{since}:", "bold")
        if UNCERTAIN in plan.asks:
            yield from _doubts(plan.asks[UNCERTAIN], history)
        yield from _step_lines(terminal, workspace, besides(plan, fuller), all_steps)
        yield f"with it {totals(fuller)}"
        yield from left_lines(fuller, history, terminal.typed, all_steps)  # whatever is answered
    yield from unrecorded_lines(workspace, plan)
    for line in running_lines(fuller or plan, history):
        yield from effects_outside.wrapped(terminal, line, 2)


def besides(plan: Plan, fuller: Plan) -> Plan:
    """The fuller plan without the steps that the other one has just so."""
    known = {s[:5] for s in plan.steps}
    return fuller._replace(steps=tuple(s for s in fuller.steps if s[:5] not in known))


def _doubts(units: Iterable[Unit], history: History) -> Iterator[str]:
    """Why it is not known whose work it is."""
    units = list(units)
    ids = dict.fromkeys(id for seq in sorted({unit.seq for unit in units}) for id in history.by_seq[seq].calls)
    for bracket in (history.brackets[id] for id in ids if id in history.brackets):
        why = "nobody knows when it began" if bracket.prompted else "nobody knows when it ended"
        yield f"  {safe(bracket.caller.agent)} or you: {why} ({safe(clip(bracket.call.summary, 60))})"
    for act in (act for seq in sorted({unit.seq for unit in units}) if (act := history.act_of(seq)) is not None):
        yield f"  not known whose: {safe(clip(act.summary, 60))}"


def kinds_said(asks: Iterable[str]) -> str:
    """'people's work': the kinds of work that a plan asks about."""
    return " and ".join(f"{_KINDS.get(kind, kind)} work" for kind in sorted(asks))


def asked_said(plan: Plan) -> str:
    """What a plan asks about; where it takes changes of people by force, their other work."""
    return _other(kinds_said(plan.asks), plan)


def _other(said: str, plan: Plan) -> str:
    return said.replace("people's work", "people's other work", 1) if plan.forced else said


def kept_said(plan: Plan, kind: str, history: History) -> str:
    """The same, of one kind that stays, as `work_said` has it."""
    return _other(work_said({kind: plan.asks[kind]}, history), plan)


def forced_said(plan: Plan, history: History) -> str:
    """'with a person's changes to a.txt, b.txt': what of others' work a plan takes by force."""
    by_whom: dict[str, list[bytes]] = {}
    for step in plan.taken:
        for name in _names_of(_forced(step, plan), history):
            by_whom.setdefault(name, []).append(step.path)
    told = []
    for name, found in sorted(by_whom.items()):
        paths = dict.fromkeys(found)
        told.append(f"{_change(name, len(paths))} to {listed([safe(_named(path)) for path in paths], _MOST_FORCED)}")
    return f"with {' and '.join(told)}" if told else ""


def _forced(step: Step, plan: Plan) -> list[Unit]:
    return [unit for unit in step.units if unit in plan.forced] if plan.forced else []


def _change(name: str, count: int = 1) -> str:
    what = "change" if count == 1 else "changes"
    if name.endswith(_UNSURE) or name == NOT_KNOWN:
        return f"{what} not known whose" if count > 1 else f"a {what} not known whose"
    return f"{name}'s {what}"


def _step_lines(terminal: Screen, workspace: Workspace, plan: Plan, all_steps: bool) -> Iterator[str]:
    rows, hidden = shown(terminal, workspace, plan, all_steps)
    domains = max((cells(row.domain) for row in rows), default=0)
    widths = [cells(r.name) for r in rows if not r.origin or cells(r.name) <= max(24, terminal.width // 2)]
    names = max(widths, default=0)
    for row in rows:
        head = f"  {pad(row.domain, domains)}  {row.sign}  "
        line = f"{head}{pad(row.name, names)}  {row.verdict}"
        indent = " " * cells(head)
        if row.origin and (cells(row.name) > names or (terminal.out_is_tty and cells(line) > terminal.width)):
            room = terminal.width - len(indent)
            cut = terminal.out_is_tty and not all_steps
            name = [clip(row.name, room)] if cut else effects_outside.wrapped(terminal, row.name, len(indent))
            yield from (head + name[0], *name[1:], indent + row.verdict)
        else:
            yield line
        if row.origin:
            yield indent + terminal.style(row.origin, "dim")
    if hidden:
        if any(step.domain == "git" for step in plan.steps):
            yield f"  {git_refs.amounts(plan.steps)}"
        yield terminal.style(f"  … and {hidden:,} more (see all: --all-steps or takeback diff)", "dim")


def shown(terminal: Screen, workspace: Workspace, plan: Plan, all_steps: bool = False) -> tuple[list[Shown], int]:
    """The steps as they are printed, or a screenful of them, and how many more there are."""
    counted_refs = git_refs.is_counted(plan.steps)
    joined = [git_refs.Joined(step) for step in plan.steps] if all_steps else git_refs.joined(plan.steps)
    chosen = joined if all_steps else some(joined, terminal, git_refs.current(workspace, plan.steps, read))
    cheap, again = len(chosen) <= MANY, plan.request.verb == "redo"
    told = _whose(plan, workspace.history())
    rows = []
    for found in chosen:
        row = _row(terminal, workspace, found.step, cheap, again, all_steps, counted_refs)
        whose = told(found.step) if not row.origin else ""
        rows.append(row._replace(domain=found.step.domain, verdict=f"{row.verdict}{whose}"))
    return rows, len(plan.steps) - sum(found.steps for found in chosen)


def _whose(plan: Plan, history: History) -> Callable[[Step], str]:
    """Whose work a step takes: said where a plan may take work of agents and of people, and of what is not only the
    work of those whom it is about."""
    request = plan.request
    by_path = request.verb == "revert" and request.paths and not request.rows
    says_all = request.verb == "rollback" or by_path
    asked_for = set(request.turns), set(request.rows)
    if not history.has_agents or request.verb not in ("rollback", "revert", "undo"):
        return lambda step: ""

    def is_plain(unit: Unit) -> bool:
        turns, rows = asked_for
        is_theirs = history.by_seq[unit.seq].id in rows or bool(history.whose(unit) & turns)
        return is_theirs and unit.seq not in history.uncertain_rows

    def told(step: Step) -> str:
        if not step.taken or step.domain not in STATES:
            return ""
        by_force = _forced(step, plan)
        units = [unit for unit in step.units if unit.seq in history.by_seq and unit not in by_force]
        names = _names_of(units, history) if says_all or not all(map(is_plain, units)) else []
        more = " and ".join(map(_change, _names_of(by_force, history)))
        said = [*names, *([f"with {more}"] if more else [])]
        return f" · {', '.join(said)}" if said else ""

    return told


def _names_of(units: Iterable[Unit], history: History) -> list[str]:
    """Who did these: agents, people, take-backs."""
    names: set[str] = set()
    for unit in units:
        work = history.work_of(unit)
        names |= set() if work else {"a take-back"}
        for each in work:
            unsure = _UNSURE if each.seq in history.uncertain_rows else ""
            names |= {(safe(actor) or nobody(history, each)) + unsure for actor in history.actors(each)}
    return sorted(names)


def nobody(history: History, unit: Unit) -> str:
    """Who did what no turn did: a person, unless an agent's command was left running, which may have."""
    return NOT_KNOWN if history.may_be_left_running(unit) is not None else "a person"


def work_said(asks: Mapping[str, Iterable[Unit]], history: History) -> str:
    """The same as `kinds_said`, with the command in the background that may have done what seems to be people's."""
    running = {b.id: b for unit in asks.get(PEOPLE, ()) if (b := history.may_be_left_running(unit)) is not None}
    said = kinds_said(asks)
    if not running:
        return said
    agents = " and ".join(sorted({safe(b.caller.agent) for b in running.values()}))
    return said.replace("people's work", f"work that is not known whose, people's or of what {agents} left running", 1)


class Shown(NamedTuple):
    """One step as it is printed; only what acts outside the files says where it came from."""

    sign: str
    name: str
    verdict: str
    origin: str = ""
    domain: str = ""


def some(steps: list[git_refs.Joined], terminal: Screen, current: set[bytes]) -> list[git_refs.Joined]:
    """All steps, or as many as a screen holds: what is kept is never crowded out by what is taken, nor HEAD and its
    branch by other refs."""
    if len(steps) < MANY:
        return steps
    room = max(12, min(MANY, terminal.height - 6) if terminal.out_is_tty else 24)
    first = [at for at, (step, _) in enumerate(steps) if git_refs.is_first(step, current)][: room // 2]
    room -= len(first)
    others = [at for at in range(len(steps)) if at not in first]
    kept = [at for at in others if not steps[at].step.taken][: room // 2]
    taken = [at for at in others if steps[at].step.taken][: room - len(kept)]
    return [steps[at] for at in sorted([*first, *taken, *kept])]


def unrecorded_lines(workspace: Workspace, plan: Plan) -> Iterator[str]:
    """What of git is not recorded, unless a step says so already."""
    if (plan.request.only and "git" not in plan.request.only) or "git" in plan.request.without:
        return  # nor is the tree there to be looked at, where it is about threads alone
    for why in workspace.git_not_recorded():
        if not any(step.note == why for step in plan.steps):
            yield f"git: {safe(why)}"


def running_lines(plan: Plan, history: History) -> Iterator[str]:
    """Calls that will do more after this."""
    for bracket in turns_and_calls.left_at_work(history, plan):
        waits = " or waits for your answer" if bracket.prompted else ""
        what = f"{safe(bracket.caller.agent)}'s {safe(clip(bracket.call.summary, 60))}"
        yield f"{what} is still running{waits}: what it does after this stays"


def heading(plan: Plan, history: History) -> str:
    order = ", newest first" if any(step.domain not in STATES for step in plan.steps) else ""
    return f"{_aim(plan, history)} · {counted(len(plan.steps), 'step')}{order}"


def _aim(plan: Plan, history: History) -> str:
    request = plan.request
    if request.verb == "rollback":
        return f"Back to {safe(request.label)}"
    if request.verb == "restore":
        return f"Restore from {safe(request.label)}"
    if request.verb == "undo":
        names = listed_turns(request.turns, history)
        return f"Undo {_which_turns(plan, history)} ({names})" if names else "Undo"
    if request.verb == "redo":
        found = [history.takebacks[id] for id in request.takebacks if id in history.takebacks]
        named = [t for t in found if t.rows] or found
        took = _taken_then(named[0].request, history) if len(named) == 1 else ""
        which = ", ".join(f"{t.verb} {t.id[:8]}" for t in named[:4])
        return f"Redo {which} ({took})" if took else f"Redo {which}".rstrip()
    if request.verb == "compensate":
        since = f" since {safe(request.label)}" if request.label else ""
        return f"Take back what stands outside the files{since}"
    turn = whole_turn(history, request._replace(paths=()))
    whose = listed_turns([turn], history) if turn is not None else ", ".join(id[:8] for id in request.rows[:4])
    if not request.paths:
        return f"Take back {whose}" if turn is not None else f"Revert {whose}"
    return f"Revert {listed([text(p) for p in request.paths])}" + (f" of {whose}" if whose else "")


def _which_turns(plan: Plan, history: History) -> str:
    """'the last turn', 'the last 2 turns'; where other turns came after, which, and that these stay."""
    turns, own = plan.request.turns, {unit.seq for step in plan.steps for unit in step.units}
    newest = max((seq for seq in own if history.turns(seq) & set(turns)), default=0)
    if not newest or plan.request.everything or not has_turn_after(newest, turns, history):
        return "the last turn" if len(turns) == 1 else f"the last {len(turns)} turns"
    ids = [history.agent_turns[turn].id if turn in history.agent_turns else turn.number for turn in turns]
    known = ", ".join(id[:8] for id in ids[:3] if not id.isdecimal())
    named = f"the turn {known}".rstrip() if len(turns) == 1 else f"{len(turns)} turns"
    return f"{named}, later ones stay"


def earlier_turn(turn: Turn, history: History) -> str:
    """The id of a turn that is not the last one; else nothing: then undo goes to it by itself."""
    newest = max((e.seq for e in history.effects if turn in history.turns(e.seq)), default=0)
    id = history.agent_turns[turn].id if turn in history.agent_turns else turn.number
    return id if not id.isdecimal() and has_turn_after(newest, [turn], history) else ""


def has_turn_after(seq: int, turns: Sequence[Turn], history: History) -> bool:
    """Whether work of another turn stands that was done later, and that no undo has stepped over."""
    for effect in history.effects:
        others = history.turns(effect.seq) - set(turns) if effect.seq > seq and not effect.takeback else ()
        for path in effect.changes if others else ():
            unit = Unit(effect.seq, path)
            if unit in history.live and any((turn, unit) not in history.passed for turn in others):
                return True
    return False


def _taken_then(request: Request, history: History) -> str:
    """What the take-back was about that is now taken back: turns, or the moment that it went to."""
    return f"to {safe(request.label)}" if request.verb == "rollback" else listed_turns(request.turns, history)


def _row(
    terminal: Screen,
    workspace: Workspace,
    step: Step,
    cheap: bool,
    again: bool,
    whole: bool = False,
    counted_refs: bool = False,
) -> Shown:
    """Sign, name with counts, and verdict with its note."""
    if (act := effects_outside.act_of(step, workspace.history())) is not None:
        name = effects_outside.describer(workspace)(act) if step.taken or step.verdict == REFUSED else act.summary
        told = effects_outside.verdict(terminal, step, act, name, workspace)
        if len(name) > _OVERVIEW and not whole:
            name = f"{name[:_OVERVIEW]}… ({len(name) - _OVERVIEW:,} more)"
        return Shown(
            effects_outside.sign(terminal, step.verdict),
            safe(name),
            told,
            effects_outside.origin(act, workspace.clock()),
        )
    mark, colour = _sign(step)
    if step.domain == "git":
        name = safe(git_refs.name(workspace, step, read, counted_refs))
        return Shown(terminal.style(mark, colour), name, verdict(terminal, step, again))
    if step.domain == "state":
        told = verdict(terminal, step, again) if step.note or not step.taken else step.verdict
        name = threads_in_plans.name(workspace, step, read, again)
        return Shown(terminal.style("↩" if step.taken else mark, colour), name, told)
    state = step.goal or step.expected
    folder = "/" if state is not None and state.kind == FOLDER and step.path else ""
    name = clip_path(safe(text(step.path) or ".") + folder, max(24, terminal.width - 44))
    changed = _counts(terminal, workspace, step) if cheap and step.taken else ""
    return Shown(terminal.style(mark, colour), f"{name} {changed}".rstrip(), verdict(terminal, step, again))


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


def verdict(terminal: Screen, step: Step, again: bool = False) -> str:
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


def _counts(terminal: Screen, workspace: Workspace, step: Step) -> str:
    """+n −n of a file that is small enough to count, as it will change."""
    was, goal = step.expected, step.goal
    if was is None or goal is None or not was.kind == goal.kind == FILE or was.content == goal.content:
        return ""
    if max(was.size, goal.size) > _LARGEST_COUNTED:
        return ""
    from takeback.text.linediff import count, hunks, is_binary

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
    found = [Difference(s.path, s.expected, s.goal) for s in plan.taken if s.domain == "files" and s.path]

    def get(content: bytes) -> bytes:
        return read(workspace, content)

    return file_diffs(found, get, get)


def totals(plan: Plan) -> str:
    by_verdict: dict[str, int] = dict.fromkeys(_ORDER, 0)
    for step in plan.steps:
        by_verdict[step.verdict] = by_verdict.get(step.verdict, 0) + 1
    return " · ".join(f"{n:,} {verdict}" for verdict, n in by_verdict.items() if n)


def listed_turns(turns: Sequence[Turn], history: History, most: int = 3) -> str:
    """'claude “add a login form”, by hand': agents' turns with what they were asked, others by who it was."""
    names = []
    for turn in turns:
        asked = history.agent_turns.get(turn)
        prompt = f" “{clip(safe(asked.prompt), 48)}”" if asked is not None and asked.prompt else ""
        names.append(f"{safe(turn.actor) or 'by hand'}{prompt or _command(turn, history)}")
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:most]) + (", …" if len(unique) > most else "")


def _command(turn: Turn, history: History) -> str:
    """What was run, or the moment that was watched."""
    did = next((e for e in reversed(history.effects) if turn in e.turns), None)
    if turn.actor not in ("run", "watch") or did is None:
        return ""
    command = did.summary.removeprefix("run: ").partition(" · ")[0]
    told = f"“{clip(safe(command), 48)}”" if turn.actor == "run" else time.strftime("%H:%M:%S", time.localtime(did.at))
    return f" {told}"


def left_lines(
    plan: Plan, history: History, word: ways.Typed = ways.from_root, everything: bool = False
) -> Iterator[str]:
    """What stays though it is in range: work that a person was not asked about, others' work, an agent's own."""
    for kind, units in plan.asks.items():
        names = _names(units, plan, history)
        is_off = plan.request.verb == "rollback" and not plan.request.own
        to = f"; so the tree is not wholly at {safe(plan.request.label)}" if is_off else "; it may be yours"
        more = f"take it too: {ways.with_what_is_asked(plan, history, word)}"
        told = f"{_some(names, everything)} ({counted(len(names), 'path')})"
        yield f"left as it is, {kept_said(plan, kind, history)}: {told}{to}; {more}"
    if plan.request.verb in ("undo", "revert") and history.turns_named(plan.request):
        yield from _shared_lines(plan, history, word, everything)
        yield from own_lines(plan)
        return
    if plan.new:
        yield _new_line(plan, history, word, everything)
    others = others_work(plan, history)
    if others and plan.request.verb == "revert":
        theirs = [u for u in plan.left if _named(u.path) in others]
        yield (
            f"left as it is, people's work: {_some(others, everything)}; take it too: "
            f"{ways.revert(history, theirs, word)[0]}; as a checkpoint has it: takeback restore CHECKPOINT PATH"
        )
    elif others:
        named = f"{_some(others, everything)} ({counted(len(others), 'path')}"
        more = "; take it too with --all" if plan.request.verb != "compensate" else ""
        yield f"left as it is, others' work: {named}{more})"
    yield from own_lines(plan)


def _shared_lines(plan: Plan, history: History, word: ways.Typed, everything: bool) -> Iterator[str]:
    """What others had a part in, whose turns stand: who they are, and the command that takes it too."""
    kept = {step.path for step in plan.kept}
    by_reason: dict[str, list[results.Left]] = {}
    for left in results.left_by(history, plan.request, plan.others_work, kept):
        by_reason.setdefault(left.why, []).append(left)
    for why, found in by_reason.items():
        kind = "shared" if why.startswith(results.SHARED) else "others'"
        units = [unit for unit in plan.others_work if unit.path in {left.unit.path for left in found}]
        more = "" if "takeback " in why else f"; take it too: {ways.revert(history, units, word)[0]}"
        names = _some([safe(left.name) for left in found], everything)
        yield f"left as it is, {kind} work: {names} ({safe(why.removeprefix(results.SHARED))}){more}"


def _new_line(plan: Plan, history: History, word: ways.Typed, everything: bool) -> str:
    """What a restore leaves in the folders that were named, as it was not there then; named itself, it would go."""
    request = plan.request
    known = [path for path in plan.new if history.is_made_since(path, request.since)]
    as_now, them = ("as it is", "it") if len(plan.new) == 1 else ("as they are", "them")
    paths = " ".join(map(word, known)) if everything or len(known) <= _FEW_LEFT else "PATH…"
    away = f"; take {them} away: takeback restore {request.checkpoint[:8]} {paths}" if known else ""
    names = _some([safe(text(path)) for path in plan.new], everything)
    return f"not in {safe(request.label)}, and left {as_now}: {names}{away}"


def _some(names: Sequence[str], everything: bool) -> str:
    """The first names, and which option names the others."""
    if everything or len(names) <= _FEW_LEFT:
        return listed(names, len(names))
    return f"{listed(names, _FEW_LEFT)} (see all: --all-steps)"


def own_lines(plan: Plan) -> Iterator[str]:
    if plan.own:
        names = [text(path) for path in sorted(plan.own)]
        them = "it" if len(names) == 1 else "them"
        yield f"left alone: {listed(names, 5)} (an agent's own; name {them} to take {them} back)"


def _named(path: bytes) -> str:
    return threads_in_plans.called(path) if domain_of(path) == "state" else text(path)


def others_work(plan: Plan, history: History) -> list[str]:
    """What only others did in range, as paths or in words; where they changed ours too, its step says so."""
    stepped = {step.path for step in plan.steps}
    asked = {unit for units in plan.asks.values() for unit in units}
    return _names((u for u in plan.left if u not in asked and u.path not in stepped), plan, history)


def _names(units: Iterable[Unit], plan: Plan, history: History) -> list[str]:
    named = {_named(u.path) for u in units if u.path not in plan.own}
    return sorted(history.acts[name].summary if name in history.acts else name for name in named)
