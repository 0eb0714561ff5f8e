"""The nouns of threads as frozen values: a state checkpoint, one to be put, what a task wrote, what was handed over."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from hashlib import sha256
from shlex import quote
from typing import Any, NamedTuple


class StateCheckpoint(NamedTuple):
    """The state of one namespace of a thread at one moment."""

    seq: int
    thread: str
    ns: str
    id: str
    parent: str
    at: float
    summary: str
    agent: str
    source: str  # save, langgraph, conversation, rollback, fork, copy, adopt
    meta: Mapping[str, Any]
    refs: Mapping[str, str]
    codec: str  # how its values read: "json", or "typed" (a type's name, NUL, bytes of that type)
    identity: bytes  # of the state alone: equal means the same state
    workspace_checkpoint: str = ""  # the newest checkpoint of the files at that moment
    restored_from: str = ""  # the checkpoint that was gone back to
    forked_from: tuple[str, str] | None = None  # thread and checkpoint
    run: str = ""
    absent: bool = False  # rolled back to before this namespace was there
    blob: str | None = None  # which holds its values beyond this machine, if they go there; empty where none do
    more: Mapping[str, Any] = {}  # what besides the values is part of its identity
    began: int = 0  # the newest row of its moment in the world, where its own was written later

    @property
    def rolled_back_from(self) -> str:
        """The head that was left, where going back made this one."""
        return self.parent if self.restored_from else ""

    @property
    def blob_id(self) -> str:
        """What names the stored state: the newest blob beyond this machine that holds values of it, empty where none
        does; or its own hash, where threads are kept here."""
        return self.identity.hex() if self.blob is None else self.blob


class NewState(NamedTuple):
    """A state checkpoint to be put. A value is bytes, or the reference of an earlier checkpoint's, unchanged."""

    thread: str
    ns: str
    id: str  # empty: one is made
    parent: str
    values: Mapping[str, bytes | str]
    meta: Mapping[str, Any] = {}
    codec: str = "json"
    source: str = "save"
    summary: str = ""
    agent: str = ""
    run: str = ""
    part_of_identity: Mapping[str, Any] = {}  # what besides the values tells two states apart
    restored_from: str = ""
    forked_from: tuple[str, str] | None = None
    expect_head: str | None = None  # the head that the caller saw; another one now: Moved
    absent: bool = False
    blob: str | None = None  # as of the state that it is once more
    began: int = 0


class Write(NamedTuple):
    """What one task wrote to one channel, before the next checkpoint takes it up."""

    idx: int
    channel: str
    data: bytes
    task: str
    task_path: str = ""


class ThreadSeen(NamedTuple):
    """A thread, as it is listed."""

    thread: str
    head: StateCheckpoint
    checkpoints: int
    namespaces: tuple[str, ...]
    forked_from: tuple[str, str] | None
    created: float


class StateDifference(NamedTuple):
    path: str  # messages[3].content
    change: str  # added, removed, changed
    before: Any
    after: Any


class Found(NamedTuple):
    checkpoint: StateCheckpoint
    where: str  # summary, or the name of a value
    excerpt: str


class Handoff(NamedTuple):
    """A state checkpoint that one agent passes to another."""

    id: str
    thread: str
    checkpoint: str
    to_agent: str
    agent: str
    note: str
    at: float
    adopted_by: str = ""
    adopted_as: tuple[str, str] | None = None  # thread and checkpoint


class Checked(NamedTuple):
    """What verify found of one state checkpoint; empty `why`: it holds."""

    seq: int
    thread: str
    ns: str
    id: str
    why: str = ""

    @property
    def ok(self) -> bool:
        return not self.why


_json = json.JSONEncoder(sort_keys=True).encode


def identity_of(new: NewState, refs: Mapping[str, str]) -> bytes:
    told = [new.codec, sorted(refs.items()), new.part_of_identity, new.absent]
    return sha256(_json(told).encode()).digest()


def state_of(seq: int, at: float, body: Mapping[str, Any]) -> StateCheckpoint:
    forked = body.get("forked_from")
    return StateCheckpoint(
        seq,
        body["thread"],
        body["ns"],
        body["id"],
        body["parent"],
        at,
        body.get("summary", ""),
        body.get("agent", ""),
        body["source"],
        {**body.get("meta", {})},
        body["refs"],
        body["codec"],
        bytes.fromhex(body["identity"]),
        body.get("checkpoint", ""),
        body.get("restored_from", "") or body.get("rolled_back_from", ""),  # as it was called in older journals
        (forked[0], forked[1]) if forked else None,
        body.get("run", ""),
        body.get("absent", False),
        body.get("blob"),
        body.get("more", {}),
        body.get("began", 0),
    )


def again(state: StateCheckpoint, **other: Any) -> NewState:
    """A state as it was, to be put once more."""
    new = NewState(
        state.thread, state.ns, state.id, state.parent, state.refs, state.meta, state.codec, state.source,
        state.summary, state.agent, state.run, state.more, state.restored_from, state.forked_from,
        blob=state.blob,
    )  # fmt: skip
    return new._replace(**{"absent": state.absent, **other})


def write_order(write: Write) -> tuple[str, str, int]:
    return write.task_path, write.task, write.idx


def uuid6(after: str) -> str:
    """An id of version 6, by time: greater than this one, whatever the clock says."""
    ticks = time.time_ns() // 100 + 0x01B21DD213814000
    try:
        last = uuid.UUID(after)
        if last.version == 6:
            high = last.int >> 64
            ticks = max(ticks, ((high >> 16 << 12) | (high & 0xFFF)) + 1)
    except ValueError:
        pass
    high = (ticks >> 12 << 16) | 0x6000 | (ticks & 0xFFF)
    return str(uuid.UUID(int=(high << 64) | (0b10 << 62) | (uuid.uuid4().int & ((1 << 62) - 1))))


def quoted(thread: str) -> str:
    """A thread's name, as a command that is told has to have it."""
    return quote(thread)
