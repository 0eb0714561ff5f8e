"""Threads whose values are kept beyond this machine: encrypted there, referred to here."""

from __future__ import annotations

from pathlib import Path

import pytest

import takeback
from servers import walrus
from takeback.errors import CredentialNeeded, TakebackError
from takeback.state_stores.walrus import Walrus
from takeback.threads import Threads
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
    assert (head.rolled_back_from, head.blob_id) == (first.id, first.blob_id)
    assert len(server.blobs) == 2 and ws.threads.load(head) == STATE


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
