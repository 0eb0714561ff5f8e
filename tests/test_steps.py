"""Steps of a harness: an exception takes back what the step did, newest first, and says what remains."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.config.policy import Policy
from takeback.domains import python
from takeback.harness.steps import Remembered, WorkStep
from takeback.model.effects import Plan
from takeback.workspace import Workspace

ROOT = Path(__file__).parents[1]


class Boom(Exception):
    pass


# -- a shop outside the project ---------------------------------------------------


def ledger(shop: str | Path) -> list[str]:
    path = Path(shop)
    return path.read_text().splitlines() if path.exists() else []


def write_line(shop: str | Path, line: str) -> None:
    with Path(shop).open("a") as f:
        f.write(line + "\n")


def charge(shop: str, amount: int) -> dict[str, Any]:
    id = f"ch_{len(ledger(shop))}"
    write_line(shop, f"charge {id} {amount}")
    return {"id": id, "amount": amount}


def refund(shop: str, charge: str) -> None:
    write_line(shop, f"refund {charge}")


def take_result(result: Any) -> None:
    write_line(result["shop"], f"undone {result['n']}")


def no_arguments() -> None:
    pass


def decline(shop: str) -> None:
    write_line(shop, "declined")
    raise LookupError("no such card")


def half_way(shop: str) -> None:
    write_line(shop, "half")
    raise Boom("connection lost")


def is_refunded(shop: str, charge: str) -> bool:
    return f"refund {charge}" in ledger(shop)


REFUND: dict[str, Any] = {"undo": refund, "undo_args": {"shop": "{args.shop}", "charge": "{result.id}"}}


@takeback.tool(undo=refund, undo_args={"shop": "{args.shop}", "charge": "{result.id}"}, target="shop")
def charging_tool(shop: str, amount: int) -> dict[str, Any]:
    return charge(shop, amount)


@takeback.tool(undo=refund, undo_args={"shop": "{args.shop}", "charge": "{result.id}"})
def paying_tool(shop: str, amount: int) -> dict[str, Any]:
    """Of which none stands on another."""
    return charge(shop, amount)


@takeback.tool(undo=refund, undo_args={"shop": "{args.0}", "charge": "{result.id}"})
async def async_tool(shop: str, amount: int) -> dict[str, Any]:
    await asyncio.sleep(0)
    return charge(shop, amount)


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return str(tmp_path / "shop")


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(python, "_registered", dict(python._registered))
    yield


def allow(ws: Workspace, **decisions: str) -> None:
    found = {"python.compensating": "allow", "command.compensating": "allow"}
    found |= {name.replace("_", "."): value for name, value in decisions.items()}
    ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy(found))


def states(ws: Workspace) -> list[str]:
    return [act.shown_state for act in ws.effects()]


# -- steps and files --------------------------------------------------------------


def test_a_step_that_succeeds_stands_and_is_a_checkpoint(ws: Workspace, project: Path):
    with ws.step("write it") as step:
        (project / "f").write_text("1")
    assert (project / "f").exists() and step.remains == () and step.outcome is None
    assert ws.find_checkpoint("write it").id == step.checkpoint
    ws.rollback("write it")
    assert not (project / "f").exists()


def test_an_exception_takes_the_files_back_and_goes_on(ws: Workspace, project: Path):
    (project / "before").write_text("1")
    with pytest.raises(Boom) as raised, ws.step("write it"):
        (project / "f").write_text("1")
        (project / "before").write_text("2")
        raise Boom
    assert [p.name for p in project.iterdir()] == ["before"]
    assert (project / "before").read_text() == "1"
    assert 'step "write it" was taken back: before, f' in raised.value.__notes__[0]


def test_a_failed_step_names_what_was_taken_back_and_what_was_not(ws: Workspace, project: Path):
    with pytest.raises(Boom) as raised, ws.step("order", actor="claude"):
        (project / "f").write_text("1")
        ws.record_http("POST", "https://shop.example/orders", status=201)
        raise Boom
    told, *rest = raised.value.__notes__
    assert told == 'takeback: step "order" was taken back in part: f'
    assert len(rest) == 1 and "https://shop.example/orders" in rest[0]


def test_a_step_of_which_nothing_was_taken_back_says_so_without_a_count(ws: Workspace):
    with pytest.raises(Boom) as raised, ws.step("order"):
        ws.record_http("POST", "https://shop.example/orders", status=201)
        raise Boom
    assert raised.value.__notes__[0] == 'takeback: step "order" was not taken back'
    with pytest.raises(Boom) as raised, ws.step("idle"):
        raise Boom
    assert raised.value.__notes__ == ['takeback: step "idle" had changed nothing that is known']


def test_an_error_in_words_has_what_to_do_next():
    error = takeback.NotFound("no checkpoint is called 'x'", "list them with takeback log")
    assert str(error) == "no checkpoint is called 'x' → list them with takeback log"
    assert str(takeback.TakebackError("it failed")) == "it failed"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_every_way_out_but_the_end_takes_it_back(ws: Workspace, project: Path, kind: type[BaseException]):
    with pytest.raises(kind), ws.step("write it"):
        (project / "f").write_text("1")
        raise kind
    assert not (project / "f").exists()


def test_what_was_done_before_the_step_stands(ws: Workspace, project: Path, shop: str):
    allow(ws)
    (project / "f").write_text("1")
    with ws.step("first") as step:
        step.do(charge, shop, 1, **REFUND)
    with pytest.raises(Boom), ws.step("second") as step:
        (project / "f").write_text("2")
        step.do(charge, shop, 2, **REFUND)
        raise Boom
    assert (project / "f").read_text() == "1"
    assert ledger(shop) == ["charge ch_0 1", "charge ch_1 2", "refund ch_1"]


def test_nested_steps(ws: Workspace, project: Path, shop: str):
    allow(ws)
    with ws.step("outer") as outer:
        outer.do(charge, shop, 1, **REFUND)
        with pytest.raises(Boom), ws.step("inner") as inner:
            (project / "f").write_text("1")
            inner.do(charge, shop, 2, **REFUND)
            raise Boom
        assert not (project / "f").exists() and ledger(shop)[-1] == "refund ch_1"
        (project / "g").write_text("1")
    assert (project / "g").exists()
    assert states(ws) == ["undone", "live"]
    outer_act = ws.effects()[-1]
    assert outer_act.step == outer.checkpoint and ws.effects()[0].step == f"{outer.checkpoint}/{inner.checkpoint}"


def test_an_outer_step_takes_back_the_inner_ones_that_succeeded(ws: Workspace, project: Path, shop: str):
    allow(ws)
    with pytest.raises(Boom), ws.step("outer") as outer:
        with ws.step("inner") as inner:
            (project / "f").write_text("1")
            inner.do(charge, shop, 1, **REFUND)
        outer.do(charge, shop, 2, **REFUND)
        raise Boom
    assert not (project / "f").exists()
    assert ledger(shop)[2:] == ["refund ch_1", "refund ch_0"]


def test_an_act_belongs_to_the_step_whose_do_it_was(ws: Workspace, shop: str):
    """Of the outer step, though the inner one was open; and from a thread, which knows of no step."""
    allow(ws)
    with ws.step("outer") as outer, pytest.raises(Boom), ws.step("inner") as inner:
        outer.do(charge, shop, 1, **REFUND)
        thread = threading.Thread(target=lambda: inner.do(charge, shop, 2, **REFUND))
        thread.start()
        thread.join()
        raise Boom
    assert ledger(shop) == ["charge ch_0 1", "charge ch_1 2", "refund ch_1"]
    assert [act.step for act in ws.effects()] == [inner.path, outer.path]


def test_another_actors_files_are_kept_and_named(ws: Workspace, project: Path):
    with pytest.raises(Boom), ws.step("write it", actor="planner") as step:
        (project / "theirs").write_text("1")
        ws.track(["theirs"], actor="somebody")
        (project / "ours").write_text("1")
        raise Boom
    assert [p.name for p in project.iterdir()] == ["theirs"]
    assert [(r.what, r.domain) for r in step.remains] == [("theirs", "files")]


def test_a_step_of_an_actor_vouches_for_its_files(ws: Workspace, project: Path):
    with ws.step("write it", actor="planner"):
        (project / "f").write_text("1")
    (project / "by hand").write_text("1")
    ws.rollback("start")
    assert [p.name for p in project.iterdir()] == ["by hand"]


def test_files_changed_before_an_act_are_the_actors_too(ws: Workspace, project: Path, shop: str):
    """Each act looks at the tree, and what it finds must not become work by hand."""
    allow(ws)
    with pytest.raises(Boom), ws.step("order", actor="planner") as step:
        (project / "f").write_text("1")
        step.do(charge, shop, 1, **REFUND)
        (project / "g").write_text("1")
        raise Boom
    assert list(project.iterdir()) == [] and ledger(shop)[-1] == "refund ch_0" and step.remains == ()


def test_a_step_needs_a_name_and_is_entered_once(ws: Workspace):
    with pytest.raises(takeback.UsageError):
        ws.step(" ")
    with ws.step("one") as step, pytest.raises(takeback.UsageError), step:
        pass
    with pytest.raises(takeback.UsageError, match="begun before"), step:
        pass
    assert not ws.open_steps and len(ws.history().checkpoints) == 2


def test_a_take_back_that_fails_does_not_hide_why_the_step_failed(ws: Workspace, project: Path):
    with pytest.raises(Boom) as raised, ws.step("write it") as step:
        (project / "f").write_text("1")
        project.rename(project.with_name("moved"))
        raise Boom
    project.with_name("moved").rename(project)
    assert len(step.remains) == 1 and "cannot be opened" in step.remains[0].why
    assert "what remains" in raised.value.__notes__[-1]


# -- outside, within policy -------------------------------------------------------


def test_without_a_yes_the_outside_stays_and_the_files_go_back(ws: Workspace, project: Path, shop: str):
    with pytest.raises(Boom) as raised, ws.step("charge") as step:
        (project / "f").write_text("1")
        step.do(charge, shop, 5, **REFUND)
        raise Boom
    assert not (project / "f").exists() and ledger(shop) == ["charge ch_0 5"]
    (remaining,) = step.remains
    assert remaining.domain == "python" and remaining.id == ws.effects()[0].id
    assert "needs a person's yes" in remaining.why and f"takeback revert {remaining.id[:8]}" in remaining.why
    assert str(remaining) in raised.value.__notes__[1]
    plan = ws.plan("revert", remaining.id)
    ws.approve(plan)
    assert ws.apply(plan).whole and ledger(shop)[-1] == "refund ch_0"


def test_approve_is_shown_the_plan_and_its_yes_is_for_that_plan(ws: Workspace, project: Path, shop: str):
    seen: list[Plan] = []

    def approve(plan: Plan) -> bool:
        seen.append(plan)
        return len(plan.outside) == 1

    with pytest.raises(Boom), ws.step("charge", approve=approve) as step:
        step.do(charge, shop, 5, **REFUND)
        raise Boom
    assert len(seen) == 1 and ledger(shop)[-1] == "refund ch_0" and step.remains == ()
    assert not ws.history().approvals


@pytest.mark.parametrize("answer", [False, None, Boom("no")])
def test_anything_but_a_yes_is_a_no(ws: Workspace, shop: str, answer: Any):
    def approve(plan: Plan) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(Boom), ws.step("charge", approve=approve) as step:
        step.do(charge, shop, 5, **REFUND)
        raise Boom
    assert ledger(shop) == ["charge ch_0 5"] and "nobody approved" in step.remains[-1].why


def test_an_inner_step_asks_whom_the_outer_one_asks(ws: Workspace, shop: str):
    with ws.step("outer", approve=lambda plan: True), pytest.raises(Boom), ws.step("inner") as inner:
        inner.do(charge, shop, 5, **REFUND)
        raise Boom
    assert ledger(shop)[-1] == "refund ch_0"


def test_what_policy_refuses_remains(ws: Workspace, shop: str):
    allow(ws, python_compensating="refuse")
    with pytest.raises(Boom), ws.step("charge", approve=lambda plan: True) as step:
        step.do(charge, shop, 5, **REFUND)
        raise Boom
    assert ledger(shop) == ["charge ch_0 5"] and "refused by policy" in step.remains[0].why


def test_what_depends_on_a_kept_effect_is_kept_with_it(ws: Workspace, shop: str):
    allow(ws, python_compensating="ask")
    with pytest.raises(Boom), ws.step("build") as step:
        base = ws.record_command("made a database", argv=["touch", f"{shop}-db"])
        ws.record_command("made a bucket", argv=["touch", f"{shop}-bucket"])
        step.do(charge, shop, 5, depends_on=[base.id], **REFUND)
        raise Boom
    assert Path(f"{shop}-bucket").exists() and not Path(f"{shop}-db").exists()
    assert [r.what for r in step.remains] == [f"charge('{shop}', 5)", "made a database"]
    assert "stands on it" in step.remains[1].why


def test_a_credential_that_no_setting_binds_is_not_covered_by_a_yes(ws: Workspace, shop: str):
    with pytest.raises(Boom), ws.step("build", approve=lambda plan: True) as step:
        ws.record_command("made", argv=["touch", f"{shop}-trace"], env=["SOME_TOKEN"])
        step.do(charge, shop, 5, **REFUND)
        raise Boom
    assert ledger(shop)[-1] == "refund ch_0" and not Path(f"{shop}-trace").exists()
    assert [r.what for r in step.remains] == ["made"] and "SOME_TOKEN is not bound" in step.remains[0].why


def test_files_and_outside_go_back_in_true_reverse_order(ws: Workspace, project: Path, shop: str):
    allow(ws)
    with pytest.raises(Boom), ws.step("migrate"):
        (project / "undo.sh").write_text(f"echo undone >>'{shop}'\n")
        ws.record_command("migrated", argv=["sh", "undo.sh"])
        (project / "undo.sh").unlink()
        raise Boom
    assert ledger(shop) == ["undone"] and not (project / "undo.sh").exists()


def test_effects_of_a_program_started_in_the_step_are_its_own(ws: Workspace, project: Path, shop: str):
    """It records by another process, which knows of no step."""
    allow(ws)
    code = (
        f"import takeback; takeback.open({str(project)!r}).record_command('made', argv=['touch', {shop + '-trace'!r}])"
    )
    with pytest.raises(Boom), ws.step("run it"):
        subprocess.run([sys.executable, "-c", code], check=True)
        raise Boom
    assert Path(f"{shop}-trace").exists()


# -- do ---------------------------------------------------------------------------


def test_it_is_announced_before_it_is_done(ws: Workspace, shop: str):
    seen: list[str] = []

    def look() -> dict[str, str]:
        seen.extend(states(ws))
        return {"id": "x"}

    with ws.step("look") as step:
        step.do(look)
    assert seen == ["unknown"] and states(ws) == ["irreversible"]


def test_killed_while_it_was_done_nobody_knows(ws: Workspace, project: Path, shop: str):
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import takeback, test_steps as t
def die(shop):
    t.write_line(shop, "begun")
    os._exit(9)
with takeback.open({str(project)!r}).step("charge") as step:
    step.do(die, {shop!r}, undo=t.refund, undo_args={{"shop": {shop!r}, "charge": "ch_0"}})
"""
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 9
    allow(ws)
    (act,) = ws.effects()
    assert act.shown_state == "unknown" and act.inverse is not None
    ws.take_back("compensate")
    assert ledger(shop) == ["begun"], "never fired by itself"
    ws.resolve(act.id, "happened")
    ws.take_back("compensate")
    assert ledger(shop) == ["begun", "refund ch_0"]


