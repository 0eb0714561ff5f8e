"""Calls of a harness: announced in the journal, done, and recorded with what takes them back.

    recorder.do(fn, …)  ─► act row: begun ─► fn(…) ─┬─► acted: done, with its inverse filled from the result
                                                    ├─► the inverse cannot be filled: acted: done, irreversible
                                                    ├─► NotDone: acted: failed, it did nothing
                                                    └─► another exception, or a crash: nobody knows

With a key it is done once, whoever calls; and what was done before and taken back is not repeated unasked.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import functools
import hashlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from takeback.config.policy import ASK, REFUSE
from takeback.domains import python
from takeback.errors import (
    ApprovalNeeded,
    DoneWithoutUndo,
    InProgress,
    NotDone,
    RepeatedEffect,
    TakebackError,
    UsageError,
)
from takeback.model.effects import COMPENSATING, DONE, FAILED, IRREVERSIBLE, UNKNOWN, Turn
from takeback.model.outside import BEGUN, Act, Inverse, NewAct, unknown_owner
from takeback.privacy import redact
from takeback.system import handed_over as handed
from takeback.system import processes
from takeback.system.handed_over import handed_over

if TYPE_CHECKING:
    from takeback.workspace import Workspace
    from takeback.workspace_locks import Guarded

    F = TypeVar("F", bound=Callable[..., Any])
    T = TypeVar("T")

Undo = str | Callable[..., Any]
REFERENCE = re.compile(r"\{(result|args)((?:\.[\w-]+)*)\}")
_MEANT = re.compile(r"\{\s*(\w+)[^{}]*\}")  # what may be meant as one
_ALIKE = 0.75  # how much of two names is the same where one is taken for the other, misspelled
_SUMMARY = 160  # characters
_LONGEST = 100_000  # characters of a result, or of an undo's arguments
_NO_UNDO = "no undo was given"
_UNSAID: Any = object()
_current: ContextVar[Recorder | None] = ContextVar("takeback_step", default=None)
_everywhere: list[Recorder] = []  # that are open in this process
_finders: list[Callable[[], Recorder | None]] = []  # of frameworks that have a context of their own


def current() -> Recorder | None:
    """What journals the calls made here: the innermost step, or the turn that a framework is in, if any."""
    if (here := _current.get()) is not None:
        return here
    return next(filter(None, (find() for find in _finders)), None)


def around_here() -> tuple[Recorder, ...]:
    """The same with those that it is inside of, innermost first."""
    return () if (here := current()) is None else (here, *here.around)


def at_work(workspace: Workspace | None = None) -> Recorder | None:
    """The same for a thread of its own too, which knows of no context: the one that it was started in, or that its work
    was submitted in. What goes on after that is over is still its work, while nothing else is open. Where nobody can
    tell, one that says so: the act may be of any of those, or of none."""
    known: list[Recorder] = [
        each for each in (current(), handed_over()) if each and workspace in (None, each.workspace)
    ]
    found = list(_everywhere if workspace is None else workspace.open_steps)
    for here in known:
        if (open_here := next((each for each in (here, *here.around) if each in found), None)) is not None:
            return open_here
        if here.is_told or not found:
            return here
    places = {id(each.workspace): each.workspace for each in (*found, *known)}
    return _NobodyKnows(places.popitem()[1], known) if len(places) == 1 else None


def _here() -> Recorder | None:
    """What a thread that is started here, or work that is submitted, belongs to."""
    return current() or handed_over()


def find_by(finder: Callable[[], Recorder | None]) -> None:
    """Lets a framework say what journals the calls that are made in its own context."""
    _finders.append(finder)


class Undoing(NamedTuple):
    """How a call is taken back, as its author declares it."""

    undo: Undo | None = None
    undo_args: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None = None
    key: str | Callable[..., str] = ""
    target: str = ""
    summary: str = ""
    depends_on: Iterable[str] = ()
    probe: Undo | None = None
    idempotent: bool = False
    not_done: tuple[type[BaseException], ...] = ()
    again: bool = False


class _Call(NamedTuple):
    """A call that was announced; or one that was done before, and is not done again."""

    fn: Callable[..., Any]
    act: Act
    how: Undoing
    undo: str
    probe: str
    arguments: Mapping[str, Any]  # by name and by position
    repeats: bool = False


class Recorder:
    """Journals calls in a workspace, each with what takes it back. Tools called inside `with` are journaled by it."""

    path = ""  # no step
    turn: Mapping[str, str] = {}  # the turn of a conversation that it is in: actor, turn and call, as acts have them
    around: Sequence[Recorder] = ()  # those that it is inside of
    was_alone = True  # no other one was open at the same time, but those around it and inside it
    journals_tools = True  # unless what a tool does is journaled around it
    is_told = False  # a framework says what is done in it, also when it is over

    def __init__(self, workspace: Workspace, actor: str = "") -> None:
        self.workspace = workspace
        self.actor = actor
        self.inside: set[Turn | str] = set()  # turns that began in it, and actors that vouched for files there
        self._token: Token[Recorder | None] | None = None

    def __enter__(self) -> Recorder:
        self._set_current()
        return self

    def __exit__(self, kind: object = None, error: BaseException | None = None, trace: object = None) -> None:
        self._unset_current()

    def _set_current(self) -> None:
        if self._token is not None:
            raise UsageError("it is open already", "make another one for another `with`")
        outer = current()
        self._take_turn(outer.turn if outer is not None and outer.workspace is self.workspace else {})
        self._enter(around_here())
        self._token = _current.set(self)

    def _take_turn(self, around: Mapping[str, str]) -> None:
        """It is in the turn that it is entered in, unless it has one of its own."""
        self.turn = around

    def _enter(self, around: Sequence[Recorder] = ()) -> None:
        handed.follow(_here)
        self.around = around
        self.path = self.path or next((o.path for o in around if o.workspace is self.workspace), "")
        for other in list(self.workspace.open_steps):
            if other is not self and other not in around and self not in other.around:
                other.was_alone = self.was_alone = False
        for known in (self.workspace.open_steps, _everywhere):
            if self not in known:
                known.append(self)

    def _leave(self) -> None:
        for known in (self.workspace.open_steps, _everywhere):
            if self in known:
                known.remove(self)

    def _unset_current(self) -> None:
        self._leave()
        if self._token is not None:
            with contextlib.suppress(ValueError):  # left in another context than it was entered in
                _current.reset(self._token)
            self._token = None

    def note_inside(self, whose: Turn | str) -> None:
        """What a turn, or an actor, does from now on is a part of it."""
        self.inside.add(whose)

    @property
    def by(self) -> dict[str, str]:
        return {"surface": "python", **self.owner}

    @property
    def owner(self) -> Mapping[str, str]:
        """Whose acts are that it journals: its actor's, or of the turn it is in."""
        return {"actor": self.actor} if self.actor else self.turn

    def do(
        self,
        fn: Callable[..., Any],
        *args: Any,
        undo: Undo | None = _UNSAID,
        undo_args: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None = _UNSAID,
        key: str = _UNSAID,
        target: str = _UNSAID,
        summary: str = _UNSAID,
        depends_on: Iterable[str] = _UNSAID,
        probe: Undo | None = _UNSAID,
        idempotent: bool = _UNSAID,
        not_done: tuple[type[BaseException], ...] = _UNSAID,
        again: bool = _UNSAID,
        **kwargs: Any,
    ) -> Any:
        """Calls a function, and journals that and how it is taken back.

        `undo` is called with `undo_args`, whose texts may refer to `{result.id}` and `{args.name}`; without any, with
        `result`. A `key` is done once: a second call, from any process, returns the recorded result; while the first is
        under way it raises InProgress. What was done before and taken back raises RepeatedEffect, unless `again`.
        `not_done` are exceptions that mean it did nothing. An argument that the function has too goes to both: bind
        its own with functools.partial where they differ."""
        given = (undo, undo_args, key, target, summary, depends_on, probe, idempotent, not_done, again)
        said: dict[str, Any] = {name: value for name, value in zip(Undoing._fields, given) if value is not _UNSAID}
        return self._do(fn, Undoing(**said), args, {**_own_of(fn, said), **kwargs})

    async def ado(self, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """The async twin: a coroutine function is awaited, another one runs in a thread, and is journaled when it is
        done also where whoever waits for it is cancelled. It takes what `do` takes."""
        said = {name: options.pop(name) for name in Undoing._fields if name in options}
        return await self._ado(fn, Undoing(**said), args, {**_own_of(fn, said), **options})

    def _do(self, fn: Callable[..., Any], how: Undoing, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        call = self._announce(fn, how, args, kwargs)
        if call.repeats:
            return _recorded_result(call.act)
        return self._run(call, args, kwargs)

    def _run(self, call: _Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            result = call.fn(*args, **kwargs)
            if inspect.iscoroutine(result):
                result.close()
                raise NotDone(f"{_name_of(call.fn)} is async", "await step.ado(…) instead")
        except BaseException as error:
            self._raised(call, error)
            raise
        return self._done(call, result)

    async def _ado(self, fn: Callable[..., Any], how: Undoing, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        announcing = asyncio.ensure_future(asyncio.to_thread(self._announce, fn, how, args, kwargs))
        try:
            call = await asyncio.shield(announcing)
        except asyncio.CancelledError:
            await asyncio.wait({announcing})
            if not announcing.exception() and not announcing.result().repeats:
                self._raised(announcing.result(), NotDone("it was cancelled before it began"))
            raise
        if call.repeats:
            return _recorded_result(call.act)
        if not inspect.iscoroutinefunction(call.fn):  # a thread goes on when whoever waits is cancelled, to its end
            return await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(self._run, call, args, kwargs)))
        try:
            result = await call.fn(*args, **kwargs)
        except BaseException as error:
            self._raised(call, error)  # not in a thread: whoever is cancelled may wait for nothing
            raise
        return await to_the_end(self._done, call, result)

    def _announce(
        self, fn: Callable[..., Any], how: Undoing, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> _Call:
        """Journals that it begins, once all that can be wrong with it has been looked at."""
        declared: Undoing | None = getattr(fn, "__takeback_undoing__", None)
        if declared is not None:  # a tool, given to do(): what is said here counts more
            said = {name: value for name, value in how._asdict().items() if value}
            fn, how = fn.__takeback_plain__, declared._replace(**said)  # type: ignore[attr-defined]
        if callable(how.key):
            how = how._replace(key=how.key(*args, **kwargs))
        if not isinstance(how.key, str) or redact.text(how.key) != how.key:
            raise UsageError("a key is text that is stored, without a secret in it", "use an id, such as order-17")
        for part in ("target", "summary"):
            if not isinstance(getattr(how, part), str):
                raise UsageError(
                    f"the {part} of an act is text, and this is of type {type(getattr(how, part)).__name__}",
                    f"bind an argument of the function's own: functools.partial({_name_of(fn)}, {part}=…)",
                )
        arguments = _arguments(fn, args, kwargs)
        name, digest = _name_of(fn), _digest(fn, arguments)
        undo = python.register(how.undo) if how.undo is not None else ""
        probe = python.register(how.probe) if how.probe is not None else ""
        if undo:
            _must_fit(undo, how)
            _must_refer(name, how, arguments)
        else:
            self._must_be_allowed(name)
        inverse = None
        if undo and not _needs_result(how):
            inverse = self._inverse(undo, probe, how, arguments, None)
        did: dict[str, Any] = {"call": name, "process": this_process(), **({"args": digest} if digest else {})}
        did |= {"undoing": _declared(undo, how)} if undo else {"left_to_do": _NO_UNDO}
        if undo and inverse is None and not callable(how.undo_args):
            given = {"result": "{result}"} if how.undo_args is None else how.undo_args
            later = {"function": undo, "kwargs": given, "probe": probe, "idempotent": how.idempotent}
            did |= waiting("python", {part: value for part, value in later.items() if value}, arguments)
        act = NewAct(
            "python",
            redact.text(how.summary or _shown(name, args, kwargs)),
            redact.text(how.target),
            inverse,
            COMPENSATING if inverse else UNKNOWN if undo else IRREVERSIBLE,
            did,
            tuple(how.depends_on),
            BEGUN,
            how.key,
            self.path,
        )
        found: list[Act] = []

        def instead(ledger: list[Act]) -> Act | None:
            if (before := done_before(ledger, act, how)) is not None:
                found.append(before)
            return before

        token = _current.set(self)  # whichever thread calls it
        try:
            recorded = self.workspace.record(act, self.by, instead=instead)
        finally:
            _current.reset(token)
        return _Call(fn, recorded, how, undo, probe, arguments, bool(found))

    def _must_be_allowed(self, name: str) -> None:
        """What cannot be undone is refused, or asked for elsewhere, if the owner's policy says so."""
        decision, source = self.workspace.settings.policy.decide("python", IRREVERSIBLE)
        if decision == REFUSE or (decision == ASK and source != "default"):
            raise ApprovalNeeded(
                f"{name} has no undo, and policy ({source}) does not let that be done unasked; nothing was done",
                "give it an undo, or change the policy in your own configuration",
            )

    def _inverse(self, undo: str, probe: str, how: Undoing, arguments: Mapping[str, Any], result: Any) -> Inverse:
        given = how.undo_args
        if callable(given):
            kwargs = given(result)
        elif given is None:
            kwargs = {"result": result}
        else:
            kwargs = filled(given, {"result": result, "args": arguments})
        if len(json.dumps(python.as_json(kwargs))) > _LONGEST:
            raise UsageError("the undo's arguments are too long to be kept", "pass an id, and look the rest up by it")
        more = {"probe": probe, "idempotent": how.idempotent}
        found = {name: value for name, value in more.items() if value}
        return self.workspace.outside("python").check(Inverse(python.OP, {"function": undo, "kwargs": kwargs, **found}))

    def _raised(self, call: _Call, error: BaseException) -> None:
        """It failed if it says so itself; otherwise nobody knows how far it came."""
        facts: dict[str, Any] = {"did": {"raised": redact.text(f"{type(error).__name__}: {error}"[:500])}}
        if isinstance(error, (NotDone, *call.how.not_done)):
            facts["state"] = FAILED
        try:
            self.workspace.acted(call.act.id, **facts)
        except TakebackError as trouble:
            error.add_note(f"takeback: that could not be journaled: {trouble.message}")

    def _done(self, call: _Call, result: Any) -> Any:
        facts: dict[str, Any] = {"state": DONE}
        if call.how.key:
            facts["did"] = kept_result(result)
        trouble: Exception | None = None
        if call.undo and call.act.inverse is None:
            try:
                inverse = self._inverse(call.undo, call.probe, call.how, call.arguments, result)
                facts.update(inverse=inverse, verdict=COMPENSATING)
            except Exception as error:  # the harness's own code fills it; what was done stays done
                trouble = error
                why = error.message if isinstance(error, TakebackError) else f"{type(error).__name__}: {error}"
                why = redact.text(f"its undo could not be filled in: {why}")
                facts.update(verdict=IRREVERSIBLE, did={**facts.get("did", {}), "left_to_do": why})
        self.workspace.acted(call.act.id, **facts)
        if trouble is not None:
            raise DoneWithoutUndo(
                f"{call.act.summary} was done, but {facts['did']['left_to_do']}",
                "go on with what it returned, which is in result, and mend undo_args",
                result,
            ) from trouble
        return result


class _NobodyKnows(Recorder):
    """Journals what is done where nobody can tell whose it is; it may be of those that are over, too."""

    is_told = True

    def __init__(self, workspace: Workspace, over: Iterable[Recorder]) -> None:
        super().__init__(workspace)
        self._over = [Turn(each.turn["actor"], each.turn["turn"]) for each in over if each.turn.get("turn")]

    @property
    def owner(self) -> Mapping[str, str]:
        return unknown_owner(self.workspace.open_turns().union(self._over))


async def to_the_end(work: Callable[..., T], *args: Any) -> T:
    """Runs it in a thread; whoever is cancelled waits for it all the same, since it is half done."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


def note_inside(workspace: Guarded, whose: Turn | str) -> None:
    """What a turn, or an actor, does from now on is a part of what is open here."""
    for each in around_here():
        if each.workspace is workspace:
            each.note_inside(whose)


def belonging(workspace: Workspace, act: NewAct, by: Mapping[str, str]) -> tuple[NewAct, Mapping[str, str]]:
    """An act as part of the step, or of the turn of a conversation, that it is recorded in."""
    here = at_work(workspace)
    if here is None or (act.step and isinstance(here, _NobodyKnows)):
        return act, by
    if not by.get("actor"):
        by = {**by, **here.owner}
    return act if act.step else act._replace(step=here.path), by


def done_before(ledger: list[Act], act: NewAct, how: Undoing) -> Act | None:
    """The act that stands for this one already, by its key. What was taken back is not repeated unasked."""
    for old in ledger if act.key else ():
        if old.key != act.key or old.state == FAILED:
            continue
        if old.did.get("call") != act.did["call"]:
            raise UsageError(f"the key {act.key!r} belongs to {old.summary}", "give every act a key of its own")
        if {"args"} <= old.did.keys() & act.did.keys() and old.did["args"] != act.did["args"]:
            raise UsageError(
                f"the key {act.key!r} belongs to {old.summary}, with other arguments than {act.summary}; nothing was "
                "done",
                "give every act a key of its own",
            )
        if old.undone_by:
            break
        if not _is_undone_so(old, act):
            raise UsageError(
                f"the key {act.key!r} belongs to {old.summary}, with another undo than is given here; nothing was done",
                f"give every act a key of its own; takeback show {old.id[:8]} says what takes that one back",
            )
        if _is_under_way(old):
            raise InProgress(
                f"{old.summary} is under way with the key {act.key!r}; nothing was done", "call again when it is over"
            )
        if old.shown_state == "unknown":
            raise TakebackError(
                f"{old.summary} was begun under the key {act.key!r}, and nobody knows whether it was done",
                f"find out, then {old.resolving}",
            )
        return old
    if how.again:
        return None
    for old in ledger:
        if old.state != FAILED and _is_equal(old, act):
            if old.undone_by:
                raise RepeatedEffect(
                    f"{old.summary} was done before and taken back by {old.undone_by[:8]}",
                    "do something else, or do it once more on purpose: step.do(…, again=True), which takes a tool too",
                )
            break
    return None


def _declared(undo: str, how: Undoing) -> str:
    """What tells one undo from another, as it was declared: its function, and where its arguments come from."""
    given = how.undo_args
    told = [undo, _name_of(given) if callable(given) else given]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()


def _is_undone_so(old: Act, new: NewAct) -> bool:
    """Whether an act has the undo that another one under its key is given; where that is given none, it has."""
    if "undoing" not in new.did or new.did["undoing"] == old.did.get("undoing"):
        return True
    is_older = "undoing" not in old.did and old.did.get("left_to_do") != _NO_UNDO  # recorded when that was not kept
    return is_older and _function_of(old) in ("", _function_of(new))


def _function_of(act: Act | NewAct) -> str:
    """What takes it back, as far as it is known."""
    kept = act.inverse.args if act.inverse is not None else act.did.get("undo", {}).get("args", {})
    return str(kept.get("function", ""))


def _is_under_way(act: Act) -> bool:
    """Whether whoever began it is still at it."""
    if act.state != BEGUN or "raised" in act.did or "process" not in act.did:
        return False
    pid, _, began = str(act.did["process"]).partition(".")
    is_known = pid.isdecimal() and began.isdecimal() and int(began) > 0
    return act.did["process"] == this_process() or (is_known and processes.started(int(pid)) == int(began))


def this_process() -> str:
    return f"{os.getpid()}.{processes.started(os.getpid())}"


def _own_of(fn: Callable[..., Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """What is said to `do` by a name that the function has too, and nobody has bound."""
    try:
        known = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # written in C, and silent about it; or no function at all, which is said later
        return {}
    bound = fn.keywords if isinstance(fn, functools.partial) else {}
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = {name for name, parameter in known.items() if parameter.kind in kinds and name not in bound}
    return {name: value for name, value in said.items() if name in own}


def _is_equal(old: Act, new: NewAct) -> bool:
    if old.domain != new.domain:
        return False
    if new.key and old.key == new.key:
        return True
    if "args" in new.did and old.did.get("call") == new.did["call"]:
        return bool(old.did.get("args") == new.did["args"])
    return bool(new.target) and (old.target, old.summary) == (new.target, new.summary)


def kept_result(result: Any) -> dict[str, Any]:
    """The result as it is returned to whoever calls with the same key; a secret in it is not kept."""
    try:
        kept = python.as_json(result)
    except UsageError as error:
        return {"no_result": error.message}
    if len(json.dumps(kept)) > _LONGEST:
        return {"no_result": "it was too long to be kept"}
    if redact.value(kept) != kept:
        return {"no_result": f"it held {redact.secret_at(kept) or 'a secret'}, which is not kept"}
    return {"result": kept}


def waiting(domain: str, args: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """An undo that needs the result of its act, as it is kept until that is known: with the arguments that it refers
    to. Nothing of it is kept that is no plain data, or holds a secret."""
    names = {
        path.split(".")[1] for kind, path in REFERENCE.findall(json.dumps(args, default=str)) if kind == "args" and path
    }
    try:
        kept = python.as_json(
            {
                "domain": domain,
                "args": dict(args),
                "given": {name: given[name] for name in sorted(names & given.keys())},
            }
        )
    except UsageError:
        return {}
    return {"undo": kept} if redact.value(kept) == kept and len(json.dumps(kept)) <= _LONGEST else {}


def _recorded_result(act: Act) -> Any:
    if "result" not in act.did:
        raise TakebackError(
            f"{act.summary} was done under the key {act.key!r}, and its result is not known: "
            f"{act.did.get('no_result', 'none was recorded')}",
            "let it return JSON without secrets, or look the result up where it was done",
        )
    return act.did["result"]


# -- references -------------------------------------------------------------------


def _needs_result(how: Undoing) -> bool:
    if how.undo_args is None or callable(how.undo_args):
        return True
    return any(found[0] == "result" for found in REFERENCE.findall(json.dumps(how.undo_args, default=str)))


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    """With every `{result.…}` and `{args.…}` replaced; one that stands alone keeps its type."""
    if isinstance(value, str):
        if alone := REFERENCE.fullmatch(value):
            return _looked_up(alone, known)
        return REFERENCE.sub(lambda found: str(_looked_up(found, known)), value)
    if isinstance(value, Mapping):
        return {name: filled(inner, known) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [filled(inner, known) for inner in value]
    return value


def _looked_up(reference: re.Match[str], known: Mapping[str, Any]) -> Any:
    value = known[reference[1]]
    for part in reference[2].split(".")[1:]:
        try:
            if isinstance(value, Mapping):
                value = value[part] if part in value else value[int(part)]
            elif isinstance(value, list | tuple):
                value = value[int(part)]
            elif part.startswith("_"):
                raise KeyError(part)
            else:
                value = getattr(value, part)
        except (KeyError, IndexError, ValueError, AttributeError):
            raise UsageError(f"{reference[0]} is not there", "see what the function returns, and name it so") from None
    return value


def _arguments(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What a function is called with, by name where its signature tells, and by position."""
    try:
        bound = inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{_name_of(fn)} cannot be called so: {error}", "nothing was done; mend the call") from error
    except ValueError:  # written in C, and silent about it
        return {**{str(n): value for n, value in enumerate(args)}, **kwargs}
    bound.apply_defaults()
    return {**{str(n): value for n, value in enumerate(args)}, **bound.arguments}


def _digest(fn: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """What tells one call of a function from another; empty if that cannot be told: a method, a lambda or a function
    inside another acts on more than its arguments."""
    if not inspect.isfunction(fn) or "<" in fn.__qualname__:
        return ""
    try:
        told = json.dumps({k: v for k, v in arguments.items() if not k.isdigit()}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return ""
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _name_of(fn: Callable[..., Any]) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return f"{getattr(fn, '__module__', None) or ''}:{getattr(fn, '__qualname__', None) or type(fn).__name__}"


def _shown(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    words = [*map(_brief, args), *(f"{k}={_brief(v)}" for k, v in kwargs.items())]
    told = f"{name.rpartition(':')[2]}({', '.join(words)})"
    return told if len(told) <= _SUMMARY else told[: _SUMMARY - 1] + "…"


def _brief(value: Any) -> str:
    plain = value is None or isinstance(value, str | int | float | bool | list | tuple | dict)
    return repr(value) if plain else f"<{type(value).__name__}>"


def _must_fit(undo: str, how: Undoing) -> None:
    """An undo that could never be called with its arguments is refused before anything is done."""
    function = python.registered(undo)
    if function is None or callable(how.undo_args):
        return
    names = how.undo_args if how.undo_args is not None else {"result": None}
    if why := python.mismatch(function, names):
        raise UsageError(
            f"{undo} does not take {', '.join(names) or 'no arguments'}: {why}",
            'name its arguments in undo_args, such as {"charge": "{result.id}"}',
        )


def _must_refer(name: str, how: Undoing, known: Iterable[str]) -> None:
    """The same of an undo that refers to an argument which the call does not have, or to nothing, misspelled."""
    names = set(known)
    given = {} if how.undo_args is None or callable(how.undo_args) else how.undo_args
    refuse_misspelled(name, given)
    for kind, path in REFERENCE.findall(json.dumps(given, default=str)):
        wanted = path.split(".")[1] if path else ""
        if kind == "args" and wanted and wanted not in names and not wanted.isdecimal():
            raise UsageError(
                f"the undo of {name} refers to {{args.{wanted}}}, and it has no argument of that name",
                f"it has {', '.join(sorted(n for n in names if not n.isdecimal())) or 'none'}",
            )


def refuse_misspelled(name: str, given: Mapping[str, Any]) -> None:
    """A text that looks like a reference and is none would be sent as it stands."""
    for found in _MEANT.finditer(json.dumps(dict(given), default=str)):
        meant = difflib.get_close_matches(found[1].lower(), ("result", "args"), 1, _ALIKE)
        if meant and not REFERENCE.fullmatch(found[0]):
            raise UsageError(
                f"the undo of {name} holds {found[0][:100]}, which refers to nothing",
                f"write {{{meant[0]}.name}}, with the names that lead there",
            )


# -- tools ------------------------------------------------------------------------


def _parameters(fn: Callable[..., Any]) -> list[str] | None:
    """The names of a function's arguments; None where it takes any, or nobody can tell."""
    try:
        found = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return None
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in found.values())
    return None if takes_any else list(found)


def _journal() -> Recorder | None:
    """What journals the call of a tool that is made here."""
    here = at_work()
    return here if here is not None and here.journals_tools else None


def tool(
    *,
    undo: Undo | None = None,
    undo_args: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None = None,
    key: str | Callable[..., str] = "",
    target: str = "",
    probe: Undo | None = None,
    idempotent: bool = False,
    not_done: tuple[type[BaseException], ...] = (),
) -> Callable[[F], F]:
    """A function whose calls are journaled with what takes them back, if made in a step or in `workspace.recording()`;
    anywhere else it is just called. The arguments mean what they mean for `step.do`."""
    how = Undoing(undo, undo_args, key, target, "", (), probe, idempotent, not_done)
    names = [python.register(name) for name in (undo, probe) if name is not None]
    if undo is not None:
        _must_fit(names[0], how)

    def decorate(fn: F) -> F:
        wrapper: Any
        if undo is not None and (known := _parameters(fn)) is not None:
            _must_refer(_name_of(fn), how, known)
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def acall(*args: Any, **kwargs: Any) -> Any:
                here = _journal()
                return await (fn(*args, **kwargs) if here is None else here._ado(fn, how, args, kwargs))

            wrapper = acall
        else:

            @functools.wraps(fn)
            def call(*args: Any, **kwargs: Any) -> Any:
                here = _journal()
                return fn(*args, **kwargs) if here is None else here._do(fn, how, args, kwargs)

            wrapper = call
        wrapper.__takeback_undoing__, wrapper.__takeback_plain__ = how, fn
        return wrapper  # type: ignore[no-any-return]

    return decorate
