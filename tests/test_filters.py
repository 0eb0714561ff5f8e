from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import UsageError
from takeback.journal.filters import KEYS, KINDS, STATES, parse
from takeback.model.effects import ACT_VERDICTS

NOW = datetime(2026, 3, 10, 12, 0).timestamp()


@dataclass(frozen=True)
class Entry:
    id: str = "kmnoklpq"
    kind: str = "effect"
    label: str = "Before the big Refactor"
    at: float = NOW - 3600
    actor: str = "claude"
    summary: str = "edited 3 files: src/auth.py, src/app/[id]/page.tsx"
    domain: str = "files"
    verdict: str = "exact"
    paths: Sequence[str] = ("src/auth.py", "src/app/[id]/page.tsx", "docs/a b.md")
    turns: Sequence[str] = ("kxvmnopq", "znoplmkk")
    sessions: Sequence[str] = ("5F0C-2e9a",)
    calls: Sequence[str] = ("qqrstuvw",)


ENTRY = Entry()


@pytest.mark.parametrize(("key", "values"), [("kind", KINDS), ("state", STATES), ("verdict", ACT_VERDICTS)])
def test_every_value_that_is_known_is_told(key: str, values: Sequence[str]):
    assert set(values) <= set(KEYS[key][1].replace(",", " ").replace(";", " ").split())


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("   ", True),
        # names
        ("actor:claude", True),
        ("actor:Claude", True),
        ("ACTOR:claude", True),
        ("actor:cl*", True),
        ("actor:clau", False),
        ("actor:codex", False),
        ("actor:codex,claude", True),
        ("-actor:codex", True),
        ("-actor:codex,claude", False),
        ("domain:files", True),
        # turns, sessions and calls, by how they begin
        ("turn:kxv", True),
        ("turn:ZNO", True),
        ("turn:xvm", False),
        ("-turn:kxvmnopq", False),
        ("session:5f0c", True),
        ("session:2e9a", False),
        ("call:qq", True),
        ("call:kx,qqrs", True),
        ("call:kx", False),
        ("domain:http", False),
        ("verdict:exact", True),
        ("verdict:EX*", True),
        ("verdict:held,irreversible", False),
        ("kind:effect", True),
        ("kind:checkpoint,takeback", False),
        ("kind:effect,takeback", True),
        # paths
        ("path:src/", True),
        ("path:src", True),
        ("path:sr", False),
        ("path:src/auth.py", True),
        ("path:./src/auth.py", True),
        ("path:auth.py", False),
        ("path:*.py", True),
        ("path:*/auth.py", True),
        ("path:src/a?th.py", True),
        ("path:src/*/", True),
        ("path:lib/*/", False),
        ("path:docs/*.rst,docs/*.md", True),
        ("path:src/app/[id]/page.tsx", True),
        ("path:src/app/[id]/*", True),
        ("path:src/app/[xid]/*", False),
        ('path:"docs/a b.md"', True),
        ("-path:lib/", True),
        # text
        ("refactor", True),
        ("EDITED", True),
        ("refactor edited", True),
        ("refactor deleted", False),
        ("-deleted", True),
        ('"big refactor"', True),
        ('"refactor big"', False),
        ('-"big refactor"', False),
        ("auth.py,", True),
        ("label:refactor", True),
        ('label:"the big"', True),
        ("label:edited", False),
        ('label:"nope, really",big', True),
        ("id:kmno", True),
        ("id:KMNO", True),
        ("id:mno", False),
        # times: the entry is an hour old, at 11:00 on 2026-03-10
        ("since:2h", True),
        ("since:1h", True),
        ("since:59m", False),
        ("until:59m", True),
        ("until:1h30m", False),
        ("since:2026-03-10", True),
        ("since:2026-03-11", False),
        ("until:2026-03-10", True),
        ("until:2026-03-09", False),
        ("since:2026-03-10 until:2026-03-10", True),
        ("since:2026-03-10T10:59", True),
        ("since:2026-03-10T11:00:01", False),
        ('until:"2026-03-10 11:00"', True),
        ("-since:59m", True),
        # together
        ("actor:claude path:src/ domain:files verdict:exact since:2h kind:effect big", True),
        ("actor:claude path:src/ domain:files verdict:exact since:2h kind:takeback big", False),
    ],
)
def test_matches(text: str, matches: bool) -> None:
    assert parse(text).matches(ENTRY, NOW) is matches


def test_a_time_with_a_zone() -> None:
    moment = datetime.fromtimestamp(ENTRY.at).astimezone()
    assert parse(f"since:{moment.isoformat()}").matches(ENTRY, NOW)
    assert not parse(f"since:{(moment + timedelta(seconds=1)).isoformat()}").matches(ENTRY, NOW)


def test_a_duration_counts_from_the_time_it_is_asked() -> None:
    recent = parse("since:2h")
    assert recent.matches(ENTRY, NOW) and not recent.matches(ENTRY, NOW + 7200)


def test_an_entry_without_paths() -> None:
    assert not parse("path:*").matches(Entry(paths=()), NOW)
    assert parse("-path:*").matches(Entry(paths=()), NOW)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour:red", "unknown key 'colour'"),
        ("https://example.org", "unknown key 'https'"),
        ("kind:effects", "unknown kind 'effects'"),
        ("verdict:excat", "unknown verdict 'excat'"),
        ("actor:", "nothing to look for in 'actor:'"),
        ("actor:,", "nothing to look for"),
        ('""', "nothing to look for"),
        ("-", "nothing to look for in '-'"),
        ('"open', "a quote is not closed"),
        ('actor:"open', "a quote is not closed"),
        ("since:tomorrow", "'tomorrow' is neither a duration nor a date"),
        ("since:2026-13-01", "neither a duration nor a date"),
        ("since:30", "neither a duration nor a date"),
    ],
)
def test_nonsense_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    assert said in error.value.message and error.value.hint


def test_an_unknown_key_lists_the_keys() -> None:
    with pytest.raises(UsageError) as error:
        parse("colour:red")
    assert all(key in error.value.hint for key in KEYS)


def test_a_quoted_key_is_text() -> None:
    assert parse('"files: src"').matches(ENTRY, NOW)


@given(st.text())
def test_any_text_is_a_filter_or_a_usage_error(text: str) -> None:
    try:
        parse(text).matches(ENTRY, NOW)
    except UsageError as error:
        assert error.hint


plain = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5)
terms = st.one_of(
    plain,
    st.builds("{}:{}".format, st.sampled_from(["actor", "label", "path", "id", "domain"]), plain),
    st.sampled_from(["actor:claude", "kind:effect", "path:src/", "since:2h", "big", "until:3h"]),
)


@given(st.lists(terms, max_size=4))
def test_all_terms_must_match_and_minus_turns_one_round(texts: list[str]) -> None:
    each = [parse(text).matches(ENTRY, NOW) for text in texts]
    assert parse(" ".join(texts)).matches(ENTRY, NOW) is all(each)
    assert [parse(f"-{text}").matches(ENTRY, NOW) for text in texts] == [not one for one in each]
