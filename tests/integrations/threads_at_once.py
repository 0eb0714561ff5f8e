"""Several threads and a person in one folder, the same for every adapter: what a thread's take-back takes is what that
thread did. Run with the name of an adapter, a folder and the payment server's URL: one line of JSON for each case.

A process of its own for each, as the package of one SDK is called like a folder of these tests."""

from __future__ import annotations

import asyncio
import json
import operator
import os
import queue
import sys
import threading
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import takeback
from takeback.config.policy import Policy
from takeback.domains.files import Files
from takeback.workspace import Workspace

FREE = Policy({"http.compensating": "allow"})
SHOP = ""
TASKS: dict[str, Callable[[], None]] = {}  # what a tool is to do, by the name that it is called with


def do(task: str) -> str:
    TASKS[task]()
    return "done"


class Adapter:
    """What every adapter can do: run one turn of a thread, in which a tool or a node does something, and take the last
    turn of a thread back."""

    names_paths = True  # a tool that writes says which path

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws

    def run(self, thread: str, work: Callable[[], None], path: str = "") -> None:
        """Also from several threads of the program at once. With a path the tool names it."""
        task = f"{thread}-{len(TASKS)}"
        TASKS[task] = work
        self.ask(thread, task, path)

    def ask(self, thread: str, task: str, path: str) -> None:
        raise NotImplementedError

    def undo(self, thread: str) -> str:
        """What is said of it."""
        raise NotImplementedError

    def remembers(self, thread: str) -> int:
        """How much the thread holds."""
        raise NotImplementedError


class Work(TypedDict):
    done: Annotated[list[str], operator.add]
    task: str


class LangGraph(Adapter):
    names_paths = False
    anyway = False

    def __init__(self, ws: Workspace) -> None:
        from langgraph.graph import START, StateGraph

        from takeback.integrations.langgraph import TakebackSaver

        super().__init__(ws)
        self.saver = TakebackSaver(ws)
        builder: Any = StateGraph(Work)
        builder.add_node("work", lambda state: {"done": [do(state["task"])]})
        builder.add_edge(START, "work")
        self.graph = builder.compile(checkpointer=self.saver)

    def config(self, thread: str) -> Any:
        return {"configurable": {"thread_id": thread}}

    def ask(self, thread: str, task: str, path: str) -> None:
        self.graph.invoke({"done": ["asked"], "task": task}, self.config(thread), durability="sync")

    def undo(self, thread: str) -> str:
        for state in self.graph.get_state_history(self.config(thread)):
            if state.metadata["source"] == "input" and state.created_at not in self.undone(thread):
                self.undone(thread).add(state.created_at)
                to = (state.parent_config or state.config)["configurable"]["checkpoint_id"]
                try:
                    return str(self.saver.rollback_to(thread, to, with_files=True, anyway=self.anyway).message)
                except takeback.TakebackError as error:
                    return f"{error.message}; {error.hint}"
        return "nothing"

    def undone(self, thread: str) -> set[Any]:
        found: set[Any] = self.__dict__.setdefault(f"undone-{thread}", set())
        return found

    def remembers(self, thread: str) -> int:
        return len(self.graph.get_state(self.config(thread)).values.get("done", ()))


class AwaitedLangGraph(LangGraph):
    def ask(self, thread: str, task: str, path: str) -> None:
        given = {"done": ["asked"], "task": task}
        asyncio.run(self.graph.ainvoke(given, self.config(thread), durability="sync"))


