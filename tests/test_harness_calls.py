"""Calls of a harness: journaled from every thread, done once by their key, whatever becomes of who waits for them; and
what is wrong with how they are declared is said when they are."""

from __future__ import annotations

import asyncio
import functools
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.config.policy import Policy
from takeback.harness.tool_calls import ToolCalls
from takeback.workspace import Workspace

LEDGER: list[str] = []
FREE = Policy({"python.compensating": "allow"})


def refund(charge: str) -> None:
    LEDGER.append(f"refund {charge}")


def charge(amount: int) -> dict[str, Any]:
    LEDGER.append(f"charge {amount}")
    return {"id": f"ch_{amount}"}


@takeback.tool(undo=refund, undo_args={"charge": "{result.id}"})
def charge_tool(amount: int) -> dict[str, Any]:
    return charge(amount)


@pytest.fixture(autouse=True)
def empty_ledger(ws: Workspace) -> None:
    LEDGER.clear()
    ws.settings = ws.observer.settings = ws.settings._replace(policy=FREE)


UNDO: Any = {"undo": refund, "undo_args": {"charge": "{result.id}"}}


# -- from every thread -------------------------------------------------------------


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def in_an_executor(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def in_a_loops_executor(work: Callable[[], object]) -> None:
    async def run() -> None:
        await asyncio.get_running_loop().run_in_executor(None, work)

    asyncio.run(run())


@pytest.mark.parametrize("elsewhere", [in_a_thread, in_an_executor, in_a_loops_executor])
def test_a_tool_in_another_thread_belongs_to_the_step(ws: Workspace, elsewhere: Any):
    with pytest.raises(RuntimeError), ws.step("outer"), ws.step("charge") as step:
        elsewhere(lambda: charge_tool(5))
        (act,) = ws.effects()
        assert act.step == step.path
        raise RuntimeError
    assert LEDGER == ["charge 5", "refund ch_5"] and step.remains == ()


@pytest.mark.parametrize("elsewhere", [in_a_thread, in_an_executor, in_a_loops_executor])
def test_of_two_steps_at_once_it_is_of_the_one_that_handed_it_over(ws: Workspace, elsewhere: Any):
    inside, over = threading.Barrier(2), threading.Event()

    def other() -> None:
        with ws.step("other"):
            inside.wait(20)
            over.wait(20)

    thread = threading.Thread(target=other)
    thread.start()
    with ws.step("mine") as mine:
        inside.wait(20)
        elsewhere(lambda: charge_tool(5))
        over.set()
        thread.join()
    (act,) = ws.effects()
    assert act.step == mine.path and act.shown_state == "live" and not act.is_of_unknown


def test_elsewhere_a_tool_is_just_called(ws: Workspace):
    in_a_thread(lambda: charge_tool(5))
    assert LEDGER == ["charge 5"] and ws.effects() == []


def test_a_tool_in_a_protected_call_is_part_of_it_and_journaled_once(ws: Workspace):
    undo = {"declared": {"python": {"function": refund, "kwargs": {"charge": "{result.id}"}}}, "plain": None}
    calls = ToolCalls(ws, agent="sdk", undo=undo)
    calls.begin_turn("charge twice")
    for tool in ("declared", "plain"):
        assert calls.begin(tool, tool, {}).decision == "allow"
        with calls.within(tool):
            result = charge_tool(5 if tool == "plain" else 6)
        calls.commit(tool, result)
    assert sorted(act.summary for act in ws.effects()) == ["charge_tool(5)", "declared()"]
    calls.undo()
    assert sorted(LEDGER[2:]) == ["refund ch_5", "refund ch_6"]


def test_a_failed_step_in_a_turn_leaves_what_others_did_meanwhile(ws: Workspace):
    one, other = takeback.Conversation(ws, "one"), takeback.Conversation(ws, "other")
    with one.turn("try"), pytest.raises(RuntimeError), ws.step("half"):
        (ws.root / "mine").write_text("x")
        raise RuntimeError
    assert not (ws.root / "mine").exists()
    with other.turn("write"):
        (ws.root / "theirs").write_text("x")
    with one.turn("again"):
        step = ws.step("half")
        with pytest.raises(RuntimeError), step:
            with ThreadPoolExecutor(1) as pool:  # another thread of the program, with a conversation of its own
                pool.submit(_talk, other, ws).result()
            raise RuntimeError
    assert (ws.root / "theirs").read_text() == "y"
    assert [remains.what for remains in step.remains] == ["theirs"]


def _talk(talk: takeback.Conversation, ws: Workspace) -> None:
    with talk.turn("rewrite"):
        (ws.root / "theirs").write_text("y")


# -- keys --------------------------------------------------------------------------


def test_a_key_with_other_arguments_is_refused(ws: Workspace):
    with ws.step("charge") as step:
        assert step.do(charge, 5, key="order-1", **UNDO) == {"id": "ch_5"}
        with pytest.raises(takeback.UsageError, match=r"belongs to charge\(5\), with other arguments than charge\(6\)"):
            step.do(charge, 6, key="order-1", **UNDO)
        assert step.do(charge, amount=5, key="order-1", **UNDO) == {"id": "ch_5"}
    assert LEDGER == ["charge 5"]


def void(charge: str) -> None:
    LEDGER.append(f"void {charge}")


@pytest.mark.parametrize(
    "other",
    [
        {"undo": void, "undo_args": {"charge": "{result.id}"}},
        {"undo": refund, "undo_args": {"charge": "all of {result.id}"}},
        {"undo": refund, "undo_args": lambda result: {"charge": result["id"]}},
    ],
)
def test_a_key_with_another_undo_is_refused(ws: Workspace, other: dict[str, Any]):
    """It would be dropped, and what takes the charge back would not be what was said last."""
    with pytest.raises(RuntimeError), ws.step("charge") as step:
        assert step.do(charge, 5, key="order-1", **UNDO) == {"id": "ch_5"}
        with pytest.raises(takeback.UsageError, match=r"belongs to charge\(5\), with another undo.*nothing was done"):
            step.do(charge, 5, key="order-1", **other)
        assert step.do(charge, 5, key="order-1", **UNDO) == {"id": "ch_5"}
        assert step.do(charge, 5, key="order-1") == {"id": "ch_5"}, "who gives none reads the result"
        raise RuntimeError
    assert LEDGER == ["charge 5", "refund ch_5"]
    with ws.step("once more") as step:  # taken back, it is another act, with the undo that is given now
        step.do(charge, 5, key="order-1", again=True, **other)


def test_a_key_that_was_used_without_an_undo_gets_none_later(ws: Workspace):
    with ws.step("charge") as step:
        assert step.do(charge, 5, key="order-1") == {"id": "ch_5"}
        with pytest.raises(takeback.UsageError, match="with another undo"):
            step.do(charge, 5, key="order-1", **UNDO)
    assert LEDGER == ["charge 5"]


def test_a_key_in_flight_says_so_and_is_done_once(ws: Workspace):
    begun, go_on = threading.Event(), threading.Event()

    def slow(amount: int) -> str:
        begun.set()
        go_on.wait(20)
        return str(charge(amount)["id"])

    with ws.step("charge") as step, ThreadPoolExecutor(1) as pool:
        first = pool.submit(step.do, slow, 5, key="order-1")
        assert begun.wait(20)
        with pytest.raises(takeback.InProgress, match="is under way with the key 'order-1'; nothing was done"):
            step.do(slow, 5, key="order-1")
        go_on.set()
        assert first.result() == "ch_5" == step.do(slow, 5, key="order-1")
    assert LEDGER == ["charge 5"]


def test_a_key_in_flight_in_another_process(ws: Workspace, tmp_path: Path):
    program = """
    import sys, takeback

    def wait():
        print("begun", flush=True)
        sys.stdin.read()
        return 1

    ws = takeback.open(sys.argv[1])
    with ws.recording() as recorder:
        recorder.do(wait, key="order-1")
    """
    (tmp_path / "other.py").write_text(textwrap.dedent(program))
    other = subprocess.Popen(
        [sys.executable, tmp_path / "other.py", ws.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    )
    assert other.stdout is not None and other.stdout.readline() == b"begun\n"

    def wait() -> int:
        raise AssertionError("it must not run")

    wait.__module__, wait.__qualname__ = "__main__", "wait"
    with ws.recording() as recorder:
        with pytest.raises(takeback.InProgress):
            recorder.do(wait, key="order-1")
        other.kill()
        other.communicate()
        with pytest.raises(takeback.TakebackError, match="nobody knows whether it was done"):
            recorder.do(wait, key="order-1")


# -- what is called ----------------------------------------------------------------


def test_the_functions_own_arguments_reach_it(ws: Workspace):
    seen: list[Any] = []

    def send(to: str, *, summary: str = "", target: str = "", key: str = "", again: bool = True) -> str:
        seen.append((to, summary, target, key, again))
        return to

    with ws.step("send") as step:
        step.do(send, "bob", summary="hello", target="mail", key="m-1", again=False)
        asyncio.run(step.ado(send, "eve", summary="hi", key="m-2"))
        step.do(functools.partial(send, key="its own"), "ann", key="m-3", summary="both")
    assert seen == [
        ("bob", "hello", "mail", "m-1", False),
        ("eve", "hi", "", "m-2", True),
        ("ann", "both", "", "its own", True),
    ]
    assert [(a.key, a.summary, a.target) for a in reversed(ws.effects())] == [
        ("m-1", "hello", "mail"), ("m-2", "hi", ""), ("m-3", "both", ""),
    ]  # fmt: skip


def test_an_argument_that_cannot_be_both_is_said_to_be_bound(ws: Workspace):
    with ws.step("write") as step, pytest.raises(takeback.UsageError, match="the target of an act is text") as refused:
        step.do(lambda target: target, target=Path("x"))
    assert "functools.partial" in refused.value.hint and ws.effects() == []


def test_a_cancelled_call_keeps_its_late_result(ws: Workspace):
    begun, go_on = threading.Event(), threading.Event()

    def slow(amount: int) -> dict[str, Any]:
        begun.set()
        go_on.wait(20)
        return charge(amount)

    async def cancelled() -> None:
        async with ws.astep("charge") as step:
            running = asyncio.ensure_future(step.ado(slow, 5, key="order-1", **UNDO))
            await asyncio.to_thread(begun.wait, 20)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            (act,) = ws.effects()
            assert act.shown_state == "unknown"
            go_on.set()

    asyncio.run(cancelled())
    (act,) = ws.effects()
    assert (act.shown_state, act.did["result"]) == ("live", {"id": "ch_5"})
    ws.revert(act.id)
    assert LEDGER == ["charge 5", "refund ch_5"]


# -- transactions ------------------------------------------------------------------


class AsyncDatabase:
    """A connection that is awaited, over one that is not."""

    def __init__(self, path: Path) -> None:
        self.plain = sqlite3.connect(path, check_same_thread=False)

    async def commit(self) -> None:
        self.plain.commit()

    async def rollback(self) -> None:
        self.plain.rollback()


@pytest.mark.parametrize("undo", [None, refund])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_commit_is_in_the_ledger_with_an_undo_or_without(ws: Workspace, tmp_path: Path, undo: Any, is_async: bool):
    how: Any = {"undo": undo, "undo_args": {"charge": "the row"}} if undo else {}

    async def filled() -> None:
        async with ws.astep("fill") as step:
            database = AsyncDatabase(tmp_path / "db")
            step.transaction(database, **how).plain.execute("CREATE TABLE t (n)")

    if is_async:
        asyncio.run(filled())
    else:
        with ws.step("fill") as step:
            step.transaction(sqlite3.connect(tmp_path / "db"), **how).execute("CREATE TABLE t (n)")
    (act,) = ws.effects()
    assert act.summary.startswith("commit of a transaction") and act.summary.endswith("in step 'fill'")
    assert act.shown_state == ("live" if undo else "irreversible")
    assert act.did.get("left_to_do", "") == ("" if undo else "no undo was given")


def test_a_commit_that_took_no_effect_leaves_no_doubt(ws: Workspace, tmp_path: Path):
    path = tmp_path / "db"
    setup = sqlite3.connect(path)
    setup.execute("CREATE TABLE t (n)")
    setup.commit()
    reader, writer = sqlite3.connect(path, isolation_level=None), sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"), ws.step("fill") as step:
        step.transaction(writer).execute("INSERT INTO t VALUES (1)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
    (act,) = ws.effects()
    assert act.shown_state == "failed" and step.remains == ()


# -- declarations ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("undo", "said"),
    [
        ("nope:nope", "there is no module nope"),
        ("test_harness_calls:nope", "names no function of test_harness_calls"),
        ("os.path:nope", "names no function of os.path"),
        ("os:sep", "names no function of os"),
    ],
)
def test_an_undo_that_is_not_there_is_refused_when_it_is_declared(ws: Workspace, undo: str, said: str):
    with pytest.raises(takeback.UsageError, match=said):
        takeback.tool(undo=undo)
    with pytest.raises(takeback.UsageError, match=said):
        takeback.tool(undo=refund, undo_args={"charge": "x"}, probe=undo)
    with pytest.raises(takeback.UsageError, match=said):
        ToolCalls(ws, agent="sdk", undo={"charge": undo})
    with pytest.raises(takeback.UsageError, match=said):
        ToolCalls(ws, agent="sdk", undo={"charge": {"python": {"function": undo}}})
    with ws.step("charge") as step, pytest.raises(takeback.UsageError, match=said):
        step.do(charge, 5, undo=undo)
    assert LEDGER == []


def test_an_undo_that_does_not_fit_is_refused_when_it_is_declared(ws: Workspace):
    with pytest.raises(takeback.UsageError, match="does not take id"):
        takeback.tool(undo=refund, undo_args={"id": "{result.id}"})
    with pytest.raises(takeback.UsageError, match="does not take result"):
        takeback.tool(undo="test_harness_calls:refund")
    with pytest.raises(takeback.UsageError, match=r"refers to \{args\.amuont\}"):
        takeback.tool(undo=refund, undo_args={"charge": "{args.amuont}"})(charge)
    with pytest.raises(
        takeback.UsageError, match=r"the undo of charge cannot be called: .*refund does not take result"
    ):
        ToolCalls(ws, agent="sdk", undo={"charge": refund})
    with pytest.raises(takeback.UsageError, match="does not take id"):
        ToolCalls(ws, agent="sdk", undo={"charge": {"python": {"function": refund, "kwargs": {"id": "{result.id}"}}}})
    with ws.step("charge") as step, pytest.raises(takeback.UsageError, match=r"refers to \{args\.amuont\}"):
        step.do(charge, 5, undo=refund, undo_args={"charge": "{result.id} {args.amuont}"})
    assert LEDGER == []


def test_an_undo_that_its_module_defines_further_down_is_no_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "later_shop.py").write_text(
        "import takeback\n\n"
        "@takeback.tool(undo='later_shop:cancel')\ndef order(): return 1\n\n"
        "def cancel(result): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    __import__("later_shop")


def test_a_tool_that_is_misspelled_is_refused(ws: Workspace):
    calls = ToolCalls(ws, agent="sdk", undo={"chrage_card": None, "mcp__shop__refund": None})
    calls.know_tools(["write", "refund", "charge"])
    with pytest.raises(takeback.UsageError, match="undo names the tool chrage_card, and there is only charge_card"):
        calls.know_tools(["write", "refund", "charge_card"])


# -- the program itself ------------------------------------------------------------

RECORDS = """
import sys
import takeback

def refund(charge):
    print("{who} refunds", charge)

def charge(amount):
    return {{"id": "ch_1"}}

ws = takeback.open(sys.argv[1])
if "charge" in sys.argv:
    with ws.step("charge") as step:
        step.do(charge, 5, undo=refund, undo_args={{"charge": "{{result.id}}"}})
else:
    takeback.tool(undo=refund, undo_args={{"charge": ""}})
    plan = ws.plan("revert", ws.effects()[0].id)
    ws.approve(plan)
    for result in ws.apply(plan).results:
        print(result.result, result.note)
"""


def run(program: Path, *words: object, module: bool = False) -> str:
    command = [sys.executable, *(["-m", program.stem] if module else [str(program)]), *map(str, words)]
    return subprocess.run(
        command, cwd=program.parent, capture_output=True, text=True, timeout=60, env=os.environ, check=True
    ).stdout


def test_an_undo_of_a_program_itself_is_called_by_that_program_and_no_other(ws: Workspace, tmp_path: Path):
    mine, other = tmp_path / "mine.py", tmp_path / "other.py"
    mine.write_text(RECORDS.format(who="mine"))
    other.write_text(RECORDS.format(who="other"))
    run(mine, ws.root, "charge")
    told = run(other, ws.root)
    assert "refunds" not in told
    assert told.startswith(f"failed refund is a function of {mine}, and this is {other}: it was not called; run that")
    assert ws.effects()[0].shown_state == "live"
    assert run(mine, ws.root) == "mine refunds ch_1\ndone \n"


def test_a_program_that_is_started_as_a_module_is_known_by_that(ws: Workspace, tmp_path: Path):
    mine = tmp_path / "mine_as_module.py"
    mine.write_text(RECORDS.format(who="mine"))
    run(mine, ws.root, "charge", module=True)
    (act,) = ws.effects()
    assert act.inverse is not None and act.inverse.args["function"] == "mine_as_module:refund"
    assert run(mine, ws.root, module=True) == "mine refunds ch_1\ndone \n"


def test_what_an_older_journal_has_of_a_program_is_not_called(ws: Workspace, tmp_path: Path):
    from takeback.domains import python
    from takeback.model.outside import Inverse

    domain = ws.outside("python")
    assert isinstance(domain, python.Python)
    with pytest.raises(takeback.TakebackError, match="another program"):
        domain.run(Inverse(python.OP, {"function": "__main__:main", "kwargs": {}}), "")


@pytest.mark.parametrize("reference", ["{reslt.id}", "{Result.id}", "{result[id]}", "{arg.amount}", "{ args.amount }"])
def test_a_misspelled_reference_is_refused_before_anything_is_done(ws: Workspace, reference: str):
    LEDGER.clear()
    with pytest.raises(takeback.UsageError, match="refers to nothing"):
        takeback.tool(undo=refund, undo_args={"charge": reference})(charge)
    with ws.step("charge") as step, pytest.raises(takeback.UsageError, match="refers to nothing"):
        step.do(charge, 5, undo=refund, undo_args={"charge": reference})
    assert LEDGER == [] and ws.effects() == []
