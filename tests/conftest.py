"""What every test stands on: a project folder, a store and a home of its own, and no trace of the real ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import takeback
from sampling import SAME
from support import PORTABLE
from takeback.system.processes import MARKERS
from takeback.workspace import Workspace

_KEPT = ("TAKEBACK_PORTABLE", "TAKEBACK_TEST_EXAMPLES", "TAKEBACK_WHOLE_SWEEP")


# How fast a busy machine makes examples says nothing about them. Without --all they are the same each time.
settings.register_profile(
    "untimed", deadline=None, derandomize=SAME, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path) -> Iterator[Path]:
    """No test reads or writes the user's own configuration or store."""
    monkeypatch = pytest.MonkeyPatch()  # of its own: a test may undo its own patches early
    for name in list(os.environ):
        if (name.startswith("TAKEBACK") and name not in _KEPT) or name in MARKERS:  # a test plays a person
            monkeypatch.delenv(name)
    home = tmp_path / "own-home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("TAKEBACK_HOME", str(home / "takeback"))
    monkeypatch.setenv("TAKEBACK_RESIDENT", "off")  # no process outlives its test; those of the resident turn it on
    here = os.getcwd()
    yield home
    os.chdir(here)  # the command line, called here, follows its -C
    monkeypatch.undo()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def ws(project: Path) -> Iterator[Workspace]:
    """A workspace of the empty project; its first checkpoint is taken."""
    with takeback.open(project, create=True) as workspace:
        yield workspace


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the portable fallbacks document as not held is skipped there, by name."""
    if PORTABLE:
        for item in items:
            if mark := item.get_closest_marker("posix_only"):
                item.add_marker(pytest.mark.skip(reason=f"portable mode does not hold this: {mark.args[0]}"))


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        _let_children_be_interrupted()
    config.addinivalue_line("markers", "posix_only(why): needs what the portable fallbacks document as not held")
    config.addinivalue_line("markers", "started: each command has an interpreter of its own, which is what is tested")


def _let_children_be_interrupted() -> None:
    """What our parent ignores, as that of `nohup scripts/test &` does, is ignored by every process that tests start,
    unless it is handled here: a handler is not inherited. This process goes on ignoring it."""
    for name in ("SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
