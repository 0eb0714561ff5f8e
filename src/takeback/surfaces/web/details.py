"""One item in full: what it is, what can be done about it, what is in it, and what changed, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from takeback.model.effects import Checkpoint, short_id
from takeback.model.outside import DID_NOT_HAPPEN, HAPPENED, NOT_UNDONE, UNDONE, Act
from takeback.show.timeline import Detail, Now
from takeback.show.timeline_items import NONE, CallItem, EffectItem, Item, Mark, TurnItem
from takeback.show.views import Diff, FileDiff
from takeback.surfaces.wording.diffs import totals
from takeback.surfaces.wording.entry import kept, missed
from takeback.surfaces.wording.html import Child, Markup, joined, lines, tag, url
from takeback.surfaces.wording.page import Page
from takeback.surfaces.wording.text import clip, counted, moment, safe

from . import sides
from .forms import Forms, group
from .listing import Place, amounts, badges, inner, standing, title, way_back, when, who

_MOST = 400  # parts of one item that are listed
_LONG = 20_000  # characters of one request, answer or mail
_SAYINGS = {
    HAPPENED: "It happened…",
    DID_NOT_HAPPEN: "It did not happen…",
    UNDONE: "It was taken back…",
    NOT_UNDONE: "It was not taken back…",
}
_SAYINGS_OF_MAIL = {HAPPENED: "It was sent…", DID_NOT_HAPPEN: "It was not sent…"}


class Around:
    """What stands around an item: what it is part of, and what is in it."""

    def __init__(self, path: Sequence[Item], parts: Sequence[CallItem | EffectItem], named: dict[str, Item]) -> None:
        self.path = path  # from its turn down to it
        self.parts = parts
        self.named = named  # what it is tied to, by id


Restores = Callable[[FileDiff], Child]  # the way to bring one file back; nothing where it cannot be


def restores(mark: Mark | None, forms: Forms) -> Restores:
    """Files one by one, as a checkpoint has them; names that a page cannot hold as they are need the terminal."""

    def restore(file: FileDiff) -> Child:
        path = file.old_path or file.path
        if mark is None or file.status == "new" or file.kind not in ("file", "symlink") or safe(path) != path:
            return None
        return forms.plan(f"This file as in checkpoint {mark.number}…", how="restore", item=mark.id, path=path)

    return restore


def item_page(
    detail: Detail, around: Around, place: Place, now: float, forms: Forms, restore: Restores, only: str = ""
) -> list[Child]:
    item = detail.item
    return [
        _path(around, place),
        tag("h2", title(item), id="heading"),
        tag("p", joined(_facts(detail, now)), class_="facts"),
        _ties(detail, around, place),
        _acts(detail, forms),
        _exchange(detail),
        _parts(around, place, now),
        _moved(detail),
        _changes(detail, place, restore, only),
        _about(detail, place),
    ]


def _path(around: Around, place: Place) -> Markup:
    above = around.path[:-1]
    return way_back(
        place, *(tag("a", clip(f"{who(item)} {title(item)}", 48), href=place.item(item.id)) for item in above)
    )


def _facts(detail: Detail, now: float) -> Iterator[Child]:
    item = detail.item
    yield tag("strong", who(item))
    yield [moment(item.at), ", ", when(item.at, now)]
    if isinstance(item, CallItem):
        yield item.tool
        if item.state != "done":
            yield tag("span", item.state, class_=f"badge {item.state.replace(' ', '-')}")
    if isinstance(item, EffectItem):
        yield item.domain
    elif amount := amounts(item.totals, item.lines if isinstance(item, TurnItem) else None):
        yield amount
    if isinstance(item, TurnItem) and item.calls:
        yield counted(item.calls, "call")
    if item.kind not in ("takeback", "checkpoint"):
        yield joined(badges(item), " ")
    if state := standing(item):
        yield tag("span", state, class_="state")
    for mark in item.marks if isinstance(item, TurnItem) and item.kind != "checkpoint" else ():
        label = f" “{mark.label}”" if mark.label not in ("", item.title) else ""
        yield f"checkpoint {mark.number}{label}{', pinned' if mark.pinned else ''}"
    for row in detail.shown.refused:
        yield f"gate {row.id[:8]} {row.summary}"
    if item.kind == "checkpoint" and detail.shown.row.summary:
        yield detail.shown.row.summary


def asked(detail: Detail) -> list[str]:
    """Of a take-back the agent's turn that asked for it; of a turn or call the take-backs that it asked for."""
    if detail.item.kind == "takeback":
        return [detail.shown.turn.id] if detail.shown.turn is not None else []
    return [row.id for row in detail.shown.asked_for]