class LangChain(Adapter):
    saves = True

    def __init__(self, ws: Workspace) -> None:
        from langchain.agents import create_agent
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
        from langchain_core.outputs import ChatGeneration, ChatResult
        from langgraph.checkpoint.memory import InMemorySaver

        from takeback.integrations.langchain import TakebackMiddleware
        from takeback.integrations.langgraph import TakebackSaver

        class Scripted(GenericFakeChatModel):
            """Calls the tool that it is asked for, once."""

            def bind_tools(self, tools: Any, **more: Any) -> Any:
                return self

            def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
                if isinstance(messages[-1], ToolMessage):
                    said = AIMessage("done")
                else:
                    asked = json.loads(messages[-1].text)
                    said = AIMessage("", tool_calls=[{**asked, "id": f"call-{asked['args']['task']}"}])
                return ChatResult(generations=[ChatGeneration(message=said)])

        super().__init__(ws)
        self.middleware = TakebackMiddleware(ws, undo={"work": None, "write_file": None})
        saver = TakebackSaver(ws) if self.saves else InMemorySaver()
        self.agent: Any = create_agent(
            Scripted(messages=iter(())), [write_file, work], middleware=[self.middleware], checkpointer=saver
        )

    def config(self, thread: str) -> Any:
        return {"configurable": {"thread_id": thread}}

    def ask(self, thread: str, task: str, path: str) -> None:
        given = {"messages": [{"role": "user", "content": asked(task, path)}]}
        self.agent.invoke(given, self.config(thread), durability="sync")

    def undo(self, thread: str) -> str:
        return self.middleware.undo(thread).message

    def remembers(self, thread: str) -> int:
        if not self.saves:  # whoever keeps it cuts it, by this
            return int(self.middleware.calls_of(thread).cursor or 0)
        return len(self.agent.get_state(self.config(thread)).values.get("messages", ()))


class LangChainAlone(LangChain):
    """Its conversation is kept elsewhere."""

    saves = False

    def remembers(self, thread: str) -> int:
        return 0


class PydanticAI(Adapter):
    def __init__(self, ws: Workspace) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart
        from pydantic_ai.models.function import FunctionModel

        from takeback.integrations.pydantic_ai import Takeback

        def answer(messages: list[Any], _: Any) -> ModelResponse:
            part = messages[-1].parts[-1]
            if not isinstance(part, UserPromptPart):
                return ModelResponse([TextPart("done")])
            wanted = json.loads(str(part.content))
            return ModelResponse([ToolCallPart(wanted["name"], wanted["args"], f"call-{wanted['args']['task']}")])

        super().__init__(ws)
        self.takeback = Takeback(ws, undo={"work": None, "write_file": None})
        self.agent: Any = Agent(FunctionModel(answer), tools=[write_file, work], capabilities=[self.takeback])

    def ask(self, thread: str, task: str, path: str) -> None:
        self.agent.run_sync(asked(task, path), conversation=self.takeback.conversation(thread))

    def undo(self, thread: str) -> str:
        return self.takeback.undo(thread).message

    def remembers(self, thread: str) -> int:
        return len(self.takeback.conversation(thread).messages)


class OpenAIAgents(Adapter):
    def __init__(self, ws: Workspace) -> None:
        from takeback.integrations.openai_agents import TakebackSession

        super().__init__(ws)
        self._sessions: dict[str, TakebackSession] = {}

    def session(self, thread: str) -> Any:
        from takeback.integrations.openai_agents import TakebackSession

        made = TakebackSession(thread, self.ws, undo={"work": None, "write_file": None})
        return self._sessions.setdefault(thread, made)

    def ask(self, thread: str, task: str, path: str) -> None:
        from agents.testing import ScriptedModel, assistant_message, function_call

        from agents import Agent, Runner, function_tool, set_tracing_disabled
        from takeback.integrations.openai_agents import protect

        set_tracing_disabled(True)
        wanted, session = json.loads(asked(task, path)), self.session(thread)
        script = [[function_call(wanted["name"], wanted["args"], call_id=f"call-{task}")], [assistant_message("done")]]
        tools: list[Any] = [function_tool(write_file), function_tool(work)]
        agent = protect(Agent(name="worker", model=ScriptedModel(script), tools=tools), session.calls)
        asyncio.run(Runner.run(agent, f"do {task}", session=session))

    def undo(self, thread: str) -> str:
        return str(self.session(thread).undo().message)

    def remembers(self, thread: str) -> int:
        return len(asyncio.run(self.session(thread).get_items()))


