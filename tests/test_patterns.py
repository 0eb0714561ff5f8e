"""A pattern that is compiled later is the pattern that was written."""

from __future__ import annotations

import re

import pytest

from takeback.patterns import pattern


def test_does_what_the_compiled_one_does() -> None:
    ours, theirs = pattern(r"(a+)(?P<b>b)?", re.IGNORECASE), re.compile(r"(a+)(?P<b>b)?", re.IGNORECASE)
    for text in ("xAAb", "", "aab", "b"):
        for method in ("search", "match", "fullmatch"):
            found = [getattr(one, method)(text) for one in (ours, theirs)]
            assert [one and (one.span(), one.groups()) for one in found[:1]] == [
                one and (one.span(), one.groups()) for one in found[1:]
            ]
        assert ours.findall(text) == theirs.findall(text)
        assert ours.sub("-", text) == theirs.sub("-", text)
    assert (ours.pattern, ours.flags, ours.groupindex) == (theirs.pattern, theirs.flags, theirs.groupindex)


def test_is_compiled_by_its_first_use() -> None:
    broken = pattern("(")
    with pytest.raises(re.error):
        broken.search("")
