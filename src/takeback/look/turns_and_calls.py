"""An agent's turns and calls, journaled around what they do. Loaded by the hook that needs it.

    prompt       ─► look ─► what others did ─► turn row, and a checkpoint
    before call  ─► look (the paths it names, or all) ─► what others did ─► open row
    after call   ─► look ─► what it did, as one effect of its turn ─► close row
    end          ─► brackets of that session that nobody closed are closed by a look
    agent gone   ─► the same, for all of its brackets, as of the moment that it was seen to be gone

The caller (workspace.py) holds the store lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from takeback.agents import ends
from takeback.domains.recording import cleaned
from takeback.journal import brackets
from takeback.journal.brackets import AgentTurn, Bracket, Call, Caller, End
from takeback.journal.journal import New
from takeback.model.calls import TURN as AROUND
from takeback.model.effects import Plan, Takeback, Turn, domain_of
from takeback.model.ids import new_id
from takeback.privacy import redact
from takeback.system import processes
from takeback.system.safefs import Folder as OpenFolder

from .scan import Look, Scan

if TYPE_CHECKING:
    from takeback.journal.history import History
    from takeback.model.outside import NewAct
    from takeback.workspace_locks import Guarded

CALL, TURN, SESSION = "call", "turn", "session"  # how often a checkpoint is taken
DEADLINE = 20.0  # seconds that a look of a hook may take, where the settings name none
_TWICE = 5.0  # seconds within which the same prompt, with no call in between, is the same one
_PROMPT = 200  # characters of a prompt that are kept


class Begun(NamedTuple):
    """A turn that has begun."""

    turn: Turn
    checkpoint: str  # its id; empty where none was taken
    told: tuple[Takeback, ...]  # take-backs since this session was last heard of: its agent does not know of them
    lacking: tuple[tuple[bytes, str], ...] = ()
    seq: int = 0  # the row that it began with


class Opened(NamedTuple):
    """A call that may go on."""

    bracket: Bracket
    lacking: tuple[tuple[bytes, str], ...] = ()


class Ended(NamedTuple):
    """A call that is over."""

    bracket: Bracket | None  # None: nobody had announced it
    effects: tuple[str, ...]  # ids of what was found, whoever did it
    lacking: tuple[tuple[bytes, str], ...] = ()


def begin_turn(
    ws: Guarded, tree: OpenFolder, caller: Caller, prompt: str, opening: Sequence[tuple[Caller, Call]] = ()
) -> Begun:
    """An agent is asked something. What changed before that is not its work. Calls that begin at once are opened with
    it, on the same look."""
    journal = ws.store.journal
    before = brackets.newest_turn(journal, caller, seen=True)
    told = _told(ws, before) if before is not None else ()
    line = first_line(prompt)
    left = [b for b in brackets.open_ones(journal) if _same_session(b.caller, caller)]
    begun = brackets.turn_row(caller, line)
    if ws.settings.granularity == SESSION and before is not None and not left and not opening:
        (seq,) = journal.append([begun], ws.clock())
        return Begun(Turn(caller.agent, begun.id), "", told, seq=seq)
    look = _scan(ws, tree, thorough=True)
    found = ws.observer.rows_of(look, over=ends.ends_of_left(left, ws.outlives))
    if before is not None and not found and not told and is_heard_twice(ws, before, line):
        ws.observer.journal_look(look, [])
        return Begun(before.turn, "", (), seq=before.seq)
    rows = [*found, begun]
    checkpoint = ""
    if ws.settings.granularity != SESSION or before is None:
        rows.append(
            ws.observer.checkpoint_row(
                look, line or f"{caller.agent} begins", before is None, agent=caller.agent, turn=begun.id
            )
        )
        checkpoint = rows[-1].id
    turn = Turn(caller.agent, begun.id)
    if opening:
        rows += _opening(ws, turn, opening, rows)
    seqs = ws.observer.journal_look(look, rows)
    return Begun(turn, checkpoint, told, tuple(look.lacking), seqs[rows.index(begun)])


def _opening(ws: Guarded, turn: Turn, opening: Sequence[tuple[Caller, Call]], rows: Sequence[New]) -> list[New]:
    """The first of them stays open as long as the others: each says in which row it will be."""
    journal = ws.store.journal
    closed = {row.body["open"] for row in rows if row.kind == "close"}
    first = journal.head().seq + len(rows) + 1
    oldest = min((b.seq for b in brackets.open_ones(journal) if b.id not in closed), default=first)
    return [brackets.open_row(turn, caller, call, oldest) for caller, call in opening]


def begin_call(
    ws: Guarded, tree: OpenFolder, caller: Caller, call: Call, unless: Callable[[], bool] | None = None
) -> Opened | None:
    """A call is about to act: what is there now is its before-image. Announced twice, it is one call. `unless` is asked
    once that has been looked at: if it says yes, nothing is journaled."""
    journal = ws.store.journal
    found = brackets.open_ones(journal)
    meant = [b for b in found if b.is_open and _same_session(b.caller, caller) and b.is_of(call.key)]
    known, dead = [b for b in meant if not b.caller.is_gone], [b for b in meant if b.caller.is_gone]
    if known and not call.key.startswith(brackets.BY_CONTENT):
        return None if unless is not None and unless() else Opened(known[0])
    call = as_kept(ws, call, bool(known))
    over = [b for b in found if b in dead or not b.is_open or ends_with(b, caller)]
    granular = ws.settings.granularity == CALL
    if call.scans or granular or any(b.call.scans for b in over):
        look = _scan(ws, tree)
    else:
        look = _named(ws, tree, [*call.paths, *(path for b in over for path in b.call.paths)])
    if unless is not None and unless():
        return None
    rows = ws.observer.rows_of(look, over=ends.ends_of_left(over, ws.outlives), at_work=found)
    turn = brackets.newest_turn(journal, caller)
    if turn is None:
        rows.append(brackets.turn_row(caller, ""))
    number = turn.id if turn is not None else rows[-1].id
    if turn is None and look.whole:
        rows.append(ws.observer.checkpoint_row(look, f"{caller.agent} begins", True, agent=caller.agent, turn=number))
    if granular:
        rows.append(ws.observer.checkpoint_row(look, f"before {call.summary}", False, agent=caller.agent, turn=number))
    closed = {row.body["open"] for row in rows if row.kind == "close"}
    oldest = min((b.seq for b in found if b.id not in closed), default=0)
    opened = brackets.open_row(Turn(caller.agent, number), caller, call, oldest)
    seqs = ws.observer.journal_look(look, [*rows, opened])
    bracket = Bracket(seqs[-1], opened.id, ws.clock(), Turn(caller.agent, number), caller, call)
    return Opened(bracket, tuple(look.lacking))


def ask_about(ws: Guarded, caller: Caller, call: Call) -> list[Bracket]:
    """A person is asked about a call that was announced: until its work is known to have begun, what changes may be
    anybody's. Agents that ask do not say by which name they announced it, so that its content has to tell. Where it was
    announced as one that is asked about, those that may be meant."""
    found = brackets.open_ones(ws.store.journal)
    mine = [b for b in found if b.is_open and _same_lane(b.caller, caller) and _is_about(b.call, call)]
    if new := [b for b in mine if not b.prompted]:
        oldest = min(b.seq for b in found)
        ws.store.journal.append([brackets.ask_row(new[-1], oldest)], ws.clock())
        return []
    return [b for b in mine if b.call.asked]


def end_call(
    ws: Guarded,
    tree: OpenFolder,
    caller: Caller,
    call: Call,
    failed: bool = False,
    did_act: bool = True,
    ran: float | None = None,
    at: float = 0.0,
    nothing: str = "",
    goes_on: bool = False,
) -> Ended:
    """A call is over, as was told at some moment: what changed since it began is its work, with what it did outside the
    files, unless it was denied after all. Where it is known for how many seconds it ran, what changed before that is
    not its work. One that nobody announced owns nothing, and is looked at all the same."""
    found = brackets.open_ones(ws.store.journal)
    bracket = announced(found, caller, call)
    asked = bracket.call if bracket is not None else call
    look = _scan(ws, tree) if asked.scans else _named(ws, tree, asked.paths)
    began = began_of(ws, bracket, ran, at) if bracket is not None else 0.0
    at_work = [b._replace(failed=failed) if b is bracket else b for b in found]
    rows = ws.observer.rows_of(look, ending=bracket.id if bracket is not None else "", began=began, at_work=at_work)
    if bracket is not None:
        closed = {row.body["open"] for row in rows if row.kind == "close"}
        did = brackets.unrecorded(ws.store.journal, bracket, found)
        rows += brackets.act_rows(did, in_doubt=failed, nothing=nothing) if did_act else []
        oldest = min((b.seq for b in found if b.id not in closed and b.id != bracket.id), default=0)
        rows.append(brackets.close_row(bracket, oldest, failed=failed, began=began, goes_on=goes_on))
    ws.observer.journal_look(look, rows)
    return Ended(bracket, tuple(row.id for row in rows if row.kind == "change"), tuple(look.lacking))


def refuse_call(ws: Guarded, tree: OpenFolder, caller: Caller, call: Call, at: float) -> tuple[str, ...]:
    """A person said no to a call that was announced: it owns nothing. Ids of what was found meanwhile."""
    found = brackets.open_ones(ws.store.journal)
    bracket = announced(found, caller, call)
    return close(ws, tree, {bracket.id: End(at, refused=True)} if bracket is not None else {})


def end(ws: Guarded, tree: OpenFolder, caller: Caller, whole_session: bool, at: float = 0.0) -> tuple[str, ...]:
    """A session, or a subagent of it, rests, or ends at some moment: the brackets that it left open are closed. Ids of
    what they did."""
    return close(ws, tree, left_by(ws, caller, whole_session, at), thorough=whole_session)


def end_gone(ws: Guarded, tree: OpenFolder, process: processes.Process, at: float) -> tuple[str, ...]:
    """An agent's process was seen to end at that moment: its calls ended with it. Ids of what they did."""
    return close(ws, tree, left_at_death(ws, process, at))