class ClaudeAgent(Adapter):
    """Its hooks and its store, called as its program does."""

    def __init__(self, ws: Workspace) -> None:
        from claude_agent_sdk import project_key_for_directory

        from takeback.harness.tool_calls import ToolCalls
        from takeback.integrations.claude_agent import TakebackSessionStore, hooks

        super().__init__(ws)
        self.store = TakebackSessionStore(ws)
        self.key = project_key_for_directory(ws.root)
        self.hooks, self.ToolCalls = hooks, ToolCalls
        self.calls: dict[str, Any] = {}

    def ask(self, thread: str, task: str, path: str) -> None:
        calls = self.calls.setdefault(thread, self.ToolCalls(self.ws, agent="claude"))
        made = self.hooks(calls, self.store)
        tool = {"tool_name": "Write", "tool_input": {"file_path": str(self.ws.root / path), "content": ""}}
        if not path:
            tool = {"tool_name": "Bash", "tool_input": {"command": f"./{task}"}}

        def told(event: str, **more: Any) -> None:
            given = {"hook_event_name": event, "session_id": thread, "cwd": str(self.ws.root), **more}
            asyncio.run(made[event][0].hooks[0]({**given, "transcript_path": ""}, None, {"signal": None}))

        def mirrored(kind: str) -> None:
            entry: Any = {"type": kind, "uuid": f"{kind}-{task}"}
            asyncio.run(self.store.append({"project_key": self.key, "session_id": thread}, [entry]))

        told("UserPromptSubmit", prompt=f"do {task}")
        mirrored("user")
        told("PreToolUse", tool_use_id=task, **tool)
        try:
            do(task)
        except RuntimeError as error:
            told("PostToolUseFailure", tool_use_id=task, error=str(error), **tool)
            return
        told("PostToolUse", tool_use_id=task, tool_response="done", **tool)
        mirrored("assistant")
        told("Stop")

    def undo(self, thread: str) -> str:
        return str(self.calls[thread].undo().message)

    def remembers(self, thread: str) -> int:
        return len(asyncio.run(self.store.load({"project_key": self.key, "session_id": thread})) or ())


class Conversation(Adapter):
    """A chat harness on takeback alone."""

    names_paths = False

    def __init__(self, ws: Workspace) -> None:
        super().__init__(ws)
        self.talks: dict[str, takeback.Conversation] = {}

    def ask(self, thread: str, task: str, path: str) -> None:
        talk = self.talks.setdefault(thread, takeback.Conversation(self.ws, thread))
        with talk.turn(f"do {task}"):
            do(task)
            talk.append({"role": "assistant", "content": "done"})

    def undo(self, thread: str) -> str:
        return self.talks[thread].undo().message

    def remembers(self, thread: str) -> int:
        return len(self.talks[thread].messages)


ADAPTERS: dict[str, type[Adapter]] = {
    "langgraph": LangGraph,
    "langgraph-awaited": AwaitedLangGraph,
    "langchain": LangChain,
    "langchain-alone": LangChainAlone,
    "pydantic-ai": PydanticAI,
    "openai-agents": OpenAIAgents,
    "claude-agent": ClaudeAgent,
    "conversation": Conversation,
}


def work(task: str) -> str:
    """Does something, and does not say where."""
    return do(task)


def write_file(path: str, task: str) -> str:
    """Writes a file."""
    return do(task)


def asked(task: str, path: str) -> str:
    args = {"path": path, "task": task} if path else {"task": task}
    return json.dumps({"name": "write_file" if path else "work", "args": args})


# -- what threads and people do ----------------------------------------------------


