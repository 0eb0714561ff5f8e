"""From live effects to a plan: which units a request means, and how well each path can be taken back. Pure.

Each path is walked newest first. While the changes are ours it goes back exactly; below a foreign change it has
drifted, and is kept, or merged when asked:

    newest   ours      exact: back to its before
             foreign   ── from here on what is ours has drifted ──
             ours      kept, or merged (base = our after, ours = present, theirs = our before)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby

from takeback.config.agents_own_files import is_agents_own, may_hold_own, own_below
from takeback.errors import NotFound, UsageError
from takeback.journal.history import History
from takeback.model.effects import (
    DRIFTED,
    EXACT,
    FOLDER,
    IRREVERSIBLE,
    MERGED,
    PERSONS,
    STATES,
    TAKEN,
    UNCERTAIN,
    UNCOVERED,
    UNKNOWN,
    UNSEEN,
    Change,
    Effect,
    Entry,
    Plan,
    Request,
    State,
    Step,
    Turn,
    Unit,
    domain_of,
    is_within,
    path_of_thread,
    same,
    text,
    thread_of,
)
from takeback.model.outside import BEGUN, Act, depends
from takeback.store.folder_objects import parent
from takeback.text.linediff import Conflict

Merge = Callable[[State, State, State, bool], State]  # base, ours, theirs, markers → merged; raises Conflict
Known = Callable[[bytes], State]
ALREADY = "already as it was"
LINKS_ONLY = "only its hard links"
_MOST_IDS = 6  # in a command that somebody is to type
_NOT_CAPTURED = "it is not captured, so it is not touched"
_ORDER = {"files": 1, "git": 2, "state": 3}  # within a segment: git after files, which its index remembers as they are
_NO_GOALS: Mapping[bytes, State] = {}


class Planner:
    def __init__(
        self,
        workspace: str,
        history: History,
        known: Known,
        merge: Merge,
        children: Callable[[bytes], Iterable[bytes]] = lambda _: (),
        linked: Callable[[bytes], Iterable[bytes]] = lambda _: (),
        left_alone: Collection[str] = (),
    ) -> None:
        self.workspace = workspace
        self.history = history
        self.known = known  # the last observed state of a path
        self.children = children  # the paths in a folder, those not covered among them
        self.linked = linked  # all names of a file that has several
        self.merge = merge
        self.left_alone = left_alone  # domains that the settings leave as they are
        self._alone = False  # whether what is asked for is taken out of the middle
        self._waits: dict[int, str] = {}  # rows of acts that stay, and the act each of them waits for
        self._carrying: dict[int, Act] = {}  # rows of acts that stay, and the act of another that stands on each
        self._gone: dict[bytes, bool] = {}  # folder → whether it is gone, and held agents' own files alone

    # -- resolving what was asked --------------------------------------------

    def undo(self, n: int, actors: Iterable[str] | None, options: Request, spared: Collection[Turn] = ()) -> Request:
        """The newest n turns with a live unit that no standing undo of that turn has kept."""
        history = self.history
        only = None if actors is None else tuple(sorted(set(actors)))
        agents_only = options.by_agent and only is None and not options.everything and history.knows_agents
        passed = history.passed

        def is_wanted(turn: Turn) -> bool:
            """What an agent asks for is an agent's turn, where any is known; a person's is for a person to undo."""
            is_for_them = turn.actor in only if only is not None else not (agents_only and turn.actor in PERSONS)
            return is_for_them and turn not in spared

        newest: dict[Turn, int] = {}
        turns = {e.seq: history.turns(e.seq) for e in history.effects if self._is_domain_in_scope(e.domain, options)}
        for seq, path in history.live:
            if self._is_own(path) and not self._is_thrown_away(path, [seq]):
                continue
            for turn in turns.get(seq, ()):
                if seq > newest.get(turn, -1) and (not passed or (turn, (seq, path)) not in passed) and is_wanted(turn):
                    newest[turn] = seq
        for unit, again in history.rewritten.items() if self._is_domain_in_scope("files", options) else ():
            for turn, seq in again.items():
                if is_wanted(turn) and seq > newest.get(turn, -1) and (turn, unit) not in passed:
                    newest[turn] = seq
        found = sorted(newest, key=lambda t: (-newest[t], t))[:n]
        return options._replace(verb="undo", turns=tuple(found), actors=only)

    def redo(self, n: int, options: Request) -> Request:
        """The newest n take-backs standing, not counting those that took nothing. What a person took back an agent does
        not bring back by itself."""
        is_agents = options.by_agent and not options.everything and self.history.knows_agents
        target, taking = [], 0
        for id, takeback in self.history.standing.items():
            if takeback.verb != "redo" and taking < n and (takeback.by or not is_agents):
                target.append(id)
                taking += bool(takeback.rows)
        return options._replace(verb="redo", takebacks=tuple(target) if taking else ())

    # -- selecting -----------------------------------------------------------

    def select(self, request: Request) -> tuple[set[Unit], set[Unit]]:
        """The units to take back, and those in range that are left because they are others' work."""
        ours, left = self._with_all_owners(*self._select(request), request)
        if request.verb == "revert" and request.paths:
            ours, left = ({u for u in units if self._is_file_in(u, request.paths)} for units in (ours, left))
        ours, left = self._without_uncertain(ours, left, request)
        own = set() if request.paths else {u for u in ours if may_hold_own(u.path) and self._is_own(u.path)}
        if own := {u for u in own if not self._is_outside(u.seq)}:
            own -= self._thrown_away(own)
            ours, left = ours - own, left | own
        if request.leave:
            stays = {u for u in ours if not self._is_outside(u.seq) and self.history.by_seq[u.seq].id in request.leave}
            ours, left = ours - stays, left | stays
        if not (request.only or request.without or request.leave or self.left_alone or self._has_threads()):
            return ours, left
        return {u for u in ours if self._is_in_scope(u, request)}, {u for u in left if self._is_in_scope(u, request)}

    def _is_file_in(self, unit: Unit, paths: Sequence[bytes]) -> bool:
        return self.history.by_seq[unit.seq].domain == "files" and is_within(unit.path, paths)

    def _select(self, request: Request) -> tuple[set[Unit], set[Unit]]:
        history = self.history
        if request.verb == "undo":
            return self._select_undo(request)
        if request.verb == "redo":
            known = history.takebacks
            rows = (seq for id in request.takebacks if id in known for seq in known[id].rows)
            return {u for u in history.units(rows) if u in history.live}, set()
        if request.verb == "revert":
            return self._select_revert(request)
        if request.verb == "compensate":
            units = {Unit(act.seq, act.path) for act in history.live_acts if act.seq >= request.since}
            if request.actors:
                return {u for u in units if history.actors(u) <= set(request.actors)}, set()
            is_narrow = request.by_agent and history.knows_agents and not request.everything
            left = {u for u in units if is_narrow and history.asked_about(u)}
            return units - left, left
        return self._select_rollback(request)

    def _is_own(self, path: bytes) -> bool:
        """An agent's own file, or a folder that holds one, or held nothing else before it went, and would stand empty
        if it came back: not taken back unless it is named."""
        if is_agents_own(path):
            return True
        below = own_below(path)
        return any(self.known(own) is not None for own in below) or (bool(below) and self._was_own(path))

    def _was_own(self, folder: bytes) -> bool:
        if folder not in self._gone:
            found = [p for p in self.history.all_paths if p.startswith(folder + b"/")]
            is_all = all(is_agents_own(p) or own_below(p) for p in found)
            self._gone[folder] = is_all and any(map(is_agents_own, found)) and self.known(folder) is None
        return self._gone[folder]

    def _thrown_away(self, own: set[Unit]) -> set[Unit]:
        rows: dict[bytes, list[int]] = {}
        for unit in own:
            rows.setdefault(unit.path, []).append(unit.seq)
        return {u for u in own if self._is_thrown_away(u.path, rows[u.path])}

    def _is_thrown_away(self, path: bytes, rows: Sequence[int]) -> bool:
        """Gone by what an agent did: it comes back like any other. Without its hooks, nothing that the agent does next
        would be captured. What a person took out stays out."""
        if self.known(path) is not None or not self.history.by_seq[max(rows)].has_agent:
            return False
        return self.history.change(Unit(min(rows), path)).before is not None

    def _is_in_scope(self, unit: Unit, request: Request) -> bool:
        domain = self.history.by_seq[unit.seq].domain
        if domain not in STATES and text(unit.path) in request.leave:
            return False
        named = request.threads if request.verb != "undo" else ()
        if domain == "state" and named and thread_of(unit.path) not in named:
            return False
        return self._is_domain_in_scope(domain, request)

    def _is_domain_in_scope(self, domain: str, request: Request) -> bool:
        if domain in self.left_alone or (domain == "state" and not takes_threads(request)):
            return False
        return (not request.only or domain in request.only) and domain not in request.without

    def _has_threads(self) -> bool:
        return any(e.domain == "state" for e in self.history.effects)

    def _select_undo(self, request: Request) -> tuple[set[Unit], set[Unit]]:
        history, wanted = self.history, set(request.turns)
        if not wanted:
            return set(), set()
        turns = {e.seq: history.turns(e.seq) for e in history.effects}
        live = [Unit(*u) for u in history.live if turns[u[0]]]
        touched = {u for u in live if turns[u.seq] & wanted}
        if request.everything and touched:
            return history.shown(min(touched).seq), set()
        # With what earlier undos kept, but for those of others alone: it may be free by now.
        actors = set(request.actors or ())
        mine = [u for u in live if not actors or any(turn.actor in actors for turn in turns[u.seq])]
        ours = {u for u in mine if _goes_with(u, turns[u.seq], wanted, history.passed)}
        ours, left = (ours & touched if request.force else ours), touched - ours
        return self._conversation(request, turns, ours, left) if request.threads else (ours, left)

    def _conversation(
        self, request: Request, turns: Mapping[int, frozenset[Turn]], ours: set[Unit], left: set[Unit]
    ) -> tuple[set[Unit], set[Unit]]:
        """A conversation is taken back as a stack: to before these turns, with whatever was added to it since. What
        undos of other conversations had to keep is none of its business."""
        history = self.history
        talk = history.turns_of(request.threads)
        paths = set(map(path_of_thread, request.threads))
        ours = {u for u in ours if u.path not in paths and turns[u.seq] & talk}
        since = min((history.agent_turns[t].seq for t in request.turns if t in history.agent_turns), default=0)
        for path in paths if since else ():
            ours.update(history.added(path, since))
        return ours, {u for u in left if u.path not in paths}

    def _asked_for(self, steps: list[Step], request: Request) -> list[Step]:
        """Without what earlier undos kept and is still not free: it was named then, and is no part of this one."""
        if request.verb != "undo" or request.everything:
            return steps
        wanted = set(request.turns)
        return [s for s in steps if s.taken or any(self.history.turns(u.seq) & wanted for u in s.units)]

    def _select_rollback(self, request: Request) -> tuple[set[Unit], set[Unit]]:
        history, since = self.history, request.since
        shown = history.shown(since) - history.unread_at(since)
        if (request.own or request.turns) and not request.everything:
            return self._select_thread(request, shown)
        if request.everything or not (self._is_asked_about(request) or request.actors):
            return shown, set()

        # Work since the target; and take-backs since of work before it, with all they took.
        live = {u for u in shown if u in history.live}
        across = {u for u in live if any(taken < since for taken in history.change(u).took)}
        ours = set(across)
        for unit in across:
            ours |= {t for s in history.change(unit).took if (t := Unit(s, unit.path)) in shown}
        inside = ours | {u for u in live if not history.by_seq[u.seq].takeback}
        if request.actors:
            ours = {u for u in inside if history.actors(u) <= set(request.actors)}
        else:
            ours = {u for u in inside if self._goes_unasked(u, request)}
            if inside <= ours:  # the world of the target, and nothing less
                paths = {u.path for u in inside}
                return {u for u in shown if u.path in paths}, set()
            ours |= {u for u in shown if domain_of(u.path) == "state"}  # asked for by name
        return ours, {u for u in inside - ours if u in history.live}

    def _is_asked_about(self, request: Request) -> bool:
        """Whether a rollback asks about the work of people: an agent is known to have been there since, or asks itself.
        Else it is all of one kind, and goes; and so where no agent ever told of its work: nobody can tell it apart."""
        return (request.by_agent and self.history.knows_agents) or self.history.has_agent_since(request.since)

    def _goes_unasked(self, unit: Unit, request: Request) -> bool:
        """Whether a rollback takes it by itself."""
        kind = self.history.asked_about(unit)
        return not kind or kind in request.also

    def _without_uncertain(self, ours: set[Unit], left: set[Unit], request: Request) -> tuple[set[Unit], set[Unit]]:
        """Whether it was theirs whose work goes back nobody knows, so that it stays unless a person says otherwise.
        What earlier undos left so was asked about then, and is no part of this one."""
        history = self.history
        if request.everything or not history.uncertain_rows or request.verb == "redo":
            return ours, left
        uncertain = {u for u in ours if u.seq in history.uncertain_rows and domain_of(u.path) != "state"}
        is_narrow = request.verb in ("undo", "revert") or request.own or request.turns
        if not is_narrow and not (request.verb == "rollback" and self._is_asked_about(request)):
            uncertain = {u for u in uncertain if not self._is_outside(u.seq)}  # whose it is makes no difference
        asked = uncertain
        if request.verb == "undo":
            asked = {u for u in uncertain if history.turns(u.seq) & set(request.turns)}
            ours = ours - (uncertain - asked)
        return (ours, left) if UNCERTAIN in request.also else (ours - asked, left | asked)

    def _with_all_owners(self, ours: set[Unit], left: set[Unit], request: Request) -> tuple[set[Unit], set[Unit]]:
        """Who wrote a file once more with the same bytes, another thread or another agent's session, is one more owner
        of it: it goes with the last of them, and stays until then."""
        history, passed = self.history, self.history.passed
        wanted = self._turns_of(request)
        in_part = history.turns_named(request) - wanted  # of these only what is selected
        if not (wanted or in_part) or request.everything or request.force:
            return ours, left
        ours, left = set(ours), set(left)
        for unit, again in history.rewritten.items():
            owners = {**dict.fromkeys(history.turns(unit.seq), unit.seq), **again}
            asked = wanted | in_part if unit in ours or unit in left else wanted
            going = {turn for turn, seq in owners.items() if turn in asked and seq >= request.since}
            if not going and unit not in ours:
                continue
            if _goes_with(unit, owners, going, passed):
                ours.add(unit)
                left.discard(unit)
            else:
                ours.discard(unit)
                left |= {unit} if going else set()
        return ours, left

    def _turns_of(self, request: Request) -> frozenset[Turn]:
        """The turns whose work is to go, where a request is of turns or of a thread."""
        return frozenset(request.turns) or self.history.turns_of(request.threads if request.own else ())

    def _has_others_too(self, unit: Unit, turns: frozenset[Turn]) -> bool:
        """Whether it is the work of these turns and of others: it goes with the last of them."""
        owners = self.history.whose(unit).union(self.history.rewritten.get(unit, ()))
        return not owners.isdisjoint(turns) and not owners <= turns

    def _asks(self, left: Iterable[Unit], request: Request) -> dict[str, frozenset[Unit]]:
        """What is left, by kind, where a person may say that it goes too. A take-back that is narrow by itself, or was
        narrowed, asks only about what may be of those whose work it takes."""
        is_narrow = request.verb != "rollback" or request.actors or request.turns or request.threads
        found: dict[str, set[Unit]] = {}
        for unit in left:
            kind = self.history.asked_about(unit)
            if kind == UNCERTAIN or (kind and not is_narrow):
                found.setdefault(kind, set()).add(unit)
        return {kind: frozenset(found[kind]) for kind in sorted(found)}

    def _select_thread(self, request: Request, shown: set[Unit]) -> tuple[set[Unit], set[Unit]]:
        """Of threads all that shows; of the world what was done in their turns, or in those that are named. What they
        did at the same time as others goes with the last of those."""
        history, since = self.history, request.since
        wanted = set(request.turns) or history.turns_of(request.threads)
        state = {u for u in shown if domain_of(u.path) == "state"}
        world = {u for u in shown - state if u in history.live}
        across = {u for u in world if any(taken < since for taken in history.change(u).took)}
        inside = across | {u for u in world if not history.by_seq[u.seq].takeback}
        whose = {u: history.whose(u) for u in inside}
        passed = history.passed

        ours = {u for u in inside if whose[u] & wanted and _goes_with(u, whose[u], wanted, passed)}
        left = {u for u in inside - ours if whose[u] & wanted or not (request.turns or u in across)}
        for unit in ours & across:
            ours |= {t for seq in history.change(unit).took if (t := Unit(seq, unit.path)) in shown}
        return ours | state, left

    def _select_revert(self, request: Request) -> tuple[set[Unit], set[Unit]]:
        history = self.history
        by_id = {e.id: e.seq for e in history.effects}
        units = {u for u in history.units(by_id[id] for id in request.rows if id in by_id) if u in history.live}
        left = self.shared(units, history.turns_named(request))
        units -= left
        if request.rows or request.turns or request.calls:
            return units, left
        for path in request.paths:
            ours, others = self._of_path(path, request.since)
            units |= ours
            left |= others
        return units, left - units

    def shared(self, units: Iterable[Unit], turns: Collection[Turn]) -> set[Unit]:
        """What of these a take-back of turns leaves, as others were at work at the same time."""
        whose, passed = {u: self.history.turns(u.seq) for u in units}, self.history.passed
        return {u for u in whose if not whose[u].isdisjoint(turns) and not _goes_with(u, whose[u], turns, passed)}

    def _of_path(self, named: bytes, since: int) -> tuple[set[Unit], set[Unit]]:
        """What agents did to a path, of a folder to all in it, since a point, else their newest change; and what people
        did there meanwhile. Of a path in which no agent ever changed anything, what people did."""
        history = self.history
        point = since or history.last_point(named)
        paths = history.recorded_below(named)
        layers = [u for path in paths for u in history.layers(path, 0)]
        if not any(map(history.has_agent_changed, paths)):
            ours = {u for path in paths for u in history.layers(path, point)}
            return ours or (_newest(layers) if not since else ours), set()
        shown = [u for u in layers if u in history.live and not history.by_seq[u.seq].takeback]
        mine = [u for u in shown if history.by_seq[u.seq].is_agents]
        ours = {u for u in mine if u.seq > point}
        if not ours and not since:
            ours = _newest(mine)
        lowest = {path: min(units).seq for path, units in groupby(sorted(ours, key=_path), key=_path)}
        start = min((point, *lowest.values()))
        return ours, {u for u in shown if u.seq > lowest.get(u.path, start) and u not in ours}

    # -- planning ------------------------------------------------------------

    def plan(self, request: Request, goals: Mapping[bytes, State] = _NO_GOALS) -> Plan:
        """`goals` says what threads were where a rollback leads: that may lie between two looks at them."""
        ours, left = self.select(request)
        self._alone = request.verb == "revert"
        grouped: dict[bytes, list[Unit]] = {}  # lists: large trees have many paths, and a set is five times as heavy
        outside: dict[bytes, list[Unit]] = {}  # apart: a file may be called like an act
        beyond = self.history.outside_rows
        for unit in ours:
            (outside if unit.seq in beyond else grouped).setdefault(unit.path, []).append(unit)
        forced: frozenset[Unit] = frozenset()
        if request.force:  # everything above ours goes too, and is listed as taken
            by_path = {path: self._forced(path, min(units).seq, units) for path, units in grouped.items()}
            self._add_folders(by_path)
            forced = self._others_among(by_path.values(), ours)
            grouped = {path: list(units) for path, units in by_path.items()}
        self._waits = self._waiting() if outside and not self._alone else {}
        self._carrying = self._carrying_others(outside) if outside and not (self._alone or request.force) else {}
        newest = {max(units).seq for units in outside.values()}
        acts = sorted(seq for seq in newest if self._act_verdict(seq) in TAKEN)
        lowest = request.since or min((u.seq for u in ours), default=0)
        ours.clear()  # large trees have many: each is let go once its step is made
        steps: list[Step] = []
        for path in sorted(grouped):  # neighbours one after another: their folder is decoded once
            if domain_of(path) == "state":
                steps += self._thread_steps(path, grouped.pop(path), request, lowest, goals)
            else:
                steps += self._path_steps(path, grouped.pop(path), request, acts, lowest)
        steps += self._threads_between(goals, steps, request)
        steps += [self._act_step(path, units, acts) for path, units in outside.items()]
        steps = self._with_real_groups(self._standing_on(steps), request.since)
        steps = self._asked_for(steps, request)
        steps += self._unread_then(request, {step.path for step in steps})
        if forced:  # what of it is taken is not left
            gone = frozenset().union(*(s.units for s in steps if s.taken))
            left, forced = left - gone, forced & gone
        left = left - self._within_merged(steps, left, request)
        if unmoved := self._as_they_were(steps, left, request):
            steps = [s for s in steps if s.verdict != DRIFTED or s.path not in unmoved]
            left = {u for u in left if u.path not in unmoved or self._is_outside(u.seq)}
        steps.sort(key=lambda s: (not s.taken, -s.segment, _ORDER.get(s.domain, 0), -_newest_act(s), s.path))
        times = self._times(steps, left, request)
        return self.leaving(Plan(self.workspace, request, tuple(steps), folder_times=times, forced=forced), left)

    def _within_merged(self, steps: Iterable[Step], left: Iterable[Unit], request: Request) -> set[Unit]:
        """What people wrote to a path that is reverted by its name, and stays in what is merged: the agents' part goes
        whole, and that is all that was asked for. What may be an agent's is asked about all the same."""
        if request.verb != "revert" or not request.merge or request.rows or request.turns or request.calls:
            return set()
        merged = {s.path for s in steps if s.verdict == MERGED}.difference(s.path for s in steps if not s.taken)
        return {u for u in left if u.path in merged and u.seq not in self.history.uncertain_rows}

    def _as_they_were(self, steps: Iterable[Step], left: Iterable[Unit], request: Request) -> set[bytes]:
        """Paths that a rollback leaves alone, and that are now what they were where it leads, as what was made and
        deleted since: nothing is to be said of them. But what a thread shares with others, and leaves
        to them, is named and noted all the same: it goes with the last of them."""
        if request.verb != "rollback":
            return set()
        mine = self._turns_of(request)
        named = {u.path for u in left if mine and self._has_others_too(u, mine)}
        moved = {s.path for s in steps if s.taken and not same(s.expected, s.goal)}
        stay = {u.path for u in left if not self._is_outside(u.seq)}
        stay |= {s.path for s in steps if s.verdict == DRIFTED and s.domain in STATES}
        known = ((path, self.known(path)) for path in sorted(stay - moved - named) if domain_of(path) != "state")
        return {path for path, now in known if same(now, self.history.state_before(path, request.since, now))}

    def leaving(self, plan: Plan, left: Iterable[Unit]) -> Plan:
        """A plan that leaves these: what of them is an agent's own, and what a person may say goes too."""
        left = frozenset(left)
        own = frozenset(u.path for u in left if not self._is_outside(u.seq) and self._is_own(u.path))
        asks = self._asks((u for u in left if u.path not in own), plan.request)
        return plan._replace(left=left, own=own, asks=asks)

    def judged(self, units: Iterable[Unit]) -> list[Step]:
        """How each of these units would go back by itself, as far as is known without a look: what the plan of a revert
        says of them. Outside acts have verdicts of their own."""
        by_path: dict[bytes, list[Unit]] = {}
        for unit in units:
            if unit in self.history.live and not self._is_outside(unit.seq):
                by_path.setdefault(unit.path, []).append(unit)
        request = Request("revert")
        steps: list[Step] = []
        for path, mine in sorted(by_path.items()):
            if not (may_hold_own(path) and self._is_own(path)):
                steps += self._path_steps(path, mine, request, [], min(mine).seq)
        return self._standing_on(steps)

    def _thread_steps(
        self, path: bytes, units: list[Unit], request: Request, lowest: int, goals: Mapping[bytes, State]
    ) -> list[Step]:
        """A thread comes last, after all that acts outside: so it is one step, however many acts there are."""
        layers = self.history.layers(path, request.since)
        if path not in goals or not set(layers) <= set(units):
            return self._path_steps(path, units, request, [], lowest)
        present, goal = self.known(path), goals[path]
        # The row in which a turn's end was found comes after the state that it led to: it stands.
        ends = (at for at, unit in enumerate(layers, 1) if same(self.history.change(unit).after, goal))
        above = layers[max(ends, default=0) :]
        return [] if same(present, goal) else [Step("state", path, present, goal, EXACT, tuple(above))]

    def _threads_between(self, goals: Mapping[bytes, State], steps: list[Step], request: Request) -> Iterable[Step]:
        """Threads of which nothing shows since the target, as a take-back went back further than that."""
        planned = {step.path for step in steps}
        for path, goal in sorted(goals.items()) if not request.actors else ():
            present = self.known(path)
            if path not in planned and not same(present, goal) and not self.history.layers(path, request.since):
                yield Step("state", path, present, goal, EXACT, ())

    def _forced(self, path: bytes, since: int, ours: Iterable[Unit] = ()) -> set[Unit]:
        """What shows of a path since a row, whoever did it: ours and all above. A take-back there that took something
        from below goes too only with all that it took, where nothing else lies between; else it stays, and ours goes
        by a merge: force never makes live again what was taken back."""
        history = self.history
        found = set(history.layers(path, since))
        others = (u for u in found.difference(ours) if u in history.live and history.by_seq[u.seq].takeback)
        reviving = {u for u in others if any(Unit(seq, path) not in found for seq in history.change(u).took)}
        if not reviving:
            return found
        lowest = min(seq for u in reviving for seq in history.change(u).took)
        deeper = set(history.layers(path, lowest))
        taken = {Unit(seq, path) for u in reviving for seq in history.change(u).took}
        if taken <= deeper and not any(u in history.live for u in deeper - found):
            return deeper
        return found - reviving

    def _others_among(self, found: Iterable[set[Unit]], ours: Collection[Unit]) -> frozenset[Unit]:
        """What stood of others' work that force takes with ours."""
        history = self.history
        taken = (unit for units in found for unit in units if unit not in ours and unit in history.live)
        return frozenset(unit for unit in taken if not history.by_seq[unit.seq].takeback)

    def _add_folders(self, by_path: dict[bytes, set[Unit]]) -> None:
        """By force: also the folders that a path needs and that are gone, and what others put into one that goes."""
        for path, units in list(by_path.items()):
            if not units or domain_of(path) == "state":
                continue
            since = min(units).seq
            above = parent(path)
            while above and not _is_folder(self.known(above)):
                by_path.setdefault(above, self._forced(above, since))
                above = parent(above)
            if _is_folder(self.known(path)) and not _is_folder(self.history.change(min(units)).before):
                for below in self.history.all_paths:
                    if below.startswith(path + b"/"):
                        by_path.setdefault(below, self._forced(below, since))
        for path in [p for p, units in by_path.items() if not units]:
            del by_path[path]

    def _unread_then(self, request: Request, planned: Collection[bytes]) -> Iterable[Step]:
        """Paths of which nobody knows what they were at the checkpoint that a rollback leads to: named, and kept."""
        for unit in sorted(self.history.unread_at(request.since) if request.verb == "rollback" else ()):
            now = self.known(unit.path)
            if unit.path not in planned and not same(now, self.history.change(unit).before):
                yield Step(
                    "files", unit.path, now, now, UNCOVERED, (unit,), -1, "it could not be read at that checkpoint"
                )

    def _with_folders_again(self, steps: list[Step]) -> list[Step]:
        """A folder that was made and removed comes back where something in it does: of its changes only the removal is
        taken back, and its making stays as if it had never gone."""
        taken = [s for s in steps if s.taken and s.domain == "files"]
        goals = {s.path: s.goal for s in taken}
        inside: dict[bytes, bytes] = {}  # folder that is needed → what comes back in it
        for above, path in {parent(path): path for path, goal in goals.items() if goal is not None}.items():
            while above and above not in inside and (goals[above] if above in goals else self.known(above)) is None:
                inside[above] = path
                above = parent(above)
        found = {folder: [s for s in taken if s.path == folder] for folder in inside}
        again = {folder: units for folder, mine in found.items() if (units := self._removal(folder, mine))}
        out = [s for s in steps if not (s.path in again and s.taken and s.domain == "files")]
        for folder, units in again.items():
            goal = self.history.change(units[-1]).before
            segment = max((s.segment for s in found[folder]), default=0)
            out.append(Step("files", folder, self.known(folder), goal, EXACT, units, segment))
            if made := tuple(u for s in found[folder] for u in s.units if u not in units):
                out.append(Step("files", folder, goal, goal, DRIFTED, made, -1, _still_holds(inside[folder])))
        return out

    def _removal(self, folder: bytes, steps: list[Step]) -> tuple[Unit, ...]:
        """The newest changes of a folder that is gone, up to the one that found it still there; of those that a plan
        takes, or, where a path in it is reverted by its name, the agent's own removal of it."""
        history = self.history
        units = sorted((u for s in steps for u in s.units), reverse=True)
        if not units and self._alone:
            units = [u for u in history.layers(folder, 0)[-1:] if u in history.live and history.by_seq[u.seq].is_agents]
        for count, unit in enumerate(units, 1):
            if _is_folder(history.change(unit).before):
                return tuple(units[:count])
        return ()

    def _standing_on(self, steps: list[Step]) -> list[Step]:
        """Keeps a folder that still holds something, and what would stand in a folder that is gone."""
        steps = self._with_folders_again(steps)
        taken = {s.path: s for s in steps if s.taken and s.domain == "files"}
        kept: dict[bytes, str] = {}
        going = [p for p, s in taken.items() if _is_folder(s.expected) and not _is_folder(s.goal)]
        for path in sorted(
            going, key=lambda p: p.count(b"/"), reverse=True
        ):  # deepest first: what stays keeps what it is in
            for below in self.children(path):
                inside = taken.get(below)
                if inside is None or inside.goal is not None or below in kept:
                    kept[path] = _still_holds(below)
                    break
        coming: dict[bytes, list[bytes]] = {}  # by folder: many stand in the same
        for path, step in taken.items():
            if step.goal is not None and path not in kept:
                coming.setdefault(parent(path), []).append(path)
        coming.pop(b"", None)
        # From the top: what is kept away keeps all in it away.
        for above in sorted(coming, key=lambda p: p.count(b"/")):
            state = taken[above].goal if above in taken and above not in kept else self.known(above)
            if not _is_folder(state):
                why = "its folder is gone" if state is None else f"{text(above)} is no folder now"
                kept.update(dict.fromkeys(coming[above], why))
        if not kept:
            return steps
        return [
            s.kept(DRIFTED, kept[s.path]) if s.taken and s.domain == "files" and s.path in kept else s for s in steps
        ]

    def _with_real_groups(self, steps: list[Step], since: int) -> list[Step]:
        """A file is linked only with names that will be the same file, whether the plan moves them or not. A name that
        the plan does not move, but whose group it changes, is a step too: else it would look like somebody's change."""
        last = {s.path: s for s in sorted(steps, key=lambda s: -s.segment) if s.taken and s.domain == "files"}
        if not any((s.goal and s.goal.group) or self.linked(s.path) for s in last.values()):
            return steps
        names, lost = self._files_after(last, since)
        group = {path: min(found) if len(found) > 1 else b"" for path, found in names.items()}
        out = []
        for step in steps:
            if step.taken and step.goal is not None and step.goal.group:
                unread = self._unread_among({step.goal.group, *lost.get(step.path, ())})
                step = step._replace(goal=step.goal._replace(group=group.get(step.path, b"")))
                if step.note == ALREADY and not same(step.expected, step.goal):
                    step = step._replace(note="")
                if unread:
                    note = f"cannot be read: {text(unread)}, which it was linked with"
                    step = step.kept(UNCOVERED, note)
                elif lost.get(step.path) and last[step.path].units == step.units:
                    step = step._replace(note=f"not linked with {text(min(lost[step.path]))} again: that has changed")
            out.append(step)
        segment = min(s.segment for s in last.values())
        for path in sorted(names.keys() - last.keys()):
            now = self.known(path)
            if now is not None and now.group != group[path]:
                goal = now._replace(group=group[path])
                out.append(Step("files", path, now, goal, EXACT, self._regroupings(path, goal), segment, LINKS_ONLY))
        return out

    def _unread_among(self, names: Iterable[bytes]) -> bytes:
        """Of names of one file, and of those they are linked with now, one that cannot be read; else nothing."""
        found = {other for name in names for other in (name, *self.linked(name))}
        return min((path for path in found if _unseen(self.known(path))), default=b"")

    def _files_after(
        self, last: dict[bytes, Step], since: int
    ) -> tuple[dict[bytes, set[bytes]], dict[bytes, set[bytes]]]:
        """For each path all names its file will have; and those it had in the goal's time, but will not have."""
        names: dict[bytes, set[bytes]] = {}
        lost: dict[bytes, set[bytes]] = {}
        alike: dict[tuple[object, ...], set[bytes]] = {}  # by goal without times
        then: dict[tuple[object, ...], set[bytes]] = {}
        for path, step in last.items():
            for other in self.linked(path):
                if other not in last:
                    names.setdefault(other, self._staying(other, last))
            if step.goal is not None and step.goal.group:
                seq = since or min((u.seq for u in step.units), default=0)
                alike.setdefault(step.goal[:6], set()).add(path)
                then.setdefault(step.goal[:6], set()).update(self._group_at(step.goal.group, seq))
        for key, mine in alike.items():
            homes = []
            for path in then[key] - last.keys():
                now = self.known(path)
                if now is not None and now[:5] == key[:5] and (stay := self._staying(path, last)) <= then[key]:
                    homes.append((-len(stay), sorted(stay)))
            home = min(homes)[1] if homes else []
            found = mine.union(home)
            names.update(dict.fromkeys(found, found))
            lost.update(dict.fromkeys(mine, then[key] - found))
        return names, lost

    def _staying(self, path: bytes, last: dict[bytes, Step]) -> set[bytes]:
        return {path, *(p for p in self.linked(path) if p not in last)}

    def _group_at(self, group: bytes, seq: int) -> Iterable[bytes]:
        """The names that were a hard-link group just before a row. Those that nobody touched since have no row: what
        the others are linked with now tells them."""
        told = self.history.grouped.get(group, set()) | {group}
        for path in told.union(*map(self.linked, told)):
            state = self.history.state_before(path, seq, self.known(path))
            if state is not None and state.group == group:
                yield path

    def _regroupings(self, path: bytes, goal: Entry) -> tuple[Unit, ...]:
        """The newest changes of nothing but a path's links, if taking them leads to the goal."""
        units: list[Unit] = []
        for unit in reversed(self.history.layers(path, 0)):
            change = self.history.change(unit)
            if not _regroups(change):
                break
            units.append(unit)
            if same(change.before, goal):
                return tuple(units)
        return ()

    def restore(self, request: Request, goals: Mapping[bytes, State], new: Collection[bytes] = ()) -> Plan:
        """Named paths to the states a checkpoint has for them, whoever changed them since; what is new there stays."""
        found: dict[bytes, Step] = {}
        for path, goal in sorted(goals.items()):
            present = self.known(path)
            if same(present, goal) or path in found:
                continue
            if _is_folder(present) and not _is_folder(goal):
                found.update((step.path, step) for step in self._emptied(path, goal, request.since))
            else:
                found[path] = self._restored(path, goal, request.since)
        steps = self._with_real_groups(self._standing_on(list(found.values())), request.since)
        steps.sort(key=lambda s: (not s.taken, s.path))
        stay = {p for p in new if p not in found and not _unseen(self.known(p))}
        own = frozenset(filter(self._is_own, stay))
        return Plan(self.workspace, request, tuple(steps), folder_times={}, own=own, new=tuple(sorted(stay - own)))

    def _restored(self, path: bytes, goal: State, since: int) -> Step:
        present = self.known(path)
        units = tuple(self.history.layers(path, since))
        if _unseen(present):
            return Step("files", path, present, present, UNCOVERED, units, note="what is there now is not captured")
        return Step("files", path, present, goal, EXACT, units)

    def _emptied(self, path: bytes, goal: State, since: int) -> list[Step]:
        """A folder where something else was: all that is in it goes too, or, if some is not captured, nothing."""
        below: list[bytes] = []
        waiting = [path]
        while waiting:
            inside = list(self.children(waiting.pop()))
            below += inside
            waiting += inside
        step = self._restored(path, goal, since)
        if unseen := [p for p in below if _unseen(self.known(p))]:
            note = f"it holds {text(min(unseen))}, which is not captured"
            return [step.kept(UNCOVERED, note)]
        return [step, *(self._restored(p, None, since) for p in below)]

    def _path_steps(self, path: bytes, units: list[Unit], request: Request, acts: list[int], lowest: int) -> list[Step]:
        """Walks the path's layers newest first: exact while all are ours, then by merge, else kept."""
        history = self.history
        layers = history.layers(path, min(units).seq)
        if not acts and layers == units:  # by far the most: one exact step
            return self._exact_step(path, layers, lowest)
        ours = set(units)
        if len(layers) > len(ours):
            ours |= {u for u in layers if self._is_aside(u)}
        if not acts and len(layers) == len(ours) and ours.issuperset(layers):
            return self._exact_step(path, layers, lowest)
        state = self.known(path)
        above: list[Unit] = []
        kept: set[Unit] = set()
        steps: dict[int, Step] = {}
        uncovered = False
        for (mine, segment), group in groupby(reversed(layers), key=lambda u: (u in ours, bisect_left(acts, u.seq))):
            run = list(group)  # newest first
            if not mine:
                above += run
                continue
            before, after = history.change(run[-1]).before, history.change(run[0]).after
            foreign = bool(self._others_above(above, ours))
            if _unseen(before) or _unseen(state):
                uncovered = True
                kept |= set(run)
                above += run
                continue
            is_back = bool(above) and same(state, before)  # others have undone it already
            try:
                if not is_back and ((foreign and not request.merge) or (above and domain_of(path) != "files")):
                    raise Conflict
                goal = (
                    state
                    if is_back
                    else (
                        self.merge(after, state, before, request.markers)
                        if above
                        else self._timed(path, before, run[-1].seq, lowest)
                    )
                )
            except Conflict:
                kept |= set(run)
                above += run
                continue
            verdict = MERGED if above and not is_back else EXACT
            first = steps.get(segment)
            expected, taken = (first.expected, (*first.units, *run)) if first else (state, tuple(run))
            steps[segment] = Step(domain_of(path), path, expected, goal, verdict, taken, segment)
            state = goal
        made = [_noted(s) for s in steps.values()]
        if kept:
            made.append(self._kept_step(path, state, tuple(sorted(kept)), above, uncovered))
        return made

    def _others_above(self, above: Iterable[Unit], ours: Collection[Unit]) -> set[Unit]:
        """Live work of others among these, and what take-backs among them brought back: only that asks for consent, our
        own earlier merges do not."""
        history, found = self.history, set()
        for unit in above:
            if unit in history.live:
                found |= history.brought_back(unit) if history.by_seq[unit.seq].takeback else {unit}
        return found.difference(ours)

    def _act_step(self, path: bytes, units: list[Unit], acts: list[int]) -> Step:
        """An outside effect: nobody else changes it, so that its own verdict is all there is to say."""
        newest = max(units)
        change = self.history.change(newest)
        domain, verdict = self.history.by_seq[newest.seq].domain, self._act_verdict(newest.seq)
        note = self._act_note(newest.seq, verdict, acts)
        if verdict not in TAKEN:
            return Step(domain, path, change.after, change.after, verdict, tuple(units), -1, note)
        segment = bisect_left(acts, newest.seq)
        return Step(domain, path, change.after, change.before, verdict, tuple(units), segment, note)

    def _is_aside(self, unit: Unit) -> bool:
        """Whether a take-back of other paths changed the links of this one, and nothing else."""
        change = self.history.change(unit)
        return bool(self.history.by_seq[unit.seq].takeback) and not change.took and _regroups(change)

    def _exact_step(self, path: bytes, layers: list[Unit], lowest: int) -> list[Step]:
        oldest = newest = self.history.change(layers[0])
        if len(layers) > 1:
            newest = self.history.change(layers[-1])
        before, after = oldest.before, newest.after
        state = self.known(path)
        if state == after:
            state = after  # one object for both: large trees have many
        units = tuple(layers)
        if _unseen(before) or _unseen(state):
            return [Step(domain_of(path), path, state, state, UNCOVERED, units, -1, _NOT_CAPTURED)]
        goal = self._timed(path, before, layers[0].seq, lowest) if path in self.history.times else before
        return [Step(domain_of(path), path, state, goal, EXACT, units, 0, ALREADY if same(state, goal) else "")]

    def _timed(self, path: bytes, goal: State, seq: int, lowest: int) -> State:
        """The goal with the times it had where the request leads, not those of a later touch."""
        was = self.history.time_before(path, lowest, seq) if goal is not None else None
        return (
            goal._replace(mtime_ns=was.mtime_ns, uid=was.uid, gid=was.gid)
            if goal is not None and was is not None
            else goal
        )

    def _kept_step(
        self, path: bytes, state: State, units: tuple[Unit, ...], above: list[Unit], uncovered: bool
    ) -> Step:
        if uncovered:
            return Step(domain_of(path), path, state, state, UNCOVERED, units, -1, _NOT_CAPTURED)
        history = self.history
        names = {author for unit in self._others_above(above, units) for author in history.authors(unit)}
        who = ", ".join(sorted(names)) or "a take-back"
        return Step(
            domain_of(path),
            path,
            state,
            state,
            DRIFTED,
            units,
            -1,
            f"changed by {who} since",
            self._would_merge(path, units, state),
        )

    def _would_merge(self, path: bytes, units: tuple[Unit, ...], state: State) -> bool:
        newest, oldest = max(units), min(units)
        if domain_of(path) != "files":  # two values of a ref make no third
            return False
        try:
            self.merge(self.history.change(newest).after, state, self.history.change(oldest).before, False)
        except Conflict:
            return False
        return True

    def _is_outside(self, seq: int) -> bool:
        return seq in self.history.outside_rows

    def _act_verdict(self, seq: int) -> str:
        """An act's own verdict; what was taken back outside the files cannot be done again by redo."""
        act = self.history.act_of(seq)
        if act is None:
            return IRREVERSIBLE
        if act.inverse is None and act.state == BEGUN and act.verdict != UNCOVERED:
            return UNKNOWN
        if act.inverse is None:
            return act.verdict if act.verdict in (UNKNOWN, UNCOVERED) else IRREVERSIBLE
        if seq in self._waits:
            return UNKNOWN
        if seq in self._carrying:
            return DRIFTED
        if act.state == BEGUN or act.in_doubt:
            return act.verdict if can_settle(act) else UNKNOWN
        return act.verdict

    def _waiting(self) -> dict[int, str]:
        """Acts that stay because another one stands on them, and nobody knows whether that was taken back."""
        found: dict[int, str] = {}
        in_doubt = [a for a in self.history.live_acts if self._is_in_doubt(a)]
        for act in self.history.live_acts if in_doubt else ():  # newest first
            above = next((a for a in in_doubt if depends(a, act)), None)
            if above is not None and act not in in_doubt:
                in_doubt.append(act)
                if act.inverse is not None:  # else there is nothing to try, and its note says what is left to do
                    found[act.seq] = above.id
        return found

    def _carrying_others(self, selected: Collection[bytes]) -> dict[int, Act]:
        """Acts that stay because one that nobody asked to take back stands on them; and so what these stand on."""
        found: dict[int, Act] = {}
        staying: list[Act] = []
        for act in self.history.live_acts:  # newest first
            above = next((a for a in staying if depends(a, act)), None) if act.path in selected else act
            if above is None:
                continue
            staying.append(act)
            if above is not act:
                found[act.seq] = above
        return found

    def _is_in_doubt(self, act: Act) -> bool:
        return act.inverse is not None and (act.state == BEGUN or bool(act.in_doubt)) and not can_settle(act)

    def _act_note(self, seq: int, verdict: str, acts: list[int]) -> str:
        act = self.history.act_of(seq)
        if act is None:
            return "it was taken back outside the files, which is not done again"
        if seq in self._waits:
            return f"not tried: {self._waits[seq][:8]} stands on it, and may not have been taken back"
        if verdict == DRIFTED:
            above = self._carrying[seq]
            return f"{above.summary} ({above.id[:8]}) stands on it and stays; both: takeback rollback {act.id[:8]}"
        if verdict == UNKNOWN and act.state != BEGUN and act.did.get("left_to_do"):
            return str(act.did["left_to_do"])
        if verdict == UNKNOWN:
            return (
                f"nobody knows whether it {'happened' if act.state == BEGUN else 'was taken back'}: find out, then "
                f"{act.resolving}"
            )
        if verdict in (IRREVERSIBLE, UNCOVERED):
            return str(act.did.get("left_to_do", "no inverse was recorded"))
        if act.state == BEGUN or act.in_doubt:
            return "in doubt: its probe, or its key, decides whether anything is sent"
        if not self._alone:
            return ""
        standing = [a for a in self.history.live_acts if depends(a, act) and a.seq not in acts]
        if standing:
            ids = ", ".join(a.id[:8] for a in standing[:3])
            return f"{ids} stands on it and stays; to take both back: takeback rollback {act.id[:8]}"
        return ""

    def _times(self, steps: list[Step], left: set[Unit], request: Request) -> dict[bytes, Entry]:
        """The times to put back besides the steps: of folders, which our own writing moves, where all that changed in
        them goes back; and of what only its times changed in rows that go back whole."""
        if not self._is_domain_in_scope("files", request):
            return {}
        steps = [s for s in steps if s.domain == "files"]
        left = {u for u in left if not self._is_outside(u.seq) and domain_of(u.path) != "state"}
        taken, stay = [s for s in steps if s.taken], [s for s in steps if not s.taken]
        kept = {u for s in stay for u in s.units} | left
        disturbed = {parent(u.path) for u in kept} | {parent(s.path) for s in stay}
        own = {s.path for s in steps}
        whole = request.verb == "rollback" and not kept
        rows = {u.seq for s in taken for u in s.units} - {u.seq for u in kept}
        lowest: dict[bytes, int] = {}
        for step in taken:
            if step.units:
                folder, seq = parent(step.path), request.since if whole else min(step.units).seq
                if lowest.get(folder, seq) >= seq:
                    lowest[folder] = seq
        busy = self._busy(lowest, {u for s in taken for u in s.units}) if not whole else ()
        found = {}
        for folder, seq in lowest.items():
            present = self.known(folder)
            if folder not in disturbed and folder not in own and present is not None and present.kind == FOLDER:
                moved = self.history.times.get(folder, ()) if folder not in busy else ()
                was = next((c.before for s, c in moved if s >= seq), None) or present
                found[folder] = present._replace(mtime_ns=was.mtime_ns, uid=was.uid, gid=was.gid)
        for path, records in self.history.times.items():
            if (
                path in found
                or path in own
                or path in disturbed
                or (request.paths and not is_within(path, request.paths))
            ):
                continue
            now, earliest = self.known(path), None
            for seq, change in reversed(records):
                if seq in self.history.outcomes and seq not in rows:
                    continue  # a take-back moved it there and back: what counts is where it stands
                if change.after != (earliest or now) or (seq not in rows and not (whole and seq >= request.since)):
                    break
                earliest = change.before
            if earliest is not None and now is not None:
                found[path] = now._replace(mtime_ns=earliest.mtime_ns, uid=earliest.uid, gid=earliest.gid)
        return found

    def _busy(self, since: Mapping[bytes, int], taken: Collection[Unit]) -> set[bytes]:
        """Folders in which work that stays came since a row: their time is its time."""
        found = set()
        lowest = min(since.values(), default=0)
        for effect in self.history.effects:
            if effect.seq >= lowest and effect.domain == "files" and not effect.takeback:
                for path in effect.changes:
                    folder, unit = parent(path), Unit(effect.seq, path)
                    if (
                        effect.seq >= since.get(folder, effect.seq + 1)
                        and unit not in taken
                        and unit in self.history.live
                    ):
                        found.add(folder)
        return found


