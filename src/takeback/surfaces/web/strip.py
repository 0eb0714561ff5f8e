"""One day at a glance: effects by quarter of an hour, stacked by domain; each hour leads to what was done in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta

from takeback.surfaces.wording.html import Child, Markup, tag
from takeback.surfaces.wording.text import counted

from .listing import Place

DOMAINS = ("files", "git", "state", "http", "command", "email", "python")  # each has its colour
_QUARTERS = 96
_WIDTH, _HEIGHT = 960, 44  # of the picture, which is stretched to the page
_GAP = 1.5
_WORD = re.compile(r'(?:"[^"]*"?|[^\s"])+')


class Activity:
    """When there were effects, and in which domain."""

    def __init__(self, effects: Iterable[tuple[float, str]]) -> None:
        self.days: dict[date, dict[int, dict[str, int]]] = {}  # day → quarter of an hour → domain → effects
        for at, domain in effects:
            moment = datetime.fromtimestamp(at)
            quarter = self.days.setdefault(moment.date(), {}).setdefault(moment.hour * 4 + moment.minute // 15, {})
            named = domain if domain in DOMAINS else "other"
            quarter[named] = quarter.get(named, 0) + 1

    def day(self, asked: str) -> date:
        """The day that was asked for, or the newest on which there was something."""
        try:
            return date.fromisoformat(asked)
        except ValueError:
            return max(self.days, default=date.today())

    def hours(self, day: date) -> dict[int, dict[str, int]]:
        found: dict[int, dict[str, int]] = {}
        for quarter, domains in sorted(self.days.get(day, {}).items()):
            into = found.setdefault(quarter // 4, {})
            for domain, n in domains.items():
                into[domain] = into.get(domain, 0) + n
        return found

    def beside(self, day: date) -> tuple[date | None, date | None]:
        """The nearest days before and after on which there was something."""
        return max((d for d in self.days if d < day), default=None), min(
            (d for d in self.days if d > day), default=None
        )


class Kept:
    """The newest activity that was asked for: every page shows it, and it changes only with the journal."""

    def __init__(self) -> None:
        self._newest: tuple[object, Activity] = (None, Activity(()))

    def of(self, key: object, effects: Callable[[], Iterable[tuple[float, str]]]) -> Activity:
        known, found = self._newest
        if known != key:
            found = Activity(effects())
            self._newest = key, found  # another thread may do so too: what is answered is what was asked for
        return found


def strip(activity: Activity, place: Place) -> Markup:
    day = activity.day(place.day)
    before, after = activity.beside(day)
    hours = activity.hours(day)
    total = sum(n for domains in hours.values() for n in domains.values())
    seen = [d for d in (*DOMAINS, "other") if any(d in domains for domains in hours.values())]
    heading = tag(
        "h2",
        _turned("‹", before, place, "the day before with effects"),
        tag("span", _called(day), class_="day"),
        _turned("›", after, place, "the day after with effects"),
        tag("span", counted(total, "effect"), class_="facts"),
    )
    key = tag(
        "ul", *(tag("li", tag("span", class_=f"swatch d-{d}", aria_hidden="true"), d) for d in seen), class_="key"
    )
    return tag(
        "section",
        tag("div", heading, key, class_="over"),
        _picture(activity.days.get(day, {}), hours, day, place),
        tag("ol", *(tag("li", f"{hour:02}:00") for hour in range(0, 24, 3)), class_="hours", aria_hidden="true"),
        id="strip",
        aria_label="The day at a glance",
    )


def _turned(sign: str, to: date | None, place: Place, label: str) -> Markup:
    if to is None:
        return tag("span", sign, class_="turn none", aria_hidden="true")
    return tag(
        "a", sign, href=place.timeline(day=to.isoformat(), before=""), class_="turn", aria_label=f"{label}: {to}"
    )


def _picture(quarters: dict[int, dict[str, int]], hours: dict[int, dict[str, int]], day: date, place: Place) -> Markup:
    most = max((sum(domains.values()) for domains in quarters.values()), default=1)
    width = _WIDTH / _QUARTERS
    bars: dict[int, list[Child]] = {}
    for quarter, domains in sorted(quarters.items()):
        top = float(_HEIGHT)
        for domain in sorted(domains, key=_order):
            height = max(2.0, (_HEIGHT - 4) * domains[domain] / most)
            top -= height
            bars.setdefault(quarter // 4, []).append(
                tag(
                    "rect",
                    x=f"{quarter * width + _GAP / 2:.1f}",
                    y=f"{max(0.0, top):.1f}",
                    width=f"{width - _GAP:.1f}",
                    height=f"{min(height, _HEIGHT):.1f}",
                    class_=f"d-{domain}",
                )
            )
    shown: list[Child] = []
    for hour in range(0, 24, 3):
        x = f"{hour * 4 * width:.1f}"
        shown.append(tag("line", x1=x, x2=x, y1="0", y2=str(_HEIGHT), class_="tick"))
    for hour, domains in hours.items():
        told = ", ".join(f"{n} {domain}" for domain, n in sorted(domains.items(), key=lambda each: _order(each[0])))
        label = f"{hour:02}:00 to {hour + 1:02}:00: {counted(sum(domains.values()), 'effect')} ({told})"
        back = tag(
            "rect", x=f"{hour * 4 * width:.1f}", y="0", width=f"{4 * width:.1f}", height=str(_HEIGHT), class_="hour"
        )
        shown.append(tag("a", tag("title", label), back, *bars[hour], href=_hour(day, hour, place), aria_label=label))
    return tag(
        "svg",
        *shown,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="group",
        aria_label=f"Effects on {day} by hour",
    )


def _hour(day: date, hour: int, place: Place) -> str:
    """The timeline of one hour, with whatever else it is narrowed to."""
    since = datetime(day.year, day.month, day.day, hour)
    until = since + timedelta(minutes=59, seconds=59)
    kept = without_times(place.filter)
    asked = f"{kept} since:{since.isoformat()} until:{until.isoformat()}".strip()
    return place.timeline(filter=asked, day=day.isoformat(), before="")


def without_times(filter: str) -> str:
    """What is quoted is one word, whatever is in it."""
    return " ".join(w for w in _WORD.findall(filter) if not w.lower().startswith(("since:", "until:")))


def _order(domain: str) -> int:
    return DOMAINS.index(domain) if domain in DOMAINS else len(DOMAINS)


def _called(day: date) -> list[Child]:
    today = date.today()
    near = {today: "today", today - timedelta(days=1): "yesterday"}.get(day)
    return [f"{day.strftime('%a')} {day.isoformat()}", tag("span", f", {near}", class_="near") if near else None]


def shape(activity: Activity, asked: str) -> dict[str, object]:
    day = activity.day(asked)
    quarters: Sequence[object] = [
        {"at": f"{quarter // 4:02}:{quarter % 4 * 15:02}", **domains}
        for quarter, domains in sorted(activity.days.get(day, {}).items())
    ]
    return {"day": day.isoformat(), "quarters": quarters, "days": sorted(d.isoformat() for d in activity.days)}
