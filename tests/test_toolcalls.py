"""The tool calls of a harness without hooks: bracketed, gated, and taken back by an inverse from their result."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import takeback
from crash.points import Points
from servers import payments
from takeback.agents import hook_problems
from takeback.config.policy import Policy
from takeback.errors import UsageError
from takeback.harness.tool_calls import Decision, ToolCalls
from takeback.model.effects import COMPENSATING, IRREVERSIBLE
from takeback.workspace import Workspace

FREE = Policy({"http.compensating": "allow", "command.compensating": "allow", "python.compensating": "allow"})


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[payments.Payments]:
    with payments.serving(key="sk_test") as server:
        yield server


@pytest.fixture
def ws(project: Path, shop: payments.Payments) -> Iterator[Workspace]:
    with takeback.open(project, create=True) as opened:
        bound = {"PAY_KEY": (shop.url,)}
        opened.settings = opened.observer.settings = opened.settings._replace(policy=FREE, credentials=bound)
        opened.environ = {**opened.environ, "PAY_KEY": "sk_test"}
        yield opened


def refunds(shop: payments.Payments) -> dict[str, Any]:
    headers = {"Authorization": "Bearer ${env:PAY_KEY}"}
    return {"http": {"url": f"{shop.url}/v1/refunds", "json": {"charge": "{result.id}"}, "headers": headers}}


def charge(shop: payments.Payments, amount: int) -> dict[str, Any]:
    import urllib.request

    request = urllib.request.Request(
        f"{shop.url}/v1/charges",
        json.dumps({"amount": amount}).encode(),
        {"Authorization": "Bearer sk_test", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def calls(ws: Workspace, **more: Any) -> ToolCalls:
    return ToolCalls(ws, agent="harness", session="s1", **more)


# -- files ------------------------------------------------------------------------


def test_what_a_call_changes_is_its_own_and_one_undo_takes_the_turn_back(ws: Workspace, project: Path):
    made = calls(ws)
    (project / "mine.txt").write_text("by hand")
    made.begin_turn("write two files\nplease")
    for name in ("a.txt", "b.txt"):
        assert made.begin(f"call-{name}", "write_file", {"path": name, "content": "x"}) == Decision("allow")
        (project / name).write_text("x")
        assert len(made.commit(f"call-{name}", "ok")) == 1
    made.end_turn()
    (turn,) = [t for t in ws.history().agent_turns.values()]
    assert turn.prompt == "write two files"
    seen = ws.log()
    assert any(row.summary.startswith("Write a.txt") for row in seen)
    ws.undo()
    assert not (project / "a.txt").exists() and not (project / "b.txt").exists()
    assert (project / "mine.txt").read_text() == "by hand"
    ws.redo()
    assert (project / "a.txt").exists()


def test_each_call_keeps_where_the_conversation_stood(ws: Workspace, project: Path):
    made = calls(ws, thread="main")
    made.begin_turn("one")
    made.begin("1", "note_it", {}, cursor="4")
    made.commit("1", "")
    made.begin("2", "note_it", {}, cursor="6", lane="helper")
    made.commit("2", "")
    made.cursor = "8"
    made.begin("3", "note_it", {})
    made.commit("3", "")
    found = [(b.call.thread, b.call.cursor, b.caller.lane) for b in ws.history().brackets.values()]
    assert found == [("main", "", ""), ("main", "4", ""), ("main", "6", "helper"), ("main", "8", "")]
    assert made.turn is not None and made.cursor_at(made.turn.turn) == "4"


def test_what_is_saved_to_the_thread_in_a_turn_is_taken_back_with_it(ws: Workspace, project: Path):
    made = calls(ws, thread="main")
    for n in (1, 2):
        made.begin_turn(f"turn {n}")
        ws.threads.save("main", {"messages": list(range(n))})
        made.begin(f"call-{n}", "write_file", {"path": str(n)})
        (project / str(n)).write_text("x")
        made.commit(f"call-{n}", "ok")
    assert made.undo().message == "took back the turn 'turn 2': 2, the conversation"
    assert ws.threads.load(ws.threads.get("main")) == {"messages": [0]}
    assert [p.name for p in project.iterdir()] == ["1"]
    assert made.undo().outcome is not None and ws.threads.find("main") is None
    assert made.undo().message == "nothing to take back"
    assert made.redo().outcome is not None and made.redo().outcome is not None
    assert ws.threads.load(ws.threads.get("main")) == {"messages": [0, 1]} and (project / "2").exists()
    assert made.redo().message == "nothing to bring back"
    made.undo()
    made.begin_turn("turn 3")
    assert "a new turn has begun" in made.redo().message
    assert not [b for b in ws.history().brackets.values() if b.cut]


def charged(ws: Workspace, shop: payments.Payments, *amounts: int, thread: str = "") -> ToolCalls:
    """Turns that each write a file and charge."""
    made = calls(ws, undo={"charge": refunds(shop)}, thread=thread)
    for amount in amounts:
        made.begin_turn(f"charge {amount}")
        made.begin(f"w{amount}", "write_file", {"path": f"{amount}.txt"})
        (ws.root / f"{amount}.txt").write_text("x")
        made.commit(f"w{amount}", "ok")
        made.begin(f"c{amount}", "charge", {"amount": amount})
        made.commit(f"c{amount}", charge(shop, amount))
    return made


@pytest.mark.parametrize("thread", ["", "main"])
@pytest.mark.parametrize("approve", [None, lambda plan: False, lambda plan: "no"], ids=["nobody", "no", "no yes"])
def test_what_nobody_allows_stays_is_named_and_all_else_goes_back(ws: Workspace, shop, approve: Any, thread: str):
    ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({}))
    made = charged(ws, shop, 10, 20, thread=thread)
    told = made.undo(approve).message
    later, _ = [act for act in ws.effects() if act.domain == "http"]
    why = "nobody approved that" if approve else "it needs a person's yes"
    stays = f"charge(amount=20) ({later.id[:8]}) stays: {why}: takeback revert {later.id[:8]}"
    assert told == f"took back the turn 'charge 20': 20.txt; not all of it: {stays}"
    assert [p.name for p in ws.root.iterdir()] == ["10.txt"] and not shop.refunds

    assert made.undo(lambda plan: True).message == "took back the turn 'charge 10': 10.txt, charge(amount=10)"
    assert len(shop.refunds) == 1 and not list(ws.root.iterdir())
    still = f"; still there: charge(amount=20): takeback revert {later.id[:8]}"
    assert made.undo(lambda plan: True).message == f"nothing to take back{still}"
    made.redo()
    made.redo()
    assert sorted(p.name for p in ws.root.iterdir()) == ["10.txt", "20.txt"] and len(shop.refunds) == 1
    assert made.undo(lambda plan: True).message == "took back the turn 'charge 20': 20.txt, charge(amount=20)"
    assert len(shop.refunds) == 2


def test_a_yes_to_a_plan_does_not_send_a_credential_where_no_setting_binds_it(ws: Workspace, shop):
    ws.settings = ws.observer.settings = ws.settings._replace(credentials={})
    told = charged(ws, shop, 10).undo(lambda plan: True).message
    (act,) = (act for act in ws.effects() if act.domain == "http")
    assert (
        f"10.txt; not all of it: charge(amount=10) ({act.id[:8]}) stays: PAY_KEY is not bound to" in told
        and not shop.refunds
    )


@pytest.mark.parametrize("error", [None, RuntimeError("no answer")], ids=["no id", "in doubt"])
def test_a_turn_of_which_something_cannot_go_back_does_not_stop_those_before_it(ws: Workspace, shop, error: Any):
    made = charged(ws, shop, 10)
    made.begin_turn("two")
    made.begin("2", "charge", {"amount": 20})
    _ = made.commit("2", {"status": "paid"}) if error is None else made.fail("2", error)
    newest = ws.effects()[0].id[:8]
    assert f"'two': nothing; not all of it: charge(amount=20) ({newest}) stays: " in made.undo().message
    assert made.undo().message == "took back the turn 'charge 10': 10.txt, charge(amount=10)"
    later = ws.effects()[0]
    still = f"; still there: charge(amount=20): {later.resolving}" if error is not None else ""
    assert made.undo().message == f"nothing to take back{still}"


@pytest.mark.parametrize("meanwhile", ["end_turn", "begin_turn", "end_turn begin_turn", "join"])
def test_a_call_that_ends_after_its_turn_is_that_turns_with_its_result(ws: Workspace, shop, meanwhile: str):
    made = calls(ws, undo={"charge": refunds(shop)})
    made.begin_turn("one")
    made.begin("1", "charge", {"amount": 10})
    answer = charge(shop, 10)
    for what in meanwhile.split():
        getattr(made, what)(*{"begin_turn": ["two"], "join": ["another"]}.get(what, []))
    (begun,) = ws.effects()
    assert made.commit("1", answer) == [begun.id] and made.commit("1", answer) == []
    (act,) = ws.effects()
    assert (act.state, act.verdict) == ("done", COMPENSATING)
    assert calls(ws).undo().message == "took back the turn 'one': charge(amount=10)" and len(shop.refunds) == 1


def test_a_call_of_a_new_turn_may_have_the_id_of_one_that_was_left(ws: Workspace, shop):
    made = calls(ws, undo={"charge": refunds(shop)})
    for amount in (10, 20):
        made.begin_turn(f"charge {amount}")
        made.begin("1", "charge", {"amount": amount})
    later, left = ws.effects()
    assert made.commit("1", charge(shop, 20)) == [later.id] and made.commit("1", charge(shop, 30)) == []
    assert [act.state for act in ws.effects()] == ["done", left.state]


async def _no(*_: Any) -> bool:
    await asyncio.sleep(0)
    return False


async def _yes(*_: Any) -> bool:
    return True


def test_who_is_asked_may_be_awaited_and_is_never_taken_at_a_promise(ws: Workspace, shop):
    ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({}))
    made = calls(ws, approve=_no)
    made.begin_turn("delete")
    said = made.begin("1", "delete_user", {"id": 1})
    assert said.decision == "deny" and "approve is async" in said.reason
    assert asyncio.run(made.abegin("2", "delete_user", {"id": 1})).decision == "deny"
    assert list(ws.history().stopped.values())[-1].state == "declined"
    made = calls(ws, approve=_yes)
    assert asyncio.run(made.abegin("3", "delete_user", {"id": 1})).decision == "allow"
    asyncio.run(made.acommit("3", ""))

    made = charged(ws, shop, 10, 20)
    with pytest.raises(UsageError, match="approve is async"):
        made.undo(_yes)
    assert not shop.refunds and len(list(ws.root.iterdir())) == 2
    assert "nobody approved that" in asyncio.run(made.aundo(_no)).message and not shop.refunds
    assert asyncio.run(made.aundo(_yes)).message == "took back the turn 'charge 10': 10.txt, charge(amount=10)"


def test_an_approve_that_fails_lets_nothing_pass(ws: Workspace):
    def approve(*_: Any) -> bool:
        raise UsageError("the prompt cannot be shown")

    said = calls(ws, approve=approve).begin("1", "delete_user", {"id": 1})
    assert said.decision == "deny" and "the prompt cannot be shown, which is no yes" in said.reason


def test_redo_brings_back_this_sessions_own_undo_though_they_shared_a_file(ws: Workspace, project: Path):
    both = [ToolCalls(ws, agent="harness", session=name, thread=name) for name in ("one", "two")]
    for each in both:
        each.begin_turn(f"turn of {each.session}")
        ws.threads.save(each.thread, {"said": each.session})
        each.begin("1", "build_it", {})
    (project / "shared").write_text("x")
    for each in both:
        each.commit("1", "ok")
        each.end_turn()
    assert (
        "shared stays: shared: thread two was at work at the same time" in both[0].undo().message
        and (project / "shared").exists()
    )
    assert both[1].undo().message == "took back the turn 'turn of two': shared, the conversation"
    both[0].redo()
    assert ws.threads.find("one") is not None and ws.threads.find("two") is None and not (project / "shared").exists()
    both[1].redo()
    assert ws.threads.find("two") is not None and (project / "shared").exists()
    assert both[0].redo().message == both[1].redo().message == "nothing to bring back"


def test_the_undo_of_the_last_agent_takes_what_two_of_them_did_at_once(ws: Workspace, project: Path):
    both = [ToolCalls(ws, agent=name, session=name) for name in ("one", "two")]
    for each in both:
        each.begin_turn(f"turn of {each.agent}")
        each.begin("1", "build_it", {})
    (project / "shared").write_text("x")
    for each in both:
        each.commit("1", "ok")
        each.end_turn()
    (row,) = [e for e in ws.history().effects if b"shared" in e.changes]
    kept = f"shared stays: shared: two was at work at the same time: takeback revert {row.id[:8]} ./shared takes it"
    assert both[0].undo().message == f"took back the turn 'turn of one': nothing; not all of it: {kept}"
    assert (project / "shared").exists() and both[0].undo().message == "nothing to take back"
    assert both[1].undo().message == "took back the turn 'turn of two': shared"
    assert not (project / "shared").exists()
    both[1].redo()
    assert (project / "shared").exists()


def _undo_killed_at(project: Path, point: int) -> bool:
    """Undoes in a child that dies at its Nth call that changes something; whether it did."""
    pid = os.fork()
    if pid == 0:
        try:
            with takeback.open(project) as ws, Points(point, "before").counting():
                calls(ws, thread="main").undo()
            os._exit(0)
        except BaseException:
            os._exit(9)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("then", ["undo", "turn"])
def test_an_undo_that_was_killed_is_finished_by_what_comes_next(
    project: Path, then: str, caplog: pytest.LogCaptureFixture
):
    with takeback.open(project, create=True) as ws:
        made = calls(ws, thread="main")
        made.begin_turn("write")
        ws.threads.save("main", {"said": 1})
        made.begin("1", "write_file", {"path": "f"})
        (project / "f").write_text("x")
        made.commit("1", "ok")
        made.end_turn()
    for point in range(4, 80, 2):
        assert _undo_killed_at(project, point)
        with takeback.open(project) as ws:
            made = calls(ws, thread="main")
            if not ws.interrupted():
                if ws.threads.find("main") is None:
                    made.redo()
                continue
            if then == "undo":
                told = made.undo().message
                assert told == "finished an undo of thread main that was interrupted: took back f, thread main"
            else:
                made.begin_turn("the next")
                assert made.finished is not None and made.finished.back == ("f", "thread main")
                assert caplog.messages == [made.finished.message]
                assert made.begin("2", "write_file", {"path": "g"}) == Decision("allow")
                made.commit("2", "ok")
            assert not (project / "f").exists() and ws.threads.find("main") is None
            return
    pytest.fail("no point interrupted it")


def test_a_process_that_dies_in_a_call_leaves_nothing_open(ws: Workspace, project: Path):
    code = (
        "import takeback, os\n"
        "from takeback.harness.tool_calls import ToolCalls\n"
        f"ws = takeback.open({str(project)!r})\n"
        "calls = ToolCalls(ws, agent='harness', session='dies')\n"
        "calls.begin_turn('die')\n"
        "calls.begin('1', 'write_file', {'path': 'half.txt'})\n"
        f"open({str(project / 'half.txt')!r}, 'w').write('half')\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 9
    ws.checkpoint("after")
    (bracket,) = ws.history().brackets.values()
    assert bracket.closed and bracket.cut
    assert ws.undo().left == (b"half.txt",), "nobody knows when it died, so it may be somebody else's by now"
    (effect,) = (e for e in ws.history().effects if e.uncertain)
    assert ws.revert(effect.id).whole and not (project / "half.txt").exists()


# -- outside ----------------------------------------------------------------------


def test_the_inverse_is_completed_from_the_result_and_undo_sends_it(ws: Workspace, project: Path, shop):
    made = calls(ws, undo={"charge": refunds(shop)})
    made.begin_turn("charge 10")
    assert made.begin("1", "charge", {"amount": 10}).decision == "allow"
    (begun,) = ws.effects()
    assert begun.shown_state == "unknown" and begun.inverse is None
    result = charge(shop, 10)
    (project / "receipt.txt").write_text(result["id"])
    effects = made.commit("1", json.dumps(result))
    (act,) = ws.effects()
    assert act.id in effects and len(effects) == 2
    assert act.verdict == COMPENSATING and act.inverse is not None
    assert act.inverse.args["json"] == {"charge": result["id"]}
    assert "sk_test" not in json.dumps(act.inverse.args)
    ws.undo()
    assert [r["charge"] for r in shop.refunds.values()] == [result["id"]]
    assert not (project / "receipt.txt").exists()


def test_a_declared_tool_that_fails_is_unknown_and_one_that_did_nothing_is_failed(ws: Workspace, shop):
    made = calls(ws, undo={"charge": refunds(shop)})
    made.begin("1", "charge", {"amount": 1})
    made.fail("1", TimeoutError("no answer"))
    made.begin("2", "charge", {"amount": 2})
    made.fail("2", takeback.NotDone("no such card"))
    newest, oldest = ws.effects()
    assert (oldest.shown_state, newest.shown_state) == ("unknown", "failed")
    assert oldest.did["raised"] == "TimeoutError: no answer"


def test_what_was_taken_back_is_not_repeated_unasked(ws: Workspace, shop):
    made = calls(ws, undo={"charge": refunds(shop)})
    made.begin_turn("charge")
    made.begin("1", "charge", {"amount": 10})
    made.commit("1", charge(shop, 10))
    ws.undo()
    said = made.begin("2", "charge", {"amount": 10})
    assert said.decision == "ask" and "taken back" in said.reason
    assert made.begin("3", "charge", {"amount": 11}).decision == "allow"
    made.approved(said)
    assert made.begin("2", "charge", {"amount": 10}).decision == "allow"
    made.commit("2", charge(shop, 10))
    assert [act.shown_state for act in ws.effects() if act.did["call"] == "charge"].count("live") == 1


def test_a_result_that_lacks_what_the_undo_needs_is_irreversible_and_says_why(ws: Workspace, shop):
    made = calls(ws, undo={"charge": refunds(shop)})
    made.begin("1", "charge", {"amount": 10})
    made.commit("1", "charged")
    (act,) = ws.effects()
    assert act.verdict == IRREVERSIBLE and "could not be filled in" in act.did["left_to_do"]


def test_a_command_takes_back_and_a_result_stays_one_word(ws: Workspace, project: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    undo = {"command": ["rm", "--", f"{outside}/{{result.name}}"]}
    made = calls(ws, undo={"create_pod": undo})
    made.begin_turn("make")
    made.begin("1", "create_pod", {"image": "x"})
    (outside / "a; rm b").write_text("")
    (outside / "b").write_text("")
    made.commit("1", {"name": "a; rm b"})
    ws.undo()
    assert [p.name for p in outside.iterdir()] == ["b"]


@pytest.mark.parametrize("word, result", [("{result.name}", "--force"), ("x{result.name}", "${env:PAY_KEY}")])
def test_a_result_names_neither_an_option_nor_a_credential(ws: Workspace, word: str, result: str):
    made = calls(ws, undo={"create_pod": {"command": ["rm", word]}})
    made.begin("1", "create_pod", {})
    made.commit("1", {"name": result})
    (act,) = ws.effects()
    assert act.verdict == IRREVERSIBLE and act.inverse is None


UNDONE: list[Any] = []


def forget(result: Any) -> None:
    UNDONE.append(result)


def cancel(order: str) -> None:
    UNDONE.append(order)


def test_a_registered_function_takes_back(ws: Workspace):
    UNDONE.clear()
    undo = {"remember": forget, "order": {"python": {"function": cancel, "kwargs": {"order": "{args.order}"}}}}
    made = calls(ws, undo=undo)
    made.begin_turn("two")
    made.begin("1", "remember", {"what": "x"})
    made.commit("1", {"id": 7})
    made.begin("2", "order", {"order": "o1"})
    assert ws.effects()[0].inverse is not None  # known before it is done
    made.commit("2", "fine")
    ws.undo()
    assert UNDONE == ["o1", {"id": 7}]


def anything(**given: Any) -> None:
    """Takes back whatever it is told to."""


@pytest.mark.parametrize(
    "undo",
    [
        {},
        {"http": {"url": "{result.url}"}},
        {"http": {"url": "https://{args.host}/x"}},
        {"command": "rm {result.name}"},
        {"command": ["{result.name}"]},
        {"command": ["rm"], "python": "a:b"},
        {"command": ["rm"], "typo": 1},
        {"python": {}},
        "no function",
        {"http": {"url": "https://pay.example/refunds", "jsn": {"charge": "{result.id}"}}},
        {"http": {"url": "https://pay.example/refunds", "json": {"charge": "{result.id}"}, "timeout": "soon"}},
        {"http": {"url": "https://pay.example/refunds", "headers": {"Authorization": "Bearer sk_live_0123456789abcd"}}},
        {"http": {"url": "https://pay.example/refunds", "json": {"charge": "{reslt.id}"}}},
        {"http": {"url": "https://pay.example/refunds", "json": {"charge": "{response.body.id}"}}},
        {"http": {"url": "https://pay.example/refunds/{result[id]}"}},
        {"command": []},
        {"command": ["rm", "{arg.name}"]},
        {"command": {"argv": ["rm"], "timeout": "soon"}},
        {"command": ["curl", "-H", "Authorization: Bearer sk_live_0123456789abcd"]},
        {"python": {"function": anything, "kwarg": {"order": "{args.order}"}}},
        {"python": {"function": anything, "kwargs": {"order": "{ result.id }"}}},
    ],
)
def test_a_declaration_from_which_no_inverse_can_come_is_refused(ws: Workspace, undo: Any):
    with pytest.raises(takeback.UsageError):
        calls(ws, undo={"charge": undo})


def test_a_table_of_undos_is_a_table(ws: Workspace):
    for wrong in ([1], "charge", 7):
        with pytest.raises(takeback.UsageError, match="names tools"):
            calls(ws, undo=wrong)


@pytest.mark.parametrize(
    "undo",
    [
        {"http": {"url": "https://pay.example/c/{result.items.0.id}/x", "json": {"n": "{args.n}"}}},
        {"http": {"url": "https://pay.example/c", "body": '{"results": 1}', "headers": {"X-Key": "${env:PAY_KEY}"}}},
        {"http": {"url": "https://pay.example/c", "json": {"id": "{result}"}}},
        {"command": {"argv": ["rm", "{args.name}"], "run_in": "/folder/that/is/made/later"}},
        {"python": {"function": anything, "kwargs": {"all": "{result}", "id": "{result.id}", "text": "{name}"}}},
    ],
)
def test_what_may_be_filled_in_later_is_not_refused(ws: Workspace, undo: Any):
    calls(ws, undo={"charge": undo})


# -- the gate ---------------------------------------------------------------------


def test_a_shell_command_is_judged_as_such(ws: Workspace):
    made = calls(ws)
    assert made.begin("1", "run_shell", {"command": "ls"}).decision == "allow"
    said = made.begin("2", "run_shell", {"command": "git push origin main"})
    assert said.decision == "ask" and "takeback approve" in said.reason
    stopped = ws.stopped_call(said.call)
    assert stopped is not None and stopped.kind == "push" and stopped.session == "s1"
    assert [b.call.key for b in ws.history().brackets.values()] == ["1"]
    assert made.begin("3", "execute_command", {"command": "takeback approve " + said.call}).decision == "deny"


def test_a_tool_that_acts_by_its_name_is_asked_for_unless_its_undo_is_declared(ws: Workspace, shop):
    assert calls(ws).begin("1", "charge_card", {"amount": 1}).decision == "ask"
    assert calls(ws, undo={"charge_card": refunds(shop)}).begin("2", "charge_card", {"amount": 1}).decision == "allow"
    assert calls(ws, undo={"charge_card": None}).begin("3", "charge_card", {"amount": 2}).decision == "allow"
    assert calls(ws).begin("4", "list_charges", {}).decision == "allow"


def test_who_approves_is_shown_the_call_and_what_is_let_pass_is_on_the_ledger(ws: Workspace):
    shown: list[Any] = []

    def approve(decision: Decision, tool: str, args: Mapping[str, Any]) -> bool:
        shown.append((decision.decision, tool, dict(args)))
        return bool(args["command"].endswith("main"))

    made = calls(ws, approve=approve)
    assert made.begin("1", "bash", {"command": "git push origin main"}).decision == "allow"
    made.commit("1", "pushed")
    assert made.begin("2", "bash", {"command": "git push origin next"}).decision == "deny"
    assert made.commit("2", "never ran") == []
    assert [tool for _, tool, _ in shown] == ["bash", "bash"] and shown[0][0] == "ask"
    (act,) = ws.effects()
    assert act.verdict == IRREVERSIBLE and "git push origin main" in act.summary


def test_a_call_that_a_person_declined_waits_no_longer_and_is_asked_about_again(ws: Workspace):
    answers = iter([False, True])
    made = calls(ws, approve=lambda decision, tool, args: next(answers))
    assert made.begin("1", "bash", {"command": "git push"}).decision == "deny"
    (first,) = ws.history().stopped.values()
    assert first.answered and not first.approved
    assert made.begin("2", "bash", {"command": "git push"}).decision == "allow"
    assert [call.state for call in ws.history().stopped.values()] == ["declined", "tried"]
    made.commit("2", "pushed")
    states = [call.state for call in ws.history().stopped.values()]
    assert states == ["declined", "passed"], "the second is another question, and another answer"


def test_one_that_is_asked_for_elsewhere_and_declined_did_nothing(ws: Workspace, shop):
    ws.settings = ws.settings._replace(policy=FREE._replace(calls={"tool": "ask"}))
    made = calls(ws, undo={"run_shell": {"command": ["true"]}})
    made.begin_turn("push")
    assert made.begin("1", "run_shell", {"command": "git push"}, asking=True).decision == "ask"
    made.end_turn()
    (act,) = ws.effects()
    assert act.shown_state == "failed"
    assert [call.state for call in ws.history().stopped.values()] == ["declined"]


def test_one_that_is_asked_for_elsewhere_and_made_was_allowed(ws: Workspace):
    made = calls(ws)
    made.begin_turn("push")
    assert made.begin("1", "bash", {"command": "git push"}, asking=True).decision == "ask"
    made.commit("1", "pushed")
    assert [call.state for call in ws.history().stopped.values()] == ["allowed"] and not ws.waiting_calls()


def test_claude_codes_tools_are_known_by_name(ws: Workspace, project: Path):
    made = ToolCalls(ws, agent="claude", session="c")
    assert made.begin("1", "Read", {"file_path": "x"}).decision == "allow"
    assert made.commit("1", "") == []
    assert not ws.history().brackets
    made.begin("2", "Write", {"file_path": str(project / "x"), "content": "x"})
    (bracket,) = ws.history().brackets.values()
    assert bracket.call.paths == (b"x",) and not bracket.call.scans


# -- trouble ----------------------------------------------------------------------


def test_turned_off_it_does_nothing(ws: Workspace):
    ws.settings = ws.settings._replace(enabled=False)
    made = calls(ws)
    made.begin_turn("x")
    assert made.begin("1", "bash", {"command": "git push"}) == Decision("allow")
    assert made.commit("1", "") == []
    assert not ws.history().agent_turns


@pytest.mark.parametrize("failure, decision", [("open", "allow"), ("closed", "deny")])
def test_what_cannot_be_captured_goes_on_or_not_as_the_owner_chose(ws: Workspace, failure: str, decision: str):
    ws.settings = ws.settings._replace(failure=failure, lock_timeout=0.1)
    made = calls(ws)
    made.begin_turn("x")
    code = (
        f"import sys, takeback\nws = takeback.open({str(ws.root)!r})\n"
        "with ws.writing():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        assert made.begin("1", "write_file", {"path": "x"}).decision == decision
    finally:
        other.communicate("")
    assert hook_problems.read(ws.settings.home)[-1].tool == "write_file"


def test_the_same_call_announced_twice_is_one(ws: Workspace, shop):
    made = calls(ws, undo={"charge": refunds(shop)})
    made.begin("1", "charge", {"amount": 10})
    made.begin("1", "charge", {"amount": 10})
    assert len(ws.history().brackets) == 1 and len(ws.effects()) == 1


def test_calls_at_the_same_time_are_awaited_without_blocking(ws: Workspace, project: Path):
    made = calls(ws)

    async def one(name: str) -> None:
        assert (await made.abegin(name, "write_file", {"path": name})).decision == "allow"
        (project / name).write_text(name)
        await asyncio.sleep(0)
        await made.acommit(name, "ok")

    async def all_of_them() -> None:
        await made.abegin_turn("three at once")
        await asyncio.gather(*map(one, "abc"))
        await made.aend_turn()

    asyncio.run(all_of_them())
    assert all(b.closed and not b.cut for b in ws.history().brackets.values())
    ws.undo()
    assert not any((project / name).exists() for name in "abc")
