"""What test_openai_agents.py holds against the SDK, in a process of its own: the SDK's package is called `agents`, and
so is a folder of these tests. Run with a folder and the payment server's URL: one line of JSON for each case."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Runner, Session, ShellTool, function_tool, set_tracing_disabled
from agents.memory import SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call

import takeback
from takeback.integrations.openai_agents import TakebackSession, protect
from takeback.config.policy import Policy
from takeback.workspace import Workspace

set_tracing_disabled(True)
FREE = Policy({"http.compensating": "allow"})
SHOP = ""


def opened(root: Path) -> Workspace:
    ws = takeback.open(root, create=True)
    ws.settings = ws.observer.settings = ws.settings._replace(policy=FREE)
    return ws


def undo() -> dict[str, Any]:
    return {"charge": {"http": {"url": f"{SHOP}/v1/refunds", "json": {"charge": "{result.id}"}}}}


def ledger() -> dict[str, Any]:
    with urllib.request.urlopen(f"{SHOP}/ledger") as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def tools(root: Path) -> list[FunctionTool]:
    @function_tool
    def write_file(path: str, text: str) -> str:
        (root / path).write_text(text)
        return "written"

    @function_tool
    def charge(amount: int) -> str:
        request = urllib.request.Request(f"{SHOP}/v1/charges", json.dumps({"amount": amount}).encode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            return str(answer.read().decode())

    @function_tool
    def charge_badly(amount: int) -> str:
        raise TimeoutError("no answer")

    @function_tool
    def charge_never(amount: int) -> str:
        raise takeback.NotDone("no such card")

    @function_tool
    def run_shell(command: str) -> str:
        raise AssertionError("it must not run")

    return [write_file, charge, charge_badly, charge_never, run_shell]


def agent(root: Path, session: TakebackSession, *steps: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel(list(steps))
    return protect(Agent(name="worker", model=model, tools=list(tools(root))), session.calls), model


def write(path: str, text: str = "x", id: str = "") -> Any:
    return function_call("write_file", {"path": path, "text": text}, call_id=id or f"call-{path}")


# -- cases -----------------------------------------------------------------------


async def case_undo_takes_items_files_and_effects(root: Path) -> None:
    ws = opened(root)
    session = TakebackSession("main", ws, undo=undo())
    made, _ = agent(
        root, session,
        [write("a.txt")], [assistant_message("wrote a")],
        [write("b.txt"), function_call("charge", {"amount": 10}, call_id="pay")], [assistant_message("paid")],
    )  # fmt: skip
    before = len(ledger()["refunds"])
    await Runner.run(made, "write a", session=session)
    first = await session.get_items()
    await Runner.run(made, "write b and charge", session=session)
    whole = await session.get_items()
    assert len(whole) > len(first)
    (act,) = ws.effects()
    assert act.inverse is not None and act.inverse.args["json"]["charge"].startswith("ch_")

    undone = await session.aundo()
    assert undone.message == ("took back the turn 'write b and charge': b.txt, charge(amount=10), the conversation"), (
        undone.message
    )
    assert await session.get_items() == first
    assert (root / "a.txt").exists() and not (root / "b.txt").exists()
    assert len(ledger()["refunds"]) == before + 1

    assert "the conversation" in session.undo().message
    assert await session.get_items() == [] and not (root / "a.txt").exists()
    assert session.undo().outcome is None

    assert session.redo().outcome is not None
    assert await session.get_items() == first and (root / "a.txt").exists()


async def case_it_is_a_session_of_the_sdk(root: Path) -> None:
    session = TakebackSession("main", opened(root))
    assert isinstance(session, Session)
    assert await session.get_items() == [] and await session.pop_item() is None
    items: list[Any] = [{"role": "user", "content": str(n)} for n in range(5)]
    await session.add_items(items[:2])
    await session.add_items([])
    await session.add_items(items[2:])
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[-2:]
    assert await session.pop_item() == items[-1]
    assert await session.get_items() == items[:-1]
    session.session_settings = SessionSettings(limit=1)
    assert await session.get_items() == [items[-2]]
    session.session_settings = None
    other = TakebackSession("other", session.workspace)
    await other.add_items([items[0]])
    await session.clear_session()
    assert await session.get_items() == [] and await other.get_items() == [items[0]]


async def case_another_process_goes_on_and_can_undo(root: Path) -> None:
    session = TakebackSession("main", opened(root))
    made, _ = agent(root, session, [write("a.txt")], [assistant_message("done")])
    await Runner.run(made, "write a", session=session)
    items = await session.get_items()
    session.workspace.close()
    again = TakebackSession("main", opened(root))
    assert await again.get_items() == items
    assert again.undo().outcome is not None
    assert await again.get_items() == [] and not (root / "a.txt").exists()


async def case_turned_off_it_is_a_conversation_and_no_more(root: Path) -> None:
    ws = opened(root)
    ws.settings = ws.settings._replace(enabled=False)
    session = TakebackSession("main", ws)
    made, _ = agent(root, session, [write("a.txt")], [assistant_message("done")])
    await Runner.run(made, "write a", session=session)
    assert len(await session.get_items()) == 4 and (root / "a.txt").exists()
    assert session.undo().message == "takeback is off; nothing was taken back"
    assert (root / "a.txt").exists()


async def case_a_denial_is_what_the_model_reads(root: Path) -> None:
    session = TakebackSession("main", opened(root))
    push = function_call("run_shell", {"command": "git push origin main"}, call_id="push")
    made, model = agent(root, session, [push], [assistant_message("I may not")])
    await Runner.run(made, "push it", session=session)
    outputs = [i["output"] for i in await session.get_items() if i.get("type") == "function_call_output"]
    assert outputs[0].startswith("Not run. takeback: git push origin main"), outputs
    assert "takeback approve" in outputs[0]
    assert "Not run." in json.dumps(model.calls[-1].input, default=str)


async def case_who_approves_lets_it_pass(root: Path) -> None:
    asked: list[str] = []

    def approve(decision: Any, tool: str, args: Any) -> bool:
        asked.append(f"{tool} {dict(args)}")
        return True

    session = TakebackSession("main", opened(root), approve=approve)
    done: list[Any] = []
    shell = ShellTool(executor=lambda request: done.append(request.data.action.commands) or "pushed")

    class Request:
        class data:
            call_id = "s1"

            class action:
                commands = ("git push",)

    tool = protect(shell, session.calls)
    assert await tool.executor(Request()) == "pushed"  # type: ignore[misc, arg-type]
    assert done and asked == ["shell {'commands': ['git push']}"]
    (act,) = session.workspace.effects()
    assert act.verdict == "irreversible"


async def case_what_a_tool_raised_is_known_though_the_model_is_told_a_text(root: Path) -> None:
    how = undo()["charge"]
    session = TakebackSession("main", opened(root), undo={"charge_badly": how, "charge_never": how})
    made, _ = agent(
        root, session,
        [
            function_call("charge_badly", {"amount": 1}, call_id="1"),
            function_call("charge_never", {"amount": 1}, call_id="2"),
        ],
        [assistant_message("failed")],
    )  # fmt: skip
    await Runner.run(made, "charge", session=session)
    found = {act.did["call"]: act.shown_state for act in session.workspace.effects()}
    assert found == {"charge_badly": "unknown", "charge_never": "failed"}, found
    outputs = [i["output"] for i in await session.get_items() if i.get("type") == "function_call_output"]
    assert len(outputs) == 2 and all("error occurred" in text for text in outputs)


async def case_what_was_taken_back_is_not_done_again_unasked(root: Path) -> None:
    session = TakebackSession("main", opened(root), undo=undo())
    pay = [function_call("charge", {"amount": 77}, call_id="p1")]
    again = [function_call("charge", {"amount": 77}, call_id="p2")]
    made, _ = agent(root, session, pay, [assistant_message("paid")], again, [assistant_message("not paid")])
    await Runner.run(made, "charge 77", session=session)
    session.undo()
    charged = len(ledger()["charges"])
    await Runner.run(made, "charge 77", session=session)
    outputs = [i["output"] for i in await session.get_items() if i.get("type") == "function_call_output"]
    assert "taken back" in outputs[0], outputs
    assert len(ledger()["charges"]) == charged


async def case_each_call_knows_how_far_the_conversation_had_come(root: Path) -> None:
    session = TakebackSession("main", opened(root))
    made, _ = agent(root, session, [write("a.txt")], [write("b.txt")], [assistant_message("done")])
    await Runner.run(made, "write two", session=session)
    calls = [b for b in session.workspace.history().brackets.values() if b.call.tool == "write_file"]
    assert [(b.call.thread, b.call.cursor, b.caller.lane) for b in calls] == [
        ("main", "1", "worker"), ("main", "3", "worker"),
    ]  # fmt: skip


async def case_handoffs_and_copies_are_protected_once(root: Path) -> None:
    session = TakebackSession("main", opened(root))
    first: Agent[Any] = Agent(name="first", tools=list(tools(root)))
    second: Agent[Any] = Agent(name="second", tools=list(tools(root)), handoffs=[first])
    first.handoffs = [second]
    made = protect(first, session.calls)
    other = made.handoffs[0]
    assert isinstance(other, Agent) and other is not second and other.handoffs == [made]
    assert protect(made.tools[0], session.calls) is made.tools[0]
    assert first.tools[0] is not made.tools[0] and first.handoffs == [second]


async def case_a_tool_that_takes_too_long_is_in_doubt(root: Path) -> None:
    session = TakebackSession("main", opened(root), undo={"charge_slowly": undo()["charge"]})

    @function_tool(timeout=0.2)
    async def charge_slowly(amount: int) -> str:
        await asyncio.sleep(60)
        return "never"

    model = ScriptedModel([[function_call("charge_slowly", {"amount": 1}, call_id="1")], [assistant_message("late")]])
    made = protect(Agent(name="worker", model=model, tools=[charge_slowly]), session.calls)
    await Runner.run(made, "charge", session=session)
    (act,) = session.workspace.effects()
    assert act.shown_state == "unknown" and "Cancelled" in act.did["raised"]
    assert all(b.closed for b in session.workspace.history().brackets.values() if b.call.tool == "charge_slowly")


CASES: dict[str, Callable[[Path], Awaitable[None]]] = {
    name: case for name, case in globals().items() if name.startswith("case_")
}


def main(folder: Path, shop: str) -> None:
    global SHOP
    SHOP = shop
    for name, case in CASES.items():
        root = folder / name
        root.mkdir()
        try:
            asyncio.run(asyncio.wait_for(case(root), 60))
            told = ""
        except Exception:
            told = traceback.format_exc()
        print(json.dumps([name, told]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
    os._exit(0)