def test_taken_back_while_it_is_under_way_it_is_in_doubt_and_not_undone_twice(ws: Workspace, shop: str):
    """The inverse took effect before the call came to its end: which came last only a probe can tell."""
    allow(ws)

    def slow() -> None:
        write_line(shop, "charge ch_0")
        assert ws.take_back("compensate").whole

    how: dict[str, Any] = {"undo": refund, "undo_args": {"shop": shop, "charge": "ch_0"}, "probe": is_refunded}
    with ws.recording() as recorder:
        recorder.do(slow, **how)
    assert ledger(shop) == ["charge ch_0", "refund ch_0"]
    assert states(ws) == ["unknown"], "not live, as if nothing had been sent"
    assert ws.take_back("compensate").whole
    assert ledger(shop) == ["charge ch_0", "refund ch_0"] and states(ws) == ["undone"]


def test_its_exception_leaves_it_in_doubt(ws: Workspace, shop: str):
    allow(ws)
    with pytest.raises(Boom), ws.step("charge") as step:
        step.do(half_way, shop, undo=refund, undo_args={"shop": shop, "charge": "ch_0"})
    assert states(ws) == ["unknown"] and ledger(shop) == ["half"]
    assert "nobody knows whether it happened" in step.remains[0].why
    assert ws.effects()[0].did["raised"] == "Boom: connection lost"


