"""The journal, folded: liveness, standing take-backs, turns and what shows. Each rule once, in its smallest story."""

from __future__ import annotations

from pathlib import Path

import pytest

import takeback
from takeback.journal.history import (
    History,
    pack_list,
    pack_snapshot,
    pack_units,
    unpack_list,
    unpack_snapshot,
    unpack_units,
)
from takeback.journal.journal import Row
from takeback.model.effects import FILE, FOLDER, UNOBSERVED, Change, Entry, Request, Snapshot, Turn, Unit, text
from takeback.workspace import Workspace


def entry(n: int) -> Entry:
    return Entry(FILE, 0o644, n, bytes([n]) * 32, b"", b"", n, 0, 0)


def test_small_lists_live_in_the_row_and_long_ones_in_a_blob():
    stored: dict[bytes, bytes] = {}

    def put(data: bytes) -> bytes:
        stored[b"i" * 32] = data
        return b"i" * 32

    few = [Change(b"p", None, entry(1))]
    assert (
        "inline" in pack_list(few, put) and unpack_list(pack_list(few, put), stored.__getitem__) == few and not stored
    )
    many = [Change(b"path/%d" % n, entry(1), entry(2)) for n in range(2000)]
    packed = pack_list(many, put)
    assert packed["count"] == 2000 and "blob" in packed and unpack_list(packed, stored.__getitem__) == many


def test_units_and_snapshots_round_trip():
    units = {Unit(3, b"a"), Unit(3, b"\xff/b"), Unit(9, b"a")}
    assert unpack_units(pack_units(units)) == units
    snapshot = Snapshot(b"i" * 32, b"s" * 32, Entry(FOLDER, 0o750, 0, b"", b"x" * 32, b"", -5, 1, 2), 7)
    assert unpack_snapshot(pack_snapshot(snapshot)) == snapshot


def test_requests_round_trip_and_say_only_what_was_asked():
    request = Request(
        "rollback", since=4, actors=("A",), merge=True, paths=(b"\xff",), turns=(Turn("A", "1"),), label="x"
    )
    assert Request.from_json(request.to_json()) == request
    assert Request("undo").to_json() == {"verb": "undo"}


def live(ws: Workspace) -> set[str]:
    history = ws.history()
    places = {row.id: place for place, row in enumerate(reversed(ws.log()), 1)}
    return {
        f"{text(path)}@{places[history.by_seq[seq].id]}"
        for seq, path in history.live
        if not history.by_seq[seq].takeback
    }


def turn(ws: Workspace, actor: str, **files: str) -> None:
    for name, content in files.items():
        (ws.root / name).write_text(content)
    ws.checkpoint(actor=actor)


def content(ws: Workspace) -> dict[str, str]:
    return {p.name: p.read_text() for p in sorted(ws.root.iterdir())}


def test_a_unit_is_live_unless_a_live_unit_took_it(ws: Workspace):
    turn(ws, "A", p="1\n")
    before = live(ws)
    ws.undo()
    assert live(ws) == set()
    ws.redo()
    assert live(ws) == before
    ws.undo()
    assert live(ws) == set() and content(ws) == {}


def test_undo_steps_back_one_turn_each_time_and_never_undoes_an_undo(ws: Workspace):
    for n in "123":
        turn(ws, "A", p=n)
    seen = []
    for _ in range(4):
        ws.undo()
        seen.append(content(ws).get("p"))
    assert seen == ["2", "1", None, None]
    for _ in range(4):
        ws.redo()
        seen.append(content(ws).get("p"))
    assert seen[4:] == ["1", "2", "3", "3"]


def test_undo_n_is_one_take_back_that_one_redo_brings_back(ws: Workspace):
    for n in "123":
        turn(ws, "A", p=n)
    ws.undo(2)
    assert content(ws) == {"p": "1"}
    ws.redo()
    assert content(ws) == {"p": "3"}


def test_tracks_of_one_actor_are_one_turn_until_its_checkpoint(ws: Workspace):
    for name in ("a", "b"):
        (ws.root / name).write_text("1")
        ws.track([name], actor="A")
    assert len({t for e in ws.history().effects for t in e.turns}) == 1
    turn(ws, "A", c="1")
    turn(ws, "A", d="1")
    assert len({t for e in ws.history().effects for t in e.turns}) == 2
    ws.undo()
    assert set(content(ws)) == {"a", "b", "c"}
    ws.undo()
    assert content(ws) == {}


