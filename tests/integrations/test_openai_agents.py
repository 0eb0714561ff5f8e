"""The OpenAI Agents SDK as it is installed, with its own scripted model and a payment server that keeps state."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from servers import payments

if find_spec("openai") is None:  # what only the SDK brings: a folder of these tests has its package's own name
    pytest.skip("openai-agents is not installed here", allow_module_level=True)

HERE = Path(__file__).parent
CASES = HERE / "openai_agents_cases.py"
EXAMPLE = HERE.parents[1] / "examples" / "openai_agents_undo.py"
NAMES = [
    node.name
    for node in ast.parse(CASES.read_text()).body
    if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("case_")
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What came of each case: empty, or a traceback."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("projects")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TAKEBACK_HOME": str(home / "takeback")}
    with payments.serving() as shop:
        done = subprocess.run(
            [sys.executable, str(CASES), str(folder), shop.url],
            cwd=folder, env=environ, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    yield dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_with_the_sdk(told: dict[str, str], name: str):
    assert told[name] == "", told[name]


def test_the_example_runs(tmp_path: Path):
    done = subprocess.run([sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-3:] == ["report.md is gone", "refunded: ch_1", "items: 0"], done.stdout
