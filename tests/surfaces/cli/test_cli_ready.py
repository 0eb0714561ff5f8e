"""A command that is forked for the tests is as one that was started."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here, so every command is started")

_COMMANDS: list[tuple[str | bytes, ...]] = [
    ("--version",),
    ("--help",),
    ("diff",),
    ("diff", "--json"),
    ("log", "--json"),
    ("diff", "src", "--stat"),
    ("config",),
    ("no-such-verb",),
    ("show", "nothing-of-that-name"),
    ("show", b"\xff\xfe"),
    ("rollback",),  # asks, and nobody is there
]


@pytest.mark.parametrize("words", _COMMANDS, ids=repr)
def test_it_says_the_same_and_ends_the_same(changed: Any, words: tuple[str | bytes, ...]) -> None:
    started = type(changed)(changed.project)
    assert changed(*words) == started(*words)


@pytest.mark.parametrize("how", [{"env": {"TAKEBACK_HOME": "/nowhere"}}, {"cwd": "src"}], ids=["environment", "folder"])
def test_folder_and_environment_are_the_commands_own(changed: Any, how: dict[str, Any]) -> None:
    if "cwd" in how:
        how = {"cwd": changed.project / how["cwd"]}
    started = type(changed)(changed.project)
    assert changed("diff", "new.py", **how) == started("diff", "new.py", **how)
    assert changed("diff", "new.py", **how) != changed("diff", "new.py")


def test_what_an_interpreter_reads_at_its_start_has_one_started(ready: Any) -> None:
    assert ready.can(os.environ)
    assert not ready.can({**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert not ready.can({**os.environ, "LC_ALL": "tr_TR.UTF-8"})


def test_several_at_once(changed: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(lambda _: changed("diff"), range(8)))
    assert len({*ran}) == 1 and ran[0].code == 0
