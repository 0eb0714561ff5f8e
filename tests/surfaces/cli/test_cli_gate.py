"""The gate on the command line: trying it, and approving a call that was stopped."""

from __future__ import annotations

import pytest

import takeback
from takeback import gate
from takeback.agents.events import BEFORE, SHELL, Event
from takeback.journal.brackets import Caller

YES = "Type yes"
PLAIN = {"TERM": "dumb", "NO_COLOR": "1"}


@pytest.fixture
def stopped(cli):
    """A project, and the id of a push that was stopped in it."""
    cli.ok("init")
    with takeback.open(cli.project) as ws:
        event = Event(BEFORE, Caller("claude", "s1"), str(cli.project), tool="Bash", does=SHELL, command="git push")
        reason = gate.decide(ws, event, gate.tool(event, str(cli.project), ""), can_ask=False).reason

        def again() -> str:
            with takeback.open(cli.project) as fresh:
                return gate.decide(fresh, event, gate.tool(event, str(cli.project), ""), can_ask=False).decision

    return reason.rpartition(" ")[2], again


def test_a_person_lets_a_call_pass_once(cli, stopped):
    id, again = stopped
    assert again() == "deny"
    ran = cli.typing("approve", id, answers=[(YES, "yes\n")], env=PLAIN)
    assert ran.code == 0 and "git push" in ran.out and "approved, for once" in ran.out, ran
    assert [again(), again()] == ["", "deny"]


def _stopped_at(cli, command: str) -> str:
    cli.ok("init")
    with takeback.open(cli.project) as ws:
        event = Event(BEFORE, Caller("claude", "s1"), str(cli.project), tool="Bash", does=SHELL, command=command)
        reason = gate.decide(ws, event, gate.tool(event, str(cli.project), ""), can_ask=False).reason
    return reason.rpartition(" ")[2]


def test_the_person_sees_every_line_and_every_risk(cli):
    id = _stopped_at(
        cli, "echo " + "x" * 200 + "\ngit push\n\tnpm publish # \x1b[2K\rls\ncurl -X DELETE https://example.com"
    )
    ran = cli.typing("approve", id, answers=[(YES, "no\n")], env=PLAIN)
    shown = ran.out.partition(YES)[0]
    assert "x" * 200 in shown and "  git push" in shown and "npm publish" in shown and "curl -X DELETE" in shown
    assert "\x1b[2K" not in shown and "3 risks" in shown
    assert all(f"  {kind}: " in shown for kind in ("push", "publish", "http"))


def test_what_cannot_be_shown_whole_is_not_approved(cli):
    id = _stopped_at(cli, "git push\n" + "ls x\n" * 5000)
    ran = cli.typing("approve", id, answers=[], env=PLAIN)
    assert ran.code == 4 and "cannot be shown whole" in ran.out


def test_a_no_approves_nothing(cli, stopped):
    id, again = stopped
    ran = cli.typing("approve", id, answers=[(YES, "y\n")], env=PLAIN)
    assert ran.code == 4 and "not approved" in ran.out and again() == "deny"


def test_it_needs_a_terminal_and_no_agent_above(cli, stopped):
    id, again = stopped
    assert cli("approve", id, "--yes").code == 4
    ran = cli.typing("approve", id, answers=[], env={**PLAIN, "CLAUDECODE": "1"})
    assert ran.code == 4 and "for a person" in ran.out and again() == "deny"


def test_a_name_that_nothing_has(cli, stopped):
    ran = cli.typing("approve", "zzzzzzzz", answers=[], env=PLAIN)
    assert ran.code not in (0, 4)


def test_trying_a_command(cli):
    cli.ok("init")
    ran = cli.ok("policy", "--command", "cd src && sudo git push origin main")
    assert ran.out.startswith("ask") and "git push --force-with-lease origin OLD:main" in ran.out
    found = cli.ok("policy", "--command", "git push", "--json", env={"TAKEBACK_AUTOPILOT": "1"}).json
    assert found["decision"] == "refuse" and found["source"] == "autopilot"
    assert found["risks"][0]["kind"] == "push" and found["risks"][0]["decision"] == "refuse"
    nothing = {"decision": "allow", "source": "", "risks": [], "unknown": ["make"], "ends": []}
    assert cli.ok("policy", "--command", "make test", "--json").json == nothing
    assert cli.ok("policy", "--command", "takeback prune", "--json").json["risks"][0]["refuse"] is True


@pytest.mark.parametrize(
    "command", ["kill 1234", "kill $!", "kill %1", "pkill node", "killall -9 node", "kill -s HUP 7"]
)
def test_what_ends_processes_is_never_said_to_work_on_files_alone(cli, command):
    ran = cli.ok("policy", "--command", command)
    assert ran.out.startswith("allow") and f"ends processes: {command.split()[0]}" in ran.out
    assert "works on files" not in ran.out
    assert "ends processes" not in cli.ok("policy", "--command", "kill -l; kill -0 7; rm -rf build").out


def test_what_is_not_known_is_said_to_be(cli):
    (cli.project / "Makefile").write_text("test:\n\tpytest -q\nrelease:\n\tgit push\n")
    ran = cli.ok("policy", "--command", "make test")
    assert ran.out.startswith("allow") and "not known: what is done by pytest" in ran.out + ran.err
    ran = cli.ok("policy", "--command", "make release")
    assert ran.out.startswith("ask") and "push: git push (in Makefile)" in ran.out
    ran = cli.ok("policy", "--command", "rm -rf build")
    assert "not known" not in ran.out + ran.err and "all of it was read" in ran.out + ran.err
    for command in ("make test", "rm -rf build", "python3 -c 'print(1)'"):
        ran = cli.ok("policy", "--command", command)
        assert "could not take back" not in ran.out + ran.err


def test_an_approval_does_not_hold_for_a_script_that_was_written_anew(cli):
    (cli.project / "ship.sh").write_text("git push origin main\n")
    id = _stopped_at(cli, "bash ship.sh")
    assert cli.typing("approve", id, answers=[(YES, "yes\n")], env=PLAIN).code == 0
    (cli.project / "ship.sh").write_text("git push origin main\ngh repo delete\n")
    assert _stopped_at(cli, "bash ship.sh") != id
    (cli.project / "ship.sh").write_text("git push origin main\n")
    assert _stopped_at(cli, "bash ship.sh") == ""


def test_the_kinds_of_calls(cli):
    found = {each["kind"]: each["decision"] for each in cli.ok("policy", "calls", "--json").json["calls"]}
    assert found["push"] == "ask" and found["outside"] == "allow"
    assert "push" in cli.ok("policy", "calls").out


def test_each_setting_has_its_address(cli):
    found = cli.ok("config", "--json", env={"TAKEBACK_AUTOPILOT": "1"}).json
    assert found["policy.autopilot"] == {"value": True, "source": "environment TAKEBACK_AUTOPILOT"}
    assert found["policy.calls"] == {"value": {}, "source": "default"}
    assert {"key": "policy.autopilot", "value": True, "source": "environment TAKEBACK_AUTOPILOT"} in found["settings"]
