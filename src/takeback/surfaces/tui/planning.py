"""A take-back from its plan to its result, in one window.

plan ─► y ─► (yes, typed, for what acts outside the files; for each credential) ─► step by step ─► result
  │     where it asks about work that is not an agent's: t takes it too, k keeps it
  └─ d diff · m merge · a others' work too · f force · w threads too; esc leaves everything as it is
what was interrupted before comes first: r finishes it · a goes back from it, and nothing more
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label
from textual.worker import get_current_worker

from takeback.errors import ApprovalNeeded, TakebackError
from takeback.model.effects import Outcome, Plan, Result, Step
from takeback.model.outside import Credential
from takeback.model.thread_states import StateDifference
from takeback.privacy.masking import mask_difference, mask_file
from takeback.show.timeline import Timeline
from takeback.surfaces.wording import approvals, diffs, failures, outcomes, plans, take_backs, threads
from takeback.surfaces.wording.take_backs import Asked
from takeback.surfaces.wording.text import safe
from takeback.system.locks import waiting_while
from takeback.workspace import Workspace

from .later import HasThreads
from .paper import Paper, cut, wrapped
from .rows import Lines
from .steps import Part, parts_of

_MOST = 2_000  # lines of a diff
_ALL = 500  # steps of a plan that are all shown; of more, a screenful
_OFTEN = 0.25  # seconds between looks at who is waited for
_PATIENCE = 1.0  # and before other work of this program is told of

PLANNING, SHOWN, TYPING, APPLYING, OVER = "planning", "shown", "typing", "applying", "over"
UNFINISHED = "unfinished"


class Shown(NamedTuple):
    """A plan that may be applied, and what is needed for that."""

    plan: Plan
    parts: list[Part]
    unapproved: tuple[list[Step], list[Credential]]


class Planning(HasThreads, ModalScreen[Outcome | None]):
    """Returns what came of it; None if nothing was done."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "apply", "Apply"),
        Binding("r", "resume(False)", "Finish it"),
        Binding("a", "resume(True)", "Go back from it"),
        Binding("t", "take", "Take it too"),
        Binding("k", "keep", "Keep it", priority=True),  # else it scrolls
        Binding("d", "diff", "Diff"),
        Binding("m", "widen('merge')", "Merge"),
        Binding("a", "widen('everything')", "Others' work too"),
        Binding("f", "widen('force')", "Force"),
        Binding("w", "widen('state')", "Threads too"),
        Binding("u", "take_back", "Take this back"),
        Binding("escape,n,q", "cancel", "Leave all as it is", key_display="esc"),
        Binding("enter,escape", "close", "Go on", key_display="enter"),
    ]

    def __init__(self, workspace: Workspace, asked: Asked, agent: str = "") -> None:
        super().__init__()
        self._workspace = workspace
        self._asked = asked
        self._agent = agent  # at work here: what only a person may do is refused
        self.stage = PLANNING
        self._plan: Plan | None = None
        self._fuller: Shown | None = None  # where the plan asks: the one that takes that too
        self._outcome: Outcome | None = None
        self._is_diff = False
        self._unapproved: tuple[list[Step], list[Credential]] = ([], [])
        self._questions: list[str] = []
        self._parts: list[Part] = []
        self._count = 0  # paths that are done of the part under way
        self._title = ""
        self._waits_since: float | None = None  # for other work of this program to end
        self.said: list[str] = []  # the result, as the command line would print it

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog fitting"):
            yield Label("", id="stage", classes="title", markup=False)
            yield Lines(id="plan")
            yield Label("", id="question", classes="question", markup=False)
            yield Input(id="word", placeholder="yes")
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._begin()
        self.set_interval(_OFTEN, self._say_who_is_waited_for)

    @property
    def is_applying(self) -> bool:
        return self.stage == APPLYING

    @property
    def width(self) -> int:
        return max(60, self.app.size.width - 8)

    def _begin(self) -> None:
        self._plan, self._fuller, self._parts, self._is_diff = None, None, [], False
        self._enter(PLANNING, "Working out the plan …", [])
        self._waits_since = monotonic()
        self._work_out()

    def _enter(self, stage: str, title: str, lines: Sequence[Text], question: str = "") -> None:
        self.stage, self._title = stage, title
        self.query_one("#stage", Label).update(title)
        self.query_one("#plan", Lines).show_lines(lines)
        self._ask(question)
        self.refresh_bindings()
        self.on_resize()

    def on_resize(self) -> None:
        """As high as what it has to say."""
        lines = self.query_one("#plan", Lines)
        lines.styles.height = max(3, min(lines.count, self._room))

    @property
    def _room(self) -> int:
        """Lines that are seen at once."""
        return self.app.size.height - 12

    def _ask(self, question: str) -> None:
        self.query_one("#question", Label).update(question)
        self.query_one("#question").display = bool(question)
        word = self.query_one("#word", Input)
        word.display = self.stage == TYPING
        word.value = ""
        if word.display:
            word.focus()
        else:
            self.query_one("#plan", Lines).focus()

    def _say_who_is_waited_for(self) -> None:
        if self.stage in (PLANNING, APPLYING):
            store, since = self._workspace.store, self._waits_since
            who = store.apply.waits_for or store.write.waits_for
            if since is not None and monotonic() > since + _PATIENCE:
                who = "what was begun here before"
            self.query_one("#stage", Label).update(f"Waiting for {safe(who)} …" if who else self._title)

    # -- the plan ------------------------------------------------------------

    @work(thread=True, exclusive=True, group="act", exit_on_error=False)
    def _work_out(self) -> None:
        worker, workspace, asked = get_current_worker(), self._workspace, self._asked

        def is_wanted() -> bool:
            return not worker.is_cancelled

        try:
            with waiting_while(is_wanted):  # whoever leaves is not kept by what others hold
                is_interrupted = workspace.interrupted()
            self._waits_since = None
            if worker.is_cancelled:  # whoever asked has left
                return
            if is_interrupted and (left := Timeline(workspace).unfinished()) is not None:
                told = [Text("it was to do:"), *self._plan_lines(left)[1:]]
                question = "Finish it, go back from it, or leave it as it is?"
                self.later(self._enter, UNFINISHED, safe(is_interrupted), told, question)
                return
            with waiting_while(is_wanted):
                plan = workspace.plan(asked.verb, *asked.words, **asked.options)
            if worker.is_cancelled:
                return
            if not plan.asks and (not plan.steps or plan.idle):  # nothing will change; an undo may still move on
                self._tell_from_thread(workspace.apply(plan))
                return
            fuller = take_backs.fuller_plan(workspace, plan, asked, self._agent)
            lines = self._plan_lines(plan, fuller)
            running = list(plans.running_lines(fuller or plan, workspace.history()))
            found, more = self._shown(plan), self._shown(fuller) if fuller is not None else None
        except Exception as error:
            self.later(self._fail, failures.told(error, "ui"))
            return
        self.later(self._show, found, more, lines, running)

    def action_resume(self, is_back: bool) -> None:
        said = "Going back from what was interrupted …" if is_back else "Finishing what was interrupted …"
        self._enter(APPLYING, said, [])
        self._resume_in_thread(is_back)

    @work(thread=True, exclusive=True, group="act", exit_on_error=False)
    def _resume_in_thread(self, is_back: bool) -> None:
        paper = Paper(self.width)
        try:
            if (outcome := self._workspace.resume(is_back)) is None:
                self.later(self._begin)  # somebody else was faster
                return
            outcomes.write_resumed(paper, self._workspace, outcome, is_back)
        except Exception as error:  # as in what follows
            self.later(self._fail, failures.told(error, "ui"))
            return
        self.later(self._tell, outcome, paper.read())

    def _shown(self, plan: Plan) -> Shown:
        return Shown(plan, list(parts_of(self._workspace, plan)), self._workspace.unapproved(plan))

    def _plan_lines(self, plan: Plan, fuller: Plan | None = None) -> list[Text]:
        paper = Paper(self.width)
        take_backs.write_plan(paper, self._workspace, plan, len(plan.steps) <= _ALL, fuller)
        return paper.read()

    def _show(self, found: Shown, fuller: Shown | None, lines: list[Text], running: list[str]) -> None:
        """Which calls are at work is said at the end of the plan, and again where that is out of sight."""
        self._choose(found)
        self._fuller = fuller
        steps = found.unapproved[0] or (fuller.unapproved[0] if fuller else [])
        outside = f" · {len(steps)} outside the files, asked for next by typing yes" if steps else ""
        asks = plans.asked_said(found.plan)
        keys = f"t takes {asks} too, k keeps it" if fuller else "y does exactly this"
        question = [*(running if len(lines) > self._room else ()), f"Apply? {keys}{outside}"]
        self._enter(SHOWN, lines[0].plain if lines else "", lines[1:], "\n".join(question))

    def _choose(self, shown: Shown) -> None:
        self._plan, self._parts, self._unapproved = shown

    def action_diff(self) -> None:
        if self._plan is not None:
            self._is_diff = not self._is_diff
            self._read_diff(self._plan, self._fuller.plan if self._fuller else None, self._is_diff)

    @work(thread=True, exclusive=True, group="act", exit_on_error=False)
    def _read_diff(self, plan: Plan, fuller: Plan | None, is_diff: bool) -> None:
        try:
            lines = self._diff_lines(plan, fuller) if is_diff else self._plan_lines(plan, fuller)[1:]
        except Exception as error:
            told = failures.told(error, "ui")
            lines = [Text(safe(told.message), "red"), Text(f"→ {safe(told.hint)}")]
        self.later(self._show_diff, plan, lines or [Text("no file changes", "dim")])

    def _diff_lines(self, plan: Plan, fuller: Plan | None) -> list[Text]:
        lines = diff_lines(self._workspace, plan, self.width, masked=bool(self._agent))
        if fuller is None:
            return lines
        more = diff_lines(self._workspace, plans.besides(plan, fuller), self.width, masked=bool(self._agent))
        return [*lines, Text(f"with {plans.asked_said(plan)}:", "bold"), *more]

    def _show_diff(self, plan: Plan, lines: list[Text]) -> None:
        if self._plan is plan and self.stage == SHOWN:  # else something else has been asked for meanwhile
            self.query_one("#plan", Lines).show_lines(lines)
            self.on_resize()

    def action_widen(self, option: str) -> None:
        changed: dict[str, Any] = {option: not getattr(self._asked, option)}
        self._asked = self._asked._replace(**changed)
        self._begin()

    # -- the yes -------------------------------------------------------------

    def action_take(self) -> None:
        """What the plan asks about goes too: the fuller plan is applied."""
        if self._fuller is not None and self.stage == SHOWN:
            self._asked = self._asked._replace(also=self._fuller.plan.request.also)
            self._choose(self._fuller)
            self.action_apply()

    def action_keep(self) -> None:
        self.action_apply()

    def action_apply(self) -> None:
        plan = self._plan
        if plan is None or self.stage != SHOWN:
            return
        steps, unbound = self._unapproved
        if not steps and not unbound:
            self._apply_now([])
            return
        if self._agent:
            self._fail(
                ApprovalNeeded(
                    f"acting outside the files is for a person, and {self._agent}; nothing was changed",
                    "run it yourself, in a terminal of your own",
                )
            )
            return
        paper = Paper(self.width)
        if steps:
            approvals.listing(paper, self._workspace, steps)
        self._questions = [approvals.question(len(steps))] if steps else []
        self._questions += [approvals.credential_question(each) for each in unbound]
        for each in unbound:
            paper.write(approvals.unbound_said(each))
        listed = [part for line in paper.read() for part in wrapped(line, self.width, 6)]
        self._enter(TYPING, listed[0].plain, listed[1:], self._questions.pop(0))

    @on(Input.Submitted, "#word")
    def _typed(self, event: Input.Submitted) -> None:
        if event.value.strip().lower() != "yes":
            self._done_nothing()
        elif self._questions:
            self._ask(self._questions.pop(0))
        else:
            self._apply_now(self._unapproved[1])

    def _done_nothing(self) -> None:
        files = self._plan is not None and len(self._plan.outside) < len(self._plan.taken)
        words = tuple(w[:8] if isinstance(w, str) and len(w) == 32 else w for w in self._asked.words)
        hint = self._asked._replace(words=words).inside if files else ""
        self._enter(OVER, "nothing was changed", [Text(safe(hint), "dim")])

    # -- applying ------------------------------------------------------------

    def _apply_now(self, credentials: Sequence[Credential]) -> None:
        assert self._plan is not None
        self._count = 0
        self._enter(APPLYING, "Taking back …", self._progress_lines())
        self._apply_in_thread(self._plan, tuple(credentials))

    @work(thread=True, exclusive=True, group="act", exit_on_error=False)
    def _apply_in_thread(self, plan: Plan, credentials: tuple[Credential, ...]) -> None:
        workspace = self._workspace
        workspace.told, workspace.progress = self._told, self._counted
        try:
            if any(workspace.unapproved(plan)):
                workspace.approve(plan, credentials)
            outcome = workspace.apply(plan)
        except Exception as error:  # a disk that is full too: it is never "taking back" for ever
            self.later(self._fail, failures.told(error, "ui"))
            return
        finally:
            workspace.told = workspace.progress = None
        self._tell_from_thread(outcome)

    def _counted(self, count: int) -> None:
        """In that thread: paths that are done; drawn a few times a second."""
        before, self._count = self._count, self._count + count
        if before // 64 != self._count // 64:
            self.later(self._draw)

    def _told(self, steps: Sequence[Step], results: Sequence[Result] | None) -> None:
        """In that thread: steps begin, or have ended."""
        if results is None:
            self._count = 0
        self.later(self._advance, steps, results)

    def _advance(self, steps: Sequence[Step], results: Sequence[Result] | None) -> None:
        paths = {step.path for step in steps}
        for part in self._parts:
            if part.domain == steps[0].domain and paths & part.paths:
                part.advance(results)
        self._draw()

    def _draw(self) -> None:
        if self.stage == APPLYING:
            self.query_one("#plan", Lines).show_lines(self._progress_lines(), keep=True)

    def _progress_lines(self) -> list[Text]:
        return [part.line(self.width, self._count) for part in self._parts]

    # -- the result ----------------------------------------------------------

    def _tell_from_thread(self, outcome: Outcome) -> None:
        paper = Paper(self.width)
        try:
            take_backs.write_outcome(paper, self._workspace, outcome)
        except Exception as error:
            self.later(self._fail, failures.told(error, "ui"))
            return
        self.later(self._tell, outcome, paper.read())

    def _tell(self, outcome: Outcome, lines: list[Text]) -> None:
        self._outcome = outcome
        self.said = [line.plain for line in lines]
        listed = self._progress_lines() if self.stage == APPLYING else []
        told = [part for line in lines[1:] for part in wrapped(line, self.width, 2)]
        title = wrapped(lines[0], self.width, 0) if lines else [Text("done")]
        first = [Text(line.plain, "bold green" if outcome.whole else "bold yellow") for line in title]
        self._enter(OVER, "Result", [*first, *told, Text(""), *listed] if listed else [*first, *told])

    def _fail(self, error: TakebackError) -> None:
        lines = wrapped(Text(safe(error.message), "bold red"), self.width, 0)
        for line in failures.what_differs(error):
            lines += wrapped(Text(f"  {line}"), self.width, 4)
        self._enter(OVER, "Not done", [*lines, *wrapped(Text(f"→ {safe(error.hint)}"), self.width)])

    def action_take_back(self) -> None:
        self._asked = Asked("redo", ())
        self._begin()

    def action_cancel(self) -> None:
        if self.stage == TYPING:
            self._done_nothing()
        else:
            self.dismiss(self._outcome)

    def action_close(self) -> None:
        self.dismiss(self._outcome)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what would do something is shown."""
        plan, shown = self._plan, self.stage == SHOWN
        if action in ("take", "keep"):
            return shown and self._fuller is not None
        if action == "apply":
            return shown and self._fuller is None
        if action == "diff":
            return shown
        if action == "resume":
            return self.stage == UNFINISHED
        if action == "widen":
            if not shown or plan is None:
                return False
            option = parameters[0]
            if option == "merge":
                return any(step.merges for step in plan.steps) or self._asked.merge
            if option == "everything":
                whose = self._asked.verb in ("undo", "rollback", "compensate")
                return whose and self._fuller is None and (bool(plan.left) or self._asked.everything)
            if option == "force":
                return any(step.verdict == "drifted" for step in plan.steps) or self._asked.force
            return bool(plan.distance.state) or self._asked.state
        if action == "cancel":
            return self.stage in (PLANNING, SHOWN, TYPING, UNFINISHED)
        if action == "close":
            return self.stage == OVER
        if action == "take_back":
            done = self._outcome
            is_over = self.stage == OVER and done is not None and not done.finished_earlier
            return is_over and outcomes.can_be_redone(done) and done.plan.request.verb != "redo"  # type: ignore[union-attr, arg-type]
        return True


def diff_lines(workspace: Workspace, plan: Plan, width: int, masked: bool) -> list[Text]:
    """What a plan would change, line by line: in files, and in threads that go along."""
    paper, files = Paper(width), plans.diff_of(workspace, plan)
    paper.page(diffs.lines(paper, [mask_file(file) for file in files] if masked else files))
    paper.page(threads.planned(paper, workspace, plan, _masked if masked else list))
    return cut(paper.read(), _MOST)


def _masked(found: Sequence[StateDifference]) -> list[StateDifference]:
    return [mask_difference(each) for each in found]
