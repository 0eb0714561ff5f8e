"""Pydantic AI's agents: real runs with scripted models, tools that write files and call a server, undone in one call."""

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

pytest.importorskip("pydantic_ai", reason="needs the dependency group `integrations`")

from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ModelRetry, ToolDenied
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import takeback
from servers.payments import Payments, serving
from takeback.integrations.pydantic_ai import Takeback, TakebackConversations
from takeback.workspace import Workspace

YES = lambda plan: True
_DEFERS = [str, DeferredToolRequests]


def calls(*wanted: tuple[str, dict[str, Any]]) -> ModelResponse:
    return ModelResponse([ToolCallPart(name, args, f"{name}-{number}") for number, (name, args) in enumerate(wanted)])


def says(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)])


class Agent:
    """An agent in a project, with a payment server at hand."""

    def __init__(
        self,
        ws: Workspace,
        payments: Payments,
        output: Any = _DEFERS,
        also: Any = (),
        is_first: bool = True,
        **options: Any,
    ) -> None:
        self.ws, self.payments = ws, payments
        undo = {"charge": {"http": {"url": f"{payments.url}/v1/refunds", "json": {"charge": "{result.id}"}}}}
        self.takeback = Takeback(ws, undo=undo, **options)
        self.script: list[ModelResponse] = []
        self.seen: list[list[ModelMessage]] = []
        self.together = threading.Barrier(2)

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            self.seen.append([*messages])
            return self.script.pop(0)

        capabilities = [self.takeback, *also] if is_first else [*also, self.takeback]
        self.agent: Any = PydanticAgent(FunctionModel(answer), output_type=output, capabilities=capabilities)
        self._tools()

    def _tools(self) -> None:
        root, payments, together = Path(self.ws.root), self.payments, self.together

        @self.agent.tool_plain
        def write_file(path: str, text: str) -> str:
            (root / path).write_text(text)
            return "written"

        @self.agent.tool_plain
        def write_together(path: str, text: str) -> str:
            together.wait(20)
            (root / path).write_text(text)
            return "written"

        @self.agent.tool_plain
        def charge(amount: int) -> dict[str, Any]:
            body, kind = json.dumps({"amount": amount}).encode(), {"Content-Type": "application/json"}
            with urllib.request.urlopen(urllib.request.Request(f"{payments.url}/v1/charges", body, kind)) as answer:
                return json.load(answer)

        @self.agent.tool_plain
        def shell(command: str) -> str:
            (root / "ran").write_text(command)
            return "ran"

        @self.agent.tool_plain
        def fail(path: str) -> str:
            (root / path).write_text("half")
            raise RuntimeError("the disk is on fire")

        @self.agent.tool_plain(retries=3)
        def again(path: str) -> str:
            (root / path).write_text("tried")
            raise ModelRetry("try something else")

        @self.agent.tool_plain(requires_approval=True)
        def careful(path: str) -> str:
            (root / path).write_text("approved")
            return "written"

    def asked(self, prompt: str | None, *script: ModelResponse, **how: Any) -> Any:
        self.script = [*script]
        how.setdefault("conversation", self.takeback.conversation())
        return self.agent.run_sync(prompt, **how)

    def prompts(self, conversation_id: str = "") -> list[Any]:
        messages = self.takeback.conversation(conversation_id).messages
        return [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)]

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in Path(self.ws.root).iterdir()}


def returned(result: Any) -> list[tuple[str, str, Any]]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [(p.tool_name, p.outcome, p.content) for p in parts if isinstance(p, ToolReturnPart)]


@pytest.fixture
def payments() -> Iterator[Payments]:
    with serving() as server:
        yield server


@pytest.fixture
def agent(ws: Workspace, payments: Payments) -> Agent:
    return Agent(ws, payments)


ORDER = (calls(("write_file", {"path": "order", "text": "a book"}), ("charge", {"amount": 20})), says("ordered"))


def write(name: str, text: str = "x") -> tuple[ModelResponse, ModelResponse]:
    return calls(("write_file", {"path": name, "text": text})), says("done")


