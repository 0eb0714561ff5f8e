"""Every command, option and MCP tool that a message or a page names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from takeback.surfaces.cli.parsing import parser_of
from takeback.surfaces.cli.verb_list import OPTIONS, VERBS
from takeback.surfaces.mcp.schemas import OF as TOOLS

HERE = Path(__file__).parents[2]
SOURCES = sorted((HERE / "src/takeback").rglob("*.py"))
PAGES = [HERE / "README.md", *sorted((HERE / "docs").glob("*.md")), *sorted((HERE / "examples").glob("*"))]
GENERAL = set(re.findall(r"--?[\w-]+", " ".join(OPTIONS)))
# What follows our name in a sentence, where it is no command.
PROSE = {
    "is", "cannot", "off", "does", "printed", "captured", "as", "keeps", "was", "stored", "stores", "writes",
    "took", "brought", "knows", "for", "would", "there", "did", "on", "were", "row", "tput", "tee", "inside",
    "fails", "never", "made", "to", "needs", "sends", "first", "records", "of", "speaks", "lets", "this",
    "itself", "authors", "brings", "plans", "import", "sealed",
}  # fmt: skip
NAMED = re.compile(r"(?<![\w./@-])takeback ([a-z][a-z-]*)([^,;()|\n“”`\"<>#]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def said_in(path: Path) -> Iterator[str]:
    """Texts of a source; of a page its code. What is filled in later is a gap."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
        yield from re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL)
        yield from re.findall(r"^    \S.*$", text, re.MULTILINE)
    elif path.suffix == ".py":
        inside: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr):
                inside |= {id(part) for part in node.values}
                yield "".join(p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                yield node.value


def unknown_in(said: str) -> Iterator[str]:
    for verb, rest in NAMED.findall(said):
        if verb in VERBS:
            # What a command is run with, or what comes after it in the shell, has options of its own.
            ours = re.split(r" -- | && | > | \| ", rest)[0]
            known = GENERAL | set(re.findall(r"--[\w-]+", parser_of(verb).format_help()))
            yield from (f"takeback {verb} {option}" for option in OPTION.findall(ours) if option not in known)
        elif verb not in PROSE:
            yield f"takeback {verb}"


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(HERE)))
def test_every_command_and_option_that_is_named_exists(path: Path) -> None:
    assert [(found, said[:200]) for said in said_in(path) for found in unknown_in(said)] == []


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(HERE)))
def test_every_tool_that_is_named_exists(path: Path) -> None:
    known = {f"takeback_{name}" for name in TOOLS}
    if path.suffix != ".md" and "surfaces" not in path.parts and "agents" not in path.parts:
        return  # names of variables and fields
    named = {name for said in said_in(path) for name in re.findall(r"(?<![\w.])takeback_[a-z_]+[a-z]", said)}
    beside = {"takeback_files", "takeback_names", "takeback_words", "takeback_plain", "takeback_offer"}  # of completion
    assert {name for name in named - known - beside if not any(tool.startswith(name + "_") for tool in known)} == set()


def test_what_does_not_exist_is_found() -> None:
    assert list(unknown_in("see takeback undoo, or takeback undo --nope")) == ["takeback undoo", "takeback undo --nope"]
    assert list(unknown_in("takeback run --isolate -- make --always")) == []
