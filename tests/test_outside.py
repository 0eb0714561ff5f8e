"""The core with effects outside the files: one order, one plan, approved once, each inverse at most once.

The domain is tests/ledger.py: a real file outside the project, which counts every firing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import ledger as ledgers
import takeback
from ledger import behave, entries, lines, record
from support import assert_folded_whole, picture, set_clock
from takeback.config.policy import Policy
from takeback.model.effects import IRREVERSIBLE, Outcome, text
from takeback.model.outside import Act, Credential, Inverse, NewAct
from takeback.workspace import Workspace


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The domain comes by its entry point, here and in every process a test starts."""
    path = ledgers.register(tmp_path / "site")
    for folder in reversed(path.split(os.pathsep)):
        monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", path)
    yield
    ledgers.spies.clear()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def approved(ws: Workspace, verb: str, *what: Any, **how: Any) -> Outcome:
    plan = ws.plan(verb, *what, save=True, **how)
    ws.approve(plan, ws.unapproved(plan)[1])
    return ws.apply(plan.id)


def state(ws: Workspace, act: Act) -> str:
    return next(a.shown_state for a in ws.effects() if a.id == act.id)


def results(outcome: Outcome) -> dict[str, str]:
    return {r.path.decode(): r.result for r in outcome.results}


def settings(ws: Workspace, **changed: Any) -> None:
    """As if the owner had configured it so."""
    ws.settings = ws.observer.settings = ws.settings._replace(**changed)


def python(code: str, *args: object, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


APPLY = "import sys, takeback\nwith takeback.open(sys.argv[1]) as ws: print(ws.apply(sys.argv[2]).whole)"


def killed_while_applying(ws: Workspace, project: Path, ledger: Path, how: str = "die") -> None:
    """Another process applies an approved rollback, writes into the ledger and dies before it can say so."""
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)
    behave(ledger, how)
    assert python(APPLY, project, plan.id).wait() == -signal.SIGKILL
    behave(ledger, "ok")


# -- what a plan's own earlier step did is not drift -------------------------------

MIGRATE = "import sqlite3, sys; sqlite3.connect('shop.db').execute(sys.argv[1])"


def migrated(ws: Workspace, project: Path) -> bytes:
    """The README's scenario: a migration of a database in the project, with the command that takes it back."""
    subprocess.run([sys.executable, "-c", MIGRATE, "CREATE TABLE customers (name)"], cwd=project, check=True)
    ws.checkpoint("before")
    before = (project / "shop.db").read_bytes()
    subprocess.run([sys.executable, "-c", MIGRATE, "CREATE TABLE orders (id)"], cwd=project, check=True)
    ws.checkpoint(actor="claude", named=False)
    drop = [sys.executable, "-c", MIGRATE, "DROP TABLE orders"]
    ws.record_command("created the table orders", argv=drop, by={"actor": "claude"})
    return before


def test_what_a_plans_command_does_to_a_file_is_no_drift_of_its_file_step(ws: Workspace, project: Path):
    before = migrated(ws, project)
    after = (project / "shop.db").read_bytes()
    plan = ws.plan("rollback", "before")
    assert [(s.domain, s.verdict) for s in plan.steps] == [("command", "compensating"), ("files", "exact")]
    outcome = approved(ws, "rollback", "before")
    assert outcome.whole and outcome.is_there, outcome.results
    assert (project / "shop.db").read_bytes() == before
    assert_folded_whole(ws)
    assert ws.verify(data=True).ok and not ws.plan("rollback", "before").steps
    ws.redo()
    assert (project / "shop.db").read_bytes() == after


def test_nor_where_it_is_cut_off_after_the_command_and_resumed(ws: Workspace, project: Path, monkeypatch):
    before = migrated(ws, project)
    from takeback.domains.files import Files

    plan = ws.plan("rollback", "before", save=True)
    ws.approve(plan)
    with monkeypatch.context() as broken:
        broken.setattr(Files, "apply", lambda *_, **__: os._exit(9))
        child = os.fork()
        if not child:
            with takeback.open(project) as mine:
                mine.apply(plan.id)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    outcome = ws.resume()
    assert outcome is not None and outcome.whole, outcome
    assert (project / "shop.db").read_bytes() == before


def test_what_somebody_else_wrote_meanwhile_is_drift_as_before(ws: Workspace, project: Path):
    (project / "f").write_text("one\n")
    ws.checkpoint("before")
    (project / "f").write_text("two\n")
    ws.checkpoint(actor="claude", named=False)
    ws.record_command("done", argv=["true"])
    plan = ws.plan("rollback", "before", save=True)
    ws.approve(plan)
    (project / "f").write_text("mine\n")
    with pytest.raises(takeback.Stale):
        ws.apply(plan.id)
    assert (project / "f").read_text() == "mine\n"


