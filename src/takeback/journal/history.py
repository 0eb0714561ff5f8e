"""The journal, folded: effects, checkpoints, take-backs, and which units of work are live.

One rule gives undo, redo, undo of redo, partial undo and the audit trail: a unit (row, path) is live unless a live
unit of a take-back took it. Everything here is computed from rows; nothing is stored.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from takeback.errors import Damaged, TakebackError
from takeback.model.effects import (
    DONE,
    FAILED,
    FILE,
    PEOPLE,
    RUN,
    STATES,
    UNCERTAIN,
    UNCOVERED,
    UNKNOWN,
    UNSEEN,
    WATCH,
    Abandoned,
    Change,
    Checkpoint,
    Effect,
    Entry,
    Request,
    Result,
    Snapshot,
    State,
    Takeback,
    Track,
    Turn,
    Unit,
    domain_of,
    raw,
    same,
    text,
)
from takeback.model.outside import BEGUN, DECLINED, UNDONE, Act, Approval, Inverse, Stopped, Undo, is_fact, recorded
from takeback.store.folder_objects import is_unread

from . import change_lists
from .brackets import AgentTurn, Bracket, bracket_of, closed_by, settled, turn_of
from .journal import Journal, Row

NUMBERED = ("checkpoint",)  # their ordinals count envelopes, so prune never moves them; all else goes by its id
_INLINE = 32 << 10

LoadBlob = Callable[[bytes], bytes]


# -- change lists in row bodies ----------------------------------------------


def pack_list(found: list[Change], put: Callable[[bytes], bytes]) -> dict[str, Any]:
    """A change list for a row's body: in the row while it is small, else a blob that the row names."""
    data = change_lists.encode(found)
    if len(data) <= _INLINE:
        return {"inline": b2a_base64(data, newline=False).decode(), "count": len(found)}
    return {"blob": put(data).hex(), "count": len(found)}


def unpack_list(packed: Mapping[str, Any], load: LoadBlob) -> list[Change]:
    data = a2b_base64(packed["inline"]) if "inline" in packed else load(bytes.fromhex(packed["blob"]))
    return change_lists.decode(data)


def moves(journal: Journal, load: LoadBlob, domain: str, after: int = 0) -> Iterator[Change]:
    """How the rows after one moved the states of a domain: what looks found, and what take-backs did."""
    for row in journal.rows(after, ("change", "outcome")):
        body = row.body or {}
        try:
            if row.kind == "change" and body.get("domain") == domain:
                yield from unpack_list(body["list"], load)
            elif row.kind == "outcome" and not body.get("aborted"):
                begun = journal.get(body["takeback"])
                segment = (begun.body if begun is not None and begun.body else {})["segments"][body["segment"]]
                if segment["domain"] == domain:
                    undone = {raw(path) for path, *_ in body["not_done"]}
                    found = unpack_list(segment["list"], load)
                    yield from (change for change in found if change.path not in undone)
        except (TakebackError, LookupError, TypeError, ValueError, AttributeError):
            continue  # damaged, which History names


def pack_units(units: Iterable[Unit]) -> list[list[Any]]:
    by_row: dict[int, list[str]] = {}
    for seq, path in sorted(units):
        by_row.setdefault(seq, []).append(text(path))
    return [[seq, paths] for seq, paths in by_row.items()]


def unpack_units(packed: Iterable[Any]) -> frozenset[Unit]:
    return frozenset(Unit(seq, raw(path)) for seq, paths in packed for path in paths)


def pack_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    root = snapshot.root
    return {
        "identity": snapshot.identity.hex(),
        "stored": snapshot.stored.hex(),
        "root": [root.mode, root.xattrs.hex(), root.mtime_ns, root.uid, root.gid],
        "files": snapshot.files,
    }


def unpack_snapshot(packed: Mapping[str, Any]) -> Snapshot:
    mode, xattrs, mtime_ns, uid, gid = packed["root"]
    root = Entry(2, mode, 0, b"", bytes.fromhex(xattrs), b"", mtime_ns, uid, gid)
    return Snapshot(bytes.fromhex(packed["identity"]), bytes.fromhex(packed["stored"]), root, packed["files"])


# -- the fold ----------------------------------------------------------------


def _abandoned(began: Takeback, row: Row, body: Mapping[str, Any], segments: Iterable[Segment]) -> Abandoned:
    changes = (change for segment in segments for change in segment.changes)
    paths = dict.fromkeys(c.path for c in changes if c.took or not same(c.before, c.after))  # else its times alone
    left = tuple((raw(path), note or result) for path, result, note in body["not_done"])
    return Abandoned(began._replace(interrupted=False), row.at, tuple(paths), left)


class Segment:
    """One part of a take-back as journaled: its changes, and what became of them."""

    def __init__(self, domain: str, changes: list[Change], verdict: str) -> None:
        self.domain = domain
        self.changes = changes
        self.verdict = verdict
        self.intent = ""  # id of the intent row, once begun
        self.ended = False
        self.undone: dict[bytes, Result] = {}  # what its outcome names as not done

    def copy(self) -> Segment:
        other = Segment(self.domain, self.changes, self.verdict)
        other.intent, other.ended, other.undone = self.intent, self.ended, dict(self.undone)
        return other


