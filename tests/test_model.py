"""Properties of the model, over random histories. Each one is a promise the real workspace keeps too."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model import (
    COMPENSATING,
    DRIFTED,
    EXACT,
    IRREVERSIBLE,
    TAKEN,
    Checkpoint,
    Effect,
    Stale,
    Takeback,
    Turn,
    Workspace,
)
from sampling import examples

often = examples(50, 300)

PATHS = ("p", "q", "r")
START = {"p": ("0", "0", "0"), "q": ("0", "0", "0")}

# -- random histories --------------------------------------------------------

paths = st.sampled_from(PATHS)
actors = st.sampled_from(("A", "B"))
edits = st.one_of(
    st.tuples(paths, st.integers(0, 2), st.sampled_from("123")),  # set one line
    st.tuples(paths, st.none(), st.none()),  # delete
)
consents = st.sampled_from(({}, {}, {"merge": True}, {"force": True}, {"everything": True}))
by_hand = st.tuples(st.just("hand"), edits)
calls = st.tuples(st.just("call"), actors, st.booleans(), st.booleans(), st.lists(edits, min_size=1, max_size=2))
acts = st.tuples(st.just("act"), actors, st.sampled_from((EXACT, COMPENSATING, IRREVERSIBLE)))
checkpoints = st.tuples(st.just("checkpoint"), st.sampled_from(("", "named")))
overlaps = st.one_of(st.tuples(st.just("open"), actors), st.tuples(st.just("close")))
takebacks = st.one_of(
    st.tuples(st.just("undo"), st.integers(1, 2), consents),
    st.tuples(st.just("redo"), st.integers(1, 2), consents),
    st.tuples(st.just("rollback"), st.integers(0, 20), consents),
    st.tuples(st.just("revert"), st.integers(0, 20), consents),
    st.tuples(st.just("revert path"), paths, consents),
)
work = st.one_of(by_hand, calls, calls, acts, checkpoints, overlaps)
histories = st.lists(st.one_of(work, work, takebacks), max_size=14)


def edit(ws: Workspace, change: tuple) -> None:
    path, line, value = change
    lines = list(ws.world.get(path) or ("0", "0", "0"))
    if line is not None:
        lines[line] = value
    ws.world[path] = None if line is None else tuple(lines)


class Story:
    """Plays operations on a workspace, numbering each actor's turns."""

    def __init__(self, operations: list[tuple]) -> None:
        self.ws = Workspace(dict(START))
        self.number = {"A": 1, "B": 1}
        for operation in operations:
            self.play(*operation)

    def play(self, kind: str, *args) -> None:
        ws = self.ws
        if kind == "hand":
            edit(ws, args[0])
        elif kind == "call":
            actor, new_turn, scans, changes = args
            self.number[actor] += new_turn
            bracket = ws.open(Turn(actor, self.number[actor]), None if scans else {c[0] for c in changes})
            for change in changes:
                edit(ws, change)
            ws.close(bracket)
        elif kind == "act":
            ws.record(Turn(args[0], self.number[args[0]]), args[1])
        elif kind == "checkpoint":
            ws.checkpoint(args[0])
        elif kind == "open":
            ws.open(Turn(args[0], self.number[args[0]]))
        elif kind == "close" and ws.brackets:
            ws.close(ws.brackets[0])
        elif kind in ("undo", "redo"):
            ws.apply(getattr(ws, kind)(args[0], **args[1]))
        elif kind == "rollback":
            ws.apply(ws.rollback(pick(ws, Checkpoint, args[0]), **args[1]))
        elif kind == "revert" and (what := pick_revertible(ws, args[0])) is not None:
            ws.apply(ws.revert(what, **args[1]))
        elif kind == "revert path":
            ws.apply(ws.revert(args[0], **args[1]))


def pick(ws: Workspace, kinds, number: int) -> int | None:
    found = [i for i, e in enumerate(ws.journal) if isinstance(e, kinds)]
    return found[number % len(found)] if found else None


def pick_revertible(ws: Workspace, number: int) -> int | None:
    found = [i for i, e in enumerate(ws.journal) if isinstance(e, Effect) and not e.by_takeback]
    found += [i for i, e in enumerate(ws.journal) if isinstance(e, Takeback) and e.verb != "redo"]
    return found[number % len(found)] if found else None


