"""The report as Markdown. Whatever comes from outside stands in code spans and fences, longer than any it holds, so
that no name, prompt or line can become a heading, a link, a picture or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from takeback.show.report_values import EffectTold, FileTold, Remains, Report, TakebackTold, ThreadTold, TurnTold
from takeback.surfaces.wording.text import counted, safe, safe_line

from . import picture, words


def written(report: Report) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# Report on {code(report.project)}"
    yield ""
    yield from _facts(words.facts(report))
    yield ""
    yield " · ".join(f"**{number}** {what}" for number, what, _ in words.headline(report))
    yield from _activity(report)
    yield from _heading("What could not be taken back")
    if not report.remains:
        yield "Everything in this span was taken back, or still can be."
    for each in report.remains:
        yield from _remaining(each)
    if report.gate:
        yield from _heading(words.GATE)
    for call in report.gate:
        yield f"- {code(call.summary)} by {code(call.agent)}, {words.moment(call.at)}: {words.stopped(call)}"
        yield f"  - why: {code(call.why)}; call {code(call.call[:8])}"
        if call.command:
            yield f"  - let it pass once: {code(call.command)}"
    yield from _heading("What was taken back")
    if not report.takebacks:
        yield "Nothing was."
    for back in report.takebacks:
        yield from _takeback(back)
    yield from _heading("What was done, oldest first")
    if not report.turns:
        yield "Nothing was."
    for turn in report.turns:
        yield from _turn(turn)
    yield from _checkpoints(report)
    yield from _integrity(report)
    yield from _heading("What is left out")
    yield from (f"- {note}." for note in report.notes)


def _heading(title: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")


def _facts(facts: list[tuple[str, str]]) -> Iterator[str]:
    yield from (f"- {name}: {code(what)}" for name, what in facts)


def _activity(report: Report) -> Iterator[str]:
    yield from _heading("Activity by domain over time")
    if not report.activity.bins:
        yield "Nothing was done in this span."
        return
    yield from fenced("\n".join(picture.written(report.activity)))
    yield ""
    yield picture.caption(report.activity)
    yield ""
    yield f"- by domain: {_amounts(report.totals.domains.items())}"
    yield f"- by verdict: {_amounts(report.totals.verdicts.items())}"


def _amounts(found: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{n:,} {code(name)}" for name, n in found)


def _remaining(found: Remains) -> Iterator[str]:
    yield f"- **{found.state or 'failed'}** {code(found.domain)} {code(found.summary)}"
    yield f"  - {code(found.why)}"
    if found.command:
        yield f"  - settle it: {code(found.command)}"
    yield f"  - {words.moment(found.at)}, in turn {code(words.short(found.turn))}, effect {code(found.effect[:8])}"


def _takeback(found: TakebackTold) -> Iterator[str]:
    yield f"### ↩ {code(found.id[:8])} {code(found.summary)}"
    yield ""
    parts = [words.moment(found.at), words.WELL[found.well], words.done(found)]
    parts += ["interrupted"] * found.interrupted + ["brought back since"] * (not found.stands)
    parts += ["after the span"] * found.later
    yield f"- {' · '.join(parts)}"
    if found.agent:
        turn = f", in turn {code(words.short(found.turn))}" if found.turn else ""
        yield f"- asked for by {code(found.agent)}{turn}"
    if found.took:
        yield f"- took from {', '.join(code(words.short(id)) for id in found.took)}"
    if found.paths:
        yield f"- {_names(found.paths, found.more_paths)}"
    for step in found.not_done:
        why = f" {code(step.why)}" if step.why else ""
        yield f"- not done: **{step.result}** {code(step.target)}{why}"
    if found.more_not_done:
        yield f"- and {found.more_not_done:,} more not done"
    yield ""


def _turn(found: TurnTold) -> Iterator[str]:
    state = words.stands(found)
    yield f"### {code(words.short(found.id))} {code(words.who(found))}" + (f" · {state}" if state else "")
    yield ""
    if found.prompt:
        yield f"> {code(found.prompt)}"
        yield ""
    parts = [words.moment(found.at), f"session {code(found.session)}" if found.session else ""]
    parts += [counted(len(found.calls), "call") if found.calls else "", _amounts(found.domains.items())]
    parts += [words.lines(found.lines), _amounts(found.verdicts.items()), words.shared(found)]
    yield f"- {' · '.join(filter(None, parts))}"
    if found.in_part:
        yield f"- {words.IN_PART}"
    for call in found.calls:
        told = f" · {call.state}" if call.state != "done" else ""
        lane = f" · {code(call.lane)}" if call.lane else ""
        yield f"- {code(call.summary or call.tool)} · {words.clock(call.at, found)}{lane}{told}"
        for effect in call.effects:
            yield from _effect(effect, found, "  ")
    for effect in found.effects:
        yield from _effect(effect, found, "")
    for thread in found.threads:
        yield from _thread(thread)
    for file in found.files:
        yield from _file(file)
    if found.more_files:
        yield f"- and {counted(found.more_files, 'more file')}"
    yield ""


def _effect(found: EffectTold, turn: TurnTold, indent: str) -> Iterator[str]:
    gone = words.stands(found)
    told = [f"{code(found.domain)} {code(found.summary)}", f"**{found.verdict}**", words.shared(found), gone]
    told += [code(found.id[:8]), words.clock(found.at, turn)]
    yield f"{indent}- {' · '.join(filter(None, told))}"
    if found.paths:
        yield f"{indent}  - {_names(found.paths, found.more_paths)}"
    for name, said in found.exchange:
        if "\n" in said:
            yield f"{indent}  - {code(name)}:"
            yield from (f"{indent}    {line}" for line in fenced(said))
        else:
            yield f"{indent}  - {code(name)}: {code(said)}"
    if found.inverse:
        yield f"{indent}  - taken back by: {code(found.inverse)}"
    for attempt in found.attempts:
        note = f": {code(attempt.note)}" if attempt.note else ""
        yield f"{indent}  - tried {words.moment(attempt.at)}, {attempt.result}{note}"
    if found.left_to_do:
        yield f"{indent}  - left to do: {code(found.left_to_do)}"


def _thread(found: ThreadTold) -> Iterator[str]:
    before, after = found.before[:8] or "nothing", found.after[:8] or "nothing"
    yield f"- thread {code(found.thread)}: {code(before)} to {code(after)}"
    for each in found.differences:
        yield f"  - {code(each.path)} {each.change}: {code(each.before)} → {code(each.after)}"
    if found.more:
        yield f"  - and {found.more:,} more differences"


def _file(found: FileTold) -> Iterator[str]:
    yield f"- {code(words.renamed(found))} {' · '.join(map(code, words.changed(found)))}"
    if not found.diff.hunks:
        return
    shown = []
    for hunk in found.diff.hunks:
        shown.append(f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@")
        shown += [safe_line(line.rstrip(b"\r\n")) for line in hunk.lines]
    yield ""
    yield from (f"  {line}" for line in fenced("\n".join(shown), "diff"))
    if found.more_lines:
        yield f"  and {counted(found.more_lines, 'more line')}"
    yield ""


def _checkpoints(report: Report) -> Iterator[str]:
    if not report.checkpoints:
        return
    yield from _heading("Checkpoints")
    for mark in report.checkpoints:
        label = code(mark.label) if mark.label else ""
        yield f"- {' · '.join(filter(None, (code(mark.id[:8]), words.moment(mark.at), label, words.marked(mark))))}"


def _integrity(report: Report) -> Iterator[str]:
    found = report.integrity
    yield from _heading("Whether the journal holds")
    yield words.CHAINED
    yield ""
    yield from _facts(words.chain(found))
    yield from (f"- problem: {code(problem)}" for problem in found.problems)
    yield from (f"- lost in {x.kind} {code(x.entry[:8])}: {code(x.path)} ({code(x.why)})" for x in found.lost)
    yield from ([f"- and {found.more_lost:,} more lost"] if found.more_lost else [])
    yield from (f"- checkpoint {code(id[:8])} lacks {code(path)}: {code(why)}" for id, path, why in found.partial)
    yield from ([f"- and {found.more_partial:,} more that could not be captured"] if found.more_partial else [])


def _names(paths: tuple[str, ...], more: int) -> str:
    return ", ".join(map(code, paths)) + (f", and {more:,} more" if more else "")


def code(said: str) -> str:
    """One line that is shown as it is: the ticks around it are more than any run of them in it."""
    told = safe(said)
    if not told.strip():
        return "` `"
    ticks = "`" * (1 + max(map(len, re.findall("`+", told)), default=0))
    edge = " " if told[0] in "` " or told[-1] in "` " else ""
    return f"{ticks}{edge}{told}{edge}{ticks}"


def fenced(said: str, kind: str = "") -> list[str]:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", said)), default=0))
    shown = [safe_line(line.encode("utf-8", "surrogateescape")) for line in said.split("\n")]
    return [fence + kind, *shown, fence]
