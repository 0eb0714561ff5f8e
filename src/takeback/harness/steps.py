"""Steps of a harness: what an agent does, one step at a time, each of which is done whole or taken back.

    with workspace.step("charge the customer") as step:
        step.do(charge, 20, undo=refund, undo_args={"charge": "{result.id}"}, key="order-17")

    enter ─► checkpoint ─► work, journaled ─┬─► no exception: transactions are committed
                                            └─► exception: transactions are rolled back, the harness's memory is put
                                                back, and files and outside effects are taken back newest first

An act is announced before it is done, so that a crash leaves it in doubt and never forgotten. One that raises may have
acted in part: it stays in doubt, unless it raises NotDone or one of the exceptions that were said to mean it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.apply import results
from takeback.errors import Stale, TakebackError, UsageError
from takeback.look.steps_at_work import Mark, can_tell
from takeback.model.effects import DONE, FAILED, PEOPLE, STATES, Outcome, Plan, Turn, Unit, text
from takeback.model.outside import Act
from takeback.threads.turns import finish_interrupted

from .approval import allowed, is_yes
from .recorder import Recorder, Undo, around_here, current, this_process, to_the_end
from .transactions import Transaction

if TYPE_CHECKING:
    from takeback.journal.history import History
    from takeback.workspace import Workspace

Approve = Callable[[Plan], bool | Awaitable[bool]]
_ATTEMPTS = 5  # at a plan that others make stale
_FILES = ("files", "git")  # which steps at the same time share
_MOST_NAMED = 20  # paths and effects in a note


class Remains(NamedTuple):
    """What a step could not take back, and why."""

    what: str  # a path, what an effect did, a transaction
    why: str
    domain: str = ""
    id: str = ""  # of an outside effect

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class Remembered(NamedTuple):
    """One entry of a harness's memory that a failed step had changed. What is absent is None."""

    target: str
    before: Any
    after: Any


