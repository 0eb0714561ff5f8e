"""The account of a span, as values: what was done, by which prompt, what was taken back and how well, what could not
be, and whether the journal holds. The surfaces write it as a page, as Markdown or as JSON.

    timeline ──► the items of the span ──► Report, every text of it without secrets

It is made to be handed on: what files hold is masked, what was recorded is redacted once more, the text of mails is
left out, and everything that is cut for length says how much is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from . import __version__, filters, names, redact, timeline
from .acts import Act
from .effects import DONE, FAILED, IRREVERSIBLE, KEPT, STATES, UNCOVERED, UNKNOWN, domain_of, raw, text
from .errors import NotFound, TakebackError
from .history import History
from .repository import called
from .timeline import CallItem, Detail, EffectItem, Mark, Timeline, TurnItem
from .typed import TYPE_CHECKING, Any, NamedTuple
from .views import FileDiff

if TYPE_CHECKING:
    from .workspace import Workspace

_FILES = 40  # of one turn, shown line by line
_LINES = 300  # of one file
_ALL_LINES = 20_000  # of the whole report; the newest turns come first
_PATHS = 50  # named of one effect or take-back
_TEXT = 4_000  # characters of one part of a request or an answer
_VALUE = 200  # characters of one value of state
_DIFFERENCES = 30  # of one thread
_BINS = 72  # of the picture, at most
_STEPS = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800)  # seconds of a bin

WHOLE, PARTLY, NOTHING = "whole", "partly", "nothing"  # how well a take-back went


class Span(NamedTuple):
    """What is told of: rows and times from and to, both inclusive."""

    said: str
    first: int = 0
    last: int = 1 << 62
    since: float = 0.0
    until: float = float("inf")
    session: str = ""

    def holds(self, seq: int, at: float) -> bool:
        return self.first <= seq <= self.last and self.since <= at <= self.until


class Attempt(NamedTuple):
    """One try at taking an effect outside the files back."""

    at: float
    result: str  # done, failed, unknown
    note: str


class EffectTold(NamedTuple):
    id: str
    domain: str
    summary: str
    agent: str
    at: float
    verdict: str  # how well it can be taken back; of one outside the files what became of it
    stands: str  # whole, part or none
    undone_by: tuple[str, ...]
    paths: tuple[str, ...]
    more_paths: int
    exchange: tuple[tuple[str, str], ...] = ()  # what was sent, answered or run
    inverse: str = ""  # what takes it back
    attempts: tuple[Attempt, ...] = ()
    left_to_do: str = ""


class CallTold(NamedTuple):
    id: str
    tool: str
    summary: str
    lane: str
    at: float
    state: str
    effects: tuple[EffectTold, ...]  # oldest first


class FileTold(NamedTuple):
    """The net change of one file in a turn, secrets masked; `more_lines` are not shown."""

    diff: FileDiff
    masked: bool
    more_lines: int


class Difference(NamedTuple):
    path: str
    change: str
    before: str
    after: str


class ThreadTold(NamedTuple):
    thread: str
    before: str
    after: str
    differences: tuple[Difference, ...]
    more: int


class TurnTold(NamedTuple):
    id: str
    kind: str  # agent, hand, run, watch
    prompt: str  # or the command, or what was changed
    agent: str
    session: str
    at: float
    until: float
    domains: Mapping[str, int]
    lines: tuple[int, int] | None
    verdicts: Mapping[str, int]
    stands: str
    undone_by: tuple[str, ...]
    checkpoints: tuple[Mark, ...]
    calls: tuple[CallTold, ...]  # oldest first
    effects: tuple[EffectTold, ...]  # found outside of any call, oldest first
    files: tuple[FileTold, ...]
    more_files: int
    threads: tuple[ThreadTold, ...]

    @property
    def all_effects(self) -> tuple[EffectTold, ...]:
        """Each once, though two calls share it."""
        every = [*self.effects, *(effect for call in self.calls for effect in call.effects)]
        return tuple({effect.id: effect for effect in every}.values())


class StepTold(NamedTuple):
    """A step of a take-back that was not done: kept, failed or in doubt, and why."""

    target: str
    result: str
    why: str


class TakebackTold(NamedTuple):
    id: str
    number: int
    verb: str
    summary: str
    at: float
    stands: bool  # not redone since
    well: str  # whole, partly, nothing
    took: tuple[str, ...]  # ids of the turns it took from
    paths: tuple[str, ...]  # that it took back
    more_paths: int
    done: Mapping[str, int]  # verdict → steps
    not_done: tuple[StepTold, ...]
    interrupted: bool
    later: bool  # after the span: it took some of it all the same


class Remains(NamedTuple):
    """What was done in the span and could not be taken back, or of which nobody knows."""

    effect: str
    turn: str
    domain: str
    summary: str
    state: str
    at: float
    why: str
    command: str  # what a person can do about it; may be empty


class Bin(NamedTuple):
    at: float
    effects: Mapping[str, int]  # domain → effects
    takebacks: int


class Activity(NamedTuple):
    step: float  # seconds of one bin
    bins: tuple[Bin, ...]  # without gaps, oldest first


class Loss(NamedTuple):
    entry: str
    kind: str
    path: str
    why: str


class Integrity(NamedTuple):
    """Whether the journal's chain and what it names hold; checked while the report was made."""

    ok: bool
    rows: int
    blobs: int
    head: int
    hash: str  # of the newest row: whoever has it can tell whether anything before was altered
    every_byte: bool
    problems: tuple[str, ...]
    lost: tuple[Loss, ...]
    known_losses: int
    pruned: int  # entries that were forgotten, by a person or by the budget
    partial: tuple[tuple[str, str, str], ...]  # (checkpoint, path, why) that could not be captured


