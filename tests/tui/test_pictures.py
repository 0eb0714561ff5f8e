"""The pictures in the documentation show what the program shows."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")

ROOT = Path(__file__).parents[2]


def words(picture: Path) -> str:
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", picture.read_text(encoding="utf-8"), flags=re.S))


def test_they_are_as_the_script_makes_them(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts/ui_pictures.py", tmp_path], check=True, timeout=300)
    made = sorted(tmp_path.glob("*.svg"))
    assert [picture.name for picture in made] == ["ui-plan.svg", "ui.svg"]
    for picture in made:
        kept = ROOT / "docs" / picture.name
        assert words(picture).split() == words(kept).split(), f"run scripts/ui_pictures.py: {picture.name} differs"
        assert "url(" not in re.sub(r"url\(#[^)]*\)", "", kept.read_text(encoding="utf-8"))  # it loads nothing