def play(operations: list[tuple]) -> Workspace:
    ws = Story(operations).ws
    ws.look()
    ws.brackets.clear()
    return ws


def meaning(ws: Workspace) -> tuple:
    """All that matters to a user: the tree, and which work is live."""
    return ws.tree(), {u for u in ws.live() if not ws.journal[u.seq].by_takeback}


def files(ws: Workspace) -> set:
    return {u for u in ws.live() if not u.path.startswith("act:") and not ws.journal[u.seq].by_takeback}


# -- the known tree ----------------------------------------------------------


@often
@given(histories)
def test_a_paths_changes_are_one_chain_from_the_first_checkpoint_to_now(operations):
    ws = play(operations)
    for path in PATHS:
        state = START.get(path)
        for _, row in ws.rows():
            if path in row.changes:
                assert row.changes[path].before == state
                state = row.changes[path].after
        assert state == ws.known.get(path) == ws.world.get(path)


@often
@given(histories)
def test_the_layers_of_a_path_are_one_chain_and_hold_all_its_live_work(operations):
    ws = play(operations)
    for path in PATHS:
        state = START.get(path)
        layers = ws.layers(path, 0)
        for unit in layers:
            assert ws.change(unit).before == state
            state = ws.change(unit).after
        assert state == ws.world.get(path)
        assert {u for u in files(ws) if u.path == path} <= set(layers)


# -- (a) rollback ------------------------------------------------------------


@often
@given(histories, st.integers(0, 20))
def test_rollback_all_restores_exactly_the_checkpoints_tree(operations, number):
    ws = play(operations)
    to = pick(ws, Checkpoint, number)
    ws.apply(ws.rollback(to, everything=True))
    assert ws.tree() == {p: s for p, s in ws.journal[to].tree.items() if not p.startswith("act:")}


@often
@given(histories, st.integers(0, 20), consents)
def test_a_second_rollback_finds_nothing_to_take_back(operations, number, consent):
    ws = play(operations)
    to = pick(ws, Checkpoint, number)
    ws.apply(ws.rollback(to, **consent))
    assert not [s for s in ws.rollback(to, **consent).steps if s.verdict in TAKEN]


# -- (b) (d) (g) (k) redo ----------------------------------------------------


@often
@given(histories, st.integers(1, 4))
def test_n_undos_then_n_redos_is_identity(operations, n):
    operations = [o for o in operations if o[0] != "act"]
    ws = play(operations)
    before = meaning(ws)
    undone = 0
    for _ in range(n):
        undone += any(s.verdict in TAKEN for s in ws.apply(ws.undo()).steps)
    for _ in range(undone):
        ws.apply(ws.redo())
    assert meaning(ws) == before


@often
@given(histories, takebacks)
def test_redo_brings_back_every_state_a_takeback_replaced(operations, takeback):
    story = Story(operations)
    story.ws.look()
    story.ws.brackets.clear()
    before, rows = story.ws.tree(), len(story.ws.journal)
    units = files(story.ws)
    story.play(*takeback)
    last = story.ws.journal[-1]
    if len(story.ws.journal) > rows and last.verb != "redo" and last.rows:
        story.ws.apply(story.ws.redo())
        assert (story.ws.tree(), files(story.ws)) == (before, units)


@often
@given(histories, takebacks, st.lists(by_hand, max_size=3))
def test_after_new_work_too_by_force(operations, takeback, later):
    story = Story(operations)
    ws = story.ws
    ws.look()
    ws.brackets.clear()
    before, rows = ws.tree(), len(ws.journal)
    story.play(*takeback)
    assume(getattr(ws.journal[-1], "verb", "redo") != "redo")
    changed = {p for _, row in ws.rows(rows) if row.by_takeback for p in row.changes if not p.startswith("act:")}
    assume(changed)
    for operation in later:
        story.play(*operation)
    ws.apply(ws.redo(force=True))
    assert all(ws.world.get(p) == before.get(p) for p in changed)


@often
@given(histories, takebacks, st.lists(by_hand, max_size=3))
def test_redo_keeps_new_work(operations, takeback, later):
    story = Story(operations)
    ws = story.ws
    ws.look()
    ws.brackets.clear()
    story.play(*takeback)
    ws.look()
    start = len(ws.journal)
    for operation in later:
        story.play(*operation)
    ws.look()
    new = {u.path: ws.world.get(u.path) for u in ws.shown(start)}
    ws.apply(ws.redo())
    assert all(ws.world.get(path) == state for path, state in new.items())


