"""What undo steps over when agents, runs, a followed tree and a person take turns; and turns as values to look at."""

from __future__ import annotations

import shutil

import pytest

import takeback
from takeback.journal.brackets import Call, Caller

CLAUDE = Caller("claude", "s1")
CODEX = Caller("codex", "s2")


@pytest.fixture
def ws(project):
    (project / "a.txt").write_text("one\n")
    with takeback.open(project, create=True) as opened:
        yield opened


def call(ws, caller, key: str, *paths: str, lane: str = "") -> None:
    """A shell command that makes these files."""
    caller = caller._replace(lane=lane)
    made = Call(key, "Bash", f"Bash: touch {key}")
    ws.begin_call(caller, made)
    for path in paths:
        (ws.root / path).write_text(path)
    ws.end_call(caller, made)


def ran(ws, path: str) -> None:
    """What `takeback run` does around its command."""
    before = ws.checkpoint(f"before {path}")
    (ws.root / path).write_text(path)
    ws.ran(before, f"touch {path}")


def there(ws) -> set[str]:
    return {path.name for path in ws.root.iterdir()} - {"a.txt"}


def test_undo_steps_over_whatever_turns_there_were_newest_first(ws):
    (ws.root / "by-hand").write_text("x")
    ws.checkpoint("mine")
    ws.begin_turn(CLAUDE, "first")
    call(ws, CLAUDE, "1", "claude-1")
    ran(ws, "ran")
    ws.begin_turn(CODEX, "second")
    call(ws, CODEX, "2", "codex")
    (ws.root / "between").write_text("a person's, between calls")
    call(ws, CODEX, "3", "codex-too")
    seen = []
    while (outcome := ws.undo()).id:
        seen.append((outcome.plan.request.turns[0].actor, there(ws)))
    assert seen == [
        ("codex", {"by-hand", "claude-1", "ran", "between"}),
        ("run", {"by-hand", "claude-1", "between"}),
        ("claude", {"by-hand", "between"}),
        ("", {"between"}),  # a stretch by hand, before any agent acted
    ]
    ws.redo(4)
    assert there(ws) == {"by-hand", "claude-1", "ran", "codex", "codex-too", "between"}
    assert ws.rollback("start", everything=True).whole
    assert there(ws) == set()


def test_what_a_person_did_between_calls_goes_only_by_name_or_with_everything(ws):
    ws.begin_turn(CLAUDE, "make it")
    call(ws, CLAUDE, "1", "made")
    (ws.root / "mine").write_text("x")
    call(ws, CLAUDE, "2", "more")
    outcome = ws.rollback()
    assert there(ws) == {"mine"} and outcome.left == (b"mine",)
    (row,) = (r for r in ws.log("kind:effect") if not r.actor)
    assert ws.revert(row.id).whole
    assert there(ws) == set()


def test_a_moment_of_a_followed_tree_is_a_turn_only_while_no_agent_has_acted(ws):
    def moment(path: str) -> bool:
        (ws.root / path).write_text(path)
        found = ws.moment()
        assert found is not None
        return found.is_turn

    assert moment("m1")
    ws.begin_turn(CLAUDE, "make it")  # its session's first: a named checkpoint
    assert moment("m2")
    call(ws, CLAUDE, "1", "made")
    assert not moment("m3")
    ws.begin_turn(CLAUDE, "go on")  # an automatic one: the agent is still at work
    assert not moment("m4")
    ws.checkpoint("named")
    assert moment("m5")
    assert ws.undo().plan.request.turns[0].actor == "watch" and "m5" not in there(ws)
    assert ws.undo().plan.request.turns[0].actor == "claude"
    assert there(ws) == {"m1", "m2", "m3", "m4"}


def test_a_moment_during_a_call_is_the_calls(ws):
    made = Call("1", "Bash", "Bash: make")
    ws.begin_call(CLAUDE, made)
    (ws.root / "made").write_text("x")
    assert ws.moment() is None  # nothing of nobody known
    ws.end_call(CLAUDE, made)
    assert [(row.actor, row.paths) for row in ws.log("kind:effect")] == [("claude", ("made",))]


