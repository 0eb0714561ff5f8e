"""What a person says of what nobody heard of again: of an effect itself, or of its undo, and never the one for the
other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ledger as ledgers
import takeback
from ledger import behave, lines, record
from takeback.domains import python
from takeback.model.outside import BEGUN, SAYINGS
from takeback.workspace import Workspace

EFFECT, UNDO = ("happened", "did-not-happen"), ("undone", "not-undone")


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in reversed(ledgers.register(tmp_path / "site").split(os.pathsep)):
        monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(python, "_registered", dict(python._registered))


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "book"


def taken_back(ws: Workspace, *what: str) -> Any:
    plan = ws.plan("revert", *what) if what else ws.plan("rollback")
    ws.approve(plan, ws.unapproved(plan)[1])
    return ws.apply(plan)


def state(ws: Workspace, id: str) -> str:
    return ws.find_effect(id).shown_state


def attempts(ws: Workspace) -> list[str]:
    return [undo.result for undo in ws.history().undos.values()]


@pytest.fixture
def begun(ws: Workspace, book: Path) -> Any:
    """An effect of which nobody knows whether it happened."""
    return record(ws, book, "charge", state=BEGUN)


@pytest.fixture
def sent(ws: Workspace, book: Path) -> Any:
    """An effect whose undo was sent, and never answered."""
    act = record(ws, book, "charge")
    behave(book, "lost")
    taken_back(ws, act.id)
    behave(book, "ok")
    return act


@pytest.mark.parametrize(("said", "then"), [("happened", "live"), ("did-not-happen", "failed")])
def test_whether_an_effect_happened(ws: Workspace, book: Path, begun: Any, said: str, then: str) -> None:
    assert ws.find_effect(begun.id).sayings == EFFECT
    assert ws.resolve(begun.id, said).shown_state == then and not ws.find_effect(begun.id).sayings
    steps = ws.plan("rollback").outside
    assert [step.verdict for step in steps] == (["compensating"] if said == "happened" else [])
    if steps:
        assert taken_back(ws).whole and lines(book) == ["charge"] and state(ws, begun.id) == "undone"


@pytest.mark.parametrize(("said", "then"), [("undone", "undone"), ("not-undone", "live")])
def test_whether_an_undo_took_effect(ws: Workspace, book: Path, sent: Any, said: str, then: str) -> None:
    assert ws.find_effect(sent.id).sayings == UNDO and attempts(ws) == ["unknown"]
    assert ws.resolve(sent.id, said).shown_state == then
    assert attempts(ws) == ["done" if said == "undone" else "failed"]
    assert bool(ws.plan("rollback").outside) is (said == "not-undone")


def test_what_does_not_fit_the_doubt_is_refused_with_what_does(ws: Workspace, begun: Any, sent: Any) -> None:
    head = ws.store.journal.head()
    for act, fits in ((begun, EFFECT), (sent, UNDO)):
        for wrong in [said for said in SAYINGS if said not in fits]:
            with pytest.raises(takeback.UsageError) as told:
                ws.resolve(act.id, wrong)
            assert all(f"--{said}" in told.value.hint for said in fits), told.value.hint
    for old in (True, False, "done", "not-done", ""):
        with pytest.raises(takeback.UsageError) as told:
            ws.resolve(sent.id, old)  # type: ignore[arg-type]
        assert all(said in told.value.hint for said in SAYINGS)
    assert ws.store.journal.head() == head, "nothing was noted"


def test_an_undo_that_was_never_sent_leaves_the_doubt_where_it_was(ws: Workspace, book: Path) -> None:
    """A probe was asked about an effect in doubt and could not tell: its undo is not in doubt, for none was sent."""
    act = record(ws, book, "charge", state=BEGUN, probe=True)
    behave(book, "blind")
    assert not taken_back(ws, act.id).whole
    behave(book, "ok")
    found = ws.find_effect(act.id)
    assert found.sayings == EFFECT and not found.in_doubt and attempts(ws) == ["failed"]
    assert lines(book) == []


def test_both_in_doubt_takes_each_word_and_keeps_the_other_doubt(ws: Workspace, book: Path) -> None:
    act = record(ws, book, "charge", state=BEGUN, probe=True)
    behave(book, "lost")  # its probe says that it is not undone, and then the undo is lost
    taken_back(ws, act.id)
    assert ws.find_effect(act.id).sayings == (*EFFECT, *UNDO)
    found = ws.resolve(act.id, "happened")
    assert found.sayings == UNDO and found.shown_state == "unknown", "the undo that was sent is still in doubt"
    assert ws.resolve(act.id, "undone").shown_state == "undone"


def test_what_did_not_happen_leaves_no_attempt_in_doubt(ws: Workspace, book: Path) -> None:
    act = record(ws, book, "charge", state=BEGUN, probe=True)
    behave(book, "lost")
    taken_back(ws, act.id)
    assert ws.resolve(act.id, "did-not-happen").shown_state == "failed" and attempts(ws) == ["failed"]


# -- doubts that end by themselves --------------------------------------------------------


@pytest.mark.parametrize(("how", "earlier"), [("unknown", "done"), ("lost", "failed")])
def test_a_probe_settles_the_attempt_that_it_was_asked_about(ws: Workspace, book: Path, how: str, earlier: str) -> None:
    act = record(ws, book, "refund", probe=True)
    behave(book, how)
    taken_back(ws, act.id)
    assert attempts(ws) == ["unknown"]
    behave(book, "ok")
    assert taken_back(ws, act.id).whole
    assert attempts(ws) == [earlier, "done"] and lines(book) == ["refund"] and state(ws, act.id) == "undone"


def test_a_vouched_key_settles_the_attempt_before(ws: Workspace, book: Path) -> None:
    act = record(ws, book, "refund", idempotent=True)
    behave(book, "unknown")
    taken_back(ws, act.id)
    behave(book, "ok")
    assert taken_back(ws, act.id).whole
    assert attempts(ws) == ["done", "done"] and lines(book) == ["refund"]


def test_an_attempt_that_proved_nothing_settles_nothing(ws: Workspace, book: Path) -> None:
    act = record(ws, book, "refund", probe=True)
    behave(book, "lost")
    taken_back(ws, act.id)
    behave(book, "blind")
    taken_back(ws, act.id)
    assert attempts(ws) == ["unknown", "failed"] and state(ws, act.id) == "unknown"
    assert ws.find_effect(act.id).sayings == UNDO


# -- its place in the order ------------------------------------------------------------------


def order(ws: Workspace) -> list[str]:
    """Checkpoints by label and effects by summary, oldest first."""
    rows = [row for row in reversed(ws.log()) if row.kind in ("checkpoint", "effect")]
    return [row.label or row.summary for row in rows]


def test_what_a_person_says_later_keeps_the_place_of_what_was_begun(ws: Workspace, book: Path) -> None:
    """Going back to a checkpoint after a charge does not refund it, whenever a person said that it happened."""
    ws.checkpoint("before")
    act = record(ws, book, "charge", state=BEGUN)
    ws.checkpoint("after")
    standing = record(ws, book, "label", depends_on=(act.id,))
    before = order(ws)
    told = ws.resolve(act.id, "happened")
    assert told.seq == act.seq and order(ws) == before
    history = ws.history()
    assert [e.seq for e in history.effects] == sorted(e.seq for e in history.effects)
    assert [step.path.decode() for step in ws.plan("rollback", "after").outside] == [standing.id]
    assert [step.path.decode() for step in ws.plan("rollback", "before").outside] == [standing.id, act.id]
    with takeback.open(ws.root) as again:  # folded at once, not row by row
        assert again.find_effect(act.id).seq == act.seq and order(again) == before


def test_what_its_own_call_says_has_the_place_where_it_said_so(ws: Workspace, book: Path) -> None:
    act = record(ws, book, "charge", state=BEGUN)
    ws.checkpoint("meanwhile")
    assert ws.acted(act.id, state="done").seq > act.seq
    assert [step.path.decode() for step in ws.plan("rollback", "meanwhile").outside] == [act.id]


def test_who_records_later_what_came_of_it_leaves_it_in_its_place(ws: Workspace) -> None:
    url = "https://pay.example/v1/charges"
    act = ws.record_http("POST", url, status=None)
    ws.checkpoint("after")
    told = ws.record_http("POST", url, status=200, inverse_url="/v1/refunds", for_effect=act.id)
    assert (told.id, told.seq, told.shown_state) == (act.id, act.seq, "live") and not ws.plan("rollback", "after").steps


@pytest.mark.parametrize("said", ["happened", "not-undone"])
def test_what_undo_kept_in_doubt_it_takes_once_that_is_settled(ws: Workspace, book: Path, said: str) -> None:
    begun = {"state": BEGUN} if said == "happened" else {}
    act = record(ws, book, "charge", by={"surface": "mcp", "actor": "bot"}, **begun)
    behave(book, "lost")
    plan = ws.plan("undo")
    ws.approve(plan)
    ws.apply(plan)
    behave(book, "ok")
    assert state(ws, act.id) == "unknown" and not lines(book)
    ws.resolve(act.id, said)
    plan = ws.plan("undo")
    ws.approve(plan)
    assert ws.apply(plan).whole and lines(book) == ["charge"] and state(ws, act.id) == "undone"


# -- with its result ------------------------------------------------------------------------

_DIES = """
import os, sys, takeback
sys.path.insert(0, {here!r})
import test_settling as t
with takeback.open({project!r}).step("charge") as step:
    step.do(t.dies, {shop!r}, undo=t.refund, undo_args={{"shop": "{{args.shop}}", "charge": "{{result.id}}"}}, key="one")
