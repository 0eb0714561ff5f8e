"""The real program in a process of its own, with or without a terminal: forked from one that has imported it, or, where
the mark `started` asks for that, started."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ready import Ready

PROGRAM = (sys.executable, "-m", "takeback")


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """`cli("rollback", "--yes")` runs it in the project."""

    said_when_stopped = ""  # by the fixture `stopped`

    def __init__(self, project: Path, ready: Ready | None = None) -> None:
        self.project = project
        self._ready = ready

    def __call__(self, *words: str | bytes, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
        where, environ = cwd or self.project, {**os.environ, **(env or {})}
        if self._ready and self._ready.can(environ) and self._ready.free.acquire(blocking=False):
            try:
                code, out, err = self._ready.run([os.fsdecode(word) for word in words], where, environ, timeout=60)
            finally:
                self._ready.free.release()
            return Ran(code, out.decode(), err.decode())
        done = subprocess.run(
            [*PROGRAM, *words],
            cwd=where,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *words: str | bytes, **how: Any) -> Ran:
        ran = self(*words, **how)
        assert ran.code == 0, ran
        return ran

    def typing(
        self,
        *words: str,
        answers: Sequence[tuple[str, str]] = (),
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = PROGRAM,
    ) -> Ran:
        """On a terminal: each answer is typed once its question has appeared. `out` is all that was shown."""
        mine, theirs = os.openpty()
        settings = {"TERM": "xterm", "COLUMNS": "100", "LINES": "40", "PAGER": "cat", **(env or {})}
        with subprocess.Popen(
            [*program, *words],
            cwd=self.project,
            env={**os.environ, **settings},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            try:
                shown = _converse(mine, list(answers))
                code = process.wait(timeout=60)
            finally:
                process.kill()  # a question that nobody answers would wait for ever
        os.close(mine)
        return Ran(code, shown, "")


def _converse(fd: int, answers: list[tuple[str, str]]) -> str:
    shown, seen, until = b"", 0, time.monotonic() + 60
    while time.monotonic() < until:
        if not select.select([fd], [], [], 0.5)[0]:
            continue
        try:
            part = os.read(fd, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not part:
            break
        shown += part
        while answers and answers[0][0].encode() in shown[seen:]:
            question, answer = answers.pop(0)
            seen = shown.index(question.encode(), seen) + len(question.encode())
            os.write(fd, answer.encode())
    else:
        raise AssertionError(f"still waiting after 60 s:\n{shown.decode()}")
    assert not answers, f"never asked: {answers}\n{shown.decode()}"
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture(scope="session")
def ready() -> Iterator[Ready | None]:
    if not hasattr(os, "fork"):
        yield None
        return
    waiting = Ready()
    yield waiting
    waiting.close()


@pytest.fixture
def bare(project: Path, request: pytest.FixtureRequest) -> Cli:
    """The program, with nothing protected yet."""
    started = request.node.get_closest_marker("started")
    return Cli(project, None if started else request.getfixturevalue("ready"))


@pytest.fixture
def cli(bare: Cli) -> Cli:
    """A protected project of a few files, with its checkpoint "start"."""
    (bare.project / "src").mkdir()
    (bare.project / "README.md").write_text("hello\n")
    (bare.project / "src/auth.py").write_text("one\ntwo\nthree\n")
    (bare.project / "src/legacy.py").write_text("old\n")
    bare.ok("init")
    return bare


@pytest.fixture
def changed(cli: Cli) -> Cli:
    """The same, after somebody changed, deleted and created a file."""
    (cli.project / "src/auth.py").write_text("one\n2\nthree\n")
    (cli.project / "src/legacy.py").unlink()
    (cli.project / "src/new.py").write_text("new\n")
    return cli


@pytest.fixture
def drifted(cli: Cli) -> Cli:
    """claude changed a file's first line and made another file; then a person changed the last line."""
    notes = cli.project / "notes.md"
    notes.write_text("a\nb\nc\nd\ne\n")
    cli.ok("checkpoint", "base")
    notes.write_text("A\nb\nc\nd\ne\n")
    (cli.project / "made.py").write_text("by claude\n")
    cli.ok("checkpoint", env={"TAKEBACK_ACTOR": "claude"})
    notes.write_text("A\nb\nc\nd\nE\n")
    return cli


@pytest.fixture
def contents(project: Path) -> Callable[[], dict[str, bytes]]:
    def look() -> dict[str, bytes]:
        return {str(p.relative_to(project)): p.read_bytes() for p in sorted(project.rglob("*")) if p.is_file()}

    return look


@pytest.fixture
def store_folder(own_home: Path) -> Callable[[], Path]:
    def find() -> Path:
        found = [p.parent for p in (own_home / "takeback").glob("*/workspace.json")]
        assert len(found) == 1, found
        return found[0]

    return find


@pytest.fixture
def killed_rollback() -> Callable[[Cli], None]:
    """Rolls back, and is killed before a second file."""
    script = """
import os, sys, takeback
from takeback.apply.executor import Executor
from takeback.domains.files import Files
real, calls = Files._do, []
def dying(self, *args):
    if calls:
        os._exit(9)
    calls.append(1)
    return real(self, *args)
Files._do = dying
Executor._conclude = lambda *_: os._exit(9)
takeback.open(sys.argv[1]).rollback()
"""

    def kill(cli: Cli) -> None:
        done = subprocess.run([sys.executable, "-c", script, str(cli.project)], check=False)
        assert done.returncode == 9

    return kill


@pytest.fixture
def interrupted(changed: Cli, killed_rollback: Callable[[Cli], None]) -> Cli:
    """A rollback killed after its first file."""
    killed_rollback(changed)
    return changed


@pytest.fixture
def under_way(changed: Cli) -> Iterator[Cli]:
    """A rollback in another process, which has put its files back and has not ended."""
    script = """
import sys, takeback
from takeback.domains.files import Files
def stalled(self):
    print("stalled", flush=True)
    sys.stdin.readline()
Files.sync = stalled
takeback.open(sys.argv[1]).rollback()
"""
    at_it = [sys.executable, "-c", script, str(changed.project)]
    with subprocess.Popen(at_it, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "stalled\n"
        yield changed
        process.communicate("\n")


@pytest.fixture
def stopped(changed: Cli) -> Cli:
    """A rollback that somebody stopped by Ctrl-C after its first file."""
    script = """
import os, signal, sys
from takeback.domains.files import Files
from takeback.surfaces.cli import main
real, calls = Files._do, []
def interrupting(self, *args):
    if calls:
        os.kill(os.getpid(), signal.SIGINT)
    calls.append(1)
    return real(self, *args)
Files._do = interrupting
sys.exit(main(["rollback", "--yes"]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=changed.project, capture_output=True, check=False)
    assert done.returncode == 130, done
    changed.said_when_stopped = done.stderr.decode()
    return changed
