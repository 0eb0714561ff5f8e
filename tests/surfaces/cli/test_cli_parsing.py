"""Options and words, in every way people write them."""

from __future__ import annotations

import pytest

from takeback.errors import UsageError
from takeback.surfaces.cli.parsing import parse
from takeback.surfaces.cli.verb_list import VERBS


@pytest.mark.parametrize(
    ("verb", "words", "found"),
    [
        ("log", "-n 5", {"most": "5"}),
        ("log", "-n5", {"most": "5"}),
        ("log", "-n=5", {"most": "5"}),
        ("log", "-n -5", {"most": "-5"}),
        ("log", "-qn5 actor:bob", {"most": "5", "quiet": True, "filter": ["actor:bob"]}),
        ("log", "a -actor:bob b", {"filter": ["a", "b", "-actor:bob"]}),
        ("log", "", {"most": None, "filter": [], "json": False, "directory": [], "color": True}),
        ("prune", "--keep=3 --older-than 30d", {"keep": "3", "older_than": "30d", "max_bytes": None}),
        ("prune", "--keep=", {"keep": ""}),
        ("prune", "--all --no-color", {"everything": True, "color": False}),
        ("undo", "-qy 3", {"quiet": True, "yes": True, "n": ["3"]}),
        ("undo", "-2", {"n": ["-2"]}),
        ("undo", "--actor a --actor=b", {"actor": ["a", "b"]}),
        ("undo", "-C a -Cb", {"directory": ["a", "b"], "actor": None}),
        ("restore", "3 --to out a b", {"checkpoint": "3", "to": "out", "path": ["a", "b"]}),
        ("restore", "", {"checkpoint": "", "path": []}),
        ("checkpoint", "- x -- --json -y", {"label": ["-", "x", "--json", "-y"], "json": False}),
        ("rollback", "--yes -- start", {"to": ["start"], "yes": True}),
        ("undo", "-- -2", {"n": ["-2"]}),
        ("redo", "-- 5", {"n": ["5"]}),
        ("show", "-- -x", {"name": "-x"}),
        ("restore", "--to out -- 3 a", {"checkpoint": "3", "path": ["a"]}),
        ("log", "-actor:bob -- -x", {"filter": ["-actor:bob", "-x"]}),
        ("run", "-- ls -l", {"words": [], "after": ["ls", "-l"]}),
        ("record", "command -- ls -l", {"kind": "command", "words": [], "after": ["ls", "-l"]}),
        ("diff", "3 -- 4", {"what": ["3"], "after": ["4"]}),
        ("show", "--nothing --help", {"help": True}),
    ],
)
def test_what_is_asked(verb: str, words: str, found: dict[str, object]) -> None:
    asked = vars(parse(verb, words.split())[1])
    assert {name: asked.get(name) for name in found} == found


def test_a_sentence_is_no_option() -> None:
    assert parse("checkpoint", ["--before the refactor"])[1].label == ["--before the refactor"]


def test_one_run_leaves_nothing_to_the_next() -> None:
    assert parse("log", ["-C", "a"])[1].directory == ["a"]
    assert parse("log", [])[1].directory == []


@pytest.mark.parametrize(
    ("verb", "words", "message"),
    [
        ("prune", "--keep", "argument --keep: expected one argument"),
        ("prune", "--keep --yes", "argument --keep: expected one argument"),
        ("log", "-qn", "argument -n: expected one argument"),
        ("status", "--json=1", "argument --json: ignored explicit argument '1'"),
        ("status", "-qx", "argument -q/--quiet: ignored explicit argument 'x'"),
        ("status", "--js", "unrecognized arguments: --js"),
        ("init", "--actor 5 -y", "unrecognized arguments: --actor 5"),
        ("show", "a --stat b", "unrecognized arguments: b"),
        ("status", "-- x --json", "unrecognized arguments: x --json"),
        ("show", "a -- b", "unrecognized arguments: b"),
        ("pin", "--bogus", "the following arguments are required: CHECKPOINT"),
    ],
)
def test_what_is_refused(verb: str, words: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(verb, words.split())
    assert (refused.value.message, refused.value.hint) == (message, f"see takeback help {verb}")


@pytest.mark.parametrize("verb", VERBS)
def test_no_word_after_two_dashes_is_lost(verb: str) -> None:
    words = [f"word{n}" for n in range(9)]
    try:
        asked = vars(parse(verb, ["--", *words])[1])
    except UsageError as refused:
        assert refused.message.endswith(words[-1])
        return
    found = [word for value in asked.values() for word in (value if isinstance(value, list) else [value])]
    assert set(words) <= set(found)
