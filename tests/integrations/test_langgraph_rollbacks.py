"""What comes of going back in a LangGraph thread with the files and the world: all of it, or what stayed, by name."""

from __future__ import annotations

import asyncio
import json
import operator
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs the dependency group `integrations`")

from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import takeback
from servers.payments import Payments, serving
from takeback.config.policy import Policy
from takeback.errors import CredentialNeeded, TakebackError
from takeback.integrations.langgraph import RolledBack, TakebackSaver
from takeback.workspace import Workspace

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    done: Annotated[list[str], operator.add]


def line(saver: TakebackSaver, **nodes: Callable[[], object]) -> Any:
    """A graph of nodes, one after another."""
    builder, before = StateGraph(State), START
    for name, does in nodes.items():
        builder.add_node(name, lambda state, name=name, does=does: (does() and {"done": [name]}) or {"done": [name]})
        builder.add_edge(before, name)
        before = name
    return builder.compile(checkpointer=saver)


def id_of(snapshot: Any) -> str:
    return str(snapshot.config["configurable"]["checkpoint_id"])


def first_of(graph: Any) -> str:
    return id_of(list(graph.get_state_history(CONFIG))[-1])


def files(ws: Workspace) -> set[str]:
    return {path.name for path in ws.root.iterdir()}


def charged(ws: Workspace, server: Payments) -> Callable[[], object]:
    def charge() -> object:
        (ws.root / "invoice.txt").write_text("20 EUR")
        request = urllib.request.Request(f"{server.url}/v1/charges", b'{"amount": 2000}')
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            made = json.load(answer)
        return ws.record_http(
            "POST", f"{server.url}/v1/charges", status=201, response_body=made,
            inverse_url=f"{server.url}/v1/refunds", inverse_json={"charge": "{response.body.id}"},
        )  # fmt: skip

    return charge


