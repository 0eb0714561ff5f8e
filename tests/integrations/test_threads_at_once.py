"""One attribution for every adapter: several threads and a person in one folder, with the SDKs as they are installed."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from servers import payments

CASES = Path(__file__).parent / "threads_at_once.py"
NEEDS = {
    "langgraph": "langgraph",
    "langgraph-awaited": "langgraph",
    "langchain": "langchain",
    "langchain-alone": "langchain",
    "pydantic-ai": "pydantic_ai",
    "openai-agents": "openai",  # what only the SDK brings: a folder of these tests has its package's own name
    "claude-agent": "claude_agent_sdk",
    "conversation": "takeback",
}
NAMES = [
    node.name
    for node in ast.parse(CASES.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
]


@functools.cache
def told(adapter: str, folder: Path) -> dict[str, str]:
    """What came of each case: empty, or a traceback."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TAKEBACK_HOME": str(folder / "takeback")}
    with payments.serving() as shop:
        done = subprocess.run(
            [sys.executable, str(CASES), adapter, str(folder), shop.url],
            cwd=folder, env=environ, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("adapter", NEEDS)
def test_threads_and_a_person_in_one_folder(folder: Path, adapter: str, name: str):
    if find_spec(NEEDS[adapter]) is None:
        pytest.skip(f"{adapter} is not installed here")
    assert told(adapter, folder)[name] == "", told(adapter, folder)[name]