class Totals(NamedTuple):
    turns: int
    prompts: int
    calls: int
    effects: int
    domains: Mapping[str, int]
    files: int
    lines: tuple[int, int]
    verdicts: Mapping[str, int]
    taken_back: int  # effects that do not stand any more
    partly: int
    takebacks: int
    remains: int


class Report(NamedTuple):
    project: str
    root: str
    made: float
    version: str
    span: str
    since: float
    until: float
    agents: Mapping[str, int]  # name → turns
    totals: Totals
    activity: Activity
    turns: tuple[TurnTold, ...]  # oldest first
    takebacks: tuple[TakebackTold, ...]
    remains: tuple[Remains, ...]
    checkpoints: tuple[Mark, ...]
    integrity: Integrity
    notes: tuple[str, ...]  # what is left out


def make(ws: Workspace, span: Span, diffs: bool = True, every_byte: bool = False) -> Report:
    """The account of a span, as of now."""
    with ws._alone():
        return _Writer(ws, span, diffs).report(_integrity(ws, every_byte))


# -- the span ----------------------------------------------------------------


def find_span(ws: Workspace, asked: str = "", since: str = "", session: str = "") -> Span:
    """The span that was meant: FROM..TO, one turn, call or effect, what came after a checkpoint, a time, or a session.
    Each end is a name as everywhere, or a time as for `log since:`."""
    history = ws.history()
    if session:
        return _session(history, session)
    if since:
        at = _moment(ws, since, end=False)
        return Span(f"since {since}", since=at)
    if not asked:
        return Span("everything that is known")
    try:
        found = names.resolve(history, asked)
    except NotFound:
        begin, dots, end = asked.partition("..")
        if not dots:
            return Span(f"since {asked}", since=_moment(ws, asked, end=False))
        return _between(ws, begin, end)
    if found.kind == "checkpoint":
        return Span(f"since {_called(found)}", first=found.seq)
    return Span(f"{found.kind} {_called(found)}", first=found.seq, last=_end_of(history, found))


def _between(ws: Workspace, begin: str, end: str) -> Span:
    history = ws.history()
    span = Span("")
    said = []
    for name, last in ((begin, False), (end, True)):
        if not name:
            said.append("now" if last else "the beginning")
            continue
        try:
            found = names.resolve(history, name)
        except NotFound:
            at = _moment(ws, name, end=last)
            span = span._replace(until=at) if last else span._replace(since=at)
            said.append(name)
            continue
        said.append(_called(found))
        span = span._replace(last=_end_of(history, found)) if last else span._replace(first=found.seq)
    return span._replace(said=f"{said[0]} to {said[1]}")