def test_a_stretch_by_hand_is_a_turn_only_where_no_agent_acted_around_it(ws: Workspace):
    (ws.root / "mine").write_text("1")
    ws.checkpoint("one")
    turn(ws, "A", theirs="1")
    (ws.root / "mine too").write_text("1")
    ws.checkpoint("two")
    ws.undo()
    assert set(content(ws)) == {"mine", "mine too"}, "the agent's turn goes"
    ws.undo()
    assert set(content(ws)) == {"mine too"}, "then the stretch by hand before it; not the one beside the agent's work"
    assert ws.undo().id == ""


def test_work_that_others_undid_already_is_passed_all_the_same(ws: Workspace):
    """Else undo would come back to it for ever, and never reach what lies below."""
    turn(ws, "A", p="1")
    turn(ws, "A", q="1")
    turn(ws, "A", q="2")
    (ws.root / "q").write_text("1")
    ws.track(["q"], actor="A")
    ws.undo()
    assert content(ws) == {"p": "1", "q": "2"}
    ws.undo()
    assert content(ws) == {"p": "1", "q": "1"}


def test_a_turn_that_comes_to_nothing_does_not_hold_undo_up(ws: Workspace):
    turn(ws, "A", p="1")
    (ws.root / "p").write_text("2")
    ws.track(["p"], actor="A")
    turn(ws, "A", p="1")
    ws.undo()
    assert content(ws) == {"p": "1"}
    ws.undo()
    assert content(ws) == {}


def test_an_undo_that_had_to_keep_everything_moves_on(ws: Workspace):
    turn(ws, "A", p="1")
    turn(ws, "A", q="1")
    (ws.root / "q").write_text("mine")
    kept = ws.undo()
    assert kept.id and kept.counts == {"done": 0, "kept": 1, "failed": 0}
    ws.undo()
    assert content(ws) == {"q": "mine"}
    assert ws.undo().id == ""


def test_what_was_kept_goes_once_it_is_free(ws: Workspace):
    turn(ws, "A", p="1")
    turn(ws, "A", q="agent")
    (ws.root / "q").write_text("mine")
    ws.undo()
    (ws.root / "q").write_text("agent")
    ws.checkpoint()
    ws.undo()
    assert "p" not in content(ws)


def test_rollback_to_before_an_undo_takes_the_undo_back(ws: Workspace):
    turn(ws, "A", p="1")
    ws.checkpoint("good")
    ws.undo()
    assert content(ws) == {}
    ws.rollback("good")
    assert content(ws) == {"p": "1"}


def test_revert_of_a_take_back_is_the_redo_of_just_that_one(ws: Workspace):
    turn(ws, "A", p="1")
    turn(ws, "A", q="1")
    first = ws.undo()
    ws.undo()
    ws.revert(first.id)
    assert content(ws) == {"q": "1"}
    with pytest.raises(takeback.UsageError, match="redo"):
        ws.revert(ws.log("kind:takeback")[0].id)


def test_revert_of_a_take_back_that_is_redone_already_is_no_entry(ws: Workspace):
    turn(ws, "A", p="1")
    first = ws.undo()
    ws.redo()
    entries = len(ws.log())
    for _ in range(2):
        done = ws.revert(first.id)
        assert not done.id and not done.results and len(ws.log()) == entries
    again = ws.undo()
    assert not ws.revert(first.id).id, "it is the other one that stands"
    assert ws.revert(again.id).id and content(ws) == {"p": "1"}


def test_revert_path_goes_to_the_last_checkpoint_else_to_before_its_last_change(ws: Workspace):
    for n in "12":
        (ws.root / "p").write_text(n)
        ws.checkpoint(n)
    (ws.root / "p").write_text("3")
    ws.revert("./p")
    assert content(ws) == {"p": "2"}
    ws.revert("./p")
    assert content(ws) == {"p": "1"}
    with pytest.raises(takeback.NotFound):
        ws.revert("./never")


def test_revert_of_an_effect_and_a_path_takes_what_it_did_there_and_nothing_else(ws: Workspace):
    turn(ws, "A", p="1", q="1")
    turn(ws, "A", p="1\n2", q="2")
    second = ws.log("kind:effect")[0].id
    turn(ws, "A", q="3")
    outcome = ws.revert(second, "./p")
    assert outcome.whole and content(ws) == {"p": "1", "q": "3"}
    assert ws.revert(second, "./q").counts["kept"] == 1, "the newest change to q is not its"
    assert not ws.plan("revert", second, "./p").steps, "that is taken already"
    ws.redo()
    assert content(ws) == {"p": "1\n2", "q": "3"}
    with pytest.raises(takeback.UsageError, match="a take-back is reverted whole"):
        ws.revert(outcome.id, "./p")


