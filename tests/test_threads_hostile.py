"""Threads under hostile use: names that are no text, rows and caches that somebody altered, others at work meanwhile."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from takeback.errors import Damaged, Moved, NotFound, UsageError
from takeback.journal.journal import Journal
from takeback.model.thread_states import NewState
from takeback.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return takeback.open(tmp_path / "project", create="state")


def edit(ws: Workspace, sql: str, file: str = "journal.db") -> Workspace:
    """The workspace, opened again after somebody wrote into one of its databases."""
    folder = ws.store.folder
    ws.close()
    assert folder is not None
    db = sqlite3.connect(folder / file, isolation_level=None)
    db.execute(sql)
    db.close()
    return takeback.open(ws.root)


# -- names -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["\udcff\udcfe", "a\ud800"])
def test_a_name_that_is_no_text_is_refused_and_found_nowhere(ws: Workspace, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a thread"):
        ws.threads.save(name, {"a": 1})
    with pytest.raises(UsageError):
        ws.threads.put(NewState(name, "", "", "", {"a": b"1"}, codec="typed"))
    with pytest.raises(UsageError, match="cannot be the name of a state checkpoint"):
        ws.threads.save("main", {"a": 1}, id=name)
    ws.threads.save("main", {"a": 1})
    with pytest.raises(NotFound, match="there is no thread"):
        ws.threads.get(name)
    with pytest.raises(NotFound, match="no state checkpoint"):
        ws.threads.get("main", name)


@pytest.mark.parametrize("prefix", ["\U0010ffff", "\ud7ff", "%", "_"])
def test_the_beginning_of_an_id_may_be_any_character(ws: Workspace, prefix: str) -> None:
    ws.threads.save("main", {"a": 1})
    assert ws.threads.save("main", {"a": 2}, id=f"{prefix}x").id == ws.threads.get("main", prefix).id
    with pytest.raises(NotFound):
        ws.threads.get("main", f"{prefix}y")


def test_a_command_that_is_told_can_be_pasted(ws: Workspace) -> None:
    ws.threads.save("$(touch x)", {"a": 1})
    with pytest.raises(Moved) as caught:
        ws.threads.save("$(touch x)", {"a": 2}, parent="nobody")
    assert shlex.quote("$(touch x)") in caught.value.hint
    with pytest.raises(NotFound) as missing:
        ws.threads.get("$(touch x)", "nobody")
    assert shlex.quote("$(touch x)") in missing.value.hint


# -- searching ---------------------------------------------------------------


def test_words_are_found_wherever_in_a_state_they_stand(ws: Workspace) -> None:
    apart = ws.threads.save("main", {"task": "mend the login", "page": ["the form"], "n": 1}, summary="read it")
    ws.threads.save("main", {"task": "mend the login", "page": ["none"], "n": 2})
    ws.threads.save("other", {"task": "a form"})
    assert [found.checkpoint.id for found in ws.threads.search("login form")] == [apart.id]
    assert [found.checkpoint.id for found in ws.threads.search("read form")] == [apart.id]
    assert not ws.threads.search("login nowhere")


def test_values_that_many_share_are_found_once(ws: Workspace) -> None:
    for n in range(5):
        last = ws.threads.save("main", {"task": "login", "page": "form", "n": n})
    assert [found.checkpoint.id for found in ws.threads.search("form login")] == [last.id]


# -- altered rows ------------------------------------------------------------

HEAD = "(SELECT max(seq) FROM log WHERE kind = 'state')"


@pytest.mark.parametrize("sql", [
    f"UPDATE log SET body = NULL WHERE seq = {HEAD}",
    f"DELETE FROM log WHERE seq = {HEAD}",
    f"UPDATE log SET kind = 'note' WHERE seq = {HEAD}",
    f"DELETE FROM log WHERE seq >= {HEAD}",
])  # fmt: skip
def test_an_older_state_is_never_handed_out_as_the_head(ws: Workspace, sql: str) -> None:
    first = ws.threads.save("main", {"n": 1})
    ws.threads.save("main", {"n": 2})
    ws.threads.handoff("main", to_agent="codex")  # a row after the head
    ws = edit(ws, sql)
    assert any(not each.ok for each in ws.threads.verify()), "and the cache is made anew"
    for ask in (lambda: ws.threads.get("main"), lambda: ws.threads.find("main"), lambda: ws.threads.heads_at("main")):
        with pytest.raises(Damaged):
            ask()
    assert ws.threads.load(ws.threads.get("main", first.id)) == {"n": 1}


def test_nothing_goes_back_to_a_state_that_cannot_be_read(ws: Workspace) -> None:
    first = ws.threads.save("main", {"x": "y" * 500})
    ws.threads.save("main", {"n": 2})
    ws = edit(ws, "UPDATE log SET body = substr(body, 1, 60) || x'ff' WHERE kind = 'value'")
    outcome = ws.roll_back_thread("main", first.id)
    assert not outcome.whole and "cannot be read" in outcome.results[0].note
    assert ws.threads.load(ws.threads.get("main")) == {"n": 2}


def test_after_a_repair_a_lost_head_is_known(ws: Workspace) -> None:
    ws.threads.save("main", {"n": 1})
    ws.threads.save("main", {"n": 2})
    ws = edit(ws, f"DELETE FROM log WHERE seq = {HEAD}")
    with pytest.raises(Damaged, match="tail is cut"):
        ws.threads.get("main")
    ws.repair()
    assert ws.threads.load(ws.threads.get("main")) == {"n": 1}


def test_what_a_prune_took_is_no_doubt_about_the_head(ws: Workspace) -> None:
    ws.threads.save("main", {"n": 1})
    ws.threads.save("gone", {"n": "x" * 500})
    ws.threads.remove("gone")
    assert ws.prune().rows
    ws = edit(ws, "DROP TABLE held", "threads.db")
    assert ws.threads.load(ws.threads.get("main")) == {"n": 1} and all(each.ok for each in ws.threads.verify())


# -- the cache ---------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "DELETE FROM checkpoints WHERE seq = (SELECT max(seq) FROM checkpoints)",
    "UPDATE checkpoints SET removed = 1 WHERE seq = (SELECT max(seq) FROM checkpoints)",
    "UPDATE checkpoints SET thread = 'other' WHERE seq = (SELECT max(seq) FROM checkpoints)",
])  # fmt: skip
def test_verify_names_a_cache_that_says_something_else(ws: Workspace, sql: str) -> None:
    ws.threads.save("other", {"n": 0})
    ws.threads.save("main", {"n": 1})
    ws.threads.save("main", {"n": 2})
    ws.threads.get("main")
    ws = edit(ws, sql, "threads.db")
    assert any("threads.db did not have it" in each.why for each in ws.threads.verify())
    assert all(each.ok for each in ws.threads.verify())
    assert ws.threads.load(ws.threads.get("main")) == {"n": 2}


def test_no_state_of_another_thread_is_handed_out(ws: Workspace) -> None:
    ws.threads.save("other", {"n": 0})
    saved = ws.threads.save("main", {"n": 1})
    ws.threads.get("main")
    ws = edit(ws, "UPDATE checkpoints SET thread = 'other' WHERE thread = 'main'", "threads.db")
    with pytest.raises(Damaged, match="of thread main"):
        ws.threads.get("other")
    with pytest.raises(Damaged, match="of thread main"):
        ws.threads.get("other", saved.id)


def test_without_a_place_for_the_cache_it_goes_on(ws: Workspace) -> None:
    ws.threads.save("main", {"n": 1})
    assert ws.store.folder is not None
    ws.close()
    path = ws.store.folder / "threads.db"
    path.unlink()
    path.mkdir()
    ws = takeback.open(ws.root)
    ws.threads.save("main", {"n": 2})
    assert ws.threads.load(ws.threads.get("main")) == {"n": 2} and all(each.ok for each in ws.threads.verify())


def test_a_full_disk_does_not_stop_the_prune_that_would_free_it(ws: Workspace) -> None:
    ws.threads.save("main", {"n": 1})
    ws.threads.save("gone", {"n": "x" * 500})
    ws.threads.index._db.execute("PRAGMA max_page_count=1")  # SQLite says the same as of a full disk
    ws.threads.remove("gone")
    assert ws.prune().rows and ws.threads.load(ws.threads.get("main")) == {"n": 1}


# -- others at work meanwhile --------------------------------------------------


def test_verify_tells_no_loss_while_others_save(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head that is kept outside the table is ahead of rows that were read before it."""
    ws.threads.save("main", {"n": 1})
    other = takeback.open(ws.root)
    read = Journal.kept_head

    def later(self: Journal) -> object:
        if self is ws.store.journal:
            other.threads.save("main", {"n": 3})
        return read(self)

    monkeypatch.setattr(Journal, "kept_head", later)
    assert [each for each in ws.threads.verify() if not each.ok] == []


