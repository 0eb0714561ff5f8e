"""Merging must never lose or invent a line; a diff must turn the old text into the new."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from takeback.text import linediff
from takeback.text.linediff import Conflict, Hunk, count, hunks, is_binary, merge3, pair_renames, similarity

few = st.sampled_from([b"0", b"1", b"2", b"3"])
texts = st.builds(
    lambda lines, end, last: b"".join(line + end for line in lines) + last,
    st.lists(few, max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"0", b"1", b"\r", b"\xff"]),
)


def text(lines: Sequence[object]) -> bytes:
    return b"".join(b"%s\n" % str(line).encode() for line in lines)


def lines_of(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + [b for b in data.split(b"\n")[-1:] if b]


def patched(old: bytes, parts: Sequence[Hunk]) -> bytes:
    """Apply hunks as strictly as `patch -F0` would: every number and every context line has to be right."""
    source, result, done = lines_of(old), [], 0
    for part in parts:
        start = part.old_start - 1 if part.old_lines else part.old_start
        assert start >= done
        result += source[done:start]
        assert len(result) == (part.new_start - 1 if part.new_lines else part.new_start)
        removed, added = [], []
        for shown, following in itertools.zip_longest(part.lines, part.lines[1:]):
            assert not shown.endswith(b"\n")
            line = shown[1:] + (b"" if following == b"\\ No newline at end of file" else b"\n")
            if shown[:1] in b" -":
                removed.append(line)
            if shown[:1] in b" +":
                added.append(line)
        assert (len(removed), len(added)) == (part.old_lines, part.new_lines)
        assert source[start : start + len(removed)] == removed
        result += added
        done = start + len(removed)
    return b"".join(result + source[done:])


@pytest.fixture
def low_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little work allowed that the coarser ways are taken on small inputs too."""
    monkeypatch.setattr(linediff, "_EFFORT", 4)
    monkeypatch.setattr(linediff, "_EFFORT_PER_LINE", 1)


# Binary


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"plain\n", False),
        (b"\xff\xfe", False),
        (b"a\0b", True),
        (b"a" * 7999 + b"\0", True),
        (b"a" * 8000 + b"\0", False),
    ],
)
def test_is_binary(data: bytes, binary: bool) -> None:
    assert is_binary(data) is binary


# Merging

CLEAN = {
    "far apart": ("abcde", "Xbcde", "abcdY", "XbcdY"),
    "adjacent lines": ("ab", "Xb", "aY", "XY"),
    "adjacent lines inside": ("pabq", "pXbq", "paYq", "pXYq"),
    "equal lines, first and last": ("000", "100", "002", "102"),
    "equal lines, neighbours": ("000", "100", "020", "120"),
    "same change on both sides": ("abc", "aXc", "aXc", "aXc"),
    "same change and another": ("abc", "aXc", "aXY", "aXY"),
    "partly the same block": ("abcd", "XYcd", "aYZd", "XYZd"),
    "same insertion and another change": ("abc", "aXbc", "aXbY", "aXbY"),
    "deletion and change next to it": ("abc", "bc", "aYc", "Yc"),
    "equal lines, replaced, and an addition below": ("00abcd", "X0abcdY", "0Zabcd", "XZabcdY"),
    "equal lines, last replaced, and an addition above": ("abcd00", "Yabcd0X", "abcdZ0", "YabcdZX"),
    "deletion beside a change": ("abc", "ac", "abY", "aY"),
    "deletions beside each other": ("abcd", "acd", "abd", "ad"),
    "same deletion among equal lines and another": ("ab55cd", "ab5cd", "b5cd", "b5cd"),
    "same insertion among equal lines and another": ("ab1cd", "ab11cd", "b11cd", "b11cd"),
    "insertions apart": ("ab", "Xab", "abY", "XabY"),
    "insertion before a replaced line": ("ab", "aXb", "aY", "aXY"),
    "insertion after a replaced line": ("ab", "aXb", "Yb", "YXb"),
    "a line moved and another changed": (
        "abcdefghijklmn",
        "bcdefghijklmna",
        "abcdefGhijklmn",
        "bcdefGhijklmna",
    ),
    "lines swapped and the first changed": ("abcdef", "bacdefg", "aBcdef", "Bacdefg"),
    "all of a side deleted, other equal": ("abc", "", "abc", ""),
    "grown beside a changed line": ("abc", "aXYc", "abZ", "aXYZ"),
}
CLASHING = {
    "same line": ("abc", "aXc", "aYc"),
    "two insertions at one place": ("ab", "aXb", "aYb"),
    "two insertions at the end": ("ab", "abX", "abY"),
    "two insertions into nothing": ("", "X", "Y"),
    "one insertion longer": ("ab", "aXb", "aXYb"),
    "changed and deleted": ("abc", "ac", "aYc"),
    "inside a rewritten block": ("abcd", "WXYZ", "abNcd"),
    "both grow where they touch": ("ab", "aXYb", "aZb"),
    "replaced and grown where they touch": ("ab", "XYb", "aZW"),
}


