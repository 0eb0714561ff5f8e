"""What a model says: some text, some tools to use, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Use(NamedTuple):
    """A tool, as the agent calls it."""

    name: str
    input: dict[str, Any] | str  # text: what Codex calls a custom tool
    space: str = ""  # where Codex keeps the tools of an MCP server


class Turn(NamedTuple):
    text: str = ""
    uses: Sequence[Use] = ()
    meanwhile: Callable[[], object] | None = None  # what happens in the world before the model answers
