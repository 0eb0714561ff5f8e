"""A conversation with an agent, and what /undo and /redo mean to it: its messages, files and effects go back as one.

    with conversation.turn("add tests"):     ─► look ─► turn row, brackets ─► the user's message
        conversation.append({"role": …})     ─► a state checkpoint of its thread
        …                                       files and effects meanwhile are the turn's
                                             ─► look ─► what it did ─► the brackets close
    conversation.undo()                      ─► one take-back: thread, files, git, effects outside

Nothing of it is kept in memory alone: the messages are the head of the thread, and what can be undone or redone is read
from the journal, so that a new process goes on where another one ended. Turned off, it is a list of messages.
"""

from __future__ import annotations

import copy
import inspect
import json
import os
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.apply import results
from takeback.domains.git.repository import amount
from takeback.errors import Moved, Stale, TakebackError, UsageError
from takeback.journal import brackets
from takeback.model.effects import DONE, FOLDER, STATES, Outcome, Plan, Request, Takeback, Turn, path_of_thread, text
from takeback.privacy import redact
from takeback.threads import plain_data
from takeback.threads import turns as thread_turns
from takeback.threads.threads import checked_name
from takeback.threads.turns import ThreadTurn

from .approval import Stays, allowed, is_yes, still_standing
from .recorder import Recorder, to_the_end

if TYPE_CHECKING:
    from takeback.journal.brackets import AgentTurn
    from takeback.journal.history import History
    from takeback.model.effects import Effect
    from takeback.model.thread_states import StateCheckpoint
    from takeback.workspace import Workspace

    from .steps import Approve

_ATTEMPTS = 5  # at a plan that others make stale
_NAMED = 3  # paths or effects that a message names of each kind
_SUMMARY = 80  # characters of a message that its state checkpoint is listed by
_MESSAGES = "messages"


class Said(NamedTuple):
    """What came of an undo or a redo."""

    message: str  # a sentence for people
    done: bool = False  # whether anything was taken back, or brought back
    outcome: Outcome | None = None  # of the take-back; None where there was none
    messages: int = 0  # how many messages went, or came back


