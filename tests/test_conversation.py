"""A conversation's messages, files and effects go back as one, come forward as one, and survive whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import takeback
from crash.points import Points
from sampling import examples
from servers import payments
from takeback import AsyncConversation, Conversation
from takeback.errors import Moved, UsageError
from takeback.system.safefs.posix import PosixFolder
from takeback.workspace import Workspace

ROOT = Path(__file__).parents[1]
YES = {"approve": lambda plan: True}


@pytest.fixture
def talk(ws: Workspace) -> Conversation:
    return Conversation(ws)


@pytest.fixture
def shop() -> Iterator[payments.Payments]:
    with payments.serving() as server:
        yield server


def answer(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def said(conversation: Conversation) -> list[str]:
    return [message["content"] for message in conversation.messages]


def files(project: Path) -> dict[str, str]:
    return {str(p.relative_to(project)): p.read_text() for p in sorted(project.rglob("*")) if p.is_file()}


def charge(ws: Workspace, shop: payments.Payments, amount: int) -> str:
    body = json.dumps({"amount": amount}).encode()
    asked = urllib.request.Request(f"{shop.url}/v1/charges", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked) as got:
        id = json.load(got)["id"]
    ws.record_http("POST", f"{shop.url}/v1/charges", status=201, inverse_url=f"{shop.url}/v1/charges/{id}")
    return str(id)


def standing(shop: payments.Payments) -> list[str]:
    return [id for id, charge in shop.charges.items() if charge["status"] != "voided"]


def in_a_new_process(project: Path, code: str, *more: str) -> subprocess.CompletedProcess[str]:
    program = "import os, sys, signal, takeback\nfrom takeback import Conversation\nroot = sys.argv[1]\n" + code
    return subprocess.run([sys.executable, "-c", program, str(project), *more], capture_output=True, text=True)


def command_on(log: Path, line: str) -> dict[str, Any]:
    """What takes a command back, as seen from outside: a line in a file beside the project."""
    return {"argv": [sys.executable, "-c", f"open({str(log)!r}, 'a').write({line!r})"]}


# -- messages ------------------------------------------------------------------------


def test_messages_are_kept_at_once_and_given_out_as_a_copy(ws: Workspace, talk: Conversation):
    talk.append({"role": "system", "content": "be kind", "more": [1, {"a": None}]})
    with talk.turn("hello"):
        assert said(talk) == ["be kind", "hello"]
        talk.append(answer("hi"))
        assert ws.threads.load(ws.threads.get("main"))["messages"][-1] == answer("hi")
    given = talk.messages
    given.append("mine"), given[0]["more"].append(2)
    assert talk.messages[0]["more"] == [1, {"a": None}] and len(talk.messages) == 3
    assert [s.source for s in ws.threads.list("main")] == ["conversation"] * 3
    assert ws.threads.get("main").summary == "assistant: hi"


def test_a_message_is_at_once_what_it_is_when_it_is_read_again(ws: Workspace, talk: Conversation):
    talk.append({"role": "tool", "content": ("a", {"b": (1, 2)})})
    assert talk.messages == Conversation(ws).messages == [{"role": "tool", "content": ["a", {"b": [1, 2]}]}]


def test_a_message_that_is_no_json_is_named_and_nothing_is_added(talk: Conversation):
    with pytest.raises(UsageError, match=r"message\.content\[1\]"):
        talk.append({"role": "user", "content": ["a", {1, 2}]})
    with pytest.raises(UsageError, match="no table"):
        talk.append(["user", "hello"])  # type: ignore[arg-type]
    assert talk.messages == []


@pytest.mark.parametrize("text", [5, b"hello", [{"type": "text", "text": "hello"}]])
def test_a_turn_that_begins_with_no_text_is_refused_and_nothing_is_begun(talk: Conversation, text: Any):
    with pytest.raises(UsageError, match="what a user says is a text"):
        talk.turn(text)
    with talk.turn("the next"):
        pass
    assert said(talk) == ["the next"]


def test_the_rest_of_a_threads_state_stays(ws: Workspace, talk: Conversation):
    ws.threads.save("main", {"plan": ["a"], "messages": [answer("hi")]})
    with talk.turn("go on"):
        pass
    assert ws.threads.load(ws.threads.get("main"))["plan"] == ["a"] and said(talk) == ["hi", "go on"]
    talk.undo()
    assert ws.threads.load(ws.threads.get("main")) == {"plan": ["a"], "messages": [answer("hi")]}


def test_a_thread_that_holds_something_else_is_refused(ws: Workspace):
    ws.threads.save("other", {"messages": {"not": "a list"}})
    with pytest.raises(UsageError, match="holds no conversation"):
        _ = Conversation(ws, "other").messages
    with pytest.raises(UsageError, match="cannot be the name"):
        Conversation(ws, "")


def test_another_writers_messages_must_be_read_before_one_goes_on(ws: Workspace, talk: Conversation):
    talk.append(answer("one"))
    other = Conversation(ws)
    other.append(answer("two"))
    with pytest.raises(Moved, match="another writer"):
        talk.append(answer("three"))
    with pytest.raises(Moved), talk.turn("four"):
        pytest.fail("the turn began all the same")
    assert said(talk) == ["one", "two"]  # now it has read them
    talk.append(answer("three"))
    assert said(other) == ["one", "two", "three"]


def test_a_take_back_elsewhere_is_followed(ws: Workspace, talk: Conversation, project: Path):
    talk.append(answer("one"))
    first = ws.threads.get("main").id
    talk.append(answer("two"))
    ran = in_a_new_process(project, "takeback.open(root).roll_back_thread('main', sys.argv[2])", first)
    assert ran.returncode == 0, ran.stderr
    talk.append(answer("three"))  # goes on from there, unasked
    assert said(talk) == ["one", "three"]
    ws.roll_back_thread("main", first)
    assert said(talk) == ["one"]


# -- undo and redo ------------------------------------------------------------------


def test_undo_takes_back_messages_and_files_by_one_take_back_and_says_so(
    ws: Workspace, talk: Conversation, project: Path
):
    (project / "README.md").write_text("a\nb\nc\n")
    talk.append({"role": "system", "content": "be kind"})
    before, at_first = talk.messages, files(project)
    with talk.turn("add tests\nplease"):
        (project / "src").mkdir()
        (project / "src/a.py").write_text("1\n")
        (project / "README.md").write_text("a\nb\nC\n")
        talk.append({"role": "assistant", "tool_calls": [{"id": "1"}]})
        talk.append({"role": "tool", "content": "ok"})
    after = talk.messages, files(project)
    count = len(ws.history().takebacks)
    undone = talk.undo()
    assert undone.done and undone.messages == 3 and undone.outcome is not None and undone.outcome.whole
    assert undone.message == 'took back the turn "add tests": 3 messages, 1 folder (src), 2 files: README.md, src/a.py'
    assert (talk.messages, files(project)) == (before, at_first)
    assert len(ws.history().takebacks) == count + 1
    redone = talk.redo()
    assert redone.done and redone.messages == 3 and redone.message.startswith('brought back the turn "add tests": 3')
    assert (talk.messages, files(project)) == after


def test_each_message_knows_the_files_of_its_moment(ws: Workspace, talk: Conversation, project: Path):
    with talk.turn("one"):
        (project / "a").write_text("1")
        talk.append(answer("wrote a"))
        (project / "b").write_text("1")
        talk.append(answer("wrote b"))
    with talk.turn("two"):
        (project / "c").write_text("1")
    states = {state.summary: state.id for state in ws.threads.list("main", "")}
    ws.roll_back_thread("main", states["assistant: wrote b"], with_files=True)
    assert said(talk) == ["one", "wrote a", "wrote b"] and files(project) == {"a": "1", "b": "1"}
    ws.roll_back_thread("main", states["assistant: wrote a"], with_files=True)
    assert said(talk) == ["one", "wrote a"] and files(project) == {"a": "1"}


def test_a_message_names_some_of_what_is_kept_and_counts_the_rest(talk: Conversation, project: Path):
    with talk.turn("write many"):
        for number in range(9):
            (project / f"f{number}").write_text("the agent's")
    for number in range(9):
        (project / f"f{number}").write_text("mine")
    told = talk.undo().message
    assert told.count("; kept ") == 4 and re.search(r"; kept 6 more \(takeback show [k-z]{8} lists them\)$", told)


def test_undo_stacks_and_so_does_redo(talk: Conversation, project: Path):
    seen = [(said(talk), files(project))]
    for n in range(3):
        with talk.turn(f"turn {n}"):
            (project / "f").write_text(f"{n}\n")
            (project / f"only{n}").write_text("x")
            talk.append(answer(f"did {n}"))
        seen.append((said(talk), files(project)))
    for n in (2, 1, 0):
        assert f'"turn {n}": 2 messages' in talk.undo().message
        assert (said(talk), files(project)) == seen[n]
    nothing = talk.undo()
    assert not nothing.done and nothing.message.startswith("nothing to take back") and nothing.outcome is None
    for n in (1, 2, 3):
        assert talk.redo().done
        assert (said(talk), files(project)) == seen[n]
    assert not talk.redo().done
    assert talk.undo().done and (said(talk), files(project)) == seen[2]  # undo after redo
    assert talk.redo().done and talk.undo(2).done and (said(talk), files(project)) == seen[1]
    two = talk.redo()
    assert two.message.startswith('brought back 2 turns, from "turn 1" on') and (said(talk), files(project)) == seen[3]
    assert talk.undo().done and talk.undo().done and talk.redo(2).messages == 4  # two undos, by one redo
    assert (said(talk), files(project)) == seen[3]
    assert "3 turns" in talk.undo(9).message and said(talk) == []
    with pytest.raises(UsageError, match="no number"):
        talk.undo(0)


def test_a_turn_of_messages_alone_and_a_turn_of_nothing(ws: Workspace, talk: Conversation):
    with talk.turn("hello"):
        talk.append(answer("hi"))
    with talk.turn():
        pass  # nothing to take back in it: undo steps over it
    assert talk.undo().message == 'took back the turn "hello": 2 messages'
    assert talk.messages == [] and not talk.undo().done
    assert talk.redo().done and said(talk) == ["hello", "hi"]


def test_a_turn_of_files_alone(talk: Conversation, project: Path):
    with talk.turn():
        (project / "f").write_text("1")
    assert talk.undo().message == "took back a turn: 1 file: f" and files(project) == {}


def test_an_exception_in_a_turn_ends_it_and_it_can_be_undone(ws: Workspace, talk: Conversation, project: Path):
    with pytest.raises(RuntimeError, match="model"), talk.turn("break it"):
        (project / "f").write_text("half")
        talk.append(answer("I am about to"))
        raise RuntimeError("the model is gone")
    (project / "mine").write_text("after it")
    assert said(talk) == ["break it", "I am about to"]
    assert talk.undo().message == 'took back the turn "break it": 2 messages, 1 file: f'
    assert files(project) == {"mine": "after it"}
    assert all(bracket.closed and bracket.failed for bracket in ws.history().brackets.values())


def test_a_new_turn_ends_redo_and_files_go_on_by_the_drift_rule(ws: Workspace, talk: Conversation, project: Path):
    with talk.turn("one"):
        (project / "f").write_text("1")
    talk.undo()
    with talk.turn("two"):
        talk.append(answer("hi"))
    told = talk.redo()
    assert not told.done and 'the turn "two" has begun since' in told.message and "takeback redo" in told.message
    assert said(talk) == ["two", "hi"] and files(project) == {}
    ws.redo()
    assert files(project) == {"f": "1"} and said(talk) == ["two", "hi"]


def test_messages_added_in_no_turn_end_redo_too(talk: Conversation):
    with talk.turn("one"):
        pass
    talk.undo()
    talk.append(answer("a notice"))
    assert "messages were added since" in talk.redo().message
    assert said(talk) == ["a notice"] and not talk.undo().done  # of no turn: it stays


def test_what_is_added_after_a_turn_goes_with_it(talk: Conversation, project: Path):
    talk.append({"role": "system", "content": "be kind"})
    with talk.turn("one"):
        (project / "f").write_text("1")
    talk.append(answer("late"))
    assert talk.undo().messages == 2 and said(talk) == ["be kind"]
    assert talk.redo().done and said(talk) == ["be kind", "one", "late"]


def test_a_turn_that_was_rolled_back_in_the_thread_alone_still_gives_back_its_files(
    ws: Workspace, talk: Conversation, project: Path
):
    with talk.turn("one"):
        talk.append(answer("did one"))
    first = ws.threads.get("main").id
    with talk.turn("two"):
        (project / "f").write_text("2")
    ws.roll_back_thread("main", first)
    assert said(talk) == ["one", "did one"]
    assert talk.undo().message == 'took back the turn "two": 1 file: f'
    assert said(talk) == ["one", "did one"] and files(project) == {}
    assert talk.undo().messages == 2 and talk.messages == []


def test_a_thread_that_was_rolled_back_further_is_not_moved_forward(ws: Workspace, talk: Conversation, project: Path):
    talk.append({"role": "system", "content": "be kind"})
    start = ws.threads.get("main").id
    for n in (1, 2):
        with talk.turn(f"turn {n}"):
            (project / f"f{n}").write_text("x")
    ws.roll_back_thread("main", start)
    assert talk.undo().done and said(talk) == ["be kind"] and sorted(files(project)) == ["f1"]
    assert talk.undo().done and said(talk) == ["be kind"] and files(project) == {}


def test_files_that_were_undone_by_themselves_leave_the_messages_to_undo(
    ws: Workspace, talk: Conversation, project: Path
):
    with talk.turn("one"):
        (project / "f").write_text("1")
    ws.undo()
    assert files(project) == {} and said(talk) == ["one"]
    assert talk.undo().message == 'took back the turn "one": 1 message' and talk.messages == []


def test_an_undo_elsewhere_that_took_the_messages_too_is_an_undo_of_the_conversation(
    ws: Workspace, talk: Conversation, project: Path
):
    for n in (1, 2):
        with talk.turn(f"turn {n}"):
            (project / f"f{n}").write_text("x")
    ws.undo(state=True)
    assert said(talk) == ["turn 1"] and sorted(files(project)) == ["f1"]
    assert talk.undo().message == 'took back the turn "turn 1": 1 message, 1 file: f1'
    assert talk.redo().done and talk.redo().message == 'brought back the turn "turn 2": 1 message, 1 file: f2'
    assert said(talk) == ["turn 1", "turn 2"] and sorted(files(project)) == ["f1", "f2"]


def test_a_turn_that_was_undone_elsewhere_and_went_on_can_be_undone(ws: Workspace, talk: Conversation, project: Path):
    with talk.turn("one"):
        (project / "a").write_text("1")
    with talk.turn("two"):
        (project / "b").write_text("1")
        ws.undo(state=True)
        assert said(talk) == ["one"] and files(project) == {"a": "1"}
        (project / "c").write_text("1")
        talk.append(answer("goes on"))
    assert talk.undo().message == 'took back the turn "two": 1 message, 1 file: c'
    assert said(talk) == ["one"] and files(project) == {"a": "1"}
    assert talk.undo().message == 'took back the turn "one": 1 message, 1 file: a'
    assert talk.undo().message == "nothing to take back: no turn of this conversation stands"


def test_another_thread_that_a_turn_saved_goes_with_it(ws: Workspace, talk: Conversation):
    ws.threads.save("notes", {"seen": 1})
    with talk.turn("remember"):
        ws.threads.save("notes", {"seen": 2})
    assert "thread notes" in talk.undo().message
    assert ws.threads.load(ws.threads.get("notes")) == {"seen": 1}
    talk.redo()
    assert ws.threads.load(ws.threads.get("notes")) == {"seen": 2}


# -- the person's own work -------------------------------------------------------------


def test_a_persons_edits_are_kept_and_named(talk: Conversation, project: Path):
    (project / "README.md").write_text("one\n")
    with talk.turn("write"):
        (project / "README.md").write_text("two\n")
        (project / "f").write_text("1")
    (project / "README.md").write_text("mine\n")
    (project / "mine").write_text("mine")
    with talk.turn("go on"):
        (project / "g").write_text("2")
    assert talk.undo().message == 'took back the turn "go on": 1 message, 1 file: g'
    undone = talk.undo()
    assert undone.message == 'took back the turn "write": 1 message, 1 file: f; kept README.md, changed by you since'
    assert files(project) == {"README.md": "mine\n", "mine": "mine"} and talk.messages == []
    assert not talk.undo().done  # what was kept is not asked for again
    assert talk.redo().done and files(project) == {"README.md": "mine\n", "mine": "mine", "f": "1"}


def test_nobody_can_tell_a_persons_edit_during_a_turn_and_it_can_be_brought_back(talk: Conversation, project: Path):
    with talk.turn("write"):
        (project / "f").write_text("1")
        (project / "mine").write_text("typed meanwhile")
    talk.undo()
    assert files(project) == {}
    talk.redo()
    assert files(project) == {"f": "1", "mine": "typed meanwhile"}


# -- outside the files -------------------------------------------------------------------


def test_effects_outside_belong_to_the_turn_and_go_back_with_it(
    ws: Workspace, project: Path, tmp_path: Path, shop: payments.Payments
):
    asked: list[int] = []
    talk = Conversation(ws, approve=lambda plan: bool(asked.append(len(plan.outside)) or True))
    with talk.turn("first"):
        charge(ws, shop, 10)
    with talk.turn("second"):
        charge(ws, shop, 20)
        (project / "paid").write_text("20")
        ws.record_command("made a thing", **command_on(tmp_path / "log", "undone\n"))
    assert [act.by["actor"] for act in ws.effects()] == ["conversation"] * 3
    undone = talk.undo()
    assert asked == [2] and "2 effects outside (made a thing, POST" in undone.message, undone.message
    assert standing(shop) == ["ch_1"] and (tmp_path / "log").read_text() == "undone\n" and files(project) == {}
    redone = talk.redo()  # what was taken back outside is not done again
    assert redone.done and "not done again" in redone.message and files(project) == {"paid": "20"}
    assert standing(shop) == ["ch_1"]
    assert (
        talk.undo().done and talk.undo().done and standing(shop) == [] and shop.asked("DELETE", "/v1/charges/ch_2") == 1
    )


def test_what_two_wrote_alike_goes_with_the_last_of_them_and_comes_back_with_it(ws: Workspace, project: Path):
    talks = [Conversation(ws, thread) for thread in ("first", "second")]
    for at, talk in enumerate(talks, 1_000_000_000):
        with talk.turn("write"):
            (project / "f").write_text("alike")
            os.utime(project / "f", (at, at))
    first, second = talks
    told = first.undo().message
    assert told == 'took back the turn "write": 1 message; kept f, thread second wrote it again, with the same bytes'
    assert second.undo().message == 'took back the turn "write": 1 message, 1 file: f' and files(project) == {}
    assert second.redo().message == 'brought back the turn "write": 1 message, 1 file: f'
    assert files(project) == {"f": "alike"}
    assert first.redo().done and second.undo().done and files(project) == {"f": "alike"}, "it is the first one's again"
    assert first.undo().done and files(project) == {}


@pytest.mark.parametrize("approve", [None, lambda plan: False])
def test_what_nobody_allows_stays_and_the_message_says_what_to_do(
    ws: Workspace, project: Path, shop: payments.Payments, approve: Any
):
    talk = Conversation(ws, approve=approve)
    with talk.turn("pay"):
        charge(ws, shop, 10)
        (project / "paid").write_text("10")
    act = ws.effects()[0]
    undone = talk.undo()
    why = "nobody approved that" if approve else "it needs a person's yes"
    assert f"{act.summary} ({act.id[:8]}) stays: {why}: takeback revert {act.id[:8]}" in undone.message
    assert undone.done and files(project) == {} and talk.messages == [] and standing(shop) == ["ch_1"]
    plan = ws.plan("revert", act.id[:8])
    ws.approve(plan)
    assert ws.apply(plan).whole and standing(shop) == []


def test_only_true_is_a_yes(ws: Workspace, shop: payments.Payments):
    talk = Conversation(ws, approve=lambda plan: "no")  # type: ignore[arg-type,return-value]
    with talk.turn("buy"):
        id = charge(ws, shop, 10)
    assert "stays: nobody approved that" in talk.undo().message and standing(shop) == [id]


def test_policy_may_allow_it_by_itself(project: Path, own_home: Path, shop: payments.Payments):
    (own_home / "config/takeback").mkdir(parents=True)
    (own_home / "config/takeback/config.toml").write_text('[policy.http]\ncompensating = "allow"\n')
    with takeback.open(project, create=True) as ws:
        talk = Conversation(ws)
        with talk.turn("pay"):
            charge(ws, shop, 10)
        assert talk.undo().done and standing(shop) == []


refunds: list[str] = []


def refund(charge: str) -> None:
    refunds.append(charge)


@takeback.tool(undo=refund, undo_args={"charge": "{result}"})
def pay(amount: int) -> str:
    return f"ch_{amount}"


def test_tools_steps_and_threads_of_their_own_are_in_the_turn(ws: Workspace, project: Path, tmp_path: Path):
    refunds.clear()
    talk = Conversation(ws, **YES)
    with talk.turn("all of it"):
        pay(1)
        with ws.step("a step with nothing else in it"):
            pay(3)
        with ws.step("another"):
            pay(2)
            (project / "f").write_text("1")
        with ws.recording():
            pay(4)
        apart = threading.Thread(target=lambda: ws.record_command("apart", **command_on(tmp_path / "log", "apart\n")))
        apart.start(), apart.join()
        told = in_a_new_process(
            project,
            "takeback.open(root).record_command('below', argv=[sys.executable, '-c', "
            '\'open(%r, "a").write("below\\\\n")\' % sys.argv[2]])',
            str(tmp_path / "log"),
        )
        assert told.returncode == 0, told.stderr
    with ws.recording(actor="claude"):
        pay(9)  # in no turn
    undone = talk.undo()
    assert undone.done and files(project) == {}, undone.message
    assert sorted(refunds) == ["ch_1", "ch_2", "ch_3", "ch_4"], undone.message
    assert sorted((tmp_path / "log").read_text().splitlines()) == ["apart", "below"]
    assert [act.summary for act in ws.effects() if act.shown_state == "live"] == ["pay(9)"]


def test_a_step_that_fails_in_a_turn_is_taken_back_and_the_turn_goes_on(ws: Workspace, project: Path):
    refunds.clear()
    talk = Conversation(ws, **YES)
    with talk.turn("try"):
        (project / "before").write_text("1")
        with pytest.raises(RuntimeError), ws.step("fails", approve=lambda plan: True):
            pay(5)
            (project / "f").write_text("1")
            raise RuntimeError("no")
        assert files(project) == {"before": "1"} and refunds == ["ch_5"]
        talk.append(answer("that did not work"))
    assert talk.undo().done and files(project) == {} and refunds == ["ch_5"] and talk.messages == []


def test_an_approve_that_is_async_is_refused_here(ws: Workspace, shop: payments.Payments):
    async def ask(plan: object) -> bool:
        return True

    talk = Conversation(ws, approve=ask)
    with talk.turn("pay"):
        charge(ws, shop, 10)
    with pytest.raises(UsageError, match="approve is async"):
        talk.undo()
    assert said(talk) == ["pay"] and standing(shop) == ["ch_1"]


# -- turned off ---------------------------------------------------------------------------


def off_by_instance(project: Path, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    return Conversation(takeback.open(project, create=True), enabled=False)


def off_by_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    takeback.open(project, create=True).close()
    monkeypatch.setenv("TAKEBACK", "off")
    return Conversation(takeback.open(project))


def off_by_settings(project: Path, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    takeback.open(project, create=True).close()
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "takeback"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[checkpoints]\nenabled = false\n")
    return Conversation(takeback.open(project))


def off_without_a_workspace(project: Path, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    return Conversation(None)


@pytest.mark.parametrize("turned_off", [off_by_instance, off_by_environment, off_by_settings, off_without_a_workspace])
def test_turned_off_it_is_a_list_of_messages_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, turned_off: Callable[..., Conversation]
):
    talk = turned_off(project, monkeypatch)
    head = talk.workspace.store.journal.head() if talk.workspace else None
    assert not talk.enabled
    with talk.turn("hello"):
        talk.append(answer("hi"))
        (project / "f").write_text("1")
    for told in (talk.undo(), talk.redo()):
        assert not told.done and told.outcome is None and told.message.endswith(("taken back", "brought back"))
        assert "off" in told.message or "no workspace" in told.message
    assert said(talk) == ["hello", "hi"] and files(project) == {"f": "1"}
    assert talk.workspace is None or talk.workspace.store.journal.head() == head


def test_turned_off_it_goes_on_from_what_was_kept_and_keeps_nothing(ws: Workspace, talk: Conversation):
    talk.append(answer("kept"))
    off = Conversation(ws, enabled=False)
    off.append(answer("not kept"))
    assert said(off) == ["kept", "not kept"] and said(talk) == ["kept"]


# -- other processes, and the end of this one ----------------------------------------------


def test_a_new_process_goes_on(talk: Conversation, project: Path):
    for n in (1, 2, 3):
        with talk.turn(f"turn {n}"):
            (project / f"f{n}").write_text("x")
    code = "c = Conversation(takeback.open(root))\nprint(len(c.messages), c.undo().message, c.undo().message, sep='|')"
    ran = in_a_new_process(project, code)
    assert ran.stdout.strip().split("|") == [
        "3", 'took back the turn "turn 3": 1 message, 1 file: f3', 'took back the turn "turn 2": 1 message, 1 file: f2'
    ], ran.stderr  # fmt: skip
    assert said(talk) == ["turn 1"] and sorted(files(project)) == ["f1"]
    ran = in_a_new_process(project, "print(Conversation(takeback.open(root)).redo().message)")
    assert ran.stdout == 'brought back the turn "turn 2": 1 message, 1 file: f2\n', ran.stderr
    assert said(talk) == ["turn 1", "turn 2"]  # redo survived the restart
    code = "c = Conversation(takeback.open(root))\nwith c.turn('other'): pass\nprint(c.redo().message)"
    assert 'the turn "other" has begun since' in in_a_new_process(project, code).stdout
    assert not talk.redo().done and 'the turn "other" has begun since' in talk.redo().message


def test_a_turn_whose_process_was_killed_is_undone_as_a_whole(talk: Conversation, project: Path):
    code = (
        "c = Conversation(takeback.open(root))\nc.turn('killed').__enter__()\n"
        "open(os.path.join(root, 'f'), 'w').write('half')\n"
        "c.append({'role': 'assistant', 'content': 'working'})\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    with talk.turn("before"):
        (project / "g").write_text("1")
    assert in_a_new_process(project, code).returncode == -signal.SIGKILL
    assert said(talk) == ["before", "killed", "working"]
    undone = talk.undo()
    assert undone.message.startswith('took back the turn "killed": 2 messages, 1 file: f'), undone.message
    assert said(talk) == ["before"] and files(project) == {"g": "1"}
    assert in_a_new_process(project, code).returncode == -signal.SIGKILL
    assert len(talk.messages) == 3
    with talk.turn("the next one goes on"):
        (project / "h").write_text("2")
    assert talk.undo().message == 'took back the turn "the next one goes on": 1 message, 1 file: h'
    assert talk.undo().message.startswith('took back the turn "killed": 2 messages, 1 file: f')
    assert said(talk) == ["before"] and files(project) == {"g": "1"}


def killed_at(project: Path, point: int) -> bool:
    """Undoes in a child that dies at its Nth call that changes something; whether it did."""
    pid = os.fork()
    if pid == 0:
        try:
            with takeback.open(project) as ws:
                talk = Conversation(ws)
                with Points(point, "before").counting():
                    talk.undo()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(9)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or status == 0, status
    return os.WIFSIGNALED(status)


def test_an_undo_that_was_killed_anywhere_is_finished_by_the_next_call(project: Path):
    (project / "f").write_text("0")
    with takeback.open(project, create=True) as ws:
        talk = Conversation(ws)
        with talk.turn("change"):
            (project / "f").write_text("1")
            (project / "new").write_text("1")
            talk.append(answer("done"))
    finished = point = 0
    everything = {"f", "new", "thread main"}
    while True:
        point += 2
        if not killed_at(project, point):
            break
        with takeback.open(project) as ws:
            talk = Conversation(ws)
            was_interrupted = bool(ws.interrupted())
            if was_interrupted or talk.messages:
                told = talk.undo()
                assert told.done, (point, told)
                assert was_interrupted == told.message.startswith("finished an undo of thread main"), told
                assert not was_interrupted or {*told.message.split(": took back ")[1].split(", ")} == everything, told
                finished += was_interrupted
            assert talk.messages == [] and files(project) == {"f": "0"}, point
            again = talk.redo()
            assert again.done and said(talk) == ["change", "done"], (point, again)
            assert files(project) == {"f": "1", "new": "1"}
    assert finished >= 3 and point > 10


def test_a_turn_finishes_an_undo_of_its_own_that_was_killed(project: Path):
    with takeback.open(project, create=True) as ws, Conversation(ws).turn("change"):
        (project / "f").write_text("1")
    for point in range(4, 80, 2):
        assert killed_at(project, point)
        with takeback.open(project) as ws:
            if not ws.interrupted():
                assert not Conversation(ws).messages or Conversation(ws).undo().done
                assert Conversation(ws).redo().done
                continue
            talk = Conversation(ws)
            with talk.turn("go on") as turn:
                assert turn.finished is not None and said(talk) == ["go on"] and files(project) == {}
            return
    pytest.fail("no point interrupted it")


def test_one_turn_at_a_time(ws: Workspace, talk: Conversation, project: Path):
    with talk.turn("one"):
        with pytest.raises(UsageError, match="under way"), talk.turn("two"):
            pass
        with pytest.raises(UsageError, match="under way"), Conversation(ws).turn("two"):
            pass
        assert "under way" in talk.undo().message and not talk.redo().done
        ran = in_a_new_process(project, "print(Conversation(takeback.open(root)).undo().message)")
        assert f"under way in process {os.getpid()}" in ran.stdout, ran.stderr
    assert said(talk) == ["one"] and talk.undo().done


# -- several conversations -------------------------------------------------------------------


def test_two_threads_do_not_undo_each_others_turns(ws: Workspace, project: Path):
    a, b = Conversation(ws, "a"), Conversation(ws, "b")
    for n in (1, 2):
        for each in (a, b):
            with each.turn(f"{each.thread}{n}"):
                (project / f"{each.thread}{n}").write_text("x")
    assert a.undo().message == 'took back the turn "a2": 1 message, 1 file: a2'
    assert a.undo().done and not a.undo().done
    assert sorted(files(project)) == ["b1", "b2"] and said(b) == ["b1", "b2"]
    with b.turn("b3"):
        pass
    assert a.redo().done and a.redo().done and sorted(files(project)) == ["a1", "a2", "b1", "b2"]
    assert b.undo().message == 'took back the turn "b3": 1 message'


def test_what_another_conversations_undo_had_to_keep_is_left_to_it(ws: Workspace, project: Path):
    a, b = Conversation(ws, "a"), Conversation(ws, "b")
    with a.turn("write f"):
        (project / "f").write_text("1")
    (project / "f").write_text("mine")
    ws.checkpoint("mine")
    with b.turn("write g"):
        (project / "g").write_text("1")
    assert "kept f, changed by you since" in a.undo().message
    mine = next(e for e in ws.history().effects if b"f" in e.changes and not e.turns)
    ws.revert(mine.id)
    assert b.undo().message == 'took back the turn "write g": 1 message, 1 file: g'
    assert files(project) == {"f": "1"}


def test_turns_at_once_in_threads_share_files_and_nothing_else(ws: Workspace, project: Path, tmp_path: Path):
    together, trouble = threading.Barrier(2), []

    def talk(name: str) -> None:
        try:
            each = Conversation(ws, name)
            with each.turn(f"ask {name}"):
                together.wait(20)
                ws.record_command(f"did {name}", **command_on(tmp_path / "log", f"{name}\n"))
                each.append(answer(name))
                (project / name).write_text("x")
                together.wait(20)
        except BaseException as error:
            trouble.append(error)

    started = [threading.Thread(target=talk, args=(name,)) for name in "ab"]
    [thread.start() for thread in started], [thread.join() for thread in started]
    assert not trouble
    a, b = (Conversation(ws, name, **YES) for name in "ab")
    whose = {path: e.turns for e in ws.history().effects for path in e.changes}
    assert len(whose[b"//a"]) == len(whose[b"//b"]) == 1 and whose[b"a"] == whose[b"//a"] | whose[b"//b"]
    undone = a.undo()
    assert "kept a, shared: thread b was at work at the same time: takeback revert " in undone.message
    assert "kept b" in undone.message and "//" not in undone.message
    assert undone.messages == 2 and (tmp_path / "log").read_text() == "a\n" and said(b) == ["ask b", "b"]
    assert b.undo().messages == 2 and (tmp_path / "log").read_text() == "a\nb\n"
    assert files(project) == {}  # whose they were nobody can tell: they go with the last


def test_async_conversations_at_once_do_not_mix(ws: Workspace, project: Path, tmp_path: Path):
    refunds.clear()

    async def ask(plan: takeback.Plan) -> bool:
        await asyncio.sleep(0)
        return True

    async def talk(name: str, amount: int, gate: asyncio.Barrier) -> None:
        each = AsyncConversation(ws, name, approve=ask)
        async with each.turn(f"ask {name}"):
            await gate.wait()
            await asyncio.to_thread(pay, amount)
            await ws.arecord_command(f"did {name}", **command_on(tmp_path / "log", f"{name}\n"))
            await each.append(answer(name))
            await gate.wait()

    async def main() -> None:
        gate = asyncio.Barrier(2)
        await asyncio.gather(talk("a", 1, gate), talk("b", 2, gate))
        a, b = AsyncConversation(ws, "a", approve=ask), AsyncConversation(ws, "b", approve=ask)
        undone = await a.undo()
        assert undone.done and undone.messages == 2 and await a.messages == []
        assert refunds == ["ch_1"] and (tmp_path / "log").read_text() == "a\n"
        assert [m["content"] for m in await b.messages] == ["ask b", "b"]
        assert (await a.redo()).done and not (await a.redo()).done and len(await a.messages) == 2
        assert (await b.undo()).done and refunds == ["ch_1", "ch_2"] and b.enabled and b.thread == "b"

    asyncio.run(main())


def test_async_nothing_blocks_the_loop_and_a_cancelled_turn_ends(ws: Workspace, project: Path):
    talk = AsyncConversation(ws)

    async def main() -> None:
        longest, over = [0.0], asyncio.Event()

        async def tick() -> None:
            while not over.is_set():
                began = time.monotonic()
                await asyncio.sleep(0)
                longest[0] = max(longest[0], time.monotonic() - began)

        ticking = asyncio.create_task(tick())
        holding, free = threading.Event(), threading.Event()

        def hold() -> None:
            with ws.alone():  # somebody else is at a long piece of work
                holding.set()
                free.wait(20)

        holder = threading.Thread(target=hold)
        holder.start()
        await asyncio.to_thread(holding.wait)
        waiting = [asyncio.ensure_future(talk.append(answer("late"))), asyncio.ensure_future(talk.undo())]
        waiting.append(asyncio.ensure_future(talk.messages))
        await asyncio.sleep(0.05)  # the loop runs on: had anything blocked it, the store would never be free
        assert not any(each.done() for each in waiting)
        free.set()
        await asyncio.gather(*waiting)
        holder.join()

        async def turn() -> None:
            async with talk.turn("forever"):
                (project / "f").write_text("1")
                await asyncio.sleep(1000)

        running = asyncio.create_task(turn())
        while not (project / "f").exists():
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        early = asyncio.create_task(turn())
        await asyncio.sleep(0)
        early.cancel()  # while it begins
        with pytest.raises(asyncio.CancelledError):
            await early
        assert not [b for b in ws.history().brackets.values() if not b.closed]
        while (await talk.undo()).done:
            pass
        over.set()
        await ticking
        assert [m["content"] for m in await talk.messages] == ["late"] and files(project) == {}

    asyncio.run(main())


# -- the page, the example -----------------------------------------------------------------------


def test_the_page_is_one_program_that_runs(tmp_path: Path):
    page = (ROOT / "docs/conversation.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(found) == 3
    (tmp_path / "my-project").mkdir()
    program = "\n".join(found)
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    told = re.findall(r"message\)\s+# (.*)", page)
    assert ran.stdout.splitlines() == [*told, 'took back the turn "one more": 2 messages 2']


def test_the_example_chats(project: Path):
    def chat(*lines: str) -> list[str]:
        words = [sys.executable, str(ROOT / "examples/chat.py"), str(project)]
        ran = subprocess.run(words, input="\n".join([*lines, ""]), capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    first = chat("buy milk", "buy bread", "/undo")
    assert first[-1] == 'took back the turn "buy bread": 2 messages, 1 file: notes.txt'
    assert files(project) == {"notes.txt": "buy milk\n"}
    second = chat("/redo", "/undo", "/undo", "/undo", "call ada", "/redo")  # another process goes on
    assert second[0].startswith('brought back the turn "buy bread"')
    assert second[3].startswith("nothing to take back") and 'the turn "call ada" has begun since' in second[5]
    assert files(project) == {"notes.txt": "call ada\n"}


# -- against a model ---------------------------------------------------------------------------

NAMES = ("p", "q")
CONTENT = st.one_of(st.none(), st.sampled_from(["1", "22", "1\n2\n"]))


class Talks(RuleBasedStateMachine):
    """Two conversations in one workspace, each with paths of its own, and a person with one more."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp())
        self.project = self.base / "project"
        self.project.mkdir()
        self.sync = PosixFolder.sync
        PosixFolder.sync = lambda folder: None  # type: ignore[method-assign]  # what is durable is proved elsewhere
        self.tree: dict[str, str] = {}
        self.talk: dict[str, list[str]] = {"a": [], "b": []}
        self.done: dict[str, list[tuple[Any, Any]]] = {"a": [], "b": []}
        self.undone: dict[str, list[tuple[list[tuple[Any, Any]], Any]]] = {"a": [], "b": []}
        self.open(create=True)

    def open(self, create: bool = False) -> None:
        self.ws = takeback.open(self.project, create=create, store=str(self.base / "store"))
        self.real = {name: Conversation(self.ws, name) for name in self.talk}

    def teardown(self) -> None:
        self.ws.close()
        PosixFolder.sync = self.sync  # type: ignore[method-assign]
        shutil.rmtree(self.base)

    def put(self, name: str, content: str | None) -> None:
        path = self.project / name
        if content is None:
            path.unlink(missing_ok=True)
            self.tree.pop(name, None)
        else:
            path.write_text(content)
            self.tree[name] = content

    def own(self, who: str) -> tuple[Any, Any]:
        return list(self.talk[who]), {n: self.tree.get(n) for n in (f"{who}.{name}" for name in NAMES)}

    def become(self, who: str, state: tuple[Any, Any]) -> None:
        self.talk[who] = list(state[0])
        for name, content in state[1].items():
            self.tree.pop(name, None)
            if content is not None:
                self.tree[name] = content

    @rule(
        who=st.sampled_from("ab"),
        text=st.one_of(st.none(), st.text(max_size=5)),
        edits=st.lists(st.tuples(st.sampled_from(NAMES), CONTENT), max_size=3),
        answers=st.integers(0, 2),
        fails=st.booleans(),
    )
    def turn(self, who: str, text: str | None, edits: list[tuple[str, str | None]], answers: int, fails: bool) -> None:
        before = self.own(who)
        try:
            with self.real[who].turn(text):
                self.talk[who] += [text] if text is not None else []
                for name, content in edits:
                    self.put(f"{who}.{name}", content)
                for n in range(answers):
                    self.real[who].append(answer(str(n)))
                    self.talk[who].append(str(n))
                if fails:
                    raise RuntimeError
        except RuntimeError:
            assert fails
        self.done[who].append((before, self.own(who)))
        self.undone[who].clear()

    @rule(content=CONTENT)
    def person(self, content: str | None) -> None:
        self.put("mine", content)

    @rule(who=st.sampled_from("ab"))
    def notice(self, who: str) -> None:
        """A message in no turn goes with the turn before it, if one stands."""
        self.real[who].append(answer("notice"))
        self.talk[who].append("notice")
        if self.done[who]:
            self.done[who][-1] = (self.done[who][-1][0], self.own(who))
        self.undone[who].clear()

    @rule(who=st.sampled_from("ab"), n=st.integers(1, 2))
    def undo(self, who: str, n: int) -> None:
        told = self.real[who].undo(n)
        taken = [at for at, (before, after) in enumerate(self.done[who]) if before != after][-n:]
        assert told.done == bool(taken), told
        if taken:
            self.undone[who].append((list(self.done[who]), self.own(who)))
            goal = self.done[who][taken[0]][0]
            above = [(goal, goal) for at in range(taken[0], len(self.done[who])) if at not in taken]
            self.done[who][taken[0] :] = above  # turns that did nothing: undo stepped over them
            self.become(who, goal)

    @rule(who=st.sampled_from("ab"))
    def redo(self, who: str) -> None:
        told = self.real[who].redo()
        assert told.done == bool(self.undone[who]), told
        if self.undone[who]:
            self.done[who], after = self.undone[who].pop()
            self.become(who, after)

    @precondition(lambda self: self.tree or self.talk["a"])
    @rule()
    def restart(self) -> None:
        self.ws.close()
        self.open()

    @invariant()
    def agrees(self) -> None:
        assert files(self.project) == self.tree
        assert {who: said(real) for who, real in self.real.items()} == self.talk


