"""The commands that a person types inside an agent, run as the agent would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import takeback
from sampling import WHOLE
from support import picture
from takeback.agents.setup import load
from takeback.agents.setup.targets import Ours, Place, Whole

PROGRAM = (sys.executable, "-P", "-m", "takeback")
AGENTS = ["claude", "gemini", "qwen", "opencode", "codex", "cursor"]


def command(agent: str, name: str, project: Path) -> str:
    """The text of a command, as the agent reads it."""
    ours = Ours(lambda agent, event: "hook", PROGRAM)
    place = Place(project, project.parent, {}, user=agent == "codex")
    for target in load(agent).targets(place, ours):
        if isinstance(target, Whole) and target.path.stem in (name, f"takeback-{name}"):
            text = target.text
            return tomllib.loads(text)["prompt"] if target.path.suffix == ".toml" else text
    raise AssertionError(f"{agent} has no {name}")


def run_by_agent(agent: str, text: str) -> list[str]:
    """The command lines that are run when the command is typed: by the agent itself, or first thing by its model."""
    if agent in ("claude", "opencode"):
        return re.findall(r"^!`(.*?)`$", text, re.MULTILINE)
    if agent in ("gemini", "qwen"):
        return re.findall(r"^!\{(.*?)\}$", text, re.MULTILINE)
    asked = next(line for line in text.splitlines() if line.startswith("Run exactly"))
    return re.findall(r"`(.*?)`", asked)


def shell(line: str, cwd: Path) -> str:
    done = subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("agent", AGENTS)
def test_rollback_lists_and_shows_and_goes_only_where_the_person_then_says(agent: str, project: Path):
    (project / "a").write_text("one")
    with takeback.open(project, create=True) as ws:
        first = ws.checkpoint("before the login")
        (project / "a").write_text("two")
        ws.checkpoint("after the login")
    (project / "a").write_text("three")
    text = command(agent, "rollback", project)
    before = picture(project)
    said = ""
    for line in run_by_agent(agent, text):
        for arguments in ("", "1", f"{first.id} --yes") if agent in ("claude", "codex") or WHOLE else ("1 --yes",):
            said += shell(line.replace("$ARGUMENTS", arguments), project)
            assert picture(project) == before
    assert first.id[:4] in said and "before the login" in said  # the points
    assert "Back to" in said and "exact" in said  # the plan
    assert "Only when the person has answered with an id" in text and "Never choose" in text
    (then,) = re.findall(r"run exactly `([^`]*rollback ID --yes)`", text)
    shell(then.replace("ID", first.id[:8]), project)
    assert (project / "a").read_text() == "one"


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", ["undo", "redo", "log", "checkpoint"])
def test_the_others_run_one_line_at_once(agent: str, name: str, project: Path):
    with takeback.open(project, create=True):
        pass
    (line,) = run_by_agent(agent, command(agent, name, project))
    assert f"-m takeback {name}" in line
    subprocess.run(["bash", "-c", line.replace("$ARGUMENTS", "")], cwd=project, env=os.environ, timeout=60, check=True)
