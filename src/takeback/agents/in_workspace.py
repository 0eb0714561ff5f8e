"""What agents' hooks do in a workspace: turns and calls begun and ended, calls stopped until a person approves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from takeback.care import budget
from takeback.errors import ApprovalNeeded, TakebackError, UsageError
from takeback.gate import decision
from takeback.harness import recorder
from takeback.journal import brackets
from takeback.journal.journal import New
from takeback.look import prompts, turns_and_calls, unseen_calls
from takeback.look import stopped_calls as stops
from takeback.look.prompts import Attendance
from takeback.look.stopped_calls import Stops
from takeback.look.watch import moments
from takeback.model.calls import TURN
from takeback.model.ids import new_id
from takeback.system import agent_sessions
from takeback.system.processes import Process
from takeback.system.safefs import Folder as OpenFolder
from takeback.workspace_locks import Guarded, in_between

if TYPE_CHECKING:
    from takeback.journal.brackets import AgentTurn, Bracket, Call, Caller, End
    from takeback.look import turns_and_calls
    from takeback.look.prompts import Attendance
    from takeback.look.stopped_calls import Stops
    from takeback.model.effects import Turn
    from takeback.model.outside import Stopped


class Hooked(Guarded):
    # -- turns and calls ---------------------------------------------------------

    def begin_turn(
        self, caller: Caller, prompt: str = "", opening: Sequence[tuple[Caller, Call]] = ()
    ) -> turns_and_calls.Begun:
        """An agent is asked something: its calls from now on are one turn. Some may begin at once, on the same look."""

        def told() -> None:
            if not opening:  # else it is a turn of a thread, which does not begin where this fails
                unseen_calls.begin_turn(self, caller, prompt)
                self._note_process(Process(caller.pid, caller.started), caller.agent)

        with self._hooked(told) as tree:
            begun = turns_and_calls.begin_turn(self, tree, caller, prompt, opening)
            self._note_process(Process(caller.pid, caller.started), caller.agent)
            self._note_inside(begun.turn)
            return begun

    def begin_call(self, caller: Caller, call: Call) -> turns_and_calls.Opened:
        """An agent's call is about to act: takes the before-image of what it names, or of everything."""
        with self._hooked(lambda: self._begun_unseen(caller, call)) as tree:
            opened = turns_and_calls.begin_call(self, tree, caller, call)
            assert opened is not None
            self._note_process(Process(caller.pid, caller.started), caller.agent)
            self._note_inside(opened.bracket.turn)
            return opened

    def begin_call_unless(
        self, caller: Caller, call: Call, unless: Callable[[], bool]
    ) -> turns_and_calls.Opened | None:
        """The same, unless what is asked after the look says yes: then nothing has begun."""
        with self._hooked(lambda: None if unless() else self._begun_unseen(caller, call)) as tree:
            opened = turns_and_calls.begin_call(self, tree, caller, call, unless)
            if opened is not None:
                self._note_process(Process(caller.pid, caller.started), caller.agent)
                self._note_inside(opened.bracket.turn)
            return opened

    def _begun_unseen(self, caller: Caller, call: Call) -> None:
        """Unless it does not begin where this fails: its agent is told to deny it, or it is a turn of a thread."""
        if self.settings.failure != "closed" and call.key != TURN:
            unseen_calls.begin_call(self, caller, call)
            self._note_process(Process(caller.pid, caller.started), caller.agent)

    def _note_process(self, process: Process, name: str) -> None:
        """Also beside the stores: below it no other project is less careful (sessions.py)."""
        if self.store.folder is not None:
            agent_sessions.note(self.settings.home, self.root, process, name)

    def _note_inside(self, turn: Turn) -> None:
        """A harness's step that it begins in takes it back with itself."""
        if self.open_steps:
            recorder.note_inside(self, turn)

    def ask_about(self, caller: Caller, call: Call) -> None:
        """An agent asks a person about a call of its own accord, before it acts."""
        self.must_be_on()
        with self.writing():
            self._attendance.show(turns_and_calls.ask_about(self, caller, call))

    def refuse_call(self, caller: Caller, call: Call, at: float) -> tuple[str, ...]:
        """A person said no to a call that an agent had announced, at this moment. Ids of what changed meanwhile."""
        with self._hooked(lambda: unseen_calls.refuse_call(self, caller, call, at)) as tree:
            return turns_and_calls.refuse_call(self, tree, caller, call, at)

    def end_call(
        self,
        caller: Caller,
        call: Call,
        failed: bool = False,
        did_act: bool = True,
        ran: float | None = None,
        at: float = 0.0,
        nothing: str = "",
        goes_on: bool = False,
    ) -> turns_and_calls.Ended:
        """An agent's call is over: journals what it did, as one effect, with what it did outside the files. What
        changed before it began to work (`ran` seconds before `at`, when its agent told of its end) is not its work.
        `nothing` says why, where nothing came of it outside the files; `goes_on`
        that it left a command running."""
        told = failed, did_act, ran, at, nothing, goes_on
        with self._hooked(lambda: unseen_calls.end_call(self, caller, call, *told)) as tree:
            return turns_and_calls.end_call(self, tree, caller, call, *told)

    def end_gone(self, process: Process, at: float) -> tuple[str, ...]:
        """A process was seen to end at this moment: the calls that were at work in it ended then."""
        with self._hooked(lambda: unseen_calls.end_gone(self, process, at)) as tree:
            return turns_and_calls.end_gone(self, tree, process, at)

    def end_turn(self, caller: Caller, whole_session: bool = False, at: float = 0.0) -> tuple[str, ...]:
        """An agent rests, or a session ends, at this moment: calls that nobody said were over are taken to be. While it
        rests nobody waits, so that room is made then."""
        with self._hooked(lambda: unseen_calls.end_turn(self, caller, whole_session, at)) as tree:
            found = turns_and_calls.end(self, tree, caller, whole_session, at)
            if not whole_session:
                with suppress(TakebackError):  # the next one makes it; what was captured stands
                    budget.stay_within(self)
            return found

    def close_outside(self) -> None:
        """Before the ledger is shown: calls that did something outside the files are closed where their agents have
        only written down that they are over. Where nothing can be journaled just now, nothing is."""
        with self.alone():
            if self.store.is_read_only or not turns_and_calls.over_outside(self):
                return
        with suppress(TakebackError), self._hooked() as tree:
            turns_and_calls.close_outside(self, tree)

    def has_turns(self, caller: Caller) -> bool:
        """Whether a session was ever asked anything."""
        with self.alone():
            return brackets.newest_turn(self.store.journal, caller) is not None

    def turn_above(self) -> AgentTurn | None:
        """What the agent that runs this process was asked last; None if a person runs it."""
        with self.alone():
            return turns_and_calls.turn_above(self)

    def vouches_above(self, actor: str) -> str:
        """The agent above this process, below whose session that actor cannot vouch; empty if it can."""
        with self.alone():
            return turns_and_calls.vouches_above(self, actor)

    def open_turns(self) -> frozenset[Turn]:
        """The turns of a harness that are open in this process or the nearest one above it."""
        with self.alone():
            return turns_and_calls.open_turns(self)

    def note_session(self, pid: int, started: int, name: str) -> None:
        """Journals that a process is an agent's: what only a person may do is refused below it (ancestry.py)."""
        self.must_be_on()
        with self.writing():
            note = {"what": "session", "pid": pid, "started": started, "name": name}
            if not any(note.items() <= known.items() for known in self.history().sessions):
                self.store.journal.append([New("note", new_id(), note)], self.clock())
            self._note_process(Process(pid, started), name)

    @contextmanager
    def _hooked(self, unlooked: Callable[[], None] = lambda: None) -> Iterator[OpenFolder]:
        """While a take-back is interrupted nobody may look: what can be journaled without that is, and this fails."""
        self.must_be_on()
        with self.writing(), self.open_tree() as tree:
            if what := self.interrupted():
                unlooked()
                raise in_between(what)
            yield tree

    # -- calls that are stopped ------------------------------------------------

    def gate(self, asked: object) -> str:
        """Journals a call that is not to pass without a person: the id it is approved by; empty if somebody has
        approved it, for once."""
        self.must_be_on()
        with self.writing():
            return decision.journaled(self, asked)

    def stopped_calls(self) -> dict[str, Stopped]:
        """Agents' calls that the gate did not let pass by itself, by id, oldest first. Where an agent asked a person,
        and has only written down what came of it, it is told as it will be once that call is closed."""
        history = self.history()
        found = dict(history.stopped)
        for call in history.stopped.values():
            if not call.answered and (end := self._end_of(history.brackets.get(call.call))) is not None:
                found[call.id] = call = call.ended(end.at or self.clock(), end.has_run, end.refused)
            if call.tried and (end := self._end_of(history.brackets.get(call.tried_in))) is not None:
                found[call.id] = call.came_of(end.at or self.clock(), end.has_run, end.refused)
        return found

    def _end_of(self, bracket: Bracket | None) -> End | None:
        """How a call ended that nothing has closed yet, as far as anybody can tell."""
        if bracket is None or bracket.closed:
            return None
        with self.alone():
            return self.observer.end_of(bracket)

    def waiting_calls(self) -> list[Stopped]:
        """Those that a person's approval would let pass, the newest first; of the same call in the same session only
        what was decided last."""
        newest = {(c.agent, c.session, c.fingerprint): c for c in self.stopped_calls().values()}
        approved = {self._same_call(id) for id in self.history().call_approvals.values()}
        waiting = [call for same, call in newest.items() if call.waits and same not in approved]
        return sorted(waiting, key=lambda call: -call.seq)

    def _same_call(self, id: str) -> tuple[str, str, str]:
        call = self.history().stopped.get(id)
        return (call.agent, call.session, call.fingerprint) if call is not None else ("", "", "")

    def stopped_call(self, name: str) -> Stopped | None:
        """The call of an agent that was stopped, by how its id begins; None if there is none."""
        found = [call for id, call in self.stopped_calls().items() if name and id.startswith(name)]
        if len(found) > 1:
            raise UsageError(f"{name!r} is ambiguous: {', '.join(c.id[:12] for c in found[:6])}", "type more letters")
        return found[0] if found else None

    def approve_call(self, call: Stopped) -> str:
        """A person's yes to exactly this call in that session, good for once. Saying it twice is saying it once, also
        where the call was stopped twice."""
        self.must_be_on()
        if call.never:
            raise ApprovalNeeded("an agent may never do this to its own undo", "do it yourself, in a terminal of yours")
        with self.writing():
            for id, approved in self.history().call_approvals.items():
                if self._same_call(approved) == self._same_call(call.id):
                    return id
            id = new_id()
            same = {"agent": call.agent, "session": call.session, "fingerprint": call.fingerprint}
            self.store.journal.append([New("approval", id, {"call": call.id, **same})], self.clock())
            return id

    def decline_call(self, call: str) -> None:
        """A person's no to a call that was asked about: it waits no longer. Asked again, it is asked about again."""
        with self.writing():
            if call in self.history().stopped:
                self.store.journal.append([New("note", new_id(), {"what": "declined", "call": call})], self.clock())

    # -- a process that stays ---------------------------------------------------

    def keep_watch(self) -> None:
        """For a process that stays: from now on whole looks visit only the folders that may differ, and find the same.
        Looks at all of it once, without leaving a trace; a hook waits for it, so for no longer than a hook may look."""
        with self.alone(), self.open_tree() as tree:
            if self.observer.suspects is None:
                self.observer.suspects = moments.suspects(self.observer)
            known = self.observer.known()
            look = self.observer.scan(tree, known, dry=True, deadline=turns_and_calls.deadline(self), thorough=True)
            if look.whole:
                self.observer.suspects.looked(known, look.dirty)

    def attend(self) -> bool:
        """While an agent asks a person about a call, again and again: looks at what changes meanwhile. Whether any
        agent still does."""
        with self._hooked() as tree:
            return self._attendance.attend(self, tree)

    @cached_property
    def _attendance(self) -> Attendance:
        found = Attendance()
        self.observer.waits = found.waits
        return found

    @property
    def is_asking(self) -> bool:
        """Whether an agent asks a person about a call."""
        with self.alone():
            return bool(prompts.asked_about(self))

    def close_stopped(self) -> bool:
        """While calls are at work, again and again: closes those of which only their agents' files tell that they are
        over. Whether any are left whose agents write that down."""
        with self.alone():
            over = self._stops.over(self)
        if over:
            with self._hooked() as tree:
                turns_and_calls.close(self, tree, over)
        return self.is_written_down

    @cached_property
    def _stops(self) -> Stops:
        return Stops()

    @property
    def is_written_down(self) -> bool:
        """Whether a call is at work whose agent writes down how it ends."""
        with self.alone():
            return bool(stops.written_down(self))

    def tend(self) -> None:
        """Between calls of a process that stays, if none is at work just now."""
        if self.observer.suspects is not None and self._mutex.acquire(blocking=False):
            try:
                if not self._closed:
                    self.observer.suspects.tend()
            finally:
                self._mutex.release()