Talks.TestCase.settings = examples(15, 100, share=0.25, steps=20)
TestAgainstAModel = Talks.TestCase


def bring_back(ws: Workspace, message: str) -> None:
    """Does what a message says brings it back."""
    commands = re.findall(r"takeback revert (\w+)", message)
    assert commands and all(ws.revert(id).whole for id in commands)


def test_a_redo_that_another_take_back_of_the_thread_stands_above_names_what_brings_it_back(
    ws: Workspace, talk: Conversation, project: Path
):
    for name in ("one", "two"):
        with talk.turn(name):
            (project / name).write_text(name)
            talk.append(answer("a"))
            talk.append(answer("b"))
    earlier = ws.threads.list(talk.thread)[-2:]
    talk.undo()
    for state in earlier:
        ws.apply(ws.plan("thread", talk.thread, state.id))
    told = talk.redo()
    assert not told.done and "the conversation was changed by a take-back since: takeback revert " in told.message
    bring_back(ws, told.message)
    assert said(talk) == ["one", "a", "b", "two", "a", "b"] and files(project) == {"one": "one", "two": "two"}


def test_a_redo_that_keeps_a_file_which_another_undo_took_says_so(ws: Workspace, project: Path):
    """It was said to have been changed by a take-back that merged, and nothing had merged."""
    one, two = Conversation(ws, thread="one"), Conversation(ws, thread="two")
    with one.turn("together"), two.turn("together"):
        (project / "f.txt").write_text("both")
    with one.turn("alone"):
        (project / "f.txt").write_text("one alone")
    for talk in (one, one, two):
        talk.undo()
    assert files(project) == {}
    one.redo()
    told = one.redo().message
    assert "; kept f.txt, changed by a take-back since: takeback revert " in told
    bring_back(ws, told)
    assert files(project) == {"f.txt": "one alone"}