class Conversation:
    """Messages in a thread of a workspace. Safe to use from several threads, one turn at a time.

    `approve` is shown a plan that would do something outside the files, where policy does not allow that by itself:
    without its True, that stays. Without a workspace, turned off here or by the settings, nothing is kept or undone."""

    def __init__(
        self,
        workspace: Workspace | None,
        thread: str = "main",
        enabled: bool = True,
        *,
        agent: str = "conversation",
        approve: Approve | None = None,
    ) -> None:
        self.workspace = workspace
        self.thread = checked_name(thread, "thread")
        self.agent = agent
        self.approve = approve
        self.off = _why_off(workspace, enabled)  # empty while it is on
        self._lock = threading.RLock()
        self._turn: ConversationTurn | None = None
        self._head: StateCheckpoint | None = None
        self._seen = -1  # the row up to which the thread was read
        self._state: dict[str, Any] = {}

    @property
    def enabled(self) -> bool:
        return not self.off

    # -- messages ------------------------------------------------------------------

    @property
    def messages(self) -> list[Any]:
        """A copy of all messages, oldest first, as they are now: whoever moved the thread."""
        with self._lock:
            if self._seen < 0 or not self.off:
                self._read()
            return copy.deepcopy(self._state.get(_MESSAGES, []))

    def append(self, message: Mapping[str, Any]) -> None:
        """Adds a message, kept at once. If another writer added some that this conversation has not read, it is told
        so (Moved), and nothing is added; after a take-back it goes on from there."""
        told = json.loads(plain_data.encoded(plain_data.named(message, "message"), "message"))  # as it is read again
        with self._lock:
            if self._seen < 0:
                self._read()
            if self.off:
                self._state = self._with(told)
                return
            for _ in range(_ATTEMPTS):
                self._follow()
                state = self._with(told)
                try:
                    saved = self._on.threads.save(
                        self.thread,
                        state,
                        parent=self._head.id if self._head else "",
                        summary=_summary(told),
                        agent=self.agent,
                        source="conversation",
                        capture=self._looks,
                    )
                except Moved:
                    continue
                self._head, self._seen, self._state = saved, saved.seq, state
                return
            raise self._moved()

    @property
    def _looks(self) -> bool:
        """Whether the files are to be known as they are with a message. A message is kept also where they cannot be."""
        return self._turn is not None and self._turn.has_looked and not self._on.interrupted()

    def _with(self, message: Any) -> dict[str, Any]:
        return {**self._state, _MESSAGES: [*self._state.get(_MESSAGES, []), message]}

    def _read(self) -> None:
        """The head of the thread, if it is not the one that is known. What was there before it was turned off is read
        too, and stays as it is."""
        ws = self.workspace
        self._seen = max(self._seen, 0)
        if ws is None or (self.off and not ws.observer.has_threads):
            return
        seen = ws.store.journal.head().seq
        head = ws.threads.find(self.thread)
        if head is None:
            state: dict[str, Any] = {}
        elif self._head is not None and head.id == self._head.id:
            state = self._state
        else:
            state = ws.threads.load(head) if head.codec == "json" else {_MESSAGES: None}
        if not isinstance(state.get(_MESSAGES, []), list):
            raise UsageError(f"thread {self.thread} holds no conversation", "name another thread")
        self._head, self._state = head, state
        self._seen = max(seen, head.seq if head else 0)

    def _follow(self) -> None:
        """Goes on from where a take-back left the thread; another writer's messages must be read first."""
        head = self._on.threads.find(self.thread)
        if (head.id if head else "") == (self._head.id if self._head else ""):
            return
        added = self._on.threads.list(self.thread, "")
        if any(state.seq > self._seen and state.source != "rollback" for state in added):
            raise self._moved()
        self._read()

    def _moved(self) -> Moved:
        return Moved(
            f"another writer has gone on with thread {self.thread}; nothing was added",
            "read the messages of the conversation, which has them now, then append again",
        )

    # -- turns -----------------------------------------------------------------------

    def turn(self, user_text: str | None = None) -> ConversationTurn:
        """`with` it, what is done is one turn, which undo takes back as one. It begins before the message enters."""
        return ConversationTurn(self, user_text)

    def _begin(self, turn: ConversationTurn, prompt: str) -> None:
        ws = self._on
        turn.finished = thread_turns.finish_interrupted(ws)
        if told := self._under_way():
            raise UsageError(told, "one turn at a time: wait for its end, or talk in another thread")
        turn.open = thread_turns.begin(ws, self.agent, self.thread, prompt)
        turn.lacking, turn.begun = turn.open.lacking, turn.open.owner

    def _under_way(self) -> str:
        """A turn of this thread that is open, in a process that is known to live."""
        with self._on.alone():
            found = brackets.at_work(self._on.store.journal)
        for caller in (bracket.caller for bracket in found if bracket.call.thread == self.thread):
            if caller.pid == os.getpid() and not caller.is_gone:
                return f"a turn of thread {self.thread} is under way"
            if caller.started and not caller.is_gone:
                return f"a turn of thread {self.thread} is under way in process {caller.pid}"
        return ""

    # -- undo, redo --------------------------------------------------------------------

    def undo(self, n: int = 1) -> Said:
        """Takes back the last turn that stands, or the last n as one: its messages, files, and effects outside."""
        return self._driven(self._undoing(n))

    def redo(self, n: int = 1) -> Said:
        """Brings back what the newest undo took, or the newest n, unless the conversation has gone on since."""
        return self._driven(self._redoing(n))

    def _driven(self, work: Generator[Plan, bool, Said]) -> Said:
        try:
            plan = next(work)
            while True:
                said = self.approve(plan) if self.approve else False
                plan = work.send(is_yes(said, "use AsyncConversation"))
        except StopIteration as end:
            return _said(end.value)

    def _undoing(self, n: int) -> Generator[Plan, bool, Said]:
        """Yields a plan that a person has to approve; goes on with the answer."""
        if (early := self._before(n, "taken back")) is not None:
            return early
        ws = self._on
        for _ in range(_ATTEMPTS):
            live, can_ask = still_standing(ws), self.approve is not None
            plan, stays = yield from allowed(
                ws, lambda leave: self._planned(n, leave), live, (), can_ask, lambda id: f"takeback revert {id[:8]}"
            )
            turns = self._turns(ws.history(), set(plan.request.turns))
            if not turns:
                mine = {turn.turn for turn in self._turns(ws.history())}
                left = results.still_there(ws, mine)
                return Said(f"nothing to take back: no turn of this conversation stands{left}")
            before = len(self.messages)
            try:
                outcome = ws.apply(plan)
            except Stale:  # somebody did something meanwhile
                continue
            if outcome.finished_earlier:
                return self._finished(outcome)
            return self._told("took back", _called(turns), outcome, before - len(self.messages), stays)
        raise _kept_changing()

    def _planned(self, n: int, leave: set[str]) -> Plan:
        """The undo of the last n turns that stand once what was not seen yet has been looked at."""

        def ask(history: History, request: Request) -> Request:
            return request._replace(turns=tuple(sorted(self._standing(history, n))))

        request = Request("undo", state=True, threads=(self.thread,), leave=tuple(sorted(leave)))
        return self._on.planned(request, ask)

    def _redoing(self, n: int) -> Generator[Plan, bool, Said]:
        yield from ()  # nothing is done outside the files by a redo, so that nobody is asked
        if (early := self._before(n, "brought back")) is not None:
            return early
        ws = self._on
        for _ in range(_ATTEMPTS):
            standing = self._undos(ws.history())[:n]
            if not standing:
                return Said("nothing to bring back: no undo of this conversation stands")
            if why := self._gone_on_since(standing[0]):
                return Said(f"nothing to bring back: {why}; files alone can still come back: takeback redo")
            undone = [undo for undo in standing if not self._gone_on_since(undo)]
            plan = ws.planned(Request("redo", takebacks=tuple(t.id for t in undone)))
            mine = [step for step in plan.steps if step.path == path_of_thread(self.thread)]
            if kept := [step for step in mine if not step.taken]:
                why = results.why_not_again(ws.history(), kept[0])
                return Said(f"nothing was brought back: the conversation was {why}")
            turns = self._turns(ws.history(), {turn for t in undone for turn in t.request.turns})
            before = len(self.messages)
            try:
                outcome = ws.apply(plan)
            except Stale:
                continue
            if outcome.finished_earlier:
                return self._finished(outcome)
            return self._told("brought back", _called(turns), outcome, len(self.messages) - before, [])
        raise _kept_changing()

    def _before(self, n: int, verb: str) -> Said | None:
        """What there is to say instead of going on."""
        if not isinstance(n, int) or n < 1:
            raise UsageError(f"{n!r} is no number of turns", "give a whole number from 1 up")
        if self.off:
            return Said(f"{self.off}; nothing was {verb}")
        if (told := self._under_way()) or self._turn is not None:
            return Said(f"{told or 'a turn is under way'}: let it end first; nothing was {verb}")
        if self._on.was_stopped():
            how = "takeback resume finishes it, takeback resume --abort goes back"
            return Said(f"{self._on.interrupted()}: {how}; nothing was {verb}")
        if self._on.interrupted() and (outcome := self._on.resume(leave=True)) is not None:
            return self._finished(outcome)
        return None

    def _turns(self, history: History, among: set[Turn] | None = None) -> list[AgentTurn]:
        """The turns of this thread, oldest first, whoever took part in it."""
        talk = history.turns_of((self.thread,))
        wanted = talk if among is None else talk & among
        return [turn for key, turn in history.agent_turns.items() if key in wanted]

    def _standing(self, history: History, n: int) -> list[Turn]:
        """The last n turns of which something is left to take back, and which no undo in force was about, unless they
        went on after it."""
        path = path_of_thread(self.thread)
        undone = {turn: undo.seq for undo in reversed(self._undos(history)) for turn in undo.request.turns}
        live = [e for e in history.effects if not e.takeback and _is_live(history, e, path)]
        work = {turn for e in live for turn in e.turns if e.seq > undone.get(turn, 0)}
        work |= {turn for turn, seq in history.rewriting.items() if seq > undone.get(turn, 0)}
        found: list[Turn] = []
        end = history.head + 1
        for turn in reversed([turn for turn in self._turns(history) if turn.turn in work or turn.turn not in undone]):
            # What was added in no turn goes with the one before it.
            if turn.turn in work or any(unit.seq < end for unit in history.added(path, turn.seq)):
                found.append(turn.turn)
            if len(found) == n:
                break
            end = turn.seq
        return found

    def _undos(self, history: History) -> list[Takeback]:
        """Undos in force of turns of this conversation, messages included, newest first."""
        talk = {turn.turn for turn in self._turns(history)}
        return [t for t in history.standing.values() if _is_undo(t, talk)]

    def _is_own(self, history: History, takeback: Takeback) -> bool:
        """Whether it is such an undo, or a redo of one."""
        known, talk = history.takebacks, {turn.turn for turn in self._turns(history)}
        meant = [known[id] for id in takeback.request.takebacks if id in known] or [takeback]
        return any(_is_undo(each, talk) for each in meant)

    def _gone_on_since(self, undo: Takeback) -> str:
        """Why a redo is no more: what it would bring back does not follow on what is there now."""
        later = [turn for turn in self._turns(self._on.history()) if turn.seq > undo.seq]
        if later:
            return f"{_called(later[:1])} has begun since"
        states = self._on.threads.list(self.thread, "")
        if any(state.seq > undo.seq and state.source != "rollback" for state in states):
            return "messages were added since"
        return ""

    # -- in words ------------------------------------------------------------------------

    def _finished(self, outcome: Outcome) -> Said:
        """What a call did instead of its own work: an earlier one was interrupted."""
        done = any(result.result == DONE for result in outcome.results)
        return Said(results.finished(self._on, outcome).message, done, outcome)

    def _told(self, verb: str, what: str, outcome: Outcome, messages: int, stays: Stays) -> Said:
        steps = {step.path: step for step in outcome.plan.steps}
        acts = {act.path: act for act in self._on.effects()}
        done = list(dict.fromkeys(r.path for r in outcome.results if r.result == DONE and r.path in steps))
        of = {name: [p for p in done if steps[p].domain == name] for name in STATES}
        effects = [acts[p].summary if p in acts else text(p) for p in done if steps[p].domain not in STATES]
        folders = [p for p in of["files"] if _is_folder(steps[p].expected) or _is_folder(steps[p].goal)]
        files = [text(p) for p in of["files"] if p not in folders]
        mine = path_of_thread(self.thread) in of["state"]
        parts = [_count(messages, "message")] if messages > 0 else ["its messages"] * mine
        parts += [f"thread {text(p)[2:]}" for p in of["state"] if p != path_of_thread(self.thread)]
        parts += [f"{_count(len(effects), 'effect')} outside ({_names(effects)})"] if effects else []
        parts += [f"in git {amount(of['git'])}"] if of["git"] else []
        parts += [f"{_count(len(folders), 'folder')} ({_names([text(p) for p in folders])})"] if folders else []
        parts += [f"{_count(len(files), 'file')}: {_names(files)}"] if files else []
        history = self._on.history()
        not_done = results.not_done(history, outcome)
        kept = [_kept(r.path, r.note or r.result) for r in not_done if r.path not in acts]
        others = results.others_work(history, outcome)
        kept += [f"kept {each.name}, {each.told}" for each in others if not each.outside]
        kept = list(dict.fromkeys(kept))
        lists = f" (takeback show {outcome.id[:8]} lists them)" if outcome.id else ""
        more = [f"kept {len(kept) - _NAMED:,} more{lists}"] * (len(kept) > _NAMED + 1 and bool(lists))
        stands = " stays" if verb == "took back" else ""
        told = [(results.called(acts[r.path]), results.why_not(acts[r.path], r)) for r in not_done if r.path in acts]
        told += [(each.name, each.told) for each in others if each.outside]
        told += [(results.called(act), why) for act, why in stays]
        sentence = f"{verb} {what}: {', '.join(parts) or 'nothing of it'}"
        parts = [sentence, *(kept[:_NAMED] + more if more else kept), *(f"{act}{stands}: {why}" for act, why in told)]
        return Said("; ".join(dict.fromkeys(parts)), bool(done), outcome, max(messages, 0))

    @property
    def _on(self) -> Workspace:
        assert self.workspace is not None and not self.off
        return self.workspace


