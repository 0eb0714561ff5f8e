"""What people call things: numbers, labels, beginnings of ids."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from sampling import examples
from scene import CLAUDE, Scene
from takeback.journal import names
from takeback.model.ids import new_id
from takeback.workspace import Workspace


def test_ids_are_128_bits_in_letters_that_no_number_or_hash_has():
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(id) == 32 and set(id) <= set("klmnopqrstuvwxyz") for id in ids)


def test_a_number_an_exact_label_then_a_unique_prefix(ws: Workspace, project: Path):
    first = ws.checkpoint("before the refactor")
    history = ws.history()
    assert names.resolve(history, str(first.number)).id == first.id
    assert names.resolve(history, "before the refactor").id == first.id
    assert names.resolve(history, first.id[:10]).id == first.id == names.resolve(history, first.id).id
    with pytest.raises(takeback.NotFound):
        names.resolve(history, "before")
    with pytest.raises(takeback.NotFound):
        names.resolve(history, "")
    with pytest.raises(takeback.NotFound):
        names.resolve(history, "999")


def test_of_equal_labels_the_newest(ws: Workspace):
    ws.checkpoint("same")
    newest = ws.checkpoint("same")
    assert names.resolve(ws.history(), "same").id == newest.id


def test_a_label_that_was_given_comes_before_a_prompt_of_the_same_words(ws: Workspace, project: Path):
    given = ws.checkpoint("clean up")
    Scene(ws).turn("clean up", one_txt="1\n")
    Scene(ws).turn("clean up", two_txt="2\n")
    assert names.resolve(ws.history(), "clean up").id == given.id
    assert ws.rollback("clean up").whole
    assert not (project / "one.txt").exists() and not (project / "two.txt").exists()


def test_a_label_that_looks_like_a_number_is_found_where_no_row_has_it(ws: Workspace):
    labelled = ws.checkpoint("2026")
    assert names.resolve(ws.history(), "2026").id == labelled.id
    first = ws.history().checkpoints[0]
    ws.checkpoint("1")
    assert names.resolve(ws.history(), "1").id == first.id, "numbers go first"


def test_that_labels_are_pruned_is_said_where_something_was(ws: Workspace):
    ws.checkpoint("old")
    with pytest.raises(takeback.NotFound) as told:
        names.resolve(ws.history(), "older")
    assert told.value.hint == "list them with takeback log"
    ws.checkpoint("new")
    ws.prune(keep=1)
    with pytest.raises(takeback.NotFound) as told:
        names.resolve(ws.history(), "old")
    assert told.value.hint.endswith("what was pruned is known by its number and id only, not by its label")


def test_two_matches_is_an_error_that_lists_both(ws: Workspace, monkeypatch):
    import takeback.look.observer as module

    made = iter(["kkkk" + "k" * 28, "kkkl" + "k" * 28])
    monkeypatch.setattr(module, "new_id", lambda: next(made))
    ws.checkpoint("a")
    ws.checkpoint("b")
    with pytest.raises(takeback.UsageError) as told:
        names.resolve(ws.history(), "kkk")
    assert "kkkkkkkkkkkk" in told.value.message and "kkklkkkkkkkk" in told.value.message
    assert names.resolve(ws.history(), "kkkl").label == "b"
    lengths = names.short_ids(ws.history(), least=1)
    assert lengths["kkkk" + "k" * 28] == 4


def test_a_pruned_name_says_so(ws: Workspace, project: Path):
    old = ws.checkpoint("old")
    for n in range(3):
        (project / "f").write_text(f"{n}")
        ws.checkpoint(f"new {n}")
    ws.prune(keep=1)
    for name in (old.id[:12], str(old.number)):
        with pytest.raises(takeback.NotFound, match="pruned"):
            ws.rollback(name)


def test_row_numbers_never_move(ws: Workspace, project: Path):
    made = [ws.checkpoint(f"c{n}") for n in range(5)]
    ws.prune(keep=2)
    (project / "f").write_text("1")
    later = ws.checkpoint("later")
    numbers = {r.label: r.number for r in ws.log("kind:checkpoint")}
    assert numbers["c4"] == made[4].number and numbers["later"] == later.number == made[4].number + 1
    assert [r.seq for r in ws.log()] == sorted((r.seq for r in ws.log()), reverse=True)


def test_numbers_count_checkpoints_and_nothing_else(ws: Workspace, project: Path):
    for n in range(3):
        (project / "f").write_text(f"{n}\n")
        assert ws.checkpoint(f"c{n}").number == n + 2, "start is 1"
        ws.undo()
    ws.record_command("did it", argv=["true"])
    assert ws.checkpoint("last").number == 5
    rows = ws.log()
    assert [r.number for r in rows if r.kind == "checkpoint"] == [5, 4, 3, 2, 1]
    assert {r.number for r in rows if r.kind != "checkpoint"} == {0}
    assert names.resolve(ws.history(), "3").label == "c1"


# -- turns, by id and by words of their prompt ---------------------------------


@pytest.fixture
def turns(ws: Workspace) -> Scene:
    """Three turns of an agent, and a person's checkpoint between."""
    scene = Scene(ws)
    scene.turn("add a login form", form_html="<form>\n", auth_py="1\n")
    scene.by_hand("mine", notes_txt="mine\n")
    scene.turn("write the changelog", log_md="# Log\n")
    scene.turn("add a logout form, too", out_html="<out>\n")
    return scene