# -- (c) others' work --------------------------------------------------------


@often
@given(histories, takebacks)
def test_nobody_elses_work_is_taken_or_covered_without_consent(operations, takeback):
    assume(not takeback[-1])
    story = Story(operations)
    ws = story.ws
    ws.look()
    ws.brackets.clear()
    before, live, start = ws.tree(), ws.live(), len(ws.journal)
    story.play(*takeback)
    entry = ws.journal[-1]
    if len(ws.journal) == start or not isinstance(entry, Takeback):
        return
    took = reached = {u for seq in entry.rows for c in ws.journal[seq].changes.values() for u in c.took}
    while more := {u for taken in reached for u in ws.change(taken).took} - reached:
        reached = reached | more  # taking back a take-back moves what that one took
    others = {u for u in live - reached if not ws.journal[u.seq].by_takeback}
    assert others <= ws.live()
    for path in PATHS:
        above = [u for u in ws.layers(path, 0) if u in others]
        if above and ws.world.get(path) != before.get(path):
            newest = max(above)  # at most what was changed after them is gone, or our own merges merged again
            gone = {u for u in took if u.path == path}
            assert min(gone) > newest or any(ws.journal[u.seq].by_takeback for u in ws.layers(path, min(gone).seq))


# -- (e) (f) undo ------------------------------------------------------------


@often
@given(histories)
def test_repeated_undo_ends_and_addresses_each_turn_once(operations):
    ws = play(operations)
    seen: list[Turn] = []
    while (plan := ws.undo()).request.target:
        seen += ws.apply(plan).request.target
        assert len(seen) == len(set(seen))
    kept = {u for e in ws.journal for u in getattr(e, "kept", ())}
    assert all(u in kept for u in ws.live() if ws.turns(u.seq))


@often
@given(st.lists(st.one_of(by_hand.map(lambda o: ("call", "A", True, True, [o[1]])), checkpoints), max_size=10))
def test_alone_undoing_every_turn_gives_the_first_tree(operations):
    ws = play(operations)
    while (plan := ws.undo()).request.target:
        ws.apply(plan)
    assert ws.tree() == START


@often
@given(
    st.lists(
        st.one_of(by_hand, checkpoints, st.tuples(st.sampled_from(("undo", "redo")), st.just(1), st.just({}))),
        max_size=10,
    )
)
def test_by_hand_undoing_every_stretch_gives_the_first_tree(operations):
    ws = play(operations)
    while (plan := ws.undo()).request.target:
        ws.apply(plan)
    assert ws.tree() == START


@often
@given(histories, st.integers(1, 4))
def test_undo_n_is_n_undos(operations, n):
    once = play(operations)
    many = deepcopy(once)
    once.apply(once.undo(n))
    for _ in range(n):
        many.apply(many.undo())
    assert meaning(once) == meaning(many)


# -- (h) plans ---------------------------------------------------------------


@often
@given(histories, takebacks)
def test_the_dry_run_is_the_result(operations, takeback):
    ws = play(operations)
    kind, what, consent = takeback
    if kind == "rollback":
        what = pick(ws, Checkpoint, what)
    elif kind == "revert":
        what = pick_revertible(ws, what)
        assume(what is not None)
    plan = getattr(ws, kind.split()[0])(what, **consent)
    expected = dict(ws.tree())
    for step in plan.steps:
        if step.verdict in TAKEN and not step.path.startswith("act:"):
            assert expected.get(step.path) == step.expected
            expected[step.path] = step.target
    ws.apply(plan)
    assert ws.tree() == {p: s for p, s in expected.items() if s is not None}


@often
@given(histories, st.integers(0, 20), edits)
def test_a_plan_goes_stale_only_by_what_it_depends_on(operations, number, later):
    ws = play(operations)
    plan = ws.rollback(pick(ws, Checkpoint, number), actors={"A"})
    edit(ws, later)
    touched = {s.path for s in plan.steps if s.verdict in TAKEN}
    if later[0] not in touched:
        ws.apply(plan)


# -- (i) (j) selective revert, kept units -------------------------------------


