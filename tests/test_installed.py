"""takeback is on no package index: nothing that is said anywhere sends a person to one, and what is said works."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from takeback.system import installed

ROOT = Path(__file__).parent.parent
_INDEX = re.compile(
    r"(?:pip3?|pipx|uv tool|uv pip|uv) (?:install|run|upgrade|add)(?: -{1,2}\S+)* [\'\"]?takeback\b|uvx takeback"
)
_LOCAL = re.compile(r"(?:pip|pipx|uv tool) install [\'\"]?\.(?:\[([a-z,-]+)\])?")


def said() -> dict[str, str]:
    """All that a person may read: documents, examples, the plugin, and every string of the program."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*.1")]
    found += [*ROOT.glob("examples/**/*.py"), *ROOT.glob("scripts/*"), *ROOT.glob(".claude-plugin/*")]
    found += [
        path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".md", ".json", ".toml", ".ts", ".js")
    ]
    return {str(path.relative_to(ROOT)): path.read_text(errors="replace") for path in found if path.is_file()}


def test_no_line_promises_an_index() -> None:
    assert _INDEX.search("pip install takeback") and _INDEX.search("pip install -U 'takeback[ui]'")
    assert _INDEX.search("pipx install takeback") and _INDEX.search("uv tool install takeback")
    assert {path: found[0] for path, text in said().items() if (found := _INDEX.search(text))} == {}


def test_what_readme_installs_is_there() -> None:
    readme = (ROOT / "README.md").read_text()
    start = readme.partition("## Start")[2].partition("\n##")[0]
    for tool in ("pip install .", "pipx install .", "uv tool install ."):
        assert tool in start
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        name for text in said().values() for found in _LOCAL.finditer(text) if found[1] for name in found[1].split(",")
    }
    assert {"ui", "web", "mcp"} <= named <= extras.keys()


@pytest.mark.parametrize(
    ("prefix", "tool"),
    [
        ("/usr", "pip install"),
        ("/home/ada/.local/share/pipx/venvs/takeback", "pipx install --force"),
        ("/home/ada/.local/share/uv/tools/takeback", "uv tool install --force"),
    ],
)
def test_a_hint_names_the_tool_and_the_clone(tmp_path: Path, monkeypatch, prefix: str, tool: str) -> None:
    told = {"url": (tmp_path / "my clone").as_uri(), "dir_info": {}}
    (tmp_path / "my clone").mkdir()
    monkeypatch.setattr("sys.prefix", prefix)
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name: json.dumps(told))
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    assert installed.with_extra("ui") == f"{tool} '.[ui]' in your clone of takeback", "it is gone"
    (tmp_path / "my clone" / "pyproject.toml").touch()
    assert installed.with_extra("ui") == f"{tool} '{tmp_path}/my clone[ui]'"
    assert (
        installed.upgraded()
        == f"update your clone of takeback ({tmp_path}/my clone), then {tool} '{tmp_path}/my clone'"
    )


@pytest.mark.parametrize("told", [None, "", "{", "[]", '{"url": "https://example.com/x.whl"}'])
def test_where_it_is_not_known_the_clone_is_named_in_words(monkeypatch, told) -> None:
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name: told)
    monkeypatch.setattr("sys.prefix", "/usr")
    assert installed.with_extra("mcp").endswith("'.[mcp]' in your clone of takeback")
    assert installed.upgraded().startswith("update your clone of takeback, then ")


def test_extras_that_are_there_stay_where_a_tool_makes_all_anew(monkeypatch) -> None:
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name: None)
    monkeypatch.setattr(installed, "find_spec", lambda name: name if name == "textual" else None)
    monkeypatch.setattr("sys.prefix", "/home/ada/.local/share/pipx/venvs/takeback")
    assert installed.with_extra("web") == "pipx install --force '.[ui,web]' in your clone of takeback"
    monkeypatch.setattr("sys.prefix", "/usr")
    assert installed.with_extra("web") == "pip install '.[web]' in your clone of takeback"
