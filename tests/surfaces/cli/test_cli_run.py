"""takeback run: the real program around real commands, with and without a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import takeback
from support import picture
from takeback.model.calls import Call, Caller
from takeback.run import landlock

pytestmark = [
    pytest.mark.posix_only("run needs fork and signals"),
    pytest.mark.skipif(sys.platform == "win32", reason="run needs fork and signals"),
    pytest.mark.started,
]

PROGRAM = (sys.executable, "-m", "takeback")

# A session's leader gets the terminal that it was given as its own, as a shell's job has it.
ON_TERMINAL = (
    sys.executable,
    "-c",
    "import fcntl, os, sys, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\nos.execv(sys.argv[1], sys.argv[1:])",
    *PROGRAM,
)


@contextmanager
def started(cli, *words: str, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The program at work; ended with the test, whatever becomes of that."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*PROGRAM, *words], cwd=cli.project, start_new_session=True, **pipes, **how)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def wait_for(path: Path) -> None:
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.01)


# -- what it journals ----------------------------------------------------------


def test_a_run_is_taken_back_and_brought_back(cli) -> None:
    (cli.project / "README.md").write_text("my own edit\n")
    before = picture(cli.project)
    ran = cli("run", "--", "sh", "-c", "echo said; echo new > new.txt; rm src/legacy.py; chmod 600 src/auth.py; exit 7")
    assert (ran.code, ran.out) == (7, "said\n")
    first, last = ran.err.splitlines()
    assert first.startswith("takeback: checkpoint ") and "before: sh -c " in first
    assert last == "takeback: 3 paths changed: new.txt, src/auth.py, src/legacy.py; take it back: takeback undo"
    after = picture(cli.project)
    rows = cli.ok("log", "--json").json["rows"]
    effect = next(row for row in rows if row["kind"] == "effect")
    assert effect["actor"] == "run"
    assert effect["summary"].startswith("run: sh -c ") and effect["summary"].endswith(" · 3 files")
    cli.ok("undo", "--yes")
    assert picture(cli.project) == before
    cli.ok("redo", "--yes")
    assert picture(cli.project) == after


def test_what_an_agent_runs_is_the_agents_and_what_a_person_runs_the_persons(cli) -> None:
    cli.ok("run", "--", "touch", "by-agent", env={"CLAUDECODE": "1"})
    cli.ok("run", "--", "touch", "by-person")
    rows = [row for row in cli.ok("log", "--json").json["rows"] if row["kind"] == "effect"]
    made = {path: row["actor"] for row in rows for path in row["paths"]}
    assert made == {"by-agent": "claude", "by-person": "run"}
    ran = cli.ok("rollback", "start", "--yes")
    assert not (cli.project / "by-agent").exists() and (cli.project / "by-person").exists()
    assert "kept people's work: by-person; the tree is not wholly at" in ran.out


def test_what_agents_with_hooks_did_in_it_is_told_by_their_turns(cli) -> None:
    wait = "touch ../begun; until [ -e ../over ]; do sleep 0.02; done"
    with started(cli, "run", "--", "sh", "-c", wait) as process:
        wait_for(cli.project.parent / "begun")
        with takeback.open(cli.project) as ws:
            caller = Caller("claude", "s1", run=ws.history().checkpoints[-1].id)
            ws.begin_turn(caller, "make it")
            for name in ("a.txt", "b.txt"):
                call = Call(name, "Write", f"Write: {name}", (name.encode(),), scans=False)
                ws.begin_call(caller, call)
                (cli.project / name).write_text("x")
                ws.end_call(caller, call)
        (cli.project.parent / "over").touch()
        told = process.communicate(timeout=30)[1].decode().splitlines()
    assert any(line.endswith("“make it”: 2 calls: a.txt, b.txt") and "claude, turn " in line for line in told), told
    assert told[-1].endswith("all of it: takeback log session:s1; take one back: takeback undo TURN"), told
    assert not any("no file changed" in line for line in told)


def test_it_protects_the_folder_first(bare) -> None:
    (bare.project / "file").write_text("before\n")
    ran = bare("run", "--", "sh", "-c", "echo after > file")
    assert (ran.code, ran.out) == (0, "")
    bare.ok("undo", "--yes")
    assert (bare.project / "file").read_text() == "before\n"


def test_in_a_subfolder(cli) -> None:
    ran = cli("run", "--", "sh", "-c", "pwd; echo x > here; echo x > ../there", cwd=cli.project / "src")
    assert ran.out == f"{cli.project / 'src'}\n"
    assert "2 paths changed: src/here, there" in ran.err
    elsewhere = cli("run", "-C", str(cli.project / "src"), "--", "sh", "-c", "pwd; echo $PWD", cwd=cli.project.parent)
    assert elsewhere.out == f"{cli.project / 'src'}\n" * 2


def test_nothing_changed(cli) -> None:
    ran = cli("run", "--", "true")
    assert ran.err.splitlines()[1] == "takeback: no file changed"
    assert cli("run", "--quiet", "--", "true") == (0, "", "")


def test_secrets_stay_out_of_the_journal(cli, own_home: Path) -> None:
    secret = "sk_live_" + "abcdefgh12345678abcdefgh"
    ran = cli("run", "--", "sh", "-c", f"true Authorization: Bearer {secret}; echo x > made")
    assert secret not in ran.err
    stored = b"".join(p.read_bytes() for p in own_home.rglob("*") if p.is_file())
    assert secret.encode() not in stored


def test_a_run_inside_a_run_is_part_of_it(cli) -> None:
    ran = cli("run", "--", *PROGRAM, "run", "--", "sh", "-c", "echo x > inner; echo out; exit 5")
    assert (ran.code, ran.out) == (5, "out\n")
    assert "which journals what this changes" in ran.err
    assert "1 path changed: inner" in ran.err
    cli.ok("undo", "--yes")
    assert not (cli.project / "inner").exists()


def test_a_stale_mark_of_a_run_protects_all_the_same(cli) -> None:
    cli.ok("run", "--", "sh", "-c", "echo x > made", env={"TAKEBACK_RUN": "klmnopqrstuvwxyz" * 2})
    cli.ok("undo", "--yes")
    assert not (cli.project / "made").exists()


def test_the_command_knows_its_run(cli) -> None:
    ran = cli("run", "--", "sh", "-c", "echo $TAKEBACK_RUN")
    assert len(ran.out.strip()) == 32
    assert cli.ok("show", ran.out.strip()).out


# -- what it passes through ----------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["no-such-program-anywhere"], 127, "there is no such program"),
        (["./README.md"], 126, "cannot be run (Permission denied)"),
        (["sh", "-c", "kill -9 $$"], 137, ""),
        (["sh", "-c", "exit 255"], 255, ""),
    ],
)
def test_exit_codes(cli, words: list[str], code: int, said: str) -> None:
    ran = cli("run", "--", *words)
    assert ran.code == code
    assert said in ran.err


def test_words_reach_the_command_as_they_are(cli) -> None:
    words = ["a  b", "--json", "-q", "--help", "--", "", "*", "$HOME", "é\n"]
    ran = cli("run", "--", sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *words)
    assert ran.out == f"{words!a}\n"
    assert "takeback: no file changed" in ran.err, "-q was the command's"


def test_bytes_go_through_both_ways(cli) -> None:
    data = bytes(range(256)) * 4096 + b"no newline at the end"
    done = subprocess.run([*PROGRAM, "run", "--", "cat"], cwd=cli.project, input=data, capture_output=True, check=True)
    assert done.stdout == data


def test_a_flood_of_output_streams_through(cli) -> None:
    size = 256 << 20
    line = f"head -c {size} /dev/zero"
    with started(cli, "run", "-q", "--", "sh", "-c", line) as process:
        assert process.stdout is not None
        got = 0
        while chunk := process.stdout.read(1 << 20):
            got += len(chunk)
        assert (got, process.wait(timeout=30)) == (size, 0)


def test_a_reader_that_leaves_ends_the_command(cli) -> None:
    line = f"set -o pipefail; {PROGRAM[0]} -m takeback run -- yes | head -n 1"
    done = subprocess.run(["bash", "-c", line], cwd=cli.project, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGPIPE, b"y\n")


def test_open_files_are_passed_on(cli) -> None:
    reader, writer = os.pipe()
    code = f"import os; os.write({writer}, b'through')"
    with started(cli, "run", "--", sys.executable, "-c", code, pass_fds=[writer]) as process:
        os.close(writer)
        with os.fdopen(reader) as file:
            assert file.read() == "through"
        assert process.wait() == 0


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_reach_the_command(cli, name: str) -> None:
    number = getattr(signal, name)
    line = f"trap 'echo got it > got; exit 9' {name[3:]}; echo x > ready; while :; do sleep 0.05; done"
    with started(cli, "run", "--", "sh", "-c", line) as process:
        wait_for(cli.project / "ready")
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 9
    assert b"2 paths changed: got, ready" in err
    cli.ok("undo", "--yes")
    assert not (cli.project / "got").exists()


def test_a_signal_ends_all_of_the_command(cli) -> None:
    with started(cli, "run", "--", "sh", "-c", "echo x > ready; sleep 60; true") as process:
        wait_for(cli.project / "ready")
        process.terminate()
        _, err = process.communicate(timeout=30)  # the sleep holds its output too, and must be gone
    assert process.returncode == 128 + signal.SIGTERM
    assert b"1 path changed: ready" in err


def test_killed_in_between_nothing_is_lost(cli) -> None:
    with started(cli, "run", "--", "sh", "-c", "echo x > ready; exec sleep 60") as process:
        wait_for(cli.project / "ready")
        process.kill()
        process.wait()
    found = cli.ok("status", "--json").json
    assert [(c["path"], c["actor"]) for c in found["changes"]] == [("ready", "")]
    cli.ok("rollback", "--yes")
    assert not (cli.project / "ready").exists()


# -- on a terminal -------------------------------------------------------------


def test_a_program_that_asks(cli) -> None:
    line = 'test -t 0 && test -t 1 && printf "name? " && read name && echo "hello $name" && echo $name > made'
    ran = cli.typing("run", "--", "sh", "-c", line, answers=[("name?", "ada\n")], program=ON_TERMINAL)
    assert ran.code == 0
    assert "hello ada" in ran.out and "1 path changed: made" in ran.out


RAW = """
import os, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"press")
key = os.read(0, 1)
if sys.argv[1:] == ["die"]:
    os.kill(os.getpid(), 9)