class WorkStep(Recorder):
    """One step of a harness. An exception in it takes back what it did; `remains` says what could not be."""

    def __init__(self, workspace: Workspace, name: str, actor: str = "", approve: Approve | None = None) -> None:
        super().__init__(workspace, actor)
        if not name.strip():
            raise UsageError("a step needs a name", 'say what it does, such as "charge the customer"')
        self.name = name
        self.approve = approve
        self.checkpoint = ""  # the id of the checkpoint it began with
        self.outcome: Outcome | None = None  # of taking it back
        self.remains: tuple[Remains, ...] = ()
        self.finished: results.Finished | None = (
            None  # what came of a take-back that had been interrupted, and was finished first
        )
        self.remembered: tuple[Remembered, ...] = ()  # what was put back in the harness's memory
        self._beside: set[str] = set()  # the actors of steps that were at work at the same time, in any process
        self._mark: Mark | None = None  # by which other processes know of it
        self._parent: WorkStep | None = None
        self._transactions: list[Transaction] = []
        self._memory: list[tuple[str, MutableMapping[Any, Any], dict[Any, Any]]] = []

    def __enter__(self) -> WorkStep:
        self._begin()
        self._set_current()
        return self

    def __exit__(self, kind: object = None, error: BaseException | None = None, trace: object = None) -> None:
        try:
            if error is None:
                self._vouch()
                for transaction in self._transactions:
                    transaction.commit(self)
        except BaseException as trouble:
            error = trouble
            raise
        finally:
            self._unset_current()
            try:
                if error is not None:
                    for transaction in reversed(self._transactions):
                        self._rolled_back(transaction, transaction.roll_back(self))
                    self._finish(error, self._answered())
            finally:
                self._drop_mark()

    # What differs in the async twin is only who waits.

    async def _aexit(self, error: BaseException | None) -> None:
        try:
            if error is None:
                await to_the_end(self._vouch)
                for transaction in self._transactions:
                    await transaction.acommit(self)
        except BaseException as trouble:
            error = trouble
            raise
        finally:
            self._unset_current()
            try:
                if error is not None:
                    for transaction in reversed(self._transactions):
                        self._rolled_back(transaction, await transaction.aroll_back(self))
                    await self._afinish(error)
            finally:
                self._drop_mark()

    def _begin(self) -> None:
        """Takes the checkpoint that it goes back to. What changed before is not this step's."""
        if self.checkpoint:
            raise UsageError(f'the step "{self.name}" was begun before', "make another one: workspace.step(…)")
        self.finished = finish_interrupted(self.workspace)
        parent = current()
        if isinstance(parent, WorkStep) and parent.workspace is self.workspace:
            self._parent = parent
            self.actor = self.actor or parent.actor
            self.approve = self.approve or parent.approve
            parent._vouch()
        self._enter(around_here())  # before it looks for others: of two at once, one sees the other
        try:
            self.checkpoint = self.workspace.checkpoint(self.name).id
            self._vouch()  # for nothing yet: from here on the actor is known, and each look says whose the files are
            self._set_mark()
        except BaseException:
            self._leave()
            raise
        self.path = f"{self.path}/{self.checkpoint}" if self.path else self.checkpoint
        for other in list(self.workspace.open_steps):
            if isinstance(other, WorkStep) and not (other in self._around() or self in other._around()):
                other._beside.add(self.actor)
                self._beside.add(other.actor)

    def _set_mark(self) -> None:
        """From here on whoever looks knows that it is at work."""
        if not can_tell(folder := self.workspace.store.folder) or folder is None:
            return
        steps = [step.checkpoint for step in self._around() if step is not self]
        turns = [number for each in self.around if (number := each.turn.get("turn"))]
        self._mark = Mark(folder, self.checkpoint, self.actor, (*steps, *turns))
        self._beside.update(self._mark.beside)

    def _drop_mark(self) -> None:
        if self._mark is not None:
            mark, self._mark = self._mark, None
            mark.drop()
            self._beside.update(mark.beside)

    def note_inside(self, whose: Turn | str) -> None:
        super().note_inside(whose)
        if self._mark is not None and isinstance(whose, Turn):
            self._mark.note_inside(whose.number)

    @property
    def _shared(self) -> bool:
        """Whether nobody can tell its files from those of a step that was at work at the same time."""
        if self.actor and can_tell(self.workspace.store.folder):
            return self.actor in self._beside  # what those of other actors had a part in is journaled as shared
        return bool(self._beside)

    def _vouch(self) -> None:
        if self.actor:
            self.workspace.checkpoint_of_step(self.actor)

    # -- transactions and memory ----------------------------------------------

    def transaction(
        self,
        connection: Any,
        *,
        undo: Undo | None = None,
        undo_args: Mapping[str, Any] | None = None,
    ) -> Any:
        """Commits what is done on a database connection when the step succeeds, and rolls it back if it fails: exact
        until then. After the commit, `undo` takes it back. Returns the connection.

        A connection that an enclosing step has in its hands gets a savepoint: that step commits it."""
        if not any(connection is t.connection for t in self._transactions):
            outer = any(connection is t.connection for step in self._around() for t in step._transactions)
            self._transactions.append(Transaction(connection, outer, undo, undo_args))
        return connection

    def _rolled_back(self, transaction: Transaction, why: str) -> None:
        if why:
            self._note(Remains(transaction.name, why))

    def _around(self) -> Iterable[WorkStep]:
        step: WorkStep | None = self
        while step is not None:
            yield step
            step = step._parent

    def remember(self, memory: MutableMapping[Any, Any], target: str = "memory") -> None:
        """Puts a harness's own mapping back as it is now if the step fails."""
        try:
            self._memory.append((target, memory, copy.deepcopy(dict(memory))))
        except Exception as error:
            raise UsageError(
                f"{target} cannot be remembered: {error}", "keep plain values in it, or put it back yourself"
            ) from error

    def _restore_memory(self) -> None:
        found = []
        for target, memory, before in reversed(self._memory):
            after = dict(memory)
            for name in [*before, *(n for n in after if n not in before)]:
                if (name in before) != (name in after) or before.get(name) != after.get(name):
                    found.append(Remembered(f"{target}.{name}", before.get(name), after.get(name)))
            memory.clear()
            memory.update(before)
        self.remembered = tuple(found)

    # -- taking it back -------------------------------------------------------

    def _answered(self) -> Callable[[Plan], bool]:
        def answer(plan: Plan) -> bool:
            said = self.approve(plan) if self.approve else False
            return is_yes(said, "use async with workspace.astep(…)")

        return answer

    def _finish(self, error: BaseException, answer: Callable[[Plan], bool]) -> None:
        """Takes the step back, whatever becomes of that: the exception goes on."""
        work = self._taking_back()
        try:
            plan = next(work)
            while True:
                try:
                    said = answer(plan)
                except Exception as trouble:
                    self._note(_refused(trouble))
                    said = False
                plan = work.send(said)
        except StopIteration:
            pass
        self._tell(error)

    async def _afinish(self, error: BaseException) -> None:
        work = self._taking_back()
        plan = await to_the_end(_sent, work, None)
        while plan is not None:
            try:
                answer = self.approve(plan) if self.approve else False
                said = (await answer if inspect.isawaitable(answer) else answer) is True
            except Exception as trouble:
                self._note(_refused(trouble))
                said = False
            plan = await to_the_end(_sent, work, said)
        self._tell(error)

    def _taking_back(self) -> Generator[Plan, bool, None]:
        """Yields each plan that a person has to approve; goes on with the answer."""
        self._restore_memory()
        try:
            self._vouch()
            self._drop_mark()
            for _ in range(_ATTEMPTS):
                plan, left = yield from self._planned()
                try:
                    outcome = self.workspace.apply(plan)
                except Stale:  # somebody did something meanwhile
                    continue
                if outcome.finished_earlier:  # it was cut off since we looked
                    self.finished = results.finished(self.workspace, outcome)
                    continue
                self.outcome = outcome
                self._note(*left, *self._not_done(outcome))
                return
            self._note(Remains(self.name, "others kept changing what it would take back"))
        except TakebackError as error:
            self._note(Remains(self.name, f"{error.message}; {error.hint}" if error.hint else error.message))

    def _planned(self) -> Generator[Plan, bool, tuple[Plan, list[Remains]]]:
        """The plan that may run: what nobody allows stays, and so does what that stands on."""
        workspace = self.workspace
        since = workspace.find_checkpoint(self.checkpoint).seq
        live = [act for act in workspace.effects() if act.seq > since and not act.undone_by and act.state != FAILED]

        def planned(leave: set[str]) -> Plan:
            while True:
                plan = workspace.plan(
                    "rollback",
                    self.checkpoint,
                    actors=[self.actor] if self.actor else None,
                    turns=[Turn(self.turn["actor"], self.turn["turn"])] if self.turn and not self.actor else (),
                    without=_FILES if self._shared else (),
                    leave=leave,
                    also=() if self.actor or self.turn or self.inside else (PEOPLE,),  # which is what it did itself
                )
                others = self._others_work(plan) - leave
                if not others:
                    return plan
                leave = leave | others

        others = [act for act in live if not self._is_own(act)]
        can_ask = self.approve is not None
        plan, stays = yield from allowed(
            workspace, planned, live, [act.id for act in others], can_ask, lambda id: f"takeback revert {id[:8]}"
        )
        left = [_remaining(act, why) for act, why in stays]
        left += [_remaining(act, _whose(act)) for act in others if not act.step]
        if self._shared:
            left += self._changed_meanwhile(since)
        return plan, left

    def _changed_meanwhile(self, since: int) -> list[Remains]:
        """What changed in the files since a row, where nobody knows which of several steps did it."""
        history, why = self.workspace.history(), "another step was at work in the same files at the same time"
        found = {}
        for unit in history.shown(since):
            effect = history.by_seq[unit.seq]
            if unit in history.live and effect.domain in _FILES and not effect.takeback:
                found[unit.path] = effect.domain
        return [Remains(text(path), why, found[path]) for path in sorted(found)]

    def _is_own(self, act: Act) -> bool:
        """In this step or in one inside it; or by a program that was started while no other one was at work."""
        if act.step:
            return act.step == self.path or act.step.startswith(self.path + "/")
        if not self.was_alone or this_process() not in act.by.get("above", "").split():
            return False
        turn = act.by.get("turn", "")
        return turn in ("", self.turn.get("turn")) or Turn(act.by.get("actor", ""), turn) in self.inside

    def _others_work(self, plan: Plan) -> set[str]:
        """The ids of changes in a plan that are of agents and conversations beside the step."""
        if self.actor or self.turn:  # only its own was asked for
            return set()
        history = self.workspace.history()
        units = [unit for step in plan.steps if step.domain in STATES for unit in step.units]
        return {history.by_seq[u.seq].id for u in units if not all(map(self._is_inside, self._whose(history, u)))}

    def _whose(self, history: History, unit: Unit) -> Iterable[Turn]:
        effect = history.by_seq[unit.seq]
        return history.whose(unit) if effect.takeback else effect.turns

    def _is_inside(self, turn: Turn) -> bool:
        return not turn.actor or turn in self.inside or turn.actor in self.inside

    def _not_done(self, outcome: Outcome) -> list[Remains]:
        acts = {act.id: act for act in self.workspace.effects()}
        found = []
        for result in outcome.results:
            if result.result == DONE:
                continue
            name = text(result.path)
            if name in acts:
                found.append(_remaining(acts[name], results.why_not(acts[name], result)))
            else:
                found.append(Remains(name, result.note or result.result, "files"))
        others = results.others_work(self.workspace.history(), outcome)
        return found + [Remains(each.name, _others(each), "files") for each in others]

    def _note(self, *found: Remains) -> None:
        self.remains += tuple(r for r in found if r not in self.remains)

    def _told(self) -> str:
        """What came of it, by name."""
        taken = self._taken()
        more = f" and {len(taken) - _MOST_NAMED:,} more" if len(taken) > _MOST_NAMED else ""
        if taken:
            return f"was taken back{' in part' if self.remains else ''}: {', '.join(taken[:_MOST_NAMED])}{more}"
        return "was not taken back" if self.remains else "had changed nothing that is known"

    def _taken(self) -> list[str]:
        """What was taken back: paths, and effects outside the files by what they did."""
        if self.outcome is None:
            return []
        acts = {act.id: act.summary for act in self.workspace.effects()}
        done = dict.fromkeys(text(result.path) for result in self.outcome.results if result.result == DONE)
        return [acts.get(name, name) for name in done]

    def _tell(self, error: BaseException) -> None:
        if self.finished is not None:
            error.add_note(f"takeback: {self.finished.message}")
        error.add_note(f'takeback: step "{self.name}" {self._told()}')
        for remaining in self.remains:
            error.add_note(f"takeback: what remains: {remaining}")


