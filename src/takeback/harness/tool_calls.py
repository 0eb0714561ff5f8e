"""The tool calls of a harness in which there are no hooks: each journaled around, gated, and taken back by its inverse.

    begin  ─► the gate (may it run?) ─► a bracket, and the before-image ─► what it will do outside: begun
    commit ─► that is done, with an inverse from its result ─► what changed is the call's ─► the bracket closes
    fail   ─► nobody knows how far it came outside ─► what changed is the call's ─► the bracket closes

    undo   ─► the newest turn that stands: its files, its effects outside, and its part of the conversation's thread

What adapters for agent SDKs stand on (integrations/). A denial is a Decision, never an exception. What goes wrong with
takeback itself is put on record, and the call goes on or is denied, as its owner chose for hooks.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback import agents, gate
from takeback.agents import call_of_event, hook_problems
from takeback.agents import events as kinds
from takeback.agents.dialect import PATHS, Dialect, command_of
from takeback.agents.events import Event
from takeback.apply import results
from takeback.domains.git.repository import amount
from takeback.errors import NotDone, RepeatedEffect, Stale, TakebackError, UsageError
from takeback.gate.risk import Risk
from takeback.model.calls import Call, Caller
from takeback.model.effects import (
    COMPENSATING,
    DONE,
    FAILED,
    IRREVERSIBLE,
    STATES,
    UNKNOWN,
    Plan,
    Request,
    Turn,
    path_of_thread,
    text,
)
from takeback.model.ids import new_id
from takeback.model.outside import BEGUN, NewAct
from takeback.privacy import redact
from takeback.store.folder_objects import LATE
from takeback.system import processes
from takeback.threads.turns import finish_unasked

from .approval import Stays, allowed, awaiting, is_yes, still_standing
from .recorder import Recorder, Undoing, done_before, filled, to_the_end, waiting
from .undo_declarations import Declared, Undo, read_all

if TYPE_CHECKING:
    from takeback.journal.brackets import AgentTurn
    from takeback.journal.history import History
    from takeback.model.effects import Effect, Outcome, Takeback
    from takeback.model.thread_states import StateCheckpoint
    from takeback.workspace import Workspace

    from .steps import Approve

ALLOW, ASK, DENY = kinds.ALLOW, kinds.ASK, kinds.DENY
REPEAT = "repeat"  # the kind of a call that does again what was taken back
_CONVERSATION = "conversation"  # the key of the bracket that a turn holds around its thread
_TOOL = "tool"  # the kind of a call that acts by its name: one that is declared can be taken back
_ATTEMPTS = 5  # at a plan that others make stale
_ALIKE = 0.75  # how much of two names is the same where one is taken for the other, misspelled
_SUMMARY = 160  # characters
_RAISED = 500
_READ = 8 * _RAISED  # of an error's text: secrets go before it is cut, as half of one has no shape
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SHELLS = frozenset(("bash", "sh", "zsh", "shell", "terminal", "exec", "execute", "command", "cmd", "powershell"))
_COMMANDS = ("command", "cmd", "commands", "script")
_WRITERS = frozenset(("write", "edit", "create", "save", "patch", "append", "replace", "insert", "delete", "remove"))


class Decision(NamedTuple):
    """Whether a call may run."""

    decision: str  # allow, deny or ask
    reason: str = ""  # for the model, and for the person
    call: str = ""  # the id of the stopped call: `takeback approve CALL`


class Undone(NamedTuple):
    """What came of an undo or a redo, in words; the outcome is None where there was nothing to do."""

    message: str
    outcome: Outcome | None = None


Ask = Callable[[Decision, str, Mapping[str, Any]], bool | Awaitable[bool]]  # awaited by the async twins alone


class _Open(NamedTuple):
    """A call that may run, until somebody says how it ended."""

    caller: Caller
    call: Call
    args: Mapping[str, Any]
    by: Mapping[str, str]  # whose acts are that are recorded in it
    act: str = ""  # the id of what it does outside the files
    declared: Declared | None = None
    filled: bool = False  # its inverse is known already
    question: str = ""  # the id by which the gate asked about it, where the caller has the person asked


class _InCall(Recorder):
    """What journals what a tool records while it runs: that belongs to its call."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.turn: Mapping[str, str] = {}

    def _take_turn(self, around: Mapping[str, str]) -> None:
        pass


