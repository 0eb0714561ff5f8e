"""What agents' calls do outside the files, as hooks hear of it: what came of a call, and one act that is one effect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from test_hook import Claude, is_denied

import takeback
from servers.payments import Payments
from takeback.model.outside import Inverse, NewAct
from takeback.show import views
from takeback.show.timeline import Timeline
from takeback.system import processes


@pytest.fixture
def ws(project: Path) -> Any:
    (project / "a.txt").write_text("one\n")
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "takeback" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[policy.calls]\nall = "allow"\n')
    with takeback.open(project, create=True) as opened:
        yield opened


@pytest.fixture
def session(ws: Any, project: Path) -> Claude:
    return Claude(project)


def ran(session: Claude, key: str, command: str) -> subprocess.CompletedProcess[str]:
    """A call of the shell, run for real, and told as Claude Code tells it."""
    assert not is_denied(session.before(key, "Bash", {"command": command}))
    done = subprocess.run(["bash", "-c", command], cwd=session.project, check=False, capture_output=True, text=True)
    if done.returncode:
        error = f"Exit code {done.returncode}\n{done.stderr}{done.stdout}"
        session.after(key, "Bash", {"command": command}, failed=True, error=error, is_interrupt=False)
    else:
        session.after(key, "Bash", {"command": command}, tool_response={"stdout": done.stdout, "stderr": done.stderr})
    return done


# -- what came of it ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("stripe charges create --amount 500", 127, "never run"),
        ("curl -X POST http://127.0.0.1:9/v1/charges -d amount=5", 7, "nothing was sent"),
        ("curl -X POST http://no-such-host.invalid/v1/charges -d amount=5", 6, "nothing was sent"),
        ("""curl -sSXPOST 'http://127.0.0.1:9/a' -H "X-Key: $HOME" --json '{"a": [1]}'""", 7, "nothing was sent"),
    ],
)
def test_a_call_whose_exit_code_tells_settles_itself(
    session: Claude, ws: Any, command: str, code: int, told: str
) -> None:
    session.prompt("charge the card")
    assert ran(session, "1", command).returncode == code
    (act,) = ws.effects()
    assert act.shown_state == "failed" and told in act.did["left_to_do"] and not act.sayings
    assert ws.plan("rollback").steps == ()


@pytest.mark.parametrize(
    "command",
    [
        "true; curl -X POST http://127.0.0.1:9/v1/charges -d amount=5; stripe charges create --amount 500",
        "curl --retry 1 --retry-delay 1 --retry-connrefused -X POST http://127.0.0.1:9/v1/charges -d amount=5",
        "curl -X POST http://127.0.0.1:9/a -d amount=5 || false",
        "kubectl() { return 127; }; kubectl delete pod web",
        "curl -X POST 127.0.0.1:9/charge no-such-host.invalid/y",
        "curl -X POST http://127.0.0.1:9/charge --url no-such-host.invalid/y",
        "curl -X POST http://127.0.0.1:9/charge{1,2}",
        "curl -X POST 'http://127.0.0.1:9/charge{1,2}'",
        "curl -X POST 'http://127.0.0.1:9/charge[1-2]'",
        "curl -X POST http://127.0.0.1:9/charge -d {a,no-such-host.invalid}",
        "curl -X POST http://127.0.0.1:9/charge -K /dev/null",
        "curl -X POST http://127.0.0.1:9/charge -sK/dev/null",
        "curl -X POST http://127.0.0.1:9/charge --config /dev/null",
        "curl -Z -X POST http://127.0.0.1:9/charge",
        "curl -sSLX POST http://127.0.0.1:9/charge",
    ],
)
def test_an_exit_code_that_may_be_another_commands_settles_nothing(session: Claude, ws: Any, command: str) -> None:
    session.prompt("charge the card")
    assert ran(session, "1", command).returncode
    found = ws.effects()
    assert found and {act.shown_state for act in found} == {"unknown"}
    assert all(act.sayings == ("happened", "did-not-happen") for act in found)


def test_a_call_that_the_agent_says_failed_is_asked_about_and_settled_by_a_person(session: Claude, ws: Any) -> None:
    session.prompt("push it")
    assert ran(session, "1", "git push origin main").returncode
    (act,) = ws.effects()
    assert act.shown_state == "unknown"
    (step,) = ws.plan("rollback").steps
    assert step.verdict == "unknown" and f"takeback resolve {act.id[:8]} --happened or --did-not-happen" in step.note
    assert ws.resolve(act.id, "happened").shown_state == "irreversible"
    assert "force-with-lease" in ws.find_effect(act.id).did["left_to_do"], "what would undo it is still told"


def test_a_turn_keeps_what_a_person_said_did_not_happen(session: Claude, ws: Any) -> None:
    session.prompt("push it")
    ran(session, "1", "git push origin main")
    (act,) = ws.effects()
    ws.resolve(act.id, "did-not-happen")
    (row,) = [row for row in ws.log() if row.id == act.id]
    (turn,) = ws.turns_of([row]).values()
    assert (row.state, turn.outside, turn.failed, turn.live) == ("failed", 0, 1, True)
    for name in (act.id, turn.id, *row.calls):
        shown = views.show(ws, name)
        assert act.id in {row.id for row in (shown.row, *shown.effects)}
    item = Timeline(ws).item(turn.id)
    assert (item.badges, item.stands, item.revert) == ({"failed": 1}, "whole", ())


# -- one act, one effect --------------------------------------------------------------------


@pytest.fixture
def bank() -> Any:
    server = Payments().start()
    yield server
    server.stop()


def charged(session: Claude, bank: Payments, key: str = "1", amount: int = 5) -> dict[str, Any]:
    """A curl that a hook saw, and what the server answered."""
    done = ran(session, key, f"curl -s -X POST {bank.url}/v1/charges -d amount={amount}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


UNDO = {"inverse_url": "/v1/refunds", "inverse_json": {"charge": "{response.body.id}"}}


def taken_back(ws: Any) -> Any:
    plan = ws.plan("rollback")
    ws.approve(plan)
    return ws.apply(plan)


def test_recording_what_a_hook_saw_gives_that_effect_its_inverse(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    answer = charged(session, bank)
    (seen,) = ws.effects()
    assert seen.shown_state == "irreversible" and seen.domain == "command"
    act = ws.record_http("POST", f"{bank.url}/v1/charges", status=201, response_body=answer, **UNDO)
    (only,) = ws.effects()
    assert only.id == act.id == seen.id and (only.domain, only.shown_state) == ("http", "live")
    assert only.by["call"] == seen.by["call"] and only.by["actor"] == "claude", "who did it stays"
    outcome = taken_back(ws)
    assert outcome.whole and [each["charge"] for each in bank.refunds.values()] == [answer["id"]]
    assert ws.plan("rollback").steps == () and ws.find_effect(seen.id).shown_state == "undone"


def test_two_calls_are_two_effects_each_with_its_own_inverse(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge both")
    answers = [charged(session, bank, "1"), charged(session, bank, "2", 6)]
    for answer in answers:
        ws.record_http("POST", f"{bank.url}/v1/charges", status=201, response_body=answer, **UNDO)
    third = ws.record_http("POST", f"{bank.url}/v1/charges", status=201, response_body={"id": "ch_x"}, **UNDO)
    assert len(ws.effects()) == 3 and third.by["surface"] == "python", "what nobody saw is an effect of its own"
    inverses = [act.inverse.args["json"]["charge"] for act in reversed(ws.effects())]
    assert inverses == [answers[0]["id"], answers[1]["id"], "ch_x"]


def test_what_is_not_the_same_is_an_effect_of_its_own(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    charged(session, bank)
    for method, path in (("PUT", "/v1/charges"), ("POST", "/v1/other")):
        ws.record_http(method, bank.url + path, status=201, inverse_url="/v1/refunds")
    assert len(ws.effects()) == 3
    session.prompt("something else")  # another turn: the same request by now is another one
    ws.record_http("POST", f"{bank.url}/v1/charges", status=201, inverse_url="/v1/refunds")
    assert len(ws.effects()) == 4 and ws.effects()[-1].shown_state == "irreversible"


def test_what_an_effect_stands_on_is_kept_when_it_gets_its_inverse(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    account = ws.record_command("made an account", argv=["true"])
    answer = charged(session, bank)
    seen = ws.effects()[0]
    url = f"{bank.url}/v1/charges"
    depends = [account.id[:8], seen.id]
    act = ws.record_http("POST", url, status=201, response_body=answer, depends_on=depends, **UNDO)
    assert act.id == seen.id and act.depends_on == (account.id,), "and on itself nothing stands"
    with takeback.open(ws.root) as again:
        assert again.find_effect(seen.id).depends_on == (account.id,)
    (step,) = ws.plan("revert", account.id).steps
    assert step.note.startswith(f"{seen.id[:8]} stands on it and stays")


def test_what_a_step_tells_of_an_effect_that_a_hook_saw_is_kept(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    answer = charged(session, bank)
    (seen,) = ws.effects()
    new = NewAct("command", "told", "", Inverse("run", {"argv": ["true"]}), did={"got": answer["id"]}, key="order-17")
    with ws.step("charge") as step:
        content = b"the letter"
        act = ws.record(new, content=content, for_effect=seen.id)
    assert (act.id, act.key, act.step) == (seen.id, "order-17", step.path)
    assert ws.store.blobs.get(sha256(content).digest()) == content


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_is_recorded_inside_the_call_that_did_it_is_one_effect(
    project: Path, ws: Any, bank: Payments, is_cut: bool
) -> None:
    session = Claude(project, pid=os.getpid(), started=processes.started(os.getpid()))
    session.prompt("charge the card")
    url = f"{bank.url}/v1/charges"
    record = f"{sys.executable} -m takeback record http POST {url} --status 201 --inverse-url /v1/refunds"
    command = f"curl -s -X POST {url} -d amount=5 && {record}"
    if is_cut:
        session.before("1", "Bash", {"command": command})
        subprocess.run(["bash", "-c", command], cwd=project, check=True, capture_output=True)
        session.send("Stop")
    else:
        assert ran(session, "1", command).returncode == 0
    (only,) = ws.effects()
    assert (only.domain, only.shown_state, only.by["actor"]) == ("http", "live", "claude")
    charged(session, bank, "2")
    assert len(ws.effects()) == 2, "the next one is another"


def test_of_two_calls_alike_at_once_none_is_lost(project: Path, ws: Any, bank: Payments) -> None:
    session = Claude(project, pid=os.getpid(), started=processes.started(os.getpid()))
    session.prompt("charge both")
    command = f"curl -s -X POST {bank.url}/v1/charges -d amount=5"
    for key in "12":
        session.before(key, "Bash", {"command": command})
    words = ["record", "http", "POST", f"{bank.url}/v1/charges", "--status", "201", "--inverse-url", "/v1/refunds"]
    subprocess.run([sys.executable, "-m", "takeback", *words], cwd=project, check=True, capture_output=True)
    for key in "12":
        session.after(key, "Bash", {"command": command}, tool_response={})
    assert len(ws.effects()) == 3, "nobody can tell which of them was recorded"


def test_a_refusal_that_is_recorded_says_that_it_never_happened(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    charged(session, bank)
    ws.record_http("POST", f"{bank.url}/v1/charges", status=402)
    (only,) = ws.effects()
    assert only.shown_state == "failed"


def test_by_its_id_any_effect_that_a_hook_saw_gets_its_inverse(session: Claude, ws: Any, tmp_path: Path) -> None:
    session.prompt("push it")
    bare, work = tmp_path / "bare.git", session.project
    for command in (f"git init -q --bare {bare}", f"git init -q {work}", f"git -C {work} remote add origin {bare}"):
        subprocess.run(command.split(), check=True)
    identity = "git -c user.name=a -c user.email=a@example.com"
    subprocess.run(f"cd {work} && git add . && {identity} commit -qm one", shell=True, check=True)
    assert ran(session, "toolu_1", "git push -q origin HEAD:main").returncode == 0
    (seen,) = ws.effects()
    undo = ["git", "push", "-q", "origin", ":main"]
    act = ws.record_command(argv=undo, for_effect=seen.id[:8])
    assert (act.id, act.summary, act.shown_state) == (seen.id, seen.summary, "live")
    with pytest.raises(takeback.UsageError, match="already"):
        ws.record_command(argv=undo, for_effect=seen.id)
    assert taken_back(ws).whole
    assert subprocess.run(["git", "-C", str(bare), "branch"], capture_output=True, check=True).stdout == b""
    with pytest.raises(takeback.UsageError, match="taken back"):
        ws.record_command(argv=undo, for_effect=seen.id)


def test_the_call_that_is_named_is_the_one_that_is_meant(session: Claude, ws: Any) -> None:
    session.prompt("tell them")
    assert ran(session, "toolu_7", "curl -s -X POST file:///dev/null -d x || true").returncode == 0
    (seen,) = ws.effects()
    act = ws.record_command("told them", argv=["true"], by={"surface": "cli", "call": "toolu_7"})
    assert act.id == seen.id and len(ws.effects()) == 1


@pytest.mark.parametrize(
    ("seen", "told", "same"),
    [
        ("http://h.example/v1/orders?user=bob", "http://h.example/v1/orders?user=alice", False),
        ("http://h.example/v1/orders?user=bob", "http://h.example/v1/orders", False),
        ("http://h.example/v1/users/Bob", "http://h.example/v1/users/bob", False),
        ("http://h.example/a", "http://h.example/a/", False),
        ("http://h.example:8080/a", "http://h.example/a", False),
        ("https://h.example/a", "http://h.example/a", False),
        ("http://h.example/a?user=bob", "http://h.example/a?user=bob", True),
        ("HTTP://H.Example:80/a/B", "http://h.example/a/B", True),
        ("https://h.example:443/a", "https://h.example/a", True),
        ("https://ada:pw12345@h.example/a@b", "https://h.example/a@b", True),
        ("h.example", "http://h.example/", True),
        ("h.example/a?to=http://x.example/", "http://h.example/a?to=http://x.example/", True),
        ("http://h.example/a?token=abcdef0123456789&n=1", "http://h.example/a?token=abcdef0123456789&n=1", True),
        ("http://h.example/a?token=abcdef0123456789&n=1", "http://h.example/a?token=abcdef0123456789&n=2", False),
    ],
)
def test_only_the_same_request_is_the_one_that_a_hook_saw(
    session: Claude, ws: Any, seen: str, told: str, same: bool
) -> None:
    session.prompt("order it")
    session.before("1", "Bash", {"command": f"curl -X POST '{seen}'"})
    session.after("1", "Bash", {"command": f"curl -X POST '{seen}'"}, tool_response={"stdout": "", "stderr": ""})
    (known,) = ws.effects()
    act = ws.record_http("POST", told, status=201, inverse_url="/undo")
    assert (act.id == known.id) is same and len(ws.effects()) == 2 - same


def test_an_act_recorded_twice_is_taken_back_once(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    answer = charged(session, bank, "toolu_1")
    given = {"status": 201, "by": {"surface": "cli", "call": "toolu_1"}, **UNDO}
    first, again = (ws.record_http("POST", f"{bank.url}/v1/charges", response_body=answer, **given) for _ in range(2))
    assert again == first and len(ws.effects()) == 1
    assert taken_back(ws).whole and [each["charge"] for each in bank.refunds.values()] == [answer["id"]]
    late = ws.record_http("POST", f"{bank.url}/v1/charges", response_body=answer, **given)
    assert late.id == first.id and ws.plan("rollback").steps == (), "what was taken back is not recorded anew"


def test_the_command_says_that_it_was_recorded_already(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    answer = charged(session, bank, "toolu_1")
    (seen,) = ws.effects()
    words = ["record", "http", "POST", f"{bank.url}/v1/charges", "--status", "201", "--call", "toolu_1"]
    words += ["--response-body", json.dumps(answer), "--inverse-url", "/v1/refunds", "--inverse-body", "charge=x"]
    first, again = (
        subprocess.run(
            [sys.executable, "-m", "takeback", *words], cwd=ws.root, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert "already" not in first and again == f"recorded already as {seen.id[:8]}: nothing was added\n{first}"
    assert len(ws.effects()) == 1


def test_another_answer_in_one_call_is_another_act(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge thrice")
    charge = f"curl -s -X POST {bank.url}/v1/charges -d amount=5; echo"
    done = ran(session, "toolu_1", f"for i in $(seq 3); do {charge}; done")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    charged(session, bank, "toolu_2")
    (other, seen) = ws.effects()
    given = {"status": 201, "by": {"surface": "cli", "call": "toolu_1"}, **UNDO}
    for answer in [*answers, *answers]:
        ws.record_http("POST", f"{bank.url}/v1/charges", response_body=answer, **given)
    assert len(ws.effects()) == 4, "one that was seen, two that were not, and another call's"
    inverses = [act.inverse and act.inverse.args["json"]["charge"] for act in ws.effects()]
    assert sorted(filter(None, inverses)) == sorted(answer["id"] for answer in answers)
    assert ws.find_effect(seen.id).inverse is not None
    assert ws.find_effect(other.id).inverse is None, "the call that is named is the one that is meant"


def test_one_answer_with_two_inverses_is_asked_about(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge the card")
    charged(session, bank, "toolu_1")
    url, given = f"{bank.url}/v1/charges", {"status": 201, "by": {"surface": "cli", "call": "toolu_1"}}
    ws.record_http("POST", url, response_body={"ok": True}, inverse_url="/v1/charges/1", **given)
    with pytest.raises(takeback.UsageError, match="with this answer already"):
        ws.record_http("POST", url, response_body={"ok": True}, inverse_url="/v1/charges/2", **given)
    for place in ("/v1/charges/3", "/v1/charges/4", "/v1/charges/4"):  # an answer without a body tells nothing
        ws.record_http("POST", url, inverse_url=place, **given)
    assert len(ws.effects()) == 3


def test_of_several_requests_in_one_call_each_gets_its_own_inverse(session: Claude, ws: Any) -> None:
    session.prompt("order for both")
    command = "curl -X POST 'http://h.example/o?user=bob'; curl -X POST 'http://h.example/o?user=alice'"
    session.before("1", "Bash", {"command": command})
    session.after("1", "Bash", {"command": command}, tool_response={"stdout": "", "stderr": ""})
    given = {"status": 201, "inverse_url": "/undo", "by": {"surface": "cli", "call": "1"}}
    first = ws.record_http("POST", "http://h.example/o?user=alice", response_body={"id": 1}, **given)
    second = ws.record_http("POST", "http://h.example/o?user=alice", response_body={"id": 2}, **given)
    bob = ws.record_http("POST", "http://h.example/o?user=bob", response_body={"id": 3}, **given)
    assert "alice" in first.summary and "bob" in bob.summary and second.by["surface"] == "cli"
    assert len(ws.effects()) == 3


def test_the_same_request_twice_in_one_call_is_two_effects(session: Claude, ws: Any, bank: Payments) -> None:
    session.prompt("charge twice")
    one = f"curl -s -X POST {bank.url}/v1/charges -d amount=5"
    done = ran(session, "1", f"{one} && echo && {one}")
    assert [act.shown_state for act in ws.effects()] == ["irreversible", "irreversible"]
    first, second = map(json.loads, done.stdout.splitlines())
    ws.record_http("POST", f"{bank.url}/v1/charges", status=201, response_body=first, **UNDO)
    assert sorted(act.shown_state for act in ws.effects()) == ["irreversible", "live"], "the other one still stands"
    ws.record_http("POST", f"{bank.url}/v1/charges", status=201, response_body=second, **UNDO)
    assert taken_back(ws).whole and len(bank.refunds) == len(ws.effects()) == 2


@pytest.mark.parametrize(
    "places",
    [
        "http://h.example/o/1 http://h.example/o/2",
        "h.example/o/1 --url http://h.example/o/2",
        "--some-new-flag http://h.example/o/1 http://h.example/o/2",
        "'http://h.example/o/{1,2}'",
        "'http://h.example/o/[1-2]'",
    ],
)
def test_of_one_curl_with_several_addresses_each_is_an_effect(session: Claude, ws: Any, places: str) -> None:
    session.prompt("order both")
    command = f'curl -s -e http://from.example --json \'{{"to": "http://x.example"}}\' {places}'
    session.before("1", "Bash", {"command": command})
    session.after("1", "Bash", {"command": command}, tool_response={"stdout": "", "stderr": ""})
    given = {"status": 201, "inverse_url": "/undo", "by": {"surface": "cli", "call": "1"}}
    ws.record_http("POST", "http://h.example/o/1", response_body={"id": 1}, **given)
    left, undone = sorted(ws.effects(), key=lambda act: act.inverse is not None)
    assert undone.inverse is not None and undone.did["url"] == "http://h.example/o/1"
    assert left.shown_state == "irreversible" and left.did["request"] == "POST http://h.example/o/2"
