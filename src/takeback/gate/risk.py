"""What a call would do that cannot be taken back."""

from __future__ import annotations

from typing import NamedTuple


class Risk(NamedTuple):
    """Something that cannot be taken back, or not by takeback."""

    kind: str  # a name of [policy.calls]; "own" is always refused
    what: str  # the part of the call that does it
    why: str  # one sentence
    undo: str = ""  # what would take it back, as far as can be said
    refuse: bool = False  # whatever the policy says
    outside: tuple[str, ...] = ()  # paths outside the workspace that it writes
    request: str = ""  # the method and URL, where it is a request to a server
    times: int = 1  # how often the call sends it, in plain sight