def ledger() -> dict[str, Any]:
    with urllib.request.urlopen(f"{SHOP}/ledger") as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def charge(ws: Workspace, amount: int, refuses: bool = False) -> None:
    request = urllib.request.Request(f"{SHOP}/v1/charges", json.dumps({"amount": amount}).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        made = json.load(answer)
    ws.record_http(
        "POST", f"{SHOP}/v1/charges", status=201, response_body=made,
        inverse_url=f"{SHOP}/v1/refunds", inverse_json={} if refuses else {"charge": "{response.body.id}"},
    )  # fmt: skip


def refunded() -> list[int]:
    """What was given back, in the order it was."""
    said = ledger()
    amounts = {made["id"]: made["amount"] for made in said["charges"]}
    return [amounts[made["charge"]] for made in said["refunds"]]


def files(ws: Workspace) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(ws.root.iterdir())}


def at_once(adapter: Adapter, alice: Callable[[], None], bob: Callable[[], None], named: bool = False) -> None:
    """Both are in their tools before either does anything, and neither leaves before both have."""
    inside, done = threading.Barrier(2), threading.Barrier(2)
    failed: list[BaseException] = []

    def together(does: Callable[[], None]) -> Callable[[], None]:
        def work() -> None:
            inside.wait(30)
            does()
            done.wait(30)

        return work

    def run(thread: str, does: Callable[[], None]) -> None:
        try:
            adapter.run(thread, together(does), f"{thread}.txt" if named else "")
        except BaseException as error:
            failed.append(error)
            inside.abort()

    runs = [threading.Thread(target=run, args=each) for each in (("alice", alice), ("bob", bob))]
    for each in runs:
        each.start()
    for each in runs:
        each.join(120)
    if failed:
        raise failed[0]


# -- cases -------------------------------------------------------------------------


def case_a_thread_takes_what_it_did_and_keeps_the_rest(adapter: Adapter) -> None:
    ws, before = adapter.ws, refunded()
    root = ws.root
    (root / "before.txt").write_text("a person's")
    adapter.run("alice", lambda: write(root, "alice1.txt"))
    (root / "between.txt").write_text("a person's")
    (root / "before.txt").write_text("a person's, changed")

    def bobs() -> None:
        write(root, "bob.txt")
        charge(ws, 30)

    adapter.run("bob", bobs)
    bob = adapter.remembers("bob")
    adapter.run("alice", lambda: write(root, "alice2.txt"))
    (root / "after.txt").write_text("a person's")
    persons = {"after.txt": "a person's", "before.txt": "a person's, changed", "between.txt": "a person's"}
    both, held = {"bob.txt": "bob.txt", **persons}, adapter.remembers("alice")

    told = adapter.undo("alice")
    assert files(ws) == {"alice1.txt": "alice1.txt", **both}, (told, files(ws))
    assert adapter.remembers("alice") < held or not held, told
    told = adapter.undo("alice")
    assert files(ws) == both, (told, files(ws))
    assert refunded() == before and adapter.remembers("bob") == bob

    told = adapter.undo("bob")
    assert files(ws) == persons, (told, files(ws))
    assert refunded() == [*before, 30]
    for effect in ws.history().effects:
        names = {path.decode() for path in effect.changes}
        assert not (names & persons.keys() and effect.turns), f"{names} is {effect.turns}'s"


def case_what_several_did_at_once_is_kept_and_named(adapter: Adapter) -> None:
    ws, before = adapter.ws, refunded()
    root = ws.root

    def alices() -> None:
        write(root, "alice.txt")
        charge(ws, 1)

    def bobs() -> None:
        write(root, "bob.txt")
        charge(ws, 2)

    at_once(adapter, alices, bobs)
    everything, bob = {"alice.txt": "alice.txt", "bob.txt": "bob.txt"}, adapter.remembers("bob")
    assert files(ws) == everything
    told = adapter.undo("alice")
    assert files(ws) == everything, (told, files(ws))
    assert "alice.txt" in told and "bob.txt" in told, told
    assert 2 not in refunded()[len(before) :], "the charge of the other one"
    assert adapter.remembers("bob") == bob
    told = adapter.undo("bob")
    assert files(ws) == {}, (told, files(ws))