def takes_threads(request: Request) -> bool:
    """Whether threads are in its scope: undo and rollback leave them alone, unless asked; what is named is named."""
    return request.verb not in ("undo", "rollback") or request.state or "state" in request.only


def can_settle(act: Act) -> bool:
    """Whether a probe or a key can tell what became of an inverse that was sent; a key does not tell whether the act
    itself happened."""
    if act.inverse is None:
        return False
    args = act.inverse.args
    return bool(args.get("probe") or (args.get("idempotent") and act.state != BEGUN))


def _goes_with(unit: Unit, owners: Iterable[Turn], wanted: Collection[Turn], passed: Collection[object]) -> bool:
    """Work of several goes with the last of them: where others stand, it stays."""
    return all(turn in wanted or (turn, unit) in passed for turn in owners)


def _newest(units: Collection[Unit]) -> set[Unit]:
    """Those of the newest row."""
    newest = max((u.seq for u in units), default=0)
    return {u for u in units if u.seq == newest}


def _path(unit: Unit) -> bytes:
    return unit.path


def _is_folder(state: State) -> bool:
    return state is not None and state.kind == FOLDER


def _still_holds(path: bytes) -> str:
    return f"it still holds {text(path)}"


def _regroups(change: Change) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and before[:5] == after[:5]