@often
@given(histories)
def test_what_was_kept_can_be_taken_by_force(operations):
    ws = play(operations)
    ws.apply(ws.undo())
    if isinstance(ws.journal[-1], Takeback):
        for unit in ws.journal[-1].kept:
            if not unit.path.startswith("act:") and unit in ws.live():
                whole = [i for i, e in enumerate(ws.journal) if isinstance(e, Takeback) and unit.seq in e.rows]
                ws.apply(ws.revert(whole[0] if whole else unit.seq, force=True))  # what the message names
                assert unit not in ws.live()
                assert whole or ws.world.get(unit.path) == ws.change(unit).before


@often
@given(histories, st.sampled_from(("undo", "revert")), st.integers(0, 20))
def test_force_never_makes_live_again_what_was_taken_back(operations, verb, number):
    ws = play(operations)
    rows = [seq for seq, row in ws.rows() if not row.by_takeback]
    if verb == "revert" and not rows:
        return
    before = files(ws)
    ws.apply(ws.undo(force=True) if verb == "undo" else ws.revert(rows[number % len(rows)], force=True))
    assert files(ws) <= before


own_lines = st.tuples(st.sampled_from("ABH"), st.sampled_from("pq"), st.none())
careful = st.lists(
    st.one_of(
        own_lines,
        own_lines,
        st.tuples(st.sampled_from(("undo", "redo", "revert", "rollback")), st.integers(0, 20), st.booleans()),
    ),
    max_size=12,
)


@often
@given(careful)
def test_a_file_always_holds_exactly_its_live_work(operations):
    """Each actor has a line of its own and writes nothing twice: replaying live work must give the tree."""
    ws, turn = Workspace(dict(START)), 0
    for kind, what, how in operations:
        if kind in "ABH":
            turn += 1
            bracket = ws.open(Turn(kind, turn)) if kind != "H" else None
            edit(ws, (what, "ABH".index(kind), str(turn)))
            ws.close(bracket) if bracket else ws.look()
        elif kind in ("undo", "redo"):
            ws.apply(getattr(ws, kind)(1, merge=how))
        elif kind == "rollback":
            ws.apply(ws.rollback(merge=how))
        elif (found := pick_revertible(ws, what)) is not None:
            ws.apply(ws.revert(found, merge=how))
        replayed = {path: list(lines) for path, lines in START.items()}
        for unit in sorted(files(ws)):
            change = ws.change(unit)
            for line, (old, new) in enumerate(zip(change.before, change.after)):
                if old != new:
                    replayed[unit.path][line] = new
        assert ws.tree() == {path: tuple(lines) for path, lines in replayed.items()}


# -- outside acts -------------------------------------------------------------


