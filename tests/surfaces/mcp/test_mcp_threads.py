"""The tools for threads, with a real client over stdio: what they take, what they answer, what they refuse."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from clients import Person, connected
from mcp.client.stdio import StdioServerParameters

import takeback
from takeback.surfaces.mcp.server import Server

pytestmark = pytest.mark.anyio

PARAMETERS = {
    "save": {"thread_id", "state", "summary", "checkpoint_id"},
    "load": {"thread_id", "checkpoint_id"},
    "list": {"thread_id", "checkpoint_id"},
    "resume": {"thread_id", "checkpoint_id"},
    "diff": {"thread_id", "from_checkpoint_id", "to_checkpoint_id"},
    "search": {"query", "thread_id"},
    "fork": {"thread_id", "checkpoint_id", "new_thread_id"},
    "rollback": {"thread_id", "checkpoint_id", "with_files", "everything", "merge", "force", "dry_run"},
    "handoff": {"thread_id", "checkpoint_id", "to_agent", "summary"},
    "adopt": {"handoff_id", "new_thread_id"},
    "verify": {"thread_id"},
}
READ_ONLY = {"load", "list", "resume", "diff", "search", "verify"}


def started_in(folder: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "takeback", "mcp"], cwd=folder, env=dict(os.environ)
    )


async def test_the_parameters_and_hints(server: Server, era: str) -> None:
    async with connected(server, era) as calls:
        tools = {t.name: t for t in (await calls.client.list_tools()).tools}
    for name, wanted in PARAMETERS.items():
        tool = tools[f"takeback_thread_{name}"]
        assert set(tool.input_schema["properties"]) == {*wanted, "cwd"}, name
        assert tool.annotations.read_only_hint is (name in READ_ONLY)
        assert tool.annotations.open_world_hint is (name == "rollback"), "with files it may act outside them"
    assert tools["takeback_thread_rollback"].annotations.destructive_hint
    assert tools["takeback_thread_save"].input_schema["properties"]["state"]["type"] == "object"


async def test_whoever_saves_vouches_for_no_file(work: Path, era: str) -> None:
    (work / "mine").write_text("by hand")
    async with connected(Server(work, {**os.environ, "TAKEBACK_ACTOR": "ann"}), era) as calls:
        saved = await calls.ok("thread_save", thread_id="main", state={"step": 1})
        assert saved["agent"] == "ann"
        (row,) = (await calls.ok("log", filter="domain:files kind:effect"))["rows"]
        assert row["paths"] == ["mine"] and not row["actor"]


async def test_an_agent_remembers_over_stdio(work: Path, era: str) -> None:
    async with connected(started_in(work), era) as calls:
        assert (await calls.ok("thread_list"))["threads"] == []
        first = await calls.ok("thread_save", thread_id="main", state={"step": 1, "plan": ["a"]}, summary="first")
        assert first["thread_id"] == "main" and first["agent"] == "test-agent" and first["workspace_checkpoint"]
        (work / "README.md").write_text("changed\n")
        second = await calls.ok("thread_save", thread_id="main", state={"step": 2, "plan": ["a", "b"]})
        assert second["parent_checkpoint_id"] == first["checkpoint_id"]

    async with connected(started_in(work), era) as calls:  # after a restart
        found = await calls.ok("thread_resume", thread_id="main")
        assert found["checkpoint_id"] == second["checkpoint_id"] and found["state"] == {"step": 2, "plan": ["a", "b"]}
        differs = await calls.ok("thread_diff", thread_id="main", from_checkpoint_id=first["checkpoint_id"][:8])
        assert [(d["path"], d["change"]) for d in differs["differences"]] == [("step", "changed"), ("plan[1]", "added")]
        assert "~ step" in calls.text
        assert (await calls.ok("thread_search", query="first"))["found"][0]["where"] == "summary"

        other = await calls.ok(
            "thread_fork", thread_id="main", checkpoint_id=first["checkpoint_id"], new_thread_id="other"
        )
        assert other["forked_from"] == {"thread_id": "main", "checkpoint_id": first["checkpoint_id"]}

        back = await calls.ok("thread_rollback", thread_id="main", checkpoint_id=first["checkpoint_id"])
        assert back["restored_from"] == first["checkpoint_id"] and back["blob_id"] and back["applied"]
        assert back["rolled_back_from"] == back["parent_checkpoint_id"] == second["checkpoint_id"]
        assert back["distance"]["files"] == 1 and "stays: README.md" in calls.text
        assert (work / "README.md").read_text() == "changed\n", "files stay"
        again = await calls.ok("thread_rollback", thread_id="main", checkpoint_id=first["checkpoint_id"])
        assert again["nothing_to_take_back"] and again["checkpoint_id"] == back["checkpoint_id"]
        assert (await calls.ok("thread_load", thread_id="main"))["state"]["step"] == 1
        await calls.ok("redo")
        assert (await calls.ok("thread_load", thread_id="main"))["state"]["step"] == 2

        chain = await calls.ok("thread_list", thread_id="main")
        assert len(chain["checkpoints"]) == 4 and chain["checkpoints"][-1]["forks"] == ["other"]
        assert "↩ from" in calls.text and "⑂ other" in calls.text
        verified = await calls.ok("thread_verify", thread_id="main")
        assert verified["ok"] and {step["result"] for step in verified["steps"]} == {"PASS"}


async def test_files_go_back_with_their_thread_in_one_plan(work: Path, era: str) -> None:
    async with connected(started_in(work), era) as calls:
        first = await calls.ok("thread_save", thread_id="main", state={"step": 1})
        (work / "README.md").write_text("changed\n")
        (work / "new.txt").write_text("new\n")
        await calls.ok("thread_save", thread_id="main", state={"step": 2})
        where = {"thread_id": "main", "checkpoint_id": first["checkpoint_id"]}
        shown = await calls.ok("thread_rollback", **where, with_files=True, everything=True, dry_run=True)
        assert not shown["applied"] and {s["target"] for s in shown["plan"]["steps"]} >= {"README.md", "new.txt"}
        assert (work / "new.txt").exists()
        alone = await calls.ok("thread_rollback", **where, dry_run=True)
        assert {step["domain"] for step in alone["plan"]["steps"]} == {"state"}
        assert "with_files=true" in calls.text, "the tool that takes the files is named"
        back = await calls.ok("thread_rollback", **where, with_files=True, everything=True)
        assert back["whole"] and back["restored_from"] == first["checkpoint_id"]
        assert (work / "README.md").read_text() == "hello\n" and not (work / "new.txt").exists()
        assert (await calls.ok("thread_load", thread_id="main"))["state"] == {"step": 1}
        await calls.ok("redo")
        assert (work / "new.txt").exists()
        assert (await calls.ok("thread_load", thread_id="main"))["state"] == {"step": 2}


async def test_what_acts_outside_waits_for_a_person_when_files_go_with_a_thread(
    work: Path, server: Server, era: str, charge, payments
) -> None:
    async with connected(server, era, Person()) as calls:
        first = await calls.ok("thread_save", thread_id="main", state={"step": 1})
        made = charge()
        await calls.ok("record_http", **made)
        await calls.ok("thread_save", thread_id="main", state={"step": 2})
        where = {"thread_id": "main", "checkpoint_id": first["checkpoint_id"]}
        back = await calls.ok("thread_rollback", **where, with_files=True, everything=True)
        assert back["applied"] and len(payments.refunds) == 1


async def test_a_state_is_handed_to_another_agent(work: Path, era: str) -> None:
    async with connected(started_in(work), era) as calls:
        await calls.ok("thread_save", thread_id="main", state={"x": 1})
        given = await calls.ok("thread_handoff", thread_id="main", to_agent="reviewer", summary="look at it")
        assert given["to_agent"] == "reviewer" and given["note"] == "look at it"
        assert (await calls.ok("thread_list"))["handoffs"][0]["handoff_id"] == given["handoff_id"]
    async with connected(started_in(work), era) as calls:
        taken = await calls.ok("thread_adopt", handoff_id=given["handoff_id"], new_thread_id="review")
        assert taken["thread_id"] == "review" and taken["state"] == {"x": 1}
        assert taken["handoff_id"] == given["handoff_id"] and taken["agent"] == "reviewer"
        assert "adopted already" in (await calls.fails("thread_adopt", handoff_id=given["handoff_id"]))["message"]
        assert (await calls.ok("thread_list"))["handoffs"] == []


async def test_two_agents_on_one_head(server: Server, era: str) -> None:
    async with connected(server, era) as one, connected(server, era) as two:
        seen = (await one.ok("thread_save", thread_id="main", state={"x": 1}))["checkpoint_id"]
        await two.ok("thread_save", thread_id="main", state={"x": 2}, checkpoint_id=seen[:10])
        error = await one.fails("thread_save", thread_id="main", state={"x": 3}, checkpoint_id=seen)
        assert "has moved on" in error["message"] and error["code"] == 1
        assert (await one.ok("thread_load", thread_id="main"))["state"] == {"x": 2}


async def test_a_state_is_answered_with_whole_or_not_at_all(server: Server, era: str) -> None:
    async with connected(server, era) as calls:
        long = {"text": "x" * 100_000, "odd": "\ud800", "list": list(range(3000))}
        with takeback.open(server.cwd) as ws:
            ws.threads.save("main", long)
            ws.threads.save("large", {"text": "y" * 400_000, "step": 1})
        state = (await calls.ok("thread_load", thread_id="main"))["state"]
        assert state["text"] == long["text"] and state["list"] == long["list"]
        found = await calls.ok("thread_load", thread_id="large")
        assert found["state"] is None and found["sizes"] == {"text": 400_002, "step": 1}
        assert found["state_left_out"].startswith("takeback thread load large ") and len(calls.text) < 2_000


async def test_long_threads_are_listed_in_parts(server: Server, era: str) -> None:
    with takeback.open(server.cwd) as ws:
        for step in range(120):
            ws.threads.save("main", {"step": step})
    async with connected(server, era) as calls:
        seen: list[str] = []
        after = ""
        while True:
            part = await calls.ok("thread_list", thread_id="main", checkpoint_id=after)
            seen += [c["checkpoint_id"] for c in part["checkpoints"]]
            assert len(part["checkpoints"]) <= 50
            after = part["next_checkpoint_id"]
            if not after:
                break
        assert len(seen) == len(set(seen)) == 120


async def test_secrets_are_masked_where_nobody_goes_on_with_them(server: Server, era: str) -> None:
    secret = "sk-ant-api03-" + "a" * 95
    async with connected(server, era) as calls:
        state = {"note": f"key {secret}", "password": "hunter2", "tokens": 123}
        first = await calls.ok("thread_save", thread_id="main", state=state)
        await calls.ok("thread_save", thread_id="main", state={"note": "none"})
        differs = await calls.ok("thread_diff", thread_id="main", from_checkpoint_id=first["checkpoint_id"])
        assert secret not in calls.text and secret not in str(differs)
        assert "hunter2" not in str(differs) and "123" in str(differs)
        found = await calls.ok("thread_search", query="key")
        assert secret not in calls.text and secret not in str(found)


BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown thread": ("load", {"thread_id": "nothing"}, "no thread called 'nothing'"),
    "an unknown thread to list": ("list", {"thread_id": "nothing"}, "no thread called 'nothing'"),
    "an unknown thread to search": ("search", {"query": "x", "thread_id": "nothing"}, "no thread called 'nothing'"),
    "an unknown checkpoint": ("rollback", {"thread_id": "main", "checkpoint_id": "zzzz"}, "no state checkpoint zzzz"),
    "another thread's": ("rollback", {"thread_id": "main", "checkpoint_id": "OTHER"}, "is of thread other, not of main"),
    "no object": ("save", {"thread_id": "main", "state": [1]}, "state"),
    "no name": ("save", {"thread_id": "", "state": {}}, "cannot be the name of a thread"),
    "a thread that is there": (
        "fork", {"thread_id": "main", "checkpoint_id": "MAIN", "new_thread_id": "other"}, "there is a thread other already",
    ),
    "nothing to search": ("search", {"query": " "}, "nothing to search for"),
    "an unknown handoff": ("adopt", {"handoff_id": "zzzz"}, "no handoff begins with 'zzzz'"),
    "nobody to hand to": ("handoff", {"thread_id": "main", "to_agent": ""}, "needs an agent to go to"),
    "another argument": ("load", {"thread_id": "main", "ns": "x"}, "is no argument of it"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
async def test_bad_input_is_told_and_nothing_is_lost(server: Server, what: str) -> None:
    tool, arguments, said = BAD[what]
    async with connected(server) as calls:
        ids = {
            "MAIN": (await calls.ok("thread_save", thread_id="main", state={"x": 1}))["checkpoint_id"],
            "OTHER": (await calls.ok("thread_save", thread_id="other", state={"x": 1}))["checkpoint_id"],
        }
        before = await calls.ok("thread_list")
        given = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in arguments.items()}
        assert said in (await calls.fails(f"thread_{tool}", **given))["message"]
        assert [t["checkpoint_id"] for t in (await calls.ok("thread_list"))["threads"]] == [
            t["checkpoint_id"] for t in before["threads"]
        ]


async def test_damage_is_named(server: Server) -> None:
    with takeback.open(server.cwd) as ws:
        text = os.urandom(400).hex()
        ws.threads.save("main", {"big": text})
        ws.threads.save("main", {"step": 2})
        row = next(row.seq for row in ws.store.journal.rows() if row.kind == "value")
        assert ws.store.folder is not None
        journal = ws.store.folder / "journal.db"
    with sqlite3.connect(journal) as db:
        db.execute(f"UPDATE log SET body = substr(body, 1, 60) || x'00' || substr(body, 62) WHERE seq = {row}")
    db.close()
    async with connected(server) as calls:
        found = await calls.ok("thread_verify")
        assert not found["ok"] and f"row {row}" in calls.text and "FAIL" in calls.text and "big" in calls.text
        assert (await calls.ok("thread_load", thread_id="main"))["state"] == {"step": 2}


async def test_nothing_is_protected(project: Path) -> None:
    async with connected(Server(project, os.environ)) as calls:
        error = await calls.fails("thread_save", thread_id="main", state={})
        assert error["code"] == 10 and "takeback_init" in error["hint"]
