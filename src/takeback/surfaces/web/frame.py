"""What stands around every view: the head of the page, search, the day at a glance, the list, and one item."""

from __future__ import annotations

from collections.abc import Sequence

from takeback.journal.filters import KEYS
from takeback.show.timeline import Now
from takeback.show.timeline_items import TurnItem
from takeback.surfaces.wording.html import Child, Markup, document, joined, tag, url
from takeback.surfaces.wording.text import counted

from .forms import Forms
from .listing import Place, listing
from .strip import Activity, strip


class View:
    """One page: which place of the timeline it shows, and what is beside it."""

    def __init__(
        self, title: str, body: Sequence[Child], *, kind: str = "item", live: bool = True, chosen: str = ""
    ) -> None:
        self.title = title
        self.body = body
        self.kind = kind  # timeline, item, plan, …: what a phone shows first
        self.live = live  # whether what is beside the list is renewed, too, when something happens
        self.chosen = chosen  # the turn that is marked in the list


class Seen:
    """What the list and its surroundings show."""

    def __init__(
        self, items: Sequence[TurnItem], more: bool, activity: Activity, now: Now, wrong: tuple[str, str] | None
    ) -> None:
        self.items = items
        self.more = more
        self.activity = activity
        self.now = now
        self.wrong = wrong  # with the filter: what, and what to do


def page(view: View, seen: Seen, place: Place, root: str, forms: Forms, progress: str) -> str:
    name = root.rstrip("/").rpartition("/")[2] or root
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{view.title} · {name} · takeback"),
        tag("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/static/style.css"),
        tag("script", src="/static/page.js", defer=True),
    ]
    body = tag(
        "body",
        tag("a", "Skip to the item", href="#detail", class_="skip"),
        tag("a", "Skip to the timeline", href="#timeline", class_="skip"),
        _header(name, root, place, seen, forms.may_change),
        _now(seen.now, place, forms),
        tag("div", strip(seen.activity, place), class_="top"),
        tag(
            "div",
            listing(seen.items, place, view.chosen, seen.now.at, seen.more),
            tag("main", *view.body, id="detail", tabindex=-1, data_live=view.live or None, aria_labelledby="heading"),
            class_="two",
        ),
        tag(
            "p",
            id="live",
            role="status",
            aria_live="polite",
            class_="live",
            data_head=seen.now.head,
            data_progress=progress or None,
        ),
        class_=f"view-{view.kind}",
    )
    return document(head, body)


def _header(name: str, root: str, place: Place, seen: Seen, may_change: bool) -> Markup:
    brand = tag("h1", tag("a", "takeback", href=url("timeline")), " ", tag("span", name, title=root, class_="project"))
    wrong = seen.wrong
    search = tag(
        "form",
        tag("label", "Filter", for_="filter", class_="hidden"),
        tag(
            "input",
            id="filter",
            name="filter",
            type="search",
            value=place.filter,
            autocomplete="off",
            placeholder="Filter: words, path:src/ actor:claude domain:http since:2h",
            spellcheck="false",
            aria_describedby="filter-help",
            aria_invalid="true" if wrong else None,
        ),
        tag("button", "Filter"),
        tag("a", "clear", href=url("timeline"), class_="clear") if place.filter else None,
        action="/timeline",
        method="get",
        role="search",
    )
    keys = tag("dl", *([tag("dt", tag("code", f"{key}:")), tag("dd", about)] for key, (_, about) in KEYS.items()))
    help_ = tag(
        "details",
        tag("summary", "What can be written here", id="filter-help"),
        tag(
            "p",
            "Words, or keys with a value; a minus in front leaves out, commas mean any of: ",
            tag("code", "actor:claude,codex -path:docs/"),
        ),
        keys,
        class_="help",
    )
    told = tag("p", tag("strong", wrong[0]), " ", wrong[1], role="alert", class_="wrong") if wrong else None
    mode = None if may_change else tag("span", "read-only", class_="badge")
    return tag("header", tag("div", brand, mode, class_="brand"), search, help_, told)


def _now(now: Now, place: Place, forms: Forms) -> Markup:
    """What a person should know before looking at anything."""
    told: list[Child] = []
    if now.damaged:
        told.append(tag("strong", f"{now.damaged}; takeback verify names what is lost", class_="poor"))
    if now.interrupted:
        ways = [forms.way("finish it…", "resume"), forms.way("go back…", "resume", abort="yes")]
        how = joined(ways, " ") if forms.may_change else "takeback resume, or takeback resume --abort"
        told.append([f"{now.interrupted}; the tree may be in between: ", how])
    if now.under_way:
        told.append(f"{now.under_way}; the tree is in between until that ends")
    told += [f"{call.agent} is at work: {call.summary}" for call in now.at_work[:3]]
    if now.held:
        told.append(
            [
                f"{counted(now.held, 'mail')} held: ",
                tag("a", "see", href=place.timeline(filter="state:held", before="")),
            ]
        )
    if now.unknown:
        link = tag("a", "see", href=place.timeline(filter="state:unknown", before=""))
        told.append([f"nobody knows what came of {counted(now.unknown, 'effect')}: ", link])
    return tag("section", *(tag("p", each) for each in told), id="now", aria_label="Now", hidden=not told or None)
