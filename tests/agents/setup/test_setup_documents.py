"""Configuration as text: ours goes in and comes out, and whatever else is in the file stays byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.agents.setup import jsonc
from takeback.agents.setup.document import Document, without

OURS = {"hooks": [{"type": "command", "command": "OURS"}]}
EVENTS = ("PreToolUse", "Stop")


def is_ours(handler: Any) -> bool:
    return isinstance(handler, dict) and handler.get("command") == "OURS"


# -- documents as people write them ------------------------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=6)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)
theirs = st.fixed_dictionaries({"hooks": st.lists(st.fixed_dictionaries({"command": st.text(max_size=5)}), max_size=2)})
hooks = st.dictionaries(st.sampled_from([*EVENTS, "Other"]), st.lists(theirs, max_size=2), max_size=3)
settings = st.builds(
    lambda other, mine: {**other, **({"hooks": mine} if mine is not None else {})},
    st.dictionaries(st.text(max_size=5).filter(lambda key: key != "hooks"), values, max_size=3),
    st.one_of(st.none(), hooks),
)


@st.composite
def documents(draw: Any) -> str:
    """A settings file, spelled in any way that a person might."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    gap = st.sampled_from(
        [
            "",
            "",
            " ",
            "  ",
            "\t",
            newline,
            newline + "    ",
            "/* c, ] } */",
            f" // note, ] {newline}",
            f"{newline}// x{newline}",
        ]
    )

    def spelled(value: Any) -> str:
        if isinstance(value, dict):
            parts = [
                f"{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(gap)}:{draw(gap)}{spelled(inner)}"
                for key, inner in value.items()
            ]
            return "{" + joined(parts) + "}"
        if isinstance(value, list):
            return "[" + joined([spelled(inner) for inner in value]) + "]"
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def joined(parts: list[str]) -> str:
        text = draw(gap)
        for index, part in enumerate(parts):
            comma = "," if index + 1 < len(parts) or draw(st.booleans()) else ""
            text += f"{part}{draw(gap)}{comma}{draw(gap)}"
        return text

    return draw(st.sampled_from(["", "\ufeff"])) + draw(gap) + spelled(draw(settings)) + draw(gap)


def put_in(text: str) -> Document:
    document = Document(text)
    for event in EVENTS:
        document.append(("hooks", event), OURS)
    document.set(("mcpServers", "takeback"), {"command": "x"}) if document.find(("mcpServers",)) is None else None
    return document


def take_out(text: str, made: Any) -> Document:
    document = Document(text, made)
    for event in EVENTS:
        document.take_out_within(("hooks", event), "hooks", is_ours)
    if made and ("mcpServers", "takeback") in made:
        document.drop(("mcpServers", "takeback"))
    return document


def value_of(text: str) -> Any:
    return jsonc.parse(text).value


@given(documents())
def test_what_went_in_comes_out_byte_for_byte(text: str) -> None:
    document = put_in(text)
    after = value_of(document.text)
    for event in EVENTS:
        assert after["hooks"][event][-1] == OURS
    assert without(document.text, document.spans()) == text


@given(documents())
def test_nothing_else_is_changed(text: str) -> None:
    before, after = value_of(text), value_of(put_in(text).text)
    if "mcpServers" not in before:
        assert after.pop("mcpServers") == {"takeback": {"command": "x"}}
    for event in EVENTS:
        assert after["hooks"][event].pop() == OURS
        if event not in before.get("hooks", {}):
            assert after["hooks"].pop(event) == []
    if "hooks" not in before:
        assert after.pop("hooks") == {}
    assert after == before and list(after) == list(before)


@given(documents())
def test_without_a_memory_of_where_it_went_it_still_comes_out_exactly_where_others_had_something(text: str) -> None:
    document = put_in(text)
    found = take_out(document.text, document.made)
    assert found.root.value == value_of(text)
    if all(value_of(text).get("hooks", {}).get(event) for event in EVENTS) and value_of(text).get("mcpServers"):
        assert found.text == text


@given(documents(), settings, st.booleans())
def test_what_others_write_meanwhile_stays(text: str, added: dict[str, Any], anew: bool) -> None:
    """A key at the top and a hook in each list, put in by hand or by an agent that writes the whole file anew."""
    document = put_in(text)
    meanwhile = Document(document.text)
    theirs = {"hooks": [{"command": "THEIRS"}]}
    meanwhile.append(("hooks", "PreToolUse"), theirs)
    inner = json.loads(json.dumps(value_of(meanwhile.text)))
    written = json.dumps(inner, indent=4) if anew else meanwhile.text
    left = take_out(written, document.made).root.value

    wanted = value_of(text)
    wanted.setdefault("hooks", {}).setdefault("PreToolUse", []).append(theirs)
    assert left == wanted


def test_a_handler_that_joined_our_group_stays_in_it() -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"command": "OURS"}, {"command": "theirs"}]}]}}'
    document = Document(text, None)
    assert document.take_out_within(("hooks", "Stop"), "hooks", is_ours) == 1
    assert document.root.value == {"hooks": {"Stop": [{"hooks": [{"command": "theirs"}]}]}}


def test_it_is_written_the_way_the_file_is() -> None:
    tabs = put_in(
        '{\n\t"a": 1, // one\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}, // theirs\n\t\t],\n\t},\n}\n'
    ).text
    assert tabs == (
        '{\n\t"a": 1, // one\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}, // theirs\n'
        '\t\t\t{"hooks": [{"type": "command", "command": "OURS"}]},\n\t\t],\n'
        '\t\t"PreToolUse": [\n\t\t\t{"hooks": [{"type": "command", "command": "OURS"}]}\n\t\t],\n\t},\n'
        '\t"mcpServers": {\n\t\t"takeback": {"command": "x"}\n\t},\n}\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[1", '{"a"}', '{"a": }', "{,}", "[,]", '{"a": 1 "b": 2}', "{} x", '{"a": 01}', '{"a": .5}', "{'a': 1}",
        '{"a": "\n"}', '{"a": "\\x"}', "/* {}", '{"a": nul}', "[" * 500 + "]" * 500, "{a: 1}",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(jsonc.Malformed):
        Document(text)


@pytest.mark.parametrize("text", ["[]", "1", '"x"', "null"])
def test_a_top_level_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(jsonc.Malformed, match="no object"):
        Document(text)


@given(values)
def test_plain_json_reads_as_python_reads_it(value: Any) -> None:
    text = json.dumps(value, indent=1)
    assert value_of(text) == json.loads(text)