@pytest.mark.parametrize("awaited", [False, True], ids=["called", "awaited"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit", None])
def test_each_checkpoint_has_the_files_of_its_moment_however_it_is_saved(ws: Workspace, durability: Any, awaited: bool):
    def writes(name: str) -> Callable[[], object]:
        return lambda: [(ws.root / each).write_text(name) for each in ("f", name)]

    def fails() -> object:
        writes("three")()
        raise RuntimeError("it went wrong")

    graph = line(saver := TakebackSaver(ws), one=writes("one"), two=writes("two"), three=fails)
    how = {"durability": durability} if durability else {}
    with pytest.raises(RuntimeError, match="it went wrong"):
        asyncio.run(graph.ainvoke({"done": []}, CONFIG, **how)) if awaited else graph.invoke(
            {"done": []}, CONFIG, **how
        )
    history = list(graph.get_state_history(CONFIG))
    assert history[0].values["done"] == ["one", "two"]
    for snapshot in history:
        saver.rollback_to("t", id_of(snapshot), with_files=True)
        done = snapshot.values.get("done", [])
        assert files(ws) == {*done, *(["f"] if done else [])}, done
        assert not done or (ws.root / "f").read_text() == done[-1]


def test_a_run_that_goes_on_is_the_same_turn_and_what_a_person_did_meanwhile_is_not(ws: Workspace):
    saver = TakebackSaver(ws)

    @task
    def write(name: str) -> None:
        (ws.root / name).write_text(name)

    @entrypoint(checkpointer=saver)
    def flow(asked: str) -> str:
        write("before").result()
        answer = str(interrupt("go on?"))
        write(answer).result()
        return answer

    flow.invoke("go", CONFIG)
    (ws.root / "person").write_text("meanwhile")
    assert flow.invoke(Command(resume="after"), CONFIG) == "after"
    assert len(ws.history().agent_turns) == 1
    said = saver.rollback_to("t", first_of(flow), with_files=True)
    assert files(ws) == {"person"} and said.stayed == (("person", "a person's"),)
    assert said.message == "took back after, before, thread t; stays: person (a person's)"


def test_what_cannot_all_go_back_is_refused_before_anything_changed(ws: Workspace):
    graph = line(saver := TakebackSaver(ws), write=lambda: (ws.root / "a.txt").write_text("theirs"))
    graph.invoke({"done": []}, CONFIG)
    (ws.root / "a.txt").write_text("mine")
    head = graph.get_state(CONFIG)
    with pytest.raises(TakebackError, match=r"nothing was changed: a\.txt: changed by you since") as refused:
        saver.rollback_to("t", first_of(graph), with_files=True)
    assert "anyway=True" in refused.value.hint and graph.get_state(CONFIG) == head
    said = saver.rollback_to("t", first_of(graph), with_files=True, anyway=True)
    assert said.stayed == (("a.txt", "changed by you since"),) and not said.whole
    assert said.rolled_back_from == id_of(head) != said.checkpoint_id
    assert (ws.root / "a.txt").read_text() == "mine" and graph.get_state(CONFIG).values.get("done", []) == []


def test_a_refund_that_policy_refuses_leaves_the_state_where_it_is(ws: Workspace):
    with serving() as server:
        graph = line(saver := TakebackSaver(ws), charge=charged(ws, server))
        graph.invoke({"done": []}, CONFIG)
        ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({"http.compensating": "refuse"}))
        head = graph.get_state(CONFIG)
        with pytest.raises(TakebackError, match=r"POST .*refused by policy"):
            saver.rollback_to("t", first_of(graph), with_files=True, approve=lambda plan: True)
        assert graph.get_state(CONFIG) == head and files(ws) == {"invoice.txt"} and not server.refunds


def test_a_charge_that_a_person_vouched_for_later_stays_where_it_was_begun(ws: Workspace):
    """To go back to a state that has the charge does not refund it."""

    def charge() -> object:
        url, refund = "https://pay.example/charges", {"charge": "{response.body.id}"}
        return ws.record_http("POST", url, status=None, inverse_url="/refunds", inverse_json=refund)

    graph = line(saver := TakebackSaver(ws), charge=charge, label=lambda: (ws.root / "label.txt").write_text("L"))
    graph.invoke({"done": []}, CONFIG)
    (act,) = ws.effects()
    ws.resolve(act.id, "happened", {"id": "ch_1"})
    target = next(found for found in graph.get_state_history(CONFIG) if found.next == ("label",))
    said = saver.rollback_to("t", id_of(target), with_files=True, approve=lambda plan: not plan.outside)
    assert said.whole and ws.find_effect(act.id).shown_state == "live" and "label.txt" not in files(ws)


@pytest.mark.parametrize("awaited", [False, True], ids=["called", "awaited"])
def test_a_refund_that_is_lost_on_the_way_leaves_the_state_where_it_is(ws: Workspace, awaited: bool):
    with serving() as server:
        graph = line(saver := TakebackSaver(ws), charge=charged(ws, server), more=lambda: True)
        graph.invoke({"done": []}, CONFIG)
        head, target = graph.get_state(CONFIG), first_of(graph)
        server.misbehave("reset")

        def back() -> RolledBack:
            given: dict[str, Any] = {"with_files": True, "approve": lambda plan: True}
            return (
                asyncio.run(saver.arollback_to("t", target, **given))
                if awaited
                else saver.rollback_to("t", target, **given)
            )

        said = back()
        assert isinstance(said, takeback.Outcome) and not said.whole
        assert graph.get_state(CONFIG) == head and said.checkpoint_id == id_of(head)
        names = [name for name, _ in said.stayed]
        assert names[0].startswith("POST ") and names[1:] == ["thread t"]
        assert "invoice.txt" in said.back and "thread t" not in said.back
        assert f"thread t ({dict(said.stayed)['thread t']})" in said.message


def test_a_state_that_cannot_be_read_is_not_gone_back_to(project: Path):
    class Shelf:
        name = "shelf"
        kept: dict[str, bytes] = {}  # noqa: RUF012
        is_away = False

        def put(self, data: bytes) -> str:
            self.kept[str(len(self.kept))] = data
            return str(len(self.kept) - 1)

        def get(self, blob: str, sha256: bytes) -> bytes:
            if self.is_away:
                raise TakebackError("the shelf cannot be reached", "try later")
            return self.kept[blob]

        def close(self) -> None:
            pass

    with TakebackSaver(project, files=False, blobs=(shelf := Shelf())) as saver:
        graph = line(saver, one=lambda: True, two=lambda: True)
        graph.invoke({"done": ["x" * 5000]}, CONFIG)
        target, head = list(graph.get_state_history(CONFIG))[1], graph.get_state(CONFIG)
    with TakebackSaver(project, files=False, blobs=shelf) as saver:
        graph = line(saver, one=lambda: True, two=lambda: True)
        shelf.is_away = True
        with pytest.raises(TakebackError, match="the shelf cannot be reached; nothing was changed"):
            saver.rollback_to("t", id_of(target))
        shelf.is_away = False
        assert graph.get_state(CONFIG) == head
        said = saver.rollback_to("t", id_of(target))
        assert said.rolled_back_from == id_of(head) and graph.get_state(CONFIG).values == target.values


KILLED = """
import os, signal, sys
import takeback
from takeback.domains import files
from takeback.integrations.langgraph import TakebackSaver

ws = takeback.open(sys.argv[1])
saver, target = TakebackSaver(ws), sys.argv[2]
files.Files.apply = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
saver.rollback_to("t", target, with_files=True)
"""


def test_a_rollback_that_was_killed_is_finished_by_whichever_thread_comes_next(ws: Workspace):
    graph = line(saver := TakebackSaver(ws), write=lambda: (ws.root / "f.txt").write_text("x"))
    graph.invoke({"done": []}, CONFIG)
    target = first_of(graph)
    done = subprocess.run([sys.executable, "-c", KILLED, str(ws.root), target], timeout=60, env=os.environ)
    assert done.returncode == -signal.SIGKILL and ws.interrupted()
    other = line(saver, other=lambda: (ws.root / "g.txt").write_text("x"))
    other.invoke({"done": []}, {"configurable": {"thread_id": "other"}})
    assert not ws.interrupted() and files(ws) == {"g.txt"}
    assert graph.get_state(CONFIG).values.get("done", []) == []


def test_a_run_that_finishes_a_killed_rollback_tells_the_log_and_the_saver(ws: Workspace, caplog):
    graph = line(saver := TakebackSaver(ws), write=lambda: (ws.root / "f.txt").write_text("x"))
    graph.invoke({"done": []}, CONFIG)
    assert saver.finished is None
    killed(ws, first_of(graph))
    other = CONFIG | {"configurable": {"thread_id": "other"}}
    for _ in range(2):
        line(saver, look=lambda: None).invoke({"done": []}, other)
    told = "finished a rollback of thread t that was interrupted: took back f.txt, thread t"
    assert [r.getMessage() for r in caplog.records if r.name == "takeback"] == [told], "once"
    assert saver.finished is not None and saver.finished.message == told
    assert saver.finished.back == ("f.txt", "thread t") and saver.finished.plan.request.threads == ("t",)


def killed(ws: Workspace, target: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(ws.root), target], timeout=60, env=os.environ)
    assert done.returncode == -signal.SIGKILL and ws.interrupted()


