"""apply(plan): the only code that changes the world on undo.

    takeback row + intent row (one synced transaction) ─► act ─► sync ─► outcome row

One intent and one outcome per segment, whatever its size; an act outside the files is a segment of its own, while
files, their git repository and threads are some that begin and end together. An intent without an outcome is an
interrupted take-back, which `finish` brings to its end and `abort` brings back, from any process: files as they should
be, outside acts never twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import groupby
from typing import Any, NamedTuple

from takeback.errors import Damaged
from takeback.journal.history import Segment, pack_list, pack_units, unpack_list
from takeback.journal.journal import Journal, New
from takeback.model.effects import (
    DONE,
    FAILED,
    FOLDER,
    KEPT,
    STATES,
    UNCOVERED,
    UNKNOWN,
    Change,
    Domain,
    Entry,
    Plan,
    Request,
    Result,
    State,
    Step,
    Takeback,
    Unit,
    same,
    text,
)
from takeback.model.ids import new_id
from takeback.model.outside import NOBODY_KNOWS
from takeback.plan.planner import changes_of
from takeback.store.blobs import Blobs
from takeback.store.folder_objects import is_unread, parent

_STOPPED = "not begun: whoever asked for it cancelled"
BACKWARDS = "-a"  # after the key of a segment that is being aborted: what it leaves means the reverse


class Done(NamedTuple):
    """What a take-back came to: its id, the result of each step, the changes it made to the tree, its last row."""

    id: str
    results: list[Result]
    changes: list[Change]
    seq: int


Moved = dict[bytes, tuple[State, State]]  # what acts of a take-back did to paths by themselves: from what, to what
LookFor = Callable[[str], Iterable[Change]]  # for a take-back, if one is named: all that moved is its own
Told = Callable[[Sequence[Step], Sequence[Result] | None], None]


class Outer(NamedTuple):
    """What the executor needs to know of the world around an outside act."""

    unlocked: Callable[[], AbstractContextManager[None]] = nullcontext  # the store is free while it runs
    stands_on: Callable[[bytes, bytes], bool] = lambda newer, older: False  # whether one act depends on another
    look: LookFor = lambda takeback: ()  # journals what moved
    forbids: Callable[[Step], str] = lambda step: ""  # why an act of an interrupted take-back is left alone
    told: Told | None = None  # hears of each part before it is done, and after, with what came of it
    made: Callable[[list[Change]], None] = lambda changes: None  # hears what changed in the tree, while that is written
    stopped: Callable[[], bool] = lambda: False  # whoever asked for it cancelled: what has not begun, does not


def changes_made(steps: Iterable[Step], times: Mapping[bytes, Entry]) -> list[Change]:
    """What steps that are done, and the times of folders, changed in the tree."""
    return [
        *(Change(s.path, s.expected, s.goal) for s in steps),
        *(Change(path, None, entry) for path, entry in times.items()),
    ]


class Executor:
    def __init__(
        self,
        journal: Journal,
        blobs: Blobs,
        domains: Callable[[str], Domain],
        clock: Callable[[], float],
        outer: Outer | None = None,
    ) -> None:
        self.journal = journal
        self.blobs = blobs
        self.domains = domains
        self.clock = clock
        self.outer = outer or Outer()
        self.verb = ""  # of the take-back that is carried out

    def run(
        self,
        plan: Plan,
        times_now: Mapping[bytes, State],
        label: str,
        approval: str = "",
        by: Mapping[str, str] = {},
    ) -> Done:
        """Carries a plan out. The caller holds the locks, has just made sure that the plan is not stale and, where it
        acts outside the files, approved; it knows the present states of what only gets other times, and who asks."""
        groups = [
            (domain, list(steps)) for (_, domain), steps in groupby(plan.taken, key=lambda s: (s.segment, s.domain))
        ]
        self._check_stored(plan.taken)
        self.verb = plan.request.verb
        id = new_id()
        segments = [self._segment(domain, steps, plan.folder_times, times_now) for domain, steps in groups]
        self.blobs.flush()
        passed: list[Step] = []
        unread: list[Step] = []
        for step in plan.kept:  # what could not be read has failed, so that the next try is not to step over it
            (unread if step.verdict == UNCOVERED and is_unread(step.note) else passed).append(step)
        stayed: frozenset[Unit] = frozenset().union(*(s.units for s in passed))
        body = {
            "request": plan.request.to_json(),
            "label": label,
            "hash": plan.hash,
            "kept": pack_units(plan.left | stayed),
            "segments": segments,
        }
        if plan.left:  # whoever finishes it tells others' work from what it could not take
            body["stayed"] = pack_units(stayed)
        if unread:
            body["unread"] = [[text(s.path), s.note] for s in unread]
        if approval:
            body["approval"] = approval
        if by:
            body["by"] = dict(by)
        batches = _batches(groups)
        first = [(number, new_id()) for number in batches[0]] if batches else []
        rows = [New("takeback", id, body)]
        rows += [New("intent", intent, {"takeback": id, "segment": number}) for number, intent in first]
        seq = self.journal.append(rows, self.clock())[-1]
        results: list[Result] = []
        made: list[Change] = []
        acts: list[Result] = []  # of what lies outside the files
        judged_anew = False  # once something ran that may change files by itself
        moved: Moved = {}
        for at, batch in enumerate(batches):
            domain, steps = groups[batch[0]]
            if at and self.outer.stopped():
                rows = []
                for number in batch:
                    domain, steps = groups[number]
                    found = [Result(step.path, step.verdict, FAILED, _STOPPED) for step in steps]
                    rows += self._conclude(id, number, domain, steps, found, {}, made)
                    results += found
                seq = self.journal.append(rows, self.clock())[-1]
                continue
            if blocked := self._blocked(steps, acts):
                rows = self._conclude(id, batch[0], domain, steps, blocked, {}, made)
                seq = self.journal.append(rows, self.clock())[-1]
                results, acts = results + blocked, acts + blocked
                judged_anew = True
                continue
            rows = []
            for number, intent in first if at == 0 else self._begin(id, batch):
                domain, steps = groups[number]
                steps = [_own(step, moved) for step in steps]
                times = plan.folder_times if domain == "files" else {}
                again = judged_anew and domain in STATES
                found = _held_back(plan.request, steps, results)
                found = found or self._act(id, domain, steps, intent, times, again, moved)
                judged_anew = judged_anew or domain not in STATES
                rows += self._conclude(id, number, domain, steps, found, times, made)
                results += found
                acts += found if domain not in STATES else ()
            seq = self.journal.append(rows, self.clock())[-1]
        return Done(id, results, made, seq)

    def _act(
        self, id: str, name: str, steps: list[Step], key: str, times: Mapping[bytes, Entry], again: bool, moved: Moved
    ) -> list[Result]:
        domain = self.domains(name)
        if self.outer.told is not None:
            self.outer.told(steps, None)
        if name in STATES:
            found = list(domain.apply(steps, key, times, again))
        else:
            with self.outer.unlocked():
                found = list(domain.apply(steps, key, times, again))
            if getattr(domain, "runs_code", False):
                _follow(moved, self.outer.look(id))
            else:
                self.outer.look("")
        if self.outer.told is not None:
            self.outer.told(steps, found)
        return found

    def _blocked(self, steps: list[Step], results: list[Result]) -> list[Result]:
        """An act whose dependents were not taken back stays: they still stand on it."""
        if steps[0].domain in STATES:
            return []
        for result in results:
            if result.result == DONE or result.path == steps[0].path:
                continue
            if self.outer.stands_on(result.path, steps[0].path):
                note = f"not tried: {text(result.path)[:8]} stands on it and was not taken back"
                return [Result(step.path, step.verdict, FAILED, note) for step in steps]
        return []

    def _segment(
        self, domain: str, steps: list[Step], times: Mapping[bytes, Entry], times_now: Mapping[bytes, State]
    ) -> dict[str, Any]:
        changes = changes_of(steps)
        if domain == "files":
            changes += [Change(path, times_now[path], entry) for path, entry in times.items()]
        return {"domain": domain, "verdict": steps[0].verdict, "list": pack_list(changes, self.blobs.put)}

    def _conclude(
        self,
        id: str,
        number: int,
        domain: str,
        steps: list[Step],
        found: list[Result],
        times: Mapping[bytes, Entry],
        made: list[Change],
    ) -> list[New]:
        """Syncs what was done, and says so in rows: only once they are journaled is it called done."""
        done = {r.path for r in found if r.result == DONE}
        if domain == "files":
            failed = {r.path for r in found if r.result == FAILED}
            set_to = {path: entry for path, entry in times.items() if path not in failed} if failed else times
            made += changes_made((s for s in steps if s.path in done), set_to)
            self.outer.made(made)
        _sync(self.domains(domain))
        body: dict[str, Any] = {"takeback": id, "segment": number, "not_done": _not_done(found)}
        if domain not in STATES:
            body |= self._answered(domain, [text(step.path) for step in steps])
        rows = [New("outcome", new_id(), body)]
        if halfway := self._halfway(domain, steps, found, times):
            made += halfway
            packed = pack_list(halfway, self.blobs.put)
            rows.append(New("note", new_id(), {"what": "sight", "by": self.verb, "list": packed}))
            self.blobs.flush()
        return rows

    def _answered(self, name: str, acts: list[str]) -> dict[str, Any]:
        """What is known of acts beyond their results: what was answered, what became of earlier attempts, and whether
        anything was sent."""
        domain: Any = self.domains(name)
        told: dict[str, Any] = {
            "evidence": {act: dict(domain.evidence[act]) for act in acts if act in domain.evidence},
            "earlier": {act: domain.earlier[act] for act in acts if act in domain.earlier},
            "unsent": [act for act in acts if act in domain.unsent],
        }
        return {name: value for name, value in told.items() if value}

    def _halfway(
        self, domain: str, steps: list[Step], found: list[Result], times: Mapping[bytes, Entry]
    ) -> list[Change]:
        """Folders that were made or changed but did not get all they should, files that others were unlinked from or
        linked with, times that could not be put back: ours, so the next look must not take them for somebody's."""
        not_done = {r.path: r.result for r in found if r.result != DONE} if domain == "files" else {}
        if not not_done:
            return []
        files: Any = self.domains(domain)
        changes = []
        folders = [(s.path, s.expected, s.goal) for s in steps if s.goal is not None and s.goal.kind == FOLDER]
        for path, expected, goal in [*folders, *((path, entry, entry) for path, entry in times.items())]:
            if not_done.get(path) != FAILED:
                continue
            with suppress(OSError):
                now = files.present(path)
                is_late = same(now, goal) and now != goal  # it lacks its time alone
                if is_late or (now is not None and now.kind == FOLDER and not same(now, expected)):
                    changes.append(Change(path, goal if is_late else expected, now))
        with suppress(OSError):
            changes += files.regrouped(steps, not_done)
        return changes

    def _check_stored(self, steps: Iterable[Step]) -> None:
        """Nothing is overwritten that is not stored."""
        present = {s.expected.content: s.path for s in steps if s.domain == "files" and s.expected is not None}
        present.pop(b"", None)
        for id in self.blobs.lacking(set(present)):
            raise Damaged(
                f"the store lacks the present state of {text(present[id])}; nothing was changed",
                "take a checkpoint, which stores it, and run it again; takeback verify says what is lost",
            )

    # -- after an interruption -----------------------------------------------

    def finish(self, takeback: Takeback, segments: list[Segment], abort: bool, known: Callable[[bytes], State]) -> Done:
        """Brings an interrupted take-back to its end or, to abort it, back to where it began."""
        self.verb = takeback.verb
        results: list[Result] = []
        made: list[Change] = []
        outside = [s for s in segments if s.domain not in STATES]
        acts = [Result(path, s.verdict, FAILED) for s in outside if s.ended for path in s.undone]
        missed = [Result(path, s.verdict, FAILED) for s in segments if s.ended for path in s.undone]
        seq = 0
        rows: list[New] = []
        moved = self._moved_by(takeback) if outside else {}
        has_looked = False
        for number, segment in enumerate(segments):
            if segment.ended:
                continue
            if abort and not segment.intent:
                continue  # never begun
            if not segment.intent and self.outer.stopped():
                break  # it stays interrupted: the next to come goes on from here
            forward, times = steps_of(segment)
            forward = [_own(step, moved) for step in forward]
            if segment.domain not in STATES:
                if rows:
                    self.journal.append(rows, self.clock())
                if not abort and not has_looked:
                    self.outer.look("")  # what changed while it waited is somebody's, and stays
                    has_looked = True
                found = self._finish_act(takeback.id, number, segment, forward, abort, acts, moved)
                rows = self._conclude(takeback.id, number, segment.domain, forward, found, {}, made)
                seq, rows = self.journal.append(rows, self.clock())[-1], []
                results += found
                acts += found
                continue
            intent = segment.intent or self._begin(takeback.id, [number])[0][1]
            domain = self.domains(segment.domain)
            domain.sweep(forward, intent)
            steps = [s.reversed() for s in forward] if abort else forward
            back = _times_before(steps, times, known) if abort and segment.domain == "files" else times
            key = intent + BACKWARDS if abort else intent
            found = [] if abort else _held_back(takeback.request, steps, [*missed, *results])
            found = found or list(domain.apply(steps, key, back, again=True))
            results += found
            if abort:
                _sync(domain)
                continue
            rows += self._conclude(takeback.id, number, segment.domain, steps, found, times, made)
        if rows:
            seq = self.journal.append(rows, self.clock())[-1]
        if abort:
            first = next((n for n, s in enumerate(segments) if not s.ended), 0)
            body = {"takeback": takeback.id, "segment": first, "aborted": True, "not_done": _not_done(results)}
            seq = self.journal.append([New("outcome", new_id(), body)], self.clock())[-1]
        return Done(takeback.id, results, made, seq)

    def _moved_by(self, takeback: Takeback) -> Moved:
        """What the acts of an interrupted take-back have changed in the tree so far, as their looks journaled it."""
        moved: Moved = {}
        for row in self.journal.rows(takeback.seq, ("change",)):
            body = row.body or {}
            if body.get("takeback") == takeback.id:
                _follow(moved, unpack_list(body["list"], self.blobs.get))
        return moved

    def _begin(self, takeback: str, numbers: Sequence[int]) -> list[tuple[int, str]]:
        """Segments that are begun together: each with its intent's id."""
        begun = [(number, new_id()) for number in numbers]
        rows = [New("intent", intent, {"takeback": takeback, "segment": number}) for number, intent in begun]
        self.journal.append(rows, self.clock())
        return begun

    def _finish_act(
        self,
        id: str,
        number: int,
        segment: Segment,
        steps: list[Step],
        abort: bool,
        results: list[Result],
        moved: Moved,
    ) -> list[Result]:
        """An outside act of an interrupted take-back: one that may have been sent is never simply sent again."""
        begun = bool(segment.intent)

        def untried(note: str) -> list[Result]:
            return [Result(step.path, step.verdict, UNKNOWN if begun else FAILED, note) for step in steps]

        if why := next(filter(None, map(self.outer.forbids, steps)), ""):
            found = untried(f"nothing was sent: {why}")
        elif abort:
            with self.outer.unlocked():
                found = [self.domains(segment.domain).settle(step) for step in steps]  # type: ignore[attr-defined]
        elif blocked := self._blocked(steps, results):
            found = untried(blocked[0].note)
        else:
            key = segment.intent or self._begin(id, [number])[0][1]
            found = self._act(id, segment.domain, steps, key, {}, begun, moved)
        return [_still_in_doubt(result) for result in found] if begun else found