def _moment(ws: Workspace, value: str, end: bool) -> float:
    try:
        return filters.moment(value, end)(ws.clock())
    except TakebackError:
        raise NotFound(
            f"{value!r} is no checkpoint, turn, effect or time",
            "list them with takeback log, or write a time such as 2h or 2026-01-31T18:00",
        ) from None


def _session(history: History, asked: str) -> Span:
    sessions = list(dict.fromkeys(turn.caller.session for turn in history.agent_turns.values()))
    found = [each for each in sessions if each.casefold().startswith(asked.casefold())]
    if not found:
        known = ", ".join(each for each in sessions[-4:] if each) or "none yet"
        raise NotFound(f"no session's name begins with {asked!r}", f"the newest are: {known}")
    return Span(f"session {found[-1]}" if len(found) == 1 else f"sessions {asked}…", session=asked)


def _end_of(history: History, found: names.Named) -> int:
    """The last row that belongs to an entry."""
    if found.kind == "takeback":
        return max([found.seq, *history.takebacks[found.id].rows])
    rows = set(history.rows_of_call(found.id) or ()) if found.kind in ("turn", "call") else set()
    return max([found.seq, *(e.seq for e in history.effects if e.id in rows)])


def _called(found: names.Named) -> str:
    return f'{found.id[:8]} "{found.label}"' if found.label else found.id[:8]


# -- writing it --------------------------------------------------------------


