"""How a call of Claude Code ended of which its hooks tell nothing: read from lines that the real program wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.agents.sessions.claude import end_of
from takeback.journal.brackets import End

_SAMPLES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "samples" / "transcripts" / "claude.json").read_text()
)["transcripts"]
FIRST = "toolu_0_0"


def _stopped(at: float, ran: bool = True, untold: bool = True) -> End:
    """Its command may take a moment to end; where a person stopped it, it is said that it ran, and no event tells."""
    return End(at, over=at + 0.3, ran=ran, untold=untold)


def _at(case: str, key: str = FIRST) -> float:
    """When the result of a call was written down."""
    from datetime import datetime

    (line,) = (line for line in _SAMPLES[case] if f'"tool_use_id": "{key}"' in json.dumps(line))
    return datetime.fromisoformat(line["timestamp"]).timestamp()


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def _write(transcript: Path, case: str) -> str:
    transcript.write_text("".join(json.dumps(line) + "\n" for line in _SAMPLES[case]))
    return str(transcript)


@pytest.mark.parametrize(
    ("case", "key"),
    [
        ("no at its own prompt", FIRST),
        ("Esc at its own prompt", FIRST),
        ("no at a prompt that a hook asked for", FIRST),
        ("no, with what to do instead", FIRST),
        ("headless, its own prompt", FIRST),
        ("three calls, yes to the first and no to the second", "toolu_0_1"),
        ("a subagent's call refused", "toolu_1_0"),
    ],
)
def test_a_call_that_a_person_or_nobody_allowed_never_ran(transcript: Path, case: str, key: str):
    assert end_of(_write(transcript, case), key, prompted=True) == End(_at(case, key), refused=True)


@pytest.mark.parametrize("case", ["headless, a hook asks", "headless, a hook denies"])
def test_a_call_that_a_hook_kept_from_running_never_ran(transcript: Path, case: str):
    assert end_of(_write(transcript, case), FIRST, prompted=False) == End(_at(case), refused=True)


@pytest.mark.parametrize(
    ("case", "prompted", "ran"),
    [
        ("Esc while it runs", False, True),
        ("Ctrl-C while it runs", False, True),
        ("approved, then Esc while it runs", True, True),
        ("headless, Ctrl-C", False, False),
        ("headless, SIGTERM", False, False),
        ("the terminal is closed", False, False),
        ("a command that fails", False, False),
        ("a command that is killed by its timeout", False, False),
    ],
)
def test_a_call_that_was_stopped_ran_until_then(transcript: Path, case: str, prompted: bool, ran: bool):
    assert end_of(_write(transcript, case), FIRST, prompted) == _stopped(
        _at(case), ran, untold=ran or case == "headless, Ctrl-C"
    )


def test_the_call_before_the_refused_one_is_done(transcript: Path):
    case = "three calls, yes to the first and no to the second"
    assert end_of(_write(transcript, case), FIRST, prompted=True) == End(_at(case), done=True)


def test_one_that_its_agent_was_killed_in_has_no_end(transcript: Path):
    assert end_of(_write(transcript, "SIGKILL"), FIRST, prompted=False) is None


def test_what_another_call_or_prompt_says_does_not_count(transcript: Path):
    stopped, refused = (_SAMPLES[case] for case in ("Esc while it runs", "no at its own prompt"))
    later = json.dumps(stopped).replace(FIRST, "toolu_9_0").replace("prompt 1", "prompt 2")
    lines = [*refused, *json.loads(later)]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert end_of(str(transcript), FIRST, prompted=True) == End(_at("no at its own prompt"), refused=True)
    assert end_of(str(transcript), "toolu_9_0", prompted=False) == _stopped(_at("Esc while it runs"))
    assert end_of(str(transcript), "toolu_0", prompted=False) is None, "the start of a name is another name"


def test_a_refusal_that_is_half_written_says_nothing_yet(transcript: Path):
    """Whole lines reach the file a moment after each other; half a line is none."""
    path = _write(transcript, "Esc while it runs")
    whole = transcript.read_bytes()
    result, stopped = whole.index(b'"tool_result"'), whole.index(b'"[Request interrupted')
    transcript.write_bytes(whole[:result])
    assert end_of(path, FIRST, prompted=False) is None
    transcript.write_bytes(whole[:stopped])
    assert end_of(path, FIRST, prompted=False) == End(), "over, and nobody knows yet whether it ran"


def test_only_the_end_of_a_long_transcript_is_read(transcript: Path):
    path = _write(transcript, "Esc while it runs")
    said = transcript.read_bytes()
    with transcript.open("wb") as file:
        file.truncate(1 << 33)  # a hole of 8 GiB
        file.seek(0, 2)
        file.write(b"\n" + said)
    assert end_of(path, FIRST, prompted=False) == _stopped(_at("Esc while it runs"))


@pytest.mark.parametrize("made", ["nothing", "folder", "bytes", "surrogates"])
def test_what_cannot_be_read_says_nothing(transcript: Path, made: str):
    if made == "folder":
        transcript.mkdir()
    elif made == "bytes":
        transcript.write_bytes(b'\xff\xfe{"type": "user"' + FIRST.encode() + b"\n" * 9)
    path = "\udcff\0" if made == "surrogates" else str(transcript)
    assert end_of(path, FIRST, prompted=False) is None


_NAMES = [
    "type",
    "message",
    "content",
    "tool_use_id",
    "is_error",
    "timestamp",
    "toolDenialKind",
    "text",
    "permissionDecision",
    "decision",
    "promptId",
    "interruptedMessageId",
    "entrypoint",
]
_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.sampled_from([FIRST, "user", "tool_result", "[Request interrupted"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_NAMES),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(lines=st.lists(_json, max_size=6), prompted=st.booleans())
def test_no_content_is_too_odd(tmp_path_factory: pytest.TempPathFactory, lines: list[Any], prompted: bool):
    transcript = tmp_path_factory.mktemp("odd") / "session.jsonl"
    transcript.write_text("\n".join(map(json.dumps, lines)))
    end = end_of(str(transcript), FIRST, prompted)
    assert end is None or isinstance(end, End)
