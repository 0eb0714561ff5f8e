"""What each tool answers with, as JSON Schema: published as its outputSchema, so that a client can rely on it.

Objects only grow, as the command line's --json does: what is named here is there, and there may be more. Every schema
takes a failure too, since clients hold all structured content against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _object(must: Mapping[str, Schema], may: Mapping[str, Schema] = {}) -> Schema:
    return {"type": "object", "properties": {**must, **may}, "required": list(must)}


def _answer(must: Mapping[str, Schema], may: Mapping[str, Schema] = {}) -> Schema:
    """What a tool answers with; or a failure instead, which has none of it."""
    properties = {**must, **may, "error": ERROR}
    return {
        "type": "object",
        "properties": properties,
        "anyOf": [{"required": list(must)}, {"required": ["error"]}],
    }


def _about(schema: Schema, words: str) -> Schema:
    return {**schema, "description": words}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}
TABLE: Schema = {"type": "object"}
ID = _about(TEXT, "An id; its beginning is enough to name it")
MOMENT = _about(NUMBER, "Seconds since 1970")
ORDINAL = _or_null({"type": "integer"})
FOLLOWING = _about(_or_null(COUNT), "The offset to go on with; null: that was all")
PATH = TEXT
WHY = _list(_object({"path": PATH, "why": TEXT}))

ERROR = _about(
    _object({"message": TEXT, "hint": TEXT, "code": {"type": "integer"}}, {"differing": _list(TABLE)}),
    "What went wrong and what to do next; only with isError",
)
CHECKPOINT = _object(
    {"id": ID, "label": TEXT, "at": MOMENT, "actor": TEXT, "named": FLAG, "paths": COUNT, "partial": WHY},
    {"number": ORDINAL, "pinned": FLAG, "over_budget": TEXT},
)
ROW = _object(
    {"id": ID, "kind": TEXT, "at": MOMENT, "actor": TEXT, "summary": TEXT, "live": FLAG, "paths": _list(PATH)},
    {
        "number": ORDINAL,
        "label": TEXT,
        "domain": TEXT,
        "domains": _list(TEXT),
        "verdict": TEXT,
        "state": TEXT,
        "named": FLAG,
        "pinned": FLAG,
        "partial": FLAG,
        "uncertain": ANY,
        "redone": TEXT,
        "turn": _or_null(ID),
        "session": _or_null(TEXT),
        "call": _or_null(ID),
        "turns": _list(ID),
        "calls": _list(ID),
        "prompt": TEXT,
        "cut": ANY,
    },
)
FILE = _object(
    {"path": PATH, "status": TEXT, "added": COUNT, "removed": COUNT, "hunks": _list(_object({"lines": _list(TEXT)}))},
    {"binary": FLAG, "note": TEXT},
)
EFFECT = _object(
    {"id": ID, "domain": TEXT, "state": TEXT, "summary": TEXT, "verdict": TEXT},
    {
        "number": ORDINAL,
        "target": TEXT,
        "at": MOMENT,
        "by": TABLE,
        "inverse": _about(_or_null(TEXT), "What would take it back"),
        "undoes": _or_null(ID),
        "undone_by": _or_null(ID),
        "depends_on": _list(ID),
    },
)
STEP = _object({"domain": TEXT, "target": TEXT, "verdict": TEXT, "summary": TEXT, "effect": _or_null(ID), "note": TEXT})
DISTANCE = _object({"state": _list(TABLE), "files": COUNT}, {"outside": COUNT, "command": TEXT})
RUNNING = _object(
    {"id": ID, "agent": TEXT, "session": TEXT, "turn": TEXT, "tool": TEXT, "summary": TEXT, "may_wait": FLAG}
)
PLAN = _object(
    {"id": TEXT, "hash": TEXT, "verb": TEXT, "to": TEXT, "steps": _list(STEP), "totals": TABLE, "left": _list(PATH)},
    {
        "own": _list(PATH),
        "distance": DISTANCE,
        "asks": TABLE,
        "forced": _about(_list(PATH), "Where work of others goes too, by force"),
        "at_target": _or_null(FLAG),
        "running": _about(_list(RUNNING), "Calls at work: what they do after this stays"),
    },
)
RESULT = _object({"target": TEXT, "verdict": TEXT, "result": TEXT, "note": TEXT, "domain": TEXT}, {"effect": ID})
APPROVAL = _object({"needed": FLAG, "run": _about(_list(TEXT), "What a person runs on a terminal")})
DRAFT = _object({"id": ID, "state": TEXT, "subject": TEXT, "to": _list(TEXT), "is_due": FLAG})
ORIGIN = _or_null(_object({"thread_id": TEXT, "checkpoint_id": ID}))
STATE_CHECKPOINT: Mapping[str, Schema] = {
    "thread_id": TEXT,
    "checkpoint_id": ID,
    "checkpoint_ns": TEXT,
    "parent_checkpoint_id": _or_null(ID),
    "summary": TEXT,
    "agent": TEXT,
    "source": TEXT,
    "created_at": TEXT,
    "at": MOMENT,
    "seq": COUNT,
    "values": _list(TEXT),
    "blob_id": TEXT,
    "workspace_checkpoint": _or_null(ID),
    "restored_from": _or_null(ID),
    "rolled_back_from": _or_null(ID),
    "forked_from": ORIGIN,
}
HANDOFF: Mapping[str, Schema] = {
    "handoff_id": ID,
    "thread_id": TEXT,
    "checkpoint_id": ID,
    "to_agent": TEXT,
    "agent": TEXT,
    "note": TEXT,
    "created_at": TEXT,
    "adopted_by": _or_null(TEXT),
    "adopted_as": ORIGIN,
}
_LOADED: Mapping[str, Schema] = {
    **STATE_CHECKPOINT,
    "metadata": TABLE,
    "state": _about(_or_null(TABLE), "The state; null where it is too large to answer with"),
    "bytes": COUNT,
}
_LOADED_TOO: Mapping[str, Schema] = {"state_left_out": TEXT, "sizes": TABLE, "handoff_id": ID}

_STATUS: Mapping[str, Schema] = {
    "checkpoint": _or_null(CHECKPOINT),
    "changes": _list(_object({"path": PATH, "change": TEXT, "actor": TEXT}, {"turns": _list(ID)})),
    "uncovered": WHY,
    "lacking": WHY,
    "held_back": _list(PATH),
    "ignored": _list(TEXT),
    "interrupted": TEXT,
    "outside": TABLE,
    "due": COUNT,
    "store": _object({"path": TEXT, "bytes": COUNT}),
}
_STATUS_TOO: Mapping[str, Schema] = {
    "stopped": ANY,
    "under_way": TEXT,
    "git": _list(TEXT),
    "state": _list(_object({"thread": TEXT, "ahead": COUNT})),
    "turns": _list(TABLE),
    "at_work": _list(TABLE),
    "budget": _or_null(_object({"over": COUNT, "over_bytes": COUNT, "until": _or_null(MOMENT)})),
}
_BACK: Mapping[str, Schema] = {"plan": PLAN, "applied": FLAG}
_BACK_TOO: Mapping[str, Schema] = {
    "root": TEXT,
    "id": TEXT,
    "number": ORDINAL,
    "results": _list(RESULT),
    "counts": TABLE,
    "left": _list(PATH),
    "own": _list(PATH),
    "distance": DISTANCE,
    "at_target": _or_null(FLAG),
    "turns": _list(TABLE),
    "finished_earlier": FLAG,
    "whole": _about(FLAG, "Whether every step of the plan was done"),
    "approved": FLAG,
    "approval": APPROVAL,
}
_THREAD_BACK_TOO: Mapping[str, Schema] = {
    "thread_id": TEXT,
    "checkpoint_id": ID,
    "parent_checkpoint_id": _or_null(ID),
    "restored_from": ID,
    "rolled_back_from": _or_null(ID),
    "blob_id": TEXT,
    "workspace_checkpoint": _or_null(ID),
    "nothing_to_take_back": FLAG,
}
_SHOWN_TOO: Mapping[str, Schema] = {
    **ROW["properties"],
    "files": _list(FILE),
    "tree": _list(_object({"path": PATH, "kind": TEXT, "size": ANY})),
    "lacking": WHY,
    "took": _list(TABLE),
    "already": _about(_list(TABLE), "Of a take-back: what was already as it should be, and was not touched"),
    "kept": _list(TABLE),
    "not_done": _about(_list(TABLE), "Of a take-back: what it was to do and did not, and why"),
    "undone_by": ANY,
    "threads": _list(TABLE),
    "asked": _about(_or_null(TABLE), "Of an agent's turn: what it was asked"),
    "made": _about(_list(TABLE), "Of an agent's turn: its calls"),
    "effects": _list(ROW),
    "asked_for": _about(_list(ROW), "Of an agent's turn or call: the take-backs that it asked for"),
    "refused": _about(_list(ROW), "Of an agent's turn: the calls that the gate refused before they began"),
    "target": TEXT,
    "by": TABLE,
    "did": TABLE,
    "inverse": _or_null(TEXT),
    "probe": ANY,
    "depends_on": _list(ANY),
    "carries": _list(ANY),
    "undos": _list(TABLE),
}
_PAGED: Mapping[str, Schema] = {"next_offset": FOLLOWING, "total": COUNT}
_TAKE_BACKS = ("rollback", "undo", "redo", "revert", "restore", "compensate", "plan", "apply")
_RECORDS = ("record_http", "record_reversal", "record_note")
_DRAFT_TOO: Mapping[str, Schema] = {"effect": _object({"id": ID}), "released": FLAG, "approval": APPROVAL}

OF: Mapping[str, Schema] = {  # tool → what it answers with
    "init": _answer({"root": TEXT, "created": FLAG, "checkpoint": _or_null(CHECKPOINT)}),
    "checkpoint": _answer({"checkpoint": CHECKPOINT}),
    "track": _answer({"paths": _list(PATH), "changed": _list(PATH), "lacking": WHY}),
    "status": _answer(_STATUS, _STATUS_TOO),
    "diff": _answer(
        {"a": CHECKPOINT, "b": _or_null(CHECKPOINT), "files": _list(FILE), "added": COUNT, "removed": COUNT, **_PAGED}
    ),
    "log": _answer({"rows": _list(ROW), **_PAGED}),
    "show": _answer({"id": ID, "kind": TEXT, "at": MOMENT, **_PAGED}, _SHOWN_TOO),
    "effects": _answer({"effects": _list(EFFECT), **_PAGED}),
    **dict.fromkeys(_TAKE_BACKS, _answer(_BACK, {**_BACK_TOO, **_THREAD_BACK_TOO})),
    **dict.fromkeys(_RECORDS, _answer({"effect": EFFECT})),
    "email_stage": _answer({"draft": DRAFT}, _DRAFT_TOO),
    "email_release": _answer({"draft": DRAFT}, _DRAFT_TOO),
    "email_cancel": _answer({"draft": DRAFT}, _DRAFT_TOO),
    "email_pending": _answer({"drafts": _list(DRAFT)}),
    "thread_save": _answer(STATE_CHECKPOINT),
    "thread_fork": _answer(STATE_CHECKPOINT),
    "thread_load": _answer(_LOADED, _LOADED_TOO),
    "thread_resume": _answer(_LOADED, _LOADED_TOO),
    "thread_adopt": _answer(_LOADED, _LOADED_TOO),
    "thread_rollback": _answer(_BACK, {**_BACK_TOO, **_THREAD_BACK_TOO}),
    "thread_handoff": _answer(HANDOFF),
    "thread_list": _answer(
        {"handoffs": _list(_object(HANDOFF))},
        {
            "threads": _list(_object({"thread_id": TEXT, "checkpoint_id": ID, "checkpoints": COUNT})),
            "thread_id": TEXT,
            "checkpoints": _list(_object(STATE_CHECKPOINT, {"forks": _list(ANY), "head": FLAG})),
            "next_checkpoint_id": _or_null(ID),
        },
    ),
    "thread_diff": _answer(
        {
            "thread_id": TEXT,
            "from_checkpoint_id": ID,
            "to_checkpoint_id": ID,
            "differences": _list(_object({"path": TEXT, "change": TEXT, "before": ANY, "after": ANY})),
            "total": COUNT,
        }
    ),
    "thread_search": _answer(
        {"query": TEXT, "found": _list(_object({**STATE_CHECKPOINT, "where": TEXT, "excerpt": TEXT}))}
    ),
    "thread_verify": _answer(
        {
            "ok": FLAG,
            "failed": COUNT,
            "steps": _list(_object({"thread_id": TEXT, "checkpoint_id": TEXT, "result": {"enum": ["PASS", "FAIL"]}})),
            "total": COUNT,
        }
    ),
}