def test_a_turn_is_journaled_with_its_prompt_its_calls_and_where_the_conversation_stood(agent: Agent):
    agent.asked("say hello", says("hello"))
    agent.asked("order a book", *ORDER)
    history = agent.ws.history()
    turns = [*history.agent_turns.values()]
    assert [turn.prompt for turn in turns] == ["say hello", "order a book"]
    assert {(turn.caller.agent, turn.caller.session) for turn in turns} == {("pydantic-ai", "main")}
    made = {b.call.tool: b for b in history.brackets.values() if b.call.tool in ("write_file", "charge")}
    assert set(made) == {"write_file", "charge"} and all(b.closed and not b.cut for b in made.values())
    assert {(b.call.thread, b.call.cursor) for b in made.values()} == {("main", "4")}
    (act,) = agent.ws.effects()
    assert act.inverse is not None and act.inverse.args["json"] == {"charge": "ch_1"}


def test_undo_takes_back_messages_files_and_the_charge_and_redo_brings_back_what_can_be(agent: Agent):
    agent.asked("say hello", says("hello"))
    agent.asked("order a book", *ORDER)
    before = agent.takeback.conversation()
    assert agent.prompts() == ["say hello", "order a book"] and len(before.messages) == 6

    undone = agent.takeback.undo(approve=YES)
    assert undone.message == "took back the turn 'order a book': order, charge(amount=20), the conversation"
    assert agent.prompts() == ["say hello"]
    assert agent.files() == {} and agent.payments.ledger()["balance"] == 0

    redone = agent.takeback.redo()
    assert "order, the conversation" in redone.message
    assert agent.takeback.conversation() == before
    assert agent.files() == {"order": "a book"} and agent.payments.ledger()["balance"] == 0


def test_undo_and_redo_stack(agent: Agent):
    for number in (1, 2):
        agent.asked(f"write {number}", *write(f"f{number}"))
    agent.takeback.undo()
    assert agent.files() == {"f1": "x"} and agent.prompts() == ["write 1"]
    agent.takeback.undo()
    assert agent.files() == {} and agent.prompts() == []
    assert agent.takeback.undo().message == "nothing to take back"
    agent.takeback.redo()
    assert agent.files() == {"f1": "x"} and agent.prompts() == ["write 1"]
    agent.takeback.redo()
    assert agent.files() == {"f1": "x", "f2": "x"} and agent.prompts() == ["write 1", "write 2"]
    assert agent.takeback.redo().message == "nothing to bring back"
    agent.takeback.undo()
    assert agent.files() == {"f1": "x"} and agent.prompts() == ["write 1"]


def test_a_turn_of_words_alone_is_undone_and_redone(agent: Agent):
    agent.asked("say hello", says("hello"))
    agent.asked("say goodbye", says("goodbye"))
    assert agent.takeback.undo().message == "took back the turn 'say goodbye': the conversation"
    assert agent.prompts() == ["say hello"]
    agent.takeback.redo()
    assert agent.prompts() == ["say hello", "say goodbye"]


def test_a_second_turn_after_an_undo_goes_on_from_there(agent: Agent):
    agent.asked("write one", *write("one"))
    agent.asked("write two", *write("two"))
    agent.takeback.undo()
    agent.asked("write three", *write("three"))
    seen = [part.content for m in agent.seen[-1] for part in m.parts if isinstance(part, UserPromptPart)]
    assert seen == agent.prompts() == ["write one", "write three"]
    assert agent.files() == {"one": "x", "three": "x"}
    assert "a new turn has begun since" in agent.takeback.redo().message
    assert "'write three'" in agent.takeback.undo().message
    assert agent.files() == {"one": "x"} and agent.prompts() == ["write one"]
    assert "'write one'" in agent.takeback.undo().message
    assert agent.files() == {} and agent.prompts() == []