class _Writer:
    def __init__(self, ws: Workspace, span: Span, diffs: bool) -> None:
        self.ws = ws
        self.span = span
        self.timeline = Timeline(ws)
        self.history = ws.history()
        self.acts: dict[str, Act] = {act.id: act for act in self.history.ledger()} if self.history.acts else {}
        self.asked = {asked.id: asked for asked in self.history.agent_turns.values()}
        self.seqs = {e.id: e.seq for e in self.history.effects if not e.takeback}
        self.seqs |= {each.id: each.seq for each in self.history.checkpoints}
        self.seqs |= {each.id: each.seq for each in self.history.takebacks.values()}
        self.diffs = diffs
        self.lines_left = _ALL_LINES
        self.undiffed = 0  # turns whose lines are not shown

    def report(self, integrity: Integrity) -> Report:
        items = self._chosen()
        told = [self._turn(item) for item in items if item.kind not in (timeline.TAKEBACK, timeline.CHECKPOINT)]
        turns = tuple(turn for turn in reversed(told) if turn is not None)
        shown = {turn.id for turn in turns}
        takebacks = tuple(reversed(list(self._takebacks(items, shown))))
        remains = tuple(self._remains(turns))
        marks = {mark.id: mark for item in items for mark in item.marks if self._holds(mark.id, mark.at)}
        times = [*(mark.at for mark in marks.values()), *(back.at for back in takebacks)]
        times += [at for turn in turns for at in (turn.at, turn.until)]
        agents: dict[str, int] = {}
        for turn in turns:
            who = turn.agent or ("by hand" if turn.kind == timeline.HAND else turn.kind)
            agents[who] = agents.get(who, 0) + 1
        found = Report(
            self.ws.root.name, str(self.ws.root), self.ws.clock(), __version__, self.span.said,
            min(times, default=0.0), max(times, default=0.0), agents, self._totals(turns, takebacks, remains),
            _activity(turns, takebacks), turns, takebacks, remains,
            tuple(sorted(marks.values(), key=lambda mark: mark.at)), integrity, tuple(self._notes()),
        )  # fmt: skip
        return Report(*_clean(found, {}))

    def _holds(self, id: str, at: float) -> bool:
        return self.span.holds(self.seqs.get(id, 0), at)

    def _chosen(self) -> list[TurnItem]:
        """The items of the span, newest first; with them the take-backs that took from those."""
        quoted = '"' + self.span.session.replace('"', "") + '"'
        found = self.timeline.turns(f"session:{quoted}" if self.span.session else "", counted=1 << 30)
        chosen = [item for item in found if self._is_in(item)]
        ids = {item.id for item in chosen}
        if self.span.session:
            found = self.timeline.turns("kind:takeback")
        took = [item for item in found if item.kind == timeline.TAKEBACK and item.id not in ids]
        return [*(item for item in took if ids.intersection(item.took)), *chosen]

    def _is_in(self, item: TurnItem) -> bool:
        if item.kind in (timeline.TAKEBACK, timeline.CHECKPOINT):
            return self._holds(item.id, item.at)
        asked = self.asked.get(item.id)
        if asked is not None and self.span.holds(asked.seq, asked.at):
            return True
        return any(self._holds(id, at) for id, at in self._effects_of(item))

    def _effects_of(self, item: TurnItem) -> Iterable[tuple[str, float]]:
        for child in self.timeline.children(item.id):
            for id in child.effects if isinstance(child, CallItem) else (child.id,):
                yield id, child.at

    # -- turns ---------------------------------------------------------------

    def _turn(self, item: TurnItem) -> TurnTold | None:
        calls, effects = [], []
        for child in reversed(self.timeline.children(item.id)):
            if isinstance(child, CallItem):
                mine = [e for id in child.effects if isinstance(e := self.timeline.item(id), EffectItem)]
                told = tuple(self._effect(e) for e in mine if self._holds(e.id, e.at))
                bracket = self.history.brackets[child.id]
                if told or self.span.holds(bracket.seq, child.at):
                    calls.append(CallTold(child.id, child.tool, child.title, child.lane, child.at, child.state, told))
            elif self._holds(child.id, child.at):
                effects.append(self._effect(child))
        asked = self.asked.get(item.id)
        if not calls and not effects and (asked is None or not self.span.holds(asked.seq, asked.at)):
            return None
        files, more, threads = self._changed(item)
        return TurnTold(
            item.id, item.kind, item.title, item.agent, asked.caller.session if asked else "", item.at, item.until,
            item.totals, item.lines, item.badges, item.stands, item.undone_by, item.marks, tuple(calls),
            tuple(effects), files, more, threads,
        )  # fmt: skip

    def _effect(self, item: EffectItem) -> EffectTold:
        paths = item.paths[:_PATHS]
        told = EffectTold(
            item.id, item.domain, item.title, item.agent, item.at, item.badge, item.stands, item.undone_by, paths,
            len(item.paths) - len(paths),
        )  # fmt: skip
        if item.id not in self.acts:
            return told
        detail = self.timeline.detail(item.id)
        attempts = tuple(Attempt(u.at, u.result, u.note) for u in detail.shown.undos)
        return told._replace(
            exchange=tuple(_exchange(detail)),
            inverse=detail.shown.inverse if detail.act is not None and detail.act.inverse is not None else "",
            attempts=attempts,
            left_to_do=str(self.acts[item.id].did.get("left_to_do", "")),
        )

    def _changed(self, item: TurnItem) -> tuple[tuple[FileTold, ...], int, tuple[ThreadTold, ...]]:
        """What a turn changed in files, line by line, and in threads; while there is room."""
        states = [domain for domain in item.totals if domain in STATES]
        if not states:
            return (), 0, ()
        if not self.diffs or self.lines_left <= 0:
            self.undiffed += 1
            return (), 0, ()
        try:
            detail = self.timeline.detail(item.id, most=_FILES)
        except TakebackError:  # what it holds was pruned, or is damaged, which `integrity` says
            self.undiffed += 1
            return (), 0, ()
        files = []
        for diff in detail.shown.files:
            kept, more = _cut(diff, min(_LINES, max(0, self.lines_left)))
            self.lines_left -= sum(len(hunk.lines) for hunk in kept.hunks)
            files.append(FileTold(kept, diff.path in detail.masked, more))
        return tuple(files), detail.shown.more, tuple(_threads(detail))

    # -- take-backs ----------------------------------------------------------

    def _takebacks(self, items: Sequence[TurnItem], shown: set[str]) -> Iterable[TakebackTold]:
        chosen = [item for item in items if item.kind == timeline.TAKEBACK]
        failed = self._not_done({item.id for item in chosen})
        for item in chosen:
            found = self.history.takebacks[item.id]
            done: dict[str, int] = {}
            paths: dict[str, None] = {}
            for seq in found.rows:
                effect = self.history.by_seq[seq]
                done[effect.verdict] = done.get(effect.verdict, 0) + len(effect.changes)
                paths.update((self._name(path), None) for path in effect.changes)
            missed = {step.target: step for step in failed.get(item.id, ())}
            kept = {self._name(unit.path): self._why_kept(unit.path) for unit in found.kept}
            steps = [*missed.values(), *(StepTold(name, KEPT, why) for name, why in kept.items() if name not in missed)]
            well = WHOLE if paths and not steps else PARTLY if paths else NOTHING
            yield TakebackTold(
                item.id, item.number, found.verb, item.title, item.at, item.stands != timeline.NONE, well, item.took,
                tuple(paths)[:_PATHS], max(0, len(paths) - _PATHS), done, tuple(steps[:_PATHS]), found.interrupted,
                not self._holds(item.id, item.at),
            )  # fmt: skip

    def _not_done(self, ids: set[str]) -> dict[str, list[StepTold]]:
        found: dict[str, list[StepTold]] = {}
        for row in self.ws.store.journal.rows(kinds=("outcome",)) if ids else ():
            if row.body is None or row.body.get("takeback") not in ids:
                continue
            for path, result, note in row.body.get("not_done", ()):
                found.setdefault(row.body["takeback"], []).append(StepTold(self._name(raw(path)), result, note))
        return found

    def _why_kept(self, path: bytes) -> str:
        if (act := self.acts.get(text(path))) is not None and act.verdict in (IRREVERSIBLE, UNCOVERED):
            return str(act.did.get("left_to_do", "")) or "it cannot be taken back"
        return "changed since, or somebody else's"

    def _name(self, path: bytes) -> str:
        """A path, or what an act did, as people call it."""
        if (act := self.acts.get(text(path))) is not None:
            return act.summary
        domain = domain_of(path)
        if domain == "state":
            return f"thread {text(path.removeprefix(b'//'))}"
        return called(path) if domain == "git" else text(path)

    # -- what is left --------------------------------------------------------

    def _remains(self, turns: Sequence[TurnTold]) -> Iterable[Remains]:
        for turn in turns:
            for effect in turn.all_effects:
                act = self.acts.get(effect.id)
                state = act.shown_state if act is not None else ""
                if act is None or state not in (IRREVERSIBLE, UNKNOWN, UNCOVERED):
                    if not any(attempt.result != DONE for attempt in effect.attempts) or effect.stands == timeline.NONE:
                        continue
                why, command = effect.left_to_do or "it cannot be taken back", ""
                if state == UNKNOWN:
                    why = "it was begun, and nobody knows what came of it"
                    command = f"takeback resolve {effect.id[:8]}"
                elif state not in (IRREVERSIBLE, UNCOVERED):
                    last = effect.attempts[-1]
                    why = f"taking it back {'failed' if last.result == FAILED else 'was not finished'}: {last.note}"
                    command = f"takeback revert {effect.id[:8]}"
                yield Remains(effect.id, turn.id, effect.domain, effect.summary, state, effect.at, why, command)

    def _totals(
        self, turns: Sequence[TurnTold], takebacks: Sequence[TakebackTold], remains: Sequence[Remains]
    ) -> Totals:
        effects = list({effect.id: effect for turn in turns for effect in turn.all_effects}.values())
        domains: dict[str, int] = {}
        verdicts: dict[str, int] = {}
        files: set[str] = set()
        for effect in effects:
            domains[effect.domain] = domains.get(effect.domain, 0) + 1
            verdicts[effect.verdict] = verdicts.get(effect.verdict, 0) + 1
            if effect.domain == "files":
                files.update(effect.paths)
        counted = [turn.lines for turn in turns if turn.lines is not None]
        return Totals(
            len(turns), sum(turn.kind == timeline.AGENT and bool(turn.prompt) for turn in turns),
            sum(len(turn.calls) for turn in turns), len(effects), domains, len(files),
            (sum(added for added, _ in counted), sum(removed for _, removed in counted)), verdicts,
            sum(effect.stands == timeline.NONE for effect in effects),
            sum(effect.stands == timeline.PART for effect in effects), len(takebacks), len(remains),
        )  # fmt: skip

    def _notes(self) -> Iterable[str]:
        yield "What looks like a secret is masked, and files that are there to hold secrets show only that they changed"
        if any(act.domain == "email" for act in self.acts.values()):
            yield "The text of mails is left out"
        if self.undiffed:
            why = "for length" if self.diffs else "as asked"
            yield f"The lines of {self.undiffed} turn{'s' * (self.undiffed != 1)} are left out {why}"