def over_outside(ws: Guarded) -> list[tuple[Bracket, End]]:
    """Calls that are open, did something outside the files, and are over, as anybody can tell."""
    found = (b for b in brackets.at_work(ws.store.journal) if b.call.acts)
    return [(b, end) for b in found if (end := ws.observer.end_of(b)) is not None]


def close_outside(ws: Guarded, tree: OpenFolder) -> tuple[str, ...]:
    """Closes them. Ids of what they did to the files."""
    return close(ws, tree, {b.id: end for b, end in over_outside(ws)})


def began_of(ws: Guarded, bracket: Bracket, ran: float | None, at: float) -> float:
    """When a call began its work that is over: as its agent tells, or, where a person was asked about it, has written
    down; 0: nobody knows."""
    if ran is not None:
        return (at or ws.clock()) - ran
    return ends.began(bracket) if bracket.prompted else 0.0


def ends_with(bracket: Bracket, caller: Caller) -> bool:
    """Whether a call is over once its agent begins another one."""
    return caller.one_at_a_time and _same_lane(bracket.caller, caller)


def announced(found: Iterable[Bracket], caller: Caller, call: Call) -> Bracket | None:
    """The call at work that an agent means; of several with the same content the first."""
    return next((b for b in found if b.is_open and _same_session(b.caller, caller) and b.is_of(call.key)), None)