@pytest.mark.parametrize("name", CLEAN)
def test_merges_cleanly(name: str) -> None:
    base, ours, theirs, merged = CLEAN[name]
    assert merge3(text(base), text(ours), text(theirs)) == text(merged)
    assert merge3(text(base), text(theirs), text(ours)) == text(merged)


@pytest.mark.parametrize("name", CLASHING)
def test_conflicts(name: str) -> None:
    base, ours, theirs = map(text, CLASHING[name])
    for here, there in ((ours, theirs), (theirs, ours)):
        with pytest.raises(Conflict):
            merge3(base, here, there)
        marked = merge3(base, here, there, markers=True)
        assert marked.count(b"<<<<<<< yours\n") == marked.count(b">>>>>>> before\n") == 1


def test_markers() -> None:
    base, ours, theirs = b"a\nb\nc\nd\n", b"a\nX\nc\nD\n", b"a\nY\nc\nd\n"
    assert merge3(base, ours, theirs, markers=True, labels=("mine", "agent's")) == (
        b"a\n<<<<<<< mine\nX\n=======\nY\n>>>>>>> agent's\nc\nD\n"
    )


def test_markers_take_the_line_ending_around_them_and_close_an_open_line() -> None:
    assert merge3(b"a\r\nb", b"a\r\nX\r\nx", b"a\r\nY", markers=True) == (
        b"a\r\n<<<<<<< yours\r\nX\r\nx\r\n=======\r\nY\r\n>>>>>>> before\r\n"
    )


def test_bytes_survive() -> None:
    assert merge3(b"a\r\n\xff\nc\rd\nlast", b"A\r\n\xff\nc\rd\nlast", b"a\r\n\xff\nc\rd\nLAST") == (
        b"A\r\n\xff\nc\rd\nLAST"
    )
    assert merge3(b"a\nb\n", b"a\nb", b"A\nb\n") == b"A\nb"


def test_nothing_follows_a_line_that_lost_its_newline() -> None:
    with pytest.raises(Conflict):
        merge3(b"a\nb\n", b"a\nB", b"a\nb\nc\n")
    with pytest.raises(Conflict):
        merge3(b"a\n", b"A", b"a\nb\n")


def test_binary_merges_only_if_one_side_is_untouched() -> None:
    assert merge3(b"\0a", b"\0a", b"\0b") == b"\0b"
    for base, ours, theirs in itertools.permutations([b"a\nb\n", b"a\nc\n", b"\0\n"]):
        with pytest.raises(Conflict):
            merge3(base, ours, theirs, markers=True)


@given(base=texts, side=texts)
def test_merge_identities(base: bytes, side: bytes) -> None:
    assert merge3(base, base, side) == side
    assert merge3(base, side, base) == side
    assert merge3(base, side, side) == side


# What each line becomes: (base, ours, theirs), at most one of the sides in a way of its own.
positions = st.one_of(
    st.tuples(few, few).map(lambda pair: (pair[0], pair[1], pair[0])),
    st.tuples(few, few).map(lambda pair: (pair[0], pair[0], pair[1])),
    st.tuples(few, few).map(lambda pair: (pair[0], pair[1], pair[1])),
)