def test_another_conversation_and_what_a_person_did_stay(agent: Agent):
    agent.asked("mine", *write("mine"), conversation=agent.takeback.conversation("a"))
    agent.asked("theirs", *write("theirs"), conversation=agent.takeback.conversation("b"))
    (Path(agent.ws.root) / "notes").write_text("a person's")
    agent.takeback.undo("a")
    assert agent.files() == {"theirs": "x", "notes": "a person's"}
    assert agent.prompts("a") == [] and agent.prompts("b") == ["theirs"]
    agent.takeback.undo("b")
    agent.takeback.redo("a")
    assert agent.files() == {"mine": "x", "notes": "a person's"}
    assert agent.prompts("a") == ["mine"] and agent.prompts("b") == []


@pytest.mark.parametrize("approve", [None, lambda plan: False], ids=["nobody", "no"])
def test_without_a_yes_what_was_done_outside_stays_and_all_else_goes_back(agent: Agent, approve: Any):
    agent.asked("write one", *write("one"))
    agent.asked("order a book", *ORDER)
    told = agent.takeback.undo(approve=approve).message
    charge = next(act for act in agent.ws.effects() if act.summary == "charge(amount=20)")
    name = f"charge(amount=20) ({charge.id[:8]})"
    assert f"'order a book': order, the conversation; not all of it: {name} stays: " in told
    assert agent.files() == {"one": "x"} and agent.prompts() == ["write one"]
    assert agent.takeback.undo(approve=approve).message == "took back the turn 'write one': one, the conversation"
    assert agent.payments.ledger()["balance"] == 20 and agent.prompts() == []
    told = agent.takeback.undo(approve=YES).message
    assert told.startswith("nothing to take back; still there: charge(amount=20): takeback revert ")
    agent.takeback.redo()
    agent.takeback.redo()
    assert "'order a book': order, charge(amount=20), the conversation" in agent.takeback.undo(approve=YES).message
    assert agent.payments.ledger()["balance"] == 0


def test_a_call_that_nothing_undoes_is_deferred_and_goes_on_in_the_same_turn(agent: Agent):
    push = calls(("shell", {"command": "git push origin main"}), ("write_file", {"path": "a", "text": "1"}))
    paused = agent.asked("push", push)
    assert isinstance(paused.output, DeferredToolRequests)
    (asked,) = paused.output.approvals
    assert "cannot be called back" in paused.output.metadata[asked.tool_call_id]["reason"]
    assert agent.files() == {"a": "1"}

    kept = agent.takeback.conversation()
    assert kept.deferred_tool_requests == paused.output
    yes = DeferredToolResults(approvals={asked.tool_call_id: True})
    done = agent.asked(None, says("pushed"), deferred_tool_results=yes, conversation=kept)
    assert done.output == "pushed" and agent.files() == {"a": "1", "ran": "git push origin main"}
    assert len(agent.ws.history().agent_turns) == 1
    (act,) = agent.ws.effects()
    assert act.verdict == "irreversible"

    undone = agent.takeback.undo(approve=YES)
    assert agent.files() == {} and agent.prompts() == []
    assert "not all of it" in undone.message


def test_a_no_is_what_the_model_reads(agent: Agent):
    paused = agent.asked("push", calls(("shell", {"command": "git push"})))
    no = DeferredToolResults(approvals={paused.output.approvals[0].tool_call_id: ToolDenied("not today")})
    done = agent.asked(None, says("I did not"), deferred_tool_results=no)
    assert returned(done) == [("shell", "denied", "not today")] and agent.files() == {}


