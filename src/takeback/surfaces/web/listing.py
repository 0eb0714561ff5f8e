"""The list of the timeline: one entry for each turn, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from takeback.model.effects import STATES
from takeback.show.timeline_items import NONE, PART, CallItem, EffectItem, Item, TurnItem
from takeback.surfaces.wording.html import Child, Markup, joined, tag, url
from takeback.surfaces.wording.text import age, clip, counted, moment

SIGNS = {"agent": "◆", "hand": "✎", "watch": "✎", "run": "$", "takeback": "↩", "checkpoint": "○", "call": "◇"}
_KINDS = {"agent": "turn", "hand": "by hand", "watch": "seen", "run": "run", "takeback": "take-back"}


class Place:
    """Where somebody is: what the list is narrowed to, and from where on it is shown."""

    def __init__(self, filter: str = "", before: str = "", day: str = "") -> None:
        self.filter = filter
        self.before = before
        self.day = day

    @property
    def kept(self) -> dict[str, str]:
        """What goes along to whatever is looked at next."""
        found = {"filter": self.filter, "before": self.before, "day": self.day}
        return {name: value for name, value in found.items() if value}

    def to(self, *steps: str, **more: str) -> str:
        return url(*steps, **{**self.kept, **more})

    def item(self, id: str, **more: str) -> str:
        return self.to("item", id, **more)

    def timeline(self, **other: str) -> str:
        return self.to("timeline", **other)


def way_back(place: Place, *further: Child) -> Markup:
    """Where a view is: below the timeline, and what else it is part of."""
    steps = [tag("a", "← timeline", href=place.timeline(), class_="back"), *further]
    return tag("nav", joined(steps, " › "), aria_label="Where this is", class_="path")


def listing(items: Sequence[TurnItem], place: Place, chosen: str, now: float, more: bool) -> Markup:
    ends: list[Child] = []
    if place.before:
        ends.append(tag("a", "← newest", href=place.timeline(before="")))
    if more:
        ends.append(tag("a", "older →", href=place.timeline(before=items[-1].id), rel="next"))
    empty = "nothing older" if place.before else "nothing has happened yet"
    empty = "nothing matches this filter" if place.filter else empty
    return tag(
        "nav",
        tag("ol", *(_entry(item, place, item.id == chosen, now) for item in items)) if items else None,
        None if items else tag("p", empty, class_="empty"),
        tag("p", joined(ends, " "), class_="ends") if ends else None,
        id="timeline",
        aria_label="Timeline",
    )


def _entry(item: TurnItem, place: Place, is_chosen: bool, now: float) -> Markup:
    gone = {NONE: "gone", PART: "part"}.get(item.stands, "")
    mark = item.marks[0] if item.kind == "checkpoint" and item.marks else None
    sign = "●" if mark is not None and mark.named else SIGNS[item.kind]
    first = tag(
        "span",
        tag("span", sign, class_=f"sign {item.kind}", aria_hidden="true"),
        " ",
        tag("span", who(item), class_="who"),
        " ",
        tag("span", title(item), class_="title"),
        class_="first",
    )
    second = tag("span", joined(_facts(item, now)), class_="facts")
    return tag(
        "li",
        tag(
            "a", first, second, id=f"t-{item.id}", href=place.item(item.id), aria_current="true" if is_chosen else None
        ),
        class_=f"{item.kind} {gone}".strip(),
    )


def _facts(item: TurnItem, now: float) -> list[Child]:
    found: list[Child] = [when(item.at, now)]
    if amount := amounts(item.totals, item.lines):
        found.append(amount)
    if item.kind not in ("takeback", "checkpoint"):
        found += [badge(word, n) for word, n in item.badges.items() if word != "exact"]
        found += [badge("shared", item.shared)] if item.shared else []
    if state := standing(item):
        found.append(tag("span", state, class_="state"))
    if item.is_open:
        found.append(tag("span", "at work", class_="badge open"))
    found += [badge("pinned") for mark in item.marks if mark.pinned]
    return found


def who(item: Item) -> str:
    """By whom, in a word or two."""
    if item.kind == "takeback":
        return f"take-back by {item.agent}" if item.agent else "take-back"
    if item.kind == "checkpoint":
        return "checkpoint"
    return (
        item.agent if item.kind in ("agent", "call") and item.agent else _KINDS.get(item.kind, item.agent or "by hand")
    )


def title(item: Item, most: int = 200) -> str:
    """What it is called, on one line."""
    return clip(" ".join(_title(item).split()) if "\n" in item.title else _title(item), most)


def _title(item: Item) -> str:
    if isinstance(item, TurnItem) and item.kind == "checkpoint":
        mark = item.marks[0]
        return f"{mark.number} “{item.title}”" if item.title else f"{mark.number}{'' if mark.named else ', automatic'}"
    if item.kind in ("agent", "run"):
        return f"“{item.title}”" if item.title else "not known what was asked"
    return item.title or "without a name"


def amounts(totals: Mapping[str, int], counted_lines: tuple[int, int] | None = None) -> Markup | None:
    """3 files +40 −2, 1 http"""
    parts: list[Child] = []
    for domain, n in totals.items():
        word = "file" if domain == "files" else "thread" if domain == "state" else ""
        told: Child = counted(n, word) if word else f"{n:,} {domain}"
        if domain == "files" and counted_lines is not None:
            told = [told, " ", lines_changed(*counted_lines)]
        parts.append(told)
    return joined(parts, ", ") if parts else None


def lines_changed(added: int, removed: int) -> Markup:
    parts: list[Child] = [tag("ins", f"+{added:,}")] if added else []
    parts += [tag("del", f"−{removed:,}")] if removed else []
    return joined(parts, " ")


def badge(word: str, n: int = 1) -> Markup:
    return tag("span", f"{n} {word}" if n > 1 else word, class_=f"badge {word.replace(' ', '-')}")


def badges(item: Item) -> list[Child]:
    if isinstance(item, EffectItem):
        return [badge(item.badge), *([badge("shared")] if item.shared else [])]
    told = [badge(word, n) for word, n in item.badges.items()]
    return [*told, *([badge("shared", item.shared)] if item.shared else [])]


def standing(item: Item) -> str:
    if item.kind == "checkpoint" or item.stands not in (NONE, PART):
        return ""
    return "taken back" if item.stands == NONE else "taken back in part"


def when(at: float, now: float) -> Markup:
    return tag("time", age(now - at), datetime=datetime.fromtimestamp(at).astimezone().isoformat(), title=moment(at))


def inner(items: Sequence[CallItem | EffectItem], place: Place, now: float) -> Markup:
    """What is in a turn or call, as a list of links."""
    return tag("ol", *(_part(item, place, now) for item in items), class_="parts")


def _part(item: CallItem | EffectItem, place: Place, now: float) -> Markup:
    facts: list[Child] = [when(item.at, now)]
    if isinstance(item, CallItem):
        sign, said = SIGNS["call"], [f"{item.lane}: " if item.lane else "", item.title]
        if amount := amounts(item.totals):
            facts.append(amount)
        if item.state != "done":
            facts.append(tag("span", item.state, class_=f"badge {item.state.replace(' ', '-')}"))
    else:
        sign, said = "~" if item.domain in STATES else "»", [item.title]
        facts.append(item.domain)
    facts += badges(item)
    if state := standing(item):
        facts.append(tag("span", state, class_="state"))
    return tag(
        "li",
        tag(
            "a", tag("span", sign, class_=f"sign {item.kind}", aria_hidden="true"), " ", *said, href=place.item(item.id)
        ),
        " ",
        tag("span", joined(facts), class_="facts"),
        class_="gone" if item.stands == NONE else None,
    )
