"""docs/demo.svg shows what the demo shows."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("the demo is recorded on a terminal of its own, which this system has not", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import picture


@pytest.fixture(scope="module")
def shown() -> str:
    return picture.drawn(picture.chosen(picture.recorded()))


def test_the_picture_is_not_stale(shown: str) -> None:
    assert picture.structure(picture.PICTURE.read_text(encoding="utf-8")) == picture.structure(shown), (
        "run scripts/picture"
    )


def test_it_is_a_picture_alone(shown: str) -> None:
    root = ElementTree.fromstring(shown)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags == {"svg", "title", "style", "rect", "circle", "text"}
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "") and "takeback-demo-" not in shown
    width = float(root.get("width", 0))
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        assert float(text.get("x", 0)) + float(text.get("textLength", 0)) <= width, text.text


def test_what_differs_between_runs_is_left_out_and_nothing_else() -> None:
    def of(*lines: str) -> list[str]:
        return picture.structure("".join(f'<text x="1">{line}</text>' for line in lines))

    assert of("at kxvmkxvm, 73.5 KB", "just now") == of("at zzzznnnn, 1 MB", "12 s ago")
    assert of("16 exact") != of("15 exact")
    assert of("took back 3 files") != of("took back 3 folders")


def test_what_was_drawn_over_is_gone() -> None:
    (line,) = picture.lines(b"\r\x1b[Kbar 1\r\x1b[Kbar 2\r\x1b[K\x1b[1mdone\x1b[0m it")
    assert line == [picture.Run("done", frozenset({"1"})), picture.Run(" it", frozenset())]