"""


def dies(shop: str) -> None:
    Path(shop).write_text("charge ch_7\n")
    os._exit(9)


def refund(shop: str, charge: str) -> None:
    with open(shop, "a") as file:
        file.write(f"refund {charge}\n")


def test_the_undo_of_a_call_that_died_is_completed_by_its_result(
    ws: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, here = str(tmp_path / "shop"), str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    python.register("test_settling:refund")
    code = _DIES.format(here=here, project=str(project), shop=shop)
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 9
    (act,) = ws.effects()
    assert act.inverse is None and act.resolving.endswith("--happened --result JSON or --did-not-happen")
    with pytest.raises(takeback.UsageError, match=r"result.id"):
        ws.resolve(act.id, "happened", {"number": 7})
    assert ws.resolve(act.id, "happened", {"id": "ch_7"}).shown_state == "live"
    with ws.recording() as recorder:
        assert recorder.do(dies, shop, key="one") == {"id": "ch_7"}, "done once: its result is what the person said"
    assert taken_back(ws, act.id).whole
    assert Path(shop).read_text() == "charge ch_7\nrefund ch_7\n"


def test_without_its_result_it_stands_and_says_what_is_missing(ws: Workspace, tmp_path: Path) -> None:
    act = ws.record_http(
        "POST", "https://pay.example/v1/charges", status=None,
        inverse_url="/v1/charges/{response.body.id}", probe={"url": "/x?c={response.body.id}", "expect": [404]},
    )  # fmt: skip
    assert act.waits_for_result and act.shown_state == "unknown"
    found = ws.resolve(act.id, "happened")
    assert found.shown_state == "irreversible" and "result" in found.did["left_to_do"]


def test_an_undo_that_waits_for_its_result_holds_no_secret(ws: Workspace) -> None:
    wrong: list[dict[str, Any]] = [
        {"inverse_headers": {"Authorization": "Bearer sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"}},
        {"inverse_url": "https://elsewhere.example/{response.body.id}"},
        {"inverse_url": "{response.body.url}"},
        {"inverse_url": "/v1/x/{response.body.id}/../y"},
        {"inverse_url": "/v1/x?at={response.headers.location}&id={response.body.id}"},
    ]
    for more in wrong:
        given = {"inverse_url": "/v1/refunds", "inverse_json": {"charge": "{response.body.id}"}, **more}
        with pytest.raises(takeback.UsageError):
            ws.record_http("POST", "https://pay.example/v1/charges", status=None, **given)
    assert ws.effects() == []


def test_a_result_that_is_known_later_completes_the_undo(ws: Workspace) -> None:
    """A person said that it happened, and not what came of it; later the id is found."""

    def lost() -> None:
        raise TimeoutError

    with ws.recording() as recorder, pytest.raises(TimeoutError):
        recorder.do(lost, undo=f"{__name__}:{_refund.__name__}", undo_args={"charge": "{result.id}"})
    (act,) = ws.effects()
    told = ws.resolve(act.id, "happened")
    assert told.shown_state == "irreversible"
    assert f"takeback resolve {act.id[:8]} --happened --result JSON" in told.did["left_to_do"]
    with pytest.raises(takeback.UsageError, match="not in doubt"):
        ws.resolve(act.id, "happened")
    told = ws.resolve(act.id, "happened", {"id": "ch_1"})
    assert told.shown_state == "live" and told.inverse is not None and "ch_1" in str(told.inverse.args)
    with pytest.raises(takeback.UsageError, match="not in doubt"):
        ws.resolve(act.id, "happened", {"id": "ch_2"})


def _refund(charge: str) -> None:
    """What takes a charge back."""
