"""Gemini CLI's file of a session: how a call ended of which its hooks tell nothing. It holds the calls that are over:

    {"type": "gemini", … "toolCalls": [{"name": …, "args": …, "status": "cancelled", "timestamp": …, "result": …}]}

Calls have names there that its hooks never tell, so that tool and input have to say which it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from takeback.agents.dialect import is_by_content, table, text
from takeback.journal.brackets import End

from . import transcripts

_CALLS = '"toolCalls"'
_DENIED = "User denied execution"


def end_of(path: str, key: str, since: float) -> End | None:
    """How the call ended that was announced under that key at some moment; None if nothing is said of its end."""
    found: End | None = None
    for line in transcripts.told(path, _CALLS):
        calls = line.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and is_by_content(key, text(call, "name"), table(call, "args")):
                at = transcripts.moment(call.get("timestamp"))
                found = _end(call, at) if at >= since else found
    return found


def _end(call: Mapping[str, Any], at: float) -> End:
    denied = _DENIED in json.dumps(call.get("result"))
    return End(at, refused=denied and text(call, "status") == "cancelled", done=text(call, "status") == "success")
