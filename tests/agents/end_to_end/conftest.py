"""A place for each scenario, with its agent protected; what was started there ends with the test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.drivers import must_run, why_not

from .place import Place, own_environ


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, own_home: Path) -> Iterator[Place]:
    driver = request.cls.driver
    if reason := why_not(driver):
        assert not must_run(driver.name), reason
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="tb-", ignore_cleanup_errors=True) as folder:
        for name in ("TAKEBACK_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in own_environ(Path(folder)).items():
            monkeypatch.setenv(name, value)
        made = Place(Path(folder), driver)
        made.protect()
        made.driver().trust()
        try:
            yield made
        finally:
            made.stop()
