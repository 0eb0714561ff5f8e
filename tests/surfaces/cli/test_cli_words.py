"""Small words: safe names, ages, counts, widths."""

from __future__ import annotations

import unicodedata

import pytest

from takeback.show.turns import TurnSeen
from takeback.surfaces.cli import terminal
from takeback.surfaces.wording import log as log_of_wording
from takeback.surfaces.wording.text import (
    age,
    cells,
    clip,
    clip_middle,
    clip_path,
    counted,
    listed,
    pad,
    safe,
    safe_line,
)


def test_no_character_that_steers_a_terminal_is_left() -> None:
    everything = "".join(map(chr, range(0x110000)))
    for c in safe(everything):
        assert unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp"), hex(ord(c))
        assert unicodedata.bidirectional(c) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        ), c


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain ü 日本", "plain ü 日本"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\udcff", "\\xff"),
        ("\u202e", "\\u202e"),
        ("\x9b", "\\x9b"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_safe(given: str, shown: str) -> None:
    assert safe(given) == shown
    assert safe(shown) == shown


def test_lines_of_files_keep_their_tabs() -> None:
    assert safe_line(b"\tx\x1b\xff\r") == "\tx\\x1b\\xff\\r"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "just now"),
        (3, "just now"),
        (42, "42 s ago"),
        (60, "1 min ago"),
        (200, "3 min ago"),
        (3600, "1 h ago"),
        (86400, "1 day ago"),
        (86400 * 3.5, "3 days ago"),
        (86400 * 20, "2 weeks ago"),
        (86400 * 100, "3 months ago"),
    ],
)
def test_age(seconds: float, said: str) -> None:
    assert age(seconds) == said


def test_counts_and_lists() -> None:
    assert counted(1, "file") == "1 file"
    assert counted(12345, "file") == "12,345 files"
    assert counted(2, "entry") == "2 entries"
    assert listed(["a", "b\x1b", "c", "d"]) == "a, b\\x1b, c, …"


def test_widths() -> None:
    assert cells("日本") == 4
    assert cells("e\u0301") == 1
    assert cells("\x1b[1mx\x1b[0m") == 1
    assert pad("日", 4) == "日  "
    assert clip("abcdef", 4) == "abc…"
    assert clip_path("src/long/name.py", 8) == "…name.py"
    assert clip("日本語", 6) == "日本語" and clip("日本語x", 6) == "日本…" and clip_path("x日本語", 6) == "…本語"
    assert clip("e\u0301e\u0301e", 3) == "e\u0301e\u0301e" and clip("e\u0301e\u0301e", 2) == "e\u0301…"


def test_a_text_however_long_is_cut_by_reading_its_beginning(monkeypatch):
    """A prompt may hold a whole file: the list of a hundred such turns has to come up."""
    read = []
    monkeypatch.setattr("takeback.surfaces.wording.text.cells", lambda text: read.append(len(text)) or cells(text))
    long = "é" * 3_000
    assert clip(long, 200) == "é" * 199 + "…" and clip_path(long, 200) == "…" + "é" * 199
    assert clip_middle(long, 200) == "é" * 133 + "…" + "é" * 66
    assert sum(read) < 2_500


def test_a_branch_whose_name_turns_text_round_is_written_out() -> None:
    turn = TurnSeen("k" * 32, "claude", "s1", "push", 0.0, (), 1, (), 0, 0, "branch \u202efdp", 0, True)
    assert "git: branch \\u202efdp" in log_of_wording.heading(terminal.Terminal({}), turn)
