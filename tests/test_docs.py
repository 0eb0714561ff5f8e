"""What the pages say of the source is held against the source."""

from __future__ import annotations

import re
from pathlib import Path

import takeback

SOURCE = Path(takeback.__file__).parent
ROOT = Path(__file__).parents[1]
UNLISTED = "surfaces/cli/"  # one verb per file: the folder is listed, docs/cli.md has the verbs


def listed() -> set[str]:
    """The names in the tree of docs/design.md, relative to src/takeback."""
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    tree = text.split("    src/takeback/\n", 1)[1].split("\n    tests/", 1)[0]
    return set(re.findall(r"^      (\S+)", tree, re.MULTILINE))


def modules() -> set[str]:
    found = {p.relative_to(SOURCE) for p in SOURCE.rglob("*.py")}
    return {p.as_posix() for p in found if len(p.parts) == 1 or p.name != "__init__.py"}


def test_every_module_is_in_the_tree_of_the_design():
    missing = {name for name in modules() - listed() if not name.startswith(UNLISTED)}
    assert not missing


def test_every_folder_is_in_the_tree_of_the_design():
    folders = {p.relative_to(SOURCE).parts[0] for p in SOURCE.rglob("*.py") if p.parent != SOURCE}
    assert folders <= {name.split("/")[0] for name in listed() if "/" in name}


def test_everything_in_the_tree_of_the_design_exists():
    assert not {name for name in listed() if not (SOURCE / name).exists()}
    assert {name for name in listed() if name.endswith(".py")} <= modules()


def test_every_page_the_readme_links_to_exists():
    links = re.findall(r"\]\((docs/[^)#]+\.md)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 5
    assert not [link for link in links if not (ROOT / link).is_file()]