def test_who_handles_what_is_deferred_is_asked_in_the_run(ws: Workspace, payments: Payments):
    def handle(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
        return requests.build_results(approve_all=True)

    agent = Agent(ws, payments, output=str, also=[HandleDeferredToolCalls(handle)])
    done = agent.asked("push", calls(("shell", {"command": "git push"})), says("pushed"))
    assert done.output == "pushed" and agent.files() == {"ran": "git push"}


def test_an_agent_that_cannot_defer_is_refused(ws: Workspace, payments: Payments):
    agent = Agent(ws, payments, output=str)
    done = agent.asked("push", calls(("shell", {"command": "git push"})), says("I could not"))
    ((name, outcome, told),) = returned(done)
    assert (name, outcome) == ("shell", "failed") and "cannot be called back" in told
    assert done.output == "I could not" and agent.files() == {}


def test_approve_is_asked_where_it_is_given(ws: Workspace, payments: Payments):
    answers = [False, True]
    agent = Agent(ws, payments, approve=lambda decision, name, args: answers.pop(0))
    first = agent.asked("push", calls(("shell", {"command": "git push"})), says("no"))
    assert [outcome for _, outcome, _ in returned(first)] == ["failed"] and agent.files() == {}
    agent.asked("push", calls(("shell", {"command": "git push"})), says("yes"))
    assert agent.files() == {"ran": "git push"} and answers == []


class Rewriting(AbstractCapability[Any]):
    """Puts other arguments in the place of those that the model gave."""

    def __init__(self, **other: Any) -> None:
        self.other = other

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        return {**args, **self.other}


@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_judged_is_what_the_tool_gets(ws: Workspace, payments: Payments, is_first: bool):
    agent = Agent(ws, payments, output=str, also=[Rewriting(command="git push")], is_first=is_first)
    done = agent.asked("list", calls(("shell", {"command": "ls"})), says("I could not"))
    assert [outcome for _, outcome, _ in returned(done)] == ["failed"] and agent.files() == {}


def test_a_tool_that_is_approved_by_the_application_itself(agent: Agent):
    paused = agent.asked("careful", calls(("careful", {"path": "a"})))
    assert [c.tool_name for c in paused.output.approvals] == ["careful"]
    yes = DeferredToolResults(approvals={paused.output.approvals[0].tool_call_id: True})
    agent.asked(None, says("done"), deferred_tool_results=yes)
    assert agent.files() == {"a": "approved"}
    agent.takeback.undo()
    assert agent.files() == {} and agent.prompts() == []


def test_a_tool_that_fails_is_journaled_as_failed_and_undone_with_its_turn(agent: Agent):
    agent.asked("say hello", says("hello"))
    with pytest.raises(RuntimeError, match="on fire"):
        agent.asked("burn", calls(("fail", {"path": "half"})))
    assert [b.failed for b in agent.ws.history().brackets.values() if b.call.tool == "fail"] == [True]
    assert agent.files() == {"half": "half"} and agent.prompts() == ["say hello"]
    undone = agent.takeback.undo()
    assert "'burn'" in undone.message
    assert agent.files() == {} and agent.prompts() == ["say hello"]
    agent.takeback.undo()
    assert agent.prompts() == []


def test_a_tool_that_is_tried_again_is_one_call_each_time(agent: Agent):
    twice = calls(("again", {"path": "a"})), calls(("again", {"path": "b"}))
    agent.asked("try", *twice, says("gave up"))
    made = [b for b in agent.ws.history().brackets.values() if b.call.tool == "again"]
    assert [b.failed for b in made] == [True, True]
    agent.takeback.undo()
    assert agent.files() == {}


def test_a_charge_that_fails_is_in_doubt(agent: Agent):
    agent.payments.misbehave("500")
    with pytest.raises(urllib.error.HTTPError):
        agent.asked("order", calls(("charge", {"amount": 20})))
    (act,) = agent.ws.effects()
    assert act.shown_state == "unknown"


def test_parallel_calls_are_both_the_turns(agent: Agent):
    both = calls(("write_together", {"path": "a", "text": "1"}), ("write_together", {"path": "b", "text": "2"}))
    agent.asked("write both", both, says("done"))
    assert agent.files() == {"a": "1", "b": "2"}
    agent.takeback.undo()
    assert agent.files() == {} and agent.prompts() == []


def test_the_async_twins_and_the_packages_own_test_model(ws: Workspace, payments: Payments):
    capability = Takeback(ws)
    agent: Any = PydanticAgent(TestModel(call_tools=["write_file"]), capabilities=[capability])

    @agent.tool_plain
    async def write_file(path: str) -> str:
        (Path(ws.root) / path).write_text("x")
        return "written"

    async def run() -> None:
        await agent.run("write", conversation=await capability.aconversation())
        assert [p.name for p in Path(ws.root).iterdir()] == ["a"]
        await capability.aundo()
        assert [*Path(ws.root).iterdir()] == [] and (await capability.aconversation()).messages == []
        await capability.aredo()
        assert len((await capability.aconversation()).messages) == 4
        async with agent.iter("write again", conversation=await capability.aconversation()) as going:
            async for _ in going:
                pass
        assert len((await capability.aconversation()).messages) == 6
        await capability.aundo()
        assert len((await capability.aconversation()).messages) == 4
        assert capability.conversation() == await capability.aconversation()  # in a loop that runs

    asyncio.run(run())


def test_an_undo_survives_a_restart(project: Path, payments: Payments):
    with takeback.open(project, create=True) as ws:
        Agent(ws, payments).asked("order a book", *ORDER)
    with takeback.open(project) as ws:
        agent = Agent(ws, payments)
        assert agent.prompts() == ["order a book"]
        agent.takeback.undo(approve=YES)
        assert agent.prompts() == [] and agent.files() == {} and payments.ledger()["balance"] == 0
    with takeback.open(project) as ws:
        agent = Agent(ws, payments)
        agent.takeback.redo()
        assert agent.prompts() == ["order a book"] and agent.files() == {"order": "a book"}


def test_runs_that_bring_their_own_history_are_saved_as_the_model_saw_them(agent: Agent):
    first = agent.asked("one", says("1"))
    agent.asked("two", says("2"))
    agent.asked("other two", says("2b"), conversation=None, message_history=first.all_messages())
    assert agent.prompts() == ["one", "other two"]
    agent.asked("on my own", says("3"), conversation=None)
    assert agent.prompts() == ["on my own"]
    agent.takeback.undo()
    assert agent.prompts() == ["one", "other two"]


def test_going_on_with_a_conversation_that_was_undone_keeps_what_the_model_saw(agent: Agent):
    agent.asked("one", says("1"))
    stale = agent.asked("two", says("2")).conversation
    agent.takeback.undo()
    agent.asked("three", says("3"), conversation=stale)
    assert agent.prompts() == ["one", "two", "three"]


def test_the_application_may_save_by_itself_too(agent: Agent):
    result = agent.asked("one", *write("one"))
    asyncio.run(agent.takeback.conversations.save(result))
    agent.takeback.undo()
    assert agent.prompts() == [] and agent.files() == {}


def test_turned_off_it_stands_aside(project: Path, payments: Payments, monkeypatch: pytest.MonkeyPatch):
    with takeback.open(project, create=True):
        pass
    monkeypatch.setenv("TAKEBACK", "off")
    with takeback.open(project) as ws:
        agent = Agent(ws, payments)
        done = agent.asked("order a book", *ORDER)
        assert done.output == "ordered" and agent.files() == {"order": "a book"} and ws.effects() == []
        assert agent.prompts() == []
        assert agent.takeback.undo().message == "takeback is off; nothing was taken back"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "takeback.integrations.pydantic_ai")
    with pytest.raises(ImportError, match=r"\[pydantic-ai\]"):
        import takeback.integrations.pydantic_ai  # noqa: F401


