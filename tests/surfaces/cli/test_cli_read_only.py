"""A store that can only be read, as after errors of its disk: what it holds is seen and brought elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import takeback

Cli = Any  # of conftest.py
Run = Callable[..., "subprocess.CompletedProcess[str]"]
# Root writes everywhere, unless it gives up the right to.
_LESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()

pytestmark = [
    pytest.mark.posix_only("modes of folders"),
    pytest.mark.skipif(bool(_LESS) and shutil.which("setpriv") is None, reason="root, and no setpriv to be less"),
]


def _store() -> dict[Path, bytes | None]:
    home = Path(os.environ["TAKEBACK_HOME"])
    return {path: path.read_bytes() if path.is_file() else None for path in home.rglob("*")}


@pytest.fixture
def run(changed: Cli) -> Iterator[Run]:
    """The program, where the store of a changed project is closed to writing."""
    other = takeback.open(changed.project)  # as long as one is open, new rows stay in SQLite's log
    changed.ok("thread", "save", "main", "--state", '{"n": 1}')
    folders = [path for path in _store() if path.is_dir()]
    for path in folders:
        path.chmod(0o500)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        program = [*_LESS, sys.executable, "-m", "takeback", *words]
        return subprocess.run(program, cwd=changed.project, capture_output=True, text=True, timeout=60, check=False)

    before = _store()
    yield run
    assert _store() == before
    for path in folders:
        path.chmod(0o700)
    other.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["log"], "start"),
        (["status"], "src/new.py"),
        (["diff"], "+2"),
        (["show", "1"], "src/legacy.py"),
        (["thread", "show", "main"], '"n": 1'),
        (["thread", "verify"], "main"),
        (["verify", "--data"], "whole"),
    ],
)
def test_what_it_holds_is_seen(run: Run, words: list[str], said: str):
    ran = run(*words)
    assert ran.returncode == 0 and said in ran.stdout, ran


def test_files_are_brought_elsewhere(run: Run, tmp_path: Path):
    ran = run("restore", "1", "src/legacy.py", "--to", str(tmp_path / "saved"))
    assert ran.returncode == 0, ran
    assert (tmp_path / "saved/src/legacy.py").read_text() == "old\n"


@pytest.mark.parametrize(
    "words",
    [
        ["checkpoint", "x"],
        ["rollback", "--yes"],
        ["undo", "--yes"],
        ["restore", "1", "src/legacy.py", "--yes"],
        ["track", "README.md"],
        ["pin", "1"],
        ["prune", "--keep", "1", "--yes"],
        ["thread", "save", "main", "--state", "{}"],
        ["watch", "--once"],
        ["label", "1", "x"],
        ["init"],
    ],
)
def test_nothing_else_is_done_and_it_says_why(run: Run, changed: Cli, words: list[str]):
    ran = run(*words)
    assert ran.returncode == 1 and "can only be read" in ran.stderr and "Traceback" not in ran.stderr, ran
    assert (changed.project / "src/auth.py").read_text() == "one\n2\nthree\n"


def test_status_promises_nothing_that_is_refused(run: Run):
    ran = run("status")
    assert "can only be read" in ran.stdout and "takeback restore --to" in ran.stderr
    assert "rollback" not in ran.stderr and "checkpoint" not in ran.stderr


def test_its_page_has_no_buttons(run: Run, changed: Cli):
    pytest.importorskip("uvicorn", reason="takeback[web] is not installed here")
    program = [*_LESS, sys.executable, "-m", "takeback", "web", "--no-open", "--json"]
    served = subprocess.Popen(program, cwd=changed.project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert served.stdout is not None
    told = json.loads(served.stdout.readline())
    served.send_signal(signal.SIGINT)
    served.communicate(timeout=60)
    assert told["read_only"] is True


def test_one_whose_database_alone_can_only_be_read_is_one(changed: Cli):
    (journal,) = Path(os.environ["TAKEBACK_HOME"]).glob("*/journal.db")
    journal.chmod(0o400)
    before = _store()
    program = [*_LESS, sys.executable, "-m", "takeback"]
    ran, doctor = (
        subprocess.run([*program, *words], cwd=changed.project, capture_output=True, text=True, timeout=60, check=False)
        for words in (["checkpoint", "x"], ["doctor"])
    )
    assert ran.returncode == 1 and "can only be read" in ran.stderr
    assert doctor.returncode == 1 and f"{journal} can only be read" in doctor.stdout
    assert _store() == before


def test_a_take_back_that_was_interrupted_is_told(changed: Cli):
    """As the lock beside it tells, which is not to be written either."""
    workspace = takeback.open(changed.project)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    workspace.told = stop
    with pytest.raises(KeyboardInterrupt):
        workspace.rollback("1")
    workspace.close()
    folders = [path for path in _store() if path.is_dir()]
    for lock in Path(os.environ["TAKEBACK_HOME"]).glob("*/apply.lock*"):
        lock.chmod(0o400)
    for path in folders:
        path.chmod(0o500)
    program = [*_LESS, sys.executable, "-m", "takeback", "log"]
    ran = subprocess.run(program, cwd=changed.project, capture_output=True, text=True, timeout=60, check=False)
    for path in folders:
        path.chmod(0o700)
    assert ran.returncode == 0 and "a rollback was interrupted" in ran.stderr, ran


def test_doctor_names_it(run: Run):
    ran = run("doctor", "--json")
    failed = {check["name"]: check["detail"] for check in json.loads(ran.stdout)["checks"] if not check["ok"]}
    assert list(failed) == ["store"] and "can only be read" in failed["store"]


def test_what_sqlite_has_not_moved_into_its_database_yet_is_read_too(run: Run):
    found = {path.name: content for path, content in _store().items() if content}
    assert b'{"thread":"main"' in found["journal.db-wal"] and b'{"thread":"main"' not in found["journal.db"]
    assert "main" in run("thread", "list").stdout
