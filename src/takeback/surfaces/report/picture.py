"""Activity over time as one picture: a lane for each domain, and one for take-backs. SVG, as it stands in the page.

files    ▂ █ ▅ ▂      ▂
http       ▂   ▂
↩                 ↩
         14:00      15:00
"""

from __future__ import annotations

import time

from takeback.show.report_values import Activity
from takeback.surfaces.wording.html import Child, Markup, tag
from takeback.surfaces.wording.text import counted
from takeback.text.units import format_duration

KNOWN = ("files", "git", "state", "http", "command", "email", "python", "sql")  # each has its colour
_WIDTH, _LEFT, _LANE, _AXIS = 960, 90, 34, 22
_BARS = "▁▂▃▄▅▆▇█"


def domains(activity: Activity) -> list[str]:
    """Those with effects, in the order of their lanes."""
    seen = {domain for each in activity.bins for domain in each.effects}
    return sorted(seen, key=lambda domain: (KNOWN.index(domain) if domain in KNOWN else len(KNOWN), domain))


def drawn(activity: Activity) -> Markup:
    lanes = domains(activity)
    backs = any(each.takebacks for each in activity.bins)
    height = _LANE * (len(lanes) + backs) + _AXIS
    width = (_WIDTH - _LEFT) / len(activity.bins)
    shown: list[Child] = []
    for at, domain in enumerate(lanes):
        base = _LANE * (at + 1)
        most = max(each.effects.get(domain, 0) for each in activity.bins)
        shown.append(tag("text", domain[:12], x=str(_LEFT - 10), y=str(base - 6), text_anchor="end", class_="lane"))
        shown.append(tag("line", x1=str(_LEFT), x2=str(_WIDTH), y1=str(base), y2=str(base), class_="base"))
        for n, each in enumerate(activity.bins):
            if count := each.effects.get(domain, 0):
                tall = max(3.0, (_LANE - 8) * count / most)
                label = f"{_time(each.at, activity.step)}: {counted(count, 'effect')}, {domain}"
                bar = tag(
                    "rect", x=f"{_LEFT + n * width + 0.5:.1f}", y=f"{base - tall:.1f}",
                    width=f"{max(1.5, min(width - 1, 24)):.1f}", height=f"{tall:.1f}", rx="1", class_=colour(domain),
                )  # fmt: skip
                shown.append(tag("g", tag("title", label), bar))
    if backs:
        base = _LANE * (len(lanes) + 1)
        shown.append(tag("text", "taken back", x=str(_LEFT - 10), y=str(base - 6), text_anchor="end", class_="lane"))
        shown.append(tag("line", x1=str(_LEFT), x2=str(_WIDTH), y1=str(base), y2=str(base), class_="base"))
        for n, each in enumerate(activity.bins):
            if each.takebacks:
                label = f"{_time(each.at, activity.step)}: {counted(each.takebacks, 'take-back')}"
                sign = tag("text", "↩", x=f"{_LEFT + n * width:.1f}", y=str(base - 6), class_="back")
                shown.append(tag("g", tag("title", label), sign))
    for n in _ticks(len(activity.bins)):
        anchor = "start" if n == 0 else "middle"
        shown.append(
            tag("text", _time(activity.bins[n].at, activity.step), x=f"{_LEFT + n * width:.1f}", y=str(height - 4),
                text_anchor=anchor, class_="tick")
        )  # fmt: skip
    total = sum(sum(each.effects.values()) for each in activity.bins)
    label = f"{counted(total, 'effect')} over time, by domain: {', '.join(lanes) or 'none'}"
    return tag("svg", *shown, viewBox=f"0 0 {_WIDTH} {height}", role="img", aria_label=label, class_="activity")


def written(activity: Activity) -> list[str]:
    """The same in letters."""
    lanes = domains(activity)
    rows = []
    for domain in lanes:
        counts = [each.effects.get(domain, 0) for each in activity.bins]
        most = max(counts)
        bars = "".join(_BARS[round((len(_BARS) - 1) * n / most)] if n else " " for n in counts)
        rows.append(f"{domain[:10]:<11}{bars}".rstrip())
    if any(each.takebacks for each in activity.bins):
        rows.append(f"{'taken back':<11}{''.join('↩' if each.takebacks else ' ' for each in activity.bins)}".rstrip())
    first, last = activity.bins[0].at, activity.bins[-1].at
    ends = _time(first, activity.step), _time(last, activity.step)
    return [*rows, f"{'':<11}{ends[0]}" + (f" … {ends[1]}" if last > first else "")]


def caption(activity: Activity) -> str:
    """What its bars are; with the offset: it may be read elsewhere."""
    offset = time.strftime("%z", time.localtime(activity.bins[0].at))
    each = format_duration(activity.step)
    return f"Effects in each {each}, times at {offset}; the tallest bar of a lane is its most."


def colour(domain: str) -> str:
    return f"d-{domain}" if domain in KNOWN else "d-other"


def _ticks(bins: int) -> list[int]:
    each = max(1, bins // 8)
    return [n for n in range(0, bins, each) if n == 0 or bins - n >= each // 2]


def _time(at: float, step: float) -> str:
    form = "%Y-%m-%d" if step >= 86_400 else "%m-%d %H:%M" if step >= 3_600 else "%H:%M" if step >= 60 else "%H:%M:%S"
    return time.strftime(form, time.localtime(at))
