"""What people call things: numbers, labels, beginnings of ids."""

from __future__ import annotations

from pathlib import Path

import pytest

import takeback
from takeback import names
from takeback.ids import new_id
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
    import takeback.observer as module

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
    assert numbers["c4"] == made[4].number and numbers["later"] == later.number == made[4].number + 2
    assert [r.number for r in ws.log()] == sorted((r.number for r in ws.log()), reverse=True)


def test_rollback_given_an_effect_goes_to_just_before_it(ws: Workspace, project: Path):
    for n in range(4):
        (project / "f").write_text(f"{n}\n")
        ws.checkpoint(actor="claude")
    second = next(r for r in reversed(ws.log("kind:effect")) if r.number > ws.log("kind:effect")[-1].number)
    ws.rollback(second.id)
    assert (project / "f").read_text() == "0\n"


def test_a_path_that_could_be_an_id_is_not_guessed_at(ws: Workspace, project: Path, monkeypatch):
    import takeback.observer as module

    (project / "kkkkkkkk").write_text("1\n")
    ws.checkpoint("before")
    (project / "kkkkkkkk").write_text("2\n")
    monkeypatch.setattr(module, "new_id", lambda: "k" * 32)
    ws.track(["kkkkkkkk"])
    monkeypatch.undo()
    with pytest.raises(takeback.UsageError, match="both"):
        ws.revert("kkkkkkkk")
    ws.revert("./kkkkkkkk")
    assert (project / "kkkkkkkk").read_text() == "1\n"


def test_a_label_is_one_line(ws: Workspace):
    for label in ("two\nlines", "nul\0"):
        with pytest.raises(takeback.UsageError):
            ws.checkpoint(label)