def test_an_exception_that_means_nothing_was_done(ws: Workspace, shop: str):
    def closed() -> None:
        raise takeback.NotDone("closed")

    with ws.step("charge") as step:
        with pytest.raises(LookupError):
            step.do(decline, shop, undo=refund, undo_args={"shop": shop, "charge": "x"}, not_done=(LookupError,))
        with pytest.raises(takeback.NotDone):
            step.do(closed)
    assert states(ws) == ["failed", "failed"]


def take_anything(**given: Any) -> None:
    pass


def test_undo_args_are_filled_from_result_and_arguments(ws: Workspace):
    class Order:
        id = "o_1"
        lines: list[dict[str, Any]] = [{"n": 1}, {"n": 2}]  # noqa: RUF012

    def order(customer: str, *, count: int = 3) -> Order:
        return Order()

    given = {
        "a": "{result.id}",
        "b": "x-{result.lines.1.n}-{args.customer}",
        "c": ["{result.lines.0}"],
        "d": "{args.0}",
    }
    with ws.step("order") as step:
        step.do(
            order, "ada", undo="test_steps:take_anything", undo_args={**given, "e": "{args.count}", "f": "{other} {}"}
        )
    inverse = ws.effects()[0].inverse
    assert inverse is not None and inverse.args["kwargs"] == {
        "a": "o_1", "b": "x-2-ada", "c": [{"n": 1}], "d": "ada", "e": 3, "f": "{other} {}",
    }  # fmt: skip


def test_undo_args_by_a_callable_or_just_the_result(ws: Workspace, shop: str):
    allow(ws)
    with ws.step("order") as step:
        step.do(charge, shop, 1, undo=refund, undo_args=lambda made: {"shop": shop, "charge": made["id"]})
        step.do(lambda: {"shop": shop, "n": 7}, undo=take_result)
    ws.take_back("compensate")
    assert ledger(shop)[1:] == ["undone 7", "refund ch_0"]


@pytest.mark.parametrize(
    "undo_args",
    [
        {"shop": "x", "charge": "{result.absent}"},
        {"shop": "x", "charge": "{result._private}"},
        lambda made: {"shop": "x", "charge": made["absent"]},
        lambda made: {"shop": "x", "charge": object()},
        lambda made: {"shop": "x", "charge": "sk_live_0123456789abcdef"},
    ],
)
def test_an_undo_that_cannot_be_filled_in_is_told_and_the_act_is_not_forgotten(
    ws: Workspace, shop: str, undo_args: Any
):
    with pytest.raises(takeback.DoneWithoutUndo, match="was done, but") as told, ws.step("charge") as step:
        step.do(charge, shop, 5, undo=refund, undo_args=undo_args)
    assert told.value.result == {"id": "ch_0", "amount": 5}, "what was done is not lost with its undo"
    assert states(ws) == ["irreversible"] and "could not be filled in" in step.remains[0].why
    assert "sk_live" not in str([row.body for row in ws.store.journal.rows()])


@pytest.mark.parametrize(
    "how",
    [
        {"undo": refund},
        {"undo": refund, "undo_args": {"charge": "x"}},
        {"undo": no_arguments, "undo_args": {"charge": "x"}},
        {"undo": "not a name"},
        {"undo": lambda: None, "undo_args": {}},
        {"undo": refund, "undo_args": {"shop": "x", "charge": "{args.absent}"}},
        {"undo": refund, "undo_args": {"shop": "x", "charge": "sk_live_0123456789abcdef"}},
        {"key": "token=abc123456"},
    ],
)
def test_what_could_never_be_taken_back_as_said_is_refused_before_it_is_done(ws: Workspace, shop: str, how: Any):
    with ws.step("charge") as step, pytest.raises(takeback.UsageError):
        step.do(charge, shop, 5, **how)
    assert ledger(shop) == [] and not ws.effects()


def test_arguments_that_do_not_fit_do_nothing(ws: Workspace, shop: str):
    with ws.step("charge") as step, pytest.raises(takeback.UsageError, match="cannot be called so"):
        step.do(charge, shop)
    assert not ws.effects()


