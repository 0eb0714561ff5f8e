"""The ratios as a picture: one bar per operation and tree size, on a logarithmic scale, with git at 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from . import rounds
from .report import Line
from .samples import SIZES

_OPERATIONS = (rounds.FIRST, rounds.NOTHING, rounds.CHANGED, rounds.RESTORE, rounds.FULL, rounds.GONE, rounds.DISK)
_COLOURS = {"1k": "#9ecae1", "10k": "#4292c6", "100k": "#08519c", "big": "#fd8d3c"}
_LEFT, _RIGHT, _TOP, _BAR, _GAP, _WIDTH = 150, 60, 70, 13, 16, 760
_TITLE = "takeback against a shadow git repository: times as fast, times as small"
_STYLE = "text{font-size:11px;fill:#444}.title{font-size:14px;fill:#222}.label{font-size:12px;fill:#222}"
_TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)


def draw(rows: list[Line]) -> str:
    shown = [row for row in rows if row.operation in _OPERATIONS and row.ratio]
    sizes = [size for size in ("1k", "10k", "100k", "big") if any(row.size == size for row in shown)]
    ratios = [row.ratio for row in shown if row.ratio]
    low, high = min(0.5, *ratios) * 0.9, max(2, *ratios) * 1.1

    def x(ratio: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(ratio / low) / math.log(high / low)

    parts: list[str] = []
    y = _TOP
    for operation in _OPERATIONS:
        bars = [row for size in sizes for row in shown if row.size == size and row.operation == operation]
        if not bars:
            continue
        parts.append(_text(_LEFT - 12, y + len(bars) * _BAR / 2 + 4, operation, "end", "label"))
        for row in bars:
            parts.append(_bar(row, x, y))
            y += _BAR
        y += _GAP
    grid = [_tick(x(tick), y, tick) for tick in _TICKS if low <= tick <= high]
    keys = [_key(_LEFT + 150 * i, size) for i, size in enumerate(sizes)]
    size = f'viewBox="0 0 {_WIDTH} {y + 30}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{y + 30}" fill="#fff"/>',
        _text(_LEFT, 22, _TITLE, "start", "title"),
    ]
    return "\n".join([*head, *keys, *grid, *parts, "</svg>", ""])


def _bar(row: Line, x: Callable[[float], float], y: float) -> str:
    start, end = sorted((x(1), x(row.ratio or 1)))
    place = f'x="{start:.1f}" y="{y}" width="{max(1, end - start):.1f}" height="{_BAR - 2}"'
    label = _text(max(x(1), end) + 5, y + _BAR - 4, f"{row.ratio:.1f}", "start")
    return f'<rect {place} fill="{_COLOURS[row.size]}"/>{label}'


def _tick(x: float, bottom: float, value: float) -> str:
    colour = "#333" if value == 1 else "#ddd"
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom - 6}" stroke="{colour}"/>'
    return line + _text(x, bottom + 10, "1× (git)" if value == 1 else f"{value:g}×", "middle")


def _key(x: float, size: str) -> str:
    box = f'<rect x="{x}" y="36" width="11" height="11" fill="{_COLOURS[size]}"/>'
    return box + _text(x + 16, 46, SIZES[size].title, "start")


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(text)}</text>'
