"""undo --conversation with the real programs: a session without the turn goes on, and the old one stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.drivers import Claude, Codex, Driver, Opencode
from agents.model import Model, Turn

from .place import Place


class Forgetting:
    driver: type[Driver]

    def configure(self, place: Place, model: Model) -> None:
        """What a person has in its configuration, and its driver gives on the command line."""

    def resumed(self, argv: Sequence[str], session: str) -> list[str]:
        """How it is asked something in this session, from how it is asked in the last one."""
        raise NotImplementedError

    def test_the_conversation_goes_on_without_the_turn_that_was_undone(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Model([]) as model:
            driver = place.driver(model)
            model.turns = [
                Turn(uses=[driver.shell("echo 1 > strawberries.txt")]),
                Turn("first answer"),
                Turn(uses=[driver.shell("echo 2 > raspberries.txt")]),
                Turn("second answer"),
                Turn("third answer"),
            ]
            driver.ask("write strawberries first")
            driver.ask("write raspberries then", again=True)
            self.configure(place, model)
            before = _files(place.home)
            argv, environ = driver.command("what was it", again=True)
            for name, value in {**driver.environ(), **environ}.items():
                monkeypatch.setenv(name, value)
            monkeypatch.setenv("PATH", f"{Path(driver.binary).parent}{os.pathsep}{os.environ['PATH']}")
            asked = model.played
            done = json.loads(place.takeback("undo", "--conversation", "--yes", "--json").out)
            (found,) = done["conversation"]
            assert not found["why"], found
            assert found["agent"] == driver.name and found["new_session"] not in ("", found["session"])
            assert found["command"].endswith(found["new_session"])
            assert model.played == asked, "no model was asked"
            assert not (place.project / "raspberries.txt").exists() and (place.project / "strawberries.txt").exists()
            for path, text in before.items():
                assert path.read_bytes().startswith(text), f"{path} of the old session was changed"
            again = subprocess.run(
                self.resumed(argv, found["new_session"]),
                cwd=place.project,
                env={**driver.environ(), **environ},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=120,
            )
            assert again.returncode == 0, again.stderr.decode()[-2000:]
            assert model.times_told("strawberries first") and model.times_told("what was it")
            assert not model.times_told("raspberries")

    def test_the_first_thing_said_leaves_no_session(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        with Model([]) as model:
            driver = place.driver(model)
            model.turns = [Turn(uses=[driver.shell("echo 1 > strawberries.txt")]), Turn("first answer")]
            driver.ask("write strawberries first")
            environ = driver.command("what was it", again=True).environ
            for name, value in {**driver.environ(), **environ}.items():
                monkeypatch.setenv(name, value)
            monkeypatch.setenv("PATH", f"{Path(driver.binary).parent}{os.pathsep}{os.environ['PATH']}")
            said = place.takeback("undo", "--conversation", "--yes").out
            assert "it was the first thing said in its session" in said


def _files(home: Path) -> dict[Path, bytes]:
    """Transcripts that are lines of text; opencode has a database."""
    return {path: path.read_bytes() for path in home.rglob("*.jsonl") if path.is_file()}


class TestClaude(Forgetting):
    driver = Claude

    def resumed(self, argv: Sequence[str], session: str) -> list[str]:
        return [word for word in argv if word != "--continue"] + ["--resume", session]


class TestCodex(Forgetting):
    driver = Codex

    def configure(self, place: Place, model: Model) -> None:
        with (place.home / ".codex/config.toml").open("a") as file:
            file.write(f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model.url}/v1"\n')
            file.write('wire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n')

    def resumed(self, argv: Sequence[str], session: str) -> list[str]:
        return [session if word == "--last" else word for word in argv]


class TestOpencode(Forgetting):
    driver = Opencode

    def resumed(self, argv: Sequence[str], session: str) -> list[str]:
        at = list(argv).index("--continue")
        return [*argv[:at], "--session", session, *argv[at + 1 :]]
