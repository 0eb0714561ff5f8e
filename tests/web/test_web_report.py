"""The report's page in a real Chromium: it loads nothing, runs nothing, is readable in both lights, and prints whole."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scene import Scene
from takeback.show import report, report_span
from takeback.surfaces.report import page


@pytest.fixture
def written(ws: Any, tmp_path: Path) -> Path:
    scene = Scene(ws)
    scene.by_hand("base", x_py="a\nb\n")
    scene.turn(
        "add <img src=x onerror=alert(1)><script>document.title='owned'</script>", x_py="a\nB\n", y_py="new line\n"
    )
    ws.record_http("POST", "https://shop.example/mails", status=200, by={"actor": "claude"})
    ws.undo()
    file = tmp_path / "report.html"
    file.write_text(page.written(report.make(ws, report_span.find(ws))), encoding="utf-8")
    return file


@pytest.mark.parametrize("light", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_it_is_alone_and_readable(chromium: Any, written: Path, light: str, width: int) -> None:
    context = chromium.new_context(color_scheme=light, viewport={"width": width, "height": 800})
    tab = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: wrong.append(message.text))
    tab.on("dialog", lambda dialog: (wrong.append("a dialog"), dialog.dismiss()))
    tab.goto(written.as_uri())
    assert asked == [written.as_uri()] and not wrong
    assert tab.title().endswith("what was done, and what was taken back")
    assert tab.get_by_text("add <img src=x onerror=alert(1)>").count() >= 1
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "no sideways scrolling"
    paper, ink = tab.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert (_brightness(paper) > 200) is (light == "light") and abs(_brightness(paper) - _brightness(ink)) > 150
    assert tab.locator("svg rect").count() >= 2 and tab.locator("svg").get_attribute("aria-label")
    tab.locator("summary", has_text="x.py").first.click()
    assert tab.locator(".diff .in").first.inner_text() == "+a"
    levels = tab.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in pairwise(levels)), "no heading is skipped"
    context.close()


def test_what_is_folded_is_printed(chromium: Any, written: Path) -> None:
    context = chromium.new_context()
    tab = context.new_page()
    tab.goto(written.as_uri())
    line = tab.locator(".diff .in").first
    assert not line.is_visible()
    tab.emulate_media(media="print")
    assert line.is_visible()
    context.close()


def _brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue
