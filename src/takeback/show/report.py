"""The account of a span, made: what was done, by which prompt, what was taken back and how well, what could not
be, and whether the journal holds. The surfaces write it as a page, as Markdown or as JSON.

    span ──► the items of the timeline in it ──► account.Report, every text of it without secrets

It is made to be handed on: what files hold is masked, names and what was recorded are redacted once more, the text of
mails is left out, and everything that is cut for length says how much is missing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from takeback import __version__
from takeback.apply import results
from takeback.domains.git.repository import called
from takeback.errors import TakebackError
from takeback.journal.brackets import AgentTurn, Bracket
from takeback.model.effects import DONE, FAILED, IRREVERSIBLE, KEPT, STATES, UNCOVERED, UNKNOWN, Effect, domain_of, text
from takeback.model.outside import Act
from takeback.privacy import redact

from . import timeline_items
from .report_span import Span, bounds
from .report_values import (
    NOTHING,
    PARTLY,
    WHOLE,
    Activity,
    Attempt,
    Bin,
    CallTold,
    Difference,
    EffectTold,
    FileTold,
    GateTold,
    Integrity,
    Loss,
    Remains,
    Report,
    StepTold,
    TakebackTold,
    ThreadTold,
    Totals,
    TurnTold,
)
from .timeline import Detail, Timeline
from .timeline_items import CallItem, EffectItem, TurnItem
from .turns import lines_of, net
from .views import FileDiff

if TYPE_CHECKING:
    from takeback.workspace import Workspace

_FILES = 40  # of one turn, shown line by line
_LINES = 300  # of one file
_ALL_LINES = 20_000  # of the whole report; the newest turns come first
_PATHS = 50  # named of one effect or take-back
_TEXT = 4_000  # characters of one part of a request or an answer
_VALUE = 200  # characters of one value of state
_DIFFERENCES = 30  # of one thread
_BINS = 72  # of the picture, at most
_STEPS = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800)  # seconds of a bin


def make(ws: Workspace, span: Span, diffs: bool = True, every_byte: bool = False) -> Report:
    """The account of a span, as of now."""
    with ws.alone():
        return _Writer(ws, span, diffs).report(_integrity(ws, every_byte))


class _Writer:
    def __init__(self, ws: Workspace, span: Span, diffs: bool) -> None:
        self.ws = ws
        self.span = span
        self.timeline = Timeline(ws)
        self.history = ws.history()
        self.acts: dict[str, Act] = {act.id: act for act in self.history.ledger()} if self.history.acts else {}
        self.asked = {asked.id: asked for asked in self.history.agent_turns.values()}
        self.effects = {e.id: e for e in self.history.all_effects if not e.takeback}
        acted = [(e.id, e.seq, e.at) for e in self.effects.values()]
        acted += [(back.id, back.seq, back.at) for back in self.history.takebacks.values()]
        acted = [each for each in acted if not span.only or each[0] in span.only]
        marks = [(mark.id, mark.seq, mark.at) for mark in self.history.checkpoints]
        self.inside = {id for id, seq, at in (*acted, *marks) if span.holds(seq, at)}
        self.files: set[bytes] = set()  # that changed, those among them that are not named for length
        failed = [each for back in self.history.takebacks.values() for each in back.missed if each.result == FAILED]
        self.missed = {text(each.path): each for each in failed}  # of each the last time
        self.diffs = diffs
        self.lines_left = _ALL_LINES
        self.undiffed = 0  # turns whose lines are not shown

    def report(self, integrity: Integrity) -> Report:
        items = self._chosen()
        told = [
            self._turn(item) for item in items if item.kind not in (timeline_items.TAKEBACK, timeline_items.CHECKPOINT)
        ]
        turns = tuple(reversed(told))
        takebacks = tuple(reversed(list(self._takebacks(items))))
        remains = tuple(self._remains(turns))
        marks = {mark.id: mark for item in items for mark in item.marks if mark.id in self.inside}
        times = [*(mark.at for mark in marks.values()), *(back.at for back in takebacks)]
        times += [at for turn in turns for at in (turn.at, turn.until)]
        agents: dict[str, int] = {}
        for turn in turns:
            who = turn.agent or ("by hand" if turn.kind == timeline_items.HAND else turn.kind)
            agents[who] = agents.get(who, 0) + 1
        since, until, now = min(times, default=0.0), max(times, default=0.0), self.ws.clock()
        begins, ends = (since, until) if self.span.session else bounds(self.ws, self.span, now)
        store = self.ws.store.folder
        found = Report(
            self.ws.root.name, str(self.ws.root), store.name if store is not None else "", now, __version__,
            self.span.said, begins, ends, since, until, agents, self._totals(turns, takebacks, remains),
            _activity(turns, takebacks), turns, takebacks, remains,
            tuple(sorted(marks.values(), key=lambda mark: mark.at)), integrity, tuple(self._notes()),
            tuple(self._gate()),
        )  # fmt: skip
        return Report(*_clean(found, {}))

    def _gate(self) -> Iterable[GateTold]:
        """Calls that were stopped in the span, and those of its session or turn alone."""
        for call in self.ws.stopped_calls().values():
            of_session = not self.span.session or call.session.casefold().startswith(self.span.session.casefold())
            if of_session and not self.span.only and self.span.holds(call.seq, call.at):
                told = (call.id, call.agent, call.session, call.at, call.state, call.summary, call.why)
                times = call.approved, call.passed, call.answered
                yield GateTold(*told, *times, call.told, call.way, call.tried, call.came, call.turned_down)

    def _chosen(self) -> list[TurnItem]:
        """The items of the span, newest first; with them the take-backs that took from those."""
        quoted = '"' + self.span.session.replace('"', "") + '"'
        found = self.timeline.turns(f"session:{quoted}" if self.span.session else "", counted=1 << 30)
        chosen = [item for item in found if self._is_in(item)]
        ids = {item.id for item in chosen}
        if self.span.session:
            found = self.timeline.turns("kind:takeback")
        took = [item for item in found if item.kind == timeline_items.TAKEBACK and item.id not in ids]
        return [*(item for item in took if ids.intersection(item.took)), *chosen]

    def _is_in(self, item: TurnItem) -> bool:
        if item.kind in (timeline_items.TAKEBACK, timeline_items.CHECKPOINT):
            return item.id in self.inside
        return self._is_asked_in(item) or any(
            self._is_called_in(child) or not self.inside.isdisjoint(child.effects)
            if isinstance(child, CallItem)
            else child.id in self.inside
            for child in self.timeline.children(item.id)
        )

    def _is_asked_in(self, item: TurnItem) -> bool:
        asked = self.asked.get(item.id)
        return asked is not None and self._holds(asked)

    def _is_called_in(self, call: CallItem) -> bool:
        return self._holds(self.history.brackets[call.id])

    def _holds(self, found: AgentTurn | Bracket) -> bool:
        return self.span.holds(found.seq, found.at) and (not self.span.only or found.id in self.span.only)

    # -- turns ---------------------------------------------------------------

    def _turn(self, item: TurnItem) -> TurnTold:
        calls, effects, in_part = [], [], False
        for child in reversed(self.timeline.children(item.id)):
            if isinstance(child, CallItem):
                mine = [e for id in child.effects if isinstance(e := self.timeline.item(id), EffectItem)]
                told = tuple(self._effect(e) for e in mine if e.id in self.inside)
                in_part = in_part or len(told) < len(mine)
                if told or self._is_called_in(child):
                    calls.append(CallTold(child.id, child.tool, child.title, child.lane, child.at, child.state, told))
                else:
                    in_part = True
            elif child.id in self.inside:
                effects.append(self._effect(child))
            else:
                in_part = True
        asked = self.asked.get(item.id)
        files, more, threads = self._changed(item)
        return TurnTold(
            item.id, item.kind, item.title, item.agent, asked.caller.session if asked else "", item.at, item.until,
            item.totals, item.lines, item.badges, item.stands, item.undone_by, item.marks, tuple(calls),
            tuple(effects), files, more, threads, in_part, item.shared,
        )  # fmt: skip

    def _effect(self, item: EffectItem) -> EffectTold:
        paths = item.paths[:_PATHS]
        if item.domain == "files":
            changes = self.effects[item.id].changes.items()
            self.files.update(path for path, change in changes if not timeline_items.is_folder(change))
        told = EffectTold(
            item.id, item.domain, item.title, item.agent, item.at, item.badge, item.stands, item.undone_by, paths,
            len(item.paths) - len(paths), shared=item.shared,
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

    def _takebacks(self, items: Sequence[TurnItem]) -> Iterable[TakebackTold]:
        chosen = [item for item in items if item.kind == timeline_items.TAKEBACK]
        for item in chosen:
            found = self.history.takebacks[item.id]
            done: dict[str, int] = {}
            paths: dict[bytes, str] = {}
            for seq in found.rows:
                effect = self.history.by_seq[seq]
                taken = [change.path for change in effect.changes.values() if change.does]
                if taken:
                    done[effect.verdict] = done.get(effect.verdict, 0) + len(taken)
                paths.update((path, self._name(path)) for path in taken)
            missed = {each.path: self._step(*each) for each in found.missed}
            kept = dict.fromkeys(unit.path for unit in sorted(found.kept) if unit.path not in missed)
            steps = [*missed.values(), *(self._step(path, "", KEPT, self._why_kept(path)) for path in kept)]
            well = WHOLE if paths and not steps else PARTLY if paths else NOTHING
            yield TakebackTold(
                item.id, item.number, found.verb, item.title, item.at, item.stands != timeline_items.NONE, well,
                item.took, tuple(paths.values())[:_PATHS], max(0, len(paths) - _PATHS), done, tuple(steps[:_PATHS]),
                max(0, len(steps) - _PATHS), found.interrupted, item.id not in self.inside, item.agent,
                found.by.get("turn", ""),
            )  # fmt: skip

    def _step(self, path: bytes, verdict: str, result: str, why: str) -> StepTold:
        return StepTold(self._name(path), result, why, text(path) if text(path) in self.acts else "")

    def _why_kept(self, path: bytes) -> str:
        if (act := self.acts.get(text(path))) is not None and act.verdict in (IRREVERSIBLE, UNCOVERED):
            return str(act.did.get("left_to_do", "")) or "it cannot be taken back"
        return "changed since, or somebody else's"

    def _name(self, path: bytes) -> str:
        """A path, or what an act did, as people call it."""
        if (act := self.acts.get(text(path))) is not None:
            return results.called(act)
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
                missed = self.missed.get(effect.id)
                if act is None or state not in (IRREVERSIBLE, UNKNOWN, UNCOVERED):
                    tried = missed is not None or any(attempt.result != DONE for attempt in effect.attempts)
                    if not tried or effect.stands == timeline_items.NONE or state == FAILED:
                        continue
                why, command = effect.left_to_do or "it cannot be taken back", ""
                if state == UNKNOWN:
                    assert act is not None
                    doubt = "its undo was sent" if act.in_doubt else "it was begun"
                    why, command = f"{doubt}, and nobody knows what came of it", act.resolving
                elif state not in (IRREVERSIBLE, UNCOVERED):
                    last = missed or effect.attempts[-1]
                    why = f"taking it back {'failed' if last.result == FAILED else 'was not finished'}: {last.note}"
                    why = last.note if last.note.startswith("not ") else why  # not tried, or not begun
                    command = f"takeback revert {effect.id[:8]}"
                yield Remains(effect.id, turn.id, effect.domain, effect.summary, state, effect.at, why, command)

    def _totals(
        self, turns: Sequence[TurnTold], takebacks: Sequence[TakebackTold], remains: Sequence[Remains]
    ) -> Totals:
        effects = list({effect.id: effect for turn in turns for effect in turn.all_effects}.values())
        domains: dict[str, int] = {}
        verdicts: dict[str, int] = {}
        for effect in effects:
            domains[effect.domain] = domains.get(effect.domain, 0) + 1
            verdicts[effect.verdict] = verdicts.get(effect.verdict, 0) + 1
        return Totals(
            len(turns), sum(turn.kind == timeline_items.AGENT and bool(turn.prompt) for turn in turns),
            sum(len(turn.calls) for turn in turns), len(effects), domains, len(self.files),
            self._lines(turns), verdicts,
            sum(effect.stands == timeline_items.NONE for effect in effects),
            sum(effect.stands == timeline_items.PART for effect in effects), len(takebacks), len(remains),
        )  # fmt: skip

    def _lines(self, turns: Sequence[TurnTold]) -> tuple[int, int]:
        """Added and removed by all of them; what several share counts once."""
        apart: dict[object, dict[str, Effect]] = {}
        for turn in turns:
            for told in turn.all_effects:
                effect = self.effects[told.id]
                apart.setdefault(effect.turns if told.shared else turn.id, {})[told.id] = effect
        counted = [lines_of(net(effects.values()), self.ws.store.blobs.get) for effects in apart.values()]
        return sum(added or 0 for added, _ in counted), sum(removed or 0 for _, removed in counted)

    def _notes(self) -> Iterable[str]:
        yield (
            "What looks like a secret is masked, in names too, and files that are there to hold secrets show only that "
            "they changed"
        )
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
    start = first - (first + time.localtime(first).tm_gmtoff) % step  # a bin of days begins with the reader's day
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
        tuple(Loss(each.entry, each.kind, each.path, each.why) for each in found.lost[:_PATHS]),
        max(0, len(found.lost) - _PATHS), found.known, len(history.forgotten), tuple(partial[:_PATHS]),
        max(0, len(partial) - _PATHS),
    )  # fmt: skip


def _clean(found: Any, known: dict[str, str]) -> Any:
    """Every text once more without what looks like a secret, names among them; the lines of files are masked
    already."""
    if isinstance(found, str):
        if found not in known:
            known[found] = redact.text(found)
        return known[found]
    if isinstance(found, FileTold):
        diff = found.diff
        named = diff._replace(path=_clean(diff.path, known), old_path=_clean(diff.old_path, known))
        return found._replace(diff=named)
    if isinstance(found, (int, float)) or found is None:
        return found
    if isinstance(found, Mapping):
        return {_clean(key, known): each for key, each in found.items()}
    cleaned = [_clean(each, known) for each in found]
    return type(found)(*cleaned) if hasattr(found, "_fields") else tuple(cleaned)
