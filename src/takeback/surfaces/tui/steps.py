"""The parts of a take-back as they are done, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from takeback.model.effects import DONE, FAILED, STATES, Plan, Result, Step, text
from takeback.surfaces.wording import effects_outside
from takeback.surfaces.wording.text import clip, counted, safe
from takeback.workspace import Workspace

_SIGNS = {DONE: ("✓", "green"), FAILED: ("✗", "red"), "unknown": ("?", "magenta"), "kept": ("!", "red")}


class Part:
    """All paths of a domain of states together, such as files; each act by itself."""

    def __init__(self, domain: str, paths: frozenset[bytes], name: str) -> None:
        self.domain = domain
        self.paths = paths
        self.name = name
        self.state = ""  # then running, then the worst result
        self.note = ""

    def advance(self, results: Sequence[Result] | None) -> None:
        if results is None:
            self.state = "running"
            return
        mine = [result for result in results if result.path in self.paths]
        bad = [result for result in mine if result.result != DONE]
        self.state = bad[0].result if bad else DONE
        self.note = bad[0].note if bad else ""

    def line(self, width: int, count: int) -> Text:
        sign, colour = _SIGNS.get(self.state, ("…", "cyan") if self.state else ("·", "dim"))
        text = Text(f"{sign} {self.domain:<8} ", colour, no_wrap=True)
        many = len(self.paths)
        told = self.name
        if self.domain == "files":
            done = many if self.state == DONE else min(count, many) if self.state else 0
            told = f"{done:,} of {counted(many, 'path')}"
        text.append(clip(told, max(10, width - 12)), "" if self.state else "dim")
        return text.append(f"  {safe(self.note)}", "red") if self.note else text


def parts_of(workspace: Workspace, plan: Plan) -> Iterator[Part]:
    history, describe = workspace.history(), effects_outside.describer(workspace)
    together: dict[tuple[int, str], list[Step]] = {}
    for step in plan.taken:
        key = (step.segment, step.domain) if step.domain in STATES else (id(step), step.domain)
        together.setdefault(key, []).append(step)
    for (_, domain), steps in together.items():
        act = effects_outside.act_of(steps[0], history)
        name = safe(describe(act)) if act is not None else counted(len(steps), "step")
        if domain == "files" and len(steps) == 1:
            name = safe(text(steps[0].path))
        yield Part(domain, frozenset(step.path for step in steps), name)