def by_position(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    return theirs if ours == base else ours


@examples(300, 5000)
@given(st.lists(positions, min_size=3, max_size=6), st.booleans())
def test_replaced_lines_merge_by_position(columns: list[tuple[bytes, bytes, bytes]], ended: bool) -> None:
    end = b"\n" if ended else b""
    base, ours, theirs = (b"\n".join(side) + end for side in zip(*columns))
    assert merge3(base, ours, theirs) == b"\n".join(by_position(*column) for column in columns) + end


@pytest.mark.parametrize("length", [3, 4])
def test_replaced_lines_merge_by_position_without_exception(length: int) -> None:
    kinds = [
        (was, here, there)
        for was, here, there in itertools.product("012", repeat=3)
        if here == there or was in (here, there)
    ]
    if length == 4:
        kinds = [kind for kind in kinds if "2" not in kind]
    for columns in itertools.product(kinds, repeat=length):
        base, ours, theirs = (text(side) for side in zip(*columns))
        merged = text([there if here == was else here for was, here, there in columns])
        assert merge3(base, ours, theirs) == merged


@examples(150, 1000)
@given(st.data())
def test_few_replaced_lines_merge_by_position_in_longer_files(data: st.DataObject) -> None:
    base = data.draw(st.lists(few, min_size=10, max_size=60))
    places = data.draw(st.permutations(range(len(base))))[:10]
    ours, theirs, merged = list(base), list(base), list(base)
    for n, place in enumerate(places):
        side = ours if n % 2 else theirs
        side[place] = merged[place] = data.draw(few)
    assert merge3(*(b"\n".join(lines) for lines in (base, ours, theirs))) == b"\n".join(merged)


@examples(150, 2000)
@given(texts, texts, texts)
def test_merge_is_symmetrical_and_invents_no_line(base: bytes, ours: bytes, theirs: bytes) -> None:
    try:
        merged = merge3(base, ours, theirs)
    except Conflict:
        with pytest.raises(Conflict):
            merge3(base, theirs, ours)
        marked = merge3(base, ours, theirs, markers=True)
        assert b"<<<<<<< yours" in marked and b">>>>>>> before" in marked
    else:
        assert merged == merge3(base, theirs, ours) == merge3(base, ours, theirs, markers=True)
        assert set(lines_of(merged)) <= {*lines_of(base), *lines_of(ours), *lines_of(theirs)}


@examples(150, 1000)
@given(st.data())
def test_edits_of_distinct_blocks_all_arrive(data: st.DataObject) -> None:
    """Blocks replaced, deleted or inserted by either side, at least a line apart: the merge has them all."""
    base, ours, theirs, merged = [], [], [], []
    for n in range(data.draw(st.integers(2, 8))):
        was = [f"{n} {i}" for i in range(data.draw(st.integers(0, 3)))]
        becomes = [f"{n} new {i}" for i in range(data.draw(st.integers(0, 3)))]
        mine = data.draw(st.booleans())
        for side, part in ((base, was), (ours, becomes if mine else was), (theirs, was if mine else becomes)):
            side += [*part, f"{n} between"]
        merged += [*becomes, f"{n} between"]
    assert merge3(text(base), text(ours), text(theirs)) == text(merged)


# Hunks


def test_hunk_numbers() -> None:
    old, new = text("abcdefghijklmnopqrst"), text("abcdXfghijklmnopqrs")
    assert hunks(old, new) == (
        Hunk(2, 7, 2, 7, (b" b", b" c", b" d", b"-e", b"+X", b" f", b" g", b" h")),
        Hunk(17, 4, 17, 3, (b" q", b" r", b" s", b"-t")),
    )
    assert count(hunks(old, new)) == (1, 2)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"", b"", ()),
        (b"a\n", b"a\n", ()),
        (b"", b"a\n", (Hunk(0, 0, 1, 1, (b"+a",)),)),
        (b"a\n", b"", (Hunk(1, 1, 0, 0, (b"-a",)),)),
        (b"a\n", b"a", (Hunk(1, 1, 1, 1, (b"-a", b"+a", b"\\ No newline at end of file")),)),
        (
            b"a\nb",
            b"A\nb",
            (Hunk(1, 2, 1, 2, (b"-a", b"+A", b" b", b"\\ No newline at end of file")),),
        ),
        (b"a\r\n", b"a\n", (Hunk(1, 1, 1, 1, (b"-a\r", b"+a")),)),
    ],
)
def test_hunks(old: bytes, new: bytes, expected: tuple[Hunk, ...]) -> None:
    assert hunks(old, new) == expected


