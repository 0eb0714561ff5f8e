"""The timeline: turns, calls and effects as values; what is undone, by whom, and what a filter leaves."""

from __future__ import annotations

from collections import Counter

import pytest

import takeback
from scene import CLAUDE, CODEX, Scene, fifty_turns
from takeback.errors import NotFound, UsageError
from takeback.journal.brackets import Call
from takeback.show import views
from takeback.show.timeline import Timeline
from takeback.show.timeline_items import Board, CallItem, EffectItem


@pytest.fixture
def scene(ws):
    return Scene(ws)


@pytest.fixture
def timeline(ws):
    return Timeline(ws)


def told(items):
    return [(item.kind, item.title) for item in items]


def test_what_an_interrupted_take_back_has_still_to_do(ws, scene, timeline):
    scene.turn("break it", a_txt="broken\n")

    def cut_off(steps, results):
        raise KeyboardInterrupt

    assert timeline.unfinished() is None
    ws.told = cut_off
    with pytest.raises(KeyboardInterrupt):
        ws.undo()
    ws.told = None
    forth, back = timeline.unfinished(), timeline.unfinished(abort=True)
    assert forth is not None and back is not None and forth.request.verb == "undo" and forth.hash != back.hash
    assert [(s.path, s.goal is None) for s in forth.steps] == [(b"a.txt", True)]
    assert [(s.path, s.goal is None) for s in back.steps] == [(b"a.txt", False)]
    ws.resume()
    assert timeline.unfinished() is None


def test_now_says_what_is_wrong_with_the_journal(ws, scene, timeline):
    import sqlite3

    scene.by_hand("good", a_txt="one\n")
    assert timeline.now().damaged == ""
    db = sqlite3.connect(ws.store.folder / "journal.db")
    db.execute("UPDATE log SET at = at + 1 WHERE seq = 2")
    db.commit()
    db.close()
    with takeback.open(ws.root) as anew:
        assert Timeline(anew).now().damaged.startswith("journal row 2 was altered or lost: take-backs across it")


def test_what_is_journaled_while_the_board_is_made_waits_for_the_next_one(ws, scene):
    scene.turn("one", a_txt="a\n")
    history = ws.history()
    scene.turn("two", b_txt="b\n")
    assert {group.asked.prompt for group in Board(ws, history).groups if group.asked} == {"one"}


def test_an_agents_turn_opens_into_calls_and_effects(scene, timeline):
    scene.turn("add a form", form_html="<form>\n", style_css="a\nb\n")
    turn = timeline.turns()[0]
    assert (turn.kind, turn.title, turn.agent, turn.calls, turn.effects) == ("agent", "add a form", "claude", 2, 2)
    assert (turn.totals, turn.lines, turn.badges, turn.stands) == ({"files": 2}, (3, 0), {"exact": 2}, "whole")
    calls = timeline.children(turn.id)
    assert [(c.kind, c.title, c.state, c.totals) for c in calls] == [
        ("call", "Write style.css", "done", {"files": 1}),
        ("call", "Write form.html", "done", {"files": 1}),
    ]
    (effect,) = timeline.children(calls[1].id)
    assert isinstance(effect, EffectItem) and effect.paths == ("form.html",) and effect.badge == "exact"
    assert timeline.parent(effect.id) == timeline.parent(calls[0].id) == turn.id
    assert timeline.item(calls[0].id) == calls[0] and timeline.item(effect.id) == effect


def test_what_is_undone_is_tied_to_what_undid_it(ws, scene, timeline):
    scene.turn("one", a_txt="a\n")
    scene.turn("two", b_txt="b\n")
    outcome = ws.undo()
    takeback_, two, one = timeline.turns()[:3]
    assert (takeback_.kind, takeback_.id, takeback_.took) == ("takeback", outcome.id, (two.id,))
    assert (two.stands, two.undone_by, one.stands, one.undone_by) == ("none", (outcome.id,), "whole", ())
    (call,) = timeline.children(two.id)
    assert call.stands == "none" and call.undone_by == (outcome.id,)
    redone = ws.redo()
    newest, undone = timeline.turns()[:2]
    assert newest.id == redone.id and newest.took == (outcome.id,)
    assert (undone.stands, undone.undone_by) == ("none", (redone.id,)) and undone.revert == ()
    assert timeline.turns()[2].stands == "whole"