def left_by(ws: Guarded, caller: Caller, whole_session: bool, at: float = 0.0) -> dict[str, End]:
    """How the calls ended that a session, or a subagent of it, has left open, by the ids of their brackets; a session
    that ends does so at some moment."""
    mine = _same_session if whole_session else _same_lane
    found = (b for b in brackets.open_ones(ws.store.journal) if mine(b.caller, caller))
    over = ends.ends_of_left(found, ws.outlives, at)
    return {id: end._replace(awaited=False) for id, end in over.items()} if whole_session else over


def left_at_death(ws: Guarded, process: processes.Process, at: float) -> dict[str, End]:
    """How those ended that were open in a process which ended at that moment."""
    left = (b for b in brackets.open_ones(ws.store.journal) if (b.caller.pid, b.caller.started) == process)
    found = ends.ends_of_left(left, ws.outlives)
    return {id: end._replace(at=at) if end == End() or end.is_outlived else end for id, end in found.items()}


def close(ws: Guarded, tree: OpenFolder, over: Mapping[str, End], thorough: bool = False) -> tuple[str, ...]:
    """Closes calls that are over, by the ids of their brackets. Ids of what they did."""
    left = [b for b in brackets.open_ones(ws.store.journal) if b.id in over] if over else []
    if not left:
        return ()
    scans = any(b.call.scans for b in left)
    named = [path for b in left for path in b.call.paths]
    look = _scan(ws, tree, thorough) if scans else _named(ws, tree, named)
    rows = ws.observer.rows_of(look, over=over)
    ws.observer.journal_look(look, rows)
    return tuple(row.id for row in rows if row.kind == "change")


