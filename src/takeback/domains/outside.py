"""Acts beyond the files as steps of a take-back: each inverse is sent at most once.

never sent ─────────────────────────────► run
sent, and no answer came ─► probe ─► it took effect: done
                                 └─► it did not: run
                                 └─► who knows ─► the recorder vouched for its key: run again, with the same one
                                              └─► unknown, until a person says so

What is in doubt stays so until something proves otherwise: neither a probe that cannot be sent nor a refusal of the
second attempt says what became of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from takeback.errors import TakebackError
from takeback.model.effects import DONE, FAILED, UNKNOWN, Entry, Result, State, Step
from takeback.model.outside import BEGUN, NOBODY_KNOWS, Act, Answer, Outside
from takeback.privacy import redact


class Acts:
    """One outside domain, as the executor sees it."""

    joins = False

    def __init__(
        self,
        name: str,
        load: Callable[[], Outside],
        act_of: Callable[[bytes], Act],
        environ: Mapping[str, str] = {},
    ) -> None:
        self.name = name
        self.evidence: dict[str, Mapping[str, Any]] = {}  # what the other side answered, by act
        self.earlier: dict[str, str] = {}  # what became of earlier attempts that were in doubt, by act
        self.unsent: set[str] = set()  # acts whose inverse was not sent this time
        self._load = load  # it may be gone from this machine: then only its own steps fail
        self._act_of = act_of
        self._environ = environ

    def present(self, path: bytes) -> State:
        return self._act_of(path).entry

    @property
    def runs_code(self) -> bool:
        """Whether its inverses are code that runs here: then what moved in the tree meanwhile is taken to be theirs."""
        try:
            return bool(getattr(self._load(), "runs_code", False))
        except Exception:  # a domain may be anybody's; one that cannot be loaded has run nothing
            return False

    def apply(
        self, steps: Sequence[Step], key: str, times: Mapping[bytes, Entry], again: bool = False
    ) -> Iterator[Result]:
        for step in steps:
            act = self._act_of(step.path)
            answer = self._take_back(act, again)
            secrets = redact.values_of(act.inverse and act.inverse.args, self._environ)
            self.evidence[act.id] = redact.value(answer.evidence, secrets)
            yield Result(step.path, step.verdict, answer.result, redact.text(answer.note, secrets))

    def settle(self, step: Step) -> Result:
        """What became of an inverse that was sent, without ever sending it again."""
        act = self._act_of(step.path)
        assert act.inverse is not None
        try:
            took = self._load().probe(act.inverse)
        except Exception as error:  # a domain may be anybody's
            secrets = redact.values_of(act.inverse.args, self._environ)
            return Result(step.path, step.verdict, UNKNOWN, redact.text(_told(error), secrets))
        if took is None:
            return Result(step.path, step.verdict, UNKNOWN, NOBODY_KNOWS)
        return Result(step.path, step.verdict, DONE if took else FAILED, "its probe says so")

    def sweep(self, steps: Sequence[Step], key: str) -> None:
        """Nothing lies about."""

    def _take_back(self, act: Act, again: bool) -> Answer:
        assert act.inverse is not None
        in_doubt = again or bool(act.in_doubt) or act.state == BEGUN
        if not again:  # else the same attempt may have sent it before it was interrupted
            self.unsent.add(act.id)
        try:
            domain = self._load()
            if in_doubt:
                took = domain.probe(act.inverse)
                if took is not None:
                    self.earlier[act.id] = DONE if took else FAILED
                if took:
                    return Answer(DONE, "it had taken effect already, as its probe says")
                vouched = act.state != BEGUN and domain.may_repeat(act.inverse, act.sent_at)  # for the inverse alone
                if took is None and not vouched:
                    return Answer(UNKNOWN, NOBODY_KNOWS if act.in_doubt or again else _NOTHING_TOLD)
                in_doubt = took is None
            self.unsent.discard(act.id)
            answer = domain.run(act.inverse, key_of(act))
        except TakebackError as error:  # refused before anything was sent
            if not again:
                self.unsent.add(act.id)
            return Answer(UNKNOWN if in_doubt else FAILED, error.message)
        except Exception as error:  # a domain may be anybody's, and it may have sent something
            return Answer(UNKNOWN, _told(error))
        if in_doubt and answer.result == DONE:  # with the same key both are one, whichever of them it was
            self.earlier[act.id] = DONE
        if answer.result == FAILED and in_doubt:  # that proves nothing about the attempt before
            return answer._replace(result=UNKNOWN)
        return answer if answer.result in (DONE, FAILED) else answer._replace(result=UNKNOWN)


def key_of(act: Act) -> str:
    """The same for every attempt at the same inverse, from any process."""
    return f"takeback-{act.id}"


def _told(error: Exception) -> str:
    return error.message if isinstance(error, TakebackError) else f"its domain failed: {type(error).__name__}: {error}"


_NOTHING_TOLD = "nobody knows whether it happened, and its probe cannot tell; nothing was sent"