def test_an_act_without_an_undo_follows_policy(ws: Workspace, shop: str):
    ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({}, autopilot=True))
    with ws.step("charge") as step, pytest.raises(takeback.ApprovalNeeded, match="autopilot"):
        step.do(charge, shop, 5)
    assert ledger(shop) == []


def test_no_secret_of_a_call_is_stored(ws: Workspace):
    def login(token: str) -> dict[str, str]:
        return {"id": "s_1", "api_key": "plain-looking"}

    with ws.step("log in") as step:
        step.do(login, "ghp_0123456789abcdefghijABCDEFGHIJ0123", key="login")
        with pytest.raises(takeback.TakebackError, match="not kept"):
            step.do(login, "ghp_0123456789abcdefghijABCDEFGHIJ0123", key="login")
    told = str([row.body for row in ws.store.journal.rows()])
    assert "ghp_0123" not in told and "plain-looking" not in told


# -- once ---------------------------------------------------------------------------


def test_a_key_is_done_once_and_its_result_is_returned(ws: Workspace, shop: str):
    with ws.step("charge") as step:
        first = step.do(charge, shop, 5, key="order-1", **REFUND)
    with ws.step("again") as step:
        assert step.do(charge, shop, 5, key="order-1", **REFUND) == first
        assert step.do(charge, shop, 5, key="order-2", **REFUND)["id"] == "ch_1"
    assert ledger(shop) == ["charge ch_0 5", "charge ch_1 5"]


def test_a_key_is_done_once_across_processes(ws: Workspace, project: Path, shop: str):
    """Eight at once."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import takeback, test_steps as t
with takeback.open({str(project)!r}).recording() as recorder:
    try:
        print(recorder.do(t.charge, {shop!r}, 5, key="order-1", **t.REFUND)["id"])
    except takeback.InProgress:
        print("ch_0")
"""
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert {p.communicate()[0].strip() for p in running} == {"ch_0"}
    assert [p.returncode for p in running] == [0] * 8
    assert ledger(shop) == ["charge ch_0 5"]


def test_a_key_that_was_begun_and_never_heard_of_is_not_done_again(ws: Workspace, shop: str):
    with ws.step("charge") as step:
        with pytest.raises(Boom):
            step.do(half_way, shop, key="order-1")
        with pytest.raises(takeback.TakebackError, match="nobody knows whether it was done"):
            step.do(half_way, shop, key="order-1")
    assert ledger(shop) == ["half"]


def test_a_key_whose_act_failed_may_be_tried_again(ws: Workspace, shop: str):
    with ws.step("charge") as step:
        for _ in range(2):
            with pytest.raises(LookupError):
                step.do(decline, shop, key="order-1", not_done=(LookupError,))
    assert ledger(shop) == ["declined", "declined"]


def test_a_key_belongs_to_one_function(ws: Workspace, shop: str):
    with ws.step("charge") as step:
        step.do(charge, shop, 5, key="order-1")
        with pytest.raises(takeback.UsageError, match="belongs to"):
            step.do(decline, shop, key="order-1")


@pytest.mark.parametrize("key", ["", "order-1"])
def test_what_was_taken_back_is_flagged_before_it_repeats(ws: Workspace, shop: str, key: str):
    allow(ws)
    with pytest.raises(Boom), ws.step("charge") as step:
        step.do(charge, shop, 5, key=key, **REFUND)
        raise Boom
    with ws.step("retry") as step:
        with pytest.raises(takeback.RepeatedEffect, match="taken back"):
            step.do(charge, shop, 5, key=key, **REFUND)
        assert ledger(shop)[-1] == "refund ch_0"
        step.do(charge, shop, 6, **REFUND)  # another amount is another effect
        assert step.do(charge, shop, 5, key=key, again=True, **REFUND)["id"] == "ch_3"
        if not key:
            step.do(charge, shop, 5, **REFUND)  # it stands now: a repetition on purpose
    assert states(ws).count("undone") == 1


def test_the_same_target_and_summary_is_the_same_effect(ws: Workspace, shop: str):
    allow(ws)

    def anything(what: object) -> dict[str, str]:
        return charge(shop, 1)

    how: dict[str, Any] = {"undo": refund, "undo_args": {"shop": shop, "charge": "{result.id}"}}
    with pytest.raises(Boom), ws.step("deploy") as step:
        step.do(anything, object(), target="prod", summary="deploy", **how)
        raise Boom
    with ws.step("retry") as step:
        step.do(anything, object(), target="staging", summary="deploy", **how)
        with pytest.raises(takeback.RepeatedEffect):
            step.do(anything, object(), target="prod", summary="deploy", **how)


def test_a_lambda_or_a_method_is_told_from_another_by_what_is_said_of_it_alone(ws: Workspace, shop: str):
    """They act on more than their arguments: two of them are not the same effect."""
    allow(ws)
    how: dict[str, Any] = {"undo": refund, "undo_args": {"shop": shop, "charge": "{result.id}"}}

    class Account:
        def __init__(self, amount: int) -> None:
            self.amount = amount

        def charge(self) -> dict[str, Any]:
            return charge(shop, self.amount)

    with pytest.raises(Boom), ws.step("charge") as step:
        step.do(lambda: charge(shop, 1), **how)
        step.do(Account(2).charge, **how)
        raise Boom
    with ws.step("retry") as step:
        step.do(lambda: charge(shop, 3), **how)
        step.do(Account(4).charge, **how)


# -- tools --------------------------------------------------------------------------


def test_a_tool_is_journaled_in_a_step_and_just_called_elsewhere(ws: Workspace, shop: str):
    allow(ws)
    assert charging_tool(shop, 1)["id"] == "ch_0" and not ws.effects()
    with pytest.raises(Boom), ws.step("charge"):
        assert charging_tool(shop, amount=2) == {"id": "ch_1", "amount": 2}
        raise Boom
    assert ledger(shop)[-1] == "refund ch_1"
    assert charging_tool.__name__ == "charging_tool" and charging_tool(shop, 3)["amount"] == 3
    assert len(ws.effects()) == 1 and ws.effects()[0].target == "shop"


def test_a_tool_is_journaled_while_a_workspace_records(ws: Workspace, shop: str):
    with ws.recording(actor="claude"):
        charging_tool(shop, 1)
    (act,) = ws.effects()
    assert act.by == {"surface": "python", "actor": "claude"} and act.step == "" and act.shown_state == "live"


def test_a_tool_given_to_do_is_journaled_once(ws: Workspace, shop: str):
    with ws.step("charge") as step:
        step.do(charging_tool, shop, 1, key="k")
        step.do(charging_tool, shop, 1, key="k")
    (act,) = ws.effects()
    assert act.key == "k" and act.inverse is not None and act.target == "shop"


def test_a_tool_whose_key_is_made_of_its_arguments(ws: Workspace, shop: str):
    keyed = takeback.tool(key=lambda shop, amount: f"charge-{amount}")(charge)
    with ws.step("charge"):
        assert keyed(shop, 1) == keyed(shop, 1) != keyed(shop, 2)
    assert len(ledger(shop)) == 2


# -- at the same time -----------------------------------------------------------------