class ToolCalls:
    """Journals the tool calls of one session of an agent. Safe to use from several threads.

    `approve` is shown a Decision, the tool and its arguments where a person has to say yes, which is True and nothing
    else; under the async twins it runs in a worker thread, or is awaited if it is a coroutine function. Without it
    `begin` answers "ask", and nothing is opened until `approved` has been told and the call is begun again. `undo` says
    by tool name how its outside effect is taken back (declared.py). `thread` is where the conversation is kept, if in
    this workspace: what is saved there in a turn is taken back with it. `cursor` says how far the conversation has
    come, where begin is not told."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        agent: str,
        session: str = "",
        thread: str = "",
        approve: Ask | None = None,
        undo: Mapping[str, Undo] = {},
    ) -> None:
        self.workspace = workspace
        self.agent = agent
        self.session = session or new_id()[:12]
        self.thread = thread
        self.cursor = ""
        self.finished: results.Finished | None = None  # of an interrupted take-back that this turn finished first
        self._approve = approve
        self._declared = read_all(workspace, undo)
        self._process = os.getpid(), processes.started(os.getpid())
        self._calls: dict[str, _Open | None] = {}  # None: nothing was opened for it
        self._late: dict[str, _Open] = {}  # begun before the turn that is under way: each ends in its own
        self._inside: dict[str, _InCall] = {}  # calls that run in a context of their own
        self._has_turn = False
        self._is_joined = False  # to a turn that somebody else begins and ends
        self._conversation: tuple[Caller, Call] | None = None
        self._dialect: Any = agents.load(agent) if agent in agents.AGENTS else _Tools()

    def know_tools(self, names: Iterable[str]) -> None:
        """These tools there are: an undo that was declared for one of them by a misspelled name is refused."""
        known = {name.rpartition("__")[2]: name for name in names}
        declared = {tool.rpartition("__")[2]: tool for tool in self._declared}
        for tool in declared.keys() - known.keys():
            if close := difflib.get_close_matches(tool, known.keys() - declared.keys(), 1, _ALIKE):
                raise UsageError(
                    f"undo names the tool {declared[tool]}, and there is only {known[close[0]]}",
                    "mend the name: what takes a tool back is found by it",
                )

    # -- turns -----------------------------------------------------------------

    def begin_turn(self, prompt: str) -> None:
        """The agent is asked something: its calls from now on are one turn, which undo takes back as one."""
        if self._is_off:
            return
        try:
            self.finished = finish_unasked(self.workspace)
        except TakebackError as error:
            self._failed("begin_turn", error)
        self._leave_calls()
        self._close_conversation()
        self._is_joined = False
        self._new_turn(prompt)

    def join(self, agent: str) -> None:
        """The calls from now on belong to the turn of this thread that another one has begun, and will end."""
        if not self._is_joined or self.agent != agent:
            self._leave_calls()
            self._close_conversation()
        self.agent, self._is_joined, self._has_turn = agent, True, True

    def end_turn(self) -> None:
        """The agent rests: calls that nobody said were over are taken to be."""
        if self._is_off:
            return
        self.settle()
        self._close_conversation()
        if self._is_joined:
            return
        try:
            self.workspace.end_turn(self._caller(""))
        except TakebackError as error:
            self._failed("end_turn", error)

    def _new_turn(self, prompt: str) -> None:
        try:
            if not self._has_turn:
                self.workspace.note_session(*self._process, self.agent)
            self.workspace.begin_turn(self._caller(""), prompt)
            self._has_turn = True
            if self.thread or self.cursor:
                self._open_conversation()
        except TakebackError as error:
            self._failed("begin_turn", error)

    def _open_conversation(self) -> None:
        """A bracket as long as the turn: whatever is saved to the thread meanwhile is its work."""
        caller, paths = self._caller("", self._process), (path_of_thread(self.thread),) if self.thread else ()
        said = Call(_CONVERSATION, _CONVERSATION, _CONVERSATION, paths, scans=False, thread=self.thread)
        said = said._replace(cursor=self.cursor)
        self.workspace.begin_call(caller, said)
        self._conversation = caller, said

    def _close_conversation(self) -> None:
        if self._conversation is None:
            return
        (caller, said), self._conversation = self._conversation, None
        try:
            self.workspace.end_call(caller, said)
        except TakebackError as error:
            self._failed(_CONVERSATION, error)

    def settle(self) -> None:
        """The agent rests, and more may be saved to its thread: calls that a person was asked about, and which were
        not made, did nothing."""
        for id, begun in list(self._calls.items()):
            if begun is not None and begun.call.asked:
                self._declined(begun.question)
                self._end(id, error=NotDone("it was not approved"))

    def _leave_calls(self) -> None:
        """Another turn begins, in which a call may have the id of an earlier one."""
        self.settle()
        left, self._calls = self._calls, {}
        self._late.update({id: begun for id, begun in left.items() if begun is not None})

    @property
    def turn(self) -> AgentTurn | None:
        """What this session was asked last."""
        turns = self._turns()
        return turns[-1] if turns else None

    def _turns(self, history: History | None = None) -> list[AgentTurn]:
        known = (history or self.workspace.history()).agent_turns.values()
        return [t for t in known if (t.caller.agent, t.caller.session) == (self.agent, self.session)]

    def turns_since(self, state: StateCheckpoint) -> list[AgentTurn]:
        """What this session was asked since a state, and no undo in force took back; oldest first."""
        undone = _undone(self.workspace.history())
        return [turn for turn in self._turns() if _is_since(turn, state) and turn.turn not in undone]

    def _of_thread_since(self, state: StateCheckpoint) -> list[Turn]:
        """What was done in the thread since, by this session and by whatever else has turns of it."""
        history = self.workspace.history()
        undone, mine = _undone(history), self._own(history)
        since = [t for t, asked in history.agent_turns.items() if _is_since(asked, state)]
        return [turn for turn in since if turn in mine and turn not in undone]

    def _own(self, history: History) -> set[Turn]:
        """The turns of this session, and of its thread."""
        found = {turn.turn for turn in self._turns(history)}
        return found | history.turns_of((self.thread,)) if self.thread else found

    def cursor_at(self, turn: Turn) -> str:
        """Where the conversation stood when a turn began, or before its first call that says so; empty if none does."""
        calls = (b.call for b in self.workspace.history().brackets.values() if b.turn == turn)
        return next((call.cursor for call in calls if call.cursor), "")

    # -- calls -----------------------------------------------------------------

    def begin(
        self,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        cursor: str = "",
        lane: str = "",
        cwd: str = "",
        asking: bool = False,
    ) -> Decision:
        """A tool is about to be called. Allowed, it is journaled and what is there is captured; commit or fail ends it.

        `cursor` says how far the conversation has come, `lane` names a subagent, `cwd` is where a shell runs. With
        `asking` the caller has the person asked by itself: the call is opened although the answer is "ask"."""
        return self._announced(call_id, tool, args, cursor, lane, cwd, asking, self._approve)

    def _announced(
        self,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        cursor: str,
        lane: str,
        cwd: str,
        asking: bool,
        ask: Ask | None,
    ) -> Decision:
        if not call_id:
            raise UsageError("a call has no id", "give each call one of its own, the same for begin and commit")
        if self._calls.get(call_id) is not None:
            return Decision(ALLOW)  # announced twice
        self._calls[call_id] = None
        self._late.pop(call_id, None)
        if self._is_off:
            return Decision(ALLOW)
        try:
            return self._begin(call_id, tool, dict(args), cursor, lane, cwd or str(self.workspace.root), asking, ask)
        except TakebackError as error:
            return self._failed(tool, error)

    def commit(self, call_id: str, result: Any) -> list[str]:
        """A call is over: its inverse is completed from the result, and what changed is its work. Gives effect ids."""
        return self._end(call_id, result=result)

    def fail(self, call_id: str, error: BaseException | str) -> list[str]:
        """A call failed, or nobody knows how it ended. NotDone says that it did nothing outside the files."""
        return self._end(call_id, error=error)

    @contextmanager
    def within(self, call_id: str) -> Iterator[None]:
        """A call runs inside: what is recorded there belongs to it, whichever others are under way."""
        here = self._inside[call_id] = _InCall(self.workspace)
        self._tell_inside(call_id)
        try:
            with here:
                yield
        finally:
            self._inside.pop(call_id, None)

    def _tell_inside(self, call_id: str) -> None:
        """It may have been entered before the call was begun."""
        begun, here = self._calls.get(call_id), self._inside.get(call_id)
        if begun is not None and here is not None:
            here.turn, here.journals_tools = begun.by, not begun.act

    def approved(self, decision: Decision) -> None:
        """A person said yes to a call that was asked for: begun again, it is allowed, once."""
        if (stopped := self.workspace.stopped_call(decision.call)) is not None:
            self.workspace.approve_call(stopped)

    # -- taking back -------------------------------------------------------------

    def undo(self, approve: Approve | None = None) -> Undone:
        """Takes back the newest turn of this session that stands: its part of the thread, its files and its effects.
        Effects go back if policy allows that, or if `approve`, shown the plan, says True; else they stay, the message
        says what a person would run, and all else goes back."""
        if self._is_off:
            return Undone("takeback is off; nothing was taken back")
        if (finished := self._rested()) is not None:
            return finished
        threads = (self.thread,) if self.thread else ()
        request = Request("undo", actors=(self.agent,), state=True, threads=threads)

        def planned(leave: set[str]) -> Plan:
            return self.workspace.planned(request._replace(leave=tuple(sorted(leave))), self._newest)

        taken = self._taken("took back", planned, approve)
        if taken.outcome is not None and (turns := taken.outcome.plan.request.turns):
            self.cursor = self.cursor_at(turns[0])
        return taken

    def _newest(self, history: History, request: Request) -> Request:
        """The undo of the newest turn that stands once what was not seen yet has been looked at."""
        undone = _undone(history)
        live = [e for e in history.effects if not e.takeback and _is_live(history, e)]
        standing = {turn for e in live for turn in e.turns if e.seq > undone.get(turn, 0)}
        standing |= {turn for turn, seq in history.rewriting.items() if seq > undone.get(turn, 0)}
        turns = [turn.turn for turn in self._turns(history) if turn.turn in standing]
        return request._replace(turns=tuple(turns[-1:]))

    def undo_to(self, state: StateCheckpoint | None, approve: Approve | None = None) -> Undone:
        """Takes the thread back to this state of it, and with it what this session has done since: for a conversation
        that is saved before its turn begins, or after it has ended. None: there was no turn."""
        if self._is_off:
            return Undone("takeback is off; nothing was taken back")
        if (finished := self._rested()) is not None:
            return finished
        if state is None:
            return self._nothing()
        whose = self._of_thread_since(state)

        def planned(leave: set[str]) -> Plan:
            to = ("thread", state.thread, state.id)
            return self.workspace.plan(*to, with_files=bool(whose), turns=whose, leave=leave)

        return self._taken("took back", planned, approve)

    def redo(self, approve: Approve | None = None) -> Undone:
        """Brings back what the newest undo took, unless the agent has been asked something since."""
        if self._is_off:
            return Undone("takeback is off; nothing was brought back")
        if (finished := self._rested()) is not None:
            return finished
        history, turns = self.workspace.history(), self._turns()
        mine = self._own(history)
        newest = next((t for t in history.standing.values() if t.rows and self._is_own(history, t, mine)), None)
        if newest is None:
            return Undone("nothing to bring back")
        if turns and turns[-1].seq > newest.seq:
            return Undone("nothing to bring back: a new turn has begun since, and the conversation goes on from there")

        def planned(leave: set[str]) -> Plan:
            return self.workspace.plan("revert", newest.id, leave=leave)

        return self._taken("brought back", planned, approve)

    def _rested(self) -> Undone | None:
        """Ends the turn. A take-back that was cut off is finished first, and that is all then; one that a person
        stopped is left to them."""
        ws = self.workspace
        if ws.was_stopped():
            self.end_turn()
            return Undone(f"{ws.interrupted()}; nothing was changed: takeback resume finishes it, --abort goes back")
        if not ws.interrupted() or (outcome := ws.resume(leave=True)) is None:
            self.end_turn()
            return None
        self.end_turn()
        return Undone(results.finished(ws, outcome).message, outcome)

    def _is_own(self, history: History, takeback: Takeback, mine: set[Turn]) -> bool:
        """Whether it took back what this session did, or its thread. What two shared went with the other one's undo."""
        request = takeback.request
        if takeback.verb == "redo" or request.turns:
            return takeback.verb != "redo" and mine.issuperset(request.turns)
        return self.thread in request.threads or bool(_took(history, takeback) & mine)

    def _taken(self, verb: str, planned: Callable[[set[str]], Plan], approve: Approve | None) -> Undone:
        for _ in range(_ATTEMPTS):
            plan, stays = self._allowed(planned, approve)
            if plan.request.verb == "undo" and not plan.request.turns:
                return self._nothing()
            asked = next((turn for turn in self._turns() if turn.turn in plan.request.turns and turn.prompt), None)
            told = f"the turn {asked.prompt!r}" if asked is not None else "the last turn"
            with suppress(Stale):  # somebody did something meanwhile
                outcome = self.workspace.apply(plan)
                if outcome.finished_earlier:  # it was cut off since we looked
                    return Undone(results.finished(self.workspace, outcome).message, outcome)
                return self._told(verb, told if verb == "took back" else "what was taken", plan, outcome, stays)
        raise Stale("others kept changing what it would take back; nothing was changed", "try it again")

    def _nothing(self) -> Undone:
        """No turn stands; what of those before could not be taken back is said again."""
        mine = self._own(self.workspace.history())
        return Undone(f"nothing to take back{results.still_there(self.workspace, mine)}")

    def _allowed(self, planned: Callable[[set[str]], Plan], approve: Approve | None) -> tuple[Plan, Stays]:
        ws = self.workspace
        can_ask = approve is not None
        work = allowed(ws, planned, still_standing(ws), (), can_ask, lambda id: f"takeback revert {id[:8]}")
        try:
            plan = next(work)
            while True:
                plan = work.send(is_yes(approve(plan) if approve else False, "use aundo, or aredo"))
        except StopIteration as end:
            found: tuple[Plan, Stays] = end.value
            return found

    def _told(self, verb: str, told: str, plan: Plan, outcome: Outcome, stays: Stays) -> Undone:
        acts = {act.path: act for act in self.workspace.effects()}
        domains = {step.path: step.domain for step in plan.steps}
        done: dict[str, list[bytes]] = {}
        for r in (r for r in outcome.results if r.result == DONE):
            done.setdefault(domains.get(r.path, ""), []).append(r.path)
        beyond = [path for domain in done if domain not in STATES for path in done[domain]]
        outside = [acts[path].summary if path in acts else text(path) for path in beyond]
        parts = [results.listed(map(text, done["files"]))] if "files" in done else []
        parts += [results.listed(outside)] if outside else []
        parts += [f"in git {amount(done['git'])}"] if "git" in done else []
        parts += ["the conversation"] * ("state" in done)
        left = []
        for r in results.not_done(self.workspace.history(), outcome):
            act = acts.get(r.path) if domains.get(r.path) not in STATES else None
            told_why = results.why_not(act, r) if act is not None else r.note or r.result
            left.append((results.called(act) if act is not None else text(r.path), told_why))
        left += [(each.name, each.told) for each in results.others_work(self.workspace.history(), outcome)]
        left += [(results.called(act), why) for act, why in stays]
        message = f"{verb} {told}: {', '.join(parts) or 'nothing'}"
        stands = " stays" if verb == "took back" else ""
        named = "; ".join(f"{name}{stands}: {why}" for name, why in left)
        return Undone(f"{message}; not all of it: {named}" if left else message, outcome)

    # -- async twins -------------------------------------------------------------

    async def aundo(self, approve: Approve | None = None) -> Undone:
        return await to_the_end(self.undo, awaiting(approve))

    async def aredo(self, approve: Approve | None = None) -> Undone:
        return await to_the_end(self.redo, awaiting(approve))

    async def abegin_turn(self, prompt: str) -> None:
        await to_the_end(self.begin_turn, prompt)

    async def aend_turn(self) -> None:
        await to_the_end(self.end_turn)

    async def abegin(
        self,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        cursor: str = "",
        lane: str = "",
        cwd: str = "",
        asking: bool = False,
    ) -> Decision:
        given, ask = (call_id, tool, args, cursor, lane, cwd), self._approve
        said = await to_the_end(self._announced, *given, asking and ask is None, None)
        if said.decision != ASK or ask is None:
            return said
        try:  # no thread waits while it is awaited
            answer = await to_the_end(ask, said, tool, args)
            is_approved = (await answer if inspect.isawaitable(answer) else answer) is True
        except TakebackError as error:
            return _not_asked(said, error)
        if not is_approved:
            await to_the_end(self._declined, said.call)
            return said._replace(decision=DENY)
        await to_the_end(self.approved, said)
        return await to_the_end(self._announced, *given, asking, None)

    async def acommit(self, call_id: str, result: Any) -> list[str]:
        return await to_the_end(self.commit, call_id, result)

    async def afail(self, call_id: str, error: BaseException | str) -> list[str]:
        return await to_the_end(self.fail, call_id, error)

    # -- beginning -----------------------------------------------------------------

    @property
    def _is_off(self) -> bool:
        return not self.workspace.settings.enabled

    def _caller(self, lane: str, process: tuple[int, int] = (0, 0)) -> Caller:
        return Caller(self.agent, self.session, lane, *process)

    def _begin(
        self,
        call_id: str,
        tool: str,
        args: dict[str, Any],
        cursor: str,
        lane: str,
        cwd: str,
        asking: bool,
        ask: Ask | None,
    ) -> Decision:
        ws = self.workspace
        declared = self._declared.get(tool, self._declared.get(tool.rpartition("__")[2]))
        # Only its calls know the process: a turn that did would be spared by an undo from the same one.
        caller = self._caller(lane, self._process)
        event = self._event(Event(kinds.BEFORE, caller, cwd, tool=tool, input=args, key=call_id), declared)
        if event.does == kinds.READS and declared is None:
            return Decision(ALLOW)
        call, outside = call_of_event.call(event, ws.root)
        call = call._replace(summary=_summary(event, call, args), thread=self.thread, cursor=cursor or self.cursor)
        if isinstance(self._dialect, _Tools):
            call = call._replace(scans=True)  # by its name alone it writes what it names: it may write more
        act = self._act(tool, args, call, declared) if declared is not None and declared.domain else None
        risks = self._risks(event, declared, act)
        said = self._decided(event, risks, call.summary, tool, args, ask)
        if said.decision == DENY or (said.decision == ASK and not asking):
            return said
        if not self._has_turn:
            self._new_turn("")
        call = call._replace(
            acts=call_of_event.acts(event, outside, [r for r in risks if r.kind != REPEAT]), asked=said.decision == ASK
        )
        opened = ws.begin_call(caller, call)
        missing = [(path, why) for path, why in opened.lacking if why == LATE or path in call.paths]
        if missing and ws.settings.failure == "closed":
            ws.end_call(caller, call, failed=True, did_act=False)
            raise TakebackError(f"{os.fsdecode(missing[0][0])}: {missing[0][1]}")
        whose = {"actor": self.agent, "turn": opened.bracket.turn.number, "call": opened.bracket.id}
        self._calls[call_id] = begun = _Open(caller, call, args, whose, question=said.call)
        self._tell_inside(call_id)
        if act is None or declared is None:
            return said
        try:
            id = ws.record(act, {"surface": "sdk", "session": self.session, **whose}).id
        except TakebackError:
            if ws.settings.failure == "closed":
                self._calls[call_id] = None
                ws.end_call(caller, call, failed=True, did_act=False)
            raise
        self._calls[call_id] = begun._replace(act=id, declared=declared, filled=act.verdict != UNKNOWN)
        self._tell_inside(call_id)
        return said

    def _event(self, event: Event, declared: Declared | None) -> Event:
        """The call as the gate judges it. A tool of the harness that is not declared is one of an unknown server."""
        event = event._replace(server=self._dialect.server({}, event.tool))
        event = self._dialect.classified(event, {})
        if event.does == kinds.UNKNOWN and not event.server and declared is None and not event.paths:
            event = event._replace(server=self.agent) if isinstance(self._dialect, _Tools) else event
        return event

    def _act(self, tool: str, args: Mapping[str, Any], call: Call, declared: Declared) -> NewAct:
        """What a declared tool is about to do outside the files. Until its result is known, so is what undoes it."""
        target = ""
        with suppress(UsageError):  # nothing depends on what it does not name
            target = str(filled(declared.target, {"args": args}))
        act = NewAct(declared.domain, call.summary, target, None, UNKNOWN, _did(tool, args), state=BEGUN)
        if declared.needs_result:
            return act._replace(did={**act.did, **waiting(declared.domain, declared.args, args)})
        known = self._taken_back_by(declared, args)
        return act._replace(**{**known, "did": {**act.did, **known.get("did", {})}})

    def _risks(self, event: Event, declared: Declared | None, act: NewAct | None) -> list[Risk]:
        """What nothing takes back, and what was done before and taken back."""
        ws = self.workspace
        folder = next((text for name in kinds.FOLDERS if isinstance(text := event.input.get(name), str) and text), "")
        there = event._replace(cwd=os.path.join(event.cwd, folder))
        own = (str(ws.settings.home),), (str(ws.settings.config),)
        found = list(gate.tool(there, str(ws.root), ws.environ.get("HOME", ""), *own, gate.known(ws.environ)))
        if declared is not None:
            found = [risk for risk in found if risk.kind != _TOOL]
        if act is not None:
            try:
                done_before(ws.effects(), act, Undoing())
            except RepeatedEffect as error:
                return [Risk(REPEAT, act.summary, error.message), *found]
        return found

    def _decided(
        self, event: Event, risks: list[Risk], summary: str, tool: str, args: Mapping[str, Any], ask: Ask | None
    ) -> Decision:
        said = gate.decide(self.workspace, event, risks, True, summary)
        decision = Decision(said.decision or ALLOW, said.reason, said.call)
        if decision.decision != ASK or ask is None:
            return decision
        try:
            is_approved = is_yes(ask(decision, tool, args), "await the twins of these calls: abegin")
        except TakebackError as error:
            return _not_asked(decision, error)
        if not is_approved:
            self._declined(decision.call)
            return decision._replace(decision=DENY)
        self.approved(decision)
        return Decision(gate.decide(self.workspace, event, risks, True, summary).decision or ALLOW)

    def _declined(self, question: str) -> None:
        """A person said no."""
        with suppress(TakebackError):  # which stands, on record or not
            self.workspace.decline_call(question)

    def _failed(self, what: str, error: TakebackError) -> Decision:
        """As the owner chose for hooks: the call goes on with a loud record, or is denied."""
        ws = self.workspace
        told = f"{error.message}; {error.hint}" if error.hint else error.message
        record = hook_problems.Record(ws.clock(), hook_problems.FAILED, self.agent, "call", told, str(ws.root), what)
        hook_problems.append(ws.settings.home, record)
        if ws.settings.failure != "closed":
            return Decision(ALLOW, f"takeback captured nothing before this call: {told}")
        return Decision(
            DENY, f"takeback cannot capture what is there before this call ({told}), and hooks.failure is closed"
        )

    # -- ending ------------------------------------------------------------------

    def _end(self, call_id: str, result: Any = None, error: BaseException | str | None = None) -> list[str]:
        if self._is_off:
            return []
        is_known = call_id in self._calls
        begun = self._calls.pop(call_id, None) if is_known else self._late.pop(call_id, None)
        try:
            if begun is None:  # begun in another process, or not at all
                caller, call = self._caller("", self._process), Call(call_id, "", "")
                return [] if is_known else list(self.workspace.end_call(caller, call, error is not None).effects)
            try:
                did_act = not isinstance(error, NotDone)
                ended = self.workspace.end_call(begun.caller, begun.call, failed=error is not None, did_act=did_act)
            finally:  # after it, since looking for what changed is the call's part
                if begun.act:
                    self.workspace.acted(begun.act, **(self._done(begun, result) if error is None else _raised(error)))
            return [*ended.effects, *([begun.act] if begun.act else [])]
        except TakebackError as trouble:
            self._failed(begun.call.tool if begun is not None else call_id, trouble)
            return []

    def _done(self, begun: _Open, result: Any) -> dict[str, Any]:
        """What became of its act. An inverse that cannot be completed is said so: what was done stays done."""
        assert begun.declared is not None
        return (
            {"state": DONE}
            if begun.filled
            else {"state": DONE, **self._taken_back_by(begun.declared, begun.args, result)}
        )

    def _taken_back_by(self, declared: Declared, args: Mapping[str, Any], result: Any = None) -> dict[str, Any]:
        """The inverse of one call; or, where none can be made, that it is irreversible, and why."""
        try:
            inverse = declared.inverse(self.workspace, args, result)
            if told := redact.secret_at(inverse.args, names=False):
                raise UsageError(f"it would hold {told}")
            return {"inverse": inverse, "verdict": COMPENSATING}
        except Exception as error:  # a result may be anything
            why = error.message if isinstance(error, TakebackError) else f"{type(error).__name__}: {error}"
            left = redact.text(f"its undo could not be filled in: {why}")
            return {"verdict": IRREVERSIBLE, "did": {"left_to_do": left}}


