"""A take-back as it was asked for, its plan and what came of it, in words."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from takeback.domains import BUILT_IN
from takeback.errors import UsageError
from takeback.model.effects import STATES, Outcome, Plan

from . import (
    outcomes,
    plans,
    threads_in_plans,
)
from .text import safe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from takeback.journal.history import History
    from takeback.workspace import Workspace

    from .screen import Screen


class Asked(NamedTuple):
    """A take-back as typed: the verb, its words, and how."""

    verb: str
    words: tuple[str | int, ...]
    actors: tuple[str, ...] | None = None
    everything: bool = False
    merge: bool = False
    markers: bool = False
    force: bool = False
    dry_run: bool = False
    all_steps: bool = False
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    state: bool = False  # threads too
    with_files: bool = False  # of a thread: all that was done since, too
    also: tuple[str, ...] = ()  # kinds of work that the plan asks about, and that are taken

    @property
    def options(self) -> dict[str, Any]:
        return {
            "actors": self.actors,
            "everything": self.everything,
            "merge": self.merge,
            "markers": self.markers,
            "force": self.force,
            "only": self.only,
            "without": self.without,
            "state": self.state,
            "with_files": self.with_files,
            "also": self.also,
        }

    @property
    def command(self) -> str:
        """How it was typed, to be typed again with something more."""
        everything = self.everything or (self.verb == "rollback" and bool(self.also))  # an undo asks once more
        flags = {"--all": everything, "--merge": self.merge}
        flags |= {"--markers": self.markers, "--force": self.force}
        flags |= {"--with-state": self.state, "--with-files": self.with_files}
        verb = ["thread", "rollback"] if self.verb == "thread" else [self.verb]
        words = ["--to", *self.words] if self.verb == "compensate" and self.words else self.words
        named = [w for actor in self.actors or () for w in ("--actor", actor)]
        scope = [w for flag, domains in (("--only", self.only), ("--except", self.without)) if domains
                 for w in (flag, ",".join(domains))]  # fmt: skip
        return shlex.join(["takeback", *verb, *map(str, words), *(f for f in flags if flags[f]), *named, *scope])

    @property
    def inside(self) -> str:
        """What of it acts on nothing outside the files, and the command for that."""
        if self.verb == "thread":  # which has no --only: alone it is a thread
            alone = self._replace(with_files=False, everything=False, merge=False, markers=False, force=False)
            return f"take back the thread alone: {alone.command}"
        return f"take back the files alone: {self._replace(only=('files',), without=(), state=False).command}"


def must_be_known(workspace: Workspace, given: Sequence[str]) -> None:
    """A domain that nobody knows would leave out more, or less, than was meant."""
    if not given:
        return
    known = {*STATES, *BUILT_IN, *(act.domain for act in workspace.history().acts.values())}
    if unknown := [name for name in given if name not in known]:
        raise UsageError(f"there is no domain {unknown[0][:80]!r}", f"the domains are {', '.join(sorted(known))}")


def fuller_plan(workspace: Workspace, plan: Plan, wanted: Asked, agent: str) -> Plan | None:
    """The plan that takes what this one asks about, too; None where it asks about nothing, and where an agent is at
    work: only a person may say that work of people goes."""
    if not plan.asks or agent:
        return None
    also, merged = tuple(sorted({*wanted.also, *plan.asks})), dict(workspace.merged)
    fuller = workspace.plan(wanted.verb, *wanted.words, **wanted._replace(also=also).options)
    workspace.merged.update(merged)  # to be looked at; whichever is applied is planned again
    return fuller


def write_plan(
    terminal: Screen, workspace: Workspace, plan: Plan, all_steps: bool = False, fuller: Plan | None = None
) -> None:
    """The plan in words; of one that changes nothing, that. Apart, what a fuller one would do besides."""
    if fuller is None and (not plan.steps or plan.idle):
        terminal.write(nothing_said(plan))
        for line in (
            *outcomes.kept_before(plan, workspace.history(), terminal.typed),
            *plans.left_lines(plan, workspace.history(), terminal.typed),
            *threads_in_plans.lines(plan),
            *plans.unrecorded_lines(workspace, plan),
            *plans.running_lines(plan, workspace.history()),
        ):
            terminal.hint(line)
        return
    shown = [*plans.lines(terminal, workspace, plan, all_steps, fuller), *threads_in_plans.lines(plan)]
    if all_steps:
        terminal.page(shown)
    else:
        for line in shown:
            terminal.write(line)


def nothing_said(plan: Plan) -> str:
    what = {"redo": "nothing to redo", "undo": "nothing to undo"}.get(plan.request.verb, "nothing to take back")
    if plan.left:
        return what
    if plan.request.verb == "compensate":
        return f"{what}: no effect outside the files is live"
    if plan.request.threads and plan.request.only:
        return f"{what}: thread {safe(plan.request.threads[0])} is as in {safe(plan.request.label.split(' ')[0])}"
    if plan.request.verb == "rollback" and not plan.request.only and not plan.request.without:
        what += f": the tree is as in {safe(plan.request.label)}"
    elif plan.request.verb == "restore":
        label = safe(plan.request.label)
        is_all = not plan.new and not plan.own
        what += f": these paths are as in {label}" if is_all else f": what {label} has of these paths is as it was"
    return what


def nothing_came(outcome: Outcome, history: History) -> str:
    """Why nothing came of a take-back."""
    plan = outcome.plan
    if not outcome.id or plan.others_work:
        return nothing_said(plan)
    wanted = set(plan.request.turns)
    if not plan.steps and any(history.turns(e.seq) & wanted for e in history.effects if not e.takeback):
        return "nothing to undo: all of it is taken back already"
    return "stepped over work that left no trace"


def write_outcome(terminal: Screen, workspace: Workspace, outcome: Outcome, forgets: bool = False) -> int:
    """What came of it in words; returns the exit code."""
    if outcomes.is_nothing(outcome):
        terminal.say(nothing_came(outcome, workspace.history()))
        before = outcomes.kept_before(outcome.plan, workspace.history(), terminal.typed) if not outcome.id else ()
        left = plans.left_lines(outcome.plan, workspace.history(), terminal.typed)
        for line in (*before, *left, *threads_in_plans.lines(outcome.plan)):
            terminal.hint(line)
        for line in plans.unrecorded_lines(workspace, outcome.plan):
            terminal.hint(line)
        return 0 if outcome.whole else 3
    code = outcomes.report(terminal, workspace, outcome, forgets)
    for line in plans.running_lines(outcome.plan, workspace.history()):
        terminal.hint(line)
    return code