def turn_above(ws: Guarded) -> AgentTurn | None:
    """What the agent among the ancestors of this process was asked last; None if a person runs it."""
    turns = list(ws.history().agent_turns.values())
    known = {(t.caller.pid, t.caller.started): t.caller for t in turns if t.caller.pid}
    if not known:
        return None
    for process in processes.ancestors(os.getpid()):
        if (caller := known.get((process.pid, process.started))) is not None:
            return [turn for turn in turns if _same_session(turn.caller, caller)][-1]
    return None


def open_turns(ws: Guarded) -> frozenset[Turn]:
    """The turns that are open in this process, or in the nearest one above it that has any, where that is a harness's:
    only its calls know the process. Of several nobody can tell which one it is that asks."""
    found = brackets.at_work(ws.store.journal)
    if not any(b.caller.pid for b in found):
        return frozenset()
    for process in processes.ancestors(os.getpid()):
        here = [b for b in found if (b.caller.pid, b.caller.started) == (process.pid, process.started)]
        at_work = [b for b in here if b.call.scans]  # the others only wait for their thread to be saved
        if here:
            return frozenset(b.turn for b in at_work or here)
    return frozenset()


def asking(ws: Guarded) -> frozenset[Turn]:
    """The turns that may be asking, which undo must not take back: that of the agent above this process, or, where only
    the name of the agent is known, what each of its sessions was asked last, but for those whose process is gone.

    A command that stands in no call was typed by a person in the agent's window: no turn asks."""
    if (above := turn_above(ws)) is not None:
        found = frozenset({above.turn})
    else:
        newest = {t.caller.session: t for t in ws.history().agent_turns.values() if t.caller.agent == ws.asked_by}
        found = frozenset(turn.turn for turn in newest.values() if not turn.caller.is_gone)
    if ws.by_command and found:
        found &= {bracket.turn for bracket in brackets.at_work(ws.store.journal)}
    return found


def asker(ws: Guarded) -> dict[str, str]:
    """By whom a take-back is asked for, as far as that is known: an agent (`actor`), its `turn`, its `call`. Nobody for
    a person, who may also type it in the agent's own window, where it stands in no call."""
    above = turn_above(ws)
    agent = above.caller.agent if above is not None else ws.asked_by
    newest = {t.caller.session: t for t in ws.history().agent_turns.values() if agent and t.caller.agent == agent}
    known = [above] if above is not None else [t for t in newest.values() if not t.caller.is_gone]
    if ws.client:
        turns, mine = {t.turn for t in known}, []
    else:
        at_work = (b for b in brackets.at_work(ws.store.journal) if b.call.scans and ws.observer.end_of(b) is None)
        mine = [b for b in at_work if any(_same_session(b.caller, t.caller) for t in known)]
        mine = mine or _left_running_here(ws, above)
        turns = {b.turn for b in mine}
    if newest and not turns:
        agent = ws.client  # a person, in its window; an agent without hooks tells of no calls
    found = {"actor": agent or ws.client, "turn": "", "call": mine[0].id if len(mine) == 1 else ""}
    if len(turns) == 1:
        found["turn"] = next(iter(turns)).number
    return {name: value for name, value in found.items() if value}


def vouches_above(ws: Guarded, actor: str) -> str:
    """The agent above this process, where somebody else is named who is to have done what changed: below its session
    nobody vouches for another. Else nothing."""
    above = turn_above(ws) if actor else None
    return above.caller.agent if above is not None and above.caller.agent != actor else ""


def is_agent_asking(ws: Guarded) -> bool:
    """Whether an agent asks for a take-back, or something below a session that tells of no turns."""
    if asker(ws).get("actor"):
        return True
    return turn_above(ws) is None and bool(processes.agent_above(ws.history().sessions, {}))