class AsyncStep:
    """A step for `async with`; what it yields is the step itself."""

    def __init__(self, step: WorkStep) -> None:
        self._step = step

    async def __aenter__(self) -> WorkStep:
        try:
            await to_the_end(self._step._begin)
        except BaseException:
            self._step._unset_current()
            self._step._drop_mark()
            raise
        self._step._set_current()
        return self._step

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._step._aexit(error)


def _sent(work: Generator[Plan, bool, None], said: bool | None) -> Plan | None:
    try:
        return next(work) if said is None else work.send(said)
    except StopIteration:
        return None


def _remaining(act: Act, why: str) -> Remains:
    return Remains(act.summary, why, act.domain, act.id)


def _whose(act: Act) -> str:
    if actor := act.by.get("actor"):
        return f"it is the work of {actor}, not of this step"
    above = act.by.get("above", "").split()
    if above and this_process() not in above:
        return f"another program recorded it: takeback revert {act.id[:8]}"
    return f"nobody knows which step made it: takeback revert {act.id[:8]}"


def _others(left: results.Left) -> str:
    return left.told if left.command else f"it is others' work: {left.why}"


def _refused(trouble: Exception) -> Remains:
    return Remains("approve", f"it raised {type(trouble).__name__}: {trouble}, which is no yes")