def test_its_words_take_back_exactly_that(ws, scene, timeline):
    scene.turn("one", a_txt="a\n")
    scene.turn("two", b_txt="b\n")
    scene.turn("three", c_txt="c\n")
    three, two, one = timeline.turns()[:3]
    assert ws.apply(ws.plan("revert", *two.revert)).whole
    assert not (scene.root / "b.txt").exists() and (scene.root / "c.txt").exists()
    (took,) = [t for t in timeline.turns() if t.kind == "takeback"]
    assert ws.apply(ws.plan("revert", *took.revert)).whole and (scene.root / "b.txt").exists()
    assert ws.apply(ws.plan("rollback", one.rollback, everything=True)).whole
    assert not list(scene.root.iterdir())
    assert timeline.item(three.id).stands == "none"


def test_part_of_a_turn_can_be_gone(ws, scene, timeline):
    scene.turn("both", a_txt="a\n", b_txt="b\n")
    ws.revert("a.txt")
    turn = next(t for t in timeline.turns() if t.kind == "agent")
    assert turn.stands == "part"


def test_hand_runs_and_checkpoints_have_lines_of_their_own(ws, scene, timeline):
    scene.by_hand("first", a_txt="a\n")
    before = ws.checkpoint("before: make all")
    (scene.root / "made").write_text("made\n")
    ws.ran(before, "make all")
    assert told(timeline.turns()) == [
        ("run", "make all"),
        ("checkpoint", "first"),
        ("hand", "1 new: a.txt"),
        ("checkpoint", "start"),
    ]
    run = timeline.turns()[0]
    assert [mark.label for mark in run.marks] == ["before: make all", ""] and run.totals == {"files": 1}
    ws.pin("first")
    assert timeline.turns()[1].marks[0].pinned
    assert ws.apply(ws.plan("revert", *run.revert)).whole and not (scene.root / "made").exists()


def test_what_nobody_known_did_between_calls_is_by_hand(ws, scene, timeline):
    ws.begin_turn(CLAUDE, "this")
    scene.bash("make", made_txt="made\n")
    (scene.root / "mine.txt").write_text("a person's\n")
    scene.bash("true")
    found = {(item.kind, item.agent): item for item in timeline.turns()}
    assert found["hand", ""].title == "1 new: mine.txt"
    detail = timeline.detail(found["hand", ""].id)
    assert [file.path for file in detail.shown.files] == ["mine.txt"]


@pytest.fixture
def at_once(ws, scene):
    """Claude made c.txt, codex x.txt, and both both.txt, at the same time."""
    ws.begin_turn(CLAUDE, "this")
    ws.begin_turn(CODEX, "that")
    scene.write("c.txt", "c\n", CLAUDE)
    scene.write("x.txt", "x\n", CODEX)
    scene.at_once(CLAUDE, CODEX, both_txt="one\ntwo\n")


def test_shared_work_is_part_of_each_of_its_turns_and_is_called_shared(ws, at_once, timeline):
    found = {item.agent: item for item in timeline.turns() if item.kind == "agent"}
    assert set(found) == {"claude", "codex"}
    for item in found.values():
        assert (item.totals, item.lines, item.shared, item.badges) == ({"files": 2}, (3, 0), 1, {"exact": 1})
        assert item.badges == verdicts(ws.plan("revert", *item.revert))
        call = timeline.children(item.id)[0]
        assert (call.totals, call.shared, call.badges) == ({"files": 1}, 1, {})
        (effect,) = timeline.children(call.id)
        assert effect.badge == "exact" and verdicts(ws.plan("revert", *effect.revert)) == {"exact": 1}
        assert effect.shared and effect.agent == "claude, codex" and effect.paths == ("both.txt",)


