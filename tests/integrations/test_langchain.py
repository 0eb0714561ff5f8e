"""LangChain's agents: real graphs with scripted models, tools that write files and call a server, undone in one call."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the dependency group `integrations`")

from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

import takeback
from servers.payments import Payments, serving
from takeback.integrations.langchain import TakebackMiddleware
from takeback.integrations.langgraph import TakebackSaver
from takeback.workspace import Workspace

YES = lambda plan: True


class Scripted(GenericFakeChatModel):
    """Says what it is given, in order; of tools it takes no notice."""

    def bind_tools(self, tools: Any, **more: Any) -> Scripted:
        return self


def calls(*wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    given = [{"name": name, "args": args, "id": f"{name}-{number}"} for number, (name, args) in enumerate(wanted)]
    return AIMessage("", tool_calls=given)


class Agent:
    """An agent in a project, with a payment server at hand."""

    def __init__(self, ws: Workspace, payments: Payments, saver: Any = None, **options: Any) -> None:
        self.ws, self.payments = ws, payments
        undo: dict[str, Any] = {
            "charge": {"http": {"url": f"{payments.url}/v1/refunds", "json": {"charge": "{result.id}"}}}
        }
        undo |= {"charge_async": undo["charge"], "ask_first": {"command": ["true"]}}
        self.middleware = TakebackMiddleware(ws, undo=undo, **options)
        self.script: list[BaseMessage] = []
        self.together = threading.Barrier(2)
        self.saver, self.durability = saver, "sync"
        self.graph = create_agent(
            Scripted(messages=self._script()), self.tools(), middleware=[self.middleware], checkpointer=saver
        )

    def _script(self) -> Iterator[BaseMessage]:
        while True:
            yield self.script.pop(0)

    def tools(self) -> list[Any]:
        root, payments, together = Path(self.ws.root), self.payments, self.together

        @tool
        def write_file(path: str, text: str) -> str:
            """Writes a file."""
            (root / path).write_text(text)
            return "written"

        @tool
        def write_together(path: str, text: str) -> str:
            """Writes a file when another call is at the same point."""
            together.wait(20)
            (root / path).write_text(text)
            return "written"

        @tool
        def charge(amount: int) -> dict[str, Any]:
            """Charges a card."""
            body, kind = json.dumps({"amount": amount}).encode(), {"Content-Type": "application/json"}
            with urllib.request.urlopen(urllib.request.Request(f"{payments.url}/v1/charges", body, kind)) as answer:
                return json.load(answer)

        @tool
        async def charge_async(amount: int) -> dict[str, Any]:
            """Charges a card."""
            return await asyncio.to_thread(charge.func, amount)

        @tool
        def shell(command: str) -> str:
            """Runs a command."""
            (root / "ran").write_text(command)
            return "ran"

        @tool
        def fail(path: str) -> str:
            """Writes half a file and fails."""
            (root / path).write_text("half")
            raise RuntimeError("the disk is on fire")

        @tool
        def ask_first(path: str) -> str:
            """Asks a person, then writes."""
            (root / path).write_text(interrupt("really?"))
            return "written"

        return [write_file, write_together, charge, charge_async, shell, fail, ask_first]

    def config(self, thread: str = "t") -> Any:
        return {"configurable": {"thread_id": thread}}

    def asked(self, prompt: str, *says: BaseMessage, thread: str = "t") -> dict[str, Any]:
        self.script = [*says]
        given = {"messages": [HumanMessage(prompt)]}
        if self.saver is None:
            return self.graph.invoke(given)
        return self.graph.invoke(given, self.config(thread), durability=self.durability)

    def messages(self, thread: str = "t") -> list[BaseMessage]:
        return self.graph.get_state(self.config(thread)).values.get("messages", [])

    def texts(self, thread: str = "t") -> list[str]:
        return [message.text for message in self.messages(thread) if not isinstance(message, ToolMessage)]

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in Path(self.ws.root).iterdir()}


@pytest.fixture
def payments() -> Iterator[Payments]:
    with serving() as server:
        yield server


@pytest.fixture
def agent(ws: Workspace, payments: Payments) -> Iterator[Agent]:
    with TakebackSaver(ws) as saver:
        yield Agent(ws, payments, saver)


ORDER = (calls(("write_file", {"path": "order", "text": "a book"}), ("charge", {"amount": 20})), AIMessage("ordered"))


def test_a_turn_is_journaled_with_its_prompt_its_calls_and_where_the_conversation_stood(agent: Agent):
    agent.asked("order a book", *ORDER)
    history = agent.ws.history()
    (turn,) = history.agent_turns.values()
    assert (turn.prompt, turn.caller.agent, turn.caller.session) == ("order a book", "langgraph", "t")
    made = {b.call.tool: b for b in history.brackets.values() if b.call.tool in ("write_file", "charge")}
    assert set(made) == {"write_file", "charge"} and all(b.closed and not b.cut for b in made.values())
    assert all(b.call.thread == "t" for b in made.values())
    at = agent.graph.get_state({"configurable": {"thread_id": "t", "checkpoint_id": made["charge"].call.cursor}})
    assert [type(message).__name__ for message in at.values["messages"]] == ["HumanMessage", "AIMessage"]
    (act,) = agent.ws.effects()
    assert act.inverse is not None and act.inverse.args["json"] == {"charge": "ch_1"}


def test_undo_takes_back_messages_files_and_the_charge_and_redo_brings_back_what_can_be(agent: Agent):
    agent.asked("say hello", AIMessage("hello"))
    agent.asked("order a book", *ORDER)
    assert agent.texts() == ["say hello", "hello", "order a book", "", "ordered"]

    undone = agent.middleware.undo("t", YES)
    assert undone.message == "took back the turn 'order a book': order, charge(amount=20), the conversation"
    assert agent.texts() == ["say hello", "hello"]
    assert agent.files() == {} and agent.payments.ledger()["balance"] == 0

    redone = agent.middleware.redo()
    assert "order, the conversation" in redone.message
    assert agent.texts() == ["say hello", "hello", "order a book", "", "ordered"]
    assert agent.files() == {"order": "a book"} and agent.payments.ledger()["balance"] == 0


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_undo_stacks_down_to_an_empty_conversation(agent: Agent, durability: str):
    agent.durability = durability
    for number in (1, 2, 3):
        agent.asked(f"write {number}", calls(("write_file", {"path": f"f{number}", "text": "x"})), AIMessage("done"))
    assert agent.files() == {"f1": "x", "f2": "x", "f3": "x"}
    assert "'write 3'" in agent.middleware.undo().message
    assert agent.files() == {"f1": "x", "f2": "x"} and len(agent.messages()) == 8
    assert "'write 2'" in agent.middleware.undo().message
    assert agent.files() == {"f1": "x"} and len(agent.messages()) == 4
    agent.middleware.undo()
    assert agent.files() == {} and agent.messages() == []
    assert agent.middleware.undo().message == "nothing to take back"


@pytest.mark.parametrize("first", ["sync", "exit"])
def test_what_was_saved_only_at_the_end_goes_back_too(agent: Agent, first: str):
    agent.durability = first
    agent.asked("write one", calls(("write_file", {"path": "one", "text": "1"})), AIMessage("done"))
    agent.durability = "exit"
    agent.asked("order a book", *ORDER)
    told = agent.middleware.undo(approve=YES).message
    assert told == "took back the turn 'order a book': order, charge(amount=20), the conversation"
    assert agent.files() == {"one": "1"} and agent.payments.ledger()["balance"] == 0 and len(agent.messages()) == 4
    agent.middleware.redo()
    assert agent.files() == {"one": "1", "order": "a book"} and len(agent.messages()) == 9
    agent.middleware.undo()
    agent.asked("write two", calls(("write_file", {"path": "two", "text": "2"})), AIMessage("done"))
    assert agent.files() == {"one": "1", "two": "2"} and len(agent.messages()) == 8
    agent.middleware.undo()
    agent.middleware.undo()
    assert agent.files() == {} and agent.messages() == []


def test_redo_stacks_too(agent: Agent):
    for number in (1, 2):
        agent.asked(f"write {number}", calls(("write_file", {"path": f"f{number}", "text": "x"})), AIMessage("done"))
    agent.middleware.undo()
    agent.middleware.undo()
    agent.middleware.redo()
    assert agent.files() == {"f1": "x"} and len(agent.messages()) == 4
    agent.middleware.redo()
    assert agent.files() == {"f1": "x", "f2": "x"} and len(agent.messages()) == 8
    assert agent.middleware.redo().message == "nothing to bring back"


def test_a_turn_of_words_alone_is_undone_and_redone(agent: Agent):
    agent.asked("say hello", AIMessage("hello"))
    agent.asked("say goodbye", AIMessage("goodbye"))
    assert agent.middleware.undo().message == "took back the turn 'say goodbye': the conversation"
    assert agent.texts() == ["say hello", "hello"]
    agent.middleware.redo()
    assert agent.texts() == ["say hello", "hello", "say goodbye", "goodbye"]


def test_a_second_turn_after_an_undo_goes_on_from_there(agent: Agent):
    agent.asked("write one", calls(("write_file", {"path": "one", "text": "1"})), AIMessage("done"))
    agent.asked("write two", calls(("write_file", {"path": "two", "text": "2"})), AIMessage("done"))
    agent.middleware.undo()
    agent.asked("write three", calls(("write_file", {"path": "three", "text": "3"})), AIMessage("done"))
    assert [m.text for m in agent.messages() if isinstance(m, HumanMessage)] == ["write one", "write three"]
    assert agent.files() == {"one": "1", "three": "3"}
    assert "a new turn has begun since" in agent.middleware.redo().message
    agent.middleware.undo()
    assert [m.text for m in agent.messages() if isinstance(m, HumanMessage)] == ["write one"]
    assert agent.files() == {"one": "1"}


def test_a_turn_of_another_thread_and_what_a_person_did_stay(agent: Agent):
    agent.asked("mine", calls(("write_file", {"path": "mine", "text": "1"})), AIMessage("done"), thread="a")
    agent.asked("theirs", calls(("write_file", {"path": "theirs", "text": "2"})), AIMessage("done"), thread="b")
    (Path(agent.ws.root) / "notes").write_text("a person's")
    agent.middleware.undo("a")
    assert agent.files() == {"theirs": "2", "notes": "a person's"}
    assert agent.messages("a") == [] and len(agent.messages("b")) == 4
    agent.middleware.undo("b")
    agent.middleware.redo("a")
    assert agent.files() == {"mine": "1", "notes": "a person's"}
    assert len(agent.messages("a")) == 4 and agent.messages("b") == []


@pytest.mark.parametrize("approve", [None, lambda plan: False], ids=["nobody", "no"])
def test_without_a_yes_what_was_done_outside_stays_and_all_else_goes_back(agent: Agent, approve: Any):
    agent.asked("write one", calls(("write_file", {"path": "one", "text": "1"})), AIMessage("done"))
    agent.asked("order a book", *ORDER)
    told = agent.middleware.undo("t", approve).message
    charge = next(act for act in agent.ws.effects() if act.summary == "charge(amount=20)")
    name = f"charge(amount=20) ({charge.id[:8]})"
    assert f"'order a book': order, the conversation; not all of it: {name} stays: " in told
    assert agent.files() == {"one": "1"} and len(agent.messages()) == 4
    assert agent.middleware.undo("t", approve).message == "took back the turn 'write one': one, the conversation"
    assert agent.payments.ledger()["balance"] == 20 and agent.messages() == []
    told = agent.middleware.undo("t", YES).message
    assert told.startswith("nothing to take back; still there: charge(amount=20): takeback revert ")
    agent.middleware.redo()
    agent.middleware.redo()
    assert "'order a book': order, charge(amount=20), the conversation" in agent.middleware.undo("t", YES).message
    assert agent.payments.ledger()["balance"] == 0


def test_a_call_that_nothing_undoes_is_an_interrupt_that_a_person_answers(agent: Agent):
    paused = agent.asked("push", calls(("shell", {"command": "git push origin main"})), AIMessage("pushed"))
    (asked,) = paused["__interrupt__"]
    assert asked.value["type"] == "tool_approval" and asked.value["args"] == {"command": "git push origin main"}
    assert "cannot be called back" in asked.value["description"]
    assert agent.files() == {}
    done = agent.graph.invoke(Command(resume={"type": "approve"}), agent.config(), durability="sync")
    assert done["messages"][-1].text == "pushed" and agent.files() == {"ran": "git push origin main"}
    assert len(agent.ws.history().agent_turns) == 1


@pytest.mark.parametrize("answer", [{"type": "reject", "message": "not today"}, False, "approve", None])
def test_any_other_answer_is_a_no_that_the_model_reads(agent: Agent, answer: Any):
    agent.asked("push", calls(("shell", {"command": "git push origin main"})), AIMessage("I did not"))
    done = agent.graph.invoke(Command(resume=answer or {"type": "reject"}), agent.config(), durability="sync")
    refused = next(m for m in done["messages"] if isinstance(m, ToolMessage))
    assert refused.status == "error" and "cannot be called back" in refused.text
    assert agent.files() == {} and done["messages"][-1].text == "I did not"
    assert ("not today" in refused.text) == (isinstance(answer, dict))


def test_without_a_checkpointer_it_is_refused_and_the_world_is_taken_back_alone(ws: Workspace, payments: Payments):
    agent = Agent(ws, payments)
    push = calls(("shell", {"command": "git push"}), ("write_file", {"path": "a", "text": "1"}))
    done = agent.asked("push", push, AIMessage("no"))
    assert [m.status for m in done["messages"] if isinstance(m, ToolMessage)] == ["error", "success"]
    assert agent.files() == {"a": "1"}
    agent.script = [calls(("write_file", {"path": "b", "text": "2"})), AIMessage("done")]
    went_on = agent.graph.invoke({"messages": [*done["messages"], HumanMessage("more")]})["messages"]
    assert agent.middleware.undo().message == "took back the turn 'more': b"
    assert agent.files() == {"a": "1"}
    assert went_on[: int(agent.middleware.calls_of("").cursor)] == done["messages"]
    assert agent.middleware.undo().message == "took back the turn 'push': a"
    assert agent.files() == {} and agent.middleware.calls_of("").cursor == "0"


def test_approve_is_asked_where_it_is_given(ws: Workspace, payments: Payments):
    seen: list[Any] = []

    def approve(decision: Any, name: str, args: Any) -> bool:
        seen.append((name, dict(args)))
        return len(seen) > 1

    agent = Agent(ws, payments, approve=approve)
    push = calls(("shell", {"command": "git push"}))
    first = agent.asked("push", push, AIMessage("no"))
    assert [m.status for m in first["messages"] if isinstance(m, ToolMessage)] == ["error"] and agent.files() == {}
    agent.asked("push", push, AIMessage("yes"))
    assert agent.files() == {"ran": "git push"} and seen == [("shell", {"command": "git push"})] * 2


def test_a_tool_that_fails_is_journaled_as_failed_and_undone_with_its_turn(agent: Agent):
    agent.asked("say hello", AIMessage("hello"))
    with pytest.raises(RuntimeError, match="on fire"):
        agent.asked("burn", calls(("fail", {"path": "half"})), AIMessage("unreached"))
    assert [b.failed for b in agent.ws.history().brackets.values() if b.call.tool == "fail"] == [True]
    assert agent.files() == {"half": "half"}
    agent.middleware.undo()
    assert agent.files() == {} and agent.texts() == ["say hello", "hello"]


def test_last_in_the_list_it_sees_each_try_of_a_middleware_that_tries_again(ws: Workspace, payments: Payments):
    agent = Agent(ws, payments)
    retrying = ToolRetryMiddleware(max_retries=1, initial_delay=0, on_failure="continue")
    model = Scripted(messages=iter([calls(("fail", {"path": "half"})), AIMessage("it fails")]))
    graph = create_agent(model, agent.tools(), middleware=[retrying, agent.middleware])
    graph.invoke({"messages": [HumanMessage("burn")]})
    assert [b.failed for b in ws.history().brackets.values() if b.call.tool == "fail"] == [True, True]
    agent.middleware.undo()
    assert agent.files() == {}


def test_a_charge_that_fails_is_in_doubt(agent: Agent):
    agent.payments.misbehave("500")
    with pytest.raises(urllib.error.HTTPError):
        agent.asked("order", calls(("charge", {"amount": 20})), AIMessage("unreached"))
    (act,) = agent.ws.effects()
    assert act.shown_state == "unknown"


def test_an_interrupt_of_a_tools_own_leaves_no_doubt_and_goes_on(agent: Agent):
    paused = agent.asked("ask", calls(("ask_first", {"path": "answer"})), AIMessage("done"))
    assert paused["__interrupt__"][0].value == "really?"
    assert [act.shown_state for act in agent.ws.effects()] == ["failed"]
    agent.graph.invoke(Command(resume="yes"), agent.config(), durability="sync")
    assert agent.files() == {"answer": "yes"}
    assert sorted(act.shown_state for act in agent.ws.effects()) == ["failed", "live"]
    agent.middleware.undo(approve=YES)
    assert agent.files() == {} and agent.messages() == []


def test_parallel_calls_are_both_the_turns(agent: Agent):
    both = calls(("write_together", {"path": "a", "text": "1"}), ("write_together", {"path": "b", "text": "2"}))
    agent.asked("write both", both, AIMessage("done"))
    assert agent.files() == {"a": "1", "b": "2"}
    agent.middleware.undo()
    assert agent.files() == {} and agent.messages() == []


def test_what_an_agent_in_a_tool_does_is_part_of_the_turn(ws: Workspace, payments: Payments):
    with TakebackSaver(ws) as saver:
        inner = Agent(ws, payments)
        inner.script = [calls(("write_file", {"path": "inner", "text": "1"})), AIMessage("inner done")]

        @tool
        def delegate(task: str) -> str:
            """Has another agent do it."""
            return inner.graph.invoke({"messages": [HumanMessage(task)]})["messages"][-1].text

        outer = inner.middleware
        model = Scripted(messages=iter([calls(("delegate", {"task": "write"})), AIMessage("done")]))
        graph = create_agent(model, [delegate], middleware=[outer], checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        graph.invoke({"messages": [HumanMessage("have it written")]}, config, durability="sync")
        assert [turn.prompt for turn in ws.history().agent_turns.values()] == ["have it written"]
        lanes = {b.call.tool: bool(b.caller.lane) for b in ws.history().brackets.values()}
        assert lanes["delegate"] is False and lanes["write_file"] is True
        outer.undo("t")
        assert inner.files() == {} and graph.get_state(config).values.get("messages", []) == []


def test_the_async_twins(ws: Workspace, payments: Payments):
    async def run() -> None:
        async with TakebackSaver(ws) as saver:
            agent = Agent(ws, payments, saver)
            both = calls(("write_file", {"path": "a", "text": "1"}), ("charge_async", {"amount": 20}))
            agent.script = [both, AIMessage("done")]
            given = {"messages": [HumanMessage("order")]}
            await agent.graph.ainvoke(given, agent.config(), durability="sync")
            assert payments.ledger()["balance"] == 20 and agent.files() == {"a": "1"}

            await agent.middleware.aundo("t", YES)
            state = await agent.graph.aget_state(agent.config())
            assert state.values.get("messages", []) == []
            assert payments.ledger()["balance"] == 0 and agent.files() == {}

            await agent.middleware.aredo()
            state = await agent.graph.aget_state(agent.config())
            assert len(state.values["messages"]) == 5 and agent.files() == {"a": "1"}

            agent.script = [calls(("shell", {"command": "git push"})), AIMessage("done")]
            await agent.graph.ainvoke({"messages": [HumanMessage("push")]}, agent.config(), durability="sync")
            done = await agent.graph.ainvoke(Command(resume={"type": "approve"}), agent.config(), durability="sync")
            assert done["messages"][-1].text == "done" and agent.files()["ran"] == "git push"

    asyncio.run(run())


def test_an_undo_survives_a_restart(project: Path, payments: Payments):
    with takeback.open(project, create=True) as ws, TakebackSaver(ws) as saver:
        Agent(ws, payments, saver).asked("order a book", *ORDER)
    with takeback.open(project) as ws, TakebackSaver(ws) as saver:
        agent = Agent(ws, payments, saver)
        agent.middleware.undo("t", YES)
        assert agent.messages() == [] and agent.files() == {} and payments.ledger()["balance"] == 0


def test_turned_off_it_stands_aside(project: Path, payments: Payments, monkeypatch: pytest.MonkeyPatch):
    with takeback.open(project, create=True):
        pass
    monkeypatch.setenv("TAKEBACK", "off")
    with takeback.open(project) as ws:
        agent = Agent(ws, payments)
        agent.asked("order a book", *ORDER)
        assert agent.files() == {"order": "a book"} and ws.effects() == []
        assert agent.middleware.undo().message == "takeback is off; nothing was taken back"


def test_a_bad_undo_is_said_when_it_is_declared(ws: Workspace):
    with pytest.raises(takeback.UsageError, match="which server"):
        TakebackMiddleware(ws, undo={"charge": {"http": {"url": "{result.url}"}}})


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    monkeypatch.delitem(sys.modules, "takeback.integrations.langchain")
    with pytest.raises(ImportError, match=r"\[langchain\]"):
        import takeback.integrations.langchain  # noqa: F401


def test_the_example_runs(tmp_path: Path):
    example = Path(__file__).parents[2] / "examples" / "langchain_undo.py"
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["report.md is gone", "refunded: ch_1", "messages: 0"]
