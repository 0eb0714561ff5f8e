"""ui, and the picker of rollback, as a person gets them on a terminal; and what there is without the extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from takeback.surfaces.cli.verb_list import VERBS


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """An environment in which the extra cannot be imported."""
    hidden = tmp_path / "hidden" / "textual"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('No module named textual', name='textual')\n")
    return {"PYTHONPATH": str(hidden.parent), "TERM": "xterm"}


def test_without_the_extra_it_says_how_to_get_it(cli, without) -> None:
    ran = cli.typing("ui", env=without)
    assert ran.code == 1
    assert "the ui needs a package that is not installed: textual" in ran.out
    assert "install it: " in ran.out and "[ui]'" in ran.out


def test_without_the_extra_rollback_has_its_plain_list(changed, without) -> None:
    changed.ok("checkpoint", "second")
    answers = [("Number, label or id", "start\n"), ("Apply?", "y\n")]
    ran = changed.typing("rollback", answers=answers, env=without)
    assert ran.code == 0 and "back at" in ran.out
    assert (changed.project / "src/legacy.py").exists()


def test_it_needs_a_terminal(cli) -> None:
    for words in (["ui"], ["ui", "--json"]):
        ran = cli(*words)
        assert ran.code == 2 and "ui needs a terminal" in ran.err


def test_a_filter_that_makes_no_sense_is_told_before_anything_opens(cli) -> None:
    ran = cli.typing("ui", "colour:red")
    assert ran.code == 2 and "unknown key 'colour'" in ran.out


def test_no_other_verb_loads_it(cli) -> None:
    for verb in ("log", "status", "rollback"):
        code = f"import sys\nfrom takeback.surfaces.cli import main\nmain([{verb!r}])\nprint(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], cwd=cli.project, capture_output=True, check=True)
        loaded = set(done.stdout.decode().split("\n")[-2].split())
        assert not {"textual", "rich"} & loaded, verb
    assert "ui" in VERBS


def test_it_opens_and_ends_on_a_terminal(changed) -> None:
    pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")
    changed.ok("checkpoint", "second")
    ran = changed.typing("ui", answers=[("second", "q")])
    assert ran.code == 0


def test_the_picker_goes_back_and_leaves_what_it_said(changed) -> None:
    pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")
    changed.ok("checkpoint", "second")
    answers = [("second", "\x1b[B"), ("legacy", "\r"), ("Apply?", "y"), ("redo", "\r")]
    ran = changed.typing("rollback", answers=answers)
    assert ran.code == 0, ran.out[-2000:]
    assert "back at" in ran.out.rsplit("\x1b[?1049l", 1)[1]
    assert (changed.project / "src/legacy.py").exists()


def test_the_picker_can_be_left(changed) -> None:
    pytest.importorskip("textual", reason="the extra takeback[ui] is not installed")
    changed.ok("checkpoint", "second")
    ran = changed.typing("rollback", answers=[("second", "q")])
    assert ran.code == 4 and "no checkpoint was chosen" in ran.out