def id_of(ws: Workspace, prompt: str) -> str:
    return next(t.id for t in ws.history().agent_turns.values() if t.prompt == prompt)


@pytest.mark.parametrize("name", ["add a login form", "login form", "LOGIN", "form login", "before: add a login form"])
def test_a_turn_goes_by_words_of_its_prompt(turns: Scene, project: Path, name: str):
    ws = turns.ws
    outcome = ws.undo(name)
    assert outcome.whole and not (project / "form.html").exists() and not (project / "auth.py").exists()
    assert (project / "log.md").exists() and (project / "out.html").exists() and (project / "notes.txt").exists()
    assert ws.redo().whole and (project / "form.html").exists()
    assert ws.revert(name).whole and not (project / "auth.py").exists() and (project / "log.md").exists()
    assert ws.show(name.removeprefix("before: ")).row.kind == "turn"


@pytest.mark.parametrize("letters", [6, 32])
def test_a_turn_goes_by_its_id_with_every_verb(turns: Scene, project: Path, letters: int):
    ws = turns.ws
    name = id_of(ws, "write the changelog")[:letters]
    assert [f.path for f in ws.diff(name, "login form").files if f.status != "new"] != []
    assert ws.show(name).row.kind == "turn"
    assert ws.undo(name).whole and not (project / "log.md").exists() and (project / "out.html").exists()
    ws.redo()
    ws.revert(name)
    assert not (project / "log.md").exists()
    ws.redo()
    assert ws.rollback(name, everything=True).whole
    assert not (project / "log.md").exists() and not (project / "out.html").exists()
    assert (project / "form.html").exists() and (project / "notes.txt").exists()


@pytest.mark.parametrize("name", ["before: add a login form", "login form", "add a login form"])
def test_rollback_goes_to_just_before_a_prompt(turns: Scene, project: Path, name: str):
    turns.ws.rollback(name, everything=True)
    assert not any((project / each).exists() for each in ("form.html", "auth.py", "notes.txt", "log.md", "out.html"))


def test_words_of_two_prompts_is_an_error_that_lists_both(turns: Scene):
    with pytest.raises(takeback.UsageError) as told:
        turns.ws.undo("form")
    assert "“add a login form”" in told.value.message and "“add a logout form, too”" in told.value.message
    for each in ("add a login form", "add a logout form, too"):
        assert id_of(turns.ws, each)[:12] in told.value.message


def test_numbers_paths_and_pieces_of_words_are_no_words_of_a_prompt(turns: Scene, project: Path):
    turns.turn("fix auth.py in 77 places", auth_py="2\n")
    turns.by_hand("later", auth_py="3\n")
    for name in ("77", "log", "chang", "", "…"):
        with pytest.raises(takeback.NotFound):
            names.resolve(turns.ws.history(), name)
    meant = turns.ws.plan("revert", "auth.py").request
    assert meant.paths == (b"auth.py",) and not meant.rows, "the path, not the turn that was about it"


