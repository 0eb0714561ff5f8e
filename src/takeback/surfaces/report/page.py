"""The report as one page of HTML: no script, nothing from outside, light or dark, and it prints.

Every text goes through `tag`, which escapes it; the only markup that is not made there is our own style sheet. A
policy in the page lets a browser load nothing but that.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from ...effects import text
from ...report import CallTold, EffectTold, FileTold, Remains, Report, TakebackTold, ThreadTold, TurnTold
from ..cli.terminal import counted
from ..web.html import Child, Markup, document, joined, lines, tag
from . import picture, words

_STYLE = Path(__file__).with_name("page.css")


def written(report: Report) -> str:
    style = _STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=f"default-src 'none'; style-src 'sha256-{digest}'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"takeback {report.version}"),
        tag("title", f"{report.project}: what was done, and what was taken back"),
        tag("style", Markup(style)),
    ]
    body = tag(
        "body", _header(report), tag("main", _activity(report), _remains(report), _takebacks(report), _turns(report),
                                     _checkpoints(report), _integrity(report), _notes(report)),
    )  # fmt: skip
    return document(head, body)


def _header(report: Report) -> Markup:
    figures = [
        tag("li", tag("strong", number), " ", tag("span", what), class_=f"figure {kind}")
        for number, what, kind in words.headline(report)
    ]
    agents = ", ".join(f"{name} ({counted(n, 'turn')})" for name, n in report.agents.items())
    facts = [("span", report.span), ("time", words.when(report)), ("by", agents or "nobody"), ("root", report.root),
             ("made", f"{words.moment(report.made)} by takeback {report.version}")]  # fmt: skip
    return tag(
        "header", tag("h1", report.project), _facts(facts), tag("ul", *figures, class_="figures"),
    )  # fmt: skip


def _facts(facts: list[tuple[str, str]], kind: str = "facts") -> Markup:
    return tag("dl", *((tag("dt", name), tag("dd", what)) for name, what in facts), class_=kind)


def _section(id: str, title: str, *children: Child) -> Markup:
    return tag("section", tag("h2", title), *children, id=id)


def _activity(report: Report) -> Markup:
    if not report.activity.bins:
        return _section("activity", "Activity", tag("p", "Nothing was done in this span."))
    total, step = report.totals, picture.step(report.activity)
    rows = [tag("tr", tag("th", domain, scope="row"), tag("td", f"{n:,}")) for domain, n in total.domains.items()]
    verdicts = [
        tag("tr", tag("th", verdict, scope="row"), tag("td", f"{n:,}")) for verdict, n in total.verdicts.items()
    ]
    return _section(
        "activity", "Activity by domain over time",
        tag("figure", picture.drawn(report.activity),
            tag("figcaption", f"Effects in each {step}; the tallest bar of a lane is its most.")),
        tag("div",
            tag("table", tag("caption", "Effects by domain"), tag("tbody", *rows)),
            tag("table", tag("caption", "Effects by verdict"), tag("tbody", *verdicts)), class_="tables"),
    )  # fmt: skip


def _remains(report: Report) -> Markup:
    known = _known(report)
    if not report.remains:
        told: Child = tag("p", "Everything in this span was taken back, or still can be.")
    else:
        told = tag("ul", *(_remaining(each, known) for each in report.remains), class_="entries")
    return _section("remains", "What could not be taken back", told)


def _remaining(found: Remains, known: frozenset[str]) -> Markup:
    todo = tag("p", "settle it: ", tag("code", found.command)) if found.command else None
    return tag(
        "li", tag("p", _badge(found.state or "failed"), " ", tag("code", found.domain), " ", found.summary),
        tag("p", found.why, class_="why"), todo,
        tag("p", words.moment(found.at), " · in turn ", _link(found.turn, known), class_="meta"),
    )  # fmt: skip


def _takebacks(report: Report) -> Markup:
    if not report.takebacks:
        return _section("takebacks", "What was taken back", tag("p", "Nothing was."))
    known = _known(report)
    return _section("takebacks", "What was taken back", *(_takeback(each, known) for each in report.takebacks))


def _takeback(found: TakebackTold, known: frozenset[str]) -> Markup:
    parts: list[Child] = [
        words.moment(found.at), words.WELL[found.well], words.done(found),
        "interrupted" if found.interrupted else None, None if found.stands else "brought back since",
        "after the span" if found.later else None,
    ]  # fmt: skip
    missed = [
        tag("li", _badge(step.result), " ", tag("code", step.target), f" {step.why}" if step.why else None)
        for step in found.not_done
    ]
    took = (
        tag("p", "took from ", joined([_link(id, known) for id in found.took], ", "), class_="meta")
        if found.took
        else None
    )
    return tag(
        "article",
        tag("h3", tag("span", "↩ ", aria_hidden="true"), tag("code", found.id[:8]), " ", found.summary),
        tag("p", joined([part for part in parts if part]), class_="meta"), took,
        _names(found.paths, found.more_paths),
        tag("div", tag("p", "Not done:"), tag("ul", *missed), class_="missed") if missed else None,
        id=f"i-{found.id}", class_=f"back {found.well}",
    )  # fmt: skip


def _turns(report: Report) -> Markup:
    if not report.turns:
        return _section("turns", "What was done", tag("p", "Nothing was."))
    return _section("turns", "What was done, oldest first", *(_turn(each) for each in report.turns))


def _turn(found: TurnTold) -> Markup:
    parts: list[Child] = [
        words.moment(found.at), f"session {found.session}" if found.session else None,
        counted(len(found.calls), "call") if found.calls else None, words.amounts(dict(found.domains)) or None,
        words.lines(found.lines) or None, words.amounts(dict(found.verdicts)) or None,
    ]  # fmt: skip
    state = words.stands(found)
    prompt = tag("blockquote", found.prompt) if found.kind == "agent" and found.prompt else None
    title = [tag("code", found.id.rpartition("-")[2][:8]), " ", words.who(found)]
    if prompt is None and found.prompt:
        title += [": ", tag("code", found.prompt)]
    return tag(
        "article",
        tag("h3", *title, " ", _badge(state, "gone") if state else None),
        prompt,
        tag("p", joined([part for part in parts if part]), class_="meta"),
        *(_call(call) for call in found.calls),
        *(_effect(effect) for effect in found.effects),
        *(_thread(thread) for thread in found.threads),
        _files(found),
        id=f"i-{found.id}", class_=f"turn {'gone' if found.stands == 'none' else ''}".strip(),
    )  # fmt: skip


def _call(found: CallTold) -> Markup:
    state = None if found.state == "done" else _badge(found.state)
    lane = f" · {found.lane}" if found.lane else ""
    return tag(
        "div",
        tag("p", tag("code", found.summary or found.tool), " ", state,
            tag("span", f" {words.clock(found.at)}{lane}", class_="meta")),
        *(_effect(effect) for effect in found.effects), class_="call",
    )  # fmt: skip


def _effect(found: EffectTold) -> Markup:
    gone = words.stands(found)
    head = tag(
        "p", tag("code", found.domain, class_=f"domain {picture.colour(found.domain)}"), " ",
        found.summary, " ", _badge(found.verdict), _badge(gone, "gone") if gone else None,
        tag("span", f" {found.id[:8]} · {words.clock(found.at)}", class_="meta"),
    )  # fmt: skip
    if not found.exchange and not found.inverse and not found.attempts:
        return tag("div", head, _names(found.paths, found.more_paths), class_="effect")
    facts: list[Child] = []
    for name, said in (*found.exchange, *((("taken back by", found.inverse),) if found.inverse else ())):
        facts += [tag("dt", name), tag("dd", tag("pre", lines(said)))]
    for attempt in found.attempts:
        note = f": {attempt.note}" if attempt.note else ""
        facts += [tag("dt", "tried"), tag("dd", f"{words.moment(attempt.at)}, {attempt.result}{note}")]
    if found.left_to_do:
        facts += [tag("dt", "left to do"), tag("dd", found.left_to_do)]
    more = tag("details", tag("summary", "what was sent, answered or run"), tag("dl", *facts, class_="exchange"))
    return tag("div", head, more, class_="effect")


def _thread(found: ThreadTold) -> Markup:
    rows = [
        tag("tr", tag("th", tag("code", each.path), scope="row"), tag("td", each.change), tag("td", each.before),
            tag("td", each.after))
        for each in found.differences
    ]  # fmt: skip
    head = tag("tr", *(tag("th", name, scope="col") for name in ("what", "change", "before", "after")))
    moved = f"thread {found.thread}: {found.before[:8] or 'nothing'} to {found.after[:8] or 'nothing'}"
    more = tag("p", f"and {found.more:,} more differences", class_="meta") if found.more else None
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="state") if rows else None
    return tag("details", tag("summary", moved), table, more)


def _files(found: TurnTold) -> Markup | None:
    if not found.files:
        return None
    more = tag("p", f"and {counted(found.more_files, 'more file')}", class_="meta") if found.more_files else None
    return tag("div", *(_file(each) for each in found.files), more, class_="files")


def _file(found: FileTold) -> Markup:
    diff = found.diff
    name = f"{diff.old_path} → {diff.path}" if diff.old_path else diff.path
    told = [diff.status, "binary" if diff.binary else words.lines((diff.added, diff.removed)) if diff.hunks else "",
            diff.note, "masked" if found.masked else ""]  # fmt: skip
    summary = tag("summary", tag("code", name), tag("span", " " + " · ".join(filter(None, told)), class_="meta"))
    if not diff.hunks:
        return tag("p", tag("code", name), tag("span", " " + " · ".join(filter(None, told)), class_="meta"))
    shown: list[Child] = []
    for hunk in diff.hunks:
        where = f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@"
        shown.append(tag("span", where, class_="at"))
        for line in hunk.lines:
            kind = {b"+": "in", b"-": "out"}.get(line[:1], "same")
            shown.append(tag("span", text(line.rstrip(b"\r\n")), class_=kind))
    more = tag("p", f"and {counted(found.more_lines, 'more line')}", class_="meta") if found.more_lines else None
    broken = [part for each in shown for part in (each, lines("\n"))]
    return tag("details", summary, tag("pre", *broken, class_="diff"), more)


def _checkpoints(report: Report) -> Markup | None:
    if not report.checkpoints:
        return None
    rows = [
        tag("tr", tag("td", tag("code", mark.id[:8])), tag("td", words.moment(mark.at)), tag("td", mark.label),
            tag("td", ", ".join(word for word, is_so in (("named", mark.named), ("pinned", mark.pinned)) if is_so)))
        for mark in report.checkpoints
    ]  # fmt: skip
    head = tag("tr", *(tag("th", name, scope="col") for name in ("checkpoint", "taken", "label", "")))
    return _section("checkpoints", "Checkpoints", tag("table", tag("thead", head), tag("tbody", *rows)))


def _integrity(report: Report) -> Markup:
    found = report.integrity
    problems = [tag("li", problem) for problem in found.problems]
    problems += [tag("li", f"lost in {x.kind} {x.entry[:8]}: ", tag("code", x.path), f" ({x.why})") for x in found.lost]
    lacking = [
        tag("li", f"checkpoint {id[:8]} lacks ", tag("code", path), f": {why}") for id, path, why in found.partial
    ]
    return _section(
        "integrity", "Whether the journal holds",
        tag("p", "Each row of the journal has the hash of the one before: whoever altered or removed one would have to "
                 "make all that follow anew, up to the head that is named here."),
        _facts(words.chain(found), f"facts {'good' if found.ok else 'bad'}"),
        tag("ul", *problems) if problems else None,
        (tag("p", "Could not be captured:"), tag("ul", *lacking)) if lacking else None,
    )  # fmt: skip


def _notes(report: Report) -> Markup:
    return _section("notes", "What is left out", tag("ul", *(tag("li", note + ".") for note in report.notes)))


def _names(paths: tuple[str, ...], more: int) -> Markup | None:
    if not paths:
        return None
    told: list[Child] = [tag("code", path) for path in paths]
    told += [f"and {more:,} more"] if more else []
    return tag("p", joined(told, ", "), class_="paths")


def _badge(word: str, kind: str = "") -> Markup:
    return tag("span", word, class_=f"badge {kind or word.split()[0]}")


def _link(id: str, known: frozenset[str]) -> Markup:
    """To a turn or take-back; what is not in this report is named alone."""
    short = id.rpartition("-")[2][:8]
    return tag("a", short, href=f"#i-{id}") if id in known else tag("code", short)


def _known(report: Report) -> frozenset[str]:
    return frozenset([*(turn.id for turn in report.turns), *(back.id for back in report.takebacks)])