def test_a_turn_has_the_same_numbers_in_the_log_and_in_the_timeline(ws, scene, at_once, timeline):
    scene.turn("to and fro", fleeting_txt="x\n")
    scene.write("fleeting.txt", None)
    scene.write("stays.txt", "a\nb\n")
    scene.unsure("whose.txt", "?\n")
    seen = views.turns_of(ws, ws.log())
    items = [item for item in timeline.turns() if item.id in seen]
    assert len(items) == 3
    for item in items:
        turn = seen[item.id]
        assert (item.totals.get("files", 0), item.lines) == (len(turn.files), (turn.added, turn.removed))
        assert (item.badges.get("uncertain", 0), item.shared) == (len(turn.uncertain), len(turn.shared))


def test_a_take_back_of_shared_work_took_from_each_of_its_turns(ws, at_once, timeline):
    ws.undo()
    last = ws.undo()
    assert not (ws.root / "both.txt").exists()
    found = {item.id: item for item in timeline.turns()}
    assert {found[id].agent for id in found[last.id].took} == {"claude", "codex"}
    assert [item.stands for item in found.values() if item.kind == "agent"] == ["none", "none"]


def verdicts(plan):
    """What a plan says, as badges: how well each path goes back, and what it asks about."""
    asked = {unit.path for units in plan.asks.values() for unit in units}
    return dict(Counter([step.verdict for step in plan.steps] + ["uncertain"] * len(asked)))


def test_uncertain_work_is_never_exact_and_its_numbers_are_those_of_the_plan(ws, scene, timeline):
    scene.turn("make it", a_txt="a\n", b_txt="b\n")
    scene.unsure("whose.txt", "?\n")
    scene.unsure("a.txt", "a\nand more\n")
    turn = timeline.turns()[0]
    assert turn.badges == verdicts(ws.plan("revert", *turn.revert)) == {"uncertain": 2, "drifted": 1, "exact": 1}
    calls = timeline.children(turn.id)
    assert [call.badges for call in calls] == [{"uncertain": 1}, {"uncertain": 1}, {"exact": 1}, {"drifted": 1}]
    assert all(call.badges == verdicts(ws.plan("revert", *call.revert)) for call in calls)
    (effect,) = timeline.children(calls[0].id)
    assert effect.badge == "uncertain" and effect.row.uncertain
    ws.take_back("revert", effect.id)
    assert timeline.item(effect.id).badge == "uncertain" and timeline.item(turn.id).badges["uncertain"] == 1


def test_a_filter_leaves_the_turns_with_a_match_and_of_them_the_matches(scene, timeline):
    scene.turn("add a form", form_html="<form>\n", style_css="a\n")
    scene.turn("fix the docs", docs_md="docs\n")
    assert [t.title for t in timeline.turns("path:form.html")] == ["add a form"]
    assert [c.title for c in timeline.children(timeline.turns("path:form.html")[0].id, "path:form.html")] == [
        "Write form.html"
    ]
    assert [t.title for t in timeline.turns("docs")] == ["fix the docs"]
    assert [t.title for t in timeline.turns("kind:checkpoint label:start")] == ["start"]
    assert len(timeline.children(timeline.turns("add a form")[0].id, '"add a form"')) == 2
    assert [e.paths for e in timeline.effects("path:style.css")] == [("style.css",)]
    with pytest.raises(UsageError):
        timeline.turns("nonsense:1")


def test_a_turn_that_did_nothing_is_found_by_its_prompt(ws, timeline):
    ws.begin_turn(CLAUDE, "just think about it")
    assert told(timeline.turns('"think about"')) == [("agent", "just think about it")]
    assert timeline.turns()[0].revert == () and timeline.children(timeline.turns()[0].id) == []