def test_a_rollback_that_finishes_its_own_killed_one_says_what_went_back(ws: Workspace):
    graph = line(saver := TakebackSaver(ws), write=lambda: (ws.root / "f.txt").write_text("x"))
    graph.invoke({"done": []}, CONFIG)
    target, head = first_of(graph), id_of(graph.get_state(CONFIG))
    killed(ws, target)
    said = saver.rollback_to("t", target, with_files=True)
    assert said.back == ("f.txt", "thread t") and said.whole and said.id and not said.nothing_to_take_back
    assert said.message == "finished a rollback of thread t that was interrupted: took back f.txt, thread t"
    assert said.finished == said and said.finished.back == said.back and said.finished.message == said.message
    assert (said.restored_from, said.rolled_back_from) == (target, head)


@pytest.mark.parametrize("goes_wrong", [False, True], ids=["done", "refused"])
def test_what_was_finished_of_another_thread_is_told_with_the_result_or_the_error(ws: Workspace, goes_wrong: bool):
    saver, other = TakebackSaver(ws), CONFIG | {"configurable": {"thread_id": "other"}}
    graph = line(saver, write=lambda: (ws.root / "f.txt").write_text("x"))
    graph.invoke({"done": []}, CONFIG)
    line(saver, write=lambda: (ws.root / "g.txt").write_text("x")).invoke({"done": []}, other)
    target, first = first_of(graph), id_of(list(graph.get_state_history(other))[-1])
    if goes_wrong:
        (ws.root / "g.txt").write_text("a person's")
    killed(ws, target)
    whose = "a person's" if goes_wrong else "thread other did it"
    took = f"took back f.txt, thread t; stays: g.txt ({whose})"
    told = f"finished a rollback of thread t that was interrupted: {took}. Besides that: "
    if goes_wrong:
        with pytest.raises(TakebackError, match=r"so nothing was changed: g\.txt: changed by you since") as refused:
            saver.rollback_to("other", first, with_files=True)
        assert refused.value.message.startswith(told) and str(refused.value).startswith(told)
        finished = refused.value.finished
    else:
        said = saver.rollback_to("other", first, with_files=True)
        assert said.message == f"{told}took back g.txt, thread other" and said.back == ("g.txt", "thread other")
        finished = said.finished
    assert finished is not None and finished.plan.request.threads == ("t",) and f"{finished.message}. " in told
    assert (finished.back, finished.stayed) == (("f.txt", "thread t"), (("g.txt", whose),))
    assert "f.txt" not in files(ws) and not ws.interrupted()