def test_force_takes_the_foreign_work_above_too_and_lists_it(ws: Workspace):
    turn(ws, "A", p="agent")
    (ws.root / "p").write_text("mine")
    ws.checkpoint()
    effect = ws.log("actor:A kind:effect")[0].id
    assert ws.revert(effect).counts["kept"] == 1
    outcome = ws.revert(effect, force=True)
    assert content(ws) == {} and live(ws) == set()
    assert len(ws.show(outcome.id).took) == 2
    ws.redo()
    assert content(ws) == {"p": "mine"}


def test_a_failed_step_may_be_tried_again(ws: Workspace, monkeypatch):
    from takeback.domains.files import Files

    (ws.root / "p").write_text("0")
    ws.checkpoint()
    turn(ws, "A", p="1")

    def fail(self, *_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Files, "_write_beside", fail)
        assert ws.undo().counts["failed"] == 1
    assert content(ws) == {"p": "1"}
    assert ws.undo().counts["done"] == 1
    assert content(ws) == {"p": "0"}


def test_first_sight_is_no_unit_and_times_are_kept_apart():
    def fold(changes: list[Change]) -> History:
        from takeback.journal.journal import Row

        return History(
            [Row(1, "k" * 32, "change", 0.0, {"turns": [], "list": pack_list(changes, lambda d: d)})], lambda i: i
        )

    touched = entry(1)._replace(mtime_ns=99)
    history = fold(
        [Change(b"seen", UNOBSERVED, entry(1)), Change(b"touched", entry(1), touched), Change(b"new", None, entry(2))]
    )
    assert history.live == {(1, b"new")}
    assert list(history.times) == [b"touched"]


def test_rows_of_unknown_kinds_are_passed_over():
    from takeback.journal.journal import Row

    assert History([Row(1, "k" * 32, "open", 0.0, {"later": "version"})], lambda i: i).effects == []


def test_a_folder_that_still_holds_something_is_kept_and_the_plan_says_so(ws: Workspace, project: Path):
    (project / "d").mkdir()
    (project / "d/theirs").write_text("1")
    ws.checkpoint(actor="A")
    (project / "d/mine").write_text("1")
    plan = ws.plan("undo")
    assert {text(s.path): s.verdict for s in plan.steps} == {"d/theirs": "exact", "d": "drifted"}
    assert "d/mine" in next(s.note for s in plan.kept)
    ws.apply(plan)
    assert (project / "d/mine").read_text() == "1" and not (project / "d/theirs").exists()


def test_what_would_stand_in_a_folder_that_is_gone_is_kept_and_force_brings_the_folder_too(
    ws: Workspace, project: Path
):
    (project / "d").mkdir()
    (project / "d/f").write_text("1")
    (project / "d/g").write_text("1")
    ws.checkpoint("before")
    (project / "d/f").unlink()
    ws.checkpoint(actor="A")
    (project / "d/g").unlink()
    (project / "d").rmdir()
    plan = ws.plan("undo")
    assert [(text(s.path), s.verdict, s.note) for s in plan.steps] == [("d/f", "drifted", "its folder is gone")]
    ws.undo()
    assert not (project / "d").exists()
    ws.revert(ws.log("actor:A kind:effect")[0].id, force=True)
    assert (project / "d/f").read_text() == "1"


def test_shared_work_goes_with_the_last_of_its_turns(ws: Workspace, project: Path):
    """Rows of several turns come with hooks; what they mean is settled already."""
    from takeback.journal.journal import New
    from takeback.model.ids import new_id

    (project / "both").write_text("0")
    ws.checkpoint("before")
    (project / "both").write_text("1")
    ws.track(["both"])
    changes = list(ws.history().effects[-1].changes.values())
    for actor in "AB":
        (project / actor).write_text("1")
        ws.track([actor], actor=actor)
    turns = [list(t) for e in ws.history().effects for t in e.turns]
    back = [Change(c.path, c.after, c.before) for c in changes]
    body = {"turns": [], "list": pack_list(back, ws.store.blobs.put)}
    shared = {"turns": turns, "list": pack_list(changes, ws.store.blobs.put)}
    ws.store.journal.append([New("change", new_id(), body), New("change", new_id(), shared)], 0)
    ws.undo()
    assert content(ws) == {"B": "1", "both": "1"}, "the other one's work too, so it stays"
    ws.undo()
    assert content(ws) == {"both": "0"}, "it goes with the last of its turns"