def _still_in_doubt(result: Result) -> Result:
    """What came of trying again tells nothing of the attempt that was cut off, unless it settled that."""
    if result.result != UNKNOWN or result.note == NOBODY_KNOWS:
        return result
    return result._replace(note=f"it may have been sent before, and no answer came; this time: {result.note}")


def _follow(moved: Moved, changes: Iterable[Change]) -> None:
    for change in changes:
        before, after = moved.get(change.path, (change.before, change.before))
        moved[change.path] = (before if same(after, change.before) else change.before, change.after)


def _own(step: Step, moved: Moved) -> Step:
    """What an earlier step of the same plan did to a path is the plan's own, and no drift: it is expected."""
    before, after = moved.get(step.path, (None, step.expected))
    return step._replace(expected=after) if step.path in moved and same(before, step.expected) else step


def _batches(groups: Sequence[tuple[str, list[Step]]]) -> list[list[int]]:
    """Segments that begin and end together: files, their repository, threads, which an abort brings back as one."""
    batches: list[list[int]] = []
    for number, (domain, steps) in enumerate(groups):
        last = groups[number - 1] if number else None
        together = last is not None and last[0] in STATES and last[1][0].segment == steps[0].segment
        if together and domain in STATES:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches


def _held_back(request: Request, steps: Sequence[Step], results: Iterable[Result]) -> list[Result]:
    """A thread that is to go back only with all else stays where some of that did."""
    if not request.bound or steps[0].domain != "state" or all(r.result == DONE for r in results):
        return []
    note = "what it stands on was not all taken back"
    return [Result(step.path, step.verdict, KEPT, note) for step in steps]