def test_what_two_threads_save_at_once_is_each_ones_own(ws: Workspace):
    saver, together = TakebackSaver(ws), threading.Barrier(2)
    graph = line(saver, meet=lambda: together.wait(30))
    runs = [
        threading.Thread(target=graph.invoke, args=({"done": []}, {"configurable": {"thread_id": name}}))
        for name in ("a", "b")
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    for effect in ws.history().effects:
        if effect.domain == "state":
            assert len(effect.turns) == 1, effect


CUT_OFF = """
import os, signal, sys
import takeback
import test_langgraph_rollbacks as t
from takeback.integrations.langgraph import TakebackSaver

ws = takeback.open(sys.argv[1])

def dies():
    (ws.root / "two").write_text("2")
    os.kill(os.getpid(), signal.SIGKILL)

t.line(TakebackSaver(ws), one=lambda: (ws.root / "one").write_text("1"), two=dies).invoke({"done": []}, t.CONFIG)
"""


def test_what_is_found_of_a_run_that_was_killed_is_named_and_left_to_a_person(ws: Workspace):
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[1]))),
    }
    done = subprocess.run([sys.executable, "-c", CUT_OFF, str(ws.root)], timeout=60, env=environ)
    assert done.returncode == -signal.SIGKILL
    (ws.root / "person").write_text("p")
    graph = line(saver := TakebackSaver(ws), one=lambda: True, two=lambda: True)
    with pytest.raises(TakebackError, match="nothing was changed: person: found after its turn was cut off") as refused:
        saver.rollback_to("t", first_of(graph), with_files=True)
    assert "two: found after" in refused.value.message
    said = saver.rollback_to("t", first_of(graph), with_files=True, anyway=True)
    assert files(ws) == {"person", "two"} and said.back == ("one", "thread t")
    assert graph.get_state(CONFIG).values.get("done", []) == []


WITHOUT_KEY = """
import os, signal, sys
import takeback
from takeback.domains import http
from takeback.integrations.langgraph import TakebackSaver
from takeback.config.policy import Policy

ws = takeback.open(sys.argv[1])
bound = {"PAY_KEY": (sys.argv[4],)}
ws.settings = ws.observer.settings = ws.settings._replace(
    policy=Policy({"http.compensating": "allow"}), credentials=bound
)
plain = http.Http.run

def run(self, inverse, key):
    if sys.argv[3] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    plain(self, inverse, key)
    os.kill(os.getpid(), signal.SIGKILL)

http.Http.run = run
TakebackSaver(ws).rollback_to("t", sys.argv[2], with_files=True)
"""


