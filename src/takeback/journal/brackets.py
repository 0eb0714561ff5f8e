"""Brackets: an agent's calls, each open from before it acts until after, and whose a change is that is found meanwhile.

    turn row   a person's prompt, or whatever else set an agent to work
    open row   a call is about to act: who, what, and which paths it named, if it did
    ask row    its agent asks a person about it, and does nothing until there is an answer
    close row  it is over, or taken to be: its session went on, or its process is gone

While a take-back is interrupted nobody can look (unseen.py). What a call did that began or ended then is never its own
for certain; where its end is told then, a close row says only that, and its bracket is open until the next look.

A change belongs to the open brackets that named its path; else to those that watch the whole tree; else to nobody
known. Where a call was not at work all the time that its bracket was open, the time of the change decides:

    announced ····· not begun ····· [ at work ] ····· over, though nobody had said so yet
                    nobody's        the call's        uncertain: it may have been the call's before

It has not begun while a person is asked about it, or another hook is at work that its agent waits for. When it began is
told late, if at all: what changed in the second before is the call's, or, after a prompt, uncertain: it may be a
person's who was about to answer. Nor does the time of a path's last change tell what was done to it before. So what a
call did after a prompt is its own for certain only if somebody looked at the tree right before it began (prompts.py).
What is found while the prompt is open is uncertain until the close row says when the call began, or that it never did.

Each open and close row says where the oldest bracket lies that was still open then, so that a hook reads a few rows,
however long the journal is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.model.calls import BY_CONTENT as BY_CONTENT
from takeback.model.calls import TURN
from takeback.model.calls import Call as Call
from takeback.model.calls import Caller as Caller
from takeback.model.effects import FAILED, Change, Effect, Turn, raw, text
from takeback.model.ids import new_id
from takeback.model.outside import BEGUN, NewAct, body_of, is_same_request

from .journal import Journal, New, Row

if TYPE_CHECKING:
    from takeback.look.change_times import Moment

KINDS = ("open", "ask", "close")
EARLY = 1.0  # seconds by which a call may have begun before the moment that is told
SEEN = 0.3  # seconds before that moment within which the tree must have been seen, so that all changes are later


class Bracket(NamedTuple):
    """A call around which the tree is looked at."""

    seq: int
    id: str
    at: float
    turn: Turn
    caller: Caller
    call: Call
    prompted: bool = False  # a person was asked about it, whether or not by us
    closed: int = 0  # the row that closed it; 0 while it is open
    cut: bool = False  # nobody said that it was over
    failed: bool = False  # its agent said so
    refused: bool = False  # it never ran
    goes_on: bool = False  # it left a command running in the background
    began: float = 0.0  # when it began its work; 0: nobody knows
    ended: float = 0.0  # when it was over, as far as is known; else when it was closed
    ran: bool = False  # its agent has written down that it did, though not when it began
    unseen: bool = False  # nobody could look at the tree when it was announced
    told: End | None = None  # how it ended, where nobody could look then: closed by the next look

    @property
    def is_open(self) -> bool:
        """Whether it is at work, as far as the journal tells."""
        return not self.closed and self.told is None

    def is_of(self, key: str) -> bool:
        """Whether an agent means this call by a key; of calls without a name, each with the same content is meant."""
        return self.call.key == key or (key.startswith(BY_CONTENT) and self.call.key.startswith(key + "."))

    def names(self, change: Change) -> bool:
        """Whether the call named a path, one above it, or one below a folder that had to be made for it."""
        for path in self.call.paths:
            if change.path == path or change.path.startswith(path + b"/"):
                return True
            if change.before is None and path.startswith(change.path + b"/"):
                return True
        return False


class End(NamedTuple):
    """What became of a call that no after-event told of."""

    at: float = 0.0  # when it was over; 0: nobody knows
    refused: bool = False  # it never ran
    unless_at_work: bool = False  # … if nothing that its agent has begun since is at work: else it was stopped
    done: bool = False  # it ran as it was meant to; only the event that says so is missing
    goes_on: bool = False  # its agent turned to something else, and its command went on in the background
    awaited: bool = False  # … and its agent may still tell of its end: until then its bracket stays open
    over: float = 0.0  # when nothing of it can have been done any more, if that is known and later than its end
    began: float = 0.0  # when it began its work; 0: nobody knows
    ran: bool = False  # that it did is known, though not when
    untold: bool = False  # no event will tell of it

    @property
    def is_outlived(self) -> bool:
        """Whether its agent is gone, nobody knows since when, and its command goes on."""
        return self == End(goes_on=True, awaited=True)

    @property
    def has_run(self) -> bool:
        """Whether it is known to have begun its work: where a person was asked about it, they allowed it."""
        return not self.refused and (self.done or self.ran or bool(self.began))


class AgentTurn(NamedTuple):
    """What an agent was asked: its calls until it is asked again are one turn."""

    seq: int
    id: str
    at: float
    caller: Caller
    prompt: str  # its first line, without secrets
    unseen: bool = False  # nobody could look at the tree then, nor tell the agent what was taken back

    @property
    def turn(self) -> Turn:
        return Turn(self.caller.agent, self.id)


# -- rows --------------------------------------------------------------------


def turn_row(caller: Caller, prompt: str, unseen: bool = False) -> New:
    body: dict[str, Any] = _caller_body(caller)
    if prompt:
        body["prompt"] = prompt
    if unseen:
        body["unseen"] = True
    return New("turn", new_id(), body)


def open_row(turn: Turn, caller: Caller, call: Call, oldest: int, unseen: bool = False) -> New:
    """`oldest` is the row of the oldest bracket that stays open; 0 if there is none but this one."""
    body: dict[str, Any] = {**_caller_body(caller), "turn": turn.number, "key": call.key, "tool": call.tool}
    body |= {"summary": call.summary, "scans": call.scans, "oldest": oldest}
    if call.paths:
        body["paths"] = [text(path) for path in call.paths]
    if call.acts:
        body["acts"] = [body_of(act, {}) for act in call.acts]
    body |= {name: True for name, is_so in (("asked", call.asked), ("unseen", unseen)) if is_so}
    told = ("thread", call.thread), ("cursor", call.cursor), ("transcript", call.transcript)
    body |= {name: said for name, said in told if said}
    return New("open", new_id(), body)


def ask_row(bracket: Bracket, oldest: int) -> New:
    return New("ask", new_id(), {"open": bracket.id, "oldest": oldest})


def act_rows(bracket: Bracket, in_doubt: bool, nothing: str = "") -> list[New]:
    """What a call that is over did outside the files; in doubt where it failed, or nobody said how it ended, unless
    it is known why nothing came of it."""
    by = {"surface": "hook", "actor": bracket.caller.agent, "turn": bracket.turn.number, "call": bracket.id}
    acts = bracket.call.acts
    if nothing:
        acts = tuple(act._replace(state=FAILED, did={**act.did, "left_to_do": nothing}) for act in acts)
    elif in_doubt:
        acts = tuple(act._replace(state=BEGUN) for act in acts)
    return [New("act", new_id(), body_of(act, by)) for act in acts]


def unrecorded(journal: Journal, bracket: Bracket, found: Sequence[Bracket]) -> Bracket:
    """A call without the requests that its own turn recorded while it ran: one act is one effect. Where another call
    made the same request meanwhile nobody can tell whose was recorded, and all stay. `found` are the open ones."""
    rows = [row.body or {} for row in journal.rows(bracket.seq, ("act",))] if bracket.call.acts else []
    if any(body.get("by", {}).get("call") == bracket.id for body in rows):
        return bracket._replace(call=bracket.call._replace(acts=()))  # told when its agent turned to something else
    if not rows or not any("request" in act.did for act in bracket.call.acts):
        return bracket
    seen = [body.get("did", {}) for body in rows if body.get("by", {}).get("surface") == "hook"]
    seen += [act.did for b in found if b.id != bracket.id for act in b.call.acts]
    mine = [body for body in rows if body.get("by", {}).get("turn") == bracket.turn.number]
    told = [body.get("did", {}) for body in mine if body.get("domain") == "http"]
    requests = [f"{did.get('method')} {did.get('url')}" for did in told if "method" in did]
    plain = [request for request in requests if not any(is_same_request(did, request) for did in seen)]
    acts = list(bracket.call.acts)
    for request in plain:
        if (same := next((act for act in acts if is_same_request(act.did, request)), None)) is not None:
            acts.remove(same)
    return bracket._replace(call=bracket.call._replace(acts=tuple(acts)))


def cut_rows(bracket: Bracket, end: End, oldest: int) -> list[New]:
    """Closes a call of which no after-event said that it was over."""
    has_acts = not end.refused and bracket.told is None  # else they were told with its end
    acts = act_rows(bracket, in_doubt=not end.done) if has_acts else []
    goes_on = end.goes_on and not end.over
    return [*acts, New("close", new_id(), _end_body(bracket, end._replace(goes_on=goes_on), oldest))]


def told_row(bracket: Bracket, end: End, oldest: int) -> New:
    """Says how a call ended, where nobody could look at what it did: its bracket stays open until somebody has."""
    body = {**_end_body(bracket, end, oldest), "unseen": True}
    if end.over:
        body["over"] = end.over
    return New("close", new_id(), body)


def _end_body(bracket: Bracket, end: End, oldest: int) -> dict[str, Any]:
    body: dict[str, Any] = {"open": bracket.id, "oldest": oldest}
    said = ("cut", not end.done), ("refused", end.refused), ("goes_on", end.goes_on), ("failed", bracket.failed)
    body |= {name: True for name, is_so in said if is_so}
    body |= {"ran": True} if end.ran and bracket.prompted else {}
    body |= {"ended": end.at} if end.at else {}
    body |= {"began": end.began} if end.began else {}
    return body


def close_row(bracket: Bracket, oldest: int, failed: bool = False, began: float = 0.0, goes_on: bool = False) -> New:
    body: dict[str, Any] = {"open": bracket.id, "oldest": oldest}
    body |= {name: True for name, is_so in (("failed", failed), ("goes_on", goes_on)) if is_so}
    if began:
        body["began"] = began
    return New("close", new_id(), body)


def _caller_body(caller: Caller) -> dict[str, Any]:
    body: dict[str, Any] = {"agent": caller.agent, "session": caller.session}
    if caller.lane:
        body["lane"] = caller.lane
    if caller.pid:
        body |= {"pid": caller.pid, "started": caller.started}
    if caller.run:
        body["run"] = caller.run
    return body


def _caller_of(body: Mapping[str, Any]) -> Caller:
    process = body.get("pid", 0), body.get("started", 0)
    return Caller(body["agent"], body["session"], body.get("lane", ""), *process, run=body.get("run", ""))


def turn_of(row: Row, body: Mapping[str, Any]) -> AgentTurn:
    return AgentTurn(row.seq, row.id, row.at, _caller_of(body), body.get("prompt", ""), body.get("unseen", False))


def bracket_of(row: Row, body: Mapping[str, Any]) -> Bracket:
    caller = _caller_of(body)
    paths = tuple(raw(path) for path in body.get("paths", ()))
    acts = tuple(_act_of(act) for act in body.get("acts", ()))
    stood = body.get("thread", ""), body.get("cursor", ""), body.get("transcript", "")
    asked = body.get("asked", False)
    call = Call(body["key"], body["tool"], body["summary"], paths, body["scans"], acts, asked, *stood)
    turn, unseen = Turn(caller.agent, body["turn"]), body.get("unseen", False)
    return Bracket(row.seq, row.id, row.at, turn, caller, call, prompted=asked, unseen=unseen)


def _act_of(body: Mapping[str, Any]) -> NewAct:
    return NewAct(body["domain"], body["summary"], body["target"], None, body["verdict"], body.get("did", {}))


def closed_by(bracket: Bracket, row: Row, body: Mapping[str, Any]) -> Bracket:
    told = {name: body.get(name, False) for name in ("cut", "failed", "refused", "goes_on", "ran")}
    bracket = bracket._replace(ended=body.get("ended", row.at), began=body.get("began", 0.0), **told)
    if not body.get("unseen", False):
        return bracket._replace(closed=row.seq)
    end = End(body.get("ended", 0.0), bracket.refused, done=not bracket.cut, goes_on=bracket.goes_on)
    return bracket._replace(told=end._replace(over=body.get("over", 0.0), began=bracket.began, ran=bracket.ran))


def as_closed(bracket: Bracket, end: End) -> Bracket:
    """A call that is over, as the row will tell of it that closes it."""
    how = bracket._replace(cut=not end.done, refused=end.refused, goes_on=end.goes_on, ran=end.ran)
    return how._replace(ended=end.at, began=end.began)


# -- reading -----------------------------------------------------------------


def open_ones(journal: Journal) -> list[Bracket]:
    """The brackets that no row has closed, oldest first; those among them whose end was told when nobody could look."""
    newest = max((row for row in map(journal.last, KINDS) if row is not None), key=lambda row: row.seq, default=None)
    if newest is None:
        return []
    body = newest.body or {}
    own = newest.seq if newest.kind == "open" else 0
    first = body.get("oldest") or own
    if newest.damaged or not isinstance(first, int):
        first = 1  # its word is not to be had: all of them are read
    if not first:
        return []
    found: dict[str, Bracket] = {}
    for row in journal.rows(first - 1, KINDS):
        try:
            body = row.body or {}
            if row.kind == "open":
                found[row.id] = bracket_of(row, body)
            elif row.kind == "close" and (bracket := found.pop(body["open"], None)) is not None:
                if (bracket := closed_by(bracket, row, body)).told is not None and not bracket.closed:
                    found[bracket.id] = bracket
            elif body["open"] in found:
                found[body["open"]] = found[body["open"]]._replace(prompted=True)
        except (LookupError, TypeError, ValueError, AttributeError):
            continue  # altered: history names it as damaged
    return list(found.values())


def at_work(journal: Journal) -> list[Bracket]:
    """Of them those whose calls are at work, as far as the journal tells."""
    return [bracket for bracket in open_ones(journal) if bracket.is_open]


def newest_turn(journal: Journal, caller: Caller, seen: bool = False) -> AgentTurn | None:
    """What a session was asked last; with `seen` of what it was asked when somebody could look."""
    for row in journal.newest_first("turn"):
        body = row.body or {}
        if body.get("agent") == caller.agent and body.get("session") == caller.session:
            if not (seen and body.get("unseen")):
                return turn_of(row, body)
    return None


# -- whose a change is -------------------------------------------------------


class Span(NamedTuple):
    """When a call was at work, while its bracket was open."""

    since: float | None = 0.0  # 0: since it was announced; None: a person was asked until nobody knows when
    until: float | None = math.inf  # inf: to this day; None: it is over, and nobody knows since when
    sure: float = 0.0  # from when on it was at work for certain
    seen: bool = True  # whether somebody looked at the tree when it began and ended, so that all changes are its own
    behind: bool = False  # it goes on in the background: what another call does is not its work

    def holds(self, moment: Moment | None) -> bool | None:
        """Whether a change of that moment is the call's; None if nobody can tell, as of what was changed after its end,
        and may have been its own before."""
        if self.since and moment is not None and moment.at < self.since:
            return False
        if self.until is not None and moment is not None and moment.at > self.until:
            return None
        if not self.seen or (moment is not None and moment.at < self.sure):
            return None
        if self.since is None or self.until is None or (moment is None and self.until != math.inf):
            return None
        return True


def span_of(bracket: Bracket, end: End | None, began: float = 0.0, seen: float = 0.0, is_asking: bool = False) -> Span:
    """What is known of a call's work: how it ended, if it has; when it began, if that was told; and when the tree was
    last seen to be as it was known. What a call names is its own, however long a person was asked, unless it failed or
    this was found while they are asked."""
    ended = math.inf if end is None else end.at or None
    began = began or (end.began if end is not None else 0.0)
    behind = end is not None and end.awaited
    span = _span_of(bracket, ended, began, seen, is_asking)
    if bracket.unseen:
        span = span._replace(since=max(span.since or 0.0, bracket.at - EARLY))
    is_seen = span.seen and not bracket.unseen and bracket.told is None
    return span._replace(behind=behind, seen=is_seen)


def _span_of(bracket: Bracket, ended: float | None, began: float, seen: float, is_asking: bool) -> Span:
    if not began:
        is_anybodys = bracket.prompted and (bracket.call.scans or is_asking)
        return Span(None if is_anybodys else 0.0, ended)
    since, is_named = max(began - EARLY, 0.0), not bracket.call.scans
    since = since if since > bracket.at else 0.0  # else it began at once
    if not bracket.prompted or (is_named and not bracket.failed):
        return Span(since, ended)  # it has written what it names, and nobody did so after it
    return Span(since, ended, began, is_named or max(seen, bracket.at) >= began - SEEN)


def settled(effect: Effect, bracket: Bracket, calls: Iterable[Bracket]) -> Effect:
    """What was found while a person was asked about a call that is closed now: none of it if the call never ran, or
    began later, so that it belongs to the others alone, or to nobody; its own if that began before anything of it can
    have been done, or as it would be had it been found when the call was over."""
    since, until = effect.between
    unsure = tuple(id for id in effect.unsure if id != bracket.id)
    if bracket.refused or until <= bracket.began - EARLY:
        left = [b for b in calls if b.id != bracket.id]
        turns = (effect.turns - {bracket.turn}) | {b.turn for b in left}
        told = effect._replace(turns=turns, calls=tuple(b.id for b in left), uncertain=bool(unsure), unsure=unsure)
        return told if left else told._replace(summary="")
    is_later = since >= bracket.began + SEEN
    if bracket.began and (is_later or (since >= bracket.began - SEEN and effect.first >= bracket.began)):
        return effect._replace(uncertain=bool(unsure), unsure=unsure)
    return effect


class Owners(NamedTuple):
    """The turns that a change belongs to, and the calls; none where nobody is known."""

    turns: tuple[Turn, ...] = ()
    calls: tuple[Bracket, ...] = ()
    uncertain: bool = False  # it may be theirs, or somebody else's after they were over
    unsure: tuple[str, ...] = ()  # the calls, by the ids of their brackets, of which that is so


class Ownership:
    """Whose changes are that one look found. Spans are of calls that were not at work all the time. A call of an agent
    that a run has started is no rival of that run, but a part of it, and the closer one; and so is a call in a turn of
    a thread."""

    def __init__(
        self,
        found: Sequence[Bracket],
        runs: Sequence[Turn],
        spans: Mapping[str, Span],
        moment_of: Callable[[Change], Moment | None],
    ) -> None:
        self._naming = [b for b in found if b.call.paths]
        self._scanning = [b for b in found if b.call.scans]
        self._runs = runs
        self._spans = spans
        self._moment_of = moment_of

    @property
    def of_all(self) -> Owners | None:
        """Where every change is the same ones'."""
        return None if self._naming or self._spans else _owned(self._scanning, self._runs)

    def of(self, change: Change) -> Owners:
        named = [b for b in self._naming if b.names(change)]
        whose = self._among(named, (), change) if named else Owners()  # a run names nothing
        return whose if whose.calls else self._among(self._scanning, self._runs, change)

    def _among(self, calls: Sequence[Bracket], runs: Sequence[Turn], change: Change) -> Owners:
        if not any(b.id in self._spans for b in calls):
            return _owned(calls, runs)
        moment = self._moment_of(change)
        held = {b.id: self._spans[b.id].holds(moment) if b.id in self._spans else True for b in calls}
        mine = [b for b in calls if held[b.id] is not False]
        at_hand = [b for b in mine if held[b.id] or not self._spans[b.id].behind]
        if at_hand or runs:
            mine = at_hand
        return _owned(mine, runs, [b.id for b in mine if held[b.id] is None])


def _owned(calls: Sequence[Bracket], runs: Sequence[Turn], unsure: Sequence[str] = ()) -> Owners:
    around = {b.caller.run for b in calls}
    inside = {b.call.thread for b in calls if b.call.key != TURN}
    calls = [b for b in calls if b.call.key != TURN or b.call.thread not in inside]
    turns = _turns(calls, (run for run in runs if run.number not in around))
    return Owners(turns, tuple(calls), bool(unsure), tuple(unsure))


def _turns(brackets: Iterable[Bracket], also: Iterable[Turn] = ()) -> tuple[Turn, ...]:
    return tuple(sorted({*(b.turn for b in brackets), *also}))
