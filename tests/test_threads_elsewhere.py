"""Threads whose values are kept beyond this machine: encrypted there, referred to here."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from servers import walrus
from takeback.errors import CredentialNeeded, TakebackError
from takeback.model.thread_states import NewState
from takeback.threads.stores.walrus import Walrus
from takeback.threads.threads import Threads
from takeback.workspace import Workspace

KEY = "ab" * 32
STATE = {"messages": [{"role": "user", "content": f"swordfish {n} " * 5} for n in range(40)], "step": 1}


@pytest.fixture
def server() -> object:
    with walrus.serving() as found:
        yield found


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: walrus.WalrusServer) -> Workspace:
    monkeypatch.setenv("TAKEBACK_HOME", str(tmp_path / "home"))
    for name in ("PUBLISHER", "AGGREGATOR"):
        monkeypatch.setenv(f"TAKEBACK_WALRUS_{name}", server.url)
    monkeypatch.setenv("TAKEBACK_WALRUS_KEY", KEY)
    (tmp_path / "project").mkdir()
    return takeback.open(tmp_path / "project", create="state")


def far(ws: Workspace, server: walrus.WalrusServer) -> Threads:
    return Threads(ws, Walrus(server.url, server.url, key=KEY))


def test_values_leave_encrypted_in_one_blob_and_are_read_by_whoever_has_the_key(
    ws: Workspace, server: walrus.WalrusServer
) -> None:
    threads = far(ws, server)
    server.hide(2)
    saved = threads.save("main", {**STATE, "other": "swordfish " * 100})
    assert list(server.blobs) == [saved.blob_id]
    assert b"swordfish" not in server.blobs[saved.blob_id]
    again = threads.save("main", {**STATE, "step": 2})
    assert len(server.blobs) == 1, "what is held already is not sent again"
    folder = ws.store.folder
    ws.close()
    assert folder is not None
    assert not any(b"swordfish" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    ws = takeback.open(ws.root)
    assert ws.threads.load(ws.threads.get("main", again.id)) == {**STATE, "step": 2}
    assert all(each.ok for each in ws.threads.verify()) and ws.verify(data=True).ok


def test_nothing_is_recorded_that_could_not_be_stored(ws: Workspace, server: walrus.WalrusServer) -> None:
    threads = far(ws, server)
    server.misbehave("PUT", 500)
    with pytest.raises(TakebackError):
        threads.save("main", STATE)
    assert ws.store.journal.head().seq == 0
    threads.save("main", STATE)
    assert ws.threads.load(ws.threads.get("main")) == STATE


def test_a_rollback_names_the_blob_that_was_restored(ws: Workspace, server: walrus.WalrusServer) -> None:
    threads = far(ws, server)
    first = threads.save("main", STATE)
    threads.save("main", {**STATE, "messages": STATE["messages"][:5]})
    ws.roll_back_thread("main", first.id)
    head = ws.threads.get("main")
    assert (head.restored_from, head.blob_id) == (first.id, first.blob_id)
    assert len(server.blobs) == 2 and ws.threads.load(head) == STATE


def test_a_state_names_only_a_blob_that_holds_some_of_it(ws: Workspace, server: walrus.WalrusServer) -> None:
    threads = far(ws, server)
    assert threads.save("main", {"zz": 1}).blob_id == ""
    large = threads.save("main", STATE)
    small = threads.save("main", {"zz": 2})
    assert small.blob_id == "" and list(server.blobs) == [large.blob_id]
    again = threads.save("main", {**STATE, "zz": 3})
    assert again.blob_id == large.blob_id and list(server.blobs) == [large.blob_id]
    other = threads.save("main", {**STATE, "messages": STATE["messages"][:5]})
    for target in (small, large, small, other):
        ws.roll_back_thread("main", target.id)
        head = ws.threads.get("main")
        assert (head.restored_from, head.blob_id) == (target.id, target.blob_id)
    assert ws.threads.fork("main", small.id, "aside").blob_id == ""
    with threads.together():
        put = [
            threads.put(NewState("side", "", "", "", values, codec="typed"))
            for values in ({"a": b"x" * 500}, {"a": b"x" * 500, "b": b"1"}, {"b": b"2"})
        ]
    first, second, third = (each.blob_id for each in put)
    assert first in server.blobs and (second, third) == (first, "")


def test_a_lost_blob_and_a_wrong_key_are_told_apart(
    ws: Workspace, server: walrus.WalrusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = far(ws, server).save("main", STATE)
    monkeypatch.setenv("TAKEBACK_WALRUS_KEY", "cd" * 32)
    ws.close()
    ws = takeback.open(ws.root)
    with pytest.raises(CredentialNeeded):
        ws.threads.load(ws.threads.get("main"))
    monkeypatch.setenv("TAKEBACK_WALRUS_KEY", KEY)
    server.blobs.clear()
    ws.close()
    ws = takeback.open(ws.root)
    bad = [each for each in ws.threads.verify() if not each.ok]
    assert [(each.id, saved.blob_id in each.why) for each in bad] == [(saved.id, True)]
    assert not ws.verify().ok


# -- by the setting, from every surface ------------------------------------------


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: walrus.WalrusServer, project: Path) -> Path:
    """A project whose owner keeps state on Walrus, with nothing else set but where this test's network is."""
    for name in ("PUBLISHER", "AGGREGATOR"):
        monkeypatch.setenv(f"TAKEBACK_WALRUS_{name}", server.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/takeback").mkdir(parents=True)
    (tmp_path / "config/takeback/config.toml").write_text('[threads]\nstore = "walrus"\n')
    return project


def _by_python(root: Path) -> None:
    with takeback.open(root, create=True) as ws:
        ws.threads.save("main", STATE)


def _by_conversation(root: Path) -> None:
    with takeback.open(root, create=True) as ws:
        chat = takeback.Conversation(ws, thread="main")
        with chat.turn("say it"):
            chat.append({"role": "assistant", "content": "swordfish " * 40})
        assert [message["role"] for message in chat.messages] == ["user", "assistant"]


def _by_command(root: Path) -> None:
    for words in (["init"], ["thread", "save", "main", "--state", json.dumps(STATE)]):
        subprocess.run([sys.executable, "-m", "takeback", *words], cwd=root, check=True, capture_output=True)


def _by_mcp(root: Path) -> None:
    from mcp import Client

    from takeback.surfaces.mcp.server import Server

    async def saved() -> None:
        async with Client(Server(root, os.environ)) as client:
            await client.call_tool("takeback_init", {})
            done = await client.call_tool("takeback_thread_save", {"thread_id": "main", "state": STATE})
            assert not done.is_error and done.structured_content["blob_id"]

    asyncio.run(saved())


def _by_langgraph(root: Path) -> None:
    from langgraph.checkpoint.base import empty_checkpoint

    from takeback.integrations.langgraph import TakebackSaver

    with TakebackSaver(root, files=False) as saver:
        at = {"configurable": {"thread_id": "main", "checkpoint_ns": ""}}
        checkpoint = {**empty_checkpoint(), "channel_values": {"messages": "swordfish " * 40}}
        saver.put(at, {**checkpoint, "channel_versions": {"messages": 1}}, {}, {"messages": 1})


def _by_langgraph_alone(root: Path) -> None:
    """One saver, with nothing said, whatever the setting of all others."""
    from langgraph.checkpoint.base import empty_checkpoint

    from takeback.integrations.langgraph import TakebackSaver

    os.environ["TAKEBACK_THREADS_STORE"] = "local"
    try:
        ws = takeback.open(root, create="state")
    finally:
        del os.environ["TAKEBACK_THREADS_STORE"]
    with ws, TakebackSaver(ws, False, Walrus()) as saver:
        at = {"configurable": {"thread_id": "main", "checkpoint_ns": ""}}
        checkpoint = {**empty_checkpoint(), "channel_values": {"messages": "swordfish " * 40}}
        saver.put(at, {**checkpoint, "channel_versions": {"messages": 1}}, {}, {"messages": 1})


@pytest.mark.parametrize("by", [_by_python, _by_conversation, _by_command, _by_mcp, _by_langgraph, _by_langgraph_alone])
def test_the_setting_sends_every_surface_there(chosen: Path, server: walrus.WalrusServer, tmp_path: Path, by) -> None:
    by(chosen)
    assert server.blobs and not any(b"swordfish" in blob for blob in server.blobs.values())
    assert all(query == {"epochs": ["5"], "deletable": ["true"]} for verb, _, query in server.requests if verb == "PUT")
    key = tmp_path / "config/takeback/walrus.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(key.read_text().strip()) == 64
    with takeback.open(chosen) as again:
        assert not any(
            b"swordfish " * 35 in path.read_bytes() for path in again.store.folder.rglob("*") if path.is_file()
        ), "the values are not here as well, but for a line of summary"
        assert "swordfish" in repr(again.threads.load(again.threads.get("main")))
        assert all(each.ok for each in again.threads.verify())


def test_what_was_saved_before_the_setting_is_read_after_it_and_the_other_way_round(
    chosen: Path, server: walrus.WalrusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAKEBACK_THREADS_STORE", "local")
    with takeback.open(chosen, create=True) as ws:
        here = ws.threads.save("main", STATE)
    assert not server.blobs
    monkeypatch.delenv("TAKEBACK_THREADS_STORE")
    with takeback.open(chosen) as ws:
        ws.threads.save("main", {"note": "swordfish " * 100})
        ws.roll_back_thread("main", here.id)
        assert ws.threads.load(ws.threads.get("main")) == STATE
    monkeypatch.setenv("TAKEBACK_THREADS_STORE", "local")
    with takeback.open(chosen) as ws:
        ws.redo()
        assert ws.threads.load(ws.threads.get("main")) == {"note": "swordfish " * 100}


def test_the_key_lies_beside_the_configuration_that_holds_also_below_an_agent(
    chosen: Path, server: walrus.WalrusServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for words in (["init"], ["thread", "save", "main", "--state", json.dumps(STATE)]):
        subprocess.run([sys.executable, "-m", "takeback", *words], cwd=chosen, check=True, capture_output=True)
    assert (tmp_path / "config/takeback/walrus.key").exists()
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    words = ["thread", "show", "main", "--json"]
    shown = subprocess.run(
        [sys.executable, "-m", "takeback", *words], cwd=chosen, check=False, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    subprocess.run(
        [sys.executable, "-m", "takeback", "thread", "save", "main", "--state", '{"a": 1}'], cwd=chosen, check=True
    )
    assert not list((tmp_path / "another").rglob("*.key"))


def test_a_key_file_that_is_named_and_missing_is_not_made(
    chosen: Path, server: walrus.WalrusServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TAKEBACK_WALRUS_KEY_FILE", str(tmp_path / "no.key"))
    with takeback.open(chosen, create=True) as ws:
        with pytest.raises(CredentialNeeded, match=r"no\.key"):
            ws.threads.save("main", STATE)
        assert not (tmp_path / "no.key").exists() and not server.blobs


def test_one_key_is_made_by_several_at_once(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from takeback.threads.stores.sealed import make_key_file

    path = tmp_path / "config/walrus.key"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: make_key_file(path), range(16)))
    key = path.read_text()
    make_key_file(path)
    assert path.read_text() == key and os.listdir(path.parent) == ["walrus.key"]
