"""What agents' calls do outside the files, as hooks hear of it: what came of a call, and one act that is one effect."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_hook import Claude, is_denied

import takeback


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
