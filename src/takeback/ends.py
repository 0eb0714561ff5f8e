"""What became of a call that is open: what its agent has written down about it, else whether its process still runs.

An agent tells most ends by an event. Of a call that a person refused or interrupted some tell nothing, but write it
into the transcript of the session; and one that was killed can tell nothing at all.
"""

from __future__ import annotations

import os
import time

from .brackets import Bracket, End
from .typed import Any

_WRITING = 0.4  # seconds until an agent has written down what it has already acted upon
_AGAIN = 0.05


def end_of(bracket: Bracket) -> End | None:
    """None where the call is at work, as far as anybody can tell."""
    return _written(bracket) or (End() if bracket.caller.is_gone else None)


def end_of_left(bracket: Bracket) -> End:
    """The same of a call whose session has gone on: it is over, and may just be being written down."""
    until = time.monotonic() + (_WRITING if os.path.exists(bracket.call.transcript) else 0)
    while (end := _written(bracket)) is None:
        if bracket.caller.is_gone or time.monotonic() > until:
            return End()
        time.sleep(_AGAIN)
    return end


def _written(bracket: Bracket) -> End | None:
    if not bracket.call.transcript:
        return None
    from . import agents

    if bracket.caller.agent not in agents.AGENTS:
        return None
    reader: Any = agents.load(bracket.caller.agent)
    found: End | None = reader.end_of(bracket.call.transcript, bracket.call.key, bracket.prompted)
    return found
