"""The report: what is in a span and what is not, how well things were taken back, what could not be, and no secrets."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

import ledger as ledgers
from scene import CLAUDE, CODEX, Scene
from secrets_to_plant import SHAPES
from support import set_clock
from takeback.errors import NotFound, UsageError
from takeback.journal.brackets import Call
from takeback.privacy import redact
from takeback.show import report, report_values
from takeback.show import report_span as span
from takeback.surfaces.report import markdown, page, words
from takeback.surfaces.report.shape import shape
from takeback.workspace import Workspace


@pytest.fixture
def scene(ws: Workspace) -> Scene:
    """claude adds a form, codex tidies up, claude renames; a person edits in between."""
    made = Scene(ws)
    made.by_hand("base", readme_md="hello\n", x_py="a\nb\nc\n")
    made.turn("add a form", form_html="<b>\n", x_py="a\nB\nc\n")
    made.by_hand("mine", notes_md="mine\n")
    made.turn("tidy up", CODEX, x_py="a\nB\n")
    made.turn("rename", readme_md="hello you\n")
    return made


def made(ws: Workspace, asked: str = "", **how: object) -> report_values.Report:
    since, session = str(how.pop("since", "")), str(how.pop("session", ""))
    return report.make(ws, span.find(ws, asked, since, session), **how)  # type: ignore[arg-type]


def prompts(found: report_values.Report) -> list[str]:
    return [turn.prompt for turn in found.turns if turn.kind == "agent"]


def test_everything_in_order_with_prompts_calls_and_lines(scene: Scene) -> None:
    found = made(scene.ws)
    assert prompts(found) == ["add a form", "tidy up", "rename"]
    assert [turn.kind for turn in found.turns] == ["hand", "agent", "hand", "agent", "agent"]
    form = found.turns[1]
    assert [call.summary for call in form.calls] == ["Write form.html", "Write x.py"]
    assert [effect.paths for call in form.calls for effect in call.effects] == [("form.html",), ("x.py",)]
    assert {file.diff.path: (file.diff.added, file.diff.removed) for file in form.files} == {
        "form.html": (1, 0), "x.py": (1, 1),
    }  # fmt: skip
    assert (form.agent, form.session, form.lines, form.stands) == ("claude", "s1", (2, 1), "whole")
    assert found.agents == {"by hand": 2, "claude": 2, "codex": 1}
    assert found.totals.turns == 5 and found.totals.prompts == 3 and found.totals.calls == 4
    assert found.totals.domains == {"files": 6} and found.totals.files == 4
    assert [mark.label for mark in found.checkpoints if mark.named][:2] == ["start", "base"]


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        ("base..mine", ["add a form"]),
        ("mine..", ["tidy up", "rename"]),
        ("..base", []),
        ("..mine", ["add a form"]),
        ("mine", ["tidy up", "rename"]),
        ("1h", ["add a form", "tidy up", "rename"]),
        ("1h..", ["add a form", "tidy up", "rename"]),
    ],
)
def test_spans_by_name_and_time(scene: Scene, span: str, wanted: list[str]) -> None:
    assert prompts(made(scene.ws, span)) == wanted


def test_one_turn_one_call_and_one_session(scene: Scene) -> None:
    first = made(scene.ws).turns[1]
    alone = made(scene.ws, first.id[:8])
    assert prompts(alone) == ["add a form"] and len(alone.turns) == 1
    (turn,) = made(scene.ws, first.calls[0].id).turns
    assert [call.summary for call in turn.calls] == ["Write form.html"]
    assert prompts(made(scene.ws, session="s2")) == ["tidy up"]
    assert prompts(made(scene.ws, session="S1")) == ["add a form", "rename"]
    with pytest.raises(NotFound) as none:
        made(scene.ws, session="s3")
    assert "s1" in none.value.hint and "s2" in none.value.hint
    with pytest.raises(NotFound):
        made(scene.ws, "nothing..mine")


def test_since_a_time(scene: Scene) -> None:
    now = scene.ws.clock()
    set_clock(scene.ws, lambda: now + 7200)
    scene.turn("much later", late_txt="x\n")
    assert prompts(made(scene.ws, since="1h")) == ["much later"]
    assert prompts(made(scene.ws, "3h..1h")) == ["add a form", "tidy up", "rename"]
    activity = made(scene.ws).activity
    assert activity.step >= 60 and len(activity.bins) <= 72
    assert sum(sum(each.effects.values()) for each in activity.bins) == 7
    assert activity.bins[0].effects and activity.bins[-1].effects and not activity.bins[1].effects


def test_what_was_taken_back_and_how_well(scene: Scene) -> None:
    scene.ws.undo()
    (back,) = made(scene.ws).takebacks
    assert (back.verb, back.well, back.done, back.paths, back.stands) == (
        "undo",
        "whole",
        {"exact": 1},
        ("readme.md",),
        True,
    )
    rename = made(scene.ws).turns[-1]
    assert back.took == (rename.id,) and rename.undone_by == (back.id,) and rename.stands == "none"
    assert made(scene.ws).totals.taken_back == 1
    scene.ws.redo()
    undo, redo = made(scene.ws).takebacks
    assert not undo.stands and redo.took == (undo.id,)
    assert made(scene.ws).totals.taken_back == 0


def test_a_take_back_that_kept_something_says_so(scene: Scene) -> None:
    (scene.root / "x.py").write_text("mine entirely\n")
    scene.ws.checkpoint("drifted")
    first = made(scene.ws).turns[1]
    scene.ws.revert(first.id)
    back = made(scene.ws).takebacks[-1]
    assert back.well == "partly" and back.paths == ("form.html",)
    assert [(step.target, step.result) for step in back.not_done] == [("x.py", "kept")]


def test_a_later_take_back_of_what_is_in_the_span_is_told(scene: Scene) -> None:
    scene.ws.rollback("base", everything=True)
    (back,) = made(scene.ws, "base..mine").takebacks
    assert back.later and prompts(made(scene.ws, "base..mine")) == ["add a form"]


def test_a_span_is_told_in_times_whatever_it_was_asked_by(scene: Scene) -> None:
    ws, now = scene.ws, scene.ws.clock()
    base = next(each for each in ws.history().checkpoints if each.label == "base")
    set_clock(ws, lambda: now + 7200)
    relative, named, whole = (made(ws, asked) for asked in ("3h..1h", "base", ""))
    assert (relative.begins, relative.ends) == (now - 3600, now + 3600)
    assert (named.begins, named.ends) == (base.at, now + 7200)
    assert (whole.begins, whole.ends) == (0.0, now + 7200)
    session = made(ws, session="s2")
    assert (session.begins, session.ends) == (session.since, session.until) and session.since
    stamp = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(now - 3600))
    for form, text in written(relative).items():
        assert (str(now - 3600) if form == "json" else stamp) in text, form
        assert ws.store.folder is not None and ws.store.folder.name in text, "which store"


@pytest.mark.parametrize("asked", ["mine..base", "1h..2h", "2h..3h"])
def test_a_span_that_ends_before_it_begins_is_refused(scene: Scene, asked: str) -> None:
    with pytest.raises(UsageError, match="is not before"):
        made(scene.ws, asked)


def test_one_turn_is_told_without_what_others_did_meanwhile(scene: Scene) -> None:
    ws = scene.ws
    ws.begin_turn(CLAUDE, "long work")
    scene.write("one.txt", "1\n")
    scene.turn("in between", CODEX, other_txt="x\n")
    scene.by_hand("", by_hand_txt="x\n")
    scene.write("two.txt", "2\n")
    turn = next(each for each in made(ws).turns if each.prompt == "long work")
    (alone,) = made(ws, turn.id).turns
    assert [call.summary for call in alone.calls] == ["Write one.txt", "Write two.txt"]
    assert alone.calls == turn.calls and not alone.in_part
    (part,) = made(ws, turn.calls[0].id).turns
    assert [call.summary for call in part.calls] == ["Write one.txt"] and part.in_part
    for form, text in written(made(ws, turn.calls[0].id)).items():
        assert (words.IN_PART if form != "json" else '"in_part": true') in text, form


def test_what_a_call_did_in_the_span_is_told_though_it_began_before(scene: Scene) -> None:
    ws, now = scene.ws, scene.ws.clock()
    call = Call("slow", "Bash", "Bash: slow")
    set_clock(ws, lambda: now + 1000)
    ws.begin_turn(CLAUDE, "wait")
    ws.begin_call(CLAUDE, call)
    set_clock(ws, lambda: now + 9000)
    (scene.root / "late.txt").write_text("late\n")
    ws.end_call(CLAUDE, call)
    (turn,) = made(ws, since="1h").turns
    assert [effect.paths for each in turn.calls for effect in each.effects] == [("late.txt",)]


def test_what_is_not_named_for_length_is_counted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = scene.ws
    scene.write("folder/file.txt", "x\n")
    scene.bash("many", **{f"f{n}_txt": "claude\n" for n in range(10)})
    for n in range(9):
        (scene.root / f"f{n}.txt").write_text("mine\n")
    ws.checkpoint("drifted")
    monkeypatch.setattr(report, "_PATHS", 4)
    effect = made(ws).turns[-2].calls[-1].effects[0]
    assert (len(effect.paths), effect.more_paths, made(ws).totals.files) == (4, 6, 4 + 10 + 1)
    ws.revert(effect.id)
    found = made(ws)
    assert (len(found.takebacks[-1].not_done), found.takebacks[-1].more_not_done) == (4, 5)
    for form, text in written(found).items():
        assert form == "json" or ("9 not done" in text and "and 5 more" in text), form


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_days_of_activity_are_the_readers(scene: Scene, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        now = scene.ws.clock()
        set_clock(scene.ws, lambda: now + 60 * 86_400)
        scene.turn("much later", late_txt="x\n")
        activity = made(scene.ws).activity
        assert activity.step == 86_400
        assert time.localtime(activity.bins[0].at)[:5] == (*time.localtime(now)[:3], 0, 0)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.fixture
def book(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = ledgers.register(tmp_path / "site")
    for folder in reversed(path.split(os.pathsep)):
        monkeypatch.syspath_prepend(folder)
    return tmp_path / "ledger"


def test_what_could_not_be(scene: Scene, book: Path) -> None:
    ws, by = scene.ws, {"actor": "claude"}
    ws.record_http("POST", "https://shop.example/mails", status=200, by=by)
    sent = ledgers.record(ws, book, "one", by=by)
    ledgers.behave(book, "fail")
    plan = ws.plan("compensate", save=True)
    ws.approve(plan, ws.unapproved(plan)[1])
    ws.apply(plan.id)
    found = made(ws)
    assert [(each.domain, each.state) for each in found.remains] == [("http", "irreversible"), ("ledger", "live")]
    assert found.remains[0].why == "no inverse was recorded: what the server did stays done"
    assert "the ledger said no" in found.remains[1].why and found.remains[1].command == f"takeback revert {sent.id[:8]}"
    assert [(step.result, step.why) for step in found.takebacks[-1].not_done] == [
        ("failed", "the ledger said no"), ("kept", "no inverse was recorded: what the server did stays done"),
    ]  # fmt: skip
    ledgers.behave(book, "unknown")
    plan = ws.plan("compensate", save=True)
    ws.approve(plan, ws.unapproved(plan)[1])
    ws.apply(plan.id)
    unknown = made(ws).remains[-1]
    assert unknown.state == "unknown" and unknown.command == f"takeback resolve {sent.id[:8]} --undone or --not-undone"
    ws.resolve(sent.id, "undone")
    assert [each.domain for each in made(ws).remains] == ["http"]


def test_each_of_several_that_did_alike_is_named(scene: Scene, book: Path) -> None:
    ws, by = scene.ws, {"actor": "claude"}
    refused, taken = ([ledgers.record(ws, book, "one", by=by, summary="charge(5)") for _ in range(2)] for _ in range(2))
    for how, acts in (("fail", refused), ("ok", taken)):
        ledgers.behave(book, how)
        plan = ws.plan("revert", *(act.id for act in acts), save=True)
        ws.approve(plan, ws.unapproved(plan)[1])
        ws.apply(plan.id)
    failed, went = made(ws).takebacks[-2:]
    assert {(step.effect, step.target) for step in failed.not_done} == {
        (act.id, f"charge(5) ({act.id[:8]})") for act in refused
    }
    assert {*went.paths} == {f"charge(5) ({act.id[:8]})" for act in taken} and went.done == {"compensating": 2}
    for form, said in written(made(ws)).items():
        assert form == "json" or "2 not done" in said, form


def test_what_was_not_tried_since_another_stands_on_it_remains_too(scene: Scene, book: Path) -> None:
    ws, by = scene.ws, {"actor": "claude"}
    base = ledgers.record(ws, book, "base", by=by)
    on_top = ledgers.record(ws, book, "on top", by=by, depends_on=[base.id])
    ledgers.behave(book, "fail")
    plan = ws.plan("compensate", save=True)
    ws.approve(plan, ws.unapproved(plan)[1])
    back = ws.apply(plan.id)
    why = {each.effect: each.why for each in made(ws).remains}
    assert why[base.id] == f"not tried: {on_top.id[:8]} stands on it and was not taken back"
    assert "the ledger said no" in why[on_top.id]
    shown = ws.show(back.id)
    assert {(each.effect, each.result) for each in shown.missed} == {(base.id, "failed"), (on_top.id, "failed")}
    assert all(f"takeback revert {each.effect[:8]} tries it again" in each.why for each in shown.missed)
    assert shown.row.summary.endswith(": nothing done; 2 failed")


def test_the_chain_and_what_it_lacks(scene: Scene) -> None:
    ws = scene.ws
    found = made(ws).integrity
    head = ws.store.journal.head()
    assert found.ok and (found.head, found.hash) == (head.seq, head.hash.hex()) and not found.problems
    assert made(ws, every_byte=True).integrity.every_byte
    pack = next((ws.store.folder / "packs").glob("*.pack"))  # type: ignore[operator]
    pack.chmod(0o600)
    data = bytearray(pack.read_bytes())
    data[-3] ^= 0xFF
    pack.write_bytes(data)
    damaged = made(ws, every_byte=True, diffs=False).integrity
    assert not damaged.ok and damaged.problems and damaged.lost


def test_length_is_cut_and_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.turn("write much", **{f"f{n}_txt": "line\n" * 500 for n in range(4)})
    monkeypatch.setattr(report, "_FILES", 3)
    much = made(scene.ws).turns[-1]
    assert len(much.files) == 3 and much.more_files == 1
    assert {file.more_lines for file in much.files} == {200}
    monkeypatch.setattr(report, "_ALL_LINES", 10)
    found = made(scene.ws)
    assert "are left out for length" in " ".join(found.notes)
    without = made(scene.ws, diffs=False)
    assert not any(turn.files for turn in without.turns) and "as asked" in " ".join(without.notes)


# -- secrets ------------------------------------------------------------------

SAID = " ".join(planted.text.replace("\n", " ") for planted in SHAPES.values())


def written(found: report_values.Report) -> dict[str, str]:
    return {"html": page.written(found), "md": markdown.written(found), "json": json.dumps(shape(found))}


def leaks(text: str) -> list[str]:
    from html import escape

    forms = {name: {p.secret, json.dumps(p.secret)[1:-1], escape(p.secret)} for name, p in SHAPES.items()}
    return [name for name, each in forms.items() if any(form in text for form in each)]


def test_no_planted_secret_is_in_any_format(ws: Workspace, book: Path) -> None:
    scene = Scene(ws)
    (ws.root / ".env").write_text("\n".join(p.text for p in SHAPES.values()))
    (ws.root / "code.py").write_text("\n".join(f"x = '''{p.text}'''" for p in SHAPES.values()))
    ws.checkpoint("with a token")
    for name, planted in SHAPES.items():
        ws.begin_turn(CLAUDE, f"use {name}: {planted.text}")
        scene.bash(f"export X='{planted.text}'", out_txt=planted.text)
    ws.record_http("POST", "https://shop.example/x", status=200, request_body={"all": SAID}, response_body=SAID,
                   summary=f"sent {SAID}", by={"actor": "claude"})  # fmt: skip
    ws.record(ledgers.NewAct("ledger", f"did {SAID}", f"thing://{SAID}", None, "irreversible", {"left_to_do": SAID}))
    ws.threads.save("main", {"api_key": "plain-but-named-secret-1", "note": SAID})
    ws.checkpoint("state one")
    ws.threads.save("main", {"api_key": "plain-but-named-secret-2", "note": SAID + "."})
    ws.checkpoint("state two")
    scene.ws.undo()
    for form, text in written(made(ws)).items():
        assert "use stripe" in text
        assert not leaks(text), form
        assert "plain-but-named-secret" not in text, form


def test_the_search_for_leaks_finds_one() -> None:
    assert leaks("x " + SHAPES["stripe"].secret) == ["stripe"]


def test_a_row_of_an_older_program_that_holds_a_secret_is_cleaned_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts are redacted when they are journaled; a report trusts nobody."""
    secret = SHAPES["github classic"].text
    history = scene.ws.history()
    for turn, asked in history.agent_turns.items():
        history.agent_turns[turn] = asked._replace(prompt=f"with {secret}")
    monkeypatch.setattr(scene.ws, "history", lambda: history)
    found = made(scene.ws)
    assert prompts(found) == ["with [redacted]"] * 3
    assert found.integrity.hash == scene.ws.store.journal.head().hash.hex()


