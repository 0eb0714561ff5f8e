"""What a thread wants done on the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.message import Message


class Later(Message):
    """A call for the thread that draws."""

    def __init__(self, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__()
        self.call = call
        self.args = args