def test_each_moment_of_a_followed_tree_is_a_turn(ws: Workspace):
    for n in "123":
        (ws.root / "p").write_text(n)
        assert (moment := ws.moment()) is not None and moment.is_turn
        assert ws.moment() is None, "nothing happened since"
    assert len({t for e in ws.history().effects for t in e.turns}) == 3
    for left in ("2", "1", None):
        ws.undo()
        assert content(ws).get("p") == left
        assert ws.moment() is None, "what a take-back did is its own"
    ws.redo(3)
    assert content(ws) == {"p": "3"}


def test_a_moment_is_nobodys_once_an_agent_has_acted_and_until_the_next_named_checkpoint(ws: Workspace):
    turn(ws, "run", b="1")  # a command that was run is no agent
    (ws.root / "b").unlink()
    assert (moment := ws.moment()) is not None and moment.is_turn
    turn(ws, "A", a="1")
    (ws.root / "beside").write_text("1")
    assert (moment := ws.moment()) is not None and not moment.is_turn
    assert ws.history().effects[-1].turns == ws.history().turns(ws.history().effects[-1].seq) == frozenset()
    for _ in range(4):
        ws.undo()
    assert content(ws) == {"beside": "1"}, "undo never takes what may be anyone's"
    ws.checkpoint("named")
    (ws.root / "after").write_text("1")
    assert (moment := ws.moment()) is not None and moment.is_turn
    with takeback.open(ws.root) as another:  # a restarted watch reads the same from the journal
        (ws.root / "more").write_text("1")
        assert (moment := another.moment()) is not None and moment.is_turn


def test_moments_make_no_rollback_keep_what_was_done_by_hand(ws: Workspace):
    (ws.root / "followed").write_text("1")
    ws.moment()
    (ws.root / "by hand").write_text("1")
    ws.track(["by hand"])
    ws.rollback()
    assert content(ws) == {}


def test_with_an_agent_known_a_rollback_keeps_moments_as_it_keeps_what_is_nobodys(ws: Workspace):
    (ws.root / "followed").write_text("1")
    ws.moment()
    turn(ws, "A", a="1")
    ws.rollback("start")
    assert content(ws) == {"followed": "1"}
    ws.rollback("start", everything=True)
    assert content(ws) == {}


def test_a_stretch_by_hand_ends_with_a_moment(ws: Workspace):
    (ws.root / "p").write_text("1")
    ws.track(["p"])
    (ws.root / "p").write_text("2")
    ws.moment()
    (ws.root / "p").write_text("3")
    ws.track(["p"])
    for left in ("2", "1", None):
        assert ws.undo().whole
        assert content(ws).get("p") == left


def test_a_tree_that_is_followed_for_long_gets_checkpoints_of_its_own(ws: Workspace):
    for n in range(103):
        (ws.root / "p").write_text(f"{n:03}")
        ws.moment()
    made = ws.history().checkpoints
    assert len(made) == 2 and not made[1].named
    assert ws.history().newest_named() == made[0]


def test_a_take_back_that_did_not_put_the_path_exactly_back_shows():
    """It took all that lies above, but merged: what it left is a change of its own, and so is what it took."""

    def folded(left: Entry, *more: Row) -> History:
        body = {"request": {"verb": "undo"}, "kept": [], "segments": [listed(Change(b"p", entry(2), left, (1,)))]}
        return History(
            [
                Row(1, "work", "change", 0.0, listed(Change(b"p", entry(1), entry(2)))),
                Row(2, "undo", "takeback", 0.0, body),
                Row(3, "begun", "intent", 0.0, {"takeback": "undo", "segment": 0}),
                Row(4, "done", "outcome", 0.0, {"takeback": "undo", "segment": 0, "not_done": []}),
                *more,
            ],
            {}.__getitem__,
        )

    def listed(change: Change) -> dict:
        return {"domain": "files", "verdict": "exact", "list": pack_list([change], lambda _: b"")}

    assert folded(entry(1)).layers(b"p", 0) == []
    assert folded(entry(3)).layers(b"p", 0) == [Unit(1, b"p"), Unit(4, b"p")]
    found = Row(5, "look", "change", 0.0, listed(Change(b"p", None, entry(1))))
    assert folded(entry(1), found).layers(b"p", 0) == [], "whose folder was elsewhere for a moment is only found again"
