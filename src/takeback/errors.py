"""What can go wrong, said so that the reader knows what to do next.

TakebackError            exit 1   it failed; nothing was lost
├── UsageError           exit 2   the request makes no sense
│   └── DoneWithoutUndo  exit 2   a call was done, and its undo could not be made from its result
├── NotFound             exit 2   no such checkpoint, effect, plan or path
├── ApprovalNeeded       exit 4   a person has to say yes
│   ├── Stale            exit 4   the plan is no longer what the same request would do
│   └── CredentialNeeded exit 4   a person has to set a token, a password or a server
├── Interrupted          exit 4   a person stopped a take-back: only a person says how it goes on
├── NoWorkspace          exit 10  nothing is protected here
├── Locked               exit 11  another process is at work
├── Damaged              exit 1   the store does not hold what its records say
├── Moved                exit 1   another was faster: the thread's head is not the one that was seen
├── NotDone              exit 1   raised by a harness's own function: it did nothing
├── RepeatedEffect       exit 1   the same thing was done before, and taken back
├── InProgress           exit 1   the same thing is being done just now
└── Off                  exit 1   takeback is turned off
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from takeback.apply.results import Finished


class TakebackError(Exception):
    """A failure that a person can act on: what happened, to what, and what to do next."""

    exit_code = 1
    finished: Finished | None = None  # what came of an interrupted take-back that was finished before it

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} → {self.hint}" if self.hint else self.message


class UsageError(TakebackError):
    exit_code = 2


class NotFound(UsageError):
    pass


class DoneWithoutUndo(UsageError):
    """A call was done, and is recorded as irreversible: its undo could not be filled in. Carries what it returned."""

    def __init__(self, message: str, hint: str = "", result: Any = None) -> None:
        super().__init__(message, hint)
        self.result = result


class ApprovalNeeded(TakebackError):
    exit_code = 4


class Stale(ApprovalNeeded):
    """Carries the steps that differ, as (target, was, is)."""

    def __init__(self, message: str, hint: str = "", differing: tuple[tuple[str, str, str], ...] = ()) -> None:
        super().__init__(message, hint)
        self.differing = differing


class CredentialNeeded(ApprovalNeeded):
    """A secret that only the owner can give is missing, expired or refused. Says which setting it is."""


class Interrupted(TakebackError):
    """A take-back that a person stopped waits to be finished or gone back from; nothing else is taken back before."""

    exit_code = 4


class NoWorkspace(TakebackError):
    exit_code = 10


class Locked(TakebackError):
    exit_code = 11


class Damaged(TakebackError):
    pass


class Moved(TakebackError):
    """A thread's head is not the one that whoever saves went on from."""


class NotDone(TakebackError):
    """For a harness's functions to raise: nothing was done, and it may be tried again."""


class RepeatedEffect(TakebackError):
    """What is about to be done was done before and taken back; `again=True` does it on purpose."""


class InProgress(TakebackError):
    """What has this key is under way: whoever began it has not come back yet."""


class Off(TakebackError):
    pass
