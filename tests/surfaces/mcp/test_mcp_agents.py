"""Undo asked from inside an agent: the turn that asks is never the one taken back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from clients import Calls, connected
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from test_mcp_http import serving
from test_mcp_stdio import started_in

import takeback
from takeback.journal.brackets import Call, Caller
from takeback.surfaces.mcp.calls import agent_of
from takeback.system import processes

pytestmark = pytest.mark.anyio


def asks(work: Path, caller: Caller) -> Call:
    """An agent made a file in one turn; in the next it has made another, and its call of our tool is still open."""
    with takeback.open(work) as ws:
        for prompt, path in (("make it", "made"), ("please undo", "asking")):
            ws.begin_turn(caller, prompt)
            ws.begin_call(caller, Call(path, "Bash", f"Bash: touch {path}"))
            (work / path).write_text(path)
            ws.end_call(caller, Call(path, "Bash", ""))
        call = Call("mcp", "mcp__takeback__takeback_undo", "takeback_undo")
        ws.begin_call(caller, call)
    return call


def over(work: Path, caller: Caller, call: Call) -> list[tuple[str, list[str]]]:
    """The call is over: what each effect is, and whose."""
    with takeback.open(work) as ws:
        ws.end_call(caller, call)
        return [(row.prompt, list(row.paths)) for row in reversed(ws.log("kind:effect"))]


def asked_for(work: Path) -> tuple[str, list[str]]:
    """Who asked for the take-back, and in which turn."""
    with takeback.open(work) as ws:
        (row,) = ws.log("kind:takeback")
        prompts = {asked.id: asked.prompt for asked in ws.history().agent_turns.values()}
        return row.actor, [prompts[id] for id in row.turns]


async def test_a_take_back_that_a_client_without_hooks_asks_for_is_told_as_its_own(work: Path, era: str) -> None:
    (work / "new").write_text("new")
    async with connected(started_in(work), era) as calls:
        await calls.ok("undo")
    who, turns = asked_for(work)
    assert who and not turns


async def test_a_server_that_an_agent_started_knows_which_turn_asks(work: Path, era: str) -> None:
    me = Caller("claude", "s", "", os.getpid(), processes.started(os.getpid()))
    call = asks(work, me)
    async with connected(started_in(work), era) as calls:
        done = await calls.ok("undo")
        assert [t["prompt"] for t in done["turns"]] == ["make it"]
        assert "claude's turn “make it”" in calls.text
        assert not (await calls.ok("undo"))["results"]  # the turn that asks is no turn to undo
    assert not (work / "made").exists() and (work / "asking").exists()
    assert over(work, me, call) == [("make it", ["made"]), ("please undo", ["asking"])]  # nothing of the undo is its
    assert asked_for(work) == ("claude", ["please undo"])


async def test_what_an_agent_saves_in_its_turn_goes_with_that_turn(work: Path, era: str) -> None:
    me, other = Caller("claude", "s", "", os.getpid(), processes.started(os.getpid())), Caller("claude", "t")
    save = Call("mcp", "mcp__takeback__takeback_thread_save", "takeback_thread_save", scans=False)
    async with connected(started_in(work), era) as calls:
        for n, prompt in enumerate(("remember it", "go on"), 1):
            with takeback.open(work) as ws:
                ws.begin_turn(me, prompt)
                ws.begin_turn(other, "something else")
                ws.begin_call(me, save)
            (work / "made").write_text(prompt)
            assert (await calls.ok("thread_save", thread_id="main", state={"step": n}))["agent"] == "test-agent"
            with takeback.open(work) as ws:
                ws.end_call(me, save)
    with takeback.open(work) as ws:
        ws.begin_turn(me, "what was that?")
        assert [(row.actor, row.prompt) for row in ws.log("domain:state")] == [
            ("claude", "go on"),
            ("claude", "remember it"),
        ]
        assert [ahead.thread for ahead in ws.plan("undo", "go on").distance.state] == ["main"]
        ws.undo("go on", state=True)
        assert ws.threads.load(ws.threads.get("main")) == {"step": 1}


async def test_over_http_the_clients_name_tells_which_agent_asks(work: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    agent = Caller("claude", "s", "", process.pid, processes.started(process.pid))
    call = asks(work, agent)
    with serving(work, {}) as served:
        headers = {"Authorization": f"Bearer {served.token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            info = Implementation(name="claude-code", version="2")
            async with Client(streamable_http_client(served.url, http_client=http), client_info=info) as client:
                calls = Calls(client)
                assert [t["prompt"] for t in (await calls.ok("undo"))["turns"]] == ["make it"]
    assert not (work / "made").exists() and (work / "asking").exists()
    assert asked_for(work) == ("claude", ["please undo"])
    over(work, agent, call)
    process.communicate(b"\n")


async def test_of_a_client_that_is_no_agent_we_know_the_newest_turn_goes(work: Path, era: str) -> None:
    asks(work, Caller("claude", "s"))
    async with connected(started_in(work), era) as calls:  # it calls itself test-agent, and nobody above it is one
        assert [t["prompt"] for t in (await calls.ok("undo"))["turns"]] == ["please undo"]


async def test_a_revert_of_a_turn_keeps_what_another_agent_had_a_part_in(work: Path, era: str) -> None:
    claude, codex, call = Caller("claude", "s"), Caller("codex", "t"), Call("1", "Bash", "Bash: make")
    with takeback.open(work) as ws:
        for caller in (claude, codex):
            ws.begin_turn(caller, f"{caller.agent}, go")
            ws.begin_call(caller, call)
        (work / "whose").write_text("?")
        for caller in (claude, codex):
            ws.end_call(caller, call)
        first, last = (asked.id for asked in ws.history().agent_turns.values())
    async with connected(started_in(work), era) as calls:
        for tool, given in (("plan", {"verb": "revert", "args": [first]}), ("revert", {"what": [first]})):
            await calls.ok(tool, **given)
            assert "shared work: whose (codex was at work at the same time); take it too: takeback_revert" in calls.text
        assert (work / "whose").exists()
        await calls.ok("revert", what=[last])
    assert not (work / "whose").exists()


async def test_an_undo_that_keeps_uncertain_work_is_not_whole(work: Path, era: str) -> None:
    claude, call = Caller("claude", "s"), Call("1", "Bash", "Bash: make")
    with takeback.open(work) as ws:
        ws.begin_turn(claude, "go")
        ws.begin_call(claude, call._replace(asked=True))  # nobody will know when it began
        (work / "whose").write_text("?")
        ws.end_call(claude, call)
    async with connected(started_in(work), era) as calls:
        done = await calls.ok("undo")
        assert done["whole"] is False and "uncertain work: whose" in calls.text
    assert (work / "whose").exists()


@pytest.mark.parametrize(
    ("client", "agent"),
    [
        ("claude-code", "claude"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini"),
        ("Cursor", "cursor"),
        ("test-agent", ""),
        ("", ""),
    ],
)
async def test_clients_are_known_by_their_names(client: str, agent: str) -> None:
    assert agent_of(client) == agent