@pytest.mark.parametrize("word", ["tests", "tests/", "./tests", "README.md", "./README.md"])
@pytest.mark.parametrize("asked", [1, 2])
def test_a_folder_or_file_is_meant_before_words_of_a_prompt(ws: Workspace, project: Path, word: str, asked: int):
    scene = Scene(ws)
    scene.by_hand("base", README_md="1\n")
    for number in range(asked):
        scene.turn(f"say in README.md that tests pass ({number})", tests__a_py=f"{number}\n", app_py=f"{number}\n")
    scene.turn("explain it", README_md="2\n")
    meant = ws.plan("revert", word).request
    assert not meant.rows and not meant.turns
    assert meant.paths == ((b"README.md",) if "README" in word else (b"tests",))
    assert ws.revert(word).results and (project / "app.py").read_text() == f"{asked - 1}\n", "the turn stays"


def test_a_file_that_nobody_changed_is_no_word_of_a_prompt_either(ws: Workspace, project: Path):
    scene = Scene(ws)
    (project / "LICENSE").write_text("MIT\n")
    scene.by_hand("base")
    ws.prune(keep=1)
    scene.turn("mention the LICENSE in a/b", app_py="1\n")
    assert b"LICENSE" not in ws.history().all_paths
    for word in ("LICENSE", "./LICENSE", "a/b"):
        with pytest.raises(takeback.NotFound, match="no such path has changed"):
            ws.plan("revert", word)
    assert ws.plan("revert", "mention").steps


def test_what_is_no_turn_is_said_so(turns: Scene):
    ws = turns.ws
    taken = ws.undo()
    with pytest.raises(takeback.UsageError, match="is a take-back"):
        ws.undo(taken.id)
    with pytest.raises(takeback.UsageError, match="is a checkpoint"):
        ws.undo("mine")
    with pytest.raises(takeback.NotFound):
        ws.undo("no such words")
    with pytest.raises(takeback.UsageError):
        ws.undo("-1")


def test_a_run_goes_by_the_label_it_began_with(ws: Workspace, project: Path):
    begun = ws.checkpoint("before: make it", actor="", named=True)
    (project / "made").write_text("x\n")
    ws.ran(begun, "make it")
    ws.checkpoint("later")
    assert ws.undo("before: make it").whole and not (project / "made").exists()
    ws.redo()
    assert ws.revert("before: make it").whole and not (project / "made").exists()


# -- the moment before a call ----------------------------------------------------


def test_the_moment_before_a_call_is_known_to_every_verb(ws: Workspace, project: Path, tmp_path: Path):
    """As the line names it that an agent shows before each call."""
    scene = Scene(ws)
    (project / "a.txt").write_text("0\n")
    (project / "old").mkdir()
    (project / "old" / "f").write_text("old\n")
    scene.turn("write it again and again", a_txt="1\n")
    scene.write("new/b.txt", "b\n")
    (project / "old" / "f").unlink()
    (project / "old").rmdir()
    scene.bash("true")
    scene.write("a.txt", "2\n")
    call = next(b for b in reversed(ws.history().brackets.values()) if b.call.summary == "Write a.txt").id
    scene.write("a.txt", "3\n")
    (project / "new" / "b.txt").write_text("changed\n")

    assert [(f.path, f.status) for f in ws.diff(call).files] == [("a.txt", "modified"), ("new/b.txt", "modified")]
    assert [(f.path, f.status) for f in ws.diff("start", call).files if f.status == "deleted"] == []
    assert {f.path for f in ws.diff("again", call).files} == {"a.txt", "new", "new/b.txt", "old", "old/f"}
    ws.restore(call, ".", to=tmp_path / "there")
    there = tmp_path / "there"
    assert (there / "a.txt").read_text() == "1\n" and (there / "new/b.txt").read_text() == "b\n"
    assert not (there / "old").exists()
    assert ws.restore(call, "a.txt").whole and (project / "a.txt").read_text() == "1\n"
    ws.redo()
    with pytest.raises(takeback.NotFound, match="old is not in just before"):
        ws.restore(call, "old")
    with pytest.raises(takeback.UsageError, match="no checkpoint, and files have changed"):
        ws.pin(call)
    assert ws.show(call).row.kind == "call"
    assert ws.undo(call, force=True).whole
    assert ws.rollback(call, everything=True).whole and (project / "a.txt").read_text() == "1\n"


def test_a_turn_is_pinned_by_its_own_checkpoint(turns: Scene):
    pinned = turns.ws.pin(id_of(turns.ws, "write the changelog"))
    assert pinned.label == "write the changelog" and pinned.id in turns.ws.history().pins