class ConversationTurn(Recorder):
    """A turn under way. What is recorded inside `with` belongs to it; leaving it looks at what it did."""

    finished: results.Finished | None = None  # what came of an interrupted undo or redo, which was finished first
    lacking: tuple[tuple[bytes, str], ...] = ()  # what could not be captured as it was before, and why
    open: ThreadTurn | None = None
    begun: Mapping[str, str] = {}  # whose acts are that are recorded in it
    has_looked = False  # its user's message is in: what is there with each later one is looked at

    def __init__(self, conversation: Conversation, user_text: str | None) -> None:
        if conversation.workspace is not None:
            super().__init__(conversation.workspace)
        if user_text is not None and not isinstance(user_text, str):
            raise UsageError(
                f"what a user says is a text, and this is of type {type(user_text).__name__}",
                "begin the turn with a text or none, and append what else the message holds",
            )
        self.conversation = conversation
        self.user_text = user_text

    def __enter__(self) -> ConversationTurn:
        self._begin()
        if not self.conversation.off:
            self._set_current()
        return self

    def __exit__(self, kind: object = None, error: BaseException | None = None, trace: object = None) -> None:
        if not self.conversation.off:
            self._unset_current()
        self._end(error)

    def _take_turn(self, around: Mapping[str, str]) -> None:
        self.turn = self.begun

    def _begin(self) -> None:
        talk = self.conversation
        with talk._lock:
            if talk._turn is not None:
                raise UsageError(f"a turn of thread {talk.thread} is under way", "leave it before the next one begins")
            talk._turn = self
        try:
            if not talk.off:
                talk._begin(self, self.user_text or "")
            if self.user_text is not None:
                talk.append({"role": "user", "content": self.user_text})
            self.has_looked = True
        except BaseException as error:
            self._end(error)
            raise

    def _end(self, error: BaseException | None) -> None:
        """What it did is found and journaled, whether it went well or not."""
        opened, self.open = self.open, None
        self.conversation._turn = None
        try:
            if opened is not None:
                thread_turns.end(self.workspace, opened, failed=error is not None)
        except TakebackError as trouble:
            if error is None:
                raise
            error.add_note(f"takeback: what the turn did could not be journaled: {trouble.message}")