@pytest.mark.parametrize("killed", ["before", "after"])
def test_a_credential_that_is_missing_after_a_killed_rollback_stops_nobody(
    ws: Workspace, killed: str, monkeypatch: pytest.MonkeyPatch
):
    """Of two refunds the newer one was being sent when the rollback was killed, and the older one was not begun. Later
    runs go on without the key; with it a person takes back what is left, and nothing is ever sent twice."""
    with serving() as server:
        free = Policy({"http.compensating": "allow"})
        bound = {"PAY_KEY": (server.url,)}
        ws.settings = ws.observer.settings = ws.settings._replace(policy=free, credentials=bound)

        def charge(amount: int) -> Callable[[], object]:
            def work() -> object:
                request = urllib.request.Request(f"{server.url}/v1/charges", json.dumps({"amount": amount}).encode())
                request.add_header("Content-Type", "application/json")
                with urllib.request.urlopen(request) as answer:
                    made = json.load(answer)
                return ws.record_http(
                    "POST", f"{server.url}/v1/charges", status=201, response_body=made,
                    inverse_url=f"{server.url}/v1/refunds", inverse_json={"charge": "{response.body.id}"},
                    inverse_headers={"Authorization": "Bearer ${env:PAY_KEY}"},
                )  # fmt: skip

            return work

        saver = TakebackSaver(ws)
        graph = line(saver, one=charge(1), two=charge(2))
        graph.invoke({"done": []}, CONFIG)
        target, before = first_of(graph), graph.get_state(CONFIG).values
        words = [sys.executable, "-c", WITHOUT_KEY, str(ws.root), target, killed, server.url]
        done = subprocess.run(words, timeout=60, env={**os.environ, "PAY_KEY": "k-1"}, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL and ws.interrupted(), done.stderr
        with pytest.raises(takeback.TakebackError, match="PAY_KEY is not set"):
            ws.resume()  # a person is told, and nothing is ended without them
        assert ws.interrupted()

        other = line(saver, other=lambda: (ws.root / "g.txt").write_text("x"))
        other.invoke({"done": []}, {"configurable": {"thread_id": "other"}})
        assert not ws.interrupted() and files(ws) == {"g.txt"}
        assert graph.get_state(CONFIG).values == before, "the state stays where what it stands on did"
        newer, older = ws.effects()
        assert (newer.shown_state, older.shown_state) == ("unknown", "live")
        assert len(server.refunds) == (killed == "after")
        notes = [u.note for u in ws.history().undos.values()]
        assert all("PAY_KEY is not set" in note and f"takeback resolve {newer.id[:8]}" in note for note in notes), notes
        assert all(note.startswith("it may have been sent before, and no answer came") for note in notes), notes

        monkeypatch.setenv("PAY_KEY", "k-1")
        with takeback.open(ws.root) as later:
            later.settings = later.observer.settings = later.settings._replace(policy=free, credentials=bound)
            assert not later.plan("revert", newer.id).outside, "it may have been sent: a person says so first"
            later.resolve(newer.id, "undone" if killed == "after" else "not-undone")
            for act in later.effects():
                if act.shown_state == "live":
                    assert later.apply(later.plan("revert", act.id)).whole
            assert [act.shown_state for act in later.effects()] == ["undone", "undone"]
        assert sorted(made["charge"] for made in server.refunds.values()) == sorted(server.charges)


def test_each_effect_is_named_and_none_that_is_gone(ws: Workspace):
    """Another thread's charge and file, taken back since, are no part of what stays."""
    with serving() as server:
        ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({"http.compensating": "allow"}))
        saver, other = TakebackSaver(ws), CONFIG | {"configurable": {"thread_id": "other"}}
        line(saver, charge=charged(ws, server)).invoke({"done": []}, other)
        (theirs,) = ws.effects()
        pay = charged(ws, server)
        graph = line(saver, one=pay, two=pay, three=pay)
        graph.invoke({"done": []}, CONFIG)
        mine = [act for act in ws.effects() if act.id != theirs.id]
        assert ws.revert(theirs.id).whole and ws.revert("invoice.txt").whole
        said = saver.rollback_to("t", first_of(graph), with_files=True)
        assert said.stayed == () and said.left == (), said
        named = {f"{act.summary} ({act.id[:8]})" for act in mine}
        assert len(named) == 3 and named < {*said.back} and len(server.refunds) == 4


