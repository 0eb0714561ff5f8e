"""LangGraph's own conformance suite: all eight capabilities, awaited as it does, and again through the plain calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.conformance", reason="langgraph-checkpoint-conformance is not installed here")

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import CapabilityReport

import takeback
from takeback.integrations.langgraph import TakebackSaver

TESTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


class Plain(BaseCheckpointSaver[str]):
    """Answers every awaited call with the plain one."""

    def __init__(self, saver: TakebackSaver) -> None:
        super().__init__(serde=saver.serde)
        self.saver = saver

    async def aput(self, *a: Any, **k: Any) -> Any:
        return self.saver.put(*a, **k)

    async def aput_writes(self, *a: Any, **k: Any) -> Any:
        return self.saver.put_writes(*a, **k)

    async def aget_tuple(self, *a: Any, **k: Any) -> Any:
        return self.saver.get_tuple(*a, **k)

    async def alist(self, *a: Any, **k: Any) -> Any:
        for one in self.saver.list(*a, **k):
            yield one

    async def adelete_thread(self, *a: Any, **k: Any) -> Any:
        return self.saver.delete_thread(*a, **k)

    async def adelete_for_runs(self, *a: Any, **k: Any) -> Any:
        return self.saver.delete_for_runs(*a, **k)

    async def acopy_thread(self, *a: Any, **k: Any) -> Any:
        return self.saver.copy_thread(*a, **k)

    async def aprune(self, *a: Any, **k: Any) -> Any:
        return self.saver.prune(*a, **k)


def report(project: Path, files: bool, plain: bool) -> CapabilityReport:
    @checkpointer_test(name="TakebackSaver")
    async def factory() -> AsyncIterator[BaseCheckpointSaver[str]]:
        async with TakebackSaver(project, files=files) as saver:
            yield Plain(saver) if plain else saver

    return asyncio.run(validate(factory))


@pytest.mark.parametrize("plain", [False, True], ids=["awaited", "plain"])
@pytest.mark.parametrize("files", [False, True], ids=["state", "files"])
def test_all_eight_capabilities_are_there_and_pass(project: Path, files: bool, plain: bool):
    if files:
        (project / "a.txt").write_text("a")
        takeback.open(project, create=True).close()
    results = report(project, files, plain).results
    assert [(name, result.failures) for name, result in results.items() if result.failures] == []
    assert {name: (r.detected, r.passed, r.tests_passed) for name, r in results.items()} == {
        name: (True, True, count) for name, count in TESTS.items()
    }