def test_what_a_person_saves_while_a_request_is_under_way_is_kept(ws: Workspace, project: Path):
    """A request writes no files here: what moved meanwhile is somebody's, and no step of the plan may take it."""

    class Shop(BaseHTTPRequestHandler):
        def do_DELETE(self) -> None:
            (project / "a.txt").write_text("a person saved this\n")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Not here."""

    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("one\n")
    ws.checkpoint("before")
    (project / "a.txt").write_text("two\n")
    (project / "b.txt").write_text("two\n")
    ws.checkpoint(actor="claude", named=False)
    with HTTPServer(("127.0.0.1", 0), Shop) as shop:
        threading.Thread(target=shop.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{shop.server_port}/charges"
        act = ws.record_http("POST", url, status=201, inverse_method="DELETE", inverse_url=f"{url}/1",
                             by={"actor": "claude"})  # fmt: skip
        outcome = approved(ws, "rollback", "before")
        shop.shutdown()
    assert results(outcome) == {act.id: "done", "a.txt": "kept", "b.txt": "done"} and not outcome.whole
    assert (project / "a.txt").read_text() == "a person saved this\n"
    assert (project / "b.txt").read_text() == "one\n"
    saved = [e for e in ws.history().effects if b"a.txt" in e.changes][-1]
    assert not saved.takeback and not saved.has_agent, "it is the person's in the journal too"
    assert_folded_whole(ws)
    assert ws.verify(data=True).ok


# -- the guarantees, as far as recorded effects go -------------------------------


def test_guarantee_01_nothing_leaves_before_its_intent_is_synced(ws: Workspace, ledger: Path):
    act = record(ws, ledger, "refund")
    seen: list[tuple[Any, ...]] = []

    def spy(inverse: Inverse, key: str) -> None:
        with sqlite3.connect(ws.store.folder / "journal.db") as db:  # sees only what is committed
            seen.append(tuple(kind for (kind,) in db.execute("SELECT kind FROM log ORDER BY seq DESC LIMIT 2")))

    ledgers.spies.append(spy)
    approved(ws, "rollback")
    assert seen == [("intent", "takeback")]
    kinds = [row.kind for row in ws.store.journal.rows()]
    assert kinds[-1] == "outcome" and state(ws, act) == "undone"


def test_guarantee_02_in_doubt_is_a_state_until_a_probe_or_a_person_ends_it(ws: Workspace, ledger: Path):
    act = record(ws, ledger, "refund")
    behave(ledger, "unknown")
    outcome = approved(ws, "rollback")
    assert results(outcome) == {act.id: "unknown"} and state(ws, act) == "unknown"
    behave(ledger, "ok")
    plan = ws.plan("rollback")
    assert [(s.verdict, s.taken) for s in plan.steps] == [("unknown", False)] and "resolve" in plan.steps[0].note
    assert ws.resolve(act.id[:8], "undone").shown_state == "undone"
    assert lines(ledger) == ["refund"] and ws.plan("rollback").steps == ()


def test_guarantee_03_one_key_for_every_attempt_and_none_after_it_took_effect(ws: Workspace, ledger: Path):
    act = record(ws, ledger, "refund")
    keys: list[str] = []
    ledgers.spies.append(lambda inverse, key: keys.append(key))
    for how in ("fail", "lost"):
        behave(ledger, how)
        approved(ws, "rollback")
    ws.resolve(act.id, "not-undone")
    behave(ledger, "ok")
    approved(ws, "rollback")
    assert len(keys) == 3 and len(set(keys)) == 1 and act.id in keys[0]
    assert approved(ws, "rollback").results == () and approved(ws, "compensate").results == ()
    assert lines(ledger) == ["refund"]


def test_guarantee_04_what_did_not_happen_has_no_inverse(ws: Workspace, ledger: Path):
    never = record(ws, ledger, "never", state="failed")
    after_all = record(ws, ledger, "after all")
    begun = record(ws, ledger, "begun", state="begun")
    ws.acted(after_all.id, state="failed")
    ws.acted(begun.id, state="failed")
    for verb in ("rollback", "compensate", "undo"):
        assert ws.plan(verb).steps == (), verb
    assert {state(ws, act) for act in (never, after_all, begun)} == {"failed"}
    with pytest.raises(takeback.UsageError, match="nothing to take back"):
        ws.plan("revert", never.id)
    assert lines(ledger) == []


def test_guarantee_05_newest_first_by_one_sequence_and_files_never_joined_across_an_act(
    ws: Workspace, project: Path, ledger: Path
):
    file = project / "f"
    file.write_text("1\n")
    ws.checkpoint("start here")
    seen: list[tuple[str, str]] = []
    ledgers.spies.append(lambda inverse, key: seen.append((inverse.args["line"], file.read_text())))
    for number in (2, 3):
        file.write_text(f"{number}\n")
        record(ws, ledger, f"act {number}")
    file.write_text("4\n")
    plan = ws.plan("rollback")
    told = [(s.domain, s.goal.size if s.goal else 0) for s in plan.steps]
    assert [domain for domain, _ in told] == ["files", "ledger", "files", "ledger", "files"]
    assert approved(ws, "rollback").whole
    assert seen == [("act 3", "3\n"), ("act 2", "2\n")], "each inverse finds the files as they were at its time"
    assert file.read_text() == "1\n" and lines(ledger) == ["act 3", "act 2"]


def test_guarantee_06_a_target_that_somebody_changed_is_kept(ws: Workspace, project: Path, ledger: Path):
    """Of recorded effects: the inverse is approved as it was shown, and files others changed are kept."""
    act = record(ws, ledger, "refund")
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)
    ws.acted(act.id, inverse=Inverse("write", {"ledger": str(ledger), "line": "something else"}))
    with pytest.raises(takeback.Stale) as stale:
        ws.apply(plan.id)
    assert [path for path, *_ in stale.value.differing] == [act.id]
    assert lines(ledger) == []


def test_guarantee_07_no_success_unless_every_step_is_known_to_be_done(ws: Workspace, project: Path, ledger: Path):
    for how in ("fail", "unknown", "lost", "refuse", "crash"):
        (project / how).write_text("x")
        act = record(ws, ledger, how)
        behave(ledger, how)
        outcome = approved(ws, "revert", act.id)
        assert not outcome.whole and outcome.counts["done"] == 0, how
        assert outcome.results[0].note, "and it says why"
    told = {act.summary: act.shown_state for act in ws.effects()}
    assert told == {"did fail": "live", "did refuse": "live"} | {
        f"did {how}": "unknown" for how in ("unknown", "lost", "crash")
    }


def test_guarantee_08_running_again_converges_and_running_twice_does_nothing(
    ws: Workspace, project: Path, ledger: Path
):
    before = picture(project)
    for name in "abc":
        (project / name).write_text(name)
        record(ws, ledger, name, probe=True)
    killed_while_applying(ws, project, ledger)
    assert ws.interrupted()
    outcome = ws.rollback()  # finishes the interrupted one, under its approval
    assert outcome.finished_earlier and outcome.whole and not ws.interrupted()
    told = {text(r.path) for r in outcome.results if r.result == "done"}
    assert told == {"a", "b", "c", *(act.id for act in ws.effects())}, "also what was over when it was killed"
    assert lines(ledger) == ["c", "b", "a"] and picture(project) == before
    again = ws.rollback()
    assert not again.id and lines(ledger) == ["c", "b", "a"]
    assert ws.verify(data=True).ok


def test_guarantee_09_policy_holds_what_is_unknown_or_refused(ws: Workspace, project: Path, ledger: Path):
    act = record(ws, ledger, "refund")
    settings(ws, policy=Policy({"ledger.compensating": "refuse"}))
    plan = ws.plan("rollback", save=True)
    assert [(s.verdict, s.taken) for s in plan.steps] == [("refused", False)] and "policy" in plan.steps[0].note
    ws.approve(plan)
    assert results(ws.apply(plan.id)) == {act.id: "kept"} and lines(ledger) == []
    settings(ws, policy=Policy({"ledger.compensating": "allow"}))
    assert ws.rollback().whole and lines(ledger) == ["refund"]


def test_guarantee_10_the_plan_lists_exactly_what_fires_and_another_plan_needs_another_yes(
    ws: Workspace, project: Path, ledger: Path
):
    first = record(ws, ledger, "one")
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)
    second = record(ws, ledger, "two")
    with pytest.raises(takeback.Stale):
        ws.apply(plan.id)
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert lines(ledger) == []
    (project / "unrelated").write_text("x")
    newer = ws.plan("compensate", save=True)
    assert [s.path.decode() for s in newer.outside] == [second.id, first.id]
    described = [ws.outside("ledger").describe(act.inverse) for act in (second, first) if act.inverse]
    ws.approve(newer)
    (project / "unrelated").write_text("y")
    assert ws.apply(newer.id).whole, "what the plan does not touch does not matter"
    assert [line in told for line, told in zip(lines(ledger), described)] == [True, True]


def test_what_stays_is_named_newest_first_as_what_goes(ws: Workspace):
    told = [ws.record(NewAct("ledger", f"letter {n}", "letter", None, IRREVERSIBLE)).id for n in range(9)]
    assert [step.path.decode() for step in ws.plan("rollback").kept] == told[::-1]


def test_guarantee_11_what_cannot_be_taken_back_is_named_in_plan_and_outcome(ws: Workspace, ledger: Path):
    gone = ws.record(NewAct("ledger", "sent a letter", "letter", None, IRREVERSIBLE, {"left_to_do": "write another"}))
    record(ws, ledger, "refund")
    plan = ws.plan("rollback")
    assert [(s.verdict, s.note) for s in plan.kept] == [("irreversible", "write another")]
    outcome = approved(ws, "rollback")
    assert results(outcome)[gone.id] == "kept" and not outcome.whole
    assert state(ws, gone) == "irreversible"


def test_guarantee_12_undo_is_journaled_and_never_captured_as_somebodys_work(
    ws: Workspace, project: Path, ledger: Path
):
    act = record(ws, ledger, "refund", writes={"made by the inverse": "x\n"}, by={"actor": "claude"})
    outcome = approved(ws, "rollback")
    history = ws.history()
    made = [e for e in history.effects if b"made by the inverse" in e.changes]
    assert [e.takeback for e in made] == [outcome.id]
    assert [a.id for a in ws.effects()] == [act.id], "the inverse is no effect of its own"
    assert ws.plan("undo").steps == () and not [e for e in history.effects if e.actors and not e.takeback][1:]
    assert ws.redo().whole is False and not (project / "made by the inverse").exists(), "redo takes what it made"
    assert lines(ledger) == ["refund"]


def test_guarantee_13_a_failed_inverse_blocks_only_what_it_stands_on(ws: Workspace, project: Path, ledger: Path):
    shop = record(ws, ledger, "shop", target="https://shop/orders")
    other = record(ws, ledger, "other", target="https://other/orders")
    (project / "f").write_text("x")
    item = record(ws, ledger, "item", target="https://shop/orders/1")
    other_ledger = ledger.with_name("broken")
    behave(other_ledger, "fail")
    said = record(ws, other_ledger, "said", target="elsewhere", depends_on=(item.id,))
    outcome = approved(ws, "rollback")
    assert results(outcome) == {said.id: "failed", item.id: "failed", "f": "done", other.id: "done", shop.id: "failed"}
    notes = {r.path.decode(): r.note for r in outcome.results}
    assert said.id[:8] in notes[item.id] and item.id[:8] in notes[shop.id]
    assert lines(ledger) == ["other"]
    behave(other_ledger, "ok")
    assert approved(ws, "rollback").whole and lines(ledger) == ["other", "item", "shop"]


def test_guarantee_14_the_point_of_no_return_is_journaled(ws: Workspace, ledger: Path):
    act = record(ws, ledger, "held", verdict="held")
    plan = ws.plan("rollback", save=True)
    assert plan.steps[0].verdict == "held"
    ws.acted(act.id, verdict=IRREVERSIBLE, did={"left_to_do": "ask them to forget it"})
    row = list(ws.store.journal.rows())[-1]
    assert row.kind == "acted" and row.body and row.body["verdict"] == "irreversible"
    with pytest.raises(takeback.Stale):
        ws.apply(plan.id)
    assert state(ws, act) == "irreversible" and lines(ledger) == []


# -- approval ---------------------------------------------------------------------


def test_without_approval_nothing_happens_not_even_to_files(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    record(ws, ledger, "refund")
    before = picture(project)
    head = ws.store.journal.head().seq
    for verb, what in (("rollback", ()), ("undo", (1,)), ("compensate", ()), ("revert", (ws.effects()[0].id,))):
        with pytest.raises(takeback.ApprovalNeeded) as refused:
            ws.take_back(verb, *what)
        assert refused.value.exit_code == 4 and "approve" in refused.value.hint
    assert picture(project) == before and lines(ledger) == []
    assert not [r for r in ws.store.journal.rows(head) if r.kind in ("takeback", "intent")]


def test_files_alone_need_no_approval(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    act = record(ws, ledger, "refund")
    assert ws.take_back("rollback", only=["files"]).whole
    assert not (project / "f").exists() and state(ws, act) == "live"
    (project / "g").write_text("x")
    assert ws.take_back("rollback", without=["ledger"]).whole and not (project / "g").exists()
    plan = ws.plan("rollback", only=["ledger"])
    assert {s.domain for s in plan.steps} == {"ledger"} and lines(ledger) == []


def test_undo_of_files_alone_goes_to_the_newest_turn_with_files(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    ws.checkpoint(actor="claude")
    record(ws, ledger, "refund", by={"actor": "claude"})
    assert [s.path for s in ws.plan("undo", only=["files"]).steps] == [b"f"]
    assert [s.domain for s in ws.plan("undo").steps] == ["ledger"]


def test_an_approval_is_good_for_one_apply(ws: Workspace, project: Path, ledger: Path):
    record(ws, ledger, "refund")
    behave(ledger, "fail")
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)
    assert not ws.apply(plan.id).whole
    assert ws.plan("rollback").hash == plan.hash, "the same plan again, since it failed"
    behave(ledger, "ok")
    with pytest.raises(takeback.ApprovalNeeded):
        ws.apply(plan.id)
    assert lines(ledger) == []
    ws.approve(plan)
    assert ws.apply(plan.id).whole and lines(ledger) == ["refund"]


def test_prune_does_not_bring_a_used_approval_back(ws: Workspace, ledger: Path):
    record(ws, ledger, "refund")
    behave(ledger, "fail")
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)
    ws.apply(plan.id)
    ws.checkpoint("later")
    ws.prune(keep=1)
    assert ws.history().approvals == {}
    assert ws.verify(data=True).ok


def test_an_approval_is_of_one_plan(ws: Workspace, ledger: Path):
    one, two = record(ws, ledger, "one"), record(ws, ledger, "two")
    ws.approve(ws.plan("revert", one.id, save=True))
    with pytest.raises(takeback.ApprovalNeeded):
        ws.take_back("revert", two.id)
    with pytest.raises(takeback.ApprovalNeeded):
        ws.take_back("rollback")
    assert ws.take_back("revert", one.id).whole and lines(ledger) == ["one"]


def test_an_approval_of_a_plan_leaves_confirmed_rules_alone(ws: Workspace, project: Path, ledger: Path):
    (project / ".takebackignore").write_text("*.log\n")
    fingerprint = ws.confirm_rules()
    record(ws, ledger, "refund")
    ws.approve(ws.plan("rollback", save=True))
    ws.checkpoint("looks at the rules again")
    assert ws.observer.limits().confirmed_rules == fingerprint
    assert approved(ws, "rollback").whole


def test_an_unbound_credential_is_a_question_of_its_own(ws: Workspace, ledger: Path):
    pair = ("SHOP_KEY", "https://shop")
    record(ws, ledger, "refund", needs=[pair])
    settings(ws, policy=Policy({"ledger.compensating": "allow"}))
    plan = ws.plan("rollback", save=True)
    assert ws.unapproved(plan) == ([], [Credential(*pair)])
    ws.approve(plan)  # a yes to the plan alone
    with pytest.raises(takeback.ApprovalNeeded, match="sending SHOP_KEY to https://shop"):
        ws.apply(plan.id)
    assert lines(ledger) == []
    ws.approve(plan, [Credential(*pair)])
    assert ws.apply(plan.id).whole and lines(ledger) == ["refund"]


def test_a_bound_credential_needs_no_question(ws: Workspace, ledger: Path):
    record(ws, ledger, "refund", needs=[("SHOP_KEY", "https://shop")])
    bound = {"SHOP_KEY": ("https://shop",)}
    settings(ws, policy=Policy({"ledger.compensating": "allow"}), credentials=bound)
    assert ws.rollback().whole and lines(ledger) == ["refund"]


def test_only_mail_is_dropped_without_a_question(ws: Workspace, ledger: Path):
    """Whoever records an act says how it can be taken back: that must not be a way around approval."""
    record(ws, ledger, "refund", verdict="held")
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert lines(ledger) == []


# -- unknown ----------------------------------------------------------------------


def test_unknown_is_never_fired_again_by_itself(ws: Workspace, ledger: Path):
    act = record(ws, ledger, "refund")
    behave(ledger, "lost")
    approved(ws, "rollback")
    behave(ledger, "ok")
    for verb in ("rollback", "compensate"):
        assert not approved(ws, verb).id
    assert results(approved(ws, "revert", act.id)) == {act.id: "kept"}
    assert lines(ledger) == [] and state(ws, act) == "unknown"
    assert ws.resolve(act.id, "not-undone").shown_state == "live"
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert approved(ws, "rollback").whole and lines(ledger) == ["refund"]


@pytest.mark.parametrize("sent", [True, False], ids=["it had been written", "it had not"])
def test_a_probe_settles_what_is_unknown(ws: Workspace, ledger: Path, sent: bool):
    act = record(ws, ledger, "refund", probe=True)
    behave(ledger, "unknown" if sent else "lost")
    approved(ws, "rollback")
    assert state(ws, act) == "unknown"
    behave(ledger, "ok")
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert approved(ws, "rollback").whole
    assert lines(ledger) == ["refund"] and state(ws, act) == "undone"


def test_a_probe_that_cannot_be_sent_leaves_it_in_doubt(ws: Workspace, ledger: Path):
    act = record(ws, ledger, "refund", probe=True)
    behave(ledger, "unknown")
    approved(ws, "rollback")
    behave(ledger, "refuse")
    assert results(approved(ws, "rollback")) == {act.id: "unknown"}
    behave(ledger, "blind")
    assert results(approved(ws, "rollback")) == {act.id: "unknown"}
    assert lines(ledger) == ["refund"] and state(ws, act) == "unknown"


def test_the_recorder_may_vouch_for_a_second_sending_for_a_time(ws: Workspace, ledger: Path):
    now = time.time()
    set_clock(ws, lambda: now)
    act = record(ws, ledger, "refund", idempotent=True, idempotent_for=3600)
    behave(ledger, "unknown")
    approved(ws, "rollback")
    behave(ledger, "ok")
    now += 3601
    assert results(approved(ws, "rollback")) == {act.id: "unknown"}, "the key is forgotten by now"
    assert len(entries(ledger)) == 1
    now -= 10
    assert approved(ws, "rollback").whole
    assert len(entries(ledger)) == 1 and state(ws, act) == "undone"


def test_a_key_is_as_old_as_its_first_sending(ws: Workspace, ledger: Path):
    now = time.time()
    set_clock(ws, lambda: now)
    act = record(ws, ledger, "refund", idempotent=True, idempotent_for=3600)
    behave(ledger, "lost")
    for _ in range(3):
        approved(ws, "rollback")
        now += 1500
    behave(ledger, "ok")
    assert results(approved(ws, "rollback")) == {act.id: "unknown"} and lines(ledger) == []


def test_a_refusal_of_the_second_sending_proves_nothing_about_the_first(ws: Workspace, ledger: Path):
    act = record(ws, ledger, "refund", idempotent=True)
    behave(ledger, "unknown")
    approved(ws, "rollback")
    for how in ("fail", "refuse"):
        behave(ledger, how)
        assert results(approved(ws, "rollback")) == {act.id: "unknown"}, how
    assert state(ws, act) == "unknown" and lines(ledger) == ["refund"]


def test_what_was_not_tried_stays_in_doubt(ws: Workspace, ledger: Path):
    """Blocked by a dependent that failed: that says nothing about an earlier attempt."""
    older = record(ws, ledger, "older", probe=True, target="t")
    behave(ledger, "unknown")
    approved(ws, "rollback")
    broken = ledger.with_name("broken")
    behave(broken, "fail")
    record(ws, broken, "newer", target="t")
    assert {r.result for r in approved(ws, "rollback").results} == {"failed"}
    assert state(ws, older) == "unknown"
    behave(broken, "ok")
    behave(ledger, "ok")
    assert approved(ws, "rollback").whole and lines(ledger) == ["older"]


def test_what_stands_on_something_in_doubt_blocks_it_beforehand(ws: Workspace, ledger: Path):
    older, free = record(ws, ledger, "older", target="t"), record(ws, ledger, "free")
    newer = record(ws, ledger, "newer", target="t/sub")
    behave(ledger, "lost")
    approved(ws, "revert", newer.id)
    behave(ledger, "ok")
    plan = ws.plan("rollback")
    assert {s.path.decode(): s.taken for s in plan.steps} == {older.id: False, free.id: True, newer.id: False}
    assert newer.id[:8] in next(s.note for s in plan.steps if s.path.decode() == older.id)
    assert results(approved(ws, "rollback"))[free.id] == "done" and lines(ledger) == ["free"]


def test_resolve_takes_the_id_of_the_effect_or_of_its_undo(ws: Workspace, ledger: Path):
    behave(ledger, "lost")
    act = record(ws, ledger, "one")
    first = approved(ws, "rollback")
    assert ws.resolve(first.id, "not-undone").id == act.id
    record(ws, ledger, "two")
    both = approved(ws, "rollback")
    with pytest.raises(takeback.UsageError, match="several"):
        ws.resolve(both.id, "undone")
    with pytest.raises(takeback.UsageError, match="not in doubt"):
        ws.resolve(record(ws, ledger, "three").id, "undone")


def test_announced_and_never_heard_of_again_is_unknown(ws: Workspace, project: Path, ledger: Path):
    act = record(ws, ledger, "charge", state="begun")
    (project / "f").write_text("x")
    plan = ws.plan("rollback")
    assert [(s.domain, s.verdict) for s in plan.steps] == [("files", "exact"), ("ledger", "unknown")]
    done = ws.acted(act.id, state="done")
    assert done.seq > act.seq and [s.domain for s in ws.plan("rollback").steps] == ["ledger", "files"], "its place"
    assert approved(ws, "rollback").whole and lines(ledger) == ["charge"]


# -- undo, redo, revert, compensate -----------------------------------------------


def test_compensate_reaches_all_live_effects_whatever_the_checkpoints(ws: Workspace, project: Path, ledger: Path):
    record(ws, ledger, "one")
    ws.checkpoint("between")
    (project / "f").write_text("x")
    ws.take_back("rollback")
    ws.checkpoint("again")
    record(ws, ledger, "two")
    assert [s.domain for s in ws.plan("compensate").steps] == ["ledger", "ledger"]
    assert [s.domain for s in ws.plan("compensate", "again").steps] == ["ledger"]
    (project / "g").write_text("x")
    assert approved(ws, "compensate").whole and lines(ledger) == ["two", "one"] and (project / "g").exists()


def test_a_checkpoint_or_a_rollback_never_hides_an_earlier_effect(ws: Workspace, project: Path, ledger: Path):
    start = ws.history().checkpoints[0]
    act = record(ws, ledger, "old")
    (project / "f").write_text("1")
    ws.checkpoint("later")
    (project / "f").write_text("2")
    assert ws.rollback().whole, "to later: nothing outside since"
    assert state(ws, act) == "live"
    plan = ws.plan("rollback", start.id)
    assert [s.domain for s in plan.steps] == ["ledger"] or [s.domain for s in plan.steps] == ["files", "ledger"]
    assert approved(ws, "rollback", start.id).whole and lines(ledger) == ["old"]
    assert not (project / "f").exists()


def test_redo_does_not_do_it_again_and_says_so(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    act = record(ws, ledger, "refund")
    approved(ws, "rollback")
    plan = ws.plan("redo")
    assert [(s.domain, s.verdict) for s in plan.steps] == [("files", "exact"), ("ledger", "irreversible")]
    outcome = ws.redo()
    assert results(outcome) == {"f": "done", act.id: "kept"} and (project / "f").exists()
    assert state(ws, act) == "undone" and lines(ledger) == ["refund"]
    assert [s.domain for s in ws.plan("rollback").steps] == ["files"]
    assert ws.rollback().whole and lines(ledger) == ["refund"]


def test_revert_of_one_effect_says_what_stands_on_it(ws: Workspace, ledger: Path):
    order = record(ws, ledger, "order", target="https://shop/orders/1")
    item = record(ws, ledger, "item", target="https://shop/orders/1/items/2")
    plan = ws.plan("revert", order.id)
    assert plan.steps[0].taken and item.id[:8] in plan.steps[0].note and "rollback" in plan.steps[0].note
    assert ws.plan("revert", order.id, item.id).steps[1].note == "", "both go"
    assert ws.plan("revert", item.id).steps[0].note == ""
    tail = ws.plan("rollback", order.id)
    assert [s.path.decode() for s in tail.steps] == [item.id, order.id]


def test_undo_takes_the_newest_turn_with_what_it_did_outside(ws: Workspace, project: Path, ledger: Path):
    ws.checkpoint(actor="claude")
    (project / "one").write_text("x")
    ws.checkpoint(actor="claude")
    (project / "two").write_text("x")
    mine = record(ws, ledger, "refund", by={"actor": "claude"})
    (project / "three").write_text("x")
    ws.checkpoint(actor="claude")
    plan = ws.plan("undo")
    assert {s.path.decode() for s in plan.taken} == {"two", mine.id, "three"}
    assert approved(ws, "undo").whole and lines(ledger) == ["refund"]
    assert sorted(p.name for p in project.iterdir()) == ["one"]


def test_rollback_asks_about_what_a_person_recorded_among_an_agents_work(ws: Workspace, project: Path, ledger: Path):
    ws.checkpoint("before")
    (project / "agents").write_text("x")
    ws.checkpoint(actor="claude")
    (project / "mine").write_text("x")
    act = record(ws, ledger, "refund")
    plan = ws.plan("rollback")
    assert {unit.path for unit in plan.asks["people"]} == {b"mine", act.path} and not plan.outside
    outcome = ws.rollback()
    assert set(outcome.left) == {b"mine", act.path} and not outcome.is_there
    assert not lines(ledger) and (project / "mine").exists() and not (project / "agents").exists()
    assert approved(ws, "rollback", also=["people"]).is_there
    assert lines(ledger) == ["refund"] and not (project / "mine").exists()


def test_who_recorded_an_effect_does_not_make_files_somebody_elses(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    record(ws, ledger, "refund", by={"actor": "claude", "surface": "mcp"})
    assert approved(ws, "rollback").whole and not (project / "f").exists()


def test_undo_reaches_what_was_recorded_by_nobody_known_among_an_agents_work(
    ws: Workspace, project: Path, ledger: Path
):
    (project / "agents").write_text("x")
    ws.checkpoint(actor="claude")
    act = record(ws, ledger, "refund")
    assert [s.path.decode() for s in ws.plan("undo").steps] == [act.id]
    assert {s.path.decode() for s in ws.plan("undo", 2).steps} == {act.id, "agents"}


@pytest.mark.parametrize("verb", ["undo", "rollback", "compensate"])
def test_what_an_agent_asks_for_leaves_what_a_person_recorded(ws: Workspace, project: Path, ledger: Path, verb: str):
    (project / "agents").write_text("x")
    ws.checkpoint(actor="claude", named=False)
    theirs = record(ws, ledger, "agents", by={"actor": "claude"})
    record(ws, ledger, "refund")
    ws.client = "claude"
    plan = ws.plan(verb)
    assert {s.path.decode() for s in plan.steps} == {theirs.id, *(["agents"] if verb == "rollback" else [])}
    ws.client = ""
    assert len(ws.plan("compensate").steps) == 2, "what a person asks for means what it did"


def test_undo_still_reaches_files_by_hand_beside_an_agents_effect(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    act = record(ws, ledger, "refund", by={"actor": "claude"})
    assert {s.path.decode() for s in ws.plan("undo", 2).steps} == {act.id, "f"}


def test_by_actor(ws: Workspace, ledger: Path):
    record(ws, ledger, "hers", by={"actor": "ada"})
    record(ws, ledger, "his", by={"actor": "bob"})
    record(ws, ledger, "nobody's")
    assert approved(ws, "rollback", actors=["ada"]).whole and lines(ledger) == ["hers"]
    assert approved(ws, "compensate", actors=["bob"]).whole and lines(ledger) == ["hers", "his"]


# -- the tree around an act --------------------------------------------------------


def test_what_changed_before_an_effect_stands_before_it(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    act = record(ws, ledger, "refund")
    found = next(e for e in ws.history().effects if b"f" in e.changes)
    assert found.seq < act.seq


def test_what_an_inverse_changes_in_the_tree_belongs_to_the_take_back_and_is_no_drift(
    ws: Workspace, project: Path, ledger: Path
):
    for name in ("done already", "otherwise", "plain"):
        (project / name).write_text("1\n")
    ws.checkpoint("before")
    for name in ("done already", "otherwise", "plain"):
        (project / name).write_text("2\n")
    act = record(ws, ledger, "migrate", writes={"done already": "1\n", "otherwise": "3\n", "new": "n\n"})
    outcome = approved(ws, "rollback")
    assert results(outcome) == {act.id: "done", "done already": "done", "otherwise": "done", "plain": "done"}
    assert (project / "otherwise").read_text() == "1\n" and (project / "plain").read_text() == "1\n"
    assert ws.show(outcome.id).row.kind == "takeback"
    ws.redo(merge=True)
    assert not (project / "new").exists() and lines(ledger) == ["migrate"]
    assert ws.verify(data=True).ok


def test_the_store_is_free_while_an_act_takes_its_time(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    act = record(ws, ledger, "slow")
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)
    behave(ledger, "gate")
    other = python(APPLY, project, plan.id)
    while not [r for r in ws.store.journal.rows() if r.kind == "intent"]:
        assert other.poll() is None, other.communicate()
        time.sleep(0.01)
    time.sleep(0.1)
    assert ws.interrupted() == "", "running is not interrupted"
    (project / "meanwhile").write_text("x")
    checkpoint = ws.checkpoint("meanwhile")
    late = record(ws, ledger, "late")
    assert state(ws, act) == "unknown"
    settings(ws, lock_timeout=0.2)
    for refused in (lambda: ws.resolve(act.id, "not-undone"), lambda: ws.apply(plan.id), lambda: ws.rollback()):
        with pytest.raises(takeback.Locked):
            refused()
    Path(f"{ledger}.gate").touch()
    assert other.communicate() == ("True\n", "")
    assert lines(ledger) == ["slow"] and not (project / "f").exists() and (project / "meanwhile").exists()
    assert state(ws, act) == "undone" and state(ws, late) == "live"
    assert ws.find_checkpoint("meanwhile").id == checkpoint.id and ws.verify(data=True).ok


def test_two_at_once_apply_the_same_approved_plan_and_one_wins(ws: Workspace, project: Path, ledger: Path):
    for round in range(4):
        (project / "f").write_text("x")
        record(ws, ledger, f"refund {round}")
        plan = ws.plan("rollback", save=True)
        ws.approve(plan)
        clients = [python(APPLY, project, plan.id) for _ in range(3)]
        said = [client.communicate() for client in clients]
        assert [out for out, _ in said].count("True\n") == 1, said
        assert all("Stale" in err or "ApprovalNeeded" in err for out, err in said if not out)
        assert lines(ledger) == [f"refund {n}" for n in range(round + 1)]
    assert ws.verify(data=True).ok


# -- interrupted -------------------------------------------------------------------


def test_killed_after_sending_is_unknown_and_resume_does_not_send_again(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    record(ws, ledger, "one")
    act = record(ws, ledger, "two")
    killed_while_applying(ws, project, ledger)
    assert ws.interrupted() and state(ws, act) == "unknown"
    with pytest.raises(takeback.TakebackError, match="interrupted"):
        ws.resolve(act.id, "undone")
    outcome = ws.resume()
    assert outcome is not None and results(outcome) == {act.id: "unknown", ws.effects()[1].id: "done", "f": "done"}
    assert lines(ledger) == ["two", "one"] and not (project / "f").exists()
    ws.resolve(act.id, "undone")
    assert ws.plan("rollback").steps == () and ws.verify(data=True).ok


@pytest.mark.parametrize("probe", [True, False])
def test_abort_settles_by_probe_and_sends_nothing(ws: Workspace, project: Path, ledger: Path, probe: bool):
    (project / "f").write_text("x")
    one = record(ws, ledger, "one", probe=probe)
    two = record(ws, ledger, "two", probe=probe)
    killed_while_applying(ws, project, ledger)
    outcome = ws.resume(abort=True)
    assert outcome is not None and not ws.interrupted()
    assert lines(ledger) == ["two"] and (project / "f").exists()
    assert (state(ws, two), state(ws, one)) == ("undone" if probe else "unknown", "live")
    assert ws.verify(data=True).ok


def test_abort_sends_nothing_even_if_the_probe_says_that_it_was_not_sent(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    act = record(ws, ledger, "refund", probe=True)
    killed_while_applying(ws, project, ledger, "die first")
    ws.resume(abort=True)
    assert lines(ledger) == [] and state(ws, act) == "live" and (project / "f").exists()
    assert approved(ws, "rollback").whole and lines(ledger) == ["refund"]


def test_an_effect_is_recorded_even_while_a_take_back_is_interrupted(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    record(ws, ledger, "one", probe=True)
    killed_while_applying(ws, project, ledger)
    late = record(ws, ledger, "late")
    assert state(ws, late) == "live"
    ws.acted(late.id, did={"seen": "yes"})
    outcome = ws.resume()
    assert outcome is not None and outcome.whole and lines(ledger) == ["one"]
    assert state(ws, late) == "live" and not (project / "f").exists()


def test_recording_while_the_tree_is_in_between_claims_nothing_of_it(
    ws: Workspace, project: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "f").write_text("1\n")
    ws.checkpoint("before")
    (project / "f").write_text("2\n")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("takeback.apply.executor.Executor._conclude", dies)
    with pytest.raises(KeyboardInterrupt):
        ws.rollback()
    monkeypatch.undo()
    assert (project / "f").read_text() == "1\n" and ws.interrupted()
    seqs = [e.seq for e in ws.history().effects]
    monkeypatch.syspath_prepend(ledger.parent / "site")  # the domain again
    act = record(ws, ledger, "refund")
    ws.acted(act.id, did={"seen": True})
    assert [e.seq for e in ws.history().effects] == [*seqs, act.seq]
    outcome = ws.resume()
    assert outcome is not None and outcome.whole and ws.redo().whole and (project / "f").read_text() == "2\n"


def test_a_domain_that_is_gone_keeps_its_own_steps_only(
    ws: Workspace, project: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "f").write_text("x")
    act = record(ws, ledger, "refund")
    (Path(sys.path[0]) / "ledger_domain-1.0.dist-info/entry_points.txt").write_text("")
    plan = ws.plan("rollback")
    assert {s.path.decode(): s.taken for s in plan.steps} == {"f": True, act.id: False}
    assert "nothing here knows the domain" in plan.kept[0].note
    assert not ws.rollback().whole and not (project / "f").exists() and state(ws, act) == "live"


def test_a_domain_that_is_gone_does_not_keep_a_take_back_interrupted(ws: Workspace, project: Path, ledger: Path):
    (project / "f").write_text("x")
    act = record(ws, ledger, "refund", probe=True)
    killed_while_applying(ws, project, ledger)
    (Path(sys.path[0]) / "ledger_domain-1.0.dist-info/entry_points.txt").write_text("")
    outcome = ws.resume()
    assert outcome is not None and results(outcome) == {act.id: "unknown", "f": "done"} and not ws.interrupted()


# -- the journal -------------------------------------------------------------------


def test_prune_never_makes_what_was_taken_back_look_live(ws: Workspace, project: Path, ledger: Path):
    undone, lost = record(ws, ledger, "undone"), record(ws, ledger, "lost")
    approved(ws, "revert", undone.id)
    behave(ledger, "lost")
    approved(ws, "revert", lost.id)
    resolved = record(ws, ledger, "resolved")
    approved(ws, "revert", resolved.id)
    ws.resolve(resolved.id, "undone")
    live = record(ws, ledger, "live")
    for number in range(3):
        (project / "f").write_text(str(number))
        ws.checkpoint(str(number))
    then = {act.id: act.shown_state for act in ws.effects()}
    assert then == {undone.id: "undone", lost.id: "unknown", resolved.id: "undone", live.id: "live"}
    ws.prune(keep=1)
    assert {act.id: act.shown_state for act in ws.effects()} == then and ws.verify(data=True).ok
    assert [s.path.decode() for s in ws.plan("compensate").taken] == [live.id]
    ws.prune(everything=True)
    assert {act.id: act.shown_state for act in ws.effects()} == then and ws.verify(data=True).ok
    with takeback.open(project) as again:
        assert {act.id: act.shown_state for act in again.effects()} == then


def test_a_file_called_like_an_effect_changes_nothing(ws: Workspace, project: Path, ledger: Path):
    act = record(ws, ledger, "refund", by={"actor": "claude"})
    (project / act.id).write_text("x")
    ws.checkpoint(actor="claude")
    (project / act.id).write_text("mine")
    plan = ws.plan("rollback")
    assert sorted((s.domain, s.verdict) for s in plan.steps) == [("files", "drifted"), ("ledger", "compensating")]
    assert approved(ws, "rollback", force=True).whole
    assert lines(ledger) == ["refund"] and not (project / act.id).exists()


def test_a_file_called_like_an_effect_outlives_its_undo(ws: Workspace, project: Path, ledger: Path):
    act = record(ws, ledger, "refund")
    (project / act.id).write_text("x")
    assert approved(ws, "compensate").whole and (project / act.id).exists()
    plan = ws.plan("rollback")
    assert [(s.domain, s.verdict) for s in plan.steps] == [("files", "exact")]
    assert ws.rollback().whole and not (project / act.id).exists() and state(ws, act) == "undone"


def test_in_memory(project: Path, ledger: Path):
    with takeback.open(project, store="memory") as ws:
        (project / "f").write_text("x")
        act = record(ws, ledger, "refund")
        assert approved(ws, "rollback").whole and lines(ledger) == ["refund"]
        assert state(ws, act) == "undone" and not (project / "f").exists() and ws.verify(data=True).ok


def test_another_process_takes_back_what_this_one_recorded(ws: Workspace, project: Path, ledger: Path):
    record(ws, ledger, "refund")
    plan = ws.plan("rollback", save=True)
    ws.approve(plan)
    assert python(APPLY, project, plan.id).communicate() == ("True\n", "")
    assert lines(ledger) == ["refund"]


def test_log_show_and_the_ledger_tell_of_every_state(ws: Workspace, ledger: Path):
    acts = [record(ws, ledger, "a"), record(ws, ledger, "b", state="failed"), record(ws, ledger, "c", state="begun")]
    outcome = approved(ws, "revert", acts[0].id)
    assert {row.id for row in ws.log()} >= {acts[0].id, acts[2].id, outcome.id}
    for name in (acts[0].id, acts[2].id, outcome.id):
        assert ws.show(name).row.id == name
    assert ws.find_effect(acts[1].id[:10]).shown_state == "failed"


def test_every_row_of_a_take_back_is_plain_json(ws: Workspace, ledger: Path):
    record(ws, ledger, "refund")
    approved(ws, "rollback")
    rows = [row.body for row in ws.store.journal.rows() if row.kind in ("act", "takeback", "intent", "outcome")]
    assert json.loads(json.dumps(rows)) == rows and ws.verify(data=True).ok


def test_a_pruned_take_back_of_files_does_not_make_an_older_one_outside_look_interrupted(
    ws: Workspace, project: Path, ledger: Path
):
    (project / "f").write_text("1\n")
    ws.checkpoint("one")
    act = record(ws, ledger, "refund")
    approved(ws, "compensate")
    (project / "f").write_text("2\n")
    ws.rollback()
    ws.checkpoint("new")
    ws.prune(keep=1)
    (project / "f").write_text("3\n")
    assert ws.interrupted() == ""
    assert ws.plan("rollback").taken and ws.find_effect(act.id).shown_state == "undone"


def test_one_take_back_uses_up_every_approval_of_its_plan(ws: Workspace, ledger: Path):
    record(ws, ledger, "refund")
    plan = ws.plan("compensate", save=True)
    ws.approve(plan)
    ws.approve(plan)
    ws.apply(plan)
    assert not ws.history().approvals


def test_what_comes_and_goes_does_not_make_a_plan_stale(ws: Workspace, project: Path):
    (project / "f").write_text("1\n")
    ws.checkpoint("one")
    (project / "f").write_text("2\n")
    plan = ws.plan("rollback", save=True)
    (project / "swap").write_text("for a moment\n")
    ws.plan("undo")
    (project / "swap").unlink()
    assert ws.apply(plan.id).whole and (project / "f").read_text() == "1\n"


def test_rows_folded_as_they_come_give_what_all_of_them_give_at_once(ws: Workspace, project: Path, ledger: Path):
    earlier = ws.history()
    before = (list(earlier.effects), dict(earlier.acts), dict(earlier.takebacks))
    for number in range(3):
        (project / "f").write_text(f"{number}\n")
        record(ws, ledger, f"refund {number}")
        assert_folded_whole(ws)
    behave(ledger, "unknown")
    outcome = approved(ws, "undo")
    assert_folded_whole(ws)
    unknown = next(r for r in outcome.results if r.result == "unknown")
    behave(ledger, "ok")
    ws.resolve(unknown.path.decode(), "not-undone")
    assert_folded_whole(ws)
    approved(ws, "rollback")
    ws.redo()
    ws.prune(keep=1)
    assert_folded_whole(ws)
    assert before == (earlier.effects, earlier.acts, earlier.takebacks), "who holds an older one sees no change"


def test_what_another_ones_effect_stands_on_stays_with_it(ws: Workspace, ledger: Path):
    before = ws.checkpoint("before")
    shop = record(ws, ledger, "shop", target="https://shop/orders/1", by={"actor": "ada"})
    price = record(ws, ledger, "price", target="https://bank/1", by={"actor": "ada"}, depends_on=(shop.id,))
    beside = record(ws, ledger, "beside", target="https://shop/orders/2", by={"actor": "ada"})
    item = record(ws, ledger, "item", target="https://bank/1/entries", by={"actor": "bob"})
    plan = ws.plan("rollback", before.id, actors=["ada"])
    assert {s.path.decode(): s.verdict for s in plan.steps} == {
        shop.id: "drifted",
        price.id: "drifted",
        beside.id: "compensating",
    }
    notes = {s.path.decode(): s.note for s in plan.steps}
    assert item.id[:8] in notes[price.id] and f"takeback rollback {price.id[:8]}" in notes[price.id]
    assert price.id[:8] in notes[shop.id], "and so does what that stands on"
    assert not approved(ws, "rollback", before.id, actors=["ada"]).whole and lines(ledger) == ["beside"]
    assert approved(ws, "rollback", before.id).whole
    assert lines(ledger) == ["beside", "item", "price", "shop"]


def test_by_force_it_goes_and_the_other_stays(ws: Workspace, ledger: Path):
    before = ws.checkpoint("before")
    record(ws, ledger, "shop", target="https://shop/orders/1", by={"actor": "ada"})
    record(ws, ledger, "item", target="https://shop/orders/1/items", by={"actor": "bob"})
    approved(ws, "rollback", before.id, actors=["ada"], force=True)
    assert lines(ledger) == ["shop"]


CHARGES = "http://127.0.0.1:9/charges"
REFUND = {"url": "/refunds", "json": {"charge": "{response.body.id}"}}
KNOWN_REFUND = {"url": "/refunds", "json": {"charge": "ch_0"}}


@pytest.mark.parametrize("inverse", [REFUND, KNOWN_REFUND, None], ids=["by its answer", "known", "none"])
@pytest.mark.parametrize("status", [503, None])
@pytest.mark.parametrize("newer", [{"status": 201, "response_body": {"id": "ch_2"}}, {"status": 503}, {"status": 201}])
def test_requests_beside_each_other_are_so_too_while_the_older_one_is_in_doubt(
    ws: Workspace, inverse: Any, status: int | None, newer: Any
):
    """What it made is not known, so that its address stands for it; the newer one made something else there."""
    older = ws.record_http("POST", CHARGES, status=status, inverse=inverse)
    beside = ws.record_http("POST", CHARGES, **newer, inverse=KNOWN_REFUND)
    assert (ws.show(older.id).carries, ws.show(beside.id).stands_on) == ((), ())
    notes = {s.path.decode(): s.note for s in ws.plan("rollback").steps}
    assert older.resolving in notes[older.id] and "stands on" not in notes[older.id]


def test_what_was_sent_below_an_address_in_doubt_may_stand_on_what_was_made_there(ws: Workspace):
    older = ws.record_http("POST", CHARGES, status=503, inverse=REFUND)
    below = ws.record_http("POST", f"{CHARGES}/ch_1/capture", status=503, inverse={"url": "/releases", "json": {}})
    assert ws.show(older.id).carries == (below.id,) and ws.show(below.id).stands_on == (older.id,)
    notes = {s.path.decode(): s.note for s in ws.plan("rollback").steps}
    assert older.resolving in notes[older.id], "its own doubt comes first: nothing can be tried before that"


def test_requests_to_one_address_stand_on_what_the_inverse_would_take_from_both(ws: Workspace):
    undo = {"method": "DELETE", "url": "/charges"}
    for status in (201, 503):
        older = ws.record_http("PUT", CHARGES, status=status, inverse=undo)
        newer = ws.record_http("PUT", CHARGES, status=status, inverse=undo)
        assert newer.id in ws.show(older.id).carries and older.id in ws.show(newer.id).stands_on


def test_two_requests_to_one_address_stand_beside_each_other(ws: Workspace, ledger: Path):
    before = ws.checkpoint("before")

    def ask(method: str, actor: str, back: str) -> Act:
        inverse = Inverse(
            "send", {"method": method, "url": f"http://127.0.0.1:9/{back}", "origin": "http://127.0.0.1:9"}
        )
        return ws.record(NewAct("http", f"by {actor}", "http://127.0.0.1:9/charges", inverse), by={"actor": actor})

    verdicts = {}
    for method, back in (("POST", "refunds"), ("PUT", "charges")):
        hers, _ = ask(method, "ada", back), ask(method, "bob", back)
        plan = ws.plan("rollback", before.id, actors=["ada"])
        verdicts[method] = next(s.verdict for s in plan.steps if s.path.decode() == hers.id)
        before = ws.checkpoint("between")
    assert verdicts == {"POST": "compensating", "PUT": "drifted"}