def test_a_turn_has_its_subagents_calls_and_totals(ws):
    begun = ws.begin_turn(CLAUDE, "add tests")
    call(ws, CLAUDE, "1", "one")
    call(ws, CLAUDE, "2", "two", lane="tester")
    (ws.root / "a.txt").write_text("ONE\n")  # a person's
    call(ws, CLAUDE, "3")
    seen = ws.show(begun.turn.number).turn
    assert (seen.prompt, seen.lanes, seen.calls, seen.files) == ("add tests", ("tester",), 3, ("one", "two"))
    assert (seen.added, seen.removed, seen.live) == (2, 0, True)
    ws.undo()
    assert not ws.show(begun.turn.number).turn.live


def test_revert_of_a_turn_takes_all_of_it_and_leaves_later_ones(ws):
    first = ws.begin_turn(CLAUDE, "first").turn.number
    call(ws, CLAUDE, "1", "one")
    call(ws, CLAUDE, "2", "two")
    ws.begin_turn(CLAUDE, "second")
    call(ws, CLAUDE, "3", "three")
    assert ws.revert(first).whole
    assert there(ws) == {"three"}


def test_a_session_that_is_resumed_in_another_process_goes_on(ws):
    ws.begin_turn(CLAUDE, "first")
    call(ws, CLAUDE, "1", "one")
    again = CLAUDE._replace(pid=1, started=5)  # the same session, and a process that is no more
    ws.begin_call(again, Call("2", "Bash", "Bash: x"))
    (ws.root / "two").write_text("x")
    ws.checkpoint("look")
    turns = {row.turns for row in ws.log("kind:effect")}
    assert len(turns) == 1 and ws.log("kind:effect")[0].uncertain


@pytest.fixture
def removed(ws):
    """Claude made a folder, a person put a file into it, and below; then Claude removed all of it."""
    folder = ws.root / "d"
    ws.begin_turn(CLAUDE, "make and remove")
    made = Call("1", "Bash", "Bash: mkdir")
    ws.begin_call(CLAUDE, made)
    (folder / "e").mkdir(parents=True)
    (folder / "f").write_text("claude's")
    ws.end_call(CLAUDE, made)
    (folder / "mine").write_text("mine")
    (folder / "e" / "mine").write_text("mine too")
    gone = Call("2", "Bash", "Bash: rm -rf d")
    ws.begin_call(CLAUDE, gone)
    shutil.rmtree(folder)
    ws.end_call(CLAUDE, gone)
    return folder


def below(folder) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("force", [False, True])
def test_a_persons_file_comes_back_with_the_agents_folder_that_it_was_in(ws, removed, force):
    outcome = ws.undo(force=force)
    assert below(removed) == {"mine": "mine", "e/mine": "mine too"}
    assert {s.path: s.note for s in outcome.plan.steps if not s.taken} == {
        b"d": "it still holds d/e/mine",
        b"d/e": "it still holds d/e/mine",
    }
    assert ws.redo().whole and not removed.exists()
    ws.undo()
    assert below(removed) == {"mine": "mine", "e/mine": "mine too"}


def test_and_where_the_tree_goes_back_to_before_the_turn(ws, removed):
    ws.rollback("start")
    assert below(removed) == {"mine": "mine", "e/mine": "mine too"}


def test_and_by_its_name_alone(ws, removed):
    assert ws.revert("d/mine").whole
    assert below(removed) == {"mine": "mine"} and not (removed / "e").exists()


def test_but_a_folder_that_a_person_removed_stays_away(ws):
    ws.begin_turn(CLAUDE, "write")
    (ws.root / "d").mkdir()
    (ws.root / "d" / "f").write_text("mine")
    gone = Call("1", "Bash", "Bash: rm d/f")
    ws.begin_call(CLAUDE, gone)
    (ws.root / "d" / "f").unlink()
    ws.end_call(CLAUDE, gone)
    (ws.root / "d").rmdir()
    outcome = ws.undo()
    assert [s.note for s in outcome.plan.steps] == ["its folder is gone"] and not (ws.root / "d").exists()
