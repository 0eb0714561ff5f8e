"""Completion in the real shells, at a terminal: whatever a label or a path is called, the shell reads it back as it is,
and nothing in it is ever run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import takeback

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(takeback completion bash)"; takeback ready'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(takeback completion zsh)"; takeback ready'),
    "fish": (["fish", "--no-config", "-i"], "takeback completion fish | source; takeback ready"),
}  # fmt: skip
LABELS = (
    "aa $(touch RAN) and/$(touch RAN)",
    "bb`touch RAN`",
    "cc;touch RAN",
    "dd$HOME/${x:=y}",
    "ee'it\"s",
    "ff\\g\\\\h",
    "gg:h=i@j",
    "hh &touch RAN|<(touch RAN)>x #y",
    "ii{a,b}~[c]?* %s",
)
GONE = "src/zz $(touch RAN)`touch RAN`;touch RAN.txt"


class Shell:
    """A shell at a terminal, in which `takeback` writes down what it was given."""

    def __init__(self, name: str, project: Path, folder: Path) -> None:
        self.given = folder / "given"
        self.given.write_text("")
        program = folder / "bin" / "takeback"
        program.parent.mkdir()
        note = "import json, sys; print(json.dumps(sys.argv[2:]), file=open(sys.argv[1], 'a'))"
        program.write_text(
            f'#!/bin/sh\ncase " $* " in *" completion "*) exec {shlex.quote(sys.executable)} -m takeback "$@";; esac\n'
            f'exec {shlex.quote(sys.executable)} -c {shlex.quote(note)} {shlex.quote(str(self.given))} "$@"\n'
        )
        program.chmod(0o755)
        words, ready = SHELLS[name]
        self.terminal, theirs = os.openpty()
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            words, cwd=project, env={**os.environ, "PATH": path, "TERM": "xterm", "HISTFILE": os.devnull},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.shown = b""
        assert self.enter(ready) == ["ready"]

    def enter(self, typed: str) -> list[str]:
        """Types a line; what the program was given."""
        before = len(self.given.read_text().splitlines())
        os.write(self.terminal, f"{typed}\r".encode())
        until = time.monotonic() + 60
        while len(given := self.given.read_text().splitlines()) == before:
            assert time.monotonic() < until, self.shown.decode(errors="replace")
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.shown += os.read(self.terminal, 65536)
        found: list[str] = json.loads(given[-1])
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@contextlib.contextmanager
def shell(name: str, project: Path, folder: Path) -> Iterator[Shell]:
    made = Shell(name, project, folder)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def hostile(cli) -> Path:
    """A project whose checkpoints and files have names that want to be run."""
    project: Path = cli.project
    (project / GONE).write_text("x")
    (project / "new\nline $(touch RAN)").write_text("x")
    with takeback.open(project) as workspace:
        for label in (*LABELS, "new\x1b[2J", "-xx", "all there"):
            workspace.checkpoint(label)
        workspace.threads.save("user:4 $(touch RAN)", {"n": 1})
    (project / GONE).unlink()
    return project


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed"))
     for name in SHELLS],
)  # fmt: skip
def test_no_name_is_ever_run(hostile: Path, tmp_path: Path, name: str) -> None:
    with shell(name, hostile, tmp_path) as at:
        for label in LABELS:
            assert at.enter(f"takeback rollback {label[:2]}\t") == ["rollback", label]
        for label in LABELS[:2]:
            assert at.enter(f'takeback rollback "{label[:2]}\t') == ["rollback", label]
        assert at.enter('takeback restore "all there" src/zz\t') == ["restore", "all there", GONE]
        assert at.enter("takeback restore all\\ there src/zz\t") == ["restore", "all there", GONE]
        assert at.enter(f"takeback -C {hostile} pin cc\t") == ["-C", str(hostile), "pin", LABELS[2]]
        assert at.enter("takeback thread show us\t") == ["thread", "show", "user:4 $(touch RAN)"]
    assert not list(hostile.glob("RAN*"))


def test_what_is_no_line_or_would_be_an_option_is_not_offered(hostile: Path, cli) -> None:
    names: Sequence[str] = [line.partition("\t")[0] for line in cli.ok("completion", "--names", "pin").out.splitlines()]
    assert set(LABELS) <= set(names)
    assert "-xx" not in names and not [name for name in names if name.startswith("new")]
    paths = cli.ok("completion", "--names", "restore:all there").out.splitlines()
    assert GONE in paths and "README.md" in paths and not [path for path in paths if path.startswith(("new", "line"))]