# -- parts -------------------------------------------------------------------


def _exchange(detail: Detail) -> Iterable[tuple[str, str]]:
    """What was sent and answered; the text of a mail is content, and stays where it is."""
    for name, said in detail.exchange:
        if detail.act is not None and detail.act.domain == "email" and name in ("text", "body"):
            continue
        yield name, said if len(said) <= _TEXT else f"{redact.text(said)[:_TEXT]}… ({len(said) - _TEXT:,} more)"


def _threads(detail: Detail) -> Iterable[ThreadTold]:
    for moved in detail.moved:
        told = tuple(
            Difference(each.path, each.change, _value(each.before), _value(each.after))
            for each in moved.differences[:_DIFFERENCES]
        )
        yield ThreadTold(moved.thread, moved.before, moved.after, told, len(moved.differences) - len(told))


def _value(value: Any) -> str:
    """A value of state, which is masked already, in one line."""
    said = "" if value is None else value
    said = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, sort_keys=True)
    return said if len(said) <= _VALUE else f"{said[:_VALUE]}…"


def _cut(diff: FileDiff, most: int) -> tuple[FileDiff, int]:
    """A file's difference in at most so many lines, and how many are left out."""
    kept, left = [], most
    total = sum(len(hunk.lines) for hunk in diff.hunks)
    for hunk in diff.hunks:
        if left <= 0:
            break
        kept.append(hunk._replace(lines=hunk.lines[:left]))
        left -= len(kept[-1].lines)
    return diff._replace(hunks=tuple(kept)), total - sum(len(hunk.lines) for hunk in kept)


