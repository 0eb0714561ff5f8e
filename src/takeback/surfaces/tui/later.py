"""What a thread wants done on the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump


class Later(Message, bubble=False):
    """A call for the thread that draws."""

    def __init__(self, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__()
        self.call = call
        self.args = args


class HasThreads(MessagePump):
    """A part of the screen that works in threads."""

    def later(self, call: Callable[..., Any], *args: Any) -> None:
        """From a thread: done when the screen has time for it, and not at all once this part has gone. The thread
        never waits, as it may be in the middle of a take-back."""
        self.post_message(Later(call, args))

    def on_later(self, message: Later) -> None:
        if self.is_there:
            message.call(*message.args)

    @property
    def is_there(self) -> bool:
        """Whether there is still something to draw on."""
        return self.is_running