def _noted(step: Step) -> Step:
    """Work that others have undone already is taken all the same, so that it is live no longer."""
    return step._replace(note=ALREADY) if step.taken and same(step.expected, step.goal) else step


def _unseen(state: State) -> bool:
    return state is not None and state.kind == UNSEEN


def revert_request(history: History, ids: Iterable[str], options: Request) -> Request:
    """What `revert ID…` means: rows of effects, or the redo of just these take-backs. An effect that is named itself
    goes, however uncertain it is whose it was, and whoever else had a part in it."""
    rows: list[str] = []
    takebacks: list[str] = []
    turns: list[Turn] = []
    calls: list[str] = []
    by_id: dict[str, Effect] = {e.id: e for e in history.effects}
    for id in ids:
        if id in history.brackets:
            calls.append(id)
            rows += history.rows_of_call(id) or ()
        elif (turn := history.turn_called(id)) is not None:
            turns.append(turn)
            rows += [e.id for e in history.effects if turn in e.turns and not e.takeback]
        elif id in history.takebacks:
            if history.takebacks[id].verb == "redo":
                raise UsageError(f"{id[:8]} is a redo, which is not reverted", instead_of_redo(history, id))
            takebacks.append(id)
        elif id in by_id:
            rows.append(id)
        elif id in history.acts:
            raise UsageError(f"{id[:8]} failed, so there is nothing to take back", "see takeback effects")
        elif id in history.forgotten:
            raise NotFound(f"{id[:8]} was pruned; its changes are gone", "see what is left with takeback log")
        else:
            raise UsageError(f"{id[:8]} is a checkpoint", f"go back to it with takeback rollback {id[:8]}")
    if rows and takebacks:
        raise UsageError("effects and take-backs cannot be reverted in one go", "revert them one after the other")
    if takebacks:
        return options._replace(verb="redo", takebacks=tuple(takebacks))
    by_name = not (turns or calls)
    also = tuple(sorted({*options.also, UNCERTAIN})) if by_name and _has_uncertain(history, rows) else options.also
    unique = tuple(dict.fromkeys(rows))
    return options._replace(verb="revert", rows=unique, turns=tuple(turns), calls=tuple(calls), also=also)