def test_verify_and_save_at_once(ws: Workspace) -> None:
    ws.threads.save("main", {"n": 0, "x": "y" * 500})
    wrong: list[object] = []

    def at_work(what: Callable[[Workspace, int], object]) -> None:
        with takeback.open(ws.root) as own:
            for n in range(25):
                try:
                    what(own, n)
                except Exception as error:
                    wrong.append(error)

    def verify(own: Workspace, n: int) -> None:
        wrong.extend(each for each in own.threads.verify() if not each.ok)

    def save(own: Workspace, n: int) -> None:
        own.threads.save("main", {"n": n, "x": "y" * 500 + str(n)})
        own.threads.load(own.threads.get("main"))

    running = [threading.Thread(target=at_work, args=(what,)) for what in (verify, verify, save, save)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert not wrong


# -- undo with state -----------------------------------------------------------


def run(project: Path, *words: str, actor: str = "", code: int = 0) -> str:
    environ = {**os.environ, "TAKEBACK_ACTOR": actor}
    made = subprocess.run(
        [sys.executable, "-m", "takeback", *words],
        capture_output=True, text=True, timeout=120, env=environ, cwd=project,
    )  # fmt: skip
    assert made.returncode == code, made.stdout + made.stderr
    return made.stdout + made.stderr


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("0")
    run(project, "init")
    return project


@pytest.mark.parametrize("looks_between", [False, True])
def test_undo_takes_what_an_agent_saved_with_the_files_of_that_turn(project: Path, looks_between: bool) -> None:
    for n in (1, 2, 3):
        (project / "a").write_text(str(n))
        run(project, "thread", "save", "main", "--state", f'{{"n": {n}}}', "--state-only", actor="bot")
        for _ in range(1 + looks_between):
            run(project, "checkpoint", actor="bot")
    assert "thread main stays, 1 state checkpoint ahead" in run(project, "undo", "--dry-run")
    for n in (2, 1):
        run(project, "undo", "--with-state", "--yes")
        assert (project / "a").read_text() == str(n)
        assert run(project, "thread", "load", "main") == f'{{"n": {n}}}\n'
    run(project, "redo", "--yes")
    assert (project / "a").read_text() == "2" and run(project, "thread", "load", "main") == '{"n": 2}\n'


def test_the_way_without_outside_acts_is_a_command_that_there_is(project: Path) -> None:
    run(project, "thread", "save", "main", "--state", '{"n": 1}')
    saved = run(project, "thread", "list", "main").split()[1]
    (project / "a").write_text("1")
    run(project, "record", "command", "--did", "made it", "--", "true")
    run(project, "thread", "save", "main", "--state", '{"n": 2}')
    told = run(project, "thread", "rollback", "main", saved, "--with-files", "--yes", code=4)
    command = told.split("take back the thread alone: takeback ")[1].splitlines()[0]
    run(project, *shlex.split(command))
    assert run(project, "thread", "load", "main") == '{"n": 1}\n' and (project / "a").read_text() == "1"