def test_pages_follow_each_other(ws):
    fifty_turns(ws)
    timeline = Timeline(ws)
    whole = [turn.id for turn in timeline.turns()]
    first = timeline.turns(limit=20)
    second = timeline.turns(limit=20, before=first[-1].id)
    assert [t.id for t in (*first, *second)] == whole[:40]
    assert timeline.turns(limit=5, before=whole[-1]) == []


def test_it_says_when_somebody_else_has_journaled(ws, project, timeline):
    head = timeline.now().head
    assert not timeline.changed_since(head)
    with takeback.open(project) as other:
        Scene(other).turn("from elsewhere", a_txt="a\n")
    assert timeline.changed_since(head)
    assert timeline.turns()[0].title == "from elsewhere"
    assert not timeline.changed_since(timeline.now().head)


def test_who_is_at_work_and_what_waits_is_known(ws, timeline):
    ws.begin_turn(CLAUDE, "go on")
    ws.begin_call(CLAUDE, Call("1", "Bash", "Bash: make"))
    now = timeline.now()
    assert [call.summary for call in now.at_work] == ["Bash: make"] and timeline.turns()[0].is_open
    assert now.checkpoint is not None and now.checkpoint.label == "go on"
    ws.hold_email("bob@example.com", "Hello", "How are you?")
    assert timeline.now().held == 1


def test_an_act_tells_what_was_sent_and_what_takes_it_back(ws, timeline):
    ws.begin_turn(CLAUDE, "charge the card")
    by = {"actor": "claude"}
    ws.record_http(
        "POST", "https://api.shop.example/v1/charges", status=201, request_body={"amount": 5},
        response_body={"id": "ch_1"}, inverse_url="https://api.shop.example/v1/charges/{response.body.id}", by=by,
    )  # fmt: skip
    ws.hold_email("bob@example.com", "Paid", "Thank you.", by=by)
    badges = [(effect.domain, effect.badge) for effect in timeline.effects()]
    assert badges == [("email", "held"), ("http", "compensating")]
    mail, charge = timeline.effects()
    detail = timeline.detail(charge.id)
    assert detail.act is not None and "DELETE https://api.shop.example/v1/charges/ch_1" in detail.shown.inverse
    assert dict(detail.exchange)["method"] == "POST" and "ch_1" in str(detail.exchange)
    assert "Thank you." in dict(timeline.detail(mail.id).exchange)["text"]


def test_secrets_in_files_are_masked_unless_the_owner_looks(scene, timeline):
    scene.turn("set it up", a_env="PASSWORD=hunter2hunter2\n")
    id = timeline.turns()[0].id
    assert timeline.detail(id).masked == ("a.env",) and "hunter2" not in str(timeline.detail(id))
    assert "hunter2" in str(timeline.detail(id, masked=False))


def test_the_detail_of_everything_can_be_had_and_large_ones_are_cut(ws, scene, timeline):
    scene.turn("many", a_txt="a\n", b_txt="b\n", c_txt="c\n")
    scene.by_hand("mine", d_txt="d\n")
    ws.undo()
    for turn in timeline.turns():
        assert timeline.detail(turn.id).item == timeline.item(turn.id)
        for child in timeline.children(turn.id):
            assert timeline.detail(child.id).item == child
            if isinstance(child, CallItem):
                assert [timeline.detail(e.id).shown.row.id for e in timeline.children(child.id)] == list(child.effects)
    many = next(t for t in timeline.turns() if t.title == "many")
    shown = timeline.detail(many.id, most=2).shown
    assert (len(shown.files), shown.more) == (2, 1)
    assert [path for path, *_ in timeline.tree(ws.find_checkpoint("mine").id)] == ["a.txt", "b.txt", "c.txt", "d.txt"]
    with pytest.raises(NotFound):
        timeline.detail("nothing")