# -- the store of conversations ----------------------------------------------------


def request(text: str) -> ModelMessage:
    return ModelRequest([UserPromptPart(text)])


def response(text: str) -> ModelMessage:
    return ModelResponse([TextPart(text)])


class TestConversations:
    @pytest.fixture
    def store(self, ws: Workspace) -> TakebackConversations:
        return TakebackConversations(ws)

    def test_what_is_saved_is_loaded_by_another_process(self, project: Path, store: TakebackConversations):
        talk = Conversation(messages=[request("a"), response("b")], conversation_id="c")
        saved = asyncio.run(store.save(talk, scope="ada"))
        with takeback.open(project) as again:
            other = TakebackConversations(again)
            assert asyncio.run(other.load("c")) == talk
            assert asyncio.run(other.load("c", limit=1)).messages == talk.messages[1:]
            assert asyncio.run(other.load("c", scope="bob")) is None
            assert asyncio.run(other.load("none")) is None
            assert asyncio.run(other.read_entry(saved[0].id)) == saved[0]
            assert [e.id for e in asyncio.run(other.load_entries("c"))] == [e.id for e in saved]
            with pytest.raises(KeyError):
                asyncio.run(other.read_entry("unknown"))

    def test_two_writers_on_one_head(self, store: TakebackConversations):
        async def run() -> None:
            await store.save(Conversation(messages=[request("a")], conversation_id="c"))
            one, two = await store.load("c"), await store.load("c")
            one.messages.append(response("one"))
            two.messages.append(response("two"))
            await store.save(one)
            with pytest.raises(ConversationConflict):
                await store.save(two)
            with pytest.raises(ConversationConflict):
                await store.save(Conversation(messages=[request("b")], conversation_id="c"))
            assert (await store.load("c")).messages == one.messages

        asyncio.run(run())

    def test_branch_and_back(self, store: TakebackConversations):
        async def run() -> None:
            talk = Conversation(
                messages=[request("a"), response("b"), request("c"), response("d")], conversation_id="c"
            )
            entries = await store.save(talk)
            branch = await store.branch("c", at=2, expected_revision=talk.revision)
            assert branch.messages == talk.messages[:2]
            branch.messages += [request("e"), response("f")]
            await store.save(branch)
            assert (await store.load("c")).messages == branch.messages
            back = await store.branch("c", from_entry=entries[-1].id, expected_revision=branch.revision)
            assert back.messages == talk.messages
            with pytest.raises(UserError):
                await store.branch("none", at=0, expected_revision=None)

        asyncio.run(run())

    def test_a_fork_outlives_what_it_was_made_from(self, store: TakebackConversations):
        async def run() -> None:
            talk = Conversation(messages=[request("a"), response("b"), request("c")], conversation_id="c")
            await store.save(talk)
            fork = await store.fork("c", at=2, new_conversation_id="f")
            with pytest.raises(ConversationConflict):
                await store.fork("c", new_conversation_id="f")
            await store.delete("c")
            assert await store.load("c") is None
            fork.messages.append(request("on"))
            await store.save(fork)
            found = await TakebackConversations(store.workspace).load("f")
            assert found.messages == [*talk.messages[:2], fork.messages[-1]]
            assert [r.conversation_id for r in await store.list_conversations()] == ["f"]
            assert (await store.list_conversations())[0].forked_from == "c"
            await store.save(Conversation(messages=[request("new")], conversation_id="c"))
            assert len((await store.load("c")).messages) == 1

        asyncio.run(run())

    def test_listing_is_by_scope_newest_first(self, store: TakebackConversations):
        async def run() -> None:
            for name, scope in (("a", "ada"), ("b", "bob"), ("c", "ada")):
                await store.save(Conversation(messages=[request(name)], conversation_id=name), scope=scope)
            store.workspace.threads.save("not ours", {"messages": []})
            assert [r.conversation_id for r in await store.list_conversations()] == ["c", "b", "a"]
            assert [r.conversation_id for r in await store.list_conversations(scope="ada")] == ["c", "a"]
            assert [r.conversation_id for r in await store.list_conversations(limit=1)] == ["c"]
            assert all(checked.ok for checked in store.workspace.threads.verify())

        asyncio.run(run())


def test_a_conversation_that_others_keep_moving_is_said(ws: Workspace, monkeypatch: pytest.MonkeyPatch):
    store = TakebackConversations(ws)
    read = store._state

    def moved(conversation_id: str) -> Any:
        found = read(conversation_id)
        ws.threads.save(conversation_id, {"n": ws.store.journal.head().seq})
        return found

    monkeypatch.setattr(store, "_state", moved)
    with pytest.raises(takeback.TakebackError, match="conversation c keeps moving"):
        store.turn("c", "begun")


def test_the_example_runs(tmp_path: Path):
    example = Path(__file__).parents[2] / "examples" / "pydantic_ai_undo.py"
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["report.md is gone", "refunded: ch_1", "messages: 0"]
