"""All that a POST does, and what is kept of it for the pages that follow: plans by their hash, and what came of them.

Each opens a workspace of its own, by the settings of then, and says which page comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from takeback.errors import NotFound, UsageError
from takeback.show.timeline import Timeline
from takeback.surfaces.wording.take_backs import Asked
from takeback.workspace import Workspace

from . import proposals, results, settling
from .forms import Filled, one
from .live import Doing
from .proposals import Proposal
from .results import Result

TAKEBACK, MAIL = "a take-back", "a mail"  # what may be under way

_KEPT = 100  # plans and results
_PLANNED = ("undo", "redo", "rollback", "revert", "restore")

Next = tuple[str, ...]  # the page that comes next, as the steps of its address


class Changes:
    def __init__(self, timeline: Timeline, opened: Callable[[], Workspace]) -> None:
        self._timeline = timeline
        self._opened = opened
        self.doing = Doing()
        self._proposals: dict[str, Proposal] = {}
        self._results: dict[str, Result] = {}

    # -- what is kept ----------------------------------------------------------

    def has_plan(self, hash: str) -> bool:
        return hash in self._proposals

    def proposal(self, hash: str) -> Proposal:
        if (found := self._proposals.get(hash)) is None:
            raise NotFound(f"plan {hash[:12]} is not kept any more", "choose in the timeline what to take back, again")
        return found

    def result(self, id: str) -> Result | None:
        return self._results.get(id)

    # -- plans -----------------------------------------------------------------

    def plan(self, id: str, filled: Filled) -> Next:
        with self._opened() as workspace:
            proposal = proposals.propose(workspace, self._asked(filled))
        _keep(self._proposals, proposal.plan.hash, proposal)
        return "plan", proposal.plan.hash

    def _asked(self, filled: Filled) -> Asked:
        """What is to be planned: an item and how, or an earlier plan asked another way."""
        if again := one(filled, "again"):
            return proposals.otherwise(self.proposal(again).asked, filled)
        how, id = one(filled, "how"), one(filled, "item")
        if how not in _PLANNED:
            raise UsageError("nobody knows what to plan", "go back to the timeline and choose it there")
        if how in ("undo", "redo"):
            return Asked(how, ())
        if how == "restore":
            if not one(filled, "path"):
                raise UsageError("no file is named", "write its path as it is in the project, such as src/auth.py")
            return Asked(how, (id, one(filled, "path")))
        item = self._timeline.item(id)
        words = item.revert if how == "revert" else (item.rollback,)
        if not any(words):
            raise UsageError("there is nothing to take back in it", "choose another entry of the timeline")
        return Asked(how, tuple(words))

    def apply(self, id: str, filled: Filled) -> Next:
        proposal = self.proposal(id)
        with self.doing.begun(TAKEBACK, len(proposal.plan.taken)), self._opened() as workspace:
            workspace.told = self.doing.told
            outcome = proposals.carry_out(workspace, proposal, filled)
            result = results.of_plan(workspace, outcome)
        self._proposals.pop(id, None)
        return self._came(result, id)

    # -- what a person settles ---------------------------------------------------

    def resolve(self, id: str, filled: Filled) -> Next:
        said = one(filled, "said")
        with self._opened() as workspace:
            settling.must_be_as_seen(settling.resolving(workspace, id, said), filled)
            return self._came(settling.resolved(workspace, id, said, one(filled, "result")))

    def release(self, id: str, filled: Filled) -> Next:
        with self.doing.begun(MAIL, 0), self._opened() as workspace:
            settling.must_be_as_seen(settling.releasing(workspace, id), filled)
            return self._came(settling.released(workspace, id))

    def resume(self, id: str, filled: Filled) -> Next:
        abort = one(filled, "abort") == "yes"
        with self._opened() as workspace:
            matter = settling.resuming(workspace, abort)
            settling.must_be_as_seen(matter, filled)
            with self.doing.begun(TAKEBACK, matter.total):
                workspace.told = self.doing.told
                return self._came(settling.resumed(workspace, abort))

    def _came(self, result: Result, otherwise: str = "") -> Next:
        id = result.id or otherwise
        _keep(self._results, id, result)
        return "outcome", id

    # -- checkpoints -------------------------------------------------------------

    def checkpoint(self, id: str, filled: Filled) -> Next:
        with self._opened() as workspace:
            return "item", workspace.checkpoint(one(filled, "label").strip()).id

    def pin(self, id: str, filled: Filled) -> Next:
        with self._opened() as workspace:
            return "item", workspace.pin(one(filled, "item"), keep=one(filled, "keep") == "yes").id

    def label(self, id: str, filled: Filled) -> Next:
        with self._opened() as workspace:
            return "item", workspace.label(one(filled, "item"), one(filled, "label").strip()).id


def _keep(into: dict[str, Any], key: str, value: Any) -> None:
    """The newest ones."""
    into.pop(key, None)
    into[key] = value
    while len(into) > _KEPT:
        into.pop(next(iter(into)), None)
