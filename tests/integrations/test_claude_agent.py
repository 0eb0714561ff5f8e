"""The Claude Agent SDK as it is installed: its own conformance test of stores, its hooks, and its program with a scripted
model in place of the real one."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed here")

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage, project_key_for_directory, query
from claude_agent_sdk.testing import run_session_store_conformance

import takeback
from agents.model import Model, Turn, Use
from takeback.config.policy import Policy
from takeback.harness.tool_calls import ToolCalls
from takeback.integrations.claude_agent import TakebackSessionStore, hooks, resuming
from takeback.workspace import Workspace

EXAMPLE = Path(__file__).parents[2] / "examples" / "claude_agent_undo.py"
FREE = Policy({"http.compensating": "allow"})


@pytest.fixture
def ws(project: Path) -> Iterator[Workspace]:
    with takeback.open(project, create=True) as opened:
        opened.settings = opened.observer.settings = opened.settings._replace(policy=FREE)
        yield opened


# -- the store --------------------------------------------------------------------


def test_the_sdks_own_conformance_test_passes(tmp_path: Path):
    made: list[Workspace] = []

    def store() -> TakebackSessionStore:
        folder = tmp_path / f"project{len(made)}"
        folder.mkdir()
        made.append(takeback.open(folder, create=True))
        return TakebackSessionStore(made[-1])

    asyncio.run(run_session_store_conformance(store))
    assert len(made) > 14
    for ws in made:
        assert ws.verify(data=True).ok
        ws.close()


def test_a_batch_that_is_sent_again_is_kept_once(ws: Workspace):
    store, key = TakebackSessionStore(ws), {"project_key": "p", "session_id": "s"}
    entries: list[Any] = [{"type": "user", "uuid": "1"}, {"type": "mode"}]

    async def twice() -> list[Any]:
        await store.append(key, entries)
        await store.append(key, [entries[0], {"type": "assistant", "uuid": "2"}])
        return await store.load(key) or []

    assert asyncio.run(twice()) == [*entries, {"type": "assistant", "uuid": "2"}]


def test_the_project_itself_has_threads_that_are_called_as_its_sessions_are(ws: Workspace):
    store = TakebackSessionStore(ws)
    own = project_key_for_directory(ws.root)
    asyncio.run(store.append({"project_key": own, "session_id": "s1"}, [{"type": "user", "uuid": "1"}]))
    ws.threads.save("main", {"messages": []})  # of another program
    assert ws.threads.find("s1") is not None
    assert [each["session_id"] for each in asyncio.run(store.list_sessions(own))] == ["s1"]
    assert asyncio.run(store.load({"project_key": own, "session_id": "main"})) is None


def test_writers_at_the_same_time_lose_nothing(ws: Workspace):
    store, key = TakebackSessionStore(ws), {"project_key": "p", "session_id": "s"}

    async def all_of_them() -> list[Any]:
        await asyncio.gather(*(store.append(key, [{"type": "user", "uuid": str(n)}]) for n in range(12)))
        return await store.load(key) or []

    assert sorted(int(entry["uuid"]) for entry in asyncio.run(all_of_them())) == list(range(12))


# -- hooks ------------------------------------------------------------------------


def told(name: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": session, "transcript_path": "", "cwd": "/", **more}


def call(made: dict[Any, list[HookMatcher]], name: str, **more: Any) -> Any:
    (matcher,) = made[name]
    (callback,) = matcher.hooks
    return asyncio.run(callback(told(name, **more), more.get("tool_use_id"), {"signal": None}))  # type: ignore[arg-type]


def test_a_call_before_which_takeback_fails_is_blocked(ws: Workspace):
    made = hooks(ToolCalls(ws, agent="claude"))
    assert {event: matcher.on_failure for event, (matcher,) in made.items()} == {
        "UserPromptSubmit": "block",
        "PreToolUse": "block",
        "PostToolUse": None,
        "PostToolUseFailure": None,
        "Stop": None,
    }


def test_what_is_not_to_pass_is_asked_for_and_the_declined_did_nothing(ws: Workspace):
    made = hooks(ToolCalls(ws, agent="claude"))
    call(made, "UserPromptSubmit", prompt="push it")
    given = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "git push"}}
    said = call(made, "PreToolUse", **given)["hookSpecificOutput"]
    assert said["permissionDecision"] == "ask" and "git push" in said["permissionDecisionReason"]
    own = {
        "tool_name": "Bash",
        "tool_use_id": "t2",
        "tool_input": {"command": "takeback undo --yes && rm -rf ~/.local"},
    }
    assert call(made, "PreToolUse", **own)["hookSpecificOutput"]["permissionDecision"] in ("ask", "deny")
    assert call(made, "Stop") == {}
    assert ws.effects() == []


def test_a_prompt_that_the_program_made_begins_no_turn(ws: Workspace):
    made = hooks(ToolCalls(ws, agent="claude"))
    call(made, "UserPromptSubmit", prompt="do it")
    call(made, "UserPromptSubmit", prompt="<task-notification>a command ended</task-notification>")
    assert [turn.prompt for turn in ws.history().agent_turns.values()] == ["do it"]


def test_a_failure_leaves_what_is_declared_in_doubt(ws: Workspace):
    undo = {"charge": {"command": ["true", "{result.id}"]}}
    made = hooks(ToolCalls(ws, agent="claude", undo=undo))
    call(made, "UserPromptSubmit", prompt="charge")
    given = {"tool_name": "mcp__shop__charge", "tool_use_id": "t1", "tool_input": {"amount": 1}}
    assert call(made, "PreToolUse", **given) == {}
    call(made, "PostToolUseFailure", error="no answer", **given)
    (act,) = ws.effects()
    assert act.shown_state == "unknown" and act.did["raised"] == "no answer"


# -- the program ------------------------------------------------------------------


class Place:
    """A project that the SDK's program works in, with a model that plays turns."""

    def __init__(self, ws: Workspace, model: Model, home: Path, **undo: Any) -> None:
        self.ws, self.model = ws, model
        self.calls = ToolCalls(ws, agent="claude", undo=undo)
        self.store = TakebackSessionStore(ws)
        environ = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / "claude"),
        }
        self.options = ClaudeAgentOptions(
            cwd=str(ws.root),
            permission_mode="bypassPermissions",
            setting_sources=[],
            hooks=hooks(self.calls, self.store),
            session_store=self.store,
            env=environ,
        )

    def ask(self, prompt: str) -> str:
        async def asked() -> str:
            found = ""
            async for message in query(prompt=prompt, options=self.options):
                if isinstance(message, ResultMessage):
                    assert not message.is_error, message
                    found = message.session_id
            return found

        return asyncio.run(asked())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    if not (Path(claude_agent_sdk.__file__).parent / "_bundled").is_dir() and shutil.which("claude") is None:
        pytest.skip("this build of claude-agent-sdk brings no Claude Code, and none is installed")
    (tmp_path / "claude-home").mkdir()
    return tmp_path / "claude-home"