def _left_running_here(ws: Guarded, above: AgentTurn | None) -> list[Bracket]:
    """The call that left a command running in the background, where this process is part of that."""
    if above is None:
        return []
    begun, caller = 0.0, above.caller
    for process in processes.ancestors(os.getpid()):
        if (process.pid, process.started) == (caller.pid, caller.started):
            break
        begun = processes.started_at(process.pid)
    left = (b for b in ws.history().brackets.values() if b.closed and b.goes_on and _same_session(b.caller, caller))
    return [b for b in left if b.at <= begun <= b.ended]


def left_at_work(history: History, plan: Plan) -> list[Bracket]:
    """Calls that go on while a take-back takes what their turns did, and do more after it; but for those of an agent
    above this process, which asks for it."""
    request = plan.request
    if request.verb not in ("undo", "rollback", "revert"):
        return []
    units = [unit for step in plan.taken for unit in step.units if unit.seq in history.by_seq]
    turns = {*request.turns, *(turn for unit in units for turn in history.by_seq[unit.seq].turns)}
    is_whole = request.verb == "rollback" and not (request.turns or request.threads or request.actors or request.own)
    found = [b for b in history.brackets.values() if b.is_open and b.call.key != AROUND]
    found = [b for b in found if (is_whole or b.turn in turns) and not b.caller.is_gone]
    above = set(processes.ancestors(os.getpid())) if found else set()
    return [b for b in found if processes.Process(b.caller.pid, b.caller.started) not in above]


def first_line(prompt: str) -> str:
    """The first line of a prompt that says something, as it may be kept."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    line = redact.text("".join(c if c.isprintable() else " " for c in line))
    return line if len(line) <= _PROMPT else line[: _PROMPT - 1] + "…"


# -- parts -------------------------------------------------------------------


def deadline(ws: Guarded) -> float:
    """Seconds that a look may take for which a hook waits."""
    chosen = ws.settings.scan_deadline
    return DEADLINE if chosen is None else chosen


def as_kept(ws: Guarded, call: Call, is_known: bool) -> Call:
    """A call as it may be journaled. One of the same content may be known already, which is another one."""
    if is_known:
        call = call._replace(key=f"{call.key}.{new_id()[:8]}")
    return call._replace(summary=redact.text(call.summary), acts=_cleaned(ws, call))


def _cleaned(ws: Guarded, call: Call) -> tuple[NewAct, ...]:
    """What a call will do outside the files, as it may be kept."""
    if not call.acts:
        return ()
    return tuple(cleaned(act, ws.environ) for act in call.acts)


def _scan(ws: Guarded, tree: OpenFolder, thorough: bool = False) -> Look:
    return ws.observer.scan(tree, ws.observer.known(), deadline=deadline(ws), thorough=thorough)


def _named(ws: Guarded, tree: OpenFolder, paths: Iterable[bytes]) -> Look:
    """Threads among them are no paths of the tree, and are looked at too."""
    observer, wanted = ws.observer, list(paths)
    files = [path for path in wanted if domain_of(path) != "state"]
    look = Scan(tree, observer.known(), observer.rules(tree), ws.store.blobs, observer.limits()).named(files)
    if len(files) < len(wanted) and observer.has_threads:
        look.threads = observer.thread_state.look()
    return look


def is_heard_twice(ws: Guarded, before: AgentTurn, line: str) -> bool:
    """Whether two hooks tell of one prompt, as where both the project's and the user's are installed."""
    last = ws.store.journal.last("open")
    is_idle = last is None or last.seq < before.seq
    return is_idle and before.prompt == line and 0 <= ws.clock() - before.at < _TWICE


def _told(ws: Guarded, before: AgentTurn) -> tuple[Takeback, ...]:
    """Take-backs since a session was last asked something, of which it has not heard."""
    newest = ws.store.journal.last("takeback")
    if newest is None or newest.seq < before.seq:
        return ()
    return tuple(t for t in ws.history().takebacks.values() if t.seq > before.seq and t.rows)


def _is_about(one: Call, other: Call) -> bool:
    """Whether an agent may mean a call by what it says of it; where it says nothing, it may be any."""
    if not other.key and not other.tool:
        return True
    return one.key == other.key or (one.tool, one.summary, one.paths) == (other.tool, other.summary, other.paths)


def _same_session(one: Caller, other: Caller) -> bool:
    return (one.agent, one.session) == (other.agent, other.session)


def _same_lane(one: Caller, other: Caller) -> bool:
    return _same_session(one, other) and one.lane == other.lane
