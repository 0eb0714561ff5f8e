"""One voice: what every message of the program has in common, read from the source.

what happened, to what            lower case, no full stop, no shouting, nobody is begged or blamed
  → what to do next               a command or a plain request; each command named is one that exists
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import takeback
from takeback import errors
from takeback.surfaces.cli.parsing import parser_of
from takeback.surfaces.cli.verb_list import OPTIONS, VERBS

SOURCE = Path(takeback.__file__).parent
ERRORS = {name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, Exception)}
SAID = ("say", "hint", "warn")
NAMES = ("Gmail", "Outlook", "HTTP", "JSON", "MCP", "TAKEBACK", "XDG", "LangGraph", "Walrus", "SMTP", "Ctrl-C", "URL")
NEVER = re.compile(
    r"!(?![=\[\"'\w(])|\b(error|errors|please|sorry|oops|successfully|success|unable to|invalid|illegal|bad|(?<!-)abort(?:ed|ing)?"
    r"|fatal|warning|you must|you should|exception|cannot not)\b|\.\.\.",
    re.IGNORECASE,
)
# Words that follow our name and are no verb of ours.
PROSE = (
    "at", "can", "cannot", "does", "first", "had", "has", "is", "itself", "knows", "made", "needs", "sees", "sends",
    "stored", "stores", "takes", "to", "with",
)  # fmt: skip


class Message(NamedTuple):
    where: str
    kind: str  # error, hint (of one), say, hint, warn
    text: str  # {} stands for what is filled in

    def __str__(self) -> str:
        return f"{self.where}: {self.text!r}"


def text(node: ast.AST) -> str | None:
    """The words of an expression; None if it has none of its own."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = text(node.left), text(node.right)
        return None if parts == (None, None) else "".join("{}" if part is None else part for part in parts)
    return None


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "id", getattr(node.func, "attr", "")), node


def messages() -> list[Message]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        for called, node in calls(path):
            where = f"{name}:{node.lineno}"
            given = dict(zip(("error", "hint of one"), node.args)) if called in ERRORS else {}
            for keyword in node.keywords if called in ERRORS else ():
                if keyword.arg == "hint":
                    given["hint of one"] = keyword.value
            if called in SAID and name.startswith("surfaces/cli/") and node.args:
                given = {called: node.args[0]}
            found += [Message(where, kind, said) for kind, each in given.items() if (said := text(each))]
    return found


MESSAGES = messages()


def told(message: Message) -> str:
    """Without who speaks and how it is set."""
    return re.sub(r"^(takeback: |\s*→ |\s*…? ?)", "", message.text)


def test_there_is_something_to_read() -> None:
    assert len(MESSAGES) > 500
    assert {m.kind for m in MESSAGES} == {"error", "hint of one", *SAID}


def test_a_message_is_no_sentence_with_a_full_stop() -> None:
    """People select what a line ends with: an id, a path, a command."""
    assert not [str(m) for m in MESSAGES if m.text.rstrip().endswith((".", "!"))]


def test_a_message_begins_in_lower_case() -> None:
    wrong = [m for m in MESSAGES if told(m)[:1].isupper() and not told(m).startswith(NAMES)]
    assert not [str(m) for m in wrong]


def test_nobody_is_shouted_at_begged_or_blamed() -> None:
    assert not [str(m) for m in MESSAGES if NEVER.search(m.text)]


def test_no_space_is_left_over() -> None:
    wrong = [
        m for m in MESSAGES if "  " in told(m).replace("{}  ", "").replace("  {}", "") or told(m) != told(m).rstrip()
    ]
    assert not [str(m) for m in wrong]


def test_each_command_that_is_named_exists() -> None:
    named = [(m, verb) for m in MESSAGES for verb in re.findall(r"(?<![\w'])takeback ([a-z]+)\b(?![:'])", m.text)]
    assert len(named) > 100
    assert not [str(m) for m, verb in named if verb not in VERBS and verb not in PROSE]


def test_each_option_that_is_named_with_its_verb_exists() -> None:
    shared = {word for name in OPTIONS for word in re.findall(r"-[-\w]+", name)}
    named = [
        (m, verb, option)
        for m in MESSAGES
        for verb, rest in re.findall(r"(?<![\w'])takeback ([a-z]+)((?: [^\s,;:)]+)*)", m.text)
        for option in re.findall(r"(?<!\S)--[a-z][-a-z]+", rest.partition(" -- ")[0])
        if verb in VERBS
    ]
    assert len(named) > 10
    known = {verb: {flag for option in parser_of(verb).options for flag in option.flags} for _, verb, _ in named}
    assert not [str(m) for m, verb, option in named if option not in known[verb] | shared]


# Raised on to whoever asked for it, which has the next step; or nothing can be done.
WITHOUT = ("surfaces/cli/failures.py",)


@pytest.mark.parametrize("path", sorted((SOURCE / "surfaces/cli").glob("*.py")), ids=lambda p: p.name)
def test_every_error_of_the_command_line_says_what_to_do_next(path: Path) -> None:
    if path.relative_to(SOURCE).as_posix() in WITHOUT:
        return
    bare = [
        f"{path.name}:{node.lineno}"
        for called, node in calls(path)
        if called in ERRORS and len(node.args) == 1 and not node.keywords and text(node.args[0])
    ]
    assert not bare


def test_the_reader_sees_a_wrong_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "surfaces/cli").mkdir(parents=True)
    (tmp_path / "surfaces/cli/x.py").write_text('terminal.say("Done!")\nraise UsageError(f"Error in {x}.")\n')
    monkeypatch.setattr("test_cli_voice.SOURCE", tmp_path)
    assert [(m.kind, m.text) for m in messages()] == [("say", "Done!"), ("error", "Error in {}.")]
    assert all(NEVER.search(m.text) for m in messages())