def case_each_takes_back_its_own_charge(adapter: Adapter) -> None:
    if isinstance(adapter, ClaudeAgent):
        return  # its tools run in another process, of which nobody knows for whom
    ws, before = adapter.ws, refunded()
    at_once(adapter, lambda: charge(ws, 3), lambda: charge(ws, 4))
    adapter.undo("alice")
    assert refunded() == [*before, 3]
    adapter.undo("bob")
    assert refunded() == [*before, 3, 4]


def case_a_charge_in_an_executor_is_its_threads(adapter: Adapter) -> None:
    """In a pool of its own, in one that both share, and in a thread that is started: none of them has a context."""
    if isinstance(adapter, ClaudeAgent):
        return  # its tools run in another process, of which nobody knows for whom
    ws, before = adapter.ws, refunded()

    def in_own(amount: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(charge, ws, amount).result(30)

    def in_thread(amount: int) -> None:
        thread = threading.Thread(target=charge, args=(ws, amount))
        thread.start()
        thread.join(30)

    with ThreadPoolExecutor(1) as shared:
        shared.submit(int).result(30)  # its only thread was started for neither of them

        def in_shared(amount: int) -> None:
            shared.submit(charge, ws, amount).result(30)

        def all_ways(*amounts: int) -> Callable[[], None]:
            ways = (in_own, in_thread, in_shared)
            return lambda: [way(amount) for way, amount in zip(ways, amounts)] and None

        at_once(adapter, all_ways(11, 12, 13), all_ways(21, 22, 23))
    told = adapter.undo("alice")
    assert refunded() == [*before, 13, 12, 11], told
    told = adapter.undo("bob")
    assert refunded() == [*before, 13, 12, 11, 23, 22, 21], told


def case_what_nobody_knows_whose_it_is_stays_and_is_named(adapter: Adapter) -> None:
    """A worker that was started long before does what both of them ask by a queue."""
    ws, before = adapter.ws, refunded()
    asked: queue.SimpleQueue[tuple[int, threading.Event] | None] = queue.SimpleQueue()

    def work() -> None:
        while (found := asked.get()) is not None:
            charge(ws, found[0])
            found[1].set()

    def asks(amount: int) -> None:
        done = threading.Event()
        asked.put((amount, done))
        assert done.wait(30)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        at_once(adapter, lambda: asks(5), lambda: asks(6))
    finally:
        asked.put(None)
        worker.join(30)
    acts = {json.loads(act.did["response"])["amount"]: act for act in ws.effects()}
    held = adapter.remembers("alice")
    for thread in ("alice", "bob"):
        told = adapter.undo(thread)
        assert refunded() == before, "of nobody known, so nobody's to take back"
        for act in acts.values():
            assert act.summary in told and f"takeback revert {act.id[:8]}" in told, told
        assert "not known whose" in told and "a person's" not in told, told
    if isinstance(adapter, LangGraph):  # its state stands on them
        assert adapter.remembers("alice") == held
        adapter.undone("alice").clear()
        adapter.anyway = True
        adapter.undo("alice")
    assert adapter.remembers("alice") < held or not held
    for amount, act in acts.items():
        ws.apply(ws.plan("revert", act.id))
        assert refunded()[-1] == amount


def case_a_refund_that_was_refused_is_named_until_it_is_done(adapter: Adapter) -> None:
    if isinstance(adapter, ClaudeAgent):
        return  # as above
    ws, before = adapter.ws, refunded()
    adapter.run("alice", lambda: charge(ws, 8, refuses=True))
    (act,) = ws.effects()
    told = adapter.undo("alice")
    assert refunded() == before and f"takeback revert {act.id[:8]}" in told, told
    if not isinstance(adapter, LangGraph):  # there it goes by checkpoints: the same one, once more
        told = adapter.undo("alice")
        assert told.startswith("nothing to take back") and f"{act.summary}: takeback revert {act.id[:8]}" in told, told


def case_a_tool_that_names_its_file_owns_it_alone(adapter: Adapter) -> None:
    if not adapter.names_paths:
        return  # a node says nothing of the files it will write
    ws = adapter.ws
    root = ws.root
    at_once(adapter, lambda: write(root, "alice.txt"), lambda: write(root, "bob.txt"), named=True)
    told = adapter.undo("alice")
    assert files(ws) == {"bob.txt": "bob.txt"}, (told, files(ws))
    told = adapter.undo("bob")
    assert files(ws) == {}, (told, files(ws))


def case_a_file_that_another_thread_wrote_again_with_the_same_bytes_goes_with_that_one(adapter: Adapter) -> None:
    ws = adapter.ws
    root = ws.root

    def again(name: str, at: int) -> None:
        (root / name).write_text("the same")
        os.utime(root / name, (at, at))

    adapter.run("bob", lambda: again("f.txt", 1_000_000_000))
    adapter.run("alice", lambda: again("f.txt", 1_000_000_100))
    told = adapter.undo("bob")
    assert files(ws) == {"f.txt": "the same"}, (told, files(ws))
    assert "f.txt" in told and "thread alice wrote it again" in told, told
    told = adapter.undo("alice")
    assert files(ws) == {}, (told, files(ws))
    assert "file" in told or "f.txt" in told, told


def case_who_wrote_the_same_bytes_last_leaves_them_to_who_wrote_them_first(adapter: Adapter) -> None:
    ws = adapter.ws
    root = ws.root

    def again(at: int) -> None:
        (root / "f.txt").write_text("the same")
        os.utime(root / "f.txt", (at, at))

    adapter.run("bob", lambda: again(1_000_000_000))
    adapter.run("carol", lambda: again(1_000_000_100))
    adapter.run("alice", lambda: again(1_000_000_200))
    told = adapter.undo("alice")
    assert files(ws) == {"f.txt": "the same"}, (told, files(ws))
    assert "f.txt" in told and "thread bob, thread carol wrote it too" in told, told
    told = adapter.undo("bob")
    assert files(ws) == {"f.txt": "the same"}, (told, files(ws))
    assert "f.txt" in told and "thread carol wrote it again" in told and "alice" not in told, told
    told = adapter.undo("carol")
    assert files(ws) == {}, (told, files(ws))


def case_what_two_shared_and_one_wrote_again_stays_with_that_one(adapter: Adapter) -> None:
    ws = adapter.ws
    root = ws.root
    written = threading.Event()

    def first() -> None:
        (root / "f.txt").write_text("the same")
        os.utime(root / "f.txt", (1_000_000_000,) * 2)
        written.set()

    def second() -> None:
        assert written.wait(30)
        (root / "f.txt").write_text("the same")
        os.utime(root / "f.txt", (1_000_000_100,) * 2)

    at_once(adapter, first, second)
    adapter.undo("alice")
    assert files(ws) == {"f.txt": "the same"}
    adapter.run("alice", lambda: os.utime(root / "f.txt", (1_000_000_200,) * 2))
    told = adapter.undo("bob")
    assert files(ws) == {"f.txt": "the same"}, (told, files(ws))
    assert "f.txt" in told, told


def case_a_thread_that_wrote_its_own_file_again_takes_it_back(adapter: Adapter) -> None:
    ws = adapter.ws
    root = ws.root
    adapter.run("bob", lambda: write(root, "f.txt"))
    adapter.run("bob", lambda: (os.utime(root / "f.txt", (1_000_000_000,) * 2), write(root, "g.txt"))[1])
    adapter.run("alice", lambda: write(root, "alice.txt"))
    adapter.undo("bob")
    told = adapter.undo("bob")
    assert files(ws) == {"alice.txt": "alice.txt"}, (told, files(ws))


def case_what_a_person_made_of_a_threads_file_stays(adapter: Adapter) -> None:
    ws = adapter.ws
    root = ws.root
    adapter.run("alice", lambda: write(root, "f.txt"))
    (root / "f.txt").write_text("better")
    adapter.run("alice", lambda: write(root, "g.txt"))
    told = adapter.undo("alice")
    assert files(ws) == {"f.txt": "better"}, (told, files(ws))
    told = adapter.undo("alice")
    assert files(ws) == {"f.txt": "better"}, (told, files(ws))
    assert "f.txt" in told, told


def case_a_run_that_failed_is_taken_back_too(adapter: Adapter) -> None:
    ws = adapter.ws
    root = ws.root

    def fails() -> None:
        write(root, "half.txt")
        raise RuntimeError("the disk is on fire")

    adapter.run("bob", lambda: write(root, "bob.txt"))
    try:
        adapter.run("alice", fails)
    except RuntimeError:
        pass
    (root / "person.txt").write_text("a person's")
    told = adapter.undo("alice")
    assert files(ws) == {"bob.txt": "bob.txt", "person.txt": "a person's"}, (told, files(ws))


class Killed(BaseException):
    pass


@contextmanager
def killed_at_the_files() -> Iterator[None]:
    """Whoever takes something back in it is killed when the files are about to go back."""

    def dies(*_: Any, **__: Any) -> Any:
        raise Killed

    plain, Files.apply = Files.apply, dies  # type: ignore[method-assign]
    try:
        yield
    except Killed:
        pass
    else:
        raise AssertionError("nothing was taken back")
    finally:
        Files.apply = plain  # type: ignore[method-assign]


def case_who_comes_after_a_killed_undo_says_what_was_finished(adapter: Adapter) -> None:
    ws, before = adapter.ws, refunded()
    root = ws.root

    def works() -> None:
        write(root, "alice.txt")
        charge(ws, 9)

    adapter.run("alice", works)
    adapter.run("bob", lambda: write(root, "bob.txt"))
    with killed_at_the_files():
        adapter.undo("alice")
    assert ws.interrupted() and refunded() == [*before, 9], "it was given back before"
    (act,) = ws.effects()
    told = adapter.undo("bob")
    assert "alice.txt" not in files(ws) and refunded() == [*before, 9]
    assert "interrupted" in told and "alice.txt" in told and act.summary in told, told
    assert "nothing" not in told, told


def case_who_asks_again_after_a_kill_is_told_what_went_back(adapter: Adapter) -> None:
    ws = adapter.ws
    root = ws.root
    adapter.run("alice", lambda: write(root, "alice.txt"))
    held = adapter.remembers("alice")
    with killed_at_the_files():
        adapter.undo("alice")
    if isinstance(adapter, LangGraph):
        adapter.undone("alice").clear()  # the same checkpoint once more
    told = adapter.undo("alice")
    assert files(ws) == {} and (adapter.remembers("alice") < held or not held)
    assert "interrupted" in told and "alice.txt" in told and "nothing" not in told, told


def write(root: Path, name: str) -> None:
    (root / name).write_text(name)


CASES = {name: case for name, case in list(globals().items()) if name.startswith("case_")}


def main(name: str, folder: Path, shop: str) -> None:
    global SHOP
    SHOP = shop
    for number, (case, check) in enumerate(CASES.items()):
        root = folder / f"{name}-{number}"
        root.mkdir()
        said = ""
        with takeback.open(root, create=True) as ws:
            ws.settings = ws.observer.settings = ws.settings._replace(policy=FREE)
            try:
                check(ADAPTERS[name](ws))
            except Exception:
                said = traceback.format_exc()
        print(json.dumps([case, said]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