class _Tools(Dialect):
    """The tools of a harness, of which nothing is known but their names and arguments."""

    def classified(self, event: Event, payload: Mapping[str, Any]) -> Event:
        if event.server:
            return super().classified(event, payload)
        words = {word.lower() for word in _WORDS.findall(event.tool)}
        given = event.input
        paths = tuple(path for name in PATHS if isinstance(path := given.get(name), str) and path)
        if words & _SHELLS:
            for name in _COMMANDS:
                value = given.get(name)
                lines = value if name == "commands" and isinstance(value, list) else [value]
                if command := "\n".join(filter(None, map(command_of, lines))):
                    return event._replace(does=kinds.SHELL, command=command)
        return event._replace(does=kinds.WRITES if paths and words & _WRITERS else kinds.UNKNOWN, paths=paths)


def _not_asked(decision: Decision, error: TakebackError) -> Decision:
    """What goes wrong in approve must not let a call pass, as trouble of takeback's own may."""
    told = f"approve raised {type(error).__name__}: {error.message}, which is no yes"
    return decision._replace(decision=DENY, reason=f"{decision.reason}\n{told}")


def _is_since(turn: AgentTurn, state: StateCheckpoint) -> bool:
    """Whether a turn has begun after a state; or with it, where it is the first state of its turn."""
    return turn.seq >= (state.began or state.seq)


