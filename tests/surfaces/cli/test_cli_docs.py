"""The documentation cannot rot: every verb and every setting is in it, and the reference is generated."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from takeback.config.settings import SETTINGS
from takeback.surfaces.cli.docs import reference
from takeback.surfaces.cli.parsing import module_of, parser_of
from takeback.surfaces.cli.verb_list import OVERVIEW, VERBS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_reference_is_the_one_the_program_renders() -> None:
    hint = "run python -m takeback.surfaces.cli.docs.reference > docs/cli.md"
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == reference.render(), hint


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_documented_and_has_a_module(verb: str) -> None:
    assert f"### {verb}\n" in (DOCS / "cli.md").read_text(encoding="utf-8")
    module = module_of(verb)
    assert callable(module.add) and callable(module.run) and module.__doc__


def test_the_json_of_every_verb_is_documented() -> None:
    shapes = (DOCS / "cli.md").read_text(encoding="utf-8").partition("\n## JSON\n")[2]
    assert {*VERBS} <= {*re.findall(r"`([a-z]+)[ `]", shapes)}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.key)
def test_every_setting_is_documented(setting) -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert f"`{setting.key}`" in text
    assert f"`{setting.env}`" in text


def test_the_overview_names_only_verbs_that_exist() -> None:
    assert {*OVERVIEW} <= {*VERBS}


@pytest.mark.parametrize("words", ["record command", "thread save main", "undo 2"])
def test_help_on_a_verb_with_what_may_follow_it_is_the_help_on_that_verb(bare, words: str) -> None:
    assert bare.ok("help", *words.split()).out == bare.ok("help", words.split()[0]).out


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_a_line_of_help(verb: str) -> None:
    parser = parser_of(verb)
    shown = " ".join(name for name, _ in parser.listed)
    general = {
        "-C",
        "--json",
        "-y",
        "--yes",
        "-q",
        "--quiet",
        "--no-color",
        "--off",
        "-h",
        "--help",
        "--bare",
        "--path",
    }
    for option in parser.options:
        for flag in option.flags:
            assert flag in general or flag in shown, (verb, flag)


def test_the_manual_page_is_the_one_the_program_renders(bare) -> None:
    from takeback.surfaces.cli.docs import manual

    page = (DOCS / "takeback.1").read_text(encoding="utf-8")
    assert page == manual.render() == bare.ok("help", "--man").out, "run takeback help --man > docs/takeback.1"
    assert page.isascii() and all(f'.SS "takeback {verb}' in page for verb in VERBS)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_man_reads_the_manual_page_without_complaint() -> None:
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", str(DOCS / "takeback.1")], capture_output=True)
    shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout.decode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert "undo for AI agents" in shown and "--dry-run" in shown and "● named checkpoint" in shown


def test_the_wheel_has_the_manual_page() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {"docs/takeback.1": "share/man/man1/takeback.1"}