def test_a_credential_that_is_missing_is_told_before_anybody_is_asked(ws: Workspace, monkeypatch: pytest.MonkeyPatch):
    def works() -> object:
        return ws.record_http(
            "POST", "https://pay.example/charges", status=201, response_body={"id": "ch_1"},
            inverse_url="https://pay.example/refunds", inverse_headers={"Authorization": "Bearer ${env:PAY_KEY}"},
        )  # fmt: skip

    def never(plan: object) -> bool:
        raise AssertionError("nobody can allow that")

    graph = line(saver := TakebackSaver(ws), charge=works)
    graph.invoke({"done": []}, CONFIG)
    monkeypatch.setenv("PAY_KEY", "k-1")
    with pytest.raises(CredentialNeeded, match=r"PAY_KEY is not bound to https://pay\.example") as refused:
        saver.rollback_to("t", first_of(graph), with_files=True, approve=never)
    assert '[credentials.PAY_KEY] origins = ["https://pay.example"]' in refused.value.hint
    bound = {"PAY_KEY": ("https://pay.example",)}
    ws.settings = ws.observer.settings = ws.settings._replace(credentials=bound)
    monkeypatch.delenv("PAY_KEY")
    with pytest.raises(CredentialNeeded, match="PAY_KEY is not set") as refused:
        saver.rollback_to("t", first_of(graph), with_files=True, approve=never)
    assert "environment of this program" in refused.value.hint and "--only" not in refused.value.hint


def test_who_changed_it_since_is_told_by_the_thread(ws: Workspace):
    saver, other = TakebackSaver(ws), CONFIG | {"configurable": {"thread_id": "other"}}
    graph = line(saver, write=lambda: (ws.root / "f.txt").write_text("mine"))
    graph.invoke({"done": []}, CONFIG)
    line(saver, write=lambda: (ws.root / "f.txt").write_text("theirs")).invoke({"done": []}, other)
    with pytest.raises(TakebackError, match=r"f\.txt: changed by thread other since"):
        saver.rollback_to("t", first_of(graph), with_files=True)


def test_what_came_of_it_is_read_by_names_too(ws: Workspace):
    graph = line(saver := TakebackSaver(ws), write=lambda: (ws.root / "f.txt").write_text("x"))
    graph.invoke({"done": []}, CONFIG)
    said = saver.rollback_to("t", first_of(graph), with_files=True)
    assert said["message"] == said.message and said.get("back") == said.back and said.get("nope", 1) == 1
    as_table = dict(said)
    assert as_table == {name: getattr(said, name) for name in as_table} and as_table["thread_id"] == "t"
    assert {**said}["results"] == said.results and said[1] == said.id
    with pytest.raises(KeyError):
        said["nope"]
    assert (said.restored_from, said.rolled_back_from) != ("", "")


def test_a_rollback_that_another_was_faster_at_left_no_head(ws: Workspace):
    graph = line(saver := TakebackSaver(ws), act=lambda: ws.record_command("made it", argv=["true"]))
    graph.invoke({"done": []}, CONFIG)
    target, head = first_of(graph), id_of(graph.get_state(CONFIG))
    won: list[RolledBack] = []

    def while_asked(plan: object) -> bool:
        won.append(saver.rollback_to("t", target, with_files=True, approve=lambda plan: True))
        return True

    lost = saver.rollback_to("t", target, with_files=True, approve=while_asked)
    assert [(said.restored_from, said.rolled_back_from) for said in won] == [(target, head)]
    assert lost.nothing_to_take_back and not lost.back and lost.checkpoint_id == won[0].checkpoint_id
    assert (lost.restored_from, lost.rolled_back_from) == ("", "")