def _undone(history: History) -> dict[Turn, int]:
    """Turns that were undone and not redone since, by the row of that. What was left of them keeps no turn before."""
    known, undone = history.takebacks, dict[Turn, int]()
    for takeback in sorted(known.values(), key=lambda t: t.seq):
        meant = [known[id].request for id in takeback.request.takebacks if id in known]
        if takeback.verb == "redo" and not takeback.interrupted:
            for turn in (turn for request in meant for turn in request.turns):
                undone.pop(turn, None)
        elif takeback.request.state and not takeback.interrupted:
            undone.update(dict.fromkeys(takeback.request.turns, takeback.seq))
    return undone


def _took(history: History, takeback: Takeback) -> set[Turn]:
    """The turns of which a take-back took something."""
    changes = [c for seq in takeback.rows if seq in history.by_seq for c in history.by_seq[seq].changes.values()]
    return {turn for c in changes for seq in c.took if seq in history.by_seq for turn in history.turns(seq)}


def _is_live(history: History, effect: Effect) -> bool:
    return any((effect.seq, path) in history.live for path in effect.changes)


def _summary(event: Event, call: Call, args: Mapping[str, Any]) -> str:
    """What a person recognises it by: a tool of the harness with what it is given."""
    if event.does in (kinds.SHELL, kinds.WRITES) or event.tool.startswith("mcp__"):
        return call.summary
    told = redact.text(
        f"{event.tool}({', '.join(f'{name}={value!r}' for name, value in redact.value(dict(args)).items())})"
    )
    clean = "".join(c if c.isprintable() else " " for c in told)
    return clean if len(clean) <= _SUMMARY else clean[: _SUMMARY - 1] + "…"


def _did(tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """What tells one call of a tool from another."""
    told = json.dumps(args, sort_keys=True, default=str)
    return {"call": tool, "args": hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()}


def _raised(error: BaseException | str) -> dict[str, Any]:
    told = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    facts: dict[str, Any] = {"did": {"raised": redact.text(told[:_READ])[:_RAISED]}}
    return {**facts, "state": FAILED} if isinstance(error, NotDone) else facts