def _ties(detail: Detail, around: Around, place: Place) -> Markup | None:
    """What undid it, and what it undid."""
    item = detail.item

    def link(id: str) -> Child:
        found = around.named.get(id)
        return tag("a", clip(f"{who(found)} {title(found)}", 80), href=place.item(id)) if found is not None else id[:8]

    told: list[Child] = [["taken back by ", link(id)] for id in item.undone_by]
    if isinstance(item, TurnItem):
        told += [["took back ", link(id)] for id in item.took]
    how = "asked for by " if item.kind == "takeback" else "asked for "
    told += [[how, link(id)] for id in asked(detail)]
    told += [f"kept {path} of {id[:8]}" for path, id in kept(detail.shown)[:20]]
    told += [line.strip() for line in missed(detail.shown)][:20]
    told += [f"lacks {path}: {why}" for path, why in detail.shown.partial[:20]]
    return tag("ul", *(tag("li", each) for each in told), class_="ties") if told else None


def _acts(detail: Detail, forms: Forms) -> Markup | None:
    """What a person can do from here; all but a pin and a label ask first, and say what they do."""
    item = detail.item
    if item.kind == "checkpoint":
        pinned = any(mark.pinned for mark in item.marks) if isinstance(item, TurnItem) else False
        text, keep = ("Unpin it", "no") if pinned else ("Pin it: keep it for ever", "yes")
        field = _field("path", "path of a file", "A file to bring back, as src/auth.py", True)
        return group(
            "Take it back",
            forms.plan("Go back to this checkpoint…", item=item.id, how="rollback", class_="main"),
            tag("a", "What changed since", href=url("compare", a=item.id), class_="button"),
            forms.note(text, "/pin", item=item.id, keep=keep),
            forms.note("Call it so", "/label", field=_field("label", "another label", "What to call it"), item=item.id),
            forms.plan("Restore this file…", field=field, item=item.id, how="restore"),
        )
    made: list[Child] = _settles(detail, forms)
    if item.revert and item.stands != NONE:
        what = {"agent": "turn", "run": "run", "call": "call", "effect": "effect", "takeback": "take-back"}
        text = f"Take back this {what.get(item.kind, 'work')}…"
        if detail.act is not None and _is_held_mail(detail.act):
            text = "Cancel it: it never leaves…"
        made.append(forms.plan(text, item=item.id, how="revert", class_="main"))
    if item.kind != "takeback" and item.rollback:
        made.append(forms.plan("Go back to just before it…", item=item.id, how="rollback"))
    return group("Take it back", *made)


def _settles(detail: Detail, forms: Forms) -> list[Child]:
    """What only a person can say or do about an effect that is in doubt, or held."""
    act = detail.act
    if act is None or not isinstance(detail.item, EffectItem):
        return []
    if act.shown_state == "unknown":
        buttons = _SAYINGS | _SAYINGS_OF_MAIL if act.did.get("releasing") else _SAYINGS
        return [forms.way(buttons[said], "resolve", act.id, said=said) for said in act.sayings]
    return [forms.way("Send it…", "release", act.id)] if _is_held_mail(act) else []


def _is_held_mail(act: Act) -> bool:
    return act.domain == "email" and act.shown_state == "held"


def _field(name: str, hint: str, label: str, required: bool = False) -> Markup:
    return tag(
        "input",
        name=name,
        type="text",
        placeholder=hint,
        aria_label=label,
        autocomplete="off",
        spellcheck="false",
        required=required,
        maxlength=500,
    )


def _exchange(detail: Detail) -> Markup | None:
    """The request and its answer, or the command, and what takes it back; recorded without secrets."""
    act = detail.act
    if act is None:
        return None
    rows: list[Child] = [_fact("target", act.target)] if act.target else []
    rows += [_fact(name, value) for name, value in detail.exchange]
    left = str(act.did.get("left_to_do", "it cannot be taken back"))
    rows.append(_fact("inverse", detail.shown.inverse or f"none: {left}"))
    rows += [
        _fact(
            "sent" if undo.result == "done" else "tried",
            f"{moment(undo.at)}, {undo.result}" + (undo.note and f": {undo.note}"),
        )
        for undo in detail.shown.undos
    ]
    id = act.id[:8]
    hint = {
        "sending": "It is being sent just now. Look again for what came of it.",
        "unknown": f"Nobody knows what came of it. Find out, then: {act.resolving}",
        "held": f"It is held: takeback email release {id} sends it, takeback email cancel {id} drops it",
    }.get(act.shown_state)
    return tag(
        "section",
        tag("h3", "What was done"),
        tag("dl", *rows),
        tag("p", hint, class_="note") if hint else None,
        class_="exchange",
    )


def _fact(name: str, value: str) -> list[Child]:
    cut = value if len(value) <= _LONG else f"{value[:_LONG]}\n… ({len(value) - _LONG:,} characters more)"
    body = tag("pre", lines(cut), tabindex=0) if "\n" in cut or len(cut) > 200 else tag("code", cut)
    return [tag("dt", name), tag("dd", body)]