termios.tcsetattr(0, termios.TCSADRAIN, before)
print("\\ngot", key, os.tcgetpgrp(0) == os.getpgrp())
"""


def test_a_program_in_raw_mode(cli) -> None:
    ran = cli.typing("run", "--", sys.executable, "-c", RAW, answers=[("press", "\x03")], program=ON_TERMINAL)
    assert ran.code == 0
    assert "got b'\\x03' True" in ran.out, "in raw mode Ctrl-C is a key like any other"


def test_a_terminal_left_raw_by_a_killed_program_is_set_right(cli) -> None:
    words = (*PROGRAM, "run", "--", sys.executable, "-c", RAW, "die")
    shell = 'before=$(stty -g); "$@"; echo "code $?"; test "$before" = "$(stty -g)" && echo "as before"'
    program = (*ON_TERMINAL[:3], "/bin/sh", "-c", shell, "sh", *words)
    ran = cli.typing(answers=[("press", "x")], program=program)
    assert "code 137" in ran.out and "as before" in ran.out


COUNTS = """
import os, signal, sys, time
came = []
signal.signal(signal.SIGINT, lambda *_: came.append(1))
print("ready", flush=True)
while not came:
    time.sleep(0.05)
time.sleep(0.5)
open("came", "w").write(str(len(came)))
sys.exit(4)
"""


def test_ctrl_c_reaches_the_command_once_and_takeback_goes_on(cli) -> None:
    ran = cli.typing("run", "--", sys.executable, "-c", COUNTS, answers=[("ready", "\x03")], program=ON_TERMINAL)
    assert ran.code == 4
    assert (cli.project / "came").read_text() == "1"
    assert "1 path changed: came" in ran.out


def test_an_interactive_shell_has_its_job_control(cli) -> None:
    """It takes the terminal for its jobs and gives it back."""
    sleeper = f"""{sys.executable} -c 'import time; print("u" + "p", flush=True); time.sleep(60)'\n"""
    answers = [("$ ", f"echo $((40 + 2)) > made; {sleeper}"), ("up", "\x03"), ("KeyboardInterrupt", "exit 6\n")]
    env = {"PS1": "$ ", "HISTFILE": "/dev/null"}
    words = ("run", "--", "bash", "--norc", "--noprofile", "-i")
    ran = cli.typing(*words, answers=answers, env=env, program=ON_TERMINAL)
    assert ran.code == 6
    assert (cli.project / "made").read_text() == "42\n"
    assert "1 path changed: made" in ran.out


# -- the store is shielded -----------------------------------------------------

WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
ATTACK = (
    'for f in "$TAKEBACK_HOME"/*/*; do echo x >> "$f"; done; rm -rf "$TAKEBACK_HOME"; mv "$TAKEBACK_HOME" away; exit 0'
)


@pytest.mark.skipif(landlock.abi() < landlock.OLDEST, reason="this kernel has no Landlock")
@pytest.mark.parametrize("how", ["as we are", "without privilege", "isolated"])
def test_the_command_cannot_write_to_the_store(cli, how: str) -> None:
    prefix: tuple[str, ...] = ()
    if how == "without privilege" and os.geteuid() == 0:
        if subprocess.run([*WITHOUT_PRIVILEGE, "true"], check=False, capture_output=True).returncode:
            pytest.skip("setpriv cannot take our privileges away here")
        prefix = WITHOUT_PRIVILEGE
    options = ("--isolate", "--drop") if how == "isolated" else ()
    words = [*prefix, *PROGRAM, "run", *options, "--", "sh", "-c", f"echo x > made; {ATTACK}"]
    done = subprocess.run(words, cwd=cli.project, capture_output=True, text=True, check=False)
    if how == "isolated" and done.returncode == 1:
        pytest.skip(done.stderr.splitlines()[-2])
    assert done.returncode == 0, done.stderr
    assert "not shielded" not in done.stderr
    assert "denied" in done.stderr or "Read-only" in done.stderr
    cli.ok("verify", "--data")
    cli.ok("status")
    assert not (cli.project / "away").exists()


def test_everything_else_can_be_written(cli, own_home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (own_home / "config").mkdir(exist_ok=True)
    line = f"echo x > {tmp_path}/elsewhere/a; mv {tmp_path}/elsewhere/a {own_home}/config/b; echo x > /dev/null"
    assert cli("run", "--", "sh", "-ec", line).code == 0
    assert (own_home / "config/b").read_text() == "x\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only who may mount is hindered in nothing else")
def test_who_may_mount_is_hindered_in_nothing_else(cli, own_home: Path, tmp_path: Path) -> None:
    assert cli("run", "--", "touch", str(own_home / "new"), str(tmp_path / "new")).code == 0


def test_other_verbs_inside_a_run_say_why_not(cli) -> None:
    if landlock.abi() < landlock.OLDEST:
        pytest.skip("this kernel has no Landlock")
    ran = cli("run", "--", *PROGRAM, "checkpoint", "inside")
    assert ran.code == 1
    assert "takeback run shields the store from its command" in ran.err


# -- isolated ------------------------------------------------------------------


@pytest.fixture
def isolating(cli) -> Any:
    ran = cli("run", "-q", "--isolate", "--drop", "--", "true")
    if ran.code == 1:
        pytest.skip(f"nothing can be isolated here: {ran.err}")
    return cli


MESS = "echo said; echo new > made; rm src/legacy.py; chmod 700 src/auth.py; exit 3"


def test_dropped(isolating) -> None:
    before = picture(isolating.project)
    ran = isolating("run", "--isolate", "--drop", "--", "sh", "-c", MESS)
    assert (ran.code, ran.out) == (3, "said\n")
    assert "+ made  new +1" in ran.err and "- src/legacy.py  deleted" in ran.err
    assert ran.err.splitlines()[-1] == "takeback: dropped; the project is as it was"
    assert picture(isolating.project) == before


def test_kept(isolating) -> None:
    before = picture(isolating.project)
    ran = isolating("run", "--isolate", "--keep", "--", "sh", "-c", MESS)
    assert (ran.code, ran.out) == (3, "said\n")
    assert "takeback: kept 3 paths: made, src/auth.py, src/legacy.py" in ran.err
    assert (isolating.project / "made").read_text() == "new\n"
    assert not (isolating.project / "src/legacy.py").exists()
    assert (isolating.project / "src/auth.py").stat().st_mode & 0o777 == 0o700
    isolating.ok("undo", "--yes")
    assert picture(isolating.project) == before
    isolating.ok("redo", "--yes")
    assert (isolating.project / "made").read_text() == "new\n"


def test_nobody_to_ask(isolating) -> None:
    before = picture(isolating.project)
    ran = isolating("run", "--isolate", "--", "sh", "-c", MESS)
    assert ran.code == 3
    assert "dropped, since nobody can be asked here; with --keep it is kept" in ran.err
    assert picture(isolating.project) == before


@pytest.mark.parametrize(("answer", "kept"), [("keep\n", True), ("\n", False), ("drop\n", False), ("\x03", False)])
def test_asked(isolating, answer: str, kept: bool) -> None:
    words = ("run", "--isolate", "--", "sh", "-c", "echo x > made")
    ran = isolating.typing(*words, answers=[("Keep it? [keep/DROP]", answer)], program=ON_TERMINAL)
    assert ran.code == 0
    assert (isolating.project / "made").exists() is kept
    assert "dropped" in ran.out or kept


def test_a_persons_file_stays_in_either_case(isolating, tmp_path: Path) -> None:
    mine = isolating.project / "README.md"
    for option in ("--drop", "--keep"):
        mine.write_text("before\n")
        go, ready = tmp_path / f"go{option}", tmp_path / f"ready{option}"
        line = f"touch {ready}; until test -e {go}; do sleep 0.02; done; echo theirs > README.md; echo x > made"
        with started(isolating, "run", "--isolate", option, "--", "sh", "-c", line) as process:
            wait_for(ready)
            mine.write_text("mine\n")
            go.touch()
            _, err = process.communicate(timeout=30)
        assert mine.read_text() == "mine\n", err
    assert process.returncode == 3
    assert b"not kept: README.md: somebody changed it meanwhile" in err
    assert (isolating.project / "made").exists()


def test_where_it_cannot_isolate_nothing_runs(cli) -> None:
    inside = {"TAKEBACK_HOME": str(cli.project / ".store")}
    ran = cli("run", "--isolate", "--keep", "--", "touch", "made", env=inside)
    assert ran.code == 1
    assert "cannot be isolated" in ran.err
    assert not (cli.project / "made").exists()


# -- what makes no sense -------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run"], 2, "run needs a command after --"),
        (["run", "make", "test"], 2, "takeback run -- make test"),
        (["run", "--keep", "--", "true"], 2, "--keep and --drop answer what --isolate asks"),
        (["run", "--isolate", "--keep", "--drop", "--", "true"], 2, "exclude each other"),
        (["run", "--json", "--", "true"], 2, "standard output is the command's"),
        (["--off", "run", "--", "touch", "made"], 1, "takeback is off"),
    ],
)
def test_refused(cli, words: list[str], code: int, said: str) -> None:
    ran = cli(*words)
    assert ran.code == code
    assert said in ran.err
    assert not (cli.project / "made").exists()


def test_off_never_runs_unprotected(bare) -> None:
    ran = bare("run", "--", "touch", "made", env={"TAKEBACK": "off"})
    assert (ran.code, ran.out) == (1, "")
    assert "takeback is off (source: environment TAKEBACK)" in ran.err
    assert not (bare.project / "made").exists()