@examples(30, 200)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["a", "b", "d/a", "d/e/b"]), st.one_of(st.none(), st.sampled_from(["1", "2", "3"]))),
        min_size=2,
        max_size=12,
    ),
    at=st.integers(0, 11),
    marks=st.sets(st.integers(0, 11)),
)
def test_the_tree_before_any_call_comes_back_byte_for_byte(steps, at, marks):
    with tempfile.TemporaryDirectory() as folder:
        root, there = Path(folder) / "p", Path(folder) / "there"
        root.mkdir()
        with takeback.open(root, create=True, store="memory") as ws:
            scene, trees, calls = Scene(ws), [], []
            scene.ws.begin_turn(CLAUDE, "do it")
            for n, (path, content) in enumerate(steps):
                if n in marks:
                    ws.checkpoint(f"mark {n}")
                trees.append({p.relative_to(root): p.read_text() for p in root.rglob("*") if p.is_file()})
                if content is not None or (root / path).exists():
                    scene.write(path, content)
                else:
                    scene.bash("true")
                calls.append(list(ws.history().brackets)[-1])
            at = min(at, len(steps) - 1)
            ws.restore(calls[at], ".", to=there)
            assert {p.relative_to(there): p.read_text() for p in there.rglob("*") if p.is_file()} == trees[at]
            ws.rollback(calls[at], everything=True)
            assert {p.relative_to(root): p.read_text() for p in root.rglob("*") if p.is_file()} == trees[at]


def test_rollback_given_an_effect_goes_to_just_before_it(ws: Workspace, project: Path):
    for n in range(4):
        (project / "f").write_text(f"{n}\n")
        ws.checkpoint(actor="claude")
    second = ws.log("kind:effect")[-2]
    ws.rollback(second.id)
    assert (project / "f").read_text() == "0\n"


@pytest.fixture
def twins(ws: Workspace, project: Path, monkeypatch) -> Workspace:
    """An effect whose id begins with the name of a file."""
    import takeback.look.observer as module

    (project / "kkkkkkkk").write_text("1\n")
    (project / "other").write_text("1\n")
    ws.checkpoint("before")
    (project / "other").write_text("2\n")
    monkeypatch.setattr(module, "new_id", lambda: "k" * 32)
    ws.track(["other"])
    monkeypatch.undo()
    (project / "kkkkkkkk").write_text("2\n")
    ws.checkpoint("after")
    return ws


@pytest.mark.parametrize("word", ["kkkkkkkk", "./kkkkkkkk"])
def test_a_path_is_meant_before_the_beginning_of_an_id(twins: Workspace, project: Path, word: str):
    twins.revert(word)
    assert (project / "kkkkkkkk").read_text() == "1\n" and (project / "other").read_text() == "2\n"


def test_a_whole_id_that_is_a_path_too_is_not_guessed_at(twins: Workspace, project: Path):
    (project / ("k" * 32)).write_text("1\n")
    twins.checkpoint("third")
    with pytest.raises(takeback.UsageError, match=r"is a path, and also the effect kkkkkkkk"):
        twins.revert("k" * 32)
    twins.revert("k" * 9)
    assert (project / "other").read_text() == "1\n"


@pytest.mark.parametrize("verb", ["undo", "rollback", "show", "diff", "find_checkpoint", "pin"])
def test_where_only_an_entry_will_do_a_path_of_that_name_is_refused(twins: Workspace, project: Path, verb: str):
    with pytest.raises(takeback.UsageError, match="is a path, and also how the id of kkkkkkkkkkkk"):
        getattr(twins, verb)("kkkkkkkk")
    for more in ({}, {"to": project.parent / "elsewhere"}):
        with pytest.raises(takeback.UsageError, match="is a path, and also how the id of kkkkkkkkkkkk"):
            twins.restore("kkkkkkkk", "other", **more)
    assert (project / "kkkkkkkk").read_text() == (project / "other").read_text() == "2\n"
    assert twins.show("k" * 9).row.id == "k" * 32


def test_a_label_is_one_line(ws: Workspace):
    for label in ("two\nlines", "nul\0"):
        with pytest.raises(takeback.UsageError):
            ws.checkpoint(label)
