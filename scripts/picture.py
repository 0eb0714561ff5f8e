"""docs/demo.svg: what the demo shows on a terminal, drawn.

    scripts/demo.py in a pty ─► lines with colours ─► the parts a newcomer should see ─► SVG

Ids, sizes and the temporary folder differ from run to run, and everything else is what the program prints: `--check`
compares without them, so that the picture cannot show what is no longer so.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "demo.svg"
COLUMNS = 108

# (heading, command or "" for all, the line to end with or "" for the end of it)
PARTS = (
    ("An agent is let loose", "", ""),
    ("Take it all back", "takeback rollback --yes", "take this back"),
    ("And undo takes it back again", "takeback log", ""),
)
_LEFT, _TOP, _CELL, _LINE = 18, 46, 8.0, 18
_BUTTONS = "#ff5f57", "#febc2e", "#28c840"
_INK = {"31": "#ff8f8f", "32": "#7ee29a", "33": "#f0c674", "35": "#d3a4ff", "36": "#7fd4e8"}


class Run(NamedTuple):
    """Letters in one style."""

    text: str
    codes: frozenset[str]


Line = list[Run]


def main(words: list[str]) -> int:
    shown = drawn(chosen(recorded()))
    if "--check" not in words:
        PICTURE.write_text(shown, encoding="utf-8")
        print(f"wrote {PICTURE.relative_to(ROOT)}")
        return 0
    if is_stale(shown):
        print("docs/demo.svg does not show what the demo shows: run scripts/picture")
        return 1
    return 0


def is_stale(shown: str) -> bool:
    return not PICTURE.exists() or structure(PICTURE.read_text(encoding="utf-8")) != structure(shown)


# -- the terminal -------------------------------------------------------------


def recorded() -> bytes:
    """All that the demo writes to a terminal."""
    mine, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "50", "DEMO_AT_ONCE": "1"}
    environ.pop("NO_COLOR", None)
    program = [sys.executable, str(ROOT / "scripts" / "demo.py")]
    with subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(mine, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(mine)
    if process.returncode:
        raise SystemExit(b"".join(parts).decode(errors="replace") + "\nthe demo failed")
    return b"".join(parts)


def lines(data: bytes) -> Iterator[Line]:
    """What stands on the terminal in the end, line by line: what was drawn over is gone."""
    for raw in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"):
        last = raw.rpartition("\r")[2] if "\r" in raw else raw
        yield list(_runs(last))


def _runs(line: str) -> Iterator[Run]:
    codes: frozenset[str] = frozenset()
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", line):
        if found := re.fullmatch(r"\x1b\[([0-9;]*)m", part):
            given = [code for code in found[1].split(";") if code and code != "0"]
            codes = codes | frozenset(given) if given else frozenset()
        elif part and not part.startswith("\x1b"):
            yield Run(part, codes)


def chosen(data: bytes) -> list[Line]:
    """The parts that are shown."""
    every = list(lines(data))
    texts = ["".join(run.text for run in line) for line in every]
    out: list[Line] = []
    for heading, command, end in PARTS:
        start = next(n for n, text in enumerate(texts) if text.startswith(f"━━ {heading}"))
        stop = next((n for n in range(start + 1, len(texts)) if texts[n].startswith("━━ ")), len(texts))
        out += [[], every[start]]
        if command:
            start = next(n for n in range(start, stop) if texts[n] == f"$ {command}")
            stop = next((n for n in range(start + 1, stop) if texts[n].startswith("$ ")), stop)
            out.append([])
        else:
            start += 1
        if end:
            stop = next(n for n in range(start, stop) if texts[n].startswith(end)) + 1
        while stop > start and not texts[stop - 1].strip():
            stop -= 1
        out += every[start:stop]
    return [_homely(line) for line in out[1:]]


def _homely(line: Line) -> Line:
    return [run._replace(text=re.sub(r"\S*takeback-demo-\w+", "~", run.text)) for run in line]


# -- the picture --------------------------------------------------------------


def drawn(shown: list[Line]) -> str:
    width = round(2 * _LEFT + COLUMNS * _CELL)
    height = _TOP + _LINE * len(shown) + 12
    rows = [row for n, line in enumerate(shown) for row in _row(line, _TOP + _LINE * (n + 1) - 5)]
    ink = "".join(f".c{code} {{ fill: {colour}; }}" for code, colour in _INK.items())
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        "<title>takeback on a terminal: an agent is let loose, what it did is shown, and taken back</title>",
        "<style>text { font: 13px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; "
        "fill: #d7dce2; "
        f"white-space: pre; }} .c1 {{ font-weight: 700; }} .c2 {{ fill: #8b95a1; }} {ink}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#14181d"/>',
        *(f'<circle cx="{22 + 18 * n}" cy="20" r="6" fill="{colour}"/>' for n, colour in enumerate(_BUTTONS)),
        *rows,
        "</svg>\n",
    ])  # fmt: skip


def _row(line: Line, y: int) -> Iterator[str]:
    at = 0
    for run in line:
        text = run.text.rstrip() if run is line[-1] else run.text
        if text.strip():
            lead = _cells(text) - _cells(text.lstrip())
            size = _cells(text.strip())
            name = " ".join(f"c{code}" for code in sorted(run.codes) if code in (*_INK, "1", "2"))
            x = _LEFT + (at + lead) * _CELL
            style = f' class="{name}"' if name else ""
            said = escape(text.strip(), quote=False)
            yield f'<text x="{x:g}" y="{y}" textLength="{size * _CELL:g}"{style}>{said}</text>'
        at += _cells(text)


def _cells(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# -- what must not differ -----------------------------------------------------

_VARIES = (
    (r"\b[k-z]{8}\b", "ID"),  # ids, whole and shortened
    (r"(?<=  )[k-z]{4,7}(?=  )|^[k-z]{4,7}$", "ID"),
    (r"\d[\d.,]* (?:B|KB|MB)\b", "SIZE"),
    (r"shop-[0-9a-f]{16}", "STORE"),
    (r"just now|\d+ s ago", "AGE"),
)


def structure(picture: str) -> list[str]:
    """The words of a picture, without what differs from run to run."""
    return list(_structure(re.findall(r"<text [^>]*>([^<]*)</text>", picture)))


def _structure(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for pattern, instead in _VARIES:
            text = re.sub(pattern, instead, text)
        yield re.sub(r" {2,}", "  ", text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
