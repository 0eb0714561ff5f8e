"""quickjson gives what json gives, for everything that json is given."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from takeback import quickjson

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
VALUES = st.recursive(
    PLAIN,
    lambda below: st.lists(below) | st.dictionaries(st.text() | st.integers() | st.none() | st.floats(), below),
    max_leaves=20,
)


def outcome(act, *given, **named):
    try:
        return repr(act(*given, **named))
    except Exception as error:
        return type(error), str(error)


@given(VALUES, st.booleans())
@example({"b": 1, "a": [float("inf"), "\ud800"]}, True)
@example({"a": 1, 2: 3}, True)
@example({"a": {1}}, False)
@example({(1, 2): 3}, False)
@example("told", False)
def test_writes_as_json_does(value, is_sorted: bool):
    assert outcome(quickjson.dumps, value, sort_keys=is_sorted) == outcome(json.dumps, value, sort_keys=is_sorted)
    assert outcome(quickjson.dumps, value, compact=True) == outcome(json.dumps, value, separators=(",", ":"))
    assert outcome(quickjson.dumps, [{1}, value], default=str) == outcome(json.dumps, [{1}, value], default=str)


@given(
    VALUES.map(json.dumps), st.text(" \t\n\r", max_size=3), st.sampled_from(("utf-8", "utf-8-sig", "utf-16", "utf-32"))
)
def test_reads_as_json_does(text: str, blank: str, encoding: str):
    for told in (text, blank + text + blank, text[:-1], text + "x", text.replace("e", "\x01")):
        assert outcome(quickjson.loads, told) == outcome(json.loads, told)
        assert outcome(quickjson.loads, told.encode(encoding)) == outcome(json.loads, told.encode(encoding))


@given(st.binary())
@example(b'"\xed\xa0\x80"')
@example(b'{"a": 1, "a": 2}')
@example(b"[" * 100_000)
@example(b"")
@example(b"-Infinity")
def test_reads_any_bytes_as_json_does(told: bytes):
    assert outcome(quickjson.loads, told) == outcome(json.loads, told)


def test_a_circle_is_refused_and_the_next_value_is_not():
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="Circular"):
        quickjson.dumps(circle)
    assert quickjson.dumps([[], []]) == "[[], []]"


def test_without_the_parts_in_c_there_is_json():
    told = (
        "import sys; sys.modules['_json'] = None\nfrom takeback import quickjson\n"
        "print(quickjson.dumps({'b': 1, 'a': 'é'}, sort_keys=True, compact=True), quickjson.loads(b' [1] '))"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert done.stdout == '{"a":"\\u00e9","b":1} [1]\n', done.stderr


@pytest.mark.parametrize("torn", ['{"a": "b', '{"a": 1', '"abc', '{"a":1,', "[1", "{", '{"a" 1}'])
def test_what_is_torn_is_told_as_such_where_json_is_not_loaded(torn: str):
    """Its part in C raises the errors of `json`, and of none that is not there."""
    code = "import sys; from takeback import quickjson\nassert 'json' not in sys.modules\nquickjson.loads(sys.argv[1])"
    ran = subprocess.run([sys.executable, "-c", code, torn], capture_output=True, text=True, check=False)
    assert "JSONDecodeError" in ran.stderr and "SystemError" not in ran.stderr, ran.stderr