def test_steps_side_by_side_take_back_their_own_effects_and_no_shared_files(ws: Workspace, project: Path, shop: str):
    allow(ws)
    inside, go = threading.Barrier(2), threading.Event()

    def good() -> None:
        with ws.step("good") as step:
            inside.wait(30)
            step.do(charge, shop, 1, **REFUND)
            (project / "good").write_text("1")
            go.set()
            inside.wait(30)

    thread = threading.Thread(target=good)
    with pytest.raises(Boom) as raised, ws.step("bad") as step:
        thread.start()
        inside.wait(30)
        go.wait(30)
        step.do(charge, shop, 2, **REFUND)
        (project / "bad").write_text("2")
        raise Boom
    inside.wait(30)
    thread.join(30)
    assert (project / "good").exists()
    assert ledger(shop)[2:] == ["refund ch_1"]
    assert [(r.what, r.domain) for r in step.remains] == [("bad", "files"), ("good", "files")]
    why = "another step was at work in the same files at the same time"
    assert raised.value.__notes__[1:] == [f"takeback: what remains: {name}: {why}" for name in ("bad", "good")]


class OtherProcess:
    """A process that has a step in the same project when told so: it writes what it is told to, and then leaves it."""

    CODE = """
import sys, pathlib, takeback
root, actor = pathlib.Path(sys.argv[1]), sys.argv[2]
ws = takeback.open(root)
print("up", flush=True)
sys.stdin.readline()
with ws, ws.step("other", actor=actor):
    print("in", flush=True)
    for name in sys.stdin:
        (root / name.strip()).write_text("1")
        print("done", flush=True)
"""

    def __init__(self, project: Path, actor: str = "") -> None:
        command = [sys.executable, "-c", self.CODE, str(project), actor]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._hear("up")

    def enter(self) -> OtherProcess:
        self._tell("enter", "in")
        return self

    def _tell(self, word: str, answer: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        self._hear(answer)

    def _hear(self, word: str) -> None:
        assert self.process.stdout is not None and self.process.stdout.readline().strip() == word

    def write(self, name: str) -> None:
        self._tell(name, "done")

    def leave(self) -> None:
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0

    def die(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


def whose(ws: Workspace) -> dict[str, set[str]]:
    return {path.decode(): set(e.actors) for e in ws.history().effects if not e.takeback for path in e.changes}


def test_a_step_keeps_and_names_what_a_step_of_another_process_had_a_part_in(ws: Workspace, project: Path):
    other = OtherProcess(project, "B")
    with pytest.raises(Boom), ws.step("write it", actor="A") as step:
        (project / "before").write_text("1")
        other.enter()
        (project / "mine").write_text("1")
        other.write("theirs")
        raise Boom
    other.write("after")
    other.leave()
    both = {"A", "B"}
    assert whose(ws) == {"before": {"A"}, "mine": both, "theirs": both, "after": {"B"}}
    assert sorted(p.name for p in project.iterdir()) == ["after", "mine", "theirs"]
    assert [r.what for r in step.remains] == ["mine", "theirs"]
    assert step.remains[0].why.startswith("shared: B was at work at the same time: takeback revert ")
    ws.undo(actors=["B"])  # the last of them
    ws.undo(actors=["B"])
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("actor", ["", "A"])
@pytest.mark.parametrize("stays", [True, False])
def test_steps_of_two_processes_that_nobody_can_tell_apart_keep_their_files(
    ws: Workspace, project: Path, actor: str, stays: bool
):
    other = OtherProcess(project, actor)
    with pytest.raises(Boom), ws.step("write it", actor=actor) as step:
        other.enter()
        (project / "mine").write_text("1")
        other.write("theirs")
        if not stays:
            other.leave()
        raise Boom
    if stays:
        other.leave()
    assert sorted(p.name for p in project.iterdir()) == ["mine", "theirs"]
    assert [r.what for r in step.remains] == ["mine", "theirs"]


def test_what_a_step_did_whose_process_died_is_uncertain(ws: Workspace, project: Path):
    other = OtherProcess(project, "B").enter()
    other.write("theirs")
    other.die()
    with pytest.raises(Boom), ws.step("write it", actor="A") as step:
        (project / "mine").write_text("1")
        raise Boom
    assert [p.name for p in project.iterdir()] == ["theirs"] and step.remains == ()
    (row,) = [e for e in ws.history().effects if b"theirs" in e.changes]
    assert row.actors == {"B"} and row.uncertain


def test_threads_with_steps_of_their_own_actors_are_told_apart_as_far_as_anybody_can(ws: Workspace, project: Path):
    inside, out = threading.Event(), threading.Event()

    def bob() -> None:
        with ws.step("bob", actor="B"):
            (project / "both").write_text("1")
            inside.set()
            out.wait(30)
        (project / "late").write_text("1")

    thread = threading.Thread(target=bob)
    with pytest.raises(Boom), ws.step("write it", actor="A") as step:
        (project / "mine").write_text("1")
        thread.start()
        assert inside.wait(30)
        raise Boom
    out.set()
    thread.join(30)
    assert sorted(p.name for p in project.iterdir()) == ["both", "late"]
    assert whose(ws) == {"mine": {"A"}, "both": {"A", "B"}}
    assert [r.what for r in step.remains] == ["both"]


def test_a_step_of_a_program_that_a_step_started_is_a_part_of_it(ws: Workspace, project: Path):
    with pytest.raises(Boom), ws.step("write it") as step:
        other = OtherProcess(project).enter()
        other.write("theirs")
        other.leave()
        (project / "mine").write_text("1")
        raise Boom
    assert list(project.iterdir()) == [] and step.remains == ()


def test_a_conversation_in_a_step_of_an_actor_is_its_own(ws: Workspace, project: Path):
    talk = takeback.Conversation(ws, thread="bob")
    with ws.step("write it", actor="A"):
        (project / "mine").write_text("1")
        with talk.turn("bob says"):
            (project / "bobs").write_text("1")
        (project / "more").write_text("1")
    assert whose(ws) | {"//bob": set()} == {"mine": {"A"}, "bobs": {"conversation"}, "more": {"A"}, "//bob": set()}
    talk.undo()
    assert sorted(p.name for p in project.iterdir()) == ["mine", "more"]


def test_a_step_of_an_actor_in_a_turn_is_the_actors(ws: Workspace, project: Path):
    with takeback.Conversation(ws, thread="bob").turn("bob says"):
        with ws.step("write it", actor="A"):
            (project / "mine").write_text("1")
            ws.look()
        (project / "bobs").write_text("1")
    assert whose(ws) | {"//bob": set()} == {"mine": {"A"}, "bobs": {"conversation"}, "//bob": set()}


def beside(ws: Workspace, work: Callable[[], None], **options: Any) -> WorkStep:
    """A step that fails after something was done in a thread that began before it."""
    go, done = threading.Event(), threading.Event()

    def other() -> None:
        go.wait(30)
        try:
            work()
        finally:
            done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(Boom), ws.step("bad", **options) as step:
        go.set()
        assert done.wait(30)
        raise Boom
    thread.join(30)
    return step


def test_what_executors_of_steps_side_by_side_did_is_each_steps_own(ws: Workspace, shop: str):
    """Also in a pool that both use, whose thread was started for one of them."""
    allow(ws)
    both = threading.Barrier(2, timeout=30)
    found: list[WorkStep] = []

    def work(name: str, amount: int, fails: bool) -> None:
        with contextlib.suppress(Boom), ws.step(name) as step:
            found.append(step)
            both.wait()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(paying_tool, shop, amount).result()
            shared.submit(paying_tool, shop, amount + 10).result()
            both.wait()
            if fails:
                raise Boom
            both.wait()
        if fails:
            both.wait()

    with ThreadPoolExecutor(1) as shared:
        threads = [threading.Thread(target=work, args=args) for args in (("alice", 1, True), ("bob", 2, False))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    steps = {step.name: step for step in found}
    of = {name: [act for act in ws.effects() if act.step == step.path] for name, step in steps.items()}
    assert [bool(act.undone_by) for act in of["alice"]] == [True, True]
    assert [bool(act.undone_by) for act in of["bob"]] == [False, False]
    assert len([line for line in ledger(shop) if line.startswith("refund")]) == 2
    assert steps["alice"].remains == (), "no file changed"


@pytest.mark.parametrize("actor", ["", "bob"])
def test_a_thread_of_another_step_is_not_taken_back(ws: Workspace, shop: str, actor: str):
    allow(ws)

    def work() -> None:
        with ws.step("bob", actor=actor):
            thread = threading.Thread(target=charging_tool, args=(shop, 1))
            thread.start()
            thread.join(30)

    step = beside(ws, work)
    assert states(ws) == ["live"] and ws.effects()[0].step not in ("", step.path)


@pytest.mark.parametrize("recorded", [True, False])
def test_what_a_foreign_thread_does_is_not_the_only_open_steps(ws: Workspace, shop: str, recorded: bool):
    """A timer of a person's, or another request of a server: nobody handed that to the step."""
    allow(ws)

    def work() -> None:
        if recorded:
            ws.record_command("made", argv=["touch", f"{shop}-trace"])
        else:
            charging_tool(shop, 1)

    step = beside(ws, work)
    (act,) = ws.effects()
    assert states(ws) == ["live"] and act.is_of_unknown and not act.step and not Path(f"{shop}-trace").exists()
    assert [r.why for r in step.remains] == [f"nobody knows which step made it: takeback revert {act.id[:8]}"]
    ws.apply(ws.plan("revert", act.id))
    assert states(ws) == ["undone"]


def test_a_request_that_comes_while_a_step_is_open_is_not_the_steps(ws: Workspace, shop: str):
    """Its thread is started by the server's, and the server was started before the step, or in it and apart."""
    allow(ws)

    class Charges(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paying_tool(shop, 7)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Charges) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        try:
            with pytest.raises(Boom), ws.step("bad") as step:
                paying_tool(shop, 1)
                urllib.request.urlopen(url, b"").close()
                raise Boom
        finally:
            server.shutdown()
            serving.join(30)
    assert {act.summary[-3:]: act.shown_state for act in ws.effects()} == {" 1)": "undone", " 7)": "live"}
    assert [r.what[-3:] for r in step.remains] == [" 7)"]


def test_the_whole_world_of_a_checkpoint_has_no_act_whose_owner_is_not_known(ws: Workspace, shop: str):
    """Whose it is makes no difference to a rollback of everything; an undo asks."""
    allow(ws)
    since = ws.checkpoint("before").id
    beside(ws, lambda: charging_tool(shop, 1))
    assert states(ws) == ["live"]
    ws.apply(ws.plan("rollback", since))
    assert states(ws) == ["undone"]


def test_what_another_actor_records_meanwhile_is_not_taken_back(ws: Workspace, shop: str):
    allow(ws)

    def work() -> None:
        with ws.recording(actor="bob"):
            charging_tool(shop, 1)

    step = beside(ws, work)
    assert states(ws) == ["live"]
    assert [r.why for r in step.remains] == ["it is the work of bob, not of this step"]


def test_the_ledger_says_of_what_was_undone_that_it_is(ws: Workspace, shop: str):
    allow(ws)
    with pytest.raises(Boom), ws.step("bad"):
        paying_tool(shop, 1)
        raise Boom
    with ws.step("good"):
        paying_tool(shop, 2)
    assert [(act.state, act.shown_state) for act in ws.effects()] == [("done", "live"), ("undone", "undone")]


def test_what_is_recorded_inside_the_step_by_another_recorder_is_the_steps(ws: Workspace, shop: str):
    allow(ws)
    with pytest.raises(Boom), ws.step("bad") as step, ws.recording():
        charging_tool(shop, 1)
        raise Boom
    assert states(ws) == ["undone"] and not step.remains


def test_what_an_unrelated_program_records_meanwhile_is_not_taken_back(ws: Workspace, project: Path, shop: str):
    """No process above it is the step's: whoever started it is gone."""
    allow(ws)
    code = f"""if True:
        import os, time, takeback
        if os.fork():
            os._exit(0)
        while os.getppid() == {os.getpid()}:
            time.sleep(0.01)
        takeback.open({str(project)!r}).record_command('made', argv=['touch', {shop + "-trace"!r}])
    """
    with pytest.raises(Boom), ws.step("bad") as step:
        subprocess.run([sys.executable, "-c", code], check=True)
        for _ in range(600):
            if ws.effects():
                break
            time.sleep(0.05)
        raise Boom
    assert not Path(f"{shop}-trace").exists() and states(ws) == ["live"]
    (left,) = step.remains
    assert left.why == f"another program recorded it: takeback revert {left.id[:8]}"


def test_a_conversation_beside_a_step_keeps_its_work_and_the_step_goes_back(ws: Workspace, project: Path, shop: str):
    allow(ws)
    talk = takeback.Conversation(ws, thread="bob")

    def work() -> None:
        with talk.turn("bob says"):
            (project / "bobs").write_text("b")
            charging_tool(shop, 1)

    go, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (go.wait(30), work(), done.set()))
    thread.start()
    with pytest.raises(Boom), ws.step("bad") as step:
        go.set()
        assert done.wait(30)
        (project / "own").write_text("a")
        raise Boom
    thread.join(30)
    assert (project / "bobs").exists() and not (project / "own").exists()
    assert states(ws) == ["live"]
    assert {r.what for r in step.remains} == {"bobs", ws.effects()[0].summary}


def test_a_conversation_inside_a_step_goes_back_with_it(ws: Workspace, project: Path, shop: str):
    allow(ws)
    talk = takeback.Conversation(ws, thread="bob")
    with pytest.raises(Boom), ws.step("bad") as step:
        with talk.turn("bob says"):
            (project / "bobs").write_text("b")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(charging_tool, shop, 1).result()
        raise Boom
    assert not (project / "bobs").exists() and states(ws) == ["undone"] and not step.remains


# -- async --------------------------------------------------------------------------


def test_async_steps_do_what_steps_do(ws: Workspace, project: Path, shop: str):
    async def approve(plan: Plan) -> bool:
        await asyncio.sleep(0)
        return bool(plan.outside)

    async def use() -> None:
        async with ws.astep("first") as step:
            made = await step.ado(async_tool, shop, 1, key="k")
            assert await step.ado(async_tool, shop, 1, key="k") == made
            assert (await step.ado(charge, shop, 2, **REFUND))["id"] == "ch_1"
        with pytest.raises(Boom):
            async with ws.astep("second", approve=approve) as step:
                (project / "f").write_text("1")
                await async_tool(shop, 3)
                async with ws.astep("inner") as inner:
                    assert inner.path == f"{step.checkpoint}/{inner.checkpoint}"
                    charging_tool(shop, 4)
                raise Boom
        assert step.remains == ()

    asyncio.run(use())
    assert ledger(shop)[4:] == ["refund ch_3", "refund ch_2"] and not (project / "f").exists()


def test_an_async_step_without_a_yes(ws: Workspace, shop: str):
    async def use() -> None:
        async with ws.astep("charge") as step:
            await async_tool(shop, 3)
            raise Boom(step)

    with pytest.raises(Boom) as raised:
        asyncio.run(use())
    assert len(raised.value.args[0].remains) == 1


def test_async_things_in_a_sync_step_are_told(ws: Workspace, shop: str):
    with ws.step("charge") as step, pytest.raises(takeback.NotDone, match="async"):
        step.do(async_tool, shop, 1)
    assert ledger(shop) == [] and states(ws) == ["failed"]


def test_a_cancelled_step_leaves_nothing_half_journaled(ws: Workspace, project: Path, shop: str):
    """Cancelled at every moment of a call: what is charged is refunded or in doubt, and never forgotten."""
    allow(ws)

    async def slow(n: int) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return charge(shop, n)

    async def one(n: int) -> None:
        async with ws.astep(f"step {n}") as step:
            how: dict[str, Any] = {"undo": refund, "undo_args": {"shop": shop, "charge": "{result.id}"}}
            await step.ado(slow, n, **how)
            await asyncio.sleep(5)

    async def use() -> None:
        for n in range(12):
            task = asyncio.create_task(one(n))
            await asyncio.sleep(n * 0.012)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(use())
    charged = [line.split()[1] for line in ledger(shop) if line.startswith("charge")]
    refunded = [line.split()[1] for line in ledger(shop) if line.startswith("refund")]
    assert sorted(refunded) == sorted(charged) and not set(states(ws)) & {"live"}
    assert not ws.open_steps


def test_what_is_too_long_to_be_kept_is_told(ws: Workspace, shop: str):
    with ws.step("long") as step:
        assert len(step.do(lambda: "x" * 200_000, key="long")) == 200_000
        with pytest.raises(takeback.TakebackError, match="too long"):
            step.do(lambda: "x" * 200_000, key="long")
        with pytest.raises(takeback.UsageError, match="too long"):
            step.do(lambda: "x" * 200_000, undo=take_result)
    assert states(ws) == ["irreversible", "irreversible"]


def test_async_steps_side_by_side(ws: Workspace, shop: str):
    allow(ws)

    async def one(n: int) -> None:
        async with ws.astep(f"step {n}") as step:
            await step.ado(charge, shop, n, **REFUND)
            if n == 1:
                raise Boom

    async def use() -> list[Any]:
        return await asyncio.gather(*(one(n) for n in range(3)), return_exceptions=True)

    assert sum(isinstance(found, Boom) for found in asyncio.run(use())) == 1
    assert sorted(states(ws)) == ["live", "live", "undone"]


# -- memory and transactions ----------------------------------------------------------


def test_memory_is_put_back_on_failure_and_left_on_success(ws: Workspace):
    memory: dict[str, Any] = {"plan": ["a"], "n": 1}
    with ws.step("think") as step:
        step.remember(memory)
        memory["n"] = 2
    with pytest.raises(Boom), ws.step("think again") as step:
        step.remember(memory, target="notes")
        memory["plan"].append("b")
        memory["new"] = True
        del memory["n"]
        raise Boom
    assert memory == {"plan": ["a"], "n": 2}
    assert step.remembered == (
        Remembered("notes.plan", ["a"], ["a", "b"]), Remembered("notes.n", 2, None), Remembered("notes.new", None, True),
    )  # fmt: skip


def test_memory_that_cannot_be_copied_is_refused(ws: Workspace):
    with ws.step("think") as step, pytest.raises(takeback.UsageError):
        step.remember({"lock": threading.Lock()})


def rows(path: Path) -> list[Any]:
    with sqlite3.connect(path) as other:
        try:
            return [n for (n,) in other.execute("SELECT n FROM t ORDER BY n")]
        except sqlite3.OperationalError:
            return ["no table"]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "db", timeout=1)
    yield connection
    connection.close()


@pytest.mark.parametrize("isolation", ["DEFERRED", None])
def test_a_transaction_is_committed_with_the_step(
    ws: Workspace, db: sqlite3.Connection, tmp_path: Path, isolation: Any
):
    db.isolation_level = isolation
    with ws.step("fill") as step:
        assert step.transaction(db) is db
        db.execute("CREATE TABLE t (n INTEGER)")
        db.execute("INSERT INTO t VALUES (1)")
        assert rows(tmp_path / "db") == ["no table"]
    assert rows(tmp_path / "db") == [1]
    with pytest.raises(Boom), ws.step("more") as step:
        step.transaction(db)
        db.execute("INSERT INTO t VALUES (2)")
        db.execute("DROP TABLE t")
        raise Boom
    assert rows(tmp_path / "db") == [1] and step.remains == ()


def test_a_connection_named_twice_is_one_transaction(ws: Workspace, db: sqlite3.Connection, tmp_path: Path):
    with ws.step("fill") as step:
        step.transaction(db).execute("CREATE TABLE t (n INTEGER)")
        step.transaction(db).execute("INSERT INTO t VALUES (1)")
    assert rows(tmp_path / "db") == [1]


def test_an_inner_step_on_the_same_connection_is_a_savepoint(ws: Workspace, db: sqlite3.Connection, tmp_path: Path):
    with ws.step("outer") as outer:
        outer.transaction(db).execute("CREATE TABLE t (n INTEGER)")
        with ws.step("good") as inner:
            inner.transaction(db).execute("INSERT INTO t VALUES (1)")
        with pytest.raises(Boom), ws.step("bad") as inner:
            inner.transaction(db).execute("INSERT INTO t VALUES (2)")
            raise Boom
        assert rows(tmp_path / "db") == ["no table"]
    assert rows(tmp_path / "db") == [1]


def test_a_connection_that_could_not_be_rolled_back_exactly_is_refused(ws: Workspace, db: sqlite3.Connection):
    db.execute("CREATE TABLE t (n INTEGER)")
    db.execute("INSERT INTO t VALUES (1)")
    with ws.step("fill") as step:
        with pytest.raises(takeback.UsageError, match="already"):
            step.transaction(db)
        with pytest.raises(takeback.UsageError, match="no commit"):
            step.transaction(object())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has autocommit since Python 3.12")
def test_autocommit_is_refused(ws: Workspace, tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "db", autocommit=True)  # type: ignore[call-arg]
    with ws.step("fill") as step, pytest.raises(takeback.UsageError, match="commits by itself"):
        step.transaction(connection)
    connection.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has autocommit since Python 3.12")
def test_a_connection_that_is_always_in_a_transaction(ws: Workspace, tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "db", autocommit=False)  # type: ignore[call-arg]
    with ws.step("create") as step:
        step.transaction(connection).execute("CREATE TABLE t (n INTEGER)")
    with pytest.raises(Boom), ws.step("fill") as step:
        step.transaction(connection).execute("INSERT INTO t VALUES (1)")
        raise Boom
    assert rows(tmp_path / "db") == [] and step.remains == ()
    connection.close()


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("how", ["script", "commit", "with"])
def test_a_commit_by_other_code_is_told(ws: Workspace, db: sqlite3.Connection, tmp_path: Path, how: str, follows: bool):
    db.execute("CREATE TABLE t (n INTEGER)")
    with pytest.raises(Boom), ws.step("fill") as step:
        step.transaction(db)
        if how == "script":
            db.executescript("INSERT INTO t VALUES (1)")  # commits first
        elif how == "commit":
            db.execute("INSERT INTO t VALUES (1)")
            db.commit()
        else:
            with db:
                db.execute("INSERT INTO t VALUES (1)")
        if follows:
            db.execute("INSERT INTO t VALUES (2)")
        raise Boom
    assert rows(tmp_path / "db") == [1] and states(ws) == ["irreversible"]
    (remains,) = step.remains
    assert remains.what == "commit of a transaction (sqlite3) in step 'fill'" and remains.id


def test_a_commit_by_other_code_is_taken_back_by_the_undo(ws: Workspace, db: sqlite3.Connection, tmp_path: Path):
    allow(ws)
    with pytest.raises(Boom), ws.step("fill") as step:
        step.transaction(db, undo=drop, undo_args={"path": str(tmp_path / "db")})
        db.execute("CREATE TABLE t (n INTEGER)")
        db.commit()
        raise Boom
    assert rows(tmp_path / "db") == ["no table"] and states(ws) == ["undone"] and step.remains == ()


def test_a_rollback_by_other_code_is_no_commit(ws: Workspace, db: sqlite3.Connection, tmp_path: Path):
    with pytest.raises(Boom), ws.step("fill") as step:
        step.transaction(db).execute("CREATE TABLE t (n INTEGER)")
        db.rollback()
        raise Boom
    assert rows(tmp_path / "db") == ["no table"] and states(ws) == [] and step.remains == ()


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_a_commit_by_other_code_through_sqlalchemy(ws: Workspace, tmp_path: Path, kind: str):
    alchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = alchemy.create_engine(f"sqlite:///{tmp_path / 'db'}")
    with engine.connect() if kind == "connection" else orm.Session(engine) as connection:
        with ws.step("create") as step:
            step.transaction(connection).execute(alchemy.text("CREATE TABLE t (n INTEGER)"))
        with pytest.raises(Boom), ws.step("nested") as step:
            step.transaction(connection).execute(alchemy.text("INSERT INTO t VALUES (1)"))
            with connection.begin_nested():
                connection.execute(alchemy.text("INSERT INTO t VALUES (1)"))
            raise Boom
        assert step.remains == ()
        with pytest.raises(Boom), ws.step("fill") as step:
            step.transaction(connection).execute(alchemy.text("INSERT INTO t VALUES (2)"))
            connection.commit()
            connection.execute(alchemy.text("INSERT INTO t VALUES (3)"))
            raise Boom
        assert [r.what for r in step.remains] == ["commit of a transaction (sqlalchemy) in step 'fill'"]
        connection.execute(alchemy.text("INSERT INTO t VALUES (4)"))
        connection.commit()  # which no step hears of
    engine.dispose()
    assert rows(tmp_path / "db") == [2, 4] and states(ws) == ["irreversible", "irreversible"]


def test_a_commit_that_fails_takes_the_step_back(ws: Workspace, project: Path, db: sqlite3.Connection, tmp_path: Path):
    with db:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        db.execute("CREATE TABLE u (n INTEGER REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(sqlite3.IntegrityError), ws.step("fill") as step:
        (project / "f").write_text("1")
        step.transaction(db)
        db.execute("INSERT INTO t VALUES (1)")
        db.execute("INSERT INTO u VALUES (7)")
    assert rows(tmp_path / "db") == [] and not (project / "f").exists() and step.remains == ()


def drop(path: str) -> None:
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE t")


def test_after_the_commit_a_recorded_undo_takes_it_back(ws: Workspace, db: sqlite3.Connection, tmp_path: Path):
    allow(ws)
    with pytest.raises(Boom), ws.step("outer"):
        with ws.step("migrate") as step:
            step.transaction(db, undo=drop, undo_args={"path": str(tmp_path / "db")})
            db.execute("CREATE TABLE t (n INTEGER)")
        assert rows(tmp_path / "db") == []
        raise Boom
    assert rows(tmp_path / "db") == ["no table"] and states(ws) == ["undone"]
    with ws.step("migrate anew") as step:
        step.transaction(db, undo=drop, undo_args={"path": str(tmp_path / "db")})
        db.execute("CREATE TABLE t (n INTEGER)")
    assert rows(tmp_path / "db") == [] and states(ws) == ["live", "undone"]


def test_sqlalchemy_connections_and_sessions(ws: Workspace, tmp_path: Path):
    alchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = alchemy.create_engine(f"sqlite:///{tmp_path / 'db'}")
    with engine.connect() as connection:
        with ws.step("fill") as step:
            step.transaction(connection).execute(alchemy.text("CREATE TABLE t (n INTEGER)"))
            connection.execute(alchemy.text("INSERT INTO t VALUES (1)"))
        with pytest.raises(Boom), ws.step("more") as step:
            step.transaction(connection).execute(alchemy.text("INSERT INTO t VALUES (2)"))
            raise Boom
        connection.execute(alchemy.text("INSERT INTO t VALUES (3)"))
        with ws.step("dirty") as step, pytest.raises(takeback.UsageError, match="already"):
            step.transaction(connection)
        connection.rollback()
    with orm.Session(engine) as session, ws.step("session") as step:
        step.transaction(session).execute(alchemy.text("INSERT INTO t VALUES (4)"))
    refused = pytest.raises(takeback.UsageError, match="commits by itself")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as auto, ws.step("auto") as step, refused:
        step.transaction(auto)
    engine.dispose()
    assert rows(tmp_path / "db") == [1, 4]


# -- the example ----------------------------------------------------------------------


def test_the_example_replans(tmp_path: Path):
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples/replan.py"), str(tmp_path / "demo")], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told == {
        "files": ["invoice.txt", "order.txt"],
        "payments": ["charge ch_0 20 EUR", "charge ch_1 99 EUR", "refund ch_1", "charge ch_2 9 EUR"],
        "memory": {"shipping": "standard"},
        "standing": ["charge(9)", "charge(20)"],
    }
