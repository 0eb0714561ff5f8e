"""A store that an older program wrote opens, verifies and goes back in this one.

`stores/before_rooms.tar.gz` was written by the program as it was before its modules got their rooms: a project with
links and a git repository, a turn of Claude Code that was undone and redone, a person's file, effects outside the files
of which one is in doubt, a thread with two states; and what `log --json` and `effects --json` said of it then.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.store import layout
from takeback.surfaces.wording import json_shapes
from takeback.workspace import Workspace

STORE = Path(__file__).parent / "stores" / "before_rooms.tar.gz"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The project, with its store where this user's stores lie, and what was said of it."""
    subprocess.run(["tar", "-xzf", STORE, "-C", tmp_path], check=True)
    root, home = tmp_path / "project", Path(os.environ["TAKEBACK_HOME"])
    (written,) = (tmp_path / "state").glob("project-*")
    home.mkdir(parents=True, mode=0o700)
    os.rename(written, folder := layout.folder_of(home, root))
    meta = layout.read_meta(folder)
    layout.write_meta(folder, {**meta, "root": str(root), "inode": root.stat().st_ino})
    return tmp_path


@pytest.fixture
def ws(old: Path) -> Any:
    with takeback.open(old / "project") as workspace:
        yield workspace


def said(old: Path, name: str) -> Any:
    return json.loads((old / name).read_text(encoding="utf-8"))


def test_it_is_whole(ws: Workspace):
    assert ws.verify().ok


def test_the_log_says_what_it_said(ws: Workspace, old: Path):
    now = [json.loads(json.dumps(json_shapes.log_row(row))) for row in ws.log()]
    then = said(old, "log.json")["rows"]
    assert [{key: row[key] for key in known} for row, known in zip(now, then, strict=True)] == then


def test_the_ledger_says_what_it_said(ws: Workspace, old: Path):
    then = {
        each["id"]: (each["state"], each["verdict"], each["summary"]) for each in said(old, "effects.json")["effects"]
    }
    assert {act.id: (act.shown_state, act.verdict, act.summary) for act in ws.effects()} == then


def test_files_links_and_git_are_as_they_were_known(ws: Workspace):
    assert not [change for change in ws.status().changes if change.path != b"mine.txt"]


def test_all_of_it_goes_back_and_forth(ws: Workspace, old: Path):
    project = old / "project"
    ws.take_back("rollback", "before the agent", everything=True, only=["files"])
    assert (project / "a.txt").read_text() == (project / "src" / "hard").read_text() == "one\ntwo\nthree\n"
    assert (project / "src" / "deep" / "m.py").read_text() == "code\n"
    assert not (project / "login.py").exists() and not (project / "mine.txt").exists()
    ws.redo()
    assert (project / "mine.txt").read_text() == "mine\nmore\n" and (project / "login.py").read_text() == "login\n"
    assert ws.verify().ok


def test_a_thread_has_its_states(ws: Workspace):
    newest, first = ws.threads.list("talk")
    assert ws.threads.load(newest) == {"messages": ["hello", "there"]}
    assert ws.threads.load(first) == {"messages": ["hello"]}