class History:
    """All rows, folded; with `earlier` only those after it, onto a copy of what they were folded into."""

    def __init__(self, rows: Iterable[Row], load: LoadBlob, earlier: History | None = None) -> None:
        self._load = load
        self.effects: list[Effect] = []
        self.times: dict[bytes, tuple[tuple[int, Change], ...]] = {}  # differences of times alone, oldest first
        self._touched: dict[int, frozenset[Turn]] = {}  # rows of nothing else: whose they are
        self.checkpoints: list[Checkpoint] = []
        self.takebacks: dict[str, Takeback] = {}
        self.tracks: dict[str, Track] = {}
        self.numbers: dict[str, int] = {}  # of checkpoints: id → ordinal
        self.pins: set[str] = set()
        self.outcomes: set[int] = set()  # rows that take-backs wrote
        self.plans: dict[str, Mapping[str, Any]] = {}
        self.acts: dict[str, Act] = {}  # outside effects, by id
        self.undos: dict[str, Undo] = {}  # attempts to take them back, by id, oldest first
        self._act_turns: dict[str, frozenset[Turn]] = {}
        self._found_out: dict[str, int] = {}  # acts that somebody found out about later: in which row
        self.approvals: dict[str, Approval] = {}  # of plans, by id; used ones are gone
        self.abandoned: dict[str, Abandoned] = {}  # take-backs that were interrupted and gone back from, by id
        self.stopped: dict[str, Stopped] = {}  # agents' calls that were asked for or refused, by id
        self.call_approvals: dict[str, str] = {}  # of those, by id: the call each is for; used ones are gone
        self._tries: dict[str, str] = {}  # calls whose approval is used up, and the keys of those that will open
        self._tried_in: dict[str, str] = {}  # the brackets of those, and the calls they are for
        self.sessions: list[Mapping[str, Any]] = []  # processes that were agents
        self._session_seqs: list[int] = []  # where one of them that tells of no turns began
        self.agent_turns: dict[Turn, AgentTurn] = {}  # what agents were asked, oldest first
        self.brackets: dict[str, Bracket] = {}  # agents' calls, by id, oldest first
        self.forgotten: set[str] = set()  # ids of pruned rows
        self.horizon = 0  # rows up to here have lost their file changes
        self._open: dict[str, tuple[Row, list[Segment]]] = {}
        self._lost: dict[
            bytes, tuple[State, dict[bytes, Change]]
        ] = {}  # paths that became unobserved: from what, in which row
        self.damaged: list[int] = []  # rows that were altered or lost: what they held is not known
        self._pruned: set[int] = set()
        self._empty: list[int] = []
        self.head = 0  # the newest row
        if earlier is not None:
            self._take_up(earlier)
        for row in rows:
            self._fold(row)
        self._folded = self.effects, self.damaged  # by rows alone: what the next rows are folded onto
        begun = [self._act_effect(act) for act in self.acts.values() if act.state == BEGUN]
        self.effects = sorted([*self.effects, *begun], key=lambda e: e.seq)
        self.damaged = [*self.damaged, *(seq for seq in self._empty if seq not in self._pruned)]

    def _take_up(self, earlier: History) -> None:
        """What it folded, copied, so that who still holds it sees no change."""
        for name in (
            "times", "_touched", "checkpoints", "takebacks", "tracks", "numbers", "pins", "outcomes", "plans", "acts",
            "undos", "_act_turns", "_found_out", "approvals", "abandoned", "stopped", "call_approvals", "sessions",
            "agent_turns", "_session_seqs", "brackets", "forgotten", "_pruned", "_empty", "_tries", "_tried_in",
        ):  # fmt: skip
            setattr(self, name, getattr(earlier, name).copy())
        effects, damaged = earlier._folded
        self.effects, self.damaged = effects.copy(), damaged.copy()
        self.horizon, self.head = earlier.horizon, earlier.head
        self._open = {id: (row, [s.copy() for s in segments]) for id, (row, segments) in earlier._open.items()}

    def can_go_on(self, rows: Iterable[Row]) -> bool:
        """Whether these rows can be folded onto this: none takes back what earlier ones said, and no path is out of
        sight, whose coming back would change an earlier effect."""
        return not self._lost and all(row.kind != "prune" and not row.damaged for row in rows)

    def _fold(self, row: Row) -> None:
        if row.damaged or row.seq != self.head + 1:
            self.damaged.append(row.seq if row.damaged else self.head + 1)
        self.head = row.seq
        if row.kind in NUMBERED:
            self.numbers[row.id] = len(self.numbers) + 1
        if row.body is None:
            if not row.damaged:
                self.forgotten.add(row.id)
                self._empty.append(row.seq)
            return
        fold = getattr(self, f"_fold_{row.kind}", None)
        if fold is not None:
            try:
                fold(row, row.body)
            except Damaged:  # the list it names is lost
                self.damaged.append(row.seq)
            except (LookupError, TypeError, ValueError, AttributeError):  # no row of ours, though its hash holds
                self.damaged.append(row.seq)

    def _fold_checkpoint(self, row: Row, body: Mapping[str, Any]) -> None:
        actor = body.get("actor", "")
        self.checkpoints.append(
            Checkpoint(
                row.seq,
                row.id,
                row.at,
                body.get("label", ""),
                body["named"],
                unpack_snapshot(body["snapshot"]),
                tuple((p, why) for p, why in body.get("partial", ())),
                actor,
                self.numbers[row.id],
                agent=body.get("agent", ""),
                turn=body.get("turn", ""),
            )
        )

    def _fold_change(self, row: Row, body: Mapping[str, Any]) -> None:
        turns = frozenset(Turn(*t) for t in body.get("turns", ()))
        found = self._units(row.seq, unpack_list(body["list"], self._load))
        by = body.get("takeback", "")  # an outside act of a take-back changed files by itself
        if by in self.takebacks:
            self.takebacks[by] = self.takebacks[by]._replace(rows=(*self.takebacks[by].rows, row.seq))
        calls = tuple(body.get("calls", ()))
        uncertain = body.get("uncertain", False) or body.get("cut", False)  # as older programs called it
        told = body.get("summary", "")
        domain = body.get("domain", "files")
        if domain not in STATES:
            raise Damaged(f"row {row.seq} is of no domain that has states")
        since, until = body.get("between", (0.0, row.at))
        unsure = tuple(body.get("unsure", calls)) if uncertain else ()
        effect = Effect(row.seq, row.id, row.at, turns, found, by, domain, "exact", told, calls, uncertain)
        self.effects.append(effect._replace(between=(since, until), unsure=unsure, first=body.get("first", 0.0)))

    def _fold_turn(self, row: Row, body: Mapping[str, Any]) -> None:
        asked = turn_of(row, body)
        self.agent_turns[asked.turn] = asked
        if asked.caller.pid:
            process = {"pid": asked.caller.pid, "started": asked.caller.started, "name": asked.caller.agent}
            self.sessions.append({**process, "session": asked.caller.session})

    def _fold_open(self, row: Row, body: Mapping[str, Any]) -> None:
        self.brackets[row.id] = bracket = bracket_of(row, body)
        if bracket.prompted:
            self._fold_asked(bracket)
        else:
            self._fold_tried(bracket)

    def _fold_ask(self, row: Row, body: Mapping[str, Any]) -> None:
        if (bracket := self.brackets.get(body["open"])) is not None:
            self.brackets[bracket.id] = bracket._replace(prompted=True)

    def _fold_close(self, row: Row, body: Mapping[str, Any]) -> None:
        if (bracket := self.brackets.get(body["open"])) is not None:
            self.brackets[bracket.id] = bracket = closed_by(bracket, row, body)
            if bracket.prompted:
                self._settle_found_in(bracket)
            self._fold_answered(bracket)

    def _settle_found_in(self, bracket: Bracket) -> None:
        """What was found while a person was asked about a call, once it is known whether and when that began."""
        for at in range(len(self.effects) - 1, -1, -1):
            effect = self.effects[at]
            if effect.seq < bracket.seq:
                return
            if bracket.id in effect.unsure:
                self.effects[at] = settled(
                    effect, bracket, [self.brackets[id] for id in effect.calls if id in self.brackets]
                )

    @cached_property
    def in_question(self) -> list[Bracket]:
        """Calls that nobody has closed, and in which something was found while a person was asked about them."""
        ids = {id for effect in self.effects for id in effect.unsure}
        found = (self.brackets[id] for id in ids if id in self.brackets)
        return [bracket for bracket in found if bracket.prompted and not bracket.closed]

    def settled_by(self, over: Iterable[Bracket]) -> History:
        """The same as it will be once these calls, which are over, are closed: whose it is that was found in them."""
        later = History((), self._load, self)
        for bracket in over:
            later._settle_found_in(bracket)
        return later

    def _fold_asked(self, bracket: Bracket) -> None:
        """A call that its agent asks a person about, because the gate said so."""
        whose = "asked", bracket.caller.agent, bracket.caller.session
        for call in reversed(self.stopped.values()):
            if (call.what, call.agent, call.session) == whose and not call.call and bracket.is_of(call.key):
                self.stopped[call.id] = call._replace(call=bracket.id)
                return

    def _fold_answered(self, bracket: Bracket) -> None:
        """What the person said: it ran, or it did not."""
        ran = (not bracket.cut or bracket.ran or bool(bracket.began)) and not bracket.refused
        if (tried := self.stopped.get(self._tried_in.get(bracket.id, ""))) and tried.tried_in == bracket.id:
            self.stopped[tried.id] = tried.came_of(bracket.ended, ran, bracket.refused)
        if bracket.prompted:
            for call in [c for c in self.stopped.values() if c.call == bracket.id and not c.answered]:
                self.stopped[call.id] = call.ended(bracket.ended, ran, bracket.refused)

    def _fold_tried(self, bracket: Bracket) -> None:
        """A call that passes by an approval: what becomes of it is told of the one that was stopped."""
        whose = bracket.caller.agent, bracket.caller.session
        for id, key in self._tries.items():
            call = self.stopped[id]
            if (call.agent, call.session) == whose and bracket.is_of(key):
                del self._tries[id]
                self._tried_in[bracket.id] = id
                self.stopped[id] = call._replace(tried_in=bracket.id, turn=bracket.turn.number)
                return

    def _fold_note(self, row: Row, body: Mapping[str, Any]) -> None:
        what = body.get("what")
        if what == "sight":
            self._units(row.seq, unpack_list(body["list"], self._load))
            if "by" in body:
                self.outcomes.add(row.seq)
            elif turns := frozenset(Turn(*t) for t in body.get("turns", ())):
                self._touched[row.seq] = turns
        elif what == "track":
            self.tracks[row.id] = Track(row.seq, row.id, row.at, tuple(map(raw, body["paths"])))
        elif what == "pin":
            self.pins.add(body["id"])
        elif what == "unpin":
            self.pins.discard(body["id"])
        elif what == "label":
            self.checkpoints = [c._replace(label=body["label"]) if c.id == body["id"] else c for c in self.checkpoints]
        elif what == "resolve":
            self._fold_resolved(row, body)
        elif what == "session":
            self.sessions.append(body)
            self._session_seqs.append(row.seq)
        elif what in ("asked", "refused"):
            known = (body[key] for key in ("agent", "session", "fingerprint", "kind", "summary", "why"))
            risks = tuple((kind, part, why) for kind, part, why in body.get("risks", ()))
            stopped = Stopped(row.id, row.at, what, *known)
            stopped = stopped._replace(command=body.get("command", ""), risks=risks, seq=row.seq)
            told = {name: body[name] for name in ("key", "because", "never") if name in body}
            self.stopped[row.id] = stopped._replace(**told)
        elif what == "declined" and (call := self.stopped.get(body["call"])) is not None:
            self.stopped[call.id] = call._replace(answered=row.at, answer=DECLINED)

    def _fold_act(self, row: Row, body: Mapping[str, Any]) -> None:
        act = recorded(row.id, row.seq, row.at, body)
        self.acts[row.id] = act
        if actor := act.by.get("actor", ""):
            number = act.by.get("turn", "") or self.current_turn(actor)
            self._act_turns[act.id] = frozenset({Turn(actor, number)})
        elif act.among:
            self._act_turns[act.id] = frozenset(turn for turn in self.agent_turns if turn.number in act.among)
        if act.state == DONE:
            self.effects.append(self._act_effect(act))

    def _act_effect(self, act: Act) -> Effect:
        turns = self._act_turns.get(act.id, frozenset())
        changes = {act.path: Change(act.path, None, act.entry)}
        call = act.by.get("call", "")
        calls = (call,) if call in self.brackets else ()
        told = (act.domain, act.verdict, act.summary, calls, act.is_of_unknown)
        return Effect(act.seq, act.id, act.at, turns, changes, "", *told)

    def _fold_acted(self, row: Row, body: Mapping[str, Any]) -> None:
        """What became of an act: that it is done or failed, or that it can be taken back no longer."""
        act = self.acts.get(body["act"])
        if act is None:
            return
        if not is_fact(body):
            raise Damaged(f"row {row.seq} tells nothing of an act")
        now = act._replace(
            state=body.get("state", act.state),
            verdict=body.get("verdict", act.verdict),
            summary=body.get("summary", act.summary),
            did={**act.did, **body.get("did", {})},
            target=body.get("target", act.target),
            domain=body.get("domain", act.domain),
            depends_on=tuple(body.get("depends_on", act.depends_on)),
            key=body.get("key", act.key),
            step=body.get("step", act.step),
            marks=body.get("marks", act.marks),
        )
        if "inverse" in body:
            packed = body["inverse"]
            now = now._replace(inverse=Inverse(packed["op"], packed["args"]) if packed else None)
        if act.state != DONE and now.state == DONE:
            seq = self._place(row, body, act)
            now = now._replace(seq=seq, in_doubt=act.in_doubt or self._undone_before(act))
            self._insert(self._act_effect(now))
        elif act.state == DONE:  # what did not happen after all has no inverse
            kept = [self._act_effect(now)] if now.state == DONE else []
            self.effects = [x for e in self.effects for x in (kept if e.id == act.id and not e.takeback else [e])]
        if now.state == FAILED:
            now = now._replace(in_doubt="")
            self._settle_undos(act.id, FAILED, "there was nothing to take back")
        self.acts[act.id] = now

    def _place(self, row: Row, body: Mapping[str, Any], act: Act) -> int:
        """Where an act stands once it is known to have happened: where its own call told so. What somebody else found
        out afterwards happened when it was begun."""
        if not body.get("found_out"):
            return row.seq
        self._found_out[act.id] = row.seq
        return act.seq

    def _insert(self, effect: Effect) -> None:
        """An effect in its place, which may lie before others."""
        insort(self.effects, effect, key=lambda e: e.seq)

    def _undone_before(self, act: Act) -> str:
        """The take-back whose inverse took effect while an act was still under way: which of the two came last nobody
        knows, and it must not be sent again as if it never was."""
        if not act.sent_at:
            return ""
        return next((u.takeback for u in self.undos.values() if u.act == act.id and u.result == DONE), "")

    def _fold_resolved(self, row: Row, body: Mapping[str, Any]) -> None:
        """A person says what came of an inverse that nobody heard of again."""
        act = self.acts.get(body["act"])
        if act is None:
            return
        self._settle_undos(act.id, DONE if body["done"] else FAILED, "a person said so")
        if body["done"]:
            change = Change(act.path, act.entry, None, (act.seq,))
            takeback = self.takebacks.get(act.in_doubt)
            by = takeback.id if takeback else row.id
            if act.state == BEGUN:
                self._insert(self._act_effect(act))
            self.effects.append(
                Effect(row.seq, row.id, row.at, frozenset(), {act.path: change}, by, act.domain, act.verdict)
            )
            if takeback is not None:
                self.takebacks[takeback.id] = takeback._replace(rows=(*takeback.rows, row.seq))
        elif act.state == BEGUN:
            self._insert(self._act_effect(act))
        self._found_out[act.id] = row.seq
        self.acts[act.id] = act._replace(in_doubt="", state=DONE)

    def _settle_undos(self, act: str, result: str, note: str) -> None:
        """What became of those attempts to take an act back of which nobody knew it."""
        for undo in [u for u in self.undos.values() if u.act == act and u.result == UNKNOWN]:
            self.undos[undo.id] = undo._replace(result=result, note=note)

    def _fold_approval(self, row: Row, body: Mapping[str, Any]) -> None:
        if "plan" in body:
            allowed = tuple((name, origin) for name, origin in body.get("credentials", ()))
            marks = body.get("marks", {})
            self.approvals[row.id] = Approval(row.id, body["plan"], body["hash"], row.at, allowed, marks)
        elif "call" in body:
            self.call_approvals[row.id] = body["call"]
            if (call := self.stopped.get(body["call"])) is not None:
                self.stopped[call.id] = call.approved_at(row.at)
        elif "used" in body and (call := self.stopped.get(self.call_approvals.pop(body["used"], ""))) is not None:
            self.stopped[call.id] = call._replace(tried=row.at, alone=body.get("alone", False))
            if "key" in body:
                self._tries[call.id] = body["key"]

    def _fold_plan(self, row: Row, body: Mapping[str, Any]) -> None:
        self.plans[row.id] = body

    def _fold_prune(self, row: Row, body: Mapping[str, Any]) -> None:
        self.horizon = max(self.horizon, body.get("horizon", 0))
        for first, last in body.get("forgot", ()):
            self._pruned.update(range(first, last + 1))

    def _fold_takeback(self, row: Row, body: Mapping[str, Any]) -> None:
        segments = [Segment(s["domain"], unpack_list(s["list"], self._load), s["verdict"]) for s in body["segments"]]
        # An approval is for once: whatever else was approved of the same plan is used up with it.
        self.approvals = {id: a for id, a in self.approvals.items() if a.hash != body.get("hash")}
        self._open[row.id] = (row, segments)
        self._settle(row, segments)

    def _fold_intent(self, row: Row, body: Mapping[str, Any]) -> None:
        if (known := self._open.get(body["takeback"])) is not None:
            segment = known[1][body["segment"]]
            segment.intent = row.id
            for change in segment.changes if segment.domain not in STATES else ():
                if (act := self.acts.get(text(change.path))) is not None:  # until its outcome says otherwise
                    self.acts[act.id] = act._replace(in_doubt=body["takeback"], sent_at=act.sent_at or row.at)
                    self.undos[row.id] = Undo(row.id, act.id, body["takeback"], row.at)

    def _fold_outcome(self, row: Row, body: Mapping[str, Any]) -> None:
        known = self._open.get(body["takeback"])
        if known is None:
            return
        start, segments = known
        segment = segments[body["segment"]]
        segment.ended = True
        self._fold_undo(segment, body)
        if body.get("aborted"):
            del self._open[start.id]
            began = self.takebacks.pop(start.id, None)
            if began is not None:
                begun = [s for s in segments if s.intent and (s is segment or not s.ended)]
                self.abandoned[start.id] = _abandoned(began, row, body, begun)
            if began is not None and began.rows:  # what it had done outside the files stays done
                self.takebacks[start.id] = began._replace(interrupted=False)
            return
        self.outcomes.add(row.seq)
        segment.undone = undone = {
            raw(p): Result(raw(p), segment.verdict, result, note) for p, result, note in body["not_done"]
        }
        done = [c for c in segment.changes if c.path not in undone]
        found = self._units(row.seq, done)
        if found:
            effect = Effect(row.seq, row.id, row.at, frozenset(), found, start.id, segment.domain, segment.verdict)
            self.effects.append(effect)
        if segment.domain not in STATES and segment.intent:  # else it was never tried, and earlier doubts remain
            for path, result, *_ in body["not_done"]:
                if result != UNKNOWN and path in self.acts:
                    self.acts[path] = self.acts[path]._replace(in_doubt="", sent_at=0.0)
            for path, change in found.items():
                act = self.acts.get(text(path))
                if act is not None and act.seq in change.took:  # else it came to its end while it was taken back
                    self.acts[act.id] = act._replace(in_doubt="")
            for path in body.get("unsent", ()):
                if path in self.acts and not self._is_unheard(path):  # it was only asked about
                    self.acts[path] = self.acts[path]._replace(in_doubt="", sent_at=0.0)
        kept = {raw(p) for p, result, *_ in body["not_done"] if result != FAILED}  # what failed may be tried again
        self._settle(start, segments, row.seq if found else None, kept, tuple(undone.values()))

    def _fold_undo(self, segment: Segment, body: Mapping[str, Any]) -> None:
        """What became of an inverse that was sent."""
        if (undo := self.undos.get(segment.intent)) is None or body.get("aborted"):
            return
        told = {path: (result, note) for path, result, note in body["not_done"]}
        result, note = told.get(undo.act, (DONE, ""))
        evidence = body.get("evidence", {}).get(undo.act, {})
        if (earlier := body.get("earlier", {}).get(undo.act)) in (DONE, FAILED):
            self._settle_undos(undo.act, earlier, f"found out by {undo.id[:8]}")
        if result == UNKNOWN and undo.act in body.get("unsent", ()):
            result = FAILED  # it had no effect, whatever became of those before it
        self.undos[undo.id] = undo._replace(result=result, note=note, evidence=evidence)

    def _is_unheard(self, act: str) -> bool:
        """Whether an inverse of it was sent, and nobody knows what came of that."""
        return any(u.act == act and u.result == UNKNOWN for u in self.undos.values())

    def _settle(
        self,
        start: Row,
        segments: list[Segment],
        seq: int | None = None,
        not_taken: Iterable[bytes] = (),
        missed: tuple[Result, ...] = (),
    ) -> None:
        body = start.body or {}
        before = self.takebacks.get(start.id)
        if before is None:
            missed += tuple(Result(raw(path), UNCOVERED, FAILED, why) for path, why in body.get("unread", ()))
        failed = any(each.result == FAILED for each in missed)
        rows = (*(before.rows if before else ()), *((seq,) if seq is not None else ()))
        kept = set(before.kept if before else unpack_units(body["kept"]))
        lost = set(not_taken)
        kept |= {Unit(s, c.path) for g in segments for c in g.changes if c.path in lost for s in c.took}
        ended = all(s.ended for s in segments)
        request = Request.from_json(body["request"])
        self.takebacks[start.id] = Takeback(
            start.seq,
            start.id,
            start.at,
            request.verb,
            request,
            rows,
            frozenset(kept),
            not ended,
            body.get("label", ""),
            failed or (before is not None and before.failed),
            (*(before.missed if before is not None else ()), *missed),
            {str(name): str(value) for name, value in body.get("by", {}).items()},
        )
        if ended:
            self._open.pop(start.id, None)

    def _units(self, seq: int, found: list[Change]) -> dict[bytes, Change]:
        """The changes that count; first sights are dropped and differences of times are kept apart."""
        units: dict[bytes, Change] = {}
        lost = self._lost
        for change in found:
            path, before, after, took = change
            if before is not None and before.kind == UNSEEN and path not in lost:
                continue
            if not took and same(before, after):
                self.times[path] = (*self.times.get(path, ()), (seq, change))
                continue
            if after is not None and after.kind == UNSEEN:
                lost[path] = before, units
            elif path in lost:
                was, row = lost.pop(path)
                if same(was, after) and not took:  # out of sight for a while, and nobody changed it
                    row.pop(path, None)
                    continue
            units[path] = change
        return units

    # -- interrupted take-backs ----------------------------------------------

    @property
    def interrupted(self) -> tuple[Takeback, list[Segment]] | None:
        for id, (row, segments) in self._open.items():
            if all(seq < row.seq for seq in self.damaged):  # else the damaged one may have been its outcome
                return self.takebacks[id], segments
        return None

    # -- what is live --------------------------------------------------------

    @cached_property
    def by_seq(self) -> dict[int, Effect]:
        return {e.seq: e for e in self.effects}

    @cached_property
    def did_not_happen(self) -> list[Effect]:
        """Effects outside the files that failed. They are on record, and nothing of them stands or can go back."""
        return [self._act_effect(act) for act in self.acts.values() if act.state == FAILED]

    @cached_property
    def all_effects(self) -> list[Effect]:
        """Those that happened, may have happened, or did not, oldest first: what is shown."""
        return sorted([*self.effects, *self.did_not_happen], key=lambda e: e.seq)

    @cached_property
    def uncertain_rows(self) -> frozenset[int]:
        return frozenset(e.seq for e in self.effects if e.uncertain and not e.takeback)

    @cached_property
    def outside_rows(self) -> frozenset[int]:
        """Rows of effects beyond the files, and of what took those back."""
        return frozenset(e.seq for e in self.effects if e.domain not in STATES)

    @cached_property
    def _by_path(self) -> dict[bytes, list[tuple[int, Change]]]:
        return self._grouped(outside=False)

    @cached_property
    def _by_act(self) -> dict[bytes, list[tuple[int, Change]]]:
        """Apart from paths: a file may be called like an act."""
        return self._grouped(outside=True)

    def _grouped(self, outside: bool) -> dict[bytes, list[tuple[int, Change]]]:
        found: dict[bytes, list[tuple[int, Change]]] = {}
        for effect in self.effects:
            if (effect.domain not in STATES) is not outside:
                continue
            seq = effect.seq
            for path, change in effect.changes.items():
                found.setdefault(path, []).append((seq, change))
        return found

    @cached_property
    def live(self) -> set[tuple[int, bytes]]:
        live: set[tuple[int, bytes]] = set()
        dead: set[tuple[int, bytes]] = set()
        for effect in reversed(self.effects):
            seq = effect.seq
            if not effect.takeback:
                live.update((seq, path) for path in effect.changes if (seq, path) not in dead)
                continue
            for path, change in effect.changes.items():
                if (seq, path) not in dead:
                    live.add((seq, path))
                    dead.update((taken, path) for taken in change.took)
        return live

    @cached_property
    def standing(self) -> dict[str, Takeback]:
        """Take-backs in force, newest first: no standing redo addressed them, and not all they did was taken back."""
        redone: set[str] = set()
        standing: dict[str, Takeback] = {}
        for takeback in sorted(self.takebacks.values(), key=lambda t: -t.seq):
            if takeback.id in redone or takeback.interrupted:
                continue
            units = self.units(takeback.rows)
            if not units or not units.isdisjoint(self.live):
                standing[takeback.id] = takeback
                if not takeback.failed:  # else what it addressed still stands as far as it was not redone
                    redone.update(takeback.request.takebacks)
        return standing

    def units(self, rows: Iterable[int]) -> set[Unit]:
        return {Unit(seq, path) for seq in rows if seq in self.by_seq for path in self.by_seq[seq].changes}

    @cached_property
    def passed(self) -> set[tuple[Turn, Unit]]:
        """What standing undos, reverts of turns and calls, and rollbacks of threads addressed and had to keep; of
        rollbacks of an actor what others had a part in."""
        found: set[tuple[Turn, Unit]] = set()
        for takeback in self.standing.values():
            request = takeback.request
            turns = self.turns_named(request) or (self.turns_of(request.threads) if request.own else ())
            then = [t for t in turns if t not in self.agent_turns or self.agent_turns[t].seq < takeback.seq]
            kept = [unit for unit in takeback.kept if not self._is_settled_since(unit, takeback)]
            found.update((turn, unit) for turn in then for unit in kept)
            if takeback.verb == "rollback" and request.actors:
                shared = [u for u in kept if u.seq in self.by_seq and len(self.turns(u.seq)) > 1]
                found.update((t, u) for u in shared for t in self.turns(u.seq) if t.actor in request.actors)
        return found

    def _is_settled_since(self, unit: Unit, takeback: Takeback) -> bool:
        """Whether a take-back kept an act because it was in doubt, and somebody has found out since what came of it."""
        return unit.seq in self.outside_rows and self._found_out.get(text(unit.path), 0) > takeback.seq

    # -- whose ---------------------------------------------------------------

    @cached_property
    def _checkpoint_seqs(self) -> list[int]:
        return [c.seq for c in self.checkpoints]

    @cached_property
    def _named_seqs(self) -> list[int]:
        return [c.seq for c in self.checkpoints if c.named]

    @cached_property
    def _agent_seqs(self) -> list[int]:
        """Where an agent was at work, whether or not anything came of it. One that only remembers is not."""
        calls = (seq for b in self.brackets.values() for seq in (b.seq, b.closed) if seq)
        known = (e.seq for e in self.effects if e.has_agent and e.domain in STATES and e.domain != "state")
        return sorted([*known, *calls])

    def has_agent_since(self, since: int) -> bool:
        """Whether an agent is known to have been there since a row: it was asked something, made a call or tried to, or
        changed a file. What it recorded outside the files tells only who recorded it."""
        asked = (turn.seq for turn in self.agent_turns.values())
        stopped = (call.seq for call in self.stopped.values())
        sessions = self._session_seqs[-1:] if self.knows_agents else ()  # else nobody can tell its work from a person's
        known = (*self._agent_seqs[-1:], *sessions, *asked, *stopped)
        is_open = any(bracket.is_open for bracket in self.brackets.values())
        return is_open or max(known, default=0) >= since or any(c.seq == since and c.agent for c in self.checkpoints)

    @cached_property
    def knows_agents(self) -> bool:
        """Whether agents tell of their turns here, or somebody vouches for their work: a person's can be told apart."""
        return bool(self._agent_seqs or self.agent_turns)

    @cached_property
    def has_agents(self) -> bool:
        """Whether any agent has ever been at work here, or has saved what it remembers."""
        return bool(self._agent_seqs) or any(e.has_agent and e.domain == "state" for e in self.effects)

    @cached_property
    def _stretch_seqs(self) -> list[int]:
        """Where a stretch by hand ends and the next begins: checkpoints, and moments of a tree that is followed."""
        moments = (e.seq for e in self.effects if WATCH in e.actors and not e.has_agent)
        return sorted((*self._checkpoint_seqs, *moments))

    @cached_property
    def _turns_of_calls(self) -> frozenset[Turn]:
        return frozenset(bracket.turn for bracket in self.brackets.values())

    def turns(self, seq: int) -> frozenset[Turn]:
        """Whose row it is. A stretch by hand is a turn only where no agent acted between the named checkpoints
        around it; what was recorded outside the files is part of it there, and else of its actor's turn. What was
        done in calls is their turn's wherever it is."""
        return self.turns_of_effect(self.by_seq[seq])

    def turns_of_effect(self, effect: Effect) -> frozenset[Turn]:
        """The same of an effect, also of one that did not happen."""
        seq = effect.seq
        if effect.takeback or (effect.turns and (effect.domain in STATES or effect.turns <= self._turns_of_calls)):
            return effect.turns
        at = bisect_left(self._named_seqs, seq)
        start = self._named_seqs[at - 1] if at else 0
        end = self._named_seqs[at] if at < len(self._named_seqs) else 1 << 62
        first_agent = bisect_left(self._agent_seqs, start)
        if first_agent < len(self._agent_seqs) and self._agent_seqs[first_agent] < end:
            if effect.domain in STATES or effect.turns:
                return effect.turns
            return frozenset({Turn("", str(seq))})  # recorded by nobody known: a turn of its own
        at = bisect_left(self._stretch_seqs, seq)
        return frozenset({Turn("", str(self._stretch_seqs[at - 1] if at else 0))})

    def turns_of(self, threads: Iterable[str]) -> frozenset[Turn]:
        """The turns of these threads: whatever was done in them, by whichever of their agents."""
        wanted = set(threads)
        return frozenset(b.turn for b in self.brackets.values() if b.call.thread in wanted)

    def turns_named(self, request: Request) -> frozenset[Turn]:
        """The turns that a request names, or of which it names calls."""
        calls = (self.brackets[id].turn for id in request.calls if id in self.brackets)
        return frozenset((*request.turns, *calls))

    def whose(self, unit: Unit) -> frozenset[Turn]:
        """The turns whose work it is; of a take-back, those whose work it took."""
        effect = self.by_seq[unit.seq]
        if not effect.takeback:
            return self.turns(unit.seq)
        took = effect.changes[unit.path].took
        return frozenset().union(*(self.whose(Unit(seq, unit.path)) for seq in took if seq in self.by_seq))

    @cached_property
    def rewritten(self) -> dict[Unit, dict[Turn, int]]:
        """Live work that was written once more since, with the bytes that it had: in which turns of agents, and in
        which row first. Each is one more owner of it, but for those of a thread or session that has it already."""
        found: dict[Unit, dict[Turn, int]] = {}
        for path, records in self.times.items():
            again = [(seq, turn) for seq, change in records for turn in self._wrote_again(seq, change)]
            for seq, _ in self._by_path.get(path, ()) if again else ():
                unit = Unit(seq, path)
                if unit not in self.live or self.by_seq[seq].takeback:
                    continue
                has_it = {self.side(turn) for turn in self.turns(seq) if (turn, unit) not in self.passed}
                for at, turn in again:
                    if at > seq and self.side(turn) not in has_it:
                        found.setdefault(unit, {}).setdefault(turn, at)
        return found

    def _wrote_again(self, seq: int, change: Change) -> Iterable[Turn]:
        """Whose turns it was in that the times of a file alone were changed."""
        _, before, after, _ = change
        if before is None or after is None or after.kind != FILE or seq in self.outcomes:
            return ()
        if before.mtime_ns == after.mtime_ns:
            return ()
        turns = self.by_seq[seq].turns if seq in self.by_seq else self._touched.get(seq, frozenset())
        return sorted(turns & self.agent_turns.keys())

    @cached_property
    def rewriting(self) -> dict[Turn, int]:
        """Turns in which work of others was written once more: the newest row of each."""
        rows = [(turn, seq) for again in self.rewritten.values() for turn, seq in again.items()]
        return dict(sorted(rows, key=lambda found: found[1]))

    def side(self, turn: Turn) -> tuple[str, str, str]:
        """Whose turn it is: the thread that it is of, or the session."""
        asked = self.agent_turns.get(turn)
        thread = self.thread_of(turn)
        return ("", "", thread) if thread or asked is None else (asked.caller.agent, asked.caller.session, "")

    def thread_of(self, turn: Turn) -> str:
        """The thread that a turn is of, if it is of one."""
        return self._threads_of_turns.get(turn, "")

    @cached_property
    def _threads_of_turns(self) -> dict[Turn, str]:
        return {b.turn: b.call.thread for b in self.brackets.values() if b.call.thread}

    def actors(self, unit: Unit) -> frozenset[str]:
        """Who changed it; of a take-back, those whose work it took. The empty name is nobody known."""
        effect = self.by_seq[unit.seq]
        if effect.takeback:
            took = effect.changes[unit.path].took
            return frozenset().union(*(self.actors(Unit(s, unit.path)) for s in took if s in self.by_seq))
        if (act := self.act_of(unit.seq)) is not None:
            return frozenset({act.by.get("actor", "")})
        return effect.actors or frozenset({""})

    def brings_back(self, unit: Unit) -> bool:
        """Whether it took nothing but take-backs that had taken work: so that stands again."""
        effect = self.by_seq[unit.seq]
        took = [Unit(seq, unit.path) for seq in effect.changes[unit.path].took if seq in self.by_seq]
        taken = effect.takeback and took and all(self.by_seq[each.seq].takeback for each in took)
        return bool(taken) and not any(map(self.brings_back, took))

    def work_of(self, unit: Unit) -> list[Unit]:
        """The work that shows by it: itself; of what brought work back, that; of any other take-back none."""
        if not self.by_seq[unit.seq].takeback:
            return [unit]
        return sorted(self._worked(unit)) if self.brings_back(unit) else []

    def _worked(self, unit: Unit) -> set[Unit]:
        """What was done that a take-back took, whichever take-backs lie between."""
        effect = self.by_seq[unit.seq]
        if not effect.takeback:
            return {unit}
        took = (Unit(seq, unit.path) for seq in effect.changes[unit.path].took if seq in self.by_seq)
        return {work for each in took for work in self._worked(each)}

    def brought_back(self, unit: Unit) -> set[Unit]:
        """The live work that a take-back made live again: it lies where that stands, however old it is."""
        is_takeback = bool(self.by_seq[unit.seq].takeback)
        return {work for work in self.work_of(unit) if is_takeback and work in self.live}

    def authors(self, unit: Unit) -> frozenset[str]:
        """Who changed it, in words: a thread by its name, as one agent has many; whoever reads it, where nobody is
        known."""
        threads = {t: self.thread_of(t) for t in self.whose(unit)}
        named = {f"thread {thread}" for thread in threads.values() if thread}
        in_threads = {turn.actor for turn, thread in threads.items() if thread}
        return frozenset(named | {actor or "you" for actor in self.actors(unit) - in_threads})

    def asked_about(self, unit: Unit) -> str:
        """The kind of work that a rollback takes only if a person says so, outside the files too; empty for what it
        takes by itself: work of agents, and what take-backs did."""
        if unit.seq in self.uncertain_rows:
            return UNCERTAIN
        effect = self.by_seq[unit.seq]
        if effect.takeback or effect.is_agents or effect.domain == "state":
            return ""
        return PEOPLE

    @cached_property
    def _left_running(self) -> list[tuple[Bracket, int]]:
        """Calls that left a command running, each with the last row of which its agent's process is known to be there
        at least."""
        last: dict[tuple[str, str, int], int] = {}
        for b in self.brackets.values():
            key = b.caller.agent, b.caller.session, b.caller.pid
            last[key] = max(last.get(key, 0), b.seq, b.closed)
        found = (b for b in self.brackets.values() if b.closed and b.goes_on)
        return [
            (b, last[b.caller.agent, b.caller.session, b.caller.pid] if b.caller.is_gone else self.head) for b in found
        ]

    def may_be_left_running(self, unit: Unit) -> Bracket | None:
        """A call whose command went on in the background when something was done that nobody is known to have done."""
        effect = self.by_seq[unit.seq]
        if effect.takeback or effect.turns or effect.domain not in STATES:
            return None
        return next((b for b, until in reversed(self._left_running) if b.closed < unit.seq <= until), None)

    def current_turn(self, actor: str) -> str:
        """The number of an actor's turn, which its next checkpoint ends: the row it began with."""
        since = max((c.seq for c in self.checkpoints if c.actor == actor), default=0)
        for effect in reversed(self.effects):
            if effect.seq < since:
                break
            for turn in effect.turns:
                if turn.actor == actor:
                    return str(turn.number)
        return str(self.head + 1)

    # -- what shows ----------------------------------------------------------

    def change(self, unit: tuple[int, bytes]) -> Change:
        return self.by_seq[unit[0]].changes[unit[1]]

    def layers(self, path: bytes, since: int, outside: bool = False) -> list[Unit]:
        """The path's changes that still show, oldest first; or those of the act of that name.

        A live take-back that put the path exactly back cancels with what it took, so neither shows; one that
        merged shows, as a change of its own:
            a1 a2 undo(a2)            shows  a1
            a1 b1 undo(a1) by merge   shows  a1 b1 undo   (a1 is not live)
        """
        found = (self._by_act if outside else self._by_path).get(path, ())
        if len(found) == 1:
            return [Unit(found[0][0], path)] if found[0][0] >= since else []
        shown: list[tuple[int, Change]] = []
        dead = self._taken_again(found)
        for number, (seq, change) in enumerate(found):
            below, took = len(shown), change.took
            if seq < since or (number and not took and not outside and same(change.after, found[number - 1][1].after)):
                continue  # or it leads where the path was: one that moved while it was taken back is found again
            while took and below and shown[below - 1][0] in took:
                below -= 1
            cancels = (
                below < len(shown)
                and seq not in dead
                and min(took) >= since
                and same(shown[below][1].before, change.after)
                and not any(s in took for s, _ in shown[:below])
            )
            shown[below if cancels else len(shown) :] = [] if cancels else [(seq, change)]
        return [Unit(seq, path) for seq, _ in shown]

    def _taken_again(self, found: Iterable[tuple[int, Change]]) -> set[int]:
        """The rows of one path that are not live: told by its own rows, without looking at those of all others."""
        dead: set[int] = set()
        for seq, change in reversed([*found]):
            if change.took and seq not in dead and self.by_seq[seq].takeback:
                dead.update(change.took)
        return dead

    def added(self, path: bytes, since: int) -> list[Unit]:
        """What shows of a path since a row, oldest first; of what a take-back took that went back further, nothing."""
        found = self.layers(path, since)
        further = (unit in self.live and any(seq < since for seq in self.change(unit).took) for unit in found)
        return found[max((at for at, is_further in enumerate(further, 1) if is_further), default=0) :]

    def unread_at(self, since: int) -> set[Unit]:
        """Of what the checkpoint at a row could not read, the change that was found when it was next seen: whether that
        came before the checkpoint or after it nobody knows."""
        at = next((n for n, c in enumerate(self.checkpoints) if c.seq == since), None)
        found: set[Unit] = set()
        for named, why in self.checkpoints[at].partial if at is not None else ():
            if not is_unread(why):
                continue
            later = self.checkpoints[at + 1 :] if at is not None else ()
            until = next((c.seq for c in later if named not in {path for path, _ in c.partial}), self.head + 1)
            top = raw(named)
            for path in self._by_path if domain_of(top) == "files" else ():
                if path == top or path.startswith(top + b"/"):
                    found.update(Unit(seq, path) for seq, _ in self._by_path[path] if since <= seq < until)
        return {min(u for u in found if u.path == path) for path in {u.path for u in found}}

    def shown(self, since: int) -> set[Unit]:
        rows = self.effects[bisect_left([e.seq for e in self.effects], since) :]
        paths = {path for row in rows if row.domain in STATES for path in row.changes}
        acts = {path for row in rows if row.domain not in STATES for path in row.changes}
        shown = {unit for path in paths for unit in self.layers(path, since)}
        shown.update(unit for path in acts for unit in self.layers(path, since, outside=True))
        return shown

    def time_before(self, path: bytes, since: int, below: int) -> Entry | None:
        """What the times were at `since`, where only times changed between there and row `below`."""
        for seq, change in self.times.get(path, ()):
            if since <= seq < below:
                return change.before
        return None

    def moved_last(self, path: bytes) -> int:
        """The row that last changed a path, or its times alone."""
        rows = (self.times.get(path, ()), self._by_path.get(path, ()))
        return max((seq for found in rows for seq, _ in found), default=0)

    @cached_property
    def grouped(self) -> dict[bytes, set[bytes]]:
        """Hard-link group → paths that some change led into it or out of it."""
        found: dict[bytes, set[bytes]] = {}
        for effect in self.effects:
            for path, change in effect.changes.items():
                for state in (change.before, change.after):
                    if state is not None and state.group:
                        found.setdefault(state.group, set()).add(path)
        return found

    def last_point(self, path: bytes) -> int:
        """The newest row that is a checkpoint, or a track of a path."""
        tracks = (track.seq for track in self.tracks.values() if track.has(path))
        return max((*tracks, self.checkpoints[-1].seq if self.checkpoints else 0))

    def has_agent_changed(self, path: bytes) -> bool:
        """Whether an agent ever had a part in a change of it, taken back or not."""
        return any(self.by_seq[seq].has_agent for seq, _ in self._by_path.get(path, ()))

    def changed_since(self, seq: int) -> set[bytes]:
        """Files of which some row after one tells."""
        return {p for e in self.effects if e.seq > seq and e.domain == "files" for p in e.changes}

    def state_before(self, path: bytes, seq: int, now: State) -> State:
        """What a path was just before a row, from what it is now."""
        return next((change.before for at, change in self._by_path.get(path, ()) if at >= seq), now)

    def is_made_since(self, path: bytes, seq: int) -> bool:
        """Whether a path was seen to be absent just before its first change after a row, and nothing that could tell
        otherwise is lost: only so is it known that it was not there."""
        if seq < self.horizon or any(lost >= seq for lost in self.damaged):
            return False
        changes = (change for at, change in self._by_path.get(path, ()) if at >= seq)
        return any(change.before is None for change in islice(changes, 1))

    @cached_property
    def all_paths(self) -> set[bytes]:
        """Every path of the tree that has ever changed."""
        return {path for effect in self.effects if effect.domain == "files" for path in effect.changes}

    def recorded_below(self, path: bytes) -> list[bytes]:
        """The paths that ever changed at this one or below it."""
        found = self._sorted_paths
        if not path:
            return found
        inside = found[bisect_left(found, path + b"/") : bisect_left(found, path + b"0")]  # "0" comes next to "/"
        return [path, *inside] if path in self.all_paths else inside

    @cached_property
    def _sorted_paths(self) -> list[bytes]:
        return sorted(self.all_paths)

    def act_of(self, seq: int) -> Act | None:
        """The outside effect of a row; None for files and for take-backs."""
        effect = self.by_seq[seq]
        return None if effect.takeback or effect.domain in STATES else self.acts.get(effect.id)

    @cached_property
    def live_acts(self) -> list[Act]:
        """Outside effects that nothing has taken back, newest first."""
        found = [a for a in self.acts.values() if a.state != FAILED and (a.seq, a.path) in self.live]
        return sorted(found, key=lambda act: -act.seq)

    def ledger(self) -> list[Act]:
        """Every outside effect, newest first, each with who took it back."""
        took = {
            (seq, path): effect.takeback
            for effect in self.effects
            if effect.takeback and effect.domain not in STATES
            for path, change in effect.changes.items()
            if (effect.seq, path) in self.live
            for seq in change.took
        }
        acts = sorted(self.acts.values(), key=lambda act: -act.seq)
        return [self._undone(act, took[act.seq, act.path]) if (act.seq, act.path) in took else act for act in acts]

    def _undone(self, act: Act, by: str) -> Act:
        return act._replace(undone_by=by, state=UNDONE if act.state == DONE else act.state)

    def rows_of_call(self, id: str, failed: bool = False) -> list[str] | None:
        """The ids of all that was found in a call, or in the calls of an agent's turn, if so asked with what did not
        happen; None if it is neither."""
        effects = self.all_effects if failed else self.effects
        if id in self.brackets:
            return [e.id for e in effects if id in e.calls]
        turns = {turn for turn, asked in self.agent_turns.items() if asked.id == id}
        return [e.id for e in effects if turns & e.turns] if turns else None

    def turn_called(self, id: str) -> Turn | None:
        """The agent's turn that has this id, or the run that began with this checkpoint."""
        run = Turn(RUN, id)
        found = next((turn for turn, asked in self.agent_turns.items() if asked.id == id), run)
        return found if found is not run or any(run in effect.turns for effect in self.effects) else None

    @cached_property
    def here(self) -> Checkpoint | None:
        """The checkpoint that one is at: the newest named one, or where a standing rollback has led since."""
        newest = self.newest_named()
        for takeback in self.standing.values():
            if newest is not None and takeback.seq < newest.seq:
                break
            asked = takeback.request
            is_part = asked.only or asked.without or asked.leave or asked.actors or asked.threads
            if takeback.verb == "rollback" and takeback.rows and not is_part:
                return self._at(asked.since) or newest
        return newest

    def _at(self, seq: int) -> Checkpoint | None:
        """The checkpoint that has the tree of just before a row; a turn's own comes right after it. None if there is
        none."""
        rows = [e.seq for e in self.effects if e.domain == "files"]
        after = next((c for c in self.checkpoints if c.seq >= seq), None)
        if after is not None and not any(seq <= row < after.seq for row in rows):
            return after
        before = next((c for c in reversed(self.checkpoints) if c.seq < seq), None)
        return before if before is not None and not any(before.seq < row < seq for row in rows) else None

    def newest_named(self) -> Checkpoint | None:
        return next((c for c in reversed(self.checkpoints) if c.named), None)