def _sync(domain: Domain) -> None:
    """What a domain has written is on disk when this returns, if it writes anything here."""
    sync = getattr(domain, "sync", None)
    if sync is not None:
        sync()


def _not_done(results: Iterable[Result]) -> list[list[str]]:
    return [[text(r.path), r.result, r.note] for r in results if r.result != DONE]


def steps_of(segment: Segment) -> tuple[list[Step], dict[bytes, Entry]]:
    """A journaled segment as steps again, with the folder times apart."""
    steps, times = [], {}
    for change in segment.changes:
        units = tuple(Unit(seq, change.path) for seq in change.took)
        if same(change.before, change.after) and not units and change.after is not None:
            times[change.path] = change.after
        else:
            steps.append(Step(segment.domain, change.path, change.before, change.after, segment.verdict, units))
    return steps, times


def _times_before(
    steps: list[Step], times: Mapping[bytes, Entry], known: Callable[[bytes], State]
) -> dict[bytes, Entry]:
    """What an aborted segment gave other times, the folders around its steps among them, as it was."""
    around = {parent(s.path) for s in steps if s.path}
    found = {p: known(p) for p in {*times, *around}}
    return {p: e for p, e in found.items() if isinstance(e, Entry) and (p in times or e.kind == FOLDER)}


def kept_results(plan: Plan) -> list[Result]:
    return [Result(s.path, s.verdict, KEPT, s.note) for s in plan.kept]