class AsyncConversation:
    """The same for `await`: nothing blocks the loop. `await c.messages`; `approve` may be a coroutine function."""

    def __init__(
        self,
        workspace: Workspace | None,
        thread: str = "main",
        enabled: bool = True,
        *,
        agent: str = "conversation",
        approve: Approve | None = None,
    ) -> None:
        self._plain = Conversation(workspace, thread, enabled, agent=agent, approve=approve)

    @property
    def approve(self) -> Approve | None:
        return self._plain.approve

    @approve.setter
    def approve(self, ask: Approve | None) -> None:
        self._plain.approve = ask

    @property
    def thread(self) -> str:
        return self._plain.thread

    @property
    def enabled(self) -> bool:
        return self._plain.enabled

    @property
    def messages(self) -> Awaitable[list[Any]]:
        return to_the_end(lambda: self._plain.messages)

    async def append(self, message: Mapping[str, Any]) -> None:
        await to_the_end(self._plain.append, message)

    def turn(self, user_text: str | None = None) -> AsyncTurn:
        """`async with` it."""
        return AsyncTurn(self._plain.turn(user_text))

    async def undo(self, n: int = 1) -> Said:
        return await self._driven(self._plain._undoing(n))

    async def redo(self, n: int = 1) -> Said:
        return await self._driven(self._plain._redoing(n))

    async def _driven(self, work: Generator[Plan, bool, Said]) -> Said:
        found = await to_the_end(_sent, lambda: next(work))
        while isinstance(found, Plan):
            answer = self._plain.approve(found) if self._plain.approve else False
            said = (await answer if inspect.isawaitable(answer) else answer) is True
            found = await to_the_end(_sent, lambda said=said: work.send(said))
        return found