def _parts(around: Around, place: Place, now: float) -> Markup | None:
    parts = around.parts
    if not parts:
        return None
    more = f"… and {len(parts) - _MOST:,} more" if len(parts) > _MOST else ""
    calls = sum(part.kind == "call" for part in parts)
    told = [counted(calls, "call")] if calls else []
    told += [counted(len(parts) - calls, "effect")] if len(parts) > calls else []
    return tag(
        "section", tag("h3", ", ".join(told)), inner(parts[:_MOST], place, now), tag("p", more) if more else None
    )


def _moved(detail: Detail) -> list[Child]:
    shown: list[Child] = []
    for moved in detail.moved:
        ends = " → ".join(short_id(end) or "not there" for end in (moved.before, moved.after))
        rows = [
            tag(
                "tr",
                tag("th", each.path, scope="row"),
                tag("td", _brief(each.before), class_="del"),
                tag("td", _brief(each.after), class_="ins"),
            )
            for each in moved.differences[:_MOST]
        ]
        head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in ("where", "before", "after"))))
        table = tag("table", head, tag("tbody", *rows), class_="moved") if rows else None
        name = f"Thread {moved.thread}: {ends}"
        frame = tag("div", table, class_="scroll", tabindex=0, role="group", aria_label=name) if table else None
        shown.append(tag("section", tag("h3", name), frame))
    return shown


def _brief(value: object) -> str:
    told = "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return told if len(told) <= 2_000 else told[:2_000] + "…"


def _changes(detail: Detail, place: Place, restore: Restores, only: str) -> Markup | None:
    found = detail.shown.files
    if not found:
        return None
    chosen = [file for file in found if file.path == only] or list(found)
    alone = {file.path: place.item(detail.item.id, path=file.path) for file in found}
    back = (
        tag("p", tag("a", "all files of this", href=place.item(detail.item.id))) if len(chosen) < len(found) else None
    )
    return tag(
        "section",
        tag("h3", f"Changes · {totals(Page(), found)}"),
        back,
        *sides.files(chosen, alone, detail.shown.more if len(chosen) == len(found) else 0, restore),
        sides.masked_note(detail.masked),
        class_="changes",
    )


def _about(detail: Detail, place: Place) -> Markup:
    item = detail.item
    told = [("id", item.id)]
    row = detail.shown.row
    if row.sessions:
        told.append(("session", ", ".join(row.sessions)))
    if detail.shown.turn is not None:
        told += [("session", detail.shown.turn.session), ("subagents", ", ".join(detail.shown.turn.lanes))]
    if row.number:
        told.append(("number", str(row.number)))
    told.append(
        ("command", f"takeback show {item.id[:8]}" if "-" not in item.id else f"takeback log id:{item.rollback[:8]}")
    )
    rows = [[tag("dt", name), tag("dd", tag("code", value))] for name, value in dict(told).items() if value]
    raw = tag("p", tag("a", "all of it as JSON", href=url("item", f"{item.id}.json")))
    return tag("footer", tag("dl", *rows), raw, class_="about")


# -- without an item, and between two ----------------------------------------


def overview(now: Now, newest: TurnItem | None, turns: int, forms: Forms, place: Place) -> list[Child]:
    """What is shown before anything is chosen: how things stand, and the likely next step."""
    made: list[Child] = []
    if newest is not None:
        made.append(forms.plan("Undo the last turn…", how="undo", class_="main"))
        made.append(forms.plan("Redo…", how="redo"))
    last: Child = None
    if now.checkpoint is not None:
        mark = now.checkpoint
        made.append(tag("a", "What changed since it", href=url("compare", a=mark.id), class_="button"))
        label = f"{mark.number} “{mark.label}”" if mark.label else str(mark.number)
        last = tag(
            "p",
            "The newest named checkpoint is ",
            tag("a", label, href=place.item(mark.id)),
            ", ",
            when(mark.at, now.at),
            ".",
        )
    made.append(forms.note("Take a checkpoint", "/checkpoint", field=_field("label", "label", "Label of a checkpoint")))
    many = f"{counted(turns, 'entry')} shown, newest first" if turns else "Nothing to show here"
    return [
        tag("h2", "What happened", id="heading"),
        tag("p", f"{many}. Choose one to see what it did, and to take it back." if turns else f"{many}."),
        last,
        group("Take back", *made),
        tag(
            "p",
            "Nothing is changed before you have seen the plan and confirmed it; every take-back can be taken back.",
            class_="note",
        ),
    ]


def compare_page(diff: Diff, masked: Sequence[str], place: Place, restore: Restores) -> list[Child]:
    ends = [_checkpoint(end) for end in (diff.a, diff.b)]
    return [
        way_back(place),
        tag("h2", f"{ends[0]} → {ends[1]}", id="heading"),
        tag("p", totals(Page(), diff.files) if diff.files else "nothing differs", class_="facts"),
        *sides.files(diff.files, {}, 0, restore),
        sides.masked_note(masked),
    ]


def _checkpoint(found: Checkpoint | None) -> str:
    if found is None:
        return "now"
    return f"checkpoint {found.number}" + (f" “{found.label}”" if found.label else "")