def test_state_of_threads_is_compared(ws, timeline):
    ws.begin_turn(CLAUDE, "remember")
    ws.threads.save("main", {"messages": ["a"]}, agent="claude")
    ws.checkpoint("between")
    ws.threads.save("main", {"messages": ["a", {"password": "hunter2"}]}, agent="claude")
    ws.checkpoint("after")
    effects = timeline.effects("domain:state")
    assert len(effects) == 2
    (moved,) = timeline.detail(effects[0].id).moved
    assert (moved.thread, [(d.path, d.change) for d in moved.differences]) == ("main", [("messages[1]", "added")])
    assert "hunter2" not in str(moved) and "hunter2" in str(timeline.detail(effects[0].id, masked=False).moved)


def test_the_first_state_of_a_thread_is_told_whole_and_so_is_its_last(ws, timeline):
    ws.begin_turn(CLAUDE, "remember")
    ws.threads.save("main", {"messages": ["a"], "password": "hunter2"}, agent="claude")
    ws.checkpoint("after")
    (first,) = timeline.effects("domain:state")
    (moved,) = timeline.detail(first.id).moved
    assert moved.before == "" and moved.after
    assert [(d.path, d.change, d.after) for d in moved.differences][0] == ("messages", "added", ["a"])
    assert "hunter2" not in str(moved) and "hunter2" in str(timeline.detail(first.id, masked=False).moved)
    assert timeline.detail(timeline.parent(first.id)).moved == (moved,)  # and in the turn that it was saved in
    ws.apply(ws.plan("revert", first.id))
    took = timeline.turns()[0]
    assert took.kind == "takeback"
    (gone,) = timeline.detail(took.id).moved
    assert [(d.path, d.change) for d in gone.differences] == [("messages", "removed"), ("password", "removed")]


def test_of_a_state_whose_past_was_pruned_nothing_is_called_new(ws, timeline):
    ws.begin_turn(CLAUDE, "remember")
    ws.threads.save("main", {"messages": ["a"]}, agent="claude")
    ws.checkpoint("between")
    ws.threads.save("main", {"messages": ["a", "b"]}, agent="claude")
    ws.checkpoint("after")
    second = timeline.effects("domain:state")[0]
    assert timeline.detail(second.id).moved[0].differences
    assert ws.threads.remove("main", ids=[("", timeline.detail(second.id).moved[0].before)]) == 1
    (moved,) = timeline.detail(second.id).moved
    assert moved.differences == () and moved.after


def plan_says(ws, item):
    totals = {}
    for step in ws.plan("revert", *item.revert).steps:
        totals[step.verdict] = totals.get(step.verdict, 0) + 1
    return totals


def test_how_well_an_item_goes_back_is_what_its_plan_says(ws, scene, timeline):
    """Two agents at once, on the same files in part; a person after them."""
    scene.by_hand("base", a_txt="a\n", b_txt="b\n", c_txt="c\n")
    ws.begin_turn(CLAUDE, "change three")
    ws.begin_turn(CODEX, "change two")
    call, other = Call("1", "Bash", "Bash: make"), Call("2", "Write", "Write b.txt", (b"b.txt",), scans=False)
    ws.begin_call(CLAUDE, call)
    for name in ("a.txt", "b.txt", "c.txt"):
        (ws.root / name).write_text("claude\n")
    ws.end_call(CLAUDE, call)
    ws.begin_call(CODEX, other)
    (ws.root / "b.txt").write_text("codex\n")
    ws.end_call(CODEX, other)
    scene.by_hand(c_txt="mine\n")
    found = {item.title: item for item in timeline.turns()}
    assert dict(found["change three"].badges) == {"drifted": 2, "exact": 1} == plan_says(ws, found["change three"])
    assert dict(found["change two"].badges) == {"exact": 1} == plan_says(ws, found["change two"])
    (shell,) = [item for item in timeline.children(found["change three"].id) if item.kind == "call"]
    assert dict(shell.badges) == plan_says(ws, shell)
    assert {item.badge for item in timeline.effects("actor:claude")} == {"drifted"}
    ws.undo(actors=["codex"])
    found = {item.title: item for item in timeline.turns()}
    assert dict(found["change three"].badges) == {"drifted": 1, "exact": 2} == plan_says(ws, found["change three"])