def test_hunks_join_when_their_context_meets() -> None:
    old = list("abcdefghij")
    assert len(hunks(text(old), text(["X", *old[1:7], "Y", *old[8:]]))) == 1
    assert len(hunks(text(old), text(["X", *old[1:8], "Y", *old[9:]]))) == 2


def test_count_is_not_fooled_by_lines_that_look_like_headers() -> None:
    assert count(hunks(b"-- a\n", b"++ b\n\\ c\n")) == (2, 1)


@examples(150, 2000)
@given(texts, texts, st.integers(0, 4))
def test_hunks_turn_old_into_new(old: bytes, new: bytes, context: int) -> None:
    parts = hunks(old, new, context)
    assert patched(old, parts) == new
    added, removed = count(parts)
    assert added - removed == len(lines_of(new)) - len(lines_of(old))


@given(st.lists(few, max_size=9), st.lists(few, max_size=9))
def test_hunks_are_as_short_as_can_be(a: list[bytes], b: list[bytes]) -> None:
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, j in itertools.product(range(len(a)), range(len(b))):
        longest[i + 1][j + 1] = longest[i][j] + 1 if a[i] == b[j] else max(longest[i][j + 1], longest[i + 1][j])
    common = longest[-1][-1]
    old, new = (b"".join(line + b"\n" for line in lines) for lines in (a, b))
    assert count(hunks(old, new)) == (len(b) - common, len(a) - common)


# Bounded work


@pytest.mark.usefixtures("low_effort")
class TestCoarse:
    @examples(150, 2000)
    @given(st.lists(st.integers(0, 12)), st.lists(st.integers(0, 12)))
    def test_hunks_turn_old_into_new(self, a: list[int], b: list[int]) -> None:
        assert patched(text(a), hunks(text(a), text(b), 1)) == text(b)

    def test_lines_that_occur_once_are_held_on_to(self) -> None:
        old = [*"xxx", "one", *"xyx", "two", *"yyx"]
        new = [*"yxy", "one", *"yyy", "two", *"xxxy"]
        shown = [line for part in hunks(text(old), text(new)) for line in part.lines]
        assert b" one" in shown and b" two" in shown

    @given(st.lists(positions, min_size=3, max_size=6))
    def test_replaced_lines_merge_by_position(self, columns: list[tuple[bytes, bytes, bytes]]) -> None:
        base, ours, theirs = (b"\n".join(side) for side in zip(*columns))
        assert merge3(base, ours, theirs) == b"\n".join(by_position(*column) for column in columns)


def test_big_repetitive_files_finish() -> None:
    rng = random.Random(1)
    base = [rng.randrange(3) for _ in range(50_000)]
    shuffled = rng.sample(base, len(base))
    noisy = [rng.randrange(3) if rng.random() < 0.3 else line for line in base if rng.random() < 0.9]
    periodic = [0, 1] * 25_000
    for old, new in [
        (base, shuffled),
        (base, noisy),
        (periodic, [2, *periodic[7:], 2]),
        (base, periodic[1:]),
    ]:
        assert patched(text(old), hunks(text(old), text(new))) == text(new)
    with pytest.raises(Conflict):
        merge3(text(base), text(noisy), text(shuffled))


def test_big_files_with_many_edits_merge() -> None:
    base = [f"line {n // 2}" for n in range(50_000)]
    theirs = [f"edited {n}" if n % 100 == 0 else line for n, line in enumerate(base)]
    del theirs[20_001:20_050]
    assert merge3(text(base), text(["top", *base]), text(theirs)) == text(["top", *theirs])
    with pytest.raises(Conflict):
        merge3(text(base), text([*base[:40_000], "mine", *base[40_001:]]), text(theirs))