@pytest.mark.parametrize("others", [False, True], ids=["alone", "in the next turn"])
def test_what_a_turn_records_after_it_was_cancelled_is_its_own_or_is_kept_and_named(
    ws: Workspace, shop: payments.Payments, others: bool
):
    """Its thread goes on when it is cancelled; in the next turn it may be at work for that one."""
    cancelled, over = threading.Event(), threading.Event()

    def works() -> None:
        loop.call_soon_threadsafe(begun.set)
        cancelled.wait(30)
        charge(ws, shop, 5)
        over.set()

    async def run() -> list[takeback.Said]:
        nonlocal loop, begun
        loop, begun = asyncio.get_running_loop(), asyncio.Event()
        talk = AsyncConversation(ws, approve=lambda plan: True)

        async def turn() -> None:
            async with talk.turn("one"):
                await asyncio.to_thread(works)

        running = asyncio.create_task(turn())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        if others:
            async with talk.turn("two"):
                cancelled.set()
                await asyncio.to_thread(over.wait, 30)
        cancelled.set()
        await asyncio.to_thread(over.wait, 30)
        return [await talk.undo() for _ in range(1 + others)]

    loop: Any = None
    begun: Any = None
    said = asyncio.run(run())
    (act,) = ws.effects()
    assert act.shown_state == ("live" if others else "undone")
    assert all(f"takeback revert {act.id[:8]}" in each.message for each in said) is others


def test_async_whoever_approves_may_be_named_later(ws: Workspace, shop: payments.Payments):
    asked = []

    async def ask(plan: takeback.Plan) -> bool:
        asked.append(plan)
        return True

    async def main() -> None:
        talk = AsyncConversation(ws)
        async with talk.turn("pay"):
            charge(ws, shop, 5)
        talk.approve = ask
        assert (await talk.undo()).done and talk.approve is ask

    asyncio.run(main())
    assert len(asked) == 1 and standing(shop) == []