def test_the_head_that_is_left_is_the_one_that_was_there_when_it_went_back(ws: Workspace):
    acts = {"one": lambda: None, "act": lambda: ws.record_command("made it", argv=["true"])}
    graph = line(saver := TakebackSaver(ws), **acts)
    graph.invoke({"done": []}, CONFIG)
    first, second = first_of(graph), id_of(list(graph.get_state_history(CONFIG))[-2])
    won: list[RolledBack] = []

    def while_asked(plan: object) -> bool:
        won.append(saver.rollback_to("t", second, with_files=True, approve=lambda plan: True))
        return True

    lost = saver.rollback_to("t", first, with_files=True, approve=while_asked)
    assert (lost.restored_from, lost.rolled_back_from) == (first, won[0].checkpoint_id)


def test_a_thread_that_stayed_where_it_was_was_not_restored_from_anywhere(ws: Workspace):
    with serving() as server:
        ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({"http.compensating": "allow"}))
        graph = line(saver := TakebackSaver(ws), charge=charged(ws, server))
        graph.invoke({"done": []}, CONFIG)
        server.misbehave("drop", 6)
        said = saver.rollback_to("t", first_of(graph), with_files=True)
    assert said.checkpoint_id == id_of(graph.get_state(CONFIG))
    assert (said.restored_from, said.rolled_back_from) == ("", "") and said.stayed
    assert any("takeback " in why for _, why in said.stayed), said.stayed


def refunded(server: str, charge: str) -> None:
    request = urllib.request.Request(f"{server}/v1/refunds", json.dumps({"charge": charge}).encode())
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request).close()


@pytest.mark.parametrize("others", [False, True], ids=["alone", "another thread runs"])
@pytest.mark.parametrize("how", ["record", "tool"])
def test_what_a_node_begins_after_its_run_was_cancelled_is_its_threads(ws: Workspace, how: str, others: bool):
    """LangGraph runs a sync node in a thread, which goes on to its end."""
    cancelled, over = threading.Event(), threading.Event()

    @takeback.tool(undo=refunded, undo_args={"server": "{result.server}", "charge": "{result.id}"})
    def charge(url: str) -> dict[str, str]:
        request = urllib.request.Request(f"{url}/v1/charges", b'{"amount": 2000}')
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            return {"server": url, "id": json.load(answer)["id"]}

    with serving() as server:

        def works() -> None:
            (ws.root / "a").write_text("a")
            loop.call_soon_threadsafe(begun.set)
            cancelled.wait(30)
            charge(server.url) if how == "tool" else charged(ws, server)()
            over.set()

        def waits() -> None:
            loop.call_soon_threadsafe(begun.set)
            over.wait(30)

        graph, other = line(saver := TakebackSaver(ws), works=works), line(saver, waits=waits)

        async def run() -> None:
            nonlocal loop, begun
            loop, begun = asyncio.get_running_loop(), asyncio.Event()
            running = asyncio.create_task(graph.ainvoke({"done": []}, CONFIG))
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            begun = asyncio.Event()
            if others:
                beside = asyncio.create_task(other.ainvoke({"done": []}, {"configurable": {"thread_id": "u"}}))
                await begun.wait()
            cancelled.set()
            await asyncio.to_thread(over.wait, 30)
            if others:
                await beside

        loop: Any = None
        begun: Any = None
        asyncio.run(run())
        (act,) = ws.effects()
        assert act.by["turn"] in {turn.number for turn in ws.history().turns_of(("t",))}
        saver.rollback_to("t", first_of(graph), with_files=True, approve=lambda plan: True)
        assert [act.shown_state for act in ws.effects()] == ["undone"] and len(server.refunds) == 1