@often
@given(histories)
def test_outside_acts_are_taken_back_newest_first_and_never_twice(operations):
    ws = play(operations)
    start = len(ws.acts)
    ws.apply(ws.rollback(0, everything=True))
    undone = [int(a.split(":")[1]) for a in ws.acts[start:] if a.startswith("undo")]
    assert undone == sorted(undone, reverse=True)
    for act in {a.split()[1] for a in ws.acts}:
        history = [a.split()[0] for a in ws.acts if a.endswith(f" {act}")]
        assert history == ["do", "undo"] * (len(history) // 2) + ["do"] * (len(history) % 2)


# -- each rule once, in the smallest story that shows it ----------------------

A1, A2, B1 = Turn("A", 1), Turn("A", 2), Turn("B", 1)


def call(ws: Workspace, turn: Turn, path: str, state, named: bool = False) -> None:
    bracket = ws.open(turn, {path} if named else None)
    ws.world[path] = state
    ws.close(bracket)


def test_a_write_tool_owns_only_the_paths_it_named():
    ws = Workspace({"p": ("0",), "q": ("0",)})
    bracket = ws.open(A1, {"p"})
    ws.world.update(p=("agent",), q=("person",))
    ws.checkpoint()
    ws.close(bracket)
    ws.apply(ws.undo())
    assert ws.tree() == {"p": ("0",), "q": ("person",)}


def test_rollback_twice_does_not_take_the_persons_work_the_second_time():
    ws = Workspace({"p": ("0",), "q": ("0",)})
    ws.world["q"] = ("person",)
    call(ws, A1, "p", ("agent",))
    for _ in range(2):
        ws.apply(ws.rollback())
        assert ws.tree() == {"p": ("0",), "q": ("person",)}


def test_rollback_to_a_checkpoint_before_an_undo_takes_the_undo_back():
    ws = Workspace({"p": ("0",)})
    call(ws, A1, "p", ("1",))
    ws.checkpoint("good")
    ws.apply(ws.undo())
    ws.apply(ws.rollback())
    assert ws.tree() == {"p": ("1",)}


def test_undo_after_a_merging_revert_does_not_bring_the_reverted_work_back():
    ws = Workspace({"p": ("0", "0")})
    call(ws, A1, "p", ("1", "0"))
    reverted = len(ws.journal) - 1
    call(ws, A2, "p", ("1", "2"))
    ws.apply(ws.revert(reverted, merge=True))
    assert ws.tree() == {"p": ("0", "2")}
    ws.apply(ws.undo())
    assert ws.tree() == {"p": ("0", "0")}


def test_undo_goes_back_to_the_persons_version_and_no_further():
    ws = Workspace({"p": ("0",)})
    call(ws, A1, "p", ("agent",))
    ws.world["p"] = ("person",)
    call(ws, A1, "p", ("agent again",))
    plan = ws.apply(ws.undo())
    assert [s.verdict for s in plan.steps] == [EXACT, DRIFTED]
    assert ws.tree() == {"p": ("person",)}


def test_a_turn_that_goes_on_after_its_undo_can_be_undone_again():
    ws = Workspace({"p": ("0",), "q": ("0",)})
    call(ws, A1, "p", ("1",))
    ws.apply(ws.undo())
    call(ws, A1, "q", ("1",))
    ws.apply(ws.undo())
    assert ws.tree() == {"p": ("0",), "q": ("0",)}


def test_undo_of_another_turn_leaves_what_an_undone_turn_did_afterwards():
    ws = Workspace({"p": ("0",), "q": ("0",), "r": ("0",)})
    call(ws, A1, "p", ("1",))
    ws.apply(ws.undo())
    call(ws, A1, "q", ("1",))
    call(ws, B1, "r", ("1",))
    ws.apply(ws.undo())
    assert ws.tree() == {"p": ("0",), "q": ("1",), "r": ("0",)}


def test_a_plain_rollback_after_a_merging_one_does_not_unmerge():
    ws = Workspace({"p": ("0", "0")})
    call(ws, A1, "p", ("agent", "0"))
    ws.world["p"] = ("agent", "person")
    ws.apply(ws.rollback(merge=True))
    ws.apply(ws.rollback())
    assert ws.tree() == {"p": ("0", "person")}


def test_a_kept_path_that_changes_again_does_not_make_the_plan_stale():
    ws = Workspace({"p": ("0",), "q": ("0",)})
    bracket = ws.open(A1)
    ws.world.update(p=("agent",), q=("agent",))
    ws.close(bracket)
    ws.world["p"] = ("person",)
    plan = ws.undo()
    ws.world["p"] = ("person again",)
    ws.apply(plan)
    assert ws.tree() == {"p": ("person again",), "q": ("0",)}


def test_shared_work_goes_once_all_who_share_it_are_undone():
    ws = Workspace({})
    a, b = ws.open(A1), ws.open(B1)
    ws.world["log"] = ("both",)
    ws.close(a), ws.close(b)
    ws.apply(ws.undo())
    assert ws.tree() == {"log": ("both",)}
    ws.apply(ws.undo())
    assert ws.tree() == {}


def test_what_was_never_seen_absent_is_never_deleted():
    ws = Workspace({"big": ("0",)}, unobserved={"big"})
    call(ws, A1, "big", ("1",), named=True)
    ws.apply(ws.rollback(everything=True))
    assert ws.tree() == {"big": ("0",)}


def test_a_plan_is_refused_once_a_path_it_would_change_has_changed():
    ws = Workspace({"p": ("0",)})
    call(ws, A1, "p", ("1",))
    plan = ws.undo()
    ws.world["p"] = ("person",)
    with pytest.raises(Stale):
        ws.apply(plan)


def test_file_steps_never_join_across_an_outside_act():
    ws = Workspace({"p": ("0",)})
    call(ws, A1, "p", ("1",))
    act = ws.record(A1, COMPENSATING)
    call(ws, A1, "p", ("2",))
    assert [(s.path, s.target) for s in ws.undo().steps] == [("p", ("1",)), (f"act:{act}", None), ("p", ("0",))]