def instead_of_redo(history: History, id: str) -> str:
    """The command that takes back just what a redo brought back, or that there is none."""
    units = {again for unit in history.units(history.takebacks[id].rows) for again in history.brought_back(unit)}
    if not units:
        return "nothing stands that it brought back"
    rows = sorted({unit.seq for unit in units}, reverse=True)
    stand = {unit for unit in history.units(rows) if unit in history.live}
    if len(rows) > _MOST_IDS or stand != units:
        return f"no one command takes back just what it brought back: takeback show {id[:8]} lists it"
    ids = " ".join(history.by_seq[seq].id[:8] for seq in rows)
    return f"take back what it brought back: takeback revert {ids}"


def _has_uncertain(history: History, rows: Iterable[str]) -> bool:
    return any(effect.uncertain for effect in history.effects if effect.id in set(rows))


def _newest_act(step: Step) -> int:
    """Where an outside act stands among others: its path is an id, which tells nothing of that."""
    return max(step.units).seq if step.domain not in STATES and step.units else 0


def changes_of(steps: Iterable[Step]) -> list[Change]:
    """The steps as changes, each with the rows it takes on its path."""
    return [Change(s.path, s.expected, s.goal, _rows(s.units)) for s in steps]


def _rows(units: tuple[Unit, ...]) -> tuple[int, ...]:
    return (units[0].seq,) if len(units) == 1 else tuple(sorted(u.seq for u in units))