def test_the_text_of_a_mail_is_left_out(ws: Workspace) -> None:
    ws.hold_email(["ada@example.com"], "Order 17", "a private matter entirely")
    found = made(ws)
    for form, text in written(found).items():
        assert "Order 17" in text and "a private matter" not in text, form
    assert "The text of mails is left out" in found.notes


def test_no_planted_secret_in_a_name_is_in_any_format(ws: Workspace) -> None:
    """Of files, folders, labels, threads, agents and sessions: a name is handed on as everything else is."""
    scene = Scene(ws)
    named = {name: f"{p.secret}.txt" for name, p in SHAPES.items() if not set(p.secret) & set("/\n")}
    named = {name: file for name, file in named.items() if len(file) < 200 and redact.text(file) != file}
    assert len(named) > 10, "those whose shape alone tells"
    for file in named.values():
        (ws.root / file).write_text("one\n")
    ws.begin_turn(CLAUDE, "rename them")
    for name, file in named.items():
        (ws.root / file).rename(ws.root / f"new {file}")
        ws.threads.save(f"t {file}", {"n": 1})
        ws.checkpoint(f"{name} {file}")
    scene.bash("touch", done_txt="x")
    ws.undo()
    for form, text in written(made(ws)).items():
        assert "new [redacted]" in text, form
        assert not set(leaks(text)) & set(named), form