def write(ws: Workspace, path: str) -> Use:
    return Use("Write", {"file_path": str(ws.root / path), "content": path})


def test_undo_takes_back_the_turn_and_the_conversation_goes_on_without_it(ws: Workspace, project: Path, home: Path):
    turns = [
        Turn("I write a.", [write(ws, "a.txt")]), Turn("a is written"),
        Turn("I write b.", [write(ws, "b.txt"), Use("Bash", {"command": "echo c > c.txt"})]), Turn("b is written"),
        Turn("and on we go"),
    ]  # fmt: skip
    with Model(turns) as model:
        place = Place(ws, model, home)
        session = place.ask("please write a")
        place.options = asyncio.run(resuming(place.options, place.calls))
        assert place.options.resume == session
        place.ask("please write b")
        assert {p.name for p in project.iterdir()} == {"a.txt", "b.txt", "c.txt"}
        assert model.times_told("please write a") == 1

        undone = place.calls.undo()
        assert undone.message == "took back the turn 'please write b': b.txt, c.txt, the conversation"
        assert {p.name for p in project.iterdir()} == {"a.txt"}
        place.options = asyncio.run(resuming(place.options, place.calls))
        assert place.ask("what now?") == session
        assert model.times_told("please write a") == 1
        assert model.times_told("please write b") == 0

        place.calls.undo()
        place.calls.undo()
        assert not list(project.iterdir())
        assert asyncio.run(resuming(place.options, place.calls)).resume is None
    assert not model.failures
    assert ws.verify(data=True).ok


def test_redo_brings_both_back(ws: Workspace, project: Path, home: Path):
    with Model([Turn("I write a.", [write(ws, "a.txt")]), Turn("done"), Turn("and on")]) as model:
        place = Place(ws, model, home)
        session = place.ask("please write a")
        place.calls.undo()
        assert not list(project.iterdir())
        assert "the conversation" in place.calls.redo().message
        assert (project / "a.txt").read_text() == "a.txt"
        place.options = asyncio.run(resuming(place.options, place.calls))
        assert place.ask("go on") == session
        assert model.times_told("please write a") == 1


def test_without_a_store_a_fork_goes_on_from_before_the_turn(ws: Workspace, project: Path, home: Path):
    turns = [Turn("first answer"), Turn("I write b.", [write(ws, "b.txt")]), Turn("b is written"), Turn("on")]
    with Model(turns) as model:
        place = Place(ws, model, home)
        place.options.session_store, place.options.hooks = None, hooks(place.calls)
        session = place.ask("first question")
        place.options.resume = session
        place.ask("please write b")
        place.calls.undo()
        assert not list(project.iterdir()) and place.calls.cursor
        place.options = asyncio.run(resuming(place.options, place.calls))
        assert place.ask("what now?") != session
        assert model.times_told("first question") == 1
        assert model.times_told("please write b") == 0


def test_without_a_store_the_first_turn_taken_back_leaves_a_new_session(ws: Workspace, project: Path, home: Path):
    with Model([Turn("I write b.", [write(ws, "b.txt")]), Turn("b is written"), Turn("on")]) as model:
        place = Place(ws, model, home)
        place.options.session_store, place.options.hooks = None, hooks(place.calls)
        session = place.ask("please write b")
        place.calls.undo()
        place.options = asyncio.run(resuming(place.options, place.calls))
        assert place.options.resume is None and place.ask("what now?") != session
        assert model.times_told("please write b") == 0


def test_a_push_is_denied_where_nobody_can_be_asked(ws: Workspace, project: Path, home: Path):
    with Model([Turn("I push.", [Use("Bash", {"command": "git push"})]), Turn("it was not allowed")]) as model:
        place = Place(ws, model, home)
        place.options.permission_mode = "dontAsk"
        place.ask("push it")
        assert "takeback" in model.seen[-1].text
    assert ws.effects() == []


def test_the_example_runs(tmp_path: Path):
    done = subprocess.run([sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-3:] == ["report.md is gone", "refunded: ch_1", "the model no longer hears of it"], done.stdout