class AsyncTurn:
    """A turn for `async with`; what it yields is the turn itself."""

    def __init__(self, turn: ConversationTurn) -> None:
        self._turn = turn

    async def __aenter__(self) -> ConversationTurn:
        turn = self._turn
        try:
            await to_the_end(turn._begin)
        except BaseException as error:  # cancelled while it began: it is open, and nobody will leave it
            if turn.conversation._turn is turn:
                await to_the_end(turn._end, error)
            raise
        if not turn.conversation.off:
            turn._set_current()
        return turn

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self._turn.conversation.off:
            self._turn._unset_current()
        await to_the_end(self._turn._end, error)


def _sent(step: Callable[[], Plan]) -> Plan | Said:
    try:
        return step()
    except StopIteration as end:
        return _said(end.value)


def _said(value: Any) -> Said:
    assert isinstance(value, Said)
    return value


def _why_off(workspace: Workspace | None, enabled: bool) -> str:
    if not enabled:
        return "undo is turned off for this conversation"
    if workspace is None:
        return "this conversation has no workspace"
    if not workspace.settings.enabled:
        return f"takeback is off (source: {workspace.settings.off_source})"
    return ""


def _summary(message: Mapping[str, Any]) -> str:
    """What a person recognises a message by."""
    content = message.get("content")
    told = content if isinstance(content, str) else ""
    line = " ".join(redact.text(told[: 4 * _SUMMARY]).split())
    return f"{message.get('role', 'message')}: {line[:_SUMMARY]}" if line else f"{message.get('role', 'message')}"


def _called(turns: list[AgentTurn]) -> str:
    first = f'"{turns[0].prompt}"' if turns and turns[0].prompt else ""
    if len(turns) > 1:
        return f"{len(turns)} turns{', from ' + first + ' on' if first else ''}"
    return f"the turn {first}" if first else "a turn"


def _kept(path: bytes, why: str) -> str:
    return f"kept thread {text(path)[2:]}, {why}" if path.startswith(b"//") else f"kept {text(path)}, {why}"


def _names(found: Sequence[str]) -> str:
    return ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def _is_undo(takeback: Takeback, talk: set[Turn]) -> bool:
    request = takeback.request
    return takeback.verb == "undo" and request.state and bool(request.turns) and talk.issuperset(request.turns)


def _is_live(history: History, effect: Effect, but: bytes) -> bool:
    return any((effect.seq, path) in history.live for path in effect.changes if path != but)


def _is_folder(state: Any) -> bool:
    return state is not None and state.kind == FOLDER


def _kept_changing() -> Stale:
    return Stale("others kept changing what it would take back; nothing was changed", "try it again")
