"""Taking back: plan on what is there, apply exactly that, finish what was interrupted.

The caller (workspace.py) holds the locks: `apply` for all of it, `store` for each of these calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from takeback import domains
from takeback.config.policy import ALLOW, REFUSE
from takeback.domains.files import Files, export
from takeback.domains.git import judge
from takeback.domains.git.apply import Git
from takeback.domains.git.repository import Repository, Unusable, left_to_git
from takeback.domains.outside import Acts
from takeback.domains.threads.apply import ThreadStates
from takeback.errors import ApprovalNeeded, CredentialNeeded, Damaged, Stale, TakebackError, UsageError
from takeback.journal import names
from takeback.journal.history import History, Segment, pack_list, unpack_units
from takeback.journal.journal import New
from takeback.look.known_tree import Index
from takeback.look.observer import MANY, Observer, children_of, give_back_memory, let_go, links_of, states
from takeback.look.scan import Look
from takeback.model.effects import (
    DONE,
    DRIFTED,
    FILE,
    FOLDER,
    HELD,
    IRREVERSIBLE,
    KEPT,
    REFUSED,
    STATES,
    UNCOVERED,
    UNOBSERVED,
    Ahead,
    Change,
    Distance,
    Domain,
    Outcome,
    Plan,
    Request,
    Result,
    State,
    Step,
    Takeback,
    Unit,
    domain_of,
    is_within,
    path_of_thread,
    raw,
    same,
    short_id,
    state_of_thread,
    text,
    thread_of,
)
from takeback.model.ids import new_id
from takeback.model.outside import Act, Approval, Credential, Inverse, Waiting, World, depends
from takeback.plan import requests
from takeback.plan.merge import Merger
from takeback.plan.planner import Planner, can_settle, takes_threads
from takeback.privacy import redact
from takeback.privacy.value_marks import Marks
from takeback.store import folder_objects
from takeback.store.folder_objects import is_unread, parent
from takeback.system.safefs import Folder as OpenFolder
from takeback.system.safefs import components, open_root
from takeback.text.linediff import Conflict

from .executor import Done, Executor, Outer, changes_made, kept_results, steps_of

if TYPE_CHECKING:
    from takeback.threads.threads import Threads

Ask = Callable[[Planner], Request]
_NAMED = 8  # of what a take-back of a thread alone leaves, of each kind
_MANY = 1000  # steps: beyond this nobody reads a note per step


class Takebacks:
    def __init__(
        self,
        id: str,
        observer: Observer,
        environ: Mapping[str, str],
        unlocked: Callable[[], AbstractContextManager[None]] = nullcontext,
        asker: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.id = id
        self.observer = observer
        self.environ = environ
        self.unlocked = unlocked
        self.asker = asker
        self.store = observer.store
        self.marks = Marks(self.store.folder)
        self.merged: dict[bytes, bytes] = {}  # texts the last plan merges; stored when it is applied
        self._ahead: tuple[Index, list[Change]] | None = None  # the known tree with changes of a running take-back

    # -- planning ------------------------------------------------------------

    def plan(self, tree: OpenFolder | None, ask: Ask) -> Plan:
        """Looks, then plans on what is there; without a tree, at the threads alone."""
        plan = self._plan(tree, ask) if tree is not None else self._plan_of_threads(ask)
        return plan._replace(distance=self._distance(plan.request), marks=self._marks_of(plan.outside))

    def planner(self) -> Planner:
        """For what is known, without a look; it merges nothing."""
        index = self.observer.known()
        return Planner(self.id, self.observer.history(), self._last_seen(index), _no_merge, children_of(index))

    def _plan_of_threads(self, ask: Ask) -> Plan:
        self.observer.look_at_threads()
        merger = Merger(self.store.blobs.get)
        self.merged = merger.made
        history = self.observer.history()
        planner = Planner(self.id, history, self._known_threads(), merger)
        request = ask(planner)
        plan = planner.plan(request, self._thread_goals(request))
        _refuse_across_damage(history, plan)
        return plan._replace(steps=self._kept_without_states(self._kept_without_bytes(plan.steps)))

    def _plan(self, tree: OpenFolder, ask: Ask) -> Plan:
        look = self.observer.look(tree)
        merger = Merger(self.store.blobs.get)
        self.merged = merger.made
        history = self.observer.history()
        known = self._known(look)
        left_alone = () if self.observer.settings.git else ("git",)
        children, links = children_of(look.index), links_of(look.index)
        planner = Planner(self.id, history, known, merger, children, links, left_alone)
        request = ask(planner)
        if request.verb == "restore":
            goals = self._goals(request, look.index)
            plan = planner.restore(request, goals.states, goals.new)
        else:
            plan = planner.plan(request, self._thread_goals(request))
            _refuse_across_damage(history, plan)
        if request.verb == "rollback":
            plan = self._timed(plan, look.index, history)
            plan = plan._replace(steps=(*plan.steps, *_unreadable(look, plan, history)))
        plan = plan._replace(steps=_with_reasons(look, plan.steps))
        plan = plan._replace(steps=_with_link_notes(tree, self._kept_without_bytes(plan.steps)))
        plan = plan._replace(steps=self._judged(tree, plan.steps, history, known, look.git.unread if look.git else {}))
        plan = plan._replace(steps=self._kept_without_states(self._with_git_notes(tree, plan.steps)))
        return plan._replace(steps=self._within_policy(plan.steps)) if plan.outside else plan

    def _timed(self, plan: Plan, index: Index, history: History) -> Plan:
        """Where all goes back to a checkpoint, each path gets the time it had there, whatever moved it since: other
        take-backs may have, there and back. Where nothing else is to be done, only times that take-backs moved."""
        request = plan.request
        target = next((c for c in history.checkpoints if c.seq == request.since), None)
        narrow = request.actors or request.only or request.without or request.turns or request.threads
        if target is None or plan.kept or plan.left or narrow:
            return plan
        objects = {record.stored: record for record in index.folders.values()}
        load, now = self.store.blobs.get, index.folders[b""].ids
        try:
            then = dict(folder_objects.times_apart(load, target.snapshot, now, lambda stored: objects[stored].object))
        except Damaged:
            return plan  # the work comes back from the journal all the same
        then[b""] = target.snapshot.root

        def as_then(path: bytes, state: State) -> State:
            was = then[path] if path in then else index.state(path)
            return was if same(was, state) else state

        steps = tuple(
            s._replace(goal=goal) if s.domain == "files" and (goal := as_then(s.path, s.goal)) != s.goal else s
            for s in plan.steps
        )
        moved = {s.path for s in steps}
        times = {path: as_then(path, entry) for path, entry in plan.folder_times.items()}
        for path, entry in then.items():
            known = index.state(path)
            if path not in moved and path not in times and same(entry, known) and entry != known:
                times[path] = entry
        if plan.idle:  # a touch by others is nothing to take back
            times |= {s.path: s.goal for s in steps if s.goal is not None and s.goal != s.expected}
            times = {path: entry for path, entry in times.items() if history.moved_last(path) in history.outcomes}
        return plan._replace(steps=steps, folder_times={p: e for p, e in times.items() if e is not None})

    def _last_seen(self, index: Index) -> Callable[[bytes], State]:
        """The last observed state of a path, whichever domain it is in."""
        known = {"files": states(index), "git": self.observer.git.states(), "state": self._known_threads()}
        return lambda path: known[domain_of(path)](path)

    def _known(self, look: Look) -> Callable[[bytes], State]:
        """The same; of what this look could not read, none."""
        known, unread = self._last_seen(look.index), {path for path, why in look.lacking if is_unread(why)}

        def state(path: bytes) -> State:
            found = known(path)
            if path in unread and not (found is not None and found.kind == FOLDER):
                return UNOBSERVED
            return UNOBSERVED if unread and not unread.isdisjoint(_above(path)) else found

        return state

    # -- threads -----------------------------------------------------------------

    def is_of_threads(self, request: Request) -> bool:
        """Whether it is about threads alone, so that the tree need not be looked at."""
        if request.verb != "redo":
            return request.only == ("state",)
        history = self.observer.history()
        rows = [seq for id in request.takebacks if id in history.takebacks for seq in history.takebacks[id].rows]
        return bool(rows) and all(history.by_seq[seq].domain == "state" for seq in rows if seq in history.by_seq)

    def redone(self, n: int, options: Request) -> Request:
        """What a redo would mean, before anything is looked at: looks add no take-back."""
        planner = Planner(self.id, self.observer.history(), lambda path: None, Merger(self.store.blobs.get))
        return planner.redo(n, options)

    def _known_threads(self) -> Callable[[bytes], State]:
        if not self.observer.has_threads:
            return lambda path: None
        known = self.observer.thread_state.known().states
        return lambda path: known.get(path)

    def _threads(self) -> Threads:
        assert self.observer.threads is not None
        return self.observer.threads()

    def _thread_goals(self, request: Request) -> dict[bytes, State]:
        """Where a rollback leads each thread that it takes. A thread whose head is asked for stays as it is."""
        in_scope = takes_threads(request) and "state" not in request.without
        if request.verb != "rollback" or not in_scope or not self.observer.has_threads:
            return {}
        threads, found = self._threads(), {}
        for thread in request.threads or sorted(threads.moved(request.since)):
            at = threads.get(thread, request.checkpoint).seq if request.checkpoint else request.since
            head = threads.find(thread)
            is_head = bool(request.checkpoint) and head is not None and head.seq == at
            document = threads.document(thread, None if is_head else at)
            goal = state_of_thread(document)
            if goal is not None:
                self.merged[goal.content] = document
            found[path_of_thread(thread)] = goal
        return found

    def _kept_without_states(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """A thread whose earlier state was pruned, or cannot be read any more, is kept and named."""
        out = []
        for step in steps:
            if step.domain == "state" and step.taken and step.goal is not None:
                document = self.merged.get(step.goal.content) or self.store.blobs.get(step.goal.content)
                told = self._threads().told_by(thread_of(step.path), document)
                pruned = "its earlier state was pruned"
                if note := pruned if told is None else self._threads().unreadable(told.values()):
                    step = step.kept(UNCOVERED, note)
            out.append(step)
        return tuple(sorted(out, key=lambda s: not s.taken)) if out != list(steps) else steps

    def _distance(self, request: Request) -> Distance:
        """What a take-back of files leaves of the threads, and the other way round."""
        if request.verb not in ("undo", "rollback") or not self.observer.has_threads:
            return Distance()
        if request.threads and request.only:
            history = self.observer.history()
            shown = {unit for unit in history.shown(request.since) if unit.seq not in history.outside_rows}
            files = {unit.path for unit in shown if domain_of(unit.path) == "files"}
            outside = [act.summary for act in history.live_acts if act.seq >= request.since]
            named = f"{quote(request.threads[0])} {short_id(request.checkpoint)}"
            command = f"takeback thread rollback {named} --with-files"
            names = (*(text(path) for path in sorted(files)[:_NAMED]), *outside[:_NAMED])
            return Distance((), len(files), command, len(outside), names) if names else Distance()
        if takes_threads(request) or "state" in request.without:
            return Distance()
        try:
            return Distance(tuple(self._stay_undone(request) if request.verb == "undo" else self._stay(request)))
        except TakebackError:
            return Distance()  # damage to what a take-back leaves alone must not stop it: verify names it

    def _stay(self, request: Request) -> Iterator[Ahead]:
        """Threads that have moved since the target of a rollback."""
        history, threads = self.observer.history(), self._threads()
        target = next((c.id for c in history.checkpoints if c.seq == request.since), "")
        if not target and request.since in history.by_seq:
            target = history.by_seq[request.since].id
        command = f"takeback rollback {target[:8]} --with-state" if target else "takeback rollback --with-state"
        for thread in sorted(threads.moved(request.since)):
            if threads.document(thread) != threads.document(thread, request.since):
                yield Ahead(thread, threads.ahead(thread, request.since), command)

    def _stay_undone(self, request: Request) -> Iterator[Ahead]:
        """Threads that were moved in the turns which an undo takes back."""
        history, threads, wanted = self.observer.history(), self._threads(), set(request.turns)
        oldest: dict[bytes, int] = {}
        for effect in history.effects:
            if effect.domain == "state" and history.turns(effect.seq) & wanted:
                for path in (p for p in effect.changes if (effect.seq, p) in history.live):
                    oldest.setdefault(path, effect.seq)
        for path, seq in sorted(oldest.items()):
            thread, before = thread_of(path), history.change((seq, path)).before
            told = threads.told_by(thread, self.store.blobs.get(before.content), seq) if before is not None else None
            if told and "" in told:
                at = told[""]
                yield Ahead(
                    thread, threads.ahead(thread, at.seq), f"takeback thread rollback {quote(thread)} {short_id(at.id)}"
                )
            else:
                ids = " ".join(history.by_seq[unit.seq].id[:8] for unit in reversed(history.layers(path, seq)))
                yield Ahead(thread, threads.ahead(thread, 0), f"takeback revert {ids}")

    def _judged(
        self,
        tree: OpenFolder,
        steps: tuple[Step, ...],
        history: History,
        known: Callable[[bytes], State],
        unread: Mapping[str, str],
    ) -> tuple[Step, ...]:
        """Steps in a git repository, judged together."""
        if not any(s.domain == "git" for s in steps):
            return steps
        try:
            repository = Repository.at(tree, str(self.observer.root))
        except Unusable:
            repository = None
        elsewhere, under_way = {}, ""
        if repository is not None:
            with repository:
                elsewhere, under_way = repository.elsewhere(), repository.under_way()

        def before(path: bytes, seq: int) -> State:
            return history.state_before(path, seq, known(path))

        lost = self._lost(tree, steps) if repository is not None else frozenset()
        read = self.observer.git.read
        around = judge.Around(read, known, before, history.layers, elsewhere, under_way, lost, unread)
        return judge.judged(steps, around)

    def _lost(self, tree: OpenFolder, steps: tuple[Step, ...]) -> frozenset[bytes]:
        """Paths that would point to what git has collected as garbage."""
        moved = [s for s in steps if s.domain == "git" and s.taken and s.goal is not None]
        goals = {s.path: self.store.blobs.get(s.goal.content) for s in moved if s.goal and not same(s.expected, s.goal)}
        return Git(tree, str(self.observer.root), self.store.blobs.get, self.environ).lost(goals)

    def _with_git_notes(self, tree: OpenFolder, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Says of a folder that stays for a .git in it what would remove that: force does not."""
        root = str(self.observer.root)
        out = []
        for step in steps:
            if not step.taken and step.domain == "files" and step.note == f"it still holds {text(step.path)}/.git":
                told = left_to_git(tree, root, step.path)
                step = step._replace(note=f"it still holds {text(step.path)}/.git, {told}") if told else step
            out.append(step)
        return tuple(out)

    def _within_policy(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """What the owner's policy refuses is kept, and named so; what its domain would not store today, too: it may
        have come into the journal by another way."""
        out = []
        for step in steps:
            if step.taken and step.domain not in STATES:
                decision, source = self.observer.settings.policy.decide(step.domain, step.verdict)
                note = f"refused by policy ({source})" if decision == REFUSE else self._unfit(self._act(step.path))
                if note:
                    step = step.kept(REFUSED, note)
            out.append(step)
        return tuple(out)

    def _unfit(self, act: Act) -> str:
        """Why an act's inverse cannot be run here; empty if it can."""
        assert act.inverse is not None
        try:
            domains.load(act.domain, self.world()).check(act.inverse)
        except TakebackError as error:
            return f"not sent: {error.message}"
        except Exception as error:  # a domain may be anybody's, and so may the journal
            return f"not sent: its inverse makes no sense ({type(error).__name__})"
        return ""

    def _kept_without_bytes(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """A path whose earlier bytes are gone from the store is kept and named; the rest goes back all the same."""
        goals = {s.goal.content for s in steps if s.taken and s.goal is not None and s.goal.content}
        gone = self.store.blobs.lacking(goals - self.merged.keys())
        lost = {s.path for s in steps if gone and s.taken and s.goal is not None and s.goal.content in gone}
        if not lost:
            return steps
        note = "its earlier bytes are not in the store: pruned or damaged"
        kept = [s.kept(UNCOVERED, note) for s in steps if s.path in lost]
        return (*(s for s in steps if s.path not in lost), *kept)

    def _goals(self, request: Request, index: Index) -> requests.Goals:
        """What a checkpoint has at the named paths. What it lacks is deleted only where that is named itself, and known
        to have been absent; folders above them come back only where they are gone."""
        history = self.observer.history()
        if (track := history.tracks.get(request.checkpoint)) is not None:
            return requests.tracked_goals(history, track, request.paths, index.state)
        load, point = self.store.blobs.get, requests.find_point(history, request.checkpoint)

        def is_made(path: bytes) -> bool:
            is_there = index.state(path) is not None and history.is_made_since(path, request.since)
            return is_there and requests.state_at(load, point, path) is None

        made = list(filter(is_made, request.paths))
        named = [path for path in request.paths if path not in made]
        found = requests.goals(load, point, named)
        states: dict[bytes, State] = dict.fromkeys(made)
        states |= {p: e for p, e in found.items() if is_within(p, named) or index.state(p) is None}
        children = children_of(index)
        below = {path for each in named for folder in index.below(each) for path in children(folder)}
        return requests.Goals(states, requests.tops(below.difference(found, made)))

    def save(self, plan: Plan) -> Plan:
        id = new_id()
        body = {"request": plan.request.to_json(), "hash": plan.hash, "steps": [_saved_step(s) for s in plan.steps]}
        if plan.marks:
            body["marks"] = dict(plan.marks)
        self.store.journal.append([New("plan", id, body)], self.observer.clock())
        return plan._replace(id=id)

    def requested(self, plan: Plan | str) -> Request:
        """What a plan was made for."""
        if not isinstance(plan, str):
            return plan.request
        history = self.observer.history()
        return Request.from_json(history.plans[names.resolve(history, plan, plans=True).id]["request"])

    def again(self, tree: OpenFolder | None, plan: Plan | str) -> Plan:
        """The same request planned anew; refused as stale if it would do something else by now."""
        request = self.requested(plan)
        if isinstance(plan, str):
            history = self.observer.history()
            id = names.resolve(history, plan, plans=True).id
            hash, seen = history.plans[id]["hash"], history.plans[id]["steps"]
            marks = history.plans[id].get("marks", {})
        else:
            id, hash, seen, marks = plan.id, plan.hash, [_saved_step(s) for s in plan.steps], plan.marks
        fresh = self.plan(tree, lambda _: request)
        if fresh.hash != hash:
            raise _stale(seen, fresh)
        # What was not set when it was planned may be set by whoever approves it: that person sees it.
        differing = _differing({name: mark for name, mark in marks.items() if mark}, fresh.marks)
        if any(fresh.marks.get(name) for name in differing) or (differing and not self._lacking(fresh.outside)):
            raise _stale_values(differing, fresh.marks, "planned", "look at it again: takeback plan")
        return fresh._replace(id=id)

    # -- applying ------------------------------------------------------------

    def run(self, tree: OpenFolder | None, plan: Plan) -> Outcome:
        """Carries out a plan that was made a moment ago, under the same lock. What it does outside the files, a
        person has approved, or the owner's policy allows."""
        left = tuple(sorted({*(u.path for u in plan.left), *plan.new}))
        moves_on = _moves_on(plan, self.observer.history())
        if not moves_on and all(step.is_so for step in plan.steps):
            return Outcome(plan, "", self._retimed(tree, plan), left)
        if not plan.taken and not moves_on:
            return Outcome(plan, "", tuple(kept_results(plan)), left)
        approval = self._approval(plan)
        self.must_be_ready(plan)
        if self.observer.stopped():
            raise TakebackError("cancelled before anything was done; nothing was changed", "ask for it again")
        for data in self.merged.values():
            self.store.blobs.put(data)
        by = redact.value(dict(self.asker()))
        times_now: dict[bytes, State] = {}
        self._store_documents(plan.taken)
        if tree is not None:
            self._store_git(plan.taken)
            known = states(self.observer.known())
            times_now = {path: known(path) for path in plan.folder_times}
            del known
        if len(plan.steps) >= MANY:
            self.observer.forget_history()  # room for the work itself; all is read anew when asked for
            self.observer.forget()
            give_back_memory()
        head = self.store.journal.head().seq
        executor = self._executor(tree, approval, bool(plan.outside), plan.request, head)
        try:
            done = executor.run(plan, times_now, plan.request.label, approval.id if approval else "", by)
            if tree is not None:
                self._advance(head, done, bool(plan.outside))
        finally:
            self._ahead = None
        return Outcome(plan, done.id, (*done.results, *kept_results(plan)), left)

    def _retimed(self, tree: OpenFolder | None, plan: Plan) -> tuple[Result, ...]:
        """Times alone, which are no work, so that a note is enough. Told is what could not be set."""
        if tree is None or not plan.folder_times:
            return ()
        known = states(self.observer.known())
        failed = tuple(Files(tree, self.store.blobs).apply([], new_id(), plan.folder_times))
        left = {result.path for result in failed}
        found = [Change(path, known(path), entry) for path, entry in plan.folder_times.items() if path not in left]
        body = {"what": "sight", "by": plan.request.verb, "list": pack_list(found, self.store.blobs.put)}
        self.store.blobs.flush()
        self.store.journal.append([New("note", new_id(), body)], self.observer.clock())
        return failed

    def _store_git(self, steps: Iterable[Step]) -> None:
        """Nothing is moved whose value is not stored: of a ref that was only ever seen, no row has it."""
        known = self.observer.git.known()
        values = {s.path: s.expected.content for s in steps if s.domain == "git" and s.expected is not None}
        gone = self.store.blobs.lacking(set(values.values()))
        for path in [path for path, content in values.items() if content in gone]:
            if (value := known.value(path)) is not None:
                self.store.blobs.put(value)

    def _store_documents(self, steps: Iterable[Step]) -> None:
        """The same of threads: the row that told of what one is now may have been pruned."""
        for step in steps:
            if step.domain == "state" and step.expected is not None:
                document = self._threads().document(thread_of(step.path))
                if same(state_of_thread(document), step.expected):
                    self.store.blobs.put(document)

    # -- outside the files -----------------------------------------------------

    def unapproved(self, plan: Plan) -> tuple[list[Step], list[Credential]]:
        """The outside steps of a plan that a person has to approve, and the credentials that would leave for places
        no setting binds them to."""
        decide = self.observer.settings.policy.decide
        steps = [s for s in plan.outside if decide(s.domain, s.verdict).decision != ALLOW]
        unbound: list[Credential] = []
        for step in plan.outside:
            found = self._unbound(self._act(step.path))
            unbound += [credential for credential in found if credential not in unbound]
        return steps, unbound

    def _unbound(self, act: Act) -> Iterable[Credential]:
        assert act.inverse is not None
        return domains.load(act.domain, self.world()).credentials(act.inverse)

    def waiting(self) -> list[Waiting]:
        """Saved plans that need a yes that nobody has given, the newest first, the newest for each request. Nothing is
        planned anew: one of which a step outside the files is done waits for nothing; whether it would still do what
        it says is seen when it is looked at."""
        history, decide = self.observer.history(), self.observer.settings.policy.decide
        stands = {act.id: act for act in history.ledger() if act.shown_state in ("live", HELD)}
        found: dict[str, Waiting] = {}
        for id, body in reversed(history.plans.items()):
            seen = body.get("hash"), body.get("marks", {})
            approved = any(a.plan == id or (a.hash, a.marks) == seen for a in history.approvals.values())
            steps = [(step[0], step[1]) for step in body["steps"] if step[0] in history.acts and any(step[3:])]
            if approved or not steps or any(act not in stands for act, _ in steps):
                continue
            asks = any(decide(stands[act].domain, verdict).decision != ALLOW for act, verdict in steps)
            if asks or any(stands[act].inverse is not None and self._unbound(stands[act]) for act, _ in steps):
                verb = Request.from_json(body["request"]).verb
                found.setdefault(repr(body["request"]), Waiting(id, verb, len(steps)))
        return list(found.values())

    def approve(self, plan: Plan, credentials: Iterable[Credential] = ()) -> Approval:
        """A person says yes to exactly this plan, for once."""
        id = new_id()
        pairs = sorted([c.name, c.origin] for c in credentials)
        body: dict[str, Any] = {"plan": plan.id, "hash": plan.hash, "credentials": pairs}
        if plan.marks:
            body["marks"] = dict(plan.marks)
        self.store.journal.append([New("approval", id, body)], self.observer.clock())
        return self.observer.history().approvals[id]

    def _approval(self, plan: Plan) -> Approval | None:
        """The approval that a plan needs, unused; None if it needs none."""
        steps, unbound = self.unapproved(plan) if plan.outside else ([], [])
        if not steps and not unbound:
            return None
        given = self._given(plan)
        if found := [approval for approval in given if not _differing(approval.marks, plan.marks)]:
            return found[-1]
        for approval in given:
            if approval.plan and approval.plan == plan.id:
                self.must_be_ready(plan)
                differing = _differing(approval.marks, plan.marks)
                raise _stale_values(differing, plan.marks, "approved", "look at it again: takeback plan")
        raise _not_approved(plan, steps, unbound, _differing(given[-1].marks, plan.marks) if given else [])

    def _given(self, plan: Plan) -> list[Approval]:
        """What was approved of a plan and not used, whatever the values here are by now."""
        wanted = {(c.name, c.origin) for c in self.unapproved(plan)[1]}
        approvals = self.observer.history().approvals.values()
        return [a for a in approvals if a.hash == plan.hash and wanted <= set(a.credentials)]

    def marks_of(self, domain: str, inverse: Inverse) -> dict[str, str]:
        """Marks of the values here that decide what an inverse does."""
        return self.marks.of(self._used(domain, inverse))

    def changed_since_recorded(self, act: Act) -> list[str]:
        """The variables of an act's inverse that are set here, and had another value when it was recorded."""
        if act.inverse is None or not act.marks:
            return []
        now = self.marks_of(act.domain, act.inverse)
        return [name for name in _differing(act.marks, now) if now.get(name) and act.marks[name]]

    def _marks_of(self, steps: Iterable[Step]) -> dict[str, str]:
        found: dict[str, str] = {}
        for step in steps:
            act = self.observer.history().acts.get(text(step.path))
            if act is not None and act.inverse is not None:
                found |= self.marks_of(act.domain, act.inverse)
        return found

    def _used(self, domain: str, inverse: Inverse) -> dict[str, str]:
        try:
            ask = getattr(domains.load(domain, self.world()), "uses", None)
            if ask is not None:
                return dict(ask(inverse))
        except Exception:  # a domain may be anybody's; what is wrong with it is told when it is run
            return {}
        names = redact.references(inverse.args)
        return {name: value for name in names if (value := self.environ.get(name))}

    def must_be_ready(self, plan: Plan) -> None:
        """Nothing is begun where a credential that a step needs is not there: it would only fail, half-way. What was
        approved stays approved."""
        way, given = "set it and run the same again", self._given(plan)
        if any(_stands_once_set(approval, plan.marks) for approval in given):
            way += ", which needs no new approval"
        elif given:
            command = f" (takeback approve {plan.id[:8]})" if plan.id else ""
            way += f", which needs a new approval{command}: the one that was given is not for that value"
        if len(plan.outside) < len(plan.taken):
            way += "; or take back the files alone with --only files"
        self._must_be_ready(plan.outside, way)

    def _must_be_ready(self, steps: Iterable[Step], way: str) -> None:
        if found := self._lacking(steps):
            raise CredentialNeeded(f"nothing was changed: {'; '.join(found)}", way)

    def _lacking(self, steps: Iterable[Step]) -> list[str]:
        acts = self.observer.history().acts
        known = [acts[text(step.path)] for step in steps if text(step.path) in acts]
        return list(dict.fromkeys(why for act in known if (why := self.lacks(act))))

    def _not_ready(self, steps: Iterable[Step], approval: Approval | None) -> dict[bytes, str]:
        """Of the acts of an interrupted take-back those that cannot be taken back here and now: why, and what to do."""
        acts, found = self.observer.history().acts, {}
        for step in steps:
            act = acts.get(text(step.path))
            if act is None or act.inverse is None:
                continue
            now = self.marks_of(act.domain, act.inverse)
            seen = {name: mark for name, mark in approval.marks.items() if name in now} if approval else {}
            differing = ", ".join(_differing(seen, now))
            why = self.lacks(act) or (f"{differing}: another value here than when it was approved" if differing else "")
            if why:
                is_sent = bool(act.in_doubt) and not can_settle(act)  # a credential would not tell what came of that
                way = f"find out, then {act.resolving}" if is_sent else f"set it, then takeback revert {act.id[:8]}"
                found[step.path] = f"{why}; {way}"
        return found

    def lacks(self, act: Act) -> str:
        """What the inverse of an act needs and is not there; empty where nobody can say so beforehand."""
        if act.inverse is None:
            return ""
        try:
            ask = getattr(domains.load(act.domain, self.world()), "lacks", None)
            why: str = ask(act.inverse) if ask is not None else ""
        except Exception:  # a domain may be anybody's; what is wrong with it is told when it is run
            return ""
        return f"{why}, and {act.summary} is not taken back without it" if why else ""

    def world(self, approval: Approval | None = None) -> World:
        allowed = frozenset(Credential(*pair) for pair in approval.credentials) if approval else frozenset()
        observer = self.observer
        return World(observer.root, observer.settings, self.environ, self.store.blobs, observer.clock, allowed)

    def _act(self, path: bytes) -> Act:
        return self.observer.history().acts[text(path)]

    def _executor(
        self,
        tree: OpenFolder | None,
        approval: Approval | None,
        outside: bool,
        request: Request,
        head: int,
        lacking: Mapping[bytes, str] = {},
    ) -> Executor:
        known: dict[str, Domain] = {}
        acts = self.observer.history().acts if outside else {}  # of files alone, the history may have been let go
        decide = self.observer.settings.policy.decide

        def domain(name: str) -> Domain:
            if name == "state" and name not in known:
                known[name] = ThreadStates(self._threads(), self.store.blobs.get, request.since or None)
            if name not in known:
                world = self.world(approval)
                known[name] = Acts(name, lambda: domains.load(name, world), lambda path: acts[text(path)], self.environ)
            return known[name]

        def stands_on(newer: bytes, older: bytes) -> bool:
            a, b = acts.get(text(newer)), acts.get(text(older))
            return a is not None and b is not None and depends(a, b)

        def look(takeback: str) -> list[Change]:
            assert tree is not None  # nothing outside is done in a take-back of threads alone
            seen = self.observer.scan(tree, self.observer.known())
            self.observer.journal_look(seen, self.observer.rows_of(seen, takeback=takeback))
            return [*seen.changes, *(seen.git.changes if seen.git is not None else ())]

        def forbids(step: Step) -> str:
            """What a take-back began with approval is finished under it: that act with that inverse, and no other."""
            act = acts.get(text(step.path))
            if act is None or act.domain != step.domain or not same(act.entry, step.expected) or act.inverse is None:
                return "it is not what was approved any more"
            if approval is None and decide(act.domain, act.verdict).decision != ALLOW:
                return "nobody approved it"
            return lacking.get(step.path, "")

        def made(changes: list[Change]) -> None:
            if not outside:
                try:
                    self._prepare(head, changes)
                except Exception:  # it is tried again once they are journaled, which must not wait for a cache
                    self._ahead = None

        if tree is not None:
            fork, progress = self.store.folder is not None, self.observer.progress
            foresee = None if outside else (lambda steps, times: made(changes_made(steps, times)))
            known["files"] = Files(tree, self.store.blobs, progress, fork, foresee)
            known["git"] = Git(tree, str(self.observer.root), self.store.blobs.get, self.environ, request.verb)
        outer = Outer(self.unlocked, stands_on, look, forbids, self.observer.told, made, self.observer.stopped)
        return Executor(self.store.journal, self.store.blobs, domain, self.observer.clock, outer)

    def _prepare(self, head: int, changes: list[Change]) -> Index:
        """The known tree with these changes, in memory alone: it is made while they are carried out and the disk writes
        them, and made anew if it comes otherwise."""
        foreseen, self._ahead = self._ahead, None
        if foreseen is not None and foreseen[1] == changes:
            index = foreseen[0]
        else:
            index = self.observer.known(head)
            index.apply(changes)
        self._ahead = index, [*changes]
        return index

    def _advance(self, head: int, done: Done, outside: bool) -> None:
        """The known tree after a take-back. What was written is read again by the next look: its key is too young."""
        if outside:  # others may have journaled meanwhile, and so has the look after each act
            self.observer.save(self.observer.known())
            return
        index = self._prepare(head, done.changes)
        self._ahead = None
        index.seq = done.seq
        let_go(done.changes)  # room to pack the index in
        self.observer.save(index)

    def finish_interrupted(self, tree: OpenFolder, abort: bool, leave: bool = False) -> Outcome | None:
        found = self.observer.history().interrupted
        if found is None:
            return None
        takeback, segments = found
        steps = [step for segment in segments if not segment.ended for step in steps_of(segment)[0]]
        left = frozenset() if abort else self._left_then(takeback)
        kept = [] if abort else [*self._kept_then(takeback, left), *self._unread_then(takeback)]
        staying = self.planner().leaving(Plan(self.id, takeback.request, ()), left)
        head = self.store.journal.head().seq
        outside = any(segment.domain not in STATES for segment in segments)
        approval = self._approval_of(takeback) if outside else None
        waiting = [step for step in steps if step.domain not in STATES]
        lacking = self._not_ready(waiting, approval) if leave and not abort else {}
        if not abort and not leave:
            self._must_be_ready(waiting, "set it and run takeback resume again, or takeback resume --abort goes back")
            now = self._marks_of(waiting)
            seen = {name: mark for name, mark in approval.marks.items() if name in now} if approval else {}
            if differing := _differing(seen, now):
                way = "set it as it was and run takeback resume again, or takeback resume --abort goes back"
                raise _stale_values(differing, now, "approved", way)
        executor = self._executor(tree, approval, outside, takeback.request, head, lacking)
        try:
            done = executor.finish(takeback, segments, abort, self.observer.known().state)
            if any(segment.domain != "state" for segment in segments):
                self._advance(head, done, outside)
        finally:
            self._ahead = None
        earlier = [] if abort else [told for segment in segments if segment.ended for told in _came_of(segment)]
        plan = staying._replace(steps=(*(step for step, _ in earlier), *steps, *kept))
        unread = [Result(s.path, s.verdict, KEPT, s.note) for s in kept if s.verdict == UNCOVERED]
        came = (*(result for _, result in earlier), *done.results, *unread)
        return Outcome(plan, done.id, came, tuple(sorted({unit.path for unit in left})), finished_earlier=True)

    def _left_then(self, takeback: Takeback) -> frozenset[Unit]:
        """What an interrupted take-back had left because it is others' work, as far as its row tells."""
        row = self.store.journal.get(takeback.id)
        body = row.body if row is not None and row.body is not None else {}
        return unpack_units(body["kept"]) - unpack_units(body["stayed"]) if "stayed" in body else frozenset()

    def _kept_then(self, takeback: Takeback, left: frozenset[Unit]) -> list[Step]:
        """What the plan of an interrupted take-back had kept of what it was about, as far as its row tells."""
        history = self.observer.history()
        found: dict[tuple[str, bytes], list[Unit]] = {}
        for unit in sorted(takeback.kept - left):
            act = history.act_of(unit.seq)
            found.setdefault((act.domain if act is not None else domain_of(unit.path), unit.path), []).append(unit)
        steps = []
        for (domain, path), units in found.items():
            verdict, note = (DRIFTED, "changed since") if domain in STATES else (IRREVERSIBLE, "it was to stay")
            steps.append(Step(domain, path, UNOBSERVED, UNOBSERVED, verdict, tuple(units), -1, note))
        return steps

    def _unread_then(self, takeback: Takeback) -> list[Step]:
        """What could not be read when an interrupted take-back was planned: left alone, to be tried again."""
        row = self.store.journal.get(takeback.id)
        unread = row.body.get("unread", ()) if row is not None and row.body is not None else ()
        return [Step("files", raw(path), UNOBSERVED, UNOBSERVED, UNCOVERED, (), -1, why) for path, why in unread]

    def _approval_of(self, takeback: Takeback) -> Approval | None:
        """The approval under which an interrupted take-back began: it was used then, and holds to its end."""
        row = self.store.journal.get(takeback.id)
        begun = row.body if row is not None and row.body is not None else {}
        used = self.store.journal.get(begun.get("approval", ""))
        if used is None or used.body is None or used.kind != "approval" or used.body.get("hash") != begun.get("hash"):
            return None
        pairs = tuple((name, origin) for name, origin in used.body.get("credentials", ()))
        return Approval(used.id, used.body["plan"], used.body["hash"], used.at, pairs, used.body.get("marks", {}))

    # -- out of the workspace --------------------------------------------------

    def export(self, name: str, paths: Sequence[bytes], to: Path, force: bool) -> Outcome:
        """Files of a checkpoint into another folder, with their relative paths."""
        point = requests.find_point(self.observer.history(), name)
        request = Request("restore", checkpoint=point.id, label=point.label, paths=tuple(paths) or (b"",))
        found = requests.goals(self.store.blobs.get, point, request.paths)
        real = Path(os.path.realpath(to))
        if real.is_relative_to(os.path.realpath(self.observer.settings.home)):
            raise UsageError(f"{to} lies inside takeback's own store", "name a folder elsewhere")
        if force and real.is_relative_to(self.observer.root):
            raise UsageError(
                f"{to} lies inside the project, where nothing is replaced without storing it first",
                "leave out --force, name a folder outside, or restore in place without --to",
            )
        try:
            to.mkdir(parents=True, exist_ok=True)
            folder = open_root(str(to), self.observer.settings.portable)
        except OSError as error:
            raise TakebackError(
                f"{to} cannot be used ({error.strerror})", "name a folder that can be made or written"
            ) from error
        with folder:
            results = export(folder, self.store.blobs, sorted(found.items()), force)
        return Outcome(Plan(self.id, request, ()), "", tuple(results))


def _no_merge(base: State, ours: State, theirs: State, markers: bool) -> State:
    raise Conflict


def _came_of(segment: Segment) -> Iterator[tuple[Step, Result]]:
    """What a part that was over before its take-back was cut off came to: whoever did it could not say so any more."""
    for step in steps_of(segment)[0]:
        yield step, segment.undone.get(step.path) or Result(step.path, step.verdict, DONE)


def _not_approved(
    plan: Plan, steps: list[Step], unbound: list[Credential], differing: Sequence[str] = ()
) -> ApprovalNeeded:
    """`differing` are the variables that had another value, or none, when a yes was given to this very plan."""
    parts = [f"{len(steps)} step{'s' * (len(steps) != 1)} outside the files"] if steps else []
    parts += [f"sending {c.name} to {c.origin}" for c in unbound]
    needs = f"{' and '.join(parts)} need{'s' * (len(parts) == 1 and len(steps) < 2)} a person's yes"
    if differing:
        needs += f"; the one that was given is for another value of {', '.join(differing)} than is here"
    bound = "".join(f"; your own configuration binds it for good: {c.binding}" for c in unbound)
    return ApprovalNeeded(
        f"nothing was changed: {needs}",
        "on a terminal, run it again and type yes; or save it with takeback plan, then takeback approve PLAN and "
        f"takeback apply PLAN; or take back the files alone with --only files{bound}",
    )


def _moves_on(plan: Plan, history: History) -> bool:
    """Whether it is journaled though it takes nothing: undo and redo go on from there, and what several did goes with
    the last of them, so that it must be known of each that it was asked for. A take-back that stands no more is redone
    already, and nothing goes on from there."""
    request = plan.request
    if request.verb == "revert":
        return bool(request.turns or request.calls) and bool(plan.others_work)
    if request.verb == "redo":
        return not history.standing.keys().isdisjoint(request.takebacks)
    return request.verb == "undo" and bool(request.turns)


def _refuse_across_damage(history: History, plan: Plan) -> None:
    """What a row held that was altered or lost nobody knows, so nothing is taken back across it."""
    request = plan.request
    units = {u.seq for s in plan.steps for u in s.units} | {u.seq for u in plan.left}
    units |= {history.takebacks[id].seq for id in request.takebacks if id in history.takebacks}
    lowest = min(units, default=history.head + 1)
    lowest = min(lowest, request.since) if request.verb == "rollback" else lowest
    for seq in sorted(history.damaged):
        if seq >= lowest:
            raise Damaged(
                f"journal row {seq} was altered or lost: take-backs across it cannot be trusted; nothing was changed",
                "bring files back with takeback restore CHECKPOINT PATH…; takeback verify says what is lost",
            )


def _with_reasons(look: Look, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Says of what is kept because this look could not read it why that was so."""
    why = {path: reason for path, reason in look.lacking if is_unread(reason)}
    if not why:
        return steps
    out = []
    for step in steps:
        if step.verdict == UNCOVERED and step.domain == "files":
            above = next((p for p in (step.path, *_above(step.path)) if p in why), None)
            step = step._replace(note=why[above]) if above is not None else step
        out.append(step)
    return tuple(out)


def _with_link_notes(tree: OpenFolder, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Says where taking a file back breaks a hard link that leaves the root."""
    if len(steps) > _MANY:
        return steps
    return tuple(
        step._replace(note="its hard link outside the project is broken") if _leaves(tree, step) else step
        for step in steps
    )


def _leaves(tree: OpenFolder, step: Step) -> bool:
    if step.domain != "files" or not step.taken:
        return False
    if step.expected is None or step.expected.kind != FILE or step.expected.group:
        return False
    *parents, name = components(step.path)
    try:
        with tree.descend(parents) as here:
            return here.stat(name).st_nlink > 1
    except OSError:
        return False


def _above(path: bytes) -> Iterator[bytes]:
    """The folders a path lies in, but for the root."""
    while path := parent(path):
        yield path


def _unreadable(look: Look, plan: Plan, history: History) -> Iterator[Step]:
    """What cannot be read now and could be at the target: whether it goes back nobody knows, so it is named."""
    target = next((c for c in reversed(history.checkpoints) if c.seq <= plan.request.since), None)
    known = {raw(path) for path, _ in target.partial} if target else set()
    known |= {s.path for s in plan.steps}
    for path, why in look.lacking:
        if path not in known:
            yield Step("files", path, UNOBSERVED, UNOBSERVED, UNCOVERED, (), -1, note=why)


def _saved_step(step: Step) -> list[str]:
    states = [_brief(step.expected), _brief(step.goal)] if step.taken else ["", ""]
    return [text(step.path), step.verdict, step.note, *states]


def _brief(state: State) -> str:
    if state is None:
        return "absent"
    if state.kind == FOLDER:
        return f"folder {state.mode:o}"
    return f"{state.content.hex()[:12]} {state.mode:o}"


def _stale(seen: Sequence[Any], fresh: Plan) -> Stale:
    def told(steps: Sequence[Any]) -> dict[str, str]:
        return {path: f"{verdict}: {was} → {goal}" if was or goal else verdict for path, verdict, _, was, goal in steps}

    then, now = told(seen), told([_saved_step(s) for s in fresh.steps])
    differing = tuple(
        (path, then.get(path, "not in the plan"), now.get(path, "no longer in the plan"))
        for path in sorted({*then, *now})
        if then.get(path) != now.get(path)
    )
    return Stale(
        "the plan is stale: the same request would do something else by now; nothing was changed",
        "look at it again: takeback plan",
        differing,
    )


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The variables that had another value then, or none."""
    return [name for name, mark in then.items() if mark != now.get(name, "")]


def _stands_once_set(approval: Approval, now: Mapping[str, str]) -> bool:
    """Whether a yes still holds when what is not set here is set as it was then."""
    return all(mark == now[name] if now.get(name) else bool(mark) for name, mark in approval.marks.items())


def _stale_values(differing: Sequence[str], now: Mapping[str, str], when: str, way: str) -> Stale:
    listed = ", ".join(differing)
    verb = "has another value" if len(differing) == 1 else "have other values"
    told = tuple((name, f"as it was {when}", "another value" if now.get(name) else "not set") for name in differing)
    return Stale(f"the plan is stale: {listed} {verb} here than when it was {when}; nothing was changed", way, told)
