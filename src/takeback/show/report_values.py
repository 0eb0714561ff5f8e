"""What a report tells, as values: turns with their calls, effects and changed lines, take-backs and how well they
went, what remains, activity over time, and whether the journal holds. `report` makes them; surfaces write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .timeline_items import Mark
from .views import FileDiff

WHOLE, PARTLY, NOTHING = "whole", "partly", "nothing"  # how well a take-back went


class Attempt(NamedTuple):
    """One try at taking an effect outside the files back."""

    at: float
    result: str  # done, failed, unknown
    note: str


class EffectTold(NamedTuple):
    id: str
    domain: str
    summary: str
    agent: str
    at: float
    verdict: str  # how well it can be taken back, or uncertain; of one outside the files what became of it
    stands: str  # whole, part or none
    undone_by: tuple[str, ...]
    paths: tuple[str, ...]
    more_paths: int
    exchange: tuple[tuple[str, str], ...] = ()  # what was sent, answered or run
    inverse: str = ""  # what takes it back
    attempts: tuple[Attempt, ...] = ()
    left_to_do: str = ""
    shared: bool = False  # by several turns: `agent` names them all


class CallTold(NamedTuple):
    id: str
    tool: str
    summary: str
    lane: str
    at: float
    state: str
    effects: tuple[EffectTold, ...]  # oldest first


class FileTold(NamedTuple):
    """The net change of one file in a turn, secrets masked; `more_lines` are not shown."""

    diff: FileDiff
    masked: bool
    more_lines: int


class Difference(NamedTuple):
    path: str
    change: str
    before: str
    after: str


class ThreadTold(NamedTuple):
    thread: str
    before: str
    after: str
    differences: tuple[Difference, ...]
    more: int


class TurnTold(NamedTuple):
    id: str
    kind: str  # agent, hand, run, watch
    prompt: str  # or the command, or what was changed
    agent: str
    session: str
    at: float
    until: float
    domains: Mapping[str, int]
    lines: tuple[int, int] | None
    verdicts: Mapping[str, int]
    stands: str
    undone_by: tuple[str, ...]
    checkpoints: tuple[Mark, ...]
    calls: tuple[CallTold, ...]  # oldest first
    effects: tuple[EffectTold, ...]  # found outside of any call, oldest first
    files: tuple[FileTold, ...]
    more_files: int
    threads: tuple[ThreadTold, ...]
    in_part: bool  # calls or effects of it are outside the span; its totals and lines are of all of it
    shared: int = 0  # paths that other turns had a part in

    @property
    def all_effects(self) -> tuple[EffectTold, ...]:
        """Each once, though two calls share it."""
        every = [*self.effects, *(effect for call in self.calls for effect in call.effects)]
        return tuple({effect.id: effect for effect in every}.values())


class StepTold(NamedTuple):
    """A step of a take-back that was not done: kept, failed or in doubt, and why."""

    target: str
    result: str
    why: str
    effect: str = ""  # its id, where it was done outside the files


class TakebackTold(NamedTuple):
    id: str
    number: int
    verb: str
    summary: str
    at: float
    stands: bool  # not redone since
    well: str  # whole, partly, nothing
    took: tuple[str, ...]  # ids of the turns it took from
    paths: tuple[str, ...]  # that it took back
    more_paths: int
    done: Mapping[str, int]  # verdict → steps
    not_done: tuple[StepTold, ...]
    more_not_done: int
    interrupted: bool
    later: bool  # after the span: it took some of it all the same
    agent: str = ""  # that asked for it; empty: nobody known, so a person
    turn: str = ""  # the id of that agent's turn, where it is known


class Remains(NamedTuple):
    """What was done in the span and could not be taken back, or of which nobody knows."""

    effect: str
    turn: str
    domain: str
    summary: str
    state: str
    at: float
    why: str
    command: str  # what a person can do about it; may be empty


class GateTold(NamedTuple):
    """A call of an agent that was asked about or refused in the span, and what a person said to that."""

    call: str
    agent: str
    session: str
    at: float
    state: str  # asked, allowed, declined, refused, approved, tried or passed
    summary: str
    why: str
    approved: float  # 0 where nobody has
    passed: float
    answered: float  # at the agent's own prompt
    told: str  # the state in words
    command: str  # what lets it pass once; may be empty
    tried: float  # when the approval was used, whatever came of it
    came: str  # what did, in words
    turned_down: float  # when it was refused all the same


class Bin(NamedTuple):
    at: float
    effects: Mapping[str, int]  # domain → effects
    takebacks: int


class Activity(NamedTuple):
    step: float  # seconds of one bin
    bins: tuple[Bin, ...]  # without gaps, oldest first


class Loss(NamedTuple):
    entry: str
    kind: str
    path: str
    why: str


class Integrity(NamedTuple):
    """Whether the journal's chain and what it names hold; checked while the report was made."""

    ok: bool
    rows: int
    blobs: int
    head: int
    hash: str  # of the newest row: whoever has it can tell whether anything before was altered
    every_byte: bool
    problems: tuple[str, ...]
    lost: tuple[Loss, ...]
    more_lost: int
    known_losses: int
    pruned: int  # entries that were forgotten, by a person or by the budget
    partial: tuple[tuple[str, str, str], ...]  # (checkpoint, path, why) that could not be captured
    more_partial: int


class Totals(NamedTuple):
    turns: int
    prompts: int
    calls: int
    effects: int
    domains: Mapping[str, int]
    files: int
    lines: tuple[int, int]
    verdicts: Mapping[str, int]
    taken_back: int  # effects that do not stand any more
    partly: int
    takebacks: int
    remains: int


class Report(NamedTuple):
    project: str
    root: str
    store: str  # the folder's name, which is told from the root's path; empty for one in memory
    made: float
    version: str
    span: str  # as it was asked for
    begins: float  # the span as times; 0 for the beginning
    ends: float
    since: float  # the first and the last of what was done in it; 0 where nothing was
    until: float
    agents: Mapping[str, int]  # name → turns
    totals: Totals
    activity: Activity
    turns: tuple[TurnTold, ...]  # oldest first
    takebacks: tuple[TakebackTold, ...]
    remains: tuple[Remains, ...]
    checkpoints: tuple[Mark, ...]
    integrity: Integrity
    notes: tuple[str, ...]  # what is left out
    gate: tuple[GateTold, ...] = ()  # oldest first
