"""Acts beyond the files as steps of a take-back: each inverse is sent at most once.

never sent ─────────────────────────────► run
sent, and no answer came ─► probe ─► it took effect: done
                                 └─► it did not: run
                                 └─► who knows ─► the recorder vouched for its key: run again, with the same one
                                              └─► unknown, until a person says so
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..acts import BEGUN, Act, Answer, Outside
from ..effects import DONE, FAILED, UNKNOWN, Entry, Result, State, Step
from ..errors import TakebackError
from ..typed import Any


class Acts:
    """One outside domain, as the executor sees it."""

    joins = False

    def __init__(self, domain: Outside, act_of: Callable[[bytes], Act]) -> None:
        self.name = domain.name
        self.evidence: dict[str, Mapping[str, Any]] = {}  # what the other side answered, by act
        self._domain = domain
        self._act_of = act_of

    def present(self, path: bytes) -> State:
        return self._act_of(path).entry

    def apply(
        self, steps: Sequence[Step], key: str, times: Mapping[bytes, Entry], again: bool = False
    ) -> Iterator[Result]:
        for step in steps:
            act = self._act_of(step.path)
            answer = self._take_back(act, again)
            self.evidence[act.id] = answer.evidence
            yield Result(step.path, step.verdict, answer.result, answer.note)

    def settle(self, step: Step) -> Result:
        """What became of an inverse that was sent, without ever sending it again."""
        act = self._act_of(step.path)
        assert act.inverse is not None
        took = self._domain.probe(act.inverse)
        if took is None:
            return Result(step.path, step.verdict, UNKNOWN, _NOBODY_KNOWS)
        return Result(step.path, step.verdict, DONE if took else FAILED, "its probe says so")

    def sweep(self, steps: Sequence[Step], key: str) -> None:
        """Nothing lies about."""

    def _take_back(self, act: Act, again: bool) -> Answer:
        assert act.inverse is not None
        try:
            if again or act.in_doubt or act.state == BEGUN:
                took = self._domain.probe(act.inverse)
                if took:
                    return Answer(DONE, "it had taken effect already, as its probe says")
                if took is None and not self._domain.may_repeat(act.inverse, act.sent_at):
                    return Answer(UNKNOWN, _NOBODY_KNOWS)
            return self._domain.run(act.inverse, key_of(act))
        except TakebackError as error:  # refused before anything was sent
            return Answer(FAILED, error.message)


def key_of(act: Act) -> str:
    """The same for every attempt at the same inverse, from any process."""
    return f"takeback-{act.id}"


_NOBODY_KNOWS = "it was sent, and no answer came; a person has to find out"
