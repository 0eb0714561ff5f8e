"""docs/journal-format.md names every field that is written: held against the rows of a busy day."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from scene import CLAUDE, CODEX, Scene
from takeback.journal.brackets import Call
from takeback.model.effects import Request
from takeback.workspace import Workspace

PAGE = (Path(__file__).parents[1] / "docs/journal-format.md").read_text(encoding="utf-8")


def documented(kind: str) -> set[str]:
    """The words that the page has as code where it tells of rows of this kind."""
    lines = re.findall(rf"^\| `{kind}`.*$", PAGE, re.MULTILINE)
    assert lines, f"rows of kind {kind} are not told of"
    return {"salt", *(word for line in lines for word in re.findall(r"`([a-z_]+)`", line))}


def undocumented(ws: Workspace) -> set[tuple[str, str]]:
    found = set()
    for row in ws.store.journal.rows(full=("state", "writes", "thread")):
        if row.kind != "value" and row.body is not None:
            found |= {(row.kind, name) for name in row.body.keys() - documented(row.kind)}
            requested = row.body.get("request", {}).keys()
            found |= {("request", name) for name in requested if f"`{name}`" not in PAGE.split("A `request` is")[1]}
    return found


@pytest.fixture
def busy(ws: Workspace, project: Path) -> Workspace:
    """Agents and a person at work, alone and at once; everything taken back and brought back in some way."""
    scene = Scene(ws)
    (project / "notes.txt").write_text("1\n")
    scene.by_hand("base", mine_txt="1\n")
    scene.turn("first thing", one_txt="1\n", sub__two_txt="2\n")
    scene.turn("second thing", CODEX, three_txt="3\n")
    scene.bash("make", CODEX, four_txt="4\n")
    both = [Call("a", "Bash", "Bash: a"), Call("b", "Bash", "Bash: b")]
    for caller, call in zip((CLAUDE, CODEX), both):
        ws.begin_call(caller, call)
    (project / "shared.txt").write_text("both\n")
    for caller, call in zip((CLAUDE, CODEX), both):
        ws.end_call(caller, call)
    ws.track(["notes.txt"])
    ws.label(ws.checkpoint("to be renamed").id, "renamed")
    ws.pin(ws.history().checkpoints[-1].id)
    act = ws.record_command("made a bucket", argv=["true"], target="bucket")
    ws.threads.save("main", {"step": 1})
    ws.threads.fork("main", ws.threads.save("main", {"step": 2}).id, "other")
    ws.threads.handoff("main", ws.threads.list("main")[0].id, to_agent="codex")
    ws.threads.prune(["other"], delete=True)
    (project / "one.txt").write_text("a person's\n")
    ws.take_back("undo", "first thing", only=("files",))
    ws.redo()
    ws.revert("three.txt")
    ws.plan("rollback", "base", everything=True, without=("command",), save=True)
    plan = ws.plan("compensate", save=True)
    ws.approve(plan)
    ws.apply(plan.id)
    ws.take_back("rollback", "base", only=("files",), everything=True, force=True)
    ws.redo(merge=True)
    ws.restore("base", "mine.txt")
    os.utime(project / "notes.txt", (1, 1))
    ws.checkpoint("touched")
    ws.take_back("rollback", "renamed", only=("files",), everything=True)
    assert ws.history().acts[act.id]
    return ws


def test_every_field_of_a_busy_day_is_on_the_page(busy: Workspace):
    kinds = {row.kind for row in busy.store.journal.rows()}
    assert kinds >= {"checkpoint", "change", "turn", "open", "close", "note", "act", "takeback", "intent", "outcome"}
    assert kinds >= {"plan", "approval", "state", "thread"}
    assert undocumented(busy) == set()
    busy.prune(keep=1)
    assert undocumented(busy) == set()


def test_every_field_of_a_request_is_on_the_page():
    told = PAGE.split("A `request` is")[1].split("\n\n")[0]
    assert [name for name in Request._fields if f"`{name}`" not in told] == []


def test_every_field_of_workspace_json_is_on_the_page(ws: Workspace):
    assert ws.store.folder is not None
    (line,) = re.findall(r"^ +workspace\.json .*$", PAGE, re.MULTILINE)
    meta = json.loads((ws.store.folder / "workspace.json").read_text())
    assert [name for name in meta if f'"{name}"' not in line] == []


def test_a_field_that_is_missing_would_be_found(busy: Workspace):
    from takeback.journal.journal import New
    from takeback.model.ids import new_id

    with busy.writing():
        busy.store.journal.append([New("note", new_id(), {"what": "sight", "never_heard_of": 1})], busy.clock())
    assert undocumented(busy) == {("note", "never_heard_of")}
