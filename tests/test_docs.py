"""What the pages say of the source is held against the source."""

from __future__ import annotations

import re
from pathlib import Path

import takeback

SOURCE = Path(takeback.__file__).parent
ROOT = Path(__file__).parents[1]


def listed() -> set[str]:
    """The names in the tree of docs/design.md, relative to src/takeback."""
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    tree = text.split("    src/takeback/\n", 1)[1].split("\n    tests/", 1)[0]
    return set(re.findall(r"^      (\S+)", tree, re.MULTILINE))


def test_every_folder_and_every_module_at_the_door_has_a_line_in_the_tree_of_the_design():
    folders = {f"{path.parent.relative_to(SOURCE).as_posix()}/" for path in SOURCE.rglob("*.py")} - {"./"}
    assert listed() == folders | {path.name for path in SOURCE.glob("*.py")}


def test_every_file_that_the_design_names_exists():
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text))
    assert len(named) > 10
    assert not {name for name in named if not (SOURCE / name).is_file() and not (ROOT / name).is_file()}


def test_every_page_the_readme_links_to_exists():
    links = re.findall(r"\]\((docs/[^)#]+\.md)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 5
    assert not [link for link in links if not (ROOT / link).is_file()]
