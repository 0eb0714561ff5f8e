"""Sizes and durations: read strictly, shown shortly."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import UsageError
from takeback.text.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1000", 1000),
        ("1b", 1),
        ("5GB", 5 * 1000**3),
        ("5g", 5 * 1000**3),
        ("1.5 GiB", 3 * 1024**3 // 2),
        ("0.5kb", 500),
        (" 2 MiB ", 2 * 1024**2),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_parse_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "0", "0GB", "0.1", "-5GB", "GB", "5 bananas", "5,5GB", "1e3", "9" * 5000, "99999999PB", "٣GB"],
)
def test_parse_size_refuses(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_size(text)
    assert error.value.hint


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45s", 45),
        ("90m", 5400),
        ("2h", 7200),
        ("30d", 30 * 86400),
        ("1w", 7 * 86400),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("0.5s", 0.5),
        ("1w2d3h4m5s", 7 * 86400 + 2 * 86400 + 3 * 3600 + 4 * 60 + 5),
    ],
)
def test_parse_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "30", "-2h", "2 fortnights", "30m1h", "1h1h", "h", "9" * 400 + "d"])
def test_parse_duration_refuses(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_duration(text)
    assert error.value.hint


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 KB"),
        (3_400_000, "3.4 MB"),
        (999_949, "999.9 KB"),
        (999_950, "1 MB"),
        (10 * 1000**3, "10 GB"),
        (10**19, "10000 PB"),
    ],
)
def test_format_size(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-1, "0s"),
        (0.5, "0.5s"),
        (45, "45s"),
        (59.96, "1m"),
        (60, "1m"),
        (5400, "1h30m"),
        (3605, "1h"),
        (93784, "1d2h"),
        (30 * 86400, "30d"),
    ],
)
def test_format_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(1, 2**60))
def test_a_formatted_size_can_be_read_again(size: int) -> None:
    assert abs(parse_size(format_size(size)) - size) <= size * 0.05


@given(st.floats(1, 10**9))
def test_a_formatted_duration_can_be_read_again(seconds: float) -> None:
    assert abs(parse_duration(format_duration(seconds)) - seconds) <= seconds * 0.05


@given(st.text())
def test_any_text_is_a_size_or_a_usage_error(text: str) -> None:
    for parse in (parse_size, parse_duration):
        with suppress(UsageError):
            assert parse(text) > 0
