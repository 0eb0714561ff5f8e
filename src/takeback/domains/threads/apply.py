"""Threads as steps: going back appends heads, until the thread's document is the goal. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from takeback.errors import TakebackError
from takeback.model.effects import DONE, FAILED, KEPT, Entry, Result, State, Step, same, state_of_thread, thread_of

if TYPE_CHECKING:
    from takeback.threads.threads import Threads


class ThreadStates:
    """The caller holds the store lock."""

    name = "state"
    joins = True

    def __init__(self, threads: Threads, read: Callable[[bytes], bytes], up_to: int | None = None) -> None:
        self.threads = threads
        self.read = read  # a blob's bytes
        self.up_to = up_to  # the row that is gone back to: of several checkpoints with one state, the newest by then

    def present(self, path: bytes) -> State:
        return state_of_thread(self.threads.document(thread_of(path)))

    def apply(
        self, steps: Sequence[Step], key: str, times: Mapping[bytes, Entry], again: bool = False
    ) -> Iterable[Result]:
        """Each is journaled as it is done: what a killed run did is found done by the next."""
        return [self._bring(step) for step in steps]

    def _bring(self, step: Step) -> Result:
        try:
            now = self.present(step.path)
            if same(now, step.goal):
                return Result(step.path, step.verdict, DONE)
            if not same(now, step.expected):
                return Result(step.path, step.verdict, KEPT, "changed since")
            document = self.read(step.goal.content) if step.goal is not None else b""
            self.threads.restore(thread_of(step.path), document, up_to=self.up_to)
            if not same(self.present(step.path), step.goal):
                return Result(step.path, step.verdict, FAILED, "it did not take")
        except TakebackError as error:
            return Result(step.path, step.verdict, FAILED, error.message)
        return Result(step.path, step.verdict, DONE)

    def sweep(self, steps: Sequence[Step], key: str) -> None:
        """Nothing is left behind: an append is whole, or was not."""