def _activity(turns: Sequence[TurnTold], takebacks: Sequence[TakebackTold]) -> Activity:
    """Effects by domain over time, in steps that people count in."""
    effects = {e.id: (e.at, e.domain) for turn in turns for e in turn.all_effects}
    backs = [each.at for each in takebacks]
    times = [*(at for at, _ in effects.values()), *backs]
    if not times:
        return Activity(0.0, ())
    first, last = min(times), max(times)
    step = float(next((each for each in _STEPS if (last - first) / each <= _BINS - 2), (last - first) / (_BINS - 2)))
    start = first - first % step
    found: list[dict[str, int]] = [{} for _ in range(int((last - start) // step) + 1)]
    taken = [0] * len(found)
    for at, domain in effects.values():
        into = found[int((at - start) // step)]
        into[domain] = into.get(domain, 0) + 1
    for at in backs:
        taken[int((at - start) // step)] += 1
    return Activity(step, tuple(Bin(start + n * step, each, taken[n]) for n, each in enumerate(found)))


def _integrity(ws: Workspace, every_byte: bool) -> Integrity:
    found = ws.verify(every_byte)
    head = ws.store.journal.head()
    history = ws.history()
    partial = [(each.id, path, why) for each in history.checkpoints for path, why in each.partial]
    return Integrity(
        found.ok, found.rows, found.blobs, head.seq, head.hash.hex(), every_byte, found.problems,
        tuple(Loss(each.entry, each.kind, each.path, each.why) for each in found.lost[:_PATHS]), found.known,
        len(history.forgotten), tuple(partial[:_PATHS]),
    )  # fmt: skip


def _clean(found: Any, known: dict[str, str]) -> Any:
    """Every text once more without what looks like a secret; differences of files are masked already."""
    if isinstance(found, str):
        if found not in known:
            known[found] = redact.text(found)
        return known[found]
    if isinstance(found, (FileTold, int, float)) or found is None:
        return found
    if isinstance(found, Mapping):
        return {_clean(key, known): each for key, each in found.items()}
    cleaned = [_clean(each, known) for each in found]
    return type(found)(*cleaned) if hasattr(found, "_fields") else tuple(cleaned)
