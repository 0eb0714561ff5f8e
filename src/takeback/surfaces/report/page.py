"""The report as one page of HTML: no script, nothing from outside, light or dark, and it prints.

Every text goes through `tag`, which escapes it; the only markup that is not made there is our own style sheet. A
policy in the page lets a browser load nothing but that.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from takeback.model.effects import text
from takeback.show.report_values import (
    CallTold,
    EffectTold,
    FileTold,
    Remains,
    Report,
    TakebackTold,
    ThreadTold,
    TurnTold,
)
from takeback.surfaces.wording.html import Child, Markup, document, joined, lines, tag
from takeback.surfaces.wording.text import counted

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
        "body", _header(report), tag("main", _activity(report), _remains(report), _gate(report), _takebacks(report),
                                     _turns(report),
                                     _checkpoints(report), _integrity(report), _notes(report)),
    )  # fmt: skip
    return document(head, body)


def _header(report: Report) -> Markup:
    figures = [
        tag("li", tag("strong", number), " ", tag("span", what), class_=f"figure {kind}")
        for number, what, kind in words.headline(report)
    ]
    return tag("header", tag("h1", report.project), _facts(words.facts(report)), tag("ul", *figures, class_="figures"))


def _facts(facts: list[tuple[str, str]], kind: str = "facts") -> Markup:
    return tag("dl", *((tag("dt", name), tag("dd", what)) for name, what in facts), class_=kind)


def _section(id: str, title: str, *children: Child) -> Markup:
    return tag("section", tag("h2", title), *children, id=id)


def _activity(report: Report) -> Markup:
    if not report.activity.bins:
        return _section("activity", "Activity", tag("p", "Nothing was done in this span."))
    total = report.totals
    rows = [tag("tr", tag("th", domain, scope="row"), tag("td", f"{n:,}")) for domain, n in total.domains.items()]
    verdicts = [
        tag("tr", tag("th", verdict, scope="row"), tag("td", f"{n:,}")) for verdict, n in total.verdicts.items()
    ]
    return _section(
        "activity", "Activity by domain over time",
        tag("figure", picture.drawn(report.activity),
            tag("figcaption", picture.caption(report.activity))),
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


def _gate(report: Report) -> Markup | None:
    if not report.gate:
        return None
    rows = [
        tag(
            "li",
            tag("p", _badge(call.state), " ", call.summary),
            tag("p", call.why, class_="why"),
            tag(
                "p",
                f"{words.moment(call.at)} · {call.agent} · {words.stopped(call)} · call ",
                tag("code", call.call[:8]),
                class_="meta",
            ),
            tag("p", "let it pass once: ", tag("code", call.command)) if call.command else None,
        )
        for call in report.gate
    ]
    return _section("gate", words.GATE, tag("ul", *rows, class_="entries"))


def _remaining(found: Remains, known: frozenset[str]) -> Markup:
    todo = tag("p", "settle it: ", tag("code", found.command)) if found.command else None
    return tag(
        "li", tag("p", _badge(found.state or "failed"), " ", tag("code", found.domain), " ", found.summary),
        tag("p", found.why, class_="why"), todo,
        tag("p", words.moment(found.at), " · in turn ", _link(found.turn, known), ", effect ",
            tag("code", found.effect[:8]), class_="meta"),
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
    missed += [tag("li", f"and {found.more_not_done:,} more")] if found.more_not_done else []
    turn: list[Child] = [", in turn ", _link(found.turn, known)] if found.turn else []
    asked = tag("p", "asked for by ", found.agent, *turn, class_="meta") if found.agent else None
    took = (
        tag("p", "took from ", joined([_link(id, known) for id in found.took], ", "), class_="meta")
        if found.took
        else None
    )
    return tag(
        "article",
        tag("h3", tag("span", "↩ ", aria_hidden="true"), tag("code", found.id[:8]), " ", found.summary),
        tag("p", joined([part for part in parts if part]), class_="meta"), asked, took,
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
        counted(len(found.calls), "call") if found.calls else None, words.amounts(found.domains) or None,
        words.lines(found.lines) or None, words.amounts(found.verdicts) or None,
        words.shared(found) or None,
    ]  # fmt: skip
    state = words.stands(found)
    prompt = tag("blockquote", found.prompt) if found.kind == "agent" and found.prompt else None
    title = [tag("code", words.short(found.id)), " ", words.who(found)]
    if prompt is None and found.prompt:
        title += [": ", tag("code", found.prompt)]
    return tag(
        "article",
        tag("h3", *title, " ", _badge(state, "gone") if state else None),
        prompt,
        tag("p", joined([part for part in parts if part]), class_="meta"),
        tag("p", words.IN_PART, class_="meta") if found.in_part else None,
        *(_call(call, found) for call in found.calls),
        *(_effect(effect, found) for effect in found.effects),
        *(_thread(thread) for thread in found.threads),
        _files(found),
        id=f"i-{found.id}", class_=f"turn {'gone' if found.stands == 'none' else ''}".strip(),
    )  # fmt: skip


def _call(found: CallTold, turn: TurnTold) -> Markup:
    state = None if found.state == "done" else _badge(found.state)
    lane = f" · {found.lane}" if found.lane else ""
    return tag(
        "div",
        tag("p", tag("code", found.summary or found.tool), " ", state,
            tag("span", f" {words.clock(found.at, turn)}{lane}", class_="meta")),
        *(_effect(effect, turn) for effect in found.effects), class_="call",
    )  # fmt: skip


def _effect(found: EffectTold, turn: TurnTold) -> Markup:
    gone = words.stands(found)
    told: list[Child] = [_badge(words.shared(found), "shared"), " "] if found.shared else []
    head = tag(
        "p", tag("code", found.domain, class_=f"domain {picture.colour(found.domain)}"), " ",
        found.summary, " ", _badge(found.verdict), " ", *told, _badge(gone, "gone") if gone else None,
        tag("span", f" {found.id[:8]} · {words.clock(found.at, turn)}", class_="meta"),
    )  # fmt: skip
    named = _names(found.paths, found.more_paths)
    facts: list[Child] = []
    for name, said in (*found.exchange, *((("taken back by", found.inverse),) if found.inverse else ())):
        facts += [tag("dt", name), tag("dd", tag("pre", lines(said)))]
    for attempt in found.attempts:
        note = f": {attempt.note}" if attempt.note else ""
        facts += [tag("dt", "tried"), tag("dd", f"{words.moment(attempt.at)}, {attempt.result}{note}")]
    if found.left_to_do:
        facts += [tag("dt", "left to do"), tag("dd", found.left_to_do)]
    about = tag("summary", "what was sent, answered or run")
    more = tag("details", about, tag("dl", *facts, class_="exchange")) if facts else None
    return tag("div", head, named, more, class_="effect")


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
    named = tag("code", words.renamed(found)), tag("span", " " + " · ".join(words.changed(found)), class_="meta")
    if not found.diff.hunks:
        return tag("p", *named)
    shown: list[Child] = []
    for hunk in found.diff.hunks:
        where = f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@"
        shown.append(tag("span", where, class_="at"))
        for line in hunk.lines:
            kind = {b"+": "in", b"-": "out"}.get(line[:1], "same")
            shown.append(tag("span", text(line.rstrip(b"\r\n")), class_=kind))
    more = tag("p", f"and {counted(found.more_lines, 'more line')}", class_="meta") if found.more_lines else None
    broken = [part for each in shown for part in (each, lines("\n"))]
    return tag("details", tag("summary", *named), tag("pre", *broken, class_="diff"), more)


def _checkpoints(report: Report) -> Markup | None:
    if not report.checkpoints:
        return None
    rows = [
        tag("tr", tag("td", tag("code", mark.id[:8])), tag("td", words.moment(mark.at)), tag("td", mark.label),
            tag("td", words.marked(mark)))
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
    problems += [tag("li", f"and {found.more_lost:,} more lost")] if found.more_lost else []
    lacking += [tag("li", f"and {found.more_partial:,} more")] if found.more_partial else []
    return _section(
        "integrity", "Whether the journal holds",
        tag("p", words.CHAINED),
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
    short = words.short(id)
    return tag("a", short, href=f"#i-{id}") if id in known else tag("code", short)


def _known(report: Report) -> frozenset[str]:
    return frozenset([*(turn.id for turn in report.turns), *(back.id for back in report.takebacks)])