def test_big_rewritten_file_keeps_its_anchors() -> None:
    """More edits than the shortest diff may cost: the lines that occur once still line up."""
    rng = random.Random(2)
    base = [f"line {n}" for n in range(50_000)]
    theirs = [line if rng.random() < 0.5 else "gone" for line in base if rng.random() < 0.9]
    ours = ["top", *base]
    merged = merge3(text(base), text(ours), text([base[0], *theirs]))
    assert merged == text(["top", base[0], *theirs])


# Renames


def test_similarity() -> None:
    assert similarity(b"", b"") == similarity(b"\0", b"\0") == 1.0
    assert similarity(b"\0a\n", b"\0a\nb\n") == similarity(b"", b"a") == similarity(b"a\n", b"b\n") == 0.0
    assert similarity(text("abcd"), text("dcba")) == 1.0
    assert similarity(text("aab"), text("abb")) == pytest.approx(2 / 3)
    assert similarity(b"a long line\nx\n", b"a long line\ny\n") > 0.8


@given(texts, texts)
def test_similarity_is_a_symmetrical_share(a: bytes, b: bytes) -> None:
    assert 0 <= similarity(a, b) == similarity(b, a) <= 1


def paired(deleted: dict[bytes, bytes], created: dict[bytes, bytes], limit: int = 200) -> dict[bytes, bytes]:
    return pair_renames(deleted, created, hash, lambda data: data if len(data) < 100 else None, limit=limit)


def test_the_same_content_prefers_the_same_name() -> None:
    deleted = {b"a/one": b"x", b"a/two": b"x", b"a/three": b"x"}
    created = {b"b/two": b"x", b"b/any": b"x", b"b/one": b"x"}
    assert paired(deleted, created) == {b"b/any": b"a/three", b"b/one": b"a/one", b"b/two": b"a/two"}


def test_the_same_content_under_another_name_prefers_the_same_folder() -> None:
    deleted = {b"dist/login.py": b"x", b"src/login.py": b"x"}
    assert paired(deleted, {b"src/auth.py": b"x"}) == {b"src/auth.py": b"src/login.py"}


def test_each_deleted_path_is_used_once() -> None:
    assert paired({b"old": b"x"}, {b"new2": b"x", b"new1": b"x"}) == {b"new1": b"old"}
    assert paired({b"old": text("abcdef")}, {b"n1": text("abcdXY"), b"n2": text("abcdeX")}) == {b"n2": b"old"}


def test_similar_content_pairs_above_the_threshold_only() -> None:
    deleted = {b"a": text("abcde"), b"b": text("vwxyz")}
    created = {b"A": text("abcdX"), b"B": text("vwPQR")}
    assert paired(deleted, created) == {b"A": b"a"}


def test_an_equally_similar_namesake_wins() -> None:
    deleted = {b"a/other": text("abcde"), b"z/same": text("abcde")}
    assert paired(deleted, {b"n/same": text("abcdX")}) == {b"n/same": b"z/same"}


def test_what_is_too_large_or_binary_or_beyond_the_limit_is_not_compared() -> None:
    long = "abcdefgh" * 10
    assert paired({b"a": text(long)}, {b"b": text(long + "x")}) == {}
    assert paired({b"a": b"\0" + text("abcde")}, {b"b": b"\0" + text("abcdX")}) == {}
    deleted = {b"a": text("12345"), b"b": text("abcde")}
    assert paired(deleted, {b"c": text("abcdX")}, limit=1) == {}


@given(
    st.dictionaries(st.binary(max_size=2), texts),
    st.dictionaries(st.binary(max_size=2), texts),
    st.randoms(use_true_random=False),
)
def test_pairs_do_not_depend_on_order(
    deleted: dict[bytes, bytes], created: dict[bytes, bytes], rng: random.Random
) -> None:
    pairs = paired(deleted, created)
    assert len(set(pairs.values())) == len(pairs)
    assert set(pairs) <= set(created) and set(pairs.values()) <= set(deleted)
    shuffled = [dict(rng.sample(sorted(files.items()), len(files))) for files in (deleted, created)]
    assert list(paired(*shuffled).items()) == list(pairs.items())
